/* Transforms: what mcl 22-282 made of two small graphs, operation by operation; a dense and obvious reference on
 * random graphs; parsing; threads; every allocation failing in turn. */
#include <math.h>
#include <string.h>

#include "transform_shared.h"

/* ---- the dense reference ------------------------------------------------------------------------------- */

enum { NODES = 30 };

typedef struct dense {
    float w[NODES][NODES]; /* 0: no arc */
} dense;

/* A weight stays if no more than `count` weights of its row are as heavy. */
static bool among_heaviest(const float *row, float weight, int count)
{
    int as_heavy = 0;
    for (int i = 0; i < NODES; i++) as_heavy += row[i] != 0 && row[i] >= weight;
    return as_heavy <= count;
}

static int degree(const dense *g, int j)
{
    int count = 0;
    for (int i = 0; i < NODES; i++) count += g->w[j][i] != 0;
    return count;
}

static dense dense_ceilnb(dense g, int count)
{
    const dense before = g;
    bool done[NODES] = {false};
    for (int turn = 0; turn < NODES; turn++) {
        int j = -1;
        for (int i = 0; i < NODES; i++)
            if (!done[i] && (j < 0 || degree(&before, i) > degree(&before, j))) j = i;
        done[j] = true;
        const dense now = g;
        for (int i = 0; i < NODES; i++)
            if (now.w[j][i] != 0 && !among_heaviest(now.w[j], now.w[j][i], count)) g.w[j][i] = g.w[i][j] = 0;
    }
    return g;
}

static float dense_square(const dense *g, int j, int i)
{
    double sum = 0;
    for (int k = 0; k < NODES; k++) sum += (double)g->w[j][k] * (double)g->w[k][i];
    return (float)sum;
}

static float dense_similarity(const dense *g, int j, int i)
{
    double sum = 0;
    if (i == j || g->w[j][i] == 0) return 0;
    for (int k = 0; k < NODES; k++) {
        const int others = degree(g, k) - (g->w[k][k] != 0);
        if (k != i && k != j && g->w[j][k] != 0 && g->w[i][k] != 0) sum += 1 / log2(others);
    }
    return fmaxf(g->w[j][i], (float)sum);
}

static float dense_self(const dense *g, int j)
{
    float heaviest = 0;
    for (int i = 0; i < NODES; i++)
        if (i != j) heaviest = fmaxf(heaviest, g->w[j][i]);
    return heaviest != 0 ? heaviest : 1;
}

typedef enum naive_kind {
    ADD, MIN, MAX, MUL, ARCMAX, ARCSUB, REVERSE, SELFRM, SELFMAX, KNN, KNNJ, CEILNB, ILS, STEP, VALUES
} naive_kind;

static const struct { const char *spec; naive_kind naive; int count; } references[] = {
    {"#add()", ADD, 0},      {"#min()", MIN, 0},         {"#max()", MAX, 0},       {"#mul()", MUL, 0},
    {"#arcmax()", ARCMAX, 0}, {"#arcsub()", ARCSUB, 0},  {"#rev()", REVERSE, 0},   {"#tp()", REVERSE, 0},
    {"#selfrm()", SELFRM, 0}, {"#selfmax()", SELFMAX, 0}, {"#knn(1)", KNN, 1},     {"#knn(4)", KNN, 4},
    {"#knn(11)", KNN, 11},   {"#knnj(2)", KNNJ, 2},      {"#knnj(7)", KNNJ, 7},    {"#ceilnb(1)", CEILNB, 1},
    {"#ceilnb(5)", CEILNB, 5}, {"#ceilnb(9)", CEILNB, 9}, {"#ils()", ILS, 0},      {"#step(1)", STEP, 0},
    {"gq(0.2),mul(3),ceil(2),add(0.1)", VALUES, 0},
};

static float dense_value(float v)
{
    if (v == 0 || v < 0.2f) return 0;
    v = v * 3;
    return (v > 2 ? 2 : v) + 0.1f;
}

