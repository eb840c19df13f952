/* --doctor: what this program finds on this machine, for a report of trouble or before a long run. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "common/tool.h"
#include "options.h"

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

void doctor_print(void)
{
    uint64_t unused;
    const uint64_t memory = system_memory(&unused);
    printf("%-20s" SP_VERSION "\n", "mcl-gpu");
#ifdef SPARSE_CUDA
    printf("%-20syes\n", "CUDA in this build");
#else
    printf("%-20sno; make CUDA=1 builds with it\n", "CUDA in this build");
#endif
    const int devices = print_devices();
    printf("%-20s%ld; this process may use %d\n", "processors", sysconf(_SC_NPROCESSORS_CONF),
           thread_count("-", 0));
    if (memory > 0) print_bytes("memory", memory);
    if (unused > 0) print_bytes("memory free", unused);
    printf("%-20s%s\n", "--device auto",
           devices > 0 ? "the first GPU for large graphs, the CPU for small ones, where its start takes longer than the work"
                       : "the CPU");
}
