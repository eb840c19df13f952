/* GAT: Y = α·H for each head, H = X·W. α is the softmax over each row of A's pattern of leakyrelu(l_i + r_j), with l
 * = H·left and r = H·right. Heads lie side by side in H and in Y; the last layer averages them instead.
 *
 * Backward, for each head: dα is dY·Hᵀ at A's pattern. It goes through dropout and softmax to the scores of edges,
 * whose sums over rows and columns are dl and dr. dH = αᵀ·dY + dl·leftᵀ + dr·rightᵀ. */
#include "layer.h"

static const double slope = 0.2; /* of leakyrelu (Velickovic et al. 2018) */

/* The columns of one head. */
static sp_dense head_of(const sp_dense *all, int64_t width, int head)
{
    sp_dense one = *all;
    one.cols = width;
    one.values = (char *)all->values + head * width * (int64_t)number_size(all->type);
    return one;
}

/* The softmax of one head: a row of layer->attention. */
static void *attention_of(const gnn_layer_state *layer, int head)
{
    const sp_dense *all = &layer->attention.now;
    return (char *)all->values + head * all->cols * (int64_t)number_size(all->type);
}

/* The weights of neighbours: the softmax, or after dropout layer->edges. Masks differ by layer and head; those
 * between layers have sites up to GNN_MAX_LAYERS - 1. */
static sp_status drop_attention(gnn_layer_state *layer, int head, const void *from, const void **to)
{
    const uint64_t site = (uint64_t)GNN_MAX_LAYERS * (uint64_t)(head + 1) + (uint64_t)layer->number;
    *to = from;
    if (layer->attention_dropout == 0) return SP_OK;
    *to = layer->edges.now.values;
    return layer->engine->backend->drop(layer->engine, layer->attention_dropout, site, layer->edges.now.cols, from,
                                        layer->type, layer->edges.now.values);
}

static sp_status shape_forward(gnn_layer_state *layer, const gnn_block *block)
{
    gnn_engine *engine = layer->engine;
    const int64_t rows = block->a.rows, cols = block->a.cols, heads = layer->heads;
    const sp_dense_type type = layer->type;
    sp_status status;
    TRY(gnn_matrix_shape(engine, rows, layer->outputs, type, &layer->output));
    TRY(gnn_matrix_shape(engine, cols, layer->weight.value.cols, type, &layer->product));
    TRY(gnn_matrix_shape(engine, rows, heads, type, &layer->left_scores));
    TRY(gnn_matrix_shape(engine, cols, heads, type, &layer->right_scores));
    TRY(gnn_matrix_shape(engine, heads, block->a.nnz, type, &layer->attention));
    TRY(gnn_matrix_shape(engine, 1, block->a.nnz, type, &layer->edges));
done:
    return status;
}

sp_status gnn_attention_forward(gnn_layer_state *layer, gnn_block *block, const gnn_input *x)
{
    gnn_engine *engine = layer->engine;
    const gnn_backend *backend = engine->backend;
    const int64_t width = layer->weight.value.cols / layer->heads;
    sp_status status;
    TRY(shape_forward(layer, block));
    TRY(gnn_input_multiply(engine, x, &layer->weight.value, &layer->product.now));
    const sp_dense own = gnn_first_rows(&layer->product.now, block->a.rows);
    TRY(backend->head_scores(engine, &own, layer->heads, layer->left.value.values, &layer->left_scores.now));
    TRY(backend->head_scores(engine, &layer->product.now, layer->heads, layer->right.value.values,
                             &layer->right_scores.now));
    for (int head = 0; head < layer->heads; head++) {
        void *softmax = attention_of(layer, head);
        const void *weights;
        const sp_dense h = head_of(&layer->product.now, width, head);
        sp_dense y = head_of(&layer->output.now, width, layer->average ? 0 : head);
        TRY(backend->edge_scores(engine, &block->a, &layer->left_scores.now, &layer->right_scores.now, head,
                                 slope, softmax));
        TRY(sp_edge_softmax(engine->context, &block->a, softmax));
        TRY(drop_attention(layer, head, softmax, &weights));
        TRY(sp_spmm_plan_set_values(block->forward, weights, engine->space));
        TRY(sp_spmm_execute(block->forward, layer->average ? 1.0 / layer->heads : 1, &h,
                            layer->average && head > 0, &y));
    }
    TRY(gnn_finish(engine, &layer->after, &layer->bias, &layer->output.now));
done:
    return status;
}

