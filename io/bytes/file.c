/* Bytes of a file at any place, for formats that locate their parts by offsets. Parts of a plain file are read when
 * they are asked for, large parts by all threads. Anything else (compressed, a pipe) is first read into memory. There
 * is no mmap: a file that shrinks while it is read must not kill the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "bytes/file.h"
#include "bytes/memory.h"
#include "bytes/source.h"

enum { PIECE = 1 << 22, PORTION = 1 << 20 };

static sp_status read_all(io_source *source, io_file *file)
{
    int64_t capacity = 0;
    size_t portion = 0, got = 0;
    sp_status status = SP_OK;
    while (status == SP_OK && got == portion) {
        portion = io_next_portion(source, portion, PORTION);
        status = io_reserve(file->context, file->size, file->size + (int64_t)portion, 1, &capacity,
                            (void **)&file->memory);
        if (status == SP_OK) status = io_source_read(source, file->memory + file->size, portion, &got);
        if (status == SP_OK) file->size += (int64_t)got;
    }
    file->bytes = file->memory;
    return status;
}

static bool is_plain(int descriptor, int64_t *size)
{
    struct stat about;
    unsigned char begin[4] = {0};
    if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) || pread(descriptor, begin, 4, 0) < 0) return false;
    *size = (int64_t)about.st_size;
    return memcmp(begin, "\x1f\x8b", 2) != 0 && memcmp(begin, "\x28\xb5\x2f\xfd", 4) != 0;
}

sp_status io_file_of_source(sp_context *context, io_source *source, const volatile int *interrupt, io_file *file)
{
    const int descriptor = io_source_descriptor(source);
    *file = (io_file){.context = context, .name = io_source_name(source), .interrupt = interrupt, .descriptor = -1};
    if (descriptor >= 0) file->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (file->descriptor >= 0 && is_plain(file->descriptor, &file->size)) return SP_OK;
    io_file_close(file);
    const sp_status status = read_all(source, file);
    if (status != SP_OK) io_file_close(file);
    return status;
}

sp_status io_file_open(sp_context *context, const char *path, const volatile int *interrupt, io_file *file)
{
    io_source *source;
    *file = (io_file){.context = context, .name = path, .interrupt = interrupt, .descriptor = -1};
    if (strcmp(path, "-") != 0) file->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (file->descriptor >= 0 && is_plain(file->descriptor, &file->size)) return SP_OK;
    io_file_close(file);
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    file->name = strcmp(path, "-") == 0 ? "(standard input)" : path;
    status = read_all(source, file);
    io_source_close(source);
    if (status != SP_OK) io_file_close(file);
    return status;
}

void io_file_memory(sp_context *context, const char *name, const void *bytes, size_t count, io_file *file)
{
    *file = (io_file){.context = context, .name = name, .descriptor = -1, .bytes = bytes, .size = (int64_t)count};
}

void io_file_close(io_file *file)
{
    if (file->descriptor >= 0) close(file->descriptor);
    sp_free(file->context, file->memory);
    file->descriptor = -1;
    file->memory = NULL;
    file->bytes = NULL;
    file->size = 0;
}

/* Returns 0, an errno, or -1 where the file ends. */
static int read_piece(const io_file *file, int64_t offset, unsigned char *to, size_t count)
{
    if (file->bytes) {
        memcpy(to, file->bytes + offset, count);
        return 0;
    }
    while (count > 0) {
        if (file->interrupt && *file->interrupt) return EINTR;
        const ssize_t got = pread(file->descriptor, to, count, (off_t)offset);
        if (got == 0) return -1;
        if (got < 0 && errno != EINTR) return errno;
        if (got < 0) continue;
        to += got;
        offset += got;
        count -= (size_t)got;
    }
    return 0;
}

static sp_status say(const io_file *file, int failed)
{
    if (file->interrupt && *file->interrupt)
        return sp_fail(file->context, SP_ERROR_INTERRUPTED, "%s: reading was interrupted", file->name);
    return sp_fail(file->context, SP_ERROR_ARGUMENT, "%s: %s", file->name,
                   failed == -1 ? "the file became shorter while it was read" : strerror(failed));
}

sp_status io_file_read(const io_file *file, int64_t offset, void *to, int64_t count, uint32_t *crc)
{
    const int64_t pieces = count / PIECE + 1;
    const int threads = pieces > 1 ? sp_context_threads(file->context) : 1;
    unsigned char *bytes = to;
    uint32_t *sums = NULL;
    int failed = 0;
    if (offset < 0 || count < 0 || offset > file->size || count > file->size - offset)
        return sp_fail(file->context, SP_ERROR_MATRIX, "%s: the file is truncated", file->name);
    if (count == 0) return SP_OK;
    sp_status status = sp_alloc(file->context, pieces, sizeof *sums, (void **)&sums);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1)
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t begin = p * PIECE, left = count - begin, now = left < PIECE ? left : PIECE;
        const int error = now > 0 ? read_piece(file, offset + begin, bytes + begin, (size_t)now) : 0;
#pragma omp critical(io_file)
        failed = failed ? failed : error;
        sums[p] = crc && now > 0 && !error ? (uint32_t)crc32_z(0, bytes + begin, (size_t)now) : 0;
    }
    for (int64_t p = 0; crc && p < pieces; p++) {
        const int64_t left = count - p * PIECE;
        *crc = (uint32_t)crc32_combine(*crc, sums[p], (z_off_t)(left < PIECE ? left : PIECE));
    }
    sp_free(file->context, sums);
    return failed ? say(file, failed) : SP_OK;
}

uint32_t io_crc(sp_context *context, uint32_t crc, const void *bytes, int64_t count)
{
    const int64_t pieces = count / PIECE + 1;
    const int threads = pieces > 1 ? sp_context_threads(context) : 1;
    uint32_t all = crc;
#pragma omp parallel for ordered schedule(static, 1) num_threads(threads) if (threads > 1)
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t begin = p * PIECE, left = count - begin, now = left < PIECE ? left : PIECE;
        const uint32_t sum = now > 0 ? (uint32_t)crc32_z(0, (const Bytef *)bytes + begin, (size_t)now) : 0;
#pragma omp ordered
        all = (uint32_t)crc32_combine(all, sum, (z_off_t)now);
    }
    return all;
}
