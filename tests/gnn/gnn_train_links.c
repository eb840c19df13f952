/* test_gnn_train: links, drawn, learnt, judged and predicted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../gnn/trainer.h"
#include "gnn_train_shared.h"

/* ---- drawing ------------------------------------------------------------------------------------------- */

static bool linked(const sp_csr *graph, int32_t a, int32_t b)
{
    return gnn_has_entry(graph, a, b) || gnn_has_entry(graph, b, a);
}

static int64_t count_links(const sp_csr *graph)
{
    int64_t count = 0;
    for (int32_t a = 0; a < graph->rows; a++)
        for (int32_t b = a + 1; b < graph->rows; b++) count += linked(graph, a, b);
    return count;
}

/* The graph of make_data, but some edges have one direction only and other weights, and some nodes have a loop. */
static gnn_data make_directed(void)
{
    gnn_data data = make_data(host, false, false);
    test_random random = test_seed(SEED);
    double *numbers = test_zeros((size_t)NODES * NODES, sizeof *numbers);
    for (int64_t i = 0; i < NODES; i++)
        for (int64_t e = data.graph.row_offsets[i]; e < data.graph.row_offsets[i + 1]; e++)
            if (test_unit(&random) < 0.7) numbers[i * NODES + data.graph.col_indices[e]] = 1 + test_unit(&random);
    for (int64_t i = 0; i < NODES; i += 7) numbers[i * NODES + i] = 2;
    sp_csr_free(host, &data.graph);
    data.graph = test_from_dense(host, NODES, NODES, numbers, SP_F32);
    free(numbers);
    return data;
}

TEST(drawn_links_leave_the_graph_in_both_directions)
{
    gnn_data whole = make_directed(), data = make_directed();
    const int64_t links = count_links(&whole.graph);
    const gnn_links *drawn = &data.links;
    ck_ok(host, gnn_data_draw_links(host, &data, 0.05, 0.1, 3));
    ck_assert_int_eq(drawn->linked[GNN_VALIDATION], (int64_t)floor(0.05 * (double)links + 0.5));
    ck_assert_int_eq(drawn->linked[GNN_TEST], (int64_t)floor(0.1 * (double)links + 0.5));
    ck_assert_int_eq(count_links(&data.graph), drawn->linked[GNN_TRAIN]);
    ck_assert_int_eq(drawn->linked[GNN_TRAIN] + drawn->linked[GNN_VALIDATION] + drawn->linked[GNN_TEST], links);
    for (int s = GNN_VALIDATION; s <= GNN_TEST; s++) {
        ck_assert_int_eq(drawn->linked[s], drawn->unlinked[s]);
        for (int64_t k = 0; k < 2 * drawn->linked[s]; k++) {
            const int32_t a = drawn->pair[s][2 * k], b = drawn->pair[s][2 * k + 1];
            ck_assert(a < b && !linked(&data.graph, a, b));
            ck_assert_int_eq(linked(&whole.graph, a, b), k < drawn->linked[s]);
            for (int64_t other = 0; other < k; other++)
                ck_assert(drawn->pair[s][2 * other] != a || drawn->pair[s][2 * other + 1] != b);
        }
    }
    for (int64_t i = 0; i < NODES; i++) /* what is left has its weights */
        for (int64_t e = data.graph.row_offsets[i]; e < data.graph.row_offsets[i + 1]; e++) {
            const sp_csr *w = &whole.graph;
            const int64_t at = lower_bound_i32(w->col_indices, w->row_offsets[i], w->row_offsets[i + 1],
                                               data.graph.col_indices[e]);
            ck_assert_int_eq(w->col_indices[at], data.graph.col_indices[e]);
            ck_assert(entry_value(w, at) == entry_value(&data.graph, e));
        }
    for (int64_t i = 0; i < NODES; i += 7) ck_assert(gnn_has_entry(&data.graph, i, (int32_t)i));
    ck_ok(host, sp_csr_check(host, &data.graph));
    gnn_data_free(host, &data);
    gnn_data_free(host, &whole);
}