static dense dense_transform(naive_kind naive, const dense *g, int count)
{
    dense out;
    if (naive == CEILNB) return dense_ceilnb(*g, count);
    for (int j = 0; j < NODES; j++)
        for (int i = 0; i < NODES; i++) {
            const float a = g->w[j][i], b = g->w[i][j];
            const bool near = a != 0 && among_heaviest(g->w[j], a, count);
            const bool near_back = b != 0 && among_heaviest(g->w[i], b, count);
            float *w = &out.w[j][i];
            switch (naive) {
            case ADD: *w = a + b; break;
            case MIN: *w = fminf(a, b); break;
            case MAX: *w = fmaxf(a, b); break;
            case MUL: *w = a * b; break;
            case ARCMAX: *w = a >= b ? a : 0; break;
            case ARCSUB: *w = a - b; break;
            case REVERSE: *w = b; break;
            case SELFRM: *w = i == j ? 0 : a; break;
            case SELFMAX: *w = i == j ? dense_self(g, j) : a; break;
            case KNN: *w = near && near_back ? a : 0; break;
            case KNNJ: *w = fmaxf(near ? a : 0, near_back ? b : 0); break;
            case ILS: *w = dense_similarity(g, j, i); break;
            case STEP: *w = dense_square(g, j, i); break;
            case VALUES: *w = dense_value(a); break;
            default: *w = 0;
            }
        }
    return out;
}

/* Real weights or, full of ties, integers 1..4; a few loops. */
static dense random_dense(test_random *random, bool both_ways, bool ties)
{
    dense g = {0};
    for (int j = 0; j < NODES; j++)
        for (int i = 0; i < NODES; i++) {
            if (test_unit(random) > 0.3 || (i == j && test_below(random, 2))) continue;
            const float weight = ties ? (float)(1 + test_below(random, 4)) : (float)(0.01 + test_unit(random));
            g.w[j][i] = weight;
            if (both_ways) g.w[i][j] = weight;
        }
    return g;
}

static sp_csr graph_of_dense(sp_context *context, const dense *g)
{
    double numbers[NODES * NODES];
    for (int k = 0; k < NODES * NODES; k++) numbers[k] = (double)g->w[k / NODES][k % NODES];
    return test_from_dense(context, NODES, NODES, numbers, SP_F32);
}

CONTEXT_TEST(random_graphs_agree_with_the_dense_reference, 0, 2)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        test_random random = test_seed(seed);
        const bool both_ways = references[_i].naive == ILS || seed % 2;
        const dense g = random_dense(&random, both_ways, seed % 4 < 2);
        const dense expected = dense_transform(references[_i].naive, &g, references[_i].count);
        sp_csr graph = graph_of_dense(context, &g), wanted = graph_of_dense(context, &expected);
        ck_ok(context, apply(context, references[_i].spec, &graph));
        ck_ok(context, sp_csr_check(context, &graph));
        test_same(&graph, &wanted, seed);
        test_free(context, &graph, &wanted);
    }
}

/* ---- other properties ---------------------------------------------------------------------------------- */

