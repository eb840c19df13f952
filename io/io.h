/* io: reading and writing of graphs, labels and clusterings. Formats and compression are detected from content.
 *
 * Errors are one sentence, "FILE:LINE: what (got "..."); what would be right", in sp_last_error(context). Lines are
 * counted inside compressed streams too.
 *
 * Memory: a reader allocates for the content of a file, not for the claims of its header. Reading a graph takes mostly
 * less than its uncompressed size, and at most 4 times that + 64 MB (5 times if weights are f64, 4.5 times if METIS
 * nodes have weights: "1\n", a node without edges, takes 8 bytes, and an eighth more while its array grows). zstd's
 * window, at most 128 MB and never more than the file, comes on top. So does a second copy of arrays that grow, if the
 * allocator has no resize. io_graph_matrix says what its matrix takes.
 *
 * Numbers are parsed independently of the locale. The readers are strict by default. In lenient mode they read odd
 * lines as `mcl` does, and count them. A UTF-8 byte order mark before text is skipped, except in lenient mode. */
#ifndef IO_H
#define IO_H

#include "sparse.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum io_format {
    IO_AUTO = 0,  /* by content: native matrix, binary matrices, npz, GraphML, Matrix Market, STRING, DIMACS; METIS by
                     the file's name (.graph, .metis), or if every line fits its header (unless the name is .abc, .tsv,
                     .csv); a table by its heading, or by the name (.csv); anything else is label triples */
    IO_ABC,       /* LABEL LABEL [WEIGHT] a line (tab or blank separated), # comments */
    IO_SIF,       /* LABEL RELATION LABEL... (mcl --sif): arcs from the first label to each of the others */
    IO_ETC,       /* LABEL LABEL... (mcl --etc): arcs from the first label to each of the others */
    IO_NATIVE,    /* mcl's matrix, text or binary */
    IO_MTX,       /* Matrix Market coordinate */
    IO_STRING,    /* STRING protein.links: header "protein1 protein2 ... combined_score" */
    IO_BLAST,     /* BLAST / DIAMOND -outfmt 6 */
    IO_METIS,     /* METIS graph: NODES EDGES [FORMAT [CONSTRAINTS]], then a line a node: its size, its weights and
                   * its neighbours */
    IO_CSR,       /* our own binary format for fast reloading: compressed rows with a checksum */
    IO_TSV,       /* for writing only: every entry of the matrix as a label triple */
    IO_CSV,       /* a table of edges: rows whose fields are separated by commas, semicolons, tabs or blanks, mostly
                   * below a heading; written with commas */
    IO_NPZ,       /* a sparse matrix of scipy: CSR, CSC or COO by scipy.sparse.save_npz; written as CSR */
    IO_GRAPHML,   /* nodes and edges in XML, with attributes */
    IO_DIMACS     /* p sp NODES ARCS, then a FROM TO WEIGHT a line; or p edge NODES EDGES, then e NODE NODE */
} io_format;

/* The name of a format in sentences: "label pairs". */
const char *io_format_name(io_format format);
/* Whether the format numbers its nodes from 1: Matrix Market, METIS, DIMACS. */
bool io_numbers_from_one(io_format format);

typedef enum io_blast_score { IO_BLAST_BITS, IO_BLAST_EVALUE, IO_BLAST_IDENTITY } io_blast_score;

typedef struct io_read_options {
    io_format format;
    bool refuse_others;    /* IO_AUTO: what neither its name (.abc) nor its first line shows is an error, not pairs */
    bool lenient;          /* read odd lines as mcl does, and count them */
    bool offers_lenient;   /* the tool has the options --lenient and -tf, so advice may name them */
    bool names_keywords;   /* the caller is the Python package: advice names its keywords, not options of the tools */
    bool any_sign;         /* weights may be negative: they are values of a matrix, not similarities */
    bool matrix;           /* IO_CSR: the graph is returned as `matrix`, without arcs */
    sp_value_type values;  /* type of the weights; SP_F32 rounds each of them once. IO_CSR with `matrix`: as in the
                              file */
    bool expect_values;    /* SIF / ETC labels have :VALUE */
    io_blast_score blast;  /* IO_BLAST: source of a hit's weight; -log10 E is at most 200 */
    double minimum_score;  /* IO_STRING: pairs below this score are left out */
    const char *score_column; /* name of the weights, in these three formats alone; NULL: IO_STRING: combined_score, or
                                 else the last column; IO_GRAPHML: weight; IO_CSV: see there */
    const char *node_column;  /* IO_GRAPHML: the attribute that names nodes, or id; NULL: their ids or, if these are n0,
                                 n1 ..., the attribute name, if there is one */
    /* Applied to each weight in f64 before it is stored, like -abc-tf and --abc-neg-log[10] of the tools, in formats of
     * labels (IO_STRING: after minimum_score). Native matrices ignore it; other matrices are refused. May be NULL. */
    double (*transform)(void *user, double weight);
    void *transform_user;
    const char *tab;       /* file ID<TAB>LABEL with names for a native or Matrix Market graph; NULL: none */
    const volatile int *interrupt; /* as in sp_context_options: reading ends with SP_ERROR_INTERRUPTED */
    int part, parts; /* parts above 1: only the lines that begin in this one of `parts` equal parts of a file which
                        io_can_part takes, or rows of IO_CSR, as arcs. Names, lines and bytes are those of the part, of
                        IO_CSR all those of the first; nodes of IO_MTX and IO_CSR are those of the file */
} io_read_options;

