/* Compressed sparse rows: life, copies between spaces, validation, COO → CSR, transpose, inflation. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "internal.h"

/* ---- life ---------------------------------------------------------------------------------------------- */

sp_status sp_csr_create(sp_context *context, int64_t rows, int64_t cols, int64_t nnz, sp_value_type type,
                        sp_space space, sp_csr *matrix)
{
    memset(matrix, 0, sizeof *matrix);
    if (rows < 0 || cols < 0 || nnz < 0 || rows > INT32_MAX || cols > INT32_MAX)
        return sp_fail(context, SP_ERROR_OVERFLOW, "a matrix of %lld x %lld with %lld nonzeros: dimensions end at %d",
                       (long long)rows, (long long)cols, (long long)nnz, INT32_MAX);
    sp_csr made = {.rows = rows, .cols = cols, .nnz = nnz, .value_type = type, .space = space};
    sp_status status = SP_OK;
    if (space == SP_HOST) {
        SP_TRY(sp_alloc(context, rows + 1, sizeof(int64_t), (void **)&made.row_offsets));
        SP_TRY(sp_alloc(context, nnz, sizeof(int32_t), (void **)&made.col_indices));
        SP_TRY(sp_alloc(context, nnz, sp_value_size(type), &made.values));
    } else {
        size_t offsets, indices, values;
        if (context->backend->space != SP_DEVICE)
            return sp_fail(context, SP_ERROR_ARGUMENT, "a device matrix needs a CUDA context");
        if (!sp_mul_size((size_t)rows + 1, sizeof(int64_t), &offsets) ||
            !sp_mul_size((size_t)nnz, sizeof(int32_t), &indices) ||
            !sp_mul_size((size_t)nnz, sp_value_size(type), &values))
            return sp_fail(context, SP_ERROR_OVERFLOW, "%lld nonzeros are more than memory can address", (long long)nnz);
        SP_TRY(context->backend->allocate(context, offsets, (void **)&made.row_offsets));
        SP_TRY(context->backend->allocate(context, indices ? indices : 1, (void **)&made.col_indices));
        SP_TRY(context->backend->allocate(context, values ? values : 1, &made.values));
    }
done:
    if (status == SP_OK) *matrix = made;
    else sp_csr_free(context, &made);
    return status;
}

void sp_csr_free(sp_context *context, sp_csr *matrix)
{
    void *arrays[3] = {matrix->row_offsets, matrix->col_indices, matrix->values};
    for (int i = 0; i < 3; i++) {
        if (!arrays[i]) continue;
        if (matrix->space == SP_HOST) sp_free(context, arrays[i]);
        else context->backend->release(context, arrays[i]);
    }
    memset(matrix, 0, sizeof *matrix);
}

sp_status sp_csr_copy(sp_context *context, const sp_csr *source, sp_space space, sp_csr *copy)
{
    sp_csr made;
    memset(copy, 0, sizeof *copy);
    sp_status status = sp_csr_create(context, source->rows, source->cols, source->nnz, source->value_type, space, &made);
    if (status != SP_OK) return status;
    const sp_backend *backend = context->backend;
    size_t nnz = (size_t)source->nnz;
    SP_TRY(backend->copy(context, made.row_offsets, space, source->row_offsets, source->space,
                         ((size_t)source->rows + 1) * sizeof(int64_t)));
    SP_TRY(backend->copy(context, made.col_indices, space, source->col_indices, source->space, nnz * sizeof(int32_t)));
    if (source->values) {
        SP_TRY(backend->copy(context, made.values, space, source->values, source->space,
                             nnz * sp_value_size(source->value_type)));
    } else {
        if (space == SP_HOST) sp_free(context, made.values);
        else backend->release(context, made.values);
        made.values = NULL;
    }
done:
    if (status == SP_OK) *copy = made;
    else sp_csr_free(context, &made);
    return status;
}

/* ---- validation ---------------------------------------------------------------------------------------- */

static inline double value_at(const sp_csr *matrix, int64_t i)
{
    if (!matrix->values) return 1.0;
    return matrix->value_type == SP_F32 ? ((const float *)matrix->values)[i] : ((const double *)matrix->values)[i];
}

