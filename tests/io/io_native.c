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

/* ---- parts of a file --------------------------------------------------------------------------------------- */

/* A matrix as it may be written: columns in any order or twice, several a line, broken, with comments; kind: bit 0 ids
 * of the caller's, bit 1 no newline at the end. */
static size_t random_native(test_random *random, uint64_t kind, int64_t nodes, int64_t columns, char *text, size_t room)
{
    FILE *file = fmemopen(text, room, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "# $\n(mclheader\nmcltype matrix\ndimensions %lldx%lld\n)\n", (long long)nodes, (long long)nodes);
    if (kind & 1) {
        fprintf(file, "(mcldoms\n");
        for (int64_t i = 0; i < nodes; i++) fprintf(file, "%lld ", (long long)(3 * i + 1));
        fprintf(file, "$\n)\n");
    }
    fprintf(file, "(mclmatrix\nbegin\n");
    for (int64_t k = 0; k < columns; k++) {
        const int64_t scale = kind & 1 ? 3 : 1, shift = kind & 1;
        fprintf(file, "%lld", (long long)(test_below(random, nodes) * scale + shift));
        for (int64_t e = test_below(random, 6); e > 0; e--)
            fprintf(file, "%s%lld:%g", test_below(random, 5) ? " " : " # of $\n  ",
                    (long long)(test_below(random, nodes) * scale + shift), (double)test_below(random, 100) / 8);
        fprintf(file, test_below(random, 4) ? " $\n" : test_below(random, 2) ? " $ " : "$ # $ \n");
    }
    fprintf(file, kind & 2 ? ")" : ")\n");
    const size_t count = (size_t)ftell(file);
    ck_assert(count < room && fclose(file) == 0);
    return count;
}

/* Whether the parts of a file add up to a graph; then it is the whole, NULL: a file that is refused. */
static bool add_up_columns(sp_context *context, const char *path, int parts, const io_graph *whole)
{
    int64_t arcs = 0, lines = 0, bytes = 0;
    bool sound = true, same = true;
    for (int part = 0; part < parts; part++) {
        const io_read_options options = {.format = IO_NATIVE, .part = part, .parts = parts};
        io_graph graph;
        ck_ok(context, io_read_graph(context, path, &options, &graph));
        sound = sound && graph.part.entries == 0 && graph.part.announced == 0;
        for (int64_t k = 0; k < graph.arcs && sound && whole; k++, arcs++)
            same = same && arcs < whole->arcs && graph.tails[k] == whole->tails[arcs] &&
                   graph.heads[k] == whole->heads[arcs] && io_arc_weight(&graph, k) == io_arc_weight(whole, arcs);
        for (int64_t i = 0; i < graph.nodes && sound && whole; i++)
            same = same && graph.nodes == whole->nodes && !graph.ids == !whole->ids &&
                   (!graph.ids || graph.ids[i] == whole->ids[i]);
        lines += graph.lines;
        bytes += graph.bytes;
        io_graph_free(context, &graph);
    }
    if (!sound) return false;
    ck_assert(whole && same && arcs == whole->arcs && lines == whole->lines && bytes == whole->bytes);
    return true;
}

/* Of each file with one byte that is another the parts say nothing else than the whole. */
static void damage(sp_context *context, const char *path, char *bytes, size_t count)
{
    for (size_t at = 0; at < count; at += 1 + count / 300) {
        const io_read_options options = {.format = IO_NATIVE};
        const char kept = bytes[at];
        io_graph whole;
        bytes[at] = at % 3 == 0 ? '$' : at % 3 == 1 ? '\n' : (char)(kept ^ 4);
        write_file(path, bytes, count);
        const bool right = io_read_graph(context, path, &options, &whole) == SP_OK;
        if (right) ck_ok(context, io_graph_spread(context, &whole));
        add_up_columns(context, path, 3, right ? &whole : NULL);
        if (right) io_graph_free(context, &whole);
        bytes[at] = kept;
    }
}

TEST(the_columns_of_a_native_matrix_in_parts_are_the_matrix)
{
    static char text[1 << 16];
    const io_read_options options = {.format = IO_NATIVE};
    const char *path = path_of("parts.mci");
    sp_context *context = test_context(0, 1);
    for (uint64_t seed = 0; seed < 16; seed++) {
        test_random random = test_seed(seed + 1);
        const int64_t columns = seed < 4 ? (int64_t)seed / 2 : 40 + test_below(&random, 400);
        size_t count = random_native(&random, seed % 4, 1 + test_below(&random, 60), columns, text, sizeof text);
        bool can = false;
        io_graph whole;
        write_file(path, text, count);
        ck_ok(context, io_read_graph(context, path, &options, &whole));
        if (seed >= 8) { /* the same in binary */
            sp_csr matrix;
            int64_t *ids = whole.ids;
            whole.ids = NULL;
            ck_ok(context, io_graph_matrix(context, &whole, false, SP_COMBINE_MAX, false, &matrix));
            ck_ok(context, io_write_native_matrix(context, path, &matrix, ids, NULL, 7, true, NULL));
            sp_csr_free(context, &matrix);
            sp_free(context, ids);
            io_graph_free(context, &whole);
            ck_ok(context, io_read_graph(context, path, &options, &whole));
            FILE *file = fopen(path, "rb");
            count = fread(text, 1, sizeof text, file);
            ck_assert(fclose(file) == 0 && count < sizeof text);
        }
        ck_ok(context, io_can_part(context, path, &options, &can));
        ck_assert(can);
        ck_ok(context, io_graph_spread(context, &whole));
        for (int parts = 2; parts <= 64; parts *= 2) /* a last part may begin behind all columns */
            ck_assert(add_up_columns(context, path, parts, &whole) || (seed < 8 && (columns < 40 || parts > 16)));
        damage(context, path, text, count);
        io_graph_free(context, &whole);
    }
    sp_context_destroy(context);
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
    CASE_WITH("parts of native matrices", 60, make_folder, remove_folder),
    ONCE(the_columns_of_a_native_matrix_in_parts_are_the_matrix),
    {0},
};
