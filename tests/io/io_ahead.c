/* test_io: data that are decompressed ahead by threads. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "bytes/source.h"
#include "io_shared.h"

enum { LINES = 60000, ROOM = 8 << 20, BLOCK = 65280, AHEAD_BYTES = 9 << 20 /* more than is read ahead */ };

/* One member as bgzip writes it: with its own length. */
static size_t bgzip_block(const char *text, size_t count, char *into, size_t room)
{
    static const char head[] = "\x1f\x8b\x08\x04\0\0\0\0\0\xff\6\0BC\2\0";
    z_stream stream = {0};
    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)count;
    stream.next_out = (Bytef *)into + 18;
    stream.avail_out = (uInt)room - 26;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    const size_t size = stream.total_out + 26;
    const uint32_t sums[2] = {(uint32_t)crc32(0, (const Bytef *)text, (uInt)count), (uint32_t)count};
    const uint16_t last = (uint16_t)(size - 1);
    memcpy(into, head, 16);
    memcpy(into + 16, &last, 2);
    memcpy(into + size - 8, sums, 8);
    deflateEnd(&stream);
    return size;
}

static size_t bgzip(const char *text, size_t count, char *into, size_t room)
{
    size_t size = 0;
    for (size_t at = 0; at < count; at += BLOCK)
        size += bgzip_block(text + at, count - at < BLOCK ? count - at : BLOCK, into + size, room - size);
    return size + bgzip_block("", 0, into + size, room - size);
}

typedef enum packing { STREAM, MEMBERS, BLOCKS, BLOCKS_AND_STREAM, ZSTD, PACKINGS } packing;

static size_t pack(packing how, const char *text, size_t count, char *into)
{
    size_t size = 0;
    switch (how) {
    case STREAM: return gzip(text, count, into, ROOM);
    case MEMBERS:
        for (size_t at = 0; at < count; at += 1000)
            size += gzip(text + at, count - at < 1000 ? count - at : 1000, into + size, ROOM - size);
        memset(into + size, 0, 1000);
        return size + 1000;
    case BLOCKS: return bgzip(text, count, into, ROOM);
    case BLOCKS_AND_STREAM:
        size = bgzip(text, count / 2, into, ROOM);
        return size + gzip(text + count / 2, count - count / 2, into + size, ROOM - size);
    default: return ZSTD_compress(into, ROOM, text, count, 3);
    }
}

/* Reads it all, `step` bytes at a time; *got are the bytes before the end or the failure. */
static sp_status read_all(sp_context *context, const char *packed, size_t size, size_t step, char *text, size_t *got)
{
    io_source *source;
    size_t now = step;
    ck_ok(context, io_source_memory(context, "in", packed, size, &source));
    sp_status status = SP_OK;
    for (*got = 0; status == SP_OK && now == step; *got += now) {
        ck_assert_uint_le(*got + step, ROOM);
        status = io_source_read(source, text + *got, step, &now);
    }
    io_source_close(source);
    return status;
}

static const struct {
    int threads;
    size_t step;
} readings[] = {{1, 1 << 20}, {1, 777}, {2, 1 << 20}, {2, 5000}, {9, 99999}};

TEST(data_decompressed_ahead_are_the_text)
{
    test_random random = test_seed(21);
    size_t count, got;
    char *text = random_triples(&random, LINES, 3000, &count), *packed = malloc(ROOM), *read = malloc(ROOM);
    const size_t size = pack((packing)_i, text, count, packed);
    ck_assert_uint_gt(size, 1 << 18);
    for (size_t r = 0; r < COUNT(readings); r++) {
        sp_context *context = test_context(0, readings[r].threads);
        ck_ok(context, read_all(context, packed, size, readings[r].step, read, &got));
        ck_assert_uint_eq(got, count);
        ck_assert_int_eq(memcmp(read, text, count), 0);
        sp_context_destroy(context);
    }
    free_all(text, packed);
    free(read);
}

/* Whether zlib accepts all members. */
static bool accepts(const char *packed, size_t size, char *text)
{
    z_stream stream = {0};
    stream.next_in = (Bytef *)(uintptr_t)packed;
    stream.avail_in = (uInt)size;
    ck_assert_int_eq(inflateInit2(&stream, 15 + 16), Z_OK);
    int result = Z_OK;
    while (result == Z_OK) {
        stream.next_out = (Bytef *)text;
        stream.avail_out = ROOM;
        result = inflate(&stream, Z_NO_FLUSH);
        if (result != Z_STREAM_END) continue;
        while (stream.avail_in > 0 && *stream.next_in == 0) stream.next_in++, stream.avail_in--;
        if (stream.avail_in > 0) result = inflateReset(&stream);
    }
    inflateEnd(&stream);
    return result == Z_STREAM_END;
}

