/* 3d. Tables, lists, quotations, figures and code are shown whole or not at all:
 * pgsimhash/html/weights.py, _show_whole(). */
#include "page.h"

/* Sums of the blocks before a place; `framed`: those with words that are in boilerplate. */
typedef struct {
    int32_t shown, framed;
    double linked, words;
} Sums;

void find_blocks_of_elements(Page *page) {
    Element *elements = page->elements.data;
    const int32_t *owners = page->owners.data;
    int32_t count = element_count(page), blocks = all_block_count(page);
    for (int32_t place = 0; place < count; place++) elements[place].start = blocks;
    for (int32_t at = blocks - 1; at >= 0; at--) elements[owners[at]].start = at;
    for (int32_t at = 0; at < blocks; at++) elements[owners[at]].stop = at + 1;
    for (int32_t place = count - 1; place > 0; place--) {
        const Element *element = elements + place;
        Element *parent = elements + element->parent;
        if (element->start < parent->start) parent->start = element->start;
        if (element->stop > parent->stop) parent->stop = element->stop;
    }
    for (int32_t place = 1; place < count; place++) {
        Element *element = elements + place;
        const Element *parent = elements + element->parent;
        bool is_all = parent->start == element->start && parent->stop == element->stop;
        element->larger = is_all ? parent->larger : element->parent;
    }
}

static void sum_blocks(const Page *page, Sums *sums) {
    const Element *elements = page->elements.data;
    for (int32_t at = 0; at < page->block_count; at++) {
        const Block *block = page->blocks + at;
        int32_t frame = elements[block->owner].in_frame;
        bool is_cell = elements[frame].flags & IS_CELL && block->in_table > LISTED_FROM;
        sums[block->place + 1] = (Sums){0, frame && !is_cell, block->linked, block->words};
    }
    for (int32_t at = 0; at < all_block_count(page); at++) {
        sums[at + 1].shown = sums[at].shown + page->shown[at];
        sums[at + 1].framed += sums[at].framed;
        sums[at + 1].linked += sums[at].linked;
        sums[at + 1].words += sums[at].words;
    }
}

static bool is_data(const Element *table) {
    const Inside *inside = &table->inside;
    return table_likelihood(table) > LISTED_FROM ||
           (!inside->tables &&
            (inside->header_cells || (inside->rows > 1 && !inside->cell_blocks)));
}

/* Whether an element with blocks is shown whole. */
static bool is_chosen(const Element *elements, const Element *element, const Sums *sums) {
    Sums from = sums[element->start], to = sums[element->stop];
    if (from.framed < to.framed) return false;
    if (element->flags & IS_TABLE && !is_data(element)) return false;
    if (element->flags & IS_QUOTATION && element->words > 0.5 * elements->words) return false;
    const Element *near = elements + element->larger, *wide = elements + near->parent;
    bool before = sums[near->start].shown < from.shown, behind = to.shown < sums[near->stop].shown;
    bool is_text = to.linked - from.linked <= 0.5 * (to.words - from.words) &&
                   !(element->flags & IS_FIGURE);
    return (before && behind) || (is_text && sums[wide->start].shown < sums[wide->stop].shown);
}

bool show_whole_elements(Page *page, Arena *arena) {
    const Element *elements = page->elements.data;
    int32_t blocks = all_block_count(page), open = 0;
    if (memchr(page->shown, 1, (size_t)blocks) == NULL) return true;
    Sums *sums = arena_zeros(arena, (size_t)blocks + 1, sizeof *sums);
    int32_t *changes = arena_zeros(arena, (size_t)blocks + 1, sizeof *changes);
    if (arena->failed) return false;
    sum_blocks(page, sums);
    for (int32_t place = 1; place < element_count(page); place++) {
        const Element *element = elements + place;
        if (!(element->flags & IS_WHOLE) || element->start >= element->stop ||
            !is_chosen(elements, element, sums))
            continue;
        changes[element->start]++;
        changes[element->stop]--;
    }
    for (int32_t at = 0; at < blocks; at++) {
        open += changes[at];
        if (open > 0) page->shown[at] = 1;
    }
    return true;
}
