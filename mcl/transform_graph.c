/* Transforms of the whole graph ("#...").
 *
 * Most are one merge of each row with the same row of the transpose, a function of the arc and of its reverse: O(nnz)
 * time and two graphs of memory beyond the input.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/search.h"
#include "base/select.h"
#include "transform.h"

static void replace(sp_context *context, sp_csr *graph, sp_csr *other)
{
    sp_csr_free(context, graph);
    *graph = *other;
    *other = (sp_csr){0};
}

/* ---- an arc and its reverse ----------------------------------------------------------------------------- */

/* The weight that replaces arc weight a whose reverse weighs b; 0 stands for a missing one. */
static float join_arcs(tf_kind kind, float a, float b)
{
    switch (kind) {
    case EDGE_ADD: return a + b;
    case EDGE_MUL: return a * b;
    case EDGE_MIN: return a < b ? a : b;
    case EDGE_MAX:
    case KNNJ: return a > b ? a : b;
    case ARCSUB: return a - b;
    case ARCMAX: return b == 0 || a >= b ? a : 0;
    case KNN: return b == 0 ? 0 : a;
    default: return a;
    }
}

/* Merges one row of the graph and of its transpose; writes unless columns is NULL, returns the length. */
static int64_t merge_row(tf_kind kind, const sp_csr *graph, const sp_csr *reverse, int64_t row, int32_t *columns,
                         float *values)
{
    const float *av = graph->values, *bv = reverse->values;
    int64_t a = graph->row_offsets[row], a_end = graph->row_offsets[row + 1];
    int64_t b = reverse->row_offsets[row], b_end = reverse->row_offsets[row + 1], length = 0;
    while (a < a_end || b < b_end) {
        int32_t ac = a < a_end ? graph->col_indices[a] : INT32_MAX;
        int32_t bc = b < b_end ? reverse->col_indices[b] : INT32_MAX;
        int32_t column = ac < bc ? ac : bc;
        float x = ac == column ? av[a++] : 0, y = bc == column ? bv[b++] : 0;
        float value = join_arcs(kind, x, y);
        if (value == 0) continue;
        if (columns) {
            columns[length] = column;
            values[length] = value;
        }
        length++;
    }
    return length;
}

static sp_status merge_with_reverse(sp_context *context, tf_kind kind, sp_csr *graph)
{
    sp_csr reverse = {0}, merged = {0};
    int64_t n = graph->rows, *offsets = NULL;
    sp_status status;
    TRY(sp_csr_transpose(context, graph, &reverse));
    TRY(sp_calloc(context, n + 1, sizeof *offsets, (void **)&offsets));
#pragma omp parallel for schedule(dynamic, 256) num_threads(transform_threads(context, graph))
    for (int64_t j = 0; j < n; j++) offsets[j + 1] = merge_row(kind, graph, &reverse, j, NULL, NULL);
    for (int64_t j = 0; j < n; j++) offsets[j + 1] += offsets[j];
    TRY(sp_csr_create(context, n, n, offsets[n], SP_F32, SP_HOST, &merged));
    memcpy(merged.row_offsets, offsets, (size_t)(n + 1) * sizeof *offsets);
#pragma omp parallel for schedule(dynamic, 256) num_threads(transform_threads(context, graph))
    for (int64_t j = 0; j < n; j++)
        merge_row(kind, graph, &reverse, j, merged.col_indices + offsets[j], (float *)merged.values + offsets[j]);
    replace(context, graph, &merged);
done:
    sp_free(context, offsets);
    sp_csr_free(context, &reverse);
    return status;
}

static sp_status transpose(sp_context *context, sp_csr *graph)
{
    sp_csr reverse = {0};
    sp_status status = sp_csr_transpose(context, graph, &reverse);
    if (status == SP_OK) replace(context, graph, &reverse);
    return status;
}

/* ---- neighbour lists ------------------------------------------------------------------------------------ */

/* Of n weights, mcl keeps the `count` largest; where ties would make them more, the tied ones all go, and with them
 * any weight within one f32 step (2^-23) of these. Returns the bar: keep what reaches it. `scratch` holds n values. */
static double neighbour_bar(const float *values, int64_t n, int64_t count, float *scratch)
{
    int64_t held = 0, reached = 0;
    for (int64_t e = 0; e < n; e++)
        if (values[e] != 0) scratch[held++] = values[e];
    if (held <= count) return 0;
    if (count == 0) return INFINITY;
    float bar = nth_largest(scratch, held, count);
    for (int64_t e = 0; e < held; e++) reached += scratch[e] >= bar;
    return (double)bar * (reached > count ? 1 + (double)FLT_EPSILON : 1);
}

