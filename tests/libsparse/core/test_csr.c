/* Contexts, allocation and the host operations on CSR matrices: creation, copies, checks, COO → CSR, transpose,
 * permutation, inflation. */
#include <math.h>
#include <string.h>

#ifdef SPARSE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "csr_shared.h"

/* ---- contexts ------------------------------------------------------------------------------------------ */

CONTEXT_TEST(context_names_its_device, _i, 1)
{
    ck_assert_int_eq(strncmp(sp_context_device(context), _i ? "cuda:" : "cpu", _i ? 5 : 3), 0);
    ck_assert_int_eq(sp_context_threads(context), 1);
    ck_assert_str_eq(sp_last_error(context), "");
}

TEST(context_refuses_odd_devices)
{
    const char *odd[] = {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999999999999", ""};
    for (size_t i = 0; i < COUNT(odd); i++) {
        sp_context *context = (sp_context *)1;
        ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = odd[i]}, &context), SP_ERROR_ARGUMENT);
        ck_assert_ptr_null(context);
    }
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .threads = -1}, &context),
                     SP_ERROR_ARGUMENT);
}

TEST(absent_device_is_an_error_only_when_asked_for)
{
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cuda:1023"}, &context), SP_ERROR_NO_DEVICE);
    ck_assert_ptr_null(context);
    ck_assert_int_eq(sp_context_create(NULL, &context), SP_OK);
    sp_context_destroy(context);
}

TEST(status_strings_differ)
{
    for (int i = SP_OK; i <= SP_ERROR_INTERRUPTED; i++)
        for (int j = i + 1; j <= SP_ERROR_INTERRUPTED + 1; j++)
            ck_assert_str_ne(sp_status_string((sp_status)i), sp_status_string((sp_status)j));
}

CONTEXT_TEST(allocation_sizes_are_checked, 0, 1)
{
    void *pointer = (void *)1;
    ck_assert_int_eq(sp_alloc(context, INT64_MAX, 16, &pointer), SP_ERROR_OVERFLOW);
    ck_assert_ptr_null(pointer);
    ck_assert_int_eq(sp_alloc(context, -1, 1, &pointer), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_calloc(context, INT64_MAX, 1, &pointer), SP_ERROR_HOST_MEMORY);
    ck_assert_ptr_null(pointer);
    ck_ok(context, sp_alloc(context, 0, 8, &pointer));
    ck_assert_ptr_nonnull(pointer);
    sp_free(context, pointer);
    sp_free(context, NULL);
}

TEST(grow_keeps_contents_with_any_allocator)
{
    for (int custom = 0; custom < 2; custom++) {
        test_heap heap = {.fail_at = -1};
        sp_allocator allocator = test_allocator(&heap);
        const sp_context_options options = {.device = "cpu", .allocator = custom ? &allocator : NULL};
        sp_context *context;
        ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
        int *numbers = NULL;
        ck_assert_int_eq(sp_grow(context, -1, 3, sizeof *numbers, (void **)&numbers), SP_ERROR_ARGUMENT);
        ck_assert_ptr_null(numbers);
        ck_ok(context, sp_grow(context, 0, 3, sizeof *numbers, (void **)&numbers));
        for (int i = 0; i < 3; i++) numbers[i] = i + 7;
        ck_ok(context, sp_grow(context, 3, 100000, sizeof *numbers, (void **)&numbers));
        for (int i = 0; i < 3; i++) ck_assert_int_eq(numbers[i], i + 7);
        ck_assert_int_eq(sp_grow(context, -1, 9, sizeof *numbers, (void **)&numbers), SP_ERROR_ARGUMENT);
        ck_assert_int_eq(sp_grow(context, 3, INT64_MAX, sizeof *numbers, (void **)&numbers), SP_ERROR_OVERFLOW);
        ck_assert_int_eq(numbers[2], 9);
        sp_free(context, numbers);
        test_end_heap(context, &heap);
    }
}

