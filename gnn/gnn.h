/* gnn: graph neural networks that classify nodes or predict links: layers (GCN, GraphSAGE, GIN, GAT), bulk sampling,
 * training. Sparse work is done by libsparse, dense work by BLAS (cuBLAS on CUDA). Reads no file.
 *
 * Conventions are those of sparse.h. The space of a context and its engine is host memory for a CPU context and device
 * memory for a CUDA context. Runs are repeatable by their seeds: random numbers are functions of (seed, step, site,
 * index), the same on both back ends.
 *
 * On the CPU a call has finished when it returns. On CUDA a call whose results lie in host memory has finished, too
 * (gnn_trainer_epoch only if it reads the loss: `loss_every`). All that others write to device memory (logits,
 * gradients, parameters, blocks) may still be queued when they return, in the stream that the context had when the
 * engine was made.
 * Later calls with the engine, and kernels in that stream, run after this work. The arrays of minibatches are written
 * in the context's stream of the call. */
#ifndef GNN_H
#define GNN_H

#include "sparse.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- engine ------------------------------------------------------------------------------------------- */

/* The means of dense work beside a context: BLAS, random numbers, the training step. An engine holds its context
 * (sp_context_retain) and, like it, is used by one thread at a time. Free everything that was made with an engine
 * before the engine. */
typedef struct gnn_engine gnn_engine;

/* On CUDA this loads cuBLAS at run time. If there is no cuBLAS, the result is SP_ERROR_NO_DEVICE with a sentence that
 * has the names that were tried. */
sp_status gnn_engine_create(sp_context *context, uint64_t seed, gnn_engine **engine);
void gnn_engine_free(gnn_engine *engine);
sp_context *gnn_engine_context(const gnn_engine *engine);

/* The name of the BLAS that dense work on the CPU calls. If it is not known (not OpenBLAS, BLIS, MKL, ATLAS, FlexiBLAS,
 * Arm's or NVIDIA's), its file: with the reference BLAS dense layers take about 20 times as long. */
const char *gnn_blas(bool *known);

/* ---- data --------------------------------------------------------------------------------------------- */

typedef enum gnn_split { GNN_UNUSED, GNN_TRAIN, GNN_VALIDATION, GNN_TEST, GNN_SPLITS } gnn_split;

/* Features of nodes, a row a node: dense, or sparse (then dense.values is NULL). */
typedef struct gnn_features {
    sp_dense dense;
    sp_csr sparse;
} gnn_features;

/* How a split was drawn; all 0: it was not. */
typedef struct gnn_split_drawn {
    int64_t train, validation; /* nodes of each class, */
    double train_share, validation_share; /* or shares, if train is 0 */
    uint64_t seed, labels;     /* labels: a hash of those that it was drawn by */
} gnn_split_drawn;

/* Links to learn from and to judge by. A link is a pair of two nodes with an edge in either direction or in both. */
typedef struct gnn_links {
    int64_t linked[GNN_SPLITS];   /* links: those for training are the graph's; all 0: none were drawn */
    int64_t unlinked[GNN_SPLITS]; /* pairs without a link beside those for validation and test */
    int32_t *pair[GNN_SPLITS];    /* two nodes for each: the links, then the other pairs; in the original order of the
                                     nodes. NULL for training */
} gnn_links;

/* A graph whose nodes are to be classified, or whose links are to be predicted. All arrays lie in host memory. */
typedef struct gnn_data {
    sp_csr graph;          /* nodes x nodes: row i holds the nodes whose features i gathers; values are weights or
                              NULL */
    gnn_features features; /* f32 */
    int64_t classes;
    int32_t *labels;       /* nodes; -1: unknown. NULL if a node can have several classes */
    uint8_t *targets;      /* nodes x classes, 1 for each class of a node; NULL if there are labels */
    uint8_t *split;        /* nodes: one gnn_split each */
    gnn_split_drawn drawn;       /* how the split was, for saved models */
    gnn_links links;       /* drawn by gnn_data_draw_links; then labels, targets and split do not count */
    int32_t *place;        /* node i is in row place[i] of all of these; NULL: in row i (gnn_data_renumber) */
    const char *class_names, *feature_names; /* a NUL after each, for saved models; NULL: none. The caller's */
    const char *node_names; /* the same, for messages, in the original order */
} gnn_data;

