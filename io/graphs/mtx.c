/* Matrix Market coordinate files (Boisvert, Pozo, Remington 1996) as graphs: entry (i, j) is an arc from j to i. And
 * both forms as numbers, square or not.
 *
 * Fields are real, integer or pattern (weight 1). Symmetries are general, symmetric or skew-symmetric; mirror images in
 * a skew-symmetric file have the opposite sign, so it is read only if values may be negative or all are 0. A symmetric
 * file stores each pair once. The entries are read by the parallel line reader.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/try.h"
#include "graphs/formats.h"
#include "text/words.h"

enum { BANNER_WORDS = 5 };

/* Symmetric Matrix Market files: entries beside the diagonal, and where they are. */
struct io_triangles {
    int64_t above, below;
    int64_t header_lines;
    io_gaps gaps; /* before entries that make arcs */
    int first, step; /* arcs first, first + step, ... are entries, the others their mirror images */
};

static bool is_word(const char *word, const char *end, const char *expected)
{
    for (; word < end && *expected; word++, expected++)
        if (tolower((unsigned char)*word) != *expected) return false;
    return word == end && *expected == '\0';
}

/* Files of the Network Repository have one percent sign. */
static const char *const banners[] = {"%%matrixmarket", "%matrixmarket"};

bool io_looks_like_mtx(const char *bytes, size_t count)
{
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(banners[i]);
        if (count >= length && is_word(bytes, bytes + length, banners[i])) return true;
    }
    return false;
}

/* ---- entries -------------------------------------------------------------------------------------------- */

static bool read_index(io_slice *slice, const char *word, const char *end, int64_t limit, int32_t *index)
{
    int64_t number;
    if (!io_parse_index(word, end, limit, &number) || number == 0)
        return io_slice_fail(slice, "an index that is not within the matrix", word, end,
                             "indices run from 1 to the size that the header gives");
    *index = (int32_t)(number - 1);
    return true;
}

static bool read_value(io_slice *slice, const char *word, const char *end, double *value)
{
    if (io_parse_decimal(word, end, value) != end || word == end)
        return io_slice_fail(slice, "the value is not a number", word, end, "write ROW COLUMN VALUE");
    if (!(fabs(*value) <= io_most(slice->values)))
        return io_slice_fail(slice, "the value is too large", word, end, io_most_remedy(slice->values));
    if (slice->state->integer && *value != trunc(*value))
        return io_slice_fail(slice, "a value that is not an integer in an integer matrix", word, end,
                             "say real in the first line");
    io_slice_note_vast(slice, word, end, *value);
    if (*value >= 0) return true;
    if (!slice->state->options->lenient && !slice->state->options->any_sign)
        return io_slice_fail(slice, "the value is negative", word, end, io_sign_remedy(slice->state->options));
    slice->negative++;
    slice->odd = slice->odd || !slice->state->options->any_sign;
    return true;
}

/* Notes, for a symmetric matrix, that the line makes no arc. */
static bool pass_over(io_slice *slice)
{
    if (!slice->state->triangles) return true;
    slice->status = io_gaps_add(slice->context, &slice->gaps, slice->arcs.count / slice->state->triangles->step, 1);
    return slice->status == SP_OK;
}

