/* Generated graphs for benchmarks: a matrix of generate_matrix with every edge in both directions and no loops,
 * random classes, a random split, and features that are normally distributed around a point for each class.
 *
 * Numbers are functions of (seed, stream, index), so they do not depend on threads. Bits come from base/random.h,
 * normal numbers from the method of Box and Muller (1958).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "common/tool.h"
#include "generate.h"
#include "input.h"

/* The shapes of graphs that papers on GNN training measure. The specifications have a few more edges than are kept. */
static const struct {
    const char *name;
    gnn_recipe recipe;
} presets[] = {
    {"flickr", {"community:89250,5.6,1900,50,900,60,1", 899756, 500, 7, 1}},
    {"reddit", {"community:232965,290,60000,50,4660,80,1", 114615892, 602, 41, 1}},
};

/* The distance of classes, per feature and in units of the features' deviation: 500 features tell some nodes apart,
 * not all. */
static const float DISTANCE = 0.05f;

enum { STREAM_CLASS = 1, STREAM_SPLIT, STREAM_MEAN, STREAM_FEATURE };

bool gnn_recipe_named(const char *name, gnn_recipe *recipe)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(presets[i].name, name) == 0) {
            *recipe = presets[i].recipe;
            return true;
        }
    return false;
}

/* ---- random numbers ------------------------------------------------------------------------------------ */

static uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    return mix64(mix64(mix64(seed + RANDOM_STEP) + stream) + (index + 1) * RANDOM_STEP);
}

static int64_t random_below(uint64_t bits, int64_t bound) { return (int64_t)((bits >> 32) * (uint64_t)bound >> 32); }

/* Numbers 2·index and 2·index + 1 of a stream of normal ones. */
static void random_normal(uint64_t seed, uint64_t stream, uint64_t index, float pair[2])
{
    const uint64_t bits = random_bits(seed, stream, index);
    const float u = ((float)(uint32_t)(bits >> 40) + 1) * 0x1p-24f;
    const float turn = 6.283185307f * 0x1p-24f * (float)(uint32_t)(bits & 0xffffff), radius = sqrtf(-2 * logf(u));
    pair[0] = radius * cosf(turn);
    pair[1] = radius * sinf(turn);
}

/* ---- the graph ----------------------------------------------------------------------------------------- */

/* Every edge between two nodes once, where the column is the larger. */
static sp_status take_upper(sp_context *context, const sp_csr *drawn, sp_csr *upper)
{
    int32_t *low = NULL, *high = NULL;
    const int threads = sp_context_threads(context);
    sp_status status;
    TRY(sp_alloc(context, drawn->nnz, sizeof *low, (void **)&low));
    TRY(sp_alloc(context, drawn->nnz, sizeof *high, (void **)&high));
#pragma omp parallel for schedule(dynamic, 1024) num_threads(threads)
    for (int64_t i = 0; i < drawn->rows; i++)
        for (int64_t e = drawn->row_offsets[i]; e < drawn->row_offsets[i + 1]; e++) {
            const int32_t row = (int32_t)i, col = drawn->col_indices[e];
            low[e] = row < col ? row : col;
            high[e] = row < col ? col : row;
        }
    status = sp_csr_from_coo(context, &(sp_coo){.rows = drawn->rows, .cols = drawn->rows, .count = drawn->nnz,
                                                .row_indices = low, .col_indices = high}, SP_COMBINE_MAX, false, upper);
done:
    FREE_ALL(context, low, high);
    return status;
}

/* Keeps `kept` of the entries off the diagonal, evenly spread, in place. */
static void thin(sp_csr *upper, int64_t kept)
{
    int64_t pairs = 0, due = 0, at = 0, begin = 0;
    for (int64_t i = 0; i < upper->rows; i++)
        for (int64_t e = upper->row_offsets[i]; e < upper->row_offsets[i + 1]; e++)
            pairs += upper->col_indices[e] != i;
    if (kept > pairs) kept = pairs;
    for (int64_t i = 0; i < upper->rows; i++) {
        const int64_t end = upper->row_offsets[i + 1];
        for (int64_t e = begin; e < end; e++) {
            if (upper->col_indices[e] == i) continue;
            due += kept;
            if (due < pairs) continue;
            due -= pairs;
            upper->col_indices[at++] = upper->col_indices[e];
        }
        begin = end;
        upper->row_offsets[i + 1] = at;
    }
    upper->nnz = at;
}

