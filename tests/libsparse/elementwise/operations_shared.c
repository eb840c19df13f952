/* What the parts of test_operations share. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "operations_shared.h"

dense dense_create(int64_t rows, int64_t cols)
{
    const size_t count = (size_t)(rows * cols) + 1;
    dense d = {rows, cols, calloc(count, sizeof *d.number), calloc(count, sizeof *d.there)};
    ck_assert(d.number && d.there);
    return d;
}

void dense_free(dense *d) { free_all(d->number, d->there); }

dense dense_of(const sp_csr *m)
{
    dense d = dense_create(m->rows, m->cols);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t k = m->row_offsets[i]; k < m->row_offsets[i + 1]; k++) {
            d.number[i * m->cols + m->col_indices[k]] = test_value(m, k);
            d.there[i * m->cols + m->col_indices[k]] = true;
        }
    return d;
}

double rounded(double value, sp_value_type type) { return type == SP_F32 ? (double)(float)value : value; }

void check_matrix(sp_context *context, sp_csr *m, dense *expected, uint64_t seed)
{
    const unsigned long long s = (unsigned long long)seed;
    test_expect(m->space == test_space(context), "seed %llu: in the wrong space", s);
    test_to_host(context, m);
    ck_ok(context, sp_csr_check(context, m));
    test_expect(m->rows == expected->rows && m->cols == expected->cols, "seed %llu: %lld x %lld, not %lld x %lld", s,
                (long long)m->rows, (long long)m->cols, (long long)expected->rows, (long long)expected->cols);
    dense found = dense_of(m);
    for (int64_t i = 0; i < m->rows * m->cols; i++)
        test_expect(found.there[i] == expected->there[i] && found.number[i] == expected->number[i],
                    "seed %llu: (%lld, %lld) is %d %.17g, not %d %.17g", s, (long long)(i / m->cols),
                    (long long)(i % m->cols), found.there[i], found.number[i], expected->there[i],
                    expected->number[i]);
    dense_free(&found);
    dense_free(expected);
    sp_csr_free(context, m);
}

static const double densities[] = {0, 0.02, 0.2, 0.6, 1};

sp_csr random_matrix(sp_context *context, test_random *random, int64_t rows, int64_t cols, sp_value_type type)
{
    return test_matrix(context, random, rows, cols, densities[test_below(random, 5)], type,
                       (test_values)test_below(random, 4));
}

sp_csr send(sp_context *context, test_random *random, const sp_csr *m)
{
    sp_csr copy;
    const sp_space space = test_below(random, 2) ? test_space(context) : SP_HOST;
    ck_ok(context, sp_csr_copy(context, m, space, &copy));
    return copy;
}

void *send_array(sp_context *context, test_random *random, const void *from, int64_t count, size_t size,
                 sp_space *space)
{
    void *to;
    *space = test_below(random, 2) ? test_space(context) : SP_HOST;
    ck_ok(context, sp_array_create(context, count, size, *space, &to));
    ck_ok(context, sp_array_copy(context, count, size, to, *space, from, SP_HOST));
    return to;
}

sp_csr spread_matrix(sp_context *context, int64_t rows, int64_t cols, int64_t length, int64_t full,
                     sp_value_type type, uint64_t seed)
{
    test_random random = test_seed(seed);
    sp_csr m;
    ck_ok(context, sp_csr_create(context, rows, cols, rows * length + cols, type, SP_HOST, &m));
    int64_t at = 0;
    for (int64_t i = 0; i < rows; i++) {
        m.row_offsets[i] = at;
        const int64_t count = i == full ? cols : length;
        for (int64_t k = 0; k < count; k++, at++) {
            m.col_indices[at] = (int32_t)(cols * k / count + test_below(&random, cols / count));
            const double value = rounded(2 * test_unit(&random) - 1, type);
            test_set(&m, at, value);
        }
    }
    m.row_offsets[rows] = m.nnz = at;
    ck_ok(context, sp_csr_check(context, &m));
    return m;
}

static double reduced_row(const sp_csr *m, int64_t i, sp_combine combine)
{
    const int64_t begin = m->row_offsets[i], count = m->row_offsets[i + 1] - begin;
    double sum = 0, most = -INFINITY, least = INFINITY;
    for (int64_t k = begin; k < begin + count; k++) {
        sum += test_value(m, k);
        most = fmax(most, test_value(m, k));
        least = fmin(least, test_value(m, k));
    }
    if (count == 0) return 0;
    switch (combine) {
    case SP_COMBINE_SUM: return sum;
    case SP_COMBINE_MAX: return most;
    case SP_COMBINE_MIN: return least;
    case SP_COMBINE_FIRST: return test_value(m, begin);
    case SP_COMBINE_MEAN: return sum / (double)count;
    case SP_COMBINE_COUNT: break;
    }
    return (double)count;
}

void check_rows(sp_context *context, test_random *random, const sp_csr *m)
{
    sp_csr a = send(context, random, m);
    double *result = calloc((size_t)m->rows + 1, sizeof *result);
    int32_t *order = calloc((size_t)m->rows + 1, sizeof *order);
    ck_assert(result && order);
    for (int combine = SP_COMBINE_SUM; combine <= SP_COMBINE_COUNT; combine++) {
        sp_space space;
        void *there = send_array(context, random, result, m->rows, sizeof *result, &space);
        ck_ok(context, sp_csr_reduce_rows(context, &a, (sp_combine)combine, there, space));
        ck_ok(context, sp_array_copy(context, m->rows, sizeof *result, result, SP_HOST, there, space));
        sp_array_free(context, space, there);
        for (int64_t i = 0; i < m->rows; i++) {
            const double expected = reduced_row(m, i, (sp_combine)combine);
            const bool sums = combine == SP_COMBINE_SUM || combine == SP_COMBINE_MEAN;
            const double error = sums ? 1e-15 * (double)(m->row_offsets[i + 1] - m->row_offsets[i]) : 0;
            test_expect(fabs(result[i] - expected) <= error,
                        "seed %llu: row %lld of %lld x %lld by %d is %.17g, not %.17g",
                        (unsigned long long)random->seed, (long long)i, (long long)m->rows, (long long)m->cols,
                        combine, result[i], expected);
        }
    }
    sp_space space;
    void *there = send_array(context, random, order, m->rows, sizeof *order, &space);
    ck_ok(context, sp_csr_degree_order(context, &a, there, space));
    ck_ok(context, sp_array_copy(context, m->rows, sizeof *order, order, SP_HOST, there, space));
    sp_array_free(context, space, there);
    for (int64_t i = 0; i < m->rows; i++) {
        const int32_t row = order[i], before = i > 0 ? order[i - 1] : -1;
        test_expect(row >= 0 && row < m->rows, "seed %llu: row %d", (unsigned long long)random->seed, row);
        if (i == 0) continue;
        const int64_t length = m->row_offsets[row + 1] - m->row_offsets[row];
        const int64_t longer = m->row_offsets[before + 1] - m->row_offsets[before];
        test_expect(longer > length || (longer == length && before < row),
                    "seed %llu: row %d of %lld entries before row %d of %lld", (unsigned long long)random->seed,
                    before, (long long)longer, row, (long long)length);
    }
    free_all(result, order);
    sp_csr_free(context, &a);
}
