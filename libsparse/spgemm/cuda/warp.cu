/* C = A·B on a CUDA device in two phases, row-wise (Gustavson 1978), sorted; entries that cancel to zero are kept.
 *
 * Rows are put into classes by their cost, first by their products to count the columns of C, then by these counts to
 * form the sums (classes.cu). Every class has its own launch and its own tables; the launches run beside each other.
 * classes.cuh says which rows each class has and why; the head of spgemm.cu says which file takes them.
 * Sums see their products in A's order everywhere: the values are the CPU's, bit for bit.
 *
 * Bytes: 4 of B a product to count and 4 + v to sum (wide rows twice 4), from L2 where rows in flight share rows of
 * B; C written once; 10 a row for lengths, classes and lists. The host waits three times: for the rows of each class,
 * while small rows are counted, for nnz(C) and the classes that sum, for the end; what has no rows is not launched.
 * Merged rows are found and counted before others are classified, so that the second wait and much else drops out if
 * there are no others. Giant rows are formed as soon as they are known, before others are counted (giant.cu).
 */
#include <algorithm>
#include <stdio.h>
#include <string.h>

#include "spgemm/cuda/classes.cuh"
#include "spgemm/cuda/plan/terms.cuh"

/* The offsets of C as far as its rows' lengths are known, and lists of the rows of each class. */
template <typename V> static sp_status offset_rows(warp_run<V> *run)
{
    CHECK(cuda_scan_counts(run->context, run->a->rows, run->lengths, run->c->row_offsets));
    return list_classes(run);
}

/* Lists the classes while the host waits for their numbers of rows, and counts small rows, which need no list. Where
 * rows are short all of them may have been counted. */
template <typename V, bool PLAIN> static sp_status begin_counting(warp_run<V> *run)
{
    CHECK(run->merges ? offset_rows(run) : list_classes(run));
    if (run->a->nnz > 16 * run->a->rows) return SP_OK; /* hardly any are small */
    run->streams = STREAMS;
    run->small_counted = true;
    return launch_small<V, PLAIN, false>(run);
}

template <typename V, bool PLAIN> static sp_status launch_counts(warp_run<V> *run)
{
    CHECK((launch_wide_counts<V, PLAIN>(run)));
    if constexpr (PLAIN) CHECK(launch_piece_counts(run));
    if constexpr (PLAIN) CHECK(launch_dense_counts(run));
    CHECK((launch_narrow_counts<V, PLAIN>(run)));
    /* Made beside the counting, which does not read it. */
    if (run->index.data && !run->far) {
        cudaStream_t on;
        CHECK(take_stream(run, 2, &on));
        CHECK(index_columns(run, on));
    }
    CHECK((launch_hashed_counts<V, PLAIN>(run)));
    return run->small_counted ? SP_OK : launch_small<V, PLAIN, false>(run);
}

/* The longest rows first: a warp with one of them takes as long as all the short ones. */
template <typename V, bool PLAIN> static sp_status launch_sums(warp_run<V> *run)
{
    CHECK((launch_wide<V, PLAIN>(run)));
    CHECK((launch_hashed<V, PLAIN>(run, SUMMED_CLASSES - 1)));
    if constexpr (PLAIN) {
        CHECK(launch_dense(run));
        CHECK(launch_sorts(run));
        CHECK(launch_ranked(run));
        CHECK(launch_merged(run));
    }
    for (int i = SUMMED_CLASSES - 2; i >= 0; i--) CHECK((launch_hashed<V, PLAIN>(run, i)));
    return launch_small<V, PLAIN, true>(run);
}

template <typename V, bool PLAIN> static sp_status launch_values(warp_run<V> *run)
{
    CHECK((launch_known<V, PLAIN>(run)));
    return launch_small<V, PLAIN, true>(run);
}

