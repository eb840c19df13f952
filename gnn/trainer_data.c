/* The data of a trainer in the engine's space, or for walks in host memory: the matrix to gather with, the blocks of
 * the whole graph, features, labels. They are copied once, however often the trainer restarts. */
#include "trainer.h"

#include <string.h>

/* ---- the graph ------------------------------------------------------------------------------------------ */

static sp_status make_matrix(gnn_trainer *t)
{
    const gnn_model_options *m = &t->options.model;
    const sp_value_type type = value_type(m->type);
    sp_csr made;
    sp_status status = gnn_operator_of(t->context, t->data, m->layer, type, &made);
    if (status != SP_OK || t->engine->space == SP_HOST) {
        if (status == SP_OK) t->matrix = made;
        return status;
    }
    status = sp_csr_copy(t->context, &made, t->engine->space, &t->matrix);
    sp_csr_free(t->context, &made);
    return status;
}

sp_status gnn_trainer_blocks(gnn_trainer *t, const sp_csr *const *matrix, bool symmetric, gnn_block **block)
{
    int64_t width[GNN_MAX_LAYERS];
    for (int l = 0; l < t->options.model.layers; l++) {
        width[l] = gnn_model_gather_width(t->model, l, matrix[l], !t->x.dense.values);
        for (int k = 0; k < l && !block[l]; k++)
            if (matrix[k] == matrix[l] && width[k] == width[l]) block[l] = block[k];
        if (block[l]) continue;
        const sp_status status = gnn_block_create(t->engine, matrix[l], t->options.model.layer, symmetric,
                                                  width[l], &block[l]);
        if (status != SP_OK) return status;
    }
    return SP_OK;
}

void gnn_trainer_free_blocks(gnn_block **block)
{
    for (int l = GNN_MAX_LAYERS; l-- > 0;) {
        bool shared = false;
        for (int k = 0; k < l; k++) shared = shared || block[k] == block[l];
        if (!shared) gnn_block_free(block[l]);
        block[l] = NULL;
    }
}

static sp_status make_full_blocks(gnn_trainer *t)
{
    const sp_csr *matrix[GNN_MAX_LAYERS];
    for (int l = 0; l < GNN_MAX_LAYERS; l++) matrix[l] = &t->matrix;
    sp_status status = gnn_trainer_blocks(t, matrix, t->symmetric, t->block);
    const bool trained = t->data->split || t->data->links.linked[GNN_TRAIN] > 0;
    const int split = trained && t->options.model.maxk == 0 ? t->options.model.layers : 0;
    for (int l = 0; status == SP_OK && l < split; l++) status = gnn_block_split(t->block[l]);
    return status;
}

/* ---- features and labels in the engine's space --------------------------------------------------------- */

/* Features as dense rows of the model's type, on the host. */
static sp_status make_dense(gnn_trainer *t, sp_dense *x)
{
    const gnn_features *given = &t->data->features;
    const gnn_model_options *m = &t->options.model;
    const sp_csr *sparse = &given->sparse;
    const int64_t rows = t->data->graph.rows, cols = m->inputs;
    sp_status status = sp_dense_create(t->context, rows, cols, m->type, SP_HOST, x);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(t->context))
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++)
            store_value(x->values, value_type(m->type), i * cols + j,
                        given->dense.values
                            ? (double)((const float *)given->dense.values)[i * given->dense.stride + j] : 0);
        if (given->dense.values) continue;
        for (int64_t e = sparse->row_offsets[i]; e < sparse->row_offsets[i + 1]; e++)
            store_value(x->values, value_type(m->type), i * cols + sparse->col_indices[e], entry_value(sparse, e));
    }
    return SP_OK;
}

