/* io: reading and writing graphs, labels and clusterings. Formats and compression are detected from content.
 *
 * Errors are one sentence "FILE:LINE: what (got "..."); what would be right", left in sp_last_error(context); the
 * line counts inside a compressed stream. Reader memory grows with what a file holds, never with what its header
 * claims: mostly less than its uncompressed size, at most 4 times it + 64 MB; 6 times + 64 MB for SIF, ETC and native
 * text, which can write an arc in two bytes, and 14 times for SIF and ETC lines of megabytes: a line is read whole.
 * (zstd's window, of 128 MB at most and never more than the file, comes on top; so does a second copy of arrays that
 * grow, with an allocator that has no resize.)
 * Numbers are parsed without regard to the locale. Strict by default; in lenient mode lines are taken the way `mcl`
 * takes them and counted.
 */
#ifndef IO_H
#define IO_H

#include "sparse.h"

typedef enum io_format {
    IO_AUTO = 0,  /* native matrix, binary matrix, Matrix Market, STRING or, failing these, label triples */
    IO_ABC,       /* LABEL LABEL [WEIGHT] a line (tab or blank separated), # comments */
    IO_SIF,       /* LABEL RELATION LABEL... (mcl --sif): arcs from the first label to each of the others */
    IO_ETC,       /* LABEL LABEL... (mcl --etc): arcs from the first label to each of the others */
    IO_NATIVE,    /* mcl's matrix, text or binary */
    IO_MTX,       /* Matrix Market coordinate */
    IO_STRING,    /* STRING protein.links: header "protein1 protein2 ... combined_score" */
    IO_BLAST      /* BLAST / DIAMOND -outfmt 6 */
} io_format;

typedef enum io_blast_score { IO_BLAST_BITS, IO_BLAST_EVALUE, IO_BLAST_IDENTITY } io_blast_score;

typedef struct io_read_options {
    io_format format;
    bool lenient;          /* take odd lines as mcl does, count them */
    bool expect_values;    /* SIF / ETC labels carry :VALUE */
    io_blast_score blast;  /* IO_BLAST: weight of a hit; -log10 E is capped at 200 */
    double minimum_score;  /* IO_STRING: pairs below are left out */
    const char *score_column; /* IO_STRING: its name in the header; NULL: combined_score, or the last column */
    /* Applied to each weight in f64 before it is stored as f32 (IO_ABC, IO_SIF, IO_ETC); may be NULL. */
    double (*transform)(void *user, double weight);
    void *transform_user;
    const char *tab;       /* file ID<TAB>LABEL: names for a native or Matrix Market graph; NULL: none */
    const volatile int *interrupt; /* as in sp_context_options: reading ends with SP_ERROR_INTERRUPTED */
} io_read_options;

/* Names of 0..count-1, one after another: name i is the io_name_length(names, i) bytes at io_name(names, i), without
 * a NUL. Offsets count from where the name's group begins, so that 4 bytes hold them. */
typedef struct io_names {
    int64_t count;     /* 0: no names */
    int64_t *groups;   /* where in `bytes` every IO_NAME_GROUP'th name begins */
    uint32_t *offsets; /* count + 1 */
    char *bytes;
} io_names;

enum { IO_NAME_GROUP = 1 << 12 };

/* A graph as read: arcs in file order, repetitions included (every format wants the largest of them; within a column
 * of a native matrix the first has already been chosen). Weights are finite and, unless lenient, not negative; those
 * of 0 make no arc. */
typedef struct io_graph {
    io_format format;   /* what it was */
    int64_t nodes;
    int64_t arcs;
    int32_t *tails, *heads; /* native matrix: tail = column (mclcols), head = row entry */
    float *weights;
    bool symmetric;     /* each arc stands for both directions (every format but IO_NATIVE and general IO_MTX) */
    int64_t *ids;       /* native matrix with a domain other than 0..nodes-1: the id of each node; else NULL */
    io_names names;     /* labels in order of first appearance, or from the tab file */
    int64_t lines;      /* lines read */
    int64_t bytes;      /* uncompressed bytes read */
    int64_t odd_lines;  /* lines that only lenient mode accepts (they were changed or skipped) */
    int64_t negative;   /* weights below zero (lenient mode only) */
} io_graph;

/* Reads a graph from PATH ("-": standard input), gzip and zstd by content. */
sp_status io_read_graph(sp_context *context, const char *path, const io_read_options *options, io_graph *graph);
void io_graph_free(sp_context *context, io_graph *graph);

static inline int64_t io_name_begin(const io_names *names, int64_t i)
{
    return names->groups[(uint64_t)i / IO_NAME_GROUP] + names->offsets[i];
}

static inline const char *io_name(const io_names *names, int64_t i) { return names->bytes + io_name_begin(names, i); }

static inline size_t io_name_length(const io_names *names, int64_t i)
{
    return (size_t)(io_name_begin(names, i + 1) - io_name_begin(names, i));
}

/* ---- output -------------------------------------------------------------------------------------------- */

/* A buffered output file that appears complete or not at all: regular targets are written as PATH.tmp.PID in the
 * same folder and renamed by io_output_commit; "-", FIFOs and devices are written directly. */
typedef struct io_output io_output;

sp_status io_output_open(sp_context *context, const char *path, io_output **output);
/* Writing never fails visibly; the first error is kept and returned by io_output_commit. */
void io_output_bytes(io_output *output, const void *bytes, size_t count);
void io_output_string(io_output *output, const char *string);
void io_output_format(io_output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
void io_output_int(io_output *output, int64_t value);
/* Flushes, syncs, renames, frees. On failure the temporary file is gone and nothing is left behind. */
sp_status io_output_commit(io_output *output);
/* Drops the temporary file and frees; NULL is fine. */
void io_output_discard(io_output *output);
/* Fails now, not after the work, if PATH could not be written (folder missing, not writable, a folder itself). */
sp_status io_output_check(sp_context *context, const char *path);
/* Unlinks the temporary files of all outputs that are open; async-signal-safe: for signal handlers. */
void io_output_unlink_all(void);

/* A clustering as lists: cluster c holds members[offsets[c]] .. members[offsets[c+1]-1]. */
typedef struct io_clusters {
    int64_t nodes, clusters;
    const int64_t *offsets;
    const int32_t *members;
} io_clusters;

/* A cluster a line, tab-separated names. */
sp_status io_write_label_clusters(sp_context *context, const char *path, const io_clusters *clusters,
                                  const io_names *names);
/* mcl's native matrix, rows = nodes, columns = clusters, byte for byte as mcl writes it: "# cline: ..." first when
 * command_line is not NULL. `ids` as in io_graph (NULL: 0..nodes-1). */
sp_status io_write_native_clusters(sp_context *context, const char *path, const io_clusters *clusters,
                                   const int64_t *ids, const char *command_line);
/* Both into an output that is open, for callers that add text of their own. */
void io_put_label_clusters(io_output *output, const io_clusters *clusters, const io_names *names);
void io_put_native_clusters(io_output *output, const io_clusters *clusters, const int64_t *ids,
                            const char *command_line);
/* mcl's native matrix of a square host CSR whose row j is column j of the matrix (mcl -write-graph and friends);
 * values with `digits` significant digits (mcl's default 8 as %g), or mcl's binary form. */
sp_status io_write_native_matrix(sp_context *context, const char *path, const sp_csr *columns, const int64_t *ids,
                                 int digits, bool binary, const char *command_line);

#endif
