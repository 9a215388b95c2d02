/* 3c. The weights of text blocks, and which are shown: pgsimhash/html/weights.py. */
#include <math.h>

#include "page.h"

#define LEVEL 50.0          /* on a page with this many effective words, half the mean level */
#define SCORE_MAX 25.0      /* no exponential overflows */
#define FRAME_LEVEL -7.35   /* the logarithm of the mean level of a page that may be boilerplate */
#define OWN_WORDS 6.0       /* a page with fewer words outside the boilerplate has no content */
#define SHOWN 0.1           /* blocks below this share of the largest weight are not shown, */
#define SHOWN_LINKS 0.25    /* nor those below this that are links */
#define LINKS 0.5           /* with a larger share of its words in links, a block consists of links */
#define FOOTER_LINKS 0.2    /* with a larger share, a sentence in a footer names categories */
#define SENTENCE_WORDS 8.0  /* with so many between shown blocks, a block is a sentence */

/* The levels of blocks, and the sums of words times level (whole), and times level again. */
typedef struct {
    double *levels, whole, squares;
} Levels;

/* A block's level is e to its score, the sum of coefficient times feature. */
static bool find_levels(const Page *page, const Tables *tables, const double *features,
                        Arena *arena, Levels *found) {
    found->levels = arena_doubles(arena, (size_t)page->block_count);
    if (arena->failed) return false;
    for (int32_t i = 0; i < page->block_count; i++) {
        double score = 0.0;
        for (int k = 0; k < FEATURE_COUNT; k++)
            score += tables->coefficients[k] * features[(size_t)i * FEATURE_COUNT + (size_t)k];
        score = score < -SCORE_MAX ? -SCORE_MAX : score > SCORE_MAX ? SCORE_MAX : score;
        double level = exp(score), mass = page->counts[i] * level;
        found->levels[i] = level;
        found->whole += mass;
        found->squares += mass * level;
    }
    return true;
}

/* weights_of(): u / (u + U), where U = (a / b) / (1 + 50 a / b^2) is the level of the page, b the sum
 * of words times u and a that of words times u^2. */
static bool find_weights(Page *page, const Levels *levels) {
    page->weights = arena_doubles(&page->arena, (size_t)page->block_count);
    if (page->arena.failed) return false;
    double whole = levels->whole, squares = levels->squares;
    double own = squares / whole / (1.0 + LEVEL * squares / (whole * whole));
    for (int32_t i = 0; i < page->block_count; i++)
        page->weights[i] = levels->levels[i] / (levels->levels[i] + own);
    return true;
}

/* weigh(): the blocks look like boilerplate, and nearly all words are in such elements. */
static bool is_frame_only(const Page *page, const Tree *tree, const Levels *levels) {
    if (!(levels->squares < exp(FRAME_LEVEL) * levels->whole)) return false;
    double own = 0.0;
    for (int32_t i = 0; i < page->block_count; i++)
        if (!tree->in_frame[page->block_owners[i]] && !(page->notices[i] > 0.0))
            own += page->counts[i];
    return own < OWN_WORDS;
}

/* _show(): the geometric mean of a block's weight and the mean weight in its element's parent
 * decides; a heading is shown if the block behind it is, and what is apart is not. */
static bool show_blocks(Page *page, const Tree *tree, const double *features, Arena *arena) {
    int32_t count = page->block_count;
    const Element *elements = elements_of(page);
    double *weighted = arena_doubles(arena, (size_t)count);
    double *mass = arena_doubles(arena, (size_t)element_count(page));
    if (arena->failed) return false;
    double heaviest = 0.0;
    for (int32_t i = 0; i < count; i++) {
        weighted[i] = page->counts[i] * page->weights[i];
        heaviest = larger(heaviest, page->weights[i]);
    }
    if (!sum_below(page, arena, weighted, mass)) return false;
    bool behind = false;
    for (int32_t i = count - 1; i >= 0; i--) {
        int32_t owner = page->block_owners[i], parent = parent_of(elements, owner);
        double around = mass[parent] / larger(tree->words[parent], 1.0);
        double least = page->linked[i] > LINKS * page->counts[i] ? SHOWN_LINKS : SHOWN;
        bool shown = page->weights[i] * around >= square(least * heaviest);
        if ((elements[owner].flags | elements[parent].flags) & IS_HEADING) shown = shown || behind;
        shown = shown && !is_apart(features, i);
        page->shown[page->block_places[i]] = shown;
        behind = shown;
    }
    return true;
}

