/* 3d. Tables, lists, figures and code are shown whole or not at all: pgsimhash/html/weights.py,
 * _show_whole(). */
#include "page.h"

enum { WHOLE = IS_TABLE | IS_LIST | IS_FIGURE | IS_CODE };

/* Cumulative sums, beginning with 0, of blocks and of elements. */
typedef struct {
    int32_t *starts, *stops;      /* of elements: the first block in it, and the one behind */
    int32_t *around;              /* the nearest element around it that holds more blocks, or 0 */
    int32_t *seen, *worded;       /* of blocks: shown ones; those with words */
    double *linked, *words;       /* of blocks with words */
    int32_t *framed;
    int32_t *header_cells, *rows, *cell_blocks, *tables;
} Sums;

/* The blocks of an element are consecutive. */
static void find_places(const Page *page, Sums *sums) {
    int32_t elements = element_count(page), blocks = all_block_count(page);
    const Element *element = elements_of(page);
    const int32_t *owners = owners_of(page);
    for (int32_t i = 0; i < elements; i++) sums->starts[i] = blocks;
    for (int32_t block = blocks - 1; block >= 0; block--) {
        sums->starts[owners[block]] = block;
        if (sums->stops[owners[block]] == 0) sums->stops[owners[block]] = block + 1;
    }
    for (int32_t i = elements - 1; i > 0; i--) {
        int32_t parent = element[i].parent;
        if (sums->starts[i] < sums->starts[parent]) sums->starts[parent] = sums->starts[i];
        if (sums->stops[i] > sums->stops[parent]) sums->stops[parent] = sums->stops[i];
    }
    for (int32_t i = 0; i < elements; i++) {
        int32_t parent = parent_of(element, i);
        if (sums->stops[i] == 0) sums->starts[i] = 0;
        bool is_all = i > 0 && sums->starts[parent] == sums->starts[i] &&
                          sums->stops[parent] == sums->stops[i];
        sums->around[i] = is_all ? sums->around[parent] : parent;
    }
}

static void sum_elements(const Page *page, Sums *sums) {
    const Element *element = elements_of(page);
    for (int32_t i = 0; i < element_count(page); i++) {
        uint32_t flags = element[i].flags;
        sums->header_cells[i + 1] = sums->header_cells[i] + ((flags & IS_HEADER_CELL) != 0);
        sums->rows[i + 1] = sums->rows[i] + ((flags & IS_ROW) != 0);
        sums->cell_blocks[i + 1] = sums->cell_blocks[i] + ((flags & IS_CELL_BLOCK) != 0);
        sums->tables[i + 1] = sums->tables[i] + ((flags & IS_TABLE) != 0);
    }
}

static void sum_blocks(const Page *page, const Tree *tree, Sums *sums) {
    int32_t worded = 0;
    for (int32_t block = 0; block < all_block_count(page); block++) {
        if (worded < page->block_count && page->block_places[worded] == block) worded++;
        sums->seen[block + 1] = sums->seen[block] + page->shown[block];
        sums->worded[block + 1] = worded;
    }
    for (int32_t i = 0; i < page->block_count; i++) {
        sums->linked[i + 1] = sums->linked[i] + page->linked[i];
        sums->words[i + 1] = sums->words[i] + page->counts[i];
        sums->framed[i + 1] = sums->framed[i] + tree->in_frame[page->block_owners[i]];
    }
}

/* _is_data(): header cells, or rows of cells without blocks in them; and no table inside. */
static bool is_data(const Sums *sums, const Element *element, int32_t i) {
    int32_t from = i + 1, to = element[i].end;
    bool has_data = sums->header_cells[to] > sums->header_cells[from] ||
                    (sums->rows[to] - sums->rows[from] > 1 &&
                     sums->cell_blocks[to] == sums->cell_blocks[from]);
    return has_data && sums->tables[to] == sums->tables[from];
}

/* Data tables, lists and code are shown if a part of them is shown or a block next to them; figures
 * and lists of links between shown blocks; boilerplate never. */
static bool is_chosen(const Page *page, const Sums *sums, int32_t i) {
    const Element *element = elements_of(page);
    uint32_t flags = element[i].flags;
    int32_t first = sums->starts[i], last = sums->stops[i];
    if (!(flags & WHOLE) || first == last) return false;
    if ((flags & IS_TABLE) && !is_data(sums, element, i)) return false;
    int32_t near = sums->around[i], wide = parent_of(element, near);
    const int32_t *seen = sums->seen;
    bool between = seen[first] > seen[sums->starts[near]] && seen[sums->stops[near]] > seen[last];
    bool beside = seen[first] > seen[sums->starts[wide]] || seen[sums->stops[wide]] > seen[last];
    int32_t from = sums->worded[first], to = sums->worded[last];
    double linked = sums->linked[to] - sums->linked[from];
    double words = sums->words[to] - sums->words[from];
    bool is_text = linked <= 0.5 * words && !(flags & IS_FIGURE);
    return (between || (is_text && (beside || seen[last] > seen[first]))) &&
           sums->framed[to] == sums->framed[from];
}

static bool allocate(const Page *page, Sums *sums, Arena *arena) {
    size_t elements = (size_t)element_count(page), worded = (size_t)page->block_count;
    size_t blocks = (size_t)all_block_count(page);
    int32_t **of_elements[] = {&sums->starts, &sums->stops, &sums->around, &sums->header_cells,
                               &sums->rows, &sums->cell_blocks, &sums->tables};
    for (size_t i = 0; i < sizeof of_elements / sizeof *of_elements; i++)
        *of_elements[i] = arena_integers(arena, elements + 1);
    sums->seen = arena_integers(arena, blocks + 1);
    sums->worded = arena_integers(arena, blocks + 1);
    sums->linked = arena_doubles(arena, worded + 1);
    sums->words = arena_doubles(arena, worded + 1);
    sums->framed = arena_integers(arena, worded + 1);
    return !arena->failed;
}

/* _show_whole() */
Status show_whole_elements(Page *page, const Tree *tree, Arena *arena) {
    int32_t blocks = all_block_count(page), elements = element_count(page);
    bool any_shown = false, any_whole = false;
    for (int32_t block = 0; block < blocks; block++) any_shown = any_shown || page->shown[block];
    for (int32_t i = 0; i < elements; i++)
        any_whole = any_whole || (elements_of(page)[i].flags & WHOLE);
    if (!any_shown || !any_whole) return DONE;
    Sums sums;
    int32_t *changes = arena_integers(arena, (size_t)blocks + 1);
    if (!allocate(page, &sums, arena)) return NO_MEMORY;
    find_places(page, &sums);
    sum_elements(page, &sums);
    sum_blocks(page, tree, &sums);
    for (int32_t i = 0; i < elements; i++) {
        if (!is_chosen(page, &sums, i)) continue;
        changes[sums.starts[i]]++;
        changes[sums.stops[i]]--;
    }
    int32_t open = 0;
    for (int32_t block = 0; block < blocks; block++) {
        open += changes[block];
        if (open > 0) page->shown[block] = 1;
    }
    return DONE;
}
