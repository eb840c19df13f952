/* The numeric kernels of the algorithms that give a row of C to a block: a row of A·B is summed in an accumulator and
 * handed from there to an epilogue, which stores it (hash.cu) or prunes and inflates it (markov/cuda/markov.cu).
 *
 * A job is what a kernel is compiled for: operands, and the epilogue in these members.
 *   SPILLS                  rows may have more columns than a table takes; such rows go to the work list's spill list
 *   memory                  what a block keeps in static shared memory, a block_memory
 *   most_columns(row)       the row's columns at most
 *   in_f32(row)             whether products are rounded to f32
 *   finish(row, table, …)   takes the row from a table
 *   finish_global(row, sums, own, …)  takes it from sums in global memory, which it leaves untouched; `own` is
 *                           SCRATCH bytes a column beside them
 *
 * Two accumulators: a table in shared memory, its slots sized to the row; and for rows that no table holds an f64 and
 * a bit a column in global memory, behind a table for the columns that come first where the job wants one. Blocks
 * stay resident and take rows from a counter.
 *
 * Order of additions. A block owns a row of C and takes the rows of B one after another, in ascending column order
 * of A's row. Columns within a row of B are distinct, so its threads never add to the same sum between two barriers:
 * an atomic is needed only to claim a free key, and every sum sees its additions in the CPU's order. Results have the
 * same bits whatever the class, the block or the schedule.
 *
 * Cost of a product with a table in shared memory: 8 bytes of B (from L2 when rows in flight share rows of B), then
 * one 4-byte look at the key and an 8-byte load and store of the sum, at random banks: 3.5 + 6 + 6 cycles of the
 * shared memory for 32 products, hence about 2 products a cycle and multiprocessor; probing beyond the first slot
 * comes on top. L2 delivers some 21 bytes a cycle and multiprocessor, 2.6 products. A barrier costs some 40 cycles a
 * row of B, hidden where two blocks share a multiprocessor.
 */
#ifndef SPARSE_CUDA_NUMERIC_CUH
#define SPARSE_CUDA_NUMERIC_CUH

#include "spgemm/cuda/aia.cuh"

enum { GLOBAL_THREADS = 512, GLOBAL_BLOCKS = 2 };

template <typename V, sp_aia WAY> struct row_operands {
    using value = V;
    range_source<WAY> ranges;
    const V *a_values, *b_values; /* NULL stands for ones */
    const int32_t *b_cols;
    int64_t cols; /* of C */
};

/* Rows that a launch works on: its own range of the order, then those that smaller tables gave up on. */
struct work_list {
    const int32_t *own;
    int own_count;
    const int32_t *extra;   /* NULL: none */
    const int *extra_count; /* on the device */
    int *next;              /* the place of the next row to take, 0 at launch */
    int32_t *spill;         /* takes rows that do not fit this table */
    int *spill_count;
};

/* A row of the work list, and where in its own part of the list it is; -1 when there is none left. */
struct taken_row {
    int place, row;
};

struct block_memory {
    uint64_t reduce[32];
    taken_row taken;
    int fill, gathered;
};

/* Takes the next row for the whole block. */
static __device__ taken_row take_row(const work_list &work, taken_row *shared)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const int at = atomicAdd(work.next, 1), extra = work.extra ? *work.extra_count : 0;
        *shared = {at, at < work.own_count           ? work.own[at]
                       : at - work.own_count < extra ? work.extra[at - work.own_count]
                                                     : -1};
    }
    __syncthreads();
    return *shared;
}

/* ---- parts of epilogues -------------------------------------------------------------------------------- */

/* Sorts count <= capacity entries of global memory by column, through shared memory (bitonic network). Room for the
 * next power of two is needed in `keys` and `values`. */
template <int THREADS, typename V>
__device__ void sort_row(int32_t *cols, V *row_values, int count, uint32_t *keys, V *values)
{
    int padded = 2;
    while (padded < count) padded *= 2;
    __syncthreads();
    for (int i = threadIdx.x; i < padded; i += THREADS) {
        keys[i] = i < count ? (uint32_t)cols[i] : 0xffffffffu;
        values[i] = i < count ? row_values[i] : V(0);
    }
    for (int size = 2; size <= padded; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < padded / 2; i += THREADS) {
                const int low = 2 * i - (i & (stride - 1)), high = low + stride;
                const uint32_t a = keys[low], b = keys[high];
                if ((a > b) != ((low & size) == 0)) continue;
                keys[low] = b;
                keys[high] = a;
                const V value = values[low];
                values[low] = values[high];
                values[high] = value;
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += THREADS) {
        cols[i] = (int32_t)keys[i];
        row_values[i] = values[i];
    }
}

