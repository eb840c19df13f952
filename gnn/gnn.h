/* gnn: graph neural networks that classify nodes. Layers (GCN, GraphSAGE, GIN, GAT), bulk sampling, training. The
 * sparse half is libsparse, the dense half BLAS (cuBLAS on CUDA); reads no file.
 *
 * Conventions are those of sparse.h. "The engine's space" is host memory for a CPU context, device memory for CUDA.
 * Seeds make runs repeatable: random numbers are functions of (seed, step, site, index), the same on both back ends.
 */
#ifndef GNN_H
#define GNN_H

#include "sparse.h"

/* ---- engine ------------------------------------------------------------------------------------------- */

/* What dense work needs beside a context: BLAS, random numbers, the step of training. Used by one thread at a time,
 * as its context, which it holds (sp_context_retain). What is made with an engine ends before it. */
typedef struct gnn_engine gnn_engine;

/* On CUDA loads cuBLAS at run time: SP_ERROR_NO_DEVICE, with the names that were tried, where there is none. */
sp_status gnn_engine_create(sp_context *context, uint64_t seed, gnn_engine **engine);
void gnn_engine_free(gnn_engine *engine);
sp_context *gnn_engine_context(const gnn_engine *engine);

/* The file of the BLAS that dense work on the CPU calls, where that is none of OpenBLAS, BLIS, MKL, ATLAS, FlexiBLAS,
 * Arm's and NVIDIA's; else NULL. With the reference BLAS dense layers take some 20 times as long as with those. */
const char *gnn_unknown_blas(void);

/* ---- data --------------------------------------------------------------------------------------------- */

typedef enum gnn_split { GNN_UNUSED, GNN_TRAIN, GNN_VALIDATION, GNN_TEST, GNN_SPLITS } gnn_split;

/* Features of nodes, a row a node: dense, or sparse (then dense.values is NULL). */
typedef struct gnn_features {
    sp_dense dense;
    sp_csr sparse;
} gnn_features;

/* A graph whose nodes are to be classified; all of it on the host. */
typedef struct gnn_data {
    sp_csr graph;          /* nodes x nodes: row i holds the nodes that i hears from; values are weights or NULL */
    gnn_features features; /* f32 */
    int64_t classes;
    int32_t *labels;       /* nodes; -1: unknown. NULL where a node can have several: */
    uint8_t *targets;      /* nodes x classes, 1 where the node has the class; NULL where labels are given */
    uint8_t *split;        /* nodes: a gnn_split each */
    int32_t *place;        /* node i stands in row place[i] of all of these; NULL: in row i (gnn_data_renumber) */
    const char *class_names; /* of all classes, a NUL after each, for saved models; NULL: none. The caller's */
} gnn_data;

/* Every promise of the struct, in the order in which one would fix them: square graph, as many feature rows as nodes,
 * no NaN or infinity, labels below `classes`, nodes of a split with known labels, a training node at least. Names the
 * first node that breaks one. O(nnz + features). */
sp_status gnn_data_check(sp_context *context, const gnn_data *data);
void gnn_data_free(sp_context *context, gnn_data *data);
/* Divides each row of features by the sum of its magnitudes; rows of zeros stay. */
sp_status gnn_data_normalise(sp_context *context, gnn_data *data);
/* Draws a split: `train` and `validation` nodes of each class (of all nodes, where targets are given), all others
 * with a known label for testing. A class with too few nodes gives what it has, half of it to train. */
sp_status gnn_data_draw_split(sp_context *context, gnn_data *data, int64_t train, int64_t validation, uint64_t seed);

typedef enum gnn_order {
    GNN_ORDER_AUTO,     /* by community, if the graph is large and dense and its neighbours come nearer by that */
    GNN_ORDER_KEEP,     /* node i in row i */
    GNN_ORDER_COMMUNITY
} gnn_order;

