/* C = epilogue(A·B): the Markov product on a CUDA device; see sp_markov_epilogue in sparse.h for the epilogue.
 *
 * One phase, no symbolic pass: a block sums a row of A·B in its accumulator, prunes, inflates and normalises it there
 * and appends what is left to a buffer; a scan and a copy make the CSR matrix. Rows start in the smallest table that
 * is sure to hold them, or in one that usually does, and move on to the next when it does not. The last class takes
 * any row: the columns that come first, which are those hit most, in a table in shared memory, the others in one f64
 * a column in global memory. Blocks stay resident and take rows from a counter. Within a class, rows are ordered by
 * the smallest hash among the columns of their heavier entries (a min-hash): rows of one community then run together
 * and share rows of B in the L2 cache.
 *
 * The expansion has the CPU's bits (common.cuh says why). Sums of the epilogue (mass, Σ c², the normalising sum) are
 * taken in 62-bit fixed point scaled by the row's largest entry, which no order of additions can change; they are
 * exact, and so the CPU's, as long as a row's entries span less than about 2^24.
 *
 * Work: 8 bytes of B and a few shared-memory cycles a product; for the epilogue some five passes over the table
 * (one more for each digit of a selection: 8 bits a time on the bits of the f32) and a sort of what is kept, together
 * below 5 % of a row of 10^5 products.
 */
#include <math.h>

#include "common.cuh"

/* ---- constants ----------------------------------------------------------------------------------------- */

enum { DONE_CLASS = MAX_CLASSES - 1, MAX_PASSES = 16, COUNTERS = 256 };
enum { SEGMENT_ROWS = 1 << 16 }; /* rows a launch: tenths of a second of the heaviest; then interrupts are seen */
enum { PLACE_BITS = 48 };        /* a row's place: pass << PLACE_BITS | position in the pass's buffer */
/* The last class. Its table is kept below 3/5, where to find that a column is not there takes 3.6 looks. */
enum { LAST_THREADS = 512, LAST_DEPTH = 3, LAST_BLOCKS = 2 };

/* ---- device: the job ----------------------------------------------------------------------------------- */

struct markov_job {
    matrix_view<float> a, b;
    int64_t rows, cols;
    const int64_t *products;
    int64_t f32_from; /* rows of at least so many products multiply in f32 */
    float cutoff;     /* the smallest f32 that is not below the cutoff */
    int select, recover;
    double recover_mass, inflation;
    int32_t *out_cols; /* the pass's buffer */
    float *out_values;
    unsigned long long capacity, *used;
    int64_t pass;
    int64_t *places; /* -1 until the row is made */
    int32_t *lengths;
    sp_markov_row *stats;
    unsigned long long *expanded;
};

/* What a block keeps in static shared memory. */
template <int THREADS> struct row_memory {
    walk_memory<THREADS, float> walk;
    uint64_t reduce[32];
    unsigned histogram[256];
    int row, fill, gathered, digit, rank;
    unsigned long long place;
};

/* The summed row, as the epilogue sees it: `count` values of which some may be NaN, which means no entry. */
template <int SLOTS, int MOST> struct table_entries {
    const sum_table<SLOTS, MOST> &table;
    static constexpr bool SORTED = false;
    __device__ int count() const { return SLOTS; }
    __device__ int32_t col(int i) const { return table.table.keys[i]; }
    __device__ float value(int i) const
    {
        const double sum = table.sums[i];
        return sum == 0 ? __int_as_float(0x7fffffff) : __double2float_rn(sum);
    }
};

struct list_entries {
    const int32_t *cols;
    const float *values;
    int length;
    static constexpr bool SORTED = true;
    __device__ int count() const { return length; }
    __device__ int32_t col(int i) const { return cols[i]; }
    __device__ float value(int i) const { return values[i]; }
};

/* ---- device: sums that no order can change -------------------------------------------------------------- */

/* Fixed point for `terms` numbers whose magnitude is below 2^(power · (e + 1)), e the exponent of `largest`: the sum
 * stays below 2^62. */
struct fixed_point {
    double to, from;
    __device__ fixed_point(float largest, int terms, int power)
    {
        const int field = (__float_as_int(largest) >> 23) & 0xff;
        const int exponent = (field ? field : 1) - 126; /* |v| < 2^exponent */
        const int shift = 62 - (32 - __clz(terms)) - power * exponent;
        to = __longlong_as_double((long long)(1023 + shift) << 52);
        from = __longlong_as_double((long long)(1023 - shift) << 52);
    }
    __device__ unsigned long long fix(double value) const { return (unsigned long long)__double2ll_rn(value * to); }
    __device__ double sum(unsigned long long total) const { return (double)(long long)total * from; }
};

