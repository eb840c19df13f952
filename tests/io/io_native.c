/* test_io: native matrices of mcl, text and binary. */
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

TEST(native_text_is_read_as_it_occurs_in_the_wild)
{
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 1:2 2 $\n1 0:3 $\n2 2 $\n)\n", automatic, "0>1:2 0>2:1 1>0:3 2>2:1", 3);
    expect_arcs("(mclheader\nmcltype matrix\ndimensions 3x3\n)\n\n(mclmatrix\nbegin\n\n0    1:0.5  $\n2    0:0.5   "
                "2:1.0  $\n)\n",
                automatic, "0>1:0.5 2>0:0.5 2>2:1", 3);
    expect_arcs("# cline: mcl\n\n" HEADER "# y\n(mclmatrix\nbegin\n0 1 # 2 $\n 2 $ 1 0\n  2$\n)", automatic,
                "0>1:1 0>2:1 1>0:1 1>2:1", 3);
    expect_arcs(
        "(mclheader\nfoo bar baz\ndimensions\t3x3\nmcltype   matrix\n)\n(mclmatrix\nbegin\n2:7 1: 2 0 :3 $\n)",
        automatic, "2>0:3 2>1:2", 3);
    expect_arcs("(mclheader\nmcltype matrix\ndimensions 0x0\n)\n(mclmatrix\nbegin\n)\n", automatic, "", 0);
}

TEST(native_repetitions_and_zeros_are_settled_as_mcl_does)
{
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 2:2 1:5 2:9 1:7 $\n1 0:0 2:1 $\n0 1:8 $\n)\n", automatic,
                "0>1:5 0>2:2 1>2:1 0>1:8", 3);
}

CONTEXT_TEST(native_columns_of_endless_repetition_keep_their_first_entries, 0, 1)
{
    enum { ROUNDS = 40000 };
    char *text = malloc(200 + ROUNDS * 20), expected[100];
    size_t at = (size_t)sprintf(text, "(mclheader\nmcltype matrix\ndimensions 9x9\n)\n(mclmatrix\nbegin\n3 8:7\n");
    for (int i = 0; i < ROUNDS; i++)
        at += (size_t)sprintf(text + at, "%d:%d 1:%d 4:0\n", i < 35000 ? 5 : 0, i + 1, i + 2);
    sprintf(text + at, "$\n)\n");
    snprintf(expected, sizeof expected, "3>0:%d 3>1:2 3>5:1 3>8:7", 35001);
    io_graph graph = read_text(context, text, automatic);
    ck_assert_str_eq(arcs_of(&graph), expected);
    io_graph_free(context, &graph);
    free(text);
}

TEST(native_domains_give_ids)
{
    const char *two = "(mclheader\nmcltype matrix\ndimensions 2x2\n)\n";
    char text[400];
    snprintf(text, sizeof text, "%s(mcldoms\n9 5 $\n)\n(mclmatrix\nbegin\n9 5:2 $\n5 9:3 $\n)\n", two);
    expect_arcs(text, automatic, "9>5:2 5>9:3", 2);
    snprintf(text, sizeof text, "%s(mclcols 5 9 $ )\n(mclrows\n5:1 9:1 $\n)\n(mclmatrix\nbegin\n5 9:2 $\n)\n", two);
    expect_arcs(text, automatic, "5>9:2", 2);
    snprintf(text, sizeof text, "%s(mclrows\n0 1 $\n)\n(mclmatrix\nbegin\n0 1:2 $\n)\n", two);
    expect_arcs(text, automatic, "0>1:2", 2);
    snprintf(text, sizeof text, "%s(mclrows\n5 9 $\n)\n(mclmatrix\nbegin\n0 5 $\n)\n", two);
    expect_error(text, automatic, "in: rows (2) and columns (2) are not the same nodes");
    snprintf(text, sizeof text, "%s(mcldoms\n5 $\n)\n(mclmatrix\nbegin\n)\n", two);
    expect_error(text, automatic, "in:7: fewer ids in the domain");
    snprintf(text, sizeof text, "%s(mcldoms\n5 6 7 $\n)\n(mclmatrix\nbegin\n)\n", two);
    expect_error(text, automatic, "in:6: more ids in the domain");
    snprintf(text, sizeof text, "%s(mcldoms\n5 5 $\n)\n(mclmatrix\nbegin\n)\n", two);
    expect_error(text, automatic, "in:7: a domain with a repeated id");
    snprintf(text, sizeof text, "%s(mcldoms\n5 9 $\n)\n(mcldoms\n5 9 $\n)\n(mclmatrix\nbegin\n)\n", two);
    expect_error(text, automatic, "in:8: a second domain");
}