/* Names of 0..count-1, one after another: name i is the io_name_length(names, i) bytes at io_name(names, i), without a
 * NUL. Offsets count from the beginning of the name's group, so that 4 bytes suffice. */
typedef struct io_names {
    int64_t count;     /* 0: no names */
    int64_t *groups;   /* place in `bytes` of every IO_NAME_GROUP'th name */
    uint32_t *offsets; /* count + 1 */
    char *bytes;
} io_names;

enum { IO_NAME_GROUP = 1 << 12 };

/* Arcs with one tail for many heads, without weights if the text has none. */
typedef struct io_packed io_packed;

/* What only all parts of an IO_MTX, IO_CSR or IO_NATIVE file together show. Its entries have to be as many as its
 * header has announced (IO_NATIVE: 0; a part with a mistake has -1). If it is symmetric and has entries both above and
 * below the diagonal, it may hold one of them twice. The checksums of all parts, combined by exclusive or, have to be
 * the one that is written in it. */
typedef struct io_part {
    int64_t entries, announced, above, below;
    int64_t checksum, written; /* IO_CSR */
} io_part;

/* A graph as read: arcs in the order of the file, including repetitions (every format wants the largest of them; within
 * a column of a native matrix the first is already chosen). Weights are finite and, unless lenient, not negative.
 * Weights of 0 make no arc. */
typedef struct io_graph {
    io_format format;   /* the format that was read */
    int64_t nodes;
    int64_t arcs;
    int first;          /* what nodes without names or ids are numbered from, 0 or 1: as the format says, until the
                           caller says otherwise. -1: nodes have names, which may be numbers from either */
    io_packed *packed;  /* formats whose lines have many arcs: holds all arcs until they are spread; NULL: they are
                           spread */
    int32_t *tails, *heads; /* native matrix: tail = column (mclcols), head = row entry */
    void *weights;      /* of type `values`; NULL: all weights are 1 */
    sp_value_type values;
    bool symmetric;     /* each arc counts in both directions (label formats and symmetric IO_MTX) */
    bool undirected;    /* `symmetric`, or both directions of each arc are in the list (IO_METIS, IO_CSR with that
                           flag) */
    bool presumed;      /* IO_GRAPHML of Cytoscape: `symmetric`, although the file says otherwise, as of all networks */
    bool skew;          /* IO_MTX, skew-symmetric: both directions are in the list, with opposite weights */
    sp_csr matrix;      /* IO_CSR with options.matrix: row = tail, f32 or f64 or a pattern; otherwise all zero */
    int constraints;    /* IO_METIS: number of weights of a node */
    int64_t *node_weights; /* nodes x constraints, 0 to 2^53 each; NULL: none */
    int64_t *node_sizes;   /* IO_METIS: 0 to 2^53; NULL: none */
    int64_t *ids;       /* native matrix with another domain than 0..nodes-1: the id of each node; else NULL */
    io_names names;     /* labels in the order of their first appearance, or from the tab file */
    io_names unused;    /* IO_CSV, IO_GRAPHML, if nothing tells the weight, so that all are 1: columns of numbers, which
                           score_column could name */
    int64_t lines;      /* lines read */
    int64_t bytes;      /* uncompressed bytes read */
    int64_t odd_lines;  /* lines that only lenient mode accepts (changed or skipped) */
    int64_t negative;   /* weights below zero (lenient or any_sign only) */
    int64_t vast_line;  /* SP_F64, text: the first line with a weight of 2^53 or more, which may have been rounded to a
                           whole number; 0: none. 2^53 itself counts unless it is written as 9007199254740992 */
    bool blast_hits;    /* label triples that begin like a BLAST table, whose third column is the identity */
    io_part part;       /* IO_MTX, IO_CSR and IO_NATIVE, of a file that is read in parts */
} io_graph;

