/* test_io: output files, from the first byte to the commit. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "io_shared.h"

static io_output *open_output(sp_context *context, const char *path)
{
    io_output *output;
    ck_ok(context, io_output_open(context, path, &output));
    return output;
}

CONTEXT_TEST(output_appears_at_commit_and_not_before, 0, 1)
{
    write_file(path_of("out"), "old", 3);
    ck_assert_int_eq(chmod(path_of("out"), 0640), 0);
    io_output *output = open_output(context, path_of("out"));
    io_output_string(output, "new ");
    io_output_int(output, INT64_MIN);
    io_output_format(output, " %d %s", 42, "x");
    ck_assert_str_eq(contents(path_of("out")), "old");
    ck_ok(context, io_output_commit(output));
    ck_assert_str_eq(contents(path_of("out")), "new -9223372036854775808 42 x");
    struct stat about;
    stat(path_of("out"), &about);
    ck_assert_int_eq(about.st_mode & 0777, 0640);
    ck_assert_int_eq(files_in_folder(), 1);

    output = open_output(context, path_of("out"));
    io_output_string(output, "never");
    io_output_discard(output);
    ck_assert_str_eq(contents(path_of("out")), "new -9223372036854775808 42 x");
    ck_assert_int_eq(files_in_folder(), 1);
    io_output_discard(NULL);
}

CONTEXT_TEST(output_longer_than_its_buffer_is_complete, 0, 1)
{
    size_t length = 200000;
    char *text = malloc(length + 1);
    for (size_t i = 0; i < length; i++) text[i] = (char)('a' + i % 26);
    text[length] = '\0';
    io_output *output = open_output(context, path_of("out"));
    io_output_format(output, "%.40000s", text);
    io_output_format(output, "%.40000s", text + 40000);
    io_output_bytes(output, text + 80000, 20000);
    io_output_format(output, "%s", text + 100000);
    io_output_bytes(output, text, length);
    ck_ok(context, io_output_commit(output));
    FILE *file = fopen(path_of("out"), "rb");
    for (size_t i = 0; i < 2 * length; i++) {
        int c = fgetc(file);
        test_expect(c == text[i % length], "byte %zu", i);
    }
    ck_assert_int_eq(fgetc(file), EOF);
    fclose(file);
    free(text);
}

/* Writes `count` bytes of text and a long format, compressed. */
static void write_compressed(sp_context *context, const char *path, const char *text, size_t count)
{
    io_output *output = open_output(context, path);
    io_output_bytes(output, text, count);
    io_output_format(output, "%s", text);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_ok(context, io_output_settle(output));
    ck_ok(context, io_output_commit(output));
}

static void expect_same_bytes(const char *one, const char *two)
{
    FILE *a = fopen(one, "rb"), *b = fopen(two, "rb");
    int byte;
    do ck_assert_int_eq(byte = fgetc(a), fgetc(b));
    while (byte != EOF);
    fclose(a);
    fclose(b);
}

CONTEXT_TEST(compressed_output_is_complete_and_the_same_in_each_run, 0, 1)
{
    const size_t lengths[] = {0, 1, 70000, 3000000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const size_t length = lengths[i];
        char *text = malloc(length + 1), *back = malloc(2 * length + 1);
        uint32_t random = 1;
        for (size_t k = 0; k < length; k++)
            text[k] = (char)('a' + ((random = random * 1664525 + 1013904223) >> 24) % 26);
        text[length] = '\0';
        write_compressed(context, path_of("one.gz"), text, length);
        sleep(length == 1); /* a time in the header would differ */
        write_compressed(context, path_of("two.gz"), text, length);
        gzFile file = gzopen(path_of("one.gz"), "rb");
        ck_assert_int_eq(gzread(file, back, (unsigned)(2 * length + 1)), (int)(2 * length));
        ck_assert_int_eq(gzdirect(file), 0);
        gzclose(file);
        ck_assert_int_eq(memcmp(back, text, length), 0);
        ck_assert_int_eq(memcmp(back + length, text, length), 0);
        expect_same_bytes(path_of("one.gz"), path_of("two.gz"));
        ck_assert_int_eq(unlink(path_of("one.gz")), 0);
        ck_assert_int_eq(unlink(path_of("two.gz")), 0);
        free(text);
        free(back);
    }
}

CONTEXT_TEST(a_compressed_output_that_is_discarded_leaves_nothing, 0, 1)
{
    io_output *output = open_output(context, path_of("out.gz"));
    io_output_string(output, "never");
    io_output_discard(output);
    ck_assert_int_eq(files_in_folder(), 0);
}

