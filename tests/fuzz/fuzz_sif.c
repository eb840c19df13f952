/* SIF and ETC, with values and without. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    io_read_options options = {.format = data[0] & 16 ? IO_ETC : IO_SIF, .expect_values = data[0] & 32};
    return fuzz_read(data, size, options, NULL);
}
