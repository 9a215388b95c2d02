/* Before the page is parsed: pgsimhash/html/parse.py and repair.py. */
#include "page.h"

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

/* is_clean(bytes) -> whether they are UTF-8 without the characters that clean_text() drops */
PyObject *is_clean(PyObject *module, PyObject *bytes) {
    (void)module;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return NULL;
    const uint8_t *at = (const uint8_t *)data, *end = at + size;
    uint8_t is_dirty = 0, all = 0;
    /* Without a branch, so that compilers use vector instructions. */
    for (const uint8_t *byte = at; byte < end; byte++) {
        uint8_t is_space = (*byte == '\t' ? 1 : 0) + (*byte == '\n' ? 1 : 0) +
                           (*byte == '\f' ? 1 : 0) + (*byte == '\r' ? 1 : 0);
        is_dirty |= (*byte < 0x20 ? 1 : 0) - is_space;
        is_dirty |= *byte == 0x7F ? 1 : 0;
        all |= *byte;
    }
    if (is_dirty || all < 0x80) return PyBool_FromLong(!is_dirty);
    if (has_dropped(at, end, 0xC2) || has_dropped(at, end, 0xED) || has_dropped(at, end, 0xEF))
        Py_RETURN_FALSE;
    PyObject *text = PyUnicode_DecodeUTF8(data, size, NULL);
    Py_XDECREF(text);
    if (text != NULL) Py_RETURN_TRUE;
    PyErr_Clear();
    Py_RETURN_FALSE;
}

static bool begins(const uint8_t *at, const uint8_t *end, const char *letters) {
    for (; *letters; letters++, at++)
        if (at >= end || (*at | 32) != (uint8_t)*letters) return false;
    return true;
}

/* The first letters of the elements of _SELF_CLOSED. */
static const char to_end[] = "scr sty tit tex ifr nos tem vid aud can noe nof div spa";

/* odd_tags(bytes) -> where the first </body> or </html> may be, or the end; whether a start tag of
 * to_end may end with a slash; whether there may be CDATA where it is text. Patterns of Python
 * decide. */
PyObject *odd_tags(PyObject *module, PyObject *bytes) {
    (void)module;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return NULL;
    const uint8_t *start = (const uint8_t *)data, *end = start + size, *page_end = NULL;
    bool has_slash = false, has_cdata = false, is_text = false;
    const uint8_t *at = memchr(start, '<', (size_t)size), *next;
    for (; at != NULL; at = next) {
        next = memchr(at + 1, '<', (size_t)(end - at - 1));
        const uint8_t *stop = next == NULL ? end : next, *name = at + 1;
        is_text = is_text || begins(name, stop, "svg") || begins(name, stop, "math") ||
                  begins(name, stop, "?xml");
        has_cdata = has_cdata || (is_text && stop - name > 1 && name[0] == '!' && name[1] == '[');
        if (page_end == NULL && (begins(name, stop, "/body") || begins(name, stop, "/html")))
            page_end = at;
        if (has_slash || stop - name < 3) continue;
        bool is_read = false;
        for (const char *letters = to_end; letters < to_end + sizeof to_end; letters += 4)
            is_read |= (name[0] | 32) == letters[0] && (name[1] | 32) == letters[1] &&
                       (name[2] | 32) == letters[2];
        while (is_read && !has_slash && (at = memchr(at + 1, '>', (size_t)(stop - at - 1))) != NULL)
            has_slash = at[-1] == '/';
    }
    return Py_BuildValue("nNN", (page_end == NULL ? end : page_end) - start,
                         PyBool_FromLong(has_slash), PyBool_FromLong(has_cdata));
}
