/* The CUDA back end: its state, steps, captured work, and the table of its operations. */
#include "backend.cuh"

/* ---- steps ----------------------------------------------------------------------------------------------- */

static __global__ void change_step(int64_t *step, int64_t base, bool from_zero)
{
    follow();
    *step = from_zero ? base : *step + base;
}

static sp_status launch_step(gnn_engine *engine, int64_t base, bool from_zero)
{
    return launch_early(engine, change_step, 1, 1, 0, engine->step_there, base, from_zero);
}

static sp_status set_step(gnn_engine *engine, int64_t step)
{
    CHECK(launch_step(engine, step, true));
    engine->step = step;
    return SP_OK;
}

static sp_status advance(gnn_engine *engine)
{
    CHECK(launch_step(engine, 1, false));
    engine->step++;
    return SP_OK;
}

static sp_status wait_for_work(gnn_engine *engine)
{
    CUDA_CHECK(cudaStreamSynchronize(state_of(engine)->stream));
    return SP_OK;
}

/* ---- host memory ------------------------------------------------------------------------------------------ */

static sp_status pin(gnn_engine *engine, void *memory, size_t bytes, void **there)
{
    CUDA_CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
    const cudaError_t mapped = cudaHostGetDevicePointer(there, memory, 0);
    if (mapped != cudaSuccess) cudaHostUnregister(memory);
    return cuda_status(engine->context, mapped, "cudaHostGetDevicePointer");
}

static void unpin(gnn_engine *, void *memory)
{
    cudaHostUnregister(memory);
    cudaGetLastError();
}

/* ---- captured work --------------------------------------------------------------------------------------- */

/* An instantiated CUDA graph, and the number of steps of the engine in it. */
struct captured {
    cudaGraphExec_t work;
    int64_t steps;
};

static sp_status capture_begin(gnn_engine *engine)
{
    gnn_cuda_state *state = state_of(engine);
    CUDA_CHECK(cudaStreamBeginCapture(state->stream, cudaStreamCaptureModeThreadLocal));
    state->captured_from = engine->step;
    return SP_OK;
}

static sp_status instantiate(gnn_engine *engine, cudaGraph_t recorded, int64_t steps, void **graph)
{
    captured *made;
    cudaGraphExec_t work;
    CUDA_CHECK(cudaGraphInstantiateWithFlags(&work, recorded, 0));
    const sp_status status = sp_alloc(engine->context, 1, sizeof *made, (void **)&made);
    if (status != SP_OK) {
        cudaGraphExecDestroy(work);
        return status;
    }
    *made = {work, steps};
    *graph = made;
    return SP_OK;
}

/* Captured work has not been done, so the engine's step is set back. */
static sp_status capture_end(gnn_engine *engine, void **graph)
{
    gnn_cuda_state *state = state_of(engine);
    const int64_t steps = engine->step - state->captured_from;
    cudaGraph_t recorded = NULL;
    *graph = NULL;
    engine->step = state->captured_from;
    const cudaError_t ended = cudaStreamEndCapture(state->stream, &recorded);
    sp_status status = cuda_status(engine->context, ended, "cudaStreamEndCapture");
    if (status == SP_OK) status = instantiate(engine, recorded, steps, graph);
    if (recorded) cudaGraphDestroy(recorded);
    return status;
}

static sp_status replay(gnn_engine *engine, void *graph)
{
    const captured *made = (const captured *)graph;
    CUDA_CHECK(cudaGraphLaunch(made->work, state_of(engine)->stream));
    engine->step += made->steps;
    return SP_OK;
}

static void forget(gnn_engine *engine, void *graph)
{
    captured *made = (captured *)graph;
    if (!made) return;
    cudaStreamSynchronize(state_of(engine)->stream);
    cudaGraphExecDestroy(made->work);
    cudaGetLastError();
    sp_free(engine->context, made);
}

/* ---- life ------------------------------------------------------------------------------------------------ */

static void close_engine(gnn_engine *engine)
{
    gnn_cuda_state *state = state_of(engine);
    if (!state) return;
    if (state->stream) cudaStreamSynchronize(state->stream);
    gnn_cuda_close_blas(engine);
    sp_array_free(engine->context, SP_DEVICE, state->partial);
    sp_array_free(engine->context, SP_DEVICE, state->tickets);
    sp_array_free(engine->context, SP_DEVICE, state->split_partial);
    sp_array_free(engine->context, SP_DEVICE, state->split_backs);
    sp_array_free(engine->context, SP_DEVICE, state->split_image);
    sp_array_free(engine->context, SP_DEVICE, engine->step_there);
    cudaGetLastError();
    sp_free(engine->context, state);
    engine->state = NULL;
}

/* Kernels overlap on Hopper and later, with machine code of this build: code that the driver makes of older PTX would
 * not wait. Graphs have such edges from CUDA 12.3 on. */
static sp_status see_overlap(gnn_engine *engine)
{
    gnn_cuda_state *state = state_of(engine);
    cudaFuncAttributes code;
    int driver;
    CUDA_CHECK(cudaFuncGetAttributes(&code, change_step));
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    state->overlaps = CUDART_VERSION >= 12030 && driver >= 12030 && code.binaryVersion >= 90 &&
                      code.ptxVersion >= 90 && !left_out("gnn-overlap");
    return SP_OK;
}

static sp_status open_engine(gnn_engine *engine)
{
    sp_context *context = engine->context;
    cudaPointerAttributes place;
    CHECK(sp_calloc(context, 1, sizeof(gnn_cuda_state), &engine->state));
    gnn_cuda_state *state = state_of(engine);
    CHECK(sp_array_create(context, 1, sizeof *engine->step_there, SP_DEVICE, (void **)&engine->step_there));
    CUDA_CHECK(cudaPointerGetAttributes(&place, engine->step_there));
    state->device = place.device;
    state->stream = (cudaStream_t)sp_context_stream(context);
    CUDA_CHECK(cudaDeviceGetAttribute(&state->processors, cudaDevAttrMultiProcessorCount, state->device));
    state->blocks = (int64_t)state->processors * BLOCKS_PER_PROCESSOR;
    CHECK(sp_array_create(context, state->blocks * PARTIALS, sizeof *state->partial, SP_DEVICE,
                          (void **)&state->partial));
    CHECK(sp_array_create(context, state->blocks, sizeof *state->tickets, SP_DEVICE, (void **)&state->tickets));
    CUDA_CHECK(cudaMemsetAsync(state->tickets, 0, (size_t)state->blocks * sizeof *state->tickets, state->stream));
    CHECK(see_overlap(engine));
    CHECK(set_step(engine, 0));
    CHECK(gnn_cuda_open_split(engine));
    CHECK(gnn_cuda_open_tiles(engine));
    return gnn_cuda_open_blas(engine);
}

const gnn_backend gnn_backend_cuda = {
    .open = there<open_engine>::run,
    .close = there<close_engine>::run,
    .set_step = there<set_step>::run,
    .advance = there<advance>::run,
    .capture_begin = there<capture_begin>::run,
    .capture_end = there<capture_end>::run,
    .replay = there<replay>::run,
    .forget = there<forget>::run,
    .wait = there<wait_for_work>::run,
    .pin = there<pin>::run,
    .unpin = there<unpin>::run,
#define GNN_OPERATION(name, ...) .name = there<gnn_cuda_##name>::run,
#include "operations.inc"
    .multiply_tiles = there<gnn_cuda_multiply_tiles>::run,
};
