/* test_arguments: sizes, contexts and their plans, calls of the modules. */
#include <string.h>

#include "arguments_shared.h"

/* ---- sizes ------------------------------------------------------------------------------------------------ */

TEST(widths_that_cannot_be_addressed_are_refused)
{
    operands o = open_operands(_i);
    const int64_t widths[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_MAX / 8, INT64_MAX / 16 / NODES * 2};
    for (int algorithm = SP_SPMM_AUTO; algorithm <= SP_SPMM_BIDIRECTIONAL; algorithm++)
        for (size_t i = 0; i < COUNT(widths); i++) {
            const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)algorithm, .transpose = i % 2};
            sp_spmm_plan *plan = o.plan;
            ck_assert_int_eq(sp_spmm_plan_create(o.context, &o.a, widths[i], &options, &plan), SP_ERROR_OVERFLOW);
            ck_assert_ptr_null(plan);
            ck_assert(strstr(sp_last_error(o.context), "cannot be addressed") != NULL);
        }
    close_operands(&o);
}

/* Any width that could be: what the plan reckons with it does not overflow, and the plan works. */
TEST(plans_for_vast_widths_work)
{
    operands o = open_operands(_i);
    const int64_t widths[] = {0, INT32_MAX, (int64_t)1 << 40, INT64_MAX / 8 / (NODES + 1)};
    const size_t parts[] = {0, 1, SIZE_MAX};
    const float zeros[NODES * 3] = {0};
    ck_ok(o.context, sp_array_copy(o.context, NODES * 3, sizeof *zeros, o.x.values, o.x.space, zeros, SP_HOST));
    for (int algorithm = SP_SPMM_AUTO; algorithm <= SP_SPMM_BIDIRECTIONAL; algorithm++)
        for (size_t i = 0; i < 12; i++) {
            const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)algorithm,
                                             .partition_bytes = parts[i % 3]};
            sp_spmm_plan *plan;
            ck_ok(o.context, sp_spmm_plan_create(o.context, &o.a, widths[i / 3], &options, &plan));
            ck_ok(o.context, sp_spmm_execute(plan, 1, &o.x, 0, &o.y));
            sp_spmm_plan_free(plan);
        }
    close_operands(&o);
}