sp_status sp_csr_check(sp_context *context, const sp_csr *matrix)
{
    const int64_t *offsets = matrix->row_offsets;
    if (matrix->space != SP_HOST) return sp_fail(context, SP_ERROR_ARGUMENT, "only host matrices can be checked");
    if (matrix->rows < 0 || matrix->cols < 0 || matrix->rows > INT32_MAX || matrix->cols > INT32_MAX || matrix->nnz < 0)
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
            if (col < 0 || col >= matrix->cols)
                return sp_fail(context, SP_ERROR_MATRIX, "row %lld has column %d, outside 0..%lld", (long long)i, col,
                               (long long)matrix->cols - 1);
            if (k > offsets[i] && matrix->col_indices[k - 1] >= col)
                return sp_fail(context, SP_ERROR_MATRIX, "row %lld has column %d after column %d: sort and combine first",
                               (long long)i, col, matrix->col_indices[k - 1]);
            if (!isfinite(value_at(matrix, k)))
                return sp_fail(context, SP_ERROR_NOT_FINITE, "row %lld column %d is %g", (long long)i, col,
                               value_at(matrix, k));
        }
    }
    return SP_OK;
}

/* ---- COO → CSR ----------------------------------------------------------------------------------------- */

/* An entry while its row is sorted: `order` keeps duplicates in the order of their appearance. */
typedef struct entry {
    int32_t col;
    int64_t source;
} entry;

static inline bool entry_before(entry a, entry b) { return a.col < b.col || (a.col == b.col && a.source < b.source); }

static void sift_down(entry *heap, int64_t root, int64_t count)
{
    entry moving = heap[root];
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && entry_before(heap[child], heap[child + 1])) child++;
        if (!entry_before(moving, heap[child])) break;
        heap[root] = heap[child];
    }
    heap[root] = moving;
}

/* Quicksort with the median of three, heap sort when it goes too deep, insertion sort for the short ends: rows are
 * mostly short, and a row of many million entries must not take quadratic time. */
static void sort_entries(entry *list, int64_t count, int depth)
{
    while (count > 24) {
        if (depth-- == 0) {
            for (int64_t i = count / 2; i-- > 0;) sift_down(list, i, count);
            for (int64_t i = count; i-- > 1;) {
                entry last = list[i];
                list[i] = list[0];
                list[0] = last;
                sift_down(list, 0, i);
            }
            return;
        }
        entry a = list[0], b = list[count / 2], c = list[count - 1];
        entry pivot = entry_before(a, b) ? (entry_before(b, c) ? b : entry_before(a, c) ? c : a)
                                         : (entry_before(a, c) ? a : entry_before(b, c) ? c : b);
        int64_t i = -1, j = count;
        for (;;) {
            do i++; while (entry_before(list[i], pivot));
            do j--; while (entry_before(pivot, list[j]));
            if (i >= j) break;
            entry swap = list[i];
            list[i] = list[j];
            list[j] = swap;
        }
        sort_entries(list + j + 1, count - j - 1, depth);
        count = j + 1;
    }
    for (int64_t i = 1; i < count; i++) {
        entry moving = list[i];
        int64_t j = i;
        for (; j > 0 && entry_before(moving, list[j - 1]); j--) list[j] = list[j - 1];
        list[j] = moving;
    }
}

/* How deep a quicksort of `count` entries goes unless the input defeats it. */
static int sorting_depth(int64_t count)
{
    int depth = 2;
    for (; count; count >>= 1) depth += 2;
    return depth;
}

static inline double combine(double kept, double next, sp_combine rule)
{
    switch (rule) {
    case SP_COMBINE_SUM: return kept + next;
    case SP_COMBINE_MAX: return next > kept ? next : kept;
    case SP_COMBINE_MIN: return next < kept ? next : kept;
    case SP_COMBINE_FIRST: break;
    }
    return kept;
}

/* Turns one row's entries, sorted, into columns and values; returns how many are left. */
static int64_t combine_row(const entry *list, int64_t count, const void *values, sp_value_type type, sp_combine rule,
                           int32_t *cols, void *out)
{
    int64_t left = 0;
    for (int64_t i = 0; i < count;) {
        int32_t col = list[i].col;
        double value = 1.0;
        for (int64_t first = i; i < count && list[i].col == col; i++) {
            int64_t s = list[i].source;
            double next = !values ? 1.0 : type == SP_F32 ? ((const float *)values)[s] : ((const double *)values)[s];
            value = i == first ? next : combine(value, next, rule);
        }
        cols[left] = col;
        if (type == SP_F32) ((float *)out)[left] = (float)value;
        else ((double *)out)[left] = value;
        left++;
    }
    return left;
}

