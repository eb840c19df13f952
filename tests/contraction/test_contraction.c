/* sp_contract and the module contraction: both engines against the definition, which lists, sorts and combines the
 * entries of each place; general matrices S; statistics, numbering, matching and hierarchies of groups. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contraction_shared.h"

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
    test_expect(c.space == (test_space(context)), "%s: C lies in space %d", name, (int)c.space);
    test_to_host(context, &c);
    ck_ok(host, sp_csr_check(host, &c));
    product_same(&expected, &c, name);
    test_free(context, &c, &moved);
    sp_csr_free(host, &expected);
    free(sizes);
}

/* The products may add in another order, and round f32 twice on the way. */
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
    test_expect(c.space == (test_space(context)), "%s: C lies in space %d", name, (int)c.space);
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

DEVICE_TEST(both_engines_give_what_the_definition_says, _i, 2)
{
    const int64_t cases = test_cases(240);
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
}

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
    {3000, 40, 3000, ALONE},       {2000, 31, 60000, ALONE},   {2000, 33, 60000, ALONE},   {900, 200, 70000, SKEWED},
    {400, 300, 60000, SCATTERED},  {900, 33, 2000000, ALONE},  {300, 150, 2000000, SCATTERED},
    {40000, 3, 20000, SCATTERED},  {40000, 3, 39999, ALONE},   {20000, 6, 100, PARTLY},    {5000, 5, 30, NOBODY},
    {10, 5, 1000000, ALONE},       {4000, 5, 60, PARTLY},      {7000, 4, 55, SCATTERED},   {9000, 4, 300, SKEWED},
    {5000, 3, 400, BLOCKS},        {5000, 3, 400, RISING},     {3000, 8, 60000, RISING},   {40000, 1, 20000, BLOCKS},
    {900, 200, 70000, RISING},     {5000, 20, 2500, BLOCKS},
};
enum { SHAPES = COUNT(shapes) };

/* With TEST_CASES below 100, as where a tool slows the kernels down, a shape has one kind of values, and rows of
 * f32 one kind of numbers. */
static bool is_left_out(int kind, int chosen) { return test_cases(100) < 100 && kind != chosen; }

