/* cuSPARSE, loaded at run time: cusparseSpMM by rows with each of its algorithms for CSR. Its buffer and its
 * preprocessing are made once. Offsets are 32 bits wide where they fit, the width that it prefers, and A's
 * values have the type of the features, which it asks for. Sums are f32, of f64 f64. */
#include <string.h>

#include "base/value.h"
#include "sparse-bench/spmm/spmm_bench.h"

static const char *const algorithms[] = {"cuSPARSE default", "cuSPARSE ALG1", "cuSPARSE ALG2", "cuSPARSE ALG3", NULL};

#if defined SPARSE_CUDA && __has_include(<cusparse.h>)
#include "cuda.h"

typedef struct library {
    cusparse_session s;
    sp_dense_type features, result;
    void *offsets, *cols, *weights, *x, *y, *buffer;
    int64_t rows, width;
    cusparseSpMatDescr_t a;
    size_t buffer_bytes;
    cusparseDnMatDescr_t x_matrix, y_matrix;
    cusparseSpMMAlg_t algorithm;
} library;

#define CUDA(call) TRY(cuda_result(l->s.context, call, #call))
#define CUSPARSE(call) TRY(cusparse_result(&l->s, l->s.f.call, #call))

static void cusparse_close(void *state)
{
    library *l = state;
    sp_context *context = l->s.context;
    cusparse_end(&l->s);
    sp_free(context, l);
}

static sp_status cusparse_open(sp_context *context, const spmm_options *options, void **state)
{
    library *l;
    sp_status status = sp_calloc(context, 1, sizeof *l, (void **)&l);
    if (status != SP_OK) return status;
    l->features = options->features;
    l->result = options->result;
    status = cusparse_begin(context, options->common.type, &l->s);
    if (status == SP_OK) *state = l;
    else cusparse_close(l);
    return status;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

static void cusparse_unload(void *state)
{
    library *l = state;
    void **arrays[] = {&l->offsets, &l->cols, &l->weights, &l->x, &l->y, &l->buffer};
    cudaStreamSynchronize(l->s.stream);
    if (l->a) l->s.f.DestroySpMat(l->a);
    if (l->x_matrix) l->s.f.DestroyDnMat(l->x_matrix);
    if (l->y_matrix) l->s.f.DestroyDnMat(l->y_matrix);
    l->a = NULL;
    l->x_matrix = l->y_matrix = NULL;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        cudaFree(*arrays[i]);
        *arrays[i] = NULL;
    }
    cudaGetLastError();
}

static sp_status place(library *l, const void *from, size_t bytes, void **to)
{
    sp_status status;
    CUDA(cudaMalloc(to, bytes ? bytes : 1));
    if (from) CUDA(cudaMemcpy(*to, from, bytes, cudaMemcpyHostToDevice));
done:
    return status;
}

static cudaDataType cuda_type(sp_dense_type type)
{
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF}; /* as sp_dense_type */
    return types[type];
}

/* A's values as numbers of 16 bits. */
static sp_status small_values(library *l, const sp_csr *a, const void **values, void **made)
{
    const sp_status status = sp_alloc(l->s.context, a->nnz, sizeof(uint16_t), made);
    if (status != SP_OK) return status;
    for (int64_t k = 0; k < a->nnz; k++)
        ((uint16_t *)*made)[k] = spmm_small_bits(entry_value(a, k), l->features);
    *values = *made;
    return SP_OK;
}

