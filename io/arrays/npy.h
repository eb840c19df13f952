/* Arrays of NumPy: the header of a .npy, and files that are open. */
#ifndef IO_ARRAYS_NPY_H
#define IO_ARRAYS_NPY_H

#include "bytes/file.h"

/* What the header of a .npy says: the array without its values, and how they lie in the file. */
typedef struct io_npy_head {
    io_array array;
    int64_t begin;     /* of the values */
    size_t item_bytes; /* in the file */
    int64_t bytes;     /* of all values */
    bool fortran, swap, wide;
} io_npy_head;

enum { IO_NPY_HEADER = 1 << 16 }; /* longer headers are refused */
enum { MOST_NAME = 256, STORED = 0, ZIP64_FIELD = 1, END64_BYTES = 56 }; /* of the zip archives of .npz */

/* Parses the first bytes of a file of `size` bytes. Refuses everything but arrays of numbers whose size fits the file.
 */
sp_status io_npy_parse(sp_context *context, const char *name, const unsigned char *bytes, int64_t count, int64_t size,
                       io_npy_head *head);
/* Moves values, as they lie in the file, into head->array. Frees them on failure. */
sp_status io_npy_finish(sp_context *context, const char *name, void *values, io_npy_head *head);
/* The header of a .npy in version 1, and its length. */
enum { IO_NPY_WRITTEN = 512 };
size_t io_npy_header(const io_array *array, char header[IO_NPY_WRITTEN]);
/* io_read_npy and io_npz_open on an open file (the archive closes it). */
sp_status io_read_npy_file(const io_file *file, io_array *array);
sp_status io_npz_open_file(io_file *file, io_npz **npz);
sp_context *io_npz_context(const io_npz *npz);

#endif
