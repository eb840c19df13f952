/* What stands between layers beside bias, activation and dropout: norms, residuals, and the jump to the logits.
 *
 *   Z = A·X·W + ... + b    the layer's output
 *   F = dropout(activation(norm(Z)))
 *   H = F, or with a residual F + H of the layer before, the next layer's input
 *   logits = J·W + b, J made of the H of all layers (Xu et al. 2018), or Z of the last layer
 *
 * Models with none of these do activation and dropout within the layers' own passes, and nothing here is called. */
#include "layer.h"

static gnn_normal normal_of(const gnn_layer_state *layer)
{
    const gnn_between *between = &layer->between;
    return (gnn_normal){.norm = between->norm, .fixed = between->fixed, .scale = between->scale.value.values,
                        .shift = between->shift.value.values, .running_mean = between->running_mean.value.values,
                        .running_variance = between->running_variance.value.values,
                        .mean = between->mean.now.values, .inverse = between->inverse.now.values};
}

const sp_dense *gnn_between_output(const gnn_layer_state *layer)
{
    return layer->between.residual ? &layer->between.joined.now : &layer->between.active.now;
}

sp_status gnn_between_forward(gnn_layer_state *layer, const sp_dense *before)
{
    gnn_engine *engine = layer->engine;
    const gnn_backend *backend = engine->backend;
    gnn_between *between = &layer->between;
    sp_dense *z = &layer->output.now;
    sp_status status;
    if (layer->open) TRY(gnn_finish(engine, &layer->after, &layer->bias, z));
    layer->open = false;
    TRY(gnn_matrix_shape_rows(engine, z->rows, z->cols, layer->numbers, &between->active));
    sp_dense *f = &between->active.now;
    if (between->norm != GNN_NORM_NONE) {
        const int64_t count = between->norm == GNN_NORM_BATCH ? z->cols : z->rows;
        TRY(gnn_matrix_shape(engine, 1, count, layer->type, &between->mean));
        TRY(gnn_matrix_shape(engine, 1, count, layer->type, &between->inverse));
        const gnn_normal how = normal_of(layer);
        TRY(backend->normalise(engine, &how, z, f));
        TRY(gnn_finish(engine, &between->how, NULL, f));
    } else {
        TRY(backend->forward(engine, &between->how, z, NULL, f));
    }
    if (between->residual) {
        const sp_dense own = gnn_first_rows(before, z->rows);
        TRY(gnn_matrix_shape_rows(engine, z->rows, z->cols, layer->numbers, &between->joined));
        TRY(backend->copy(engine, f, &between->joined.now));
        TRY(backend->add(engine, 1, &own, &between->joined.now));
    }
done:
    return status;
}

sp_status gnn_between_backward(gnn_layer_state *layer, void *sums)
{
    gnn_engine *engine = layer->engine;
    const gnn_backend *backend = engine->backend;
    const gnn_between *between = &layer->between;
    const sp_dense *z = &layer->output.now, *f = &between->active.now;
    const bool norm = between->norm != GNN_NORM_NONE;
    sp_status status;
    TRY(gnn_matrix_shape_rows(engine, z->rows, z->cols, layer->numbers, &layer->gradient));
    sp_dense *g = &layer->gradient.now;
    TRY(backend->backward(engine, &between->how, f, &between->gradient.now, g, norm ? NULL : sums));
    if (!norm) return SP_OK;
    const gnn_normal how = normal_of(layer);
    TRY(backend->normalise_backward(engine, &how, z, g, g, between->scale.gradient.values,
                                    between->shift.gradient.values));
    if (!sums) return SP_OK;
    /* A batch's mean takes a bias away again. Its gradient is 0, and not the rounding that a sum would leave, which
     * Adam would scale up. */
    sp_dense zeros = {.rows = 1, .cols = g->cols, .stride = g->cols, .values = sums, .type = layer->type,
                      .space = engine->space};
    if (between->norm == GNN_NORM_BATCH && !between->fixed) return backend->fill(engine, 0, &zeros);
    return backend->column_sums(engine, g, sums);
done:
    return status;
}

/* ---- the jump ------------------------------------------------------------------------------------------ */

/* The rows of W, or of its gradient, that output `number` is multiplied by. */
static sp_dense rows_for(const sp_dense *w, int number, int64_t width)
{
    return gnn_row_range(w, number * width, width);
}

