/* Operators, blocks, models and optimizers of gnn: forward passes against the layers' formulas in dense f64 loops,
 * gradients against central differences of the same formulas, dropout included; what is kept between calls, and what
 * is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_model_shared.h"

/* ---- operators ----------------------------------------------------------------------------------------- */

/* Entry (i, j) of the operator by its definition. */
static double operator_entry(gnn_layer layer, const double *graph, int64_t nodes, int64_t i, int64_t j)
{
    double degree[2] = {1, 1};
    const double loop = i == j, weight = graph[i * nodes + j];
    if (layer == GNN_GAT) return weight != 0 || i == j;
    if (layer != GNN_GCN) return weight != 0 && i != j;
    for (int64_t k = 0; k < nodes; k++) {
        degree[0] += graph[i * nodes + k];
        degree[1] += graph[j * nodes + k];
    }
    return (weight + loop) / (sqrt(degree[0]) * sqrt(degree[1]));
}

HOST_TEST(operators_are_those_of_their_definitions, 2)
{
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(60); seed++) {
        test_random random = test_seed(seed);
        const int64_t nodes = seed % 20 == 0 ? 400 : test_below(&random, 12);
        const gnn_layer layer = (gnn_layer)(seed % 5);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        sp_csr graph = test_matrix(host, &random, nodes, nodes, seed % 20 == 0 ? 0.9 : 0.3,
                                   seed % 3 ? SP_F32 : SP_F64, seed % 7 ? TEST_POSITIVE : TEST_PATTERN), made;
        double *numbers = test_zeros((size_t)(nodes * nodes) + 1, sizeof *numbers);
        for (int64_t i = 0; i < nodes; i++)
            for (int64_t k = graph.row_offsets[i]; k < graph.row_offsets[i + 1]; k++)
                numbers[i * nodes + graph.col_indices[k]] = test_value(&graph, k);
        ck_ok(host, gnn_operator(host, &graph, layer, type, &made));
        ck_ok(host, sp_csr_check(host, &made));
        ck_assert(made.value_type == type && (made.values != NULL) == (layer == GNN_GCN));
        int64_t entries = 0;
        for (int64_t i = 0, k = 0; i < nodes; i++)
            for (int64_t j = 0; j < nodes; j++) {
                const double expected = operator_entry(layer, numbers, nodes, i, j);
                if (expected == 0) continue;
                entries++;
                test_expect(k < made.nnz && made.col_indices[k] == j && k < made.row_offsets[i + 1] &&
                                fabs(test_value(&made, k) - expected) <= (type == SP_F32 ? 1e-7 : 1e-15),
                            "seed %llu: entry (%lld, %lld)", (unsigned long long)seed, (long long)i, (long long)j);
                k++;
            }
        ck_assert_int_eq(made.nnz, entries);
        free(numbers);
        test_free(host, &graph, &made);
    }
}

HOST_TEST(the_gcn_operator_of_a_symmetric_graph_is_symmetric_to_the_last_bit, 2)
{
    test_random random = test_seed(5);
    sp_csr graph = random_graph(host, &random, 40, true), made, mirrored;
    ck_ok(host, gnn_operator(host, &graph, GNN_GCN, SP_F32, &made));
    ck_ok(host, sp_csr_transpose(host, &made, &mirrored));
    test_same(&made, &mirrored, 5);
    test_free(host, &graph, &made, &mirrored);
}

HOST_TEST(operators_of_impossible_graphs_are_refused, 1)
{
    test_random random = test_seed(5);
    const double negative[] = {0, -2, 1, 0};
    sp_csr wide = test_matrix(host, &random, 3, 4, 0.5, SP_F32, TEST_SIGNED), made;
    sp_csr graph = test_from_dense(host, 2, 2, negative, SP_F32);
    test_mark(&made, sizeof made);
    ck_assert_int_eq(gnn_operator(host, &wide, GNN_GCN, SP_F32, &made), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(host), "the graph is 3 x 4: it must be square and in host memory");
    ck_assert_int_eq(gnn_operator(host, &graph, GNN_GCN, SP_F32, &made), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(host), "the weights of node 0 (from 0) and its loop have no positive sum, and GCN"
                                          " divides by it");
    ck_assert(test_is_marked(&made, sizeof made));
    ck_assert_int_eq(gnn_operator(host, &graph, (gnn_layer)9, SP_F32, &made), SP_ERROR_ARGUMENT);
    ck_ok(host, gnn_operator(host, &graph, GNN_SAGE, SP_F32, &made));
    test_free(host, &made, &wide, &graph);
}