/* Checks all that the struct promises: a square graph, as many feature rows as nodes, no NaN or infinity, labels below
 * `classes`, known labels for the nodes of a split, at least one training node. The sentence names the first node that
 * breaks a rule. O(nnz + features). */
sp_status gnn_data_check(sp_context *context, const gnn_data *data);
void gnn_data_free(sp_context *context, gnn_data *data);
/* Divides each row of features by the sum of its absolute values. Rows of zeros stay. */
sp_status gnn_data_normalise(sp_context *context, gnn_data *data);
/* Draws a split: `train` and `validation` nodes of each class (of all nodes, if targets are given); all others with a
 * known label are for testing. A class with too few nodes gives all it has, half of them to train. */
sp_status gnn_data_draw_split(sp_context *context, gnn_data *data, int64_t train, int64_t validation, uint64_t seed);
/* The same by shares of each class, above 0 and together at most 1: sizes are rounded to the nearest, but every class
 * has a node to train. */
sp_status gnn_data_draw_shares(sp_context *context, gnn_data *data, double train, double validation, uint64_t seed);
/* Draws links, shares of all that the graph has, together below 1: those for validation and for test leave the graph,
 * and get as many pairs beside them that have no link (fewer, where the graph is so dense that they are hard to find).
 * All other links are for training. Refuses data that are renumbered, or whose links were drawn. O(nnz log nnz). */
sp_status gnn_data_draw_links(sp_context *context, gnn_data *data, double validation, double test, uint64_t seed);
/* Draws the same split again. *same is false, and nothing changes, if it was not drawn, or by other labels. */
sp_status gnn_data_draw_again(sp_context *context, gnn_data *data, const gnn_split_drawn *drawn, bool *same);

typedef enum gnn_order {
    GNN_ORDER_AUTO,     /* by community, if the graph is large and dense and its neighbours move closer together */
    GNN_ORDER_KEEP,     /* node i in row i */
    GNN_ORDER_COMMUNITY
} gnn_order;

/* Renumbers rows, and the columns of the graph, so that nodes of a community are neighbours (sp_csr_community_order).
 * Products with the graph then find the rows that neighbouring rows share in the cache. Only `place` shows the change:
 * splits, clusters given to a trainer and predictions are by the original nodes. The result does not depend on the
 * number of threads. Data that are renumbered already, or whose weights are not positive, are refused; AUTO leaves them
 * as they are, also if memory does not suffice. O(nnz + features), with a second graph in memory. */
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

/* Makes the matrix that a layer multiplies by from the graph of gnn_data (host to host): Â for GCN (with weights, f32
 * or f64 by `type`), the pattern of A + I for GAT, the pattern of A without its diagonal for the others (SAGE ignores
 * weights). O(nnz). */
sp_status gnn_operator(sp_context *context, const sp_csr *graph, gnn_layer layer, sp_value_type type, sp_csr *matrix);

/* Whether every entry of a square host matrix has a mirror image with the same value. O(nnz), parallel. */
sp_status gnn_symmetric(sp_context *context, const sp_csr *matrix, bool *symmetric);

/* The neighbourhoods of one layer, ready for products with them and with their transpose. Rows are the nodes to
 * compute; columns are the nodes that they gather from, and the first `rows` columns are the rows' own nodes. A
 * `matrix` outside the engine's space is copied; otherwise the block refers to it, and it must outlive the block. The
 * plan for the transpose is made when a backward pass first needs it; if `symmetric` says that A = Aᵀ, it is the
 * forward plan. */
typedef struct gnn_block gnn_block;
sp_status gnn_block_create(gnn_engine *engine, const sp_csr *matrix, gnn_layer layer, bool symmetric, int64_t width,
                           gnn_block **block);
/* On CUDA, for f32 models of GCN (graph without weights), SAGE and GIN without MaxK: separates the dense tiles of a
 * symmetric block, to multiply them on tensor cores with X as a sum of two f16 numbers (22 bits). Does nothing if too
 * little of the matrix lies in such tiles. Renumbering by community makes such tiles (gnn_data_renumber). */
