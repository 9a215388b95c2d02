/* MurmurHash3 (Appleby, 2011), as in pgsimhash/hashing/hashes.py. */
#ifndef PGSIMHASH_HASHES_H
#define PGSIMHASH_HASHES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GOLDEN_RATIO 0x9E3779B97F4A7C15ULL

static inline uint64_t rotated(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

/* The 64-bit finalizer: murmur3_mix. */
static inline uint64_t murmur_mix(uint64_t value) {
    value ^= value >> 33;
    value *= 0xFF51AFD7ED558CCDULL;
    value ^= value >> 33;
    value *= 0xC4CEB9FE1A85EC53ULL;
    return value ^ value >> 33;
}

static inline uint64_t little_endian(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* The first 8 bytes of MurmurHash3 x64 128 with seed 0: murmur3_64. */
static inline uint64_t murmur_64(const uint8_t *data, size_t size) {
    const uint64_t c1 = 0x87C37B91114253D5ULL, c2 = 0x4CF5AD432745937FULL;
    uint64_t h1 = 0, h2 = 0;
    size_t at = 0;
    for (; at + 16 <= size; at += 16) {
        h1 ^= rotated(little_endian(data + at) * c1, 31) * c2;
        h1 = (rotated(h1, 27) + h2) * 5 + 0x52DCE729;
        h2 ^= rotated(little_endian(data + at + 8) * c2, 33) * c1;
        h2 = (rotated(h2, 31) + h1) * 5 + 0x38495AB5;
    }
    uint8_t tail[16] = {0};
    if (size > at) memcpy(tail, data + at, size - at);
    h2 ^= rotated(little_endian(tail + 8) * c2, 33) * c1;
    h1 ^= rotated(little_endian(tail) * c1, 31) * c2;
    h1 ^= size;
    h2 ^= size;
    h1 += h2;
    h2 += h1;
    return murmur_mix(h1) + murmur_mix(h2);
}

#endif
