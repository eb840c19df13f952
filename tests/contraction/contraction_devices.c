/* test_contraction: sp_contract on several devices against the same contraction on one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contraction_shared.h"

/* Contexts of one device, and of several. Opening a GPU takes a while, so a test opens them once. */
enum { FLEETS = 3 };
typedef struct fleet {
    sp_context *one, *several[FLEETS];
} fleet;

static fleet open_fleet(int device)
{
    static const int counts[FLEETS] = {2, 3, 8};
    fleet f = {.one = test_context(device, 2)};
    for (int i = 0; i < FLEETS; i++)
        f.several[i] = test_context_of(device, counts[i], (sp_context_options){.threads = 3});
    return f;
}

static void close_fleet(fleet *f)
{
    for (int i = 0; i < FLEETS; i++) sp_context_destroy(f->several[i]);
    sp_context_destroy(f->one);
}

static void check(const fleet *f, const subject *s, const sp_contract_options *how)
{
    sp_csr expected, found;
    sp_contract_info one, several;
    ck_ok(f->one, sp_contract(f->one, &s->g, s->labels, SP_HOST, s->groups, how, &expected, &one));
    const sp_space space = expected.space;
    test_to_host(f->one, &expected);
    for (int i = 0; i < FLEETS; i++) {
        sp_context *context = f->several[i];
        char name[160];
        snprintf(name, sizeof name, "%s, operation %d, loops %d%s%s, on %s", s->name, (int)how->combine,
                 (int)how->loops, how->half_loops ? " halved" : "", how->symmetric ? ", symmetric" : "",
                 sp_context_device(context));
        ck_ok(context, sp_contract(context, &s->g, s->labels, SP_HOST, s->groups, how, &found, &several));
        test_expect(found.space == space, "%s: C lies in space %d", name, (int)found.space);
        test_expect(several.entries == one.entries && several.nnz == one.nnz && several.mirrored == one.mirrored,
                    "%s: %lld entries and %lld nonzeros", name, (long long)several.entries, (long long)several.nnz);
        test_to_host(context, &found);
        product_same(&expected, &found, name);
        sp_csr_free(context, &found);
    }
    sp_csr_free(f->one, &expected);
}

static void check_every_option(const fleet *f, const subject *s, bool symmetric)
{
    for (int combine = SP_COMBINE_SUM; combine <= SP_COMBINE_COUNT; combine++)
        for (int loops = SP_LOOPS_KEEP; loops <= SP_LOOPS_ONLY; loops++)
            for (int half = 0; half < 2; half++)
                check(f, s, &(sp_contract_options){.combine = (sp_combine)combine, .loops = (sp_loops)loops,
                                                   .half_loops = half, .symmetric = symmetric});
}

/* ---- tests --------------------------------------------------------------------------------------------- */

HOST_TEST(several_devices_contract_to_the_bytes_of_one, 2)
{
    fleet devices = open_fleet(_i);
    const int64_t cases = test_cases(36);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        subject s = random_subject(host, seed);
        if (seed % 2) make_symmetric(host, &s);
        check_every_option(&devices, &s, seed % 2);
        free_subject(host, &s);
    }
    close_fleet(&devices);
}

/* Rows of all lengths: groups that a device makes of short rows, and such that it makes in halves. */
HOST_TEST(every_kind_of_row_is_that_of_one_device, 2)
{
    static const struct { int64_t nodes; double degree; int64_t groups; labelling kind; } shapes[] = {
        {3000, 8, 1, TOGETHER},      {3000, 8, 2, SCATTERED}, {3000, 8, 1500, SCATTERED}, {3000, 3, 1500, BLOCKS},
        {3000, 40, 60000, RISING},   {900, 200, 70000, SKEWED}, {4000, 5, 60, PARTLY},    {900, 33, 2000000, ALONE},
        {400, 300, 60000, SCATTERED}, {20000, 6, 100, SKEWED}, {5000, 5, 30, NOBODY},
    };
    fleet devices = open_fleet(_i);
    for (uint64_t i = 0; i < 2 * COUNT(shapes); i++) {
        test_random random = test_seed(i + 1);
        subject s = make_subject(host, &random, shapes[i / 2].nodes, shapes[i / 2].degree, shapes[i / 2].groups,
                                 shapes[i / 2].kind, i % 3 ? SP_F32 : SP_F64, (test_values)(i % (TEST_PATTERN + 1)));
        if (i % 2) make_symmetric(host, &s);
        for (int combine = SP_COMBINE_SUM; combine <= SP_COMBINE_COUNT; combine++)
            check(&devices, &s, &(sp_contract_options){.combine = (sp_combine)combine, .symmetric = i % 2});
        free_subject(host, &s);
    }
    close_fleet(&devices);
}

