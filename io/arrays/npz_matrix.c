/* scipy's CSR as members of an .npz. */
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "arrays/npy.h"

/* What scipy's CSR consists of; indices and offsets of any type. */
typedef struct csr_parts {
    io_array data, indices, offsets, shape;
} csr_parts;

static void free_parts(sp_context *context, csr_parts *parts)
{
    io_array_free(context, &parts->data);
    io_array_free(context, &parts->indices);
    io_array_free(context, &parts->offsets);
    io_array_free(context, &parts->shape);
}

static sp_status read_part(io_npz *npz, const char *prefix, const char *part, io_array *array)
{
    char name[MOST_NAME];
    snprintf(name, sizeof name, "%s%s", prefix, part);
    return io_npz_read(npz, name, array);
}

static sp_status check_format(io_npz *npz, const char *prefix)
{
    io_array format;
    sp_status status = SP_OK;
    char name[MOST_NAME];
    snprintf(name, sizeof name, "%sformat", prefix);
    if (!io_npz_has(npz, name)) return SP_OK;
    status = io_npz_read(npz, name, &format);
    if (status != SP_OK) return status;
    if (format.type != IO_TEXT || format.count != 1 || format.item_size < 3 || memcmp(format.values, "csr", 3) != 0)
        status = sp_fail(io_npz_context(npz), SP_ERROR_MATRIX,
                         "%s: a sparse matrix that is not CSR; save tocsr() of it", io_npz_path(npz));
    io_array_free(io_npz_context(npz), &format);
    return status;
}

static sp_status read_parts(io_npz *npz, const char *prefix, csr_parts *parts)
{
    sp_status status;
    TRY(check_format(npz, prefix));
    TRY(read_part(npz, prefix, "shape", &parts->shape));
    TRY(read_part(npz, prefix, "indptr", &parts->offsets));
    TRY(read_part(npz, prefix, "indices", &parts->indices));
    status = read_part(npz, prefix, "data", &parts->data);
done:
    return status;
}

static sp_status convert_parts(sp_context *context, const char *name, csr_parts *parts)
{
    sp_status status;
    TRY(io_array_to_i64(context, name, &parts->shape));
    TRY(io_array_to_i64(context, name, &parts->offsets));
    TRY(io_array_to_i32(context, name, &parts->indices));
    status = io_array_to_f32(context, name, &parts->data);
done:
    return status;
}

/* What is wrong with the offsets or columns, except for the order of columns; NULL: nothing. */
static const char *parts_wrong(sp_context *context, const csr_parts *parts)
{
    const int64_t *shape = parts->shape.values, *offsets = parts->offsets.values;
    const int32_t *columns = parts->indices.values;
    const int64_t nnz = parts->indices.count;
    int64_t wrong = 0;
    if (parts->shape.dimensions != 1 || parts->shape.count != 2) return "the shape is not two numbers";
    if (shape[0] < 0 || shape[0] > INT32_MAX || shape[1] < 0 || shape[1] > INT32_MAX)
        return "more than 2^31 - 1 rows or columns";
    if (parts->offsets.dimensions != 1 || parts->offsets.count != shape[0] + 1)
        return "indptr has not one number more than there are rows";
    if (parts->indices.dimensions != 1 || parts->data.dimensions != 1 || parts->data.count != nnz)
        return "indices and data differ in length";
    if (offsets[0] != 0 || offsets[shape[0]] != nnz) return "indptr does not run from 0 to the number of entries";
    for (int64_t i = 0; i < shape[0]; i++)
        if (offsets[i] > offsets[i + 1]) return "indptr does not ascend";
#pragma omp parallel for schedule(static) reduction(+ : wrong) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < nnz; e++) wrong += columns[e] < 0 || columns[e] >= shape[1];
    return wrong ? "a column that is not within the shape" : NULL;
}

/* Sorts columns and sums repeated ones, by way of triples. */
static sp_status sort_entries(sp_context *context, const csr_parts *parts, sp_csr *matrix)
{
    const int64_t *shape = parts->shape.values, *offsets = parts->offsets.values;
    int32_t *rows;
    sp_status status = sp_alloc(context, parts->indices.count, sizeof *rows, (void **)&rows);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1024) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t e = offsets[i]; e < offsets[i + 1]; e++) rows[e] = (int32_t)i;
    status = sp_csr_from_coo(context, &(sp_coo){.rows = shape[0], .cols = shape[1], .count = parts->indices.count,
                                                .row_indices = rows, .col_indices = parts->indices.values,
                                                .values = parts->data.values}, SP_COMBINE_SUM, false, matrix);
    sp_free(context, rows);
    return status;
}

static bool ascends(sp_context *context, const csr_parts *parts)
{
    const int64_t *offsets = parts->offsets.values, rows = parts->offsets.count - 1;
    const int32_t *columns = parts->indices.values;
    int64_t wrong = 0;
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : wrong) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = offsets[i] + 1; e < offsets[i + 1]; e++) wrong += columns[e - 1] >= columns[e];
    return wrong == 0;
}

/* Makes the matrix: checked, sorted, repeated entries summed. May take arrays over. */
static sp_status make_csr(sp_context *context, const char *name, csr_parts *parts, sp_csr *matrix)
{
    memset(matrix, 0, sizeof *matrix);
    sp_status status = convert_parts(context, name, parts);
    if (status != SP_OK) return status;
    const char *wrong = parts_wrong(context, parts);
    if (wrong) return sp_fail(context, SP_ERROR_MATRIX, "%s: no sparse matrix: %s; write it again", name, wrong);
    if (!ascends(context, parts)) return sort_entries(context, parts, matrix);
    const int64_t *shape = parts->shape.values;
    *matrix = (sp_csr){.rows = shape[0], .cols = shape[1], .nnz = parts->indices.count, .value_type = SP_F32};
    matrix->row_offsets = parts->offsets.values;
    matrix->col_indices = parts->indices.values;
    matrix->values = parts->data.values;
    parts->offsets.values = parts->indices.values = parts->data.values = NULL;
    return SP_OK;
}

sp_status io_npz_matrix(io_npz *npz, const char *prefix, sp_csr *matrix)
{
    csr_parts parts = {0};
    memset(matrix, 0, sizeof *matrix);
    sp_status status = read_parts(npz, prefix, &parts);
    if (status == SP_OK) status = make_csr(io_npz_context(npz), io_npz_path(npz), &parts, matrix);
    free_parts(io_npz_context(npz), &parts);
    return status;
}
