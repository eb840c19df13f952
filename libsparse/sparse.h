/* libsparse: sparse matrices and products for graph analytics, on the CPU (OpenMP) and on CUDA GPUs.
 *
 * This header is the whole public interface and its manual. Conventions:
 *
 * Errors. Every call that can fail returns an sp_status. On failure sp_last_error(context) holds one sentence that says
 *   what is wrong. A call without a context leaves its sentence in sp_last_error(NULL). The library never prints and
 *   never exits.
 * Checks. SP_ERROR_ARGUMENT, with a sentence that names the argument, is the answer to: a NULL pointer that is not
 *   documented as optional, a struct that contradicts itself, an enum value that does not exist, a negative size, and a
 *   matrix in a space that the context cannot reach. These checks take O(1) and do not read the entries. If column
 *   indices are out of range or do not ascend, the behaviour is undefined; sp_csr_check reads and checks all entries.
 * Outputs. Output structs, handles and numbers are written only on success. There are two exceptions: calls named
 *   sp_*_create, and sp_alloc and sp_calloc, leave NULL or zeros on failure. Arrays of the caller that a call fills or
 *   changes (Y, `values`, `result`) are unspecified after a failure, except after SP_ERROR_ARGUMENT and
 *   SP_ERROR_UNSUPPORTED. An output struct must not be one of the inputs (SP_ERROR_ARGUMENT), unless the call works in
 *   place. The arrays that a call fills must not overlap those that it reads.
 * Ownership. Matrices are plain structs. Their arrays belong to whoever holds the struct. Arrays that the library makes
 *   come from the context's allocator; release them by sp_csr_free or sp_free with the same context, before it is
 *   destroyed. Calls that free accept NULL and zeroed structs. Output structs may be uninitialised or copies: what they
 *   held is neither read nor released. A plan holds its context: it may be used and freed after sp_context_destroy.
 * Completion. On the CPU every call returns when its work is done. On CUDA a call has finished when it returns: its
 *   results are there for every stream and thread. Only these return when their work is queued in the context's stream,
 *   if all that they read and write lies on the device: the SpMM products, sp_spmm_plan_set_values, the MaxK calls,
 *   sp_csr_sample_rows, sp_widen_offsets, copies within the device, SpGEMM plans with beta or or-and, and calls that
 *   only allocate or free. A capture only queues what it takes. Every later call of the context runs after it.
 * Threads. Two threads must not use a context, or anything made from it, at the same time. Different contexts are
 *   independent. There is an exception for objects that a garbage collector frees: host memory and host matrices
 *   (sp_free, sp_csr_free, sp_dense_free), holds (sp_context_retain, sp_context_destroy) and the plans of a CPU context
 *   may be released by any thread at any time, if the allocator can be called by several threads, as malloc can. The
 *   only state outside contexts is the sentence of sp_last_error(NULL), one for each thread.
 * Fork. The threads of OpenMP do not survive a fork. If a process with a context and several threads forks, the child's
 *   contexts have one thread, also those that it creates. CUDA contexts cannot be used in a forked child.
 * Options. Options that are all zero are the defaults: pass {0}, or NULL if the call allows it.
 * Sizes are int64_t. Dimensions are below 2^31; only memory limits the number of nonzeros. O(...) is a call's work.
 * "The space where the context computes" is host memory for a CPU context and device memory for a CUDA context.
 */
#ifndef SPARSE_H
#define SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define SP_VERSION_MAJOR 0
#define SP_VERSION_MINOR 1
#define SP_VERSION_PATCH 0
#define SP_QUOTE_(x) #x
#define SP_JOIN_(major, minor, patch) SP_QUOTE_(major) "." SP_QUOTE_(minor) "." SP_QUOTE_(patch)
#define SP_VERSION SP_JOIN_(SP_VERSION_MAJOR, SP_VERSION_MINOR, SP_VERSION_PATCH) /* "0.1.0" */

/* SP_VERSION of the library at run time: a shared library may be another version than this header. */
const char *sp_version(void);

/* Counts the changes of structs, enums and prototypes in the public headers and io.h that a compiled caller notices.
 * sp_abi returns the library's: a caller that was made from headers with another SP_ABI must not call it. */
#define SP_ABI 13
int sp_abi(void);

/* ---- status ------------------------------------------------------------------------------------------- */

typedef enum sp_status {
    SP_OK = 0,
    SP_ERROR_ARGUMENT,      /* an argument breaks its documented condition */
    SP_ERROR_MATRIX,        /* a matrix is malformed: offsets, indices out of range, unsorted, duplicates */
    SP_ERROR_NOT_FINITE,    /* NaN or infinity where a number is needed */
    SP_ERROR_OVERFLOW,      /* a size does not fit its type */
    SP_ERROR_HOST_MEMORY,   /* the allocator returned NULL */
    SP_ERROR_DEVICE_MEMORY, /* the device, or the memory budget, cannot hold the data */
    SP_ERROR_NO_DEVICE,     /* the requested device does not exist, or this build has no CUDA */
    SP_ERROR_DEVICE,        /* a CUDA call failed for another reason */
    SP_ERROR_UNSUPPORTED,   /* a valid request that this back end does not offer */
    SP_ERROR_INTERRUPTED    /* the context's interrupt flag was set */
} sp_status;

/* A constant English phrase for a status, never NULL. */
const char *sp_status_string(sp_status status);

/* ---- context ------------------------------------------------------------------------------------------ */

typedef struct sp_context sp_context;
struct sp_csr;
struct sp_dense;

/* The source of all host memory of the library. `allocate` returns NULL on failure. `release` accepts NULL. `resize`
 * works like realloc; it may be NULL, and then an array that grows takes its memory twice while it is copied. */
typedef struct sp_allocator {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *pointer);
    void *user;
    void *(*resize)(void *user, void *pointer, size_t bytes);
} sp_allocator;

/* A source of device memory, such as the pool of torch or RMM. `allocate` returns memory of CUDA device `device`,
 * aligned to 256 bytes, for later work in `stream` (a cudaStream_t), or NULL. `release` gets it back when the work that
 * uses it is queued in `stream`, which sp_context_set_stream may have changed. The device is current during both. */