CONTEXT_TEST(messages_name_types_in_words, 0, 1)
{
    int64_t offsets[] = {0, 1};
    int32_t cols[] = {0};
    float value = 1;
    double wide = 1;
    const sp_csr a = {1, 1, 1, offsets, cols, &value, SP_F32, SP_HOST};
    const sp_csr doubles = {1, 1, 1, offsets, cols, &wide, SP_F64, SP_HOST};
    const sp_dense x = {.rows = 1, .cols = 1, .stride = 1, .values = &wide, .type = SP_DENSE_F64};
    sp_dense y = {.rows = 1, .cols = 1, .stride = 1, .values = &value}, halves;
    sp_spmm_plan *plan;
    sp_csr c;
    sp_cbsr kept;
    ck_ok(context, sp_spmm_plan_create(context, &a, 1, NULL, &plan));
    ck_assert_int_eq(sp_spmm_execute(plan, 1, &x, 0, &y), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(context), "A is f32, X f64 and Y f32, which do not go together");
    ck_assert_int_eq(sp_spgemm(context, &a, &doubles, NULL, &c, NULL), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(context), "A holds f32 and B f64: values of the same type are needed");
    ck_assert_int_eq(sp_cbsr_create(context, 1, 1, 1, SP_DENSE_BF16, &kept), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(context), "MaxK of bf16 values: they must be f32 or f64");
    ck_assert_int_eq(sp_dense_create(context, INT64_MAX, 2, SP_DENSE_F16, SP_HOST, &halves), SP_ERROR_OVERFLOW);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), " of f16 cannot be addressed"));
    ck_assert_int_eq(sp_dense_create(context, 1, 1, (sp_dense_type)7, SP_HOST, &halves), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(context), "type 7 of values does not exist");
    ck_assert_int_eq(sp_csr_create(context, 1, 1, 1, (sp_value_type)2, SP_HOST, &c), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(context), "type 2 of values does not exist");
    ck_assert_int_eq(sp_csr_from_coo(context, &(sp_coo){.rows = 1, .cols = 1, .count = 1, .row_indices = cols,
                                                        .col_indices = cols}, (sp_combine)6, false, &c),
                     SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(context), "combine operation 6 or type 0 of values does not exist");
    ck_assert_int_eq(sp_csr_from_coo(context, &(sp_coo){.rows = 1, .cols = 2, .count = 1, .row_indices = cols,
                                                        .col_indices = cols}, SP_COMBINE_SUM, true, &c),
                     SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(context), "a matrix of 1 x 2 cannot be symmetric");
    sp_spmm_plan_free(plan);
}

/* ---- creation and copies ------------------------------------------------------------------------------- */

CONTEXT_TEST(create_refuses_impossible_sizes, 0, 1)
{
    const int64_t large = (int64_t)1 << 31;
    const int64_t sizes[][3] = {{-1, 1, 1}, {1, -1, 1}, {1, 1, -1}, {large, 1, 0}, {1, large, 0}, {1, 1, INT64_MAX}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        sp_csr matrix;
        memset(&matrix, 1, sizeof matrix);
        ck_assert_int_eq(sp_csr_create(context, sizes[i][0], sizes[i][1], sizes[i][2], SP_F64, SP_HOST, &matrix),
                         i < 3 ? SP_ERROR_ARGUMENT : SP_ERROR_OVERFLOW);
        ck_assert_ptr_null(matrix.row_offsets);
        ck_assert_int_gt((int)strlen(sp_last_error(context)), 0);
    }
}

CONTEXT_TEST(copies_travel_to_the_device_and_back, _i, 0)
{
    const sp_space space = test_space(context);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        test_random random = test_seed(seed);
        sp_csr matrix = test_matrix(context, &random, test_below(&random, 30), test_below(&random, 30), 0.2,
                                    seed % 2 ? SP_F32 : SP_F64, (test_values)(seed % 4));
        sp_csr away, back;
        ck_ok(context, sp_csr_copy(context, &matrix, space, &away));
        ck_assert_int_eq(away.space, space);
        ck_ok(context, sp_csr_copy(context, &away, SP_HOST, &back));
        test_same(&matrix, &back, seed);
        test_free(context, &matrix, &away, &back);
        ck_assert_ptr_null(back.row_offsets);
    }
}

CONTEXT_TEST(device_matrices_need_a_device, 0, 1)
{
    sp_csr matrix;
    ck_assert_int_eq(sp_csr_create(context, 1, 1, 1, SP_F32, SP_DEVICE, &matrix), SP_ERROR_ARGUMENT);
}

