/* Links: training, judging and prediction. The score of a pair is the dot product of the outputs Z of its nodes.
 *
 * The pairs of an epoch are a sparse matrix S with both directions of each: the training links, and others that are
 * drawn. Their scores are Z·Zᵀ at the entries of S (sp_sddmm). If G has the gradients of the scores at the entries of
 * S, the gradient of Z is G·Z (sp_spmm): row i has all pairs of node i. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer.h"

/* ---- pairs as matrices --------------------------------------------------------------------------------- */

/* The rows of a pair's nodes, the lower one first. */
static void rows_of(const gnn_trainer *t, const int32_t *pair, int32_t row[2])
{
    const int32_t a = (int32_t)gnn_trainer_row(t, pair[0]), b = (int32_t)gnn_trainer_row(t, pair[1]);
    row[0] = a < b ? a : b;
    row[1] = a < b ? b : a;
}

/* A host pattern with an entry for each pair, once. */
static sp_status make_pattern(gnn_trainer *t, const int32_t *pairs, int64_t count, sp_csr *pattern)
{
    const int64_t nodes = t->data->graph.rows;
    int32_t *first = NULL, *second = NULL, row[2];
    sp_status status;
    TRY(sp_alloc(t->context, count, sizeof *first, (void **)&first));
    TRY(sp_alloc(t->context, count, sizeof *second, (void **)&second));
    for (int64_t k = 0; k < count; k++) {
        rows_of(t, pairs + 2 * k, row);
        first[k] = row[0];
        second[k] = row[1];
    }
    TRY(gnn_pair_pattern(t->context, nodes, count, first, second, value_type(t->options.model.type), false, pattern));
done:
    FREE_ALL(t->context, first, second);
    return status;
}

/* The scores of pairs, which the pattern has. */
static sp_status score(gnn_trainer *t, const sp_dense *z, const sp_csr *pattern, const int32_t *pairs, int64_t count,
                       double *scores)
{
    const size_t size = number_size(z->type);
    void *there = NULL, *here = NULL;
    sp_status status;
    TRY(sp_array_create(t->context, pattern->nnz, size, t->engine->space, &there));
    TRY(sp_alloc(t->context, pattern->nnz, size, &here));
    TRY(sp_sddmm(t->context, pattern, z, z, there));
    TRY(sp_array_copy(t->context, pattern->nnz, size, here, SP_HOST, there, t->engine->space));
    for (int64_t k = 0; k < count; k++) {
        int32_t row[2];
        rows_of(t, pairs + 2 * k, row);
        const int64_t *offsets = pattern->row_offsets;
        const int64_t at = lower_bound_i32(pattern->col_indices, offsets[row[0]], offsets[row[0] + 1], row[1]);
        scores[k] = load_value(here, value_type(z->type), at);
    }
done:
    sp_array_free(t->context, t->engine->space, there);
    sp_free(t->context, here);
    return status;
}

/* ---- what is trained with ------------------------------------------------------------------------------ */

static sp_status list_links(gnn_trainer *t)
{
    gnn_link_state *l = &t->links;
    const sp_value_type type = value_type(t->options.model.type);
    l->linked = l->graph.nnz / 2;
    if (__builtin_mul_overflow(l->linked, 1 + t->options.negatives, &l->pairs))
        return sp_fail(t->context, SP_ERROR_OVERFLOW, "%lld links with %lld other pairs each cannot be addressed",
                       (long long)l->linked, (long long)t->options.negatives);
    sp_status status;
    TRY(sp_alloc(t->context, l->pairs, sizeof *l->first, (void **)&l->first));
    TRY(sp_alloc(t->context, l->pairs, sizeof *l->second, (void **)&l->second));
    TRY(sp_alloc(t->context, l->pairs, number_size(t->options.model.type), &l->signs));
    for (int64_t i = 0, k = 0; i < l->graph.rows; i++)
        for (int64_t e = l->graph.row_offsets[i]; e < l->graph.row_offsets[i + 1]; e++) {
            if (l->graph.col_indices[e] < i) continue;
            l->first[k] = (int32_t)i;
            l->second[k++] = l->graph.col_indices[e];
        }
    for (int64_t k = 0; k < l->pairs; k++) store_value(l->signs, type, k, k < l->linked ? 1 : -1);
done:
    return status;
}

sp_status gnn_trainer_place_links(gnn_trainer *t)
{
    const gnn_links *drawn = &t->data->links;
    sp_status status = SP_OK;
    if (!t->options.links || drawn->linked[GNN_TRAIN] == 0) return SP_OK;
    memcpy(t->nodes, drawn->linked, sizeof t->nodes);
    TRY(gnn_link_graph(t->context, &t->data->graph, &t->links.graph));
    TRY(list_links(t));
    for (int s = GNN_VALIDATION; s < GNN_SPLITS; s++)
        TRY(make_pattern(t, drawn->pair[s], drawn->linked[s] + drawn->unlinked[s], &t->links.judged[s]));
done:
    return status;
}