/* Calls write(i, place) for each i < count with keep(i), places counting from 0 in no particular order. */
template <int THREADS, typename Keep, typename Write>
__device__ void gather(int count, int *counter, Keep keep, Write write)
{
    const int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) *counter = 0;
    __syncthreads();
    for (int base = 0; base < count; base += THREADS) {
        const int i = base + threadIdx.x;
        const bool kept = i < count && keep(i);
        const unsigned keepers = __ballot_sync(FULL_WARP, kept);
        int first = 0;
        if (lane == 0 && keepers) first = atomicAdd(counter, __popc(keepers));
        first = __shfl_sync(FULL_WARP, first, 0);
        if (kept) write(i, first + __popc(keepers & ((1u << lane) - 1)));
    }
    __syncthreads();
}

/* The same with places in the order of i. */
template <int THREADS, typename Keep, typename Write>
__device__ void gather_in_order(int count, uint64_t *scratch, Keep keep, Write write)
{
    int done = 0;
    for (int base = 0; base < count; base += THREADS) {
        const int i = base + threadIdx.x;
        const bool kept = i < count && keep(i);
        int total;
        const int place = done + block_scan<THREADS>(kept, &total, scratch);
        if (kept) write(i, place);
        done += total;
    }
    __syncthreads();
}

/* ---- accumulators -------------------------------------------------------------------------------------- */

static __device__ __forceinline__ int home_slot(int32_t col, int slots)
{
    return (int)__umulhi(scrambled(col), (uint32_t)slots);
}

/* A key as other threads may just have claimed it. */
static __device__ __forceinline__ int32_t look(const int32_t *keys, int slot)
{
    return *(volatile const int32_t *)(keys + slot);
}

/* The column's slot, found or claimed by linear probing from `slot`, which holds `key`; -1 when it is new and *fill,
 * unless NULL, has reached the limit. One slot at least is free. */
static __device__ __forceinline__ int find_slot(int32_t *keys, int slots, int32_t col, int slot, int32_t key,
                                                const int *fill, int limit, bool *fresh)
{
    *fresh = false;
    while (key != col) {
        if (key == EMPTY) {
            if (fill && *(volatile const int *)fill >= limit) return -1;
            key = atomicCAS(keys + slot, EMPTY, col);
            *fresh = key == EMPTY;
            if (*fresh) return slot;
        } else {
            slot = slot + 1 == slots ? 0 : slot + 1;
            key = look(keys, slot);
        }
    }
    return slot;
}

/* At 4/5 a hit takes 3 probes; the rest holds the slot that every thread may claim after the limit is reached. */
template <int SLOTS> struct table_limit {
    static constexpr int value = SLOTS / 5 * 4;
};

/* Half full if the table is large enough: 1.5 probes a hit. A multiple of 4, to be cleared 16 bytes at a time. */
template <int SLOTS> static __device__ __forceinline__ int slots_for(int64_t columns)
{
    const int64_t wanted = (2 * columns + 7) / 4 * 4;
    return wanted < SLOTS ? (int)wanted : SLOTS;
}

template <int THREADS> static __device__ __forceinline__ void clear_keys(int32_t *keys, int slots)
{
    for (int i = threadIdx.x; i < slots / 4; i += THREADS)
        ((int4 *)keys)[i] = make_int4(EMPTY, EMPTY, EMPTY, EMPTY);
}

