/* Lists of nodes one after another: clusters while they are made. */
#ifndef MCL_LISTS_H
#define MCL_LISTS_H

#include "mcl.h"

typedef struct lists {
    int64_t count, offsets_capacity, members_capacity;
    int64_t *offsets; /* count + 1 */
    int32_t *members;
} lists;

void lists_free(sp_context *context, lists *l);
/* Makes room for one more list of `length` members. */
sp_status lists_reserve(sp_context *context, lists *l, int64_t length);
/* Brings the lists into the order asked for, without empty ones. */
sp_status lists_order(sp_context *context, mcl_sort sort, lists *clusters);

static inline int64_t lists_length(const lists *l, int64_t i) { return l->offsets[i + 1] - l->offsets[i]; }

#endif
