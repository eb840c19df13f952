/* C = epilogue(A·B) on several devices, and on a GPU whose memory is too small: each makes a range of the rows of C.
 *
 * Ranges are cut so that they have about equal numbers of products. Which rows are together changes no bit of a row.
 *
 * GPUs work on matrices in the memory of the first, as one GPU does: the others copy A and B over their links and send
 * it their rows of C. If some memory is too small for that, the product is made again from host memory.
 *
 * From host memory a device makes its range piece by piece; the rows go to C in host memory. B stays on the device if
 * there is room. Otherwise each piece brings the rows of B that its rows of A name: a matrix of B's shape in which the
 * other rows are empty, so that columns keep their numbers. A piece has as many rows as a share of the device's memory
 * holds what they need. A GPU by itself works so, too, if its memory does not hold A, B, C and what it works with.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/info.h"
#include "core/devices.h"
#include "core/rows.h"
#include "markov/kept.h"

/* Shares of the memory that is free. B stays on the device if it takes at most WHOLE; otherwise the rows of B for a
 * piece take NAMED. Rows of C, and in the buffer of the product, take PIECE of the rest. All else is for the index of
 * B, 5 bytes for 8, and for sums: without them a row takes ten times as long (markov/cuda/markov.cu). */
static const double WHOLE = 0.6, NAMED = 0.4, PIECE = 0.125;
/* Bytes: an entry, what the product keeps for each row of A beside it, and for each row of B. */
enum { ENTRY_BYTES = sizeof(int32_t) + sizeof(float), A_ROW_BYTES = 96, B_ROW_BYTES = 24 };
/* Short runs of B's rows pass through a block of this size: a copy to a GPU costs some 10 microseconds beside its
 * bytes. Longer ones than a quarter of it are copied from where they lie. */
enum { BLOCK_BYTES = 4 << 20 };

/* Rows of C that were made at once. */
typedef struct piece {
    int64_t first;
    sp_csr rows;
} piece;

/* What a device makes: rows `first` to `end` - 1 of C, in pieces. */
typedef struct device_rows {
    int64_t first, end;
    piece *pieces;
    int64_t count, capacity;
    sp_spgemm_info info;
} device_rows;

typedef struct shared_product {
    sp_context *context;
    const sp_csr *a, *b; /* in host memory or in that of the first device */
    const sp_markov_epilogue *epilogue;
    sp_markov_row *rows; /* may be NULL */
    int64_t *offsets;    /* A's row offsets, in host memory, */
    double *products;    /* and the products of its rows */
    device_rows *devices;
} shared_product;

/* ---- pieces from host memory ------------------------------------------------------------------------------ */

/* The rows of B that the rows of a piece name: those j with seen[j] == piece. All of them if B stays on the device. */
typedef struct named_rows {
    int32_t *seen; /* 0 before the first piece */
    int32_t piece;
    char *block; /* of BLOCK_BYTES */
    bool all;
    sp_csr b; /* of the piece, or B, on the device */
} named_rows;

static void free_named(sp_context *device, named_rows *named)
{
    sp_csr_free(device, &named->b);
    FREE_ALL(device, named->seen, named->block);
}

static sp_status start_named(sp_context *device, const sp_csr *b, named_rows *named)
{
    sp_status status;
    TRY(sp_calloc(device, b->rows, sizeof *named->seen, (void **)&named->seen));
    TRY(sp_alloc(device, BLOCK_BYTES, 1, (void **)&named->block));
done:
    return status;
}

/* Entries that row i of C has at most. */
static double most_entries(const shared_product *p, int64_t i)
{
    const double kept = (double)most_kept(p->epilogue), products = p->products[i];
    double entries = (double)p->b->cols;
    if (products < entries) entries = products;
    return kept < entries ? kept : entries;
}

/* Bytes for a piece's rows of B, and for those of A and C, these twice: in the buffer of the product and in C. */
typedef struct piece_room {
    double b, c;
} piece_room;

