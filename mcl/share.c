/* A graph that several processes have read, and a start matrix of which each has some rows: who gets which rows.
 *
 * First each process keeps equally many rows. Before the iterations the nodes are numbered by communities, as a single
 * process does it by sp_csr_community_order, so that the rows which a process needs are mostly its own; here by label
 * propagation, in which each process moves its own nodes and all learn the labels after each round. The numbers change
 * no result (order.c). Then the rows move to where the cut by products wants them. A node takes 24 bytes in each
 * process.
 */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/try.h"
#include "ranks.h"

enum { ROUNDS = 6, MOST_MEMBERS = 1 << 14 /* of a community: larger ones are no help to the caches */ };

static int owner_of(const int64_t *cut, int size, int64_t row) { return (int)row_of_entry(cut, size, row); }

static void cut_equally(int64_t rows, int size, int64_t *cut)
{
    for (int r = 0; r <= size; r++) cut[r] = rows / size * r + (r < rows % size ? r : rows % size);
}

void mcl_keep_rows(sp_csr *matrix, int64_t first, int64_t end)
{
    const int64_t begin = matrix->row_offsets[first], count = matrix->row_offsets[end] - begin;
    if (count > 0) {
        memmove(matrix->col_indices, matrix->col_indices + begin, (size_t)count * sizeof *matrix->col_indices);
        memmove(matrix->values, (float *)matrix->values + begin, (size_t)count * sizeof(float));
    }
    for (int64_t i = 0; i <= matrix->rows; i++)
        matrix->row_offsets[i] = i <= first ? 0 : i >= end ? count : matrix->row_offsets[i] - begin;
    matrix->nnz = count;
}

/* ---- the graph ---------------------------------------------------------------------------------------------- */

typedef struct row_cut {
    const int64_t *cut;
    int size;
} row_cut;

static int owner_in(const void *user, int32_t row)
{
    const row_cut *rows = user;
    return owner_of(rows->cut, rows->size, row);
}

sp_status mcl_share_graph(sp_context *context, const sp_ranks *ranks, int64_t nodes, const sp_arcs *arcs, bool mirror,
                          int64_t *given, sp_csr *graph)
{
    const row_cut rows = {given, ranks->size};
    sp_arcs got = {0};
    sp_status status;
    cut_equally(nodes, ranks->size, given);
    TRY(sp_ranks_send_arcs(context, ranks, arcs, mirror, owner_in, &rows, &got));
    TRY(sp_csr_from_coo(context, &(sp_coo){.rows = nodes, .cols = nodes, .count = got.count, .row_indices = got.rows,
                                           .col_indices = got.columns, .values = got.weights, .value_type = got.type},
                        SP_COMBINE_MAX, false, graph));
done:
    sp_arcs_free(context, &got);
    return status;
}

/* ---- communities -------------------------------------------------------------------------------------------- */

/* One process's sums by label. */
typedef struct label_sums {
    float *weight; /* by label; 0 between nodes */
    int32_t *seen;
    int64_t count;
} label_sums;

/* The label to which the row's node has the heaviest edges, among those with room; of equals the least. */
static int32_t best_label(const sp_csr *m, int64_t row, const int32_t *labels, const int32_t *members, label_sums *s)
{
    const float *values = m->values;
    const int32_t own = labels[row];
    int32_t best = own;
    s->count = 0;
    for (int64_t e = m->row_offsets[row]; e < m->row_offsets[row + 1]; e++) {
        const int32_t label = labels[m->col_indices[e]];
        if (m->col_indices[e] == row || !(values[e] > 0)) continue;
        if (s->weight[label] == 0) s->seen[s->count++] = label;
        s->weight[label] += values[e];
    }
    float most = s->weight[own];
    for (int64_t k = 0; k < s->count; k++) {
        const int32_t label = s->seen[k];
        const float weight = s->weight[label];
        s->weight[label] = 0;
        if (label == own || members[label] >= MOST_MEMBERS) continue;
        if (weight > most || (weight == most && best != own && label < best)) {
            most = weight;
            best = label;
        }
    }
    return best;
}

/* Labels of all nodes, the same in all processes: rounds of label propagation. */
static sp_status find_labels(sp_context *context, const sp_ranks *ranks, const sp_csr *start, const int64_t *given,
                             int32_t *labels)
{
    const int64_t n = start->rows;
    label_sums s = {0};
    int32_t *members = NULL;
    sp_status status;
    TRY(sp_calloc(context, n, sizeof *s.weight, (void **)&s.weight));
    TRY(sp_alloc(context, n, sizeof *s.seen, (void **)&s.seen));
    TRY(sp_alloc(context, n, sizeof *members, (void **)&members));
    for (int64_t i = 0; i < n; i++) labels[i] = (int32_t)i;
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < n; i++) members[i] = 0;
        for (int64_t i = 0; i < n; i++) members[labels[i]]++;
        for (int64_t i = given[ranks->rank]; i < given[ranks->rank + 1]; i++) {
            const int32_t to = best_label(start, i, labels, members, &s);
            members[labels[i]]--;
            members[to]++;
            labels[i] = to;
        }
        TRY(sp_ranks_share(context, ranks, given, sizeof *labels, labels));
    }
