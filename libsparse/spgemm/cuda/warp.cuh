/* What a warp does with one row of C, or with a few short ones: forms the row's products and adds up those of the
 * same column. Two ways, by size:
 *
 *   small   <= 96 products: as many neighbouring rows at once as have 128, four a lane, sorted in registers;
 *   hashed  <= 768 entries of C, any number of products: a table in shared memory, its keys sorted in registers
 *           afterwards; two rows at once where A has the same columns in both, as finite elements do.
 *
 * Order of additions. Columns within a row of B are distinct, so lanes that hold one row of B add without atomics;
 * where a step of the warp holds several rows of B, lanes with the same column add one after another, in the order of
 * A's row. Every sum therefore sees its products in A's order, as on the CPU.
 *
 * Cost, in warp instructions for 32 products: some 40 for loading, hashing and adding where B's rows fill the lanes.
 * Sorting n keys takes log2(n)² / 2 steps of 2 or 3 instructions for every 32 of them, of which a third go through
 * the shuffle unit: 600 for 256 keys, 1,300 for 512.
 */
#ifndef SPARSE_CUDA_WARP_CUH
#define SPARSE_CUDA_WARP_CUH

#include <type_traits>

#include "device/common.cuh"

/* Where the entries of each bucket of columns begin in rows of B of LEAST_INDEXED entries or more: entry i of row k's
 * part, which starts at offsets[k] / 4 + k, is the row's first entry with a column of i << shift or more. A row of n
 * entries has 2^(floor(log2 n) - 2) buckets, 4 to 8 entries a bucket where columns are spread evenly. 1 byte an entry
 * of B. */
struct bucket_index {
    const uint32_t *first; /* NULL: none */
    int bits;              /* columns are below 2^bits */
};
enum { LEAST_INDEXED = 16 };

static __device__ __forceinline__ int bucket_shift(const bucket_index &index, int32_t length)
{
    return index.bits - (29 - __clz(length));
}

/* What the product is made of. PLAIN below is plus-times of matrices with values, without a mask and with fewer than
 * 2^32 entries in B, for which nothing else is compiled in. */
template <typename V> struct row_product {
    matrix_view<V> a, b;
    int64_t cols;
    sp_semiring semiring;
    const int64_t *mask_offsets; /* NULL: no mask */
    const int32_t *mask_cols;
    bool complement;
    bucket_index index;     /* of B */
    const uint8_t *repeats = nullptr; /* which rows of B have the columns of the row before; NULL: not known */
};

/* Threads of a multiprocessor that registers are asked to suffice for, where it holds as many. */
constexpr int MOST_THREADS = ARCH_THREADS < 1536 ? ARCH_THREADS : 1536;

static __device__ __forceinline__ unsigned lanes_below() { return (1u << (threadIdx.x & 31)) - 1; }

static __host__ __device__ constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

/* ---- the semiring ---------------------------------------------------------------------------------------- */

template <bool PLAIN, typename V>
static __device__ __forceinline__ double multiply(const row_product<V> &product, double a, double b)
{
    if (PLAIN || product.semiring == SP_PLUS_TIMES || product.semiring == SP_MAX_TIMES) return __dmul_rn(a, b);
    return product.semiring == SP_MIN_PLUS ? __dadd_rn(a, b) : 1.0;
}

template <bool PLAIN, typename V>
static __device__ __forceinline__ double combine(const row_product<V> &product, double sum, double more)
{
    if (PLAIN || product.semiring == SP_PLUS_TIMES || product.semiring == SP_PLUS_PAIR) return __dadd_rn(sum, more);
    if (product.semiring == SP_MIN_PLUS) return more < sum ? more : sum;
    return more > sum ? more : sum;
}

/* What a sum holds before its first product. -0 is what any number can be added to without changing its bits; for
 * other operations than the sum, all ones stands for "none", a NaN that no arithmetic makes. */
template <bool PLAIN> static __device__ __forceinline__ double no_sum()
{
    return PLAIN ? -0.0 : __longlong_as_double(-1ll);
}

template <bool PLAIN, typename V>
static __device__ __forceinline__ void add_to(const row_product<V> &product, double *sum, double more)
{
    const double old = *sum;
    *sum = !PLAIN && __double2hiint(old) == -1 ? more : combine<PLAIN>(product, old, more);
}

/* Whether the mask lets this entry be. */
template <bool PLAIN, typename V>
static __device__ __forceinline__ bool allowed(const row_product<V> &product, int64_t row, int32_t col)
{
    if (PLAIN || !product.mask_offsets) return true;
    int64_t low = product.mask_offsets[row], high = product.mask_offsets[row + 1];
    const int64_t end = high;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (product.mask_cols[middle] < col) low = middle + 1;
        else high = middle;
    }
    return (low < end && product.mask_cols[low] == col) != product.complement;
}

/* ---- places ---------------------------------------------------------------------------------------------- */

/* Where V is uint32_t, no sums are formed: the numbers of the entries of A and of B that make a product go to the
 * product's place (terms.cu). They take the way of the factors: `weight` holds the number in A, `value` that
 * in B. */
template <typename V> constexpr bool PLACES = std::is_same_v<V, uint32_t>;

/* Product `number` of entry `entry` of C. A slice of 32 entries lists the first products of all of them, then the
 * second ones, and so on, each time of those that have as many. */
static __device__ __forceinline__ void put_product(const product_places &places, int64_t entry, uint32_t number,
                                                   uint32_t a, uint32_t b)
{
    const uint4 *counts = (const uint4 *)(places.counts + entry / 32 * 32);
    const uint32_t both = number | number << 16, lane = (uint32_t)(entry % 32);
    uint32_t before = 0;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const uint4 eight = __ldg(counts + q);
        const uint32_t pair[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t least = __vminu2(pair[i], both), more = __vcmpgtu2(pair[i], both) & 0x10001u;
            const uint32_t first = 8 * q + 2 * i;
            before += (least & 0xffff) + (least >> 16);
            before += first < lane ? more & 1 : 0;
            before += first + 1 < lane ? more >> 16 : 0;
        }
    }
    places.terms[places.bases[entry / 32] + before] = make_uint2(a, b);
}

