/* METIS graph files (Karypis and Kumar, METIS manual): "NODES EDGES [FORMAT [WEIGHTS]]", then a line for each node
 * with its neighbours, numbered from 1. FORMAT has up to three digits: 1 if nodes have sizes, 1 if they have weights
 * (WEIGHTS of them, usually one), 1 if each neighbour is followed by the weight of its edge. A line that begins with
 * % is a comment, an empty one a node without edges. An edge stands in the lines of both its nodes.
 *
 * Sizes and weights of nodes are read and passed over. That both lines of an edge say the same is checked by
 * hashing: the sum of hashes of all (lower node, higher node, weight), over arcs that ascend and over arcs that
 * descend, agree. On the way the arcs that ascend are ahead: the line of an edge's lower node comes first. Reading
 * ends where they are not, as lines of one arc back to a node of one digit, two bytes each, take 12 in memory, which
 * only what is written for the arcs ahead of them makes up for: these end in nodes of as many digits as there are
 * lines.
 */
#include "internal.h"

enum { HEADER_NUMBERS = 4, MOST_NODE_WEIGHTS = 1 << 10 };

/* The weight of the edge to line->weighs, if the line has it already. */
static bool read_weight(io_slice *slice, const char **at, const char *end, io_open_line *line)
{
    const char *word = io_next_word(at, end);
    float weight;
    bool keep;
    if (word == *at && slice->goes_on) return true;
    if (word == *at)
        return io_slice_fail(slice, "a neighbour without a weight", word, *at,
                             "the first line says that each has one");
    if (!io_slice_weight(slice, word, *at, &weight, &keep)) return false;
    const int32_t neighbour = line->weighs;
    line->weighs = -1;
    return !keep || io_slice_arc(slice, line->tail, neighbour, weight);
}

static bool read_neighbour(io_slice *slice, const char **at, const char *end, io_open_line *line)
{
    const io_format_state *state = slice->state;
    const char *word = io_next_word(at, end);
    int64_t neighbour;
    if (!io_parse_index(word, *at, state->rows, &neighbour) || neighbour == 0)
        return io_slice_fail(slice, "a neighbour that is no node", word, *at,
                             "nodes are numbered from 1 to the number in the first line");
    slice->entries++;
    if (!state->weighted) return io_slice_arc(slice, line->tail, (int32_t)(neighbour - 1), 1);
    line->weighs = (int32_t)(neighbour - 1);
    return read_weight(slice, at, end, line);
}

/* The node of a line that is no comment, within the slice. */
static io_open_line begin_node(io_slice *slice, const char *line, const char *end)
{
    io_open_line begun = {.comment = line < end && *line == '%', .weighs = -1, .skip = slice->state->node_numbers};
    if (begun.comment) return begun;
    begun.node = true;
    begun.tail = (int32_t)slice->node_lines++;
    return begun;
}

static bool read_node(io_slice *slice, char *line, char *line_end)
{
    const char *at = line, *end = line_end, *word;
    int64_t number;
    const bool continues = io_line_continues(slice, line);
    io_open_line now = continues ? slice->open : begin_node(slice, line, end);
    if (continues) now.tail = 0;
    slice->open = now;
    if (now.comment || (!continues && io_skip_blanks(line, end) == end)) return true;
    slice->used_lines = slice->node_lines;
    for (; now.skip > 0 && !(slice->goes_on && io_skip_blanks(at, end) == end); now.skip--) {
        word = io_next_word(&at, end);
        if (!io_parse_index(word, at, INT64_MAX, &number))
            return io_slice_fail(slice, "a size or weight of the node that is no whole number", word, at,
                                 "the first line says that it has one");
    }
    if (now.weighs >= 0 && !read_weight(slice, &at, end, &now)) return false;
    while (io_skip_blanks(at, end) < end)
        if (!read_neighbour(slice, &at, end, &now)) return false;
    slice->open = now;
    return true;
}

/* ---- header --------------------------------------------------------------------------------------------- */