/* ---- validation ---------------------------------------------------------------------------------------- */

/* 2 × 3 with entries (0,0) (0,2) (1,1). */
static sp_csr small_matrix(sp_context *context)
{
    const double numbers[] = {1, 0, 2, 0, 3, 0};
    return test_from_dense(context, 2, 3, numbers, SP_F32);
}

CONTEXT_TEST(check_accepts_random_matrices, _i, 1)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        test_random random = test_seed(seed);
        sp_csr matrix = test_matrix(context, &random, test_below(&random, 20), test_below(&random, 20), 0.3, SP_F64,
                                    (test_values)(seed % 4));
        sp_csr there;
        ck_ok(context, sp_csr_copy(context, &matrix, test_space(context), &there));
        ck_ok(context, sp_csr_check(context, &there));
        test_free(context, &matrix, &there);
    }
}

/* On a device the arrays are broken there. */
static void break_there(sp_context *context, const sp_csr *broken, sp_csr *there)
{
    const sp_space space = there->space;
    ck_ok(context, sp_array_copy(context, broken->rows + 1, sizeof *broken->row_offsets, there->row_offsets, space,
                                 broken->row_offsets, SP_HOST));
    ck_ok(context, sp_array_copy(context, broken->nnz, sizeof *broken->col_indices, there->col_indices, space,
                                 broken->col_indices, SP_HOST));
    ck_ok(context, sp_array_copy(context, broken->nnz, sizeof(float), there->values, space, broken->values, SP_HOST));
}

CONTEXT_TEST(check_names_each_broken_promise, _i, 1)
{
    for (int damage = 0; damage < 8; damage++) {
        sp_csr matrix = small_matrix(context), there;
        ck_ok(context, sp_csr_copy(context, &matrix, test_space(context), &there));
        sp_status expected = SP_ERROR_MATRIX;
        switch (damage) {
        case 0: matrix.row_offsets[0] = 1; break;
        case 1: matrix.row_offsets[2] = 2; break;
        case 2: matrix.row_offsets[1] = 4; break;
        case 3: matrix.col_indices[1] = 3; break;
        case 4: matrix.col_indices[0] = -1; break;
        case 5: matrix.col_indices[1] = 0; break; /* a duplicate */
        case 6:
            matrix.col_indices[0] = 2; /* unsorted */
            matrix.col_indices[1] = 0;
            break;
        default:
            ((float *)matrix.values)[2] = NAN;
            expected = SP_ERROR_NOT_FINITE;
        }
        break_there(context, &matrix, &there);
        test_expect(sp_csr_check(context, &there) == expected, "damage %d went unseen", damage);
        ck_assert_int_gt((int)strlen(sp_last_error(context)), 0);
        test_free(context, &matrix, &there);
    }
}

CONTEXT_TEST(check_reads_device_matrices, 1, 1)
{
    sp_csr matrix = small_matrix(context), there;
    for (int broken = 0; broken < 2; broken++) {
        if (broken) matrix.col_indices[1] = 0;
        ck_ok(context, sp_csr_copy(context, &matrix, SP_DEVICE, &there));
        ck_assert_int_eq(sp_csr_check(context, &there), broken ? SP_ERROR_MATRIX : SP_OK);
        sp_csr_free(context, &there);
    }
    sp_csr_free(context, &matrix);
}

CONTEXT_TEST(check_refuses_matrices_without_arrays_or_with_impossible_sizes, 0, 1)
{
    int64_t offsets[] = {0, 1};
    const sp_csr odd[] = {{.rows = 1, .cols = 1, .nnz = 1},
                          {.rows = 1, .cols = 1, .nnz = 1, .row_offsets = offsets},
                          {.rows = -1, .cols = 1, .row_offsets = offsets},
                          {.rows = 1, .cols = (int64_t)1 << 31, .nnz = 1, .row_offsets = offsets}};
    for (size_t i = 0; i < COUNT(odd); i++) ck_assert_int_eq(sp_csr_check(context, &odd[i]), SP_ERROR_MATRIX);
}

