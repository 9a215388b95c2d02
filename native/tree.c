/* 3a. The context of text blocks: pgsimhash/html/page_words.py.
 *
 * Parents precede their children, so one pass in document order passes values down, and a
 * cumulative sum gives those of an element with all in it.
 */
#include <math.h>

#include "page.h"

/* Sum the blocks' amounts in each element and below. */
bool sum_below(const Page *page, Arena *arena, const double *amounts, double *sums) {
    int32_t count = element_count(page);
    const Element *elements = elements_of(page);
    double *cumulative = arena_doubles(arena, (size_t)count + 1);
    if (cumulative == NULL) return false;
    for (int32_t block = 0; block < page->block_count; block++)
        cumulative[page->block_owners[block] + 1] += amounts[block];
    for (int32_t i = 0; i < count; i++) cumulative[i + 1] += cumulative[i];
    for (int32_t i = 0; i < count; i++) sums[i] = cumulative[elements[i].end] - cumulative[i];
    return true;
}

/* ---- _inherit(): names and tags ---- */

/* The unlinked words of the paragraphs beside an element and before it, and all words of the
 * siblings that are like it. */
typedef struct {
    double beside, before, alike;
} Context;

/* The features of one element by its names and tags. An element with much of the page is not
 * beside the text, whatever its name: with its share s of the words, names count
 * 1 / (1 + (s / .3)^4). */
static void find_levels(const Tree *tree, const Element *element, int32_t i, Context context,
                        double *levels) {
    double share = pow(tree->words[i] / tree->words[0] / 0.3, 4.0);
    double named = 1.0 / (1.0 + share), tagged = 1.0 / (1.0 + share / 16.0);
    double over = 1.0 / (1.0 + share * pow(0.3 / 0.9, 4.0));
    uint32_t flags = element->flags, names = element->names;
    bool has_notice = i > 0 && tree->notices[i] > 0.0;
    levels[LEVEL_BESIDE_NAMES] = names & NAMED_BESIDE ? named : 0.0;
    levels[LEVEL_BESIDE_TAGS] = flags & IS_BESIDE ? tagged : 0.0;
    levels[LEVEL_OVERLAY_NAMES] = names & NAMED_OVERLAY ? over : 0.0;
    levels[LEVEL_HIDDEN_NAMES] = names & NAMED_HIDDEN ? over : 0.0;
    levels[LEVEL_HEADER] = larger(names & NAMED_HEADER ? named : 0.0,
                                  flags & IS_HEADER ? tagged : 0.0);
    levels[LEVEL_CONTENT_NAMES] = (names & NAMED_CONTENT) || (flags & IS_CONTENT) ? 1.0 : 0.0;
    levels[LEVEL_FOOTER_NAMES] = names & NAMED_FOOTER ? named : 0.0;
    levels[LEVEL_FOOTER_TAG] = flags & IS_FOOTER ? tagged : 0.0;
    bool is_frame = names & (NAMED_BESIDE | NAMED_FOOTER | NAMED_APART);
    levels[LEVEL_FRAME] = is_frame ? over : flags & (IS_BESIDE | IS_FOOTER) ? tagged : 0.0;
    levels[LEVEL_IN_ARTICLE] = flags & IS_ARTICLE ? 1.0 : 0.0;
    levels[LEVEL_COPYRIGHT_ELEMENT] =
        has_notice ? 1.0 / (1.0 + square(tree->words[i] / 80.0)) : 0.0;
    levels[LEVEL_APART] = 0.0;
    if (names & NAMED_APART) {
        double here = 1.0 / (1.0 + pow(20.0 / larger(context.beside, 1.0), 4.0));
        if (names & NAMED_BELOW) {
            double inside = tree->words[i] - tree->linked[i];
            double outside = tree->words[0] - tree->linked[0] - inside;
            double below = 1.0 / (1.0 + pow(10.0 / larger(context.before, 1.0), 4.0));
            double small = 1.0 / (1.0 + pow(3.0 * inside / larger(outside, 1.0), 8.0));
            here = larger(here, 0.55) * larger(below, small);
        }
        bool is_paragraph = flags & IS_PARAGRAPH;
        double alike = (is_paragraph ? context.alike : tree->words[i]) / tree->words[0];
        double most = names & (NAMED_BELOW | NAMED_OVERLAY) && !is_paragraph ? 0.9 : 0.6;
        levels[LEVEL_APART] = here / (1.0 + pow(alike / most, 16.0));
    }
}

