/* Pairs of nodes: a line each, two names or numbers, by tabs, commas, semicolons or blanks. */
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "nodes/labelling.h"
#include "nodes/nodes.h"
#include "text/field.h"
#include "text/number.h"
#include "text/words.h"

typedef struct pair_reader {
    sp_context *context;
    io_source *source;
    const io_graph *graph;
    const io_labels *index; /* of the graph's names */
    int32_t *nodes;
    int64_t count, capacity; /* of the nodes, two a pair */
} pair_reader;

static int64_t find_node(const pair_reader *r, const io_field *f)
{
    int64_t number;
    if (r->graph->names.count > 0) return io_find_node(r->graph, r->index, f->text, f->end);
    return io_parse_index(f->text, f->end, r->graph->nodes - 1, &number) ? number : -1;
}

/* A first line of two words that name no nodes is a heading. */
static bool is_heading(const pair_reader *r, const io_field *a, const io_field *b)
{
    static const char *const first[] = {"source", "from", "src", "node1", "first", "u", NULL};
    static const char *const second[] = {"target", "to", "dst", "node2", "second", "v", NULL};
    return find_node(r, a) < 0 && find_node(r, b) < 0 && io_word_among(a->text, a->end, first) >= 0 &&
           io_word_among(b->text, b->end, second) >= 0;
}

static sp_status take_node(pair_reader *r, int64_t line, const io_field *f)
{
    const int64_t node = find_node(r, f);
    if (node < 0)
        return io_fail_line(r->context, io_source_name(r->source), line, "this is not a node of the graph", f->text,
                            f->end, r->graph->names.count > 0 ? "write names of nodes" : "write numbers from 0");
    const sp_status status = io_reserve(r->context, r->count, r->count + 1, sizeof *r->nodes, &r->capacity,
                                        (void **)&r->nodes);
    if (status == SP_OK) r->nodes[r->count++] = (int32_t)node;
    return status;
}

static sp_status take_lines(pair_reader *r)
{
    const char *line, *end;
    int64_t bytes = 0, lines = 0;
    sp_status status = io_reserve(r->context, 0, 2, sizeof *r->nodes, &r->capacity, (void **)&r->nodes);
    for (bool begun = false; status == SP_OK; begun = true) {
        io_field field[2];
        do {
            TRY(io_source_line(r->source, &line, &end, &bytes));
            lines++;
        } while (line && !io_trim_line(&line, &end));
        if (!line) break;
        const char *at = line, separator = io_find_separator(line, end);
        const char *wrong = io_take_field(&at, end, separator, &field[0]);
        if (!wrong && !at) wrong = "one node";
        if (!wrong) wrong = io_take_field(&at, end, separator, &field[1]);
        if (!wrong && at) wrong = "more than two nodes";
        if (wrong)
            TRY(io_fail_line(r->context, io_source_name(r->source), lines, wrong, line, end,
                             "write two nodes a line, and nothing else"));
        if (!begun && is_heading(r, &field[0], &field[1])) continue;
        TRY(take_node(r, lines, &field[0]));
        TRY(take_node(r, lines, &field[1]));
    }
done:
    return status;
}

sp_status io_read_node_pairs(sp_context *context, const char *path, const volatile int *interrupt,
                             const io_graph *graph, int32_t **nodes, int64_t *count)
{
    io_labels index = {0};
    pair_reader r = {.context = context, .graph = graph, .index = &index};
    *nodes = NULL;
    *count = 0;
    sp_status status = io_source_open(context, path, interrupt, &r.source);
    if (status != SP_OK) return status;
    if (graph->names.count > 0) TRY(io_labels_index(context, &graph->names, &index));
    TRY(take_lines(&r));
    *nodes = r.nodes;
    *count = r.count / 2;
    r.nodes = NULL;
done:
    FREE_ALL(context, r.nodes, index.slots);
    io_source_close(r.source);
    return status;
}
