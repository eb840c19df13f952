/* --memory on the CPU: an allocator that holds the memory of a run to the budget, and knows how much would do. */
#ifndef BUDGET_H
#define BUDGET_H

#include "device.h"

/* The counts are changed by atomic operations. */
typedef struct memory_budget {
    int64_t limit, held;
    int64_t wanted; /* the most that a refused request would have made of `held`; 0: none was refused */
    sp_allocator allocator;
} memory_budget;

/* Returns the allocator for contexts on the host. It returns NULL, and there is no limit, if --memory is not given or
 * limits GPUs. */
const sp_allocator *budget_open(memory_budget *budget, const device_choice *choice);
/* The value of --memory, in units of M, that the refused request would have fitted; 0: none was refused. */
int64_t budget_need(const memory_budget *budget);
/* If a run failed because the budget refused memory, makes the context's sentence say that `what` does not fit and how
 * much is needed: with `enough` the --memory that would do, else the least. `advice` ends the sentence. */
void budget_explain(const memory_budget *budget, sp_context *context, sp_status status, const char *what, bool enough,
                    const char *advice);

#endif
