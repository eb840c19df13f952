/* test_io: clusters, graphs and numbers written. */
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

/* ---- writing -------------------------------------------------------------------------------------------- */

CONTEXT_TEST(label_clusters_are_lines_of_labels, 0, 1)
{
    int64_t offsets[] = {0, 2, 3}, groups[] = {0};
    uint32_t name_offsets[] = {0, 1, 3, 4};
    int32_t members[] = {0, 2, 1};
    char names[] = "abbc";
    const io_clusters clusters = {3, 2, offsets, members};
    const io_names labels = {3, groups, name_offsets, names};
    io_output *output;
    ck_ok(context, io_output_open(context, path_of("out"), &output));
    io_put_label_clusters(output, &clusters, &labels);
    ck_ok(context, io_output_commit(output));
    ck_assert_str_eq(contents(path_of("out")), "a\tc\nbb\n");
}

/* What mcl 22-282 wrote for a clustering of 30 nodes in one cluster. */
static const char native_clusters[] = "# cline: mcl k.mci \"-o\" \"k.cls\"\n"
                                      "(mclheader\nmcltype matrix\ndimensions 30x1\n)\n(mclmatrix\nbegin\n"
                                      "0  0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25\n"
                                      "     26 27 28 29 $\n)\n";

/* The same with ids 1 to 30. */
static const char native_domain_clusters[] = "(mclheader\nmcltype matrix\ndimensions 30x1\n)\n(mclrows\n"
                                             " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26\n"
                                             " 27 28 29 30 $\n)\n(mclmatrix\nbegin\n"
                                             "0  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25\n"
                                             "     26 27 28 29 30 $\n)\n";

CONTEXT_TEST(native_clusters_are_written_as_mcl_does, 0, 1)
{
    int64_t offsets[] = {0, 30}, ids[30];
    int32_t members[30];
    for (int i = 0; i < 30; i++) {
        members[i] = i;
        ids[i] = i + 1;
    }
    const io_clusters clusters = {30, 1, offsets, members}, none = {0, 0, offsets, members};
    ck_ok(context, io_write_native_clusters(context, path_of("out"), &clusters, NULL, false,
                                            "mcl k.mci \"-o\" \"k.cls\""));
    ck_assert_str_eq(contents(path_of("out")), native_clusters);
    ck_ok(context, io_write_native_clusters(context, path_of("out"), &clusters, ids, false, NULL));
    ck_assert_str_eq(contents(path_of("out")), native_domain_clusters);
    ck_ok(context, io_write_native_clusters(context, path_of("out"), &none, NULL, false, NULL));
    ck_assert_str_eq(contents(path_of("out")),
                     "(mclheader\nmcltype matrix\ndimensions 0x0\n)\n(mclmatrix\nbegin\n)\n");
}

CONTEXT_TEST(native_columns_are_as_wide_as_the_largest_id_plus_one, 0, 1)
{
    static const struct {
        int64_t nodes;
        const char *line;
    } cases[] = {{9, "\n0 0 $\n"}, {10, "\n0  0 $\n"}, {99, "\n0  0 $\n"}, {100, "\n0   0 $\n"}};
    int64_t offsets[] = {0, 1};
    int32_t members[] = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const io_clusters clusters = {cases[i].nodes, 1, offsets, members};
        ck_ok(context, io_write_native_clusters(context, path_of("out"), &clusters, NULL, false, NULL));
        ck_assert_ptr_nonnull(strstr(contents(path_of("out")), cases[i].line));
    }
}

/* Part of what mcl 22-282 wrote with -write-graph: lines are broken by the ids' width, not by the values'. */
static const char native_graph[] = "(mclheader\nmcltype matrix\ndimensions 60x60\n)\n(mclmatrix\nbegin\n"
                                   "0  1:45031.7 9:2.65875e-09 20:5.71177e-08 32:0.166106 34:41.5467 42:3.95634e-08\n"
                                   "     55:3.63297e-11 $\n"
                                   "2  3:193.327 10:461.153 11:2.4648e-07 17:1954500 41:5425.93 43:3.03008e-09\n"
                                   "     53:7.45095e-05 57:579.293 $\n)\n";

static sp_csr columns_of(sp_context *context, io_graph *graph)
{
    sp_csr matrix;
    ck_ok(context, io_graph_matrix(context, graph, false, SP_COMBINE_MAX, graph->symmetric, &matrix));
    return matrix;
}

