/* Reading mcl's native matrix: what its two forms build. */
#ifndef IO_GRAPHS_NATIVE_H
#define IO_GRAPHS_NATIVE_H

#include "graphs/formats.h"

/* What both forms build. */
typedef struct native {
    sp_context *context;
    const io_read_options *options;
    const char *name;
    int64_t nodes;
    int64_t *ids; /* ascending; NULL: 0..nodes-1 */
    bool clustering;     /* rows are nodes, columns are clusters */
    int64_t columns;     /* as many as nodes, but in a clustering */
    int64_t *column_ids; /* of a clustering, as `ids`; in a graph they are the same */
    io_packed arcs;
    int64_t column_begin, weight_begin; /* first arc of the present column, and first weight */
    bool ascending;       /* its heads, so far */
    int64_t settle_at;    /* arcs at which it is sorted early */
    uint64_t *entries;    /* for sorting: a head above its place within the column */
    double *weights;      /* of the column, in that case; there only if it has any */
    int64_t entry_capacity, weight_capacity;
    int64_t negative, odd_lines, vast_line;
    int part, parts;     /* parts > 1: only the columns of one are read */
    int64_t size;        /* of the file, then */
} native;

/* The node, or the column, with this id, or -1. */
int64_t io_native_node(const native *from, int64_t id);
int64_t io_native_column(const native *from, int64_t id);
/* Sorts a domain; false if an id is repeated. */
bool io_native_sort_domain(int64_t *ids, int64_t count);
/* Takes the domains of rows and columns, NULL for 0..n-1. Those of a graph must be the same, and `rows` be their
 * size. */
sp_status io_native_set_domains(native *to, int64_t rows, int64_t cols, int64_t **row_ids, int64_t **col_ids);
void io_native_begin_column(native *to);
sp_status io_native_add(native *to, int32_t head, double value);
sp_status io_native_end_column(native *to, int32_t tail);
/* Hands all over to the graph. */
sp_status io_native_finish(native *from, int64_t lines, int64_t bytes, io_graph *graph);

sp_status io_native_read_text(native *to, io_source *source, io_graph *graph);
sp_status io_native_read_binary(native *to, io_source *source, io_graph *graph);

#endif
