/* Bulk sampling by matrices (Tripathy et al., "Distributed matrix-based sampling for graph neural network training",
 * 2024; Li et al., section V.C). The minibatches of a bulk are stacked; with Q the rows that a layer computes, a
 * layer is
 *   P = Q·A        what can be drawn;
 *   SAMPLE(P, s)   s draws without replacement from each row;
 *   EXTRACT        the rows and columns drawn, columns numbered within their minibatch: the nodes of the layer above
 *                  first, as they are there, then the new ones by ascending number in the graph;
 * and its columns are the rows of the layer below.
 *
 * Node-wise, Q has a single one a row: P is rows of A, drawn from where they are and never formed. s of a node's
 * neighbours are drawn, each set of s with the same probability, and their values multiplied by neighbours / s. A
 * node's own entry, where the matrix has one, is not among them: it is kept as it is.
 *
 * Layer-wise, Q has a row a minibatch and P = Q·(A ∘ A), a product of libsparse (for FastGCN, whose weights do not
 * depend on the batch, only its pattern, as in the authors' code: a node that nobody hears from would be of no use).
 * The nodes of the layer above are columns anyway. s others are drawn, one after another with probabilities
 * proportional to the weights of those left, and their columns divided by the chance that the sample had to contain
 * them. LADIES draws from all, and divides by s · p as if it drew with replacement, which makes columns of large p
 * too light. As there, rows are then scaled, here to the sum that they have in A (in LADIES they sum to one). So are
 * rows of clusters, whose edges to other clusters are lost.
 *
 * Whatever the bulk, the threads or the back end, the same minibatches come out, bit by bit. In the memory of a bulk
 * the list of each minibatch's nodes comes first: the lists of its layers are beginnings of it. */
#include "sample.h"

/* Minibatches of a bulk unless the caller says. On a device a layer then has thousands of rows, and the waits for
 * sizes, one a layer of some 10 microseconds, cost less than a microsecond a minibatch. On the CPU two for each
 * thread, so that what is known of their nodes stays in the caches (a bulk of 64 takes 1.3 times as long). That takes
 * 4.25 bytes for each node and minibatch: at most 4 GiB. */
enum { DEVICE_BULK = 64, THREAD_BULK = 2, MOST_BULK = 65535 };
static const int64_t MARK_BYTES = (int64_t)4 << 30;

/* ---- a bulk ------------------------------------------------------------------------------------------- */

/* What the minibatches that were drawn together lie in. */
struct gnn_bulk {
    int64_t users; /* minibatches that are not freed yet */
    char *memory;
};

/* Block l from the top: its rows are lists[l], its columns lists[l + 1]. */
typedef struct bulk {
    int layers; /* that are drawn: for clusters one, which stands for all */
    gnn_lists lists[GNN_MAX_LAYERS + 1];
    gnn_drawn drawn[GNN_MAX_LAYERS];
    gnn_target *targets;
} bulk;

static sp_status create_array(const gnn_sampler *s, int64_t count, size_t size, void *array)
{
    return sp_array_create(s->engine->context, count, size, s->engine->space, (void **)array);
}

static void free_array(const gnn_sampler *s, void *array)
{
    sp_array_free(s->engine->context, s->engine->space, array);
}

/* A host array in the engine's space. */
static sp_status take_array(const gnn_sampler *s, int64_t count, size_t size, const void *from, void *array)
{
    const sp_status status = create_array(s, count, size, array);
    return status == SP_OK ? sp_array_copy(s->engine->context, count, size, *(void **)array, s->engine->space, from,
                                           SP_HOST)
                           : status;
}

static sp_status create_lists(const gnn_sampler *s, int64_t count, gnn_lists *lists)
{
    *lists = (gnn_lists){.count = count};
    const sp_status status =
        sp_alloc(s->engine->context, count + 1, sizeof *lists->first, (void **)&lists->first);
    return status == SP_OK ? create_array(s, count + 1, sizeof *lists->first, &lists->first_there) : status;
}

