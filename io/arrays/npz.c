/* Reading NumPy's .npz: a zip archive (PKWARE APPNOTE 6.3) of .npy files, stored or deflated.
 *
 * The central directory of the archive locates the members; its zip64 fields hold sizes and offsets beyond 32 bits.
 * Only the length of local headers is used. Stored members are read straight into place. Deflated members are inflated
 * in portions, so that memory grows with the data and not with the claims of a header. Checksums are compared.
 *
 * libzip could replace some 300 lines of this file and of npz_write.c, but would break three promises. Its memory comes
 * from malloc instead of the context's allocator. It does not tell the offset of a stored member, so that not all
 * threads could read it. It writes archives only to outputs that can seek, not to a pipe.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/try.h"
#include "arrays/npy.h"
#include "bytes/memory.h"
#include "bytes/message.h"

enum {
    END_BYTES = 22, LOCATOR_BYTES = 20, CENTRAL_BYTES = 46, LOCAL_BYTES = 30,
    MOST_COMMENT = 65535,
    DEFLATED = 8, ENCRYPTED = 1,
    INPUT = 1 << 16, PORTION = 1 << 20
};

typedef struct member {
    const char *name;
    size_t name_length;
    int method, flags;
    uint32_t crc;
    int64_t compressed, size, header; /* bytes; where its local header is */
} member;

struct io_npz {
    sp_context *context;
    io_file file;
    unsigned char *directory;
    int64_t directory_at, directory_bytes, count;
    member *members;
};

static sp_status refuse(const io_npz *npz, const char *what)
{
    return sp_fail(npz->context, SP_ERROR_MATRIX, "%s: %s", npz->file.name, what);
}

static sp_status refuse_member(const io_npz *npz, const member *m, const char *what)
{
    char shown[4 * IO_TOKEN_SHOWN + 16];
    io_show_token(m->name, m->name + m->name_length, shown, sizeof shown);
    return sp_fail(npz->context, SP_ERROR_MATRIX, "%s: %s: %s", npz->file.name, shown, what);
}

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

/* ---- the directory ------------------------------------------------------------------------------------- */

/* Where the end record begins, in the last bytes of the file; -1 if there is none. */
static int64_t find_end(const unsigned char *tail, int64_t count)
{
    for (int64_t at = count - END_BYTES; at >= 0; at--)
        if (memcmp(tail + at, "PK\5\6", 4) == 0 && at + END_BYTES + (int64_t)number(tail + at + 20, 2) == count)
            return at;
    return -1;
}

/* The directory's place and entries from the zip64 end record, where a locator stands before the end record. */
static sp_status read_end64(io_npz *npz, int64_t end, uint64_t numbers[3])
{
    unsigned char locator[LOCATOR_BYTES], record[END64_BYTES];
    if (end < LOCATOR_BYTES) return SP_OK;
    sp_status status = io_file_read(&npz->file, end - LOCATOR_BYTES, locator, LOCATOR_BYTES, NULL);
    if (status != SP_OK || memcmp(locator, "PK\6\7", 4) != 0) return status;
    const uint64_t at = number(locator + 8, 8);
    if (at > (uint64_t)end || (uint64_t)end - at < END64_BYTES)
        return refuse(npz, "a directory that is not there; write it again");
    status = io_file_read(&npz->file, (int64_t)at, record, END64_BYTES, NULL);
    if (status != SP_OK) return status;
    if (memcmp(record, "PK\6\6", 4) != 0) return refuse(npz, "a directory that is not there; write it again");
    numbers[0] = number(record + 32, 8);
    numbers[1] = number(record + 40, 8);
    numbers[2] = number(record + 48, 8);
    return SP_OK;
}

