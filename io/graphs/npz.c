/* Reading scipy's sparse matrices, as scipy.sparse.save_npz writes them, as graphs: CSR, CSC and COO. Entry (i, j) is
 * an arc with head i and tail j, as in Matrix Market; nodes are numbered from 0. Repeated entries stay repeated arcs.
 */
#include <math.h>
#include <string.h>

#include "arrays/npy.h"
#include "base/try.h"
#include "bytes/memory.h"
#include "graphs/formats.h"

typedef enum npz_kind { NPZ_CSR, NPZ_CSC, NPZ_COO, NPZ_OTHER } npz_kind;

typedef struct npz_reader {
    sp_context *context;
    io_npz *npz;
    const char *name;
    const io_read_options *options;
    io_graph *graph;
    io_array shape, rows, cols, data; /* i64, i32, i32, f64; at first offsets stand for rows or columns */
} npz_reader;

static sp_status refuse(const npz_reader *r, const char *what)
{
    return sp_fail(r->context, SP_ERROR_MATRIX, "%s: no sparse matrix: %s; write it again by scipy.sparse.save_npz",
                   r->name, what);
}

/* ---- the members ---------------------------------------------------------------------------------------- */

static sp_status find_kind(const npz_reader *r, npz_kind *kind)
{
    static const char *const words[] = {"csr", "csc", "coo"};
    io_array format;
    *kind = NPZ_OTHER;
    if (!io_npz_has(r->npz, "format") || !io_npz_has(r->npz, "shape") || !io_npz_has(r->npz, "data"))
        return sp_fail(r->context, SP_ERROR_MATRIX,
                       "%s: a zip archive that is no sparse matrix of scipy; unpack it first with unzip, or save the "
                       "matrix by scipy.sparse.save_npz", r->name);
    sp_status status = io_npz_read(r->npz, "format", &format);
    if (status != SP_OK) return status;
    const bool word = format.type == IO_TEXT && format.count == 1 && format.item_size >= 3;
    for (int k = 0; word && k < NPZ_OTHER; k++)
        if (memcmp(format.values, words[k], 3) == 0) *kind = (npz_kind)k;
    io_array_free(r->context, &format);
    if (*kind != NPZ_OTHER) return SP_OK;
    return sp_fail(r->context, SP_ERROR_MATRIX, "%s: a sparse matrix that is neither CSR, CSC nor COO; save tocsr() of "
                                                "it",
                   r->name);
}

static sp_status read_vector(const npz_reader *r, const char *member, io_array *array)
{
    const sp_status status = io_npz_read(r->npz, member, array);
    if (status != SP_OK || array->dimensions == 1) return status;
    return refuse(r, "a member has not one dimension");
}

static sp_status read_shape(npz_reader *r)
{
    sp_status status;
    TRY(read_vector(r, "shape", &r->shape));
    TRY(io_array_to_i64(r->context, r->name, &r->shape));
    const int64_t *shape = r->shape.values;
    if (r->shape.count != 2) TRY(refuse(r, "the shape is not two numbers"));
    if (shape[0] != shape[1])
        TRY(sp_fail(r->context, SP_ERROR_MATRIX, "%s: %lld rows and %lld columns; a graph needs a square "
                                                 "matrix", r->name,
                    (long long)shape[0], (long long)shape[1]));
    if (shape[0] < 0 || shape[0] > INT32_MAX) TRY(refuse(r, "more than 2^31 - 1 rows"));
    r->graph->nodes = shape[0];
    status = io_check_nodes(r->context, r->name, shape[0], r->graph->bytes);
done:
    return status;
}

/* `offsets`, i64, become the row, i32, of each entry. */
static sp_status spread_offsets(npz_reader *r, int64_t entries, io_array *offsets)
{
    const int64_t *from = offsets->values, nodes = r->graph->nodes;
    int32_t *to;
    if (offsets->count != nodes + 1) return refuse(r, "indptr has not one number more than there are rows");
    if (from[0] != 0 || from[nodes] != entries) return refuse(r, "indptr does not run from 0 to the number of entries");
    for (int64_t i = 0; i < nodes; i++)
        if (from[i] > from[i + 1]) return refuse(r, "indptr does not ascend");
    sp_status status = sp_alloc(r->context, entries, sizeof *to, (void **)&to);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1024) num_threads(sp_context_threads(r->context))
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t e = from[i]; e < from[i + 1]; e++) to[e] = (int32_t)i;
    sp_free(r->context, offsets->values);
    *offsets = (io_array){.type = IO_I32, .dimensions = 1, .count = entries, .item_size = sizeof *to, .values = to};
    return SP_OK;
}

static sp_status read_offsets(npz_reader *r, int64_t entries, io_array *major)
{
    sp_status status = read_vector(r, "indptr", major);
    if (status == SP_OK) status = io_array_to_i64(r->context, r->name, major);
    return status == SP_OK ? spread_offsets(r, entries, major) : status;
}

static sp_status check_indices(const npz_reader *r, const io_array *indices)
{
    const int32_t *at = indices->values;
    int64_t wrong = 0;
#pragma omp parallel for schedule(static) reduction(+ : wrong) num_threads(sp_context_threads(r->context))
    for (int64_t e = 0; e < indices->count; e++) wrong += at[e] < 0 || at[e] >= r->graph->nodes;
    return wrong ? refuse(r, "an index that is not within the shape") : SP_OK;
}

