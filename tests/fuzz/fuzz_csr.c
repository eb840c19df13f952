/* Our binary matrices. Checksums are made right first, or nothing but them would be tested; what is accepted as a
 * matrix is written again: the same bytes, but for a byte order mark before them and for entries that are 0 or are
 * rounded to 0, which make no arcs. */
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include "target.h"

enum { HEAD = 56, HEAD_NNZ = 32, HEAD_CRC = 48, TAIL = 8, MOST = 1 << 16 };

static void repair(unsigned char *file, size_t size)
{
    if (size < HEAD + TAIL) return;
    memcpy(file, io_csr_cookie, IO_CSR_COOKIE);
    uint32_t crc = (uint32_t)crc32_z(0, file, HEAD_CRC);
    memcpy(file + HEAD_CRC, &crc, sizeof crc);
    crc = (uint32_t)crc32_z(0, file + HEAD, size - HEAD - TAIL);
    memcpy(file + size - TAIL, &crc, sizeof crc);
}

static void read_matrix(const unsigned char *file, size_t size)
{
    static unsigned char copy[MOST];
    sp_context *context = fuzz_context(1);
    const io_read_options options = {.format = IO_CSR, .matrix = true, .any_sign = true};
    io_graph graph;
    char path[64];
    if (io_read_memory(context, "in", file, size, &options, 0, &graph) == SP_OK) {
        const size_t mark = io_mark_bytes((const char *)file, size);
        file += mark;
        size -= mark;
        fuzz_require(sp_csr_check(context, &graph.matrix) == SP_OK && graph.matrix.rows == graph.nodes);
        fuzz_check_names(&graph.names);
        const io_write_options writing = {.format = IO_CSR, .undirected = graph.undirected, .names = &graph.names};
        fuzz_file(path, sizeof path, "csr");
        fuzz_require(io_write_graph(context, path, &graph.matrix, &writing) == SP_OK);
        FILE *written = fopen(path, "rb");
        const size_t length = written ? fread(copy, 1, sizeof copy, written) : 0;
        int64_t nnz;
        memcpy(&nnz, file + HEAD_NNZ, sizeof nnz);
        if (graph.matrix.nnz == nnz)
            fuzz_require(length == size && memcmp(copy + HEAD, file + HEAD, size - HEAD - 4) == 0);
        else
            fuzz_require(length > 0 && length < size && graph.matrix.nnz < nnz);
        if (written) fclose(written);
        unlink(path);
    }
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char file[MOST];
    if (size > sizeof file || !fuzz_is_short(data, size)) return 0;
    memcpy(file, data, size);
    if (data[0] & 128) repair(file + 1, size - 1);
    read_matrix(file + 1, size - 1);
    return fuzz_read(file, size, (io_read_options){.format = IO_CSR}, NULL);
}
