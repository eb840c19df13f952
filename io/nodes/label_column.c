/* Labels of nodes as a column of a table of nodes, or as an attribute of the nodes of a GraphML file. */
#include <math.h>

#include "base/try.h"
#include "nodes/labelling.h"
#include "nodes/nodes.h"
#include "text/number.h"

static sp_status find_column(const labeller *l, const io_node_table *table, int64_t *column)
{
    const char *wanted = l->options->column;
    char there[IO_LISTED];
    for (*column = 0; *column < table->columns; ++*column)
        if (io_name_length(&table->headings, *column) == strlen(wanted) &&
            memcmp(io_name(&table->headings, *column), wanted, strlen(wanted)) == 0)
            return SP_OK;
    return sp_fail(l->context, SP_ERROR_ARGUMENT, "%s: no column \"%.40s\" besides that of the nodes; there are: %s",
                   l->name, wanted, io_names_list(&table->headings, there));
}

static sp_status refuse(const labeller *l, int64_t node, double number)
{
    char buffer[IO_NUMBER];
    int length = l->graph->names.count > 0 ? (int)io_name_length(&l->graph->names, node)
                                           : (int)io_format_int(buffer, node + l->graph->first);
    const char *name = l->graph->names.count > 0 ? io_name(&l->graph->names, node) : buffer;
    if (length > 40) length = 40;
    return sp_fail(l->context, SP_ERROR_ARGUMENT,
                   "%s: the label of node %.*s is %g; labels are whole numbers, or names, and -1 or empty where a node "
                   "has none", l->name, length, name, number);
}

/* A number is a label as in lists. */
static sp_status take_number(labeller *l, int64_t node, double number, int32_t *group)
{
    char buffer[IO_NUMBER];
    if (number != trunc(number) || number < -1 || number >= INT32_MAX) return refuse(l, node, number);
    const size_t length = io_format_int(buffer, (int64_t)number);
    return io_find_group(l, buffer, buffer + length, group);
}

static sp_status take_column(labeller *l, const io_node_table *table, int64_t c)
{
    const io_attribute *column = &table->column[c];
    sp_status status = SP_OK;
    l->decided = l->named = column->is_text;
    for (int64_t i = 0; i < l->graph->nodes; i++) {
        const double value = column->values[i];
        const int64_t text = column->is_text && !isnan(value) ? (int64_t)value : 0;
        int32_t group;
        if (isnan(value)) continue;
        if (column->is_text) {
            const char *name = io_name(&table->texts, text);
            TRY(io_find_group(l, name, name + io_name_length(&table->texts, text), &group));
        } else {
            TRY(take_number(l, i, value, &group));
        }
        if (group >= 0) TRY(io_add_member(l, i, group, 1));
    }
done:
    return status;
}

sp_status io_read_label_column(labeller *l, io_source *source, io_labelling *labelling)
{
    const io_node_options options = {.node_column = l->options->node_column,
                                     .wanted = l->options->column,
                                     .skip_unknown = l->options->skip_unknown,
                                     .interrupt = l->options->interrupt};
    io_node_table table;
    int64_t column;
    sp_status status = io_read_node_table_source(l->context, source, l->graph, &options, &table);
    if (status != SP_OK) return status;
    l->format = IO_LABELS_PAIRS;
    labelling->lines = table.lines;
    labelling->bytes = table.bytes;
    TRY(find_column(l, &table, &column));
    status = take_column(l, &table, column);
done:
    io_node_table_free(l->context, &table);
    return status;
}
