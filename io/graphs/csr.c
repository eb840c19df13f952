/* Our binary matrix: compressed rows as they lie in memory, little-endian, with checksums (CRC-32 as in gzip).
 *
 *   8 bytes   89 'S' 'P' 'C' 'S' 'R' 0d 0a: like PNG's, damaged by whatever damages text
 *   4         version, 1
 *   4         flags: bits 0-1 values (0 none: every entry is one; 1 f32; 2 f64), bit 2 undirected, bit 3 names
 *   8 each    rows, columns, entries, bytes of names
 *   4, 4      CRC of the 48 bytes so far; 0
 *   the arrays: row offsets (8 bytes each, rows + 1), column indices (4), values (4 or 8), lengths of names (4),
 *   names, one after another
 *   4, 4      CRC of the arrays; 0
 *
 * Arrays are read in portions, so that memory follows what the file holds and not what its header claims.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/try.h"
#include "bytes/file.h"
#include "bytes/memory.h"
#include "graphs/formats.h"

const unsigned char io_csr_cookie[IO_CSR_COOKIE] = {0x89, 'S', 'P', 'C', 'S', 'R', '\r', '\n'};

enum { VERSION = 1, VALUE_BITS = 3, UNDIRECTED = 4, NAMED = 8, ALL_FLAGS = 15, PORTION = 1 << 20 };

typedef struct csr_head {
    unsigned char cookie[IO_CSR_COOKIE];
    uint32_t version, flags;
    int64_t rows, cols, nnz, name_bytes;
    uint32_t crc, zero;
} csr_head;

static size_t value_size(uint32_t flags) { return (flags & VALUE_BITS) == 0 ? 0 : (flags & VALUE_BITS) == 1 ? 4 : 8; }

static uint32_t head_crc(const csr_head *head)
{
    return (uint32_t)crc32_z(0, (const Bytef *)head, offsetof(csr_head, crc));
}

/* ---- reading -------------------------------------------------------------------------------------------- */

typedef struct csr_reader {
    sp_context *context;
    io_source *source;
    const char *name;
    int64_t bytes;
    uint32_t crc;
} csr_reader;

static sp_status corrupt(const csr_reader *from, const char *what)
{
    return sp_fail(from->context, SP_ERROR_MATRIX, "%s: byte %lld: %s; write the file again", from->name,
                   (long long)from->bytes, what);
}

static sp_status take(csr_reader *from, void *into, size_t count)
{
    size_t got;
    sp_status status = io_source_read(from->source, into, count, &got);
    from->bytes += (int64_t)got;
    if (status != SP_OK) return status;
    if (got < count) return corrupt(from, "the binary matrix ends too soon: it is truncated");
    from->crc = (uint32_t)crc32_z(from->crc, into, count);
    return SP_OK;
}

/* An array of `count` elements, in portions. */
static sp_status take_array(csr_reader *from, int64_t count, size_t size, void **array)
{
    int64_t capacity = 0;
    sp_status status = io_reserve(from->context, 0, 1, size, &capacity, array);
    for (int64_t done = 0; status == SP_OK && done < count;) {
        const int64_t now = count - done < PORTION ? count - done : PORTION;
        status = io_reserve(from->context, done, done + now, size, &capacity, array);
        if (status == SP_OK) status = take(from, (char *)*array + (size_t)done * size, (size_t)now * size);
        done += now;
    }
    return status;
}

static sp_status take_head(csr_reader *from, csr_head *head)
{
    sp_status status = take(from, head, sizeof *head);
    if (status != SP_OK) return status;
    if (memcmp(head->cookie, io_csr_cookie, IO_CSR_COOKIE) != 0)
        return corrupt(from, "this is not one of our binary matrices");
    if (head->version != VERSION) return corrupt(from, "a version that this program does not know");
    if (head->crc != head_crc(head)) return corrupt(from, "the header's checksum is wrong: the file is damaged");
    const bool sizes = head->rows >= 0 && head->rows <= INT32_MAX && head->cols >= 0 && head->cols <= INT32_MAX &&
                       head->nnz >= 0 && head->name_bytes >= 0;
    if (!sizes || (head->flags & VALUE_BITS) == VALUE_BITS || head->flags > ALL_FLAGS)
        return corrupt(from, "sizes or flags that cannot be");
    if (head->rows != head->cols) return corrupt(from, "rows and columns differ: a graph needs a square matrix");
    return SP_OK;
}

