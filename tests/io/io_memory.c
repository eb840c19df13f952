/* test_io: how much memory readers take. */
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

/* What takes the most memory for its bytes: labels that never repeat, arcs written in a few bytes, weights here and
 * there. */
typedef struct shape {
    const char *head, *tail;
    io_format format;
    int new_labels, known_labels; /* a line, of four bytes and of one */
    int weighted;                 /* every so many'th line ends with a weight */
    const char *end;              /* of a line, before that */
    bool numbers;                 /* the known labels are digits */
    bool rows;                    /* a line's ascend, as the lines do */
} shape;

#define NATIVE_HEAD(size) "(mclheader\nmcltype matrix\ndimensions " size "x" size "\n)\n(mclmatrix\nbegin\n"

static const shape shapes[] = {
    {.format = IO_ABC, .new_labels = 2},
    {.format = IO_ABC, .new_labels = 2, .weighted = 50},
    {.format = IO_ABC, .new_labels = 2, .weighted = 1},
    {.format = IO_ABC, .new_labels = 1, .known_labels = 1},
    {.format = IO_ABC, .known_labels = 2, .weighted = 50},
    {.format = IO_ETC, .new_labels = 20},
    {.format = IO_ETC, .known_labels = 20},
    {.format = IO_ETC, .known_labels = 2},
    {.format = IO_ETC, .known_labels = 2, .weighted = 50, .end = ":"},
    {.format = IO_ETC, .known_labels = 2, .weighted = 1, .end = ":"},
    {.format = IO_ETC, .known_labels = 20, .weighted = 50, .end = ":"},
    {.format = IO_ETC, .known_labels = 4 << 20}, /* one line */
    {.format = IO_SIF, .known_labels = 1 << 20},
    {.format = IO_SIF, .known_labels = 5000, .weighted = 2, .end = ":"},
    {.format = IO_SIF, .new_labels = 1 << 20},
    {.format = IO_METIS},
    {.head = NATIVE_HEAD("10"), .tail = ")\n", .format = IO_NATIVE, .known_labels = 11, .numbers = true, .end = "$ "},
    {.head = NATIVE_HEAD("10") "0 ", .tail = "$\n)\n", .format = IO_NATIVE, .known_labels = 11, .numbers = true},
    {.head = NATIVE_HEAD("10"), .tail = ")\n", .format = IO_NATIVE, .known_labels = 3, .numbers = true, .end = "$ "},
    {.head = NATIVE_HEAD("10"), .tail = ")\n", .format = IO_NATIVE, .known_labels = 2, .numbers = true, .end = "$ "},
    {.head = NATIVE_HEAD("10"), .tail = ")\n", .format = IO_NATIVE, .known_labels = 9, .numbers = true, .rows = true,
     .weighted = 50, .end = ":"},
    {.head = NATIVE_HEAD("8000000"), .tail = ")\n", .format = IO_NATIVE, .rows = true, .weighted = 1000, .end = ":"},
};

/* Nodes 1 to 9 are neighbours of all others: those have short lines. */
static char *write_metis_lines(size_t size, size_t *count)
{
    enum { HUBS = 9, LINE = 18, NUMBER = 8 };
    const size_t others = size / (LINE + HUBS * NUMBER);
    char *text = malloc(size + 100);
    size_t at = (size_t)sprintf(text, "%zu %zu\n", HUBS + others, HUBS * others);
    for (int hub = 0; hub < HUBS; hub++) {
        for (size_t i = 1; i <= others; i++) at += (size_t)sprintf(text + at, "%zu ", HUBS + i);
        text[at - 1] = '\n';
    }
    for (size_t i = 0; i < others; i++, at += LINE) memcpy(text + at, "1 2 3 4 5 6 7 8 9\n", LINE);
    *count = at;
    return text;
}

static char *write_shape(const shape *s, size_t size, size_t *count)
{
    enum { SYMBOLS = 90, FIRST = '%', LABELS = SYMBOLS * SYMBOLS * SYMBOLS * SYMBOLS };
    const int in_line = s->new_labels + s->known_labels;
    char *text = malloc(size + (size_t)in_line * 5 + 1000);
    size_t at = (size_t)sprintf(text, "%s", s->head ? s->head : "");
    int64_t label = 0;
    for (int64_t line = 0; at < size; line++) {
        for (int i = 0; i < s->new_labels; i++) {
            label = (label + 7654321) % LABELS;
            for (int64_t k = 0, left = label; k < 4; k++, left /= SYMBOLS)
                text[at++] = (char)(FIRST + left % SYMBOLS);
            text[at++] = ' ';
        }
        for (int i = 0; i < s->known_labels; i++) {
            const int64_t number = s->rows && i ? i : i ? i - 1 : line % 10;
            text[at++] = (char)(s->numbers ? '0' + number % 10 : ';' + number % 60);
            text[at++] = ' ';
        }
        if (in_line == 0) at += (size_t)sprintf(text + at, "%lld %lld ", (long long)line, (long long)(line + 1));
        const bool weighted = s->weighted && line % s->weighted == 0;
        if (s->end && s->end[0] == ':' && weighted) at--;
        if (s->end && (weighted || s->end[0] != ':')) at += (size_t)sprintf(text + at, "%s", s->end);
        if (weighted) at += (size_t)sprintf(text + at, "%d ", 2 + (int)(line % 8));
        if (s->rows) at += (size_t)sprintf(text + at, "$ ");
        text[at - 1] = '\n';
    }
    *count = at + (size_t)sprintf(text + at, "%s", s->tail ? s->tail : "");
    return text;
}

