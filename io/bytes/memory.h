/* Arrays that grow, also within parallel regions. */
#ifndef IO_BYTES_MEMORY_H
#define IO_BYTES_MEMORY_H

#include "io.h"

/* Allocation that may happen inside a parallel region: the context is used by one thread at a time. */
sp_status io_grow(sp_context *context, int64_t used, int64_t count, size_t size, void **pointer);
/* The capacity that an array grows to: twice what it is, by an eighth where it is large, which costs little as such
 * arrays are moved by remapping pages. */
int64_t io_capacity_for(int64_t capacity, int64_t needed);
/* Ensures room for `needed` elements; *capacity follows. */
sp_status io_reserve(sp_context *context, int64_t used, int64_t needed, size_t size, int64_t *capacity,
                     void **pointer);

#endif