static bool read_entry(io_slice *slice, char *line, char *line_end)
{
    const io_format_state *state = slice->state;
    const char *at = line, *end = line_end, *word = io_next_word(&at, end);
    int32_t row = 0, col = 0;
    double value = 1.0;
    if (word == at || *word == '%') return pass_over(slice);
    if (!read_index(slice, word, at, state->rows, &row)) return false;
    word = io_next_word(&at, end);
    if (!read_index(slice, word, at, state->cols, &col)) return false;
    if (!state->pattern) {
        word = io_next_word(&at, end);
        if (!read_value(slice, word, at, &value)) return false;
        value = io_round(slice->values, value);
    }
    word = io_next_word(&at, end);
    if (word < at)
        return io_slice_fail(slice, "too many fields", word, end, "an entry is ROW COLUMN, and VALUE unless pattern");
    slice->entries++;
    if (value == 0) return pass_over(slice);
    slice->above += row < col;
    slice->below += row > col;
    if (state->skew) {
        if (row == col)
            return io_slice_fail(slice, "a diagonal entry in a skew-symmetric matrix", line, end, "it can only be 0");
        if (!slice->state->options->lenient && !slice->state->options->any_sign)
            return io_slice_fail(slice, "a skew-symmetric matrix has negative values", line, end,
                                 io_sign_remedy(slice->state->options));
        slice->negative++;
        slice->odd = slice->odd || !slice->state->options->any_sign;
        if (!io_slice_arc(slice, row, col, -value)) return false;
    }
    return io_slice_arc(slice, col, row, value);
}

/* Whole lines of entries, not longer than IO_SCANNED, with one blank or tab between fields and indices of up to eight
 * digits. */
static const char *scan_entries(io_slice *slice, const char *line)
{
    const io_format_state *state = slice->state;
    if (state->skew) return line;
    while (line < slice->end) {
        uint32_t indices[2];
        double value = 1.0;
        uint64_t blanks = io_find_blanks(line);
        int begin = 0, end = 0;
        for (int i = 0; i < 2; i++, begin = end + 1) {
            if (!blanks) return line;
            end = __builtin_ctzll(blanks);
            blanks &= blanks - 1;
            if (!io_scan_index(line + begin, end - begin, &indices[i])) return line;
            if ((i == 0 || !state->pattern) && line[end] != ' ' && line[end] != '\t') return line;
        }
        if (!state->pattern) {
            if (!blanks) return line;
            end = __builtin_ctzll(blanks);
            if (!io_scan_weight(line + begin, end - begin, slice->scan_most, &value)) return line;
            if (state->integer && value != trunc(value)) return line;
            value = io_round(slice->values, value);
            if (value == 0) return line;
        }
        if (line[end] != '\n' || indices[0] - 1 >= state->rows || indices[1] - 1 >= state->cols) return line;
        slice->lines++;
        slice->entries++;
        slice->above += indices[0] < indices[1];
        slice->below += indices[0] > indices[1];
        if (!io_slice_arc(slice, (int32_t)(indices[1] - 1), (int32_t)(indices[0] - 1), value)) return NULL;
        line += end + 1;
    }
    return line;
}

/* A number of the dense form, one a line. Its place is counted as that of a node in METIS files. */
static bool read_number(io_slice *slice, char *line, char *line_end)
{
    const char *at = line, *end = line_end, *word = io_next_word(&at, end);
    double value = 1;
    if (word == at || *word == '%') return true;
    if (!read_value(slice, word, at, &value)) return false;
    if (io_skip_blanks(at, end) < end)
        return io_slice_fail(slice, "too many fields", at, end, "the array form has one number a line");
    return io_slice_arc(slice, (int32_t)slice->node_lines++, 0, io_round(slice->values, value));
}

/* What a slice of a symmetric matrix has beside arcs. */
static sp_status join_triangles(sp_context *context, const char *name, io_slice *slice, int64_t line)
{
    io_triangles *all = slice->state->triangles;
    (void)name, (void)line;
    all->above += slice->above;
    all->below += slice->below;
    return io_gaps_join(context, &all->gaps, &slice->gaps, slice->place / all->step);
}

/* ---- symmetric files ----------------------------------------------------------------------------------- */

/* Symmetric and skew-symmetric Matrix Market files hold each pair of nodes in one direction; the other is its mirror
 * image. A file that holds both says every such pair twice, and sums would double. Files with entries on one side of
 * the diagonal cannot. In others, pairs of the side with fewer entries go into a hash table, in which those of the
 * other side are looked up.
 */

/* A set of pairs of nodes: the lower node in the upper bits, and the directions seen so far in the two bits that are
 * left. */
