/* --doctor: what this program finds on this machine, for a report of trouble or before a long run. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "doctor.h"
#include "tool.h"

#ifdef SPARSE_CUDA
#include <cuda_runtime_api.h> /* its version only */
#endif

enum { MOST_DEVICES = 64 };

static void print_bytes(const char *what, uint64_t bytes)
{
    printf("%-20s%.1f GB\n", what, (double)bytes / (1 << 30));
}

/* "cuda:N NAME" of each, or why there is none. Returns how many there are. */
static int print_devices(void)
{
    int count = 0;
    for (; count < MOST_DEVICES; count++) {
        char name[32];
        sp_context *context;
        snprintf(name, sizeof name, "cuda:%d", count);
        const sp_context_options options = {.device = name, .threads = 1};
        if (sp_context_create(&options, &context) != SP_OK) break;
        printf("%-20s%s\n", count == 0 ? "GPUs" : "", sp_context_device(context));
        sp_context_destroy(context);
    }
    if (count == 0) printf("%-20snone: %s\n", "GPUs", sp_last_error(NULL));
    return count;
}

/* The version of NVIDIA's kernel module: the first word of its file that begins with a digit and has a point. */
static void print_driver(void)
{
    char line[256], version[32] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (file && fgets(line, sizeof line, file)) {
        const char *digits = strpbrk(line, "0123456789");
        /* "... x86_64 Kernel Module  570.124.06  ..." */
        for (; digits; digits = strpbrk(digits + strcspn(digits, " \n"), "0123456789"))
            if (digits > line && digits[-1] == ' ' && sscanf(digits, "%31[0-9.]", version) == 1 &&
                strchr(version, '.'))
                break;
    }
    if (file) fclose(file);
    printf("%-20s%s\n", "GPU driver", *version ? version : "none of NVIDIA's is loaded");
}

/* Below that much work the CPU is done before a GPU is open. */
static void print_choice(int devices, const char *large)
{
    printf("%-20s", "--device auto");
    if (devices > 0)
        printf("the first GPU for %s; otherwise the CPU, because opening a GPU takes about 0.3 s\n", large);
#ifdef SPARSE_CUDA
    else puts("the CPU, because no GPU can be used; the line GPUs says why");
#else
    else puts("the CPU, because this build has no CUDA");
#endif
}

void doctor_print(const char *tool, const char *blas, const char *large)
{
    uint64_t unused;
    const uint64_t memory = system_memory(&unused);
    printf("%-20s" SP_VERSION "\n", tool);
#ifdef SPARSE_CUDA
    printf("%-20syes, %d.%d\n", "CUDA in this build", CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
#else
    printf("%-20sno; make CUDA=1 builds with it\n", "CUDA in this build");
#endif
    print_driver();
    const int devices = print_devices();
    printf("%-20s%ld; this process may use %d\n", "processors", sysconf(_SC_NPROCESSORS_CONF),
           thread_count("-", 0));
    printf("%-20s%s\n", "BLAS", blas);
    if (memory > 0) print_bytes("memory", memory);
    if (unused > 0) print_bytes("memory free", unused);
    print_choice(devices, large);
}
