/* SuiteSparse:GraphBLAS (Davis 2019, 2023), loaded at run time: GrB_mxm on the CPU. It may leave the columns of a row
 * in any order until somebody needs them ("jumbled"); the first algorithm has them sorted, as ours are, the second
 * leaves them. Its header is not needed: the few prototypes stand here, of version 5 and later. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sparse-bench/bench.h"

typedef void *grb_matrix;
typedef int grb_new(grb_matrix *, void *type, uint64_t rows, uint64_t cols);
typedef int grb_mxm(grb_matrix c, void *mask, void *accumulate, void *semiring, grb_matrix a, grb_matrix b,
                    void *desc);
typedef int grb_pack(grb_matrix, uint64_t **offsets, uint64_t **cols, void **values, uint64_t offsets_size,
                     uint64_t cols_size, uint64_t values_size, bool iso, bool jumbled, void *desc);
typedef int grb_unpack(grb_matrix, uint64_t **offsets, uint64_t **cols, void **values, uint64_t *offsets_size,
                       uint64_t *cols_size, uint64_t *values_size, bool *iso, bool *jumbled, void *desc);

enum { GRB_SUCCESS = 0, GRB_OUT_OF_MEMORY = -102, GRB_MATERIALIZE = 1, GRB_NONBLOCKING = 0 };

typedef struct graphblas {
    sp_context *context;
    const bench_options *options;
    void *library;
    grb_new *matrix_new;
    grb_mxm *mxm;
    grb_pack *pack;
    grb_unpack *unpack;
    int (*matrix_free)(grb_matrix *), (*wait)(grb_matrix, int), (*finalize)(void);
    void *type, *semiring;
    grb_matrix a, b, last, c; /* b may be a; last NULL: c is their product */
    int64_t rows, inner, cols; /* inner: of a·b, cols: of c */
    uint64_t *offsets, *indices; /* of C, while it is looked at */
    void *values;
} graphblas;

/* ---- loading ------------------------------------------------------------------------------------------- */

/* The functions, and the objects behind the names of types and semirings. */
static bool bind(graphblas *g)
{
    static const char *const semirings[2][5] = {
        {"GrB_PLUS_TIMES_SEMIRING_FP32", "GxB_PLUS_PAIR_FP32", "GrB_MIN_PLUS_SEMIRING_FP32",
         "GrB_MAX_TIMES_SEMIRING_FP32", "GxB_ANY_PAIR_FP32"},
        {"GrB_PLUS_TIMES_SEMIRING_FP64", "GxB_PLUS_PAIR_FP64", "GrB_MIN_PLUS_SEMIRING_FP64",
         "GrB_MAX_TIMES_SEMIRING_FP64", "GxB_ANY_PAIR_FP64"},
    };
    const bool wide = g->options->type == SP_F64;
    void **type = dlsym(g->library, wide ? "GrB_FP64" : "GrB_FP32");
    void **semiring = dlsym(g->library, semirings[wide][g->options->semiring]);
    int (*init)(int);
    *(void **)&g->matrix_new = dlsym(g->library, "GrB_Matrix_new");
    *(void **)&g->matrix_free = dlsym(g->library, "GrB_Matrix_free");
    *(void **)&g->wait = dlsym(g->library, "GrB_Matrix_wait");
    *(void **)&g->mxm = dlsym(g->library, "GrB_mxm");
    *(void **)&g->pack = dlsym(g->library, "GxB_Matrix_pack_CSR");
    *(void **)&g->unpack = dlsym(g->library, "GxB_Matrix_unpack_CSR");
    *(void **)&g->finalize = dlsym(g->library, "GrB_finalize");
    *(void **)&init = dlsym(g->library, "GrB_init");
    if (!type || !semiring || !g->matrix_new || !g->matrix_free || !g->wait || !g->mxm || !g->pack || !g->unpack ||
        !g->finalize || !init || init(GRB_NONBLOCKING) != GRB_SUCCESS ||
        !graphblas_use_threads(g->library, sp_context_threads(g->context)))
        return false;
    g->type = *type;
    g->semiring = *semiring;
    return true;
}

static void graphblas_close(void *state)
{
    graphblas *g = state;
    g->finalize();
    sp_free(g->context, g); /* the library itself stays: its threads may */
}

