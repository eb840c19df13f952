/* SIF and ETC, with values and without. What is accepted is written as a table of edges, which takes all names, and
 * read again. */
#include "round_trip.h"

static void write_and_read(sp_context *context, const io_graph *graph) { fuzz_round_trip(context, graph, IO_CSV); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    io_read_options options = {.format = data[0] & 16 ? IO_ETC : IO_SIF, .expect_values = data[0] & 32};
    return fuzz_read(data, size, options, write_and_read);
}
