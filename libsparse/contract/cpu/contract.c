/* C(p, q) = the combination of all G(i, j) with labels[i] = p, labels[j] = q, on the CPU: S·G·Sᵀ for labels (Li et
 * al., Algorithm 7) in one pass over G, without the two products.
 *
 * A counting sort lists the nodes of each group in ascending order. Row p of C is then made of the rows of G of p's
 * nodes, one after the other: each column is replaced by its label and its value combined at once, in an accumulator
 * chosen by row (cells.h).
 *
 * Finished rows are collected and joined as those of products are (rows.h). Per entry of G that is a column, a value
 * and a label read (the labels come from a cache where they fit one), per entry of C two writes and a read. Sums are
 * f64 in the order of G's rows and columns, whatever the accumulator.
 *
 * Of a symmetric G only the entries of C up to the diagonal are made, in any order; mirror.c makes all of C of them,
 * and orders rows without a sort.
 */
#include <omp.h>
#include <string.h>

#include "contract/cpu/cells.h"
#include "contract/cpu/mirror.h"
#include "contract/cpu/short.h"
#include "core/backend_cpu.h"

/* From this share of all entries on in rows of at most SHORT_ENTRIES, such rows decide how all are made. */
static const double SHORT_SHARE = 0.75;

static const char *const method_names[ROW_METHODS] = {"sort", "dense", "hash", "loop", "mark", "short"};

/* ---- groups -------------------------------------------------------------------------------------------- */

/* Lists the nodes of each group and counts the entries of their rows. `starts` is zero and has groups + 2 entries,
 * the last for this function only. Every thread reads all labels and attends to those of its own groups: reading is
 * cheap, and no two threads write to one place. */
static void group_nodes(const sp_csr *g, const int32_t *labels, int64_t groups, int threads, int64_t *starts,
                        int64_t *entries, int32_t *order)
{
#pragma omp parallel num_threads(threads)
    {
        const int64_t thread = omp_get_thread_num(), of = omp_get_num_threads();
        const int64_t low = groups * thread / of, high = groups * (thread + 1) / of;
        for (int64_t i = 0; i < g->rows; i++) {
            if (labels[i] < low || labels[i] >= high) continue;
            starts[labels[i] + 2]++;
            entries[labels[i]] += g->row_offsets[i + 1] - g->row_offsets[i];
        }
#pragma omp barrier
#pragma omp single
        for (int64_t p = 0; p < groups; p++) starts[p + 2] += starts[p + 1];
        for (int64_t i = 0; i < g->rows; i++)
            if (labels[i] >= low && labels[i] < high) order[starts[labels[i] + 1]++] = (int32_t)i;
    }
}

/* ---- the contraction ------------------------------------------------------------------------------------- */

static void fill_info(const contraction *job, const worker *workers, int threads, int64_t entries, const sp_csr *c,
                      sp_contract_info *info)
{
    int64_t total[ROW_METHODS] = {0};
    info->nnz = c->nnz;
    info->entries = entries;
    info->peak_bytes += job->g->rows * (int64_t)sizeof(int32_t) + (job->groups + 2) * (int64_t)sizeof(int64_t);
    for (int t = 0; t < threads; t++) {
        info->entries -= workers[t].left_out;
        info->peak_bytes += workers[t].bytes;
        for (int m = 0; m < ROW_METHODS; m++) total[m] += workers[t].rows[m];
    }
    for (int m = 0; m < ROW_METHODS; m++) {
        if (total[m] == 0) continue;
        sp_spgemm_group *group = &info->group[info->groups++];
        strcpy(group->name, method_names[m]);
        group->count = total[m];
    }
}

/* Makes C from the nodes of each group p, whose rows have (*entries)[p + 1] entries; takes `*entries`, and fills the
 * rest of `job`. */
