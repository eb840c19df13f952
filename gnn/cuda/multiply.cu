/* C = alpha · op(A) · op(B) + beta · C on CUDA. A C of few columns is multiply_narrow.cu's, large products of f32 on
 * Hopper multiply_split.cu's, all others cuBLAS's in f32 (no TF32), f64, or bf16 with sums in f32, also those of parts
 * of the inner dimension. cuBLAS stores by columns, so it computes Cᵀ = op(B)ᵀ · op(A)ᵀ.
 *
 * The library is loaded at run time and its few functions are declared here: neither the build nor the other tools
 * need cuBLAS. The engine gives it a work space, so that products can be captured and use the same kernel in every
 * run. Emulated f32 (BF16x9, from cuBLAS 12.9) runs on Blackwell only.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "each.cuh"

/* NVIDIA's recommendation for Hopper; earlier devices need less. */
enum { WORKSPACE = 32 << 20 };

/* As in cublas_api.h of 11.4 and later. */
enum { CUBLAS_SUCCESS = 0, CUBLAS_ALLOCATION_FAILED = 3, CUBLAS_KEEP = 0, CUBLAS_TRANSPOSE = 1 };

template <typename T>
using cublas_multiply = int(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const T *alpha,
                            const T *a, int a_stride, const T *b, int b_stride, const T *beta, T *c, int c_stride);

enum { CUBLAS_F32 = 0, CUBLAS_BF16 = 14, CUBLAS_SUMS_F32 = 68, CUBLAS_USUAL_WAY = -1, CUBLAS_SUMS_OF_PARTS_F32 = 16 };

using cublas_multiply_any = int(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,
                                const void *a, int a_type, int a_stride, const void *b, int b_type, int b_stride,
                                const void *beta, void *c, int c_type, int c_stride, int sums, int way);
using cublas_multiply_many = int(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,
                                 const void *a, int a_type, int a_stride, long long a_next, const void *b, int b_type,
                                 int b_stride, long long b_next, const void *beta, void *c, int c_type, int c_stride,
                                 long long c_next, int count, int sums, int way);

struct cublas {
    void *handle, *workspace;
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t stream);
    int (*set_workspace)(void *handle, void *workspace, size_t bytes);
    const char *(*status_string)(int status);
    cublas_multiply<float> *multiply_f32;
    cublas_multiply<double> *multiply_f64;
    cublas_multiply_any *multiply_any;
    cublas_multiply_many *multiply_many;
    int (*set_mode)(void *handle, int mode);
};

/* ---- loading --------------------------------------------------------------------------------------------- */

/* Searches the loader's path, then beside the toolkit. The library stays loaded until the process ends. */
static void *load_library()
{
    static const char *const folders[] = {"", "/lib64/", "/targets/x86_64-linux/lib/", "/lib/"};
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"};
    const char *home = getenv("CUDA_HOME");
    char path[4096];
    for (size_t folder = 0; folder < sizeof folders / sizeof *folders; folder++)
        for (size_t name = 0; name < sizeof names / sizeof *names; name++) {
            snprintf(path, sizeof path, "%s%s%s", !folder ? "" : home ? home : "/usr/local/cuda", folders[folder],
                     names[name]);
            void *found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (found) return found;
        }
    return NULL;
}

static bool bind(void *library, cublas *blas)
{
    struct {
        const char *name;
        void **function;
    } wanted[] = {{"cublasCreate_v2", (void **)&blas->create},
                  {"cublasDestroy_v2", (void **)&blas->destroy},
                  {"cublasSetStream_v2", (void **)&blas->set_stream},
                  {"cublasSetWorkspace_v2", (void **)&blas->set_workspace},
                  {"cublasGetStatusString", (void **)&blas->status_string},
                  {"cublasSgemm_v2", (void **)&blas->multiply_f32},
                  {"cublasDgemm_v2", (void **)&blas->multiply_f64},
                  {"cublasGemmEx", (void **)&blas->multiply_any},
                  {"cublasGemmStridedBatchedEx", (void **)&blas->multiply_many},
                  {"cublasSetMathMode", (void **)&blas->set_mode}};
    bool complete = true;
    for (auto &function : wanted) complete &= (*function.function = dlsym(library, function.name)) != NULL;
    return complete;
}

static sp_status check_blas(gnn_engine *engine, int code, const char *call)
{
    if (code == CUBLAS_SUCCESS) return SP_OK;
    cudaGetLastError();
    return sp_fail(engine->context, code == CUBLAS_ALLOCATION_FAILED ? SP_ERROR_DEVICE_MEMORY : SP_ERROR_DEVICE,
                   "%s: %s failed: %s", sp_context_device(engine->context), call,
                   state_of(engine)->blas->status_string(code));
}

