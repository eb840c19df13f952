/* mcl's native matrix in binary form; write_native.c describes its layout. */
#include <math.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "graphs/native.h"

enum { BINARY_ENTRIES = 4096 }; /* taken at once */

typedef struct binary {
    io_source *source;
    native *to;
    int64_t bytes;
} binary;

/* Some columns, and the bytes behind the offsets that they take. */
typedef struct range {
    int64_t first, end, begin, stop;
} range;

static sp_status take_bytes(binary *from, void *into, size_t count)
{
    size_t got;
    sp_status status = io_source_read(from->source, into, count, &got);
    from->bytes += (int64_t)got;
    if (status == SP_OK && got < count)
        return sp_fail(from->to->context, SP_ERROR_MATRIX,
                       "%s: byte %lld: the binary matrix ends too soon; it is truncated, or its header lies",
                       from->to->name, (long long)from->bytes);
    return status;
}

static sp_status corrupt(binary *from, const char *what, int64_t number)
{
    return sp_fail(from->to->context, SP_ERROR_MATRIX, "%s: byte %lld: %s (got %lld); write the file again",
                   from->to->name, (long long)from->bytes, what, (long long)number);
}

typedef struct vector_head {
    int64_t count, id;
} vector_head;

static sp_status take_head(binary *from, int64_t most, vector_head *head)
{
    double value;
    sp_status status = take_bytes(from, &head->count, sizeof head->count);
    if (status == SP_OK) status = take_bytes(from, &head->id, sizeof head->id);
    if (status == SP_OK) status = take_bytes(from, &value, sizeof value);
    if (status == SP_OK && (head->count < 0 || head->count > most))
        return corrupt(from, "a vector with more entries than the matrix has rows", head->count);
    return status;
}

typedef struct pair {
    int32_t id;
    float value;
} pair;

static sp_status take_domain(binary *from, int64_t count, int64_t **ids)
{
    pair pairs[BINARY_ENTRIES];
    vector_head head;
    int64_t capacity = 0;
    sp_status status;
    TRY(take_head(from, count, &head));
    if (head.count != count) return corrupt(from, "a domain whose size is not the dimension", head.count);
    TRY(io_reserve(from->to->context, 0, 1, sizeof **ids, &capacity, (void **)ids));
    for (int64_t done = 0; done < count;) {
        int64_t now = count - done < BINARY_ENTRIES ? count - done : BINARY_ENTRIES;
        TRY(take_bytes(from, pairs, (size_t)now * sizeof *pairs));
        TRY(io_reserve(from->to->context, done, done + now, sizeof **ids, &capacity, (void **)ids));
        for (int64_t i = 0; i < now; i++, done++) {
            if (pairs[i].id < 0) return corrupt(from, "a negative id in a domain", pairs[i].id);
            (*ids)[done] = pairs[i].id;
        }
    }
    if (!io_native_sort_domain(*ids, count)) return corrupt(from, "a domain with a repeated id among", count);
done:
    return status;
}

/* The offsets only serve access out of order; here they must ascend and end where the columns do. *columns becomes
 * those that begin in this part of the bytes. */
static sp_status take_offsets(binary *from, int64_t count, range *columns)
{
    int64_t offsets[BINARY_ENTRIES], last = 0;
    const native *to = from->to;
    const double share = to->parts > 1 ? (double)(to->size - from->bytes - count * 8) / to->parts : 0;
    const int64_t begin = (int64_t)(share * to->part);
    const int64_t end = to->parts > 1 && to->part < to->parts - 1 ? (int64_t)(share * (to->part + 1)) : INT64_MAX;
    sp_status status = SP_OK;
    *columns = (range){-1, -1, 0, 0};
    for (int64_t done = 0; done < count;) {
        int64_t now = count - done < BINARY_ENTRIES ? count - done : BINARY_ENTRIES;
        TRY(take_bytes(from, offsets, (size_t)now * sizeof *offsets));
        for (int64_t i = 0; i < now; i++) {
            if (offsets[i] < last) return corrupt(from, "column offsets that do not ascend", offsets[i]);
            last = offsets[i];
            if (columns->first < 0 && (last >= begin || done + i == count - 1)) {
                columns->first = done + i;
                columns->begin = last;
            }
            if (columns->end < 0 && (last >= end || done + i == count - 1)) {
                columns->end = done + i;
                columns->stop = last;
            }
        }
        done += now;
    }
done:
    return status;
}