/* Sparse features with values of the model's type, on the host. */
static sp_status make_sparse(gnn_trainer *t, sp_csr *x)
{
    const sp_csr *given = &t->data->features.sparse;
    const sp_dense_type type = t->options.model.type;
    sp_status status = sp_csr_create(t->context, given->rows, given->cols, given->nnz,
                                     value_type(type), SP_HOST, x);
    if (status != SP_OK) return status;
    memcpy(x->row_offsets, given->row_offsets, (size_t)(given->rows + 1) * sizeof *given->row_offsets);
    memcpy(x->col_indices, given->col_indices, (size_t)given->nnz * sizeof *given->col_indices);
    for (int64_t e = 0; e < given->nnz; e++)
        store_value(x->values, x->value_type, e, entry_value(given, e));
    return SP_OK;
}

/* A copy of a host matrix in the engine's space, with that space's stride. */
static sp_status move_rows(gnn_trainer *t, const sp_dense *from, sp_dense *to)
{
    sp_dense copy, made = {0};
    sp_status status = sp_dense_copy(t->context, from, t->engine->space, &copy);
    if (status != SP_OK) return status;
    if (copy.stride != gnn_row_stride(t->engine, copy.cols, copy.type)) {
        TRY(gnn_rows_create(t->engine, copy.rows, copy.cols, copy.type, &made));
        TRY(t->engine->backend->copy(t->engine, &copy, &made));
        TRY(t->engine->backend->wait(t->engine));
        sp_dense_free(t->context, &copy);
        copy = made;
    }
    *to = copy;
    return SP_OK;
done:
    sp_dense_free(t->context, &made);
    sp_dense_free(t->context, &copy);
    return status;
}

static void free_features(gnn_trainer *t, gnn_features *x, bool borrowed)
{
    if (!borrowed) {
        sp_dense_free(t->context, &x->dense);
        sp_csr_free(t->context, &x->sparse);
    }
    *x = (gnn_features){0};
}

void gnn_trainer_free_features(gnn_trainer *t) { free_features(t, &t->x, t->borrowed); }

/* Features of the model's type in host memory: the data's own, or made ones. Minibatches and maxima need dense ones. */
static sp_status host_features(gnn_trainer *t, gnn_features *x, bool *borrowed)
{
    const gnn_features *given = &t->data->features;
    const gnn_model_options *m = &t->options.model;
    const bool same_type = m->type == SP_DENSE_F32;
    const bool dense = given->dense.values || t->options.sampled || m->layer == GNN_SAGE_MAX;
    *x = (gnn_features){0};
    *borrowed = same_type && (dense ? given->dense.values : given->sparse.values);
    if (!*borrowed) return dense ? make_dense(t, &x->dense) : make_sparse(t, &x->sparse);
    if (dense) x->dense = given->dense;
    else x->sparse = given->sparse;
    return SP_OK;
}

/* Refuses features for minibatches that would take more than four fifths of a device's free memory: models and
 * minibatches need the rest. */
static sp_status leave_room(gnn_trainer *t, const sp_dense *x)
{
    const int64_t bytes = x->rows * gnn_row_stride(t->engine, x->cols, x->type) * (int64_t)number_size(x->type);
    void *all;
    if (!t->options.sampled || t->engine->space == SP_HOST) return SP_OK;
    const sp_status status = sp_array_create(t->context, bytes + bytes / 4, 1, t->engine->space, &all);
    sp_array_free(t->context, t->engine->space, all);
    return status;
}

static sp_status place_features(gnn_trainer *t)
{
    gnn_features x = {0};
    bool borrowed = true;
    sp_status status;
    TRY(host_features(t, &x, &borrowed));
    t->borrowed = borrowed && t->engine->space == SP_HOST;
    if (t->borrowed) {
        t->x = x;
    } else if (x.dense.values) {
        TRY(leave_room(t, &x.dense));
        TRY(move_rows(t, &x.dense, &t->x.dense));
    } else TRY(sp_csr_copy(t->context, &x.sparse, t->engine->space, &t->x.sparse));
done:
    free_features(t, &x, borrowed);
    return status;
}

