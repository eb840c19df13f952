/* generate_matrix: every kind gives a well-formed matrix, the same whatever the threads, of the shape that its
 * parameters name; bad specifications are refused by a sentence. */
#include <string.h>

#include "generate.h"
#include "support.h"

static const char *const specs[] = {
    "rmat:10,8", "uniform:500,7", "uniform:500,7,90", "grid:40,30,70", "fem2d:12,9,3", "fem3d:5,4,6,2,4",
    "web:3000,8,57,70,100", "powerlaw:2000,3.4,300,67,36", "torus:5,4,3", "torus:2,2,2", "torus:1", "torus:1,1000",
    "arrow:300,2,25", "arrow:3,5,100", "arrow:1,0,0", "cluster:1500,30", "cluster:1,0", "uniform:1,1", "uniform:9,0",
    "rmat:1,1", "grid:1,1,100", "community:2000,20,300,50,90,80,0", "community:2000,20,300,50,90,80,1",
    "community:1,1,1,50,1,50,1", "molecules:1000,20", "molecules:7,30", "molecules:1,1", "fem2d:1,1,1",
    "web:1,2,50,50,3", "powerlaw:1,1,1,50,50", "mycielski:2", "mycielski:9", "stencil:20,15,1,5", "stencil:20,15,1,9",
    "stencil:7,9,8,7", "stencil:7,9,8,27/shuffled", "stencil:1,1,1,5", "band:400,9,60", "band:5,9,100",
    "blocks:300,3,17", "blocks:1,1,1", "aggregation:7,8,9", "restriction:7,8,9/shuffled", "coarse:7,8,9",
    "bipartite:900,6,90,50,70", "overlap:1500,12,5,200", "overlap:1,1,1,1", "smallworld:500,6,10", "smallworld:3,9,0",
    "knn:700,6", "knn:5,6", "debruijn:900,15", "debruijn:1,100", "equal:200,9", "crossed:300,4,2,3",
    "crossed:3,1,9,9", "entries:90000,40", "entries:5,0", "rmat:9,8/sorted",
};
enum { SPECS = COUNT(specs) };

static sp_csr make(sp_context *context, const char *spec, uint64_t seed, sp_value_type type)
{
    sp_csr matrix;
    sp_status status = generate_matrix(context, spec, seed, type, &matrix);
    ck_assert_msg(status == SP_OK, "%s: %s", spec, sp_last_error(context));
    return matrix;
}

CONTEXT_TEST(every_kind_gives_a_well_formed_matrix, 0, 2)
{
    sp_csr matrix = make(context, specs[_i % SPECS], 1, _i < SPECS ? SP_F64 : SP_F32);
    ck_ok(context, sp_csr_check(context, &matrix));
    ck_assert_int_eq(matrix.value_type, _i < SPECS ? SP_F64 : SP_F32);
    for (int64_t k = 0; k < matrix.nnz; k++)
        test_expect(test_value(&matrix, k) > 0 && test_value(&matrix, k) <= 1, "%s: value %g", specs[_i % SPECS],
                    test_value(&matrix, k));
    sp_csr_free(context, &matrix);
}

TEST(threads_do_not_matter_and_seeds_do)
{
    sp_context *one = test_context(0, 1), *many = test_context(0, 7);
    for (uint64_t seed = 1; seed < 4; seed++) {
        sp_csr a = make(one, specs[_i], seed, SP_F64), b = make(many, specs[_i], seed, SP_F64);
        test_same(&a, &b, seed);
        sp_csr c = make(one, specs[_i], seed + 10, SP_F64);
        if (a.nnz > 0)
            ck_assert_msg(a.nnz != c.nnz || memcmp(a.values, c.values, (size_t)a.nnz * sizeof(double)) != 0,
                          "%s: seeds %llu and %llu give the same", specs[_i], (unsigned long long)seed,
                          (unsigned long long)seed + 10);
        sp_csr_free(one, &a);
        sp_csr_free(many, &b);
        sp_csr_free(one, &c);
    }
    test_end(one, many);
}

