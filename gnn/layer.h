/* The parts of a model's layers; private to model.c and layer*.c. */
#ifndef GNN_LAYER_H
#define GNN_LAYER_H

#include "internal.h"

/* A matrix in memory that grows when it must, never shrinks, and is kept from call to call. */
typedef struct gnn_matrix {
    sp_dense now; /* of the shape last asked for */
    int64_t bytes;
} gnn_matrix;

/* A weight or bias (one row) among the parameters, and its gradient. */
typedef struct gnn_weight {
    sp_dense value, gradient;
    sp_dense used;      /* what products read in this pass: the value, or the value rounded to bf16 */
    gnn_matrix rounded;
} gnn_weight;

/* The input of a layer: numbers, or for the first layer plans for products with sparse features. */
typedef struct gnn_layer_input {
    sp_dense dense;                  /* of sparse features the shape alone */
    sp_spmm_plan *plan, *transposed; /* X· and Xᵀ·; NULL: dense */
    const gnn_pointwise *how;        /* activation and dropout of the layer before; NULL for the first layer */
    void *sums;                      /* NULL, or where the column sums of the gradient go: the gradient of a bias */
    const gnn_weight *open;          /* NULL, or a bias that the numbers still lack, and `how` after it */
} gnn_layer_input;

/* Operations on a layer's output beside bias, activation and dropout (between.c). */
typedef struct gnn_between {
    bool present; /* if not, the layer applies `after` itself, and the rest is unused */
    bool residual;
    gnn_norm norm;
    bool fixed;        /* running means and variances: this pass does not train */
    gnn_pointwise how; /* activation and dropout, after the norm */
    gnn_weight scale, shift, running_mean, running_variance;
    gnn_matrix mean, inverse;
    gnn_matrix active, joined; /* F and H, see between.c */
    gnn_matrix gradient;       /* of H */
} gnn_between;

/* What makes the logits of a model with a jump. */
typedef struct gnn_readout {
    gnn_jump kind;
    gnn_weight weight, bias;
    gnn_matrix logits;
    gnn_matrix most, left; /* GNN_JUMP_MAX: the maximum, and the rest of its gradient */
} gnn_readout;

typedef struct gnn_layer_state {
    /* Set by the model. */
    gnn_engine *engine;
    gnn_layer kind;
    sp_dense_type type;    /* of the parameters, */
    sp_dense_type numbers; /* of numbers in memory between operations, */
    sp_dense_type results; /* and of the output: as the numbers, but logits are as the parameters */
    int number; /* from 0 */
    int64_t inputs, outputs;
    int64_t maxk; /* 0 in the last layer */
    int heads;
    bool average;     /* heads are averaged, not put beside each other */
    gnn_weight weight, bias;
    gnn_weight own;                       /* SAGE: W_self */
    gnn_weight second, second_bias;       /* GIN: W_2, b_2 */
    gnn_weight left, right;               /* GAT: a row a head */
    gnn_pointwise after;                  /* what the layer, or the next one, does to its output; linear with MaxK */
    gnn_between between;                  /* if something more is done, and `after` is linear */
    double kept_dropout;                  /* of the numbers that MaxK keeps; 0 when not training */
    const struct gnn_layer_state *next;   /* NULL: this is the last, or something stands between */
    double attention_dropout;             /* 0 when not training */

    gnn_matrix output, gradient; /* what goes to the next layer, and what comes back from it */

    /* Results of the forward pass that the backward pass needs, and work space. */
    bool open;                 /* the output lacks its bias and `after`, which the next layer applies */
    bool aggregate_first;      /* (A·X)·W rather than A·(X·W) */
    gnn_matrix aggregated;     /* A·X; GAT: the heads' w·H */
    int64_t kept_block;        /* the block's number and the features for which A·X is kept; 0: not kept */
    const void *kept_features;
    gnn_matrix product;        /* X·W; GAT: the heads' H */
    gnn_matrix inner;          /* GIN: relu(... + b_1) */
    gnn_matrix padded;         /* sparse features: the own nodes' rows among those of all columns */
    gnn_matrix product_gradient, inner_gradient;
    gnn_matrix argument;       /* maxima: the entries that they come from, int64_t */
    gnn_matrix kept, kept_columns; /* MaxK: the kept part of the product, */
    gnn_matrix narrow;             /* and Aᵀ times the narrow gradient of the next layer's product */
    gnn_matrix left_scores, right_scores, left_gradient, right_gradient; /* GAT: a column a head */
    gnn_matrix logs, along, slopes; /* GAT: see gnn_attention */
} gnn_layer_state;

