/* Transforms of a graph's weights and arcs: the lists of mcl's -tf and -abc-tf, "gq(0.5),mul(10),#knn(20)".
 *
 * A value operation maps one weight to one weight. As in mcl, arguments and every intermediate weight are f32,
 * consecutive value operations run on one arc at a time, a filter (lt lq gq gt) that leaves 0 ends the run, and arcs
 * whose weight is 0 at its end are dropped. A graph operation ("#...") sees the whole graph.
 * Rows of the graph are mcl's columns: entry (j, i) is the arc written "i" in column j of a native matrix.
 *
 * Most graph operations are one merge of each row with the same row of the transpose, a function of the arc and of
 * its reverse: O(nnz) time and two graphs of memory beyond the input.
 */
#include <ctype.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/try.h"
#include "mcl.h"

typedef enum tf_kind {
    LT, LQ, GQ, GT, /* filters first: see is_filter */
    CEIL, FLOOR, MUL, ADD, POW, EXP, LOG, NEGLOG, RAND, SCALE, ABS, ACOS,
    KNN, KNNJ, CEILNB, ILS, MCL, SYMMCL, EDGE_ADD, EDGE_MIN, EDGE_MAX, EDGE_MUL, ARCMAX, ARCSUB, TRANSPOSE, SELFRM,
    SELFMAX, STEP, THREAD, UNSUPPORTED
} tf_kind;

typedef enum tf_argument { NONE, OPTIONAL, NUMBER, BASE, COUNT, INFLATION } tf_argument;

typedef struct tf_definition {
    const char *name;
    tf_kind kind;
    tf_argument argument;
} tf_definition;

static const tf_definition definitions[] = {
    {"lt", LT, NUMBER},          {"lq", LQ, NUMBER},          {"gq", GQ, NUMBER},         {"gt", GT, NUMBER},
    {"ceil", CEIL, NUMBER},      {"floor", FLOOR, NUMBER},    {"mul", MUL, NUMBER},       {"add", ADD, NUMBER},
    {"pow", POW, NUMBER},        {"power", POW, NUMBER},      {"exp", EXP, BASE},         {"log", LOG, BASE},
    {"neglog", NEGLOG, BASE},    {"rand", RAND, NUMBER},      {"scale", SCALE, NUMBER},   {"abs", ABS, NONE},
    {"acos", ACOS, NONE},        {"#knn", KNN, COUNT},        {"#knnj", KNNJ, COUNT},     {"#ceilnb", CEILNB, COUNT},
    {"#ils", ILS, NONE},         {"#mcl", MCL, INFLATION},    {"#symmcl", SYMMCL, INFLATION},
    {"#add", EDGE_ADD, NONE},    {"#min", EDGE_MIN, NONE},    {"#max", EDGE_MAX, NONE},   {"#mul", EDGE_MUL, NONE},
    {"#arcmax", ARCMAX, NONE},   {"#arcsub", ARCSUB, NONE},   {"#rev", TRANSPOSE, NONE},  {"#tp", TRANSPOSE, NONE},
    {"#selfrm", SELFRM, NONE},   {"#selfmax", SELFMAX, NONE}, {"#step", STEP, OPTIONAL},  {"#thread", THREAD, COUNT},
    {"#tug", UNSUPPORTED, OPTIONAL}, {"#shrug", UNSUPPORTED, OPTIONAL}, {"#ssq", UNSUPPORTED, OPTIONAL},
};

typedef struct tf_operation {
    const tf_definition *definition;
    float number;  /* 0 when left out: the base e */
    int64_t count; /* the number rounded to the nearest integer, as mcl does */
} tf_operation;

struct mcl_transform {
    int64_t count;
    tf_operation *operations;
};

#define SHOWN 40 /* bytes of the user's text in a message */

enum { PARALLEL_ARCS = 50000 }; /* below, waking threads costs more than they save */

