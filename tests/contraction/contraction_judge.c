/* test_contraction: figures of a labelling. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contraction_shared.h"

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * (1 + fabs(b)); }

/* Two triangles joined by an edge of weight 1, by their definition: 7 edges, volumes 7 and 7. */
HOST_TEST(two_triangles_have_the_figures_of_the_textbook, 2)
{
    const double edges[] = {0, 1, 1, 0, 0, 0,  1, 0, 1, 0, 0, 0,  1, 1, 0, 1, 0, 0,
                            0, 0, 1, 0, 1, 1,  0, 0, 0, 1, 0, 1,  0, 0, 0, 1, 1, 0};
    const int32_t labels[] = {0, 0, 0, 2, 2, 2}, partly[] = {0, 0, -1, 1, 1, -1}, nobody[] = {-1, -1, -1, -1, -1, -1};
    const int64_t weights[] = {1, 5,  1, 5,  1, 5,  2, 5,  2, 5,  2, 5};
    sp_csr g = test_from_dense(host, 6, 6, edges, SP_F32);
    contraction_judgement j;
    ck_ok(host, contraction_judge(host, &g, true, labels, 3, weights, 2, &j));
    ck_assert(j.nodes == 6 && j.left_out == 0 && j.groups == 2 && j.empty == 1 && j.edges == 7 && j.cut_edges == 1);
    ck_assert(j.weight == 7 && j.cut == 1 && near(j.coverage, 6 / 7.0) && near(j.modularity, 6 / 7.0 - 0.5));
    ck_assert(near(j.mean_conductance, 1 / 7.0) && near(j.worst_conductance, 1 / 7.0) && j.worst == 0);
    ck_assert(near(j.balance, 6 / 4.5) && j.smallest == 3 && j.largest == 3 && j.median == 3 && j.mean == 3);
    ck_ok(host, contraction_judge(host, &g, false, labels, 3, NULL, 0, &j)); /* each direction an edge */
    ck_assert(j.edges == 14 && j.cut_edges == 2 && j.weight == 14 && near(j.modularity, 6 / 7.0 - 0.5));
    ck_assert(j.balance == 1);
    ck_ok(host, contraction_judge(host, &g, true, partly, 2, NULL, 0, &j));
    ck_assert(j.nodes == 4 && j.left_out == 2 && j.edges == 2 && j.cut == 0 && j.coverage == 1 && j.modularity == 0.5);
    ck_ok(host, contraction_judge(host, &g, true, nobody, 0, NULL, 0, &j));
    ck_assert(j.groups == 0 && j.worst == -1 && isnan(j.coverage) && isnan(j.modularity) && isnan(j.balance) &&
              isnan(j.mean_conductance));
    test_mark(&j, sizeof j);
    ck_assert_int_eq(contraction_judge(host, &g, true, labels, 2, NULL, 0, &j), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(contraction_judge(host, &g, true, labels, 3, weights, 0, &j), SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&j, sizeof j));
    sp_csr_free(host, &g);
}

HOST_TEST(a_loop_counts_at_both_of_its_ends, 1)
{
    const double edges[] = {3, 1,  1, 0}, negative[] = {0, -1,  -1, 0};
    const int32_t labels[] = {0, 1};
    sp_csr g = test_from_dense(host, 2, 2, edges, SP_F64), below = test_from_dense(host, 2, 2, negative, SP_F64);
    contraction_judgement j;
    ck_ok(host, contraction_judge(host, &g, true, labels, 2, NULL, 0, &j));
    ck_assert(j.edges == 2 && j.weight == 4 && j.cut == 1 && j.coverage == 0.75 && j.worst_conductance == 1);
    ck_assert(near(j.modularity, 0.75 - (49 + 1) / 64.0)); /* volumes 7 and 1 of 8 */
    ck_assert_int_eq(contraction_judge(host, &below, true, labels, 2, NULL, 0, &j), SP_ERROR_ARGUMENT);
    ck_assert(strstr(sp_last_error(host), "below 0"));
    test_free(host, &g, &below);
}

/* Modularity pair by pair of nodes, Σ (A(i, j) - out(i)·in(j) / w) / w over pairs of one group. */
static void check_pairs(sp_context *context, const subject *s)
{
    const int64_t n = s->g.rows;
    double all = 0, inside = 0, expected = 0, *out = calloc((size_t)n + 1, sizeof *out),
           *in = calloc((size_t)n + 1, sizeof *in);
    contraction_judgement j;
    ck_ok(context, contraction_judge(context, &s->g, false, s->labels, s->groups, NULL, 0, &j));
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = s->g.row_offsets[i]; k < s->g.row_offsets[i + 1]; k++) {
            const int64_t other = s->g.col_indices[k];
            const double value = test_value(&s->g, k);
            if (s->labels[i] < 0 || s->labels[other] < 0) continue;
            all += value;
            out[i] += value;
            in[other] += value;
            if (s->labels[i] == s->labels[other]) inside += value;
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            if (s->labels[i] >= 0 && s->labels[i] == s->labels[k]) expected += out[i] * in[k];
    if (all > 0)
        test_expect(fabs(j.modularity - (inside / all - expected / all / all)) < 1e-9 &&
                        fabs(j.weight - all) <= 1e-9 * all && fabs(j.cut - (all - inside)) <= 1e-9 * all,
                    "%s: modularity %g, by pairs %g", s->name, j.modularity, inside / all - expected / all / all);
    else ck_assert(isnan(j.modularity));
    free_all(out, in);
}

HOST_TEST(modularity_is_that_of_all_pairs, 2)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        test_random random = test_seed(seed);
        subject s = make_subject(host, &random, 1 + test_below(&random, 200), 4, 1 + test_below(&random, 20),
                                 (labelling)(seed % LABELLINGS), SP_F64, TEST_POSITIVE);
        check_pairs(host, &s);
        free_subject(host, &s);
    }
}

TEST(figures_do_not_depend_on_threads)
{
    contraction_judgement expected;
    for (int threads = 1; threads <= 5; threads += 2) {
        sp_context *context = test_context(0, threads);
        test_random random = test_seed(9);
        subject s = make_subject(context, &random, 30000, 8, 300, SCATTERED, SP_F64, TEST_POSITIVE);
        contraction_judgement j;
        memset(&j, 0, sizeof j);
        ck_ok(context, contraction_judge(context, &s.g, false, s.labels, s.groups, NULL, 0, &j));
        if (threads == 1) expected = j;
        ck_assert(j.modularity == expected.modularity && j.cut == expected.cut && j.worst == expected.worst &&
                  j.mean_conductance == expected.mean_conductance);
        free_subject(context, &s);
        sp_context_destroy(context);
    }
    (void)_i;
}

const test_entry judge_tests[] = {
    CASE("judge", 120),
    ONCE(two_triangles_have_the_figures_of_the_textbook),
    ONCE(a_loop_counts_at_both_of_its_ends),
    ONCE(modularity_is_that_of_all_pairs),
    ONCE(figures_do_not_depend_on_threads),
    {0},
};
