/* What the parts of sparse-bench that call CUDA share; only where the build has it. */
#ifndef BENCH_CUDA_H
#define BENCH_CUDA_H

#include <cuda_runtime_api.h>

#include "bench.h"

/* The status of a call, with a sentence that names it (bench_device.c). */
sp_status cuda_result(sp_context *context, cudaError_t error, const char *call);

#if __has_include(<cusparse.h>)
#include <cusparse.h>
/* `why`: cusparseGetErrorString of the library that was loaded (bench_cusparse.c). */
sp_status cusparse_result(sp_context *context, cusparseStatus_t code, const char *(*why)(cusparseStatus_t),
                          const char *call);
#endif

#endif