/* How many triples sp_csr_from_coo takes depends on the columns: both share 64 bits. */
CONTEXT_TEST(more_triples_than_fit_are_refused_before_they_are_read, 0, 1)
{
    const int32_t indices[1] = {0};
    const struct { int64_t cols, most; const char *words; } cases[] = {{INT32_MAX, (int64_t)1 << 33, "2^33"},
                 {(int64_t)1 << 20, (int64_t)1 << 44, "2^44"},
                 {((int64_t)1 << 20) + 1, (int64_t)1 << 43, "2^43"},
                 {1000, (int64_t)1 << 54, "2^54"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        sp_csr m;
        test_mark(&m, sizeof m);
        ck_assert_int_eq(sp_csr_from_coo(context, &(sp_coo){.rows = 1, .cols = cases[i].cols,
                                                            .count = cases[i].most + 1, .row_indices = indices,
                                                            .col_indices = indices}, SP_COMBINE_SUM, false,
                                         &m), SP_ERROR_OVERFLOW);
        test_expect(strstr(sp_last_error(context), cases[i].words), "%s", sp_last_error(context));
        ck_assert_int_eq(sp_csr_from_coo(context, &(sp_coo){.rows = 1, .cols = cases[i].cols, .count = INT64_MAX,
                                                            .row_indices = indices, .col_indices = indices},
                                         SP_COMBINE_SUM, false, &m), SP_ERROR_OVERFLOW);
        ck_assert(test_is_marked(&m, sizeof m));
    }
}

/* ---- contexts ---------------------------------------------------------------------------------------------- */

TEST(a_context_that_cannot_be_made_has_a_sentence)
{
    test_heap heap = {.fail_at = 0};
    const sp_allocator allocator = test_allocator(&heap), half = {.allocate = allocator.allocate};
    const struct { sp_context_options options; sp_status status; const char *words; } cases[] = {
        {{.device = "gpu"}, SP_ERROR_ARGUMENT, "device \"gpu\" is not cpu, cuda, cuda:N, cuda:all, auto or a list"},
        {{.device = "cpu", .threads = -1}, SP_ERROR_ARGUMENT, "-1 threads"},
        {{.device = "cpu", .allocator = &half}, SP_ERROR_ARGUMENT, "allocate and release"},
        {{.device = "cpu", .allocator = &allocator}, SP_ERROR_HOST_MEMORY, "out of memory"},
        {{.device = "cuda:1023"}, SP_ERROR_NO_DEVICE, "CUDA"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sp_context *context = (sp_context *)&heap;
        ck_assert_int_eq(sp_context_create(&cases[i].options, &context), cases[i].status);
        ck_assert_ptr_null(context);
        test_expect(strstr(sp_last_error(NULL), cases[i].words), "\"%s\" lacks \"%s\"", sp_last_error(NULL),
                    cases[i].words);
    }
}

/* Handles hold their context; nothing is left when the last of them ends. */
TEST(a_context_lives_as_long_as_its_plans)
{
    test_heap heap = {.fail_at = -1};
    for (int kind = 0; kind < 4; kind++) {
        sp_context *context = test_heap_context(&heap, _i, 2);
        operands o = open_operands(0);
        sp_spgemm_plan *product = NULL;
        sp_spmm_plan *plan = NULL;
        gnn_engine *engine = NULL;
        if (kind != 1) ck_ok(context, sp_spgemm_plan_create(context, &o.a, &o.a, NULL, &product));
        if (kind != 0) ck_ok(context, sp_spmm_plan_create(context, &o.a, 3, NULL, &plan));
        if (kind == 3) ck_ok(context, gnn_engine_create(context, 1, &engine));
        if (kind == 2) sp_context_retain(context);
        sp_context_destroy(context);
        if (kind == 2) {
            sp_csr c = {0};
            ck_ok(context, sp_spgemm_plan_execute(product, 1, &o.a, &o.a, 0, &c));
            sp_csr_free(context, &c);
            sp_context_destroy(context);
        }
        if (plan) ck_assert_int_eq(sp_spmm_plan_set_values(plan, o.a.values, SP_HOST), SP_OK);
        sp_spgemm_plan_free(product);
        gnn_engine_free(engine);
        ck_assert(kind == 0 || heap.live_blocks > 0);
        sp_spmm_plan_free(plan);
        ck_assert_int_eq(heap.live_blocks, 0);
        close_operands(&o);
    }
}

/* ---- modules ----------------------------------------------------------------------------------------------- */

TEST(calls_of_the_modules_name_what_is_missing)
{
    operands o = open_operands(0);
    sp_context *t = o.context;
    sp_csr *a = &o.a, c;
    int32_t labels[NODES] = {0};
    double weights[NODES] = {0};
    int64_t count = 1;
    mcl_options options;
    mcl_clustering clusters = {0};
    mcl_measures measures;
    mcl_transform *transform;
    mcl_run run;
    contraction_group group;
    contraction_hierarchy hierarchy;
    contraction_judgement judgement;
    bool symmetric;
    mcl_options_default(&options);
    test_mark(&c, sizeof c);
    REFUSED(t, mcl_options_scheme(t, NULL, 1), "options is NULL");
    REFUSED(t, mcl_transform_parse(t, NULL, false, &transform), "spec is NULL");
    REFUSED(t, mcl_transform_parse(t, "mul(2)", false, NULL), "transform is NULL");
    REFUSED(t, mcl_transform_graph(t, NULL, NULL, a), "transform is NULL");
    REFUSED(t, mcl_start_matrix(t, NULL, NULL, &options, false, &c), "graph is NULL");
    REFUSED(t, mcl_start_matrix(t, a, NULL, NULL, false, &c), "options is NULL");
    REFUSED(t, mcl_start_matrix(t, a, NULL, &options, false, NULL), "start is NULL");
    REFUSED(t, mcl_start_matrix(t, a, NULL, &options, false, a), "start is graph");
    REFUSED(t, mcl_prepared_graph(t, NULL, NULL, &options, false, &c), "graph is NULL");
    REFUSED(t, mcl_renumber(t, NULL, labels, &c), "matrix is NULL");
    REFUSED(t, mcl_renumber(t, a, NULL, &c), "order is NULL");
    REFUSED(t, mcl_restore(t, NULL, labels, &c), "renumbered is NULL");
    REFUSED(t, mcl_restore(t, a, labels, NULL), "matrix is NULL");
    REFUSED(t, mcl_iterate(t, NULL, &options, NULL, NULL, &c, &run), "start is NULL");
    REFUSED(t, mcl_iterate(t, a, NULL, NULL, NULL, &c, &run), "options is NULL");
    REFUSED(t, mcl_iterate(t, a, &options, NULL, NULL, NULL, &run), "limit is NULL");
    REFUSED(t, mcl_iterate(t, a, &options, NULL, NULL, &c, NULL), "run is NULL");
    REFUSED(t, mcl_interpret(t, NULL, NULL, &options, &clusters), "limit is NULL");
    REFUSED(t, mcl_interpret(t, a, NULL, NULL, &clusters), "options is NULL");
    REFUSED(t, mcl_interpret(t, a, NULL, &options, NULL), "clustering is NULL");
    REFUSED(t, mcl_label(t, NULL, &options, labels, &count), "graph is NULL");
    REFUSED(t, mcl_label(t, a, &options, NULL, &count), "labels is NULL");
    REFUSED(t, mcl_measure(t, a, NULL, &measures), "clustering is NULL");
    REFUSED(t, mcl_measure(t, NULL, &clusters, &measures), "start is NULL");
    REFUSED(t, contraction_quotient(t, NULL, labels, 1, NULL, &c, NULL), "G is NULL");
    REFUSED(t, contraction_quotient(t, a, NULL, 1, NULL, &c, NULL), "labels is NULL");
    REFUSED(t, contraction_quotient(t, a, labels, 1, NULL, NULL, NULL), "C is NULL");
    REFUSED(t, contraction_product(t, NULL, a, NULL, &c, NULL), "S is NULL");
    REFUSED(t, contraction_product(t, a, NULL, NULL, &c, NULL), "G is NULL");
    REFUSED(t, contraction_mirror(t, NULL, &symmetric), "C is NULL");
    REFUSED(t, contraction_mirror(t, a, NULL), "symmetric is NULL");
    REFUSED(t, contraction_groups(t, NULL, labels, 1, &group), "G is NULL");
    REFUSED(t, contraction_groups(t, a, labels, 1, NULL), "group is NULL");
    REFUSED(t, contraction_judge(t, NULL, true, labels, 1, NULL, 0, &judgement), "G is NULL");
    REFUSED(t, contraction_judge(t, a, true, NULL, 1, NULL, 0, &judgement), "labels is NULL");
    REFUSED(t, contraction_judge(t, a, true, labels, 1, NULL, 0, NULL), "judgement is NULL");
    REFUSED(t, contraction_compact(t, NODES, NULL, &count, NULL), "labels is NULL");
    REFUSED(t, contraction_compact(t, NODES, labels, NULL, NULL), "groups is NULL");
    REFUSED(t, contraction_coarsen(t, NULL, NULL, labels, &count), "G is NULL");
    REFUSED(t, contraction_coarsen(t, a, NULL, NULL, &count), "labels is NULL");
    REFUSED(t, contraction_coarsen(t, a, NULL, labels, NULL), "groups is NULL");
    REFUSED(t, contraction_add_weights(t, NULL, NODES, 1, SP_HOST, weights), "labels is NULL");
    REFUSED(t, contraction_add_weights(t, labels, NODES, 1, SP_HOST, NULL), "weights is NULL");
    REFUSED(t, contraction_add_weights(t, labels, NODES, 1, SP_DEVICE, weights), "weights on the device");
    REFUSED(t, contraction_loosen(t, NULL, labels, &count, 2), "G is NULL");
    REFUSED(t, contraction_loosen(t, a, NULL, &count, 2), "labels is NULL");
    REFUSED(t, contraction_loosen(t, a, labels, NULL, 2), "groups is NULL");
    REFUSED(t, contraction_refine(t, NULL, 1, NULL, labels, NULL), "G is NULL");
    REFUSED(t, contraction_refine(t, a, 1, NULL, NULL, NULL), "labels is NULL");
    REFUSED(t, contraction_repeat(t, a, 1, NULL, NULL, NULL, &hierarchy), "labeller is NULL");
    REFUSED(t, gnn_operator(t, NULL, GNN_GCN, SP_F32, &c), "graph is NULL");
    REFUSED(t, gnn_symmetric(t, NULL, &symmetric), "matrix is NULL");
    REFUSED(t, gnn_symmetric(t, a, NULL), "symmetric is NULL");
    REFUSED(NULL, mcl_label(NULL, a, &options, labels, &count), "context is NULL");
    REFUSED(NULL, contraction_coarsen(NULL, a, NULL, labels, &count), "context is NULL");
    REFUSED(NULL, contraction_refine(NULL, a, 1, NULL, labels, NULL), "context is NULL");
    REFUSED(NULL, gnn_operator(NULL, a, GNN_GCN, SP_F32, &c), "context is NULL");
    ck_assert(test_is_marked(&c, sizeof c));
    close_operands(&o);
}

TEST(calls_of_several_processes_name_what_is_missing)
{
    operands o = open_operands(0);
    sp_context *t = o.context;
    sp_csr *a = &o.a, c;
    int32_t labels[NODES] = {0};
    test_mark(&c, sizeof c);
    REFUSED(t, mcl_restore_together(t, NULL, a, labels, &c), "ranks is NULL");
    mcl_clustering clusters = {0};
    mcl_measuring *measuring;
    mcl_profiling *profiling;
    mcl_profile profile;
    mcl_memberships memberships;
    REFUSED(t, mcl_memberships_make(t, NULL, &memberships), "clustering is NULL");
    REFUSED(t, mcl_memberships_make(t, &clusters, NULL), "memberships is NULL");
    REFUSED(t, mcl_measure_begin(t, NULL, &measuring), "clustering is NULL");
    REFUSED(t, mcl_measure_begin(t, &clusters, NULL), "measuring is NULL");
    REFUSED(t, mcl_profile_begin(t, NULL, &profile, &profiling), "clustering is NULL");
    REFUSED(t, mcl_profile_begin(t, &clusters, NULL, &profiling), "profiles is NULL");
    REFUSED(t, mcl_profile_begin(t, &clusters, &profile, NULL), "profiling is NULL");
    REFUSED(t, mcl_keep_attracting(t, NULL, 0, &c), "rows is NULL");
    REFUSED(t, mcl_keep_attracting(t, a, 0, NULL), "kept is NULL");
    REFUSED(t, mcl_keep_attracting(t, a, 0, a), "kept is rows");
    ck_assert(test_is_marked(&c, sizeof c));
    close_operands(&o);
}

TEST(calls_of_gnn_without_a_handle_are_refused)
{
    operands o = open_operands(0);
    sp_context *t = o.context;
    gnn_engine *engine;
    gnn_block *block = NULL;
    gnn_model *model;
    gnn_optimizer *optimizer;
    gnn_sampler *sampler;
    gnn_trainer *trainer;
    gnn_minibatch minibatch;
    gnn_epoch epoch;
    gnn_link_figures figures;
    gnn_saved saved;
    const gnn_model_options model_options = {.layer = GNN_GCN, .inputs = 3, .outputs = 2, .hidden = 4};
    const gnn_sampler_options sampler_options = {.layers = 1, .fanout = {2}, .batch = 2};
    const gnn_trainer_options trainer_options = {.model = model_options};
    const sp_dense *logits;
    void *bytes;
    int64_t size;
    bool done;
    REFUSED(NULL, gnn_engine_create(NULL, 1, &engine), "context is NULL");
    ck_ok(t, gnn_engine_create(t, 1, &engine));
    REFUSED(t, gnn_engine_create(t, 1, NULL), "engine is NULL");
    REFUSED(NULL, gnn_block_create(NULL, &o.a, GNN_GCN, false, 3, &block), "engine is NULL");
    REFUSED(t, gnn_block_create(engine, NULL, GNN_GCN, false, 3, &block), "matrix is NULL");
    REFUSED(t, gnn_block_create(engine, &o.a, GNN_GCN, false, 3, NULL), "block is NULL");
    REFUSED(NULL, gnn_block_split(NULL), "block is NULL");
    REFUSED(NULL, gnn_model_create(NULL, &model_options, &model), "engine is NULL");
    REFUSED(t, gnn_model_create(engine, NULL, &model), "options is NULL");
    REFUSED(NULL, gnn_model_forward(NULL, &block, NULL, false, &logits), "model is NULL");
    REFUSED(NULL, gnn_model_backward(NULL, &block, NULL, &o.x), "model is NULL");
    ck_ok(t, gnn_model_create(engine, &model_options, &model));
    REFUSED(t, gnn_model_forward(model, NULL, NULL, false, &logits), "block is NULL");
    REFUSED(NULL, gnn_optimizer_create(NULL, NULL, &optimizer), "model is NULL");
    REFUSED(NULL, gnn_optimizer_create(model, NULL, &optimizer), "options is NULL");
    REFUSED(NULL, gnn_optimizer_step(NULL), "optimizer is NULL");
    REFUSED(NULL, gnn_optimizer_set_rate(NULL, 1), "optimizer is NULL");
    REFUSED(NULL, gnn_sampler_create(NULL, &o.a, &sampler_options, &sampler), "context is NULL");
    REFUSED(t, gnn_sampler_create(t, &o.a, NULL, &sampler), "options is NULL");
    REFUSED(t, gnn_sampler_create(t, NULL, &sampler_options, &sampler), "matrix is NULL");
    REFUSED(NULL, gnn_sampler_begin(NULL, NULL, 0, 0, 0), "sampler is NULL");
    REFUSED(NULL, gnn_sampler_next(NULL, &minibatch), "sampler is NULL");
    REFUSED(NULL, gnn_trainer_create(NULL, NULL, &trainer_options, &trainer), "engine is NULL");
    REFUSED(t, gnn_trainer_create(engine, NULL, &trainer_options, &trainer), "data is NULL");
    REFUSED(NULL, gnn_trainer_epoch(NULL, &epoch, &done), "trainer is NULL");
    REFUSED(NULL, gnn_trainer_finish(NULL), "trainer is NULL");
    REFUSED(NULL, gnn_trainer_restart(NULL, 1), "trainer is NULL");
    REFUSED(NULL, gnn_trainer_evaluate(NULL, &epoch), "trainer is NULL");
    REFUSED(NULL, gnn_trainer_predict(NULL, NULL, NULL, NULL), "trainer is NULL");
    REFUSED(NULL, gnn_trainer_save(NULL, false, &bytes, &size), "trainer is NULL");
    REFUSED(NULL, gnn_trainer_restore(NULL, NULL, 0), "trainer is NULL");
    REFUSED(t, gnn_saved_read(t, NULL, 0, &saved), "bytes is NULL");
    REFUSED(t, gnn_data_check(t, NULL), "data is NULL");
    REFUSED(t, gnn_data_normalise(t, NULL), "data is NULL");
    REFUSED(t, gnn_data_draw_split(t, NULL, 1, 1, 1), "data is NULL");
    REFUSED(t, gnn_data_draw_links(t, NULL, 0.1, 0.1, 1), "data is NULL");
    REFUSED(t, gnn_judge_links(t, NULL, 0, NULL, 0, &figures), "linked is NULL");
    REFUSED(NULL, gnn_trainer_judge_links(NULL, GNN_TEST, &figures), "trainer is NULL");
    REFUSED(NULL, gnn_trainer_score_links(NULL, NULL, 0, NULL), "trainer is NULL");
    REFUSED(NULL, gnn_trainer_best_links(NULL, 1, NULL, NULL, &size), "trainer is NULL");
    REFUSED(t, gnn_data_renumber(t, NULL, GNN_ORDER_KEEP), "data is NULL");
    gnn_model_free(model);
    gnn_engine_free(engine);
    close_operands(&o);
}

const test_entry contexts_tests[] = {
    CASE("missing", 0),
    ONCE(calls_of_the_modules_name_what_is_missing),
    ONCE(calls_of_several_processes_name_what_is_missing),
    ONCE(calls_of_gnn_without_a_handle_are_refused),
    CASE("wrong", 0),
    ON_DEVICES(widths_that_cannot_be_addressed_are_refused),
    ON_DEVICES(plans_for_vast_widths_work),
    ONCE(more_triples_than_fit_are_refused_before_they_are_read),
    CASE("life", 0),
    ONCE(a_context_that_cannot_be_made_has_a_sentence),
    ON_DEVICES(a_context_lives_as_long_as_its_plans),
    {0},
};