CONTEXT_TEST(native_graphs_are_written_as_mcl_does, 0, 1)
{
    io_graph graph = read_text(context, native_graph, automatic);
    sp_csr matrix = columns_of(context, &graph);
    ck_ok(context, io_write_native_matrix(context, path_of("out"), &matrix, NULL, NULL, 7, false, NULL));
    ck_assert_str_eq(contents(path_of("out")), native_graph);
    sp_csr_free(context, &matrix);
    io_graph_free(context, &graph);
}

static size_t length_of(const char *path)
{
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    return (size_t)about.st_size;
}

static bool same_files(const char *one, const char *other)
{
    const size_t count = length_of(one);
    char *a = malloc(count + 1), *b = malloc(count + 1);
    FILE *first = fopen(one, "rb"), *second = fopen(other, "rb");
    const bool same = fread(a, 1, count, first) == count && fread(b, 1, count + 1, second) == count &&
                      memcmp(a, b, count) == 0;
    fclose(first);
    fclose(second);
    free_all(a, b);
    return same;
}

/* The rows first to end - 1. `offsets` becomes theirs. */
static sp_csr some_rows(const sp_csr *m, int64_t first, int64_t end, int64_t *offsets)
{
    const int64_t base = m->row_offsets[first];
    sp_csr rows = *m;
    for (int64_t i = first; i <= end; i++) offsets[i - first] = m->row_offsets[i] - base;
    rows.rows = end - first;
    rows.nnz = m->row_offsets[end] - base;
    rows.row_offsets = offsets;
    rows.col_indices += base;
    if (m->value_type == SP_F32) rows.values = (float *)m->values + base;
    else rows.values = (double *)m->values + base;
    return rows;
}

/* Writes the columns 0 to cut - 1 and then the others. */
static void write_in_blocks(sp_context *context, const sp_csr *matrix, int64_t cut, io_native_options options)
{
    io_output *output;
    int64_t *offsets = test_block((size_t)(matrix->rows + 1) * sizeof *offsets);
    ck_ok(context, io_output_open(context, path_of("blocks"), &output));
    options.offsets = matrix->row_offsets;
    for (; options.first < matrix->rows; options.first = cut, cut = matrix->rows) {
        const sp_csr block = some_rows(matrix, options.first, cut, offsets);
        ck_ok(context, io_put_native_columns(context, output, &block, &options));
    }
    ck_ok(context, io_output_commit(output));
    free(offsets);
}

TEST(native_matrices_survive_writing_and_reading)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        sp_context *context = test_context(0, 2);
        test_random random = test_seed(seed);
        int64_t nodes = 1 + test_below(&random, 300);
        sp_csr matrix = test_matrix(context, &random, nodes, nodes, 0.1, SP_F32, TEST_POSITIVE);
        int64_t *ids = malloc((size_t)nodes * sizeof *ids), id = test_below(&random, 1000) + 1;
        for (int64_t i = 0; i < nodes; i++, id += 1 + test_below(&random, 50)) ids[i] = id;
        for (int form = 0; form < 4; form++) {
            const int64_t *domain = form & 1 ? ids : NULL;
            const io_native_options whole = {.ids = domain, .digits = 9, .binary = form & 2, .command_line = "x"};
            ck_ok(context, io_write_native_matrix(context, path_of("m"), &matrix, domain, NULL, 9, form & 2, "x"));
            write_in_blocks(context, &matrix, 1 + test_below(&random, nodes), whole);
            ck_assert(same_files(path_of("m"), path_of("blocks")));
            io_graph graph;
            ck_ok(context, io_read_graph(context, path_of("m"), &automatic, &graph));
            ck_assert((graph.ids != NULL) == (domain != NULL));
            for (int64_t i = 0; domain && i < nodes; i++) ck_assert_int_eq(graph.ids[i], ids[i]);
            sp_csr again = columns_of(context, &graph);
            test_same(&matrix, &again, seed);
            sp_csr_free(context, &again);
            io_graph_free(context, &graph);
        }
        free(ids);
        sp_csr_free(context, &matrix);
        sp_context_destroy(context);
    }
}

/* ---- graphs in every format ------------------------------------------------------------------------------ */

static void same_text(const char *text, sp_context *context, const sp_csr *matrix, io_write_options options)
{
    ck_ok(context, io_write_graph(context, path_of("out"), matrix, &options));
    ck_assert_str_eq(contents(path_of("out")), text);
}

