/* The tiles that terms.cu needs, made from the products of each entry of C (source.cuh).
 *
 * A tile takes entries as long as their products fit it, but no whole row in part. A block fills it in one pass. It
 * brings the products into the order of A and B: those of whole and cut rows are walked, those of listed ones sorted.
 * It groups those of an entry by counting; few must then change places to be in order. It sorts the entries by these
 * counts, by counting as well. Blocks take room for segments and lists as they go, of arrays whose used part is copied.
 * Should the guess for lists be too low, all tiles are filled again.
 *
 * A product costs 14 to 20 instructions of a warp, three quarters of the time that there is to issue them.
 */
#include <algorithm>

#include <cub/block/block_radix_sort.cuh>

#include "base/ablation.h"
#include "base/search.h"
#include "spgemm/cuda/plan/source.cuh"

static cudaStream_t stream_of(sp_context *context) { return cuda_state_of(context)->stream; }

enum { MAKE_THREADS = 512, MAKE_EACH = TILE_MOST / MAKE_THREADS, MAKE_WARPS = MAKE_THREADS / 32, CUT_THREADS = 128 };
static_assert(MAKE_EACH * MAKE_THREADS == TILE_MOST && (int)MOST_TERMS <= (int)MAKE_THREADS, "no rest");

/* ---- device: cuts ---------------------------------------------------------------------------------------- */

/* Tiles follow one another within runs of RUN_PLACES, each cut by a warp: a tile begins as the one before is full. */
enum { RUN_PLACES = 16 * TILE_MOST };

/* The last i in [low, high] with starts[i] <= place, which starts[low] is; by a warp. */
static __device__ int64_t last_until(const int64_t *starts, int64_t low, int64_t high, int64_t place)
{
    while (low < high) {
        const int64_t step = (high - low + 31) / 32, at = low + step * ((threadIdx.x & 31) + 1);
        const int until = __popc(__ballot_sync(FULL_WARP, at <= high && starts[at] <= place));
        const int64_t next = low + step * (until + 1) - 1;
        low += step * until;
        high = min(high, next);
    }
    return low;
}

/* Counts the tiles of each run, or, with WRITE, writes the first entry of each. No cut parts a whole row: all its
 * places are the first entry's. */
template <bool WRITE>
static __global__ void __launch_bounds__(CUT_THREADS)
    cut_runs(product_source source, int64_t places, int64_t runs, const int64_t *before, int32_t *counts, int64_t *cuts)
{
    const int64_t run = ((int64_t)blockIdx.x * CUT_THREADS + threadIdx.x) / 32;
    if (run >= runs) return;
    const int64_t begin = run * RUN_PLACES, nnz = source.nnz;
    const int64_t end = last_until(source.starts, 0, nnz, min(begin + RUN_PLACES, places));
    int64_t entry = run == 0 ? 0 : last_until(source.starts, 0, nnz, begin), count = 0;
    while (entry < end) {
        if (WRITE && (threadIdx.x & 31) == 0) cuts[before[run] + count] = entry;
        count++;
        entry = last_until(source.starts, entry, min(entry + TILE_MOST, end), source.starts[entry] + TILE_MOST);
    }
    if ((threadIdx.x & 31) > 0) return;
    if (!WRITE) counts[run] = (int32_t)count;
    else if (run == runs - 1) cuts[before[run] + count] = nnz;
}

/* The rows of C in which tiles begin, and the number of rows. */
static __global__ void __launch_bounds__(CUT_THREADS)
    find_rows(product_source source, int64_t tiles, const int64_t *cuts, int64_t *rows)
{
    const int64_t i = (int64_t)blockIdx.x * CUT_THREADS + threadIdx.x;
    if (i < tiles) rows[i] = row_of_entry(source.c_offsets, source.rows, cuts[i]);
    else if (i == tiles) rows[i] = source.rows;
}

/* ---- device: products of a tile -------------------------------------------------------------------------- */

typedef cub::BlockRadixSort<uint32_t, MAKE_THREADS, MAKE_EACH, uint16_t> tile_sort;

/* Entries of up to FEW_TERMS products bring them into order one by one, by a thread; those of more by a bit for each of
 * the tile's products, by a warp. */
enum { FEW_TERMS = 16 };

