/* SuiteSparse:GraphBLAS (Davis 2019, 2023), loaded at run time: sparse times dense by GrB_mxm on the CPU, with a new
 * Y each time, or with Y += A·X, for which it has loops of its own. Its header is not needed: the few prototypes
 * stand here, of version 5 and later. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sparse-bench/spmm/spmm_bench.h"

typedef void *grb_matrix;

enum { GRB_SUCCESS = 0, GRB_OUT_OF_MEMORY = -102, GRB_MATERIALIZE = 1, GRB_NONBLOCKING = 0 };
enum { NEW, ACCUMULATED };
static const char *const algorithms[] = {"GraphBLAS", "GraphBLAS accumulated", NULL};

typedef struct graphblas {
    sp_context *context;
    int (*matrix_new)(grb_matrix *, void *type, uint64_t rows, uint64_t cols);
    int (*matrix_free)(grb_matrix *);
    int (*mxm)(grb_matrix c, void *mask, void *accumulate, void *semiring, grb_matrix a, grb_matrix b, void *desc);
    int (*pack_csr)(grb_matrix, uint64_t **offsets, uint64_t **cols, void **values, uint64_t offsets_size,
                    uint64_t cols_size, uint64_t values_size, bool iso, bool jumbled, void *desc);
    int (*pack_full)(grb_matrix, void **values, uint64_t size, bool iso, void *desc);
    int (*extract)(uint64_t *rows, uint64_t *cols, void *values, uint64_t *count, grb_matrix);
    int (*wait)(grb_matrix, int);
    int (*finalize)(void);
    void *type, *semiring, *plus;
    grb_matrix a, x, y;
    size_t size; /* of a value */
    int64_t rows, width;
    int algorithm;
    void *values; /* of Y, while it is looked at */
} graphblas;

static sp_status failure(graphblas *g, int code, const char *what)
{
    return sp_fail(g->context, code == GRB_OUT_OF_MEMORY ? SP_ERROR_HOST_MEMORY : SP_ERROR_DEVICE,
                   "GraphBLAS: %s failed with code %d", what, code);
}

static bool bind(graphblas *g, void *library)
{
    const struct {
        void **pointer;
        const char *name;
    } functions[] = {
        {(void **)&g->matrix_new, "GrB_Matrix_new"},         {(void **)&g->matrix_free, "GrB_Matrix_free"},
        {(void **)&g->mxm, "GrB_mxm"},                       {(void **)&g->pack_csr, "GxB_Matrix_pack_CSR"},
        {(void **)&g->pack_full, "GxB_Matrix_pack_FullR"},   {(void **)&g->wait, "GrB_Matrix_wait"},
        {(void **)&g->extract, g->size == 4 ? "GrB_Matrix_extractTuples_FP32" : "GrB_Matrix_extractTuples_FP64"},
        {(void **)&g->finalize, "GrB_finalize"},
    };
    void **type = dlsym(library, g->size == 4 ? "GrB_FP32" : "GrB_FP64");
    void **plus = dlsym(library, g->size == 4 ? "GrB_PLUS_FP32" : "GrB_PLUS_FP64");
    void **semiring = dlsym(library, g->size == 4 ? "GrB_PLUS_TIMES_SEMIRING_FP32" : "GrB_PLUS_TIMES_SEMIRING_FP64");
    int (*init)(int);
    *(void **)&init = dlsym(library, "GrB_init");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!(*functions[i].pointer = dlsym(library, functions[i].name))) return false;
    if (!type || !plus || !semiring || !init || init(GRB_NONBLOCKING) != GRB_SUCCESS ||
        !graphblas_use_threads(library, sp_context_threads(g->context)))
        return false;
    g->type = *type;
    g->plus = *plus;
    g->semiring = *semiring;
    return true;
}

static sp_status graphblas_open(sp_context *context, const spmm_options *options, void **state)
{
    void *library = graphblas_library();
    graphblas *g;
    if (!library) return sp_fail(context, SP_ERROR_NO_DEVICE, "no libgraphblas on this machine");
    sp_status status = sp_calloc(context, 1, sizeof *g, (void **)&g);
    if (status != SP_OK) return status;
    *g = (graphblas){.context = context, .size = options->common.type == SP_F32 ? sizeof(float) : sizeof(double)};
    if (!bind(g, library)) {
        sp_free(context, g);
        return sp_fail(context, SP_ERROR_NO_DEVICE, "libgraphblas lacks a function, or does not start");
    }
    *state = g;
    return SP_OK;
}

static void graphblas_close(void *state)
{
    graphblas *g = state;
    g->finalize();
    sp_free(g->context, g); /* the library itself stays: its threads may */
}

static void graphblas_unload(void *state)
{
    graphblas *g = state;
    g->matrix_free(&g->a);
    g->matrix_free(&g->x);
    g->matrix_free(&g->y);
    sp_free(g->context, g->values);
    g->a = g->x = g->y = g->values = NULL;
}

