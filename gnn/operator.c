/* The matrix that a layer gathers with, made from a graph A:
 *
 *   GCN              Â = D^-1/2 (A + I) D^-1/2, D the row sums of A + I
 *   GAT              the pattern of A + I
 *   SAGE, max, GIN   the pattern of A without its diagonal
 *
 * â_ij is a_ij / (√d_i · √d_j), formed in f64 and rounded once: Â of a symmetric graph is symmetric to the last bit,
 * so it serves as its own transpose. */
#include <math.h>
#include <string.h>

#include "internal.h"

/* Loops over fewer entries end before another thread has started. */
enum { ENTRIES_FOR_THREADS = 100000 };

/* The first entry of row i in a column >= col. */
static int64_t first_from(const sp_csr *a, int64_t i, int64_t col)
{
    return lower_bound_i32(a->col_indices, a->row_offsets[i], a->row_offsets[i + 1], (int32_t)col);
}

static int64_t diagonal_place(const sp_csr *a, int64_t i) { return first_from(a, i, i); }

static bool has_diagonal(const sp_csr *a, int64_t i, int64_t place)
{
    return place < a->row_offsets[i + 1] && a->col_indices[place] == i;
}

/* √d_i of every node. */
static sp_status row_roots(sp_context *context, const gnn_data *data, double *roots)
{
    const sp_csr *a = &data->graph;
    gnn_node_name node;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context)) if (a->nnz > ENTRIES_FOR_THREADS)
    for (int64_t i = 0; i < a->rows; i++) {
        double sum = 1;
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) sum += entry_value(a, k);
        roots[i] = sqrt(sum);
    }
    for (int64_t i = 0; i < a->rows; i++)
        if (!(roots[i] > 0) || isinf(roots[i]))
            return sp_fail(context, SP_ERROR_ARGUMENT, "the weights of %s and its loop have no positive sum, and GCN"
                           " divides by it", gnn_node_of(data, i, node));
    return SP_OK;
}

/* The pattern of A with a full diagonal, or with none. Values are there but not set. */
static sp_status make_pattern(sp_context *context, const sp_csr *a, bool diagonal, sp_value_type type, sp_csr *made)
{
    const int64_t most = a->nnz + (diagonal ? a->rows : 0);
    const sp_status status = sp_csr_create(context, a->rows, a->cols, most, type, SP_HOST, made);
    int64_t *offsets = made->row_offsets;
    if (status != SP_OK) return status;
    offsets[0] = 0;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context)) if (a->nnz > ENTRIES_FOR_THREADS)
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t count = a->row_offsets[i + 1] - a->row_offsets[i];
        offsets[i + 1] = count + diagonal - has_diagonal(a, i, diagonal_place(a, i));
    }
    for (int64_t i = 0; i < a->rows; i++) offsets[i + 1] += offsets[i];
    made->nnz = offsets[a->rows];
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context)) if (a->nnz > ENTRIES_FOR_THREADS)
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t place = diagonal_place(a, i), before = place - a->row_offsets[i];
        const int64_t rest = place + has_diagonal(a, i, place), after = a->row_offsets[i + 1] - rest;
        int32_t *to = made->col_indices + offsets[i];
        if (before) memcpy(to, a->col_indices + a->row_offsets[i], (size_t)before * sizeof *to);
        if (diagonal) to[before] = (int32_t)i;
        if (after) memcpy(to + before + diagonal, a->col_indices + rest, (size_t)after * sizeof *to);
    }
    return SP_OK;
}

/* Values for the pattern of A + I. */
static void scale(sp_context *context, const sp_csr *a, const double *roots, sp_csr *made)
{
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context)) if (a->nnz > ENTRIES_FOR_THREADS)
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t from = a->row_offsets[i];
        for (int64_t k = made->row_offsets[i]; k < made->row_offsets[i + 1]; k++) {
            const int32_t j = made->col_indices[k];
            double value = j == i ? 1 : 0;
            if (from < a->row_offsets[i + 1] && a->col_indices[from] == j) value += entry_value(a, from++);
            value /= roots[i] * roots[j];
            store_value(made->values, made->value_type, k, value);
        }
    }
}