/* Moves rows, and the graph's columns with them, so that nodes of a community lie side by side
 * (sp_csr_community_order): products with the graph then read from the nearest cache what neighbouring rows have in
 * common. Only `place` tells: splits are drawn, clusters given to a trainer and predictions made for nodes as they
 * were. The same for any number of threads. Data that are renumbered already, or whose weights are not positive, are
 * refused (by AUTO left alone, as where memory does not suffice). O(nnz + features); holds a second graph. */
sp_status gnn_data_renumber(sp_context *context, gnn_data *data, gnn_order order);

/* ---- layers ------------------------------------------------------------------------------------------- */

typedef enum gnn_layer {
    GNN_GCN,      /* Y = Â·X·W + b, Â = D^-1/2 (A + I) D^-1/2            (Kipf and Welling 2017) */
    GNN_SAGE,     /* Y = X·W_self + mean(A, X)·W_neighbours + b         (Hamilton et al. 2017) */
    GNN_SAGE_MAX, /* Y = X·W_self + max(A, X)·W_neighbours + b */
    GNN_GIN,      /* Y = relu((A·X + X)·W_1 + b_1)·W_2 + b_2            (Xu et al. 2019, epsilon 0) */
    GNN_GAT       /* Y = Σ α_ij (X·W)_j + b, α = softmax over the row of A + I of leakyrelu(l_i + r_j) (Velickovic et
                     al. 2018); heads beside each other, averaged in the last layer */
} gnn_layer;

/* The matrix that a layer gathers with, made from the graph of gnn_data (host to host): Â for GCN (weights count, f32
 * or f64 by `type`), the pattern of A + I for GAT, of A without its diagonal for the others (SAGE of weighted graphs
 * takes them as unweighted). O(nnz). */
sp_status gnn_operator(sp_context *context, const sp_csr *graph, gnn_layer layer, sp_value_type type, sp_csr *matrix);

/* Whether every entry of a square matrix on the host has its mirror image of the same value. O(nnz), parallel. */
sp_status gnn_symmetric(sp_context *context, const sp_csr *matrix, bool *symmetric);

/* One layer's neighbourhoods, ready for products with it and with its transpose: rows are the nodes to compute,
 * columns the nodes that they hear from, of which the first `rows` are the rows' own. `matrix` is copied where it
 * lies outside the engine's space, else referred to: it must then outlive the block. A plan for the transpose is made
 * when a backward pass first needs it, and is the forward one where `symmetric` says that A = Aᵀ. */
typedef struct gnn_block gnn_block;
sp_status gnn_block_create(gnn_engine *engine, const sp_csr *matrix, gnn_layer layer, bool symmetric, int64_t width,
                           gnn_block **block);
/* On CUDA, for f32 models of GCN (graph without weights), SAGE and GIN without MaxK: sets the dense tiles of a
 * symmetric block apart, to be multiplied on tensor cores, with X as a sum of two f16 numbers (22 bits). Nothing
 * happens where too little of the matrix lies in such tiles; communities side by side have them
 * (gnn_data_renumber). */
sp_status gnn_block_split(gnn_block *block);
void gnn_block_free(gnn_block *block);

/* ---- models ------------------------------------------------------------------------------------------- */

enum { GNN_MAX_LAYERS = 16 };

typedef struct gnn_model_options {
    gnn_layer layer;
    int layers;               /* 1 .. GNN_MAX_LAYERS; 0: 2 */
    int64_t inputs, outputs;  /* features, classes */
    int64_t hidden;           /* columns between layers (GAT: of each head) */
    int heads, output_heads;  /* GAT; 0: 8 and 1 */
    double input_dropout;     /* of the features */
    double dropout;           /* of what goes from layer to layer; with maxk of P */
    double attention_dropout; /* GAT */
    int64_t maxk;             /* k > 0 (GCN, SAGE, GIN): in hidden layers neighbours hear P = MaxK(X·W + b), the k
                                 largest numbers of each row, and there is no ReLU: GCN Y = Â·P, SAGE Y = X·W_self +
                                 mean(A, P), GIN Y = (A·P + X·W_1 + b_1)·W_2 + b_2 (Peng et al. 2024) */
    sp_dense_type type;       /* f32, or f64 */
    bool keep_aggregated;     /* full batch of dense features without dropout: A·X of the first layer is computed once
                                 and kept, as long as the first block stays (not with maxk, which aggregates X·W) */
    bool half_gather;         /* f32 without maxk: what neighbours hear, if it has more than 32 columns, is rounded to
                                 bf16 in the products with A, forward and backward, which halves what they gather;
                                 products with dense features may read these in bf16, too, rounded once for as long
                                 as the first block stays; sums stay f32 (GCN, SAGE mean, GIN) */
    bool normalised;          /* says of the features that gnn_data_normalise was used; saved for those who predict */
} gnn_model_options;