static sp_status contract_groups(sp_context *context, contraction *job, int64_t **entries, int threads,
                                 double start, sp_csr *c, sp_contract_info *info)
{
    worker *workers = NULL;
    int64_t total = 0, largest = 0, in_short = 0;
    sp_status status;
    for (int64_t p = 1; p <= job->groups; p++) {
        const int64_t of_row = (*entries)[p];
        total += of_row;
        in_short += of_row <= SHORT_ENTRIES ? of_row : 0;
        if (of_row > largest) largest = of_row;
    }
    const bool is_short = sp_may_be_short(job) && (double)in_short >= SHORT_SHARE * (double)total;
    if (is_short) job->lower = false; /* whole rows: counts are symmetric to the last bit */
    sp_contraction_choose(job, total, threads);
    /* then few entries meet, and half a symmetric row is half of it */
    const bool many = job->groups > job->g->rows / 4;
    TRY(sp_calloc(context, threads, sizeof *workers, (void **)&workers));
    for (int t = 0; t < threads; t++) TRY(sp_open_worker(context, job, largest, &workers[t]));
    info->group_seconds = wall_seconds() - start;
    const row_method method = {.row = sp_make_row,
                               .rows = is_short      ? sp_make_short_rows
                                       : job->marked ? sp_make_marked_rows
                                                     : NULL,
                               .workers = workers, .worker_size = sizeof *workers, .threads = threads,
                               .expected = job->marked && many ? total / 2 + job->groups : 0,
                               .row_entries = job->loops == SP_LOOPS_ONLY ? 1 : 0,
                               .bytes = &info->peak_bytes};
    TRY(sp_row_run(context, job->groups, job->groups, entries, total, &method, job->g->value_type, c));
    fill_info(job, workers, threads, total, c, info);
    info->combine_seconds = wall_seconds() - start - info->group_seconds;
done:
    sp_close_workers(context, workers, threads);
    return status;
}

/* ---- the call -------------------------------------------------------------------------------------------- */

sp_status sp_cpu_contract(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                          const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    const int threads = sp_threads_for(context, 2 * (g->nnz + g->rows));
    contraction job = sp_contraction_begin(g, labels, groups, options);
    int64_t *starts = NULL, *entries = NULL;
    int32_t *order = NULL;
    sp_csr made = {0};
    sp_status status;
    const double start = wall_seconds();
    TRY(sp_calloc(context, groups + 2, sizeof *starts, (void **)&starts));
    TRY(sp_calloc(context, groups + 1, sizeof *entries, (void **)&entries));
    TRY(sp_alloc(context, g->rows, sizeof *order, (void **)&order));
    group_nodes(g, labels, groups, threads, starts, entries + 1, order);
    job.order = order;
    job.starts = starts;
    TRY(contract_groups(context, &job, &entries, threads, start, &made, info));
    if (job.lower) TRY(sp_mirror_lower(context, &made, &info->peak_bytes));
    info->nnz = made.nnz;
    info->mirrored = options->symmetric;
    info->combine_seconds = wall_seconds() - start - info->group_seconds;
    *c = made;
    made = (sp_csr){0};
done:
    sp_csr_free(context, &made);
    FREE_ALL(context, order, entries, starts);
    return status;
}

/* ---- products -------------------------------------------------------------------------------------------- */

/* The row of S that has column j, its only one: the column of G·Sᵀ that G's column j becomes. False if another has it
 * as well. */
static bool name_columns(const sp_csr *s, int32_t *names)
{
    memset(names, 0xff, (size_t)s->cols * sizeof *names);
    for (int64_t p = 0; p < s->rows; p++)
        for (int64_t k = s->row_offsets[p]; k < s->row_offsets[p + 1]; k++) {
            if (names[s->col_indices[k]] >= 0) return false;
            names[s->col_indices[k]] = (int32_t)p;
        }
    return true;
}

/* S lists the nodes of each group as it stands: its rows add up rows of G, whose columns are renamed as they are
 * read. */
sp_status sp_cpu_triple_product(sp_context *context, const sp_csr *s, const sp_csr *g, sp_csr *c,
                                sp_spgemm_info *info, bool *done)
{
    const int threads = sp_threads_for(context, 2 * (g->nnz + g->rows));
    const sp_contract_options sums = {0};
    const double start = wall_seconds();
    sp_contract_info measured = {0};
    int64_t *entries = NULL;
    int32_t *names = NULL;
    sp_status status;
    *done = false;
    TRY(sp_alloc(context, s->cols, sizeof *names, (void **)&names));
    if (!name_columns(s, names)) goto done;
    TRY(sp_calloc(context, s->rows + 1, sizeof *entries, (void **)&entries));
    contraction job = sp_contraction_begin(g, names, s->rows, &sums);
    job.starts = s->row_offsets;
    job.order = s->col_indices;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t p = 0; p < s->rows; p++)
        for (int64_t k = s->row_offsets[p]; k < s->row_offsets[p + 1]; k++)
            entries[p + 1] += g->row_offsets[s->col_indices[k] + 1] - g->row_offsets[s->col_indices[k]];
    TRY(contract_groups(context, &job, &entries, threads, start, c, &measured));
    info->products = measured.entries;
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    info->peak_bytes = measured.peak_bytes;
    info->analysis_seconds = measured.group_seconds;
    info->numeric_seconds = measured.combine_seconds;
    info->groups = measured.groups;
    memcpy(info->group, measured.group, sizeof info->group);
    *done = true;
done:
    FREE_ALL(context, entries, names);
    return status;
}
