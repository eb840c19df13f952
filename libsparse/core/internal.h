/* Shared by the files of libsparse: the context, the back-end table, checked size arithmetic. */
#ifndef SPARSE_INTERNAL_H
#define SPARSE_INTERNAL_H

#include "base/clock.h"
#include "base/try.h"
#include "base/value.h"
#include "sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One back end: the operations that exist for the CPU and for CUDA. Each has files of the same name in cpu/ and cuda/.
 * Matrices passed to these functions lie in the back end's space and are checked for shape and type. */
typedef struct sp_backend {
    sp_space space;
    /* The options of products have no transposes and are never NULL; a mask lies in the back end's space. The back end
     * decides where C lies, by the options and the free memory. */
    sp_status (*spgemm)(sp_context *, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options, sp_csr *c,
                        sp_spgemm_info *info);
    /* Finds the pattern of the product; *state gets data for the numeric phase, or NULL. */
    sp_status (*spgemm_symbolic)(sp_context *, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                                 sp_csr *pattern, void **state, sp_spgemm_info *info);
    /* Fills values into C, whose pattern exists, in either space. Products outside the pattern are ignored. */
    sp_status (*spgemm_numeric)(sp_context *, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                                void *state, sp_csr *c);
    void (*spgemm_forget)(sp_context *, void *state);
    sp_status (*spgemm_markov)(sp_context *, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue,
                               sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info);
    /* 1 / the length of each row, 0 for one without length. */
    sp_status (*inverse_lengths)(sp_context *, const sp_csr *a, double *factors);
    /* B is the transpose of the other rows. A's rows are multiplied by `factors` if these are not NULL; B has values.
     */
    sp_status (*similarity)(sp_context *, const sp_csr *a, const double *factors, const sp_csr *b,
                            const sp_similarity_options *options, sp_csr *c, sp_spgemm_info *info);
    /* G and the labels lie in the back end's space; options are never NULL. Labels given in host memory are checked
     * already; the back end checks labels given in device memory. */
    sp_status (*contract)(sp_context *, const sp_csr *g, const int32_t *labels, int64_t groups,
                          const sp_contract_options *options, sp_csr *c, sp_contract_info *info);
    /* Sums, for an S that is a pattern with at most one entry a column. For another S, *done is false and nothing is
     * made. */
    sp_status (*triple_product)(sp_context *, const sp_csr *s, const sp_csr *g, sp_csr *c, sp_spgemm_info *info,
                                bool *done);
    /* *state gets what the plan keeps beside A. A stays in the back end's space until spmm_forget. */
    sp_status (*spmm_prepare)(sp_context *, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                              void **state, sp_spmm_info *info);
    /* A has new values. */
    sp_status (*spmm_refresh)(sp_context *, const sp_csr *a, void *state);
    /* Y = alpha · reduce(A · X) + beta · Y, with checked shapes and types. `argument` may be NULL. Operands lie in the
     * back end's space. CUDA also accepts X and Y in host memory that do not fit the device, and streams them. */
    sp_status (*spmm)(sp_context *, const sp_csr *a, const sp_spmm_options *options, void *state, double alpha,
                      const sp_dense *x, double beta, sp_dense *y, int64_t *argument);
    void (*spmm_forget)(sp_context *, void *state);
    /* For batches and heads: A.nnz values for each, one after the other. */
    sp_status (*sddmm)(sp_context *, const sp_csr *a, const sp_dense *x, const sp_dense *y, void *values);
    sp_status (*edge_softmax)(sp_context *, const sp_csr *a, int64_t heads, void *values);
    sp_status (*edge_softmax_backward)(sp_context *, const sp_csr *a, int64_t heads, const void *softmax,
                                       void *gradient);
    /* MaxK; shapes and types are checked. The products get the plan's options (sums or means) and its A. */
    sp_status (*maxk)(sp_context *, const sp_dense *x, sp_cbsr *kept);
    sp_status (*maxk_expand)(sp_context *, const sp_cbsr *kept, sp_dense *x);
    sp_status (*maxk_spmm)(sp_context *, const sp_csr *a, const sp_spmm_options *options, void *state, double alpha,
                           const sp_cbsr *kept, double beta, sp_dense *y);
    sp_status (*maxk_spmm_backward)(sp_context *, const sp_csr *a, const sp_spmm_options *options, void *state,
                                    const sp_dense *gradient, sp_cbsr *kept);
    /* Operations between products. Matrices and arrays, also the results, lie in the back end's space. Shapes, types
     * and indices are checked. */
    sp_status (*add)(sp_context *, double alpha, const sp_csr *a, double beta, const sp_csr *b, sp_csr *c);
    sp_status (*scale)(sp_context *, const sp_csr *a, const double *row_factors, const double *col_factors,
                       void *values); /* values: of A's entries, scaled; may be A's own array */
    sp_status (*extract)(sp_context *, const sp_csr *a, const int32_t *rows, int64_t row_count, const int32_t *cols,
                         int64_t col_count, sp_csr *b); /* without a list the count is A's */
    sp_status (*find_outside)(sp_context *, const int32_t *list, int64_t count, int64_t bound,
                              int64_t *place); /* place: of the first element that is not one of 0 .. bound - 1; -1 if
                                                  there is none */
    sp_status (*top_k)(sp_context *, const sp_csr *a, int64_t k, sp_csr *b);
    sp_status (*reduce_rows)(sp_context *, const sp_csr *a, sp_combine combine, double *result);
    sp_status (*degree_order)(sp_context *, const sp_csr *a, int32_t *order);
    sp_status (*sample_rows)(sp_context *, const sp_csr *a, const int32_t *rows, int64_t row_count,
                             const int64_t *offsets, uint64_t seed, int64_t *places);
    sp_status (*hadamard)(sp_context *, const sp_csr *a, const sp_csr *b, sp_csr *c);
    sp_status (*select)(sp_context *, const sp_csr *a, sp_select select, double bound,
                        sp_csr *b); /* the bound of a diagonal is a whole number within 2^31 of 0 */
    /* spmm for several heads of `head_width` columns, side by side. a->values has A.nnz for each, one head after the
     * other; entry k's are number places[k] of these, if places are given, else number k. *done is false, and nothing
     * is written, if it takes a product a head; without the function it always does. */
    sp_status (*spmm_heads)(sp_context *, const sp_csr *a, const sp_spmm_options *options, void *state,
                            const int64_t *places, int64_t head_width, double alpha, const sp_dense *x, double beta,
                            sp_dense *y, bool *done);
    /* NULL, like all to `turn`, for host memory, whose code is in core. */
    sp_status (*transpose)(sp_context *, const sp_csr *a, const sp_csr *b); /* fills B's arrays */
    sp_status (*from_coo)(sp_context *, const sp_coo *coo, sp_combine combine, bool symmetric, sp_csr *matrix);
    sp_status (*widen)(sp_context *, int64_t count, const int32_t *from, int64_t *to);
    sp_status (*is_sound)(sp_context *, const sp_csr *matrix, bool *sound); /* whether sp_csr_check would pass it */
    sp_status (*turn)(sp_context *, const sp_dense *from, sp_dense *to); /* copies to the other layout */
    /* In the back end's space. number: to[k] = k. gather: to[k] = from[index[k]], for elements of `size` bytes (4 or
     * 8); an index of -1 gives -1 (only with 8 bytes). `to` may be `index`. */
    sp_status (*number)(sp_context *, int64_t count, int64_t *to);
    sp_status (*gather)(sp_context *, const int64_t *index, int64_t count, const void *from, size_t size, void *to);
    sp_status (*allocate)(sp_context *, size_t bytes, void **pointer); /* in the back end's space */
    void (*release)(sp_context *, void *pointer);
    sp_status (*available)(sp_context *, size_t *bytes); /* free for `allocate`; NULL: not known */
    sp_status (*copy)(sp_context *, void *to, sp_space to_space, const void *from, sp_space from_space, size_t bytes);
    /* Copies rows of `bytes` bytes whose beginnings are `to_pitch` and `from_pitch` bytes apart. NULL: `copy` is called
     * for each row. */
    sp_status (*copy_rows)(sp_context *, void *to, size_t to_pitch, sp_space to_space, const void *from,
                           size_t from_pitch, sp_space from_space, size_t bytes, int64_t rows);
    void *(*stream)(const sp_context *); /* NULL: no streams */
    sp_status (*enter)(sp_context *);    /* NULL, like leave: no device is ever current */
    void (*leave)(sp_context *);
    /* NULL stands for the context's own; no function: no streams */
    sp_status (*set_stream)(sp_context *, void *stream);
    sp_status (*trim)(sp_context *);                     /* NULL: nothing is kept */
    sp_status (*finish)(sp_context *);   /* waits for the work that is queued; NULL: none ever is */
    void (*destroy)(sp_context *);                                    /* releases context->device_state */
} sp_backend;

