/* DIMACS graphs: a problem line, then an arc or an edge a line.
 *
 *     c a comment            p sp NODES ARCS: directed arcs   a FROM TO WEIGHT
 *     p edge NODES EDGES     (or col): undirected edges       e NODE NODE [WEIGHT]
 *
 * Nodes are numbers from 1. The challenges of shortest paths and of colouring use these forms; those of flows and
 * matchings have other lines and are refused.
 */
#include <string.h>

#include "base/try.h"
#include "graphs/formats.h"
#include "text/words.h"

typedef struct problem {
    int64_t nodes, lines, line; /* `lines` with arcs or edges; `line`: where it stands */
    bool edges;
} problem;

static bool is_word(const char *word, const char *end, const char *expected)
{
    return (size_t)(end - word) == strlen(expected) && memcmp(word, expected, strlen(expected)) == 0;
}

/* Whether the line is empty or a comment. */
static bool is_comment(const char *line, const char *end)
{
    const char *at = line, *word = io_next_word(&at, end);
    return word == at || is_word(word, at, "c");
}

/* Reads p KIND NODES LINES; false if it is anything else. */
static bool read_problem(const char *line, const char *end, problem *p)
{
    const char *at = line, *word = io_next_word(&at, end);
    if (!is_word(word, at, "p")) return false;
    word = io_next_word(&at, end);
    p->edges = is_word(word, at, "edge") || is_word(word, at, "col");
    if (!p->edges && !is_word(word, at, "sp")) return false;
    word = io_next_word(&at, end);
    if (!io_parse_index(word, at, INT32_MAX, &p->nodes)) return false;
    word = io_next_word(&at, end);
    if (!io_parse_index(word, at, INT64_MAX, &p->lines)) return false;
    return io_next_word(&at, end) == at;
}

/* Whether the line states a problem, of a graph or another, as no label triple does: p KIND and two numbers. */
static bool states_problem(const char *line, const char *end)
{
    static const char *const kinds[] = {"sp", "edge", "edges", "col", "max", "min", "asn", "cnf", "ds", "tw", NULL};
    const char *at = line, *word = io_next_word(&at, end);
    double number;
    if (!is_word(word, at, "p")) return false;
    word = io_next_word(&at, end);
    if (io_word_among(word, at, kinds) < 0) return false;
    for (int i = 0; i < 2; i++) {
        word = io_next_word(&at, end);
        if (word == at || io_parse_decimal(word, at, &number) != at) return false;
    }
    return true;
}

bool io_looks_like_dimacs(const char *bytes, size_t count)
{
    const char *end = bytes + count;
    for (const char *line = bytes, *stop; line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        if (!is_comment(line, stop)) return states_problem(line, stop);
    }
    return false;
}

static bool read_node(io_slice *slice, const char **at, const char *end, int32_t *node)
{
    const char *word = io_next_word(at, end);
    int64_t number;
    if (!io_parse_index(word, *at, slice->state->rows, &number) || number == 0)
        return io_slice_fail(slice, "a node that is not in the graph", word, *at,
                             "nodes are numbers from 1 to that of the line p");
    *node = (int32_t)(number - 1);
    return true;
}

static bool read_arc(io_slice *slice, char *line, char *line_end)
{
    const bool edges = slice->state->pattern;
    const char *at = line, *end = line_end, *word = io_next_word(&at, end);
    int32_t tail = 0, head = 0;
    double weight;
    bool keep;
    if (word == at || is_word(word, at, "c")) return true;
    if (!is_word(word, at, edges ? "e" : "a"))
        return io_slice_fail(slice, edges ? "a line that is not an edge" : "a line that is not an arc", line, end,
                             edges ? "write e NODE NODE below p edge" : "write a FROM TO WEIGHT below p sp");
    if (!read_node(slice, &at, end, &tail) || !read_node(slice, &at, end, &head)) return false;
    word = io_next_word(&at, end);
    if (!edges && word == at)
        return io_slice_fail(slice, "an arc without a weight", line, end, "write a FROM TO WEIGHT");
    if (!io_slice_weight(slice, word, at, &weight, &keep)) return false;
    word = io_next_word(&at, end);
    if (word < at) return io_slice_fail(slice, "too many fields", word, end, "the weight is the last one");
    slice->entries++;
    return !keep || io_slice_arc(slice, tail, head, weight);
}

static sp_status read_header(sp_context *context, io_source *source, problem *p, int64_t *bytes)
{
    const char *name = io_source_name(source), *line, *end;
    sp_status status;
    do {
        TRY(io_source_line(source, &line, &end, bytes));
        p->line++;
        if (!line)
            return sp_fail(context, SP_ERROR_MATRIX, "%s: no line p; begin with p sp NODES ARCS or p edge NODES EDGES",
                           name);
    } while (is_comment(line, end));
    if (!read_problem(line, end, p))
        status = io_fail_line(context, name, p->line, "not the problem of a graph", line, end,
                              "write p sp NODES ARCS or p edge NODES EDGES, nodes below 2^31");
done:
    return status;
}

sp_status io_read_dimacs(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                         io_graph *graph)
{
    io_format_state state = {.options = options};
    io_line_counts counts = {0};
    problem p = {0};
    sp_status status;
    graph->symmetric = false;
    TRY(read_header(context, source, &p, &graph->bytes));
    state.rows = p.nodes;
    state.pattern = p.edges;
    TRY(io_read_lines(context, source, &state, read_arc, reader_block, p.line, &counts, graph));
    /* Files for colouring that list both directions of an edge may count it once. */
    const bool twice = p.edges && counts.entries % 2 == 0 && counts.entries / 2 == p.lines;
    if (counts.entries != p.lines && !twice)
        TRY(sp_fail(context, SP_ERROR_MATRIX,
                    "%s:%lld: %lld lines with %s, but line %lld says %lld; the file is not whole, or correct that line",
                    io_source_name(source), (long long)graph->lines, (long long)counts.entries,
                    p.edges ? "edges" : "arcs", (long long)p.line, (long long)p.lines));
    TRY(io_check_nodes(context, io_source_name(source), p.nodes, graph->bytes));
    graph->nodes = p.nodes;
    graph->symmetric = p.edges;
done:
    return status;
}
