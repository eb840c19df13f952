/* The formats of graphs: who reads and writes each, and how they are recognised. */
#ifndef IO_GRAPHS_FORMATS_H
#define IO_GRAPHS_FORMATS_H

#include "bytes/source.h"
#include "lines/lines.h"
#include "lines/scan.h"

bool io_line_abc(io_slice *slice, char *line, char *end);
const char *io_scan_abc(io_slice *slice, const char *line);
bool io_line_csv(io_slice *slice, char *line, char *end);
bool io_line_sif(io_slice *slice, char *line, char *end);
bool io_line_etc(io_slice *slice, char *line, char *end);
/* Whether the first line of text..end that is not a comment is a hit of a BLAST table. */
bool io_begins_with_hit(const char *text, const char *end);
bool io_line_blast(io_slice *slice, char *line, char *end);

/* The format that io_read_graph assumes: the one that the first bytes identify; else IO_METIS if the name has its
 * ending, or if the content fits and the name does not have the ending of a list; IO_CSV if its heading shows it, or
 * the name and its first line; else IO_ABC. */
sp_status io_detect_format(io_source *source, io_format *format);
/* Refuses a header that claims too many nodes for a file of `bytes`. Nodes need no line of their own, so a million
 * nodes are always accepted, and eight for each byte. */
sp_status io_check_nodes(sp_context *context, const char *name, int64_t nodes, int64_t bytes);
extern const unsigned char io_binary_cookie[4]; /* what mcl's binary matrices begin with */
/* With `columns` the matrix is a clustering: its rows are the graph's nodes, and *columns gets the number of its
 * columns, which are the arcs' tails. */
sp_status io_read_native(sp_context *context, io_source *source, const io_read_options *options, int64_t *columns,
                         io_graph *graph);
/* The columns of a part of such a file as arcs. If it is not sound, io_part says so. */
sp_status io_read_native_part(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph);
sp_status io_read_npz_graph(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph);
sp_status io_read_graphml(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph);
sp_status io_read_mtx(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                      io_graph *graph);
/* A part of such a file, a graph with the figures of io_part; its first part has the header. `number`: as for
 * io_source_count_lines. */
sp_status io_read_mtx_part(sp_context *context, io_source *source, const io_read_options *options, bool number,
                           io_graph *graph);
bool io_looks_like_mtx(const char *bytes, size_t count);
/* A matrix of any shape and signs: entries (row: head, column: tail); in the array form all numbers, column by column
 * (tail: the index of the number). */
typedef struct io_mtx_numbers {
    io_graph graph;
    int64_t rows, cols;
    bool array;
} io_mtx_numbers;
sp_status io_read_mtx_numbers(sp_context *context, io_source *source, const volatile int *interrupt,
                              io_mtx_numbers *numbers);
sp_status io_read_string(sp_context *context, io_source *source, const io_read_options *options,
                         size_t reader_block, io_graph *graph);
sp_status io_read_metis(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                        io_graph *graph);
bool io_looks_like_dimacs(const char *bytes, size_t count);
sp_status io_read_dimacs(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                         io_graph *graph);
sp_status io_read_csv(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                      io_graph *graph);
enum { IO_CSR_COOKIE = 8 };
extern const unsigned char io_csr_cookie[IO_CSR_COOKIE]; /* what our binary matrices begin with */
sp_status io_read_csr(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph);
/* Reads this process's share of the rows of an uncompressed file as arcs. Nothing of `source` has been read yet. */
sp_status io_read_csr_part(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph);
/* Reads ID<TAB>LABEL lines as the names of graph's nodes. */
sp_status io_read_tab(sp_context *context, io_source *source, io_graph *graph);
sp_status io_put_graphml(sp_context *context, io_output *output, const sp_csr *matrix,
                         const io_write_options *options);
/* A matrix in our binary form. */
void io_put_csr(io_output *output, const sp_csr *matrix, bool undirected, const io_names *names);
/* io_write_native_matrix in text, into an output that is open; digits 0: as many as give each value back. `first`: the
 * number of the first column, of a matrix that comes by blocks. */
sp_status io_put_native_matrix(sp_context *context, io_output *output, const sp_csr *columns, const int64_t *ids,
                               const double *numbers, int digits, int64_t first, const char *command_line);

/* io_read_graph on an open source (not closed here). */
sp_status io_read_source(sp_context *context, io_source *source, const io_read_options *options,
                         size_t reader_block, io_graph *graph);
/* io_read_graph on bytes in memory, called NAME in messages. */
sp_status io_read_memory(sp_context *context, const char *name, const void *bytes, size_t count,
                         const io_read_options *options, size_t reader_block, io_graph *graph);

#endif