static void free_lists(const gnn_sampler *s, gnn_lists *lists)
{
    sp_free(s->engine->context, lists->first);
    free_array(s, lists->first_there);
    free_array(s, lists->nodes);
    memset(lists, 0, sizeof *lists);
}

static void free_bulk(const gnn_sampler *s, bulk *b)
{
    b->lists[0].nodes = NULL; /* the pass's */
    for (int l = 0; l <= GNN_MAX_LAYERS; l++) free_lists(s, &b->lists[l]);
    for (int l = 0; l < GNN_MAX_LAYERS; l++) {
        free_array(s, b->drawn[l].offsets);
        sp_free(s->engine->context, b->drawn[l].first);
        free_array(s, b->drawn[l].cols);
        free_array(s, b->drawn[l].at);
        free_array(s, b->drawn[l].scale);
    }
    sp_free(s->engine->context, b->targets);
}

static void free_marks(gnn_sampler *s)
{
    free_array(s, s->place);
    free_array(s, s->known);
    free_array(s, s->drawn);
    s->place = NULL;
    s->known = s->drawn = NULL;
    s->lists = 0;
}

static sp_status create_marks(gnn_sampler *s, int64_t lists)
{
    sp_status status = SP_OK;
    if (lists <= s->lists) return SP_OK;
    free_marks(s);
    GNN_TRY(create_array(s, lists * s->a.rows, sizeof *s->place, &s->place));
    GNN_TRY(create_array(s, lists * s->words, sizeof *s->known, &s->known));
    GNN_TRY(create_array(s, lists * s->words, sizeof *s->drawn, &s->drawn));
    GNN_TRY(s->backend->clear(s, lists));
    s->lists = lists;
done:
    if (status != SP_OK) free_marks(s);
    return status;
}

/* On a device, up to this fan-out room is made for all that the rows could give, so as not to wait for how much it
 * is. */
enum { MOST_SPARED = 32 };

/* ---- layers ------------------------------------------------------------------------------------------- */

/* Columns of the rows' layer, by the nodes that were drawn. */
static sp_status grow_lists(gnn_sampler *s, const gnn_lists *rows, gnn_lists *columns)
{
    gnn_lists fresh = {0};
    sp_status status;
    GNN_TRY(create_lists(s, rows->count, &fresh));
    GNN_TRY(s->backend->list(s, true, &fresh));
    GNN_TRY(create_lists(s, rows->count, columns));
    for (int64_t m = 0; m <= rows->count; m++) columns->first[m] = rows->first[m] + fresh.first[m];
    GNN_TRY(create_array(s, columns->first[rows->count], sizeof *columns->nodes, &columns->nodes));
    GNN_TRY(s->backend->grow(s, rows, &fresh, columns));
done:
    free_lists(s, &fresh);
    return status;
}

/* Where each minibatch's entries begin, for the host: which waits for the device. */
static sp_status read_sizes(gnn_sampler *s, const gnn_lists *rows, gnn_drawn *drawn)
{
    if (drawn->first) return SP_OK;
    const sp_status status =
        sp_alloc(s->engine->context, rows->count + 1, sizeof *drawn->first, (void **)&drawn->first);
    return status == SP_OK ? s->backend->sizes(s, rows, drawn) : status;
}

static sp_status draw_entries(gnn_sampler *s, const gnn_lists *rows, int layer, gnn_drawn *drawn)
{
    const int64_t count = rows->first[rows->count], fanout = s->options.fanout[layer];
    int64_t entries = fanout <= MOST_SPARED ? count * (fanout + 1) : 0;
    sp_status status;
    GNN_TRY(create_array(s, count + 1, sizeof *drawn->offsets, &drawn->offsets));
    GNN_TRY(s->backend->count(s, rows, fanout, drawn));
    if (s->engine->space == SP_HOST || s->options.kind != GNN_SAMPLE_NODE || fanout > MOST_SPARED) {
        GNN_TRY(read_sizes(s, rows, drawn));
        entries = drawn->first[rows->count];
    }
    GNN_TRY(create_array(s, entries, sizeof *drawn->cols, &drawn->cols));
    if (s->a.values) GNN_TRY(create_array(s, entries, sizeof *drawn->at, &drawn->at));
    GNN_TRY(s->backend->draw(s, rows, s->next, layer, fanout, drawn));
done:
    return status;
}

