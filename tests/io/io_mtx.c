/* test_io: Matrix Market, values of any sign, METIS, tab files. */
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

/* ---- Matrix Market -------------------------------------------------------------------------------------- */

CONTEXT_TEST(matrix_market_is_read_in_its_kinds, 0, 1)
{
    expect_arcs("%%MatrixMarket matrix coordinate real general\n% c\n\n3 3 2\n1 2 0.5\n3 1 2e0\n", automatic,
                "1>0:0.5 0>2:2", 3);
    expect_arcs("%%matrixmarket MATRIX Coordinate Pattern Symmetric\n3 3 2\n2 1\n3 3\n", automatic, "0>1:1 2>2:1", 3);
    expect_arcs("%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n", automatic, "0>1:1 2>2:1", 3);
    expect_arcs("%%MatrixMarket matrix coordinate integer general\n2 2 2\n\n% inner\n1 2 7\n2 1 0\n", automatic,
                "1>0:7", 2);
    expect_arcs("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n", lenient(IO_MTX),
                "1>0:-3 0>1:3", 2);
    io_graph graph =
        read_text(context, "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n", automatic);
    ck_assert(graph.symmetric && graph.format == IO_MTX);
    io_graph_free(context, &graph);
    graph = read_text(context, "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n", automatic);
    ck_assert(!graph.symmetric);
    ck_assert_int_eq(graph.lines, 3);
    io_graph_free(context, &graph);
}

#define GENERAL "%%MatrixMarket matrix coordinate real general\n"

TEST(matrix_market_lies_are_refused)
{
    char *endless = calloc(1, 70001);
    memset(endless, '%', 70000);
    expect_error(endless, as(IO_MTX), "in:1: a line of more than 65536 bytes");
    free(endless);
    expect_error("a b c\n", as(IO_MTX), "in:1: no Matrix Market banner");
    expect_error("", as(IO_MTX), "in:1: no Matrix Market banner");
    expect_error("%%MatrixMarket matrix array real general\n2 2\n", automatic, "in:1: only the coordinate form");
    expect_error("%%MatrixMarket matrix coordinate complex general\n2 2 0\n", automatic,
                 "in:1: a field that is not a weight");
    expect_error("%%MatrixMarket matrix coordinate real hermitian\n2 2 0\n", automatic, "in:1: an unknown symmetry");
    expect_error(GENERAL "% only\n", automatic, "in:3: the file ends before its size line");
    expect_error(GENERAL "2 2\n", automatic, "in:2: no size line");
    expect_error(GENERAL "2 2 1 1\n", automatic, "in:2: too many fields in the size line");
    expect_error(GENERAL "2 -2 1\n", automatic, "in:2: no size line");
    expect_error(GENERAL "2147483648 2147483648 1\n", automatic, "in:2: no size line");
    expect_error(GENERAL "2 2 99999999999999999999\n", automatic, "in:2: no size line");
    expect_error(GENERAL "2 3 1\n1 1 1\n", automatic, "in:2: rows and columns differ");
    expect_error(GENERAL "2 2 1\n3 1 1\n", automatic, "in:3: an index that is not within the matrix (got \"3\")");
    expect_error(GENERAL "2 2 1\n0 1 1\n", automatic, "in:3: an index");
    expect_error(GENERAL "2 2 1\n1 4294967297 1\n", automatic, "in:3: an index");
    expect_error(GENERAL "2 2 1\n1 1\n", automatic, "in:3: the value is not a number");
    expect_error(GENERAL "2 2 1\n1 1 1 1\n", automatic, "in:3: too many fields");
    expect_error(GENERAL "2 2 1\n1 1 1.0D2\n", automatic, "in:3: the value is not a number");
    expect_error(GENERAL "2 2 1\n1 1 -1\n", automatic, "in:3: the value is negative");
    expect_arcs(GENERAL "2 2 1\n1 1 -1\n", lenient(IO_MTX), "0>0:-1", 2);
    expect_error(GENERAL "2 2 1\n1 1 1e99\n", automatic, "in:3: the value is too large");
    expect_error("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", automatic,
                 "in:3: a value that is no");
    expect_error("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", automatic,
                 "in:3: a diagonal");
    expect_error("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 2 1\n", automatic,
                 "in:3: a skew-symm");
    expect_error(GENERAL "2 2 2\n1 1 1\n", automatic, "in:3: 1 entries, but the header says 2");
    expect_error(GENERAL "2 2 0\n1 1 1\n", automatic, "in:3: 1 entries, but the header says 0");
    expect_error(GENERAL "2000000000 2000000000 0\n", automatic, "in: the header claims 2000000000 nodes");
    expect_error(GENERAL "2000000000 2000000000 9000000000000000000\n1 1 1\n", automatic, "in:3: 1 entries, but");
}

