/* 2. The words of a page: pgsimhash/html/page_words.py, read_words(), and
 * pgsimhash/hashing/tokens.py, tokenize_signed().
 */

#include "characters.h"
#include "hashes.h"
#include "page.h"

#define TEXT_MAX (64u << 20)
#define WORD_MAX 4096
/* A longer run without ASCII space or punctuation may be normalised in pieces. */
#define RUN_MAX (1u << 16)

typedef struct {
    Page *page;
    const Tables *tables;
    int32_t block, links;        /* the block, and how many links are open */
    size_t tokens;               /* how many there are, with all signs */
    bool is_title;               /* dates and telephone numbers get no sign */
    const uint8_t *start;        /* of the word in the text, or NULL */
    bool is_complex;             /* it has characters that do not fold alone */
    bool is_number;
    uint8_t word[WORD_MAX];      /* folded */
    size_t length;
    uint32_t hash;
} Scanner;

static bool add_token(Scanner *scanner, int32_t word, bool is_linked) {
    Token token = {.word = word, .block = scanner->block, .is_linked = is_linked};
    scanner->tokens++;
    return buffer_add(&scanner->page->tokens, &token, sizeof token);
}

/* Return the number of a folded word; count it among the distinct words if it is new. */
Status add_word(Page *page, const Tables *tables, const uint8_t *word, size_t length,
                uint32_t hash, bool is_number, int32_t *number) {
    uint32_t known = page->vocabulary.count;
    Status status = table_number(&page->vocabulary, word, length, hash, number);
    if (status != DONE || page->vocabulary.count == known) return status;
    Word new = {murmur_64(word, length), (uint32_t)(page->vocabulary.keys.size - length),
                (uint32_t)length, table_get(&tables->words, word, length, 0)};
    if (is_number) new.flags |= WORD_NUMBER;
    return buffer_add(&page->words, &new, sizeof new) ? DONE : NO_MEMORY;
}

static void start_word(Scanner *scanner) {
    scanner->start = NULL;
    scanner->is_complex = false;
    scanner->is_number = true;
    scanner->length = 0;
    scanner->hash = HASH_START;
}

/* End the word before `at`. A complex one gets a number behind all signs, see complex_words.c. */
static Status end_word(Scanner *scanner, const uint8_t *at) {
    if (scanner->start == NULL) return DONE;
    Page *page = scanner->page;
    Status status;
    int32_t number;
    if (scanner->is_complex) {
        size_t size = (size_t)(at - scanner->start);
        if (size > WORD_MAX) return UNSUPPORTED;
        status = table_number(&page->complex_runs, scanner->start, size,
                              hash_of(scanner->start, size), &number);
        number = FIRST_COMPLEX - number;
    } else {
        status = add_word(page, scanner->tables, scanner->word, scanner->length, scanner->hash,
                          scanner->is_number, &number);
    }
    if (status != DONE) return status;
    start_word(scanner);
    return add_token(scanner, number, scanner->links > 0) ? DONE : NO_MEMORY;
}

static void add_byte(Scanner *scanner, uint8_t byte) {
    if (scanner->length == WORD_MAX) {
        scanner->is_complex = true;
        return;
    }
    scanner->word[scanner->length++] = byte;
    scanner->hash = hash_add(scanner->hash, byte);
    scanner->is_number = scanner->is_number && is_digit(byte);
}

/* Add a folded character that begins at `at`. */
static void add_character(Scanner *scanner, const uint8_t *at, uint32_t folded) {
    if (scanner->start == NULL) scanner->start = at;
    if (folded == FOLD_COMPLEX) {
        scanner->is_complex = true;
        return;
    }
    for (; folded > 0; folded >>= 8) add_byte(scanner, (uint8_t)folded);
}