/* Lets the main stream go on after the side streams that have been taken. */
template <typename V> static sp_status join(warp_run<V> *run)
{
    sp_context *context = run->context;
    cuda_state *state = cuda_state_of(context);
    for (int i = 1; i < SIDE_STREAMS; i++) {
        if (!(run->taken.streams >> i & 1)) continue;
        CUDA_CHECK(cudaEventRecord(state->joined[i], state->side[i]));
        CUDA_CHECK(cudaStreamWaitEvent(state->stream, state->joined[i], 0));
    }
    run->taken.streams = 0;
    return SP_OK;
}

/* Runs one phase's launches. */
template <typename V> static sp_status fork_and_join(warp_run<V> *run, sp_status (*launches)(warp_run<V> *))
{
    int classes = 0;
    for (int c = CLASS_SMALL; c < ROW_CLASSES; c++) classes += has_rows(run, c);
    run->streams = classes < 2 ? 0 : STREAMS;
    const bool narrow = (has_rows(run, CLASS_NARROW) || has_rows(run, CLASS_NARROWER)) && few_narrow(run);
    run->chain = narrow || has_rows(run, CLASS_WIDE) || has_rows(run, CLASS_LONG) ? (int)CHAIN_STREAM : 0;
    run->chained = false;
    CHECK(cuda_fork(run->context, 0));
    CHECK(launches(run));
    return join(run);
}

/* Totals, lengths, lists and notes lie in one array. */
static int64_t room_for_rows(int64_t rows) { return 2 * (int64_t)sizeof(warp_totals) + rows * (2 * 4 + 2); }
template <typename V> static void use_room(warp_run<V> *run, unsigned char *room)
{
    run->totals = (warp_totals *)room;
    run->lengths = (int32_t *)(run->totals + 2);
    run->list = run->lengths + run->a->rows;
    run->notes = (uint8_t *)(run->list + run->a->rows);
    run->job.notes = run->notes;
    run->job.list = run->list;
    run->job.lengths = run->lengths;
}

/* A row product's operands. */
template <typename V>
static sp_status set_operands(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              warp_run<V> *run)
{
    run->context = context;
    run->a = a;
    run->b = b;
    const sp_csr *mask = options->mask;
    run->job.product = {view_of<V>(a), view_of<V>(b), b->cols, options->semiring, mask ? mask->row_offsets : NULL,
                        mask ? mask->col_indices : NULL, options->complement, {}};
    run->job.rows = a->rows;
    if (left_out("spgemm-chains")) return SP_OK;
    return find_chains(context, &run->chains);
}

/* The same, and what every phase needs. */
template <typename V>
static sp_status open_run(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                          warp_run<V> *run)
{
    CHECK(set_operands(context, a, b, options, run));
    CHECK(run->room.allocate(context, room_for_rows(a->rows)));
    CHECK(run->room.fill(0, 2 * (int64_t)sizeof(warp_totals)));
    use_room(run, run->room.data);
    return SP_OK;
}

/* Runs `meanwhile` on the device while the phase's totals come to the host. */
template <typename V>
static sp_status wait_for_totals(warp_run<V> *run, sp_status (*meanwhile)(warp_run<V> *), warp_totals *totals)
{
    sp_context *context = run->context;
    cudaStream_t side = cuda_state_of(context)->side[0];
    CHECK(cuda_fork(context, 1));
    CHECK(meanwhile(run));
    CUDA_CHECK(cudaMemcpyAsync(totals, run->job.totals, sizeof *totals, cudaMemcpyDeviceToHost, side));
    CUDA_CHECK(cudaStreamSynchronize(side));
    if (sp_interrupted(context)) return sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
    run->known = totals;
    return SP_OK;
}

