/* Byte sources: a file, standard input or memory, decompressed on the way.
 *
 * The first bytes decide: gzip (any number of members, zero padding after the last), zstd (any number of frames) or
 * plain; xz and bzip2 are refused by name, and so are UTF-16 and text whose lines end with CR alone. A compressed
 * stream that ends early or is damaged is an error naming the file, never a short file. Plain files are read straight
 * into the caller's buffer. No mmap: a file that shrinks while it is read must not kill the process.
 *
 * A byte order mark of UTF-8, which spreadsheets put before text, is dropped. Within the first label it would make a
 * second node that looks like the first.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "bytes/memory.h"
#include "bytes/message.h"
#include "bytes/source.h"

enum {
    INPUT_BYTES = 1 << 17, /* compressed bytes taken at once */
    PEEK_BYTES = 1 << 16,
    ZSTD_HEADER = 3 /* bytes of a block header, which zstd asks for together with the block before */
};

typedef enum source_kind { SOURCE_PLAIN, SOURCE_GZIP, SOURCE_ZSTD } source_kind;

struct io_source {
    sp_context *context;
    const volatile int *interrupt;
    const char *name;
    source_kind kind;
    int file; /* -1: memory */
    bool close_file;
    const char *memory; /* what is left of it */
    size_t memory_left;
    int64_t size;
    char *input; /* raw bytes read ahead: all that is compressed, the magic number of a plain file */
    size_t input_at, input_end;
    bool input_ended;
    char *peeked; /* uncompressed bytes that io_source_peek took */
    size_t peeked_at, peeked_end;
    bool keep_mark; /* a byte order mark is passed on */
    z_stream gzip;
    bool gzip_open;
    ZSTD_DStream *zstd;
    size_t zstd_wanted; /* what it next asks for; 0 while decompressed bytes may wait inside */
    bool between; /* a member or frame has ended and none has begun */
    bool started;
    int64_t lines; /* that io_source_line took */
};

static sp_status fail(io_source *source, sp_status code, const char *what)
{
    sp_status status;
#pragma omp critical(io_context)
    status = sp_fail(source->context, code, "%s: %s", source->name, what);
    return status;
}

/* ---- raw bytes ------------------------------------------------------------------------------------------ */

static sp_status read_raw(io_source *source, char *to, size_t count, size_t *got)
{
    *got = 0;
    if (source->file < 0) {
        *got = count < source->memory_left ? count : source->memory_left;
        memcpy(to, source->memory, *got);
        source->memory += *got;
        source->memory_left -= *got;
        return SP_OK;
    }
    while (*got < count) {
        if (source->interrupt && *source->interrupt)
            return fail(source, SP_ERROR_INTERRUPTED, "reading was interrupted");
        ssize_t bytes = read(source->file, to + *got, count - *got);
        if (bytes == 0) break;
        if (bytes > 0)
            *got += (size_t)bytes;
        else if (errno != EINTR)
            return fail(source, SP_ERROR_ARGUMENT, strerror(errno));
    }
    return SP_OK;
}

static sp_status refill(io_source *source)
{
    if (source->input_ended) return SP_OK;
    size_t got;
    sp_status status = read_raw(source, source->input, INPUT_BYTES, &got);
    source->input_at = 0;
    source->input_end = got;
    source->input_ended = got < INPUT_BYTES;
    return status;
}

/* ---- gzip ----------------------------------------------------------------------------------------------- */

static sp_status gzip_open(io_source *source)
{
    source->gzip.zalloc = io_zlib_allocate;
    source->gzip.zfree = io_zlib_release;
    source->gzip.opaque = source->context;
    if (inflateInit2(&source->gzip, 15 + 16) != Z_OK)
        return fail(source, SP_ERROR_HOST_MEMORY, "out of memory for decompression");
    source->gzip_open = true;
    return SP_OK;
}

/* Between members: zero padding is skipped; *more says whether another member begins. */
static sp_status gzip_next_member(io_source *source, bool *more)
{
    *more = false;
    for (;;) {
        while (source->input_at < source->input_end && source->input[source->input_at] == 0) source->input_at++;
        if (source->input_at < source->input_end) break;
        if (source->input_ended) return SP_OK;
        sp_status status = refill(source);
        if (status != SP_OK) return status;
    }
    if ((unsigned char)source->input[source->input_at] != 0x1f)
        return fail(source, SP_ERROR_ARGUMENT, "bytes that are not gzip data follow the compressed data");
    inflateReset(&source->gzip);
    source->between = false;
    *more = true;
    return SP_OK;
}