struct kept_part {
    int count;
    double mass;
};

/* Count and mass of the entries not below `bar`, which is not negative. */
template <int THREADS, typename Entries>
__device__ kept_part keep_above(const Entries &entries, float bar, const fixed_point &fixed, uint64_t *scratch)
{
    int count = 0;
    unsigned long long mass = 0;
    for (int i = threadIdx.x; i < entries.count(); i += THREADS) {
        const float value = entries.value(i);
        if (!(value >= bar)) continue;
        count++;
        mass += fixed.fix((double)value);
    }
    count = block_reduce<THREADS>(count, add_op(), scratch);
    return {count, fixed.sum(block_reduce<THREADS>(mass, add_op(), scratch))};
}

/* The nth largest value v with low <= v < high, low not negative; 0 when there are fewer. Four rounds of 8 bits. */
template <int THREADS, typename Entries>
__device__ float nth_largest(const Entries &entries, float low, float high, int nth, row_memory<THREADS> &memory)
{
    unsigned found = 0, mask = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += THREADS) memory.histogram[i] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < entries.count(); i += THREADS) {
            const float value = entries.value(i);
            const unsigned bits = __float_as_uint(value) & 0x7fffffffu;
            if (value >= low && value < high && (bits & mask) == found)
                atomicAdd(&memory.histogram[bits >> shift & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x < 32) { /* lane l holds the digits 255 - 8l and the seven below */
            const int lane = threadIdx.x;
            int own = 0;
            for (int d = 0; d < 8; d++) own += (int)memory.histogram[255 - 8 * lane - d];
            int above = own;
            for (int step = 1; step < 32; step *= 2) {
                const int other = __shfl_up_sync(FULL_WARP, above, step);
                if (lane >= step) above += other;
            }
            const unsigned reached = __ballot_sync(FULL_WARP, above >= nth);
            if (reached == 0 && lane == 0) memory.digit = -1;
            if (reached != 0 && lane == __ffs((int)reached) - 1) {
                int rank = nth - (above - own), digit = 255 - 8 * lane;
                while ((int)memory.histogram[digit] < rank) rank -= (int)memory.histogram[digit--];
                memory.digit = digit;
                memory.rank = rank;
            }
        }
        __syncthreads();
        if (memory.digit < 0) return 0;
        found |= (unsigned)memory.digit << shift;
        mask |= 0xffu << shift;
        nth = memory.rank;
    }
    return __uint_as_float(found);
}

/* ---- device: the epilogue ------------------------------------------------------------------------------ */

/* The value that an entry needs to stay, and the part of the row that has it. */
template <int THREADS, typename Entries>
__device__ float pruning_bar(const markov_job &job, const Entries &entries, int count, const fixed_point &fixed,
                             row_memory<THREADS> &memory, kept_part *part)
{
    *part = keep_above<THREADS>(entries, job.cutoff, fixed, memory.reduce);
    float bar = job.cutoff;
    if (part->count < job.recover && part->mass < job.recover_mass) {
        bar = count <= job.recover ? 0 : nth_largest<THREADS>(entries, 0, bar, job.recover - part->count, memory);
    } else if (job.select != 0 && part->count > job.select) {
        const int above_cutoff = part->count;
        bar = nth_largest<THREADS>(entries, bar, INFINITY, job.select, memory);
        *part = keep_above<THREADS>(entries, bar, fixed, memory.reduce);
        if (part->count >= job.recover || part->mass >= job.recover_mass) return bar;
        bar = above_cutoff <= job.recover
                  ? job.cutoff
                  : nth_largest<THREADS>(entries, job.cutoff, bar, job.recover - part->count, memory);
    } else {
        return bar;
    }
    *part = keep_above<THREADS>(entries, bar, fixed, memory.reduce);
    return bar;
}

static __device__ __forceinline__ float inflated(float value, double mass, double power)
{
    const float scaled = (float)__ddiv_rn((double)value, mass);
    if (power == 2) return (float)((double)scaled * (double)scaled);
    return power == 1 ? scaled : (float)pow((double)scaled, power);
}

/* Σ v² over a row of A, in an order fixed by THREADS. */
template <int THREADS> __device__ double row_squares(const matrix_view<float> &a, int row, uint64_t *scratch)
{
    double sum = 0;
    for (int64_t at = a.offsets[row] + threadIdx.x; at < a.offsets[row + 1]; at += THREADS)
        sum += (double)a.values[at] * (double)a.values[at];
    return block_reduce<THREADS>(sum, add_op(), scratch);
}

