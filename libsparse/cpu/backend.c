/* The CPU's back-end table: host memory, OpenMP. */
#include <string.h>

#include "backend.h"

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

const sp_backend sp_backend_cpu = {
    .space = SP_HOST,
    .spgemm = sp_cpu_spgemm,
    .spgemm_symbolic = sp_cpu_spgemm_symbolic,
    .spgemm_numeric = sp_cpu_spgemm_numeric,
    .spgemm_forget = sp_cpu_spgemm_forget,
    .spgemm_markov = sp_cpu_spgemm_markov,
    .contract = sp_cpu_contract,
    .allocate = allocate,
    .release = sp_free,
    .copy = copy,
};
