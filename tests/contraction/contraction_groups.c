/* test_contraction: groups, matchings, hierarchies and undirected graphs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contraction_shared.h"

/* ---- groups -------------------------------------------------------------------------------------------- */

HOST_TEST(statistics_of_groups_agree_with_the_quotient, 2)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        subject s = random_subject(host, seed);
        contraction_group *group = calloc((size_t)s.groups + 1, sizeof *group);
        double *sizes, all = 0;
        int64_t entries;
        const sp_contract_options sum = {0};
        sp_csr c = definition(host, &s, &sum, &sizes, &entries);
        ck_ok(host, contraction_groups(host, &s.g, s.labels, s.groups, group));
        for (int64_t p = 0; p < s.groups; p++) all += group[p].internal + group[p].cut;
        for (int64_t p = 0; p < s.groups; p++) {
            double internal = 0, cut = 0, bound = 0;
            int64_t size = 0;
            for (int64_t i = 0; i < s.g.rows && s.groups < 500; i++) size += s.labels[i] == p;
            for (int64_t k = c.row_offsets[p]; k < c.row_offsets[p + 1]; k++) {
                *(c.col_indices[k] == p ? &internal : &cut) += test_value(&c, k);
                bound += sizes[k];
            }
            const double own = group[p].internal + group[p].cut, smaller = fmin(own, all - own);
            const double conductance = group[p].cut == 0 ? 0 : smaller > 0 ? group[p].cut / smaller : 1;
            test_expect((s.groups >= 500 || group[p].size == size) &&
                            fabs(group[p].internal - internal) <= 1e-6 * bound &&
                            fabs(group[p].cut - cut) <= 1e-6 * bound && group[p].conductance == conductance,
                        "%s: group %lld has %lld nodes, %g, %g, %g", s.name, (long long)p, (long long)group[p].size,
                        group[p].internal, group[p].cut, group[p].conductance);
        }
        free_all(sizes, group);
        sp_csr_free(host, &c);
        free_subject(host, &s);
    }
}

/* Two triangles joined by an edge: each leaves with 1 of its weight 7. */
HOST_TEST(conductance_of_two_triangles_is_a_seventh, 1)
{
    const double edges[] = {0, 1, 1, 0, 0, 0,  1, 0, 1, 0, 0, 0,  1, 1, 0, 1, 0, 0,
                            0, 0, 1, 0, 1, 1,  0, 0, 0, 1, 0, 1,  0, 0, 0, 1, 1, 0};
    const int32_t labels[] = {0, 0, 0, 1, 1, 1}, together[] = {0, 0, 0, 0, 0, 0};
    sp_csr g = test_from_dense(host, 6, 6, edges, SP_F32);
    contraction_group group[2];
    ck_ok(host, contraction_groups(host, &g, labels, 2, group));
    for (int p = 0; p < 2; p++) {
        ck_assert(group[p].size == 3 && group[p].internal == 6 && group[p].cut == 1);
        ck_assert(group[p].conductance == 1 / 7.0);
    }
    ck_ok(host, contraction_groups(host, &g, together, 2, group));
    ck_assert(group[0].internal == 14 && group[0].cut == 0 && group[0].conductance == 0 && group[1].size == 0);
    ck_assert_int_eq(contraction_groups(host, &g, labels, 1, group), SP_ERROR_ARGUMENT);
    sp_csr_free(host, &g);
}

HOST_TEST(compact_labels_leave_no_group_empty, 1)
{
    int32_t labels[] = {7, -1, 3, 7, 9, -5, 3}, *old;
    const int32_t expected[] = {1, -1, 0, 1, 2, -5, 0};
    int64_t groups = 11;
    ck_ok(host, contraction_compact(host, 7, labels, &groups, &old));
    ck_assert_int_eq(groups, 3);
    ck_assert_mem_eq(labels, expected, sizeof labels);
    ck_assert(old[0] == 3 && old[1] == 7 && old[2] == 9);
    sp_free(host, old);
    ck_ok(host, contraction_compact(host, 7, labels, &groups, NULL));
    ck_assert_int_eq(groups, 3);
    ck_assert_mem_eq(labels, expected, sizeof labels);
    groups = 2;
    test_mark(&old, sizeof old);
    ck_assert_int_eq(contraction_compact(host, 7, labels, &groups, &old), SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&old, sizeof old));
    ck_assert_int_eq(groups, 2);
    groups = 0;
    ck_ok(host, contraction_compact(host, 0, labels, &groups, NULL));
    ck_assert_int_eq(groups, 0);
}

