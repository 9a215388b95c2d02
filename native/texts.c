/* The votes of plain texts, whose lines are blocks of weight 1: words_by_line() of
 * pgsimhash/html/page_words.py; and of short texts.
 */
#include <stdlib.h>

#include "page.h"

/* A text, and what is read of it. UNSUPPORTED: only Python reads it. */
typedef struct {
    PyObject *utf8;
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
    /* A bytes object of this call: reading its data needs no GIL. */
    size_t size = (size_t)PyBytes_Size(text->utf8);
    bool fits = buffer_add(&page->text, PyBytes_AsString(text->utf8), size);
    Status status = fits ? read_words(page, tables, factors == NULL) : NO_MEMORY;
    if (status == DONE) status = vote(page, tables, factors, &text->vote);
    free_page(page);
    return status;
}

/* The UTF-8 of strings; one with a lone surrogate has none. */
static bool encode_texts(PyObject *strings, Text *texts, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        texts[i].utf8 = PyUnicode_AsUTF8String(PyList_GetItem(strings, i));
        if (texts[i].utf8 != NULL) continue;
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return false;
        PyErr_Clear();
    }
    return true;
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

static PyObject *vote_list(PyObject *capsule, PyObject *strings, const Factors *factors) {
    const Tables *tables = tables_of(capsule);
    Py_ssize_t count = PyList_Size(strings);
    Text *texts = tables == NULL ? NULL : calloc((size_t)count + 1, sizeof *texts);
    if (texts == NULL) return tables == NULL ? NULL : PyErr_NoMemory();
    PyObject *votes = NULL;
    Status status = RAISED;
    if (encode_texts(strings, texts, count)) status = vote_of_all(texts, count, tables, factors);
    if (status == NO_MEMORY) PyErr_NoMemory();
    else if (status == DONE) votes = PyList_New(count);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_XDECREF(texts[i].utf8);
        if (votes == NULL) continue;
        PyObject *vote = texts[i].status == DONE ? vote_tuple(&texts[i].vote)
                                                 : Py_NewRef(Py_None);
        if (vote == NULL || PyList_SetItem(votes, i, vote) != 0) Py_CLEAR(votes);
    }
    free(texts);
    return votes;
}

/* vote_texts(tables, texts, factors) -> a list with a vote, or None, for each text. Each line begins
 * with a sign. If the factors are None, letters vote, there is no NUL, and a vote has no digest. */
PyObject *vote_texts(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *capsule, *strings, *tuple;
    Factors factors;
    if (!PyArg_ParseTuple(arguments, "OO!O", &capsule, &PyList_Type, &strings, &tuple) ||
        (tuple != Py_None && !read_factors(tuple, &factors)))
        return NULL;
    return vote_list(capsule, strings, tuple == Py_None ? NULL : &factors);
}