sp_status gnn_block_split(gnn_block *block);
void gnn_block_free(gnn_block *block);

/* ---- models ------------------------------------------------------------------------------------------- */

enum { GNN_MAX_LAYERS = 16 };

/* What becomes of the numbers between layers before activation and dropout: each is moved and scaled to mean 0 and
 * variance 1, then scaled and shifted by learned numbers, a pair a column. */
typedef enum gnn_norm {
    GNN_NORM_NONE,
    GNN_NORM_BATCH, /* over each column (Ioffe and Szegedy 2015). Passes that do not train use running means and
                       variances: these move a tenth of the way to those of each pass that does */
    GNN_NORM_LAYER  /* over each row (Ba et al. 2016) */
} gnn_norm;

/* What the logits are made of (Xu et al. 2018). With a jump all layers have `hidden` columns, activation and the rest,
 * and the logits are J·W + b, where J is made of all their outputs. */
typedef enum gnn_jump {
    GNN_JUMP_NONE, /* the last layer gives them */
    GNN_JUMP_LAST, /* J is the last output, */
    GNN_JUMP_CAT,  /* all outputs beside each other, */
    GNN_JUMP_MAX   /* their maximum, number by number */
} gnn_jump;

typedef struct gnn_model_options {
    gnn_layer layer;
    int layers;               /* 1 .. GNN_MAX_LAYERS; 0: 2 */
    int64_t inputs, outputs;  /* features, classes */
    int64_t hidden;           /* columns between layers (GAT: of each head) */
    int heads, output_heads;  /* GAT; 0: 8 and 1 */
    double input_dropout;     /* of the features */
    double dropout;           /* of the values between layers; with maxk, of P */
    double attention_dropout; /* GAT */
    int64_t maxk;             /* k > 0 (GCN, SAGE, GIN): in hidden layers neighbours gather P = MaxK(X·W + b), the k
                                 largest numbers of each row, and there is no ReLU: GCN Y = Â·P, SAGE Y = X·W_self +
                                 mean(A, P), GIN Y = (A·P + X·W_1 + b_1)·W_2 + b_2 (Peng et al. 2024) */
    gnn_norm norm;            /* between layers */
    bool residual;            /* the output of a layer is added to that of the next, if both have `hidden` columns */
    gnn_jump jump;
    sp_dense_type type;       /* f32, or f64 */
    bool keep_aggregated;     /* for a full batch of dense features without dropout: A·X of the first layer is computed
                                 once and kept as long as the first block stays. Not with maxk, which aggregates X·W */
    bool half;                /* f32 without maxk (all but maxima): features, the numbers between operations and their
                                 gradients lie in memory as bf16. Sums, logits, loss, parameters and their gradients
                                 stay f32; products read the weights rounded. Dense features are rounded once as long
                                 as the first block stays */
    bool normalised;          /* says that gnn_data_normalise was applied to the features; saved for prediction */
    bool undirected;          /* says that each edge of the input stood for both directions; saved for prediction */
} gnn_model_options;

typedef enum gnn_parameter_kind {
    GNN_WEIGHT,
    GNN_BIAS,
    GNN_SCALE, /* of a norm: these */
    GNN_SHIFT, /* do not decay; */
    GNN_RUNNING_MEAN,     /* these are not learned: */
    GNN_RUNNING_VARIANCE  /* training passes set them, and their gradients are 0 */
} gnn_parameter_kind;

/* One matrix or row among the parameters. */
typedef struct gnn_parameter {
    char name[32]; /* "layer1.weight"; "jump.weight" */
    gnn_parameter_kind kind;
    int layer;     /* from 0; of a jump the number of layers */
    int64_t rows, cols, offset; /* offset: index of its first number among all */
} gnn_parameter;

/* Between layers there are the norm, ReLU (GAT: ELU), dropout and the residual, in this order; the last layer gives
 * logits. Weights start as in Glorot and Bengio (2010), biases at 0. Those of GIN, whose sums grow with the number of
 * neighbours, are uniform in ±1 / √inputs. */
