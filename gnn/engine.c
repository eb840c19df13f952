/* The engine: the state that dense operations need beside a context, and their back end. */
#include "internal.h"

sp_context *gnn_engine_context(const gnn_engine *engine) { return engine ? engine->context : NULL; }

void gnn_engine_free(gnn_engine *engine)
{
    if (!engine) return;
    sp_context *context = engine->context;
    engine->backend->close(engine);
    sp_free(context, engine);
    sp_context_destroy(context);
}

sp_status gnn_engine_create(sp_context *context, uint64_t seed, gnn_engine **engine)
{
    gnn_engine *made = NULL;
    if (engine) *engine = NULL;
    sp_status status = sp_require(context, __func__, "engine", engine);
    if (status == SP_OK) status = sp_calloc(context, 1, sizeof *made, (void **)&made);
    if (status != SP_OK) return status;
    sp_context_retain(context);
    *made = (gnn_engine){.context = context, .backend = &gnn_backend_cpu, .space = SP_HOST, .seed = seed};
#ifdef GNN_CUDA
    if (sp_context_is_cuda(context)) {
        made->backend = &gnn_backend_cuda;
        made->space = SP_DEVICE;
    }
#endif
    status = made->backend->open(made);
    if (status == SP_OK) *engine = made;
    else gnn_engine_free(made);
    return status;
}

sp_status gnn_rows_create(gnn_engine *engine, int64_t rows, int64_t cols, sp_dense_type type, sp_dense *matrix)
{
    const int64_t stride = cols < 0 || cols > INT64_MAX - 128 ? cols : gnn_row_stride(engine, cols, type);
    sp_status status = sp_dense_create(engine->context, rows, stride, type, engine->space, matrix);
    if (status != SP_OK) return status;
    status = engine->backend->fill(engine, 0, matrix);
    if (status == SP_OK) matrix->cols = cols;
    else sp_dense_free(engine->context, matrix);
    return status;
}

/* ---- dense layers step by step ------------------------------------------------------------------------- */

static bool changes(const gnn_pointwise *how) { return how->activation != GNN_LINEAR || how->rate > 0; }

sp_status gnn_dense_by_steps(gnn_engine *engine, int count, const gnn_product *product, const gnn_pointwise *how,
                             const void *bias, sp_dense *y)
{
    const gnn_backend *backend = engine->backend;
    sp_status status = SP_OK;
    for (int k = 0; k < count; k++)
        TRY(backend->multiply(engine, false, false, 1, product[k].a, product[k].b, k > 0, y));
    if (bias || changes(how)) TRY(backend->forward(engine, how, y, bias, y));
done:
    return status;
}

sp_status gnn_finish_multiply_by_steps(gnn_engine *engine, const gnn_pointwise *how, const void *bias, sp_dense *y,
                                       int count, const gnn_product_with *product)
{
    const gnn_backend *backend = engine->backend;
    sp_status status = SP_OK;
    if (bias || changes(how)) TRY(backend->forward(engine, how, y, bias, y));
    TRY(backend->multiply_features(engine, false, y, count, product));
done:
    return status;
}

sp_status gnn_derive(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *x, sp_dense *x_gradient,
                     void *sums)
{
    if (changes(how)) return engine->backend->backward(engine, how, x, x_gradient, x_gradient, sums);
    return sums ? engine->backend->column_sums(engine, x_gradient, sums) : SP_OK;
}

sp_status gnn_dense_backward_by_steps(gnn_engine *engine, int count, const gnn_product_gradient *product,
                                      const gnn_pointwise *how, const sp_dense *x, sp_dense *x_gradient, void *sums)
{
    const gnn_backend *backend = engine->backend;
    sp_status status = SP_OK;
    for (int k = 0; k < count; k++) {
        const gnn_product_gradient *p = &product[k];
        const sp_dense from = gnn_first_rows(x, p->g->rows);
        sp_dense to = gnn_first_rows(x_gradient, p->g->rows);
        TRY(backend->multiply(engine, true, false, 1, &from, p->g, 0, p->w_gradient));
        TRY(backend->multiply(engine, false, true, 1, p->g, p->w, k > 0, &to));
    }
    TRY(gnn_derive(engine, how, x, x_gradient, sums));
done:
    return status;
}
