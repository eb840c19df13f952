/* Arrays, archives, features, classes, numbers and graphs of numbered nodes: bytes made here by hand and by
 * zlib, every refusal with its sentence, files cut and damaged at every byte, failing allocations. That NumPy and
 * scipy write and read the same is seen in test_gnn_data.sh. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "npy_shared.h"

/* ---- .npy -------------------------------------------------------------------------------------------- */

static io_array read_array(sp_context *context, const bytes *from)
{
    io_array array;
    io_file file;
    io_file_memory(context, "a", from->at, from->count, &file);
    ck_ok(context, io_read_npy_file(&file, &array));
    return array;
}

static void refused_array(const bytes *from, const char *sentence)
{
    sp_context *context = test_context(0, 1);
    io_array array;
    io_file file;
    io_file_memory(context, "a", from->at, from->count, &file);
    sp_status status = io_read_npy_file(&file, &array);
    failed(context, status, "a: ", sentence);
    ck_assert_ptr_null(array.values);
    sp_context_destroy(context);
}

CONTEXT_TEST(every_version_of_the_header_is_read, 0, 2)
{
    static const float values[] = {1, 2, 3, 4, 5, 6};
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{\"shape\": (2L, 3L), \"fortran_order\": False, \"descr\": \"<f4\"}          ",
        "{ 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( 2 , 3 , ) , }",
    };
    for (int version = 1; version <= 3; version++) {
        const bytes file = npy(version, headers[version - 1], values, sizeof values);
        io_array array = read_array(context, &file);
        ck_assert(array.type == IO_F32 && array.dimensions == 2 && array.shape[0] == 2 && array.shape[1] == 3);
        ck_assert(array.count == 6 && array.item_size == 4);
        ck_assert_int_eq(memcmp(array.values, values, sizeof values), 0);
        io_array_free(context, &array);
    }
}

CONTEXT_TEST(arrays_of_no_dimension_and_of_no_elements_are_read, 0, 1)
{
    const int64_t seven = 7;
    bytes file = array_of("<i8", "False", "()", &seven, 8);
    io_array array = read_array(context, &file);
    ck_assert(array.dimensions == 0 && array.count == 1 && *(int64_t *)array.values == 7);
    io_array_free(context, &array);
    file = array_of("<f8", "True", "(0, 4611686018427387904)", NULL, 0);
    array = read_array(context, &file);
    ck_assert(array.dimensions == 2 && array.count == 0);
    io_array_free(context, &array);
}

