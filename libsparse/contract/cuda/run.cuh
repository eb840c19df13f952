/* A contraction on its way: all that one call holds on the device, how it launches kernels, and its phases, each of
 * which has a file. */
#ifndef SPARSE_CUDA_CONTRACT_RUN_CUH
#define SPARSE_CUDA_CONTRACT_RUN_CUH

#include "contract/cuda/contract.cuh"

/* Ranked rows have up to 2,048, 4,096 or 8,192 entries, in the registers of their block, with as many cells in
 * shared memory: 24 KB a row in the first class, so that several blocks share a multiprocessor. Windows have
 * RANKED_WORDS or LONGER_WORDS words of bits, or fewer if all columns need fewer. */
enum { RANKED_THREADS = 256, RANKED_ITEMS = 8, RANKED_WORDS = 8192 };
enum { LONGER_THREADS = 512, LONGER_ITEMS = 8, LONGEST_THREADS = 1024, LONGEST_ITEMS = 8, LONGER_WORDS = 16384 };
enum { MOST_COLUMNS = LONGER_WORDS * 1024 }; /* of summed rows, and of those that are rows of B added up */

enum { LENGTHS = 1024, CHUNK = 512 }; /* of C's rows that a block adds up; cells of C that a warp moves */

/* Largest rows of the classes, by the size of the device's shared memory. */
struct class_limits {
    int sorted, ranked, longer, longest; /* 0: none */
};

/* What the host waits for, in its memory: counts once rows have classes, and once they are combined. */
struct posted_counts {
    contract_totals totals;
    int64_t nnz;
    unsigned counted, combined; /* not 0: it has come */
};
static_assert(sizeof(posted_counts) <= MAILBOX, "they come by the mailbox");

/* For a block, once all it tells has been written. */
static __device__ __forceinline__ void send_totals(const contract_totals *totals, posted_counts *posted,
                                                   unsigned *arrived)
{
    for (unsigned i = threadIdx.x; i < sizeof *totals / sizeof(unsigned); i += blockDim.x)
        ((volatile unsigned *)&posted->totals)[i] = __ldcg((const unsigned *)totals + i);
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *(volatile unsigned *)arrived = 1;
}

/* Parted rows: wide ones, in the order of their list, without near ones. */
struct parted_rows {
    uint32_t *bits;           /* `words` a row */
    uint32_t *before;         /* bits before every COUNTED_WORDS of them */
    unsigned long long *sums; /* as cells_of */
    uint32_t *counts;         /* of entries, where sums may be late */
    struct parted_span *spans;
    int64_t words;
};

/* Arrays that share one block of device memory: asking for a block takes the host a microsecond or two, and giving it
 * back as much. */
struct array_block {
    enum { MOST = 24, ALIGNMENT = 256 };
    device_array<char> memory;
    struct {
        void **pointer;
        size_t at;
    } arrays[MOST];
    int count;
    size_t bytes;
    char *base; /* once placed */

