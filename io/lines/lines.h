/* The parallel reader of lines: what parsers of a format get and call. */
#ifndef IO_LINES_LINES_H
#define IO_LINES_LINES_H

#include "bytes/message.h"
#include "bytes/source.h"
#include "lines/arcs.h"
#include "lines/gaps.h"
#include "text/labels.h"
#include "text/number.h"

struct io_csv;                            /* see graphs/csv.h */
typedef struct io_metis io_metis;         /* see graphs/metis.h */
typedef struct io_triangles io_triangles; /* see graphs/mtx.c */

/* What a parser needs beside the line itself. */
typedef struct io_slice io_slice;
typedef struct io_format_state {
    const io_read_options *options;
    /* Fast path: parses consecutive lines of the common form from `line` on. Returns the first other line or the end of
     * the slice; NULL on failure. NULL if the format has no such path. */
    const char *(*scanner)(io_slice *slice, const char *line);
    bool many_arcs; /* a line has: they are packed, and long lines come in parts */
    bool long_lines; /* lines are of any length, and in one part */
    /* Takes what a slice has beside arcs; slices come in file order, a malformed one last. METIS: also checks which
     * nodes its lines are. `line`: lines before the slice. */
    sp_status (*join)(sp_context *context, const char *name, io_slice *slice, int64_t line);
    /* METIS: adds up a slice's arcs in slice->edges and stores its numbers, now that its nodes are known. */
    void (*add_up)(io_slice *slice);
    /* METIS: once a line is refused, or reading fails, looks for a line before that is wrong, among nodes whose lines
     * have all been read up to `complete`. The arcs are of no use afterwards. */
    sp_status (*recheck)(sp_context *context, const char *name, const struct io_format_state *state, io_packed *arcs,
                         int64_t complete, int64_t before);
    int64_t rows, cols;   /* Matrix Market: bounds of indices */
    int score_column;     /* STRING: 0-based */
    const struct io_csv *csv; /* tables: their columns */
    bool pattern, integer, skew; /* Matrix Market */
    bool weighted;        /* METIS: neighbours have weights */
    int node_numbers;     /* METIS: sizes and weights before the neighbours */
    io_metis *metis;      /* METIS: where they go */
    io_triangles *triangles; /* Matrix Market: symmetric in either way */
} io_format_state;

/* A label in a line. */
typedef struct io_label {
    const char *text;
    size_t length;
    io_key key; /* of a short one; all zero otherwise */
    uint32_t hash;
} io_label;

/* A pair of labels that waits for its ids. */
typedef struct io_pair {
    io_label tail, head;
    double weight;
    bool keep;
    bool same_tail; /* as the pair before */
} io_pair;

enum { IO_PAIRS = 64 }; /* looked up together, so that their cache misses overlap */

/* The state of a line that is read in parts. */
typedef struct io_open_line {
    int32_t tail;
    bool comment; /* nothing else is left of it */
    bool odd;
    bool node;      /* METIS: it has been counted as one */
    int skip;       /* METIS: numbers of the node still to come */
    int32_t weighs; /* METIS: the neighbour whose weight comes next, -1 if none does */
} io_open_line;

/* METIS: sums over arcs that stand in the lines of both their nodes. */
typedef struct io_edge_sums {
    uint64_t hash; /* of those that ascend, less those that descend: 0 in the end */
    int64_t ahead; /* the same in bits of the higher node: never below 0, as the lower node's line comes first */
    int64_t loops;
    int64_t disorder; /* neighbours not above the one before them */
} io_edge_sums;

/* What slices count, summed up. */
typedef struct io_line_counts {
    int64_t entries, node_lines, used_lines;
    io_edge_sums edges;
    int64_t complete; /* nodes whose lines have been read to the end */
    bool stopped; /* early, as edges.ahead is below 0 */
} io_line_counts;

/* A part of a block, parsed by one thread. Labels that earlier blocks brought have ids >= 0; those that are new
 * here get ~k, k being their number in `fresh`, until the slices are joined in file order. */
