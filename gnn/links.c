/* Links: drawing those to hide from the graph, pairs without a link, and how well scores tell both apart.
 *
 * A pair without a link is drawn as two nodes, uniformly, until there is one: in a sparse graph the first try mostly
 * does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* What the random numbers are for; SITE_UNLINKED and the 16 after it, one a round. */
static const uint64_t SITE_LINKS = 0x6c696e6b73, SITE_UNLINKED = 0x756e6c696e6b0000;

/* ---- pairs --------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

sp_status gnn_pair_pattern(sp_context *context, int64_t nodes, int64_t count, const int32_t *first,
                           const int32_t *second, sp_value_type type, bool mirrored, sp_csr *pattern)
{
    const sp_status status = sp_csr_from_coo(context, &(sp_coo){.rows = nodes, .cols = nodes, .count = count,
                                                                .row_indices = first, .col_indices = second,
                                                                .value_type = type}, SP_COMBINE_FIRST, mirrored,
                                             pattern);
    if (status != SP_OK) return status;
    sp_free(context, pattern->values);
    pattern->values = NULL;
    return SP_OK;
}

sp_status gnn_link_graph(sp_context *context, const sp_csr *graph, sp_csr *links)
{
    int32_t *first = NULL, *second = NULL;
    int64_t count = 0;
    sp_status status;
    TRY(sp_alloc(context, graph->nnz, sizeof *first, (void **)&first));
    TRY(sp_alloc(context, graph->nnz, sizeof *second, (void **)&second));
    for (int64_t i = 0; i < graph->rows; i++)
        for (int64_t e = graph->row_offsets[i]; e < graph->row_offsets[i + 1]; e++) {
            first[count] = (int32_t)i;
            second[count] = graph->col_indices[e];
            count += graph->col_indices[e] != i;
        }
    TRY(gnn_pair_pattern(context, graph->rows, count, first, second, SP_F32, true, links));
done:
    FREE_ALL(context, first, second);
    return status;
}

/* Pair `index` of a stream; UINT64_MAX if no try found one. */
static uint64_t draw_pair(const sp_csr *links, uint64_t stream, int64_t index)
{
    enum { TRIES = 64 };
    const uint64_t nodes = (uint64_t)links->rows;
    for (int64_t k = 0; k < TRIES; k++) {
        const uint64_t bits = gnn_draw(stream, index * TRIES + k);
        const int64_t a = (int64_t)((bits >> 32) * nodes >> 32), b = (int64_t)((bits & UINT32_MAX) * nodes >> 32);
        if (a != b && !gnn_has_entry(links, a, (int32_t)b)) return gnn_pair_of(a, b);
    }
    return UINT64_MAX;
}

/* Removes repeated pairs, and UINT64_MAX, which stands for a draw without a pair. Returns the number of pairs left. */
static int64_t keep_distinct(uint64_t *pair, int64_t count)
{
    int64_t kept = 0;
    qsort(pair, (size_t)count, sizeof *pair, by_number);
    for (int64_t k = 0; k < count; k++)
        if (pair[k] != UINT64_MAX && (k == 0 || pair[k] != pair[k - 1])) pair[kept++] = pair[k];
    return kept;
}

int64_t gnn_draw_unlinked(const sp_context *context, const sp_csr *links, const gnn_pair_draw *how, uint64_t *pair)
{
    const int rounds = how->distinct ? 16 : 1;
    int64_t found = 0;
    for (int round = 0; round < rounds && found < how->wanted; round++) {
        const uint64_t stream = gnn_stream(how->seed, how->step, SITE_UNLINKED + (uint64_t)round);
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context)) if (how->wanted - found > 10000)
        for (int64_t k = found; k < how->wanted; k++) pair[k] = draw_pair(links, stream, k);
        if (how->distinct) found = keep_distinct(pair, how->wanted);
    }
    for (int64_t k = 0; !how->distinct && k < how->wanted; k++)
        if (pair[k] != UINT64_MAX) pair[found++] = pair[k];
    return found;
}

/* ---- the drawing of links ------------------------------------------------------------------------------ */