/* Sums by column in shared memory; with SPILLS of the LIMIT columns that come first, give or take a thread's. */
template <int SLOTS, int LIMIT, bool SPILLS> struct row_table {
    int32_t *keys;
    double *sums;
    int *fill;
    int slots;
    bool refuses; /* this thread met a column that the table does not take */

    static constexpr size_t BYTES = (size_t)SLOTS * (sizeof(double) + sizeof(int32_t));

    __device__ row_table(double *memory, int *columns)
        : keys((int32_t *)(memory + SLOTS)), sums(memory), fill(columns), slots(SLOTS), refuses(false)
    {
    }
    __device__ bool full() const { return SPILLS && refuses; }
    /* -0 is what any first product can be added to without changing its bits. Ends with a barrier. */
    template <int THREADS> __device__ void clear(int64_t most_columns)
    {
        static_assert(next_power_of_two(LIMIT + (SPILLS ? THREADS : 0)) <= SLOTS, "sort_row needs as much");
        slots = slots_for<SLOTS>(most_columns);
        clear_keys<THREADS>(keys, slots);
        for (int i = threadIdx.x; i < slots / 2; i += THREADS) ((double2 *)sums)[i] = make_double2(-0.0, -0.0);
        if (SPILLS && threadIdx.x == 0) *fill = 0;
        refuses = false;
        __syncthreads();
    }
    /* The slots of the columns, -1 for EMPTY and for those that are refused. */
    template <int N> __device__ __forceinline__ void find(const int32_t (&col)[N], int (&slot)[N])
    {
        int32_t key[N];
#pragma unroll
        for (int u = 0; u < N; u++) {
            slot[u] = col[u] == EMPTY ? -1 : home_slot(col[u], slots);
            key[u] = col[u] == EMPTY ? EMPTY : look(keys, slot[u]);
        }
#pragma unroll
        for (int u = 0; u < N; u++) {
            bool fresh;
            if (key[u] == col[u]) continue;
            slot[u] = find_slot(keys, slots, col[u], slot[u], key[u], SPILLS ? fill : nullptr, LIMIT, &fresh);
            if (SPILLS && fresh) atomicAdd(fill, 1);
            refuses = refuses || slot[u] < 0;
        }
    }
    template <int N> __device__ __forceinline__ void add(const int32_t (&col)[N], const double (&product)[N])
    {
        int slot[N];
        find<N>(col, slot);
#pragma unroll
        for (int u = 0; u < N; u++)
            if (slot[u] >= 0) sums[slot[u]] = __dadd_rn(sums[slot[u]], product[u]);
    }
};

/* A sum for every column, in global memory, for rows that no table holds: 8 bytes read and written a product;
 * columns that are hit often stay in the first-level cache. All ones (a NaN that no sum can be) marks an untouched
 * sum; touched columns are noted in a bit mask, from which they come out sorted. */
struct global_sums {
    unsigned long long *sums; /* cols, all ones between rows */
    uint32_t *touched;        /* a bit a column, zero between rows */
    __device__ bool full() const { return false; }

    static constexpr unsigned long long UNTOUCHED = ~0ull;

    template <int N> __device__ __forceinline__ void add(const int32_t (&col)[N], const double (&product)[N])
    {
        unsigned long long old[N];
#pragma unroll
        for (int u = 0; u < N; u++) old[u] = col[u] == EMPTY ? 0 : sums[col[u]];
#pragma unroll
        for (int u = 0; u < N; u++) {
            if (col[u] == EMPTY) continue;
            double sum = product[u];
            if (old[u] == UNTOUCHED) atomicOr(touched + col[u] / 32, 1u << (col[u] % 32));
            else sum = __dadd_rn(__longlong_as_double((long long)old[u]), sum);
            sums[col[u]] = (unsigned long long)__double_as_longlong(sum);
        }
    }
    /* Calls write(i, column, sum) for the i-th touched column, ascending, and clears it; returns their number. */
    template <int THREADS, typename Write> __device__ int take_all(int64_t cols, uint64_t *scratch, Write write)
    {
        const int64_t words = (cols + 31) / 32;
        int done = 0;
        for (int64_t base = 0; base < words; base += THREADS) {
            const int64_t at = base + threadIdx.x;
            uint32_t bits = at < words ? __ldcg(touched + at) : 0;
            int total, place = done + block_scan<THREADS>(__popc(bits), &total, scratch);
            if (bits) __stcg(touched + at, 0u);
            for (; bits; bits &= bits - 1) {
                const int32_t col = (int32_t)(at * 32) + __ffs((int)bits) - 1;
                write(place++, col, __longlong_as_double((long long)sums[col]));
                sums[col] = UNTOUCHED;
            }
            done += total;
        }
        __syncthreads();
        return done;
    }
};

/* A table for the columns that come first, which in clustered networks are those hit most, and a sum a column in
 * global memory for those that come when it is full. A column that found the table full finds it full ever after, so
 * that each has one home. */