/* Reads a graph from PATH ("-": standard input), compressed or not. Release it by io_graph_free. */
sp_status io_read_graph(sp_context *context, const char *path, const io_read_options *options, io_graph *graph);
/* Whether a file can be read in parts: it is uncompressed, and label triples, IO_MTX, IO_CSR or IO_NATIVE by the
 * options and its content. */
sp_status io_can_part(sp_context *context, const char *path, const io_read_options *options, bool *can);

/* The files of a folder, in the order of their names; not those that begin with . or _, and no folders. */
typedef struct io_file_entry {
    char *path;
    int64_t bytes;
} io_file_entry;
typedef struct io_files {
    int64_t count;
    io_file_entry *list;
} io_files;
bool io_is_folder(const char *path);
/* Refuses pipes and standard input, which cannot be read twice. What else is wrong with the path its reader says. */
sp_status io_require_file(sp_context *context, const char *path);
/* Fails if there are none. Release it by io_files_free. */
sp_status io_list_folder(sp_context *context, const char *path, io_files *files);
void io_files_free(sp_context *context, io_files *files);
/* Reads files of label pairs, compressed or not, as if they were one; `count` may be 0. options->parts is 0. */
sp_status io_read_files(sp_context *context, const io_file_entry *files, int64_t count, const io_read_options *options,
                        io_graph *graph);
void io_graph_free(sp_context *context, io_graph *graph);
/* Gives each packed arc a tail and, unless all weights are 1, a weight: 8 to 12 bytes an arc, 16 in f64. */
sp_status io_graph_spread(sp_context *context, io_graph *graph);
/* Makes the matrix of the graph's arcs, with values of their type. A row is a tail or, with `by_heads`, a head.
 * `combine` and `mirror` are as in sp_csr_from_coo, except that a METIS graph is its own mirror image. The graph's arcs
 * are released. Arcs that are in the order of rows are taken over, with 4 bytes an arc (8 in f64) and 8 a node of
 * further memory. Otherwise they are spread, and then need another 16 bytes an entry (20 in f64; an arc makes one
 * entry, or two if mirrored) and 24 a node. */
sp_status io_graph_matrix(sp_context *context, io_graph *graph, bool by_heads, sp_combine combine, bool mirror,
                          sp_csr *matrix);

static inline double io_arc_weight(const io_graph *graph, int64_t arc)
{
    if (!graph->weights) return 1;
    return graph->values == SP_F32 ? (double)((const float *)graph->weights)[arc]
                                   : ((const double *)graph->weights)[arc];
}

/* ---- labels of nodes ------------------------------------------------------------------------------------ */

/* AUTO: a native matrix by its beginning; one field on every line makes a list, two make pairs, anything else clusters.
 * Lines of one field (if the graph has names) or of two are clusters if every field is the name of a node and none is
 * repeated. */
typedef enum io_label_format {
    IO_LABELS_AUTO,
    IO_LABELS_LIST,     /* LABEL a line, in the order of the nodes, or of the numbers that name them */
    IO_LABELS_PAIRS,    /* NODE LABEL [WEIGHT] a line */
    IO_LABELS_CLUSTERS, /* NODE NODE... a line, a group a line, as mcl writes clusters */
    IO_LABELS_NATIVE    /* mcl's matrix, a column a cluster, rows the ids of nodes from 0 or those of the graph */
} io_label_format;

enum { IO_BASE_AUTO = -1 };

typedef struct io_label_options {
    io_label_format format;
    int base;     /* 0 or 1: the label of the first group, if labels are numbers; IO_BASE_AUTO: 0 if a label is */
    const char *column; /* the file is a table of nodes or GraphML, and labels are this column; NULL: it is no table */
    const char *node_column; /* as in io_node_options */
    bool skip_unknown; /* labels of unknown nodes are skipped: nodes without edges may be listed */
    bool other_graph; /* clusters of another graph: with AUTO a native matrix, or else a cluster a line; nodes that this
                         graph does not have are skipped, and the groups that had them are marked */
    bool compact; /* the caller drops empty groups, so labels may be any numbers below 2^31 */
    const volatile int *interrupt;
} io_label_options;

typedef struct io_labelling {
    io_label_format format; /* the format that was read */
    int base;         /* 0 or 1: the label of the first group; that of the options, or found for IO_BASE_AUTO */
    int64_t groups;
    int32_t *labels;  /* the group of each node, -1: none. NULL if nodes are in several groups or have weights; then `s`
                         is used */
    sp_csr s;         /* groups x nodes, f64 or a pattern; otherwise all zero */
    io_names names;   /* names of the groups, if labels are names */
    int32_t *numbers; /* compact, and labels far apart: the label of each group, less base; else NULL */
    int64_t unlabelled, first_unlabelled; /* the number of nodes without a group, and the first of them */
    int64_t unknown;     /* other_graph: memberships of nodes that the graph does not have */
    uint8_t *incomplete; /* other_graph: 1 for each group that had some; NULL: none did */
    int64_t lines, bytes;
} io_labelling;

