/* The implementation of product.h. */
#include "product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *taken(void *block)
{
    if (!block) abort();
    return block;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

void entry_add(entry_list *list, int64_t row, int64_t col, double value)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 256;
        const size_t capacity = (size_t)list->capacity;
        list->rows = taken(realloc(list->rows, capacity * sizeof *list->rows));
        list->cols = taken(realloc(list->cols, capacity * sizeof *list->cols));
        list->values = taken(realloc(list->values, capacity * sizeof *list->values));
    }
    list->rows[list->count] = (int32_t)row;
    list->cols[list->count] = (int32_t)col;
    list->values[list->count++] = value;
}

sp_csr entry_matrix(sp_context *host, entry_list *list, int64_t rows, int64_t cols, sp_value_type type, bool pattern)
{
    sp_csr matrix;
    float *narrow = test_block(((size_t)list->count + 1) * sizeof *narrow);
    for (int64_t i = 0; i < list->count; i++) narrow[i] = (float)list->values[i];
    ck_ok(host, sp_csr_from_coo(host, &(sp_coo){.rows = rows, .cols = cols, .count = list->count,
                                                .row_indices = list->rows, .col_indices = list->cols,
                                                .values = type == SP_F32 ? (void *)narrow : list->values,
                                                .value_type = type}, SP_COMBINE_FIRST, false, &matrix));
    free(narrow);
    if (pattern) test_drop_values(host, &matrix);
    free_all(list->rows, list->cols, list->values);
    *list = (entry_list){0};
    return matrix;
}

product product_of(sp_csr a, sp_csr b) { return (product){.a = a, .b = b}; }

sp_spgemm_options product_options(const product *p)
{
    sp_spgemm_options options = p->options;
    options.mask = !p->masked ? NULL : p->mask_is_a ? &p->a : &p->mask;
    return options;
}

const sp_csr *product_b(const product *p) { return p->b_is_a ? &p->a : &p->b; }

void product_free(sp_context *host, product *p) { test_free(host, &p->a, &p->b, &p->mask); }

double product_value(test_random *random)
{
    static const double large[] = {1, 0x1p30, 0x1p60, -1, -0x1p30, -0x1p60};
    return test_below(random, 4) ? 2 * test_unit(random) - 1 + 0x1p-60 : large[test_below(random, 6)];
}

static double draw_value(test_random *random, test_values values)
{
    if (values == TEST_POSITIVE) return test_unit(random) + 0x1p-20;
    if (values == TEST_SIGNED) return product_value(random);
    return (double)(1 + test_below(random, 3)) * (test_below(random, 2) ? 1 : -1);
}

void product_new_values(test_random *random, product *p)
{
    sp_csr *operands[] = {&p->a, &p->b};
    for (int m = 0; m < 2; m++)
        for (int64_t k = 0; operands[m]->values && k < operands[m]->nnz; k++) {
            const double value = draw_value(random, TEST_SIGNED);
            test_set(operands[m], k, value);
        }
}

static sp_csr shifted_matrix(sp_context *host, test_random *random, int64_t rows, int64_t entries, sp_value_type type)
{
    entry_list list = {0};
    for (int64_t i = 0; i < rows; i++) {
        if (i % 200 >= 190) continue;
        if (i % 41 == 5) entry_add(&list, i, test_below(random, rows), product_value(random));
        for (int64_t k = 0; k < entries; k++) entry_add(&list, i, i + k * (k + 3) / 4, product_value(random));
    }
    return entry_matrix(host, &list, rows, rows + entries * (entries + 3) / 4, type, false);
}

product product_shifted(sp_context *host, test_random *random, int64_t entries, sp_value_type type)
{
    const sp_csr a = shifted_matrix(host, random, 400, entries, type);
    return product_of(a, shifted_matrix(host, random, a.cols, entries + 1, type));
}

