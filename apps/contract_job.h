/* One run of contract: its options, what its steps share, and the steps that have files of their own. */
#ifndef CONTRACT_JOB_H
#define CONTRACT_JOB_H

#include "contraction.h"
#include "io.h"
#include "tool.h"

enum { MAX_PATH = 4096, MAX_LEVELS = 32 };

typedef enum contract_unlabelled { UNLABELLED_ERROR, UNLABELLED_DROP, UNLABELLED_KEEP } contract_unlabelled;
typedef enum contract_repeat { REPEAT_NEVER, REPEAT_CLUSTER, REPEAT_MATCHING } contract_repeat;

typedef struct contract_options {
    const char *graph, *labels, *out, *node_output, *report; /* labels: NULL with repeat */
    io_format from, to;
    io_label_format label_format;
    int64_t base, levels, seed, threads, memory;
    contraction_engine engine;
    sp_combine combine;
    sp_loops loops;
    bool half_loops, compact, names, directed, undirected, skip_unknown;
    contract_unlabelled unlabelled;
    contract_repeat repeat;
    double inflation;
    const char *device;
} contract_options;

typedef enum contract_request { CONTRACT_RUN, CONTRACT_HELP, CONTRACT_VERSION, CONTRACT_MISTAKE } contract_request;

/* Reads the command line; a mistake is one line on stderr. */
contract_request contract_parse(int argc, char **argv, contract_options *options);
void contract_usage(FILE *stream);
/* Words of the command line, for the report. */
const char *format_word(io_format format);
const char *label_format_word(io_label_format format);
const char *combine_word(sp_combine combine);
const char *loops_word(sp_loops loops);
const char *engine_word(contraction_engine engine);
const char *repeat_word(contract_repeat repeat);

typedef struct contract_seconds {
    double graph, labels, build, contract, write, total;
} contract_seconds;

typedef struct contract_job {
    const contract_options *options;
    sp_context *host, *device;      /* device: CUDA; NULL: compute on the host */
    tool_line line;
    bool mistaken;                  /* an output is an input, which was said */

    io_graph input;                 /* its arcs go once the matrices are made; names and ids stay */
    int64_t arcs;                   /* of the input */
    sp_csr g;                       /* host */
    sp_csr repeats;                 /* mean of a graph with repeated edges: how often each is there; else empty */
    bool undirected;                /* g is symmetric */
    int64_t repeated;               /* edges of the input that fell together with others */
    sp_combine combine;             /* for g, whose entries may be combined ones already */

    io_labelling labelling;
    int64_t groups;
    int64_t empty;                  /* of them, before compaction */
    int32_t *old;                   /* compaction: number of each group before; else NULL */
    io_names group_names;           /* none: groups are numbers */
    contraction_hierarchy hierarchy;

    sp_csr c;                       /* host */
    bool c_undirected;
    contraction_info info;
    contract_seconds seconds;
    char device_name[128];
} contract_job;

/* contract_input.c: the graph as a matrix; the labels, without nodes that have none and groups that are empty. */
sp_status contract_read_graph(contract_job *job);
sp_status contract_read_labels(contract_job *job);
/* A node of the input as text; `buffer` is used if it has no name. */
const char *contract_node_name(const contract_job *job, int64_t node, char buffer[32], size_t *length);

/* contract_compute.c: opens the contexts; the quotient graph, or the hierarchy and its last graph. */
sp_status contract_open_host(contract_job *job);
sp_status contract_compute(contract_job *job);

/* contract_output.c: refuses outputs that could not be written or are inputs; names groups; writes everything. */
sp_status contract_check_outputs(contract_job *job);
sp_status contract_name_groups(contract_job *job);
sp_status contract_write(contract_job *job);

#endif