/* Places every triple (and its mirror image) into the bucket of its row. `next` holds each row's write position.
 * Serial on purpose: the order inside a row is then the order of appearance, and the pass is bound by memory. */
static void scatter(int64_t count, const int32_t *rows, const int32_t *cols, bool symmetric, int64_t *next, entry *list)
{
    for (int64_t i = 0; i < count; i++) {
        list[next[rows[i]]++] = (entry){cols[i], i};
        if (symmetric && rows[i] != cols[i]) list[next[cols[i]]++] = (entry){rows[i], i};
    }
}

sp_status sp_csr_from_coo(sp_context *context, int64_t rows, int64_t cols, int64_t count, const int32_t *row_indices,
                          const int32_t *col_indices, const void *values, sp_value_type type, sp_combine rule,
                          bool symmetric, sp_csr *matrix)
{
    sp_csr made = {0};
    int64_t *starts = NULL, *next = NULL;
    entry *list = NULL;
    sp_status status = SP_OK;
    memset(matrix, 0, sizeof *matrix);
    if (rows < 0 || cols < 0 || rows > INT32_MAX || cols > INT32_MAX || count < 0 || count > INT64_MAX / 2 ||
        (symmetric && rows != cols))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld triples for a %lld x %lld matrix%s", (long long)count,
                       (long long)rows, (long long)cols, symmetric ? ", symmetric" : "");
    for (int64_t i = 0; i < count; i++)
        if (row_indices[i] < 0 || row_indices[i] >= rows || col_indices[i] < 0 || col_indices[i] >= cols)
            return sp_fail(context, SP_ERROR_ARGUMENT, "triple %lld is at (%d, %d), outside %lld x %lld", (long long)i,
                           row_indices[i], col_indices[i], (long long)rows, (long long)cols);

    SP_TRY(sp_calloc(context, rows + 1, sizeof *starts, (void **)&starts));
    SP_TRY(sp_alloc(context, rows, sizeof *next, (void **)&next));
    for (int64_t i = 0; i < count; i++) {
        starts[row_indices[i] + 1]++;
        if (symmetric && row_indices[i] != col_indices[i]) starts[col_indices[i] + 1]++;
    }
    for (int64_t i = 0; i < rows; i++) {
        next[i] = starts[i];
        starts[i + 1] += starts[i];
    }
    SP_TRY(sp_alloc(context, starts[rows], sizeof *list, (void **)&list));
    scatter(count, row_indices, col_indices, symmetric, next, list);

    /* The sorted list's size bounds the result; the slack of duplicates is given back at the end. */
    SP_TRY(sp_csr_create(context, rows, cols, starts[rows], type, SP_HOST, &made));
    size_t size = sp_value_size(type);
#pragma omp parallel for schedule(dynamic, 64) num_threads(context->threads)
    for (int64_t i = 0; i < rows; i++) {
        int64_t length = starts[i + 1] - starts[i];
        sort_entries(list + starts[i], length, sorting_depth(length));
        next[i] = combine_row(list + starts[i], length, values, type, rule, made.col_indices + starts[i],
                              (char *)made.values + (size_t)starts[i] * size);
    }
    int64_t nnz = 0;
    for (int64_t i = 0; i < rows; i++) {
        made.row_offsets[i] = nnz;
        if (nnz != starts[i]) {
            memmove(made.col_indices + nnz, made.col_indices + starts[i], (size_t)next[i] * sizeof(int32_t));
            memmove((char *)made.values + (size_t)nnz * size, (char *)made.values + (size_t)starts[i] * size,
                    (size_t)next[i] * size);
        }
        nnz += next[i];
    }
    made.row_offsets[rows] = made.nnz = nnz;
    SP_TRY(sp_grow(context, nnz, nnz, sizeof(int32_t), (void **)&made.col_indices));
    SP_TRY(sp_grow(context, nnz, nnz, size, &made.values));
done:
    sp_free(context, starts);
    sp_free(context, next);
    sp_free(context, list);
    if (status == SP_OK) *matrix = made;
    else sp_csr_free(context, &made);
    return status;
}

/* ---- transpose, permutation, inflation --------------------------------------------------------------------------- */

