/* DIMACS graphs. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read(data, size, (io_read_options){.format = IO_DIMACS}, NULL);
}
