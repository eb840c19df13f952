/* Folders that hold a graph with features and labels. */
#include "base/random.h"
#include "input.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/options.h"
#include "common/tool.h"

/* ---- files of a folder --------------------------------------------------------------------------------- */

const char *const gnn_unknown_words[] = {"error", "drop", NULL};

/* The names of a folder's files, without endings. */
static const char *const stems[] = {"graph", "features", "labels", "train", "val", "test", "split", "classes", "nodes",
                                    "feature_names"};
enum { GRAPH, FEATURES, LABELS, TRAIN, VALIDATION, TEST, SPLIT, CLASSES, NODES, FEATURE_NAMES, STEMS };

typedef struct folder {
    const char *path;
    char file[STEMS][PATH_MAX]; /* "": there is none */
} folder;

static int stem_of(const char *name)
{
    const size_t length = strcspn(name, ".");
    for (int i = 0; i < STEMS; i++)
        if (strlen(stems[i]) == length && strncmp(name, stems[i], length) == 0 && name[length] && name[length + 1])
            return strstr(name, ".tmp.") || name[strlen(name) - 1] == '~' ? -1 : i;
    return -1;
}

static sp_status add_file(sp_context *context, folder *in, int stem, const char *name)
{
    char *file = in->file[stem];
    if (file[0]) {
        const char *other = strrchr(file, '/') + 1;
        const bool later = strcmp(other, name) > 0;
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: there are %.100s and %.100s; keep one of them", in->path,
                       later ? name : other, later ? other : name);
    }
    if (snprintf(file, PATH_MAX, "%s/%s", in->path, name) >= PATH_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", in->path, strerror(ENAMETOOLONG));
    return SP_OK;
}

/* Refuses files that say of a graph what gnn does not learn from, rather than pass over them. */
static sp_status refuse_kinds(sp_context *context, const char *path, const char *name)
{
    static const char *const edges[] = {"edge_features", "edge_attr", "edge_attributes", "edge-feat", "edge_feat",
                                        NULL};
    static const char *const kinds[] = {"node_types", "node_type", "edge_types", "edge_type", "edge_reltype", NULL};
    const char *end = name + strcspn(name, ".");
    char stem[32];
    if (end - name >= (ptrdiff_t)sizeof stem || !end[0] || name[strlen(name) - 1] == '~') return SP_OK;
    snprintf(stem, sizeof stem, "%.*s", (int)(end - name), name);
    if (find_word(stem, edges) >= 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s/%.100s: features of edges; gnn does not learn from these; make "
                       "one of them the weight in the graph, and move this file away", path, name);
    if (find_word(stem, kinds) >= 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s/%.100s: kinds of nodes or edges; gnn knows one kind of each; "
                       "add a feature for the kind of a node, keep the edges of one kind, and move this file away",
                       path, name);
    return SP_OK;
}

static sp_status list_folder(sp_context *context, const char *path, folder *in)
{
    sp_status status = SP_OK;
    memset(in, 0, sizeof *in);
    in->path = path;
    DIR *entries = opendir(path);
    if (!entries)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s; give a folder with graph.*, features.* and labels.*",
                       path, strerror(errno));
    for (const struct dirent *entry; status == SP_OK && (entry = readdir(entries));) {
        const int stem = stem_of(entry->d_name);
        status = stem >= 0 ? add_file(context, in, stem, entry->d_name) : refuse_kinds(context, path, entry->d_name);
    }
    closedir(entries);
    return status;
}

/* The name of `output` within the folder, or NULL: it lies elsewhere. */
static const char *name_within(const char *path, const char *output)
{
    char parent[PATH_MAX];
    struct stat there, about;
    const char *slash = strrchr(output, '/');
    const int length = slash ? (int)(slash + 1 - output) : 0;
    if (snprintf(parent, sizeof parent, "%.*s.", length, output) >= PATH_MAX || stat(parent, &about) != 0 ||
        stat(path, &there) != 0 || about.st_dev != there.st_dev || about.st_ino != there.st_ino)
        return NULL;
    return output + length;
}