static sp_status read_header(sp_context *context, io_source *source, io_format_state *state, int64_t *edges,
                             int64_t *lines, int64_t *bytes)
{
    int64_t numbers[HEADER_NUMBERS] = {0, 0, 0, 1};
    const char *name = io_source_name(source), *line, *end, *at;
    int found = 0;
    do {
        sp_status status = io_source_line(source, &line, &end, bytes);
        if (status != SP_OK) return status;
        if (!line)
            return sp_fail(context, SP_ERROR_MATRIX, "%s:%lld: no header; it is NODES EDGES [FORMAT [WEIGHTS]]",
                           name, (long long)*lines + 1);
        ++*lines;
        at = line;
    } while (*line == '%' || io_skip_blanks(line, end) == end);
    for (const char *word; (word = io_next_word(&at, end)) < at; found++)
        if (found >= HEADER_NUMBERS ||
            !io_parse_index(word, at, found == 0 ? INT32_MAX : INT64_MAX / 4, &numbers[found]))
            found = HEADER_NUMBERS;
    const int64_t sized = numbers[2] / 100, weighed = numbers[2] / 10 % 10, valued = numbers[2] % 10;
    if (found < 2 || found > HEADER_NUMBERS || sized > 1 || weighed > 1 || valued > 1 ||
        numbers[3] > MOST_NODE_WEIGHTS)
        return io_fail_line(context, name, *lines, "no header of a METIS graph", line, end,
                            "write NODES EDGES [FORMAT [WEIGHTS]], e.g. 100 250 001");
    state->rows = state->cols = numbers[0];
    state->weighted = valued;
    state->node_numbers = (int)(sized + weighed * numbers[3]);
    *edges = numbers[1];
    return SP_OK;
}

/* ---- both directions ------------------------------------------------------------------------------------ */

static uint64_t hash_edge(int32_t low, int32_t high, float weight)
{
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    uint64_t hash = ((uint64_t)(uint32_t)low << 32 | (uint32_t)high) + UINT64_C(0x9e3779b97f4a7c15) * (bits + 1u);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

static int64_t bits_of(int32_t node) { return 32 - __builtin_clz((unsigned)node + 1); }

static void add_up(io_slice *slice)
{
    const io_arcs *arcs = &slice->arcs;
    io_edge_sums sums = {0};
    for (int64_t i = 0; i < arcs->count; i++) {
        const int32_t tail = arcs->tails[i] + (int32_t)slice->first_node, head = arcs->heads[i];
        const bool ascends = tail < head;
        const uint64_t hash = hash_edge(ascends ? tail : head, ascends ? head : tail, arcs->weights[i]);
        sums.loops += tail == head;
        sums.hash += ascends ? hash : -hash;
        sums.ahead += ascends ? bits_of(head) : -bits_of(tail);
    }
    slice->edges = sums;
}

static sp_status fail_edge(sp_context *context, const char *name)
{
    return sp_fail(
        context, SP_ERROR_MATRIX,
        "%s: an edge stands in the line of one of its nodes only, or with two weights; write it in both", name);
}

static sp_status check_edges(sp_context *context, const char *name, const io_edge_sums *sums)
{
    if (sums->loops > 0)
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s: %lld nodes are their own neighbours; METIS graphs have no loops", name,
                       (long long)sums->loops);
    return sums->hash == 0 ? SP_OK : fail_edge(context, name);
}

static sp_status check_counts(sp_context *context, const char *name, const io_format_state *state, int64_t edges,
                              const io_line_counts *counts, const io_graph *graph)
{
    if (counts->stopped) return fail_edge(context, name);
    if (counts->used_lines > state->rows)
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s:%lld: %lld lines of nodes, but the header says %lld nodes; correct either", name,
                       (long long)graph->lines, (long long)counts->used_lines, (long long)state->rows);
    if (counts->entries != 2 * edges)
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s:%lld: %lld neighbours, but the header says %lld edges, which makes %lld; the file is "
                       "truncated or its header lies",
                       name, (long long)graph->lines, (long long)counts->entries, (long long)edges,
                       (long long)(2 * edges));
    sp_status status = io_check_nodes(context, name, state->rows, graph->bytes);
    return status == SP_OK ? check_edges(context, name, &counts->edges) : status;
}

sp_status io_read_metis(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                        io_graph *graph)
{
    io_read_options plain = *options;
    plain.transform = NULL; /* belongs to label triples */
    io_format_state state = {.options = &plain, .many_arcs = true, .add_up = add_up};
    io_line_counts counts = {0};
    int64_t edges = 0, lines = 0, bytes = 0;
    sp_status status;
    IO_TRY(read_header(context, source, &state, &edges, &lines, &bytes));
    graph->bytes = bytes;
    IO_TRY(io_read_lines(context, source, &state, read_node, reader_block, lines, &counts, graph));
    IO_TRY(check_counts(context, io_source_name(source), &state, edges, &counts, graph));
    graph->nodes = state.rows;
    graph->symmetric = false;
    graph->undirected = true;
done:
    return status;
}