/* Nodes of a layer for all rows of a minibatch together. */
static sp_status choose_columns(gnn_sampler *s, const gnn_lists *rows, int layer, gnn_lists *columns, double **scale)
{
    sp_context *context = s->engine->context;
    const bool fastgcn = s->options.kind == GNN_SAMPLE_FASTGCN;
    const sp_spgemm_options how = {.semiring = fastgcn ? SP_OR_AND : SP_PLUS_TIMES};
    gnn_lists known = {0};
    sp_csr p = {0};
    double *thresholds = NULL;
    sp_status status;
    GNN_TRY(create_lists(s, rows->count, &known));
    GNN_TRY(s->backend->list(s, false, &known));
    const sp_csr q = {.rows = rows->count,
                      .cols = s->a.rows,
                      .nnz = known.first[rows->count],
                      .row_offsets = known.first_there,
                      .col_indices = known.nodes,
                      .value_type = s->a.value_type,
                      .space = s->engine->space};
    GNN_TRY(sp_spgemm(context, &q, fastgcn ? &s->a : &s->squares, &how, &p, NULL));
    GNN_TRY(create_array(s, rows->count, sizeof *thresholds, &thresholds));
    GNN_TRY(s->backend->choose(s, &p, s->next, layer, s->options.fanout[layer], thresholds));
    GNN_TRY(grow_lists(s, rows, columns));
    if (s->a.values) {
        GNN_TRY(create_array(s, columns->first[rows->count], sizeof **scale, scale));
        GNN_TRY(s->backend->weigh(s, &p, thresholds, rows, columns, *scale));
    }
done:
    free_array(s, thresholds);
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
            GNN_TRY(draw_entries(s, &b->lists[l], l, drawn));
            GNN_TRY(grow_lists(s, &b->lists[l], &b->lists[l + 1]));
            break;
        case GNN_SAMPLE_LAYER:
        case GNN_SAMPLE_FASTGCN:
            GNN_TRY(choose_columns(s, &b->lists[l], l, &b->lists[l + 1], &drawn->scale));
            GNN_TRY(draw_entries(s, &b->lists[l], l, drawn));
            break;
        case GNN_SAMPLE_CLUSTER: GNN_TRY(draw_entries(s, &b->lists[l], l, drawn)); break;
        }
    }
done:
    return status;
}

/* ---- minibatches -------------------------------------------------------------------------------------- */

/* A piece of the bulk's memory, from a multiple of 256 bytes on; `base` NULL only counts. */
static void *piece(char *base, int64_t *used, int64_t count, size_t size)
{
    const int64_t begin = (*used + 255) / 256 * 256;
    *used = begin + count * (int64_t)size;
    return base ? base + begin : NULL;
}

/* Where the columns of block l of the bulk are. */
static const gnn_lists *columns_of(const bulk *b, int l)
{
    return b->lists[l + 1].count ? &b->lists[l + 1] : &b->lists[l]; /* of clusters, the rows */
}

/* Shapes and arrays of minibatch m, of which the bulk's memory at `base` is used so far. */
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
            block->space = s->engine->space;
            if (s->a.values) block->values = piece(base, used, block->nnz, s->a.value_type == SP_F32 ? 4 : 8);
        }
        minibatch->edges += block->nnz;
    }
}

static void drop_ready(gnn_sampler *s)
{
    for (; s->ready_next < s->ready_count; s->ready_next++)
        gnn_minibatch_free(s->engine, &s->ready[s->ready_next]);
    sp_free(s->engine->context, s->ready);
    s->ready = NULL;
    s->ready_count = s->ready_next = 0;
}

