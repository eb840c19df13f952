/* Arrays and archives of NumPy. Checksums of an archive are made right first, or nothing but them would
 * be tested. What is accepted has the sizes that it claims, and finite features, labels and columns within their
 * ranges. A graph is written and read again. */
#include <zlib.h>

#include "round_trip.h"

enum { MOST = 1 << 16, CENTRAL = 46, LOCAL = 30 };

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

/* Gives every directory entry the checksum of its stored member. */
static void repair(unsigned char *file, size_t size)
{
    for (size_t at = 0; at + CENTRAL <= size; at++) {
        if (memcmp(file + at, "PK\1\2", 4) != 0 || number(file + at + 10, 2) != 0) continue;
        const size_t bytes = (size_t)number(file + at + 20, 4), local = (size_t)number(file + at + 42, 4);
        if (local + LOCAL > size) continue;
        const size_t name = (size_t)number(file + local + 26, 2), extra = (size_t)number(file + local + 28, 2);
        const size_t begin = local + LOCAL + name + extra;
        if (begin > size || bytes > size - begin) continue;
        const uint32_t crc = (uint32_t)crc32_z(0, file + begin, bytes);
        for (int i = 0; i < 4; i++) file[at + 16 + (size_t)i] = (unsigned char)(crc >> 8 * i);
    }
}

static void check_array(sp_context *context, io_array *array)
{
    io_array copy;
    fuzz_require(array->dimensions >= 0 && array->dimensions <= IO_DIMENSIONS && array->count >= 0);
    unsigned char sum = 0; /* of all bytes, which must be there */
    for (size_t i = 0; i < (size_t)array->count * array->item_size; i++) sum |= ((unsigned char *)array->values)[i];
    fuzz_require((sum & 0x100) == 0);
    copy = *array;
    memset(array, 0, sizeof *array);
    io_classes classes;
    sp_dense dense = {0};
    const bool features = copy.dimensions == 2 && copy.item_size > 1;
    if (features && io_make_features(context, "in", &copy, &dense) == SP_OK)
        for (int64_t e = 0; e < dense.rows * dense.cols; e++) fuzz_require(isfinite(((float *)dense.values)[e]));
    if (!features && io_make_classes(context, "in", &copy, &classes) == SP_OK) {
        for (int64_t i = 0; classes.labels && i < classes.nodes; i++)
            fuzz_require(classes.labels[i] >= -1 && classes.labels[i] < classes.classes);
        io_classes_free(context, &classes);
    }
    sp_dense_free(context, &dense);
    io_array_free(context, &copy);
}

static void read_archive(sp_context *context, const unsigned char *bytes, size_t size)
{
    static const char *const names[] = {"data", "indices", "indptr", "shape", "format", "a"};
    io_file file;
    io_npz *npz;
    io_array array;
    sp_csr matrix;
    io_file_memory(context, "in", bytes, size, &file);
    if (io_npz_open_file(&file, &npz) != SP_OK) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (io_npz_has(npz, names[i]) && io_npz_read(npz, names[i], &array) == SP_OK) check_array(context, &array);
    if (io_npz_matrix(npz, "", &matrix) == SP_OK) {
        const sp_status status = sp_csr_check(context, &matrix);
        fuzz_require(status == SP_OK || status == SP_ERROR_NOT_FINITE);
        sp_csr_free(context, &matrix);
    }
    io_npz_close(npz);
}

static void read_graph(sp_context *context, const unsigned char *bytes, size_t size)
{
    const io_read_options options = {.format = IO_NPZ, .values = size & 1 ? SP_F32 : SP_F64};
    io_graph graph;
    if (io_read_memory(context, "in", bytes, size, &options, 0, &graph) == SP_OK) {
        fuzz_require(io_graph_spread(context, &graph) == SP_OK);
        fuzz_check_graph(&graph, &options);
        fuzz_round_trip(context, &graph, IO_NPZ);
    }
    io_graph_free(context, &graph);
}

static void read_labels(sp_context *context, const unsigned char *bytes, size_t size)
{
    const io_graph graph = {.format = IO_NPZ, .nodes = 3};
    io_labelling l;
    io_source *source;
    fuzz_require(io_source_memory(context, "in", bytes, size, &source) == SP_OK);
    if (io_read_labels_source(context, source, &graph, &(io_label_options){.base = IO_BASE_AUTO, .compact = true},
                              &l) ==
        SP_OK)
        for (int64_t i = 0; l.labels && i < graph.nodes; i++) fuzz_require(l.labels[i] >= -1 && l.labels[i] < l.groups);
    io_source_close(source);
    io_labelling_free(context, &l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char bytes[MOST];
    if (size == 0 || size > sizeof bytes) return 0;
    memcpy(bytes, data, size);
    sp_context *context = fuzz_context(data[0] & 2 ? 2 : 1);
    io_file file;
    io_array array;
    if (data[0] & 128) repair(bytes + 1, size - 1);
    io_file_memory(context, "in", bytes + 1, size - 1, &file);
    if (io_read_npy_file(&file, &array) == SP_OK) check_array(context, &array);
    read_archive(context, bytes + 1, size - 1);
    read_graph(context, bytes + 1, size - 1);
    if (size > 6 && memcmp(bytes + 1, "\x93NUMPY", 6) == 0) read_labels(context, bytes + 1, size - 1);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
