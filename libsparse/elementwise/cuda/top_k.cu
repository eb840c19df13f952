/* The k largest entries of every row on a CUDA device.
 *
 * Values are compared as integers (keys.cuh). A bit an entry says whether it is kept, and kept entries are moved up
 * (entries.cuh). In a row of up to 32 entries each entry counts how many are larger. For up to 1,024 a warp finds the
 * k-th largest key bit by bit: it counts how many keys reach a candidate, until exactly k do, some 6 bits for random
 * values. Longer rows are cut into parts of 4,096 entries, a block each. The blocks count digits of 8 bits among the
 * keys that begin like the k-th largest; then one block a row chooses its next digit. Of the keys equal to the k-th
 * largest the first are kept. So a row of any length is shared by all blocks.
 *
 * Bytes an entry: v to choose, twice 4 + v to move it if it is kept, a quarter for bits and their sums; in long rows v
 * for every digit and twice v at the end. */
#include "device/entries.cuh"
#include "device/keys.cuh"

enum { SHORT = 32, LONG = 1024, PART = 4096, DIGIT = 8, BINS = 1 << DIGIT };
static_assert((int)BINS == (int)ENTRY_THREADS, "a thread a bin");

/* A row that is cut into parts, and what is known of its k-th largest key. */
struct long_row {
    int64_t row, first_part;
    int64_t left;    /* this many of the keys that begin like it stay */
    uint64_t prefix; /* its digits so far, the others zero */
    bool exact;      /* just the keys from `prefix` on stay */
};

struct long_rows {
    long_row *rows;
    int32_t *owners; /* of parts: places in `rows` */
    int32_t *counts; /* rows, then parts there are */
};

/* Bits of rows of up to SHORT entries, of those that stay whole, and of patterns; of all others none. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    mark_short_rows(int64_t rows, int64_t nnz, const int64_t *offsets, const V *values, int64_t k, uint32_t *words)
{
    const auto stays = [&](int64_t row, int64_t at) {
        const int64_t begin = __ldg(offsets + row), end = __ldg(offsets + row + 1);
        if (end - begin <= k || !values) return at - begin < k;
        if (end - begin > SHORT) return false;
        const auto key = key_of(__ldg(values + at));
        int larger = 0;
        for (int64_t e = begin; e < end; e++) {
            const auto other = key_of(__ldg(values + e));
            larger += other > key || (other == key && e < at);
        }
        return larger < k;
    };
    for_entries(rows, nnz, offsets, stays, [&](int64_t at, bool stay) { mark_entry(words, nnz, at, stay); });
}

static __device__ __forceinline__ uint32_t or_of_warp(uint32_t value) { return warp_or(value); }
static __device__ __forceinline__ uint64_t or_of_warp(uint64_t value)
{
    return (uint64_t)warp_or((unsigned)(value >> 32)) << 32 | warp_or((unsigned)value);
}

/* Bits of a row of SHORT to LONG entries; the k largest stay. From the highest bit in which keys differ, the
 * k-th largest is found bit by bit, until just k keys reach it. */
template <typename V>
static __device__ __forceinline__ void mark_row(const V *values, int64_t begin, int length, int64_t k,
                                                uint32_t *words)
{
    using K = typename key_type<V>::type;
    const int lane = threadIdx.x % 32;
    values += begin;
    const K own = key_of(__ldg(values + lane));
    K any = own, none = (K)~own;
    for (int i = lane + 32; i < length; i += 32) {
        const K key = key_of(__ldg(values + i));
        any |= key;
        none |= (K)~key;
    }
    any = or_of_warp(any);
    const K differing = any & or_of_warp(none);
    K bit = differing ? (K)1 << (63 - __clzll((long long)differing)) : 0;
    K least = bit ? any & ~(bit | (bit - 1)) : any;
    bool exact = false;
    for (; bit > 0 && !exact; bit >>= 1) {
        const K candidate = least | bit;
        unsigned reached = own >= candidate;
        for (int i = lane + 32; i < length; i += 32) reached += key_of(__ldg(values + i)) >= candidate;
        reached = warp_add(reached);
        if (reached >= k) least = candidate;
        exact = reached == k;
    }
    int64_t equals = k; /* to keep */
    if (!exact) {
        unsigned above = own > least;
        for (int i = lane + 32; i < length; i += 32) above += key_of(__ldg(values + i)) > least;
        equals -= warp_add(above);
    }
    for (int first = 0; first < length; first += 32) {
        const bool there = first + lane < length;
        const K key = first == 0 ? own : there ? key_of(__ldg(values + first + lane)) : 0;
        bool stays = there && key >= least;
        if (!exact) {
            const unsigned equal = __ballot_sync(FULL_WARP, there && key == least);
            stays = stays && (key > least || __popc(equal & ((1u << lane) - 1)) < equals);
            equals -= __popc(equal);
        }
        mark_warp(words, begin + first, __ballot_sync(FULL_WARP, stays));
    }
}

