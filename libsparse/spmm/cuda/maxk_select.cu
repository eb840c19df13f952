/* MaxK's selection on a CUDA device (Peng et al., "MaxK-GNN", 2024): the k largest of each row in compressed rows, and
 * back to dense rows. A warp takes a row. Reads 4 bytes a number and writes 5 a kept entry (f32, up to 256 columns).
 */
#include "device/keys.cuh"
#include "spmm/cuda/maxk.cuh"

enum { WARPS = MAXK_WARPS, THREADS = 32 * WARPS };

/* ---- numbers in order ------------------------------------------------------------------------------------ */

static __device__ __forceinline__ float value_of(uint32_t key)
{
    return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}
static __device__ __forceinline__ double value_of(uint64_t key)
{
    return __longlong_as_double((long long)(key >> 63 ? key & 0x7fffffffffffffffull : ~key));
}

/* ---- the k largest --------------------------------------------------------------------------------------- */

/* The keys of a warp's row, a column a lane, 32 columns an item; 0 beyond the last. ITEMS 0: any number of them, read
 * again each time. */
template <typename T, int ITEMS> struct row_keys {
    using K = typename key_type<T>::type;
    K key[ITEMS];

    __device__ __forceinline__ row_keys(const T *x, int width)
    {
        T value[ITEMS];
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) value[i] = i * 32 + lane < width ? __ldg(x + i * 32 + lane) : T(0);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) key[i] = i * 32 + lane < width ? key_of(value[i]) : 0;
    }
    template <typename Take> __device__ __forceinline__ void for_each(Take take) const
    {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) take(i, key[i]);
    }
};

template <typename T> struct row_keys<T, 0> {
    using K = typename key_type<T>::type;
    const T *x;
    int width;

    __device__ __forceinline__ row_keys(const T *x_row, int x_width) : x(x_row), width(x_width) {}
    template <typename Take> __device__ __forceinline__ void for_each(Take take) const
    {
        for (int i = 0; i * 32 < width; i++) {
            const int column = i * 32 + threadIdx.x % 32;
            take(i, column < width ? key_of(__ldg(x + column)) : (K)0);
        }
    }
};

static __device__ __forceinline__ uint64_t most_of_warp(uint64_t value)
{
    for (int step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(FULL_WARP, value, step));
    return value;
}

static __device__ __forceinline__ uint32_t most_of_warp(uint32_t value) { return warp_max(value); }

template <typename K, typename Keys> static __device__ __forceinline__ int count_from(const Keys &keys, K least)
{
    unsigned count = 0;
    keys.for_each([&](int, K key) { count += key >= least; });
    return (int)warp_add(count);
}

/* Halfway between two keys, above the first: between the values at first, which takes 7 to 9 steps in all where
 * values are spread like normal ones, then between the keys, which ends after as many as they have bits. */
enum { VALUE_STEPS = 12 };

template <typename K> static __device__ __forceinline__ K halfway(K low, K high, int step)
{
    const auto a = value_of(low), b = value_of(high);
    const K between = key_of(a + (b - a) / 2);
    return step < VALUE_STEPS && between > low && between <= high ? between : high - (high - low) / 2;
}

/* The k-th largest key, or one below it that just k reach (*exact). Not below it is the largest key; not above it
 * is, for up to 32, what the largest of all lanes reach, else the smallest key. */
template <typename K, typename Keys>
static __device__ __forceinline__ K threshold(const Keys &keys, int k, bool *exact)
{
    K largest = 0, smallest = ~(K)0;
    keys.for_each([&](int, K key) {
        largest = max(largest, key);
        if (key > 0) smallest = min(smallest, key);
    });
    K high = most_of_warp(largest), low = ~most_of_warp((K)~(k <= 32 ? largest : smallest));
    if (low == 0) low = 1;
    *exact = false;
    for (int step = 0; low < high && !*exact; step++) {
        const K middle = halfway(low, high, step);
        const int reached = count_from(keys, middle);
        if (reached >= k) low = middle;
        else high = middle - 1;
        *exact = reached == k;
    }
    return low;
}