/* One weight or bias among the parameters. */
typedef struct gnn_parameter {
    char name[32]; /* "layer1.weight" */
    int layer;     /* from 0 */
    int64_t rows, cols, offset; /* its first number among all */
} gnn_parameter;

/* Between layers ReLU (GAT: ELU) and dropout; the last layer gives logits. Weights start as Glorot and Bengio (2010)
 * say, biases at 0; those of GIN, whose sums grow with the number of neighbours, all uniform in ±1 / √inputs. */
typedef struct gnn_model gnn_model;
sp_status gnn_model_create(gnn_engine *engine, const gnn_model_options *options, gnn_model **model);
void gnn_model_free(gnn_model *model);
const gnn_model_options *gnn_model_shape(const gnn_model *model); /* with defaults filled in */
/* All parameters and their gradients lie one after another, `count` numbers of the model's type in the engine's
 * space. */
int64_t gnn_model_size(const gnn_model *model);
void *gnn_model_weights(gnn_model *model);
void *gnn_model_gradients(gnn_model *model);
const gnn_parameter *gnn_model_parameters(const gnn_model *model, int *count);

/* Logits of the rows of the last block: block[0] is the first layer's, `x` has a row for each of its columns, is of
 * the model's type (GNN_SAGE_MAX: dense) and lies in the engine's space. They belong to the model until its next
 * call; their stride may exceed their columns. Matrices that are given may have a stride too, for the last row as
 * well; one of whole 16 bytes is best. `training` turns dropout on. With the block that came last the same features
 * must come: plans for sparse ones, and what keep_aggregated and half_gather keep, stay until another block comes. */
sp_status gnn_model_forward(gnn_model *model, gnn_block *const *block, const gnn_features *x, bool training,
                            const sp_dense **logits);
/* Gradients of all parameters from that of the logits, after a forward pass with the same blocks and features. */
sp_status gnn_model_backward(gnn_model *model, gnn_block *const *block, const gnn_features *x,
                             const sp_dense *logits_gradient);

/* The order of nodes that suits a model: for AUTO with MaxK, whose rows are short, KEEP; else the order given. */
gnn_order gnn_order_for(const gnn_model_options *model, gnn_order order);

/* ---- optimizers --------------------------------------------------------------------------------------- */

typedef enum gnn_method { GNN_ADAM, GNN_ADAMW, GNN_SGD } gnn_method;

typedef struct gnn_optimizer_options {
    gnn_method method;
    double rate;              /* 0: 0.01 */
    double beta1, beta2;      /* 0: 0.9, 0.999; for SGD beta1 is the momentum (0: none) */
    double epsilon;           /* 0: 1e-8 */
    double decay;             /* weight decay: added to gradients (L2), or decoupled in AdamW */
    bool decay_first_layer;   /* only the first layer's parameters decay, as Kipf and Welling have it */
} gnn_optimizer_options;

typedef struct gnn_optimizer gnn_optimizer;
sp_status gnn_optimizer_create(gnn_model *model, const gnn_optimizer_options *options, gnn_optimizer **optimizer);
void gnn_optimizer_free(gnn_optimizer *optimizer);
/* One step down the model's gradients, in one pass over all parameters. */
sp_status gnn_optimizer_step(gnn_optimizer *optimizer);
sp_status gnn_optimizer_set_rate(gnn_optimizer *optimizer, double rate);
/* What must be kept to go on later: the moments, two arrays (SGD: one, or none) as long as the parameters, in the
 * engine's space, and how many steps were taken. */
