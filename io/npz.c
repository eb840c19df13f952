/* NumPy's .npz: a zip archive (PKWARE APPNOTE 6.3) of .npy files, stored or deflated; and scipy's CSR in one.
 *
 * Members are found by the archive's central directory alone, sizes and offsets beyond 32 bits by its zip64 fields;
 * of the local headers only their length counts. Stored members are read straight into place, deflated ones inflated
 * in portions, so that memory follows what the file holds. Checksums are compared.
 */
#include <limits.h>
#include <stdio.h>
#include <zlib.h>

#include "internal.h"

enum {
    END_BYTES = 22, END64_BYTES = 56, LOCATOR_BYTES = 20, CENTRAL_BYTES = 46, LOCAL_BYTES = 30,
    MOST_COMMENT = 65535,
    STORED = 0, DEFLATED = 8, ENCRYPTED = 1, ZIP64_FIELD = 1, VERSION_64 = 45,
    INPUT = 1 << 16, PORTION = 1 << 20, MOST_NAME = 256
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

/* Sizes and the place of a member that are said to be in its zip64 field. */
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
    sp_free(npz->context, npz->directory);
    sp_free(npz->context, npz->members);
    sp_free(npz->context, npz);
}

const char *io_npz_path(const io_npz *npz) { return npz->file.name; }

/* ---- members ------------------------------------------------------------------------------------------- */

/* NAME or NAME.npy; of several the last, as Python has it. */
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
    sp_free(npz->context, head_bytes);
    sp_free(npz->context, values);
    return status;
}

static void *zip_allocate(void *context, uInt count, uInt size)
{
    void *pointer = NULL;
    return io_grow(context, 0, (int64_t)count, size, &pointer) == SP_OK ? pointer : NULL;
}

static void zip_release(void *context, void *pointer) { sp_free(context, pointer); }

/* All of a deflated member into `out`, which grows with what comes. */
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
    z_stream stream = {.zalloc = zip_allocate, .zfree = zip_release, .opaque = npz->context};
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

/* ---- matrices ------------------------------------------------------------------------------------------ */

/* What scipy's CSR consists of; indices and offsets of any type. */
typedef struct csr_parts {
    io_array data, indices, offsets, shape;
} csr_parts;

static void free_parts(sp_context *context, csr_parts *parts)
{
    io_array_free(context, &parts->data);
    io_array_free(context, &parts->indices);
    io_array_free(context, &parts->offsets);
    io_array_free(context, &parts->shape);
}

static sp_status read_part(io_npz *npz, const char *prefix, const char *part, io_array *array)
{
    char name[MOST_NAME];
    snprintf(name, sizeof name, "%s%s", prefix, part);
    return io_npz_read(npz, name, array);
}

static sp_status check_format(io_npz *npz, const char *prefix)
{
    io_array format;
    sp_status status = SP_OK;
    char name[MOST_NAME];
    snprintf(name, sizeof name, "%sformat", prefix);
    if (!io_npz_has(npz, name)) return SP_OK;
    status = io_npz_read(npz, name, &format);
    if (status != SP_OK) return status;
    if (format.type != IO_TEXT || format.count != 1 || format.item_size < 3 || memcmp(format.values, "csr", 3) != 0)
        status = refuse(npz, "a sparse matrix that is not CSR; save tocsr() of it");
    io_array_free(npz->context, &format);
    return status;
}

static sp_status read_parts(io_npz *npz, const char *prefix, csr_parts *parts)
{
    sp_status status;
    TRY(check_format(npz, prefix));
    TRY(read_part(npz, prefix, "shape", &parts->shape));
    TRY(read_part(npz, prefix, "indptr", &parts->offsets));
    TRY(read_part(npz, prefix, "indices", &parts->indices));
    status = read_part(npz, prefix, "data", &parts->data);
done:
    return status;
}