/* Goes to the columns of this part. */
static sp_status take_part(binary *from, const range *columns)
{
    if (columns->first == 0 && columns->begin > 0)
        return corrupt(from, "a first column that does not begin at 0", columns->begin);
    return io_source_take_range(from->source, from->bytes + columns->begin, from->bytes + columns->stop);
}

static sp_status take_column(binary *from)
{
    native *to = from->to;
    pair pairs[BINARY_ENTRIES];
    vector_head head;
    sp_status status;
    TRY(take_head(from, to->nodes, &head));
    int64_t tail = head.id < 0 ? -1 : io_native_column(to, head.id);
    if (tail < 0) return corrupt(from, "a column that is not in the domain", head.id);
    io_native_begin_column(to);
    for (int64_t done = 0; done < head.count;) {
        int64_t now = head.count - done < BINARY_ENTRIES ? head.count - done : BINARY_ENTRIES;
        TRY(take_bytes(from, pairs, (size_t)now * sizeof *pairs));
        for (int64_t i = 0; i < now; i++, done++) {
            int64_t node = pairs[i].id < 0 ? -1 : io_native_node(to, pairs[i].id);
            if (node < 0) return corrupt(from, "a row that is not in the domain", pairs[i].id);
            if (!isfinite(pairs[i].value)) return corrupt(from, "a value that is not finite in column", head.id);
            if (pairs[i].value < 0) {
                if (!to->options->lenient && !to->options->any_sign)
                    return corrupt(from, "a negative value in column", head.id);
                to->negative++;
                to->odd_lines += !to->options->any_sign;
            }
            TRY(io_native_add(to, (int32_t)node, (double)pairs[i].value));
        }
    }
    status = io_native_end_column(to, (int32_t)tail);
done:
    return status;
}

static sp_status read_vectors(binary *from, int64_t **row_ids, int64_t **col_ids)
{
    native *to = from->to;
    int32_t cookie;
    int64_t sizes[3], begin; /* columns, rows, flags */
    range columns;
    sp_status status;
    TRY(take_bytes(from, &cookie, sizeof cookie));
    TRY(take_bytes(from, sizes, sizeof sizes));
    for (int i = 0; i < 2; i++)
        if (sizes[i] < 0 || sizes[i] > INT32_MAX)
            return corrupt(from, "a dimension that is not below 2^31", sizes[i]);
    if (!(sizes[2] & 1)) TRY(take_domain(from, sizes[0], col_ids));
    if (!(sizes[2] & 2)) TRY(take_domain(from, sizes[1], row_ids));
    status = io_native_set_domains(to, sizes[1], sizes[0], row_ids, col_ids);
    if (status != SP_OK) return status;
    TRY(take_offsets(from, sizes[0] + 1, &columns));
    if (to->parts > 1) TRY(take_part(from, &columns));
    if (to->part > 0) from->bytes = 0;
    begin = from->bytes;
    for (int64_t j = columns.first; j < columns.end; j++) TRY(take_column(from));
    if (from->bytes - begin != columns.stop - (to->parts > 1 ? columns.begin : 0))
        return corrupt(from, "columns that do not end where their offsets say", columns.stop);
done:
    return status;
}

sp_status io_native_read_binary(native *to, io_source *source, io_graph *graph)
{
    int64_t *row_ids = NULL, *col_ids = NULL;
    binary from = {.source = source, .to = to};
    sp_status status;
    TRY(read_vectors(&from, &row_ids, &col_ids));
    TRY(io_native_finish(to, 0, from.bytes, graph));
done:
    FREE_ALL(to->context, row_ids, col_ids);
    return status;
}
