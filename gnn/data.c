/* Graphs whose nodes are to be classified: checks, features scaled by row, splits drawn by class. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* ---- checks ------------------------------------------------------------------------------------------- */

const char *gnn_node_of(const gnn_data *data, int64_t row, gnn_node_name text)
{
    const char *name = data->node_names;
    int64_t node = data->place ? 0 : row;
    while (data->place && data->place[node] != row) node++;
    for (int64_t i = 0; name && i < node; i++) name += strlen(name) + 1;
    if (name) snprintf(text, sizeof(gnn_node_name), "node %.60s", name);
    else snprintf(text, sizeof(gnn_node_name), "node %lld (from 0)", (long long)node);
    return text;
}

static const char *const split_names[GNN_SPLITS] = {"unused", "training", "validation", "test"};

static sp_status check_shapes(sp_context *context, const gnn_data *data)
{
    const sp_csr *g = &data->graph;
    const gnn_features *x = &data->features;
    const int64_t rows = x->dense.values ? x->dense.rows : x->sparse.rows;
    if (x->dense.values) {
        const sp_status status = sp_require_dense(context, "gnn_data_check", "the features", &x->dense);
        if (status != SP_OK) return status;
    }
    if (g->rows != g->cols)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the graph has %lld rows but %lld columns", (long long)g->rows,
                       (long long)g->cols);
    if (rows != g->rows)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld rows of features, but the graph has %lld nodes",
                       (long long)rows, (long long)g->rows);
    if (data->classes < 1 && data->links.linked[GNN_TRAIN] == 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld classes; there is one at least", (long long)data->classes);
    return SP_OK;
}

static sp_status not_finite(sp_context *context, const gnn_data *data, int64_t row, int64_t feature)
{
    gnn_node_name node;
    return sp_fail(context, SP_ERROR_NOT_FINITE, "feature %lld (from 0) of %s is not a finite number",
                   (long long)feature, gnn_node_of(data, row, node));
}

static sp_status check_dense(sp_context *context, const gnn_data *data)
{
    const sp_dense *x = &data->features.dense;
    const int64_t none = INT64_MAX;
    int64_t first = none;
    if (x->type != SP_DENSE_F32) return sp_fail(context, SP_ERROR_ARGUMENT, "features are f32");
#pragma omp parallel for schedule(static) reduction(min : first) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < x->rows; i++) {
        const float *row = (const float *)x->values + i * x->stride;
        for (int64_t j = 0; j < x->cols; j++)
            if (!isfinite(row[j]) && i < first) first = i;
    }
    for (int64_t j = 0; first != none && j < x->cols; j++)
        if (!isfinite(((const float *)x->values)[first * x->stride + j])) return not_finite(context, data, first, j);
    return SP_OK;
}

static sp_status check_sparse(sp_context *context, const gnn_data *data)
{
    const sp_csr *x = &data->features.sparse;
    const sp_status status = sp_csr_check(context, x);
    if (x->values && x->value_type != SP_F32) return sp_fail(context, SP_ERROR_ARGUMENT, "features are f32");
    if (status != SP_ERROR_NOT_FINITE) return status;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t e = x->row_offsets[i]; e < x->row_offsets[i + 1]; e++)
            if (!isfinite(((const float *)x->values)[e])) return not_finite(context, data, i, x->col_indices[e]);
    return status;
}

static sp_status check_labels(sp_context *context, const gnn_data *data)
{
    gnn_node_name node;
    const int64_t nodes = data->graph.rows;
    if (!data->labels == !data->targets)
        return sp_fail(context, SP_ERROR_ARGUMENT, "labels or targets, one of them, must be given");
    for (int64_t i = 0; data->labels && i < nodes; i++)
        if (data->labels[i] < -1 || data->labels[i] >= data->classes)
            return sp_fail(context, SP_ERROR_ARGUMENT, "%s has label %d, but labels are below %lld",
                           gnn_node_of(data, i, node), data->labels[i], (long long)data->classes);
    for (int64_t i = 0; data->targets && i < nodes; i++)
        for (int64_t c = 0; c < data->classes; c++)
            if (data->targets[i * data->classes + c] > 1)
                return sp_fail(context, SP_ERROR_ARGUMENT, "target %lld (from 0) of %s is %d, not 0 or 1", (long long)c,
                               gnn_node_of(data, i, node), data->targets[i * data->classes + c]);
    return SP_OK;
}