/* Large enough that the rows are really shared out. */
TEST(threads_do_not_matter_for_large_matrices)
{
    static const char *const large[] = {"rmat:14,8", "web:60000,8,57,70,600", "powerlaw:60000,3.4,600,67,36",
                                        "community:20000,30,600,50,300,80,1"};
    sp_context *one = test_context(0, 1), *many = test_context(0, 7);
    sp_csr a = make(one, large[_i], 4, SP_F32), b = make(many, large[_i], 4, SP_F32);
    test_same(&a, &b, 4);
    sp_csr_free(one, &a);
    sp_csr_free(many, &b);
    test_end(one, many);
}

CONTEXT_TEST(symmetric_kinds_have_symmetric_values, 0, 1)
{
    static const char *const symmetric[] = {"grid:40,30,70", "cluster:1500,30", "fem2d:7,9,3", "fem3d:4,3,5,1,3",
                                            "torus:5,4,3", "mycielski:3", "mycielski:8"};
    sp_csr a = make(context, symmetric[_i], 3, SP_F64), b;
    ck_ok(context, sp_csr_transpose(context, &a, &b));
    test_same(&a, &b, 3);
    test_free(context, &a, &b);
}

CONTEXT_TEST(grids_keep_their_share_of_edges, 0, 1)
{
    sp_csr none = make(context, "grid:40,30,0", 1, SP_F64), all = make(context, "grid:40,30,100", 1, SP_F64);
    sp_csr half = make(context, "grid:40,30,50", 1, SP_F64);
    ck_assert_int_eq(none.nnz, 0);
    ck_assert_int_eq(all.nnz, 2 * (39 * 30 + 40 * 29));
    ck_assert(20 * half.nnz > 9 * all.nnz && 20 * half.nnz < 11 * all.nnz);
    ck_assert_int_eq(test_row_length(&all, 0), 2);
    ck_assert(test_find(&all, 39, 40) < 0); /* the end of a line of the grid is no neighbour of the next line's begin */
    ck_assert(test_find(&all, 41, 1) >= 0);
    test_free(context, &none, &all, &half);
}

CONTEXT_TEST(finite_elements_couple_neighbours_by_full_blocks, 0, 1)
{
    sp_csr flat = make(context, "fem2d:5,4,3", 1, SP_F64), box = make(context, "fem3d:4,5,3,2,2", 1, SP_F64);
    ck_assert_int_eq(flat.rows, 60);
    ck_assert_int_eq(test_row_length(&flat, 0), 4 * 3);
    ck_assert_int_eq(test_row_length(&flat, (5 + 1) * 3), 9 * 3);
    ck_assert_int_eq(box.rows, 120);
    for (int64_t i = 0; i < box.rows; i++) ck_assert_int_eq(test_row_length(&box, i), 27 * 2);
    test_free(context, &flat, &box);
}

CONTEXT_TEST(torus_rows_hold_the_node_and_two_in_each_dimension, 0, 1)
{
    sp_csr matrix = make(context, "torus:5,4,3", 1, SP_F64);
    static const int64_t expected[] = {0, 1, 4, 5, 15, 20, 40};
    ck_assert_int_eq(matrix.rows, 60);
    ck_assert_int_eq(test_row_length(&matrix, 0), 7);
    for (int k = 0; k < 7; k++) ck_assert_int_eq(matrix.col_indices[k], expected[k]);
    ck_assert_int_eq(matrix.nnz, 60 * 7);
    sp_csr_free(context, &matrix);
}

/* Each order has twice the nodes and one, three times the edges and the nodes: 5 nodes in a ring, then 11 and 20
 * edges, 23 and 71. No edge's ends have a neighbour in common. */
CONTEXT_TEST(mycielski_graphs_grow_without_triangles, 0, 1)
{
    int64_t nodes = 2, edges = 1;
    char spec[] = "mycielski:2";
    for (; spec[10] <= '9'; spec[10]++) {
        sp_csr matrix = make(context, spec, 1, SP_F64);
        ck_assert_int_eq(matrix.rows, nodes);
        ck_assert_int_eq(matrix.nnz, 2 * edges);
        for (int64_t i = 0; i < nodes && nodes < 100; i++)
            for (int64_t k = matrix.row_offsets[i]; k < matrix.row_offsets[i + 1]; k++)
                for (int64_t j = matrix.row_offsets[i]; j < k; j++)
                    ck_assert(test_find(&matrix, matrix.col_indices[k], matrix.col_indices[j]) < 0);
        sp_csr_free(context, &matrix);
        edges = 3 * edges + nodes;
        nodes = 2 * nodes + 1;
    }
}

