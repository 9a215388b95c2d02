/* 0. Before the text blocks: pgsimhash/html/head.py, read_head(); parse.py, _empty_head(); and
 * parse.py, _clean().
 */
#include <stdlib.h>

#include "characters.h"
#include "page.h"

#define TITLES_MAX 100

/* The characters of _DROPPED in parse.py. */
static bool is_dropped(uint32_t code) {
    return code < 9 || code == 0x0B || (code >= 0x0E && code < 0x20) ||
           (code >= 0x7F && code < 0xA0) || (code >= 0xD800 && code < 0xE000) || code == 0xFFFE ||
           code == 0xFFFF;
}

static bool is_blank(const Buffer *text) {
    const uint8_t *at = text->data, *end = at + text->size;
    while (at < end) {
        uint32_t code;
        at += decode(at, end, &code);
        if (!is_space(code) && !is_dropped(code)) return false;
    }
    return true;
}

/* Return the node after `node` in document order, or NULL at the end of `top`; without recursion. */
static const Node *following(const Node *node, const Node *top) {
    if (node->type == NODE_ELEMENT && node->children != NULL) return node->children;
    while (node != top && node->next == NULL) node = node->parent;
    return node == top ? NULL : node->next;
}

static bool is_in_svg(const Node *node) {
    for (node = node->parent; node != NULL && node->type == NODE_ELEMENT; node = node->parent)
        if (strcmp((const char *)node->name, "svg") == 0) return true;
    return false;
}

static bool collect_text(const Node *top, Buffer *text) {
    text->size = 0;
    for (const Node *node = top; node != NULL; node = following(node, top))
        if ((node->type == NODE_TEXT || node->type == NODE_CDATA) && node->content != NULL &&
            !buffer_add(text, node->content, strlen((const char *)node->content)))
            return false;
    return true;
}

/* Whether a rel may be canonical: Python decides about the few that may. */
static bool may_be_canonical(const uint8_t *rel) {
    static const char word[] = "canonical";
    if (!is_ascii(rel)) return true;
    for (; *rel; rel++) {
        size_t length = 0;
        while (length < 9 && (rel[length] | 32) == (uint8_t)word[length]) length++;
        if (length == 9) return true;
    }
    return false;
}

typedef struct {
    PyObject *title, *base, *links;
    Buffer text;
    int titles;
} Head;

static Status read_title(Head *head, const Node *node) {
    if (head->title != NULL || head->titles == TITLES_MAX) return READ_IT;
    head->titles++;
    if (is_in_svg(node)) return READ_IT;
    if (!collect_text(node, &head->text)) return NO_MEMORY;
    if (is_blank(&head->text)) return READ_IT;
    head->title = PyUnicode_DecodeUTF8((const char *)head->text.data,
                                       (Py_ssize_t)head->text.size, NULL);
    return head->title == NULL ? RAISED : READ_IT;
}

static Status read_link(Head *head, const Node *node, bool is_base) {
    const uint8_t *href = NULL, *rel = NULL;
    for (const Node *attribute = node->properties; attribute; attribute = attribute->next) {
        const uint8_t **into = NULL;
        if (strcmp((const char *)attribute->name, "href") == 0) into = &href;
        else if (strcmp((const char *)attribute->name, "rel") == 0) into = &rel;
        if (into != NULL && (*into = attribute_value(attribute)) == NULL) return RARE;
    }
    if (is_base) {
        if (href == NULL || head->base != NULL) return READ_IT;
        head->base = PyUnicode_FromString((const char *)href);
        return head->base == NULL ? RAISED : READ_IT;
    }
    if (rel == NULL || !may_be_canonical(rel)) return READ_IT;
    PyObject *link = Py_BuildValue("(ss)", (const char *)rel, (const char *)href);
    Status status = link == NULL || PyList_Append(head->links, link) ? RAISED : READ_IT;
    Py_XDECREF(link);
    return status;
}

