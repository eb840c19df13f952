/* libsparse: sparse matrices and products for graph analytics, on the CPU (OpenMP) and on CUDA GPUs.
 *
 * This header is the whole public interface. Conventions:
 *   - Every call that can fail returns an sp_status. On failure sp_last_error(context) holds one sentence that says
 *     what is wrong. A call that has no context, because it was given NULL or because it is sp_context_create, leaves
 *     its sentence in sp_last_error(NULL).
 *   - Arguments are checked: a NULL pointer that is not documented as optional, a struct that contradicts itself, an
 *     enum value that does not exist, a negative size and a matrix in a space that the context cannot reach are
 *     SP_ERROR_ARGUMENT, with a sentence that names the argument. These checks take O(1) and do not read the entries:
 *     with columns that are out of range or do not ascend the behaviour is undefined. sp_csr_check reads them all,
 *     sp_csr_from_coo sorts them.
 *   - Output structs, handles and numbers are written only on success. Two exceptions: calls named sp_*_create, and
 *     sp_alloc and sp_calloc, leave NULL or zeros on failure. Arrays of the caller's that a call fills or changes (Y,
 *     `values`, `result`) are unspecified after a failure other than SP_ERROR_ARGUMENT and SP_ERROR_UNSUPPORTED.
 *   - An output struct must not be one of the inputs, unless the call works in place: SP_ERROR_ARGUMENT. Nor may
 *     the arrays that a call fills overlap those that it reads.
 *   - The library never prints and never exits. Its only state outside contexts is the sentence of
 *     sp_last_error(NULL), one a thread. A context, with what was made from it, must not be used by two threads at
 *     once; different contexts are independent.
 *   - Matrices are plain structs whose arrays belong to whoever holds them. Arrays that the library makes come from
 *     the context's allocator; sp_csr_free and sp_free release them, with the same context, before it is destroyed.
 *     What a struct held before it became an output is not released. Calls that free take NULL and zeroed structs.
 *   - A plan holds its context: it may be used and freed after sp_context_destroy.
 *   - Options that are all zero are the defaults: {0}, or NULL where that is said.
 *   - Sizes are int64_t. Dimensions are below 2^31; the number of nonzeros is limited by memory only.
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

/* SP_VERSION of the library that runs, which with a shared one need not be this header's. */
const char *sp_version(void);

/* ---- status ------------------------------------------------------------------------------------------- */

typedef enum sp_status {
    SP_OK = 0,
    SP_ERROR_ARGUMENT,      /* an argument breaks its documented condition */
    SP_ERROR_MATRIX,        /* a matrix is malformed: offsets, indices out of range, unsorted, duplicates */
    SP_ERROR_NOT_FINITE,    /* NaN or infinity where a number is needed */
    SP_ERROR_OVERFLOW,      /* a size does not fit its type */
    SP_ERROR_HOST_MEMORY,   /* the allocator returned NULL */
    SP_ERROR_DEVICE_MEMORY, /* the device, or the memory budget, cannot hold what is needed */
    SP_ERROR_NO_DEVICE,     /* the device that was asked for does not exist or this build has no CUDA */
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

/* Where all host memory of the library comes from. `allocate` returns NULL on failure; `release` takes NULL. `resize`
 * is realloc; without it (NULL) an array that grows is there twice while it is copied. */
typedef struct sp_allocator {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *pointer);
    void *user;
    void *(*resize)(void *user, void *pointer, size_t bytes);
} sp_allocator;

typedef struct sp_context_options {
    const char *device;            /* "cpu", "cuda", "cuda:N" or "auto" (CUDA if there is one); NULL: "auto" */
    int threads;                   /* CPU threads; 0: all that OpenMP offers */
    size_t memory_budget; /* CUDA: bytes of device memory that the context may hold at once, its own arrays, the
                             caller's (sp_array_create) and plans included; 0: what is free on the device. What does
                             not fit is made in parts where a call says so, else SP_ERROR_DEVICE_MEMORY. Host memory
                             is not counted, with one exception on both back ends: sp_spgemm_top_k holds at most a
                             quarter of the budget of its product at a time, or a row. All other calls on the CPU
                             ignore the budget */
    const sp_allocator *allocator; /* NULL: malloc and free. Copied. */
    const volatile int *interrupt; /* when not NULL and nonzero, long calls end with SP_ERROR_INTERRUPTED: on the CPU
                                      after a row, or some 0.1 s; on CUDA when what is queued is done. Calls that only
                                      allocate, copy or free run to their end */
} sp_context_options;