void gnn_trainer_free_links(gnn_trainer *t)
{
    gnn_link_state *l = &t->links;
    sp_csr_free(t->context, &l->graph);
    FREE_ALL(t->context, l->first, l->second, l->signs);
    for (int s = 0; s < GNN_SPLITS; s++) sp_csr_free(t->context, &l->judged[s]);
}

sp_status gnn_trainer_draw_pairs(gnn_trainer *t, sp_csr *pairs)
{
    gnn_link_state *l = &t->links;
    const gnn_pair_draw how = {.seed = t->engine->seed, .step = GNN_SPLITS + t->epoch, .wanted = l->pairs - l->linked};
    uint64_t *drawn = NULL;
    sp_csr made = {0};
    sp_status status;
    TRY(sp_alloc(t->context, how.wanted, sizeof *drawn, (void **)&drawn));
    const int64_t count = gnn_draw_unlinked(t->context, &l->graph, &how, drawn);
    for (int64_t k = 0; k < count; k++)
        gnn_nodes_of_pair(drawn[k], &l->first[l->linked + k], &l->second[l->linked + k]);
    TRY(sp_csr_from_coo(t->context, &(sp_coo){.rows = l->graph.rows, .cols = l->graph.rows, .count = l->linked + count,
                                              .row_indices = l->first, .col_indices = l->second, .values = l->signs,
                                              .value_type = value_type(t->options.model.type)}, SP_COMBINE_FIRST, true,
                        &made));
    if (t->engine->space == SP_HOST) {
        *pairs = made;
        made = (sp_csr){0};
    } else TRY(sp_csr_copy(t->context, &made, t->engine->space, pairs));
done:
    sp_csr_free(t->context, &made);
    sp_free(t->context, drawn);
    return status;
}

sp_status gnn_trainer_link_step(gnn_trainer *t)
{
    const sp_spmm_options how = {.deterministic = true};
    const gnn_backend *backend = t->engine->backend;
    const sp_dense_type type = t->options.model.type;
    const sp_dense *z;
    sp_csr pairs = {0}, weighted;
    sp_spmm_plan *plan = NULL;
    void *scores = NULL;
    sp_status status;
    TRY(backend->advance(t->engine));
    TRY(gnn_trainer_draw_pairs(t, &pairs));
    TRY(gnn_model_forward(t->model, t->block, &t->x, true, &z));
    TRY(sp_array_create(t->context, pairs.nnz, number_size(type), t->engine->space, &scores));
    TRY(sp_sddmm(t->context, &pairs, z, z, scores));
    TRY(backend->link_loss(t->engine, pairs.nnz, pairs.values, type, scores, t->score));
    TRY(gnn_trainer_rows(t, z->rows, z->cols, &t->gradient, &t->gradient_capacity));
    weighted = pairs;
    weighted.values = scores;
    TRY(sp_spmm_plan_create(t->context, &weighted, z->cols, &how, &plan));
    TRY(sp_spmm_execute(plan, 1, z, 0, &t->gradient));
    TRY(gnn_model_backward(t->model, t->block, &t->x, &t->gradient));
    TRY(gnn_optimizer_step(t->optimizer));
done:
    sp_spmm_plan_free(plan);
    sp_array_free(t->context, t->engine->space, scores);
    sp_csr_free(t->context, &pairs);
    return status;
}

/* ---- judging ------------------------------------------------------------------------------------------- */

/* The mean loss of the pairs of a split, and its figures. */
static sp_status judge(gnn_trainer *t, const sp_dense *z, gnn_split split, double *loss, gnn_link_figures *figures)
{
    const gnn_links *drawn = &t->data->links;
    const int64_t linked = drawn->linked[split], count = linked + drawn->unlinked[split];
    double *scores, sum = 0;
    sp_status status = sp_alloc(t->context, count, sizeof *scores, (void **)&scores);
    if (status != SP_OK) return status;
    TRY(score(t, z, &t->links.judged[split], drawn->pair[split], count, scores));
    for (int64_t k = 0; k < count; k++) {
        const double wrong = k < linked ? -scores[k] : scores[k];
        sum += (wrong > 0 ? wrong : 0) + log1p(exp(-fabs(wrong)));
    }
    *loss = count > 0 ? sum / (double)count : NAN;
    if (isfinite(sum))
        status = gnn_judge_links(t->context, scores, linked, scores + linked, count - linked, figures);
done:
    sp_free(t->context, scores);
    return status;
}