/* Memory for the bulk's minibatches, which become the sampler's `ready`. */
static sp_status make_ready(gnn_sampler *s, const bulk *b)
{
    sp_context *context = s->engine->context;
    const int64_t count = b->lists[0].count;
    struct gnn_bulk *made = NULL;
    gnn_minibatch *ready = NULL;
    int64_t used = 0;
    sp_status status;
    GNN_TRY(sp_calloc(context, 1, sizeof *made, (void **)&made));
    GNN_TRY(sp_alloc(context, count, sizeof *ready, (void **)&ready));
    for (int64_t m = 0; m < count; m++) lay_out(s, b, m, NULL, &used, &ready[m]);
    GNN_TRY(create_array(s, used, 1, &made->memory));
    used = 0;
    for (int64_t m = 0; m < count; m++) {
        lay_out(s, b, m, made->memory, &used, &ready[m]);
        ready[m].bulk = made;
    }
    made->users = count;
    s->ready = ready;
    s->ready_count = count;
done:
    if (status != SP_OK) {
        sp_free(context, ready);
        sp_free(context, made);
    }
    return status;
}

static sp_status deliver(gnn_sampler *s, bulk *b)
{
    const int64_t count = b->lists[0].count;
    sp_status status;
    for (int l = 0; l < b->layers; l++) GNN_TRY(read_sizes(s, &b->lists[l], &b->drawn[l]));
    GNN_TRY(make_ready(s, b));
    GNN_TRY(sp_alloc(s->engine->context, count, sizeof *b->targets, (void **)&b->targets));
    for (int l = 0; l < b->layers; l++) {
        for (int64_t m = 0; m < count; m++) {
            const sp_csr *block = &s->ready[m].block[s->options.layers - 1 - l];
            b->targets[m] = (gnn_target){block->row_offsets, block->col_indices, block->values, s->ready[m].batch};
        }
        GNN_TRY(s->backend->finish(s, &b->lists[l], columns_of(b, l), &b->drawn[l], s->options.fanout[l],
                                   b->targets));
    }
    GNN_TRY(s->backend->leave(s, columns_of(b, b->layers - 1), b->targets));
done:
    return status;
}

static sp_status draw_bulk(gnn_sampler *s, int64_t count)
{
    bulk b = {.layers = s->options.kind == GNN_SAMPLE_CLUSTER ? 1 : s->options.layers};
    sp_status status;
    GNN_TRY(create_marks(s, count));
    GNN_TRY(create_lists(s, count, &b.lists[0]));
    for (int64_t m = 0; m <= count; m++) b.lists[0].first[m] = s->first[s->next + m] - s->first[s->next];
    b.lists[0].nodes = s->nodes + s->first[s->next];
    GNN_TRY(s->backend->enter(s, &b.lists[0]));
    GNN_TRY(draw_layers(s, &b));
    GNN_TRY(deliver(s, &b));
    s->next += count;
done:
    free_bulk(s, &b);
    if (status != SP_OK) { /* which marks are set nobody knows */
        drop_ready(s);
        free_marks(s);
    }
    return status;
}

sp_status gnn_sampler_next(gnn_sampler *s, gnn_minibatch *minibatch)
{
    sp_status status = SP_OK;
    if (s->ready_next == s->ready_count && s->next < s->minibatches) {
        const int64_t left = s->minibatches - s->next;
        drop_ready(s);
        for (;;) {
            status = draw_bulk(s, left < s->options.bulk ? left : s->options.bulk);
            const bool memory = status == SP_ERROR_DEVICE_MEMORY || status == SP_ERROR_HOST_MEMORY;
            if (!memory || s->options.bulk == 1 || left == 1) break;
            s->options.bulk = (left < s->options.bulk ? left : s->options.bulk) / 2;
        }
        if (status != SP_OK) return status;
    }
    memset(minibatch, 0, sizeof *minibatch);
    if (s->ready_next < s->ready_count) *minibatch = s->ready[s->ready_next++];
    return SP_OK;
}