TEST(native_text_refuses_what_is_no_graph)
{
    expect_error("(mclheader\nmcltype matrix\ndimensions 3x4\n)\n(mclmatrix\nbegin\n)\n", automatic,
                 "in: rows (3) and columns (4) are not the same nodes");
    expect_error(HEADER "(mclmatrix\nbegin\n0 3 $\n)\n", automatic, "in:7: row 3 is not in the domain");
    expect_error(HEADER "(mclmatrix\nbegin\n3 0 $\n)\n", automatic, "in:7: column 3 is not in the domain");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1 -1 $\n)\n", automatic, "in:7: an id");
    expect_error(HEADER "(mclmatrix\nbegin\n0 99999999999999999999 $\n)\n", automatic, "in:7: the id is too large");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1:nan $\n)\n", automatic, "in:7: a value that is a number is expected");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1:1e50 $\n)\n", automatic, "in:7: the value is too large");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1:-2 $\n)\n", automatic, "in:7: the value is negative (got \"-2\")");
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 1:-2 $\n)\n", lenient(IO_NATIVE), "0>1:-2", 3);
    expect_error(HEADER "(mclmatrix\nbegin\n0 1:2x $\n)\n", automatic, "in:7: a value that is a number is expected");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1 2 $\n", automatic, "in:8: an id");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1 2", automatic, "in:7: an id");
    expect_error(HEADER "(mclmatrix\nbegin\n)\nmore\n", automatic,
                 "in:8: something follows the matrix (got \"more\")");
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 1 $\n)\nmore\n", lenient(IO_NATIVE), "0>1:1", 3);
    expect_error(HEADER "(mclmatrix\nstart\n)\n", automatic, "in:6: begin is expected");
    expect_error(HEADER "(mclvector\n0 $\n)\n", automatic, "in:5: (mclmatrix or a domain is expected");
    expect_error("(mclmatrix\nbegin\n)\n", automatic, "in:1: (mclheader is expected");
    expect_error("(mclheader\ndimensions 3x3\n)\n(mclmatrix\nbegin\n)\n", automatic,
                 "in:3: a header without mcltype");
    expect_error("(mclheader\nmcltype matrix\n)\n(mclmatrix\nbegin\n)\n", automatic,
                 "in:3: a header without dimensions");
    expect_error("(mclheader\nmcltype matrix\ndimensions 3 x 3\n)\n", automatic, "in:3: dimensions that are not");
    expect_error("(mclheader\nmcltype matrix\ndimensions -3x3\n)\n", automatic, "in:3: dimensions that are not");
    expect_error("(mclheader\nmcltype matrix\ndimensions 99999999999x99999999999\n)\n", automatic,
                 "in:3: dimensions that are not");
    expect_error("(mclheader\nmcltype matrix\ndimensions 2000000000x2000000000\n)\n(mclmatrix\nbegin\n)\n", automatic,
                 "in: the header claims 2000000000 nodes");
}

/* Tokens and comments that lie across the ends of the reader's buffer. */
CONTEXT_TEST(native_text_longer_than_a_buffer_is_read_whole, 0, 1)
{
    const int64_t nodes = 40000;
    char *text = malloc(4000000);
    size_t at = (size_t)sprintf(text, "(mclheader\nmcltype matrix\ndimensions %lldx%lld\n)\n(mclmatrix\nbegin\n",
                                (long long)nodes, (long long)nodes);
    for (int64_t j = 0; j < nodes; j++)
        at += (size_t)sprintf(text + at, "%lld %lld:%.9g # a comment of some length\n %s$\n", (long long)j,
                              (long long)((j * 7919) % nodes), 0.001 * (double)(j + 1), j % 3 ? "" : "         ");
    at += (size_t)sprintf(text + at, ")\n");
    io_graph graph = read_bytes(context, text, at, automatic);
    ck_assert_int_eq(graph.arcs, nodes);
    ck_assert_int_eq(graph.lines, 6 + 2 * nodes + 1);
    for (int64_t j = 0; j < nodes; j++) {
        char printed[32];
        sprintf(printed, "%.9g", 0.001 * (double)(j + 1));
        test_expect(graph.tails[j] == j && graph.heads[j] == (j * 7919) % nodes &&
                        io_arc_weight(&graph, j) == (float)strtod(printed, NULL),
                    "arc %lld", (long long)j);
    }
    io_graph_free(context, &graph);
    free(text);
}

