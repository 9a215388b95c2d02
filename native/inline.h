/* The inline text of a block of Markdown. */
#ifndef PGSIMHASH_INLINE_H
#define PGSIMHASH_INLINE_H

#include "page.h"

typedef struct {
    /* Functions of markdown.py: the end of a link, and an image, both empty without a URL; a text
     * escaped, and its start; whether a table contains data. */
    PyObject *link, *image, *escape, *escape_start, *is_data_table;
    bool is_heading, in_table; /* a table with data: both have lines that are not broken */
    Buffer text, parts, open; /* the text of the parts, the parts, and the open inline elements */
    int32_t line, texts, code;
    /* While the parts are joined. */
    Buffer joined, starts, begun; /* where what was added starts; the marks of what comes next */
    Buffer content, quoted;       /* of a part; code */
    int32_t begun_count;
    const char *space; /* before what comes next */
} Inline;

Status inline_text(Inline *line, const uint8_t *start, const uint8_t *end);
/* Separate what comes from what is there. */
Status inline_space(Inline *line);
/* An inline element begins or ends; images, and links at their end, need the element of lxml. */
Status inline_begin(Inline *line, const Node *node, PyObject *element);
Status inline_end(Inline *line, const Node *node, PyObject *element);
/* Join the parts in `joined`, and begin the next line. */
Status inline_join(Inline *line);
void inline_free(Inline *line);

#endif
