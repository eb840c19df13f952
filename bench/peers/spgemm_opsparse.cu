/* OpSparse (Du, Guan, Guan, Niu, Huang, Zheng, Xie: OpSparse, a highly optimized framework for sparse general matrix
 * multiplication on GPUs, 2022) behind the program of peer.cuh. bench/peers/build.sh brings its sources. */
#include "peer.cuh"

#define main published_main
#include "opsparse.cu"
#undef main

#include "lent_csr.cuh"

static void multiply(const peer_matrix &a, const peer_matrix &b, peer_matrix *c)
{
    lent_csr<&CSR::d_rpt> left(a), right(b), product(peer_matrix{});
    Meta meta;
    Timings timings;
    opsparse(left.matrix, right.matrix, product.matrix, meta, timings);
    *c = product.view();
}