done:
    FREE_ALL(context, s.weight, s.seen, members);
    return status;
}

/* order[k]: the node that gets number k: label by label, ascending within a label. */
static sp_status order_by_labels(sp_context *context, int64_t nodes, const int32_t *labels, int32_t *order)
{
    int64_t *place = NULL, at = 0;
    const sp_status status = sp_calloc(context, nodes + 1, sizeof *place, (void **)&place);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < nodes; i++) place[labels[i]]++;
    for (int64_t i = 0; i < nodes; i++) {
        const int64_t count = place[i];
        place[i] = at;
        at += count;
    }
    for (int64_t i = 0; i < nodes; i++) order[place[labels[i]]++] = (int32_t)i;
    sp_free(context, place);
    return SP_OK;
}

/* ---- rows to their places ------------------------------------------------------------------------------------ */

/* Cuts the rows, in their new order, so that all processes get about equally many products and rows. */
static sp_status cut_by_products(sp_context *context, const sp_ranks *ranks, const sp_csr *start, const int64_t *given,
                                 const int32_t *order, const int32_t *lengths, int64_t *cut)
{
    const int64_t n = start->rows;
    double *work = NULL, total = 0, sum = 0;
    int64_t row = 0;
    sp_status status;
    TRY(sp_calloc(context, n, sizeof *work, (void **)&work));
    for (int64_t i = given[ranks->rank]; i < given[ranks->rank + 1]; i++) {
        work[i] = 1;
        for (int64_t e = start->row_offsets[i]; e < start->row_offsets[i + 1]; e++)
            work[i] += lengths[start->col_indices[e]];
    }
    TRY(sp_ranks_share(context, ranks, given, sizeof *work, work));
    for (int64_t i = 0; i < n; i++) total += work[i];
    for (int p = 0; p < ranks->size; p++) {
        cut[p] = row;
        while (row < n && sum < total / ranks->size * (p + 1)) sum += work[order ? order[row] : row], row++;
    }
    cut[ranks->size] = n;
done:
    sp_free(context, work);
    return status;
}

/* An entry of a row that moves. */
typedef struct entry {
    int32_t column;
    float value;
} entry;

static int by_column(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return (x->column > y->column) - (x->column < y->column);
}

/* Moves the rows in their new numbers to the processes of the cut. `number[i]`: of node i; `lengths`: of its row. Rows
 * travel whole, in the order of their new numbers, so a process knows from these what comes from where. */
static sp_status move_rows(sp_context *context, const sp_ranks *ranks, const sp_csr *start, const int64_t *given,
                           const int32_t *order, const int32_t *number, const int32_t *lengths, const int64_t *cut,
                           sp_csr *part)
{
    const int64_t first = cut[ranks->rank], rows = cut[ranks->rank + 1] - first, n = start->rows;
    const float *values = start->values;
    sp_traffic t = {0};
    entry *out = NULL, *in = NULL;
    int64_t *from = NULL, nnz = 0;
    sp_csr made = {0};
    sp_status status;
    TRY(sp_traffic_create(context, ranks, &t));
    TRY(sp_alloc(context, ranks->size + 1, sizeof *from, (void **)&from));
    for (int64_t i = given[ranks->rank]; i < given[ranks->rank + 1]; i++)
        t.out[owner_of(cut, ranks->size, number ? number[i] : i)] += lengths[i];
    TRY(sp_traffic_learn(context, ranks, &t));
    TRY(sp_alloc(context, t.sent, sizeof *out, (void **)&out));
    TRY(sp_alloc(context, t.got, sizeof *in, (void **)&in));
    for (int64_t k = 0, at = 0; k < n; k++) { /* by process, as new numbers ascend */
        const int64_t i = order ? order[k] : k;
        if (i < given[ranks->rank] || i >= given[ranks->rank + 1]) continue;
        const int64_t begin = at;
        for (int64_t e = start->row_offsets[i]; e < start->row_offsets[i + 1]; e++)
            out[at++] = (entry){number ? number[start->col_indices[e]] : start->col_indices[e], values[e]};
        if (number) qsort(out + begin, (size_t)(at - begin), sizeof *out, by_column);
    }
    TRY(sp_traffic_exchange(context, ranks, &t, sizeof *in, out, in));
    for (int64_t k = 0; k < rows; k++) nnz += lengths[order ? order[first + k] : first + k];
    TRY(sp_csr_create(context, rows, n, nnz, SP_F32, SP_HOST, &made));
    for (int64_t r = 0, at = 0; r < ranks->size; at += t.in[r++]) from[r] = at;
    made.row_offsets[0] = 0;
    for (int64_t k = 0, at = 0; k < rows; k++) {
        const int64_t i = order ? order[first + k] : first + k;
        const int owner = owner_of(given, ranks->size, i);
        for (int32_t e = 0; e < lengths[i]; e++, at++) {
            made.col_indices[at] = in[from[owner]].column;
            ((float *)made.values)[at] = in[from[owner]++].value;
        }
        made.row_offsets[k + 1] = at;
    }
    *part = made;
    made = (sp_csr){0};
done:
    sp_csr_free(context, &made);
    sp_traffic_free(context, &t);
    FREE_ALL(context, out, in, from);
    return status;
}