typedef struct gnn_model gnn_model;
sp_status gnn_model_create(gnn_engine *engine, const gnn_model_options *options, gnn_model **model);
void gnn_model_free(gnn_model *model);
const gnn_model_options *gnn_model_shape(const gnn_model *model); /* with defaults filled in */
/* All parameters, and all gradients, lie one after another: gnn_model_size numbers of the model's type in the engine's
 * space. gnn_model_parameters lists the matrices and rows that they are, *count of them: weights and biases, then
 * scales and shifts, then running numbers. */
int64_t gnn_model_size(const gnn_model *model);
void *gnn_model_weights(gnn_model *model);
void *gnn_model_gradients(gnn_model *model);
const gnn_parameter *gnn_model_parameters(const gnn_model *model, int *count);

/* Computes the logits of the rows of the last block. block[0] is for the first layer; `x` has a row for each of its
 * columns, has the model's type (GNN_SAGE_MAX: dense) and lies in the engine's space. The logits belong to the model
 * until its next call; their stride may exceed their columns. Given matrices may also have a stride, which must hold
 * for the last row too; strides of whole 16 bytes are best. `training` turns on dropout, and norms by the batch's own
 * means and variances, which move the running ones. As long as the last block is the same, the features must be the
 * same too: plans for sparse features, and the data of keep_aggregated and half, are kept until another block
 * comes. */
sp_status gnn_model_forward(gnn_model *model, gnn_block *const *block, const gnn_features *x, bool training,
                            const sp_dense **logits);
/* Computes the gradients of all parameters from that of the logits, after a forward pass with the same blocks and
 * features. */
sp_status gnn_model_backward(gnn_model *model, gnn_block *const *block, const gnn_features *x,
                             const sp_dense *logits_gradient);

/* The order of nodes that suits a model: KEEP for AUTO with MaxK, because its rows are short; else the given order. */
gnn_order gnn_order_for(const gnn_model_options *model, gnn_order order);

/* ---- optimizers --------------------------------------------------------------------------------------- */

typedef enum gnn_method { GNN_ADAM, GNN_ADAMW, GNN_SGD } gnn_method;

typedef struct gnn_optimizer_options {
    gnn_method method;
    double rate;              /* 0: 0.01 */
    double beta1, beta2;      /* 0: 0.9, 0.999; for SGD beta1 is the momentum (0: none) */
    double epsilon;           /* 0: 1e-8 */
    double decay;             /* weight decay: added to gradients (L2), or decoupled in AdamW */
    bool decay_first_layer;   /* only the first layer's weights and bias decay, as Kipf and Welling have it */
} gnn_optimizer_options;

typedef struct gnn_optimizer gnn_optimizer;
sp_status gnn_optimizer_create(gnn_model *model, const gnn_optimizer_options *options, gnn_optimizer **optimizer);
void gnn_optimizer_free(gnn_optimizer *optimizer);
/* One step against the model's gradients, in one pass over all parameters. */
sp_status gnn_optimizer_step(gnn_optimizer *optimizer);
sp_status gnn_optimizer_set_rate(gnn_optimizer *optimizer, double rate);
/* The state to keep for a later continuation: the moments (two arrays, SGD: one or none, as long as the parameters, in
 * the engine's space), and the number of steps taken. Returns the number of arrays. */
int gnn_optimizer_state(gnn_optimizer *optimizer, void *moments[2], int64_t **steps);

/* ---- sampling ----------------------------------------------------------------------------------------- */

/* Samplers need a context and neither an engine nor BLAS: their functions are in libsparse itself. */

typedef enum gnn_sampler_kind {
    GNN_SAMPLE_NODE,    /* fanout[l] neighbours of every node, and the node itself if the matrix has it (GraphSAGE) */
    GNN_SAMPLE_LAYER,   /* fanout[l] nodes a layer beside those of the layer above, drawn by the squares of their
                           weights to these (LADIES, Zou et al. 2019) */
    GNN_SAMPLE_FASTGCN, /* the same, drawn by the squares of their weights to all nodes (Chen et al. 2018) */
    GNN_SAMPLE_CLUSTER  /* whole clusters and the edges within them (Cluster-GCN, Chiang et al. 2019) */
} gnn_sampler_kind;