/* Prunes, inflates and normalises the summed row and writes it, unsorted unless the entries are sorted. Returns the
 * number kept, at *place of the output; -1 when the output is full, and the row is left for the next pass. */
template <int THREADS, typename Entries>
__device__ int finish_row(const markov_job &job, int row, const Entries &entries, row_memory<THREADS> &memory,
                          unsigned long long *place)
{
    int count = 0, magnitude = 0;
    float largest = 0;
    for (int i = threadIdx.x; i < entries.count(); i += THREADS) {
        const float value = entries.value(i);
        if (value != value) continue;
        count++;
        magnitude = max(magnitude, __float_as_int(value) & 0x7fffffff);
        largest = value > largest ? value : largest;
    }
    count = block_reduce<THREADS>(count, add_op(), memory.reduce);
    magnitude = block_reduce<THREADS>(magnitude, max_op(), memory.reduce);
    largest = block_reduce<THREADS>(largest, max_op(), memory.reduce);

    const fixed_point fixed(__int_as_float(magnitude), count, 1), fixed_squares(__int_as_float(magnitude), count, 2);
    unsigned long long squares = 0;
    for (int i = threadIdx.x; i < entries.count(); i += THREADS) {
        const double value = (double)entries.value(i);
        if (value == value) squares += fixed_squares.fix(value * value);
    }
    const double centre = fixed_squares.sum(block_reduce<THREADS>(squares, add_op(), memory.reduce));
    kept_part part;
    const float bar = pruning_bar<THREADS>(job, entries, count, fixed, memory, &part);
    const bool loop = part.count == 0 && job.recover == 0 && row < job.cols;
    const int kept = loop ? 1 : part.count;
    const double mass = loop ? 1 : part.mass;

    if (threadIdx.x == 0) memory.place = atomicAdd(job.used, (unsigned long long)kept);
    __syncthreads();
    *place = memory.place;
    if (*place + kept > job.capacity) return -1;
    int32_t *cols = job.out_cols + *place;
    float *values = job.out_values + *place;
    const auto keep = [&](int i) { return entries.value(i) >= bar; };
    const auto write = [&](int i, int to) {
        cols[to] = entries.col(i);
        values[to] = entries.value(i);
    };
    if (loop) {
        if (threadIdx.x == 0) {
            cols[0] = row;
            values[0] = 1;
        }
        __syncthreads();
    } else if (Entries::SORTED) {
        gather_in_order<THREADS>(entries.count(), memory.reduce, keep, write);
    } else {
        gather<THREADS>(entries.count(), &memory.gathered, keep, write);
    }

    /* From here every thread keeps to its own places of the output. Inflation is monotone: the largest stays so. */
    const float top = loop ? 1 : mass > 0 ? inflated(largest, mass, job.inflation) : 0;
    const fixed_point fixed_top(top, kept, 1);
    unsigned long long total = 0;
    for (int i = threadIdx.x; i < kept; i += THREADS) {
        values[i] = mass > 0 ? inflated(values[i], mass, job.inflation) : values[i];
        total += fixed_top.fix((double)values[i]);
    }
    const double sum = fixed_top.sum(block_reduce<THREADS>(total, add_op(), memory.reduce));
    const fixed_point fixed_after(1, kept, 2);
    unsigned long long after = 0;
    for (int i = threadIdx.x; i < kept; i += THREADS) {
        if (sum > 0) values[i] = (float)__ddiv_rn((double)values[i], sum);
        after += fixed_after.fix((double)values[i] * (double)values[i]);
    }
    const double squares_after = fixed_after.sum(block_reduce<THREADS>(after, add_op(), memory.reduce));
    const double squares_before = row_squares<THREADS>(job.a, row, memory.reduce);
    if (threadIdx.x == 0) {
        sp_markov_row facts;
        facts.chaos = (float)(((double)largest - centre) * (double)kept);
        facts.homogeneity = squares_after > 0 ? (float)(squares_before / squares_after) : 0;
        facts.kept_mass = (float)mass;
        facts.expanded = count;
        job.stats[row] = facts;
        job.lengths[row] = kept;
        job.places[row] = job.pass << PLACE_BITS | (int64_t)*place;
        atomicAdd(job.expanded, (unsigned long long)count);
    }
    return kept;
}

/* ---- device: kernels ----------------------------------------------------------------------------------- */

