/* Bisection in ascending arrays, among the places from `first` to `last`, in O(log(last - first)). */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stdint.h>

#include "base/inline.h"

/* Both return the first place in [first, last) with a property, or `last` if there is none. lower_bound: the element is
 * not below the key. upper_bound: the element is above the key. */
#define DEFINE_BOUNDS(suffix, type)                                                                               \
    INLINE int64_t lower_bound_##suffix(const type *sorted, int64_t first, int64_t last, type key)                \
    {                                                                                                             \
        while (first < last) {                                                                                    \
            const int64_t middle = first + (last - first) / 2;                                                    \
            if (sorted[middle] < key) first = middle + 1;                                                         \
            else last = middle;                                                                                   \
        }                                                                                                         \
        return first;                                                                                             \
    }                                                                                                             \
    INLINE int64_t upper_bound_##suffix(const type *sorted, int64_t first, int64_t last, type key)                \
    {                                                                                                             \
        while (first < last) {                                                                                    \
            const int64_t middle = first + (last - first) / 2;                                                    \
            if (sorted[middle] > key) last = middle;                                                              \
            else first = middle + 1;                                                                              \
        }                                                                                                         \
        return first;                                                                                             \
    }

DEFINE_BOUNDS(i32, int32_t)
DEFINE_BOUNDS(u32, uint32_t)
DEFINE_BOUNDS(i64, int64_t)

/* The row that holds entry e: the last i with offsets[i] <= e. offsets[0] <= e < offsets[rows]. */
INLINE int64_t row_of_entry(const int64_t *offsets, int64_t rows, int64_t e)
{
    return upper_bound_i64(offsets, 0, rows, e) - 1;
}

#endif