static int threads_for(const sp_context *context, const sp_csr *graph)
{
    return graph->nnz < PARALLEL_ARCS ? 1 : sp_context_threads(context);
}

static bool is_filter(tf_kind kind)
{
    return kind <= GT;
}

static bool is_value(tf_kind kind)
{
    return kind <= ACOS;
}

/* ---- values --------------------------------------------------------------------------------------------- */

/* 0 has no logarithm: mcl gives it the largest finite one; negative weights become 0. */
static float logarithm(float value, float base, double sign)
{
    if (value < 0) return 0;
    if (value == 0) return sign > 0 ? -FLT_MAX : FLT_MAX;
    double natural = sign * log((double)value);
    return (float)(base > 0 ? natural / log((double)base) : natural);
}

static float apply(const tf_operation *operation, float v)
{
    float x = operation->number;
    switch (operation->definition->kind) {
    case LT: return v < x ? v : 0;
    case LQ: return v <= x ? v : 0;
    case GQ: return v >= x ? v : 0;
    case GT: return v > x ? v : 0;
    case CEIL: return v > x ? x : v;
    case FLOOR: return v < x ? x : v;
    case MUL: return v * x;
    case ADD: return v + x;
    case POW: return (float)pow((double)v, (double)x);
    case EXP: return (float)(x > 0 ? pow((double)x, (double)v) : exp((double)v));
    case LOG: return logarithm(v, x, 1);
    case NEGLOG: return logarithm(v, x, -1);
    case SCALE: return x != 0 ? v / x : 0;
    case ABS: return fabsf(v);
    case ACOS: return v <= 1 ? (float)acos(fmax(-1, (double)v)) : 0; /* π below -1, 0 above 1, as in mcl */
    default: return v;
    }
}

/* Uniform in [0, 1) from the arc and the place of the operation in the list (SplitMix64): mcl draws anew in every
 * run, here the same input gives the same output whatever the threads. */
static double random_of(int64_t row, int64_t column, int64_t place)
{
    const uint64_t arc = (uint64_t)row * RANDOM_STEP + (uint64_t)column * 0xd1b54a32d192ed03u + (uint64_t)place;
    return unit64(mix64(mix64(arc + RANDOM_STEP) + RANDOM_STEP));
}

/* Operations [first, last) of the list, all on values, on the weight of one arc. */
static float apply_run(const mcl_transform *transform, int64_t first, int64_t last, float v, int64_t row,
                       int64_t column)
{
    for (int64_t k = first; k < last; k++) {
        const tf_operation *operation = &transform->operations[k];
        tf_kind kind = operation->definition->kind;
        if (kind == RAND)
            v = random_of(row, column, k) < (double)operation->number ? v : 0;
        else
            v = apply(operation, v);
        if (v == 0 && is_filter(kind)) return 0;
    }
    return v;
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

/* Squeezes out the arcs whose weight is 0. */
static void drop_zeros(sp_csr *graph)
{
    float *values = graph->values;
    int64_t kept = 0, begin = 0;
    for (int64_t j = 0; j < graph->rows; j++) {
        int64_t end = graph->row_offsets[j + 1];
        for (int64_t e = begin; e < end; e++) {
            if (values[e] == 0) continue;
            graph->col_indices[kept] = graph->col_indices[e];
            values[kept++] = values[e];
        }
        begin = end;
        graph->row_offsets[j + 1] = kept;
    }
    graph->nnz = kept;
}

static void replace(sp_context *context, sp_csr *graph, sp_csr *other)
{
    sp_csr_free(context, graph);
    *graph = *other;
    *other = (sp_csr){0};
}

static sp_status check_finite(sp_context *context, const sp_csr *graph, const char *name)
{
    const float *values = graph->values;
    bool finite = true;
#pragma omp parallel for reduction(&& : finite) num_threads(threads_for(context, graph))
    for (int64_t e = 0; e < graph->nnz; e++) finite = finite && isfinite(values[e]);
    if (finite) return SP_OK;
    return sp_fail(context, SP_ERROR_NOT_FINITE, "transform %s makes weights infinite or undefined", name);
}

static sp_status transform_values(sp_context *context, const mcl_transform *transform, int64_t first, int64_t last,
                                  sp_csr *graph)
{
    float *values = graph->values;
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads_for(context, graph))
    for (int64_t j = 0; j < graph->rows; j++)
        for (int64_t e = graph->row_offsets[j]; e < graph->row_offsets[j + 1]; e++)
            values[e] = apply_run(transform, first, last, values[e], j, graph->col_indices[e]);
    drop_zeros(graph);
    return check_finite(context, graph, transform->operations[last - 1].definition->name);
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
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads_for(context, graph))
    for (int64_t j = 0; j < n; j++) offsets[j + 1] = merge_row(kind, graph, &reverse, j, NULL, NULL);
    for (int64_t j = 0; j < n; j++) offsets[j + 1] += offsets[j];
    TRY(sp_csr_create(context, n, n, offsets[n], SP_F32, SP_HOST, &merged));
    memcpy(merged.row_offsets, offsets, (size_t)(n + 1) * sizeof *offsets);
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads_for(context, graph))
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