/* Cuts the bytes of all names into names. Returns what is wrong, or NULL; *status is that of memory. */
static const char *cut_names(sp_context *context, const csr_head *head, const uint32_t *lengths, const char *bytes,
                             io_name_list *list, sp_status *status)
{
    int64_t at = 0;
    *status = SP_OK;
    for (int64_t i = 0; i < head->rows && *status == SP_OK; at += lengths[i++]) {
        if (lengths[i] > head->name_bytes - at) return "names that are longer than all of them";
        if (lengths[i] == 0 || memchr(bytes + at, '\n', lengths[i])) return "a name that is empty or holds a line feed";
        *status = io_names_append(context, list, bytes + at, lengths[i]);
    }
    return *status == SP_OK && at != head->name_bytes ? "names that are shorter than all of them" : NULL;
}

static sp_status take_names(csr_reader *from, const csr_head *head, io_name_list *list)
{
    uint32_t *lengths = NULL;
    char *bytes = NULL;
    sp_status status;
    TRY(take_array(from, head->rows, sizeof *lengths, (void **)&lengths));
    TRY(take_array(from, head->name_bytes, 1, (void **)&bytes));
    const char *wrong = cut_names(from->context, head, lengths, bytes, list, &status);
    if (wrong) status = corrupt(from, wrong);
done:
    FREE_ALL(from->context, lengths, bytes);
    return status;
}

static sp_status take_matrix(csr_reader *from, const csr_head *head, sp_csr *matrix, io_name_list *names)
{
    uint32_t ends[2], crc;
    sp_status status;
    matrix->rows = head->rows;
    matrix->cols = head->cols;
    matrix->nnz = head->nnz;
    matrix->value_type = (head->flags & VALUE_BITS) == 2 ? SP_F64 : SP_F32;
    from->crc = 0;
    TRY(take_array(from, head->rows + 1, sizeof *matrix->row_offsets, (void **)&matrix->row_offsets));
    TRY(take_array(from, head->nnz, sizeof *matrix->col_indices, (void **)&matrix->col_indices));
    if (value_size(head->flags)) TRY(take_array(from, head->nnz, value_size(head->flags), &matrix->values));
    if (head->flags & NAMED) TRY(take_names(from, head, names));
    crc = from->crc;
    TRY(take(from, ends, sizeof ends));
    if (ends[0] != crc) TRY(corrupt(from, "the checksum is wrong: the file is damaged"));
    if (sp_csr_check(from->context, matrix) != SP_OK) {
        char why[IO_MESSAGE];
        snprintf(why, sizeof why, "%s", sp_last_error(from->context));
        status = sp_fail(from->context, SP_ERROR_MATRIX, "%s: %s; write the file again", from->name, why);
    }
done:
    return status;
}

/* Refuses or counts what no weight may be; sees whether any is 0, or is rounded to 0. */
static sp_status check_weights(const csr_reader *from, const io_read_options *options, io_graph *graph, bool *zeros)
{
    const sp_csr *m = &graph->matrix;
    *zeros = false;
    for (int64_t e = 0; m->values && e < m->nnz; e++) {
        const double value = load_value(m->values, m->value_type, e);
        if (!options->matrix && fabs(value) > io_most(options->values)) return corrupt(from, "a value above 3.4e38");
        graph->negative += value < 0;
        *zeros |= io_round(options->values, value) == 0;
    }
    if (graph->negative > 0 && !options->any_sign && !options->lenient)
        return corrupt(from, "a negative value: weights are similarities, 0 or above");
    if (!options->any_sign) graph->odd_lines = graph->negative;
    return SP_OK;
}