/* ---- hierarchies --------------------------------------------------------------------------------------- */

static sp_status match_labeller(sp_context *context, void *user, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    return contraction_coarsen(context, g, &(contraction_coarsening){.seed = *(uint64_t *)user}, labels, groups);
}

static sp_status failing_labeller(sp_context *context, void *user, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    int *left = user;
    if (--*left < 0) return sp_fail(context, SP_ERROR_ARGUMENT, "enough");
    return contraction_coarsen(context, g, NULL, labels, groups);
}

static void check_hierarchy(sp_context *context, sp_context *host, const sp_csr *g, contraction_engine engine,
                            uint64_t seed)
{
    const contraction_options options = {.engine = engine, .how = {.loops = SP_LOOPS_KEEP}};
    contraction_hierarchy levels;
    ck_ok(context, contraction_repeat(context, g, 10, match_labeller, &seed, &options, &levels));
    test_expect(levels.count >= 2 && levels.count <= 10, "seed %d: %d levels", (int)seed, levels.count);
    subject s = {.g = *g, .labels = malloc(((size_t)g->rows + 1) * sizeof(int32_t))};
    for (int64_t i = 0; i < g->rows; i++) s.labels[i] = (int32_t)i;
    int64_t nodes = g->rows;
    for (int i = 0; i < levels.count; i++) {
        const contraction_level *level = &levels.level[i];
        test_expect(level->nodes == nodes && level->groups < nodes && level->c.rows == level->groups &&
                        level->c.space == SP_HOST, "seed %d: level %d has %lld nodes and %lld groups", (int)seed, i,
                    (long long)level->nodes, (long long)level->groups);
        for (int64_t k = 0; k < g->rows; k++) s.labels[k] = level->map[s.labels[k]];
        nodes = s.groups = level->groups;
        double *sizes;
        int64_t entries;
        sp_csr direct = definition(host, &s, &options.how, &sizes, &entries);
        product_same(&direct, &level->c, "composed maps"); /* integers: sums are exact */
        free(sizes);
        sp_csr_free(host, &direct);
    }
    free(s.labels);
    contraction_hierarchy_free(context, &levels);
    ck_assert_ptr_null(levels.level);
}

DEVICE_TEST(maps_of_a_hierarchy_compose_to_the_direct_contraction, _i, 2)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        test_random random = test_seed(seed);
        sp_csr g = test_matrix(host, &random, 60, 60, 0.1, SP_F32, TEST_INTEGERS);
        for (int engine = CONTRACTION_AUTO; engine <= CONTRACTION_PRODUCT; engine++)
            check_hierarchy(context, host, &g, (contraction_engine)engine, seed);
        sp_csr_free(host, &g);
    }
}

HOST_TEST(a_hierarchy_ends_where_nothing_is_contracted_or_the_labeller_fails, 1)
{
    const double apart[] = {1, 0, 0, 2}, pair[] = {0, 1, 1, 0};
    sp_csr loops = test_from_dense(host, 2, 2, apart, SP_F32), edge = test_from_dense(host, 2, 2, pair, SP_F32);
    sp_csr wide = test_from_dense(host, 1, 4, apart, SP_F32);
    contraction_hierarchy levels;
    uint64_t seed = 1;
    int left = 1;
    ck_ok(host, contraction_repeat(host, &loops, 5, match_labeller, &seed, NULL, &levels));
    ck_assert_int_eq(levels.count, 0);
    contraction_hierarchy_free(host, &levels);
    ck_ok(host, contraction_repeat(host, &edge, 5, match_labeller, &seed, NULL, &levels));
    ck_assert_int_eq(levels.count, 1);
    ck_assert(levels.level[0].groups == 1 && levels.level[0].c.nnz == 1);
    contraction_hierarchy_free(host, &levels);
    ck_ok(host, contraction_repeat(host, &edge, 0, match_labeller, &seed, NULL, &levels));
    ck_assert_int_eq(levels.count, 0);
    contraction_hierarchy_free(host, &levels);
    ck_assert_int_eq(contraction_repeat(host, &edge, 5, failing_labeller, &left, NULL, &levels), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(host), "enough");
    ck_assert(levels.count == 0 && !levels.level);
    ck_assert_int_eq(contraction_repeat(host, &wide, 5, match_labeller, &seed, NULL, &levels), SP_ERROR_ARGUMENT);
    test_free(host, &wide, &loops, &edge);
}

/* ---- undirected graphs --------------------------------------------------------------------------------- */

