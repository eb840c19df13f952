/* METIS graphs: the header, what nodes have beside neighbours, and the check of edges. */
#ifndef IO_GRAPHS_METIS_H
#define IO_GRAPHS_METIS_H

#include "lines/lines.h"

/* The most weights that a node may have, and the largest weight: whole numbers up to it are exact in f64. */
enum { IO_MOST_CONSTRAINTS = 1 << 10 };
#define IO_MOST_NODE_WEIGHT (INT64_C(1) << 53)

/* METIS: what is read beside arcs. */
struct io_metis {
    int64_t header_line;
    bool sized;
    int constraints;
    int64_t count; /* sizes and weights of nodes read */
    int64_t most;  /* those of all nodes */
    int64_t *weights, *sizes;
    int64_t weight_capacity, size_capacity;
    io_gaps comments; /* before lines of nodes */
};


/* Parses the first line of a METIS graph; false if it is something else. */
typedef struct io_metis_head {
    int64_t nodes, edges;
    bool sized, valued; /* nodes have sizes, edges have weights */
    int constraints;    /* weights a node */
    bool stray;         /* a number of constraints, but no weights of nodes */
} io_metis_head;
bool io_metis_parse_header(const char *line, const char *end, io_metis_head *head);
/* Whether the beginning of a file, or all of it, is a METIS graph; see metis_detect.c. */
bool io_looks_like_metis(const char *bytes, size_t count, bool whole);
/* Of an edge, low < high. */
uint64_t io_metis_hash(int32_t low, int32_t high, double weight);
/* metis_check.c, for io_format_state. */
void io_metis_add_up(io_slice *slice);
sp_status io_metis_recheck(sp_context *context, const char *name, const io_format_state *state, io_packed *arcs,
                           int64_t complete, int64_t before);
/* Whether both lines of each edge say the same, once. */
sp_status io_metis_check(sp_context *context, const char *name, const io_format_state *state,
                         const io_line_counts *counts, io_packed *arcs);

#endif