sp_csr product_matrix(sp_context *host, test_random *random, int64_t rows, int64_t cols, double degree,
                      sp_value_type type, test_values values)
{
    enum { EQUAL, UNEVEN, HALF_EMPTY, FEW_LONG, BANDED, KINDS };
    const int64_t kind = test_below(random, KINDS);
    entry_list list = {0};
    for (int64_t i = 0; i < rows && cols > 0; i++) {
        double want = degree;
        if (kind == UNEVEN) want *= 2 * test_unit(random);
        if (kind == HALF_EMPTY) want *= test_below(random, 2) ? 2 : 0;
        if (kind == FEW_LONG) want *= test_below(random, 16) ? 0.5 : 8;
        int64_t count = (int64_t)(want + test_unit(random)), width = cols;
        if (kind == BANDED && 2 * count < cols) width = 2 * count + 1;
        const int64_t first = width == cols ? 0 : (i * cols / rows) % (cols - width + 1);
        const bool full = count >= width;
        if (full) count = width;
        for (int64_t k = 0; k < count; k++)
            entry_add(&list, i, first + (full ? k : test_below(random, width)), draw_value(random, values));
    }
    return entry_matrix(host, &list, rows, cols, type, values == TEST_PATTERN);
}

/* Reals of both signs, which show most, half of the time. */
static test_values draw_kind(test_random *random)
{
    const int64_t kind = test_below(random, 6);
    return kind <= TEST_PATTERN ? (test_values)kind : TEST_SIGNED;
}

static int64_t draw_size(test_random *random)
{
    const int64_t kind = test_below(random, 100);
    return kind < 3 ? 0 : kind < 12 ? 1 : kind < 50 ? 2 + test_below(random, 30) : 2 + test_below(random, 299);
}

/* A mask for a product of rows x cols: a few entries, about half of them, none, all. */
static sp_csr draw_mask(sp_context *host, test_random *random, int64_t rows, int64_t cols)
{
    const double degrees[] = {2, (double)cols / 2, 0, (double)cols};
    const double degree = degrees[test_below(random, 4)];
    const sp_value_type type = test_below(random, 2) ? SP_F32 : SP_F64;
    return product_matrix(host, random, rows, cols, degree, type, (test_values)test_below(random, 4));
}

product product_random(sp_context *host, uint64_t seed)
{
    static const double degrees[] = {0.5, 1, 2, 4, 4, 8, 8, 16, 16, 40, 300};
    enum { DEGREES = COUNT(degrees) };
    test_random random = test_seed(seed * 0x632be59bd9b4e019u + 7);
    const int64_t semiring = test_below(&random, 8);
    product p = {.options = {.semiring = semiring <= SP_OR_AND ? (sp_semiring)semiring : SP_PLUS_TIMES,
                             .transpose_a = test_below(&random, 2),
                             .transpose_b = test_below(&random, 2)}};
    const sp_value_type type = test_below(&random, 2) ? SP_F32 : SP_F64;
    const bool square = test_below(&random, 6) == 0, ta = p.options.transpose_a, tb = p.options.transpose_b;
    int64_t m = draw_size(&random), k = draw_size(&random), n = draw_size(&random);
    if (square) k = n = m;
    double da = degrees[test_below(&random, DEGREES)], db = degrees[test_below(&random, DEGREES)];
    if (da > (double)k) da = (double)k;
    if (db > (double)n) db = (double)n;
    while ((double)m * da * db > 30000) *(da > db ? &da : &db) /= 2;
    /* The degrees are those of the operands as they are multiplied. */
    p.a = product_matrix(host, &random, ta ? k : m, ta ? m : k, ta && k > 0 ? da * (double)m / (double)k : da, type,
                         draw_kind(&random));
    p.b_is_a = square && test_below(&random, 2);
    if (!p.b_is_a)
        p.b = product_matrix(host, &random, tb ? n : k, tb ? k : n, tb && n > 0 ? db * (double)k / (double)n : db,
                             type, draw_kind(&random));
    p.masked = test_below(&random, 2);
    p.mask_is_a = square && test_below(&random, 2);
    if (p.masked && !p.mask_is_a) p.mask = draw_mask(host, &random, m, n);
    p.options.complement = p.masked && test_below(&random, 2);
    snprintf(p.name, sizeof p.name, "seed %llu, %lld x %lld x %lld", (unsigned long long)seed, (long long)m,
             (long long)k, (long long)n);
    return p;
}

/* ---- the reference ------------------------------------------------------------------------------------- */

