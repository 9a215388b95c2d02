/* 3a. The context of text blocks: pgsimhash/html/page_words.py, look_around() and places_of().
 *
 * Parents precede their children, so one pass in document order passes values down, and one in
 * reverse order sums up what is below.
 */
#include <math.h>

#include "page.h"

static void sum_up(Page *page) {
    Element *elements = page->elements.data;
    for (int32_t at = 0; at < page->block_count; at++) {
        const Block *block = page->blocks + at;
        Element *element = elements + block->owner;
        element->own += block->words;
        element->linked += block->linked;
        element->notices += block->has_notice;
    }
    for (int32_t place = element_count(page) - 1; place > 0; place--) {
        Element *element = elements + place, *parent = elements + element->parent;
        element->words += element->own;
        parent->words += element->words;
        parent->linked += element->linked;
        parent->notices += element->notices;
        if (element->flags & IS_PARAGRAPH) parent->prose += element->words - element->linked;
    }
    elements[0].words += elements[0].own;
}

/* The words of a table or list, without most of those in links. */
static double unlinked(const Element *element) {
    return larger(element->words - 0.8 * element->linked, 0.0);
}

/* Group siblings with the same tag and first name. */
static Status find_siblings(Page *page, Arena *arena) {
    int32_t count = element_count(page);
    Siblings *groups = arena_zeros(arena, (size_t)count, sizeof *groups);
    Map map;
    if (!map_start(&map, arena, (size_t)count)) return NO_MEMORY;
    for (int32_t place = 0; place < count; place++) {
        Element *element = (Element *)page->elements.data + place;
        /* 31 bits, 7 bits (TAGS_MAX) and 26 bits (NAMED_MAX). */
        uint64_t key = (uint64_t)element->parent << 33 | (uint64_t)element->tag << 26 |
                       (uint64_t)element->first;
        int32_t number;
        Status status = map_number(&map, key, &number);
        if (status != DONE) return status;
        element->siblings = groups + number;
        element->siblings->filled += element->words > 0.0;
        element->siblings->words += element->words;
        element->siblings->unlinked += unlinked(element);
    }
    return DONE;
}

/* ---- _inherit() ---- */

/* The nearest element around one that has more words, or the page. */
int32_t larger_around(const Element *elements, const Element *element) {
    int32_t around = element->parent;
    while (around && elements[around].words == element->words) around = elements[around].parent;
    return around;
}

/* The features of an element by its names and tags; `before`: the unlinked words of the paragraphs
 * before it. */
static void read_names(const Element *elements, const Element *element, double before,
                       double *levels) {
    uint32_t flags = element->flags, names = element->names;
    if (names || flags & (IS_BESIDE | IS_FOOTER | IS_HEADER | IS_CONTENT)) {
        double share = pow(element->words / elements->words / 0.3, 4.0);
        double named = 1.0 / (1.0 + share), tagged = 1.0 / (1.0 + share / 16.0);
        double over = 1.0 / (1.0 + share * pow(0.3 / 0.9, 4.0));
        double header = names & NAMED_HEADER ? named : 0.0;
        levels[BESIDE_NAMES] = names & NAMED_BESIDE ? named : 0.0;
        levels[BESIDE_TAGS] = flags & IS_BESIDE ? tagged : 0.0;
        levels[OVERLAY_NAMES] = names & NAMED_OVERLAY ? over : 0.0;
        levels[HIDDEN_NAMES] = names & NAMED_HIDDEN ? over : 0.0;
        levels[HEADER] = flags & IS_HEADER ? larger(header, tagged) : header;
        levels[CONTENT_NAMES] = (names & NAMED_CONTENT) || (flags & IS_CONTENT);
        levels[FOOTER_NAMES] = names & NAMED_FOOTER ? named : 0.0;
        levels[FOOTER_TAG] = flags & IS_FOOTER ? tagged : 0.0;
        bool is_frame = names & (NAMED_BESIDE | NAMED_FOOTER | NAMED_APART);
        levels[FRAME] = is_frame ? over : flags & (IS_BESIDE | IS_FOOTER) ? tagged : 0.0;
        levels[IN_ARTICLE] = (flags & IS_ARTICLE) != 0;
    }
    if (names & NAMED_APART) {
        double prose = elements[larger_around(elements, element)].prose;
        double here = 1.0 / (1.0 + pow(20.0 / larger(prose, 1.0), 4.0));
        if (names & NAMED_BELOW) {
            double inside = element->words - element->linked;
            double outside = elements->words - elements->linked - inside;
            double below = 1.0 / (1.0 + pow(10.0 / larger(before, 1.0), 4.0));
            double small = 1.0 / (1.0 + pow(3.0 * inside / larger(outside, 1.0), 8.0));
            here = larger(here, 0.55) * larger(below, small);
        }
        bool is_paragraph = flags & IS_PARAGRAPH;
        double alike = is_paragraph ? element->siblings->words : element->words;
        double most = names & (NAMED_BELOW | NAMED_OVERLAY) && !is_paragraph ? 0.9 : 0.6;
        levels[APART] = here / (1.0 + pow(alike / elements->words / most, 16.0));
    }
    if (element->notices > 0.0)
        levels[COPYRIGHT_ELEMENT] = 1.0 / (1.0 + square(element->words / 80.0));
}

