/* A matrix as a graph file: Matrix Market, label triples, DIMACS, METIS; other formats have files of their own. Rows
 * are where edges begin, as the first field of a line and the row of a Matrix Market entry are.
 */
#include <math.h>
#include <string.h>

#include "base/search.h"
#include "graphs/formats.h"
#include "graphs/metis.h"
#include "text/words.h"
#include "text/write.h"

enum { AHEAD = 16 }; /* entries between two steps of fetching */

typedef struct graph_text {
    const sp_csr *matrix;
    const io_write_options *options;
    const io_head *head;
    bool values; /* the format and the matrix have them */
} graph_text;

/* Whether the matrix has the first rows of the file, before which its head stands. */
static bool is_first(const graph_text *from) { return from->options->row == 0; }

/* ---- entries a line ------------------------------------------------------------------------------------- */

/* For an undirected graph Matrix Market has the entries below the diagonal, label triples those above it. */
static void put_mtx(const void *user, int64_t place, int64_t begin, int64_t end, io_text *text)
{
    const graph_text *from = user;
    const int64_t row = from->options->row + place;
    char begins[IO_NUMBER] = ""; /* of lines */
    size_t length = io_format_int(begins, row + 1);
    begins[length++] = ' ';
    for (int64_t e = begin; e < end; e++) {
        const int64_t col = from->matrix->col_indices[e];
        if (from->options->undirected && col > row) break;
        char *at = io_text_room(text, 4 * IO_NUMBER), *to = at;
        if (!at) return;
        memcpy(to, begins, IO_NUMBER);
        to += length;
        to += io_format_int(to, col + 1);
        if (from->values) *to++ = ' ';
        if (from->values) to += io_format_value(to, from->matrix, e);
        *to++ = '\n';
        text->used += (size_t)(to - at);
    }
}

/* A name or a number as text. */
typedef struct word {
    const char *bytes;
    size_t length;
    char digits[IO_NUMBER];
} word;

static inline void name_node(const io_write_options *o, int64_t node, word *w)
{
    if (o->names && o->names->count > 0) {
        w->bytes = io_name(o->names, node);
        w->length = io_name_length(o->names, node);
    } else {
        w->bytes = w->digits;
        w->length = io_format_int(w->digits, o->first + node);
    }
}

/* Names of columns lie in no order: where they begin, then they themselves are fetched ahead. */
static inline void fetch_names(const io_names *names, const int32_t *cols, int64_t at, int64_t end)
{
    if (at + 2 * AHEAD < end) __builtin_prefetch(names->offsets + cols[at + 2 * AHEAD]);
    if (at + AHEAD < end) __builtin_prefetch(io_name(names, cols[at + AHEAD]));
}

/* Most names have 4 to 16 bytes: two moves that overlap, without a call. */
static inline char *put_word(char *to, const word *w)
{
    const size_t n = w->length;
    if (n >= 8 && n <= 16) {
        memcpy(to, w->bytes, 8);
        memcpy(to + n - 8, w->bytes + n - 8, 8);
    } else if (n >= 4 && n < 8) {
        memcpy(to, w->bytes, 4);
        memcpy(to + n - 4, w->bytes + n - 4, 4);
    } else {
        memcpy(to, w->bytes, n);
    }
    return to + n;
}

static void put_triples(const void *user, int64_t place, int64_t begin, int64_t end, io_text *text)
{
    const graph_text *from = user;
    const io_write_options *o = from->options;
    const int64_t row = o->row + place;
    const int32_t *cols = from->matrix->col_indices;
    const bool once = o->undirected && o->format == IO_ABC, named = o->names && o->names->count > 0;
    word first, second;
    name_node(o, row, &first);
    for (int64_t e = begin; e < end; e++) {
        if (named) fetch_names(o->names, cols, e, from->matrix->nnz);
        if (once && cols[e] < row) continue;
        name_node(o, cols[e], &second);
        char *at = io_text_room(text, first.length + second.length + 2 * IO_NUMBER), *to = at;
        if (!at) return;
        to = put_word(to, &first);
        *to++ = '\t';
        to = put_word(to, &second);
        *to++ = '\t';
        to += io_format_value(to, from->matrix, e);
        *to++ = '\n';
        text->used += (size_t)(to - at);
    }
}

