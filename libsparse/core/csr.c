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

/* Entries of a row while they are sorted: the column in the upper bits, where the entry comes from in the lower ones,
 * so that one comparison of integers sorts by column and keeps duplicates in the order of their appearance. */
typedef uint64_t entry;

static inline int entry_shift(int64_t cols)
{
    int shift = 64;
    while (shift > 33 && (cols - 1) >> (64 - shift) > 0) shift--;
    return shift < 64 ? shift : 63;
}

static inline entry make_entry(int32_t col, int64_t source, int shift) { return (uint64_t)col << shift | (uint64_t)source; }
static inline int32_t entry_col(entry e, int shift) { return (int32_t)(e >> shift); }
static inline int64_t entry_source(entry e, int shift) { return (int64_t)(e & (((uint64_t)1 << shift) - 1)); }

static void sift_down(entry *heap, int64_t root, int64_t count)
{
    entry moving = heap[root];
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && heap[child] < heap[child + 1]) child++;
        if (moving >= heap[child]) break;
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
        entry pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        int64_t i = -1, j = count;
        for (;;) {
            do i++; while (list[i] < pivot);
            do j--; while (pivot < list[j]);
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
        for (; j > 0 && moving < list[j - 1]; j--) list[j] = list[j - 1];
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
    case SP_COMBINE_SUM:
    case SP_COMBINE_MEAN: return kept + next;
    case SP_COMBINE_COUNT: return kept + 1;
    case SP_COMBINE_MAX: return next > kept ? next : kept;
    case SP_COMBINE_MIN: return next < kept ? next : kept;
    case SP_COMBINE_FIRST: break;
    }
    return kept;
}

/* Turns one row's entries, sorted, into columns and values; returns how many are left. */
static int64_t combine_row(const entry *list, int64_t count, int shift, const void *values, sp_value_type type,
                           sp_combine rule, int32_t *cols, void *out)
{
    int64_t left = 0;
    for (int64_t i = 0; i < count;) {
        int32_t col = entry_col(list[i], shift);
        double value = 1.0;
        const int64_t first = i;
        for (; i < count && entry_col(list[i], shift) == col; i++) {
            int64_t s = entry_source(list[i], shift);
            double next = !values ? 1.0 : type == SP_F32 ? ((const float *)values)[s] : ((const double *)values)[s];
            if (i == first) value = rule == SP_COMBINE_COUNT ? 1 : next;
            else value = combine(value, next, rule);
        }
        if (rule == SP_COMBINE_MEAN) value /= (double)(i - first);
        cols[left] = col;
        if (type == SP_F32) ((float *)out)[left] = (float)value;
        else ((double *)out)[left] = value;
        left++;
    }
    return left;
}

typedef struct triples {
    int64_t count;
    const int32_t *rows, *cols;
    bool symmetric;
} triples;

/* counts[i] = entries of row i, mirror images included. Every thread reads all triples and counts those of its own
 * rows: reading is cheap, and no two threads write to one place. */
static void count_rows(const triples *t, int64_t rows, int threads, int64_t *counts)
{
#pragma omp parallel num_threads(threads)
    {
        const int32_t low = (int32_t)(rows * omp_get_thread_num() / omp_get_num_threads());
        const int32_t high = (int32_t)(rows * (omp_get_thread_num() + 1) / omp_get_num_threads());
        for (int64_t i = 0; i < t->count; i++) {
            const int32_t row = t->rows[i], col = t->cols[i];
            if (row >= low && row < high) counts[row]++;
            if (t->symmetric && col != row && col >= low && col < high) counts[col]++;
        }
    }
}

/* The first row whose entries begin at or after `place`. */
static int64_t row_at(const int64_t *starts, int64_t rows, int64_t place)
{
    int64_t low = 0, high = rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (starts[middle] < place) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Places every triple (and its mirror image) into the bucket of its row, in the order of appearance. `next` holds
 * each row's write position. Threads read all triples and place those of their own rows, about equally many. */
static void scatter(const triples *t, const int64_t *starts, int64_t rows, int threads, int shift, int64_t *next,
                    entry *list)
{
#pragma omp parallel num_threads(threads)
    {
        const int64_t share = starts[rows] / omp_get_num_threads() + 1;
        const int64_t low = row_at(starts, rows, share * omp_get_thread_num());
        const int64_t high = row_at(starts, rows, share * (omp_get_thread_num() + 1));
        for (int64_t i = 0; i < t->count; i++) {
            const int32_t row = t->rows[i], col = t->cols[i];
            if (row >= low && row < high) list[next[row]++] = make_entry(col, i, shift);
            if (t->symmetric && col != row && col >= low && col < high) list[next[col]++] = make_entry(row, i, shift);
        }
    }
}

static sp_status check_triples(sp_context *context, int64_t rows, int64_t cols, const triples *t)
{
    int64_t bad = INT64_MAX;
    if (rows < 0 || cols < 0 || rows > INT32_MAX || cols > INT32_MAX || t->count < 0 || (t->symmetric && rows != cols))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld triples for a %lld x %lld matrix%s", (long long)t->count,
                       (long long)rows, (long long)cols, t->symmetric ? ", symmetric" : "");
    if (t->count >> entry_shift(cols) > 0)
        return sp_fail(context, SP_ERROR_OVERFLOW, "%lld triples at once are more than 2^33", (long long)t->count);
#pragma omp parallel for schedule(static) reduction(min : bad) num_threads(sp_threads_for(context, t->count))
    for (int64_t i = 0; i < t->count; i++)
        if ((t->rows[i] < 0 || t->rows[i] >= rows || t->cols[i] < 0 || t->cols[i] >= cols) && i < bad) bad = i;
    if (bad < INT64_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "triple %lld is at (%d, %d), outside %lld x %lld", (long long)bad,
                       t->rows[bad], t->cols[bad], (long long)rows, (long long)cols);
    return SP_OK;
}