/* With every other seed under heavy pruning, which the transform takes from its options. */
CONTEXT_TEST(clustering_keeps_the_arcs_within_clusters, 0, 2)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        test_random random = test_seed(seed);
        sp_csr graph = test_communities(context, &random, 6, 8, 0.8, 0.05), start, limit;
        mcl_options options;
        mcl_run run;
        mcl_clustering clusters;
        mcl_options_default(&options);
        options.inflation = 3;
        if (seed % 2) {
            options.prune_number = 12;
            options.select = options.recover = 3;
        }
        ck_ok(context, mcl_start_matrix(context, &graph, NULL, &options, false, &start));
        ck_ok(context, mcl_iterate(context, &start, &options, NULL, NULL, &limit, &run));
        ck_ok(context, mcl_interpret(context, &limit, &graph, &options, &clusters));
        int cluster_of[48];
        for (int64_t c = 0; c < clusters.clusters; c++)
            for (int64_t m = clusters.offsets[c]; m < clusters.offsets[c + 1]; m++)
                cluster_of[clusters.members[m]] = (int)c;
        double expected[48 * 48] = {0};
        for (int j = 0; j < 48; j++)
            for (int64_t e = graph.row_offsets[j]; e < graph.row_offsets[j + 1]; e++)
                if (cluster_of[j] == cluster_of[graph.col_indices[e]])
                    expected[48 * j + graph.col_indices[e]] = test_value(&graph, e);
        sp_csr wanted = test_from_dense(context, 48, 48, expected, SP_F32);
        mcl_transform *transform = parse(context, "#mcl(3)");
        ck_ok(context, mcl_transform_graph(context, transform, seed % 2 ? &options : NULL, &graph));
        test_same(&graph, &wanted, seed);
        mcl_transform_free(context, transform);
        test_free(context, &graph, &start, &limit, &wanted);
        mcl_clustering_free(context, &clusters);
    }
}

TEST(threads_do_not_change_the_result)
{
    static const char *const specs[] = {"gq(0.1),mul(3)", "#knn(9)", "#knnj(9)", "#ceilnb(9)", "#ils()", "rand(0.5)"};
    sp_context *one = test_context(0, 1), *two = test_context(0, 2);
    test_random random = test_seed(5);
    sp_csr graph = test_communities(one, &random, 40, 40, 0.7, 0.01);
    for (size_t k = 0; k < COUNT(specs); k++) {
        sp_csr a, b;
        ck_ok(one, sp_csr_copy(one, &graph, SP_HOST, &a));
        ck_ok(two, sp_csr_copy(two, &graph, SP_HOST, &b));
        ck_ok(one, apply(one, specs[k], &a));
        ck_ok(two, apply(two, specs[k], &b));
        test_same(&a, &b, random.seed);
        sp_csr_free(one, &a);
        sp_csr_free(two, &b);
    }
    sp_csr_free(one, &graph);
    test_end(one, two);
}

CONTEXT_TEST(rand_keeps_about_the_share_asked_for, 0, 2)
{
    static const struct { const char *spec; double low, high; } cases[] = {
        {"rand(0)", 0, 0}, {"rand(1)", 1, 1}, {"rand(0.3)", 0.27, 0.33}, {"rand(0.8),rand(0.5)", 0.37, 0.43},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        test_random random = test_seed(9);
        sp_csr graph = test_communities(context, &random, 20, 30, 0.8, 0.01);
        const double before = (double)graph.nnz;
        ck_ok(context, apply(context, cases[k].spec, &graph));
        const double share = (double)graph.nnz / before;
        ck_assert_msg(share >= cases[k].low && share <= cases[k].high, "%s kept %g", cases[k].spec, share);
        sp_csr_free(context, &graph);
    }
}

/* What -abc-tf makes of a weight, as mcl -abc-tf ... -write-graph showed. */
CONTEXT_TEST(value_lists_run_in_f32, 0, 1)
{
    static const struct { const char *spec; double weight, expected; } cases[] = {
        {"mul(0.1),mul(3)", 0.3, 0.0900000036}, {"mul(0.1),mul(3)", 1.7, 0.50999999}, {"add(-0.1)", 0.3, 0.200000018},
        {"add(-0.1)", 0.1, 0},                  {"gq(0.2),add(1)", 0.3, 1.29999995},  {"gq(0.2),add(1)", 0.1, 0},
        {"acos()", 0.1, 1.47062886},            {"acos()", 1.7, 0},                   {"mul(0),add(1)", 2.5, 1},
        {" gq( 1 ) ,\tmul (2) ", 3.3, 6.5999999}, {"", 0.3, 0.300000012},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        mcl_transform *transform;
        ck_ok(context, mcl_transform_parse(context, cases[k].spec, true, &transform));
        const double made = mcl_transform_value(transform, cases[k].weight);
        ck_assert_msg(made == (double)(float)cases[k].expected, "%s of %g: %.9g instead of %.9g", cases[k].spec,
                      cases[k].weight, made, cases[k].expected);
        mcl_transform_free(context, transform);
    }
}