static sp_status place_labels(gnn_trainer *t)
{
    const gnn_data *data = t->data;
    const int64_t nodes = data->graph.rows;
    sp_status status;
    if (!data->split || t->options.links) return SP_OK;
    if (data->labels) TRY(gnn_place(t->engine, nodes, sizeof *t->labels, data->labels, &t->labels));
    if (data->targets)
        TRY(gnn_place(t->engine, nodes * data->classes, sizeof *t->targets, data->targets, &t->targets));
    if (t->options.balance_classes || t->options.class_weights)
        TRY(sp_array_create(t->context, data->classes, sizeof *t->class_weights, t->engine->space,
                            (void **)&t->class_weights));
    TRY(sp_array_create(t->context, nodes, sizeof *t->split, t->engine->space, (void **)&t->split));
    TRY(sp_alloc(t->context, nodes, sizeof *t->training_nodes, (void **)&t->training_nodes));
done:
    return status;
}

/* Weights for a mean of 1 over the training nodes. Balanced, all classes with training nodes have the same sum. */
static sp_status place_weights(gnn_trainer *t)
{
    const gnn_data *data = t->data;
    double *weights, sum = 0;
    sp_status status = sp_calloc(t->context, 2 * data->classes, sizeof *weights, (void **)&weights);
    if (status != SP_OK) return status;
    double *size = weights + data->classes;
    for (int64_t i = 0; i < t->nodes[GNN_TRAIN]; i++) size[data->labels[t->training_nodes[i]]]++;
    for (int64_t c = 0; c < data->classes; c++) {
        if (t->options.class_weights) weights[c] = t->options.class_weights[c];
        else weights[c] = size[c] > 0 ? 1 / size[c] : 0;
        sum += weights[c] * size[c];
    }
    for (int64_t c = 0; c < data->classes && sum > 0; c++) weights[c] *= (double)t->nodes[GNN_TRAIN] / sum;
    if (sum > 0 || t->nodes[GNN_TRAIN] == 0)
        status = sp_array_copy(t->context, data->classes, sizeof *weights, t->class_weights, t->engine->space, weights,
                               SP_HOST);
    else status = sp_fail(t->context, SP_ERROR_ARGUMENT, "no training node is of a class with a weight above 0");
    sp_free(t->context, weights);
    return status;
}

sp_status gnn_trainer_place_split(gnn_trainer *t)
{
    const uint8_t *split = t->data->split;
    const int64_t nodes = t->data->graph.rows;
    if (!split || t->options.links) return SP_OK;
    memset(t->nodes, 0, sizeof t->nodes);
    for (int64_t i = 0; i < nodes; i++) {
        if (split[i] == GNN_TRAIN) t->training_nodes[t->nodes[GNN_TRAIN]] = (int32_t)i;
        t->nodes[split[i]]++;
    }
    const sp_status status = t->class_weights ? place_weights(t) : SP_OK;
    if (status != SP_OK) return status;
    return sp_array_copy(t->context, nodes, sizeof *t->split, t->split, t->engine->space, split, SP_HOST);
}

/* ---- the sampler ---------------------------------------------------------------------------------------- */

static sp_status make_sampler(gnn_trainer *t)
{
    gnn_sampler_options how = t->options.sampler;
    const int32_t *place_of = t->data->place;
    int32_t *moved = NULL;
    sp_status status;
    if (!t->options.sampled || !t->data->split) return SP_OK;
    how.layers = t->options.model.layers;
    if (how.kind == GNN_SAMPLE_CLUSTER && how.clusters && place_of) {
        TRY(sp_alloc(t->context, t->matrix.rows, sizeof *moved, (void **)&moved));
        for (int64_t i = 0; i < t->matrix.rows; i++) moved[place_of[i]] = how.clusters[i];
        how.clusters = moved;
    }
    TRY(gnn_sampler_create(t->context, &t->matrix, &how, &t->sampler));
done:
    sp_free(t->context, moved);
    return status;
}

/* ---- walks ---------------------------------------------------------------------------------------------- */