/* Creates a context. `options` may be NULL. On failure *context is NULL and sp_last_error(NULL) says why; "auto" never
 * fails for want of a device. A context that works on a GPU takes some 0.2 s to create, so keep it. */
sp_status sp_context_create(const sp_context_options *options, sp_context **context);
/* Lets go of the context. Its memory is released once no plan and no sp_context_retain holds it any more; until then
 * what its options point at (`interrupt`, the allocator's `user`) must stay. */
void sp_context_destroy(sp_context *context);
/* Holds the context until one more sp_context_destroy: for handles of modules built on the library. */
void sp_context_retain(sp_context *context);

/* "cpu" or "cuda:N NAME", for logs. For NULL these three give "", false and 0. */
const char *sp_context_device(const sp_context *context);
bool sp_context_is_cuda(const sp_context *context);
int sp_context_threads(const sp_context *context);
/* Whether the interrupt flag is set: for long loops of one's own. */
bool sp_context_interrupted(const sp_context *context);

/* The sentence of the last failed call on this context, "" if none. Valid until the next call. For NULL: of the last
 * failed call of this thread that had no context. */
const char *sp_last_error(const sp_context *context);

/* For modules built on the library. Records a failure sentence (printf form) and returns `status`. */
sp_status sp_fail(sp_context *context, sp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The library's own checks of arguments, SP_ERROR_ARGUMENT with a sentence such as "sp_spgemm: C is NULL". `call` is
 * the function's name (__func__), `name` that of the argument. The context must be there, and the argument; a matrix
 * must be one that the context can reach and that does not contradict itself; an output must not be the input. */
sp_status sp_require(sp_context *context, const char *call, const char *name, const void *argument);
sp_status sp_require_csr(sp_context *context, const char *call, const char *name, const struct sp_csr *matrix);
sp_status sp_require_dense(sp_context *context, const char *call, const char *name, const struct sp_dense *matrix);
sp_status sp_require_output(sp_context *context, const char *call, const char *name, const void *output,
                            const char *input_name, const void *input);

/* Host memory through the context's allocator: count * size bytes, with the product checked. A failure is
 * SP_ERROR_ARGUMENT, SP_ERROR_OVERFLOW or SP_ERROR_HOST_MEMORY and leaves *pointer NULL. A count of 0 yields a valid
 * pointer. */
sp_status sp_alloc(sp_context *context, int64_t count, size_t size, void **pointer);
sp_status sp_calloc(sp_context *context, int64_t count, size_t size, void **pointer);
/* Grows *pointer, which holds `used` elements, to `count`; from NULL as sp_alloc. On failure the old block stays. */
sp_status sp_grow(sp_context *context, int64_t used, int64_t count, size_t size, void **pointer);
void sp_free(sp_context *context, void *pointer);

typedef enum sp_space { SP_HOST, SP_DEVICE } sp_space;

/* Arrays in either space, `count` entries of `size` bytes, not initialised; a count of 0 yields a valid pointer.
 * Device arrays come from the context's pool and need a CUDA context. */
sp_status sp_array_create(sp_context *context, int64_t count, size_t size, sp_space space, void **array);
void sp_array_free(sp_context *context, sp_space space, void *array);
sp_status sp_array_copy(sp_context *context, int64_t count, size_t size, void *to, sp_space to_space,
                        const void *from, sp_space from_space);

/* The cudaStream_t in whose order the context works on the device, for kernels of one's own between its calls; NULL
 * on the CPU. While the stream is being captured into a CUDA graph, sp_spmm_execute, sp_sddmm, sp_edge_softmax, the
 * MaxK calls and copies within the device are captured with it, if all their operands lie on the device. */
void *sp_context_stream(const sp_context *context);

/* ---- matrices ----------------------------------------------------------------------------------------- */

typedef enum sp_value_type { SP_F32, SP_F64 } sp_value_type;

/* Compressed sparse rows. Column indices ascend strictly within a row. */
typedef struct sp_csr {
    int64_t rows, cols, nnz;
    int64_t *row_offsets; /* rows + 1 entries, from 0 to nnz */
    int32_t *col_indices; /* nnz */
    void *values;         /* nnz of value_type; NULL: a pattern, every entry is one */
    sp_value_type value_type; /* of a pattern, too: its products have values of this type */
    sp_space space;
} sp_csr;

/* Allocates the arrays, values too, in the space asked for; none is initialised. */
sp_status sp_csr_create(sp_context *context, int64_t rows, int64_t cols, int64_t nnz, sp_value_type type,
                        sp_space space, sp_csr *matrix);
/* Releases the arrays and zeroes the struct; NULL arrays are fine. */
void sp_csr_free(sp_context *context, sp_csr *matrix);
/* A copy in `space`, whatever the space of the source. O(nnz). */
sp_status sp_csr_copy(sp_context *context, const sp_csr *source, sp_space space, sp_csr *copy);
/* Checks every promise of the struct (host matrices): offsets, ranges, order, duplicates, finite values. O(nnz). */
sp_status sp_csr_check(sp_context *context, const sp_csr *matrix);

/* What becomes of entries that fall together. The mean is their sum over their number; the count is that number, and
 * values are not read. Patterns count as ones. */
typedef enum sp_combine {
    SP_COMBINE_SUM,
    SP_COMBINE_MAX,
    SP_COMBINE_MIN,
    SP_COMBINE_FIRST,
    SP_COMBINE_MEAN,
    SP_COMBINE_COUNT
} sp_combine;

/* Coordinate triples (host) to CSR (host): counting sort by row, columns sorted within a row, duplicates combined in
 * the order of their appearance. `values` are f32 or f64 by `type`, or NULL for ones; the matrix has values in any
 * case, and is a pattern once they are released by sp_free and set to NULL. With `symmetric` every triple also stands
 * for its mirror image (rows must equal cols; a diagonal entry counts once). A triple outside the matrix is
 * SP_ERROR_ARGUMENT. The number of a triple and its column share 64 bits: 2^33 triples are possible for any number of
 * columns, 2^(64 - b) where columns are numbered with b bits (2^44 for a million columns), and more are
 * SP_ERROR_OVERFLOW. O(count + rows + sorting of rows), parallel. */
sp_status sp_csr_from_coo(sp_context *context, int64_t rows, int64_t cols, int64_t count, const int32_t *row_indices,
                          const int32_t *col_indices, const void *values, sp_value_type type, sp_combine combine,
                          bool symmetric, sp_csr *matrix);
/* B = Aᵀ, in the space of A. O(nnz + rows + cols). */
sp_status sp_csr_transpose(sp_context *context, const sp_csr *a, sp_csr *b);
/* B(i, column[j]) = A(row[i], j), host: row i of B is row row[i] of A, column j of A becomes column[j] of B. Both are
 * permutations, which is not checked. O(nnz log(longest row)), parallel. */
sp_status sp_csr_permute(sp_context *context, const sp_csr *a, const int32_t *row, const int32_t *column, sp_csr *b);
/* A numbering of the nodes of a square matrix on the host, (*order)[new] = old, in which those of one community lie
 * side by side, so that products read from the nearest cache what their rows have in common. Communities by three
 * passes of label propagation by modularity (Barber and Clark 2009), positive entries as weights; the same for any
 * number of threads. The caller releases it by sp_free. O(nnz), and 8 bytes a row and thread. */
sp_status sp_csr_community_order(sp_context *context, const sp_csr *a, int32_t **order);

/* ---- SpGEMM ------------------------------------------------------------------------------------------- */

/* What multiplies and what adds. Entries of a pattern (values NULL) count as one. */
typedef enum sp_semiring {
    SP_PLUS_TIMES, /* Σ a·b */
    SP_PLUS_PAIR,  /* how many products the entry has; values are not read */
    SP_MIN_PLUS,   /* min (a + b) */
    SP_MAX_TIMES,  /* max a·b */
    SP_OR_AND      /* that there is one: C is a pattern; values are not read */
} sp_semiring;

typedef enum sp_spgemm_algorithm {
    SP_SPGEMM_AUTO,
    SP_SPGEMM_HASH,  /* hash accumulators for all rows; on CUDA those of Li et al., Algorithms 1 to 5, in two phases,
                        for plus-times without a mask only: else SP_ERROR_UNSUPPORTED */
    SP_SPGEMM_DENSE, /* CPU: dense accumulators for all rows; SP_ERROR_UNSUPPORTED on CUDA */
    SP_SPGEMM_WARP   /* CUDA, and what AUTO takes there but for small matrices, which take fewer launches: a warp a
                        row with tables in shared memory sized to the row; SP_ERROR_UNSUPPORTED on the CPU */
} sp_spgemm_algorithm;

/* The stage that gathers the ranges of B's rows before the products are formed ("AIA", Li et al., Algorithm 5; CUDA).
 * SP_AIA_UNCACHED is off with loads that bypass the first-level cache, for measurement. */
typedef enum sp_aia { SP_AIA_AUTO, SP_AIA_OFF, SP_AIA_ON, SP_AIA_UNCACHED } sp_aia;

/* How a product is formed; all zero is C = A·B, the library's choice of everything else. */
typedef struct sp_spgemm_options {
    sp_semiring semiring;
    bool transpose_a, transpose_b; /* multiply Aᵀ, Bᵀ */
    const sp_csr *mask;            /* not NULL: only entries where the mask, shaped as C, has one of any value */
    bool complement;               /* only entries where the mask has none */
    sp_spgemm_algorithm algorithm;
    sp_aia aia;
    bool to_host; /* CUDA: C lies in host memory; its rows are moved there as they are made */
} sp_spgemm_options;

/* Rows, or ranges of rows, that were done alike. */
typedef struct sp_spgemm_group {
    char name[24];
    int64_t count;
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
    int64_t plan_bytes;    /* what a plan keeps beside the pattern of C */
    double analysis_seconds, aia_seconds, symbolic_seconds, numeric_seconds;
    int groups; /* used of `group` */
    sp_spgemm_group group[SP_SPGEMM_GROUPS];
} sp_spgemm_info;

/* C = A·B, sorted; A and B in either space (copied for the call if they are elsewhere), of the same value type, which
 * is C's too. C lies where the context computes (host for cpu, device for CUDA), or in host memory if `options` say
 * so or if it does not fit the device beside what the product needs. Entries that cancel to zero are kept. `options`
 * and `info` may be NULL.
 * Row-wise (Gustavson 1978), on the CPU in one pass with an accumulator chosen by row: dense sums with a bitmap of
 * the touched columns, hash tables (Nagasaka et al. 2018), or places counted in registers. On CUDA in two phases:
 * rows are classed by their products, then by their entries of C; a warp takes a row, with tables in shared memory
 * sized to the row, sorted in registers; wide rows have a bit a column. Or hash tables (Li et al., "Accelerating
 * SpGEMM on GPUs with Processing Near HBMs", Algorithms 1 to 5). C that goes from the device to host memory is made
 * in blocks of rows that fit the device (info->batches). Sums are f64 whatever the value type, rounded once, and run
 * over A's row in ascending column order, so that the values do not depend on threads, algorithm or back end.
 * O(products). */
sp_status sp_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                    sp_csr *c, sp_spgemm_info *info);