static sp_csr transposed(sp_context *host, const sp_csr *a)
{
    sp_csr t;
    ck_ok(host, sp_csr_create(host, a->cols, a->rows, a->nnz, a->value_type, SP_HOST, &t));
    int64_t *at = test_zeros((size_t)a->cols + 2, sizeof *at);
    for (int64_t k = 0; k < a->nnz; k++) at[a->col_indices[k] + 1]++;
    for (int64_t j = 0; j < a->cols; j++) at[j + 1] += at[j];
    memcpy(t.row_offsets, at, ((size_t)a->cols + 1) * sizeof *at);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
            const int64_t to = at[a->col_indices[k]]++;
            t.col_indices[to] = (int32_t)i;
            test_set(&t, to, test_value(a, k));
        }
    free(at);
    return t;
}

static double multiply(sp_semiring semiring, double x, double y)
{
    switch (semiring) {
    case SP_PLUS_TIMES:
    case SP_MAX_TIMES: return x * y;
    case SP_MIN_PLUS: return x + y;
    case SP_PLUS_PAIR:
    case SP_OR_AND: break;
    }
    return 1;
}

static double add(sp_semiring semiring, double sum, double next)
{
    switch (semiring) {
    case SP_PLUS_TIMES:
    case SP_PLUS_PAIR: return sum + next;
    case SP_MIN_PLUS: return next < sum ? next : sum;
    case SP_MAX_TIMES: return next > sum ? next : sum;
    case SP_OR_AND: break;
    }
    return sum;
}

static int compare_int32(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static bool has_entry(const sp_csr *matrix, int64_t row, int32_t column)
{
    const int64_t first = matrix->row_offsets[row], count = matrix->row_offsets[row + 1] - first;
    return count > 0 && bsearch(&column, matrix->col_indices + first, (size_t)count, sizeof column, compare_int32);
}

/* The columns that B has, each once, ascending; a sum a column then costs memory by entries, not by B.cols. */
typedef struct column_set {
    int64_t count;
    int32_t *columns, *rank; /* rank: of each entry of B */
} column_set;

static column_set columns_of(const sp_csr *b)
{
    column_set set = {0, test_block(((size_t)b->nnz + 1) * sizeof(int32_t)),
                      test_block(((size_t)b->nnz + 1) * sizeof(int32_t))};
    if (b->nnz) memcpy(set.columns, b->col_indices, (size_t)b->nnz * sizeof(int32_t));
    qsort(set.columns, (size_t)b->nnz, sizeof(int32_t), compare_int32);
    for (int64_t k = 0; k < b->nnz; k++)
        if (set.count == 0 || set.columns[set.count - 1] != set.columns[k]) set.columns[set.count++] = set.columns[k];
    for (int64_t k = 0; k < b->nnz; k++) {
        const int32_t *found =
            bsearch(&b->col_indices[k], set.columns, (size_t)set.count, sizeof(int32_t), compare_int32);
        set.rank[k] = (int32_t)(found - set.columns);
    }
    return set;
}

/* Row i of A·B: sums by rank, the ranks that have one in ascending order; returns their number. */
static int64_t sum_row(const sp_csr *a, const sp_csr *b, int64_t i, sp_semiring semiring, const column_set *set,
                       double *sums, bool *present, int32_t *touched, int64_t *products)
{
    int64_t count = 0;
    for (int64_t p = a->row_offsets[i]; p < a->row_offsets[i + 1]; p++)
        for (int64_t q = b->row_offsets[a->col_indices[p]]; q < b->row_offsets[a->col_indices[p] + 1]; q++) {
            const int32_t at = set->rank[q];
            const double value = multiply(semiring, test_value(a, p), test_value(b, q));
            sums[at] = present[at] ? add(semiring, sums[at], value) : value;
            if (!present[at]) touched[count++] = at;
            present[at] = true;
            ++*products;
        }
    if (count > set->count / 16) { /* sorting alone would take most of the suites' time */
        count = 0;
        for (int32_t at = 0; at < set->count; at++)
            if (present[at]) touched[count++] = at;
    } else {
        qsort(touched, (size_t)count, sizeof *touched, compare_int32);
    }
    for (int64_t k = 0; k < count; k++) present[touched[k]] = false;
    return count;
}

/* The product of operands that are transposed already. */
static sp_csr multiplied(sp_context *host, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                         int64_t *products)
{
    column_set set = columns_of(b);
    const size_t width = (size_t)set.count + 1;
    double *sums = test_block(width * sizeof *sums);
    bool *present = test_zeros(width, sizeof *present);
    int32_t *touched = test_block(width * sizeof *touched);
    int64_t *lengths = test_zeros((size_t)a->rows + 1, sizeof *lengths);
    entry_list list = {0};
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t count = sum_row(a, b, i, options->semiring, &set, sums, present, touched, products);
        for (int64_t k = 0; k < count; k++) {
            const int32_t column = set.columns[touched[k]];
            if (options->mask && has_entry(options->mask, i, column) == options->complement) continue;
            entry_add(&list, i, column, sums[touched[k]]);
            lengths[i]++;
        }
    }
    sp_csr c;
    ck_ok(host, sp_csr_create(host, a->rows, b->cols, list.count, a->value_type, SP_HOST, &c));
    c.row_offsets[0] = 0;
    for (int64_t i = 0; i < a->rows; i++) c.row_offsets[i + 1] = c.row_offsets[i] + lengths[i];
    for (int64_t k = 0; k < list.count; k++) {
        c.col_indices[k] = list.cols[k];
        test_set(&c, k, list.values[k]);
    }
    void *arrays[] = {set.columns, set.rank, sums, present, touched, lengths, list.rows, list.cols, list.values};
    for (size_t i = 0; i < COUNT(arrays); i++) free(arrays[i]);
    return c;
}