/* The k-th largest of n values (1 <= k <= n), which are shuffled: Hoare's quickselect. */
static float kth_largest(float *values, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        float pivot = values[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] > pivot) i++;
            while (values[j] < pivot) j--;
            if (i > j) break;
            float swap = values[i];
            values[i++] = values[j];
            values[j--] = swap;
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            break;
    }
    return values[k - 1];
}

/* Of n weights, mcl keeps the `count` largest; where ties would make them more, the tied ones all go, and with them
 * any weight within one f32 step (2^-23) of these. Returns the bar: keep what reaches it. `scratch` holds n values. */
static double neighbour_bar(const float *values, int64_t n, int64_t count, float *scratch)
{
    int64_t held = 0, reached = 0;
    for (int64_t e = 0; e < n; e++)
        if (values[e] != 0) scratch[held++] = values[e];
    if (held <= count) return 0;
    if (count == 0) return INFINITY;
    float bar = kth_largest(scratch, held, count);
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
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads_for(context, graph))
    for (int64_t j = 0; j < graph->rows; j++) {
        int64_t begin = graph->row_offsets[j], end = graph->row_offsets[j + 1];
        double bar = neighbour_bar(values + begin, end - begin, operation->count, scratch + begin);
        for (int64_t e = begin; e < end; e++)
            if ((double)values[e] < bar) values[e] = 0;
    }
    drop_zeros(graph);
    status = merge_with_reverse(context, operation->definition->kind, graph);
done:
    sp_free(context, scratch);
    return status;
}