/* ---- models -------------------------------------------------------------------------------------------- */

HOST_TEST(a_graph_of_one_node_is_no_exception, 1)
{
    const double loop = 1;
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int looped = 0; looped < 2; looped++) {
            example e = draw_example(host, 3, (gnn_layer)layer, 2, SYMMETRIC, 0, 0);
            sp_csr graph = test_from_dense(host, 1, 1, looped ? &loop : &(double){0}, SP_F64);
            for (int i = 0; i < 2; i++) {
                sp_csr_free(host, &e.a[i]);
                ck_ok(host, gnn_operator(host, &graph, e.o.layer, SP_F64, &e.a[i]));
            }
            runner r = make_runner(_i, &e);
            check_forward(&r, &e);
            check_gradients(&r, &e);
            sp_csr_free(host, &graph);
            free_runner(&r);
            free_example(host, &e);
        }
}

HOST_TEST(one_model_takes_blocks_of_any_shape_after_each_other, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
        example first = draw_example(host, 50, (gnn_layer)layer, 2, SYMMETRIC, 0, 0);
        runner r = make_runner(_i, &first);
        for (uint64_t seed = 51; seed < 59; seed++) {
            const int variant = layer == GNN_SAGE_MAX ? 0 : (int)(seed % 3);
            example e = draw_example(host, seed, (gnn_layer)layer, 2, SAMPLED, variant, 0);
            const int64_t rows = e.a[0].cols, inputs = first.o.inputs;
            test_random random = test_seed(seed);
            free(e.x);
            sp_csr_free(host, &e.x_sparse);
            e.o = first.o; /* the model's, without dropout */
            e.x = test_zeros((size_t)(rows * inputs), sizeof *e.x);
            for (int64_t k = 0; k < rows * inputs; k++) e.x[k] = test_unit(&random);
            if (e.sparse) e.x_sparse = test_from_dense(host, rows, inputs, e.x, SP_F64);
            sp_dense_free(r.context, &r.x.dense);
            sp_csr_free(r.context, &r.x.sparse);
            make_features(&r, &e);
            for (int i = 0; i < 2; i++) {
                gnn_block_free(r.block[i]);
                ck_ok(r.context, gnn_block_create(r.engine, &e.a[i], e.o.layer, false, 4, &r.block[i]));
            }
            draw_weights(&r, &e);
            check_forward(&r, &e);
            check_gradients(&r, &e);
            free_example(host, &e);
        }
        free_runner(&r);
        free_example(host, &first);
    }
}

HOST_TEST(dropout_ends_with_training, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int variant = 0; variant < (layer == GNN_SAGE_MAX ? 1 : 3); variant++) {
            example e = draw_example(host, 60, (gnn_layer)layer, 2, DIRECTED, variant, DROPOUT);
            runner r = make_runner(_i, &e);
            for (int pass = 0; pass < 4; pass++) {
                e.training = pass % 2 == 0;
                ck_ok(r.context, r.engine->backend->set_step(r.engine, e.step = pass));
                check_forward(&r, &e);
                check_gradients(&r, &e);
            }
            free_runner(&r);
            free_example(host, &e);
        }
}

HOST_TEST(training_passes_move_running_numbers_and_others_use_them, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
        example e = draw_example(host, 62, (gnn_layer)layer, 2, DIRECTED, 0, 0);
        const sp_dense *logits;
        int moved = 0;
        e.o.norm = GNN_NORM_BATCH;
        runner r = make_runner(_i, &e);
        const int64_t size = gnn_model_size(r.model);
        double *now = test_block((size_t)size * sizeof *now);
        check_forward(&r, &e);
        to_host(&r, now, gnn_model_weights(r.model), size);
        ck_assert(memcmp(now, e.weights, (size_t)size * sizeof *now) == 0);
        ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, true, &logits));
        to_host(&r, now, gnn_model_weights(r.model), size);
        for (int i = 0; i < e.parameters; i++) {
            const gnn_parameter *p = &e.parameter[i];
            for (int64_t k = p->offset; k < p->offset + p->rows * p->cols; k++)
                if (p->kind >= GNN_RUNNING_MEAN) moved += now[k] != e.weights[k];
                else ck_assert(now[k] == e.weights[k]);
        }
        ck_assert_int_gt(moved, 0);
        memcpy(e.weights, now, (size_t)size * sizeof *now);
        check_forward(&r, &e); /* with those that were moved */
        check_gradients(&r, &e);
        free(now);
        free_runner(&r);
        free_example(host, &e);
    }
}

