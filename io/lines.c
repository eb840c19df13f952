/* The parallel line reader: blocks of lines, cut into slices that threads parse on their own.
 *
 * While the slices of one block are parsed, the next block is read (and decompressed). A slice resolves labels in
 * the table of earlier blocks, which nobody changes meanwhile, and keeps labels that are new in a table of its own;
 * afterwards the slices are joined in file order, so ids are in order of first appearance whatever the threads and
 * the block size. As most labels are known after the first blocks, what is joined one after another is little. Before
 * a slice is parsed, its arcs of the block before are appended to all others.
 * The first malformed line in file order wins: its slice has parsed everything before it.
 *
 * Memory: an arc takes 4 to 12 bytes, with weights of f64 16 (arcs.c); a label its text, an offset and a slot
 * (labels.c); blocks and slices are a few times LARGEST_BLOCK.
 */
#include <float.h>
#include <math.h>

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
    bool cut_short; /* reading has ended within its last line: that cannot be right, and may have no end */
    sp_status status; /* why no more bytes came; the lines before are parsed all the same */
} block;

/* ---- what line parsers call ----------------------------------------------------------------------------- */

bool io_slice_fail(io_slice *slice, const char *what, const char *token, const char *token_end, const char *remedy)
{
    slice->status = SP_ERROR_ARGUMENT;
    slice->refused_end = token_end;
    io_write_message(slice->message, sizeof slice->message, what, token, token_end, remedy);
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

bool io_slice_arc(io_slice *slice, int32_t tail, int32_t head, double weight)
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
                   double weight, bool keep)
{
    io_pair *pair = &slice->pairs[slice->pair_count];
    pair->tail = make_label(tail, tail_end);
    pair->head = make_label(head, head_end);
    return io_slice_push(slice, weight, keep);
}

bool io_slice_number(io_slice *slice, const char *token, const char *token_end, double *number)
{
    const double most = io_most(slice->values);
    *number = 1;
    if (token == token_end) return true;
    const bool decimal = io_parse_decimal(token, token_end, number) == token_end;
    if (decimal && isfinite(*number) && (*number <= most || !slice->state->options->lenient)) return true;
    if (!slice->state->options->lenient)
        return io_slice_fail(
            slice, decimal ? "the weight is too large" : "the weight is not a number", token, token_end,
            decimal ? io_most_remedy(slice->values)
                    : io_slice_remedy(slice, "write a decimal number, and no heading",
                                      "write a decimal number, and no heading (--lenient reads it as mcl does)"));
    slice->odd = true;
    const char *stop = io_parse_scanf(token, token_end, number);
    if (stop == token || !isfinite(*number) || *number > most) *number = 1.0;
    return true;
}

void io_slice_note_vast(io_slice *slice, const char *token, const char *token_end, double number)
{
    if (!slice->vast_line && io_is_vast(slice->values, number, token, token_end)) slice->vast_line = slice->lines;
}

bool io_slice_settle(io_slice *slice, const char *token, const char *token_end, double number, double *weight,
                     bool *keep)
{
    const io_read_options *options = slice->state->options;
    if (options->transform) number = options->transform(options->transform_user, number);
    if (!(fabs(number) <= io_most(slice->values)))
        return io_slice_fail(slice,
                             options->transform ? "the weight after its transformation is not finite"
                                                : "the weight is too large",
                             token, token_end, io_most_remedy(slice->values));
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
    io_slice_note_vast(slice, token, token_end, number);
    *weight = io_round(slice->values, number);
    *keep = *weight != 0;
    return true;
}

/* ---- one slice ------------------------------------------------------------------------------------------ */

/* Parses a line that holds NUL bytes. mcl drops them; strict reading refuses them, since they hide what follows,
 * unless something is wrong before: what follows may not have been read. */
static bool parse_with_nul(io_slice *slice, io_line_parser parser, char *line, char *end, char *nul)
{
    if (!slice->state->options->lenient) {
        const bool refused = !parser(slice, line, nul);
        if (refused && (slice->status != SP_ERROR_ARGUMENT || slice->refused_end < nul)) return false;
        return io_slice_fail(slice, "the line holds a NUL byte", nul, nul + 1, "is this a text file?");
    }
    char *to = nul;
    for (char *from = nul; from < end; from++)
        if (*from) *to++ = *from;
    memset(to, ' ', (size_t)(end - to));
    slice->odd = true;
    return parser(slice, line, to);
}