/* Gives a matrix a shape, in memory that it keeps: numbers without gaps, or rows that begin at multiples of 32 bytes.
 */
sp_status gnn_matrix_shape(gnn_engine *engine, int64_t rows, int64_t cols, sp_dense_type type, gnn_matrix *matrix);
sp_status gnn_matrix_shape_rows(gnn_engine *engine, int64_t rows, int64_t cols, sp_dense_type type,
                                gnn_matrix *matrix);
void gnn_matrix_free(gnn_engine *engine, gnn_matrix *matrix);

/* C = X·W, and dW = Xᵀ·G. A dense X may have more rows than C or G: the first ones count. */
sp_status gnn_layer_multiply(gnn_engine *engine, const gnn_layer_input *x, const sp_dense *w, sp_dense *c);
sp_status gnn_layer_gradient(gnn_engine *engine, const gnn_layer_input *x, const sp_dense *g, sp_dense *w_gradient);
/* Bias (or NULL), activation and dropout, in place. */
sp_status gnn_finish(gnn_engine *engine, const gnn_pointwise *how, const gnn_weight *bias, sp_dense *y);

/* Forward: computes layer->output from the block and its input. An open input is finished. `keep`: A·X stays for the
 * next pass. Backward: computes the gradients of the parameters and, unless `x_gradient` is NULL, of the input.
 * `gradient` is that of the output before layer->after; its column sums, the gradient of the bias that is added last,
 * were formed with it. x_gradient is that before input->how, and its sums are formed. Convolutions are GCN, SAGE and
 * GIN, attention is GAT. */
sp_status gnn_convolution_forward(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x, bool keep);
sp_status gnn_convolution_backward(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x,
                                   const sp_dense *gradient, sp_dense *x_gradient);
sp_status gnn_attention_forward(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x);
sp_status gnn_attention_backward(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x,
                                 const sp_dense *gradient, sp_dense *x_gradient);

/* The two steps of a forward pass, for passes in blocks of rows. Products: layer->product = X·W for all rows of X, and
 * for the first `own` of them layer->output = X·W_self, if the layer has W_self. Gather: the rest, from the product of
 * all columns of the block; convolutions with layer->aggregate_first have this step alone; others do not read `x`. */
sp_status gnn_convolution_products(gnn_layer_state *layer, const gnn_layer_input *x, int64_t own);
sp_status gnn_convolution_gather(gnn_layer_state *layer, gnn_block *block, const gnn_layer_input *x, bool keep);
sp_status gnn_attention_products(gnn_layer_state *layer, const gnn_layer_input *x);
sp_status gnn_attention_gather(gnn_layer_state *layer, gnn_block *block);

/* Makes F and H of the layer's output; `before` is H of the layer before, for a residual. */
sp_status gnn_between_forward(gnn_layer_state *layer, const sp_dense *before);
const sp_dense *gnn_between_output(const gnn_layer_state *layer); /* H */
/* layer->gradient from that of H, the gradients of the norm, and `sums`, unless NULL: the gradient of the bias. */
sp_status gnn_between_backward(gnn_layer_state *layer, void *sums);
void gnn_between_free(gnn_engine *engine, gnn_between *between);
/* Logits without their bias, of the outputs of `layers` layers; or layer by layer: takes rows H of the output of layer
 * `number`, in the order of the layers. What it carries on from one to the next lies in gnn_jump_carried (NULL:
 * nothing). Backward, for each layer from the last on: adds what
 * the logits' gradient g says of the layer's H to that gradient, which the last layer's begins with; and that of W. */
sp_status gnn_jump_forward(gnn_readout *jump, const gnn_layer_state *layer, int layers);
sp_status gnn_jump_take(gnn_readout *jump, gnn_engine *engine, const sp_dense *h, int number, int layers);
gnn_matrix *gnn_jump_carried(gnn_readout *jump);
sp_status gnn_jump_backward(gnn_readout *jump, gnn_layer_state *layer, bool last, const sp_dense *g);
void gnn_jump_free(gnn_engine *engine, gnn_readout *jump);

gnn_engine *gnn_model_engine(const gnn_model *model);
gnn_layer_state *gnn_model_layer(gnn_model *model, int number);
gnn_readout *gnn_model_jump(gnn_model *model);

/* Whether a convolution computes (A·X)·W rather than A·(X·W), and how many columns a layer gathers with matrix A.
 * `sparse`: its input is sparse features; `keep`: A·X is kept. */
bool gnn_layer_aggregates_first(const gnn_layer_state *layer, const sp_csr *a, bool sparse, bool keep);
int64_t gnn_layer_gather_width(const gnn_layer_state *layer, const sp_csr *a, bool sparse, bool keep);

#endif
