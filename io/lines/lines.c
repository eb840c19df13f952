/* The parallel line reader: blocks of lines, cut into slices that threads parse on their own.
 *
 * While the slices of one block are parsed, the next block is read (and decompressed). A slice resolves labels in the
 * table of earlier blocks, which nobody changes meanwhile, and keeps labels that are new in a table of its own;
 * afterwards the slices are joined in file order, so ids are in order of first appearance whatever the threads and the
 * block size. Most labels are known after the first blocks, so the serial part is small. Before a slice is parsed, its
 * arcs of the block before are appended to all others. The first malformed line in file order is reported: its slice
 * has parsed everything before it.
 *
 * Memory: an arc takes 4 to 12 bytes, with weights of f64 16 (arcs.c); a label its text, an offset and a slot
 * (labels.c); blocks and slices are a few times LARGEST_BLOCK.
 */
#include <float.h>
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "lines/reader.h"

enum {
    FIRST_BLOCK = 1 << 19,      /* small files touch little memory; blocks double from here */
    BLOCK_PER_THREAD = 1 << 19, /* milliseconds of work between two barriers */
    LARGEST_BLOCK = 1 << 21,
    SERIAL_BLOCK = 1 << 19,   /* smaller blocks are parsed by one thread */
    SLICES_PER_THREAD = 4,    /* evens out threads of unequal speed */
    SMALLEST_SLICE = 1 << 14, /* a tenth of a millisecond */
    WIDE_SLOTS = 1 << 20,     /* 16 MB */
    FRESH_SLOTS = 1 << 12,    /* wide ones of a slice: 64 KB */
    AHEAD = 16                /* labels between fetching a slot and looking into it */
};

/* Cuts the block's whole lines into slices of about equal size. */
static void cut(const block *from, io_slice *slices, int count)
{
    char *begin = from->bytes, *end = from->bytes + from->used;
    for (int i = 0; i < count; i++) {
        char *stop = from->bytes + from->used / count * (i + 1);
        if (stop < begin) stop = begin;
        char *newline = i + 1 < count ? memchr(stop, '\n', (size_t)(end - stop)) : NULL;
        stop = newline ? newline + 1 : end;
        slices[i].begin = begin;
        slices[i].end = stop;
        slices[i].continues = i == 0 && from->continues;
        slices[i].goes_on = from->goes_on;
        slices[i].cut_short = from->cut_short && i + 1 == count;
        begin = stop;
    }
}

/* ---- joining -------------------------------------------------------------------------------------------- */

typedef struct joined {
    io_labels labels;
    io_arcs arcs;
    io_packed packed; /* instead, of formats whose lines have many */
    int64_t lines, bytes, odd_lines, negative, vast_line;
    io_line_counts counts;
    io_open_line open;
} joined;

static uint32_t hash_of(const io_names *names, int64_t k)
{
    return io_label_hash(io_name(names, k), io_name_length(names, k));
}

static void prefetch_home(const io_labels *labels, const io_names *names, int64_t k)
{
    if (io_name_length(names, k) <= IO_SHORT_LABEL) io_labels_prefetch_wide(labels, hash_of(names, k));
    else io_labels_prefetch_slot(labels, hash_of(names, k));
}

/* Ids for the labels that the slice brought. */
static sp_status map_fresh(sp_context *context, io_labels *labels, io_slice *slice)
{
    const io_names *fresh = &slice->fresh.list.names;
    sp_status status;
    TRY(io_reserve(context, 0, fresh->count, sizeof *slice->map, &slice->map_capacity, (void **)&slice->map));
    for (int64_t k = 0; k < fresh->count; k++) {
        if (k + AHEAD < fresh->count) prefetch_home(labels, fresh, k + AHEAD);
        TRY(io_labels_add(context, labels, io_name(fresh, k), io_name_length(fresh, k), hash_of(fresh, k),
                          &slice->map[k]));
    }
done:
    return status;
}

static inline int32_t tail_of(const io_slice *slice, int64_t arc)
{
    const int32_t given = slice->arcs.tails[arc];
    return given >= 0 ? given + (int32_t)slice->first_node : slice->map[~given];
}

static inline int32_t head_of(const io_slice *slice, int64_t arc)
{
    const int32_t given = slice->arcs.heads[arc];
    return given >= 0 ? given : slice->map[~given];
}

