/* Graphs with features and labels, as gnn takes them: a folder's files in, a folder's files out (docs/formats.md). */
#ifndef GNN_INPUT_H
#define GNN_INPUT_H

#include <limits.h>

#include "common/tool.h"
#include "gnn.h"
#include "io.h"

typedef struct gnn_input_options {
    bool undirected;  /* every edge stands for both directions, whatever the file says */
    bool no_labels;   /* labels may be missing: then all are unknown, and there are 0 classes */
    const volatile int *interrupt; /* as in sp_context_options */
} gnn_input_options;

/* A folder, as read. */
typedef struct gnn_input {
    gnn_data data;     /* without a split all nodes are GNN_UNUSED */
    io_names classes;  /* their names; count 0: they have none but their numbers */
    bool has_split;
} gnn_input;

/* Reads FOLDER/graph.*, features.*, labels.* and, where there is one, the split. What is read is consistent: a square
 * graph, as many rows of features and labels as nodes, numbers that are finite, labels below the number of classes.
 * (gnn_data_check also wants nodes to train with.) A failure is a sentence "FILE:LINE: what; remedy" in
 * sp_last_error. `options` may be NULL. */
sp_status gnn_input_load(sp_context *context, const char *folder, const gnn_input_options *options, gnn_input *input);
/* Whether PATH (or NULL) is one of the files that are read from the folder, or would be from then on; then that was
 * said as a mistake of `command`. */
bool gnn_input_overwritten(const char *command, const char *folder, const char *path);
void gnn_input_free(sp_context *context, gnn_input *input);

/* Its steps, for files that lie elsewhere, in this order; `names` is a file of the names of classes, or "". */
sp_status gnn_input_features(sp_context *context, const char *path, const gnn_input_options *options,
                             gnn_input *input);
sp_status gnn_input_graph(sp_context *context, const char *path, const gnn_input_options *options, gnn_input *input);
sp_status gnn_input_labels(sp_context *context, const char *path, const char *names, const gnn_input_options *options,
                           gnn_input *input);
int64_t gnn_input_rows(const gnn_features *features);
/* Tells, unless the line is quiet, where the first of several features is the node's number, as in a table that
 * begins with a column of them. */
void gnn_input_notice(tool_line *line, const char *path, const gnn_features *features);
/* For the closing line: "120 nodes (3 of unknown class), 504 edges, 6 features, 3 classes". */
enum { GNN_DESCRIPTION = 256 };
void gnn_input_describe(const gnn_data *data, bool directed, char text[GNN_DESCRIPTION]);
sp_status gnn_input_split(sp_context *context, const char *path, const gnn_input_options *options, gnn_input *input);

/* Writes FOLDER/graph.npz, features.npy or .npz, labels.npy, and where there are such split.npy and classes.txt, all
 * of them or none; the folder is made if it is not there. One that holds other files which would be read is refused,
 * and by gnn_input_check before the work. */
sp_status gnn_input_check(sp_context *context, const char *folder);
/* The name of file number `index`, from 0, of those that may be written; false where there are no more. */
bool gnn_input_written(const char *folder, int index, char path[PATH_MAX]);
sp_status gnn_input_save(sp_context *context, const char *folder, const gnn_input *input);

/* A graph made up, with dense features and a split. */
typedef struct gnn_recipe {
    const char *spec; /* of generate_matrix; its edges are taken in both directions, those to the node itself left out */
    int64_t edges;    /* how many entries of the matrix stay; 0: all */
    int64_t features, classes;
    uint64_t seed;
} gnn_recipe;

/* "flickr" and "reddit" are the sizes of the graphs that papers measure; false for other names. */
bool gnn_recipe_named(const char *name, gnn_recipe *recipe);
sp_status gnn_generate(sp_context *context, const gnn_recipe *recipe, gnn_input *input);

/* `gnn info ...` and `gnn convert ...`: argv[0] is the command. They return what main returns. */
int gnn_info_main(int argc, char **argv);
int gnn_convert_main(int argc, char **argv);

/* The exit code of a command that ended like this, after a line on stderr if it failed. */
int gnn_input_end(const sp_context *context, sp_status status);

#endif
