/* The machine of a benchmark: its names, its copy bandwidth, and what the tool itself asks of CUDA. */
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/system.h"
#include "sparse-bench/bench.h"

#ifdef SPARSE_CUDA
#include "sparse-bench/peers/cuda.h"

/* Without a device all memory is the host's, and nothing runs elsewhere. */
static bool device_exists(void)
{
    static int count = -1;
    if (count < 0 && cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError();
        count = 0;
    }
    return count > 0;
}

void device_finish(void)
{
    if (device_exists()) cudaDeviceSynchronize();
}

sp_status cuda_result(sp_context *context, cudaError_t error, const char *call)
{
    if (error == cudaSuccess) return SP_OK;
    cudaGetLastError();
    return sp_fail(context, error == cudaErrorMemoryAllocation ? SP_ERROR_DEVICE_MEMORY : SP_ERROR_DEVICE,
                   "%.60s: %s", call, cudaGetErrorString(error));
}

sp_status device_copy(sp_context *context, void *to, const void *from, size_t bytes)
{
    if (!device_exists()) {
        memcpy(to, from, bytes);
        return SP_OK;
    }
    return cuda_result(context, cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copying a result");
}

/* The best of some copies of 1 GiB within the device, far more than its caches hold. */
static sp_status device_bandwidth(sp_context *context, double *bandwidth)
{
    const size_t bytes = (size_t)1 << 30;
    char *block = NULL;
    cudaError_t error = cudaMalloc((void **)&block, 2 * bytes);
    for (int i = 0; i < 10 && error == cudaSuccess; i++) {
        const double began = wall_seconds();
        error = cudaMemcpy(block + bytes, block, bytes, cudaMemcpyDeviceToDevice);
        if (error == cudaSuccess) error = cudaDeviceSynchronize();
        const double rate = 2 * (double)bytes / (wall_seconds() - began);
        if (rate > *bandwidth) *bandwidth = rate;
    }
    cudaFree(block);
    return cuda_result(context, error, "measuring copies");
}

sp_status device_pin(sp_context *context, size_t bytes, void **memory)
{
    *memory = NULL;
    if (!device_exists()) return sp_fail(context, SP_ERROR_NO_DEVICE, "pinned memory needs a CUDA device");
    return cuda_result(context, cudaMallocHost(memory, bytes ? bytes : 1), "cudaMallocHost");
}

void device_unpin(void *memory)
{
    if (memory) cudaFreeHost(memory);
}

static void *counted_allocate(void *user, size_t bytes, int device, void *stream)
{
    byte_counter *counter = user;
    void *block = NULL;
    (void)device;
    if (cudaMallocAsync(&block, bytes, stream) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    counter->live += (int64_t)bytes;
    if (counter->live > counter->peak) counter->peak = counter->live;
    return block;
}

static void counted_release(void *user, void *block, size_t bytes, int device, void *stream)
{
    (void)device;
    cudaFreeAsync(block, stream);
    ((byte_counter *)user)->live -= (int64_t)bytes;
}

sp_device_allocator device_counting(byte_counter *counter)
{
    return (sp_device_allocator){counted_allocate, counted_release, counter};
}

enum { LINK_IN = 1, LINK_OUT = 2 };

/* The best of some copies of 256 MiB each way, alone and both at once. */
sp_status device_link(sp_context *context, machine *m)
{
    const size_t bytes = (size_t)256 << 20;
    char *host = NULL, *device = NULL;
    cudaStream_t streams[2] = {NULL, NULL};
    cudaError_t error = cudaMallocHost((void **)&host, 2 * bytes);
    if (error == cudaSuccess) error = cudaMalloc((void **)&device, 2 * bytes);
    for (int i = 0; i < 2 && error == cudaSuccess; i++) error = cudaStreamCreate(&streams[i]);
    for (int i = 0; i < 18 && error == cudaSuccess; i++) {
        const int ways = 1 + i % 3;
        double *const best = ways == LINK_IN ? &m->link_in : ways == LINK_OUT ? &m->link_out : &m->link_both;
        const double began = wall_seconds();
        if (ways & LINK_IN) error = cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, streams[0]);
        if (error == cudaSuccess && ways & LINK_OUT)
            error = cudaMemcpyAsync(host + bytes, device + bytes, bytes, cudaMemcpyDeviceToHost, streams[1]);
        if (error == cudaSuccess) error = cudaDeviceSynchronize();
        const double rate = (ways == (LINK_IN | LINK_OUT) ? 2 : 1) * (double)bytes / (wall_seconds() - began);
        if (rate > *best) *best = rate;
    }
    for (int i = 0; i < 2; i++)
        if (streams[i]) cudaStreamDestroy(streams[i]);
    cudaFree(device);
    device_unpin(host);
    return cuda_result(context, error, "measuring the link");
}

static sp_status describe_device(sp_context *context, machine *m)
{
    int version = 0, device = 0, cache = 0;
    const char *name = strchr(sp_context_device(context), ' ');
    snprintf(m->gpu, sizeof m->gpu, "%s", name ? name + 1 : sp_context_device(context));
    sp_status status = sp_context_enter(context);
    if (status != SP_OK) return status;
    cudaGetDevice(&device);
    sp_context_leave(context);
    if (cudaSetDevice(device) == cudaSuccess && /* for what the tool itself does from here on */
        cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device) == cudaSuccess)
        m->cache_bytes = cache;
    cudaRuntimeGetVersion(&version);
    snprintf(m->cuda, sizeof m->cuda, "%d.%d", version / 1000, version % 1000 / 10);
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    if (file && fgets(m->driver, sizeof m->driver, file)) m->driver[strcspn(m->driver, "\n")] = '\0';
    if (file) fclose(file);
    return device_bandwidth(context, &m->copy_bandwidth);
}

