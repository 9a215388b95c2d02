/* The module pgsimhash._native: reads a parsed page and votes, see pgsimhash/html/native.py. */
#include "page.h"

#include <stdlib.h>

static const char *const CAPSULE = "pgsimhash._native.Page";
/* A function of lxml's C interface, with its signature. */
static const char *const FACTORY = "struct LxmlElement *(struct LxmlDocument *, xmlNode *)";

/* lxml's element, as its C interface (lxml.etree.h) declares it. */
typedef struct {
    PyObject_HEAD
    PyObject *document;
    const Node *node;
    PyObject *tag;
} LxmlElement;

/* The state of the module: the class of lxml's elements, and what makes one of a node. */
typedef struct {
    PyObject *element_type;
    PyObject *(*make_element)(PyObject *document, const Node *node);
} State;

const Node *node_of(PyObject *module, PyObject *element) {
    const State *state = PyModule_GetState(module);
    int is_element =
        state->element_type == NULL ? 0 : PyObject_IsInstance(element, state->element_type);
    if (is_element == 0) PyErr_SetString(PyExc_TypeError, "an element of lxml is needed");
    const Node *node = is_element == 1 ? ((LxmlElement *)element)->node : NULL;
    if (node == NULL && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no tree");
    return node;
}

PyObject *element_of(PyObject *module, PyObject *of_document, const Node *node) {
    const State *state = PyModule_GetState(module);
    return state->make_element(((LxmlElement *)of_document)->document, node);
}

void free_page(Page *page) {
    Buffer *buffers[] = {&page->elements, &page->owners, &page->text, &page->pieces,
                         &page->entered, &page->hidden, &page->tokens, &page->words};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) buffer_free(buffers[i]);
    table_free(&page->first_names);
    table_free(&page->vocabulary);
    table_free(&page->complex_runs);
    arena_free(&page->arena);
    free(page);
}

static void free_capsule(PyObject *capsule) {
    Page *page = PyCapsule_GetPointer(capsule, CAPSULE);
    if (page != NULL) free_page(page);
}

PyObject *refusal(Status status) {
    if (status == NO_MEMORY) return PyErr_NoMemory();
    if (status == RAISED) return NULL;
    Py_RETURN_NONE;
}

/* The steps in order. The tree belongs to this call, so the GIL is released. */
static Status read_steps(Page *page, const Tables *tables, const Node *body) {
    page->thread = PyEval_SaveThread();
    Status status = read_outline(page, tables, body);
    if (status == DONE) status = read_words(page, tables, false);
    if (status == DONE) status = weigh(page, tables);
    if (status == DONE) status = structure_simhash(page, tables);
    PyEval_RestoreThread(page->thread);
    return status;
}

/* The elements of the hidden nodes of a page that was just read. */
static PyObject *hidden_elements(PyObject *module, const Page *page, PyObject *body) {
    size_t count = page->hidden.size / sizeof(Node *);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *element = element_of(module, body, ((const Node **)page->hidden.data)[i]);
        if (element == NULL || PyList_SetItem(list, (Py_ssize_t)i, element) < 0) Py_CLEAR(list);
    }
    return list;
}

/* read(tables, body) -> (page, structure, number of words, of those outside links that are no
 * numbers, whether each block is shown, hidden elements), or None if only Python reads it */
static PyObject *read_page(PyObject *module, PyObject *arguments) {
    PyObject *capsule, *body;
    if (!PyArg_ParseTuple(arguments, "OO", &capsule, &body)) return NULL;
    const Tables *tables = tables_of(capsule);
    const Node *node = tables == NULL ? NULL : node_of(module, body);
    if (node == NULL) return NULL;
    Page *page = calloc(1, sizeof *page);
    if (page == NULL) return PyErr_NoMemory();
    Status status = read_steps(page, tables, node);
    PyObject *result = NULL;
    if (status == DONE) result = PyCapsule_New(page, CAPSULE, free_capsule);
    if (result == NULL) free_page(page);
    if (status != DONE) return refusal(status);
    if (result == NULL) return NULL;
    return Py_BuildValue("NKiiNNN", result, (unsigned long long)page->structure, token_count(page),
                         page->unlinked_count,
                         PyBytes_FromStringAndSize((char *)page->shown, all_block_count(page)),
                         PyBool_FromLong(page->is_title_apart),
                         hidden_elements(module, page, body));
}

Page *page_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, CAPSULE); }

/* text(page) -> the text of its outline, with signs */
static PyObject *text_of(PyObject *module, PyObject *capsule) {
    (void)module;
    const Page *page = page_of(capsule);
    if (page == NULL) return NULL;
    return PyUnicode_DecodeUTF8(page->text.data, (Py_ssize_t)page->text.size, NULL);
}