template <typename T, typename C, int ITEMS>
static __device__ __forceinline__ void select_row(int width, int k, const T *x, T *values, C *columns)
{
    using K = typename key_type<T>::type;
    const row_keys<T, ITEMS> keys(x, width);
    bool exact;
    const K least = threshold<K>(keys, k, &exact);
    const unsigned below = (1u << (threadIdx.x % 32)) - 1;
    /* This many of those that equal the threshold are kept. */
    int at = 0, equals = exact ? 0 : k - (least == ~(K)0 ? 0 : count_from<K>(keys, least + 1));
    keys.for_each([&](int item, K key) {
        bool kept = key >= least;
        if (!exact) {
            const unsigned equal = __ballot_sync(FULL_WARP, key == least);
            kept = kept && (key > least || __popc(equal & below) < equals);
            equals -= __popc(equal);
        }
        const unsigned all = __ballot_sync(FULL_WARP, kept);
        if (kept) {
            const int column = item * 32 + (int)(threadIdx.x % 32), place = at + __popc(all & below);
            values[place] = __ldg(x + column);
            columns[place] = (C)column;
        }
        at += __popc(all);
    });
}

template <typename T, typename C, int ITEMS>
static __global__ void __launch_bounds__(THREADS)
    select_rows(int64_t rows, int width, int k, const T *x, int64_t stride, T *values, C *columns)
{
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row < rows) select_row<T, C, ITEMS>(width, k, x + row * stride, values + row * k, columns + row * k);
}

/* A row of 128 to 256 numbers is PACKS packets of 4 a lane. */
enum { PACKS = 2, NUMBERS = 4 * PACKS };

/* Writes the lane's numbers from `least` on behind those of the lanes before it. */
static __device__ __forceinline__ void write_from(float least, const float (&number)[NUMBERS], float *values,
                                                  uint8_t *columns)
{
    const int lane = threadIdx.x % 32;
    unsigned own = 0; /* how many of each packet, 16 bits a packet */
#pragma unroll
    for (int i = 0; i < NUMBERS; i++) own += (unsigned)(number[i] >= least) << 16 * (i / 4);
    const unsigned until = sum_until(own), before = until - own;
    const int first = (int)(__shfl_sync(FULL_WARP, until, 31) & 0xffff);
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        int place = p == 0 ? (int)(before & 0xffff) : first + (int)(before >> 16);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (number[4 * p + i] >= least) {
                values[place] = number[4 * p + i];
                columns[place++] = (uint8_t)(p * 128 + 4 * lane + i);
            }
    }
}

/* A row by comparing its numbers as they are: half the instructions of keys, and one count of the kept in all lanes
 * before instead of a vote for each number. False, and nothing is written, if a number is not finite or no value
 * between two parts just k from the others. */
static __device__ __forceinline__ bool select_fast(int width, int k, const float *x, float *values, uint8_t *columns)
{
    const int lane = threadIdx.x % 32;
    const float none = -__int_as_float(0x7f800000);
    float number[NUMBERS], largest = none, smallest = -none;
    bool finite = true;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        const int column = p * 128 + 4 * lane;
        const bool inside = column < width;
        const float4 four = inside ? __ldg((const float4 *)(x + column)) : make_float4(none, none, none, none);
        number[4 * p] = four.x, number[4 * p + 1] = four.y, number[4 * p + 2] = four.z, number[4 * p + 3] = four.w;
#pragma unroll
        for (int i = 4 * p; i < 4 * p + 4; i++) {
            finite = finite && (!inside || fabsf(number[i]) < -none);
            largest = fmaxf(largest, number[i]);
            if (inside) smallest = fminf(smallest, number[i]);
        }
    }
    if (!__all_sync(FULL_WARP, finite)) return false;
    /* All 32 lanes have numbers: for up to 32 the threshold is not below the largest that all lanes reach. */
    float high = value_of(most_of_warp(key_of(largest)));
    float low = value_of(~most_of_warp(~key_of(k <= 32 ? largest : smallest)));
    float least = low;
    int reached = 0;
    for (int step = 0; step < VALUE_STEPS && reached != k; step++) {
        least = low + (high - low) / 2;
        reached = 0;
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) reached += number[i] >= least;
        reached = (int)warp_add((unsigned)reached);
        if (reached > k) low = least;
        else high = least;
    }
    if (reached != k) return false;
    write_from(least, number, values, columns);
    return true;
}