static sp_status check_not_negative(sp_context *context, const sp_csr *graph, const char *name)
{
    const float *values = graph->values;
    for (int64_t e = 0; e < graph->nnz; e++)
        if (values[e] < 0)
            return sp_fail(context, SP_ERROR_UNSUPPORTED, "transform %s on a negative weight (%g) is not supported",
                           name, (double)values[e]);
    return SP_OK;
}

/* Each node's `count` heaviest neighbours; then an arc stays if its reverse does too (#knn), or an edge joins the
 * two (#knnj). */
static sp_status nearest_neighbours(sp_context *context, const tf_operation *operation, sp_csr *graph)
{
    float *values = graph->values, *scratch = NULL;
    sp_status status;
    TRY(check_not_negative(context, graph, operation->definition->name));
    TRY(sp_alloc(context, graph->nnz, sizeof *scratch, (void **)&scratch));
#pragma omp parallel for schedule(dynamic, 256) num_threads(transform_threads(context, graph))
    for (int64_t j = 0; j < graph->rows; j++) {
        int64_t begin = graph->row_offsets[j], end = graph->row_offsets[j + 1];
        double bar = neighbour_bar(values + begin, end - begin, operation->count, scratch + begin);
        for (int64_t e = begin; e < end; e++)
            if ((double)values[e] < bar) values[e] = 0;
    }
    transform_drop_zeros(graph);
    status = merge_with_reverse(context, operation->definition->kind, graph);
done:
    sp_free(context, scratch);
    return status;
}

static void remove_arc(sp_csr *graph, int64_t row, int32_t column)
{
    const int64_t end = graph->row_offsets[row + 1];
    const int64_t e = lower_bound_i32(graph->col_indices, graph->row_offsets[row], end, column);
    if (e < end && graph->col_indices[e] == column) ((float *)graph->values)[e] = 0;
}

/* Nodes, those of highest degree first, keep their `count` heaviest remaining neighbours; an arc that goes takes its
 * reverse with it. Serial: each node sees what the nodes before it removed. */
static sp_status cap_neighbours(sp_context *context, const tf_operation *operation, sp_csr *graph)
{
    float *values = graph->values, *scratch = NULL;
    int64_t n = graph->rows;
    int32_t *order = NULL;
    sp_status status;
    TRY(check_not_negative(context, graph, operation->definition->name));
    TRY(sp_alloc(context, n, sizeof *order, (void **)&order));
    TRY(sp_alloc(context, n, sizeof *scratch, (void **)&scratch)); /* a row has at most n entries */
    TRY(sp_csr_degree_order(context, graph, order, SP_HOST));
    for (int64_t k = 0; k < n; k++) {
        int64_t j = order[k], begin = graph->row_offsets[j], end = graph->row_offsets[j + 1];
        double bar = neighbour_bar(values + begin, end - begin, operation->count, scratch);
        for (int64_t e = begin; e < end; e++) {
            if (values[e] == 0 || (double)values[e] >= bar) continue;
            values[e] = 0;
            remove_arc(graph, graph->col_indices[e], (int32_t)j);
        }
    }
    transform_drop_zeros(graph);
done:
    FREE_ALL(context, scratch, order);
    return status;
}

/* ---- loops ---------------------------------------------------------------------------------------------- */

static void remove_loops(sp_csr *graph)
{
    float *values = graph->values;
    for (int64_t j = 0; j < graph->rows; j++)
        for (int64_t e = graph->row_offsets[j]; e < graph->row_offsets[j + 1]; e++)
            if (graph->col_indices[e] == j) values[e] = 0;
    transform_drop_zeros(graph);
}

/* Every node gets a loop as heavy as its heaviest arc to another node, 1 if it has none. */
static sp_status set_loops_to_maximum(sp_context *context, sp_csr *graph)
{
    sp_csr looped = {0};
    remove_loops(graph);
    sp_status status = sp_csr_create(context, graph->rows, graph->cols, graph->nnz + graph->rows, SP_F32, SP_HOST,
                                     &looped);
    if (status != SP_OK) return status;
    const float *values = graph->values;
    float *out = looped.values;
    int64_t k = 0;
    for (int64_t j = 0; j < graph->rows; j++) {
        int64_t e = graph->row_offsets[j], end = graph->row_offsets[j + 1];
        float heaviest = e < end ? values[e] : 1;
        for (int64_t i = e; i < end; i++)
            if (values[i] > heaviest) heaviest = values[i];
        looped.row_offsets[j] = k;
        for (; e < end && graph->col_indices[e] < j; e++, k++) {
            looped.col_indices[k] = graph->col_indices[e];
            out[k] = values[e];
        }
        looped.col_indices[k] = (int32_t)j;
        out[k++] = heaviest;
        for (; e < end; e++, k++) {
            looped.col_indices[k] = graph->col_indices[e];
            out[k] = values[e];
        }
    }
    looped.row_offsets[graph->rows] = k;
    replace(context, graph, &looped);
    return SP_OK;
}

