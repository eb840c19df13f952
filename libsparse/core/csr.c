/* Compressed sparse rows: life, copies between spaces, validation, transpose, permutation, inflation. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/kernel.h"
#include "core/coo.h"
#include "core/internal.h"

/* ---- life ---------------------------------------------------------------------------------------------- */

static sp_status create(sp_context *context, int64_t rows, int64_t cols, int64_t nnz, sp_value_type type,
                        bool has_values, sp_space space, sp_csr *matrix)
{
    if ((unsigned)type > SP_F64)
        return sp_fail(context, SP_ERROR_ARGUMENT, "type %d of values does not exist", (int)type);
    if (rows < 0 || cols < 0 || nnz < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a matrix of %lld x %lld with %lld nonzeros: none can be below 0",
                       (long long)rows, (long long)cols, (long long)nnz);
    if (rows > INT32_MAX || cols > INT32_MAX)
        return sp_fail(context, SP_ERROR_OVERFLOW, "a matrix of %lld x %lld with %lld nonzeros: dimensions end at %d",
                       (long long)rows, (long long)cols, (long long)nnz, INT32_MAX);
    sp_csr made = {.rows = rows, .cols = cols, .nnz = nnz, .value_type = type, .space = space};
    sp_status status = SP_OK;
    TRY(sp_array_create(context, rows + 1, sizeof(int64_t), space, (void **)&made.row_offsets));
    TRY(sp_array_create(context, nnz, sizeof(int32_t), space, (void **)&made.col_indices));
    if (has_values) TRY(sp_array_create(context, nnz, sp_value_size(type), space, &made.values));
done:
    if (status == SP_OK) *matrix = made;
    else sp_csr_free(context, &made);
    return status;
}

sp_status sp_csr_create(sp_context *context, int64_t rows, int64_t cols, int64_t nnz, sp_value_type type,
                        sp_space space, sp_csr *matrix)
{
    sp_status status = sp_require(context, __func__, "matrix", matrix);
    if (matrix) memset(matrix, 0, sizeof *matrix);
    if (status == SP_OK) status = sp_require_space(context, __func__, "matrix", space);
    return status == SP_OK ? create(context, rows, cols, nnz, type, true, space, matrix) : status;
}

sp_status sp_csr_create_like(sp_context *context, const sp_csr *like, int64_t rows, int64_t cols, int64_t nnz,
                             sp_space space, sp_csr *matrix)
{
    return create(context, rows, cols, nnz, like->value_type, like->values != NULL, space, matrix);
}

void sp_csr_free(sp_context *context, sp_csr *matrix)
{
    if (!matrix) return;
    sp_array_free(context, matrix->space, matrix->row_offsets);
    sp_array_free(context, matrix->space, matrix->col_indices);
    sp_array_free(context, matrix->space, matrix->values);
    memset(matrix, 0, sizeof *matrix);
}

sp_status sp_csr_copy(sp_context *context, const sp_csr *source, sp_space space, sp_csr *copy)
{
    sp_csr made = {0};
    sp_status status;
    TRY(sp_require_csr(context, __func__, "source", source));
    TRY(sp_require_space(context, __func__, "copy", space));
    TRY(sp_require_output(context, __func__, "copy", copy, "source", source));
    TRY(sp_csr_create_like(context, source, source->rows, source->cols, source->nnz, space, &made));
    const sp_backend *backend = context->backend;
    size_t nnz = (size_t)source->nnz;
    TRY(backend->copy(context, made.row_offsets, space, source->row_offsets, source->space,
                      ((size_t)source->rows + 1) * sizeof(int64_t)));
    TRY(backend->copy(context, made.col_indices, space, source->col_indices, source->space,
                      nnz * sizeof(int32_t)));
    if (source->values)
        TRY(backend->copy(context, made.values, space, source->values, source->space,
                          nnz * sp_value_size(source->value_type)));
done:
    if (status == SP_OK) *copy = made;
    else sp_csr_free(context, &made);
    return status;
}

/* ---- validation ---------------------------------------------------------------------------------------- */

