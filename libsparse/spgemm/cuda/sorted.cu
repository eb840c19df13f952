/* Rows of C by sorting, a block each, or a warp each of up to 256 products.
 *
 * Plain products only, of up to THREADS·K a row: sorted by column and by their place in the row, so that equal
 * columns are added up in A's order. Where columns are spread over all of them, by counting: a bucket for two places,
 * and warps sort what is in order but within buckets. Else warps sort 32·K keys each in registers, then runs are
 * merged in shared memory, which takes two to three times as many instructions. */
#include "spgemm/cuda/classes.cuh"

template <int THREADS, int K> struct sorted_shape {
    static constexpr int PRODUCTS = THREADS * K, PLACE_BITS = log2_of(PRODUCTS), BUCKETS = PRODUCTS / 2;
};

/* A row of B that is multiplied: its first entry less the place of its first product. */
struct alignas(16) sorted_piece {
    double weight;
    uint32_t start;
};

/* Of each 32 of up to 8 products a thread: which begin a piece, and the pieces before them. */
template <int THREADS> struct piece_memory {
    static constexpr int WORDS = 8 * THREADS / 32;
    sorted_piece piece[THREADS];
    uint32_t heads[WORDS], before[WORDS];
    uint64_t scratch[32];
};

/* Calls take(place, column, weight, value) for the row's products, neighbours side by side, and two of a thread on
 * their way at once, four of a warp's own: more registers would cost warps. Returns their number. Ends with a
 * barrier. */