DEVICE_TEST(shapes_give_what_the_definition_says, _i / SHAPES, 3)
{
    const struct shape *shape = &shapes[_i % SHAPES];
    for (int values = TEST_POSITIVE; values <= TEST_PATTERN; values++) {
        if (is_left_out(values, _i % (TEST_PATTERN + 1))) continue;
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
}

/* ---- symmetric graphs ---------------------------------------------------------------------------------- */

DEVICE_TEST(a_symmetric_graph_has_the_mirrored_quotient_of_the_definition, _i / SHAPES, 3)
{
    const struct shape *shape = &shapes[_i % SHAPES];
    test_random random = test_seed((uint64_t)(_i + 1));
    subject s = make_subject(host, &random, shape->nodes, shape->degree / 2, shape->groups, shape->kind,
                             _i % 2 ? SP_F32 : SP_F64, TEST_POSITIVE);
    make_symmetric(host, &s);
    for (int combine = SP_COMBINE_SUM; combine <= SP_COMBINE_COUNT; combine++) {
        sp_contract_options how = random_options(&random, combine);
        how.symmetric = true;
        double *sizes;
        int64_t entries;
        bool symmetric;
        sp_csr expected = definition(host, &s, &how, &sizes, &entries), c;
        sp_contract_info info;
        ck_ok(host, contraction_mirror(host, &expected, &symmetric));
        ck_assert(symmetric);
        ck_ok(context, sp_contract(context, &s.g, s.labels, SP_HOST, s.groups, &how, &c, &info));
        check_info(&info, &c, entries, s.name);
        test_expect(info.mirrored != sp_context_is_cuda(context), "%s: mirrored", s.name);
        if (!info.mirrored) ck_ok(context, contraction_mirror(context, &c, &symmetric));
        test_to_host(context, &c);
        ck_ok(host, sp_csr_check(host, &c));
        product_same(&expected, &c, s.name);
        sp_csr_free(context, &c);
        sp_csr_free(host, &expected);
        free(sizes);
    }
    free_subject(host, &s);
}

/* ---- sums in order ------------------------------------------------------------------------------------ */

/* Rows of some 800, 1500, 3000, 6000 and 20000 entries, in few columns and in so many that bits for all take too
 * long; rows of 12 to 500 in which columns come more than twice, of nodes that several blocks count; groups of some
 * 14,000 and 21,000 nodes; cells of a tenth to two fifths of 750,000 entries. */
static const struct shape summed_shapes[] = {
    {2000, 40, 100, SCATTERED},  {1500, 100, 100, BLOCKS}, {1500, 100, 50, SCATTERED}, {1500, 100, 25, PARTLY},
    {1500, 100, 7, SCATTERED},   {1500, 100, 3, SKEWED},   {2000, 80, 300000, SKEWED}, {2000, 250, 300000, SKEWED},
    {1300, 1200, 300000, ALONE}, {50000, 50, 600000, SKEWED}, {1500, 100, 30, RISING}, {2000, 250, 300000, RISING},
    {20, 5, 8, SCATTERED},       {40, 6, 10, SCATTERED},     {80, 6, 10, SCATTERED},  {150, 8, 10, SCATTERED},
    {300, 8, 10, SCATTERED},     {600, 8, 10, SCATTERED},    {20000, 3, 9000, SKEWED}, {20000, 12, 3000, SKEWED},
    {20000, 3, 3, SKEWED},       {30000, 2, 3, SKEWED},    {3000, 250, 4, SKEWED},
};
enum { SUMMED_SHAPES = COUNT(summed_shapes) };

typedef enum number_kind { REALS, SIGNED, FAR_APART, CANCELLING, ODD, NUMBER_KINDS } number_kind;

/* Numbers that are exact as integers; of both signs, of f64 with all its bits; too far apart for that, in one row of
 * four; such that the order of additions changes most sums of three and more; zeros, zeros below zero and huge ones
 * among them. */
static void draw_numbers(test_random *random, number_kind kind, sp_csr *g)
{
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t k = g->row_offsets[i]; k < g->row_offsets[i + 1]; k++) {
            const double u = test_unit(random);
            double value = (float)u;
            if (kind == SIGNED) value = u < 0.5 ? -u : u;
            if (kind == FAR_APART && i % 4 == 1) value = ldexp((float)u, (int)test_below(random, 80) - 40);
            if (kind == CANCELLING) value = u < 0.3 ? 0x1p60 : u < 0.6 ? -0x1p60 : (int)(10 * u);
            if (kind == ODD && u < 0.2) value = u < 0.1 ? 0 : -0.0;
            if (kind == ODD && u > 0.99999) value = 0x1p100;
            if (g->value_type == SP_F32) ((float *)g->values)[k] = (float)value;
            else ((double *)g->values)[k] = value;
        }
}

DEVICE_TEST(sums_have_the_bits_of_sums_in_order, _i / SUMMED_SHAPES, 2)
{
    const struct shape *shape = &summed_shapes[_i % SUMMED_SHAPES];
    for (int turn = 0; turn < 2 * NUMBER_KINDS; turn++) {
        const int kind = turn / 2;
        if (is_left_out(kind, _i % NUMBER_KINDS)) continue;
        test_random random = test_seed((uint64_t)(_i % SUMMED_SHAPES + 1));
        subject s = make_subject(host, &random, shape->nodes, shape->degree, shape->groups, shape->kind,
                                 turn % 2 ? SP_F64 : SP_F32, TEST_POSITIVE);
        const size_t used = strlen(s.name);
        draw_numbers(&random, (number_kind)kind, &s.g);
        snprintf(s.name + used, sizeof s.name - used, ", numbers %d", kind);
        const sp_contract_options how = random_options(&random, SP_COMBINE_SUM);
        check_fused(context, host, &s, kind == REALS ? &(sp_contract_options){0} : &how, false);
        for (int other = SP_COMBINE_MAX; kind == ODD && other <= SP_COMBINE_MEAN; other++) {
            const sp_contract_options own = random_options(&random, other);
            check_fused(context, host, &s, &own, false);
        }
        free_subject(host, &s);
    }
}

/* ---- promises of the engines --------------------------------------------------------------------------- */

static subject usual_subject(sp_context *host, uint64_t seed, sp_value_type type)
{
    test_random random = test_seed(seed);
    return make_subject(host, &random, 3000, 30, 700, SKEWED, type, TEST_SIGNED);
}