static int32_t place_of_note(const Element *elements, const Element *element) {
    static const int sides[] = {BESIDE_NAMES, BESIDE_TAGS, OVERLAY_NAMES,
                                HIDDEN_NAMES, FOOTER_NAMES, FOOTER_TAG};
    uint32_t names = element->names;
    int32_t around = element->parent;
    bool is_note = names & NAMED_NOTE && !(names & (NAMED_APART | NAMED_OVERLAY));
    bool is_aside = element->flags & IS_ASIDE && !names;
    if (!(is_note || is_aside)) return 0;
    for (size_t side = 0; side < sizeof sides / sizeof *sides; side++)
        if (elements[around].levels[sides[side]] > 0.5) return 0;
    around = larger_around(elements, element);
    return is_note && around ? around : 1;
}

static double run_likelihood(const Element *element) {
    double many = element->siblings->filled;
    if (many < 3.0 || element->flags & (IS_COMMON | IS_CELL)) return 0.0;
    return (1 - 1 / many) / (1 + square(element->siblings->words / many / 40));
}

double table_likelihood(const Element *table) {
    double rows = table->inside.rows, cells = table->inside.cells;
    if (rows < 2.0 || cells < 4.0) return 0.0;
    return (1 - 1 / rows) / (1 + square(table->words / cells / 15)) / (1 + table->inside.tables);
}

/* The table of an element, its row, and what it is in a table around it. */
static void find_table(Element *elements, Element *element) {
    uint32_t flags = element->flags;
    int32_t place = (int32_t)(element - elements), around = elements[element->parent].table;
    element->table = flags & IS_TABLE ? place : around;
    element->row = elements[element->parent].row;
    if (flags & (IS_TABLE | IS_ROW)) element->row = flags & IS_ROW ? place : 0;
    if (!around) return;
    Inside *inside = &elements[around].inside;
    inside->tables += (flags & IS_TABLE) != 0;
    inside->rows += (flags & IS_ROW) != 0;
    inside->cells += (flags & IS_CELL) != 0;
    inside->header_cells += (flags & IS_HEADER_CELL) != 0;
    inside->cell_blocks += (flags & IS_CELL_BLOCK) != 0;
}

static void inherit(Page *page) {
    const uint32_t names = NAMED_BESIDE | NAMED_FOOTER | NAMED_HEADER | NAMED_APART;
    const uint32_t tags = IS_BESIDE | IS_FOOTER | IS_HEADER;
    Element *elements = page->elements.data;
    double before = 0.0;
    for (int32_t place = 1; place < element_count(page); place++) {
        Element *element = elements + place;
        const Element *parent = elements + element->parent;
        find_table(elements, element);
        if (element->words == 0.0) continue;
        element->depth = parent->depth + 1;
        double likelihood = run_likelihood(element);
        element->run = likelihood > 0.0 ? place : parent->run;
        /* The cells of a row may be a run within the run of the rows. */
        element->run_words = larger(parent->run_words, likelihood * element->siblings->unlinked);
        double prose = element->words - element->linked;
        bool has_most = prose > 0.5 * (elements->words - elements->linked);
        bool is_frame = (element->flags & tags || (element->names & names && !has_most)) &&
                        element->words < 0.95 * elements->words;
        element->in_frame = parent->in_frame ? parent->in_frame : is_frame * place;
        element->note = parent->note ? parent->note : place_of_note(elements, element);
        read_names(elements, element, before, element->levels);
        for (int level = 0; level < LEVELS; level++)
            element->levels[level] = larger(element->levels[level], parent->levels[level]);
        if (element->flags & IS_PARAGRAPH) before += prose;
    }
}