static void remove_arc(sp_csr *graph, int64_t row, int32_t column)
{
    int64_t low = graph->row_offsets[row], high = graph->row_offsets[row + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (graph->col_indices[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < graph->row_offsets[row + 1] && graph->col_indices[low] == column) ((float *)graph->values)[low] = 0;
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
    drop_zeros(graph);
done:
    sp_free(context, scratch);
    sp_free(context, order);
    return status;
}

/* ---- loops ---------------------------------------------------------------------------------------------- */

static void remove_loops(sp_csr *graph)
{
    float *values = graph->values;
    for (int64_t j = 0; j < graph->rows; j++)
        for (int64_t e = graph->row_offsets[j]; e < graph->row_offsets[j + 1]; e++)
            if (graph->col_indices[e] == j) values[e] = 0;
    drop_zeros(graph);
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
        weight[j] = degree > 1 ? 1 / log2((double)degree) : 0; /* degree 1 is nobody's common neighbour */
    }
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads_for(context, graph))
    for (int64_t j = 0; j < graph->rows; j++)
        for (int64_t e = graph->row_offsets[j]; e < graph->row_offsets[j + 1]; e++) {
            float similarity = (float)common_weight(graph, j, graph->col_indices[e], weight);
            if (similarity > values[e]) values[e] = similarity;
        }
    drop_zeros(graph); /* a negative weight without common neighbours */
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
    drop_zeros(&narrow);
    replace(context, graph, &narrow);
    status = check_finite(context, graph, "#step");
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
    drop_zeros(graph);
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
        TRY(check_finite(context, &summed, operation->definition->name));
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
static sp_status transform_arcs(sp_context *context, const tf_operation *operation, const mcl_options *options,
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
    return status == SP_OK ? check_finite(context, graph, operation->definition->name) : status;
}

/* ---- parsing -------------------------------------------------------------------------------------------- */

static const tf_definition *find_definition(const char *name, size_t length)
{
    for (size_t k = 0; k < sizeof definitions / sizeof *definitions; k++)
        if (strlen(definitions[k].name) == length && !memcmp(definitions[k].name, name, length))
            return &definitions[k];
    return NULL;
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

/* The whole of text[0..length) as a number, in the C locale. */
static bool parse_number(const char *text, size_t length, double *number)
{
    char copy[64], *end;
    if (length == 0 || length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) return false;
    *number = strtod_l(copy, &end, c_locale);
    freelocale(c_locale);
    return *end == '\0' && isfinite(*number);
}

static sp_status check_argument(sp_context *context, const tf_definition *definition, double number, int64_t *count)
{
    const char *name = definition->name;
    if (fabs(number) > (double)FLT_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: %g is too large", name, number);
    if (definition->argument == BASE && number < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: base %g; a base is above 0", name, number);
    if (definition->argument == INFLATION && !(number > 0 && number <= 30))
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: inflation %g; use one above 0, up to 30", name,
                       number);
    if (definition->argument == COUNT && !(number == 0 || (number >= 0.5 && number <= INT32_MAX)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: %g; use a number from 1 to 2147483647", name,
                       number);
    if (definition->kind == STEP && number > 30)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: %g squarings; use 30 at most", name, number);
    bool counts = definition->argument == COUNT || definition->kind == STEP;
    *count = counts && number > 0 ? (int64_t)(number + 0.5) : 0;
    return SP_OK;
}

/* Parses the argument text[0..length), blanks around it removed. */
static sp_status parse_argument(sp_context *context, const tf_definition *definition, const char *text, size_t length,
                                tf_operation *operation)
{
    const char *name = definition->name;
    int shown = length < SHOWN ? (int)length : SHOWN;
    bool optional = definition->argument == OPTIONAL || definition->argument == BASE;
    double number = definition->kind == STEP ? 2 : 0; /* mcl's default of #step */
    if (definition->argument == NONE && length)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s takes no number (got \"%.*s\")", name, shown, text);
    if (definition->argument != NONE && !length && !optional)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s needs a number, as in %s(2)", name, name);
    if (length && !parse_number(text, length, &number))
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: \"%.*s\" is no number", name, shown, text);
    operation->definition = definition;
    operation->number = (float)number;
    return check_argument(context, definition, number, &operation->count);
}

/* For a name that is none: those that there are. */
static sp_status fail_unknown(sp_context *context, const char *name, int shown, bool values_only)
{
    char known[300]; /* the names take 166 bytes */
    size_t used = 0;
    known[0] = '\0';
    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++) {
        const tf_kind kind = definitions[i].kind;
        if (kind == UNSUPPORTED || (values_only && (!is_value(kind) || kind == RAND))) continue;
        const int length = snprintf(known + used, sizeof known - used, " %s", definitions[i].name);
        if (length < 0 || (size_t)length >= sizeof known - used) break;
        used += (size_t)length;
    }
    return sp_fail(context, SP_ERROR_ARGUMENT, "unknown transform \"%.*s\"; there are%s", shown, name, known);
}

/* Parses NAME(ARGUMENT) at *text and moves past it. */
static sp_status parse_operation(sp_context *context, const char **text, bool values_only, tf_operation *operation)
{
    const char *name = skip_blanks(*text);
    size_t length = 0;
    while (islower((unsigned char)name[length]) || (name[length] && strchr("_@#-", name[length]))) length++;
    const char *open = skip_blanks(name + length), *close = *open == '(' ? strchr(open, ')') : NULL;
    if (length == 0 || !close)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform list: expected NAME(NUMBER) at \"%.*s\"", SHOWN, *text);
    const tf_definition *definition = find_definition(name, length);
    int shown = length < SHOWN ? (int)length : SHOWN;
    if (!definition) return fail_unknown(context, name, shown, values_only);
    if (definition->kind == UNSUPPORTED)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "transform %s of mcl is not offered", definition->name);
    if (values_only && !is_value(definition->kind))
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s works on whole graphs: give it to -tf, not -abc-tf",
                       definition->name);
    if (values_only && definition->kind == RAND)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "transform rand is supported by -tf only");
    const char *argument = skip_blanks(open + 1), *end = close;
    while (end > argument && strchr(" \t\r\n", end[-1])) end--;
    *text = skip_blanks(close + 1);
    return parse_argument(context, definition, argument, (size_t)(end - argument), operation);
}

