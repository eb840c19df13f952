/* MaxK on the CPU (Peng et al., "MaxK-GNN", 2024): the k largest of each row, and products with rows so compressed.
 *
 * Selection finds the k-th largest value bit by bit, counting how many values reach a threshold: passes over a row
 * that lies in the first cache, and compilers make vector code of it; it ends when just k reach it, after some 15 of
 * 32 bits. A row of Y is summed densely in the first cache, a gathered row costs 5 or 6 bytes for each of its k
 * entries; the gradient reads only the k numbers of a gathered row that count. Sums are f64, rounded once, and run in
 * A's order.
 */
#include <omp.h>
#include <string.h>

#include "base/vectors.h"
#include "core/backend_cpu.h"

/* Operands of one call; those that it does not have are NULL. */
typedef struct maxk_job {
    const sp_csr *a;
    const sp_cbsr *kept;
    const sp_dense *dense; /* X, Y or the gradient */
    double alpha, beta;
    bool mean;
} maxk_job;

/* Rows first to end - 1. `scratch` has room for a number of 8 bytes for every column. */
typedef void maxk_rows(const maxk_job *job, int64_t first, int64_t end, void *scratch);

typedef struct maxk_loops {
    maxk_rows *select, *expand, *gather, *collect;
} maxk_loops;

static double scale_of(const maxk_job *job, int64_t row)
{
    const int64_t entries = job->a->row_offsets[row + 1] - job->a->row_offsets[row];
    return job->mean && entries > 0 ? job->alpha / (double)entries : job->alpha;
}

#if defined __x86_64__
#define REAL float
#define KEY int32_t
#define COLUMN uint8_t
#define TARGET AVX2
#define INSTANCE f32_bytes_wide
#include "spmm/cpu/maxk_rows.inc"
#define REAL float
#define KEY int32_t
#define COLUMN uint16_t
#define TARGET AVX2
#define INSTANCE f32_words_wide
#include "spmm/cpu/maxk_rows.inc"
#define REAL double
#define KEY int64_t
#define COLUMN uint8_t
#define TARGET AVX2
#define INSTANCE f64_bytes_wide
#include "spmm/cpu/maxk_rows.inc"
#define REAL double
#define KEY int64_t
#define COLUMN uint16_t
#define TARGET AVX2
#define INSTANCE f64_words_wide
#include "spmm/cpu/maxk_rows.inc"
#endif
#define REAL float
#define KEY int32_t
#define COLUMN uint8_t
#define TARGET
#define INSTANCE f32_bytes
#include "spmm/cpu/maxk_rows.inc"
#define REAL float
#define KEY int32_t
#define COLUMN uint16_t
#define TARGET
#define INSTANCE f32_words
#include "spmm/cpu/maxk_rows.inc"
#define REAL double
#define KEY int64_t
#define COLUMN uint8_t
#define TARGET
#define INSTANCE f64_bytes
#include "spmm/cpu/maxk_rows.inc"
#define REAL double
#define KEY int64_t
#define COLUMN uint16_t
#define TARGET
#define INSTANCE f64_words
#include "spmm/cpu/maxk_rows.inc"

/* For vectors of 32 bytes where the machine has AVX2: selection then takes 3 ns a number instead of 5. */
static const maxk_loops *loops_for(const sp_cbsr *kept)
{
    static const maxk_loops *const plain[2][2] = {{&loops_f32_bytes, &loops_f32_words},
                                                  {&loops_f64_bytes, &loops_f64_words}};
    const bool doubles = kept->type == SP_DENSE_F64, words = kept->cols > 256;
#ifdef AVX2
    static const maxk_loops *const wide[2][2] = {{&loops_f32_bytes_wide, &loops_f32_words_wide},
                                                 {&loops_f64_bytes_wide, &loops_f64_words_wide}};
    if (have_avx2()) return wide[doubles][words];
#endif
    return plain[doubles][words];
}

/* A chunk of rows is some 100,000 steps, of some nanoseconds each. */
static int64_t chunk_rows(int64_t rows, int64_t steps)
{
    const int64_t chunk = rows / (1 + steps / 100000);
    return chunk > 0 ? chunk : 1;
}

/* All rows in chunks that the threads take as they are free. `steps` is what they cost together. */
static sp_status run(sp_context *context, maxk_rows *work, const maxk_job *job, int64_t rows, int64_t steps)
{
    const int64_t chunk = chunk_rows(rows, steps), chunks = (rows + chunk - 1) / chunk, cols = job->kept->cols;
    const int threads = sp_threads_for(context, steps);
    double *scratch;
    sp_watch watch = {context, false};
    sp_status status = sp_alloc(context, threads * cols, sizeof *scratch, (void **)&scratch);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t c = 0; c < chunks; c++) {
        const int64_t end = (c + 1) * chunk;
        if (!sp_stops(&watch)) work(job, c * chunk, end < rows ? end : rows, scratch + omp_get_thread_num() * cols);
    }
    sp_free(context, scratch);
    return sp_watched(&watch);
}

sp_status sp_cpu_maxk(sp_context *context, const sp_dense *x, sp_cbsr *kept)
{
    const maxk_job job = {.kept = kept, .dense = x};
    return run(context, loops_for(kept)->select, &job, kept->rows, kept->rows * kept->cols * 2);
}

sp_status sp_cpu_maxk_expand(sp_context *context, const sp_cbsr *kept, sp_dense *x)
{
    const maxk_job job = {.kept = kept, .dense = x};
    return run(context, loops_for(kept)->expand, &job, kept->rows, kept->rows * (kept->k + kept->cols / 8));
}

sp_status sp_cpu_maxk_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                           double alpha, const sp_cbsr *kept, double beta, sp_dense *y)
{
    const maxk_job job = {a, kept, y, alpha, beta, options->reduce == SP_REDUCE_MEAN};
    (void)state;
    return run(context, loops_for(kept)->gather, &job, a->rows, a->nnz * kept->k + a->rows * kept->cols / 4);
}

sp_status sp_cpu_maxk_spmm_backward(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                                    const sp_dense *gradient, sp_cbsr *kept)
{
    const maxk_job job = {a, kept, gradient, 1, 0, options->reduce == SP_REDUCE_MEAN};
    (void)state;
    return run(context, loops_for(kept)->collect, &job, a->rows, (a->nnz + a->rows) * kept->k);
}
