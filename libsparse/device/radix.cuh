/* Sorting of arrays by CUB's radix sort, stably, with scratch from the context. Header-only, as check.cuh. */
#ifndef DEVICE_RADIX_CUH
#define DEVICE_RADIX_CUH

#include <cub/device/device_radix_sort.cuh>

#include "device/common.cuh"

/* The bits in which numbers below `count` differ, at least one: what a sort has to look at. */
static inline int radix_bits(int64_t count)
{
    int bits = 1;
    while ((int64_t)1 << bits < count) bits++;
    return bits;
}

/* to = from in the ascending or descending order of the lowest `bits` of the keys, which `sorted` receives. */
template <bool DESCENDING = false, typename Key, typename Value>
static sp_status radix_sort_pairs(sp_context *context, const Key *keys, Key *sorted, const Value *from, Value *to,
                                  int64_t count, int bits)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const auto sort = [&](void *scratch, size_t &bytes) {
        if constexpr (DESCENDING)
            return cub::DeviceRadixSort::SortPairsDescending(scratch, bytes, keys, sorted, from, to, count, 0, bits,
                                                             stream);
        else return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted, from, to, count, 0, bits, stream);
    };
    device_array<char> scratch;
    size_t bytes = 0;
    CUDA_CHECK(sort(nullptr, bytes));
    CHECK(scratch.allocate(context, (int64_t)bytes));
    CUDA_CHECK(sort(scratch.data, bytes));
    return SP_OK;
}

/* The same of keys alone. */
template <typename Key>
static sp_status radix_sort_keys(sp_context *context, const Key *keys, Key *sorted, int64_t count, int bits)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<char> scratch;
    size_t bytes = 0;
    CUDA_CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, keys, sorted, count, 0, bits, stream));
    CHECK(scratch.allocate(context, (int64_t)bytes));
    CUDA_CHECK(cub::DeviceRadixSort::SortKeys(scratch.data, bytes, keys, sorted, count, 0, bits, stream));
    return SP_OK;
}

#endif