static sp_status check_on_host(sp_context *context, const sp_csr *matrix)
{
    sp_watch watch = {context, false};
    const int64_t *offsets = matrix->row_offsets;
    if (matrix->rows < 0 || matrix->cols < 0 || matrix->rows > INT32_MAX || matrix->cols > INT32_MAX ||
        matrix->nnz < 0)
        return sp_fail(context, SP_ERROR_MATRIX, "impossible size %lld x %lld with %lld nonzeros",
                       (long long)matrix->rows, (long long)matrix->cols, (long long)matrix->nnz);
    if (!offsets || (matrix->nnz > 0 && !matrix->col_indices))
        return sp_fail(context, SP_ERROR_MATRIX, "the matrix has no row offsets or no column indices");
    if (offsets[0] != 0 || offsets[matrix->rows] != matrix->nnz)
        return sp_fail(context, SP_ERROR_MATRIX, "row offsets run from %lld to %lld, not from 0 to %lld",
                       (long long)offsets[0], (long long)offsets[matrix->rows], (long long)matrix->nnz);
    for (int64_t i = 0; i < matrix->rows; i++) {
        if (offsets[i + 1] < offsets[i] || offsets[i + 1] > matrix->nnz)
            return sp_fail(context, SP_ERROR_MATRIX, "row offsets descend after row %lld", (long long)i);
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++) {
            int32_t col = matrix->col_indices[k];
            if (sp_stops_at(&watch, k)) return sp_watched(&watch);
            if (col < 0 || col >= matrix->cols)
                return sp_fail(context, SP_ERROR_MATRIX, "row %lld has column %d, outside 0..%lld", (long long)i, col,
                               (long long)matrix->cols - 1);
            if (k > offsets[i] && matrix->col_indices[k - 1] >= col)
                return sp_fail(context, SP_ERROR_MATRIX,
                               "row %lld has column %d after column %d: sort and combine first",
                               (long long)i, col, matrix->col_indices[k - 1]);
            if (!isfinite(entry_value(matrix, k)))
                return sp_fail(context, SP_ERROR_NOT_FINITE, "row %lld column %d is %g", (long long)i, col,
                               entry_value(matrix, k));
        }
    }
    return SP_OK;
}

/* ---- transpose, permutation, inflation ------------------------------------------------------------------ */

sp_status sp_csr_check(sp_context *context, const sp_csr *matrix)
{
    sp_csr copy = {0};
    sp_status status;
    TRY(sp_require(context, __func__, "matrix", matrix));
    TRY(sp_require_space(context, __func__, "matrix", matrix->space));
    if (matrix->space == SP_DEVICE) {
        bool sound;
        TRY(sp_require_csr(context, __func__, "matrix", matrix));
        TRY(context->backend->is_sound(context, matrix, &sound));
        if (sound) return SP_OK;
        TRY(sp_csr_copy(context, matrix, SP_HOST, &copy));
        matrix = &copy;
    }
    TRY(check_on_host(context, matrix));
done:
    sp_csr_free(context, &copy);
    return status;
}

static sp_status fill_transpose(sp_context *context, const sp_csr *a, const sp_csr *b)
{
    const sp_triples t = {.rows = a->cols, .cols = a->rows, .count = a->nnz, .row_indices = a->col_indices,
                          .col_offsets = a->row_offsets, .values = a->values, .type = a->value_type};
    return a->space == SP_HOST ? sp_coo_by_columns(context, &t, b) : context->backend->transpose(context, a, b);
}

sp_status sp_csr_transpose(sp_context *context, const sp_csr *a, sp_csr *b)
{
    sp_csr made = {0};
    sp_status status;
    TRY(sp_require_csr(context, __func__, "A", a));
    TRY(sp_require_output(context, __func__, "B", b, "A", a));
    TRY(sp_csr_create_like(context, a, a->cols, a->rows, a->nnz, a->space, &made));
    TRY(fill_transpose(context, a, &made));
    *b = made;
    made = (sp_csr){0};
done:
    sp_csr_free(context, &made);
    return status;
}

sp_status sp_csr_transpose_into(sp_context *context, const sp_csr *a, const sp_csr *b)
{
    sp_status status;
    TRY(sp_require_csr(context, __func__, "A", a));
    TRY(sp_require_output(context, __func__, "B", b, "A", a));
    const sp_csr wanted = {.rows = a->cols, .cols = a->rows, .values = a->values, .value_type = a->value_type};
    TRY(sp_require_target(context, __func__, "B", b, &wanted));
    TRY(sp_require_csr_apart(context, __func__, "B", b, "A", a));
    if (b->nnz != a->nnz || b->space != a->space)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: B has %lld entries in %s memory and A %lld in %s memory",
                       __func__, (long long)b->nnz, b->space == SP_HOST ? "host" : "device", (long long)a->nnz,
                       a->space == SP_HOST ? "host" : "device");
    TRY(fill_transpose(context, a, b));
done:
    return status;
}

sp_status sp_csr_sort(sp_context *context, const sp_csr *a, sp_csr *b)
{
    sp_csr turned = {0};
    sp_status status;
    TRY(sp_require_csr(context, __func__, "A", a));
    TRY(sp_require_output(context, __func__, "B", b, "A", a));
    TRY(sp_csr_transpose(context, a, &turned));
    TRY(sp_csr_transpose(context, &turned, b));
done:
    sp_csr_free(context, &turned);
    return status;
}

typedef struct permutation {
    const sp_csr *a;
    const int32_t *row, *column;
    sp_csr *b;
    int shift; /* for sp_make_entry */
    sp_watch *watch;
} permutation;

/* Rows, columns and their new numbers lie anywhere in memory. Prefetches the offsets of the row 24 rows ahead, the
 * entries of the row 16 ahead, and the new numbers of the columns of the row 8 ahead. Without this, half of the time is
 * waiting. */