/* Sums that are counters of products, of entries of C from `first` on. */
struct counted_places {
    product_places places;
    int64_t first;

    __device__ __forceinline__ void put(double *sums, int slot, double weight, uint32_t b) const
    {
        const double number = sums[slot];
        sums[slot] = number + 1;
        put_product(places, first + slot, (uint32_t)number, (uint32_t)weight, b);
    }
};

/* ---- sorting in registers -------------------------------------------------------------------------------- */

template <typename Key> static __device__ __forceinline__ void order_pair(Key &a, Key &b)
{
    const Key low = min(a, b), high = max(a, b);
    a = low;
    b = high;
}

/* The smaller or the larger of two keys. Instead of a selection a predicated product with 1, a block's size in y: where
 * keys are sorted, the pipe that compares and selects is busy in nine cycles of ten, that which multiplies is not. */
template <typename Key> static __device__ __forceinline__ Key keep(Key own, Key other, bool low)
{
    if constexpr (sizeof(Key) == sizeof(uint32_t)) {
        asm("{ .reg .pred take, keeps; setp.ne.u32 keeps, %2, 0; setp.lt.xor.u32 take, %0, %1, keeps;"
            " @take mad.lo.u32 %0, %1, %3, 0; }"
            : "+r"(own)
            : "r"(other), "r"((uint32_t)low), "r"(blockDim.y));
        return own;
    }
    return (own < other) == low ? own : other;
}

/* Keys of one lane that rise and then fall, or the other way, `size` of them each time, brought in order. */
template <int K, typename Key> static __device__ __forceinline__ void merge_lane(Key (&key)[K], int size)
{
    constexpr int UNIT = K % 3 ? 1 : 3;
#pragma unroll
    for (int step = size / 2; step >= UNIT; step /= 2)
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i / step % 2 == 0) order_pair(key[i], key[i + step]);
#pragma unroll
    for (int i = 0; UNIT == 3 && i + 2 < K; i += 3) {
        order_pair(key[i], key[i + 1]);
        order_pair(key[i + 1], key[i + 2]);
        order_pair(key[i], key[i + 1]);
    }
}

/* Bitonic network over `lanes` lanes of K = 2^n or 3·2^n keys each; key i of lane l has place l·K + i. Every merge
 * begins with the mirrored half, so that all comparisons point the same way. */
template <int K, typename Key> static __device__ __forceinline__ void sort_keys(Key (&key)[K], int lanes)
{
    constexpr int UNIT = K % 3 ? 1 : 3;
    const int lane = threadIdx.x & 31;
    merge_lane<K>(key, 1); /* three by three */
#pragma unroll
    for (int size = 2 * UNIT; size <= K; size *= 2) {
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i % size < size / 2) order_pair(key[i], key[i / size * size + size - 1 - i % size]);
        merge_lane<K>(key, size / 2);
    }
#pragma unroll(K <= 4 ? 5 : 1)
    for (int size = 2; size <= lanes; size *= 2) {
        bool low = !(lane & (size / 2));
#pragma unroll
        for (int i = 0; i < (K + 1) / 2; i++) {
            const Key first = __shfl_xor_sync(FULL_WARP, key[K - 1 - i], size - 1);
            const Key second = __shfl_xor_sync(FULL_WARP, key[i], size - 1);
            key[i] = keep(key[i], first, low);
            if (i != K - 1 - i) key[K - 1 - i] = keep(key[K - 1 - i], second, low);
        }
#pragma unroll(K <= 4 ? 4 : 1)
        for (int step = size / 4; step > 0; step /= 2) {
            low = !(lane & step);
#pragma unroll
            for (int i = 0; i < K; i++) key[i] = keep(key[i], __shfl_xor_sync(FULL_WARP, key[i], step), low);
        }
        merge_lane<K>(key, K);
    }
}

/* ---- small rows: packs ----------------------------------------------------------------------------------- */

/* Neighbouring rows of up to 128 products and 32 elements of A together are a pack. Its products are sorted by row
 * and column, four keys a lane, so that what it adds to C lies side by side. A pack costs some 100 instructions
 * whatever it holds, a quarter of what sorting and adding up 64 products would cost. */
enum { PACK_KEYS = 4, PACK_PRODUCTS = 32 * PACK_KEYS };

/* Four keys a lane, sorted over the warp by a bitonic network, unrolled; those of lane l have places 4l to 4l + 3. */
template <typename Key> static __device__ __forceinline__ void sort_pack(Key (&key)[PACK_KEYS])
{
    const int lane = threadIdx.x & 31;
    order_pair(key[0], key[1]);
    order_pair(key[2], key[3]);
    order_pair(key[0], key[3]);
    order_pair(key[1], key[2]);
    order_pair(key[0], key[1]);
    order_pair(key[2], key[3]);
#pragma unroll
    for (int size = 2; size <= 32; size *= 2) {
        const bool high = lane & size / 2;
#pragma unroll
        for (int i = 0; i < PACK_KEYS / 2; i++) {
            Key &low_key = key[i], &high_key = key[PACK_KEYS - 1 - i];
            const Key first = __shfl_xor_sync(FULL_WARP, high_key, size - 1);
            const Key second = __shfl_xor_sync(FULL_WARP, low_key, size - 1);
            low_key = high ? max(low_key, first) : min(low_key, first);
            high_key = high ? max(high_key, second) : min(high_key, second);
        }
#pragma unroll
        for (int step = size / 4; step > 0; step /= 2)
#pragma unroll
            for (int i = 0; i < PACK_KEYS; i++) {
                const Key other = __shfl_xor_sync(FULL_WARP, key[i], step);
                key[i] = lane & step ? max(key[i], other) : min(key[i], other);
            }
        order_pair(key[0], key[2]);
        order_pair(key[1], key[3]);
        order_pair(key[0], key[1]);
        order_pair(key[2], key[3]);
    }
}

