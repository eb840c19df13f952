/* The context: where a computation runs, whose memory it uses, and the sentence of its last failure. */
#include <errno.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "core/devices.h"

const char *sp_version(void) { return SP_VERSION; }

int sp_abi(void) { return SP_ABI; }

const char *sp_status_string(sp_status status)
{
    switch (status) {
    case SP_OK: return "success";
    case SP_ERROR_ARGUMENT: return "invalid argument";
    case SP_ERROR_MATRIX: return "malformed matrix";
    case SP_ERROR_NOT_FINITE: return "a value is not a finite number";
    case SP_ERROR_OVERFLOW: return "a size does not fit";
    case SP_ERROR_HOST_MEMORY: return "out of memory";
    case SP_ERROR_DEVICE_MEMORY: return "out of device memory";
    case SP_ERROR_NO_DEVICE: return "no such device";
    case SP_ERROR_DEVICE: return "device failure";
    case SP_ERROR_UNSUPPORTED: return "not supported here";
    case SP_ERROR_INTERRUPTED: return "interrupted";
    }
    return "unknown status";
}

/* ---- allocation ---------------------------------------------------------------------------------------- */

/* LARGE_BLOCK: bytes from which huge pages are requested; LINE_BYTES: bytes of a cache line. */
enum { LARGE_BLOCK = 4 << 20, LINE_BYTES = 64 };

/* Requests huge pages for large blocks, on systems that give them on request. Random access to rows then needs fewer
 * page table walks: sparse times dense is 1.1 to 1.7 times as fast, a matrix from triples 2.5 times. The request covers
 * all pages of the mapping, also those beyond the block, because a mapping that is advised in part cannot be resized in
 * place (0.9 s and twice the memory for 400 MB). */
static void *ask_huge_pages(void *block, size_t bytes)
{
    if (block && bytes >= LARGE_BLOCK) system_huge_pages(block, system_block_bytes(block));
    return block;
}

