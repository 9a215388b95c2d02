/* 5. Features, simhash, signature and digest: pgsimhash/schemes/features.py, registry.py, and
 * pgsimhash/hashing/votes.py and signature.py.
 */
#include <math.h>

#include "characters.h"
#include "hashes.h"
#include "page.h"

#define SECOND 0xEFA6F4A65354892BULL
#define LEAST_WEIGHT 0x1p-40
#define WEIGHT_UNITS 65536.0
#define SIZE_STEPS 8
#define SIZE_MAX_STEPS 127
#define DAMPED_SLOTS 1024

typedef struct {
    const Factors *factors;
    uint64_t ones[2][8][256]; /* units of the hashes with this byte at this place, by simhash */
    uint64_t total, size; /* units of all votes, and of all weights in the signature */
    int32_t features;
    double least_keys[BINS];
    uint64_t least[BINS]; /* the hash with the least key of each bin */
    double sums[DAMPED_SLOTS], damped[DAMPED_SLOTS];
} Votes;

/* damped(): s / (1 + s)^damping. Most pairs occur once, with the weight of their block, so the
 * last results are kept. */
static double damped(Votes *votes, double sum) {
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    size_t slot = (size_t)(bits * GOLDEN_RATIO >> 54);
    if (votes->sums[slot] != sum) {
        votes->sums[slot] = sum;
        votes->damped[slot] = sum * pow(1.0 + sum, -votes->factors->damping);
    }
    return votes->damped[slot];
}

/* signature_hashes(): a bin selects the feature with the least -ln(1 - u) / weight, where u is the
 * position of its hash in the bin; of equal ones the larger hash. */
static void sign(Votes *votes, uint64_t mixed, double weight) {
    size_t bin = (size_t)(mixed >> (64 - BIN_BITS));
    double u = (double)(mixed << BIN_BITS >> 11) * 0x1p-53;
    weight = larger(weight, LEAST_WEIGHT);
    /* -ln(1 - u) >= u: most features need no logarithm. */
    if (u > votes->least_keys[bin] * weight * 1.000001) return;
    double key = -log1p(-u) / weight, least = votes->least_keys[bin];
    if (key < least || (key == least && mixed > votes->least[bin])) {
        votes->least_keys[bin] = key;
        votes->least[bin] = mixed;
    }
}

/* Cast the vote of a feature with these weights in the vote and in the signature. */
static void add_weights(Votes *votes, uint64_t hash, double vote, double weight) {
    uint64_t units = (uint64_t)nearbyint(vote * WEIGHT_UNITS);
    votes->features++;
    votes->total += units;
    uint64_t mixed = murmur_mix(hash ^ SECOND);
    for (int place = 0; place < 8; place++) {
        votes->ones[0][place][hash >> (8 * place) & 255] += units;
        votes->ones[1][place][mixed >> (8 * place) & 255] += units;
    }
    votes->size += (uint64_t)nearbyint(weight * WEIGHT_UNITS);
    sign(votes, mixed, weight);
}

/* The same of a feature with this sum of weights. */
static void add_vote(Votes *votes, uint64_t hash, double sum) {
    add_weights(votes, hash, damped(votes, sum), sum / (sum + votes->factors->evened));
}

/* A bit is 1 if more than half of all units voted for it. From the highest bit of a byte on, the
 * sums of the bytes with the bit are added to those without, for the bits below. */
static uint64_t simhash_of(Votes *votes, int which) {
    uint64_t simhash = 0;
    for (int place = 0; place < 8; place++) {
        uint64_t *sums = votes->ones[which][place];
        for (int bit = 7; bit >= 0; bit--) {
            uint64_t ones = 0;
            for (int byte = 0; byte < 1 << bit; byte++) {
                ones += sums[byte + (1 << bit)];
                sums[byte] += sums[byte + (1 << bit)];
            }
            if (2 * ones > votes->total) simhash |= 1ULL << (8 * place + bit);
        }
    }
    return simhash;
}

/* An empty bin copies from the first filled one in its own order. The lowest byte is the size. */
static uint64_t samples_of(const Votes *votes, const Tables *tables) {
    uint64_t samples = 0;
    for (int bin = 0; bin < BINS; bin++) {
        const int64_t *order = tables->sources + bin * (BINS + 1);
        while (votes->least_keys[*order] == INFINITY) order++;
        samples |= (murmur_mix(votes->least[*order] ^ murmur_mix((uint64_t)bin)) & 1) << bin;
    }
    double size = larger((double)votes->size / WEIGHT_UNITS, 1.0);
    size = nearbyint(SIZE_STEPS * log2(size));
    return (samples & ~0xFFULL) | (uint64_t)(size < SIZE_MAX_STEPS ? size : SIZE_MAX_STEPS);
}