/* A row of B and the element of A that it is multiplied by: where the row would begin if the pack's products did. */
template <bool PLAIN> struct alignas(PLAIN ? 16 : 8) packed_row {
    double weight;
    std::conditional_t<PLAIN, uint32_t, int64_t> start;
};

/* The keys of a lane, which go to shared memory together. */
template <typename Key> struct alignas(16) lane_keys {
    Key key[PACK_KEYS];
};

/* A warp's own in shared memory. */
template <typename Key, bool SUM, bool PLAIN> struct pack_memory {
    packed_row<PLAIN> rows[32];
    union {
        Key key[PACK_PRODUCTS];
        lane_keys<Key> of_lane[32];
    };
    double term[SUM ? PACK_PRODUCTS : 1];
};

/* A row of A that a lane stands for: small if it has at most 32 elements and MOST_SMALL products. */
enum { MOST_SMALL = 96 };
static_assert((int)MOST_SMALL <= (int)PACK_PRODUCTS, "a small row fits a pack");
struct small_row {
    int64_t begin; /* of its elements */
    int elements, products;
    bool small;
};

/* Where a row's note is its products, if it is small, and else more than MOST_SMALL. */
template <typename V>
static __device__ __forceinline__ small_row noted_row(const matrix_view<V> &a, int64_t row, int note)
{
    const int64_t begin = a.offsets[row];
    return {begin, (int)(a.offsets[row + 1] - begin), note, note <= MOST_SMALL};
}

/* A key is the row's number in its pack, the column and, with SUM, the product's place: a pack has no more rows than
 * the key has bits for. */
struct pack_bits {
    int place, col, rows;
};
template <typename Key, bool SUM> static __device__ __forceinline__ pack_bits pack_bits_for(int64_t cols)
{
    const int place = SUM ? log2_of(PACK_PRODUCTS) : 0, col = max(1, 64 - __clzll(cols - 1));
    return {place, col, min(5, (int)sizeof(Key) * 8 - place - col)};
}

template <typename Key> static __device__ __forceinline__ int32_t column_of(const pack_bits &bits, Key key)
{
    return (int32_t)((uint32_t)(key >> bits.place) & (0xffffffffu >> (32 - bits.col)));
}

/* A bit for each place of a pack; the calling lane stands for places 32·i + lane. */
struct pack_places {
    unsigned word[PACK_KEYS];

    /* Of those up to 32·i + lane. */
    __device__ __forceinline__ int rank(int i) const
    {
        int before = 0;
#pragma unroll
        for (int w = 0; w < PACK_KEYS; w++)
            if (w < i) before += __popc(word[w]);
        return before + __popc(word[i] & (lanes_below() * 2 + 1));
    }
    /* Of those before `end`. */
    __device__ __forceinline__ int below(int end) const
    {
        int count = 0;
#pragma unroll
        for (int w = 0; w < PACK_KEYS; w++)
            count += __popc(word[w] & ~__funnelshift_lc(0, ~0u, max(end - 32 * w, 0)));
        return count;
    }
    /* The last up to 32·i + lane. */
    __device__ __forceinline__ int last(int i) const
    {
        int found = -1;
#pragma unroll
        for (int w = 0; w < PACK_KEYS; w++) {
            const unsigned own = w < i ? word[w] : w == i ? word[w] & (lanes_below() * 2 + 1) : 0;
            if (own) found = 32 * w + 31 - __clz((int)own);
        }
        return found;
    }
};

static __device__ __forceinline__ pack_places ballot_places(const bool (&flag)[PACK_KEYS])
{
    pack_places places;
#pragma unroll
    for (int w = 0; w < PACK_KEYS; w++) places.word[w] = __ballot_sync(FULL_WARP, flag[w]);
    return places;
}

/* The places of the lanes that are `set`. */
static __device__ __forceinline__ pack_places mark_places(bool set, int place)
{
    pack_places places;
#pragma unroll
    for (int w = 0; w < PACK_KEYS; w++) places.word[w] = warp_or(set && place / 32 == w ? 1u << place % 32 : 0);
    return places;
}

/* Writes the entries of a sorted pack, or puts its products into their places: key[i] is that of place 32·i + lane,
 * `heads` are the first of equal columns, `kept` those that the mask lets be, `entry` the first entry of C. */
template <typename Key, bool PLAIN, typename V>
static __device__ __forceinline__ void write_pack(const row_product<V> &product,
                                                  const pack_memory<Key, true, PLAIN> &memory,
                                                  const Key (&key)[PACK_KEYS], const pack_bits &bits, int total,
                                                  const pack_places &heads, const pack_places &kept, int64_t entry,
                                                  int32_t *cols, V *values, const product_places &places)
{
    const Key place_mask = ((Key)1 << bits.place) - 1;
#pragma unroll
    for (int i = 0; i < PACK_KEYS; i++) {
        const int at = 32 * i + (threadIdx.x & 31);
        if (at >= total) continue;
        const int64_t to = entry + kept.rank(i) - 1;
        double sum = memory.term[key[i] & place_mask];
        if constexpr (PLACES<V>) {
            const int head = heads.last(i);
            if (kept.last(i) == head)
                put_product(places, to, (uint32_t)(at - head), (uint32_t)__double2hiint(sum),
                            (uint32_t)__double2loint(sum));
        } else if (kept.word[i] >> (threadIdx.x & 31) & 1) {
            for (int next = at + 1; next < total; next++) {
                const Key other = memory.key[next];
                if ((other ^ key[i]) >> bits.place) break;
                sum = combine<PLAIN>(product, sum, memory.term[other & place_mask]);
            }
            cols[to] = column_of(bits, key[i]);
            if (values) values[to] = (V)sum;
        }
    }
}

