/* MH-SpGEMM (mask-matrix hash SpGEMM, github.com/yyssys/MH-SpGEMM) behind the program of peer.cuh. build.sh brings its
 * sources. */
#include "peer.cuh"

#define main published_main
#include "main.cu"
#undef main

static void lend(const peer_matrix &from, CSR *to)
{
    to->M = from.rows;
    to->N = from.cols;
    to->nnz = from.nnz;
    to->d_ptr = from.offsets;
    to->d_col = from.columns;
    to->d_val = from.values;
}

/* Its destructor would free what it has. */
static void forget(CSR *m)
{
    m->d_ptr = m->d_col = nullptr;
    m->d_val = nullptr;
}

static void multiply(const peer_matrix &a, const peer_matrix &b, peer_matrix *c)
{
    CSR left, right, product;
    Tool tools;
    Timing timings;
    lend(a, &left);
    lend(b, &right);
    MH_spgemm(left, right, product, timings, tools);
    tools.release();
    tools.d_global_mem_pool_flag = 0;
    right.d_release_tile();
    cudaFree(product.d_tileptr);
    product.d_tileptr = nullptr;
    *c = {product.M, product.N, product.nnz, product.d_ptr, product.d_col, product.d_val};
    forget(&left);
    forget(&right);
    forget(&product);
}