sp_status gnn_operator_of(sp_context *context, const gnn_data *data, gnn_layer layer, sp_value_type type,
                          sp_csr *matrix)
{
    const sp_csr *graph = &data->graph;
    sp_csr made = {0};
    double *roots = NULL;
    sp_status status;
    if (graph->rows != graph->cols || graph->space != SP_HOST)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the graph is %lld x %lld%s: it must be square and in host memory",
                       (long long)graph->rows, (long long)graph->cols,
                       graph->space == SP_HOST ? "" : ", on the device");
    if ((unsigned)layer > GNN_GAT || (unsigned)type > SP_F64)
        return sp_fail(context, SP_ERROR_ARGUMENT, "layer %d or value type %d does not exist", (int)layer, (int)type);
    TRY(make_pattern(context, graph, layer == GNN_GCN || layer == GNN_GAT, type, &made));
    if (layer == GNN_GCN) {
        TRY(sp_alloc(context, graph->rows, sizeof *roots, (void **)&roots));
        TRY(row_roots(context, data, roots));
        scale(context, graph, roots, &made);
    } else {
        sp_free(context, made.values);
        made.values = NULL;
    }
    *matrix = made;
    made = (sp_csr){0};
done:
    sp_free(context, roots);
    sp_csr_free(context, &made);
    return status;
}

sp_status gnn_operator(sp_context *context, const sp_csr *graph, gnn_layer layer, sp_value_type type, sp_csr *matrix)
{
    sp_status status = sp_require_csr(context, __func__, "graph", graph);
    if (status == SP_OK) status = sp_require_output(context, __func__, "matrix", matrix, "graph", graph);
    if (status != SP_OK) return status;
    return gnn_operator_of(context, &(gnn_data){.graph = *graph}, layer, type, matrix);
}

/* ---- symmetry ----------------------------------------------------------------------------------------- */

/* Whether all entries of columns begin .. end - 1 have their mirror images. The images of the entries (i, j) ascend
 * in row j as i ascends, so each is the next entry of row j. */
static bool is_mirrored(const sp_csr *a, int64_t begin, int64_t end, int64_t *next)
{
    memcpy(next + begin, a->row_offsets + begin, (size_t)(end - begin) * sizeof *next);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t e = first_from(a, i, begin); e < a->row_offsets[i + 1] && a->col_indices[e] < end; e++) {
            const int32_t j = a->col_indices[e];
            const int64_t mirror = next[j]++;
            if (mirror >= a->row_offsets[j + 1] || a->col_indices[mirror] != i ||
                entry_value(a, e) != entry_value(a, mirror))
                return false;
        }
    return true;
}

sp_status gnn_symmetric(sp_context *context, const sp_csr *matrix, bool *symmetric)
{
    sp_status status = sp_require_csr(context, __func__, "matrix", matrix);
    if (status == SP_OK) status = sp_require(context, __func__, "symmetric", symmetric);
    if (status != SP_OK) return status;
    const int threads = sp_context_threads(context);
    const int64_t parts = matrix->nnz > ENTRIES_FOR_THREADS && threads > 1 ? 4 * threads : 1;
    int64_t *next;
    bool all = true;
    if (matrix->rows != matrix->cols || matrix->space != SP_HOST)
        return sp_fail(context, SP_ERROR_ARGUMENT, "symmetry is that of a square matrix on the host");
    status = sp_alloc(context, matrix->rows, sizeof *next, (void **)&next);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic) reduction(&& : all) num_threads(threads) if (parts > 1)
    for (int64_t k = 0; k < parts; k++)
        all = is_mirrored(matrix, matrix->rows * k / parts, matrix->rows * (k + 1) / parts, next) && all;
    sp_free(context, next);
    *symmetric = all;
    return SP_OK;
}
