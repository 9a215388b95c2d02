/* 3b. The features of text blocks: pgsimhash/html/weights.py, features(). */
#include <math.h>

#include "page.h"

/* In the order of COEFFICIENTS there, which is compared with this list. */
enum {
    BESIDE_NAMES, BESIDE_TAGS, OVERLAY_NAMES, HIDDEN_NAMES, HEADER, CONTENT_NAMES, FOOTER_NAMES,
    FOOTER_TAG, APART, OUTSIDE_MAIN, OUTSIDE_ARTICLE,
    UNLINKED, UNLINKED_NEAR, UNLINKED_AROUND, UNLINKED_PARENT, UNLINKED_GRANDPARENT,
    WORDS_NEAR, ELEMENT_WORDS, UNIT_WORDS, UNIT_NUMBERS, UNIT_WORDS_UNDER_H1, IN_TABLE, IN_RUN,
    NUMBER_SHARE, PARENT_SHARE,
    LATENESS, BEFORE_H1, UNDER_H1, AFTER_HEADINGS, DEPTH, REPEATED_WORDS,
    COPYRIGHT_NEAR, COPYRIGHT_ELEMENT, LEGAL_WORDS,
    LISTING_WORDS, LISTING_LATENESS, LISTING_FRAME
};

const char *const FEATURES[FEATURE_COUNT] = {
    "beside_names", "beside_tags", "overlay_names", "hidden_names", "header", "content_names",
    "footer_names", "footer_tag", "apart", "outside_main", "outside_article",
    "unlinked", "unlinked_near", "unlinked_around", "unlinked_parent", "unlinked_grandparent",
    "words_near", "element_words", "unit_words", "unit_numbers", "unit_words_under_h1",
    "in_table", "in_run", "number_share", "parent_share",
    "lateness", "before_h1", "under_h1", "after_headings", "depth", "repeated_words",
    "copyright_near", "copyright_element", "legal_words",
    "listing_words", "listing_lateness", "listing_frame"
};

/* ---- nearby(): sums of amounts around each block, which count 1/e at the distance of a window ---- */

#define SPAN 600.0 /* the largest exponent that is safe for a double */

/* e^(x / window) and e^(-x / window) for each place x, or NULL on a long page. */
typedef struct {
    int32_t count;
    const double *middle;
    double window;
    double *rising, *falling, *back;
} Window;

static bool window_start(Window *window, Arena *arena, const double *middle, int32_t count,
                         double width) {
    *window = (Window){count, middle, width, NULL, NULL, NULL};
    if (middle[count - 1] / width >= SPAN) {
        window->back = arena_doubles(arena, (size_t)count);
        return !arena->failed;
    }
    window->rising = arena_doubles(arena, (size_t)count);
    window->falling = arena_doubles(arena, (size_t)count);
    if (arena->failed) return false;
    for (int32_t i = 0; i < count; i++) {
        window->rising[i] = exp(middle[i] / width);
        window->falling[i] = 1.0 / window->rising[i];
    }
    return true;
}

/* Sum up from one side, by spans within the exponent's range; each carries the sum before it. */
static void sum_by_spans(const Window *window, const double *amounts, bool from_right,
                         double *sums) {
    int32_t count = window->count, start = 0;
    double sign = from_right ? -1.0 : 1.0, carried = 0.0;
    int32_t first = from_right ? count - 1 : 0, step = from_right ? -1 : 1;
    double at = sign * window->middle[first] / window->window;
    while (start < count) {
        double origin = sign * window->middle[first + step * start] / window->window, run = 0.0;
        carried *= exp(at - origin);
        double carried_in = carried;
        for (; start < count; start++) {
            int32_t place = first + step * start;
            double scaled = sign * window->middle[place] / window->window;
            if (scaled >= origin + SPAN) break;
            double rising = exp(scaled - origin);
            run += amounts[place] * rising;
            sums[place] = (carried_in + run) / rising;
            carried = sums[place];
            at = scaled;
        }
    }
}

static void nearby(const Window *window, const double *amounts, double *sums) {
    int32_t count = window->count;
    if (window->rising == NULL) {
        sum_by_spans(window, amounts, false, sums);
        sum_by_spans(window, amounts, true, window->back);
        for (int32_t i = 0; i < count; i++) sums[i] += window->back[i] - amounts[i];
        return;
    }
    double run = 0.0;
    for (int32_t i = 0; i < count; i++) {
        run += amounts[i] * window->rising[i];
        sums[i] = window->falling[i] * run;
    }
    run = 0.0;
    for (int32_t i = count - 1; i >= 0; i--) {
        run += amounts[i] * window->falling[i];
        sums[i] += window->rising[i] * run - amounts[i];
    }
}

/* ---- values of blocks that need other blocks ---- */

#define OTHER_PROSE 25.0 /* with so much, what a name sets apart counts half as such */
#define OWN_LISTING 40.0 /* with so many words outside, a listing's boilerplate counts half */

