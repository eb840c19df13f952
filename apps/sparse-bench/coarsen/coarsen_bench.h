/* sparse-bench coarsen: a level of a hierarchy, which is labels and the quotient by them, timed apart for each way of
 * coarsening (coarsen.c). */
#ifndef BENCH_COARSEN_H
#define BENCH_COARSEN_H

#include "sparse-bench/bench.h"

typedef struct coarsen_options {
    bench_options common;
    unsigned methods;    /* bits, by contraction_method */
    int64_t most;        /* nodes of a group; 0: no bound */
} coarsen_options;

const char *method_name(int method); /* by contraction_method */

sp_status coarsen_run(sp_context *host, const coarsen_options *options, const volatile int *interrupt, int *code);

#endif
