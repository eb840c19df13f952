/* Label triples, and everything that automatic detection may take the bytes for: gzip and zstd too. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const io_format format = size > 0 && data[0] & 16 ? IO_AUTO : IO_ABC;
    return fuzz_read(data, size, (io_read_options){.format = format}, NULL);
}