static sp_status find_directory(io_npz *npz)
{
    const int64_t size = npz->file.size, most = END_BYTES + MOST_COMMENT, count = size < most ? size : most;
    unsigned char *tail = NULL;
    uint64_t numbers[3]; /* entries, bytes, place */
    sp_status status = sp_alloc(npz->context, count, 1, (void **)&tail);
    if (status != SP_OK) return status;
    TRY(io_file_read(&npz->file, size - count, tail, count, NULL));
    const int64_t end = find_end(tail, count);
    if (end < 0) {
        unsigned char begin[4] = {0};
        if (size >= 4) TRY(io_file_read(&npz->file, 0, begin, 4, NULL));
        TRY(refuse(npz, number(begin, 4) == 0x04034b50 ? "the archive has no end; the file is truncated"
                                                       : "no .npz archive; write it with numpy.savez"));
    }
    numbers[0] = number(tail + end + 10, 2);
    numbers[1] = number(tail + end + 12, 4);
    numbers[2] = number(tail + end + 16, 4);
    TRY(read_end64(npz, size - count + end, numbers));
    const uint64_t before = (uint64_t)(size - count + end);
    if (numbers[2] > before || numbers[1] > before - numbers[2] || numbers[0] > numbers[1] / CENTRAL_BYTES)
        TRY(refuse(npz, "a directory that is not there; the file is damaged"));
    npz->count = (int64_t)numbers[0];
    npz->directory_bytes = (int64_t)numbers[1];
    npz->directory_at = (int64_t)numbers[2];
done:
    sp_free(npz->context, tail);
    return status;
}

/* Replaces those of the sizes and offset of a member that its zip64 field holds. */
static bool read_zip64(const unsigned char *extra, size_t bytes, uint64_t *values[3])
{
    bool wanted = false;
    for (int i = 0; i < 3; i++) wanted = wanted || *values[i] == UINT32_MAX;
    while (wanted && bytes >= 4) {
        const size_t id = (size_t)number(extra, 2), length = (size_t)number(extra + 2, 2);
        if (length > bytes - 4) return false;
        if (id == ZIP64_FIELD) {
            size_t at = 0;
            for (int i = 0; i < 3; i++) {
                if (*values[i] != UINT32_MAX) continue;
                if (at + 8 > length) return false;
                *values[i] = number(extra + 4 + at, 8);
                at += 8;
            }
            return true;
        }
        extra += 4 + length;
        bytes -= 4 + length;
    }
    return !wanted || bytes == 0;
}

static sp_status read_directory(io_npz *npz)
{
    const unsigned char *at = npz->directory, *end = at + npz->directory_bytes;
    for (int64_t i = 0; i < npz->count; i++) {
        member *m = &npz->members[i];
        if (end - at < CENTRAL_BYTES || memcmp(at, "PK\1\2", 4) != 0)
            return refuse(npz, "a damaged directory; write the file again");
        const size_t name = (size_t)number(at + 28, 2), extra = (size_t)number(at + 30, 2),
                     comment = (size_t)number(at + 32, 2);
        uint64_t compressed = number(at + 20, 4), size = number(at + 24, 4), header = number(at + 42, 4);
        if ((size_t)(end - at) - CENTRAL_BYTES < name + extra + comment)
            return refuse(npz, "a damaged directory; write the file again");
        m->name = (const char *)at + CENTRAL_BYTES;
        m->name_length = name;
        m->flags = (int)number(at + 8, 2);
        m->method = (int)number(at + 10, 2);
        m->crc = (uint32_t)number(at + 16, 4);
        if (!read_zip64(at + CENTRAL_BYTES + name, extra, (uint64_t *[3]){&size, &compressed, &header}) ||
            compressed > INT64_MAX || size > INT64_MAX || header > (uint64_t)npz->directory_at)
            return refuse_member(npz, m, "sizes that cannot be; write the file again");
        m->compressed = (int64_t)compressed;
        m->size = (int64_t)size;
        m->header = (int64_t)header;
        at += CENTRAL_BYTES + name + extra + comment;
    }
    return SP_OK;
}

sp_status io_npz_open_file(io_file *file, io_npz **npz)
{
    sp_context *context = file->context;
    io_npz *made;
    *npz = NULL;
    sp_status status = sp_calloc(context, 1, sizeof *made, (void **)&made);
    if (status != SP_OK) {
        io_file_close(file);
        return status;
    }
    made->context = context;
    made->file = *file;
    TRY(find_directory(made));
    TRY(sp_alloc(context, made->directory_bytes, 1, (void **)&made->directory));
    TRY(io_file_read(&made->file, made->directory_at, made->directory, made->directory_bytes, NULL));
    TRY(sp_alloc(context, made->count, sizeof *made->members, (void **)&made->members));
    status = read_directory(made);
done:
    if (status == SP_OK) *npz = made;
    else io_npz_close(made);
    return status;
}

