/* The calls of spmm_peer.h around a peer's kernels, whose file defines open_product, multiply and close_product. */
#ifndef BENCH_PEERS_SPMM_PEER_CUH
#define BENCH_PEERS_SPMM_PEER_CUH

#include <cuda_runtime.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "spmm_peer.h"

/* Sizes as the peers take them. */
struct peer_graph {
    int rows, cols, nnz, width;
    const int *host_offsets;
    int *offsets, *columns;
    float *values, *x, *y;
};

/* The peer's: what is made once, a product that is started on the default stream, and the release of the first. They
 * throw if they fail. */
static void open_product(const peer_graph &g);
static void multiply(const peer_graph &g);
static void close_product();

static peer_graph the_graph;
static std::string the_failure;

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

template <typename T> static T *upload(const std::vector<T> &from)
{
    T *to = nullptr;
    check(cudaMalloc(&to, (from.size() + 1) * sizeof(T)), "allocation");
    check(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
    return to;
}

/* Runs a step; the sentence of what it throws. */
template <typename Step> static const char *guarded(Step step)
{
    try {
        step();
    } catch (const std::exception &error) {
        cudaGetLastError();
        the_failure = error.what();
        return the_failure.c_str();
    }
    return nullptr;
}

static void forget()
{
    cudaDeviceSynchronize();
    close_product();
    cudaGetLastError();
}

static const char *prepare(const spmm_peer_operands *o)
{
    return guarded([&] {
        const int64_t largest = (o->rows > o->cols ? o->rows : o->cols) * o->width;
        forget();
        if (o->nnz + SPMM_PEER_SPARE > INT32_MAX || largest > INT32_MAX / (int64_t)sizeof(float))
            throw std::runtime_error("it counts bytes with 32 bits");
        the_graph = {(int)o->rows, (int)o->cols, (int)o->nnz, (int)o->width, o->host_offsets,
                     o->offsets,   o->columns,   o->values,   o->x,          o->y};
        open_product(the_graph);
        check(cudaDeviceSynchronize(), "preparations");
    });
}

static const char *run()
{
    return guarded([] {
        multiply(the_graph);
        check(cudaGetLastError(), "launch");
    });
}

static const char *wait()
{
    return guarded([] { check(cudaDeviceSynchronize(), "product"); });
}

extern "C" const spmm_peer_calls spmm_peer_table;
const spmm_peer_calls spmm_peer_table = {PEER_NAME, prepare, run, wait, forget};

#endif
