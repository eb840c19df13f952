/* GCN, GraphSAGE and GIN: Y = own + A·X·W + b, where A stands for sums, means or maxima over neighbours, and
 *
 *   GCN    own = 0              SAGE   own = X·W_self              GIN   own = X·W, and Y is then relu(Y)·W_2 + b_2
 *
 * Sums and means are linear and have two orders, A·(X·W) and (A·X)·W. Maxima have only the second, sparse features
 * only the first. With MaxK, neighbours receive the k largest numbers of each row (Peng et al. 2024): Y = own +
 * A·MaxK(X·W + b), without the ReLU in GIN, and dropout drops kept numbers. */
#include <math.h>

#include "layer.h"

/* ---- memory ------------------------------------------------------------------------------------------- */

static sp_status shape(gnn_engine *engine, int64_t rows, int64_t cols, int64_t stride, sp_dense_type type,
                       gnn_matrix *matrix)
{
    int64_t bytes;
    if (__builtin_mul_overflow(rows, stride, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)number_size(type), &bytes))
        return sp_fail(engine->context, SP_ERROR_OVERFLOW, "a matrix of %lld x %lld numbers cannot be addressed",
                       (long long)rows, (long long)cols);
    const bool larger = bytes > matrix->bytes || !matrix->now.values, other = type != matrix->now.type;
    if (larger) {
        gnn_matrix_free(engine, matrix);
        sp_status status = sp_array_create(engine->context, bytes / 4 + 1, sizeof(float), engine->space,
                                           &matrix->now.values);
        if (status != SP_OK) return status;
        matrix->bytes = bytes;
    }
    if (larger || other) { /* products also read the numbers between rows, which must be finite */
        sp_dense all = {.rows = 1, .cols = matrix->bytes / 4 + 1, .stride = matrix->bytes / 4 + 1,
                        .values = matrix->now.values, .type = SP_DENSE_F32, .space = engine->space};
        sp_status status = engine->backend->fill(engine, 0, &all);
        if (status != SP_OK) return status;
    }
    matrix->now = (sp_dense){.rows = rows, .cols = cols, .stride = stride, .values = matrix->now.values,
                             .type = type, .space = engine->space};
    return SP_OK;
}

sp_status gnn_matrix_shape(gnn_engine *engine, int64_t rows, int64_t cols, sp_dense_type type, gnn_matrix *matrix)
{
    return shape(engine, rows, cols, cols, type, matrix);
}

sp_status gnn_matrix_shape_rows(gnn_engine *engine, int64_t rows, int64_t cols, sp_dense_type type,
                                gnn_matrix *matrix)
{
    return shape(engine, rows, cols, gnn_row_stride(engine, cols, type), type, matrix);
}

void gnn_matrix_free(gnn_engine *engine, gnn_matrix *matrix)
{
    sp_array_free(engine->context, engine->space, matrix->now.values);
    *matrix = (gnn_matrix){0};
}

/* ---- products with the input -------------------------------------------------------------------------- */

sp_status gnn_layer_multiply(gnn_engine *engine, const gnn_layer_input *x, const sp_dense *w, sp_dense *c)
{
    const gnn_product_with product = {w, c};
    return x->plan ? sp_spmm_execute(x->plan, 1, w, 0, c) : engine->backend->multiply_features(engine, false, &x->dense,
                                                                                               1, &product);
}

sp_status gnn_layer_gradient(gnn_engine *engine, const gnn_layer_input *x, const sp_dense *g, sp_dense *w_gradient)
{
    const gnn_product_with product = {g, w_gradient};
    return x->plan ? sp_spmm_execute(x->transposed, 1, g, 0, w_gradient)
                   : engine->backend->multiply_features(engine, true, &x->dense, 1, &product);
}

sp_status gnn_finish(gnn_engine *engine, const gnn_pointwise *how, const gnn_weight *bias, sp_dense *y)
{
    if (!bias && how->activation == GNN_LINEAR && how->rate == 0) return SP_OK;
    return engine->backend->forward(engine, how, y, bias ? bias->value.values : NULL, y);
}

