/* The kinds of numbers: pgsimhash/html/page_words.py, kinds_of(). */
#include "page.h"

#define NOTE_WORDS 12
#define CONTACT_WORDS 30
#define COUNTER_WORDS 30
#define CONTACT_DIGITS 5

/* The tokens of a block, and whether their numbers may be those of a telephone. */
typedef struct {
    int32_t start, end;
    bool has_contact;
} Range;

static const Word *word_of(const Page *page, int32_t token) {
    int32_t word = ((const Token *)page->tokens.data)[token].word;
    return word < 0 ? NULL : (const Word *)page->words.data + word;
}

/* The flags of a token in a range, else 0; signs are like words before a date. */
static int32_t flags_at(const Page *page, const Range *range, int32_t token) {
    if (token < range->start || token >= range->end) return 0;
    const Word *word = word_of(page, token);
    return word == NULL ? WORD_BEFORE : word->flags;
}

/* The number of characters of a word. */
static int32_t length_of(const Page *page, const Word *word) {
    const uint8_t *letters = key_at(&page->vocabulary, word->offset);
    int32_t length = 0;
    for (uint32_t i = 0; i < word->length; i++) length += (letters[i] & 0xC0) != 0x80;
    return length;
}

/* Give a run of numbers, which begins at a token, its kind; return the token behind it. */
static int32_t read_run(Page *page, const Range *range, int32_t start) {
    Token *tokens = page->tokens.data;
    int32_t end = start, years = 0, digits = 0;
    for (int32_t flags; (flags = flags_at(page, range, end)) & WORD_NUMBER; end++) {
        years += (flags & WORD_YEAR) != 0;
        if (range->has_contact) digits += length_of(page, word_of(page, end));
    }
    int32_t before = flags_at(page, range, start - 1), behind = flags_at(page, range, end);
    bool ago = flags_at(page, range, end + 1) & WORD_AGO;
    Kind kind = NUMBER;
    if (behind & WORD_PASSING || ago)
        kind = range->end - range->start > COUNTER_WORDS ? VOLATILE : PASSING;
    else if (before & WORD_BEFORE || behind & WORD_BEHIND || digits >= CONTACT_DIGITS ||
             (years > 0 && end - start > 1 && end - start < 4))
        kind = VOLATILE;
    /* With "days ago". */
    int32_t last = ago ? end + 2 : end;
    for (int32_t i = start; i < last; i++) tokens[i].kind = (uint8_t)kind;
    return end;
}

/* In a short block with a word such as "updated", it and dates are PASSING. */
static void read_note(Page *page, const Range *range, bool is_dated) {
    Token *tokens = page->tokens.data;
    for (int32_t i = range->start; i < range->end; i++)
        is_dated = is_dated || tokens[i].kind >= VOLATILE;
    for (int32_t i = range->start; i < range->end; i++) {
        int32_t flags = flags_at(page, range, i);
        if (tokens[i].kind == VOLATILE || flags & WORD_MONTH || (is_dated && flags & WORD_NOTE))
            tokens[i].kind = PASSING;
    }
}

void find_kinds(Page *page) {
    const Token *tokens = page->tokens.data;
    const Word *words = page->words.data;
    int32_t count = token_count(page);
    bool has_numbers = false;
    for (uint32_t i = 0; i < page->vocabulary.count; i++)
        has_numbers = has_numbers || words[i].flags & WORD_NUMBER;
    for (int32_t start = 0, end = 0; has_numbers && start < count; start = end) {
        int32_t some = 0;
        for (; end < count && tokens[end].block == tokens[start].block; end++)
            some |= tokens[end].word < 0 ? 0 : words[tokens[end].word].flags;
        Range range = {start, end, some & WORD_CONTACT && end - start <= CONTACT_WORDS};
        for (int32_t i = start; some & WORD_NUMBER && i < end; i++)
            if (flags_at(page, &range, i) & WORD_NUMBER) i = read_run(page, &range, i);
        if (some & WORD_NOTE && end - start <= NOTE_WORDS)
            read_note(page, &range, some & WORD_MONTH);
    }
}
