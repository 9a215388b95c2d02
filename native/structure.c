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
} Name;

typedef struct {
    Name tags[TAGS_MAX]; /* by number; that of the page is empty */
    bool paired[TAGS_MAX][TAGS_MAX];
    int32_t ones[64], total;
} Votes;

/* The path, the last container and the number of containers of an element. */
typedef struct {
    int32_t path, tag, depth;
} State;

/* A path is the one above and a tag; path 0 is empty. */
typedef struct {
    int32_t above, tag;
} Path;

static void add_vote(Votes *votes, const uint8_t *feature, size_t length) {
    uint64_t hash = murmur_64(feature, length);
    votes->total++;
    for (int bit = 0; bit < 64; bit++) votes->ones[bit] += (int32_t)(hash >> bit & 1);
}

static void add_pair_vote(Votes *votes, int32_t above, int32_t tag) {
    if (votes->paired[above][tag]) return;
    votes->paired[above][tag] = true;
    uint8_t text[2 * TAG_LENGTH_MAX + 1];
    Name outer = votes->tags[above], inner = votes->tags[tag];
    if (outer.length) memcpy(text, outer.name, outer.length);
    text[outer.length] = '>';
    memcpy(text + outer.length + 1, inner.name, inner.length);
    add_vote(votes, text, outer.length + 1 + inner.length);
}

static void add_path_vote(Votes *votes, const Path *paths, int32_t path) {
    uint8_t text[DEPTH_MAX * (TAG_LENGTH_MAX + 1)];
    size_t at = sizeof text;
    for (; path > 0; path = paths[path].above) {
        Name tag = votes->tags[paths[path].tag];
        at -= tag.length;
        memcpy(text + at, tag.name, tag.length);
        text[--at] = '/';
    }
    add_vote(votes, text + at, sizeof text - at);
}

static Status add_votes(const Page *page, Votes *votes, Arena *arena) {
    size_t count = (size_t)element_count(page);
    const Element *elements = page->elements.data;
    State *states = arena_zeros(arena, count, sizeof *states);
    Path *paths = arena_zeros(arena, count, sizeof *paths);
    Map map;
    if (!map_start(&map, arena, count)) return NO_MEMORY;
    add_path_vote(votes, paths, 0);
    for (size_t i = 1; i < count; i++) {
        /* Other elements have the state of the container around them. */
        State *state = states + i;
        *state = states[elements[i].parent];
        int32_t tag = elements[i].tag, number;
        if (!(elements[i].flags & TAG_CONTAINER)) continue;
        add_pair_vote(votes, state->tag, tag);
        state->tag = tag;
        if (state->depth++ >= DEPTH_MAX) continue;
        uint32_t known = map.count;
        Status status = map_number(&map, (uint64_t)state->path << 32 | (uint32_t)tag, &number);
        if (status != DONE) return status;
        paths[number + 1] = (Path){state->path, tag};
        if (map.count > known) add_path_vote(votes, paths, number + 1);
        state->path = number + 1;
    }
    return DONE;
}

Status structure_simhash(Page *page, const Tables *tables) {
    Votes votes = {0};
    const Table *names = &tables->block_tags;
    for (uint32_t i = 0; i <= names->mask; i++) {
        const Slot *slot = names->slots + i;
        if (slot->value == -1) continue;
        if (slot->value >= TAGS_MAX || slot->length > TAG_LENGTH_MAX) return UNSUPPORTED;
        votes.tags[slot->value] = (Name){key_at(names, slot->offset), slot->length};
    }
    Arena arena = {0};
    Status status = add_votes(page, &votes, &arena);
    for (int bit = 0; bit < 64; bit++)
        page->structure |= (uint64_t)(2 * votes.ones[bit] > votes.total) << bit;
    arena_free(&arena);
    return status;
}