typedef struct pair_table {
    uint64_t *slots; /* UINT64_MAX: free */
    int64_t count;
} pair_table;

static const uint64_t NODES = (UINT64_C(1) << 62) - 1, ABOVE = UINT64_C(1) << 62;

/* Nodes are numbered below 2^31 - 1, so that no pair looks like a free slot. */
static uint64_t pair_of(const io_graph *graph, int64_t arc)
{
    const int32_t tail = graph->tails[arc], head = graph->heads[arc];
    return tail < head ? (uint64_t)tail << 31 | (uint64_t)head : (uint64_t)head << 31 | (uint64_t)tail;
}

/* The slot that holds the pair, or where it would be. */
static uint64_t *find(const pair_table *table, uint64_t pair)
{
    const uint64_t hash = (pair ^ pair >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    int64_t at = (int64_t)(hash * (uint64_t)table->count >> 32);
    while (table->slots[at] != UINT64_MAX && (table->slots[at] & NODES) != pair)
        at = at + 1 < table->count ? at + 1 : 0;
    return &table->slots[at];
}

static bool is_above(const io_graph *graph, int64_t arc) { return graph->heads[arc] < graph->tails[arc]; }

static bool is_pair(const io_graph *graph, int64_t arc) { return graph->heads[arc] != graph->tails[arc]; }

/* Enters the pairs of one side. */
static sp_status fill(sp_context *context, const io_graph *graph, const io_triangles *t, bool above, pair_table *table)
{
    table->count = (above ? t->above : t->below) / 2 * 3 + 8;
    if (table->count > UINT32_MAX) return sp_fail(context, SP_ERROR_OVERFLOW, "too many entries beside the diagonal");
    sp_status status = sp_alloc(context, table->count, sizeof *table->slots, (void **)&table->slots);
    if (status != SP_OK) return status;
    memset(table->slots, 0xff, (size_t)table->count * sizeof *table->slots);
    for (int64_t e = t->first; e < graph->arcs; e += t->step)
        if (is_pair(graph, e) && is_above(graph, e) == above) *find(table, pair_of(graph, e)) = pair_of(graph, e);
    return SP_OK;
}

/* The first arc that an earlier one is the mirror image of. */
static int64_t find_second(const io_graph *graph, const io_triangles *t, const pair_table *table)
{
    for (int64_t e = t->first; e < graph->arcs; e += t->step) {
        uint64_t *slot = is_pair(graph, e) ? find(table, pair_of(graph, e)) : NULL;
        if (!slot || *slot == UINT64_MAX) continue;
        *slot |= is_above(graph, e) ? ABOVE : ABOVE << 1;
        if (*slot >> 62 == 3) return e;
    }
    return -1;
}

static sp_status check_triangles(sp_context *context, const char *name, const io_triangles *t, const io_graph *graph)
{
    const bool above = t->above <= t->below;
    pair_table table = {0};
    int64_t both = 0;
    if (t->above == 0 || t->below == 0) return SP_OK;
    sp_status status = fill(context, graph, t, above, &table);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) reduction(+ : both) num_threads(sp_context_threads(context))
    for (int64_t e = t->first; e < graph->arcs; e += t->step)
        if (is_pair(graph, e) && is_above(graph, e) != above) both += *find(&table, pair_of(graph, e)) != UINT64_MAX;
    if (both > 0) {
        const int64_t e = find_second(graph, t, &table), entry = e / t->step;
        status = sp_fail(context, SP_ERROR_MATRIX,
                         "%s:%lld: entry %lld %lld is the mirror image of an earlier one, and in a symmetric file each "
                         "stands for both; keep one of them, or write general",
                         name, (long long)(t->header_lines + 1 + entry + io_gaps_before(&t->gaps, entry)),
                         (long long)graph->heads[e] + 1, (long long)graph->tails[e] + 1);
    }
    sp_free(context, table.slots);
    return status;
}

/* ---- header --------------------------------------------------------------------------------------------- */

