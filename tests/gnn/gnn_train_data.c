/* test_gnn_train: checks, splits and renumbering of data. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gnn_train_shared.h"

static void refuses_data(const gnn_data *data, sp_status status, const char *sentence)
{
    ck_assert_int_eq(gnn_data_check(host, data), status);
    ck_assert_msg(strstr(sp_last_error(host), sentence) != NULL, "\"%s\", not \"%s\"", sp_last_error(host), sentence);
}

TEST(the_first_node_that_is_wrong_is_named)
{
    for (int sparse = 0; sparse < 2; sparse++) {
        gnn_data data = make_data(host, sparse, false);
        float *x = sparse ? data.features.sparse.values : data.features.dense.values;
        const int64_t at = sparse ? data.features.sparse.row_offsets[17] : 17 * FEATURES + 3;
        const int64_t last = at + 5 * FEATURES;
        const float kept = x[at], then = x[last];
        x[at] = NAN;
        x[last] = INFINITY;
        refuses_data(&data, SP_ERROR_NOT_FINITE, sparse ? "of node 17 (from 0)" : "feature 3 (from 0) of node 17 (");
        x[at] = kept;
        x[last] = then;
        data.labels[40] = CLASSES;
        data.labels[50] = -2;
        refuses_data(&data, SP_ERROR_ARGUMENT, "node 40 (from 0) has label 4, but labels are below 4");
        data.labels[40] = true_class(40);
        refuses_data(&data, SP_ERROR_ARGUMENT, "node 50 (from 0) has label -2");
        data.labels[50] = -1;
        data.split[50] = GNN_TEST;
        refuses_data(&data, SP_ERROR_ARGUMENT, "node 50 (from 0) is a test node but has no label");
        data.split[50] = GNN_SPLITS;
        refuses_data(&data, SP_ERROR_ARGUMENT, "node 50 (from 0) is in split 4");
        data.split[50] = GNN_UNUSED;
        ck_ok(host, gnn_data_check(host, &data));
        for (int64_t i = 0; i < NODES; i++) data.split[i] = data.split[i] == GNN_TRAIN ? GNN_UNUSED : data.split[i];
        refuses_data(&data, SP_ERROR_ARGUMENT, "no training nodes");
        gnn_data_free(host, &data);
    }
}

TEST(shapes_that_do_not_fit_are_refused)
{
    gnn_data data = make_data(host, false, true);
    data.features.dense.rows--;
    refuses_data(&data, SP_ERROR_ARGUMENT, "239 rows of features, but the graph has 240 nodes");
    data.features.dense.rows++;
    data.graph.cols++;
    refuses_data(&data, SP_ERROR_ARGUMENT, "240 rows but 241 columns");
    data.graph.cols--;
    data.targets[13 * CLASSES + 2] = 7;
    refuses_data(&data, SP_ERROR_ARGUMENT, "target 2 (from 0) of node 13 (from 0) is 7");
    data.targets[13 * CLASSES + 2] = 0;
    data.classes = 0;
    refuses_data(&data, SP_ERROR_ARGUMENT, "0 classes");
    data.classes = CLASSES;
    data.graph.col_indices[data.graph.nnz - 1] = NODES;
    ck_assert_int_eq(gnn_data_check(host, &data), SP_ERROR_MATRIX);
    gnn_data_free(host, &data);
}

/* Of magnitudes; entries of a pattern are ones. */
static double row_sum(const gnn_features *x, int64_t row)
{
    const int64_t begin = x->dense.values ? row * x->dense.stride : x->sparse.row_offsets[row];
    const int64_t end = x->dense.values ? begin + x->dense.cols : x->sparse.row_offsets[row + 1];
    const float *values = x->dense.values ? x->dense.values : x->sparse.values;
    double sum = 0;
    for (int64_t e = begin; e < end; e++) sum += values ? fabs((double)values[e]) : 1;
    return sum;
}

TEST(normalised_rows_sum_to_one)
{
    for (int kind = 0; kind < 3; kind++) { /* dense, sparse, a pattern */
        gnn_data data = make_data(host, kind > 0, false);
        sp_csr *sparse = &data.features.sparse;
        if (kind == 0) memset(data.features.dense.values, 0, 2 * FEATURES * sizeof(float));
        if (kind == 0) ((float *)data.features.dense.values)[FEATURES] = -3;
        if (kind == 2) sp_free(host, sparse->values);
        if (kind == 2) sparse->values = NULL;
        double before[NODES];
        for (int64_t i = 0; i < NODES; i++) before[i] = row_sum(&data.features, i);
        ck_ok(host, gnn_data_normalise(host, &data));
        for (int64_t i = 0; i < NODES; i++) {
            const double sum = row_sum(&data.features, i);
            test_expect(before[i] == 0 ? sum == 0 : fabs(sum - 1) < 1e-6, "row %lld sums to %g", (long long)i, sum);
        }
        gnn_data_free(host, &data);
    }
}

