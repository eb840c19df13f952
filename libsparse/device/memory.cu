/* The device memory of a context. It comes from one stream-ordered pool that keeps released memory, so that iterations
 * allocate without the driver; if the pool cannot grow, it is trimmed and asked once more. Or it comes from an
 * allocator of the caller's: then the context notes the size of each block, for the budget, the peak, and the release.
 */
#include "device/common.cuh"

/* Device memory that is left free if there is no budget, because the driver needs some. */
static const size_t RESERVE = (size_t)256 << 20;

/* ---- how much ------------------------------------------------------------------------------------------ */

static sp_status pool_bytes(sp_context *context, cudaMemPoolAttr attribute, size_t *bytes)
{
    uint64_t value = 0;
    CUDA_CHECK(cudaMemPoolGetAttribute(cuda_state_of(context)->pool, attribute, &value));
    *bytes = (size_t)value;
    return SP_OK;
}

static sp_status bytes_in_use(sp_context *context, size_t *bytes)
{
    const cuda_state *state = cuda_state_of(context);
    *bytes = state->lent.bytes;
    return state->pool ? pool_bytes(context, cudaMemPoolAttrUsedMemCurrent, bytes) : SP_OK;
}

sp_status cuda_unused(sp_context *context, size_t *bytes)
{
    size_t held, used;
    *bytes = 0;
    if (!cuda_state_of(context)->pool) return SP_OK;
    CHECK(pool_bytes(context, cudaMemPoolAttrReservedMemCurrent, &held));
    CHECK(bytes_in_use(context, &used));
    *bytes = held - used;
    return SP_OK;
}

sp_status cuda_available(sp_context *context, size_t *bytes)
{
    size_t unused, free, total;
    if (context->memory_budget) {
        CHECK(bytes_in_use(context, &unused));
        *bytes = context->memory_budget > unused ? context->memory_budget - unused : 0;
        return SP_OK;
    }
    CHECK(cuda_unused(context, &unused));
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    free += unused;
    *bytes = free > RESERVE ? free - RESERVE : 0;
    return SP_OK;
}

sp_status cuda_watch_peak(sp_context *context, size_t *before)
{
    cuda_state *state = cuda_state_of(context);
    uint64_t zero = 0;
    if (state->pool) CUDA_CHECK(cudaMemPoolSetAttribute(state->pool, cudaMemPoolAttrUsedMemHigh, &zero));
    state->lent.peak = state->lent.bytes;
    return bytes_in_use(context, before);
}