/* C = the k largest entries of each row of A·B, of equals those of the lowest columns (sp_csr_top_k). Rows of A are
 * taken in blocks of up to 2^24 products (CUDA: 2^27), or of as many as fit a quarter of the memory budget, so that
 * the product is never there whole (info->batches blocks; times are their sums, groups the last one's). All else is
 * as for sp_spgemm. O(products). */
sp_status sp_spgemm_top_k(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t k,
                          const sp_spgemm_options *options, sp_csr *c, sp_spgemm_info *info);

/* A product whose pattern is known, for operands whose values change while their patterns stay. */
typedef struct sp_spgemm_plan sp_spgemm_plan;

/* The symbolic phase: finds the pattern of C and keeps it, with what else speeds up the numeric phase, in the space
 * where C is to lie (as for sp_spgemm). On CUDA, where the device has room for 8 bytes a product beside C, the
 * products are listed tile by tile of C, 2.3 to 5.3 bytes each (info->plan_bytes), which takes 6 to 23 times as long
 * as a product: plans are for values that change often. Of matrices of finite elements, and of B with few columns,
 * whose rows are summed faster than listed products, 11 bytes a row are kept, in 4 times a product. On failure
 * *plan is NULL. O(products). */
sp_status sp_spgemm_plan_create(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, sp_spgemm_plan **plan);
/* Products, nnz(C), groups, bytes and times of the symbolic phase. Valid as long as the plan. */
const sp_spgemm_info *sp_spgemm_plan_info(const sp_spgemm_plan *plan);
/* The numeric phase. A and B have the patterns that the plan was made for (their shapes and nnz are checked, no more)
 * and any values. A zeroed `c` becomes a new matrix; a `c` that this plan made before gets new values, and nothing is
 * allocated for it. C lies as for sp_spgemm; on the host its rows are filled block by block. O(products). */
