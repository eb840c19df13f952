/* The matrix of a graph whose nodes are numbers, or have names that are known, from any format. */
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "graphs/formats.h"
#include "nodes/nodes.h"
#include "text/field.h"
#include "text/table.h"

/* ---- edge lists ---------------------------------------------------------------------------------------- */

static bool read_end(io_slice *slice, const char **at, const char *end, int32_t *node)
{
    const char *field = io_next_field(at, end), *stop = io_field_end(field, end);
    int64_t number;
    if (!io_parse_index(field, stop, slice->state->rows - 1, &number)) {
        char remedy[128];
        const int64_t nodes = slice->state->rows;
        const bool past = io_parse_index(field, stop, nodes, &number); /* just behind the last one */
        snprintf(remedy, sizeof remedy, "nodes are whole numbers from 0 to %lld, unless the features name them%s",
                 (long long)nodes - 1, past ? " (subtract 1 if yours begin at 1)" : "");
        return io_slice_fail(slice, "an end of an edge that is not a node", field, stop, remedy);
    }
    *node = (int32_t)number;
    return true;
}

static bool read_edge(io_slice *slice, char *line, char *line_end)
{
    const char *end = line_end, *at = io_skip_blanks(line, end);
    int32_t source = 0, target = 0;
    double weight = 1;
    bool keep = true;
    if (io_is_table_comment(line, end)) return true;
    if (!read_end(slice, &at, end, &source) || !read_end(slice, &at, end, &target)) return false;
    if (at < end) {
        const char *field = io_next_field(&at, end);
        if (!io_slice_weight(slice, field, io_field_end(field, end), &weight, &keep)) return false;
    }
    if (at < end)
        return io_slice_fail(slice, "too many fields", at, end,
                             "an edge is SOURCE TARGET, and WEIGHT where it has one: features of edges are not read");
    return !keep || io_slice_arc(slice, source, target, weight);
}

/* ---- entries ------------------------------------------------------------------------------------------- */

/* Triples that make the matrix. */
typedef struct triples {
    int64_t nodes, count;
    const int32_t *rows, *cols;
    const float *values; /* NULL: ones */
    bool mirror;
} triples;

static bool all_ones(sp_context *context, const float *values, int64_t count)
{
    int64_t others = 0;
#pragma omp parallel for schedule(static) reduction(+ : others) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < count; e++) others += values[e] != 1;
    return others == 0;
}

static void drop_values(sp_context *context, sp_csr *matrix)
{
    sp_free(context, matrix->values);
    matrix->values = NULL;
}

/* Of repeated undirected edges the heaviest counts; weights of repeated directed edges are summed. */
static sp_status build(sp_context *context, const triples *from, bool undirected, sp_csr *matrix)
{
    const bool pattern = !from->values || all_ones(context, from->values, from->count);
    sp_status status = sp_csr_from_coo(context, &(sp_coo){.rows = from->nodes, .cols = from->nodes,
                                                          .count = from->count, .row_indices = from->rows,
                                                          .col_indices = from->cols,
                                                          .values = pattern ? NULL : from->values},
                                       pattern || undirected ? SP_COMBINE_MAX : SP_COMBINE_SUM,
                                       from->mirror || undirected, matrix);
    if (status == SP_OK && pattern) drop_values(context, matrix);
    return status;
}

/* Row TARGET, column SOURCE: the target receives from the source. */
static sp_status build_graph(sp_context *context, io_graph *g, bool undirected, sp_csr *matrix)
{
    const bool pattern =
        g->packed ? io_packed_ones(g->packed) : !g->weights || all_ones(context, g->weights, g->arcs);
    sp_status status = io_graph_matrix(context, g, true, pattern || undirected ? SP_COMBINE_MAX : SP_COMBINE_SUM,
                                       g->symmetric || undirected, matrix);
    if (status == SP_OK && pattern) drop_values(context, matrix);
    return status;
}

/* ---- matrices ------------------------------------------------------------------------------------------ */

static sp_status to_f32(sp_context *context, sp_csr *matrix)
{
    float *values;
    if (!matrix->values || matrix->value_type == SP_F32) return SP_OK;
    sp_status status = sp_alloc(context, matrix->nnz, sizeof *values, (void **)&values);
    if (status != SP_OK) return status;
    for (int64_t e = 0; e < matrix->nnz; e++) values[e] = (float)((const double *)matrix->values)[e];
    sp_free(context, matrix->values);
    matrix->values = values;
    return SP_OK;
}

