/* A context of several devices is one of its first device, which has helpers. The operations that the devices share out
 * among themselves call sp_devices_run; all others are the first device's alone. */
#ifndef SPARSE_DEVICES_H
#define SPARSE_DEVICES_H

#include "core/internal.h"

/* More than any host has; the bound keeps a mistyped list from opening thousands of contexts. */
enum { SP_MOST_DEVICES = 64 };

struct sp_devices {
    int count;
    sp_context **contexts; /* one for each device, all on the CPU or all on CUDA; the first is the context itself */
    int threads;           /* CPU threads of the first while all work */
    int failed;            /* 1 + the number of the device that failed first, 0: none; atomic */
    volatile int halt;     /* set once a device has failed: the others stop as if interrupted */
};

/* The devices of a context: its own alone, if it has no helpers. */
int sp_devices_count(const sp_context *context);
sp_context *sp_devices_number(sp_context *context, int number);

/* Whether a name of sp_context_options.device stands for several devices. */
bool sp_devices_named(const char *device);

/* Makes `context` one of the devices named, which share its threads; each has the memory budget of the options for
 * itself. A failure leaves the context as it was; its sentence is that of no context. "cuda:all" on a host with one
 * device opens that one, in the usual way. */
sp_status sp_devices_open(sp_context *context, const sp_context_options *options);
/* Ends the helpers of the context, if it has any. */
void sp_devices_close(sp_context *context);

/* A part of an operation, on device `number` of the context. */
typedef sp_status (*sp_devices_work)(sp_context *device, int number, void *user);

/* Calls work for all devices at once, each in a thread, and returns when all have ended. If one fails the others stop
 * soon; the status and the sentence are those of the device that failed first. A single device needs no thread. */
sp_status sp_devices_run(sp_context *context, sp_devices_work work, void *user);

/* Cuts `rows` rows so that all devices of the context get about equally much work, which is weights[i] + 1 for row i:
 * device d gets rows cuts[d] to cuts[d + 1] - 1. */
void sp_devices_cut(const sp_context *context, const double *weights, int64_t rows, int64_t cuts[SP_MOST_DEVICES + 1]);

/* sp_spgemm_markov on all devices of the context, or in parts on a GPU with little memory (markov/devices.c); on one
 * device as a whole (spgemm/spgemm.c). Matrices and epilogue are checked; *info is zeroed. */
sp_status sp_devices_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b,
                                   const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                   sp_spgemm_info *info);
sp_status sp_device_spgemm_markov(sp_context *device, const sp_csr *a, const sp_csr *b,
                                  const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                  sp_spgemm_info *info);

/* sp_contract of a graph and labels in host memory on all devices of the context (contract/devices.c), and of any on
 * one of them (contract/contract.c). Operands and options are checked; *info is zeroed. */
sp_status sp_devices_contract(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                              const sp_contract_options *options, sp_csr *c, sp_contract_info *info);
sp_status sp_device_contract(sp_context *device, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                             int64_t groups, const sp_contract_options *options, sp_csr *c, sp_contract_info *info);

/* products[i] = Σ over k in A's row i of nnz(B's row k), in host memory (spgemm/spgemm.c). A and B lie anywhere. */
sp_status sp_count_products(sp_context *context, const sp_csr *a, const sp_csr *b, double *products);

#endif
