/* Memory that is taken from a context by several threads, and arrays that grow. */
#include "bytes/memory.h"

enum { LARGE_CAPACITY = 1 << 16 }; /* from here on arrays grow by an eighth */

sp_status io_grow(sp_context *context, int64_t used, int64_t count, size_t size, void **pointer)
{
    sp_status status;
#pragma omp critical(io_context)
    status = sp_grow(context, used, count, size, pointer);
    return status;
}

int64_t io_capacity_for(int64_t capacity, int64_t needed)
{
    const int64_t grown = capacity + (capacity < LARGE_CAPACITY ? capacity : capacity / 8) + 64;
    return grown < needed ? needed : grown;
}

sp_status io_reserve(sp_context *context, int64_t used, int64_t needed, size_t size, int64_t *capacity,
                     void **pointer)
{
    if (needed <= *capacity) return SP_OK;
    const int64_t count = io_capacity_for(*capacity, needed);
    sp_status status = io_grow(context, used, count, size, pointer);
    if (status == SP_OK) *capacity = count;
    return status;
}

void *io_zlib_allocate(void *context, unsigned count, unsigned size)
{
    void *pointer = NULL;
    return io_grow(context, 0, (int64_t)count, size, &pointer) == SP_OK ? pointer : NULL;
}

void io_zlib_release(void *context, void *pointer)
{
#pragma omp critical(io_context)
    sp_free(context, pointer);
}
