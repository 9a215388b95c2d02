/* Words with characters that do not fold alone: ideographs, combining marks, ligatures and others.
 *
 * Python splits them, with the GIL, once for each distinct run of characters.
 */

#include "page.h"

/* The words of a run: tokens of `numbers` from `start` on. */
typedef struct {
    int32_t start, count;
} Run;

/* Add a word as Python returned it. */
static Status add_python_word(Page *page, const Tables *tables, PyObject *word, Buffer *numbers) {
    Py_ssize_t length;
    const uint8_t *utf8 = (const uint8_t *)PyUnicode_AsUTF8AndSize(word, &length);
    if (utf8 == NULL) return RAISED;
    PyObject *decimal = PyObject_CallMethod(word, "isdecimal", NULL);
    if (decimal == NULL) return RAISED;
    bool is_number = PyObject_IsTrue(decimal) == 1;
    Py_DECREF(decimal);
    int32_t number;
    Status status = add_word(page, tables, utf8, (size_t)length, hash_of(utf8, (size_t)length),
                             is_number, &number);
    if (status == DONE && !buffer_add(numbers, &number, sizeof number)) status = NO_MEMORY;
    return status;
}

static Status split_run(Page *page, const Tables *tables, PyObject *split, const Slot *slot,
                        Run *runs, Buffer *numbers) {
    const char *text = (const char *)key_at(&page->complex_runs, slot->offset);
    PyObject *words = PyObject_CallFunction(split, "N",
                                            PyUnicode_FromStringAndSize(text, slot->length));
    if (words == NULL) return RAISED;
    Status status = words == Py_None ? UNSUPPORTED : DONE;
    Run *run = runs + slot->value;
    run->start = (int32_t)(numbers->size / sizeof(int32_t));
    Py_ssize_t count = status == DONE ? PyTuple_Size(words) : 0;
    for (Py_ssize_t i = 0; i < count && status == DONE; i++)
        status = add_python_word(page, tables, PyTuple_GetItem(words, i), numbers);
    run->count = (int32_t)(numbers->size / sizeof(int32_t)) - run->start;
    Py_DECREF(words);
    return count < 0 ? RAISED : status;
}

/* Put the words of its run instead of each token of a complex run. */
static Status replace_tokens(Page *page, const Run *runs, const int32_t *numbers) {
    Buffer old = page->tokens;
    page->tokens = (Buffer){0};
    bool fits = true;
    for (Token *token = old.data; token < (Token *)old.data + old.size / sizeof *token; token++) {
        Run run = {0, 1};
        bool is_run = token->word <= FIRST_COMPLEX;
        if (is_run) run = runs[FIRST_COMPLEX - token->word];
        for (int32_t i = 0; i < run.count && fits; i++) {
            if (is_run) token->word = numbers[run.start + i];
            fits = buffer_add(&page->tokens, token, sizeof *token);
        }
    }
    buffer_free(&old);
    return fits ? DONE : NO_MEMORY;
}

Status split_complex_runs(Page *page, const Tables *tables, PyObject *split) {
    const Table *table = &page->complex_runs;
    if (table->count == 0) return DONE;
    Run *runs = arena_zeros(&page->arena, table->count, sizeof *runs);
    if (runs == NULL) return NO_MEMORY;
    Buffer numbers = {0};
    Status status = DONE;
    PyEval_RestoreThread(page->thread);
    for (uint32_t i = 0; i <= table->mask && status == DONE; i++)
        if (table->slots[i].value != -1)
            status = split_run(page, tables, split, table->slots + i, runs, &numbers);
    PyEval_SaveThread();
    if (status == DONE) status = replace_tokens(page, runs, numbers.data);
    buffer_free(&numbers);
    int32_t tokens = token_count(page) + page->sign_count;
    return status == DONE && tokens > TOKENS_MAX ? UNSUPPORTED : status;
}