static sp_status load_sparse(library *l, const sp_csr *a)
{
    const bool narrow = a->nnz <= INT32_MAX;
    int32_t *short_offsets = NULL;
    const void *weights;
    void *made = NULL;
    sp_status status;
    if (narrow) {
        TRY(sp_alloc(l->s.context, a->rows + 1, sizeof *short_offsets, (void **)&short_offsets));
        for (int64_t i = 0; i <= a->rows; i++) short_offsets[i] = (int32_t)a->row_offsets[i];
    }
    TRY(spmm_size_of(l->features) == 2 ? small_values(l, a, &weights, &made)
                                       : values_or_ones(l->s.context, a, &weights, &made));
    TRY(place(l, narrow ? (const void *)short_offsets : a->row_offsets, ((size_t)a->rows + 1) * (narrow ? 4 : 8),
              &l->offsets));
    TRY(place(l, a->col_indices, (size_t)a->nnz * 4, &l->cols));
    TRY(place(l, weights, (size_t)a->nnz * spmm_size_of(l->features), &l->weights));
    CUSPARSE(CreateCsr(&l->a, a->rows, a->cols, a->nnz, l->offsets, l->cols, l->weights,
                       narrow ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I, CUSPARSE_INDEX_32I,
                       CUSPARSE_INDEX_BASE_ZERO, cuda_type(l->features)));
done:
    FREE_ALL(l->s.context, short_offsets, made);
    return status;
}

static sp_status cusparse_load(void *state, const sp_csr *a, const sp_dense *x)
{
    library *l = state;
    sp_status status;
    l->rows = a->rows;
    l->width = x->cols;
    TRY(load_sparse(l, a));
    TRY(place(l, x->values, (size_t)(x->rows * x->cols) * spmm_size_of(l->features), &l->x));
    TRY(place(l, NULL, (size_t)(a->rows * x->cols) * spmm_size_of(l->result), &l->y));
    CUSPARSE(CreateDnMat(&l->x_matrix, x->rows, x->cols, x->cols, l->x, cuda_type(l->features), CUSPARSE_ORDER_ROW));
    CUSPARSE(CreateDnMat(&l->y_matrix, a->rows, x->cols, x->cols, l->y, cuda_type(l->result), CUSPARSE_ORDER_ROW));
done:
    if (status != SP_OK) cusparse_unload(l);
    return status;
}

/* ---- the product --------------------------------------------------------------------------------------- */

#define ARGUMENTS                                                                                              \
    l->s.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &l->s.one, l->a, l->x_matrix, \
        &l->s.zero, l->y_matrix, l->s.type, l->algorithm

static sp_status cusparse_prepare(void *state, int number)
{
    static const cusparseSpMMAlg_t algs[] = {CUSPARSE_SPMM_ALG_DEFAULT, CUSPARSE_SPMM_CSR_ALG1,
                                             CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3};
    library *l = state;
    size_t bytes = 0;
    sp_status status;
    l->algorithm = algs[number];
    cudaFree(l->buffer);
    l->buffer = NULL;
    CUSPARSE(SpMM_bufferSize(ARGUMENTS, &bytes));
    TRY(place(l, NULL, bytes, &l->buffer));
    l->buffer_bytes = bytes;
    CUSPARSE(SpMM_preprocess(ARGUMENTS, l->buffer));
    CUDA(cudaStreamSynchronize(l->s.stream));
done:
    return status;
}

static sp_status cusparse_run(void *state)
{
    library *l = state;
    sp_status status;
    CUSPARSE(SpMM(ARGUMENTS, l->buffer));
done:
    return status;
}

static sp_status cusparse_view(void *state, const void **y)
{
    library *l = state;
    *y = l->y;
    return cuda_result(l->s.context, cudaStreamSynchronize(l->s.stream), "cudaStreamSynchronize");
}

/* It asks for its memory in advance. */
static int64_t cusparse_peak(void *state) { return (int64_t)((library *)state)->buffer_bytes; }

const spmm_peer spmm_peer_cusparse = {algorithms, cusparse_open, cusparse_load, cusparse_prepare, cusparse_run,
                                      cusparse_view, cusparse_unload, cusparse_close, NULL, cusparse_peak};

#else

static sp_status cusparse_open(sp_context *context, const spmm_options *options, void **state)
{
    (void)options;
    (void)state;
    return sp_fail(context, SP_ERROR_NO_DEVICE, "this build has no CUDA, or its toolkit no cuSPARSE");
}

const spmm_peer spmm_peer_cusparse = {.algorithms = algorithms, .open = cusparse_open};

#endif
