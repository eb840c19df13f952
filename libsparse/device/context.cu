/* The CUDA back end's context: the device, its streams, its memory, and the table of operations.
 *
 * All memory comes from one stream-ordered pool that keeps released memory, so that iterations allocate without the
 * driver. If the pool cannot grow, it is trimmed and asked once more. The CUDA runtime is linked statically. On a
 * machine without a driver the device count fails, and the context stays on the CPU. */
#include <new>
#include <stdio.h>
#include <string.h>

#include "device/common.cuh"
#include "spmm/cuda/maxk.cuh"

/* Device memory that is left free if there is no budget, because the driver needs some. */
static const size_t RESERVE = (size_t)256 << 20;

/* ---- memory -------------------------------------------------------------------------------------------- */

static sp_status pool_bytes(sp_context *context, cudaMemPoolAttr attribute, size_t *bytes)
{
    uint64_t value = 0;
    CUDA_CHECK(cudaMemPoolGetAttribute(cuda_state_of(context)->pool, attribute, &value));
    *bytes = (size_t)value;
    return SP_OK;
}

sp_status cuda_available(sp_context *context, size_t *bytes)
{
    size_t used, reserved, free, total;
    CHECK(pool_bytes(context, cudaMemPoolAttrUsedMemCurrent, &used));
    if (context->memory_budget) {
        *bytes = context->memory_budget > used ? context->memory_budget - used : 0;
        return SP_OK;
    }
    CHECK(pool_bytes(context, cudaMemPoolAttrReservedMemCurrent, &reserved));
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    free += reserved - used;
    *bytes = free > RESERVE ? free - RESERVE : 0;
    return SP_OK;
}

sp_status cuda_watch_peak(sp_context *context, size_t *before)
{
    uint64_t zero = 0;
    CUDA_CHECK(cudaMemPoolSetAttribute(cuda_state_of(context)->pool, cudaMemPoolAttrUsedMemHigh, &zero));
    return pool_bytes(context, cudaMemPoolAttrUsedMemCurrent, before);
}

sp_status cuda_peak(sp_context *context, size_t before, int64_t *rise)
{
    size_t high;
    CHECK(pool_bytes(context, cudaMemPoolAttrUsedMemHigh, &high));
    *rise = high > before ? (int64_t)(high - before) : 0;
    return SP_OK;
}

sp_status cuda_peak_beside(sp_context *context, size_t before, const sp_csr *c, int64_t *rise)
{
    const size_t entry = sizeof *c->col_indices + (c->values ? sp_value_size(c->value_type) : 0);
    CHECK(cuda_peak(context, before, rise));
    *rise -= (c->rows + 1) * (int64_t)sizeof *c->row_offsets + c->nnz * (int64_t)entry;
    return SP_OK;
}

sp_status cuda_allocate(sp_context *context, size_t bytes, void **pointer)
{
    cuda_state *state = cuda_state_of(context);
    *pointer = NULL;
    if (bytes == 0) bytes = 1;
    if (context->memory_budget) {
        size_t available;
        CHECK(cuda_available(context, &available));
        if (bytes > available)
            return sp_fail(context, SP_ERROR_DEVICE_MEMORY,
                           "%s: %zu bytes are needed where %zu of the memory budget of %zu are left",
                           context->device_name, bytes, available, context->memory_budget);
    }
    void *block = NULL;
    cudaError_t error = cudaMallocFromPoolAsync(&block, bytes, state->pool, state->stream);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        cuda_drop_counts(context);
        CUDA_CHECK(cudaStreamSynchronize(state->stream));
        CUDA_CHECK(cudaMemPoolTrimTo(state->pool, 0));
        error = cudaMallocFromPoolAsync(&block, bytes, state->pool, state->stream);
    }
    if (error == cudaErrorMemoryAllocation) {
        size_t free = 0, total = 0;
        cudaGetLastError();
        cudaMemGetInfo(&free, &total);
        return sp_fail(context, SP_ERROR_DEVICE_MEMORY, "%s: %zu bytes could not be allocated, %zu of %zu are free",
                       context->device_name, bytes, free, total);
    }
    CHECK(cuda_status(context, error, "cudaMallocFromPoolAsync"));
    *pointer = block;
    return SP_OK;
}

void cuda_release(sp_context *context, void *pointer)
{
    cuda_state *state = cuda_state_of(context);
    if (pointer && cudaFreeAsync(pointer, state->stream) != cudaSuccess) cudaGetLastError();
}

void cuda_drop_counts(sp_context *context)
{
    cuda_state *state = cuda_state_of(context);
    cuda_release(context, state->counts.data);
    state->counts = {};
}

static sp_status copy(sp_context *context, void *to, sp_space to_space, const void *from, sp_space from_space,
                      size_t bytes)
{
    cuda_state *state = cuda_state_of(context);
    if (to_space == SP_HOST && from_space == SP_HOST) {
        memcpy(to, from, bytes);
        return SP_OK;
    }
    CUDA_CHECK(cudaSetDevice(state->device));
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, state->stream));
    if (to_space == SP_HOST || from_space == SP_HOST) CUDA_CHECK(cudaStreamSynchronize(state->stream));
    return SP_OK;
}