/* Z = X·W_self for the first rows of X. A plan of sparse features forms the products of all rows. */
static sp_status own_forward(gnn_layer_state *layer, const gnn_layer_input *x, sp_dense *z)
{
    gnn_engine *engine = layer->engine;
    sp_status status;
    if (!x->plan || x->dense.rows == z->rows) return gnn_layer_multiply(engine, x, &layer->own.used, z);
    TRY(gnn_matrix_shape_rows(engine, x->dense.rows, z->cols, z->type, &layer->padded));
    TRY(gnn_layer_multiply(engine, x, &layer->own.used, &layer->padded.now));
    const sp_dense first = gnn_first_rows(&layer->padded.now, z->rows);
    TRY(engine->backend->copy(engine, &first, z));
done:
    return status;
}

/* dW_self = Xᵀ·G. */
static sp_status own_gradient(gnn_layer_state *layer, const gnn_layer_input *x, const sp_dense *g)
{
    gnn_engine *engine = layer->engine;
    sp_status status;
    if (x->plan && x->dense.rows != g->rows) {
        TRY(gnn_matrix_shape_rows(engine, x->dense.rows, g->cols, g->type, &layer->padded));
        TRY(engine->backend->fill(engine, 0, &layer->padded.now));
        sp_dense first = gnn_first_rows(&layer->padded.now, g->rows);
        TRY(engine->backend->copy(engine, g, &first));
        g = &layer->padded.now;
    }
    TRY(gnn_layer_gradient(engine, x, g, &layer->own.gradient));
done:
    return status;
}

/* ---- aggregation -------------------------------------------------------------------------------------- */

/* Compares the costs of both orders, forward and backward. A product with A moves a number a column and 8 bytes for
 * the entry itself. A term of a product with W takes as long as gathering 0.3 bytes (H200: 8 TB/s from its caches, 50
 * Tflop/s; two CPU cores: 15 GB/s, 90 Gflop/s). The input of the first layer needs no gradient, so there (A·X)·W
 * needs no product with Aᵀ and none with Wᵀ. */
bool gnn_layer_aggregates_first(const gnn_layer_state *layer, const sp_csr *a, bool sparse, bool keep)
{
    const double in = (double)layer->inputs, out = (double)layer->weight.value.cols, nnz = (double)a->nnz;
    const double rows = (double)a->rows, cols = (double)a->cols, term = 0.3 * in * out;
    const double size = layer->numbers == SP_DENSE_BF16 ? 2 : 4;
    const int products = layer->number > 0 ? 3 : 2;
    if (layer->kind == GNN_SAGE_MAX) return true;
    if (layer->maxk > 0 || sparse) return false;
    return keep || (products - 1) * nnz * (size * in + 8) + products * rows * term <
                       2 * nnz * (size * out + 8) + products * cols * term;
}

int64_t gnn_layer_gather_width(const gnn_layer_state *layer, const sp_csr *a, bool sparse, bool keep)
{
    if (layer->kind == GNN_GAT) return layer->weight.value.cols / layer->heads;
    return gnn_layer_aggregates_first(layer, a, sparse, keep) ? layer->inputs : layer->weight.value.cols;
}

/* A CBSR matrix of the product's shape, in memory that the layer keeps. */
static sp_status shape_kept(gnn_layer_state *layer, const sp_dense *p, sp_cbsr *kept)
{
    sp_status status = gnn_matrix_shape(layer->engine, p->rows, layer->maxk, p->type, &layer->kept);
    if (status == SP_OK) /* two bytes are enough for a column */
        status = gnn_matrix_shape(layer->engine, p->rows, layer->maxk, SP_DENSE_F16, &layer->kept_columns);
    *kept = (sp_cbsr){p->rows, p->cols, layer->maxk, layer->kept.now.values, layer->kept_columns.now.values, p->type,
                      layer->engine->space};
    return status;
}

