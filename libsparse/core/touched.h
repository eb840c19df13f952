/* The columns that a row touches: a bit each, and where a row touches few of many, a bit for each word of these that has
 * any. They are read back by ascending number, and none is touched then. */
#ifndef SPARSE_CPU_TOUCHED_H
#define SPARSE_CPU_TOUCHED_H

#include <stdint.h>

/* Columns that a list must have room for beyond those that are touched. */
enum { TAKEN_AHEAD = 2 };

/* Lists the bits of a word that has some. Three places are written at a time and counted by what was there: most
 * words have one to three bits, in no order that a branch could be predicted from. */
static inline int64_t take_word(uint64_t word, int64_t base, int32_t *columns, int64_t count)
{
    const uint64_t last = (uint64_t)1 << 63; /* of an empty word the number does not matter, but there must be one */
    do {
        columns[count++] = (int32_t)(base + __builtin_ctzll(word));
        word &= word - 1;
        columns[count] = (int32_t)(base + __builtin_ctzll(word | last));
        count += word != 0;
        word &= word - 1;
        columns[count] = (int32_t)(base + __builtin_ctzll(word | last));
        count += word != 0;
        word &= word - 1;
    } while (word);
    return count;
}

/* Lists the columns of words first to end - 1; returns how many there are. */
static inline int64_t take_touched(uint64_t *bits, int64_t first, int64_t end, int32_t *columns)
{
    int64_t count = 0;
    for (int64_t i = first; i < end; i++) {
        if (!bits[i]) continue;
        count = take_word(bits[i], i * 64, columns, count);
        bits[i] = 0;
    }
    return count;
}

/* The same for the columns below `cols`, by way of the words that the summary has. */
static inline int64_t take_touched_words(uint64_t *bits, uint64_t *summary, int64_t cols, int32_t *columns)
{
    int64_t count = 0;
    for (int64_t s = 0; s < (cols + 4095) / 4096; s++) {
        for (uint64_t words = summary[s]; words; words &= words - 1) {
            const int64_t i = s * 64 + __builtin_ctzll(words);
            count += take_touched(bits, i, i + 1, columns + count);
        }
        summary[s] = 0;
    }
    return count;
}

#endif
