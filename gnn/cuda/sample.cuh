/* What the files of sampling on a CUDA device share: arrays, launches with a row of blocks for each minibatch of a
 * bulk, and views of the graph and of a minibatch's list for kernels. */
#ifndef GNN_CUDA_SAMPLE_CUH
#define GNN_CUDA_SAMPLE_CUH

#include "backend.cuh"
#include "base/longest.h"
#include "base/search.h"
#include "device/array.cuh"
#include "sample.h"

/* What launches ask of a sampler. Its kernels are not made to begin early. */
static inline sp_context *context_of(const gnn_sampler *s) { return s->context; }
static inline cudaStream_t stream_of(const gnn_sampler *s) { return (cudaStream_t)sp_context_stream(s->context); }
static inline bool has_overlap(const gnn_sampler *) { return false; }

/* ---- host ---------------------------------------------------------------------------------------------- */

template <typename T> struct sample_array : device_array<T> {
    sp_status allocate(const gnn_sampler *s, int64_t count)
    {
        return device_array<T>::allocate(s->context, count);
    }
};

#define SAMPLE_CHECK(call) CHECK(cuda_status(s->context, (call), #call))

static inline sp_status send_targets(const gnn_sampler *s, int64_t count, const gnn_target *targets,
                                     sample_array<gnn_target> *there)
{
    CHECK(there->allocate(s, count));
    SAMPLE_CHECK(cudaMemcpyAsync(there->data, targets, (size_t)count * sizeof *targets, cudaMemcpyHostToDevice,
                                 stream_of(s)));
    return SP_OK;
}

/* Launches `threads` threads for each node of the longest list, and a row of blocks for each list. Does nothing if
 * all lists are empty. */
template <typename... P, typename... A>
static inline sp_status launch_lists(const gnn_sampler *s, void (*kernel)(P...), const gnn_lists *lists, int threads,
                                     const A &...arguments)
{
    const dim3 grid((unsigned)ceil_div(longest_of(lists->first, lists->count) * threads, THREADS),
                    (unsigned)lists->count);
    return grid.x == 0 ? SP_OK : launch_grid(s, false, kernel, grid, THREADS, 0, arguments...);
}

/* The longest row that node-wise draws can give, or 33 for any above 32; and the lanes for such rows. Without short
 * draws, draw_long takes all rows. */
static inline int64_t widest_row(const gnn_sampler *s, int64_t fanout)
{
    return fanout > 32 || left_out("gnn-short-draws") ? 33 : fanout + (s->own != NULL);
}
static inline int lanes_for(int64_t widest)
{
    if (left_out("gnn-few-lanes")) return 32;
    return widest <= 8 ? 8 : widest <= 16 ? 16 : 32;
}

/* sample_draw.cu and sample_finish.cu: see sample.h. */
sp_status gnn_cuda_sample_count(const gnn_sampler *s, const gnn_lists *rows, int64_t fanout, gnn_drawn *drawn);
sp_status gnn_cuda_sample_sizes(const gnn_sampler *s, const gnn_lists *rows, gnn_drawn *drawn);
sp_status gnn_cuda_sample_draw(const gnn_sampler *s, const gnn_lists *rows, int64_t number, int layer, int64_t fanout,
                               gnn_drawn *drawn);
sp_status gnn_cuda_sample_choose(const gnn_sampler *s, const sp_csr *p, int64_t number, int layer, int64_t fanout,
                                 double *thresholds);
sp_status gnn_cuda_sample_weigh(const gnn_sampler *s, const sp_csr *p, const double *thresholds,
                                const gnn_lists *lists, const gnn_lists *grown, double *scale);
sp_status gnn_cuda_sample_finish(const gnn_sampler *s, const gnn_lists *rows, const gnn_lists *columns,
                                 const gnn_drawn *drawn, int64_t fanout, const gnn_target *targets);
/* sample.cu: sums[i] = Σ of sums up to i, in place; and sizes that the host must know, which waits for the stream. */
sp_status gnn_cuda_sample_scan(const gnn_sampler *s, int64_t count, int64_t *sums);
sp_status gnn_cuda_sample_to_host(const gnn_sampler *s, int64_t count, const int64_t *from, int64_t *to);

/* ---- views --------------------------------------------------------------------------------- */

struct graph {
    int64_t nodes, words;
    const int64_t *offsets;
    const int32_t *cols, *own;
    int32_t *place;
    uint32_t *known, *drawn;
};

static inline graph graph_of(const gnn_sampler *s)
{
    return {s->a.rows, s->words, s->a.row_offsets, s->a.col_indices, s->own, s->place, s->known, s->drawn};
}

/* The list of this block's minibatch. */
struct node_list {
    const int32_t *nodes;
    int64_t first, count;
};

static __device__ __forceinline__ node_list list_at(const int64_t *first, const int32_t *nodes)
{
    const int64_t begin = __ldg(first + blockIdx.y), end = __ldg(first + blockIdx.y + 1);
    return {nodes + begin, begin, end - begin};
}

static __device__ __forceinline__ int64_t thread_number() { return (int64_t)blockIdx.x * THREADS + threadIdx.x; }

/* A row of the matrix for node-wise sampling: `others` are its entries without the diagonal one, `own`. */
struct row_view {
    int64_t begin;
    int32_t length, others, own;

    __device__ __forceinline__ row_view(const graph &g, int32_t node)
    {
        begin = __ldg(g.offsets + node);
        length = (int32_t)(__ldg(g.offsets + node + 1) - begin);
        own = g.own ? __ldg(g.own + node) : -1;
        others = length - (own >= 0);
    }
    __device__ __forceinline__ int32_t drawn(int64_t fanout) const
    {
        return others <= fanout ? length : (int32_t)fanout + (own >= 0);
    }
};

#endif