typedef struct sp_device_allocator {
    void *(*allocate)(void *user, size_t bytes, int device, void *stream);
    void (*release)(void *user, void *pointer, size_t bytes, int device, void *stream);
    void *user;
} sp_device_allocator;

typedef struct sp_context_options {
    const char *device;            /* "cpu", "cuda", "cuda:N" or "auto" (CUDA if there is one); NULL: "auto". Or several
                                      devices of one kind, see below: "cuda:0,cuda:1", "cuda:all", "cpu,cpu" */
    int threads;                   /* CPU threads; 0: all that OpenMP offers (one after a fork, see above) */
    size_t memory_budget; /* CUDA: bytes of memory that the context may hold at once on a device, with its own arrays,
                             the caller's (sp_array_create) and plans; 0: all free memory of the device. A call whose
                             description says so works in parts to keep to the budget; others fail with
                             SP_ERROR_DEVICE_MEMORY. Calls on the CPU ignore the budget, except sp_spgemm_top_k */
    const sp_allocator *allocator; /* NULL: malloc and free. Copied. */
    const sp_device_allocator *device_allocator; /* CUDA: for working memory and results. Copied. NULL: a pool of the
                                                    context's own. Without a budget, what the driver has free counts as
                                                    the room that is left */
    const volatile int *interrupt; /* not NULL: a long call ends with SP_ERROR_INTERRUPTED when *interrupt is nonzero,
                                      on the CPU after a row or about 0.1 s, on CUDA when the queued work is done.
                                      Calls that only allocate, copy or free run to their end */
} sp_context_options;

/* A context of several devices is one of the first, with helpers: sp_spgemm_markov and sp_contract share rows among
 * all, and other calls are the first device's alone. In a shared call each device has a thread, its part of the CPU
 * threads, and the whole memory budget for itself. Results have the bits of one device of that kind. Allocators are
 * called by several threads. "cuda:all" is a usual CUDA context on a host with one device. A device may repeat.
 *
 * Creates a context. `options` may be NULL. On failure *context is NULL and sp_last_error(NULL) says why. "auto" uses
 * the CPU if there is no usable GPU. Creating a CUDA context takes about 0.2 s, so keep it. */
sp_status sp_context_create(const sp_context_options *options, sp_context **context);
/* Releases the caller's hold on the context. The context ends when no plan and no sp_context_retain holds it. Until
 * then the objects that its options point to (`interrupt`, the allocator's `user`) must stay valid. NULL is ignored. */
void sp_context_destroy(sp_context *context);
/* The number of CUDA devices of the host; 0 without a driver, and in a build without CUDA. */
int sp_cuda_count(void);
/* Adds a hold, which one more sp_context_destroy releases. For handles of modules built on the library. */
void sp_context_retain(sp_context *context);

/* "cpu", "cuda:N NAME", "cpu,cpu" or "cuda:N,cuda:M NAME" (of the first); "" for NULL. Valid as long as the context. */
const char *sp_context_device(const sp_context *context);
/* Whether the context computes on GPUs; false for NULL. */
bool sp_context_is_cuda(const sp_context *context);
/* The number of CPU threads; 0 for NULL. */
int sp_context_threads(const sp_context *context);
/* Whether the interrupt flag is set. For long loops in modules built on the library. `context` must not be NULL. */
bool sp_context_interrupted(const sp_context *context);

/* The sentence of the last failed call on this context, "" if there was none. Valid until the next call with the
 * context. For NULL: the sentence of this thread's last failed call without a context. */
const char *sp_last_error(const sp_context *context);

