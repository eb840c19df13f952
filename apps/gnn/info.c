/* gnn info: what a folder with a graph, features and labels holds, as text or JSON. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"
#include "figures.h"
#include "input.h"

typedef struct info_options {
    const char *folder;
    bool json, undirected, quiet;
    int64_t threads;
    int unknown; /* the place of gnn_unknown_words */
} info_options;

typedef struct info {
    int64_t loops, isolated, longest; /* isolated: no edge to another node */
    int64_t unlabelled, split[GNN_SPLITS];
    int64_t *members; /* of each class */
    bool symmetric;
} info;

/* ---- the command line ---------------------------------------------------------------------------------- */

#define mistake(...) usage_mistake("gnn info", __VA_ARGS__)

static bool take_folder(void *settings, const char *text)
{
    info_options *o = settings;
    if (o->folder) return mistake("a second folder \"%.40s\"", text);
    o->folder = text;
    return true;
}

#define AT(place) .field = offsetof(info_options, place)

static const option_row rows[] = {
    {"--json", NULL, "as JSON", OPTION_FLAG, AT(json)},
    {"--undirected", NULL, "each edge stands for both directions", OPTION_FLAG, AT(undirected)},
    {"--unknown", "HOW", "nodes without features: error, or drop what is about them [error]", OPTION_WORD,
     AT(unknown), .words = gnn_unknown_words},
    {"--threads", "N", "[all]", OPTION_COUNT, AT(threads), OPTION_RANGE(1, 4096)},
    {"--quiet", NULL, "print nothing but the answer and errors", OPTION_FLAG, AT(quiet), .beside = true},
    {"-h", .kind = OPTION_HELP},
    {"--help", .kind = OPTION_HELP, .beside = true},
};

static const command_line line = {"gnn info", {OPTION_LIST(rows)}, take_folder, .mcl_syntax = false};

static void usage(FILE *stream)
{
    fputs("usage: gnn info DIR [options]        what a folder with graph.*, features.* and labels.* holds\n\n", stream);
    options_help(&line, stream);
}

/* ---- counting ------------------------------------------------------------------------------------------ */

/* Marks the nodes that have an edge to another. */
static void walk_edges(const sp_csr *a, uint8_t *connected, info *found)
{
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = a->row_offsets[i], end = a->row_offsets[i + 1];
        if (end - begin > found->longest) found->longest = end - begin;
        for (int64_t e = begin; e < end; e++) {
            const int32_t j = a->col_indices[e];
            found->loops += i == j;
            if (i != j) connected[i] = connected[j] = 1;
        }
    }
}

static void count_labels(const gnn_data *data, info *found)
{
    for (int64_t i = 0; i < data->graph.rows; i++) {
        bool any = false;
        if (data->labels) {
            any = data->labels[i] >= 0;
            if (any) found->members[data->labels[i]]++;
        }
        for (int64_t c = 0; data->targets && c < data->classes; c++) {
            found->members[c] += data->targets[i * data->classes + c];
            any = any || data->targets[i * data->classes + c];
        }
        found->unlabelled += !any;
        found->split[data->split[i]]++;
    }
}

static sp_status count(sp_context *context, const gnn_data *data, info *found)
{
    uint8_t *connected = NULL;
    sp_status status;
    TRY(sp_calloc(context, data->graph.rows, 1, (void **)&connected));
    TRY(sp_calloc(context, data->classes, sizeof *found->members, (void **)&found->members));
    TRY(gnn_symmetric(context, &data->graph, &found->symmetric));
    walk_edges(&data->graph, connected, found);
    for (int64_t i = 0; i < data->graph.rows; i++) found->isolated += !connected[i];
    count_labels(data, found);
done:
    sp_free(context, connected);
    return status;
}

/* ---- output -------------------------------------------------------------------------------------------- */

static double share(int64_t part, int64_t whole) { return whole > 0 ? (double)part / (double)whole : 0; }

static void put_text(io_output *out, const gnn_input *input, const info *found)
{
    const gnn_data *data = &input->data;
    const sp_csr *g = &data->graph, *sparse = &data->features.sparse;
    const sp_dense *dense = &data->features.dense;
    char name[256];
    io_output_format(out, "nodes      %lld\nedges      %lld, %s, %s", (long long)g->rows, (long long)g->nnz,
                     found->symmetric ? "symmetric" : "directed", g->values ? "weighted" : "unweighted");
    io_output_format(out, "\nloops      %lld\nisolated   %lld\ndegree     mean %.2f, largest %lld\n",
                     (long long)found->loops, (long long)found->isolated, share(g->nnz, g->rows),
                     (long long)found->longest);
    if (sparse->row_offsets)
        io_output_format(out, "features   %lld, sparse, %lld filled (%.3g %%)\n", (long long)sparse->cols,
                         (long long)sparse->nnz, 100 * share(sparse->nnz, sparse->rows * sparse->cols));
    else io_output_format(out, "features   %lld, dense\n", (long long)dense->cols);
    io_output_format(out, "classes    %lld, %s, %lld nodes with none\n", (long long)data->classes,
                     data->targets ? "several a node" : "one a node", (long long)found->unlabelled);
    for (int64_t c = 0; c < data->classes; c++) {
        gnn_class_name(&input->classes, c, name, sizeof name);
        io_output_format(out, "  %-24s %lld\n", name, (long long)found->members[c]);
    }
    if (!input->has_split) {
        io_output_string(out, "split      none\n");
        return;
    }
    io_output_format(out, "split      train %lld, val %lld, test %lld, unused %lld\n",
                     (long long)found->split[GNN_TRAIN], (long long)found->split[GNN_VALIDATION],
                     (long long)found->split[GNN_TEST], (long long)found->split[GNN_UNUSED]);
}