/* Lists a row of this many entries, and its parts. */
static __device__ __forceinline__ void list_row(const long_rows &cut, int64_t row, int64_t length, int64_t k)
{
    const int lane = threadIdx.x % 32, parts = (int)((length + PART - 1) / PART);
    int place = 0, first_part = 0;
    if (lane == 0) {
        place = atomicAdd(cut.counts, 1);
        first_part = atomicAdd(cut.counts + 1, parts);
        cut.rows[place] = {row, first_part, k, 0, false};
    }
    place = __shfl_sync(FULL_WARP, place, 0);
    first_part = __shfl_sync(FULL_WARP, first_part, 0);
    for (int i = lane; i < parts; i += 32) cut.owners[first_part + i] = place;
}

/* The other rows: a warp has 32 and takes what it must one after another. The long ones are listed. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    mark_rows(int64_t rows, const int64_t *offsets, const V *values, int64_t k, uint32_t *words, long_rows cut)
{
    const int64_t row = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    const int64_t own_begin = offsets[min(row, rows)], own_length = offsets[min(row + 1, rows)] - own_begin;
    for (unsigned left = __ballot_sync(FULL_WARP, own_length > max((int64_t)SHORT, k)); left; left &= left - 1) {
        const int owner = __ffs((int)left) - 1;
        const int64_t begin = __shfl_sync(FULL_WARP, own_begin, owner);
        const int64_t length = __shfl_sync(FULL_WARP, own_length, owner);
        if (length <= LONG) mark_row(values, begin, (int)length, k, words);
        else list_row(cut, row - threadIdx.x % 32 + owner, length, k);
    }
}

/* ---- long rows ------------------------------------------------------------------------------------------- */

/* The entries of this block's part. */
static __device__ __forceinline__ void find_part(const int64_t *offsets, const long_row &owner, int64_t *begin,
                                                 int64_t *end)
{
    *begin = offsets[owner.row] + (blockIdx.x - owner.first_part) * PART;
    *end = min(*begin + PART, offsets[owner.row + 1]);
}

/* Adds to the row's bins the digits at `shift` of the keys that begin like its k-th largest. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    count_digits(const int64_t *offsets, const V *values, long_rows cut, int shift, uint32_t *bins)
{
    using K = typename key_type<V>::type;
    __shared__ uint32_t own[BINS];
    const long_row owner = cut.rows[cut.owners[blockIdx.x]];
    int64_t begin, end;
    if (owner.exact) return;
    find_part(offsets, owner, &begin, &end);
    own[threadIdx.x] = 0;
    __syncthreads();
    const K known = shift + DIGIT < 8 * (int)sizeof(K) ? ~(K)0 << (shift + DIGIT) : 0;
    for (int64_t at = begin + threadIdx.x; at < end; at += ENTRY_THREADS) {
        const K key = key_of(__ldg(values + at));
        if ((key & known) == (K)owner.prefix) atomicAdd(own + (key >> shift) % BINS, 1u);
    }
    __syncthreads();
    if (own[threadIdx.x]) atomicAdd(bins + (int64_t)cut.owners[blockIdx.x] * BINS + threadIdx.x, own[threadIdx.x]);
}

/* The next digit of each row's k-th largest key; a thread a bin, the largest first. Leaves the bins zero. */
static __global__ void __launch_bounds__(ENTRY_THREADS) choose_digit(long_row *rows, int shift, uint32_t *bins)
{
    __shared__ uint64_t scratch[ENTRY_THREADS / 32];
    const long_row owner = rows[blockIdx.x];
    const uint32_t digit = BINS - 1 - threadIdx.x;
    int total;
    if (owner.exact) return;
    bins += (int64_t)blockIdx.x * BINS + digit;
    const int count = (int)*bins, before = block_scan<ENTRY_THREADS>(count, &total, scratch);
    *bins = 0;
    if (before < owner.left && owner.left <= before + (int64_t)count) {
        long_row known = owner;
        known.prefix |= (uint64_t)digit << shift;
        known.left -= before;
        known.exact = known.left == count;
        rows[blockIdx.x] = known;
    }
}

