/* test_io: failing allocations. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "io_shared.h"

typedef struct sample {
    const char *text;
    io_read_options options;
} sample;

static const sample samples[] = {
    {"a b 1\nc d 2\na d\n", {.format = IO_AUTO}},
    {"a pp b:1 c:2\n", {.format = IO_SIF, .expect_values = true}},
    {"a b c\n", {.format = IO_ETC}},
    {"(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mcldoms\n3 5 $\n)\n(mclmatrix\nbegin\n3 5:2 3:1 $\n)\n",
     {.format = IO_AUTO}},
    {"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 1\n", {.format = IO_AUTO}},
    {"protein1 protein2 combined_score\na b 5\n", {.format = IO_AUTO}},
    {"a\tb\t1\t1\t1\t1\t1\t1\t1\t1\t1\t9\n", {.format = IO_BLAST}},
    {"2 1 1\n2 3\n1 3\n", {.format = IO_METIS}},
    {"% c\n3 1 111 2\n%\n1 2 3 2 4\n% c\n1 2 3 1 4\n1 2 3\n", {.format = IO_METIS}},
    {"%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n% c\n2 1 1\n\n1 3 2\n", {.format = IO_AUTO}},
};

/* Repeats a read, failing one allocation later each time (with `fail_all` all the later ones too), until it works. */
static void exhaust(const void *data, size_t count, const io_read_options *options, int threads, size_t block,
                    bool fail_all)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, threads);
    int64_t blocks = heap.live_blocks, bytes_before = heap.live_bytes;
    for (int64_t n = 0;; n++) {
        ck_assert_int_lt(n, 2000);
        heap.allocations = 0;
        heap.fail_at = n;
        heap.fail_all = fail_all;
        io_graph graph;
        sp_csr matrix = {0};
        sp_status status = io_read_memory(context, "in", data, count, options, block, &graph);
        if (status == SP_OK)
            status = io_graph_matrix(context, &graph, n % 2, SP_COMBINE_MAX, graph.symmetric, &matrix);
        io_graph_free(context, &graph);
        if (status == SP_OK) {
            sp_csr_free(context, &matrix);
            ck_assert_int_eq(heap.live_blocks, blocks);
            ck_assert_int_gt(n, 2);
            break;
        }
        ck_assert_msg(status == SP_ERROR_HOST_MEMORY, "allocation %lld: %s (%s)", (long long)n,
                      sp_status_string(status), sp_last_error(context));
        ck_assert_ptr_null(graph.tails);
        ck_assert_int_eq(heap.live_blocks, blocks);
        ck_assert_int_eq(heap.live_bytes, bytes_before);
    }
    test_end_heap(context, &heap);
}

TEST(readers_survive_every_failed_allocation)
{
    const sample *s = &samples[_i];
    char packed[1000];
    for (int fail_all = 0; fail_all < 2; fail_all++) {
        exhaust(s->text, strlen(s->text), &s->options, 1, 0, fail_all);
        exhaust(s->text, strlen(s->text), &s->options, 2, 8, fail_all);
        size_t size = gzip(s->text, strlen(s->text), packed, sizeof packed);
        exhaust(packed, size, &s->options, 1, 0, fail_all);
    }
}

TEST(the_parallel_reader_survives_failed_allocations_while_tables_grow)
{
    test_random random = test_seed(3);
    size_t count;
    char *text = random_triples(&random, 4000, 3000, &count);
    const io_read_options options = {.format = IO_ABC};
    exhaust(text, count, &options, 2, 16384, true);
    free(text);
}

TEST(writers_survive_a_failed_allocation)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .allocator = &allocator}, &context),
                     SP_OK);
    int64_t offsets[] = {0, 1};
    int32_t members[] = {0};
    const io_clusters clusters = {1, 1, offsets, members};
    heap.fail_at = heap.allocations;
    ck_assert_int_eq(io_write_native_clusters(context, path_of("out"), &clusters, NULL, false, NULL),
                     SP_ERROR_HOST_MEMORY);
    ck_assert_int_eq(files_in_folder(), 0);
    test_end_heap(context, &heap);
}