CONTEXT_TEST(output_in_shared_memory_replaces_a_longer_file, 0, 1)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/test_io.%ld", (long)getpid());
    FILE *old = fopen(path, "wb");
    if (old) {
        fputs("a longer file", old);
        fclose(old);
        io_output *output = open_output(context, path);
        io_output_string(output, "new");
        ck_assert_str_eq(contents(path), "a longer file");
        ck_ok(context, io_output_commit(output));
        ck_assert_str_eq(contents(path), "new");
        unlink(path);
    }
}

CONTEXT_TEST(outputs_that_cannot_be_are_refused_before_the_work, 0, 1)
{
    io_output *output;
    ck_assert_int_ne(io_output_check(context, path_of("none/out")), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "none"));
    ck_assert_int_ne(io_output_open(context, path_of("none/out"), &output), SP_OK);
    ck_assert_ptr_null(output);
    ck_assert_int_ne(io_output_check(context, folder), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "this is a folder"));
    ck_assert_int_ne(io_output_check(context, ""), SP_OK);
    char longest[5000];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    ck_assert_int_ne(io_output_check(context, longest), SP_OK);
    ck_ok(context, io_output_check(context, path_of("out")));
    ck_ok(context, io_output_check(context, "/dev/null"));
    ck_ok(context, io_output_check(context, "-"));
    ck_assert_int_eq(files_in_folder(), 0);
}

CONTEXT_TEST(write_errors_are_reported_at_commit, 0, 1)
{
    if (access("/dev/full", W_OK) == 0) {
        io_output *full = open_output(context, "/dev/full");
        for (int i = 0; i < 30000; i++) io_output_string(full, "0123456789");
        ck_assert_int_ne(io_output_commit(full), SP_OK);
        ck_assert_ptr_nonnull(strstr(sp_last_error(context), "/dev/full: No space left"));
    }
    /* The target becomes a folder behind our back: the rename fails, and no temporary file stays. */
    io_output *output = open_output(context, path_of("out"));
    io_output_string(output, "x");
    ck_assert_int_eq(mkdir(path_of("out"), 0700), 0);
    ck_assert_int_ne(io_output_commit(output), SP_OK);
    ck_assert_int_eq(files_in_folder(), 1);
    ck_assert_int_eq(rmdir(path_of("out")), 0);
}

CONTEXT_TEST(a_pipe_is_written_directly, 0, 1)
{
    ck_assert_int_eq(mkfifo(path_of("pipe"), 0600), 0);
    int reader = open(path_of("pipe"), O_RDONLY | O_NONBLOCK);
    io_output *output = open_output(context, path_of("pipe"));
    io_output_string(output, "through");
    ck_ok(context, io_output_commit(output));
    char text[20] = {0};
    ck_assert_int_eq(read(reader, text, sizeof text - 1), 7);
    ck_assert_str_eq(text, "through");
    close(reader);
    struct stat about;
    stat(path_of("pipe"), &about);
    ck_assert(S_ISFIFO(about.st_mode));
}

CONTEXT_TEST(a_symbolic_link_keeps_pointing_to_its_file, 0, 1)
{
    write_file(path_of("real"), "old", 3);
    ck_assert_int_eq(symlink("real", path_of("link")), 0);
    io_output *output = open_output(context, path_of("link"));
    io_output_string(output, "new");
    ck_ok(context, io_output_commit(output));
    ck_assert_str_eq(contents(path_of("real")), "new");
    struct stat about;
    lstat(path_of("link"), &about);
    ck_assert(S_ISLNK(about.st_mode));
}

TEST(an_output_that_is_the_input_is_known_by_any_name)
{
    const char *pipe_name = "/dev/null";
    char real[128], other[128], linked[128], hard[128], none[128];
    snprintf(real, sizeof real, "%s", path_of("real"));
    snprintf(other, sizeof other, "%s", path_of("other"));
    snprintf(linked, sizeof linked, "%s", path_of("./link"));
    snprintf(hard, sizeof hard, "%s", path_of("hard"));
    snprintf(none, sizeof none, "%s", path_of("none"));
    write_file(real, "a b\n", 4);
    write_file(other, "a b\n", 4);
    ck_assert_int_eq(symlink("real", linked), 0);
    ck_assert_int_eq(link(real, hard), 0);
    ck_assert(io_output_is_input(real, real) && io_output_is_input(linked, real) && io_output_is_input(real, linked));
    ck_assert(io_output_is_input(hard, linked));
    ck_assert(!io_output_is_input(other, real) && !io_output_is_input(none, real) && !io_output_is_input(none, none));
    ck_assert(!io_output_is_input(pipe_name, pipe_name) && !io_output_is_input(folder, folder));
}

static bool is_one_place(const char *one, const char *other)
{
    char first[420];
    io_place a, b;
    snprintf(first, sizeof first, "%s", one);
    io_output_place(first, &a);
    io_output_place(other, &b);
    ck_assert_int_eq(io_output_same_place(&a, &b), io_output_same_place(&b, &a));
    return io_output_same_place(&a, &b);
}