void gnn_cuda_close_blas(gnn_engine *engine)
{
    cublas *blas = state_of(engine)->blas;
    if (!blas) return;
    if (blas->handle) blas->destroy(blas->handle);
    sp_array_free(engine->context, SP_DEVICE, blas->workspace);
    sp_free(engine->context, blas);
    state_of(engine)->blas = NULL;
}

/* Setting a stream resets the work space, so the work space is set afterwards. */
sp_status gnn_cuda_open_blas(gnn_engine *engine)
{
    gnn_cuda_state *state = state_of(engine);
    void *library = load_library();
    if (!library)
        return sp_fail(engine->context, SP_ERROR_NO_DEVICE,
                       "no libcublas.so.13, .12, .11 or .so where the loader looks (LD_LIBRARY_PATH) or beside the "
                       "CUDA toolkit (CUDA_HOME): %s", dlerror());
    CHECK(sp_calloc(engine->context, 1, sizeof *state->blas, (void **)&state->blas));
    if (!bind(library, state->blas))
        return sp_fail(engine->context, SP_ERROR_NO_DEVICE,
                       "this libcublas lacks a function: 11.4 or later is needed");
    CHECK(check_blas(engine, state->blas->create(&state->blas->handle), "cublasCreate"));
    CHECK(check_blas(engine, state->blas->set_stream(state->blas->handle, state->stream), "cublasSetStream"));
    CHECK(check_blas(engine, state->blas->set_mode(state->blas->handle, CUBLAS_SUMS_OF_PARTS_F32),
                     "cublasSetMathMode"));
    CHECK(sp_array_create(engine->context, WORKSPACE, 1, SP_DEVICE, &state->blas->workspace));
    return check_blas(engine, state->blas->set_workspace(state->blas->handle, state->blas->workspace, WORKSPACE),
                      "cublasSetWorkspace");
}

/* ---- products -------------------------------------------------------------------------------------------- */

static bool fits_blas(const sp_dense *matrix)
{
    return matrix->rows <= INT32_MAX && matrix->cols <= INT32_MAX && matrix->stride <= INT32_MAX;
}

/* An empty matrix may have a stride of 0, which cuBLAS refuses. */
static int stride_of(const sp_dense *matrix) { return matrix->stride > 0 ? (int)matrix->stride : 1; }

template <typename T>
static int multiply(const cublas *blas, cublas_multiply<T> *function, bool transpose_a, bool transpose_b,
                    double alpha, const sp_dense *a, const sp_dense *b, double beta, sp_dense *c)
{
    const T by = (T)alpha, keep = (T)beta;
    return function(blas->handle, transpose_b ? CUBLAS_TRANSPOSE : CUBLAS_KEEP,
                    transpose_a ? CUBLAS_TRANSPOSE : CUBLAS_KEEP, (int)c->cols, (int)c->rows,
                    (int)(transpose_a ? a->rows : a->cols), &by, (const T *)b->values, stride_of(b),
                    (const T *)a->values, stride_of(a), &keep, (T *)c->values, stride_of(c));
}

/* ---- bf16 ------------------------------------------------------------------------------------------------ */

/* cuBLAS 13.0 takes two to five times as long if the length of a row is not a multiple of eight numbers: 89,250 x
 * 500 times 500 x 256 takes 121 us, with 504 for 500 45; Aᵀ·B of these takes 239 and 47. Rows of the engine's
 * matrices end in padding (gnn_row_stride) that holds finite numbers (gnn_matrix_shape), so a product takes it for
 * columns. Surplus columns of C fall into its padding. Where the inner dimension is longer, B is copied with zeros
 * behind it. */
enum { EIGHT = 8, BLAS_TILE = 128 };

static int64_t in_eights(int64_t cols) { return ceil_div(cols, EIGHT) * EIGHT; }

/* The columns that a product may take a matrix to have. */
static int64_t padded_cols(const sp_dense *matrix)
{
    const bool whole = (uintptr_t)matrix->values % 16 == 0 && matrix->stride % EIGHT == 0;
    return whole ? in_eights(matrix->cols) : matrix->cols;
}

/* Bytes of split_partial. */
static int64_t scratch_bytes(const gnn_cuda_state *state)
{
    return state->split_partial ? (int64_t)state->processors * BLAS_TILE * BLAS_TILE * (int64_t)sizeof(float) : 0;
}

/* C = Aᵀ·B over the nodes has few tiles and a long inner dimension. It is cut into parts of equal length, a multiple of
 * 8, side by side, at least LEAST_PART rows each, which the pass over C adds up in their order. That also multiplies
 * the rows that are left. In one call cuBLAS 13.0 chooses how to cut; for 64 x 600 and an inner dimension of 8,964 the
 * result was off by 2e-4 of the sum of magnitudes, a hundred times what f32 sums lose. */