static sp_status check_split(sp_context *context, const gnn_data *data)
{
    gnn_node_name node;
    int64_t training = 0;
    if (!data->split) return sp_fail(context, SP_ERROR_ARGUMENT, "there is no split");
    for (int64_t i = 0; i < data->graph.rows; i++) {
        const int split = data->split[i];
        if (split >= GNN_SPLITS)
            return sp_fail(context, SP_ERROR_ARGUMENT, "%s is in split %d, but there are %d",
                           gnn_node_of(data, i, node), split, GNN_SPLITS);
        if (split != GNN_UNUSED && data->labels && data->labels[i] < 0)
            return sp_fail(context, SP_ERROR_ARGUMENT, "%s is a %s node but has no label;"
                           " give it one, or take it out of the split", gnn_node_of(data, i, node), split_names[split]);
        training += split == GNN_TRAIN;
    }
    if (training == 0) return sp_fail(context, SP_ERROR_ARGUMENT, "there are no training nodes");
    return SP_OK;
}

sp_status gnn_data_check(sp_context *context, const gnn_data *data)
{
    sp_status status;
    TRY(sp_require(context, __func__, "data", data));
    TRY(check_shapes(context, data));
    TRY(sp_csr_check(context, &data->graph));
    TRY(data->features.dense.values ? check_dense(context, data) : check_sparse(context, data));
    if (data->links.linked[GNN_TRAIN] > 0) return SP_OK;
    TRY(check_labels(context, data));
    TRY(check_split(context, data));
done:
    return status;
}

void gnn_data_free(sp_context *context, gnn_data *data)
{
    if (!data) return;
    sp_csr_free(context, &data->graph);
    sp_dense_free(context, &data->features.dense);
    sp_csr_free(context, &data->features.sparse);
    FREE_ALL(context, data->labels, data->targets, data->split, data->place);
    for (int s = 0; s < GNN_SPLITS; s++) sp_free(context, data->links.pair[s]);
    *data = (gnn_data){0};
}

/* ---- features ----------------------------------------------------------------------------------------- */

static void normalise_row(float *row, int64_t count)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++) sum += fabs((double)row[j]);
    for (int64_t j = 0; sum > 0 && j < count; j++) row[j] = (float)((double)row[j] / sum);
}

/* Gives a pattern the values 1. */
static sp_status give_values(sp_context *context, sp_csr *x)
{
    if (x->values) return SP_OK;
    sp_status status = sp_alloc(context, x->nnz, sizeof(float), &x->values);
    if (status != SP_OK) return status;
    x->value_type = SP_F32;
    for (int64_t e = 0; e < x->nnz; e++) ((float *)x->values)[e] = 1;
    return SP_OK;
}

sp_status gnn_data_normalise(sp_context *context, gnn_data *data)
{
    sp_status status = sp_require(context, __func__, "data", data);
    if (status != SP_OK) return status;
    sp_dense *dense = &data->features.dense;
    sp_csr *sparse = &data->features.sparse;
    status = dense->values ? sp_require_dense(context, __func__, "the features", dense)
                           : sp_require_csr(context, __func__, "the features", sparse);
    if (status != SP_OK) return status;
    if (dense->values) {
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
        for (int64_t i = 0; i < dense->rows; i++)
            normalise_row((float *)dense->values + i * dense->stride, dense->cols);
        return SP_OK;
    }
    status = give_values(context, sparse);
    for (int64_t i = 0; status == SP_OK && i < sparse->rows; i++)
        normalise_row((float *)sparse->values + sparse->row_offsets[i],
                      sparse->row_offsets[i + 1] - sparse->row_offsets[i]);
    return status;
}

/* ---- splits ------------------------------------------------------------------------------------------- */

/* What the random numbers are for. */
static const uint64_t SITE_SPLIT = 0x73706c6974;

/* Fisher and Yates; the bias of the remainder is below 2^-33. */
static void shuffle(int32_t *nodes, int64_t count, uint64_t seed, int64_t round)
{
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = (int64_t)(gnn_random(seed, round, SITE_SPLIT, i) % (uint64_t)(i + 1));
        const int32_t swap = nodes[i];
        nodes[i] = nodes[j];
        nodes[j] = swap;
    }
}

/* A row's class; one for all where nodes can have several. */
static int64_t class_of(const gnn_data *data, int64_t row) { return data->labels ? data->labels[row] : 0; }

/* Sorts rows by class; those of class c end before end[c]. Within a class they are in the order of their nodes, so a
 * draw does not depend on renumbering. Rows without a known label are left out. */