/* Values of every type, in one byte order and the other, become the same f32 and whole numbers. */
CONTEXT_TEST(every_type_becomes_f32, 0, 2)
{
    static const struct { const char *type, *values; size_t count; float expected[3]; } cases[] = {
        {"|b1", "\0\1\1", 3, {0, 1, 1}},
        {"?", "\1\0\1", 3, {1, 0, 1}},
        {"|i1", "\xff\0\x7f", 3, {-1, 0, 127}},
        {"|u1", "\xff\0\x7f", 3, {255, 0, 127}},
        {"<i2", "\xfe\xff\0\0\0\1", 6, {-2, 0, 256}},
        {">i2", "\xff\xfe\0\0\1\0", 6, {-2, 0, 256}},
        {"<u2", "\xfe\xff\0\0\0\1", 6, {65534, 0, 256}},
        {"<i4", "\xfe\xff\xff\xff\0\0\0\0\0\1\0\0", 12, {-2, 0, 256}},
        {"<u4", "\xfe\xff\xff\xff\0\0\0\0\0\1\0\0", 12, {4294967294.0f, 0, 256}},
        {">i8", "\xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0", 24, {-2, 0, 256}},
        {"<u8", "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0", 24, {1, 0, 256}},
        {"<f2", "\0\x3c\1\0\0\xc2", 6, {1, 0x1p-24f, -3}},
        {"<f4", "\0\0\x80\x3f\0\0\0\xbf\0\0\0\0", 12, {1, -0.5f, 0}},
        {">f4", "\x3f\x80\0\0\xbf\0\0\0\0\0\0\0", 12, {1, -0.5f, 0}},
        {"<f8", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xe0\xbf\0\0\0\0\0\0\0\0", 24, {1, -0.5f, 0}},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        const bytes file = array_of(cases[c].type, "False", "(3,)", cases[c].values, cases[c].count);
        io_array array = read_array(context, &file);
        ck_ok(context, io_array_to_f32(context, "a", &array));
        for (int i = 0; i < 3; i++)
            ck_assert_msg(((float *)array.values)[i] == cases[c].expected[i], "%s, element %d: %g", cases[c].type, i,
                          (double)((float *)array.values)[i]);
        io_array_free(context, &array);
    }
}

CONTEXT_TEST(half_precision_keeps_infinity_and_nan, 0, 1)
{
    const bytes file = array_of("<f2", "False", "(3,)", "\0\x7c\0\xfc\1\x7e", 6);
    io_array array = read_array(context, &file);
    ck_ok(context, io_array_to_f32(context, "a", &array));
    const float *values = array.values;
    ck_assert(values[0] == INFINITY && values[1] == -INFINITY && isnan(values[2]));
    io_array_free(context, &array);
}

CONTEXT_TEST(whole_numbers_that_do_not_fit_are_refused, 0, 1)
{
    static const struct { const char *type, *values, *sentence; size_t count; } cases[] = {
        {"<i8", "\0\0\0\0\1\0\0\0", "numbers beyond 32 bits", 8},
        {"<u8", "\0\0\0\0\0\0\0\x80", "numbers of 2^63 and more", 8},
        {"<u4", "\0\0\0\x80", "numbers beyond 32 bits", 4},
        {"<f4", "\0\0\x80\x3f", "an array of no whole numbers", 4},
        {"|S3", "csr", "an array of no whole numbers", 3},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        const bytes file = array_of(cases[c].type, "False", "(1,)", cases[c].values, cases[c].count);
        io_array array = read_array(context, &file);
        failed(context, io_array_to_i32(context, "a", &array), "a: ", cases[c].sentence);
        io_array_free(context, &array);
    }
}

CONTEXT_TEST(fortran_order_is_turned_around, 0, 2)
{
    enum { ROWS = 67, COLS = 45 };
    static double turned[ROWS * COLS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) turned[j * ROWS + i] = i * 100 + j;
    const bytes file = array_of("<f8", "True", "(67, 45)", turned, sizeof turned);
    io_array array = read_array(context, &file);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            test_expect(((double *)array.values)[i * COLS + j] == i * 100 + j, "row %d, column %d", i, j);
    io_array_free(context, &array);
    const bytes cube = array_of("|u1", "True", "(2, 1, 2)", "abcd", 4);
    refused_array(&cube, "more than two dimensions in Fortran order");
}

CONTEXT_TEST(text_is_read_narrow_and_wide, 0, 1)
{
    const bytes narrow = array_of("|S3", "False", "()", "csr", 3);
    const bytes wide = array_of("<U3", "False", "()", "c\0\0\0s\0\0\0r\0\0\0", 12);
    const bytes other = array_of("<U1", "False", "()", "\xe9\0\0\0", 4);
    for (int w = 0; w < 2; w++) {
        io_array array = read_array(context, w ? &wide : &narrow);
        ck_assert(array.type == IO_TEXT && array.item_size == 3 && memcmp(array.values, "csr", 3) == 0);
        io_array_free(context, &array);
    }
    refused_array(&other, "text that is not ASCII");
}

TEST(what_is_no_array_of_numbers_is_refused)
{
    static const struct { const char *header, *sentence; } cases[] = {
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "elements that are not read (got \"|O\"); Py"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "elements that are not read (got \"<c8\")"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "elements that are not read"},
        {"{'descr': 'f', 'fortran_order': False, 'shape': (1,)}", "elements that are not read"},
        {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}", "an array of records"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "the header wants 8 bytes of values, there"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", "the header wants 0 bytes of values, there"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}", "a shape that is too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "a shape that is too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "no header of an array"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "no header of an array"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "no header of an array"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "no header of an array"},
        {"{'descr': '<f4', 'shape': (1,)}", "no header of an array"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "no header of an array"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "no header of an array"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", "no header of an array"},
        {"{'descr': '<f4', 'fortran_order'", "no header of an array"},
        {"", "no header of an array"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        const bytes file = npy(1, cases[c].header, "\0\0\x80\x3f", 4);
        refused_array(&file, cases[c].sentence);
    }
    const bytes newer = npy(4, cases[0].header, "", 0);
    refused_array(&newer, "a version of NumPy's format that is not known");
    const bytes other = {.at = "no array of NumPy, but text", .count = 27};
    refused_array(&other, "no array of NumPy");
}

TEST(an_array_that_is_cut_anywhere_is_refused)
{
    bytes file = array_of("<f4", "False", "(2,)", "\0\0\x80\x3f\0\0\x80\x3f", 8);
    const size_t all = file.count;
    for (file.count = 0; file.count < all; file.count++) refused_array(&file, "");
    file.count = all + 1;
    refused_array(&file, "the header wants 8 bytes of values, there are 9; the file is too long");
}

CONTEXT_TEST(arrays_are_written_as_numpy_does, 0, 1)
{
    static const char expected[] = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
                                   "                                                          \n";
    static float values[] = {1, 2, 3, 4, 5, 6};
    const char *path = path_of("a.npy");
    char written[256];
    io_output *output;
    ck_assert_uint_eq(sizeof expected - 1, 128);
    ck_ok(context, io_output_open(context, path, &output));
    io_put_npy(output, &(io_array){.type = IO_F32, .dimensions = 2, .shape = {2, 3}, .count = 6, .item_size = 4,
                                   .values = values});
    ck_ok(context, io_output_commit(output));
    FILE *file = fopen(path, "rb");
    ck_assert_uint_eq(fread(written, 1, sizeof written, file), 128 + sizeof values);
    fclose(file);
    ck_assert_int_eq(memcmp(written, expected, 128), 0);
    ck_assert_int_eq(memcmp(written + 128, values, sizeof values), 0);
}

/* 40 MB by several threads, plain and compressed. */
CONTEXT_TEST(large_arrays_are_read_by_all_threads, 0, 3)
{
    enum { COUNT = 10000019 };
    float *values = malloc(COUNT * sizeof *values);
    for (int64_t i = 0; i < COUNT; i++) values[i] = (float)(i % 9973);
    io_array array = {.type = IO_F32, .dimensions = 1, .shape = {COUNT}, .count = COUNT, .item_size = 4,
                      .values = values};
    const char *path = path_of("large.npy"), *compressed = path_of("large.npy.gz");
    char command[256];
    io_output *output;
    ck_ok(context, io_output_open(context, path, &output));
    io_put_npy(output, &array);
    ck_ok(context, io_output_commit(output));
    snprintf(command, sizeof command, "gzip -1c %s > %s", path, compressed);
    ck_assert_int_eq(system(command), 0);
    for (int c = 0; c < 2; c++) {
        ck_ok(context, io_read_npy(context, c ? compressed : path, NULL, &array));
        ck_assert_int_eq(array.count, COUNT);
        ck_assert_int_eq(memcmp(array.values, values, COUNT * sizeof *values), 0);
        io_array_free(context, &array);
    }
    free(values);
}

/* ---- .npz -------------------------------------------------------------------------------------------- */

/* Opens, reads "a" and closes. */
static sp_status read_member(sp_context *context, const bytes *from, io_array *array)
{
    io_file file;
    io_npz *npz;
    memset(array, 0, sizeof *array);
    io_file_memory(context, "z", from->at, from->count, &file);
    sp_status status = io_npz_open_file(&file, &npz);
    if (status != SP_OK) return status;
    status = io_npz_read(npz, "a", array);
    io_npz_close(npz);
    return status;
}

static bytes three_floats(void) { return array_of("<f4", "False", "(3,)", "\0\0\x80\x3f\0\0\0\xbf\0\0\0\0", 12); }

static bytes one_member(member_options o)
{
    static archive made;
    const bytes content = three_floats();
    memset(&made, 0, sizeof made);
    put_member(&made, "b.npy", &content, (member_options){.deflate = true});
    put_member(&made, "a.npy", &content, o);
    return end_archive(&made);
}

CONTEXT_TEST(members_are_read_however_they_are_written, 0, 2)
{
    static const member_options ways[] = {{.flags = 0},
                                          {.deflate = true},
                                          {.zip64 = true},
                                          {.deflate = true, .zip64 = true},
                                          {.deflate = true, .zip64 = true, .end64 = true},
                                          {.deflate = true, .descriptor = true},
                                          {.descriptor = true}};
    for (size_t w = 0; w < COUNT(ways); w++) {
        const bytes file = one_member(ways[w]);
        io_array array;
        ck_ok(context, read_member(context, &file, &array));
        ck_assert(array.count == 3 && ((float *)array.values)[1] == -0.5f);
        io_array_free(context, &array);
    }
}

CONTEXT_TEST(members_that_cannot_be_read_are_refused, 0, 1)
{
    static const struct { member_options how; const char *sentence; } cases[] = {
        {{.wrong = 1}, "a.npy: the checksum is wrong"},
        {{.deflate = true, .wrong = 1}, "a.npy: the checksum is wrong"},
        {{.flags = 1}, "a.npy: it is encrypted"},
        {{.method = 12}, "a.npy: a compression that is not read"},
        {{.method = 8}, "a.npy: damaged data"},
    };
    io_array array;
    for (size_t c = 0; c < COUNT(cases); c++) {
        const bytes file = one_member(cases[c].how);
        failed(context, read_member(context, &file, &array), "z: ", cases[c].sentence);
        ck_assert_ptr_null(array.values);
    }
    bytes none = one_member((member_options){.deflate = true});
    memcpy(memchr(none.at + none.count - 80, 'a', 60), "c", 1);
    failed(context, read_member(context, &none, &array), "z: ", "a: there is no such member");
}

CONTEXT_TEST(an_archive_that_is_cut_anywhere_is_refused, 0, 1)
{
    for (int way = 0; way < 3; way++) {
        bytes file = one_member((member_options){.deflate = way > 0, .end64 = way > 1});
        for (const size_t all = file.count; file.count > 0;) {
            io_array array;
            file.count--;
            ck_assert_msg(read_member(context, &file, &array) != SP_OK, "%zu of %zu bytes", file.count, all);
        }
    }
}

/* Whatever byte changes, and however: the same values or a refusal. */
CONTEXT_TEST(an_archive_with_a_changed_byte_is_read_rightly_or_refused, 0, 1)
{
    static const unsigned char changes[] = {1, 0x80, 0xff};
    int64_t refused = 0;
    for (int way = 0; way < 3; way++) {
        bytes file = one_member((member_options){.deflate = way > 0, .zip64 = true, .end64 = way > 1});
        for (size_t at = 0; at < file.count; at++)
            for (size_t c = 0; c < sizeof changes; c++) {
                io_array array;
                file.at[at] ^= changes[c];
                if (read_member(context, &file, &array) == SP_OK) {
                    test_expect(array.count == 3 && ((float *)array.values)[1] == -0.5f, "byte %zu", at);
                    io_array_free(context, &array);
                } else {
                    refused++;
                }
                file.at[at] ^= changes[c];
            }
    }
    ck_assert_int_gt(refused, 500);
}

TEST(a_member_that_claims_more_than_it_holds_takes_no_memory)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    io_array array;
    archive made = {.count = 0};
    const bytes content = three_floats();
    put_member(&made, "a.npy", &content, (member_options){.deflate = true, .zip64 = true});
    for (int field = 0; field < 2; field++) { /* both sizes, or that of what comes out */
        archive lying = made;
        unsigned char *at = lying.directory.at + lying.directory.count - 16;
        memset(at + 3, 0x7f, 4);
        if (field) memset(at + 11, 0x7f, 4);
        const bytes file = end_archive(&lying);
        failed(context, read_member(context, &file, &array), "z: ", "a.npy: ");
    }
    test_expect(heap.peak_bytes < 8 << 20, "%lld bytes", (long long)heap.peak_bytes);
    sp_context_destroy(context);
}

