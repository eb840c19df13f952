/* One run of contract: its options, what its steps share, and the steps that have files of their own. */
#ifndef CONTRACT_JOB_H
#define CONTRACT_JOB_H

#include "common/budget.h"
#include "common/json.h"
#include "common/options.h"
#include "common/team.h"
#include "contraction.h"
#include "io.h"

enum { MAX_LEVELS = 32 };

typedef enum contract_unlabelled { UNLABELLED_ERROR, UNLABELLED_DROP, UNLABELLED_KEEP } contract_unlabelled;
typedef enum contract_unknown { UNKNOWN_ERROR, UNKNOWN_DROP } contract_unknown;
typedef enum contract_repeat { REPEAT_NEVER, REPEAT_CLUSTER, REPEAT_MATCHING, REPEAT_TWO_HOP, REPEAT_HEC,
               REPEAT_LP } contract_repeat;

typedef enum contract_judge_form { JUDGE_NOT, JUDGE_LINE, JUDGE_TSV, JUDGE_JSON } contract_judge_form;

typedef struct contract_options {
    const char *graph, *labels, *out, *node_output, *report; /* labels: NULL with repeat; out: NULL with judge */
    io_format from, to;
    io_label_format label_format;
    int64_t base, node_base; /* -1: not given */
    int64_t levels, seed, threads, memory;
    contraction_engine engine;
    sp_combine combine;
    sp_loops loops;
    bool half_loops, compact, names, directed, undirected, quiet;
    bool loops_given, loops_by_format; /* by the option; dropped because METIS graphs have none */
    sp_value_type values;
    contract_unlabelled unlabelled;
    contract_unknown unknown;
    contract_repeat repeat;
    contract_judge_form judge;
    const char *through;              /* a map from nodes of the graph to those that have the labels */
    const char *label_output, *refine; /* where labels go; better ones */
    double imbalance;   /* with refine; -1: not given */
    double inflation, max_weight; /* max_weight: 0 by to_nodes, or none */
    int64_t to_nodes;             /* 0: not given */
    const char *device;
    team_mpi mpi;
    const char *attributes, *attribute_rules; /* a table of nodes; how they are combined */
    const char *node_weight, *node_column, *label_column, *edge_column;
    const char *node_weights;   /* a file of them */
} contract_options;

/* Reads the command line; a mistake is one line on stderr. */
options_outcome contract_parse(int argc, char **argv, contract_options *options);
void contract_usage(FILE *stream);
/* Whether an output format holds names of nodes. */
bool has_names(io_format format);
/* How the values that the nodes of a group have in a column become one. */
typedef enum contract_attribute_rule { ATTRIBUTE_SUM, ATTRIBUTE_MEAN, ATTRIBUTE_MIN, ATTRIBUTE_MAX, ATTRIBUTE_MEDIAN,
               ATTRIBUTE_FIRST, ATTRIBUTE_MODE, ATTRIBUTE_COUNT } contract_attribute_rule;

/* Words of the command line, for the report. */
const char *format_word(io_format format);
const char *label_format_word(io_label_format format);
const char *combine_word(sp_combine combine);
const char *loops_word(sp_loops loops);
const char *engine_word(contraction_engine engine);
const char *values_word(sp_value_type values);
const char *repeat_word(contract_repeat repeat);

typedef struct contract_seconds {
    double graph, labels, build, refine, contract, write, total;
} contract_seconds;