static sp_status read_gzip(io_source *source, char *to, size_t count, size_t *got)
{
    sp_status status;
    *got = 0;
    while (*got < count) {
        if (source->between) {
            bool more;
            status = gzip_next_member(source, &more);
            if (status != SP_OK || !more) return status;
        }
        if (source->input_at == source->input_end) {
            status = refill(source);
            if (status != SP_OK) return status;
        }
        /* Even then: what its last bytes stand for may still wait inside. */
        const bool starved = source->input_at == source->input_end;
        size_t room = count - *got;
        if (room > UINT32_MAX) room = UINT32_MAX;
        source->gzip.next_in = (Bytef *)(source->input + source->input_at);
        source->gzip.avail_in = (uInt)(source->input_end - source->input_at);
        source->gzip.next_out = (Bytef *)(to + *got);
        source->gzip.avail_out = (uInt)room;
        int result = inflate(&source->gzip, Z_NO_FLUSH);
        source->input_at = source->input_end - source->gzip.avail_in;
        *got += room - source->gzip.avail_out;
        if (result == Z_STREAM_END)
            source->between = true;
        else if (starved && result == Z_BUF_ERROR)
            return fail(source, SP_ERROR_ARGUMENT,
                        "the gzip data end too soon: the file is truncated; copy or compress it again");
        else if (result == Z_MEM_ERROR)
            return fail(source, SP_ERROR_HOST_MEMORY, "out of memory for decompression");
        else if (result != Z_OK)
            return fail(source, SP_ERROR_ARGUMENT, "the gzip data are damaged; copy or compress the file again");
    }
    return SP_OK;
}

/* ---- zstd ----------------------------------------------------------------------------------------------- */

/* zstd's stable interface takes no allocator, so its state is the one block here that comes from malloc. */
static sp_status zstd_open(io_source *source)
{
    source->zstd = ZSTD_createDStream();
    if (!source->zstd || ZSTD_isError(ZSTD_initDStream(source->zstd)))
        return fail(source, SP_ERROR_HOST_MEMORY, "out of memory for decompression");
    source->zstd_wanted = ZSTD_HEADER;
    return SP_OK;
}

/* A call of zstd that fails discards its output. So each call gets one block or one block header, and no input while
 * output waits: the bytes before damaged data do not depend on how much is read at once. */
static sp_status read_zstd(io_source *source, char *to, size_t count, size_t *got)
{
    *got = 0;
    while (*got < count) {
        if (source->input_at == source->input_end) {
            sp_status status = refill(source);
            if (status != SP_OK) return status;
            if (source->input_at == source->input_end && source->between) return SP_OK;
        }
        bool starved = source->input_at == source->input_end;
        size_t offered = source->zstd_wanted, ahead = source->input_end - source->input_at;
        if (offered > ZSTD_HEADER) offered -= ZSTD_HEADER;
        if (offered > ahead) offered = ahead;
        ZSTD_inBuffer in = {source->input, source->input_at + offered, source->input_at};
        ZSTD_outBuffer out = {to, count, *got};
        size_t hint = ZSTD_decompressStream(source->zstd, &out, &in);
        if (ZSTD_isError(hint))
            return fail(source, SP_ERROR_ARGUMENT, "the zstd data are damaged; copy or compress the file again");
        bool idle = out.pos == *got && in.pos == source->input_at;
        if (starved && idle && source->zstd_wanted)
            return fail(source, SP_ERROR_ARGUMENT,
                        "the zstd data end too soon: the file is truncated; copy or compress it again");
        source->between = hint == 0;
        source->zstd_wanted = out.pos == count ? 0 : hint == 0 ? ZSTD_HEADER : hint;
        source->input_at = in.pos;
        *got = out.pos;
    }
    return SP_OK;
}

/* ---- all kinds ------------------------------------------------------------------------------------------ */

static sp_status read_plain(io_source *source, char *to, size_t count, size_t *got)
{
    size_t ahead = source->input_end - source->input_at;
    if (ahead > count) ahead = count;
    memcpy(to, source->input + source->input_at, ahead);
    source->input_at += ahead;
    *got = 0;
    sp_status status = SP_OK;
    if (!source->input_ended) status = read_raw(source, to + ahead, count - ahead, got);
    *got += ahead;
    return status;
}

