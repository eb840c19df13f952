/* The options of one command of sparse-bench, whichever it is. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "sparse-bench/coarsen/coarsen_bench.h"
#include "sparse-bench/contract/contract_bench.h"
#include "sparse-bench/gnn/gnn_bench.h"
#include "sparse-bench/spmm/spmm_bench.h"

union any_options {
    bench_options common; /* the first member of the others */
    spgemm_options spgemm;
    spmm_options spmm;
    contract_bench_options contract;
    coarsen_options coarsen;
    gnn_options gnn;
    survey_options survey;
};

#endif