/* The rows of a pack: those of lanes from `first` on that are `members`. Their elements of A begin at `begin`; `done`
 * products come before theirs. */
struct pack_rows {
    unsigned members;
    int first, done, elements;
    int64_t begin;
};

/* The rows that fit, `most` at most, from the first that waits on; `before`: products before the lane's row. */
static __device__ __forceinline__ pack_rows choose_rows(const small_row &own, unsigned waiting, int before, int most)
{
    const int lane = threadIdx.x & 31, first = __ffs((int)waiting) - 1, done = __shfl_sync(FULL_WARP, before, first);
    const int64_t begin = __shfl_sync(FULL_WARP, (long long)own.begin, first), end = own.begin + own.elements;
    const bool fits = own.small && lane >= first && before + own.products - done <= PACK_PRODUCTS &&
                      end - begin <= 32 && __popc(waiting & (lanes_below() * 2 + 1)) <= most;
    const unsigned run = __ballot_sync(FULL_WARP, fits) >> first;
    const int taken = run == FULL_WARP ? 32 : __ffs((int)~run) - 1;
    const unsigned members = (taken == 32 ? FULL_WARP : (1u << taken) - 1) << first;
    return {members, first, done, (int)(__shfl_sync(FULL_WARP, (long long)end, first + taken - 1) - begin), begin};
}

/* Lists the pack's rows of B that are not empty, a lane an element of A. *total: their products, of which each row's
 * begin at the places that are returned. */
template <bool SUM, bool PLAIN, typename V>
static __device__ __forceinline__ pack_places list_rows_of_b(const row_product<V> &product, const pack_rows &pack,
                                                             packed_row<PLAIN> *rows, int *total)
{
    const int lane = threadIdx.x & 31;
    packed_row<PLAIN> b = {1, 0};
    int products = 0;
    if (lane < pack.elements) {
        const int64_t at = pack.begin + lane;
        const int32_t k = __ldg(product.a.cols + at);
        if constexpr (PLACES<V>) b.weight = (double)at;
        else if (SUM && (PLAIN || product.a.values)) b.weight = (double)__ldg(product.a.values + at);
        const int64_t start = __ldg(product.b.offsets + k);
        products = (int)(__ldg(product.b.offsets + k + 1) - start);
        b.start = (decltype(b.start))start;
    }
    const int begin = scan_lanes(products, total);
    const unsigned filled = __ballot_sync(FULL_WARP, products > 0);
    b.start -= (decltype(b.start))begin;
    if (products > 0) rows[__popc(filled & lanes_below())] = b;
    return mark_places(products > 0, begin);
}

/* A product with entry `at` of B, or the numbers of its entries. */
template <bool PLAIN, typename V, typename Place>
static __device__ __forceinline__ double term_of(const row_product<V> &product, double weight, Place at)
{
    if constexpr (PLACES<V>) return __hiloint2double((int)(uint32_t)weight, (int)at);
    const double value = PLAIN || product.b.values ? (double)__ldg(product.b.values + at) : 1;
    return multiply<PLAIN>(product, weight, value);
}

/* The keys of the pack's products, four a lane, and with SUM their terms; `begun`: where those of a row of B begin,
 * `begun_rows`: of a row of C. */
template <typename Key, bool SUM, bool PLAIN, typename V>
static __device__ __forceinline__ void form_keys(const row_product<V> &product, const pack_places &begun,
                                                 const pack_places &begun_rows, int total, const pack_bits &bits,
                                                 pack_memory<Key, SUM, PLAIN> &memory, Key (&key)[PACK_KEYS])
{
#pragma unroll
    for (int i = 0; i < PACK_KEYS; i++) {
        const int place = 32 * i + (threadIdx.x & 31);
        key[i] = ~Key(0);
        if (place >= total) continue;
        const packed_row<PLAIN> factor = memory.rows[begun.rank(i) - 1];
        const auto at = (decltype(factor.start))(factor.start + place);
        const Key row = (Key)(begun_rows.rank(i) - 1), col = (Key)(uint32_t)__ldg(product.b.cols + at);
        key[i] = (row << bits.col | col) << bits.place;
        if (!SUM) continue;
        key[i] |= (Key)place;
        memory.term[place] = term_of<PLAIN>(product, factor.weight, at);
    }
}

/* Rows base + lane, small ones only, in packs. Without SUM the lane gets the number of its row's entries; with SUM
 * they are written from `to` on, in the row's lane. */
template <typename Key, bool SUM, bool PLAIN, typename V>
static __device__ __forceinline__ int take_packs(const row_product<V> &product, int64_t base, const small_row &own,
                                                 pack_memory<Key, SUM, PLAIN> &memory, int64_t to, int32_t *cols,
                                                 V *values, const product_places &places)
{
    const int lane = threadIdx.x & 31;
    const pack_bits bits = pack_bits_for<Key, SUM>(product.cols);
    const int own_products = own.small ? own.products : 0;
    const unsigned filled_rows = __ballot_sync(FULL_WARP, own_products > 0);
    unsigned waiting = filled_rows;
    int length = 0, all;
    const int before = scan_lanes(own_products, &all);
    while (waiting) {
        const pack_rows pack = choose_rows(own, waiting, before, 1 << bits.rows);
        const unsigned members = pack.members & filled_rows;
        const bool member = members >> lane & 1;
        waiting &= ~pack.members;

        int total;
        const pack_places begun = list_rows_of_b<SUM>(product, pack, memory.rows, &total);
        const pack_places begun_rows = mark_places(member, before - pack.done);
        __syncwarp();
        lane_keys<Key> keys;
        Key(&key)[PACK_KEYS] = keys.key;
        form_keys(product, begun, begun_rows, total, bits, memory, key);
        sort_pack(key);
        memory.of_lane[lane] = keys;
        __syncwarp();
        bool flag[PACK_KEYS];
#pragma unroll
        for (int i = 0; i < PACK_KEYS; i++) {
            const int place = 32 * i + lane;
            key[i] = memory.key[place];
            flag[i] = place < total && (place == 0 || memory.key[place - 1] >> bits.place != key[i] >> bits.place);
        }
        const pack_places heads = ballot_places(flag);
        pack_places kept = heads;
        if (!PLAIN && product.mask_offsets) {
#pragma unroll
            for (int i = 0; i < PACK_KEYS; i++) {
                const int number = (int)(key[i] >> bits.place >> bits.col);
                flag[i] = flag[i] &&
                          allowed<PLAIN>(product, base + __fns(members, 0, number + 1), column_of(bits, key[i]));
            }
            kept = ballot_places(flag);
        }
        if constexpr (SUM)
            write_pack<Key, PLAIN>(product, memory, key, bits, total, heads, kept,
                                   __shfl_sync(FULL_WARP, (long long)to, pack.first), cols, values, places);
        else if (member)
            length = kept.below(before - pack.done + own.products) - kept.below(before - pack.done);
        __syncwarp();
    }
    return length;
}

