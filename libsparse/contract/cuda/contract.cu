/* C(p, q) = the combination of all G(i, j) with labels[i] = p and labels[j] = q, on a CUDA device: S·G·Sᵀ for labels
 * (Li et al., Algorithm 7) in one pass over G, without the two products.
 *
 * Nodes in the order of their labels list the rows of G that make up each row of C. Where labels ascend that is G's
 * own order, and a row of C is a run of G's entries. Else a node's place in its group is counted with the group's
 * entries, in any order, and it is put there. Sums of f32 need no more; for all else some lanes, a warp or a block
 * order the nodes of a group, or if one has very many, all are sorted by radix. Before that rows are put in classes, so
 * that the host knows what to launch when it ends. Rows of C are combined by class of length, columns replaced by
 * labels as they are read:
 *   - TO_8, TO_16 (small.cuh): sorted in registers, 2 or 4 rows a warp, since a warp each would be
 *     mostly idle;
 *   - TO_32, TO_64 (packed rows, sorted.cuh), 2 or 4 a warp, and TO_128 to TO_512, with many columns TO_1024 (sorted
 *     rows), a warp each: (column, place) sorted in registers, so that entries of a column follow each other in
 *     order;
 *   - TO_1024 to TO_8192: a block each, with a bit a column; the bits before a column are its place in C's row. Entries
 *     lie in registers and cells in shared memory. Sums of f32 are summed.cuh's, which writes columns that occur once
 *     without atomics, all else ranked.cuh's. A class for each size keeps several blocks on a multiprocessor;
 *   - WIDE_ROWS, which have more: sums of f32 are formed by a block in shared memory (near.cuh) or, with few
 *     columns or above 196,608 entries, by a block every 8,192 (parted.cuh), since one row may have most of G. All
 *     else, and rows whose sums may not be exact, is sorted by radix (ordered.cu), or where memory is short formed by a
 *     block a row, whose cells lie in global memory (ranked.cuh).
 * rows.cu says which of them there are and launches them; integers.cuh has numbers as integers; run.cuh what a call has
 * on the device; nodes.cu, classes.cu and result.cu are its other phases; patterns.cu makes products of patterns of the
 * same phases; tiles.cuh deals out entries to warps.
 * What comes out goes to a stage in which every row has the room of its entries, and from there, when the lengths of
 * all are known, to C.
 *
 * Order of additions. Small, packed and sorted rows add in G's order as they are, or in any if f64 adds the row's f32
 * up without an error, or no column comes more than twice; of nodes in any order those of which neither holds are left
 * for later. In longer rows threads add in any order, as integers: f64 sums of numbers that are multiples of some 2^l
 * are exact, whatever the order, while they stay below 2^(l + 53). Cells that reach that are summed again in order, as
 * are rows whose numbers span too much, once the nodes have been ordered. The largest, the smallest, the first and the
 * number do not depend on the order. Sorted entries are added as they follow each other. Values are therefore the
 * CPU's.
 *
 * Bytes an entry of G, with f32 values: 8 of G and 4 of a label (from the second-level cache) read; the stage
 * written and read, C written, 8 each: 32 and the label, for wide rows 48 and the label. 56 a node to find its place,
 * 36 more where nodes are ordered, 57 a group.
 */
#include "contract/cuda/run.cuh"

/* Counts, which begin as zeros. A call that is done leaves them so to the next, which clears its totals: to ask for
 * zeros takes 5 to 7 µs of the host's time and up to 4 of the device's. There are none where a budget limits memory,
 * and after a call that failed. */
template <typename V> static sp_status take_counts(contract_run<V> *run, int64_t groups)
{
    sp_context *context = run->context;
    cuda_state *state = cuda_state_of(context);
    contract_args<V> *job = &run->job;
    const size_t totals = (sizeof(contract_totals) + array_block::ALIGNMENT - 1) / array_block::ALIGNMENT *
                          array_block::ALIGNMENT;
    const size_t bytes = 2 * totals + (size_t)groups * sizeof *job->tallies;
    if (state->counts.bytes < bytes) {
        cuda_drop_counts(context);
        CHECK(run->counts.allocate(context, (int64_t)bytes));
        CHECK(run->counts.fill(0, (int64_t)bytes));
        run->counts_bytes = bytes;
    } else {
        run->counts.context = context;
        run->counts.data = state->counts.data;
        run->counts_bytes = state->counts.bytes;
        run->kept_bytes = bytes;
        run->turn = state->counts.turn;
        state->counts = {};
    }
    job->totals = (contract_totals *)(run->counts.data + run->turn * totals);
    job->spare = (contract_totals *)(run->counts.data + !run->turn * totals);
    job->tallies = (unsigned long long *)(run->counts.data + 2 * totals);
    return SP_OK;
}