sp_status io_npz_open(sp_context *context, const char *path, const volatile int *interrupt, io_npz **npz)
{
    io_file file;
    *npz = NULL;
    sp_status status = io_file_open(context, path, interrupt, &file);
    return status == SP_OK ? io_npz_open_file(&file, npz) : status;
}

void io_npz_close(io_npz *npz)
{
    if (!npz) return;
    io_file_close(&npz->file);
    FREE_ALL(npz->context, npz->directory, npz->members, npz);
}

sp_context *io_npz_context(const io_npz *npz) { return npz->context; }

const char *io_npz_path(const io_npz *npz) { return npz->file.name; }

/* ---- members ------------------------------------------------------------------------------------------- */

/* NAME or NAME.npy; the last of several, as in Python. */
static const member *find(const io_npz *npz, const char *name)
{
    const size_t length = strlen(name);
    for (int64_t i = npz->count - 1; i >= 0; i--) {
        const member *m = &npz->members[i];
        const bool begins = m->name_length >= length && memcmp(m->name, name, length) == 0;
        if (begins && (m->name_length == length ||
                       (m->name_length == length + 4 && memcmp(m->name + length, ".npy", 4) == 0)))
            return m;
    }
    return NULL;
}

bool io_npz_has(const io_npz *npz, const char *name) { return find(npz, name) != NULL; }

/* Where a member's bytes begin. */
static sp_status find_bytes(const io_npz *npz, const member *m, int64_t *begin)
{
    unsigned char local[LOCAL_BYTES];
    if (npz->directory_at - m->header < LOCAL_BYTES)
        return refuse_member(npz, m, "a place that is not in the file; write the file again");
    sp_status status = io_file_read(&npz->file, m->header, local, LOCAL_BYTES, NULL);
    if (status != SP_OK) return status;
    if (memcmp(local, "PK\3\4", 4) != 0)
        return refuse_member(npz, m, "no member begins where the directory says; the file is damaged");
    *begin = m->header + LOCAL_BYTES + (int64_t)number(local + 26, 2) + (int64_t)number(local + 28, 2);
    if (*begin > npz->directory_at || m->compressed > npz->directory_at - *begin)
        return refuse_member(npz, m, "it is longer than the file; the file is truncated");
    return SP_OK;
}

static sp_status check_crc(const io_npz *npz, const member *m, uint32_t crc)
{
    return crc == m->crc ? SP_OK : refuse_member(npz, m, "the checksum is wrong: the file is damaged");
}

static sp_status read_stored(const io_npz *npz, const member *m, const char *name, int64_t begin, io_array *array)
{
    const int64_t count = m->size < IO_NPY_HEADER ? m->size : IO_NPY_HEADER;
    unsigned char *head_bytes = NULL;
    void *values = NULL;
    uint32_t crc = 0;
    io_npy_head head;
    sp_status status;
    TRY(sp_alloc(npz->context, count, 1, (void **)&head_bytes));
    TRY(io_file_read(&npz->file, begin, head_bytes, count, NULL));
    TRY(io_npy_parse(npz->context, name, head_bytes, count, m->size, &head));
    crc = (uint32_t)crc32_z(0, head_bytes, (size_t)head.begin);
    TRY(sp_alloc(npz->context, head.bytes, 1, &values));
    TRY(io_file_read(&npz->file, begin + head.begin, values, head.bytes, &crc));
    TRY(check_crc(npz, m, crc));
    status = io_npy_finish(npz->context, name, values, &head);
    values = NULL;
    if (status == SP_OK) *array = head.array;
done:
    FREE_ALL(npz->context, head_bytes, values);
    return status;
}