/* Reads the labels of a graph's nodes from PATH ("-": standard input), compressed or not. Nodes are called by their
 * names, those of native matrices by their ids, others by their numbers from graph->first. An array (.npy) has a label
 * a node. Takes at most 6 times the uncompressed file + 14 bytes a node + 64 MB; 16 times if nodes are in several
 * groups. */
sp_status io_read_labels(sp_context *context, const char *path, const io_graph *graph,
                         const io_label_options *options, io_labelling *labelling);
void io_labelling_free(sp_context *context, io_labelling *labelling);
/* Whether a list of labels follows the order of the graph's nodes, as where these have no names. In an edge list they
 * have no order. */
bool io_have_order(const io_graph *graph);

/* A table of nodes: a column an attribute. */
typedef struct io_attribute {
    bool is_text;   /* some value is no number */
    int64_t odd;    /* of a column in which others are numbers: the first node whose value is none; else -1 */
    double *values; /* a number a node, or the place of its text in `texts`; NaN: the table has none */
} io_attribute;

typedef struct io_node_table {
    int64_t columns;
    io_names headings;
    io_attribute *column;
    io_names texts;
    int64_t rows; /* nodes that have one */
    int64_t unknown; /* rows of unknown nodes */
    int64_t lines, bytes;
} io_node_table;

typedef struct io_node_options {
    const char *node_column; /* the column that names nodes, in GraphML the attribute, or id; NULL: found */
    const char *wanted; /* the column whose values count, not NULL: it names no node unless node_column says so; a table
                           of it alone has a row for each node, in their order */
    const char *row;   /* what a row is about, in messages; NULL: node */
    bool skip_unknown; /* rows of unknown nodes are skipped, and counted */
    bool classes;      /* a column called label holds values; and if the first field is a node's name, the first line is
                          a row, whose columns are called (2), (3), ... */
    const volatile int *interrupt;
} io_node_options;

/* Reads a table of a graph's nodes from PATH ("-": standard input), compressed or not: a heading, then a row a node in
 * any order, with fields as in tables of edges; or the nodes of a GraphML file with their attributes. The first column
 * called node, name, id, label, vertex or node_id names the node as in io_read_labels, else the first of all. A first
 * column without a name, the index of a data frame, is left out if another one names the nodes. Empty
 * fields, NA, N/A, #N/A, <NA>, NaN, null and - are no values, as are those of nodes that have no row. Takes at most 8
 * bytes a node and column + 8 times the uncompressed file + 64 MB. */
sp_status io_read_node_table(sp_context *context, const char *path, const io_graph *graph,
                             const io_node_options *options, io_node_table *table);
/* The column whose heading is one of the words (in lower case; ends with NULL), or the only column; -1 if there is
 * none. */
int64_t io_find_heading(const io_node_table *table, const char *const *words);
void io_node_table_free(sp_context *context, io_node_table *table);
/* Reads weights of nodes, whole numbers from 0 to 2^53, in their order: a line a node with *each numbers, from 1 to
 * 1,024, or an array (.npy) of one dimension or of two with a row a node. `weights` has nodes * *each numbers, those of
 * a node side by side; release it by sp_free. Takes at most 16 times the uncompressed file + 64 MB. */
sp_status io_read_node_weights(sp_context *context, const char *path, const volatile int *interrupt, int64_t nodes,
                               int64_t **weights, int *each);
/* Where the nodes of one graph are in another, by their names, or by their numbers in the files if neither has names:
 * `places` has from->nodes entries, -1 for a node that `to` does not have. A graph with names and one without are
 * SP_ERROR_ARGUMENT. */
sp_status io_find_nodes(sp_context *context, const io_graph *from, const io_graph *to, int32_t *places);

/* ---- names ---------------------------------------------------------------------------------------------- */

/* A list of names under construction. */
typedef struct io_name_list {
    io_names names;
    int64_t group_capacity, offset_capacity, byte_capacity;
} io_name_list;

sp_status io_names_append(sp_context *context, io_name_list *list, const char *name, size_t length);
void io_names_free(sp_context *context, io_names *names);
/* The first name that equals an earlier one; -1 if all differ. */
sp_status io_names_repeated(sp_context *context, const io_names *names, int64_t *repeated);