/* Sum up the unlinked words of the paragraphs that are children of each element. */
static double *sum_paragraphs(const Tree *tree, const Element *elements, int32_t count,
                              Arena *arena) {
    double *sums = arena_doubles(arena, (size_t)count);
    for (int32_t i = 0; sums != NULL && i < count; i++)
        if (elements[i].flags & IS_PARAGRAPH)
            sums[parent_of(elements, i)] += tree->words[i] - tree->linked[i];
    return sums;
}

/* _place_of_note() */
static int32_t place_of_note(const Tree *tree, const Element *elements, int32_t i) {
    static const int sides[] = {LEVEL_BESIDE_NAMES, LEVEL_BESIDE_TAGS, LEVEL_OVERLAY_NAMES,
                                LEVEL_HIDDEN_NAMES, LEVEL_FOOTER_NAMES, LEVEL_FOOTER_TAG};
    uint32_t names = elements[i].names;
    int32_t around = parent_of(elements, i);
    bool is_note = names & NAMED_NOTE && !(names & (NAMED_APART | NAMED_OVERLAY));
    bool is_aside = elements[i].flags & IS_ASIDE && !names;
    if (!(is_note || is_aside) || tree->words[i] == 0.0) return 0;
    for (size_t side = 0; side < sizeof sides / sizeof *sides; side++)
        if (tree->levels[(size_t)around * LEVELS + (size_t)sides[side]] > 0.5) return 0;
    while (is_note && around && tree->words[around] == tree->words[i])
        around = parent_of(elements, around);
    return is_note && around ? around : 1;
}

static bool inherit(Tree *tree, const Element *elements, int32_t count, Arena *arena) {
    const uint32_t names = NAMED_BESIDE | NAMED_FOOTER | NAMED_HEADER | NAMED_APART;
    const uint32_t tags = IS_BESIDE | IS_FOOTER | IS_HEADER;
    const double *paragraphs = sum_paragraphs(tree, elements, count, arena);
    double *group_words = arena_doubles(arena, (size_t)count), before = 0.0;
    if (arena->failed) return false;
    for (int32_t i = 0; i < count; i++) group_words[tree->group[i]] += tree->words[i];
    for (int32_t i = 0; i < count; i++) {
        const Element *element = elements + i;
        int32_t parent = parent_of(elements, i);
        double *levels = tree->levels + (size_t)i * LEVELS;
        const double *above = tree->levels + (size_t)parent * LEVELS;
        Context context = {paragraphs[parent], before, group_words[tree->group[i]]};
        find_levels(tree, element, i, context, levels);
        if (element->flags & IS_PARAGRAPH) before += tree->words[i] - tree->linked[i];
        bool has_most = tree->words[i] - tree->linked[i] > 0.5 * (tree->words[0] - tree->linked[0]);
        tree->in_frame[i] = ((element->names & names && !has_most) || element->flags & tags) &&
                            tree->words[i] < 0.95 * tree->words[0];
        if (i == 0) continue;
        tree->depth[i] = tree->depth[parent] + 1;
        tree->note[i] = tree->note[parent] ? tree->note[parent] : place_of_note(tree, elements, i);
        for (int level = 0; level < LEVELS; level++)
            levels[level] = larger(levels[level], above[level]);
        tree->in_frame[i] = tree->in_frame[i] || tree->in_frame[parent];
    }
    return true;
}

/* ---- _find_siblings() ---- */

/* Group siblings with the same tag and first name. */
static Status find_siblings(Tree *tree, const Element *elements, int32_t count, Arena *arena) {
    Map map;
    int32_t *first = arena_integers(arena, (size_t)count);
    if (!map_start(&map, arena, (size_t)count)) return NO_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        /* 31 bits, 7 bits (TAGS_MAX) and 26 bits (NAMED_MAX). */
        uint64_t key = (uint64_t)(elements[i].parent + 1) << 33 | (uint64_t)elements[i].tag << 26 |
                       (uint64_t)elements[i].first;
        uint32_t known = map.count;
        int32_t number;
        Status status = map_number(&map, key, &number);
        if (status != DONE) return status;
        if (map.count > known) first[number] = i;
        tree->group[i] = first[number];
    }
    return DONE;
}

/* ---- _find_unit(): tables and lists ---- */