typedef struct header {
    int64_t lines, entries;
    bool symmetric;
    bool square; /* it must be */
    bool array;  /* the dense form, or it may be */
} header;

static sp_status read_banner(sp_context *context, const char *name, const char *line, const char *end,
                             io_format_state *state, header *head)
{
    const char *words[BANNER_WORDS], *ends[BANNER_WORDS], *at = line;
    for (int i = 0; i < BANNER_WORDS; i++) {
        words[i] = io_next_word(&at, end);
        ends[i] = at;
    }
    const bool first = is_word(words[0], ends[0], banners[0]) || is_word(words[0], ends[0], banners[1]);
    if (!first || !is_word(words[1], ends[1], "matrix"))
        return io_fail_line(context, name, 1, "no Matrix Market banner", line, end,
                            "the first line is %%MatrixMarket matrix coordinate real general or the like");
    head->array = head->array && is_word(words[2], ends[2], "array");
    if (!head->array && !is_word(words[2], ends[2], "coordinate"))
        return io_fail_line(context, name, 1,
                            head->square ? "only the coordinate form is read as a graph" : "an unknown form",
                            words[2], ends[2], "write coordinate entries");
    state->pattern = is_word(words[3], ends[3], "pattern");
    state->integer = is_word(words[3], ends[3], "integer");
    if (!state->pattern && !state->integer && !is_word(words[3], ends[3], "real"))
        return io_fail_line(context, name, 1, "a field that is not a weight", words[3], ends[3],
                            "use real, integer or pattern");
    state->skew = is_word(words[4], ends[4], "skew-symmetric");
    head->symmetric = is_word(words[4], ends[4], "symmetric");
    if (!state->skew && !head->symmetric && !is_word(words[4], ends[4], "general"))
        return io_fail_line(context, name, 1, "an unknown symmetry", words[4], ends[4],
                            "use general, symmetric or skew-symmetric");
    if (!head->square && !is_word(words[4], ends[4], "general"))
        return io_fail_line(context, name, 1, "a symmetry that rows of numbers do not have", words[4], ends[4],
                            "write it as general");
    return SP_OK;
}

static sp_status read_sizes(sp_context *context, const char *name, const char *line, const char *end,
                            io_format_state *state, header *head)
{
    const char *at = line;
    int64_t *sizes[3] = {&state->rows, &state->cols, &head->entries};
    for (int i = 0; i < (head->array ? 2 : 3); i++) {
        const char *word = io_next_word(&at, end);
        if (!io_parse_index(word, at, i < 2 ? INT32_MAX : INT64_MAX, sizes[i]))
            return io_fail_line(context, name, head->lines, "no size line", line, end,
                                "write ROWS COLUMNS ENTRIES, rows and columns below 2^31");
    }
    if (io_next_word(&at, end) < at)
        return io_fail_line(context, name, head->lines, "too many fields in the size line", line, end,
                            "write ROWS COLUMNS ENTRIES");
    if (head->square && state->rows != state->cols)
        return io_fail_line(context, name, head->lines, "rows and columns differ", line, end,
                            "a graph needs a square matrix");
    return SP_OK;
}

static sp_status read_header(sp_context *context, io_source *source, io_format_state *state, header *head,
                             int64_t *bytes)
{
    const char *name = io_source_name(source), *line, *end, *at;
    sp_status status;
    TRY(io_source_line(source, &line, &end, bytes));
    head->lines = 1;
    TRY(read_banner(context, name, line, end, state, head));
    do {
        TRY(io_source_line(source, &line, &end, bytes));
        head->lines++;
        if (!line)
            return sp_fail(context, SP_ERROR_MATRIX, "%s:%lld: the file ends before its size line; it is truncated",
                           name, (long long)head->lines);
        at = line;
    } while (*line == '%' || io_next_word(&at, end) == end);
    status = read_sizes(context, name, line, end, state, head);
done:
    return status;
}