sp_status sp_spgemm_plan_execute(sp_spgemm_plan *plan, const sp_csr *a, const sp_csr *b, sp_csr *c);
void sp_spgemm_plan_free(sp_spgemm_plan *plan);

/* The row epilogue of Markov clustering, applied to each row of A·B while it is in its accumulator, so that the
 * product itself is never stored. For a row c (sums in f64, rounded to f32, exact zeros dropped), n = |c|:
 *   max = largest entry, centre = Σ c²;
 *   keep entries >= cutoff; m = kept mass, k = kept count;
 *   if k < recover and m < recover_mass: recover — if n <= recover keep all, else keep also the (recover - k)
 *       largest of the others, ties included;
 *   else if k > select: keep the `select` largest, ties included; if then k < recover and m < recover_mass,
 *       recover from what the cutoff had kept;
 *   if recover is 0 and nothing is left: a single 1 on the diagonal;
 *   divide by the kept mass; chaos = (max - centre) · k; with inflation raise to it and divide by the sum.
 * This is mcl 22-282's order of operations (van Dongen 2000 for the process itself). */
typedef struct sp_markov_epilogue {
    double cutoff;        /* 0: none */
    int64_t select;       /* S; 0: no selection */
    int64_t recover;      /* R; 0: no recovery */
    double recover_mass;  /* fraction of 1 */
    double inflation;     /* 0: none */
    int64_t dense_factor; /* rows with dense_factor · products >= cols multiply in f32 (mcl's dense path), the
                             others in f64; sums are f64 in both */
    /* NULL, or for matrices whose nodes were renumbered so that communities lie together: order[j] is the original
     * number of column j (host, B.cols entries, a permutation). On the CPU every sum then runs by ascending original
     * number and has the bits that it would have without renumbering; on CUDA sums run by column. */
    const int32_t *order;
} sp_markov_epilogue;

