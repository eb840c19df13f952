/* sp_contract and the module contraction: both engines against the definition, which lists, sorts and combines the
 * entries of each place; general matrices S; statistics, numbering, matching and hierarchies of groups. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contraction.h"
#include "product.h"

/* ---- the definition ------------------------------------------------------------------------------------ */

/* One graph and labelling. All on the host. */
typedef struct subject {
    sp_csr g;
    int32_t *labels;
    int64_t groups;
    char name[96];
} subject;

static void free_subject(sp_context *host, subject *s)
{
    sp_csr_free(host, &s->g);
    free(s->labels);
}

typedef struct placed {
    int32_t row, col;
    int64_t number; /* in the order of G */
    double value;
} placed;

static int by_place(const void *x, const void *y)
{
    const placed *a = x, *b = y;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    if (a->col != b->col) return a->col < b->col ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

/* The entries of one place, as the operation says; *size is the sum of what is added, taken positive. */
static double combined(const placed *list, int64_t count, const sp_contract_options *how, double *size)
{
    double sum = -0.0, max = -INFINITY, min = INFINITY;
    *size = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += list[i].value;
        *size += fabs(list[i].value);
        max = fmax(max, list[i].value);
        min = fmin(min, list[i].value);
    }
    const double scale = how->half_loops && list->row == list->col ? 0.5 : 1;
    switch (how->combine) {
    case SP_COMBINE_SUM: return sum * scale;
    case SP_COMBINE_MAX: return max;
    case SP_COMBINE_MIN: return min;
    case SP_COMBINE_MEAN: return sum / (double)count;
    case SP_COMBINE_COUNT: return (double)count * scale;
    case SP_COMBINE_FIRST: break;
    }
    return list->value;
}

/* The quotient by its definition; sizes[k], to be freed, bounds the terms of entry k; *entries are those of G that
 * are combined, loops included. */
static sp_csr definition(sp_context *host, const subject *s, const sp_contract_options *how, double **sizes,
                         int64_t *entries)
{
    placed *list = malloc(((size_t)s->g.nnz + 1) * sizeof *list);
    int64_t count = 0, places = 0;
    sp_csr c;
    ck_assert_ptr_nonnull(list);
    for (int64_t i = 0; i < s->g.rows; i++)
        for (int64_t k = s->g.row_offsets[i]; k < s->g.row_offsets[i + 1]; k++) {
            const int32_t p = s->labels[i], q = s->labels[s->g.col_indices[k]];
            if (p >= 0 && q >= 0) list[count++] = (placed){p, q, k, test_value(&s->g, k)};
        }
    qsort(list, (size_t)count, sizeof *list, by_place);
    ck_ok(host, sp_csr_create(host, s->groups, s->groups, count, s->g.value_type, SP_HOST, &c));
    *sizes = malloc(((size_t)count + 1) * sizeof **sizes);
    ck_assert_ptr_nonnull(*sizes);
    memset(c.row_offsets, 0, ((size_t)s->groups + 1) * sizeof(int64_t));
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && list[end].row == list[i].row && list[end].col == list[i].col;) end++;
        const bool loop = list[i].row == list[i].col;
        if (loop ? how->loops == SP_LOOPS_DROP : how->loops == SP_LOOPS_ONLY) continue;
        const double value = combined(list + i, end - i, how, &(*sizes)[places]);
        c.col_indices[places] = list[i].col;
        if (c.value_type == SP_F32) ((float *)c.values)[places] = (float)value;
        else ((double *)c.values)[places] = value;
        c.row_offsets[list[i].row + 1]++;
        places++;
    }
    for (int64_t p = 0; p < s->groups; p++) c.row_offsets[p + 1] += c.row_offsets[p];
    c.nnz = places;
    *entries = count;
    free(list);
    return c;
}

/* ---- subjects ------------------------------------------------------------------------------------------ */

typedef enum labelling { SCATTERED, BLOCKS, PARTLY, SKEWED, ALONE, TOGETHER, NOBODY, LABELLINGS } labelling;

static const char *const labelling_names[LABELLINGS] = {"scattered", "blocks", "partly labelled", "skewed",
                                                        "each alone", "one group", "no labels"};

static int32_t draw_label(test_random *random, labelling kind, int64_t node, int64_t nodes, int64_t groups)
{
    const double u = test_unit(random);
    switch (kind) {
    case BLOCKS: return (int32_t)(node * groups / nodes);
    case PARTLY: return u < 0.3 ? (int32_t)(-1 - test_below(random, INT32_MAX)) : (int32_t)test_below(random, groups);
    case SKEWED: return (int32_t)(u * u * u * (double)groups);
    case ALONE: return (int32_t)((groups - 1 - node % groups));
    case TOGETHER: return (int32_t)(groups / 2);
    case NOBODY: return -1;
    default: return (int32_t)test_below(random, groups);
    }
}