/* For modules built on the library: records a sentence (printf form; cut after 511 bytes) and returns `status`. */
sp_status sp_fail(sp_context *context, sp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The library's own checks of arguments, for modules built on it. A failure is SP_ERROR_ARGUMENT with a sentence such
 * as "sp_spgemm: C is NULL", where `call` is the name of the function (__func__) and `name` that of the argument.
 * sp_require: neither the context nor the argument is NULL. sp_require_csr, sp_require_dense: also, the context can
 * reach it, and the struct does not contradict itself. sp_require_output: it is neither NULL nor the input. O(1). */
sp_status sp_require(sp_context *context, const char *call, const char *name, const void *argument);
sp_status sp_require_csr(sp_context *context, const char *call, const char *name, const struct sp_csr *matrix);
sp_status sp_require_dense(sp_context *context, const char *call, const char *name, const struct sp_dense *matrix);
sp_status sp_require_output(sp_context *context, const char *call, const char *name, const void *output,
                            const char *input_name, const void *input);

/* Host memory from the context's allocator: `count` elements of `size` bytes, uninitialised (sp_alloc) or zeroed
 * (sp_calloc). The product is checked. On failure (SP_ERROR_ARGUMENT, SP_ERROR_OVERFLOW, SP_ERROR_HOST_MEMORY)
 * *pointer is NULL. A count of 0 yields a valid pointer. The caller releases it by sp_free. */
sp_status sp_alloc(sp_context *context, int64_t count, size_t size, void **pointer);
sp_status sp_calloc(sp_context *context, int64_t count, size_t size, void **pointer);
/* Resizes *pointer, which holds `used` elements, to `count`; from NULL as sp_alloc. After a failure it is as before. */
sp_status sp_grow(sp_context *context, int64_t used, int64_t count, size_t size, void **pointer);
/* Releases memory of sp_alloc, sp_calloc or sp_grow. NULL is ignored. */
void sp_free(sp_context *context, void *pointer);

typedef enum sp_space { SP_HOST, SP_DEVICE } sp_space;

/* An array of `count` elements of `size` bytes in either space, uninitialised. A count of 0 yields a valid pointer.
 * Device arrays come from the context's pool and need a CUDA context. On failure *array is NULL. */
sp_status sp_array_create(sp_context *context, int64_t count, size_t size, sp_space space, void **array);
/* Releases an array of sp_array_create, in the space where it was created. NULL is ignored. */
void sp_array_free(sp_context *context, sp_space space, void *array);
/* Copies `count` elements of `size` bytes between arrays, which must not overlap. A copy within the device returns
 * when it is queued, any other when it is done. */
sp_status sp_array_copy(sp_context *context, int64_t count, size_t size, void *to, sp_space to_space,
                        const void *from, sp_space from_space);

/* The cudaStream_t in whose order the context works on its (first) device; NULL on the CPU. Kernels of the caller that
 * are launched into it run in the order of the calls. While the stream is captured into a CUDA graph, these calls are
 * captured with it if all their operands lie on the device: sp_spmm_execute, sp_sddmm, sp_edge_softmax, the MaxK calls,
 * sp_csr_sample_rows and copies within the device. */
void *sp_context_stream(const sp_context *context);
/* From here on the context works in the order of `stream`, a cudaStream_t of the caller on the context's (first)
 * device, after what it has queued before. The stream must exist until the context gets another or ends. NULL stands
 * for the context's own (all the CPU takes); cudaStreamLegacy is the default stream. Engines of gnn keep theirs. */
sp_status sp_context_set_stream(sp_context *context, void *stream);
/* Makes the context's (first) device the current one of the calling thread, for kernels of the caller, until
 * sp_context_leave restores the one before. Pairs nest. All other calls restore it themselves. Nothing on the CPU. */
sp_status sp_context_enter(sp_context *context);
void sp_context_leave(sp_context *context);
/* Returns memory that the context keeps for later calls to the device, when the queued work is done. */
sp_status sp_context_trim(sp_context *context);

/* ---- matrices ----------------------------------------------------------------------------------------- */

typedef enum sp_value_type { SP_F32, SP_F64 } sp_value_type;

/* Compressed sparse rows. Column indices ascend strictly within a row. */
typedef struct sp_csr {
    int64_t rows, cols, nnz;
    int64_t *row_offsets; /* rows + 1 entries, from 0 to nnz */
    int32_t *col_indices; /* nnz */
    void *values;         /* nnz of value_type; NULL: a pattern, whose entries are all 1 */
    sp_value_type value_type; /* also for a pattern: the type of the values of its products */
    sp_space space;
} sp_csr;

/* Allocates all three arrays in `space`, uninitialised. A dimension of 2^31 or more is SP_ERROR_OVERFLOW. On failure
 * *matrix is zeroed. Release it by sp_csr_free. */
sp_status sp_csr_create(sp_context *context, int64_t rows, int64_t cols, int64_t nnz, sp_value_type type,
                        sp_space space, sp_csr *matrix);
/* Releases the arrays and zeroes the struct; NULL arrays are fine. */
void sp_csr_free(sp_context *context, sp_csr *matrix);
/* A copy in `space`; the source may lie in either space. A copy within the device returns when it is queued. O(nnz). */
sp_status sp_csr_copy(sp_context *context, const sp_csr *source, sp_space space, sp_csr *copy);
/* Checks all that the struct promises, for a matrix in either space: offsets, range and order of columns, duplicates
 * (SP_ERROR_MATRIX), finite values (SP_ERROR_NOT_FINITE). The sentence names the first wrong entry. A device matrix is
 * checked there, and copied to the host if it is wrong. O(rows + nnz), on the CPU one thread. */
sp_status sp_csr_check(sp_context *context, const sp_csr *matrix);

/* How entries with the same row and column are combined. The mean is their sum divided by their number. The count is
 * that number; values are not read. Entries of patterns are 1. */
typedef enum sp_combine {
    SP_COMBINE_SUM, SP_COMBINE_MAX, SP_COMBINE_MIN, SP_COMBINE_FIRST, SP_COMBINE_MEAN, SP_COMBINE_COUNT
} sp_combine;

typedef enum sp_index_type { SP_I32, SP_I64 } sp_index_type;

/* A list of triples: values[e] at (row_indices[e], col_indices[e]), in any order, places also several times. */
typedef struct sp_coo {
    int64_t rows, cols, count;
    const void *row_indices, *col_indices; /* count of index_type */
    const void *values;                    /* count of value_type; NULL: all are 1 */
    sp_index_type index_type;
    sp_value_type value_type;
    sp_space space;
} sp_coo;

/* Makes a matrix of triples, in their space. Columns are sorted within each row, and triples at one place are combined
 * in the order of their appearance. The matrix always has values; to make it a pattern, release them by sp_array_free
 * and set them to NULL. With `symmetric` every triple also stands for its mirror image: rows must equal cols, and a
 * diagonal entry counts once. A triple outside the matrix is SP_ERROR_ARGUMENT. In host memory at least 2^33 triples
 * are possible, and 2^(64 - b) if column numbers have b bits (2^44 for a million columns), on a device 2^31; more are
 * SP_ERROR_OVERFLOW. Values are not checked. CPU: O(count + rows), and O(n log n) for n triples of one row if few rows
 * have most of them. CUDA: radix sort, O(count + rows log count), 36 bytes a triple and image of working memory. */
sp_status sp_csr_from_coo(sp_context *context, const sp_coo *coo, sp_combine combine, bool symmetric, sp_csr *matrix);
/* to[k] = from[k] for `count` numbers in `space`: widens row offsets of 32 bits, which most other libraries have. */
sp_status sp_widen_offsets(sp_context *context, int64_t count, const int32_t *from, int64_t *to, sp_space space);
/* B = Aᵀ, in the space of A. O(nnz + rows + cols). */
sp_status sp_csr_transpose(sp_context *context, const sp_csr *a, sp_csr *b);
/* The same into arrays of the caller: `b` has the shape, nnz, type and space of Aᵀ, and values if A has some. */
sp_status sp_csr_transpose_into(sp_context *context, const sp_csr *a, const sp_csr *b);
/* B = A with ascending columns, in the space of A, whose rows may have columns in any order. Entries with the same
 * column stay, in their order; sp_csr_check finds them. Two transposes. O(nnz + rows + cols). */
sp_status sp_csr_sort(sp_context *context, const sp_csr *a, sp_csr *b);
/* B(i, column[j]) = A(row[i], j): row i of B is row row[i] of A, and column j of A becomes column[j] of B. `row`
 * (A.rows entries) and `column` (A.cols) must be permutations; this is not checked. All lies in host memory; a device
 * matrix is SP_ERROR_UNSUPPORTED. O(nnz log(longest row)), parallel. */
sp_status sp_csr_permute(sp_context *context, const sp_csr *a, const int32_t *row, const int32_t *column, sp_csr *b);
/* Numbers the nodes of a square matrix in host memory so that the nodes of a community are neighbours: (*order)[new] =
 * old. Communities come from three passes of label propagation by modularity (Barber and Clark 2009) with positive
 * entries as weights, and do not depend on threads. The caller frees *order by sp_free. O(nnz), 8 bytes a row each. */
sp_status sp_csr_community_order(sp_context *context, const sp_csr *a, int32_t **order);

/* ---- SpGEMM ------------------------------------------------------------------------------------------- */

/* How products are formed and combined. Entries of a pattern (values NULL) are 1. */
typedef enum sp_semiring {
    SP_PLUS_TIMES, /* Σ a·b */
    SP_PLUS_PAIR,  /* the number of products; values are not read */
    SP_MIN_PLUS,   /* min (a + b) */
    SP_MAX_TIMES,  /* max a·b */
    SP_OR_AND      /* 1 if there is a product: C is a pattern; values are not read */
} sp_semiring;

typedef enum sp_spgemm_algorithm {
    SP_SPGEMM_AUTO,
    SP_SPGEMM_HASH,  /* hash accumulators for all rows. On CUDA: Li et al., "Accelerating SpGEMM on GPUs with Processing
                        Near HBMs", Algorithms 1 to 5, only for plus-times without a mask, else SP_ERROR_UNSUPPORTED */
    SP_SPGEMM_DENSE, /* CPU: dense accumulators for all rows. SP_ERROR_UNSUPPORTED on CUDA */
    SP_SPGEMM_WARP   /* CUDA: a warp a row, with tables in shared memory of the size that the row needs. AUTO takes it
                        for all but small matrices. SP_ERROR_UNSUPPORTED on the CPU */
} sp_spgemm_algorithm;

/* The gather stage ("AIA", Li et al., Algorithm 5; CUDA): gathers the ranges of B's rows before the products.
 * SP_AIA_UNCACHED is SP_AIA_OFF with loads that bypass the first-level cache, for measurements. */
typedef enum sp_aia { SP_AIA_AUTO, SP_AIA_OFF, SP_AIA_ON, SP_AIA_UNCACHED } sp_aia;

/* How a product is formed. All zero: C = A·B, with the algorithm that the library chooses. */
typedef struct sp_spgemm_options {
    sp_semiring semiring;
    bool transpose_a, transpose_b; /* multiply Aᵀ, Bᵀ */
    const sp_csr *mask;            /* not NULL, of C's shape: C only has entries where the mask has one, of any value */
    bool complement;               /* C only has entries where the mask, which must be given, has none */
    sp_spgemm_algorithm algorithm;
    sp_aia aia;
    bool to_host; /* CUDA: C lies in host memory; its rows are moved there as they are made */
} sp_spgemm_options;

typedef struct sp_spgemm_group {
    char name[24];
    int64_t count; /* of rows, or ranges of rows, that this method formed */
} sp_spgemm_group;
enum { SP_SPGEMM_GROUPS = 12 };

/* What one product cost and how it was done. Times are wall seconds. */
typedef struct sp_spgemm_info {
    int64_t products;      /* intermediate products (multiplications) */
    int64_t product_nnz;   /* nonzeros of the product before any pruning */
    int64_t nnz;           /* nonzeros of C */
    int64_t dense_rows;    /* Markov product: rows multiplied in f32 by the rule of dense_factor */
    int64_t batches;       /* batches of rows under the memory budget */
    int64_t peak_bytes;    /* working memory at its peak, beyond A, B and C (0: not measured) */
    int64_t plan_bytes;    /* memory of a plan beside the pattern of C */
    double analysis_seconds, aia_seconds, symbolic_seconds, numeric_seconds;
    int groups; /* used elements of `group` */
    sp_spgemm_group group[SP_SPGEMM_GROUPS];
} sp_spgemm_info;

/* C = A·B. Columns of C ascend. A and B have the same value type, which C gets too, and may lie in either space
 * (matrices in the other space are copied for the call). C lies where the context computes. It lies in host memory if
 * options->to_host is set, or if it does not fit the device beside the working memory; then it is made in blocks of
 * rows that do (info->batches). Entries that cancel to zero are kept. `options` and `info` may be NULL.
 * Sums are f64 for all value types, run over A's row in ascending column order and are rounded once, so values do not
 * depend on threads, algorithm or back end. Row by row (Gustavson 1978), in one pass on the CPU and in two on CUDA,
 * with an accumulator by the size of the row. O(products). */
sp_status sp_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                    sp_csr *c, sp_spgemm_info *info);

