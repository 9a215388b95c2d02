/* 3b. The features of text blocks, and their levels by these: pgsimhash/html/weights.py. */
#include <math.h>

#include "page.h"

#define SCORE_MAX 25.0   /* no exponential overflows */
#define OTHER_PROSE 25.0 /* with so much, what a name sets apart counts half as such */
#define OWN_LISTING 40.0 /* with this many words outside, a listing's boilerplate counts half */

typedef struct {
    double words, linked;
} Amounts;

/* What features need of other blocks. */
typedef struct {
    Amounts *near, *around; /* within about 40 and 150 words */
    double apart, listing, framed; /* _corrections() */
} Surroundings;

static void carry(Amounts *carried, const Amounts *amounts, double fade, Amounts *sums) {
    carried->words = (carried->words + amounts->words) * fade;
    carried->linked = (carried->linked + amounts->linked) * fade;
    sums->words += carried->words;
    sums->linked += carried->linked;
}

/* nearby(): sums of amounts around each place, which count 1/e at the distance of the window. */
static Amounts *nearby(const Page *page, const Amounts *amounts, double window, Arena *arena) {
    int32_t count = page->block_count;
    Amounts *sums = arena_zeros(arena, (size_t)count, sizeof *sums), carried = {0};
    double *fades = arena_zeros(arena, (size_t)count, sizeof *fades);
    if (arena->failed) return NULL;
    memcpy(sums, amounts, (size_t)count * sizeof *sums);
    for (int32_t at = 1; at < count; at++) {
        fades[at] = exp((page->blocks[at - 1].middle - page->blocks[at].middle) / window);
        carry(&carried, amounts + at - 1, fades[at], sums + at);
    }
    carried = (Amounts){0};
    for (int32_t at = count - 1; at > 0; at--)
        carry(&carried, amounts + at, fades[at], sums + at - 1);
    return sums;
}

/* A notice in a long text means little. */
static bool find_notices(Page *page, Arena *arena) {
    Amounts *own = arena_zeros(arena, (size_t)page->block_count, sizeof *own);
    for (int32_t at = 0; own != NULL && at < page->block_count; at++)
        if (page->blocks[at].has_notice) own[at].words = exp(-page->blocks[at].words / 60.0);
    const Amounts *near = nearby(page, own, 15.0, arena);
    for (int32_t at = 0; near != NULL && at < page->block_count; at++)
        page->blocks[at].notice = larger(own[at].words, near[at].words / (1.0 + near[at].words));
    return near != NULL;
}

/* The share of each block's words that also occur in another block. */
static bool find_repeated(Page *page, Arena *arena) {
    size_t words = page->vocabulary.count;
    const Token *tokens = page->tokens.data;
    int32_t count = token_count(page);
    int32_t *first = arena_zeros(arena, words, sizeof *first);
    int32_t *last = arena_zeros(arena, words, sizeof *last);
    if (arena->failed) return false;
    for (int32_t i = count - 1; i >= 0; i--) first[tokens[i].word] = tokens[i].block;
    for (int32_t i = 0; i < count; i++) last[tokens[i].word] = tokens[i].block;
    for (int32_t i = 0; i < count; i++)
        page->blocks[tokens[i].block].repeated += first[tokens[i].word] != last[tokens[i].word];
    return true;
}

static bool find_corrections(const Page *page, Surroundings *near, Arena *arena) {
    const Element *elements = page->elements.data;
    double *amounts = arena_zeros(arena, (size_t)page->block_count, sizeof *amounts);
    double other = 0.0, prose = 0.0, own = 1.0;
    if (amounts == NULL) return false;
    for (int32_t at = 0; at < page->block_count; at++) {
        const Block *block = page->blocks + at;
        const double *levels = elements[block->owner].levels;
        double names = larger(larger(levels[BESIDE_NAMES], levels[BESIDE_TAGS]),
                              larger(levels[FOOTER_NAMES], levels[FOOTER_TAG]));
        double notice = larger(block->notice, levels[COPYRIGHT_ELEMENT]);
        amounts[at] = (block->words - block->linked) * (1 - names) * (1 - notice);
        other += amounts[at] * (1 - levels[APART]);
        if (!block->has_notice) own += block->words * (1 - levels[FRAME]);
    }
    near->apart = 1.0 / (1.0 + pow(OTHER_PROSE / larger(other, 1.0), 4.0));
    for (int32_t at = 0; at < page->block_count; at++) {
        const Block *block = page->blocks + at;
        double apart = near->apart * elements[block->owner].levels[APART];
        prose += amounts[at] * (1 - apart) * (1 - 0.8 * block->lateness);
    }
    near->listing = 1.0 / (1.0 + square(prose / 60.0));
    near->framed = near->listing / (1.0 + pow(OWN_LISTING / own, 4.0));
    return true;
}

static bool find_surroundings(Page *page, Surroundings *near, Arena *arena) {
    const Element *whole = page->elements.data;
    Amounts *own = arena_zeros(arena, (size_t)page->block_count, sizeof *own);
    double end = 0.0;
    for (int32_t at = 0; own != NULL && at < page->block_count; at++) {
        Block *block = page->blocks + at;
        own[at] = (Amounts){block->words, block->linked};
        end += block->words;
        block->middle = end - block->words / 2.0;
        block->lateness = exp((block->middle - whole->words) / 60.0);
    }
    near->near = nearby(page, own, 40.0, arena);
    near->around = nearby(page, own, 150.0, arena);
    return !arena->failed && find_notices(page, arena) && find_repeated(page, arena) &&
           find_corrections(page, near, arena);
}

/* The logarithm of the share of text outside links. */
static double unlinked(double linked, double words) { return log(1.1 - linked / words); }

/* Return the sum of coefficient times feature; set whether the block is apart. */
static double score_of(const Page *page, const Tables *tables, const Surroundings *near, int32_t at,
                       bool *is_apart) {
    const Element *elements = page->elements.data;
    const Block *block = page->blocks + at;
    const Element *element = elements + block->owner, *parent = elements + element->parent;
    const Element *above = elements + parent->parent;
    const double *levels = element->levels;
    Amounts close = near->near[at], wide = near->around[at];
    double words = block->words, numbers = block->numbers / words;
    double element_words = log(element->own / (element->own + 15.0));
    double unit = log(block->unit / (block->unit + 15.0) + 1e-9);
    double unit_words = larger(unit - element_words, 0.0);
    double inside = block->under_h1 * (1 - block->outside_main) * (1 - block->outside_article);
#define FEATURE(name, value) value,
    const double features[] = {
#include "feature_list.h"
    };
    double score = 0.0;
    for (int i = 0; i < FEATURE_COUNT; i++) score += tables->coefficients[i] * features[i];
    *is_apart = features[APART] > 0.5;
    return score;
}

/* A block's level is e to its score. */
Status find_levels(Page *page, const Tables *tables, Arena *arena) {
    Surroundings near;
    const Element *elements = page->elements.data;
    if (!find_surroundings(page, &near, arena)) return NO_MEMORY;
    for (int32_t at = 0; at < page->block_count; at++) {
        double score = score_of(page, tables, &near, at, &page->blocks[at].is_apart);
        bool is_h1 = elements[page->blocks[at].owner].flags & IS_H1;
        page->is_title_apart |= is_h1 && page->blocks[at].is_apart;
        page->blocks[at].level = exp(fmin(fmax(score, -SCORE_MAX), SCORE_MAX));
    }
    return DONE;
}