/* ---- the walk over the products of a row ----------------------------------------------------------------- */

/* A row of B and the elements of A, in ROWS rows of the same columns, that it is multiplied by. */
template <bool PLAIN, int ROWS> struct alignas(PLAIN && ROWS == 1 ? 16 : 8) row_of_b {
    using place = std::conditional_t<PLAIN, uint32_t, int64_t>;
    double weight[ROWS];
    place start;
    int32_t length;
};

/* U entries a lane, loaded ahead of their use. The product is formed when it is added: formed at once, it would wait
 * for the load. */
template <int U, int ROWS, typename V> struct entries_of_b {
    int32_t col[U]; /* EMPTY: none */
    V value[U];
    double weight[ROWS];

    template <bool PLAIN, bool SUM, typename Place>
    __device__ __forceinline__ void load(const row_product<V> &product, int u, bool active, Place at)
    {
        col[u] = EMPTY;
        if (!active) return;
        col[u] = __ldg(product.b.cols + at);
        if constexpr (PLACES<V>) value[u] = (V)at;
        else if (SUM) value[u] = PLAIN || product.b.values ? __ldg(product.b.values + at) : V(1);
    }
};

/* Rows of B one after another, U·32 entries a step, the next step loaded before the present one is taken. */
template <int U, bool PLAIN, typename V, typename Sink>
static __device__ __forceinline__ void walk_long(const row_product<V> &product,
                                                 const row_of_b<PLAIN, Sink::ROWS> *rows, int count, Sink &sink)
{
    const int lane = threadIdx.x & 31;
    int k = 0;
    uint32_t at = lane; /* a row may hold close to 2^31 entries */
    row_of_b<PLAIN, Sink::ROWS> b = rows[0];
    entries_of_b<U, Sink::ROWS, V> next;
    auto load = [&] {
        for (int r = 0; r < Sink::ROWS; r++) next.weight[r] = b.weight[r];
#pragma unroll
        for (int u = 0; u < U; u++)
            next.template load<PLAIN, Sink::SUMS>(product, u, at + 32 * u < (uint32_t)b.length,
                                                  b.start + at + 32 * u);
    };
    load();
    for (bool more = true; more;) {
        entries_of_b<U, Sink::ROWS, V> now = next;
        at += 32 * U;
        if (at - lane >= (uint32_t)b.length) {
            more = ++k < count;
            if (more) b = rows[k];
            at = lane;
        }
        if (more) load();
        sink.template take<U>(now, 0, 1);
    }
}

/* The products of `count` rows of B as one sequence, 32 of them a step, for rows too short to fill the lanes. Each
 * lane stands for a row as well, the k-th row that is not empty for the k-th such lane: `before` products come before
 * the row's own `length`. Rows hold where they would begin if the sequence began at 0. */
template <bool PLAIN, typename V, typename Sink>
static __device__ __forceinline__ void walk_flat(const row_product<V> &product,
                                                 const row_of_b<PLAIN, Sink::ROWS> *rows, int before, int length,
                                                 int total, Sink &sink)
{
    const int lane = threadIdx.x & 31;
    int row = -1; /* the last that has begun */
    unsigned begun;
    entries_of_b<1, Sink::ROWS, V> next;
    auto load = [&](int base) {
        const int begins = before - base;
        begun = warp_or(length > 0 && (unsigned)begins < 32 ? 1u << begins : 0);
        const row_of_b<PLAIN, Sink::ROWS> b = rows[max(row + __popc(begun & (lanes_below() * 2 + 1)), 0)];
        row += __popc(begun);
        for (int r = 0; r < Sink::ROWS; r++) next.weight[r] = b.weight[r];
        next.template load<PLAIN, Sink::SUMS>(product, 0, base + lane < total, b.start + base + lane);
    };
    load(0);
    for (int base = 0; base < total; base += 32) {
        entries_of_b<1, Sink::ROWS, V> now = next;
        const int turn = __popc(begun & lanes_below() * 2), turns = 1 + __popc(begun & ~1u);
        if (base + 32 < total) load(base + 32);
        sink.template take<1>(now, turn, turns);
    }
}

