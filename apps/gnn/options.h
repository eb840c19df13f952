/* The command line of gnn train and gnn predict. */
#ifndef GNN_OPTIONS_H
#define GNN_OPTIONS_H

#include <stdio.h>

#include "common/options.h"
#include "gnn.h"

typedef enum gnn_command { COMMAND_TRAIN, COMMAND_PREDICT } gnn_command;
typedef enum gnn_task { TASK_NODE, TASK_LINK } gnn_task;

/* The values of the command line. */
typedef struct gnn_settings {
    gnn_command command;
    int task; /* a gnn_task */
    const char *folder, *save, *resume, *load, *out, *embeddings, *report, *plot, *checkpoint;
    int model, norm, jump, optimizer, schedule, order; /* enums of gnn.h */
    int precision; /* 0: f32, 1: bf16 */
    int sampler; /* 0: full, else gnn_sampler_kind + 1 */
    const char *pairs;   /* predict: a file of them; NULL: */
    int64_t best_links;  /* as many new links; 0: none */
    int64_t negatives;
    int64_t layers, hidden, heads, maxk, epochs, patience, evaluate_every, rate_step, warmup;
    int64_t checkpoint_every; /* 0: there is no checkpoint */
    int64_t batch, bulk;      /* batch 0: by the sampler */
    option_counts fanout;
    const char *clusters; /* a file, matching or mcl */
    const char *class_weights;             /* a file or balanced; NULL: alike */
    bool split; /* a split is drawn, by nodes of a class, or by shares if these are 0; of links by shares */
    int64_t split_train, split_validation;
    double train_share, validation_share;
    int64_t seed, seeds, threads, memory;
    double rate, rate_factor, decay, dropout, input_dropout, attention_dropout; /* input_dropout < 0: as dropout */
    bool residual, by_weight, decay_all, no_normalise, keep_aggregated, undirected, scores, quiet;
    const char *device;
    int mpi_no;  /* several processes of a launcher each work by themselves */
    int unknown; /* the place of gnn_unknown_words */
    int features; /* a gnn_made_features */
} gnn_settings;

/* Reads the command line; argv[0] is the command. A mistake is one line on stderr. Defaults are those of `saved`, a
 * model to continue, or with NULL those of the model's paper. */
options_outcome gnn_parse(int argc, char **argv, const gnn_saved *saved, gnn_settings *settings);
void gnn_usage(FILE *stream);
/* The settings for the module, without clusters. */
gnn_trainer_options gnn_trainer_settings(const gnn_settings *settings);

/* Whether a model is saved as weights for other programs, by the ending of its name (NULL: no). */
bool is_weights(const char *path);

/* Words of the command line, for reports. */
const char *task_word(int task);
const char *model_word(int model);
const char *sampler_word(int sampler);
const char *optimizer_word(int optimizer);
const char *norm_word(int norm);
const char *jump_word(int jump);
const char *schedule_word(int schedule);
const char *order_word(int order);
const char *precision_word(int precision);

#endif