/* Rows whose distinct columns fit a table of SLOTS in shared memory; others go to the spill list. */
template <int THREADS, int SLOTS, int DEPTH, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) markov_rows(markov_job job, work_list work, char *)
{
    extern __shared__ __align__(16) double table_memory[];
    __shared__ row_memory<THREADS> memory;
    sum_table<SLOTS> table(table_memory, &memory.fill);
    for (int row; (row = take_row(work, &memory.row)) >= 0;) {
        table.template clear<THREADS>();
        const bool in_f32 = job.products[row] >= job.f32_from;
        if (!walk_products<THREADS, DEPTH>(job.a, job.b, row, in_f32, memory.walk, table)) {
            if (threadIdx.x == 0) work.spill[atomicAdd(work.spill_count, 1)] = row;
            continue;
        }
        unsigned long long place;
        const int kept = finish_row<THREADS>(job, row, table_entries<SLOTS, SLOTS / 5 * 4>{table}, memory, &place);
        if (kept > 1)
            sort_row<THREADS>(job.out_cols + place, job.out_values + place, kept, (uint32_t *)table.table.keys,
                              (float *)table.sums);
    }
}

/* Bytes of global memory that a block of the last class needs. */
static __host__ __device__ int64_t wide_bytes(int64_t cols)
{
    const int64_t rounded = (cols + 63) / 64 * 64;
    return rounded * (int64_t)(sizeof(double) + sizeof(int32_t) + sizeof(float)) + rounded / 8;
}

/* Any rows. `scratch`: wide_bytes a block: sums (all ones), columns, values, touched bits (zero). */
template <int SLOTS, int MOST>
__global__ void __launch_bounds__(LAST_THREADS, LAST_BLOCKS)
    markov_last_rows(markov_job job, work_list work, char *scratch)
{
    extern __shared__ __align__(16) double table_memory[];
    __shared__ row_memory<LAST_THREADS> memory;
    const int64_t rounded = (job.cols + 63) / 64 * 64;
    char *own = scratch + wide_bytes(job.cols) * blockIdx.x;
    mixed_sums<SLOTS, MOST> sums = {sum_table<SLOTS, MOST>(table_memory, &memory.fill),
                                    {(unsigned long long *)own, (uint32_t *)(own + rounded * 16)}};
    int32_t *cols = (int32_t *)(own + rounded * 8);
    float *values = (float *)(own + rounded * 12);
    for (int row; (row = take_row(work, &memory.row)) >= 0;) {
        const bool in_f32 = job.products[row] >= job.f32_from;
        unsigned long long place;
        sums.near.template clear<LAST_THREADS>();
        walk_products<LAST_THREADS, LAST_DEPTH>(job.a, job.b, row, in_f32, memory.walk, sums);
        if (!__syncthreads_or(sums.near.full())) {
            const table_entries<SLOTS, MOST> entries = {sums.near};
            const int kept = finish_row<LAST_THREADS>(job, row, entries, memory, &place);
            if (kept > 1)
                sort_row<LAST_THREADS>(job.out_cols + place, job.out_values + place, kept,
                                       (uint32_t *)sums.near.table.keys, (float *)sums.near.sums);
            continue;
        }
        sums.template flush<LAST_THREADS>();
        const auto write = [=](int i, int32_t col, double sum) {
            cols[i] = col;
            values[i] = sum == 0 ? __int_as_float(0x7fffffff) : __double2float_rn(sum);
        };
        const int count = sums.far.template drain<LAST_THREADS>(job.cols, memory.reduce, write);
        finish_row<LAST_THREADS>(job, row, list_entries{cols, values, count}, memory, &place);
    }
}

/* Makes a block's share of the scratch ready. */
static __global__ void clear_wide_scratch(int64_t cols, char *scratch)
{
    const int64_t rounded = (cols + 63) / 64 * 64, words = rounded / 32;
    char *own = scratch + wide_bytes(cols) * blockIdx.x;
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) ((unsigned long long *)own)[i] = wide_sums::UNTOUCHED;
    for (int64_t i = threadIdx.x; i < words; i += blockDim.x) ((uint32_t *)(own + rounded * 16))[i] = 0;
}

/* ---- device: survey and assembly ----------------------------------------------------------------------- */

/* Where rows start: the first class that is sure to hold them or that usually does, else the last, which is the one
 * after `classes` tables. */
struct class_rules {
    int classes;
    int64_t limit[MAX_CLASSES];   /* distinct columns that the class holds */
    int64_t hopeful[MAX_CLASSES]; /* products up to which it is tried although they may be too many */
};

struct survey_result {
    unsigned long long products, kept_bound, f32_rows;
    uint32_t class_rows[MAX_CLASSES];
};

