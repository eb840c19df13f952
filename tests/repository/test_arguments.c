/* What the public calls of sparse.h, mcl.h, contraction.h and gnn.h do with arguments that break the rules of the
 * headers: NULL, structs that contradict themselves, outputs that are inputs, sizes that do not fit, contexts that end
 * before their plans. Every refusal is a status and a sentence that names the argument, and writes nothing. */
#include <string.h>

#include "arguments_shared.h"

/* ---- NULL ------------------------------------------------------------------------------------------------ */

TEST(calls_without_a_context_are_refused)
{
    operands o = open_operands(_i);
    sp_csr c;
    sp_dense d;
    sp_cbsr k;
    void *p = (void *)&p;
    int32_t *order;
    double result[NODES];
    int32_t labels[NODES] = {0}, list[NODES];
    sp_spgemm_plan *product;
    sp_spmm_plan *plan;
    const sp_markov_epilogue epilogue = {0};
#define WITHOUT(call) REFUSED(NULL, call, "context is NULL")
    WITHOUT(sp_alloc(NULL, 1, 1, &p));
    ck_assert_ptr_null(p);
    WITHOUT(sp_calloc(NULL, 1, 1, &p));
    WITHOUT(sp_grow(NULL, 0, 1, 1, &p));
    WITHOUT(sp_array_create(NULL, 1, 1, SP_HOST, &p));
    WITHOUT(sp_array_copy(NULL, 1, 1, labels, SP_HOST, list, SP_HOST));
    WITHOUT(sp_csr_create(NULL, 1, 1, 1, SP_F32, SP_HOST, &c));
    WITHOUT(sp_csr_copy(NULL, &o.a, SP_HOST, &c));
    WITHOUT(sp_csr_check(NULL, &o.a));
    WITHOUT(sp_csr_from_coo(NULL, &(sp_coo){.rows = 2, .cols = 2, .count = 1, .row_indices = labels,
                                            .col_indices = labels}, SP_COMBINE_SUM, false, &c));
    WITHOUT(sp_csr_transpose(NULL, &o.a, &c));
    WITHOUT(sp_csr_transpose_into(NULL, &o.a, &o.a));
    WITHOUT(sp_csr_sort(NULL, &o.a, &c));
    WITHOUT(sp_csr_permute(NULL, &o.a, labels, labels, &c));
    WITHOUT(sp_csr_community_order(NULL, &o.a, &order));
    WITHOUT(sp_spgemm(NULL, &o.a, &o.a, NULL, &c, NULL));
    WITHOUT(sp_spgemm_top_k(NULL, &o.a, &o.a, 1, NULL, &c, NULL));
    WITHOUT(sp_similarity(NULL, &o.a, &o.a, NULL, &c, NULL));
    WITHOUT(sp_spgemm_plan_create(NULL, &o.a, &o.a, NULL, &product));
    WITHOUT(sp_spgemm_markov(NULL, &o.a, &o.a, &epilogue, &c, NULL, NULL));
    WITHOUT(sp_csr_inflate(NULL, &o.a, 2));
    WITHOUT(sp_contract(NULL, &o.a, labels, SP_HOST, 1, NULL, &c, NULL));
    WITHOUT(sp_contract_into(NULL, &o.a, labels, SP_HOST, 1, NULL, &c, NULL));
    WITHOUT(sp_triple_product(NULL, &o.a, &o.a, NULL, &c, NULL));
    WITHOUT(sp_dense_create(NULL, 1, 1, SP_DENSE_F32, SP_HOST, &d));
    WITHOUT(sp_dense_copy(NULL, &o.x, SP_HOST, &d));
    WITHOUT(sp_spmm_plan_create(NULL, &o.a, 1, NULL, &plan));
    ck_assert_int_eq(sp_spmm_execute_heads(NULL, result, SP_HOST, 1, &o.x, 0, &o.y), SP_ERROR_ARGUMENT);
    WITHOUT(sp_sddmm(NULL, &o.a, &o.x, &o.y, result));
    WITHOUT(sp_edge_softmax(NULL, &o.a, 1, result));
    WITHOUT(sp_edge_softmax_backward(NULL, &o.a, 1, result, labels));
    WITHOUT(sp_cbsr_create(NULL, 1, 1, 1, SP_DENSE_F32, &k));
    WITHOUT(sp_maxk(NULL, &o.x, &o.kept));
    WITHOUT(sp_maxk_expand(NULL, &o.kept, &o.x));
    WITHOUT(sp_csr_add(NULL, 1, &o.a, 1, &o.a, &c));
    WITHOUT(sp_csr_hadamard(NULL, &o.a, &o.a, &c));
    WITHOUT(sp_csr_scale(NULL, &o.a, NULL, NULL, SP_HOST));
    WITHOUT(sp_csr_extract(NULL, &o.a, list, 0, NULL, 0, SP_HOST, &c));
    WITHOUT(sp_csr_select(NULL, &o.a, SP_SELECT_LOWER, 0, &c));
    WITHOUT(sp_csr_top_k(NULL, &o.a, 1, &c));
    WITHOUT(sp_csr_reduce_rows(NULL, &o.a, SP_COMBINE_SUM, result, SP_HOST));
    WITHOUT(sp_csr_degree_order(NULL, &o.a, list, SP_HOST));
    WITHOUT(sp_csr_sample_rows(NULL, &o.a, list, 0, NULL, 0, NULL));
    close_operands(&o);
}