static sp_status graphblas_open(sp_context *context, const bench_options *options, void **state)
{
    graphblas *g;
    void *library = graphblas_library();
    if (!library) return sp_fail(context, SP_ERROR_NO_DEVICE, "no libgraphblas on this machine");
    sp_status status = sp_calloc(context, 1, sizeof *g, (void **)&g);
    if (status != SP_OK) return status;
    *g = (graphblas){.context = context, .options = options, .library = library};
    if (!bind(g)) {
        sp_free(context, g);
        return sp_fail(context, SP_ERROR_NO_DEVICE, "libgraphblas lacks a function, or does not start");
    }
    *state = g;
    return SP_OK;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

static sp_status failure(graphblas *g, int code, const char *what)
{
    return sp_fail(g->context, code == GRB_OUT_OF_MEMORY ? SP_ERROR_HOST_MEMORY : SP_ERROR_DEVICE,
                   "GraphBLAS: %s failed with code %d", what, code);
}

/* A copy in its own widths, in memory that it will free by free(). */
static sp_status convert(graphblas *g, const sp_csr *from, grb_matrix *to)
{
    const size_t nnz = (size_t)from->nnz, size = from->value_type == SP_F32 ? 4 : 8;
    uint64_t *offsets = malloc(((size_t)from->rows + 1) * 8), *cols = malloc((nnz + 1) * 8);
    void *values = malloc((nnz + 1) * size);
    int code = offsets && cols && values ? g->matrix_new(to, g->type, (uint64_t)from->rows, (uint64_t)from->cols)
                                         : GRB_OUT_OF_MEMORY;
    if (code == GRB_SUCCESS) {
        for (int64_t i = 0; i <= from->rows; i++) offsets[i] = (uint64_t)from->row_offsets[i];
        for (size_t k = 0; k < nnz; k++) cols[k] = (uint64_t)from->col_indices[k];
        if (from->values) memcpy(values, from->values, nnz * size);
        for (size_t k = 0; k < nnz && !from->values; k++)
            if (size == 4) ((float *)values)[k] = 1;
            else ((double *)values)[k] = 1;
        code = g->pack(*to, &offsets, &cols, &values, ((size_t)from->rows + 1) * 8, (nnz + 1) * 8, (nnz + 1) * size,
                       false, false, NULL);
    }
    free(offsets); /* NULL once they are its own */
    free(cols);
    free(values);
    return code == GRB_SUCCESS ? SP_OK : failure(g, code, "taking a matrix");
}

static void graphblas_unload(void *state)
{
    graphblas *g = state;
    if (g->b != g->a) g->matrix_free(&g->b);
    g->matrix_free(&g->a);
    g->matrix_free(&g->last);
    g->a = g->b = g->last = NULL;
}

static sp_status graphblas_load(void *state, const sp_csr *a, const sp_csr *b)
{
    graphblas *g = state;
    g->rows = a->rows;
    g->inner = g->cols = b->cols;
    sp_status status = convert(g, a, &g->a);
    g->b = g->a;
    if (status == SP_OK && b != a) {
        g->b = NULL;
        status = convert(g, b, &g->b);
    }
    if (status != SP_OK) graphblas_unload(g);
    return status;
}

static sp_status graphblas_follow(void *state, const sp_csr *last)
{
    graphblas *g = state;
    g->cols = last->cols;
    return convert(g, last, &g->last);
}

/* ---- products ------------------------------------------------------------------------------------------ */

enum { SORTED, UNSORTED };
static const char *const algorithms[] = {"GraphBLAS", "GraphBLAS unsorted", NULL};

static void graphblas_drop(void *state)
{
    graphblas *g = state;
    g->matrix_free(&g->c);
    free(g->offsets);
    free(g->indices);
    free(g->values);
    g->offsets = g->indices = NULL;
    g->c = g->values = NULL;
}

static sp_status graphblas_run(void *state, int algorithm)
{
    graphblas *g = state;
    graphblas_drop(g);
    grb_matrix first = NULL;
    int code = g->matrix_new(&g->c, g->type, (uint64_t)g->rows, (uint64_t)g->cols);
    if (code == GRB_SUCCESS && g->last) {
        code = g->matrix_new(&first, g->type, (uint64_t)g->rows, (uint64_t)g->inner);
        if (code == GRB_SUCCESS) code = g->mxm(first, NULL, NULL, g->semiring, g->a, g->b, NULL);
    }
    if (code == GRB_SUCCESS)
        code = g->mxm(g->c, NULL, NULL, g->semiring, g->last ? first : g->a, g->last ? g->last : g->b, NULL);
    g->matrix_free(&first);
    if (code == GRB_SUCCESS && algorithm == SORTED) code = g->wait(g->c, GRB_MATERIALIZE);
    return code == GRB_SUCCESS ? SP_OK : failure(g, code, "GrB_mxm");
}

static sp_status graphblas_view(void *state, raw_matrix *c)
{
    graphblas *g = state;
    uint64_t sizes[3];
    bool iso = false, jumbled = false;
    int code = g->unpack(g->c, &g->offsets, &g->indices, &g->values, &sizes[0], &sizes[1], &sizes[2], &iso, &jumbled,
                         NULL);
    if (code != GRB_SUCCESS) return failure(g, code, "giving a matrix back");
    *c = (raw_matrix){g->rows, (int64_t)g->offsets[g->rows], g->offsets, g->indices, g->values, 8, 8, iso,
                      g->options->type};
    return SP_OK;
}

const peer peer_graphblas = {"graphblas", algorithms, graphblas_open, graphblas_load, graphblas_follow,
                             graphblas_run, graphblas_drop, graphblas_view, NULL, NULL, NULL,
                             graphblas_unload, graphblas_close, NULL, graphblas_version};