/* Classes and min-hashes of the rows that are not made yet; eight lanes a row. */
static __global__ void survey_rows(markov_job job, class_rules rules, int64_t most_kept, uint32_t *keys,
                                   survey_result *result)
{
    __shared__ uint64_t reduce[32];
    __shared__ uint32_t histogram[MAX_CLASSES];
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8;
    const bool leader = threadIdx.x % 8 == 0 && row < job.rows;
    const bool waiting = row < job.rows && job.places[row] < 0;
    if (threadIdx.x < MAX_CLASSES) histogram[threadIdx.x] = 0;
    __syncthreads();

    uint32_t smallest = UINT32_MAX;
    if (waiting) {
        const int64_t first = job.a.offsets[row], end = job.a.offsets[row + 1];
        const float length = (float)(end - first);
        for (int64_t at = first + threadIdx.x % 8; at < end; at += 8)
            if (job.a.values[at] * length >= 1) /* the row's mass is 1 or so: entries above the mean */
                smallest = min(smallest, (uint32_t)job.a.cols[at] * 0x85ebca6bu ^ 0x27d4eb2fu);
    }
    for (int step = 4; step > 0; step /= 2) smallest = min(smallest, __shfl_xor_sync(FULL_WARP, smallest, step));

    unsigned long long products = 0, bound = 0, f32_rows = 0;
    if (leader) {
        uint32_t key = (uint32_t)DONE_CLASS << CLASS_SHIFT;
        if (waiting) {
            products = (unsigned long long)job.products[row];
            const int64_t distinct = min(job.products[row], job.cols);
            int start = 0;
            while (start < rules.classes && distinct > rules.limit[start] && job.products[row] > rules.hopeful[start])
                start++;
            bound = (unsigned long long)max((long long)min(distinct, most_kept), 1ll);
            f32_rows = job.products[row] >= job.f32_from;
            key = (uint32_t)start << CLASS_SHIFT | smallest >> (32 - CLASS_SHIFT);
        }
        keys[row] = key;
        atomicAdd(&histogram[key >> CLASS_SHIFT], 1u);
    }
    products = block_reduce<256>(products, add_op(), reduce);
    bound = block_reduce<256>(bound, add_op(), reduce);
    f32_rows = block_reduce<256>(f32_rows, add_op(), reduce);
    if (threadIdx.x == 0) {
        atomicAdd(&result->products, products);
        atomicAdd(&result->kept_bound, bound);
        atomicAdd(&result->f32_rows, f32_rows);
    }
    if (threadIdx.x < MAX_CLASSES && histogram[threadIdx.x])
        atomicAdd(&result->class_rows[threadIdx.x], histogram[threadIdx.x]);
}

struct pass_buffers {
    const int32_t *cols[MAX_PASSES];
    const float *values[MAX_PASSES];
};

/* Copies every row from the buffer of its pass to its place in C; a warp a row. */
static __global__ void assemble(int64_t rows, const int64_t *places, const int64_t *offsets, pass_buffers from,
                                int32_t *cols, float *values)
{
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    const int pass = (int)(places[row] >> PLACE_BITS);
    const int64_t source = places[row] & (((int64_t)1 << PLACE_BITS) - 1), to = offsets[row];
    const int64_t length = offsets[row + 1] - to;
    for (int64_t i = threadIdx.x % 32; i < length; i += 32) {
        cols[to + i] = from.cols[pass][source + i];
        values[to + i] = from.values[pass][source + i];
    }
}

/* ---- host ---------------------------------------------------------------------------------------------- */

/* Tables in the order in which rows move on. Shared memory of a block: 12 bytes a slot and 4 KB; slots as many as let
 * `BLOCKS` blocks share the 228 KB of a Hopper multiprocessor. `hopeful`: rows of a clustered network have several
 * products a column, the more the longer they are. */
struct markov_class {
    void (*kernel)(markov_job, work_list, char *);
    int threads, limit;
    size_t shared;
    int64_t hopeful;
};

template <int THREADS, int SLOTS, int DEPTH, int BLOCKS> static markov_class class_of(int64_t hopeful)
{
    return {markov_rows<THREADS, SLOTS, DEPTH, BLOCKS>, THREADS, key_table<SLOTS>::LIMIT, sum_table<SLOTS>::BYTES,
            hopeful};
}

static const markov_class CLASSES[] = {
    class_of<32, 512, 4, 16>(0),          class_of<128, 2048, 4, 8>(5000), class_of<256, 4096, 4, 4>(20000),
    class_of<512, 9216, 3, 2>(INT64_MAX), class_of<1024, 18432, 2, 1>(0),
};
/* Where global memory allows the last class to fill the device, it follows the first three tables at once. */
enum { CLASS_COUNT = sizeof CLASSES / sizeof *CLASSES, SMALL_CLASSES = 3 };