/* The links, ascending. */
static void list_links(const sp_csr *links, uint64_t *pair)
{
    int64_t count = 0;
    for (int64_t i = 0; i < links->rows; i++)
        for (int64_t e = links->row_offsets[i]; e < links->row_offsets[i + 1]; e++)
            if (links->col_indices[e] > i) pair[count++] = gnn_pair_of(i, links->col_indices[e]);
}

/* Makes the first `drawn` of `count` pairs random ones: Fisher and Yates, from the front. */
static void shuffle(uint64_t *pair, int64_t drawn, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < drawn; i++) {
        const int64_t j = i + (int64_t)(gnn_random(seed, 0, SITE_LINKS, i) % (uint64_t)(count - i));
        const uint64_t swap = pair[i];
        pair[i] = pair[j];
        pair[j] = swap;
    }
}

static void put_pairs(const uint64_t *pair, int64_t count, int32_t *nodes)
{
    for (int64_t k = 0; k < count; k++) gnn_nodes_of_pair(pair[k], &nodes[2 * k], &nodes[2 * k + 1]);
}

/* The links of one split, and as many pairs without one. */
static sp_status hide(sp_context *context, const sp_csr *all, const uint64_t *links, gnn_split split, uint64_t seed,
                      gnn_links *made)
{
    const int64_t count = made->linked[split];
    const gnn_pair_draw how = {.seed = seed, .step = split, .wanted = count, .distinct = true};
    uint64_t *unlinked = NULL;
    sp_status status;
    TRY(sp_alloc(context, count, sizeof *unlinked, (void **)&unlinked));
    TRY(sp_alloc(context, 4 * count, sizeof(int32_t), (void **)&made->pair[split]));
    made->unlinked[split] = gnn_draw_unlinked(context, all, &how, unlinked);
    if (count > 0 && made->unlinked[split] == 0)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "nearly all pairs of nodes are linked, so there are none to tell the "
                    "links from"));
    put_pairs(links, count, made->pair[split]);
    put_pairs(unlinked, made->unlinked[split], made->pair[split] + 2 * count);
done:
    sp_free(context, unlinked);
    return status;
}

/* Takes the pairs out of the graph, in both directions. */
static sp_status take_out(sp_context *context, const uint64_t *pair, int64_t count, sp_csr *graph)
{
    int32_t *first = NULL, *second = NULL;
    sp_csr hidden = {0};
    int64_t kept = 0;
    sp_status status;
    TRY(sp_alloc(context, count, sizeof *first, (void **)&first));
    TRY(sp_alloc(context, count, sizeof *second, (void **)&second));
    for (int64_t k = 0; k < count; k++) gnn_nodes_of_pair(pair[k], &first[k], &second[k]);
    TRY(gnn_pair_pattern(context, graph->rows, count, first, second, SP_F32, true, &hidden));
    for (int64_t i = 0, e = 0; i < graph->rows; i++) {
        for (; e < graph->row_offsets[i + 1]; e++) {
            if (gnn_has_entry(&hidden, i, graph->col_indices[e])) continue;
            graph->col_indices[kept] = graph->col_indices[e];
            if (graph->values) store_value(graph->values, graph->value_type, kept, entry_value(graph, e));
            kept++;
        }
        graph->row_offsets[i + 1] = kept;
    }
    graph->nnz = kept;
done:
    sp_csr_free(context, &hidden);
    FREE_ALL(context, first, second);
    return status;
}

static sp_status draw(sp_context *context, gnn_data *data, double validation, double test, uint64_t seed)
{
    gnn_links made = {0};
    sp_csr all = {0};
    uint64_t *pair = NULL;
    sp_status status;
    TRY(gnn_link_graph(context, &data->graph, &all));
    const int64_t count = all.nnz / 2;
    made.linked[GNN_VALIDATION] = (int64_t)floor(validation * (double)count + 0.5);
    made.linked[GNN_TEST] = (int64_t)floor(test * (double)count + 0.5);
    const int64_t hidden = made.linked[GNN_VALIDATION] + made.linked[GNN_TEST];
    made.linked[GNN_TRAIN] = count - hidden;
    if (hidden >= count)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, count == 0 ? "the graph has no link between two nodes to learn from"
                    : "validation and test take all %lld links of the graph, and leave none to train with",
                    (long long)count));
    TRY(sp_alloc(context, count, sizeof *pair, (void **)&pair));
    list_links(&all, pair);
    shuffle(pair, hidden, count, seed);
    TRY(hide(context, &all, pair, GNN_VALIDATION, seed, &made));
    TRY(hide(context, &all, pair + made.linked[GNN_VALIDATION], GNN_TEST, seed, &made));
    TRY(take_out(context, pair, hidden, &data->graph));
    data->links = made;
    memset(&made, 0, sizeof made);