/* No nodes, no groups, one group, fewer groups than devices, groups without nodes, nodes without edges. */
HOST_TEST(edge_shapes_are_contracted_on_several_devices, 2)
{
    static const struct { int64_t nodes, groups; labelling kind; } shapes[] = {
        {0, 0, NOBODY}, {0, 5, NOBODY}, {5, 0, NOBODY}, {1, 1, TOGETHER}, {1, 9, TOGETHER}, {2, 2, ALONE},
        {7, 1, TOGETHER}, {40, 1, TOGETHER}, {40, 3, SCATTERED}, {40, 1000, ALONE}, {40, 4, NOBODY}, {300, 7, PARTLY},
    };
    fleet devices = open_fleet(_i);
    for (uint64_t i = 0; i < 2 * COUNT(shapes); i++) {
        test_random random = test_seed(i + 1);
        subject s = make_subject(host, &random, shapes[i / 2].nodes, i % 2 ? 3 : 0, shapes[i / 2].groups,
                                 shapes[i / 2].kind, i % 4 < 2 ? SP_F32 : SP_F64, TEST_SIGNED);
        check_every_option(&devices, &s, false);
        make_symmetric(host, &s);
        check_every_option(&devices, &s, true);
        free_subject(host, &s);
    }
    close_fleet(&devices);
}

/* Where the graph or the labels lie on the device, the first device works alone. */
TEST(what_lies_on_a_device_is_contracted_there)
{
    enum { GROUPS = 30, NODES = 400 };
    sp_context *host = test_context(0, 1), *one = test_context(1, 1);
    sp_context *several = test_context_of(1, 3, (sp_context_options){0});
    test_random random = test_seed(2);
    subject s = make_subject(host, &random, NODES, 9, GROUPS, SCATTERED, SP_F32, TEST_POSITIVE);
    sp_csr expected, moved, found;
    void *labels;
    ck_ok(one, sp_contract(one, &s.g, s.labels, SP_HOST, GROUPS, NULL, &expected, NULL));
    test_to_host(one, &expected);
    ck_ok(several, sp_csr_copy(several, &s.g, SP_DEVICE, &moved));
    ck_ok(several, sp_array_create(several, NODES, sizeof *s.labels, SP_DEVICE, &labels));
    ck_ok(several, sp_array_copy(several, NODES, sizeof *s.labels, labels, SP_DEVICE, s.labels, SP_HOST));
    for (int turn = 1; turn < 4; turn++) {
        ck_ok(several, sp_contract(several, turn & 1 ? &moved : &s.g, turn & 2 ? labels : s.labels,
                                   turn & 2 ? SP_DEVICE : SP_HOST, GROUPS, NULL, &found, NULL));
        test_to_host(several, &found);
        product_same(&expected, &found, "on the device");
        sp_csr_free(several, &found);
    }
    sp_array_free(several, SP_DEVICE, labels);
    sp_csr_free(several, &moved);
    sp_csr_free(one, &expected);
    free_subject(host, &s);
    test_end(several, one, host);
}

static sp_status contract_subject(sp_context *context, const void *user, sp_csr *c)
{
    const subject *s = user;
    const sp_contract_options options = {.symmetric = true};
    return sp_contract(context, &s->g, s->labels, SP_HOST, s->groups, &options, c, NULL);
}

TEST(a_device_that_fails_ends_the_contraction)
{
    sp_context *host = test_context(0, 1);
    test_random random = test_seed(4);
    subject s = make_subject(host, &random, 300, 8, 40, SCATTERED, SP_F64, TEST_POSITIVE);
    make_symmetric(host, &s);
    test_failing_devices(contract_subject, &s);
    free_subject(host, &s);
    sp_context_destroy(host);
}

TEST(an_interrupt_ends_the_contraction_of_all_devices)
{
    volatile int interrupt = 1;
    sp_context *host = test_context(0, 1);
    sp_context *context = test_context_of(_i, 2, (sp_context_options){.interrupt = &interrupt});
    test_random random = test_seed(5);
    subject s = make_subject(host, &random, 500, 30, 20, SCATTERED, SP_F32, TEST_POSITIVE);
    sp_csr c = {0};
    ck_assert_int_eq(sp_contract(context, &s.g, s.labels, SP_HOST, s.groups, NULL, &c, NULL), SP_ERROR_INTERRUPTED);
    ck_assert_ptr_null(c.row_offsets);
    interrupt = 0;
    s.labels[7] = 20;
    ck_assert_int_eq(sp_contract(context, &s.g, s.labels, SP_HOST, s.groups, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    s.labels[7] = 19;
    ck_ok(context, sp_contract(context, &s.g, s.labels, SP_HOST, s.groups, NULL, &c, NULL));
    sp_csr_free(context, &c);
    free_subject(host, &s);
    test_end(context, host);
}

const test_entry devices_tests[] = {
    CASE("devices", 240),
    ON_DEVICES(several_devices_contract_to_the_bytes_of_one),
    ON_DEVICES(every_kind_of_row_is_that_of_one_device),
    ON_DEVICES(edge_shapes_are_contracted_on_several_devices),
    ON_CUDA(what_lies_on_a_device_is_contracted_there),
    ONCE(a_device_that_fails_ends_the_contraction),
    ON_DEVICES(an_interrupt_ends_the_contraction_of_all_devices),
    {0},
};