template <int SLOTS, int MOST> static markov_class last_class()
{
    return {markov_last_rows<SLOTS, MOST>, LAST_THREADS, INT32_MAX, sum_table<SLOTS, MOST>::BYTES, 0};
}

/* For devices with much shared memory and with little (100 KB a multiprocessor). */
static const markov_class LAST_CLASSES[2] = {last_class<9216, 5500>(), last_class<3840, 1536>()};

/* Everything that one call holds on the device. */
struct markov_run {
    sp_context *context;
    markov_job job;
    class_rules rules;
    const markov_class *last;
    int64_t most_kept;
    device_array<int64_t> products, places;
    device_array<int32_t> lengths, spilled[2], pass_cols[MAX_PASSES];
    device_array<float> pass_values[MAX_PASSES];
    device_array<uint32_t> keys;
    device_array<sp_markov_row> stats;
    device_array<survey_result> survey;
    device_array<unsigned long long> totals; /* expanded, used */
    device_array<int> counters;              /* COUNTERS takers, then a spill count a class */
    int counters_used;
    device_array<char> scratch;              /* of the last class, for scratch_blocks blocks */
    int scratch_blocks;
};

/* The tables that fit this device; how many blocks of the last class its memory can serve. */
static sp_status set_rules(markov_run *run, int64_t cols)
{
    sp_context *context = run->context;
    const size_t fixed = sizeof(row_memory<1024>) + 1024; /* static part, and what the driver takes of a block */
    class_rules *rules = &run->rules;
    size_t available;
    int full;
    TRY(cuda_available(context, &available));
    const size_t shared_limit = cuda_state_of(context)->shared_limit - fixed;
    run->last = &LAST_CLASSES[LAST_CLASSES[0].shared > shared_limit];
    TRY(cuda_grid(context, run->last->kernel, LAST_THREADS, run->last->shared, INT32_MAX, &full));
    const int64_t affordable = (int64_t)available / 4 / wide_bytes(cols);
    run->scratch_blocks = affordable >= full ? full : affordable > 1 ? (int)affordable : 1;
    const int wanted = affordable >= full ? SMALL_CLASSES : CLASS_COUNT;
    for (rules->classes = 0; rules->classes < wanted; rules->classes++) {
        const markov_class *kind = &CLASSES[rules->classes];
        if (kind->shared > shared_limit) break;
        rules->limit[rules->classes] = kind->limit;
        rules->hopeful[rules->classes] = kind->hopeful;
    }
    return SP_OK;
}

static sp_status prepare(markov_run *run, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue)
{
    sp_context *context = run->context;
    markov_job *job = &run->job;
    const int64_t rows = a->rows, factor = epilogue->dense_factor;
    TRY(set_rules(run, b->cols));
    TRY(run->products.allocate(context, rows));
    TRY(run->places.allocate(context, rows));
    TRY(run->lengths.allocate(context, rows + 1));
    TRY(run->spilled[0].allocate(context, rows));
    TRY(run->spilled[1].allocate(context, rows));
    TRY(run->keys.allocate(context, rows));
    TRY(run->stats.allocate(context, rows));
    TRY(run->survey.allocate(context, 1));
    TRY(run->totals.allocate(context, 2));
    TRY(run->counters.allocate(context, COUNTERS + MAX_CLASSES));
    TRY(run->places.fill(0xff, rows));
    TRY(run->lengths.fill(0, rows + 1));
    TRY(run->totals.fill(0, 2));
    TRY(cuda_row_products(context, a, b, run->products.data));

    float cutoff = (float)epilogue->cutoff;
    if ((double)cutoff < epilogue->cutoff) cutoff = nextafterf(cutoff, INFINITY);
    job->a = view_of<float>(a);
    job->b = view_of<float>(b);
    job->rows = rows;
    job->cols = b->cols;
    job->products = run->products.data;
    job->f32_from = factor > 0 ? (b->cols + factor - 1) / factor : INT64_MAX;
    job->cutoff = cutoff;
    job->select = (int)(epilogue->select < INT32_MAX ? epilogue->select : INT32_MAX);
    job->recover = (int)(epilogue->recover < INT32_MAX ? epilogue->recover : INT32_MAX);
    job->recover_mass = epilogue->recover_mass;
    job->inflation = epilogue->inflation;
    job->places = run->places.data;
    job->lengths = run->lengths.data;
    job->stats = run->stats.data;
    job->expanded = run->totals.data;
    job->used = run->totals.data + 1;
    /* Ties may keep more than selection and recovery ask for, hence some room. */
    const int64_t most = epilogue->select > epilogue->recover ? epilogue->select : epilogue->recover;
    run->most_kept = epilogue->select ? most + most / 64 + 16 : INT64_MAX;
    return SP_OK;
}