/* A field of a table; quoted where it would be read as something else. */
static void put_field(io_text *text, const word *w)
{
    const char *end = w->bytes + w->length;
    if (!io_field_is_quoted(w->bytes, w->length, ',')) {
        io_text_bytes(text, w->bytes, w->length);
        return;
    }
    io_text_bytes(text, "\"", 1);
    for (const char *at = w->bytes; at < end; at++) {
        if (*at == '"') io_text_bytes(text, "\"", 1);
        io_text_bytes(text, at, 1);
    }
    io_text_bytes(text, "\"", 1);
}

static void put_table_rows(const void *user, int64_t place, int64_t begin, int64_t end, io_text *text)
{
    const graph_text *from = user;
    const io_write_options *o = from->options;
    const int64_t row = o->row + place;
    word first, second;
    name_node(o, row, &first);
    for (int64_t e = begin; e < end; e++) {
        const int64_t col = from->matrix->col_indices[e];
        if (o->undirected && col < row) continue;
        name_node(o, col, &second);
        put_field(text, &first);
        io_text_bytes(text, ",", 1);
        put_field(text, &second);
        io_text_bytes(text, ",", 1);
        char *at = io_text_room(text, 2 * IO_NUMBER);
        if (!at) return;
        const size_t length = io_format_value(at, from->matrix, e);
        at[length] = '\n';
        text->used += length + 1;
    }
}

static sp_status write_table(sp_context *context, io_output *output, graph_text *from)
{
    if (is_first(from)) io_output_string(output, "source,target,weight\n");
    return io_put_rows(context, output, from->matrix, false, put_table_rows, from);
}

static sp_status write_mtx(sp_context *context, io_output *output, graph_text *from)
{
    const io_head *head = from->head;
    const bool once = from->options->undirected;
    if (!is_first(from)) return io_put_rows(context, output, from->matrix, false, put_mtx, from);
    io_output_format(output, "%%%%MatrixMarket matrix coordinate %s %s\n",
                     !from->values        ? "pattern"
                     : head->unwhole == 0 ? "integer"
                                          : "real",
                     once ? "symmetric" : "general");
    if (from->options->comment) io_output_format(output, "%% %s\n", from->options->comment);
    io_output_format(output, "%lld %lld %lld\n", (long long)head->rows, (long long)head->rows,
                     (long long)(once ? head->lower : head->entries));
    return io_put_rows(context, output, from->matrix, false, put_mtx, from);
}

/* DIMACS: every entry an arc. */
static void put_arcs(const void *user, int64_t place, int64_t begin, int64_t end, io_text *text)
{
    const graph_text *from = user;
    char begins[IO_NUMBER + 2] = "a "; /* of lines */
    size_t length = 2 + io_format_int(begins + 2, from->options->row + place + 1);
    begins[length++] = ' ';
    for (int64_t e = begin; e < end; e++) {
        char *at = io_text_room(text, 4 * IO_NUMBER), *to = at;
        if (!at) return;
        memcpy(to, begins, length);
        to += length;
        to += io_format_int(to, from->matrix->col_indices[e] + 1);
        *to++ = ' ';
        to += io_format_value(to, from->matrix, e);
        *to++ = '\n';
        text->used += (size_t)(to - at);
    }
}

static sp_status write_dimacs(sp_context *context, io_output *output, graph_text *from)
{
    if (is_first(from) && from->options->comment) io_output_format(output, "c %s\n", from->options->comment);
    if (is_first(from))
        io_output_format(output, "p sp %lld %lld\n", (long long)from->head->rows, (long long)from->head->entries);
    return io_put_rows(context, output, from->matrix, false, put_arcs, from);
}

/* ---- METIS ---------------------------------------------------------------------------------------------- */

/* Size and weights of a node; whether there are any. */
static bool put_node_numbers(const io_write_options *o, int64_t node, io_text *text)
{
    if (o->node_sizes) io_text_int(text, o->node_sizes[node]);
    for (int k = 0; o->node_weights && k < o->constraints; k++) {
        if (k > 0 || o->node_sizes) io_text_bytes(text, " ", 1);
        io_text_int(text, o->node_weights[node * o->constraints + k]);
    }
    return o->node_sizes || o->node_weights;
}