/* lengths[i]: entries of row i of C; rows are classified by them. */
template <typename V, bool PLAIN> static sp_status count_rows(warp_run<V> *run)
{
    const unsigned few = (unsigned)(LONG_BLOCKS * cuda_state_of(run->context)->processors);
    if (!run->far && run->known->members[CLASS_LONG] > few)
        run->sorts = LEAST_SORTED << (CLASS_BLOCK_COUNTED - CLASS_SORTED);
    if (index_pays(run)) CHECK(open_index(run));
    if (run->index.data && run->far) {
        CHECK(index_columns(run, stream_of(run->context)));
        run->job.product.index = index_of(run);
    }
    CHECK(fork_and_join(run, launch_counts<V, PLAIN>));
    return reclassify_rows(run);
}

template <typename V, bool PLAIN> static sp_status sum_rows(warp_run<V> *run)
{
    if (index_pays(run) && !run->index.data) {
        CHECK(open_index(run));
        CHECK(index_columns(run, stream_of(run->context)));
    }
    run->job.product.index = index_of(run);
    return fork_and_join(run, launch_sums<V, PLAIN>);
}

/* Where the numeric phase writes. A wide row has more than MOST_SUMMED entries and one part that is not full. */
template <typename V> static sp_status set_result(warp_run<V> *run, const sp_csr *c)
{
    run->job.offsets = c->row_offsets;
    run->job.c_cols = c->col_indices;
    run->job.c_values = (V *)c->values;
    if (!has_rows(run, CLASS_WIDE)) return SP_OK;
    const int64_t most = c->nnz / PART_ENTRIES + c->nnz / MOST_SUMMED + FEW_ENTRIES / LEAST_PART_ENTRIES + 1;
    CHECK(run->parts.allocate(run->context, most));
    run->job.parts = run->parts.data;
    run->job.most_parts = (unsigned)most;
    return SP_OK;
}

/* There is room for SP_SPGEMM_GROUPS kinds of rows, and only products with giant rows may have more. So giant rows are
 * named first, and the last kind is left out. Twins and merged rows never meet: A's rows are long for the first and
 * short for the second. */
static void name_groups(const warp_totals *totals, sp_spgemm_info *info)
{
    static const char *const names[CLASS_TWINS] = {"", "small", "merged", "hash 128", "hash 256", "hash 512",
                                             "hash 1024", "", "", "", "dense", "dense", "wide", "sort 256", "sort 256",
                                             "sort 1024", "sort 1024", "sort 4096", "sort 4096", "sort 8192",
                                             "ranked", "ranked", "ranked", "ranked"};
    unsigned twins = 0;
    for (int c = CLASS_TWINS; c < CLASS_GIANT; c++) twins += totals->members[c];
    info->groups = 0;
    for (int c = CLASS_IDLE; c <= CLASS_TWINS; c++) {
        const unsigned count = c == CLASS_TWINS ? twins : totals->members[c == CLASS_IDLE ? CLASS_GIANT : c];
        if (count == 0) continue;
        const char *name = c == CLASS_TWINS ? "twins" : c == CLASS_IDLE ? "giant" : names[c];
        if (info->groups > 0 && strcmp(info->group[info->groups - 1].name, name) == 0) {
            info->group[info->groups - 1].count += count;
            continue;
        }
        if (info->groups == SP_SPGEMM_GROUPS) return;
        sp_spgemm_group *group = &info->group[info->groups++];
        snprintf(group->name, sizeof group->name, "%s", name);
        group->count = count;
    }
}

static bool all_merged(const warp_totals *totals)
{
    unsigned others = 0;
    for (int c = CLASS_SMALL; c < ROW_CLASSES; c++) others += c == CLASS_MERGED ? 0 : totals->members[c];
    return others == 0;
}

/* Columns and values for the offsets that `c` has. */
static sp_status allocate_entries(sp_context *context, bool pattern, sp_csr *c)
{
    CHECK(cuda_allocate(context, (size_t)c->nnz * sizeof(int32_t), (void **)&c->col_indices));
    if (pattern) return SP_OK;
    return cuda_allocate(context, (size_t)c->nnz * sp_value_size(c->value_type), &c->values);
}