void gnn_minibatch_free(gnn_engine *engine, gnn_minibatch *minibatch)
{
    struct gnn_bulk *b = minibatch->bulk;
    memset(minibatch, 0, sizeof *minibatch);
    if (!b || --b->users > 0) return;
    sp_array_free(engine->context, engine->space, b->memory);
    sp_free(engine->context, b);
}

/* ---- a pass ------------------------------------------------------------------------------------------- */

/* Nodes that are there, none of them twice; or the failure that names the first that is not. */
static sp_status check_nodes(const gnn_sampler *s, const int32_t *nodes, int64_t count)
{
    sp_context *context = s->engine->context;
    uint8_t *seen;
    if (count < 0 || (count > 0 && !nodes)) return sp_fail(context, SP_ERROR_ARGUMENT, "no nodes to sample for");
    sp_status status = sp_calloc(context, s->a.rows, sizeof *seen, (void **)&seen);
    for (int64_t i = 0; i < count && status == SP_OK; i++) {
        if (nodes[i] < 0 || nodes[i] >= s->a.rows)
            status = sp_fail(context, SP_ERROR_ARGUMENT, "node %d is to be sampled for and the graph has %lld nodes",
                             nodes[i], (long long)s->a.rows);
        else if (seen[nodes[i]]++)
            status = sp_fail(context, SP_ERROR_ARGUMENT, "node %d is to be sampled for twice", nodes[i]);
    }
    sp_free(context, seen);
    return status;
}

static void forget_pass(gnn_sampler *s)
{
    drop_ready(s);
    sp_free(s->engine->context, s->first);
    free_array(s, s->nodes);
    s->first = NULL;
    s->nodes = NULL;
    s->minibatches = s->next = 0;
}

static void forget_nodes(gnn_sampler *s)
{
    sp_free(s->engine->context, s->asked);
    free_array(s, s->asked_there);
    s->asked = s->asked_there = NULL;
}

/* Keeps the nodes, in the engine's space too: mostly the next pass is over the same ones, and comparing takes a tenth
 * of the time that checking and sending them takes. */
static sp_status take_nodes(gnn_sampler *s, const int32_t *nodes, int64_t count)
{
    sp_context *context = s->engine->context;
    const size_t bytes = (size_t)count * sizeof *nodes;
    if (s->asked && count == s->asked_count && (count == 0 || memcmp(nodes, s->asked, bytes) == 0)) return SP_OK;
    sp_status status = check_nodes(s, nodes, count);
    if (status != SP_OK) return status;
    forget_nodes(s);
    GNN_TRY(sp_alloc(context, count, sizeof *s->asked, (void **)&s->asked));
    GNN_TRY(take_array(s, count, sizeof *nodes, nodes, &s->asked_there));
    if (count) memcpy(s->asked, nodes, bytes);
    s->asked_count = count;
done:
    if (status != SP_OK) forget_nodes(s);
    return status;
}

/* The batches of the nodes, shuffled. */
static sp_status cut_nodes(gnn_sampler *s, int64_t pass, int64_t count)
{
    const int64_t batch = s->options.batch, minibatches = count / batch + (count % batch > 0);
    sp_status status;
    GNN_TRY(sp_alloc(s->engine->context, minibatches + 1, sizeof *s->first, (void **)&s->first));
    for (int64_t b = 0; b < minibatches; b++) s->first[b] = b * batch;
    s->first[minibatches] = count;
    GNN_TRY(create_array(s, count, sizeof *s->nodes, &s->nodes));
    GNN_TRY(s->backend->shuffle(s, pass, count, s->asked_there, s->nodes));
    s->minibatches = minibatches;
done:
    return status;
}

/* Clusters that hold one of the nodes, ascending. */
static sp_status find_clusters(gnn_sampler *s, int32_t *wanted, int64_t *count)
{
    uint8_t *chosen;
    const sp_status status = sp_calloc(s->engine->context, s->a.rows, sizeof *chosen, (void **)&chosen);
    if (status != SP_OK) return status;
    *count = 0;
    for (int64_t i = 0; i < s->asked_count; i++) chosen[s->asked[i]] = 1;
    for (int64_t c = 0; c < s->clusters; c++)
        for (int64_t k = s->cluster_first[c]; k < s->cluster_first[c + 1]; k++)
            if (chosen[s->cluster_nodes[k]]) {
                wanted[(*count)++] = (int32_t)c;
                break;
            }
    sp_free(s->engine->context, chosen);
    return status;
}

