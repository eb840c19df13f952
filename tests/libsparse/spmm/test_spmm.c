/* sp_spmm_*, sp_sddmm and sp_edge_softmax* against dense references in f64: random products of every type, reduction,
 * algorithm and stride, rows of extreme lengths, arguments of maxima, gradients by finite differences, mistakes; and
 * products out of core against those in core, bit by bit. */
#include "spmm_shared.h"

/* ---- random products ----------------------------------------------------------------------------------- */

static scenario random_scenario(sp_context *host, sp_context *context, uint64_t seed)
{
    static const struct { sp_value_type a; sp_dense_type x, y; } types[] = {
        {SP_F32, SP_DENSE_F32, SP_DENSE_F32},   {SP_F32, SP_DENSE_F32, SP_DENSE_F32},
        {SP_F64, SP_DENSE_F64, SP_DENSE_F64},   {SP_F32, SP_DENSE_F16, SP_DENSE_F32},
        {SP_F32, SP_DENSE_F16, SP_DENSE_F16},   {SP_F32, SP_DENSE_BF16, SP_DENSE_F32},
        {SP_F32, SP_DENSE_BF16, SP_DENSE_BF16},
    };
    static const double scales[][2] = {{1, 0}, {1, 0}, {1, 1}, {2.5, 0}, {-0.5, 0.75}, {0, 2}};
    test_random random = test_seed(seed);
    const int type = (int)test_below(&random, COUNT(types));
    const double *scale = scales[test_below(&random, COUNT(scales))];
    const int64_t width = widths[seed % WIDTHS], bound = width < 100 ? 200 : 60;
    const int64_t rows = test_below(&random, 20) ? 1 + test_below(&random, bound) : 0;
    const int64_t cols = test_below(&random, 20) ? 1 + test_below(&random, bound) : 0;
    const test_values kinds[] = {TEST_POSITIVE, TEST_SIGNED, TEST_INTEGERS, TEST_PATTERN},
                      kind = kinds[test_below(&random, 4)];
    const int64_t gap = test_below(&random, 2) ? test_below(&random, 9) : 0, tall = rows > cols ? rows : cols;
    const bool cuda = sp_context_is_cuda(context);
    scenario s = {.alpha = scale[0], .beta = scale[1], .seed = seed};
    s.a = random_sparse(host, &random, rows, cols, types[type].a, kind);
    /* X and Y have rows for A and for its transpose; each product takes the upper part. */
    s.x = random_dense(&random, tall, width, width + gap, types[type].x, kind);
    s.y = random_dense(&random, tall, width, width + test_below(&random, 2) * gap, types[type].y, TEST_SIGNED);
    s.partition_bytes = test_below(&random, 2) ? (size_t)(1 + test_below(&random, 20000)) : 0;
    s.a_moves = cuda && test_below(&random, 2);
    s.x_moves = cuda && test_below(&random, 2);
    s.y_moves = cuda && test_below(&random, 2);
    return s;
}

/* TEST_CASES=N runs N cases in place of these. In brief there are four times as many, but of each two reductions, a
 * sum and an extreme, with one algorithm: kernels are many by type, width and alignment. */
DEVICE_TEST(random_products_agree_with_the_reference, _i, 2)
{
    const bool brief = test_is_brief();
    const int64_t cases = test_cases(320) * (brief ? 4 : 1);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        scenario s = random_scenario(host, context, seed);
        for (int kind = 0; kind < 2 * REDUCTIONS; kind++) {
            sp_spmm_options options = {.reduce = (sp_reduce)(kind / 2), .transpose = kind % 2, .deterministic = true,
                                       .partition_bytes = s.partition_bytes};
            sp_dense x = s.x;
            x.rows = options.transpose ? s.a.rows : s.a.cols;
            if (brief && kind % 4 != (int)(seed / 4 % 4)) continue;
            answer expected = reference(&(problem){&s.a, &x, options.reduce, options.transpose});
            for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
                if (brief && algorithm != (int)(seed % ALGORITHMS)) continue;
                options.algorithm = (sp_spmm_algorithm)algorithm;
                run_scenario(context, &s, &options, &expected);
            }
            free_answer(&expected);
        }
        sp_csr_free(host, &s.a);
        free_all(s.x.values, s.y.values);
    }
}