/* Return the place above a block and what is above it in the same main or article element. */
static int32_t place_above(const Page *page, int32_t block) {
    const Element *elements = elements_of(page);
    int32_t around = page->block_owners[block], above = 0;
    while (around && !(elements[around].flags & (IS_MAIN | IS_ARTICLE)))
        around = parent_of(elements, around);
    while (above < block && !(around && page->block_owners[above] >= around &&
                              page->block_owners[above] < elements[around].end))
        above++;
    return above < block ? above - 1 : block;
}

/* _show_notes() */
static bool show_notes(Page *page, const Tree *tree, const double *features, Arena *arena) {
    int32_t count = page->block_count, first = count, last = 0, title = count;
    const Element *elements = elements_of(page);
    double *seen = arena_doubles(arena, (size_t)element_count(page));
    double *shown = arena_doubles(arena, (size_t)count);
    double *letters = arena_doubles(arena, (size_t)count);
    if (arena->failed) return false;
    for (int32_t i = 0; i < page->token_count; i++)
        letters[token_blocks_of(page)[i]] += page->kinds[i] == WORD;
    for (int32_t i = count - 1; i >= 0; i--) {
        if (elements[page->block_owners[i]].flags & IS_H1) title = i;
        if (!page->shown[page->block_places[i]]) continue;
        shown[i] = page->counts[i];
        first = i;
        if (i > last) last = i;
    }
    if (!sum_below(page, arena, shown, seen)) return false;
    if (title > first) title = first;
    int32_t above = first < count ? place_above(page, first) : count;
    for (int32_t i = 0; i < count; i++) {
        int32_t owner = page->block_owners[i], around = tree->note[owner];
        const double *levels = tree->levels + (size_t)owner * LEVELS;
        if (is_apart(features, i) || page->notices[i] > 0.0 || page->privacy[i] > 0.0 ||
            page->linked[i] > LINKS * page->counts[i])
            continue;
        double over = larger(levels[LEVEL_HIDDEN_NAMES], levels[LEVEL_OVERLAY_NAMES]);
        double beside = larger(levels[LEVEL_BESIDE_NAMES], levels[LEVEL_BESIDE_TAGS]);
        bool is_in_text;
        if (around) {
            double most = LINKS * (tree->words[around] - tree->linked[around]);
            is_in_text = (title < i && i < last) || (around > 1 && seen[around] > most);
        } else if (levels[LEVEL_IN_ARTICLE] > 0.0 &&
                   larger(levels[LEVEL_FOOTER_NAMES], levels[LEVEL_FOOTER_TAG]) > 0.5) {
            is_in_text = first < i && letters[i] >= SENTENCE_WORDS && larger(over, beside) <= 0.5 &&
                         page->linked[i] <= FOOTER_LINKS * page->counts[i];
        } else {
            is_in_text = above < i && i < last && page->counts[i] >= SENTENCE_WORDS &&
                         !tree->in_frame[owner] &&
                         (first < i ? over : larger(over, beside)) <= 0.5;
        }
        if (is_in_text) page->shown[page->block_places[i]] = 1;
    }
    return true;
}

/* look_around() of page_words.py: dates in data tables and lists are LISTED. */
static void list_dates(Page *page, const Tree *tree) {
    const int32_t *blocks = token_blocks_of(page);
    for (int32_t i = 0; i < page->token_count; i++) {
        double run_likelihood = larger(tree->in_table[blocks[i]], tree->in_run[blocks[i]]);
        if (page->kinds[i] == VOLATILE && run_likelihood > LISTED_FROM) page->kinds[i] = LISTED;
    }
}

static Status weigh_blocks(Page *page, const Tables *tables, Arena *arena) {
    Tree tree;
    Status status = build_tree(&tree, page, arena);
    if (status != DONE) return status;
    const double *features = block_features(page, &tree, arena);
    Levels levels = {0};
    if (features == NULL || !find_levels(page, tables, features, arena, &levels) ||
        !find_weights(page, &levels) || !show_blocks(page, &tree, features, arena) ||
        !show_notes(page, &tree, features, arena))
        return NO_MEMORY;
    status = show_whole_elements(page, &tree, arena);
    if (status != DONE) return status;
    bool frame_only = is_frame_only(page, &tree, &levels);
    for (int32_t i = 0; i < page->block_count; i++)
        page->counted[i] = page->shown[page->block_places[i]] && !frame_only;
    list_dates(page, &tree);
    return DONE;
}

Status weigh(Page *page, const Tables *tables) {
    page->shown = arena_zeros(&page->arena, (size_t)all_block_count(page), 1);
    page->counted = arena_zeros(&page->arena, (size_t)page->block_count, 1);
    page->rows = arena_integers(&page->arena, (size_t)page->block_count);
    if (page->arena.failed) return NO_MEMORY;
    if (page->block_count == 0) return DONE;
    Arena arena = {0};
    Status status = weigh_blocks(page, tables, &arena);
    arena_free(&arena);
    return status;
}