/* The end of a piece that begins with row `first`: at most `end`, and as far as there is room. One row at least. */
static int64_t name_rows(const shared_product *p, int64_t first, int64_t end, piece_room room, named_rows *named)
{
    const int64_t *offsets = p->b->row_offsets;
    double b_bytes = 0, c_bytes = 0;
    named->piece++;
    for (int64_t i = first; i < end; i++) {
        const int64_t entries = p->offsets[i + 1] - p->offsets[i];
        const int32_t *cols = p->a->col_indices + p->offsets[i];
        c_bytes += A_ROW_BYTES + (double)entries * ENTRY_BYTES + 2 * most_entries(p, i) * ENTRY_BYTES;
        for (int64_t k = 0; k < entries && !named->all; k++)
            if (named->seen[cols[k]] != named->piece)
                b_bytes += (double)(offsets[cols[k] + 1] - offsets[cols[k]]) * ENTRY_BYTES;
        if (i > first && (b_bytes > room.b || c_bytes > room.c)) return i;
        for (int64_t k = 0; k < entries && !named->all; k++) named->seen[cols[k]] = named->piece;
    }
    return end;
}

/* Copies the elements of the named rows, of 4 bytes each, from B's array to one that has these only. */
static sp_status copy_rows(sp_context *device, const sp_csr *b, const named_rows *named, const void *from, void *to,
                           sp_space space)
{
    enum { SIZE = 4 };
    int64_t place = 0, filled = 0; /* bytes in `to`, and behind them in the block */
    sp_status status = SP_OK;
    for (int64_t j = 0; j < b->rows && status == SP_OK; j++) {
        const int64_t first = b->row_offsets[j];
        if (named->seen[j] != named->piece) continue;
        while (j + 1 < b->rows && named->seen[j + 1] == named->piece) j++;
        const int64_t bytes = (b->row_offsets[j + 1] - first) * SIZE;
        const bool is_long = bytes > BLOCK_BYTES / 4;
        if (is_long || filled + bytes > BLOCK_BYTES) {
            TRY(sp_array_copy(device, filled, 1, (char *)to + place, space, named->block, SP_HOST));
            place += filled;
            filled = 0;
        }
        if (is_long) {
            TRY(sp_array_copy(device, bytes, 1, (char *)to + place, space, (const char *)from + first * SIZE, SP_HOST));
            place += bytes;
        } else {
            memcpy(named->block + filled, (const char *)from + first * SIZE, (size_t)bytes);
            filled += bytes;
        }
    }
    TRY(sp_array_copy(device, filled, 1, (char *)to + place, space, named->block, SP_HOST));
done:
    return status;
}

/* named->b: the named rows of B, on the device; the others are empty. */
static sp_status fetch_rows(sp_context *device, const sp_csr *b, named_rows *named)
{
    int64_t *offsets = NULL;
    sp_csr *part = &named->b;
    sp_status status;
    if (named->all) return SP_OK;
    TRY(sp_alloc(device, b->rows + 1, sizeof *offsets, (void **)&offsets));
    offsets[0] = 0;
    for (int64_t j = 0; j < b->rows; j++)
        offsets[j + 1] = offsets[j]
                         + (named->seen[j] == named->piece ? b->row_offsets[j + 1] - b->row_offsets[j] : 0);
    TRY(sp_csr_create(device, b->rows, b->cols, offsets[b->rows], SP_F32, device->backend->space, part));
    TRY(sp_array_copy(device, b->rows + 1, sizeof *offsets, part->row_offsets, part->space, offsets, SP_HOST));
    TRY(copy_rows(device, b, named, b->col_indices, part->col_indices, part->space));
    TRY(copy_rows(device, b, named, b->values, part->values, part->space));
done:
    sp_free(device, offsets);
    return status;
}

/* ---- a device's rows ---------------------------------------------------------------------------------- */

/* What a device reads: the shared matrices, or its copies of them. */
typedef struct operands {
    sp_csr a; /* the range of rows: a view with its own offsets */
    const sp_csr *b;
    sp_csr a_copy, b_copy;
} operands;

/* Rows first to end - 1 of `a`, whose entries stay where they are. `offsets` are its row offsets, in host memory. The
 * caller frees the view's. */