/* Zeros make no arcs. */
static void drop_zeros(sp_value_type type, sp_csr *m)
{
    int64_t kept = 0;
    for (int64_t i = 0, e = 0; i < m->rows; i++) {
        for (const int64_t end = m->row_offsets[i + 1]; e < end; e++) {
            const double value = load_value(m->values, m->value_type, e);
            if (io_round(type, value) == 0) continue;
            m->col_indices[kept] = m->col_indices[e];
            io_store_value(m->values, m->value_type, kept++, value);
        }
        m->row_offsets[i + 1] = kept;
    }
    m->nnz = m->row_offsets[m->rows];
}

/* The matrix as arcs, its first row being row `first` of the graph. */
static sp_status make_arcs(sp_context *context, sp_value_type type, int64_t first, io_graph *graph)
{
    sp_csr *m = &graph->matrix;
    sp_status status;
    TRY(sp_alloc(context, m->nnz, sizeof *graph->tails, (void **)&graph->tails));
    if (m->values) TRY(sp_alloc(context, m->nnz, io_value_size(type), &graph->weights));
    graph->values = type;
    graph->heads = m->col_indices;
    m->col_indices = NULL;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t e = m->row_offsets[i]; e < m->row_offsets[i + 1]; e++) {
            graph->tails[e] = (int32_t)(first + i);
            if (m->values) io_store_value(graph->weights, type, e, load_value(m->values, m->value_type, e));
        }
    graph->arcs = m->nnz;
    sp_csr_free(context, m);
done:
    return status;
}

sp_status io_read_csr(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph)
{
    csr_reader from = {.context = context, .source = source, .name = io_source_name(source)};
    csr_head head;
    io_name_list names = {0};
    char more;
    size_t got;
    bool zeros;
    sp_status status;
    TRY(take_head(&from, &head));
    TRY(take_matrix(&from, &head, &graph->matrix, &names));
    TRY(io_source_read(source, &more, 1, &got));
    if (got > 0) TRY(corrupt(&from, "something follows the matrix"));
    graph->nodes = head.rows;
    graph->names = names.names;
    memset(&names, 0, sizeof names);
    graph->symmetric = false;
    graph->undirected = head.flags & UNDIRECTED;
    graph->bytes = from.bytes;
    TRY(check_weights(&from, options, graph, &zeros));
    if (zeros) drop_zeros(options->values, &graph->matrix);
    if (!options->matrix) TRY(make_arcs(context, options->values, 0, graph));
done:
    io_names_free(context, &names.names);
    return status;
}

/* ---- a part of the rows --------------------------------------------------------------------------------- */

/* A file of which this process takes some rows; `names` and `end` are where the arrays before them end. */
typedef struct csr_file {
    io_file file;
    csr_head head;
    int64_t columns, values, names, end;
    uint32_t crc; /* of the bytes taken */
} csr_file;

/* Where the arrays lie. False if they do not fill the file. */
static bool find_arrays(csr_file *from)
{
    const csr_head *h = &from->head;
    const int64_t offsets = sizeof *h, size = from->file.size;
    if (h->nnz > size / 4 || h->name_bytes > size) return false;
    from->columns = offsets + (h->rows + 1) * 8;
    from->values = from->columns + h->nnz * 4;
    from->names = from->values + h->nnz * (int64_t)value_size(h->flags);
    from->end = from->names + (h->flags & NAMED ? h->rows * 4 + h->name_bytes : 0);
    return from->end + 8 == size;
}

/* Takes bytes that count in the checksum. That of all arrays is the exclusive or of those of pieces, each continued
 * over as many zeros as bytes follow. */
static sp_status take_piece(csr_file *from, int64_t place, void *to, int64_t count)
{
    uint32_t own = 0;
    const sp_status status = io_file_read(&from->file, place, to, count, &own);
    from->crc ^= (uint32_t)crc32_combine(own, 0, (z_off_t)(from->end - place - count));
    return status;
}