CONTEXT_TEST(arrowheads_have_dense_rows_and_columns, 0, 1)
{
    sp_csr full = make(context, "arrow:50,2,100", 1, SP_F64), bare = make(context, "arrow:50,0,100", 1, SP_F64);
    for (int64_t i = 0; i < 2; i++) ck_assert_int_eq(test_row_length(&full, i), 50);
    ck_assert_int_eq(test_row_length(&full, 20), 2 + 5);
    ck_assert_int_eq(bare.nnz, 5 * 50 - 2 * (1 + 2));
    test_free(context, &full, &bare);
}

static void check_same_pattern(const sp_csr *a, const sp_csr *b)
{
    ck_assert_int_eq(a->rows, b->rows);
    ck_assert_int_eq(a->cols, b->cols);
    ck_assert_int_eq(a->nnz, b->nnz);
    ck_assert_int_eq(memcmp(a->row_offsets, b->row_offsets, ((size_t)a->rows + 1) * sizeof *a->row_offsets), 0);
    ck_assert_int_eq(memcmp(a->col_indices, b->col_indices, (size_t)a->nnz * sizeof *a->col_indices), 0);
}

CONTEXT_TEST(grid_transfers_fit_each_other, 0, 2)
{
    sp_csr p = make(context, "aggregation:10,7,8", 3, SP_F64), r = make(context, "restriction:10,7,8", 3, SP_F64);
    sp_csr a = make(context, "stencil:10,7,8,7", 3, SP_F64), ra = make(context, "coarse:10,7,8", 3, SP_F64);
    sp_csr transposed, product;
    ck_ok(context, sp_csr_transpose(context, &p, &transposed));
    check_same_pattern(&transposed, &r);
    ck_ok(context, sp_spgemm(context, &r, &a, NULL, &product, NULL));
    check_same_pattern(&product, &ra);
    sp_csr *all[] = {&p, &r, &a, &ra, &transposed, &product};
    for (size_t i = 0; i < COUNT(all); i++) sp_csr_free(context, all[i]);
}

CONTEXT_TEST(stencils_touch_their_neighbours, 0, 1)
{
    static const struct {
        const char *spec;
        int64_t nnz, middle; /* entries of a row inside */
    } cases[] = {{"stencil:9,8,1,5", 5 * 72 - 2 * 9 - 2 * 8, 5}, {"stencil:9,8,1,9", 25 * 22, 9},
                 {"stencil:5,6,7,27", 13 * 16 * 19, 27}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        sp_csr m = make(context, cases[i].spec, 1, SP_F64);
        int64_t longest = 0;
        for (int64_t row = 0; row < m.rows; row++)
            if (test_row_length(&m, row) > longest) longest = test_row_length(&m, row);
        ck_assert_int_eq(m.nnz, cases[i].nnz);
        ck_assert_int_eq(longest, cases[i].middle);
        sp_csr_free(context, &m);
    }
}

/* Every node has as many as were asked for, and who is near is so for both: most arcs go both ways, and the graph of a
 * square has a long way across, unlike a random one. */
CONTEXT_TEST(nearest_neighbours_are_mutual_for_most, 0, 2)
{
    sp_csr m = make(context, "knn:3000,8", 5, SP_F64);
    int64_t mutual = 0;
    for (int64_t row = 0; row < m.rows; row++) {
        ck_assert_int_eq(test_row_length(&m, row), 8);
        for (int64_t k = m.row_offsets[row]; k < m.row_offsets[row + 1]; k++) {
            ck_assert_int_ne(m.col_indices[k], row);
            mutual += test_find(&m, m.col_indices[k], row) >= 0;
        }
    }
    ck_assert_int_gt(mutual, m.nnz * 3 / 5);
    sp_csr_free(context, &m);
}