static subject make_subject(sp_context *host, test_random *random, int64_t nodes, double degree, int64_t groups,
                            labelling kind, sp_value_type type, test_values values)
{
    subject s = {.groups = groups};
    s.g = product_matrix(host, random, nodes, nodes, degree, type, values);
    s.labels = malloc(((size_t)nodes + 1) * sizeof *s.labels);
    ck_assert_ptr_nonnull(s.labels);
    for (int64_t i = 0; i < nodes; i++)
        s.labels[i] = groups ? draw_label(random, kind, i, nodes, groups) : -1;
    snprintf(s.name, sizeof s.name, "%lld nodes, degree %g, %lld groups, %s, %s, values %d", (long long)nodes, degree,
             (long long)groups, labelling_names[kind], type == SP_F32 ? "f32" : "f64", (int)values);
    return s;
}

/* Sizes, degrees, groups, labels, values, all by the seed. */
static subject random_subject(sp_context *host, uint64_t seed)
{
    test_random random = test_seed(seed);
    const int64_t nodes = test_below(&random, test_below(&random, 4) ? 60 : 400);
    const int64_t most = test_below(&random, 8) == 0 ? 100000 : nodes + 3;
    const int64_t groups = test_below(&random, 3) ? 1 + test_below(&random, most / 4 + 1) : test_below(&random, most);
    const double degree = 12 * test_unit(&random) * test_unit(&random);
    const labelling kind = (labelling)test_below(&random, LABELLINGS);
    const sp_value_type type = test_below(&random, 2) ? SP_F32 : SP_F64;
    const test_values values = (test_values)test_below(&random, 4);
    subject s = make_subject(host, &random, nodes, degree, groups, kind, type, values);
    const size_t used = strlen(s.name);
    snprintf(s.name + used, sizeof s.name - used, ", seed %llu", (unsigned long long)seed);
    return s;
}

/* ---- checks -------------------------------------------------------------------------------------------- */

static void check_info(const sp_contract_info *info, const sp_csr *c, int64_t entries, const char *name)
{
    test_expect(info->entries == entries && info->nnz == c->nnz, "%s: info has %lld entries and %lld nonzeros", name,
                (long long)info->entries, (long long)info->nnz);
    test_expect(info->group_seconds >= 0 && info->combine_seconds >= 0 && info->peak_bytes >= 0,
                "%s: times or bytes below 0", name);
    test_expect(info->groups >= 0 && info->groups <= SP_SPGEMM_GROUPS, "%s: %d groups", name, info->groups);
    for (int i = 0; i < info->groups; i++)
        test_expect(info->group[i].name[0] && info->group[i].count > 0, "%s: group %d is empty", name, i);
}

/* The fused engine has the bits of the definition. G and the labels may lie on the device. */
static void check_fused(sp_context *context, sp_context *host, const subject *s, const sp_contract_options *how,
                        bool on_device)
{
    double *sizes;
    int64_t entries;
    sp_csr expected = definition(host, s, how, &sizes, &entries), c, moved = {0};
    sp_contract_info info;
    char name[160];
    snprintf(name, sizeof name, "%s, operation %d, loops %d%s", s->name, (int)how->combine, (int)how->loops,
             how->half_loops ? " halved" : "");
    if (on_device) ck_ok(context, sp_csr_copy(context, &s->g, SP_DEVICE, &moved));
    const sp_status status = sp_contract(context, on_device ? &moved : &s->g, s->labels, SP_HOST, s->groups, how, &c,
                                         &info);
    test_expect(status == SP_OK, "%s: %s (%s)", name, sp_status_string(status), sp_last_error(context));
    check_info(&info, &c, entries, name);
    test_expect(c.space == (sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST), "%s: C lies in space %d", name,
                (int)c.space);
    test_to_host(context, &c);
    ck_ok(host, sp_csr_check(host, &c));
    product_same(&expected, &c, name);
    sp_csr_free(context, &c);
    sp_csr_free(context, &moved);
    sp_csr_free(host, &expected);
    free(sizes);
}