/* Narrows entries from..to of B, row k, to the columns in [low, high). Both ends are looked for at once. */
template <typename V>
static __device__ __forceinline__ void narrow(const row_product<V> &product, int32_t k, int64_t low, int64_t high,
                                              int64_t *from, int64_t *to)
{
    const int32_t *cols = product.b.cols + *from;
    const uint32_t length = (uint32_t)(*to - *from);
    uint32_t start = 0, start_end = length, end = 0, end_end = length;
    if (product.index.first && length >= LEAST_INDEXED) {
        const uint32_t *first = product.index.first + *from / 4 + k;
        const int shift = bucket_shift(product.index, (int32_t)length);
        const uint32_t *lowest = first + (low >> shift), *highest = first + ((high - 1) >> shift);
        start = __ldg(lowest);
        start_end = __ldg(lowest + 1);
        end = __ldg(highest);
        end_end = __ldg(highest + 1);
    }
    while (start < start_end || end < end_end) {
        const uint32_t middle = (start + start_end) / 2, other = (end + end_end) / 2;
        const bool looks = start < start_end, looks_too = end < end_end;
        const int32_t col = looks ? __ldg(cols + middle) : 0, last = looks_too ? __ldg(cols + other) : 0;
        if (looks && col < low) start = middle + 1;
        else if (looks) start_end = middle;
        if (looks_too && last < high) end = other + 1;
        else if (looks_too) end_end = other;
    }
    *to = *from + end;
    *from += start;
}

/* The products of a row of B a lane, which begins at `from`, one row after another or as one sequence. */
template <bool PLAIN, typename V, typename Sink>
static __device__ __forceinline__ void walk_rows(const row_product<V> &product, row_of_b<PLAIN, Sink::ROWS> b,
                                                 int64_t from, row_of_b<PLAIN, Sink::ROWS> *rows, Sink &sink)
{
    const int length = b.length;
    const unsigned filled = __ballot_sync(FULL_WARP, length > 0);
    const int count = __popc(filled), place = __popc(filled & lanes_below());
    /* Cut off so that 32 lengths fit: only their mean is asked for when they are long. */
    const int all = (int)warp_add((unsigned)min(length, 1 << 25));
    if (all <= 24 * count) {
        const int before = sum_until(length) - length;
        b.start = (decltype(b.start))(from - before);
        if (length > 0) rows[place] = b;
        __syncwarp();
        walk_flat<PLAIN>(product, rows, before, length, all, sink);
    } else {
        b.start = (decltype(b.start))from;
        if (length > 0) rows[place] = b;
        __syncwarp();
        if (all > 64 * count) walk_long<4, PLAIN>(product, rows, count, sink);
        else if (all > 32 * count) walk_long<2, PLAIN>(product, rows, count, sink);
        else walk_long<1, PLAIN>(product, rows, count, sink);
    }
    __syncwarp();
}

/* The products of a row, or of Sink::ROWS rows of the same columns, into the sink; with PART those of columns in
 * [low, high). 32 elements of A at a time, empty rows of B dropped. `rows`: 32 of the warp's own in shared memory. */
template <bool PART, bool PLAIN, typename V, typename Sink>
static __device__ __forceinline__ void walk_row(const row_product<V> &product, int64_t row, int64_t low, int64_t high,
                                                row_of_b<PLAIN, Sink::ROWS> *rows, Sink &sink)
{
    const int lane = threadIdx.x & 31;
    const int64_t begin = product.a.offsets[row], last = product.a.offsets[row + 1];
    /* With PART columns are read two steps ahead and the ends of rows of B one: searching these takes its time. */
    int32_t next = -1, after = -1; /* columns of A */
    int64_t next_from = 0, next_to = 0;
    auto read_ahead = [&](int64_t at) {
        next = after;
        next_from = next < 0 ? 0 : __ldg(product.b.offsets + next);
        next_to = next < 0 ? 0 : __ldg(product.b.offsets + next + 1);
        after = at + lane < last ? __ldg(product.a.cols + at + lane) : -1;
    };
    if (PART) {
        read_ahead(begin);
        read_ahead(begin + 32);
    }
    for (int64_t base = begin; base < last; base += 32) {
        row_of_b<PLAIN, Sink::ROWS> b;
        int64_t from = next_from, to = next_to;
        const int32_t searched = next;
        if (PART) read_ahead(base + 64);
        for (int r = 0; r < Sink::ROWS; r++) b.weight[r] = 1;
        if (base + lane < last) {
            const int32_t k = PART ? searched : __ldg(product.a.cols + base + lane);
            if constexpr (PLACES<V>) b.weight[0] = (double)(base + lane);
            else if (Sink::SUMS && (PLAIN || product.a.values))
                for (int r = 0; r < Sink::ROWS; r++)
                    b.weight[r] = (double)__ldg(product.a.values + base + lane + r * (last - begin));
            if (PART) {
                narrow(product, k, low, high, &from, &to);
            } else if (Sink::SUMS || !product.repeats || lane == 0 || !__ldg(product.repeats + k) ||
                       __ldg(product.a.cols + base + lane - 1) != k - 1) {
                from = __ldg(product.b.offsets + k);
                to = __ldg(product.b.offsets + k + 1);
            } /* else nothing that the row before has not */
        }
        b.length = (int)(to - from);
        walk_rows(product, b, from, rows, sink);
    }
}

/* ---- adding in order ------------------------------------------------------------------------------------- */

/* Finding out which lanes have the same column takes as long as so many turns. */
enum { FEW_TURNS = 4 };

/* Adds U products a lane to the table's sums, those of a lane in its turn of so many: lanes of the same turn have
 * distinct columns. */
template <int U, typename Table, typename Entries>
static __device__ __forceinline__ void add_in_turns(Table &table, const Entries &entries, const int (&slot)[U],
                                                    int turn, int turns)
{
    if (U == 1 && turns > FEW_TURNS) {
        const unsigned same = __match_any_sync(FULL_WARP, entries.col[0]);
        turn = entries.col[0] == EMPTY ? 0 : __popc(same & lanes_below());
        turns = (int)warp_max((unsigned)turn) + 1;
    }
    for (int t = 0; t < turns; t++) {
        if (turn == t) {
#pragma unroll
            for (int u = 0; u < U; u++)
                if (entries.col[u] != EMPTY) table.add(slot[u], entries.weight, entries.value[u]);
        }
        __syncwarp();
    }
}

/* ---- hashed rows: the table ------------------------------------------------------------------------------ */