/* Add the ASCII letters from `at` on, and return the place behind them: most text is of these. */
static const uint8_t *add_letters(Scanner *scanner, const uint8_t *at, const uint8_t *end) {
    const uint32_t *fold = scanner->tables->fold;
    const uint8_t *start = at;
    size_t length = scanner->length;
    uint32_t hash = scanner->hash;
    for (; at < end && *at < 0x80 && fold[*at] >= 'a' && length < WORD_MAX; at++) {
        scanner->word[length++] = (uint8_t)fold[*at];
        hash = hash_add(hash, (uint8_t)fold[*at]);
    }
    if (at == start) return at;
    if (scanner->start == NULL) scanner->start = start;
    scanner->is_number = false;
    scanner->length = length;
    scanner->hash = hash;
    return at;
}

/* A run of NUL is a sign: of a block, the start or the end of a link, a copyright sign, or before a
 * telephone number. */
static bool read_sign(Scanner *scanner, ptrdiff_t length) {
    if (scanner->tokens >= TOKENS_MAX) return true;
    if (length > 3) return add_token(scanner, length == 4 ? COPYRIGHT_SIGN : DATE_SIGN, false);
    scanner->tokens++;
    if (length == 1) scanner->block++;
    else scanner->links += length == 2 ? 1 : -1;
    return true;
}

/* ---- dates, times and telephone numbers, by the pattern _DATES of page_words.py ---- */

/* Skip at most `most` digits. */
static const uint8_t *skip_digits(const uint8_t *at, const uint8_t *end, int most) {
    for (; most > 0 && at < end && is_digit(*at); most--) at++;
    return at;
}

static bool digit_at(const uint8_t *at, const uint8_t *end) { return at < end && is_digit(*at); }

/* dd:dd or dd:dd:dd, after the first two digits; then no digit. */
static const uint8_t *time_end(const uint8_t *colon, const uint8_t *end) {
    const uint8_t *minutes = skip_digits(colon + 1, end, 2);
    if (minutes - colon != 3) return NULL;
    if (minutes < end && *minutes == ':') {
        const uint8_t *seconds = skip_digits(minutes + 1, end, 2);
        if (seconds - minutes == 3 && !digit_at(seconds, end)) return seconds;
    }
    return digit_at(minutes, end) ? NULL : minutes;
}

/* The end of a date or a time that begins at `at`, or NULL. No digit may be before it. */
static const uint8_t *date_end(const uint8_t *at, const uint8_t *end) {
    const uint8_t *separator = skip_digits(at, end, 4);
    if (separator >= end) return NULL;
    if (*separator == ':') return separator - at > 2 ? NULL : time_end(separator, end);
    if (*separator != '.' && *separator != '/' && *separator != '-') return NULL;
    const uint8_t *second = skip_digits(separator + 1, end, 2);
    if (second == separator + 1 || second >= end || *second != *separator) return NULL;
    const uint8_t *last = skip_digits(second + 1, end, 4);
    return last == second + 1 || digit_at(last, end) ? NULL : last;
}

/* The end of a telephone number with the code of a country: + and seven digits or more, with at
 * most three characters between two. */
static const uint8_t *phone_end(const uint8_t *plus, const uint8_t *end) {
    const uint8_t *at = plus + 1, *last = NULL;
    int digits = 0;
    while (digit_at(at, end)) {
        digits++;
        last = ++at;
        for (int i = 0; i < 3 && at < end && *at && strchr(" ()./-", *at); i++) at++;
    }
    return digits < 7 ? NULL : last;
}

/* ---- the text ---- */