template <int THREADS, bool SUM, typename V, typename Take>
static __device__ __forceinline__ int walk_pieces(const product_view<V> &product, int64_t row,
                                                  piece_memory<THREADS> &memory, Take take)
{
    enum { AHEAD = THREADS == 32 ? 4 : 2, WORDS = piece_memory<THREADS>::WORDS };
    const unsigned up_to = lanes_below() * 2 + 1;
    const int64_t last = product.a.offsets[row + 1];
    int done = 0;
    for (int64_t base = product.a.offsets[row]; base < last; base += THREADS) {
        sorted_piece own = {};
        int length = 0, total;
        if (threadIdx.x < WORDS) memory.heads[threadIdx.x] = memory.before[threadIdx.x] = 0;
        if (base + threadIdx.x < last) {
            const int32_t k = __ldg(product.a.cols + base + threadIdx.x);
            const int64_t start = __ldg(product.b.offsets + k);
            if (SUM) own.weight = (double)__ldg(product.a.values + base + threadIdx.x);
            own.start = (uint32_t)start;
            length = (int)(__ldg(product.b.offsets + k + 1) - start);
        }
        if (THREADS == 32) __syncwarp();
        /* The pieces before this one, and below them their products; with several warps a barrier. */
        const int until = block_scan<THREADS>(length > 0 ? 1 << 16 | length : 0, &total, memory.scratch);
        const int place = until & 0xffff, pieces = until >> 16, products = total & 0xffff;
        if (length > 0) {
            own.start -= (uint32_t)place;
            memory.piece[pieces] = own;
            atomicOr(&memory.heads[place / 32], 1u << place % 32);
            for (int i = place / 32 + 1; i * 32 <= place + length && i < WORDS; i++)
                memory.before[i] = (uint32_t)pieces + 1;
        }
        __syncthreads();
        for (int group = (int)threadIdx.x & ~31; group < products; group += AHEAD * THREADS) {
            const int at = group + (int)(threadIdx.x & 31);
            int32_t col[AHEAD];
            V value[AHEAD];
            double weight[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                if (at + u * THREADS >= products) continue;
                const int word = at / 32 + u * (THREADS / 32);
                const sorted_piece piece = memory.piece[memory.before[word] + __popc(memory.heads[word] & up_to) - 1];
                const uint32_t entry = piece.start + (uint32_t)(at + u * THREADS);
                weight[u] = piece.weight;
                col[u] = __ldg(product.b.cols + entry);
                value[u] = SUM ? __ldg(product.b.values + entry) : V(0);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                if (at + u * THREADS < products) take(done + at + u * THREADS, col[u], weight[u], value[u]);
        }
        done += products;
        __syncthreads();
    }
    return done;
}

/* Of up to 8 products a thread, in a table that is at most half full. */
template <int THREADS> struct count_memory {
    static constexpr int SLOTS = 16 * THREADS;
    piece_memory<THREADS> pieces;
    int32_t slot[SLOTS];
};

/* Lengths of the longest sorted rows, a block each. */
template <int THREADS, typename V>
static __global__ void __launch_bounds__(THREADS) count_pieces(warp_job<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    auto &memory = *(count_memory<THREADS> *)table_memory;
    const int slots = count_memory<THREADS>::SLOTS;
    const class_rows own = rows_of(job.totals, job.list, c);
    for (unsigned at = blockIdx.x; at < own.count; at += gridDim.x) {
        const int row = own.rows[at];
        int fresh = 0;
        for (int i = threadIdx.x; i < slots; i += THREADS) memory.slot[i] = EMPTY;
        __syncthreads();
        walk_pieces<THREADS, false>(job.product, row, memory.pieces, [&](int, int32_t col, double, V) {
            int slot = (int)(scrambled(col) >> (32 - log2_of(slots)));
            for (;; slot = (slot + 1) & (slots - 1)) {
                int32_t key = *(volatile int32_t *)(memory.slot + slot);
                if (key == EMPTY) {
                    key = atomicCAS(memory.slot + slot, EMPTY, col);
                    fresh += key == EMPTY;
                    if (key == EMPTY) break;
                }
                if (key == col) break;
            }
        });
        fresh = block_reduce<THREADS>(fresh, add_op(), memory.pieces.scratch);
        if (threadIdx.x == 0) job.lengths[row] = fresh;
        __syncthreads();
    }
    end_after_last();
}

template <int THREADS, int K, typename Key> struct sort_memory {
    double term[THREADS * K];
    Key key[THREADS * K];
    piece_memory<THREADS> pieces;

    /* Where a key of sorted runs lies: K in a row, one thread's, in as many banks. */
    __device__ __forceinline__ Key &at(int place) { return key[swizzled(place, K - 1)]; }
    __device__ __forceinline__ int32_t col(int place)
    {
        return (int32_t)(uint32_t)(at(place) >> sorted_shape<THREADS, K>::PLACE_BITS);
    }
};

/* By how much a key is shifted to be its bucket's number, if columns are below `cols`. */
template <int THREADS, int K> static __device__ __forceinline__ int key_shift(int64_t cols)
{
    typedef sorted_shape<THREADS, K> shape;
    return shape::PLACE_BITS + max(0, 64 - __clzll(cols - 1) - log2_of(shape::BUCKETS));
}

/* Whether of 32 of `count` keys hardly any share a bucket; every warp comes to the same answer. */
template <int THREADS, int K, typename Key>
static __device__ __forceinline__ bool is_spread(const sort_memory<THREADS, K, Key> &memory, int count,
                                                 int shift)
{
    const unsigned bucket = (unsigned)(memory.key[(threadIdx.x & 31) * count / 32] >> shift);
    return !__any_sync(FULL_WARP, __popc(__match_any_sync(FULL_WARP, bucket)) > 6);
}

/* Sorts a warp's 32·K keys from place `base` on, K in a row a lane; few lie far from their places:
 * neighbours are exchanged, and where this has not been enough after 24 rounds the network sorts them. */
template <int THREADS, int K, typename Key>
static __device__ __forceinline__ void sort_neighbours(sort_memory<THREADS, K, Key> &memory, int base, int count)
{
    const int lane = threadIdx.x & 31, first = base + lane * K;
    Key key[K];
#pragma unroll
    for (int i = 0; i < K; i++) key[i] = first + i < count ? memory.at(first + i) : ~Key(0);
    for (int round = 1;; round++) {
#pragma unroll
        for (int i = 0; i < K; i += 2) order_pair(key[i], key[i + 1]);
#pragma unroll
        for (int i = 1; i + 1 < K; i += 2) order_pair(key[i], key[i + 1]);
        const Key above = __shfl_down_sync(FULL_WARP, key[0], 1), below = __shfl_up_sync(FULL_WARP, key[K - 1], 1);
        if (lane < 31) key[K - 1] = min(key[K - 1], above);
        if (lane > 0) key[0] = max(key[0], below);
        if (round % 3) continue;
        const Key next = __shfl_down_sync(FULL_WARP, key[0], 1);
        bool sorted = lane == 31 || key[K - 1] <= next;
#pragma unroll
        for (int i = 0; i + 1 < K; i++) sorted = sorted && key[i] <= key[i + 1];
        if (__all_sync(FULL_WARP, sorted)) break;
        if (round < 12) continue;
        sort_keys<K>(key, 32);
        break;
    }
#pragma unroll
    for (int i = 0; i < K; i++)
        if (first + i < count) memory.at(first + i) = key[i];
}

/* Sorts `count` keys by buckets; they lie swizzled then. A bucket of up to 16·K keys, half of a warp's capacity, lies
 * within what one sorts the first time or the second; if there is a larger one nothing is done, and the answer is
 * false. */
template <int THREADS, int K, typename Key>
static __device__ __forceinline__ bool sort_buckets(sort_memory<THREADS, K, Key> &memory, int count, int shift)
{
    enum { BUCKETS = sorted_shape<THREADS, K>::BUCKETS, EACH = BUCKETS / THREADS };
    unsigned *begins = (unsigned *)memory.pieces.piece; /* no longer used */
    unsigned *largest = memory.pieces.before;
    static_assert(BUCKETS * sizeof *begins <= sizeof memory.pieces.piece, "they have their place");
    const int base = (int)threadIdx.x / 32 * 32 * K, first = base + (int)(threadIdx.x & 31);
    Key key[K];
    int place[K], own[EACH], sum = 0, total;
    unsigned most = 0;
    for (int i = threadIdx.x; i < BUCKETS; i += THREADS) begins[i] = 0;
    if (threadIdx.x == 0) *largest = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < K; i++) {
        if (first + 32 * i >= count) continue;
        key[i] = memory.key[first + 32 * i];
        place[i] = (int)atomicAdd(begins + (unsigned)(key[i] >> shift), 1u);
        most = max(most, (unsigned)place[i] + 1);
    }
    most = warp_max(most);
    if (THREADS > 32) {
        if (threadIdx.x % 32 == 0) atomicMax(largest, most);
        __syncthreads();
        most = *largest;
    } else {
        __syncwarp();
    }
    if (most > 16 * K) return false;
#pragma unroll
    for (int i = 0; i < EACH; i++) sum += own[i] = (int)begins[threadIdx.x * EACH + i];
    int before = block_scan<THREADS>(sum, &total, memory.pieces.scratch);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        begins[threadIdx.x * EACH + i] = (unsigned)before;
        before += own[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < K; i++)
        if (first + 32 * i < count) memory.at((int)begins[(unsigned)(key[i] >> shift)] + place[i]) = key[i];
    __syncthreads();
    sort_neighbours<THREADS, K>(memory, base, count);
    if (THREADS > 32) {
        __syncthreads();
        sort_neighbours<THREADS, K>(memory, base + 16 * K, count);
    }
    __syncthreads();
    return true;
}

