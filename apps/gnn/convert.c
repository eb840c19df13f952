/* gnn convert: writes graphs from other layouts, or generated ones, to a folder that gnn reads fast. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/options.h"
#include "common/tool.h"
#include "input.h"

typedef struct convert_options {
    const char *source, *folder;
    const char *edges, *features, *labels, *split, *classes, *nodes; /* files; or numbers, for generate */
    bool undirected, quiet;
    int64_t seed, threads;
    int unknown; /* the place of gnn_unknown_words */
    gnn_recipe recipe; /* its specification is NULL unless a graph is generated */
} convert_options;

static const char prefix[] = "generate:";

/* ---- the command line ---------------------------------------------------------------------------------- */

#define mistake(...) usage_mistake("gnn convert", __VA_ARGS__)

static bool take_place(void *settings, const char *text)
{
    convert_options *o = settings;
    if (!o->source) o->source = text;
    else if (!o->folder) o->folder = text;
    else return mistake("a third place \"%.40s\"", text);
    return true;
}

#define AT(place) .field = offsetof(convert_options, place)

static const option_row table[] = {
    {"SOURCE", .help = "a folder that gnn reads; one of GraphSAINT (adj_full.npz, feats.npy, class_map.json,\n"
     "role.json); a .npz of gnn-benchmark (adj_data, ..., labels); generate:SPEC, see below", .kind = OPTION_OPERAND},
    {"--edges", "FILE", "SOURCE TARGET [WEIGHT] a line, numbers from 0 or names; or a matrix", OPTION_TEXT, AT(edges)},
    {"--features", "FILE", "a row of numbers a node, one column may be names: text, .mtx, .npy, .npz", OPTION_TEXT,
     AT(features)},
    {"--labels", "FILE", "a class a line, or NODE CLASS: numbers from 0 (-1 unknown) or names; or .npy, .mtx",
     OPTION_TEXT, AT(labels)},
    {"--split", "FILE", "train, val, test or unused a line, or beside a node; or .npy", OPTION_TEXT, AT(split)},
    {"--classes", "FILE", "names of the classes, one a line", OPTION_TEXT, AT(classes)},
    {"--nodes", "FILE", "names of the nodes, one a line, if the features have no column of them", OPTION_TEXT,
     AT(nodes)},
    {"--unknown", "HOW", "nodes without features: error, or drop what is about them [error]", OPTION_WORD,
     AT(unknown), .words = gnn_unknown_words},
    {"--undirected", NULL, "each edge stands for both directions", OPTION_FLAG, AT(undirected)},
    {"", .kind = OPTION_HEADING},
    {"generate:flickr", .help = "89250 nodes, 899756 edges, 500 features, 7 classes", .kind = OPTION_OPERAND},
    {"generate:reddit", .help = "232965 nodes, 114615892 edges, 602 features, 41 classes", .kind = OPTION_OPERAND},
    {"generate:SPEC", .help = "a graph as sparse-bench makes them, as rmat:16,8; each edge in both directions.\n"
     "--edges N keeps N of its edges [all]. Features and classes are random, the features with a\n"
     "weak hint of the class: --features N [64], --classes N [8].", .kind = OPTION_OPERAND},
    {"--seed", "N", "of the random numbers [1]", OPTION_COUNT, AT(seed), OPTION_RANGE(0, 0x1p63)},
    {"", .kind = OPTION_HEADING},
    {"--threads", "N", "[all]", OPTION_COUNT, AT(threads), OPTION_RANGE(1, 4096)},
    {"--quiet", NULL, "print nothing but errors", OPTION_FLAG, AT(quiet), .beside = true},
    {"-h", .kind = OPTION_HELP},
    {"--help", .kind = OPTION_HELP, .beside = true},
};

static const command_line line = {"gnn convert", {OPTION_LIST(table)}, take_place, .mcl_syntax = false};

