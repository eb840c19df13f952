/* io: reading and writing graphs, labels and clusterings. Formats and compression are detected from content.
 *
 * Errors are one sentence "FILE:LINE: what (got "..."); what would be right", left in sp_last_error(context); the
 * line counts inside a compressed stream. Reader memory grows with what a file holds, never with what its header
 * claims: mostly less than its uncompressed size, at most 4 times it + 64 MB for graphs (5 times with weights of f64),
 * however long their lines are. Weights of METIS nodes make it 4.5 times: "1\n", a node without edges, takes 8 bytes,
 * and an eighth more while its array grows. (zstd's window, of 128 MB at most and never more than the file, comes on
 * top; so does a second copy of arrays that grow, with an allocator that has no resize.) What a matrix of the arcs takes
 * is said at io_graph_matrix.
 * Numbers are parsed without regard to the locale. Strict by default; in lenient mode lines are taken the way `mcl`
 * takes them and counted. A byte order mark of UTF-8 before text is passed over, but for lenient mode.
 */
#ifndef IO_H
#define IO_H

#include "sparse.h"

typedef enum io_format {
    IO_AUTO = 0,  /* native matrix, binary matrices, Matrix Market, STRING by content; METIS by the file's name
                   * (.graph, .metis), or where every line fits its header (unless the name is .abc, .tsv, .csv);
                   * failing these label triples */
    IO_ABC,       /* LABEL LABEL [WEIGHT] a line (tab or blank separated), # comments */
    IO_SIF,       /* LABEL RELATION LABEL... (mcl --sif): arcs from the first label to each of the others */
    IO_ETC,       /* LABEL LABEL... (mcl --etc): arcs from the first label to each of the others */
    IO_NATIVE,    /* mcl's matrix, text or binary */
    IO_MTX,       /* Matrix Market coordinate */
    IO_STRING,    /* STRING protein.links: header "protein1 protein2 ... combined_score" */
    IO_BLAST,     /* BLAST / DIAMOND -outfmt 6 */
    IO_METIS,     /* METIS graph: NODES EDGES [FORMAT [CONSTRAINTS]], then a line a node: its size, its weights and
                   * its neighbours */
    IO_CSR,       /* compressed rows in binary, with a checksum: our own, for fast reloading */
    IO_TSV        /* only written: every entry of the matrix as a label triple */
} io_format;

/* What a format is called in sentences: "label pairs". */
const char *io_format_name(io_format format);

typedef enum io_blast_score { IO_BLAST_BITS, IO_BLAST_EVALUE, IO_BLAST_IDENTITY } io_blast_score;