CONTEXT_TEST(graphs_are_written_as_their_formats_have_them, 0, 1)
{
    int64_t offsets[] = {0, 2, 3, 4}, groups[] = {0}, sizes[] = {5, 6, 7};
    int32_t columns[] = {1, 2, 0, 0};
    float values[] = {0.5f, 3, 0.5f, 3}, ones[] = {2, 3, 2, 3};
    uint32_t name_offsets[] = {0, 1, 3, 4};
    char letters[] = "abbc";
    const io_names names = {3, groups, name_offsets, letters};
    sp_csr m = {.rows = 3, .cols = 3, .nnz = 4, .row_offsets = offsets, .col_indices = columns, .values = values};
    same_text("%%MatrixMarket matrix coordinate real general\n% x\n3 3 4\n1 2 0.5\n1 3 3\n2 1 0.5\n3 1 3\n", context,
              &m, (io_write_options){.format = IO_MTX, .comment = "x"});
    same_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 1 3\n", context, &m,
              (io_write_options){.format = IO_MTX, .undirected = true});
    same_text("a\tbb\t0.5\na\tc\t3\n", context, &m,
              (io_write_options){.format = IO_ABC, .undirected = true, .names = &names});
    same_text("7\t8\t0.5\n7\t9\t3\n8\t7\t0.5\n9\t7\t3\n", context, &m,
              (io_write_options){.format = IO_TSV, .undirected = true, .first = 7});
    same_text(
        "(mclheader\nmcltype matrix\ndimensions 3x3\n)\n(mclmatrix\nbegin\n0 1:0.5 2:3 $\n1 0:0.5 $\n2 0:3 $\n)\n",
        context, &m, (io_write_options){.format = IO_NATIVE});
    same_text("c x\np sp 3 4\na 1 2 0.5\na 1 3 3\na 2 1 0.5\na 3 1 3\n", context, &m,
              (io_write_options){.format = IO_DIMACS, .undirected = true, .comment = "x"});
    m.values = ones;
    same_text("3 2 001\n2 2 3 3\n1 2\n1 3\n", context, &m, (io_write_options){.format = IO_METIS});
    m.values = NULL;
    same_text("%%MatrixMarket matrix coordinate pattern general\n3 3 4\n1 2\n1 3\n2 1\n3 1\n", context, &m,
              (io_write_options){.format = IO_MTX});
    same_text("3 2 010\n5 2 3\n6 1\n7 1\n", context, &m,
              (io_write_options){.format = IO_METIS, .constraints = 1, .node_weights = sizes});
}

/* Writes a matrix by blocks of rows. */
static void write_blocks(sp_context *context, const char *path, const sp_csr *m, io_write_options options,
                         int64_t length)
{
    int64_t *offsets = malloc((size_t)(length + 1) * sizeof *offsets);
    io_head head = {0};
    io_output *output;
    ck_ok(context, io_output_open(context, path, &output));
    options.whole = &head;
    for (int put = 0; put < 2; put++)
        for (int64_t first = 0; first < m->rows || first == 0; first += length) {
            const int64_t end = first + length < m->rows ? first + length : m->rows;
            const sp_csr rows = some_rows(m, first, end, offsets);
            options.row = first;
            if (put) ck_ok(context, io_put_graph(context, output, &rows, &options));
            else io_add_head(context, &rows, first, &head);
        }
    ck_ok(context, io_output_commit(output));
    free(offsets);
}

TEST(graphs_by_blocks_of_rows_are_those_written_at_once)
{
    static const io_format formats[] = {IO_MTX, IO_ABC, IO_TSV, IO_CSV, IO_GRAPHML, IO_DIMACS, IO_NATIVE};
    static const int64_t sizes[] = {0, 1, 23};
    sp_context *context = test_context(0, 2);
    char whole[300];
    snprintf(whole, sizeof whole, "%s", path_of("whole"));
    for (size_t k = 0; k < 2 * COUNT(formats) * COUNT(sizes); k++) {
        const io_write_options options = {.format = formats[k / 2 % COUNT(formats)], .undirected = k % 2, .first = 3,
                                          .comment = "x"};
        const int64_t n = sizes[k / 2 / COUNT(formats)];
        test_random random = test_seed(k);
        double *dense = calloc((size_t)(n * n + 1), sizeof *dense);
        for (int64_t i = 0; i < n * n; i++)
            if (i / n <= i % n && i / n != 5 && test_below(&random, 3) == 0)
                dense[i] = dense[i % n * n + i / n] = (double)test_below(&random, 20) / (k % 4 < 2 ? 1 : 4);
        sp_csr m = test_from_dense(context, n, n, dense, SP_F64);
        ck_ok(context, io_write_graph(context, whole, &m, &options));
        for (int64_t length = 1; length < 30; length += length) {
            write_blocks(context, path_of("out"), &m, options, length);
            test_expect(same_files(whole, path_of("out")), "case %zu: rows by %lld", k, (long long)length);
        }
        sp_csr_free(context, &m);
        free(dense);
    }
    sp_context_destroy(context);
}