static sp_status view_rows(sp_context *device, const sp_csr *a, const int64_t *offsets, int64_t first, int64_t end,
                           sp_csr *view)
{
    const int64_t base = offsets[first];
    int64_t *own = NULL;
    sp_status status;
    *view = *a;
    view->rows = end - first;
    view->nnz = offsets[end] - base;
    view->col_indices = a->col_indices + base;
    view->values = (float *)a->values + base;
    view->row_offsets = NULL;
    TRY(sp_alloc(device, view->rows + 1, sizeof *own, (void **)&own));
    for (int64_t i = 0; i <= view->rows; i++) own[i] = offsets[first + i] - base;
    if (a->space == SP_HOST) {
        view->row_offsets = own;
        return SP_OK;
    }
    TRY(sp_array_create(device, view->rows + 1, sizeof *own, a->space, (void **)&view->row_offsets));
    TRY(sp_array_copy(device, view->rows + 1, sizeof *own, view->row_offsets, a->space, own, SP_HOST));
done:
    sp_free(device, own);
    return status;
}

static sp_status bring(sp_context *device, const shared_product *p, int64_t first, int64_t end,
                       named_rows *named, operands *o)
{
    const sp_csr *a = p->a;
    sp_status status;
    o->b = p->b;
    if (a->space == SP_DEVICE && device != p->context) {
        TRY(sp_csr_copy(device, p->b, SP_DEVICE, &o->b_copy));
        if (p->a != p->b) TRY(sp_csr_copy(device, p->a, SP_DEVICE, &o->a_copy));
        a = p->a == p->b ? &o->b_copy : &o->a_copy;
        o->b = &o->b_copy;
    }
    TRY(view_rows(device, a, p->offsets, first, end, &o->a));
    if (a->space == SP_HOST) {
        TRY(fetch_rows(device, p->b, named));
        o->b = &named->b;
    }
done:
    return status;
}

static void release(sp_context *device, operands *o)
{
    sp_array_free(device, o->a.space, o->a.row_offsets);
    sp_csr_free(device, &o->a_copy);
    sp_csr_free(device, &o->b_copy);
}

/* Appends rows first to end - 1 of C to the device's pieces, where A lies. */
static sp_status make_piece(sp_context *device, const shared_product *p, int64_t first, int64_t end,
                            named_rows *named, device_rows *own)
{
    sp_markov_epilogue epilogue = *p->epilogue;
    operands o = {0};
    sp_csr made = {0}, moved = {0};
    sp_spgemm_info info = {0};
    sp_status status;
    epilogue.diagonal += first;
    epilogue.fast = false; /* which sums would be f32 depends on the rows that are together */
    TRY(bring(device, p, first, end, named, &o));
    TRY(sp_device_spgemm_markov(device, &o.a, o.b, &epilogue, &made, p->rows ? p->rows + first : NULL, &info));
    if (made.space != p->a->space) {
        TRY(sp_csr_copy(device, &made, p->a->space, &moved));
        sp_csr_free(device, &made);
        made = moved;
    }
    if (own->count == own->capacity) {
        const int64_t more = 2 * own->capacity + 1;
        TRY(sp_grow(device, own->count, more, sizeof *own->pieces, (void **)&own->pieces));
        own->capacity = more;
    }
    own->pieces[own->count++] = (piece){first, made};
    made = (sp_csr){0};
    add_info(&own->info, &info);
done:
    release(device, &o);
    sp_csr_free(device, &made);
    return status;
}

/* A row does not fit the memory of the device: the sentence says how much would do for the row that names most of B.
 * Beside those rows and its own entries a row takes up to 80 bytes a column (markov/cuda/markov.cu): 17 for its sums,
 * 16 in the buffer and in C, and 47 because windows may take five eighths of the memory. */
static sp_status refuse_row(sp_context *device, const shared_product *p)
{
    enum { COLUMN_BYTES = 80, ROW_BYTES = B_ROW_BYTES + ENTRY_BYTES, FIXED = 4 << 20, MEGABYTE = 1 << 20 };
    const size_t budget = device->memory_budget;
    int64_t *counts = NULL, total, most;
    char limit[64] = "memory that is free";
    const sp_status status = sp_row_products(device, p->a, p->b, &counts, &total, &most);
    sp_free(device, counts);
    if (status != SP_OK) return status;
    const int64_t enough = most * ENTRY_BYTES + p->b->rows * ROW_BYTES + p->b->cols * COLUMN_BYTES + FIXED;
    if (budget) snprintf(limit, sizeof limit, "memory budget of %zu bytes", budget);
    return sp_fail(device, SP_ERROR_DEVICE_MEMORY,
                   "%s: a row of the product and the rows that it names do not fit the %s: %lldM would do",
                   device->device_name, limit, (long long)(enough / MEGABYTE + 1));
}

