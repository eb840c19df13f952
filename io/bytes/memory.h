/* Arrays that grow, also within parallel regions. */
#ifndef IO_BYTES_MEMORY_H
#define IO_BYTES_MEMORY_H

#include "io.h"

/* Grows an array, also inside a parallel region: only one thread at a time uses the context. */
sp_status io_grow(sp_context *context, int64_t used, int64_t count, size_t size, void **pointer);
/* The capacity that an array grows to: twice the present one, for large arrays an eighth more. That costs little,
 * because the pages of large arrays are remapped, not copied. */
int64_t io_capacity_for(int64_t capacity, int64_t needed);
/* Ensures room for `needed` elements; *capacity follows. */
sp_status io_reserve(sp_context *context, int64_t used, int64_t needed, size_t size, int64_t *capacity,
                     void **pointer);

/* The memory of zlib, as z_stream wants it; `opaque` is the context. */
void *io_zlib_allocate(void *context, unsigned count, unsigned size);
void io_zlib_release(void *context, void *pointer);

#endif