bool read_factors(PyObject *tuple, Factors *factors) {
    double *of = factors->occurrences;
    return PyArg_ParseTuple(tuple, "dddddddddd", of, of + 1, of + 2, of + 3, of + 4, of + 5,
                            of + 6, of + 7, &factors->damping, &factors->evened);
}

PyObject *vote_tuple(const Vote *vote) {
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)vote->signature,
                                                sizeof vote->signature);
    PyObject *signature =
        PyObject_CallMethod((PyObject *)&PyLong_Type, "from_bytes", "Ns", bytes, "little");
    if (signature == NULL) return NULL;
    return Py_BuildValue("KNiiKd", (unsigned long long)vote->simhash, signature, vote->features,
                         vote->tokens, (unsigned long long)vote->digest, vote->unseen);
}

/* vote(tables, page, factors)
 * -> (simhash, signature, features, tokens, digest, unseen), or None without a vote */
static PyObject *vote_of(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *table_capsule, *page_capsule, *tuple;
    Factors factors;
    if (!PyArg_ParseTuple(arguments, "OOO", &table_capsule, &page_capsule, &tuple) ||
        !read_factors(tuple, &factors))
        return NULL;
    const Tables *tables = tables_of(table_capsule);
    const Page *page = tables == NULL ? NULL : page_of(page_capsule);
    if (page == NULL) return NULL;
    Vote result;
    Status status;
    Py_BEGIN_ALLOW_THREADS
    status = vote(page, tables, &factors, &result);
    Py_END_ALLOW_THREADS
    return status == DONE ? vote_tuple(&result) : refusal(status);
}

/* describe(element) -> (tag, name and value of its first attribute, text, number of children): for
 * the check at import that libxml2's nodes are as page.h declares them */
static PyObject *describe(PyObject *module, PyObject *element) {
    const Node *node = node_of(module, element);
    if (node == NULL) return NULL;
    int children = 0;
    bool is_unsupported = false;
    for (const Node *child = element_from(node->children, &is_unsupported); child != NULL;
         child = element_from(child->next, &is_unsupported))
        children += child->parent == node;
    const Node *attribute = node->properties, *inside = node->children;
    const uint8_t *value = attribute == NULL ? NULL : attribute_value(attribute);
    const char *name = attribute == NULL ? NULL : (const char *)attribute->name;
    const char *content = inside == NULL || inside->type != NODE_TEXT ? NULL
                                                                      : (const char *)inside->content;
    return Py_BuildValue("szzzi", (const char *)node->name, name, (const char *)value, content,
                         children);
}

/* use_lxml() -> the size of an element: comparing simhashes needs no lxml */
static PyObject *use_lxml(PyObject *module, PyObject *none) {
    (void)none;
    State *state = PyModule_GetState(module);
    PyObject *lxml = PyImport_ImportModule("lxml.etree");
    if (lxml == NULL) return NULL;
    Py_CLEAR(state->element_type);
    state->element_type = PyObject_GetAttrString(lxml, "_Element");
    PyObject *functions = PyObject_GetAttrString(lxml, "__pyx_capi__");
    PyObject *made = functions == NULL ? NULL : PyDict_GetItemString(functions, "elementFactory");
    state->make_element =
        made == NULL ? NULL : (PyObject *(*)(PyObject *, const Node *))PyCapsule_GetPointer(made, FACTORY);
    Py_XDECREF(functions);
    Py_DECREF(lxml);
    if (state->element_type == NULL || state->make_element == NULL) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "lxml has no elementFactory");
        return NULL;
    }
    return PyLong_FromSize_t(sizeof(LxmlElement));
}

static PyMethodDef methods[] = {
    {"make_tables", make_tables, METH_VARARGS, NULL},
    {"read", read_page, METH_VARARGS, NULL},
    {"text", text_of, METH_O, NULL},
    {"vote", vote_of, METH_VARARGS, NULL},
    {"vote_texts", vote_texts, METH_VARARGS, NULL},
    {"events", events, METH_VARARGS, NULL},
    {"describe", describe, METH_O, NULL},
    {"is_clean", is_clean, METH_O, NULL},
    {"odd_tags", odd_tags, METH_O, NULL},
    {"group", group, METH_VARARGS, NULL},
    {"near_pairs", near_pairs, METH_VARARGS, NULL},
    {"use_lxml", use_lxml, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static void free_state(void *module) {
    State *state = PyModule_GetState(module);
    if (state != NULL) Py_CLEAR(state->element_type);
}

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "pgsimhash._native",
    .m_doc = "Read a page in C, bit by bit as the Python code reads it.",
    .m_size = sizeof(State),
    .m_methods = methods,
    .m_slots = slots,
    .m_free = free_state};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
