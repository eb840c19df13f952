/* The rows of a contraction by class: which kernel combines which rows, and how long they may be. The head of
 * contract.cu says which file has which. */
#include "base/ablation.h"
#include "base/search.h"
#include "contract/cuda/near.cuh"
#include "contract/cuda/sorted.cuh"
#include "contract/cuda/wide.cuh"

/* Where bits for all columns take more than FEW_WORDS, most of them would be cleared and counted for nothing: summed
 * rows have coarse ones then, and those of 1,024 entries are sorted. */
enum { MOST_SORTED = 512, MOST_SORTED_OF_MANY = 1024, FEW_WORDS = 2048, MANY_WORDS = 4096 };
enum { WIDE_ROW_THREADS = 1024, LEAST_WORDS = 256 }; /* a bit an entry of the longest row in registers */
static_assert(LEAST_WORDS * 32 >= LONGEST_THREADS * LONGEST_ITEMS, "bits where nodes begin");

/* Streams that classes of rows are spread over beside the main one, on which the first need not wait; wide rows, five
 * launches that wait for each other, have the last of the side streams, whose blocks come before others'. */
enum { CLASS_STREAMS = 2, WIDE_ROW_STREAM = SIDE_STREAMS - 1 };

/* ---- device -------------------------------------------------------------------------------------------- */

/* The row of C of each node, where only their first nodes are known: the last that begins with it or before it. */
template <typename V> static __global__ void key_sources(contract_args<V> job)
{
    const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (k < job.nodes) job.keys[k] = (uint32_t)(upper_bound_i32(job.firsts, 0, job.groups, (int32_t)k) - 1);
}

/* ---- host: what blocks have ----------------------------------------------------------------------------- */

/* How rows of this many entries are summed_rows', and whether they are. */
template <typename V> static bool is_summed(const contract_run<V> *run, int entries, summed_words *words)
{
    const size_t limit = cuda_state_of(run->context)->shared_limit - 2048; /* less what is static */
    const int64_t columns = run->job.columns, step = WORD_STEP;
    if (!run->sums || columns > MOST_COLUMNS || left_out("contract-summed")) return false;
    const auto words_of = [&](int64_t each) { return (int)((columns + each * step - 1) / (each * step) * step); };
    if (columns <= (int64_t)FEW_WORDS * 32) *words = {words_of(32), 0, false};
    else *words = {entries, words_of(1024), columns <= 32 * 65536};
    return summed_bytes(*words, entries) <= limit;
}

/* How near rows lie in shared memory; no cells where they do not. */
template <typename V> static near_table near_of(const contract_run<V> *run)
{
    const size_t whole = cuda_state_of(run->context)->shared_limit - NEAR_STATIC;
    const size_t limit = run->job.columns <= NEAR_FEW && whole > NEAR_SHARED ? (size_t)NEAR_SHARED : whole;
    const int64_t all = (run->job.columns + 32 * WORD_STEP - 1) / (32 * WORD_STEP) * WORD_STEP;
    near_table table = {all < NEAR_WINDOW ? (int)all : (int)NEAR_WINDOW, 0};
    const size_t bits = (size_t)table.words * (sizeof(uint32_t) + sizeof(uint16_t));
    if (!run->sums || bits >= limit) return table;
    const int64_t cells = (int64_t)((limit - bits) / NEAR_BYTES / 4 * 4);
    if (cells >= PART) table.cells = (int)cells;
    return table;
}

/* Words of bits for all columns, at most a window's, and classes of ranked rows: what fits a block's shared
 * memory. */