/* Sorts `count` keys; they lie swizzled then. */
template <int THREADS, int K, typename Key>
static __device__ __forceinline__ void sort_terms(sort_memory<THREADS, K, Key> &memory, int count)
{
    const int first = (int)threadIdx.x / 32 * 32 * K + (threadIdx.x & 31);
    Key key[K];
#pragma unroll
    for (int i = 0; i < K; i++) key[i] = first + 32 * i < count ? memory.key[first + 32 * i] : ~Key(0);
    sort_keys<K>(key, 32);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < K; i++) memory.at(threadIdx.x * K + i) = key[i];
    __syncthreads();
    for (int run = 32 * K; run < count; run *= 2) {
        /* Of the two runs to be merged, `low` keys of the first and `other` of the second precede the thread's. */
        const int base = (int)threadIdx.x * K & ~(2 * run - 1), before = (int)threadIdx.x * K - base;
        int low = max(0, before - run), high = min(before, run);
        while (low < high) {
            const int middle = (low + high) / 2;
            if (memory.at(base + middle) < memory.at(base + run + before - 1 - middle)) low = middle + 1;
            else high = middle;
        }
        int other = before - low;
        Key a = low < run ? memory.at(base + low) : ~Key(0);
        Key b = other < run ? memory.at(base + run + other) : ~Key(0);
#pragma unroll
        for (int i = 0; i < K; i++) {
            const bool takes = a <= b;
            key[i] = takes ? a : b;
            const int next = takes ? ++low : ++other;
            const Key more = next < run ? memory.at(base + (takes ? 0 : run) + next) : ~Key(0);
            if (takes) a = more;
            else b = more;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < K; i++) memory.at(threadIdx.x * K + i) = key[i];
        __syncthreads();
    }
}