sp_csr product_reference(sp_context *host, const product *p, int64_t *products)
{
    const sp_spgemm_options options = product_options(p);
    sp_csr at = {0}, bt = {0};
    if (options.transpose_a) at = transposed(host, &p->a);
    if (options.transpose_b) bt = transposed(host, product_b(p));
    int64_t count = 0;
    sp_csr c = multiplied(host, options.transpose_a ? &at : &p->a, options.transpose_b ? &bt : product_b(p), &options,
                          &count);
    if (options.semiring == SP_OR_AND) test_drop_values(host, &c);
    test_free(host, &at, &bt);
    if (products) *products = count;
    return c;
}

/* ---- the check ----------------------------------------------------------------------------------------- */

void product_same(const sp_csr *expected, const sp_csr *c, const char *name) { test_equal(expected, c, true, name); }

bool product_may_be_refused(sp_context *context, const sp_spgemm_options *options)
{
    const bool cuda = sp_context_is_cuda(context);
    switch (options->algorithm) {
    case SP_SPGEMM_AUTO: return false;
    case SP_SPGEMM_HASH: return cuda && (options->semiring != SP_PLUS_TIMES || options->mask);
    case SP_SPGEMM_DENSE: return cuda;
    case SP_SPGEMM_WARP: break;
    }
    return !cuda;
}

static void check_info(const sp_spgemm_info *info, const sp_csr *c, int64_t products, bool masked, const char *name)
{
    test_expect(info->nnz == c->nnz, "%s: info has %lld nonzeros", name, (long long)info->nnz);
    if (masked)
        test_expect(info->product_nnz >= c->nnz && info->products >= c->nnz,
                    "%s: info has %lld products, %lld entries", name, (long long)info->products,
                    (long long)info->product_nnz);
    else
        test_expect(info->product_nnz == c->nnz && info->products == products,
                    "%s: info has %lld products, %lld entries, not %lld, %lld", name, (long long)info->products,
                    (long long)info->product_nnz, (long long)products, (long long)c->nnz);
    test_expect(info->groups >= 0 && info->groups <= SP_SPGEMM_GROUPS, "%s: %d groups", name, info->groups);
    for (int g = 0; g < info->groups; g++)
        test_expect(info->group[g].name[0] && memchr(info->group[g].name, 0, sizeof info->group[g].name),
                    "%s: group %d has no name", name, g);
    test_expect(info->analysis_seconds >= 0 && info->aia_seconds >= 0 && info->symbolic_seconds >= 0 &&
                    info->numeric_seconds >= 0 && info->peak_bytes >= 0, "%s: times or bytes below 0", name);
}

