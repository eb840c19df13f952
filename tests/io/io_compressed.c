/* test_io: gzip and zstd, standard input, files that cannot be read. */
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

/* Compresses a text in two parts and checks that it reads as the text itself does, and that no cut is accepted. */
static void check_compressed(size_t (*compress)(const void *, size_t, void *, size_t), const char *kind)
{
    sp_context *context = test_context(0, 2);
    test_random random = test_seed(7);
    size_t count, room = 1 << 20;
    char *text = random_triples(&random, 5000, 300, &count), *packed = malloc(room);
    size_t half = count / 2, first = compress(text, half, packed, room);
    size_t both = first + compress(text + half, count - half, packed + first, room - first);
    io_graph plain = read_bytes(context, text, count, automatic),
             graph = read_bytes(context, packed, both, automatic);
    same_graphs(&plain, &graph);
    io_graph_free(context, &graph);

    char message[100];
    snprintf(message, sizeof message, "in: the %s data end too soon", kind);
    for (size_t cut = 8; cut < both; cut += 61) {
        if (cut == first) continue;
        expect_failure(packed, cut, automatic, message);
    }
    snprintf(message, sizeof message, "in: the %s data are damaged", kind);
    packed[both - 6] = (char)(packed[both - 6] ^ 0x55);
    sp_status status = io_read_memory(context, "in", packed, both, &automatic, 0, &graph);
    ck_assert_msg(status != SP_OK && strncmp(sp_last_error(context), message, strlen(message)) == 0, "%s",
                  sp_last_error(context));
    io_graph_free(context, &plain);
    free_all(text, packed);
    sp_context_destroy(context);
}

static size_t zstd(const void *data, size_t count, void *into, size_t room)
{
    ZSTD_CCtx *state = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(state, ZSTD_c_checksumFlag, 1);
    size_t size = ZSTD_compress2(state, into, room, data, count);
    ck_assert(!ZSTD_isError(size));
    ZSTD_freeCCtx(state);
    return size;
}

TEST(gzip_members_are_read_whole_or_refused) { check_compressed(gzip, "gzip"); }

TEST(zstd_frames_are_read_whole_or_refused) { check_compressed(zstd, "zstd"); }

/* Reading blocks of any size meets the same thing first: the malformed line, or the damage before it. */
static void check_damage(size_t (*compress)(const void *, size_t, void *, size_t))
{
    const size_t blocks[] = {100, 4096, 70000, 0};
    sp_context *context = test_context(0, 1);
    test_random random = test_seed(11);
    size_t count, room = 1 << 20;
    int64_t lines = 0;
    char *text = random_triples(&random, 20000, 3000, &count), *packed = malloc(room), message[400];
    memcpy(strchr(text + count / 4, '\n') + 1, "x\n", 2); /* a line of one field */
    size_t size = compress(text, count, packed, room);
    for (int trial = 0; trial < 60; trial++) {
        const int64_t at = 16 + test_below(&random, (int64_t)size - 16);
        const char flip = (char)(1 << test_below(&random, 8));
        packed[at] = (char)(packed[at] ^ flip);
        for (size_t b = 0; b < COUNT(blocks); b++) {
            io_graph graph;
            test_expect(io_read_memory(context, "in", packed, size, &automatic, blocks[b], &graph) != SP_OK,
                        "byte %lld is damaged, and accepted", (long long)at);
            if (b == 0) snprintf(message, sizeof message, "%s", sp_last_error(context));
            test_expect(strcmp(message, sp_last_error(context)) == 0, "byte %lld, blocks of %zu: \"%s\", not \"%s\"",
                        (long long)at, blocks[b], sp_last_error(context), message);
        }
        lines += strncmp(message, "in: ", 4) != 0;
        packed[at] = (char)(packed[at] ^ flip);
    }
    test_expect(lines > 0, "no malformed line is met");
    free_all(text, packed);
    sp_context_destroy(context);
}

TEST(what_comes_before_damage_is_read_whatever_the_block_size)
{
    check_damage(gzip);
    check_damage(zstd);
}

static void *allocate_lines(void *user, size_t bytes)
{
    (void)user;
    char *block = malloc(bytes);
    for (size_t i = 0; block && i < bytes; i++) block[i] = i % 2 ? '\n' : 'x';
    return block;
}