sp_status cuda_peak(sp_context *context, size_t before, int64_t *rise)
{
    size_t high = cuda_state_of(context)->lent.peak;
    if (cuda_state_of(context)->pool) CHECK(pool_bytes(context, cudaMemPoolAttrUsedMemHigh, &high));
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

/* ---- blocks -------------------------------------------------------------------------------------------- */

/* A block of the caller's allocator, or NULL. */
static sp_status borrow(sp_context *context, size_t bytes, void **block)
{
    cuda_state *state = cuda_state_of(context);
    const sp_device_allocator *source = &context->device_allocator;
    if (state->lent.count == state->lent.room) {
        const int64_t room = 2 * state->lent.room + 64;
        CHECK(sp_grow(context, state->lent.count, room, sizeof *state->lent.blocks, (void **)&state->lent.blocks));
        state->lent.room = room;
    }
    *block = source->allocate(source->user, bytes, state->device, state->stream);
    if (!*block) return SP_OK;
    state->lent.blocks[state->lent.count++] = {*block, bytes};
    state->lent.bytes += bytes;
    if (state->lent.bytes > state->lent.peak) state->lent.peak = state->lent.bytes;
    return SP_OK;
}

/* The last blocks are looked at first: most live for one call. */
static void give_back(sp_context *context, void *block)
{
    cuda_state *state = cuda_state_of(context);
    const sp_device_allocator *source = &context->device_allocator;
    int64_t at = state->lent.count - 1;
    while (at >= 0 && state->lent.blocks[at].data != block) at--;
    if (at < 0) return;
    const size_t bytes = state->lent.blocks[at].bytes;
    state->lent.blocks[at] = state->lent.blocks[--state->lent.count];
    state->lent.bytes -= bytes;
    source->release(source->user, block, bytes, state->device, state->stream);
}

/* A block, or NULL if there is no memory. */
static sp_status ask(sp_context *context, size_t bytes, void **block)
{
    cuda_state *state = cuda_state_of(context);
    *block = NULL;
    if (!state->pool) return borrow(context, bytes, block);
    const cudaError_t error = cudaMallocFromPoolAsync(block, bytes, state->pool, state->stream);
    if (error != cudaErrorMemoryAllocation) return cuda_status(context, error, "cudaMallocFromPoolAsync");
    cudaGetLastError();
    *block = NULL;
    return SP_OK;
}

sp_status cuda_allocate(sp_context *context, size_t bytes, void **pointer)
{
    cuda_state *state = cuda_state_of(context);
    void *block;
    *pointer = NULL;
    if (bytes == 0) bytes = 1;
    if (context->memory_budget) {
        size_t available;
        CHECK(cuda_available(context, &available));
        if (bytes > available)
            return sp_fail(context, SP_ERROR_DEVICE_MEMORY,
                           "%s: %zu bytes are needed where %zu of the memory budget of %zu are left: it takes at least "
                           "%zuM",
                           context->device_name, bytes, available, context->memory_budget,
                           ((context->memory_budget - available + bytes) >> 20) + 1);
    }
    CHECK(ask(context, bytes, &block));
    if (!block) {
        cuda_drop_counts(context);
        CUDA_CHECK(cudaStreamSynchronize(state->stream));
        if (state->pool) CUDA_CHECK(cudaMemPoolTrimTo(state->pool, 0));
        CHECK(ask(context, bytes, &block));
    }
    if (!block) {
        size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        return sp_fail(context, SP_ERROR_DEVICE_MEMORY, "%s: %zu bytes could not be allocated, %zu of %zu are free",
                       context->device_name, bytes, free, total);
    }
    *pointer = block;
    return SP_OK;
}

void cuda_release(sp_context *context, void *pointer)
{
    cuda_state *state = cuda_state_of(context);
    if (!pointer) return;
    if (!state->pool) give_back(context, pointer);
    else if (cudaFreeAsync(pointer, state->stream) != cudaSuccess) cudaGetLastError();
}

void cuda_drop_counts(sp_context *context)
{
    cuda_state *state = cuda_state_of(context);
    cuda_release(context, state->counts.data);
    state->counts = {};
}

/* ---- life ---------------------------------------------------------------------------------------------- */

sp_status cuda_open_memory(sp_context *context)
{
    cuda_state *state = cuda_state_of(context);
    cudaMemPoolProps properties = {};
    uint64_t keep = UINT64_MAX;
    int pools = 0;
    CUDA_CHECK(cudaMallocHost(&state->mailbox, MAILBOX));
    if (context->device_allocator.allocate) return SP_OK;
    CUDA_CHECK(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, state->device));
    if (!pools)
        return sp_fail(context, SP_ERROR_NO_DEVICE, "cuda:%d has a driver without memory pools: CUDA 11.2 is needed",
                       state->device);
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = state->device;
    CUDA_CHECK(cudaMemPoolCreate(&state->pool, &properties));
    CUDA_CHECK(cudaMemPoolSetAttribute(state->pool, cudaMemPoolAttrReleaseThreshold, &keep));
    return SP_OK;
}

void cuda_close_memory(sp_context *context)
{
    cuda_state *state = cuda_state_of(context);
    if (state->mailbox) cudaFreeHost(state->mailbox);
    if (state->pool) cudaMemPoolDestroy(state->pool);
    while (state->lent.count > 0) give_back(context, state->lent.blocks[state->lent.count - 1].data);
    sp_free(context, state->lent.blocks);
}