typedef struct limited {
    test_heap heap;
    sp_allocator allocator;
    int64_t constant; /* what reading takes of 64 MB: small blocks, a table of 16 */
} limited;

static sp_context *limited_context(limited *l, int threads)
{
    l->heap = (test_heap){.fail_at = -1};
    l->allocator = test_allocator(&l->heap);
    l->constant = threads > 2 ? 48 << 20 : 36 << 20;
    const sp_context_options settings = {.device = "cpu", .threads = threads, .allocator = &l->allocator};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&settings, &context), SP_OK);
    return context;
}

/* Short arcs in 16 MB: half as much again as promised is more than what the constant hides. The matrix, too. */
static void check_memory(const shape *s, sp_value_type type, const char *text, size_t count, int threads)
{
    const io_read_options options = {
        .format = s->format, .expect_values = s->end && s->end[0] == ':', .values = type};
    const int times = type == SP_F32 ? 4 : 5, value = type == SP_F32 ? 4 : 8;
    limited l;
    sp_context *context = limited_context(&l, threads);
    io_graph graph;
    sp_csr matrix;
    ck_ok(context, io_read_memory(context, "in", text, count, &options, 0, &graph));
    test_expect(l.heap.peak_bytes <= times * (int64_t)count + l.constant, "%d threads: %.2f times %zu bytes", threads,
                (double)l.heap.peak_bytes / (double)count, count);
    ck_assert_int_gt(graph.arcs, 0);
    const int64_t arcs = graph.arcs, entries = arcs * (1 + graph.symmetric), before = l.heap.live_bytes;
    l.heap.peak_bytes = before;
    ck_ok(context, io_graph_matrix(context, &graph, false, SP_COMBINE_MAX, graph.symmetric, &matrix));
    const int64_t left = l.heap.live_bytes - (4 + value) * matrix.nnz - 8 * graph.nodes; /* names of nodes */
    const int64_t most = s->rows && s->known_labels == 0
                             ? before + value * arcs + 8 * graph.nodes
                             : left + (8 + value) * arcs + (12 + value) * entries + 24 * graph.nodes;
    test_expect(l.heap.peak_bytes <= most + (1 << 20) * threads, "%d threads: a matrix of %lld arcs takes %lld "
                "bytes instead of %lld", threads, (long long)arcs, (long long)l.heap.peak_bytes, (long long)most);
    sp_csr_free(context, &matrix);
    end_graph(context, &graph);
    ck_assert_int_eq(l.heap.live_bytes, 0);
}

TEST(readers_take_no_more_memory_than_promised)
{
    const shape *s = &shapes[_i];
    const size_t size = s->new_labels ? 8 << 20 : 16 << 20;
    size_t count;
    char *text = s->format == IO_METIS ? write_metis_lines(size, &count) : write_shape(s, size, &count);
    for (int threads = 2; threads <= 16; threads += 14) {
        check_memory(s, SP_F32, text, count, threads);
        if (s->weighted) check_memory(s, SP_F64, text, count, threads);
    }
    free(text);
}

/* METIS files whose lines are two bytes, back to nodes of one digit: 0: the other halves of the edges are missing; 1:
 * there are as many arcs ahead, in two bytes too. */
TEST(metis_lines_of_two_bytes_are_refused_before_they_take_much)
{
    enum { LINES = 8 << 20 };
    char *text = malloc(4 * LINES + 100);
    size_t at = (size_t)sprintf(text, "%d %d\n", LINES, LINES);
    for (int i = 0; i < (_i ? LINES : 1); i++, at += 2) memcpy(text + at, "2 ", 2);
    for (int i = 0; i < LINES; i++, at += 2) memcpy(text + at, "\n1", 2);
    limited l;
    sp_context *context = limited_context(&l, 2);
    const io_read_options options = {.format = IO_METIS};
    io_graph graph;
    ck_assert_int_eq(io_read_memory(context, "in", text, at, &options, 0, &graph), SP_ERROR_MATRIX);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), _i ? "in:2: node 1 names node 2 twice; METIS graphs have no"
                                                            : "in:2: node 1 does not name node 3, but that names it in "
                                                              "line 4"));
    test_expect(l.heap.peak_bytes <= 4 * (int64_t)at + l.constant, "%.2f times %zu bytes",
                (double)l.heap.peak_bytes / (double)at, at);
    sp_context_destroy(context);
    ck_assert_int_eq(l.heap.live_bytes, 0);
    free(text);
}