HOST_TEST(values_do_not_depend_on_threads, 1)
{
    subject s = usual_subject(host, 5, SP_F32);
    sp_csr expected = {0};
    for (int threads = 1; threads <= 5; threads += 2) {
        sp_context *context = test_context(_i, threads);
        sp_csr c;
        ck_ok(context, sp_contract(context, &s.g, s.labels, SP_HOST, s.groups, NULL, &c, NULL));
        test_to_host(context, &c);
        if (threads == 1) expected = c;
        else product_same(&expected, &c, "more threads");
        if (threads > 1) sp_csr_free(context, &c);
        sp_context_destroy(context);
    }
    sp_csr_free(host, &expected);
    free_subject(host, &s);
}

/* Three labelled nodes, two of them in group 1; a sum that cancels, a loop of the graph itself, one unlabelled node. */
CONTEXT_TEST(a_small_graph_gives_what_it_does_by_hand, _i, 1)
{
    const double numbers[] = {5, 1, -1, 2,
                              3, 0, 4,  0,
                              0, 8, 0,  0,
                              7, 0, 0,  9};
    const int32_t labels[] = {0, 1, 1, -1};
    const struct { sp_contract_options how; double c[4]; int entries; } cases[] = {
        {{.combine = SP_COMBINE_SUM}, {5, 0, 3, 12}, 4},
        {{.combine = SP_COMBINE_SUM, .half_loops = true}, {2.5, 0, 3, 6}, 4},
        {{.combine = SP_COMBINE_SUM, .loops = SP_LOOPS_DROP}, {0, 0, 3, 0}, 2},
        {{.combine = SP_COMBINE_COUNT, .loops = SP_LOOPS_ONLY, .half_loops = true}, {0.5, 0, 0, 1}, 2},
        {{.combine = SP_COMBINE_MAX, .half_loops = true}, {5, 1, 3, 8}, 4},
        {{.combine = SP_COMBINE_MIN}, {5, -1, 3, 4}, 4},
        {{.combine = SP_COMBINE_FIRST}, {5, 1, 3, 4}, 4},
        {{.combine = SP_COMBINE_MEAN, .half_loops = true}, {5, 0, 3, 6}, 4},
        {{.combine = SP_COMBINE_COUNT}, {1, 2, 1, 2}, 4},
    };
    sp_csr g = test_from_dense(context, 4, 4, numbers, SP_F32);
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int engine = CONTRACTION_AUTO; engine <= CONTRACTION_PRODUCT; engine++) {
            const contraction_options options = {.engine = (contraction_engine)engine, .how = cases[i].how};
            sp_csr c;
            ck_ok(context, contraction_quotient(context, &g, labels, 2, &options, &c, NULL));
            test_to_host(context, &c);
            ck_assert_int_eq(c.nnz, cases[i].entries);
            for (int64_t p = 0; p < 2; p++)
                for (int64_t k = c.row_offsets[p]; k < c.row_offsets[p + 1]; k++)
                    test_expect(test_value(&c, k) == cases[i].c[2 * p + c.col_indices[k]],
                                "case %d, engine %d: (%d, %d) is %g", (int)i, engine, (int)p, c.col_indices[k],
                                test_value(&c, k));
            sp_csr_free(context, &c);
        }
    sp_csr_free(context, &g);
}

static void expect_refusal(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                           const sp_contract_options *how, const char *sentence)
{
    sp_csr c;
    test_mark(&c, sizeof c);
    ck_assert_int_eq(sp_contract(context, g, labels, SP_HOST, groups, how, &c, NULL), SP_ERROR_ARGUMENT);
    test_expect(strstr(sp_last_error(context), sentence) != NULL, "\"%s\" lacks \"%s\"", sp_last_error(context),
                sentence);
    for (int engine = CONTRACTION_AUTO; engine <= CONTRACTION_PRODUCT; engine++) {
        const contraction_options options = {.engine = (contraction_engine)engine,
                                             .how = how ? *how : (sp_contract_options){0}};
        test_expect(contraction_quotient(context, g, labels, groups, &options, &c, NULL) != SP_OK, "engine %d: %s",
                    engine, sentence);
    }
    ck_assert(test_is_marked(&c, sizeof c));
}