HOST_TEST(what_is_aggregated_is_kept_until_another_block_comes, 1)
{
    for (int layer = GNN_GCN; layer < GNN_GAT; layer++) {
        example e = draw_example(host, 71, (gnn_layer)layer, 2, SYMMETRIC, 0, 0);
        e.o.keep_aggregated = true;
        runner r = make_runner(_i, &e);
        const int64_t count = e.a[0].cols * e.o.inputs;
        for (int pass = 0; pass < 3; pass++) {
            check_forward(&r, &e);
            check_gradients(&r, &e);
            e.seed++;
            draw_weights(&r, &e);
        }
        /* Numbers that change behind a block are not seen where A·X is all that is made of them; they may come, in
         * the same place, with another block. */
        double *moved = test_block((size_t)count * sizeof *moved);
        for (int64_t k = 0; k < count; k++) moved[k] = e.x[k] + 1;
        to_space(&r, r.x.dense.values, moved, count);
        if (layer == GNN_GCN) check_forward(&r, &e);
        memcpy(e.x, moved, (size_t)count * sizeof *moved);
        free(moved);
        gnn_block_free(r.block[0]);
        ck_ok(r.context, gnn_block_create(r.engine, &e.a[0], e.o.layer, false, 4, &r.block[0]));
        check_forward(&r, &e);
        check_gradients(&r, &e);
        free_runner(&r);
        free_example(host, &e);
    }
}

HOST_TEST(maxk_of_all_columns_is_linear, 1)
{
    example e = draw_example(host, 81, GNN_GCN, 3, DIRECTED, 0, 0);
    e.o.maxk = e.o.hidden;
    runner r = make_runner(_i, &e);
    arena_used = 0;
    mat y = features_of(&e);
    for (int layer = 0; layer < 3; layer++) {
        y = gather(&e, &e.a[layer], times(y, parameter(&e, layer, "weight")));
    }
    for (int i = 0; i < e.parameters; i++) {
        const gnn_parameter *p = &e.parameter[i];
        if (strstr(p->name, "bias")) memset(e.weights + p->offset, 0, (size_t)p->cols * sizeof *e.weights);
    }
    to_space(&r, gnn_model_weights(r.model), e.weights, gnn_model_size(r.model));
    const sp_dense *logits;
    double found[1000];
    ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, false, &logits));
    ck_assert_int_le(y.rows * y.cols, 1000);
    rows_to_host(&r, found, logits);
    for (int64_t k = 0; k < y.rows * y.cols; k++) ck_assert_double_eq_tol(found[k], (double)y.v[k], 1e-12);
    free_runner(&r);
    free_example(host, &e);
}

HOST_TEST(single_precision_is_as_good_as_it_can_be, 1)
{
    runner r = open_runner(_i);
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int64_t c = 0; c < test_cases(12); c++) {
            const uint64_t seed = 100 * (uint64_t)layer + (uint64_t)c;
            const bool maxk = c % 3 == 2 && layer != GNN_GAT && layer != GNN_SAGE_MAX;
            const int variant = layer == GNN_SAGE_MAX ? 0 : (int)c % 3;
            example e = draw_example(host, seed, (gnn_layer)layer, 2, (shape)(c / 2 % 3), variant,
                                     SINGLE | (c % 2 ? DROPOUT : 0) | (maxk ? MAXK : 0));
            load_runner(&r, &e);
            check_forward(&r, &e);
            check_gradients(&r, &e);
            unload_runner(&r);
            free_example(host, &e);
        }
    free_runner(&r);
}

enum { MOST_NUMBERS = 100000 };

