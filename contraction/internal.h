/* What the files of this module share. */
#ifndef CONTRACTION_INTERNAL_H
#define CONTRACTION_INTERNAL_H

#include <time.h>

static inline double contraction_seconds(void) /* monotonic wall clock */
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
