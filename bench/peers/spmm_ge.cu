/* GE-SpMM (Huang, Dai, Wang, Yang: GE-SpMM, general-purpose sparse matrix-matrix multiplication on GPUs for graph
 * neural networks, SC 2020) behind spmm_peer.cuh, launched as its extension of PyTorch does. build.sh brings the
 * kernels. */
#include "spmm_peer.cuh"

#include "ge_kernels.cuh"

static void open_product(const peer_graph &) {}
static void close_product() {}

static void multiply(const peer_graph &g)
{
    const int k = g.width;
    if (k < 32) {
        const unsigned rows = (unsigned)(128 / k);
        spmm_test0<<<dim3(((unsigned)g.rows + rows - 1) / rows), dim3((unsigned)k, rows)>>>(
            g.rows, k, g.offsets, g.columns, g.values, g.x, g.y);
        return;
    }
    const unsigned rows = k < 64 ? 4 : 8, tile = k < 64 ? 32 : 64;
    const dim3 blocks(((unsigned)g.rows + rows - 1) / rows, ((unsigned)k + tile - 1) / tile), threads(32, rows);
    const size_t bytes = 32 * rows * (sizeof(int) + sizeof(float));
    auto kernel = k < 64 ? spmm_test1 : spmm_test2;
    kernel<<<blocks, threads, bytes>>>(g.rows, k, g.offsets, g.columns, g.values, g.x, g.y);
}