/* Joins both directions: entries left of the diagonal, then those right of it. */
static sp_status join_halves(sp_context *context, const sp_csr *lower, const sp_csr *upper, sp_csr *graph)
{
    sp_status status = sp_alloc(context, upper->rows + 1, sizeof *graph->row_offsets, (void **)&graph->row_offsets);
    if (status == SP_OK)
        status = sp_alloc(context, 2 * upper->nnz, sizeof *graph->col_indices, (void **)&graph->col_indices);
    if (status != SP_OK) return status;
    graph->rows = graph->cols = upper->rows;
    graph->nnz = 2 * upper->nnz;
    for (int64_t i = 0; i <= upper->rows; i++) graph->row_offsets[i] = lower->row_offsets[i] + upper->row_offsets[i];
#pragma omp parallel for schedule(dynamic, 1024) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < upper->rows; i++) {
        const int64_t left = lower->row_offsets[i + 1] - lower->row_offsets[i];
        int32_t *to = graph->col_indices + graph->row_offsets[i];
        memcpy(to, lower->col_indices + lower->row_offsets[i], (size_t)left * sizeof *to);
        memcpy(to + left, upper->col_indices + upper->row_offsets[i],
               (size_t)(upper->row_offsets[i + 1] - upper->row_offsets[i]) * sizeof *to);
    }
    return SP_OK;
}

static sp_status make_graph(sp_context *context, const gnn_recipe *recipe, sp_csr *graph)
{
    sp_csr drawn = {0}, upper = {0}, lower = {0};
    sp_status status;
    TRY(generate_matrix(context, recipe->spec, recipe->seed, SP_F32, &drawn));
    if (drawn.rows != drawn.cols)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld rows and %lld columns; a graph needs a square matrix",
                    recipe->spec, (long long)drawn.rows, (long long)drawn.cols));
    TRY(take_upper(context, &drawn, &upper));
    sp_csr_free(context, &drawn);
    sp_free(context, upper.values);
    upper.values = NULL;
    thin(&upper, recipe->edges > 0 ? recipe->edges / 2 : INT64_MAX);
    if (recipe->edges > 2 * upper.nnz)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: it has %lld edges, not %lld; take a larger degree", recipe->spec,
                    (long long)(2 * upper.nnz), (long long)recipe->edges));
    TRY(sp_csr_transpose(context, &upper, &lower));
    status = join_halves(context, &lower, &upper, graph);
done:
    sp_csr_free(context, &drawn);
    sp_csr_free(context, &upper);
    sp_csr_free(context, &lower);
    return status;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

static sp_status make_means(sp_context *context, const gnn_recipe *recipe, float **means)
{
    const int64_t width = recipe->features + 1; /* pairs */
    sp_status status = sp_alloc(context, recipe->classes * width, sizeof **means, (void **)means);
    for (int64_t k = 0; status == SP_OK && k < recipe->classes * width; k++) {
        float pair[2];
        random_normal(recipe->seed, STREAM_MEAN, (uint64_t)k, pair);
        (*means)[k] = DISTANCE * pair[0];
    }
    return status;
}

static void fill_features(const sp_context *context, const gnn_recipe *recipe, const float *means, gnn_data *data)
{
    const int64_t cols = recipe->features, pairs = (cols + 1) / 2;
    float *values = data->features.dense.values;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < data->graph.rows; i++) {
        const float *mean = means + data->labels[i] * (cols + 1);
        for (int64_t p = 0; p < pairs; p++) {
            float pair[2];
            random_normal(recipe->seed, STREAM_FEATURE, (uint64_t)(i * pairs + p), pair);
            values[i * cols + 2 * p] = pair[0] + mean[2 * p];
            if (2 * p + 1 < cols) values[i * cols + 2 * p + 1] = pair[1] + mean[2 * p + 1];
        }
    }
}

/* Half of the nodes to train, a quarter each to validate and to test. */
static void fill_labels(const gnn_recipe *recipe, gnn_data *data)
{
    static const uint8_t kinds[4] = {GNN_TRAIN, GNN_TRAIN, GNN_VALIDATION, GNN_TEST};
    for (int64_t i = 0; i < data->graph.rows; i++) {
        const uint64_t label = random_bits(recipe->seed, STREAM_CLASS, (uint64_t)i);
        data->labels[i] = (int32_t)random_below(label, recipe->classes);
        data->split[i] = kinds[random_below(random_bits(recipe->seed, STREAM_SPLIT, (uint64_t)i), 4)];
    }
}

sp_status gnn_generate(sp_context *context, const gnn_recipe *recipe, gnn_input *input)
{
    gnn_data *data = &input->data;
    float *means = NULL;
    sp_status status;
    memset(input, 0, sizeof *input);
    TRY(make_graph(context, recipe, &data->graph));
    const int64_t nodes = data->graph.rows;
    data->classes = recipe->classes;
    input->has_split = true;
    TRY(sp_alloc(context, nodes, sizeof *data->labels, (void **)&data->labels));
    TRY(sp_alloc(context, nodes, 1, (void **)&data->split));
    TRY(sp_dense_create(context, nodes, recipe->features, SP_DENSE_F32, SP_HOST, &data->features.dense));
    TRY(make_means(context, recipe, &means));
    fill_labels(recipe, data);
    fill_features(context, recipe, means, data);
done:
    sp_free(context, means);
    if (status != SP_OK) gnn_input_free(context, input);
    return status;
}
