/* Kernels that others have published, for products of f32 with dense matrices: libraries that bench/peers/build.sh
 * makes and BENCH_PEERS names the folder of (spmm_peer.h). They are asked last: a kernel that fails on the device
 * takes what comes after it along. */
#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "spmm_peer.h"
#include "sparse-bench/spmm/spmm_bench.h"

enum { MOST = 6 };
_Static_assert(MOST + 4 <= SPMM_PEERS, "beside cuSPARSE's algorithms");

static const char *names[MOST + 1]; /* of the libraries that were opened */

typedef struct libraries {
    sp_context *context, *device; /* the host's; that of the operands */
    void *handles[MOST];
    const spmm_peer_calls *calls[MOST];
    int count, used; /* the one that has preparations */
    spmm_peer_operands operands;
    int32_t *offsets;
} libraries;

static void published_close(void *state)
{
    libraries *l = state;
    for (int i = 0; i < l->count; i++) dlclose(l->handles[i]);
    sp_context_destroy(l->device);
    sp_free(l->context, l);
}

static sp_status published_open(sp_context *context, const spmm_options *options, void **state)
{
    const char *folder = getenv("BENCH_PEERS");
    char pattern[300];
    glob_t found;
    libraries *l;
    names[0] = NULL;
    if (!folder || !*folder || options->common.type != SP_F32 || options->features != SP_DENSE_F32 ||
        options->result != SP_DENSE_F32)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "published kernels are built for f32 alone");
    const sp_status status = sp_calloc(context, 1, sizeof *l, (void **)&l);
    if (status != SP_OK) return status;
    l->context = context;
    const sp_context_options device = {.device = options->common.device};
    const sp_status opened = sp_context_create(&device, &l->device);
    if (opened != SP_OK) {
        sp_free(context, l);
        return sp_fail(context, opened, "%s", sp_last_error(NULL));
    }
    snprintf(pattern, sizeof pattern, "%s/spmm-*.so", folder);
    const bool any = glob(pattern, 0, NULL, &found) == 0;
    for (size_t i = 0; any && i < found.gl_pathc && l->count < MOST; i++) {
        void *handle = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
        const spmm_peer_calls *calls = handle ? dlsym(handle, SPMM_PEER_SYMBOL) : NULL;
        if (!calls) fprintf(stderr, "sparse-bench: %s is left out: %s\n", found.gl_pathv[i], dlerror());
        if (!calls) continue;
        l->handles[l->count] = handle;
        l->calls[l->count] = calls;
        names[l->count++] = calls->name;
        names[l->count] = NULL;
    }
    if (any) globfree(&found);
    *state = l;
    return SP_OK;
}

static sp_status published_result(libraries *l, const char *failure)
{
    if (!failure) return SP_OK;
    const bool declined = strncmp(failure, "it", 2) == 0; /* "its widths are ...", "it counts ..." */
    return sp_fail(l->context, declined ? SP_ERROR_UNSUPPORTED : SP_ERROR_DEVICE, "%s", failure);
}

static void published_unload(void *state)
{
    libraries *l = state;
    spmm_peer_operands *o = &l->operands;
    void *const arrays[] = {o->offsets, o->columns, o->values, o->x, o->y};
    if (l->count > 0) l->calls[l->used]->forget();
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) sp_array_free(l->device, SP_DEVICE, arrays[i]);
    sp_free(l->context, l->offsets);
    l->offsets = NULL;
    *o = (spmm_peer_operands){0};
}

/* An array of the device, with `spare` zeros behind the host's; FROM NULL: without numbers. */
static sp_status place(libraries *l, const void *from, int64_t count, int64_t spare, void **to)
{
    static const int32_t zeros[SPMM_PEER_SPARE];
    sp_status status;
    TRY(sp_array_create(l->device, count + spare, sizeof *zeros, SP_DEVICE, to));
    if (from) TRY(sp_array_copy(l->device, count, sizeof *zeros, *to, SP_DEVICE, from, SP_HOST));
    TRY(sp_array_copy(l->device, spare, sizeof *zeros, (int32_t *)*to + count, SP_DEVICE, zeros, SP_HOST));
done:
    if (status != SP_OK) sp_fail(l->context, status, "%s", sp_last_error(l->device));
    return status;
}

static sp_status published_load(void *state, const sp_csr *a, const sp_dense *x)
{
    libraries *l = state;
    spmm_peer_operands *o = &l->operands;
    const void *values;
    void *ones = NULL;
    sp_status status = SP_OK;
    if (l->count == 0) return SP_OK;
    if (a->nnz > INT32_MAX)
        return sp_fail(l->context, SP_ERROR_UNSUPPORTED, "published kernels count entries with 32 bits");
    TRY(values_or_ones(l->context, a, &values, &ones));
    TRY(sp_alloc(l->context, a->rows + 1, sizeof *l->offsets, (void **)&l->offsets));
    for (int64_t i = 0; i <= a->rows; i++) l->offsets[i] = (int32_t)a->row_offsets[i];
    *o = (spmm_peer_operands){.rows = a->rows, .cols = a->cols, .nnz = a->nnz, .width = x->cols,
                              .host_offsets = l->offsets};
    TRY(place(l, l->offsets, a->rows + 1, 0, (void **)&o->offsets));
    TRY(place(l, a->col_indices, a->nnz, SPMM_PEER_SPARE, (void **)&o->columns));
    TRY(place(l, values, a->nnz, SPMM_PEER_SPARE, (void **)&o->values));
    TRY(place(l, x->values, x->rows * x->cols, 0, (void **)&o->x));
    TRY(place(l, NULL, a->rows * x->cols, 0, (void **)&o->y));
done:
    sp_free(l->context, ones);
    if (status != SP_OK) published_unload(l);
    return status;
}

static sp_status published_prepare(void *state, int number)
{
    libraries *l = state;
    if (l->used != number) l->calls[l->used]->forget();
    l->used = number;
    return published_result(l, l->calls[number]->prepare(&l->operands));
}

static sp_status published_run(void *state)
{
    libraries *l = state;
    return published_result(l, l->calls[l->used]->run());
}

static sp_status published_view(void *state, const void **y)
{
    libraries *l = state;
    *y = l->operands.y;
    return published_result(l, l->calls[l->used]->wait());
}

const spmm_peer spmm_peer_published = {names, published_open, published_load, published_prepare, published_run,
                                       published_view, published_unload, published_close, NULL, NULL};
