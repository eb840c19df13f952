/* Arcs as they are read.
 *
 * Arcs of formats with a pair a line take 8 bytes, 12 once weights differ, 16 in f64. Formats with many arcs a line are
 * packed: a tail and a count for each run, 4 bytes of head an arc, and a weight only if the text has one. An arc
 * written in two bytes then takes 4, and no text takes more than 3.4 times its bytes, including growth by an eighth: "a
 * b\n", a run of one arc, 12 bytes for 4; with a weight, "a b:5\n", 16 for 6, or in f64 20, 3.8 times. (METIS needs no
 * label before the first neighbour; see metis.c.)
 */
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "lines/arcs.h"

sp_status io_arcs_reserve(sp_context *context, io_arcs *arcs, int64_t needed)
{
    if (needed <= arcs->capacity) return SP_OK;
    const int64_t capacity = io_capacity_for(arcs->capacity, needed);
    sp_status status;
    TRY(io_grow(context, arcs->count, capacity, sizeof *arcs->tails, (void **)&arcs->tails));
    TRY(io_grow(context, arcs->count, capacity, sizeof *arcs->heads, (void **)&arcs->heads));
    if (!arcs->uniform)
        TRY(io_grow(context, arcs->count, capacity, io_value_size(arcs->values), &arcs->weights));
    arcs->capacity = capacity;
done:
    return status;
}

sp_status io_arcs_spread_weight(sp_context *context, io_arcs *arcs)
{
    if (!arcs->uniform) return SP_OK;
    sp_status status = io_grow(context, 0, arcs->capacity, io_value_size(arcs->values), &arcs->weights);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < arcs->count; i++) io_store_value(arcs->weights, arcs->values, i, arcs->weight);
    arcs->uniform = false;
    return SP_OK;
}

sp_status io_arcs_hand_over(sp_context *context, io_arcs *arcs, io_graph *graph)
{
    sp_status status = SP_OK;
    if (arcs->count > 0 && arcs->weight != 1) status = io_arcs_spread_weight(context, arcs);
    if (status != SP_OK) return status;
    graph->arcs = arcs->count;
    graph->tails = arcs->tails;
    graph->heads = arcs->heads;
    graph->weights = arcs->weights;
    graph->values = arcs->values;
    memset(arcs, 0, sizeof *arcs);
    return SP_OK;
}

void io_arcs_free(sp_context *context, io_arcs *arcs)
{
    FREE_ALL(context, arcs->tails, arcs->heads, arcs->weights);
    memset(arcs, 0, sizeof *arcs);
}

sp_status io_packed_reserve(sp_context *context, io_packed *arcs, int64_t count, int64_t runs, int64_t weights)
{
    sp_status status;
    TRY(io_reserve(context, arcs->count, count, sizeof *arcs->heads, &arcs->capacity, (void **)&arcs->heads));
    TRY(io_reserve(context, arcs->run_count, runs, sizeof *arcs->runs, &arcs->run_capacity, (void **)&arcs->runs));
    TRY(io_reserve(context, arcs->weight_count, weights, io_value_size(arcs->values), &arcs->weight_capacity,
                   &arcs->weights));
done:
    return status;
}

sp_status io_packed_hand_over(sp_context *context, io_packed *arcs, io_graph *graph)
{
    sp_status status = sp_alloc(context, 1, sizeof *arcs, (void **)&graph->packed);
    if (status != SP_OK) return status;
    graph->arcs = arcs->count;
    graph->values = arcs->values;
    *graph->packed = *arcs;
    memset(arcs, 0, sizeof *arcs);
    return SP_OK;
}

void io_packed_free(sp_context *context, io_packed *arcs)
{
    FREE_ALL(context, arcs->heads, arcs->runs, arcs->weights);
    memset(arcs, 0, sizeof *arcs);
}

bool io_packed_ones(const io_packed *arcs) { return arcs->weight_count == 0 && arcs->weight == 1; }