/* The names for a message, "a, b, c", as far as there is room, or "none". Returns `text`. */
enum { IO_LISTED = 200 };
const char *io_names_list(const io_names *names, char text[IO_LISTED]);

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

/* A buffered output file that appears complete or not at all. Regular files are written as PATH.tmp.XXXXXXXX in the
 * same folder and renamed by io_output_commit. "-", FIFOs and devices are written directly. If PATH ends in .gz, what
 * is written is compressed by gzip; the same content gives the same bytes. */
typedef struct io_output io_output;

sp_status io_output_open(sp_context *context, const char *path, io_output **output);
/* Write calls return no error. The first error is kept, and io_output_commit returns it. */
void io_output_bytes(io_output *output, const void *bytes, size_t count);
void io_output_string(io_output *output, const char *string);
/* For several processes that write one file, each at places of its own. The first opens it and tells the others the
 * temporary name, NULL if the output is not a file. They join it. They commit their outputs, which syncs them, before
 * the first commits its own. */
const char *io_output_temporary(const io_output *output);
sp_status io_output_join(sp_context *context, const char *path, const char *temporary, io_output **output);
/* Writes at a place of the file, past all that io_output_bytes has written or will write. */
void io_output_at(io_output *output, int64_t place, const void *bytes, size_t count);
/* A field of a table whose fields are separated by tabs, or by commas: in quotes where a reader would take it for
 * something else. */
