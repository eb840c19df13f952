/* Sputnik (Gale, Zaharia, Young, Elsen: Sparse GPU kernels for deep learning, SC 2020) behind spmm_peer.cuh. Rows are
 * given by falling length, which balances its blocks. build.sh brings its sources. */
#include <algorithm>
#include <numeric>

#include "spmm_peer.cuh"

#include "sputnik/spmm/cuda_spmm.h"

static int *rows_by_length;

static void open_product(const peer_graph &g)
{
    std::vector<int> rows((size_t)g.rows);
    const auto length = [&](int row) { return g.host_offsets[row + 1] - g.host_offsets[row]; };
    std::iota(rows.begin(), rows.end(), 0);
    std::stable_sort(rows.begin(), rows.end(), [&](int a, int b) { return length(a) > length(b); });
    rows_by_length = upload(rows);
}

static void close_product()
{
    cudaFree(rows_by_length);
    rows_by_length = nullptr;
}

static void multiply(const peer_graph &g)
{
    check(sputnik::CudaSpmm(g.rows, g.cols, g.width, g.nnz, rows_by_length, g.values, g.offsets, g.columns, g.x, g.y,
                            0),
          "product");
}
