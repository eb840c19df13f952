/* The exit of a C function on failure: TRY keeps the status of a call and jumps to `done`, where the function frees its
 * memory. CUDA code has destructors and uses CHECK of device/check.cuh. */
#ifndef BASE_TRY_H
#define BASE_TRY_H

#include "sparse.h"

#define TRY(call)                       \
    do {                                \
        status = (call);                \
        if (status != SP_OK) goto done; \
    } while (0)

#endif