sp_status mcl_ranks_share(sp_context *context, const sp_ranks *ranks, const sp_csr *start, const int64_t *given,
                          int64_t **cut, int32_t **order, sp_csr *part, int64_t *nnz)
{
    const int64_t n = start->rows;
    int32_t *lengths = NULL, *labels = NULL; /* labels, then the new numbers */
    sp_status status;
    *order = NULL;
    *nnz = 0;
    TRY(sp_alloc(context, ranks->size + 1, sizeof **cut, (void **)cut));
    TRY(sp_calloc(context, n, sizeof *lengths, (void **)&lengths));
    for (int64_t i = given[ranks->rank]; i < given[ranks->rank + 1]; i++)
        lengths[i] = (int32_t)(start->row_offsets[i + 1] - start->row_offsets[i]);
    TRY(sp_ranks_share(context, ranks, given, sizeof *lengths, lengths));
    for (int64_t i = 0; i < n; i++) *nnz += lengths[i];
    if (*nnz >= RENUMBER_NNZ) {
        TRY(sp_alloc(context, n, sizeof *labels, (void **)&labels));
        TRY(sp_alloc(context, n, sizeof **order, (void **)order));
        TRY(find_labels(context, ranks, start, given, labels));
        TRY(order_by_labels(context, n, labels, *order));
        for (int64_t k = 0; k < n; k++) labels[(*order)[k]] = (int32_t)k;
    }
    TRY(cut_by_products(context, ranks, start, given, *order, lengths, *cut));
    TRY(move_rows(context, ranks, start, given, *order, labels, lengths, *cut, part));
done:
    if (status != SP_OK) {
        FREE_ALL(context, *order, *cut);
        *order = NULL;
        *cut = NULL;
    }
    FREE_ALL(context, lengths, labels);
    return status;
}

/* ---- rows in the original numbers ---------------------------------------------------------------------------- */

sp_status mcl_restore_together(sp_context *context, const sp_ranks *ranks, const sp_csr *part, const int32_t *order,
                               sp_csr *matrix)
{
    int64_t *cut = NULL, *next = NULL, *lengths = NULL, count = 0, nnz = 0;
    int32_t *named = NULL, *place = NULL; /* the rows that come, and where the rows of the result are among them */
    sp_csr got = {0}, made = {0};
    sp_status status;
    TRY(sp_require(context, __func__, "ranks", ranks));
    TRY(sp_require_csr(context, __func__, "part", part));
    TRY(sp_require_output(context, __func__, "matrix", matrix, "part", part));
    if (!order) return sp_csr_copy(context, part, SP_HOST, matrix);
    TRY(sp_alloc(context, ranks->size + 1, sizeof *cut, (void **)&cut));
    TRY(sp_alloc(context, ranks->size + 1, sizeof *next, (void **)&next));
    TRY(sp_ranks_cut(context, ranks, part->rows, cut));
    cut_equally(part->cols, ranks->size, next);
    const int64_t first = next[ranks->rank], rows = next[ranks->rank + 1] - first;
    TRY(sp_alloc(context, rows, sizeof *named, (void **)&named));
    TRY(sp_alloc(context, rows, sizeof *place, (void **)&place));
    TRY(sp_alloc(context, rows, sizeof *lengths, (void **)&lengths));
    for (int64_t k = 0; k < part->cols; k++) {
        if (order[k] < first || order[k] >= first + rows) continue;
        place[order[k] - first] = (int32_t)count;
        named[count++] = (int32_t)k;
    }
    TRY(sp_ranks_check(context, ranks->fetch_lengths(ranks->user, cut, part, rows, named, lengths)));
    for (int64_t k = 0; k < rows; k++) nnz += lengths[k];
    TRY(sp_csr_create(context, rows, part->cols, nnz, SP_F32, SP_HOST, &got));
    got.row_offsets[0] = 0;
    for (int64_t k = 0; k < rows; k++) got.row_offsets[k + 1] = got.row_offsets[k] + lengths[k];
    TRY(sp_ranks_check(context, ranks->fetch_entries(ranks->user, part, got.col_indices, got.values)));
    TRY(mcl_ranks_go_on(context, ranks, sp_csr_permute(context, &got, place, order, &made)));
    *matrix = made;
    made = (sp_csr){0};
done:
    sp_csr_free(context, &got);
    sp_csr_free(context, &made);
    FREE_ALL(context, cut, next, named, place, lengths);
    return status;
}
