/* METIS graph files (Karypis and Kumar, METIS manual): "NODES EDGES [FORMAT [CONSTRAINTS]]", then a line for each node
 * with its neighbours, numbered from 1. FORMAT has up to three digits: 1 if nodes have sizes, 1 if they have weights
 * (CONSTRAINTS of them, usually one), 1 if each neighbour is followed by the weight of its edge. A line that begins
 * with % is a comment, an empty one a node without edges. An edge stands in the lines of both its nodes.
 *
 * Where nodes have sizes or weights, every node has a line that is not empty. Hence the numbers of a slice follow those
 * of the slice before, wherever lines are cut. The places of comments are kept, so that the number of a node gives the
 * number of its line. Whether both lines of an edge say the same is checked in metis_check.c.
 */
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "graphs/formats.h"
#include "graphs/metis.h"
#include "text/words.h"

enum { HEADER_NUMBERS = 4 };

/* The weight of the edge to line->weighs, if the line has it already. */
static bool read_weight(io_slice *slice, const char **at, const char *end, io_open_line *line)
{
    const char *word = io_next_word(at, end);
    double weight;
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
        return io_slice_fail(slice, "a neighbour that is not a node", word, *at,
                             "nodes are numbered from 1 to the number in the first line");
    slice->entries++;
    if (!state->weighted) return io_slice_arc(slice, line->tail, (int32_t)(neighbour - 1), 1);
    line->weighs = (int32_t)(neighbour - 1);
    return read_weight(slice, at, end, line);
}

/* A line that begins: a comment, or the next node within the slice. */
static bool begin_line(io_slice *slice, const char *line, const char *end, io_open_line *now)
{
    *now = (io_open_line){.comment = line < end && *line == '%', .weighs = -1, .skip = slice->state->node_numbers};
    if (now->comment) slice->status = io_gaps_add(slice->context, &slice->gaps, slice->node_lines, 1);
    if (now->comment) return slice->status == SP_OK;
    now->node = true;
    now->tail = (int32_t)slice->node_lines++;
    return true;
}

static bool read_number(io_slice *slice, const char **at, const char *end)
{
    const char *word = io_next_word(at, end);
    int64_t number;
    if (!io_parse_index(word, *at, IO_MOST_NODE_WEIGHT, &number))
        return io_slice_fail(slice, "a size or weight of the node that is not a whole number from 0 to 2^53", word, *at,
                             "the first line says that it has one");
    slice->status = io_reserve(slice->context, slice->number_count, slice->number_count + 1, sizeof *slice->numbers,
                               &slice->number_capacity, (void **)&slice->numbers);
    if (slice->status != SP_OK) return false;
    slice->numbers[slice->number_count++] = number;
    return true;
}

static bool read_node(io_slice *slice, char *line, char *line_end)
{
    const char *at = line, *end = line_end;
    const bool continues = io_line_continues(slice, line);
    io_open_line now = slice->open;
    if (continues) now.tail = 0;
    else if (!begin_line(slice, line, end, &now)) return false;
    slice->open = now;
    if (now.comment) return true;
    if (!continues && io_skip_blanks(line, end) == end) {
        slice->bare = now.skip > 0;
        return true;
    }
    slice->used_lines = slice->node_lines;
    for (; now.skip > 0 && !(slice->goes_on && io_skip_blanks(at, end) == end); now.skip--)
        if (!read_number(slice, &at, end)) return false;
    if (now.weighs >= 0 && !read_weight(slice, &at, end, &now)) return false;
    while (io_skip_blanks(at, end) < end)
        if (!read_neighbour(slice, &at, end, &now)) return false;
    slice->open = now;
    return true;
}

/* ---- joining -------------------------------------------------------------------------------------------- */

/* Whether the slice has wrong lines: empty ones although nodes have numbers, or others after the last node. */
static bool has_wrong_nodes(const io_slice *slice)
{
    const int64_t rows = slice->state->rows;
    return (slice->bare && slice->first_node < rows) ||
           (slice->used_lines > 0 && slice->first_node + slice->used_lines > rows);
}

/* Names the first of these lines and ends the slice there, unless an earlier line is malformed. A line that is both is
 * refused as one of no node: the rest of it may not have been read yet. `line`: lines before the slice. */