/* The operations of the table that both back ends have: the CPU as sp_cpu_NAME, CUDA as sp_cuda_NAME. */
#define SP_OPERATIONS(OF) \
    OF(spgemm) OF(spgemm_symbolic) OF(spgemm_numeric) OF(spgemm_forget) OF(spgemm_markov) OF(inverse_lengths) \
    OF(similarity) OF(contract) OF(triple_product) OF(spmm_prepare) OF(spmm_refresh) OF(spmm) OF(spmm_forget) \
    OF(sddmm) OF(edge_softmax) OF(edge_softmax_backward) OF(maxk) OF(maxk_expand) OF(maxk_spmm) \
    OF(maxk_spmm_backward) OF(add) OF(scale) OF(extract) OF(find_outside) OF(top_k) OF(reduce_rows) OF(degree_order) \
    OF(sample_rows) OF(hadamard) OF(select)

extern const sp_backend sp_backend_cpu;

/* device/context.cu, or core/no_cuda.c in a build without nvcc: opens device `index` (-1: the first usable one) and
 * fills backend, device_state and device_name. SP_ERROR_NO_DEVICE if there is none. */
sp_status sp_cuda_open(sp_context *context, int index);
/* The same: lets `other` read and write the memory of `context`, another device, over their own link where they have
 * one. Copies between the two work without it, too, by way of host memory. */
