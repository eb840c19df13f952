/* What the files of this module share: the engine, its back-end table, random numbers. */
#ifndef GNN_INTERNAL_H
#define GNN_INTERNAL_H

#include "base/ablation.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/search.h"
#include "base/try.h"
#include "base/value.h"
#include "gnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arguments ---------------------------------------------------------------------------------------- */

/* Checks a handle. Without one there is no context that could keep the sentence. */
static inline sp_status gnn_require(const char *call, const char *name, const void *handle)
{
    return handle ? SP_OK : sp_fail(NULL, SP_ERROR_ARGUMENT, "%s: %s is NULL", call, name);
}

/* ---- random numbers ----------------------------------------------------------------------------------- */

/* The stream of random numbers of a seed, a step and a site, which says what they are for. */
INLINE uint64_t gnn_stream(uint64_t seed, int64_t step, uint64_t site)
{
    return mix64(mix64(seed + RANDOM_STEP * (uint64_t)(step + 1)) + 0xd1b54a32d192ed03u * (site + 1));
}

/* Its 64 random bits of number `index`. */
INLINE uint64_t gnn_draw(uint64_t stream, int64_t index)
{
    return mix64(stream + RANDOM_STEP * (uint64_t)(index + 1));
}

/* 64 random bits, a function of its arguments alone. */
INLINE uint64_t gnn_random(uint64_t seed, int64_t step, uint64_t site, int64_t index)
{
    return gnn_draw(gnn_stream(seed, step, site), index);
}

/* In [0, 1), 24 bits: the same number in float and double. */
INLINE float gnn_unit(uint64_t bits) { return (float)(bits >> 40) * 0x1p-24f; }

/* gnn_unit(bits) < rate exactly when bits >> 40 < gnn_drop_bound(rate): integers are quicker to compare. */
INLINE uint64_t gnn_drop_bound(double rate)
{
    const uint64_t whole = (uint64_t)(rate * 0x1p24);
    return whole + ((double)whole < rate * 0x1p24);
}

/* ---- the back-end table ------------------------------------------------------------------------------- */

typedef enum gnn_activation { GNN_LINEAR, GNN_RELU, GNN_ELU } gnn_activation;

/* What happens to each number between layers: activation, then dropout. Dropout keeps a number with probability 1 -
 * rate and divides it by that. Number (i, j) of m is dropped when gnn_unit(gnn_random(seed, step, site, i * cols +
 * j)) < rate. */
typedef struct gnn_pointwise {
    gnn_activation activation;
    double rate; /* 0: no dropout */
    uint64_t site;
} gnn_pointwise;

/* A norm: Y = (X - mean) · inverse · scale + shift. */
typedef struct gnn_normal {
    gnn_norm norm;               /* over columns (GNN_NORM_BATCH) or rows */
    bool fixed;                  /* over columns: mean and variance are the running ones, which stay */
    const void *scale, *shift;   /* a column's */
    void *running_mean, *running_variance; /* a column's, GNN_NORM_BATCH */
    void *mean, *inverse;        /* a column's or a row's mean and 1 / √(variance + GNN_NORM_LEAST) in this pass */
} gnn_normal;

#define GNN_NORM_LEAST 1e-5   /* as PyTorch has both */
#define GNN_NORM_MOMENTUM 0.1 /* how far the running numbers move: by variances of the sample, over rows - 1 */

/* A product, in a sum of them. */
typedef struct gnn_product {
    const sp_dense *a, *b;
} gnn_product;

/* One of several products C = A·B or Aᵀ·B with the same A. */
typedef struct gnn_product_with {
    const sp_dense *b;
    sp_dense *c;
} gnn_product_with;

/* A product X·W on the way back: the gradient of the product, W, and where the gradient of W goes. */
typedef struct gnn_product_gradient {
    const sp_dense *g, *w;
    sp_dense *w_gradient;
} gnn_product_gradient;

/* Attention of GAT: Y(i, ·) = Σ_j w_ij·H(j, ·) for each head over the entries of A, w = dropout(α), α = softmax over j
 * of leakyrelu(l_i + r_j). Masks of entry e are number e of `site`, and of one GNN_MAX_LAYERS further for each further
 * head. Scores have a column a head. */
