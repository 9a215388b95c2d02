/* Buffers that grow, arrays that are freed together, and tables of strings and of numbers. */
#include "memory.h"

#include <stdlib.h>

#include "hashes.h"

/* A page can choose its words so that they collide. A search that takes more steps than this makes
 * the page UNSUPPORTED, and Python's dictionaries read it. */
#define STEPS_MAX 300

bool buffer_reserve(Buffer *buffer, size_t more) {
    if (more <= buffer->room - buffer->size) return true;
    if (more > SIZE_MAX / 4 - buffer->size) return false;
    size_t room = (buffer->size + more) * 2 + 256;
    void *data = realloc(buffer->data, room);
    if (data == NULL) return false;
    buffer->data = data;
    buffer->room = room;
    return true;
}

void buffer_free(Buffer *buffer) {
    free(buffer->data);
    *buffer = (Buffer){0};
}

/* ---- arrays ---- */

struct ArenaChunk {
    struct ArenaChunk *before;
    size_t size, room;
    max_align_t data[];
};

#define CHUNK_ROOM (64u << 10)

void *arena_zeros(Arena *arena, size_t count, size_t size) {
    if (arena->failed || count > SIZE_MAX / 4 / size) {
        arena->failed = true;
        return NULL;
    }
    size_t unit = sizeof(max_align_t), bytes = (count * size + unit) / unit * unit;
    ArenaChunk *chunk = arena->last;
    if (chunk == NULL || bytes > chunk->room - chunk->size) {
        size_t room = chunk == NULL ? CHUNK_ROOM : CHUNK_ROOM * 4;
        if (room < bytes) room = bytes;
        chunk = malloc(sizeof *chunk + room);
        if (chunk == NULL) {
            arena->failed = true;
            return NULL;
        }
        *chunk = (ArenaChunk){.before = arena->last, .size = 0, .room = room};
        arena->last = chunk;
    }
    void *zeros = (uint8_t *)chunk->data + chunk->size;
    chunk->size += bytes;
    return memset(zeros, 0, bytes);
}

void arena_free(Arena *arena) {
    while (arena->last != NULL) {
        ArenaChunk *chunk = arena->last;
        arena->last = chunk->before;
        free(chunk);
    }
    arena->failed = false;
}

/* ---- tables of strings: open addressing, at most half full ---- */

uint32_t hash_of(const uint8_t *string, size_t length) {
    uint32_t hash = HASH_START;
    for (size_t i = 0; i < length; i++) hash = hash_add(hash, string[i]);
    return hash;
}

static uint32_t slot_of(uint32_t hash, uint32_t mask) { return (hash ^ hash >> 15) & mask; }

static Slot *empty_slots(uint32_t count) {
    Slot *slots = malloc(count * sizeof(Slot));
    if (slots != NULL)
        for (uint32_t i = 0; i < count; i++) slots[i].value = -1;
    return slots;
}

/* Empty a table and give it `slots` slots, a power of two. */
bool table_start(Table *table, uint32_t slots) {
    table_free(table);
    table->slots = empty_slots(slots);
    table->mask = slots - 1;
    return table->slots != NULL && buffer_reserve(&table->keys, 8 * (size_t)slots);
}

void table_free(Table *table) {
    free(table->slots);
    buffer_free(&table->keys);
    *table = (Table){0};
}

/* Return the slot of a string or the empty one where it belongs; NULL after STEPS_MAX steps. */
static Slot *find_slot(const Table *table, const uint8_t *string, size_t length, uint32_t hash) {
    uint32_t at = slot_of(hash, table->mask);
    for (int steps = 0; steps < STEPS_MAX; steps++) {
        Slot *slot = table->slots + at;
        if (slot->value == -1) return slot;
        if (slot->hash == hash && slot->length == length &&
            memcmp(key_at(table, slot->offset), string, length) == 0)
            return slot;
        at = (at + 1) & table->mask;
    }
    return NULL;
}

static bool grow(Table *table) {
    uint32_t mask = table->mask * 2 + 1;
    Slot *slots = empty_slots(mask + 1);
    if (slots == NULL) return false;
    for (uint32_t i = 0; i <= table->mask; i++) {
        const Slot *slot = table->slots + i;
        if (slot->value == -1) continue;
        uint32_t at = slot_of(slot->hash, mask);
        while (slots[at].value != -1) at = (at + 1) & mask;
        slots[at] = *slot;
    }
    free(table->slots);
    table->slots = slots;
    table->mask = mask;
    return true;
}

/* Get the number of a string; a new one gets the next number. */
Status table_number(Table *table, const uint8_t *string, size_t length, uint32_t hash,
                    int32_t *number) {
    Slot *slot = find_slot(table, string, length, hash);
    if (slot == NULL) return UNSUPPORTED;
    if (slot->value == -1) {
        if (table->keys.size + length > UINT32_MAX) return UNSUPPORTED;
        if (table->count * 2 > table->mask) {
            if (!grow(table)) return NO_MEMORY;
            slot = find_slot(table, string, length, hash);
            if (slot == NULL) return UNSUPPORTED;
        }
        uint32_t offset = (uint32_t)table->keys.size;
        if (!buffer_add(&table->keys, string, length)) return NO_MEMORY;
        *slot = (Slot){hash, (uint32_t)length, offset, (int32_t)table->count++};
    }
    *number = slot->value;
    return DONE;
}

/* Set the value, 0 or more, of a new string. */
bool table_set(Table *table, const uint8_t *string, size_t length, int32_t value) {
    int32_t number;
    uint32_t hash = hash_of(string, length);
    if (table_number(table, string, length, hash, &number) != DONE) return false;
    find_slot(table, string, length, hash)->value = value;
    return true;
}

int32_t table_get(const Table *table, const uint8_t *string, size_t length, int32_t missing) {
    const Slot *slot = find_slot(table, string, length, hash_of(string, length));
    return slot == NULL || slot->value == -1 ? missing : slot->value;
}

/* ---- numbers of keys ---- */

bool map_start(Map *map, Arena *arena, size_t most) {
    uint32_t slots = 64;
    while (slots < 2 * most) slots *= 2;
    map->keys = arena_zeros(arena, slots, sizeof(uint64_t));
    map->numbers = arena_zeros(arena, slots, sizeof(int32_t));
    map->mask = slots - 1;
    map->count = 0;
    if (arena->failed) return false;
    memset(map->numbers, 0xFF, slots * sizeof(int32_t));
    return true;
}

Status map_number(Map *map, uint64_t key, int32_t *number) {
    uint32_t at = (uint32_t)(murmur_mix(key)) & map->mask;
    for (int steps = 0; steps < STEPS_MAX; steps++) {
        if (map->numbers[at] == -1) {
            map->keys[at] = key;
            map->numbers[at] = (int32_t)map->count++;
        }
        if (map->keys[at] == key) {
            *number = map->numbers[at];
            return DONE;
        }
        at = (at + 1) & map->mask;
    }
    return UNSUPPORTED;
}