/* C = the k largest entries of each row of A·B, among equals those of the lowest columns (sp_csr_top_k). The whole
 * product is never in memory: A is multiplied in blocks of rows with up to 2^24 products (CUDA: 2^27), fewer if these
 * take more than a quarter of the memory budget, but at least one row. info->batches is the number of blocks, times are
 * sums over the blocks, groups are those of the last. Everything else is as for sp_spgemm. O(products). */
sp_status sp_spgemm_top_k(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t k,
                          const sp_spgemm_options *options, sp_csr *c, sp_spgemm_info *info);

typedef enum sp_metric {
    SP_METRIC_COSINE, /* their product, divided by both lengths; 0 for a row of length 0 */
    SP_METRIC_DOT     /* their product */
} sp_metric;

/* Which similarities a join keeps. All zero: all cosines above 0. */
typedef struct sp_similarity_options {
    sp_metric metric;
    int64_t top_k;    /* the largest of each row of A, among equals those of the lowest rows of B; 0: all */
    double threshold; /* and only those that are at least this; -INFINITY: whatever they are */
    bool skip_self;   /* not row i with row i: for a matrix that is compared with itself */
} sp_similarity_options;

/* C(i, j) = the similarity of A's row i and B's row j, where `options` keep it: A.rows x B.rows. Similarities of 0, and
 * NaN, are never kept. A and B have the same number of columns and the same value type, which C gets too; B may be A.
 * They may lie in either space; C lies where the context computes. `options` and `info` may be NULL.
 * For cosines B's values are divided by the lengths of its rows and rounded to their type. Sums are f64, run over A's
 * row in ascending column order and are compared before they are rounded, so C depends on neither threads nor back end.
 * Neither the product nor a row of it is ever in memory, and 9e18 products are possible. O(products). */
