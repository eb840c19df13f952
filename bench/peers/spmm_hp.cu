/* HP-SpMM (Fan, Wang, Chu: Fast sparse GPU kernels for accelerated training of graph neural networks, IPDPS 2023)
 * behind spmm_peer.cuh, launched as its test program does: the same number of entries a warp, the row of each known,
 * and atomics where rows end. For widths that are multiples of 32. build.sh brings the kernels. */
#include "spmm_peer.cuh"

#include "hp_kernels.cuh"

static int *entry_rows, entries, per_warp;

/* Entries are padded to whole warps: zeros of the last row and column 0, which follow the values. */
static void open_product(const peer_graph &g)
{
    if (g.width % 32) throw std::runtime_error("its widths are multiples of 32");
    per_warp = g.rows > 5000 && g.nnz / g.rows > 256 ? 128 : 32;
    entries = (g.nnz + per_warp - 1) / per_warp * per_warp;
    std::vector<int> rows((size_t)entries, g.rows > 0 ? g.rows - 1 : 0);
    for (int row = 0; row < g.rows; row++)
        for (int k = g.host_offsets[row]; k < g.host_offsets[row + 1]; k++) rows[(size_t)k] = row;
    entry_rows = upload(rows);
}

static void close_product()
{
    cudaFree(entry_rows);
    entry_rows = nullptr;
}

static void multiply(const peer_graph &g)
{
    const int warps = entries / per_warp;
    const dim3 blocks((unsigned)(warps + 7) / 8, (unsigned)g.width / 32);
    check(cudaMemsetAsync(g.y, 0, (size_t)g.rows * (size_t)g.width * sizeof(float), 0), "zeros");
    if (warps == 0) return;
    if (per_warp == 32)
        LBSPMMKernel<<<blocks, dim3(32, 8), 768 * sizeof(int)>>>(g.rows, g.width, entries, per_warp, entry_rows,
                                                                 g.columns,
                                                              g.values, g.x, g.y);
    else
        LBSPMMKernel_4_8_float4_float4_async_double_buffer<<<blocks, dim3(8, 8)>>>(
            g.rows, g.width, entries, per_warp, entry_rows, g.columns, g.values, g.x, g.y);
}