static sp_status copy_rows(sp_context *context, void *to, size_t to_pitch, sp_space to_space, const void *from,
                           size_t from_pitch, sp_space from_space, size_t bytes, int64_t rows)
{
    cuda_state *state = cuda_state_of(context);
    CUDA_CHECK(cudaSetDevice(state->device));
    CUDA_CHECK(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, bytes, (size_t)rows, cudaMemcpyDefault,
                                 state->stream));
    if (to_space == SP_HOST || from_space == SP_HOST) CUDA_CHECK(cudaStreamSynchronize(state->stream));
    return SP_OK;
}

/* The calling thread may not have used this device yet. */
static sp_status allocate(sp_context *context, size_t bytes, void **pointer)
{
    CUDA_CHECK(cudaSetDevice(cuda_state_of(context)->device));
    return cuda_allocate(context, bytes, pointer);
}

/* ---- streams ------------------------------------------------------------------------------------------- */

/* A stream that is being captured cannot be waited for. */
sp_status cuda_finish(sp_context *context)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
    if (capture == cudaStreamCaptureStatusNone) CUDA_CHECK(cudaStreamSynchronize(stream));
    return sp_interrupted(context) ? sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted") : SP_OK;
}

sp_status cuda_fork(sp_context *context, int streams)
{
    cuda_state *state = cuda_state_of(context);
    CUDA_CHECK(cudaEventRecord(state->forked, state->stream));
    for (int i = 0; i < streams; i++) CUDA_CHECK(cudaStreamWaitEvent(state->side[i], state->forked, 0));
    return SP_OK;
}

sp_status cuda_join(sp_context *context, int streams)
{
    cuda_state *state = cuda_state_of(context);
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < streams && error == cudaSuccess; i++) {
        error = cudaEventRecord(state->joined[i], state->side[i]);
        if (error == cudaSuccess) error = cudaStreamWaitEvent(state->stream, state->joined[i], 0);
    }
    if (error != cudaSuccess) cudaDeviceSynchronize(); /* memory is released in the order of the main stream */
    return cuda_status(context, error, "cudaStreamWaitEvent");
}

static void *stream(const sp_context *context) { return ((const cuda_state *)context->device_state)->stream; }

static sp_status set_stream(sp_context *context, void *chosen)
{
    cuda_state *state = cuda_state_of(context);
    const cudaStream_t next = chosen ? (cudaStream_t)chosen : state->own;
    if (next == state->stream) return SP_OK;
    CUDA_CHECK(cudaSetDevice(state->device));
    CUDA_CHECK(cudaEventRecord(state->forked, state->stream));
    CUDA_CHECK(cudaStreamWaitEvent(next, state->forked, 0));
    state->stream = next;
    return SP_OK;
}