/* The batches of all nodes of the clusters that hold one of the nodes: clusters shuffled, their nodes ascending. */
static sp_status cut_clusters(gnn_sampler *s, int64_t pass)
{
    sp_context *context = s->engine->context;
    const sp_space space = s->engine->space;
    int32_t *wanted = NULL, *order = NULL, *there = NULL, *shuffled = NULL;
    int64_t clusters, minibatches = 0, used = 0;
    sp_status status;
    GNN_TRY(sp_alloc(context, s->clusters, sizeof *wanted, (void **)&wanted));
    GNN_TRY(sp_alloc(context, s->a.rows, sizeof *order, (void **)&order));
    GNN_TRY(sp_alloc(context, s->clusters / s->options.batch + 2, sizeof *s->first, (void **)&s->first));
    GNN_TRY(find_clusters(s, wanted, &clusters));
    GNN_TRY(take_array(s, clusters, sizeof *wanted, wanted, &there));
    GNN_TRY(create_array(s, clusters, sizeof *wanted, &shuffled));
    GNN_TRY(s->backend->shuffle(s, pass, clusters, there, shuffled));
    GNN_TRY(sp_array_copy(context, clusters, sizeof *wanted, wanted, SP_HOST, shuffled, space));
    for (int64_t c = 0; c < clusters; c++) {
        const int64_t begin = s->cluster_first[wanted[c]], size = s->cluster_first[wanted[c] + 1] - begin;
        if (c % s->options.batch == 0) s->first[minibatches++] = used;
        memcpy(order + used, s->cluster_nodes + begin, (size_t)size * sizeof *order);
        used += size;
    }
    s->first[minibatches] = used;
    GNN_TRY(take_array(s, used, sizeof *order, order, &s->nodes));
    s->minibatches = minibatches;
done:
    free_array(s, there);
    free_array(s, shuffled);
    sp_free(context, order);
    sp_free(context, wanted);
    return status;
}

sp_status gnn_sampler_begin(gnn_sampler *s, const int32_t *nodes, int64_t count, int64_t pass)
{
    sp_status status;
    GNN_TRY(take_nodes(s, nodes, count));
    forget_pass(s);
    s->pass = pass;
    GNN_TRY(s->options.kind == GNN_SAMPLE_CLUSTER ? cut_clusters(s, pass) : cut_nodes(s, pass, count));
done:
    return status;
}

/* ---- life --------------------------------------------------------------------------------------------- */

static sp_status check_options(gnn_engine *engine, const sp_csr *matrix, const gnn_sampler_options *options)
{
    sp_context *context = engine->context;
    if (matrix->rows != matrix->cols)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the matrix to sample from is %lld x %lld and must be square",
                       (long long)matrix->rows, (long long)matrix->cols);
    if ((int)options->kind < 0 || options->kind > GNN_SAMPLE_CLUSTER)
        return sp_fail(context, SP_ERROR_ARGUMENT, "there is no sampler %d", (int)options->kind);
    if (options->layers < 1 || options->layers > GNN_MAX_LAYERS)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a sampler for %d layers: 1 to %d are possible", options->layers,
                       GNN_MAX_LAYERS);
    if (options->batch < 1 || options->bulk < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "minibatches of %lld, %lld at once: both must be positive",
                       (long long)options->batch, (long long)options->bulk);
    for (int l = 0; l < options->layers && options->kind != GNN_SAMPLE_CLUSTER; l++)
        if (options->fanout[l] < 1)
            return sp_fail(context, SP_ERROR_ARGUMENT, "fan-out %lld in layer %d: it must be positive",
                           (long long)options->fanout[l], l + 1);
    if (options->kind != GNN_SAMPLE_CLUSTER) return SP_OK;
    if (!options->clusters) return sp_fail(context, SP_ERROR_ARGUMENT, "clusters are to be sampled and none given");
    for (int64_t i = 0; i < matrix->rows; i++)
        if (options->clusters[i] < 0 || options->clusters[i] >= matrix->rows)
            return sp_fail(context, SP_ERROR_ARGUMENT, "node %lld is in cluster %d: 0 to %lld are possible",
                           (long long)i, options->clusters[i], (long long)matrix->rows - 1);
    return SP_OK;
}