/* ---- the public functions ------------------------------------------------------------------------------- */

sp_status mcl_transform_parse(sp_context *context, const char *spec, bool values_only, mcl_transform **transform)
{
    mcl_transform *parsed = NULL;
    int64_t capacity = 1;
    sp_status status;
    TRY(sp_require(context, __func__, "transform", transform));
    TRY(sp_require(context, __func__, "spec", spec));
    for (const char *c = spec; *c; c++) capacity += *c == ',';
    TRY(sp_calloc(context, 1, sizeof *parsed, (void **)&parsed));
    TRY(sp_calloc(context, capacity, sizeof *parsed->operations, (void **)&parsed->operations));
    const char *text = skip_blanks(spec);
    while (*text || parsed->count) {
        TRY(parse_operation(context, &text, values_only, &parsed->operations[parsed->count]));
        parsed->count++;
        if (*text == '\0') break;
        if (*text != ',') {
            status = sp_fail(context, SP_ERROR_ARGUMENT, "transform list: expected a comma at \"%.*s\"", SHOWN, text);
            goto done;
        }
        text++;
    }
    *transform = parsed;
    return SP_OK;
done:
    mcl_transform_free(context, parsed);
    return status;
}

void mcl_transform_free(sp_context *context, mcl_transform *transform)
{
    if (!transform) return;
    sp_free(context, transform->operations);
    sp_free(context, transform);
}

double mcl_transform_value(const mcl_transform *transform, double weight)
{
    float v = (float)weight;
    for (int64_t k = 0; transform && k < transform->count; k++) {
        const tf_operation *operation = &transform->operations[k];
        v = apply(operation, v);
        if (v == 0 && is_filter(operation->definition->kind)) return 0;
    }
    return (double)v;
}

/* On failure *graph holds whatever the operations before the failed one made, and is still the caller's to free. */
sp_status mcl_transform_graph(sp_context *context, const mcl_transform *transform, const mcl_options *options,
                              sp_csr *graph)
{
    sp_status status = sp_require(context, __func__, "transform", transform);
    if (status == SP_OK) status = sp_require_csr(context, __func__, "graph", graph);
    if (status != SP_OK) return status;
    if (graph->rows != graph->cols || graph->space != SP_HOST || graph->value_type != SP_F32 || !graph->values)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transforms need a square host matrix of f32");
    if (transform->count) drop_zeros(graph);
    for (int64_t k = 0; k < transform->count && status == SP_OK;) {
        int64_t first = k;
        while (k < transform->count && is_value(transform->operations[k].definition->kind)) k++;
        if (k > first)
            status = transform_values(context, transform, first, k, graph);
        else
            status = transform_arcs(context, &transform->operations[k++], options, graph);
    }
    return status;
}