template <typename V> void keep_counts(contract_run<V> *run, int64_t *peak)
{
    cuda_state *state = cuda_state_of(run->context);
    *peak += (int64_t)run->kept_bytes;
    if (run->context->memory_budget) return;
    state->counts = {run->counts.data, run->counts_bytes, !run->turn};
    run->counts.data = NULL;
}

/* The longest row that is none of the wide ones. */
static int64_t longest_of(const class_limits &limits)
{
    return max(max(limits.sorted, limits.ranked), max(limits.longer, limits.longest));
}

/* Where the rows of each class are listed: there is room for as many as there are, or as entries suffice for. */
template <typename V> static int64_t place_lists(contract_run<V> *run)
{
    const class_limits &limits = run->limits;
    const int64_t ranked = max(limits.sorted, limits.ranked), longer = max(ranked, (int64_t)limits.longer);
    const int64_t above[ROW_CLASSES] = {0,   0,   8,   16,  32, 64, 128, 256, 512, limits.sorted, ranked,
                                    longer, longest_of(limits)};
    const auto most = [&](int64_t entries) { return min(run->job.groups, run->entries / (entries + 1)); };
    int64_t room = most(2 * PART);
    for (int c = WIDE_ROWS; c > NO_ENTRIES; c--) {
        run->job.lists[c] = room;
        room += most(above[c]);
    }
    return room;
}

/* C's rows are made of this many entries of `nodes` rows of G. `shortens`: labels of 16 bits are made where they do. */
template <typename V>
sp_status open_run(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t nodes, int64_t entries,
                   int64_t groups, int64_t columns, bool shortens, const sp_contract_options *options,
                   contract_run<V> *run)
{
    contract_args<V> *job = &run->job;
    run->context = context;
    run->entries = entries;
    job->g = view_of<V>(g);
    job->keep_entries = job->keep_labels = KEEP_USUAL;
    if (options->combine == SP_COMBINE_COUNT) job->g.values = NULL;
    job->labels = labels;
    job->nodes = nodes;
    job->groups = groups;
    job->columns = columns;
    /* The sum of a pattern is the number of its entries. */
    job->operation.combine = !g->values && options->combine == SP_COMBINE_SUM ? SP_COMBINE_COUNT : options->combine;
    job->operation.loops = options->loops;
    job->operation.half = options->half_loops && (job->operation.combine == SP_COMBINE_SUM ||
                                                  job->operation.combine == SP_COMBINE_COUNT);
    run->narrow = g->nnz <= UINT32_MAX && entries <= UINT32_MAX;
    run->sums = std::is_same_v<V, float> && job->operation.combine == SP_COMBINE_SUM && run->narrow;
    size_tables(run);
    if (shortens) {
        int bits = 1;
        while (nodes >> bits) bits++;
        job->count_shift = 64 - bits;
        if (entries >> job->count_shift)
            return sp_fail(context, SP_ERROR_OVERFLOW, "%lld entries of %lld nodes are more than can be counted",
                           (long long)entries, (long long)nodes);
    }
    run->posted = (posted_counts *)cuda_state_of(context)->mailbox;
    run->posted->counted = run->posted->combined = 0;
    CHECK(take_counts(run, shortens ? groups : 0));
    array_block *arrays = &run->arrays;
    CHECK(arrays->add(context, groups + 1, &job->ranges));
    CHECK(arrays->add(context, groups + 1, &job->lengths));
    if (shortens && columns < UINT16_MAX) CHECK(arrays->add(context, g->rows, &job->short_labels));
    if (shortens) {
        CHECK(arrays->add(context, nodes + 1, &run->placed));
        CHECK(arrays->add(context, groups, &run->places));
        CHECK(arrays->add(context, groups, &run->sizes));
        CHECK(arrays->add(context, (nodes + 31) / 32, &job->runs));
    }
    CHECK(arrays->add(context, nodes, &job->keys));
    CHECK(arrays->add(context, nodes, &job->sources));
    CHECK(arrays->add(context, nodes + 1, &job->starts));
    CHECK(arrays->add(context, groups, &job->firsts));
    CHECK(arrays->add(context, groups, &job->classes));
    const int64_t listed = place_lists(run);
    CHECK(arrays->add(context, listed, &job->list));
    CHECK(arrays->add(context, listed, &job->inexact));
    CHECK(arrays->add(context, groups / LENGTHS + 1, &run->sums_of_lengths));
    CHECK(arrays->add(context, entries / CHUNK + 1, &run->rows_of_chunks));
    CHECK(arrays->add(context, job->lists[WIDE_ROWS] + entries / (longest_of(run->limits) + 1) + 1, &job->cells_of));
    CHECK(arrays->add(context, 2 * (entries / PART) + 1, &job->parts));
    CHECK(arrays->add(context, entries, &job->cols));
    CHECK(arrays->add(context, entries, &job->values));
    CHECK(arrays->allocate(context));
    run->preceding = (unsigned long long *)job->starts;
    job->listed = job->list;
    job->counted = job->totals->members;
    job->cells_of += job->lists[WIDE_ROWS];
    return SP_OK;
}