static sp_status refuse_nodes(sp_context *context, const char *name, io_slice *slice, int64_t line)
{
    const io_format_state *state = slice->state;
    const int64_t before = line, last = line + slice->lines;
    int64_t node = slice->first_node + slice->again;
    const char *at = slice->begin, *end;
    for (; at < slice->end; at = end + 1) {
        end = memchr(at, '\n', (size_t)(slice->end - at));
        if (!end) end = slice->end;
        if (io_line_continues(slice, at)) continue;
        if (++line > last) break;
        if (*at == '%') continue;
        const bool empty = io_skip_blanks(at, end) == end;
        if (line == last && slice->status != SP_OK && node - slice->first_node >= slice->used_lines) break;
        if (empty ? node >= state->rows || state->node_numbers == 0 : node < state->rows) {
            node++;
            continue;
        }
        slice->lines = line - before;
        slice->node_lines = node + 1 - slice->first_node;
        slice->number_count = 0;
        slice->open.node = true;
        if (empty)
            return sp_fail(context, SP_ERROR_MATRIX,
                           "%s:%lld: node %lld has an empty line, but the header says that each has a size or weight",
                           name, (long long)line, (long long)node + 1);
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s:%lld: a line of node %lld, but the header says %lld nodes; correct either", name,
                       (long long)line, (long long)node + 1, (long long)state->rows);
    }
    return SP_OK;
}

static sp_status reserve_numbers(sp_context *context, io_slice *slice)
{
    io_metis *all = slice->state->metis;
    const int64_t each = slice->state->node_numbers;
    slice->number_place = all->count;
    all->count += slice->number_count;
    const int64_t nodes = (all->count + each - 1) / each;
    sp_status status = SP_OK;
    if (all->constraints > 0)
        status = io_reserve(context, all->weight_capacity, nodes * all->constraints, sizeof *all->weights,
                            &all->weight_capacity, (void **)&all->weights);
    if (status == SP_OK && all->sized)
        status = io_reserve(context, all->size_capacity, nodes, sizeof *all->sizes, &all->size_capacity,
                            (void **)&all->sizes);
    return status;
}

static sp_status join_nodes(sp_context *context, const char *name, io_slice *slice, int64_t line)
{
    sp_status status = io_gaps_join(context, &slice->state->metis->comments, &slice->gaps, slice->first_node);
    if (status == SP_OK && has_wrong_nodes(slice)) status = refuse_nodes(context, name, slice, line);
    if (status == SP_OK && slice->number_count > 0) status = reserve_numbers(context, slice);
    return status;
}

static void store_numbers(const io_slice *slice)
{
    const io_metis *all = slice->state->metis;
    const int64_t each = slice->state->node_numbers;
    if (slice->number_count == 0) return;
    int64_t node = slice->number_place / each, which = slice->number_place % each - all->sized;
    for (int64_t i = 0; i < slice->number_count; i++) {
        if (which < 0) all->sizes[node] = slice->numbers[i];
        else all->weights[node * all->constraints + which] = slice->numbers[i];
        if (++which < all->constraints) continue;
        which = -(int64_t)all->sized;
        node++;
    }
}

/* The step after the slice has its place. */
static void add_up(io_slice *slice)
{
    store_numbers(slice);
    io_metis_add_up(slice);
}

/* ---- header --------------------------------------------------------------------------------------------- */

bool io_metis_parse_header(const char *line, const char *end, io_metis_head *head)
{
    int64_t numbers[HEADER_NUMBERS] = {0, 0, 0, 0};
    int found = 0;
    for (const char *at = line, *word; (word = io_next_word(&at, end)) < at; found++)
        if (found >= HEADER_NUMBERS ||
            !io_parse_index(word, at, found == 0 ? INT32_MAX : INT64_MAX / 4, &numbers[found]))
            return false;
    const int64_t sized = numbers[2] / 100, weighed = numbers[2] / 10 % 10, valued = numbers[2] % 10;
    if (found < 2 || sized > 1 || weighed > 1 || valued > 1 || numbers[3] > IO_MOST_CONSTRAINTS) return false;
    *head = (io_metis_head){.nodes = numbers[0], .edges = numbers[1], .sized = sized, .valued = valued,
                            .constraints = (int)(weighed && numbers[3] == 0 ? 1 : numbers[3]),
                            .stray = numbers[3] > 0 && !weighed};
    return true;
}

