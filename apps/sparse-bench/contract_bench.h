/* sparse-bench contract: what its parts share. A case is a graph, a labelling and a number of groups: C = S·G·Sᵀ by
 * both engines of ours (contract.c) and by the peers, each compared with sums in f64
 * (contract_check.c), then a line and the JSON so far (contract_report.c). */
#ifndef BENCH_CONTRACT_H
#define BENCH_CONTRACT_H

#include "bench.h"

/* One candidate's figures. `word` says in a word why there are none; "" if there are. */
typedef struct contract_figures {
    char name[40], word[16], why[200];
    timing time;
    int64_t peak_bytes; /* working memory beyond the operands and C; 0: not measured */
    bool sorted;        /* columns ascend */
    bool makes;         /* a peer that is given S and Sᵀ, and can make them: */
    timing whole;       /* that as well, from the labels */
    double error; /* the largest, relative to the sum of the terms' sizes; infinite: another pattern; -1: not compared */
} contract_figures;

enum { CONTRACT_FUSED, CONTRACT_PRODUCTS, CONTRACT_OWN };
enum { CONTRACT_PEERS = 6 };

typedef struct contract_result {
    const source *from;
    const char *name, *labels;
    int64_t nodes, edges, groups, nnz; /* nnz: of C */
    int64_t bytes;                     /* G, labels and C, each once */
    contract_figures own[CONTRACT_OWN], peers[CONTRACT_PEERS];
    contract_figures aia[AIA_MODES]; /* products by the hash algorithm without the gathering stage and with it */
    int peer_count;
    bool whole; /* all groups were compared */
} contract_result;

typedef struct contract_case {
    const bench_options *options;
    const volatile int *interrupt;
    sp_context *host;
    sp_csr g, s, s_transposed; /* on the host; the columns of Sᵀ, an entry a row, are the labels */
    contract_result *result;
} contract_case;

sp_status contract_run(sp_context *host, const bench_options *options, const volatile int *interrupt, int *code);

/* Compares a C of any memory with sums in f64: fills in `sorted` and `error`. */
sp_status contract_compare(const contract_case *c, const raw_matrix *made, contract_figures *figures);
/* The error above which sums are wrong. */
double contract_tolerance(const bench_options *options);

void contract_report_header(const machine *m, const bench_options *options);
void contract_report_result(const machine *m, const bench_options *options, const contract_result *r);
sp_status contract_report_json(sp_context *context, const machine *m, const bench_options *options,
                               const contract_result *results, int count);

#endif