/* Blocks a multiprocessor for which registers are to suffice. */
template <int THREADS> static constexpr int sort_blocks()
{
    constexpr int wanted = THREADS < 64 ? 32 : (THREADS < 512 && MOST_THREADS > 1280 ? 1280 : 1024) / THREADS;
    return wanted < ARCH_BLOCKS ? wanted : ARCH_BLOCKS;
}

/* The entries of rows of class c, a block each. */
template <int THREADS, int K, typename Key, typename V>
static __global__ void __launch_bounds__(THREADS, sort_blocks<THREADS>())
    sort_rows(warp_job<V> job, int c)
{
    extern __shared__ __align__(16) unsigned char table_memory[];
    let_next_begin();
    constexpr int PLACE_BITS = sorted_shape<THREADS, K>::PLACE_BITS;
    auto &memory = *(sort_memory<THREADS, K, Key> *)table_memory;
    const class_rows own = rows_of(job.totals, job.list, c);
    const int shift = key_shift<THREADS, K>(job.product.cols);
    const int lane = threadIdx.x & 31, first = (int)threadIdx.x / 32 * 32 * K + lane;
    for (unsigned at = blockIdx.x; at < own.count; at += gridDim.x) {
        const int row = own.rows[at];
        const int count = walk_pieces<THREADS, true>(
            job.product, row, memory.pieces, [&](int place, int32_t col, double weight, V value) {
                memory.key[place] = (Key)(uint32_t)col << PLACE_BITS | (Key)place;
                memory.term[place] = __dmul_rn(weight, (double)value);
            });
        if (!is_spread(memory, count, shift) || !sort_buckets(memory, count, shift)) sort_terms(memory, count);
        unsigned heads[K];
        int entries = 0, total;
#pragma unroll
        for (int i = 0; i < K; i++) {
            const int place = first + 32 * i;
            heads[i] = __ballot_sync(FULL_WARP, place < count &&
                                                    (place == 0 || memory.col(place) != memory.col(place - 1)));
            entries += __popc(heads[i]);
        }
        const int before = block_scan<THREADS>(lane == 0 ? entries : 0, &total, memory.pieces.scratch);
        int64_t to = job.offsets[row] + __shfl_sync(FULL_WARP, before, 0);
#pragma unroll
        for (int i = 0; i < K; i++) {
            if (heads[i] >> lane & 1) {
                const int place = first + 32 * i;
                const Key places = ((Key)1 << PLACE_BITS) - 1;
                const int32_t col = memory.col(place);
                double sum = memory.term[memory.at(place) & places];
                for (int next = place + 1; next < count && memory.col(next) == col; next++)
                    sum = __dadd_rn(sum, memory.term[memory.at(next) & places]);
                job.c_cols[to + __popc(heads[i] & lanes_below())] = col;
                job.c_values[to + __popc(heads[i] & lanes_below())] = (V)sum;
            }
            to += __popc(heads[i]);
        }
        __syncthreads();
    }
    end_after_last();
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* Keys of 32 bits hold column and place unless columns are too many. */
template <int THREADS, int K> static bool fits_narrow_keys(int64_t cols)
{
    return cols <= (int64_t)1 << (32 - sorted_shape<THREADS, K>::PLACE_BITS);
}

typedef unsigned long long wide_key;

template <int THREADS, int K> static bool can_sort(sp_context *context, int64_t cols)
{
    const size_t bytes = fits_narrow_keys<THREADS, K>(cols) ? sizeof(sort_memory<THREADS, K, uint32_t>)
                                                            : sizeof(sort_memory<THREADS, K, wide_key>);
    return bytes + 1024 <= cuda_state_of(context)->shared_limit; /* the driver reserves some */
}

/* The most products of a row that is sorted. */
int most_sorted(sp_context *context, int64_t cols)
{
    const bool mid = !left_out("spgemm-sort-4096"), most = mid && !left_out("spgemm-sort-long");
    if (most && can_sort<1024, 8>(context, cols)) return 1024 * 8;
    return mid && can_sort<512, 8>(context, cols) ? 512 * 8 : 256 * 8;
}

template <int THREADS, int K, typename V> static sp_status launch_sort(warp_run<V> *run, int stream, int c)
{
    if (!has_rows(run, c)) return SP_OK;
    if (!fits_narrow_keys<THREADS, K>(run->b->cols))
        return launch(run, sort_rows<THREADS, K, wide_key, V>, THREADS, sizeof(sort_memory<THREADS, K, wide_key>),
                      rows_in(run, c), stream, c);
    return launch(run, sort_rows<THREADS, K, uint32_t, V>, THREADS, sizeof(sort_memory<THREADS, K, uint32_t>),
                  rows_in(run, c), stream, c);
}

template <typename V> sp_status launch_sorts(warp_run<V> *run)
{
    CHECK((launch_sort<1024, 8>(run, 2, CLASS_LONG)));
    CHECK((launch_sort<512, 8>(run, 1, CLASS_SORTED + 5)));
    CHECK((launch_sort<256, 8>(run, 3, CLASS_SORTED + 4)));
    CHECK((launch_sort<256, 4>(run, 2, CLASS_SORTED + 3)));
    CHECK((launch_sort<128, 4>(run, 1, CLASS_SORTED + 2)));
    CHECK((launch_sort<32, 8>(run, 2, CLASS_SORTED + 1)));
    return launch_sort<32, 4>(run, 3, CLASS_SORTED);
}

template <int THREADS, typename V> static sp_status launch_count_pieces(warp_run<V> *run, int stream, int c)
{
    return launch(run, count_pieces<THREADS, V>, THREADS, sizeof(count_memory<THREADS>), rows_in(run, c), stream, c);
}

template <typename V> sp_status launch_piece_counts(warp_run<V> *run)
{
    if (run->far && has_rows(run, CLASS_LONG)) CHECK(launch_count_pieces<1024>(run, 1, CLASS_LONG));
    return has_rows(run, CLASS_BLOCK_COUNTED) ? launch_count_pieces<512>(run, 3, CLASS_BLOCK_COUNTED) : SP_OK;
}

template sp_status launch_piece_counts(warp_run<float> *);
template sp_status launch_piece_counts(warp_run<double> *);
template sp_status launch_sorts(warp_run<float> *);
template sp_status launch_sorts(warp_run<double> *);