template <typename V> void size_tables(contract_run<V> *run)
{
    const bool mean = run->job.operation.combine == SP_COMBINE_MEAN;
    /* Static, and the driver's. */
    const size_t kept = sizeof(typename ranked_row<WIDE_ROW_THREADS, 0, false, V>::memory) + 1024;
    const size_t limit = cuda_state_of(run->context)->shared_limit - kept;
    const int64_t most = (run->job.columns + 31) / 32;
    const int longer = LONGER_THREADS * LONGER_ITEMS, longest = LONGEST_THREADS * LONGEST_ITEMS;
    int words = LEAST_WORDS;
    while (words < LONGER_WORDS && words < most) words *= 2;
    run->ranked_words = words < RANKED_WORDS ? words : RANKED_WORDS;
    run->longer_words = words;
    while (ranked_bytes(run->ranked_words, RANKED_THREADS, RANKED_THREADS * RANKED_ITEMS, mean) > limit)
        run->ranked_words /= 2;
    while (ranked_bytes(run->longer_words, 0, 0, mean) > limit) run->longer_words /= 2;
    summed_words few;
    run->few_words = words <= FEW_WORDS && is_summed(run, MOST_SORTED_OF_MANY, &few);
    run->limits.sorted = words > MANY_WORDS || run->few_words ? MOST_SORTED_OF_MANY : MOST_SORTED;
    run->limits.ranked = RANKED_THREADS * RANKED_ITEMS;
    run->limits.longer = ranked_bytes(run->longer_words, LONGER_THREADS, longer, mean) <= limit ? longer : 0;
    run->limits.longest = ranked_bytes(run->longer_words, LONGEST_THREADS, longest, mean) <= limit ? longest : 0;
    if (std::is_same_v<V, double> && left_out("contract-ranked")) {
        run->few_words = false;
        run->limits = {MOST_SORTED_OF_MANY, 0, 0, 0};
    }
    if (run->job.columns > NEAR_COLUMNS && near_of(run).cells && !left_out("contract-near"))
        run->job.near = ROW_ENTRIES;
}

/* ---- host: launches ------------------------------------------------------------------------------------- */

/* Whether (column, place) pairs of rows of 2^bits entries fit 32 bits, all ones left over. */
static bool is_narrow(int64_t columns, int bits) { return columns <= (int64_t)(UINT32_MAX >> bits); }

template <int G, typename V>
static sp_status launch_small(contract_run<V> *run, int c, unsigned count, cudaStream_t stream)
{
    const int64_t work = blocks_of(count, WARP_THREADS / G);
    const bool narrow = is_narrow(run->job.columns, log2_of(G));
    auto kernel = narrow ? small_rows<G, uint32_t, false, V> : small_rows<G, unsigned long long, false, V>;
    if constexpr (std::is_same_v<V, float>)
        if (run->job.placed)
            kernel = narrow ? small_rows<G, uint32_t, true, V> : small_rows<G, unsigned long long, true, V>;
    return launch(run, kernel, WARP_THREADS, 0, work, stream, c);
}

template <int G, int K, typename V>
static sp_status launch_packed(contract_run<V> *run, int c, unsigned count, cudaStream_t stream)
{
    const bool narrow = is_narrow(run->job.columns, log2_of(G * K));
    const size_t bytes = narrow ? packed_bytes<G, K, uint32_t, V>() : packed_bytes<G, K, unsigned long long, V>();
    auto kernel = narrow ? packed_rows<G, K, uint32_t, false, V> : packed_rows<G, K, unsigned long long, false, V>;
    if constexpr (std::is_same_v<V, float>)
        if (run->job.placed)
            kernel = narrow ? packed_rows<G, K, uint32_t, true, V> : packed_rows<G, K, unsigned long long, true, V>;
    return launch(run, kernel, WARP_THREADS, bytes, blocks_of(count, WARP_THREADS / G), stream, c);
}

template <int K, typename V>
static sp_status launch_sorted(contract_run<V> *run, int c, unsigned count, cudaStream_t stream)
{
    const bool narrow = is_narrow(run->job.columns, log2_of(32 * K));
    const size_t entry = narrow ? sorted_bytes<uint32_t, V>() : sorted_bytes<unsigned long long, V>();
    const size_t bytes = WARP_THREADS * K * entry + WARP_THREADS / 32 * K * sizeof(uint32_t);
    auto kernel = narrow ? sorted_rows<K, uint32_t, false, V> : sorted_rows<K, unsigned long long, false, V>;
    if constexpr (std::is_same_v<V, float>)
        if (run->job.placed)
            kernel = narrow ? sorted_rows<K, uint32_t, true, V> : sorted_rows<K, unsigned long long, true, V>;
    return launch(run, kernel, WARP_THREADS, bytes, blocks_of(count, WARP_THREADS / 32), stream, c);
}