typedef struct contract_job {
    const contract_options *options;
    sp_context *host, *device;      /* device: CUDA; NULL: compute on the host */
    memory_budget budget;           /* of the host, in one process */
    tool_line line;
    team team;
    uint64_t arguments;             /* a hash of the command line */
    bool mistaken;                  /* an output is an input or another output, which was said */

    io_graph input;                 /* its arcs go once the matrices are made; names and ids stay */
    int64_t arcs;                   /* of the input */
    int64_t up, down;               /* arcs to a later node and to an earlier one, if they may be directions of edges */
    sp_csr g;                       /* host */
    sp_csr repeats;                 /* mean of a graph with repeated edges: repetitions of each; else empty */
    bool undirected;                /* g is symmetric */
    int64_t loops;                  /* of g */
    int64_t repeated;               /* edges of the input that fell together with others */
    sp_combine combine;             /* for g, whose entries may be combined ones already */
    bool whole;                     /* its weights are whole numbers, whose sums are to be exact */
    double weight_sum;              /* of g's weights without signs, before repeated edges are combined */

    io_node_table attributes;
    contract_attribute_rule *rules; /* of its columns */

    io_labelling labelling;
    int64_t base;                   /* the number of the first group: the first label or, without labels, node */
    int64_t groups;
    int64_t empty;                  /* of them, before compaction */
    int32_t *old;                   /* compaction: number of each group before; else NULL */
    io_names group_names;           /* none: groups are numbers */
    bool tab;                       /* OUT.tab has them */
    int constraints;                /* METIS: weights a group */
    int64_t *group_weights, *group_sizes; /* METIS: sums over nodes; NULL: none */
    contraction_hierarchy hierarchy;
    double *loads;                  /* with repeat: weights of the nodes of the level at hand */
    double max_weight;              /* of a group; 0: none */
    double shrunk;                  /* part of the nodes that the last level left */

    sp_csr c;                       /* host; with several processes the rows of this one, from `first` on */
    int64_t first;
    io_head head;                   /* of all rows */
    bool c_undirected;
    bool written;                   /* C, or all know that it is not */
    contraction_judgement judgement; /* with judge */
    contraction_refined refined;    /* with refine */
    contraction_group *figures;     /* of the groups, for --node-output; NULL: made from g */
    contraction_info info;
    contract_seconds seconds;
    char device_name[128];
} contract_job;

/* input.c: the graph as a matrix; the labels, without nodes that have none and groups that are empty. */
sp_status contract_read_graph(contract_job *job);
sp_status contract_read_labels(contract_job *job);
/* The steps of the first: how the graph is read; what follows from its format. */
io_read_options contract_reading(const contract_options *options);
sp_status contract_take_input(contract_job *job);
/* directions.c: finds out whether the file has both directions of its edges; all processes come to it with their arcs.
 * How the arcs of the input are made entries. */
typedef struct arcs_view {
    const int32_t *sources, *targets;
    bool mirror; /* each stands for both directions */
} arcs_view;
sp_status contract_find_directions(contract_job *job);
sp_status contract_view(contract_job *job, arcs_view *view);
/* Notices a list that has each edge in both directions with different weights: since label pairs stand for both
 * directions, it counts each edge twice. Then the matrix has as many entries as the list has lines. */
void contract_notice_directions(contract_job *job, int64_t entries);
/* Gives the arcs' weights, which were rounded as they were read, the type in which they are combined; says what is
 * known of all weights; makes g of the arcs and, for means of repeated edges, the number of repetitions of each. */
sp_status contract_widen_weights(contract_job *job);
sp_status contract_weigh(contract_job *job, bool mirror);
sp_status contract_build(contract_job *job, const arcs_view *view);
void contract_free_arcs(contract_job *job);
/* A node of the input as text; `buffer` is used if it has no name. */
const char *contract_node_name(const contract_job *job, int64_t node, char buffer[32], size_t *length);

/* Names as messages have them: their first 40 bytes. */
typedef char short_name[48];
const char *contract_short_node(const contract_job *job, int64_t node, short_name text);
const char *contract_short_group(const contract_job *job, int64_t group, short_name text);

/* Values of a matrix as f32 or f64. */
sp_status contract_convert(sp_context *context, sp_csr *matrix, sp_value_type type);

/* exact.c: whole numbers stay exact, or the run is refused. */
sp_status contract_check_weights(contract_job *job, const void *values, sp_value_type type, int64_t count);
sp_status contract_check_sums(contract_job *job);
/* Absolute values (NULL: ones) in two parts, whose sums together are exact, and whether sums of both are beyond
 * 2^53. */
typedef enum contract_half { HALF_HIGH, HALF_LOW } contract_half;
sp_status contract_part(sp_context *context, const double *values, int64_t count, contract_half half, double **part);
bool contract_is_beyond(double high, double low);

/* attributes.c: whether the text says how attributes are combined; if not, a mistake has been said. Reads the table of
 * nodes, from which they may get weights. Headings and, for all groups, values of the columns as --node-output has
 * them. */