done:
    for (int s = 0; s < GNN_SPLITS; s++) sp_free(context, made.pair[s]);
    sp_csr_free(context, &all);
    sp_free(context, pair);
    return status;
}

sp_status gnn_data_draw_links(sp_context *context, gnn_data *data, double validation, double test, uint64_t seed)
{
    sp_status status = sp_require(context, __func__, "data", data);
    if (status == SP_OK) status = sp_require_csr(context, __func__, "the graph", &data->graph);
    if (status != SP_OK) return status;
    if (data->graph.rows != data->graph.cols || data->graph.space != SP_HOST)
        return sp_fail(context, SP_ERROR_ARGUMENT, "links are drawn of a square graph in host memory");
    if (data->place || data->links.linked[GNN_TRAIN] > 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "links are drawn once, and before the data are renumbered");
    if (!(validation >= 0 && test >= 0 && validation + test < 1))
        return sp_fail(context, SP_ERROR_ARGUMENT, "shares %g and %g of the links; together they are below 1",
                       validation, test);
    return draw(context, data, validation, test, seed);
}

/* ---- how good scores are ------------------------------------------------------------------------------- */

static int highest_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Walks down the distinct scores of both sorted lists. */
static void compare(const double *linked, int64_t links, const double *unlinked, int64_t others, gnn_link_figures *f)
{
    double above = 0, precise = 0; /* pairs of a link and another below it, or half as far equal; the sum */
    int64_t i = 0, j = 0;
    while (i < links) {
        const double score = j < others && unlinked[j] > linked[i] ? unlinked[j] : linked[i];
        const int64_t first = i, from = j;
        while (i < links && linked[i] == score) i++;
        while (j < others && unlinked[j] == score) j++;
        above += (double)(i - first) * ((double)(others - j) + (double)(j - from) / 2);
        precise += (double)(i - first) * (double)i / (double)(i + j);
    }
    f->auc = above / ((double)links * (double)others);
    f->average_precision = precise / (double)links;
    for (int k = 0; k < GNN_HITS; k++) {
        int64_t higher = 0;
        if (others < gnn_hits_at[k]) continue;
        while (higher < links && linked[higher] > unlinked[gnn_hits_at[k] - 1]) higher++;
        f->hits[k] = (double)higher / (double)links;
    }
}

sp_status gnn_judge_links(sp_context *context, double *linked, int64_t links, double *unlinked, int64_t others,
                          gnn_link_figures *figures)
{
    sp_status status = sp_require(context, __func__, "linked", linked);
    if (status == SP_OK) status = sp_require(context, __func__, "unlinked", unlinked);
    if (status == SP_OK) status = sp_require(context, __func__, "figures", figures);
    if (status != SP_OK) return status;
    for (int64_t k = 0; k < links + others; k++)
        if (isnan(k < links ? linked[k] : unlinked[k - links]))
            return sp_fail(context, SP_ERROR_NOT_FINITE, "score %lld of a pair is not a number", (long long)k);
    gnn_link_figures made = {.linked = links, .unlinked = others, .auc = NAN, .average_precision = NAN};
    for (int k = 0; k < GNN_HITS; k++) made.hits[k] = NAN;
    qsort(linked, (size_t)links, sizeof *linked, highest_first);
    qsort(unlinked, (size_t)others, sizeof *unlinked, highest_first);
    if (links > 0 && others > 0) compare(linked, links, unlinked, others, &made);
    *figures = made;
    return SP_OK;
}