/* G + Gᵀ for a random G: the same terms in either direction. */
static sp_csr undirected(sp_context *host, test_random *random, int64_t nodes, sp_value_type type)
{
    sp_csr half = test_matrix(host, random, nodes, nodes, 0.1, type, TEST_SIGNED), transpose, g;
    ck_ok(host, sp_csr_transpose(host, &half, &transpose));
    ck_ok(host, sp_csr_add(host, 1, &half, 1, &transpose, &g));
    test_free(host, &transpose, &half);
    return g;
}

/* Bit for bit. */
static bool is_symmetric(sp_context *host, const sp_csr *c)
{
    const size_t size = c->value_type == SP_F32 ? sizeof(float) : sizeof(double);
    sp_csr transpose;
    ck_ok(host, sp_csr_transpose(host, c, &transpose));
    const bool same = memcmp(c->row_offsets, transpose.row_offsets, ((size_t)c->rows + 1) * sizeof(int64_t)) == 0 &&
                      memcmp(c->col_indices, transpose.col_indices, (size_t)c->nnz * sizeof(int32_t)) == 0 &&
                      memcmp(c->values, transpose.values, (size_t)c->nnz * size) == 0;
    sp_csr_free(host, &transpose);
    return same;
}

DEVICE_TEST(mirrored_quotients_of_undirected_graphs_are_symmetric, _i, 2)
{
    int rounded = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        test_random random = test_seed(seed);
        const contraction_options options = {.engine = seed % 2 ? CONTRACTION_FUSED : CONTRACTION_PRODUCT,
                                             .how.combine = seed % 5 ? SP_COMBINE_SUM : SP_COMBINE_MEAN};
        sp_csr g = undirected(host, &random, 120, seed % 4 < 2 ? SP_F64 : SP_F32), c, before, lower, lower_before;
        int32_t labels[120];
        bool symmetric = false;
        ck_assert(is_symmetric(host, &g));
        for (int i = 0; i < 120; i++) labels[i] = (int32_t)test_below(&random, 8) - 1;
        ck_ok(context, contraction_quotient(context, &g, labels, 7, &options, &c, NULL));
        test_to_host(context, &c);
        ck_ok(host, sp_csr_copy(host, &c, SP_HOST, &before));
        rounded += !is_symmetric(host, &before);
        ck_ok(host, contraction_mirror(host, &c, &symmetric));
        test_expect(symmetric && is_symmetric(host, &c), "seed %d: not symmetric", (int)seed);
        ck_ok(host, sp_csr_select(host, &c, SP_SELECT_LOWER, 0, &lower));
        ck_ok(host, sp_csr_select(host, &before, SP_SELECT_LOWER, 0, &lower_before));
        product_same(&lower_before, &lower, "lower triangle");
        test_free(host, &lower_before, &lower, &before);
        sp_csr_free(context, &c);
        sp_csr_free(host, &g);
    }
    test_expect(rounded > 0, "no quotient had rounding to mend");
}

HOST_TEST(what_has_no_mirror_image_stays, 1)
{
    const double numbers[] = {1, 2, 0, 3, 4, 5, 0, 0, 6}, none[] = {0};
    sp_csr c = test_from_dense(host, 3, 3, numbers, SP_F64), wide = test_from_dense(host, 1, 3, numbers, SP_F64);
    sp_csr same = test_from_dense(host, 3, 3, numbers, SP_F64), empty = test_from_dense(host, 0, 0, none, SP_F32);
    bool symmetric = true;
    ck_ok(host, contraction_mirror(host, &c, &symmetric));
    ck_assert(!symmetric);
    product_same(&same, &c, "values");
    ck_ok(host, contraction_mirror(host, &empty, &symmetric));
    ck_assert(symmetric);
    ck_assert_int_eq(contraction_mirror(host, &wide, &symmetric), SP_ERROR_ARGUMENT);
    test_free(host, &empty, &same, &wide, &c);
}

DEVICE_TEST(levels_of_an_undirected_hierarchy_are_symmetric, _i, 2)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        test_random random = test_seed(seed);
        const contraction_options options = {.engine = seed % 2 ? CONTRACTION_FUSED : CONTRACTION_PRODUCT,
                                             .undirected = true};
        sp_csr g = undirected(host, &random, 200, seed % 4 < 2 ? SP_F64 : SP_F32);
        contraction_hierarchy levels;
        ck_ok(context, contraction_repeat(context, &g, 6, match_labeller, &seed, &options, &levels));
        ck_assert(levels.count >= 4);
        for (int i = 0; i < levels.count; i++)
            test_expect(is_symmetric(host, &levels.level[i].c), "seed %d: level %d", (int)seed, i);
        contraction_hierarchy_free(context, &levels);
        sp_csr_free(host, &g);
    }
}