/* A column of ids of many digits, then one id again and again. */
TEST(a_native_column_of_repeated_entries_is_settled_in_time)
{
    enum { IDS = 1500000, AGAIN = 5 };
    char *text = malloc(IDS * (8 + 2 * AGAIN) + 200);
    size_t at = (size_t)sprintf(text, NATIVE_HEAD("%d") "0 ", IDS, IDS);
    for (int i = IDS - 1; i > 0; i--) at += (size_t)sprintf(text + at, i == 7 ? "7:2 " : "%d ", i);
    for (int i = 0; i < AGAIN * IDS; i++, at += 2) memcpy(text + at, "7 ", 2);
    at += (size_t)sprintf(text + at, "$\n)\n");
    limited l;
    sp_context *context = limited_context(&l, 1);
    io_graph graph;
    ck_ok(context, io_read_memory(context, "in", text, at, &automatic, 0, &graph));
    ck_assert_int_eq(graph.arcs, IDS - 1);
    test_expect(l.heap.peak_bytes <= 4 * (int64_t)at + l.constant, "%.2f times %zu bytes",
                (double)l.heap.peak_bytes / (double)at, at);
    ck_ok(context, io_graph_spread(context, &graph));
    ck_assert(graph.heads[6] == 7 && io_arc_weight(&graph, 6) == 2 && io_arc_weight(&graph, 5) == 1);
    end_graph(context, &graph);
    free(text);
}

/* Entries of four bytes on both sides of the diagonal, empty lines between them. */
TEST(mixed_triangles_take_no_more_memory_than_promised)
{
    enum { ENTRIES = 4 << 20 };
    char *text = malloc(5 * ENTRIES + 100);
    size_t at = (size_t)sprintf(text, "%%" SYMMETRIC("pattern symmetric", "9 9 %d"), ENTRIES);
    for (int i = 0; i < ENTRIES; i++)
        at += (size_t)sprintf(text + at, "%s%s", i % 2 ? "2 1\n" : "1 3\n", _i ? "\n" : "");
    limited l;
    sp_context *context = limited_context(&l, 2);
    io_graph graph;
    ck_ok(context, io_read_memory(context, "in", text, at, &automatic, 0, &graph));
    test_expect(l.heap.peak_bytes <= 4 * (int64_t)at + l.constant, "%.2f times %zu bytes",
                (double)l.heap.peak_bytes / (double)at, at);
    end_graph(context, &graph);
    free(text);
}

/* Label files that take the most memory for their bytes: ever new names; short words for nodes in several groups. */
TEST(label_readers_take_no_more_memory_than_promised)
{
    enum { LINES = 1 << 20, NODES = 90 };
    const bool overlapping = _i;
    char *text = malloc(LINES * 8), graph_text[100];
    size_t at = 0;
    for (int64_t i = 0; i < LINES; i++) {
        const int digits[] = {(int)(i % 90), (int)(i / 90 % 90), (int)(i / 8100 % 90), (int)(i / 729000)};
        if (overlapping)
            at += (size_t)sprintf(text + at, "%lld%c", (long long)(1 + i % 9), i % 20 == 19 ? '\n' : ' ');
        else
            at += (size_t)sprintf(text + at, "%c%c%c%c\n", '%' + digits[0], '%' + digits[1], '%' + digits[2],
                                  'a' + digits[3]);
    }
    const int64_t nodes = overlapping ? NODES : LINES, factor = overlapping ? 16 : 6;
    snprintf(graph_text, sizeof graph_text, "%%%%MatrixMarket matrix coordinate pattern general\n%lld %lld 0\n",
             (long long)nodes, (long long)nodes);
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    const io_label_options options = {.base = 1, .format = overlapping ? IO_LABELS_CLUSTERS : IO_LABELS_LIST};
    io_graph graph = read_text(context, graph_text, automatic);
    io_source *source;
    io_labelling labelling;
    ck_ok(context, io_source_memory(context, "l", text, at, &source));
    heap.peak_bytes = 0;
    ck_ok(context, io_read_labels_source(context, source, &graph, &options, &labelling));
    ck_assert(overlapping == (labelling.labels == NULL));
    test_expect(heap.peak_bytes <= factor * (int64_t)at + 8 * nodes + (4 << 20), "%.2f times %zu bytes",
                (double)heap.peak_bytes / (double)at, at);
    io_source_close(source);
    io_labelling_free(context, &labelling);
    end_graph(context, &graph);
    free(text);
}

const test_entry memory_tests[] = {
    CASE("memory", 120),
    TURNS(readers_take_no_more_memory_than_promised, COUNT(shapes)),
    TURNS(metis_lines_of_two_bytes_are_refused_before_they_take_much, 2),
    TURNS(mixed_triangles_take_no_more_memory_than_promised, 2),
    ONCE(a_native_column_of_repeated_entries_is_settled_in_time),
    TURNS(label_readers_take_no_more_memory_than_promised, 2),
    {0},
};
