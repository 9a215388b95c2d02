/* 3c. The weights of text blocks, and which are shown: pgsimhash/html/weights.py. */
#include <math.h>

#include "page.h"

#define LEVEL 50.0         /* on a page with this many effective words, half the mean level */
#define FRAME_LEVEL -7.35  /* the logarithm of the mean level of a page that may be boilerplate */
#define OWN_WORDS 6.0      /* a page with fewer words outside the boilerplate has no content */
#define SHOWN 0.1          /* blocks below this share of the largest weight are not shown, */
#define SHOWN_LINKS 0.25   /* nor those below this that are links */
#define LINKS 0.5          /* with a larger share of its words in links, a block is of links */
#define FOOTER_LINKS 0.2   /* with a larger share, a sentence in a footer names categories */
#define SENTENCE_WORDS 8.0 /* a block of this many words between shown blocks is a sentence, a */
#define REMARK_WORDS 4.0   /* plain one in an element of which most is shown a remark */
#define QUESTION_WORDS 3.0 /* a shown title of this many words has an answer */
#define BYLINE_WORDS 15    /* between a title and its text */
#define ITEM_WORDS 5       /* of the title of an item */

/* Set the weights by the levels; return whether the page is nothing but boilerplate. */
static bool find_weights(Page *page) {
    const Element *elements = page->elements.data;
    double whole = 0.0, squares = 0.0, outside = 0.0;
    for (int32_t at = 0; at < page->block_count; at++) {
        const Block *block = page->blocks + at;
        double mass = block->words * block->level;
        whole += mass;
        squares += mass * block->level;
        if (!elements[block->owner].in_frame && !block->has_notice) outside += block->words;
    }
    double own = squares / whole / (1.0 + LEVEL * squares / (whole * whole));
    for (int32_t at = 0; at < page->block_count; at++)
        page->blocks[at].weight = page->blocks[at].level / (page->blocks[at].level + own);
    return squares < exp(FRAME_LEVEL) * whole && outside < OWN_WORDS;
}

/* _show(): the geometric mean of a block's weight and the mean weight in its element's parent
 * decides; a heading is shown if the block behind it is, or one behind a byline, and so is the
 * title of an item; what is apart is not. */
static void show_blocks(Page *page) {
    Element *elements = page->elements.data;
    double heaviest = 0.0;
    for (int32_t at = 0; at < page->block_count; at++) {
        const Block *block = page->blocks + at;
        elements[block->owner].mass += block->words * block->weight;
        heaviest = larger(heaviest, block->weight);
    }
    for (int32_t place = element_count(page) - 1; place > 0; place--)
        elements[elements[place].parent].mass += elements[place].mass;
    int32_t behind = 0, between = BYLINE_WORDS + 1;
    for (int32_t at = page->block_count - 1; at >= 0; at--) {
        const Block *block = page->blocks + at;
        const Element *element = elements + block->owner, *parent = elements + element->parent;
        double least = block->linked > LINKS * block->words ? SHOWN_LINKS : SHOWN;
        double squared = block->weight * (parent->mass / parent->words);
        bool shown = squared >= square(least * heaviest);
        bool is_item = squared >= square(SHOWN * heaviest) && block->words >= ITEM_WORDS &&
                       is_listed(block);
        bool is_title = (element->flags | parent->flags) & IS_TITLE;
        bool is_text = !(elements[behind].flags & IS_TITLE) && holds(elements, parent->parent, behind);
        bool is_near = between == 0 || (between <= BYLINE_WORDS && is_text);
        if (!block->is_apart && (shown || ((is_title || is_item) && is_near)))
            page->shown[block->place] = 1;
        if (page->shown[block->place] && (shown || is_title)) {
            behind = block->owner, between = 0;
        } else if (between <= BYLINE_WORDS) {
            between += is_title ? BYLINE_WORDS + 1 : block->words;
        }
    }
}

/* Return the number of the block above a block and above what is in its main or article element. */
static int32_t place_above(const Page *page, const Block *block) {
    const Element *elements = page->elements.data;
    int32_t around = block->owner;
    while (around && !(elements[around].flags & IS_CONTENT)) around = elements[around].parent;
    return around ? elements[around].start - 1 : block->place;
}

static bool is_answer_of(const Element *elements, const Block *block, const Block *title) {
    const Element *element = elements + title->owner, *around = elements + element->parent;
    uint32_t tag = element->flags & IS_TITLE ? element->flags : around->flags;
    return tag & IS_TITLE && !(tag & IS_H1) && title->words >= QUESTION_WORDS &&
           title->linked == 0.0 && holds(elements, around->parent, block->owner) &&
           block->letters + block->numbers == block->words &&
           !(elements[block->owner].flags & IS_TITLE);
}

