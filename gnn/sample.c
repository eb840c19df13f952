/* Bulk sampling by matrices (Tripathy et al., "Distributed matrix-based sampling for graph neural network training",
 * 2024; Li et al., section V.C). The minibatches of a bulk are stacked. Q selects the rows that a layer computes:
 *   P = Q·A        what can be drawn;
 *   SAMPLE(P, s)   s draws without replacement from each row;
 *   EXTRACT        the rows and columns drawn, columns numbered within their minibatch: the nodes of the layer above
 *                  first, in their order, then the new ones by ascending number;
 * and its columns are the rows of the layer below.
 *
 * Node-wise, Q has one entry a row, so P consists of rows of A; it is never formed. s of a node's neighbours are
 * drawn, each set of s with the same probability, and their values are multiplied by neighbours / s; or by value, as
 * the nodes of a layer below. The diagonal entry is kept as it is.
 *
 * Layer-wise, Q has a row a minibatch and P = Q·(A ∘ A), a product of libsparse. FastGCN's weights do not depend on
 * the batch; there P is only a pattern, as in the authors' code, which leaves out nodes without a neighbour in the
 * batch. The nodes of the layer above are columns in any case. s others are drawn one after another with
 * probabilities proportional to the remaining weights, and their columns are divided by the probability that the
 * sample contains them. LADIES draws from all nodes and divides by s · p, as if it drew with replacement, which makes
 * columns of large p too light. Rows are then scaled to their sum in A (in LADIES to one). Rows of clusters, which
 * lose their edges to other clusters, are scaled as well.
 *
 * The minibatches have the same bits for any bulk, number of threads and back end. In the memory of a bulk each
 * minibatch begins with its list of nodes; the lists of its layers are beginnings of that list. */
#include "sample.h"

/* ---- a bulk ------------------------------------------------------------------------------------------- */

/* The memory of minibatches that were drawn together. */
struct gnn_bulk {
    int64_t users; /* minibatches that are not freed yet */
    sp_space space;
    char *memory;
};

/* Block l from the top: its rows are lists[l], its columns lists[l + 1]. */
typedef struct bulk {
    int layers; /* that are drawn; for clusters one, used for all layers */
    gnn_lists lists[GNN_MAX_LAYERS + 1];
    gnn_drawn drawn[GNN_MAX_LAYERS];
    gnn_target *targets;
} bulk;

static sp_status create_lists(const gnn_sampler *s, int64_t count, gnn_lists *lists)
{
    *lists = (gnn_lists){.count = count};
    const sp_status status =
        sp_alloc(s->context, count + 1, sizeof *lists->first, (void **)&lists->first);
    return status == SP_OK ? gnn_sample_array(s, count + 1, sizeof *lists->first, &lists->first_there) : status;
}

static void free_lists(const gnn_sampler *s, gnn_lists *lists)
{
    sp_free(s->context, lists->first);
    gnn_sample_array_free(s, lists->first_there);
    gnn_sample_array_free(s, lists->nodes);
    memset(lists, 0, sizeof *lists);
}

static void free_bulk(const gnn_sampler *s, bulk *b)
{
    b->lists[0].nodes = NULL; /* the pass's */
    for (int l = 0; l <= GNN_MAX_LAYERS; l++) free_lists(s, &b->lists[l]);
    for (int l = 0; l < GNN_MAX_LAYERS; l++) {
        gnn_sample_array_free(s, b->drawn[l].offsets);
        sp_free(s->context, b->drawn[l].first);
        gnn_sample_array_free(s, b->drawn[l].cols);
        gnn_sample_array_free(s, b->drawn[l].at);
        gnn_sample_array_free(s, b->drawn[l].thresholds);
        gnn_sample_array_free(s, b->drawn[l].scale);
    }
    sp_free(s->context, b->targets);
}

void gnn_sample_free_marks(gnn_sampler *s)
{
    gnn_sample_array_free(s, s->place);
    gnn_sample_array_free(s, s->known);
    gnn_sample_array_free(s, s->drawn);
    s->place = NULL;
    s->known = s->drawn = NULL;
    s->lists = 0;
}