static sp_status read_indices(npz_reader *r, const char *member, io_array *indices)
{
    sp_status status = read_vector(r, member, indices);
    if (status == SP_OK) status = io_array_to_i32(r->context, r->name, indices);
    return status == SP_OK ? check_indices(r, indices) : status;
}

/* Both in one array, as scipy writes arrays of other than two dimensions, and means to write all. */
static sp_status read_coords(npz_reader *r)
{
    io_array all;
    sp_status status = io_npz_read(r->npz, "coords", &all);
    if (status != SP_OK) return status;
    if (all.dimensions != 2 || all.shape[0] != 2) TRY(refuse(r, "its coords are not two rows"));
    TRY(io_array_to_i32(r->context, r->name, &all));
    r->rows = r->cols = (io_array){.type = IO_I32, .dimensions = 1, .count = all.shape[1],
                                   .item_size = sizeof(int32_t)};
    TRY(sp_alloc(r->context, all.shape[1], sizeof(int32_t), &r->rows.values));
    TRY(sp_alloc(r->context, all.shape[1], sizeof(int32_t), &r->cols.values));
    if (all.count > 0) {
        const size_t half = (size_t)all.shape[1] * sizeof(int32_t);
        memcpy(r->rows.values, all.values, half);
        memcpy(r->cols.values, (char *)all.values + half, half);
    }
    TRY(check_indices(r, &r->rows));
    status = check_indices(r, &r->cols);
done:
    io_array_free(r->context, &all);
    return status;
}

static sp_status read_pairs(npz_reader *r)
{
    if (io_npz_has(r->npz, "coords")) return read_coords(r);
    const sp_status status = read_indices(r, "row", &r->rows);
    return status == SP_OK ? read_indices(r, "col", &r->cols) : status;
}

static sp_status read_members(npz_reader *r)
{
    npz_kind kind;
    sp_status status;
    TRY(find_kind(r, &kind));
    TRY(read_shape(r));
    if (kind == NPZ_COO) {
        TRY(read_pairs(r));
    } else {
        io_array *major = kind == NPZ_CSR ? &r->rows : &r->cols, *minor = kind == NPZ_CSR ? &r->cols : &r->rows;
        TRY(read_indices(r, "indices", minor));
        TRY(read_offsets(r, minor->count, major));
    }
    TRY(read_vector(r, "data", &r->data));
    if (r->rows.count != r->cols.count || r->data.count != r->rows.count)
        TRY(refuse(r, "indices and data differ in length"));
    status = io_array_to_f64(r->context, r->name, &r->data);
done:
    return status;
}

/* ---- arcs ----------------------------------------------------------------------------------------------- */

static sp_status refuse_value(const npz_reader *r, int64_t e, double value)
{
    const int32_t *rows = r->rows.values, *cols = r->cols.values;
    const bool sign = fabs(value) <= io_most(r->options->values);
    return sp_fail(r->context, SP_ERROR_ARGUMENT, "%s: the entry (%d, %d), counted from 0, is %g; %s", r->name, rows[e],
                   cols[e], value,
                   sign               ? io_sign_remedy(r->options)
                   : isfinite(value)  ? io_most_remedy(r->options->values)
                                      : "weights are finite: leave it out");
}

/* Checks and rounds the values, and leaves zeros out; in place, as no value gets longer. */
static sp_status settle_values(npz_reader *r)
{
    int32_t *rows = r->rows.values, *cols = r->cols.values;
    const sp_value_type type = r->options->values;
    double *values = r->data.values;
    io_graph *g = r->graph;
    bool ones = true;
    for (int64_t e = 0; e < r->data.count; e++) {
        const double value = values[e], rounded = io_round(type, value);
        const bool signs = r->options->any_sign || r->options->lenient;
        if (!(fabs(value) <= io_most(type)) || (value < 0 && !signs)) return refuse_value(r, e, value);
        g->negative += value < 0;
        if (rounded == 0) continue;
        ones = ones && rounded == 1;
        rows[g->arcs] = rows[e];
        cols[g->arcs] = cols[e];
        io_store_value(values, type, g->arcs++, rounded);
    }
    if (!r->options->any_sign) g->odd_lines = g->negative;
    g->heads = rows;
    g->tails = cols;
    r->rows.values = r->cols.values = NULL;
    g->values = type;
    if (ones) return SP_OK;
    g->weights = values;
    r->data.values = NULL;
    return SP_OK;
}

sp_status io_read_npz_graph(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph)
{
    npz_reader r = {.context = context, .options = options, .graph = graph};
    io_file file;
    graph->symmetric = false;
    sp_status status = io_file_of_source(context, source, options->interrupt, &file);
    if (status != SP_OK) return status;
    r.name = file.name;
    graph->bytes = file.size;
    TRY(io_npz_open_file(&file, &r.npz)); /* closes the file on failure, too */
    TRY(read_members(&r));
    status = settle_values(&r);
done:
    io_array_free(context, &r.shape);
    io_array_free(context, &r.rows);
    io_array_free(context, &r.cols);
    io_array_free(context, &r.data);
    io_npz_close(r.npz);
    return status;
}