/* A copy in device memory, or the matrix itself. */
static const sp_csr *placed(sp_context *context, const sp_csr *matrix, bool there, sp_csr *copy)
{
    if (!matrix || !there) return matrix;
    ck_ok(context, sp_csr_copy(context, matrix, SP_DEVICE, copy));
    return copy;
}

static void check_one(sp_context *context, const product *p, sp_spgemm_options options, test_random *random,
                      const sp_csr *expected, int64_t products)
{
    const bool cuda = sp_context_is_cuda(context);
    const int64_t places = cuda ? test_below(random, 8) : 0;
    sp_csr a_copy = {0}, b_copy = {0}, mask_copy = {0}, c = {0};
    sp_spgemm_info info;
    char name[256];
    snprintf(name, sizeof name, "%s, %s, %s%s%s%s%s, semiring %d, algorithm %d, stage %d%s, places %lld", p->name,
             p->a.value_type == SP_F32 ? "f32" : "f64", options.transpose_a ? "A'" : "A",
             options.transpose_b ? "B'" : "B", p->b_is_a ? " (B is A)" : "", options.mask ? " masked" : "",
             options.complement ? " complemented" : "", (int)options.semiring, (int)options.algorithm,
             (int)options.aia, options.to_host ? ", to host" : "", (long long)places);
    const sp_csr *a = placed(context, &p->a, places & 1, &a_copy), *b = a;
    if (!p->b_is_a) b = placed(context, &p->b, places & 2, &b_copy);
    options.mask = placed(context, options.mask, places & 4, &mask_copy);
    const sp_status status = sp_spgemm(context, a, b, &options, &c, &info);
    if (status == SP_ERROR_UNSUPPORTED && product_may_be_refused(context, &options)) {
        test_expect(!c.row_offsets && sp_last_error(context)[0], "%s: refused without a sentence", name);
    } else {
        test_expect(status == SP_OK, "%s: %s (%s)", name, sp_status_string(status), sp_last_error(context));
        test_expect(c.space == (cuda && !options.to_host ? SP_DEVICE : SP_HOST), "%s: C lies in space %d", name,
                    (int)c.space);
        test_to_host(context, &c);
        product_same(expected, &c, name);
        check_info(&info, &c, products, options.mask != NULL, name);
        sp_csr_free(context, &c);
    }
    test_free(context, &a_copy, &b_copy, &mask_copy);
}

/* A dense accumulator of 2^31 columns is 16 GB a thread, and who asks for it gets it. */
enum { DENSE_COLUMNS = 1 << 22 };

void product_check(sp_context *context, const product *p, test_random *random, bool every_stage)
{
    sp_context *host = test_context(0, 1);
    int64_t products;
    sp_csr expected = product_reference(host, p, &products);
    const bool cuda = sp_context_is_cuda(context);
    const bool brief = test_is_brief();
    /* By default small products are another algorithm's; in brief it is one or the other. */
    const int left_out = !brief || !cuda ? -1 : test_below(random, 2) ? SP_SPGEMM_AUTO : SP_SPGEMM_WARP;
    for (int algorithm = SP_SPGEMM_AUTO; algorithm <= SP_SPGEMM_WARP; algorithm++) {
        if (algorithm == left_out) continue;
        if (algorithm == SP_SPGEMM_DENSE && expected.cols > DENSE_COLUMNS) continue;
        const bool stages = every_stage && !brief && cuda && algorithm == SP_SPGEMM_HASH;
        for (int aia = SP_AIA_AUTO; aia <= (stages ? SP_AIA_UNCACHED : SP_AIA_AUTO); aia++) {
            sp_spgemm_options options = product_options(p);
            options.algorithm = (sp_spgemm_algorithm)algorithm;
            options.aia = (sp_aia)(stages ? aia : test_below(random, 4));
            options.to_host = test_below(random, 4) == 0;
            check_one(context, p, options, random, &expected, products);
        }
    }
    sp_csr_free(host, &expected);
    sp_context_destroy(host);
}