void io_put_field(io_output *output, const char *field, size_t length, char separator);
void io_output_format(io_output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
void io_output_int(io_output *output, int64_t value);
/* Writes the fewest digits that give the same number when read. */
void io_output_number(io_output *output, double value);
/* Flushes, syncs, renames, frees. On failure the temporary file is removed. */
sp_status io_output_commit(io_output *output);
/* The part of a commit that may fail without effect: flushes and syncs. After a failure the output must be
 * discarded. */
sp_status io_output_settle(io_output *output);
/* Commits several outputs of one result, all or none unless a rename fails: all are settled before any is renamed. They
 * are renamed from the last to the first, so if the first exists, all do. Frees them all. */
sp_status io_output_commit_all(io_output *const *outputs, int count);
/* Whether the output appears at its commit. Outputs that are not regular files are written directly. */
bool io_output_is_file(const io_output *output);
/* Removes the temporary file and frees the output. NULL is ignored. */
void io_output_discard(io_output *output);
/* Fails before the work if PATH could not be written: no such folder, not writable, or a folder itself. */
sp_status io_output_check(sp_context *context, const char *path);
/* Whether INPUT ("-": standard input) is the same file as PATH ("-": standard output), so that writing would replace
 * the input. Pipes and devices never are. */
bool io_output_is_input(const char *path, const char *input);
/* The file that the path of an output names, existing or not. */
typedef struct io_place {
    bool dash, standard; /* "-"; standard output, by this or another name */
    bool sink;           /* a character device such as /dev/null, which takes any number of outputs */
    bool there, placed;  /* the file exists; its folder exists */
    uint64_t device, file, names; /* of the file that the path names now */
    uint64_t folder_device, folder;
    char name[256];
} io_place;

void io_output_place(const char *path, io_place *place);
/* Whether one output would overwrite the other, or be mixed with it. */
bool io_output_same_place(const io_place *a, const io_place *b);
/* Unlinks the temporary files of all open outputs. Async-signal-safe: for signal handlers. */
void io_output_unlink_all(void);
/* Writes the files that this process has written, as part of a sentence: "no file was written", "a and b were written,
 * no other file". Async-signal-safe. False if there are none. */
bool io_output_account(char *text, size_t size);

/* What the head of a file says of a matrix. Those of blocks of its rows add up. */
typedef struct io_head {
    int64_t rows, entries;
    int64_t lower;    /* entries on or below the diagonal */
    int64_t unwhole;  /* values that are not whole numbers */
} io_head;

/* Options of writing a graph. */
typedef struct io_write_options {
    io_format format;      /* IO_MTX, IO_ABC, IO_TSV, IO_NATIVE, IO_METIS, IO_CSR, IO_CSV, IO_NPZ, IO_GRAPHML or
                              IO_DIMACS: p sp, every entry an arc */
    bool undirected;       /* the matrix is symmetric: IO_MTX, IO_ABC, IO_CSV and IO_GRAPHML get each edge
                              once, IO_CSR a flag */
    const io_names *names; /* names of nodes, for IO_ABC, IO_TSV, IO_CSV, IO_CSR and IO_GRAPHML; NULL, or
                              none: numbers */
    int64_t first;         /* the number of node 0 in IO_ABC, IO_TSV, IO_CSV and IO_GRAPHML */
    int constraints;       /* number of weights of a node */
    const int64_t *node_weights, *node_sizes; /* IO_METIS, and IO_GRAPHML as attributes; as in io_graph; NULL: none */
    const char *comment;   /* IO_MTX, IO_METIS, IO_DIMACS, IO_NATIVE ("# cline: "): a comment line; NULL: none */
    const io_head *whole;  /* the matrix is some rows of a larger one, which this is the head of; NULL: it is whole */
    int64_t row;           /* with `whole`: the number of its first row */
} io_write_options;

/* Writes a square host matrix of f32, f64 or no values; row i has the edges that begin at node i. Values are written
 * with the fewest digits that give the same value when read. METIS refuses loops, weights that are not whole numbers
 * above 0, and edges without the opposite direction. */
sp_status io_write_graph(sp_context *context, const char *path, const sp_csr *matrix,
                         const io_write_options *options);
/* The same into an open output. After a failure the output must be discarded. In formats that have the rows one after
 * another, a large matrix may be put by blocks of rows, all rows in their order; one without rows is a block, too. */
sp_status io_put_graph(sp_context *context, io_output *output, const sp_csr *matrix, const io_write_options *options);
bool io_has_blocks(io_format format);
/* Adds the figures of rows from number `row` on. */
void io_add_head(sp_context *context, const sp_csr *rows, int64_t row, io_head *head);
/* The length of the UTF-8 character at the start of the `left` bytes of `text`; 0: they start with none. */
size_t io_utf8_length(const char *text, size_t left);
/* Writes a character, up to 0x10ffff, in up to 4 bytes; returns how many. */
size_t io_put_utf8(char *to, uint32_t character);
/* Text of an XML element or attribute, escaped; bytes outside UTF-8 count as Latin-1. */
void io_put_xml(io_output *output, const char *text, size_t length);

/* A clustering as lists: cluster c holds members[offsets[c]] to members[offsets[c + 1] - 1]. */
typedef struct io_clusters {
    int64_t nodes, clusters;
    const int64_t *offsets;
    const int32_t *members;
} io_clusters;

/* Writes mcl's native matrix with rows = nodes and columns = clusters, byte for byte as mcl does: as text, after "#
 * cline: ..." if command_line is not NULL, or in binary. `ids` is as in io_graph (NULL: 0..nodes-1). */
sp_status io_write_native_clusters(sp_context *context, const char *path, const io_clusters *clusters,
                                   const int64_t *ids, bool binary, const char *command_line);
/* The same as text into an open output, for callers that add text. The first call writes names, tab-separated, a
 * cluster a line. */
void io_put_label_clusters(io_output *output, const io_clusters *clusters, const io_names *names);
void io_put_native_clusters(io_output *output, const io_clusters *clusters, const int64_t *ids,
                            const char *command_line);
/* Writes mcl's native matrix of a square host CSR, where row j is column j of the matrix (mcl -write-graph and others):
 * values with `digits` significant digits (mcl's default 8 as %g), or in mcl's binary form. If `numbers` is not NULL,
 * each is written with its column, as in mcl. */
sp_status io_write_native_matrix(sp_context *context, const char *path, const sp_csr *columns, const int64_t *ids,
                                 const double *numbers, int digits, bool binary, const char *command_line);

typedef struct io_native_options {
    const int64_t *ids;       /* as in io_graph */
    const double *numbers;    /* one a column of the whole; NULL: none */
    int digits;
    bool binary;
    const char *command_line; /* NULL: none */
    int64_t first;            /* of a block: the number of its first column */
    const int64_t *offsets;   /* of a block in binary: row_offsets of the whole matrix */
} io_native_options;

/* The same into an open output, also by blocks of columns: CSRs with fewer rows than columns, all in their order. After
 * a failure the output must be discarded. */
sp_status io_put_native_columns(sp_context *context, io_output *output, const sp_csr *columns,
                                const io_native_options *options);

/* ---- arrays --------------------------------------------------------------------------------------------- */

typedef enum io_scalar {
    IO_BOOL, IO_I8, IO_I16, IO_I32, IO_I64, IO_U8, IO_U16, IO_U32, IO_U64, IO_F16, IO_F32, IO_F64,
    IO_TEXT /* a fixed number of bytes; NumPy's wide characters are converted if they are ASCII */
} io_scalar;

enum { IO_DIMENSIONS = 8 };

/* An array as in NumPy: the last index runs fastest, in the machine's byte order. */
typedef struct io_array {
    io_scalar type;
    int dimensions;
    int64_t shape[IO_DIMENSIONS];
    int64_t count;    /* number of elements */
    size_t item_size; /* bytes of an element */
    void *values;     /* belongs to the context of the reader */
} io_array;

/* Reads .npy (versions 1 to 3, either byte order, C or Fortran order), compressed or not. The header of an uncompressed
 * file is checked against its size before anything is allocated. Large arrays are read by all threads. */
sp_status io_read_npy(sp_context *context, const char *path, const volatile int *interrupt, io_array *array);
void io_array_free(sp_context *context, io_array *array);

/* An open .npz: a zip archive with stored or deflated members and their checksums. */
typedef struct io_npz io_npz;
sp_status io_npz_open(sp_context *context, const char *path, const volatile int *interrupt, io_npz **npz);
bool io_npz_has(const io_npz *npz, const char *name); /* "data" for data.npy */
sp_status io_npz_read(io_npz *npz, const char *name, io_array *array);
/* The name of the file in sentences. */
const char *io_npz_path(const io_npz *npz);
void io_npz_close(io_npz *npz);

/* Converts the elements to f32 (f64 is rounded), to f64 or to whole numbers; arrays of that type stay as they are.
 * Numbers that are not finite stay so. Whole numbers beyond 2^53, which have no f64, and elements that are not (whole)
 * numbers, or too large, are SP_ERROR_ARGUMENT with `name` in the sentence. */
sp_status io_array_to_f32(sp_context *context, const char *name, io_array *array);
sp_status io_array_to_f64(sp_context *context, const char *name, io_array *array);
sp_status io_array_to_i32(sp_context *context, const char *name, io_array *array);
sp_status io_array_to_i64(sp_context *context, const char *name, io_array *array);

/* The matrix of the members PREFIXdata, PREFIXindices, PREFIXindptr and PREFIXshape: f32 values, sorted columns,
 * repeated entries summed. scipy's save_npz has the prefix "". */
sp_status io_npz_matrix(io_npz *npz, const char *prefix, sp_csr *matrix);

void io_put_npy(io_output *output, const io_array *array);
/* Writes a host matrix as scipy's save_npz writes CSR, without compression; a pattern gets the bool true as values.
 * Arrays may have 4 GB and more. */
sp_status io_put_npz_matrix(sp_context *context, io_output *output, const sp_csr *matrix);

/* ---- graphs, features and classes of numbered nodes ------------------------------------------------------ */

typedef struct io_adjacency_options {
    int64_t nodes;    /* number of nodes; 0: as the file says, for edge lists the largest number + 1 */
    bool undirected;  /* every edge counts in both directions */
    const io_names *names; /* of the nodes, for edge lists; NULL, or none: these have numbers */
    int64_t *unknown; /* with names: counts edges of other nodes, which are left out; NULL: such an edge is refused */
    io_names *found;  /* without names and nodes: gets the names of an edge list whose first edge has some, in the order
                         of their appearance; NULL: they are refused */
    const volatile int *interrupt;
} io_adjacency_options;

/* Reads a graph as a square matrix with f32 values, or as a pattern if all weights are 1. Repeated entries become one,
 * with the sum of their weights unless it is a pattern. By content: .npz of scipy's CSR, all formats that io_read_graph
 * identifies by their beginning, METIS by the name's ending or content; these give the matrix as it is in the file.
 * Otherwise an edge list: SOURCE TARGET [WEIGHT] a line, numbers from 0, separated by commas, semicolons, tabs or
 * blanks, with at most one line of headings; the row is TARGET, the column SOURCE. With names, SOURCE and TARGET are
 * names, and a heading may say which columns they are in. Edges with more than a weight are refused. */
sp_status io_read_adjacency(sp_context *context, const char *path, const io_adjacency_options *options,
                            sp_csr *matrix);

/* The same from a matrix that was read from `name`. The matrix is changed. */
sp_status io_make_adjacency(sp_context *context, const char *name, bool undirected, sp_csr *matrix);

/* Reads features of nodes, a row a node, f32 in host memory. By content: Matrix Market (coordinate: sparse; array:
 * dense), .npy (dense), .npz of scipy's CSR (sparse); otherwise text, a row a line, separated by commas, semicolons,
 * tabs or blanks, with at most one line of headings. Text takes up to 16 times the file ("1," is a feature) + 64 MB.
 * `sparse` or `dense` is filled, the other zeroed. All numbers are finite. A column of text that is called id, node,
 * name or the like, or whose fields are no numbers, goes to `names`, which is empty otherwise. `headings` (or NULL)
 * gets the heading of each feature, or none. */
sp_status io_read_features(sp_context *context, const char *path, const volatile int *interrupt, sp_dense *dense,
                           sp_csr *sparse, io_names *names, io_names *headings);

/* The same from an array of two dimensions, whose values are taken over; and from a matrix, which is only checked. */
sp_status io_make_features(sp_context *context, const char *name, io_array *array, sp_dense *dense);
sp_status io_check_features(sp_context *context, const char *name, const sp_csr *sparse);

/* Classes of nodes, a line or row for each node. */
typedef struct io_classes {
    int64_t nodes, classes;
    int32_t *labels;  /* nodes, -1: unknown; NULL if a node can have several classes */
    uint8_t *targets; /* nodes x classes of 0 and 1 */
    io_names names;   /* names of the classes in the order of their bytes; count 0: classes are numbers */
    int64_t empty;    /* labels that are empty lines of text */
} io_classes;

enum { IO_MOST_CLASSES = 1 << 16 };

/* Reads classes. By content: .npy (one column: labels; several: targets), Matrix Market (an array of one column:
 * labels; otherwise targets), text (a label a line: numbers if the first known label is one, otherwise names). Numbers
 * are whole, also written as 1.0, from 0. Unknown are -1, NaN and what programs write for a missing value (nan, NA,
 * N/A, null, none, "", an empty line between two others). */
sp_status io_read_classes(sp_context *context, const char *path, const volatile int *interrupt, io_classes *classes);
/* The same from an array, whose values may be taken over. */
sp_status io_make_classes(sp_context *context, const char *name, io_array *array, io_classes *classes);
void io_classes_free(sp_context *context, io_classes *classes);

/* Whether text has a row a node: below a heading that names the column of nodes, or where the graph has names. */
sp_status io_is_node_table(sp_context *context, const char *path, const volatile int *interrupt,
                           const io_graph *graph, bool *is);
/* The classes of a graph's nodes from such a table. One column beside the names, or that called label, class, y or the
 * like, holds labels as in io_read_classes; several columns of 0 and 1 are a class each. Nodes without a row have none.
 * *unknown counts rows of unknown nodes; NULL: they are refused. */
sp_status io_read_class_table(sp_context *context, const char *path, const volatile int *interrupt,
                              const io_graph *graph, int64_t *unknown, io_classes *classes);
/* Reads a list of nodes, a line each: names, or numbers from 0 if the graph has no names; or numbers from a .npy.
 * `unknown` as above. */
sp_status io_read_node_list(sp_context *context, const char *path, const volatile int *interrupt,
                            const io_graph *graph, int64_t *unknown, int32_t **nodes, int64_t *count);

/* Reads pairs of nodes, a line each, two names (or numbers from 0 if the graph has no names), perhaps below a heading
 * such as source,target: *count pairs, two nodes each. */
sp_status io_read_node_pairs(sp_context *context, const char *path, const volatile int *interrupt,
                             const io_graph *graph, int32_t **nodes, int64_t *count);

/* io_read_classes for `nodes` nodes from GraphSAINT's class_map.json; and the roles in its role.json: 0 none, 1
 * training, 2 validation, 3 test. */
sp_status io_read_class_map(sp_context *context, const char *path, const volatile int *interrupt, int64_t nodes,
                            io_classes *classes);
sp_status io_read_roles(sp_context *context, const char *path, const volatile int *interrupt, int64_t nodes,
                        uint8_t **roles);

/* Reads a name a line, at most `most`, of up to IO_MOST_NAME bytes. No name may occur twice. */
enum { IO_MOST_NAME = 255 };
sp_status io_read_names(sp_context *context, const char *path, const volatile int *interrupt, int64_t most,
                        io_names *names);

/* Reads whole numbers within low .. high from text, one a line, or from a .npy of one dimension. In text `words`
 * (NULL-terminated, or NULL) may stand for low, low + 1, ... */
sp_status io_read_numbers(sp_context *context, const char *path, const volatile int *interrupt, int64_t low,
                          int64_t high, const char *const *words, int32_t **numbers, int64_t *count);

/* ---- JSON ------------------------------------------------------------------------------------------------ */

/* The rest of a text. All calls pass over white space first. If they return false, the text is at the first byte that
 * is not what they want. */
typedef struct io_json {
    const char *at, *end;
} io_json;

void io_json_space(io_json *j);
bool io_json_take(io_json *j, char c);
/* The bytes between two quotes, with escapes as they stand; and as a text with a NUL, never longer than these. False
 * for NUL, and for halves of a pair, which stand for a character beyond U+FFFF. */
bool io_json_string(io_json *j, const char **string, size_t *length);
bool io_json_unescape(const char *string, size_t length, char *text);
/* A number; NaN for null, and for NaN as Python writes it. A whole number from `low` to `high`, also as 1.0. */
bool io_json_number(io_json *j, double *number);
bool io_json_whole(io_json *j, int64_t low, int64_t high, int64_t *number);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
