/* sparse-bench spmm: how fast the processor gathers rows of X at random. All threads touch every line of the caches
 * that a row takes, with rows to come on their way: no product whose columns are random can be faster. */
#include "bench_spmm.h"

/* Rows a pass, rows ahead that are asked for, passes of which the fastest counts. */
enum { GATHERED = 1 << 20, AHEAD = 16, PASSES = 3, LINE = 64 };

static double pass(const spmm_case *c, const sp_dense *x, const int32_t *rows, size_t pitch, int64_t bytes)
{
    const char *values = x->values;
    int64_t sum = 0;
    const double began = wall_seconds();
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(c->host)) reduction(+ : sum)
    for (int64_t k = 0; k < GATHERED; k++) {
        const char *row = values + (size_t)rows[k] * pitch, *next = values + (size_t)rows[k + AHEAD] * pitch;
        for (int64_t at = 0; at < bytes; at += LINE) {
            __builtin_prefetch(next + at);
            sum += row[at];
        }
    }
    const double seconds = wall_seconds() - began;
    return sum == INT64_MIN ? -1 : seconds; /* the sum is needed */
}

sp_status spmm_floor_measure(spmm_case *c, const sp_dense *x)
{
    const size_t size = x->type == SP_DENSE_F64 ? 8 : x->type == SP_DENSE_F32 ? 4 : 2;
    uint64_t random = c->options->seed;
    int32_t *rows = NULL;
    double best = 0;
    sp_status status;
    if (x->rows == 0) return SP_OK;
    TRY(sp_alloc(c->host, GATHERED + AHEAD, sizeof *rows, (void **)&rows));
    for (int64_t k = 0; k < GATHERED + AHEAD; k++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        rows[k] = (int32_t)((random >> 33) % (uint64_t)x->rows);
    }
    for (int i = 0; i < PASSES; i++) {
        const double seconds = pass(c, x, rows, (size_t)x->stride * size, x->cols * (int64_t)size);
        if (i == 0 || seconds < best) best = seconds;
    }
    const double gathers = best / GATHERED * (double)c->a.nnz,
                 moves = (double)c->result->compulsory_bytes / c->machine->copy_bandwidth;
    c->result->floor_seconds = gathers > moves ? gathers : moves;
done:
    sp_free(c->host, rows);
    return status;
}