/* ---- blocks ---- */

/* _find_unit() and the row: the likelihood of a block's table or list, and its unlinked words. Of a
 * list in a cell, or a table in an item, the inner one counts. */
static void find_unit(const Element *elements, Block *block) {
    const Element *element = elements + block->owner, *table = elements + element->table;
    if (element->table > element->run) {
        block->in_table = table_likelihood(table);
        block->unit = block->in_table * unlinked(table);
    } else if (element->run) {
        block->in_run = run_likelihood(elements + element->run);
        block->unit = element->run_words;
    }
    if (!is_listed(block)) return;
    if (block->in_table > 0.0) block->row = element->row;
    else if (elements[element->parent].run == element->parent) block->row = element->parent;
}

/* An h1 counts half with so many words of prose before it in its parent; with fewer between two, the
 * second may be the title. */
#define LEAD_WORDS 20.0
#define FEW 5.0 /* with this many words, `main` and `article` count half */

static void find_places(Page *page) {
    const Element *elements = page->elements.data;
    Block *blocks = page->blocks;
    int32_t count = page->block_count, h1 = count, last = count, main = 0;
    for (int32_t place = 1; place < element_count(page); place++) {
        bool is_larger = !main || elements[place].words > elements[main].words;
        if (elements[place].flags & IS_MAIN && is_larger) main = place;
    }
    double prose = 0.0, before = 0.0, beside = 0.0, best = -1.0;
    for (int32_t at = 0; at < count; at++) {
        const Element *element = elements + blocks[at].owner;
        double rank = 2.0 * element->levels[IN_ARTICLE] + element->levels[CONTENT_NAMES];
        bool is_near = h1 == count || prose - before < LEAD_WORDS;
        if (element->flags & IS_HEADING) last = at;
        if (element->flags & IS_H1 && rank > best && is_near) {
            h1 = at;
            best = rank;
            before = prose;
        }
        prose += blocks[at].words - blocks[at].linked;
    }
    int32_t around = h1 < count ? elements[blocks[h1].owner].parent : 0;
    for (int32_t at = 0; around && at < h1; at++)
        if (elements[blocks[at].owner].parent == around)
            beside += blocks[at].words - blocks[at].linked;
    double share = before / larger(prose, 1.0) / 0.75;
    double title = 1.0 / (1.0 + square(square(square(square(share))))) /
                   (1.0 + pow(beside / LEAD_WORDS, 4.0));
    int32_t above = elements[around].parent, article = around;
    while (article && !(elements[article].flags & IS_ARTICLE)) article = elements[article].parent;
    double of_main = elements[main].words / (elements[main].words + FEW);
    double own = article ? elements[article].words : 0.0, of_article = title * own / (own + FEW);
    for (int32_t at = 0; at < count; at++) {
        Block *block = blocks + at;
        if (h1 < count && at < h1) block->before_h1 = title;
        else if (h1 < count && holds(elements, around, block->owner)) block->under_h1 = title;
        else if (h1 < count && above && holds(elements, above, block->owner))
            block->under_h1 = 0.5 * title;
        block->after_headings =
            at > last && !holds(elements, elements[blocks[last].owner].parent, block->owner);
        block->outside_main = holds(elements, main, block->owner) ? 0.0 : of_main;
        block->outside_article = of_article * (1.0 - elements[block->owner].levels[IN_ARTICLE]);
    }
}

Status look_around(Page *page, Arena *arena) {
    sum_up(page);
    Status status = find_siblings(page, arena);
    if (status != DONE) return status;
    inherit(page);
    for (int32_t at = 0; at < page->block_count; at++)
        find_unit(page->elements.data, page->blocks + at);
    find_places(page);
    return DONE;
}
