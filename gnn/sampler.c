/* Samplers: what each kind prepares from the matrix, and passes over the nodes in a random order, cut into
 * minibatches. sample.c draws them. */
#include "sample.h"

/* Minibatches of a bulk by default. On a device a layer then has thousands of rows, and waiting for sizes, some 10 µs
 * a layer, costs less than 1 µs a minibatch. On the CPU two for each thread, so that the marks of their nodes stay in
 * the caches (a bulk of 64 takes 1.3 times as long). Marks take 4.25 bytes a node and minibatch, at most 4 GiB. */
enum { DEVICE_BULK = 64, THREAD_BULK = 2, MOST_BULK = 65535 };
static const int64_t MARK_BYTES = (int64_t)4 << 30;

/* ---- preparation ------------------------------------------------------------------------- */

/* The place of the diagonal entry within its row, or -1. */
static int32_t own_entry(const sp_csr *matrix, int64_t row)
{
    const int64_t end = matrix->row_offsets[row + 1];
    const int64_t place = lower_bound_i32(matrix->col_indices, matrix->row_offsets[row], end, (int32_t)row);
    const bool found = place < end && matrix->col_indices[place] == row;
    return found ? (int32_t)(place - matrix->row_offsets[row]) : -1;
}

static sp_status find_own(gnn_sampler *s, const sp_csr *host)
{
    int32_t *own;
    bool any = false;
    sp_status status = sp_alloc(s->context, host->rows, sizeof *own, (void **)&own);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < host->rows; i++) any |= (own[i] = own_entry(host, i)) >= 0;
    if (any) status = gnn_sample_place(s, host->rows, sizeof *own, own, &s->own);
    sp_free(s->context, own);
    return status;
}

static sp_status sum_rows(gnn_sampler *s, const sp_csr *host)
{
    double *sums;
    sp_status status = sp_alloc(s->context, host->rows, sizeof *sums, (void **)&sums);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < host->rows; i++) {
        sums[i] = 0;
        for (int64_t k = host->row_offsets[i]; k < host->row_offsets[i + 1]; k++)
            sums[i] += fabs(entry_value(host, k));
    }
    status = gnn_sample_place(s, host->rows, sizeof *sums, sums, &s->sums);
    sp_free(s->context, sums);
    return status;
}

static sp_status weigh_columns(gnn_sampler *s, const sp_csr *host)
{
    double *weights;
    sp_status status = sp_calloc(s->context, host->cols, sizeof *weights, (void **)&weights);
    if (status != SP_OK) return status;
    for (int64_t k = 0; k < host->nnz; k++)
        weights[host->col_indices[k]] += entry_value(host, k) * entry_value(host, k);
    status = gnn_sample_place(s, host->cols, sizeof *weights, weights, &s->weights);
    sp_free(s->context, weights);
    return status;
}

static sp_status square_values(gnn_sampler *s, const sp_csr *host)
{
    void *squares;
    s->squares = s->a;
    if (!host->values) return SP_OK;
    const size_t size = host->value_type == SP_F32 ? sizeof(float) : sizeof(double);
    sp_status status = sp_alloc(s->context, host->nnz, size, &squares);
    if (status == SP_OK) {
        for (int64_t k = 0; k < host->nnz; k++)
            store_value(squares, host->value_type, k, entry_value(host, k) * entry_value(host, k));
        s->squares.values = NULL;
        status = gnn_sample_place(s, host->nnz, size, squares, &s->squares.values);
    }
    sp_free(s->context, squares);
    return status;
}