static void release_lines(void *user, void *block)
{
    (void)user;
    free(block);
}

/* A copy of 39 bytes from 19 before the text, where only the allocator has written: lines of one field. */
TEST(a_copy_from_before_the_text_is_damage)
{
    const char packed[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03"
                          "\x23\x52\x28\x59\x21\x45\xc1\x90\x2b\x59\x21\x55\xc1\x90\x2b\x59\x21\x45\xc1\x90\x2b"
                          "\x59\x21\x4d\xc1\x90\x0b\0" "12345678";
    const sp_allocator allocator = {.allocate = allocate_lines, .release = release_lines};
    sp_context *context = test_context_with(0, (sp_context_options){.threads = 1, .allocator = &allocator});
    io_graph graph;
    ck_assert_int_ne(io_read_memory(context, "in", packed, sizeof packed - 1, &automatic, 0, &graph), SP_OK);
    test_expect(strncmp(sp_last_error(context), "in: the gzip data are damaged", 29) == 0, "%s",
                sp_last_error(context));
    sp_context_destroy(context);
}

CONTEXT_TEST(gzip_padding_is_skipped_and_garbage_refused, 0, 1)
{
    char packed[200] = {0};
    size_t size = gzip("a b 1\n", 6, packed, sizeof packed);
    io_graph graph = read_bytes(context, packed, size + 50, automatic);
    ck_assert_str_eq(arcs_of(&graph), "a>b:1");
    io_graph_free(context, &graph);
    packed[size + 20] = 'x';
    expect_failure(packed, size + 50, automatic, "in: bytes that are not gzip data follow");
}

TEST(errors_inside_compressed_data_have_the_line_of_the_text)
{
    char packed[300];
    const char *text = "a b 1\nb c 2\nc d x\n";
    size_t size = gzip(text, 8, packed, sizeof packed);
    size += gzip(text + 8, strlen(text) - 8, packed + size, sizeof packed - size);
    expect_failure(packed, size, automatic, "in:3: the weight is not a number (got \"x\")");
}

CONTEXT_TEST(a_dash_is_standard_input_and_output, 0, 1)
{
    int saved[2] = {dup(0), dup(1)}, ends[2];
    fflush(stdout);
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], 1);
    close(ends[1]);
    io_output *output;
    sp_status written = io_output_open(context, "-", &output);
    if (written == SP_OK) {
        io_output_string(output, "a b 3\nc\n");
        written = io_output_commit(output);
    }
    dup2(saved[1], 1);
    dup2(ends[0], 0);
    close(ends[0]);
    io_graph graph;
    sp_status status = io_read_graph(context, "-", &automatic, &graph);
    dup2(saved[0], 0);
    close(saved[0]);
    close(saved[1]);
    ck_assert_int_eq(written, SP_OK);
    ck_assert_int_ne(status, SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "(standard input):2: one field"));
}

CONTEXT_TEST(files_that_cannot_be_read_are_named, 0, 1)
{
    io_graph graph;
    ck_assert_int_ne(io_read_graph(context, path_of("none"), &automatic, &graph), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "none: No such file"));
    ck_assert_int_ne(io_read_graph(context, folder, &automatic, &graph), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "this is a folder"));
    const volatile int interrupt = 1;
    io_read_options options = {.interrupt = &interrupt};
    write_file(path_of("x.abc"), "a b 1\n", 6);
    ck_assert_int_eq(io_read_graph(context, path_of("x.abc"), &options, &graph), SP_ERROR_INTERRUPTED);
}

const test_entry compressed_tests[] = {
    CASE("parallel reading and numbers", 120),
    ONCE(gzip_members_are_read_whole_or_refused),
    ONCE(zstd_frames_are_read_whole_or_refused),
    ONCE(what_comes_before_damage_is_read_whatever_the_block_size),
    ONCE(a_copy_from_before_the_text_is_damage),
    ONCE(gzip_padding_is_skipped_and_garbage_refused),
    ONCE(errors_inside_compressed_data_have_the_line_of_the_text),
    CASE_WITH("files", 120, make_folder, remove_folder),
    ONCE(a_dash_is_standard_input_and_output),
    ONCE(files_that_cannot_be_read_are_named),
    {0},
};