/* B as a whole on the device, if it takes no more than its share. Less may be free than it seems, as where the budget
 * is more than the memory: then B stays in host memory. */
static sp_status bring_whole(sp_context *device, const sp_csr *b, named_rows *named)
{
    size_t available;
    sp_status status = SP_OK;
    if (!device->backend->available) return SP_OK;
    TRY(device->backend->available(device, &available));
    if ((double)sp_csr_bytes(b) > WHOLE * (double)available) return SP_OK;
    status = sp_csr_copy(device, b, device->backend->space, &named->b);
    named->all = status == SP_OK;
    if (status == SP_ERROR_DEVICE_MEMORY) status = SP_OK;
done:
    return status;
}

static sp_status find_room(sp_context *device, const sp_csr *b, const named_rows *named, piece_room *room)
{
    size_t available = 0;
    sp_status status = SP_OK;
    *room = (piece_room){INFINITY, INFINITY};
    if (!device->backend->available) return SP_OK;
    TRY(device->backend->available(device, &available));
    if (named->all) {
        room->c = PIECE * (double)available;
    } else {
        const double left = (double)available - (double)b->rows * B_ROW_BYTES;
        *room = (piece_room){NAMED * left, PIECE * (1 - NAMED) * left};
    }
done:
    return status;
}

/* The rows of the device from host memory, in pieces. Where one proves too much all the same, the next has half as many
 * rows, and then step by step more again. */
static sp_status make_pieces(sp_context *device, const shared_product *p, device_rows *own)
{
    int64_t length = own->end - own->first;
    named_rows named = {0};
    piece_room room;
    sp_status status;
    TRY(start_named(device, p->b, &named));
    TRY(bring_whole(device, p->b, &named));
    for (int64_t at = own->first; at < own->end;) {
        int64_t end = own->end - at < length ? own->end : at + length;
        if (!named.all) sp_csr_free(device, &named.b);
        TRY(find_room(device, p->b, &named, &room));
        end = name_rows(p, at, end, room, &named);
        status = make_piece(device, p, at, end, &named, own);
        if (status == SP_OK) {
            at = end;
            if (length < own->end - at) length += length / 4 + 1;
        } else if (status != SP_ERROR_DEVICE_MEMORY) {
            goto done;
        } else if (end - at == 1 && named.all) {
            sp_csr_free(device, &named.b);
            named.all = false;
        } else if (end - at == 1) {
            status = refuse_row(device, p);
            goto done;
        } else {
            length = (end - at + 1) / 2;
        }
    }
done:
    free_named(device, &named);
    return status;
}

/* An sp_devices_work: all rows of the device. */
static sp_status make_rows(sp_context *device, int number, void *user)
{
    const shared_product *p = user;
    device_rows *own = &p->devices[number];
    if (own->first == own->end) return SP_OK;
    return p->a->space == SP_HOST ? make_pieces(device, p, own)
                                  : make_piece(device, p, own->first, own->end, NULL, own);
}

/* ---- the product -------------------------------------------------------------------------------------- */

/* The products of each row. Those of matrices in host memory are counted there, for a GPU may have no room for them. */
static sp_status count_products(sp_context *context, const sp_csr *a, const sp_csr *b, double *products)
{
    int64_t *counts = NULL, total, largest;
    if (a->space == SP_DEVICE) return sp_count_products(context, a, b, products);
    const sp_status status = sp_row_products(context, a, b, &counts, &total, &largest);
    for (int64_t i = 0; i < a->rows && status == SP_OK; i++) products[i] = (double)counts[i + 1];
    sp_free(context, counts);
    return status;
}