CONTEXT_TEST(offsets_are_widened, _i, 2)
{
    enum { OFFSETS = 5000 };
    int32_t given[OFFSETS];
    int64_t found[OFFSETS], *there;
    void *lent;
    const sp_space space = test_space(context);
    for (int i = 0; i < OFFSETS; i++) given[i] = i % 2 ? INT32_MAX - i : i;
    ck_ok(context, sp_array_create(context, OFFSETS, sizeof *given, space, &lent));
    ck_ok(context, sp_array_create(context, OFFSETS, sizeof *there, space, (void **)&there));
    ck_ok(context, sp_array_copy(context, OFFSETS, sizeof *given, lent, space, given, SP_HOST));
    ck_ok(context, sp_widen_offsets(context, OFFSETS, lent, there, space));
    ck_ok(context, sp_array_copy(context, OFFSETS, sizeof *there, found, SP_HOST, there, space));
    for (int i = 0; i < OFFSETS; i++) ck_assert_int_eq(found[i], given[i]);
    ck_ok(context, sp_widen_offsets(context, 0, NULL, NULL, space));
    ck_assert_int_eq(sp_widen_offsets(context, -1, lent, there, space), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_widen_offsets(context, 1, NULL, there, space), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_widen_offsets(context, 2, (int32_t *)there + 1, there, space), SP_ERROR_ARGUMENT);
    sp_array_free(context, space, lent);
    sp_array_free(context, space, there);
}

/* ---- transpose and inflation --------------------------------------------------------------------------- */

CONTEXT_TEST(transpose_moves_every_entry, 0, 1)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        test_random random = test_seed(seed);
        sp_csr a = test_matrix(context, &random, test_below(&random, 25), test_below(&random, 25), 0.3,
                               seed % 2 ? SP_F32 : SP_F64, (test_values)(seed % 4));
        sp_csr b, back;
        ck_ok(context, sp_csr_transpose(context, &a, &b));
        ck_ok(context, sp_csr_check(context, &b));
        ck_assert_int_eq(b.nnz, a.nnz);
        for (int64_t i = 0; i < b.rows; i++)
            for (int64_t k = b.row_offsets[i]; k < b.row_offsets[i + 1]; k++) {
                const int64_t row = b.col_indices[k];
                int64_t p = a.row_offsets[row];
                while (p < a.row_offsets[row + 1] && a.col_indices[p] != i) p++;
                test_expect(p < a.row_offsets[row + 1] && test_value(&a, p) == test_value(&b, k),
                            "seed %llu: (%lld, %lld)", (unsigned long long)seed, (long long)i, (long long)row);
            }
        ck_ok(context, sp_csr_transpose(context, &b, &back));
        test_same(&a, &back, seed);
        test_free(context, &a, &b, &back);
    }
}

TEST(transpose_does_not_depend_on_threads)
{
    static const char *const specs[] = {"uniform:30000,8", "uniform:100,400,90000", "grid:200,200,70",
                                        "arrow:20000,2,25", "uniform:90000,1,7"};
    sp_context *one = test_context(0, 1), *three = test_context(0, 3);
    for (size_t i = 0; i < COUNT(specs); i++) {
        sp_csr a, b, again, back;
        ck_ok(one, generate_matrix(one, specs[i], 4, i % 2 ? SP_F32 : SP_F64, &a));
        if (i == 2) test_drop_values(one, &a);
        ck_ok(one, sp_csr_transpose(one, &a, &b));
        ck_ok(three, sp_csr_transpose(three, &a, &again));
        ck_ok(three, sp_csr_check(three, &again));
        test_same(&b, &again, i);
        ck_ok(three, sp_csr_transpose(three, &again, &back));
        test_same(&a, &back, i);
        test_free(one, &a, &b);
        test_free(three, &again, &back);
    }
    test_end(one, three);
}

DEVICE_TEST(transpose_is_the_same_in_either_space, _i, 1)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        test_random random = test_seed(seed);
        sp_csr a = test_matrix(host, &random, test_below(&random, 300), test_below(&random, 300),
                               test_unit(&random) * 0.2, seed % 2 ? SP_F32 : SP_F64, (test_values)(seed % 4));
        sp_csr expected, there, b;
        ck_ok(host, sp_csr_transpose(host, &a, &expected));
        ck_ok(context, sp_csr_copy(context, &a, test_space(context), &there));
        ck_ok(context, sp_csr_transpose(context, &there, &b));
        ck_assert_int_eq(b.space, there.space);
        test_to_host(context, &b);
        test_same(&expected, &b, seed);
        test_free(context, &there, &b);
        test_free(host, &a, &expected);
    }
}

