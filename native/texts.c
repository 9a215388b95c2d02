/* The votes of plain texts, whose lines are blocks of weight 1: words_by_line() of
 * pgsimhash/html/page_words.py; and of short texts.
 */
#include <stdlib.h>

#include "page.h"

/* A text, NULL with a lone surrogate, and what is read of it. UNSUPPORTED: only Python reads it. */
typedef struct {
    const char *utf8;
    Py_ssize_t size;
    Status status;
    Vote vote;
} Text;

/* Without the GIL. */
static Status vote_of_text(Text *text, const Tables *tables, const Factors *factors,
                           PyThreadState *thread) {
    if (text->utf8 == NULL) return UNSUPPORTED;
    Page *page = calloc(1, sizeof *page);
    if (page == NULL) return NO_MEMORY;
    page->thread = thread;
    bool fits = buffer_add(&page->text, text->utf8, (size_t)text->size);
    Status status = fits ? read_words(page, tables, factors == NULL) : NO_MEMORY;
    if (status == DONE) status = vote(page, tables, factors, &text->vote);
    free_page(page);
    return status;
}

static Status vote_of_all(Text *texts, Py_ssize_t count, const Tables *tables,
                          const Factors *factors) {
    Status status = DONE;
    PyThreadState *thread = PyEval_SaveThread();
    for (Py_ssize_t i = 0; i < count && status != NO_MEMORY && status != RAISED; i++)
        texts[i].status = status = vote_of_text(texts + i, tables, factors, thread);
    PyEval_RestoreThread(thread);
    return status == UNSUPPORTED ? DONE : status;
}

/* vote_texts(tables, texts, factors) -> a list with a vote, or None, for each text, of which each
 * line begins with a sign. If the factors are None, letters vote, and texts have no NUL. */
PyObject *vote_texts(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *capsule, *strings, *tuple;
    Factors factors;
    if (!PyArg_ParseTuple(arguments, "OO!O", &capsule, &PyList_Type, &strings, &tuple) ||
        (tuple != Py_None && !read_factors(tuple, &factors)))
        return NULL;
    const Tables *tables = tables_of(capsule);
    if (tables == NULL) return NULL;
    Py_ssize_t count = PyList_Size(strings);
    Text *texts = calloc((size_t)count + 1, sizeof *texts);
    if (texts == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        texts[i].utf8 = PyUnicode_AsUTF8AndSize(PyList_GetItem(strings, i), &texts[i].size);
        if (texts[i].utf8 == NULL) PyErr_Clear();
    }
    Status status = vote_of_all(texts, count, tables, tuple == Py_None ? NULL : &factors);
    PyObject *votes = status == DONE ? PyList_New(count) : refusal(status);
    for (Py_ssize_t i = 0; votes != NULL && i < count; i++) {
        PyObject *vote = texts[i].status == DONE ? vote_tuple(&texts[i].vote)
                                                 : Py_NewRef(Py_None);
        if (vote == NULL || PyList_SetItem(votes, i, vote) != 0) Py_CLEAR(votes);
    }
    free(texts);
    return votes;
}