/* Logits, and gradients of Σ logits² / 2; returns how many logits. */
static int64_t numbers_of(int device, example *e, double *logits_there, double *gradients, int64_t *size)
{
    const sp_dense *logits;
    runner r = make_runner(device, e);
    ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, true, &logits));
    ck_assert(logits->type == SP_DENSE_F32 && logits->rows * logits->cols <= MOST_NUMBERS &&
              gnn_model_size(r.model) <= MOST_NUMBERS);
    rows_to_host(&r, logits_there, logits);
    const sp_dense direction = *logits;
    ck_ok(r.context, gnn_model_backward(r.model, r.block, &r.x, &direction));
    to_host(&r, gradients, gnn_model_gradients(r.model), gnn_model_size(r.model));
    const int64_t count = logits->rows * logits->cols;
    *size = gnn_model_size(r.model);
    free_runner(&r);
    return count;
}

/* The largest difference of two arrays over the largest number. */
static double apart(const double *a, const double *b, int64_t count)
{
    double largest = 0, difference = 0;
    for (int64_t k = 0; k < count; k++) {
        largest = fmax(largest, fabs(b[k]));
        difference = fmax(difference, fabs(a[k] - b[k]));
    }
    return difference / largest;
}

/* Logits and gradients differ from those in f32 by what bf16 rounds off, 2^-9 of each number that lies in memory
 * between operations, and by more where a number changes its sign before ReLU; and differ they do. So do devices, which
 * add up in other orders. */
HOST_TEST(numbers_in_bf16_lose_what_rounding_takes, 1)
{
    static const gnn_layer layers[] = {GNN_GCN, GNN_SAGE, GNN_GIN, GNN_GAT};
    static double logits[3][MOST_NUMBERS], gradients[3][MOST_NUMBERS];
    for (size_t l = 0; l < COUNT(layers); l++)
        for (int variant = 0; variant < 3; variant++)
            for (int between = 0; between < 3; between++) {
                int64_t count = 0, size = 0;
                for (int run = 0; run < 3; run++) { /* in f32, the reference, the device */
                    example e = draw_example(host, 78 + (uint64_t)between, layers[l], 2 + between % 2, DIRECTED,
                                             variant, SINGLE | (between ? DROPOUT : 0));
                    e.o.hidden = e.o.outputs = 36;
                    e.o.norm = between == 2 ? GNN_NORM_LAYER : GNN_NORM_NONE;
                    e.o.residual = between == 2;
                    e.o.jump = between == 2 ? GNN_JUMP_CAT : GNN_JUMP_NONE;
                    e.o.half = run > 0;
                    count = numbers_of(run < 2 ? 0 : _i, &e, logits[run], gradients[run], &size);
                    free_example(host, &e);
                }
                const double lost = apart(logits[1], logits[0], count), back = apart(gradients[1], gradients[0], size);
                const double more = layers[l] == GNN_GAT ? 5 : 1; /* scores' errors grow in exponentials */
                ck_assert_msg(lost > 1e-4 && lost < 0.03 * more && back > 1e-4 && back < 0.1 * more,
                              "layer %d, %d, %d: %g and %g", (int)layers[l], variant, between, lost, back);
                const double other = apart(logits[2], logits[1], count), way = apart(gradients[2], gradients[1], size);
                ck_assert_msg(other < 0.03 * more && way < 0.1 * more, "layer %d, %d, %d: devices differ by %g and %g",
                              (int)layers[l], variant, between, other, way);
            }
}

/* Enough entries for threads to share the columns among them. */
TEST(symmetry_is_found_whatever_the_threads)
{
    enum { N = 1800 };
    for (int threads = 1; threads <= 3; threads++) {
        sp_context *context = test_context(0, threads);
        test_random random = test_seed(41);
        sp_csr a = test_communities(context, &random, 3, N / 3, 0.2, 0.01);
        bool symmetric = false;
        ck_assert_int_gt(a.nnz, 100000);
        ck_ok(context, gnn_symmetric(context, &a, &symmetric));
        ck_assert(symmetric);
        for (int64_t k = 0; k < a.nnz; k += a.nnz / 7) { /* another value */
            float *value = (float *)a.values + k, before = *value;
            *value = before + 1;
            ck_ok(context, gnn_symmetric(context, &a, &symmetric));
            test_expect(!symmetric, "entry %lld", (long long)k);
            *value = before;
        }
        for (int64_t i = 0; i < N; i += 300) { /* another column, of which the mirror image is not there */
            const int64_t last = a.row_offsets[i + 1] - 1;
            const int32_t before = a.col_indices[last];
            if (before == N - 1) continue;
            a.col_indices[last] = N - 1;
            ck_ok(context, gnn_symmetric(context, &a, &symmetric));
            test_expect(!symmetric, "row %lld", (long long)i);
            a.col_indices[last] = before;
        }
        sp_csr_free(context, &a);
        sp_context_destroy(context);
    }
}

