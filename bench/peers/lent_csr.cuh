/* Our arrays in a peer's class CSR, whose destructor would free them: OpSparse and MH-SpGEMM have the same one, but for
 * the name of the offsets. */
#ifndef BENCH_PEERS_LENT_CSR_CUH
#define BENCH_PEERS_LENT_CSR_CUH

#include "peer.cuh"

template <int *CSR::*OFFSETS> struct lent_csr {
    CSR matrix;

    explicit lent_csr(const peer_matrix &from)
    {
        matrix.M = from.rows;
        matrix.N = from.cols;
        matrix.nnz = from.nnz;
        matrix.*OFFSETS = from.offsets;
        matrix.d_col = from.columns;
        matrix.d_val = from.values;
    }
    ~lent_csr()
    {
        matrix.*OFFSETS = matrix.d_col = nullptr;
        matrix.d_val = nullptr;
    }
    peer_matrix view() const
    {
        return {matrix.M, matrix.N, matrix.nnz, matrix.*OFFSETS, matrix.d_col, matrix.d_val};
    }
};

#endif