static sp_status shape_backward(gnn_layer_state *layer, const gnn_block *block)
{
    gnn_engine *engine = layer->engine;
    const int64_t rows = block->a.rows, cols = block->a.cols;
    const sp_dense_type type = layer->type;
    sp_status status;
    TRY(gnn_matrix_shape(engine, cols, layer->weight.value.cols, type, &layer->product_gradient));
    TRY(gnn_matrix_shape(engine, rows, layer->heads, type, &layer->left_gradient));
    TRY(gnn_matrix_shape(engine, cols, layer->heads, type, &layer->right_gradient));
    TRY(gnn_matrix_shape(engine, 1, block->a.nnz, type, &layer->turned));
done:
    return status;
}

/* dH = αᵀ·dY of one head, and dl and dr. */
static sp_status head_backward(gnn_layer_state *layer, gnn_block *block, int head, const sp_dense *y_gradient)
{
    gnn_engine *engine = layer->engine;
    const gnn_backend *backend = engine->backend;
    const int64_t width = y_gradient->cols;
    const void *softmax = attention_of(layer, head), *weights;
    const sp_dense h = head_of(&layer->product.now, width, head);
    sp_dense h_gradient = head_of(&layer->product_gradient.now, width, head);
    void *edges = layer->edges.now.values, *turned = layer->turned.now.values;
    sp_status status;
    TRY(drop_attention(layer, head, softmax, &weights));
    TRY(backend->gather(engine, block->places, block->a.nnz, weights, layer->type, turned));
    TRY(sp_spmm_plan_set_values(block->backward, turned, engine->space));
    TRY(sp_spmm_execute(block->backward, 1, y_gradient, 0, &h_gradient));
    TRY(sp_sddmm(engine->context, &block->a, y_gradient, &h, edges));
    TRY(drop_attention(layer, head, edges, &weights)); /* in place */
    TRY(sp_edge_softmax_backward(engine->context, &block->a, softmax, edges));
    TRY(backend->edge_scores_backward(engine, &block->a, &block->transpose, block->places,
                                      &layer->left_scores.now, &layer->right_scores.now, head, slope, edges,
                                      &layer->left_gradient.now, &layer->right_gradient.now));
done:
    return status;
}

sp_status gnn_attention_backward(gnn_layer_state *layer, gnn_block *block, const gnn_input *x,
                                 const sp_dense *gradient, sp_dense *x_gradient)
{
    gnn_engine *engine = layer->engine;
    const gnn_backend *backend = engine->backend;
    const int64_t width = layer->weight.value.cols / layer->heads;
    sp_dense *h_gradient = &layer->product_gradient.now;
    const sp_dense *g = gradient;
    sp_status status;
    TRY(gnn_block_prepare_backward(block));
    TRY(shape_backward(layer, block));
    if (layer->average && layer->heads > 1) {
        TRY(gnn_matrix_shape(engine, g->rows, g->cols, layer->type, &layer->inner_gradient));
        TRY(backend->fill(engine, 0, &layer->inner_gradient.now));
        TRY(backend->add(engine, 1.0 / layer->heads, gradient, &layer->inner_gradient.now));
        g = &layer->inner_gradient.now;
    }
    for (int head = 0; head < layer->heads; head++) {
        const sp_dense y_gradient = head_of(g, width, layer->average ? 0 : head);
        TRY(head_backward(layer, block, head, &y_gradient));
    }
    const sp_dense own = gnn_first_rows(&layer->product.now, block->a.rows);
    sp_dense own_gradient = gnn_first_rows(h_gradient, block->a.rows);
    TRY(backend->head_scores_backward(engine, &own, layer->heads, layer->left.value.values,
                                      &layer->left_gradient.now, &own_gradient, layer->left.gradient.values));
    TRY(backend->head_scores_backward(engine, &layer->product.now, layer->heads, layer->right.value.values,
                                      &layer->right_gradient.now, h_gradient, layer->right.gradient.values));
    if (!x_gradient) return gnn_input_gradient(engine, x, h_gradient, &layer->weight.gradient);
    const gnn_product_gradient product = {h_gradient, &layer->weight.value, &layer->weight.gradient};
    TRY(backend->dense_backward(engine, 1, &product, x->how, &x->dense, x_gradient, x->sums));
done:
    return status;
}