static Status read_text(Scanner *scanner) {
    const uint32_t *fold = scanner->tables->fold;
    const uint8_t *text = scanner->page->text.data, *end = text + scanner->page->text.size;
    const uint8_t *date = text; /* the end of the last date */
    const uint8_t *broken = text; /* the last ASCII character between words */
    Status status = DONE;
    for (const uint8_t *at = text; at < end && status == DONE;) {
        at = add_letters(scanner, at, end);
        if (at == end) break;
        if (scanner->tokens >= TOKENS_MAX) break;
        if ((size_t)(at - broken) > RUN_MAX) return UNSUPPORTED;
        if (*at == 0) {
            const uint8_t *sign = at;
            while (at < end && *at == 0) at++;
            status = end_word(scanner, sign);
            if (status == DONE && !read_sign(scanner, at - sign)) status = NO_MEMORY;
            continue;
        }
        bool is_plus = *at == '+';
        if (!scanner->is_title && at >= date &&
            (is_plus || (is_digit(*at) && (at == text || !is_digit(at[-1]))))) {
            const uint8_t *stop = is_plus ? phone_end(at, end) : date_end(at, end);
            if (stop != NULL) {
                status = end_word(scanner, at);
                if (status == DONE && !read_sign(scanner, 5)) status = NO_MEMORY;
                if (status != DONE) return status;
                date = stop;
            }
        }
        uint32_t code;
        size_t size = decode(at, end, &code);
        uint32_t folded = fold[code < FOLD_SIZE - 1 ? code : FOLD_SIZE - 1];
        if (folded != ' ') {
            add_character(scanner, at, folded);
        } else {
            status = end_word(scanner, at);
            if (code < 128) broken = at;
        }
        at += size;
        if (at == date && status == DONE) status = end_word(scanner, at);
    }
    if (status != DONE) return status;
    if (scanner->tokens < TOKENS_MAX) return end_word(scanner, end);
    /* The first tokens count; but a run of complex characters may be several. */
    return scanner->page->complex_runs.count == 0 ? DONE : UNSUPPORTED;
}

static Status find_tokens(Page *page, const Tables *tables, bool is_title) {
    if (page->text.size > TEXT_MAX) return UNSUPPORTED;
    uint32_t slots = page->text.size < 2048 ? 128 : 2048;
    if (!table_start(&page->vocabulary, slots) || !table_start(&page->complex_runs, 64))
        return NO_MEMORY;
    size_t about = page->text.size / 5 < TOKENS_MAX ? page->text.size / 5 : TOKENS_MAX;
    if (!buffer_reserve(&page->tokens, about * sizeof(Token))) return NO_MEMORY;
    Scanner scanner = {.page = page, .tables = tables, .block = -1, .is_title = is_title};
    start_word(&scanner);
    Status status = read_text(&scanner);
    page->sign_count = (int32_t)scanner.tokens - token_count(page);
    return status;
}

/* Find the blocks with words, and ignore the tokens that are no words. */
static Status find_blocks(Page *page) {
    int32_t count = token_count(page), kept = 0, at = -1;
    Token *tokens = page->tokens.data;
    const Word *words = page->words.data;
    const int32_t *owners = page->owners.data; /* none of a plain text */
    size_t most = count > 0 ? (size_t)tokens[count - 1].block + 1 : 0;
    page->blocks = arena_zeros(&page->arena, most, sizeof *page->blocks);
    if (page->blocks == NULL) return NO_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        Token token = tokens[i];
        if (at < 0 || token.block != page->blocks[at].place) {
            if (at < 0 || page->blocks[at].words > 0.0) at++;
            page->blocks[at] = (Block){.place = token.block, .weight = 1.0, .counted = true};
            if (owners != NULL) page->blocks[at].owner = owners[token.block];
        }
        Block *block = page->blocks + at;
        int32_t flags = token.word < 0 ? 0 : words[token.word].flags;
        if (token.word == COPYRIGHT_SIGN || flags & WORD_COPYRIGHT) block->has_notice = true;
        if (token.word < 0) continue;
        block->words += 1.0;
        block->linked += token.is_linked;
        block->numbers += token.kind == NUMBER;
        block->letters += token.kind == WORD;
        block->legal += (flags & WORD_LEGAL) != 0;
        block->has_privacy = block->has_privacy || flags & WORD_PRIVACY;
        page->unlinked_count += !token.is_linked && !(flags & WORD_NUMBER);
        token.block = at;
        tokens[kept++] = token;
    }
    page->block_count = at < 0 || page->blocks[at].words > 0.0 ? at + 1 : at;
    page->tokens.size = (size_t)kept * sizeof *tokens;
    return DONE;
}

Status read_words(Page *page, const Tables *tables, bool is_title) {
    Status status = find_tokens(page, tables, is_title);
    if (status == DONE)
        status = split_complex_runs(page, tables, is_title ? tables->split_of_title
                                                           : tables->split_complex);
    if (status != DONE || is_title) return status;
    find_kinds(page);
    return find_blocks(page);
}