sp_status sp_csr_transpose(sp_context *context, const sp_csr *a, sp_csr *b)
{
    sp_csr made;
    int64_t *next = NULL;
    memset(b, 0, sizeof *b);
    if (a->space != SP_HOST) return sp_fail(context, SP_ERROR_UNSUPPORTED, "only host matrices can be transposed");
    sp_status status = sp_csr_create(context, a->cols, a->rows, a->nnz, a->value_type, SP_HOST, &made);
    if (status != SP_OK) return status;
    SP_TRY(sp_calloc(context, a->cols + 1, sizeof *next, (void **)&next));
    for (int64_t k = 0; k < a->nnz; k++) next[a->col_indices[k] + 1]++;
    for (int64_t j = 0; j < a->cols; j++) next[j + 1] += next[j];
    memcpy(made.row_offsets, next, ((size_t)a->cols + 1) * sizeof *next);
    if (!a->values) {
        sp_free(context, made.values);
        made.values = NULL;
    }
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
            int64_t to = next[a->col_indices[k]]++;
            made.col_indices[to] = (int32_t)i;
            if (!a->values) continue;
            if (a->value_type == SP_F32) ((float *)made.values)[to] = ((const float *)a->values)[k];
            else ((double *)made.values)[to] = ((const double *)a->values)[k];
        }
done:
    sp_free(context, next);
    if (status == SP_OK) *b = made;
    else sp_csr_free(context, &made);
    return status;
}

sp_status sp_csr_permute(sp_context *context, const sp_csr *a, const int32_t *row, const int32_t *column, sp_csr *b)
{
    sp_csr made;
    entry *lists = NULL;
    int64_t longest = 0;
    memset(b, 0, sizeof *b);
    if (a->space != SP_HOST || !a->values)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "only host matrices with values can be permuted");
    sp_status status = sp_csr_create(context, a->rows, a->cols, a->nnz, a->value_type, SP_HOST, &made);
    if (status != SP_OK) return status;
    made.row_offsets[0] = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t length = a->row_offsets[row[i] + 1] - a->row_offsets[row[i]];
        made.row_offsets[i + 1] = made.row_offsets[i] + length;
        if (length > longest) longest = length;
    }
    SP_TRY(sp_alloc(context, longest * context->threads, sizeof *lists, (void **)&lists));
    const size_t size = sp_value_size(a->value_type);
#pragma omp parallel for schedule(dynamic, 256) num_threads(context->threads)
    for (int64_t i = 0; i < a->rows; i++) {
        entry *list = lists + longest * omp_get_thread_num();
        const int64_t source = a->row_offsets[row[i]], target = made.row_offsets[i];
        const int64_t length = made.row_offsets[i + 1] - target;
        for (int64_t k = 0; k < length; k++) list[k] = (entry){column[a->col_indices[source + k]], source + k};
        sort_entries(list, length, sorting_depth(length));
        for (int64_t k = 0; k < length; k++) {
            made.col_indices[target + k] = list[k].col;
            memcpy((char *)made.values + (size_t)(target + k) * size, (char *)a->values + (size_t)list[k].source * size,
                   size);
        }
    }
done:
    sp_free(context, lists);
    if (status == SP_OK) *b = made;
    else sp_csr_free(context, &made);
    return status;
}

sp_status sp_csr_inflate(sp_context *context, sp_csr *matrix, double power)
{
    if (matrix->space != SP_HOST || matrix->value_type != SP_F32 || !matrix->values)
        return sp_fail(context, SP_ERROR_ARGUMENT, "inflation needs a host matrix of f32 values");
    if (!(power > 0)) return sp_fail(context, SP_ERROR_ARGUMENT, "inflation %g is not above 0", power);
    float *values = matrix->values;
#pragma omp parallel for schedule(dynamic, 256) num_threads(context->threads)
    for (int64_t i = 0; i < matrix->rows; i++) {
        double sum = 0;
        for (int64_t k = matrix->row_offsets[i]; k < matrix->row_offsets[i + 1]; k++) {
            if (power != 1) values[k] = (float)pow((double)values[k], power);
            sum += (double)values[k];
        }
        if (sum == 0) continue;
        for (int64_t k = matrix->row_offsets[i]; k < matrix->row_offsets[i + 1]; k++)
            values[k] = (float)((double)values[k] / sum);
    }
    return SP_OK;
}