TEST(outputs_of_one_place_are_known_by_any_name)
{
    char one[128], longest[5000];
    snprintf(one, sizeof one, "%s", path_of("one"));
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    for (int there = 0; there < 2; there++) {
        if (there) write_file(one, "x", 1);
        ck_assert(is_one_place(one, path_of("one")) && is_one_place(one, path_of("./one")));
        ck_assert(!is_one_place(one, path_of("other")) && !is_one_place(one, path_of("none/one")));
        ck_assert(!is_one_place(one, folder) && !is_one_place(one, longest) && !is_one_place(one, ""));
    }
    ck_assert(!is_one_place(path_of("none/one"), path_of("neither/one")));
    ck_assert_int_eq(symlink("one", path_of("link")), 0);
    ck_assert_int_eq(link(one, path_of("hard")), 0);
    ck_assert(is_one_place(one, path_of("link")) && !is_one_place(one, path_of("hard")));
    ck_assert(is_one_place("-", "-") && !is_one_place("/dev/null", "/dev/null") && !is_one_place("-", one));
}

CONTEXT_TEST(an_account_names_what_was_written, 0, 1)
{
    char account[600], name[420];
    const bool fresh = !io_output_account(account, sizeof account); /* not where other tests ran in this process */
    if (fresh) ck_assert_str_eq(account, "no file was written");
    io_output_discard(open_output(context, path_of("never")));
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "%s%d", path_of("f"), i);
        for (int again = 0; again < 2; again++) {
            io_output *output = open_output(context, name);
            io_output_string(output, "x");
            ck_ok(context, io_output_commit(output));
        }
        ck_assert(io_output_account(account, sizeof account));
        if (!fresh) continue;
        const char *end = i == 0   ? "/f0 was written, no other file"
                          : i == 1 ? "/f0 and "
                                   : "were written, no other file";
        ck_assert_ptr_nonnull(strstr(account, end));
    }
    char cut[20];
    io_output_account(cut, sizeof cut);
    ck_assert_uint_lt(strlen(cut), sizeof cut);
}

CONTEXT_TEST(outputs_of_one_result_appear_together, 0, 1)
{
    io_output *outputs[3];
    static const char *const names[] = {"one", "two", "three"};
    for (int attempt = 0; attempt < 2; attempt++) {
        for (int i = 0; i < 3; i++) {
            outputs[i] = open_output(context, i == 1 && attempt == 0 ? "/dev/full" : path_of(names[i]));
            io_output_string(outputs[i], names[i]);
        }
        ck_assert_int_eq(io_output_commit_all(outputs, 3) == SP_OK, attempt == 1);
        ck_assert_int_eq(files_in_folder(), attempt == 0 ? 0 : 3);
    }
    ck_ok(context, io_output_commit_all(outputs, 0));
}

CONTEXT_TEST(signal_handlers_can_remove_what_is_unfinished, 0, 1)
{
    io_output *one = open_output(context, path_of("one")), *two = open_output(context, path_of("two")), *same;
    ck_assert_int_ne(io_output_open(context, path_of("one"), &same), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "already being written"));
    io_output_string(one, "x");
    ck_assert_int_eq(files_in_folder(), 2);
    io_output_unlink_all();
    ck_assert_int_eq(files_in_folder(), 0);
    ck_assert_int_ne(io_output_commit(one), SP_OK);
    io_output_discard(two);
    ck_assert_int_eq(files_in_folder(), 0);
}

/* What nobody has locked is of a process that was killed. A file of another output or with another name stays. */
CONTEXT_TEST(a_temporary_file_of_a_living_process_stays, 0, 1)
{
    static const char *const others[] = {"out.tmp.0123abcd", "out.tmp.0123abc", "out.tmp.0123abcg",
                                         "out2.tmp.0123abcd"};
    for (int locked = 0; locked < 2; locked++) {
        for (int k = 0; k < 4; k++) file_of(others[k], "half", 4);
        const int file = open(path_of(others[0]), O_WRONLY);
        if (locked) ck_assert_int_eq(flock(file, LOCK_EX), 0);
        io_output *output = open_output(context, path_of("out"));
        io_output_string(output, "new");
        ck_ok(context, io_output_commit(output));
        ck_assert_str_eq(contents(path_of("out")), "new");
        for (int k = locked ? 0 : 1; k < 4; k++) ck_assert_str_eq(contents(path_of(others[k])), "half");
        ck_assert_int_eq(files_in_folder(), locked ? 5 : 4);
        close(file);
    }
}

