/* The parts of a page that its Markdown ignores: pgsimhash/html/article.py, _WeighedPage.ignored().
 *
 * The tree is walked again, because it may have changed since the page was read.
 */
#include "page.h"

#include <stdlib.h>

typedef struct {
    PyObject *elements, *texts, *tails;
} Sets;

static int32_t around_of(const Pieces *pieces, int32_t entered) {
    return ((const Entered *)pieces->entered.data)[entered].around;
}

/* Mark the elements around the shown pieces with 1, and those around others only with 2. */
static void mark(const Pieces *pieces, const uint8_t *shown, uint8_t *marks) {
    const Piece *all = (const Piece *)pieces->pieces.data;
    size_t count = pieces->pieces.size / sizeof *all;
    marks[0] = 1;
    for (int mark = 1; mark <= 2; mark++) {
        for (size_t i = 0; i < count; i++) {
            if ((shown[all[i].block] != 0) != (mark == 1)) continue;
            for (int32_t at = all[i].around; marks[at] == 0; at = around_of(pieces, at))
                marks[at] = (uint8_t)mark;
        }
    }
}

/* Add the outermost elements without a shown piece, and the texts and tails between shown ones. */
static bool fill(PyObject *module, PyObject *body, const Pieces *pieces, const uint8_t *shown,
                 const uint8_t *marks, const Sets *sets) {
    const Entered *entered = (const Entered *)pieces->entered.data;
    size_t count = pieces->entered.size / sizeof *entered;
    for (size_t i = 1; i < count; i++) {
        if (marks[i] == 2 && marks[entered[i].around] == 1 &&
            !add_element(module, sets->elements, body, entered[i].node))
            return false;
    }
    const Piece *all = (const Piece *)pieces->pieces.data;
    count = pieces->pieces.size / sizeof *all;
    for (size_t i = 0; i < count; i++) {
        if (!shown[all[i].block] && marks[all[i].around] == 1 &&
            !add_element(module, all[i].is_tail ? sets->tails : sets->texts, body, all[i].node))
            return false;
    }
    return true;
}

/* The three sets of a page whose tree was walked, or NULL with an exception. */
static PyObject *sets_of(PyObject *module, PyObject *body, const Pieces *pieces,
                         const uint8_t *shown) {
    uint8_t *marks = calloc(pieces->entered.size / sizeof(Entered) + 1, 1);
    if (marks == NULL) return PyErr_NoMemory();
    mark(pieces, shown, marks);
    Sets sets = {PySet_New(NULL), PySet_New(NULL), PySet_New(NULL)};
    PyObject *result = NULL;
    if (sets.elements && sets.texts && sets.tails &&
        fill(module, body, pieces, shown, marks, &sets))
        result = PyTuple_Pack(3, sets.elements, sets.texts, sets.tails);
    Py_XDECREF(sets.elements);
    Py_XDECREF(sets.texts);
    Py_XDECREF(sets.tails);
    free(marks);
    return result;
}

/* ignored(tables, page, body) -> the elements, texts and tails of an Ignored, or None if the tree
 * has other blocks than the page */
PyObject *ignored(PyObject *module, PyObject *arguments) {
    PyObject *table_capsule, *page_capsule, *body;
    if (!PyArg_ParseTuple(arguments, "OOO", &table_capsule, &page_capsule, &body)) return NULL;
    const Tables *tables = tables_of(table_capsule);
    const Page *page = tables == NULL ? NULL : page_of(page_capsule);
    const Node *node = page == NULL ? NULL : node_of(module, body);
    if (node == NULL) return NULL;
    Page *walked = calloc(1, sizeof *walked);
    if (walked == NULL) return PyErr_NoMemory();
    Pieces pieces = {0};
    Status status = read_outline(walked, tables, node, &pieces);
    bool is_same = all_block_count(walked) == all_block_count(page);
    PyObject *result = NULL;
    if (status == NO_MEMORY) PyErr_NoMemory();
    else if (status == DONE && is_same) result = sets_of(module, body, &pieces, page->shown);
    else result = Py_NewRef(Py_None);
    buffer_free(&pieces.pieces);
    buffer_free(&pieces.entered);
    free_page(walked);
    return result;
}