typedef struct gnn_sampler_options {
    gnn_sampler_kind kind;
    int layers;
    int64_t fanout[GNN_MAX_LAYERS]; /* fanout[0] is for the nodes of the batch (the last layer), fanout[1] for the layer
                                       below, and so on */
    int64_t batch;                  /* nodes a minibatch; clusters a minibatch for GNN_SAMPLE_CLUSTER */
    bool by_value;                  /* GNN_SAMPLE_NODE of a matrix with values: neighbours are drawn one after another
                                       in proportion to their values' magnitudes; else all alike */
    int64_t bulk;                   /* minibatches drawn together; 0: 64 on a device, two a thread on the CPU */
    const int32_t *clusters;        /* GNN_SAMPLE_CLUSTER: each node's (host, copied) */
    bool in_order;                  /* nodes in their order, clusters in that of their numbers; else shuffled */
} gnn_sampler_options;

/* One minibatch. block[l] holds the neighbourhoods of layer l (0 is computed first). Its values make sums over the
 * sample estimates of sums over all neighbours (patterns stay patterns): without bias for node-wise sampling, otherwise
 * with each row's sum as in the matrix. node[l][j] is the graph's node behind column j of block[l]: first the nodes of
 * the next layer in their order, then the others ascending. The rows of the last block are the batch. All arrays lie in
 * the context's space, in the memory of `bulk`, which is released with the last minibatch drawn into it. */
typedef struct gnn_minibatch {
    int layers;
    sp_csr block[GNN_MAX_LAYERS];
    int32_t *node[GNN_MAX_LAYERS];
    int32_t *batch;     /* the graph's nodes behind the rows of the last block */
    int64_t batch_size;
    int64_t edges;      /* entries of all blocks */
    struct gnn_bulk *bulk;
} gnn_minibatch;

/* Matrix-based bulk sampling (Tripathy et al. 2024): for several minibatches at once, computes rows of P = Q·A, makes
 * them distributions, draws s times without replacement from each, and extracts the drawn rows and columns. `matrix`
 * comes from gnn_operator, or is any square matrix with ascending columns. Outside the context's space it is copied;
 * otherwise the sampler refers to it, and it must outlive the sampler. Minibatches do not depend on `bulk`, threads or
 * back end. A sampler holds its context and works in the context's stream of each call. */
typedef struct gnn_sampler gnn_sampler;
sp_status gnn_sampler_create(sp_context *context, const sp_csr *matrix, const gnn_sampler_options *options,
                             gnn_sampler **sampler);
void gnn_sampler_free(gnn_sampler *sampler);
/* Begins a pass over `nodes` (host), shuffled by (seed, pass) unless the options keep their order. For clusters, a pass
 * over all clusters that hold one of the nodes. All draws of the pass are functions of (seed, pass), too. */
sp_status gnn_sampler_begin(gnn_sampler *sampler, const int32_t *nodes, int64_t count, uint64_t seed, int64_t pass);
/* The next minibatch; its `layers` is 0 when the pass is over. It belongs to the caller, who frees it by
 * gnn_minibatch_free, and may outlive the sampler. If a bulk does not fit the memory, halves of it are tried. */
sp_status gnn_sampler_next(gnn_sampler *sampler, gnn_minibatch *minibatch);
void gnn_minibatch_free(sp_context *context, gnn_minibatch *minibatch);

/* ---- training ----------------------------------------------------------------------------------------- */

/* How the learning rate changes. */
typedef enum gnn_schedule {
    GNN_SCHEDULE_STEP,    /* multiplied by rate_factor every rate_step epochs; 0: never */
    GNN_SCHEDULE_COSINE,  /* in epoch e of n, (1 + cos(π (e - 1) / n)) / 2 of it */
    GNN_SCHEDULE_PLATEAU  /* multiplied by rate_factor after rate_step epochs without a lower validation loss, and again
                             after as many; needs validation nodes */
} gnn_schedule;