/* With a bit changed, or cut short: any number of threads gets the same bytes and the same message, and zlib accepts
 * what is accepted. */
TEST(damage_is_met_at_the_same_place_by_any_number_of_threads)
{
    test_random random = test_seed(22);
    size_t count, got, expected = 0;
    char *text = random_triples(&random, LINES, 3000, &count), *packed = malloc(ROOM), *read = malloc(ROOM),
         *first = malloc(ROOM), message[400];
    const size_t size = pack((packing)_i, text, count, packed);
    for (int trial = 0; trial < 24; trial++) {
        const size_t at = (size_t)test_below(&random, trial % 3 ? (int64_t)size : 200);
        const char flip = (char)(trial % 4 ? 1 << test_below(&random, 8) : 0);
        const size_t left = flip ? size : at;
        sp_status status = SP_OK;
        packed[at] = (char)(packed[at] ^ flip);
        for (size_t r = 0; r < COUNT(readings); r++) {
            sp_context *context = test_context(0, readings[r].threads);
            const sp_status now = read_all(context, packed, left, readings[r].step, r ? read : first, &got);
            if (r == 0) {
                status = now;
                expected = got;
                snprintf(message, sizeof message, "%s", sp_last_error(context));
            }
            test_expect(now == status && strcmp(message, sp_last_error(context)) == 0, "byte %zu: %s instead of %s", at,
                        sp_last_error(context), message);
            test_expect(got == expected && (r == 0 || memcmp(read, first, got) == 0), "byte %zu: %zu, not %zu bytes",
                        at, got, expected);
            sp_context_destroy(context);
        }
        const bool plain = left < 2 || memcmp(packed, "\x1f\x8b", 2) != 0;
        test_expect(status != SP_OK || _i == ZSTD || plain || accepts(packed, left, read), "byte %zu is accepted", at);
        packed[at] = (char)(packed[at] ^ flip);
    }
    free_all(text, packed);
    free_all(read, first);
}

static int threads_now(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return 0;
    while (readdir(tasks)) count++;
    closedir(tasks);
    return count;
}

CONTEXT_TEST(a_source_closed_early_leaves_no_thread, 0, 2)
{
    test_random random = test_seed(23);
    size_t count, got;
    char *text = random_triples(&random, 8 * LINES, 3000, &count), *packed = malloc(ROOM), some[100];
    ck_assert_uint_gt(count, AHEAD_BYTES);
    const size_t size = pack((packing)_i, text, count, packed);
    const int before = threads_now();
    io_source *source;
    ck_ok(context, io_source_memory(context, "in", packed, size, &source));
    ck_ok(context, io_source_read(source, some, sizeof some, &got));
    if (before > 0) ck_assert_int_gt(threads_now(), before);
    io_source_close(source);
    ck_assert_int_eq(threads_now(), before);
    free_all(text, packed);
}

static volatile int interrupted;

static void interrupt(int number) { interrupted = number; }

/* The writer of a pipe says nothing more; a signal comes, and not to the thread that waits. */
CONTEXT_TEST(a_signal_ends_waiting_for_compressed_bytes, 0, 2)
{
    test_random random = test_seed(24);
    size_t count;
    char *text = random_triples(&random, LINES, 3000, &count), *packed = malloc(ROOM);
    pack((packing)_i, text, count, packed);
    int ends[2], saved = dup(0);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(fcntl(ends[1], F_SETPIPE_SZ, 1 << 18), 1 << 18);
    ck_assert_int_eq(write(ends[1], packed, 200000), 200000);
    dup2(ends[0], 0);
    interrupted = 0;
    const struct sigaction action = {.sa_handler = interrupt};
    const struct itimerval soon = {.it_value = {.tv_usec = 200000}};
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
    const io_read_options options = {.format = IO_ABC, .interrupt = &interrupted};
    io_graph graph;
    const sp_status status = io_read_graph(context, "-", &options, &graph);
    dup2(saved, 0);
    close(saved);
    close(ends[0]);
    close(ends[1]);
    ck_assert_int_eq(status, SP_ERROR_INTERRUPTED);
    free_all(text, packed);
}

const test_entry ahead_tests[] = {
    CASE("decompression ahead", 120),
    TURNS(data_decompressed_ahead_are_the_text, PACKINGS),
    TURNS(damage_is_met_at_the_same_place_by_any_number_of_threads, PACKINGS),
    TURNS(a_source_closed_early_leaves_no_thread, PACKINGS),
    TURNS(a_signal_ends_waiting_for_compressed_bytes, PACKINGS),
    {0},
};