typedef struct io_read_options {
    io_format format;
    bool refuse_others;    /* IO_AUTO: what nothing tells apart is no label triples but an error */
    bool lenient;          /* take odd lines as mcl does, count them */
    bool offers_lenient;   /* the tool has options --lenient and -tf, which advice may name */
    bool any_sign;         /* weights may be negative: they are values of a matrix, not similarities */
    bool matrix;           /* IO_CSR: the graph comes as `matrix`, without arcs */
    sp_value_type values;  /* of weights; SP_F32 rounds each of them once. IO_CSR with `matrix`: as in the file */
    bool expect_values;    /* SIF / ETC labels carry :VALUE */
    io_blast_score blast;  /* IO_BLAST: weight of a hit; -log10 E is capped at 200 */
    double minimum_score;  /* IO_STRING: pairs below are left out */
    const char *score_column; /* IO_STRING: its name in the header; NULL: combined_score, or the last column */
    /* Applied to each weight in f64 before it is stored, as -abc-tf and --abc-neg-log[10] of the tools say: where lines
     * are of labels (IO_STRING: after minimum_score). mcl's native matrices ignore it, other matrices are refused. May
     * be NULL. */
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

/* Arcs with one tail for many heads, and no weights where the text has none. */
typedef struct io_packed io_packed;

/* A graph as read: arcs in file order, repetitions included (every format wants the largest of them; within a column
 * of a native matrix the first has already been chosen). Weights are finite and, unless lenient, not negative; those
 * of 0 make no arc. */
typedef struct io_graph {
    io_format format;   /* what it was */
    int64_t nodes;
    int64_t arcs;
    io_packed *packed;  /* formats whose lines have many arcs: all of them, until they are spread; NULL: already */
    int32_t *tails, *heads; /* native matrix: tail = column (mclcols), head = row entry */
    void *weights;      /* of type `values`; NULL: all are 1 */
    sp_value_type values;
    bool symmetric;     /* each arc stands for both directions (label formats and symmetric IO_MTX) */
    bool undirected;    /* `symmetric`, or each arc is there in both directions (IO_METIS, IO_CSR that says so) */
    sp_csr matrix;      /* IO_CSR with options.matrix: row = tail, f32 or f64 or a pattern; else all zero */
    int constraints;    /* IO_METIS: weights a node */
    int64_t *node_weights; /* nodes x constraints, 0 to 2^53 each; NULL: none */
    int64_t *node_sizes;   /* IO_METIS: 0 to 2^53; NULL: none */
    int64_t *ids;       /* native matrix with a domain other than 0..nodes-1: the id of each node; else NULL */
    io_names names;     /* labels in order of first appearance, or from the tab file */
    int64_t lines;      /* lines read */
    int64_t bytes;      /* uncompressed bytes read */
    int64_t odd_lines;  /* lines that only lenient mode accepts (they were changed or skipped) */
    int64_t negative;   /* weights below zero (lenient or any_sign only) */
    int64_t vast_line;  /* SP_F64, text: the first line with a weight of 2^53 or more, which may have been rounded to a
                         * whole number; 0: none. 2^53 itself counts unless it is written as 9007199254740992. */
    bool blast_hits;    /* label triples that begin like a BLAST table, whose third column is the identity */
} io_graph;

/* Reads a graph from PATH ("-": standard input), gzip and zstd by content. */
sp_status io_read_graph(sp_context *context, const char *path, const io_read_options *options, io_graph *graph);
void io_graph_free(sp_context *context, io_graph *graph);
/* Gives packed arcs a tail, and unless all weights are 1 a weight, each: 8 to 12 bytes an arc, 16 in f64. */
sp_status io_graph_spread(sp_context *context, io_graph *graph);
/* The matrix of the graph's arcs, with values of their type: row = tail or, `by_heads`, head; `combine` and `mirror` as
 * in sp_csr_from_coo, but that a METIS graph is its own mirror image. Arcs that come row by row are taken over, and this takes 4 bytes an
 * arc (8 in f64) and 8 a node beside them. Otherwise they are spread, which 16 bytes an entry (an arc, or two where they
 * are mirrored; 20 in f64) and 24 a node come on top of. The graph's arcs are released. */
sp_status io_graph_matrix(sp_context *context, io_graph *graph, bool by_heads, sp_combine combine, bool mirror,
                          sp_csr *matrix);

static inline double io_arc_weight(const io_graph *graph, int64_t arc)
{
    if (!graph->weights) return 1;
    return graph->values == SP_F32 ? (double)((const float *)graph->weights)[arc]
                                   : ((const double *)graph->weights)[arc];
}

/* ---- labels of nodes ------------------------------------------------------------------------------------ */

/* AUTO: a native matrix by its beginning; one field on every line: a list; two: pairs; else clusters. Lines of one
 * field (for a graph with names) or two are clusters if every field is a node's name and none is repeated. */
typedef enum io_label_format {
    IO_LABELS_AUTO,
    IO_LABELS_LIST,     /* LABEL a line, in the order of the nodes, or of the numbers that name them */
    IO_LABELS_PAIRS,    /* NODE LABEL [WEIGHT] a line */
    IO_LABELS_CLUSTERS, /* NODE NODE... a line, a group a line, as mcl writes clusters */
    IO_LABELS_NATIVE    /* mcl's matrix, a column a cluster, rows the ids of nodes from 0 or those of the graph */
} io_label_format;

typedef struct io_label_options {
    io_label_format format;
    int base;     /* 0 or 1: the label of the first group where labels are numbers */
    bool skip_unknown; /* labels of what is no node of the graph are passed over: nodes without edges may be listed */
    bool compact; /* the caller drops empty groups: labels may be any numbers below 2^31 */
    const volatile int *interrupt;
} io_label_options;

typedef struct io_labelling {
    io_label_format format; /* what it was */
    int64_t groups;
    int32_t *labels;  /* the group of each node, -1: none. NULL if nodes are in several or have weights: then */
    sp_csr s;         /* groups x nodes, f64 or a pattern; otherwise all zero */
    io_names names;   /* of the groups, where labels are names */
    int32_t *numbers; /* compact, and labels far apart: the label, less base, of each group; else NULL */
    int64_t unlabelled, first_unlabelled; /* how many nodes are in no group, and the first of them */
    int64_t lines, bytes;
} io_labelling;

/* Reads the labels of a graph's nodes from PATH ("-": standard input), gzip and zstd by content. Nodes are called by
 * their names, else by their numbers as the graph's file has them: Matrix Market and METIS from 1, native matrices
 * by their ids, IO_CSR from base. Takes at most 6 times the uncompressed file + 14 bytes a node + 64 MB; 16 times if
 * nodes are in several groups, which words of one letter can say. */
sp_status io_read_labels(sp_context *context, const char *path, const io_graph *graph,
                         const io_label_options *options, io_labelling *labelling);
void io_labelling_free(sp_context *context, io_labelling *labelling);

/* ---- names ---------------------------------------------------------------------------------------------- */

/* Names that are being collected. */
typedef struct io_name_list {
    io_names names;
    int64_t group_capacity, offset_capacity, byte_capacity;
} io_name_list;

sp_status io_names_append(sp_context *context, io_name_list *list, const char *name, size_t length);
void io_names_free(sp_context *context, io_names *names);
/* The first name that one before it equals; -1: all differ. */
sp_status io_names_repeated(sp_context *context, const io_names *names, int64_t *repeated);

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

/* A buffered output file that appears complete or not at all: regular targets are written as PATH.tmp.XXXXXXXX
 * in the same folder and renamed by io_output_commit; "-", FIFOs and devices are written directly. */
typedef struct io_output io_output;

sp_status io_output_open(sp_context *context, const char *path, io_output **output);
/* Writing never fails visibly; the first error is kept and returned by io_output_commit. */
void io_output_bytes(io_output *output, const void *bytes, size_t count);
void io_output_string(io_output *output, const char *string);
void io_output_format(io_output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
void io_output_int(io_output *output, int64_t value);
/* With the fewest digits that give the number back. */
void io_output_number(io_output *output, double value);
/* Flushes, syncs, renames, frees. On failure the temporary file is gone and nothing is left behind. */
sp_status io_output_commit(io_output *output);
/* What may fail of that and undo nothing: flushes and syncs. On failure the output is to be discarded. */
sp_status io_output_settle(io_output *output);
/* Commits several outputs of one result, all or none unless a rename fails: all are settled before any is renamed.
 * They are renamed from the last to the first, so that where the first is there, all are. Frees them all. */
sp_status io_output_commit_all(io_output *const *outputs, int count);
/* Whether it appears at its commit; what is no file is written directly. */
bool io_output_is_file(const io_output *output);
/* Drops the temporary file and frees; NULL is fine. */
void io_output_discard(io_output *output);
/* Fails now, not after the work, if PATH could not be written (folder missing, not writable, a folder itself). */
sp_status io_output_check(sp_context *context, const char *path);
/* Whether INPUT ("-": standard input) is the very file that PATH ("-": standard output) names: writing it would
 * replace what was read. Pipes and devices are no such files. */
bool io_output_is_input(const char *path, const char *input);
/* What the path of an output names, there or not yet. */
typedef struct io_place {
    bool dash, standard; /* "-"; standard output, by that or another name */
    bool sink;           /* a character device, as /dev/null, which takes any number of outputs */
    bool there, placed;  /* it exists; its folder does */
    uint64_t device, file, names; /* of the file that the path names now */
    uint64_t folder_device, folder;
    char name[256];
} io_place;

void io_output_place(const char *path, io_place *place);
/* Whether one output would overwrite the other, or be mixed with it. */
bool io_output_same_place(const io_place *a, const io_place *b);
/* Unlinks the temporary files of all outputs that are open; async-signal-safe: for signal handlers. */
void io_output_unlink_all(void);
/* Which files this process has written, as part of a sentence: "no file was written", "a and b were written, no other
 * file". Async-signal-safe. False if there are none. */
bool io_output_account(char *text, size_t size);

/* How a graph is written. */
typedef struct io_write_options {
    io_format format;      /* IO_MTX, IO_ABC, IO_TSV, IO_NATIVE, IO_METIS or IO_CSR */
    bool undirected;       /* the matrix is symmetric: IO_MTX and IO_ABC have each edge once, IO_CSR says it */
    const io_names *names; /* of nodes, for IO_ABC, IO_TSV and IO_CSR; NULL, or none: numbers */
    int64_t first;         /* the number of node 0 in IO_ABC and IO_TSV */
    int constraints;       /* IO_METIS: weights a node */
    const int64_t *node_weights, *node_sizes; /* IO_METIS, as in io_graph; NULL: none */
    const char *comment;   /* IO_MTX, IO_METIS, IO_NATIVE ("# cline: "): a line; NULL: none */
} io_write_options;

/* A square host matrix of f32, f64 or no values; row i has the edges that begin at node i. Values are written with
 * the fewest digits that give them back. METIS refuses loops, weights that are no whole numbers above 0, and edges
 * without their opposites. */
sp_status io_write_graph(sp_context *context, const char *path, const sp_csr *matrix,
                         const io_write_options *options);
/* The same into an output that is open; on failure the output is to be discarded. */
sp_status io_put_graph(sp_context *context, io_output *output, const sp_csr *matrix, const io_write_options *options);

/* A clustering as lists: cluster c holds members[offsets[c]] .. members[offsets[c+1]-1]. */
typedef struct io_clusters {
    int64_t nodes, clusters;
    const int64_t *offsets;
    const int32_t *members;
} io_clusters;

/* mcl's native matrix, rows = nodes, columns = clusters, byte for byte as mcl writes it: as text, "# cline: ..."
 * first when command_line is not NULL, or in binary. `ids` as in io_graph (NULL: 0..nodes-1). */
sp_status io_write_native_clusters(sp_context *context, const char *path, const io_clusters *clusters,
                                   const int64_t *ids, bool binary, const char *command_line);
/* The same as text into an output that is open, for callers that add text of their own; or names, tab-separated, a
 * cluster a line. */
void io_put_label_clusters(io_output *output, const io_clusters *clusters, const io_names *names);
void io_put_native_clusters(io_output *output, const io_clusters *clusters, const int64_t *ids,
                            const char *command_line);
/* mcl's native matrix of a square host CSR whose row j is column j of the matrix (mcl -write-graph and friends);
 * values with `digits` significant digits (mcl's default 8 as %g), or mcl's binary form. `numbers`, where not NULL,
 * are written each with its column, as mcl does where it keeps one. */
sp_status io_write_native_matrix(sp_context *context, const char *path, const sp_csr *columns, const int64_t *ids,
                                 const double *numbers, int digits, bool binary, const char *command_line);
/* The same into an output that is open; on failure the output is to be discarded. */
sp_status io_put_native_columns(sp_context *context, io_output *output, const sp_csr *columns, const int64_t *ids,
                                const double *numbers, int digits, bool binary, const char *command_line);

/* ---- arrays --------------------------------------------------------------------------------------------- */

typedef enum io_scalar {
    IO_BOOL, IO_I8, IO_I16, IO_I32, IO_I64, IO_U8, IO_U16, IO_U32, IO_U64, IO_F16, IO_F32, IO_F64,
    IO_TEXT /* of a fixed number of bytes; NumPy's wide characters become them, if they are ASCII */
} io_scalar;

enum { IO_DIMENSIONS = 8 };

/* An array as NumPy has it, the last index running fastest, in the machine's byte order. */
typedef struct io_array {
    io_scalar type;
    int dimensions;
    int64_t shape[IO_DIMENSIONS];
    int64_t count;    /* of elements */
    size_t item_size; /* bytes of one */
    void *values;     /* belongs to the context that read it */
} io_array;

/* .npy (versions 1 to 3, either byte order, C or Fortran order), compressed or not. Of a plain file the header is
 * checked against its size before anything is allocated, and large arrays are read by all threads. */
sp_status io_read_npy(sp_context *context, const char *path, const volatile int *interrupt, io_array *array);
void io_array_free(sp_context *context, io_array *array);

/* The members of an .npz: a zip archive, stored or deflated, with its checksums. */
typedef struct io_npz io_npz;
sp_status io_npz_open(sp_context *context, const char *path, const volatile int *interrupt, io_npz **npz);
bool io_npz_has(const io_npz *npz, const char *name); /* "data" for data.npy */
sp_status io_npz_read(io_npz *npz, const char *name, io_array *array);
/* What the file is called in sentences. */
const char *io_npz_path(const io_npz *npz);
void io_npz_close(io_npz *npz);

/* Elements as f32, f64's rounded, or as whole numbers; nothing is done where they are that already. Numbers that are
 * not finite stay such. SP_ERROR_ARGUMENT, with `name` in the sentence, for what is no (whole) number or too large.
 */
sp_status io_array_to_f32(sp_context *context, const char *name, io_array *array);
sp_status io_array_to_i32(sp_context *context, const char *name, io_array *array);
sp_status io_array_to_i64(sp_context *context, const char *name, io_array *array);

/* The matrix that members PREFIXdata, PREFIXindices, PREFIXindptr and PREFIXshape make: values f32, sorted, repeated
 * entries summed. scipy's save_npz has the prefix "". */
sp_status io_npz_matrix(io_npz *npz, const char *prefix, sp_csr *matrix);

void io_put_npy(io_output *output, const io_array *array);
/* A host matrix as scipy's save_npz writes CSR, without compression; a pattern as the bool true. Arrays of 4 GB and
 * more are fine. */
sp_status io_put_npz_matrix(sp_context *context, io_output *output, const sp_csr *matrix);

/* ---- graphs, features and classes of numbered nodes ------------------------------------------------------ */

typedef struct io_adjacency_options {
    int64_t nodes;    /* how many there are; 0: as many as the file says, for edge lists as the largest number */
    bool undirected;  /* every edge stands for both directions */
    const volatile int *interrupt;
} io_adjacency_options;

/* A graph as a square matrix, f32 or, where all weights are 1, a pattern; repeated entries are one, the sum of their
 * weights unless it is a pattern. By content: .npz of scipy's CSR, whatever io_read_graph knows by its beginning,
 * METIS by the name's ending or content; these are the matrix as it stands. Otherwise an edge list: SOURCE TARGET
 * [WEIGHT] a line, numbers from 0, separated by commas, semicolons, tabs or blanks, with one line of headings at most: row
 * TARGET, column SOURCE. */
sp_status io_read_adjacency(sp_context *context, const char *path, const io_adjacency_options *options,
                            sp_csr *matrix);

/* The same from a matrix that was read from `name` already: it is changed. */
sp_status io_make_adjacency(sp_context *context, const char *name, bool undirected, sp_csr *matrix);

/* Features of nodes, a row a node, f32 in host memory. By content: Matrix Market (coordinate: sparse; array), .npy
 * (dense), .npz of scipy's CSR (sparse), otherwise text, a row a line, separated by commas, semicolons, tabs or
 * blanks, with one line of headings at most; that takes up to 16 times the file, "1," a feature, beside 64 MB.
 * `sparse` or `dense` is filled, the other zeroed. All numbers are finite. */
sp_status io_read_features(sp_context *context, const char *path, const volatile int *interrupt, sp_dense *dense,
                           sp_csr *sparse);

/* The same from an array of two dimensions, whose values it takes over; and from a matrix, which is only checked. */
sp_status io_make_features(sp_context *context, const char *name, io_array *array, sp_dense *dense);
sp_status io_check_features(sp_context *context, const char *name, const sp_csr *sparse);

/* Classes of nodes, a line or row a node. */
typedef struct io_classes {
    int64_t nodes, classes;
    int32_t *labels;  /* nodes, -1: unknown; NULL where a node can have several: */
    uint8_t *targets; /* nodes x classes of 0 and 1 */
    io_names names;   /* of the classes, in the order of their bytes; count 0: classes are numbers */
    int64_t empty;    /* labels that are empty lines of text */
} io_classes;

enum { IO_MOST_CLASSES = 1 << 16 };

/* By content: .npy (one column: labels; several: targets), Matrix Market (an array of one column: labels; otherwise
 * targets), text: a label a line, numbers if the first that is known is one, else names. Numbers are whole, also as
 * 1.0, from 0; -1, NaN and what programs write for a missing value (nan, NA, N/A, null, none, "", an empty line
 * between two others) are unknown. */
sp_status io_read_classes(sp_context *context, const char *path, const volatile int *interrupt, io_classes *classes);
/* The same from an array, whose values may be taken over. */
sp_status io_make_classes(sp_context *context, const char *name, io_array *array, io_classes *classes);
void io_classes_free(sp_context *context, io_classes *classes);

/* The same for `nodes` nodes from GraphSAINT's class_map.json; and the roles of its role.json: 0 none, 1 training, 2
 * validation, 3 test. */
sp_status io_read_class_map(sp_context *context, const char *path, const volatile int *interrupt, int64_t nodes,
                            io_classes *classes);
sp_status io_read_roles(sp_context *context, const char *path, const volatile int *interrupt, int64_t nodes,
                        uint8_t **roles);

/* A name a line, none twice. */
sp_status io_read_names(sp_context *context, const char *path, const volatile int *interrupt, io_names *names);

/* Whole numbers within low .. high from text, one a line, or a .npy of one dimension. `words`, NULL-terminated or
 * NULL, may stand for low, low + 1, ... in text. */
sp_status io_read_numbers(sp_context *context, const char *path, const volatile int *interrupt, int64_t low,
                          int64_t high, const char *const *words, int32_t **numbers, int64_t *count);

#endif