static void append_arcs(const io_slice *slice, const io_arcs *to)
{
    const io_arcs *from = &slice->arcs;
    for (int64_t i = 0; i < from->count; i++) {
        to->tails[slice->place + i] = tail_of(slice, i);
        to->heads[slice->place + i] = head_of(slice, i);
    }
    if (to->uniform) return;
    const double *weights = from->weights;
    if (to->values == SP_F32) {
        float *place = (float *)to->weights + slice->place;
        for (int64_t i = 0; i < from->count; i++) place[i] = (float)weights[i];
    } else {
        double *place = (double *)to->weights + slice->place;
        for (int64_t i = 0; i < from->count; i++) place[i] = weights[i];
    }
}

static void pack_arcs(const io_slice *slice, const io_packed *to)
{
    const io_arcs *from = &slice->arcs;
    const double *weights = from->weights;
    int64_t run = slice->run_place - 1, own = slice->weight_place;
    for (int64_t i = 0; i < from->count; i++) {
        const int32_t head = head_of(slice, i);
        const bool has_own = weights[i] != slice->plain_weight;
        to->heads[slice->place + i] = has_own ? ~head : head;
        if (has_own) io_store_value(to->weights, to->values, own++, weights[i]);
        if (i > 0 && from->tails[i] == from->tails[i - 1]) to->runs[run].count++;
        else to->runs[++run] = (io_run){tail_of(slice, i), 1};
    }
}

/* The arcs of a slice of the block before go to all others. */
static void append(io_slice *slice, const joined *all)
{
    if (slice->state->add_up) slice->state->add_up(slice);
    if (slice->state->many_arcs) pack_arcs(slice, &all->packed);
    else append_arcs(slice, &all->arcs);
}

/* Keeps a single number for the weights as long as all are the same. */
static sp_status join_weights(sp_context *context, const io_slice *slice, io_arcs *all)
{
    const double *weights = slice->arcs.weights;
    if (slice->arcs.count == 0) return SP_OK;
    if (slice->place == 0) all->weight = weights[0];
    return slice->differ || weights[0] != all->weight ? io_arcs_spread_weight(context, all) : SP_OK;
}

/* Where the arcs of the next slice begin. */
typedef struct places {
    int64_t arcs, runs, weights;
} places;

/* Counts what the slice holds and gives its labels ids. Fails where it is malformed; what it holds up to there is
 * counted. */
static sp_status join_slice(sp_context *context, const char *name, io_slice *slice, places *next, joined *all)
{
    sp_status status = SP_OK;
    slice->place = next->arcs;
    slice->run_place = next->runs;
    slice->weight_place = next->weights;
    slice->first_node = all->counts.node_lines - slice->again;
    if (slice->state->join) status = slice->state->join(context, name, slice, all->lines);
    if (status == SP_OK && slice->status == SP_ERROR_ARGUMENT)
        status = sp_fail(context, slice->status, "%s:%lld: %s", name, (long long)(all->lines + slice->lines),
                         slice->message);
    else if (slice->status != SP_OK && slice->status != SP_ERROR_ARGUMENT)
        status = sp_fail(context, slice->status, "%s: %s", name, sp_status_string(slice->status));
    if (status == SP_OK) status = map_fresh(context, &all->labels, slice);
    if (status == SP_OK && !slice->state->many_arcs) status = join_weights(context, slice, &all->arcs);
    next->arcs += slice->arcs.count;
    next->runs += slice->runs;
    next->weights += slice->own_weights;
    if (slice->vast_line && !all->vast_line) all->vast_line = all->lines + slice->vast_line;
    all->lines += slice->lines;
    all->odd_lines += slice->odd_lines;
    all->negative += slice->negative;
    all->counts.entries += slice->entries;
    if (slice->used_lines) all->counts.used_lines = slice->first_node + slice->used_lines;
    all->counts.node_lines += slice->node_lines - slice->again;
    all->open = slice->open;
    all->counts.complete = all->counts.node_lines - (slice->open.node && (slice->goes_on || status != SP_OK));
    if (status != SP_OK) return status;
    if (all->open.tail < 0 && slice->goes_on) all->open.tail = slice->map[~all->open.tail];
    if (all->counts.node_lines > INT32_MAX)
        return sp_fail(context, SP_ERROR_OVERFLOW, "%s: 2^31 nodes or more", name);
    return SP_OK;
}

