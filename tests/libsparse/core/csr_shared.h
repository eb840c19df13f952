/* What the parts of test_csr share. */
#ifndef TESTS_CSR_SHARED_H
#define TESTS_CSR_SHARED_H

#include "generate.h"
#include "support.h"

/* The tables of the parts. */
extern const test_entry coo_tests[];

#endif