static sp_status create_marks(gnn_sampler *s, int64_t lists)
{
    sp_status status = SP_OK;
    if (lists <= s->lists) return SP_OK;
    gnn_sample_free_marks(s);
    TRY(gnn_sample_array(s, lists * s->a.rows, sizeof *s->place, &s->place));
    TRY(gnn_sample_array(s, lists * s->words, sizeof *s->known, &s->known));
    TRY(gnn_sample_array(s, lists * s->words, sizeof *s->drawn, &s->drawn));
    TRY(s->backend->clear(s, lists));
    s->lists = lists;
done:
    if (status != SP_OK) gnn_sample_free_marks(s);
    return status;
}

/* ---- layers ------------------------------------------------------------------------------------------- */

/* The columns of a layer: its rows' nodes, then the nodes that were drawn. */
static sp_status grow_lists(gnn_sampler *s, const gnn_lists *rows, gnn_lists *columns)
{
    gnn_lists fresh = {0};
    sp_status status;
    TRY(create_lists(s, rows->count, &fresh));
    TRY(s->backend->list(s, true, &fresh));
    TRY(create_lists(s, rows->count, columns));
    for (int64_t m = 0; m <= rows->count; m++) columns->first[m] = rows->first[m] + fresh.first[m];
    TRY(gnn_sample_array(s, columns->first[rows->count], sizeof *columns->nodes, &columns->nodes));
    TRY(s->backend->grow(s, rows, &fresh, columns));
done:
    free_lists(s, &fresh);
    return status;
}

/* Where each minibatch's entries begin, for the host. Waits for the device. */
static sp_status read_sizes(gnn_sampler *s, const gnn_lists *rows, gnn_drawn *drawn)
{
    if (drawn->first) return SP_OK;
    const sp_status status =
        sp_alloc(s->context, rows->count + 1, sizeof *drawn->first, (void **)&drawn->first);
    return status == SP_OK ? s->backend->sizes(s, rows, drawn) : status;
}

/* On a device, up to this fan-out there is room for all that rows can give, so that nothing waits for the exact size.
 */
enum { MOST_SPARED = 32 };

static sp_status draw_entries(gnn_sampler *s, const gnn_lists *rows, int layer, gnn_drawn *drawn)
{
    const int64_t count = rows->first[rows->count], fanout = s->options.fanout[layer];
    int64_t entries = fanout <= MOST_SPARED ? count * (fanout + 1) : 0;
    sp_status status;
    TRY(gnn_sample_array(s, count + 1, sizeof *drawn->offsets, &drawn->offsets));
    TRY(s->backend->count(s, rows, fanout, drawn));
    if (s->space == SP_HOST || s->options.kind != GNN_SAMPLE_NODE || fanout > MOST_SPARED) {
        TRY(read_sizes(s, rows, drawn));
        entries = drawn->first[rows->count];
    }
    TRY(gnn_sample_array(s, entries, sizeof *drawn->cols, &drawn->cols));
    if (s->a.values) TRY(gnn_sample_array(s, entries, sizeof *drawn->at, &drawn->at));
    if (s->a.values && s->options.kind == GNN_SAMPLE_NODE && s->options.by_value)
        TRY(gnn_sample_array(s, count, sizeof *drawn->thresholds, &drawn->thresholds));
    TRY(s->backend->draw(s, rows, s->next, layer, fanout, drawn));
done:
    return status;
}

