/* Contexts of several devices: their names, their life, and a thread for each device while they work. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/devices.h"

static const char all_devices[] = "cuda:all";

bool sp_devices_named(const char *device)
{
    return device && (strchr(device, ',') || strcmp(device, all_devices) == 0);
}

/* ---- life ---------------------------------------------------------------------------------------------- */

/* Copies element `number` of a list, or the name of that CUDA device of all; false if there is none. */
static bool device_name(const char *list, int number, char *name, size_t size)
{
    if (strcmp(list, all_devices) == 0) {
        snprintf(name, size, "cuda:%d", number);
        return number < sp_cuda_count();
    }
    for (; number > 0 && list; number--) {
        list = strchr(list, ',');
        if (list) list++;
    }
    if (list) snprintf(name, size, "%.*s", (int)strcspn(list, ","), list);
    return list != NULL;
}

static bool is_one_device(const char *name)
{
    return strcmp(name, "cpu") == 0 || strcmp(name, "cuda") == 0 ||
           (strncmp(name, "cuda:", 5) == 0 && strcmp(name, all_devices) != 0);
}

/* Counts the devices that the options name, which are of one kind. */
static sp_status count_devices(const char *list, int *count)
{
    char first[40], name[40];
    *count = 0;
    while (device_name(list, *count, name, sizeof name)) {
        if (*count == 0) strcpy(first, name);
        if (!is_one_device(name))
            return sp_fail(NULL, SP_ERROR_ARGUMENT, "device \"%.40s\" of \"%.80s\" is not cpu, cuda or cuda:N", name,
                           list);
        if (strncmp(name, first, 3) != 0)
            return sp_fail(NULL, SP_ERROR_ARGUMENT, "\"%.80s\" has CPUs beside CUDA devices, which round in another "
                           "order", list);
        if (++*count > SP_MOST_DEVICES)
            return sp_fail(NULL, SP_ERROR_ARGUMENT, "\"%.80s\" names more than %d devices", list, SP_MOST_DEVICES);
    }
    return SP_OK;
}

int sp_devices_count(const sp_context *context) { return context->devices ? context->devices->count : 1; }

sp_context *sp_devices_number(sp_context *context, int number)
{
    return context->devices ? context->devices->contexts[number] : context;
}

void sp_devices_close(sp_context *context)
{
    sp_devices *devices = context->devices;
    if (!devices) return;
    for (int d = 1; d < devices->count; d++) sp_context_destroy(devices->contexts[d]);
    FREE_ALL(context, devices->contexts, devices);
    context->devices = NULL;
    context->halt = NULL;
}

/* "cpu,cpu", or "cuda:0,cuda:1 NAME" with the name of the first. */
static void describe(sp_context *context)
{
    const sp_devices *devices = context->devices;
    char text[sizeof context->device_name] = "";
    const size_t size = sizeof text;
    size_t used = 0;
    for (int d = 0; d < devices->count && used < size; d++) {
        const char *name = sp_context_device(devices->contexts[d]);
        used += (size_t)snprintf(text + used, size - used, "%s%.*s", d > 0 ? "," : "", (int)strcspn(name, " "), name);
    }
    if (used < size)
        snprintf(text + used, size - used, "%s", context->device_name + strcspn(context->device_name, " "));
    memcpy(context->device_name, text, size);
}

/* Opens the devices after the first. Each gets its share of the threads, and at least one. */
static sp_status open_helpers(sp_context *context, const sp_context_options *options)
{
    sp_devices *devices = context->devices;
    char name[40];
    for (int d = 0; device_name(options->device, d, name, sizeof name); d++) {
        const int share = context->threads * (d + 1) / devices->count - context->threads * d / devices->count;
        const int threads = share > 0 ? share : 1;
        if (d == 0) {
            devices->threads = threads;
            continue;
        }
        sp_context_options one = *options;
        one.device = name;
        one.threads = threads;
        one.allocator = &context->allocator;
        sp_status status = sp_context_create(&one, &devices->contexts[d]);
        if (status != SP_OK) return status;
        devices->contexts[d]->halt = &devices->halt;
        if (context->backend->space != SP_DEVICE) continue;
        status = sp_cuda_link(context, devices->contexts[d]);
        if (status != SP_OK) return sp_fail(NULL, status, "%s", context->error);
    }
    return SP_OK;
}

