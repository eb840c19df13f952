/* KERNEL: a function of one file that is always inlined, since arguments that are constants choose its code. */
#ifndef BASE_KERNEL_H
#define BASE_KERNEL_H

#define KERNEL static inline __attribute__((always_inline))

#endif