/* Checks the weights: NULL or what is wrong; whether all are 1, and whether any is 0. */
static const char *check_weights(sp_context *context, const sp_csr *matrix, bool *ones, bool *zeros)
{
    const float *values = matrix->values;
    int64_t bad = 0, none = 0, others = 0;
#pragma omp parallel for schedule(static) reduction(+ : bad, none, others) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < matrix->nnz; e++) {
        bad += !(values[e] >= 0 && values[e] <= 3.402823466e38f);
        none += values[e] == 0;
        others += values[e] != 1;
    }
    *ones = others == 0;
    *zeros = none > 0;
    return bad ? "a weight that is negative or not finite; weights are 0 or above" : NULL;
}

/* Drops entries of 0 and adds the other direction if wanted, by way of triples. */
static sp_status rebuild(sp_context *context, bool undirected, sp_csr *matrix)
{
    const float *values = matrix->values;
    int32_t *rows = NULL, *cols = NULL;
    float *kept = NULL;
    int64_t count = 0;
    sp_csr made = {0};
    sp_status status;
    TRY(sp_alloc(context, matrix->nnz, sizeof *rows, (void **)&rows));
    TRY(sp_alloc(context, matrix->nnz, sizeof *cols, (void **)&cols));
    TRY(sp_alloc(context, matrix->nnz, sizeof *kept, (void **)&kept));
    for (int64_t i = 0; i < matrix->rows; i++)
        for (int64_t e = matrix->row_offsets[i]; e < matrix->row_offsets[i + 1]; e++) {
            if (values && values[e] == 0) continue;
            rows[count] = (int32_t)i;
            cols[count] = matrix->col_indices[e];
            kept[count++] = values ? values[e] : 1;
        }
    const triples from = {matrix->rows, count, rows, cols, kept, false};
    TRY(build(context, &from, undirected, &made));
    sp_csr_free(context, matrix);
    *matrix = made;
done:
    FREE_ALL(context, rows, cols, kept);
    return status;
}

/* Makes a matrix that was read that of a graph: square, with valid weights, a pattern if all are 1. */
sp_status io_make_adjacency(sp_context *context, const char *path, bool undirected, sp_csr *matrix)
{
    bool ones = true, zeros = false;
    if (matrix->rows != matrix->cols)
        return sp_fail(context, SP_ERROR_MATRIX, "%s: %lld rows and %lld columns; a graph needs a square matrix",
                       path, (long long)matrix->rows, (long long)matrix->cols);
    sp_status status = to_f32(context, matrix);
    if (status != SP_OK) return status;
    const char *wrong = matrix->values ? check_weights(context, matrix, &ones, &zeros) : NULL;
    if (wrong) return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", path, wrong);
    if (ones) {
        sp_free(context, matrix->values);
        matrix->values = NULL;
    }
    return zeros || undirected ? rebuild(context, undirected, matrix) : SP_OK;
}

static sp_status read_npz(sp_context *context, const char *path, const io_adjacency_options *options, sp_csr *matrix)
{
    io_npz *npz;
    sp_status status = io_npz_open(context, path, options->interrupt, &npz);
    if (status != SP_OK) return status;
    status = io_npz_matrix(npz, "", matrix);
    if (status == SP_OK) status = io_make_adjacency(context, path, options->undirected, matrix);
    io_npz_close(npz);
    return status;
}

/* ---- columns of edges ------------------------------------------------------------------------------------ */

/* Headings of a third column that does not hold weights: kinds of edges, and numbers that do not grow with how much
 * one node means to the other. */
static const char *const kinds[] = {"type", "edge_type", "relation", "rel", "kind", "label", NULL};
static const char *const no_weights[] = {"edge_attr", "edge_attribute", "edge_feat", "edge_feature", "attr", "feature",
                                         "distance", "dist", "length", "cost", "time", "timestamp", "date", "year",
                                         "id", "edge_id", NULL};

/* Refuses columns beside source, target and weight, whose meaning would be lost. The index that data frames write
 * before all others, without a name, has none. by_place: edges are read by the place of the columns. */