/* Classes by products, and what can be counted meanwhile. */
template <typename V, bool PLAIN> static sp_status begin_product(warp_run<V> *run, warp_totals *totals)
{
    const size_t bytes = (size_t)run->a->rows * sizeof(int32_t);
    sp_context *context = run->context;
    /* Offsets are tried before rows that do not merge are counted. */
    if (run->merges) CUDA_CHECK(cudaMemsetAsync(run->lengths, 0, bytes, stream_of(context)));
    CHECK(classify_rows(run));
    return wait_for_totals(run, begin_counting<V, PLAIN>, totals);
}

/* Without room for giant rows, all rows are classified once more, and these as any other. */
template <typename V, bool PLAIN> static sp_status split_giants(warp_run<V> *run, warp_totals *totals)
{
    bool formed;
    int64_t first = 0;
    if (totals->members[CLASS_GIANT] == 0) return SP_OK;
    for (int c = CLASS_HASHED; c < CLASS_GIANT; c++) first += totals->members[c];
    CHECK(form_giant_rows<V>(run->context, run->a, run->b, run->list + first, totals->members[CLASS_GIANT], INT64_MAX,
                             run->lengths, &run->giants, &formed));
    if (formed) return SP_OK;
    CHECK(join(run));
    CHECK(run->room.fill(0, 2 * (int64_t)sizeof(warp_totals)));
    run->splits = run->small_counted = false;
    run->known = NULL;
    return begin_product<V, PLAIN>(run, totals);
}

/* `c` has its shape and type; it gets its arrays one after another, and is the caller's to free. */
template <typename V, bool PLAIN>
static sp_status form_product(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              sp_csr *c, sp_spgemm_info *info)
{
    const double start = wall_seconds();
    warp_run<V> run = {};
    warp_totals totals;
    size_t before;
    CHECK(cuda_watch_peak(context, &before));
    CHECK(cuda_allocate(context, ((size_t)a->rows + 1) * sizeof(int64_t), (void **)&c->row_offsets));
    CHECK(open_run(context, a, b, options, &run));
    run.dense = PLAIN && !left_out("spgemm-dense") ? least_dense(b) : 0;
    /* Finite elements have long rows; comparing short ones costs more than it gains. */
    run.twins = PLAIN && a->nnz > 9 * a->rows && !run.dense && !left_out("spgemm-twins");
    run.sorts = PLAIN && !left_out("spgemm-sorts") ? most_sorted(context, b->cols) : 0;
    run.far = run.sorts >= LEAST_SORTED << (CLASS_LONG - CLASS_SORTED) && windows_of(b) > FEW_WINDOWS &&
              !left_out("spgemm-far");
    run.merges = PLAIN && can_merge(a);
    run.splits = PLAIN && !left_out("spgemm-giant");
    run.c = c;
    CHECK((begin_product<V, PLAIN>(&run, &totals)));
    if constexpr (PLAIN) CHECK((split_giants<V, PLAIN>(&run, &totals)));
    info->products = (int64_t)totals.products + run.giants.products;
    if (!run.merges || !all_merged(&totals)) {
        CHECK((count_rows<V, PLAIN>(&run)));
        CHECK(wait_for_totals(&run, offset_rows<V>, &totals));
    }
    CHECK(join(&run));
    c->nnz = (int64_t)totals.entries;
    const double counted = wall_seconds();
    CHECK(allocate_entries(context, options->semiring == SP_OR_AND, c));
    CHECK(set_result(&run, c));
    if constexpr (PLAIN) CHECK(write_giants(&run));
    CHECK((sum_rows<V, PLAIN>(&run)));
    CHECK(cuda_finish(context));
    name_groups(&totals, info);
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    CHECK(cuda_peak_beside(context, before, c, &info->peak_bytes));
    info->symbolic_seconds = counted - start;
    info->numeric_seconds = wall_seconds() - counted;
    return SP_OK;
}

static bool is_plain(const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options)
{
    return options->semiring == SP_PLUS_TIMES && !options->mask && a->values && b->values && b->nnz < UINT32_MAX;
}