typedef struct {
    double *near, *near_linked, *around, *around_linked; /* within about 40 and 150 words */
    double *copyright_near, *repeated, *lateness;
    double total, listing;
    double framed; /* the same, near 0 with hardly any words outside the boilerplate */
    double apart; /* how much a part counts as apart that its name sets apart, 0 to 1 */
} Surroundings;

/* _notices_near(): a sign in a long text means little. */
static bool find_notices_near(const Page *page, Arena *arena, const double *middle, double *near) {
    int32_t count = page->block_count;
    bool any = false;
    for (int32_t i = 0; i < count; i++) any = any || page->notices[i] > 0.0;
    if (!any) return true;
    double *notices = arena_doubles(arena, (size_t)count);
    double *sums = arena_doubles(arena, (size_t)count);
    Window window;
    if (arena->failed || !window_start(&window, arena, middle, count, 15.0)) return false;
    for (int32_t i = 0; i < count; i++)
        notices[i] = page->notices[i] * exp(-page->counts[i] / 60.0);
    nearby(&window, notices, sums);
    for (int32_t i = 0; i < count; i++) near[i] = larger(notices[i], sums[i] / (1.0 + sums[i]));
    return true;
}

/* The share of each block's words that also occur in another block. */
static bool find_repeated(const Page *page, Arena *arena, double *repeated) {
    size_t words = page->vocabulary.count;
    const int32_t *tokens = tokens_of(page), *blocks = token_blocks_of(page);
    int32_t *first = arena_integers(arena, words), *last = arena_integers(arena, words);
    if (arena->failed) return false;
    for (int32_t i = page->token_count - 1; i >= 0; i--) first[tokens[i]] = blocks[i];
    for (int32_t i = 0; i < page->token_count; i++) last[tokens[i]] = blocks[i];
    for (int32_t i = 0; i < page->token_count; i++)
        repeated[blocks[i]] += first[tokens[i]] != last[tokens[i]];
    for (int32_t i = 0; i < page->block_count; i++) repeated[i] /= page->counts[i];
    return true;
}

/* The words of prose outside the boilerplate, less those at the end with `late`, and less those
 * that are apart, times `apart`. */
static double prose_outside(const Page *page, const Tree *tree, const Surroundings *near,
                            double apart, double late) {
    double prose = 0.0;
    for (int32_t i = 0; i < page->block_count; i++) {
        const double *levels = tree->levels + (size_t)page->block_owners[i] * LEVELS;
        double boilerplate = larger(larger(levels[LEVEL_BESIDE_NAMES], levels[LEVEL_BESIDE_TAGS]),
                                    larger(levels[LEVEL_FOOTER_NAMES], levels[LEVEL_FOOTER_TAG]));
        double notice = larger(near->copyright_near[i], levels[LEVEL_COPYRIGHT_ELEMENT]);
        double share = 1.0 - page->linked[i] / page->counts[i];
        double outside = page->counts[i] * share * (1 - boilerplate) * (1 - notice);
        prose += outside * (1 - apart * levels[LEVEL_APART]) * (1 - late * near->lateness[i]);
    }
    return prose;
}

/* How little prose there is: 1 for an index, near 0 for an article. A page that has hardly any
 * other prose has its content in the parts that are named as apart. */
static void find_listing(const Page *page, const Tree *tree, Surroundings *near) {
    double own = prose_outside(page, tree, near, 1.0, 0.0);
    double words = 1.0;
    for (int32_t i = 0; i < page->block_count; i++) {
        const double *levels = tree->levels + (size_t)page->block_owners[i] * LEVELS;
        if (!(page->notices[i] > 0.0)) words += page->counts[i] * (1.0 - levels[LEVEL_FRAME]);
    }
    near->apart = 1.0 / (1.0 + pow(OTHER_PROSE / larger(own, 1.0), 4.0));
    double prose = prose_outside(page, tree, near, near->apart, 0.8);
    near->listing = 1.0 / (1.0 + square(prose / 60.0));
    near->framed = near->listing / (1.0 + pow(OWN_LISTING / words, 4.0));
}

static bool find_surroundings(const Page *page, const Tree *tree, Arena *arena,
                              Surroundings *near) {
    size_t count = (size_t)page->block_count;
    double *middle = arena_doubles(arena, count);
    double **arrays[] = {&near->near, &near->near_linked, &near->around, &near->around_linked,
                         &near->copyright_near, &near->repeated, &near->lateness};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = arena_doubles(arena, count);
    if (arena->failed) return false;
    near->total = 0.0;
    for (size_t i = 0; i < count; i++) {
        near->total += page->counts[i];
        middle[i] = near->total - page->counts[i] / 2.0;
    }
    Window close, wide;
    if (!window_start(&close, arena, middle, page->block_count, 40.0) ||
        !window_start(&wide, arena, middle, page->block_count, 150.0))
        return false;
    nearby(&close, page->counts, near->near);
    nearby(&close, page->linked, near->near_linked);
    nearby(&wide, page->counts, near->around);
    nearby(&wide, page->linked, near->around_linked);
    if (!find_notices_near(page, arena, middle, near->copyright_near) ||
        !find_repeated(page, arena, near->repeated))
        return false;
    for (size_t i = 0; i < count; i++) near->lateness[i] = exp((middle[i] - near->total) / 60.0);
    find_listing(page, tree, near);
    return true;
}