static sp_status check_columns(sp_context *context, io_source *source, bool by_place)
{
    enum { PEEKED = 1 << 16 };
    const char *bytes, *line, *end, *wrong = NULL;
    const char *remedy = "gnn does not learn from features of edges: keep one number as the weight";
    size_t count = PEEKED;
    io_csv csv;
    io_field f, other = {0}, heading = {0};
    int64_t lines = 0;
    sp_status status = io_source_peek(source, &bytes, &count);
    if (status != SP_OK) return status;
    io_csv_find(bytes, count, &csv);
    bytes += io_mark_bytes(bytes, count);
    for (const char *at = bytes, *stop = bytes + count; at < stop; at = end + 1) {
        line = at;
        end = memchr(at, '\n', (size_t)(stop - at));
        if (!end) end = stop;
        const char *trimmed = end;
        lines++;
        if (!io_trim_line(&line, &trimmed)) continue;
        heading = (io_field){line, trimmed, false};
        for (int i = 0; line && !wrong; i++) {
            wrong = io_take_field(&line, trimmed, csv.separator, &f);
            if (i == 0 && csv.heading_lines > 0 && !wrong && f.text == f.end) {
                if (!by_place && csv.source > 0) continue;
                return io_fail_line(context, io_source_name(source), lines, "a first column without a name",
                                    heading.text, heading.end,
                                    "if it counts the rows, leave it out (pandas: index=False)");
            }
            if (i == csv.source || i == csv.target || other.text) continue;
            if (i != csv.weight || io_word_among(f.text, f.end, kinds) >= 0) other = f;
            else if (csv.heading_lines > 0 && io_word_among(f.text, f.end, no_weights) >= 0) {
                other = f;
                remedy = "a weight grows with how much the nodes mean to each other: leave the column out, or make it "
                         "such a number and call it weight";
            }
        }
        break;
    }
    if (by_place && csv.heading_lines > 0 && (csv.source != 0 || csv.target != 1))
        return io_fail_line(context, io_source_name(source), lines,
                            "source and target are not the first two columns", heading.text, heading.end,
                            "numbers of nodes are read by their place: write source,target,weight; names go "
                            "with features that have a column of them");
    if (wrong || !other.text) return SP_OK; /* what is wrong is reported when it is read */
    if (csv.heading_lines > 0 && io_word_among(other.text, other.end, kinds) >= 0)
        remedy = "gnn knows one kind of edges: write those of one kind, without that column";
    return io_fail_line(context, io_source_name(source), lines, "a column beside source, target and weight", other.text,
                        other.end, remedy);
}

/* ---- edges of nodes with names -------------------------------------------------------------------------- */

/* Gives the ends of edges their numbers, and takes out edges of nodes that are not there. */
static sp_status find_ends(sp_context *context, const char *path, const io_adjacency_options *options, io_graph *g)
{
    const io_graph nodes = {.nodes = options->names->count, .names = *options->names};
    int32_t *places = NULL;
    int64_t kept = 0, strangers = 0, first = -1;
    float *weights = g->weights;
    sp_status status;
    TRY(sp_alloc(context, g->nodes, sizeof *places, (void **)&places));
    TRY(io_find_nodes(context, g, &nodes, places));
    for (int64_t i = 0; i < g->nodes; i++) {
        if (places[i] < 0 && first < 0) first = i;
        strangers += places[i] < 0;
    }
    if (strangers > 0 && !options->unknown)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT,
                    "%s: %lld of %lld nodes have no features, the first is \"%.*s\"; add their rows, or leave their "
                    "edges out (--unknown drop)", path, (long long)strangers, (long long)g->nodes,
                    (int)(io_name_length(&g->names, first) < 80 ? io_name_length(&g->names, first) : 80),
                    io_name(&g->names, first)));
    for (int64_t e = 0; e < g->arcs; e++) {
        const int32_t tail = places[g->tails[e]], head = places[g->heads[e]];
        if (tail < 0 || head < 0) continue;
        g->tails[kept] = tail;
        g->heads[kept] = head;
        if (weights) weights[kept] = weights[e];
        kept++;
    }
    if (strangers > 0) *options->unknown += g->arcs - kept;
    g->arcs = kept;
    g->nodes = nodes.nodes;
done:
    sp_free(context, places);
    return status;
}

/* Whether the ends of the first edge are not both numbers. */
static sp_status ends_are_names(io_source *source, bool *names)
{
    enum { PEEKED = 1 << 16 };
    const char *bytes;
    size_t count = PEEKED;
    int64_t number;
    io_csv csv;
    io_field f;
    sp_status status = io_source_peek(source, &bytes, &count);
    *names = false;
    if (status != SP_OK) return status;
    io_csv_find(bytes, count, &csv);
    const char *at = bytes + io_mark_bytes(bytes, count), *stop = bytes + count;
    for (int64_t lines = 0; at < stop; lines++) {
        const char *end = memchr(at, '\n', (size_t)(stop - at)), *line = at, *trimmed = end ? end : stop;
        at = end ? end + 1 : stop;
        if (lines < csv.heading_lines || !io_trim_line(&line, &trimmed)) continue;
        for (int i = 0; line && !io_take_field(&line, trimmed, csv.separator, &f); i++)
            if (i == csv.source || i == csv.target)
                *names = *names || !io_parse_index(f.text, f.end, INT32_MAX, &number);
        break;
    }
    return SP_OK;
}