sp_status sp_cuda_spgemm_warp(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                              sp_csr *c, sp_spgemm_info *info)
{
    sp_csr made = {};
    sp_status status;
    made.rows = a->rows;
    made.cols = b->cols;
    made.value_type = a->value_type;
    made.space = SP_DEVICE;
    if (a->rows == 0)
        status = sp_csr_create(context, 0, b->cols, 0, a->value_type, SP_DEVICE, &made);
    else if (a->value_type == SP_F32)
        status = is_plain(a, b, options) ? form_product<float, true>(context, a, b, options, &made, info)
                                         : form_product<float, false>(context, a, b, options, &made, info);
    else
        status = is_plain(a, b, options) ? form_product<double, true>(context, a, b, options, &made, info)
                                         : form_product<double, false>(context, a, b, options, &made, info);
    if (status == SP_OK && a->rows == 0) {
        if (options->semiring == SP_OR_AND) {
            cuda_release(context, made.values);
            made.values = NULL;
        }
        status = cuda_status(context, cudaMemsetAsync(made.row_offsets, 0, sizeof(int64_t), stream_of(context)),
                             "cudaMemsetAsync");
    }
    if (status == SP_OK) *c = made;
    else sp_csr_free(context, &made);
    return status;
}

/* The numeric phase alone: products outside C's pattern are those that a mask forbids. */
template <typename V, bool PLAIN>
static sp_status form_values(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                             sp_csr *c)
{
    warp_run<V> run = {};
    CHECK(open_run(context, a, b, options, &run));
    CHECK(classify_known(&run, c));
    CHECK(set_result(&run, c));
    if (c->nnz > MOST_SUMMED && !left_out("spgemm-index")) {
        CHECK(open_index(&run));
        CHECK(index_columns(&run, stream_of(context)));
    }
    run.job.product.index = index_of(&run);
    CHECK(list_classes(&run));
    CHECK(fork_and_join(&run, launch_values<V, PLAIN>));
    return cuda_finish(context);
}

sp_status sp_cuda_spgemm_warp_values(sp_context *context, const sp_csr *a, const sp_csr *b,
                                     const sp_spgemm_options *options, sp_csr *c)
{
    if (a->rows == 0 || c->nnz == 0 || !c->values) return SP_OK;
    sp_spgemm_options known = *options;
    known.complement = false;
    if (known.mask) known.mask = c;
    if (a->value_type == SP_F32)
        return is_plain(a, b, &known) ? form_values<float, true>(context, a, b, &known, c)
                                      : form_values<float, false>(context, a, b, &known, c);
    return is_plain(a, b, &known) ? form_values<double, true>(context, a, b, &known, c)
                                  : form_values<double, false>(context, a, b, &known, c);
}

/* ---- host: rows that a plan keeps ------------------------------------------------------------------------ */

struct kept_rows {
    warp_totals known;   /* of the numeric phase */
    unsigned char *room; /* as in warp_run */
    uint8_t *repeats;    /* of B; NULL: not known */
    int dense;           /* as in warp_run */
};

/* Where a quarter of the rows of A have their neighbours' columns and C's lie close together, rows are summed in 2/5 to
 * 1/2 of the time that listed products take; by tables, too, where C has few entries for its products. So they are
 * where rows are dense and that is so: 28 an entry take 4.8 ms instead of 9.2, but 3 an entry 0.44 instead of 0.20.
 * Wide rows would use up the totals. */
enum { LEAST_SHARED = 8 };
static bool are_faster(const warp_totals *totals, int64_t rows, bool dense, bool shared)
{
    if (totals->members[CLASS_GIANT]) return false;
    if (dense) return shared && 2 * ((int64_t)totals->members[CLASS_NARROW] + totals->members[CLASS_NARROWER]) >= rows;
    int64_t twins = 0, ranked = 0;
    for (int i = 0; i < SUMMED_CLASSES; i++) twins += totals->members[CLASS_TWINS + i];
    for (int i = 0; i < RANKED_CLASSES; i++) ranked += totals->members[CLASS_RANKED_TWINS + i];
    return totals->members[CLASS_WIDE] == 0 && 4 * (shared ? twins + ranked : ranked) >= rows;
}