static __global__ void __launch_bounds__(THREADS)
    select_rows_fast(int64_t rows, int width, int k, const float *x, int64_t stride, float *values, uint8_t *columns)
{
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;
    x += row * stride;
    values += row * k;
    columns += row * k;
    if (!select_fast(width, k, x, values, columns)) select_row<float, uint8_t, 8>(width, k, x, values, columns);
}

template <typename T, typename C>
static __global__ void __launch_bounds__(THREADS)
    expand_rows(int64_t rows, int width, int k, const T *values, const C *columns, T *x, int64_t stride)
{
    const int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;
    x += row * stride;
    for (int j = threadIdx.x % 32; j < width; j += 32) x[j] = 0;
    __syncwarp();
    for (int e = threadIdx.x % 32; e < k; e += 32) x[__ldg(columns + row * k + e)] = __ldg(values + row * k + e);
}

/* ---- host ------------------------------------------------------------------------------------------------ */

struct select_launch {
    sp_context *context;
    const sp_dense *x;
    sp_cbsr *kept;

    template <typename T, typename C, int ITEMS> sp_status launch() const
    {
        select_rows<T, C, ITEMS><<<maxk_blocks(kept->rows), THREADS, 0, cuda_state_of(context)->stream>>>(
            kept->rows, (int)kept->cols, (int)kept->k, (const T *)x->values, x->stride, (T *)kept->values,
            (C *)kept->columns);
        CUDA_CHECK(cudaGetLastError());
        return SP_OK;
    }
    bool packets_fit() const
    {
        return kept->cols >= 128 && kept->cols % 4 == 0 && x->stride % 4 == 0 && (uintptr_t)x->values % 16 == 0;
    }
    sp_status launch_fast() const
    {
        select_rows_fast<<<maxk_blocks(kept->rows), THREADS, 0, cuda_state_of(context)->stream>>>(
            kept->rows, (int)kept->cols, (int)kept->k, (const float *)x->values, x->stride, (float *)kept->values,
            (uint8_t *)kept->columns);
        CUDA_CHECK(cudaGetLastError());
        return SP_OK;
    }
    template <typename T, typename C> sp_status run() const
    {
        if constexpr (sizeof(T) == 4 && sizeof(C) == 1)
            if (packets_fit()) return launch_fast();
        if constexpr (sizeof(C) == 1)
            return kept->cols <= 64 ? launch<T, C, 2>() : launch<T, C, 8>();
        else
            return kept->cols <= 512    ? launch<T, C, 16>()
                   : kept->cols <= 1024 ? launch<T, C, 32>()
                                        : launch<T, C, 0>();
    }
};

struct expand_launch {
    sp_context *context;
    const sp_cbsr *kept;
    sp_dense *x;

    template <typename T, typename C> sp_status run() const
    {
        expand_rows<T, C><<<maxk_blocks(kept->rows), THREADS, 0, cuda_state_of(context)->stream>>>(
            kept->rows, (int)kept->cols, (int)kept->k, (const T *)kept->values, (const C *)kept->columns,
            (T *)x->values, x->stride);
        CUDA_CHECK(cudaGetLastError());
        return SP_OK;
    }
};

sp_status sp_cuda_maxk(sp_context *context, const sp_dense *x, sp_cbsr *kept)
{
    CHECK(maxk_begin(context));
    return maxk_with_types(kept, select_launch{context, x, kept});
}

sp_status sp_cuda_maxk_expand(sp_context *context, const sp_cbsr *kept, sp_dense *x)
{
    CHECK(maxk_begin(context));
    return maxk_with_types(kept, expand_launch{context, kept, x});
}