TEST(calls_without_a_matrix_are_refused)
{
    operands o = open_operands(_i);
    sp_context *t = o.context;
    sp_csr c;
    sp_dense d;
    void *p;
    int32_t *order, labels[NODES] = {0}, list[NODES];
    double result[NODES];
    sp_spgemm_plan *product;
    sp_spmm_plan *plan;
    const sp_markov_epilogue epilogue = {0};
    test_mark(&c, sizeof c);
    REFUSED(t, sp_csr_copy(t, NULL, SP_HOST, &c), "sp_csr_copy: source is NULL");
    REFUSED(t, sp_csr_check(t, NULL), "sp_csr_check: matrix is NULL");
    REFUSED(t, sp_csr_from_coo(t, &(sp_coo){2, 2, 1, NULL, labels, NULL, 0, 0, 0}, 0, false, &c), "row_indices is");
    REFUSED(t, sp_csr_from_coo(t, &(sp_coo){2, 2, 1, labels, NULL, NULL, 0, 0, 0}, 0, false, &c), "col_indices is");
    REFUSED(t, sp_csr_transpose(t, NULL, &c), "sp_csr_transpose: A is NULL");
    REFUSED(t, sp_csr_permute(t, NULL, labels, labels, &c), "sp_csr_permute: A is NULL");
    REFUSED(t, sp_csr_permute(t, &o.a, NULL, labels, &c), "sp_csr_permute: row is NULL");
    REFUSED(t, sp_csr_sort(t, &o.a, NULL), "sp_csr_sort: B is NULL");
    REFUSED(t, sp_csr_permute(t, &o.a, labels, NULL, &c), "sp_csr_permute: column is NULL");
    REFUSED(t, sp_csr_community_order(t, NULL, &order), "sp_csr_community_order: A is NULL");
    REFUSED(t, sp_spgemm(t, NULL, &o.a, NULL, &c, NULL), "sp_spgemm: A is NULL");
    REFUSED(t, sp_spgemm(t, &o.a, NULL, NULL, &c, NULL), "sp_spgemm: B is NULL");
    REFUSED(t, sp_spgemm_top_k(t, NULL, &o.a, 1, NULL, &c, NULL), "sp_spgemm_top_k: A is NULL");
    REFUSED(t, sp_similarity(t, NULL, &o.a, NULL, &c, NULL), "sp_similarity: A is NULL");
    REFUSED(t, sp_similarity(t, &o.a, NULL, NULL, &c, NULL), "sp_similarity: B is NULL");
    REFUSED(t, sp_spgemm_plan_create(t, NULL, &o.a, NULL, &product), "sp_spgemm_plan_create: A is NULL");
    REFUSED(t, sp_spgemm_plan_execute(o.product, 1, NULL, &o.a, 0, &c), "sp_spgemm_plan_execute: A is NULL");
    REFUSED(t, sp_spgemm_plan_execute(o.product, 1, &o.a, NULL, 0, &c), "sp_spgemm_plan_execute: B is NULL");
    REFUSED(t, sp_spgemm_markov(t, NULL, &o.a, &epilogue, &c, NULL, NULL), "sp_spgemm_markov: A is NULL");
    REFUSED(t, sp_spgemm_markov(t, &o.a, &o.a, NULL, &c, NULL, NULL), "sp_spgemm_markov: epilogue is NULL");
    REFUSED(t, sp_csr_inflate(t, NULL, 2), "sp_csr_inflate: matrix is NULL");
    REFUSED(t, sp_contract(t, NULL, labels, SP_HOST, 1, NULL, &c, NULL), "sp_contract: G is NULL");
    REFUSED(t, sp_contract(t, &o.a, NULL, SP_HOST, 1, NULL, &c, NULL), "sp_contract: labels is NULL");
    REFUSED(t, sp_triple_product(t, NULL, &o.a, NULL, &c, NULL), "sp_triple_product: S is NULL");
    REFUSED(t, sp_triple_product(t, &o.a, NULL, NULL, &c, NULL), "sp_triple_product: G is NULL");
    REFUSED(t, sp_dense_copy(t, NULL, SP_HOST, &d), "sp_dense_copy: source is NULL");
    REFUSED(t, sp_spmm_plan_create(t, NULL, 1, NULL, &plan), "sp_spmm_plan_create: A is NULL");
    REFUSED(t, sp_spmm_plan_set_values(o.plan, NULL, SP_HOST), "sp_spmm_plan_set_values: values is NULL");
    REFUSED(t, sp_spmm_execute(o.plan, 1, NULL, 0, &o.y), "sp_spmm_execute: X is NULL");
    REFUSED(t, sp_spmm_execute(o.plan, 1, &o.x, 0, NULL), "sp_spmm_execute: Y is NULL");
    REFUSED(t, sp_spmm_execute_argument(o.maximum, &o.x, &o.y, NULL), "argument is NULL");
    REFUSED(t, sp_sddmm(t, NULL, &o.x, &o.y, result), "sp_sddmm: A is NULL");
    REFUSED(t, sp_sddmm(t, &o.a, NULL, &o.y, result), "sp_sddmm: X is NULL");
    REFUSED(t, sp_sddmm(t, &o.a, &o.x, NULL, result), "sp_sddmm: Y is NULL");
    REFUSED(t, sp_sddmm(t, &o.a, &o.x, &o.y, NULL), "sp_sddmm: values is NULL");
    REFUSED(t, sp_edge_softmax(t, NULL, 1, result), "sp_edge_softmax: A is NULL");
    REFUSED(t, sp_edge_softmax(t, &o.a, 1, NULL), "sp_edge_softmax: values is NULL");
    REFUSED(t, sp_edge_softmax_backward(t, &o.a, 1, NULL, result), "softmax is NULL");
    REFUSED(t, sp_edge_softmax_backward(t, &o.a, 1, result, NULL), "gradient is NULL");
    REFUSED(t, sp_maxk(t, NULL, &o.kept), "sp_maxk: X is NULL");
    REFUSED(t, sp_maxk(t, &o.x, NULL), "sp_maxk: kept is NULL");
    REFUSED(t, sp_maxk_expand(t, NULL, &o.x), "sp_maxk_expand: kept is NULL");
    REFUSED(t, sp_maxk_spmm(o.plan, 1, NULL, 0, &o.y), "sp_maxk_spmm: kept is NULL");
    REFUSED(t, sp_maxk_spmm(o.plan, 1, &o.kept, 0, NULL), "sp_maxk_spmm: Y is NULL");
    REFUSED(t, sp_maxk_spmm_backward(o.plan, NULL, &o.kept), "sp_maxk_spmm_backward: gradient is NULL");
    REFUSED(t, sp_csr_add(t, 1, NULL, 1, &o.a, &c), "sp_csr_add: A is NULL");
    REFUSED(t, sp_csr_add(t, 1, &o.a, 1, NULL, &c), "sp_csr_add: B is NULL");
    REFUSED(t, sp_csr_hadamard(t, NULL, &o.a, &c), "sp_csr_hadamard: A is NULL");
    REFUSED(t, sp_csr_scale(t, NULL, NULL, NULL, SP_HOST), "sp_csr_scale: A is NULL");
    REFUSED(t, sp_csr_extract(t, NULL, list, 0, NULL, 0, SP_HOST, &c), "sp_csr_extract: A is NULL");
    REFUSED(t, sp_csr_select(t, NULL, SP_SELECT_LOWER, 0, &c), "sp_csr_select: A is NULL");
    REFUSED(t, sp_csr_top_k(t, NULL, 1, &c), "sp_csr_top_k: A is NULL");
    REFUSED(t, sp_csr_reduce_rows(t, NULL, SP_COMBINE_SUM, result, SP_HOST), "sp_csr_reduce_rows: A is NULL");
    REFUSED(t, sp_csr_degree_order(t, NULL, list, SP_HOST), "sp_csr_degree_order: A is NULL");
    REFUSED(t, sp_csr_sample_rows(t, NULL, list, 0, NULL, 0, NULL), "sp_csr_sample_rows: A is NULL");
    ck_assert(test_is_marked(&c, sizeof c));
    REFUSED(t, sp_array_copy(t, 1, 1, NULL, SP_HOST, list, SP_HOST), "sp_array_copy: to is NULL");
    REFUSED(t, sp_array_copy(t, 1, 1, list, SP_HOST, NULL, SP_HOST), "sp_array_copy: from is NULL");
    REFUSED(t, sp_array_create(t, -1, 1, SP_HOST, &p), "count is -1");
    REFUSED(NULL, sp_spmm_execute(NULL, 1, &o.x, 0, &o.y), "sp_spmm_execute: plan is NULL");
    REFUSED(NULL, sp_spmm_execute_argument(NULL, &o.x, &o.y, NULL), "plan is NULL");
    REFUSED(NULL, sp_spmm_plan_set_values(NULL, result, SP_HOST), "plan is NULL");
    REFUSED(NULL, sp_spgemm_plan_execute(NULL, 1, &o.a, &o.a, 0, &c), "plan is NULL");
    REFUSED(NULL, sp_maxk_spmm(NULL, 1, &o.kept, 0, &o.y), "plan is NULL");
    REFUSED(NULL, sp_maxk_spmm_backward(NULL, &o.x, &o.kept), "plan is NULL");
    close_operands(&o);
}

