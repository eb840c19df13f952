/* What the parts of test_gnn_model share. */
#ifndef TESTS_GNN_MODEL_SHARED_H
#define TESTS_GNN_MODEL_SHARED_H

#include "../gnn/internal.h"
#include "support.h"

/* Differences lose digits: those of 64 bits, over a step of 1e-5, keep as many as f64 has. */
typedef long double real;

extern size_t arena_used;

typedef struct mat {
    int64_t rows, cols;
    real *v;
} mat;

mat times(mat a, mat b);

enum { MOST_LAYERS = 3, SEED = 77 };

/* A model's data. Matrices are on the host; `sparse` features have a pattern or values. */
typedef struct example {
    gnn_model_options o;
    uint64_t seed;
    bool symmetric, sparse;
    sp_csr a[MOST_LAYERS], x_sparse;
    double *x; /* a.cols of the first x inputs */
    double *weights;
    const gnn_parameter *parameter;
    int parameters;
    bool training;
    int64_t step;
} example;

mat parameter(const example *e, int layer, const char *name);
/* Keeps the k largest numbers of each row, of equals those of lower columns, and drops some of them. */
mat largest(const example *e, int layer, mat p, int64_t k);
/* Sums, means or maxima of the rows of P over the neighbours. */
mat gather(const example *e, const sp_csr *a, mat p);
mat features_of(const example *e);

/* Of examples. */
enum { DROPOUT = 1, MAXK = 2, SINGLE = 4 };

typedef enum shape { SYMMETRIC, DIRECTED, SAMPLED, SHAPES } shape;

/* A random graph with weights, a node without edges, another with a loop. */
sp_csr random_graph(sp_context *host, test_random *random, int64_t nodes, bool symmetric);
/* `variant` 0: dense features, 1: sparse ones, 2: a pattern. Widths are drawn: both orders of products occur. */
example draw_example(sp_context *host, uint64_t seed, gnn_layer layer, int layers, shape kind, int variant,
                     int flags);
void free_example(sp_context *host, example *e);

/* A model with its blocks and features where the engine computes. */
typedef struct runner {
    sp_context *context;
    gnn_engine *engine;
    gnn_model *model;
    gnn_block *block[GNN_MAX_LAYERS];
    gnn_features x;
} runner;

/* Numbers of the model's type, doubles here. */
void to_space(runner *r, void *to, const double *from, int64_t count);
void to_host(runner *r, double *to, const void *from, int64_t count);
void rows_to_host(runner *r, double *to, const sp_dense *from);
void make_features(runner *r, const example *e);
runner open_runner(int device);
/* What load_runner made. */
void unload_runner(runner *r);
void free_runner(runner *r);
/* Draws all weights at random, biases too: e->weights and the model's. */
void draw_weights(runner *r, example *e);
void load_runner(runner *r, example *e);
runner make_runner(int device, example *e);
const char *describe(const example *e);
/* The logits are those of the formula. */
void compare_logits(runner *r, const example *e, const sp_dense *logits);
void check_forward(runner *r, const example *e);

extern int64_t kinks, differences;

/* d scalar / d weights[k] by central differences; NAN where a step of 1e-5 crosses a kink. */
double difference(const example *e, const double *direction, int64_t k, uint64_t centre, double step);
/* The gradients that the model holds are those of Σ logits ∘ direction. */
void compare_gradients(runner *r, const example *e, const double *direction);
/* A direction for the logits, on the host and, in *there, where the engine computes. */
double *draw_direction(runner *r, const example *e, sp_dense *there);
void check_gradients(runner *r, const example *e);

/* The tables of the parts. */
extern const test_entry layers_tests[], memory_tests[], optimizers_tests[], products_tests[];

#endif