/* The products add in another order, and round f32 twice on the way. */
static void check_products(sp_context *context, sp_context *host, const subject *s, const sp_contract_options *how)
{
    double *sizes;
    int64_t entries;
    sp_csr expected = definition(host, s, how, &sizes, &entries), c;
    contraction_options options = {.engine = CONTRACTION_PRODUCT, .how = *how};
    contraction_info info;
    char name[160];
    snprintf(name, sizeof name, "%s, operation %d, loops %d%s, by products", s->name, (int)how->combine,
             (int)how->loops, how->half_loops ? " halved" : "");
    const sp_status status = contraction_quotient(context, &s->g, s->labels, s->groups, &options, &c, &info);
    test_expect(status == SP_OK, "%s: %s (%s)", name, sp_status_string(status), sp_last_error(context));
    test_expect(info.engine == CONTRACTION_PRODUCT && info.nnz == c.nnz && info.seconds >= 0, "%s: info", name);
    test_expect(c.space == (sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST), "%s: C lies in space %d", name,
                (int)c.space);
    test_to_host(context, &c);
    const bool sums = how->combine == SP_COMBINE_SUM || how->combine == SP_COMBINE_MEAN;
    const double unit = !sums ? 0 : c.value_type == SP_F32 ? 0x1p-22 : 0x1p-46;
    test_expect(c.rows == expected.rows && c.cols == expected.cols && c.nnz == expected.nnz &&
                    c.value_type == expected.value_type,
                "%s: %lld nonzeros, not %lld", name, (long long)c.nnz, (long long)expected.nnz);
    test_expect(memcmp(c.row_offsets, expected.row_offsets, ((size_t)c.rows + 1) * sizeof *c.row_offsets) == 0,
                "%s: row offsets differ", name);
    for (int64_t k = 0; k < c.nnz; k++)
        test_expect(c.col_indices[k] == expected.col_indices[k] &&
                        fabs(test_value(&c, k) - test_value(&expected, k)) <= unit * sizes[k],
                    "%s: entry %lld is %.17g in column %d, not %.17g in column %d", name, (long long)k,
                    test_value(&c, k), c.col_indices[k], test_value(&expected, k), expected.col_indices[k]);
    sp_csr_free(context, &c);
    sp_csr_free(host, &expected);
    free(sizes);
}

/* ---- random graphs ------------------------------------------------------------------------------------- */

static sp_contract_options random_options(test_random *random, int combine)
{
    return (sp_contract_options){.combine = (sp_combine)combine, .loops = (sp_loops)test_below(random, 3),
                                 .half_loops = test_below(random, 2)};
}

START_TEST(both_engines_give_what_the_definition_says)
{
    sp_context *host = test_context(0, 1), *context = test_context(_i, 2);
    const int64_t cases = test_cases(300);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        subject s = random_subject(host, seed);
        test_random random = test_seed(seed);
        for (int combine = SP_COMBINE_SUM; combine <= SP_COMBINE_COUNT; combine++) {
            const sp_contract_options how = random_options(&random, combine);
            check_fused(context, host, &s, &how, _i && test_below(&random, 2));
            check_products(context, host, &s, &how);
        }
        free_subject(host, &s);
    }
    sp_context_destroy(context);
    sp_context_destroy(host);
}
END_TEST

/* ---- shapes -------------------------------------------------------------------------------------------- */

/* Nodes, mean degree, groups and labels on both sides of what decides how a row is made. */
static const struct shape {
    int64_t nodes;
    double degree;
    int64_t groups;
    labelling kind;
} shapes[] = {
    {0, 0, 0, SCATTERED},          {0, 0, 7, SCATTERED},       {9, 3, 0, SCATTERED},       {1, 1, 1, TOGETHER},
    {3000, 8, 1, TOGETHER},        {3000, 8, 2, SCATTERED},    {3000, 8, 64, BLOCKS},      {3000, 8, 65, SCATTERED},
    {3000, 40, 3000, ALONE},       {2000, 31, 60000, ALONE},   {2000, 33, 60000, ALONE},   {400, 300, 60000, SCATTERED},
    {300, 150, 2000000, SCATTERED},{900, 33, 2000000, ALONE},  {900, 200, 70000, SKEWED},  {40000, 3, 20000, SCATTERED},
    {40000, 3, 39999, ALONE},      {20000, 6, 100, PARTLY},    {5000, 5, 30, NOBODY},      {10, 5, 3000000, ALONE},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(shapes_give_what_the_definition_says)
{
    const struct shape *shape = &shapes[_i % SHAPES];
    sp_context *host = test_context(0, 1), *context = test_context(_i / SHAPES, 3);
    for (int values = TEST_POSITIVE; values <= TEST_PATTERN; values++) {
        test_random random = test_seed((uint64_t)(_i + 1));
        subject s = make_subject(host, &random, shape->nodes, shape->degree, shape->groups, shape->kind,
                                 values % 2 ? SP_F32 : SP_F64, (test_values)values);
        for (int combine = SP_COMBINE_SUM; combine <= SP_COMBINE_COUNT; combine++) {
            const sp_contract_options how = random_options(&random, combine);
            check_fused(context, host, &s, &how, false);
            if (combine % 3 == values % 3) check_products(context, host, &s, &how);
        }
        free_subject(host, &s);
    }
    sp_context_destroy(context);
    sp_context_destroy(host);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("contraction");
    TCase *engines = tcase_create("engines");
    tcase_set_timeout(engines, 120);
    suite_add_tcase(suite, engines);
    test_on_devices(engines, both_engines_give_what_the_definition_says);
    tcase_add_loop_test(engines, shapes_give_what_the_definition_says, 0, SHAPES * test_devices());
    if (test_devices() == 1) test_count_skipped(SHAPES);
    return test_run(suite);
}
