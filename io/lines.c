/* The parallel line reader: blocks of lines, cut into slices that threads parse on their own.
 *
 * While the slices of one block are parsed, the next block is read (and decompressed). A slice resolves labels in
 * the table of earlier blocks, which nobody changes meanwhile, and keeps labels that are new in a table of its own;
 * afterwards the slices are joined in file order, so ids are in order of first appearance whatever the threads and
 * the block size. As most labels are known after the first blocks, what is joined one after another is little. Before
 * a slice is parsed, its arcs of the block before are appended to all others.
 * The first malformed line in file order wins: its slice has parsed everything before it.
 *
 * Memory: an arc takes 4 to 12 bytes (arcs.c); a label its text, an offset and a slot (labels.c); blocks and slices
 * are a few times LARGEST_BLOCK.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "internal.h"

enum {
    FIRST_BLOCK = 1 << 19,      /* small files touch little memory; blocks double from here */
    BLOCK_PER_THREAD = 1 << 19, /* milliseconds of work between two barriers */
    LARGEST_BLOCK = 1 << 21,
    SERIAL_BLOCK = 1 << 19,   /* below this a block is not worth waking threads for */
    SLICES_PER_THREAD = 4,    /* evens out threads of unequal speed */
    SMALLEST_SLICE = 1 << 14, /* a tenth of a millisecond */
    WIDE_SLOTS = 1 << 20,     /* 16 MB */
    FRESH_SLOTS = 1 << 12,    /* wide ones of a slice: 64 KB */
    AHEAD = 16                /* labels between fetching a slot and looking into it */
};

/* Lines in memory: bytes[0..used) are whole lines, bytes[used..filled) the beginning of the next one. */
typedef struct block {
    char *bytes;
    int64_t capacity, filled, used;
    bool ended;
    bool continues, goes_on; /* begins within a line; is of one line, which does not end */
    sp_status status; /* why no more bytes came; the lines before are parsed all the same */
} block;

/* ---- messages ------------------------------------------------------------------------------------------- */

void io_show_token(const char *text, const char *end, char *shown, size_t size)
{
    const char *stop = end - text > IO_TOKEN_SHOWN ? text + IO_TOKEN_SHOWN : end;
    size_t at = 0;
    for (; text < stop && at + 8 < size; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\t')
            at += (size_t)snprintf(shown + at, size - at, "\\t");
        else if (c == '\r')
            at += (size_t)snprintf(shown + at, size - at, "\\r");
        else if (c < ' ' || c >= 0x7f)
            at += (size_t)snprintf(shown + at, size - at, "\\x%02x", c);
        else
            shown[at++] = (char)c;
    }
    snprintf(shown + at, size - at, "%s", stop < end ? "..." : "");
}

static void write_message(char *message, size_t size, const char *what, const char *token, const char *token_end,
                          const char *remedy)
{
    char shown[4 * IO_TOKEN_SHOWN + 16];
    io_show_token(token, token_end, shown, sizeof shown);
    snprintf(message, size, "%s (got \"%s\"); %s", what, shown, remedy);
}

sp_status io_fail_line(sp_context *context, const char *name, int64_t line, const char *what, const char *token,
                       const char *token_end, const char *remedy)
{
    char message[IO_MESSAGE];
    write_message(message, sizeof message, what, token, token_end, remedy);
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s:%lld: %s", name, (long long)line, message);
}

/* ---- what line parsers call ----------------------------------------------------------------------------- */

bool io_slice_fail(io_slice *slice, const char *what, const char *token, const char *token_end, const char *remedy)
{
    slice->status = SP_ERROR_ARGUMENT;
    slice->refused_end = token_end;
    write_message(slice->message, sizeof slice->message, what, token, token_end, remedy);
    return false;
}

/* What no earlier block has brought. */
static bool add_fresh(io_slice *slice, const io_label *label, int32_t *id)
{
    int32_t fresh;
    slice->status = io_labels_add(slice->context, &slice->fresh, label->text, label->length, label->hash, &fresh);
    *id = ~fresh;
    return slice->status == SP_OK;
}

