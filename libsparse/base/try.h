/* The exit of a C function: TRY keeps the status of a call and jumps on failure to `done`, where FREE_ALL frees arrays.
 * CUDA code has destructors and uses CHECK of device/check.cuh. */
#ifndef BASE_TRY_H
#define BASE_TRY_H

#include "sparse.h"

#define TRY(call)                       \
    do {                                \
        status = (call);                \
        if (status != SP_OK) goto done; \
    } while (0)

/* sp_free of each, in this order. */
#define FREE_ALL(context, ...) \
    free_arrays(context, (void *const[]){__VA_ARGS__}, sizeof((void *const[]){__VA_ARGS__}) / sizeof(void *))

static inline void free_arrays(sp_context *context, void *const *arrays, size_t count)
{
    for (size_t k = 0; k < count; k++) sp_free(context, arrays[k]);
}

#endif