/* Parses a line unless it is too long. Whether it is must not depend on how much of it has been read. */
static bool parse_line(io_slice *slice, io_line_parser parser, char *line, char *end, bool has_nul)
{
    const bool whole = slice->state->many_arcs || slice->state->long_lines, is_long = end - line > IO_LONGEST;
    char *nul = has_nul ? memchr(line, '\0', (size_t)(whole || !is_long ? end - line : IO_LONGEST)) : NULL;
    if (nul && !slice->state->options->lenient) return parse_with_nul(slice, parser, line, end, nul);
    if (is_long && !whole)
        return io_slice_fail(slice, "a line of more than 1 MB", line, end, "is this the right format?");
    const char *run = is_long ? io_find_long_run(line, end - line) : NULL;
    if (run) return io_slice_fail(slice, IO_LONG_RUN, run, end, IO_NO_TEXT);
    return nul ? parse_with_nul(slice, parser, line, end, nul) : parser(slice, line, end);
}

/* What the slice's arcs take when they are packed. */
static void count_packed(io_slice *slice)
{
    const io_arcs *arcs = &slice->arcs;
    const double *weights = arcs->weights;
    slice->runs = arcs->count > 0;
    slice->own_weights = 0;
    for (int64_t i = 1; i < arcs->count; i++) slice->runs += arcs->tails[i] != arcs->tails[i - 1];
    for (int64_t i = 0; i < arcs->count; i++) slice->own_weights += weights[i] != slice->plain_weight;
}

static void parse_slice(io_slice *slice, io_line_parser parser)
{
    slice->arcs.count = slice->lines = slice->odd_lines = slice->negative = slice->entries = slice->vast_line = 0;
    slice->again = slice->continues && slice->open.node;
    slice->node_lines = slice->again;
    slice->used_lines = slice->number_count = slice->above = slice->below = 0;
    io_gaps_clear(&slice->gaps);
    slice->bare = false;
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
        if (!parse_line(slice, parser, line, end, has_nul)) break;
        if (slice->goes_on) slice->open.odd = slice->odd;
        else slice->odd_lines += slice->odd;
        line = next;
    }
    if (slice->status == SP_OK && slice->cut_short)
        io_slice_fail(slice, "a line that is too long", slice->begin, slice->end, "is this the right format?");
    if (slice->status == SP_OK) io_slice_flush(slice);
    if (slice->state->many_arcs) count_packed(slice);
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
        slices[i].cut_short = from->cut_short && i + 1 == count;
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

/* Whether the line that the block begins with will be refused, however it goes on. Within so many words and gaps there
 * is a place where lines in parts are cut. */
static bool is_endless(const block *from, const io_format_state *state)
{
    enum { WORDS_AND_GAPS = 10 };
    if (!state->options->lenient && memchr(from->bytes, '\0', (size_t)from->filled)) return true;
    if (from->filled <= IO_LONGEST) return false;
    if (!state->many_arcs && !state->long_lines) return true;
    return io_find_long_run(from->bytes, from->filled) ||
           (state->many_arcs && from->filled > (int64_t)WORDS_AND_GAPS * IO_LONGEST);
}

/* Reads the block that follows `before`, whose incomplete last line it takes over: `target` bytes, or as many more
 * as it takes to hold a whole line, unless that may be cut. */
static void fill(sp_context *context, io_source *source, const block *before, int64_t target,
                 const io_format_state *state, block *into)
{
    int64_t carried = before->filled - before->used;
    into->continues = before->goes_on;
    into->goes_on = into->cut_short = false;
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
        if (!newline && state->many_arcs && !into->ended) into->used = find_cut(into);
        into->goes_on = !newline && into->used > 0;
        if (into->used == 0 && !into->ended) into->ended = into->cut_short = is_endless(into, state);
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

/* What goes on at once: the next block is read; each slice appends its arcs of the block before, then is parsed. */
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
    for (int i = -1; i < last; i++) { /* what may take longest first: it may have to decompress */
        if (i < 0) fill(context, source, s->now, s->target, s->slices->state, s->next);
        else if (i < s->appended) append(&s->slices[i], all);
        if (i >= 0 && i < s->parsed) parse_slice(&s->slices[i], parser);
    }
}

/* Adds up what slices have appended; false once no later line can make it right. */
static bool sum_edges(const io_slice *slices, int count, joined *all)
{
    enum { LEAST_ARCS = 1 << 20 }; /* what is small is refused in the end, after mistakes in later lines */
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

/* Line `before` has been refused, or the source has failed. A line before it may be wrong in a way that only the arcs
 * of all lines show: then that one is refused. */
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
    fill(context, source, &blocks[1], target, slices->state, &blocks[0]);
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
        sp_free(context, (*slices)[i].map);
        sp_free(context, (*slices)[i].numbers);
        io_gaps_free(context, &(*slices)[i].gaps);
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