/* Columns and, with SUM, their sums in ROWS rows, in shared memory: 2^(32 - shift) slots. Filled to 4/5 a step takes
 * 13 probes, the most of 32 lanes; half full it takes 4. */
template <typename V, bool PLAIN, bool SUM, int ROWS_ = 1> struct warp_table {
    static constexpr bool SUMS = SUM;
    static constexpr int ROWS = ROWS_;
    const row_product<V> &product;
    int64_t row; /* that is in the table */
    int32_t *keys;
    double *sums;   /* row r's begin at sums + r·slots */
    uint16_t *list; /* with SUM: the slots in use, in the order of their first use */
    int shift, used;

    __device__ __forceinline__ int slots() const { return (int)(0xffffffffu >> shift) + 1; }
    __device__ __forceinline__ int home(int32_t col) const { return (int)(scrambled(col) >> shift); }
    __device__ __forceinline__ int after(int slot) const { return (slot + 1) & (int)(0xffffffffu >> shift); }

    __device__ __forceinline__ void clear(int64_t new_row)
    {
        const int lane = threadIdx.x & 31;
        const double none = no_sum<PLAIN>();
        row = new_row;
        used = 0;
        for (int i = lane; i < slots() / 4; i += 32) ((int4 *)keys)[i] = make_int4(EMPTY, EMPTY, EMPTY, EMPTY);
        if (SUM)
            for (int i = lane; i < ROWS * slots() / 2; i += 32) ((double2 *)sums)[i] = make_double2(none, none);
        __syncwarp();
    }
    /* The slots of U columns a lane, EMPTY for none, claimed for those that have none yet. The whole warp probes
     * together until all have found theirs: lanes that leave the loop one by one would go on apart, and add apart. */
    template <int U> __device__ __forceinline__ void find(const int32_t (&col)[U], int (&slot)[U])
    {
        bool pending[U], fresh[U], any = false;
        int32_t key[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            slot[u] = home(col[u]);
            key[u] = *(volatile int32_t *)(keys + slot[u]);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            fresh[u] = false;
            pending[u] = col[u] != EMPTY && key[u] != col[u];
            slot[u] = pending[u] && key[u] != EMPTY ? after(slot[u]) : slot[u];
            any = any || pending[u];
        }
        if (!__any_sync(FULL_WARP, any)) return;
        do {
            any = false;
#pragma unroll
            for (int u = 0; u < U; u++) {
                const int32_t old = claim(keys + slot[u], col[u], pending[u]);
                fresh[u] = fresh[u] || (pending[u] && old == EMPTY);
                pending[u] = pending[u] && old != EMPTY && old != col[u];
                slot[u] = pending[u] ? after(slot[u]) : slot[u];
                any = any || pending[u];
            }
        } while (__any_sync(FULL_WARP, any));
#pragma unroll
        for (int u = 0; u < U; u++) {
            const unsigned claimed = __ballot_sync(FULL_WARP, fresh[u]);
            if (SUM && fresh[u]) list[used + __popc(claimed & lanes_below())] = (uint16_t)slot[u];
            used += __popc(claimed);
        }
    }
    /* What the slot held, which is the column's now if it was empty. Predicated: a branch would cost more. */
    static __device__ __forceinline__ int32_t claim(int32_t *key, int32_t col, bool wanted)
    {
        int32_t old = 0;
        asm volatile("{ .reg .pred p; setp.ne.s32 p, %4, 0; @p atom.shared.cas.b32 %0, [%1], %2, %3; }"
                     : "+r"(old)
                     : "r"((uint32_t)__cvta_generic_to_shared(key)), "r"(EMPTY), "r"(col), "r"((int)wanted)
                     : "memory");
        return old;
    }
    template <int U> __device__ __forceinline__ void take(entries_of_b<U, ROWS, V> &entries, int turn, int turns)
    {
        int slot[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (!PLAIN && entries.col[u] != EMPTY && !allowed<PLAIN>(product, row, entries.col[u]))
                entries.col[u] = EMPTY;
        find<U>(entries.col, slot);
        if (SUM) add_in_turns<U>(*this, entries, slot, turn, turns);
    }
    __device__ __forceinline__ void add(int slot, const double (&weight)[ROWS], V value)
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            add_to<PLAIN>(product, sums + r * slots() + slot, multiply<PLAIN>(product, weight[r], (double)value));
    }
};

/* ---- sums of columns that are known ---------------------------------------------------------------------- */

/* Bits and ranks of sorted columns: a word holds a bit for each of 32 columns (x), and how many entries come before
 * them (y). */
static __device__ __forceinline__ void rank_columns(const int32_t *cols, int count, uint2 *words)
{
    const int lane = threadIdx.x & 31;
    const int32_t lowest = cols[0];
    for (int i = lane; i <= (cols[count - 1] - lowest) / 32; i += 32) words[i].x = 0;
    __syncwarp();
    for (int i = lane; i < count; i += 32) {
        const int offset = cols[i] - lowest, before = i > 0 ? cols[i - 1] - lowest : -1;
        atomicOr(&words[offset / 32].x, 1u << offset % 32);
        if (before < 0 || before / 32 != offset / 32) words[offset / 32].y = (uint32_t)i;
    }
}

/* Sums of entries of C whose columns are there, in their order. */
template <typename V, bool PLAIN> struct known_sums {
    static constexpr bool SUMS = true;
    static constexpr int ROWS = 1;
    const row_product<V> &product;
    counted_places place; /* where V is uint32_t */
    double *sums;

    static __device__ __forceinline__ double none() { return PLACES<V> ? 0 : no_sum<PLAIN>(); }
    __device__ __forceinline__ void add(int slot, const double (&weight)[1], V value)
    {
        if constexpr (PLACES<V>) place.put(sums, slot, weight[0], value);
        else add_to<PLAIN>(product, sums + slot, multiply<PLAIN>(product, weight[0], (double)value));
    }
};