/* Counts, classes and order of the rows that are still to be made. */
static sp_status survey(markov_run *run, survey_result *result, row_order *order)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t rows = run->job.rows;
    TRY(run->survey.fill(0, 1));
    if (rows > 0) {
        survey_rows<<<(unsigned)((rows * 8 + 255) / 256), 256, 0, stream>>>(run->job, run->rules, run->most_kept,
                                                                           run->keys.data, run->survey.data);
        CUDA_TRY(cudaGetLastError());
    }
    CUDA_TRY(cudaMemcpyAsync(result, run->survey.data, sizeof *result, cudaMemcpyDeviceToHost, stream));
    return cuda_order_rows(context, rows, run->keys.data, 0, run->survey.data->class_rows, order);
}

/* The buffer for one pass: enough for all rows that are left, or what memory allows beside C. */
static sp_status open_pass(markov_run *run, int pass, const survey_result *result)
{
    sp_context *context = run->context;
    const size_t entry = sizeof(int32_t) + sizeof(float);
    size_t available;
    TRY(cuda_available(context, &available));
    const size_t affordable = available / 8 * 3 / entry;
    const size_t capacity = result->kept_bound < affordable ? (size_t)result->kept_bound : affordable;
    TRY(run->pass_cols[pass].allocate(context, (int64_t)capacity));
    TRY(run->pass_values[pass].allocate(context, (int64_t)capacity));
    run->job.out_cols = run->pass_cols[pass].data;
    run->job.out_values = run->pass_values[pass].data;
    run->job.capacity = capacity;
    run->job.pass = pass;
    CUDA_TRY(cudaMemsetAsync(run->job.used, 0, sizeof *run->job.used, cuda_state_of(context)->stream));
    TRY(run->counters.fill(0, COUNTERS + MAX_CLASSES));
    run->counters_used = 0;
    return SP_OK;
}

/* The rows of class c and then up to extra_bound that the class before gave up on. */
static sp_status run_class(markov_run *run, int c, const row_order *order, int64_t extra_bound)
{
    sp_context *context = run->context;
    const markov_class *kind = c < run->rules.classes ? &CLASSES[c] : run->last;
    const int64_t end = order->begin[c + 1];
    int64_t first = order->begin[c], segment = run->job.rows / 16;
    if (segment < SEGMENT_ROWS) segment = SEGMENT_ROWS;
    do {
        const int64_t last = end - first < segment ? end : first + segment;
        const int64_t extra = last == end ? extra_bound : 0;
        work_list work;
        work.own = order->rows.data + first;
        work.own_count = (int)(last - first);
        work.extra = extra > 0 ? run->spilled[(c + 1) % 2].data : nullptr;
        work.extra_count = run->counters.data + COUNTERS + (c > 0 ? c - 1 : 0);
        work.next = run->counters.data + run->counters_used++;
        work.spill = run->spilled[c % 2].data;
        work.spill_count = run->counters.data + COUNTERS + c;
        int blocks;
        TRY(cuda_grid(context, kind->kernel, kind->threads, kind->shared, work.own_count + extra, &blocks));
        if (kind == run->last && blocks > run->scratch_blocks) blocks = run->scratch_blocks;
        kind->kernel<<<blocks, kind->threads, kind->shared, cuda_state_of(context)->stream>>>(run->job, work,
                                                                                             run->scratch.data);
        CUDA_TRY(cudaGetLastError());
        if (context->interrupt) TRY(cuda_finish(context));
        first = last;
    } while (first < end);
    return SP_OK;
}

/* The last class: its own rows and those that the tables gave up on. Its scratch stays for later passes. */
static sp_status run_last(markov_run *run, const row_order *order, int64_t may_spill)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int last = run->rules.classes;
    const int64_t own = order->begin[last + 1] - order->begin[last];
    if (may_spill > 0) {
        const int *spilled = run->counters.data + COUNTERS + last - 1;
        int count = 0;
        CUDA_TRY(cudaMemcpyAsync(&count, spilled, sizeof count, cudaMemcpyDeviceToHost, stream));
        TRY(cuda_finish(context));
        may_spill = count;
    }
    if (own + may_spill == 0) return SP_OK;
    if (!run->scratch.data) {
        TRY(run->scratch.allocate(context, run->scratch_blocks * wide_bytes(run->job.cols)));
        clear_wide_scratch<<<run->scratch_blocks, 1024, 0, stream>>>(run->job.cols, run->scratch.data);
        CUDA_TRY(cudaGetLastError());
    }
    return run_class(run, last, order, may_spill);
}