static void count_split(const gnn_data *data, int32_t class, int64_t count[GNN_SPLITS])
{
    memset(count, 0, GNN_SPLITS * sizeof *count);
    for (int64_t i = 0; i < NODES; i++) count[data->split[i]] += data->labels[i] == class;
}

TEST(splits_have_so_many_nodes_of_each_class)
{
    gnn_data data = make_data(host, false, false);
    int64_t count[GNN_SPLITS];
    uint8_t before[NODES];
    for (int64_t i = 0; i < NODES; i++) { /* class 1 has 9 nodes, the others of it no label */
        if (true_class(i) == 1 && i >= SIZE + 9) data.labels[i] = -1;
    }
    ck_ok(host, gnn_data_draw_split(host, &data, 20, 30, 3));
    count_split(&data, 0, count);
    ck_assert(count[GNN_TRAIN] == 20 && count[GNN_VALIDATION] == 30 && count[GNN_TEST] == SIZE - 50);
    count_split(&data, 1, count);
    ck_assert(count[GNN_TRAIN] == 5 && count[GNN_VALIDATION] == 4 && count[GNN_TEST] == 0);
    count_split(&data, -1, count);
    ck_assert_int_eq(count[GNN_UNUSED], SIZE - 9);
    memcpy(before, data.split, NODES);
    ck_ok(host, gnn_data_draw_split(host, &data, 20, 30, 4));
    ck_assert(memcmp(before, data.split, NODES) != 0);
    ck_ok(host, gnn_data_draw_split(host, &data, 20, 30, 3));
    ck_assert(memcmp(before, data.split, NODES) == 0);
    ck_assert_int_eq(gnn_data_draw_split(host, &data, 0, 30, 3), SP_ERROR_ARGUMENT);
    gnn_data_free(host, &data);
}

TEST(splits_have_shares_of_each_class)
{
    gnn_data data = make_data(host, false, false);
    int64_t count[GNN_SPLITS];
    for (int64_t i = 0; i < NODES; i++) /* class 1 has 9 nodes, class 2 one, the others of them no label */
        if ((true_class(i) == 1 && i >= SIZE + 9) || (true_class(i) == 2 && i > 2 * SIZE)) data.labels[i] = -1;
    ck_ok(host, gnn_data_draw_shares(host, &data, 0.6, 0.25, 3));
    count_split(&data, 0, count);
    ck_assert(count[GNN_TRAIN] == 36 && count[GNN_VALIDATION] == 15 && count[GNN_TEST] == SIZE - 51);
    count_split(&data, 1, count); /* 5.4, and 7.65 with those that validate */
    ck_assert(count[GNN_TRAIN] == 5 && count[GNN_VALIDATION] == 3 && count[GNN_TEST] == 1);
    ck_ok(host, gnn_data_draw_shares(host, &data, 0.1, 0.2, 3));
    count_split(&data, 2, count);
    ck_assert(count[GNN_TRAIN] == 1 && count[GNN_VALIDATION] == 0 && count[GNN_TEST] == 0);
    ck_ok(host, gnn_data_draw_shares(host, &data, 1, 0, 3));
    count_split(&data, 0, count);
    ck_assert_int_eq(count[GNN_TRAIN], SIZE);
    ck_assert_int_eq(gnn_data_draw_shares(host, &data, 0, 0.5, 3), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_data_draw_shares(host, &data, 0.7, 0.4, 3), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_data_draw_shares(host, &data, 0.5, -0.1, 3), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_data_draw_shares(host, &data, NAN, 0.1, 3), SP_ERROR_ARGUMENT);
    gnn_data_free(host, &data);
}

TEST(every_node_can_be_drawn_for_training)
{
    enum { DRAWS = 400 };
    gnn_data data = make_data(host, false, false);
    int drawn[NODES] = {0};
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        ck_ok(host, gnn_data_draw_split(host, &data, SIZE / 4, 10, seed));
        for (int64_t i = 0; i < NODES; i++) drawn[i] += data.split[i] == GNN_TRAIN;
    }
    for (int64_t i = 0; i < NODES; i++) /* 100 expected, deviation 8.7 */
        test_expect(drawn[i] > 55 && drawn[i] < 145, "node %lld: %d of %d", (long long)i, drawn[i], DRAWS);
    gnn_data_free(host, &data);
}

/* ---- renumbering --------------------------------------------------------------------------------------- */

static double entry_of(const sp_csr *a, int64_t row, int64_t col)
{
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++)
        if (a->col_indices[k] == col) return test_value(a, k);
    return 0;
}