/* ---- features: words and pairs of neighbouring words of a block or of a row ---- */

/* Two words, and the sum of the weights of their occurrences. */
typedef struct {
    int32_t first, second;
    double sum;
} Pair;

static Kind kind_of(Token token) { return token.kind < VOLATILE ? token.kind : VOLATILE; }

static Status add_word_votes(const Page *page, Votes *votes, Arena *arena) {
    const Token *tokens = page->tokens.data;
    const Word *words = page->words.data;
    int32_t count = (int32_t)page->vocabulary.count;
    double *sums = arena_zeros(arena, (size_t)count, sizeof *sums);
    bool *occurs = arena_zeros(arena, (size_t)count, sizeof *occurs);
    if (arena->failed) return NO_MEMORY;
    for (const Token *token = tokens, *end = tokens + token_count(page); token < end; token++) {
        sums[token->word] += page->blocks[token->block].weight *
                             votes->factors->occurrences[kind_of(*token)];
        occurs[token->word] = true;
    }
    for (int32_t word = 0; word < count; word++)
        if (occurs[word]) add_vote(votes, words[word].hash, sums[word]);
    return DONE;
}

/* The hash of a pair is computed from those of its words: pair_hashes(). */
static Status add_pair_votes(const Page *page, Votes *votes, Arena *arena) {
    const Token *tokens = page->tokens.data;
    const Word *words = page->words.data;
    size_t count = (size_t)token_count(page);
    Map map;
    Pair *pairs = arena_zeros(arena, count, sizeof *pairs);
    if (!map_start(&map, arena, count)) return NO_MEMORY;
    for (size_t i = 1; i < count; i++) {
        Token first = tokens[i - 1], second = tokens[i];
        const Block *block = page->blocks + second.block;
        bool is_across = first.block != second.block;
        if (is_across && (!block->row || page->blocks[first.block].row != block->row)) continue;
        uint64_t words_of_pair = (uint64_t)first.word << 32 | (uint32_t)second.word;
        int32_t number;
        Status status = map_number(&map, words_of_pair, &number);
        if (status != DONE) return status;
        Kind kind = kind_of(first) > kind_of(second) ? kind_of(first) : kind_of(second);
        if (is_across && kind == LISTED) kind = VOLATILE;
        pairs[number].first = first.word;
        pairs[number].second = second.word;
        pairs[number].sum += block->weight * votes->factors->occurrences[4 + kind];
    }
    for (uint32_t i = 0; i < map.count; i++) {
        uint64_t first = words[pairs[i].first].hash, second = words[pairs[i].second].hash;
        add_vote(votes, murmur_mix(first * GOLDEN_RATIO + second), pairs[i].sum);
    }
    return DONE;
}

/* ---- words_digest(), length and unseen of WeightedWords ---- */

/* The hash of the shown words, without the passing ones, with spaces between. */
static bool find_digest(const Page *page, Vote *result) {
    Buffer text = {0};
    bool fits = true;
    const Token *tokens = page->tokens.data;
    for (int32_t i = 0; i < token_count(page) && fits; i++) {
        if (!page->blocks[tokens[i].block].counted) continue;
        result->tokens++;
        if (tokens[i].kind == PASSING) continue;
        const Word *word = (const Word *)page->words.data + tokens[i].word;
        fits = (text.size == 0 || buffer_add(&text, " ", 1)) &&
               buffer_add(&text, key_at(&page->vocabulary, word->offset), word->length);
    }
    result->digest = murmur_64(text.data, text.size);
    buffer_free(&text);
    return fits;
}

/* The share of words in blocks with less than a tenth of the mean weight of words. */
static double find_unseen(const Page *page) {
    double words = token_count(page) > 0 ? token_count(page) : 1.0, weighted = 0.0, light = 0.0;
    for (int32_t at = 0; at < page->block_count; at++)
        weighted += page->blocks[at].words * page->blocks[at].weight;
    for (int32_t at = 0; at < page->block_count; at++)
        if (page->blocks[at].weight < 0.1 * weighted / words) light += page->blocks[at].words;
    return light / words;
}

/* ---- short_words() and short_weights(): letters of words, with all numbers of a text ---- */

#define RUNS_MAX 1000
#define LETTER_WEIGHT 0.2

/* Before a word of a script without spaces, which Python split. */
#define UNSPACED 1

/* A run of digits, or of other characters, in a word. */
typedef struct {
    const uint8_t *at, *end;
    bool is_number, is_unspaced;
} Run;

/* Find the runs, and put the numbers with spaces between before "|": with these all features of a
 * text begin. */