/* Reads what `head` asks for; arcs run from columns to rows. */
static sp_status read_matrix(sp_context *context, io_source *source, const io_read_options *options,
                             size_t reader_block, io_format_state *state, header *head, io_graph *graph)
{
    io_line_counts counts = {0};
    io_triangles triangles = {.first = 0, .step = 1};
    int64_t bytes = 0;
    sp_status status;
    state->options = options;
    TRY(read_header(context, source, state, head, &bytes));
    if (!head->array) state->scanner = scan_entries;
    graph->bytes = bytes;
    if (head->symmetric || state->skew) {
        triangles.header_lines = head->lines;
        triangles.first = state->skew;
        triangles.step = 1 + state->skew;
        state->triangles = &triangles;
        state->join = join_triangles;
    }
    TRY(io_read_lines(context, source, state, head->array ? read_number : read_entry, reader_block, head->lines,
                      &counts, graph));
    TRY(check_triangles(context, io_source_name(source), &triangles, graph));
    if (head->array) {
        head->entries = state->rows * state->cols; /* both below 2^31 */
        counts.entries = counts.node_lines;
    }
    if (counts.entries != head->entries)
        TRY(sp_fail(context, SP_ERROR_MATRIX,
                    "%s:%lld: %lld entries, but the header says %lld; the file is truncated or its header lies",
                    io_source_name(source), (long long)graph->lines, (long long)counts.entries,
                    (long long)head->entries));
    status = io_check_nodes(context, io_source_name(source), state->rows > state->cols ? state->rows : state->cols,
                            graph->bytes);
done:
    io_gaps_free(context, &triangles.gaps);
    return status;
}

sp_status io_read_mtx(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                      io_graph *graph)
{
    io_format_state state = {0};
    header head = {.square = true};
    sp_status status = read_matrix(context, source, options, reader_block, &state, &head, graph);
    graph->nodes = state.rows;
    graph->symmetric = head.symmetric;
    graph->skew = state.skew;
    return status;
}

sp_status io_read_mtx_part(sp_context *context, io_source *source, const io_read_options *options, bool number,
                           io_graph *graph)
{
    const int64_t size = io_source_size(source);
    io_format_state state = {.options = options, .scanner = scan_entries};
    header head = {.square = true};
    io_line_counts counts = {0};
    io_triangles triangles = {.step = 1};
    int64_t bytes = 0, begin = 0, before = 0;
    sp_status status;
    TRY(read_header(context, source, &state, &head, &bytes));
    triangles.first = state.skew;
    triangles.step = 1 + state.skew;
    if (head.symmetric || state.skew) {
        state.triangles = &triangles;
        state.join = join_triangles;
    }
    TRY(io_check_nodes(context, io_source_name(source), state.rows, size));
    TRY(io_source_take_part(source, bytes, options->part, options->parts, false, &begin));
    if (number) TRY(io_source_count_lines(source, begin, &before));
    if (options->part == 0) {
        before = head.lines;
        graph->bytes = bytes;
    }
    TRY(io_read_lines(context, source, &state, read_entry, 0, before, &counts, graph));
    graph->nodes = state.rows;
    graph->symmetric = head.symmetric;
    graph->skew = state.skew;
    graph->part = (io_part){.entries = counts.entries, .announced = head.entries, .above = triangles.above,
                            .below = triangles.below};
done:
    io_gaps_free(context, &triangles.gaps);
    return status;
}

sp_status io_read_mtx_numbers(sp_context *context, io_source *source, const volatile int *interrupt,
                              io_mtx_numbers *numbers)
{
    const io_read_options options = {.any_sign = true, .interrupt = interrupt};
    io_format_state state = {0};
    header head = {.array = true};
    memset(numbers, 0, sizeof *numbers);
    sp_status status = read_matrix(context, source, &options, 0, &state, &head, &numbers->graph);
    numbers->rows = state.rows;
    numbers->cols = state.cols;
    numbers->array = head.array;
    if (status != SP_OK) io_graph_free(context, &numbers->graph);
    return status;
}