CONTEXT_TEST(full_rows_and_columns_are_full, 0, 1)
{
    sp_csr m = make(context, "crossed:400,3,2,5", 5, SP_F64), columns;
    int64_t full_rows = 0, full_columns = 0;
    ck_ok(context, sp_csr_transpose(context, &m, &columns));
    for (int64_t i = 0; i < 400; i++) full_rows += test_row_length(&m, i) == 400;
    for (int64_t i = 0; i < 400; i++) full_columns += test_row_length(&columns, i) == 400;
    ck_assert_int_eq(full_rows, 2);
    ck_assert_int_eq(full_columns, 5);
    test_free(context, &m, &columns);
}

/* The sums of rows, in order of size, are those of the matrix as made. */
CONTEXT_TEST(numberings_keep_the_rows, 0, 1)
{
    static const char *const specs_of[3] = {"powerlaw:800,6,90,50,60", "powerlaw:800,6,90,50,60/shuffled",
                                            "powerlaw:800,6,90,50,60/sorted"};
    sp_csr m[3];
    int64_t lengths[3][100] = {{0}};
    for (int i = 0; i < 3; i++) {
        m[i] = make(context, specs_of[i], 5, SP_F64);
        for (int64_t row = 0; row < 800; row++) lengths[i][test_row_length(&m[i], row)]++;
    }
    ck_assert_mem_eq(lengths[0], lengths[1], sizeof lengths[0]);
    ck_assert_mem_eq(lengths[0], lengths[2], sizeof lengths[0]);
    for (int64_t row = 1; row < 800; row++)
        ck_assert_int_le(test_row_length(&m[2], row), test_row_length(&m[2], row - 1));
    ck_assert_mem_ne(m[0].row_offsets, m[1].row_offsets, 801 * sizeof *m[0].row_offsets);
    for (int i = 0; i < 3; i++) sp_csr_free(context, &m[i]);
}

CONTEXT_TEST(rectangular_uniform_matrices_have_their_columns, 0, 1)
{
    sp_csr matrix = make(context, "uniform:500,7,90", 1, SP_F64);
    int32_t largest = 0;
    ck_assert_int_eq(matrix.rows, 500);
    ck_assert_int_eq(matrix.cols, 90);
    for (int64_t k = 0; k < matrix.nnz; k++)
        if (matrix.col_indices[k] > largest) largest = matrix.col_indices[k];
    ck_assert_int_eq(largest, 89);
    ck_assert(matrix.nnz > 500 * 6);
    sp_csr_free(context, &matrix);
}

/* In order the columns stand beside the row; shuffled they do not, though as many are the community's. */
CONTEXT_TEST(communities_keep_their_columns_inside, 0, 2)
{
    sp_csr ordered = make(context, "community:5000,20,300,50,100,80,0", 3, SP_F32);
    sp_csr shuffled = make(context, "community:5000,20,300,50,100,80,1", 3, SP_F32);
    int64_t inside = 0, near = 0;
    for (int64_t i = 0; i < 5000; i++) {
        for (int64_t k = ordered.row_offsets[i]; k < ordered.row_offsets[i + 1]; k++)
            inside += ordered.col_indices[k] / 100 == i / 100;
        for (int64_t k = shuffled.row_offsets[i]; k < shuffled.row_offsets[i + 1]; k++)
            near += shuffled.col_indices[k] / 100 == i / 100;
    }
    /* 80 % before repeated entries are merged, which are the community's mostly */
    ck_assert_msg(10 * inside > 6 * ordered.nnz && 10 * inside < 9 * ordered.nnz, "%lld of %lld inside",
                  (long long)inside, (long long)ordered.nnz);
    ck_assert_msg(10 * near < shuffled.nnz, "%lld of %lld beside the row", (long long)near, (long long)shuffled.nnz);
    test_free(context, &ordered, &shuffled);
}