template <int THREADS, int ITEMS, typename V>
static sp_status launch_ranked(contract_run<V> *run, int c, unsigned count, int words, bool again,
                               cudaStream_t stream)
{
    const bool mean = run->job.operation.combine == SP_COMBINE_MEAN;
    const size_t bytes = ranked_bytes(words, THREADS, THREADS * ITEMS, mean);
    auto kernel = ranked_rows<THREADS, ITEMS, false, V>;
    if constexpr (ITEMS == 0 || std::is_same_v<V, double>) /* other sums have been summed_rows' */
        if (run->job.operation.combine == SP_COMBINE_SUM) kernel = ranked_rows<THREADS, ITEMS, true, V>;
    return launch(run, kernel, THREADS, bytes, count, stream, c, words, again);
}

/* Rows of up to THREADS·ITEMS entries; with AGAIN·AGAIN_EACH if they are not summed_rows', or have been. */
template <int THREADS, int ITEMS, int AGAIN, int AGAIN_EACH, typename V>
static sp_status launch_blocks(contract_run<V> *run, int c, unsigned count, int words, bool again,
                               cudaStream_t stream)
{
    if constexpr (std::is_same_v<V, float>) {
        sp_context *context = run->context;
        summed_words summed;
        if (!again && is_summed(run, THREADS * ITEMS, &summed)) {
            auto kernel = summed.coarse ? summed_rows<THREADS, ITEMS, true> : summed_rows<THREADS, ITEMS, false>;
            const size_t bytes = summed_bytes(summed, THREADS * ITEMS);
            CHECK(cuda_leave_cache(context, kernel, THREADS, bytes));
            return launch(run, kernel, THREADS, bytes, count, stream, c, summed);
        }
    }
    return launch_ranked<AGAIN, AGAIN_EACH>(run, c, count, words, again, stream);
}

/* Whether wide rows are parted, and words of a row's bits: no more than the stage takes are spent on them. */
template <typename V> static bool is_parted(const contract_run<V> *run, unsigned count, int64_t *words)
{
    *words = (run->job.columns + 32 * ROW_WORDS - 1) / (32 * ROW_WORDS) * ROW_WORDS;
    return run->sums && *words * (int64_t)count <= run->entries && !left_out("contract-parted") &&
           PART * sizeof(uint64_t) + 4096 <= cuda_state_of(run->context)->shared_limit;
}

template <typename V>
static sp_status launch_parts(contract_run<V> *run, const contract_totals *totals, cudaStream_t stream)
{
    sp_context *context = run->context;
    const unsigned count = totals->members[WIDE_ROWS];
    const size_t bytes = PART * sizeof(uint64_t);
    if (run->job.near) {
        const near_table table = near_of(run);
        CHECK(cuda_leave_cache(context, near_rows, PART_THREADS, near_bytes(table)));
        CHECK(launch(run, near_rows, PART_THREADS, near_bytes(table), count, stream, table));
    }
    if (totals->parts == 0) return SP_OK;
    CUDA_CHECK(cudaMemsetAsync(run->cells.base, 0, run->zeros, stream));
    CHECK(launch(run, mark_parts, PART_THREADS, bytes, (int64_t)totals->parts, stream, run->parted));
    CHECK(launch(run, rank_parts, RANK_THREADS, 0, count, stream, run->parted));
    CHECK(launch(run, sum_parts, PART_THREADS, bytes, (int64_t)totals->parts, stream, run->parted));
    return launch(run, write_parts, WRITE_THREADS, 0, blocks_of(count * (run->parted.words / 32), WRITE_THREADS / 32),
                  stream, run->parted);
}

/* Wide rows, in parts, or sorted, or where memory is short a block each; `again` those that were inexact, sorted or a
 * block each. */
