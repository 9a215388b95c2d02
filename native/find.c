/* The elements that matter before a page is read: pgsimhash/html/native.py, find(). */
#include "page.h"

#define TAGS_KEPT 64
#define INSIDE_MAX 200

/* What is wanted of a tag, a borrowed reference, found by the address of its name as in outline.c. */
typedef struct {
    const unsigned char *name;
    PyObject *wanted;
} Tag;

/* Whether a value has a word of lower-case letters, in any case. */
static bool has_part(const char *value, const char *word) {
    for (size_t i; *value; value++) {
        for (i = 0; word[i] && (value[i] | 32) == word[i];) i++;
        if (!word[i]) return true;
    }
    return false;
}

/* Whether an element has the first of some strings as an attribute with one of the others. */
static bool has_attribute(const Node *node, PyObject *strings) {
    const Node *attribute = node->properties;
    const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(strings, 0), NULL), *part;
    while (attribute != NULL && name != NULL && strcmp((const char *)attribute->name, name) != 0)
        attribute = attribute->next;
    const char *value = attribute == NULL ? NULL : (const char *)attribute_value(attribute);
    for (Py_ssize_t i = 1; value != NULL && i < PyTuple_Size(strings); i++) {
        part = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(strings, i), NULL);
        if (part != NULL && has_part(value, part)) return true;
    }
    return attribute != NULL && value == NULL;
}

/* The next node in document order. */
static const Node *node_behind(const Node *node, const Node *root) {
    if (node->type == NODE_ELEMENT && node->children != NULL) return node->children;
    while (node != root && node->next == NULL) node = node->parent;
    return node == root ? NULL : node->next;
}

/* Whether an element contains another element than those with such tags, or too many to see. */
static bool has_other(const Node *node, PyObject *tags) {
    const Node *inside = node_behind(node, node);
    int is_listed = 1;
    for (int i = 0; inside != NULL && is_listed == 1; inside = node_behind(inside, node), i++) {
        if (inside->type != NODE_ELEMENT) continue;
        PyObject *tag = PyUnicode_FromString((const char *)inside->name);
        is_listed = i < INSIDE_MAX && tag != NULL && PySet_Contains(tags, tag);
        Py_XDECREF(tag);
    }
    return is_listed != 1;
}

/* find(root, wanted) -> a list of elements */
PyObject *find(PyObject *module, PyObject *arguments) {
    PyObject *root, *dictionary;
    if (!PyArg_ParseTuple(arguments, "OO!", &root, &PyDict_Type, &dictionary)) return NULL;
    const Node *first = node_of(module, root);
    PyObject *found = first == NULL ? NULL : PyList_New(0);
    PyObject *of_any = PyDict_GetItemString(dictionary, "*");
    Tag tags[TAGS_KEPT] = {{0}};
    for (const Node *node = first; node != NULL && found != NULL; node = node_behind(node, first)) {
        if (node->type != NODE_ELEMENT) continue;
        Tag *tag = tags + ((uintptr_t)node->name >> 3) % TAGS_KEPT;
        if (tag->name != node->name)
            *tag = (Tag){node->name, PyDict_GetItemString(dictionary, (const char *)node->name)};
        PyObject *wanted = tag->wanted;
        if (wanted == NULL ? of_any == NULL || !has_attribute(node, of_any)
            : PyTuple_Check(wanted) ? !has_attribute(node, wanted)
            : wanted != Py_None && !has_other(node, wanted))
            continue;
        PyObject *element = PyErr_Occurred() ? NULL : element_of(module, root, node);
        if (element == NULL || PyList_Append(found, element) < 0) Py_CLEAR(found);
        Py_XDECREF(element);
    }
    return found;
}
