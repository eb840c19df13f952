/* The operations of the CPU back end, one file each. */
#ifndef SPARSE_CPU_BACKEND_H
#define SPARSE_CPU_BACKEND_H

#include "core/internal.h"

#define DECLARE(name) __typeof__(*((sp_backend *)NULL)->name) sp_cpu_##name;
SP_OPERATIONS(DECLARE)
DECLARE(spmm_heads)
#undef DECLARE

#endif