TEST(links_are_drawn_by_their_seed)
{
    gnn_data data[3];
    for (int i = 0; i < 3; i++) {
        data[i] = make_data(host, true, false);
        ck_ok(host, gnn_data_draw_links(host, &data[i], 0.1, 0.2, i == 2 ? 8 : 7));
    }
    const size_t size = 4 * (size_t)data[0].links.linked[GNN_TEST] * sizeof(int32_t);
    ck_assert(memcmp(data[0].links.pair[GNN_TEST], data[1].links.pair[GNN_TEST], size) == 0);
    ck_assert(memcmp(data[0].links.pair[GNN_TEST], data[2].links.pair[GNN_TEST], size) != 0);
    test_same(&data[0].graph, &data[1].graph, SEED);
    for (int i = 0; i < 3; i++) gnn_data_free(host, &data[i]);
}

/* A graph with these entries and a feature a node. */
static gnn_data small_data(int64_t nodes, const double *entries)
{
    gnn_data data = {.graph = test_from_dense(host, nodes, nodes, entries, SP_F32)};
    ck_ok(host, sp_dense_create(host, nodes, 1, SP_DENSE_F32, SP_HOST, &data.features.dense));
    for (int64_t i = 0; i < nodes; i++) ((float *)data.features.dense.values)[i] = 1;
    return data;
}

TEST(links_that_cannot_be_drawn_are_refused)
{
    static const double none[9] = {0}, loops[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, full[9] = {0, 1, 1, 1, 0, 1, 1, 1, 0};
    gnn_data data = make_data(host, false, false), empty = small_data(3, none), looped = small_data(3, loops);
    gnn_data complete = small_data(3, full), nothing = small_data(0, none);
    gnn_data *const without[] = {&empty, &looped, &nothing};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(gnn_data_draw_links(host, without[i], 0, 0, 1), SP_ERROR_ARGUMENT);
        ck_assert_str_eq(sp_last_error(host), "the graph has no link between two nodes to learn from");
    }
    ck_assert_int_eq(gnn_data_draw_links(host, &complete, 0.4, 0, 1), SP_ERROR_ARGUMENT);
    ck_assert_msg(strstr(sp_last_error(host), "nearly all pairs"), "%s", sp_last_error(host));
    ck_assert_int_eq(complete.graph.nnz, 6);
    ck_assert_int_eq(gnn_data_draw_links(host, &complete, 0.5, 0.49, 1), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(host), "validation and test take all 3 links of the graph, and leave none to train "
                                          "with");
    ck_ok(host, gnn_data_draw_links(host, &complete, 0, 0, 1)); /* all train */
    ck_assert_int_eq(gnn_data_draw_links(host, &data, 0.5, 0.5, 1), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_data_draw_links(host, &data, -0.1, 0.5, 1), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_data_draw_links(host, &data, NAN, 0.5, 1), SP_ERROR_ARGUMENT);
    ck_ok(host, gnn_data_draw_links(host, &data, 0.1, 0.1, 1));
    ck_assert_int_eq(gnn_data_draw_links(host, &data, 0.1, 0.1, 1), SP_ERROR_ARGUMENT);
    gnn_data_free(host, &data);
    gnn_data_free(host, &complete);
    for (int i = 0; i < 3; i++) gnn_data_free(host, without[i]);
}

/* ---- figures ------------------------------------------------------------------------------------------- */

static double dense_auc(const double *links, int64_t m, const double *others, int64_t n)
{
    double above = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) above += links[i] > others[j] ? 1 : links[i] == others[j] ? 0.5 : 0;
    return above / (double)(m * n);
}