/* What the epilogue saw of one row. */
typedef struct sp_markov_row {
    float chaos;
    float homogeneity; /* Σ a² of A's row ÷ Σ of the squares of the pruned row inflated by 2; 1 if that is empty */
    float kept_mass;   /* mass after pruning, before it is scaled back to 1; 0 where the 1 on the diagonal is all */
    int32_t expanded;  /* nonzeros before pruning; above 2^31 - 1 cannot be, cols is less */
} sp_markov_row;

/* C = epilogue(A·B), square or not, f32, same spaces and rules as sp_spgemm. `rows` (host, A.rows entries) and
 * `info` may be NULL. On CUDA rows are processed in batches under the memory budget. O(products). */
sp_status sp_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue,
                           sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info);

/* v := v^power within each row, then each row divided by its sum (f64 sums of the rounded f32 powers). Host, f32,
 * in place. A row whose powers are all 0, as small values to a large power are in f32, is not divided. power 1 only
 * normalises. O(nnz). */
sp_status sp_csr_inflate(sp_context *context, sp_csr *matrix, double power);

/* ---- contraction -------------------------------------------------------------------------------------- */

typedef enum sp_loops {
    SP_LOOPS_KEEP,
    SP_LOOPS_DROP, /* no entries on C's diagonal */
    SP_LOOPS_ONLY  /* no others */
} sp_loops;

typedef struct sp_contract_options {
    sp_combine combine;
    sp_loops loops;
    bool half_loops; /* sums and counts on C's diagonal are halved: in a symmetric G each edge within a group is there
                        twice. Other operations do not depend on that, and keep their values. */
} sp_contract_options;

/* What one contraction cost. Times are wall seconds. */
typedef struct sp_contract_info {
    int64_t entries;    /* of G that fall into C, before they are combined */
    int64_t nnz;        /* of C */
    int64_t peak_bytes; /* working memory at its peak, beyond G, the labels and C (0: not measured) */
    double group_seconds, combine_seconds;
    int groups; /* used of `group` */
    sp_spgemm_group group[SP_SPGEMM_GROUPS];
} sp_contract_info;

/* C(p, q) = the combination of all G(i, j) with labels[i] = p and labels[j] = q: the quotient graph S·G·Sᵀ of a
 * square G, where S(labels[i], i) = 1 (Li et al., Algorithm 7), in one pass over G: nodes are grouped by label, then
 * the rows of a group are combined under their new columns, as the rows of B are in SpGEMM. `labels` has G.rows
 * entries in `labels_space`, each below `groups`; a negative one drops the node with its edges. C is groups x groups,
 * sorted, has values of G's type even where G is a pattern, and lies where the context computes. Entries run in the
 * order of G's rows and, within a row, of its columns: the first of them counts for SP_COMBINE_FIRST; sums are f64,
 * run in that order and are rounded once, so that values depend neither on threads nor on the back end. Sums of zero
 * are kept. G may lie in either space. `options` (all zero: sums, loops kept) and `info` may be NULL. On a CUDA device
 * without a memory budget the context keeps 8 bytes a group for the next call. O(nnz + rows + groups + sorting within
 * rows of C). */
