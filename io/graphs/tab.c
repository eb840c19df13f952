/* Tab files (mcl -use-tab): "ID<blank>LABEL" a line, ids ascending, # comments. A node that the file does not name is
 * called ?_ID, as mcl does it; ids that are not nodes are ignored. Such names take memory that no file accounts for, so
 * at most a million are made, and one more for every four bytes of the graph.
 */
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "graphs/formats.h"
#include "text/words.h"

enum { FREE_NAMES = 1 << 20, BYTES_PER_NAME = 4 };

typedef struct naming {
    sp_context *context;
    const io_graph *graph;
    io_name_list list;
    int64_t made_up;
} naming;

static int64_t id_of(const naming *to, int64_t node) { return to->graph->ids ? to->graph->ids[node] : node; }

/* Makes up names for the nodes whose ids are below `id`. */
static sp_status append_missing(naming *to, const char *name, int64_t id)
{
    char label[32];
    while (to->list.names.count < to->graph->nodes && id_of(to, to->list.names.count) < id) {
        if (to->made_up++ == FREE_NAMES + to->graph->bytes / BYTES_PER_NAME)
            return sp_fail(to->context, SP_ERROR_MATRIX,
                           "%s: at least %lld of the graph's %lld nodes have no label; give the tab file of this"
                           " graph", name, (long long)to->made_up, (long long)to->graph->nodes);
        int length = snprintf(label, sizeof label, "?_%lld", (long long)id_of(to, to->list.names.count));
        sp_status status = io_names_append(to->context, &to->list, label, (size_t)length);
        if (status != SP_OK) return status;
    }
    return SP_OK;
}

static sp_status read_line(naming *to, const char *name, int64_t number, const char *line, const char *end,
                           int64_t *last)
{
    int64_t id;
    line = io_skip_blanks(line, end);
    if (line == end || *line == '#') return SP_OK;
    const char *stop = io_skip_word(line, end);
    if (!io_parse_index(line, stop, INT32_MAX, &id))
        return io_fail_line(to->context, name, number, "no id at the beginning of the line", line, end,
                            "write ID<TAB>LABEL, ids below 2147483648");
    if (id <= *last)
        return io_fail_line(to->context, name, number, "an id that is not above the one before", line, end,
                            "sort the file by id, each id once");
    *last = id;
    stop = io_skip_blanks(stop, end);
    while (end > stop && end[-1] == '\r') end--;
    if (stop == end)
        return io_fail_line(to->context, name, number, "an id without a label", line, end, "write ID<TAB>LABEL");
    if (memchr(stop, '\0', (size_t)(end - stop)))
        return io_fail_line(to->context, name, number, "a label with a NUL byte", line, end, "is this a text file?");
    sp_status status = append_missing(to, name, id);
    if (status == SP_OK && to->list.names.count < to->graph->nodes && id_of(to, to->list.names.count) == id)
        status = io_names_append(to->context, &to->list, stop, (size_t)(end - stop));
    return status;
}

sp_status io_read_tab(sp_context *context, io_source *source, io_graph *graph)
{
    naming to = {.context = context, .graph = graph};
    const char *line, *end;
    int64_t number = 0, last = -1, bytes = 0;
    sp_status status;
    for (;;) {
        TRY(io_source_line(source, &line, &end, &bytes));
        if (!line) break;
        TRY(read_line(&to, io_source_name(source), ++number, line, end, &last));
    }
    TRY(append_missing(&to, io_source_name(source), INT64_MAX));
    graph->names = to.list.names;
    memset(&to.list.names, 0, sizeof to.list.names);
done:
    io_names_free(context, &to.list.names);
    return status;
}
