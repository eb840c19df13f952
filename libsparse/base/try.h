/* How a failure leaves a C function: TRY keeps the status of a call and jumps to `done`, where the function frees what
 * it took. CUDA code has destructors and uses CHECK of device/common.cuh. */
#ifndef BASE_TRY_H
#define BASE_TRY_H

#include "sparse.h"

#define TRY(call)                       \
    do {                                \
        status = (call);                \
        if (status != SP_OK) goto done; \
    } while (0)

#endif
