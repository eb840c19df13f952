/* What the parts of sparse-bench that call CUDA share; only where the build has it. */
#ifndef BENCH_CUDA_H
#define BENCH_CUDA_H

#include <cuda_runtime_api.h>

#include "sparse-bench/bench.h"

/* The status of a call, with a sentence that names it (../device.c). */
sp_status cuda_result(sp_context *context, cudaError_t error, const char *call);

#if __has_include(<cusparse.h>)
#include <cusparse.h>

#define CUSPARSE_FUNCTIONS(X)                                                                                       \
    X(Create) X(Destroy) X(SetStream) X(GetErrorString) X(CreateCsr) X(DestroySpMat) X(CsrSetPointers)              \
    X(SpMatGetSize) X(SpGEMM_createDescr) X(SpGEMM_destroyDescr) X(SpGEMM_workEstimation) X(SpGEMM_estimateMemory)  \
    X(SpGEMM_compute) X(SpGEMM_copy) X(SpGEMMreuse_workEstimation) X(SpGEMMreuse_nnz) X(SpGEMMreuse_copy)           \
    X(SpGEMMreuse_compute) X(CreateDnMat) X(DestroyDnMat) X(SpMM_bufferSize) X(SpMM_preprocess) X(SpMM)

typedef struct cusparse_functions {
#define POINTER(name) __typeof__(cusparse##name) *name;
    CUSPARSE_FUNCTIONS(POINTER)
#undef POINTER
} cusparse_functions;

/* cuSPARSE with a stream of its own (cusparse_session.c). */
typedef struct cusparse_session {
    sp_context *context;
    cusparse_functions f;
    cusparseHandle_t handle;
    cudaStream_t stream;
    cudaDataType type;
    size_t size; /* of a value */
    union {
        float f32;
        double f64;
    } one, zero; /* of that type */
} cusparse_session;

/* SP_ERROR_NO_DEVICE without a libcusparse of the header's version. cusparse_end must follow in any case. */
sp_status cusparse_begin(sp_context *context, sp_value_type type, cusparse_session *session);
void cusparse_end(cusparse_session *session);

/* The status of a call, with a sentence that names it. */
sp_status cusparse_result(const cusparse_session *session, cusparseStatus_t code, const char *call);
#endif

#endif