/* Their columns lie within 32·words columns from `lowest` on. No probing. */
template <typename V, bool PLAIN> struct rank_table : known_sums<V, PLAIN> {
    uint2 *words;
    int32_t lowest;

    __device__ __forceinline__ void fill(const int32_t *cols, int count)
    {
        lowest = cols[0];
        rank_columns(cols, count, words);
        for (int i = threadIdx.x & 31; i < count; i += 32) this->sums[i] = this->none();
        __syncwarp();
    }
    template <int U> __device__ __forceinline__ void take(entries_of_b<U, 1, V> &entries, int turn, int turns)
    {
        int slot[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            if (entries.col[u] == EMPTY) continue;
            const int offset = entries.col[u] - lowest;
            const uint2 word = words[offset / 32];
            const uint32_t bit = 1u << offset % 32;
            slot[u] = (int)word.y + __popc(word.x & (bit - 1));
            if (!PLAIN && !(word.x & bit)) entries.col[u] = EMPTY; /* what the mask forbids */
        }
        add_in_turns<U>(*this, entries, slot, turn, turns);
    }
};

/* They lie anywhere: the columns as they are, sorted, and where those of each of `buckets` ranges of columns begin. A
 * column is looked for among the few of its bucket. */
template <typename V, bool PLAIN> struct sorted_table : known_sums<V, PLAIN> {
    int32_t *keys;
    uint16_t *first; /* buckets + 1 */
    int buckets, lowest, shift;

    __device__ __forceinline__ void fill(const int32_t *cols, int count)
    {
        const int lane = threadIdx.x & 31;
        lowest = cols[0];
        shift = max(0, __clz(buckets) + 1 - __clz(cols[count - 1] - lowest));
        for (int i = lane; i <= count; i += 32) {
            const int col = i < count ? cols[i] : 0, before = i > 0 ? (cols[i - 1] - lowest) >> shift : -1;
            const int bucket = i < count ? (col - lowest) >> shift : buckets;
            for (int b = before + 1; b <= bucket; b++) first[b] = (uint16_t)i;
            if (i == count) break;
            keys[i] = col;
            this->sums[i] = this->none();
        }
        __syncwarp();
    }
    template <int U> __device__ __forceinline__ void take(entries_of_b<U, 1, V> &entries, int turn, int turns)
    {
        int slot[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            if (entries.col[u] == EMPTY) continue;
            const uint32_t bucket = (uint32_t)(entries.col[u] - lowest) >> shift;
            int low = 0, high = 0;
            if (PLAIN || bucket < (uint32_t)buckets) {
                low = first[bucket];
                high = first[bucket + 1];
            }
            while (high - low > 1) {
                const int middle = (low + high) / 2;
                if (keys[middle] <= entries.col[u]) low = middle;
                else high = middle;
            }
            slot[u] = low;
            /* What the mask forbids. */
            if (!PLAIN && (low == high || keys[low] != entries.col[u])) entries.col[u] = EMPTY;
        }
        __syncwarp();
        add_in_turns<U>(*this, entries, slot, turn, turns);
    }
};

/* ---- hashed rows: sorting -------------------------------------------------------------------------------- */

/* Where entry `place` of a sorted row lies: K consecutive places, one lane's, in as many banks. */
static __device__ __forceinline__ int swizzled(int place, int spread) { return place ^ (place >> 5 & spread); }

/* Sorts the table's `used` <= 32·K entries: leaves their columns in `keys` and their slots in `list`, both swizzled
 * with K - 1. The table is no table any more. */
template <int K, typename Key, typename Table> static __device__ __forceinline__ void sort_entries(Table &table)
{
    const int lane = threadIdx.x & 31, bits = 32 - table.shift;
    Key key[K];
#pragma unroll
    for (int i = 0; i < K; i++) {
        key[i] = ~Key(0);
        if (i * 32 + lane >= table.used) continue;
        const int slot = table.list[i * 32 + lane];
        key[i] = (Key)(uint32_t)table.keys[slot] << bits | (Key)slot;
    }
    sort_keys<K>(key, 32);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < K; i++) {
        const int place = lane * K + i, at = swizzled(place, K - 1);
        if (place >= table.used) continue;
        table.keys[at] = (int32_t)(key[i] >> bits);
        table.list[at] = (uint16_t)((uint32_t)key[i] & (0xffffffffu >> table.shift));
    }
    __syncwarp();
}

/* Sorts with the smallest network of 32·LEAST to 32·MOST keys and writes the table's rows, the r-th from to[r] on.
 * Keys of 32 bits hold column and slot in plain products of not too many columns. */
template <int LEAST, int MOST, bool PLAIN, typename V, typename Table>
static __device__ __forceinline__ void write_sorted(Table &table, const int64_t (&to)[Table::ROWS], int32_t *cols,
                                                    V *values)
{
    int spread = LEAST - 1; /* K - 1 */
    while (32 * (spread + 1) < table.used) spread = 2 * spread + 1;
    const bool narrow = PLAIN && table.product.cols <= (int64_t)1 << table.shift;
#define SORT(K)                                                                                  \
    if constexpr (LEAST <= K && K <= MOST) {                                                     \
        if (spread == K - 1) {                                                                   \
            if (narrow) sort_entries<K, std::conditional_t<PLAIN, uint32_t, uint64_t>>(table);   \
            else sort_entries<K, uint64_t>(table);                                               \
        }                                                                                        \
    }
    SORT(1) SORT(2) SORT(4) SORT(8) SORT(16) SORT(32)
#undef SORT
    for (int i = threadIdx.x & 31; i < table.used; i += 32) {
        const int at = swizzled(i, spread), slot = table.list[at];
#pragma unroll
        for (int r = 0; r < Table::ROWS; r++) {
            cols[to[r] + i] = table.keys[at];
            if (values) values[to[r] + i] = (V)table.sums[r * table.slots() + slot];
        }
    }
    __syncwarp();
}

#endif
