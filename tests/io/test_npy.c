/* Arrays, archives, features, classes, numbers and graphs of numbered nodes: bytes made here by hand and by
 * zlib, every refusal with its sentence, files cut and damaged at every byte, failing allocations. That NumPy and
 * scipy write and read the same is seen in test_gnn_data.sh. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "internal.h"
#include "support.h"

/* ---- files ------------------------------------------------------------------------------------------- */

static char folder[32];

static void make_folder(void)
{
    strcpy(folder, "/tmp/test_npy.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* The file's path, good until the eighth call from here. */
static const char *path_of(const char *name)
{
    static char paths[8][96];
    static int at;
    at = (at + 1) % 8;
    snprintf(paths[at], sizeof paths[at], "%s/%s", folder, name);
    return paths[at];
}

static const char *file_of(const char *name, const void *bytes, size_t count)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static const char *text_of(const char *name, const char *text) { return file_of(name, text, strlen(text)); }

/* The last failure is PATH followed by `sentence`. */
static void failed(sp_context *context, sp_status status, const char *path, const char *sentence)
{
    const char *said = sp_last_error(context);
    ck_assert_msg(status != SP_OK, "accepted instead of \"%s\"", sentence);
    const size_t length = strlen(path);
    ck_assert_msg(strncmp(said, path, length) == 0 && strncmp(said + length, sentence, strlen(sentence)) == 0,
                  "\"%s\" instead of \"%s%s\"", said, path, sentence);
    ck_assert_ptr_null(strchr(said, '\n'));
}

/* ---- .npy -------------------------------------------------------------------------------------------- */

static const char doubles[] = "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xe0\xbf\0\0\0\0\0\0\0"; /* 1, -0.5, 0 */

typedef struct bytes {
    unsigned char at[1 << 16];
    size_t count;
} bytes;

static void add(bytes *to, const void *what, size_t count)
{
    ck_assert_uint_le(to->count + count, sizeof to->at);
    if (count) memcpy(to->at + to->count, what, count);
    to->count += count;
}

static void add_number(bytes *to, uint64_t value, int count)
{
    for (int i = 0; i < count; i++) add(to, &(unsigned char){(unsigned char)(value >> 8 * i)}, 1);
}

/* An array of a version with this header, whatever it says. */
static bytes npy(int version, const char *header, const void *values, size_t count)
{
    bytes made = {.count = 0};
    add(&made, "\x93NUMPY", 6);
    add_number(&made, (uint64_t)version, 1);
    add_number(&made, 0, 1);
    add_number(&made, strlen(header) + 1, version == 1 ? 2 : 4);
    add(&made, header, strlen(header));
    add(&made, "\n", 1);
    add(&made, values, count);
    return made;
}

static bytes array_of(const char *type, const char *order, const char *shape, const void *values, size_t count)
{
    char header[256];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", type, order, shape);
    return npy(1, header, values, count);
}

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
    static const struct {
        const char *type, *values;
        size_t count;
        float expected[3];
    } cases[] = {
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
    static const struct {
        const char *type, *values, *sentence;
        size_t count;
    } cases[] = {
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
    static const struct {
        const char *header, *sentence;
    } cases[] = {
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

/* An archive in the making: local headers and data in `file`, the directory apart. */
typedef struct archive {
    bytes file, directory;
    int count;
} archive;

/* How a member is written; what stays 0 is as NumPy writes it. */
typedef struct member_options {
    bool deflate, descriptor, zip64;
    int flags, method; /* added; instead of the right one */
    uint32_t wrong;    /* added to the checksum */
} member_options;

static void put_zip64(bytes *to, bool wanted, size_t size, size_t compressed)
{
    if (!wanted) return;
    add_number(to, 1, 2);
    add_number(to, 16, 2);
    add_number(to, size, 8);
    add_number(to, compressed, 8);
}

static void put_member(archive *to, const char *name, const bytes *content, member_options o)
{
    static unsigned char packed[1 << 17];
    z_stream stream = {0};
    size_t size = content->count;
    const void *data = content->at;
    const size_t at = to->file.count;
    if (o.deflate) {
        ck_assert_int_eq(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        stream.next_in = (Bytef *)content->at;
        stream.avail_in = (uInt)content->count;
        stream.next_out = packed;
        stream.avail_out = sizeof packed;
        ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
        size = sizeof packed - stream.avail_out;
        deflateEnd(&stream);
        data = packed;
    }
    const uint32_t crc = (uint32_t)crc32(0, content->at, (uInt)content->count) + o.wrong;
    const int flags = o.flags | (o.descriptor ? 8 : 0), method = o.method ? o.method : o.deflate ? 8 : 0;
    const size_t extra = o.zip64 ? 20 : 0;
    const uint64_t shown = o.zip64 ? UINT32_MAX : size, shown_size = o.zip64 ? UINT32_MAX : content->count;
    for (int central = 0; central < 2; central++) {
        bytes *b = central ? &to->directory : &to->file;
        const bool later = o.descriptor && !central;
        add_number(b, central ? 0x02014b50 : 0x04034b50, 4);
        if (central) add_number(b, 45, 2);
        add_number(b, 20, 2);
        add_number(b, (uint64_t)flags, 2);
        add_number(b, (uint64_t)method, 2);
        add_number(b, 0, 4);
        add_number(b, later ? 0 : crc, 4);
        add_number(b, later ? 0 : shown, 4);
        add_number(b, later ? 0 : shown_size, 4);
        add_number(b, strlen(name), 2);
        add_number(b, extra, 2);
        if (central) add_number(b, 0, 8);
        if (central) add_number(b, 0, 2);
        if (central) add_number(b, at, 4);
        add(b, name, strlen(name));
        put_zip64(b, o.zip64, content->count, size);
        if (!central) add(b, data, size);
    }
    if (o.descriptor) {
        add_number(&to->file, 0x08074b50, 4);
        add_number(&to->file, crc, 4);
        add_number(&to->file, size, 4);
        add_number(&to->file, content->count, 4);
    }
    to->count++;
}

static bytes end_archive(const archive *from)
{
    bytes all = from->file;
    const size_t begin = all.count;
    add(&all, from->directory.at, from->directory.count);
    add_number(&all, 0x06054b50, 4);
    add_number(&all, 0, 4);
    add_number(&all, (uint64_t)from->count, 2);
    add_number(&all, (uint64_t)from->count, 2);
    add_number(&all, from->directory.count, 4);
    add_number(&all, begin, 4);
    add_number(&all, 0, 2);
    return all;
}

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
    static const struct {
        member_options how;
        const char *sentence;
    } cases[] = {
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
    for (int deflate = 0; deflate < 2; deflate++) {
        bytes file = one_member((member_options){.deflate = deflate});
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
    for (int deflate = 0; deflate < 2; deflate++) {
        bytes file = one_member((member_options){.deflate = deflate, .zip64 = true});
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
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options settings = {.device = "cpu", .threads = 1, .allocator = &allocator};
    sp_context *context;
    io_array array;
    ck_assert_int_eq(sp_context_create(&settings, &context), SP_OK);
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

typedef struct csr_members {
    const char *shape, *indptr, *indices, *data, *format; /* values in one byte each; format NULL: none */
    size_t rows, nnz, values;
} csr_members;

static bytes csr_archive(const csr_members *m)
{
    static archive made;
    char shape[32];
    memset(&made, 0, sizeof made);
    const bytes sizes = array_of("|u1", "False", "(2,)", m->shape, 2);
    snprintf(shape, sizeof shape, "(%zu,)", m->rows);
    const bytes offsets = array_of("|u1", "False", shape, m->indptr, m->rows);
    snprintf(shape, sizeof shape, "(%zu,)", m->nnz);
    const bytes columns = array_of("|i1", "False", shape, m->indices, m->nnz);
    snprintf(shape, sizeof shape, "(%zu,)", m->values);
    const bytes values = array_of("|u1", "False", shape, m->data, m->values);
    put_member(&made, "shape.npy", &sizes, (member_options){0});
    put_member(&made, "indptr.npy", &offsets, (member_options){0});
    put_member(&made, "indices.npy", &columns, (member_options){.deflate = true});
    put_member(&made, "data.npy", &values, (member_options){0});
    if (m->format) {
        const bytes format = array_of("|S3", "False", "()", m->format, 3);
        put_member(&made, "format.npy", &format, (member_options){0});
    }
    return end_archive(&made);
}

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
    static const struct {
        csr_members m;
        const char *sentence;
    } cases[] = {
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
        if (kind) {
            sp_free(context, back.values);
            back.values = NULL;
        }
        test_same(&made, &back, random.seed);
        test_free(context, &made, &back);
    }
}

/* ---- features ---------------------------------------------------------------------------------------- */

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
    static const struct {
        const char *text, *expected;
    } cases[] = {
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
        ck_ok(context, io_read_features(context, text_of("f.csv", cases[c].text), NULL, &dense, &sparse));
        ck_assert_str_eq(dense_text(&dense), cases[c].expected);
        ck_assert_ptr_null(sparse.row_offsets);
        sp_dense_free(context, &dense);
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
        ck_ok(context, io_read_features(context, file_of("f.csv", text, (size_t)(at - text)), NULL, &dense, &sparse));
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
    const char *coordinate = "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 3 -1.5\n2 1 2\n1 1 0\n";
    ck_ok(context, io_read_features(context, text_of("f.mtx", coordinate), NULL, &dense, &sparse));
    ck_assert(!dense.values && sparse.rows == 2 && sparse.cols == 3 && sparse.nnz == 2);
    ck_assert(sparse.col_indices[0] == 2 && test_value(&sparse, 0) == -1.5 && test_value(&sparse, 1) == 2);
    sp_csr_free(context, &sparse);
    const char *array = "%%MatrixMarket matrix array real general\n% columns\n2 3\n1\n2\n0\n4\n-5\n6\n";
    ck_ok(context, io_read_features(context, text_of("f.mtx", array), NULL, &dense, &sparse));
    ck_assert_str_eq(dense_text(&dense), "1 0 -5|2 4 6|");
    sp_dense_free(context, &dense);
}

CONTEXT_TEST(features_of_numpy_are_taken_as_they_are, 0, 2)
{
    sp_dense dense;
    sp_csr sparse;
    const bytes file = array_of("<f8", "False", "(1, 3)", doubles, 24);
    ck_ok(context, io_read_features(context, file_of("f.npy", file.at, file.count), NULL, &dense, &sparse));
    ck_assert_str_eq(dense_text(&dense), "1 -0.5 0|");
    sp_dense_free(context, &dense);
    static const csr_members members = {"\2\3", "\0\2\3", "\0\2\1", "\5\6\7", "csr", 3, 3, 3};
    const bytes packed = csr_archive(&members);
    ck_ok(context, io_read_features(context, file_of("f.npz", packed.at, packed.count), NULL, &dense, &sparse));
    ck_assert(!dense.values && sparse.nnz == 3 && test_value(&sparse, 2) == 7);
    sp_csr_free(context, &sparse);
}

CONTEXT_TEST(features_that_are_none_are_refused, 0, 1)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"1,2\n3\n", ":2: fewer numbers than in the first row (got \"3\")"},
        {"1,2\n3,4,5\n", ":2: more numbers than in the first row (got \"5\")"},
        {"1,2\n\n3,x\n", ":3: a feature that is no number (got \"x\")"},
        {"1,2\n3,nan\n", ":2: a feature that is no number (got \"nan\")"},
        {"nan,1\n2,3\n", ":1: a feature that is no number (got \"nan\")"},
        {"x,1\n2,3\n", ":1: a feature that is no number (got \"x\")"},
        {"1,2\n3,\n", ":2: a feature that is no number (got \"\")"},
        {"1,2\n,3\n", ":2: a feature that is no number (got \"\")"},
        {"a,b\n1,2\nc,d\n", ":3: a feature that is no number (got \"c\")"},
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
        const char *path = text_of("f.txt", cases[c].text);
        failed(context, io_read_features(context, path, NULL, &dense, &sparse), path, cases[c].sentence);
        ck_assert(!dense.values && !sparse.row_offsets);
    }
}

CONTEXT_TEST(features_that_are_not_finite_are_refused_by_row, 0, 2)
{
    sp_dense dense;
    sp_csr sparse;
    const bytes nan = array_of("<f4", "False", "(3, 1)", "\0\0\0\0\0\0\xc0\x7f\0\0\xc0\x7f", 12);
    const bytes large = array_of("<f8", "False", "(3, 1)", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x7f", 24);
    const char *path = file_of("f.npy", nan.at, nan.count);
    failed(context, io_read_features(context, path, NULL, &dense, &sparse), path, ": row 1 (from 0) has a number");
    path = file_of("f.npy", large.at, large.count);
    failed(context, io_read_features(context, path, NULL, &dense, &sparse), path, ": row 2 (from 0) has a number");
    const bytes flat = array_of("<f4", "False", "(3,)", "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    path = file_of("f.npy", flat.at, flat.count);
    failed(context, io_read_features(context, path, NULL, &dense, &sparse), path, ": 1 dimensions; features");
}

TEST(text_of_features_takes_no_more_memory_than_promised)
{
    enum { LINES = 1 << 19 };
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options settings = {.device = "cpu", .threads = 2, .allocator = &allocator};
    char *text = malloc(LINES * 8);
    sp_context *context;
    sp_dense dense;
    sp_csr sparse;
    for (int64_t i = 0; i < LINES; i++) memcpy(text + 8 * i, "1,1,1,1\n", 8);
    ck_assert_int_eq(sp_context_create(&settings, &context), SP_OK);
    ck_ok(context, io_read_features(context, file_of("f.csv", text, LINES * 8), NULL, &dense, &sparse));
    test_expect(heap.peak_bytes <= 16 * (int64_t)(LINES * 8) + (64 << 20), "%.1f times the file",
                (double)heap.peak_bytes / (LINES * 8));
    sp_dense_free(context, &dense);
    sp_context_destroy(context);
    free(text);
}

/* ---- classes ----------------------------------------------------------------------------------------- */

static const char *classes_text(const io_classes *c)
{
    static char text[512];
    size_t at = (size_t)snprintf(text, sizeof text, "%lld:", (long long)c->classes);
    for (int64_t i = 0; i < c->nodes; i++) {
        if (c->labels) at += (size_t)snprintf(text + at, sizeof text - at, " %d", c->labels[i]);
        for (int64_t k = 0; c->targets && k < c->classes; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", k ? "" : " ", c->targets[i * c->classes + k]);
    }
    for (int64_t k = 0; k < c->names.count; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, " %.*s", (int)io_name_length(&c->names, k),
                               io_name(&c->names, k));
    return text;
}

CONTEXT_TEST(classes_are_numbers_or_names, 0, 1)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"0\n2\n-1\n1\n", "3: 0 2 -1 1"},
        {"# a\r\n 1 \r\n0", "2: 1 0"},
        {"red\nblue green\nred\n", "2: 1 0 1 blue green red"},
        {"label\n3\n0\n", "4: 3 0"},
        {"red\n", "1: 0 red"},
        {"b\nab\na\n\xc3\xa9\nA\nab\n", "5: 3 2 1 4 0 2 A a ab b \xc3\xa9"},
        {"-1\n", "0: -1"},
        {"%%MatrixMarket matrix coordinate pattern general\n3 2 3\n1 2\n3 1\n3 2\n", "2: 01 00 11"},
        {"%%MatrixMarket matrix array integer general\n2 2\n1\n0\n1\n1\n", "2: 11 01"},
        {"%%MatrixMarket matrix array integer general\n4 1\n2\n0\n-1\n1\n", "3: 2 0 -1 1"},
        {"%%MatrixMarket matrix coordinate pattern general\n3 1 1\n2 1\n", "1: 0 1 0"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        io_classes classes;
        ck_ok(context, io_read_classes(context, text_of("l.txt", cases[c].text), NULL, &classes));
        ck_assert_str_eq(classes_text(&classes), cases[c].expected);
        io_classes_free(context, &classes);
    }
}

CONTEXT_TEST(labels_that_are_missing_are_unknown, 0, 1)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"0\nnan\n1\nNaN\n-nan\nNA\nn/a\n#N/A\n<NA>\nNULL\nnone\nNone\n\"\"\n-1\n-1.0\n1\n",
         "2: 0 -1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 1"},
        {"NA\n1\n0\n", "2: -1 1 0"},
        {"nan\nnan\n", "0: -1 -1"},
        {"red\nNaN\nblue\n", "2: 1 -1 0 blue red"},
        {"NaN\nred\nblue\n", "2: -1 1 0 blue red"},
        {"class\nNA\n1\n0\n", "2: -1 1 0"},
        {"0\n\n1\n", "2: 0 -1 1"},
        {"\n\n0\n\n \n1\n# 7\n\n\n", "2: 0 -1 -1 1"}, /* not before the first and behind the last */
        {"class\n\nred\n\nred\n", "2: 0 -1 1 -1 1 class red"},
        {"\"none\"\nmild\n\"0.5\"\n", "3: 1 2 0 \"0.5\" \"none\" mild"}, /* quotes are a part of a name */
        {"Nancy\nNaN1\nnano\n", "3: 1 0 2 NaN1 Nancy nano"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        io_classes classes;
        ck_ok(context, io_read_classes(context, text_of("l.txt", cases[c].text), NULL, &classes));
        ck_assert_str_eq(classes_text(&classes), cases[c].expected);
        io_classes_free(context, &classes);
    }
}

CONTEXT_TEST(whole_numbers_may_be_written_as_decimals, 0, 1)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"1.0\n0.0\nnan\n2.0\n", "3: 1 0 -1 2"},
        {"1.000000000000000000e+00\n-0.0\n3.\n6e0\n", "7: 1 0 3 6"},
        {"class\n1.0\n\n0.0\n", "2: 1 -1 0"},
        {"alpha\nbeta\n1.0\n1\n0.37\n", "5: 3 4 2 1 0 0.37 1 1.0 alpha beta"}, /* names remain names */
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        io_classes classes;
        ck_ok(context, io_read_classes(context, text_of("l.txt", cases[c].text), NULL, &classes));
        ck_assert_str_eq(classes_text(&classes), cases[c].expected);
        io_classes_free(context, &classes);
    }
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
    } bad[] = {{"<f4", "(5,)", ": element 4 (from 0) is no class (got \"2.5\"); gnn learns classes", narrow, 20},
               {"<f8", "(5,)", ": element 4 (from 0) is no class (got \"0.37\"); gnn learns classes", wide, 40},
               {"<f8", "(1,)", ": element 0 (from 0) is no class (got \"65536\"); number the classes", wide + 5, 8},
               {"<f8", "(1,)", ": element 0 (from 0) is no class (got \"-2\"); number the classes", wide + 6, 8},
               {"<f8", "(1,)", ": element 0 (from 0) is no class (got \"1e+300\"); number the classes", wide + 7, 8}};
    for (size_t c = 0; c < COUNT(good); c++) {
        const bytes file = array_of(good[c].type, "False", good[c].shape, good[c].values, good[c].count);
        ck_ok(context, io_read_classes(context, file_of("l.npy", file.at, file.count), NULL, &classes));
        ck_assert_str_eq(classes_text(&classes), good[c].expected);
        io_classes_free(context, &classes);
    }
    for (size_t c = 0; c < COUNT(bad); c++) {
        const bytes file = array_of(bad[c].type, "False", bad[c].shape, bad[c].values, bad[c].count);
        const char *path = file_of("l.npy", file.at, file.count);
        failed(context, io_read_classes(context, path, NULL, &classes), path, bad[c].sentence);
    }
}

