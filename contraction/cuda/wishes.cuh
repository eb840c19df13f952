/* The best neighbour of each node, by rating and then by bits of the edge, which have no ties: whatever the order in
 * which neighbours are looked at. */
#ifndef CONTRACTION_WISHES_CUH
#define CONTRACTION_WISHES_CUH

#include "rounds.cuh"

struct wish_candidate {
    double rating; /* 0: none */
    uint64_t bits;
    int32_t node;

    __device__ void take(wish_candidate other)
    {
        const bool better = other.rating != rating ? other.rating > rating : other.rating > 0 && other.bits > bits;
        if (better) *this = other;
    }
    __device__ wish_candidate from_lane(int step, unsigned mask) const
    {
        return {__shfl_xor_sync(mask, rating, step), __shfl_xor_sync(mask, bits, step),
                __shfl_xor_sync(mask, node, step)};
    }
};

#endif