sp_status gnn_trainer_evaluate_links(gnn_trainer *t, gnn_epoch *epoch)
{
    const sp_dense *z;
    sp_status status = gnn_trainer_outputs(t, &z);
    for (int s = GNN_VALIDATION; status == SP_OK && s < GNN_SPLITS; s++) {
        gnn_link_figures figures = {.auc = NAN};
        status = judge(t, z, (gnn_split)s, &epoch->split_loss[s], &figures);
        epoch->accuracy[s] = figures.auc;
    }
    return status;
}

sp_status gnn_trainer_judge_links(gnn_trainer *t, gnn_split split, gnn_link_figures *figures)
{
    const sp_dense *z;
    gnn_link_figures made;
    double loss;
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status == SP_OK) status = sp_require(t->context, __func__, "figures", figures);
    if (status != SP_OK) return status;
    if (t->links.linked == 0 || (split != GNN_VALIDATION && split != GNN_TEST))
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "only links that were drawn for validation or test are judged");
    TRY(gnn_trainer_outputs(t, &z));
    TRY(judge(t, z, split, &loss, &made));
    if (!isnan(loss) && !isfinite(loss))
        TRY(sp_fail(t->context, SP_ERROR_NOT_FINITE, "the loss of the links is not finite"));
    *figures = made;
done:
    return status;
}

/* ---- prediction ---------------------------------------------------------------------------------------- */

static double probability(double score) { return score < 0 ? exp(score) / (1 + exp(score)) : 1 / (1 + exp(-score)); }

static sp_status check_prediction(gnn_trainer *t)
{
    return t->options.links ? SP_OK : sp_fail(t->context, SP_ERROR_ARGUMENT, "the model predicts classes, no links");
}

/* The scores of pairs of known nodes. */
static sp_status score_pairs(gnn_trainer *t, const sp_dense *z, const int32_t *pairs, int64_t count, double *scores)
{
    sp_csr pattern = {0};
    sp_status status = make_pattern(t, pairs, count, &pattern);
    if (status == SP_OK) status = score(t, z, &pattern, pairs, count, scores);
    sp_csr_free(t->context, &pattern);
    return status;
}

sp_status gnn_trainer_score_links(gnn_trainer *t, const int32_t *pairs, int64_t count, float *probabilities)
{
    const sp_dense *z;
    double *scores = NULL;
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status == SP_OK) status = sp_require(t->context, __func__, "pairs", pairs);
    if (status == SP_OK) status = sp_require(t->context, __func__, "probabilities", probabilities);
    if (status == SP_OK) status = check_prediction(t);
    if (status != SP_OK) return status;
    for (int64_t k = 0; k < 2 * count; k++)
        if (pairs[k] < 0 || pairs[k] >= t->data->graph.rows)
            return sp_fail(t->context, SP_ERROR_ARGUMENT, "pair %lld has a node %d; there are %lld", (long long)k / 2,
                           pairs[k], (long long)t->data->graph.rows);
    TRY(sp_alloc(t->context, count, sizeof *scores, (void **)&scores));
    TRY(gnn_trainer_outputs(t, &z));
    TRY(score_pairs(t, z, pairs, count, scores));
    for (int64_t k = 0; k < count; k++) probabilities[k] = (float)probability(scores[k]);
done:
    sp_free(t->context, scores);
    return status;
}

typedef struct ranked_pair {
    double score;
    uint64_t pair;
} ranked_pair;

/* Whether a pair comes behind another. */
static bool is_behind(const ranked_pair *a, const ranked_pair *b)
{
    return a->score != b->score ? a->score < b->score : a->pair > b->pair;
}

static int best_first(const void *a, const void *b)
{
    const ranked_pair *x = a, *y = b;
    return is_behind(x, y) ? 1 : is_behind(y, x) ? -1 : 0;
}

/* The best pairs so far: a heap, whose first element is behind all others. */
typedef struct best_pairs {
    ranked_pair *pair;
    int64_t count, most;
    double bound; /* lower scores are of no use */
} best_pairs;