    /* Lets *pointer have room for this many, once all arrays are named. */
    template <typename T> sp_status add(sp_context *context, int64_t size, T **pointer)
    {
        size_t own;
        if (count == MOST || !sp_mul_size((size_t)size, sizeof(T), &own) || own > SIZE_MAX / 2 - bytes)
            return sp_fail(context, SP_ERROR_OVERFLOW, "%lld elements are more than memory can address",
                           (long long)size);
        arrays[count++] = {(void **)pointer, bytes};
        bytes += (own + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        return SP_OK;
    }
    void place(char *block)
    {
        base = block;
        for (int i = 0; i < count; i++) *arrays[i].pointer = block + arrays[i].at;
    }
    sp_status allocate(sp_context *context)
    {
        CHECK(memory.allocate(context, (int64_t)bytes));
        place(memory.data);
        return SP_OK;
    }
};

/* Wide rows whose entries are sorted by row and column (ordered.cu). */
template <typename V> struct ordered_rows {
    bool fit; /* there is the memory for it; else they are ranked_rows' */
    bool again; /* they are those that were inexact */
    array_block arrays;
    int64_t entries;
    int64_t alone; /* cells of this many entries are summed by all warps */
    int bits, key_bits;  /* of a column; of row and column */
    char *keys[2];       /* before and after a pass of the sort */
    V *values[2];
    int64_t *before;     /* entries before each row, as listed */
    uint32_t *number;    /* cells up to an entry */
    uint32_t *first;     /* entry of each cell */
    char *scratch;
    size_t scratch_bytes;
    struct long_runs *longest; /* such cells, and what their sums need (long_sums.cuh) */
    double *totals;
    struct chunk_growth *growths;
};

/* Everything that one call holds on the device. */
template <typename V> struct contract_run {
    sp_context *context;
    int64_t entries; /* of the stage */
    contract_args<V> job;
    class_limits limits;
    int ranked_words, longer_words;
    bool narrow;    /* 32 bits number the entries of G and of the stage */
    bool sums;      /* then: sums of f32 */
    bool few_words; /* rows of class TO_1024 are summed_rows' */
    bool unkeyed;   /* nodes have no keys yet */
    array_block arrays, cells; /* of nodes, rows and entries; of wide rows */
    device_array<char> counts; /* of this many bytes, kept from call to call; which totals belong to this one */
    size_t counts_bytes, kept_bytes; /* in all; of those that this call has from the one before */
    int turn;
    uint2 *placed;                    /* as the job's, once nodes lie with their groups */
    unsigned long long *preceding;    /* of a node: what of its group came before it, in any order; the job's starts */
    unsigned long long *places;       /* of a group: what of all came before it */
    int32_t *sizes;                   /* nodes of a group */
    int64_t *sums_of_lengths;         /* of LENGTHS of C's rows each */
    int32_t *rows_of_chunks;          /* of CHUNK of C's cells each: where the first lies */
    posted_counts *posted;
    char *room;                /* C's values, which are written last, or NULL */
    size_t zeros;              /* bytes of cells that begin as such */
    bool early;                /* kernels may be launched early */
    double grouped;            /* when the host knew the classes */
    bool parts;                /* wide rows are near ones or parted */
    parted_rows parted;
    ordered_rows<V> ordered; /* if not */
};

static inline cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

static inline unsigned blocks_of(int64_t items, int threads) { return (unsigned)((items + threads - 1) / threads); }

/* Launches a kernel with as many blocks as the device holds, at most `work`. */
template <typename V, typename Kernel, typename... Arguments>
static sp_status launch(contract_run<V> *run, Kernel *kernel, int threads, size_t shared, int64_t work,
                        cudaStream_t stream, Arguments... arguments)
{
    sp_context *context = run->context;
    int blocks;
    if (work == 0) return SP_OK;
    CHECK(cuda_full_grid(context, kernel, threads, shared, &blocks));
    kernel<<<(unsigned)(work < blocks ? work : blocks), threads, shared, stream>>>(run->job, arguments...);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* First in a kernel that is launched early: it may begin while the one ahead of it on the stream ends, waits for
 * that, and lets the one behind it begin in turn. Some 2 µs less between two kernels. */
static __device__ __forceinline__ void wait_ahead()
{
    wait_for_previous();
    let_next_begin();
}

/* Whether the device's code of the kernel, and of others built with it, waits. */
template <typename V, typename Kernel> static sp_status allow_early(contract_run<V> *run, Kernel *kernel)
{
    sp_context *context = run->context;
    cudaFuncAttributes own;
    CUDA_CHECK(cudaFuncGetAttributes(&own, kernel));
    run->early = own.ptxVersion >= 90;
    return SP_OK;
}

/* Launches this many blocks early, of a kernel that begins with wait_ahead. */
template <typename V, typename... Parameters, typename... Arguments>
static sp_status launch_early(contract_run<V> *run, void (*kernel)(Parameters...), int threads, int64_t blocks,
                              Arguments... arguments)
{
    sp_context *context = run->context;
    CUDA_CHECK(launch_kernel(kernel, dim3((unsigned)blocks), threads, 0, stream_of(context), run->early,
                             arguments...));
    return SP_OK;
}

/* The same with as many blocks as the device holds, at most `work`. */
template <typename V, typename... Parameters, typename... Arguments>
static sp_status launch_full(contract_run<V> *run, void (*kernel)(Parameters...), int threads, int64_t work,
                             Arguments... arguments)
{
    int blocks;
    CHECK(cuda_full_grid(run->context, kernel, threads, 0, &blocks));
    return launch_early(run, kernel, threads, work < blocks ? work : blocks, arguments...);
}

/* After a failure waits for all streams: memory is released in the order of the main one, and no kernel posts counts
 * any more. */
static inline sp_status settle(sp_status status)
{
    if (status != SP_OK) cudaDeviceSynchronize();
    return status;
}

/* ---- phases, in their order ------------------------------------------------------------------------------- */

/* C's rows are made of this many entries of `nodes` rows of G. `shortens`: labels of 16 bits are made where they do
 * (contract.cu). */
template <typename V>
sp_status open_run(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t nodes, int64_t entries,
                   int64_t groups, int64_t columns, bool shortens, const sp_contract_options *options,
                   contract_run<V> *run);
/* Lets the next call have the counts of this one, which is done; `peak`: bytes that it did not see. */
template <typename V> void keep_counts(contract_run<V> *run, int64_t *peak);
/* How long the rows of each class may be, and what a block has for them (rows.cu). */
template <typename V> void size_tables(contract_run<V> *run);

/* Counts the nodes and entries of groups; once rows have classes and nodes lie with their groups, brings those in
 * order; if a group has more than MOST_ORDERED, or 32 bits do not number entries, by a sort of all
 * (nodes.cu). */
template <typename V> sp_status count_nodes(contract_run<V> *run);
template <typename V> sp_status order_nodes(contract_run<V> *run, const contract_totals *totals);

/* Puts C's rows in classes, reports their sizes to the host, and lists them by class, and nodes by group, in any order
 * within it; returns the report once it has come (classes.cu). */
template <typename V> sp_status list_classes(contract_run<V> *run);
template <typename V> sp_status read_totals(contract_run<V> *run, contract_totals *totals);
sp_status await_posted(sp_context *context, const unsigned *arrived);
/* Names the classes that have rows; returns their number. */
int name_groups(const contract_totals *totals, sp_spgemm_group *group);

/* Whether rows can be combined before the nodes of groups are in order; combines the rows of all classes; those of them
 * that have turned out to be inexact (rows.cu). */
template <typename V> bool takes_any_order(const contract_run<V> *run, const contract_totals *totals);
template <typename V>
sp_status combine_rows(contract_run<V> *run, const contract_totals *totals, sp_csr *result);
template <typename V> sp_status combine_again(contract_run<V> *run, const contract_totals *totals);

/* Room to sort the entries of wide rows, or `again` of those that were inexact, if there is the memory; combines those
 * rows (ordered.cu). */
template <typename V> sp_status open_ordered(contract_run<V> *run, const contract_totals *totals, bool again);
template <typename V> sp_status launch_ordered(contract_run<V> *run, cudaStream_t stream);

/* Asks for C's arrays ahead; brings the rows from the stage to C (result.cu). */
template <typename V> sp_status reserve_result(contract_run<V> *run, sp_csr *c);
template <typename V> sp_status write_result(contract_run<V> *run, sp_csr *c, contract_totals *totals);

#endif
