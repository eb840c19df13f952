/* Hopper's instructions: copies to shared memory in the background by the bulk copy engine with the barriers that wait
 * for them, and products of matrices by a warpgroup (wgmma), which only code for that device alone has (sm_90a). On
 * other devices they do nothing and are not called. */
#ifndef GNN_CUDA_HOPPER_CUH
#define GNN_CUDA_HOPPER_CUH

#include <cuda_fp16.h>
#include <stdint.h>

/* ---- copies ------------------------------------------------------------------------------------------------ */

#if __CUDA_ARCH__ >= 900
#define HAS_COPIES
#endif

/* A barrier in shared memory: a phase ends when `count` threads have arrived and the announced bytes have too. */
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

/* Arrives, and announces `bytes` bytes. */
static __device__ __forceinline__ void announce(uint64_t *barrier, unsigned bytes)
{
#ifdef HAS_COPIES
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(barrier)),
                 "r"(bytes)
                 : "memory");
#endif
}

/* Waits until the phase of this parity has ended. The phase before the first has parity 1. */
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

/* Copies bytes that were announced at the barrier. Count and addresses are multiples of 16. */
static __device__ __forceinline__ void fetch(void *to, const void *from, unsigned bytes, uint64_t *barrier)
{
#ifdef HAS_COPIES
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes), "r"((unsigned)__cvta_generic_to_shared(barrier))
                 : "memory");
#endif
}

/* ---- products of matrices ---------------------------------------------------------------------------------- */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER
#endif

/* Raise or lower the number of registers of all threads of a warpgroup. */
template <int COUNT> static __device__ __forceinline__ void take_registers()
{
#ifdef HOPPER
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}
template <int COUNT> static __device__ __forceinline__ void leave_registers()
{
#ifdef HOPPER
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}

/* Comes before the first product after other instructions have used its registers. */
static __device__ __forceinline__ void begin_products()
{
#ifdef HOPPER
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void end_products()
{
#ifdef HOPPER
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void wait_products()
{
#ifdef HOPPER
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
}

/* Tells the compiler that the tensor cores use the register up to here. */
static __device__ __forceinline__ void hold(float &x)
{
#ifdef HOPPER
    asm volatile("" : "+f"(x)::"memory");
#endif
}
static __device__ __forceinline__ void hold(uint32_t &x)
{
#ifdef HOPPER
    asm volatile("" : "+r"(x)::"memory");
#endif
}

/* Describes 8 x COLS of B at `b` in shared memory to the tensor cores: of eight columns each 1024 bytes, swizzled. */
static __device__ __forceinline__ uint64_t describe(const __half *b)
{
    const uint64_t place = (uint64_t)__cvta_generic_to_shared(b), inner = 1, outer = 1024 >> 4, swizzle_128 = 1;
    return place >> 4 | inner << 16 | outer << 32 | swizzle_128 << 62;
}

/* sums = a · b, or with `keep` sums += a · b, 64 x COLS x 16 a warpgroup, in the background; COLS is twice a thread's
 * number of sums. Warp w of the group holds rows 16w to 16w + 15. With g = lane / 4 and t = lane % 4, and pairs of
 * the 16 inner numbers: a holds the pairs (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) of its rows; sums[4j ..] are
 * (g, 8j + 2t), (g, 8j + 2t + 1), (g + 8, 8j + 2t), (g + 8, 8j + 2t + 1). */
static __device__ __forceinline__ void multiply_add(float (&sums)[8], const uint32_t (&a)[4], uint64_t b,
                                                    bool keep)
{
#ifdef HOPPER
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %13, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7}, "
                 "{%8, %9, %10, %11}, %12, keep, 1, 1, 0;\n}"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
                   "+f"(sums[6]), "+f"(sums[7])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)keep)
                 : "memory");
#endif
}
static __device__ __forceinline__ void multiply_add(float (&sums)[32], const uint32_t (&a)[4], uint64_t b,
                                                    bool keep)
{
#ifdef HOPPER
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, keep, 1, 1, 0;\n}"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
                   "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
                   "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
                   "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
                   "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]),
                   "+f"(sums[30]), "+f"(sums[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)keep)
                 : "memory");
#endif
}
static __device__ __forceinline__ void multiply_add(float (&sums)[64], const uint32_t (&a)[4], uint64_t b,
                                                    bool keep)
{
#ifdef HOPPER
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, keep, 1, 1, 0;\n}"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
                   "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
                   "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
                   "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
                   "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]),
                   "+f"(sums[30]), "+f"(sums[31]), "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]),
                   "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]), "+f"(sums[40]), "+f"(sums[41]),
                   "+f"(sums[42]), "+f"(sums[43]), "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47]),
                   "+f"(sums[48]), "+f"(sums[49]), "+f"(sums[50]), "+f"(sums[51]), "+f"(sums[52]), "+f"(sums[53]),
                   "+f"(sums[54]), "+f"(sums[55]), "+f"(sums[56]), "+f"(sums[57]), "+f"(sums[58]), "+f"(sums[59]),
                   "+f"(sums[60]), "+f"(sums[61]), "+f"(sums[62]), "+f"(sums[63])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)keep)
                 : "memory");
#endif
}

#endif