static sp_status convert_parts(sp_context *context, const char *name, csr_parts *parts)
{
    sp_status status;
    TRY(io_array_to_i64(context, name, &parts->shape));
    TRY(io_array_to_i64(context, name, &parts->offsets));
    TRY(io_array_to_i32(context, name, &parts->indices));
    status = io_array_to_f32(context, name, &parts->data);
done:
    return status;
}

/* Offsets and columns, all that is not the order of columns. */
static const char *parts_wrong(sp_context *context, const csr_parts *parts)
{
    const int64_t *shape = parts->shape.values, *offsets = parts->offsets.values;
    const int32_t *columns = parts->indices.values;
    const int64_t nnz = parts->indices.count;
    int64_t wrong = 0;
    if (parts->shape.dimensions != 1 || parts->shape.count != 2) return "the shape is not two numbers";
    if (shape[0] < 0 || shape[0] > INT32_MAX || shape[1] < 0 || shape[1] > INT32_MAX)
        return "more than 2^31 - 1 rows or columns";
    if (parts->offsets.dimensions != 1 || parts->offsets.count != shape[0] + 1)
        return "indptr has not one number more than there are rows";
    if (parts->indices.dimensions != 1 || parts->data.dimensions != 1 || parts->data.count != nnz)
        return "indices and data differ in length";
    if (offsets[0] != 0 || offsets[shape[0]] != nnz) return "indptr does not run from 0 to the number of entries";
    for (int64_t i = 0; i < shape[0]; i++)
        if (offsets[i] > offsets[i + 1]) return "indptr does not ascend";
#pragma omp parallel for schedule(static) reduction(+ : wrong) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < nnz; e++) wrong += columns[e] < 0 || columns[e] >= shape[1];
    return wrong ? "a column that is not within the shape" : NULL;
}

/* Unsorted or repeated columns: by way of triples. */
static sp_status sort_entries(sp_context *context, const csr_parts *parts, sp_csr *matrix)
{
    const int64_t *shape = parts->shape.values, *offsets = parts->offsets.values;
    int32_t *rows;
    sp_status status = sp_alloc(context, parts->indices.count, sizeof *rows, (void **)&rows);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1024) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t e = offsets[i]; e < offsets[i + 1]; e++) rows[e] = (int32_t)i;
    status = sp_csr_from_coo(context, shape[0], shape[1], parts->indices.count, rows, parts->indices.values,
                             parts->data.values, SP_F32, SP_COMBINE_SUM, false, matrix);
    sp_free(context, rows);
    return status;
}

static bool ascends(sp_context *context, const csr_parts *parts)
{
    const int64_t *offsets = parts->offsets.values, rows = parts->offsets.count - 1;
    const int32_t *columns = parts->indices.values;
    int64_t wrong = 0;
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : wrong) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = offsets[i] + 1; e < offsets[i + 1]; e++) wrong += columns[e - 1] >= columns[e];
    return wrong == 0;
}

/* The matrix that they make, checked, sorted, repeated entries summed; arrays may be taken over. */
static sp_status make_csr(sp_context *context, const char *name, csr_parts *parts, sp_csr *matrix)
{
    memset(matrix, 0, sizeof *matrix);
    sp_status status = convert_parts(context, name, parts);
    if (status != SP_OK) return status;
    const char *wrong = parts_wrong(context, parts);
    if (wrong) return sp_fail(context, SP_ERROR_MATRIX, "%s: no sparse matrix: %s; write it again", name, wrong);
    if (!ascends(context, parts)) return sort_entries(context, parts, matrix);
    const int64_t *shape = parts->shape.values;
    *matrix = (sp_csr){.rows = shape[0], .cols = shape[1], .nnz = parts->indices.count, .value_type = SP_F32};
    matrix->row_offsets = parts->offsets.values;
    matrix->col_indices = parts->indices.values;
    matrix->values = parts->data.values;
    parts->offsets.values = parts->indices.values = parts->data.values = NULL;
    return SP_OK;
}

