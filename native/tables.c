/* The tables of Python's modules: pgsimhash/html/native.py collects them once. */
#include "page.h"

#include <stdlib.h>

static const char *const CAPSULE = "pgsimhash._native.Tables";

static void free_tables(Tables *tables) {
    table_free(&tables->tags);
    table_free(&tables->block_tags);
    table_free(&tables->names);
    table_free(&tables->hiding);
    table_free(&tables->words);
    Py_XDECREF(tables->split_complex);
    Py_XDECREF(tables->split_of_title);
    free(tables);
}

static void free_capsule(PyObject *capsule) { free_tables(tables_of(capsule)); }

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

static bool copy(void *into, size_t size, PyObject *bytes) {
    if (PyBytes_Size(bytes) != (Py_ssize_t)size) {
        PyErr_SetString(PyExc_ValueError, "a table has another size");
        return false;
    }
    memcpy(into, PyBytes_AsString(bytes), size);
    return true;
}

/* make_tables(tags, block_tags, names, hiding, words, coefficients, fold, sources, split_complex,
 * split_of_title): five dictionaries of flags or numbers; a dictionary of floats; uint32 and int64
 * arrays; two functions. */
PyObject *make_tables(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *tags, *block_tags, *names, *hiding, *words, *coefficients, *fold, *sources;
    PyObject *split_complex, *split_of_title;
    if (!PyArg_ParseTuple(arguments, "OOOOOOOOOO", &tags, &block_tags, &names, &hiding, &words,
                          &coefficients, &fold, &sources, &split_complex, &split_of_title))
        return NULL;
    Tables *tables = calloc(1, sizeof *tables);
    if (tables == NULL) return PyErr_NoMemory();
    tables->split_complex = Py_NewRef(split_complex);
    tables->split_of_title = Py_NewRef(split_of_title);
    bool filled = fill(&tables->tags, tags) && fill(&tables->block_tags, block_tags) &&
                  fill(&tables->names, names) && fill(&tables->hiding, hiding) &&
                  fill(&tables->words, words) && fill_coefficients(tables, coefficients) &&
                  copy(tables->fold, sizeof tables->fold, fold) &&
                  copy(tables->sources, sizeof tables->sources, sources);
    PyObject *capsule = filled ? PyCapsule_New(tables, CAPSULE, free_capsule) : NULL;
    if (capsule == NULL) free_tables(tables);
    return capsule;
}