sp_status sp_contract(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                      int64_t groups, const sp_contract_options *options, sp_csr *c, sp_contract_info *info);

/* C = S·G·Sᵀ for any S with a column a row of a square G (a Galerkin product): G·Sᵀ, then S·(G·Sᵀ). Both are formed
 * as `options` say, over their semiring; mask and to_host are C's, transposes are refused. Where S is a pattern with
 * one entry a column at most, as of a labelling, and nothing but sums is asked for, the product between is not
 * formed: sums are rounded once then, else twice. Spaces and types as for sp_spgemm. `options` and `info` may be
 * NULL; the products and times in it are those of both, or of the second where the first is left out, its groups the
 * second's. O(products). */
sp_status sp_triple_product(sp_context *context, const sp_csr *s, const sp_csr *g, const sp_spgemm_options *options,
                            sp_csr *c, sp_spgemm_info *info);

/* ---- SpMM --------------------------------------------------------------------------------------------- */

typedef enum sp_dense_type { SP_DENSE_F32, SP_DENSE_F64, SP_DENSE_F16, SP_DENSE_BF16 } sp_dense_type;

/* A dense matrix by rows: entry (i, j) is values[i * stride + j]. */
typedef struct sp_dense {
    int64_t rows, cols, stride; /* stride >= cols */
    void *values;
    sp_dense_type type;
    sp_space space;
} sp_dense;

/* Allocates rows * cols values (stride = cols), not initialised, in the space asked for. */
sp_status sp_dense_create(sp_context *context, int64_t rows, int64_t cols, sp_dense_type type, sp_space space,
                          sp_dense *matrix);
void sp_dense_free(sp_context *context, sp_dense *matrix);
/* A copy in `space` with stride = cols. O(rows · cols). */
sp_status sp_dense_copy(sp_context *context, const sp_dense *source, sp_space space, sp_dense *copy);

/* How the neighbours of a row are combined. Mean divides the sum by the row's entries; a row without entries is 0. */
typedef enum sp_reduce { SP_REDUCE_SUM, SP_REDUCE_MEAN, SP_REDUCE_MAX, SP_REDUCE_MIN } sp_reduce;

typedef enum sp_spmm_algorithm {
    SP_SPMM_AUTO,           /* by degrees, width and the size of the second-level cache */
    SP_SPMM_ROW_SPLIT,      /* rows as they come, a warp (or part of one) a row */
    SP_SPMM_BLOCK_PARTITION,/* rows sorted by degree and cut into blocks of equal work, combined warps over columns
                               (Accel-GCN, Algorithms 1 and 2) */
    SP_SPMM_BIDIRECTIONAL   /* A binned by ranges of columns, X cut by columns, so that what a launch gathers stays in
                               the second-level cache (BiKD) */
} sp_spmm_algorithm;

typedef struct sp_spmm_options {
    sp_spmm_algorithm algorithm;
    sp_reduce reduce;
    bool transpose;       /* Aᵀ·X; the plan also keeps where A's values go, and takes twice as long as
                             sp_csr_transpose and a plan of what that makes, which do where values stay */
    bool deterministic;   /* the same bits in every run: no floating-point atomics */
    size_t partition_bytes; /* bidirectional: the gathered table of one launch; 0: by the cache's size */
} sp_spmm_options;

typedef struct sp_spmm_info {
    sp_spmm_algorithm algorithm; /* that was chosen; on CUDA X of 16 bits may have another: the last product's */
    int64_t metadata_bytes;      /* of the plan beside A */
    int64_t partitions;          /* launches' worth of columns (bidirectional), or blocks of rows */
    double plan_seconds;
} sp_spmm_info;

/* What is prepared once for many products with A. The plan refers to A, which must outlive it unchanged, unless A
 * lies in the other space or is transposed: then it has its own. */
typedef struct sp_spmm_plan sp_spmm_plan;

/* `width` is the number of columns of X that the plan is made for (others work, less fast). `options` may be NULL.
 * O(rows + nnz). On failure *plan is NULL. */