sp_status io_npz_matrix(io_npz *npz, const char *prefix, sp_csr *matrix)
{
    csr_parts parts = {0};
    memset(matrix, 0, sizeof *matrix);
    sp_status status = read_parts(npz, prefix, &parts);
    if (status == SP_OK) status = make_csr(npz->context, npz->file.name, &parts, matrix);
    free_parts(npz->context, &parts);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

typedef struct written {
    char name[MOST_NAME];
    uint32_t crc;
    int64_t size, header;
} written;

enum { CSR_MEMBERS = 5 };

typedef struct npz_writer {
    sp_context *context;
    io_output *output;
    int64_t at;
    int count;
    written members[CSR_MEMBERS];
} npz_writer;

/* Bytes of a record in the making. */
typedef struct record {
    unsigned char bytes[512];
    size_t used;
} record;

static void add(record *to, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes; i++) to->bytes[to->used++] = (unsigned char)(value >> 8 * i);
}

static void put_record(npz_writer *writer, const record *r)
{
    io_output_bytes(writer->output, r->bytes, r->used);
    writer->at += (int64_t)r->used;
}

static uint64_t in_32(int64_t value, bool wide) { return wide ? UINT32_MAX : (uint64_t)value; }

/* The head of a member, local or in the directory; sizes in the zip64 field where they do not fit. */
static void put_head(npz_writer *writer, const written *m, bool central)
{
    record r = {.used = 0};
    const bool wide = m->size >= UINT32_MAX, far = central && m->header >= UINT32_MAX;
    const size_t extra = (wide ? 16u : 0u) + (far ? 8u : 0u), name = strlen(m->name);
    add(&r, 4, central ? 0x02014b50 : 0x04034b50);
    if (central) add(&r, 2, VERSION_64);
    add(&r, 2, extra ? VERSION_64 : 20);
    add(&r, 2, 0); /* flags */
    add(&r, 2, STORED);
    add(&r, 2, 0); /* 00:00 on 1980-01-01: the same bytes whenever they are written */
    add(&r, 2, 1 << 5 | 1);
    add(&r, 4, m->crc);
    add(&r, 4, in_32(m->size, wide));
    add(&r, 4, in_32(m->size, wide));
    add(&r, 2, name);
    add(&r, 2, extra ? extra + 4 : 0);
    if (central) {
        add(&r, 2, 0); /* comment */
        add(&r, 2, 0); /* disk */
        add(&r, 2, 0);
        add(&r, 4, (uint64_t)0600 << 16);
        add(&r, 4, in_32(m->header, far));
    }
    memcpy(r.bytes + r.used, m->name, name);
    r.used += name;
    if (extra) add(&r, 2, ZIP64_FIELD);
    if (extra) add(&r, 2, extra);
    if (wide) add(&r, 8, (uint64_t)m->size);
    if (wide) add(&r, 8, (uint64_t)m->size);
    if (far) add(&r, 8, (uint64_t)m->header);
    put_record(writer, &r);
}

static void put_member(npz_writer *writer, const char *name, const io_array *array)
{
    char header[IO_NPY_WRITTEN];
    const size_t length = io_npy_header(array, header);
    const int64_t bytes = array->count * (int64_t)array->item_size;
    written *m = &writer->members[writer->count++];
    *m = (written){.size = (int64_t)length + bytes, .header = writer->at};
    snprintf(m->name, sizeof m->name, "%.128s.npy", name);
    m->crc = io_crc(writer->context, (uint32_t)crc32_z(0, (const Bytef *)header, length), array->values, bytes);
    put_head(writer, m, false);
    io_output_bytes(writer->output, header, length);
    io_output_bytes(writer->output, array->values, (size_t)bytes);
    writer->at += m->size;
}

