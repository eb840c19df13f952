/* What the parts of test_transform share. */
#ifndef TESTS_TRANSFORM_SHARED_H
#define TESTS_TRANSFORM_SHARED_H

#include "mcl.h"
#include "support.h"

extern const char directed[];

sp_csr graph_of_text(sp_context *context, int64_t nodes, const char *text);
mcl_transform *parse(sp_context *context, const char *spec);
sp_status apply(sp_context *context, const char *spec, sp_csr *graph);

/* The tables of the parts. */
extern const test_entry recorded_tests[];

#endif
