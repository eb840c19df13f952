/* What the parts of test_npy share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "npy_shared.h"

void failed(sp_context *context, sp_status status, const char *path, const char *sentence)
{
    const char *said = sp_last_error(context);
    ck_assert_msg(status != SP_OK, "accepted instead of \"%s\"", sentence);
    const size_t length = strlen(path);
    ck_assert_msg(strncmp(said, path, length) == 0 && strncmp(said + length, sentence, strlen(sentence)) == 0,
                  "\"%s\" instead of \"%s%s\"", said, path, sentence);
    ck_assert_ptr_null(strchr(said, '\n'));
}

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

bytes npy(int version, const char *header, const void *values, size_t count)
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

bytes array_of(const char *type, const char *order, const char *shape, const void *values, size_t count)
{
    char header[256];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", type, order, shape);
    return npy(1, header, values, count);
}

static void put_zip64(bytes *to, bool wanted, size_t size, size_t compressed)
{
    if (!wanted) return;
    add_number(to, 1, 2);
    add_number(to, 16, 2);
    add_number(to, size, 8);
    add_number(to, compressed, 8);
}

void put_member(archive *to, const char *name, const bytes *content, member_options o)
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
    to->end64 = to->end64 || o.end64;
}

/* The end record of archives of more than 4 GB, and its locator. */
static void put_end64(bytes *to, const archive *from, size_t directory)
{
    const size_t at = to->count;
    add_number(to, 0x06064b50, 4);
    add_number(to, 44, 8);
    add_number(to, 45, 2);
    add_number(to, 45, 2);
    add_number(to, 0, 8); /* disks */
    add_number(to, (uint64_t)from->count, 8);
    add_number(to, (uint64_t)from->count, 8);
    add_number(to, from->directory.count, 8);
    add_number(to, directory, 8);
    add_number(to, 0x07064b50, 4);
    add_number(to, 0, 4);
    add_number(to, at, 8);
    add_number(to, 1, 4);
}

bytes end_archive(const archive *from)
{
    bytes all = from->file;
    const size_t begin = all.count;
    const bool large = from->end64;
    add(&all, from->directory.at, from->directory.count);
    if (large) put_end64(&all, from, begin);
    add_number(&all, 0x06054b50, 4);
    add_number(&all, 0, 4);
    add_number(&all, large ? UINT16_MAX : (uint64_t)from->count, 2);
    add_number(&all, large ? UINT16_MAX : (uint64_t)from->count, 2);
    add_number(&all, large ? UINT32_MAX : from->directory.count, 4);
    add_number(&all, large ? UINT32_MAX : begin, 4);
    add_number(&all, 0, 2);
    return all;
}

bytes csr_archive(const csr_members *m)
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

const char *classes_text(const io_classes *c)
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
