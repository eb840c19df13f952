/* A slice of lines: what parsers of a format call, and the parsing itself. */
#include <math.h>
#include <string.h>

#include "lines/reader.h"
#include "lines/scan.h"
#include "text/check.h"
#include "text/words.h"

/* ---- what line parsers call ----------------------------------------------------------------------------- */

bool io_slice_fail(io_slice *slice, const char *what, const char *token, const char *token_end, const char *remedy)
{
    slice->status = SP_ERROR_ARGUMENT;
    slice->refused_end = token_end;
    io_write_message(slice->message, sizeof slice->message, what, token, token_end, remedy);
    return false;
}

/* Adds a label that no earlier block has. */
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

/* Finds labels that are not in wide slots: which[0..count) are their numbers among the waiting pairs, two for each
 * pair. */
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

static const char *number_remedy(const io_slice *slice, const char *token, const char *token_end)
{
    double number;
    if (io_has_decimal_comma(token, token_end)) return "write decimals with a point, 2.5 for 2,5";
    if (io_parse_bare_exponent(token, token_end, &number))
        return "older versions of BLAST write e-180 for 1e-180: put a 1 before the e";
    if (slice->state->csv) return "write a decimal number, or leave the column out if it holds no weights";
    return io_slice_remedy(slice, "write a decimal number; a heading must go, as with tail -n +2",
                           "write a decimal number; a heading must go, as with tail -n +2 (--lenient "
                           "reads it as mcl does: labels, weight 1)");
}

bool io_slice_number(io_slice *slice, const char *token, const char *token_end, double *number)
{
    const double most = io_most(slice->values);
    *number = 1;
    if (token == token_end) return true;
    const bool decimal = io_parse_decimal(token, token_end, number) == token_end;
    if (decimal && isfinite(*number) && (*number <= most || !slice->state->options->lenient)) return true;
    if (!slice->state->options->lenient)
        return io_slice_fail(slice,
                             decimal ? "the weight is too large" : "the weight is not a number", token, token_end,
                             decimal ? io_most_remedy(slice->values) : number_remedy(slice, token, token_end));
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

/* Parses a line with NUL bytes. mcl drops them; strict reading refuses them, since they hide what follows. A mistake
 * before the NUL comes first, because the bytes behind it may not have been read. */
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

/* Parses a line unless it is too long. The decision must not depend on how much of the line has been read. */
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

void io_parse_slice(io_slice *slice, io_line_parser parser)
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