static void usage(FILE *stream)
{
    fputs("usage: gnn convert SOURCE DIR [options]    writes DIR/graph.npz, features.npy or .npz, labels.npy ...\n"
          "       gnn convert --edges FILE --features FILE --labels FILE DIR [options]\n\n", stream);
    options_help(&line, stream);
}

/* The value of a file's option that is a number for a generated graph. */
static bool read_count(const char *option, const char *value, double low, double high, int64_t *number)
{
    if (read_counts(value, low, high, 1, number) == 1) return true;
    return mistake("%s takes a whole number from %.10g to %.10g (got \"%.40s\")", option, low, high, value);
}

static bool parse_recipe(convert_options *o)
{
    gnn_recipe *r = &o->recipe;
    const char *spec = o->source + strlen(prefix);
    if (o->labels || o->split || o->nodes)
        return mistake("a graph that is generated has labels and a split of its own, and no names");
    if (!gnn_recipe_named(spec, r)) *r = (gnn_recipe){.spec = spec, .features = 64, .classes = 8};
    r->seed = (uint64_t)o->seed;
    if (o->edges && !read_count("--edges", o->edges, 2, 1e15, &r->edges)) return false;
    if (r->edges % 2)
        return mistake("--edges takes an even number, both directions of each (got \"%.40s\")", o->edges);
    return (!o->features || read_count("--features", o->features, 1, 1 << 20, &r->features)) &&
           (!o->classes || read_count("--classes", o->classes, 1, IO_MOST_CLASSES, &r->classes));
}

static bool check_together(convert_options *o)
{
    const bool files = o->edges || o->features || o->labels || o->split || o->classes || o->nodes;
    if (o->source && strncmp(o->source, prefix, strlen(prefix)) == 0) {
        if (!o->folder) return mistake("no folder to write to");
        return parse_recipe(o);
    }
    if (!files && !o->source) return mistake("no source");
    if (files && o->folder) return mistake("a source \"%.40s\" beside files", o->source);
    if (files) {
        o->folder = o->source;
        o->source = NULL;
        if (!o->edges || !o->features || !o->labels) return mistake("--edges, --features and --labels go together");
    }
    return o->folder || mistake("no folder to write to");
}

/* Whether an output is one of the named inputs; then the mistake was printed. A folder may be converted over itself. */
static bool replaces_source(const convert_options *o)
{
    const char *const inputs[] = {o->source, o->edges, o->features, o->labels, o->split, o->classes, o->nodes};
    char path[PATH_MAX];
    if (o->recipe.spec) return false;
    for (int k = 0; gnn_input_written(o->folder, k, path); k++)
        for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
            if (overwrites("gnn convert", path, inputs[i])) return true;
    return false;
}

/* ---- GraphSAINT's folders ------------------------------------------------------------------------------ */

static sp_status path_in(sp_context *context, const char *folder, const char *name, char path[PATH_MAX])
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", folder, strerror(ENAMETOOLONG));
}

static void take_classes(io_classes *classes, gnn_input *input)
{
    input->data.classes = classes->classes;
    input->data.labels = classes->labels;
    input->data.targets = classes->targets;
    input->classes = classes->names;
    memset(classes, 0, sizeof *classes);
}

static sp_status read_saint(sp_context *context, const char *folder, const gnn_input_options *reading,
                            gnn_input *input)
{
    char path[PATH_MAX];
    io_classes classes;
    sp_status status;
    TRY(path_in(context, folder, "feats.npy", path));
    TRY(gnn_input_features(context, path, reading, input));
    TRY(path_in(context, folder, "adj_full.npz", path));
    TRY(gnn_input_graph(context, path, reading, input));
    TRY(path_in(context, folder, "class_map.json", path));
    TRY(io_read_class_map(context, path, reading->interrupt, input->data.graph.rows, &classes));
    take_classes(&classes, input);
    TRY(path_in(context, folder, "role.json", path));
    TRY(io_read_roles(context, path, reading->interrupt, input->data.graph.rows, &input->data.split));
    input->has_split = true;
done:
    return status;
}

/* ---- pickles ------------------------------------------------------------------------------------------- */