static double feature_of(const gnn_features *x, int64_t row, int64_t col)
{
    if (!x->dense.values) return entry_of(&x->sparse, row, col);
    return (double)((const float *)x->dense.values)[row * x->dense.stride + col];
}

/* Node i of `given` is row place[i] of `moved`. */
static void is_moved(const gnn_data *given, const gnn_data *moved)
{
    const int32_t *place = moved->place;
    bool taken[NODES] = {false};
    for (int64_t i = 0; i < NODES; i++) {
        const int64_t row = place[i];
        test_expect(row >= 0 && row < NODES && !taken[row], "row %lld", (long long)row);
        taken[row] = true;
        for (int64_t j = 0; j < NODES; j++)
            test_expect(entry_of(&given->graph, i, j) == entry_of(&moved->graph, row, place[j]), "edge %lld %lld",
                        (long long)i, (long long)j);
        for (int64_t j = 0; j < FEATURES; j++)
            test_expect(feature_of(&given->features, i, j) == feature_of(&moved->features, row, j),
                        "node %lld, feature %lld", (long long)i, (long long)j);
        if (given->labels) ck_assert_int_eq(given->labels[i], moved->labels[row]);
        else ck_assert(memcmp(given->targets + i * CLASSES, moved->targets + row * CLASSES, CLASSES) == 0);
        ck_assert_int_eq(given->split[i], moved->split[row]);
    }
}

TEST(renumbered_data_are_the_same_and_their_communities_lie_together)
{
    for (int sparse = 0; sparse < 2; sparse++)
        for (int several = 0; several < 2; several++) {
            gnn_data given = make_mixed(host, sparse, several), moved = make_mixed(host, sparse, several);
            int64_t class_of_row[NODES], changes = 0;
            ck_ok(host, gnn_data_renumber(host, &moved, GNN_ORDER_COMMUNITY));
            ck_ok(host, gnn_data_check(host, &moved));
            is_moved(&given, &moved);
            for (int64_t i = 0; i < NODES; i++) class_of_row[moved.place[i]] = true_class(mixed(i));
            for (int64_t r = 1; r < NODES; r++) changes += class_of_row[r] != class_of_row[r - 1];
            test_expect(changes < NODES / 4, "%lld changes", (long long)changes); /* mixed: 180 */
            ck_ok(host, gnn_data_draw_split(host, &given, 10, 20, 5));
            ck_ok(host, gnn_data_draw_split(host, &moved, 10, 20, 5));
            is_moved(&given, &moved);
            gnn_data_free(host, &given);
            gnn_data_free(host, &moved);
        }
}

TEST(data_that_do_not_gain_keep_their_numbers)
{
    static const char *const specs[] = {"community:40000,350,4000,50,800,80,1",
                                        "community:40000,350,4000,50,800,80,0"};
    gnn_data small = make_mixed(host, true, false);
    ck_ok(host, gnn_data_renumber(host, &small, GNN_ORDER_AUTO));
    ck_ok(host, gnn_data_renumber(host, &small, GNN_ORDER_KEEP));
    ck_assert_ptr_null(small.place);
    ((float *)small.graph.values)[7] = -1;
    ck_assert_int_eq(gnn_data_renumber(host, &small, GNN_ORDER_COMMUNITY), SP_ERROR_ARGUMENT);
    ((float *)small.graph.values)[7] = 1;
    ck_ok(host, gnn_data_renumber(host, &small, GNN_ORDER_COMMUNITY));
    ck_assert_int_eq(gnn_data_renumber(host, &small, GNN_ORDER_COMMUNITY), SP_ERROR_ARGUMENT);
    gnn_data_free(host, &small);
    for (int k = 0; k < 2; k++) { /* large and mixed; large, its communities side by side */
        gnn_data large = {.classes = 2};
        ck_ok(host, generate_matrix(host, specs[k], 3, SP_F32, &large.graph));
        ck_assert_int_ge(large.graph.nnz, 10000000);
        ck_ok(host, sp_dense_create(host, large.graph.rows, 1, SP_DENSE_F32, SP_HOST, &large.features.dense));
        memset(large.features.dense.values, 0, (size_t)large.graph.rows * sizeof(float));
        ck_ok(host, gnn_data_renumber(host, &large, GNN_ORDER_AUTO));
        ck_assert_int_eq(large.place != NULL, k == 0);
        gnn_data_free(host, &large);
    }
}

TEST(models_with_maxk_keep_the_numbers_unless_told_otherwise)
{
    const gnn_model_options relu = {.hidden = 8}, maxk = {.hidden = 8, .maxk = 4};
    ck_assert_int_eq(gnn_order_for(&relu, GNN_ORDER_AUTO), GNN_ORDER_AUTO);
    ck_assert_int_eq(gnn_order_for(&maxk, GNN_ORDER_AUTO), GNN_ORDER_KEEP);
    ck_assert_int_eq(gnn_order_for(&maxk, GNN_ORDER_COMMUNITY), GNN_ORDER_COMMUNITY);
}