static Status find_runs(const Page *page, Run *runs, int32_t *count, Buffer *numbers) {
    bool fits = true;
    for (int32_t i = 0; i < token_count(page) && i < RUNS_MAX; i++) {
        const Token *token = (const Token *)page->tokens.data + i;
        const Word *word = (const Word *)page->words.data + token->word;
        const uint8_t *at = key_at(&page->vocabulary, word->offset), *end = at + word->length;
        while (at < end && *count < RUNS_MAX) {
            Run run = {at, at, is_digit(*at), *at == UNSPACED};
            while (at < end && is_digit(*at) == run.is_number) at++;
            while (run.is_number && run.at < at - 1 && *run.at == '0') run.at++;
            run.at += run.is_unspaced;
            run.end = at;
            if (run.is_number)
                fits = fits && (numbers->size == 0 || buffer_add(numbers, " ", 1)) &&
                       buffer_add(numbers, run.at, (size_t)(at - run.at));
            runs[(*count)++] = run;
        }
    }
    return fits && buffer_add(numbers, "|", 1) ? DONE : NO_MEMORY;
}

/* Count the windows of three characters, or of all if there are fewer, each behind the numbers. */
static Status count_windows(const Buffer *run, Buffer *feature, Map *map, int32_t *counts) {
    size_t numbers = feature->size;
    const uint8_t *at = run->data, *end = at + run->size, *stop = skip_characters(at, end, 3);
    for (;; at = skip_characters(at, end, 1), stop = skip_characters(stop, end, 1)) {
        int32_t number;
        if (!buffer_add(feature, at, (size_t)(stop - at))) return NO_MEMORY;
        Status status = map_number(map, murmur_64(feature->data, feature->size), &number);
        feature->size = numbers;
        if (status != DONE) return status;
        counts[number]++;
        if (stop == end) return DONE;
    }
}

static Status add_letter_votes(const Page *page, Votes *votes, Arena *arena, int32_t *count) {
    size_t most = page->text.size < RUNS_MAX ? page->text.size + 1 : RUNS_MAX;
    Run *runs = arena_zeros(arena, most, sizeof *runs);
    Buffer feature = {0}, run = {0};
    Map map = {0};
    Status status = runs == NULL ? NO_MEMORY : find_runs(page, runs, count, &feature);
    bool has_words = false;
    size_t windows = 1;
    for (int32_t i = 0; i < *count; i++) {
        has_words = has_words || !runs[i].is_number;
        windows += (size_t)(runs[i].end - runs[i].at) + 1;
    }
    int32_t *counts = arena_zeros(arena, windows, sizeof *counts);
    if (status == DONE && !map_start(&map, arena, windows)) status = NO_MEMORY;
    for (int32_t i = 0; i < *count && status == DONE; i++) {
        if (runs[i].is_number && has_words) continue;
        bool is_bordered = !runs[i].is_unspaced;
        run.size = 0;
        if ((is_bordered && !buffer_add(&run, "<", 1)) ||
            !buffer_add(&run, runs[i].at, (size_t)(runs[i].end - runs[i].at)) ||
            (is_bordered && !buffer_add(&run, ">", 1)))
            status = NO_MEMORY;
        else
            status = count_windows(&run, &feature, &map, counts);
    }
    for (uint32_t slot = 0; slot <= map.mask && status == DONE; slot++) {
        if (map.numbers[slot] == -1) continue;
        double weight = LETTER_WEIGHT * counts[map.numbers[slot]];
        add_weights(votes, map.keys[slot], weight, weight);
    }
    buffer_free(&run);
    buffer_free(&feature);
    return status;
}

/* ---- a vote ---- */

static Status add_votes(const Page *page, Votes *votes, Arena *arena, Vote *result) {
    if (votes->factors == NULL) return add_letter_votes(page, votes, arena, &result->tokens);
    Status status = add_word_votes(page, votes, arena);
    if (status == DONE) status = add_pair_votes(page, votes, arena);
    result->unseen = find_unseen(page);
    return status == DONE && !find_digest(page, result) ? NO_MEMORY : status;
}

Status vote(const Page *page, const Tables *tables, const Factors *factors, Vote *result) {
    Arena arena = {0};
    Votes *votes = arena_zeros(&arena, 1, sizeof *votes);
    if (votes == NULL) return NO_MEMORY;
    votes->factors = factors;
    for (int bin = 0; bin < BINS; bin++) votes->least_keys[bin] = INFINITY;
    *result = (Vote){0};
    Status status = add_votes(page, votes, &arena, result);
    if (status == DONE && votes->total == 0) status = UNSUPPORTED;
    if (status == DONE) {
        result->simhash = simhash_of(votes, 0);
        result->features = votes->features;
        uint64_t halves[] = {samples_of(votes, tables), simhash_of(votes, 1)};
        for (int place = 0; place < 16; place++)
            result->signature[place] = (uint8_t)(halves[place / 8] >> (8 * (place % 8)));
    }
    arena_free(&arena);
    return status;
}
