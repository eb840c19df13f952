/* Forced into the sources of a peer (nvcc -include): its device memory and streams come from caches that live as long
 * as the process, as those of this toolkit do. Blocks of up to a quarter more than asked for are used again. Nothing
 * waits for the device when memory is freed: each peer waits between its last use of a block and the next allocation.
 */
#ifndef BENCH_PEERS_POOL_H
#define BENCH_PEERS_POOL_H

#include <cuda_runtime.h>

#include <map>
#include <unordered_map>
#include <vector>

struct peer_pool {
    std::multimap<size_t, void *> free_blocks;
    std::unordered_map<void *, size_t> used;
    std::vector<cudaStream_t> streams;
    size_t in_use, most_in_use;
};
extern peer_pool the_pool; /* peer.cuh */

template <typename T> static inline cudaError_t pool_malloc(T **pointer, size_t bytes)
{
    const size_t wanted = (bytes / 512 + 1) * 512;
    auto found = the_pool.free_blocks.lower_bound(wanted);
    void *block = nullptr;
    size_t size = wanted;
    cudaError_t error = cudaSuccess;
    if (found != the_pool.free_blocks.end() && found->first <= wanted + wanted / 4) {
        size = found->first;
        block = found->second;
        the_pool.free_blocks.erase(found);
    } else {
        error = cudaMalloc(&block, size);
    }
    *pointer = (T *)block;
    if (error != cudaSuccess) return error;
    the_pool.used[block] = size;
    the_pool.in_use += size;
    if (the_pool.in_use > the_pool.most_in_use) the_pool.most_in_use = the_pool.in_use;
    return cudaSuccess;
}

static inline cudaError_t pool_free(void *block)
{
    const auto found = the_pool.used.find(block);
    if (found == the_pool.used.end()) return block ? cudaErrorInvalidValue : cudaSuccess;
    the_pool.in_use -= found->second;
    the_pool.free_blocks.emplace(found->second, block);
    the_pool.used.erase(found);
    return cudaSuccess;
}

static inline cudaError_t pool_take_stream(cudaStream_t *stream)
{
    if (the_pool.streams.empty()) return cudaStreamCreate(stream);
    *stream = the_pool.streams.back();
    the_pool.streams.pop_back();
    return cudaSuccess;
}

static inline cudaError_t pool_leave_stream(cudaStream_t stream)
{
    the_pool.streams.push_back(stream);
    return cudaSuccess;
}

#define cudaMalloc(pointer, bytes) pool_malloc(pointer, bytes)
#define cudaFree(block) pool_free((void *)(block))
#define cudaStreamCreate(stream) pool_take_stream(stream)
#define cudaStreamDestroy(stream) pool_leave_stream(stream)

#endif
