/* What all reports of sparse-bench share: lines on stdout, pieces of the JSON. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "sparse-bench/bench.h"
#include "common/json.h"

/* ---- stdout: a line a case, and below it a line a candidate ------------------------------------------------------ */

/* "MACHINE, MORE; copies at N GB/s". */
void print_machine(const machine *m, const bench_options *options, const char *more);
/* "NAME | SHAPE". */
void print_case(const char *name, const char *shape, ...) __attribute__((format(printf, 2, 3)));
/* Its name, time, how many times as long it takes as `ours` seconds (0: not said), working memory, and a remark; or
 * why it has no time. */
void print_candidate(const candidate *c, double ours, const char *remark, ...) __attribute__((format(printf, 3, 4)));

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

/* Opens the file and puts what every one has up to the first options; the caller puts those of its command. Then
 * report_list puts the others and begins the list of matrices, and report_close ends both. */
sp_status report_open(sp_context *context, const machine *m, const bench_options *options, json *j);
void report_list(json *j, const bench_options *options);
sp_status report_close(json *j);
/* Where a matrix comes from: its name, family, specification and seed, or its file. */
void put_source(json *j, const source *from);
void put_timing(json *j, const timing *time);
/* Null where the bytes are not known. */
void put_bytes(json *j, const char *key, int64_t bytes);
/* Begins the object of a candidate, with its name where it stands in an array (`key` NULL). True if it has a time;
 * otherwise puts why not. The caller ends the object. */
bool begin_candidate(json *j, const char *key, const candidate *c);
/* JSON has neither infinity nor NaN, which other patterns and wrong values give. */
double finite_error(double error);

#endif