/* Nodes of a layer for all rows of a minibatch together. */
static sp_status choose_columns(gnn_sampler *s, const gnn_lists *rows, int layer, gnn_lists *columns, double **scale)
{
    sp_context *context = s->context;
    const bool fastgcn = s->options.kind == GNN_SAMPLE_FASTGCN;
    const sp_spgemm_options how = {.semiring = fastgcn ? SP_OR_AND : SP_PLUS_TIMES};
    gnn_lists known = {0};
    sp_csr p = {0};
    double *thresholds = NULL;
    sp_status status;
    TRY(create_lists(s, rows->count, &known));
    TRY(s->backend->list(s, false, &known));
    const sp_csr q = {.rows = rows->count,
                      .cols = s->a.rows,
                      .nnz = known.first[rows->count],
                      .row_offsets = known.first_there,
                      .col_indices = known.nodes,
                      .value_type = s->a.value_type,
                      .space = s->space};
    TRY(sp_spgemm(context, &q, fastgcn ? &s->a : &s->squares, &how, &p, NULL));
    TRY(gnn_sample_array(s, rows->count, sizeof *thresholds, &thresholds));
    TRY(s->backend->choose(s, &p, s->next, layer, s->options.fanout[layer], thresholds));
    TRY(grow_lists(s, rows, columns));
    if (s->a.values) {
        TRY(gnn_sample_array(s, columns->first[rows->count], sizeof **scale, scale));
        TRY(s->backend->weigh(s, &p, thresholds, rows, columns, *scale));
    }
done:
    gnn_sample_array_free(s, thresholds);
    sp_csr_free(context, &p);
    free_lists(s, &known);
    return status;
}

static sp_status draw_layers(gnn_sampler *s, bulk *b)
{
    sp_status status = SP_OK;
    for (int l = 0; l < b->layers; l++) {
        gnn_drawn *drawn = &b->drawn[l];
        switch (s->options.kind) {
        case GNN_SAMPLE_NODE:
            TRY(draw_entries(s, &b->lists[l], l, drawn));
            TRY(grow_lists(s, &b->lists[l], &b->lists[l + 1]));
            break;
        case GNN_SAMPLE_LAYER:
        case GNN_SAMPLE_FASTGCN:
            TRY(choose_columns(s, &b->lists[l], l, &b->lists[l + 1], &drawn->scale));
            TRY(draw_entries(s, &b->lists[l], l, drawn));
            break;
        case GNN_SAMPLE_CLUSTER: TRY(draw_entries(s, &b->lists[l], l, drawn)); break;
        }
    }
done:
    return status;
}

/* ---- minibatches -------------------------------------------------------------------------------------- */

/* A piece of the bulk's memory, aligned to 256 bytes. With `base` NULL it is only counted. */
static void *piece(char *base, int64_t *used, int64_t count, size_t size)
{
    const int64_t begin = (*used + 255) / 256 * 256;
    *used = begin + count * (int64_t)size;
    return base ? base + begin : NULL;
}

/* The lists of the columns of block l. */
static const gnn_lists *columns_of(const bulk *b, int l)
{
    return b->lists[l + 1].count ? &b->lists[l + 1] : &b->lists[l]; /* of clusters: the rows */
}

/* Shapes and arrays of minibatch m. *used bytes of the bulk's memory at `base` are taken. */
static void lay_out(const gnn_sampler *s, const bulk *b, int64_t m, char *base, int64_t *used,
                    gnn_minibatch *minibatch)
{
    const gnn_lists *last = columns_of(b, b->layers - 1);
    const int layers = s->options.layers;
    *minibatch = (gnn_minibatch){.layers = layers, .batch_size = b->lists[0].first[m + 1] - b->lists[0].first[m]};
    minibatch->batch = piece(base, used, last->first[m + 1] - last->first[m], sizeof *minibatch->batch);
    for (int l = 0; l < layers; l++) {
        sp_csr *block = &minibatch->block[layers - 1 - l];
        minibatch->node[l] = minibatch->batch;
        if (l >= b->layers) {
            *block = minibatch->block[layers - 1];
        } else {
            const gnn_lists *rows = &b->lists[l], *columns = columns_of(b, l);
            block->rows = rows->first[m + 1] - rows->first[m];
            block->cols = columns->first[m + 1] - columns->first[m];
            block->nnz = b->drawn[l].first[m + 1] - b->drawn[l].first[m];
            block->row_offsets = piece(base, used, block->rows + 1, sizeof *block->row_offsets);
            block->col_indices = piece(base, used, block->nnz, sizeof *block->col_indices);
            block->value_type = s->a.value_type;
            block->space = s->space;
            if (s->a.values) block->values = piece(base, used, block->nnz, s->a.value_type == SP_F32 ? 4 : 8);
        }
        minibatch->edges += block->nnz;
    }
}

