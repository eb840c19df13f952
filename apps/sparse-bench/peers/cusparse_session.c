/* cuSPARSE, loaded at run time: what its peers of both kinds of products share. */
#include "sparse-bench/bench.h"

#if defined SPARSE_CUDA && __has_include(<cusparse.h>)
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

sp_status cusparse_result(const cusparse_session *session, cusparseStatus_t code, const char *call)
{
    if (code == CUSPARSE_STATUS_SUCCESS) return SP_OK;
    const bool memory = code == CUSPARSE_STATUS_ALLOC_FAILED || code == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES;
    cudaGetLastError();
    return sp_fail(session->context,
                   memory                                   ? SP_ERROR_DEVICE_MEMORY
                   : code == CUSPARSE_STATUS_NOT_SUPPORTED ? SP_ERROR_UNSUPPORTED
                                                           : SP_ERROR_DEVICE,
                   "cusparse%.*s: %s", (int)strcspn(call, "("), call, session->f.GetErrorString(code));
}

#define TEXT(x) #x
#define VERSION_TEXT(x) TEXT(x)

/* The library of the header's version: where the loader looks, then beside the toolkit. nvJitLink, which it needs,
 * may lie there as well. */
static void *find_library(void)
{
    static const char *const folders[] = {"", "/lib64/", "/targets/x86_64-linux/lib/", "/lib/"};
    static const char *const names[] = {"libcusparse.so." VERSION_TEXT(CUSPARSE_VER_MAJOR), "libcusparse.so"};
    const char *home = getenv("CUDA_HOME");
    char path[4096];
    if (!home) home = "/usr/local/cuda";
    for (size_t folder = 0; folder < sizeof folders / sizeof *folders; folder++)
        for (size_t name = 0; name < sizeof names / sizeof *names; name++) {
            const char *root = folder ? home : "";
            snprintf(path, sizeof path, "%s%slibnvJitLink.so.%d", root, folders[folder], CUDART_VERSION / 1000);
            dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
            snprintf(path, sizeof path, "%s%s%s", root, folders[folder], names[name]);
            void *found = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
            if (found) return found;
        }
    return NULL;
}

static bool bind(cusparse_functions *f, void *library)
{
    bool complete = true;
#define BIND(name) complete &= (*(void **)&f->name = dlsym(library, "cusparse" #name)) != NULL;
    CUSPARSE_FUNCTIONS(BIND)
#undef BIND
    return complete;
}

sp_status cusparse_begin(sp_context *context, sp_value_type type, cusparse_session *session)
{
    sp_status status;
    *session = (cusparse_session){.context = context, .type = type == SP_F32 ? CUDA_R_32F : CUDA_R_64F,
                                  .size = type == SP_F32 ? sizeof(float) : sizeof(double)};
    if (type == SP_F32) session->one.f32 = 1;
    else session->one.f64 = 1;
    void *library = find_library();
    if (!library) return sp_fail(context, SP_ERROR_NO_DEVICE, "no libcusparse: %s", dlerror());
    if (!bind(&session->f, library))
        return sp_fail(context, SP_ERROR_NO_DEVICE, "this libcusparse lacks a function");
    TRY(cuda_result(context, cudaStreamCreateWithFlags(&session->stream, cudaStreamNonBlocking), "a stream"));
    TRY(cusparse_result(session, session->f.Create(&session->handle), "Create"));
    TRY(cusparse_result(session, session->f.SetStream(session->handle, session->stream), "SetStream"));
done:
    return status == SP_OK ? SP_OK : SP_ERROR_NO_DEVICE;
}

void cusparse_end(cusparse_session *session)
{
    if (session->handle) session->f.Destroy(session->handle);
    if (session->stream) cudaStreamDestroy(session->stream);
    session->handle = NULL;
    session->stream = NULL;
}

#endif