static inline void prefetch_row(const permutation *p, int64_t i, size_t size)
{
    const sp_csr *a = p->a;
    if (i + 24 >= a->rows) return;
    __builtin_prefetch(&a->row_offsets[p->row[i + 24]]);
    const int64_t start = a->row_offsets[p->row[i + 16]], near = a->row_offsets[p->row[i + 8]];
    const int64_t end = a->row_offsets[p->row[i + 8] + 1];
    __builtin_prefetch(a->col_indices + start);
    if (a->values) __builtin_prefetch((const char *)a->values + (size_t)start * size);
    for (int64_t k = near; k < end && k < near + 16; k++) __builtin_prefetch(p->column + a->col_indices[k]);
}

/* `list` has room for the row. */
KERNEL void permute_row(const permutation *p, int64_t i, sp_entry *list, size_t size)
{
    const int64_t source = p->a->row_offsets[p->row[i]], target = p->b->row_offsets[i];
    const int64_t length = p->b->row_offsets[i + 1] - target;
    const char *from = p->a->values;
    char *to = p->b->values;
    prefetch_row(p, i, size);
    for (int64_t k = 0; k < length; k++)
        list[k] = sp_make_entry(p->column[p->a->col_indices[source + k]], k, p->shift);
    sp_sort_entries(list, length, p->watch);
    for (int64_t k = 0; k < length; k++) p->b->col_indices[target + k] = sp_entry_col(list[k], p->shift);
    for (int64_t k = 0; k < length && from; k++)
        memcpy(to + (size_t)(target + k) * size, from + (size_t)(source + sp_entry_source(list[k], p->shift)) * size,
               size);
}

static sp_status check_permutation(sp_context *context, const sp_csr *a, const int32_t *row, const int32_t *column,
                                   const sp_csr *b)
{
    static const char call[] = "sp_csr_permute";
    sp_status status = sp_require_csr(context, call, "A", a);
    if (status == SP_OK && a->rows > 0) status = sp_require(context, call, "row", row);
    if (status == SP_OK && a->cols > 0) status = sp_require(context, call, "column", column);
    if (status == SP_OK) status = sp_require_output(context, call, "B", b, "A", a);
    if (status == SP_OK && a->space != SP_HOST)
        status = sp_fail(context, SP_ERROR_UNSUPPORTED, "only host matrices can be permuted");
    return status;
}

sp_status sp_csr_permute(sp_context *context, const sp_csr *a, const int32_t *row, const int32_t *column, sp_csr *b)
{
    sp_csr made = {0};
    sp_entry *lists = NULL;
    int64_t longest = 0;
    sp_watch watch = {context, false};
    sp_status status;
    TRY(check_permutation(context, a, row, column, b));
    TRY(sp_csr_create_like(context, a, a->rows, a->cols, a->nnz, SP_HOST, &made));
    const int threads = sp_threads_for(context, 5 * a->nnz + a->rows);
    const permutation p = {a, row, column, &made, sp_entry_shift(a->cols), &watch};
    made.row_offsets[0] = 0;
#pragma omp parallel for schedule(static) reduction(max : longest) num_threads(threads)
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t length = a->row_offsets[row[i] + 1] - a->row_offsets[row[i]];
        made.row_offsets[i + 1] = length;
        if (length > longest) longest = length;
    }
    for (int64_t i = 0; i < a->rows; i++) made.row_offsets[i + 1] += made.row_offsets[i];
    TRY(sp_alloc(context, longest * threads, sizeof *lists, (void **)&lists));
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t i = 0; i < a->rows; i++) {
        if (sp_stops(&watch)) continue;
        sp_entry *list = lists + longest * omp_get_thread_num();
        if (a->value_type == SP_F32) permute_row(&p, i, list, sizeof(float));
        else permute_row(&p, i, list, sizeof(double));
    }
    TRY(sp_watched(&watch));
done:
    sp_free(context, lists);
    if (status == SP_OK) *b = made;
    else sp_csr_free(context, &made);
    return status;
}

sp_status sp_csr_inflate(sp_context *context, sp_csr *matrix, double power)
{
    const sp_status status = sp_require_csr(context, __func__, "matrix", matrix);
    if (status != SP_OK) return status;
    if (matrix->space != SP_HOST || matrix->value_type != SP_F32 || !matrix->values)
        return sp_fail(context, SP_ERROR_ARGUMENT, "inflation needs a host matrix of f32 values");
    if (!(power > 0)) return sp_fail(context, SP_ERROR_ARGUMENT, "inflation %g is not above 0", power);
    sp_watch watch = {context, false};
    float *values = matrix->values;
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, 10 * matrix->nnz))
    for (int64_t i = 0; i < matrix->rows; i++) {
        double sum = 0;
        if (sp_stops(&watch)) continue;
        for (int64_t k = matrix->row_offsets[i]; k < matrix->row_offsets[i + 1]; k++) {
            if (power != 1) values[k] = (float)pow((double)values[k], power);
            sum += (double)values[k];
        }
        if (sum == 0) continue;
        for (int64_t k = matrix->row_offsets[i]; k < matrix->row_offsets[i + 1]; k++)
            values[k] = (float)((double)values[k] / sum);
    }
    return sp_watched(&watch);
}