CONTEXT_TEST(metis_writing_refuses_what_metis_has_not, 0, 1)
{
    int64_t offsets[] = {0, 1, 2};
    int32_t columns[] = {1, 0}, loops[] = {0, 1};
    float values[] = {2, 3};
    const io_write_options options = {.format = IO_METIS};
    sp_csr m = {.rows = 2, .cols = 2, .nnz = 2, .row_offsets = offsets, .col_indices = columns, .values = values};
    ck_assert_int_ne(io_write_graph(context, path_of("out"), &m, &options), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "the edge from 1 to 2 has no opposite of the same weight"));
    values[0] = 0.5f;
    ck_assert_int_ne(io_write_graph(context, path_of("out"), &m, &options), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "not a whole number above 0"));
    m.col_indices = loops;
    ck_assert_int_ne(io_write_graph(context, path_of("out"), &m, &options), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "is a loop"));
    ck_assert_int_eq(files_in_folder(), 0);
}

/* Rows of the matrix that a graph file with source rows stands for. */
static sp_csr rows_of(sp_context *context, io_graph *graph)
{
    sp_csr matrix;
    ck_ok(context, io_graph_matrix(context, graph, graph->format == IO_MTX, SP_COMBINE_FIRST, false, &matrix));
    return matrix;
}

/* One row of 50,000 entries, empty rows before, between and after: pieces end everywhere. */
static sp_csr skewed_matrix(sp_context *context, test_random *random)
{
    enum { ROWS = 60000, WIDE = 30000, FULL = 50000 };
    int32_t *rows = malloc(sizeof *rows * 2 * FULL), *cols = malloc(sizeof *cols * 2 * FULL);
    float *values = malloc(sizeof *values * 2 * FULL);
    for (int64_t i = 0; i < 2 * FULL; i++) {
        rows[i] = i < FULL ? WIDE : (int32_t)(100 + test_below(random, ROWS - 200));
        cols[i] = (int32_t)(i < FULL ? i : test_below(random, ROWS));
        values[i] = (float)(test_below(random, 3) ? test_unit(random) * 100 : (double)(1 + test_below(random, 1000)));
    }
    sp_csr matrix;
    ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = ROWS, .cols = ROWS, .count = 2 * FULL,
                                                      .row_indices = rows, .col_indices = cols, .values = values},
                                   SP_COMBINE_FIRST, false, &matrix));
    free_all(rows, cols, values);
    return matrix;
}

/* Reads a binary matrix in parts. Returns whether they add up to what is written; if so they are the whole. */
static bool add_up_rows(sp_context *context, const char *path, int parts, const io_graph *whole)
{
    int64_t arcs = 0, bytes = 0;
    io_part all = {0};
    bool same = true;
    for (int part = 0; part < parts; part++) {
        const io_read_options options = {.format = IO_CSR, .any_sign = true, .part = part, .parts = parts};
        io_graph graph;
        if (io_read_graph(context, path, &options, &graph) != SP_OK) return false;
        for (int64_t k = 0; k < graph.arcs; k++, arcs++)
            same = same && arcs < whole->arcs && graph.tails[k] == whole->tails[arcs] &&
                   graph.heads[k] == whole->heads[arcs] && io_arc_weight(&graph, k) == io_arc_weight(whole, arcs);
        same = same && graph.nodes == whole->nodes && graph.names.count == (part ? 0 : whole->names.count);
        all.announced = graph.part.announced;
        all.written = graph.part.written;
        all.entries += graph.part.entries;
        all.checksum ^= graph.part.checksum;
        bytes += graph.bytes;
        io_graph_free(context, &graph);
    }
    if (all.entries != all.announced || all.checksum != all.written) return false;
    ck_assert(same && arcs == whole->arcs && bytes == whole->bytes);
    return true;
}

