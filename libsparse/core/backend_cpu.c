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
    .spgemm = sp_cpu_spgemm,
    .spgemm_symbolic = sp_cpu_spgemm_symbolic,
    .spgemm_numeric = sp_cpu_spgemm_numeric,
    .spgemm_forget = sp_cpu_spgemm_forget,
    .spgemm_markov = sp_cpu_spgemm_markov,
    .inverse_lengths = sp_cpu_inverse_lengths,
    .similarity = sp_cpu_similarity,
    .contract = sp_cpu_contract,
    .triple_product = sp_cpu_triple_product,
    .spmm_prepare = sp_cpu_spmm_prepare,
    .spmm_refresh = sp_cpu_spmm_refresh,
    .spmm = sp_cpu_spmm,
    .spmm_heads = sp_cpu_spmm_heads,
    .spmm_forget = sp_cpu_spmm_forget,
    .sddmm = sp_cpu_sddmm,
    .edge_softmax = sp_cpu_edge_softmax,
    .edge_softmax_backward = sp_cpu_edge_softmax_backward,
    .maxk = sp_cpu_maxk,
    .maxk_expand = sp_cpu_maxk_expand,
    .maxk_spmm = sp_cpu_maxk_spmm,
    .maxk_spmm_backward = sp_cpu_maxk_spmm_backward,
    .number = number,
    .gather = gather,
    .allocate = allocate,
    .release = sp_free,
    .copy = copy,
    .add = sp_cpu_add,
    .scale = sp_cpu_scale,
    .extract = sp_cpu_extract,
    .find_outside = sp_cpu_find_outside,
    .top_k = sp_cpu_top_k,
    .reduce_rows = sp_cpu_reduce_rows,
    .degree_order = sp_cpu_degree_order,
    .sample_rows = sp_cpu_sample_rows,
    .hadamard = sp_cpu_hadamard,
    .select = sp_cpu_select,
};