template <int SLOTS, int LIMIT> struct spilling_sums {
    row_table<SLOTS, LIMIT, true> table;
    global_sums overflow;
    __device__ bool full() const { return false; }

    template <int N> __device__ __forceinline__ void add(const int32_t (&col)[N], const double (&product)[N])
    {
        int slot[N];
        int32_t overflow_col[N];
        bool overflows = false;
        table.template find<N>(col, slot);
#pragma unroll
        for (int u = 0; u < N; u++) {
            if (slot[u] >= 0) table.sums[slot[u]] = __dadd_rn(table.sums[slot[u]], product[u]);
            overflow_col[u] = slot[u] < 0 ? col[u] : EMPTY;
            overflows = overflows || overflow_col[u] != EMPTY;
        }
        if (overflows) overflow.add<N>(overflow_col, product);
    }
    /* Moves the table's sums to global memory. Ends with a barrier. */
    template <int THREADS> __device__ void flush()
    {
        for (int i = threadIdx.x; i < table.slots; i += THREADS) {
            const int32_t col = table.keys[i];
            if (col == EMPTY) continue;
            atomicOr(overflow.touched + col / 32, 1u << (col % 32));
            overflow.sums[col] = (unsigned long long)__double_as_longlong(table.sums[i]);
        }
        __syncthreads();
    }
};

/* ---- the walk over a row's products, and kernels ------------------------------------------------------ */

/* Rows of B that a block looks up at a time, so that their offsets are at hand when their turn comes. */
template <int THREADS, typename V> struct walk_memory {
    static constexpr int CHUNK = THREADS < 128 ? THREADS : 128;
    int64_t start[CHUNK];
    int32_t length[CHUNK];
    V weight[CHUNK];
};

/* Up to DEPTH entries a thread of one row of B, loaded ahead of their use. */
template <int THREADS, int DEPTH, typename V> struct piece {
    int32_t col[DEPTH];
    V value[DEPTH];

    template <typename Job> __device__ __forceinline__ void load(const Job &job, int64_t start, int length)
    {
#pragma unroll
        for (int u = 0; u < DEPTH; u++) {
            const int i = threadIdx.x + u * THREADS;
            col[u] = i < length ? __ldg(job.b_cols + start + i) : EMPTY;
            value[u] = i < length && job.b_values ? __ldg(job.b_values + start + i) : V(1);
        }
    }
};

/* Hands every product of a row to its sums, one row of B between two barriers. Ends early and returns false when a
 * thread's sums are full. Uniform over the block. */
template <int THREADS, int DEPTH, typename Job, typename Sums>
__device__ __forceinline__ bool walk_block_row(const Job &job, const taken_row &taken,
                                         walk_memory<THREADS, typename Job::value> &memory, Sums &sums)
{
    using V = typename Job::value;
    constexpr int CHUNK = walk_memory<THREADS, V>::CHUNK;
    const entry_range a = job.ranges.row_of_a(taken.place, taken.row);
    const bool in_f32 = job.in_f32(taken.row);
    for (int64_t base = a.start; base < a.start + a.length; base += CHUNK) {
        const int count = (int)min(a.start + a.length - base, (int64_t)CHUNK);
        for (int i = threadIdx.x; i < count; i += THREADS) {
            const entry_range b = job.ranges.row_of_b(base + i);
            memory.weight[i] = job.ranges.value_of_a(job.a_values, base + i);
            memory.start[i] = b.start;
            memory.length[i] = b.length;
        }
        __syncthreads();
        piece<THREADS, DEPTH, V> next;
        next.load(job, memory.start[0], memory.length[0]);
        for (int k = 0; k < count; k++) {
            const piece<THREADS, DEPTH, V> now = next;
            if (k + 1 < count) next.load(job, memory.start[k + 1], memory.length[k + 1]);
            const V weight = memory.weight[k];
            double products[DEPTH];
#pragma unroll
            for (int u = 0; u < DEPTH; u++) products[u] = product_of(weight, now.value[u], in_f32);
            sums.template add<DEPTH>(now.col, products);
            const int length = memory.length[k];
            for (int i = threadIdx.x + DEPTH * THREADS; i < length; i += THREADS) {
                const int64_t at = memory.start[k] + i;
                const int32_t col[1] = {job.b_cols[at]};
                const double product[1] = {product_of(weight, job.b_values ? job.b_values[at] : V(1), in_f32)};
                sums.template add<1>(col, product);
            }
            /* A vote costs more than a barrier; threads with a full table only drop products until the next. */
            if (k % 16 == 15 || k + 1 == count) {
                if (__syncthreads_or(sums.full())) return false;
            } else {
                __syncthreads();
            }
        }
    }
    return true;
}

/* Rows that a table of SLOTS holds. Registers are to suffice for BLOCKS blocks of at least 64 threads: 32 blocks of
 * 32 threads would do as 16 of 64, but not every device has room for 32. */
