/* The engine: what the dense operations need beside a context, and the back end that does them. */
#include "internal.h"

sp_context *gnn_engine_context(const gnn_engine *engine) { return engine->context; }

void gnn_engine_free(gnn_engine *engine)
{
    if (!engine) return;
    engine->backend->close(engine);
    sp_free(engine->context, engine);
}

sp_status gnn_engine_create(sp_context *context, uint64_t seed, gnn_engine **engine)
{
    gnn_engine *made;
    *engine = NULL;
    sp_status status = sp_calloc(context, 1, sizeof *made, (void **)&made);
    if (status != SP_OK) return status;
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
    const int64_t whole = cols < 0 || cols > INT64_MAX - 8 ? cols : gnn_whole_cols(cols, type);
    const sp_status status = sp_dense_create(engine->context, rows, whole, type, engine->space, matrix);
    if (status == SP_OK) matrix->cols = cols;
    return status;
}