bool gnn_input_overwritten(const char *command, const char *path, const char *output)
{
    char file[PATH_MAX];
    bool found = false;
    DIR *entries = opendir(path);
    for (const struct dirent *entry; entries && !found && (entry = readdir(entries));)
        found = stem_of(entry->d_name) >= 0 &&
                snprintf(file, sizeof file, "%s/%s", path, entry->d_name) < PATH_MAX &&
                overwrites(command, output, file);
    if (entries) closedir(entries);
    const char *name = found || !output ? NULL : name_within(path, output);
    if (!name || stem_of(name) < 0) return found;
    return !usage_mistake(command, "the output \"%.200s\" would be an input of its folder: give it another name",
                          output);
}

static sp_status missing(sp_context *context, const folder *in, const char *stem, const char *endings)
{
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: there is no %s.*; put one there: %s; gnn convert takes other names",
                   in->path, stem, endings);
}

static sp_status check_files(sp_context *context, const folder *in, const gnn_input_options *o)
{
    const bool lists = in->file[TRAIN][0] || in->file[VALIDATION][0] || in->file[TEST][0];
    if (!in->file[GRAPH][0]) return missing(context, in, "graph", "mtx, npz, tsv, csv, metis, bin");
    if (!in->file[FEATURES][0] && o->features == GNN_FEATURES_FILE)
        return missing(context, in, "features", "mtx, npy, npz, csv; or train and predict with --features degree or "
                       "identity");
    if (!in->file[LABELS][0] && !o->no_labels) return missing(context, in, "labels", "txt, npy, mtx");
    if (lists && in->file[SPLIT][0])
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "%s: there are split.* and train.*, val.* or test.*; keep one kind", in->path);
    if (lists && !in->file[TRAIN][0]) return missing(context, in, "train", "txt or npy with numbers of nodes");
    return SP_OK;
}

/* ---- splits -------------------------------------------------------------------------------------------- */

static sp_status read_splits(sp_context *context, const folder *in, const gnn_input_options *options,
                             gnn_input *input)
{
    static const struct {
        int stem;
        gnn_split kind;
    } lists[] = {{TRAIN, GNN_TRAIN}, {VALIDATION, GNN_VALIDATION}, {TEST, GNN_TEST}};
    sp_status status = sp_calloc(context, input->data.graph.rows, 1, (void **)&input->data.split);
    if (status == SP_OK && in->file[SPLIT][0]) return gnn_input_split(context, in->file[SPLIT], options, input);
    for (size_t i = 0; status == SP_OK && i < sizeof lists / sizeof *lists; i++)
        if (in->file[lists[i].stem][0])
            status = gnn_input_list(context, in->file[lists[i].stem], lists[i].kind, options, input);
    return status;
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

sp_status gnn_input_features(sp_context *context, const char *path, const gnn_input_options *options,
                             gnn_input *input)
{
    gnn_features *features = &input->data.features;
    return io_read_features(context, path, options->interrupt, &features->dense, &features->sparse, &input->nodes,
                            &input->features);
}

/* Names of features that have no headings, one a line. */
static sp_status read_feature_names(sp_context *context, const char *path, const gnn_input_options *options,
                                    gnn_input *input)
{
    const gnn_features *x = &input->data.features;
    const int64_t cols = x->sparse.row_offsets ? x->sparse.cols : x->dense.cols;
    if (input->features.count > 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: the features have headings already; keep one of both", path);
    const sp_status status = io_read_names(context, path, options->interrupt, INT32_MAX, &input->features);
    if (status != SP_OK || input->features.count == cols) return status;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld names for %lld features; write one a column", path,
                   (long long)input->features.count, (long long)cols);
}

sp_status gnn_input_nodes(sp_context *context, const char *path, const gnn_input_options *options, gnn_input *input)
{
    const int64_t rows = gnn_input_rows(&input->data.features);
    const bool later = rows == 0 && options->features != GNN_FEATURES_FILE; /* they are made from the graph */
    if (input->nodes.count > 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: the features have a column of names already; keep one of both",
                       path);
    const sp_status status = io_read_names(context, path, options->interrupt, INT32_MAX, &input->nodes);
    if (status != SP_OK || input->nodes.count == rows || later) return status;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld names for %lld rows of features; write one a row, without a "
                   "heading", path, (long long)input->nodes.count, (long long)rows);
}

int64_t gnn_input_rows(const gnn_features *features)
{
    return features->sparse.row_offsets ? features->sparse.rows : features->dense.rows;
}

