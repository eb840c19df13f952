/* The bytes that a context holds, for figures that the library does not report: what a plan keeps, and the most that
 * making it and a product take. */
#include <stdlib.h>
#include <string.h>

#include "sparse-bench/bench.h"

/* Before each block: its size; 16 bytes, so that blocks stay aligned as malloc's. */
enum { HEADER = 16 };

static void count(byte_counter *counter, int64_t more)
{
    const int64_t live = __atomic_add_fetch(&counter->live, more, __ATOMIC_RELAXED);
    int64_t peak = __atomic_load_n(&counter->peak, __ATOMIC_RELAXED);
    while (live > peak &&
           !__atomic_compare_exchange_n(&counter->peak, &peak, live, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

static void *begin_block(char *memory, size_t bytes)
{
    memcpy(memory, &bytes, sizeof bytes);
    return memory + HEADER;
}

static size_t size_of_block(const void *block)
{
    size_t bytes = 0;
    if (block) memcpy(&bytes, (const char *)block - HEADER, sizeof bytes);
    return bytes;
}

static void *counted_allocate(void *user, size_t bytes)
{
    char *memory = bytes <= PTRDIFF_MAX - HEADER ? malloc(bytes + HEADER) : NULL;
    if (!memory) return NULL;
    count(user, (int64_t)bytes);
    return begin_block(memory, bytes);
}

static void counted_release(void *user, void *block)
{
    if (!block) return;
    count(user, -(int64_t)size_of_block(block));
    free((char *)block - HEADER);
}

static void *counted_resize(void *user, void *block, size_t bytes)
{
    if (!block) return counted_allocate(user, bytes);
    const size_t before = size_of_block(block);
    char *memory = bytes <= PTRDIFF_MAX - HEADER ? realloc((char *)block - HEADER, bytes + HEADER) : NULL;
    if (!memory) return NULL;
    count(user, (int64_t)bytes - (int64_t)before);
    return begin_block(memory, bytes);
}

sp_status counter_open(sp_context *host, const bench_options *o, const volatile int *interrupt, bool cuda,
                       byte_counter *counter)
{
    const sp_allocator of_host = {counted_allocate, counted_release, counter, counted_resize};
    const sp_device_allocator of_device = device_counting(counter);
    sp_context_options options = compute_options(o, interrupt);
    if (cuda) options.device_allocator = &of_device;
    else options.allocator = &of_host;
    *counter = (byte_counter){.context = NULL};
    const sp_status status = sp_context_create(&options, &counter->context);
    return status == SP_OK ? SP_OK
                           : sp_fail(host, status, "--device %s: %s", o->device, sp_last_error(NULL));
}

void counter_close(byte_counter *counter)
{
    sp_context_destroy(counter->context);
    counter->context = NULL;
}
