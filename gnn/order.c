/* Renumbers the nodes by community, once, before training. Rows of a community share most of their columns. As
 * neighbours they find these columns in the nearest cache, and their entries lie so close together that tensor cores
 * multiply them (tiles.c). Renumbering costs some 90 ns of a core an entry, half for the communities, half for
 * sorting the rows. An epoch gathers a row of features four times an entry.
 *
 * All memory is allocated before anything moves. Rows of features, labels and splits move in place.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- whether it pays ---------------------------------------------------------------------------------- */

/* Only large graphs earn the cost; products with sparse graphs mostly read the rows themselves. */
static const int64_t LEAST_ENTRIES = 10000000, LEAST_DEGREE = 50;
/* A first-level cache of 256 KB holds 8,192 sectors of 32 bytes: it can hold rows this near. */
enum { NEAR_NODES = 4096, SAMPLED = 64 };
/* The share of entries that must come near by the new numbers. */
static const double LEAST_GAIN = 0.1;

/* The share of entries (i, j) near the diagonal, in every 64th row; `place` NULL: as they are. */
static double near_share(const sp_csr *a, const int32_t *place)
{
    int64_t near = 0, all = 0;
    for (int64_t i = 0; i < a->rows; i += SAMPLED)
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
            const int64_t j = a->col_indices[k], apart = place ? (int64_t)place[i] - place[j] : i - j;
            near += llabs(apart) < NEAR_NODES;
            all++;
        }
    return all > 0 ? (double)near / (double)all : 0;
}

static bool is_large(const sp_csr *a) { return a->nnz >= LEAST_ENTRIES && a->nnz / LEAST_DEGREE >= a->rows; }

static bool has_positive_weights(const sp_csr *a)
{
    bool all = true;
    for (int64_t k = 0; a->values && all && k < a->nnz; k++)
        all = entry_value(a, k) > 0;
    return all;
}

/* ---- what is moved ------------------------------------------------------------------------------------ */

/* A permutation, its inverse, and one row of each of its cycles of more than one row. */
typedef struct numbering {
    int32_t *order, *place; /* row r was row order[r]; row i becomes row place[i] */
    int32_t *cycles;
    int64_t count;
} numbering;

static sp_status make_numbering(sp_context *context, const sp_csr *graph, numbering *n)
{
    const int64_t rows = graph->rows;
    uint8_t *seen = NULL;
    sp_status status;
    TRY(sp_csr_community_order(context, graph, &n->order));
    TRY(sp_alloc(context, rows, sizeof *n->place, (void **)&n->place));
    TRY(sp_alloc(context, rows, sizeof *n->cycles, (void **)&n->cycles));
    TRY(sp_calloc(context, rows, 1, (void **)&seen));
    for (int64_t r = 0; r < rows; r++) n->place[n->order[r]] = (int32_t)r;
    for (int64_t r = 0; r < rows; r++) {
        if (!seen[r] && n->order[r] != r) n->cycles[n->count++] = (int32_t)r;
        for (int64_t at = r; !seen[at]; at = n->order[at]) seen[at] = 1;
    }
done:
    sp_free(context, seen);
    return status;
}

static void free_numbering(sp_context *context, numbering *n)
{
    FREE_ALL(context, n->order, n->place, n->cycles);
}

/* Moves row order[r] of `size` bytes to row r, cycle after cycle. Threads move slices of all rows. */
static void move_rows(sp_context *context, const numbering *n, void *rows, int64_t stride, int64_t size)
{
    enum { SLICE = 128 };
    const int64_t slices = (size + SLICE - 1) / SLICE;
    if (!rows) return;
#pragma omp parallel for schedule(dynamic, 1) num_threads(sp_context_threads(context)) if (n->count * slices > 10000)
    for (int64_t s = 0; s < slices; s++) {
        const size_t length = (size_t)(size - s * SLICE < SLICE ? size - s * SLICE : SLICE);
        char *first = (char *)rows + s * SLICE, held[SLICE];
        for (int64_t c = 0; c < n->count; c++) {
            int64_t to = n->cycles[c];
            memcpy(held, first + to * stride, length);
            for (; n->order[to] != n->cycles[c]; to = n->order[to])
                memcpy(first + to * stride, first + n->order[to] * stride, length);
            memcpy(first + to * stride, held, length);
        }
    }
}