/* Whether column `col` has each of the numbers low, low + 1, ... once, by the sum of their hashes; and whether they
 * ascend. */
static bool has_numbers(const sp_dense *x, int64_t col, float low, bool *ascending)
{
    const float *first = (const float *)x->values + col;
    uint64_t sum = 0;
    *ascending = true;
    for (int64_t i = 0; i < x->rows; i++) {
        const float number = first[i * x->stride] - low;
        if (!(number >= 0 && number < (float)x->rows) || number != floorf(number)) return false;
        *ascending = *ascending && number == (float)i;
        sum += mix64((uint64_t)number) - mix64((uint64_t)i);
    }
    return sum == 0;
}

/* Notes the first column that counts the nodes, which a network takes for a measure of them. */
static void notice_numbers(tool_line *line, const char *path, const gnn_input *input)
{
    enum { FEW = 3, EXACT = 1 << 24, SHOWN = 40 }; /* few rows may count by chance; f32 has whole numbers up to EXACT */
    const sp_dense *x = &input->data.features.dense;
    const io_names *names = &input->features;
    bool ascending;
    char which[SHOWN + 32] = "first feature";
    if (!x->values || x->rows <= FEW || x->rows >= EXACT || x->cols < 2) return;
    for (int64_t col = 0; col < x->cols; col++)
        for (int low = 0; low < 2; low++) {
            if (!has_numbers(x, col, (float)low, &ascending)) continue;
            if (col > 0 && names->count == x->cols)
                snprintf(which, sizeof which, "feature \"%.*s\"",
                         (int)(io_name_length(names, col) < SHOWN ? io_name_length(names, col) : SHOWN),
                         io_name(names, col));
            else if (col > 0) snprintf(which, sizeof which, "feature in column %lld", (long long)col + 1);
            notice_line(line, "%s: the %s of each node is its number, from %d; if that is a column of the table that "
                        "says which node, %sleave it out%s", path, which, low,
                        input->nodes.count > 0 ? "" : "call it id in a heading, or ",
                        ascending || input->nodes.count > 0
                            ? "" : " and sort by it: rows are nodes in the order of the file");
            return;
        }
}

void gnn_input_notice(tool_line *line, const char *path, const gnn_input *input)
{
    char edges[COUNTED_TEXT], labels[COUNTED_TEXT], entries[COUNTED_TEXT];
    if (line->quiet) return;
    notice_numbers(line, path, input);
    if (input->unknown_edges + input->unknown_labels + input->unknown_split > 0)
        notice_line(line, "%s: left out %s, %s and %s of the split, whose nodes have no features", path,
                    counted(input->unknown_edges, "edge", edges), counted(input->unknown_labels, "label", labels),
                    counted(input->unknown_split, "row", entries));
}

void gnn_input_describe(const gnn_data *data, bool directed, char text[GNN_DESCRIPTION])
{
    const gnn_features *x = &data->features;
    char count[4][COUNT_TEXT], unknown[2 * COUNT_TEXT] = "", classes[2 * COUNT_TEXT] = "";
    int64_t missing = 0;
    for (int64_t i = 0; data->labels && data->classes > 0 && i < data->graph.rows; i++) missing += data->labels[i] < 0;
    if (missing > 0) snprintf(unknown, sizeof unknown, " (%s of unknown class)", show_count(missing, count[0]));
    if (data->classes > 0) snprintf(classes, sizeof classes, ", %s classes", show_count(data->classes, count[0]));
    snprintf(text, GNN_DESCRIPTION, "%s nodes%s, %s %s%sedges, %s features%s", show_count(data->graph.rows, count[1]),
             unknown, show_count(data->graph.nnz, count[2]), directed ? "directed " : "",
             data->graph.values ? "weighted " : "",
             show_count(x->dense.values ? x->dense.cols : x->sparse.cols, count[3]), classes);
}

