/* Before the page is parsed: pgsimhash/html/parse.py and markup.py. */
#include "page.h"

static bool goes_on(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* The size of the character at `at`, before a NUL, that is not ASCII: 0 if it is no UTF-8, or of
 * _DROPPED: U+0080 to U+009F, surrogates, U+FFFE and U+FFFF. */
static int size_at(const uint8_t *at) {
    uint8_t lead = at[0], second = at[1];
    if (lead < 0xC2 || lead > 0xF4 || !goes_on(second)) return 0;
    if (lead < 0xE0) return lead == 0xC2 && second < 0xA0 ? 0 : 2;
    if (!goes_on(at[2]) || (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
        (lead == 0xEF && second == 0xBF && at[2] >= 0xBE))
        return 0;
    if (lead < 0xF0) return 3;
    bool is_beyond = (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90);
    return is_beyond || !goes_on(at[3]) ? 0 : 4;
}

/* is_clean(bytes) -> whether they are UTF-8 without the characters that clean_text() drops */
PyObject *is_clean(PyObject *module, PyObject *bytes) {
    (void)module;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return NULL;
    const uint8_t *at = (const uint8_t *)data, *end = at + size;
    uint8_t is_dirty = 0;
    /* Without a branch, so that compilers use vector instructions. */
    for (const uint8_t *byte = at; byte < end; byte++) {
        is_dirty |= (*byte < 0x20) & (*byte != '\t') & (*byte != '\n') & (*byte != '\f') &
                    (*byte != '\r');
        is_dirty |= *byte == 0x7F;
    }
    while (at < end && !is_dirty) {
        uint64_t eight;
        while (end - at >= 8 && (memcpy(&eight, at, 8), !(eight & 0x8080808080808080u))) at += 8;
        while (at < end && *at < 0x80) at++;
        for (int width; *at >= 0x80 && !is_dirty; at += width) {
            width = size_at(at);
            is_dirty = width == 0;
        }
    }
    return PyBool_FromLong(!is_dirty);
}

static bool begins(const uint8_t *at, const uint8_t *end, const char *letters) {
    for (; *letters; letters++, at++)
        if (at >= end || (*at | 32) != (uint8_t)*letters) return false;
    return true;
}

/* The first letters of the elements of _SELF_CLOSED. */
static const char to_end[] =
    "htm bod scr sty tit tex ifr nos tem vid aud can noe nof div spa asi sec";

/* odd_tags(bytes) -> where the first </body> or </html> may be, or the end; whether a start tag of
 * to_end may end with a slash; whether there may be CDATA where it is text, a noscript, and a title
 * that a drawing ends. Patterns of Python decide. */
PyObject *odd_tags(PyObject *module, PyObject *bytes) {
    (void)module;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return NULL;
    const uint8_t *start = (const uint8_t *)data, *end = start + size, *page_end = NULL;
    bool has_slash = false, has_cdata = false, is_xhtml = false, is_text = false;
    bool has_noscript = false, has_title = false, in_title = false;
    uint32_t seconds[32] = {0}; /* by the first letter, in any case */
    for (const char *letters = to_end; letters < to_end + sizeof to_end; letters += 4)
        seconds[letters[0] & 31] |= 1u << (letters[1] & 31);
    const uint8_t *at = memchr(start, '<', (size_t)size), *next;
    for (; at != NULL; at = next) {
        next = memchr(at + 1, '<', (size_t)(end - at - 1));
        const uint8_t *stop = next == NULL ? end : next, *name = at + 1;
        is_xhtml = is_xhtml || begins(name, stop, "?xml");
        is_text = is_text || is_xhtml || begins(name, stop, "svg") || begins(name, stop, "math") ||
                  begins(name, stop, "/foreignobject");
        if (begins(name, stop, "/svg>") || begins(name, stop, "/math>")) is_text = is_xhtml;
        has_cdata = has_cdata || (is_text && stop - name > 1 && name[0] == '!' && name[1] == '[');
        if (page_end == NULL && (begins(name, stop, "/body") || begins(name, stop, "/html")))
            page_end = at;
        has_noscript = has_noscript || begins(name, stop, "noscript");
        in_title = begins(name, stop, "title") || (in_title && !begins(name, stop, "/title>"));
        has_title = has_title || (in_title && begins(name, stop, "/svg"));
        if (has_slash || stop - name < 3) continue;
        if (!(seconds[name[0] & 31] >> (name[1] & 31) & 1)) continue;
        bool is_read = false;
        for (const char *letters = to_end; letters < to_end + sizeof to_end; letters += 4)
            is_read |= (name[0] | 32) == letters[0] && (name[1] | 32) == letters[1] &&
                       (name[2] | 32) == letters[2];
        while (is_read && !has_slash && (at = memchr(at + 1, '>', (size_t)(stop - at - 1))) != NULL)
            has_slash = at[-1] == '/';
    }
    return Py_BuildValue("nNNNN", (page_end == NULL ? end : page_end) - start,
                         PyBool_FromLong(has_slash), PyBool_FromLong(has_cdata),
                         PyBool_FromLong(has_noscript), PyBool_FromLong(has_title));
}