typedef struct gnn_attention {
    const sp_csr *a;                 /* its pattern */
    int heads;
    double slope;                    /* of leakyrelu */
    double rate;                     /* of dropout */
    uint64_t site;
    const sp_dense *h, *left, *right;
    sp_dense *y;
    sp_dense *logs;                  /* log Σ_j exp of the scores, a column a head */
    sp_dense *slopes;                /* Q(i, ·) = Σ_j λ_ij·w_ij·H(j, ·) - (Σ_j λ_ij·α_ij)·Y(i, ·), λ the derivative of
                                        leakyrelu; NULL: no way back follows */
} gnn_attention;

/* Its way back. dY has the columns of Y, or those of one head, if heads were averaged. */
typedef struct gnn_attention_gradient {
    const sp_csr *transpose;         /* of A's pattern; its entry t is A's entry places[t] */
    const int64_t *places;
    const sp_dense *y_gradient;
    const void *left_vector, *right_vector; /* l = H·left, r = H·right */
    sp_dense *along;                 /* work space: dY·Y, a column a head */
    sp_dense *left_gradient, *right_gradient, *h_gradient;
} gnn_attention_gradient;

/* The score of one split: the sum of losses, nodes, and how many are right. With targets `right`, `predicted` and
 * `actual` count entries: true positives, predicted ones, actual ones. */
typedef struct gnn_score {
    double loss;
    int64_t nodes, right, predicted, actual;
} gnn_score;

INLINE void gnn_add_score(gnn_score *to, const gnn_score *one)
{
    to->loss += one->loss;
    to->nodes += one->nodes;
    to->right += one->right;
    to->predicted += one->predicted;
    to->actual += one->actual;
}

typedef struct gnn_range {
    int64_t begin, end; /* of the parameters */
} gnn_range;

/* An optimizer's learning rate and the number of its steps, in the engine's space. */
typedef struct gnn_pace {
    double rate;
    int64_t steps;
} gnn_pace;

typedef struct gnn_tiles gnn_tiles; /* see below */

/* One back end. open, capture_end and wait may wait for the device or allocate; the operations do not. */
typedef struct gnn_backend {
    /* engine.c, engine.cu */
    sp_status (*open)(gnn_engine *engine);
    void (*close)(gnn_engine *engine);
    /* The engine's step is set, or goes up by one: on CUDA in device memory too, in the order of the stream. */
    sp_status (*set_step)(gnn_engine *engine, int64_t step);
    sp_status (*advance)(gnn_engine *engine);
    /* Work between begin and end is recorded and not done. replay does it. NULL in a back end that gains nothing by
     * it. */
    sp_status (*capture_begin)(gnn_engine *engine);
    sp_status (*capture_end)(gnn_engine *engine, void **graph); /* also after a failure: then *graph is NULL */
    sp_status (*replay)(gnn_engine *engine, void *graph);
    void (*forget)(gnn_engine *engine, void *graph);
    sp_status (*wait)(gnn_engine *engine); /* until all queued work is done */
    /* Lets operations reach host memory, at *there, until unpin, which no queued work may outlast. NULL in a back end
     * that reaches all host memory as it is. */
    sp_status (*pin)(gnn_engine *engine, void *memory, size_t bytes, void **there);
    void (*unpin)(gnn_engine *engine, void *memory);

#define GNN_OPERATION(name, ...) sp_status (*name)(gnn_engine *engine, __VA_ARGS__);
#include "operations.inc"

    /* tiles: Y += diag(r)·T·diag(c)·X, T the ones of the tiles; r and c may be NULL. Only where the engine takes
     * tiles. */
    sp_status (*multiply_tiles)(gnn_engine *engine, const gnn_tiles *tiles, const float *r, const float *c,
                                const sp_dense *x, sp_dense *y);
} gnn_backend;

extern const gnn_backend gnn_backend_cpu;
#ifdef GNN_CUDA
extern const gnn_backend gnn_backend_cuda;
#endif

