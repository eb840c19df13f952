/* Merged rows of C: a lane each, which merges the rows of B that its row of A names. No table, no sort, and sums in
 * A's order. All 32 rows of a warp are merged, or none: those of a warp whose rows of A are short and like their
 * neighbours, so that neighbouring lanes read neighbouring rows of B. Lanes that each read 4 bytes here and there take
 * twice as long as packs. */
#include "spgemm/cuda/classes.cuh"

/* Two columns of A in neighbouring rows are near up to a distance of NEAR. A warp takes some instructions for each of N
 * elements and each entry of its longest row, packs some for each product: rows are merged if the longest has at most
 * MOST_WAITING / N times as many products as their mean. */
enum { NEAR = 32, MOST_WAITING = 24 };

/* A row of C, of at most N rows of B of fewer than 2^32 entries in all. */
template <int N> struct row_merge {
    const int32_t *cols;       /* of B */
    uint32_t at[N], end[N];    /* the rest of B's rows */
    int32_t head[N];           /* their columns at `at`, or NO_COLUMN */
    static constexpr int32_t NO_COLUMN = INT32_MAX;

    /* Opens the rows of B with the numbers k, where these are not negative. */
    __device__ __forceinline__ void open(const int32_t (&k)[N], const int64_t *b_offsets)
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
            at[i] = k[i] < 0 ? 0 : (uint32_t)__ldg(b_offsets + k[i]);
            end[i] = k[i] < 0 ? 0 : (uint32_t)__ldg(b_offsets + k[i] + 1);
        }
#pragma unroll
        for (int i = 0; i < N; i++) look(i);
    }
    __device__ __forceinline__ void look(int i) { head[i] = at[i] < end[i] ? __ldg(cols + at[i]) : NO_COLUMN; }
    __device__ __forceinline__ int32_t lowest() const
    {
        int32_t low = head[0];
#pragma unroll
        for (int i = 1; i < N; i++) low = min(low, head[i]);
        return low;
    }
    __device__ __forceinline__ int count()
    {
        int entries = 0;
        for (int32_t low; (low = lowest()) != NO_COLUMN; entries++)
#pragma unroll
            for (int i = 0; i < N; i++)
                if (head[i] == low) {
                    at[i]++;
                    look(i);
                }
        return entries;
    }
    /* The sum of column `low`; all that it reads is on its way at once. */
    template <typename V>
    __device__ __forceinline__ double take(int32_t low, const V (&weight)[N], const V *values)
    {
        bool takes[N];
        V value[N];
        double sum = no_sum<true>();
#pragma unroll
        for (int i = 0; i < N; i++) {
            takes[i] = head[i] == low;
            if (!takes[i]) continue;
            value[i] = __ldg(values + at[i]++);
            look(i);
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            if (takes[i]) sum = __dadd_rn(sum, __dmul_rn((double)weight[i], (double)value[i]));
        return sum;
    }
};

/* Reads the lane's columns of A, from `begin` on, -1 beyond them. Whether at least half of the warp's have one near
 * them in the row of the lane's neighbour. Of longer rows only the first is read where hardly any begin alike. */
template <int N>
static __device__ __forceinline__ bool are_alike(int64_t begin, int elements, const int32_t *a_cols, int32_t (&k)[N])
{
    k[0] = elements > 0 ? __ldg(a_cols + begin) : -1;
    const int32_t beside = __shfl_xor_sync(FULL_WARP, k[0], 1);
    const bool begins = elements > 0 && beside >= 0 && abs(k[0] - beside) <= NEAR;
    if (N > 4 && 8 * __popc(__ballot_sync(FULL_WARP, begins)) < __popc(__ballot_sync(FULL_WARP, elements > 0)))
        return false;
#pragma unroll
    for (int i = 1; i < N; i++) k[i] = i < elements ? __ldg(a_cols + begin + i) : -1;
    unsigned near = 0; /* a bit an element */
#pragma unroll
    for (int j = 0; j < N; j++) {
        const int32_t other = __shfl_xor_sync(FULL_WARP, k[j], 1);
#pragma unroll
        for (int i = 0; i < N; i++)
            if (other >= 0 && abs(k[i] - other) <= NEAR) near |= 1u << i;
    }
    const unsigned own = (1u << elements) - 1;
    return 2 * warp_add(__popc(near & own)) >= warp_add(elements);
}

/* Finds the warps whose 32 rows are merged, notes it and counts their entries; other rows are noted as idle. */
template <int N>
static __global__ void __launch_bounds__(256)
    count_merged(int64_t rows, const int64_t *a_offsets, const int32_t *a_cols, const int64_t *b_offsets,
                 const int32_t *b_cols, uint8_t *notes, int32_t *lengths, warp_totals *totals)
{
    __shared__ uint64_t scratch[32];
    const int lane = threadIdx.x & 31;
    unsigned merged = 0, products = 0, entries = 0;
    for (int64_t base = (int64_t)first_warp() * 32; base < rows; base += (int64_t)all_warps() * 32) {
        const int64_t row = min(base + lane, rows), begin = a_offsets[row], end = a_offsets[min(row + 1, rows)];
        int32_t k[N];
        const int elements = (int)min(end - begin, (int64_t)N + 1);
        bool merges = __all_sync(FULL_WARP, elements <= N) && are_alike(begin, elements, a_cols, k);
        row_merge<N> merge = {b_cols};
        if (merges) {
            uint32_t own = 0;
            merge.open(k, b_offsets);
#pragma unroll
            for (int i = 0; i < N; i++) own += min(merge.end[i] - merge.at[i], MOST_SMALL + 1u);
            const unsigned most = warp_max(own), filled = __popc(__ballot_sync(FULL_WARP, own > 0));
            merges = most <= MOST_SMALL && filled * N * most <= MOST_WAITING * warp_add(own);
            if (merges) products += own;
        }
        if (row < rows) notes[row] = note_of(merges ? CLASS_MERGED : CLASS_IDLE);
        if (!merges || row >= rows) continue;
        merged++;
        lengths[row] = merge.count();
        entries += (unsigned)lengths[row];
    }
    merged = block_reduce<256>(merged, add_op(), scratch);
    products = block_reduce<256>(products, add_op(), scratch);
    entries = block_reduce<256>(entries, add_op(), scratch);
    if (threadIdx.x != 0 || merged == 0) return;
    atomicAdd(&totals->members[CLASS_MERGED], merged);
    atomicAdd(&totals->products, (unsigned long long)products);
    atomicAdd(&totals->entries, (unsigned long long)entries);
}