/* The matrix with the padding of its rows, if rows are whole sectors: 41 columns cost a product 41 packets of one
 * number, or 12 packets of four. */
static sp_dense widened(const sp_dense *matrix)
{
    sp_dense wide = *matrix;
    const int64_t whole = gnn_whole_cols(matrix->cols, matrix->type);
    if (whole <= matrix->stride && matrix->stride == gnn_whole_cols(matrix->stride, matrix->type)) wide.cols = whole;
    return wide;
}

/* Y = the block's matrix, or its transpose, · X + beta · Y. */
static sp_status multiply_rows(gnn_block *block, bool backward, const sp_dense *x, double beta, sp_dense *y)
{
    sp_dense wide_x = widened(x), wide_y = widened(y);
    wide_x.cols = wide_y.cols = wide_x.cols < wide_y.cols ? wide_x.cols : wide_y.cols;
    return gnn_block_multiply(block, backward, x, &wide_x, beta, y, &wide_y);
}

/* Dropout of the kept numbers, or of their gradient. */
static sp_status drop_kept(gnn_layer_state *layer, sp_cbsr *kept)
{
    if (layer->kept_dropout == 0) return SP_OK;
    return layer->engine->backend->drop(layer->engine, layer->kept_dropout, layer->after.site, kept->rows * kept->k,
                                        kept->values, kept->type, kept->values);
}

/* Q = own + A·P + beta · Q. */
static sp_status aggregate(gnn_layer_state *layer, gnn_block *block, const sp_dense *p, double beta, sp_dense *q)
{
    gnn_engine *engine = layer->engine;
    sp_cbsr kept;
    sp_status status;
    if (layer->maxk > 0) {
        TRY(shape_kept(layer, p, &kept));
        TRY(sp_maxk(engine->context, p, &kept));
        TRY(drop_kept(layer, &kept));
        TRY(sp_maxk_spmm(block->forward, 1, &kept, beta, q));
    } else if (layer->kind == GNN_SAGE_MAX && layer->number > 0) {
        TRY(gnn_matrix_shape(engine, q->rows, q->cols, SP_DENSE_F64, &layer->argument));
        TRY(sp_spmm_execute_argument(block->forward, p, q, layer->argument.now.values));
    } else {
        TRY(multiply_rows(block, false, p, beta, q));
    }
    if (layer->kind == GNN_GIN) {
        const sp_dense own = gnn_own_rows(block, p);
        TRY(engine->backend->add(engine, 1, &own, q));
    }
done:
    return status;
}

/* Whether an entry of A gathers fewer bytes of G than of dQ. Nothing stands between the aggregation of GCN with MaxK
 * and the next layer's product, so dQ = G·Wᵀ, and Aᵀ·dQ is also (Aᵀ·G)·Wᵀ. Of dQ an entry needs the sectors that hold
 * one of k numbers: 406 bytes with k = 16 of 256; of G 32 bytes with 7 classes, 192 with 41. */
static bool gathers_narrow(const gnn_layer_state *layer)
{
    const gnn_layer_state *next = layer->next;
    const double width = (double)layer->weight.value.cols, sector = layer->type == SP_DENSE_F64 ? 4 : 8;
    const double touched = width * (1 - pow(1 - (double)layer->maxk / width, sector));
    return !left_out("gnn-kept") && next && layer->kind == GNN_GCN && !next->aggregate_first &&
           (double)gnn_whole_cols(next->weight.value.cols, layer->type) < touched;
}