static void put_end(npz_writer *writer, int64_t begin)
{
    const int64_t bytes = writer->at - begin, end = writer->at;
    const bool wide = begin >= UINT32_MAX;
    record r = {.used = 0};
    if (wide) {
        add(&r, 4, 0x06064b50);
        add(&r, 8, END64_BYTES - 12);
        add(&r, 2, VERSION_64);
        add(&r, 2, VERSION_64);
        add(&r, 8, 0); /* disks */
        add(&r, 8, (uint64_t)writer->count);
        add(&r, 8, (uint64_t)writer->count);
        add(&r, 8, (uint64_t)bytes);
        add(&r, 8, (uint64_t)begin);
        add(&r, 4, 0x07064b50);
        add(&r, 4, 0);
        add(&r, 8, (uint64_t)end);
        add(&r, 4, 1);
    }
    add(&r, 4, 0x06054b50);
    add(&r, 4, 0);
    add(&r, 2, wide ? 0xffff : (uint64_t)writer->count);
    add(&r, 2, wide ? 0xffff : (uint64_t)writer->count);
    add(&r, 4, wide ? UINT32_MAX : (uint64_t)bytes);
    add(&r, 4, wide ? UINT32_MAX : (uint64_t)begin);
    add(&r, 2, 0);
    put_record(writer, &r);
}

/* The archive's directory. */
static void put_directory(npz_writer *writer)
{
    const int64_t begin = writer->at;
    for (int i = 0; i < writer->count; i++) put_head(writer, &writer->members[i], true);
    put_end(writer, begin);
}

/* indptr, in 32 bits where scipy has them. */
static sp_status put_offsets(sp_context *context, npz_writer *writer, const sp_csr *matrix)
{
    io_array array = {.type = IO_I64, .dimensions = 1, .shape = {matrix->rows + 1}, .count = matrix->rows + 1,
                      .item_size = 8, .values = matrix->row_offsets};
    if (matrix->nnz > INT32_MAX) {
        put_member(writer, "indptr", &array);
        return SP_OK;
    }
    int32_t *narrow;
    sp_status status = sp_alloc(context, array.count, sizeof *narrow, (void **)&narrow);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < array.count; i++) narrow[i] = (int32_t)matrix->row_offsets[i];
    array.type = IO_I32;
    array.item_size = sizeof *narrow;
    array.values = narrow;
    put_member(writer, "indptr", &array);
    sp_free(context, narrow);
    return SP_OK;
}

/* Values, or as many times true. */
static sp_status put_data(sp_context *context, npz_writer *writer, const sp_csr *matrix)
{
    io_array array = {.type = IO_F32, .dimensions = 1, .shape = {matrix->nnz}, .count = matrix->nnz, .item_size = 4,
                      .values = matrix->values};
    if (matrix->values && matrix->value_type == SP_F64) {
        array.type = IO_F64;
        array.item_size = 8;
    }
    if (matrix->values) {
        put_member(writer, "data", &array);
        return SP_OK;
    }
    array.type = IO_BOOL;
    array.item_size = 1;
    sp_status status = sp_alloc(context, matrix->nnz, 1, &array.values);
    if (status != SP_OK) return status;
    memset(array.values, 1, (size_t)matrix->nnz);
    put_member(writer, "data", &array);
    sp_free(context, array.values);
    return SP_OK;
}

sp_status io_put_npz_matrix(sp_context *context, io_output *output, const sp_csr *matrix)
{
    char csr[] = "csr";
    int64_t sizes[2] = {matrix->rows, matrix->cols};
    const io_array indices = {.type = IO_I32, .dimensions = 1, .shape = {matrix->nnz}, .count = matrix->nnz,
                              .item_size = 4, .values = matrix->col_indices};
    const io_array format = {.type = IO_TEXT, .count = 1, .item_size = 3, .values = csr};
    const io_array shape = {.type = IO_I64, .dimensions = 1, .shape = {2}, .count = 2, .item_size = 8,
                            .values = sizes};
    npz_writer writer = {.context = context, .output = output};
    put_member(&writer, "indices", &indices);
    sp_status status = put_offsets(context, &writer, matrix);
    put_member(&writer, "format", &format);
    put_member(&writer, "shape", &shape);
    if (status == SP_OK) status = put_data(context, &writer, matrix);
    if (status == SP_OK) put_directory(&writer);
    return status;
}