/* ---- the features ---- */

/* ln(1.1 - linked / words): the share of text outside links. */
static double unlinked(double linked, double words) { return log(1.1 - linked / words); }

static void find_features(const Page *page, const Tree *tree, const Surroundings *near, int32_t i,
                          double *features) {
    const Element *elements = elements_of(page);
    int32_t owner = page->block_owners[i], parent = parent_of(elements, owner);
    int32_t above = parent_of(elements, parent);
    const double *levels = tree->levels + (size_t)owner * LEVELS;
    double counts = page->counts[i], linked = page->linked[i], listing = near->listing;
    double in_table = tree->in_table[i], in_run = tree->in_run[i], unit = tree->unit[i];
    double numbers = page->numeric[i] / counts;
    double legal = page->legal[i] < 2.0 ? page->legal[i] : 2.0;
    double own = tree->own[owner], element_words = log(own / (own + 15.0));
    double unit_words = larger(log(unit / (unit + 15.0) + 1e-9) - element_words, 0.0);
    double *f = features;

    f[BESIDE_NAMES] = levels[LEVEL_BESIDE_NAMES];
    f[BESIDE_TAGS] = levels[LEVEL_BESIDE_TAGS];
    f[OVERLAY_NAMES] = levels[LEVEL_OVERLAY_NAMES];
    f[HIDDEN_NAMES] = levels[LEVEL_HIDDEN_NAMES];
    f[HEADER] = levels[LEVEL_HEADER];
    f[CONTENT_NAMES] = levels[LEVEL_CONTENT_NAMES];
    f[FOOTER_NAMES] = levels[LEVEL_FOOTER_NAMES];
    f[FOOTER_TAG] = levels[LEVEL_FOOTER_TAG];
    f[APART] = near->apart * levels[LEVEL_APART];
    f[OUTSIDE_MAIN] = tree->outside_main[i];
    f[OUTSIDE_ARTICLE] = tree->outside_article[i];

    f[UNLINKED] = unlinked(linked, counts);
    f[UNLINKED_NEAR] = unlinked(near->near_linked[i], near->near[i]);
    f[UNLINKED_AROUND] = unlinked(near->around_linked[i], near->around[i]);
    f[UNLINKED_PARENT] = unlinked(tree->linked[owner], larger(tree->words[owner], 1.0));
    f[UNLINKED_GRANDPARENT] = unlinked(tree->linked[above], larger(tree->words[above], 1.0));

    f[WORDS_NEAR] = log(1.0 - exp((near->near_linked[i] - 1.1 * near->near[i] - counts) / 20.0));
    f[ELEMENT_WORDS] = element_words;
    f[UNIT_WORDS] = unit_words;
    f[UNIT_NUMBERS] = unit_words * numbers;
    f[UNIT_WORDS_UNDER_H1] = unit_words * (tree->under_h1[i] * (1.0 - tree->outside_main[i]) *
                                           (1.0 - tree->outside_article[i]));
    f[IN_TABLE] = in_table;
    f[IN_RUN] = in_run;
    f[NUMBER_SHARE] = numbers;
    f[PARENT_SHARE] = log(tree->words[parent] / near->total + 0.01);

    f[LATENESS] = near->lateness[i];
    f[BEFORE_H1] = tree->before_h1[i];
    f[UNDER_H1] = tree->under_h1[i];
    f[AFTER_HEADINGS] = tree->after_headings[i];
    f[DEPTH] = log1p(tree->depth[owner]) - 2.0;
    f[REPEATED_WORDS] = near->repeated[i] - 0.5;

    f[COPYRIGHT_NEAR] = near->copyright_near[i];
    f[COPYRIGHT_ELEMENT] = levels[LEVEL_COPYRIGHT_ELEMENT];
    f[LEGAL_WORDS] = legal == 0.0 ? 0.0 : legal / 2.0 * exp(-counts / 60.0);

    f[LISTING_WORDS] = element_words * listing;
    f[LISTING_LATENESS] = near->lateness[i] * listing;
    f[LISTING_FRAME] = levels[LEVEL_FRAME] * near->framed;
}

/* Whether a block is apart, so that it is not shown. */
bool is_apart(const double *features, int32_t block) {
    return features[(size_t)block * FEATURE_COUNT + APART] > 0.5;
}

/* Return FEATURE_COUNT features of each block, or NULL. */
double *block_features(const Page *page, const Tree *tree, Arena *arena) {
    Surroundings near = {0};
    double *features = arena_doubles(arena, (size_t)page->block_count * FEATURE_COUNT);
    if (features == NULL || !find_surroundings(page, tree, arena, &near)) return NULL;
    for (int32_t i = 0; i < page->block_count; i++)
        find_features(page, tree, &near, i, features + (size_t)i * FEATURE_COUNT);
    return features;
}