/* ---- values of any sign, METIS -------------------------------------------------------------------------- */

CONTEXT_TEST(values_of_any_sign_are_read_strictly_otherwise, 0, 1)
{
    const io_read_options any = {.any_sign = true};
    expect_arcs("a\tb\t-1.5\r\nb\ta\r\n", any, "a>b:-1.5 b>a:1", 2);
    expect_error("a b nan\n", any, "in:1: the weight is not a number");
    expect_error("a b 1\nc\n", any, "in:2: one field where two labels");
    expect_arcs(GENERAL "2 2 1\n1 1 -1\n", any, "0>0:-1", 2);
    expect_arcs("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n", any, "1>0:-3 0>1:3", 2);
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 1:-2 $\n)\n", any, "0>1:-2", 3);
    io_graph graph = read_text(context, "a b -2\nb c -1\n", any);
    ck_assert_int_eq(graph.negative, 2);
    ck_assert_int_eq(graph.odd_lines, 0);
    io_graph_free(context, &graph);
}

CONTEXT_TEST(metis_graphs_are_read_in_their_kinds, 0, 1)
{
    expect_arcs("3 2\n2 3\n1\n1\n", as(IO_METIS), "0>1:1 0>2:1 1>0:1 2>0:1", 3);
    expect_arcs("% c\n4 1 1\r\n\r\n% inner\n4 2.5\r\n\n2 2.5", as(IO_METIS), "1>3:2.5 3>1:2.5", 4);
    expect_arcs("2 1 010 3\n7 8 9 2\n1 2 3 1\n", as(IO_METIS), "0>1:1 1>0:1", 2);
    expect_arcs("2 1 110\n5 7 2\n1 2 1\n", as(IO_METIS), "0>1:1 1>0:1", 2);
    expect_arcs("3 0\n", as(IO_METIS), "", 3);
    expect_arcs("2 1\n2\n1\n\n\n", as(IO_METIS), "0>1:1 1>0:1", 2);
    io_graph graph = read_text(context, "2 1\n2\n1\n", as(IO_METIS));
    ck_assert(graph.undirected && !graph.symmetric && graph.names.count == 0);
    io_graph_free(context, &graph);
}