static void group_by_class(const gnn_data *data, int64_t classes, int64_t *end, int32_t *order)
{
    const int64_t nodes = data->graph.rows;
    for (int64_t i = 0; i < nodes; i++)
        if (class_of(data, i) >= 0) end[class_of(data, i) + 1]++;
    for (int64_t c = 0; c < classes; c++) end[c + 1] += end[c];
    for (int64_t i = 0; i < nodes; i++) { /* end[c] moves from the beginning of class c to its end */
        const int32_t row = data->place ? data->place[i] : (int32_t)i;
        if (class_of(data, row) >= 0) order[end[class_of(data, row)]++] = row;
    }
}

static void divide_class(const gnn_split_drawn *sizes, int64_t size, int64_t *train, int64_t *validation)
{
    if (sizes->train == 0) {
        const int64_t last = (int64_t)floor((sizes->train_share + sizes->validation_share) * (double)size + 0.5);
        *train = (int64_t)floor(sizes->train_share * (double)size + 0.5);
        if (*train == 0 && size > 0) *train = 1;
        *validation = last > *train ? last - *train : 0;
        return;
    }
    const int64_t half = (size + 1) / 2;
    const bool few = size < sizes->train || size - sizes->train < sizes->validation;
    *train = few && sizes->train > half ? half : sizes->train;
    *validation = size - *train < sizes->validation ? size - *train : sizes->validation;
}

/* Of the classes of nodes in their order. */
static uint64_t hash_labels(const gnn_data *data)
{
    uint64_t hash = mix64((uint64_t)data->graph.rows);
    for (int64_t i = 0; i < data->graph.rows; i++)
        hash = mix64(hash ^ (uint64_t)class_of(data, data->place ? data->place[i] : i)) + RANDOM_STEP;
    return hash;
}

static sp_status draw(sp_context *context, gnn_data *data, const gnn_split_drawn *sizes)
{
    int64_t *end = NULL;
    int32_t *order = NULL;
    const int64_t nodes = data->graph.rows, classes = data->labels ? data->classes : 1;
    sp_status status;
    TRY(sp_calloc(context, classes + 1, sizeof *end, (void **)&end));
    TRY(sp_alloc(context, nodes, sizeof *order, (void **)&order));
    if (!data->split) TRY(sp_alloc(context, nodes, sizeof *data->split, (void **)&data->split));
    group_by_class(data, classes, end, order);
    for (int64_t i = 0; i < nodes; i++) data->split[i] = class_of(data, i) < 0 ? GNN_UNUSED : GNN_TEST;
    for (int64_t c = 0, begin = 0; c < classes; begin = end[c++]) {
        int64_t train, validation;
        divide_class(sizes, end[c] - begin, &train, &validation);
        shuffle(order + begin, end[c] - begin, sizes->seed, c);
        for (int64_t k = 0; k < train + validation; k++)
            data->split[order[begin + k]] = k < train ? GNN_TRAIN : GNN_VALIDATION;
    }
    data->drawn = *sizes;
    data->drawn.labels = hash_labels(data);
done:
    FREE_ALL(context, end, order);
    return status;
}

sp_status gnn_data_draw_split(sp_context *context, gnn_data *data, int64_t train, int64_t validation, uint64_t seed)
{
    sp_status status = sp_require(context, __func__, "data", data);
    if (status == SP_OK) status = check_labels(context, data);
    if (status != SP_OK) return status;
    if (train < 1 || validation < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a split of %lld training and %lld validation nodes a class",
                       (long long)train, (long long)validation);
    return draw(context, data, &(gnn_split_drawn){.train = train, .validation = validation, .seed = seed});
}

sp_status gnn_data_draw_shares(sp_context *context, gnn_data *data, double train, double validation, uint64_t seed)
{
    sp_status status = sp_require(context, __func__, "data", data);
    if (status == SP_OK) status = check_labels(context, data);
    if (status != SP_OK) return status;
    if (!(train > 0 && validation >= 0 && train + validation <= 1))
        return sp_fail(context, SP_ERROR_ARGUMENT, "a split of shares %g and %g of each class", train, validation);
    return draw(context, data, &(gnn_split_drawn){.train_share = train, .validation_share = validation, .seed = seed});
}

sp_status gnn_data_draw_again(sp_context *context, gnn_data *data, const gnn_split_drawn *drawn, bool *same)
{
    sp_status status = sp_require(context, __func__, "data", data);
    if (status == SP_OK) status = sp_require(context, __func__, "drawn", drawn);
    if (status == SP_OK) status = sp_require(context, __func__, "same", same);
    if (status == SP_OK) status = check_labels(context, data);
    if (status != SP_OK) return status;
    *same = (drawn->train > 0 || drawn->train_share > 0) && hash_labels(data) == drawn->labels;
    return *same ? draw(context, data, drawn) : SP_OK;
}