sp_status sp_similarity(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_similarity_options *options,
                        sp_csr *c, sp_spgemm_info *info);

/* A product whose pattern is known: for operands whose values change while their patterns stay the same. */
typedef struct sp_spgemm_plan sp_spgemm_plan;

/* The symbolic phase: finds the pattern of C and keeps it, with data that speeds up the numeric phase, in the space
 * where C will lie (as for sp_spgemm). `options` may be NULL. On failure *plan is NULL.
 * On CUDA, if the device has room for 8 bytes a product beside C, the plan lists the products of each tile of C, 2.3 to
 * 5.3 bytes each (info->plan_bytes), and takes 6 to 23 times as long as a product. For matrices of finite elements, and
 * for B with few columns, it keeps 11 bytes a row and takes 4 times as long as a product. O(products). */
sp_status sp_spgemm_plan_create(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, sp_spgemm_plan **plan);
/* Products, nnz(C), groups, bytes and times of the symbolic phase. Valid as long as the plan; NULL for NULL. */
const sp_spgemm_info *sp_spgemm_plan_info(const sp_spgemm_plan *plan);
/* The numeric phase: C = alpha · A·B + beta · C. A and B must have the patterns that the plan was made for; only their
 * shapes, types and nnz are checked. Their values are arbitrary. A zeroed `c`, with beta 0, becomes a new matrix, which
 * the caller releases by sp_csr_free. Any other `c` has the pattern that an execution of the plan gave; its arrays may
 * be the caller's, and only its values are written. With beta = 0 they are not read. A new C lies where sp_spgemm would
 * put it; in host memory its rows are filled block by block. Other alpha than 1 and beta than 0 are for plus-times and
 * plus-pair: the product is rounded to its type before it is multiplied, and with beta two more C are in memory during
 * the call. The call waits for values of C, except with beta for those on the device. O(products). */
sp_status sp_spgemm_plan_execute(sp_spgemm_plan *plan, double alpha, const sp_csr *a, const sp_csr *b, double beta,
                                 sp_csr *c);
void sp_spgemm_plan_free(sp_spgemm_plan *plan);

/* The row epilogue of Markov clustering. It is applied to each row of A·B in its accumulator, so the product itself is
 * never stored. For a row c (sums in f64, rounded to f32, exact zeros dropped), n = |c|:
 *   max = largest entry, centre = Σ c²;
 *   keep entries >= cutoff; m = kept mass, k = kept count;
 *   if k < recover and m < recover_mass: recover — if n <= recover keep all, else keep also the (recover - k)
 *       largest of the others, ties included;
 *   else if k > select: keep the `select` largest, ties included; if then k < recover and m < recover_mass,
 *       recover among the entries that the cutoff had kept;
 *   if recover is 0 and nothing is left: a single 1 on the diagonal;
 *   divide by the kept mass; chaos = (max - centre) · k; unless inflation is 0, raise to that power, divide by the sum.
 * This is the order of operations of mcl 22-282; the method is van Dongen's (2000). */
typedef struct sp_markov_epilogue {
    double cutoff;        /* 0: none */
    int64_t select;       /* S; 0: no selection */
    int64_t recover;      /* R; 0: no recovery */
    double recover_mass;  /* fraction of 1 */
    double inflation;     /* 0: none */
    int64_t dense_factor; /* rows with dense_factor · products >= cols multiply in f32 (mcl's dense path), the
                             others in f64; sums are f64 in both */
    /* NULL, or, for matrices whose nodes were renumbered by community, a permutation of B.cols entries in host memory:
     * order[j] is the original number of column j. On the CPU every sum then runs by ascending original number, so it
     * has the same bits as without renumbering. On CUDA sums run by column. */
    const int32_t *order;
    bool fast; /* the CPU may add in f32 where that is faster; the last bits differ, for any number of threads alike */
    int64_t diagonal; /* the column of row 0's diagonal entry, row i's is diagonal + i; not 0 for a block of rows */
    bool device_only; /* of one GPU: a product that its memory has no room for fails and is not made from host memory */
} sp_markov_epilogue;

typedef struct sp_markov_row {
    float chaos;
    float homogeneity; /* Σ a² of A's row ÷ Σ of the squares of the pruned row inflated by 2; 1 if that is empty */
    float kept_mass;   /* mass after pruning, before it is scaled back to 1; 0 for a row that got a 1 on the diagonal */
    int32_t expanded;  /* nonzeros before pruning */
} sp_markov_row;

/* C = epilogue(A·B) for matrices with f32 values, square or not; spaces and rules as for sp_spgemm. `rows` (host,
 * A.rows entries) and `info` may be NULL. On CUDA rows are processed in batches under the memory budget. Several
 * devices make ranges of rows of about equal numbers of products; there epilogue->fast has no effect. Several GPUs work
 * as one does, in the memory of the first. Where a GPU has no room for A, B, C and its work, the product is made from
 * host memory, where C then lies: the GPU gets some rows of A at a time, and the rows of B they name. O(products). */
sp_status sp_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue,
                           sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info);

/* Raises the values of a matrix (host, f32) to `power`, which must be above 0, then divides each row by its sum (an f64
 * sum of the rounded f32 powers); in place. A row whose powers all round to 0 is not divided. O(nnz), parallel. */
sp_status sp_csr_inflate(sp_context *context, sp_csr *matrix, double power);

/* ---- contraction -------------------------------------------------------------------------------------- */

typedef enum sp_loops {
    SP_LOOPS_KEEP,
    SP_LOOPS_DROP, /* C has no entries on its diagonal */
    SP_LOOPS_ONLY  /* C only has entries on its diagonal */
} sp_loops;

typedef struct sp_contract_options {
    sp_combine combine;
    sp_loops loops;
    bool half_loops; /* halve sums and counts on C's diagonal, because a symmetric G holds each edge within a group
                        twice. Other operations keep their values */
    bool symmetric;  /* G is symmetric. Then a back end may form one half of C and copy the other from it, which
                        info->mirrored reports: entries above the diagonal have the values of those below */
} sp_contract_options;