typedef struct gnn_trainer_options {
    gnn_model_options model;          /* inputs and outputs are filled in from the data */
    gnn_optimizer_options optimizer;
    bool sampled;                     /* by `sampler`, which has as many layers as the model; else full batch */
    gnn_sampler_options sampler;
    int64_t epochs;                   /* 0: 200 */
    int64_t patience;                 /* ends after this many epochs without a lower validation loss; 0: never */
    int64_t evaluate_every;           /* epochs between evaluations on all splits; 0: 1 */
    int64_t loss_every;               /* epochs between readings of the loss, which wait for the device; 0: 1 */
    gnn_schedule schedule;
    int64_t rate_step;
    double rate_factor;
    bool balance_classes;             /* the loss of a node counts in inverse proportion to its class's number of
                                         training nodes, */
    const double *class_weights;      /* or in proportion to its class's weight (host; as long as the trainer); NULL:
                                         alike. Scaled so that training nodes weigh 1 in the mean, and so do not change
                                         the size of steps. One class a node only */
    int64_t warmup;                   /* in epoch e of the first `warmup`, e / warmup of the rate; 0: none */
    bool phases;                      /* sampled: waits between the phases of each minibatch, for their seconds in
                                         gnn_epoch */
    bool links;                       /* predicts links, full batch: nodes with outputs z and z', of `model.outputs`
                                         columns, are linked with probability 1 / (1 + exp(-z·z')). The loss is the
                                         binary cross-entropy of the training links and of */
    int64_t negatives;                /* as many times this (0: 1) pairs without one, drawn in each epoch */
} gnn_trainer_options;

/* The phases of minibatches: drawing them, gathering their features with the plans of their blocks, and the step. */
typedef enum gnn_phase { GNN_PHASE_SAMPLE, GNN_PHASE_GATHER, GNN_PHASE_STEP, GNN_PHASES } gnn_phase;

/* The figures of an epoch. Losses are means over nodes, by the weights of their classes, or over pairs. Accuracies are
 * fractions of nodes (micro F1 if nodes can have several classes), for links the AUC. NaN stands for splits that were
 * not evaluated or are empty, and for the training links. */
typedef struct gnn_epoch {
    int64_t epoch; /* from 1 */
    double loss;   /* of training, with dropout; NaN if it was not read */
    double split_loss[GNN_SPLITS], accuracy[GNN_SPLITS];
    double rate;    /* the learning rate */
    double seconds; /* of training, without evaluation */
    double phase[GNN_PHASES]; /* of these, if `phases` asks for them; else 0 */
    int64_t edges;  /* sampled edges */
} gnn_epoch;

/* A model, its optimizer and data. The trainer keeps the parameters with the lowest validation loss, for links with the
 * highest validation AUC, which also counts for patience and plateaus (without validation nodes, the last ones). Full
 * batch on CUDA, an epoch is one CUDA graph, except for links. */
typedef struct gnn_trainer gnn_trainer;
/* `data` must pass gnn_data_check and outlive the trainer. Without a split (NULL) the trainer can only predict.
 * Sampled training and GNN_SAGE_MAX make sparse features dense. Where memory (the context's memory budget, or what its
 * allocator gives) does not suffice for a pass over the whole graph, trainers that only predict, or train by
 * minibatches, compute layer by layer in blocks of rows; numbers between layers then lie in host memory. Sums have the
 * same order; results differ by no more than products of BLAS with another number of rows do. On CUDA features of
 * minibatches stay in host memory, pinned, if they would take more than four fifths of the device memory that is left,
 * and rows are gathered from there. */
sp_status gnn_trainer_create(gnn_engine *engine, const gnn_data *data, const gnn_trainer_options *options,
                             gnn_trainer **trainer);
/* Starts again with another seed, also for the engine, and with the present split of the data. The result is that of a
 * new trainer with an engine of that seed, but graph and features stay where they are, which saves time. After a
 * failure the trainer can only be freed. */
sp_status gnn_trainer_restart(gnn_trainer *trainer, uint64_t seed);
void gnn_trainer_free(gnn_trainer *trainer);
gnn_model *gnn_trainer_model(gnn_trainer *trainer);
/* Whether the graph of the data is symmetric, including its values. */
bool gnn_trainer_symmetric(const gnn_trainer *trainer);
/* Trains the next epoch. *done is set if it was the last. If none was left, epoch->epoch is 0. SP_ERROR_NOT_FINITE if a
 * loss is not a number. */
sp_status gnn_trainer_epoch(gnn_trainer *trainer, gnn_epoch *epoch, bool *done);
/* gnn_trainer_finish: takes the best parameters. gnn_trainer_best: the epoch that they come from; 0 if there are none
 * but the present ones. */
