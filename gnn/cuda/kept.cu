/* The product S·Wᵀ on CUDA at the entries that MaxK kept, a thread an entry. Threads of a row share its numbers of S.
 * W, a number a class in each row, stays in the first-level cache. Beside that 5 bytes an entry are read or written.
 * S and W should be narrow. */
#include "backend.cuh"

template <typename T, typename C> struct kept_job {
    int64_t entries, k;
    dense_view<T> s, w;
    int width;
    const C *columns;
    T *values;
};

template <typename T, typename C>
static __global__ void __launch_bounds__(THREADS) fill_kept(const kept_job<T, C> job)
{
    const int64_t entry = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (entry >= job.entries) return;
    const T *s = job.s.values + entry / job.k * job.s.stride;
    const T *w = job.w.values + (int64_t)__ldg(job.columns + entry) * job.w.stride;
    T sum = 0;
#pragma unroll 8
    for (int t = 0; t < job.width; t++) sum = fused(__ldg(s + t), __ldg(w + t), sum);
    job.values[entry] = sum;
}

template <typename T, typename C>
static sp_status fill(gnn_engine *engine, const sp_dense *s, const sp_dense *w, sp_cbsr *kept)
{
    const kept_job<T, C> job = {kept->rows * kept->k, kept->k, view_of<T>(s), view_of<T>(w), (int)w->cols,
                                (const C *)kept->columns, (T *)kept->values};
    return launch(engine, fill_kept<T, C>, ceil_div(job.entries, THREADS), job);
}

sp_status gnn_cuda_multiply_kept(gnn_engine *engine, const sp_dense *s, const sp_dense *w, sp_cbsr *kept)
{
    const bool bytes = kept->cols <= 256;
    if (kept->type == SP_DENSE_F32) return (bytes ? fill<float, uint8_t> : fill<float, uint16_t>)(engine, s, w, kept);
    return (bytes ? fill<double, uint8_t> : fill<double, uint16_t>)(engine, s, w, kept);
}