enum { LEAST_PART = 1024, MOST_PARTS = 16 };

struct parts_op {
    using local = nothing;
    using input = nothing;
    const float *partial;
    int parts;
    int64_t stride, size, first, rows; /* stride, size: of a part; the rows first .. rows - 1 of A and B are left */
    dense_view<const __nv_bfloat16> a, b;
    float alpha, beta;
    dense_view<float> c;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t, int64_t) const { return {}; }
    __device__ __forceinline__ void store(int64_t i, int64_t j, const input &, const local &) const
    {
        float sum = 0;
#pragma unroll 8
        for (int p = 0; p < parts; p++) sum += partial[p * size + i * stride + j];
#pragma unroll 4
        for (int64_t k = first; k < rows; k++)
            sum = fused(number_from(a.values + k * a.stride + i), number_from(b.values + k * b.stride + j), sum);
        float *to = c.values + i * c.stride + j;
        *to = beta != 0 ? alpha * sum + beta * *to : alpha * sum;
    }
};

/* The number of parts; 0: there is no room for one. */
static int parts_of(const gnn_cuda_state *state, const sp_dense *a, const sp_dense *b)
{
    const int64_t rows = padded_cols(a), cols = padded_cols(b);
    const int64_t tiles = ceil_div(rows, BLAS_TILE) * ceil_div(cols, BLAS_TILE);
    const int64_t room = scratch_bytes(state) / (rows * cols * (int64_t)sizeof(float));
    int64_t parts = 2 * state->processors / tiles;
    parts = parts < a->rows / LEAST_PART ? parts : a->rows / LEAST_PART;
    parts = parts < MOST_PARTS ? parts : (int64_t)MOST_PARTS;
    parts = parts > 1 ? parts : 1;
    return (int)(parts < room ? parts : room);
}

static sp_status multiply_parts(gnn_engine *engine, int parts, double alpha, const sp_dense *a, const sp_dense *b,
                                double beta, sp_dense *c)
{
    const cublas *blas = state_of(engine)->blas;
    const int64_t rows = padded_cols(a), cols = padded_cols(b), size = rows * cols;
    const int64_t length = a->rows / parts / EIGHT * EIGHT;
    const float one = 1, zero = 0;
    float *partial = state_of(engine)->split_partial;
    const parts_op op = {partial, length > 0 ? parts : 0, cols, size, length * parts, a->rows,
                         {(const __nv_bfloat16 *)a->values, a->stride}, {(const __nv_bfloat16 *)b->values, b->stride},
                         (float)alpha, (float)beta, view_of<float>(c)};
    if (length > 0)
        CHECK(check_blas(engine,
                         blas->multiply_many(blas->handle, CUBLAS_KEEP, CUBLAS_TRANSPOSE, (int)cols, (int)rows,
                                             (int)length, &one, b->values, CUBLAS_BF16, stride_of(b),
                                             length * b->stride, a->values, CUBLAS_BF16, stride_of(a),
                                             length * a->stride, &zero, partial, CUBLAS_F32, (int)cols, size, parts,
                                             CUBLAS_SUMS_F32, CUBLAS_USUAL_WAY),
                         "cublasGemmStridedBatchedEx"));
    return launch_each<float, 1>(engine, c->rows, c->cols, op);
}

struct pad_op {
    using local = nothing;
    using input = nothing;
    dense_view<const __nv_bfloat16> from;
    int64_t rows, cols; /* of `from`; beyond it there are zeros */
    dense_view<__nv_bfloat16> to;

    __device__ __forceinline__ local begin(int64_t) const { return {}; }
    __device__ __forceinline__ input load(int64_t, int64_t) const { return {}; }
    __device__ __forceinline__ void store(int64_t i, int64_t j, const input &, const local &) const
    {
        to.values[i * to.stride + j] = i < rows && j < cols ? from.values[i * from.stride + j] : __nv_bfloat16(0.0f);
    }
};

static int any_type(const sp_dense *matrix) { return matrix->type == SP_DENSE_BF16 ? CUBLAS_BF16 : CUBLAS_F32; }