sp_status gnn_input_graph(sp_context *context, const char *path, const gnn_input_options *options, gnn_input *input)
{
    gnn_data *data = &input->data;
    const int64_t rows = gnn_input_rows(&data->features);
    const int64_t nodes = rows > 0 ? rows : input->nodes.count;
    const bool any = nodes == 0 && options->features != GNN_FEATURES_FILE; /* as many as the graph has */
    io_names found = {0};
    const io_adjacency_options reading = {.nodes = nodes, .undirected = options->undirected, .names = &input->nodes,
                                          .unknown = options->drop_unknown ? &input->unknown_edges : NULL,
                                          .found = any ? &found : NULL,
                                          .interrupt = options->interrupt};
    sp_status status = io_read_adjacency(context, path, &reading, &data->graph);
    if (status == SP_OK && any) input->nodes = found;
    if (status != SP_OK || data->graph.rows == nodes || any) return status;
    return sp_fail(context, SP_ERROR_ARGUMENT,
                   "%s: %lld nodes, but there are %lld rows of features; write one a node", path,
                   (long long)data->graph.rows, (long long)nodes);
}

/* Labels as a list, in the order of the nodes, or as a table that names them. */
static sp_status read_classes(sp_context *context, const char *path, const gnn_input_options *options,
                              gnn_input *input, io_classes *classes)
{
    const io_graph nodes = {.nodes = input->data.graph.rows, .names = input->nodes};
    int64_t *unknown = options->drop_unknown ? &input->unknown_labels : NULL;
    bool table;
    memset(classes, 0, sizeof *classes);
    sp_status status = io_require_file(context, path);
    if (status == SP_OK) status = io_is_node_table(context, path, options->interrupt, &nodes, &table);
    if (status != SP_OK) return status;
    return table ? io_read_class_table(context, path, options->interrupt, &nodes, unknown, classes)
                 : io_read_classes(context, path, options->interrupt, classes);
}

sp_status gnn_input_labels(sp_context *context, const char *path, const char *names, const gnn_input_options *options,
                           gnn_input *input)
{
    gnn_data *data = &input->data;
    io_classes classes;
    sp_status status = read_classes(context, path, options, input, &classes);
    if (status != SP_OK) return status;
    if (classes.nodes != data->graph.rows)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT,
                    "%s: %lld labels for %lld nodes; write one a node, -1 where it is unknown%s%s", path,
                    (long long)classes.nodes, (long long)data->graph.rows,
                    classes.names.count > 0 ? ", and no heading before names" : "",
                    classes.empty > 0 ? "; an empty line between two others is an unknown label" : ""));
    if (names[0] && classes.names.count > 0)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: the labels are names already; remove this file", names));
    if (names[0]) TRY(io_read_names(context, names, options->interrupt, IO_MOST_CLASSES, &classes.names));
    if (names[0] && classes.names.count < classes.classes)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: label %lld is out of range: %s names %lld classes", path,
                    (long long)(classes.classes - 1), names, (long long)classes.names.count));
    if (classes.targets && names[0] && classes.names.count != classes.classes)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld classes, but %s names %lld", path,
                    (long long)classes.classes, names, (long long)classes.names.count));
    data->classes = classes.names.count > 0 ? classes.names.count : classes.classes;
    data->labels = classes.labels;
    data->targets = classes.targets;
    input->classes = classes.names;
    memset(&classes, 0, sizeof classes);
done:
    io_classes_free(context, &classes);
    return status;
}

static sp_status all_unknown(sp_context *context, gnn_data *data)
{
    sp_status status = sp_alloc(context, data->graph.rows, sizeof *data->labels, (void **)&data->labels);
    for (int64_t i = 0; status == SP_OK && i < data->graph.rows; i++) data->labels[i] = -1;
    return status;
}

sp_status gnn_input_load(sp_context *context, const char *path, const gnn_input_options *options, gnn_input *input)
{
    const gnn_input_options none = {0}, *o = options ? options : &none;
    folder in;
    sp_status status;
    memset(input, 0, sizeof *input);
    TRY(list_folder(context, path, &in));
    TRY(check_files(context, &in, o));
    if (in.file[FEATURES][0]) TRY(gnn_input_features(context, in.file[FEATURES], o, input));
    if (in.file[FEATURES][0] && in.file[FEATURE_NAMES][0])
        TRY(read_feature_names(context, in.file[FEATURE_NAMES], o, input));
    if (in.file[NODES][0]) TRY(gnn_input_nodes(context, in.file[NODES], o, input));
    TRY(gnn_input_graph(context, in.file[GRAPH], o, input));
    if (o->features != GNN_FEATURES_FILE) TRY(gnn_input_make_features(context, o->features, input));
    if (in.file[LABELS][0]) TRY(gnn_input_labels(context, in.file[LABELS], in.file[CLASSES], o, input));
    else TRY(all_unknown(context, &input->data));
    status = read_splits(context, &in, o, input);
done:
    if (status != SP_OK) gnn_input_free(context, input);
    return status;
}

