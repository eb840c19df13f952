/* The upper half of a symmetric quotient from the lower one. */
#ifndef SPARSE_CPU_MIRROR_H
#define SPARSE_CPU_MIRROR_H

#include "core/internal.h"

/* Replaces C's entries up to the diagonal, whose rows may be in any order, by all of C with ascending columns. Adds
 * what that takes beside C to *bytes. */
sp_status sp_mirror_lower(sp_context *context, sp_csr *lower, int64_t *bytes);

#endif
