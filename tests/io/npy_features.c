/* test_npy: features and classes of nodes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "npy_shared.h"

/* The numbers of dense features as text. */
static const char *dense_text(const sp_dense *dense)
{
    static char text[512];
    size_t at = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < dense->rows; i++, at += (size_t)snprintf(text + at, sizeof text - at, "|"))
        for (int64_t j = 0; j < dense->cols; j++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%g", j ? " " : "",
                                   (double)((float *)dense->values)[i * dense->stride + j]);
    return text;
}

CONTEXT_TEST(features_are_read_from_text, 0, 2)
{
    static const struct { const char *text, *expected; } cases[] = {
        {"1,2.5,0\n-3,4e2,1\n", "1 2.5 0|-3 400 1|"},
        {"a,b,\"c d\"\r\n1,2,3\r\n4,5,6", "1 2 3|4 5 6|"},
        {"# made by hand\n\nx y\n1 2\n%\n3  4 \n", "1 2|3 4|"},
        {"1;2\n3 ; 4\n", "1 2|3 4|"},
        {"\t1\t2\n3\t4\n", "1 2|3 4|"},
        {"7\n", "7|"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        sp_dense dense;
        sp_csr sparse;
        io_names names;
        ck_ok(context, io_read_features(context, text_of("f.csv", cases[c].text), NULL, &dense, &sparse, &names, NULL));
        ck_assert_str_eq(dense_text(&dense), cases[c].expected);
        ck_assert_ptr_null(sparse.row_offsets);
        sp_dense_free(context, &dense);
    }
}

static const char *names_text(const io_names *names)
{
    static char text[256];
    char *at = text;
    *at = '\0';
    for (int64_t i = 0; i < names->count; i++)
        at += sprintf(at, "%s%.*s", i > 0 ? "|" : "", (int)io_name_length(names, i), io_name(names, i));
    return text;
}

CONTEXT_TEST(a_column_of_features_may_name_the_nodes, 0, 1)
{
    static const struct { const char *text, *names, *expected; } cases[] = {
        {"id,x,y\n7,1,2\n3,3,4\n", "7|3", "1 2|3 4|"},
        {"x,Node,y\n1,a,2\n3,b,4\n", "a|b", "1 2|3 4|"},
        {",id,x,y\n0,a,1,2\n1,b,3,4\n", "a|b", "1 2|3 4|"}, /* the index of a data frame */
        {"gene,x,y\n\"a, b\",1,2\nc,3,4\n", "a, b|c", "1 2|3 4|"},
        {"a,1,2\nb,3,4\n", "a|b", "1 2|3 4|"},
        {",0,1\n0,1,2\n1,3,4\n", "0|1", "1 2|3 4|"},
        {"\"x\" \"y\"\n\"1\" 1 2\n\"2\" 3 4\n", "1|2", "1 2|3 4|"},
        {"id,0,1\na,1,2\nb,3,4\n", "a|b", "1 2|3 4|"},
        {"# of genes\n  name x\n\n a   1\n# b\n  c 2 \n", "a|c", "1|2|"},
        {"id\tx\r\na b\t1\r\nc\t2", "a b|c", "1|2|"},
        {"id,x\na,1\n", "a", "1|"},
        {"1,2\n3,4\n", "", "1 2|3 4|"},
        {"x,y\n1,2\n", "", "1 2|"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        sp_dense dense;
        sp_csr sparse;
        io_names names;
        ck_ok(context, io_read_features(context, text_of("f.csv", cases[c].text), NULL, &dense, &sparse, &names, NULL));
        ck_assert_str_eq(names_text(&names), cases[c].names);
        ck_assert_str_eq(dense_text(&dense), cases[c].expected);
        sp_dense_free(context, &dense);
        io_names_free(context, &names);
    }
}

CONTEXT_TEST(features_have_the_names_of_their_columns, 0, 1)
{
    static const struct { const char *text, *expected; } cases[] = {
        {"id,x,y\n7,1,2\n3,3,4\n", "x|y"},
        {"x,Node,y\n1,a,2\n3,b,4\n", "x|y"},
        {"x,y\na,1,2\nb,3,4\n", "x|y"},
        {",0,1\n0,1,2\n1,3,4\n", "0|1"},
        {"\"x\" \"y z\"\n\"1\" 1 2\n\"2\" 3 4\n", "x|y z"},
        {"# of genes\n  name x\n\n a   1\n", "x"},
        {"a;\"b \"\"c\"\"\"\r\n1;2\r\n", "a|b \"c\""},
        {"a,1,2\nb,3,4\n", ""},
        {"1,2\n3,4\n", ""},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        sp_dense dense;
        sp_csr sparse;
        io_names names, headings;
        ck_ok(context,
              io_read_features(context, text_of("f.csv", cases[c].text), NULL, &dense, &sparse, &names, &headings));
        test_expect(strcmp(names_text(&headings), cases[c].expected) == 0, "case %zu: %s", c, names_text(&headings));
        sp_dense_free(context, &dense);
        io_names_free(context, &names);
        io_names_free(context, &headings);
    }
}

/* Lines of more than a block, and as many that threads share them. */
CONTEXT_TEST(features_of_long_and_many_lines_are_read, 0, 3)
{
    static const int64_t shapes[][2] = {{3, 100000}, {60000, 3}};
    for (int s = 0; s < 2; s++) {
        const int64_t rows = shapes[s][0], cols = shapes[s][1];
        char *text = malloc((size_t)(rows * cols) * 8 + 1000000), *at = text;
        for (int64_t j = 0; j < cols; j++) at += sprintf(at, "c%lld%c", (long long)j, j + 1 < cols ? ',' : '\n');
        for (int64_t e = 0; e < rows * cols; e++)
            at += sprintf(at, "%lld%c", (long long)(e % 9973), (e + 1) % cols ? ',' : '\n');
        sp_dense dense;
        sp_csr sparse;
        io_names names;
        ck_ok(context, io_read_features(context, file_of("f.csv", text, (size_t)(at - text)), NULL, &dense, &sparse,
                                        &names, NULL));
        ck_assert(dense.rows == rows && dense.cols == cols);
        for (int64_t e = 0; e < rows * cols; e++)
            test_expect(((float *)dense.values)[e] == (float)(e % 9973), "element %lld", (long long)e);
        sp_dense_free(context, &dense);
        free(text);
    }
}

CONTEXT_TEST(features_are_read_from_both_forms_of_matrix_market, 0, 2)
{
    sp_dense dense;
    sp_csr sparse;
    io_names names;
    const char *coordinate = "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 3 -1.5\n2 1 2\n1 1 0\n";
    ck_ok(context, io_read_features(context, text_of("f.mtx", coordinate), NULL, &dense, &sparse, &names, NULL));
    ck_assert(!dense.values && sparse.rows == 2 && sparse.cols == 3 && sparse.nnz == 2);
    ck_assert(sparse.col_indices[0] == 2 && test_value(&sparse, 0) == -1.5 && test_value(&sparse, 1) == 2);
    sp_csr_free(context, &sparse);
    const char *array = "%%MatrixMarket matrix array real general\n% columns\n2 3\n1\n2\n0\n4\n-5\n6\n";
    ck_ok(context, io_read_features(context, text_of("f.mtx", array), NULL, &dense, &sparse, &names, NULL));
    ck_assert_str_eq(dense_text(&dense), "1 0 -5|2 4 6|");
    sp_dense_free(context, &dense);
}

CONTEXT_TEST(features_of_numpy_are_taken_as_they_are, 0, 2)
{
    sp_dense dense;
    sp_csr sparse;
    io_names names;
    const bytes file = array_of("<f8", "False", "(1, 3)", doubles, 24);
    ck_ok(context,
          io_read_features(context, file_of("f.npy", file.at, file.count), NULL, &dense, &sparse, &names, NULL));
    ck_assert_str_eq(dense_text(&dense), "1 -0.5 0|");
    sp_dense_free(context, &dense);
    static const csr_members members = {"\2\3", "\0\2\3", "\0\2\1", "\5\6\7", "csr", 3, 3, 3};
    const bytes packed = csr_archive(&members);
    ck_ok(context,
          io_read_features(context, file_of("f.npz", packed.at, packed.count), NULL, &dense, &sparse, &names, NULL));
    ck_assert(!dense.values && sparse.nnz == 3 && test_value(&sparse, 2) == 7);
    sp_csr_free(context, &sparse);
}

CONTEXT_TEST(features_that_are_none_are_refused, 0, 1)
{
    static const struct { const char *text, *sentence; } cases[] = {
        {"1,2\n3\n", ":2: fewer numbers than in the first row (got \"3\")"},
        {"1,2\n3,4,5\n", ":2: more numbers than in the first row (got \"5\")"},
        {"1,2\n\n3,x\n", ":3: a feature that is not a number (got \"x\")"},
        {"1,2\n3,nan\n", ":2: a feature that is not a number (got \"nan\")"},
        {"nan,1\n2,3\n", ":1: a feature that is not a number (got \"nan\")"},
        {"x,1\n2,3\n", ":1: a feature that is not a number (got \"x\")"},
        {"1,2\n3,\n", ":2: a feature that is not a number (got \"\")"},
        {"1,2\n,3\n", ":2: a feature that is not a number (got \"\")"},
        {"a,b\n1,2\nc,d\n", ":3: a feature that is not a number (got \"c\")"},
        {"id,x\na,1\nb,NA\n", ":3: a feature that is missing, in column 2 (got \"b,NA\")"},
        {"id,x\na,1\nb,2,3\n", ":3: more numbers than in the first row (got \"3\")"},
        {"id,x\na,1\na,2\n", ":3: a second row for this node (got \"a\")"},
        {"id,x\n\"a,1\n", ":2: a quote that is not closed on its line"},
        {"id\n", ": no features"},
        {"1,1e39\n", ":1: a feature that is too large (got \"1e39\")"},
        {"a,b\n", ": no features"},
        {"", ": no features"},
        {"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", ":5: 3 entries, but the header says 4"},
        {"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n", ":1: a symmetry that rows of numbers do not"},
        {"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", ":3: an index that is not within"},
        {"%%MatrixMarket matrix coordinate real general\n2 2000000000 0\n", ": the header claims 2000000000 nodes"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        sp_dense dense;
        sp_csr sparse;
        io_names names;
        const char *path = text_of("f.txt", cases[c].text);
        failed(context, io_read_features(context, path, NULL, &dense, &sparse, &names, NULL), path, cases[c].sentence);
        ck_assert(!dense.values && !sparse.row_offsets);
    }
}

CONTEXT_TEST(features_that_are_not_finite_are_refused_by_row, 0, 2)
{
    sp_dense dense;
    sp_csr sparse;
    io_names names;
    const bytes nan = array_of("<f4", "False", "(3, 1)", "\0\0\0\0\0\0\xc0\x7f\0\0\xc0\x7f", 12);
    const bytes large = array_of("<f8", "False", "(3, 1)", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x7f", 24);
    const char *path = file_of("f.npy", nan.at, nan.count);
    failed(context, io_read_features(context, path, NULL, &dense, &sparse, &names, NULL), path,
           ": row 1 (from 0) has a number");
    path = file_of("f.npy", large.at, large.count);
    failed(context, io_read_features(context, path, NULL, &dense, &sparse, &names, NULL), path,
           ": row 2 (from 0) has a number");
    const bytes flat = array_of("<f4", "False", "(3,)", "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    path = file_of("f.npy", flat.at, flat.count);
    failed(context, io_read_features(context, path, NULL, &dense, &sparse, &names, NULL), path,
           ": 1 dimensions; features");
}

TEST(text_of_features_takes_no_more_memory_than_promised)
{
    enum { LINES = 1 << 19 };
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 2);
    char *text = malloc(LINES * 8);
    sp_dense dense;
    sp_csr sparse;
    io_names names;
    for (int64_t i = 0; i < LINES; i++) memcpy(text + 8 * i, "1,1,1,1\n", 8);
    ck_ok(context, io_read_features(context, file_of("f.csv", text, LINES * 8), NULL, &dense, &sparse, &names, NULL));
    test_expect(heap.peak_bytes <= 16 * (int64_t)(LINES * 8) + (64 << 20), "%.1f times the file",
                (double)heap.peak_bytes / (LINES * 8));
    sp_dense_free(context, &dense);
    sp_context_destroy(context);
    free(text);
}

/* ---- classes ----------------------------------------------------------------------------------------- */

static void expect_classes(sp_context *context, const char *path, const char *expected)
{
    io_classes classes;
    ck_ok(context, io_read_classes(context, path, NULL, &classes));
    ck_assert_str_eq(classes_text(&classes), expected);
    io_classes_free(context, &classes);
}

CONTEXT_TEST(classes_are_numbers_or_names, 0, 1)
{
    static const struct { const char *text, *expected; } cases[] = {
        {"0\n2\n-1\n1\n", "3: 0 2 -1 1"},
        {"# a\r\n 1 \r\n0", "2: 1 0"},
        {"red\nblue green\nred\n", "2: 1 0 1 blue green red"},
        {"label\n3\n0\n", "4: 3 0"},
        {"Class\nred\nblue\n", "2: 1 0 blue red"},
        {"red\n", "1: 0 red"},
        {"b\nab\na\n\xc3\xa9\nA\nab\n", "5: 3 2 1 4 0 2 A a ab b \xc3\xa9"},
        {"-1\n", "0: -1"},
        {"%%MatrixMarket matrix coordinate pattern general\n3 2 3\n1 2\n3 1\n3 2\n", "2: 01 00 11"},
        {"%%MatrixMarket matrix array integer general\n2 2\n1\n0\n1\n1\n", "2: 11 01"},
        {"%%MatrixMarket matrix array integer general\n4 1\n2\n0\n-1\n1\n", "3: 2 0 -1 1"},
        {"%%MatrixMarket matrix coordinate pattern general\n3 1 1\n2 1\n", "1: 0 1 0"},
    };
    for (size_t c = 0; c < COUNT(cases); c++)
        expect_classes(context, text_of("l.txt", cases[c].text), cases[c].expected);
}

CONTEXT_TEST(labels_that_are_missing_are_unknown, 0, 1)
{
    static const struct { const char *text, *expected; } cases[] = {
        {"0\nnan\n1\nNaN\n-nan\nNA\nn/a\n#N/A\n<NA>\nNULL\nnone\nNone\n\"\"\n-1\n-1.0\n1\n",
         "2: 0 -1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 1"},
        {"NA\n1\n0\n", "2: -1 1 0"},
        {"nan\nnan\n", "0: -1 -1"},
        {"red\nNaN\nblue\n", "2: 1 -1 0 blue red"},
        {"NaN\nred\nblue\n", "2: -1 1 0 blue red"},
        {"green\nNA\n1\n0\n", "2: -1 1 0"},
        {"0\n\n1\n", "2: 0 -1 1"},
        {"\n\n0\n\n \n1\n# 7\n\n\n", "2: 0 -1 -1 1"}, /* not before the first and behind the last */
        {"green\n\nred\n\nred\n", "2: 0 -1 1 -1 1 green red"},
        {"\"none\"\nmild\n\"0.5\"\n", "3: 1 2 0 \"0.5\" \"none\" mild"}, /* quotes are a part of a name */
        {"Nancy\nNaN1\nnano\n", "3: 1 0 2 NaN1 Nancy nano"},
    };
    for (size_t c = 0; c < COUNT(cases); c++)
        expect_classes(context, text_of("l.txt", cases[c].text), cases[c].expected);
}

CONTEXT_TEST(whole_numbers_may_be_written_as_decimals, 0, 1)
{
    static const struct { const char *text, *expected; } cases[] = {
        {"1.0\n0.0\nnan\n2.0\n", "3: 1 0 -1 2"},
        {"1.000000000000000000e+00\n-0.0\n3.\n6e0\n", "7: 1 0 3 6"},
        {"green\n1.0\n\n0.0\n", "2: 1 -1 0"},
        {"alpha\nbeta\n1.0\n1\n0.37\n", "5: 3 4 2 1 0 0.37 1 1.0 alpha beta"}, /* names remain names */
    };
    for (size_t c = 0; c < COUNT(cases); c++)
        expect_classes(context, text_of("l.txt", cases[c].text), cases[c].expected);
}

CONTEXT_TEST(floats_of_numpy_are_classes_where_they_are_whole, 0, 1)
{
    static const float narrow[] = {1, -1, 0, 7, 2.5f};
    static const double wide[] = {3, -1, 65535, 0, 0.37, 65536, -2, 1e300};
    float missing[2] = {NAN, 4};
    io_classes classes;
    const struct {
        const char *type, *shape, *expected;
        const void *values;
        size_t count;
    } good[] = {{"<f4", "(4,)", "8: 1 -1 0 7", narrow, 16},
                {"<f4", "(2, 1)", "5: -1 4", missing, 8},
                {"<f8", "(4,)", "65536: 3 -1 65535 0", wide, 32},
                {"<f2", "(3,)", "2: -1 1 0", "\x00\x7e\x00\x3c\0\0", 6}};
    const struct {
        const char *type, *shape, *sentence;
        const void *values;
        size_t count;
    } bad[] = {{"<f4", "(5,)", ": element 4 (from 0) is not a class (got \"2.5\"); gnn learns classes", narrow, 20},
               {"<f8", "(5,)", ": element 4 (from 0) is not a class (got \"0.37\"); gnn learns classes", wide, 40},
               {"<f8", "(1,)", ": element 0 (from 0) is not a class (got \"65536\"); number the classes", wide + 5, 8},
               {"<f8", "(1,)", ": element 0 (from 0) is not a class (got \"-2\"); number the classes", wide + 6, 8},
               {"<f8", "(1,)", ": element 0 (from 0) is not a class (got \"1e+300\"); number the classes", wide + 7,
                8}};
    for (size_t c = 0; c < COUNT(good); c++) {
        const bytes file = array_of(good[c].type, "False", good[c].shape, good[c].values, good[c].count);
        expect_classes(context, file_of("l.npy", file.at, file.count), good[c].expected);
    }
    for (size_t c = 0; c < COUNT(bad); c++) {
        const bytes file = array_of(bad[c].type, "False", bad[c].shape, bad[c].values, bad[c].count);
        const char *path = file_of("l.npy", file.at, file.count);
        failed(context, io_read_classes(context, path, NULL, &classes), path, bad[c].sentence);
    }
}

CONTEXT_TEST(classes_of_numpy_have_one_dimension_or_two, 0, 1)
{
    static const struct { const char *type, *shape, *values, *expected; size_t count; } cases[] = {
        {"|i1", "(3,)", "\1\xff\2", "3: 1 -1 2", 3},
        {"|i1", "(3, 1)", "\1\0\2", "3: 1 0 2", 3},
        {"|b1", "(2, 3)", "\1\0\1\0\0\0", "3: 101 000", 6},
        {"<f4", "(1, 2)", "\0\0\x80\x3f\0\0\0\0", "2: 10", 8},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        const bytes file = array_of(cases[c].type, "False", cases[c].shape, cases[c].values, cases[c].count);
        expect_classes(context, file_of("l.npy", file.at, file.count), cases[c].expected);
    }
}

CONTEXT_TEST(what_is_no_class_is_refused, 0, 1)
{
    static const struct { const char *text, *sentence; } cases[] = {
        {"0\n-2\n", ":2: a label that is not a class (got \"-2\")"},
        {"0\nx\n", ":2: a label that is not a class (got \"x\")"},
        {"0\n1.5\n", ":2: a label that is not a class (got \"1.5\"); gnn learns classes, not values"},
        {"0.37\n0.91\n", ":1: a label that is not a class (got \"0.37\"); gnn learns classes, not values"},
        {"y\nNA\n0.37\n", ":3: a label that is not a class (got \"0.37\")"},
        {"0,37\n0,91\n", ":1: several numbers (got \"0,37\"); write the class alone"},
        {"red\n5 3\n", ":2: several numbers (got \"5 3\")"},
        {"-3.0\n", ":1: a label that is not a class (got \"-3.0\"); number the classes from 0"},
        {"1.0\nalpha\n", ":2: a label that is not a class (got \"alpha\"); the first one is a number"},
        {"p7,red\np3,red\np5,blue\n", ": no two lines are the same, as in a table of nodes and classes"},
        {"node\tclass\np7\tred\np3\tred\np5\tblue\n", ": no two lines are the same"},
        {"%%MatrixMarket matrix array real general\n2 1\n1\n0.5\n", ": element 1 (from 0) is not a class"},
        {"0\n65536\n", ":2: a label that is not a class (got \"65536\")"},
        {"0\n99999999999999999999\n", ":2: a label that is not a class"},
        {"", ": no labels"},
        {"%%MatrixMarket matrix array integer general\n1 2\n1\n2\n", ": row 0 (from 0) has a number other"},
    };
    io_classes classes;
    for (size_t c = 0; c < COUNT(cases); c++) {
        const char *path = text_of("l.txt", cases[c].text);
        failed(context, io_read_classes(context, path, NULL, &classes), path, cases[c].sentence);
        ck_assert(!classes.labels && !classes.targets);
    }
    const bytes negative = array_of("|i1", "False", "(2,)", "\0\xfe", 2);
    const char *path = file_of("l.npy", negative.at, negative.count);
    failed(context, io_read_classes(context, path, NULL, &classes), path, ": element 1 (from 0) is not a class");
    const bytes cube = array_of("|i1", "False", "(1, 1, 1)", "\0", 1);
    path = file_of("l.npy", cube.at, cube.count);
    failed(context, io_read_classes(context, path, NULL, &classes), path, ": 3 dimensions");
}

CONTEXT_TEST(masks_are_no_numbers, 0, 1)
{
    int32_t *numbers;
    int64_t count;
    const bytes file = array_of("|b1", "False", "(3,)", "\1\0\1", 3);
    const char *path = file_of("n.npy", file.at, file.count);
    failed(context, io_read_numbers(context, path, NULL, 0, 5, NULL, &numbers, &count), path,
           ": bools, not numbers; of a mask save numpy.flatnonzero");
}

CONTEXT_TEST(numbers_are_read_within_their_range, 0, 1)
{
    static const char *const words[] = {"none", "some", NULL};
    int32_t *numbers;
    int64_t count;
    ck_ok(context, io_read_numbers(context, text_of("n", "3\n\n5 \n# 7\n4"), NULL, 3, 5, NULL, &numbers, &count));
    ck_assert(count == 3 && numbers[0] == 3 && numbers[1] == 5 && numbers[2] == 4);
    sp_free(context, numbers);
    ck_ok(context, io_read_numbers(context, text_of("n", "some\n2\nnone\n"), NULL, 1, 2, words, &numbers, &count));
    ck_assert(count == 3 && numbers[0] == 2 && numbers[1] == 2 && numbers[2] == 1);
    sp_free(context, numbers);
    const char *path = text_of("n", "3\n6\n");
    failed(context, io_read_numbers(context, path, NULL, 3, 5, NULL, &numbers, &count), path,
           ":2: a number that is out of range (got \"6\"); write whole numbers from 3 to 5");
    const bytes file = array_of("|i1", "False", "(2,)", "\3\2", 2);
    path = file_of("n.npy", file.at, file.count);
    failed(context, io_read_numbers(context, path, NULL, 3, 5, NULL, &numbers, &count), path,
           ": element 1 (from 0) is out of range (got \"2\")");
}

static void expect_weights(sp_context *context, const char *path, int64_t nodes, int each, const int64_t *wanted)
{
    int64_t *weights;
    int found;
    ck_ok(context, io_read_node_weights(context, path, NULL, nodes, &weights, &found));
    ck_assert_int_eq(found, each);
    for (int64_t i = 0; i < nodes * each; i++) ck_assert_int_eq(weights[i], wanted[i]);
    sp_free(context, weights);
}

static void refuse_weights(sp_context *context, const char *path, const char *why)
{
    int64_t *weights;
    int each;
    failed(context, io_read_node_weights(context, path, NULL, 2, &weights, &each), path, why);
    ck_assert_ptr_null(weights);
}

CONTEXT_TEST(weights_of_nodes_are_whole_numbers, 0, 1)
{
    const int64_t largest = INT64_C(1) << 53, one[] = {3, largest}, three[] = {1, 2, 3, 0, 5, 6};
    expect_weights(context, text_of("n", "# heavy\n3\n\n9007199254740992\n"), 2, 1, one);
    expect_weights(context, text_of("n", "1 2\t3\r\n 0 5 6"), 2, 3, three);
    expect_weights(context, text_of("n", ""), 0, 1, NULL);
    bytes file = array_of("|u1", "False", "(2, 3)", "\1\2\3\0\5\6", 6);
    expect_weights(context, file_of("n.npy", file.at, file.count), 2, 3, three);
    file = array_of("|u1", "True", "(2, 3)", "\1\0\2\5\3\6", 6);
    expect_weights(context, file_of("n.npy", file.at, file.count), 2, 3, three);
    refuse_weights(context, text_of("n", "1\n9007199254740993\n"), ":2: the weight is not a whole number");
    refuse_weights(context, text_of("n", "-1\n2\n"), ":1: the weight is not a whole number (got \"-1\")");
    refuse_weights(context, text_of("n", "1 2\n1\n"), ":2: too few weights");
    refuse_weights(context, text_of("n", "1\n1 2\n"), ":2: too many weights");
    refuse_weights(context, text_of("n", "1\n2\n3\n"), ": weights of 3 nodes, but the graph has 2");
    file = array_of("|i1", "False", "(2,)", "\1\377", 2);
    refuse_weights(context, file_of("n.npy", file.at, file.count), ": element 1 (from 0) is no weight (got \"-1\")");
    file = array_of("|i1", "False", "(3,)", "\1\2\3", 3);
    refuse_weights(context, file_of("n.npy", file.at, file.count), ": weights of 3 nodes, but the graph has 2");
    file = array_of("|i1", "False", "(2, 0)", "", 0);
    refuse_weights(context, file_of("n.npy", file.at, file.count), ": 0 weights a node");
    file = array_of("|i1", "False", "(1, 1, 2)", "\1\2", 2);
    refuse_weights(context, file_of("n.npy", file.at, file.count), ": 3 dimensions");
}

CONTEXT_TEST(names_are_read_and_differ, 0, 1)
{
    io_names names;
    ck_ok(context, io_read_names(context, text_of("c", "7\nred wine\n"), NULL, 3, &names));
    ck_assert(names.count == 2 && io_name_length(&names, 1) == 8 && memcmp(io_name(&names, 1), "red wine", 8) == 0);
    io_names_free(context, &names);
    const char *path = text_of("c", "a\nb\na\n");
    failed(context, io_read_names(context, path, NULL, 3, &names), path, ":3: a name that is there twice (got \"a\")");
}

const test_entry features_tests[] = {
    CASE_WITH("nodes", 120, make_folder, remove_folder),
    ONCE(features_are_read_from_text),
    ONCE(features_of_long_and_many_lines_are_read),
    ONCE(a_column_of_features_may_name_the_nodes),
    ONCE(features_have_the_names_of_their_columns),
    ONCE(features_are_read_from_both_forms_of_matrix_market),
    ONCE(features_of_numpy_are_taken_as_they_are),
    ONCE(features_that_are_none_are_refused),
    ONCE(features_that_are_not_finite_are_refused_by_row),
    ONCE(text_of_features_takes_no_more_memory_than_promised),
    ONCE(classes_are_numbers_or_names),
    ONCE(labels_that_are_missing_are_unknown),
    ONCE(whole_numbers_may_be_written_as_decimals),
    ONCE(floats_of_numpy_are_classes_where_they_are_whole),
    ONCE(masks_are_no_numbers),
    ONCE(classes_of_numpy_have_one_dimension_or_two),
    ONCE(what_is_no_class_is_refused),
    ONCE(numbers_are_read_within_their_range),
    ONCE(weights_of_nodes_are_whole_numbers),
    ONCE(names_are_read_and_differ),
    {0},
};
