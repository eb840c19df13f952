/* What the fuzz targets share: one reader per target, on memory, with a cap on what it may allocate.
 *
 * The first byte of the input chooses lenient reading, threads and block size; the rest is the file. Property: what
 * is accepted is consistent (sizes, ranges, finite weights), and one thread with large blocks agrees with it.
 */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arrays/npy.h"
#include "bytes/source.h"
#include "graphs/formats.h"
#include "nodes/nodes.h"
#include "text/check.h"

enum { MOST_BYTES = 256 << 20, MOST_UNPACKED = 1 << 14, HEAD_BYTES = 16 };

static size_t fuzz_live;

/* A block remembers its size in the bytes before it. */
static inline void *fuzz_allocate(void *user, size_t bytes)
{
    (void)user;
    if (bytes > MOST_BYTES) return NULL;
    char *block = NULL;
#pragma omp critical(fuzz_heap)
    if (fuzz_live + bytes <= MOST_BYTES) block = malloc(bytes + HEAD_BYTES);
    if (!block) return NULL;
    memcpy(block, &bytes, sizeof bytes);
#pragma omp critical(fuzz_heap)
    fuzz_live += bytes;
    return block + HEAD_BYTES;
}

static inline void fuzz_release(void *user, void *pointer)
{
    (void)user;
    if (!pointer) return;
    size_t bytes;
    char *block = (char *)pointer - HEAD_BYTES;
    memcpy(&bytes, block, sizeof bytes);
#pragma omp critical(fuzz_heap)
    fuzz_live -= bytes;
    free(block);
}

/* Ends the program where a property does not hold. A macro, which knows where it stands. */
#define fuzz_require(...) fuzz_check(__VA_ARGS__, __FILE__, __LINE__, #__VA_ARGS__)
static inline void fuzz_check(bool holds, const char *file, int line, const char *what)
{
    if (holds) return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

/* What a target writes is read at once, so it does not wait for the disk. */
int fsync(int file);
int fsync(int file)
{
    (void)file;
    return 0;
}

/* Where a target writes a file for a moment: in memory if the system has a folder for that, as a disk is slow to make
 * new files. */
static inline void fuzz_file(char *path, size_t size, const char *name)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, size, "%s/fuzz_%s.%ld", folder, name, (long)getpid());
}

static inline sp_context *fuzz_context(int threads)
{
    const sp_allocator allocator = {.allocate = fuzz_allocate, .release = fuzz_release};
    const sp_context_options options = {.device = "cpu", .threads = threads, .allocator = &allocator};
    sp_context *context;
    fuzz_require(sp_context_create(&options, &context) == SP_OK);
    return context;
}

/* Whether there is a first byte, and the bytes behind it, unpacked if they are gzip or zstd, are few enough to be read
 * in time: 4 KB of zstd can stand for 128 MB, which 7 bytes at a time take minutes. */
static inline bool fuzz_is_short(const uint8_t *data, size_t size)
{
    static char unpacked[MOST_UNPACKED + 1];
    if (size == 0) return false;
    const uint8_t *bytes = data + 1;
    size_t got = --size;
    if (size > 0 && (bytes[0] == 0x1f || bytes[0] == 0x28)) {
        sp_context *context = fuzz_context(1);
        io_source *source;
        fuzz_require(io_source_memory(context, "in", bytes, size, &source) == SP_OK);
        io_source_read(source, unpacked, sizeof unpacked, &got); /* up to where the data are damaged */
        io_source_close(source);
        sp_context_destroy(context);
    }
    return got <= MOST_UNPACKED;
}

static inline void fuzz_check_names(const io_names *names)
{
    if (names->count == 0) return;
    fuzz_require(io_name_begin(names, 0) == 0);
    for (int64_t i = 0; i < names->count; i++) {
        fuzz_require(io_name_begin(names, i) < io_name_begin(names, i + 1));
        fuzz_require(!memchr(io_name(names, i), '\n', io_name_length(names, i)));
    }
}