/* The only temporary file in the folder. */
static void find_temporary(char path[420])
{
    DIR *entries = opendir(folder);
    path[0] = '\0';
    for (const struct dirent *entry; (entry = readdir(entries));)
        if (strstr(entry->d_name, ".tmp.")) snprintf(path, 420, "%s", path_of(entry->d_name));
    closedir(entries);
    ck_assert_str_ne(path, "");
}

CONTEXT_TEST(a_temporary_file_that_was_replaced_is_neither_published_nor_removed, 0, 1)
{
    char path[420];
    write_file(path_of("out"), "old", 3);
    for (int end = 0; end < 4; end++) {
        io_output *output = open_output(context, path_of("out"));
        io_output_string(output, "new");
        find_temporary(path);
        if (end == 3) ck_assert_int_eq(unlink(path), 0);
        else {
            ck_assert_int_eq(rename(path, path_of("away")), 0);
            write_file(path, "half", 4);
        }
        if (end == 0) io_output_unlink_all();
        if (end == 1) io_output_discard(output);
        else {
            ck_assert_int_ne(io_output_commit(output), SP_OK);
            ck_assert_ptr_nonnull(strstr(sp_last_error(context), "out: another process removed or replaced its "
                                                                 "temporary file; nothing was written there"));
        }
        ck_assert_str_eq(contents(path_of("out")), "old");
        if (end < 3) {
            ck_assert_str_eq(contents(path), "half");
            ck_assert_int_eq(unlink(path), 0);
            ck_assert_int_eq(unlink(path_of("away")), 0);
        }
        ck_assert_int_eq(files_in_folder(), 1);
    }
}

CONTEXT_TEST(names_of_temporary_files_are_not_confused, 0, 1)
{
    char path[420];
    io_output *one = open_output(context, path_of("one")), *same;
    find_temporary(path);
    io_output *two = open_output(context, path); /* opens, since `one` is not written there */
    io_output_discard(two);
    ck_assert_int_ne(io_output_open(context, path_of("./one"), &same), SP_OK);
    io_output_discard(one);
    ck_assert_int_eq(files_in_folder(), 0);
}

/* Two outputs of one file, as of two processes; the file appears when the first is committed. */
TEST(outputs_that_join_write_one_file)
{
    sp_context *context = test_context(0, 1);
    const char *path = path_of("shared.txt");
    char text[20] = "";
    io_output *first, *second;
    ck_ok(context, io_output_open(context, path, &first));
    ck_ok(context, io_output_join(context, path, io_output_temporary(first), &second));
    io_output_string(first, "head ");
    io_output_at(second, 9, "tail", 4);
    io_output_at(first, 5, "own ", 4);
    ck_ok(context, io_output_commit(second));
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_ok(context, io_output_commit(first));
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(text, 1, sizeof text, file), 13);
    ck_assert_str_eq(text, "head own tail");
    fclose(file);
    ck_assert_int_eq(io_output_join(context, path, "/nowhere/x.tmp.1", &second), SP_ERROR_ARGUMENT);
    ck_assert_msg(strstr(sp_last_error(context), "all hosts share") != NULL, "%s", sp_last_error(context));
    ck_ok(context, io_output_open(context, "/dev/full", &first));
    ck_assert_ptr_null(io_output_temporary(first));
    ck_ok(context, io_output_join(context, path, "/dev/full", &second));
    io_output_at(second, 0, "x", 1);
    ck_assert_int_eq(io_output_commit(second), SP_ERROR_ARGUMENT);
    ck_assert_msg(strstr(sp_last_error(context), "No space left") != NULL, "%s", sp_last_error(context));
    io_output_discard(first);
    sp_context_destroy(context);
}

const test_entry output_tests[] = {
    CASE_WITH("files", 120, make_folder, remove_folder),
    ONCE(outputs_that_join_write_one_file),
    ONCE(output_appears_at_commit_and_not_before),
    ONCE(output_longer_than_its_buffer_is_complete),
    ONCE(compressed_output_is_complete_and_the_same_in_each_run),
    ONCE(a_compressed_output_that_is_discarded_leaves_nothing),
    ONCE(output_in_shared_memory_replaces_a_longer_file),
    ONCE(outputs_that_cannot_be_are_refused_before_the_work),
    ONCE(write_errors_are_reported_at_commit),
    ONCE(a_pipe_is_written_directly),
    ONCE(a_symbolic_link_keeps_pointing_to_its_file),
    ONCE(an_output_that_is_the_input_is_known_by_any_name),
    ONCE(signal_handlers_can_remove_what_is_unfinished),
    ONCE(a_temporary_file_of_a_living_process_stays),
    ONCE(a_temporary_file_that_was_replaced_is_neither_published_nor_removed),
    ONCE(names_of_temporary_files_are_not_confused),
    ONCE(outputs_of_one_place_are_known_by_any_name),
    ONCE(an_account_names_what_was_written),
    ONCE(outputs_of_one_result_appear_together),
    {0},
};