/* ---- matrices in archives ---------------------------------------------------------------------------- */

static sp_status read_matrix(sp_context *context, const csr_members *m, sp_csr *matrix)
{
    const bytes file = csr_archive(m);
    io_file in;
    io_npz *npz;
    io_file_memory(context, "z", file.at, file.count, &in);
    ck_ok(context, io_npz_open_file(&in, &npz));
    sp_status status = io_npz_matrix(npz, "", matrix);
    io_npz_close(npz);
    return status;
}

CONTEXT_TEST(matrices_are_read_sorted_and_without_repeated_entries, 0, 2)
{
    static const csr_members sorted = {"\2\3", "\0\2\3", "\0\2\1", "\5\6\7", "csr", 3, 3, 3};
    static const csr_members unsorted = {"\2\3", "\0\3\4", "\2\0\2\1", "\1\5\5\7", NULL, 3, 4, 4};
    for (int u = 0; u < 2; u++) {
        sp_csr m;
        ck_ok(context, read_matrix(context, u ? &unsorted : &sorted, &m));
        ck_ok(context, sp_csr_check(context, &m));
        ck_assert(m.rows == 2 && m.cols == 3 && m.nnz == 3 && m.row_offsets[1] == 2);
        ck_assert(m.col_indices[0] == 0 && m.col_indices[1] == 2 && m.col_indices[2] == 1);
        ck_assert(test_value(&m, 0) == 5 && test_value(&m, 1) == 6 && test_value(&m, 2) == 7);
        sp_csr_free(context, &m);
    }
}