CONTEXT_TEST(molecules_have_few_bonds_that_go_both_ways, 0, 1)
{
    sp_csr matrix = make(context, "molecules:20000,20", 1, SP_F32);
    for (int64_t i = 0; i < matrix.rows; i++) {
        test_expect(test_row_length(&matrix, i) <= 4, "atom %lld has %lld bonds", (long long)i,
                    (long long)test_row_length(&matrix, i));
        for (int64_t k = matrix.row_offsets[i]; k < matrix.row_offsets[i + 1]; k++) {
            test_expect(matrix.col_indices[k] / 20 == i / 20, "atom %lld is bound to another molecule", (long long)i);
            test_expect(test_find(&matrix, matrix.col_indices[k], i) >= 0, "bond %lld of atom %lld is one-way",
                        (long long)k, (long long)i);
        }
    }
    ck_assert_msg(matrix.nnz > 2 * matrix.rows && matrix.nnz < 2.2 * (double)matrix.rows, "%lld bonds",
                  (long long)matrix.nnz);
    sp_csr_free(context, &matrix);
}

/* Hubs are what R-MAT, power laws and hosts are for: rows far above the mean, and not all of them at the begin. */
CONTEXT_TEST(skewed_kinds_have_hubs, 0, 1)
{
    static const char *const skewed[] = {"rmat:12,8", "powerlaw:4000,3.4,600,67,36", "web:4000,8,57,70,300",
                                         "community:4000,10,900,60,200,80,1"};
    sp_csr matrix = make(context, skewed[_i], 2, SP_F32);
    int64_t longest = 0, where = 0;
    for (int64_t i = 0; i < matrix.rows; i++)
        if (test_row_length(&matrix, i) > longest) longest = test_row_length(&matrix, where = i);
    ck_assert_msg(longest * matrix.rows > 5 * matrix.nnz, "%s: the longest row is %lld of %lld", skewed[_i],
                  (long long)longest, (long long)matrix.nnz);
    ck_assert(where > 0);
    sp_csr_free(context, &matrix);
}