TEST(mistakes_in_renumbered_data_name_the_node)
{
    gnn_data data = make_mixed(host, false, false);
    ck_ok(host, gnn_data_renumber(host, &data, GNN_ORDER_COMMUNITY));
    ck_assert_int_ne(data.place[17], 17);
    data.labels[data.place[17]] = CLASSES;
    refuses_data(&data, SP_ERROR_ARGUMENT, "node 17 (from 0) has label 4");
    data.labels[data.place[17]] = 0;
    ((float *)data.features.dense.values)[data.place[17] * FEATURES + 3] = NAN;
    refuses_data(&data, SP_ERROR_NOT_FINITE, "feature 3 (from 0) of node 17 (from 0)");
    gnn_data_free(host, &data);
}

/* Names as data have them: n0, n1, ... */
static void name_nodes(gnn_data *data, char names[NODES * 8])
{
    char *at = names;
    for (int i = 0; i < NODES; i++) at += sprintf(at, "n%d", i) + 1;
    data->node_names = names;
}

TEST(mistakes_call_nodes_by_their_names)
{
    static char names[NODES * 8];
    gnn_data data = make_mixed(host, false, false);
    name_nodes(&data, names);
    ck_ok(host, gnn_data_renumber(host, &data, GNN_ORDER_COMMUNITY));
    data.labels[data.place[17]] = CLASSES;
    refuses_data(&data, SP_ERROR_ARGUMENT, "node n17 has label 4, but");
    data.labels[data.place[17]] = 0;
    ((float *)data.features.dense.values)[data.place[0] * FEATURES + 3] = NAN;
    refuses_data(&data, SP_ERROR_NOT_FINITE, "feature 3 (from 0) of node n0 is");
    data.labels[data.place[NODES - 1]] = -2;
    ((float *)data.features.dense.values)[data.place[0] * FEATURES + 3] = 0;
    refuses_data(&data, SP_ERROR_ARGUMENT, "node n239 has label -2");
    gnn_data_free(host, &data);
}

/* A graph in which GCN would divide by 0, whether it is renumbered or not, with names or without. */
TEST(sums_that_gcn_cannot_divide_by_name_the_node)
{
    static char names[NODES * 8];
    const gnn_trainer_options options = {.model = {.layers = 2, .inputs = FEATURES, .hidden = 4, .outputs = CLASSES}};
    gnn_engine *engine;
    gnn_trainer *trainer;
    ck_ok(host, gnn_engine_create(host, 1, &engine));
    for (int named = 0; named < 2; named++) {
        gnn_data data = make_mixed(host, false, false);
        sp_csr *graph = &data.graph;
        if (named) name_nodes(&data, names);
        ck_ok(host, gnn_data_renumber(host, &data, GNN_ORDER_COMMUNITY));
        sp_free(host, graph->values);
        ck_ok(host, sp_alloc(host, graph->nnz, sizeof(float), &graph->values));
        graph->value_type = SP_F32;
        for (int64_t e = 0; e < graph->nnz; e++) ((float *)graph->values)[e] = 1;
        const int64_t row = data.place[17];
        ck_assert_int_lt(graph->row_offsets[row], graph->row_offsets[row + 1]);
        ((float *)graph->values)[graph->row_offsets[row]] = -1000;
        ck_assert_int_eq(gnn_trainer_create(engine, &data, &options, &trainer), SP_ERROR_ARGUMENT);
        ck_assert_str_eq(sp_last_error(host), named ? "the weights of node n17 and its loop have no positive sum, and "
                                                      "GCN divides by it"
                         : "the weights of node 17 (from 0) and its loop have no positive sum, and GCN divides by it");
        gnn_data_free(host, &data);
    }
    gnn_engine_free(engine);
}

const test_entry data_tests[] = {
    CASE_WITH("data", 300, open_host, close_host),
    ONCE(the_first_node_that_is_wrong_is_named),
    ONCE(shapes_that_do_not_fit_are_refused),
    ONCE(normalised_rows_sum_to_one),
    ONCE(splits_have_so_many_nodes_of_each_class),
    ONCE(splits_have_shares_of_each_class),
    ONCE(every_node_can_be_drawn_for_training),
    ONCE(renumbered_data_are_the_same_and_their_communities_lie_together),
    ONCE(data_that_do_not_gain_keep_their_numbers),
    ONCE(models_with_maxk_keep_the_numbers_unless_told_otherwise),
    ONCE(mistakes_in_renumbered_data_name_the_node),
    ONCE(mistakes_call_nodes_by_their_names),
    ONCE(sums_that_gcn_cannot_divide_by_name_the_node),
    {0},
};
