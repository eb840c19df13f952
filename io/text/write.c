/* Text that is being written, and matrices as text: threads format pieces of a matrix into buffers of their own, which
 * are written in order.
 *
 * A piece is PIECE_ENTRIES entries, wherever rows end, so that one long row is shared too. While the pieces of one
 * round are formatted, those of the round before are written. Memory: 2 · PIECES_PER_THREAD pieces a thread, some 30
 * MB for 16 threads and short names.
 */
#include "base/search.h"
#include "base/try.h"
#include "bytes/memory.h"
#include "text/words.h"
#include "text/write.h"

enum { PIECE_ENTRIES = 1 << 14, PIECES_PER_THREAD = 4, TEXT_BYTES = 1 << 18 };

/* ---- text ----------------------------------------------------------------------------------------------- */

char *io_text_make_room(io_text *text, size_t bytes)
{
    if (text->status != SP_OK) return NULL;
    if (text->output) {
        io_output_bytes(text->output, text->bytes, text->used);
        text->used = 0;
        return bytes <= text->capacity ? text->bytes : NULL;
    }
    size_t capacity = text->capacity ? 2 * text->capacity : TEXT_BYTES;
    if (capacity < text->used + bytes) capacity = text->used + bytes;
    text->status = io_grow(text->context, (int64_t)text->used, (int64_t)capacity, 1, (void **)&text->bytes);
    if (text->status != SP_OK) return NULL;
    text->capacity = capacity;
    return text->bytes + text->used;
}

void io_text_long(io_text *text, const char *bytes, size_t count)
{
    if (text->output) io_output_bytes(text->output, bytes, count); /* the buffer is empty now */
}

void io_text_int(io_text *text, int64_t value)
{
    char *to = io_text_room(text, IO_NUMBER);
    if (to) text->used += io_format_int(to, value);
}

bool io_field_is_quoted(const char *field, size_t length, char separator)
{
    if (length == 0 || memchr("#%", *field, 2) || io_is_blank(*field) || io_is_blank(field[length - 1])) return true;
    for (size_t i = 0; i < length; i++)
        if (strchr(separator == '\t' ? "\"\t\r" : ",;\"\t\r", field[i])) return true;
    return false;
}

void io_put_field(io_output *output, const char *field, size_t length, char separator)
{
    const bool quoted = io_field_is_quoted(field, length, separator);
    if (quoted) io_output_bytes(output, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        if (quoted && field[i] == '"') io_output_bytes(output, "\"", 1);
        io_output_bytes(output, field + i, 1);
    }
    if (quoted) io_output_bytes(output, "\"", 1);
}

size_t io_format_value(char *to, const sp_csr *matrix, int64_t entry)
{
    if (!matrix->values) return io_format_int(to, 1);
    return matrix->value_type == SP_F32 ? io_format_f32(to, ((const float *)matrix->values)[entry])
                                        : io_format_f64(to, ((const double *)matrix->values)[entry]);
}

/* ---- matrices ------------------------------------------------------------------------------------------- */

/* Formats entries first..last and the empty rows among them; `last` is INT64_MAX for all the rest. */
static void format_piece(const sp_csr *matrix, int64_t first, int64_t last, bool whole_rows,
                         io_row_formatter formatter, const void *user, io_text *text)
{
    const int64_t *offsets = matrix->row_offsets;
    int64_t row = lower_bound_i64(offsets, 0, matrix->rows, first);
    if (!whole_rows && row > 0 && offsets[row] > first) row--; /* one that goes on here */
    for (; row < matrix->rows && offsets[row] < last && text->status == SP_OK; row++) {
        const int64_t begin = whole_rows || offsets[row] > first ? offsets[row] : first;
        const int64_t end = whole_rows || offsets[row + 1] < last ? offsets[row + 1] : last;
        formatter(user, row, begin, end, text);
    }
}

/* Formats one round of pieces, from `first` on, while the round before is written. */
static void format_round(const sp_csr *matrix, int64_t first, int count, bool whole_rows, io_row_formatter formatter,
                         const void *user, io_text *texts, const io_text *before, int written, io_output *output,
                         int threads)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1)
    for (int i = -1; i < count; i++) {
        if (i < 0) {
            for (int k = 0; k < written; k++) io_output_bytes(output, before[k].bytes, before[k].used);
            continue;
        }
        const int64_t begin = first + (int64_t)i * PIECE_ENTRIES, left = matrix->nnz - begin;
        texts[i].used = 0;
        format_piece(matrix, begin, left < PIECE_ENTRIES ? INT64_MAX : begin + PIECE_ENTRIES, whole_rows, formatter,
                     user, &texts[i]);
    }
}

sp_status io_put_rows(sp_context *context, io_output *output, const sp_csr *matrix, bool whole_rows,
                      io_row_formatter formatter, const void *user)
{
    const int64_t pieces = matrix->nnz / PIECE_ENTRIES + 1;
    const int threads = pieces > 1 ? sp_context_threads(context) : 1, most = PIECES_PER_THREAD * threads;
    io_text *texts = NULL;
    int written = 0, turn = 0;
    sp_status status;
    TRY(sp_calloc(context, 2 * (int64_t)most, sizeof *texts, (void **)&texts));
    for (int i = 0; i < 2 * most; i++) texts[i].context = context;
    for (int64_t piece = 0; piece < pieces || written > 0; turn = !turn) {
        const int count = pieces - piece < most ? (int)(pieces - piece) : most;
        io_text *now = texts + turn * most, *before = texts + !turn * most;
        format_round(matrix, piece * PIECE_ENTRIES, count, whole_rows, formatter, user, now, before, written, output,
                     threads);
        for (int i = 0; i < count; i++)
            if (now[i].status != SP_OK) TRY(sp_fail(context, now[i].status, "out of memory for text"));
        piece += count;
        written = count;
    }
done:
    for (int i = 0; texts && i < 2 * most; i++) sp_free(context, texts[i].bytes);
    sp_free(context, texts);
    return status;
}
