/* Characters of UTF-8, which libxml2 guarantees to be valid, and white space as in str.isspace(). */
#ifndef PGSIMHASH_CHARACTERS_H
#define PGSIMHASH_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode the character at `at`, and return its size in bytes. A cut character ends at `end`. */
static inline size_t decode(const uint8_t *at, const uint8_t *end, uint32_t *code) {
    uint32_t lead = at[0];
    size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (size > (size_t)(end - at)) size = 1;
    if (size == 1) *code = lead;
    else if (size == 2) *code = (lead & 31) << 6 | (at[1] & 63u);
    else if (size == 3) *code = (lead & 15) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u);
    else *code = (lead & 7) << 18 | (at[1] & 63u) << 12 | (at[2] & 63u) << 6 | (at[3] & 63u);
    return size;
}

/* Return the place behind this many characters, at most `end`. */
static inline const uint8_t *skip_characters(const uint8_t *at, const uint8_t *end, int count) {
    uint32_t code;
    for (; count > 0 && at < end; count--) at += decode(at, end, &code);
    return at;
}

static inline bool is_space(uint32_t code) {
    if (code < 128) return code == ' ' || (code >= 9 && code <= 13) || (code >= 28 && code <= 31);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
           code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

static inline bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }
static inline bool is_lower(uint8_t byte) { return byte >= 'a' && byte <= 'z'; }
static inline bool is_upper(uint8_t byte) { return byte >= 'A' && byte <= 'Z'; }

static inline bool is_ascii(const uint8_t *string) {
    for (; *string; string++)
        if (*string & 0x80) return false;
    return true;
}

/* Return the first character of `string` that is not white space, or `end`. */
static inline const uint8_t *skip_space(const uint8_t *string, const uint8_t *end) {
    while (string < end) {
        uint32_t code;
        size_t size = decode(string, end, &code);
        if (!is_space(code)) break;
        string += size;
    }
    return string;
}

#endif