/* A in its own widths, in memory that it will free by free(). */
static int load_sparse(graphblas *g, const sp_csr *from)
{
    const size_t nnz = (size_t)from->nnz, rows = (size_t)from->rows;
    uint64_t *offsets = malloc((rows + 1) * 8), *cols = malloc((nnz + 1) * 8);
    void *values = malloc((nnz + 1) * g->size);
    int code = offsets && cols && values ? g->matrix_new(&g->a, g->type, rows, (uint64_t)from->cols)
                                         : GRB_OUT_OF_MEMORY;
    if (code == GRB_SUCCESS) {
        for (size_t i = 0; i <= rows; i++) offsets[i] = (uint64_t)from->row_offsets[i];
        for (size_t k = 0; k < nnz; k++) cols[k] = (uint64_t)from->col_indices[k];
        if (from->values) memcpy(values, from->values, nnz * g->size);
        for (size_t k = 0; k < nnz && !from->values; k++)
            if (g->size == 4) ((float *)values)[k] = 1;
            else ((double *)values)[k] = 1;
        code = g->pack_csr(g->a, &offsets, &cols, &values, (rows + 1) * 8, (nnz + 1) * 8, (nnz + 1) * g->size, false,
                           false, NULL);
    }
    free(offsets); /* NULL once they are its own */
    free(cols);
    free(values);
    return code;
}

/* A full matrix with these values, or zeros. */
static int load_full(graphblas *g, int64_t rows, int64_t cols, const void *from, grb_matrix *to)
{
    const size_t bytes = (size_t)rows * (size_t)cols * g->size;
    void *values = calloc(bytes + 1, 1);
    int code = values ? g->matrix_new(to, g->type, (uint64_t)rows, (uint64_t)cols) : GRB_OUT_OF_MEMORY;
    if (code == GRB_SUCCESS && from) memcpy(values, from, bytes);
    if (code == GRB_SUCCESS) code = g->pack_full(*to, &values, bytes, false, NULL);
    free(values);
    return code;
}

static sp_status graphblas_load(void *state, const sp_csr *a, const sp_dense *x)
{
    graphblas *g = state;
    if (x->type == SP_DENSE_F16 || x->type == SP_DENSE_BF16)
        return sp_fail(g->context, SP_ERROR_UNSUPPORTED, "GraphBLAS has no numbers of 16 bits");
    g->rows = a->rows;
    g->width = x->cols;
    int code = load_sparse(g, a);
    if (code == GRB_SUCCESS) code = load_full(g, x->rows, x->cols, x->values, &g->x);
    if (code == GRB_SUCCESS) return SP_OK;
    graphblas_unload(g);
    return failure(g, code, "taking a matrix");
}

static sp_status graphblas_prepare(void *state, int algorithm)
{
    graphblas *g = state;
    int code = GRB_SUCCESS;
    g->algorithm = algorithm;
    g->matrix_free(&g->y);
    if (algorithm == ACCUMULATED) code = load_full(g, g->rows, g->width, NULL, &g->y);
    return code == GRB_SUCCESS ? SP_OK : failure(g, code, "taking a matrix");
}

static sp_status graphblas_run(void *state)
{
    graphblas *g = state;
    int code = GRB_SUCCESS;
    if (g->algorithm == NEW) {
        g->matrix_free(&g->y);
        code = g->matrix_new(&g->y, g->type, (uint64_t)g->rows, (uint64_t)g->width);
    }
    if (code == GRB_SUCCESS)
        code = g->mxm(g->y, NULL, g->algorithm == NEW ? NULL : g->plus, g->semiring, g->a, g->x, NULL);
    if (code == GRB_SUCCESS) code = g->wait(g->y, GRB_MATERIALIZE);
    return code == GRB_SUCCESS ? SP_OK : failure(g, code, "GrB_mxm");
}

/* Y as a list of entries, whatever its form; one more product where Y has been added to. */
static sp_status graphblas_view(void *state, const void **y)
{
    graphblas *g = state;
    const int64_t most = g->rows * g->width;
    uint64_t count = (uint64_t)most, *rows = NULL, *cols = NULL;
    char *values = NULL;
    sp_status status;
    if (g->algorithm == ACCUMULATED) {
        TRY(graphblas_prepare(g, ACCUMULATED));
        TRY(graphblas_run(g));
    }
    sp_free(g->context, g->values);
    g->values = NULL;
    TRY(sp_alloc(g->context, most, sizeof *rows, (void **)&rows));
    TRY(sp_alloc(g->context, most, sizeof *cols, (void **)&cols));
    TRY(sp_alloc(g->context, most, g->size, (void **)&values));
    TRY(sp_calloc(g->context, most, g->size, &g->values));
    const int code = g->extract(rows, cols, values, &count, g->y);
    if (code != GRB_SUCCESS) TRY(failure(g, code, "giving a matrix back"));
    for (uint64_t k = 0; k < count; k++)
        memcpy((char *)g->values + (rows[k] * (uint64_t)g->width + cols[k]) * g->size, values + k * g->size, g->size);
    *y = g->values;
done:
    sp_free(g->context, rows);
    sp_free(g->context, cols);
    sp_free(g->context, values);
    return status;
}

const spmm_peer spmm_peer_graphblas = {algorithms, graphblas_open, graphblas_load, graphblas_prepare, graphblas_run,
                                       graphblas_view, graphblas_unload, graphblas_close, graphblas_version, NULL};