static sp_status offset_of(const csr_file *from, int64_t row, int64_t *offset)
{
    return io_file_read(&from->file, (int64_t)sizeof from->head + row * 8, offset, sizeof *offset, NULL);
}

/* The first row that begins at `entry` or behind; 0 for the first part. */
static sp_status find_row(const csr_file *from, int64_t entry, int64_t *row)
{
    int64_t low = 0, high = from->head.rows, offset;
    while (low < high && entry > 0) {
        const int64_t middle = low + (high - low) / 2;
        const sp_status status = offset_of(from, middle, &offset);
        if (status != SP_OK) return status;
        if (offset < entry) low = middle + 1;
        else high = middle;
    }
    *row = low;
    return SP_OK;
}

/* The rows `first` to `end` - 1; *sound is false if they cannot be right. With `last`, the end of all rows is taken
 * too. */
static sp_status take_rows(csr_file *from, int64_t first, int64_t end, bool last, sp_csr *m, bool *sound)
{
    sp_context *context = from->file.context;
    const int64_t size = (int64_t)value_size(from->head.flags);
    sp_status status;
    *m = (sp_csr){.rows = end - first, .cols = from->head.cols, .value_type = size == 8 ? SP_F64 : SP_F32};
    TRY(sp_alloc(context, m->rows + 1, sizeof *m->row_offsets, (void **)&m->row_offsets));
    TRY(take_piece(from, (int64_t)sizeof from->head + first * 8, m->row_offsets, (m->rows + last) * 8));
    if (!last) TRY(offset_of(from, end, &m->row_offsets[m->rows]));
    const int64_t begin = m->row_offsets[0], nnz = m->row_offsets[m->rows] - begin;
    *sound = begin >= 0 && nnz >= 0 && m->row_offsets[m->rows] <= from->head.nnz;
    if (!*sound) return SP_OK;
    for (int64_t i = 0; i <= m->rows; i++) m->row_offsets[i] -= begin;
    m->nnz = nnz;
    TRY(sp_alloc(context, nnz, sizeof *m->col_indices, (void **)&m->col_indices));
    TRY(take_piece(from, from->columns + begin * 4, m->col_indices, nnz * 4));
    if (size > 0) TRY(sp_alloc(context, nnz, (size_t)size, &m->values));
    if (size > 0) TRY(take_piece(from, from->values + begin * size, m->values, nnz * size));
    status = sp_csr_check(context, m);
    *sound = status == SP_OK;
    if (status == SP_ERROR_MATRIX || status == SP_ERROR_ARGUMENT) status = SP_OK;
done:
    return status;
}

static sp_status take_all_names(csr_file *from, io_names *names, bool *sound)
{
    const csr_head *head = &from->head;
    sp_context *context = from->file.context;
    uint32_t *lengths = NULL;
    char *bytes = NULL;
    io_name_list list = {0};
    sp_status status;
    TRY(sp_alloc(context, head->rows, sizeof *lengths, (void **)&lengths));
    TRY(sp_alloc(context, head->name_bytes, 1, (void **)&bytes));
    TRY(take_piece(from, from->names, lengths, head->rows * 4));
    TRY(take_piece(from, from->names + head->rows * 4, bytes, head->name_bytes));
    if (cut_names(context, head, lengths, bytes, &list, &status)) *sound = false;
    *names = list.names;
    list.names = (io_names){0};
done:
    io_names_free(context, &list.names);
    FREE_ALL(context, lengths, bytes);
    return status;
}

