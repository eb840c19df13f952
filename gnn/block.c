/* Blocks: a layer's neighbourhoods with the plans for products with them.
 *
 * The gradient of Y = A·X is dX = Aᵀ·dY, by a plan of the transpose, or by the same plan if A = Aᵀ. The gradient of
 * the mean Y = D^-1·A·X is (D^-1·A)ᵀ·dY, a sum with 1/d_i at the entries of the transpose: 4 bytes more an entry and
 * product. Scaling the rows of dY instead reads and writes 8 · width bytes a row, which costs less only if degrees
 * exceed twice the width. */
#include "internal.h"

sp_status gnn_block_create(gnn_engine *engine, const sp_csr *matrix, gnn_layer layer, bool symmetric, int64_t width,
                           gnn_block **block)
{
    const sp_spmm_options how = {.deterministic = true,
                                 .reduce = layer == GNN_SAGE       ? SP_REDUCE_MEAN
                                           : layer == GNN_SAGE_MAX ? SP_REDUCE_MAX
                                                                   : SP_REDUCE_SUM};
    gnn_block *made = NULL;
    if (block) *block = NULL;
    sp_status status = gnn_require(__func__, "engine", engine);
    if (status == SP_OK) status = sp_require_csr(engine->context, __func__, "matrix", matrix);
    if (status == SP_OK) status = sp_require(engine->context, __func__, "block", block);
    if (status != SP_OK) return status;
    sp_context *context = engine->context;
    sp_csr a = *matrix;
    if ((unsigned)layer > GNN_GAT) return sp_fail(context, SP_ERROR_ARGUMENT, "layer %d does not exist", (int)layer);
    if (a.rows > a.cols || (symmetric && a.rows != a.cols))
        return sp_fail(context, SP_ERROR_ARGUMENT, "a block of %lld rows and %lld columns: there must be a column"
                       " for each row's own node, and no other where it is symmetric", (long long)a.rows,
                       (long long)a.cols);
    if (layer != GNN_GCN && layer != GNN_GIN) a.values = NULL; /* means and maxima ignore weights */
    TRY(sp_calloc(context, 1, sizeof *made, (void **)&made));
    made->engine = engine;
    made->number = ++engine->blocks;
    made->layer = layer;
    made->symmetric = symmetric;
    made->width = width;
    if (a.space != engine->space) {
        TRY(sp_csr_copy(context, &a, engine->space, &made->own));
        a = made->own;
    }
    made->a = a;
    if (layer != GNN_GAT) TRY(sp_spmm_plan_create(context, &made->a, width, &how, &made->forward));
    *block = made;
    made = NULL;
done:
    gnn_block_free(made);
    return status;
}

/* The transpose's pattern, and for each of its entries the place in A: positions of eight bytes are transposed as
 * values. */
static sp_status transpose_pattern(gnn_block *block)
{
    gnn_engine *engine = block->engine;
    sp_context *context = engine->context;
    sp_csr numbered = block->a, transpose = {0};
    int64_t *positions = NULL;
    sp_status status;
    numbered.values = NULL;
    numbered.value_type = SP_F64;
    TRY(sp_array_create(context, block->a.nnz, sizeof *positions, engine->space, &numbered.values));
    TRY(sp_alloc(context, block->a.nnz, sizeof *positions, (void **)&positions));
    for (int64_t k = 0; k < block->a.nnz; k++) positions[k] = k;
    TRY(sp_array_copy(context, block->a.nnz, sizeof *positions, numbered.values, engine->space, positions,
                      SP_HOST));
    TRY(sp_csr_transpose(context, &numbered, &transpose));
    block->places = transpose.values;
    transpose.values = NULL;
    transpose.value_type = block->a.value_type;
    block->transpose = transpose;
done:
    sp_array_free(context, engine->space, numbered.values);
    sp_free(context, positions);
    return status;
}

/* A plan for (D^-1·A)ᵀ. The values 1/d_i are the softmax of zeros over each row. */
static sp_status plan_mean_backward(gnn_block *block, const sp_spmm_options *how)
{
    gnn_engine *engine = block->engine;
    sp_context *context = engine->context;
    const bool single = block->a.value_type == SP_F32;
    sp_csr scaled = block->a;
    sp_dense zeros = {.rows = 1, .cols = scaled.nnz, .stride = scaled.nnz,
                      .type = single ? SP_DENSE_F32 : SP_DENSE_F64, .space = engine->space};
    sp_status status;
    TRY(sp_array_create(context, scaled.nnz, single ? 4 : 8, engine->space, &zeros.values));
    TRY(engine->backend->fill(engine, 0, &zeros));
    TRY(sp_edge_softmax(context, &block->a, 1, zeros.values));
    scaled.values = zeros.values;
    TRY(sp_spmm_plan_create(context, &scaled, block->width, how, &block->backward));
done:
    sp_array_free(context, engine->space, zeros.values);
    return status;
}

sp_status gnn_block_prepare_backward(gnn_block *block)
{
    sp_context *context = block->engine->context;
    const sp_spmm_options how = {.deterministic = true, .transpose = true};
    sp_status status = SP_OK;
    const bool pattern = block->layer == GNN_GAT || block->layer == GNN_SAGE_MAX;
    if (block->tiles) return gnn_tiles_prepare_backward(block);
    if (pattern && !block->places) TRY(transpose_pattern(block));
    if (block->backward || pattern) return SP_OK;
    if (block->layer == GNN_SAGE) {
        status = plan_mean_backward(block, &how);
    } else if (block->symmetric) {
        block->backward = block->forward;
    } else {
        status = sp_spmm_plan_create(context, &block->a, block->width, &how, &block->backward);
    }
done:
    return status;
}

void gnn_block_free(gnn_block *block)
{
    if (!block) return;
    sp_context *context = block->engine->context;
    if (block->rest_backward != block->rest) sp_spmm_plan_free(block->rest_backward);
    sp_spmm_plan_free(block->rest);
    gnn_tiles_release(block->tiles);
    if (block->backward != block->forward) sp_spmm_plan_free(block->backward);
    sp_spmm_plan_free(block->forward);
    sp_csr_free(context, &block->transpose);
    sp_array_free(context, block->engine->space, block->places);
    sp_csr_free(context, &block->own);
    sp_free(context, block);
}
