/* spECK (Parger, Winter, Mlakar, Steinberger: spECK, accelerating GPU sparse matrix-matrix multiplication through
 * lightweight analysis, PPoPP 2020) behind the program of peer.cuh. build.sh brings its sources and defines SHARED, the
 * bytes of dynamic shared memory a block that its tables may have. */
#include <cuda/functional>

#include "peer.cuh"

#include "GPU/Multiply.cu"

static void lend(const peer_matrix &from, dCSR<double> *to)
{
    to->rows = (size_t)from.rows;
    to->cols = (size_t)from.cols;
    to->nnz = (size_t)from.nnz;
    to->row_offsets = (unsigned *)from.offsets;
    to->col_ids = (unsigned *)from.columns;
    to->data = from.values;
}

/* Its destructor would free what it has. */
static void forget(dCSR<double> *m)
{
    m->row_offsets = m->col_ids = nullptr;
    m->data = nullptr;
}

static void multiply(const peer_matrix &a, const peer_matrix &b, peer_matrix *c)
{
    static spECK::spECKConfig config = spECK::spECKConfig::initialize(0);
    dCSR<double> left, right, product;
    Timings timings;
    timings.measureAll = timings.measureCompleteTime = false;
    lend(a, &left);
    lend(b, &right);
    spECK::MultiplyspECKImplementation<double, 4, 1024, SHARED,
        spECK_STATIC_MEM_PER_BLOCK>(left, right, product, config,
                                                                                          timings);
    *c = {(int)product.rows, (int)product.cols, (int)product.nnz, (int *)product.row_offsets, (int *)product.col_ids,
          product.data};
    forget(&left);
    forget(&right);
    forget(&product);
}