static bool find_or_add(io_slice *slice, const io_label *label, int32_t *id)
{
    *id = io_labels_find(slice->known, label->text, label->length, label->hash);
    return *id >= 0 || add_fresh(slice, label, id);
}

/* All but the hash. */
static io_label make_label(const char *text, const char *end)
{
    const size_t length = (size_t)(end - text);
    const io_key key = length <= IO_SHORT_LABEL ? io_label_key(text, length) : (io_key){0, 0};
    return (io_label){.text = text, .length = length, .key = key};
}

bool io_slice_label(io_slice *slice, const char *label, const char *label_end, int32_t *id)
{
    io_label made = make_label(label, label_end);
    io_hash_label(&made);
    return find_or_add(slice, &made, id);
}

bool io_slice_arc(io_slice *slice, int32_t tail, int32_t head, float weight)
{
    io_arcs *arcs = &slice->arcs;
    slice->status = io_arcs_reserve(slice->context, arcs, arcs->count + 1);
    if (slice->status != SP_OK) return false;
    io_slice_put(slice, tail, head, weight);
    return true;
}

/* Finds what is not in wide slots: labels number which[0..count) of the pairs that wait, each two of a pair. */
static bool resolve_others(io_slice *slice, const int *which, int count, int32_t *ids)
{
    const io_labels *known = slice->known;
    const io_label *labels[2 * IO_PAIRS];
    int32_t likely[2 * IO_PAIRS];
    for (int i = 0; i < count; i++) {
        labels[i] = which[i] % 2 ? &slice->pairs[which[i] / 2].head : &slice->pairs[which[i] / 2].tail;
        io_labels_prefetch_slot(known, labels[i]->hash);
    }
    for (int i = 0; i < count; i++) likely[i] = io_labels_prefetch_offset(known, labels[i]->hash);
    for (int i = 0; i < count; i++) io_labels_prefetch_name(known, likely[i]);
    for (int i = 0; i < count; i++) {
        const bool is_new = io_labels_all_wide(known, labels[i]->length);
        if (!(is_new ? add_fresh : find_or_add)(slice, labels[i], &ids[which[i]])) return false;
    }
    return true;
}

bool io_slice_flush(io_slice *slice)
{
    const int count = slice->pair_count;
    int32_t ids[2 * IO_PAIRS];
    int others[2 * IO_PAIRS], left = 0;
    slice->pair_count = 0;
    slice->status = io_arcs_reserve(slice->context, &slice->arcs, slice->arcs.count + count);
    if (slice->status != SP_OK) return false;
    for (int i = 0; i < count; i++) {
        const io_pair *pair = &slice->pairs[i];
        const bool short_tail = pair->tail.length <= IO_SHORT_LABEL, short_head = pair->head.length <= IO_SHORT_LABEL;
        ids[2 * i] = pair->same_tail || !short_tail ? -1
                     : io_labels_find_wide(slice->known, pair->tail.key, pair->tail.hash);
        ids[2 * i + 1] = short_head ? io_labels_find_wide(slice->known, pair->head.key, pair->head.hash) : -1;
        others[left] = 2 * i;
        left += ids[2 * i] < 0 && !pair->same_tail;
        others[left] = 2 * i + 1;
        left += ids[2 * i + 1] < 0;
    }
    if (left > 0 && !resolve_others(slice, others, left, ids)) return false;
    for (int i = 0; i < count; i++) {
        const io_pair *pair = &slice->pairs[i];
        if (!pair->same_tail) slice->last_tail = ids[2 * i];
        if (pair->keep) io_slice_put(slice, slice->last_tail, ids[2 * i + 1], pair->weight);
    }
    return true;
}

bool io_slice_pair(io_slice *slice, const char *tail, const char *tail_end, const char *head, const char *head_end,
                   float weight, bool keep)
{
    io_pair *pair = &slice->pairs[slice->pair_count];
    pair->tail = make_label(tail, tail_end);
    pair->head = make_label(head, head_end);
    return io_slice_push(slice, weight, keep);
}