CONTEXT_TEST(classes_of_numpy_have_one_dimension_or_two, 0, 1)
{
    static const struct {
        const char *type, *shape, *values, *expected;
        size_t count;
    } cases[] = {
        {"|i1", "(3,)", "\1\xff\2", "3: 1 -1 2", 3},
        {"|i1", "(3, 1)", "\1\0\2", "3: 1 0 2", 3},
        {"|b1", "(2, 3)", "\1\0\1\0\0\0", "3: 101 000", 6},
        {"<f4", "(1, 2)", "\0\0\x80\x3f\0\0\0\0", "2: 10", 8},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        const bytes file = array_of(cases[c].type, "False", cases[c].shape, cases[c].values, cases[c].count);
        io_classes classes;
        ck_ok(context, io_read_classes(context, file_of("l.npy", file.at, file.count), NULL, &classes));
        ck_assert_str_eq(classes_text(&classes), cases[c].expected);
        io_classes_free(context, &classes);
    }
}

CONTEXT_TEST(what_is_no_class_is_refused, 0, 1)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"0\n-2\n", ":2: a label that is no class (got \"-2\")"},
        {"0\nx\n", ":2: a label that is no class (got \"x\")"},
        {"0\n1.5\n", ":2: a label that is no class (got \"1.5\"); gnn learns classes, not values"},
        {"0.37\n0.91\n", ":1: a label that is no class (got \"0.37\"); gnn learns classes, not values"},
        {"y\nNA\n0.37\n", ":3: a label that is no class (got \"0.37\")"},
        {"0,37\n0,91\n", ":1: several numbers (got \"0,37\"); write the class alone"},
        {"red\n5 3\n", ":2: several numbers (got \"5 3\")"},
        {"-3.0\n", ":1: a label that is no class (got \"-3.0\"); number the classes from 0"},
        {"1.0\nalpha\n", ":2: a label that is no class (got \"alpha\"); the first one is a number"},
        {"p7,red\np3,red\np5,blue\n", ": no two lines are the same, as in a table of nodes and classes"},
        {"node\tclass\np7\tred\np3\tred\np5\tblue\n", ": no two lines are the same"},
        {"%%MatrixMarket matrix array real general\n2 1\n1\n0.5\n", ": element 1 (from 0) is no class"},
        {"0\n65536\n", ":2: a label that is no class (got \"65536\")"},
        {"0\n99999999999999999999\n", ":2: a label that is no class"},
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
    failed(context, io_read_classes(context, path, NULL, &classes), path, ": element 1 (from 0) is no class");
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

