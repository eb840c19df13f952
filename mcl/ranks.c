/* Expansion by several processes, each of which keeps a range of the rows of the iterand.
 *
 * A process fetches the rows that its own rows name, into a matrix of the whole shape in which all other rows are
 * empty: 8 bytes a row beside the entries. So columns, the order of sums and the diagonal keep their numbers, and a row
 * gets the bits that it has in a product of the whole. With a limit for the fetched rows it does so in batches of its
 * rows; processes take turns together, because all serve all. Rows move between neighbours before an expansion in which
 * a process would have too much to multiply and to receive. Figures of rows are gathered by process 0 in the order of
 * the rows and evaluated there, as those of a single process are.
 */
#include <string.h>

#include "base/info.h"
#include "base/try.h"
#include "ranks.h"

sp_status mcl_ranks_go_on(sp_context *context, const sp_ranks *ranks, sp_status status)
{
    const int64_t own = status == SP_ERROR_INTERRUPTED || sp_context_interrupted(context);
    int64_t *asked = NULL;
    if (status != SP_OK && status != SP_ERROR_INTERRUPTED) return status;
    TRY(sp_alloc(context, ranks->size, sizeof *asked, (void **)&asked));
    TRY(sp_ranks_numbers(context, ranks, own, asked));
    for (int r = 0; r < ranks->size && status == SP_OK; r++)
        if (asked[r]) status = sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
done:
    sp_free(context, asked);
    return status;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static double row_work(const sp_csr *m, int64_t row)
{
    double work = 1;
    for (int64_t e = m->row_offsets[row]; e < m->row_offsets[row + 1]; e++)
        work += (double)(m->row_offsets[m->col_indices[e] + 1] - m->row_offsets[m->col_indices[e]]);
    return work;
}

static void cut_rows(const sp_csr *m, int parts, int64_t *cut)
{
    double total = 0, sum = 0;
    int64_t row = 0;
    for (int64_t i = 0; i < m->rows; i++) total += row_work(m, i);
    for (int p = 0; p < parts; p++) {
        cut[p] = row;
        while (row < m->rows && sum < total / parts * (p + 1)) sum += row_work(m, row++);
    }
    cut[parts] = m->rows;
}

static sp_status copy_rows(sp_context *context, const sp_csr *m, int64_t first, int64_t end, sp_csr *part)
{
    const int64_t base = m->row_offsets[first], nnz = m->row_offsets[end] - base;
    const sp_status status = sp_csr_create(context, end - first, m->cols, nnz, SP_F32, SP_HOST, part);
    if (status != SP_OK) return status;
    for (int64_t i = first; i <= end; i++) part->row_offsets[i - first] = m->row_offsets[i] - base;
    if (nnz == 0) return SP_OK;
    memcpy(part->col_indices, m->col_indices + base, (size_t)nnz * sizeof *part->col_indices);
    memcpy(part->values, (const float *)m->values + base, (size_t)nnz * sizeof(float));
    return SP_OK;
}

sp_status mcl_ranks_cut(sp_context *context, const sp_ranks *ranks, const sp_csr *whole, int64_t **cut, sp_csr *part)
{
    sp_status status = sp_alloc(context, ranks->size + 1, sizeof **cut, (void **)cut);
    if (status != SP_OK) return status;
    if (ranks->rank == 0) cut_rows(whole, ranks->size, *cut);
    TRY(sp_ranks_broadcast(context, ranks, *cut, (ranks->size + 1) * (int64_t)sizeof **cut));
    TRY(copy_rows(context, whole, (*cut)[ranks->rank], (*cut)[ranks->rank + 1], part));
done:
    if (status != SP_OK) {
        sp_free(context, *cut);
        *cut = NULL;
    }
    return status;
}

/* ---- expansion ----------------------------------------------------------------------------------------- */

/* Lists the rows that `part` names, ascending. */
static sp_status list_named(sp_context *context, const sp_csr *part, int32_t **named, int64_t *count)
{
    uint8_t *marks = NULL;
    sp_status status = sp_calloc(context, part->cols, 1, (void **)&marks);
    if (status != SP_OK) return status;
    *count = 0;
    for (int64_t e = 0; e < part->nnz; e++) marks[part->col_indices[e]] = 1;
    for (int64_t j = 0; j < part->cols; j++) *count += marks[j];
    status = sp_alloc(context, *count, sizeof **named, (void **)named);
    for (int64_t j = 0, k = 0; j < part->cols && status == SP_OK; j++)
        if (marks[j]) (*named)[k++] = (int32_t)j;
    sp_free(context, marks);
    return status;
}

/* Some rows of the part that a process keeps, and where they begin in it. */
typedef struct batch {
    int64_t first;
    sp_csr rows; /* the entries are the part's */
} batch;

/* The rows that a batch names, in a square matrix whose other rows are empty. */
static sp_status fetch_rows(sp_context *context, const sp_ranks *ranks, const int64_t *cut, const sp_csr *part,
                            const batch *b, sp_csr *rows)
{
    int32_t *named = NULL;
    int64_t *lengths = NULL, count = 0, nnz = 0;
    sp_csr made = {0};
    sp_status status;
    TRY(list_named(context, &b->rows, &named, &count));
    TRY(sp_alloc(context, count, sizeof *lengths, (void **)&lengths));
    TRY(sp_ranks_check(context, ranks->fetch_lengths(ranks->user, cut, part, count, named, lengths)));
    for (int64_t k = 0; k < count; k++) nnz += lengths[k];
    TRY(sp_csr_create(context, part->cols, part->cols, nnz, SP_F32, SP_HOST, &made));
    made.row_offsets[0] = 0;
    for (int64_t j = 0, k = 0; j < part->cols; j++) {
        const bool is_named = k < count && named[k] == j;
        made.row_offsets[j + 1] = made.row_offsets[j] + (is_named ? lengths[k] : 0);
        k += is_named;
    }
    TRY(sp_ranks_check(context, ranks->fetch_entries(ranks->user, part, made.col_indices, made.values)));
    *rows = made;
done:
    if (status != SP_OK) sp_csr_free(context, &made);
    FREE_ALL(context, named, lengths);
    return status;
}

/* The rows of a batch of the next iterand, in host memory. */
static sp_status expand_batch(sp_context *context, const sp_ranks *ranks, const int64_t *cut, const sp_csr *part,
                              const batch *b, const sp_markov_epilogue *epilogue, sp_csr *next, sp_markov_row *rows,
                              sp_spgemm_info *info)
{
    sp_markov_epilogue own = *epilogue;
    sp_csr fetched = {0}, made = {0};
    sp_status status;
    own.diagonal = cut[ranks->rank] + b->first;
    own.fast = false; /* which sums would be f32 depends on the rows that are together */
    TRY(fetch_rows(context, ranks, cut, part, b, &fetched));
    TRY(sp_spgemm_markov(context, &b->rows, &fetched, &own, &made, rows + b->first, info));
    if (made.space == SP_HOST) {
        *next = made;
        made = (sp_csr){0};
    } else {
        TRY(sp_csr_copy(context, &made, SP_HOST, next));
    }
done:
    sp_csr_free(context, &fetched);
    sp_csr_free(context, &made);
    return status;
}

/* ---- batches ------------------------------------------------------------------------------------------- */

enum { ENTRY_BYTES = sizeof(int32_t) + sizeof(float) };

/* lengths[j] of all rows that `part` names. */
static sp_status named_lengths(sp_context *context, const sp_ranks *ranks, const int64_t *cut, const sp_csr *part,
                               int64_t *lengths)
{
    int32_t *named = NULL;
    int64_t *found = NULL, count = 0;
    sp_status status;
    TRY(list_named(context, part, &named, &count));
    TRY(sp_alloc(context, count, sizeof *found, (void **)&found));
    TRY(sp_ranks_check(context, ranks->fetch_lengths(ranks->user, cut, part, count, named, found)));
    for (int64_t k = 0; k < count; k++) lengths[named[k]] = found[k];
done:
    FREE_ALL(context, named, found);
    return status;
}

/* The bytes of the rows that one row of the part names, at most. */
static int64_t largest_need(const sp_csr *part, const int64_t *lengths)
{
    int64_t most = 0;
    for (int64_t i = 0; i < part->rows; i++) {
        int64_t bytes = 0;
        for (int64_t e = part->row_offsets[i]; e < part->row_offsets[i + 1]; e++)
            bytes += lengths[part->col_indices[e]] * ENTRY_BYTES;
        if (bytes > most) most = bytes;
    }
    return most;
}

/* Process 0 reports it if a row of any process needs more bytes than there may be. The others wait for their end. */
static sp_status check_needs(sp_context *context, const sp_ranks *ranks, int64_t own, int64_t *all)
{
    int64_t needed = 0;
    sp_status status;
    TRY(sp_ranks_numbers(context, ranks, own, all));
    for (int r = 0; r < ranks->size; r++)
        if (all[r] > needed) needed = all[r];
    if (needed <= ranks->memory || ranks->rank > 0) return SP_OK;
    if (ranks->needed) *ranks->needed = needed;
    status = sp_fail(context, SP_ERROR_HOST_MEMORY, "one column needs %lld bytes of other columns, and the memory for "
                     "them is limited to %lld in a process", (long long)needed, (long long)ranks->memory);
done:
    return status;
}

/* Cuts the part into batches whose named rows take at most ranks->memory bytes, or are those of one row: batch b is
 * rows ends[b - 1] to ends[b] - 1. Returns their number. last[j] is scratch. */
static int64_t cut_batches(const sp_csr *part, int64_t memory, const int64_t *lengths, int64_t *last, int64_t *ends)
{
    int64_t count = 0, first = 0, bytes = 0;
    for (int64_t j = 0; j < part->cols; j++) last[j] = -1;
    for (int64_t i = 0; i < part->rows;) {
        int64_t more = 0;
        for (int64_t e = part->row_offsets[i]; e < part->row_offsets[i + 1]; e++)
            if (last[part->col_indices[e]] < first) more += lengths[part->col_indices[e]] * ENTRY_BYTES;
        if (bytes + more > memory && i > first) {
            ends[count++] = first = i;
            bytes = 0;
            continue;
        }
        for (int64_t e = part->row_offsets[i]; e < part->row_offsets[i + 1]; e++) last[part->col_indices[e]] = i;
        bytes += more;
        i++;
    }
    ends[count++] = part->rows;
    return count;
}

/* ---- a new cut ----------------------------------------------------------------------------------------- */

/* sums[i]: the work of the part's rows before row i: one a row, its products, and a share of the time in which the
 * process receives the rows that it names. Rows that name the same one divide it. */
static sp_status add_up_work(sp_context *context, const sp_ranks *ranks, const int64_t *cut, const sp_csr *part,
                             int64_t *sums)
{
    const int64_t first = cut[ranks->rank], end = cut[ranks->rank + 1], received = mcl_ranks_received(ranks->size);
    int64_t *lengths = NULL;
    int32_t *named = NULL; /* how often */
    sp_status status;
    TRY(sp_alloc(context, part->cols, sizeof *lengths, (void **)&lengths));
    TRY(sp_calloc(context, part->cols, sizeof *named, (void **)&named));
    TRY(named_lengths(context, ranks, cut, part, lengths));
    for (int64_t e = 0; e < part->nnz; e++) named[part->col_indices[e]]++;
    sums[0] = 0;
    for (int64_t i = 0; i < part->rows; i++) {
        sums[i + 1] = sums[i] + 1;
        for (int64_t e = part->row_offsets[i]; e < part->row_offsets[i + 1]; e++) {
            const int32_t j = part->col_indices[e];
            sums[i + 1] += lengths[j] + (j < first || j >= end ? received * lengths[j] / named[j] : 0);
        }
    }
done:
    FREE_ALL(context, lengths, named);
    return status;
}

/* next[k]: where process k begins when all have equal work, all[r] being that of the rows that process r has now. A
 * process finds the places in its own rows. */
static sp_status find_cut(sp_context *context, const sp_ranks *ranks, const int64_t *cut, const int64_t *sums,
                          const int64_t *all, int64_t *next)
{
    const int size = ranks->size;
    int64_t *first = NULL, total = 0, before = 0, row = 0;
    sp_status status;
    TRY(sp_alloc(context, size + 1, sizeof *first, (void **)&first));
    for (int r = 0; r < size; r++) total += all[r];
    for (int r = 0, k = 0; r < size; before += all[r++])
        for (first[r] = k; k < size && total / size * k + total % size * k / size <= before + all[r]; k++) {
            if (r != ranks->rank) continue;
            while (before + sums[row] < total / size * k + total % size * k / size) row++;
            next[k] = cut[r] + row;
        }
    first[size] = size;
    TRY(sp_ranks_share(context, ranks, first, sizeof *next, next));
    next[size] = cut[size];
done:
    sp_free(context, first);
    return status;
}

static int64_t within(int64_t row, int64_t first, int64_t end) { return row < first ? first : row > end ? end : row; }

/* Moves the rows of `part` to the processes of the cut `next`. They lie in the order of these in either. */
static sp_status move_rows(sp_context *context, const sp_ranks *ranks, const int64_t *cut, const int64_t *next,
                           const sp_csr *part, sp_csr *moved)
{
    const int64_t first = cut[ranks->rank], end = cut[ranks->rank + 1];
    const int64_t rows = next[ranks->rank + 1] - next[ranks->rank];
    int64_t *lengths = NULL;
    sp_traffic of_rows = {0}, of_entries = {0};
    sp_csr made = {0};
    sp_status status;
    TRY(sp_traffic_create(context, ranks, &of_rows));
    TRY(sp_traffic_create(context, ranks, &of_entries));
    for (int r = 0; r < ranks->size; r++) {
        const int64_t from = within(next[r], first, end) - first, to = within(next[r + 1], first, end) - first;
        of_rows.out[r] = to - from;
        of_entries.out[r] = part->row_offsets[to] - part->row_offsets[from];
    }
    TRY(sp_traffic_learn(context, ranks, &of_rows));
    TRY(sp_traffic_learn(context, ranks, &of_entries));
    TRY(sp_alloc(context, part->rows, sizeof *lengths, (void **)&lengths));
    for (int64_t i = 0; i < part->rows; i++) lengths[i] = part->row_offsets[i + 1] - part->row_offsets[i];
    TRY(sp_csr_create(context, rows, part->cols, of_entries.got, SP_F32, SP_HOST, &made));
    TRY(sp_traffic_exchange(context, ranks, &of_rows, sizeof *lengths, lengths, made.row_offsets + 1));
    TRY(sp_traffic_exchange(context, ranks, &of_entries, ENTRY_BYTES / 2, part->col_indices, made.col_indices));
    TRY(sp_traffic_exchange(context, ranks, &of_entries, ENTRY_BYTES / 2, part->values, made.values));
    made.row_offsets[0] = 0;
    for (int64_t i = 0; i < rows; i++) made.row_offsets[i + 1] += made.row_offsets[i];
    *moved = made;
    made = (sp_csr){0};
done:
    sp_csr_free(context, &made);
    sp_traffic_free(context, &of_rows);
    sp_traffic_free(context, &of_entries);
    sp_free(context, lengths);
    return status;
}

sp_status mcl_ranks_even(sp_context *context, const sp_ranks *ranks, int64_t *cut, sp_csr *part, bool *moves)
{
    int64_t *sums = NULL, *all = NULL, *next = NULL, total = 0, most = 0;
    sp_csr moved = {0};
    sp_status status;
    *moves = false;
    TRY(sp_alloc(context, part->rows + 1, sizeof *sums, (void **)&sums));
    TRY(sp_alloc(context, ranks->size, sizeof *all, (void **)&all));
    TRY(sp_alloc(context, ranks->size + 1, sizeof *next, (void **)&next));
    TRY(add_up_work(context, ranks, cut, part, sums));
    TRY(sp_ranks_numbers(context, ranks, sums[part->rows], all));
    for (int r = 0; r < ranks->size; r++) {
        total += all[r];
        if (all[r] > most) most = all[r];
    }
    if ((double)most <= MCL_RANKS_UNEVEN * (double)total / ranks->size) goto done;
    TRY(find_cut(context, ranks, cut, sums, all, next));
    TRY(move_rows(context, ranks, cut, next, part, &moved));
    sp_csr_free(context, part);
    *part = moved;
    memcpy(cut, next, (size_t)(ranks->size + 1) * sizeof *cut);
    *moves = true;
done:
    FREE_ALL(context, sums, all, next);
    return status;
}

/* ---- batches by memory --------------------------------------------------------------------------------- */

/* *ends: where the batches of this process end; *count: the largest number that a process has. */
static sp_status plan_batches(sp_context *context, const sp_ranks *ranks, const int64_t *cut, const sp_csr *part,
                              int64_t **ends, int64_t *own, int64_t *most)
{
    int64_t *lengths = NULL, *last = NULL, *counts = NULL;
    sp_status status;
    *own = *most = 1;
    TRY(sp_alloc(context, part->rows + 1, sizeof **ends, (void **)ends));
    (*ends)[0] = part->rows;
    if (ranks->memory == 0) return SP_OK;
    TRY(sp_alloc(context, part->cols, sizeof *lengths, (void **)&lengths));
    TRY(sp_alloc(context, part->cols, sizeof *last, (void **)&last));
    TRY(sp_alloc(context, ranks->size, sizeof *counts, (void **)&counts));
    TRY(named_lengths(context, ranks, cut, part, lengths));
    TRY(check_needs(context, ranks, largest_need(part, lengths), counts));
    *own = cut_batches(part, ranks->memory, lengths, last, *ends);
    TRY(sp_ranks_numbers(context, ranks, *own, counts));
    for (int r = 0; r < ranks->size; r++)
        if (counts[r] > *most) *most = counts[r];
done:
    FREE_ALL(context, lengths, last, counts);
    return status;
}

/* Appends the rows `from` to `to`, which has them all. */
static void append_rows(const sp_csr *from, int64_t first, sp_csr *to)
{
    const int64_t base = to->row_offsets[first];
    for (int64_t i = 1; i <= from->rows; i++) to->row_offsets[first + i] = base + from->row_offsets[i];
    if (from->nnz == 0) return;
    memcpy(to->col_indices + base, from->col_indices, (size_t)from->nnz * sizeof *to->col_indices);
    memcpy((float *)to->values + base, from->values, (size_t)from->nnz * sizeof(float));
}

static sp_status join_batches(sp_context *context, const sp_csr *made, int64_t count, const sp_csr *part, sp_csr *next)
{
    int64_t nnz = 0, first = 0;
    for (int64_t b = 0; b < count; b++) nnz += made[b].nnz;
    const sp_status status = sp_csr_create(context, part->rows, part->cols, nnz, SP_F32, SP_HOST, next);
    if (status != SP_OK) return status;
    next->row_offsets[0] = 0;
    for (int64_t b = 0; b < count; first += made[b++].rows) append_rows(&made[b], first, next);
    return SP_OK;
}

sp_status mcl_ranks_expand(sp_context *context, const sp_ranks *ranks, const int64_t *cut, const sp_csr *part,
                           const sp_markov_epilogue *epilogue, sp_csr *next, sp_markov_row *rows, sp_spgemm_info *info)
{
    int64_t *ends = NULL, *offsets = NULL, own = 0, most = 0;
    sp_csr *made = NULL;
    sp_status status;
    TRY(plan_batches(context, ranks, cut, part, &ends, &own, &most));
    TRY(sp_calloc(context, most, sizeof *made, (void **)&made));
    TRY(sp_alloc(context, part->rows + 1, sizeof *offsets, (void **)&offsets));
    for (int64_t k = 0; k < most; k++) { /* a process that has fewer takes part with no rows */
        const int64_t first = k == 0 ? 0 : k < own ? ends[k - 1] : part->rows, end = k < own ? ends[k] : part->rows;
        const int64_t base = part->row_offsets[first];
        batch b = {.first = first, .rows = *part};
        sp_spgemm_info one = {0};
        for (int64_t i = first; i <= end; i++) offsets[i - first] = part->row_offsets[i] - base;
        b.rows.rows = end - first;
        b.rows.nnz = offsets[end - first];
        b.rows.row_offsets = offsets;
        b.rows.col_indices = part->col_indices + base;
        b.rows.values = (float *)part->values + base;
        TRY(mcl_ranks_go_on(context, ranks,
                            expand_batch(context, ranks, cut, part, &b, epilogue, &made[k], rows, &one)));
        add_info(info, &one);
    }
    if (most == 1) {
        *next = made[0];
        made[0] = (sp_csr){0};
    } else {
        TRY(join_batches(context, made, most, part, next));
    }
done:
    for (int64_t k = 0; made && k < most; k++) sp_csr_free(context, &made[k]);
    FREE_ALL(context, made, offsets, ends);
    return status;
}

/* ---- figures and results ------------------------------------------------------------------------------- */

static void add_counts(mcl_iteration *sum, const mcl_iteration *part)
{
    sum->nnz_before += part->nnz_before;
    sum->nnz_expanded += part->nnz_expanded;
    sum->nnz_after += part->nnz_after;
    sum->products += part->products;
    sum->dense_columns += part->dense_columns;
    add_info(&sum->product, &part->product);
    sum->cpu_seconds += part->cpu_seconds;
    if (part->seconds > sum->seconds) sum->seconds = part->seconds;
}

sp_status mcl_ranks_gather(sp_context *context, const sp_ranks *ranks, const int64_t *cut, sp_markov_row *rows,
                           mcl_iteration *iteration)
{
    int64_t *counts = NULL;
    mcl_iteration *all = NULL;
    sp_status status;
    TRY(sp_alloc(context, ranks->size, sizeof *all, (void **)&all));
    TRY(sp_alloc(context, ranks->size, sizeof *counts, (void **)&counts));
    for (int r = 0; r < ranks->size; r++) counts[r] = 1;
    TRY(sp_ranks_gather(context, ranks, iteration, counts, sizeof *iteration, all));
    for (int r = 1; r < ranks->size && ranks->rank == 0; r++) add_counts(iteration, &all[r]);
    for (int r = 0; r < ranks->size; r++) counts[r] = cut[r + 1] - cut[r];
    TRY(sp_ranks_gather(context, ranks, rows, counts, sizeof *rows, rows));
done:
    FREE_ALL(context, all, counts);
    return status;
}
