/* The elements that matter before a page is read: pgsimhash/html/native.py, find(). */
#include "page.h"

#define TAGS_KEPT 64
#define INSIDE_MAX 200

/* What is wanted of a tag, found by the address of its name as in outline.c; a borrowed reference,
 * NULL for nothing. */
typedef struct {
    const unsigned char *name;
    PyObject *wanted;
} Tag;

/* Whether a value has a word of lower-case letters, in any case. */
static bool has_part(const char *value, const char *word) {
    for (; *value; value++) {
        size_t i = 0;
        while (word[i] && (value[i] | 32) == word[i]) i++;
        if (!word[i]) return true;
    }
    return false;
}

/* Whether an element has the first of some strings as an attribute with one of the others. */
static int has_attribute(const Node *node, PyObject *strings) {
    const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(strings, 0), NULL);
    if (name == NULL) return -1;
    for (const Node *attribute = node->properties; attribute; attribute = attribute->next) {
        if (strcmp((const char *)attribute->name, name) != 0) continue;
        const char *value = (const char *)attribute_value(attribute);
        for (Py_ssize_t i = 1; i < PyTuple_Size(strings) && value != NULL; i++) {
            const char *part = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(strings, i), NULL);
            if (part == NULL) return -1;
            if (has_part(value, part)) return 1;
        }
        return value == NULL;
    }
    return 0;
}

/* The next node in document order. */
static const Node *node_behind(const Node *node, const Node *root) {
    if (node->type == NODE_ELEMENT && node->children != NULL) return node->children;
    while (node != root && node->next == NULL) node = node->parent;
    return node == root ? NULL : node->next;
}

/* Whether an element may contain one of another tag than these. */
static int has_other(const Node *node, PyObject *tags) {
    const Node *inside = node_behind(node, node);
    int is_listed = 1;
    for (int i = 0; inside != NULL && is_listed == 1; inside = node_behind(inside, node), i++) {
        if (i == INSIDE_MAX) return 1;
        if (inside->type != NODE_ELEMENT) continue;
        PyObject *tag = PyUnicode_FromString((const char *)inside->name);
        is_listed = tag == NULL ? -1 : PySet_Contains(tags, tag);
        Py_XDECREF(tag);
    }
    return is_listed < 0 ? -1 : !is_listed;
}

static int is_wanted(const Node *node, PyObject *wanted) {
    if (wanted == NULL || wanted == Py_None) return wanted != NULL;
    return PyTuple_Check(wanted) ? has_attribute(node, wanted) : has_other(node, wanted);
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
        int is_found = is_wanted(node, tag->wanted);
        if (is_found == 0 && of_any != NULL) is_found = has_attribute(node, of_any);
        if (is_found == 0) continue;
        PyObject *element = is_found < 0 ? NULL : element_of(module, root, node);
        if (element == NULL || PyList_Append(found, element) < 0) Py_CLEAR(found);
        Py_XDECREF(element);
    }
    return found;
}
