/* Where a tool computes: on the CPU, or on a CUDA device that was asked for or is worth opening. */
#ifndef DEVICE_H
#define DEVICE_H

#include "tool.h"

/* What the command line says. */
typedef struct device_choice {
    const char *device; /* auto, cpu, cuda, cuda:N; where a tool takes them also several */
    const char *input;  /* the file whose size bounds the threads; "-": all processors */
    int64_t threads, memory; /* 0: as many as are worth it; what is free */
    const sp_allocator *allocator; /* of host memory; NULL: the library's own */
} device_choice;

/* A context on `device`. Its failure is in sp_last_error(NULL). */
sp_status device_open(const device_choice *choice, const char *device, const volatile int *interrupt,
                      sp_context **context);
/* CUDA was asked for by name; the choice is left to the tool. */
bool device_is_cuda(const char *device);
bool device_is_cpu(const char *device);
bool device_is_auto(const char *device);
/* Several devices are named, all CPUs or all CUDA. */
bool device_is_several(const char *device);

/* Opens the CUDA device that was asked for or, by "auto", that `large` work is worth; otherwise, and where "auto"
 * finds none, *context is NULL. Only a device that was asked for fails, with a sentence in `host`. */
sp_status device_choose(const device_choice *choice, bool large, const volatile int *interrupt, sp_context *host,
                        tool_line *line, sp_context **context);
/* The failure of a device that was asked for. */
sp_status device_missing(sp_context *host, const char *device, sp_status status, const char *why);

/* After "auto": whether the work failed by trouble that the CPU does not have, and goes on there. */
bool device_gives_way(const char *device, sp_status status);
#define GOING_ON_WITH_CPU "%s; going on with the CPU"

#endif
