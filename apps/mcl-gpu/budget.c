/* --memory on the CPU: an allocator that holds the memory of a run to the budget, and knows how much would do. */
#include <stdlib.h>

#include "base/system.h"
#include "common/device.h"
#include "job.h"

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

const sp_allocator *budget_open(job *j)
{
    const settings *s = j->settings;
    if (s->memory == 0 || j->team.ranks || device_is_cuda(s->device) || device_is_several(s->device)) return NULL;
    if (!device_is_cpu(s->device) && sp_cuda_count() > 0) return NULL;
    j->budget.limit = s->memory;
    j->budget.allocator = (sp_allocator){allocate, release, &j->budget, resize};
    return &j->budget.allocator;
}

void budget_explain(job *j, sp_status status)
{
    const memory_budget *b = &j->budget;
    char held[COUNT_TEXT], wanted[COUNT_TEXT];
    if (status != SP_ERROR_HOST_MEMORY || b->wanted == 0) return;
    /* As the option takes it, with room for blocks that are held twice while they grow. */
    const int64_t megabyte = 1 << 20, need = (b->wanted + b->wanted / 8) / megabyte + 4;
    show_count(b->limit / 1000000, held);
    show_count(b->wanted / 1000000, wanted);
    if (j->iterates)
        sp_fail(j->host, status, "the matrix of the next iteration does not fit --memory (%s MB): --memory %lldM would "
                "do; lower -S and -R take less, and several hosts share it", held, (long long)need);
    else
        sp_fail(j->host, status, "the network does not fit --memory (%s MB): more than %s MB are needed", held, wanted);
}