static Status read_node(Head *head, const Node *node) {
    if (node->type == NODE_COMMENT || node->type == NODE_INSTRUCTION || node->type == NODE_ENTITY)
        return RARE;
    if (node->type != NODE_ELEMENT) return READ_IT;
    const char *name = (const char *)node->name;
    if (strcmp(name, "title") == 0) return read_title(head, node);
    if (strcmp(name, "base") == 0) return read_link(head, node, true);
    return strcmp(name, "link") == 0 ? read_link(head, node, false) : READ_IT;
}

/* read_head(root) -> (text of the title or None, href of the base or None, [(rel, href or None), ...]
 * of the links that may be canonical), or None if only Python reads it */
PyObject *read_head(PyObject *module, PyObject *root) {
    const Node *top = node_of(module, root);
    if (top == NULL) return NULL;
    Head head = {.links = PyList_New(0)};
    Status status = head.links == NULL ? RAISED : READ_IT;
    for (const Node *node = top; node != NULL && status == READ_IT; node = following(node, top))
        status = read_node(&head, node);
    PyObject *result = NULL;
    if (status == READ_IT)
        result = Py_BuildValue("OOO", head.title == NULL ? Py_None : head.title,
                               head.base == NULL ? Py_None : head.base, head.links);
    else if (status == NO_MEMORY) PyErr_NoMemory();
    else if (status == RARE) result = Py_BuildValue("");
    Py_XDECREF(head.title);
    Py_XDECREF(head.base);
    Py_XDECREF(head.links);
    buffer_free(&head.text);
    return result;
}

/* has_only(element, tags) -> whether all its children are elements with these tags */
PyObject *has_only(PyObject *module, PyObject *arguments) {
    PyObject *element, *tags;
    if (!PyArg_ParseTuple(arguments, "OO", &element, &tags)) return NULL;
    const Node *node = node_of(module, element);
    if (node == NULL) return NULL;
    bool is_rare = false;
    int is_inside = 1;
    for (node = element_from(node->children, &is_rare); node != NULL && is_inside == 1;
         node = element_from(node->next, &is_rare)) {
        PyObject *tag = PyUnicode_FromString((const char *)node->name);
        is_inside = tag == NULL ? -1 : PySet_Contains(tags, tag);
        Py_XDECREF(tag);
    }
    return is_inside < 0 ? NULL : PyBool_FromLong(is_inside && !is_rare);
}

/* Whether UTF-8 has a character of _DROPPED beyond ASCII: U+0080 to U+009F (C2 80 to C2 9F),
 * surrogates (ED A0 to ED BF), U+FFFE and U+FFFF (EF BF BE and EF BF BF). */
static bool has_dropped(const uint8_t *at, const uint8_t *end, uint8_t lead) {
    while ((at = memchr(at, lead, (size_t)(end - at))) != NULL && end - at > 1) {
        if (lead == 0xC2 && at[1] < 0xA0) return true;
        if (lead == 0xED && at[1] >= 0xA0) return true;
        if (lead == 0xEF && at[1] == 0xBF && end - at > 2 && at[2] >= 0xBE) return true;
        at++;
    }
    return false;
}

/* is_clean(bytes) -> whether UTF-8 has none of the characters that _clean() drops */
PyObject *is_clean(PyObject *module, PyObject *bytes) {
    (void)module;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return NULL;
    const uint8_t *at = (const uint8_t *)data, *end = at + size;
    bool is_dirty = false;
    /* Without a branch, so that compilers use vector instructions. */
    for (const uint8_t *byte = at; byte < end; byte++)
        is_dirty |= (uint8_t)(*byte - 0x0E) < 0x20 - 0x0E || *byte < 9 || *byte == 0x0B ||
                    *byte == 0x7F;
    is_dirty = is_dirty || has_dropped(at, end, 0xC2) || has_dropped(at, end, 0xED) ||
               has_dropped(at, end, 0xEF);
    return PyBool_FromLong(!is_dirty);
}