bool contract_check_rules(const char *text);
sp_status contract_read_attributes(contract_job *job);
void contract_put_attribute_headings(const contract_job *job, io_output *out);
sp_status contract_combine_attributes(const contract_job *job, double ***columns);
void contract_put_attributes(const contract_job *job, io_output *out, double *const *columns, int64_t group);
void contract_free_attributes(const contract_job *job, double **columns);

/* nodes.c: weights of nodes from a file of their own; weights and sizes added up. */
sp_status contract_read_weights(contract_job *job);
sp_status contract_sum_nodes(contract_job *job);

/* compute.c: opens the context of the CPU, and that of a CUDA device which was asked for; the quotient graph, or the
 * hierarchy and its last graph. */
sp_status contract_open_host(contract_job *job);
sp_status contract_open_device(contract_job *job);
sp_status contract_compute(contract_job *job);
/* The quotient of a host g by the labels, or by the matrix `s`, on the host. */
sp_status contract_quotient(contract_job *job, sp_context *context, const sp_csr *g, const sp_csr *s,
                            const contraction_options *how, sp_csr *c);

/* Its steps: C of g on a device; refuses sums that have left the range of their type. */
sp_status contract_on(contract_job *job, sp_context *context);
sp_status contract_refuse_infinite(contract_job *job);

/* together.c: the whole run, in several processes. */
sp_status contract_run_together(contract_job *job);
/* together_rows.c: the rows of C as they are written; owner[p] is the process that has row p. Writes all files, which
 * process 0 does while the others serve it; there contract_write comes to contract_put_together. */
sp_status contract_finish_rows(contract_job *job, const int32_t *owner);
sp_status contract_write_together(contract_job *job);
sp_status contract_put_together(contract_job *job, io_output *out, const io_write_options *writing);

/* METIS graphs have no loops: refuses labels that make some, or says that these are left out. Without g it is not
 * known whether there are any. */
void contract_notice_loops(contract_job *job, const sp_csr *g, const int32_t *labels);
sp_status contract_refuse_loops(const contract_job *job, sp_context *context, const sp_csr *g, const int32_t *labels);
/* hierarchy.c: contracts repeatedly. */
sp_status contract_repeat_on(contract_job *job, sp_context *context);
/* The values of g where repeated edges are averaged: their means in place of their sums. */
void contract_average_edges(contract_job *job);

/* main.c: entries on the diagonal. */
int64_t contract_count_loops(const sp_csr *matrix);

/* labels.c: the labels of a coarse graph and the map to it; refuses a file that could not hold labels; writes them. */
sp_status contract_read_through(contract_job *job, const io_label_options *reading);
sp_status contract_check_label_file(const contract_job *job);
/* Refuses the name of a group that a reader of the file's labels would take for something else. Labels are names, or
 * numbers if all are. */
typedef struct label_words {
    bool names, numbers; /* of those before */
} label_words;
sp_status contract_check_word(const contract_job *job, const char *path, const char *name, size_t length,
                              const char *remedy, label_words *words);
sp_status contract_put_labels(const contract_job *job, io_output *out);

/* refine.c: moves the borders of the groups; what was gained, for the closing line and the report. */
sp_status contract_refine(contract_job *job);
enum { REFINED_TEXT = 192 };
const char *contract_refined_text(const contract_job *job, char text[REFINED_TEXT]);
void contract_put_refined(const contract_job *job, json *j);

/* judge.c: figures of the labelling; as --judge names them; as members of an object. */
sp_status contract_judge(contract_job *job);
void contract_put_judgement(const contract_job *job, io_output *out);
void contract_put_figures(const contract_job *job, json *j);

/* output.c: refuses outputs that could not be written or are inputs; names groups; writes everything. */
sp_status contract_check_outputs(contract_job *job);
sp_status contract_check_tab(contract_job *job); /* once the names of groups are known */
sp_status contract_name_groups(contract_job *job);
/* The number that the labels have for a group. */
int64_t contract_group_number(const contract_job *job, int64_t group);
/* What a group is called; `buffer` is used if that is a number. */
const char *contract_group_name(const contract_job *job, int64_t group, char buffer[32], size_t *length);
/* Writes what a node is called, or a group, as text. */
void contract_put_node(const contract_job *job, io_output *out, int64_t node);
void contract_put_group(const contract_job *job, io_output *out, int64_t group);
sp_status contract_write(contract_job *job);
/* report.c */
void contract_put_report(const contract_job *job, io_output *out);

#endif
