/* sparse-bench: what its parts share. A run of spgemm goes through its cases one by one: make the operands
 * (bench_input), time our product (bench_own), time the peers' (bench_peers), compare (bench_check), report
 * (bench_report). Those of spmm stand in bench_spmm.h, those of contract in bench_contract.h, those of gnn in
 * bench_gnn.h. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>

#include "tool.h"

/* ---- what is asked for (bench_options.c) --------------------------------------------------------------- */

enum { MAX_SOURCES = 200, MAX_SAMPLES = 100 };

/* Where a matrix comes from: a file, or a specification of sp_generate under a name. */
typedef struct source {
    const char *name, *spec; /* spec NULL: name is a file */
} source;

typedef enum bench_kind { BENCH_SPGEMM, BENCH_SPMM, BENCH_CONTRACT, BENCH_GNN } bench_kind;

enum { PEER_CUSPARSE = 1, PEER_GRAPHBLAS = 2, PEER_CUB = 4, PEER_DEFAULT = 8 };

enum { MAX_WIDTHS = 24, MAX_GROUPINGS = 12, MAX_MAXK = 8 };

/* So many groups, or so many percent of the nodes. */
typedef struct grouping {
    double amount;
    bool percent;
} grouping;

/* Who is in which group: drawn at random, or runs of nodes. */
enum { LABELS_RANDOM = 1, LABELS_BLOCKS = 2 };

/* On the device; or on the host, from where they come and go with each product. */
typedef enum host_memory { HOST_NONE, HOST_PAGEABLE, HOST_PINNED } host_memory;

/* What is taken apart (bench_spmm_ablation.c). */
enum { ABLATE_WARPS = 1, ABLATE_PARTITIONS = 2, ABLATE_SIZES = 4 };

typedef struct bench_options {
    bench_kind kind;
    source sources[MAX_SOURCES];
    int source_count;
    source times; /* the right operand; name NULL: the matrix itself */
    bool transposed; /* A·Aᵀ */
    uint64_t seed;
    sp_value_type type;
    sp_semiring semiring;
    sp_spgemm_algorithm algorithm;
    const char *device;
    int threads, repeat;
    double limit; /* seconds after which a candidate is measured no further */
    int64_t memory;
    bool aia, plan, check;
    unsigned peers; /* PEER_DEFAULT: those that fit the device */
    const char *json;
    int64_t widths[MAX_WIDTHS]; /* spmm: columns of X; gnn: between the layers */
    int width_count;
    bool widths_given;
    sp_reduce reduce;
    sp_dense_type features, result; /* spmm: of X and of Y */
    host_memory host; /* spmm: where X and Y lie */
    unsigned ablation;
    grouping groupings[MAX_GROUPINGS]; /* contract */
    int grouping_count;
    unsigned labels;
    int64_t feature_count, class_count; /* gnn, of generated graphs */
    unsigned models;                    /* a bit a gnn_layer */
    int64_t maxk[MAX_MAXK];
    int maxk_count;
    unsigned orders;                    /* a bit a gnn_order, in which models are trained */
    bool keep, half, aggregate, sample;
    const char *export; /* a folder, NULL: nothing is exported */
} bench_options;

typedef enum bench_request { REQUEST_BENCH, REQUEST_HELP, REQUEST_VERSION, REQUEST_MISTAKE } bench_request;

bench_request bench_parse(int argc, char **argv, bench_options *options);
void bench_usage(FILE *stream);
const char *kind_name(bench_kind kind);
const char *semiring_name(sp_semiring semiring);
const char *algorithm_name(sp_spgemm_algorithm algorithm);
const char *reduce_name(sp_reduce reduce);
const char *features_name(sp_dense_type type);

/* ---- the machine (bench_device.c) ---------------------------------------------------------------------- */

typedef struct machine {
    char cpu[96], gpu[96], driver[32], cuda[16], kernel[80]; /* "" where there is none */
    int cores;
    int64_t memory_bytes;
    double copy_bandwidth; /* of the device that computes: bytes read and written a second */
    /* The same of pinned copies to the device, from it, and both ways at once; 0: not measured. */
    double link_in, link_out, link_both;
    int64_t cache_bytes; /* of the device's second-level cache; on the CPU what a core has for itself */
} machine;