/* ---- arrays of the caller -------------------------------------------------------------------------------- */

/* `c` has room for so many entries in `space`, and holds no matrix. */
static sp_csr make_room(sp_context *context, int64_t groups, int64_t entries, sp_value_type type, sp_space space)
{
    sp_csr c;
    ck_ok(context, sp_csr_create(context, groups, groups, entries, type, space, &c));
    if (space == SP_HOST) memset(c.row_offsets, 0x55, ((size_t)groups + 1) * sizeof *c.row_offsets);
    return c;
}

DEVICE_TEST(quotients_go_into_arrays_of_the_caller, _i, 2)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        subject s = random_subject(host, seed);
        const sp_contract_options how = {.combine = (sp_combine)(seed % 6), .loops = (sp_loops)(seed % 3)};
        const sp_space space = seed % 2 ? test_space(context) : SP_HOST;
        sp_contract_info info, expected_info;
        sp_csr expected;
        ck_ok(host, sp_contract(host, &s.g, s.labels, SP_HOST, s.groups, &how, &expected, &expected_info));
        for (int more = 0; more < 2; more++) {
            sp_csr c = make_room(context, s.groups, more ? s.g.nnz : expected.nnz, s.g.value_type, space);
            const void *arrays[] = {c.row_offsets, c.col_indices, c.values};
            ck_ok(context, sp_contract_into(context, &s.g, s.labels, SP_HOST, s.groups, &how, &c, &info));
            ck_assert(arrays[0] == c.row_offsets && arrays[1] == c.col_indices && arrays[2] == c.values);
            ck_assert(c.nnz == expected.nnz && info.nnz == c.nnz && info.entries == expected_info.entries);
            test_to_host(context, &c);
            product_same(&expected, &c, s.name);
            sp_csr_free(context, &c);
        }
        sp_csr_free(host, &expected);
        free_subject(host, &s);
    }
}

DEVICE_TEST(a_quotient_that_finds_no_room_says_how_large_it_is, _i, 1)
{
    double *sizes;
    int64_t entries;
    subject s = random_subject(host, 4);
    const sp_contract_options sum = {0};
    sp_contract_info info = {0};
    sp_csr expected = definition(host, &s, &sum, &sizes, &entries);
    sp_csr c = make_room(context, s.groups, expected.nnz - 1, s.g.value_type, SP_HOST), bad;
    ck_assert_int_gt(expected.nnz, 1);
#define INTO(to) sp_contract_into(context, &s.g, s.labels, SP_HOST, s.groups, NULL, to, &info)
    ck_assert_int_eq(INTO(&c), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "and its arrays have room for"));
    ck_assert_int_eq(info.nnz, expected.nnz);
    ck_assert_int_eq(c.nnz, expected.nnz - 1);
    ck_assert_int_eq(c.row_offsets[0], 0x5555555555555555); /* not written */
    bad = c;
    bad.rows++;
    ck_assert_int_eq(INTO(&bad), SP_ERROR_ARGUMENT);
    bad = c;
    bad.col_indices = s.g.col_indices;
    ck_assert_int_eq(INTO(&bad), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "the arrays of C and G overlap"));
    ck_assert_int_eq(INTO(&s.g), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(INTO(NULL), SP_ERROR_ARGUMENT);
#undef INTO
    free(sizes);
    sp_csr_free(context, &c);
    sp_csr_free(host, &expected);
    free_subject(host, &s);
}

const test_entry groups_tests[] = {
    CASE("groups", 120),
    ONCE(statistics_of_groups_agree_with_the_quotient),
    ONCE(conductance_of_two_triangles_is_a_seventh),
    ONCE(compact_labels_leave_no_group_empty),
    ON_DEVICES(maps_of_a_hierarchy_compose_to_the_direct_contraction),
    ON_DEVICES(mirrored_quotients_of_undirected_graphs_are_symmetric),
    ONCE(what_has_no_mirror_image_stays),
    ON_DEVICES(levels_of_an_undirected_hierarchy_are_symmetric),
    ON_DEVICES(quotients_go_into_arrays_of_the_caller),
    ON_DEVICES(a_quotient_that_finds_no_room_says_how_large_it_is),
    ONCE(a_hierarchy_ends_where_nothing_is_contracted_or_the_labeller_fails),
    {0},
};