/* Keeps nothing where rows do not suit. */
static sp_status find_rows(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_csr *pattern,
                           kept_rows *kept, bool *suit)
{
    const sp_spgemm_options options = {};
    warp_run<float> run = {}; /* values are not used */
    warp_totals totals[2];
    CHECK(open_run(context, a, b, &options, &run));
    run.dense = left_out("spgemm-dense") ? 0 : least_dense(b);
    run.twins = !run.dense && !left_out("spgemm-twins");
    run.splits = true; /* giant rows would take a warp or a block each */
    /* None is of class LONG. */
    run.sorts = std::min(most_sorted(context, b->cols), LEAST_SORTED << (CLASS_BLOCK_COUNTED - CLASS_SORTED));
    CHECK(classify_known(&run, pattern));
    CHECK(list_classes(&run));
    CUDA_CHECK(cudaMemcpyAsync(totals, run.totals, sizeof totals, cudaMemcpyDeviceToHost, stream_of(context)));
    CHECK(cuda_finish(context));
    kept->known = totals[1];
    *suit = are_faster(totals + 1, a->rows, run.dense > 0,
                       totals[0].products >= LEAST_SHARED * (unsigned long long)pattern->nnz);
    if (!*suit) return SP_OK;
    kept->room = run.room.data;
    kept->dense = run.dense;
    run.room.data = NULL;
    if (!run.job.product.repeats) return SP_OK; /* B is not A */
    kept->repeats = run.a_repeats.data;
    run.a_repeats.data = NULL;
    return SP_OK;
}

sp_status cuda_keep_rows(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_csr *pattern,
                         kept_rows **rows, int64_t *bytes)
{
    bool suit = false;
    void *kept;
    *rows = NULL;
    if (a->nnz <= 8 * a->rows || b->nnz >= UINT32_MAX || left_out("spgemm-kept")) return SP_OK;
    CHECK(sp_calloc(context, 1, sizeof(kept_rows), &kept));
    const sp_status status = find_rows(context, a, b, pattern, (kept_rows *)kept, &suit);
    if (status != SP_OK || !suit) {
        sp_free(context, kept);
        return status;
    }
    *rows = (kept_rows *)kept;
    *bytes = room_for_rows(a->rows) + (((kept_rows *)kept)->repeats ? b->rows : 0);
    return SP_OK;
}

void cuda_free_rows(sp_context *context, kept_rows *rows)
{
    if (!rows) return;
    cuda_release(context, rows->room);
    cuda_release(context, rows->repeats);
    sp_free(context, rows);
}

template <typename V>
static sp_status sum_kept(sp_context *context, const kept_rows *rows, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    const sp_spgemm_options options = {};
    warp_run<V> run = {};
    CHECK(set_operands(context, a, b, &options, &run));
    use_room(&run, rows->room);
    run.pattern_known = true;
    run.dense = rows->dense;
    run.twins = !run.dense && !left_out("spgemm-twins");
    run.known = &rows->known;
    run.job.product.repeats = rows->repeats;
    run.job.totals = run.totals + 1;
    run.job.notes = run.notes + a->rows;
    CHECK(set_result(&run, c));
    CUDA_CHECK(cudaMemsetAsync(&run.job.totals->next, 0, sizeof run.job.totals->next, stream_of(context)));
    CHECK((fork_and_join(&run, launch_sums<V, true>)));
    return cuda_finish(context);
}

sp_status cuda_sum_rows(sp_context *context, const kept_rows *rows, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    return c->value_type == SP_F32 ? sum_kept<float>(context, rows, a, b, c)
                                   : sum_kept<double>(context, rows, a, b, c);
}
