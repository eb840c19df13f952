/* Copies to shared memory in the background by Hopper's bulk copy engine, and the barriers that wait for them. */
#ifndef GNN_CUDA_COPIES_CUH
#define GNN_CUDA_COPIES_CUH

#include <stdint.h>

#if __CUDA_ARCH__ >= 900
#define HAS_COPIES
#endif

/* A barrier in shared memory: its phase ends when `count` threads have arrived, and what they announced is there. */
static __device__ __forceinline__ void make_barrier(uint64_t *barrier, int count)
{
#ifdef HAS_COPIES
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(barrier)),
                 "r"(count)
                 : "memory");
#endif
}

static __device__ __forceinline__ void arrive(uint64_t *barrier)
{
#ifdef HAS_COPIES
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"((unsigned)__cvta_generic_to_shared(barrier))
                 : "memory");
#endif
}

/* Arrives, and announces so many bytes. */
static __device__ __forceinline__ void announce(uint64_t *barrier, unsigned bytes)
{
#ifdef HAS_COPIES
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(barrier)),
                 "r"(bytes)
                 : "memory");
#endif
}

/* Until the phase of this parity has ended; that before the first counts as one of parity 1. */
static __device__ __forceinline__ void await(uint64_t *barrier, unsigned parity)
{
#ifdef HAS_COPIES
    unsigned ended;
    do
        asm volatile("{\n.reg .pred ended;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, ended;\n}"
                     : "=r"(ended)
                     : "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(parity)
                     : "memory");
    while (!ended);
#endif
}

/* Copies bytes, a multiple of 16 from and to places that are, which were announced at the barrier. */
static __device__ __forceinline__ void fetch(void *to, const void *from, unsigned bytes, uint64_t *barrier)
{
#ifdef HAS_COPIES
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes), "r"((unsigned)__cvta_generic_to_shared(barrier))
                 : "memory");
#endif
}

#endif