/* Moves rows together that combining made shorter; next[i] is the length of row i, starts[i] where it lies. */
static void close_gaps(const int64_t *starts, const int64_t *next, size_t size, sp_csr *made)
{
    int64_t nnz = 0;
    for (int64_t i = 0; i < made->rows; i++) {
        made->row_offsets[i] = nnz;
        if (nnz != starts[i]) {
            memmove(made->col_indices + nnz, made->col_indices + starts[i], (size_t)next[i] * sizeof(int32_t));
            memmove((char *)made->values + (size_t)nnz * size, (char *)made->values + (size_t)starts[i] * size,
                    (size_t)next[i] * size);
        }
        nnz += next[i];
    }
    made->row_offsets[made->rows] = made->nnz = nnz;
}

sp_status sp_csr_from_coo(sp_context *context, int64_t rows, int64_t cols, int64_t count, const int32_t *row_indices,
                          const int32_t *col_indices, const void *values, sp_value_type type, sp_combine rule,
                          bool symmetric, sp_csr *matrix)
{
    const triples t = {count, row_indices, col_indices, symmetric};
    /* Below some thousand triples a second thread costs more than it brings. */
    const int threads = sp_threads_for(context, 3 * count), shift = entry_shift(cols);
    const size_t size = sp_value_size(type);
    sp_csr made = {0};
    int64_t *starts = NULL, *next = NULL;
    entry *list = NULL;
    memset(matrix, 0, sizeof *matrix);
    sp_status status = check_triples(context, rows, cols, &t);
    if (status != SP_OK) return status;

    SP_TRY(sp_calloc(context, rows + 1, sizeof *starts, (void **)&starts));
    SP_TRY(sp_alloc(context, rows, sizeof *next, (void **)&next));
    count_rows(&t, rows, threads, starts + 1);
    for (int64_t i = 0; i < rows; i++) {
        next[i] = starts[i];
        starts[i + 1] += starts[i];
    }
    SP_TRY(sp_alloc(context, starts[rows], sizeof *list, (void **)&list));
    scatter(&t, starts, rows, threads, shift, next, list);

    /* The sorted list's size bounds the result; the slack of duplicates is given back at the end. */
    SP_TRY(sp_csr_create(context, rows, cols, starts[rows], type, SP_HOST, &made));
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (int64_t i = 0; i < rows; i++) {
        const int64_t length = starts[i + 1] - starts[i];
        sort_entries(list + starts[i], length, sorting_depth(length));
        next[i] = combine_row(list + starts[i], length, shift, values, type, rule, made.col_indices + starts[i],
                              (char *)made.values + (size_t)starts[i] * size);
    }
    close_gaps(starts, next, size, &made);
    SP_TRY(sp_grow(context, made.nnz, made.nnz, sizeof(int32_t), (void **)&made.col_indices));
    SP_TRY(sp_grow(context, made.nnz, made.nnz, size, &made.values));
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
    if (a->space != SP_HOST)
        return context->backend->transpose ? context->backend->transpose(context, a, b)
                                           : sp_fail(context, SP_ERROR_ARGUMENT, "a CPU context cannot reach device memory");
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
    const int shift = entry_shift(a->cols);
#pragma omp parallel for schedule(dynamic, 256) num_threads(context->threads)
    for (int64_t i = 0; i < a->rows; i++) {
        entry *list = lists + longest * omp_get_thread_num();
        const int64_t source = a->row_offsets[row[i]], target = made.row_offsets[i];
        const int64_t length = made.row_offsets[i + 1] - target;
        for (int64_t k = 0; k < length; k++) list[k] = make_entry(column[a->col_indices[source + k]], k, shift);
        sort_entries(list, length, sorting_depth(length));
        for (int64_t k = 0; k < length; k++) {
            const int64_t from = source + entry_source(list[k], shift);
            made.col_indices[target + k] = entry_col(list[k], shift);
            memcpy((char *)made.values + (size_t)(target + k) * size, (char *)a->values + (size_t)from * size, size);
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
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, 10 * matrix->nnz))
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
