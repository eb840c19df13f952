/* C = A·B on the CPU, row-wise (Gustavson 1978), over every semiring, with and without a mask; sorted, entries that
 * cancel to zero are kept.
 *
 * One pass: each thread makes finished rows of its chunks in an accumulator (accumulator.h) and appends them to a
 * buffer (rows.h), so that no symbolic phase is needed. A plan has both phases: the symbolic one is the same pass
 * without values; the numeric one sums each row of the known pattern in place. O(products).
 */
#include <omp.h>
#include <string.h>

#include "base/longest.h"
#include "spgemm/cpu/accumulator.h"
#include "core/backend_cpu.h"

static const char *const method_names[ROW_METHODS] = {"copy", "short", "dense", "block", "shift", "hash"};

static sp_status refuse(sp_context *context, const sp_spgemm_options *options)
{
    if (options->algorithm != SP_SPGEMM_WARP) return SP_OK;
    return sp_fail(context, SP_ERROR_UNSUPPORTED, "the warp algorithm needs a CUDA context");
}

static void fill_info(const accumulator *workers, int threads, sp_spgemm_info *info)
{
    int64_t total[ROW_METHODS] = {0};
    for (int t = 0; t < threads; t++) {
        info->peak_bytes += workers[t].bytes;
        for (int m = 0; m < ROW_METHODS; m++) total[m] += workers[t].rows[m];
    }
    for (int m = 0; m < ROW_METHODS; m++) {
        if (total[m] == 0) continue;
        sp_spgemm_group *group = &info->group[info->groups++];
        strcpy(group->name, method_names[m]);
        group->count = total[m];
    }
    info->batches = 1;
}

/* The product; or with `chunks` only its pattern, and the chunks in which it was made. */
static sp_status multiply(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                          row_chunks *chunks, int64_t *largest, sp_csr *c, sp_spgemm_info *info)
{
    int64_t *products = NULL;
    accumulator *workers = NULL;
    row_product job = {0};
    int threads = 0;
    sp_status status;
    const double start = wall_seconds();
    TRY(refuse(context, options));
    TRY(sp_row_products(context, a, b, &products, &info->products, largest));
    sp_spgemm_options made = *options;
    if (chunks) made.semiring = SP_OR_AND;
    sp_row_product_begin(context, a, b, &made, info->products, *largest, &job);
    TRY(sp_find_shifts(context, job.mask != NULL, info->products, &info->peak_bytes, &job));
    threads = sp_threads_for(context, info->products);
    TRY(sp_accumulators_open(context, &job, job.mask != NULL, threads, &workers));
    info->analysis_seconds = wall_seconds() - start;
    const row_method method = {.rows = sp_accumulate_rows, .workers = workers, .worker_size = sizeof *workers,
                               .threads = threads, .pattern = job.pattern, .entries_only = true,
                               .bytes = &info->peak_bytes,
                               .room = made.mask && !made.complement ? made.mask->row_offsets : NULL,
                               .chunks = chunks};
    TRY(sp_row_run(context, a->rows, b->cols, &products, info->products, &method, a->value_type, c));
    info->product_nnz = info->nnz = c->nnz;
    fill_info(workers, threads, info);
    *(job.pattern ? &info->symbolic_seconds : &info->numeric_seconds) = wall_seconds() - start - info->analysis_seconds;
done:
    sp_accumulators_close(context, workers, threads);
    sp_forget_shifts(context, &job);
    sp_free(context, products);
    return status;
}

sp_status sp_cpu_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                        sp_csr *c, sp_spgemm_info *info)
{
    int64_t largest;
    return multiply(context, a, b, options, NULL, &largest, c, info);
}

/* ---- plans --------------------------------------------------------------------------------------------- */

/* What the numeric phase finds ready: chunks of rows of about equal products, and scratch. */
typedef struct plan_state {
    row_product job;
    int threads;
    accumulator *workers;
    row_chunks chunks;
    bool masked;
} plan_state;

sp_status sp_cpu_spgemm_symbolic(sp_context *context, const sp_csr *a, const sp_csr *b,
                                 const sp_spgemm_options *options, sp_csr *pattern, void **state,
                                 sp_spgemm_info *info)
{
    plan_state *made = NULL;
    int64_t largest;
    sp_csr c = {0};
    sp_status status;
    TRY(sp_calloc(context, 1, sizeof *made, (void **)&made));
    TRY(multiply(context, a, b, options, &made->chunks, &largest, &c, info));
    made->threads = sp_threads_for(context, info->products);
    made->masked = options->mask != NULL;
    sp_row_product_begin(context, a, b, options, info->products, largest, &made->job);
    made->job.mask = NULL; /* the pattern of C takes its place */
    if (options->semiring != SP_OR_AND) {
        if (made->masked) made->job.blocks = false;
        TRY(sp_find_shifts(context, made->masked, info->products, &(int64_t){0}, &made->job));
        TRY(sp_accumulators_open(context, &made->job, made->masked, made->threads, &made->workers));
        TRY(sp_accumulators_reserve(made->workers, made->threads, longest_of(c.row_offsets, c.rows)));
    }
    *pattern = c;
    *state = made;
done:
    if (status != SP_OK) {
        sp_csr_free(context, &c);
        if (made) sp_cpu_spgemm_forget(context, made);
    }
    return status;
}

sp_status sp_cpu_spgemm_numeric(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, void *state, sp_csr *c)
{
    plan_state *plan = state;
    const int64_t *first = plan->chunks.first;
    sp_watch watch = {context, false};
    sp_row_product_values(&plan->job, a, b, options->semiring);
#pragma omp parallel for schedule(dynamic, 1) num_threads(plan->threads)
    for (int64_t i = 0; i < plan->chunks.count; i++) {
        if (sp_stops(&watch)) continue;
        sp_accumulate_values(&plan->workers[omp_get_thread_num()], first[i], first[i + 1], plan->masked, c);
    }
    return sp_watched(&watch);
}

void sp_cpu_spgemm_forget(sp_context *context, void *state)
{
    plan_state *plan = state;
    sp_accumulators_close(context, plan->workers, plan->threads);
    sp_forget_shifts(context, &plan->job);
    FREE_ALL(context, plan->chunks.first, plan);
}
