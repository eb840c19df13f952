/* Intel's oneMKL, loaded at run time: mkl_sparse_spmm on the CPU. Its columns come in any order; the first algorithm
 * has them sorted by mkl_sparse_order, as ours are, the second leaves them. Its header is not needed: the few
 * prototypes stand here, of the interface with integers of 32 bits, which is the faster one. */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#include "sparse-bench/bench.h"

typedef void *mkl_matrix;
typedef int mkl_create(mkl_matrix *, int base, int rows, int cols, int *starts, int *ends, int *indices,
                       void *values);
typedef int mkl_export(mkl_matrix, int *base, int *rows, int *cols, int **starts, int **ends, int **indices,
                       void **values);

enum { MKL_SUCCESS = 0, MKL_ALLOC_FAILED = 2, MKL_AS_IT_IS = 10 };

/* A matrix in its widths; the values are the caller's or `ones`. */
typedef struct operand {
    mkl_matrix handle;
    int *offsets;
    void *ones;
} operand;

typedef struct mkl {
    sp_context *context;
    const bench_options *options;
    mkl_create *create;
    mkl_export *export;
    int (*spmm)(int operation, mkl_matrix a, mkl_matrix b, mkl_matrix *c), (*order)(mkl_matrix), (*destroy)(mkl_matrix);
    operand a, b, last; /* b may lack a handle: it is a then */
    mkl_matrix c;
} mkl;

/* ---- loading ------------------------------------------------------------------------------------------- */

static bool bind(mkl *m, void *library)
{
    const bool wide = m->options->type == SP_F64;
    *(void **)&m->create = dlsym(library, wide ? "mkl_sparse_d_create_csr" : "mkl_sparse_s_create_csr");
    *(void **)&m->export = dlsym(library, wide ? "mkl_sparse_d_export_csr" : "mkl_sparse_s_export_csr");
    *(void **)&m->spmm = dlsym(library, "mkl_sparse_spmm");
    *(void **)&m->order = dlsym(library, "mkl_sparse_order");
    *(void **)&m->destroy = dlsym(library, "mkl_sparse_destroy");
    return m->create && m->export && m->spmm && m->order && m->destroy;
}

static void mkl_close(void *state)
{
    mkl *m = state;
    sp_free(m->context, m); /* the library itself stays: its threads may */
}

static sp_status mkl_open(sp_context *context, const bench_options *options, void **state)
{
    mkl *m;
    void *library;
    sp_status status = mkl_open_library(context, &library);
    if (status == SP_OK) status = sp_calloc(context, 1, sizeof *m, (void **)&m);
    if (status != SP_OK) return status;
    *m = (mkl){.context = context, .options = options};
    if (!bind(m, library)) {
        sp_free(context, m);
        return sp_fail(context, SP_ERROR_NO_DEVICE, "libmkl_rt lacks a function");
    }
    *state = m;
    return SP_OK;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

static sp_status failure(mkl *m, int code, const char *what)
{
    return sp_fail(m->context, code == MKL_ALLOC_FAILED ? SP_ERROR_HOST_MEMORY : SP_ERROR_DEVICE,
                   "MKL: %s failed with code %d", what, code);
}

static void give_back(mkl *m, operand *o)
{
    if (o->handle) m->destroy(o->handle);
    sp_free(m->context, o->offsets);
    sp_free(m->context, o->ones);
    memset(o, 0, sizeof *o);
}

/* It reads our columns and values where they lie. */
static sp_status take(mkl *m, const sp_csr *from, operand *to)
{
    const void *values;
    sp_status status;
    if (from->nnz > INT_MAX)
        return sp_fail(m->context, SP_ERROR_UNSUPPORTED, "%lld entries are more than it counts", (long long)from->nnz);
    TRY(values_or_ones(m->context, from, &values, &to->ones));
    TRY(sp_alloc(m->context, from->rows + 1, sizeof(int), (void **)&to->offsets));
    for (int64_t i = 0; i <= from->rows; i++) to->offsets[i] = (int)from->row_offsets[i];
    const int code = m->create(&to->handle, 0, (int)from->rows, (int)from->cols, to->offsets, to->offsets + 1,
                               from->col_indices, (void *)(uintptr_t)values);
    if (code != MKL_SUCCESS) TRY(failure(m, code, "taking a matrix"));
done:
    if (status != SP_OK) give_back(m, to);
    return status;
}

static void mkl_unload(void *state)
{
    mkl *m = state;
    give_back(m, &m->a);
    give_back(m, &m->b);
    give_back(m, &m->last);
}

static sp_status mkl_load(void *state, const sp_csr *a, const sp_csr *b)
{
    mkl *m = state;
    if (m->options->semiring != SP_PLUS_TIMES)
        return sp_fail(m->context, SP_ERROR_UNSUPPORTED, "MKL has no semiring but plus-times");
    sp_status status = take(m, a, &m->a);
    if (status == SP_OK && b != a) status = take(m, b, &m->b);
    if (status != SP_OK) mkl_unload(m);
    return status;
}

static sp_status mkl_follow(void *state, const sp_csr *last)
{
    mkl *m = state;
    return take(m, last, &m->last);
}

/* ---- products ------------------------------------------------------------------------------------------ */

enum { SORTED, UNSORTED };
static const char *const algorithms[] = {"MKL", "MKL unsorted", NULL};

static void mkl_drop(void *state)
{
    mkl *m = state;
    if (m->c) m->destroy(m->c);
    m->c = NULL;
}

static sp_status mkl_run(void *state, int algorithm)
{
    mkl *m = state;
    mkl_matrix first = NULL;
    mkl_drop(m);
    const mkl_matrix b = m->b.handle ? m->b.handle : m->a.handle;
    int code = m->spmm(MKL_AS_IT_IS, m->a.handle, b, m->last.handle ? &first : &m->c);
    if (code == MKL_SUCCESS && m->last.handle) code = m->spmm(MKL_AS_IT_IS, first, m->last.handle, &m->c);
    if (first) m->destroy(first);
    if (code == MKL_SUCCESS && algorithm == SORTED) code = m->order(m->c);
    return code == MKL_SUCCESS ? SP_OK : failure(m, code, "mkl_sparse_spmm");
}

static sp_status mkl_view(void *state, raw_matrix *c)
{
    mkl *m = state;
    int base, rows, cols, *starts, *ends, *indices;
    void *values;
    const int code = m->export(m->c, &base, &rows, &cols, &starts, &ends, &indices, &values);
    if (code != MKL_SUCCESS) return failure(m, code, "giving a matrix back");
    if (ends != starts + 1) return sp_fail(m->context, SP_ERROR_UNSUPPORTED, "MKL: rows of C do not lie in a row");
    *c = (raw_matrix){.rows = rows, .nnz = rows ? ends[rows - 1] : 0, .offsets = starts, .cols = indices,
                      .values = values, .offset_width = 4, .col_width = 4, .type = m->options->type};
    return SP_OK;
}

const peer peer_mkl = {.name = "mkl", .algorithms = algorithms, .open = mkl_open, .load = mkl_load,
                       .follow = mkl_follow, .run = mkl_run, .drop = mkl_drop, .view = mkl_view,
                       .unload = mkl_unload, .close = mkl_close, .version = mkl_version};