struct io_slice {
    sp_context *context;
    const io_format_state *state;
    const io_labels *known;
    sp_value_type values;
    double scan_most;    /* scanners leave larger weights to the parser */
    double plain_weight; /* of an arc without a weight */
    io_labels fresh;
    io_arcs arcs; /* weights are f64, rounded to `values` */
    char *begin, *end;
    bool continues, goes_on; /* its first line has begun before; it is one line, and that does not end */
    bool cut_short;          /* reading has ended within its last line, which is to be refused */
    io_open_line open;       /* the line so far: before parsing the first line's, afterwards the last line's */
    int again;               /* METIS: its first node has been counted before */
    io_pair pairs[IO_PAIRS];
    int pair_count;
    int32_t last_tail;
    int32_t *map; /* ids of the fresh labels */
    int64_t map_capacity;
    bool differ;   /* its arcs have more than one weight */
    int64_t place; /* of its first arc among all */
    int64_t runs, run_place; /* of arcs with the same tail; of the first of them */
    int64_t own_weights, weight_place; /* arcs with another weight than those without one have; of the first */
    io_edge_sums edges;
    int64_t lines, odd_lines, negative;
    int64_t vast_line; /* as in io_graph, counted within the slice */
    int64_t entries; /* Matrix Market and METIS: counted by their parsers */
    int64_t node_lines, used_lines; /* METIS: lines that are nodes, and those up to the last that is not empty */
    int64_t first_node; /* of its node lines: added to its tails */
    bool bare;          /* METIS: an empty line, where nodes have numbers */
    int64_t *numbers;   /* METIS: sizes and weights of its nodes */
    int64_t number_count, number_capacity, number_place;
    io_gaps gaps;       /* METIS: comments before its nodes; symmetric Matrix Market: lines without an arc */
    int64_t above, below; /* symmetric Matrix Market: entries on either side of the diagonal */
    bool odd; /* this line */
    sp_status status;
    char message[IO_MESSAGE]; /* of a malformed line; its number is `lines` */
    const char *refused_end;  /* where the text ends that is wrong */
};

/* Parses line..end (without its newline; *end is readable). Returns false after io_slice_fail or when memory ends
 * (slice->status says so). */
typedef bool (*io_line_parser)(io_slice *slice, char *line, char *end);

/* Whether the line has begun in the block before; parsers of lines with many arcs ask. */
static inline bool io_line_continues(const io_slice *slice, const char *line)
{
    return slice->continues && line == slice->begin;
}

/* Refuses the line: what is wrong, the text that is wrong, what would be right. Always false. */
bool io_slice_fail(io_slice *slice, const char *what, const char *token, const char *token_end, const char *remedy);
/* The remedy that names --lenient, where the tool has that. */
static inline const char *io_slice_remedy(const io_slice *slice, const char *strict, const char *lenient)
{
    return slice->state->options->offers_lenient ? lenient : strict;
}
/* What becomes of negative weights. */
static inline const char *io_sign_remedy(const io_read_options *options)
{
    return options->offers_lenient ? "weights are similarities, 0 or above; -tf 'gt(0)' drops such arcs"
                                   : "weights are similarities, 0 or above";
}
/* Adds both labels, in this order, and, with `keep`, the arc between them. The labels must stay where they are until
 * the slice ends. A parser uses either this or the two calls below. */
bool io_slice_pair(io_slice *slice, const char *tail, const char *tail_end, const char *head, const char *head_end,
                   double weight, bool keep);
bool io_slice_label(io_slice *slice, const char *label, const char *label_end, int32_t *id);
bool io_slice_arc(io_slice *slice, int32_t tail, int32_t head, double weight);
/* The same, if there is room for the arc. */
static inline void io_slice_put(io_slice *slice, int32_t tail, int32_t head, double weight)
{
    io_arcs *arcs = &slice->arcs;
    double *weights = arcs->weights;
    arcs->tails[arcs->count] = tail;
    arcs->heads[arcs->count] = head;
    weights[arcs->count] = weight;
    slice->differ |= weight != weights[0];
    arcs->count++;
}
/* The number in a weight token, 1 if that is empty. Lenient reading follows mcl: what a number begins with counts,
 * anything else is 1. */
bool io_slice_number(io_slice *slice, const char *token, const char *token_end, double *number);
/* The weight that the token's number stands for: transformed, checked, rounded. *keep is false for a weight of 0, which
 * makes no arc. */
bool io_slice_settle(io_slice *slice, const char *token, const char *token_end, double number, double *weight,
                     bool *keep);
static inline bool io_slice_weight(io_slice *slice, const char *token, const char *token_end, double *weight,
                                   bool *keep)
{
    double number;
    return io_slice_number(slice, token, token_end, &number) &&
           io_slice_settle(slice, token, token_end, number, weight, keep);
}
/* Keeps the line of the first number that io_is_vast. */
void io_slice_note_vast(io_slice *slice, const char *token, const char *token_end, double number);

/* `reader_block`: bytes a block at most, 0 for the default; tests use small ones. `first_line` counts lines that
 * were taken before. Fills arcs, labels and counters of *graph, and *counts (may be NULL). */
sp_status io_read_lines(sp_context *context, io_source *source, const io_format_state *state, io_line_parser parser,
                        size_t reader_block, int64_t first_line, io_line_counts *counts, io_graph *graph);

#endif