void gnn_input_free(sp_context *context, gnn_input *input)
{
    gnn_data_free(context, &input->data);
    io_names_free(context, &input->classes);
    io_names_free(context, &input->nodes);
    io_names_free(context, &input->features);
    memset(input, 0, sizeof *input);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* The files to write; `name` is NULL for others. */
typedef struct saving {
    const char *name[STEMS];
    io_output *output[STEMS];
} saving;

/* Whether a file with a name a line gives the names back. Each of them is a whole line, and no two are alike. */
static sp_status are_lines(sp_context *context, const io_names *names, bool *lines)
{
    int64_t repeated;
    *lines = names->count > 0;
    for (int64_t i = 0; *lines && i < names->count; i++) {
        const char *name = io_name(names, i);
        const size_t length = io_name_length(names, i);
        *lines = length > 0 && length <= IO_MOST_NAME && !strchr(" \t", name[0]) && !strchr(" \t", name[length - 1]) &&
                 !memchr(name, '\0', length) && !memchr(name, '\r', length) && !memchr(name, '\n', length);
    }
    if (!*lines) return SP_OK;
    const sp_status status = io_names_repeated(context, names, &repeated);
    *lines = repeated < 0;
    return status;
}

static sp_status choose_names(sp_context *context, const gnn_input *input, saving *to)
{
    bool lines = false;
    memset(to, 0, sizeof *to);
    const sp_status status = are_lines(context, &input->features, &lines);
    if (lines) to->name[FEATURE_NAMES] = "feature_names.txt";
    to->name[GRAPH] = "graph.npz";
    to->name[FEATURES] = input->data.features.sparse.row_offsets ? "features.npz" : "features.npy";
    to->name[LABELS] = "labels.npy";
    if (input->has_split) to->name[SPLIT] = "split.npy";
    if (input->classes.count > 0) to->name[CLASSES] = "classes.txt";
    if (input->nodes.count > 0) to->name[NODES] = "nodes.txt";
    return status;
}

static const char *const may_be[] = {"graph.npz", "features.npy", "features.npz", "labels.npy",
                                     "split.npy", "classes.txt",  "nodes.txt",    "feature_names.txt"};

bool gnn_input_written(const char *to, int index, char path[PATH_MAX])
{
    const int count = sizeof may_be / sizeof *may_be;
    return index < count && snprintf(path, PATH_MAX, "%s/%s", to, may_be[index]) < PATH_MAX;
}

/* Refuses a folder with other files that gnn would read. `to` NULL: all names that gnn may write are allowed. */
static sp_status look_for_others(sp_context *context, const char *path, const saving *to)
{
    DIR *entries = opendir(path);
    sp_status status = SP_OK;
    if (!entries) return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s; give another folder", path, strerror(errno));
    for (const struct dirent *entry; status == SP_OK && (entry = readdir(entries));) {
        const int stem = stem_of(entry->d_name);
        bool ours = stem < 0 || (to && to->name[stem] && strcmp(to->name[stem], entry->d_name) == 0);
        for (size_t i = 0; !to && i < sizeof may_be / sizeof *may_be; i++)
            ours = ours || strcmp(may_be[i], entry->d_name) == 0;
        if (!ours)
            status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: there is a %.100s already; give another folder", path,
                             entry->d_name);
    }
    closedir(entries);
    return status;
}

sp_status gnn_input_check(sp_context *context, const char *path)
{
    char file[PATH_MAX];
    struct stat about;
    if (stat(path, &about) != 0) {
        if (errno != ENOENT) return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", path, strerror(errno));
        const size_t length = strlen(path);
        snprintf(file, sizeof file, "%s", path);
        for (size_t at = length < sizeof file ? length : 0; at > 1 && file[at - 1] == '/';) file[--at] = '\0';
        return io_output_check(context, file);
    }
    sp_status status = S_ISDIR(about.st_mode) ? look_for_others(context, path, NULL)
                                              : sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s; give a folder", path,
                                                        strerror(ENOTDIR));
    if (status != SP_OK) return status;
    if (snprintf(file, sizeof file, "%s/graph.npz", path) < PATH_MAX) return io_output_check(context, file);
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", path, strerror(ENAMETOOLONG));
}

