/* sparse-bench contract: what its parts share. A case is a graph, a labelling and a number of groups: C = S·G·Sᵀ by
 * both engines of ours and by the peers (contract.c), each compared with sums in f64 (check.c), then reported
 * (report.c). */
#ifndef BENCH_CONTRACT_H
#define BENCH_CONTRACT_H

#include "sparse-bench/bench.h"

enum { MAX_GROUPINGS = 12 };

/* A number of groups, or a percentage of the nodes. */
typedef struct grouping {
    double amount;
    bool percent;
} grouping;

/* Who is in which group: drawn at random, runs of nodes, or drawn so that sizes follow a power law. */
enum { LABELS_RANDOM = 1, LABELS_BLOCKS = 2, LABELS_POWER = 4, LABEL_KINDS = 3 };

typedef struct contract_bench_options {
    bench_options common;
    grouping groupings[MAX_GROUPINGS];
    int grouping_count;
    unsigned labels;
    bool aia;
} contract_bench_options;
const char *label_kind_name(unsigned kind); /* of one bit */

enum { CONTRACT_FUSED, CONTRACT_PRODUCTS, CONTRACT_OWN };
enum { CONTRACT_PEERS = 10 };

typedef struct contract_result {
    const source *from;
    const char *name, *labels;
    int64_t nodes, edges, groups, nnz; /* nnz: of C */
    int64_t bytes;                     /* G, labels and C, each once */
    candidate own[CONTRACT_OWN], peers[CONTRACT_PEERS];
    candidate aia[AIA_MODES];          /* products by the hash algorithm without the gathering stage and with it */
    timing from_labels[CONTRACT_PEERS]; /* S and its transpose made from the labels as well; count 0: not measured */
    int peer_count;
    bool whole; /* all groups were compared */
} contract_result;

typedef struct contract_case {
    const contract_bench_options *options;
    const volatile int *interrupt;
    sp_context *host;
    sp_csr g, s, s_transposed; /* on the host; the columns of Sᵀ, an entry a row, are the labels */
    contract_result *result;
} contract_case;

sp_status contract_run(sp_context *host, const contract_bench_options *options, const volatile int *interrupt,
                       int *code);

/* Compares a C of any memory with sums in f64: fills in `unsorted` and `error`. */
sp_status contract_compare(const contract_case *c, const raw_matrix *made, candidate *figures);
/* The error above which sums are wrong. */
double contract_tolerance(const contract_bench_options *options);

void contract_report_result(const machine *m, const contract_bench_options *options, const contract_result *r);
sp_status contract_report_json(sp_context *context, const machine *m, const contract_bench_options *options,
                               const contract_result *results, int count);

#endif