/* Gives the slices of a block their ids and their places among all arcs. On failure *count is how many have them. */
static sp_status join(sp_context *context, const char *name, io_slice *slices, int *count, joined *all)
{
    const bool packed = slices->state->many_arcs;
    places next = {packed ? all->packed.count : all->arcs.count, all->packed.run_count, all->packed.weight_count};
    sp_status status = SP_OK, reserved;
    for (int i = 0; status == SP_OK && i < *count; i++) {
        status = join_slice(context, name, &slices[i], &next, all);
        if (status != SP_OK) *count = i + 1;
    }
    if (status != SP_OK && !slices->state->recheck) return status;
    if (packed) {
        reserved = io_packed_reserve(context, &all->packed, next.arcs, next.runs, next.weights);
        if (reserved != SP_OK) return reserved;
        all->packed.count = next.arcs;
        all->packed.run_count = next.runs;
        all->packed.weight_count = next.weights;
    } else {
        reserved = io_arcs_reserve(context, &all->arcs, next.arcs);
        if (reserved != SP_OK) return reserved;
        all->arcs.count = next.arcs;
    }
    return status;
}

/* ---- the whole file ------------------------------------------------------------------------------------- */

/* One step in parallel: the next block is read, while each slice appends its arcs of the block before and is parsed. */
typedef struct step {
    const block *now;
    block *next;
    int64_t target; /* bytes of the next block */
    io_slice *slices;
    int parsed, appended; /* slices of this block, and of the one before */
    int threads;
} step;

static void advance(sp_context *context, io_source *source, io_line_parser parser, const step *s, const joined *all)
{
    const int last = s->parsed > s->appended ? s->parsed : s->appended;
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->threads) if (s->threads > 1)
    for (int i = -1; i < last; i++) { /* the longest task first: it may have to decompress */
        if (i < 0) io_fill_block(context, source, s->now, s->target, s->slices->state, s->next);
        else if (i < s->appended) append(&s->slices[i], all);
        if (i >= 0 && i < s->parsed) io_parse_slice(&s->slices[i], parser);
    }
}

/* Adds up the sums of the slices; false once no later line can repair the graph. */
static bool sum_edges(const io_slice *slices, int count, joined *all)
{
    enum { LEAST_ARCS = 1 << 20 }; /* a small graph is refused at its end, after mistakes in later lines */
    io_edge_sums *sums = &all->counts.edges;
    for (int i = 0; i < count; i++) {
        sums->hash += slices[i].edges.hash;
        sums->ahead += slices[i].edges.ahead;
        sums->loops += slices[i].edges.loops;
        sums->disorder += slices[i].edges.disorder;
    }
    all->counts.stopped = sums->ahead < 0 && all->packed.count > LEAST_ARCS;
    return !all->counts.stopped;
}

/* Line `before` has been refused, or the source has failed. An earlier line may be wrong in a way that shows only in
 * the arcs of all lines: then that line is refused. */
static sp_status find_earlier(sp_context *context, io_source *source, io_slice *slices, int count, joined *all,
                              int64_t before, sp_status status)
{
    const io_format_state *state = slices->state;
    if (!state->recheck || (status != SP_ERROR_ARGUMENT && status != SP_ERROR_MATRIX)) return status;
    for (int i = 0; i < count; i++) append(&slices[i], all);
    const sp_status earlier = state->recheck(context, io_source_name(source), state, &all->packed,
                                             all->counts.complete, before);
    return earlier == SP_OK ? status : earlier;
}