static double value_of(const sp_csr *matrix, int64_t k)
{
    if (!matrix->values) return 1;
    return matrix->value_type == SP_F32 ? (double)((const float *)matrix->values)[k]
                                        : ((const double *)matrix->values)[k];
}

/* Where column `row` stands in the row, or -1. */
static int32_t own_entry(const sp_csr *matrix, int64_t row)
{
    int64_t low = matrix->row_offsets[row], high = matrix->row_offsets[row + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (matrix->col_indices[middle] < row) low = middle + 1;
        else high = middle;
    }
    const bool found = low < matrix->row_offsets[row + 1] && matrix->col_indices[low] == row;
    return found ? (int32_t)(low - matrix->row_offsets[row]) : -1;
}

static sp_status find_own(gnn_sampler *s, const sp_csr *host)
{
    int32_t *own;
    bool any = false;
    sp_status status = sp_alloc(s->engine->context, host->rows, sizeof *own, (void **)&own);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < host->rows; i++) any |= (own[i] = own_entry(host, i)) >= 0;
    if (any) status = take_array(s, host->rows, sizeof *own, own, &s->own);
    sp_free(s->engine->context, own);
    return status;
}

static sp_status sum_rows(gnn_sampler *s, const sp_csr *host)
{
    double *sums;
    sp_status status = sp_alloc(s->engine->context, host->rows, sizeof *sums, (void **)&sums);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < host->rows; i++) {
        sums[i] = 0;
        for (int64_t k = host->row_offsets[i]; k < host->row_offsets[i + 1]; k++) sums[i] += fabs(value_of(host, k));
    }
    status = take_array(s, host->rows, sizeof *sums, sums, &s->sums);
    sp_free(s->engine->context, sums);
    return status;
}

static sp_status weigh_columns(gnn_sampler *s, const sp_csr *host)
{
    double *weights;
    sp_status status = sp_calloc(s->engine->context, host->cols, sizeof *weights, (void **)&weights);
    if (status != SP_OK) return status;
    for (int64_t k = 0; k < host->nnz; k++) weights[host->col_indices[k]] += value_of(host, k) * value_of(host, k);
    status = take_array(s, host->cols, sizeof *weights, weights, &s->weights);
    sp_free(s->engine->context, weights);
    return status;
}

static sp_status square_values(gnn_sampler *s, const sp_csr *host)
{
    void *squares;
    s->squares = s->a;
    if (!host->values) return SP_OK;
    const size_t size = host->value_type == SP_F32 ? sizeof(float) : sizeof(double);
    sp_status status = sp_alloc(s->engine->context, host->nnz, size, &squares);
    if (status == SP_OK) {
        for (int64_t k = 0; k < host->nnz; k++) {
            const double square = value_of(host, k) * value_of(host, k);
            if (host->value_type == SP_F32) ((float *)squares)[k] = (float)square;
            else ((double *)squares)[k] = square;
        }
        s->squares.values = NULL;
        status = take_array(s, host->nnz, size, squares, &s->squares.values);
    }
    sp_free(s->engine->context, squares);
    return status;
}