/* Large blocks begin at a cache line, so that whole lines can be written past the caches. */
static void *allocate_default(void *user, size_t bytes)
{
    (void)user;
    if (bytes < LARGE_BLOCK || bytes > PTRDIFF_MAX - LINE_BYTES) return malloc(bytes);
    return ask_huge_pages(aligned_alloc(LINE_BYTES, (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES), bytes);
}

static void release_default(void *user, void *pointer)
{
    (void)user;
    free(pointer);
}

/* A large block that would lose less than an eighth keeps its size: untouched pages cost nothing, and the C library
 * would return a shrunk block to the system instead of reusing it (a product of 26 MB: 16 to 13 ms of processor
 * time). */
static void *resize_default(void *user, void *pointer, size_t bytes)
{
    (void)user;
    const size_t size = system_block_bytes(pointer);
    if (bytes >= LARGE_BLOCK && bytes <= size && bytes >= size - size / 8) return pointer;
    return realloc(pointer, bytes); /* moves large blocks by remapping pages, without a second copy */
}

static sp_status block_size(sp_context *context, const char *call, int64_t count, size_t size, size_t *bytes)
{
    *bytes = 0;
    if (count < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: count is %lld, below 0", call, (long long)count);
    if (!sp_mul_size((size_t)count, size, bytes) || *bytes > PTRDIFF_MAX)
        return sp_fail(context, SP_ERROR_OVERFLOW, "%lld elements of %zu bytes are more than memory can address",
                       (long long)count, size);
    if (*bytes == 0) *bytes = 1;
    return SP_OK;
}

/* Checks the size of a new block. *pointer is NULL until the block exists. */
static sp_status check_block(sp_context *context, const char *call, int64_t count, size_t size, void **pointer,
                             size_t *bytes)
{
    const sp_status status = sp_require(context, call, "pointer", pointer);
    if (pointer) *pointer = NULL;
    return status == SP_OK ? block_size(context, call, count, size, bytes) : status;
}

static sp_status no_memory(sp_context *context, size_t bytes)
{
    return sp_fail(context, SP_ERROR_HOST_MEMORY, "out of memory: %zu bytes could not be allocated", bytes);
}

sp_status sp_alloc(sp_context *context, int64_t count, size_t size, void **pointer)
{
    size_t bytes;
    sp_status status = check_block(context, __func__, count, size, pointer, &bytes);
    if (status != SP_OK) return status;
    *pointer = context->allocator.allocate(context->allocator.user, bytes);
    return *pointer ? SP_OK : no_memory(context, bytes);
}

sp_status sp_calloc(sp_context *context, int64_t count, size_t size, void **pointer)
{
    size_t bytes;
    sp_status status = check_block(context, __func__, count, size, pointer, &bytes);
    if (status != SP_OK) return status;
    /* calloc leaves fresh pages untouched, which matters for accumulators as wide as the matrix. */
    if (context->allocator.allocate == allocate_default) {
        *pointer = calloc(1, bytes);
    } else {
        *pointer = context->allocator.allocate(context->allocator.user, bytes);
        if (*pointer) memset(*pointer, 0, bytes);
    }
    return *pointer ? SP_OK : no_memory(context, bytes);
}

sp_status sp_grow(sp_context *context, int64_t used, int64_t count, size_t size, void **pointer)
{
    size_t bytes;
    sp_status status = sp_require(context, __func__, "pointer", pointer);
    if (status == SP_OK && used >= 0 && !*pointer) return sp_alloc(context, count, size, pointer);
    if (status == SP_OK) status = block_size(context, __func__, count, size, &bytes);
    if (status == SP_OK && (used < 0 || (used > count && !context->allocator.resize)))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld of %lld elements are used", __func__, (long long)used,
                         (long long)count);
    if (status != SP_OK) return status;
    void *grown;
    if (context->allocator.resize) {
        grown = context->allocator.resize(context->allocator.user, *pointer, bytes);
    } else {
        grown = context->allocator.allocate(context->allocator.user, bytes);
        if (grown) {
            memcpy(grown, *pointer, (size_t)used * size);
            context->allocator.release(context->allocator.user, *pointer);
        }
    }
    if (!grown) return no_memory(context, bytes);
    *pointer = grown;
    return SP_OK;
}

void sp_free(sp_context *context, void *pointer)
{
    if (pointer && context) context->allocator.release(context->allocator.user, pointer);
}

sp_status sp_array_create(sp_context *context, int64_t count, size_t size, sp_space space, void **array)
{
    size_t bytes;
    sp_status status = check_block(context, __func__, count, size, array, &bytes);
    if (status == SP_OK) status = sp_require_space(context, __func__, "array", space);
    if (status != SP_OK) return status;
    return space == SP_HOST ? sp_alloc(context, count, size, array) : context->backend->allocate(context, bytes, array);
}

void sp_array_free(sp_context *context, sp_space space, void *array)
{
    if (!array || !context) return;
    if (space == SP_HOST) sp_free(context, array);
    else if (context->backend->space == SP_DEVICE) context->backend->release(context, array);
}

sp_status sp_array_copy(sp_context *context, int64_t count, size_t size, void *to, sp_space to_space,
                        const void *from, sp_space from_space)
{
    size_t bytes;
    sp_status status;
    TRY(sp_require_space(context, __func__, "to", to_space));
    TRY(sp_require_space(context, __func__, "from", from_space));
    TRY(block_size(context, __func__, count, size, &bytes));
    if (count == 0 || size == 0) return SP_OK;
    TRY(sp_require(context, __func__, "to", to));
    TRY(sp_require(context, __func__, "from", from));
    TRY(sp_require_apart(context, __func__, "to", to, bytes, "from", from, bytes));
    status = context->backend->copy(context, to, to_space, from, from_space, bytes);
done:
    return status;
}

/* ---- failures ------------------------------------------------------------------------------------------ */

/* The sentence of calls without a context: sp_context_create, and calls that were given NULL. */
static _Thread_local char error_without_context[sizeof ((sp_context *)0)->error];

sp_status sp_fail(sp_context *context, sp_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(context ? context->error : error_without_context, sizeof error_without_context, format, arguments);
    va_end(arguments);
    return status;
}

const char *sp_last_error(const sp_context *context) { return context ? context->error : error_without_context; }

/* ---- life ---------------------------------------------------------------------------------------------- */

/* Reads "cpu", "cuda", "cuda:N" or "auto" into *want_cuda, *required and *index (-1: any). */
static bool parse_device(const char *device, bool *want_cuda, bool *required, int *index)
{
    *index = -1;
    *want_cuda = *required = false;
    if (!device || strcmp(device, "auto") == 0) {
        *want_cuda = true;
        return true;
    }
    if (strcmp(device, "cpu") == 0) return true;
    *want_cuda = *required = true;
    if (strcmp(device, "cuda") == 0) return true;
    if (strncmp(device, "cuda:", 5) != 0 || device[5] < '0' || device[5] > '9') return false;
    char *end;
    errno = 0;
    long number = strtol(device + 5, &end, 10);
    *index = (int)number;
    return *end == '\0' && errno == 0 && number < 1024;
}

static sp_status check_options(const sp_context_options *options)
{
    if (options->threads < 0)
        return sp_fail(NULL, SP_ERROR_ARGUMENT, "%d threads: 0 or more are possible", options->threads);
    if (options->allocator && (!options->allocator->allocate || !options->allocator->release))
        return sp_fail(NULL, SP_ERROR_ARGUMENT, "an allocator needs the functions allocate and release");
    if (options->device_allocator && (!options->device_allocator->allocate || !options->device_allocator->release))
        return sp_fail(NULL, SP_ERROR_ARGUMENT, "an allocator of device memory needs the functions allocate and "
                                                "release");
    return SP_OK;
}

sp_status sp_device_open(sp_context *context, const char *device)
{
    bool want_cuda, required;
    int index;
    if (!parse_device(device, &want_cuda, &required, &index))
        return sp_fail(NULL, SP_ERROR_ARGUMENT, "device \"%.40s\" is not cpu, cuda, cuda:N, cuda:all, auto or a list "
                       "such as cuda:0,cuda:1", device);
    if (!want_cuda) return SP_OK;
    const sp_status status = sp_cuda_open(context, index);
    if (status != SP_OK && required) return sp_fail(NULL, status, "%s", context->error);
    context->error[0] = '\0';
    return SP_OK;
}

sp_status sp_context_create(const sp_context_options *options, sp_context **context)
{
    static const sp_allocator standard = {allocate_default, release_default, NULL, resize_default};
    const sp_context_options defaults = {0};
    if (!options) options = &defaults;
    if (!context) return sp_fail(NULL, SP_ERROR_ARGUMENT, "%s: context is NULL", __func__);
    *context = NULL;
    sp_status status = check_options(options);
    if (status != SP_OK) return status;

    const sp_allocator *allocator = options->allocator ? options->allocator : &standard;
    sp_context *made = allocator->allocate(allocator->user, sizeof *made);
    if (!made)
        return sp_fail(NULL, SP_ERROR_HOST_MEMORY, "out of memory: %zu bytes could not be allocated", sizeof *made);
    memset(made, 0, sizeof *made);
    made->allocator = *allocator;
    if (options->device_allocator) made->device_allocator = *options->device_allocator;
    made->backend = &sp_backend_cpu;
    made->holders = 1;
    made->threads = options->threads ? options->threads : omp_get_max_threads();
    made->memory_budget = options->memory_budget;
    made->interrupt = options->interrupt;
    strcpy(made->device_name, "cpu");
    status = sp_devices_named(options->device) ? sp_devices_open(made, options) : sp_device_open(made, options->device);
    if (status != SP_OK) {
        allocator->release(allocator->user, made);
        return status;
    }
    sp_fork_enter(made);
    *context = made;
    return SP_OK;
}

void sp_context_retain(sp_context *context)
{
    if (context) __atomic_add_fetch(&context->holders, 1, __ATOMIC_RELAXED);
}

void sp_context_destroy(sp_context *context)
{
    if (!context || __atomic_sub_fetch(&context->holders, 1, __ATOMIC_ACQ_REL) > 0) return;
    sp_fork_leave(context);
    sp_devices_close(context);
    if (context->backend->destroy) context->backend->destroy(context);
    sp_allocator allocator = context->allocator;
    allocator.release(allocator.user, context);
}

const char *sp_context_device(const sp_context *context) { return context ? context->device_name : ""; }

bool sp_context_is_cuda(const sp_context *context)
{
    return context && context->backend->space == SP_DEVICE;
}

int sp_context_threads(const sp_context *context) { return context ? context->threads : 0; }

bool sp_context_interrupted(const sp_context *context) { return sp_interrupted(context); }

void *sp_context_stream(const sp_context *context)
{
    return context && context->backend->stream ? context->backend->stream(context) : NULL;
}

sp_status sp_context_set_stream(sp_context *context, void *stream)
{
    const sp_status status = sp_require(context, __func__, "context", context);
    if (status != SP_OK) return status;
    if (context->backend->set_stream) return context->backend->set_stream(context, stream);
    return stream ? sp_fail(context, SP_ERROR_UNSUPPORTED, "%s: a context of the CPU has no stream", __func__) : SP_OK;
}

sp_status sp_context_enter(sp_context *context)
{
    const sp_status status = sp_require(context, __func__, "context", context);
    return status == SP_OK && context->backend->enter ? context->backend->enter(context) : status;
}

void sp_context_leave(sp_context *context)
{
    if (context && context->backend->leave) context->backend->leave(context);
}

sp_status sp_context_trim(sp_context *context)
{
    const sp_status status = sp_require(context, __func__, "context", context);
    return status == SP_OK && context->backend->trim ? context->backend->trim(context) : status;
}