/* The back end's product with tiles, by the layout of m16n8k16's left operand: lane l has of rows l / 4 and 8 below
 * it the columns 2 (l mod 4) and the one after it, and 8 to the right of these. On the CPU, where there is none. */
static sp_status multiply_tiles_slowly(gnn_engine *engine, const gnn_tiles *t, const float *r, const float *c,
                                       const sp_dense *x, sp_dense *y)
{
    for (int64_t tile = 0, panel = 0; tile < t->start[t->panels]; tile++) {
        while (tile >= t->start[panel + 1]) panel++;
        for (int word = 0; word < GNN_TILE_WORDS; word++)
            for (int bit = 0; bit < 32; bit++) {
                const int lane = word % 32, product = bit % 16 / 4, below = bit % 2, right = bit % 4 / 2;
                const int64_t i = panel * GNN_TILE_ROWS + word / 32 * 16 + below * 8 + lane / 4;
                const int64_t j = t->column[tile] * (int64_t)GNN_TILE_COLS + product * 16 + right * 8 + lane % 4 * 2 +
                                  bit / 16;
                if (!(t->bits[tile * GNN_TILE_WORDS + word] >> bit & 1)) continue;
                const float factor = (r ? r[i] : 1) * (c ? c[j] : 1);
                for (int64_t k = 0; k < x->cols; k++)
                    ((float *)y->values)[i * y->stride + k] += factor * ((const float *)x->values)[j * x->stride + k];
            }
    }
    return engine ? SP_OK : SP_ERROR_ARGUMENT;
}

/* Logits and gradients of a pass, as doubles; the gradient of the logits is fixed, and of one sign: hidden numbers are
 * much alike within a community, so that signs would cancel, and leave what rounding leaves. */
static void whole_pass(runner *r, double *logits, double *gradients)
{
    const sp_dense *made;
    sp_dense gradient, host;
    ck_ok(r->context, gnn_model_forward(r->model, r->block, &r->x, false, &made));
    ck_ok(r->context, sp_dense_copy(r->context, made, SP_HOST, &host));
    for (int64_t i = 0; i < host.rows; i++)
        for (int64_t j = 0; j < host.cols; j++) {
            float *number = (float *)host.values + i * host.stride + j;
            logits[i * host.cols + j] = (double)*number;
            *number = (float)((i * 7 + j * 3) % 11 + 1);
        }
    ck_ok(r->context, sp_dense_copy(r->context, &host, r->engine->space, &gradient));
    ck_ok(r->context, gnn_model_backward(r->model, r->block, &r->x, &gradient));
    to_host(r, gradients, gnn_model_gradients(r->model), gnn_model_size(r->model));
    test_free_dense(r->context, &host, &gradient);
}

static double largest_of(const double *numbers, const double *less, int64_t count)
{
    double most = 0;
    for (int64_t k = 0; k < count; k++) most = fmax(most, fabs(numbers[k] - (less ? less[k] : 0)));
    return most;
}

static void free_blocks(runner *r)
{
    for (int l = 0; l < 2; l++) {
        gnn_block_free(r->block[l]);
        r->block[l] = NULL;
    }
}

/* Both blocks of the matrix, which lies where the engine computes, with tiles set apart if asked. */
static void make_blocks(runner *r, const sp_csr *matrix, gnn_layer layer, const int64_t *widths, bool apart)
{
    free_blocks(r);
    for (int l = 0; l < 2; l++)
        ck_ok(r->context, gnn_block_create(r->engine, matrix, layer, true, widths[l], &r->block[l]));
    for (int l = 0; l < 2 && apart; l++) {
        ck_ok(r->context, gnn_block_split(r->block[l]));
        if (!r->engine->takes_tiles) continue;
        ck_assert_ptr_nonnull(r->block[l]->tiles);
        ck_assert_int_lt(r->block[l]->tiles->rest.nnz, matrix->nnz / 4);
    }
    ck_assert_ptr_eq(r->block[0]->tiles, r->block[1]->tiles);
}