/* What `kind` says of a head, if it is not where the entries of C end among which its products are. */
enum { LISTED = UINT16_MAX, EMPTY_PLACES = UINT16_MAX - 1 };
/* The entry of C of a place without product. */
enum { NO_OWNER = UINT16_MAX };
/* Rows of a tile that are cut: what it has of the first and the last, and another of more than MOST_WHOLE products. */
enum { MOST_CUT = 3 };

struct make_memory {
    union {
        uint32_t a[TILE_MOST];     /* entries of A */
        uint16_t place[TILE_MOST]; /* of products, by entry of C */
    };
    union {
        uint32_t b[TILE_MOST]; /* entries of B; at heads, the first */
        struct {
            uint32_t bits[MAKE_WARPS][TILE_GROUPS];
            uint16_t order[TILE_MOST]; /* entries of several products, those of most first */
        };
    };
    union {
        uint16_t owner[TILE_MOST]; /* entries of C; at heads the first */
        uint32_t lengths[MOST_TERMS + 1];
    };
    union {
        int32_t cols[TILE_MOST]; /* of entries of C */
        tile_sort::TempStorage sort;
        uint32_t count[TILE_MOST]; /* products of entries of C */
    };
    union {
        uint16_t kind[TILE_MOST];
        uint16_t start[TILE_MOST]; /* products of entries before */
    };
    walked_products walked;
    uint32_t before[TILE_GROUPS];
    uint64_t scratch[MAKE_WARPS];
    int64_t reserved;
    int cuts;
    int32_t cut[MOST_CUT];
};

/* All that is counted on the device. */
struct tile_totals {
    unsigned long long segments, pieces;
};

/* A tile, as far as cuts say what it is. */
struct tile_cut {
    int64_t entry, begin, row, next_row; /* begin: its first place */
    int entries, places;
};

/* Heads of the products of listed rows, and whether there are any. */
static __device__ bool mark_listed(const product_source &source, const tile_cut &tile, make_memory &memory)
{
    bool any = false;
    for (int i = threadIdx.x; i < tile.entries; i += MAKE_THREADS) {
        const uint32_t weight = source.weights[tile.entry + i];
        const int at = (int)(source.starts[tile.entry + i] - tile.begin);
        if (!(weight & LONG_ENTRY) && (weight || source.starts[tile.entry + i + 1] - tile.begin == at)) continue;
        memory.owner[at] = (uint16_t)i;
        memory.kind[at] = weight & LONG_ENTRY ? (uint16_t)EMPTY_PLACES : (uint16_t)LISTED;
        memory.walked.mark(at);
        any = true;
    }
    return any;
}

/* The head of the products of an entry of A, which begin at an entry of B and belong to entries owner..end of C. */
static __device__ __forceinline__ void mark_products(make_memory &memory, int place, int64_t a, int64_t b,
                                                     int64_t owner, int64_t end)
{
    memory.a[place] = (uint32_t)a;
    memory.b[place] = (uint32_t)b;
    memory.owner[place] = (uint16_t)owner;
    memory.kind[place] = (uint16_t)end;
    memory.walked.mark(place);
}

/* Heads of the products of whole rows: those of an entry of A. */
static __device__ void mark_whole(const product_source &source, const tile_cut &tile, make_memory &memory)
{
    const int64_t row = tile.row + (source.c_offsets[tile.row] < tile.entry);
    const int64_t end = source.a_offsets[tile.next_row];
    for (int64_t at = source.a_offsets[row] + threadIdx.x; at < end; at += MAKE_THREADS) {
        const int64_t before = source.before[at];
        if (before == source.before[at + 1]) continue;
        const int64_t own = upper_bound_i64(source.a_offsets, row, tile.next_row, at) - 1;
        const int64_t first = source.c_offsets[own];
        if (!(source.weights[first] & WHOLE_ROW)) continue;
        const int place = (int)(source.starts[first] - tile.begin + before - source.before[source.a_offsets[own]]);
        mark_products(memory, place, at, source.b_offsets[source.a_cols[at]], first - tile.entry,
                      source.c_offsets[own + 1] - tile.entry);
    }
}

/* The first of cols[low..high - 1] that is not below `col`, or `high`. */
static __device__ __forceinline__ int64_t first_column(const int32_t *cols, int64_t low, int64_t high, int32_t col)
{
    return low < high && __ldg(cols + low) >= col ? low : lower_bound_i32(cols, low, high, col);
}