static sp_status refuse_pickles(sp_context *context, const char *source)
{
    return sp_fail(context, SP_ERROR_ARGUMENT,
                   "%s: data in Python pickles, which gnn does not read; run scripts/convert-pickles %s DIR", source,
                   source);
}

/* Whether a file begins as pickles of protocol 2 and later do. */
static bool is_pickle(const char *path)
{
    FILE *file = fopen(path, "rb");
    const int first = file ? getc(file) : EOF, protocol = file ? getc(file) : EOF;
    if (file) fclose(file);
    return first == 0x80 && protocol >= 2 && protocol <= 5;
}

/* ---- archives of gnn-benchmark ------------------------------------------------------------------------- */

/* A member by one of two names. */
static sp_status read_array(sp_context *context, io_npz *npz, const char *name, const char *other, io_array *array)
{
    memset(array, 0, sizeof *array);
    if (io_npz_has(npz, name)) return io_npz_read(npz, name, array);
    if (io_npz_has(npz, other)) return io_npz_read(npz, other, array);
    return sp_fail(context, SP_ERROR_ARGUMENT,
                   "%s: no member %s.npy; gnn-benchmark's have adj_data, attr_data or attr_matrix, labels ...",
                   io_npz_path(npz), name);
}

static sp_status read_attributes(sp_context *context, io_npz *npz, gnn_features *features)
{
    io_array array;
    const bool parts = io_npz_has(npz, "attr_data");
    sp_status status;
    if (parts) {
        status = io_npz_matrix(npz, "attr_", &features->sparse);
        return status == SP_OK ? io_check_features(context, io_npz_path(npz), &features->sparse) : status;
    }
    status = read_array(context, npz, "attr_matrix", "attr_matrix", &array);
    if (status == SP_OK) status = io_make_features(context, io_npz_path(npz), &array, &features->dense);
    io_array_free(context, &array);
    return status;
}

static sp_status take_archive(sp_context *context, io_npz *npz, bool undirected, gnn_input *input)
{
    gnn_data *data = &input->data;
    io_array labels = {0};
    io_classes classes;
    sp_status status;
    if (io_npz_has(npz, "adj_matrix") || io_npz_has(npz, "node_attr")) TRY(refuse_pickles(context, io_npz_path(npz)));
    TRY(read_attributes(context, npz, &data->features));
    TRY(io_npz_matrix(npz, "adj_", &data->graph));
    TRY(io_make_adjacency(context, io_npz_path(npz), undirected, &data->graph));
    TRY(read_array(context, npz, "labels", "node_label", &labels));
    TRY(io_make_classes(context, io_npz_path(npz), &labels, &classes));
    const int64_t rows = gnn_input_rows(&data->features), nodes = data->graph.rows, count = classes.nodes;
    take_classes(&classes, input);
    if (rows != nodes || count != nodes)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld nodes, but %lld rows of features and %lld labels",
                    io_npz_path(npz), (long long)nodes, (long long)rows, (long long)count));
    status = sp_calloc(context, nodes, 1, (void **)&data->split);
done:
    io_array_free(context, &labels);
    return status;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

static sp_status read_files(sp_context *context, const convert_options *o, const gnn_input_options *reading,
                            gnn_input *input)
{
    sp_status status;
    TRY(gnn_input_features(context, o->features, reading, input));
    if (o->nodes) TRY(gnn_input_nodes(context, o->nodes, reading, input));
    TRY(gnn_input_graph(context, o->edges, reading, input));
    TRY(gnn_input_labels(context, o->labels, o->classes ? o->classes : "", reading, input));
    if (o->split) TRY(gnn_input_split(context, o->split, reading, input));
done:
    return status;
}

static bool is_there(const char *begin, char between, const char *name)
{
    char path[PATH_MAX];
    struct stat about;
    return snprintf(path, sizeof path, "%s%c%s", begin, between, name) < PATH_MAX && stat(path, &about) == 0;
}

