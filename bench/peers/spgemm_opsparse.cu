/* OpSparse (Du, Guan, Guan, Niu, Huang, Zheng, Xie: OpSparse, a highly optimized framework for sparse general matrix
 * multiplication on GPUs, 2022) behind the program of peer.cuh. bench/peers/build.sh brings its sources. */
#include "peer.cuh"

#define main published_main
#include "opsparse.cu"
#undef main

static void lend(const peer_matrix &from, CSR *to)
{
    to->M = from.rows;
    to->N = from.cols;
    to->nnz = from.nnz;
    to->d_rpt = from.offsets;
    to->d_col = from.columns;
    to->d_val = from.values;
}

/* Its destructor would free what it has. */
static void forget(CSR *m)
{
    m->d_rpt = m->d_col = nullptr;
    m->d_val = nullptr;
}

static void multiply(const peer_matrix &a, const peer_matrix &b, peer_matrix *c)
{
    CSR left, right, product;
    Meta meta;
    Timings timings;
    lend(a, &left);
    lend(b, &right);
    opsparse(left, right, product, meta, timings);
    *c = {product.M, product.N, product.nnz, product.d_rpt, product.d_col, product.d_val};
    forget(&left);
    forget(&right);
    forget(&product);
}
