/* Small rows of C, up to 96 products: packs of neighbouring rows, which a warp sorts together in its registers. */
#ifndef SPARSE_SPGEMM_PACK_CUH
#define SPARSE_SPGEMM_PACK_CUH

#include "device/sort.cuh"
#include "spgemm/cuda/walk.cuh"

/* ---- packs ------------------------------------------------------------------------------------------------ */

/* Neighbouring rows of up to 128 products and 32 elements of A together are a pack. Its products are sorted by row
 * and column, four keys a lane, so that what it adds to C lies side by side. A pack costs some 100 instructions
 * whatever it holds, a quarter of the cost of sorting and adding up 64 products. */
enum { PACK_KEYS = 4, PACK_PRODUCTS = 32 * PACK_KEYS };

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

/* Writes the entries of a sorted pack: key[i] is that of place 32·i + lane, `kept` are the first of equal columns that
 * the mask lets be, `entry` is the first entry of C. */
template <typename Key, bool PLAIN, typename V>
static __device__ __forceinline__ void write_pack(const product_view<V> &product,
                                                  const pack_memory<Key, true, PLAIN> &memory,
                                                  const Key (&key)[PACK_KEYS], const pack_bits &bits, int total,
                                                  const pack_places &kept, int64_t entry, int32_t *cols,
                                                  V *values)
{
    const Key place_mask = ((Key)1 << bits.place) - 1;
#pragma unroll
    for (int i = 0; i < PACK_KEYS; i++) {
        const int at = 32 * i + (threadIdx.x & 31);
        if (at >= total) continue;
        const int64_t to = entry + kept.rank(i) - 1;
        double sum = memory.term[key[i] & place_mask];
        if (!(kept.word[i] >> (threadIdx.x & 31) & 1)) continue;
        for (int next = at + 1; next < total; next++) {
            const Key other = memory.key[next];
            if ((other ^ key[i]) >> bits.place) break;
            sum = combine<PLAIN>(product, sum, memory.term[other & place_mask]);
        }
        cols[to] = column_of(bits, key[i]);
        if (values) values[to] = (V)sum;
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

/* Lists the pack's rows of B that are not empty, a lane an element of A. *total: their products; each row's
 * begin at the places that are returned. */
template <bool SUM, bool PLAIN, typename V>
static __device__ __forceinline__ pack_places list_rows_of_b(const product_view<V> &product, const pack_rows &pack,
                                                             packed_row<PLAIN> *rows, int *total)
{
    const int lane = threadIdx.x & 31;
    packed_row<PLAIN> b = {1, 0};
    int products = 0;
    if (lane < pack.elements) {
        const int64_t at = pack.begin + lane;
        const int32_t k = __ldg(product.a.cols + at);
        if (SUM && (PLAIN || product.a.values)) b.weight = (double)__ldg(product.a.values + at);
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

/* A product with entry `at` of B. */
template <bool PLAIN, typename V, typename Place>
static __device__ __forceinline__ double term_of(const product_view<V> &product, double weight, Place at)
{
    const double value = PLAIN || product.b.values ? (double)__ldg(product.b.values + at) : 1;
    return multiply<PLAIN>(product, weight, value);
}

/* The keys of the pack's products, four a lane, and with SUM their terms; `begun`: where those of a row of B begin,
 * `begun_rows`: of a row of C. */
template <typename Key, bool SUM, bool PLAIN, typename V>
static __device__ __forceinline__ void form_keys(const product_view<V> &product, const pack_places &begun,
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
static __device__ __forceinline__ int take_packs(const product_view<V> &product, int64_t base, const small_row &own,
                                                 pack_memory<Key, SUM, PLAIN> &memory, int64_t to, int32_t *cols,
                                                 V *values)
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
        sort_keys<PACK_KEYS>(key, 32);
        memory.of_lane[lane] = keys;
        __syncwarp();
        bool flag[PACK_KEYS];
#pragma unroll
        for (int i = 0; i < PACK_KEYS; i++) {
            const int place = 32 * i + lane;
            key[i] = memory.key[place];
            flag[i] = place < total && (place == 0 || memory.key[place - 1] >> bits.place != key[i] >> bits.place);
        }
        pack_places kept = ballot_places(flag);
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
            write_pack<Key, PLAIN>(product, memory, key, bits, total, kept,
                                   __shfl_sync(FULL_WARP, (long long)to, pack.first), cols, values);
        else if (member)
            length = kept.below(before - pack.done + own.products) - kept.below(before - pack.done);
        __syncwarp();
    }
    return length;
}

#endif
