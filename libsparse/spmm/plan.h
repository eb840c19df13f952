/* A plan as the files that multiply with it see it. */
#ifndef SPARSE_SPMM_PLAN_H
#define SPARSE_SPMM_PLAN_H

#include "core/internal.h"

struct sp_spmm_plan {
    sp_context *context;
    sp_spmm_options options; /* the caller's, without the transpose */
    sp_spmm_info info;       /* the back end may change it at a product */
    sp_csr a;                /* what the back end multiplies with; its arrays are the caller's or those below */
    sp_csr own;              /* A copied to the back end's space, or transposed; NULL arrays: the caller's serve */
    void *values;            /* of sp_spmm_plan_set_values; NULL: none were set */
    int64_t *places;         /* transposed: where each entry stands in A */
    void *state;             /* the back end's */
};

/* Whether the reduction is a maximum or minimum, which has an argument. */
static inline bool spmm_is_extreme(const sp_spmm_options *options)
{
    return options->reduce == SP_REDUCE_MAX || options->reduce == SP_REDUCE_MIN;
}

#endif
