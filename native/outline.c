/* 1. The outline of a page: pgsimhash/html/blocks.py, outline().
 *
 * The text has the signs of pgsimhash/hashing/tokens.py: runs of one NUL begin a block, of two and
 * three enclose a link, of four are a copyright sign, and of five precede a telephone number. The
 * text of libxml2 contains no NUL.
 */

#include "characters.h"
#include "page.h"

#define NAMED_MAX 50000

typedef enum { NO_LINK, A_LINK, A_CALL } Link;

/* Where a walk is: the innermost block element and the innermost element of any kind. */
typedef struct {
    int32_t element, entered;
    Link in_link;
    bool in_pre, is_block; /* whether the element of any kind is a block element */
} Place;

/* `open` has the places around this one; `goes_on`: a text continues the last text block. */
typedef struct {
    Page *page;
    const Tables *tables;
    Buffer open;
    Place at;
    bool goes_on;
    Tag tags[TAGS_KEPT];
} Walk;

/* Add a text with its copyright signs (U+00A9, C2 A9 in UTF-8) as the fourth sign. */
static bool add_marking_signs(Buffer *into, const uint8_t *text, const uint8_t *end) {
    const uint8_t *from = text, *at = text;
    while ((at = memchr(at, 0xC2, (size_t)(end - at))) != NULL) {
        if (at[1] != 0xA9) {
            at++;
            continue;
        }
        if (!buffer_add(into, from, (size_t)(at - from)) || !buffer_add(into, " \0\0\0\0 ", 6))
            return false;
        at += 2;
        from = at;
    }
    return buffer_add(into, from, (size_t)(end - from));
}

/* Add a text to the last text block, or begin the next one. */
static Status add_text(void *state, const uint8_t *text, const uint8_t *end) {
    Walk *walk = state;
    Buffer *into = &walk->page->text;
    bool is_blank = skip_space(text, end) == end, fits = true;
    if (is_blank) return !walk->goes_on || buffer_add(into, " ", 1) ? DONE : NO_MEMORY;
    if (!walk->goes_on)
        fits = buffer_add(&walk->page->owners, &walk->at.element, sizeof walk->at.element) &&
               buffer_add(into, " \0 ", 3);
    walk->goes_on = true;
    Piece piece = {all_block_count(walk->page) - 1, walk->at.entered};
    fits = fits && buffer_add(&walk->page->pieces, &piece, sizeof piece);
    if (walk->at.in_link) fits = fits && buffer_add(into, " \0\0 ", 4);
    if (walk->at.in_link == A_CALL) fits = fits && buffer_add(into, " \0\0\0\0\0 ", 7);
    fits = fits && add_marking_signs(into, text, end);
    if (walk->at.in_link) fits = fits && buffer_add(into, " \0\0\0 ", 5);
    return fits ? DONE : NO_MEMORY;
}

/* Read the attributes of an element: whether it is hidden, and what a block's names say. */
static Status look_at(Walk *walk, const Node *node, const Tag *tag, bool is_block, Element *block) {
    if (tag->flags & (TAG_NEVER_TEXT | TAG_EMPTY)) return HIDDEN;
    if (is_block && element_count(walk->page) <= NAMED_MAX)
        return names_of(node, walk->tables, walk->page, &block->names, &block->first);
    return is_hidden(node);
}

static const Node *attribute_of(const Node *element, const char *name) {
    const Node *attribute = element->properties;
    while (attribute != NULL && strcmp((const char *)attribute->name, name) != 0)
        attribute = attribute->next;
    return attribute;
}

/* Whether an `a` is a link, _is_link(), and to a telephone number. */
static Status link_of(const Node *node, Link *link) {
    const Node *around = node->parent, *href = attribute_of(node, "href");
    bool is_title = href == NULL && around->type == NODE_ELEMENT &&
                    attribute_of(around, "aria-expanded") != NULL;
    *link = is_title ? NO_LINK : A_LINK;
    if (href == NULL) return DONE;
    const char *value = (const char *)attribute_value(href);
    if (value == NULL) return UNSUPPORTED;
    if (strncmp(value, "tel:", 4) == 0 || strncmp(value, "fax:", 4) == 0) *link = A_CALL;
    return DONE;
}

/* An element begins, or is skipped. */
static Status begin(void *state, const Node *node) {
    Walk *walk = state;
    Page *page = walk->page;
    const Tag *tag = tag_of(walk->tags, walk->tables, node);
    bool is_block = tag->flags & TAG_BLOCK, in_pre = walk->at.in_pre;
    if (walk->goes_on && ((tag->flags & TAG_EMPTY) || (in_pre && is_block)) &&
        !buffer_add(&page->text, " ", 1))
        return NO_MEMORY;
    is_block = is_block && !in_pre;
    int32_t count = element_count(page);
    Element element = {.parent = walk->at.element, .end = count + 1, .tag = tag->number,
                       .flags = tag->flags};
    Status status = look_at(walk, node, tag, is_block, &element);
    walk->goes_on = walk->goes_on && !is_block;
    if (status == HIDDEN && !(tag->flags & (TAG_NEVER_TEXT | TAG_EMPTY)) &&
        !buffer_add(&page->hidden, &node, sizeof node))
        return NO_MEMORY;
    if (status != DONE) return status;
    if (!buffer_add(&walk->open, &walk->at, sizeof walk->at) ||
        !buffer_add(&page->entered, &walk->at.entered, sizeof walk->at.entered) ||
        (is_block && !buffer_add(&page->elements, &element, sizeof element)))
        return NO_MEMORY;
    walk->at.entered = entered_count(page) - 1;
    if (is_block) walk->at.element = count;
    walk->at.is_block = is_block;
    walk->at.in_pre = in_pre || tag->flags & IS_CODE;
    if (!walk->at.in_link && tag->flags & TAG_LINK) status = link_of(node, &walk->at.in_link);
    return status;
}

/* The last element that was entered ends. */
static Status end(void *state, const Node *node) {
    Walk *walk = state;
    if (walk->at.is_block) {
        Element *elements = walk->page->elements.data;
        elements[walk->at.element].end = element_count(walk->page);
        walk->goes_on = false;
    }
    walk->open.size -= sizeof(Place);
    walk->at = ((const Place *)walk->open.data)[walk->open.size / sizeof(Place)];
    /* Each line of code may be an element. */
    bool is_unsupported = false;
    bool is_line = walk->at.in_pre && walk->goes_on &&
                   tag_of(walk->tags, walk->tables, node)->flags & TAG_BLOCK &&
                   element_from(node->children, &is_unsupported) != NULL;
    return !is_line || buffer_add(&walk->page->text, " ", 1) ? DONE : NO_MEMORY;
}

Status read_outline(Page *page, const Tables *tables, const Node *body) {
    Walk walk = {.page = page, .tables = tables, .at.entered = -1};
    Element whole = {0};
    const uint8_t *unnamed = (const uint8_t *)"";
    int32_t number;
    if (!table_start(&page->first_names, 256) ||
        table_number(&page->first_names, unnamed, 0, HASH_START, &number) != DONE ||
        !buffer_reserve(&page->elements, 64 * sizeof whole) ||
        !buffer_reserve(&page->text, 16 << 10) ||
        !buffer_add(&page->elements, &whole, sizeof whole))
        return NO_MEMORY;
    Status status = walk_through(body, begin, end, add_text, &walk);
    ((Element *)page->elements.data)->end = element_count(page);
    buffer_free(&walk.open);
    return status;
}
