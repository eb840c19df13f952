/* Byte sources: a file, standard input or memory, decompressed on the way.
 *
 * The first bytes decide: gzip, zstd (unpack.c) or plain; xz and bzip2 are refused by name, and so are UTF-16 and text
 * whose lines end with CR alone. Plain files are read straight into the caller's buffer. No mmap: a file that shrinks
 * while it is read must not kill the process.
 *
 * A byte order mark of UTF-8, which spreadsheets put before text, is dropped. Within the first label it would make a
 * second node that looks like the first.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.h"
#include "bytes/ahead.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "bytes/source.h"

enum { PEEK_BYTES = 1 << 16 };

struct io_source {
    sp_context *context;
    const char *name;
    io_raw raw;
    bool close_file;
    int64_t size;
    io_ahead *ahead; /* NULL: the bytes are plain */
    char *peeked; /* uncompressed bytes that io_source_peek took */
    size_t peeked_at, peeked_end;
    bool keep_mark; /* a byte order mark is passed on */
    size_t mark;    /* bytes of one that was dropped */
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

/* ---- all kinds ------------------------------------------------------------------------------------------ */

static sp_status report(io_source *source, io_trouble trouble)
{
    if (trouble.status == SP_OK) return SP_OK;
    return fail(source, trouble.status, trouble.what ? trouble.what : strerror(trouble.error));
}

static io_trouble read_plain(io_raw *raw, char *to, size_t count, size_t *got)
{
    io_trouble trouble = {SP_OK, NULL, 0};
    size_t ahead = raw->end - raw->at;
    if (ahead > count) ahead = count;
    memcpy(to, raw->input + raw->at, ahead);
    raw->at += ahead;
    *got = 0;
    if (!raw->ended) trouble = io_raw_read(raw, to + ahead, count - ahead, got);
    *got += ahead;
    return trouble;
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
    io_raw *raw = &source->raw;
    source->started = true;
    /* The bytes of a short input in memory are copied to a place of their length: a read beyond them is found. */
    const bool is_short = raw->file < 0 && raw->memory_left < IO_INPUT_BYTES;
    const size_t room = is_short ? raw->memory_left : IO_INPUT_BYTES;
    sp_status status = io_grow(source->context, 0, (int64_t)room, 1, (void **)&raw->input);
    if (status == SP_OK) status = report(source, io_raw_refill(raw));
    if (status != SP_OK) return status;
    const bool gzip = raw->end >= 2 && memcmp(raw->input, "\x1f\x8b", 2) == 0;
    const bool zstd = raw->end >= 4 && memcmp(raw->input, "\x28\xb5\x2f\xfd", 4) == 0;
    if (gzip || zstd) {
        source->size = 0;
        status = io_ahead_open(source->context, raw, zstd, &source->ahead);
        return status == SP_OK ? status : fail(source, status, "out of memory for decompression");
    }
    const char *refused = refuse_compression(raw->input, raw->end);
    return refused ? fail(source, SP_ERROR_ARGUMENT, refused) : SP_OK;
}