CONTEXT_TEST(names_are_read_and_differ, 0, 1)
{
    io_names names;
    ck_ok(context, io_read_names(context, text_of("c", "7\nred wine\n"), NULL, &names));
    ck_assert(names.count == 2 && io_name_length(&names, 1) == 8 && memcmp(io_name(&names, 1), "red wine", 8) == 0);
    io_names_free(context, &names);
    const char *path = text_of("c", "a\nb\na\n");
    failed(context, io_read_names(context, path, NULL, &names), path, ":3: a name that is there twice (got \"a\")");
}

/* ---- graphs ------------------------------------------------------------------------------------------ */

/* Rows as "column:weight ...|". */
static const char *graph_text(const sp_csr *m)
{
    static char text[512];
    size_t at = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < m->rows; i++, at += (size_t)snprintf(text + at, sizeof text - at, "|"))
        for (int64_t e = m->row_offsets[i]; e < m->row_offsets[i + 1]; e++) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", e > m->row_offsets[i] ? " " : "",
                                   m->col_indices[e]);
            if (m->values) at += (size_t)snprintf(text + at, sizeof text - at, ":%g", test_value(m, e));
        }
    return text;
}

CONTEXT_TEST(graphs_are_read_from_every_format, 0, 2)
{
    static const struct {
        const char *name, *text, *expected, *undirected;
    } cases[] = {
        {"g.tsv", "0\t1\n2\t1\n", "|0 2||", "1|0 2|1|"},
        {"g.csv", "source,target,weight\n0,1,2\n0,1,3\n1,0,4\n", "1:4|0:5||", "1:4|0:4||"},
        {"g.txt", "# edges\n0 1\n1 0 1\n", "1|0||", "1|0||"},
        {"g.txt", "0 1 0\n2 2\n", "||2|", "||2|"},
        {"g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n", "1|0|2|", "1|0|2|"},
        {"g.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n2 3 1\n", "1|2||", "1|0 2|1|"},
        {"g.metis", "3 1\n2\n1\n\n", "1|0||", "1|0||"},
        {"g.mci", "(mclheader\nmcltype matrix\ndimensions 3x3\n)\n(mclmatrix\nbegin\n0 1:2 $\n)\n", "|0:2||",
         "1:2|0:2||"},
    };
    for (size_t c = 0; c < COUNT(cases); c++)
        for (int undirected = 0; undirected < 2; undirected++) {
            const io_adjacency_options options = {.nodes = 3, .undirected = undirected};
            sp_csr m;
            ck_ok(context, io_read_adjacency(context, text_of(cases[c].name, cases[c].text), &options, &m));
            ck_ok(context, sp_csr_check(context, &m));
            ck_assert_str_eq(graph_text(&m), undirected ? cases[c].undirected : cases[c].expected);
            sp_csr_free(context, &m);
        }
}