/* The machine, and whether the device that is asked for is a GPU. */
sp_status machine_look_around(sp_context *host, const bench_options *options, machine *m, bool *cuda);
/* Waits until the device has done all that it was given. */
void device_finish(void);
/* Pinned host memory; SP_ERROR_NO_DEVICE without CUDA. */
sp_status device_pin(sp_context *context, size_t bytes, void **memory);
void device_unpin(void *memory);
/* Measures the machine's link. */
sp_status device_link(sp_context *context, machine *m);
/* Copies between host and device memory, whichever each is. */
sp_status device_copy(sp_context *context, void *to, const void *from, size_t bytes);

/* ---- operands (bench_input.c) -------------------------------------------------------------------------- */

/* A file (Matrix Market, edge lists and the other formats of io, by content) or a generated matrix, on the host. */
sp_status input_load(sp_context *context, const source *from, const bench_options *options, sp_csr *matrix);

/* The values of a matrix on the host, as peers that know no patterns are given them: its own, or as many ones, which
 * are then in *ones for sp_free. */
sp_status values_or_ones(sp_context *context, const sp_csr *matrix, const void **values, void **ones);

/* The presets of a command: a specification by its short name, NULL if there is none; `index` counts them. */
const source *preset_named(bench_kind kind, const char *name);
const source *preset_at(bench_kind kind, int index);
/* Sets of them by their names ("paper", "small"): the specification number `index`, NULL after the last. */
const source *preset_of_set(bench_kind kind, const char *set, int index);
/* The columns of X that a preset of spmm comes with; 0: none in particular. */
int64_t preset_width(const source *preset);

/* ---- times --------------------------------------------------------------------------------------------- */

typedef struct timing {
    int count;
    double seconds[MAX_SAMPLES];
    double median;
    int middle; /* the sample nearest to the median */
} timing;

void time_median(timing *time); /* of its samples */
/* Calls `step` once to warm up and then until the options say enough. `taken` (may be NULL) hears of each sample. */
sp_status time_steps(const bench_options *options, sp_status (*step)(void *), void (*taken)(void *, int), void *user,
                     timing *time);

/* ---- comparison (bench_check.c) ------------------------------------------------------------------------ */

/* A matrix in somebody's arrays, in any memory. */
typedef struct raw_matrix {
    int64_t rows, nnz;
    const void *offsets, *cols, *values; /* values NULL: ones */
    int offset_width, col_width;         /* bytes: 4 or 8 */
    bool one_value;                      /* all entries have values[0] */
    sp_value_type type;
} raw_matrix;

raw_matrix raw_of(const sp_csr *matrix);

enum { MAX_RANGES = 256 };

/* Rows that are compared entry by entry: all, or runs of rows spread over a huge matrix. */
typedef struct row_ranges {
    int count;
    int64_t begin[MAX_RANGES], end[MAX_RANGES];
    bool all;
} row_ranges;

/* All row lengths of a product and the entries of some rows, on the host, columns ascending. */
typedef struct extract {
    int64_t rows, nnz, kept;
    int64_t *offsets; /* of the whole matrix */
    int64_t starts[MAX_RANGES + 1];
    int32_t *cols;
    double *values;
    bool sorted; /* columns ascended as they came */
} extract;

/* Few enough rows that their entries and products take seconds, not minutes. */
sp_status choose_rows(sp_context *context, const sp_csr *c, const sp_csr *a, const sp_csr *b, row_ranges *ranges);
sp_status extract_rows(sp_context *context, const raw_matrix *matrix, const row_ranges *ranges, extract *out);
void extract_free(sp_context *context, extract *e);

typedef struct verdict {
    char with[40];     /* what C was compared with; "" if it was not */
    bool good, whole;  /* whole: every entry of C was compared */
    int64_t rows, entries;
    double largest;    /* relative difference of values; infinite: another pattern */
    char sentence[200]; /* what is wrong */
} verdict;

/* Compares with somebody else's result, or with one that is computed here, row by row. */
void compare_extracts(const sp_csr *a, const sp_csr *b, const bench_options *options, const row_ranges *ranges,
                      const extract *ours, const extract *theirs, verdict *v);
sp_status compare_reference(sp_context *context, const sp_csr *a, const sp_csr *b, const bench_options *options,
                            const row_ranges *ranges, const extract *ours, verdict *v);

/* ---- what is found out --------------------------------------------------------------------------------- */

enum { MAX_PEERS = 8, AIA_MODES = 3 };

/* One algorithm of a peer. `word` says in a word why there is no time; "" if there is one. */
typedef struct peer_result {
    char name[40], word[16], why[200];
    timing time;
    int64_t peak_bytes; /* working memory beyond the operands and C; 0: not measured */
    bool sorted;        /* its columns ascend */
    bool differs;       /* the pattern is ours, values are apart by more than the tolerance; `why` says where */
    bool plan;          /* the numeric phase alone, its pattern known */
    double setup_seconds; /* of the plan */
} peer_result;