struct gnn_engine {
    sp_context *context;
    const gnn_backend *backend;
    sp_space space;
    uint64_t seed;
    int64_t step;       /* the host's copy */
    int64_t *step_there; /* CUDA: the one that kernels read */
    void *state;        /* the back end's */
    int64_t blocks;     /* that were made with it */
    bool takes_tiles;   /* has multiply_tiles, and hardware for it */
    gnn_tiles *tiles;   /* the last that were cut, as long as a block has them */
};

/* ---- numbers ------------------------------------------------------------------------------------------- */

/* Bytes of a number; and the type for values of sparse matrices in a model of f32 or f64. */
static inline size_t number_size(sp_dense_type type) { return type == SP_DENSE_F64 ? 8 : type == SP_DENSE_F32 ? 4 : 2; }
static inline sp_value_type value_type(sp_dense_type type) { return type == SP_DENSE_F64 ? SP_F64 : SP_F32; }

/* ---- matrices ----------------------------------------------------------------------------------------- */

/* `cols` rounded up to whole sectors of 32 bytes: sparse products read rows in packets of 16 bytes, caches in
 * sectors. */
static inline int64_t gnn_whole_cols(int64_t cols, sp_dense_type type)
{
    const int64_t packet = type == SP_DENSE_F64 ? 4 : type == SP_DENSE_F32 ? 8 : 16;
    return (cols + packet - 1) / packet * packet;
}

/* The stride of rows with `cols` columns: whole sectors, and on CUDA whole lines of 128 bytes if that is at most an
 * eighth more. Sparse products gather wide rows line by line; a row that is not aligned touches one line more. */
static inline int64_t gnn_row_stride(const gnn_engine *engine, int64_t cols, sp_dense_type type)
{
    const int64_t whole = gnn_whole_cols(cols, type), line = 4 * gnn_whole_cols(1, type);
    const int64_t lines = (whole + line - 1) / line * line;
    return engine->space == SP_DEVICE && 8 * (lines - whole) <= whole ? lines : whole;
}

/* Allocates an array in the engine's space and copies a host array to it. */
static inline sp_status gnn_place(const gnn_engine *engine, int64_t count, size_t size, const void *from, void *to)
{
    const sp_status status = sp_array_create(engine->context, count, size, engine->space, (void **)to);
    if (status != SP_OK) return status;
    return sp_array_copy(engine->context, count, size, *(void **)to, engine->space, from, SP_HOST);
}

/* Allocates rows with that stride in the engine's space. The numbers between rows begin as 0. */
sp_status gnn_rows_create(gnn_engine *engine, int64_t rows, int64_t cols, sp_dense_type type, sp_dense *matrix);

static inline sp_dense gnn_first_rows(const sp_dense *matrix, int64_t rows)
{
    sp_dense first = *matrix;
    first.rows = rows;
    return first;
}

/* `count` rows from row `first`: a view. */
static inline sp_dense gnn_row_range(const sp_dense *matrix, int64_t first, int64_t count)
{
    sp_dense range = gnn_first_rows(matrix, count);
    range.values = (char *)matrix->values + (size_t)(first * matrix->stride) * number_size(matrix->type);
    return range;
}

/* The dense operations step by step, for back ends without a pass of their own. */
sp_status gnn_dense_by_steps(gnn_engine *engine, int count, const gnn_product *product, const gnn_pointwise *how,
                             const void *bias, sp_dense *y);
sp_status gnn_finish_multiply_by_steps(gnn_engine *engine, const gnn_pointwise *how, const void *bias, sp_dense *y,
                                       int count, const gnn_product_with *product);
sp_status gnn_dense_backward_by_steps(gnn_engine *engine, int count, const gnn_product_gradient *product,
                                      const gnn_pointwise *how, const sp_dense *x, sp_dense *x_gradient, void *sums);
/* dX = dX ∘ the derivative, and the sums unless `sums` is NULL. Does nothing for a linear activation without dropout.
 */
sp_status gnn_derive(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *x, sp_dense *x_gradient,
                     void *sums);

/* ---- blocks ------------------------------------------------------------------------------------------- */

