/* Intel's oneMKL, loaded at run time: sparse times dense by mkl_sparse_?_mm on the CPU, with the hint of many products
 * of this width and mkl_sparse_optimize. The few prototypes stand here, of the interface with integers of 32 bits. */
#include <dlfcn.h>
#include <limits.h>

#include "sparse-bench/spmm/spmm_bench.h"

typedef void *mkl_matrix;
/* struct matrix_descr; only `type` counts for a general matrix. */
typedef struct mkl_kind {
    int type, triangle, diagonal;
} mkl_kind;
typedef int mkl_create(mkl_matrix *, int base, int rows, int cols, int *starts, int *ends, int *indices, void *values);
typedef int mkl_multiply_f32(int operation, float alpha, mkl_matrix, mkl_kind, int layout, const float *x, int columns,
                             int x_stride, float beta, float *y, int y_stride);
typedef int mkl_multiply_f64(int operation, double alpha, mkl_matrix, mkl_kind, int layout, const double *x,
                             int columns, int x_stride, double beta, double *y, int y_stride);

enum { MKL_SUCCESS = 0, MKL_ALLOC_FAILED = 2, MKL_AS_IT_IS = 10, MKL_GENERAL = 20, MKL_ROW_MAJOR = 101 };
enum { EXPECTED_CALLS = 1000 };
static const char *const algorithms[] = {"MKL", NULL};
static const mkl_kind general = {.type = MKL_GENERAL};

typedef struct mkl {
    sp_context *context;
    sp_value_type type;
    mkl_create *create;
    mkl_multiply_f32 *multiply_f32;
    mkl_multiply_f64 *multiply_f64;
    int (*hint)(mkl_matrix, int operation, mkl_kind, int layout, int columns, int calls), (*optimize)(mkl_matrix),
        (*destroy)(mkl_matrix);
    const sp_csr *a;
    const sp_dense *x;
    const void *values;
    void *ones, *y;
    int *offsets;
    mkl_matrix handle;
} mkl;

static bool bind(mkl *m, void *library)
{
    *(void **)&m->create = dlsym(library, m->type == SP_F64 ? "mkl_sparse_d_create_csr" : "mkl_sparse_s_create_csr");
    *(void **)&m->multiply_f32 = dlsym(library, "mkl_sparse_s_mm");
    *(void **)&m->multiply_f64 = dlsym(library, "mkl_sparse_d_mm");
    *(void **)&m->hint = dlsym(library, "mkl_sparse_set_mm_hint");
    *(void **)&m->optimize = dlsym(library, "mkl_sparse_optimize");
    *(void **)&m->destroy = dlsym(library, "mkl_sparse_destroy");
    return m->create && m->multiply_f32 && m->multiply_f64 && m->hint && m->optimize && m->destroy;
}

static sp_status mkl_open(sp_context *context, const spmm_options *options, void **state)
{
    mkl *m;
    void *library;
    sp_status status = mkl_open_library(context, &library);
    if (status == SP_OK) status = sp_calloc(context, 1, sizeof *m, (void **)&m);
    if (status != SP_OK) return status;
    *m = (mkl){.context = context, .type = options->common.type};
    if (!bind(m, library)) {
        sp_free(context, m);
        return sp_fail(context, SP_ERROR_NO_DEVICE, "libmkl_rt lacks a function");
    }
    *state = m;
    return SP_OK;
}

static void mkl_close(void *state)
{
    mkl *m = state;
    sp_free(m->context, m); /* the library itself stays: its threads may */
}

static sp_status check(mkl *m, int code, const char *what)
{
    if (code == MKL_SUCCESS) return SP_OK;
    return sp_fail(m->context, code == MKL_ALLOC_FAILED ? SP_ERROR_HOST_MEMORY : SP_ERROR_DEVICE,
                   "MKL: %s failed with code %d", what, code);
}

static void mkl_unload(void *state)
{
    mkl *m = state;
    if (m->handle) m->destroy(m->handle);
    sp_free(m->context, m->offsets);
    sp_free(m->context, m->ones);
    sp_free(m->context, m->y);
    m->handle = m->ones = m->y = NULL;
    m->offsets = NULL;
}

/* It reads A's columns and values, and X, where they lie. */
static sp_status mkl_load(void *state, const sp_csr *a, const sp_dense *x)
{
    mkl *m = state;
    sp_status status;
    if (x->type == SP_DENSE_F16 || x->type == SP_DENSE_BF16)
        return sp_fail(m->context, SP_ERROR_UNSUPPORTED, "MKL multiplies no numbers of 16 bits here");
    if (a->nnz > INT_MAX)
        return sp_fail(m->context, SP_ERROR_UNSUPPORTED, "%lld entries are more than it counts", (long long)a->nnz);
    m->a = a;
    m->x = x;
    TRY(values_or_ones(m->context, a, &m->values, &m->ones));
    TRY(sp_alloc(m->context, a->rows + 1, sizeof *m->offsets, (void **)&m->offsets));
    for (int64_t i = 0; i <= a->rows; i++) m->offsets[i] = (int)a->row_offsets[i];
    TRY(sp_calloc(m->context, a->rows * x->cols, spmm_size_of(x->type), &m->y));
done:
    if (status != SP_OK) mkl_unload(m);
    return status;
}

static sp_status mkl_prepare(void *state, int algorithm)
{
    mkl *m = state;
    const int width = (int)m->x->cols;
    sp_status status;
    (void)algorithm;
    if (m->handle) m->destroy(m->handle);
    m->handle = NULL;
    TRY(check(m, m->create(&m->handle, 0, (int)m->a->rows, (int)m->a->cols, m->offsets, m->offsets + 1,
                           m->a->col_indices, (void *)(uintptr_t)m->values), "taking a matrix"));
    TRY(check(m, m->hint(m->handle, MKL_AS_IT_IS, general, MKL_ROW_MAJOR, width, EXPECTED_CALLS), "a hint"));
    TRY(check(m, m->optimize(m->handle), "mkl_sparse_optimize"));
done:
    return status;
}

static sp_status mkl_run(void *state)
{
    mkl *m = state;
    const int width = (int)m->x->cols;
    const int code = m->type == SP_F64
                         ? m->multiply_f64(MKL_AS_IT_IS, 1, m->handle, general, MKL_ROW_MAJOR, m->x->values, width,
                                           width, 0, m->y, width)
                         : m->multiply_f32(MKL_AS_IT_IS, 1, m->handle, general, MKL_ROW_MAJOR, m->x->values, width,
                                           width, 0, m->y, width);
    return check(m, code, "mkl_sparse_mm");
}

static sp_status mkl_view(void *state, const void **y)
{
    *y = ((mkl *)state)->y;
    return SP_OK;
}

const spmm_peer spmm_peer_mkl = {algorithms, mkl_open, mkl_load, mkl_prepare, mkl_run,
                                 mkl_view, mkl_unload, mkl_close, mkl_version, NULL};