template <typename Job, int THREADS, int SLOTS, int DEPTH, int BLOCKS>
__global__ void __launch_bounds__(THREADS < 64 ? 64 : THREADS, BLOCKS) sum_rows(Job job, work_list work, char *)
{
    extern __shared__ __align__(16) double table_memory[];
    __shared__ typename Job::memory memory;
    __shared__ walk_memory<THREADS, typename Job::value> walk;
    row_table<SLOTS, table_limit<SLOTS>::value, Job::SPILLS> table(table_memory, &memory.fill);
    for (taken_row at; (at = take_row(work, &memory.taken)).row >= 0;) {
        table.template clear<THREADS>(job.most_columns(at.row));
        if (walk_block_row<THREADS, DEPTH>(job, at, walk, table)) job.template finish<THREADS>(at.row, table, memory);
        else if (threadIdx.x == 0) work.spill[atomicAdd(work.spill_count, 1)] = at.row;
    }
}

static __host__ __device__ int64_t rounded_cols(int64_t cols) { return cols > 0 ? (cols + 63) / 64 * 64 : 64; }

/* Bytes of global memory that a block of the kernel below needs: sums, bits, and the job's own. */
template <typename Job> static __host__ __device__ int64_t global_bytes(int64_t cols)
{
    return rounded_cols(cols) * (int64_t)(sizeof(double) + Job::SCRATCH) + rounded_cols(cols) / 8;
}

/* Makes a block's share of the scratch ready; every row leaves it so. */
template <typename Job> static __global__ void clear_global(int64_t cols, char *scratch)
{
    const int64_t rounded = rounded_cols(cols);
    char *own = scratch + global_bytes<Job>(cols) * blockIdx.x;
    for (int64_t i = threadIdx.x; i < rounded; i += blockDim.x) ((unsigned long long *)own)[i] = global_sums::UNTOUCHED;
    for (int64_t i = threadIdx.x; i < rounded / 32; i += blockDim.x) ((uint32_t *)(own + rounded * 8))[i] = 0;
}

/* Any rows. `scratch`: global_bytes a block. Without a table, SLOTS being 0, where columns are hit alike: one of 3,840
 * slots takes the wide rows of R-MAT 18 from 104 to 129 ms. */
template <typename Job, int SLOTS, int LIMIT, int DEPTH>
__global__ void __launch_bounds__(GLOBAL_THREADS, GLOBAL_BLOCKS) sum_global_rows(Job job, work_list work, char *scratch)
{
    extern __shared__ __align__(16) double table_memory[];
    __shared__ typename Job::memory memory;
    __shared__ walk_memory<GLOBAL_THREADS, typename Job::value> walk;
    const int64_t rounded = rounded_cols(job.cols);
    char *own = scratch + global_bytes<Job>(job.cols) * blockIdx.x;
    global_sums overflow = {(unsigned long long *)own, (uint32_t *)(own + rounded * 8)};
    for (taken_row at; (at = take_row(work, &memory.taken)).row >= 0;) {
        if constexpr (SLOTS > 0) {
            spilling_sums<SLOTS, LIMIT> sums = {{table_memory, &memory.fill}, overflow};
            sums.table.template clear<GLOBAL_THREADS>(job.most_columns(at.row));
            walk_block_row<GLOBAL_THREADS, DEPTH>(job, at, walk, sums);
            if (!__syncthreads_or(sums.table.full())) {
                job.template finish<GLOBAL_THREADS>(at.row, sums.table, memory);
                continue;
            }
            sums.template flush<GLOBAL_THREADS>();
        } else {
            walk_block_row<GLOBAL_THREADS, DEPTH>(job, at, walk, overflow);
        }
        job.template finish_global<GLOBAL_THREADS>(at.row, overflow, own + rounded * 8 + rounded / 8, memory);
    }
}

/* ---- host ---------------------------------------------------------------------------------------------- */

/* A kernel and what it is launched with: 12 bytes of shared memory a slot. */
template <typename Job> struct numeric_class {
    void (*kernel)(Job, work_list, char *);
    int threads, slots, limit; /* columns that are sure to fit */
    size_t shared;
};

template <typename Job, int THREADS, int SLOTS, int DEPTH, int BLOCKS> static numeric_class<Job> table_class()
{
    return {sum_rows<Job, THREADS, SLOTS, DEPTH, BLOCKS>, THREADS, SLOTS, table_limit<SLOTS>::value,
            row_table<SLOTS, table_limit<SLOTS>::value, true>::BYTES};
}

template <typename Job, int SLOTS, int LIMIT, int DEPTH> static numeric_class<Job> global_class()
{
    return {sum_global_rows<Job, SLOTS, LIMIT, DEPTH>, GLOBAL_THREADS, SLOTS, INT32_MAX,
            row_table<SLOTS, LIMIT, true>::BYTES};
}

#endif