/* A lane's entries leave for C by CHUNK, side by side through shared memory, where a lane has one place more than that:
 * its neighbours are then in other banks. */
enum { CHUNK = 8, MERGED_WARPS = WARP_THREADS / 32 };
template <typename V> struct merged_chunk {
    V values[32][CHUNK + 1];
    int32_t cols[32][CHUNK + 1];
};

template <int N, typename V>
static __global__ void __launch_bounds__(WARP_THREADS, N > 4 ? 5 : 8) sum_merged(warp_job<V> job)
{
    let_next_begin();
    __shared__ merged_chunk<V> chunks[MERGED_WARPS];
    const matrix_view<V> &a = job.product.a, &b = job.product.b;
    const int lane = threadIdx.x & 31;
    merged_chunk<V> &chunk = chunks[threadIdx.x / 32];
    row_merge<N> merge = {b.cols};
    for (int64_t base = (int64_t)first_warp() * 32; base < job.rows; base += (int64_t)all_warps() * 32) {
        if (class_of(job.notes[base]) != CLASS_MERGED) continue;
        const int64_t row = min(base + lane, job.rows), next = min(row + 1, job.rows), begin = a.offsets[row];
        const int elements = (int)(a.offsets[next] - begin);
        const int64_t start = job.offsets[base];
        const int own = (int)(job.offsets[row] - start), length = (int)(job.offsets[next] - start) - own;
        int32_t k[N];
        V weight[N];
#pragma unroll
        for (int i = 0; i < N; i++) k[i] = i < elements ? __ldg(a.cols + begin + i) : -1;
        merge.open(k, b.offsets);
#pragma unroll
        for (int i = 0; i < N; i++) weight[i] = i < elements ? __ldg(a.values + begin + i) : (V)0;
        int32_t *c_cols = job.c_cols + start;
        V *c_values = job.c_values + start;
        for (int done = 0, longest = (int)warp_max((unsigned)length); done < longest; done += CHUNK) {
            const int count = min(max(length - done, 0), (int)CHUNK);
            for (int i = 0; i < count; i++) {
                const int32_t low = merge.lowest();
                chunk.cols[lane][i] = low;
                chunk.values[lane][i] = (V)merge.take(low, weight, b.values);
            }
            __syncwarp();
#pragma unroll
            for (int u = 0; u < CHUNK; u++) {
                const int of = u * (32 / CHUNK) + lane / CHUNK, i = lane % CHUNK;
                const int there = __shfl_sync(FULL_WARP, count, of), to = __shfl_sync(FULL_WARP, own, of) + done + i;
                if (i >= there) continue;
                c_cols[to] = chunk.cols[of][i];
                c_values[to] = chunk.values[of][i];
            }
            __syncwarp();
        }
    }
    end_after_last();
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* Rows of A of how many elements are merged, for the mean of all; 0: none. Where most rows are empty, reading them
 * once more would cost more than it gains. */
static int merged_elements(const sp_csr *a)
{
    if (2 * a->nnz < a->rows || left_out("spgemm-merged")) return 0;
    return a->nnz <= 4 * a->rows ? 4 : a->nnz <= 9 * a->rows ? 9 : 0;
}

bool can_merge(const sp_csr *a) { return merged_elements(a) > 0; }

template <int N, typename V> static sp_status launch_merged_counts(warp_run<V> *run)
{
    const sp_csr *a = run->a, *b = run->b;
    return launch_strided(run->context, count_merged<N>, (a->rows + 255) / 256, stream_of(run->context), a->rows,
                          a->row_offsets, a->col_indices, b->row_offsets, b->col_indices, run->notes, run->lengths,
                          run->job.totals);
}

template <typename V> sp_status count_merged_rows(warp_run<V> *run)
{
    return merged_elements(run->a) == 4 ? launch_merged_counts<4>(run) : launch_merged_counts<9>(run);
}

template <typename V> sp_status launch_merged(warp_run<V> *run)
{
    if (!has_rows(run, CLASS_MERGED)) return SP_OK;
    return merged_elements(run->a) == 4 ? launch(run, sum_merged<4, V>, WARP_THREADS, 0, INT64_MAX, 0)
                                        : launch(run, sum_merged<9, V>, WARP_THREADS, 0, INT64_MAX, 0);
}

template sp_status count_merged_rows(warp_run<float> *);
template sp_status count_merged_rows(warp_run<double> *);
template sp_status launch_merged(warp_run<float> *);
template sp_status launch_merged(warp_run<double> *);