/* The part's rows as arcs; with the first also the names. */
static sp_status take_part(csr_file *from, const io_read_options *options, io_graph *graph, bool *sound)
{
    const csr_reader reader = {.context = from->file.context, .name = from->file.name, .bytes = from->file.size};
    const double share = (double)from->head.nnz / options->parts;
    const bool last = options->part == options->parts - 1;
    int64_t first, end = from->head.rows;
    bool zeros;
    sp_status status;
    TRY(find_row(from, (int64_t)(share * options->part), &first));
    if (!last) TRY(find_row(from, (int64_t)(share * (options->part + 1)), &end));
    *sound = first <= end;
    if (*sound) TRY(take_rows(from, first, end, last, &graph->matrix, sound));
    if (*sound && options->part == 0 && from->head.flags & NAMED) TRY(take_all_names(from, &graph->names, sound));
    if (!*sound) goto done;
    graph->part.entries = graph->matrix.nnz;
    TRY(check_weights(&reader, options, graph, &zeros));
    if (zeros) drop_zeros(options->values, &graph->matrix);
    TRY(make_arcs(from->file.context, options->values, first, graph));
done:
    return status;
}

sp_status io_read_csr_part(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph)
{
    csr_reader head = {.context = context, .source = source, .name = io_source_name(source)};
    csr_file from = {.file = {.descriptor = -1}};
    io_read_options arcs = *options;
    uint32_t written;
    bool sound;
    sp_status status;
    arcs.matrix = false;
    TRY(io_file_of_source(context, source, options->interrupt, &from.file));
    TRY(take_head(&head, &from.head));
    graph->nodes = from.head.rows;
    graph->symmetric = false;
    graph->undirected = from.head.flags & UNDIRECTED;
    graph->bytes = options->part == 0 ? from.file.size : 0;
    graph->part.announced = from.head.nnz;
    sound = find_arrays(&from);
    if (sound) TRY(io_file_read(&from.file, from.end, &written, sizeof written, NULL));
    if (sound) graph->part.written = written;
    if (sound) TRY(take_part(&from, &arcs, graph, &sound));
    graph->part.checksum = from.crc;
    if (!sound) graph->part.entries = -1 - from.head.nnz; /* the parts do not add up to the whole */
done:
    io_file_close(&from.file);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------------------- */

typedef struct csr_writer {
    io_output *output;
    uint32_t crc;
} csr_writer;

static void put(csr_writer *to, const void *bytes, size_t count)
{
    if (count == 0) return;
    to->crc = (uint32_t)crc32_z(to->crc, bytes, count);
    io_output_bytes(to->output, bytes, count);
}

static void put_names(csr_writer *to, const io_names *names, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t length = (uint32_t)io_name_length(names, i);
        put(to, &length, sizeof length);
    }
    if (count > 0) put(to, io_name(names, 0), (size_t)(io_name_begin(names, count) - io_name_begin(names, 0)));
}

void io_put_csr(io_output *output, const sp_csr *matrix, bool undirected, const io_names *names)
{
    csr_head head = {.version = VERSION, .rows = matrix->rows, .cols = matrix->cols, .nnz = matrix->nnz};
    csr_writer to = {.output = output};
    const bool named = names && names->count > 0;
    memcpy(head.cookie, io_csr_cookie, IO_CSR_COOKIE);
    head.flags = (!matrix->values ? 0u : matrix->value_type == SP_F32 ? 1u : 2u) | (undirected ? UNDIRECTED : 0u) |
                 (named ? NAMED : 0u);
    if (named && matrix->rows > 0) head.name_bytes = io_name_begin(names, matrix->rows) - io_name_begin(names, 0);
    head.crc = head_crc(&head);
    io_output_bytes(output, &head, sizeof head);
    put(&to, matrix->row_offsets, (size_t)(matrix->rows + 1) * sizeof *matrix->row_offsets);
    put(&to, matrix->col_indices, (size_t)matrix->nnz * sizeof *matrix->col_indices);
    if (matrix->values) put(&to, matrix->values, (size_t)matrix->nnz * value_size(head.flags));
    if (named) put_names(&to, names, matrix->rows);
    const uint32_t ends[2] = {to.crc, 0};
    io_output_bytes(output, ends, sizeof ends);
}