static sp_status trim(sp_context *context)
{
    cuda_state *state = cuda_state_of(context);
    CUDA_CHECK(cudaSetDevice(state->device));
    cuda_drop_counts(context);
    CUDA_CHECK(cudaStreamSynchronize(state->stream));
    CUDA_CHECK(cudaMemPoolTrimTo(state->pool, 0));
    return SP_OK;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void close_device(cuda_state *state)
{
    cudaSetDevice(state->device);
    if (state->counts.data) cudaFreeAsync(state->counts.data, state->stream);
    if (state->stream) cudaStreamSynchronize(state->stream);
    for (int i = 0; i < SIDE_STREAMS; i++) {
        if (state->side[i]) cudaStreamDestroy(state->side[i]);
        if (state->joined[i]) cudaEventDestroy(state->joined[i]);
    }
    if (state->forked) cudaEventDestroy(state->forked);
    if (state->mailbox) cudaFreeHost(state->mailbox);
    if (state->pool) cudaMemPoolDestroy(state->pool);
    if (state->own) cudaStreamDestroy(state->own);
    cudaGetLastError();
}

static void destroy(sp_context *context)
{
    close_device(cuda_state_of(context));
    sp_free(context, context->device_state);
    context->device_state = NULL;
}

static const sp_backend cuda_backend = {
    .space = SP_DEVICE,
    .spgemm = sp_cuda_spgemm,
    .spgemm_symbolic = sp_cuda_spgemm_symbolic,
    .spgemm_numeric = sp_cuda_spgemm_numeric,
    .spgemm_forget = sp_cuda_spgemm_forget,
    .spgemm_markov = sp_cuda_spgemm_markov,
    .inverse_lengths = sp_cuda_inverse_lengths,
    .similarity = sp_cuda_similarity,
    .contract = sp_cuda_contract,
    .spmm_prepare = sp_cuda_spmm_prepare,
    .spmm_refresh = sp_cuda_spmm_refresh,
    .spmm = sp_cuda_spmm,
    .spmm_forget = sp_cuda_spmm_forget,
    .sddmm = sp_cuda_sddmm,
    .edge_softmax = sp_cuda_edge_softmax,
    .edge_softmax_backward = sp_cuda_edge_softmax_backward,
    .maxk = sp_cuda_maxk,
    .maxk_expand = sp_cuda_maxk_expand,
    .maxk_spmm = sp_cuda_maxk_spmm,
    .maxk_spmm_backward = sp_cuda_maxk_spmm_backward,
    .transpose = sp_cuda_transpose,
    .number = sp_cuda_number,
    .gather = sp_cuda_gather,
    .allocate = allocate,
    .release = cuda_release,
    .copy = copy,
    .copy_rows = copy_rows,
    .stream = stream,
    .set_stream = set_stream,
    .trim = trim,
    .finish = cuda_finish,
    .destroy = destroy,
    .triple_product = sp_cuda_triple_product,
    .add = sp_cuda_add,
    .scale = sp_cuda_scale,
    .extract = sp_cuda_extract,
    .find_outside = sp_cuda_find_outside,
    .top_k = sp_cuda_top_k,
    .reduce_rows = sp_cuda_reduce_rows,
    .degree_order = sp_cuda_degree_order,
    .sample_rows = sp_cuda_sample_rows,
    .hadamard = sp_cuda_hadamard,
    .select = sp_cuda_select,
};

/* Fails if this build has no code for the device. */
static __global__ void probe() {}

static sp_status open_device(sp_context *context, int index)
{
    cuda_state *state = cuda_state_of(context);
    cudaFuncAttributes attributes;
    int pools = 0, shared = 0, usual, first;
    state->device = index;
    CUDA_CHECK(cudaSetDevice(index));
    CUDA_CHECK(cudaDeviceGetAttribute(&state->processors, cudaDevAttrMultiProcessorCount, index));
    CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
    CUDA_CHECK(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, index));
    if (!pools)
        return sp_fail(context, SP_ERROR_NO_DEVICE, "cuda:%d has a driver without memory pools: CUDA 11.2 is needed",
                       index);
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, probe));
    state->shared_limit = (size_t)shared;

    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = index;
    uint64_t keep = UINT64_MAX;
    CUDA_CHECK(cudaMemPoolCreate(&state->pool, &properties));
    CUDA_CHECK(cudaMallocHost(&state->mailbox, MAILBOX));
    CUDA_CHECK(cudaMemPoolSetAttribute(state->pool, cudaMemPoolAttrReleaseThreshold, &keep));
    CUDA_CHECK(cudaStreamCreateWithFlags(&state->own, cudaStreamNonBlocking));
    state->stream = state->own;
    CUDA_CHECK(cudaEventCreateWithFlags(&state->forked, cudaEventDisableTiming));
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&usual, &first));
    for (int i = 0; i < SIDE_STREAMS; i++) {
        const int priority = i == SIDE_STREAMS - 1 ? first : usual;
        CUDA_CHECK(cudaStreamCreateWithPriority(&state->side[i], cudaStreamNonBlocking, priority));
        CUDA_CHECK(cudaEventCreateWithFlags(&state->joined[i], cudaEventDisableTiming));
    }
    cudaDeviceProp device;
    CUDA_CHECK(cudaGetDeviceProperties(&device, index));
    snprintf(context->device_name, sizeof context->device_name, "cuda:%d %.100s", index, device.name);
    return SP_OK;
}

sp_status sp_cuda_link(sp_context *context, sp_context *other)
{
    const int own = cuda_state_of(context)->device, theirs = cuda_state_of(other)->device;
    int possible = 0;
    if (own == theirs) return SP_OK;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, theirs, own));
    if (!possible) return SP_OK;
    cudaMemAccessDesc access = {};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = theirs;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    CUDA_CHECK(cudaMemPoolSetAccess(cuda_state_of(context)->pool, &access, 1));
    return SP_OK;
}

int sp_cuda_count(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    cudaGetLastError();
    return 0;
}

sp_status sp_cuda_open(sp_context *context, int index)
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        cudaGetLastError();
        return sp_fail(context, SP_ERROR_NO_DEVICE, "no CUDA device: %s", cudaGetErrorString(error));
    }
    if (index >= count)
        return sp_fail(context, SP_ERROR_NO_DEVICE, "cuda:%d does not exist: there are %d CUDA devices", index,
                       count);

    CHECK(sp_calloc(context, 1, sizeof(cuda_state), &context->device_state));
    const int first = index < 0 ? 0 : index, end = index < 0 ? count : index + 1;
    for (int i = first; i < end; i++) {
        snprintf(context->device_name, sizeof context->device_name, "cuda:%d", i);
        if (open_device(context, i) == SP_OK) {
            context->backend = &cuda_backend;
            return SP_OK;
        }
        close_device(cuda_state_of(context));
        memset(context->device_state, 0, sizeof(cuda_state));
    }
    sp_free(context, context->device_state);
    context->device_state = NULL;
    strcpy(context->device_name, "cpu");
    return SP_ERROR_NO_DEVICE;
}
