/* What several processes exchange: arrays of elements, and the rows of a matrix. */
#include <string.h>

#include "base/try.h"
#include "core/internal.h"
#include "sp_ranks.h"

sp_status sp_ranks_check(sp_context *context, const char *failure)
{
    return failure ? sp_fail(context, SP_ERROR_DEVICE, "processes cannot reach each other: %s", failure) : SP_OK;
}

sp_status sp_ranks_broadcast(sp_context *context, const sp_ranks *ranks, void *bytes, int64_t count)
{
    return sp_ranks_check(context, ranks->broadcast(ranks->user, bytes, count));
}

sp_status sp_ranks_gather(sp_context *context, const sp_ranks *ranks, const void *own, const int64_t *counts,
                          int64_t size, void *all)
{
    int64_t *bytes = NULL;
    sp_status status = sp_alloc(context, ranks->size, sizeof *bytes, (void **)&bytes);
    for (int r = 0; r < ranks->size && status == SP_OK; r++) bytes[r] = counts[r] * size;
    if (status == SP_OK)
        status = sp_ranks_check(context, ranks->gather(ranks->user, own, bytes[ranks->rank], bytes, all));
    sp_free(context, bytes);
    return status;
}

sp_status sp_ranks_share(sp_context *context, const sp_ranks *ranks, const int64_t *first, int64_t size, void *all)
{
    int64_t *counts = NULL;
    sp_status status;
    TRY(sp_alloc(context, ranks->size, sizeof *counts, (void **)&counts));
    for (int r = 0; r < ranks->size; r++) counts[r] = first[r + 1] - first[r];
    TRY(sp_ranks_gather(context, ranks, (char *)all + first[ranks->rank] * size, counts, size, all));
    TRY(sp_ranks_broadcast(context, ranks, all, first[ranks->size] * size));
done:
    sp_free(context, counts);
    return status;
}

sp_status sp_ranks_numbers(sp_context *context, const sp_ranks *ranks, int64_t own, int64_t *all)
{
    for (int r = 0; r < ranks->size; r++) all[r] = 1;
    const sp_status status = sp_ranks_gather(context, ranks, &own, all, sizeof own, all);
    return status == SP_OK ? sp_ranks_broadcast(context, ranks, all, ranks->size * (int64_t)sizeof *all) : status;
}

sp_status sp_ranks_cut(sp_context *context, const sp_ranks *ranks, int64_t own, int64_t *cut)
{
    const sp_status status = sp_ranks_numbers(context, ranks, own, cut);
    int64_t before = 0;
    for (int r = 0; r <= ranks->size && status == SP_OK; r++) {
        const int64_t count = r < ranks->size ? cut[r] : 0;
        cut[r] = before;
        before += count;
    }
    return status;
}

/* ---- traffic ---------------------------------------------------------------------------------------------- */

sp_status sp_traffic_create(sp_context *context, const sp_ranks *ranks, sp_traffic *traffic)
{
    *traffic = (sp_traffic){0};
    const sp_status status = sp_calloc(context, 2 * (int64_t)ranks->size, sizeof *traffic->out, (void **)&traffic->out);
    if (status == SP_OK) traffic->in = traffic->out + ranks->size;
    return status;
}

void sp_traffic_free(sp_context *context, sp_traffic *traffic)
{
    sp_free(context, traffic->out);
    *traffic = (sp_traffic){0};
}

static sp_status exchange(sp_context *context, const sp_ranks *ranks, const int64_t *out, const int64_t *in,
                          int64_t size, const void *elements, void *got)
{
    int64_t *bytes = NULL; /* that go, then those that come */
    sp_status status = sp_alloc(context, 2 * (int64_t)ranks->size, sizeof *bytes, (void **)&bytes);
    if (status != SP_OK) return status;
    for (int r = 0; r < ranks->size; r++) {
        bytes[r] = out[r] * size;
        bytes[ranks->size + r] = in[r] * size;
    }
    status = sp_ranks_check(context, ranks->exchange(ranks->user, elements, bytes, got, bytes + ranks->size));
    sp_free(context, bytes);
    return status;
}

sp_status sp_traffic_learn(sp_context *context, const sp_ranks *ranks, sp_traffic *traffic)
{
    int64_t *ones = NULL;
    sp_status status;
    TRY(sp_alloc(context, ranks->size, sizeof *ones, (void **)&ones));
    for (int r = 0; r < ranks->size; r++) ones[r] = 1;
    TRY(exchange(context, ranks, ones, ones, sizeof *ones, traffic->out, traffic->in));
    traffic->sent = traffic->got = 0;
    for (int r = 0; r < ranks->size; r++) {
        traffic->sent += traffic->out[r];
        traffic->got += traffic->in[r];
    }
done:
    sp_free(context, ones);
    return status;
}

sp_status sp_traffic_exchange(sp_context *context, const sp_ranks *ranks, const sp_traffic *traffic, int64_t size,
                              const void *sent, void *got)
{
    return exchange(context, ranks, traffic->out, traffic->in, size, sent, got);
}