typedef struct sp_contract_info {
    int64_t entries;    /* entries of G that contribute to C */
    int64_t nnz;        /* nonzeros of C */
    int64_t peak_bytes; /* working memory at its peak, beyond G, the labels and C (0: not measured) */
    double group_seconds, combine_seconds; /* wall time */
    int groups; /* used elements of `group` */
    sp_spgemm_group group[SP_SPGEMM_GROUPS];
    bool mirrored; /* C is symmetric to the last bit */
} sp_contract_info;

/* The quotient graph of a square G: C(p, q) combines all G(i, j) with labels[i] = p and labels[j] = q. That is
 * C = S·G·Sᵀ, where S(labels[i], i) = 1 (Li et al., Algorithm 7), in one pass over G.
 * `labels` has G.rows entries in `labels_space`, each below `groups`; a negative label drops the node and its edges.
 * G may lie in either space. C is groups x groups, its columns ascend, it has values of G's type even if G is a
 * pattern, and it lies where the context computes. Sums of zero are kept. `options` (all zero: sums, loops kept) and
 * `info` may be NULL. On CUDA without a memory budget the context keeps 8 bytes a group for the next call.
 * Several devices share what lies in host memory by ranges of groups with about equal numbers of entries; info->groups
 * is 0 then, and peak_bytes the sum of all, with their rows of G and C. Entries are combined in the order of G's rows,
 * and within a row in the order of its columns. SP_COMBINE_FIRST takes the first of them. Sums are f64, run in that
 * order, rounded once, so values do not depend on threads or back end. O(nnz + rows + groups + sorting rows of C). */
sp_status sp_contract(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                      int64_t groups, const sp_contract_options *options, sp_csr *c, sp_contract_info *info);
/* The same into arrays of the caller, in either space: `c` is groups x groups of G's type, and c->nnz, the number of
 * entries that its arrays can hold, becomes the number of C's, which is at most G's. If C has more, the call fails with
 * SP_ERROR_ARGUMENT and sets only info->nnz, to that number. C is formed in the context's memory, then copied. */
sp_status sp_contract_into(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                           int64_t groups, const sp_contract_options *options, sp_csr *c, sp_contract_info *info);

/* C = S·G·Sᵀ for a square G and any S with G.rows columns (a Galerkin product): first G·Sᵀ, then S·(G·Sᵀ). Both
 * products use options->semiring and options->algorithm; mask and to_host apply to C; transposes are SP_ERROR_ARGUMENT.
 * If S is a pattern with at most one entry a column, like a labelling, and the options ask for plain sums, G·Sᵀ is not
 * formed: sums are then rounded once instead of twice. Spaces and types as for sp_spgemm. `options` and `info` may be
 * NULL. `info` has the products and times of both products (of the second alone if the first is not formed), and the
 * groups of the second. O(products). */
sp_status sp_triple_product(sp_context *context, const sp_csr *s, const sp_csr *g, const sp_spgemm_options *options,
                            sp_csr *c, sp_spgemm_info *info);

/* ---- SpMM --------------------------------------------------------------------------------------------- */

typedef enum sp_dense_type { SP_DENSE_F32, SP_DENSE_F64, SP_DENSE_F16, SP_DENSE_BF16 } sp_dense_type;

typedef enum sp_layout { SP_ROW_MAJOR, SP_COLUMN_MAJOR } sp_layout;

/* A dense matrix, or a batch of them. Entry (i, j) of matrix b is values[b * batch_stride + i * stride + j], by columns
 * values[b * batch_stride + j * stride + i]. Layouts and batches other than 0 are for sp_spmm_execute and _heads,
 * layouts for sp_dense_copy, batches for sp_sddmm; all other calls refuse them (SP_ERROR_UNSUPPORTED). */
typedef struct sp_dense {
    int64_t rows, cols, stride; /* stride >= cols; by columns, >= rows */
    void *values;
    sp_dense_type type;
    sp_space space;
    sp_layout layout;
    int64_t batch, batch_stride; /* number of matrices, 0 for one; distance of their first values */
} sp_dense;

/* Allocates rows * cols values (stride = cols) in `space`, uninitialised. On failure *matrix is zeroed. */
sp_status sp_dense_create(sp_context *context, int64_t rows, int64_t cols, sp_dense_type type, sp_space space,
                          sp_dense *matrix);
/* Releases the array and zeroes the struct. */
void sp_dense_free(sp_context *context, sp_dense *matrix);
/* A copy by rows in `space` with stride = cols. A copy within the device returns when it is queued. O(rows · cols). */
sp_status sp_dense_copy(sp_context *context, const sp_dense *source, sp_space space, sp_dense *copy);

/* How the rows of X that a row of A names are combined: the mean is their sum by their number, and nothing gives 0. */
typedef enum sp_reduce { SP_REDUCE_SUM, SP_REDUCE_MEAN, SP_REDUCE_MAX, SP_REDUCE_MIN } sp_reduce;

typedef enum sp_spmm_algorithm {
    SP_SPMM_AUTO,           /* chosen by degrees, width and the size of the second-level cache */
    SP_SPMM_ROW_SPLIT,      /* a warp, or part of one, a row, in the order of the rows */
    SP_SPMM_BLOCK_PARTITION,/* rows sorted by degree, in blocks of equal work (Xie et al., Accel-GCN, Algorithms 1-2) */
    SP_SPMM_BIDIRECTIONAL   /* ranges of A's columns, so that the rows of X stay in the cache (Kim et al., BiKD) */
} sp_spmm_algorithm;

typedef struct sp_spmm_options {
    sp_spmm_algorithm algorithm;
    sp_reduce reduce;
    bool transpose;       /* multiply Aᵀ. The plan also keeps the place of each value of A and takes twice as long to
                             make as sp_csr_transpose and a plan of its result, which suffice if values never change */
    bool deterministic;   /* changes nothing: results have the same bits in every run */
    size_t partition_bytes; /* bidirectional: bytes of X that one launch gathers from; 0: by the size of the cache */
} sp_spmm_options;

