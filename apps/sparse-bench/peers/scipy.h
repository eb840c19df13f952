/* scipy as a peer on the CPU: bench/scipy_peer.py, which BENCH_SCIPY names, is run for each case. It multiplies on one
 * thread, and times itself. */
#ifndef BENCH_SCIPY_H
#define BENCH_SCIPY_H

#include "sparse-bench/peers/program.h"

/* Finds out whether scipy can be run. */
void scipy_open(sp_context *context, const bench_options *options, scipy_peer *scipy);
/* Its name and version, if it can be run, behind what the text has. */
void scipy_append_version(const scipy_peer *scipy, char *text, size_t size);
/* Runs an operation of the script on the operands' file. False, with a word in the figures, if it failed. */
bool scipy_run(const char *operation, const bench_options *options, program_files *files, candidate *figures);

#endif
