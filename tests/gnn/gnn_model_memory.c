/* test_gnn_model: failing allocations and impossible requests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_model_shared.h"

/* One pass forward and backward, everything made and freed: the first failure. */
static sp_status run_once(sp_context *context, const example *e, test_heap *heap, int64_t *growth)
{
    gnn_engine *engine = NULL;
    gnn_model *model = NULL;
    gnn_block *block[MOST_LAYERS] = {0};
    const sp_dense *logits;
    const gnn_optimizer_options adam = {0};
    gnn_optimizer *optimizer = NULL;
    const gnn_features x = {.dense = {e->a[0].cols, e->o.inputs, e->o.inputs, e->sparse ? NULL : e->x, SP_DENSE_F64,
                                      SP_HOST},
                            .sparse = e->x_sparse};
    sp_dense gradient = {.rows = e->a[1].rows, .cols = e->o.outputs, .stride = e->o.outputs, .values = e->x,
                         .type = SP_DENSE_F64};
    sp_status status;
    gradient.values = test_zeros((size_t)(gradient.rows * gradient.cols), 8);
    TRY(gnn_engine_create(context, 1, &engine));
    TRY(gnn_model_create(engine, &e->o, &model));
    for (int i = 0; i < 2; i++) TRY(gnn_block_create(engine, &e->a[i], e->o.layer, false, 4, &block[i]));
    TRY(gnn_optimizer_create(model, &adam, &optimizer));
    for (int pass = 0; pass < 3; pass++) {
        const int64_t before = heap->live_bytes;
        TRY(gnn_model_forward(model, block, &x, true, &logits));
        TRY(gnn_model_backward(model, block, &x, &gradient));
        TRY(gnn_optimizer_step(optimizer));
        *growth = heap->live_bytes - before;
    }
done:
    free(gradient.values);
    gnn_optimizer_free(optimizer);
    for (int i = 0; i < 2; i++) gnn_block_free(block[i]);
    gnn_model_free(model);
    gnn_engine_free(engine);
    return status;
}

HOST_TEST(every_allocation_may_fail_and_nothing_grows_after_the_first_pass, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int variant = 0; variant < (layer == GNN_SAGE_MAX ? 1 : 3); variant++) {
            const bool maxk = variant == 1 && layer != GNN_GAT && layer != GNN_SAGE_MAX;
            example e = draw_example(host, 90, (gnn_layer)layer, 2, SAMPLED, variant, DROPOUT | (maxk ? MAXK : 0));
            test_heap heap = {.fail_at = -1};
            const sp_allocator allocator = test_allocator(&heap);
            sp_status status = SP_ERROR_HOST_MEMORY;
            for (int64_t at = 0; status != SP_OK; at++) {
                sp_context *context;
                int64_t growth = 0;
                heap = (test_heap){.fail_at = -1};
                ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .threads = 1,
                                                                         .allocator = &allocator}, &context), SP_OK);
                const int64_t blocks = heap.live_blocks;
                heap.fail_at = heap.allocations + at;
                status = run_once(context, &e, &heap, &growth);
                ck_assert_msg(status == SP_OK || status == SP_ERROR_HOST_MEMORY, "%s: %s", describe(&e),
                              sp_last_error(context));
                ck_assert_msg(heap.live_blocks == blocks, "%s: leak after allocation %lld", describe(&e),
                              (long long)at);
                ck_assert_msg(status != SP_OK || (growth == 0 && at > 10), "%s: %lld bytes more", describe(&e),
                              (long long)growth);
                sp_context_destroy(context);
            }
            free_example(host, &e);
        }
}

/* ---- mistakes ------------------------------------------------------------------------------------------ */