/* C = alpha · op(A)·op(B) + beta · C, taken to have `cols` columns and an inner dimension of `inner`. */
static sp_status multiply_half(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha, const sp_dense *a,
                               const sp_dense *b, double beta, sp_dense *c, int64_t cols, int64_t inner)
{
    const cublas *blas = state_of(engine)->blas;
    const float by = (float)alpha, keep = (float)beta;
    return check_blas(engine,
                      blas->multiply_any(blas->handle, transpose_b ? CUBLAS_TRANSPOSE : CUBLAS_KEEP,
                                         transpose_a ? CUBLAS_TRANSPOSE : CUBLAS_KEEP, (int)cols, (int)c->rows,
                                         (int)inner, &by, b->values, any_type(b), stride_of(b), a->values, any_type(a),
                                         stride_of(a), &keep, c->values, any_type(c), stride_of(c), CUBLAS_SUMS_F32,
                                         CUBLAS_USUAL_WAY),
                      "cublasGemmEx");
}

/* C = alpha · A·op(B) + beta · C with the padding of A and C. */
static sp_status multiply_padded(gnn_engine *engine, bool transpose_b, double alpha, const sp_dense *a,
                                 const sp_dense *b, double beta, sp_dense *c)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t inner = padded_cols(a), cols = padded_cols(c);
    sp_dense copy = *b;
    copy.rows = transpose_b ? cols : inner;
    copy.cols = copy.stride = transpose_b ? inner : cols;
    copy.values = state->split_partial;
    if ((inner == a->cols && cols == c->cols) || copy.cols > scratch_bytes(state) / 2 / copy.rows)
        return multiply_half(engine, false, transpose_b, alpha, a, b, beta, c, c->cols, a->cols);
    const pad_op pad = {{(const __nv_bfloat16 *)b->values, b->stride}, b->rows, b->cols, view_of<__nv_bfloat16>(&copy)};
    CHECK((launch_each<__nv_bfloat16, 1>(engine, copy.rows, copy.cols, pad)));
    return multiply_half(engine, false, transpose_b, alpha, a, &copy, beta, c, cols, inner);
}

/* ---- any product --------------------------------------------------------------------------------------------- */

sp_status gnn_cuda_multiply_features(gnn_engine *engine, bool transpose, const sp_dense *x, int count,
                                     const gnn_product_with *product)
{
    if (gnn_cuda_narrow_wins(engine, transpose, false, x, count, product))
        return gnn_cuda_multiply_narrow(engine, transpose, 1, x, count, product, 0);
    if (count > 1) {
        CHECK(gnn_cuda_multiply_features(engine, transpose, x, 1, product));
        return gnn_cuda_multiply_features(engine, transpose, x, count - 1, product + 1);
    }
    const sp_dense first = gnn_first_rows(x, (transpose ? product->b : product->c)->rows);
    return gnn_cuda_multiply(engine, transpose, false, 1, &first, product->b, 0, product->c);
}

sp_status gnn_cuda_multiply(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha, const sp_dense *a,
                            const sp_dense *b, double beta, sp_dense *c)
{
    const cublas *blas = state_of(engine)->blas;
    const int64_t inner = transpose_a ? a->rows : a->cols;
    const gnn_product_with narrow = {b, c};
    if (!fits_blas(a) || !fits_blas(b) || !fits_blas(c))
        return sp_fail(engine->context, SP_ERROR_UNSUPPORTED,
                       "a product of %lld x %lld x %lld: cuBLAS counts to 2^31", (long long)c->rows, (long long)inner,
                       (long long)c->cols);
    if (c->rows == 0 || c->cols == 0) return SP_OK;
    if (gnn_cuda_narrow_wins(engine, transpose_a, transpose_b, a, 1, &narrow))
        return gnn_cuda_multiply_narrow(engine, transpose_a, alpha, a, 1, &narrow, beta);
    if (gnn_cuda_split_wins(engine, transpose_a, transpose_b, a, c)) {
        const gnn_product product = {a, b};
        const gnn_pointwise no_more = {GNN_LINEAR, 0, 0};
        return gnn_cuda_multiply_split(engine, transpose_a, transpose_b, alpha, 1, &product, beta, &no_more, NULL, c);
    }
    if (a->type == SP_DENSE_BF16) {
        if (!transpose_a) return multiply_padded(engine, transpose_b, alpha, a, b, beta, c);
        const int parts = !transpose_b && c->type == SP_DENSE_F32 ? parts_of(state_of(engine), a, b) : 0;
        if (parts > 0) return multiply_parts(engine, parts, alpha, a, b, beta, c);
        return multiply_half(engine, true, transpose_b, alpha, a, b, beta, c, c->cols, inner);
    }
    return check_blas(engine,
                      c->type == SP_DENSE_F32
                          ? multiply(blas, blas->multiply_f32, transpose_a, transpose_b, alpha, a, b, beta, c)
                          : multiply(blas, blas->multiply_f64, transpose_a, transpose_b, alpha, a, b, beta, c),
                      c->type == SP_DENSE_F32 ? "cublasSgemm" : "cublasDgemm");
}