typedef struct sp_spmm_info {
    sp_spmm_algorithm algorithm; /* the chosen one; on CUDA, with X of 16 bits, that of the last product */
    int64_t metadata_bytes;      /* memory of the plan beside A */
    int64_t partitions;          /* ranges of columns (bidirectional), or blocks of rows */
    double plan_seconds;
} sp_spmm_info;

/* Preparations for many products with one A. The plan refers to A, which must outlive it unchanged. If A lies in the
 * other space or is transposed, the plan has a copy instead. */
typedef struct sp_spmm_plan sp_spmm_plan;

/* A plan for X of `width` columns; others take longer. `options` may be NULL. On failure *plan is NULL. O(nnz). */
sp_status sp_spmm_plan_create(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                              sp_spmm_plan **plan);
/* Figures of the plan. Valid as long as the plan; NULL for NULL. */
const sp_spmm_info *sp_spmm_plan_info(const sp_spmm_plan *plan);
/* Gives A's entries new values: A.nnz of A's value type, in A's order, in `space`. They are copied; A itself does not
 * change. For weights that change while the pattern stays the same. A copy within the device is only queued. O(nnz). */
sp_status sp_spmm_plan_set_values(sp_spmm_plan *plan, const void *values, sp_space space);
/* Y = alpha · reduce(A · X) + beta · Y. With one column it is a product with a vector. X has A.cols rows and Y A.rows
 * rows (with `transpose` the reverse); both have the same number of columns. With beta = 0 Y is not read. X and Y must
 * not overlap; with equal strides they may be different columns of one array.
 * Batches of X and Y have the same size; X with batch_stride 0 is one matrix for all. Columns of one matrix
 * (batch_stride = cols; by columns, cols * stride) take one product; on CUDA the width and the alignment of rows may
 * change the order of additions. A matrix by columns is copied to rows where the context computes: two more passes
 * over X, four over Y. Types: A f32 with X f32, f16 or bf16 and Y f32 or X's type; A f64 with X and Y f64; a pattern
 * with any of these. Sums are f64 if X is f64, else f32.
 * X and Y may lie in either space. Matrices in host memory are moved to the device for the call, or, if they do not
 * fit, in tiles during the computation; after a failure of the latter Y is undefined. With one of them in host memory
 * the call waits for Y, else the product is only queued on CUDA. O(nnz · width). */
sp_status sp_spmm_execute(sp_spmm_plan *plan, double alpha, const sp_dense *x, double beta, sp_dense *y);
/* The same for a plan with SP_REDUCE_MAX or SP_REDUCE_MIN, with alpha 1 and beta 0. Also writes which entry of A gave
 * each value: Y.rows * Y.cols positions in A.col_indices, in Y's space; the lowest of equals, -1 if there is none. */
sp_status sp_spmm_execute_argument(sp_spmm_plan *plan, const sp_dense *x, sp_dense *y, int64_t *argument);
void sp_spmm_plan_free(sp_spmm_plan *plan);

/* Several heads, matrices of A's pattern with values of their own: Y_h = alpha · reduce(A_h · X_h) + beta · Y_h. X and
 * Y are batches with a matrix for each head; `values`, in `space`, has A.nnz of A's value type for each, in A's order.
 * The plan's own values are undefined afterwards. On the CPU heads that are columns of one matrix (batch_stride =
 * cols), of whole 16 bytes, take one pass over A; else each takes a product. All else is as for sp_spmm_execute. */
sp_status sp_spmm_execute_heads(sp_spmm_plan *plan, const void *values, sp_space space, double alpha, const sp_dense *x,
                                double beta, sp_dense *y);

/* values[e] = Σ_k X(i, k) · Y(j, k) for every entry e = (i, j) of A's pattern: the sampled dense-dense product. X
 * (A.rows rows) and Y (A.cols rows) have the same number of columns and the same type, f32 or f64. `values` has A.nnz
 * elements of that type in the space where the context computes; A, X and Y may lie in either. Batches of X and Y have
 * the same size, and `values` A.nnz elements for each matrix. O(nnz · width). */
sp_status sp_sddmm(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y, void *values);
/* Softmax within each row of A's pattern, in place: `values` has A.nnz elements of A's value type for each head, in the
 * space where the context computes. The second call is its gradient: given the softmax s and the gradient g of its
 * result, g becomes s · (g - Σ_row s·g). Both calls wait for their results. O(nnz · heads). */
sp_status sp_edge_softmax(sp_context *context, const sp_csr *a, int64_t heads, void *values);
sp_status sp_edge_softmax_backward(sp_context *context, const sp_csr *a, int64_t heads, const void *s, void *g);

/* ---- MaxK --------------------------------------------------------------------------------------------- */

/* A dense matrix with k kept entries in each row: the compressed balanced sparse rows of MaxK-GNN (Peng et al. 2024).
 * Entry e of row i has the value values[i * k + e] and the column columns[i * k + e]; columns ascend within a row. */
typedef struct sp_cbsr {
    int64_t rows, cols, k; /* 1 <= k <= cols <= 65536 */
    void *values;          /* rows * k of `type` */
    void *columns;         /* rows * k, uint8_t if cols <= 256, else uint16_t */
    sp_dense_type type;    /* f32 or f64 */
    sp_space space;
} sp_cbsr;

/* Allocates both arrays where the context computes, uninitialised. On failure *matrix is zeroed. */
sp_status sp_cbsr_create(sp_context *context, int64_t rows, int64_t cols, int64_t k, sp_dense_type type,
                         sp_cbsr *matrix);
/* Releases the arrays and zeroes the struct. */
void sp_cbsr_free(sp_context *context, sp_cbsr *matrix);

/* All operands of the calls below lie where the context computes. On CUDA they return when the work is queued. */

/* Keeps the k largest values of each row of X, among equals those of the lowest columns. `kept`, made by the caller,
 * has X's rows, cols and type. O(rows · cols). */
sp_status sp_maxk(sp_context *context, const sp_dense *x, sp_cbsr *kept);
/* X(i, columns) = values, all else 0: the gradient of sp_maxk's input from that of its values. O(rows · cols). */
sp_status sp_maxk_expand(sp_context *context, const sp_cbsr *kept, sp_dense *x);
/* Y = alpha · reduce(A · kept) + beta · Y, for a plan with sums or means. `kept` has a row for each column of A (with
 * `transpose` for each row), Y has kept.cols columns and kept's type. O(nnz · k + rows · cols). */