/* Nodes of a group each, or none; with `twice`, the last one is in two. */
static sp_csr draw_labelling(sp_context *host, test_random *random, int64_t nodes, int64_t groups, bool twice)
{
    sp_csr t;
    int64_t nnz = 0;
    ck_ok(host, sp_csr_create(host, nodes, groups, nodes + 1, SP_F32, SP_HOST, &t));
    test_drop_values(host, &t);
    for (int64_t i = 0; i < nodes; i++) {
        t.row_offsets[i] = nnz;
        if (twice && i == nodes - 1) {
            t.col_indices[nnz++] = 0;
            t.col_indices[nnz++] = (int32_t)groups - 1;
        } else if (test_below(random, 5)) {
            t.col_indices[nnz++] = (int32_t)test_below(random, groups);
        }
    }
    t.row_offsets[nodes] = t.nnz = nnz;
    return t;
}

DEVICE_TEST(labellings_are_transposed_in_either_space, _i, 1)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        test_random random = test_seed(seed);
        const int64_t nodes = 1 + test_below(&random, 5000), groups = 2 + test_below(&random, seed % 2 ? 9 : nodes);
        sp_csr t = draw_labelling(host, &random, nodes, groups, seed % 3 == 0), s, there, b;
        ck_ok(host, sp_csr_transpose(host, &t, &s));
        ck_ok(context, sp_csr_copy(context, &s, test_space(context), &there));
        ck_ok(context, sp_csr_transpose(context, &there, &b));
        test_to_host(context, &b);
        test_same(&t, &b, seed);
        test_free(context, &there, &b);
        test_free(host, &s, &t);
    }
}

DEVICE_TEST(transposes_go_into_arrays_of_the_caller, _i, 2)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        test_random random = test_seed(seed);
        sp_csr a = test_matrix(host, &random, test_below(&random, 300), test_below(&random, 300),
                               test_unit(&random) * 0.2, seed % 2 ? SP_F32 : SP_F64, (test_values)(seed % 4));
        sp_csr expected, there, b;
        ck_ok(host, sp_csr_transpose(host, &a, &expected));
        ck_ok(context, sp_csr_copy(context, &a, test_space(context), &there));
        ck_ok(context, sp_csr_copy(context, &expected, test_space(context), &b));
        const sp_csr before = b;
        for (int round = 0; round < 2; round++) { /* into arrays that hold another matrix, then into its own result */
            if (round == 0 && a.nnz > 0)
                ck_ok(context, sp_array_copy(context, a.nnz, sizeof *a.col_indices, b.col_indices, b.space,
                                             there.col_indices, there.space));
            ck_ok(context, sp_csr_transpose_into(context, &there, &b));
            ck_assert_mem_eq(&before, &b, sizeof b);
        }
        test_to_host(context, &b);
        test_same(&expected, &b, seed);
        test_free(context, &there, &b);
        test_free(host, &a, &expected);
    }
}

static void refuse_target(sp_context *context, const sp_csr *a, sp_csr b, const char *words)
{
    ck_assert_int_eq(sp_csr_transpose_into(context, a, &b), SP_ERROR_ARGUMENT);
    test_expect(strstr(sp_last_error(context), words), "\"%s\", not \"%s\"", sp_last_error(context), words);
}