/* ---- mistakes ------------------------------------------------------------------------------------------ */

CONTEXT_TEST(mistakes_in_a_list_are_named, 0, 1)
{
    static const struct {
        const char *spec;
        bool values_only;
        sp_status status;
        const char *said;
    } cases[] = {
        {"foo(1)", false, SP_ERROR_ARGUMENT, "\"foo\""},
        {"gq(1),#foo()", false, SP_ERROR_ARGUMENT, "\"#foo\""},
        {"lt()", false, SP_ERROR_ARGUMENT, "lt needs a number"},
        {"#knn( )", false, SP_ERROR_ARGUMENT, "#knn needs a number"},
        {"abs(2)", false, SP_ERROR_ARGUMENT, "abs takes no number (got \"2\")"},
        {"#max(1)", false, SP_ERROR_ARGUMENT, "#max takes no number"},
        {"mul(2x)", false, SP_ERROR_ARGUMENT, "\"2x\" is not a number"},
        {"mul(1,5)", false, SP_ERROR_ARGUMENT, "\"1,5\" is not a number"},
        {"mul(nan)", false, SP_ERROR_ARGUMENT, "\"nan\" is not a number"},
        {"mul(1e39)", false, SP_ERROR_ARGUMENT, "1e+39 is too large"},
        {"log(-2)", false, SP_ERROR_ARGUMENT, "base -2"},
        {"#knn(-1)", false, SP_ERROR_ARGUMENT, "#knn: -1"},
        {"#knn(0.3)", false, SP_ERROR_ARGUMENT, "#knn: 0.3"},
        {"#ceilnb(3e9)", false, SP_ERROR_ARGUMENT, "#ceilnb: 3e+09"},
        {"#mcl(0)", false, SP_ERROR_ARGUMENT, "inflation 0"},
        {"#symmcl(31)", false, SP_ERROR_ARGUMENT, "inflation 31"},
        {"#step(31)", false, SP_ERROR_ARGUMENT, "31 squarings"},
        {"lt(2) mul(3)", false, SP_ERROR_ARGUMENT, "a comma at \"mul(3)\""},
        {"lt(2),", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \"\""},
        {",lt(2)", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \",lt(2)\""},
        {"lt(2", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \"lt(2\""},
        {"lt", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \"lt\""},
        {"LT(2)", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \"LT(2)\""},
        {"#knn(3)", true, SP_ERROR_ARGUMENT, "#knn works on whole graphs"},
        {"rand(0.5)", true, SP_ERROR_UNSUPPORTED, "rand"},
        {"#tug(2)", false, SP_ERROR_UNSUPPORTED, "#tug of mcl is not offered; let mcl's mcxload or mcx alter"},
        {"#shrug()", false, SP_ERROR_UNSUPPORTED, "#shrug"},
        {"#ssq(1)", false, SP_ERROR_UNSUPPORTED, "#ssq"},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        mcl_transform *transform = NULL;
        const sp_status status = mcl_transform_parse(context, cases[k].spec, cases[k].values_only, &transform);
        ck_assert_msg(status == cases[k].status && !transform, "%s: %s", cases[k].spec, sp_status_string(status));
        ck_assert_msg(strstr(sp_last_error(context), cases[k].said) != NULL, "%s: \"%s\" lacks \"%s\"",
                      cases[k].spec, sp_last_error(context), cases[k].said);
    }
}