CONTEXT_TEST(matrices_that_contradict_themselves_are_refused, 0, 1)
{
    static const struct { csr_members m; const char *sentence; } cases[] = {
        {{"\2\3", "\0\2\3", "\0\3\1", "\5\6\7", "csr", 3, 3, 3}, "no sparse matrix: a column that is not within"},
        {{"\2\3", "\0\2\3", "\0\xff\1", "\5\6\7", "csr", 3, 3, 3}, "no sparse matrix: a column that is not within"},
        {{"\2\3", "\0\4\3", "\0\2\1", "\5\6\7", "csr", 3, 3, 3}, "no sparse matrix: indptr does not ascend"},
        {{"\2\3", "\0\2\2", "\0\2\1", "\5\6\7", "csr", 3, 3, 3}, "no sparse matrix: indptr does not run from 0"},
        {{"\2\3", "\1\2\3", "\0\2\1", "\5\6\7", "csr", 3, 3, 3}, "no sparse matrix: indptr does not run from 0"},
        {{"\3\3", "\0\2\3", "\0\2\1", "\5\6\7", "csr", 3, 3, 3}, "no sparse matrix: indptr has not one number more"},
        {{"\2\3", "\0\2\3", "\0\2\1", "\5\6", "csr", 3, 3, 2}, "no sparse matrix: indices and data differ"},
        {{"\2\3", "\0\2\3", "\0\2\1", "\5\6\7", "csc", 3, 3, 3}, "a sparse matrix that is not CSR"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        sp_csr matrix;
        failed(context, read_matrix(context, &cases[c].m, &matrix), "z: ", cases[c].sentence);
        ck_assert_ptr_null(matrix.row_offsets);
    }
}

CONTEXT_TEST(matrices_survive_writing_and_reading, 0, 2)
{
    test_random random = test_seed(5);
    for (int kind = 0; kind < 3; kind++) {
        sp_csr made = test_matrix(context, &random, 50, 70, kind == 2 ? 0 : 0.1, SP_F32,
                                  kind ? TEST_PATTERN : TEST_SIGNED), back;
        const char *path = path_of("m.npz");
        io_output *output;
        io_npz *npz;
        ck_ok(context, io_output_open(context, path, &output));
        ck_ok(context, io_put_npz_matrix(context, output, &made));
        ck_ok(context, io_output_commit(output));
        ck_ok(context, io_npz_open(context, path, NULL, &npz));
        ck_assert(io_npz_has(npz, "format") && io_npz_has(npz, "format.npy") && !io_npz_has(npz, "forma"));
        ck_ok(context, io_npz_matrix(npz, "", &back));
        io_npz_close(npz);
        for (int64_t e = 0; kind && e < back.nnz; e++) ck_assert(test_value(&back, e) == 1);
        if (kind) test_drop_values(context, &back);
        test_same(&made, &back, random.seed);
        test_free(context, &made, &back);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

/* What stands between two quotes as a text, or "-" for a refusal. */
static const char *unescaped(const char *string)
{
    static char text[64];
    return io_json_unescape(string, strlen(string), text) ? text : "-";
}

TEST(texts_of_json_lose_their_escapes)
{
    static const struct { const char *string, *text; } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"\\\"a\\\\b\\/c", "\"a\\b/c"},
        {"\\b\\f\\n\\r\\t", "\b\f\n\r\t"},
        {"\\u0041\\u00e9\\u20AC", "A\xc3\xa9\xe2\x82\xac"},
        {"\\u0000", "-"},                          /* would end the text */
        {"\\ud83d\\ude00", "-"}, {"\\udfff", "-"}, /* halves of a character */
        {"\\u12", "-"}, {"\\u12g4", "-"}, {"\\u 123", "-"}, {"\\u+123", "-"},
        {"\\x41", "-"}, {"\\", "-"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) ck_assert_str_eq(unescaped(cases[c].string), cases[c].text);
}

static const test_entry tests[] = {
    CASE_WITH("npy", 120, make_folder, remove_folder),
    ONCE(every_version_of_the_header_is_read),
    ONCE(arrays_of_no_dimension_and_of_no_elements_are_read),
    ONCE(every_type_becomes_f32),
    ONCE(half_precision_keeps_infinity_and_nan),
    ONCE(whole_numbers_that_do_not_fit_are_refused),
    ONCE(fortran_order_is_turned_around),
    ONCE(text_is_read_narrow_and_wide),
    ONCE(what_is_no_array_of_numbers_is_refused),
    ONCE(an_array_that_is_cut_anywhere_is_refused),
    ONCE(arrays_are_written_as_numpy_does),
    ONCE(large_arrays_are_read_by_all_threads),
    CASE_WITH("npz", 120, make_folder, remove_folder),
    ONCE(members_are_read_however_they_are_written),
    ONCE(members_that_cannot_be_read_are_refused),
    ONCE(an_archive_that_is_cut_anywhere_is_refused),
    ONCE(an_archive_with_a_changed_byte_is_read_rightly_or_refused),
    ONCE(a_member_that_claims_more_than_it_holds_takes_no_memory),
    ONCE(matrices_are_read_sorted_and_without_repeated_entries),
    ONCE(matrices_that_contradict_themselves_are_refused),
    ONCE(matrices_survive_writing_and_reading),
    CASE("json", 60),
    ONCE(texts_of_json_lose_their_escapes),
    {0},
};

int main(void) { return test_run("arrays", tests, features_tests, graphs_tests); }