sp_status sp_maxk_spmm(sp_spmm_plan *plan, double alpha, const sp_cbsr *kept, double beta, sp_dense *y);
/* values(j, e) = (reduce(A · G))(j, kept.columns(j, e)) for every kept entry, for a plan with sums or means. With a
 * plan for the transpose it is the gradient of the gathered values. Only kept.values is written. O(nnz · k). */
sp_status sp_maxk_spmm_backward(sp_spmm_plan *plan, const sp_dense *gradient, sp_cbsr *kept);

/* ---- between products ----------------------------------------------------------------------------------- */

/* Operations on matrices before and after products. Matrices may lie in either space. If all matrices of a call lie in
 * host memory, the call works there with the context's threads; otherwise it works where the context computes. New
 * matrices lie where the context computes. Arrays of indices, of factors and of results lie in the `space` that the
 * caller states. Numbers are computed in f64 and rounded once. */

/* C = alpha·A + beta·B for matrices of the same shape and value type. C has an entry wherever A or B has one, and
 * always has values. Entries that cancel to zero are kept. O(rows + entries). */
sp_status sp_csr_add(sp_context *context, double alpha, const sp_csr *a, double beta, const sp_csr *b, sp_csr *c);

/* C = A ∘ B, the Hadamard product, for matrices of the same shape and value type. C has an entry A(i, j) · B(i, j)
 * where both have one; it is a pattern if both are. With a pattern B it selects the entries of A where B has one. CPU:
 * O(rows + entries of both). CUDA: O(rows + entries of the smaller · log(longest row of the other)). */
sp_status sp_csr_hadamard(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c);

/* A(i, j) becomes A(i, j) · (row_factors[i] · col_factors[j]), in place and in the space of A. With the same factors on
 * both sides a symmetric A stays symmetric to the last bit. `row_factors` (A.rows entries) or `col_factors` (A.cols),
 * or both, may be NULL for ones. A pattern gets values, which sp_csr_free releases. The call waits. O(rows + nnz). */
sp_status sp_csr_scale(sp_context *context, sp_csr *a, const double *row_factors, const double *col_factors,
                       sp_space space);

/* B(i, j) = A(rows[i], cols[j]), a row_count x col_count matrix: any rows and columns of A, in any order, with
 * repetitions. NULL for a list means all in their order; its count is then not read. An index outside A is
 * SP_ERROR_ARGUMENT. The same permutation for both renumbers the nodes. If `cols` does not ascend, entries are sorted:
 * on the CPU row by row, on CUDA by two transposes. Otherwise O(rows + cols + entries of the listed rows). */
sp_status sp_csr_extract(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                         const int32_t *cols, int64_t col_count, sp_space space, sp_csr *b);

/* Which entries (i, j) sp_csr_select keeps. The first four go by position: the bound is the number of a diagonal (0 the
 * main one, 1 the one above it). The others go by value, compared in f64 as C does. Every entry of a pattern is 1. */
typedef enum sp_select {
    SP_SELECT_LOWER,        /* j - i <= bound: the lower triangle with the diagonal for 0, without it for -1 */
    SP_SELECT_UPPER,        /* j - i >= bound: the upper triangle, without the diagonal for 1 */
    SP_SELECT_DIAGONAL,     /* j - i == bound */
    SP_SELECT_OFF_DIAGONAL, /* j - i != bound */
    SP_SELECT_LT,           /* A(i, j) < bound */
    SP_SELECT_LE,           /* A(i, j) <= bound */
    SP_SELECT_EQ,           /* A(i, j) == bound */
    SP_SELECT_NE,           /* A(i, j) != bound: for 0, stored zeros go */
    SP_SELECT_GE,           /* A(i, j) >= bound */
    SP_SELECT_GT,           /* A(i, j) > bound */
    SP_SELECT_ABS_GE        /* |A(i, j)| >= bound */
} sp_select;

/* B = the entries of A that `select` keeps, in A's order and shape. The bound of a diagonal must be a whole number,
 * else SP_ERROR_ARGUMENT; it may lie beyond the matrix. O(rows + nnz). */
sp_status sp_csr_select(sp_context *context, const sp_csr *a, sp_select select, double bound, sp_csr *b);

/* B = A with only the k largest entries of each row, among equals those of the lowest columns. Columns still ascend. A
 * row with at most k entries stays whole; k = 0 leaves none; a row of a pattern keeps its first k entries. Zeros of
 * both signs are equal, and NaN is larger than everything. O(rows + nnz) for all values. */
sp_status sp_csr_top_k(sp_context *context, const sp_csr *a, int64_t k, sp_csr *b);

/* result[i] = the entries of row i combined, 0 for a row without entries. `result` has A.rows elements in `space`. The
 * order of a sum depends only on A and the device. The call waits for the result in either space. O(rows + nnz). */
sp_status sp_csr_reduce_rows(sp_context *context, const sp_csr *a, sp_combine combine, double *result,
                             sp_space space);

/* Numbers the rows by falling number of entries, equals in ascending order: order[new] = old. `order` has A.rows
 * elements in `space`. The call waits for it. Counting sort, on CUDA radix sort. O(rows + cols). */
sp_status sp_csr_degree_order(sp_context *context, const sp_csr *a, int32_t *order, sp_space space);

/* Draws offsets[i + 1] - offsets[i] entries of row rows[i] of A, for each i, without replacement, all sets alike. Their
 * positions in A's arrays become places[offsets[i]] and those after it, ascending. `rows` and `offsets` have row_count
 * and row_count + 1 elements, `places` has offsets[row_count]; rows may be listed more than once. A and these arrays
 * lie where the context computes. A's columns and values are not read, so columns may have any order. It is not checked
 * that the rows exist and that none has fewer entries than are drawn. Draws depend on the seed, on i and on the row's
 * length, not on threads or back end. On CUDA the work is only queued. O(min(n², length)) for n draws a row. */
sp_status sp_csr_sample_rows(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                             const int64_t *offsets, uint64_t seed, int64_t *places);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
