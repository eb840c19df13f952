/* What the parts of test_mcl share. */
#ifndef TESTS_MCL_SHARED_H
#define TESTS_MCL_SHARED_H

#include "mcl.h"
#include "support.h"

mcl_options defaults(void);
/* The clusters as text: members joined by commas, clusters by blanks. */
const char *text(const mcl_clustering *clustering);

/* A path 0 -2- 1 -4- 2 with a loop of 9 on node 1, and node 3 alone. */
extern const double path[];

/* The tables of the parts. */
extern const test_entry clusters_tests[], ranks_tests[], update_tests[];

#endif