CONTEXT_TEST(graphs_are_read_from_binary_files, 0, 2)
{
    static const csr_members ones = {"\2\2", "\0\1\2", "\1\0", "\1\1", "csr", 3, 2, 2};
    static const csr_members zeros = {"\2\2", "\0\2\3", "\0\1\0", "\0\5\1", "csr", 3, 3, 3};
    const io_adjacency_options options = {.nodes = 0};
    sp_csr m;
    bytes file = csr_archive(&ones);
    ck_ok(context, io_read_adjacency(context, file_of("g.npz", file.at, file.count), &options, &m));
    ck_assert_str_eq(graph_text(&m), "1|0|");
    const char *path = path_of("g.bin");
    ck_ok(context, io_write_graph(context, path, &m, &(io_write_options){.format = IO_CSR}));
    sp_csr_free(context, &m);
    ck_ok(context, io_read_adjacency(context, path, &options, &m));
    ck_assert_str_eq(graph_text(&m), "1|0|");
    sp_csr_free(context, &m);
    file = csr_archive(&zeros);
    ck_ok(context, io_read_adjacency(context, file_of("g.npz", file.at, file.count), &options, &m));
    ck_assert_str_eq(graph_text(&m), "1:5|0:1|");
    sp_csr_free(context, &m);
}

