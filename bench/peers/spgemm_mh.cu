/* MH-SpGEMM (mask-matrix hash SpGEMM, github.com/yyssys/MH-SpGEMM) behind the program of peer.cuh. build.sh brings its
 * sources. */
#include "peer.cuh"

#define main published_main
#include "main.cu"
#undef main

#include "lent_csr.cuh"

static void multiply(const peer_matrix &a, const peer_matrix &b, peer_matrix *c)
{
    lent_csr<&CSR::d_ptr> left(a), right(b), product(peer_matrix{});
    Tool tools;
    Timing timings;
    MH_spgemm(left.matrix, right.matrix, product.matrix, timings, tools);
    tools.release();
    tools.d_global_mem_pool_flag = 0;
    right.matrix.d_release_tile();
    cudaFree(product.matrix.d_tileptr);
    product.matrix.d_tileptr = nullptr;
    *c = product.view();
}