/* `c` has its shape and type; it gets its arrays one after another, and is the caller's to free. */
template <typename V>
static sp_status contract_graph(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                                const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    const double start = wall_seconds();
    contract_run<V> run = {};
    contract_args<V> &job = run.job;
    contract_totals totals;
    size_t before;
    CHECK(cuda_watch_peak(context, &before));
    CHECK(cuda_allocate(context, ((size_t)groups + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    CHECK(open_run(context, g, labels, g->rows, g->nnz, groups, groups, true, options, &run));
    CHECK(count_nodes(&run));
    CHECK(list_classes(&run));
    CHECK(read_totals(&run, &totals));
    if (!totals.unsorted) { /* nodes are in order, and so are their entries */
        job.whole = true;
        job.starts = job.sources = (int64_t *)g->row_offsets;
        job.keys = (uint32_t *)labels;
    } else if (takes_any_order(&run, &totals)) {
        job.placed = run.placed;
    } else {
        CHECK(order_nodes(&run, &totals));
    }
    if (totals.unsorted || totals.gaps || job.short_labels) job.runs = NULL;
    if (totals.unsorted && (size_t)g->cols * sizeof *labels >= MANY_LABELS) {
        job.keep_entries = KEEP_LEAST;
        job.keep_labels = KEEP_MOST;
    }
    CHECK(combine_rows(&run, &totals, c));
    CHECK(write_result(&run, c, &totals));
    info->groups = name_groups(&totals, info->group);
    info->entries = (int64_t)totals.entries;
    info->nnz = c->nnz;
    CHECK(cuda_peak(context, before, &info->peak_bytes));
    keep_counts(&run, &info->peak_bytes);
    info->peak_bytes -= (groups + 1) * (int64_t)sizeof(int64_t) + c->nnz * (int64_t)(sizeof(int32_t) + sizeof(V));
    info->group_seconds = run.grouped - start;
    info->combine_seconds = wall_seconds() - run.grouped;
    return SP_OK;
}

sp_status sp_cuda_contract(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                           const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    sp_csr made = {};
    sp_status status;
    made.rows = made.cols = groups;
    made.value_type = g->value_type;
    made.space = SP_DEVICE;
    if (g->rows == 0) {
        status = sp_csr_create(context, groups, groups, 0, g->value_type, SP_DEVICE, &made);
        if (status == SP_OK)
            status = cuda_status(context,
                                 cudaMemsetAsync(made.row_offsets, 0, ((size_t)groups + 1) * sizeof(int64_t),
                                                 stream_of(context)),
                                 "cudaMemsetAsync");
        if (status == SP_OK) status = cuda_finish(context);
    } else if (g->value_type == SP_F32) {
        status = settle(contract_graph<float>(context, g, labels, groups, options, &made, info));
    } else {
        status = settle(contract_graph<double>(context, g, labels, groups, options, &made, info));
    }
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}

template void keep_counts(contract_run<float> *, int64_t *);
template void keep_counts(contract_run<double> *, int64_t *);
template sp_status open_run(sp_context *, const sp_csr *, const int32_t *, int64_t, int64_t, int64_t, int64_t, bool,
                            const sp_contract_options *, contract_run<float> *);
template sp_status open_run(sp_context *, const sp_csr *, const int32_t *, int64_t, int64_t, int64_t, int64_t, bool,
                            const sp_contract_options *, contract_run<double> *);
