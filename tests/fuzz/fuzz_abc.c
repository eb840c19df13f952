/* Label triples, and everything that automatic detection may take the bytes for: gzip and zstd too. What is accepted is
 * written as label triples. */
#include "round_trip.h"

static void write_and_read(sp_context *context, const io_graph *graph) { fuzz_round_trip(context, graph, IO_ABC); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const io_format format = size > 0 && data[0] & 16 ? IO_AUTO : IO_ABC;
    return fuzz_read(data, size, (io_read_options){.format = format}, write_and_read);
}
