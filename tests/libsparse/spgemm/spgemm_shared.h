/* What the parts of test_spgemm share. */
#ifndef TESTS_SPGEMM_SHARED_H
#define TESTS_SPGEMM_SHARED_H

#include "generate.h"
#include "product.h"

/* The tables of the parts. */
extern const test_entry shapes_tests[], giant_tests[], large_tests[];

#endif
