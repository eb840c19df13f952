/* Writing scipy's CSR as an .npz: members that are stored, with the same bytes whenever they are written. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "arrays/npy.h"

enum { VERSION_64 = 45 };

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

/* The bytes of a record that is being built. */
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

/* The values; for a pattern as many bools, all true. */
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