/* The message for a compression that is not supported, else NULL. */
static const char *refuse_compression(const char *bytes, size_t count)
{
    if (count >= 6 && memcmp(bytes, "\xfd" "7zXZ", 6) == 0)
        return "compressed by xz, which is not read; unpack it first with xz -d, or use gzip or zstd";
    if (count >= 10 && memcmp(bytes, "BZh", 3) == 0 && memcmp(bytes + 4, "1AY&SY", 6) == 0)
        return "compressed by bzip2, which is not read; unpack it first with bzip2 -d, or use gzip or zstd";
    return NULL;
}

/* Looks at the first bytes and opens the decompressor that they ask for. */
static sp_status start(io_source *source)
{
    static const unsigned char zstd_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    source->started = true;
    sp_status status = io_grow(source->context, 0, INPUT_BYTES, 1, (void **)&source->input);
    if (status == SP_OK) status = refill(source);
    if (status != SP_OK) return status;
    if (source->input_end >= 2 && memcmp(source->input, "\x1f\x8b", 2) == 0) {
        source->kind = SOURCE_GZIP;
        source->size = 0;
        return gzip_open(source);
    }
    if (source->input_end >= 4 && memcmp(source->input, zstd_magic, 4) == 0) {
        source->kind = SOURCE_ZSTD;
        source->size = 0;
        return zstd_open(source);
    }
    const char *refused = refuse_compression(source->input, source->input_end);
    return refused ? fail(source, SP_ERROR_ARGUMENT, refused) : SP_OK;
}

static sp_status read_any(io_source *source, char *to, size_t count, size_t *got)
{
    *got = 0;
    if (!source->started) {
        sp_status status = start(source);
        if (status != SP_OK) return status;
    }
    switch (source->kind) {
    case SOURCE_GZIP: return read_gzip(source, to, count, got);
    case SOURCE_ZSTD: return read_zstd(source, to, count, got);
    case SOURCE_PLAIN: break;
    }
    return read_plain(source, to, count, got);
}

/* The message for text that no reader supports (UTF-16; lines that end with CR alone), else NULL. Lines end with CR
 * alone if the bytes hold a CR, no LF and no other control character but tabs. */