template <typename V>
static sp_status launch_wide(contract_run<V> *run, const contract_totals *totals, bool again, cudaStream_t stream)
{
    const int64_t work = blocks_of(run->entries, GATHER_THREADS / 32 * TILE * TILES);
    sp_context *context = run->context;
    if constexpr (std::is_same_v<V, float>)
        if (run->parts && !again) return launch_parts(run, totals, stream);
    if (run->unkeyed) {
        key_sources<<<blocks_of(run->job.nodes, 256), 256, 0, stream>>>(run->job);
        CUDA_CHECK(cudaGetLastError());
    }
    if (run->ordered.fit) return launch_ordered(run, stream);
    CHECK(launch(run, gather_wide<V, stage_sink<V>>, GATHER_THREADS, 0, work, stream, stage_sink<V>()));
    const unsigned count = again ? totals->inexact[WIDE_ROWS] : totals->members[WIDE_ROWS];
    return launch_ranked<WIDE_ROW_THREADS, 0>(run, WIDE_ROWS, count, run->longer_words, again, stream);
}

/* A class other than the wide rows', of this many rows at most, or `again` those of them that were inexact. */
template <typename V>
static sp_status launch_class(contract_run<V> *run, int c, unsigned count, bool again, cudaStream_t stream)
{
    switch (c) {
    case TO_8: return launch_small<8>(run, c, count, stream);
    case TO_16: return launch_small<16>(run, c, count, stream);
    case TO_32: return launch_packed<8, 4>(run, c, count, stream);
    case TO_64: return launch_packed<16, 4>(run, c, count, stream);
    case TO_128: return launch_sorted<4>(run, c, count, stream);
    case TO_256: return launch_sorted<8>(run, c, count, stream);
    case TO_512: return launch_sorted<16>(run, c, count, stream);
    case TO_1024:
        if (!run->few_words) return launch_sorted<32>(run, c, count, stream);
        return launch_blocks<128, 8, RANKED_THREADS, RANKED_ITEMS>(run, c, count, run->ranked_words, again, stream);
    case TO_2048:
        return launch_blocks<256, 8, RANKED_THREADS, RANKED_ITEMS>(run, c, count, run->ranked_words, again, stream);
    case TO_4096:
        return launch_blocks<512, 8, LONGER_THREADS, LONGER_ITEMS>(run, c, count, run->longer_words, again, stream);
    default:
        return launch_blocks<1024, 8, LONGEST_THREADS, LONGEST_ITEMS>(run, c, count, run->longer_words, again, stream);
    }
}

/* Whether all rows are combined alike in whatever order the nodes of their groups come: sums of f32 but ranked_rows'.
 */
template <typename V> bool takes_any_order(const contract_run<V> *run, const contract_totals *totals)
{
    const unsigned *members = totals->members;
    const int longest = members[TO_8192]  ? LONGEST_THREADS * LONGEST_ITEMS
                        : members[TO_4096] ? LONGER_THREADS * LONGER_ITEMS
                        : members[TO_2048] ? RANKED_THREADS * RANKED_ITEMS
                                          : 0;
    summed_words words;
    int64_t bits;
    if (!run->sums || (longest && !is_summed(run, longest, &words))) return false;
    return !members[WIDE_ROWS] || (run->job.near && totals->parts == 0) || is_parted(run, members[WIDE_ROWS], &bits);
}

/* What wide rows need beside the stage. */
template <typename V> static sp_status open_wide(contract_run<V> *run, const contract_totals *totals)
{
    sp_context *context = run->context;
    contract_args<V> *job = &run->job;
    array_block *cells = &run->cells;
    const int64_t entries = (int64_t)totals->wide_entries;
    const unsigned rows = totals->members[WIDE_ROWS];
    const bool mean = job->operation.combine == SP_COMBINE_MEAN;
    int64_t words;
    const bool near = job->near && totals->parts == 0, parted = !near && is_parted(run, rows, &words);
    run->parts = near || parted;
    if (!run->parts) CHECK(open_ordered(run, totals, false));
    if (run->ordered.fit) return SP_OK;
    CHECK(cells->add(context, entries, &job->cells));
    if (parted) {
        run->parted.words = words;
        CHECK(cells->add(context, rows * words, &run->parted.bits));
        CHECK(cells->add(context, rows, &run->parted.spans));
        CHECK(cells->add(context, entries, &run->parted.counts));
        run->zeros = cells->bytes;
        CHECK(cells->add(context, rows * words / COUNTED_WORDS, &run->parted.before));
    }
    CHECK(cells->add(context, entries, &job->cell_cols));
    if (mean) CHECK(cells->add(context, entries, &job->counts));
    if (mean || job->operation.combine == SP_COMBINE_SUM) CHECK(cells->add(context, entries, &job->grains));
    if (run->room && cells->bytes <= (size_t)run->entries * sizeof(V)) cells->place(run->room);
    else CHECK(cells->allocate(context));
    run->parted.sums = job->cells;
    return SP_OK;
}

