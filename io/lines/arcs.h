/* Arcs as they are read: an array for each part of an arc, or packed by tail. */
#ifndef IO_LINES_ARCS_H
#define IO_LINES_ARCS_H

#include "text/number.h"

/* A number of consecutive arcs with the same tail. */
typedef struct io_run {
    int32_t tail;
    uint32_t count;
} io_run;

typedef struct io_arcs {
    int64_t count, capacity;
    int32_t *tails, *heads;
    void *weights; /* not there while `uniform` */
    sp_value_type values;
    bool uniform; /* all weights are `weight` */
    double weight;
} io_arcs;

/* The same in less memory: a tail for each run, and weights only of the arcs that have another than `weight`. */
struct io_packed {
    int64_t count, capacity;
    int32_t *heads; /* ~head: the next of `weights` is its own */
    io_run *runs;
    int64_t run_count, run_capacity;
    void *weights;
    sp_value_type values;
    int64_t weight_count, weight_capacity;
    double weight;
};

static inline int32_t io_packed_head(const io_packed *arcs, int64_t arc)
{
    return arcs->heads[arc] < 0 ? ~arcs->heads[arc] : arcs->heads[arc];
}

sp_status io_arcs_reserve(sp_context *context, io_arcs *arcs, int64_t needed);
/* Gives each arc a weight of its own. */
sp_status io_arcs_spread_weight(sp_context *context, io_arcs *arcs);
/* Gives the arcs to the graph, without weights if all are 1. */
sp_status io_arcs_hand_over(sp_context *context, io_arcs *arcs, io_graph *graph);
void io_arcs_free(sp_context *context, io_arcs *arcs);
/* Room for this many arcs, runs and weights. */
sp_status io_packed_reserve(sp_context *context, io_packed *arcs, int64_t count, int64_t runs, int64_t weights);
sp_status io_packed_hand_over(sp_context *context, io_packed *arcs, io_graph *graph);
void io_packed_free(sp_context *context, io_packed *arcs);
/* Whether all weights are 1. */
bool io_packed_ones(const io_packed *arcs);
void io_graph_free_arcs(sp_context *context, io_graph *graph);

#endif