static const struct { const char *graph, *labels; io_label_options options; } label_samples[] = {
    {four_numbers, "1\n2\n2\n1\n", {.base = 1}},
    {four_numbers, "2000000000\n7\n7\n7\n", {.base = 1, .compact = true}},
    {four_names, "a x\nb y\nb x\nc z\n", {.base = 1}},
    {"0 2\n", "1\n1\n2\n", {.base = 1}},
    {four_numbers,
     "(mclheader\nmcltype matrix\ndimensions 4x2\n)\n(mclmatrix\nbegin\n0 0 2 $\n1 1 2 $\n)\n",
     {.base = 1}},
};

/* Reads something of a graph's nodes, and frees it. */
typedef sp_status read_of_nodes(sp_context *context, io_source *source, const io_graph *graph, const void *options,
                                test_heap *heap);

/* Reads with each allocation failing in turn, more than `least` of them. */
static void survives(read_of_nodes *read, const char *graph_text, const char *text, const void *options, int64_t least)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    io_graph graph = read_text(context, graph_text, automatic);
    const int64_t blocks = heap.live_blocks;
    sp_status status = SP_ERROR_HOST_MEMORY;
    for (int64_t n = 0; status != SP_OK; n++) {
        io_source *source;
        ck_assert_int_lt(n, 200);
        heap.fail_at = -1;
        ck_ok(context, io_source_memory(context, "l", text, strlen(text), &source));
        heap.allocations = 0;
        heap.fail_at = n;
        status = read(context, source, &graph, options, &heap);
        io_source_close(source);
        if (status == SP_OK) ck_assert_int_gt(n, least);
        else ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
        ck_assert_int_eq(heap.live_blocks, blocks);
    }
    io_graph_free(context, &graph);
    test_end_heap(context, &heap);
}

static sp_status read_labels_of(sp_context *context, io_source *source, const io_graph *graph, const void *options,
                                test_heap *heap)
{
    io_labelling labelling;
    const sp_status status = io_read_labels_source(context, source, graph, options, &labelling);
    heap->fail_at = -1;
    io_labelling_free(context, &labelling);
    return status;
}

static sp_status read_table_of(sp_context *context, io_source *source, const io_graph *graph, const void *options,
                               test_heap *heap)
{
    io_node_table table;
    const sp_status status = io_read_node_table_source(context, source, graph, options, &table);
    heap->fail_at = -1;
    io_node_table_free(context, &table);
    return status;
}

TEST(label_readers_survive_every_failed_allocation)
{
    survives(read_labels_of, label_samples[_i].graph, label_samples[_i].labels, &label_samples[_i].options, 1);
}

TEST(tables_of_nodes_survive_every_failed_allocation)
{
    static const char text[] = "node,age,kind\na,1,\"x\"\"y\"\nb,NA,z\n\"d\",3,z\n";
    static const io_node_options options = {0};
    survives(read_table_of, four_names, text, &options, 5);
}

CONTEXT_TEST(zeros_of_binary_matrices_are_no_arcs, 0, 1)
{
    int64_t offsets[] = {0, 3, 3, 5}, kept[][4] = {{0, 2, 2, 3}, {0, 1, 1, 2}};
    int32_t columns[] = {0, 1, 2, 0, 2}, kept_columns[][3] = {{1, 2, 0}, {1, 0}};
    double values[] = {0, 2, 1e-60, 3, -0.0}, kept_values[][3] = {{2, 1e-60, 3}, {2, 3}};
    const sp_csr m = {.rows = 3, .cols = 3, .nnz = 5, .row_offsets = offsets, .col_indices = columns, .values = values,
                      .value_type = SP_F64};
    const io_write_options writing = {.format = IO_CSR};
    io_graph graph;
    ck_ok(context, io_write_graph(context, path_of("out"), &m, &writing));
    for (int rounded = 0; rounded < 2; rounded++) { /* 1e-60 is 0 in f32 */
        const sp_csr left = {.rows = 3, .cols = 3, .nnz = kept[rounded][3], .row_offsets = kept[rounded],
                             .col_indices = kept_columns[rounded], .values = kept_values[rounded],
                             .value_type = SP_F64};
        io_read_options reading = {.matrix = true, .values = rounded ? SP_F32 : SP_F64};
        ck_ok(context, io_read_graph(context, path_of("out"), &reading, &graph));
        test_same(&left, &graph.matrix, 0);
        io_graph_free(context, &graph);
        reading.matrix = false;
        ck_ok(context, io_read_graph(context, path_of("out"), &reading, &graph));
        ck_assert_str_eq(arcs_of(&graph), rounded ? "0>1:2 2>0:3" : "0>1:2 0>2:1e-60 2>0:3");
        io_graph_free(context, &graph);
    }
    ck_assert_int_eq(remove(path_of("out")), 0);
}