sp_status sp_traffic_answer(sp_context *context, const sp_ranks *ranks, const sp_traffic *traffic, int64_t size,
                            const void *got, void *sent)
{
    return exchange(context, ranks, traffic->in, traffic->out, size, got, sent);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

sp_status sp_ranks_gather_rows(sp_context *context, const sp_ranks *ranks, const sp_csr *part, sp_csr *whole)
{
    int64_t *rows = NULL, *entries = NULL, row_sum = 0, nnz = 0;
    sp_csr made = {0};
    sp_status status;
    TRY(sp_require(context, __func__, "ranks", ranks));
    TRY(sp_require_csr(context, __func__, "part", part));
    TRY(sp_require_output(context, __func__, "whole", whole, "part", part));
    TRY(sp_alloc(context, ranks->size, sizeof *rows, (void **)&rows));
    TRY(sp_alloc(context, ranks->size, sizeof *entries, (void **)&entries));
    TRY(sp_ranks_numbers(context, ranks, part->rows, rows));
    TRY(sp_ranks_numbers(context, ranks, part->nnz, entries));
    for (int r = 0; r < ranks->size && ranks->rank == 0; r++) {
        row_sum += rows[r];
        nnz += entries[r];
    }
    TRY(sp_csr_create(context, row_sum, ranks->rank == 0 ? part->cols : 0, nnz, part->value_type, SP_HOST, &made));
    made.row_offsets[0] = 0;
    TRY(sp_ranks_gather(context, ranks, part->col_indices, entries, sizeof *part->col_indices, made.col_indices));
    TRY(sp_ranks_gather(context, ranks, part->values, entries, (int64_t)sp_value_size(part->value_type), made.values));
    TRY(sp_ranks_gather(context, ranks, part->row_offsets + 1, rows, sizeof *part->row_offsets, made.row_offsets + 1));
    /* the ends of rows count from the first entry of their part */
    for (int64_t r = 0, row = 0, base = 0; r < ranks->size && ranks->rank == 0; base += entries[r++])
        for (const int64_t end = row + rows[r]; row < end; row++) made.row_offsets[row + 1] += base;
    *whole = made;
done:
    if (status != SP_OK) sp_csr_free(context, &made);
    FREE_ALL(context, rows, entries);
    return status;
}

/* The rows of a part from `first` on that make a block: where they end. */
static int64_t block_end(const sp_csr *part, int64_t first, int64_t most)
{
    int64_t end = first;
    while (end < part->rows && (end == first || part->row_offsets[end + 1] - part->row_offsets[first] <= most)) end++;
    return end;
}

/* The rows first to end - 1 of a part. `offsets` becomes theirs. */
static sp_csr view_rows(const sp_csr *part, int64_t first, int64_t end, int64_t *offsets)
{
    const int64_t base = part->row_offsets[first];
    sp_csr rows = *part;
    for (int64_t i = first; i <= end; i++) offsets[i - first] = part->row_offsets[i] - base;
    rows.rows = end - first;
    rows.nnz = offsets[rows.rows];
    rows.row_offsets = offsets;
    rows.col_indices = part->col_indices ? part->col_indices + base : NULL;
    rows.values = part->values ? (char *)part->values + base * (int64_t)sp_value_size(part->value_type) : NULL;
    return rows;
}

/* What a process says of its next block. */
typedef struct block_size {
    int64_t rows, nnz, type;
} block_size;

/* Process 0 gets a block of process `from`, which gives `own`; the others give nothing. */
static sp_status bring_block(sp_context *context, const sp_ranks *ranks, int from, const sp_csr *own, int64_t *counts,
                             sp_csr *block)
{
    block_size size = {own->rows, own->nnz, own->value_type};
    const bool gives = ranks->rank == from, gets = ranks->rank == 0;
    sp_csr made = {0};
    sp_status status;
    memset(counts, 0, (size_t)ranks->size * sizeof *counts);
    counts[from] = 1;
    TRY(sp_ranks_gather(context, ranks, &size, counts, sizeof size, &size));
    if (!gives && !gets) size = (block_size){0};
    if (gets)
        TRY(sp_csr_create(context, size.rows, own->cols, size.nnz, (sp_value_type)size.type, SP_HOST, &made));
    counts[from] = size.nnz;
    TRY(sp_ranks_gather(context, ranks, own->col_indices, counts, sizeof *own->col_indices, made.col_indices));
    TRY(sp_ranks_gather(context, ranks, own->values, counts, (int64_t)sp_value_size((sp_value_type)size.type),
                        made.values));
    counts[from] = size.rows + (gives || gets);
    TRY(sp_ranks_gather(context, ranks, own->row_offsets, counts, sizeof *own->row_offsets, made.row_offsets));
    *block = made;
    made = (sp_csr){0};
done:
    sp_csr_free(context, &made);
    return status;
}

sp_status sp_ranks_stream_rows(sp_context *context, const sp_ranks *ranks, const sp_csr *part, int64_t most,
                               sp_take_rows take, void *user)
{
    int64_t *counts = NULL, *blocks = NULL, *offsets = NULL, own = 0, all = 0, row = 0;
    sp_status status;
    TRY(sp_require(context, __func__, "ranks", ranks));
    TRY(sp_require_csr(context, __func__, "part", part));
    TRY(sp_alloc(context, ranks->size, sizeof *counts, (void **)&counts));
    TRY(sp_alloc(context, ranks->size, sizeof *blocks, (void **)&blocks));
    TRY(sp_alloc(context, part->rows + 1, sizeof *offsets, (void **)&offsets));
    for (int64_t first = 0; first < part->rows; first = block_end(part, first, most)) own++;
    TRY(sp_ranks_numbers(context, ranks, own, blocks));
    for (int r = 0; r < ranks->size; r++) all += blocks[r];
    if (all == 0) blocks[0] = 1;
    for (int r = 0; r < ranks->size; r++) {
        for (int64_t b = 0, first = 0; b < blocks[r]; b++) {
            const bool gives = r == ranks->rank;
            const int64_t end = gives ? block_end(part, first, most) : first;
            const sp_csr view = view_rows(part, first, end, offsets);
            sp_csr block = {0};
            if (r > 0) TRY(bring_block(context, ranks, r, &view, counts, &block));
            if (ranks->rank == 0) {
                take(user, row, r > 0 ? &block : &view);
                row += r > 0 ? block.rows : view.rows;
            }
            sp_csr_free(context, &block);
            first = end;
        }
    }
done:
    FREE_ALL(context, counts, blocks, offsets);
    return status;
}

/* ---- arcs -------------------------------------------------------------------------------------------------- */

static sp_status open_arcs(sp_context *context, int64_t count, sp_value_type type, sp_arcs *arcs)
{
    sp_status status;
    *arcs = (sp_arcs){.count = count, .type = type};
    TRY(sp_alloc(context, count, sizeof *arcs->rows, (void **)&arcs->rows));
    TRY(sp_alloc(context, count, sizeof *arcs->columns, (void **)&arcs->columns));
    TRY(sp_alloc(context, count, sp_value_size(type), &arcs->weights));
done:
    return status;
}

void sp_arcs_free(sp_context *context, sp_arcs *arcs)
{
    FREE_ALL(context, arcs->rows, arcs->columns, arcs->weights);
    *arcs = (sp_arcs){0};
}

/* The arc k of a list, or its mirror image, becomes the arc `at` of those that are sent. */
static void pack(const sp_arcs *from, int64_t k, bool mirrored, sp_arcs *to, int64_t at)
{
    to->rows[at] = mirrored ? from->columns[k] : from->rows[k];
    to->columns[at] = mirrored ? from->rows[k] : from->columns[k];
    if (to->type == SP_F32) ((float *)to->weights)[at] = from->weights ? ((const float *)from->weights)[k] : 1;
    else ((double *)to->weights)[at] = from->weights ? ((const double *)from->weights)[k] : 1;
}

/* Counts the arcs for each process in place[], or with `out` packs them from there on. */
static void address(const sp_arcs *arcs, bool mirror, sp_owner owner, const void *user, int64_t *place, sp_arcs *out)
{
    for (int64_t k = 0; k < arcs->count; k++) {
        for (int mirrored = 0; mirrored <= (mirror && arcs->rows[k] != arcs->columns[k]); mirrored++) {
            const int to = owner(user, mirrored ? arcs->columns[k] : arcs->rows[k]);
            if (to < 0) continue;
            if (out) pack(arcs, k, mirrored, out, place[to]);
            place[to]++;
        }
    }
}

sp_status sp_ranks_send_arcs(sp_context *context, const sp_ranks *ranks, const sp_arcs *arcs, bool mirror,
                             sp_owner owner, const void *user, sp_arcs *got)
{
    const int64_t size = (int64_t)sp_value_size(arcs->type);
    sp_arcs out = {0}, in = {0};
    sp_traffic t = {0};
    int64_t *place = NULL, at = 0;
    sp_status status;
    TRY(sp_traffic_create(context, ranks, &t));
    TRY(sp_alloc(context, ranks->size, sizeof *place, (void **)&place));
    address(arcs, mirror, owner, user, t.out, NULL);
    TRY(sp_traffic_learn(context, ranks, &t));
    TRY(open_arcs(context, t.sent, arcs->type, &out));
    TRY(open_arcs(context, t.got, arcs->type, &in));
    for (int r = 0; r < ranks->size; at += t.out[r++]) place[r] = at;
    address(arcs, mirror, owner, user, place, &out);
    TRY(sp_traffic_exchange(context, ranks, &t, sizeof *in.rows, out.rows, in.rows));
    TRY(sp_traffic_exchange(context, ranks, &t, sizeof *in.columns, out.columns, in.columns));
    TRY(sp_traffic_exchange(context, ranks, &t, size, out.weights, in.weights));
    *got = in;
    in = (sp_arcs){0};
done:
    sp_arcs_free(context, &out);
    sp_arcs_free(context, &in);
    sp_traffic_free(context, &t);
    sp_free(context, place);
    return status;
}