static void expect_near(const double *a, const double *b, int64_t count, const gnn_model_options *o, const char *what)
{
    const double apart = largest_of(a, b, count), most = largest_of(a, NULL, count);
    test_expect(apart < (o->half ? 0.03 : 1e-5) * most, "layer %d, half %d: %s differ by %g of %g", (int)o->layer,
                o->half, what, apart, most);
}

/* Three communities with a third of all possible edges: most lies in tiles. The last panel and tile are not whole. On
 * CUDA in bf16, too. */
HOST_TEST(dense_tiles_set_apart_change_nothing_but_rounding, 2)
{
    enum { GROUP = 1201, N = 3 * GROUP, IN = 50, HIDDEN = 70, OUT = 33 };
    static double logits[2][N * OUT], gradients[2][1 << 14];
    test_random random = test_seed(31);
    gnn_backend slow = gnn_backend_cpu;
    sp_csr graph = test_communities(host, &random, 3, GROUP, 0.33, 0.01);
    test_drop_values(host, &graph);
    slow.multiply_tiles = multiply_tiles_slowly;
    for (int turn = 0; turn < (1 + _i) * (GNN_GIN + 1); turn++) {
        const gnn_model_options o = {.layer = (gnn_layer)(turn % (GNN_GIN + 1)), .inputs = IN, .hidden = HIDDEN,
                                     .outputs = OUT, .type = SP_DENSE_F32, .half = turn > GNN_GIN};
        if (o.layer == GNN_SAGE_MAX) continue;
        runner r = open_runner(_i);
        sp_dense x;
        sp_csr matrix, there;
        if (_i == 0) {
            r.engine->backend = &slow;
            r.engine->takes_tiles = true;
        }
        ck_ok(host, gnn_operator(host, &graph, o.layer, SP_F32, &matrix));
        ck_ok(host, sp_dense_create(host, N, IN, SP_DENSE_F32, SP_HOST, &x));
        for (int64_t k = 0; k < N * IN; k++) ((float *)x.values)[k] = (float)test_unit(&random) - 0.5f;
        ck_ok(r.context, sp_dense_copy(r.context, &x, r.engine->space, &r.x.dense));
        ck_ok(r.context, gnn_model_create(r.engine, &o, &r.model));
        const int64_t size = gnn_model_size(r.model);
        ck_assert_int_le(size, 1 << 14);
        ck_ok(r.context, sp_csr_copy(r.context, &matrix, r.engine->space, &there));
        for (int apart = 0; apart < 2; apart++) {
            make_blocks(&r, &there, o.layer, (int64_t[]){HIDDEN, OUT}, apart);
            whole_pass(&r, logits[apart], gradients[apart]);
        }
        expect_near(logits[0], logits[1], N * OUT, &o, "logits");
        expect_near(gradients[0], gradients[1], size, &o, "gradients");
        free_blocks(&r); /* before their matrix */
        ck_assert_ptr_null(r.engine->tiles);
        sp_csr_free(r.context, &there);
        sp_csr_free(host, &matrix);
        sp_dense_free(host, &x);
        free_runner(&r);
    }
    sp_csr_free(host, &graph);
}