int gnn_optimizer_state(gnn_optimizer *optimizer, void *moments[2], int64_t **steps);

/* ---- sampling ----------------------------------------------------------------------------------------- */

typedef enum gnn_sampler_kind {
    GNN_SAMPLE_NODE,    /* fanout[l] neighbours of every node, and the node itself where the matrix has it
                           (GraphSAGE) */
    GNN_SAMPLE_LAYER,   /* fanout[l] nodes a layer beside those of the layer above, drawn by the squares of their
                           weights to these (LADIES, Zou et al. 2019) */
    GNN_SAMPLE_FASTGCN, /* the same, drawn by the squares of their weights to all nodes (Chen et al. 2018) */
    GNN_SAMPLE_CLUSTER  /* whole clusters and the edges within them (Cluster-GCN, Chiang et al. 2019) */
} gnn_sampler_kind;

typedef struct gnn_sampler_options {
    gnn_sampler_kind kind;
    int layers;
    int64_t fanout[GNN_MAX_LAYERS]; /* fanout[0] of the nodes of the batch (the last layer), and on from there */
    int64_t batch;                  /* nodes a minibatch; clusters a minibatch for GNN_SAMPLE_CLUSTER */
    int64_t bulk;                   /* minibatches drawn together; 0: 64 on a device, two a thread on the CPU */
    const int32_t *clusters;        /* GNN_SAMPLE_CLUSTER: each node's (host, copied) */
} gnn_sampler_options;

/* One minibatch: block[l] are the neighbourhoods of layer l (0 the first to be computed), with values that make sums
 * over the sample estimate those over all neighbours (patterns stay patterns): without bias node-wise, otherwise with
 * each row's sum as it is in the matrix. node[l][j] is the graph's node behind column j of block[l]: nodes of the
 * next layer first, as they are there, then others ascending; the last block's rows are the batch. All in the
 * engine's space, in the memory of `bulk`, which is given back with the last minibatch that was drawn into it. */
typedef struct gnn_minibatch {
    int layers;
    sp_csr block[GNN_MAX_LAYERS];
    int32_t *node[GNN_MAX_LAYERS];
    int32_t *batch;     /* the graph's nodes behind the rows of the last block */
    int64_t batch_size;
    int64_t edges;      /* of all blocks */
    struct gnn_bulk *bulk;
} gnn_minibatch;

/* Matrix-based bulk sampling (Tripathy et al. 2024): rows of P = Q·A of several minibatches at once, distributions
 * out of them, s draws without replacement from each, and the rows and columns drawn. `matrix` is gnn_operator's; it
 * is copied where it lies outside the engine's space, else referred to: it must then outlive the sampler. Minibatches
 * do not depend on `bulk`, threads or the back end. */
typedef struct gnn_sampler gnn_sampler;
sp_status gnn_sampler_create(gnn_engine *engine, const sp_csr *matrix, const gnn_sampler_options *options,
                             gnn_sampler **sampler);
void gnn_sampler_free(gnn_sampler *sampler);
/* Begins a pass over `nodes` (host), shuffled by (seed, pass); for clusters over all clusters that hold one of them.
 * */
sp_status gnn_sampler_begin(gnn_sampler *sampler, const int32_t *nodes, int64_t count, int64_t pass);
/* The next minibatch, layers 0 when the pass is over. It belongs to the caller and may outlive the sampler. A bulk
 * that does not fit the memory is tried again in halves. */
sp_status gnn_sampler_next(gnn_sampler *sampler, gnn_minibatch *minibatch);
void gnn_minibatch_free(gnn_engine *engine, gnn_minibatch *minibatch);

/* ---- training ----------------------------------------------------------------------------------------- */