TEST(graph_writers_survive_every_failed_allocation)
{
    static const io_format formats[] = {IO_MTX, IO_ABC, IO_NATIVE, IO_METIS, IO_DIMACS, IO_CSR};
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    int64_t offsets[] = {0, 1, 2};
    int32_t columns[] = {1, 0};
    const sp_csr m = {.rows = 2, .cols = 2, .nnz = 2, .row_offsets = offsets, .col_indices = columns};
    const int64_t blocks = heap.live_blocks;
    for (size_t f = 0; f < COUNT(formats); f++) {
        const io_write_options options = {.format = formats[f]};
        sp_status status = SP_ERROR_HOST_MEMORY;
        for (int64_t n = 0; status != SP_OK; n++) {
            ck_assert_int_lt(n, 100);
            heap.allocations = 0;
            heap.fail_at = n;
            status = io_write_graph(context, path_of("out"), &m, &options);
            if (status != SP_OK) ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
            ck_assert_int_eq(files_in_folder(), status == SP_OK);
            ck_assert_int_eq(heap.live_blocks, blocks);
        }
        ck_assert_int_eq(remove(path_of("out")), 0);
    }
    heap.fail_at = -1;
    test_end_heap(context, &heap);
}

TEST(binary_readers_survive_every_failed_allocation)
{
    sp_context *context = test_context(0, 1);
    int64_t offsets[] = {0, 1, 2}, groups[] = {0};
    int32_t columns[] = {1, 0};
    float values[] = {1, 2};
    uint32_t name_offsets[] = {0, 1, 2};
    char letters[] = "ab", file[400];
    const io_names names = {2, groups, name_offsets, letters};
    const sp_csr m = {
        .rows = 2, .cols = 2, .nnz = 2, .row_offsets = offsets, .col_indices = columns, .values = values};
    const io_write_options writing = {.format = IO_CSR, .names = &names};
    ck_ok(context, io_write_graph(context, path_of("out"), &m, &writing));
    sp_context_destroy(context);
    FILE *from = fopen(path_of("out"), "rb");
    const size_t count = fread(file, 1, sizeof file, from);
    fclose(from);
    for (int matrix = 0; matrix < 2; matrix++) {
        const io_read_options options = {.format = IO_CSR, .matrix = matrix};
        exhaust(file, count, &options, 1, 0, false);
    }
}

const test_entry failing_tests[] = {
    CASE_WITH("files", 120, make_folder, remove_folder),
    ONCE(writers_survive_a_failed_allocation),
    ONCE(zeros_of_binary_matrices_are_no_arcs),
    ONCE(graph_writers_survive_every_failed_allocation),
    ONCE(binary_readers_survive_every_failed_allocation),
    CASE("failing allocations", 120),
    TURNS(readers_survive_every_failed_allocation, COUNT(samples)),
    TURNS(label_readers_survive_every_failed_allocation, COUNT(label_samples)),
    ONCE(tables_of_nodes_survive_every_failed_allocation),
    ONCE(the_parallel_reader_survives_failed_allocations_while_tables_grow),
    {0},
};