TEST(impossible_models_are_refused_and_say_why)
{
    const gnn_model_options good = {.inputs = 5, .outputs = 3, .hidden = 4};
    const struct { gnn_model_options o; const char *why; } bad[] = {
        {{.layer = (gnn_layer)7, .inputs = 5, .outputs = 3, .hidden = 4}, "layer 7 does not exist"},
        {{.layers = 17, .inputs = 5, .outputs = 3, .hidden = 4}, "17 layers; there can be 1 to 16"},
        {{.layers = -1, .inputs = 5, .outputs = 3, .hidden = 4}, "-1 layers; there can be 1 to 16"},
        {{.outputs = 3, .hidden = 4}, "0 features, 4 hidden columns and 3 classes"},
        {{.inputs = 5, .hidden = 4}, "5 features, 4 hidden columns and 0 classes"},
        {{.inputs = 5, .outputs = 3}, "0 hidden columns"},
        {{.layer = GNN_GIN, .layers = 1, .inputs = 5, .outputs = 3}, "0 hidden columns"},
        {{.layer = GNN_GAT, .inputs = 5, .outputs = 3, .hidden = 1 << 30, .heads = 4}, "4 heads and 1 in the last"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .heads = -1}, "-1 heads"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .dropout = 1}, "a dropout of 1"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .input_dropout = -0.5}, "a dropout of -0.5"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .attention_dropout = NAN}, "a dropout of "},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .type = SP_DENSE_F16}, "models are of type f32 or f64"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .maxk = -2}, "MaxK keeps -2 columns"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .maxk = 2, .half = true}, "numbers in bf16"},
        {{.layer = GNN_SAGE_MAX, .inputs = 5, .outputs = 3, .hidden = 4, .half = true}, "numbers in bf16"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .type = SP_DENSE_F64, .half = true}, "numbers in bf16"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .maxk = 5}, "MaxK keeps 5 of 4 hidden columns"},
        {{.inputs = 5, .outputs = 3, .hidden = 70000, .maxk = 5}, "MaxK keeps 5 of 70000 hidden columns"},
        {{.layer = GNN_GAT, .inputs = 5, .outputs = 3, .hidden = 4, .maxk = 2}, "MaxK goes with GCN"},
        {{.layers = 1, .inputs = 5, .outputs = 3, .hidden = 4, .maxk = 2}, "MaxK is for hidden layers"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .keep_aggregated = true, .input_dropout = 0.5}, "cannot be kept"},
    };
    runner r = open_runner(_i);
    gnn_model *model;
    for (size_t i = 0; i < COUNT(bad); i++) {
        ck_assert_int_eq(gnn_model_create(r.engine, &bad[i].o, &model), SP_ERROR_ARGUMENT);
        ck_assert_ptr_null(model);
        ck_assert_msg(strstr(sp_last_error(r.context), bad[i].why), "%s", sp_last_error(r.context));
    }
    ck_assert_int_eq(gnn_model_create(r.engine,
                                      &(gnn_model_options){.inputs = INT32_MAX, .outputs = 3, .hidden = INT32_MAX},
                                      &model), SP_ERROR_OVERFLOW);
    ck_ok(r.context, gnn_model_create(r.engine, &good, &r.model));
    ck_assert_int_eq(gnn_model_shape(r.model)->layers, 2);
    free_runner(&r);
}

HOST_TEST(passes_with_what_does_not_fit_are_refused, 1)
{
    example e = draw_example(host, 7, GNN_SAGE_MAX, 2, SAMPLED, 0, 0);
    runner r = make_runner(_i, &e);
    const sp_dense *logits, nothing = {.type = SP_DENSE_F64, .space = r.engine->space};
    gnn_block *swapped[] = {r.block[1], r.block[0]}, *other;
    gnn_features x = r.x;
    ck_assert_int_eq(gnn_model_backward(r.model, r.block, &r.x, &nothing), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "needs a forward pass before it"));
    ck_assert_int_eq(gnn_model_forward(r.model, swapped, &r.x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "columns and the one before"));
    x.dense.cols++;
    ck_assert_int_eq(gnn_model_forward(r.model, r.block, &x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "the first block and the model need"));
    x = r.x;
    x.dense.type = SP_DENSE_F32;
    ck_assert_int_eq(gnn_model_forward(r.model, r.block, &x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "not of the same type"));
    x = (gnn_features){.sparse = test_matrix(host, &(test_random){1, 1}, r.x.dense.rows, r.x.dense.cols, 0.5, SP_F64,
                                             TEST_SIGNED)};
    sp_csr there;
    ck_ok(r.context, sp_csr_copy(r.context, &x.sparse, r.engine->space, &there));
    sp_csr_free(host, &x.sparse);
    x.sparse = there;
    ck_assert_int_eq(gnn_model_forward(r.model, r.block, &x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(r.context), "maxima over neighbours need dense features");
    sp_csr_free(r.context, &there);
    ck_ok(r.context, gnn_block_create(r.engine, &e.a[0], GNN_SAGE, false, 4, &other));
    swapped[0] = other;
    ck_assert_int_eq(gnn_model_forward(r.model, swapped, &r.x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "another kind of layer"));
    gnn_block_free(other);
    ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, false, &logits));
    ck_assert_int_eq(gnn_model_backward(r.model, r.block, &r.x, &nothing), SP_ERROR_ARGUMENT);
    free_runner(&r);
    free_example(host, &e);
}

DEVICE_TEST(blocks_with_more_rows_than_columns_are_refused, _i, 1)
{
    test_random random = test_seed(1);
    sp_csr tall = test_matrix(host, &random, 4, 3, 0.5, SP_F32, TEST_SIGNED);
    sp_csr wide = test_matrix(host, &random, 3, 4, 0.5, SP_F32, TEST_SIGNED);
    gnn_engine *engine;
    gnn_block *block;
    ck_ok(context, gnn_engine_create(context, 1, &engine));
    ck_assert_int_eq(gnn_block_create(engine, &tall, GNN_GCN, false, 4, &block), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_block_create(engine, &wide, GNN_GCN, true, 4, &block), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_block_create(engine, &wide, (gnn_layer)5, false, 4, &block), SP_ERROR_ARGUMENT);
    ck_assert_ptr_null(block);
    gnn_engine_free(engine);
    test_free(host, &tall, &wide);
}

const test_entry memory_tests[] = {
    CASE("models", 300),
    ONCE(every_allocation_may_fail_and_nothing_grows_after_the_first_pass),
    ON_DEVICES(impossible_models_are_refused_and_say_why),
    ON_DEVICES(passes_with_what_does_not_fit_are_refused),
    ON_DEVICES(blocks_with_more_rows_than_columns_are_refused),
    {0},
};