static const char *refuse_text(const char *bytes, size_t count)
{
    bool cr = false;
    if (count >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return "text in UTF-16, which is not read; save it as UTF-8, or convert it with iconv -f UTF-16 -t UTF-8";
    for (size_t i = 0; i < count; i++) {
        if ((unsigned char)bytes[i] < ' ' && bytes[i] != '\t' && bytes[i] != '\r') return NULL;
        cr = cr || (bytes[i] == '\r' && i + 1 < count);
    }
    return cr ? "its lines end with CR alone, as old Macs wrote them; convert it with tr '\\r' '\\n'" : NULL;
}

/* Fills the look-ahead buffer. */
static sp_status look_ahead(io_source *source)
{
    const bool first = !source->peeked;
    if (first) {
        sp_status status = io_grow(source->context, 0, PEEK_BYTES + 1, 1, (void **)&source->peeked);
        if (status != SP_OK) return status;
    }
    size_t left = source->peeked_end - source->peeked_at, got;
    memmove(source->peeked, source->peeked + source->peeked_at, left);
    sp_status status = read_any(source, source->peeked + left, PEEK_BYTES - left, &got);
    source->peeked_at = 0;
    source->peeked_end = left + got;
    source->peeked[left + got] = '\n';
    if (!first || source->keep_mark) return status;
    const char *refused = status == SP_OK ? refuse_text(source->peeked, got) : NULL;
    if (refused) {
        source->peeked_end = 0;
        return fail(source, SP_ERROR_ARGUMENT, refused);
    }
    source->peeked_at = io_mark_bytes(source->peeked, got);
    return status;
}

sp_status io_source_read(io_source *source, void *to, size_t count, size_t *got)
{
    sp_status status = SP_OK;
    *got = 0;
    if (!source->peeked) status = look_ahead(source);
    size_t ahead = source->peeked_end - source->peeked_at;
    if (status != SP_OK && ahead == 0) return status; /* otherwise the error comes again, after these bytes */
    if (ahead > count) ahead = count;
    if (ahead) memcpy(to, source->peeked + source->peeked_at, ahead);
    source->peeked_at += ahead;
    status = ahead < count ? read_any(source, (char *)to + ahead, count - ahead, got) : SP_OK;
    *got += ahead;
    return status;
}

sp_status io_source_peek(io_source *source, const char **bytes, size_t *count)
{
    sp_status status = SP_OK;
    if (source->peeked_end - source->peeked_at < *count) status = look_ahead(source);
    size_t ahead = source->peeked_end - source->peeked_at;
    *bytes = ahead ? source->peeked + source->peeked_at : "";
    if (ahead < *count) *count = ahead;
    return status;
}

sp_status io_source_refuse_zip(io_source *source)
{
    const char *bytes;
    size_t count = 4;
    sp_status status = io_source_peek(source, &bytes, &count);
    if (status != SP_OK && count == 0) return status;
    if (count < 4 || memcmp(bytes, "PK\3\4", 4) != 0) return SP_OK;
    return fail(source, SP_ERROR_ARGUMENT, "a zip archive, which is not read here; unpack it first with unzip");
}

sp_status io_source_line(io_source *source, const char **line, const char **end, int64_t *bytes)
{
    *line = *end = NULL;
    for (int attempt = 0; attempt < 2; attempt++) {
        size_t ahead = source->peeked_end - source->peeked_at;
        const char *begin = ahead ? source->peeked + source->peeked_at : NULL;
        const char *newline = ahead ? memchr(begin, '\n', ahead) : NULL;
        if (attempt == 0 && !newline) {
            sp_status status = look_ahead(source);
            if (status != SP_OK) return status;
            continue;
        }
        if (ahead == 0) return SP_OK;
        source->lines++;
        const char *stop = newline ? newline : begin + ahead;
        const char *nul = source->keep_mark ? NULL : memchr(begin, '\0', (size_t)(stop - begin));
        if (nul)
            return io_fail_line(source->context, source->name, source->lines, "the line holds a NUL byte", nul, nul + 1,
                                IO_NO_TEXT);
        if (!newline && ahead == PEEK_BYTES)
            return io_fail_line(source->context, source->name, source->lines, "a line of more than 65536 bytes", begin,
                                stop, "is this the right format?");
        *line = begin;
        *end = stop;
        size_t taken = newline ? (size_t)(newline + 1 - begin) : ahead;
        source->peeked_at += taken;
        *bytes += (int64_t)taken;
        break;
    }
    return SP_OK;
}

void io_source_keep_mark(io_source *source) { source->keep_mark = true; }

const char *io_source_name(const io_source *source) { return source->name; }

int64_t io_source_size(const io_source *source) { return source->size; }

void io_source_close(io_source *source)
{
    if (!source) return;
    if (source->gzip_open) inflateEnd(&source->gzip);
    ZSTD_freeDStream(source->zstd);
    if (source->close_file) close(source->file);
    sp_free(source->context, source->peeked);
    sp_free(source->context, source->input);
    sp_free(source->context, source);
}

sp_status io_source_memory(sp_context *context, const char *name, const void *bytes, size_t count, io_source **source)
{
    sp_status status = sp_calloc(context, 1, sizeof **source, (void **)source);
    if (status != SP_OK) return status;
    (*source)->context = context;
    (*source)->name = name;
    (*source)->file = -1;
    (*source)->memory = bytes;
    (*source)->memory_left = count;
    (*source)->size = (int64_t)count;
    return SP_OK;
}

sp_status io_source_open(sp_context *context, const char *path, const volatile int *interrupt, io_source **source)
{
    bool standard = strcmp(path, "-") == 0;
    *source = NULL;
    int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s; give a readable file, or - for standard input", path,
                       strerror(errno));
    struct stat about;
    const char *name = standard ? "(standard input)" : path;
    sp_status status = SP_OK;
    if (fstat(file, &about) != 0)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", name, strerror(errno));
    else if (S_ISDIR(about.st_mode))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: this is a folder; give a file", name);
    if (status == SP_OK) status = io_source_memory(context, name, NULL, 0, source);
    if (status != SP_OK) {
        if (!standard) close(file);
        return status;
    }
    (*source)->interrupt = interrupt;
    (*source)->file = file;
    (*source)->close_file = !standard;
    (*source)->size = S_ISREG(about.st_mode) ? (int64_t)about.st_size : 0;
    return SP_OK;
}