static sp_status cut_rows(shared_product *p)
{
    sp_context *context = p->context;
    int64_t cuts[SP_MOST_DEVICES + 1];
    sp_status status;
    TRY(sp_alloc(context, p->a->rows, sizeof *p->products, (void **)&p->products));
    TRY(count_products(context, p->a, p->b, p->products));
    sp_devices_cut(context, p->products, p->a->rows, cuts);
    for (int d = 0; d < sp_devices_count(context); d++) {
        p->devices[d].first = cuts[d];
        p->devices[d].end = cuts[d + 1];
    }
done:
    return status;
}

/* A piece's row offsets, counted from its place in C. */
static sp_status read_offsets(sp_context *device, const piece *own, int64_t *offsets)
{
    const int64_t before = offsets[0], rows = own->rows.rows;
    const sp_status status = sp_array_copy(device, rows + 1, sizeof *offsets, offsets, SP_HOST, own->rows.row_offsets,
                                           own->rows.space);
    for (int64_t r = 0; r <= rows && status == SP_OK; r++) offsets[r] += before;
    return status;
}

/* An sp_devices_work: moves the device's pieces to their place in C. */
typedef struct joining {
    const shared_product *product;
    const int64_t *offsets; /* C's, in host memory */
    sp_csr *c;
} joining;

static sp_status move_pieces(sp_context *device, int number, void *user)
{
    const joining *j = user;
    const sp_csr *c = j->c;
    device_rows *own = &j->product->devices[number];
    sp_status status = SP_OK;
    for (int64_t i = 0; i < own->count && status == SP_OK; i++) {
        sp_csr *rows = &own->pieces[i].rows;
        const int64_t place = j->offsets[own->pieces[i].first];
        TRY(sp_array_copy(device, rows->nnz, sizeof(int32_t), c->col_indices + place, c->space, rows->col_indices,
                          rows->space));
        TRY(sp_array_copy(device, rows->nnz, sizeof(float), (float *)c->values + place, c->space, rows->values,
                          rows->space));
        sp_csr_free(device, rows);
    }
    if (device->backend->finish) status = device->backend->finish(device);
done:
    return status;
}

/* C from all pieces, in their order. */
static sp_status join_pieces(const shared_product *p, sp_csr *c)
{
    sp_context *context = p->context;
    joining j = {.product = p, .c = c};
    int64_t *offsets;
    sp_status status;
    TRY(sp_calloc(context, p->a->rows + 1, sizeof *offsets, (void **)&offsets));
    for (int d = 0; d < sp_devices_count(context); d++)
        for (int64_t i = 0; i < p->devices[d].count; i++) {
            const piece *own = &p->devices[d].pieces[i];
            TRY(read_offsets(sp_devices_number(context, d), own, offsets + own->first));
        }
    TRY(sp_csr_create(context, p->a->rows, p->b->cols, offsets[p->a->rows], SP_F32, p->a->space, c));
    TRY(sp_array_copy(context, p->a->rows + 1, sizeof *offsets, c->row_offsets, c->space, offsets, SP_HOST));
    j.offsets = offsets;
    TRY(sp_devices_run(context, move_pieces, &j));
done:
    if (status != SP_OK) sp_csr_free(context, c);
    sp_free(context, offsets);
    return status;
}

static void free_devices(shared_product *p)
{
    sp_context *context = p->context;
    for (int d = 0; p->devices && d < sp_devices_count(context); d++) {
        sp_context *device = sp_devices_number(context, d);
        device_rows *own = &p->devices[d];
        for (int64_t i = 0; i < own->count; i++) sp_csr_free(device, &own->pieces[i].rows);
        sp_free(device, own->pieces);
    }
    FREE_ALL(context, p->devices, p->offsets, p->products);
}