TEST(calls_without_an_output_are_refused)
{
    operands o = open_operands(_i);
    sp_context *t = o.context;
    int32_t labels[NODES] = {0};
    const sp_markov_epilogue epilogue = {0};
    REFUSED(NULL, sp_context_create(NULL, NULL), "sp_context_create: context is NULL");
    REFUSED(t, sp_alloc(t, 1, 1, NULL), "sp_alloc: pointer is NULL");
    REFUSED(t, sp_calloc(t, 1, 1, NULL), "sp_calloc: pointer is NULL");
    REFUSED(t, sp_grow(t, 0, 1, 1, NULL), "sp_grow: pointer is NULL");
    REFUSED(t, sp_array_create(t, 1, 1, SP_HOST, NULL), "sp_array_create: pointer is NULL");
    REFUSED(t, sp_csr_create(t, 1, 1, 1, SP_F32, SP_HOST, NULL), "sp_csr_create: matrix is NULL");
    REFUSED(t, sp_csr_copy(t, &o.a, SP_HOST, NULL), "sp_csr_copy: copy is NULL");
    REFUSED(t, sp_csr_from_coo(t, &(sp_coo){.rows = 2, .cols = 2, .count = 1, .row_indices = labels,
                                            .col_indices = labels}, SP_COMBINE_SUM, false, NULL), "matrix is");
    REFUSED(t, sp_csr_transpose(t, &o.a, NULL), "sp_csr_transpose: B is NULL");
    REFUSED(t, sp_csr_transpose_into(t, &o.a, NULL), "sp_csr_transpose_into: B is NULL");
    REFUSED(t, sp_csr_permute(t, &o.a, labels, labels, NULL), "sp_csr_permute: B is NULL");
    REFUSED(t, sp_csr_community_order(t, &o.a, NULL), "sp_csr_community_order: order is NULL");
    REFUSED(t, sp_spgemm(t, &o.a, &o.a, NULL, NULL, NULL), "sp_spgemm: C is NULL");
    REFUSED(t, sp_similarity(t, &o.a, &o.a, NULL, NULL, NULL), "sp_similarity: C is NULL");
    REFUSED(t, sp_spgemm_top_k(t, &o.a, &o.a, 1, NULL, NULL, NULL), "sp_spgemm_top_k: C is NULL");
    REFUSED(t, sp_spgemm_plan_create(t, &o.a, &o.a, NULL, NULL), "sp_spgemm_plan_create: plan is NULL");
    REFUSED(t, sp_spgemm_plan_execute(o.product, 1, &o.a, &o.a, 0, NULL), "sp_spgemm_plan_execute: C is NULL");
    REFUSED(t, sp_spgemm_markov(t, &o.a, &o.a, &epilogue, NULL, NULL, NULL), "sp_spgemm_markov: C is NULL");
    REFUSED(t, sp_contract(t, &o.a, labels, SP_HOST, 1, NULL, NULL, NULL), "sp_contract: C is NULL");
    REFUSED(t, sp_contract_into(t, &o.a, labels, SP_HOST, 1, NULL, NULL, NULL), "sp_contract_into: C is NULL");
    REFUSED(t, sp_triple_product(t, &o.a, &o.a, NULL, NULL, NULL), "sp_triple_product: C is NULL");
    REFUSED(t, sp_dense_create(t, 1, 1, SP_DENSE_F32, SP_HOST, NULL), "sp_dense_create: matrix is NULL");
    REFUSED(t, sp_dense_copy(t, &o.x, SP_HOST, NULL), "sp_dense_copy: copy is NULL");
    REFUSED(t, sp_spmm_plan_create(t, &o.a, 1, NULL, NULL), "sp_spmm_plan_create: plan is NULL");
    REFUSED(t, sp_cbsr_create(t, 1, 1, 1, SP_DENSE_F32, NULL), "sp_cbsr_create: matrix is NULL");
    REFUSED(t, sp_csr_add(t, 1, &o.a, 1, &o.a, NULL), "sp_csr_add: C is NULL");
    REFUSED(t, sp_csr_hadamard(t, &o.a, &o.a, NULL), "sp_csr_hadamard: C is NULL");
    REFUSED(t, sp_csr_extract(t, &o.a, NULL, 0, NULL, 0, SP_HOST, NULL), "sp_csr_extract: B is NULL");
    REFUSED(t, sp_csr_select(t, &o.a, SP_SELECT_LOWER, 0, NULL), "sp_csr_select: B is NULL");
    REFUSED(t, sp_csr_top_k(t, &o.a, 1, NULL), "sp_csr_top_k: B is NULL");
    REFUSED(t, sp_csr_reduce_rows(t, &o.a, SP_COMBINE_SUM, NULL, SP_HOST), "sp_csr_reduce_rows: result is NULL");
    REFUSED(t, sp_csr_degree_order(t, &o.a, NULL, SP_HOST), "sp_csr_degree_order: order is NULL");
    REFUSED(t, sp_csr_sample_rows(t, &o.a, NULL, 1, NULL, 0, NULL), "sp_csr_sample_rows: rows is NULL");
    REFUSED(t, sp_csr_sample_rows(t, &o.a, labels, 1, NULL, 0, NULL), "sp_csr_sample_rows: offsets is NULL");
    REFUSED(t, sp_csr_sample_rows(t, &o.a, labels, -1, NULL, 0, NULL), "sp_csr_sample_rows: -1 rows to draw from");
    close_operands(&o);
}