/* For each link the share of links among all pairs with at least its score. */
static double dense_precision(const double *links, int64_t m, const double *others, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < m; i++) {
        int64_t right = 0, wrong = 0;
        for (int64_t k = 0; k < m; k++) right += links[k] >= links[i];
        for (int64_t j = 0; j < n; j++) wrong += others[j] >= links[i];
        sum += (double)right / (double)(right + wrong);
    }
    return sum / (double)m;
}

/* The share of links with fewer than k other pairs at or above them. */
static double dense_hits(const double *links, int64_t m, const double *others, int64_t n, int64_t k)
{
    int64_t hits = 0;
    for (int64_t i = 0; i < m; i++) {
        int64_t above = 0;
        for (int64_t j = 0; j < n; j++) above += others[j] >= links[i];
        hits += above < k;
    }
    return (double)hits / (double)m;
}

TEST(figures_of_links_are_those_of_loops_over_all_pairs)
{
    enum { MOST = 150 };
    test_random random = test_seed(SEED);
    for (int round = 0; round < 60; round++) {
        const int64_t m = 1 + test_below(&random, MOST), n = 1 + test_below(&random, MOST);
        const int64_t kinds = 1 + test_below(&random, 300);
        double links[MOST], others[MOST];
        gnn_link_figures f;
        for (int64_t i = 0; i < m; i++)
            links[i] = (double)test_below(&random, kinds) + 0.3 * (double)(round % 3) * (double)kinds;
        for (int64_t j = 0; j < n; j++) others[j] = (double)test_below(&random, kinds);
        const double auc = dense_auc(links, m, others, n), precision = dense_precision(links, m, others, n);
        double hits[GNN_HITS];
        for (int k = 0; k < GNN_HITS; k++) hits[k] = dense_hits(links, m, others, n, gnn_hits_at[k]);
        ck_ok(host, gnn_judge_links(host, links, m, others, n, &f));
        test_expect(fabs(f.auc - auc) < 1e-12 && fabs(f.average_precision - precision) < 1e-12,
                    "seed %d, round %d: AUC %.17g and %.17g, precision %.17g and %.17g", SEED, round, f.auc, auc,
                    f.average_precision, precision);
        for (int k = 0; k < GNN_HITS; k++)
            test_expect(n < gnn_hits_at[k] ? isnan(f.hits[k]) : f.hits[k] == hits[k],
                        "seed %d, round %d: hits %g, not %g", SEED, round, f.hits[k], hits[k]);
    }
}

TEST(figures_of_nothing_are_no_numbers)
{
    double one[] = {1}, wrong[] = {NAN};
    gnn_link_figures f;
    ck_ok(host, gnn_judge_links(host, one, 1, one, 0, &f));
    ck_assert(isnan(f.auc) && isnan(f.average_precision) && isnan(f.hits[0]));
    ck_ok(host, gnn_judge_links(host, one, 0, one, 1, &f));
    ck_assert(isnan(f.auc) && f.unlinked == 1);
    ck_assert_int_eq(gnn_judge_links(host, one, 1, wrong, 1, &f), SP_ERROR_NOT_FINITE);
}

/* ---- training ------------------------------------------------------------------------------------------ */

enum { OUTPUTS = 12 };

static gnn_data link_data(bool sparse)
{
    gnn_data data = make_data(host, sparse, false);
    ck_ok(host, gnn_data_draw_links(host, &data, 0.1, 0.2, 4));
    ck_ok(host, gnn_data_check(host, &data));
    return data;
}

static gnn_trainer_options link_options(gnn_layer layer)
{
    gnn_trainer_options options = usual(layer);
    options.links = true;
    options.model.outputs = OUTPUTS;
    options.optimizer.decay = 0;
    return options;
}

/* The mean loss over the entries of `pairs`, by a loop. */
static double dense_loss(const sp_dense *z, const sp_csr *pairs)
{
    double sum = 0;
    for (int64_t i = 0; i < pairs->rows; i++)
        for (int64_t e = pairs->row_offsets[i]; e < pairs->row_offsets[i + 1]; e++) {
            double score = 0;
            for (int64_t k = 0; k < z->cols; k++)
                score += ((double *)z->values)[i * z->stride + k] *
                         ((double *)z->values)[pairs->col_indices[e] * z->stride + k];
            sum += log(1 + exp(-entry_value(pairs, e) * score));
        }
    return sum / (double)pairs->nnz;
}