/* ---- inverted log-weight similarity --------------------------------------------------------------------- */

static sp_status check_undirected(sp_context *context, const sp_csr *graph, const char *name)
{
    sp_csr reverse = {0};
    sp_status status = sp_csr_transpose(context, graph, &reverse);
    if (status != SP_OK) return status;
    size_t rows = (size_t)graph->rows, nnz = (size_t)graph->nnz;
    bool same = !memcmp(graph->row_offsets, reverse.row_offsets, (rows + 1) * sizeof *graph->row_offsets) &&
                !memcmp(graph->col_indices, reverse.col_indices, nnz * sizeof *graph->col_indices) &&
                !memcmp(graph->values, reverse.values, nnz * sizeof(float));
    sp_csr_free(context, &reverse);
    if (same) return SP_OK;
    return sp_fail(context, SP_ERROR_UNSUPPORTED,
                   "transform %s on a directed graph is not supported; make it undirected first, as in #max(),%s",
                   name, name);
}

/* Σ over the common neighbours k of rows a and b, ascending, of weight[k]. */
static double common_weight(const sp_csr *graph, int64_t a, int64_t b, const double *weight)
{
    int64_t i = graph->row_offsets[a], i_end = graph->row_offsets[a + 1];
    int64_t j = graph->row_offsets[b], j_end = graph->row_offsets[b + 1];
    double sum = 0;
    while (i < i_end && j < j_end) {
        int32_t p = graph->col_indices[i], q = graph->col_indices[j];
        if (p == q) sum += weight[p];
        i += p <= q;
        j += q <= p;
    }
    return sum;
}

/* An edge becomes at least Σ 1 / log2(degree) over the common neighbours of its ends; loops go. */
static sp_status inverted_log_similarity(sp_context *context, sp_csr *graph)
{
    double *weight = NULL;
    float *values = graph->values;
    sp_status status = check_undirected(context, graph, "#ils()");
    if (status != SP_OK) return status;
    remove_loops(graph);
    status = sp_alloc(context, graph->rows, sizeof *weight, (void **)&weight);
    if (status != SP_OK) return status;
    for (int64_t j = 0; j < graph->rows; j++) {
        int64_t degree = graph->row_offsets[j + 1] - graph->row_offsets[j];
        weight[j] = degree > 1 ? 1 / log2((double)degree) : 0; /* a node of degree 1 is in no triangle */
    }
#pragma omp parallel for schedule(dynamic, 64) num_threads(transform_threads(context, graph))
    for (int64_t j = 0; j < graph->rows; j++)
        for (int64_t e = graph->row_offsets[j]; e < graph->row_offsets[j + 1]; e++) {
            float similarity = (float)common_weight(graph, j, graph->col_indices[e], weight);
            if (similarity > values[e]) values[e] = similarity;
        }
    transform_drop_zeros(graph); /* a negative weight without common neighbours */
    sp_free(context, weight);
    return SP_OK;
}

/* ---- products and clusterings --------------------------------------------------------------------------- */

/* G := G·G, products and sums in f64, rounded to f32. */
static sp_status square(sp_context *context, sp_csr *graph)
{
    sp_csr wide = {0}, product = {0}, host = {0}, narrow = {0};
    sp_status status;
    TRY(sp_csr_create(context, graph->rows, graph->cols, graph->nnz, SP_F64, SP_HOST, &wide));
    memcpy(wide.row_offsets, graph->row_offsets, (size_t)(graph->rows + 1) * sizeof *wide.row_offsets);
    memcpy(wide.col_indices, graph->col_indices, (size_t)graph->nnz * sizeof *wide.col_indices);
    for (int64_t e = 0; e < graph->nnz; e++) ((double *)wide.values)[e] = (double)((const float *)graph->values)[e];
    TRY(sp_spgemm(context, &wide, &wide, NULL, &product, NULL));
    sp_csr_free(context, &wide);
    TRY(sp_csr_copy(context, &product, SP_HOST, &host));
    sp_csr_free(context, &product);
    TRY(sp_csr_create(context, host.rows, host.cols, host.nnz, SP_F32, SP_HOST, &narrow));
    memcpy(narrow.row_offsets, host.row_offsets, (size_t)(host.rows + 1) * sizeof *host.row_offsets);
    memcpy(narrow.col_indices, host.col_indices, (size_t)host.nnz * sizeof *host.col_indices);
    for (int64_t e = 0; e < host.nnz; e++) ((float *)narrow.values)[e] = (float)((const double *)host.values)[e];
    transform_drop_zeros(&narrow);
    replace(context, graph, &narrow);
    status = transform_check_finite(context, graph, "#step");
done:
    sp_csr_free(context, &wide);
    sp_csr_free(context, &product);
    sp_csr_free(context, &host);
    sp_csr_free(context, &narrow);
    return status;
}