static sp_status read_any(io_source *source, char *to, size_t count, size_t *got)
{
    *got = 0;
    if (!source->started) {
        sp_status status = start(source);
        if (status != SP_OK) return status;
    }
    return report(source, source->ahead ? io_ahead_read(source->ahead, to, count, got)
                                        : read_plain(&source->raw, to, count, got));
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
    source->peeked_at = source->mark = io_mark_bytes(source->peeked, got);
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

/* ---- parts ------------------------------------------------------------------------------------------------ */

bool io_source_has_parts(const io_source *source)
{
    return source->raw.file >= 0 && source->size > 0 && source->started && !source->ahead;
}

/* Reads bytes of the file at a place. *got is 0 at its end only. */
static sp_status read_at(io_source *source, int64_t place, char *to, size_t count, size_t *got)
{
    ssize_t bytes;
    do bytes = pread(source->raw.file, to, count, (off_t)place);
    while (bytes < 0 && errno == EINTR);
    *got = bytes > 0 ? (size_t)bytes : 0;
    return bytes < 0 ? fail(source, SP_ERROR_ARGUMENT, strerror(errno)) : SP_OK;
}

/* The place of the first line that begins at `place` or after it and, with `columns`, behind one that ends a column; at
 * `least` one begins. */
static sp_status find_line(io_source *source, int64_t least, int64_t place, bool columns, int64_t *begin)
{
    char bytes[4096], last = 0; /* of the line, but for blanks */
    bool ends = !columns, comment = true; /* the first line is seen in part */
    size_t got;
    *begin = place;
    for (int64_t at = place - 1; place > least; at += (int64_t)got) {
        const sp_status status = read_at(source, at, bytes, sizeof bytes, &got);
        *begin = source->size;
        if (status != SP_OK || got == 0) return status;
        for (size_t i = 0; i < got; i++) {
            if (bytes[i] == '\n') {
                *begin = at + (int64_t)i + 1;
                if (ends || (last == '$' && !comment)) return SP_OK;
                comment = false;
                last = 0;
            } else {
                comment = comment || bytes[i] == '#';
                if (bytes[i] > ' ') last = bytes[i];
            }
        }
    }
    return SP_OK;
}

sp_status io_source_take_range(io_source *source, int64_t begin, int64_t end)
{
    if (lseek(source->raw.file, (off_t)begin, SEEK_SET) < 0) return fail(source, SP_ERROR_ARGUMENT, strerror(errno));
    source->peeked_at = source->peeked_end = 0;
    source->raw.at = source->raw.end = 0;
    source->raw.ended = false;
    source->raw.limited = true;
    source->raw.left = source->size = end - begin;
    return SP_OK;
}

sp_status io_source_take_part(io_source *source, int64_t taken, int part, int parts, bool columns, int64_t *begin)
{
    const int64_t least = (int64_t)source->mark + taken, all = source->size - least;
    const int64_t share = all / parts, rest = all % parts;
    const int64_t from = least + share * part + rest * part / parts;
    const int64_t to = least + share * (part + 1) + rest * (part + 1) / parts;
    int64_t end;
    sp_status status = find_line(source, least, from, columns, begin);
    if (status == SP_OK) status = find_line(source, least, to, columns, &end);
    return status == SP_OK ? io_source_take_range(source, *begin, end) : status;
}

sp_status io_source_count_lines(io_source *source, int64_t begin, int64_t *lines)
{
    char bytes[1 << 14];
    size_t got;
    *lines = 0;
    for (int64_t at = 0; at < begin; at += (int64_t)got) {
        const size_t wanted = begin - at < (int64_t)sizeof bytes ? (size_t)(begin - at) : sizeof bytes;
        const sp_status status = read_at(source, at, bytes, wanted, &got);
        if (status != SP_OK || got == 0) return status;
        for (size_t i = 0; i < got; i++) *lines += bytes[i] == '\n';
    }
    return SP_OK;
}

/* ---- the rest --------------------------------------------------------------------------------------------- */

void io_source_keep_mark(io_source *source) { source->keep_mark = true; }

int io_source_descriptor(const io_source *source) { return source->close_file ? source->raw.file : -1; }

const char *io_source_name(const io_source *source) { return source->name; }

int64_t io_source_size(const io_source *source) { return source->size; }

void io_source_close(io_source *source)
{
    if (!source) return;
    io_ahead_close(source->ahead);
    if (source->close_file) close(source->raw.file);
    FREE_ALL(source->context, source->peeked, source->raw.input, source);
}

sp_status io_source_memory(sp_context *context, const char *name, const void *bytes, size_t count, io_source **source)
{
    sp_status status = sp_calloc(context, 1, sizeof **source, (void **)source);
    if (status != SP_OK) return status;
    (*source)->context = context;
    (*source)->name = name;
    (*source)->raw.file = -1;
    (*source)->raw.memory = bytes;
    (*source)->raw.memory_left = count;
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
    (*source)->raw.interrupt = interrupt;
    (*source)->raw.file = file;
    (*source)->raw.stalls = !S_ISREG(about.st_mode);
    (*source)->close_file = !standard;
    (*source)->size = S_ISREG(about.st_mode) ? (int64_t)about.st_size : 0;
    return SP_OK;
}