bool gnn_trainer_may_walk(const gnn_trainer *t, sp_status status)
{
    const bool trains = t->data->split || t->data->links.linked[GNN_TRAIN] > 0;
    return gnn_lacks_memory(status) && !t->walks && (t->options.sampled || !trains);
}

/* Dense features that the device cannot reach where they are, such as those of a read-only mapping, are copied. */
static sp_status reach_features(gnn_trainer *t)
{
    const sp_dense *x = &t->walk_x.dense;
    const size_t size = number_size(x->type);
    if (!x->values || gnn_host_rows_of(t->engine, x, &t->reached) == SP_OK) return SP_OK;
    const sp_status status = gnn_host_rows_create(t->engine, x->rows, x->cols, x->type, &t->reached);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < x->rows; i++)
        memcpy((char *)t->reached.here.values + (size_t)(i * t->reached.here.stride) * size,
               (const char *)x->values + (size_t)(i * x->stride) * size, (size_t)x->cols * size);
    return SP_OK;
}

sp_status gnn_trainer_begin_walks(gnn_trainer *t)
{
    const gnn_model_options *m = &t->options.model;
    const bool host = t->engine->space == SP_HOST, sampled = t->options.sampled;
    sp_status status;
    t->walks = true;
    t->walk_rows = t->data->graph.rows;
    gnn_trainer_forget(t);
    gnn_trainer_free_blocks(t->block);
    TRY(gnn_model_renew(t->model));
    if (!host && !sampled) {
        sp_csr_free(t->context, &t->matrix);
        gnn_trainer_free_features(t);
    }
    if (!t->matrix.row_offsets && (host || sampled)) TRY(make_matrix(t));
    if (!host) TRY(gnn_operator_of(t->context, t->data, m->layer, value_type(m->type), &t->walk_matrix));
    if (host) {
        if (!t->x.dense.values && !t->x.sparse.row_offsets) TRY(place_features(t));
        t->walk_borrowed = true;
        t->walk_x = t->x;
    } else TRY(host_features(t, &t->walk_x, &t->walk_borrowed));
    TRY(reach_features(t));
done:
    return status;
}

sp_status gnn_trainer_walk(gnn_trainer *t, bool hidden)
{
    const gnn_walk how = {.matrix = t->engine->space == SP_HOST ? &t->matrix : &t->walk_matrix,
                          .dense = t->reached.here.values ? &t->reached : NULL, .sparse = &t->walk_x.sparse,
                          .rows = &t->walk_rows, .logits = &t->logits, .hidden = hidden ? &t->hidden : NULL};
    gnn_host_rows_free(t->engine, &t->logits);
    gnn_host_rows_free(t->engine, &t->hidden);
    const sp_status status = gnn_model_walk(t->model, &how);
    if (!gnn_lacks_memory(status) || t->engine->space == SP_HOST || !t->x.dense.values) return status;
    gnn_trainer_free_features(t); /* from now on minibatches gather from host memory */
    return gnn_model_walk(t->model, &how);
}

void gnn_trainer_free_walks(gnn_trainer *t)
{
    gnn_host_rows_free(t->engine, &t->logits);
    gnn_host_rows_free(t->engine, &t->hidden);
    gnn_host_rows_free(t->engine, &t->reached);
    free_features(t, &t->walk_x, t->walk_borrowed);
    sp_csr_free(t->context, &t->walk_matrix);
    sp_dense_free(t->context, &t->outputs);
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

static sp_status place_graph(gnn_trainer *t)
{
    sp_status status;
    TRY(make_matrix(t));
    TRY(place_features(t));
    TRY(make_full_blocks(t));
done:
    return status;
}

sp_status gnn_trainer_place(gnn_trainer *t)
{
    sp_status status;
    TRY(gnn_symmetric(t->context, &t->data->graph, &t->symmetric));
    status = place_graph(t);
    if (gnn_trainer_may_walk(t, status)) status = gnn_trainer_begin_walks(t);
    if (status != SP_OK) return status;
    TRY(place_labels(t));
    TRY(make_sampler(t));
done:
    return status;
}