DEVICE_TEST(arrays_that_do_not_fit_a_transpose_are_refused, _i, 1)
{
    test_random random = test_seed(1);
    sp_csr on_host = test_matrix(host, &random, 30, 20, 0.3, SP_F32, TEST_POSITIVE), a, b, t;
    ck_ok(context, sp_csr_copy(context, &on_host, test_space(context), &a));
    ck_ok(context, sp_csr_transpose(context, &a, &b));
    t = b;
    t.rows = 21;
    refuse_target(context, &a, t, "B is 21 x 30 of f32, and the result 20 x 30 of f32");
    t = b;
    t.value_type = SP_F64;
    refuse_target(context, &a, t, "B is 20 x 30 of f64");
    t = b;
    t.nnz++;
    refuse_target(context, &a, t, "entries in ");
    t.nnz = -1;
    refuse_target(context, &a, t, "room for -1 entries");
    t = b;
    t.values = NULL;
    refuse_target(context, &a, t, "B lacks an array");
    t = b;
    t.row_offsets = NULL;
    refuse_target(context, &a, t, "B lacks an array");
    t = b;
    t.values = a.values;
    refuse_target(context, &a, t, "the arrays of B and A overlap");
    t = b;
    t.space = (sp_space)5;
    refuse_target(context, &a, t, "space 5 does not exist");
    sp_csr pattern = a;
    pattern.values = NULL;
    refuse_target(context, &pattern, b, "B has values, and the result none");
    ck_assert_int_eq(sp_csr_transpose_into(context, &a, &a), SP_ERROR_ARGUMENT);
    test_to_host(context, &b);
    ck_ok(host, sp_csr_check(host, &b)); /* nothing was written */
    test_free(context, &a, &b);
    sp_csr_free(host, &on_host);
}

CONTEXT_TEST(permutation_moves_rows_and_columns, 0, 2)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        test_random random = test_seed(seed);
        const int64_t rows = 1 + test_below(&random, 90), cols = 1 + test_below(&random, 80);
        sp_csr a = test_matrix(context, &random, rows, cols, 0.5, seed % 2 ? SP_F32 : SP_F64,
                               seed % 3 ? TEST_SIGNED : TEST_PATTERN), b;
        /* Row i comes from row (i + 3) mod rows; column j goes to (7 j + 2) mod cols, cols no multiple of 7. */
        int32_t row[90], column[81];
        const int64_t step = cols % 7 ? 7 : 1;
        for (int64_t i = 0; i < rows; i++) row[i] = (int32_t)((i + 3) % rows);
        for (int64_t j = 0; j < cols; j++) column[j] = (int32_t)((step * j + 2) % cols);
        ck_ok(context, sp_csr_permute(context, &a, row, column, &b));
        ck_ok(context, sp_csr_check(context, &b));
        ck_assert_int_eq(a.nnz, b.nnz);
        ck_assert(!a.values == !b.values);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = a.row_offsets[row[i]]; k < a.row_offsets[row[i] + 1]; k++) {
                int64_t p = b.row_offsets[i];
                while (p < b.row_offsets[i + 1] && b.col_indices[p] != column[a.col_indices[k]]) p++;
                test_expect(p < b.row_offsets[i + 1] && test_value(&b, p) == test_value(&a, k),
                            "seed %llu: row %lld column %d", (unsigned long long)seed, (long long)i,
                            a.col_indices[k]);
            }
        test_free(context, &a, &b);
    }
}

/* Of the entries 60 % are beside a node's community, which without regard for how much the communities hold would all
 * become one. Rows are mixed so that their numbers say nothing. */
TEST(community_order_finds_communities_that_most_edges_leave)
{
    enum { SIZE = 120, N = 50 * SIZE };
    sp_csr ordered, graph;
    static int32_t mix[N], unmix[N], order[2][N];
    int32_t *made;
    for (int32_t j = 0; j < N; j++) mix[j] = (int32_t)((int64_t)j * 2003 % N); /* they have no common factor */
    for (int32_t j = 0; j < N; j++) unmix[mix[j]] = j;
    for (int threads = 1; threads <= 2; threads++) {
        sp_context *context = test_context(0, threads);
        ck_ok(context, generate_matrix(context, "community:6000,60,1000,50,120,40,0", 7, SP_F32, &ordered));
        ck_ok(context, sp_csr_permute(context, &ordered, mix, unmix, &graph));
        ck_ok(context, sp_csr_community_order(context, &graph, &made));
        memcpy(order[threads - 1], made, sizeof *order);
        sp_free(context, made);
        test_free(context, &ordered, &graph);
        sp_context_destroy(context);
    }
    int changes = 0;
    for (int j = 1; j < N; j++) changes += mix[order[0][j]] / SIZE != mix[order[0][j - 1]] / SIZE;
    ck_assert_int_lt(changes, N / 20);
    ck_assert(memcmp(order[0], order[1], sizeof *order) == 0);
}

