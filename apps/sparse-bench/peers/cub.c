/* Relabelling, CUB's radix sort and its reduction by key as a peer of quotient graphs: what those write who have no
 * such library. G and the labels, which S tells, are on the device beforehand; C and all buffers come from a
 * stream-ordered pool that keeps its memory, as ours do. */
#include <string.h>

#include "sparse-bench/bench.h"

static const char *const algorithms[] = {"CUB sort, key bits", "CUB sort, all bits", NULL};

#ifdef SPARSE_CUDA
#include "cub.h"
#include "cuda.h"

typedef struct sorter {
    sp_context *context;
    const bench_options *options;
    cudaStream_t stream;
    cudaMemPool_t pool;
    cub_graph graph;
    cub_quotient c;
    uint64_t operand_bytes;
} sorter;

#define CUDA(call) TRY(cuda_result(s->context, call, #call))

static void cub_close(void *state)
{
    sorter *s = state;
    if (s->stream) cudaStreamSynchronize(s->stream);
    if (s->pool) cudaMemPoolDestroy(s->pool);
    if (s->stream) cudaStreamDestroy(s->stream);
    sp_free(s->context, s);
}

static sp_status cub_open(sp_context *context, const bench_options *options, void **state)
{
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {.type = cudaMemLocationTypeDevice}};
    uint64_t keep = UINT64_MAX;
    sorter *s;
    sp_status status = sp_calloc(context, 1, sizeof *s, (void **)&s);
    if (status != SP_OK) return status;
    s->context = context;
    s->options = options;
    CUDA(cudaGetDevice(&properties.location.id));
    CUDA(cudaMemPoolCreate(&s->pool, &properties));
    CUDA(cudaMemPoolSetAttribute(s->pool, cudaMemPoolAttrReleaseThreshold, &keep));
    CUDA(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    *state = s;
done:
    if (status == SP_OK) return SP_OK;
    cub_close(s);
    return SP_ERROR_NO_DEVICE;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

static void give_back(sorter *s, const void *pointer)
{
    if (pointer) cudaFreeAsync((void *)pointer, s->stream);
}

static void cub_drop(void *state)
{
    sorter *s = state;
    give_back(s, s->c.offsets);
    give_back(s, s->c.cols);
    give_back(s, s->c.values);
    memset(&s->c, 0, sizeof s->c);
}

static void cub_unload(void *state)
{
    sorter *s = state;
    cub_drop(s);
    give_back(s, s->graph.offsets);
    give_back(s, s->graph.cols);
    give_back(s, s->graph.labels);
    give_back(s, s->graph.values);
    memset(&s->graph, 0, sizeof s->graph);
    cudaStreamSynchronize(s->stream);
    cudaMemPoolTrimTo(s->pool, 0);
    cudaGetLastError();
}

/* A copy on the device. */
static sp_status load_array(sorter *s, const void *from, size_t bytes, void **to)
{
    sp_status status;
    CUDA(cudaMallocFromPoolAsync(to, bytes ? bytes : 1, s->pool, s->stream));
    CUDA(cudaMemcpyAsync(*to, from, bytes, cudaMemcpyDefault, s->stream));
    CUDA(cudaStreamSynchronize(s->stream));
done:
    return status;
}

static sp_status load_values(sorter *s, const sp_csr *g)
{
    const size_t size = s->graph.wide ? sizeof(double) : sizeof(float);
    const void *values;
    void *ones;
    sp_status status = values_or_ones(s->context, g, &values, &ones);
    if (status == SP_OK) status = load_array(s, values, (size_t)g->nnz * size, (void **)&s->graph.values);
    sp_free(s->context, ones);
    return status;
}

/* S has one entry a column: the label of that node. */
static sp_status load_labels(sorter *s, const sp_csr *matrix)
{
    int32_t *labels = NULL;
    sp_status status;
    TRY(sp_alloc(s->context, matrix->cols, sizeof *labels, (void **)&labels));
    for (int64_t group = 0; group < matrix->rows; group++)
        for (int64_t k = matrix->row_offsets[group]; k < matrix->row_offsets[group + 1]; k++)
            labels[matrix->col_indices[k]] = (int32_t)group;
    TRY(load_array(s, labels, (size_t)matrix->cols * sizeof *labels, (void **)&s->graph.labels));
done:
    sp_free(s->context, labels);
    return status;
}

static sp_status cub_load(void *state, const sp_csr *matrix, const sp_csr *g)
{
    sorter *s = state;
    uint64_t nothing = 0;
    sp_status status;
    if (g->nnz > INT32_MAX)
        return sp_fail(s->context, SP_ERROR_UNSUPPORTED, "%lld entries are more than it counts", (long long)g->nnz);
    s->graph = (cub_graph){.nodes = g->rows, .groups = matrix->rows, .nnz = (int32_t)g->nnz,
                           .wide = s->options->type == SP_F64};
    TRY(load_array(s, g->row_offsets, ((size_t)g->rows + 1) * sizeof(int64_t), (void **)&s->graph.offsets));
    TRY(load_array(s, g->col_indices, (size_t)g->nnz * sizeof(int32_t), (void **)&s->graph.cols));
    TRY(load_values(s, g));
    TRY(load_labels(s, matrix));
    CUDA(cudaMemPoolGetAttribute(s->pool, cudaMemPoolAttrUsedMemCurrent, &s->operand_bytes));
    CUDA(cudaMemPoolSetAttribute(s->pool, cudaMemPoolAttrUsedMemHigh, &nothing));
done:
    if (status != SP_OK) cub_unload(s);
    return status;
}

/* Labels are all that it needs of S. */
static sp_status cub_follow(void *state, const sp_csr *last)
{
    (void)state;
    (void)last;
    return SP_OK;
}

/* ---- the quotient -------------------------------------------------------------------------------------- */

static sp_status cub_run(void *state, int algorithm)
{
    sorter *s = state;
    cub_drop(s);
    return cuda_result(s->context, cub_contract(&s->graph, algorithm == 1, s->pool, s->stream, &s->c), "sorting");
}

static sp_status cub_view(void *state, raw_matrix *c)
{
    sorter *s = state;
    *c = (raw_matrix){s->graph.groups, s->c.nnz, s->c.offsets, s->c.cols, s->c.values, 8, 4, false, s->options->type};
    return SP_OK;
}

static int64_t cub_peak(void *state)
{
    sorter *s = state;
    uint64_t high = 0, nothing = 0;
    const uint64_t value = s->graph.wide ? 8 : 4;
    const uint64_t c = ((uint64_t)s->graph.groups + 1) * 8 + (uint64_t)s->c.nnz * (4 + value);
    if (cudaMemPoolGetAttribute(s->pool, cudaMemPoolAttrUsedMemHigh, &high) != cudaSuccess) return -1;
    cudaMemPoolSetAttribute(s->pool, cudaMemPoolAttrUsedMemHigh, &nothing);
    return high > s->operand_bytes + c ? (int64_t)(high - s->operand_bytes - c) : 0;
}

const peer peer_cub = {"cub", algorithms, cub_open, cub_load, cub_follow, cub_run, cub_drop, cub_view, cub_peak, NULL,
                       NULL, cub_unload, cub_close, NULL, NULL};

#else

static sp_status cub_open(sp_context *context, const bench_options *options, void **state)
{
    (void)options;
    (void)state;
    return sp_fail(context, SP_ERROR_NO_DEVICE, "this build has no CUDA");
}

const peer peer_cub = {.name = "cub", .algorithms = algorithms, .open = cub_open};

#endif