#else

void device_finish(void) {}

sp_status device_pin(sp_context *context, size_t bytes, void **memory)
{
    (void)bytes;
    *memory = NULL;
    return sp_fail(context, SP_ERROR_NO_DEVICE, "this build has no CUDA");
}

void device_unpin(void *memory) { (void)memory; }

sp_device_allocator device_counting(byte_counter *counter)
{
    (void)counter;
    return (sp_device_allocator){0};
}

sp_status device_link(sp_context *context, machine *m)
{
    (void)m;
    return sp_fail(context, SP_ERROR_NO_DEVICE, "this build has no CUDA");
}

sp_status device_copy(sp_context *context, void *to, const void *from, size_t bytes)
{
    (void)context;
    memcpy(to, from, bytes);
    return SP_OK;
}

static sp_status describe_device(sp_context *context, machine *m)
{
    (void)m;
    return sp_fail(context, SP_ERROR_NO_DEVICE, "this build has no CUDA");
}

#endif

enum { HOST_BLOCK = 128 << 20, COPIES = 4 };

/* The best of some copies by all threads, of more than the caches hold. */
static sp_status host_bandwidth(sp_context *context, double *bandwidth)
{
    char *from = NULL, *to = NULL;
    const int threads = sp_context_threads(context);
    sp_status status;
    TRY(sp_alloc(context, HOST_BLOCK, 1, (void **)&from));
    TRY(sp_alloc(context, HOST_BLOCK, 1, (void **)&to));
    for (int i = 0; i <= COPIES; i++) {
        const double began = wall_seconds();
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int t = 0; t < threads; t++) {
            const size_t low = (size_t)HOST_BLOCK * (size_t)t / (size_t)threads;
            const size_t high = (size_t)HOST_BLOCK * (size_t)(t + 1) / (size_t)threads;
            if (i == 0) memset(from + low, t, high - low);
            memcpy(to + low, from + low, high - low);
        }
        const double rate = 2.0 * HOST_BLOCK / (wall_seconds() - began);
        if (i > 0 && rate > *bandwidth) *bandwidth = rate;
    }
done:
    FREE_ALL(context, from, to);
    return status;
}

/* The model's name, which only /proc/cpuinfo tells. */
static void describe_cpu(char *name, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        snprintf(name, size, "%s", colon + 1 + strspn(colon + 1, " "));
        name[strcspn(name, "\n")] = '\0';
        break;
    }
    if (file) fclose(file);
}

static sp_status describe(sp_context *context, machine *m)
{
    struct utsname system;
    uint64_t unused;
    memset(m, 0, sizeof *m);
    describe_cpu(m->cpu, sizeof m->cpu);
    if (uname(&system) == 0) snprintf(m->kernel, sizeof m->kernel, "%s", system.release);
    if (!*m->cpu && uname(&system) == 0) snprintf(m->cpu, sizeof m->cpu, "%s", system.machine);
    m->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    m->memory_bytes = (int64_t)system_memory(&unused);
    if (sp_context_is_cuda(context)) return describe_device(context, m);
    m->cache_bytes = system_core_cache();
    return host_bandwidth(context, &m->copy_bandwidth);
}

sp_status machine_look_around(sp_context *host, const bench_options *o, machine *m, bool *cuda)
{
    const sp_context_options options = {.device = o->device, .threads = (int)o->threads};
    sp_context *context;
    sp_status status = sp_context_create(&options, &context);
    if (status != SP_OK)
        return sp_fail(host, status, "--device %s: %s; use --device cpu or auto", o->device,
                       sp_last_error(NULL));
    *cuda = sp_context_is_cuda(context);
    status = describe(context, m);
    if (status != SP_OK) sp_fail(host, status, "%s", sp_last_error(context));
    sp_context_destroy(context);
    return status;
}