TEST(gradients_are_those_of_the_loss_of_links)
{
    gnn_data data = link_data(false);
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
        gnn_trainer_options options = link_options((gnn_layer)layer);
        options.model.type = SP_DENSE_F64;
        options.model.dropout = options.model.input_dropout = 0;
        options.negatives = 2;
        subject s = make_subject(0, &data, &options, 3);
        gnn_trainer *t = s.trainer;
        double *weights = gnn_model_weights(t->model);
        const double *gradients = gnn_model_gradients(t->model);
        const int64_t size = gnn_model_size(t->model);
        double *first = test_zeros((size_t)size, sizeof *first);
        sp_csr pairs = {0};
        gnn_epoch epoch;
        bool done;
        memcpy(first, weights, (size_t)size * sizeof *first);
        ck_ok(s.context, gnn_trainer_epoch(t, &epoch, &done));
        ck_ok(s.context, gnn_trainer_draw_pairs(t, &pairs)); /* those of this epoch again */
        memcpy(weights, first, (size_t)size * sizeof *first);
        for (int64_t k = 0; k < size; k += 1 + size / 40) {
            const sp_dense *z;
            double loss[2];
            for (int side = 0; side < 2; side++) {
                weights[k] = first[k] + (side ? 1e-5 : -1e-5);
                ck_ok(s.context, gnn_model_forward(t->model, t->block, &t->x, false, &z));
                loss[side] = dense_loss(z, &pairs);
            }
            weights[k] = first[k];
            const double expected = (loss[1] - loss[0]) / 2e-5;
            test_expect(fabs(gradients[k] - expected) < 1e-7 + 1e-5 * fabs(expected),
                        "layer %d, parameter %lld: %g, not %g", layer, (long long)k, gradients[k], expected);
            if (k == 0) test_expect(fabs(epoch.loss - (loss[0] + loss[1]) / 2) < 1e-6, "loss %g", epoch.loss);
        }
        sp_csr_free(s.context, &pairs);
        free(first);
        free_subject(&s);
    }
    gnn_data_free(host, &data);
}

TEST(pairs_of_an_epoch_are_the_training_links_and_others)
{
    gnn_data data = link_data(true);
    for (int64_t negatives = 1; negatives <= 3; negatives++) {
        gnn_trainer_options options = link_options(GNN_GCN);
        options.negatives = negatives;
        subject s = make_subject(0, &data, &options, 3);
        int64_t links = 0, others = 0;
        sp_csr pairs;
        ck_ok(s.context, gnn_trainer_draw_pairs(s.trainer, &pairs));
        for (int32_t i = 0; i < NODES; i++)
            for (int64_t e = pairs.row_offsets[i]; e < pairs.row_offsets[i + 1]; e++) {
                const bool is = linked(&data.graph, i, pairs.col_indices[e]);
                ck_assert(entry_value(&pairs, e) == (is ? 1 : -1) && pairs.col_indices[e] != i);
                ck_assert(gnn_has_entry(&pairs, pairs.col_indices[e], i));
                *(is ? &links : &others) += 1;
            }
        ck_assert_int_eq(links, 2 * data.links.linked[GNN_TRAIN]);
        ck_assert(others <= negatives * links && 10 * others > 9 * negatives * links); /* some are drawn twice */
        sp_csr_free(s.context, &pairs);
        free_subject(&s);
    }
    gnn_data_free(host, &data);
}