sp_status sp_spmm_plan_create(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                              sp_spmm_plan **plan);
const sp_spmm_info *sp_spmm_plan_info(const sp_spmm_plan *plan);
/* New values for A's entries, in A's order, of A's value type, in `space`: for weights that change while the pattern
 * stays. They are copied. O(nnz). */
sp_status sp_spmm_plan_set_values(sp_spmm_plan *plan, const void *values, sp_space space);
/* Y = alpha · reduce(A · X) + beta · Y; with one column a product with a vector. X has A.cols rows (transposed:
 * A.rows), Y A.rows rows (A.cols), both the same number of columns, and lie where the context computes or are moved
 * for the call; on CUDA, where they do not fit the device, in tiles behind the computation (Y is undefined after a
 * failure then). Types: A f32 with X f32, f16 or bf16 and Y f32 or X's type; A f64 with X and Y f64; a pattern with
 * any of these. Sums are f32, for f64 f64. With beta = 0 Y is not read. X and Y must not overlap; with equal strides
 * they may be columns of one array side by side. On CUDA, with Y on the device, the call returns when the product is
 * queued: every later call with the context waits for it, other streams' work must (cudaDeviceSynchronize).
 * O(nnz · width). */
sp_status sp_spmm_execute(sp_spmm_plan *plan, double alpha, const sp_dense *x, double beta, sp_dense *y);
/* The same for SP_REDUCE_MAX and SP_REDUCE_MIN (alpha 1, beta 0), with the entry of A (its position in A.col_indices;
 * the lowest of equals; -1 for a row without entries) that gave each value: Y.rows * Y.cols of them, in Y's space. */
sp_status sp_spmm_execute_argument(sp_spmm_plan *plan, const sp_dense *x, sp_dense *y, int64_t *argument);
void sp_spmm_plan_free(sp_spmm_plan *plan);

/* values[e] = Σ_k X(i, k) · Y(j, k) for every entry e = (i, j) of A's pattern: the sampled dense-dense product.
 * `values` has A.nnz entries of X's type (f32 or f64) in the space where the context computes. O(nnz · width). */
sp_status sp_sddmm(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y, void *values);
/* Softmax within each row of A, in place, over values of A's type in the space where the context computes; and its
 * gradient: given the softmax s and the gradient g of it, g becomes s · (g - Σ_row s·g). O(nnz). */
sp_status sp_edge_softmax(sp_context *context, const sp_csr *a, void *values);
sp_status sp_edge_softmax_backward(sp_context *context, const sp_csr *a, const void *softmax, void *gradient);

/* ---- MaxK --------------------------------------------------------------------------------------------- */

/* A dense matrix of which each row keeps k entries: the compressed balanced sparse rows of MaxK-GNN (Peng et al.
 * 2024). Entry e of row i is values[i * k + e] in column columns[i * k + e], ascending within the row. */
typedef struct sp_cbsr {
    int64_t rows, cols, k; /* 1 <= k <= cols <= 65536 */
    void *values;          /* rows * k of `type` */
    void *columns;         /* rows * k, uint8_t if cols <= 256, else uint16_t */
    sp_dense_type type;    /* f32 or f64 */
    sp_space space;
} sp_cbsr;

/* Allocates, not initialised, where the context computes. */
sp_status sp_cbsr_create(sp_context *context, int64_t rows, int64_t cols, int64_t k, sp_dense_type type,
                         sp_cbsr *matrix);
void sp_cbsr_free(sp_context *context, sp_cbsr *matrix);

/* All operands of the calls below lie where the context computes; on CUDA they return when the work is queued. */

/* The k largest values of each row of X, of equals those of the lowest columns; `kept` has X's rows, cols and type.
 * O(rows · cols). */
sp_status sp_maxk(sp_context *context, const sp_dense *x, sp_cbsr *kept);
/* X(i, columns) = values, all else 0: the gradient of sp_maxk's input from that of its values. O(rows · cols). */
sp_status sp_maxk_expand(sp_context *context, const sp_cbsr *kept, sp_dense *x);
/* Y = alpha · reduce(A · kept) + beta · Y with the matrix of a plan for sums or means: the row-wise product of A with
 * sparse rows, each of the same length. Y has kept.cols columns and kept's type. O(nnz · k + rows · cols). */
