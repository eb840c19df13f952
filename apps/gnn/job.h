/* One run of gnn train or gnn predict: its settings, its state, and the steps that have their own files. */
#ifndef GNN_JOB_H
#define GNN_JOB_H

#include "common/budget.h"
#include "common/tool.h"
#include "figures.h"
#include "input.h"
#include "options.h"

/* One training, by its seed. */
typedef struct gnn_run {
    int64_t seed;
    gnn_epoch *epochs;
    int64_t count, capacity;
    int64_t best_epoch;
    gnn_epoch best; /* all splits with the best parameters */
    double macro_f1; /* of test nodes; NaN if there are none */
    gnn_link_figures links; /* of the test, where links are predicted */
    double seconds, median; /* of the run; median of its epochs */
} gnn_run;

typedef struct gnn_seconds {
    double read, order, prepare, total; /* order: renumbering; prepare: after it until the first epoch, over all runs */
} gnn_seconds;

typedef struct gnn_job {
    const gnn_settings *settings;
    int argc;               /* the command line; a saved model changes its defaults */
    char **argv;
    gnn_settings resumed;   /* the settings with these defaults */
    bool mistaken;          /* they do not fit the model, or an output is an input or another output: printed */
    gnn_trainer_options how;
    memory_budget budget;   /* of both contexts, if the second computes on the CPU */
    bool least_known;       /* what the budget refuses from now on is the least that the work needs */
    sp_context *host;       /* reads and writes; signals interrupt it */
    sp_context *compute;    /* trains; signals are looked at between epochs */
    char device_name[128];
    tool_line line;

    gnn_input input;
    gnn_data data;          /* the input's arrays, without unused ones */
    int64_t nodes[GNN_SPLITS];
    void *saved;            /* a model that was read */
    int64_t saved_size;
    char *class_names, *feature_names, *node_names; /* the folder's, a NUL after each */
    int32_t *clusters;      /* of nodes, for minibatches */
    int64_t cluster_count;
    double *class_weights;  /* of a file */

    /* predict: the gnn_split whose labels are compared, GNN_SPLITS for all; -1: there are none */
    int judged;
    bool drawn;             /* predict: the split is that of the training, drawn again */
    float *embeddings;      /* nodes x width */
    int64_t width;
    gnn_figures figures;    /* of the first run's test nodes; predict: of these, or of all with a known class */
    gnn_run *runs;
    int64_t run_count;
    int64_t parameters;
    bool directed;          /* the graph is directed; perhaps a list has each edge once */
    int32_t *classes;       /* predicted: of each node, or */
    uint8_t *targets;       /* nodes x classes */
    float *scores;          /* nodes x classes; or a number a pair: */
    int32_t *pairs;         /* of links, two nodes each */
    int64_t pair_count;
    int64_t saved_run;      /* that of the model to save: */
    void *made;             /* the model, */
    float *weights;         /* or its best weights for other programs: all of them, and what they are */
    gnn_parameter *weight_list;
    int64_t weight_size;
    int weight_parts;
    int64_t made_size;
    bool stopped;           /* by a signal */
    bool checkpointed;      /* a checkpoint was written */
    gnn_seconds seconds;
} gnn_job;

/* job.c: contexts; data and a saved model; files, all of them or none. */
sp_status gnn_open_host(gnn_job *job);
/* Does the work on the chosen device. If "auto" chose CUDA and it fails, does it again on the CPU. */
sp_status gnn_on_device(gnn_job *job, sp_status (*work)(gnn_job *));
sp_status gnn_read_data(gnn_job *job);
sp_status gnn_read_saved(gnn_job *job, const char *path);
/* Brings the features into the order of the model at `path`, by name if both have names. As many in both. */
sp_status gnn_match_features(gnn_job *job, const char *path, const gnn_saved *saved);
/* Numbers the classes as the model at `path` does, by name if both have names. */
sp_status gnn_match_classes(gnn_job *job, const char *path, const gnn_saved *saved);
/* If the budget refused memory, makes the sentence of the failure say how much would do. */
void gnn_explain_memory(gnn_job *job, sp_status status);
void gnn_close(gnn_job *job);

typedef struct gnn_file {
    const char *path; /* NULL: not wanted */
    sp_status (*put)(gnn_job *job, io_output *out);
} gnn_file;
sp_status gnn_check_files(gnn_job *job, const gnn_file *files, int count);
sp_status gnn_write_files(gnn_job *job, const gnn_file *files, int count);
bool gnn_takes_stdout(const gnn_file *files, int count); /* one of the files goes to stdout, so nothing else does */
/* The closing line: the folder and its contents, `read`, the files, and the result. */
void gnn_end_line(gnn_job *job, const char *read, const gnn_file *files, int count, const char *result);

/* The two commands. */
sp_status gnn_train(gnn_job *job);
sp_status gnn_predict(gnn_job *job);

/* links.c: hides links of the graph, as --split says; the figures of trained links, for people and for reports; the
 * pairs to predict, and their probabilities. */
sp_status gnn_draw_links(gnn_job *job);
void gnn_answer_links(const gnn_job *job);
double gnn_test_precision(const gnn_run *run);
void gnn_put_link_figures(const gnn_link_figures *figures, const char *key, json *j);
sp_status gnn_read_pairs(gnn_job *job);
sp_status gnn_predict_links(gnn_job *job, gnn_trainer *trainer);
/* clusters.c: the clusters of minibatches, as --clusters says. */
sp_status gnn_make_clusters(gnn_job *job);
/* class_weights.c: those of the loss, as --class-weights says. */
sp_status gnn_take_class_weights(gnn_job *job);
/* hints.c: notices where the defaults will not do for the data (before they are normalised), once the trainer knows
 * whether the graph is directed, and after the training. */
sp_status gnn_hint_before(gnn_job *job, const gnn_data *data);
void gnn_hint_directed(gnn_job *job);
void gnn_hint_after(gnn_job *job);
/* weights.c: copies the model's weights from its device; writes them as safetensors. */
sp_status gnn_take_weights(gnn_job *job, gnn_model *model);
sp_status gnn_put_weights(gnn_job *job, io_output *out);
/* Replaces the bytes of such a file, in job->saved, by those of a saved model. */
sp_status gnn_from_weights(gnn_job *job, const char *path);
/* report.c and plot.c */
typedef char gnn_text[16];
const char *gnn_measure(const gnn_job *job); /* what accuracies are */
const char *gnn_show(double accuracy, gnn_text text); /* "none" if nothing was judged */
double gnn_mean(const gnn_job *job, double (*of)(const gnn_run *run), double *deviation);
double gnn_test_accuracy(const gnn_run *run);
double gnn_test_macro_f1(const gnn_run *run);
double gnn_epoch_seconds(const gnn_run *run);
sp_status gnn_put_report(gnn_job *job, io_output *out);
/* report_predict.c: the report of gnn predict */
sp_status gnn_put_prediction(gnn_job *job, io_output *out);
/* What both reports have: the first fields, the options of the model, and, if a browser shows it, a page around what
 * `put` writes. */
void gnn_report_begin(const gnn_job *job, json *j);
void gnn_put_model(const gnn_job *job, json *j);
sp_status gnn_put_page(gnn_job *job, io_output *out, sp_status (*put)(const gnn_job *, io_output *));
sp_status gnn_put_plot(gnn_job *job, io_output *out);

#endif