static void sink(best_pairs *best)
{
    ranked_pair *heap = best->pair, moved = heap[0];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < best->count; at = child) {
        if (child + 1 < best->count && is_behind(&heap[child + 1], &heap[child])) child++;
        if (!is_behind(&heap[child], &moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void offer(best_pairs *best, ranked_pair one)
{
    ranked_pair *heap = best->pair;
    int64_t at = best->count;
    if (best->count == best->most) {
        if (!is_behind(&heap[0], &one)) return;
        heap[0] = one;
        sink(best);
    } else {
        for (best->count++; at > 0 && is_behind(&one, &heap[(at - 1) / 2]); at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
        heap[at] = one;
    }
    if (best->count == best->most) {
#pragma omp atomic write
        best->bound = heap[0].score;
    }
}

/* The scores of rows `first` and on with all rows; each pair is looked at in its lower row. */
static void look_through(const sp_dense *scores, int64_t first, const sp_csr *links, const int32_t *node, int threads,
                         best_pairs *best)
{
    const sp_value_type type = value_type(scores->type);
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t i = 0; i < scores->rows; i++) {
        const int64_t row = first + i;
        double bound;
#pragma omp atomic read
        bound = best->bound;
        for (int64_t j = row + 1; j < scores->cols; j++) {
            const double found = load_value(scores->values, type, i * scores->stride + j);
            if (!(found >= bound) || gnn_has_entry(links, row, (int32_t)j)) continue;
#pragma omp critical(gnn_best_links)
            offer(best, (ranked_pair){found, gnn_pair_of(node[row], node[j])});
#pragma omp atomic read
            bound = best->bound;
        }
    }
}

/* Offers all pairs without a link, by tiles of rows. */
static sp_status look_at_all(gnn_trainer *t, const sp_dense *z, const sp_csr *links, const int32_t *node,
                             best_pairs *best)
{
    static const int64_t TILE = 1 << 24; /* numbers: 64 MB */
    const int64_t nodes = z->rows, tile = TILE / nodes < 1 ? 1 : TILE / nodes < nodes ? TILE / nodes : nodes;
    sp_dense there = {0}, here = {0};
    sp_status status;
    TRY(gnn_rows_create(t->engine, tile, nodes, z->type, &there));
    for (int64_t first = 0; first < nodes; first += tile) {
        const sp_dense rows = gnn_row_range(z, first, nodes - first < tile ? nodes - first : tile);
        there.rows = rows.rows;
        TRY(t->engine->backend->multiply(t->engine, false, true, 1, &rows, z, 0, &there));
        if (t->engine->space == SP_DEVICE) TRY(sp_dense_copy(t->context, &there, SP_HOST, &here));
        look_through(here.values ? &here : &there, first, links, node, sp_context_threads(t->context), best);
        sp_dense_free(t->context, &here);
    }
done:
    sp_dense_free(t->context, &there);
    return status;
}

/* Scores them again, as gnn_trainer_score_links does: sums of another product differ in the last bits. */
static sp_status write_best(gnn_trainer *t, const sp_dense *z, best_pairs *best, int32_t *pairs, float *probabilities)
{
    double *scores;
    sp_status status = sp_alloc(t->context, best->count, sizeof *scores, (void **)&scores);
    if (status != SP_OK) return status;
    for (int64_t k = 0; k < best->count; k++) gnn_nodes_of_pair(best->pair[k].pair, &pairs[2 * k], &pairs[2 * k + 1]);
    TRY(score_pairs(t, z, pairs, best->count, scores));
    for (int64_t k = 0; k < best->count; k++) best->pair[k].score = scores[k];
    qsort(best->pair, (size_t)best->count, sizeof *best->pair, best_first);
    for (int64_t k = 0; k < best->count; k++) {
        gnn_nodes_of_pair(best->pair[k].pair, &pairs[2 * k], &pairs[2 * k + 1]);
        probabilities[k] = (float)probability(best->pair[k].score);
    }
done:
    sp_free(t->context, scores);
    return status;
}

sp_status gnn_trainer_best_links(gnn_trainer *t, int64_t most, int32_t *pairs, float *probabilities, int64_t *count)
{
    const sp_dense *z;
    sp_csr links = {0};
    int32_t *node = NULL;
    best_pairs best = {.most = most, .bound = -INFINITY};
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status == SP_OK) status = sp_require(t->context, __func__, "pairs", pairs);
    if (status == SP_OK) status = sp_require(t->context, __func__, "probabilities", probabilities);
    if (status == SP_OK) status = sp_require(t->context, __func__, "count", count);
    if (status == SP_OK) status = check_prediction(t);
    if (status != SP_OK) return status;
    const int64_t nodes = t->data->graph.rows;
    if (most < 1)
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "the best %lld links; ask for one at least", (long long)most);
    TRY(sp_alloc(t->context, most, sizeof *best.pair, (void **)&best.pair));
    TRY(sp_alloc(t->context, nodes, sizeof *node, (void **)&node));
    for (int64_t i = 0; i < nodes; i++) node[gnn_trainer_row(t, i)] = (int32_t)i;
    TRY(gnn_link_graph(t->context, &t->data->graph, &links));
    TRY(gnn_trainer_outputs(t, &z));
    if (nodes > 0) TRY(look_at_all(t, z, &links, node, &best));
    TRY(write_best(t, z, &best, pairs, probabilities));
    *count = best.count;
done:
    sp_csr_free(t->context, &links);
    FREE_ALL(t->context, node, best.pair);
    return status;
}
