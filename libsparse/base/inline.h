/* INLINE: marks a function in a header as usable in C and in host and device code of CUDA. */
#ifndef BASE_INLINE_H
#define BASE_INLINE_H

#ifdef __CUDACC__
#define INLINE static __host__ __device__ inline
#else
#define INLINE static inline
#endif

#endif