/* The nodes of each cluster, ascending. Clusters are numbered from 0; some may be empty. */
static sp_status group_nodes(gnn_sampler *s, const int32_t *clusters)
{
    const int64_t nodes = s->a.rows;
    sp_status status;
    for (int64_t i = 0; i < nodes; i++)
        if (clusters[i] >= s->clusters) s->clusters = clusters[i] + 1;
    TRY(sp_calloc(s->context, s->clusters + 2, sizeof *s->cluster_first, (void **)&s->cluster_first));
    TRY(sp_alloc(s->context, nodes, sizeof *s->cluster_nodes, (void **)&s->cluster_nodes));
    for (int64_t i = 0; i < nodes; i++) s->cluster_first[clusters[i] + 2]++;
    for (int64_t c = 0; c < s->clusters; c++) s->cluster_first[c + 2] += s->cluster_first[c + 1];
    for (int64_t i = 0; i < nodes; i++) s->cluster_nodes[s->cluster_first[clusters[i] + 1]++] = (int32_t)i;
done:
    return status;
}

/* What each kind of sampler needs, from the matrix on the host. */
static sp_status prepare(gnn_sampler *s, const sp_csr *host, const int32_t *clusters)
{
    sp_status status = SP_OK;
    const gnn_sampler_kind kind = s->options.kind;
    if (kind == GNN_SAMPLE_NODE) TRY(find_own(s, host));
    if (kind == GNN_SAMPLE_LAYER) TRY(square_values(s, host));
    if (kind == GNN_SAMPLE_FASTGCN) TRY(weigh_columns(s, host));
    if (kind == GNN_SAMPLE_CLUSTER) TRY(group_nodes(s, clusters));
    if (kind != GNN_SAMPLE_NODE && host->values) TRY(sum_rows(s, host));
done:
    return status;
}

/* ---- a pass ------------------------------------------------------------------------------------------- */

/* Checks that the nodes exist and that none occurs twice. */
static sp_status check_nodes(const gnn_sampler *s, const int32_t *nodes, int64_t count)
{
    sp_context *context = s->context;
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
    gnn_sample_drop(s);
    sp_free(s->context, s->first);
    gnn_sample_array_free(s, s->nodes);
    s->first = NULL;
    s->nodes = NULL;
    s->minibatches = s->next = 0;
}

static void forget_nodes(gnn_sampler *s)
{
    sp_free(s->context, s->asked);
    gnn_sample_array_free(s, s->asked_there);
    s->asked = s->asked_there = NULL;
}

/* Keeps the nodes, also in the context's space: the next pass is mostly over the same ones, and comparing takes a
 * tenth of the time of checking and sending them. */
static sp_status take_nodes(gnn_sampler *s, const int32_t *nodes, int64_t count)
{
    sp_context *context = s->context;
    const size_t bytes = (size_t)count * sizeof *nodes;
    if (s->asked && count == s->asked_count && (count == 0 || memcmp(nodes, s->asked, bytes) == 0)) return SP_OK;
    sp_status status = check_nodes(s, nodes, count);
    if (status != SP_OK) return status;
    forget_nodes(s);
    TRY(sp_alloc(context, count, sizeof *s->asked, (void **)&s->asked));
    TRY(gnn_sample_place(s, count, sizeof *nodes, nodes, &s->asked_there));
    if (count) memcpy(s->asked, nodes, bytes);
    s->asked_count = count;
done:
    if (status != SP_OK) forget_nodes(s);
    return status;
}

/* to = from, shuffled unless the options keep the order; both in the context's space. */
static sp_status arrange(gnn_sampler *s, int64_t count, const int32_t *from, int32_t *to)
{
    if (s->options.in_order) return sp_array_copy(s->context, count, sizeof *to, to, s->space, from, s->space);
    return s->backend->shuffle(s, s->pass, count, from, to);
}

/* The batches of the nodes. */
static sp_status cut_nodes(gnn_sampler *s, int64_t count)
{
    const int64_t batch = s->options.batch, minibatches = count / batch + (count % batch > 0);
    sp_status status;
    TRY(sp_alloc(s->context, minibatches + 1, sizeof *s->first, (void **)&s->first));
    for (int64_t b = 0; b < minibatches; b++) s->first[b] = b * batch;
    s->first[minibatches] = count;
    TRY(gnn_sample_array(s, count, sizeof *s->nodes, &s->nodes));
    TRY(arrange(s, count, s->asked_there, s->nodes));
    s->minibatches = minibatches;
done:
    return status;
}

