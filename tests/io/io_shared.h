/* What the parts of test_io share. */
#ifndef TESTS_IO_SHARED_H
#define TESTS_IO_SHARED_H

#include "files.h"
#include "graphs.h"
#include "arrays/npy.h"
#include "graphs/formats.h"
#include "nodes/nodes.h"
#include "text/check.h"
#include "text/labels.h"
#include "text/write.h"

static const io_read_options automatic = {.format = IO_AUTO};

io_read_options as(io_format format);
io_read_options lenient(io_format format);
/* Reads in blocks of so many bytes, each arc with its tail. */
sp_status read_spread(sp_context *context, const void *bytes, size_t count, const io_read_options *options,
                      size_t block, io_graph *graph);
io_graph read_bytes(sp_context *context, const void *bytes, size_t count, io_read_options options);
io_graph read_text(sp_context *context, const char *text, io_read_options options);
/* The graph as text: "tail>head:weight ..." by label where there are labels, by id otherwise. */
const char *arcs_of(const io_graph *graph);
void expect_arcs(const char *text, io_read_options options, const char *arcs, int64_t nodes);
/* `columns`: those that are named as unused. */
void expect_unused(const char *text, io_read_options options, const char *columns);
void expect_failure(const void *bytes, size_t count, io_read_options options, const char *beginning);
void expect_error(const char *text, io_read_options options, const char *beginning);

#define HEADER "(mclheader\nmcltype matrix\ndimensions 3x3\n)\n"

typedef struct binary {
    char data[400];
    size_t count;
} binary;

#define SYMMETRIC(kind, size) "%%MatrixMarket matrix coordinate " kind "\n" size "\n"

size_t gzip(const void *data, size_t count, void *into, size_t room);
/* A random file of label triples; every 97th line is followed by a blank one. */
char *random_triples(test_random *random, int64_t lines, int64_t labels, size_t *count);
void same_graphs(const io_graph *a, const io_graph *b);

static const char four_names[] = "a b\nc d\n";
static const char four_numbers[] = "%%MatrixMarket matrix coordinate pattern general\n4 4 0\n";

/* The tables of the parts. */
extern const test_entry native_tests[], mtx_tests[], csv_tests[], dimacs_tests[], graphml_tests[], compressed_tests[],
    ahead_tests[], parallel_tests[],
    memory_tests[], writing_tests[], labels_tests[], output_tests[], failing_tests[];

#endif
