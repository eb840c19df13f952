/* What the parts of test_io share. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "io_shared.h"

io_read_options as(io_format format) { return (io_read_options){.format = format}; }

io_read_options lenient(io_format format) { return (io_read_options){.format = format, .lenient = true}; }

sp_status read_spread(sp_context *context, const void *bytes, size_t count, const io_read_options *options,
                      size_t block, io_graph *graph)
{
    sp_status status = io_read_memory(context, "in", bytes, count, options, block, graph);
    return status == SP_OK ? io_graph_spread(context, graph) : status;
}

io_graph read_bytes(sp_context *context, const void *bytes, size_t count, io_read_options options)
{
    io_graph graph;
    ck_ok(context, read_spread(context, bytes, count, &options, 0, &graph));
    return graph;
}

io_graph read_text(sp_context *context, const char *text, io_read_options options)
{
    return read_bytes(context, text, strlen(text), options);
}

const char *arcs_of(const io_graph *graph)
{
    static char text[4096];
    size_t at = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < graph->arcs; i++) {
        int64_t ends[2] = {graph->tails[i], graph->heads[i]};
        for (int k = 0; k < 2; k++) {
            if (graph->names.count)
                at += (size_t)snprintf(text + at, sizeof text - at, "%.*s",
                                       (int)io_name_length(&graph->names, ends[k]),
                                       io_name(&graph->names, ends[k]));
            else
                at += (size_t)snprintf(text + at, sizeof text - at, "%lld",
                                       (long long)(graph->ids ? graph->ids[ends[k]] : ends[k]));
            at += (size_t)snprintf(text + at, sizeof text - at, k ? ":" : ">");
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "%.9g%s", io_arc_weight(graph, i),
                               i + 1 < graph->arcs ? " " : "");
        ck_assert_uint_lt(at, sizeof text - 100);
    }
    return text;
}

void expect_arcs(const char *text, io_read_options options, const char *arcs, int64_t nodes)
{
    sp_context *context = test_context(0, 2);
    io_graph graph = read_text(context, text, options);
    ck_assert_str_eq(arcs_of(&graph), arcs);
    ck_assert_int_eq(graph.nodes, nodes);
    end_graph(context, &graph);
}

void expect_failure(const void *bytes, size_t count, io_read_options options, const char *beginning)
{
    sp_context *context = test_context(0, 2);
    io_graph graph;
    sp_status status = io_read_memory(context, "in", bytes, count, &options, 0, &graph);
    ck_assert_msg(status != SP_OK, "accepted: %.100s", (const char *)bytes);
    ck_assert_msg(strncmp(sp_last_error(context), beginning, strlen(beginning)) == 0, "\"%s\" instead of \"%s...\"",
                  sp_last_error(context), beginning);
    ck_assert_ptr_null(graph.tails);
    ck_assert_int_eq(graph.nodes, 0);
    sp_context_destroy(context);
}

void expect_error(const char *text, io_read_options options, const char *beginning)
{
    expect_failure(text, strlen(text), options, beginning);
}

size_t gzip(const void *data, size_t count, void *into, size_t room)
{
    z_stream stream = {0};
    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)count;
    stream.next_out = into;
    stream.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return room - stream.avail_out;
}

char *random_triples(test_random *random, int64_t lines, int64_t labels, size_t *count)
{
    char *text = malloc((size_t)lines * 64 + 1);
    size_t at = 0;
    for (int64_t i = 0; i < lines; i++) {
        const char *gap = test_below(random, 2) ? "\t" : " ";
        at += (size_t)sprintf(text + at, "n%0*lld%s%sn%lld%s%.*g\n%s", (int)(labels % 20),
                              (long long)test_below(random, labels), gap, test_below(random, 5) ? "" : gap,
                              (long long)test_below(random, labels), gap, (int)(1 + test_below(random, 12)),
                              test_unit(random) * 100, i % 97 ? "" : "\n");
    }
    *count = at;
    return text;
}

void same_graphs(const io_graph *a, const io_graph *b)
{
    ck_assert_int_eq(a->nodes, b->nodes);
    ck_assert_int_eq(a->arcs, b->arcs);
    ck_assert_int_eq(a->lines, b->lines);
    ck_assert_int_eq(a->bytes, b->bytes);
    ck_assert_int_eq(a->names.count, b->names.count);
    for (int64_t i = 0; i < a->names.count; i++)
        test_expect(io_name_length(&a->names, i) == io_name_length(&b->names, i) &&
                        memcmp(io_name(&a->names, i), io_name(&b->names, i), io_name_length(&a->names, i)) == 0,
                    "name %lld", (long long)i);
    if (a->arcs == 0) return;
    ck_assert_int_eq(memcmp(a->tails, b->tails, (size_t)a->arcs * sizeof *a->tails), 0);
    ck_assert_int_eq(memcmp(a->heads, b->heads, (size_t)a->arcs * sizeof *a->heads), 0);
    ck_assert(!a->weights == !b->weights && a->values == b->values);
    const size_t size = a->values == SP_F32 ? sizeof(float) : sizeof(double);
    if (a->weights) ck_assert_int_eq(memcmp(a->weights, b->weights, (size_t)a->arcs * size), 0);
}

void expect_unused(const char *text, io_read_options options, const char *columns)
{
    sp_context *context = test_context(0, 1);
    io_graph graph = read_text(context, text, options);
    char list[IO_LISTED];
    ck_assert_str_eq(graph.unused.count > 0 ? io_names_list(&graph.unused, list) : "", columns);
    end_graph(context, &graph);
}
