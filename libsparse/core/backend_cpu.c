/* The CPU's back-end table: host memory, OpenMP. */
#include <string.h>

#include "core/backend_cpu.h"

static sp_status allocate(sp_context *context, size_t bytes, void **pointer)
{
    return sp_alloc(context, (int64_t)bytes, 1, pointer);
}

static sp_status copy(sp_context *context, void *to, sp_space to_space, const void *from, sp_space from_space,
                      size_t bytes)
{
    if (to_space != SP_HOST || from_space != SP_HOST)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a CPU context cannot reach device memory");
    memcpy(to, from, bytes);
    return SP_OK;
}

static sp_status number(sp_context *context, int64_t count, int64_t *to)
{
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, count))
    for (int64_t k = 0; k < count; k++) to[k] = k;
    return SP_OK;
}

static sp_status gather(sp_context *context, const int64_t *index, int64_t count, const void *from, size_t size,
                        void *to)
{
    const uint32_t *short_from = from;
    const int64_t *long_from = from;
    const bool narrow = size == sizeof *short_from;
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, 4 * count))
    for (int64_t k = 0; k < count; k++)
        if (narrow) ((uint32_t *)to)[k] = short_from[index[k]];
        else ((int64_t *)to)[k] = index[k] < 0 ? -1 : long_from[index[k]];
    return SP_OK;
}

const sp_backend sp_backend_cpu = {
    .space = SP_HOST,
    .spmm_heads = sp_cpu_spmm_heads,
    .number = number,
    .gather = gather,
    .allocate = allocate,
    .release = sp_free,
    .copy = copy,
#define ENTER(name) .name = sp_cpu_##name,
    SP_OPERATIONS(ENTER)
};