/* Heads of the products of a row that is cut: those of an entry of A, a thread each, with the tile's columns. */
static __device__ void mark_cut_row(const product_source &source, const tile_cut &tile, int64_t row,
                                    make_memory &memory)
{
    const int64_t from = max(source.c_offsets[row], tile.entry);
    const int64_t end = min(source.c_offsets[row + 1], tile.entry + tile.entries);
    const int64_t at = source.a_offsets[row] + threadIdx.x;
    int64_t first = 0, last = 0;
    int all;
    if (at < source.a_offsets[row + 1]) {
        const int32_t k = source.a_cols[at];
        first = source.b_offsets[k];
        last = source.b_offsets[k + 1];
        if (from > source.c_offsets[row]) first = first_column(source.b_cols, first, last, source.c_cols[from]);
        if (end < source.c_offsets[row + 1]) last = first_column(source.b_cols, first, last, source.c_cols[end]);
    }
    const int before = block_scan<MAKE_THREADS>((int)(last - first), &all, memory.scratch);
    if (first == last) return;
    const int place = (int)(source.starts[from] - tile.begin) + before;
    mark_products(memory, place, at, first, from - tile.entry, end - tile.entry);
}

static __device__ void mark_cut_rows(const product_source &source, const tile_cut &tile, make_memory &memory)
{
    const int64_t end = tile.next_row + (source.c_offsets[tile.next_row] < tile.entry + tile.entries);
    for (int64_t row = tile.row + threadIdx.x; row < end; row += MAKE_THREADS) {
        const int64_t entry = source.c_offsets[row], elements = source.a_offsets[row + 1] - source.a_offsets[row];
        if (elements == 0 || is_listed(false, elements) || entry == source.c_offsets[row + 1]) continue;
        const uint32_t weight = source.weights[entry];
        if (weight & WHOLE_ROW) continue;
        memory.cut[atomicAdd(&memory.cuts, 1)] = (int32_t)row;
    }
    __syncthreads();
    for (int i = 0; i < memory.cuts; i++) mark_cut_row(source, tile, memory.cut[i], memory);
}

/* The last of cols[low..high - 1] that is not above `col`, as cols[low] is not. */
static __device__ __forceinline__ int find_column(const int32_t *cols, int low, int high, int32_t col)
{
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (cols[middle] <= col) low = middle;
        else high = middle;
    }
    return low;
}

/* Entries of A, B and C of the products of all places. A head keeps its entries of A and B, but not that of C. */
static __device__ void load_products(const product_source &source, const tile_cut &tile, make_memory &memory)
{
    int32_t col[MAKE_EACH];
    int owner[MAKE_EACH], end[MAKE_EACH];
    for (int i = threadIdx.x; i < tile.entries; i += MAKE_THREADS)
        memory.cols[i] = __ldg(source.c_cols + tile.entry + i);
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        const int place = i * MAKE_THREADS + threadIdx.x;
        owner[i] = NO_OWNER;
        end[i] = EMPTY_PLACES;
        if (place >= tile.places) continue;
        const int head = memory.walked.head_of(place);
        owner[i] = memory.owner[head];
        end[i] = memory.kind[head];
        if (end[i] == LISTED) {
            const uint2 pair = __ldcs(source.pairs + tile.begin + place);
            memory.a[place] = pair.x;
            memory.b[place] = pair.y;
        } else if (end[i] == EMPTY_PLACES) {
            owner[i] = NO_OWNER;
        } else {
            const uint32_t b = memory.b[head] + (uint32_t)(place - head);
            if (place != head) memory.a[place] = memory.a[head];
            if (place != head) memory.b[place] = b;
            col[i] = __ldg(source.b_cols + b);
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        if (end[i] < EMPTY_PLACES) owner[i] = find_column(memory.cols, owner[i], end[i], col[i]);
        memory.owner[i * MAKE_THREADS + threadIdx.x] = (uint16_t)owner[i];
    }
    __syncthreads();
}

