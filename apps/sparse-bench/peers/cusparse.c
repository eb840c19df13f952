/* cuSPARSE, loaded at run time: cusparseSpGEMM with each of its algorithms, and cusparseSpGEMMreuse as its plan.
 *
 * What is timed is the whole documented sequence: work estimation, memory estimation (ALG2, ALG3), computation, copy,
 * with the buffers and C taken from a stream-ordered pool that keeps its memory, as ours does. Offsets are 32 bits
 * wide, the width that cuSPARSE prefers; they are narrowed before. */
#include <string.h>

#include "sparse-bench/bench.h"

static const char *const algorithms[] = {"cuSPARSE default", "cuSPARSE ALG1", "cuSPARSE ALG2", "cuSPARSE ALG3", NULL};

#if defined SPARSE_CUDA && __has_include(<cusparse.h>)
#include "cub.h"
#include "cuda.h"

typedef struct operand {
    int32_t *offsets, *cols;
    void *values;
    cusparseSpMatDescr_t matrix;
} operand;

enum { BUFFERS = 6 };

typedef struct library {
    cusparse_session s;
    const bench_options *options;
    cudaMemPool_t pool;
    operand a, b_own, last, c; /* last: what A·B is multiplied with, if anything */
    const operand *b, *left, *right; /* left and right: of the product at hand */
    int64_t rows, cols, nnz; /* of C */
    int64_t inner, last_cols; /* nodes and groups, where S follows G */
    cusparseSpGEMMDescr_t product;
    void *buffers[BUFFERS];
    uint64_t operand_bytes;
} library;

/* ---- memory, checked calls ------------------------------------------------------------------------------ */

#define CUDA(call) TRY(cuda_result(l->s.context, call, #call))
#define CUSPARSE(call) TRY(cusparse_result(&l->s, l->s.f.call, #call))

/* A buffer of no bytes must still be one: a null pointer asks cuSPARSE for sizes. As ours, a pool that cannot grow is
 * trimmed and asked once more. */
static sp_status take(library *l, size_t bytes, void **pointer)
{
    *pointer = NULL;
    if (bytes == 0) bytes = 1;
    cudaError_t error = cudaMallocFromPoolAsync(pointer, bytes, l->pool, l->s.stream);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        cudaStreamSynchronize(l->s.stream);
        cudaMemPoolTrimTo(l->pool, 0);
        error = cudaMallocFromPoolAsync(pointer, bytes, l->pool, l->s.stream);
    }
    return cuda_result(l->s.context, error, "allocation");
}

static void give_back(library *l, void **pointer)
{
    if (*pointer) cudaFreeAsync(*pointer, l->s.stream);
    *pointer = NULL;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static void cusparse_close(void *state)
{
    library *l = state;
    sp_context *context = l->s.context;
    if (l->s.stream) cudaStreamSynchronize(l->s.stream);
    if (l->pool) cudaMemPoolDestroy(l->pool);
    cusparse_end(&l->s);
    sp_free(context, l);
}

/* A pool on the device that the options name, which is the current one of this thread. */
static sp_status make_pool(library *l)
{
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {.type = cudaMemLocationTypeDevice}};
    uint64_t keep = UINT64_MAX;
    sp_status status;
    CUDA(cudaGetDevice(&properties.location.id));
    CUDA(cudaMemPoolCreate(&l->pool, &properties));
    CUDA(cudaMemPoolSetAttribute(l->pool, cudaMemPoolAttrReleaseThreshold, &keep));
done:
    return status;
}