/* The number in a weight token. Lenient reading follows mcl: what a number begins with counts, anything else is 1. */
static bool read_weight(io_slice *slice, const char *token, const char *token_end, double *number)
{
    const bool decimal = io_parse_decimal(token, token_end, number) == token_end;
    if (decimal && isfinite(*number) && (*number <= FLT_MAX || !slice->state->options->lenient)) return true;
    if (!slice->state->options->lenient)
        return io_slice_fail(
            slice, decimal ? "the weight is too large" : "the weight is not a number", token, token_end,
            decimal ? "write a number below 3.4e38"
                    : io_slice_remedy(slice, "write a decimal number, and no heading",
                                      "write a decimal number, and no heading (--lenient reads it as mcl does)"));
    slice->odd = true;
    const char *stop = io_parse_scanf(token, token_end, number);
    if (stop == token || !isfinite(*number) || *number > FLT_MAX) *number = 1.0;
    return true;
}

bool io_slice_weight(io_slice *slice, const char *token, const char *token_end, float *weight, bool *keep)
{
    const io_read_options *options = slice->state->options;
    double number = 1.0;
    if (token < token_end && !read_weight(slice, token, token_end, &number)) return false;
    if (options->transform) number = options->transform(options->transform_user, number);
    if (!(fabs(number) <= FLT_MAX))
        return io_slice_fail(slice,
                             options->transform ? "the weight after its transformation is not finite"
                                                : "the weight is too large",
                             token, token_end, "write a number below 3.4e38");
    if (number < 0) {
        if (!options->lenient && !options->any_sign)
            return io_slice_fail(slice,
                                 options->transform ? "the weight after its transformation is negative"
                                                    : "the weight is negative",
                                 token, token_end,
                                 options->transform ? "weights are similarities, 0 or above; "
                                                      "end -abc-tf with gt(0) to drop such pairs"
                                                    : io_sign_remedy(options));
        slice->negative++;
        slice->odd = slice->odd || !options->any_sign;
    }
    *weight = (float)number;
    *keep = *weight != 0;
    return true;
}

/* ---- one slice ------------------------------------------------------------------------------------------ */

/* Parses a line that holds NUL bytes. mcl drops them; strict reading refuses them, since they hide what follows,
 * unless something is wrong before. */
static bool parse_with_nul(io_slice *slice, io_line_parser parser, char *line, char *end, char *nul)
{
    if (!slice->state->options->lenient) {
        const bool refused = !parser(slice, line, end);
        if (refused && (slice->status != SP_ERROR_ARGUMENT || slice->refused_end <= nul)) return false;
        return io_slice_fail(slice, "the line holds a NUL byte", nul, nul + 1, "is this a text file?");
    }
    char *to = nul;
    for (char *from = nul; from < end; from++)
        if (*from) *to++ = *from;
    *to = '\n';
    slice->odd = true;
    return parser(slice, line, to);
}

/* What the slice's arcs take when they are packed. */
static void count_packed(io_slice *slice)
{
    const io_arcs *arcs = &slice->arcs;
    slice->runs = arcs->count > 0;
    slice->own_weights = 0;
    for (int64_t i = 1; i < arcs->count; i++) slice->runs += arcs->tails[i] != arcs->tails[i - 1];
    for (int64_t i = 0; i < arcs->count; i++) slice->own_weights += arcs->weights[i] != slice->plain_weight;
}