sp_status gnn_trainer_finish(gnn_trainer *trainer);
int64_t gnn_trainer_best(const gnn_trainer *trainer);
/* The number of trained epochs, including those before the trainer was resumed. */
int64_t gnn_trainer_epochs(const gnn_trainer *trainer);
/* Losses and accuracies of all splits with the present parameters, full batch. */
sp_status gnn_trainer_evaluate(gnn_trainer *trainer, gnn_epoch *epoch);
/* The class of every node (host; `classes` has an element for each node, in the original order if data->place renumbers
 * them), or with targets nodes x classes of 0 and 1; and, if `scores` is not NULL, nodes x classes probabilities. */
sp_status gnn_trainer_predict(gnn_trainer *trainer, int32_t *classes, uint8_t *targets, float *scores);
/* The numbers of the last hidden layer, after its activation, for every node (host, nodes x columns in the original
 * order): embeddings. For links the outputs. gnn_trainer_width has the number of columns, 0 for models of one layer,
 * which have none. */
int64_t gnn_trainer_width(const gnn_trainer *trainer);
sp_status gnn_trainer_embed(gnn_trainer *trainer, float *embeddings);
/* How well scores tell links from other pairs. */
enum { GNN_HITS = 3 };
static const int gnn_hits_at[GNN_HITS] = {20, 50, 100};
typedef struct gnn_link_figures {
    int64_t linked, unlinked; /* how many; with none of either the rest is NaN */
    double auc;               /* the chance that a link has a higher score than another pair; equal ones count half */
    double average_precision; /* Σ over the distinct scores of precision · gain of recall, from the highest on */
    double hits[GNN_HITS];    /* the share of links above the k-th of the other pairs, k = gnn_hits_at[]; NaN: there are
                                 fewer of these */
} gnn_link_figures;
/* Judges scores. They are sorted in place. O(n log n). */
sp_status gnn_judge_links(sp_context *context, double *linked, int64_t links, double *unlinked, int64_t others,
                          gnn_link_figures *figures);
/* Those of the drawn links of a split, validation or test, with the present parameters. */
sp_status gnn_trainer_judge_links(gnn_trainer *trainer, gnn_split split, gnn_link_figures *figures);
/* The probability of a link for each of `count` pairs of nodes (host; two nodes each, in the original order). */
sp_status gnn_trainer_score_links(gnn_trainer *trainer, const int32_t *pairs, int64_t count, float *probabilities);
/* The `most` pairs with the highest probabilities among those without a link in the graph of the data, the highest
 * first, equal ones by their nodes; the first node of a pair is the lower one. *count may be less. `pairs` and
 * `probabilities` have room for `most`. O(nodes² · outputs). */
sp_status gnn_trainer_best_links(gnn_trainer *trainer, int64_t most, int32_t *pairs, float *probabilities,
                                 int64_t *count);
/* gnn_trainer_save: everything needed to continue or to predict, as bytes with a checksum (host, released by sp_free).
 * With `best`, the best parameters replace the present ones. gnn_trainer_restore refuses bytes of a trainer with
 * another shape and says what differs. */
sp_status gnn_trainer_save(gnn_trainer *trainer, bool best, void **bytes, int64_t *size);
sp_status gnn_trainer_restore(gnn_trainer *trainer, const void *bytes, int64_t size);

/* The description that saved bytes contain. */
typedef struct gnn_saved {
    gnn_trainer_options options; /* of model and optimizer, and `links`, to make a trainer from; all others are 0 */
    uint64_t seed;
    bool several;                /* nodes can have several classes */
    const char *class_names;     /* within the bytes, names of options.model.outputs classes; NULL: none */
    const char *feature_names;   /* the same, of options.model.inputs features */
    gnn_split_drawn drawn;             /* the split of the training */
} gnn_saved;
sp_status gnn_saved_read(sp_context *context, const void *bytes, int64_t size, gnn_saved *saved);
/* The bytes (released by sp_free) of a trainer that begins with these parameters, `count` of them in the order of
 * gnn_model_parameters, f32 in host memory. They are checked when they are read. */
sp_status gnn_saved_make(sp_context *context, const gnn_saved *saved, const float *weights, int64_t count, void **bytes,
                         int64_t *size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