gnn_matrix *gnn_jump_carried(gnn_readout *jump)
{
    return jump->kind == GNN_JUMP_MAX ? &jump->most : jump->kind == GNN_JUMP_CAT ? &jump->logits : NULL;
}

sp_status gnn_jump_take(gnn_readout *jump, gnn_engine *engine, const sp_dense *h, int number, int layers)
{
    const bool cat = jump->kind == GNN_JUMP_CAT, last = number + 1 == layers;
    const sp_dense part = rows_for(&jump->weight.used, cat ? number : 0, h->cols);
    sp_status status = SP_OK;
    if (jump->kind == GNN_JUMP_MAX) {
        TRY(gnn_matrix_shape_rows(engine, h->rows, h->cols, h->type, &jump->most));
        TRY((number == 0 ? engine->backend->copy : engine->backend->larger)(engine, h, &jump->most.now));
        h = &jump->most.now;
    }
    if (!cat && !last) return SP_OK;
    TRY(gnn_matrix_shape_rows(engine, h->rows, part.cols, jump->weight.value.type, &jump->logits));
    TRY(engine->backend->multiply(engine, false, false, 1, h, &part, cat && number > 0, &jump->logits.now));
done:
    return status;
}

sp_status gnn_jump_forward(gnn_readout *jump, const gnn_layer_state *layer, int layers)
{
    const int64_t rows = gnn_between_output(&layer[layers - 1])->rows;
    sp_status status = SP_OK;
    for (int i = 0; status == SP_OK && i < layers; i++) {
        const sp_dense h = gnn_first_rows(gnn_between_output(&layer[i]), rows);
        status = gnn_jump_take(jump, layer->engine, &h, i, layers);
    }
    return status;
}

/* From logits J·W: dW of part `number`, and dJ, to which `beta` times the present one is added. */
static sp_status part_backward(gnn_engine *engine, const gnn_readout *jump, int number, const sp_dense *j,
                               const sp_dense *g, double beta, sp_dense *j_gradient)
{
    const sp_dense w = rows_for(&jump->weight.used, number, j->cols);
    sp_dense w_gradient = rows_for(&jump->weight.gradient, number, j->cols);
    const sp_status status = engine->backend->multiply(engine, true, false, 1, j, g, 0, &w_gradient);
    if (status != SP_OK) return status;
    return engine->backend->multiply(engine, false, true, 1, g, &w, beta, j_gradient);
}

sp_status gnn_jump_backward(gnn_readout *jump, gnn_layer_state *layer, bool last, const sp_dense *g)
{
    gnn_engine *engine = layer->engine;
    gnn_matrix *gradient = &layer->between.gradient;
    const sp_dense *output = gnn_between_output(layer), h = gnn_first_rows(output, g->rows);
    sp_status status = SP_OK;
    if (last) TRY(gnn_matrix_shape_rows(engine, output->rows, output->cols, output->type, gradient));
    sp_dense to = gnn_first_rows(&gradient->now, g->rows);
    if (jump->kind == GNN_JUMP_CAT) return part_backward(engine, jump, layer->number, &h, g, !last, &to);
    if (jump->kind == GNN_JUMP_LAST) return last ? part_backward(engine, jump, 0, &h, g, 0, &to) : SP_OK;
    if (last) {
        const sp_dense *most = &jump->most.now;
        TRY(gnn_matrix_shape_rows(engine, most->rows, most->cols, most->type, &jump->left));
        TRY(part_backward(engine, jump, 0, most, g, 0, &jump->left.now));
        TRY(engine->backend->fill(engine, 0, &to));
    }
    TRY(engine->backend->larger_backward(engine, &h, &jump->most.now, &jump->left.now, &to));
done:
    return status;
}

void gnn_between_free(gnn_engine *engine, gnn_between *between)
{
    gnn_matrix *const all[] = {&between->mean, &between->inverse, &between->active, &between->joined,
                               &between->gradient};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gnn_matrix_free(engine, all[i]);
}

void gnn_jump_free(gnn_engine *engine, gnn_readout *jump)
{
    gnn_matrix_free(engine, &jump->logits);
    gnn_matrix_free(engine, &jump->most);
    gnn_matrix_free(engine, &jump->left);
}
