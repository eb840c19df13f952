/* GAT: Y = w·H for each head, H = X·W. w is α after dropout, α the softmax over each row of A's pattern of
 * leakyrelu(l_i + r_j), with l = H·left and r = H·right. Heads lie side by side in H and in Y; the last layer averages
 * them instead.
 * What an entry has of its own is never stored: see cuda/attention.cu. */
#include "layer.h"

static const double slope = 0.2; /* of leakyrelu (Velickovic et al. 2018) */

static sp_status shape_forward(gnn_layer_state *layer, const gnn_block *block)
{
    gnn_engine *engine = layer->engine;
    const int64_t rows = block->a.rows, cols = block->a.cols, heads = layer->heads, all = layer->weight.value.cols;
    sp_status status;
    TRY(gnn_matrix_shape_rows(engine, rows, layer->outputs, layer->results, &layer->output));
    TRY(gnn_matrix_shape_rows(engine, rows, all, layer->numbers, &layer->aggregated));
    TRY(gnn_matrix_shape_rows(engine, rows, all, layer->numbers, &layer->slopes));
    TRY(gnn_matrix_shape(engine, rows, heads, layer->type, &layer->left_scores));
    TRY(gnn_matrix_shape(engine, cols, heads, layer->type, &layer->right_scores));
    TRY(gnn_matrix_shape(engine, rows, heads, layer->type, &layer->logs));
done:
    return status;
}

/* Masks differ by layer and head; those between layers have sites up to GNN_MAX_LAYERS - 1. */
static gnn_attention attention_of(gnn_layer_state *layer, const gnn_block *block)
{
    return (gnn_attention){.a = &block->a, .heads = layer->heads, .slope = slope, .rate = layer->attention_dropout,
                           .site = (uint64_t)GNN_MAX_LAYERS + (uint64_t)layer->number, .h = &layer->product.now,
                           .left = &layer->left_scores.now, .right = &layer->right_scores.now,
                           .y = &layer->aggregated.now, .logs = &layer->logs.now, .slopes = &layer->slopes.now};
}

sp_status gnn_attention_products(gnn_layer_state *layer, const gnn_layer_input *x)
{
    const sp_status status = gnn_matrix_shape_rows(layer->engine, x->dense.rows, layer->weight.value.cols,
                                                   layer->numbers, &layer->product);
    return status == SP_OK ? gnn_layer_multiply(layer->engine, x, &layer->weight.used, &layer->product.now) : status;
}

sp_status gnn_attention_gather(gnn_layer_state *layer, gnn_block *block)
{
    gnn_engine *engine = layer->engine;
    const gnn_backend *backend = engine->backend;
    sp_status status;
    TRY(shape_forward(layer, block));
    const sp_dense *h = &layer->product.now, *y = &layer->aggregated.now;
    TRY(backend->head_scores(engine, h, layer->heads, block->first_own, layer->left.value.values,
                             layer->right.value.values, &layer->left_scores.now, &layer->right_scores.now));
    const gnn_attention attention = attention_of(layer, block);
    TRY(backend->attention(engine, &attention));
    layer->open = layer->average;
    if (layer->average) TRY(backend->average_heads(engine, y, layer->heads, &layer->output.now));
    else TRY(backend->forward(engine, &layer->after, y, layer->bias.value.values, &layer->output.now));
done:
    return status;
}

sp_status gnn_attention_forward(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x)
{
    const sp_status status = gnn_attention_products(layer, x);
    return status == SP_OK ? gnn_attention_gather(layer, block) : status;
}

static sp_status shape_backward(gnn_layer_state *layer, const gnn_block *block)
{
    gnn_engine *engine = layer->engine;
    const int64_t cols = block->a.cols, heads = layer->heads;
    sp_status status;
    TRY(gnn_matrix_shape_rows(engine, cols, layer->weight.value.cols, layer->numbers, &layer->product_gradient));
    TRY(gnn_matrix_shape(engine, block->a.rows, heads, layer->type, &layer->along));
    TRY(gnn_matrix_shape(engine, block->a.rows, heads, layer->type, &layer->left_gradient));
    TRY(gnn_matrix_shape(engine, cols, heads, layer->type, &layer->right_gradient));
done:
    return status;
}

sp_status gnn_attention_backward(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x,
                                 const sp_dense *gradient, sp_dense *x_gradient)
{
    gnn_engine *engine = layer->engine;
    const gnn_backend *backend = engine->backend;
    sp_status status;
    TRY(gnn_block_prepare_backward(block));
    TRY(shape_backward(layer, block));
    sp_dense *h_gradient = &layer->product_gradient.now;
    const sp_dense own = gnn_first_rows(&layer->product.now, block->a.rows);
    const gnn_attention attention = attention_of(layer, block);
    const gnn_attention_gradient back = {
        .transpose = &block->transpose, .places = block->places, .y_gradient = gradient,
        .left_vector = layer->left.value.values, .right_vector = layer->right.value.values,
        .along = &layer->along.now, .left_gradient = &layer->left_gradient.now,
        .right_gradient = &layer->right_gradient.now, .h_gradient = h_gradient};
    TRY(backend->attention_backward(engine, &attention, &back));
    TRY(backend->head_scores_backward(engine, &own, layer->heads, &layer->left_gradient.now,
                                      layer->left.gradient.values));
    TRY(backend->head_scores_backward(engine, &layer->product.now, layer->heads, &layer->right_gradient.now,
                                      layer->right.gradient.values));
    if (!x_gradient) return gnn_layer_gradient(engine, x, h_gradient, &layer->weight.gradient);
    const gnn_product_gradient product = {h_gradient, &layer->weight.used, &layer->weight.gradient};
    TRY(backend->dense_backward(engine, 1, &product, x->how, &x->dense, x_gradient, x->sums));
done:
    return status;
}
