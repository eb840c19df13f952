/* The arcs of a graph: spread to one array for each part of an arc, or taken over as the rows of a matrix. */
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "lines/arcs.h"

enum { PARTS = 64 }; /* of packed arcs, worked on side by side: runs of about equally many arcs */

void io_graph_free_arcs(sp_context *context, io_graph *graph)
{
    FREE_ALL(context, graph->tails, graph->heads, graph->weights);
    if (graph->packed) io_packed_free(context, graph->packed);
    sp_free(context, graph->packed);
    graph->tails = graph->heads = NULL;
    graph->weights = NULL;
    graph->packed = NULL;
}

/* ---- packed arcs, part by part --------------------------------------------------------------------------- */

/* Where a part begins. */
typedef struct part {
    int64_t run, arc, weight;
} part;

/* parts[PARTS] is the end of all. */
static void divide(sp_context *context, const io_packed *arcs, part parts[PARTS + 1])
{
    const int64_t share = arcs->count / PARTS + 1;
    int64_t arc = 0, p = 0;
    for (int64_t r = 0; r < arcs->run_count; arc += arcs->runs[r++].count)
        while (p < PARTS && arc >= share * p) parts[p++] = (part){r, arc, 0};
    while (p <= PARTS) parts[p++] = (part){arcs->run_count, arc, 0};
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int i = 0; i < PARTS; i++)
        for (int64_t e = parts[i].arc; e < parts[i + 1].arc; e++) parts[i + 1].weight += arcs->heads[e] < 0;
    for (int i = 0; i < PARTS; i++) parts[i + 1].weight += parts[i].weight;
}

/* Gives each head of a part its plain number, and writes its weight if `weights` is not NULL. */
static void unpack_heads(io_packed *arcs, const part *from, void *weights)
{
    int64_t own = from->weight;
    for (int64_t e = from->arc; e < from[1].arc; e++) {
        const bool has_own = arcs->heads[e] < 0;
        if (weights)
            io_store_value(weights, arcs->values, e,
                           has_own ? load_value(arcs->weights, arcs->values, own) : arcs->weight);
        own += has_own;
        arcs->heads[e] = io_packed_head(arcs, e);
    }
}

/* Frees the packed arcs, except their heads, which have a new owner. */
static void drop_packed(sp_context *context, io_graph *graph)
{
    graph->packed->heads = NULL;
    io_packed_free(context, graph->packed);
    sp_free(context, graph->packed);
    graph->packed = NULL;
}

sp_status io_graph_spread(sp_context *context, io_graph *graph)
{
    io_packed *arcs = graph->packed;
    part parts[PARTS + 1];
    int32_t *tails = NULL;
    void *weights = NULL;
    sp_status status = SP_OK;
    if (!arcs) return SP_OK;
    if (arcs->count > 0) {
        TRY(io_grow(context, arcs->count, arcs->count, sizeof *arcs->heads, (void **)&arcs->heads));
        arcs->capacity = arcs->count;
        TRY(sp_alloc(context, arcs->count, sizeof *tails, (void **)&tails));
        if (!io_packed_ones(arcs)) TRY(sp_alloc(context, arcs->count, io_value_size(arcs->values), &weights));
    }
    divide(context, arcs, parts);
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int p = 0; p < PARTS; p++) {
        int64_t at = parts[p].arc;
        for (int64_t r = parts[p].run; r < parts[p + 1].run; r++)
            for (uint32_t k = 0; k < arcs->runs[r].count; k++) tails[at++] = arcs->runs[r].tail;
        unpack_heads(arcs, &parts[p], weights);
    }
    graph->tails = tails;
    graph->heads = arcs->heads;
    graph->weights = weights;
    drop_packed(context, graph);
    return SP_OK;
done:
    FREE_ALL(context, tails, weights);
    return status;
}

/* ---- the matrix ------------------------------------------------------------------------------------------ */

/* Whether tails do not descend and the heads of each tail ascend: then the arcs are rows already. */
static bool are_rows(sp_context *context, const io_packed *arcs, const part parts[PARTS + 1])
{
    int64_t others = 0;
#pragma omp parallel for schedule(static) reduction(+ : others) num_threads(sp_context_threads(context))
    for (int p = 0; p < PARTS; p++) {
        int64_t at = parts[p].arc;
        for (int64_t r = parts[p].run; r < parts[p + 1].run; r++) {
            const io_run *run = &arcs->runs[r];
            const int32_t before = r > 0 ? run[-1].tail : -1;
            others += before > run->tail ||
                      (before == run->tail && io_packed_head(arcs, at - 1) >= io_packed_head(arcs, at));
            for (const int64_t end = at++ + run->count; at < end; at++)
                others += io_packed_head(arcs, at - 1) >= io_packed_head(arcs, at);
        }
    }
    return others == 0;
}

/* Takes the heads over as columns. */
static sp_status take_rows(sp_context *context, io_graph *graph, const part parts[PARTS + 1], sp_csr *matrix)
{
    io_packed *arcs = graph->packed;
    int64_t *offsets = NULL;
    void *values = NULL;
    sp_status status;
    TRY(io_grow(context, arcs->count, arcs->count, sizeof *arcs->heads, (void **)&arcs->heads));
    arcs->capacity = arcs->count;
    TRY(sp_alloc(context, graph->nodes + 1, sizeof *offsets, (void **)&offsets));
    TRY(sp_alloc(context, arcs->count, io_value_size(arcs->values), &values));
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int p = 0; p < PARTS; p++) {
        int64_t at = parts[p].arc;
        for (int64_t r = parts[p].run; r < parts[p + 1].run; at += arcs->runs[r++].count)
            for (int64_t row = arcs->runs[r].tail; row > (r > 0 ? arcs->runs[r - 1].tail : -1); row--)
                offsets[row] = at;
        unpack_heads(arcs, &parts[p], values);
    }
    for (int64_t row = (int64_t)arcs->runs[arcs->run_count - 1].tail + 1; row <= graph->nodes; row++)
        offsets[row] = arcs->count;
    *matrix = (sp_csr){.rows = graph->nodes, .cols = graph->nodes, .nnz = arcs->count, .row_offsets = offsets,
                       .col_indices = arcs->heads, .values = values, .value_type = graph->values, .space = SP_HOST};
    drop_packed(context, graph);
    return SP_OK;
done:
    sp_free(context, offsets);
    return status;
}

sp_status io_graph_matrix(sp_context *context, io_graph *graph, bool by_heads, sp_combine combine, bool mirror,
                          sp_csr *matrix)
{
    const bool both_ways = graph->format == IO_METIS; /* the arcs are their own mirror images */
    sp_status status = SP_OK;
    memset(matrix, 0, sizeof *matrix);
    mirror = mirror && !both_ways;
    if (graph->packed && graph->arcs > 0 && (both_ways || !by_heads) && !mirror) {
        part parts[PARTS + 1];
        divide(context, graph->packed, parts);
        if (are_rows(context, graph->packed, parts)) return take_rows(context, graph, parts, matrix);
    }
    TRY(io_graph_spread(context, graph));
    TRY(sp_csr_from_coo(context, &(sp_coo){.rows = graph->nodes, .cols = graph->nodes, .count = graph->arcs,
                                           .row_indices = by_heads ? graph->heads : graph->tails,
                                           .col_indices = by_heads ? graph->tails : graph->heads,
                                           .values = graph->weights, .value_type = graph->values}, combine, mirror,
                        matrix));
    io_graph_free_arcs(context, graph);
done:
    return status;
}
