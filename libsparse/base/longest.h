/* The longest of rows, or of other stretches that lie one after another. */
#ifndef BASE_LONGEST_H
#define BASE_LONGEST_H

#include <stdint.h>

#include "base/inline.h"

/* The largest difference of two of the count + 1 offsets that follow each other; 0 for a count of 0. */
INLINE int64_t longest_of(const int64_t *offsets, int64_t count)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t length = offsets[i + 1] - offsets[i];
        if (length > longest) longest = length;
    }
    return longest;
}

#endif