/* Gives an open context its helpers. */
static sp_status open_others(sp_context *context, const sp_context_options *options, int count)
{
    sp_devices *made = NULL;
    sp_status status = sp_calloc(context, 1, sizeof *made, (void **)&made);
    if (status == SP_OK) {
        context->devices = made;
        context->halt = &made->halt;
        made->count = count;
        status = sp_calloc(context, count, sizeof *made->contexts, (void **)&made->contexts);
    }
    if (status != SP_OK) {
        if (made) made->count = 0;
        return sp_fail(NULL, status, "%s", context->error);
    }
    made->contexts[0] = context;
    return open_helpers(context, options);
}

sp_status sp_devices_open(sp_context *context, const sp_context_options *options)
{
    char first[40];
    int count;
    sp_status status = count_devices(options->device, &count);
    if (status != SP_OK) return status;
    if (!device_name(options->device, 0, first, sizeof first)) strcpy(first, "cuda:0"); /* of none: it says so */
    status = sp_device_open(context, first);
    if (status != SP_OK || count <= 1) return status;
    status = open_others(context, options, count);
    if (status == SP_OK) describe(context);
    else {
        sp_devices_close(context);
        if (context->backend->destroy) context->backend->destroy(context);
        context->backend = &sp_backend_cpu;
    }
    return status;
}

/* ---- work ---------------------------------------------------------------------------------------------- */

typedef struct device_task {
    sp_devices *devices;
    sp_devices_work work;
    void *user;
    int number;
    sp_status status;
} device_task;

static void *run_task(void *argument)
{
    device_task *task = argument;
    sp_devices *devices = task->devices;
    int none = 0;
    task->status = task->work(devices->contexts[task->number], task->number, task->user);
    if (task->status == SP_OK) return NULL;
    __atomic_compare_exchange_n(&devices->failed, &none, task->number + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    __atomic_store_n(&devices->halt, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* The calling thread works for device 0, and for those that get no thread. Signals are left to it: a handler of the
 * caller's may count on its own threads. */
sp_status sp_devices_run(sp_context *context, sp_devices_work work, void *user)
{
    sp_devices *devices = context->devices;
    const int all_threads = context->threads;
    if (!devices) return work(context, 0, user);
    device_task tasks[SP_MOST_DEVICES];
    pthread_t threads[SP_MOST_DEVICES];
    bool running[SP_MOST_DEVICES] = {false};
    sigset_t all, before;
    devices->failed = 0;
    context->threads = devices->threads;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int d = 0; d < devices->count; d++) {
        tasks[d] = (device_task){.devices = devices, .work = work, .user = user, .number = d};
        running[d] = d > 0 && pthread_create(&threads[d], NULL, run_task, &tasks[d]) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (int d = 0; d < devices->count; d++)
        if (!running[d]) run_task(&tasks[d]);
    for (int d = 0; d < devices->count; d++)
        if (running[d]) pthread_join(threads[d], NULL);
    devices->halt = 0;
    context->threads = all_threads;
    if (devices->failed == 0) return SP_OK;
    const int first = devices->failed - 1;
    if (first == 0) return tasks[0].status;
    return sp_fail(context, tasks[first].status, "%s", sp_last_error(devices->contexts[first]));
}

void sp_devices_cut(const sp_context *context, const double *weights, int64_t rows, int64_t cuts[SP_MOST_DEVICES + 1])
{
    const int devices = sp_devices_count(context);
    double total = 0, sum = 0;
    int64_t row = 0;
    for (int64_t i = 0; i < rows; i++) total += weights[i] + 1;
    for (int d = 0; d < devices; d++) {
        cuts[d] = row;
        while (row < rows && (sum < total * (d + 1) / devices || d == devices - 1)) sum += weights[row++] + 1;
    }
    cuts[devices] = rows;
}
