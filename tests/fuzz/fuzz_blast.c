/* BLAST tables, each score. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const io_blast_score scores[] = {IO_BLAST_BITS, IO_BLAST_EVALUE, IO_BLAST_IDENTITY, IO_BLAST_BITS};
    if (size == 0) return 0;
    return fuzz_read(data, size, (io_read_options){.format = IO_BLAST, .blast = scores[data[0] >> 4 & 3]}, NULL);
}