static sp_status read_header(sp_context *context, io_source *source, io_format_state *state, int64_t *edges,
                             int64_t *lines, int64_t *bytes)
{
    io_metis_head head;
    const char *name = io_source_name(source), *line, *end;
    do {
        sp_status status = io_source_line(source, &line, &end, bytes);
        if (status != SP_OK) return status;
        if (!line)
            return sp_fail(context, SP_ERROR_MATRIX, "%s:%lld: no header; it is NODES EDGES [FORMAT [CONSTRAINTS]]",
                           name, (long long)*lines + 1);
        ++*lines;
    } while (*line == '%' || io_skip_blanks(line, end) == end);
    if (!io_metis_parse_header(line, end, &head))
        return io_fail_line(context, name, *lines, "no header of a METIS graph", line, end,
                            "write NODES EDGES [FORMAT [CONSTRAINTS]], e.g. 100 250 001");
    if (head.stray)
        return io_fail_line(context, name, *lines, "a number of constraints, but a format without weights of nodes",
                            line, end, "write 010 or 011 as the format, or no fourth number");
    state->rows = state->cols = head.nodes;
    state->weighted = head.valued;
    state->metis->sized = head.sized;
    state->metis->constraints = head.constraints;
    state->node_numbers = head.sized + head.constraints;
    state->metis->most = head.nodes * state->node_numbers;
    *edges = head.edges;
    return SP_OK;
}

/* ---- all ------------------------------------------------------------------------------------------------ */

static sp_status check_counts(sp_context *context, const char *name, const io_format_state *state, int64_t edges,
                              const io_line_counts *counts, const io_graph *graph)
{
    if (state->metis->count < state->metis->most)
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s:%lld: %lld lines of nodes, but the header says %lld nodes, and that each has a size or "
                       "weight; the file is truncated or its header lies",
                       name, (long long)graph->lines, (long long)counts->used_lines, (long long)state->rows);
    if (counts->entries != 2 * edges)
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s:%lld: %lld neighbours, but the header says %lld edges, which makes %lld; the file is "
                       "truncated or its header lies",
                       name, (long long)graph->lines, (long long)counts->entries, (long long)edges,
                       (long long)(2 * edges));
    return io_check_nodes(context, name, state->rows, graph->bytes);
}

/* Gives the numbers to the graph and frees the spare memory. */
static sp_status hand_over_numbers(sp_context *context, io_metis *metis, io_graph *graph)
{
    sp_status status = SP_OK;
    if (graph->nodes == 0) return SP_OK;
    graph->constraints = metis->constraints;
    if (metis->constraints > 0)
        TRY(io_grow(context, graph->nodes * metis->constraints, graph->nodes * metis->constraints,
                    sizeof *metis->weights, (void **)&metis->weights));
    if (metis->sized)
        TRY(io_grow(context, graph->nodes, graph->nodes, sizeof *metis->sizes, (void **)&metis->sizes));
    graph->node_weights = metis->weights;
    graph->node_sizes = metis->sizes;
    metis->weights = metis->sizes = NULL;
done:
    return status;
}

sp_status io_read_metis(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                        io_graph *graph)
{
    io_read_options plain = *options;
    plain.transform = NULL; /* belongs to label triples */
    io_metis metis = {0};
    io_format_state state = {.options = &plain, .many_arcs = true, .join = join_nodes, .add_up = add_up,
                             .recheck = io_metis_recheck, .metis = &metis};
    io_line_counts counts = {0};
    int64_t edges = 0, lines = 0, bytes = 0;
    sp_status status;
    TRY(read_header(context, source, &state, &edges, &lines, &bytes));
    graph->bytes = bytes;
    metis.header_line = lines;
    TRY(io_read_lines(context, source, &state, read_node, reader_block, lines, &counts, graph));
    /* If the file is truncated, the lines that are missing at its end make no earlier line wrong. */
    const bool truncated = counts.node_lines < state.rows && counts.entries < 2 * edges;
    if (!counts.stopped && !truncated) counts.complete = state.rows;
    TRY(io_metis_check(context, io_source_name(source), &state, &counts, graph->packed));
    TRY(check_counts(context, io_source_name(source), &state, edges, &counts, graph));
    graph->nodes = state.rows;
    graph->symmetric = false;
    graph->undirected = true;
    TRY(hand_over_numbers(context, &metis, graph));
done:
    FREE_ALL(context, metis.weights, metis.sizes);
    io_gaps_free(context, &metis.comments);
    return status;
}