static void put_json(io_output *out, const info_options *o, const gnn_input *input, const info *found)
{
    const gnn_data *data = &input->data;
    const sp_csr *g = &data->graph, *sparse = &data->features.sparse;
    const bool is_sparse = sparse->row_offsets != NULL;
    const int64_t cols = is_sparse ? sparse->cols : data->features.dense.cols;
    static const char *const splits[GNN_SPLITS] = {"unused", "train", "val", "test"}; /* "unused" comes last */
    char name[256];
    json file = {.out = out}, *j = &file;
    json_begin(j, NULL, '{');
    json_text(j, "folder", o->folder);
    json_count(j, "nodes", g->rows);
    json_count(j, "edges", g->nnz);
    json_flag(j, "symmetric", found->symmetric);
    json_flag(j, "weighted", g->values != NULL);
    json_count(j, "loops", found->loops);
    json_count(j, "isolated", found->isolated);
    json_number(j, "mean_degree", share(g->nnz, g->rows));
    json_count(j, "max_degree", found->longest);
    json_count(j, "features", cols);
    json_flag(j, "sparse", is_sparse);
    json_count(j, "filled", is_sparse ? sparse->nnz : g->rows * cols);
    json_flag(j, "multi_label", data->targets != NULL);
    json_count(j, "unlabelled", found->unlabelled);
    j->flat = true;
    json_begin(j, "classes", '[');
    for (int64_t c = 0; c < data->classes; c++) {
        gnn_class_name(&input->classes, c, name, sizeof name);
        json_begin(j, NULL, '{');
        json_text(j, "name", name);
        json_count(j, "nodes", found->members[c]);
        json_end(j, '}');
    }
    json_end(j, ']');
    j->flat = false;
    if (!input->has_split) json_null(j, "split");
    else json_begin(j, "split", '{');
    for (int i = 1; input->has_split && i <= GNN_SPLITS; i++)
        json_count(j, splits[i % GNN_SPLITS], found->split[i % GNN_SPLITS]);
    if (input->has_split) json_end(j, '}');
    json_end(j, '}');
}

/* ---- all ----------------------------------------------------------------------------------------------- */

static sp_status show(sp_context *context, const info_options *o, const gnn_input *input)
{
    info found = {0};
    io_output *out = NULL;
    sp_status status;
    TRY(count(context, &input->data, &found));
    TRY(io_output_open(context, "-", &out));
    if (o->json) put_json(out, o, input, &found);
    else put_text(out, input, &found);
    status = io_output_commit(out);
    out = NULL;
done:
    io_output_discard(out);
    sp_free(context, found.members);
    return status;
}

int gnn_info_main(int argc, char **argv)
{
    info_options o = {0};
    gnn_input input = {0};
    tool_line said = {.tool = "gnn"};
    sp_context *context = NULL;
    const options_outcome outcome = options_parse(&line, argc, argv, &o);
    if (outcome == OPTIONS_HELP) {
        usage(stdout);
        return end_answer("gnn");
    }
    if (outcome != OPTIONS_RUN) return EXIT_USAGE;
    if (!o.folder) {
        mistake("no folder");
        return EXIT_USAGE;
    }
    said.quiet = o.quiet;
    const sp_context_options cpu = {.device = "cpu", .threads = thread_count("-", o.threads),
                                    .interrupt = &interrupt_signal};
    const gnn_input_options reading = {.undirected = o.undirected, .no_labels = true, .drop_unknown = o.unknown,
                                       .interrupt = &interrupt_signal};
    sp_status status;
    TRY(sp_context_create(&cpu, &context));
    may_block = 1;
    TRY(gnn_input_load(context, o.folder, &reading, &input));
    gnn_input_notice(&said, o.folder, &input);
    status = show(context, &o, &input);
done:
    may_block = 0;
    const int code = gnn_input_end(context, status);
    if (context) gnn_input_free(context, &input);
    sp_context_destroy(context);
    return code;
}
