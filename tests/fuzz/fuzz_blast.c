/* BLAST tables, each score. What is accepted is written as label triples and read again. */
#include "round_trip.h"

static void write_and_read(sp_context *context, const io_graph *graph) { fuzz_round_trip(context, graph, IO_ABC); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const io_blast_score scores[] = {IO_BLAST_BITS, IO_BLAST_EVALUE, IO_BLAST_IDENTITY, IO_BLAST_BITS};
    if (size == 0) return 0;
    return fuzz_read(data, size, (io_read_options){.format = IO_BLAST, .blast = scores[data[0] >> 4 & 3]},
                     write_and_read);
}