/* Of a matrix with its columns in any order, and of one that names a column twice. */
CONTEXT_TEST(sorting_orders_columns_and_keeps_all_entries, _i, 2)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        test_random random = test_seed(seed);
        sp_csr a = test_matrix(context, &random, test_below(&random, 30), test_below(&random, 40), 0.3,
                               seed % 2 ? SP_F32 : SP_F64, (test_values)(seed % 4));
        sp_csr mixed, sent, sorted;
        ck_ok(context, sp_csr_copy(context, &a, SP_HOST, &mixed));
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t k = a.row_offsets[i + 1] - 1; k > a.row_offsets[i]; k--) {
                const int64_t other = a.row_offsets[i] + test_below(&random, k - a.row_offsets[i] + 1);
                const size_t size = a.value_type == SP_F32 ? 4 : 8;
                char swap[8], *values = mixed.values;
                const int32_t column = mixed.col_indices[k];
                mixed.col_indices[k] = mixed.col_indices[other];
                mixed.col_indices[other] = column;
                if (!values) continue;
                memcpy(swap, values + (size_t)k * size, size);
                memmove(values + (size_t)k * size, values + (size_t)other * size, size);
                memcpy(values + (size_t)other * size, swap, size);
            }
        ck_ok(context, sp_csr_copy(context, &mixed, seed % 3 ? test_space(context) : SP_HOST, &sent));
        ck_ok(context, sp_csr_sort(context, &sent, &sorted));
        ck_assert_int_eq(sorted.space, sent.space);
        test_to_host(context, &sorted);
        test_same(&a, &sorted, seed);
        test_free(context, &a, &mixed, &sent, &sorted);
    }
    sp_csr twice = small_matrix(context), sorted;
    twice.col_indices[0] = 2; /* as the entry after it */
    ck_ok(context, sp_csr_sort(context, &twice, &sorted));
    ck_assert_int_eq(sorted.nnz, twice.nnz);
    ck_assert_int_eq(sp_csr_check(context, &sorted), SP_ERROR_MATRIX);
    for (int k = 0; k < 2; k++) ck_assert(test_value(&sorted, k) == test_value(&twice, k));
    test_free(context, &twice, &sorted);
}

/* ---- streams ------------------------------------------------------------------------------------------- */

CONTEXT_TEST(a_host_context_has_no_stream_and_keeps_nothing, 0, 1)
{
    int stream;
    ck_ok(context, sp_context_set_stream(context, NULL));
    ck_assert_int_eq(sp_context_set_stream(context, &stream), SP_ERROR_UNSUPPORTED);
    ck_ok(context, sp_context_trim(context));
}

/* A copy that is queued in the caller's stream comes before the product, and the product before the next copy. */
CONTEXT_TEST(calls_run_in_the_order_of_the_stream_of_the_caller, 1, 1)
{
#ifdef SPARSE_CUDA
    enum { N = 1 << 20 };
    cudaStream_t mine;
    sp_dense x, y;
    void *const own = sp_context_stream(context);
    double *numbers;
    int64_t offsets[] = {0, 1};
    int32_t column = 0;
    double value = 2;
    const sp_csr a = {1, 1, 1, offsets, &column, &value, SP_F64, SP_HOST};
    sp_spmm_plan *plan;
    ck_assert_int_eq(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking), cudaSuccess);
    ck_assert_int_eq(cudaMallocHost((void **)&numbers, N * sizeof *numbers), cudaSuccess);
    ck_ok(context, sp_spmm_plan_create(context, &a, N, NULL, &plan));
    ck_ok(context, sp_dense_create(context, 1, N, SP_DENSE_F64, SP_DEVICE, &x));
    ck_ok(context, sp_dense_create(context, 1, N, SP_DENSE_F64, SP_DEVICE, &y));
    ck_ok(context, sp_context_set_stream(context, mine));
    ck_assert_ptr_eq(sp_context_stream(context), mine);
    for (int turn = 1; turn <= 20; turn++) {
        for (int i = 0; i < N; i++) numbers[i] = turn * i;
        cudaMemcpyAsync(x.values, numbers, N * sizeof *numbers, cudaMemcpyHostToDevice, mine);
        ck_ok(context, sp_spmm_execute(plan, 1, &x, 0, &y));
        cudaMemcpyAsync(numbers, y.values, N * sizeof *numbers, cudaMemcpyDeviceToHost, mine);
        ck_assert_int_eq(cudaStreamSynchronize(mine), cudaSuccess);
        for (int i = 0; i < N; i++) test_expect(numbers[i] == 2.0 * turn * i, "turn %d, number %d", turn, i);
    }
    ck_ok(context, sp_context_set_stream(context, NULL));
    ck_assert_ptr_eq(sp_context_stream(context), own);
    sp_spmm_plan_free(plan);
    sp_dense_free(context, &x);
    sp_dense_free(context, &y);
    ck_ok(context, sp_context_trim(context));
    cudaFreeHost(numbers);
    cudaStreamDestroy(mine);
