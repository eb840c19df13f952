/* Hash tables keyed by column (open addressing, linear probing), and sorting of their entries. An entry is packed into
 * 64 bits: the column in the upper half, 32 bits of other data in the lower. */
#ifndef SPARSE_CPU_TABLE_H
#define SPARSE_CPU_TABLE_H

#include <stdint.h>
#include <string.h>

/* Bits of the number of slots that leaves a table at most half full with `entries` entries. `entries` is below 2^27, a
 * sixteenth of the columns. */
static inline int table_bits(int64_t entries)
{
    int bits = 4;
    while ((int64_t)1 << bits < 2 * entries) bits++;
    return bits;
}

/* Multiplicative (Fibonacci) hashing: the upper bits of column × 2^64 / golden ratio. The column is folded first,
 * because the product alone maps columns at distances near a multiple of a Fibonacci number to the same few slots: up
 * to 400 probes a column instead of 1.5. */
static inline uint32_t hash_column(int32_t column, int bits)
{
    const uint64_t folded = (uint64_t)(column ^ column >> 7);
    return (uint32_t)(folded * 0x9E3779B97F4A7C15u >> (64 - bits));
}

/* A table has no columns. */
static inline void clear_keys(int32_t *keys, int bits) { memset(keys, 0xff, ((size_t)1 << bits) * sizeof *keys); }

/* The slot of a column, or the one where it goes, whose key is -1. */
static inline uint32_t table_slot(const int32_t *keys, int bits, int32_t column)
{
    const uint32_t mask = (uint32_t)(((uint64_t)1 << bits) - 1);
    uint32_t at = hash_column(column, bits);
    while (keys[at] != column && keys[at] != -1) at = (at + 1) & mask;
    return at;
}

static inline uint64_t pack_entry(int32_t column, uint32_t load) { return (uint64_t)(uint32_t)column << 32 | load; }

/* Sorts entries with distinct columns below `cols`. `other` has room for as many. Returns the array that holds the
 * result. Insertion sort for short lists, else a radix sort by the bytes that column numbers have. */
static inline uint64_t *sort_entries(uint64_t *list, uint64_t *other, int64_t count, int64_t cols)
{
    if (count <= 32) {
        for (int64_t i = 1; i < count; i++) {
            uint64_t moving = list[i];
            int64_t j = i;
            for (; j > 0 && list[j - 1] > moving; j--) list[j] = list[j - 1];
            list[j] = moving;
        }
        return list;
    }
    for (int shift = 32; shift < 64 && (cols - 1) >> (shift - 32) > 0; shift += 8) {
        uint32_t starts[257] = {0};
        for (int64_t i = 0; i < count; i++) starts[(list[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++) starts[i + 1] += starts[i]; /* rows have fewer than 2^31 entries */
        for (int64_t i = 0; i < count; i++) other[starts[list[i] >> shift & 255]++] = list[i];
        uint64_t *swap = list;
        list = other;
        other = swap;
    }
    return list;
}

#endif
