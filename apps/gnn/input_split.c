/* Which nodes train, validate and test: as a file says, with a line a node, by lists of nodes, or by a table that names
 * them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "input.h"

static const char *const split_words[] = {"unused", "train", "val", "test", NULL};

const char *gnn_input_node(const gnn_input *input, int64_t node, gnn_node_text text)
{
    const io_names *names = &input->nodes;
    const int most = (int)sizeof(gnn_node_text) - 1;
    if (names->count > 0) {
        const int length = (int)io_name_length(names, node);
        snprintf(text, sizeof(gnn_node_text), "%.*s", length < most ? length : most, io_name(names, node));
    } else snprintf(text, sizeof(gnn_node_text), "%lld", (long long)node);
    return text;
}

sp_status gnn_input_list(sp_context *context, const char *path, gnn_split kind, const gnn_input_options *options,
                         gnn_input *input)
{
    const io_graph graph = {.nodes = input->data.graph.rows, .names = input->nodes};
    gnn_data *data = &input->data;
    int32_t *nodes;
    int64_t count;
    gnn_node_text name;
    sp_status status = io_read_node_list(context, path, options->interrupt, &graph,
                                         options->drop_unknown ? &input->unknown_split : NULL, &nodes, &count);
    for (int64_t i = 0; status == SP_OK && i < count; i++) {
        const uint8_t other = data->split[nodes[i]];
        if (other == (uint8_t)kind)
            status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: node %s is there twice; write each node once%s", path,
                             gnn_input_node(input, nodes[i], name), input->nodes.count > 0
                             ? "" : " (a mask is no list)");
        else if (other != GNN_UNUSED)
            status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: node %s is in %s, too; a node is in one list", path,
                             gnn_input_node(input, nodes[i], name), split_words[other]);
        data->split[nodes[i]] = (uint8_t)kind;
    }
    input->has_split = input->has_split || kind == GNN_TRAIN;
    sp_free(context, nodes);
    return status;
}

/* ---- a table -------------------------------------------------------------------------------------------- */

/* The part of the split that a text stands for, -1 if it is none. */
static int part_of(const char *text, size_t length)
{
    static const struct {
        const char *word;
        gnn_split part;
    } words[] = {{"train", GNN_TRAIN}, {"training", GNN_TRAIN}, {"val", GNN_VALIDATION}, {"valid", GNN_VALIDATION},
                 {"validation", GNN_VALIDATION}, {"test", GNN_TEST}, {"unused", GNN_UNUSED}, {"none", GNN_UNUSED}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && strncasecmp(words[i].word, text, length) == 0) return (int)words[i].part;
    return -1;
}

static sp_status take_column(sp_context *context, const char *path, const io_node_table *table, gnn_input *input)
{
    static const char *const headings[] = {"split", "set", "role", "part", NULL};
    const int64_t at = io_find_heading(table, headings);
    gnn_node_text name;
    if (at < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld columns beside that of the nodes; keep one, or call one "
                       "split", path, (long long)table->columns);
    const io_attribute *column = &table->column[at];
    for (int64_t i = 0; i < input->data.graph.rows; i++) {
        const double value = column->values[i];
        int part = GNN_UNUSED;
        if (isnan(value)) continue;
        if (column->is_text) part = part_of(io_name(&table->texts, (int64_t)value),
                                            io_name_length(&table->texts, (int64_t)value));
        else part = value == floor(value) && value >= GNN_UNUSED && value <= GNN_TEST ? (int)value : -1;
        if (part < 0)
            return sp_fail(context, SP_ERROR_ARGUMENT,
                           "%s: node %s is in no part of a split; write train, val, test or "
                           "unused", path, gnn_input_node(input, i, name));
        input->data.split[i] = (uint8_t)part;
    }
    return SP_OK;
}

static sp_status read_table(sp_context *context, const char *path, const io_graph *graph,
                            const gnn_input_options *options, gnn_input *input)
{
    const io_node_options reading = {.skip_unknown = options->drop_unknown, .classes = true,
                                     .interrupt = options->interrupt};
    io_node_table table;
    sp_status status = io_read_node_table(context, path, graph, &reading, &table);
    if (status != SP_OK) return status;
    status = take_column(context, path, &table, input);
    input->unknown_split += table.unknown;
    io_node_table_free(context, &table);
    return status;
}

/* ---- a line a node -------------------------------------------------------------------------------------- */

static sp_status read_lines(sp_context *context, const char *path, const gnn_input_options *options, gnn_data *data)
{
    int32_t *kinds = NULL;
    int64_t count;
    sp_status status;
    TRY(io_read_numbers(context, path, options->interrupt, GNN_UNUSED, GNN_TEST, split_words, &kinds, &count));
    if (count != data->graph.rows)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld entries for %lld nodes; write one a node", path,
                    (long long)count, (long long)data->graph.rows));
    for (int64_t i = 0; i < count; i++) data->split[i] = (uint8_t)kinds[i];
done:
    sp_free(context, kinds);
    return status;
}

sp_status gnn_input_split(sp_context *context, const char *path, const gnn_input_options *options, gnn_input *input)
{
    const io_graph graph = {.nodes = input->data.graph.rows, .names = input->nodes};
    gnn_data *data = &input->data;
    bool table;
    sp_status status;
    if (!data->split) TRY(sp_calloc(context, data->graph.rows, 1, (void **)&data->split));
    TRY(io_is_node_table(context, path, options->interrupt, &graph, &table));
    if (table) TRY(read_table(context, path, &graph, options, input));
    else TRY(read_lines(context, path, options, data));
    input->has_split = true;
done:
    return status;
}