/* Find runs of similar siblings with short texts: the more of them and the shorter, the likelier. */
static bool find_runs(Tree *tree, const Element *elements, int32_t count, Arena *arena) {
    double *filled = arena_doubles(arena, (size_t)count);
    double *words = arena_doubles(arena, (size_t)count);
    if (arena->failed) return false;
    for (int32_t i = 0; i < count; i++) {
        int32_t group = tree->group[i];
        filled[group] += tree->words[i] > 0.0;
        words[group] += tree->words[i];
        tree->group_unlinked[group] += larger(tree->words[i] - 0.8 * tree->linked[i], 0.0);
    }
    for (int32_t i = 0; i < count; i++) {
        int32_t group = tree->group[i], above = tree->run[parent_of(elements, i)];
        bool is_run = filled[group] > 2.0 && !(elements[i].flags & (IS_COMMON | IS_CELL));
        double many = larger(filled[group], 1.0), each = words[group] / many;
        tree->run_likelihood[i] = is_run ? (1 - 1 / many) / (1 + square(each / 40)) : 0.0;
        tree->run[i] = is_run ? i : above;
        /* The cells of a row may be a run within the run of the rows. */
        tree->run_words[i] = larger(tree->run_likelihood[i] * tree->group_unlinked[group],
                                   i == 0 ? 0.0 : tree->run_words[parent_of(elements, i)]);
    }
    return true;
}

/* Find data tables: of several rows and short cells, and without tables inside. */
static bool find_tables(Tree *tree, const Element *elements, int32_t count, Arena *arena) {
    for (int32_t i = 0; i < count; i++) {
        bool is_table = elements[i].flags & IS_TABLE;
        tree->has_table = tree->has_table || is_table;
        tree->table[i] = is_table ? i : tree->table[parent_of(elements, i)];
        bool is_row = elements[i].flags & IS_ROW;
        tree->row[i] = is_table ? 0 : is_row ? i : tree->row[parent_of(elements, i)];
    }
    if (!tree->has_table) return true;
    double *cells = arena_doubles(arena, (size_t)count);
    double *rows = arena_doubles(arena, (size_t)count);
    double *inner = arena_doubles(arena, (size_t)count);
    if (arena->failed) return false;
    for (int32_t i = 0; i < count; i++) {
        uint32_t flags = elements[i].flags;
        if (flags & IS_CELL) cells[tree->table[i]] += 1.0;
        if (flags & IS_ROW) rows[tree->table[i]] += 1.0;
        if (flags & IS_TABLE) inner[tree->table[parent_of(elements, i)]] += 1.0;
    }
    for (int32_t i = 0; i < count; i++) {
        if (!(elements[i].flags & IS_TABLE) || rows[i] <= 1.0 || cells[i] <= 3.0) continue;
        double each = tree->words[i] / larger(cells[i], 1.0);
        tree->table_likelihood[i] = (1 - 1 / larger(rows[i], 1.0)) / (1 + square(each / 15)) /
                                  (1 + inner[i]);
    }
    return true;
}

/* Find for each block the likelihoods of its table and list, and the unlinked words of these. If a
 * list is in a cell, or a table in an item, the inner one counts. And its row, if it has one. */
static void find_units(Tree *tree, Page *page) {
    const Element *elements = elements_of(page);
    for (int32_t block = 0; block < page->block_count; block++) {
        int32_t owner = page->block_owners[block];
        int32_t run = tree->run[owner], table = tree->table[owner];
        double in_table = 0.0, in_run = tree->run_likelihood[run], table_words = 0.0;
        double run_words = tree->run_words[owner];
        if (tree->has_table) {
            in_table = table > run ? tree->table_likelihood[table] : 0.0;
            if (table > run) in_run = run_words = 0.0;
            table_words = larger(tree->words[table] - 0.8 * tree->linked[table], 0.0);
        }
        tree->in_table[block] = in_table;
        tree->in_run[block] = in_run;
        tree->unit[block] = larger(in_table * table_words, run_words);
        if (larger(in_table, in_run) <= LISTED_FROM) continue;
        int32_t parent = parent_of(elements, owner);
        if (in_table > 0) page->rows[block] = tree->row[owner];
        else if (tree->run[parent] == parent) page->rows[block] = parent;
    }
}

/* ---- places_of() ---- */

#define FEW 5.0 /* with so many words, `main` and `article` count half */

static bool is_in(const Element *elements, int32_t element, int32_t around) {
    return element >= around && element < elements[around].end;
}

/* Find the blocks before the first h1; under it, in its parent (1) or grandparent (.5); after the
 * last heading, outside of its parent; outside of the largest `main`, and of any `article` if the h1 is in
 * one. */
