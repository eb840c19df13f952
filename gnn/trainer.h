/* A trainer, for trainer.c, trainer_data.c, trainer_links.c and save.c.
 *
 * It begins with the whole graph in the engine's space. If a pass that does not train lacks memory, or the features do,
 * passes become walks (gnn_model_walk) from then on. Then minibatches gather from host memory unless the features have
 * a place in the engine's space. */
#ifndef GNN_TRAINER_H
#define GNN_TRAINER_H

#include "internal.h"

/* Work that is recorded the second time and replayed from then on. */
typedef struct gnn_recorded {
    int64_t times;
    void *graph;
} gnn_recorded;

/* Links, in host memory, by rows of the graph. */
typedef struct gnn_link_state {
    sp_csr graph;            /* the training links, in both directions */
    int64_t linked, pairs;   /* training links; with those that an epoch draws */
    int32_t *first, *second; /* the nodes of these pairs */
    void *signs;             /* of the model's type: 1 for links, -1 for others */
    sp_csr judged[GNN_SPLITS]; /* an entry for each pair of a split */
} gnn_link_state;

struct gnn_trainer {
    gnn_engine *engine;
    sp_context *context;
    const gnn_data *data;
    gnn_trainer_options options; /* with defaults filled in */
    bool several;                /* nodes can have several classes */
    gnn_model *model;
    gnn_optimizer *optimizer;

    bool symmetric; /* the data's graph is */

    /* The data, in the engine's space. Of walks there are only those that minibatches need. */
    sp_csr matrix;
    gnn_block *block[GNN_MAX_LAYERS]; /* of the whole graph; layers of equal width share one */
    gnn_features x;
    bool borrowed;  /* x is the data's own */
    int32_t *labels;
    uint8_t *targets, *split;
    double *class_weights; /* NULL: ones */
    int64_t nodes[GNN_SPLITS]; /* of each split */

    /* Of walks, in host memory; on a CPU matrix and features are those above. */
    bool walks;
    int64_t walk_rows;     /* at once */
    sp_csr walk_matrix;
    gnn_features walk_x;
    bool walk_borrowed;    /* walk_x is the data's own */
    gnn_host_rows reached; /* its dense rows */
    gnn_host_rows logits, hidden; /* results of the last */
    sp_dense outputs;      /* the logits in the engine's space, for links */

    /* Work space, which grows: a minibatch differs from the next. */
    sp_dense gradient; /* of the logits */
    sp_dense rows;     /* features of a minibatch */
    int64_t gradient_capacity, rows_capacity;
    gnn_score *score;  /* in the engine's space, GNN_SPLITS for each loss not yet read */
    gnn_recorded training, evaluation;

    gnn_link_state links; /* for training them */

    gnn_sampler *sampler;
    int32_t *training_nodes; /* host */
    int32_t *batch;          /* host: nodes of a minibatch */
    int64_t batch_capacity;

    /* Progress. */
    int64_t epoch;
    double rate;        /* of the optimizer */
    int64_t cuts, cut_epoch; /* GNN_SCHEDULE_PLATEAU: how often the rate was cut, and last after this epoch */
    double best_loss;
    int64_t best_epoch; /* 0: none yet */
    void *best;         /* parameters of that epoch */
};

/* Where a node's row is. */
static inline int64_t gnn_trainer_row(const gnn_trainer *trainer, int64_t node)
{
    return trainer->data->place ? trainer->data->place[node] : node;
}

/* Copies graph, features and labels to the engine's space, and makes the sampler; needs the model. Then the split of
 * the data, which may have changed. */
sp_status gnn_trainer_place(gnn_trainer *trainer);
sp_status gnn_trainer_place_split(gnn_trainer *trainer);

/* A pass that does not train. The logits have their bias; they, and unless NULL the numbers that gnn_model_hidden has,
 * lie in the engine's space, or after a walk in host memory. gnn_trainer_outputs: the logits in the engine's space. */
sp_status gnn_trainer_pass(gnn_trainer *trainer, const sp_dense **logits, const sp_dense **hidden);
sp_status gnn_trainer_outputs(gnn_trainer *trainer, const sp_dense **logits);
/* trainer_data.c: whether passes may become walks, now that memory lacks; makes them so; a walk, whose results the
 * trainer keeps. */
bool gnn_trainer_may_walk(const gnn_trainer *trainer, sp_status status);
sp_status gnn_trainer_begin_walks(gnn_trainer *trainer);
sp_status gnn_trainer_walk(gnn_trainer *trainer, bool hidden);
void gnn_trainer_free_features(gnn_trainer *trainer);
void gnn_trainer_free_walks(gnn_trainer *trainer);

/* Makes the blocks of the layers; layers of equal matrix and width share one. */
sp_status gnn_trainer_blocks(gnn_trainer *trainer, const sp_csr *const *matrix, bool symmetric, gnn_block **block);
void gnn_trainer_free_blocks(gnn_block **block);

/* A matrix of the model's type with room for `rows` rows. */
sp_status gnn_trainer_rows(gnn_trainer *trainer, int64_t rows, int64_t cols, sp_dense *matrix, int64_t *capacity);

/* trainer_links.c. The pairs of the present epoch, with their signs, in both directions; one step with them, whose loss
 * comes into trainer->score; the judged splits' losses and AUC. */
sp_status gnn_trainer_place_links(gnn_trainer *trainer);
void gnn_trainer_free_links(gnn_trainer *trainer);
sp_status gnn_trainer_draw_pairs(gnn_trainer *trainer, sp_csr *pairs);
sp_status gnn_trainer_link_step(gnn_trainer *trainer);
sp_status gnn_trainer_evaluate_links(gnn_trainer *trainer, gnn_epoch *epoch);

/* Drops the recorded work, because parameters, seed or step were set from outside. */
void gnn_trainer_forget(gnn_trainer *trainer);

#endif