TEST(the_rows_of_a_binary_matrix_in_parts_are_the_matrix)
{
    const char *path = path_of("rows.bin"), *damaged = path_of("damaged.bin");
    sp_context *context = test_context(0, 2);
    for (uint64_t seed = 0; seed < 12; seed++) {
        test_random random = test_seed(seed + 1);
        const int64_t nodes = seed == 0 ? 0 : 1 + test_below(&random, 40);
        sp_csr matrix = test_matrix(context, &random, nodes, nodes, 0.15, SP_F32, TEST_INTEGERS);
        void *values = matrix.values;
        io_name_list list = {0};
        for (int64_t i = 0; i < nodes && seed % 2; i++)
            ck_ok(context, io_names_append(context, &list, "name", (size_t)(1 + i % 4)));
        if (seed % 3 == 0) matrix.values = NULL;
        const io_write_options writing = {.format = IO_CSR, .names = &list.names};
        const io_read_options reading = {.format = IO_CSR, .any_sign = true};
        bool can = false;
        io_graph whole;
        ck_ok(context, io_write_graph(context, path, &matrix, &writing));
        ck_ok(context, io_read_graph(context, path, &reading, &whole));
        ck_ok(context, io_can_part(context, path, &reading, &can));
        ck_assert(can);
        for (int parts = 2; parts <= 64; parts *= 2) ck_assert(add_up_rows(context, path, parts, &whole));
        static char bytes[1 << 15];
        FILE *file = fopen(path, "rb");
        const size_t count = fread(bytes, 1, sizeof bytes, file);
        ck_assert(fclose(file) == 0 && count < sizeof bytes);
        for (size_t at = 48; at < count - 4; at += seed < 4 ? 1 : 41) { /* but for the head and the zero at the end */
            if (at == 52) at = 56;
            bytes[at] ^= 4;
            write_file(damaged, bytes, count);
            test_expect(!add_up_rows(context, damaged, 3, &whole), "seed %llu: byte %zu", (unsigned long long)seed, at);
            bytes[at] ^= 4;
        }
        matrix.values = values;
        sp_csr_free(context, &matrix);
        io_names_free(context, &list.names);
        io_graph_free(context, &whole);
    }
    sp_context_destroy(context);
}

TEST(graphs_survive_writing_and_reading_whatever_the_threads)
{
    static const io_format formats[] = {IO_MTX, IO_NATIVE, IO_CSR, IO_DIMACS, IO_TSV};
    const uint64_t seed = 11;
    test_random random = test_seed(seed);
    sp_context *context = test_context(0, 1), *many = test_context(0, 5);
    sp_csr matrix = skewed_matrix(context, &random);
    for (size_t f = 0; f < COUNT(formats); f++) {
        const io_write_options options = {.format = formats[f]};
        const io_read_options reading = {.format = formats[f]};
        ck_ok(context, io_write_graph(context, path_of("one"), &matrix, &options));
        ck_ok(many, io_write_graph(many, path_of("many"), &matrix, &options));
        ck_assert(same_files(path_of("one"), path_of("many")));
        io_graph graph;
        ck_ok(context, io_read_graph(context, path_of("one"), &reading, &graph));
        ck_assert_int_eq(graph.arcs, matrix.nnz);
        for (int64_t e = 0, row = 0; formats[f] == IO_TSV && e < graph.arcs; e++) { /* nodes are in another order */
            while (matrix.row_offsets[row + 1] <= e) row++;
            char label[16] = "";
            memcpy(label, io_name(&graph.names, graph.tails[e]), io_name_length(&graph.names, graph.tails[e]));
            test_expect(atoi(label) == row && io_arc_weight(&graph, e) == ((float *)matrix.values)[e], "line %lld",
                        (long long)e);
        }
        if (formats[f] != IO_TSV) {
            sp_csr again = rows_of(context, &graph);
            test_same(&matrix, &again, seed);
            sp_csr_free(context, &again);
        }
        io_graph_free(context, &graph);
    }
    sp_csr_free(context, &matrix);
    test_end(many, context);
}