/* The product of matrices in `space`; those that lie elsewhere are copied. C lies there, too. */
static sp_status product_in(sp_context *context, sp_space space, const sp_csr *a, const sp_csr *b,
                            const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info)
{
    const double start = wall_seconds();
    sp_csr a_copy = {0}, b_copy = {0};
    shared_product p = {.context = context, .a = a, .b = b, .epilogue = epilogue, .rows = rows};
    sp_status status;
    memset(info, 0, sizeof *info);
    if (b->space != space) {
        TRY(sp_csr_copy(context, b, space, &b_copy));
        p.b = &b_copy;
    }
    if (a == b) p.a = p.b;
    else if (a->space != space) {
        TRY(sp_csr_copy(context, a, space, &a_copy));
        p.a = &a_copy;
    }
    TRY(sp_calloc(context, sp_devices_count(context), sizeof *p.devices, (void **)&p.devices));
    TRY(cut_rows(&p));
    TRY(sp_alloc(context, a->rows + 1, sizeof *p.offsets, (void **)&p.offsets));
    TRY(sp_array_copy(context, a->rows + 1, sizeof *p.offsets, p.offsets, SP_HOST, p.a->row_offsets, p.a->space));
    info->analysis_seconds = wall_seconds() - start;
    TRY(sp_devices_run(context, make_rows, &p));
    TRY(join_pieces(&p, c));
    for (int d = 0; d < sp_devices_count(context); d++) add_info(info, &p.devices[d].info);
    info->numeric_seconds = wall_seconds() - start - info->analysis_seconds;
done:
    free_devices(&p);
    sp_csr_free(context, &a_copy);
    sp_csr_free(context, &b_copy);
    return status;
}

/* The entries that C has at most. */
static sp_status bound_entries(sp_context *context, const sp_csr *a, const sp_csr *b,
                               const sp_markov_epilogue *epilogue, double *entries)
{
    shared_product p = {.context = context, .a = a, .b = b, .epilogue = epilogue};
    sp_status status;
    *entries = 0;
    TRY(sp_alloc(context, a->rows, sizeof *p.products, (void **)&p.products));
    TRY(count_products(context, a, b, p.products));
    for (int64_t i = 0; i < a->rows; i++) *entries += most_entries(&p, i);
done:
    sp_free(context, p.products);
    return status;
}

/* Whether the product is made in the memory of the device: where A and B take no more than HELD of it, which leaves
 * the index of B and sums theirs, and the rest holds the entries that C has at most. 10 million edges with 2 GB
 * took more than a minute otherwise, and take 9 s in pieces. */
static sp_status fits_device(sp_context *context, const sp_csr *a, const sp_csr *b,
                             const sp_markov_epilogue *epilogue, bool *fits)
{
    const double a_bytes = a == b ? 0 : (double)sp_csr_bytes(a), b_bytes = (double)sp_csr_bytes(b);
    const double there = (a->space == SP_DEVICE ? a_bytes : 0) + (b->space == SP_DEVICE ? b_bytes : 0);
    const double HELD = 0.45;
    size_t available;
    double entries, left;
    sp_status status = SP_OK;
    *fits = true;
    if (!context->backend->available || a->space != b->space) return SP_OK;
    TRY(context->backend->available(context, &available));
    left = (double)available - (a_bytes + b_bytes - there);
    *fits = a_bytes + b_bytes <= HELD * ((double)available + there);
    if (!*fits || epilogue->select == 0) goto done;
    if ((double)a->rows * (double)b->cols * ENTRY_BYTES <= left) goto done;
    TRY(bound_entries(context, a, b, epilogue, &entries));
    *fits = entries * ENTRY_BYTES <= left;
done:
    return status;
}

/* In the memory of the device, or of the first of several. */
static sp_status product_on_device(sp_context *context, const sp_csr *a, const sp_csr *b,
                                   const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                   sp_spgemm_info *info)
{
    return context->devices ? product_in(context, SP_DEVICE, a, b, epilogue, c, rows, info)
                            : sp_device_spgemm_markov(context, a, b, epilogue, c, rows, info);
}

sp_status sp_devices_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b,
                                   const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                   sp_spgemm_info *info)
{
    if (context->backend->space == SP_DEVICE) {
        bool fits;
        sp_status status = fits_device(context, a, b, epilogue, &fits);
        if (status == SP_OK && fits) status = product_on_device(context, a, b, epilogue, c, rows, info);
        if ((status != SP_OK || fits) && status != SP_ERROR_DEVICE_MEMORY) return status;
        context->error[0] = '\0';
    }
    return product_in(context, SP_HOST, a, b, epilogue, c, rows, info);
}
