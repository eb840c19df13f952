/* sparse-bench spmm: how fast the processor gathers rows of X, in A's order. All threads touch every line of the
 * caches that a row takes, with rows to come on their way, and do nothing else: no product that takes rows as they
 * come can be faster. (One that cuts A by ranges of columns can.) */
#include "sparse-bench/spmm/spmm_bench.h"

/* Entries a pass, at most; rows ahead that are asked for; passes of which the fastest counts. */
enum { GATHERED = 1 << 25, NEAR = 8, FAR = 32, PASSES = 5, LINE = 64 };

static double pass(const spmm_case *c, const sp_dense *x, int64_t entries, int ahead, size_t pitch, int64_t bytes)
{
    const char *values = x->values;
    const int32_t *cols = c->a.col_indices;
    int64_t sum = 0;
    const double began = wall_seconds();
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(c->host)) reduction(+ : sum)
    for (int64_t k = 0; k < entries; k++) {
        const char *row = values + (size_t)cols[k] * pitch;
        const char *next = values + (size_t)cols[k + ahead < entries ? k + ahead : k] * pitch;
        for (int64_t at = 0; at < bytes; at += LINE) {
            __builtin_prefetch(next + at);
            sum += row[at];
        }
    }
    const double seconds = wall_seconds() - began;
    return sum == INT64_MIN ? -1 : seconds; /* the sum is needed */
}

void spmm_floor_measure(spmm_case *c, const sp_dense *x)
{
    const size_t size = x->type == SP_DENSE_F64 ? 8 : x->type == SP_DENSE_F32 ? 4 : 2;
    const int64_t entries = c->a.nnz < GATHERED ? c->a.nnz : GATHERED;
    double best = 0;
    for (int i = 0; i < PASSES; i++) {
        const double seconds = pass(c, x, entries, i % 2 ? NEAR : FAR, (size_t)x->stride * size,
                                    x->cols * (int64_t)size);
        if (i == 0 || seconds < best) best = seconds;
    }
    const double gathers = entries ? best / (double)entries * (double)c->a.nnz : 0,
                 moves = (double)c->result->compulsory_bytes / c->machine->copy_bandwidth;
    c->result->floor_seconds = gathers > moves ? gathers : moves;
}