sp_status sp_maxk_spmm(sp_spmm_plan *plan, double alpha, const sp_cbsr *kept, double beta, sp_dense *y);
/* values(j, e) = (reduce(A · G))(j, kept.columns(j, e)) for every kept entry, with the matrix of a plan for sums or
 * means: the gradient of the values that sp_maxk_spmm gathered, if the plan is for the transpose. Nothing but
 * `values` of `kept` is written. O(nnz · k). */
sp_status sp_maxk_spmm_backward(sp_spmm_plan *plan, const sp_dense *gradient, sp_cbsr *kept);

/* ---- between products ----------------------------------------------------------------------------------- */

/* What analytics do to matrices before and after they multiply them. Matrices may lie in either space: where all of a
 * call's lie in host memory it works there, with the context's threads, otherwise where the context computes. What a
 * call makes lies where the context computes. Arrays of indices and of factors, and results that are arrays, lie in
 * the `space` that the call is told. Numbers are formed in f64 and rounded once. */

/* C = alpha·A + beta·B for matrices of one shape and value type: an entry wherever A or B has one, with a value even
 * where both are patterns (ones). Entries that cancel to zero are kept. Rows are merged; on CUDA tiles of equal size
 * along the merge path of all entries (Green et al. 2012), whatever the lengths of rows. O(rows + entries). */
sp_status sp_csr_add(sp_context *context, double alpha, const sp_csr *a, double beta, const sp_csr *b, sp_csr *c);

/* C = A ∘ B, the Hadamard product, for matrices of one shape and value type: an entry A(i, j) · B(i, j) where both
 * have one; a pattern where both are. With a pattern B it is what of A lies where B has entries. On the CPU rows are
 * merged: O(rows + entries of both). On CUDA entries of the matrix that has fewer are looked for in the other's rows:
 * O(rows + fewer · log(longest row)). */
sp_status sp_csr_hadamard(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c);

/* A(i, j) becomes A(i, j) · (row_factors[i] · col_factors[j]) in place, in the space of A: with the same factors on
 * both sides a symmetric A stays so to the last bit. Either array may be NULL, for ones. A pattern gets values, which
 * like its other arrays sp_csr_free releases. O(rows + nnz). */
sp_status sp_csr_scale(sp_context *context, sp_csr *a, const double *row_factors, const double *col_factors,
                       sp_space space);

/* B(i, j) = A(rows[i], cols[j]), of `row_count` x `col_count`: any of A's rows and columns in any order, repeated as
 * often as they are listed. NULL in place of a list stands for all in their order, its count is not read then. An
 * index outside A is SP_ERROR_ARGUMENT. With one permutation for both, nodes are renumbered. Columns that do not
 * ascend are sorted: on the CPU row by row; on CUDA by transposing, taking rows and transposing back. Otherwise
 * O(rows + cols + entries of the rows listed). */
sp_status sp_csr_extract(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                         const int32_t *cols, int64_t col_count, sp_space space, sp_csr *b);

/* Which entries (i, j) sp_csr_select keeps: the first four by place, where the bound is a whole number, of a diagonal
 * (0: the main one, 1: the one above it); the others by value, compared in f64 as C does, so that NaN is NE to all
 * and nothing else. Every entry of a pattern is one. */
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

/* B = the entries of A that `select` keeps, in A's order and shape. A diagonal that is no whole number is
 * SP_ERROR_ARGUMENT; one beyond the matrix is fine. Where a diagonal cuts a row is found by bisection. O(rows +
 * nnz). */
sp_status sp_csr_select(sp_context *context, const sp_csr *a, sp_select select, double bound, sp_csr *b);

/* B = A with the k largest entries of each row, of equals those of the lowest columns; columns ascend as before. A
 * row of up to k entries stays whole, k = 0 leaves none, of a pattern the first k stay. Zeros of both signs are
 * equal, NaN is larger than all else. Selection goes by the digits of values as integers: O(rows + nnz) whatever the
 * values. */
sp_status sp_csr_top_k(sp_context *context, const sp_csr *a, int64_t k, sp_csr *b);

/* result[i] = the entries of row i combined, 0 for a row without any; A.rows of them. Sums run in an order that
 * depends on A and the device alone. O(rows + nnz). */
sp_status sp_csr_reduce_rows(sp_context *context, const sp_csr *a, sp_combine combine, double *result,
                             sp_space space);

/* A numbering of the rows by falling number of entries, equals in ascending order: order[new] = old, A.rows of them.
 * A counting sort, on CUDA a radix sort. O(rows + cols). */
sp_status sp_csr_degree_order(sp_context *context, const sp_csr *a, int32_t *order, sp_space space);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