#endif
}

CONTEXT_TEST(inflation_raises_and_normalises, 0, 1)
{
    const double numbers[] = {0.5, 0.25, 0, 0, 0, 0, 0, 0, 4};
    const double powers[] = {1, 2, 0.5, 1.4};
    for (size_t p = 0; p < COUNT(powers); p++) {
        sp_csr matrix = test_from_dense(context, 3, 3, numbers, SP_F32);
        ck_ok(context, sp_csr_inflate(context, &matrix, powers[p]));
        const float a = (float)pow(0.5, powers[p]), b = (float)pow(0.25, powers[p]);
        const float *values = matrix.values;
        ck_assert(values[0] == (float)((double)a / ((double)a + (double)b)));
        ck_assert(values[1] == (float)((double)b / ((double)a + (double)b)));
        ck_assert(values[2] == 1.0f);
        sp_csr_free(context, &matrix);
    }
}

CONTEXT_TEST(inflation_needs_a_positive_power_and_f32, 0, 1)
{
    const double numbers[] = {1};
    sp_csr single = test_from_dense(context, 1, 1, numbers, SP_F32);
    sp_csr wide = test_from_dense(context, 1, 1, numbers, SP_F64);
    ck_assert_int_eq(sp_csr_inflate(context, &single, 0), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_csr_inflate(context, &single, NAN), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_csr_inflate(context, &wide, 2), SP_ERROR_ARGUMENT);
    test_free(context, &single, &wide);
}

static const test_entry tests[] = {
    CASE("contexts", 60),
    ON_DEVICES(context_names_its_device),
    ONCE(context_refuses_odd_devices),
    ONCE(absent_device_is_an_error_only_when_asked_for),
    ONCE(status_strings_differ),
    ONCE(messages_name_types_in_words),
    ONCE(allocation_sizes_are_checked),
    ONCE(grow_keeps_contents_with_any_allocator),
    CASE("matrices", 60),
    ONCE(create_refuses_impossible_sizes),
    ON_DEVICES(copies_travel_to_the_device_and_back),
    ONCE(device_matrices_need_a_device),
    ON_DEVICES(check_accepts_random_matrices),
    ON_DEVICES(offsets_are_widened),
    ON_DEVICES(check_names_each_broken_promise),
    ON_CUDA(check_reads_device_matrices),
    ONCE(check_refuses_matrices_without_arrays_or_with_impossible_sizes),
    ONCE(transpose_moves_every_entry),
    ONCE(transpose_does_not_depend_on_threads),
    ON_DEVICES(transpose_is_the_same_in_either_space),
    ON_DEVICES(labellings_are_transposed_in_either_space),
    ON_DEVICES(transposes_go_into_arrays_of_the_caller),
    ON_DEVICES(arrays_that_do_not_fit_a_transpose_are_refused),
    ON_DEVICES(sorting_orders_columns_and_keeps_all_entries),
    ONCE(a_host_context_has_no_stream_and_keeps_nothing),
    ON_CUDA(calls_run_in_the_order_of_the_stream_of_the_caller),
    ONCE(permutation_moves_rows_and_columns),
    ONCE(community_order_finds_communities_that_most_edges_leave),
    ONCE(inflation_raises_and_normalises),
    ONCE(inflation_needs_a_positive_power_and_f32),
    {0},
};

int main(void) { return test_run("csr", tests, coo_tests); }