CONTEXT_TEST(what_is_no_graph_of_numbered_nodes_is_refused, 0, 1)
{
    static const struct {
        const char *name, *text, *sentence;
    } cases[] = {
        {"g.tsv", "0 1\n1 3\n", ":2: an end of an edge that is no node (got \"3\")"},
        {"g.tsv", "0 1\n1 -1\n", ":2: an end of an edge that is no node (got \"-1\")"},
        {"g.tsv", "0 1\n1\n", ":2: an end of an edge that is no node (got \"\")"},
        {"g.tsv", "a 1\n0 1\n", ":1: an end of an edge that is no node (got \"a\")"},
        {"g.tsv", "0 1\na b\n", ":2: an end of an edge that is no node (got \"a\")"},
        {"g.tsv", "0 1 2 3\n", ":1: too many fields (got \"3\")"},
        {"g.tsv", "0 1 -2\n", ":1: the weight is negative"},
        {"g.tsv", "0 1 nan\n", ":1: the weight is not a number"},
        {"g.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 2 0\n", ":2: rows and columns differ"},
        {"g.txt", "protein1 protein2 combined_score\na b 900\n", ": nodes with names"},
    };
    const io_adjacency_options options = {.nodes = 3};
    sp_csr m;
    for (size_t c = 0; c < COUNT(cases); c++) {
        const char *path = text_of(cases[c].name, cases[c].text);
        failed(context, io_read_adjacency(context, path, &options, &m), path, cases[c].sentence);
        ck_assert_ptr_null(m.row_offsets);
    }
    static const csr_members wide = {"\2\3", "\0\2\3", "\0\2\1", "\5\6\7", "csr", 3, 3, 3};
    const bytes file = csr_archive(&wide);
    const char *path = file_of("g.npz", file.at, file.count);
    failed(context, io_read_adjacency(context, path, &options, &m), path, ": 2 rows and 3 columns");
    path = text_of("far.tsv", "0 2147483000\n");
    failed(context, io_read_adjacency(context, path, &(io_adjacency_options){.nodes = 0}, &m), path, ": the header");
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

CONTEXT_TEST(class_maps_give_every_node_its_classes, 0, 1)
{
    io_classes classes;
    const char *path = text_of("c.json", "{\"1\": 2,\n \"0\": 0, \"2\": -1}\n");
    ck_ok(context, io_read_class_map(context, path, NULL, 3, &classes));
    ck_assert_str_eq(classes_text(&classes), "3: 0 2 -1");
    io_classes_free(context, &classes);
    path = text_of("c.json", "{\"1\": 2.0, \"0\": NaN, \"2\":null, \"3\": -1.0}");
    ck_ok(context, io_read_class_map(context, path, NULL, 4, &classes));
    ck_assert_str_eq(classes_text(&classes), "3: -1 2 -1 -1");
    io_classes_free(context, &classes);
    path = text_of("c.json", "{\"1\":[1,0, 1],\"0\":[0,1.0,0.0]}");
    ck_ok(context, io_read_class_map(context, path, NULL, 2, &classes));
    ck_assert_str_eq(classes_text(&classes), "3: 010 101");
    io_classes_free(context, &classes);
}

CONTEXT_TEST(class_maps_that_are_none_are_refused, 0, 1)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"", ":1: no object"},
        {"{\"0\": 1", ":1: no comma and no end"},
        {"{\"0\": 1,\n\"2\": 1}", ":2: this is no node of the graph"},
        {"{\"0\": 1, \"0\": 1}", ":1: a node that is there twice"},
        {"{\"0\": 1}", ": 1 nodes, but the graph has 2"},
        {"{\"0\": 1, \"1\": 1} x", ":1: something follows the object"},
        {"{\"0\": 1, \"1\": 70000}", ":1: a label that is no class (got \"70000}\"); number the classes"},
        {"{\"0\": 1,\n\"1\": 0.37}", ":2: a label that is no class (got \"0.37}\"); gnn learns classes"},
        {"{\"0\": 1, \"1\": -2}", ":1: a label that is no class (got \"-2}\"); number the classes"},
        {"{\"0\": 1, \"1\": \"red\"}", ":1: a class that is no number (got \"\"red\"}\")"},
        {"{\"0\": 1, \"1\": 7", ":1: no comma and no end"},
        {"{\"0\": [NaN], \"1\": [1]}", ":1: an element that is not 0 or 1"},
        {"{\"0\": 1, \"1\": [1]}", ":1: numbers and lists are mixed"},
        {"{\"0\": [1], \"1\": [1, 0]}", ":1: too many classes"},
        {"{\"0\": [1, 0], \"1\": [1]}", ":1: too few classes"},
        {"{\"0\": [1, 2], \"1\": [1]}", ":1: an element that is not 0 or 1"},
        {"{\"0\": [1, 0", ":1: a list that does not end"},
        {"{0: 1}", ":1: no node"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        io_classes classes;
        const char *path = text_of("c.json", cases[c].text);
        failed(context, io_read_class_map(context, path, NULL, 2, &classes), path, cases[c].sentence);
        ck_assert(!classes.labels && !classes.targets);
    }
}

