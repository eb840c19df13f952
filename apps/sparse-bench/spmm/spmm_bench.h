/* sparse-bench spmm: what its parts share. A case is a graph and a width: Y = A·X with each algorithm of ours (spmm.c),
 * variants with an idea taken away (ablation.c), what the CPU's memory allows (floor.c), and the peers'
 * (../peers/spmm_*.c). Each result is compared with sums in f64, then reported (report.c). */
#ifndef BENCH_SPMM_H
#define BENCH_SPMM_H

#include "sparse-bench/bench.h"

/* X and Y are on the device; or on the host, from where they come and go with each product. */
typedef enum host_memory { HOST_NONE, HOST_PAGEABLE, HOST_PINNED } host_memory;

/* What is taken apart (ablation.c). */
enum { ABLATE_WARPS = 1, ABLATE_PARTITIONS = 2, ABLATE_SIZES = 4 };

enum { MAX_WIDTHS = 32 };

typedef struct spmm_options {
    bench_options common;
    option_counts widths; /* columns of X */
    bool widths_given;
    bool transpose;       /* our plans are of A's transpose, the peers get that as a matrix */
    sp_reduce reduce;
    sp_dense_type features, result; /* of X and of Y */
    host_memory host;     /* where X and Y lie */
    unsigned ablation;
} spmm_options;
const char *reduce_name(sp_reduce reduce);
const char *features_name(sp_dense_type type);

enum { SPMM_ALGORITHMS = SP_SPMM_BIDIRECTIONAL + 1, SPMM_PEERS = 12, SPMM_VARIANTS = 14 };

typedef struct spmm_result {
    const source *from;
    const char *name;
    int64_t rows, cols, nnz, longest_row, width;
    int64_t gathered_bytes;   /* of X's rows, one an entry */
    int64_t compulsory_bytes; /* A, X and Y, each once */
    double floor_seconds;     /* of gathers in A's order or of compulsory bytes, what takes longer; 0: not known */
    int64_t warp_metadata_bytes; /* of a partition into parts of a row for a warp each (ablation.c) */
    candidate own[SPMM_ALGORITHMS], peers[SPMM_PEERS]; /* own: by sp_spmm_algorithm, the choice first */
    candidate variants[SPMM_VARIANTS];
    int peer_count, variant_count;
} spmm_result;

/* Rows whose product is known in f64. */
typedef struct spmm_reference {
    int64_t count, *rows;
    double *sums, *sizes; /* count x width: the sums, and those of the terms' sizes */
} spmm_reference;

typedef struct spmm_case {
    const spmm_options *options;
    const volatile int *interrupt;
    const machine *machine;
    sp_context *host;
    sp_csr a, stored; /* the matrix that is multiplied; with `transpose` what our plans are made of */
    sp_dense x; /* on the host, as A */
    spmm_reference reference;
    byte_counter counter; /* of our plans; open from the first case on */
    spmm_result *result;
} spmm_case;

sp_status spmm_run(sp_context *host, const spmm_options *options, const volatile int *interrupt, int *code);

/* Times `run`, which starts one product, in samples long enough for the clock. */
sp_status spmm_time(const bench_options *options, sp_status (*run)(void *), void *user, timing *time);
/* The largest relative error of Y, whose rows lie side by side in any memory, made of A's values as `weights`; what
 * the least numbers of 16 bits lose anyway does not count. */
sp_status spmm_compare(const spmm_case *c, const void *values, sp_dense_type type, sp_dense_type weights,
                       double *error);
/* Bytes of a number. */
size_t spmm_size_of(sp_dense_type type);
/* A number rounded to 16 bits, and the relative error of that; 0 for wider types. */
uint16_t spmm_small_bits(double value, sp_dense_type type);
double spmm_rounding(sp_dense_type type);
/* The error above which a product is wrong. */
double spmm_tolerance(const spmm_options *options);
/* The variants that the options name, of A, X and Y where `context` computes; and the figures of a partition that all
 * have. */
sp_status spmm_ablation_measure(spmm_case *c, sp_context *context, const sp_csr *a, const sp_dense *x, sp_dense *y);
int64_t spmm_warp_metadata(const sp_csr *a);

/* The result's floor, of gathers from X in host memory. */
void spmm_floor_measure(spmm_case *c, const sp_dense *x);

/* A library that is loaded at run time. Failures leave a sentence in the context. */
typedef struct spmm_peer {
    const char *const *algorithms; /* ends with NULL */
    sp_status (*open)(sp_context *context, const spmm_options *options, void **state);
    sp_status (*load)(void *state, const sp_csr *a, const sp_dense *x);
    sp_status (*prepare)(void *state, int algorithm); /* preparations made once; finished on return */
    sp_status (*run)(void *state);                    /* starts a product */
    sp_status (*view)(void *state, const void **y);   /* Y, rows side by side, once all is finished; the last call */
    void (*unload)(void *state);
    void (*close)(void *state);
    void (*version)(char *text, size_t size); /* its name and version, once it is open; NULL: not known */
    int64_t (*peak)(void *state); /* memory beside A, X and Y; NULL: its allocations cannot be counted */
} spmm_peer;

extern const spmm_peer spmm_peer_cusparse, spmm_peer_graphblas, spmm_peer_mkl, spmm_peer_published;

typedef struct spmm_peer_set {
    scipy_peer scipy;
    int count;
    struct spmm_opened_peer {
        const spmm_peer *peer;
        void *state;
        sp_status status;
        char why[200];
    } peers[PEER_LIBRARIES];
} spmm_peer_set;

void spmm_peers_open(sp_context *context, const spmm_options *options, bool cuda, spmm_peer_set *set);
/* The names and versions of those that are open. */
void spmm_peers_versions(const spmm_peer_set *set, char *text, size_t size);
void spmm_peers_close(spmm_peer_set *set);
sp_status spmm_peers_measure(spmm_case *c, const spmm_peer_set *set);

void spmm_report_result(const machine *m, const spmm_options *options, const spmm_result *r);
sp_status spmm_report_json(sp_context *context, const machine *m, const spmm_options *options,
                           const spmm_result *results, int count);

#endif
