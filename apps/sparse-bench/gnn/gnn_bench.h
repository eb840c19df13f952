/* sparse-bench gnn: what its parts share. A case is a graph with features: full-batch training of every model asked for
 * (gnn.c), aggregation of sparsified features in the ways of Li et al., Table II (aggregate.c), bulk sampling,
 * and training by its minibatches (sample.c), all reported by report.c. Or one pass of every model as files
 * (export.c). */
#ifndef BENCH_GNN_H
#define BENCH_GNN_H

#include "base/random.h"
#include "gnn.h"
#include "sparse-bench/spmm/spmm_bench.h"

/* GNN_BENCH_HEADS: of GAT's first layer, which share the columns. */
enum { MAX_MAXK = 8, GNN_BENCH_HEADS = 8 };

typedef struct gnn_options {
    bench_options common;
    option_counts widths;               /* columns between the layers */
    option_counts maxk;
    int64_t feature_count, class_count; /* of generated graphs */
    unsigned models;                    /* a bit a gnn_layer */
    unsigned orders;                    /* a bit a gnn_order, in which models are trained */
    bool keep, half, aggregate, sample, minibatches;
    const char *export;                 /* a folder, NULL: nothing is exported */
} gnn_options;

/* ---- what is found out --------------------------------------------------------------------------------- */

/* A model of two layers on the whole graph. */
typedef struct gnn_training {
    gnn_layer layer;
    int64_t hidden, maxk;
    bool keep; /* A·X of the first layer was computed once */
    bool half; /* numbers between operations are bf16 */
    bool renumbered; /* by community */
    candidate forward, epoch;
    double once_seconds; /* before the first epoch: plans, copies, recording an epoch; and an evaluation */
} gnn_training;

/* Kernels. A row of the table is one forward and one backward. */
enum {
    AGGREGATE_MAXK,          /* A · the kept entries, as compressed rows */
    AGGREGATE_MAXK_BACKWARD, /* the kept entries of A · G */
    AGGREGATE_HASH,          /* A · the kept entries, as SpGEMM by hashing without the stage that gathers ranges */
    AGGREGATE_HASH_AIA,      /* and with it */
    AGGREGATE_SPGEMM,        /* the same by our choice of SpGEMM */
    AGGREGATE_SPMM,          /* A · the dense rows, ours */
    AGGREGATE_CUSPARSE,      /* and with the best of cuSPARSE's algorithms */
    AGGREGATE_SELECT,        /* the k largest of each row */
    AGGREGATE_KERNELS
};

typedef struct gnn_aggregation {
    int64_t width, k, longest_row;
    candidate kernels[AGGREGATE_KERNELS];
} gnn_aggregation;

/* A pass over the training nodes. */
typedef struct gnn_sampling {
    int layers;
    int64_t fanout[GNN_MAX_LAYERS], batch, minibatches, edges;
    candidate pass;
} gnn_sampling;

/* Training of GraphSAGE by minibatches: an epoch, and seconds of its phases in an epoch that waits between them. */
typedef struct gnn_minibatches {
    int64_t hidden, edges;
    bool half; /* numbers between operations are bf16 */
    double phase[GNN_PHASES];
    candidate epoch;
} gnn_minibatches;

enum { MAX_FANOUTS = 4 };

typedef struct gnn_result {
    const char *name, *spec, *folder;
    int64_t nodes, edges, features, classes, training_nodes;
    bool symmetric;
    double order_seconds;    /* in which the nodes were renumbered for training, or found not to gain by it */
    gnn_training *trainings; /* as many as there are models, widths, orders and so on */
    gnn_aggregation *aggregations;
    gnn_sampling samplings[MAX_FANOUTS];
    gnn_minibatches minibatches[2 * MAX_WIDTHS]; /* with GNN_BATCH and the fan-outs of gnn_minibatch_fanout */
    int training_count, aggregation_count, sampling_count, minibatch_count;
} gnn_result;

/* ---- a case -------------------------------------------------------------------------------------------- */

typedef struct gnn_case {
    const gnn_options *options;
    const volatile int *interrupt;
    sp_context *host, *context;
    gnn_engine *engine;
    gnn_data *data;
    gnn_result *result;
} gnn_case;

sp_status gnn_run(sp_context *host, const gnn_options *options, const volatile int *interrupt, int *code);

/* The error of an aggregation above which it is wrong. */
#define GNN_TOLERANCE 1e-5
/* Both add to the result of the case; what fails becomes a word there. */
sp_status gnn_aggregate(gnn_case *c, int64_t width, int64_t k);
sp_status gnn_sample(gnn_case *c, const int64_t *fanout, int layers);
enum { GNN_BATCH = 1024, GNN_MINIBATCH_LAYERS = 2 };
extern const int64_t gnn_minibatch_fanout[GNN_MINIBATCH_LAYERS];
sp_status gnn_train_minibatches(gnn_case *c, int64_t hidden, bool half);

/* Writes a pass of every model to the folder that the options name (export.c). */
sp_status gnn_export(gnn_case *c);

/* ---- report -------------------------------------------------------------------------------------------- */

const char *layer_name(gnn_layer layer);
static inline int gnn_bench_heads(gnn_layer layer) { return layer == GNN_GAT ? GNN_BENCH_HEADS : 1; }
void gnn_report_result(const gnn_result *r);
sp_status gnn_report_json(sp_context *context, const machine *m, const gnn_options *options,
                          const gnn_result *results, int count);

#endif
