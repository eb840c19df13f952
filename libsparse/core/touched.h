/* The set of columns that a row touches: a bit for each column, and, for rows that touch few of many columns, a summary
 * with a bit for each word that is not empty. The columns are read back in ascending order, which clears the set. */
#ifndef SPARSE_CPU_TOUCHED_H
#define SPARSE_CPU_TOUCHED_H

#include <stdint.h>

/* A list must have room for this many columns beyond the touched ones. */
enum { TAKEN_AHEAD = 2 };

/* Lists the bits of a word that is not empty. Three places are written at a time, and their number is the number of
 * bits that were found, because most words have one to three bits and a branch could not be predicted. */
static inline int64_t take_word(uint64_t word, int64_t base, int32_t *columns, int64_t count)
{
    const uint64_t last = (uint64_t)1 << 63; /* the result for an empty word does not matter, but must be defined */
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

/* Lists the columns of words first to end - 1. Returns their number. */
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

/* The same for columns first to end - 1, using the summary. Words that are far apart have one bit nearly always: there
 * the branch is predicted, and one place at a time is faster. */
static inline int64_t take_touched_words(uint64_t *bits, uint64_t *summary, int64_t first, int64_t end,
                                         int32_t *columns)
{
    int64_t count = 0;
    for (int64_t s = first / 4096; s < (end + 4095) / 4096; s++) {
        if (!summary[s]) continue;
        for (uint64_t words = summary[s]; words; words &= words - 1) {
            const int64_t i = s * 64 + __builtin_ctzll(words);
            for (uint64_t word = bits[i]; word; word &= word - 1)
                columns[count++] = (int32_t)(i * 64 + __builtin_ctzll(word));
            bits[i] = 0;
        }
        summary[s] = 0;
    }
    return count;
}

#endif