static void show_notes(Page *page) {
    Element *elements = page->elements.data;
    int32_t count = page->block_count, first = 0, second = 0, last = 0, title = count;
    for (int32_t at = count - 1; at >= 0; at--) {
        const Block *block = page->blocks + at;
        if (elements[block->owner].flags & IS_H1) title = at;
        if (!page->shown[block->place]) continue;
        elements[block->owner].seen += block->words;
        second = last ? first : at;
        first = at;
        if (at > last) last = at;
    }
    for (int32_t place = element_count(page) - 1; place > 0; place--)
        elements[elements[place].parent].seen += elements[place].seen;
    if (title > first) title = first;
    int32_t above = place_above(page, page->blocks + first);
    for (int32_t at = 0; at < count; at++) {
        const Block *block = page->blocks + at;
        const Element *element = elements + block->owner;
        const Element *around =
            elements + (element->note ? element->note : larger_around(elements, element));
        bool is_mostly = around->seen > LINKS * (around->words - around->linked);
        const double *levels = element->levels;
        if (block->is_apart || block->has_notice || block->has_privacy ||
            block->linked > LINKS * block->words)
            continue;
        double over = larger(levels[HIDDEN_NAMES], levels[OVERLAY_NAMES]);
        double over_or_beside = larger(over, larger(levels[BESIDE_NAMES], levels[BESIDE_TAGS]));
        bool is_in_text;
        if (element->note) {
            is_in_text = (title < at && at < last) || (element->note > 1 && is_mostly);
        } else if (levels[IN_ARTICLE] > 0.0 &&
                   larger(levels[FOOTER_NAMES], levels[FOOTER_TAG]) > 0.5) {
            is_in_text = first < at && block->letters >= SENTENCE_WORDS && over_or_beside <= 0.5 &&
                         block->linked <= FOOTER_LINKS * block->words;
        } else {
            bool is_title = element->flags & IS_H1;
            /* A teaser without links between the title and the text is the lead. */
            const Element *teaser =
                element->names & NAMED_TEASER ? element : elements + element->parent;
            bool is_lead = teaser->names & NAMED_TEASER && title < at && at < second &&
                           !teaser->linked;
            bool is_text = block->words >= SENTENCE_WORDS && (is_lead || !element->in_frame);
            bool is_short = block->words < SENTENCE_WORDS;
            bool is_answer = is_short && at && page->shown[block[-1].place] &&
                             is_answer_of(elements, block, block - 1);
            if (is_answer || (is_mostly && block->words >= REMARK_WORDS && is_short))
                is_text = (is_answer || block->letters == block->words) && block->linked == 0.0 &&
                          block->legal == 0.0 && !element->in_frame;
            /* The lead may be in the header of the article, too. */
            if (levels[IN_ARTICLE] > 0.0 && levels[HEADER] > 0.5 && over_or_beside <= 0.5)
                is_text = block->letters >= SENTENCE_WORDS;
            double beside = is_title ? larger(over, levels[BESIDE_TAGS]) : over_or_beside;
            is_in_text = above < block->place && (at < last || is_answer) && (is_text || is_title) &&
                         (is_lead || first < at ? over : beside) <= 0.5;
        }
        if (is_in_text) page->shown[block->place] = 1;
    }
}

static Status weigh_blocks(Page *page, const Tables *tables, Arena *arena) {
    Status status = look_around(page, arena);
    if (status == DONE) status = find_levels(page, tables, arena);
    if (status != DONE) return status;
    bool is_frame_only = find_weights(page);
    show_blocks(page);
    find_blocks_of_elements(page);
    show_notes(page);
    if (!show_whole_elements(page, arena)) return NO_MEMORY;
    for (int32_t at = 0; at < page->block_count; at++)
        page->blocks[at].counted = page->shown[page->blocks[at].place] && !is_frame_only;
    Token *tokens = page->tokens.data;
    for (int32_t i = 0; i < token_count(page); i++)
        if (tokens[i].kind == VOLATILE && is_listed(page->blocks + tokens[i].block))
            tokens[i].kind = LISTED;
    return DONE;
}

Status weigh(Page *page, const Tables *tables) {
    page->shown = arena_zeros(&page->arena, (size_t)all_block_count(page), 1);
    if (page->shown == NULL) return NO_MEMORY;
    if (page->block_count == 0) return DONE;
    Arena arena = {0};
    Status status = weigh_blocks(page, tables, &arena);
    arena_free(&arena);
    return status;
}