CONTEXT_TEST(roles_are_read_and_refused, 0, 1)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"{\"tr\": [0, 3]}", ":1: this is no node of the graph (got \"3]}\")"},
        {"{\"tr\": [0],\n\"va\": [0]}", ": node 0 has two roles"},
        {"{\"train\": [0]}", ":1: no role"},
        {"{\"tr\": 0}", ":1: no list"},
        {"{\"tr\": [0]", ":1: no comma and no end"},
    };
    uint8_t *roles;
    const char *good = text_of("r.json", "{\"va\": [2], \"te\": [], \"tr\": [0]}");
    ck_ok(context, io_read_roles(context, good, NULL, 3, &roles));
    ck_assert(roles[0] == 1 && roles[1] == 0 && roles[2] == 2);
    sp_free(context, roles);
    for (size_t c = 0; c < COUNT(cases); c++) {
        const char *path = text_of("r.json", cases[c].text);
        failed(context, io_read_roles(context, path, NULL, 3, &roles), path, cases[c].sentence);
        ck_assert_ptr_null(roles);
    }
}

/* ---- failing allocations ----------------------------------------------------------------------------- */

/* A read that frees what it got. */
typedef sp_status (*reading)(sp_context *context, const char *path);

static sp_status take_features(sp_context *context, const char *path)
{
    sp_dense dense;
    sp_csr sparse;
    sp_status status = io_read_features(context, path, NULL, &dense, &sparse);
    sp_dense_free(context, &dense);
    sp_csr_free(context, &sparse);
    return status;
}

