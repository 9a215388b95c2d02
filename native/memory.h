/* Buffers that grow, arrays that are freed together, and tables of strings and of numbers. */
#ifndef PGSIMHASH_MEMORY_H
#define PGSIMHASH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How a step ends. DONE is 0. */
typedef enum {
    DONE,
    HIDDEN,      /* the element is not visible */
    UNSUPPORTED, /* the page has something that only the Python code reads */
    NO_MEMORY,
    RAISED /* a Python exception is set */
} Status;

typedef struct {
    void *data;
    size_t size, room; /* in bytes */
} Buffer;

bool buffer_reserve(Buffer *buffer, size_t more);
void buffer_free(Buffer *buffer);

static inline bool buffer_add(Buffer *buffer, const void *data, size_t size) {
    if (size > buffer->room - buffer->size && !buffer_reserve(buffer, size)) return false;
    if (size) memcpy((uint8_t *)buffer->data + buffer->size, data, size);
    buffer->size += size;
    return true;
}

/* Arrays that are freed together. A failed allocation returns NULL and sets `failed`, so that one
 * check after several allocations is enough. */
typedef struct ArenaChunk ArenaChunk;
typedef struct {
    ArenaChunk *last;
    bool failed;
} Arena;

void *arena_zeros(Arena *arena, size_t count, size_t size);
void arena_free(Arena *arena);

/* Strings and a number for each. */
typedef struct {
    uint32_t hash, length, offset;
    int32_t value; /* -1 in an empty slot */
} Slot;
typedef struct {
    Slot *slots;
    uint32_t mask, count;
    Buffer keys;
} Table;
static inline const uint8_t *key_at(const Table *table, uint32_t offset) {
    return (const uint8_t *)table->keys.data + offset;
}

#define HASH_START 2166136261u
static inline uint32_t hash_add(uint32_t hash, uint8_t byte) { return (hash ^ byte) * 16777619u; }
uint32_t hash_of(const uint8_t *string, size_t length);
bool table_start(Table *table, uint32_t slots);
Status table_number(Table *table, const uint8_t *string, size_t length, uint32_t hash,
                    int32_t *number);
bool table_set(Table *table, const uint8_t *string, size_t length, int32_t value);
int32_t table_get(const Table *table, const uint8_t *string, size_t length, int32_t missing);
void table_free(Table *table);

/* Numbers 0, 1, 2, ... for distinct keys, at most as many as the map was made for. */
typedef struct {
    uint64_t *keys;
    int32_t *numbers; /* -1 in an empty slot */
    uint32_t mask, count;
} Map;

bool map_start(Map *map, Arena *arena, size_t most);
Status map_number(Map *map, uint64_t key, int32_t *number);

#endif