static void put_node(const void *user, int64_t row, int64_t begin, int64_t end, io_text *text)
{
    const graph_text *from = user;
    const sp_csr *m = from->matrix;
    bool first = begin == m->row_offsets[row]; /* of the line's numbers */
    if (first) first = !put_node_numbers(from->options, row, text);
    for (int64_t e = begin; e < end; e++, first = false) {
        if (!first) io_text_bytes(text, " ", 1);
        io_text_int(text, m->col_indices[e] + 1);
        if (!from->values) continue;
        char *at = io_text_room(text, 2 * IO_NUMBER);
        if (!at) return;
        *at = ' ';
        text->used += 1 + io_format_value(at + 1, m, e);
    }
    if (end == m->row_offsets[row + 1]) io_text_bytes(text, "\n", 1);
}

/* The entry of column `row` in row `col`, or -1. */
static int64_t find_mirror(const sp_csr *m, int64_t row, int64_t col)
{
    const int64_t end = m->row_offsets[col + 1];
    const int64_t found = lower_bound_i32(m->col_indices, m->row_offsets[col], end, (int32_t)row);
    return found < end && m->col_indices[found] == row ? found : -1;
}

/* The reason why the matrix cannot be a METIS graph, else NULL. It is that of its first such entry, at (*row, *col). */
static const char *metis_obstacle(const sp_csr *m, int64_t *row, int64_t *col)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t e = m->row_offsets[i]; e < m->row_offsets[i + 1]; e++) {
            const int64_t j = m->col_indices[e], mirror = find_mirror(m, i, j);
            const double value = entry_value(m, e);
            *row = i;
            *col = j;
            if (i == j) return "is a loop, and METIS graphs have none: use --loops drop";
            if (!(value >= 1 && value <= IO_MOST_WHOLE) || value != trunc(value))
                return "has a weight that is not a whole number above 0, and METIS takes no other: use another format";
            if (mirror < 0 || entry_value(m, mirror) != value)
                return "has no opposite of the same weight, and METIS graphs are undirected: use --undirected";
        }
    return NULL;
}

static bool are_weights(const int64_t *numbers, int64_t count)
{
    for (int64_t i = 0; numbers && i < count; i++)
        if (numbers[i] < 0 || numbers[i] > IO_MOST_NODE_WEIGHT) return false;
    return true;
}

static sp_status write_metis(sp_context *context, io_output *output, graph_text *from)
{
    const sp_csr *m = from->matrix;
    const io_write_options *o = from->options;
    int64_t row, col;
    const char *obstacle = metis_obstacle(m, &row, &col);
    if (o->node_weights && (o->constraints < 1 || o->constraints > IO_MOST_CONSTRAINTS))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%d weights a node; METIS graphs have 1 to %d", o->constraints,
                       IO_MOST_CONSTRAINTS);
    if (!are_weights(o->node_weights, m->rows * o->constraints) || !are_weights(o->node_sizes, m->rows))
        return sp_fail(context, SP_ERROR_ARGUMENT, "METIS takes sizes and weights of nodes from 0 to 2^53 only");
    if (obstacle)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the edge from %lld to %lld %s", (long long)(row + 1),
                       (long long)(col + 1), obstacle);
    bool ones = true;
    for (int64_t e = 0; ones && e < m->nnz; e++) ones = entry_value(m, e) == 1;
    from->values = !ones;
    if (o->comment) io_output_format(output, "%% %s\n", o->comment);
    io_output_format(output, "%lld %lld", (long long)m->rows, (long long)(m->nnz / 2));
    if (o->node_sizes || o->node_weights || !ones)
        io_output_format(output, " %d%d%d", o->node_sizes != NULL, o->node_weights != NULL, !ones);
    if (o->node_weights && o->constraints > 1) io_output_format(output, " %d", o->constraints);
    io_output_string(output, "\n");
    return io_put_rows(context, output, m, false, put_node, from);
}

/* ---- all ------------------------------------------------------------------------------------------------ */

bool io_has_blocks(io_format format)
{
    return format == IO_MTX || format == IO_ABC || format == IO_TSV || format == IO_CSV || format == IO_GRAPHML ||
           format == IO_DIMACS || format == IO_NATIVE;
}