TEST(every_layer_learns_links)
{
    enum { EPOCHS = 60 };
    for (int sparse = 0; sparse < 2; sparse++) {
        gnn_data data = link_data(sparse);
        for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
            gnn_trainer_options options = link_options((gnn_layer)layer);
            gnn_epoch epochs[EPOCHS];
            gnn_link_figures f;
            const double least = layer == GNN_SAGE_MAX ? 0.6 : 0.7; /* maxima tell less of these features */
            subject s = make_subject(_i, &data, &options, 3);
            train(&s, EPOCHS, epochs);
            ck_ok(s.context, gnn_trainer_finish(s.trainer));
            ck_ok(s.context, gnn_trainer_judge_links(s.trainer, GNN_TEST, &f));
            const int64_t best = gnn_trainer_best(s.trainer);
            test_expect(f.auc > least && f.average_precision > least - 0.05, "layer %d, %s: AUC %g, precision %g",
                        layer, sp_context_device(s.context), f.auc, f.average_precision);
            ck_assert(epochs[best - 1].accuracy[GNN_TEST] == f.auc && isnan(epochs[0].accuracy[GNN_TRAIN]));
            for (int e = 0; e < EPOCHS; e++)
                ck_assert(epochs[e].accuracy[GNN_VALIDATION] <= epochs[best - 1].accuracy[GNN_VALIDATION]);
            free_subject(&s);
        }
        gnn_data_free(host, &data);
    }
}

TEST(a_seed_gives_the_same_links_on_any_number_of_threads)
{
    enum { EPOCHS = 12 };
    gnn_data data = link_data(false);
    const gnn_trainer_options options = link_options(GNN_SAGE);
    gnn_epoch epochs[2][EPOCHS];
    for (int i = 0; i < 2; i++) {
        subject s = {.context = test_context(_i, 1 + 3 * i)};
        ck_ok(s.context, gnn_engine_create(s.context, 9, &s.engine));
        ck_ok(s.context, gnn_trainer_create(s.engine, &data, &options, &s.trainer));
        train(&s, EPOCHS, epochs[i]);
        free_subject(&s);
    }
    same_epochs(epochs[0], epochs[1], EPOCHS);
    gnn_data_free(host, &data);
}

TEST(devices_train_links_alike)
{
    enum { EPOCHS = 8 };
    gnn_data data = link_data(true);
    for (int type = 0; type < 2; type++) {
        gnn_trainer_options options = link_options(GNN_GCN);
        gnn_epoch cpu[EPOCHS], other[EPOCHS];
        options.model.type = type ? SP_DENSE_F64 : SP_DENSE_F32;
        subject s = make_subject(0, &data, &options, 3), there = make_subject(_i, &data, &options, 3);
        train(&s, EPOCHS, cpu);
        train(&there, EPOCHS, other);
        for (int e = 0; e < EPOCHS; e++)
            test_expect(fabs(cpu[e].loss - other[e].loss) < (type ? 1e-9 : 1e-4), "epoch %d: %.9g and %.9g", e,
                        cpu[e].loss, other[e].loss);
        free_subject(&s);
        free_subject(&there);
    }
    gnn_data_free(host, &data);
}

/* ---- prediction ---------------------------------------------------------------------------------------- */

static void expect_best(const subject *s, const gnn_data *data, int64_t most)
{
    int32_t *pairs = test_zeros((size_t)(NODES * NODES), sizeof *pairs);
    int32_t *best = test_zeros(2 * (size_t)most, sizeof *best);
    float *scores = test_zeros((size_t)(NODES * NODES), sizeof *scores);
    float *found = test_zeros((size_t)most, sizeof *found);
    int64_t count = 0, all = 0;
    for (int32_t a = 0; a < NODES; a++)
        for (int32_t b = a + 1; b < NODES; b++) {
            const int64_t place_a = data->place ? data->place[a] : a, place_b = data->place ? data->place[b] : b;
            if (linked(&data->graph, (int32_t)place_a, (int32_t)place_b)) continue;
            pairs[2 * all] = a;
            pairs[2 * all++ + 1] = b;
        }
    ck_ok(s->context, gnn_trainer_score_links(s->trainer, pairs, all, scores));
    ck_ok(s->context, gnn_trainer_best_links(s->trainer, most, best, found, &count));
    ck_assert_int_eq(count, most < all ? most : all);
    for (int64_t k = 0; k < count; k++) { /* its score is that of the loop, and not more than k are better */
        int64_t better = 0, at = -1;
        for (int64_t i = 0; i < all; i++) {
            better += scores[i] > found[k] + 1e-6f;
            if (pairs[2 * i] == best[2 * k] && pairs[2 * i + 1] == best[2 * k + 1]) at = i;
        }
        test_expect(at >= 0 && scores[at] == found[k] && better <= k, "pair %lld: %d %d with %g", (long long)k,
                    best[2 * k], best[2 * k + 1], (double)found[k]);
        ck_assert(k == 0 || found[k] <= found[k - 1]);
    }
    free(pairs);
    free(best);
    free(scores);
    free(found);
}