static sp_status read_named(sp_context *context, io_source *source, io_format format,
                            const io_adjacency_options *options, sp_csr *matrix)
{
    const io_read_options reading = {.format = format, .interrupt = options->interrupt};
    io_graph graph = {0};
    sp_status status;
    if (format != IO_STRING) TRY(check_columns(context, source, false));
    TRY(io_read_source(context, source, &reading, 0, &graph));
    TRY(io_graph_spread(context, &graph));
    if (options->found) {
        *options->found = graph.names;
        memset(&graph.names, 0, sizeof graph.names);
    } else TRY(find_ends(context, io_source_name(source), options, &graph));
    graph.symmetric = graph.symmetric && format == IO_STRING; /* lists have the direction that they are written in */
    status = build_graph(context, &graph, options->undirected, matrix);
done:
    io_graph_free(context, &graph);
    return status;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

static sp_status read_edges(sp_context *context, io_source *source, const char *path,
                            const io_adjacency_options *options, sp_csr *matrix)
{
    const io_read_options reading = {.interrupt = options->interrupt};
    const io_format_state state = {.options = &reading, .rows = options->nodes ? options->nodes : INT32_MAX};
    io_graph graph = {0};
    io_table table;
    int32_t largest = -1;
    sp_status status;
    TRY(io_scan_table(context, path, options->interrupt, &table));
    if (table.heading_lines > 0) TRY(check_columns(context, source, true));
    TRY(io_skip_heading(source, &table));
    TRY(io_read_lines(context, source, &state, read_edge, 0, table.heading_lines, NULL, &graph));
    for (int64_t e = 0; e < graph.arcs; e++) {
        const int32_t end = graph.tails[e] > graph.heads[e] ? graph.tails[e] : graph.heads[e];
        if (end > largest) largest = end;
    }
    graph.nodes = options->nodes ? options->nodes : (int64_t)largest + 1;
    TRY(io_check_nodes(context, path, options->nodes ? 0 : graph.nodes, graph.bytes));
    status = build_graph(context, &graph, options->undirected, matrix);
done:
    io_graph_free(context, &graph);
    return status;
}

static sp_status read_graph(sp_context *context, io_source *source, io_format format,
                            const io_adjacency_options *options, sp_csr *matrix)
{
    const io_read_options reading = {.format = format, .matrix = true, .interrupt = options->interrupt};
    io_graph graph;
    sp_status status = io_read_source(context, source, &reading, 0, &graph);
    if (status != SP_OK) return status;
    if (graph.matrix.row_offsets) {
        *matrix = graph.matrix;
        memset(&graph.matrix, 0, sizeof graph.matrix);
        status = io_make_adjacency(context, io_source_name(source), options->undirected, matrix);
    } else {
        status = build_graph(context, &graph, options->undirected, matrix);
    }
    io_graph_free(context, &graph);
    return status;
}

sp_status io_read_adjacency(sp_context *context, const char *path, const io_adjacency_options *options,
                            sp_csr *matrix)
{
    io_content content;
    io_format format;
    io_source *source;
    memset(matrix, 0, sizeof *matrix);
    sp_status status = io_source_open(context, path, options->interrupt, &source);
    if (status != SP_OK) return status;
    TRY(io_detect_content(source, &content));
    TRY(io_detect_format(source, &format));
    bool named = options->names && options->names->count > 0;
    if (options->found && format == IO_STRING) named = true;
    else if (options->found && (format == IO_ABC || format == IO_CSV))
        TRY(ends_are_names(source, &named));
    if (content == IO_CONTENT_NPZ) status = read_npz(context, path, options, matrix);
    else if (content == IO_CONTENT_NPY)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: an array, not a sparse matrix; save CSR as .npz", path);
    else if (named && (format == IO_ABC || format == IO_CSV || format == IO_STRING))
        status = read_named(context, source, format, options, matrix);
    else if (format == IO_ABC || format == IO_CSV) status = read_edges(context, source, path, options, matrix);
    else if (format == IO_STRING)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: nodes with names, which the features have not; give the "
                         "features a column of names, or a list of them, nodes.txt", path);
    else status = read_graph(context, source, format, options, matrix);
done:
    io_source_close(source);
    if (status != SP_OK) sp_csr_free(context, matrix);
    if (status != SP_OK && options->found) io_names_free(context, options->found);
    return status;
}