static void parse_slice(io_slice *slice, io_line_parser parser)
{
    slice->arcs.count = slice->lines = slice->odd_lines = slice->negative = slice->entries = 0;
    slice->again = slice->continues && slice->open.node;
    slice->node_lines = slice->again;
    slice->used_lines = 0;
    slice->status = SP_OK;
    slice->differ = false;
    slice->pair_count = 0;
    io_labels_clear(&slice->fresh);
    bool has_nul = memchr(slice->begin, '\0', (size_t)(slice->end - slice->begin)) != NULL;
    for (char *line = slice->begin; line < slice->end;) {
        if (slice->state->scanner) {
            const char *unusual = slice->state->scanner(slice, line);
            if (!unusual) return;
            line += unusual - line;
            if (line >= slice->end) break; /* a last line without its newline ends there */
        }
        char *newline = memchr(line, '\n', (size_t)(slice->end - line));
        char *end = newline ? newline : slice->end, *next = end + 1;
        const bool continues = io_line_continues(slice, line);
        slice->lines += !continues;
        slice->odd = continues && slice->open.odd;
        char *nul = has_nul ? memchr(line, '\0', (size_t)(end - line)) : NULL;
        if (!(nul ? parse_with_nul(slice, parser, line, end, nul) : parser(slice, line, end))) return;
        if (slice->goes_on) slice->open.odd = slice->odd;
        else slice->odd_lines += slice->odd;
        line = next;
    }
    if (io_slice_flush(slice) && slice->state->many_arcs) count_packed(slice);
}

/* ---- blocks --------------------------------------------------------------------------------------------- */

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
        begin = stop;
    }
}

/* Makes room for `target` bytes, the newline that ends a last line without one, and what scanners look at. */
static sp_status widen(sp_context *context, block *into, int64_t target)
{
    if (target <= into->capacity) return SP_OK;
    sp_status status = io_grow(context, into->filled, target + 1 + IO_SCANNED, 1, (void **)&into->bytes);
    if (status == SP_OK) into->capacity = target;
    return status;
}

/* Where a line of many arcs may be cut, 0 if nowhere: after a blank behind a field, and no sooner than behind the
 * fourth, when what is special about the first ones is over. "LABEL: VALUE" stays together. */
static int64_t find_cut(const block *from)
{
    const char *bytes = from->bytes;
    int64_t least = 0, at = from->filled;
    for (int fields = 0; !from->continues && fields < 4; fields++) {
        while (least < at && bytes[least] <= ' ' && bytes[least] >= 0) least++;
        while (least < at && !io_is_blank(bytes[least])) least++;
    }
    for (at--; at > least + 1; at--) /* something is left for what follows */
        if (io_is_blank(bytes[at - 1]) && bytes[at - 2] && !io_is_blank(bytes[at - 2]) && bytes[at - 2] != ':')
            return at;
    return 0;
}

/* Reads the block that follows `before`, whose incomplete last line it takes over: `target` bytes, or as many more
 * as it takes to hold a whole line, unless that may be cut. */
static void fill(sp_context *context, io_source *source, const block *before, int64_t target, bool in_parts,
                 block *into)
{
    int64_t carried = before->filled - before->used;
    into->continues = before->goes_on;
    into->goes_on = false;
    into->used = into->filled = 0;
    into->status = SP_OK;
    into->ended = before->ended;
    while (into->used == 0 && !into->ended) {
        if (target < 2 * carried) target = 2 * carried;
        into->status = widen(context, into, target);
        if (into->status != SP_OK) break;
        if (into->filled == 0 && carried) memcpy(into->bytes, before->bytes + before->used, (size_t)carried);
        char *fresh = into->bytes + carried;
        size_t got, wanted = (size_t)(into->capacity - carried);
        into->status = io_source_read(source, fresh, wanted, &got);
        into->ended = into->status != SP_OK || got < wanted;
        into->filled = carried + (int64_t)got;
        char *newline = memrchr(fresh, '\n', got);
        into->used = newline ? newline + 1 - into->bytes : 0;
        if (!newline && in_parts && !into->ended) into->used = find_cut(into);
        into->goes_on = !newline && into->used > 0;
        carried = into->filled;
    }
    if (into->status == SP_OK && into->ended && into->used < into->filled) {
        into->bytes[into->filled] = '\n';
        into->used = into->filled;
        into->goes_on = false;
    }
}

/* ---- joining -------------------------------------------------------------------------------------------- */