static inline void fuzz_check_graph(const io_graph *graph, const io_read_options *options)
{
    fuzz_require(graph->nodes >= 0 && graph->nodes <= INT32_MAX && graph->arcs >= 0);
    fuzz_require(graph->names.count == 0 || graph->names.count == graph->nodes);
    fuzz_require(options->lenient || (graph->negative == 0 && graph->odd_lines == 0));
    for (int64_t i = 0; i < graph->arcs; i++) {
        fuzz_require(graph->tails[i] >= 0 && graph->tails[i] < graph->nodes);
        fuzz_require(graph->heads[i] >= 0 && graph->heads[i] < graph->nodes);
        fuzz_require(isfinite(io_arc_weight(graph, i)) && (options->lenient || io_arc_weight(graph, i) >= 0));
    }
    for (int64_t i = 0; graph->ids && i < graph->nodes; i++)
        fuzz_require(graph->ids[i] >= 0 && graph->ids[i] <= INT32_MAX &&
                     (i == 0 || graph->ids[i - 1] < graph->ids[i]));
    fuzz_check_names(&graph->names);
}

static inline void fuzz_same(const io_graph *a, const io_graph *b)
{
    fuzz_require(a->nodes == b->nodes && a->arcs == b->arcs && a->lines == b->lines && a->odd_lines == b->odd_lines);
    size_t arcs = (size_t)a->arcs;
    if (arcs == 0) return;
    fuzz_require(memcmp(a->tails, b->tails, arcs * sizeof *a->tails) == 0);
    fuzz_require(memcmp(a->heads, b->heads, arcs * sizeof *a->heads) == 0);
    fuzz_require(!a->weights == !b->weights && a->values == b->values);
    const size_t size = a->values == SP_F32 ? sizeof(float) : sizeof(double);
    fuzz_require(!a->weights || memcmp(a->weights, b->weights, arcs * size) == 0);
}

/* The arcs as a matrix; of equal ones the heaviest counts. */
static inline void fuzz_matrix(sp_context *context, const io_graph *graph, bool undirected, sp_csr *matrix)
{
    const sp_coo arcs = {.rows = graph->nodes, .cols = graph->nodes, .count = graph->arcs, .row_indices = graph->tails,
                         .col_indices = graph->heads, .values = graph->weights, .value_type = graph->values};
    fuzz_require(sp_csr_from_coo(context, &arcs, SP_COMBINE_MAX, undirected, matrix) == SP_OK);
}

/* Whether the error is that compressed data are damaged or end too soon. */
static inline bool fuzz_is_damage(const char *error)
{
    return strstr(error, ": the gzip data ") || strstr(error, ": the zstd data ");
}

/* Reads the input twice, in small blocks and in one piece; both must agree, down to the error, but that in small
 * blocks the first part of a long line may be refused before the damage behind it is met. With `also`, an accepted
 * graph is handed on before it is freed. */
static inline int fuzz_read(const uint8_t *data, size_t size, io_read_options options,
                            void (*also)(sp_context *context, const io_graph *graph))
{
    if (!fuzz_is_short(data, size)) return 0;
    const int threads = data[0] & 2 ? 2 : 1;
    const size_t block = data[0] & 4 ? 7 : data[0] & 8 ? 64 : 0;
    options.lenient = data[0] & 1;
    sp_context *context = fuzz_context(threads), *alone = fuzz_context(1);
    io_graph graph, again;
    sp_status status = io_read_memory(context, "in", data + 1, size - 1, &options, block, &graph);
    sp_status expected = io_read_memory(alone, "in", data + 1, size - 1, &options, 0, &again);
    fuzz_require(status == expected);
    if (status == SP_OK) {
        fuzz_require(io_graph_spread(context, &graph) == SP_OK && io_graph_spread(alone, &again) == SP_OK);
        fuzz_check_graph(&graph, &options);
        fuzz_same(&graph, &again);
        if (also) also(context, &graph);
    } else {
        fuzz_require(strcmp(sp_last_error(context), sp_last_error(alone)) == 0 ||
                     fuzz_is_damage(sp_last_error(alone)));
        fuzz_require(graph.tails == NULL && graph.packed == NULL && graph.nodes == 0);
    }
    io_graph_free(context, &graph);
    io_graph_free(alone, &again);
    sp_context_destroy(context);
    sp_context_destroy(alone);
    fuzz_require(fuzz_live == 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
