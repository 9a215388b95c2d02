/* The tables of Python's modules: pgsimhash/html/native.py collects them once. */
#include "page.h"

#include <stdlib.h>

static const char *const CAPSULE = "pgsimhash._native.Tables";

static void free_tables(PyObject *capsule) {
    Tables *tables = PyCapsule_GetPointer(capsule, CAPSULE);
    if (tables == NULL) return;
    table_free(&tables->tags);
    table_free(&tables->block_tags);
    table_free(&tables->names);
    table_free(&tables->hiding);
    table_free(&tables->words);
    Py_XDECREF(tables->split_complex);
    Py_XDECREF(tables->split_of_title);
    free(tables);
}

Tables *tables_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, CAPSULE); }

/* Fill a table from a dictionary of strings and numbers from 0 on. */
static bool fill(Table *table, PyObject *dictionary) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!table_start(table, 2048)) {
        PyErr_NoMemory();
        return false;
    }
    while (PyDict_Next(dictionary, &at, &key, &value)) {
        Py_ssize_t length;
        const uint8_t *string = (const uint8_t *)PyUnicode_AsUTF8AndSize(key, &length);
        long number = PyLong_AsLong(value);
        if (string == NULL || PyErr_Occurred()) return false;
        if (!table_set(table, string, (size_t)length, (int32_t)number)) {
            PyErr_NoMemory();
            return false;
        }
    }
    return true;
}

#define FEATURE(name, value) #name,
static bool fill_coefficients(Tables *tables, PyObject *coefficients) {
    static const char *const names[] = {
#include "feature_list.h"
    };
    for (Py_ssize_t i = 0; i < FEATURE_COUNT; i++) {
        PyObject *value = PyDict_GetItemString(coefficients, names[i]);
        if (value == NULL || PyDict_Size(coefficients) != FEATURE_COUNT) {
            PyErr_Format(PyExc_ValueError, "feature_list.h and COEFFICIENTS differ: %s", names[i]);
            return false;
        }
        tables->coefficients[i] = PyFloat_AsDouble(value);
    }
    return PyErr_Occurred() == NULL;
}

static bool copy(void *into, size_t size, const Py_buffer *from) {
    if ((size_t)from->len == size) {
        memcpy(into, from->buf, size);
        return true;
    }
    PyErr_SetString(PyExc_ValueError, "a table has another size");
    return false;
}

/* make_tables(tags, block_tags, names, hiding, words, coefficients, fold, sources, split_complex,
 * split_of_title): five dictionaries of flags or numbers; a dictionary of floats; uint32 and int64
 * arrays; two functions. */
PyObject *make_tables(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *tags, *block_tags, *names, *hiding, *words, *coefficients, *split, *split_of_title;
    Py_buffer fold, sources;
    if (!PyArg_ParseTuple(arguments, "OOOOOOy*y*OO", &tags, &block_tags, &names, &hiding, &words,
                          &coefficients, &fold, &sources, &split, &split_of_title))
        return NULL;
    Tables *tables = calloc(1, sizeof *tables);
    PyObject *capsule = NULL;
    if (tables == NULL) PyErr_NoMemory();
    else if ((capsule = PyCapsule_New(tables, CAPSULE, free_tables)) == NULL) free(tables);
    bool filled = false;
    if (capsule != NULL) {
        tables->split_complex = Py_NewRef(split);
        tables->split_of_title = Py_NewRef(split_of_title);
        filled = fill(&tables->tags, tags) && fill(&tables->block_tags, block_tags) &&
                 fill(&tables->names, names) && fill(&tables->hiding, hiding) &&
                 fill(&tables->words, words) && fill_coefficients(tables, coefficients) &&
                 copy(tables->fold, sizeof tables->fold, &fold) &&
                 copy(tables->sources, sizeof tables->sources, &sources);
    }
    PyBuffer_Release(&fold);
    PyBuffer_Release(&sources);
    if (filled) return capsule;
    Py_XDECREF(capsule);
    return NULL;
}
