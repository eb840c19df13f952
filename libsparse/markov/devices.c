/* C = epilogue(A·B) on several devices, and on a GPU whose memory is too small: each makes a range of the rows of C.
 *
 * Ranges are cut so that they have about equal numbers of products. Which rows are together changes no bit of a row.
 *
 * GPUs work on matrices in the memory of the first, as one GPU does: the others copy A and B over their links and send
 * it their rows of C. If some memory is too small for that, the product is made again from host memory.
 *
 * From host memory a device gets its rows of A and, of B, the rows that these name: a matrix of B's shape in which the
 * other rows are empty, so that columns keep their numbers. Its rows go to C in host memory. A device whose memory
 * cannot hold a range makes it in smaller ones, each with the rows of B that it needs. A GPU by itself does so, too, if
 * its memory does not hold A, B, C and what it works with.
 */
#include <stdio.h>
#include <string.h>

#include "base/info.h"
#include "core/devices.h"
#include "core/rows.h"

/* Rows of B that a device does not need are copied too where fewer than this many bytes lie between others: a copy to a
 * GPU costs some 10 microseconds beside its bytes. */
enum { GAP_BYTES = 1 << 16, ENTRY_BYTES = sizeof(int32_t) + sizeof(float) };

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
    int64_t *offsets;    /* A's row offsets, in host memory */
    device_rows *devices;
} shared_product;

/* ---- the rows of B that are needed ------------------------------------------------------------------------ */

/* marks[j] = 1 for the rows of B that A's rows name, and for short gaps between them. A single row, which is made alone
 * where memory lacks, gets no more than it names. */
static void mark_rows(const sp_csr *a, const sp_csr *b, uint8_t *marks)
{
    const int64_t gap = a->rows > 1 ? GAP_BYTES : 0;
    int64_t after = 0; /* the last needed row so far */
    for (int64_t k = 0; k < a->nnz; k++) marks[a->col_indices[k]] = 1;
    for (int64_t j = 0; j < b->rows; j++) {
        if (!marks[j]) continue;
        if ((b->row_offsets[j] - b->row_offsets[after]) * ENTRY_BYTES < gap)
            memset(marks + after, 1, (size_t)(j - after));
        after = j + 1;
    }
}

/* Copies the marked rows of B, run by run, to their places in `part`. */
static sp_status copy_rows(sp_context *device, const sp_csr *b, const uint8_t *marks, sp_csr *part)
{
    const float *values = b->values;
    int64_t place = 0;
    sp_status status = SP_OK;
    for (int64_t j = 0; j < b->rows && status == SP_OK;) {
        const int64_t first = b->row_offsets[j];
        if (!marks[j++]) continue;
        while (j < b->rows && marks[j]) j++;
        const int64_t count = b->row_offsets[j] - first;
        status = sp_array_copy(device, count, sizeof(int32_t), part->col_indices + place, part->space,
                               b->col_indices + first, SP_HOST);
        if (status == SP_OK)
            status = sp_array_copy(device, count, sizeof(float), (float *)part->values + place, part->space,
                                   values + first, SP_HOST);
        place += count;
    }
    return status;
}

/* The rows of B that A's rows name, on the device; the others are empty. */
static sp_status fetch_rows(sp_context *device, const sp_csr *a, const sp_csr *b, sp_csr *part)
{
    uint8_t *marks = NULL;
    int64_t *offsets = NULL;
    sp_csr made = {0};
    sp_status status;
    TRY(sp_calloc(device, b->rows, 1, (void **)&marks));
    TRY(sp_alloc(device, b->rows + 1, sizeof *offsets, (void **)&offsets));
    mark_rows(a, b, marks);
    offsets[0] = 0;
    for (int64_t j = 0; j < b->rows; j++)
        offsets[j + 1] = offsets[j] + (marks[j] ? b->row_offsets[j + 1] - b->row_offsets[j] : 0);
    TRY(sp_csr_create(device, b->rows, b->cols, offsets[b->rows], SP_F32, device->backend->space, &made));
    TRY(sp_array_copy(device, b->rows + 1, sizeof *offsets, made.row_offsets, made.space, offsets, SP_HOST));
    TRY(copy_rows(device, b, marks, &made));
    *part = made;
done:
    if (status != SP_OK) sp_csr_free(device, &made);
    sp_free(device, marks);
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

static sp_status bring(sp_context *device, const shared_product *p, int64_t first, int64_t end, operands *o)
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
        TRY(fetch_rows(device, &o->a, p->b, &o->b_copy));
        o->b = &o->b_copy;
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
static sp_status make_piece(sp_context *device, const shared_product *p, int64_t first, int64_t end, device_rows *own)
{
    sp_markov_epilogue epilogue = *p->epilogue;
    operands o = {0};
    sp_csr made = {0}, moved = {0};
    sp_spgemm_info info = {0};
    sp_status status;
    epilogue.diagonal += first;
    epilogue.fast = false; /* which sums would be f32 depends on the rows that are together */
    TRY(bring(device, p, first, end, &o));
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
 * Beside those rows and its own entries a row takes up to 40 bytes a column (markov/cuda/markov.cu): 17 for its sums,
 * 16 in the buffer and in C, the rest for what windows may take of the memory. */
static sp_status refuse_row(sp_context *device, const shared_product *p)
{
    enum { COLUMN_BYTES = 40, ROW_BYTES = sizeof(int64_t) + ENTRY_BYTES, FIXED = 4 << 20, MEGABYTE = 1 << 20 };
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

/* An sp_devices_work: all rows of the device; from host memory half as many at a time when they prove too many for the
 * device's, and then step by step more again. */
static sp_status make_rows(sp_context *device, int number, void *user)
{
    const shared_product *p = user;
    device_rows *own = &p->devices[number];
    int64_t length = own->end - own->first;
    for (int64_t at = own->first; at < own->end;) {
        const int64_t end = own->end - at < length ? own->end : at + length;
        const sp_status status = make_piece(device, p, at, end, own);
        if (status == SP_OK) {
            at = end;
            length += length / 4 + 1;
        } else if (status != SP_ERROR_DEVICE_MEMORY || p->a->space == SP_DEVICE) {
            return status;
        } else if (end - at == 1) {
            return refuse_row(device, p);
        } else {
            length = (end - at + 1) / 2;
        }
    }
    return SP_OK;
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
    double *products;
    sp_status status;
    TRY(sp_alloc(context, p->a->rows, sizeof *products, (void **)&products));
    TRY(count_products(context, p->a, p->b, products));
    sp_devices_cut(context, products, p->a->rows, cuts);
    for (int d = 0; d < sp_devices_count(context); d++) {
        p->devices[d].first = cuts[d];
        p->devices[d].end = cuts[d + 1];
    }
done:
    sp_free(context, products);
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
    sp_free(context, p->devices);
    sp_free(context, p->offsets);
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
        const sp_status status = product_on_device(context, a, b, epilogue, c, rows, info);
        if (status != SP_ERROR_DEVICE_MEMORY) return status;
        context->error[0] = '\0';
    }
    return product_in(context, SP_HOST, a, b, epilogue, c, rows, info);
}
