/* test_contraction: ways of making rows of quotients on the CPU that depend on their lengths. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contraction_shared.h"

/* The quotient has the bits of the definition, with the half above the diagonal that of the other where `symmetric`. */
static void expect_definition(sp_context *host, const subject *s, const sp_contract_options *how)
{
    double *sizes;
    int64_t entries;
    bool symmetric = true;
    sp_csr expected = definition(host, s, how, &sizes, &entries), c;
    sp_contract_info info;
    if (how->symmetric) ck_ok(host, contraction_mirror(host, &expected, &symmetric));
    ck_ok(host, sp_contract(host, &s->g, s->labels, SP_HOST, s->groups, how, &c, &info));
    ck_ok(host, sp_csr_check(host, &c));
    product_same(&expected, &c, s->name);
    test_expect(symmetric && info.mirrored == how->symmetric && info.entries == entries, "%s: %lld entries, not %lld",
                s->name, (long long)info.entries, (long long)entries);
    sp_csr_free(host, &c);
    sp_csr_free(host, &expected);
    free(sizes);
}

static void every_option(sp_context *host, subject *s, bool symmetric, sp_combine first, sp_combine last)
{
    for (int combine = (int)first; combine <= (int)last; combine++)
        for (int loops = SP_LOOPS_KEEP; loops <= SP_LOOPS_ONLY; loops++)
            for (int half = 0; half < 2; half++)
                expect_definition(host, s,
                                  &(sp_contract_options){.combine = (sp_combine)combine, .loops = (sp_loops)loops,
                                                                  .half_loops = half, .symmetric = symmetric});
}

/* Groups of 0 to 4 nodes whose rows have 0 to some 40 entries: most fit a register, all kinds of labels. */
HOST_TEST(counts_in_short_rows_are_those_of_the_definition, 3)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        test_random random = test_seed(seed);
        const int64_t nodes = 1 + test_below(&random, 400);
        subject s = make_subject(host, &random, nodes, 0.5 + 0.25 * (double)(seed % 12), 1 + nodes / 2,
                                 (labelling)(seed % LABELLINGS), seed % 2 ? SP_F32 : SP_F64, TEST_POSITIVE);
        const bool symmetric = seed % 3 > 0;
        if (symmetric) make_symmetric(host, &s);
        every_option(host, &s, symmetric, SP_COMBINE_COUNT, SP_COMBINE_COUNT);
        test_drop_values(host, &s.g);
        every_option(host, &s, symmetric, SP_COMBINE_SUM, SP_COMBINE_SUM);
        free_subject(host, &s);
    }
}

/* Two hubs with edges to 5,000 and 9,000 nodes among rows of a few: longer than what is gathered at once. */
HOST_TEST(halves_of_long_and_short_rows_make_a_symmetric_quotient, 3)
{
    enum { N = 10000 };
    for (int turn = 0; turn < 4; turn++) {
        test_random random = test_seed((uint64_t)turn + 1);
        subject s = {.groups = turn == 3 ? 40 : N / 2};
        entry_list list = {0};
        snprintf(s.name, sizeof s.name, "turn %d", turn);
        for (int32_t i = 0; i < N; i++) {
            if (i % 2) entry_add(&list, 17, i, 1 + 0.1 * (double)test_below(&random, 9));
            if (i % 10) entry_add(&list, i, 9990, 1 + 0.1 * (double)test_below(&random, 9));
            entry_add(&list, i, (int32_t)test_below(&random, N), 1 + 0.1 * (double)test_below(&random, 9));
        }
        s.g = entry_matrix(host, &list, N, N, turn % 2 ? SP_F32 : SP_F64, false);
        make_symmetric(host, &s);
        s.labels = malloc(N * sizeof *s.labels);
        for (int64_t i = 0; i < N; i++)
            s.labels[i] = (int32_t)test_below(&random, s.groups) - (turn == 2 && i % 7 == 0 ? N : 0);
        every_option(host, &s, true, SP_COMBINE_SUM, SP_COMBINE_COUNT);
        free_subject(host, &s);
    }
}

const test_entry rows_tests[] = {
    CASE("rows", 120),
    ONCE(counts_in_short_rows_are_those_of_the_definition),
    ONCE(halves_of_long_and_short_rows_make_a_symmetric_quotient),
    {0},
};