void io_add_head(sp_context *context, const sp_csr *rows, int64_t row, io_head *head)
{
    int64_t lower = 0, unwhole = 0;
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : lower, unwhole) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < rows->rows; i++)
        for (int64_t e = rows->row_offsets[i]; e < rows->row_offsets[i + 1]; e++) {
            const double value = entry_value(rows, e);
            lower += rows->col_indices[e] <= row + i;
            unwhole += !(fabs(value) <= IO_MOST_WHOLE && value == trunc(value));
        }
    head->rows += rows->rows;
    head->entries += rows->nnz;
    head->lower += lower;
    head->unwhole += unwhole;
}

/* Whether a line begins with the name of this row. */
static bool begins_line(const graph_text *from, int64_t row)
{
    const sp_csr *m = from->matrix;
    const bool once = from->options->undirected && from->options->format == IO_ABC;
    const int64_t begin = m->row_offsets[row], end = m->row_offsets[row + 1];
    return begin < end && (!once || m->col_indices[end - 1] >= from->options->row + row);
}

static sp_status refuse_name(sp_context *context, const io_names *names, int64_t i, const char *why)
{
    const int length = (int)(io_name_length(names, i) < 40 ? io_name_length(names, i) : 40);
    return sp_fail(context, SP_ERROR_ARGUMENT, "a node is called \"%.*s\", and %s", length, io_name(names, i), why);
}

/* Blanks in front of the second label of a line are none of it, to mcl and to our reader. A line that begins with # is
 * a comment. */
static sp_status write_triples(sp_context *context, io_output *output, graph_text *from)
{
    const io_names *names = from->options->names;
    const int64_t first = from->options->row;
    if (!names || names->count == 0) return io_put_rows(context, output, from->matrix, false, put_triples, from);
    for (int64_t i = 0; is_first(from) && i < names->count; i++)
        if (io_name_length(names, i) == 0 || io_is_blank(*io_name(names, i)))
            return refuse_name(context, names, i, "lists of labels have no names that begin with a blank: use csv or "
                               "graphml");
    for (int64_t i = 0; i < from->matrix->rows; i++)
        if (*io_name(names, first + i) == '#' && begins_line(from, i))
            return refuse_name(context, names, first + i, "in lists of labels a line that begins with # is a comment: "
                               "rename it, or use csv");
    return io_put_rows(context, output, from->matrix, false, put_triples, from);
}

sp_status io_put_graph(sp_context *context, io_output *output, const sp_csr *matrix, const io_write_options *options)
{
    io_head head = {0};
    graph_text from = {matrix, options, options->whole ? options->whole : &head, matrix->values != NULL};
    const int64_t rows = options->whole ? options->whole->rows : matrix->rows;
    if (rows != matrix->cols || matrix->space != SP_HOST)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a graph is written from a square host matrix");
    if (options->whole && !io_has_blocks(options->format))
        return sp_fail(context, SP_ERROR_ARGUMENT, "this format is not written by blocks of rows");
    if (!options->whole && (options->format == IO_MTX || options->format == IO_DIMACS))
        io_add_head(context, matrix, 0, &head);
    switch (options->format) {
    case IO_MTX: return write_mtx(context, output, &from);
    case IO_ABC:
    case IO_TSV: return write_triples(context, output, &from);
    case IO_CSV: return write_table(context, output, &from);
    case IO_DIMACS: return write_dimacs(context, output, &from);
    case IO_METIS: return write_metis(context, output, &from);
    case IO_NATIVE:
        return io_put_native_matrix(context, output, matrix, NULL, NULL, 0, options->row, options->comment);
    case IO_GRAPHML: return io_put_graphml(context, output, matrix, options);
    case IO_NPZ: return io_put_npz_matrix(context, output, matrix);
    case IO_CSR: io_put_csr(output, matrix, options->undirected, options->names); return SP_OK;
    default: return sp_fail(context, SP_ERROR_ARGUMENT, "graphs are not written in this format");
    }
}

sp_status io_write_graph(sp_context *context, const char *path, const sp_csr *matrix, const io_write_options *options)
{
    io_output *output;
    sp_status status = io_output_open(context, path, &output);
    if (status != SP_OK) return status;
    status = io_put_graph(context, output, matrix, options);
    if (status == SP_OK) return io_output_commit(output);
    io_output_discard(output);
    return status;
}