/* Sparse features keep their columns. */
static sp_status permute_features(sp_context *context, const numbering *n, const sp_csr *x, sp_csr *made)
{
    int32_t *columns;
    if (!x->row_offsets) return SP_OK;
    sp_status status = sp_alloc(context, x->cols, sizeof *columns, (void **)&columns);
    if (status != SP_OK) return status;
    for (int64_t j = 0; j < x->cols; j++) columns[j] = (int32_t)j;
    status = sp_csr_permute(context, x, n->order, columns, made);
    sp_free(context, columns);
    return status;
}

static sp_status move_all(sp_context *context, gnn_data *data, numbering *n)
{
    sp_csr graph = {0}, sparse = {0};
    const sp_dense *x = &data->features.dense;
    sp_status status;
    TRY(permute_features(context, n, &data->features.sparse, &sparse));
    TRY(sp_csr_permute(context, &data->graph, n->order, n->place, &graph));
    sp_csr_free(context, &data->graph);
    data->graph = graph;
    if (sparse.row_offsets) {
        sp_csr_free(context, &data->features.sparse);
        data->features.sparse = sparse;
        sparse = (sp_csr){0};
    }
    move_rows(context, n, x->values, x->stride * (int64_t)sizeof(float), x->cols * (int64_t)sizeof(float));
    move_rows(context, n, data->labels, sizeof *data->labels, sizeof *data->labels);
    move_rows(context, n, data->targets, data->classes, data->classes);
    move_rows(context, n, data->split, 1, 1);
    data->place = n->place;
    n->place = NULL;
done:
    sp_csr_free(context, &sparse);
    return status;
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

/* With MaxK an entry gathers 80 bytes: the H200 trains Reddit's shape in 10.5 ms an epoch, by communities in 9.9.
 * Renumbering takes 0.8 s, more than this gains in 1,000 epochs. */
gnn_order gnn_order_for(const gnn_model_options *model, gnn_order order)
{
    return order == GNN_ORDER_AUTO && model && model->maxk > 0 ? GNN_ORDER_KEEP : order;
}

static const char *why_not(const gnn_data *data)
{
    const sp_csr *g = &data->graph;
    if (g->rows != g->cols || g->space != SP_HOST) return "only square graphs in host memory can be renumbered";
    if (data->place) return "the data are renumbered already";
    return has_positive_weights(g) ? NULL : "communities need positive weights, and this graph has others";
}

sp_status gnn_data_renumber(sp_context *context, gnn_data *data, gnn_order order)
{
    const bool automatic = order == GNN_ORDER_AUTO;
    numbering n = {0};
    sp_status status = sp_require(context, __func__, "data", data);
    if (status == SP_OK) status = sp_require_csr(context, __func__, "the graph", &data->graph);
    if (status != SP_OK) return status;
    if ((unsigned)order > GNN_ORDER_COMMUNITY)
        return sp_fail(context, SP_ERROR_ARGUMENT, "there is no order %d", (int)order);
    if (order == GNN_ORDER_KEEP || (automatic && !is_large(&data->graph))) return SP_OK;
    const char *why = why_not(data);
    if (why) return automatic ? SP_OK : sp_fail(context, SP_ERROR_ARGUMENT, "%s", why);
    TRY(make_numbering(context, &data->graph, &n));
    if (!automatic || near_share(&data->graph, n.place) >= near_share(&data->graph, NULL) + LEAST_GAIN)
        TRY(move_all(context, data, &n));
done:
    free_numbering(context, &n);
    return automatic && status == SP_ERROR_HOST_MEMORY ? SP_OK : status;
}