static sp_status take_graph(sp_context *context, const char *path)
{
    sp_csr m;
    sp_status status = io_read_adjacency(context, path, &(io_adjacency_options){.undirected = true}, &m);
    sp_csr_free(context, &m);
    return status;
}

static sp_status take_labels(sp_context *context, const char *path)
{
    io_classes classes;
    sp_status status = io_read_classes(context, path, NULL, &classes);
    io_classes_free(context, &classes);
    return status;
}

static sp_status take_map(sp_context *context, const char *path)
{
    io_classes classes;
    sp_status status = io_read_class_map(context, path, NULL, 2, &classes);
    io_classes_free(context, &classes);
    return status;
}

/* Again and again, one allocation later failing each time, until all is well; nothing may stay behind. */
static void exhaust(reading read, const char *path)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options settings = {.device = "cpu", .threads = 1, .allocator = &allocator};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&settings, &context), SP_OK);
    const int64_t blocks = heap.live_blocks;
    sp_status status = SP_ERROR_HOST_MEMORY;
    for (int64_t n = 0; status != SP_OK; n++) {
        heap.allocations = 0;
        heap.fail_at = n;
        status = read(context, path);
        ck_assert_msg(status == SP_OK || status == SP_ERROR_HOST_MEMORY, "%s, allocation %lld: %s", path,
                      (long long)n, sp_last_error(context));
        ck_assert_msg(heap.live_blocks == blocks, "%s, allocation %lld: blocks are left", path, (long long)n);
        ck_assert_int_lt(n, 500);
    }
    ck_assert_int_gt(heap.allocations, 2);
    sp_context_destroy(context);
}

