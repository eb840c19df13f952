/* Libraries for the CPU, which are loaded at run time: where they lie, and what differs between their versions. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sparse-bench/bench.h"

/* The library that the environment names, or else the first of `names` that the system has. */
static void *find_library(const char *variable, const char *const *names)
{
    const char *path = getenv(variable);
    void *library = NULL;
    if (path && *path) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (; *names && !library; names++) library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

void *graphblas_library(void)
{
    static const char *const names[] = {"libgraphblas.so.10", "libgraphblas.so.9", "libgraphblas.so.8",
                                        "libgraphblas.so.7", "libgraphblas.so", NULL};
    return find_library("BENCH_GRAPHBLAS", names);
}

static void *mkl_library(void)
{
    static const char *const names[] = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so", NULL};
    return find_library("BENCH_MKL", names);
}

static bool mkl_use_threads(void *library, int threads)
{
    void (*set)(int);
    int (*get)(void);
    *(void **)&set = dlsym(library, "MKL_Set_Num_Threads");
    *(void **)&get = dlsym(library, "MKL_Get_Max_Threads");
    if (!set || !get) return false;
    set(threads);
    return get() == threads;
}

sp_status mkl_open_library(sp_context *context, void **library)
{
    *library = mkl_library();
    if (!*library) return sp_fail(context, SP_ERROR_NO_DEVICE, "no libmkl_rt on this machine");
    if (mkl_use_threads(*library, sp_context_threads(context))) return SP_OK;
    return sp_fail(context, SP_ERROR_NO_DEVICE, "libmkl_rt does not take %d threads", sp_context_threads(context));
}

/* Options have other numbers from version 9 on. A number that a version does not know is refused. */
bool graphblas_use_threads(void *library, int threads)
{
    static const int fields[] = {7086, 5};
    int (*set)(int, int32_t), (*get)(int, int32_t *);
    *(void **)&set = dlsym(library, "GxB_Global_Option_set_INT32");
    *(void **)&get = dlsym(library, "GxB_Global_Option_get_INT32");
    for (size_t i = 0; set && get && i < sizeof fields / sizeof *fields; i++) {
        int32_t used = 0;
        if (set(fields[i], threads) == 0 && get(fields[i], &used) == 0 && used == threads) return true;
    }
    return false;
}

void graphblas_version(char *text, size_t size)
{
    static const int fields[] = {7005, 8};
    void *library = graphblas_library();
    int (*get)(int, int32_t *) = NULL;
    if (library) *(void **)&get = dlsym(library, "GxB_Global_Option_get_INT32");
    for (size_t i = 0; get && i < sizeof fields / sizeof *fields; i++) {
        int32_t version[3] = {0};
        if (get(fields[i], version) != 0 || version[0] == 0) continue;
        snprintf(text, size, "SuiteSparse:GraphBLAS %d.%d.%d", version[0], version[1], version[2]);
        return;
    }
    snprintf(text, size, "SuiteSparse:GraphBLAS");
}

void mkl_version(char *text, size_t size)
{
    void *library = mkl_library();
    void (*get)(char *, int);
    char sentence[200] = "";
    int year, update;
    *(void **)&get = library ? dlsym(library, "MKL_Get_Version_String") : NULL;
    if (get) get(sentence, (int)sizeof sentence - 1);
    const char *number = strstr(sentence, "Version ");
    if (number && sscanf(number, "Version %d.%d", &year, &update) == 2)
        snprintf(text, size, "oneMKL %d.%d", year, update);
    else snprintf(text, size, "oneMKL");
}

void append_version(void (*version)(char *text, size_t size), char *text, size_t size)
{
    const size_t used = strlen(text), gap = used ? 2 : 0;
    if (!version || used + 3 > size) return;
    if (used) strcpy(text + used, ", ");
    version(text + used + gap, size - used - gap);
}