sp_status sp_cuda_link(sp_context *context, sp_context *other);
/* core/context.c: opens the device with that name, "cpu", "cuda", "cuda:N", or "auto" or NULL for a GPU if there is
 * one.
 * The sentence of a failure is that of no context. */
sp_status sp_device_open(sp_context *context, const char *device);
typedef struct sp_devices sp_devices; /* core/devices.h */

struct sp_context {
    const sp_backend *backend;
    sp_allocator allocator;
    sp_device_allocator device_allocator; /* no functions: a pool of its own */
    int64_t holders; /* the number of holds: the caller's, each plan's, and those of sp_context_retain; atomic */
    int threads;
    size_t memory_budget;
    const volatile int *interrupt;
    const volatile int *halt; /* the same for a device of several: set when another of them fails; NULL otherwise */
    void *device_state; /* the struct of the CUDA back end; NULL on the CPU */
    sp_devices *devices; /* NULL unless the context is one of several devices */
    char device_name[128];
    char error[512];
    struct sp_context *next, *previous; /* of all living contexts (core/fork.c) */
};

/* Adds a new context to the list of those that a forked child must change, and takes one off it. */
void sp_fork_enter(sp_context *context);
void sp_fork_leave(sp_context *context);

/* The flag is set by a signal handler or by another thread. */
static inline bool sp_is_set(const volatile int *flag) { return flag && __atomic_load_n(flag, __ATOMIC_RELAXED); }

static inline bool sp_interrupted(const sp_context *context)
{
    return sp_is_set(context->interrupt) || sp_is_set(context->halt);
}

/* Stops a long loop: its threads look at the interrupt flag about every millisecond of work. Once one of them has seen
 * it set, all stop, and the loop fails even if the flag is cleared meanwhile. */
typedef struct sp_watch {
    sp_context *context;
    bool stopped;
} sp_watch;

/* Whether the loop must end. For loops whose steps are rows or chunks. */
static inline bool sp_stops(sp_watch *watch)
{
    if (sp_interrupted(watch->context)) __atomic_store_n(&watch->stopped, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&watch->stopped, __ATOMIC_RELAXED);
}

/* The same for steps of a few nanoseconds: looks at every 2^16th step. */
enum { SP_STRIDE = 1 << 16 };
static inline bool sp_stops_at(sp_watch *watch, int64_t step) { return step % SP_STRIDE == 0 && sp_stops(watch); }

/* The end of the stretch of at most SP_STRIDE steps that begins with `first`. */
static inline int64_t sp_stride_end(int64_t first, int64_t count)
{
    return count - first < SP_STRIDE ? count : first + SP_STRIDE;
}

/* After the loop: the failure, if it was stopped. */
static inline sp_status sp_watched(const sp_watch *watch)
{
    return watch->stopped ? sp_fail(watch->context, SP_ERROR_INTERRUPTED, "interrupted") : SP_OK;
}

/* The number of threads for a loop of `steps` steps of a few nanoseconds. Waking a thread costs microseconds, and on a
 * busy machine waiting for one costs a time slice, so a thread should have at least a tenth of a millisecond of
 * work. */
static inline int sp_threads_for(const sp_context *context, int64_t steps)
{
    const int64_t useful = 1 + steps / 50000;
    return useful < context->threads ? (int)useful : context->threads;
}

/* a * b into *result; false when it does not fit. */
static inline bool sp_mul_size(size_t a, size_t b, size_t *result) { return !__builtin_mul_overflow(a, b, result); }

static inline size_t sp_value_size(sp_value_type type) { return type == SP_F32 ? sizeof(float) : sizeof(double); }

/* The memory of a matrix. */
static inline int64_t sp_csr_bytes(const sp_csr *m)
{
    return 8 * (m->rows + 1) + m->nnz * (4 + (m->values ? (int64_t)sp_value_size(m->value_type) : 0));
}

static inline size_t sp_dense_size(sp_dense_type type)
{
    return type == SP_DENSE_F64 ? 8 : type == SP_DENSE_F32 ? 4 : 2;
}