static sp_status cusparse_open(sp_context *context, const bench_options *options, void **state)
{
    library *l;
    sp_status status = sp_calloc(context, 1, sizeof *l, (void **)&l);
    if (status != SP_OK) return status;
    l->options = options;
    status = cusparse_begin(context, options->type, &l->s);
    if (status == SP_OK) status = make_pool(l);
    if (status == SP_OK) *state = l;
    else cusparse_close(l);
    return status;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

static void drop_operand(library *l, operand *o)
{
    if (o->matrix) l->s.f.DestroySpMat(o->matrix);
    give_back(l, (void **)&o->offsets);
    give_back(l, (void **)&o->cols);
    give_back(l, &o->values);
    memset(o, 0, sizeof *o);
}

static sp_status describe(library *l, operand *o, int64_t rows, int64_t cols, int64_t nnz)
{
    sp_status status;
    CUSPARSE(CreateCsr(&o->matrix, rows, cols, nnz, o->offsets, o->cols, o->values, CUSPARSE_INDEX_32I,
                       CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, l->s.type));
done:
    return status;
}

static sp_status load_values(library *l, const sp_csr *from, void *to)
{
    const size_t bytes = (size_t)from->nnz * l->s.size;
    const void *values;
    void *ones;
    sp_status status;
    TRY(values_or_ones(l->s.context, from, &values, &ones));
    CUDA(cudaMemcpyAsync(to, values, bytes, cudaMemcpyDefault, l->s.stream));
    CUDA(cudaStreamSynchronize(l->s.stream));
done:
    sp_free(l->s.context, ones);
    return status;
}

static sp_status load_operand(library *l, const sp_csr *from, operand *to)
{
    int32_t *narrow = NULL;
    sp_status status;
    if (from->nnz > INT32_MAX)
        return sp_fail(l->s.context, SP_ERROR_UNSUPPORTED, "%lld entries need offsets of 64 bits",
                       (long long)from->nnz);
    TRY(sp_alloc(l->s.context, from->rows + 1, sizeof *narrow, (void **)&narrow));
    for (int64_t i = 0; i <= from->rows; i++) narrow[i] = (int32_t)from->row_offsets[i];
    TRY(take(l, ((size_t)from->rows + 1) * 4, (void **)&to->offsets));
    TRY(take(l, (size_t)from->nnz * 4, (void **)&to->cols));
    TRY(take(l, (size_t)from->nnz * l->s.size, &to->values));
    CUDA(cudaMemcpyAsync(to->offsets, narrow, ((size_t)from->rows + 1) * 4, cudaMemcpyDefault, l->s.stream));
    CUDA(cudaMemcpyAsync(to->cols, from->col_indices, (size_t)from->nnz * 4, cudaMemcpyDefault, l->s.stream));
    CUDA(cudaStreamSynchronize(l->s.stream));
    TRY(load_values(l, from, to->values));
    TRY(describe(l, to, from->rows, from->cols, from->nnz));
done:
    sp_free(l->s.context, narrow);
    if (status != SP_OK) drop_operand(l, to);
    return status;
}

static void cusparse_drop(void *state)
{
    library *l = state;
    if (l->product) l->s.f.SpGEMM_destroyDescr(l->product);
    l->product = NULL;
    for (int i = 0; i < BUFFERS; i++) give_back(l, &l->buffers[i]);
    drop_operand(l, &l->c);
}

static void cusparse_unload(void *state)
{
    library *l = state;
    cusparse_drop(l);
    drop_operand(l, &l->a);
    drop_operand(l, &l->b_own);
    drop_operand(l, &l->last);
    cudaStreamSynchronize(l->s.stream);
    cudaMemPoolTrimTo(l->pool, 0);
    cudaGetLastError();
}

static sp_status cusparse_load(void *state, const sp_csr *a, const sp_csr *b)
{
    library *l = state;
    uint64_t nothing = 0;
    sp_status status;
    if (l->options->semiring != SP_PLUS_TIMES)
        return sp_fail(l->s.context, SP_ERROR_UNSUPPORTED, "cuSPARSE has the semiring plus-times alone");
    l->rows = a->rows;
    l->inner = l->cols = b->cols;
    TRY(load_operand(l, a, &l->a));
    l->b = &l->a;
    if (b != a) {
        TRY(load_operand(l, b, &l->b_own));
        l->b = &l->b_own;
    }
    CUDA(cudaMemPoolGetAttribute(l->pool, cudaMemPoolAttrUsedMemCurrent, &l->operand_bytes));
    CUDA(cudaMemPoolSetAttribute(l->pool, cudaMemPoolAttrUsedMemHigh, &nothing));
done:
    if (status != SP_OK) cusparse_unload(l);
    return status;
}

static sp_status cusparse_follow(void *state, const sp_csr *last)
{
    library *l = state;
    sp_status status;
    l->last_cols = last->cols;
    TRY(load_operand(l, last, &l->last));
    CUDA(cudaMemPoolGetAttribute(l->pool, cudaMemPoolAttrUsedMemCurrent, &l->operand_bytes));
done:
    return status;
}

/* S and Sᵀ anew: Sᵀ's columns are the labels. */
static sp_status cusparse_make(void *state)
{
    library *l = state;
    const cub_labelling labelling = {.labels = l->last.cols, .nodes = (int32_t)l->inner, .groups = (int32_t)l->rows,
                                     .wide = l->options->type == SP_F64, .offsets = l->a.offsets, .cols = l->a.cols,
                                     .offsets_transposed = l->last.offsets, .values = l->a.values,
                                     .values_transposed = l->last.values};
    sp_status status;
    CUDA(cub_make_labelling(&labelling, l->pool, l->s.stream));
done:
    return status;
}

/* ---- the product --------------------------------------------------------------------------------------- */

#define SEQUENCE l->s.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE
#define SCALED \
    SEQUENCE, &l->s.one, l->left->matrix, l->right->matrix, &l->s.zero, l->c.matrix, l->s.type, algorithm, l->product
#define PATTERN SEQUENCE, l->left->matrix, l->right->matrix, l->c.matrix, CUSPARSE_SPGEMM_DEFAULT, l->product

/* C with offsets alone, which every sequence begins with. */
static sp_status begin_product(library *l, const operand *left, const operand *right, int64_t cols)
{
    sp_status status;
    cusparse_drop(l);
    l->left = left;
    l->right = right;
    l->cols = cols;
    TRY(take(l, ((size_t)l->rows + 1) * 4, (void **)&l->c.offsets));
    TRY(describe(l, &l->c, l->rows, l->cols, 0));
    CUSPARSE(SpGEMM_createDescr(&l->product));
done:
    return status;
}

/* Arrays for the entries of C, whose number is known now. */
static sp_status grow_product(library *l)
{
    int64_t rows, cols;
    sp_status status;
    CUSPARSE(SpMatGetSize(l->c.matrix, &rows, &cols, &l->nnz));
    TRY(take(l, (size_t)l->nnz * 4, (void **)&l->c.cols));
    TRY(take(l, (size_t)l->nnz * l->s.size, &l->c.values));
    CUSPARSE(CsrSetPointers(l->c.matrix, l->c.offsets, l->c.cols, l->c.values));
done:
    return status;
}

/* ALG3 forms the products in chunks of this share; the value of NVIDIA's own sample. */
static const float CHUNK = 0.2f;

static sp_status multiply(library *l, const operand *left, const operand *right, int64_t cols,
                          cusparseSpGEMMAlg_t algorithm)
{
    const bool estimates = algorithm == CUSPARSE_SPGEMM_ALG2 || algorithm == CUSPARSE_SPGEMM_ALG3;
    size_t bytes = 0, compute_bytes = 0;
    sp_status status;
    TRY(begin_product(l, left, right, cols));
    CUSPARSE(SpGEMM_workEstimation(SCALED, &bytes, NULL));
    TRY(take(l, bytes, &l->buffers[0]));
    CUSPARSE(SpGEMM_workEstimation(SCALED, &bytes, l->buffers[0]));
    if (estimates) {
        CUSPARSE(SpGEMM_estimateMemory(SCALED, CHUNK, &bytes, NULL, NULL));
        TRY(take(l, bytes, &l->buffers[1]));
        CUSPARSE(SpGEMM_estimateMemory(SCALED, CHUNK, &bytes, l->buffers[1], &compute_bytes));
        give_back(l, &l->buffers[1]);
    } else {
        CUSPARSE(SpGEMM_compute(SCALED, &compute_bytes, NULL));
    }
    TRY(take(l, compute_bytes, &l->buffers[2]));
    CUSPARSE(SpGEMM_compute(SCALED, &compute_bytes, l->buffers[2]));
    TRY(grow_product(l));
    CUSPARSE(SpGEMM_copy(SCALED));
    for (int i = 0; i < BUFFERS; i++) give_back(l, &l->buffers[i]);
    CUDA(cudaStreamSynchronize(l->s.stream));
done:
    return status;
}

static sp_status cusparse_run(void *state, int number)
{
    static const cusparseSpGEMMAlg_t algorithms_of[] = {CUSPARSE_SPGEMM_DEFAULT, CUSPARSE_SPGEMM_ALG1,
                                                        CUSPARSE_SPGEMM_ALG2, CUSPARSE_SPGEMM_ALG3};
    library *l = state;
    operand first;
    sp_status status = multiply(l, &l->a, l->b, l->inner, algorithms_of[number]);
    if (status != SP_OK || !l->last.matrix) return status;
    first = l->c;
    memset(&l->c, 0, sizeof l->c);
    status = multiply(l, &first, &l->last, l->last_cols, algorithms_of[number]);
    drop_operand(l, &first);
    return status;
}

static sp_status cusparse_view(void *state, raw_matrix *c)
{
    library *l = state;
    *c = (raw_matrix){l->rows, l->nnz, l->c.offsets, l->c.cols, l->c.values, 4, 4, false, l->options->type};
    return SP_OK;
}

static int64_t cusparse_peak(void *state)
{
    library *l = state;
    uint64_t high = 0;
    const uint64_t c = ((uint64_t)l->rows + 1) * 4 + (uint64_t)l->nnz * (4 + l->s.size);
    if (cudaMemPoolGetAttribute(l->pool, cudaMemPoolAttrUsedMemHigh, &high) != cudaSuccess) return -1;
    const uint64_t nothing = 0;
    cudaMemPoolSetAttribute(l->pool, cudaMemPoolAttrUsedMemHigh, (void *)&nothing);
    return high > l->operand_bytes + c ? (int64_t)(high - l->operand_bytes - c) : 0;
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

/* Buffers 1 and 2 serve the pattern alone, 3 until the copy, 4 and 5 as long as the plan. */
static sp_status cusparse_plan(void *state)
{
    library *l = state;
    size_t bytes[BUFFERS] = {0};
    sp_status status;
    TRY(begin_product(l, &l->a, l->b, l->inner));
    CUSPARSE(SpGEMMreuse_workEstimation(PATTERN, &bytes[1], NULL));
    TRY(take(l, bytes[1], &l->buffers[1]));
    CUSPARSE(SpGEMMreuse_workEstimation(PATTERN, &bytes[1], l->buffers[1]));
    CUSPARSE(SpGEMMreuse_nnz(PATTERN, &bytes[2], NULL, &bytes[3], NULL, &bytes[4], NULL));
    for (int i = 2; i <= 4; i++) TRY(take(l, bytes[i], &l->buffers[i]));
    CUSPARSE(SpGEMMreuse_nnz(PATTERN, &bytes[2], l->buffers[2], &bytes[3], l->buffers[3], &bytes[4], l->buffers[4]));
    give_back(l, &l->buffers[1]);
    give_back(l, &l->buffers[2]);
    TRY(grow_product(l));
    /* They are scaled by zero, not left unread. */
    CUDA(cudaMemsetAsync(l->c.values, 0, (size_t)l->nnz * l->s.size, l->s.stream));
    CUSPARSE(SpGEMMreuse_copy(PATTERN, &bytes[5], NULL));
    TRY(take(l, bytes[5], &l->buffers[5]));
    CUSPARSE(SpGEMMreuse_copy(PATTERN, &bytes[5], l->buffers[5]));
    give_back(l, &l->buffers[3]);
    CUDA(cudaStreamSynchronize(l->s.stream));
done:
    return status;
}

static sp_status cusparse_replay(void *state)
{
    library *l = state;
    const cusparseSpGEMMAlg_t algorithm = CUSPARSE_SPGEMM_DEFAULT;
    sp_status status;
    CUSPARSE(SpGEMMreuse_compute(SCALED));
    CUDA(cudaStreamSynchronize(l->s.stream));
done:
    return status;
}

const peer peer_cusparse = {"cusparse", algorithms, cusparse_open, cusparse_load, cusparse_follow, cusparse_run,
                            cusparse_drop, cusparse_view, cusparse_peak, cusparse_plan, cusparse_replay,
                            cusparse_unload, cusparse_close, cusparse_make, NULL};

#else

static sp_status cusparse_open(sp_context *context, const bench_options *options, void **state)
{
    (void)options;
    (void)state;
    return sp_fail(context, SP_ERROR_NO_DEVICE, "this build has no CUDA, or its toolkit no cuSPARSE");
}

const peer peer_cusparse = {.name = "cusparse", .algorithms = algorithms, .open = cusparse_open};

#endif