/* Inflates a whole member into `out`, which grows with the data. */
static sp_status inflate_member(const io_npz *npz, const member *m, int64_t begin, z_stream *stream,
                                unsigned char *input, unsigned char **out)
{
    int64_t taken = 0, made = 0, capacity = 0;
    int result = Z_OK;
    sp_status status = io_reserve(npz->context, 0, 1, 1, &capacity, (void **)out);
    while (status == SP_OK && result != Z_STREAM_END) {
        if (stream->avail_in == 0 && taken < m->compressed) {
            const int64_t left = m->compressed - taken, now = left < INPUT ? left : INPUT;
            status = io_file_read(&npz->file, begin + taken, input, now, NULL);
            if (status != SP_OK) break;
            stream->next_in = input;
            stream->avail_in = (uInt)now;
            taken += now;
        }
        /* One byte more than the member has, so that its end is seen. */
        const int64_t wanted = m->size - made < PORTION ? m->size - made + 1 : PORTION;
        status = io_reserve(npz->context, made, made + wanted, 1, &capacity, (void **)out);
        if (status != SP_OK) break;
        stream->next_out = *out + made;
        stream->avail_out = (uInt)wanted;
        result = inflate(stream, Z_NO_FLUSH);
        made += wanted - stream->avail_out;
        if (result == Z_MEM_ERROR)
            status = sp_fail(npz->context, SP_ERROR_HOST_MEMORY, "out of memory for decompression");
        else if (made > m->size || (result != Z_OK && result != Z_STREAM_END))
            status = refuse_member(npz, m, "damaged data; the file is truncated or damaged");
    }
    if (status == SP_OK && made != m->size)
        status = refuse_member(npz, m, "damaged data; the file is truncated or damaged");
    return status;
}

/* All bytes of a member, their checksum compared; *out is NULL on failure. */
static sp_status read_whole(const io_npz *npz, const member *m, int64_t begin, unsigned char **out)
{
    z_stream stream = {.zalloc = io_zlib_allocate, .zfree = io_zlib_release, .opaque = npz->context};
    unsigned char *input = NULL;
    sp_status status;
    *out = NULL;
    if (m->method == STORED) {
        status = sp_alloc(npz->context, m->compressed, 1, (void **)out);
        if (status == SP_OK) status = io_file_read(&npz->file, begin, *out, m->compressed, NULL);
    } else {
        status = sp_alloc(npz->context, INPUT, 1, (void **)&input);
        if (status == SP_OK && inflateInit2(&stream, -15) != Z_OK)
            status = sp_fail(npz->context, SP_ERROR_HOST_MEMORY, "out of memory for decompression");
        else if (status == SP_OK) {
            status = inflate_member(npz, m, begin, &stream, input, out);
            inflateEnd(&stream);
        }
        sp_free(npz->context, input);
    }
    if (status == SP_OK) status = check_crc(npz, m, io_crc(npz->context, 0, *out, m->size));
    if (status != SP_OK) sp_free(npz->context, *out);
    if (status != SP_OK) *out = NULL;
    return status;
}

static sp_status read_deflated(const io_npz *npz, const member *m, const char *name, int64_t begin, io_array *array)
{
    unsigned char *bytes;
    io_npy_head head;
    sp_status status = read_whole(npz, m, begin, &bytes);
    if (status != SP_OK) return status;
    status = io_npy_parse(npz->context, name, bytes, m->size, m->size, &head);
    if (status != SP_OK) {
        sp_free(npz->context, bytes);
        return status;
    }
    memmove(bytes, bytes + head.begin, (size_t)head.bytes);
    status = io_npy_finish(npz->context, name, bytes, &head);
    if (status == SP_OK) *array = head.array;
    return status;
}

/* The member and where its bytes begin. */
static sp_status open_member(const io_npz *npz, const char *name, const member **m, int64_t *begin)
{
    *m = find(npz, name);
    *begin = 0;
    if (!*m)
        return sp_fail(npz->context, SP_ERROR_ARGUMENT, "%s: %.200s: there is no such member in the archive",
                       npz->file.name, name);
    if ((*m)->flags & ENCRYPTED) return refuse_member(npz, *m, "it is encrypted; write it without");
    if ((*m)->method != STORED && (*m)->method != DEFLATED)
        return refuse_member(npz, *m, "a compression that is not read; write it with numpy.savez");
    if ((*m)->method == STORED && (*m)->size != (*m)->compressed)
        return refuse_member(npz, *m, "sizes that cannot be; write the file again");
    return find_bytes(npz, *m, begin);
}

sp_status io_npz_read(io_npz *npz, const char *name, io_array *array)
{
    const member *m;
    char called[PATH_MAX + MOST_NAME];
    int64_t begin;
    memset(array, 0, sizeof *array);
    snprintf(called, sizeof called, "%s: %.200s", npz->file.name, name);
    sp_status status = open_member(npz, name, &m, &begin);
    if (status != SP_OK) return status;
    return m->method == STORED ? read_stored(npz, m, called, begin, array)
                               : read_deflated(npz, m, called, begin, array);
}