CONTEXT_TEST(impossible_requests_are_refused, _i, 2)
{
    const double numbers[] = {1, 2, 3, 4, 5, 6};
    const int32_t labels[] = {0, 3};
    sp_csr wide = test_from_dense(context, 2, 3, numbers, SP_F32);
    sp_csr g = test_from_dense(context, 2, 2, numbers, SP_F32);
    expect_refusal(context, &wide, labels, 4, NULL, "2 x 3");
    expect_refusal(context, &g, labels, 3, NULL, "node 1 has label 3 and there are 3 groups");
    expect_refusal(context, &g, labels, -1, NULL, "-1 groups");
    expect_refusal(context, &g, labels, (int64_t)INT32_MAX + 1, NULL, "2147483648 groups");
    expect_refusal(context, &g, labels, 4, &(sp_contract_options){.combine = (sp_combine)6}, "combine operation 6");
    expect_refusal(context, &g, labels, 4, &(sp_contract_options){.loops = (sp_loops)3}, "loops 3");
    sp_csr c;
    test_mark(&c, sizeof c);
    const contraction_options odd = {.engine = (contraction_engine)3}, fused = {.engine = CONTRACTION_FUSED};
    ck_assert_int_eq(contraction_quotient(context, &g, labels, 4, &odd, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(contraction_product(context, &g, &g, &fused, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(contraction_product(context, &wide, &g, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(contraction_product(context, &g, &wide, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    sp_csr other = test_from_dense(context, 2, 2, numbers, SP_F64);
    ck_assert_int_eq(contraction_product(context, &other, &g, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    if (!_i) ck_assert_int_eq(sp_contract(context, &g, labels, SP_DEVICE, 4, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&c, sizeof c));
    test_free(context, &other, &wide, &g);
}

TEST(interrupt_flag_ends_a_contraction)
{
    volatile int interrupt = 1;
    sp_context *host = test_context(0, 1);
    sp_context *context = test_context_with(_i, (sp_context_options){.threads = 2, .interrupt = &interrupt});
    subject s = usual_subject(host, 6, SP_F64);
    sp_csr c;
    test_mark(&c, sizeof c);
    ck_assert_int_eq(sp_contract(context, &s.g, s.labels, SP_HOST, s.groups, NULL, &c, NULL), SP_ERROR_INTERRUPTED);
    ck_assert(test_is_marked(&c, sizeof c));
    interrupt = 0;
    ck_ok(context, sp_contract(context, &s.g, s.labels, SP_HOST, s.groups, NULL, &c, NULL));
    sp_csr_free(context, &c);
    sp_context_destroy(context);
    free_subject(host, &s);
    sp_context_destroy(host);
}

/* C itself aside: labels sorted, group sizes, cells, and rows that are there twice while they are joined. */
TEST(working_memory_is_small_beside_graph_and_quotient)
{
    test_heap heap = {.fail_at = -1};
    sp_context *host = test_context(0, 1), *context = test_heap_context(&heap, 0, 1);
    test_random random = test_seed(9);
    subject s = make_subject(host, &random, 100000, 20, 10000, SCATTERED, SP_F64, TEST_POSITIVE);
    sp_contract_info info;
    sp_csr c;
    const int64_t before = heap.live_bytes;
    heap.peak_bytes = before;
    ck_ok(context, sp_contract(context, &s.g, s.labels, SP_HOST, s.groups, NULL, &c, &info));
    const int64_t quotient = heap.live_bytes - before, more = heap.peak_bytes - heap.live_bytes;
    ck_assert_int_eq(quotient, 8 * (c.rows + 1) + 12 * c.nnz);
    test_expect(more * 100 <= 15 * quotient, "%lld bytes for a quotient of %lld", (long long)more,
                (long long)quotient);
    /* Room for C that is reserved and not used is no memory to info. */
    test_expect(info.peak_bytes * 4 >= more, "info knows %lld of %lld bytes", (long long)info.peak_bytes,
                (long long)more);
    sp_csr_free(context, &c);
    ck_assert_int_eq(heap.live_bytes, before);
    sp_context_destroy(context);
    free_subject(host, &s);
    sp_context_destroy(host);
}

/* ---- general S ----------------------------------------------------------------------------------------- */

/* What falls on (p, q) of S·G·Sᵀ, in f64 and any order, S a pattern unless sums are asked for. */
static double general(const double *s, const sp_csr *g, int64_t p, int64_t q, sp_combine rule, bool *any)
{
    double sum = 0, max = -INFINITY, min = INFINITY, first = 0, count = 0;
    const int64_t n = g->rows;
    *any = false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = g->row_offsets[i]; k < g->row_offsets[i + 1]; k++) {
            const double left = s[p * n + i], right = s[q * n + g->col_indices[k]], value = test_value(g, k);
            if (left == 0 || right == 0) continue;
            sum += rule == SP_COMBINE_SUM ? left * value * right : value;
            if (!*any) first = value;
            max = fmax(max, value);
            min = fmin(min, value);
            count += 1;
            *any = true;
        }
    const double results[] = {sum, max, min, first, sum / count, count};
    return results[rule];
}

/* Each node in one group at most, without and with weights; in none or two, but no more entries than nodes; in one or
 * two. */
typedef enum membership { SINGLE, WEIGHTED, UNEVEN, OVERLAPPING, MEMBERSHIPS } membership;

static sp_csr draw_groups(sp_context *host, test_random *random, membership kind, int64_t groups, int64_t nodes,
                          sp_value_type type, int32_t *labels)
{
    entry_list list = {0};
    for (int64_t i = 0; i < nodes; i++) {
        const bool both = (kind == UNEVEN && i % 2) || (kind == OVERLAPPING && test_below(random, 3) == 0);
        labels[i] = -1;
        if (test_below(random, 10) == 0 || (kind == UNEVEN && i % 2 == 0)) continue;
        labels[i] = (int32_t)(test_below(random, groups) * test_below(random, groups) / groups);
        entry_add(&list, labels[i], i, 0.5 + test_unit(random));
        if (both) entry_add(&list, test_below(random, groups), i, 0.5 + test_unit(random));
    }
    return entry_matrix(host, &list, groups, nodes, type, kind != WEIGHTED);
}

static void check_triple(sp_context *context, sp_context *host, uint64_t seed)
{
    test_random random = test_seed(seed);
    const bool large = seed % 16 == 0; /* rows that take more than a block */
    const membership kind = (membership)(seed % MEMBERSHIPS);
    const int64_t n = large ? 4000 : 1 + test_below(&random, 400), m = large ? 3 : 1 + test_below(&random, n / 2 + 1);
    const sp_value_type type = test_below(&random, 2) ? SP_F64 : SP_F32;
    const bool masked = test_below(&random, 4) == 0;
    int32_t *labels = test_block((size_t)n * sizeof *labels);
    sp_csr s = draw_groups(host, &random, kind, m, n, type, labels), between, expected, c, direct;
    sp_csr g = product_matrix(host, &random, n, n, large ? 40 : 12 * test_unit(&random), type,
                              test_below(&random, 4) ? TEST_POSITIVE : TEST_PATTERN);
    sp_csr mask = product_matrix(host, &random, m, m, (double)m / 2, type, TEST_PATTERN);
    const sp_spgemm_options turned = {.transpose_b = true};
    const sp_spgemm_options how = {.mask = masked ? &mask : NULL, .complement = masked && test_below(&random, 2),
                                   .to_host = test_below(&random, 4) == 0};
    ck_ok(host, sp_spgemm(host, &g, &s, &turned, &between, NULL));
    ck_ok(host, sp_spgemm(host, &s, &between, &how, &expected, NULL));
    ck_ok(context, sp_triple_product(context, &s, &g, &how, &c, NULL));
    test_to_host(context, &c);
    ck_ok(host, sp_csr_check(host, &c));
    ck_assert_msg(c.rows == m && c.cols == m && c.nnz == expected.nnz, "seed %llu: %lld nonzeros, not %lld",
                  (unsigned long long)seed, (long long)c.nnz, (long long)expected.nnz);
    for (int64_t k = 0; k < c.nnz; k++)
        test_expect(c.col_indices[k] == expected.col_indices[k] &&
                        fabs(test_value(&c, k) - test_value(&expected, k)) <=
                            (type == SP_F32 ? 0x1p-22 : 0x1p-46) * test_value(&expected, k),
                    "seed %llu: entry %lld is %.17g, not %.17g", (unsigned long long)seed, (long long)k,
                    test_value(&c, k), test_value(&expected, k));
    if (kind == SINGLE && !masked && !how.to_host) { /* rounded once */
        ck_ok(host, sp_contract(host, &g, labels, SP_HOST, m, NULL, &direct, NULL));
        product_same(&direct, &c, "a labelling as a matrix");
        sp_csr_free(host, &direct);
    }
    sp_csr *const all[] = {&s, &g, &mask, &between, &expected, &c};
    for (size_t i = 0; i < COUNT(all); i++) sp_csr_free(host, all[i]);
    free(labels);
}

DEVICE_TEST(triple_products_are_two_products, _i, 2)
{
    const int64_t cases = test_cases(160);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) check_triple(context, host, seed);
}

CONTEXT_TEST(impossible_triple_products_are_refused, _i, 1)
{
    const double numbers[] = {1, 1, 0, 1, 1, 1};
    const sp_spgemm_options turned = {.transpose_a = true};
    sp_csr g = test_from_dense(context, 2, 2, numbers, SP_F32), c;
    sp_csr wide = test_from_dense(context, 2, 3, numbers, SP_F32);
    sp_csr other = test_from_dense(context, 2, 2, numbers, SP_F64);
    test_mark(&c, sizeof c);
    ck_assert_int_eq(sp_triple_product(context, &wide, &g, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_triple_product(context, &g, &wide, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_triple_product(context, &other, &g, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_triple_product(context, &g, &g, &turned, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&c, sizeof c));
    sp_csr *const all[] = {&g, &wide, &other};
    for (size_t i = 0; i < COUNT(all); i++) sp_csr_free(context, all[i]);
}

DEVICE_TEST(overlapping_and_weighted_groups_give_the_definition, _i, 2)
{
    for (uint64_t seed = 1; seed <= 120; seed++) {
        test_random random = test_seed(seed);
        const int64_t n = 1 + test_below(&random, 30), m = 1 + test_below(&random, 12);
        const sp_value_type type = seed % 2 ? SP_F64 : SP_F32;
        const sp_combine rule = (sp_combine)(seed / 2 % 6);
        sp_csr g = test_matrix(host, &random, n, n, 0.3, type, (test_values)test_below(&random, 4));
        double *weights = calloc((size_t)(m * n), sizeof *weights);
        for (int64_t i = 0; i < m * n; i++)
            if (test_below(&random, 4) == 0) weights[i] = seed % 3 ? 1 : 0.5 * (double)(1 + test_below(&random, 4));
        sp_csr s = test_from_dense(host, m, n, weights, type), c;
        const contraction_options options = {.how = random_options(&random, (int)rule)};
        const bool halved = options.how.half_loops && (rule == SP_COMBINE_SUM || rule == SP_COMBINE_COUNT);
        const double unit = type == SP_F32 ? 1e-4 : 1e-12;
        ck_ok(context, contraction_product(context, &s, &g, &options, &c, NULL));
        test_to_host(context, &c);
        ck_ok(host, sp_csr_check(host, &c));
        int64_t k = 0;
        for (int64_t p = 0; p < m; p++)
            for (int64_t q = 0; q < m; q++) {
                bool any;
                const double should = general(weights, &g, p, q, rule, &any) * (halved && p == q ? 0.5 : 1);
                if (!any || options.how.loops == (p == q ? SP_LOOPS_DROP : SP_LOOPS_ONLY)) continue;
                test_expect(k < c.row_offsets[p + 1] && c.col_indices[k] == q &&
                                fabs(test_value(&c, k) - should) <= unit * (1 + fabs(should)),
                            "seed %llu: (%lld, %lld) should be %g", (unsigned long long)seed, (long long)p,
                            (long long)q, should);
                k++;
            }
        ck_assert_int_eq(k, c.nnz);
        free(weights);
        sp_csr_free(context, &c);
        test_free(host, &s, &g);
    }
}

/* ---- scipy --------------------------------------------------------------------------------------------- */

static const char *fixtures; /* a file of gen_contraction.py */

static double read_number(FILE *file)
{
    double number;
    test_expect(fscanf(file, "%lf", &number) == 1, "%s ends early or holds no number at byte %ld", fixtures,
                ftell(file));
    return number;
}

/* Offsets, columns and values of a square matrix. */
static sp_csr read_matrix(sp_context *host, FILE *file, int64_t size, int64_t nnz, sp_value_type type)
{
    sp_csr m;
    ck_ok(host, sp_csr_create(host, size, size, nnz, type, SP_HOST, &m));
    for (int64_t i = 0; i <= size; i++) m.row_offsets[i] = (int64_t)read_number(file);
    for (int64_t k = 0; k < nnz; k++) m.col_indices[k] = (int32_t)read_number(file);
    for (int64_t k = 0; k < nnz; k++) {
        test_set(&m, k, read_number(file));
    }
    ck_ok(host, sp_csr_check(host, &m));
    return m;
}

/* The next quotient of the file against both engines. */
static void check_quotient(sp_context *context, sp_context *host, FILE *file, const subject *s)
{
    char word[16];
    test_expect(fscanf(file, "%15s", word) == 1 && strcmp(word, "quotient") == 0, "%s: no quotient follows", s->name);
    contraction_options options = {0};
    options.how.combine = (sp_combine)read_number(file);
    options.how.loops = (sp_loops)read_number(file);
    options.how.half_loops = read_number(file) != 0;
    const int64_t nnz = (int64_t)read_number(file);
    sp_csr expected = read_matrix(host, file, s->groups, nnz, s->g.value_type);
    for (int engine = CONTRACTION_AUTO; engine <= CONTRACTION_PRODUCT; engine++) {
        char name[160];
        sp_csr c;
        options.engine = (contraction_engine)engine;
        snprintf(name, sizeof name, "%s, operation %d, loops %d%s, engine %d", s->name, (int)options.how.combine,
                 (int)options.how.loops, options.how.half_loops ? " halved" : "", engine);
        ck_ok(context, contraction_quotient(context, &s->g, s->labels, s->groups, &options, &c, NULL));
        test_to_host(context, &c);
        product_same(&expected, &c, name);
        sp_csr_free(context, &c);
    }
    sp_csr_free(host, &expected);
}

DEVICE_TEST(quotients_are_those_of_scipy, _i, 2)
{
    FILE *file = fopen(fixtures, "r");
    char type[16];
    int cases = 0;
    test_expect(file != NULL, "%s cannot be read", fixtures);
    for (; fscanf(file, " graph %15s", type) == 1; cases++) {
        subject s = {0};
        const int64_t nodes = (int64_t)read_number(file);
        s.groups = (int64_t)read_number(file);
        const int64_t nnz = (int64_t)read_number(file);
        s.g = read_matrix(host, file, nodes, nnz, strcmp(type, "f32") == 0 ? SP_F32 : SP_F64);
        s.labels = malloc(((size_t)nodes + 1) * sizeof *s.labels);
        for (int64_t i = 0; i < nodes; i++) s.labels[i] = (int32_t)read_number(file);
        snprintf(s.name, sizeof s.name, "case %d of %s", cases, fixtures);
        for (int combine = SP_COMBINE_SUM; combine <= SP_COMBINE_COUNT; combine++)
            check_quotient(context, host, file, &s);
        free_subject(host, &s);
    }
    test_expect(cases >= 200 && feof(file), "%s holds %d cases", fixtures, cases);
    fclose(file);
}

static const test_entry scipy_tests[] = {CASE("engines", 120), ON_DEVICES(quotients_are_those_of_scipy), {0}};

static const test_entry tests[] = {
    CASE("random", 120),
    ON_DEVICES(both_engines_give_what_the_definition_says),
    CASE("shapes", 120),
    TURNS_ON_DEVICES(shapes_give_what_the_definition_says, SHAPES),
    TURNS_ON_DEVICES(a_symmetric_graph_has_the_mirrored_quotient_of_the_definition, SHAPES),
    CASE("sums", 120),
    TURNS_ON_DEVICES(sums_have_the_bits_of_sums_in_order, SUMMED_SHAPES),
    CASE("engines", 120),
    ON_DEVICES(values_do_not_depend_on_threads),
    ON_DEVICES(a_small_graph_gives_what_it_does_by_hand),
    ON_DEVICES(impossible_requests_are_refused),
    ON_DEVICES(interrupt_flag_ends_a_contraction),
    ONCE(working_memory_is_small_beside_graph_and_quotient),
    ON_DEVICES(triple_products_are_two_products),
    ON_DEVICES(impossible_triple_products_are_refused),
    ON_DEVICES(overlapping_and_weighted_groups_give_the_definition),
    {0},
};

/* With the name of a file of gen_contraction.py: only that file's cases. */
int main(int argc, char **argv)
{
    if (argc > 1) fixtures = argv[1];
    return fixtures ? test_run("contraction", scipy_tests) : test_run("contraction", tests, groups_tests, judge_tests,
                                                                      coarsen_tests,
                                                                             levels_tests, refine_tests, rows_tests,
                                                                             devices_tests);
}