static sp_status read_blocks(sp_context *context, io_source *source, io_line_parser parser, size_t reader_block,
                             io_slice *slices, int most_slices, block blocks[2], joined *all)
{
    const int threads = sp_context_threads(context);
    int64_t largest = (int64_t)BLOCK_PER_THREAD * threads, target = FIRST_BLOCK, size = io_source_size(source);
    if (largest > LARGEST_BLOCK) largest = LARGEST_BLOCK;
    if (reader_block) largest = target = (int64_t)reader_block;
    if (size > 0 && size < target) target = size + 1; /* one more, to see the end at once */

    sp_status status = SP_OK;
    int64_t before = INT64_MAX;
    int at = 0;
    step s = {.slices = slices};
    io_fill_block(context, source, &blocks[1], target, slices->state, &blocks[0]);
    for (; blocks[at].used > 0; at = !at) {
        const bool alone = blocks[at].used < SERIAL_BLOCK && !reader_block;
        const int64_t useful = reader_block ? most_slices : blocks[at].used / SMALLEST_SLICE;
        s.now = &blocks[at];
        s.next = &blocks[!at];
        s.parsed = alone || blocks[at].goes_on ? 1 : useful < most_slices ? (int)useful : most_slices;
        s.threads = alone ? 1 : threads;
        s.target = target = target * 2 < largest ? target * 2 : largest;
        cut(s.now, slices, s.parsed);
        slices[0].open = all->open;
        advance(context, source, parser, &s, all);
        if (!sum_edges(slices, s.appended, all)) return SP_OK;
        s.appended = s.parsed;
        all->bytes += s.now->used;
        status = join(context, io_source_name(source), slices, &s.appended, all);
        before = status == SP_OK ? INT64_MAX : all->lines;
        if (status == SP_OK) status = s.now->status;
        if (status != SP_OK) break;
    }
    if (status == SP_OK) status = blocks[at].status;
    if (status != SP_OK) return find_earlier(context, source, slices, s.appended, all, before, status);
    for (int i = 0; i < s.appended; i++) append(&slices[i], all);
    sum_edges(slices, s.appended, all);
    return SP_OK;
}

/* Takes the result over into the graph. */
static void hand_over(joined *all, io_graph *graph)
{
    graph->nodes = all->labels.list.names.count;
    graph->names = all->labels.list.names;
    graph->lines = all->lines;
    graph->bytes += all->bytes;
    graph->odd_lines = all->odd_lines;
    graph->negative = all->negative;
    graph->vast_line = all->vast_line;
    memset(&all->labels.list.names, 0, sizeof all->labels.list.names);
}

/* Frees what only reading needs, before the arcs get the last of their memory. */
static void free_scratch(sp_context *context, io_slice **slices, int count, block blocks[2], io_labels *labels)
{
    for (int i = 0; *slices && i < count; i++) {
        io_labels_free(context, &(*slices)[i].fresh);
        io_arcs_free(context, &(*slices)[i].arcs);
        FREE_ALL(context, (*slices)[i].map, (*slices)[i].numbers);
        io_gaps_free(context, &(*slices)[i].gaps);
    }
    sp_free(context, *slices);
    *slices = NULL;
    for (int i = 0; i < 2; i++) {
        sp_free(context, blocks[i].bytes);
        blocks[i].bytes = NULL;
    }
    FREE_ALL(context, labels->slots, labels->wide);
    labels->slots = NULL;
    labels->wide = NULL;
}

sp_status io_read_lines(sp_context *context, io_source *source, const io_format_state *state, io_line_parser parser,
                        size_t reader_block, int64_t first_line, io_line_counts *counts, io_graph *graph)
{
    const int threads = sp_context_threads(context), count = threads > 1 ? SLICES_PER_THREAD * threads : 1;
    io_slice *slices = NULL;
    block blocks[2] = {{0}};
    const io_read_options *options = state->options;
    const sp_value_type values = options->values;
    joined all = {.lines = first_line, .arcs = {.uniform = true, .values = values}, .packed.values = values,
                  .labels = {.file = io_source_name(source), .wide_most = WIDE_SLOTS}};
    sp_status status;
    const double plain_weight =
        options->transform ? io_round(values, options->transform(options->transform_user, 1)) : 1;
    all.packed.weight = plain_weight;
    TRY(sp_calloc(context, count, sizeof *slices, (void **)&slices));
    for (int i = 0; i < count; i++) {
        slices[i].context = context;
        slices[i].state = state;
        slices[i].known = &all.labels;
        slices[i].values = values;
        slices[i].scan_most = values == SP_F32 ? (double)FLT_MAX : IO_MOST_WHOLE / 2;
        slices[i].arcs.values = SP_F64;
        slices[i].plain_weight = plain_weight;
        slices[i].fresh = (io_labels){.file = all.labels.file, .wide_most = FRESH_SLOTS};
    }
    TRY(read_blocks(context, source, parser, reader_block, slices, count, blocks, &all));
    free_scratch(context, &slices, count, blocks, &all.labels);
    TRY(state->many_arcs ? io_packed_hand_over(context, &all.packed, graph)
                         : io_arcs_hand_over(context, &all.arcs, graph));
    hand_over(&all, graph);
    if (counts) *counts = all.counts;
done:
    free_scratch(context, &slices, count, blocks, &all.labels);
    io_labels_free(context, &all.labels);
    io_arcs_free(context, &all.arcs);
    io_packed_free(context, &all.packed);
    return status;
}
