/* DIMACS graphs. What is accepted is written and read again. */
#include "round_trip.h"

static void write_and_read(sp_context *context, const io_graph *graph) { fuzz_round_trip(context, graph, IO_DIMACS); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read(data, size, (io_read_options){.format = IO_DIMACS}, write_and_read);
}
