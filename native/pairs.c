/* Group simhashes by a prefix, and compare those of a group: pgsimhash/search/pairs.py. */
#include <stdlib.h>

#include "page.h"

#define DIGIT_BITS 12
#define COMPARED_AT_ONCE 32
#define ROWS_AT_ONCE 16384  // then Python can report progress, and be interrupted

/* A run of bits, of which `shift` is the lowest. */
typedef struct {
    int shift, width;
} Bits;

/* Where the next simhash within the distance is, or the end. */
typedef size_t NextNear(uint64_t simhash, const uint64_t *others, size_t at, size_t end,
                        int distance);

#define NEXT_NEAR(name)                                                                            \
    static size_t name(uint64_t simhash, const uint64_t *others, size_t at, size_t end,           \
                       int distance) {                                                             \
        for (; at + COMPARED_AT_ONCE <= end; at += COMPARED_AT_ONCE) {                             \
            uint64_t is_near = 0;                                                                  \
            for (size_t i = 0; i < COMPARED_AT_ONCE; i++)                                          \
                is_near |= __builtin_popcountll(simhash ^ others[at + i]) <= distance;             \
            if (is_near) break;                                                                    \
        }                                                                                          \
        while (at < end && __builtin_popcountll(simhash ^ others[at]) > distance) at++;            \
        return at;                                                                                 \
    }

NEXT_NEAR(next_near)
#ifdef __x86_64__
__attribute__((target("popcnt"))) NEXT_NEAR(next_near_popcnt)
__attribute__((target("avx512vpopcntdq,avx512vl"))) NEXT_NEAR(next_near_avx512)
#endif

/* The function for this processor: only newer ones count the bits of one or several numbers. */
static NextNear *fastest(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512vl"))
        return next_near_avx512;
    if (__builtin_cpu_supports("popcnt")) return next_near_popcnt;
#endif
    return next_near;
}

/* Whether two simhashes differ in each block that an earlier permutation compared. */
static bool is_new(uint64_t differing, const uint64_t *skipped, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((differing & skipped[i]) == 0) return false;
    return true;
}

/* Compare some rows from *row on, until there are this many pairs. */
static bool compare(const uint64_t *ordered, size_t count, uint64_t mask, const uint64_t *skipped,
                    size_t skipped_count, int distance, size_t *row, size_t most, Buffer *pairs) {
    NextNear *find_next = fastest();
    size_t end = *row, stop = count - *row > ROWS_AT_ONCE ? *row + ROWS_AT_ONCE : count;
    for (; *row < stop && pairs->size < most * 2 * sizeof *ordered; (*row)++) {
        uint64_t simhash = ordered[*row];
        while (end < count && ((simhash ^ ordered[end]) & mask) == 0) end++;
        size_t at = find_next(simhash, ordered, *row + 1, end, distance);
        for (; at < end; at = find_next(simhash, ordered, at + 1, end, distance)) {
            uint64_t pair[] = {simhash, ordered[at]};
            if (is_new(simhash ^ ordered[at], skipped, skipped_count) &&
                !buffer_add(pairs, pair, sizeof pair))
                return false;
        }
    }
    return true;
}

/* near_pairs(ordered, mask, skipped, distance, row, most)
 * -> (pairs of simhashes that agree in the bits of the mask, the row to go on with) */
PyObject *near_pairs(PyObject *module, PyObject *arguments) {
    (void)module;
    Py_buffer ordered, skipped;
    unsigned long long mask;
    int distance;
    Py_ssize_t first, most;
    if (!PyArg_ParseTuple(arguments, "y*Ky*inn", &ordered, &mask, &skipped, &distance, &first,
                          &most))
        return NULL;
    Buffer pairs = {0};
    size_t row = (size_t)first;
    bool fits;
    Py_BEGIN_ALLOW_THREADS
    fits = compare(ordered.buf, (size_t)ordered.len / sizeof(uint64_t), mask, skipped.buf,
                   (size_t)skipped.len / sizeof(uint64_t), distance, &row, (size_t)most, &pairs);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&ordered);
    PyBuffer_Release(&skipped);
    PyObject *bytes = NULL;
    if (fits)
        bytes = PyByteArray_FromStringAndSize((const char *)pairs.data, (Py_ssize_t)pairs.size);
    buffer_free(&pairs);
    return fits ? Py_BuildValue("Nn", bytes, (Py_ssize_t)row) : PyErr_NoMemory();
}

/* The prefix without its last bits. */
static uint64_t prefix_of(uint64_t simhash, const Bits *leading, size_t count, int last) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < count; i++)
        prefix = prefix << leading[i].width |
                 (simhash >> leading[i].shift & ((1ULL << leading[i].width) - 1));
    return prefix >> last;
}

/* Sort by the digits of the prefix, from the lowest. The result is in `into`. */
static void sort_by_prefix(const uint64_t *values, size_t count, const Bits *leading,
                           size_t leading_count, uint64_t *into, uint64_t *spare) {
    int width = 0;
    for (size_t i = 0; i < leading_count; i++) width += leading[i].width;
    int passes = (width + DIGIT_BITS - 1) / DIGIT_BITS, bits = (width + passes - 1) / passes;
    size_t digits = (size_t)1 << bits;
    const uint64_t *from = values;
    for (int pass = 0; pass < passes; pass++) {
        size_t starts[(1 << DIGIT_BITS) + 1] = {0};
        uint64_t *to = (passes - pass) % 2 == 1 ? into : spare;
        for (size_t i = 0; i < count; i++)
            starts[(prefix_of(from[i], leading, leading_count, pass * bits) & (digits - 1)) + 1]++;
        for (size_t digit = 1; digit < digits; digit++) starts[digit] += starts[digit - 1];
        for (size_t i = 0; i < count; i++)
            to[starts[prefix_of(from[i], leading, leading_count, pass * bits) & (digits - 1)]++] =
                from[i];
        from = to;
    }
}

/* group(values, blocks as (shift, width, shift, width, ...)) -> the simhashes by their prefixes */
PyObject *group(PyObject *module, PyObject *arguments) {
    (void)module;
    Py_buffer values, blocks;
    if (!PyArg_ParseTuple(arguments, "y*y*", &values, &blocks)) return NULL;
    size_t count = (size_t)values.len / sizeof(uint64_t);
    PyObject *grouped = PyByteArray_FromStringAndSize(NULL, values.len);
    uint64_t *spare = malloc((size_t)values.len + 1);
    if (grouped != NULL && spare != NULL) {
        uint64_t *into = (uint64_t *)PyByteArray_AsString(grouped);
        Py_BEGIN_ALLOW_THREADS
        sort_by_prefix(values.buf, count, blocks.buf, (size_t)blocks.len / sizeof(Bits), into,
                       spare);
        Py_END_ALLOW_THREADS
    } else if (grouped != NULL) {
        Py_CLEAR(grouped);
        PyErr_NoMemory();
    }
    free(spare);
    PyBuffer_Release(&values);
    PyBuffer_Release(&blocks);
    return grouped;
}
