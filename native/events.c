/* What is rendered of a page: pgsimhash/html/markdown.py, events().
 *
 * The tree is walked in the order of the outline, so the elements and texts of that are counted
 * again. A tree that has changed since is UNSUPPORTED.
 */
#include "characters.h"
#include "page.h"

#include <stdlib.h>

typedef struct {
    PyObject *module, *body, *events;
    const Tables *tables;
    const Page *page;
    uint8_t *marks; /* of the elements of the outline */
    int32_t element, piece;
    bool separated;  /* the last event begins or ends a block, so blank text changes nothing */
    const Node *pre; /* but in this element */
    Buffer text;     /* the last event is this text, if it has a size */
    Tag tags[TAGS_KEPT];
} Walk;

/* Mark the elements around the shown pieces with 1, and those around others only with 2. */
static void mark(const Page *page, uint8_t *marks) {
    const int32_t *around = page->entered.data;
    const Piece *pieces = page->pieces.data;
    marks[0] = 1;
    for (uint8_t value = 1; value <= 2; value++)
        for (int32_t i = 0; i < piece_count(page); i++)
            if (page->shown[pieces[i].block] == (value == 1))
                for (int32_t at = pieces[i].around; marks[at] == 0; at = around[at])
                    marks[at] = value;
}

/* Add an object that is a new reference, or NULL with an exception. */
static bool append(Walk *walk, PyObject *event) {
    bool is_added = event != NULL && PyList_Append(walk->events, event) == 0;
    Py_XDECREF(event);
    return is_added;
}

/* Add an event behind the text before it. */
static Status add_event(Walk *walk, PyObject *event, bool separates) {
    Py_ssize_t size = (Py_ssize_t)walk->text.size;
    bool is_added = !size || append(walk, PyUnicode_DecodeUTF8(walk->text.data, size, NULL));
    walk->text.size = 0;
    walk->separated = separates;
    return append(walk, event) && is_added ? DONE : RAISED;
}

/* An element begins or ends. */
static Status add_tag(Walk *walk, const Node *node, const Tag *tag, bool begins) {
    if (tag->flags & EVENT_PLAIN)
        return walk->separated ? DONE : add_event(walk, PyUnicode_FromString(""), true);
    if (!(tag->flags & (EVENT_ELEMENT | EVENT_BLOCK | EVENT_INLINE))) return DONE;
    PyObject *event = begins ? NULL : Py_NewRef(Py_None);
    if (begins) {
        PyObject *name = PyUnicode_InternFromString((const char *)node->name);
        PyObject *element = tag->flags & EVENT_ELEMENT ? element_of(walk->module, walk->body, node)
                                                       : Py_NewRef(Py_None);
        if (name != NULL && element != NULL) event = PyTuple_Pack(2, name, element);
        Py_XDECREF(name);
        Py_XDECREF(element);
        if (tag->flags & IS_CODE && walk->pre == NULL) walk->pre = node;
    } else if (walk->pre == node) {
        walk->pre = NULL;
    }
    return add_event(walk, event, tag->flags & EVENT_BLOCK);
}

/* Add a text, if the block that it belongs to is shown. */
static Status add_text(void *state, const uint8_t *text, const uint8_t *end) {
    Walk *walk = state;
    const Piece *pieces = walk->page->pieces.data;
    bool is_blank = skip_space(text, end) == end;
    if (is_blank && walk->separated && walk->pre == NULL) return DONE;
    if (!is_blank) {
        if (walk->piece == piece_count(walk->page)) return UNSUPPORTED;
        if (!walk->page->shown[pieces[walk->piece++].block]) return DONE;
    }
    walk->separated = false;
    return buffer_add(&walk->text, text, (size_t)(end - text)) ? DONE : NO_MEMORY;
}

/* Count what is in the last element. */
static void skip_element(Walk *walk) {
    const int32_t *around = walk->page->entered.data, element = walk->element - 1;
    const Piece *pieces = walk->page->pieces.data;
    while (walk->element < entered_count(walk->page) && around[walk->element] >= element)
        walk->element++;
    while (walk->piece < piece_count(walk->page) &&
           element <= pieces[walk->piece].around && pieces[walk->piece].around < walk->element)
        walk->piece++;
}

/* An element begins, or is skipped. */
static Status begin(void *state, const Node *node) {
    Walk *walk = state;
    const Tag *tag = tag_of(walk->tags, walk->tables, node);
    if (tag->flags & TAG_NEVER_TEXT) return HIDDEN;
    Status status = is_hidden(node);
    if (status != DONE) return status;
    /* The outline did not enter it. */
    if (tag->flags & TAG_EMPTY)
        return node->children == NULL ? add_tag(walk, node, tag, true) : UNSUPPORTED;
    if (walk->element == entered_count(walk->page)) return UNSUPPORTED;
    if (walk->marks[walk->element++] != 2) return add_tag(walk, node, tag, true);
    skip_element(walk);
    /* The cells behind it keep their columns. */
    if (tag->flags & IS_CELL) status = add_tag(walk, node, tag, true);
    if (tag->flags & IS_CELL && status == DONE) status = add_tag(walk, node, tag, false);
    return status == DONE ? HIDDEN : status;
}

static Status end(void *state, const Node *node) {
    Walk *walk = state;
    return add_tag(walk, node, tag_of(walk->tags, walk->tables, node), false);
}

static Status read_events(Walk *walk) {
    const Node *body = node_of(walk->module, walk->body);
    if (body == NULL) return RAISED;
    Status status = walk_through(body, begin, end, add_text, walk);
    bool is_same = walk->element == entered_count(walk->page) &&
                   walk->piece == piece_count(walk->page);
    return status == DONE && !is_same ? UNSUPPORTED : status;
}

/* events(tables, page, body) -> a list of events, or None if the tree has changed */
PyObject *events(PyObject *module, PyObject *arguments) {
    PyObject *table_capsule, *page_capsule;
    Walk walk = {.module = module};
    if (!PyArg_ParseTuple(arguments, "OOO", &table_capsule, &page_capsule, &walk.body))
        return NULL;
    walk.tables = tables_of(table_capsule);
    walk.page = walk.tables == NULL ? NULL : page_of(page_capsule);
    if (walk.page == NULL) return NULL;
    walk.marks = calloc((size_t)entered_count(walk.page) + 1, 1);
    walk.events = PyList_New(0);
    Status status = walk.marks == NULL || walk.events == NULL ? NO_MEMORY : DONE;
    if (status == DONE) {
        mark(walk.page, walk.marks);
        status = read_events(&walk);
    }
    buffer_free(&walk.text);
    free(walk.marks);
    if (status == DONE) return walk.events;
    Py_XDECREF(walk.events);
    return refusal(status);
}