/* One pass over the rows that are left, class by class. */
static sp_status run_pass(markov_run *run, const row_order *order)
{
    int64_t may_spill = 0;
    for (int c = 0; c < run->rules.classes; c++) {
        const int64_t own = order->begin[c + 1] - order->begin[c];
        if (own + may_spill > 0) TRY(run_class(run, c, order, may_spill));
        if (run->rules.hopeful[c] > 0) may_spill += own;
    }
    return run_last(run, order, may_spill);
}

static sp_status make_rows(markov_run *run, sp_spgemm_info *info)
{
    sp_context *context = run->context;
    int64_t left = run->job.rows;
    for (int pass = 0; left > 0; pass++) {
        survey_result result;
        row_order order;
        TRY(survey(run, &result, &order));
        if (pass == 0) {
            info->products = (int64_t)result.products;
            info->dense_rows = (int64_t)result.f32_rows;
        }
        const int64_t still = order.begin[DONE_CLASS];
        if (still == 0) break;
        if (pass == MAX_PASSES || (pass > 0 && still == left))
            return sp_fail(context, SP_ERROR_DEVICE_MEMORY,
                           "%s: %lld of %lld rows of the product do not fit the memory left", context->device_name,
                           (long long)still, (long long)run->job.rows);
        left = still;
        TRY(open_pass(run, pass, &result));
        TRY(run_pass(run, &order));
        info->batches++;
    }
    return SP_OK;
}

static sp_status assemble_rows(markov_run *run, sp_csr *c)
{
    sp_context *context = run->context;
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t rows = run->job.rows;
    device_array<int64_t> offsets;
    int64_t nnz = 0;
    TRY(offsets.allocate(context, rows + 1));
    TRY(cuda_scan_counts(context, rows, run->lengths.data, offsets.data));
    CUDA_TRY(cudaMemcpyAsync(&nnz, offsets.data + rows, sizeof nnz, cudaMemcpyDeviceToHost, stream));
    TRY(cuda_finish(context));
    TRY(sp_csr_create(context, rows, run->job.cols, nnz, SP_F32, SP_DEVICE, c));
    CUDA_TRY(cudaMemcpyAsync(c->row_offsets, offsets.data, ((size_t)rows + 1) * sizeof(int64_t),
                             cudaMemcpyDeviceToDevice, stream));
    if (rows == 0) return SP_OK;
    pass_buffers from;
    for (int p = 0; p < MAX_PASSES; p++) {
        from.cols[p] = run->pass_cols[p].data;
        from.values[p] = run->pass_values[p].data;
    }
    assemble<<<(unsigned)((rows * 32 + 255) / 256), 256, 0, stream>>>(rows, run->places.data, c->row_offsets, from,
                                                                     c->col_indices, (float *)c->values);
    CUDA_TRY(cudaGetLastError());
    return SP_OK;
}

static sp_status markov_product(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                sp_spgemm_info *info)
{
    const double start = sp_seconds();
    cudaStream_t stream = cuda_state_of(context)->stream;
    markov_run run = {};
    unsigned long long expanded = 0;
    size_t before;
    run.context = context;
    TRY(cuda_watch_peak(context, &before));
    TRY(prepare(&run, a, b, epilogue));
    TRY(cuda_finish(context));
    info->analysis_seconds = sp_seconds() - start;
    TRY(make_rows(&run, info));
    TRY(assemble_rows(&run, c));
    if (rows && a->rows > 0) {
        const size_t bytes = (size_t)a->rows * sizeof *rows;
        CUDA_TRY(cudaMemcpyAsync(rows, run.stats.data, bytes, cudaMemcpyDeviceToHost, stream));
    }
    CUDA_TRY(cudaMemcpyAsync(&expanded, run.totals.data, sizeof expanded, cudaMemcpyDeviceToHost, stream));
    TRY(cuda_finish(context));
    info->product_nnz = (int64_t)expanded;
    info->nnz = c->nnz;
    TRY(cuda_peak(context, before, &info->peak_bytes));
    info->peak_bytes -= (a->rows + 1) * (int64_t)sizeof(int64_t) + c->nnz * (int64_t)(2 * sizeof(float));
    info->numeric_seconds = sp_seconds() - start - info->analysis_seconds;
    return SP_OK;
}

sp_status sp_cuda_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                sp_spgemm_info *info)
{
    sp_csr made = {};
    CUDA_TRY(cudaSetDevice(cuda_state_of(context)->device));
    const sp_status status = markov_product(context, a, b, epilogue, &made, rows, info);
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}
