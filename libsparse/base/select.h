/* Hoare's quickselect, with the median of three as the pivot: O(count) on average. */
#ifndef BASE_SELECT_H
#define BASE_SELECT_H

#include <stdint.h>

#include "base/inline.h"

/* The nth largest of finite values, which are reordered; 1 <= nth <= count. */
INLINE float nth_largest(float *values, int64_t count, int64_t nth)
{
    int64_t low = 0, high = count - 1, target = nth - 1;
    while (low < high) {
        float a = values[low], b = values[low + (high - low) / 2], c = values[high];
        float pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] > pivot) i++;
            while (values[j] < pivot) j--;
            if (i > j) break;
            float swap = values[i];
            values[i++] = values[j];
            values[j--] = swap;
        }
        if (target <= j) high = j;
        else if (target >= i) low = i;
        else return values[target];
    }
    return values[target];
}

#endif