/* Adds the kinds of sources to the last error. */
static sp_status refuse_source(sp_context *context)
{
    char why[PATH_MAX + 256];
    snprintf(why, sizeof why, "%s", sp_last_error(context));
    return sp_fail(context, SP_ERROR_ARGUMENT,
                   "%s; the source is a folder, an .npz or generate:SPEC; tables are named by"
                   " --edges, --features and --labels", why);
}

static sp_status read_archive(sp_context *context, const char *path, const gnn_input_options *reading,
                              gnn_input *input)
{
    io_npz *npz;
    sp_status status = io_npz_open(context, path, reading->interrupt, &npz);
    if (status == SP_ERROR_MATRIX) return refuse_source(context);
    if (status != SP_OK) return status;
    status = take_archive(context, npz, reading->undirected, input);
    io_npz_close(npz);
    return status;
}

static sp_status read_source(sp_context *context, const convert_options *o, gnn_input *input)
{
    const gnn_input_options reading = {.undirected = o->undirected, .drop_unknown = o->unknown,
                                       .interrupt = &interrupt_signal};
    struct stat about;
    if (o->recipe.spec) return gnn_generate(context, &o->recipe, input);
    if (!o->source) return read_files(context, o, &reading, input);
    if (is_there(o->source, '.', "test.index")) return refuse_pickles(context, o->source);
    if (is_there(o->source, '/', "adj_full.npz")) return read_saint(context, o->source, &reading, input);
    if (stat(o->source, &about) != 0) {
        sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", o->source, strerror(errno));
        return refuse_source(context);
    }
    if (S_ISDIR(about.st_mode)) return gnn_input_load(context, o->source, &reading, input);
    if (S_ISREG(about.st_mode) && is_pickle(o->source)) return refuse_pickles(context, o->source);
    return read_archive(context, o->source, &reading, input);
}

static void end_line(tool_line *said, const convert_options *o, const gnn_data *data, bool directed, double seconds)
{
    char holds[GNN_DESCRIPTION];
    gnn_input_describe(data, directed, holds);
    if (o->source)
        summary_line(said, "%s %.2000s, %s; wrote %.2000s in %.1f s", o->recipe.spec ? "made" : "read", o->source,
                     holds, o->folder, seconds);
    else
        summary_line(said, "read %.1000s, %.1000s, %.1000s, %s; wrote %.2000s in %.1f s", o->edges, o->features,
                     o->labels, holds, o->folder, seconds);
}

static sp_status convert(sp_context *context, const convert_options *o)
{
    const double began = wall_seconds();
    tool_line said = {.tool = "gnn", .quiet = o->quiet};
    gnn_input input = {0};
    bool symmetric;
    sp_status status;
    TRY(gnn_input_check(context, o->folder));
    may_block = 1;
    TRY(read_source(context, o, &input));
    may_block = 0;
    gnn_input_notice(&said, o->features ? o->features : o->source, &input);
    TRY(gnn_symmetric(context, &input.data.graph, &symmetric));
    TRY(gnn_input_save(context, o->folder, &input));
    end_line(&said, o, &input.data, !symmetric, wall_seconds() - began);
done:
    may_block = 0;
    gnn_input_free(context, &input);
    return status;
}

int gnn_convert_main(int argc, char **argv)
{
    convert_options o = {.seed = 1};
    sp_context *context = NULL;
    const options_outcome outcome = options_parse(&line, argc, argv, &o);
    if (outcome == OPTIONS_HELP) {
        usage(stdout);
        return end_answer("gnn");
    }
    if (outcome != OPTIONS_RUN || !check_together(&o) || replaces_source(&o)) return EXIT_USAGE;
    const sp_context_options cpu = {.device = "cpu", .threads = thread_count("-", o.threads),
                                    .interrupt = &interrupt_signal};
    sp_status status = sp_context_create(&cpu, &context);
    if (status == SP_OK) status = convert(context, &o);
    const int code = gnn_input_end(context, status);
    sp_context_destroy(context);
    return code;
}