typedef struct gnn_trainer_options {
    gnn_model_options model;          /* inputs and outputs are filled in from the data */
    gnn_optimizer_options optimizer;
    bool sampled;                     /* by `sampler`, whose layers are the model's; else full batch */
    gnn_sampler_options sampler;
    int64_t epochs;                   /* 0: 200 */
    int64_t patience;                 /* ends after so many epochs without a lower validation loss; 0: never */
    int64_t evaluate_every;           /* epochs between evaluations on all splits; 0: 1 */
    int64_t loss_every;               /* epochs between readings of the loss, which wait for the device; 0: 1 */
    int64_t rate_step;                /* every so many epochs the rate is multiplied by rate_factor; 0: never */
    double rate_factor;
} gnn_trainer_options;

/* After an epoch. Losses are means over nodes, accuracies fractions of nodes (micro F1 where nodes have several
 * classes); NaN where not evaluated or a split is empty. */
typedef struct gnn_epoch {
    int64_t epoch; /* from 1 */
    double loss;   /* of training, with dropout; NaN where it was not read */
    double split_loss[GNN_SPLITS], accuracy[GNN_SPLITS];
    double seconds; /* of training, without evaluation */
    int64_t edges;  /* sampled */
} gnn_epoch;

/* A model, its optimizer and data. The best parameters, by validation loss (the last, without validation nodes), are
 * kept aside. Full batch on CUDA, an epoch is one CUDA graph. */
typedef struct gnn_trainer gnn_trainer;
/* `data` is what gnn_data_check passes, and must outlive the trainer. Without a split (NULL) it can only predict.
 * Sampled training and GNN_SAGE_MAX make sparse features dense. */
sp_status gnn_trainer_create(gnn_engine *engine, const gnn_data *data, const gnn_trainer_options *options,
                             gnn_trainer **trainer);
/* Begins anew with another seed, of the engine too, and the split that the data have now: as a trainer made with an
 * engine of that seed, but for the time, since graph and features stay where they are. After a failure a trainer can
 * only be freed. */
sp_status gnn_trainer_restart(gnn_trainer *trainer, uint64_t seed);
void gnn_trainer_free(gnn_trainer *trainer);
gnn_model *gnn_trainer_model(gnn_trainer *trainer);
/* Whether the data's graph is symmetric, values too. */
bool gnn_trainer_symmetric(const gnn_trainer *trainer);
/* The next epoch; *done is set when there is none after it. Where there was none left, epoch->epoch is 0.
 * SP_ERROR_NOT_FINITE when a loss is not a number. */
sp_status gnn_trainer_epoch(gnn_trainer *trainer, gnn_epoch *epoch, bool *done);
/* Takes the best parameters, those after this epoch (0: there are none but the present ones). */
sp_status gnn_trainer_finish(gnn_trainer *trainer);
int64_t gnn_trainer_best(const gnn_trainer *trainer);
/* The epochs that it has trained, those before it was resumed among them. */
int64_t gnn_trainer_epochs(const gnn_trainer *trainer);
/* Losses and accuracies of all splits with the present parameters, full batch. */
sp_status gnn_trainer_evaluate(gnn_trainer *trainer, gnn_epoch *epoch);
/* The class of every node (host, nodes entries, node by node wherever data->place has their rows), or with targets
 * nodes x classes of 0 and 1; and, if `scores` is not NULL, nodes x classes probabilities. */
sp_status gnn_trainer_predict(gnn_trainer *trainer, int32_t *classes, uint8_t *targets, float *scores);
/* All that is needed to go on, or to predict, as bytes with a checksum (host, sp_free); `best`: the best parameters
 * stand in for the present ones. Restoring into a trainer of another shape is refused and says what differs. */
sp_status gnn_trainer_save(gnn_trainer *trainer, bool best, void **bytes, int64_t *size);
sp_status gnn_trainer_restore(gnn_trainer *trainer, const void *bytes, int64_t size);

/* What saved bytes say of themselves. */
typedef struct gnn_saved {
    gnn_trainer_options options; /* of model and optimizer, to build a trainer from; all others are 0 */
    uint64_t seed;
    bool several;                /* nodes can have several classes */
    const char *class_names;     /* within the bytes, of options.model.outputs classes; NULL: none */
} gnn_saved;
sp_status gnn_saved_read(sp_context *context, const void *bytes, int64_t size, gnn_saved *saved);

#endif