static sp_status make_folder(sp_context *context, const char *path, const saving *to, bool *made)
{
    *made = mkdir(path, 0777) == 0;
    if (*made) return SP_OK;
    if (errno != EEXIST)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s; give another folder", path, strerror(errno));
    return look_for_others(context, path, to);
}

static sp_status put_features(sp_context *context, io_output *output, const gnn_features *features)
{
    const sp_dense *d = &features->dense;
    if (features->sparse.row_offsets) return io_put_npz_matrix(context, output, &features->sparse);
    io_put_npy(output, &(io_array){.type = IO_F32, .dimensions = 2, .shape = {d->rows, d->cols},
                                   .count = d->rows * d->cols, .item_size = 4, .values = d->values});
    return SP_OK;
}

static void put_labels(io_output *output, const gnn_data *data)
{
    const int64_t nodes = data->graph.rows;
    io_array array = {.type = IO_I32, .dimensions = 1, .shape = {nodes, data->classes}, .count = nodes,
                      .item_size = 4, .values = data->labels};
    if (data->targets) {
        array.type = IO_U8;
        array.dimensions = 2;
        array.count = nodes * data->classes;
        array.item_size = 1;
        array.values = data->targets;
    }
    io_put_npy(output, &array);
}

/* One a line; NULL is no output. */
static void put_names(io_output *output, const io_names *names)
{
    for (int64_t k = 0; output && k < names->count; k++) {
        io_output_bytes(output, io_name(names, k), io_name_length(names, k));
        io_output_string(output, "\n");
    }
}

static sp_status put_files(sp_context *context, const gnn_input *input, const saving *to)
{
    const gnn_data *data = &input->data;
    const int64_t nodes = data->graph.rows;
    sp_status status;
    TRY(io_put_npz_matrix(context, to->output[GRAPH], &data->graph));
    TRY(put_features(context, to->output[FEATURES], &data->features));
    put_labels(to->output[LABELS], data);
    if (to->output[SPLIT])
        io_put_npy(to->output[SPLIT], &(io_array){.type = IO_U8, .dimensions = 1, .shape = {nodes}, .count = nodes,
                                                  .item_size = 1, .values = data->split});
    put_names(to->output[CLASSES], &input->classes);
    put_names(to->output[NODES], &input->nodes);
    put_names(to->output[FEATURE_NAMES], &input->features);
    for (int i = 0; i < STEMS; i++)
        if (to->output[i]) TRY(io_output_settle(to->output[i]));
    if (interrupt_signal) status = sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
done:
    return status;
}

/* The graph appears last: if it exists, so do all others. */
static sp_status finish_files(const saving *to, sp_status status)
{
    io_output *open[STEMS];
    int count = 0;
    for (int i = 0; i < STEMS; i++)
        if (to->output[i]) open[count++] = to->output[i];
    return finish_outputs(open, count, status);
}

sp_status gnn_input_save(sp_context *context, const char *path, const gnn_input *input)
{
    saving to;
    bool made = false;
    sp_status status;
    TRY(choose_names(context, input, &to));
    TRY(make_folder(context, path, &to, &made));
    for (int i = 0; i < STEMS; i++) {
        char file[PATH_MAX];
        if (!to.name[i]) continue;
        if (snprintf(file, sizeof file, "%s/%s", path, to.name[i]) >= PATH_MAX)
            TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", path, strerror(ENAMETOOLONG)));
        TRY(io_output_open(context, file, &to.output[i]));
    }
    TRY(put_files(context, input, &to));
done:
    status = finish_files(&to, status);
    if (status != SP_OK && made) rmdir(path); /* fails if the folder is not empty */
    return status;
}

/* ---- the end of a command ------------------------------------------------------------------------------ */

int gnn_input_end(const sp_context *context, sp_status status)
{
    tool_line line = {.tool = "gnn"};
    return status == SP_OK ? EXIT_DONE : end_failed(&line, context, status);
}
