/* Folders with a graph, features and labels: reading and writing (docs/formats.md). */
#ifndef GNN_INPUT_H
#define GNN_INPUT_H

#include <limits.h>

#include "common/tool.h"
#include "gnn.h"
#include "io.h"

/* What --unknown takes: refuse nodes without features (0), or drop what is about them. */
extern const char *const gnn_unknown_words[];

/* Features made from the graph, with those of the folder or without: file is none of these. */
typedef enum gnn_made_features { GNN_FEATURES_FILE, GNN_FEATURES_DEGREE, GNN_FEATURES_IDENTITY } gnn_made_features;
extern const char *const gnn_feature_words[];

typedef struct gnn_input_options {
    gnn_made_features features;
    bool undirected;  /* every edge stands for both directions, also if the file says otherwise */
    bool no_labels;   /* labels may be missing; then all are unknown, and the number of classes is 0 */
    bool drop_unknown; /* edges, labels and split entries of nodes without features are left out, and counted */
    const volatile int *interrupt; /* as in sp_context_options */
} gnn_input_options;

/* A folder, as read. */
typedef struct gnn_input {
    gnn_data data;     /* without a split all nodes are GNN_UNUSED */
    io_names classes;  /* their names; count 0: classes have only numbers */
    io_names nodes;    /* names of the nodes; count 0: they have only numbers */
    io_names features; /* names of the features; count 0: they have none */
    int64_t unknown_edges, unknown_labels, unknown_split; /* left out, as their nodes are unknown */
    bool has_split;
} gnn_input;

/* Reads FOLDER/graph.*, features.*, labels.* and the split, if any. The result is consistent: a square graph, a row
 * of features and a label for each node, finite numbers, labels below the number of classes. (gnn_data_check also
 * requires training nodes.) A failure leaves a sentence "FILE:LINE: what; remedy" in sp_last_error. `options` may be
 * NULL. */
sp_status gnn_input_load(sp_context *context, const char *folder, const gnn_input_options *options, gnn_input *input);
/* Whether PATH (or NULL) is a file that gnn reads from the folder, or would read once written. If so, prints that as a
 * mistake of `command`. */
bool gnn_input_overwritten(const char *command, const char *folder, const char *path);
void gnn_input_free(sp_context *context, gnn_input *input);

/* The steps of gnn_input_load for files elsewhere, in this order. gnn_input_nodes reads the names of nodes, one a line.
 * `names`: a file with the names of classes, or "". */
sp_status gnn_input_nodes(sp_context *context, const char *path, const gnn_input_options *options, gnn_input *input);
sp_status gnn_input_features(sp_context *context, const char *path, const gnn_input_options *options,
                             gnn_input *input);
sp_status gnn_input_graph(sp_context *context, const char *path, const gnn_input_options *options, gnn_input *input);
sp_status gnn_input_labels(sp_context *context, const char *path, const char *names, const gnn_input_options *options,
                           gnn_input *input);
int64_t gnn_input_rows(const gnn_features *features);
/* Prints notices, unless the line is quiet: about edges and rows that were left out, and if the first of several
 * features is the number of the node, as in a table with such a column. */
void gnn_input_notice(tool_line *line, const char *path, const gnn_input *input);
/* For the closing line: "120 nodes (3 of unknown class), 504 edges, 6 features, 3 classes". */
enum { GNN_DESCRIPTION = 256 };
void gnn_input_describe(const gnn_data *data, bool directed, char text[GNN_DESCRIPTION]);

/* input_features.c: replaces the features by those of the graph. Sparse: for the degree 32 columns, a 1 in that of its
 * power of two; for the identity a column a node. */
sp_status gnn_input_make_features(sp_context *context, gnn_made_features how, gnn_input *input);
/* A node as messages have it: its name, or its number. */
typedef char gnn_node_text[64];
const char *gnn_input_node(const gnn_input *input, int64_t node, gnn_node_text text);
/* input_split.c: the split of a folder, from one file or from lists. */
sp_status gnn_input_split(sp_context *context, const char *path, const gnn_input_options *options, gnn_input *input);
sp_status gnn_input_list(sp_context *context, const char *path, gnn_split kind, const gnn_input_options *options,
                         gnn_input *input);

/* Writes FOLDER/graph.npz, features.npy or .npz, labels.npy, and split.npy, classes.txt, nodes.txt and
 * feature_names.txt if the input has them: all of them or none. Makes the folder if needed. Refuses a folder with other
 * files that gnn would read; gnn_input_check does so before the work. */
sp_status gnn_input_check(sp_context *context, const char *folder);
/* The path of file number `index`, from 0, of those that may be written; false after the last. */
bool gnn_input_written(const char *folder, int index, char path[PATH_MAX]);
sp_status gnn_input_save(sp_context *context, const char *folder, const gnn_input *input);

/* A generated graph with dense features and a split. */
typedef struct gnn_recipe {
    const char *spec; /* of generate_matrix; edges go in both directions, without loops */
    int64_t edges;    /* entries of the matrix to keep; 0: all */
    int64_t features, classes;
    uint64_t seed;
} gnn_recipe;

/* The recipes "flickr" and "reddit", which have the shapes of those graphs; false for other names. */
bool gnn_recipe_named(const char *name, gnn_recipe *recipe);
sp_status gnn_generate(sp_context *context, const gnn_recipe *recipe, gnn_input *input);

/* `gnn info ...` and `gnn convert ...`: argv[0] is the command. They return what main returns. */
int gnn_info_main(int argc, char **argv);
int gnn_convert_main(int argc, char **argv);

/* The exit code of a command with this status. Prints a line on stderr if it failed. */
int gnn_input_end(const sp_context *context, sp_status status);

#endif