/* Sorts products by entry of A; those of one entry of A keep the order of C, which is B's. Empty places drop out. */
static __device__ int sort_products(make_memory &memory)
{
    const int first = threadIdx.x * MAKE_EACH;
    int64_t low = INT64_MAX, high = -1;
    uint32_t key[MAKE_EACH], b[MAKE_EACH];
    uint16_t from[MAKE_EACH], owner[MAKE_EACH];
    int count = 0;
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        owner[i] = memory.owner[first + i];
        if (owner[i] == NO_OWNER) continue;
        low = min(low, (int64_t)memory.a[first + i]);
        high = max(high, (int64_t)memory.a[first + i]);
        count++;
    }
    high = block_reduce<MAKE_THREADS>(high, max_op(), memory.scratch);
    low = -block_reduce<MAKE_THREADS>(-low, max_op(), memory.scratch);
    count = block_reduce<MAKE_THREADS>(count, add_op(), memory.scratch);
    if (count == 0) return 0;
    const uint32_t lowest = (uint32_t)low, span = (uint32_t)(high - low);
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        from[i] = (uint16_t)(first + i);
        key[i] = owner[i] == NO_OWNER ? span + 1 : memory.a[first + i] - lowest;
    }
    tile_sort(memory.sort).Sort(key, from, 0, 32 - __clz((int)(span + 1)));
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        b[i] = memory.b[from[i]];
        owner[i] = memory.owner[from[i]];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        memory.a[first + i] = key[i] + lowest;
        memory.b[first + i] = b[i];
        memory.owner[first + i] = owner[i];
    }
    __syncthreads();
    return count;
}

/* ---- device: segments ------------------------------------------------------------------------------------ */

/* Where `count` elements go in an array that all blocks fill. */
static __device__ int64_t reserve(unsigned long long *used, int count, make_memory &memory)
{
    if (threadIdx.x == 0) memory.reserved = (int64_t)atomicAdd(used, (unsigned long long)count);
    __syncthreads();
    return memory.reserved;
}

/* Writes groups and segments; returns where these begin. */
static __device__ int64_t write_segments(int products, uint2 *groups, uint2 *segments, tile_totals *all,
                                         make_memory &memory)
{
    uint32_t *heads = memory.walked.heads;
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        const int rank = i * MAKE_THREADS + threadIdx.x;
        const bool head = rank < products && (rank == 0 || memory.a[rank] != memory.a[rank - 1] ||
                                              memory.b[rank] != memory.b[rank - 1] + 1);
        const uint32_t word = __ballot_sync(FULL_WARP, head);
        if ((threadIdx.x & 31) == 0) heads[rank / 32] = word;
    }
    __syncthreads();
    const uint32_t own = threadIdx.x < TILE_GROUPS ? heads[threadIdx.x] : 0;
    int total;
    const int before = block_scan<MAKE_THREADS>(__popc(own), &total, memory.scratch);
    if (threadIdx.x < TILE_GROUPS) {
        memory.before[threadIdx.x] = (uint32_t)before;
        groups[threadIdx.x] = make_uint2(own, (uint32_t)before);
    }
    const int64_t to = reserve(&all->segments, total, memory);
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        const int rank = i * MAKE_THREADS + threadIdx.x;
        const uint32_t word = heads[rank / 32];
        if (word >> rank % 32 & 1)
            segments[to + memory.before[rank / 32] + __popc(word & lanes_below())] =
                make_uint2(memory.a[rank], memory.b[rank] - (uint32_t)rank);
    }
    __syncthreads();
    return to;
}

/* ---- device: places -------------------------------------------------------------------------------------- */

/* Places of products by entry of C: memory.count, start and place. Within an entry they are nearly in order. */
static __device__ void group_places(int entries, int products, make_memory &memory)
{
    const int first = threadIdx.x * MAKE_EACH;
    uint32_t number[MAKE_EACH];
    int sum = 0, total;
    for (int i = threadIdx.x; i < entries; i += MAKE_THREADS) memory.count[i] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        const int rank = i * MAKE_THREADS + threadIdx.x;
        if (rank < products) number[i] = atomicAdd(memory.count + memory.owner[rank], 1u);
    }
    __syncthreads();
    for (int i = first; i < min(first + MAKE_EACH, entries); i++) sum += (int)memory.count[i];
    int start = block_scan<MAKE_THREADS>(sum, &total, memory.scratch);
    for (int i = first; i < min(first + MAKE_EACH, entries); i++) {
        memory.start[i] = (uint16_t)start;
        start += (int)memory.count[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MAKE_EACH; i++) {
        const int rank = i * MAKE_THREADS + threadIdx.x;
        if (rank < products) memory.place[memory.start[memory.owner[rank]] + number[i]] = (uint16_t)rank;
    }
    __syncthreads();
}