CONTEXT_TEST(what_frees_and_what_asks_takes_null, _i, 1)
{
    sp_context_destroy(NULL);
    sp_context_retain(NULL);
    sp_free(NULL, NULL);
    sp_free(context, NULL);
    sp_array_free(context, SP_HOST, NULL);
    sp_array_free(NULL, SP_DEVICE, NULL);
    sp_csr_free(context, NULL);
    sp_csr_free(NULL, &(sp_csr){0});
    sp_dense_free(context, NULL);
    sp_cbsr_free(context, NULL);
    sp_spmm_plan_free(NULL);
    sp_spgemm_plan_free(NULL);
    mcl_clustering_free(context, NULL);
    mcl_transform_free(context, NULL);
    mcl_options_default(NULL);
    contraction_hierarchy_free(context, NULL);
    gnn_engine_free(NULL);
    gnn_data_free(context, NULL);
    gnn_block_free(NULL);
    gnn_model_free(NULL);
    gnn_optimizer_free(NULL);
    gnn_sampler_free(NULL);
    gnn_minibatch_free(NULL, NULL);
    gnn_trainer_free(NULL);
    ck_assert_str_eq(sp_context_device(NULL), "");
    ck_assert(!sp_context_is_cuda(NULL) && sp_context_threads(NULL) == 0 && !sp_context_stream(NULL));
    ck_assert_int_eq(sp_context_set_stream(NULL, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_context_trim(NULL), SP_ERROR_ARGUMENT);
    ck_assert(!sp_spmm_plan_info(NULL) && !sp_spgemm_plan_info(NULL));
    ck_assert(!gnn_engine_context(NULL) && !gnn_model_shape(NULL) && gnn_model_size(NULL) == 0);
    ck_assert(mcl_transform_value(NULL, 2.5) == 2.5);
}

/* ---- structs that contradict themselves ------------------------------------------------------------------- */

/* Every call that takes the matrix says what is wrong with it. */
static void refuse_everywhere(sp_context *t, const sp_csr *bad, const char *words)
{
    sp_csr c, work = *bad;
    int32_t labels[NODES] = {0}, *order;
    double result[NODES];
    sp_spmm_plan *plan;
    sp_spgemm_plan *product;
    test_mark(&c, sizeof c);
    REFUSED(t, sp_csr_copy(t, bad, SP_HOST, &c), words);
    REFUSED(t, sp_csr_transpose(t, bad, &c), words);
    REFUSED(t, sp_csr_transpose_into(t, bad, &c), words);
    REFUSED(t, sp_csr_sort(t, bad, &c), words);
    REFUSED(t, sp_csr_permute(t, bad, labels, labels, &c), words);
    REFUSED(t, sp_csr_community_order(t, bad, &order), words);
    REFUSED(t, sp_spgemm(t, bad, bad, NULL, &c, NULL), words);
    REFUSED(t, sp_spgemm_plan_create(t, bad, bad, NULL, &product), words);
    REFUSED(t, sp_spmm_plan_create(t, bad, 1, NULL, &plan), words);
    REFUSED(t, sp_contract(t, bad, labels, SP_HOST, 1, NULL, &c, NULL), words);
    REFUSED(t, sp_contract_into(t, bad, labels, SP_HOST, 1, NULL, &c, NULL), words);
    REFUSED(t, sp_triple_product(t, bad, bad, NULL, &c, NULL), words);
    REFUSED(t, sp_csr_add(t, 1, bad, 1, bad, &c), words);
    REFUSED(t, sp_csr_hadamard(t, bad, bad, &c), words);
    REFUSED(t, sp_csr_scale(t, &work, NULL, NULL, SP_HOST), words);
    REFUSED(t, sp_csr_inflate(t, &work, 2), words);
    REFUSED(t, sp_csr_extract(t, bad, NULL, 0, NULL, 0, SP_HOST, &c), words);
    REFUSED(t, sp_csr_select(t, bad, SP_SELECT_LOWER, 0, &c), words);
    REFUSED(t, sp_csr_top_k(t, bad, 1, &c), words);
    REFUSED(t, sp_csr_reduce_rows(t, bad, SP_COMBINE_SUM, result, SP_HOST), words);
    REFUSED(t, sp_csr_degree_order(t, bad, labels, SP_HOST), words);
    REFUSED(t, sp_csr_sample_rows(t, bad, labels, 0, NULL, 0, NULL), words);
    ck_assert(test_is_marked(&c, sizeof c));
}

TEST(matrices_that_contradict_themselves_are_refused)
{
    operands o = open_operands(_i);
    sp_csr bad = o.a;
    bad.row_offsets = NULL;
    refuse_everywhere(o.context, &bad, "has no row offsets");
    bad = o.a;
    bad.col_indices = NULL;
    refuse_everywhere(o.context, &bad, "and no column indices");
    bad = o.a;
    bad.rows = -1;
    refuse_everywhere(o.context, &bad, "is -1 x 4");
    bad = o.a;
    bad.cols = (int64_t)1 << 31;
    refuse_everywhere(o.context, &bad, "is 4 x 2147483648");
    bad = o.a;
    bad.nnz = -5;
    refuse_everywhere(o.context, &bad, "with -5 entries");
    bad = o.a;
    bad.nnz++;
    refuse_everywhere(o.context, &bad, "run from 0 to 8, not from 0 to 9");
    bad = o.a;
    bad.value_type = (sp_value_type)7;
    refuse_everywhere(o.context, &bad, "type 7 of values does not exist");
    bad = o.a;
    bad.space = (sp_space)2;
    refuse_everywhere(o.context, &bad, "space 2 does not exist");
    bad.space = SP_DEVICE;
    if (!_i) refuse_everywhere(o.context, &bad, "a CPU context cannot reach device memory");
    close_operands(&o);
}

TEST(dense_matrices_that_contradict_themselves_are_refused)
{
    operands o = open_operands(_i);
    const struct { int64_t rows, cols, stride; void *values; int type, space; const char *words; } cases[] = {
        {NODES, 3, 2, o.x.values, SP_DENSE_F32, o.x.space, "X is 4 x 3 with stride 2"},
        {NODES, 3, 3, NULL, SP_DENSE_F32, o.x.space, "and no values"},
        {NODES, -3, 3, o.x.values, SP_DENSE_F32, o.x.space, "X is 4 x -3"},
        {NODES, 3, 3, o.x.values, 4, o.x.space, "type 4 of values does not exist"},
        {NODES, 3, 3, o.x.values, SP_DENSE_F32, 3, "space 3 does not exist"},
        {NODES, 3, INT64_MAX / 4, o.x.values, SP_DENSE_F32, o.x.space, "cannot be addressed"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const sp_dense bad = {.rows = cases[i].rows, .cols = cases[i].cols, .stride = cases[i].stride,
                              .values = cases[i].values, .type = (sp_dense_type)cases[i].type,
                              .space = (sp_space)cases[i].space};
        sp_dense made;
        test_mark(&made, sizeof made);
        REFUSED(o.context, sp_spmm_execute(o.plan, 1, &bad, 0, &o.y), cases[i].words);
        REFUSED(o.context, sp_sddmm(o.context, &o.a, &bad, &o.y, o.kept.values), cases[i].words);
        REFUSED(o.context, sp_dense_copy(o.context, &bad, SP_HOST, &made), cases[i].words + 1);
        ck_assert(test_is_marked(&made, sizeof made));
    }
    close_operands(&o);
}

TEST(spaces_and_enums_out_of_range_are_refused)
{
    operands o = open_operands(_i);
    sp_context *t = o.context;
    int32_t labels[NODES] = {0};
    double result[NODES];
    sp_csr c;
    sp_dense d;
    void *p;
    const sp_space none = (sp_space)5;
    REFUSED(t, sp_array_create(t, 1, 1, none, &p), "space 5 does not exist");
    REFUSED(t, sp_array_copy(t, 1, 1, labels, none, result, SP_HOST), "space 5 does not exist");
    REFUSED(t, sp_csr_create(t, 1, 1, 1, SP_F32, none, &c), "space 5 does not exist");
    REFUSED(t, sp_csr_copy(t, &o.a, none, &c), "space 5 does not exist");
    REFUSED(t, sp_dense_create(t, 1, 1, SP_DENSE_F32, none, &d), "space 5 does not exist");
    REFUSED(t, sp_dense_copy(t, &o.x, none, &d), "space 5 does not exist");
    REFUSED(t, sp_contract(t, &o.a, labels, none, 1, NULL, &c, NULL), "space 5 does not exist");
    REFUSED(t, sp_csr_extract(t, &o.a, labels, 1, NULL, 0, none, &c), "space 5 does not exist");
    REFUSED(t, sp_csr_scale(t, &o.a, result, NULL, none), "space 5 does not exist");
    REFUSED(t, sp_csr_reduce_rows(t, &o.a, SP_COMBINE_SUM, result, none), "space 5 does not exist");
    REFUSED(t, sp_csr_degree_order(t, &o.a, labels, none), "space 5 does not exist");
    REFUSED(t, sp_spmm_plan_set_values(o.plan, result, none), "space 5 does not exist");
    close_operands(&o);
}

/* ---- outputs that are inputs ------------------------------------------------------------------------------ */

TEST(an_output_must_not_be_an_input)
{
    operands o = open_operands(_i);
    sp_context *t = o.context;
    sp_csr b, *a = &o.a;
    int32_t labels[NODES] = {0, 1, 2, 3};
    const sp_markov_epilogue epilogue = {0};
    ck_ok(t, sp_csr_copy(t, a, SP_HOST, &b));
    const sp_csr before = b, a_before = *a;
    const sp_spgemm_options masked = {.mask = &b};
    REFUSED(t, sp_spgemm(t, a, &b, NULL, a, NULL), "C is A");
    REFUSED(t, sp_spgemm(t, a, &b, NULL, &b, NULL), "C is B");
    REFUSED(t, sp_spgemm(t, a, a, &masked, &b, NULL), "C is the mask");
    REFUSED(t, sp_spgemm_top_k(t, a, a, 1, NULL, a, NULL), "C is A");
    REFUSED(t, sp_spgemm_markov(t, a, &b, &epilogue, &b, NULL, NULL), "C is B");
    REFUSED(t, sp_spgemm_plan_execute(o.product, 1, a, &b, 0, &b), "C is B");
    REFUSED(t, sp_triple_product(t, a, &b, NULL, a, NULL), "C is S");
    REFUSED(t, sp_triple_product(t, a, &b, NULL, &b, NULL), "C is G");
    REFUSED(t, sp_contract(t, a, labels, SP_HOST, NODES, NULL, a, NULL), "C is G");
    REFUSED(t, sp_csr_transpose(t, a, a), "B is A");
    REFUSED(t, sp_csr_permute(t, a, labels, labels, a), "B is A");
    REFUSED(t, sp_csr_copy(t, a, SP_HOST, a), "copy is source");
    REFUSED(t, sp_csr_add(t, 1, a, 1, &b, a), "C is A");
    REFUSED(t, sp_csr_add(t, 1, a, 1, &b, &b), "C is B");
    REFUSED(t, sp_csr_hadamard(t, a, &b, &b), "C is B");
    REFUSED(t, sp_csr_extract(t, a, labels, 2, NULL, 0, SP_HOST, a), "B is A");
    REFUSED(t, sp_csr_select(t, a, SP_SELECT_LOWER, 0, a), "B is A");
    REFUSED(t, sp_csr_top_k(t, a, 1, a), "B is A");
    REFUSED(t, sp_dense_copy(t, &o.x, SP_HOST, &o.x), "copy is source");
    REFUSED(t, mcl_renumber(t, a, labels, a), "renumbered is matrix");
    REFUSED(t, contraction_quotient(t, a, labels, NODES, NULL, a, NULL), "C is G");
    REFUSED(t, contraction_product(t, a, &b, NULL, a, NULL), "C is S");
    REFUSED(t, gnn_operator(t, a, GNN_GCN, SP_F32, a), "matrix is graph");
    ck_assert(memcmp(&before, &b, sizeof b) == 0 && memcmp(&a_before, a, sizeof *a) == 0);
    sp_csr_free(t, &b);
    close_operands(&o);
}

TEST(arrays_that_are_filled_must_not_overlap_those_that_are_read)
{
    operands o = open_operands(_i);
    sp_context *t = o.context;
    sp_dense all, x, y;
    const sp_space space = o.x.space;
    ck_ok(t, sp_dense_create(t, NODES, 8, SP_DENSE_F32, space, &all));
    float *values = all.values;
    x = (sp_dense){.rows = NODES, .cols = 3, .stride = 8, .values = values, .space = space};
    y = (sp_dense){.rows = NODES, .cols = 3, .stride = 8, .values = values + 2, .space = space};
    REFUSED(t, sp_spmm_execute(o.plan, 1, &x, 0, &y), "the arrays of Y and X overlap");
    REFUSED(t, sp_spmm_execute(o.plan, 1, &y, 0, &x), "the arrays of Y and X overlap");
    y.values = values + 7; /* its rows end in those of X that follow */
    REFUSED(t, sp_spmm_execute(o.plan, 1, &x, 0, &y), "the arrays of Y and X overlap");
    y.values = values + 8;
    REFUSED(t, sp_spmm_execute(o.plan, 1, &x, 0, &y), "the arrays of Y and X overlap");
    /* of another stride */
    y = (sp_dense){.rows = NODES, .cols = 3, .stride = 3, .values = values + 11, .space = space};
    REFUSED(t, sp_spmm_execute(o.plan, 1, &x, 0, &y), "the arrays of Y and X overlap");
    y = x;
    REFUSED(t, sp_spmm_execute(o.plan, 1, &x, 0, &y), "the arrays of Y and X overlap");
    y = (sp_dense){.rows = NODES, .cols = 3, .stride = 8, .values = values + 5, .space = space}; /* side by side */
    const float zeros[NODES * 8] = {0};
    ck_ok(t, sp_array_copy(t, NODES * 8, sizeof *zeros, values, space, zeros, SP_HOST));
    ck_ok(t, sp_spmm_execute(o.plan, 1, &x, 0, &y));
    ck_ok(t, sp_spmm_execute(o.plan, 1, &y, 0, &x));
    REFUSED(t, sp_spmm_execute_argument(o.maximum, &x, &y, (int64_t *)(void *)values), "argument and X overlap");
    REFUSED(t, sp_sddmm(t, &o.a, &o.x, &o.y, o.y.values), "values and Y overlap");
    REFUSED(t, sp_edge_softmax_backward(t, &o.a, 1, values, values + 3), "gradient and softmax overlap");
    REFUSED(t, sp_array_copy(t, 4, 4, values, space, values + 3, space), "to and from overlap");
    ck_ok(t, sp_array_copy(t, 4, 4, values, space, values + 4, space));
    sp_dense like = o.x;
    like.values = o.kept.values;
    REFUSED(t, sp_maxk(t, &like, &o.kept), "X and kept overlap");
    REFUSED(t, sp_maxk_spmm(o.plan, 1, &o.kept, 0, &like), "Y and kept overlap");
    sp_dense_free(t, &all);
    close_operands(&o);
}

static const test_entry tests[] = {
    CASE("missing", 0),
    ON_DEVICES(calls_without_a_context_are_refused),
    ON_DEVICES(calls_without_a_matrix_are_refused),
    ON_DEVICES(calls_without_an_output_are_refused),
    ON_DEVICES(what_frees_and_what_asks_takes_null),
    CASE("wrong", 0),
    ON_DEVICES(matrices_that_contradict_themselves_are_refused),
    ON_DEVICES(dense_matrices_that_contradict_themselves_are_refused),
    ON_DEVICES(spaces_and_enums_out_of_range_are_refused),
    ON_DEVICES(an_output_must_not_be_an_input),
    ON_DEVICES(arrays_that_are_filled_must_not_overlap_those_that_are_read),
    {0},
};

int main(void) { return test_run("arguments", tests, contexts_tests); }