static void find_places(Tree *tree, const Page *page) {
    const Element *elements = elements_of(page);
    const int32_t *owners = page->block_owners;
    int32_t count = page->block_count, h1 = -1, last = -1;
    for (int32_t block = 0; block < count; block++) {
        uint32_t flags = elements[owners[block]].flags;
        if (h1 < 0 && flags & IS_H1) h1 = block;
        if (flags & IS_HEADING) last = block;
    }
    if (h1 >= 0) {
        int32_t parent = parent_of(elements, owners[h1]), above = parent_of(elements, parent);
        double before = 0, prose = 0;
        for (int32_t block = 0; block < count; block++) {
            double own = page->counts[block] - page->linked[block];
            prose += own;
            if (block < h1) before += own;
        }
        double share = before / larger(prose, 1.0) / 0.75;
        /* An h1 with most of the prose before it is not the title. */
        double title = 1.0 / (1.0 + square(square(square(square(share)))));
        int32_t article = parent;
        while (article && !(elements[article].flags & IS_ARTICLE))
            article = parent_of(elements, article);
        double own = article ? tree->words[article] : 0.0;
        for (int32_t block = 0; block < count; block++) {
            const double *levels = tree->levels + (size_t)owners[block] * LEVELS;
            tree->outside_article[block] =
                title * own / (own + FEW) * (1.0 - levels[LEVEL_IN_ARTICLE]);
        }
        for (int32_t block = 0; block < h1; block++) tree->before_h1[block] = title;
        for (int32_t block = h1; block < count; block++) {
            if (is_in(elements, owners[block], parent)) tree->under_h1[block] = title;
            else if (above && is_in(elements, owners[block], above)) tree->under_h1[block] = 0.5 * title;
        }
    }
    int32_t inner = 0; /* the largest main, or the page */
    for (int32_t i = 1; i < element_count(page); i++) {
        if (!(elements[i].flags & IS_MAIN)) continue;
        if (!inner || tree->words[i] > tree->words[inner]) inner = i;
    }
    double own = tree->words[inner];
    for (int32_t block = 0; block < count; block++)
        if (!is_in(elements, owners[block], inner))
            tree->outside_main[block] = own / (own + FEW);
    if (last >= 0) {
        int32_t parent = parent_of(elements, owners[last]);
        for (int32_t block = last + 1; block < count; block++)
            tree->after_headings[block] = is_in(elements, owners[block], parent) ? 0.0 : 1.0;
    }
}

Status build_tree(Tree *tree, Page *page, Arena *arena) {
    size_t count = (size_t)element_count(page), blocks = (size_t)page->block_count;
    const Element *elements = elements_of(page);
    *tree = (Tree){0};
    double **of_elements[] = {&tree->own, &tree->words, &tree->linked, &tree->notices,
                              &tree->run_likelihood, &tree->group_unlinked, &tree->run_words,
                              &tree->table_likelihood};
    for (size_t i = 0; i < sizeof of_elements / sizeof *of_elements; i++)
        *of_elements[i] = arena_doubles(arena, count);
    int32_t **numbers[] = {&tree->note, &tree->group, &tree->run, &tree->table, &tree->row,
                           &tree->depth};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = arena_integers(arena, count);
    double **of_blocks[] = {&tree->in_table, &tree->in_run, &tree->unit, &tree->before_h1,
                            &tree->under_h1, &tree->after_headings, &tree->outside_main,
                            &tree->outside_article};
    for (size_t i = 0; i < sizeof of_blocks / sizeof *of_blocks; i++)
        *of_blocks[i] = arena_doubles(arena, blocks);
    tree->levels = arena_doubles(arena, count * LEVELS);
    tree->in_frame = arena_zeros(arena, count, sizeof(bool));
    if (arena->failed) return NO_MEMORY;
    for (size_t block = 0; block < blocks; block++)
        tree->own[page->block_owners[block]] += page->counts[block];
    if (!sum_below(page, arena, page->counts, tree->words) ||
        !sum_below(page, arena, page->linked, tree->linked) ||
        !sum_below(page, arena, page->notices, tree->notices))
        return NO_MEMORY;
    Status status = find_siblings(tree, elements, (int32_t)count, arena);
    if (status != DONE) return status;
    if (!inherit(tree, elements, (int32_t)count, arena) ||
        !find_runs(tree, elements, (int32_t)count, arena) ||
        !find_tables(tree, elements, (int32_t)count, arena))
        return NO_MEMORY;
    find_units(tree, page);
    find_places(tree, page);
    return DONE;
}
