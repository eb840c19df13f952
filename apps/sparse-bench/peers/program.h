/* Peers that run as programs of their own, so that one that crashes takes nothing along. They get the operands in a
 * file, print what they measured, and leave the result in another file. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include "sparse-bench/bench.h"

typedef struct program_files {
    char operands[80], result[80]; /* paths */
    char output[1 << 16];          /* what the program printed */
} program_files;

/* Makes two temporary files, and removes them. */
sp_status program_begin(sp_context *context, program_files **files);
void program_end(sp_context *context, program_files *files);

/* The operands' file: six numbers of 64 bits, A, B unless it is NULL, and `more_bytes` of `more`. A matrix is its
 * offsets and columns in 32 bits, which must suffice, and its values in their type. */
enum { PROGRAM_HEADER = 6 };
sp_status program_write(sp_context *context, const program_files *files, const int64_t header[PROGRAM_HEADER],
                        const sp_csr *a, const sp_csr *b, const void *more, size_t more_bytes);

/* Runs `words`, which NULL ends, with more arguments: both files, --repeat and --limit. Puts what it printed into the
 * figures: lines "name NAME", "seconds S" a sample, "peak BYTES"; "failed SENTENCE" with an exit status that is not 0.
 * False, with a word in the figures, if it failed. */
bool program_run(const char *const *words, const bench_options *options, program_files *files, candidate *figures);

/* The result: as many bytes; or a matrix, of `rows` rows: their number and that of entries in 64 bits, and the arrays
 * of a matrix. It lies in *bytes, for sp_free. */
sp_status program_read(sp_context *context, const program_files *files, size_t count, void **bytes);
sp_status program_read_matrix(sp_context *context, const program_files *files, int64_t rows, sp_value_type type,
                              raw_matrix *matrix, void **bytes);

#endif