void gnn_minibatch_free(sp_context *context, gnn_minibatch *minibatch)
{
    if (!context || !minibatch) return;
    struct gnn_bulk *b = minibatch->bulk;
    memset(minibatch, 0, sizeof *minibatch);
    if (!b || --b->users > 0) return;
    sp_array_free(context, b->space, b->memory);
    sp_free(context, b);
}

void gnn_sample_drop(gnn_sampler *s)
{
    for (; s->ready_next < s->ready_count; s->ready_next++)
        gnn_minibatch_free(s->context, &s->ready[s->ready_next]);
    sp_free(s->context, s->ready);
    s->ready = NULL;
    s->ready_count = s->ready_next = 0;
}

/* Memory for the bulk's minibatches, which become the sampler's `ready`. */
static sp_status make_ready(gnn_sampler *s, const bulk *b)
{
    sp_context *context = s->context;
    const int64_t count = b->lists[0].count;
    struct gnn_bulk *made = NULL;
    gnn_minibatch *ready = NULL;
    int64_t used = 0;
    sp_status status;
    TRY(sp_calloc(context, 1, sizeof *made, (void **)&made));
    TRY(sp_alloc(context, count, sizeof *ready, (void **)&ready));
    for (int64_t m = 0; m < count; m++) lay_out(s, b, m, NULL, &used, &ready[m]);
    TRY(gnn_sample_array(s, used, 1, &made->memory));
    used = 0;
    for (int64_t m = 0; m < count; m++) {
        lay_out(s, b, m, made->memory, &used, &ready[m]);
        ready[m].bulk = made;
    }
    made->users = count;
    made->space = s->space;
    s->ready = ready;
    s->ready_count = count;
done:
    if (status != SP_OK) {
        FREE_ALL(context, ready, made);
    }
    return status;
}

static sp_status deliver(gnn_sampler *s, bulk *b)
{
    const int64_t count = b->lists[0].count;
    sp_status status;
    for (int l = 0; l < b->layers; l++) TRY(read_sizes(s, &b->lists[l], &b->drawn[l]));
    TRY(make_ready(s, b));
    TRY(sp_alloc(s->context, count, sizeof *b->targets, (void **)&b->targets));
    for (int l = 0; l < b->layers; l++) {
        for (int64_t m = 0; m < count; m++) {
            const sp_csr *block = &s->ready[m].block[s->options.layers - 1 - l];
            b->targets[m] = (gnn_target){block->row_offsets, block->col_indices, block->values, s->ready[m].batch};
        }
        TRY(s->backend->finish(s, &b->lists[l], columns_of(b, l), &b->drawn[l], s->options.fanout[l],
                               b->targets));
    }
    TRY(s->backend->leave(s, columns_of(b, b->layers - 1), b->targets));
done:
    return status;
}

sp_status gnn_sample_bulk(gnn_sampler *s, int64_t count)
{
    bulk b = {.layers = s->options.kind == GNN_SAMPLE_CLUSTER ? 1 : s->options.layers};
    sp_status status;
    TRY(create_marks(s, count));
    TRY(create_lists(s, count, &b.lists[0]));
    for (int64_t m = 0; m <= count; m++) b.lists[0].first[m] = s->first[s->next + m] - s->first[s->next];
    b.lists[0].nodes = s->nodes + s->first[s->next];
    TRY(s->backend->enter(s, &b.lists[0]));
    TRY(draw_layers(s, &b));
    TRY(deliver(s, &b));
    s->next += count;
done:
    free_bulk(s, &b);
    if (status != SP_OK) { /* the marks are in an unknown state */
        gnn_sample_drop(s);
        gnn_sample_free_marks(s);
    }
    return status;
}