/* Outcomes of comparing an entry with the bound; an entry is kept if its outcome is among those of the selection. What
 * is compared: the column minus the row, the value, or the absolute value. */
enum { SP_LESS = 1, SP_EQUAL = 2, SP_GREATER = 4, SP_UNORDERED = 8 };

static inline unsigned sp_select_outcomes(sp_select select)
{
    switch (select) {
    case SP_SELECT_LT: return SP_LESS;
    case SP_SELECT_LE:
    case SP_SELECT_LOWER: return SP_LESS | SP_EQUAL;
    case SP_SELECT_EQ:
    case SP_SELECT_DIAGONAL: return SP_EQUAL;
    case SP_SELECT_OFF_DIAGONAL: return SP_LESS | SP_GREATER;
    case SP_SELECT_NE: return SP_LESS | SP_GREATER | SP_UNORDERED;
    case SP_SELECT_GE:
    case SP_SELECT_ABS_GE:
    case SP_SELECT_UPPER: return SP_EQUAL | SP_GREATER;
    case SP_SELECT_GT: break;
    }
    return SP_GREATER;
}

/* For messages. */
static inline const char *sp_value_type_name(sp_value_type type)
{
    return type == SP_F32 ? "f32" : type == SP_F64 ? "f64" : "unknown";
}

static inline const char *sp_dense_type_name(sp_dense_type type)
{
    switch (type) {
    case SP_DENSE_F32: return "f32";
    case SP_DENSE_F64: return "f64";
    case SP_DENSE_F16: return "f16";
    case SP_DENSE_BF16: return "bf16";
    }
    return "unknown";
}

/* Checks beside those of sparse.h (require.c): that a space exists and the context can reach it; that arrays (which may
 * be NULL) or dense matrices do not overlap. */
sp_status sp_require_space(sp_context *context, const char *call, const char *name, sp_space space);
sp_status sp_require_apart(sp_context *context, const char *call, const char *name, const void *array, size_t bytes,
                           const char *other_name, const void *other, size_t other_bytes);
sp_status sp_require_dense_apart(sp_context *context, const char *call, const char *name, const sp_dense *m,
                                 const char *other_name, const sp_dense *other);
sp_status sp_require_csr_apart(sp_context *context, const char *call, const char *name, const sp_csr *m,
                               const char *other_name, const sp_csr *other);
/* That a matrix has arrays for a result to be written to, with the shape, the type and, or not, values of `wanted`.
 * What the arrays hold is not read, and m->nnz, their room, is not compared. */
sp_status sp_require_target(sp_context *context, const char *call, const char *name, const sp_csr *m,
                            const sp_csr *wanted);

/* As sp_csr_create, but without values if `like` has none. */
sp_status sp_csr_create_like(sp_context *context, const sp_csr *like, int64_t rows, int64_t cols, int64_t nnz,
                             sp_space space, sp_csr *matrix);

/* As sp_require_dense, also for matrices by columns, and for batches. */
sp_status sp_require_any_dense(sp_context *context, const char *call, const char *name, const sp_dense *m);
/* A matrix of a batch. */
static inline sp_dense sp_dense_of(const sp_dense *m, int64_t number)
{
    sp_dense one = *m;
    if (one.values) one.values = (char *)m->values + (size_t)(number * m->batch_stride) * sp_dense_size(m->type);
    one.batch = one.batch_stride = 0;
    return one;
}
/* The number of matrices of a batch; of lines (rows or columns) of each; of values of a line; and the bytes from the
 * first value to the last. */
static inline int64_t sp_dense_batch(const sp_dense *m) { return m->batch > 0 ? m->batch : 1; }
static inline int64_t sp_dense_lines(const sp_dense *m) { return m->layout == SP_ROW_MAJOR ? m->rows : m->cols; }
static inline int64_t sp_dense_length(const sp_dense *m) { return m->layout == SP_ROW_MAJOR ? m->cols : m->rows; }
static inline size_t sp_dense_bytes(const sp_dense *m)
{
    if (m->rows == 0 || m->cols == 0) return 0;
    return (size_t)((sp_dense_batch(m) - 1) * m->batch_stride + (sp_dense_lines(m) - 1) * m->stride +
                    sp_dense_length(m)) * sp_dense_size(m->type);
}

/* coo.c: the failure of a triple outside the matrix. */
sp_status sp_coo_outside(sp_context *context, const sp_coo *coo, int64_t triple, int64_t row, int64_t col);

/* Copies between two dense matrices of the same shape and type, with any strides, layouts and spaces. */
sp_status sp_dense_move(sp_context *context, const sp_dense *from, sp_dense *to);

#ifdef __cplusplus
}
#endif
#endif