typedef struct joined {
    io_labels labels;
    io_arcs arcs;
    io_packed packed; /* instead, of formats whose lines have many */
    int64_t lines, bytes, odd_lines, negative;
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
    IO_TRY(io_reserve(context, 0, fresh->count, sizeof *slice->map, &slice->map_capacity, (void **)&slice->map));
    for (int64_t k = 0; k < fresh->count; k++) {
        if (k + AHEAD < fresh->count) prefetch_home(labels, fresh, k + AHEAD);
        IO_TRY(io_labels_add(context, labels, io_name(fresh, k), io_name_length(fresh, k), hash_of(fresh, k),
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
    if (from->count && !to->uniform)
        memcpy(to->weights + slice->place, from->weights, (size_t)from->count * sizeof *from->weights);
}

static void pack_arcs(const io_slice *slice, const io_packed *to)
{
    const io_arcs *from = &slice->arcs;
    int64_t run = slice->run_place - 1, own = slice->weight_place;
    for (int64_t i = 0; i < from->count; i++) {
        const int32_t head = head_of(slice, i);
        const bool has_own = from->weights[i] != slice->plain_weight;
        to->heads[slice->place + i] = has_own ? ~head : head;
        if (has_own) to->weights[own++] = from->weights[i];
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
    if (slice->arcs.count == 0) return SP_OK;
    if (slice->place == 0) all->weight = slice->arcs.weights[0];
    return slice->differ || slice->arcs.weights[0] != all->weight ? io_arcs_spread_weight(context, all) : SP_OK;
}

/* Gives the slices of a block their ids and their places among all arcs. */
static sp_status join(sp_context *context, const char *name, io_slice *slices, int count, joined *all)
{
    sp_status status = SP_OK;
    const bool packed = slices->state->many_arcs;
    int64_t total = packed ? all->packed.count : all->arcs.count, runs = all->packed.run_count;
    int64_t weights = all->packed.weight_count;
    for (int i = 0; i < count; i++) {
        io_slice *slice = &slices[i];
        if (slice->status == SP_ERROR_ARGUMENT)
            return sp_fail(context, slice->status, "%s:%lld: %s", name, (long long)(all->lines + slice->lines),
                           slice->message);
        if (slice->status != SP_OK)
            return sp_fail(context, slice->status, "%s: %s", name, sp_status_string(slice->status));
        IO_TRY(map_fresh(context, &all->labels, slice));
        slice->place = total;
        total += slice->arcs.count;
        slice->run_place = runs;
        slice->weight_place = weights;
        if (packed) {
            runs += slice->runs;
            weights += slice->own_weights;
        } else {
            IO_TRY(join_weights(context, slice, &all->arcs));
        }
        all->lines += slice->lines;
        all->odd_lines += slice->odd_lines;
        all->negative += slice->negative;
        slice->first_node = all->counts.node_lines - slice->again;
        all->counts.entries += slice->entries;
        if (slice->used_lines) all->counts.used_lines = slice->first_node + slice->used_lines;
        all->counts.node_lines += slice->node_lines - slice->again;
        all->open = slice->open;
        if (all->open.tail < 0 && slice->goes_on) all->open.tail = slice->map[~all->open.tail];
        if (all->counts.node_lines > INT32_MAX)
            return sp_fail(context, SP_ERROR_OVERFLOW, "%s: 2^31 nodes or more", name);
    }
    if (packed) {
        IO_TRY(io_packed_reserve(context, &all->packed, total, runs, weights));
        all->packed.count = total;
        all->packed.run_count = runs;
        all->packed.weight_count = weights;
    } else {
        IO_TRY(io_arcs_reserve(context, &all->arcs, total));
        all->arcs.count = total;
    }
done:
    return status;
}

/* ---- the whole file ------------------------------------------------------------------------------------- */

/* What goes on at once: the next block is read; each slice appends its arcs of the block before, then is parsed. */
typedef struct step {
    const block *now;
    block *next;
    int64_t target; /* bytes of the next block */
    io_slice *slices;
    int parsed, appended; /* slices of this block, and of the one before */
    int threads;
    bool in_parts;
} step;

static void advance(sp_context *context, io_source *source, io_line_parser parser, const step *s, const joined *all)
{
    const int last = s->parsed > s->appended ? s->parsed : s->appended;
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->threads) if (s->threads > 1)
    for (int i = -1; i < last; i++) { /* what may take longest first: it may have to decompress */
        if (i < 0) fill(context, source, s->now, s->target, s->in_parts, s->next);
        else if (i < s->appended) append(&s->slices[i], all);
        if (i >= 0 && i < s->parsed) parse_slice(&s->slices[i], parser);
    }
}

/* Of what has been appended; false when it cannot come right any more. */
static bool sum_edges(const io_slice *slices, int count, joined *all)
{
    enum { LEAST_ARCS = 1 << 20 }; /* what is small is refused in the end, after mistakes in later lines */
    io_edge_sums *sums = &all->counts.edges;
    for (int i = 0; i < count; i++) {
        sums->hash += slices[i].edges.hash;
        sums->ahead += slices[i].edges.ahead;
        sums->loops += slices[i].edges.loops;
    }
    all->counts.stopped = sums->ahead < 0 && all->packed.count > LEAST_ARCS;
    return !all->counts.stopped;
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
    int at = 0;
    step s = {.slices = slices, .in_parts = slices->state->many_arcs};
    fill(context, source, &blocks[1], target, s.in_parts, &blocks[0]);
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
        if (!sum_edges(slices, s.appended, all)) goto done;
        s.appended = s.parsed;
        all->bytes += s.now->used;
        IO_TRY(join(context, io_source_name(source), slices, s.parsed, all));
        IO_TRY(s.now->status);
    }
    for (int i = 0; i < s.appended; i++) append(&slices[i], all);
    sum_edges(slices, s.appended, all);
    status = blocks[at].status;
done:
    return status;
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
    memset(&all->labels.list.names, 0, sizeof all->labels.list.names);
}

/* Frees what only reading needs, before the arcs get the last of their memory. */
static void free_scratch(sp_context *context, io_slice **slices, int count, block blocks[2], io_labels *labels)
{
    for (int i = 0; *slices && i < count; i++) {
        io_labels_free(context, &(*slices)[i].fresh);
        io_arcs_free(context, &(*slices)[i].arcs);
        sp_free(context, (*slices)[i].map);
    }
    sp_free(context, *slices);
    *slices = NULL;
    for (int i = 0; i < 2; i++) {
        sp_free(context, blocks[i].bytes);
        blocks[i].bytes = NULL;
    }
    sp_free(context, labels->slots);
    sp_free(context, labels->wide);
    labels->slots = NULL;
    labels->wide = NULL;
}

sp_status io_read_lines(sp_context *context, io_source *source, const io_format_state *state, io_line_parser parser,
                        size_t reader_block, int64_t first_line, io_line_counts *counts, io_graph *graph)
{
    const int threads = sp_context_threads(context), count = threads > 1 ? SLICES_PER_THREAD * threads : 1;
    io_slice *slices = NULL;
    block blocks[2] = {{0}};
    joined all = {.lines = first_line, .arcs.uniform = true,
                  .labels = {.file = io_source_name(source), .wide_most = WIDE_SLOTS}};
    sp_status status;
    const io_read_options *options = state->options;
    const float plain_weight = options->transform ? (float)options->transform(options->transform_user, 1) : 1;
    all.packed.weight = plain_weight;
    IO_TRY(sp_calloc(context, count, sizeof *slices, (void **)&slices));
    for (int i = 0; i < count; i++) {
        slices[i].context = context;
        slices[i].state = state;
        slices[i].known = &all.labels;
        slices[i].plain_weight = plain_weight;
        slices[i].fresh = (io_labels){.file = all.labels.file, .wide_most = FRESH_SLOTS};
    }
    IO_TRY(read_blocks(context, source, parser, reader_block, slices, count, blocks, &all));
    free_scratch(context, &slices, count, blocks, &all.labels);
    IO_TRY(state->many_arcs ? io_packed_hand_over(context, &all.packed, graph)
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