CONTEXT_TEST(bad_specifications_are_refused, 0, 1)
{
    static const struct { const char *spec, *said; } bad[] = {
        {"", "begins with no kind"},          {"rmat", "rmat:SCALE,DEGREE"},
        {"rmatt:3,4", "begins with no kind"}, {"rma:3,4", "begins with no kind"},
        {"rmat:", "rmat:SCALE,DEGREE"},       {"rmat:3", "rmat:SCALE,DEGREE"},
        {"rmat:3,4,5", "rmat:SCALE,DEGREE"},  {"rmat:3,4x", "rmat:SCALE,DEGREE"},
        {"rmat:3,,4", "rmat:SCALE,DEGREE"},   {"rmat:3, 4", "rmat:SCALE,DEGREE"},
        {"rmat:-3,4", "rmat:SCALE,DEGREE"},   {"rmat:3,.", "rmat:SCALE,DEGREE"},
        {"rmat:31,4", "SCALE is 31"},         {"rmat:3.5,4", "SCALE is 3.5"},
        {"grid:5,5,101", "KEPT is 101"},      {"uniform:0,5", "ROWS is 0"},
        {"uniform:5", "uniform:ROWS,DEGREE,COLUMNS"}, {"torus:5,0", "SIZE is 0"},
        {"fem3d:3,3,3,5,4", "MOST is 4"},     {"torus:1000,1000,1000,1000", "dimensions end"},
        {"grid:100000,100000,50", "dimensions end"}, {"fem2d:2147483647,2147483647,1000", "dimensions end"},
        {"mycielski:1", "ORDER is 1"},        {"mycielski:21", "ORDER is 21"},
        {"rmat:30,4096", "more than 2^33"},   {"arrow:5", "arrow:ROWS,DENSE,FILLED"},
        {"uniform:99999999999999999999999999999999,5", "ROWS is"},
        {"stencil:9,9,9,5", "need DEPTH 1"},  {"stencil:9,9,1,8", "POINTS is 8"},
        {"blocks:9,5,4", "MOST is 4"},        {"overlap:9,2,5,4", "LARGEST is 4"},
        {"rmat:5,4/random", "rmat:SCALE,DEGREE"}, {"uniform:5,4,9/sorted", "not 5 x 9"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        sp_csr matrix;
        test_mark(&matrix, sizeof matrix);
        const sp_status status = generate_matrix(context, bad[i].spec, 1, SP_F64, &matrix);
        ck_assert_msg(status == SP_ERROR_ARGUMENT, "\"%s\": status %d", bad[i].spec, (int)status);
        ck_assert_msg(strstr(sp_last_error(context), bad[i].said), "\"%s\": %s", bad[i].spec, sp_last_error(context));
        ck_assert(test_is_marked(&matrix, sizeof matrix));
    }
}

TEST(failed_allocations_leave_nothing)
{
    static const char *const kinds[] = {"rmat:5,4", "uniform:50,4", "web:200,4,50,50,20", "powerlaw:200,4,20,50,50",
                                        "fem3d:3,3,3,1,2", "cluster:300,8", "community:200,4,20,50,9,50,1",
                                        "knn:200,4", "overlap:200,4,3,20", "rmat:5,4/shuffled", "rmat:5,4/sorted"};
    for (int64_t fail = 0;; fail++) {
        test_heap heap = {.fail_at = fail};
        const sp_allocator allocator = test_allocator(&heap);
        const sp_context_options options = {.device = "cpu", .threads = 2, .allocator = &allocator};
        sp_context *context;
        if (sp_context_create(&options, &context) != SP_OK) continue;
        sp_csr matrix = {0};
        const int64_t before = heap.live_blocks;
        const sp_status status = generate_matrix(context, kinds[_i], 1, SP_F64, &matrix);
        if (status != SP_OK) {
            ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
            ck_assert_int_eq(heap.live_blocks, before);
            ck_assert_ptr_null(matrix.row_offsets);
        }
        sp_csr_free(context, &matrix);
        ck_assert_int_eq(heap.live_blocks, before);
        test_end_heap(context, &heap);
        if (status == SP_OK) break;
        ck_assert_int_lt(fail, 100);
    }
}

TEST(interrupts_end_the_making)
{
    volatile int flag = 1;
    sp_context *context = test_context_with(0, (sp_context_options){.threads = 2, .interrupt = &flag});
    sp_csr matrix;
    test_mark(&matrix, sizeof matrix);
    ck_assert_int_eq(generate_matrix(context, "uniform:5000,4", 1, SP_F64, &matrix), SP_ERROR_INTERRUPTED);
    ck_assert_int_eq(generate_matrix(context, "cluster:5000,4", 1, SP_F64, &matrix), SP_ERROR_INTERRUPTED);
    ck_assert(test_is_marked(&matrix, sizeof matrix));
    sp_context_destroy(context);
}

static const test_entry tests[] = {
    CASE("kinds", 60),
    TURNS(every_kind_gives_a_well_formed_matrix, 2 * SPECS),
    TURNS(threads_do_not_matter_and_seeds_do, SPECS),
    TURNS(threads_do_not_matter_for_large_matrices, 4),
    TURNS(symmetric_kinds_have_symmetric_values, 7),
    ONCE(grids_keep_their_share_of_edges),
    ONCE(finite_elements_couple_neighbours_by_full_blocks),
    ONCE(torus_rows_hold_the_node_and_two_in_each_dimension),
    ONCE(mycielski_graphs_grow_without_triangles),
    ONCE(arrowheads_have_dense_rows_and_columns),
    ONCE(rectangular_uniform_matrices_have_their_columns),
    ONCE(grid_transfers_fit_each_other),
    ONCE(stencils_touch_their_neighbours),
    ONCE(nearest_neighbours_are_mutual_for_most),
    ONCE(full_rows_and_columns_are_full),
    ONCE(numberings_keep_the_rows),
    ONCE(communities_keep_their_columns_inside),
    ONCE(molecules_have_few_bonds_that_go_both_ways),
    TURNS(skewed_kinds_have_hubs, 4),
    CASE("mistakes", 60),
    ONCE(bad_specifications_are_refused),
    TURNS(failed_allocations_leave_nothing, 11),
    ONCE(interrupts_end_the_making),
    {0},
};

int main(void) { return test_run("generate", tests); }