TEST(metis_lies_are_refused)
{
    expect_error("", as(IO_METIS), "in:1: no header");
    expect_error("% only\n", as(IO_METIS), "in:2: no header");
    expect_error("3\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("3 2 1 1 1\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("3 2 2\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("3 2 011 9999999\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("9999999999 2\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("2 1\n2\n3\n", as(IO_METIS), "in:3: a neighbour that is not a node (got \"3\")");
    expect_error("2 1\n2\n0\n", as(IO_METIS), "in:3: a neighbour that is not a node");
    expect_error("2 1\n2\n-1\n", as(IO_METIS), "in:3: a neighbour that is not a node");
    expect_error("2 1 1\n2 1\n1\n", as(IO_METIS), "in:3: a neighbour without a weight");
    expect_error("2 1 1\n2 1\n1 x\n", as(IO_METIS), "in:3: the weight is not a number");
    expect_error("2 1 10\nx 2\n1 1\n", as(IO_METIS), "in:2: a size or weight of the node");
    expect_error("2 1\n2\n1\n1\n", as(IO_METIS), "in:4: a line of node 3, but the header says 2 nodes");
    expect_error("2 2\n2\n1\n", as(IO_METIS), "in:3: 2 neighbours, but the header says 2 edges, which makes 4");
    expect_error("3 1\n2\n3\n\n", as(IO_METIS), "in:2: node 1 names node 2, but that does not name it in line 3");
    expect_error("2 1 1\n2 1\n1 2\n", as(IO_METIS), "in:2: the edge of nodes 1 and 2 weighs 1 here and 2 in line 3");
    expect_error("2 1\n1 1\n", as(IO_METIS), "in:2: node 1 is its own neighbour; METIS graphs have no loops");
    expect_error("2000000000 0\n", as(IO_METIS), "in: the header claims 2000000000 nodes");
}

/* A METIS graph in which node i + 1 neighbours i and i + 2, read with any threads and blocks. */
TEST(metis_nodes_are_numbered_across_slices)
{
    enum { NODES = 3000 };
    char *text = malloc(NODES * 24);
    size_t at = (size_t)sprintf(text, "%d %d\n", NODES, NODES - 1);
    for (int i = 1; i <= NODES; i++) {
        if (i > 1) at += (size_t)sprintf(text + at, "%d ", i - 1);
        if (i < NODES) at += (size_t)sprintf(text + at, "%d", i + 1);
        at += (size_t)sprintf(text + at, i % 50 ? "\n" : "\n%% a comment\n");
    }
    for (int threads = 1; threads <= 7; threads += 3)
        for (size_t block = 0; block < 3000; block = 5 * block + 70) {
            const io_read_options options = {.format = IO_METIS};
            sp_context *context = test_context(0, threads);
            io_graph graph;
            ck_ok(context, read_spread(context, text, at, &options, block, &graph));
            ck_assert_int_eq(graph.arcs, 2 * (NODES - 1));
            for (int64_t e = 0; e < graph.arcs; e++)
                test_expect(graph.tails[e] == (e + 1) / 2 && graph.heads[e] == (e + 1) / 2 + (e % 2 ? -1 : 1),
                            "%d threads, blocks of %zu: arc %lld is %d>%d", threads, block, (long long)e,
                            graph.tails[e], graph.heads[e]);
            end_graph(context, &graph);
        }
    free(text);
}

/* ---- files: tab, compression ---------------------------------------------------------------------------- */

static void expect_tab(const char *tab, const char *arcs, const char *error)
{
    sp_context *context = test_context(0, 1);
    const char *graph_path = path_of("g.mci"), *tab_path = path_of("g.tab");
    const char *text =
        "(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mcldoms\n3 5 $\n)\n(mclmatrix\nbegin\n3 5 $\n)\n";
    write_file(graph_path, text, strlen(text));
    write_file(tab_path, tab, strlen(tab));
    io_read_options options = {.tab = tab_path};
    io_graph graph;
    sp_status status = io_read_graph(context, graph_path, &options, &graph);
    if (error) {
        ck_assert_int_ne(status, SP_OK);
        const char *message = sp_last_error(context);
        ck_assert_msg(strstr(message, error) != NULL && strncmp(message, tab_path, strlen(tab_path)) == 0, "%s",
                      message);
    } else {
        ck_assert_msg(status == SP_OK, "%s", sp_last_error(context));
        ck_assert_int_eq(graph.names.count, 2);
        ck_ok(context, io_graph_spread(context, &graph));
        ck_assert_str_eq(arcs_of(&graph), arcs);
    }
    end_graph(context, &graph);
}

CONTEXT_TEST(symmetric_files_hold_one_of_both_directions, 0, 1)
{
    expect_error(SYMMETRIC("real symmetric", "2 2 2") "2 1 1\n1 2 1\n", automatic,
                 "in:4: entry 1 2 is the mirror image of an earlier one, and in a symmetric file each stands for both; "
                 "keep one of them, or write general");
    expect_error(SYMMETRIC("pattern symmetric", "% c\n3 3 5") "1 3\n% c\n\n3 2\n2 1\n3 1\n2 2\n", automatic,
                 "in:9: entry 3 1 is the mirror image");
    expect_error(SYMMETRIC("integer skew-symmetric", "3 3 4") "2 1 5\n1 3 0\n3 1 2\n1 2 4\n",
                 (io_read_options){.format = IO_AUTO, .any_sign = true}, "in:6: entry 1 2 is the mirror image");
    expect_arcs(SYMMETRIC("real symmetric", "3 3 3") "1 2 1\n1 3 2\n3 3 4\n", automatic, "1>0:1 2>0:2 2>2:4", 3);
    expect_arcs(SYMMETRIC("real symmetric", "3 3 3") "2 1 1\n1 3 2\n2 3 5\n", automatic, "0>1:1 2>0:2 2>1:5", 3);
    expect_arcs(SYMMETRIC("real symmetric", "2 2 3") "2 1 1\n2 1 3\n1 2 0\n", automatic, "0>1:1 0>1:3", 2);
    expect_arcs(SYMMETRIC("real general", "2 2 2") "2 1 1\n1 2 3\n", automatic, "0>1:1 1>0:3", 2);
    sp_csr matrix;
    const io_adjacency_options options = {0};
    FILE *file = fopen(path_of("a.mtx"), "w");
    fputs(SYMMETRIC("pattern symmetric", "2 2 2") "2 1\n1 2\n", file);
    fclose(file);
    ck_assert_int_ne(io_read_adjacency(context, path_of("a.mtx"), &options, &matrix), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "a.mtx:4: entry 1 2 is the mirror image"));
}

/* Entries on either side of the diagonal, zeros, comments; with any threads and blocks. */
TEST(the_second_of_two_mirror_images_is_named)
{
    enum { NODES = 30, ENTRIES = 60 };
    char *text = malloc(ENTRIES * 30 + 100);
    sp_context *contexts[] = {test_context(0, 1), test_context(0, 3)};
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(300); seed++) {
        test_random random = test_seed(seed);
        bool seen[NODES][NODES] = {{0}};
        const bool skew = test_below(&random, 2);
        const int count = 1 + (int)test_below(&random, ENTRIES);
        size_t at = (size_t)sprintf(text, "%%" SYMMETRIC("real %s", "%d %d %d"), skew ? "skew-symmetric" : "symmetric",
                                    NODES, NODES, count);
        int line = 2, wrong = 0;
        for (int e = 0; e < count; e++) {
            for (; test_below(&random, 5) == 0; line++)
                at += (size_t)sprintf(text + at, "%s", e % 2 ? "\n" : "% 1 2\n");
            int row = (int)test_below(&random, NODES), col = (int)test_below(&random, NODES);
            if (row == col) col = (col + 1) % NODES;
            const int64_t value = test_below(&random, 5);
            at += (size_t)sprintf(text + at, "%d %d %lld\n", row + 1, col + 1, (long long)value);
            line++;
            if (value == 0) continue;
            seen[row][col] = true;
            if (wrong == 0 && seen[col][row]) wrong = line;
        }
        char expected[40];
        snprintf(expected, sizeof expected, "in:%d: entry", wrong);
        for (int i = 0; i < 6; i++) {
            const io_read_options options = {.format = IO_AUTO, .any_sign = true};
            sp_context *context = contexts[i % 2];
            io_graph graph;
            const sp_status status = io_read_memory(context, "in", text, at, &options, (size_t)(i / 2) * 40, &graph);
            test_expect((status == SP_OK) == (wrong == 0), "seed %llu: %s", (unsigned long long)seed, text);
            test_expect(wrong == 0 || strncmp(sp_last_error(context), expected, strlen(expected)) == 0,
                        "seed %llu: \"%s\" instead of \"%s\"", (unsigned long long)seed, sp_last_error(context),
                        expected);
            io_graph_free(context, &graph);
        }
    }
    for (int i = 0; i < 2; i++) sp_context_destroy(contexts[i]);
    free(text);
}

TEST(tab_files_name_the_nodes)
{
    expect_tab("3\ta b\n5\tc\n", "a b>c:1", NULL);
    expect_tab("# x\n0 z\n\n3  a b\n4\ty\n5\tc \tq\r\n9\tw\n", "a b>c \tq:1", NULL);
    expect_tab("5\tc", "?_3>c:1", NULL);
    expect_tab("", "?_3>?_5:1", NULL);
    expect_tab("3\ta\n5\n", NULL, ":2: an id without a label");
    expect_tab("3\ta\nx\tb\n", NULL, ":2: no id at the beginning");
    expect_tab("-3\ta\n", NULL, ":1: no id at the beginning");
    expect_tab("5\ta\n3\tb\n", NULL, ":2: an id that is not above the one before");
    expect_tab("3\ta\n3\tb\n", NULL, ":2: an id that is not above the one before");
}

TEST(a_tab_file_that_names_next_to_nothing_is_refused)
{
    enum { PADDING = 200000 };
    sp_context *context = test_context(0, 1);
    char *text = malloc(PADDING + 200);
    size_t at = (size_t)sprintf(text, "(mclheader\nmcltype matrix\ndimensions 1500000x1500000\n)\n#");
    memset(text + at, '.', PADDING);
    at += PADDING;
    at += (size_t)sprintf(text + at, "\n(mclmatrix\nbegin\n0 1 $\n)\n");
    write_file(path_of("g.mci"), text, at);
    write_file(path_of("g.tab"), "5\ta\n", 4);
    const io_read_options options = {.tab = path_of("g.tab")};
    io_graph graph;
    ck_assert_int_eq(io_read_graph(context, path_of("g.mci"), &options, &graph), SP_ERROR_MATRIX);
    ck_assert_msg(strstr(sp_last_error(context), "of the graph's 1500000 nodes have no label") != NULL, "%s",
                  sp_last_error(context));
    sp_context_destroy(context);
    free(text);
}

const test_entry mtx_tests[] = {
    CASE("formats", 60),
    ONCE(matrix_market_is_read_in_its_kinds),
    ONCE(matrix_market_lies_are_refused),
    ONCE(values_of_any_sign_are_read_strictly_otherwise),
    ONCE(metis_graphs_are_read_in_their_kinds),
    ONCE(metis_lies_are_refused),
    ONCE(the_second_of_two_mirror_images_is_named),
    CASE("parallel reading and numbers", 120),
    ONCE(metis_nodes_are_numbered_across_slices),
    CASE_WITH("files", 120, make_folder, remove_folder),
    ONCE(tab_files_name_the_nodes),
    ONCE(a_tab_file_that_names_next_to_nothing_is_refused),
    ONCE(symmetric_files_hold_one_of_both_directions),
    {0},
};