/* The streams of all classes start after the main one; that goes on after them. */
static sp_status fork_rows(sp_context *context, bool wide)
{
    const cuda_state *state = cuda_state_of(context);
    CHECK(cuda_fork(context, CLASS_STREAMS));
    if (wide) CUDA_CHECK(cudaStreamWaitEvent(state->side[WIDE_ROW_STREAM], state->forked, 0));
    return SP_OK;
}
static sp_status join_rows(sp_context *context, bool wide)
{
    const cuda_state *state = cuda_state_of(context);
    if (wide) {
        CUDA_CHECK(cudaEventRecord(state->joined[WIDE_ROW_STREAM], state->side[WIDE_ROW_STREAM]));
        CUDA_CHECK(cudaStreamWaitEvent(state->stream, state->joined[WIDE_ROW_STREAM], 0));
    }
    return cuda_join(context, CLASS_STREAMS);
}

/* The rows of all classes, the longest first. Meanwhile the host asks for C's arrays, before that if wide rows need
 * room there. */
template <typename V>
sp_status combine_rows(contract_run<V> *run, const contract_totals *totals, sp_csr *result)
{
    sp_context *context = run->context;
    cudaStream_t *side = cuda_state_of(context)->side;
    if (totals->members[WIDE_ROWS]) {
        CHECK(reserve_result(run, result));
        CHECK(open_wide(run, totals));
    }
    CHECK(fork_rows(context, totals->members[WIDE_ROWS] > 0));
    if (totals->members[WIDE_ROWS]) CHECK(launch_wide(run, totals, false, side[WIDE_ROW_STREAM]));
    for (int c = TO_8192, turn = 0; c > NO_ENTRIES; c--) {
        if (totals->members[c] == 0) continue;
        CHECK(launch_class(run, c, totals->members[c], false, turn ? side[turn - 1] : stream_of(context)));
        turn = (turn + 1) % (CLASS_STREAMS + 1);
    }
    CHECK(join_rows(context, totals->members[WIDE_ROWS] > 0));
    return totals->members[WIDE_ROWS] ? SP_OK : reserve_result(run, result);
}

/* The rows that have turned out to be inexact, in order. */
template <typename V> sp_status combine_again(contract_run<V> *run, const contract_totals *totals)
{
    cudaStream_t *side = cuda_state_of(run->context)->side;
    if (run->job.placed) CHECK(order_nodes(run, totals));
    run->job.placed = NULL;
    run->job.listed = run->job.inexact;
    run->job.counted = run->job.totals->inexact;
    if (totals->inexact[WIDE_ROWS]) CHECK(open_ordered(run, totals, true));
    CHECK(fork_rows(run->context, totals->inexact[WIDE_ROWS] > 0));
    if (totals->inexact[WIDE_ROWS]) CHECK(launch_wide(run, totals, true, side[WIDE_ROW_STREAM]));
    for (int c = TO_8192; c > NO_ENTRIES; c--)
        if (totals->inexact[c]) CHECK(launch_class(run, c, totals->inexact[c], true, side[c % CLASS_STREAMS]));
    return join_rows(run->context, totals->inexact[WIDE_ROWS] > 0);
}

template void size_tables(contract_run<float> *);
template void size_tables(contract_run<double> *);
template bool takes_any_order(const contract_run<float> *, const contract_totals *);
template bool takes_any_order(const contract_run<double> *, const contract_totals *);
template sp_status combine_rows(contract_run<float> *, const contract_totals *, sp_csr *);
template sp_status combine_rows(contract_run<double> *, const contract_totals *, sp_csr *);
template sp_status combine_again(contract_run<float> *, const contract_totals *);
template sp_status combine_again(contract_run<double> *, const contract_totals *);