/* Clusters that hold one of the nodes, ascending. */
static sp_status find_clusters(gnn_sampler *s, int32_t *wanted, int64_t *count)
{
    uint8_t *chosen;
    const sp_status status = sp_calloc(s->context, s->a.rows, sizeof *chosen, (void **)&chosen);
    if (status != SP_OK) return status;
    *count = 0;
    for (int64_t i = 0; i < s->asked_count; i++) chosen[s->asked[i]] = 1;
    for (int64_t c = 0; c < s->clusters; c++)
        for (int64_t k = s->cluster_first[c]; k < s->cluster_first[c + 1]; k++)
            if (chosen[s->cluster_nodes[k]]) {
                wanted[(*count)++] = (int32_t)c;
                break;
            }
    sp_free(s->context, chosen);
    return status;
}

/* Batches of clusters that hold one of the nodes, with all their nodes: clusters arranged, nodes ascending. */
static sp_status cut_clusters(gnn_sampler *s)
{
    sp_context *context = s->context;
    int32_t *wanted = NULL, *order = NULL, *there = NULL, *shuffled = NULL;
    int64_t clusters, minibatches = 0, used = 0;
    sp_status status;
    TRY(sp_alloc(context, s->clusters, sizeof *wanted, (void **)&wanted));
    TRY(sp_alloc(context, s->a.rows, sizeof *order, (void **)&order));
    TRY(sp_alloc(context, s->clusters / s->options.batch + 2, sizeof *s->first, (void **)&s->first));
    TRY(find_clusters(s, wanted, &clusters));
    TRY(gnn_sample_place(s, clusters, sizeof *wanted, wanted, &there));
    TRY(gnn_sample_array(s, clusters, sizeof *wanted, &shuffled));
    TRY(arrange(s, clusters, there, shuffled));
    TRY(sp_array_copy(context, clusters, sizeof *wanted, wanted, SP_HOST, shuffled, s->space));
    for (int64_t c = 0; c < clusters; c++) {
        const int64_t begin = s->cluster_first[wanted[c]], size = s->cluster_first[wanted[c] + 1] - begin;
        if (c % s->options.batch == 0) s->first[minibatches++] = used;
        memcpy(order + used, s->cluster_nodes + begin, (size_t)size * sizeof *order);
        used += size;
    }
    s->first[minibatches] = used;
    TRY(gnn_sample_place(s, used, sizeof *order, order, &s->nodes));
    s->minibatches = minibatches;
done:
    gnn_sample_array_free(s, there);
    gnn_sample_array_free(s, shuffled);
    FREE_ALL(context, order, wanted);
    return status;
}

sp_status gnn_sampler_begin(gnn_sampler *s, const int32_t *nodes, int64_t count, uint64_t seed, int64_t pass)
{
    sp_status status = gnn_require(__func__, "sampler", s);
    if (status != SP_OK) return status;
    if (count < 0)
        return sp_fail(s->context, SP_ERROR_ARGUMENT, "%s: %lld nodes", __func__, (long long)count);
    if (count > 0) TRY(sp_require(s->context, __func__, "nodes", nodes));
    TRY(take_nodes(s, nodes, count));
    forget_pass(s);
    s->seed = seed;
    s->pass = pass;
    TRY(s->options.kind == GNN_SAMPLE_CLUSTER ? cut_clusters(s) : cut_nodes(s, count));
done:
    return status;
}