TEST(the_best_new_links_are_those_of_a_loop_over_all_pairs)
{
    for (int order = GNN_ORDER_KEEP; order <= GNN_ORDER_COMMUNITY; order++) {
        gnn_data data = make_mixed(host, false, false);
        const gnn_trainer_options options = link_options(GNN_GCN);
        gnn_epoch epochs[5];
        ck_ok(host, gnn_data_draw_links(host, &data, 0.1, 0.2, 4));
        ck_ok(host, gnn_data_renumber(host, &data, (gnn_order)order));
        subject s = make_subject(_i, &data, &options, 3);
        train(&s, 5, epochs);
        expect_best(&s, &data, 1);
        expect_best(&s, &data, 37);
        expect_best(&s, &data, NODES * NODES);
        free_subject(&s);
        gnn_data_free(host, &data);
    }
}

TEST(saved_models_of_links_predict_the_same)
{
    static const int32_t pairs[] = {0, 1, 5, 5, 3, 200, 200, 3, 0, 1};
    gnn_data data = link_data(true), plain = make_data(host, true, false);
    const gnn_trainer_options options = link_options(GNN_SAGE), classes = usual(GNN_SAGE);
    float before[5], after[5], embeddings[NODES * OUTPUTS];
    static const int32_t none[] = {0, NODES};
    gnn_epoch epochs[4];
    gnn_saved saved;
    void *bytes;
    int64_t size, count;
    int32_t got[NODES], best[2];
    subject a = make_subject(_i, &data, &options, 3), c = make_subject(_i, &plain, &classes, 3);
    train(&a, 4, epochs);
    ck_ok(a.context, gnn_trainer_finish(a.trainer));
    ck_ok(a.context, gnn_trainer_score_links(a.trainer, pairs, 5, before));
    ck_assert(before[0] == before[4] && before[2] == before[3]);
    ck_ok(a.context, gnn_trainer_save(a.trainer, true, &bytes, &size));
    ck_ok(a.context, gnn_saved_read(a.context, bytes, size, &saved));
    ck_assert(saved.options.links && saved.options.model.outputs == OUTPUTS && !saved.class_names);
    gnn_data found = data;
    memset(&found.links, 0, sizeof found.links);
    found.split = NULL;
    subject b = make_subject(_i, &found, &saved.options, 1);
    ck_ok(b.context, gnn_trainer_restore(b.trainer, bytes, size));
    ck_ok(b.context, gnn_trainer_score_links(b.trainer, pairs, 5, after));
    ck_assert(memcmp(before, after, sizeof before) == 0);
    ck_assert_int_eq(gnn_trainer_width(b.trainer), OUTPUTS);
    ck_ok(b.context, gnn_trainer_embed(b.trainer, embeddings));
    double score = 0;
    for (int k = 0; k < OUTPUTS; k++) score += (double)embeddings[k] * (double)embeddings[OUTPUTS + k];
    ck_assert(fabs(1 / (1 + exp(-score)) - (double)after[0]) < 1e-5);
    ck_assert_int_eq(gnn_trainer_score_links(b.trainer, none, 1, after), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_trainer_best_links(b.trainer, 0, best, after, &count), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_trainer_predict(b.trainer, got, NULL, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_trainer_epoch(b.trainer, epochs, &saved.several), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_trainer_restore(c.trainer, bytes, size), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(c.context), "the saved model predicts links, not classes");
    ck_assert_int_eq(gnn_trainer_score_links(c.trainer, pairs, 1, after), SP_ERROR_ARGUMENT);
    sp_free(a.context, bytes);
    free_subject(&a);
    free_subject(&b);
    free_subject(&c);
    gnn_data_free(host, &data);
    gnn_data_free(host, &plain);
}

/* ---- failures ------------------------------------------------------------------------------------------ */

static sp_status whole_life(sp_context *context)
{
    const gnn_trainer_options options = link_options(GNN_GCN);
    gnn_data data = make_data(host, true, false), own = data;
    gnn_engine *engine = NULL;
    gnn_trainer *trainer = NULL;
    gnn_epoch epoch;
    gnn_link_figures figures;
    int32_t pairs[6];
    float scores[3];
    int64_t count;
    bool done;
    own.graph = (sp_csr){0};
    sp_status status = sp_csr_copy(context, &data.graph, SP_HOST, &own.graph);
    if (status == SP_OK) status = gnn_data_draw_links(context, &own, 0.1, 0.1, 1);
    if (status == SP_OK) status = gnn_engine_create(context, 1, &engine);
    if (status == SP_OK) status = gnn_trainer_create(engine, &own, &options, &trainer);
    if (status == SP_OK) status = gnn_trainer_epoch(trainer, &epoch, &done);
    if (status == SP_OK) status = gnn_trainer_judge_links(trainer, GNN_TEST, &figures);
    if (status == SP_OK) status = gnn_trainer_best_links(trainer, 3, pairs, scores, &count);
    gnn_trainer_free(trainer);
    gnn_engine_free(engine);
    for (int s = 0; s < GNN_SPLITS; s++) sp_free(context, own.links.pair[s]);
    sp_csr_free(context, &own.graph);
    gnn_data_free(host, &data);
    return status;
}

TEST(failing_allocations_of_links_leak_nothing)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    sp_status status = SP_ERROR_HOST_MEMORY;
    for (int64_t n = 0; status != SP_OK; n++) {
        const int64_t before = heap.live_blocks;
        test_expect(n < 10000, "no end");
        heap.allocations = 0;
        heap.fail_at = n;
        status = whole_life(context);
        test_expect(status == SP_OK || status == SP_ERROR_HOST_MEMORY, "allocation %lld: %s", (long long)n,
                    sp_last_error(context));
        test_expect(heap.live_blocks == before, "allocation %lld: %lld blocks leaked", (long long)n,
                    (long long)(heap.live_blocks - before));
    }
    sp_context_destroy(context);
}

const test_entry links_tests[] = {
    CASE_WITH("links", 300, open_host, close_host),
    ONCE(drawn_links_leave_the_graph_in_both_directions),
    ONCE(links_are_drawn_by_their_seed),
    ONCE(links_that_cannot_be_drawn_are_refused),
    ONCE(figures_of_links_are_those_of_loops_over_all_pairs),
    ONCE(figures_of_nothing_are_no_numbers),
    ONCE(gradients_are_those_of_the_loss_of_links),
    ONCE(pairs_of_an_epoch_are_the_training_links_and_others),
    ON_DEVICES(every_layer_learns_links),
    ON_DEVICES(a_seed_gives_the_same_links_on_any_number_of_threads),
    ON_CUDA(devices_train_links_alike),
    ON_DEVICES(the_best_new_links_are_those_of_a_loop_over_all_pairs),
    ON_DEVICES(saved_models_of_links_predict_the_same),
    ONCE(failing_allocations_of_links_leak_nothing),
    {0},
};