/* How many keys of each part equal the row's k-th largest. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    count_equal(const int64_t *offsets, const V *values, long_rows cut, int32_t *equal)
{
    __shared__ uint64_t scratch[ENTRY_THREADS / 32];
    const long_row owner = cut.rows[cut.owners[blockIdx.x]];
    int64_t begin, end;
    int count = 0;
    find_part(offsets, owner, &begin, &end);
    for (int64_t at = begin + threadIdx.x; at < end; at += ENTRY_THREADS)
        count += key_of(__ldg(values + at)) == (typename key_type<V>::type)owner.prefix;
    count = block_reduce<ENTRY_THREADS>(count, add_op{}, scratch);
    if (threadIdx.x == 0) equal[blockIdx.x] = count;
}

/* Bits of a part; equal_before[p] keys of the parts before p equal their rows' k-th largest. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    mark_part(const int64_t *offsets, const V *values, long_rows cut, const int64_t *equal_before, uint32_t *words)
{
    using K = typename key_type<V>::type;
    __shared__ uint64_t scratch[ENTRY_THREADS / 32];
    const long_row owner = cut.rows[cut.owners[blockIdx.x]];
    const K least = (K)owner.prefix;
    int64_t begin, end, equals = owner.left - (equal_before[blockIdx.x] - equal_before[owner.first_part]);
    find_part(offsets, owner, &begin, &end);
    for (int64_t first = begin; first < end; first += ENTRY_THREADS) {
        const int64_t at = first + threadIdx.x;
        const K key = at < end ? key_of(__ldg(values + at)) : 0;
        bool stays = at < end && key >= least;
        if (!owner.exact) {
            int total;
            const int before = block_scan<ENTRY_THREADS>(at < end && key == least, &total, scratch);
            stays = stays && (key > least || before < equals);
            equals -= total;
        }
        mark_warp(words, at - threadIdx.x % 32, __ballot_sync(FULL_WARP, stays));
    }
}

template <typename V>
static sp_status mark_long_rows(sp_context *context, const sp_csr *a, long_rows cut, int32_t rows, int32_t parts,
                                uint32_t *words)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const V *values = (const V *)a->values;
    const unsigned blocks = (unsigned)parts;
    device_array<uint32_t> bins;
    device_array<int32_t> equal;
    device_array<int64_t> equal_before;
    CHECK(bins.allocate(context, (int64_t)rows * BINS));
    CHECK(bins.fill(0, (int64_t)rows * BINS));
    CHECK(equal.allocate(context, parts));
    CHECK(equal_before.allocate(context, parts + 1));
    for (int shift = 8 * (int)sizeof(V) - DIGIT; shift >= 0; shift -= DIGIT) {
        count_digits<<<blocks, ENTRY_THREADS, 0, stream>>>(a->row_offsets, values, cut, shift, bins.data);
        choose_digit<<<(unsigned)rows, ENTRY_THREADS, 0, stream>>>(cut.rows, shift, bins.data);
    }
    count_equal<<<blocks, ENTRY_THREADS, 0, stream>>>(a->row_offsets, values, cut, equal.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, parts, equal.data, equal_before.data));
    mark_part<<<blocks, ENTRY_THREADS, 0, stream>>>(a->row_offsets, values, cut, equal_before.data, words);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

template <typename V> static sp_status top_k(sp_context *context, const sp_csr *a, int64_t k, sp_csr *b)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t most_rows = a->nnz / LONG;
    const V *values = (const V *)a->values;
    device_array<long_row> rows;
    device_array<int32_t> owners, counts;
    marked_part kept;
    int32_t found[2];
    CHECK(rows.allocate(context, most_rows));
    CHECK(owners.allocate(context, a->nnz / PART + most_rows));
    CHECK(counts.allocate(context, 2));
    CHECK(counts.fill(0, 2));
    CHECK(kept.create(context, a->nnz));
    const long_rows cut = {rows.data, owners.data, counts.data};
    if (a->nnz > 0 && k > 0)
        mark_short_rows<<<entry_blocks(a->nnz), ENTRY_THREADS, 0, stream>>>(a->rows, a->nnz, a->row_offsets, values,
                                                                            k, kept.words.data);
    if (a->nnz > 0 && k > 0 && values)
        mark_rows<<<thread_blocks(a->rows), ENTRY_THREADS, 0, stream>>>(a->rows, a->row_offsets, values, k,
                                                                        kept.words.data, cut);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(found, counts.data, sizeof found, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    if (found[0] > 0) CHECK(mark_long_rows<V>(context, a, cut, found[0], found[1], kept.words.data));
    CHECK(kept.count(context, a->nnz));
    CHECK(cuda_take_marked(context, a, &kept, a->cols, NULL, b));
    const sp_status status = cuda_finish(context);
    if (status != SP_OK) sp_csr_free(context, b);
    return status;
}

sp_status sp_cuda_top_k(sp_context *context, const sp_csr *a, int64_t k, sp_csr *b)
{
    return a->value_type == SP_F32 ? top_k<float>(context, a, k, b) : top_k<double>(context, a, k, b);
}