struct gnn_block {
    gnn_engine *engine;
    int64_t number; /* unlike addresses, numbers are never used again */
    gnn_layer layer;
    bool symmetric;
    int64_t width;
    int64_t first_own;      /* the column of the first row's own node; those of the other rows follow it */
    sp_csr a;               /* in the engine's space; the caller's arrays, or those of */
    sp_csr own;             /* the copy */
    sp_spmm_plan *forward;  /* sums, or means or maxima by the layer; not for GAT */
    sp_spmm_plan *backward; /* of the transpose, or the forward one; nor for maxima */
    sp_csr transpose;       /* GAT and maxima: its pattern, and where each entry stands in A */
    int64_t *places;
    gnn_tiles *tiles;       /* set apart by gnn_block_split, shared with other blocks of the matrix; NULL: none */
    sp_spmm_plan *rest, *rest_backward; /* then: of the entries beside them */
};

/* The rows of X that belong to the block's own nodes. */
static inline sp_dense gnn_own_rows(const gnn_block *block, const sp_dense *x)
{
    return gnn_row_range(x, block->first_own, block->a.rows);
}

/* Makes what a backward pass with the block needs, once. */
sp_status gnn_block_prepare_backward(gnn_block *block);

/* Y = A·X + beta·Y, or with the prepared transpose; sums or means by the layer. `gathered` is X, or X rounded, and
 * may be wider than X by padding; whole_y is then wider than Y likewise. */
sp_status gnn_block_multiply(gnn_block *block, bool backward, const sp_dense *x, const sp_dense *gathered,
                             double beta, sp_dense *y, sp_dense *whole_y);

/* ---- tiles -------------------------------------------------------------------------------------------- */

enum { GNN_TILE_ROWS = 128, GNN_TILE_COLS = 64, GNN_TILE_WORDS = GNN_TILE_ROWS * GNN_TILE_COLS / 32 };

/* tiles.c; all arrays in the engine's space. */
struct gnn_tiles {
    gnn_engine *engine;
    int64_t users;          /* blocks */
    const int64_t *offsets; /* of the matrix that they are cut from, */
    gnn_layer layer;        /* for this kind of layer */
    int64_t panels;         /* of GNN_TILE_ROWS rows; panel p has tiles start[p] to start[p + 1] */
    int64_t *start;
    int32_t *column;        /* each tile's first, in units of GNN_TILE_COLS */
    uint32_t *bits;         /* GNN_TILE_WORDS a tile */
    float *scale;           /* a row; NULL: ones */
    sp_csr rest;            /* all other entries */
    void *backward_values;  /* means: theirs in the transpose */
    void *halves;           /* work space: X in two halves of `padded` columns */
    int64_t padded;
    unsigned *largest;      /* of X's numbers, as bits */
};

/* Tiles multiply 64 columns at once. */
static inline int64_t gnn_tile_width(int64_t width) { return (width + 63) / 64 * 64; }

sp_status gnn_tiles_prepare_backward(gnn_block *block);
void gnn_tiles_release(gnn_tiles *tiles);

/* For messages, the node whose row this is: "node NAME", or "node 17 (from 0)". */
typedef char gnn_node_name[80];
const char *gnn_node_of(const gnn_data *data, int64_t row, gnn_node_name text);
/* gnn_operator of the graph in `data`, whose names of nodes messages use. */
sp_status gnn_operator_of(sp_context *context, const gnn_data *data, gnn_layer layer, sp_value_type type,
                          sp_csr *matrix);

/* links.c: the links of a host graph in both directions, a pattern; and the number of drawn pairs, of at most `wanted`,
 * that it does not have: a function of seed, step and graph. Distinct ones ascend; others can be equal. */
typedef struct gnn_pair_draw {
    uint64_t seed;
    int64_t step, wanted;
    bool distinct;
} gnn_pair_draw;
sp_status gnn_link_graph(sp_context *context, const sp_csr *graph, sp_csr *links);
int64_t gnn_draw_unlinked(const sp_context *context, const sp_csr *links, const gnn_pair_draw *how, uint64_t *pair);
/* A pattern with an entry for each pair, once; `mirrored`: in both directions. */
sp_status gnn_pair_pattern(sp_context *context, int64_t nodes, int64_t count, const int32_t *first,
                           const int32_t *second, sp_value_type type, bool mirrored, sp_csr *pattern);
