/* What the parts of test_context share. */
#ifndef TESTS_CONTEXT_SHARED_H
#define TESTS_CONTEXT_SHARED_H

#include "support.h"

/* The tables of the parts. */
extern const test_entry device_tests[];

#endif
