/* Before the page is parsed: pgsimhash/html/parse.py, _clean(). */
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