CONTEXT_TEST(graphs_that_an_operation_cannot_take_are_refused, 0, 2)
{
    static const struct { const char *spec; sp_status status; } cases[] = {
        {"mul(1e38),mul(1e38)", SP_ERROR_NOT_FINITE}, {"log(1)", SP_ERROR_NOT_FINITE},
        {"mul(1e37),#mul()", SP_ERROR_NOT_FINITE},    {"mul(1e37),#step(1)", SP_ERROR_NOT_FINITE},
        {"add(-2),#knn(2)", SP_ERROR_UNSUPPORTED},    {"add(-2),#ceilnb(2)", SP_ERROR_UNSUPPORTED},
        {"#ils()", SP_ERROR_UNSUPPORTED},             {"add(-2),#mcl(2)", SP_ERROR_ARGUMENT},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        sp_csr graph = graph_of_text(context, 6, directed);
        const sp_status status = apply(context, cases[k].spec, &graph);
        ck_assert_msg(status == cases[k].status, "%s: %s (%s)", cases[k].spec, sp_status_string(status),
                      sp_last_error(context));
        ck_assert_msg(sp_last_error(context)[0] != '\0', "%s: no sentence", cases[k].spec);
        sp_csr_free(context, &graph);
    }
    sp_csr wide = test_from_dense(context, 1, 2, (const double[]){1, 2}, SP_F32);
    ck_assert_int_eq(apply(context, "gq(1)", &wide), SP_ERROR_ARGUMENT);
    sp_csr_free(context, &wide);
}

static const char *const brutal_specs[] = {"gq(0.5),mul(2)", "#knn(3)",   "#knnj(3)", "#ceilnb(2)", "#max(),#ils()",
                                           "#selfmax()",     "#step(2)",  "#rev()",   "#arcsub()",  "#mcl(2)",
                                           "#symmcl(2)",     "#selfrm()", "#add(),gq(1)"};

/* Allocation after allocation fails, alone or with all later ones, until the list succeeds. */
static void exhaust(const char *spec, bool fail_all)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    mcl_transform *transform = parse(context, spec);
    const int64_t blocks = heap.live_blocks;
    sp_status status = SP_ERROR_HOST_MEMORY;
    int64_t n = 0;
    for (; status != SP_OK; n++) {
        sp_csr graph = graph_of_text(context, 6, directed);
        heap.allocations = 0;
        heap.fail_at = n;
        heap.fail_all = fail_all;
        status = mcl_transform_graph(context, transform, NULL, &graph);
        heap.fail_at = -1;
        ck_assert_msg(status == SP_OK || status == SP_ERROR_HOST_MEMORY, "%s, allocation %d: %s", spec, (int)n,
                      sp_status_string(status));
        sp_csr_free(context, &graph);
        ck_assert_msg(heap.live_blocks == blocks, "%s, allocation %d: %d blocks leaked", spec, (int)n,
                      (int)(heap.live_blocks - blocks));
        ck_assert_msg(n < 2000, "%s: no success after %d failed allocations", spec, (int)n);
    }
    mcl_transform_free(context, transform);
    test_end_heap(context, &heap);
}

TEST(failed_allocations_leak_nothing)
{
    exhaust(brutal_specs[_i], false);
    exhaust(brutal_specs[_i], true);
}

static const test_entry tests[] = {
    CASE("results", 120),
    TURNS(random_graphs_agree_with_the_dense_reference, COUNT(references)),
    ONCE(clustering_keeps_the_arcs_within_clusters),
    ONCE(threads_do_not_change_the_result),
    ONCE(rand_keeps_about_the_share_asked_for),
    ONCE(value_lists_run_in_f32),
    CASE("mistakes", 120),
    ONCE(mistakes_in_a_list_are_named),
    ONCE(graphs_that_an_operation_cannot_take_are_refused),
    TURNS(failed_allocations_leak_nothing, COUNT(brutal_specs)),
    {0},
};

int main(void) { return test_run("transform", tests, recorded_tests); }