/* A pair as a number, its lower node above the other. */
static inline uint64_t gnn_pair_of(int64_t a, int64_t b)
{
    return a < b ? (uint64_t)a << 32 | (uint64_t)b : (uint64_t)b << 32 | (uint64_t)a;
}
static inline void gnn_nodes_of_pair(uint64_t pair, int32_t *first, int32_t *second)
{
    *first = (int32_t)(pair >> 32);
    *second = (int32_t)(pair & UINT32_MAX);
}
static inline bool gnn_has_entry(const sp_csr *a, int64_t row, int32_t col)
{
    const int64_t at = lower_bound_i32(a->col_indices, a->row_offsets[row], a->row_offsets[row + 1], col);
    return at < a->row_offsets[row + 1] && a->col_indices[at] == col;
}

/* The checks of gnn_model_create and gnn_optimizer_create. Defaults are filled in. */
sp_status gnn_model_check(sp_context *context, const gnn_model_options *options);
sp_status gnn_optimizer_check(sp_context *context, const gnn_optimizer_options *options);

/* A forward pass. Unless *bias is NULL, the logits still lack that bias. */
sp_status gnn_model_forward_open(gnn_model *model, gnn_block *const *block, const gnn_features *x, bool training,
                                 sp_dense **logits, const void **bias);
/* Where the column sums of the logits' gradient go, and the backward pass once they are known. */
void *gnn_model_logit_sums(gnn_model *model);
/* What the last linear map reads after a forward pass: the output of the last hidden layer, with norm and residual,
 * which the last layer has finished in place; with GNN_JUMP_MAX the maximum over all layers. With GNN_JUMP_CAT the
 * output of the last of the layers that are concatenated. NULL if there is no hidden layer. */
const sp_dense *gnn_model_hidden(const gnn_model *model);
sp_status gnn_model_backward_summed(gnn_model *model, gnn_block *const *block, const gnn_features *x,
                                    const sp_dense *logits_gradient);

/* ---- host memory --------------------------------------------------------------------------------------- */

static inline bool gnn_lacks_memory(sp_status status)
{
    return status == SP_ERROR_DEVICE_MEMORY || status == SP_ERROR_HOST_MEMORY;
}

/* Rows in host memory that operations of the engine reach. */
typedef struct gnn_host_rows {
    sp_dense here, there; /* for the host, and for operations */
    void *memory;         /* its own; NULL: the caller's */
    bool pinned;
} gnn_host_rows;
sp_status gnn_host_rows_create(gnn_engine *engine, int64_t rows, int64_t cols, sp_dense_type type, gnn_host_rows *made);
sp_status gnn_host_rows_of(gnn_engine *engine, const sp_dense *matrix, gnn_host_rows *rows); /* the caller's */
void gnn_host_rows_free(gnn_engine *engine, gnn_host_rows *rows);

/* A pass that does not train over a whole graph, layer by layer, and in a layer block of rows by block of rows
 * (layerwise.c). Numbers between layers lie in host memory, and so do these: */
typedef struct gnn_walk {
    const sp_csr *matrix;       /* of all layers */
    const gnn_host_rows *dense; /* the features; NULL: */
    const sp_csr *sparse;
    int64_t *rows;              /* that a block has at most. Halved whenever one does not fit the memory */
    gnn_host_rows *logits;      /* made, with their bias, and */
    gnn_host_rows *hidden;      /* unless NULL, what gnn_model_hidden is; empty if the model has no such layer */
} gnn_walk;
enum { GNN_LEAST_ROWS = 32 };
sp_status gnn_model_walk(gnn_model *model, const gnn_walk *of);

/* Frees what passes keep, and prepares one that does not train. */
sp_status gnn_model_renew(gnn_model *model);

/* How many columns the block of a layer gathers with the matrix. `sparse`: the features are sparse. */
int64_t gnn_model_gather_width(const gnn_model *model, int layer, const sp_csr *matrix, bool sparse);

#ifdef __cplusplus
}
#endif
#endif
