/* The kinds of numbers: pgsimhash/html/page_words.py, kinds_of(). */
#include "page.h"

#define NOTE_WORDS 12
#define CONTACT_WORDS 30
#define CONTACT_DIGITS 5

/* The flags of a token; signs are like words before a date. */
static int32_t flags_at(const Page *page, int32_t token) {
    int32_t word = tokens_of(page)[token];
    return word < 0 ? WORD_BEFORE : flags_of(page)[word];
}

/* The flags of a token if it is in this block, else 0. */
static int32_t flags_in(const Page *page, int32_t token, int32_t block) {
    bool is_inside = token >= 0 && token < page->token_count &&
                     token_blocks_of(page)[token] == block;
    return is_inside ? flags_at(page, token) : 0;
}

/* Give a run of numbers, which begins at a token, its kind; return the token behind it. */
static int32_t read_run(Page *page, int32_t start) {
    int32_t block = token_blocks_of(page)[start], end = start, years = 0;
    for (int32_t flags; (flags = flags_in(page, end, block)) & WORD_NUMBER; end++)
        years += (flags & WORD_YEAR) != 0;
    int32_t before = flags_in(page, start - 1, block), behind = flags_in(page, end, block);
    bool ago = flags_in(page, end + 1, block) & WORD_AGO;
    Kind kind = NUMBER;
    if ((behind & WORD_PASSING) || ago) kind = PASSING;
    else if ((before & WORD_BEFORE) || (behind & WORD_BEHIND) ||
             (years > 0 && end - start > 1 && end - start < 4))
        kind = VOLATILE;
    /* With "days ago". */
    int32_t last = ago ? end + 2 : end;
    for (int32_t i = start; i < last; i++) page->kinds[i] = (uint8_t)kind;
    return end;
}

/* The number of characters of the numbers from `start` to `end`. */
static int32_t digits_in(const Page *page, int32_t start, int32_t end) {
    int32_t digits = 0;
    for (int32_t i = start; i < end; i++) {
        const uint32_t *place = (const uint32_t *)page->places.data + 2 * tokens_of(page)[i];
        const uint8_t *word = page->vocabulary.keys.data + place[0];
        for (uint32_t byte = 0; byte < place[1]; byte++) digits += (word[byte] & 0xC0) != 0x80;
    }
    return digits;
}

/* Return the token behind the block of a token, and the flags of some of its tokens. */
static int32_t end_of_block(const Page *page, int32_t start, int32_t *some) {
    int32_t block = token_blocks_of(page)[start], end = start;
    *some = 0;
    for (; end < page->token_count && token_blocks_of(page)[end] == block; end++)
        *some |= flags_at(page, end);
    return end;
}

/* In a short block with a word such as "fax", long numbers are VOLATILE; return the token behind
 * it. */
static int32_t read_contact(Page *page, int32_t start) {
    int32_t flags, end = end_of_block(page, start, &flags);
    if (!(flags & WORD_CONTACT) || end - start > CONTACT_WORDS) return end;
    for (int32_t i = start; i < end; i++) {
        int32_t first = i;
        while (i < end && flags_at(page, i) & WORD_NUMBER) i++;
        if (digits_in(page, first, i) < CONTACT_DIGITS || page->kinds[first] != NUMBER) continue;
        for (int32_t number = first; number < i; number++) page->kinds[number] = VOLATILE;
    }
    return end;
}

/* In a short block with a word such as "updated", it and dates are PASSING; return the token behind
 * it. */
static int32_t read_note(Page *page, int32_t start) {
    int32_t flags, end = end_of_block(page, start, &flags);
    if (!(flags & WORD_NOTE) || end - start > NOTE_WORDS) return end;
    bool is_dated = flags & WORD_MONTH;
    for (int32_t i = start; i < end; i++) is_dated = is_dated || page->kinds[i] >= VOLATILE;
    for (int32_t i = start; i < end; i++)
        if (page->kinds[i] == VOLATILE || (flags_at(page, i) & WORD_MONTH) ||
            (is_dated && (flags_at(page, i) & WORD_NOTE)))
            page->kinds[i] = PASSING;
    return end;
}

Status find_kinds(Page *page) {
    bool any_number = false, any_note = false, any_contact = false;
    page->token_count = (int32_t)(page->tokens.size / sizeof(int32_t));
    page->kinds = arena_zeros(&page->arena, (size_t)page->token_count, 1);
    if (page->arena.failed) return NO_MEMORY;
    for (int32_t i = 0; i < page->token_count;) {
        int32_t flags = flags_at(page, i);
        any_note = any_note || (flags & WORD_NOTE);
        any_contact = any_contact || (flags & WORD_CONTACT);
        if (!(flags & WORD_NUMBER)) {
            i++;
            continue;
        }
        any_number = true;
        i = read_run(page, i);
    }
    if (any_number && any_contact)
        for (int32_t i = 0; i < page->token_count;) i = read_contact(page, i);
    if (!any_number || !any_note) return DONE;
    for (int32_t i = 0; i < page->token_count;) i = read_note(page, i);
    return DONE;
}