/* Without every 101st row's entries, and without values for a pattern. */
static sp_csr thinned(sp_context *host, const sp_csr *whole, uint64_t seed, bool pattern)
{
    sp_csr a;
    ck_ok(host, sp_csr_copy(host, whole, SP_HOST, &a));
    int64_t kept = 0;
    for (int64_t i = 0, k = 0; i < a.rows; i++) {
        const int64_t end = a.row_offsets[i + 1];
        for (; k < end; k++) {
            if ((i + (int64_t)seed) % 101 == 0) continue;
            a.col_indices[kept] = a.col_indices[k];
            ((float *)a.values)[kept++] = ((float *)a.values)[k];
        }
        a.row_offsets[i + 1] = kept;
    }
    a.nnz = kept;
    ck_ok(host, sp_csr_check(host, &a));
    if (pattern) test_drop_values(host, &a);
    return a;
}

/* In brief only what panels take: all columns in whole packets. */
TEST(communities_agree_with_the_reference)
{
    enum { GRAPHS = 3 };
    static const sp_dense_type types[][2] = {{SP_DENSE_F32, SP_DENSE_F32}, {SP_DENSE_F32, SP_DENSE_F32},
                                             {SP_DENSE_F16, SP_DENSE_F32}, {SP_DENSE_F16, SP_DENSE_F16},
                                             {SP_DENSE_BF16, SP_DENSE_F32}};
    static const double scales[][2] = {{1, 0}, {-0.5, 0.75}};
    static const int64_t some[] = {31, 16, 64, 200, 32, 33, 3};
    /* Whose last tile is a half or a quarter of a line of X, or whose rows begin and end anywhere; {columns, type} */
    static const int tails[][2] = {{16, 0}, {8, 0}, {44, 1}, {24, 2}, {96, 2}, {72, 3}, {96, 4},
                                   {33, 0}, {50, 1}, {71, 2}, {30, 3}, {131, 4}};
    enum { TAILS = COUNT(tails) };
    sp_context *host = test_context(0, 2), *context = test_context(_i, 2);
    const bool cuda = sp_context_is_cuda(context);
    sp_csr graphs[GRAPHS];
    for (int kind = 0; kind < GRAPHS; kind++) graphs[kind] = random_communities(host, kind);
    for (uint64_t seed = 1; seed <= WIDTHS + TAILS; seed++) {
        const int *tail = seed > WIDTHS ? tails[seed - WIDTHS - 1] : NULL;
        const int64_t width = tail ? tail[0] : some[seed % 7];
        const int64_t stride = width + (seed % 4 == 3 && !tail ? 5 : (int64_t)(seed % 4) * 8);
        if (test_is_brief() && !tail && (width % 8 != 0 || seed % 4 == 3)) continue;
        const int type = tail ? tail[1] : (int)(seed % (COUNT(types)));
        const sp_spmm_options options = {
            .reduce = seed % 6 == 5 && !tail ? SP_REDUCE_MAX : seed % 2 ? SP_REDUCE_SUM : SP_REDUCE_MEAN,
            .transpose = seed % 3 == 0};
        test_random random = test_seed(seed);
        scenario s = {.alpha = scales[seed / 2 % 2][0], .beta = scales[seed / 2 % 2][1], .seed = seed};
        s.a = thinned(host, &graphs[seed / 2 % GRAPHS], seed, seed % 4 == 0);
        s.x = random_dense(&random, s.a.cols, width, stride, types[type][0], TEST_SIGNED);
        s.y = random_dense(&random, s.a.rows, width, stride, types[type][1], TEST_SIGNED);
        s.a_moves = s.x_moves = s.y_moves = cuda;
        run_and_free(context, host, &s, &options);
    }
    for (int kind = 0; kind < GRAPHS; kind++) sp_csr_free(host, &graphs[kind]);
    test_end(context, host);
}

static const test_entry tests[] = {
    CASE("products", 600),
    ON_DEVICES(random_products_agree_with_the_reference),
    ON_DEVICES(communities_agree_with_the_reference),
    {0},
};

int main(void) { return test_run("spmm", tests, promises_tests, out_of_core_tests, edges_tests, layouts_tests); }
