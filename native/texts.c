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

/* Without the GIL, but for the words that Python splits. */
static Status read_text(Page *page, const Tables *tables, bool is_title,
                        PyThreadState **released) {
    Status status = read_words(page, tables, is_title);
    if (status == DONE && page->complex_runs.count > 0) {
        PyEval_RestoreThread(*released);
        status = split_complex_runs(page, tables, is_title ? tables->split_of_title
                                                           : tables->split_complex);
        *released = PyEval_SaveThread();
    }
    if (status != DONE || is_title) return status;
    find_kinds(page);
    return count_words(page);
}

static Status vote_of_text(Text *text, const char *bytes, size_t size, const Tables *tables,
                           const Factors *factors, PyThreadState **released) {
    Page *page = calloc(1, sizeof *page);
    if (page == NULL) return NO_MEMORY;
    Status status = buffer_add(&page->text, bytes, size) ? DONE : NO_MEMORY;
    if (status == DONE) status = read_text(page, tables, factors == NULL, released);
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
    PyThreadState *released = PyEval_SaveThread();
    for (Py_ssize_t i = 0; i < count && status != NO_MEMORY && status != RAISED; i++) {
        texts[i].status = UNSUPPORTED;
        if (texts[i].utf8 == NULL) continue;
        /* A bytes object of this call: reading its data needs no GIL. */
        const char *bytes = PyBytes_AsString(texts[i].utf8);
        size_t size = (size_t)PyBytes_Size(texts[i].utf8);
        status = vote_of_text(texts + i, bytes, size, tables, factors, &released);
        texts[i].status = status;
    }
    PyEval_RestoreThread(released);
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