/* Brings a few places into order, which they nearly are. */
static __device__ void insert_places(uint16_t *place, int count)
{
    for (int i = 1; i < count; i++) {
        const uint16_t own = place[i];
        int at = i;
        for (; at > 0 && place[at - 1] > own; at--) place[at] = place[at - 1];
        place[at] = own;
    }
}

/* Brings many places into order, by a warp. */
static __device__ void order_by_bits(uint16_t *place, int count, uint32_t *bits)
{
    constexpr int WORDS = (TILE_GROUPS + 31) / 32;
    const int lane = threadIdx.x & 31;
    int own = 0, total;
    for (int i = lane; i < TILE_GROUPS; i += 32) bits[i] = 0;
    __syncwarp();
    for (int i = lane; i < count; i += 32) atomicOr(bits + place[i] / 32, 1u << place[i] % 32);
    __syncwarp();
    for (int w = lane * WORDS; w < min((lane + 1) * WORDS, (int)TILE_GROUPS); w++) own += __popc(bits[w]);
    int to = scan_lanes(own, &total);
    for (int w = lane * WORDS; w < min((lane + 1) * WORDS, (int)TILE_GROUPS); w++)
        for (uint32_t word = bits[w]; word; word &= word - 1) place[to++] = (uint16_t)(w * 32 + __ffs((int)word) - 1);
    __syncwarp();
}

/* Returns whether any entry has several products. */
static __device__ bool order_places(int entries, make_memory &memory)
{
    bool several = false, many = false;
    for (int i = threadIdx.x; i < entries; i += MAKE_THREADS) {
        const int count = (int)memory.count[i];
        several = several || count > 1;
        many = many || count > FEW_TERMS;
        if (count > 1 && count <= FEW_TERMS) insert_places(memory.place + memory.start[i], count);
    }
    if (!__syncthreads_or(several)) return false;
    if (!__syncthreads_or(many)) return true;
    const int warp = threadIdx.x / 32;
    for (int i = warp; i < entries; i += MAKE_WARPS)
        if (memory.count[i] > FEW_TERMS)
            order_by_bits(memory.place + memory.start[i], (int)memory.count[i], memory.bits[warp]);
    __syncthreads();
    return true;
}

/* Entries of several products, those of most first: memory.order. Returns their number. */
static __device__ int order_entries(int entries, make_memory &memory)
{
    int several;
    for (int i = threadIdx.x; i <= MOST_TERMS; i += MAKE_THREADS) memory.lengths[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < entries; i += MAKE_THREADS)
        if (memory.count[i] > 1) atomicAdd(memory.lengths + memory.count[i], 1u);
    __syncthreads();
    const int length = MOST_TERMS - (int)threadIdx.x;
    const int own = length > 1 ? (int)memory.lengths[length] : 0;
    const int before = block_scan<MAKE_THREADS>(own, &several, memory.scratch);
    if (length > 1) memory.lengths[length] = (uint32_t)before;
    __syncthreads();
    for (int i = threadIdx.x; i < entries; i += MAKE_THREADS)
        if (memory.count[i] > 1) memory.order[atomicAdd(memory.lengths + memory.count[i], 1u)] = (uint16_t)i;
    __syncthreads();
    return several;
}

/* Lists the places of entries of several products. Returns where the list begins. */
static __device__ int64_t write_list(int entries, uint4 *lists, int64_t room, tile_totals *all, int *slices,
                                     int *pieces, make_memory &memory)
{
    const int lane = threadIdx.x & 31, several = order_entries(entries, memory);
    uint32_t *begins = memory.before;
    int rows;
    *slices = (several + 31) / 32;
    const int width = (int)threadIdx.x < *slices ? (int)memory.count[memory.order[threadIdx.x * 32]] : 0;
    const int header = (*slices + 32) / 32; /* of 32 places: where slices begin, and the last one's end */
    const int begin = header + block_scan<MAKE_THREADS>(width, &rows, memory.scratch);
    rows += header;
    *pieces = rows * 4;
    const int64_t to = reserve(&all->pieces, *pieces, memory);
    if (to + *pieces > room) return to;
    uint16_t *list = (uint16_t *)(lists + to);
    if ((int)threadIdx.x < header * 32)
        list[threadIdx.x] = (uint16_t)((int)threadIdx.x < *slices ? begin : (int)threadIdx.x == *slices ? rows : 0);
    if ((int)threadIdx.x <= *slices) begins[threadIdx.x] = (uint32_t)((int)threadIdx.x < *slices ? begin : rows);
    __syncthreads();
    for (int slice = threadIdx.x / 32; slice < *slices; slice += MAKE_WARPS) {
        const int entry = slice * 32 + lane < several ? memory.order[slice * 32 + lane] : -1;
        const int count = entry < 0 ? 0 : (int)memory.count[entry], start = entry < 0 ? 0 : memory.start[entry];
        const int top = (int)begins[slice], end = (int)begins[slice + 1];
        for (int i = 0; top + i < end; i++)
            list[(top + i) * 32 + lane] = i < count ? memory.place[start + i] : (uint16_t)NO_TERM;
    }
    return to;
}