static void put(binary *to, const void *data, size_t count)
{
    memcpy(to->data + to->count, data, count);
    to->count += count;
}

static void put64(binary *to, int64_t number) { put(to, &number, sizeof number); }

static void put_vector(binary *to, int64_t id, int count, const int32_t *ids, const float *values)
{
    const double nothing = 0;
    put64(to, count);
    put64(to, id);
    put(to, &nothing, sizeof nothing);
    for (int i = 0; i < count; i++) {
        put(to, ids + i, 4);
        put(to, values + i, 4);
    }
}

/* Columns {1: 2.5} and {0: 2.5}; what is wrong with it is up to the caller. */
static binary binary_matrix(int64_t cols, int64_t rows, int32_t id, float value, int64_t last)
{
    binary made = {.count = 0};
    put(&made, io_binary_cookie, 4);
    put64(&made, cols);
    put64(&made, rows);
    put64(&made, 3);
    put64(&made, 0);
    put64(&made, 32);
    put64(&made, last);
    put_vector(&made, 0, 1, &id, &value);
    put_vector(&made, 1, 1, (const int32_t[]){0}, (const float[]){2.5f});
    return made;
}

TEST(native_binary_is_read_and_its_lies_are_refused)
{
    sp_context *context = test_context(0, 1);
    binary good = binary_matrix(2, 2, 1, 2.5f, 64);
    io_graph graph = read_bytes(context, good.data, good.count, automatic);
    ck_assert_str_eq(arcs_of(&graph), "0>1:2.5 1>0:2.5");
    ck_assert(graph.format == IO_NATIVE && !graph.symmetric && graph.nodes == 2);
    end_graph(context, &graph);

    for (size_t cut = 4; cut < good.count; cut++) expect_failure(good.data, cut, as(IO_NATIVE), "in: byte ");
    const struct { binary made; const char *message; } bad[] = {
        {binary_matrix(-1, -1, 1, 1, 64), "in: byte 28: a dimension that is not below 2^31 (got -1)"},
        {binary_matrix(2, (int64_t)1 << 31, 1, 1, 64),
         "in: byte 28: a dimension that is not below 2^31 (got 2147483648)"},
        {binary_matrix(2, 3, 1, 1, 64), "in: rows (3) and columns (2) are not the same nodes"},
        {binary_matrix(2, 2, 2, 1, 64), "in: byte 84: a row that is not in the domain (got 2)"},
        {binary_matrix(2, 2, -1, 1, 64), "in: byte 84: a row that is not in the domain (got -1)"},
        {binary_matrix(2, 2, 1, NAN, 64), "in: byte 84: a value that is not finite"},
        {binary_matrix(2, 2, 1, -1, 64), "in: byte 84: a negative value"},
        {binary_matrix(2, 2, 1, 1, 65), "in: byte 116: columns that do not end where their offsets say"},
        {binary_matrix(2, 2, 1, 1, 3), "in: byte 52: column offsets that do not ascend"},
        {binary_matrix(2000000000, 2000000000, 1, 1, 64), "in: byte "},
    };
    good = binary_matrix(2, 2, 1, -1, 64);
    context = test_context(0, 1);
    graph = read_bytes(context, good.data, good.count, lenient(IO_NATIVE));
    ck_assert_str_eq(arcs_of(&graph), "0>1:-1 1>0:2.5");
    ck_assert_int_eq(graph.negative, 1);
    end_graph(context, &graph);
    good = binary_matrix(2, 2, 1, 1, 64);
    good.data[52] = 3; /* entries of the first column */
    expect_failure(good.data, good.count, automatic,
                   "in: byte 76: a vector with more entries than the matrix has rows");
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_failure(bad[i].made.data, bad[i].made.count, automatic, bad[i].message);
}

const test_entry native_tests[] = {
    CASE("formats", 60),
    ONCE(native_text_is_read_as_it_occurs_in_the_wild),
    ONCE(native_repetitions_and_zeros_are_settled_as_mcl_does),
    ONCE(native_columns_of_endless_repetition_keep_their_first_entries),
    ONCE(native_domains_give_ids),
    ONCE(native_text_refuses_what_is_no_graph),
    ONCE(native_text_longer_than_a_buffer_is_read_whole),
    ONCE(native_binary_is_read_and_its_lies_are_refused),
    {0},
};