TEST(metis_graphs_survive_writing_and_reading)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        sp_context *context = test_context(0, 2);
        test_random random = test_seed(seed);
        const int64_t nodes = 2 + test_below(&random, 200), edges = test_below(&random, 600);
        int32_t *tails = malloc(sizeof *tails * 600), *heads = malloc(sizeof *heads * 600);
        float *weights = malloc(sizeof *weights * 600);
        for (int64_t e = 0; e < edges; e++) {
            tails[e] = (int32_t)test_below(&random, nodes - 1);
            heads[e] = (int32_t)(tails[e] + 1 + test_below(&random, nodes - tails[e] - 1));
            weights[e] = (float)(seed % 2 ? 1 + test_below(&random, 1000) : 1);
        }
        sp_csr matrix;
        ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = nodes, .cols = nodes, .count = edges,
                                                          .row_indices = tails, .col_indices = heads,
                                                          .values = weights}, SP_COMBINE_MAX, true, &matrix));
        const io_write_options options = {.format = IO_METIS};
        const io_read_options reading = {.format = IO_METIS};
        io_graph graph;
        ck_ok(context, io_write_graph(context, path_of("out"), &matrix, &options));
        ck_ok(context, io_read_graph(context, path_of("out"), &reading, &graph));
        sp_csr again = rows_of(context, &graph);
        test_same(&matrix, &again, seed);
        sp_csr_free(context, &again);
        io_graph_free(context, &graph);
        sp_csr_free(context, &matrix);
        free_all(tails, heads, weights);
        sp_context_destroy(context);
    }
}

CONTEXT_TEST(binary_matrices_keep_everything_and_notice_every_changed_byte, 0, 1)
{
    int64_t offsets[] = {0, 2, 3, 3}, groups[] = {0};
    int32_t columns[] = {1, 2, 0};
    double values[] = {0.1, -1e300, 3};
    uint32_t name_offsets[] = {0, 1, 3, 4};
    char letters[] = "abbc";
    const io_names names = {3, groups, name_offsets, letters};
    const sp_csr m = {.rows = 3,
                      .cols = 3,
                      .nnz = 3,
                      .row_offsets = offsets,
                      .col_indices = columns,
                      .values = values,
                      .value_type = SP_F64};
    const io_write_options writing = {.format = IO_CSR, .undirected = true, .names = &names};
    const io_read_options whole = {.matrix = true, .any_sign = true}, arcs = {.any_sign = true},
                          strict = {.matrix = true};
    io_graph graph;
    ck_ok(context, io_write_graph(context, path_of("out"), &m, &writing));
    ck_ok(context, io_read_graph(context, path_of("out"), &whole, &graph));
    ck_assert(graph.format == IO_CSR && graph.undirected && graph.nodes == 3 && graph.names.count == 3);
    test_same(&m, &graph.matrix, 0);
    ck_assert_int_eq(memcmp(io_name(&graph.names, 1), "bb", 2), 0);
    io_graph_free(context, &graph);
    ck_assert_int_ne(io_read_graph(context, path_of("out"), &strict, &graph), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "a negative value"));
    ck_assert_int_ne(io_read_graph(context, path_of("out"), &arcs, &graph), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "a value above 3.4e38"));
    char file[400], message[64];
    const size_t count = length_of(path_of("out"));
    FILE *from = fopen(path_of("out"), "rb");
    ck_assert_uint_eq(fread(file, 1, sizeof file, from), count);
    fclose(from);
    for (size_t cut = 0; cut < count; cut++) {
        snprintf(message, sizeof message, "in: byte %zu: the binary matrix ends too soon", cut);
        expect_failure(file, cut, (io_read_options){.format = IO_CSR, .any_sign = true}, message);
    }
    for (size_t at = 0; at + 4 < count; at++) { /* the last four are not used */
        if (at >= 52 && at < 56) continue;      /* nor are these */
        file[at] = (char)(file[at] ^ 0x20);
        expect_failure(file, count, (io_read_options){.format = IO_CSR, .matrix = true, .any_sign = true},
                       "in: byte ");
        file[at] = (char)(file[at] ^ 0x20);
    }
}

/* ---- numbers as text ------------------------------------------------------------------------------------ */

static void expect_number(const char *text, double value, bool single)
{
    char written[IO_NUMBER];
    size_t length = single ? io_format_f32(written, (float)value) : io_format_f64(written, value);
    ck_assert_uint_lt(length, IO_NUMBER);
    ck_assert_msg(length == strlen(text) && memcmp(written, text, length) == 0, "\"%.*s\" instead of \"%s\"",
                  (int)length, written, text);
}