/* The gradient of the kept numbers: Aᵀ·dQ at the kept columns. Only the columns of `kept` are read. */
static sp_status kept_gradient(gnn_layer_state *layer, gnn_block *block, const sp_dense *q_gradient, sp_cbsr *kept)
{
    gnn_engine *engine = layer->engine;
    sp_status status;
    if (gathers_narrow(layer)) {
        const sp_dense *g = &layer->next->product_gradient.now, *w = &layer->next->weight.used;
        TRY(gnn_matrix_shape_rows(engine, kept->rows, g->cols, layer->type, &layer->narrow));
        TRY(multiply_rows(block, true, g, 0, &layer->narrow.now));
        TRY(engine->backend->multiply_kept(engine, &layer->narrow.now, w, kept));
    } else {
        TRY(sp_maxk_spmm_backward(block->backward, q_gradient, kept));
    }
    TRY(drop_kept(layer, kept));
done:
    return status;
}

/* dP from dQ. */
static sp_status aggregate_backward(gnn_layer_state *layer, gnn_block *block, const sp_dense *q_gradient,
                                    sp_dense *p_gradient)
{
    gnn_engine *engine = layer->engine;
    sp_cbsr kept;
    sp_status status;
    TRY(gnn_block_prepare_backward(block));
    if (layer->maxk > 0) {
        TRY(shape_kept(layer, p_gradient, &kept));
        TRY(kept_gradient(layer, block, q_gradient, &kept));
        TRY(sp_maxk_expand(engine->context, &kept, p_gradient));
    } else if (layer->kind == GNN_SAGE_MAX) {
        TRY(engine->backend->maximum_backward(engine, &block->transpose, block->places,
                                              layer->argument.now.values, q_gradient, p_gradient));
    } else {
        TRY(multiply_rows(block, true, q_gradient, 0, p_gradient));
    }
    if (layer->kind == GNN_GIN) {
        sp_dense own = gnn_first_rows(p_gradient, q_gradient->rows);
        TRY(engine->backend->add(engine, 1, q_gradient, &own));
    }
done:
    return status;
}

/* layer->aggregated = A·X, unless it was kept. */
static sp_status aggregate_input(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x, bool keep)
{
    sp_status status;
    if (keep && layer->kept_block == block->number && layer->kept_features == x->dense.values) return SP_OK;
    layer->kept_block = 0;
    TRY(gnn_matrix_shape_rows(layer->engine, block->a.rows, layer->inputs, layer->numbers, &layer->aggregated));
    TRY(aggregate(layer, block, &x->dense, 0, &layer->aggregated.now));
    if (keep) layer->kept_block = block->number;
    layer->kept_features = x->dense.values;
done:
    return status;
}

/* ---- the layer ---------------------------------------------------------------------------------------- */

/* Between the two products of GIN: ReLU, or with MaxK nothing. */
static const gnn_pointwise inner_relu = {.activation = GNN_RELU}, nothing = {.activation = GNN_LINEAR};

/* Z = forward((A·X)·W + own + b); Z is layer->output, or layer->inner before GIN's second product. In bf16 the output
 * stays open, so that the next layer's pass over it does the rest. */
static sp_status forward_aggregated(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x, bool keep,
                                    const gnn_pointwise *how, sp_dense *z)
{
    const bool own = layer->own.value.values != NULL;
    const sp_dense own_x = gnn_own_rows(block, &x->dense);
    const gnn_product sum[] = {{&layer->aggregated.now, &layer->weight.used}, {&own_x, &layer->own.used}};
    sp_dense numbers = x->dense;
    sp_status status = x->open ? gnn_finish(layer->engine, x->how, x->open, &numbers) : SP_OK;
    if (status == SP_OK) status = aggregate_input(layer, block, x, keep);
    if (status != SP_OK) return status;
    layer->open = layer->numbers == SP_DENSE_BF16 && layer->kind != GNN_GIN;
    return layer->engine->backend->dense(layer->engine, own ? 2 : 1, sum, layer->open ? &nothing : how,
                                         layer->open ? NULL : layer->bias.value.values, z);
}