TEST(readers_survive_every_failed_allocation)
{
    static const csr_members sorted = {"\2\2", "\0\1\2", "\1\0", "\5\6", "csr", 3, 2, 2};
    static const csr_members unsorted = {"\2\2", "\0\2\3", "\1\0\0", "\0\6\2", "csr", 3, 3, 3};
    bytes file = csr_archive(&sorted);
    exhaust(take_features, file_of("f.npz", file.at, file.count));
    exhaust(take_graph, file_of("g.npz", file.at, file.count));
    file = csr_archive(&unsorted);
    exhaust(take_graph, file_of("g.npz", file.at, file.count));
    file = array_of("<f8", "True", "(1, 3)", doubles, 24);
    exhaust(take_features, file_of("f.npy", file.at, file.count));
    file = array_of("|i1", "False", "(3,)", "\1\2\0", 3);
    exhaust(take_labels, file_of("l.npy", file.at, file.count));
    exhaust(take_features, text_of("f.csv", "a,b\n1,2\n3,4\n"));
    exhaust(take_features, text_of("f.mtx", "%%MatrixMarket matrix array real general\n1 2\n1\n2\n"));
    exhaust(take_graph, text_of("g.tsv", "0 1 2\n1 2 3\n"));
    exhaust(take_labels, text_of("l.txt", "red\nblue\n"));
    exhaust(take_labels, text_of("l.mtx", "%%MatrixMarket matrix array integer general\n1 2\n1\n0\n"));
    exhaust(take_map, text_of("c.json", "{\"0\": [1, 0], \"1\": [0, 1]}"));
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
    CASE_WITH("nodes", 120, make_folder, remove_folder),
    ONCE(features_are_read_from_text),
    ONCE(features_of_long_and_many_lines_are_read),
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
    ONCE(names_are_read_and_differ),
    ONCE(graphs_are_read_from_every_format),
    ONCE(graphs_are_read_from_binary_files),
    ONCE(what_is_no_graph_of_numbered_nodes_is_refused),
    ONCE(class_maps_give_every_node_its_classes),
    ONCE(class_maps_that_are_none_are_refused),
    ONCE(roles_are_read_and_refused),
    ONCE(readers_survive_every_failed_allocation),
    {0},
};

int main(void) { return test_run("arrays", tests); }
