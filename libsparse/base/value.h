/* The value of an entry, for both types of values; entries of a pattern are 1. */
#ifndef BASE_VALUE_H
#define BASE_VALUE_H

#include "base/inline.h"
#include "sparse.h"

INLINE double load_value(const void *values, sp_value_type type, int64_t at)
{
    if (!values) return 1;
    return type == SP_F64 ? ((const double *)values)[at] : (double)((const float *)values)[at];
}

/* Rounds to f32 where that is the type. */
INLINE void store_value(void *values, sp_value_type type, int64_t at, double value)
{
    if (type == SP_F64) ((double *)values)[at] = value;
    else ((float *)values)[at] = (float)value;
}

INLINE double entry_value(const sp_csr *matrix, int64_t e) { return load_value(matrix->values, matrix->value_type, e); }

#endif