/* P = X·W, with MaxK X·W + b. */
static sp_status input_product(gnn_layer_state *layer, const gnn_layer_input *x, sp_dense *p)
{
    gnn_engine *engine = layer->engine;
    const gnn_product product = {&x->dense, &layer->weight.used};
    if (layer->maxk > 0 && !x->plan)
        return engine->backend->dense(engine, 1, &product, &nothing, layer->bias.value.values, p);
    sp_status status = gnn_layer_multiply(engine, x, &layer->weight.used, p);
    if (status == SP_OK && layer->maxk > 0) status = gnn_finish(engine, &nothing, &layer->bias, p);
    return status;
}

/* P, and Z = X·W_self in layers with W_self. */
static sp_status input_products(gnn_layer_state *layer, const gnn_layer_input *x, sp_dense *p, sp_dense *z)
{
    const bool own = layer->own.value.values != NULL;
    const gnn_product_with product[] = {{&layer->weight.used, p}, {&layer->own.used, z}};
    sp_dense numbers = x->dense;
    if (x->open)
        return layer->engine->backend->finish_multiply(layer->engine, x->how, x->open->value.values, &numbers,
                                                       own ? 2 : 1, product);
    if (own && !x->plan && layer->maxk == 0) 
        return layer->engine->backend->multiply_features(layer->engine, false, &x->dense, 2, product);
    const sp_status status = own ? own_forward(layer, x, z) : SP_OK;
    return status == SP_OK ? input_product(layer, x, p) : status;
}

/* Z = A·P + own, P = layer->product; `own` is in Z already. Bias and activation are left open for the next layer,
 * except in GIN and with MaxK. */
static sp_status forward_product(gnn_layer_state *layer, gnn_block *block, const gnn_pointwise *how, sp_dense *z)
{
    const bool own = layer->own.value.values != NULL;
    sp_status status;
    TRY(aggregate(layer, block, &layer->product.now, own, z));
    layer->open = layer->kind != GNN_GIN && layer->maxk == 0;
    if (!layer->open) TRY(gnn_finish(layer->engine, how, layer->maxk > 0 ? NULL : &layer->bias, z));
done:
    return status;
}

sp_status gnn_convolution_products(gnn_layer_state *layer, const gnn_layer_input *x, int64_t own)
{
    const int64_t width = layer->weight.value.cols;
    sp_status status;
    TRY(gnn_matrix_shape_rows(layer->engine, x->dense.rows, width, layer->numbers, &layer->product));
    TRY(gnn_matrix_shape_rows(layer->engine, own, layer->outputs, layer->results, &layer->output));
    TRY(input_products(layer, x, &layer->product.now, &layer->output.now));
done:
    return status;
}

sp_status gnn_convolution_gather(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x, bool keep)
{
    gnn_engine *engine = layer->engine;
    const bool gin = layer->kind == GNN_GIN;
    const gnn_pointwise *how = !gin ? &layer->after : layer->maxk > 0 ? &nothing : &inner_relu;
    sp_dense *z = gin ? &layer->inner.now : &layer->output.now;
    sp_status status;
    layer->open = false;
    TRY(gnn_matrix_shape_rows(engine, block->a.rows, layer->outputs, layer->results, &layer->output));
    if (gin)
        TRY(gnn_matrix_shape_rows(engine, block->a.rows, layer->weight.value.cols, layer->numbers, &layer->inner));
    if (layer->aggregate_first) TRY(forward_aggregated(layer, block, x, keep, how, z));
    else TRY(forward_product(layer, block, how, z));
    if (gin) {
        const gnn_product second = {z, &layer->second.used};
        TRY(engine->backend->dense(engine, 1, &second, &layer->after, layer->second_bias.value.values,
                                   &layer->output.now));
    }
done:
    return status;
}

sp_status gnn_convolution_forward(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x, bool keep)
{
    sp_status status = SP_OK;
    layer->aggregate_first = gnn_layer_aggregates_first(layer, &block->a, x->plan != NULL, keep);
    if (!layer->aggregate_first) status = gnn_convolution_products(layer, x, block->a.rows);
    return status == SP_OK ? gnn_convolution_gather(layer, block, x, keep) : status;
}