static void keep_within_clusters(const mcl_clustering *clustering, int64_t *cluster_of, sp_csr *graph)
{
    float *values = graph->values;
    for (int64_t c = 0; c < clustering->clusters; c++)
        for (int64_t m = clustering->offsets[c]; m < clustering->offsets[c + 1]; m++)
            cluster_of[clustering->members[m]] = c;
    for (int64_t j = 0; j < graph->rows; j++)
        for (int64_t e = graph->row_offsets[j]; e < graph->row_offsets[j + 1]; e++)
            if (cluster_of[graph->col_indices[e]] != cluster_of[j]) values[e] = 0;
    transform_drop_zeros(graph);
}

/* Clusters the graph (#symmcl: the sum of it and its transpose) and keeps the arcs within clusters. Of the options of
 * the command mcl hands on those of pruning only. */
static sp_status cluster_and_cut(sp_context *context, const tf_operation *operation, const mcl_options *pruning,
                                 sp_csr *graph)
{
    sp_csr summed = {0}, start = {0}, limit = {0};
    mcl_clustering clustering = {0};
    int64_t *cluster_of = NULL;
    bool symmetrise = operation->definition->kind == SYMMCL;
    mcl_options options;
    mcl_run run;
    sp_status status;
    mcl_options_default(&options);
    options.inflation = (double)operation->number;
    if (pruning) {
        options.prune_number = pruning->prune_number;
        options.prune_cutoff = pruning->prune_cutoff;
        options.select = pruning->select;
        options.recover = pruning->recover;
        options.recover_percent = pruning->recover_percent;
        options.dense_factor = pruning->dense_factor;
    }
    if (symmetrise) {
        TRY(sp_csr_copy(context, graph, SP_HOST, &summed));
        TRY(merge_with_reverse(context, EDGE_ADD, &summed));
        TRY(transform_check_finite(context, &summed, operation->definition->name));
    }
    TRY(mcl_start_matrix(context, symmetrise ? &summed : graph, NULL, &options, false, &start));
    TRY(mcl_iterate(context, &start, &options, NULL, NULL, &limit, &run));
    TRY(mcl_interpret(context, &limit, graph, &options, &clustering));
    TRY(sp_alloc(context, graph->rows, sizeof *cluster_of, (void **)&cluster_of));
    keep_within_clusters(&clustering, cluster_of, graph);
done:
    sp_free(context, cluster_of);
    mcl_clustering_free(context, &clustering);
    sp_csr_free(context, &limit);
    sp_csr_free(context, &start);
    sp_csr_free(context, &summed);
    return status;
}

/* As in mcl, #knn(0) and #knnj(0) change nothing, #ceilnb(0) leaves no arc. */
sp_status transform_arcs(sp_context *context, const tf_operation *operation, const mcl_options *options,
                                sp_csr *graph)
{
    sp_status status = SP_OK;
    tf_kind kind = operation->definition->kind;
    switch (kind) {
    case KNN:
    case KNNJ: return operation->count ? nearest_neighbours(context, operation, graph) : SP_OK;
    case CEILNB: return cap_neighbours(context, operation, graph);
    case ILS: return inverted_log_similarity(context, graph);
    case MCL:
    case SYMMCL: return cluster_and_cut(context, operation, options, graph);
    case TRANSPOSE: return transpose(context, graph);
    case SELFRM: remove_loops(graph); return SP_OK;
    case SELFMAX: return set_loops_to_maximum(context, graph);
    case STEP:
        for (int64_t k = 0; k < operation->count && status == SP_OK; k++) status = square(context, graph);
        return status;
    case THREAD: return SP_OK; /* threads are the context's */
    default: status = merge_with_reverse(context, kind, graph);
    }
    return status == SP_OK ? transform_check_finite(context, graph, operation->definition->name) : status;
}