TEST(numbers_are_written_with_the_fewest_digits)
{
    expect_number("0", 0, true);
    expect_number("0.1", 0.1, true);
    expect_number("-0.25", -0.25, true);
    expect_number("16777216", 16777216, true);
    expect_number("-9007199254740992", -9007199254740992, true); /* the limit of Matrix Market's field integer */
    expect_number("9007199254740992", 9007199254740992, false);
    expect_number("1e-7", 1e-7, true);
    expect_number("3.4028235e38", 3.4028234663852886e38, true);
    expect_number("0.33333334", 1.0 / 3, true);
    expect_number("0.3333333333333333", 1.0 / 3, false);
    expect_number("9007199254740991", 9007199254740991, false);
    expect_number("-1e300", -1e300, false);
    expect_number("8e-301", 8e-301, false); /* of 16 digits, 8.000000000000001e-301 */
    expect_number("1.2345e150", 1.2345e150, false);
    char text[IO_NUMBER];
    ck_assert_uint_eq(io_format_int(text, INT64_MIN), 20);
    ck_assert_int_eq(memcmp(text, "-9223372036854775808", 20), 0);
    for (int64_t i = 1, n = 1; i < 19; i++, n *= 10)
        for (int64_t k = -1; k <= 1; k++) {
            text[io_format_int(text, n + k)] = '\0';
            ck_assert_int_eq(strtoll(text, NULL, 10), n + k);
        }
}

TEST(written_numbers_are_read_back_the_same)
{
    const uint64_t seed = 30;
    test_random random = test_seed(seed);
    for (int64_t i = 0; i < 1000000; i++) {
        const uint64_t bits = test_next(&random);
        const uint32_t half = (uint32_t)bits;
        float single, read;
        double wide, back;
        char text[IO_NUMBER], shortest[IO_NUMBER];
        memcpy(&single, &half, sizeof single);
        if (i % 2) single = (float)(test_unit(&random) * 1000);
        if (!isfinite(single)) continue;
        size_t length = io_format_f32(text, single);
        text[length] = '\0';
        read = strtof(text, NULL);
        test_expect(io_parse_decimal(text, text + length, &back) == text + length && (float)back == single &&
                        read == single,
                    "seed %llu: %.9g is written as %s", (unsigned long long)seed, (double)single, text);
        for (int digits = 1; i % 2 && digits < 9; digits++) { /* %g writes no shorter one that does */
            const int found = snprintf(shortest, sizeof shortest, "%.*g", digits, (double)single);
            test_expect(strtof(shortest, NULL) != single || (size_t)found >= length,
                        "seed %llu: %s is shorter than %s", (unsigned long long)seed, shortest, text);
        }
        memcpy(&wide, &bits, sizeof wide);
        if (i % 20 || !isfinite(wide)) continue;
        length = io_format_f64(text, wide);
        text[length] = '\0';
        test_expect(length < IO_NUMBER && strtod(text, NULL) == wide, "seed %llu: %.17g is written as %s",
                    (unsigned long long)seed, wide, text);
    }
}

const test_entry writing_tests[] = {
    CASE("parallel reading and numbers", 120),
    ONCE(numbers_are_written_with_the_fewest_digits),
    ONCE(written_numbers_are_read_back_the_same),
    CASE_WITH("files", 120, make_folder, remove_folder),
    ONCE(label_clusters_are_lines_of_labels),
    ONCE(native_clusters_are_written_as_mcl_does),
    ONCE(native_columns_are_as_wide_as_the_largest_id_plus_one),
    ONCE(native_graphs_are_written_as_mcl_does),
    ONCE(native_matrices_survive_writing_and_reading),
    ONCE(graphs_are_written_as_their_formats_have_them),
    ONCE(graphs_by_blocks_of_rows_are_those_written_at_once),
    ONCE(metis_writing_refuses_what_metis_has_not),
    ONCE(graphs_survive_writing_and_reading_whatever_the_threads),
    ONCE(the_rows_of_a_binary_matrix_in_parts_are_the_matrix),
    ONCE(metis_graphs_survive_writing_and_reading),
    ONCE(binary_matrices_keep_everything_and_notice_every_changed_byte),
    {0},
};