sp_status gnn_sampler_next(gnn_sampler *s, gnn_minibatch *minibatch)
{
    sp_status status = gnn_require(__func__, "sampler", s);
    if (status == SP_OK) status = sp_require(s->context, __func__, "minibatch", minibatch);
    if (status != SP_OK) return status;
    if (s->ready_next == s->ready_count && s->next < s->minibatches) {
        const int64_t left = s->minibatches - s->next;
        gnn_sample_drop(s);
        for (;;) {
            status = gnn_sample_bulk(s, left < s->options.bulk ? left : s->options.bulk);
            if (!gnn_lacks_memory(status) || s->options.bulk == 1 || left == 1) break;
            s->options.bulk = (left < s->options.bulk ? left : s->options.bulk) / 2;
        }
        if (status != SP_OK) return status;
    }
    memset(minibatch, 0, sizeof *minibatch);
    if (s->ready_next < s->ready_count) *minibatch = s->ready[s->ready_next++];
    return SP_OK;
}

/* ---- life --------------------------------------------------------------------------------------------- */

static sp_status check_options(sp_context *context, const sp_csr *matrix, const gnn_sampler_options *options)
{
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

static void choose_bulk(gnn_sampler *s)
{
    const int64_t fitting = MARK_BYTES / (4 * s->a.rows + 8 * s->words + 1);
    const int64_t usual =
        s->space == SP_DEVICE ? DEVICE_BULK : THREAD_BULK * (int64_t)sp_context_threads(s->context);
    if (s->options.bulk == 0) s->options.bulk = fitting < usual ? fitting : usual;
    if (s->options.bulk < 1) s->options.bulk = 1;
    if (s->options.bulk > MOST_BULK) s->options.bulk = MOST_BULK;
}

void gnn_sampler_free(gnn_sampler *s)
{
    if (!s) return;
    sp_context *context = s->context;
    forget_pass(s);
    gnn_sample_free_marks(s);
    if (s->squares.values != s->a.values) gnn_sample_array_free(s, s->squares.values);
    sp_csr_free(context, &s->copy);
    gnn_sample_array_free(s, s->own);
    gnn_sample_array_free(s, s->sums);
    gnn_sample_array_free(s, s->weights);
    FREE_ALL(context, s->cluster_first, s->cluster_nodes);
    forget_nodes(s);
    sp_free(context, s);
    sp_context_destroy(context);
}

/* The back end, and where its arrays lie. */
static void choose_backend(gnn_sampler *s)
{
    s->backend = &gnn_sample_cpu;
    s->space = SP_HOST;
#ifdef GNN_CUDA
    if (!sp_context_is_cuda(s->context)) return;
    s->backend = &gnn_sample_cuda;
    s->space = SP_DEVICE;
#endif
}

sp_status gnn_sampler_create(sp_context *context, const sp_csr *matrix, const gnn_sampler_options *options,
                             gnn_sampler **sampler)
{
    gnn_sampler *s = NULL;
    sp_csr host = {0};
    if (sampler) *sampler = NULL;
    sp_status status = sp_require_csr(context, __func__, "matrix", matrix);
    if (status == SP_OK) status = sp_require(context, __func__, "options", options);
    if (status == SP_OK) status = sp_require(context, __func__, "sampler", sampler);
    if (status != SP_OK) return status;
    TRY(check_options(context, matrix, options));
    TRY(sp_calloc(context, 1, sizeof *s, (void **)&s));
    sp_context_retain(context);
    s->context = context;
    choose_backend(s);
    s->options = *options;
    s->options.clusters = NULL;
    if (matrix->space != s->space) TRY(sp_csr_copy(context, matrix, s->space, &s->copy));
    s->a = s->copy.row_offsets ? s->copy : *matrix;
    s->words = (matrix->rows + 31) / 32;
    choose_bulk(s);
    if (matrix->space == SP_DEVICE) TRY(sp_csr_copy(context, matrix, SP_HOST, &host));
    TRY(prepare(s, matrix->space == SP_DEVICE ? &host : matrix, options->clusters));
    *sampler = s;
done:
    sp_csr_free(context, &host);
    if (status != SP_OK) gnn_sampler_free(s);
    return status;
}
