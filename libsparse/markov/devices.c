/* C = epilogue(A·B) on several devices: each makes a range of the rows of C.
 *
 * Ranges are cut so that they have about equal numbers of products. A device gets its rows of A and, of B, the rows
 * that these name: a matrix of B's shape in which the other rows are empty, so that columns keep their numbers. Which
 * rows are together changes no bit of a row. The rows go to C in host memory.
 *
 * A device whose memory cannot hold a range makes it in smaller ones, each with the rows of B that it needs.
 */
#include <string.h>

#include "base/info.h"
#include "core/devices.h"
#include "core/rows.h"

/* Rows of B that a device does not need are copied too where fewer than so many bytes lie between others: a copy to a
 * GPU costs some 10 microseconds beside its bytes. */
enum { GAP_BYTES = 1 << 16, ENTRY_BYTES = sizeof(int32_t) + sizeof(float) };

/* Rows of C that were made at once, in host memory. */
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
    const sp_csr *a, *b;
    const sp_markov_epilogue *epilogue;
    sp_markov_row *rows; /* may be NULL */
    device_rows *devices;
} shared_product;

/* ---- the rows of B that are needed ------------------------------------------------------------------------ */

/* marks[j] = 1 for the rows of B that A's rows name, and for short gaps between them. */
static void mark_rows(const sp_csr *a, const sp_csr *b, uint8_t *marks)
{
    int64_t after = 0; /* the last needed row so far */
    for (int64_t k = 0; k < a->nnz; k++) marks[a->col_indices[k]] = 1;
    for (int64_t j = 0; j < b->rows; j++) {
        if (!marks[j]) continue;
        if ((b->row_offsets[j] - b->row_offsets[after]) * ENTRY_BYTES < GAP_BYTES)
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

/* Rows first to end - 1 of a host matrix, whose entries stay where they are. The caller frees the row offsets. */
static sp_status view_rows(sp_context *context, const sp_csr *a, int64_t first, int64_t end, sp_csr *view)
{
    const int64_t base = a->row_offsets[first];
    *view = *a;
    view->rows = end - first;
    view->nnz = a->row_offsets[end] - base;
    view->col_indices = a->col_indices + base;
    view->values = (float *)a->values + base;
    const sp_status status = sp_alloc(context, view->rows + 1, sizeof *view->row_offsets, (void **)&view->row_offsets);
    for (int64_t i = 0; i <= view->rows && status == SP_OK; i++) view->row_offsets[i] = a->row_offsets[first + i] - base;
    return status;
}

/* Appends rows first to end - 1 of C to the device's pieces. */
static sp_status make_piece(sp_context *device, const shared_product *p, int64_t first, int64_t end, device_rows *own)
{
    sp_markov_epilogue epilogue = *p->epilogue;
    sp_csr a = {0}, b = {0}, made = {0}, moved = {0};
    sp_spgemm_info info;
    sp_status status;
    epilogue.diagonal += first;
    epilogue.fast = false; /* which sums would be f32 depends on the rows that are together */
    TRY(view_rows(device, p->a, first, end, &a));
    TRY(fetch_rows(device, &a, p->b, &b));
    TRY(sp_spgemm_markov(device, &a, &b, &epilogue, &made, p->rows ? p->rows + first : NULL, &info));
    if (made.space != SP_HOST) {
        TRY(sp_csr_copy(device, &made, SP_HOST, &moved));
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
    sp_free(device, a.row_offsets);
    sp_csr_free(device, &b);
    sp_csr_free(device, &made);
    return status;
}

/* An sp_devices_work: all rows of the device, fewer at a time once they have proved too many for its memory. */
static sp_status make_rows(sp_context *device, int number, void *user)
{
    const shared_product *p = user;
    device_rows *own = &p->devices[number];
    int64_t length = own->end - own->first;
    for (int64_t at = own->first; at < own->end;) {
        const int64_t end = own->end - at < length ? own->end : at + length;
        const sp_status status = make_piece(device, p, at, end, own);
        if (status == SP_OK) at = end;
        else if (status != SP_ERROR_DEVICE_MEMORY || end - at == 1) return status;
        else length = (end - at + 1) / 2;
    }
    return SP_OK;
}

/* ---- the product -------------------------------------------------------------------------------------- */

/* Cuts the rows so that all devices get about equally many products and rows. products[i + 1] are those of row i. */
static void cut_rows(shared_product *p, int devices, const int64_t *products, int64_t total)
{
    const double share = ((double)total + (double)p->a->rows) / devices;
    double sum = 0;
    int64_t row = 0;
    for (int d = 0; d < devices; d++) {
        p->devices[d].first = row;
        while (row < p->a->rows && (sum < share * (d + 1) || d == devices - 1)) sum += (double)products[++row] + 1;
        p->devices[d].end = row;
    }
}

/* C from all pieces, in their order. */
static sp_status join_pieces(const shared_product *p, int devices, sp_csr *c)
{
    int64_t nnz = 0;
    sp_status status;
    for (int d = 0; d < devices; d++)
        for (int64_t i = 0; i < p->devices[d].count; i++) nnz += p->devices[d].pieces[i].rows.nnz;
    status = sp_csr_create(p->context, p->a->rows, p->b->cols, nnz, SP_F32, SP_HOST, c);
    if (status != SP_OK) return status;
    c->row_offsets[0] = 0;
    for (int d = 0; d < devices; d++)
        for (int64_t i = 0; i < p->devices[d].count; i++) {
            const piece *own = &p->devices[d].pieces[i];
            int64_t *offsets = c->row_offsets + own->first;
            for (int64_t r = 1; r <= own->rows.rows; r++) offsets[r] = offsets[0] + own->rows.row_offsets[r];
        }
    return SP_OK;
}

/* An sp_devices_work: moves the device's pieces to their place in C. */
typedef struct joining {
    const shared_product *product;
    sp_csr *c;
} joining;

static sp_status move_pieces(sp_context *device, int number, void *user)
{
    const joining *j = user;
    device_rows *own = &j->product->devices[number];
    for (int64_t i = 0; i < own->count; i++) {
        sp_csr *rows = &own->pieces[i].rows;
        const int64_t place = j->c->row_offsets[own->pieces[i].first];
        if (rows->nnz > 0) {
            memcpy(j->c->col_indices + place, rows->col_indices, (size_t)rows->nnz * sizeof(int32_t));
            memcpy((float *)j->c->values + place, rows->values, (size_t)rows->nnz * sizeof(float));
        }
        sp_csr_free(device, rows);
    }
    return SP_OK;
}

sp_status sp_devices_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b,
                                   const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                   sp_spgemm_info *info)
{
    const int devices = context->devices->count;
    const double start = wall_seconds();
    shared_product product = {.context = context, .a = a, .b = b, .epilogue = epilogue, .rows = rows};
    joining joined = {&product, c};
    int64_t *products = NULL, total, largest;
    sp_status status;
    TRY(sp_calloc(context, devices, sizeof *product.devices, (void **)&product.devices));
    TRY(sp_row_products(context, a, b, &products, &total, &largest));
    cut_rows(&product, devices, products, total);
    info->analysis_seconds = wall_seconds() - start;
    TRY(sp_devices_run(context, make_rows, &product));
    TRY(join_pieces(&product, devices, c));
    TRY(sp_devices_run(context, move_pieces, &joined));
    for (int d = 0; d < devices; d++) add_info(info, &product.devices[d].info);
    info->numeric_seconds = wall_seconds() - start - info->analysis_seconds;
done:
    for (int d = 0; product.devices && d < devices; d++) {
        device_rows *own = &product.devices[d];
        for (int64_t i = 0; i < own->count; i++) sp_csr_free(context, &own->pieces[i].rows);
        sp_free(context, own->pieces);
    }
    sp_free(context, product.devices);
    sp_free(context, products);
    return status;
}