/* The gradients of W_2 and b_1, and layer->inner_gradient: that of the input of W_2 before its ReLU. */
static sp_status second_backward(gnn_layer_state *layer, const sp_dense *g)
{
    const sp_dense *inner = &layer->inner.now;
    const gnn_product_gradient product = {g, &layer->second.used, &layer->second.gradient};
    const bool relu = layer->maxk == 0;
    sp_dense *inner_gradient = &layer->inner_gradient.now;
    const sp_status status = gnn_matrix_shape_rows(layer->engine, inner->rows, inner->cols, layer->numbers,
                                                   &layer->inner_gradient);
    if (status != SP_OK) return status;
    return layer->engine->backend->dense_backward(layer->engine, 1, &product, relu ? &inner_relu : &nothing, inner,
                                                  inner_gradient, relu ? layer->bias.gradient.values : NULL);
}

static sp_status backward_aggregated(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x,
                                     const sp_dense *g, sp_dense *x_gradient)
{
    gnn_engine *engine = layer->engine;
    const gnn_backend *backend = engine->backend;
    const bool own = layer->own.value.values != NULL;
    gnn_matrix *between = &layer->product_gradient; /* of A·X */
    sp_status status;
    TRY(backend->multiply(engine, true, false, 1, &layer->aggregated.now, g, 0, &layer->weight.gradient));
    if (own) TRY(own_gradient(layer, x, g));
    if (!x_gradient) return SP_OK;
    TRY(gnn_matrix_shape_rows(engine, g->rows, layer->inputs, layer->numbers, between));
    TRY(backend->multiply(engine, false, true, 1, g, &layer->weight.used, 0, &between->now));
    TRY(aggregate_backward(layer, block, &between->now, x_gradient));
    if (own) {
        sp_dense first = gnn_first_rows(x_gradient, g->rows);
        TRY(backend->multiply(engine, false, true, 1, g, &layer->own.used, 1, &first));
    }
    TRY(gnn_derive(engine, x->how, &x->dense, x_gradient, x->sums));
done:
    return status;
}

static sp_status backward_product(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x, const sp_dense *g,
                                  sp_dense *x_gradient)
{
    gnn_engine *engine = layer->engine;
    const bool own = layer->own.value.values != NULL;
    gnn_matrix *between = &layer->product_gradient; /* of X·W */
    sp_status status;
    TRY(gnn_matrix_shape_rows(engine, block->a.cols, g->cols, layer->numbers, between));
    TRY(aggregate_backward(layer, block, g, &between->now));
    if (layer->maxk > 0)
        TRY(engine->backend->column_sums(engine, &between->now, layer->bias.gradient.values));
    if (x_gradient) {
        const gnn_product_gradient product[] = {{&between->now, &layer->weight.used, &layer->weight.gradient},
                                                {g, &layer->own.used, &layer->own.gradient}};
        return engine->backend->dense_backward(engine, own ? 2 : 1, product, x->how, &x->dense, x_gradient, x->sums);
    }
    const gnn_product_with product[] = {{&between->now, &layer->weight.gradient}, {g, &layer->own.gradient}};
    if (own && !x->plan) return engine->backend->multiply_features(engine, true, &x->dense, 2, product);
    TRY(gnn_layer_gradient(engine, x, &between->now, &layer->weight.gradient));
    if (own) TRY(own_gradient(layer, x, g));
done:
    return status;
}

sp_status gnn_convolution_backward(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x,
                                   const sp_dense *gradient, sp_dense *x_gradient)
{
    const sp_dense *g = gradient;
    sp_status status = SP_OK;
    if (layer->kind == GNN_GIN) {
        TRY(second_backward(layer, gradient));
        g = &layer->inner_gradient.now;
    }
    TRY((layer->aggregate_first ? backward_aggregated : backward_product)(layer, block, x, g, x_gradient));
done:
    return status;
}
