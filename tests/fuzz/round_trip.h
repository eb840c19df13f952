/* What a reader has accepted is written and read again: the same nodes, by their names, and the same edges. */
#ifndef FUZZ_ROUND_TRIP_H
#define FUZZ_ROUND_TRIP_H

#include <stdio.h>
#include <unistd.h>

#include "base/value.h"
#include "target.h"

enum { MOST_NODES = 100000 }; /* more are slow, and nothing new */

static const io_names *sorted_names;

static inline int compare_bytes(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static inline int compare_nodes(const void *a, const void *b)
{
    const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    return compare_bytes(io_name(sorted_names, i), io_name_length(sorted_names, i), io_name(sorted_names, j),
                         io_name_length(sorted_names, j));
}

/* The node with this name in `order`, which sorts them; the names of all nodes differ. */
static inline int32_t find_node(const io_names *names, const int32_t *order, const char *name, size_t length)
{
    int64_t low = 0, high = names->count;
    int32_t found = -1;
    while (low < high && found < 0) {
        const int64_t middle = (low + high) / 2;
        const int32_t node = order[middle];
        const int side = compare_bytes(io_name(names, node), io_name_length(names, node), name, length);
        if (side == 0) found = node;
        else if (side < 0) low = middle + 1;
        else high = middle;
    }
    fuzz_require(found >= 0);
    return found;
}

/* node[i]: which node of `graph` the node i of `again` is. Without names in `graph` their numbers are written. */
static inline int32_t *match_nodes(sp_context *context, const io_graph *graph, const io_graph *again)
{
    int32_t *node, *order;
    fuzz_require(sp_alloc(context, again->nodes + 1, sizeof *node, (void **)&node) == SP_OK);
    fuzz_require(sp_alloc(context, graph->nodes + 1, sizeof *order, (void **)&order) == SP_OK);
    for (int64_t i = 0; i < graph->names.count; i++) order[i] = (int32_t)i;
    sorted_names = &graph->names;
    if (graph->names.count) qsort(order, (size_t)graph->names.count, sizeof *order, compare_nodes);
    for (int64_t i = 0; i < again->nodes; i++)
        node[i] = again->names.count == 0   ? (int32_t)i
                  : graph->names.count == 0 ? atoi(io_name(&again->names, i))
                                            : find_node(&graph->names, order, io_name(&again->names, i),
                                                        io_name_length(&again->names, i));
    sp_free(context, order);
    return node;
}

/* Whether the matrix has this entry with this value. */
static inline bool has_entry(const sp_csr *m, int32_t row, int32_t col, double value)
{
    int64_t low = m->row_offsets[row], high = m->row_offsets[row + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (m->col_indices[middle] == col) return entry_value(m, middle) == value;
        if (m->col_indices[middle] < col) low = middle + 1;
        else high = middle;
    }
    return false;
}

static inline int64_t count_written(const sp_csr *m, bool undirected)
{
    int64_t upper = 0;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t e = m->row_offsets[i]; e < m->row_offsets[i + 1]; e++) upper += m->col_indices[e] >= i;
    return undirected ? upper : m->nnz;
}

/* Whether the file would begin with a name that may look like the beginning of another kind of file: UTF-16, a byte
 * order mark, compressed data (that of zstd begins with a bracket), an archive. */
static inline bool begins_otherwise(const io_names *names, const sp_csr *m, bool undirected)
{
    int64_t row = 0;
    while (row < m->rows && (m->row_offsets[row] == m->row_offsets[row + 1] ||
                             (undirected && m->col_indices[m->row_offsets[row + 1] - 1] < row))) row++;
    if (names->count == 0 || row == m->rows) return false;
    const char *name = io_name(names, row);
    return *name < ' ' || *name > '~' || *name == '(' || strncmp(name, "PK", 2) == 0;
}

/* The bytes of a file; the caller frees them. */
static inline char *fuzz_file_bytes(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    fuzz_require(file && fseek(file, 0, SEEK_END) == 0);
    *size = (size_t)ftell(file);
    char *bytes = malloc(*size + 1);
    rewind(file);
    fuzz_require(bytes && fread(bytes, 1, *size, file) == *size && fclose(file) == 0);
    return bytes;
}

static inline sp_status read_back(sp_context *context, const char *path, const io_read_options *reading,
                                  io_graph *again)
{
    size_t size;
    char *bytes = fuzz_file_bytes(path, &size);
    const sp_status status = io_read_memory(context, "again", bytes, size, reading, 0, again);
    free(bytes);
    return status;
}

/* Writes the matrix and reads it again. The edges are as many, at different places, and each is one of the matrix. The
 * row of a Matrix Market entry is where an edge begins when it is written, and where it ends when it is read. */
static inline void write_and_read_as(sp_context *context, const io_graph *graph, const sp_csr *matrix,
                                     io_format format, bool undirected)
{
    const bool numbered = format == IO_MTX || format == IO_DIMACS;
    const bool once = undirected && format != IO_DIMACS; /* whose arcs are in both directions */
    char path[64];
    io_graph again;
    sp_csr copy;
    const io_write_options writing = {.format = format, .undirected = undirected, .names = &graph->names};
    const io_read_options reading = {.format = format, .any_sign = true, .values = graph->values};
    if (begins_otherwise(&graph->names, matrix, undirected)) return;
    fuzz_file(path, sizeof path, "round");
    if (io_write_graph(context, path, matrix, &writing) != SP_OK) {
        fuzz_require(!numbered && graph->names.count > 0); /* names that the format cannot hold */
        return;
    }
    const sp_status status = read_back(context, path, &reading, &again);
    if (status != SP_OK) fprintf(stderr, "%s\n", sp_last_error(context));
    fuzz_require(status == SP_OK);
    unlink(path);
    fuzz_require(io_graph_spread(context, &again) == SP_OK);
    fuzz_require(!numbered || (again.nodes == graph->nodes && again.symmetric == once));
    fuzz_require(again.arcs == count_written(matrix, once));
    fuzz_matrix(context, &again, false, &copy);
    fuzz_require(copy.nnz == again.arcs);
    int32_t *node = match_nodes(context, graph, &again);
    const bool turned = format == IO_MTX || format == IO_NPZ;
    const int32_t *rows = turned ? again.heads : again.tails, *cols = turned ? again.tails : again.heads;
    for (int64_t e = 0; e < again.arcs; e++)
        fuzz_require(has_entry(matrix, node[rows[e]], node[cols[e]], io_arc_weight(&again, e)));
    sp_free(context, node);
    sp_csr_free(context, &copy);
    io_graph_free(context, &again);
}

/* In both directions apart and, where an edge counts in both, once; archives of scipy have no undirected graphs. */
static inline void fuzz_round_trip(sp_context *context, const io_graph *graph, io_format format)
{
    if (graph->nodes > MOST_NODES) return;
    for (int undirected = 0; undirected < (format == IO_NPZ ? 1 : 2); undirected++) {
        sp_csr matrix;
        fuzz_matrix(context, graph, undirected, &matrix);
        write_and_read_as(context, graph, &matrix, format, undirected);
        sp_csr_free(context, &matrix);
    }
}

#endif
