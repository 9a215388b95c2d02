/* What is rendered of a page: pgsimhash/html/markdown.py, events(), but with finished lines instead
 * of the texts and inline elements outside code.
 *
 * The tree is walked in the order of the outline, so the elements and texts of that are counted
 * again. A tree that has changed since is UNSUPPORTED.
 */
#include "characters.h"
#include "inline.h"

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
    Inline line;
    int ends, ends_max; /* of elements; with more there are no events */
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

static bool is_raw(const Walk *walk) { return walk->pre != NULL && !walk->line.in_table; }

/* Add the text before what comes next. */
static Status end_text(Walk *walk) {
    const uint8_t *text = walk->text.data;
    size_t size = walk->text.size;
    walk->text.size = 0;
    if (size == 0) return DONE;
    if (!is_raw(walk)) return inline_text(&walk->line, text, text + size);
    return append(walk, PyUnicode_DecodeUTF8((char *)text, (Py_ssize_t)size, NULL)) ? DONE : RAISED;
}

/* Add the line before what comes next, if it has words. */
static Status end_line(Walk *walk) {
    Status status = inline_join(&walk->line);
    const Buffer *joined = &walk->line.joined;
    if (status != DONE || joined->size == 0) return status;
    PyObject *line = PyUnicode_DecodeUTF8(joined->data, (Py_ssize_t)joined->size, NULL);
    return append(walk, line == NULL ? NULL : Py_BuildValue("sN", "", line)) ? DONE : RAISED;
}

/* A block begins or ends. */
static Status separate(Walk *walk, const Tag *tag, bool begins) {
    bool is_cell = tag->flags & IS_CELL, has_parts = walk->line.parts.size > 0;
    if (!walk->line.in_table) return has_parts ? end_line(walk) : DONE;
    if (is_cell && !begins) return end_line(walk);
    bool ends_line = is_cell || (!begins && tag->flags & IS_TABLE);
    return !has_parts ? DONE : ends_line ? end_line(walk) : inline_space(&walk->line);
}

/* Notice where a heading or a table with data begins or ends. */
static Status look_at_block(Walk *walk, const Tag *tag, bool begins, PyObject *element) {
    if (walk->line.in_table) {
        walk->line.in_table = begins || !(tag->flags & IS_TABLE);
    } else if (tag->flags & IS_HEADING) {
        walk->line.is_heading = begins;
    } else if (tag->flags & IS_TABLE && begins) {
        PyObject *result = PyObject_CallFunctionObjArgs(walk->line.is_data_table, element, NULL);
        if (result == NULL) return RAISED;
        walk->line.in_table = PyObject_IsTrue(result) == 1;
        Py_DECREF(result);
    }
    return DONE;
}

/* A block, or in code any element, begins or ends: add an event. */
static Status add_event(Walk *walk, const Node *node, const Tag *tag, bool begins,
                        PyObject *element) {
    if (tag->flags & EVENT_BLOCK && !is_raw(walk)) {
        Status status = separate(walk, tag, begins);
        if (status == DONE) status = look_at_block(walk, tag, begins, element);
        if (status != DONE) return status;
    }
    PyObject *event = NULL;
    if (tag->flags & EVENT_PLAIN)
        event = PyUnicode_FromString("");
    else if (!begins)
        event = Py_NewRef(Py_None);
    else
        event = Py_BuildValue("NO", PyUnicode_InternFromString((const char *)node->name), element);
    if (begins && tag->flags & IS_CODE && walk->pre == NULL) walk->pre = node;
    if (!begins && walk->pre == node) walk->pre = NULL;
    return append(walk, event) ? DONE : RAISED;
}

/* An element begins or ends. */
static Status add_tag(Walk *walk, const Node *node, const Tag *tag, bool begins) {
    uint32_t flags = tag->flags;
    if (flags & EVENT_PLAIN && walk->separated) return DONE;
    if (!(flags & (EVENT_ELEMENT | EVENT_BLOCK | EVENT_INLINE))) return DONE;
    if (!begins && !(flags & EVENT_PLAIN) && ++walk->ends > walk->ends_max) return UNSUPPORTED;
    Status status = end_text(walk);
    if (status != DONE) return status;
    walk->separated = flags & EVENT_BLOCK;
    bool is_inline = flags & EVENT_INLINE && !is_raw(walk);
    bool is_needed = is_inline && flags & TAG_LINK ? !begins : begins && flags & EVENT_ELEMENT;
    PyObject *element = is_needed ? element_of(walk->module, walk->body, node)
                                  : Py_NewRef(Py_None);
    if (element == NULL) return RAISED;
    if (!is_inline) status = add_event(walk, node, tag, begins, element);
    else if (begins) status = inline_begin(&walk->line, node, element);
    else status = inline_end(&walk->line, node, element);
    Py_DECREF(element);
    return status;
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
    if (status == DONE) status = end_text(walk);
    if (status == DONE && walk->line.parts.size) status = end_line(walk);
    bool is_same = walk->element == entered_count(walk->page) &&
                   walk->piece == piece_count(walk->page);
    return status == DONE && !is_same ? UNSUPPORTED : status;
}

/* events(tables, page, body, functions for Inline, most ends of elements)
 * -> a list of events, empty for more ends, or None if the tree has changed */
PyObject *events(PyObject *module, PyObject *arguments) {
    PyObject *table_capsule, *page_capsule;
    Walk walk = {.module = module};
    Inline *line = &walk.line;
    if (!PyArg_ParseTuple(arguments, "OOO(OOOOO)i", &table_capsule, &page_capsule, &walk.body,
                          &line->link, &line->image, &line->escape, &line->escape_start,
                          &line->is_data_table, &walk.ends_max))
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
    inline_free(&walk.line);
    free(walk.marks);
    bool has_too_many = walk.ends > walk.ends_max;
    if (has_too_many && PyList_SetSlice(walk.events, 0, PyList_Size(walk.events), NULL) == 0)
        status = DONE;
    if (status == DONE) return walk.events;
    Py_XDECREF(walk.events);
    return refusal(status);
}
