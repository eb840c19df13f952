/* The implementation of device.h. */
#include "device.h"

#include <string.h>

sp_status device_open(const device_choice *choice, const char *device, const volatile int *interrupt,
                      sp_context **context)
{
    const sp_context_options options = {.device = device,
                                        .threads = thread_count(choice->input, choice->threads),
                                        .memory_budget = (size_t)choice->memory,
                                        .allocator = choice->allocator,
                                        .interrupt = interrupt};
    return sp_context_create(&options, context);
}

bool device_is_cuda(const char *device) { return strncmp(device, "cuda", 4) == 0; }
bool device_is_cpu(const char *device) { return strncmp(device, "cpu", 3) == 0; }
bool device_is_several(const char *device) { return strchr(device, ',') || strcmp(device, "cuda:all") == 0; }
bool device_is_auto(const char *device) { return strcmp(device, "auto") == 0; }

sp_status device_missing(sp_context *host, const char *device, sp_status status, const char *why)
{
    return sp_fail(host, status, "--device %s: %s; use --device cpu or auto", device, why);
}

sp_status device_choose(const device_choice *choice, bool large, const volatile int *interrupt, sp_context *host,
                        tool_line *line, sp_context **context)
{
    const bool asked = device_is_cuda(choice->device);
    *context = NULL;
    if (!asked && !(device_is_auto(choice->device) && large)) return SP_OK;
    show_line(line, "opening the CUDA device");
    const sp_status status = device_open(choice, asked ? choice->device : "cuda", interrupt, context);
    if (status == SP_OK || !asked) return SP_OK;
    return device_missing(host, choice->device, status, sp_last_error(NULL));
}

bool device_gives_way(const char *device, sp_status status)
{
    return device_is_auto(device) && (status == SP_ERROR_DEVICE_MEMORY || status == SP_ERROR_DEVICE ||
                                      status == SP_ERROR_UNSUPPORTED || status == SP_ERROR_NO_DEVICE);
}
