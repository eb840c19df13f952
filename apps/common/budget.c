/* The implementation of budget.h. */
#include "budget.h"

#include <stdlib.h>

#include "base/system.h"
#include "common/tool.h"

/* Threads may call these at the same time. */
static int64_t add(memory_budget *b, int64_t bytes) { return __atomic_add_fetch(&b->held, bytes, __ATOMIC_RELAXED); }

/* Counts the bytes of a block that is about to be made; false: they are too many. */
static bool take(memory_budget *b, int64_t bytes)
{
    const int64_t held = add(b, bytes);
    int64_t wanted = __atomic_load_n(&b->wanted, __ATOMIC_RELAXED);
    if (held <= b->limit) return true;
    add(b, -bytes);
    while (held > wanted &&
           !__atomic_compare_exchange_n(&b->wanted, &wanted, held, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
    return false;
}

/* A block takes somewhat more than the bytes that were asked for. */
static void *allocate(void *user, size_t bytes)
{
    if (bytes > INT64_MAX / 2 || !take(user, (int64_t)bytes)) return NULL;
    void *block = malloc(bytes);
    add(user, (block ? (int64_t)system_block_bytes(block) : 0) - (int64_t)bytes);
    return block;
}

static void release(void *user, void *block)
{
    if (block) add(user, -(int64_t)system_block_bytes(block));
    free(block);
}

static void *resize(void *user, void *block, size_t bytes)
{
    const int64_t before = (int64_t)system_block_bytes(block);
    if (bytes > INT64_MAX / 2) return NULL;
    const int64_t more = (int64_t)bytes > before ? (int64_t)bytes - before : 0;
    if (more > 0 && !take(user, more)) return NULL;
    void *grown = realloc(block, bytes);
    add(user, (grown ? (int64_t)system_block_bytes(grown) - before : 0) - more);
    return grown;
}

const sp_allocator *budget_open(memory_budget *b, const device_choice *choice)
{
    if (choice->memory == 0 || device_is_cuda(choice->device)) return NULL;
    if (!device_is_cpu(choice->device) && sp_cuda_count() > 0) return NULL;
    b->limit = choice->memory;
    b->allocator = (sp_allocator){allocate, release, b, resize};
    return &b->allocator;
}

/* With room for blocks that are held twice while they grow. */
int64_t budget_need(const memory_budget *b)
{
    const int64_t megabyte = 1 << 20;
    return b->wanted > 0 ? (b->wanted + b->wanted / 8) / megabyte + 4 : 0;
}

void budget_explain(const memory_budget *b, sp_context *context, sp_status status, const char *what, bool enough,
                    const char *advice)
{
    char held[COUNT_TEXT], least[COUNT_TEXT];
    if (status != SP_ERROR_HOST_MEMORY || b->wanted == 0) return;
    show_count(b->limit / 1000000, held);
    show_count(b->wanted / 1000000 + 1, least);
    if (enough)
        sp_fail(context, status, "%s does not fit --memory (%s MB): --memory %lldM would do%s", what, held,
                (long long)budget_need(b), advice);
    else
        sp_fail(context, status, "%s does not fit --memory (%s MB): %s MB or more are needed%s", what, held, least,
                advice);
}
