/* The CPU back end: its state, its sums over rows, and the table of its operations. */
#include <cblas.h>
#include <dlfcn.h>
#include <string.h>

#include "backend.h"

sp_status gnn_cpu_scratch(gnn_engine *engine, int64_t count, size_t size, void **scratch)
{
    cpu_state *state = engine->state;
    int64_t bytes;
    if (__builtin_mul_overflow(count, (int64_t)size, &bytes))
        return sp_fail(engine->context, SP_ERROR_OVERFLOW, "%lld numbers of work space", (long long)count);
    if (bytes > state->scratch_bytes) {
        sp_free(engine->context, state->scratch);
        state->scratch_bytes = 0;
        const sp_status status = sp_alloc(engine->context, bytes, 1, &state->scratch);
        if (status != SP_OK) return status;
        state->scratch_bytes = bytes;
    }
    *scratch = state->scratch;
    return SP_OK;
}

/* ---- sums over rows ------------------------------------------------------------------------------------ */

/* Rows of a chunk, and chunks at most: the sums of a chunk are cols numbers. */
enum { CHUNK_ROWS = 512, MOST_CHUNKS = 64 };

sp_status gnn_cpu_sum_rows(gnn_engine *engine, cpu_add_rows *add, const void *job, int64_t rows, int64_t cols,
                           sp_dense_type type, void *sums)
{
    const int64_t wanted = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    const int64_t chunks = wanted < 1 ? 1 : wanted < MOST_CHUNKS ? wanted : MOST_CHUNKS;
    double *partial;
    const sp_status status = gnn_cpu_scratch(engine, chunks * cols, sizeof *partial, (void **)&partial);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1) num_threads(cpu_threads(engine, rows * cols))
    for (int64_t c = 0; c < chunks; c++) {
        memset(partial + c * cols, 0, (size_t)cols * sizeof *partial);
        add(job, rows * c / chunks, rows * (c + 1) / chunks, partial + c * cols);
    }
    for (int64_t c = 1; c < chunks; c++)
        for (int64_t j = 0; j < cols; j++) partial[j] += partial[c * cols + j];
    for (int64_t j = 0; j < cols; j++)
        if (type == SP_DENSE_F64) ((double *)sums)[j] = partial[j];
        else ((float *)sums)[j] = (float)partial[j];
    return SP_OK;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static sp_status open_engine(gnn_engine *engine)
{
    cpu_state *state;
    const sp_status status = sp_calloc(engine->context, 1, sizeof *state, &engine->state);
    if (status != SP_OK) return status;
    state = engine->state;
    /* Looked up by name, because libblas may be another BLAS or a library that refers to OpenBLAS. */
    *(void **)&state->set_blas_threads = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    *(void **)&state->blas_threads = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
    if (!state->blas_threads) state->set_blas_threads = NULL;
    return SP_OK;
}

/* A BLAS is recognised by a function that only it has. One that is linked statically was chosen by the builder. */
const char *gnn_blas(bool *known)
{
    static const struct {
        const char *function, *name;
    } list[] = {{"openblas_get_config", "OpenBLAS"},
                {"bli_info_get_version_str", "BLIS"},
                {"MKL_Get_Version", "MKL"},
                {"ATL_buildinfo", "ATLAS"},
                {"flexiblas_get_version", "FlexiBLAS"},
                {"armplversion", "Arm Performance Libraries"},
                {"nvpl_blas_get_version", "NVPL"}};
    Dl_info own, blas;
    *known = true;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (dlsym(RTLD_DEFAULT, list[i].function)) return list[i].name;
    if (!dladdr((void *)&gnn_blas, &own) || !dladdr((void *)&cblas_sgemm, &blas) || blas.dli_fbase == own.dli_fbase)
        return "linked statically";
    *known = false;
    return blas.dli_fname;
}

static void close_engine(gnn_engine *engine)
{
    cpu_state *state = engine->state;
    if (!state) return;
    FREE_ALL(engine->context, state->packed, state->scratch, state);
    engine->state = NULL;
}

static sp_status set_step(gnn_engine *engine, int64_t step)
{
    engine->step = step;
    return SP_OK;
}

static sp_status advance(gnn_engine *engine)
{
    engine->step++;
    return SP_OK;
}

static sp_status wait_for_work(gnn_engine *engine)
{
    (void)engine;
    return SP_OK;
}

const gnn_backend gnn_backend_cpu = {
    .open = open_engine,
    .close = close_engine,
    .set_step = set_step,
    .advance = advance,
    .wait = wait_for_work,
#define GNN_OPERATION(name, ...) .name = gnn_cpu_##name,
#include "operations.inc"
};
