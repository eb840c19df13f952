/* Whether a quotient graph is right: against plain sums in f64, a group at a time, written for this purpose. Of huge
 * graphs runs of groups spread over them are compared. */
#include <math.h>
#include <omp.h>

#include "base/value.h"
#include "sparse-bench/contract/contract_bench.h"

/* Entries that are compared, if the graph has twice as many: 92 million take two seconds on 16 cores, for each of six
 * candidates. */
static const int64_t MOST_ENTRIES = 1 << 24;

double contract_tolerance(const contract_bench_options *options)
{
    return options->common.type == SP_F64 ? 1e-12 : 1e-5;
}

/* A row of C: sums and sums of sizes by column, and which columns there are. */
typedef struct accumulator {
    double *sums, *sizes;
    int64_t *seen; /* the row + 1 that saw the column last */
    int64_t count;
} accumulator;

static void sum_row(const contract_case *c, int64_t row, accumulator *sum)
{
    const sp_csr *g = &c->g;
    const int32_t *labels = c->s_transposed.col_indices;
    sum->count = 0;
    for (int64_t member = c->s.row_offsets[row]; member < c->s.row_offsets[row + 1]; member++) {
        const int32_t node = c->s.col_indices[member];
        for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
            const int32_t column = labels[g->col_indices[k]];
            if (sum->seen[column] != row + 1) {
                sum->seen[column] = row + 1;
                sum->sums[column] = sum->sizes[column] = 0;
                sum->count++;
            }
            sum->sums[column] += entry_value(g, k);
            sum->sizes[column] += fabs(entry_value(g, k));
        }
    }
}

/* As many columns, ascending, each of them seen: then the patterns are the same. */
static double row_error(const accumulator *sum, int64_t row, int64_t groups, const int32_t *cols,
                        const double *values, int64_t count)
{
    double largest = count == sum->count ? 0 : INFINITY;
    for (int64_t k = 0; k < count; k++) {
        const int32_t column = cols[k];
        if (column < 0 || column >= groups || sum->seen[column] != row + 1 || (k > 0 && cols[k - 1] >= column))
            return INFINITY;
        const double apart = fabs(values[k] - sum->sums[column]);
        const double relative = apart == 0 ? 0 : apart / sum->sizes[column];
        if (!(relative <= largest)) largest = relative; /* NaN shows */
    }
    return isnan(largest) ? 1e300 : largest;
}

static row_ranges choose_groups(int64_t groups, int64_t entries)
{
    row_ranges ranges = {.count = 1, .end = {groups}, .all = true};
    if (entries <= 2 * MOST_ENTRIES || groups < MAX_RANGES) return ranges;
    ranges.all = false;
    ranges.count = MAX_RANGES;
    for (int i = 0; i < MAX_RANGES; i++) {
        const int64_t begin = groups * i / MAX_RANGES, end = groups * (i + 1) / MAX_RANGES;
        ranges.begin[i] = begin;
        ranges.end[i] = begin + 1 + (int64_t)((double)(end - begin - 1) * (double)MOST_ENTRIES / (double)entries);
    }
    return ranges;
}

sp_status contract_compare(const contract_case *c, const raw_matrix *made, candidate *figures)
{
    const int64_t groups = c->s.rows;
    const row_ranges ranges = choose_groups(groups, c->g.nnz);
    const int threads = sp_context_threads(c->host);
    accumulator *sums = NULL;
    extract e = {0};
    double largest = 0;
    sp_status status;
    if (made->rows != groups)
        return sp_fail(c->host, SP_ERROR_MATRIX, "%lld rows, not %lld", (long long)made->rows, (long long)groups);
    TRY(extract_rows(c->host, made, &ranges, &e));
    TRY(sp_calloc(c->host, threads, sizeof *sums, (void **)&sums));
    for (int t = 0; t < threads; t++) {
        TRY(sp_alloc(c->host, groups, sizeof *sums[t].sums, (void **)&sums[t].sums));
        TRY(sp_alloc(c->host, groups, sizeof *sums[t].sizes, (void **)&sums[t].sizes));
        TRY(sp_calloc(c->host, groups, sizeof *sums[t].seen, (void **)&sums[t].seen));
    }
    for (int r = 0; r < ranges.count; r++) {
        const int64_t before = e.starts[r] - e.offsets[ranges.begin[r]];
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) reduction(max : largest)
        for (int64_t row = ranges.begin[r]; row < ranges.end[r]; row++) {
            accumulator *sum = &sums[omp_get_thread_num()];
            const int64_t first = before + e.offsets[row];
            sum_row(c, row, sum);
            largest = fmax(largest, row_error(sum, row, groups, e.cols + first, e.values + first,
                                              e.offsets[row + 1] - e.offsets[row]));
        }
    }
    figures->error = largest;
    c->result->whole = ranges.all;
    figures->unsorted = !e.sorted;
done:
    for (int t = 0; sums && t < threads; t++) {
        FREE_ALL(c->host, sums[t].sums, sums[t].sizes, sums[t].seen);
    }
    sp_free(c->host, sums);
    extract_free(c->host, &e);
    return status;
}
