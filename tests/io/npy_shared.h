/* What the parts of test_npy share. */
#ifndef TESTS_NPY_SHARED_H
#define TESTS_NPY_SHARED_H

#include "files.h"
#include "arrays/npy.h"
#include "graphs/formats.h"
#include "nodes/nodes.h"

/* The last failure is PATH followed by `sentence`. */
void failed(sp_context *context, sp_status status, const char *path, const char *sentence);

static const char doubles[] = "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xe0\xbf\0\0\0\0\0\0\0"; /* 1, -0.5, 0 */

typedef struct bytes {
    unsigned char at[1 << 16];
    size_t count;
} bytes;

/* An array of a version with this header, whatever it says. */
bytes npy(int version, const char *header, const void *values, size_t count);
bytes array_of(const char *type, const char *order, const char *shape, const void *values, size_t count);

/* An archive in the making: local headers and data in `file`, the directory apart. */
typedef struct archive {
    bytes file, directory;
    int count;
    bool end64;
} archive;

/* How a member is written; what stays 0 is as NumPy writes it. */
typedef struct member_options {
    bool deflate, descriptor, zip64;
    bool end64;        /* the archive ends as those of more than 4 GB do */
    int flags, method; /* added; instead of the right one */
    uint32_t wrong;    /* added to the checksum */
} member_options;

void put_member(archive *to, const char *name, const bytes *content, member_options o);
bytes end_archive(const archive *from);

typedef struct csr_members {
    const char *shape, *indptr, *indices, *data, *format; /* values in one byte each; format NULL: none */
    size_t rows, nnz, values;
} csr_members;

bytes csr_archive(const csr_members *m);
const char *classes_text(const io_classes *c);

/* The tables of the parts. */
extern const test_entry features_tests[], graphs_tests[];

#endif