/* A tile a block. */
static __global__ void __launch_bounds__(MAKE_THREADS, 3)
    make_tiles(product_source source, const int64_t *cuts, const int64_t *rows, bool cuts_rows, product_terms terms,
               int64_t list_room, tile_totals *all)
{
    extern __shared__ __align__(16) unsigned char tile_bytes[];
    make_memory &memory = *(make_memory *)tile_bytes;
    const int64_t number = blockIdx.x, entry = cuts[number], begin = source.starts[entry];
    const tile_cut tile = {entry, begin, rows[number], rows[number + 1], (int)(cuts[number + 1] - entry),
                           (int)(source.starts[cuts[number + 1]] - begin)};
    int slices = 0, pieces = 0, products = tile.places;
    memory.walked.clear();
    if (threadIdx.x == 0) memory.cuts = 0;
    __syncthreads();
    const bool listed = mark_listed(source, tile, memory);
    if (!source.masked) mark_whole(source, tile, memory);
    if (cuts_rows) mark_cut_rows(source, tile, memory);
    const bool sorts = __syncthreads_or(listed);
    if (threadIdx.x < 32) memory.walked.find_last();
    __syncthreads();
    load_products(source, tile, memory);
    if (sorts) products = sort_products(memory);
    const int64_t segment = write_segments(products, terms.groups + number * TILE_GROUPS, terms.segments, all, memory);
    group_places(tile.entries, products, memory);
    const bool lists = order_places(tile.entries, memory);
    const int64_t list =
        lists ? write_list(tile.entries, terms.lists, list_room, all, &slices, &pieces, memory) : 0;
    if (threadIdx.x == 0)
        terms.tile[number] = {entry, segment, list, tile.entries, products, slices, pieces};
    for (int i = threadIdx.x; i < tile.entries; i += MAKE_THREADS)
        terms.firsts[entry + i] = memory.count[i] ? memory.place[memory.start[i]] : (uint16_t)ELSEWHERE;
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* Where tiles begin: entries and rows, for tiles + 1. */
static sp_status cut(sp_context *context, const term_lists *lists, device_array<int64_t> *cuts,
                     device_array<int64_t> *rows, int64_t *tiles)
{
    const int64_t runs = ceil_div(lists->places, RUN_PLACES);
    const unsigned blocks = (unsigned)ceil_div(runs * 32, CUT_THREADS);
    const cudaStream_t stream = stream_of(context);
    device_array<int32_t> counts;
    device_array<int64_t> before;
    CHECK(counts.allocate(context, runs + 1));
    CHECK(before.allocate(context, runs + 1));
    cut_runs<false><<<blocks, CUT_THREADS, 0, stream>>>(lists->source, lists->places, runs, NULL, counts.data, NULL);
    CUDA_CHECK(cudaGetLastError());
    CHECK(cuda_scan_counts(context, runs, counts.data, before.data));
    CUDA_CHECK(cudaMemcpyAsync(tiles, before.data + runs, sizeof *tiles, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    if (*tiles > INT32_MAX / 2) return sp_fail(context, SP_ERROR_DEVICE_MEMORY, "%lld tiles", (long long)*tiles);
    CHECK(cuts->allocate(context, *tiles + 1));
    CHECK(rows->allocate(context, *tiles + 1));
    cut_runs<true><<<blocks, CUT_THREADS, 0, stream>>>(lists->source, lists->places, runs, before.data, NULL,
                                                       cuts->data);
    CUDA_CHECK(cudaGetLastError());
    find_rows<<<(unsigned)ceil_div(*tiles + 1, CUT_THREADS), CUT_THREADS, 0, stream>>>(lists->source, *tiles,
                                                                                      cuts->data, rows->data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* The first `count` elements of `from`, as an array of a plan. */
template <typename T>
static sp_status keep(sp_context *context, const device_array<T> &from, unsigned long long count, product_terms *terms,
                      T **array)
{
    CHECK(add_array(context, (int64_t)count, terms, array));
    CUDA_CHECK(cudaMemcpyAsync(*array, from.data, (size_t)count * sizeof(T), cudaMemcpyDeviceToDevice,
                               stream_of(context)));
    return SP_OK;
}

/* A whole row has at most a segment for each entry of A, another row at most one for each product. Places bound both,
 * since a mask may leave few products. Room for lists is a guess: some have much padding. */
static sp_status fill_tiles(sp_context *context, const term_lists *lists, int64_t elements, const int64_t *cuts,
                            const int64_t *rows, product_terms *terms)
{
    const int64_t segment_room = std::min(elements + lists->cut_products + lists->listed_products, lists->places);
    int64_t list_room = lists->places / 4 + 8 * terms->tiles;
    device_array<uint2> segments;
    device_array<uint4> pieces;
    device_array<tile_totals> totals;
    tile_totals all;
    CHECK(totals.allocate(context, 1));
    CHECK(segments.allocate(context, segment_room));
    CHECK(cuda_allow_shared(context, make_tiles, sizeof(make_memory)));
    for (bool fits = false; !fits;) {
        product_terms filled = *terms;
        CHECK(pieces.allocate(context, list_room));
        CHECK(totals.fill(0, 1));
        filled.segments = segments.data;
        filled.lists = pieces.data;
        make_tiles<<<(unsigned)terms->tiles, MAKE_THREADS, sizeof(make_memory), stream_of(context)>>>(
            lists->source, cuts, rows, lists->cut_products > 0, filled, list_room, totals.data);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaMemcpyAsync(&all, totals.data, sizeof all, cudaMemcpyDeviceToHost, stream_of(context)));
        CHECK(cuda_finish(context));
        fits = (int64_t)all.pieces <= list_room;
        list_room = (int64_t)all.pieces;
    }
    CHECK(keep(context, segments, all.segments, terms, &terms->segments));
    return keep(context, pieces, all.pieces, terms, &terms->lists);
}

/* The same from the operands, within `room` bytes. */
static sp_status make_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                            int64_t room, product_terms *terms)
{
    term_lists lists = {};
    device_array<int64_t> cuts, rows;
    bool fits;
    CHECK(cuda_list_terms(context, a, b, masked, pattern, room, &lists, terms, &fits));
    if (fits) {
        CHECK(cut(context, &lists, &cuts, &rows, &terms->tiles));
        CHECK(add_array(context, terms->tiles, terms, &terms->tile));
        CHECK(add_array(context, terms->tiles * TILE_GROUPS, terms, &terms->groups));
        CHECK(add_array(context, pattern->nnz, terms, &terms->firsts));
        CHECK(fill_tiles(context, &lists, a->nnz, cuts.data, rows.data, terms));
        CHECK(cuda_finish(context));
        if (terms->bytes <= room) return SP_OK;
    }
    return sp_fail(context, SP_ERROR_DEVICE_MEMORY, "%s: the products are too many for a plan to list",
                   context->device_name);
}

sp_status cuda_make_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                          int64_t products, product_terms *terms)
{
    const int64_t entry_bytes = (int64_t)(sizeof(int32_t) + sp_value_size(pattern->value_type) + sizeof(uint16_t));
    size_t available;
    *terms = {};
    if (left_out("spgemm-terms")) return SP_OK;
    if (pattern->nnz == 0 || a->nnz >= UINT32_MAX || b->nnz >= UINT32_MAX) return SP_OK;
    CHECK(cuda_available(context, &available));
    /* C itself, and as much again for the operands of the next call, must have their place beside the plan. */
    const int64_t room = (int64_t)available - 2 * entry_bytes * pattern->nnz;
    if (room <= 0 || (!masked && products > room / (int64_t)sizeof(uint2))) return SP_OK;
    const sp_status status = make_terms(context, a, b, masked, pattern, room, terms);
    if (status == SP_OK) return SP_OK;
    cuda_free_terms(context, terms);
    return status == SP_ERROR_DEVICE_MEMORY ? SP_OK : status;
}