/* What was recorded once is right for other weights, features and steps: masks are drawn anew. */
HOST_TEST(a_full_batch_pass_can_be_recorded_and_replayed, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int way = 0; way < 5; way++) {
            const bool maxk = way == 1 && layer != GNN_GAT && layer != GNN_SAGE_MAX;
            const int variant = way == 1 && layer != GNN_SAGE_MAX;
            example e = draw_example(host, 95, (gnn_layer)layer, 2, DIRECTED, variant, DROPOUT | (maxk ? MAXK : 0));
            e.o.norm = way < 2 ? GNN_NORM_NONE : (gnn_norm)(way % 3);
            e.o.residual = way > 2;
            e.o.jump = way < 2 ? GNN_JUMP_NONE : (gnn_jump)(way - 1);
            runner r = make_runner(_i, &e);
            const gnn_backend *backend = r.engine->backend;
            const sp_dense *logits;
            sp_dense gradient;
            void *graph;
            double *direction = draw_direction(&r, &e, &gradient);
            for (int pass = 0; pass < 2; pass++) {
                if (pass) ck_ok(r.context, backend->capture_begin(r.engine));
                ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, true, &logits));
                ck_ok(r.context, gnn_model_backward(r.model, r.block, &r.x, &gradient));
            }
            ck_ok(r.context, backend->capture_end(r.engine, &graph));
            for (int replay = 0; replay < 3; replay++) {
                e.seed++;
                draw_weights(&r, &e);
                ck_ok(r.context, backend->set_step(r.engine, ++e.step));
                ck_ok(r.context, backend->replay(r.engine, graph));
                compare_logits(&r, &e, logits);
                compare_gradients(&r, &e, direction);
            }
            backend->forget(r.engine, graph);
            sp_dense_free(r.context, &gradient);
            free(direction);
            free_runner(&r);
            free_example(host, &e);
        }
}

HOST_TEST(weights_start_within_their_bounds_and_biases_too, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
        runner r = open_runner(_i);
        const gnn_model_options o = {.layer = (gnn_layer)layer, .inputs = 40, .hidden = 30, .outputs = 7,
                                     .type = SP_DENSE_F64};
        int count;
        int64_t next = 0;
        ck_ok(r.context, gnn_model_create(r.engine, &o, &r.model));
        const gnn_parameter *p = gnn_model_parameters(r.model, &count);
        double *numbers = test_block((size_t)gnn_model_size(r.model) * sizeof *numbers);
        to_host(&r, numbers, gnn_model_weights(r.model), gnn_model_size(r.model));
        for (int i = 0; i < count; i++) {
            const bool bias = strstr(p[i].name, "bias") != NULL;
            const int64_t inputs = p[bias ? i - 1 : i].rows;
            const double bound = layer == GNN_GIN ? 1 / sqrt((double)inputs)
                                 : bias           ? 0
                                                  : sqrt(6.0 / (double)(p[i].rows + p[i].cols));
            const double least = p[i].cols == 7 && bias ? 0.4 : 0.7; /* few numbers may all be small */
            double most = 0, sum = 0;
            ck_assert_int_eq(p[i].offset, next);
            next += p[i].rows * p[i].cols;
            for (int64_t k = p[i].offset; k < next; k++) {
                most = fmax(most, fabs(numbers[k]));
                sum += numbers[k];
            }
            ck_assert_msg(most <= bound && most >= least * bound, "%s: %g", p[i].name, most);
            ck_assert_msg(fabs(sum) <= 4 * bound * sqrt((double)(p[i].rows * p[i].cols)), "%s is off centre",
                          p[i].name);
        }
        ck_assert_int_eq(next, gnn_model_size(r.model));
        free(numbers);
        free_runner(&r);
    }
}

static const test_entry tests[] = {
    CASE("formulas", 300),
    ON_DEVICES(single_precision_is_as_good_as_it_can_be),
    CASE("models", 300),
    ONCE(operators_are_those_of_their_definitions),
    ONCE(the_gcn_operator_of_a_symmetric_graph_is_symmetric_to_the_last_bit),
    ONCE(operators_of_impossible_graphs_are_refused),
    ON_DEVICES(a_graph_of_one_node_is_no_exception),
    ON_DEVICES(one_model_takes_blocks_of_any_shape_after_each_other),
    ON_DEVICES(dropout_ends_with_training),
    ON_DEVICES(training_passes_move_running_numbers_and_others_use_them),
    ON_DEVICES(what_is_aggregated_is_kept_until_another_block_comes),
    ON_DEVICES(maxk_of_all_columns_is_linear),
    ON_DEVICES(numbers_in_bf16_lose_what_rounding_takes),
    ON_DEVICES(dense_tiles_set_apart_change_nothing_but_rounding),
    ONCE(symmetry_is_found_whatever_the_threads),
    ON_CUDA(a_full_batch_pass_can_be_recorded_and_replayed),
    ON_DEVICES(weights_start_within_their_bounds_and_biases_too),
    {0},
};

int main(void) { return test_run("gnn_model", tests, layers_tests, memory_tests, optimizers_tests, products_tests); }