/* The nodes of each cluster, ascending; clusters are numbered from 0 to the highest, some may be empty. */
static sp_status group_nodes(gnn_sampler *s, const int32_t *clusters)
{
    const int64_t nodes = s->a.rows;
    sp_status status;
    for (int64_t i = 0; i < nodes; i++)
        if (clusters[i] >= s->clusters) s->clusters = clusters[i] + 1;
    GNN_TRY(sp_calloc(s->engine->context, s->clusters + 2, sizeof *s->cluster_first, (void **)&s->cluster_first));
    GNN_TRY(sp_alloc(s->engine->context, nodes, sizeof *s->cluster_nodes, (void **)&s->cluster_nodes));
    for (int64_t i = 0; i < nodes; i++) s->cluster_first[clusters[i] + 2]++;
    for (int64_t c = 0; c < s->clusters; c++) s->cluster_first[c + 2] += s->cluster_first[c + 1];
    for (int64_t i = 0; i < nodes; i++) s->cluster_nodes[s->cluster_first[clusters[i] + 1]++] = (int32_t)i;
done:
    return status;
}

/* What each kind of sampler knows beforehand, from the matrix on the host. */
static sp_status prepare(gnn_sampler *s, const sp_csr *host, const int32_t *clusters)
{
    sp_status status = SP_OK;
    const gnn_sampler_kind kind = s->options.kind;
    if (kind == GNN_SAMPLE_NODE) GNN_TRY(find_own(s, host));
    if (kind == GNN_SAMPLE_LAYER) GNN_TRY(square_values(s, host));
    if (kind == GNN_SAMPLE_FASTGCN) GNN_TRY(weigh_columns(s, host));
    if (kind == GNN_SAMPLE_CLUSTER) GNN_TRY(group_nodes(s, clusters));
    if (kind != GNN_SAMPLE_NODE && host->values) GNN_TRY(sum_rows(s, host));
done:
    return status;
}

static void choose_bulk(gnn_sampler *s)
{
    const int64_t fitting = MARK_BYTES / (4 * s->a.rows + 8 * s->words + 1);
    const int64_t usual =
        s->engine->space == SP_DEVICE ? DEVICE_BULK : THREAD_BULK * (int64_t)sp_context_threads(s->engine->context);
    if (s->options.bulk == 0) s->options.bulk = fitting < usual ? fitting : usual;
    if (s->options.bulk < 1) s->options.bulk = 1;
    if (s->options.bulk > MOST_BULK) s->options.bulk = MOST_BULK;
}

void gnn_sampler_free(gnn_sampler *s)
{
    if (!s) return;
    sp_context *context = s->engine->context;
    forget_pass(s);
    free_marks(s);
    if (s->squares.values != s->a.values) free_array(s, s->squares.values);
    sp_csr_free(context, &s->copy);
    free_array(s, s->own);
    free_array(s, s->sums);
    free_array(s, s->weights);
    sp_free(context, s->cluster_first);
    sp_free(context, s->cluster_nodes);
    forget_nodes(s);
    sp_free(context, s);
}

sp_status gnn_sampler_create(gnn_engine *engine, const sp_csr *matrix, const gnn_sampler_options *options,
                             gnn_sampler **sampler)
{
    sp_context *context = engine->context;
    gnn_sampler *s = NULL;
    sp_csr host = {0};
    sp_status status;
    *sampler = NULL;
    GNN_TRY(check_options(engine, matrix, options));
    GNN_TRY(sp_calloc(context, 1, sizeof *s, (void **)&s));
    s->engine = engine;
    s->backend = engine->backend->sample;
    s->options = *options;
    s->options.clusters = NULL;
    if (matrix->space != engine->space) GNN_TRY(sp_csr_copy(context, matrix, engine->space, &s->copy));
    s->a = s->copy.row_offsets ? s->copy : *matrix;
    s->words = (matrix->rows + 31) / 32;
    choose_bulk(s);
    if (matrix->space == SP_DEVICE) GNN_TRY(sp_csr_copy(context, matrix, SP_HOST, &host));
    GNN_TRY(prepare(s, matrix->space == SP_DEVICE ? &host : matrix, options->clusters));
    *sampler = s;
done:
    sp_csr_free(context, &host);
    if (status != SP_OK) gnn_sampler_free(s);
    return status;
}