typedef struct own_result {
    timing time;
    sp_spgemm_info info; /* of the sample nearest to the median */
    char word[16], why[200];
} own_result;

typedef struct bench_result {
    const char *name, *spec, *file, *operation; /* made by spec, or read from file */
    int64_t rows, inner, cols, nnz_a, nnz_b, longest_row;
    int64_t bytes; /* of the operands and of C: read once, written once */
    own_result own, aia[AIA_MODES], plan; /* plan.info: of the symbolic phase */
    double plan_seconds;                  /* of the symbolic phase */
    peer_result peers[MAX_PEERS];
    int peer_count;
    verdict checked;
} bench_result;

/* One case: operands on the host, our result's rows for comparison. */
typedef struct bench_case {
    const bench_options *options;
    const volatile int *interrupt;
    sp_context *host;
    sp_csr a, b_own;
    const sp_csr *b;
    row_ranges ranges;
    extract ours;
    bench_result *result;
} bench_case;

/* ---- ours (bench_own.c) -------------------------------------------------------------------------------- */

/* Times the product, and what else is asked for, in a context of its own, which ends before the peers begin. */
sp_status own_measure(bench_case *c);

/* ---- peers (bench_peers.c; bench_cusparse.c, bench_graphblas.c, bench_cub.c) --------------------------- */

/* A library that is loaded at run time. Every call returns a status with a sentence in sp_last_error(context). */
typedef struct peer {
    const char *name;
    const char *const *algorithms; /* ends with NULL */
    /* SP_ERROR_NO_DEVICE when the library is not there. */
    sp_status (*open)(sp_context *context, const bench_options *options, void **state);
    sp_status (*load)(void *state, const sp_csr *a, const sp_csr *b);
    /* After load: what `run` makes is (A·B)·last from now on; until unload. */
    sp_status (*follow)(void *state, const sp_csr *last);
    /* One whole product, finished; it stays until the next call, or until drop. */
    sp_status (*run)(void *state, int algorithm);
    void (*drop)(void *state);
    sp_status (*view)(void *state, raw_matrix *c);
    int64_t (*peak)(void *state); /* since load */
    /* The pattern, then values for it; NULL: not offered. */
    sp_status (*plan)(void *state);
    sp_status (*replay)(void *state);
    void (*unload)(void *state);
    void (*close)(void *state);
    /* After follow: makes S and Sᵀ, the first and the last operand, anew from the labels; NULL: not offered. */
    sp_status (*make)(void *state);
} peer;

extern const peer peer_cusparse, peer_graphblas, peer_cub;

/* The shared library, wherever it lies; NULL: not on this machine. */
void *graphblas_library(void);

/* The peers of a run. Each is opened once: some libraries can be started only once in a process. */
enum { PEER_LIBRARIES = 3 };
typedef struct peer_set {
    int count;
    struct opened_peer {
        const peer *peer;
        void *state;
        sp_status status; /* of opening it */
        char why[200];
    } peers[PEER_LIBRARIES];
} peer_set;

/* Those that were asked for, by default those that compute where we do. */
void peers_open(sp_context *context, const bench_options *options, bool cuda, peer_set *set);
void peers_close(peer_set *set);
/* A failure in a word. */
const char *failure_word(sp_status status);
/* Times and compares them; if none could be compared with, the reference is. */
sp_status peers_measure(bench_case *c, const peer_set *set);

/* ---- report (bench_report.c) --------------------------------------------------------------------------- */

void report_header(const machine *m, const bench_options *options);
void report_result(const machine *m, const bench_options *options, const bench_result *r);
/* A JSON file: report_open begins it with what every one has, up to the first of the options; the caller puts those of
 * its kind, then report_list the others and the beginning of the list of matrices; report_close ends both. */
sp_status report_open(sp_context *context, const machine *m, const bench_options *options, io_output **out);
void report_list(io_output *out, const bench_options *options);
sp_status report_close(io_output *out);
/* Pieces of it: "key": value, with the comma behind it. */
void put_text(io_output *out, const char *key, const char *text);
void put_count(io_output *out, const char *key, int64_t count);
void put_timing(io_output *out, const timing *time);
sp_status report_json(sp_context *context, const machine *m, const bench_options *options,
                      const bench_result *results, int count);

#endif
