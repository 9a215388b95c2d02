/* 4. The simhash of a page's structure: pgsimhash/html/blocks.py, structure_simhash().
 *
 * Its features are the distinct paths of containers, "/body/main", and the distinct pairs of a
 * container and the one around it, "body>main". Each has one vote.
 */

#include "hashes.h"
#include "page.h"

#define DEPTH_MAX 32 /* the most containers of a path */
#define TAG_LENGTH_MAX 32

typedef struct {
    const uint8_t *name;
    size_t length;
} Tag;

typedef struct {
    Tag tags[TAGS_MAX];
    bool paired[TAGS_MAX][TAGS_MAX];
    int32_t ones[64], total;
} Ballot;

/* The path, the last container and the number of containers of an element. */
typedef struct {
    int32_t path, tag, depth;
} State;

/* A path is the one above and a tag; path 0 is empty. */
typedef struct {
    int32_t above, tag;
} Path;

static void cast(Ballot *ballot, const uint8_t *feature, size_t length) {
    uint64_t hash = murmur_64(feature, length);
    ballot->total++;
    for (int bit = 0; bit < 64; bit++) ballot->ones[bit] += (int32_t)(hash >> bit & 1);
}

static void cast_pair(Ballot *ballot, int32_t above, int32_t tag) {
    if (ballot->paired[above][tag]) return;
    ballot->paired[above][tag] = true;
    uint8_t text[2 * TAG_LENGTH_MAX + 1];
    Tag outer = ballot->tags[above], inner = ballot->tags[tag];
    if (outer.length) memcpy(text, outer.name, outer.length);
    text[outer.length] = '>';
    memcpy(text + outer.length + 1, inner.name, inner.length);
    cast(ballot, text, outer.length + 1 + inner.length);
}

static void cast_path(Ballot *ballot, const Path *paths, int32_t path) {
    uint8_t text[DEPTH_MAX * (TAG_LENGTH_MAX + 1)];
    size_t at = sizeof text;
    for (; path > 0; path = paths[path].above) {
        Tag tag = ballot->tags[paths[path].tag];
        at -= tag.length;
        memcpy(text + at, tag.name, tag.length);
        text[--at] = '/';
    }
    cast(ballot, text + at, sizeof text - at);
}

/* The names of the tags, by number; number 0 is the page's, an empty name. */
static bool find_tags(const Tables *tables, Ballot *ballot) {
    const Table *names = &tables->block_tags;
    for (uint32_t i = 0; i <= names->mask; i++) {
        const Slot *slot = names->slots + i;
        if (slot->value == -1) continue;
        if (slot->value >= TAGS_MAX || slot->length > TAG_LENGTH_MAX) return false;
        ballot->tags[slot->value] = (Tag){names->keys.data + slot->offset, slot->length};
    }
    return true;
}

static Status cast_all(const Page *page, Ballot *ballot, Arena *arena) {
    int32_t count = element_count(page);
    const Element *elements = elements_of(page);
    State *states = arena_zeros(arena, (size_t)count, sizeof *states);
    Path *paths = arena_zeros(arena, (size_t)count, sizeof *paths);
    Map map;
    if (!map_start(&map, arena, (size_t)count)) return NO_MEMORY;
    cast_path(ballot, paths, 0);
    for (int32_t i = 1; i < count; i++) {
        /* Other elements have the state of the container around them. */
        State state = states[elements[i].parent];
        int32_t tag = elements[i].tag;
        if (elements[i].flags & TAG_CONTAINER) {
            cast_pair(ballot, state.tag, tag);
            if (state.depth < DEPTH_MAX) {
                uint32_t known = map.count;
                int32_t number;
                Status status = map_number(&map, (uint64_t)state.path << 32 | (uint32_t)tag,
                                           &number);
                if (status != READ_IT) return status;
                paths[number + 1] = (Path){state.path, tag};
                if (map.count > known) cast_path(ballot, paths, number + 1);
                state.path = number + 1;
            }
            state.tag = tag;
            state.depth++;
        }
        states[i] = state;
    }
    return READ_IT;
}

Status structure_simhash(Page *page, const Tables *tables) {
    Arena arena = {0};
    Ballot *ballot = arena_zeros(&arena, 1, sizeof *ballot);
    Status status = NO_MEMORY;
    if (ballot != NULL)
        status = find_tags(tables, ballot) ? cast_all(page, ballot, &arena) : RARE;
    for (int bit = 0; bit < 64 && status == READ_IT; bit++)
        if (2 * ballot->ones[bit] > ballot->total) page->structure |= 1ULL << bit;
    arena_free(&arena);
    return status;
}
