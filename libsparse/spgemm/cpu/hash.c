/* A table of at least twice as many slots as products, its entries sorted afterwards (Nagasaka et al. 2018). */
#include "spgemm/cpu/kernels.h"

KERNEL uint32_t find_slot(const accumulator *w, int32_t column)
{
    const uint32_t mask = (uint32_t)(((uint64_t)1 << w->bits_of_table) - 1);
    const int32_t *keys = w->keys;
    uint32_t at = hash_column(column, w->bits_of_table);
    while (keys[at] != column && keys[at] != -1) at = (at + 1) & mask;
    return at;
}

KERNEL void put_hash(accumulator *w, int op, int type, int32_t column, double value)
{
    const uint32_t at = find_slot(w, column);
    if (w->keys[at] == -1) {
        w->keys[at] = column;
        w->list[0][w->listed++] = pack_entry(column, at);
        if (type != NO_VALUES) w->slots[at] = add(op, identity(op), value);
    } else if (type != NO_VALUES) {
        w->slots[at] = add(op, w->slots[at], value);
    }
}

KERNEL void put_known_hash(accumulator *w, int op, int type, int32_t column, double value)
{
    (void)type;
    const uint32_t at = find_slot(w, column);
    w->slots[at] = add(op, w->slots[at], value);
}

static void clear_table(accumulator *w, int64_t entries)
{
    w->bits_of_table = table_bits(entries);
    w->listed = 0;
    memset(w->keys, 0xff, ((size_t)1 << w->bits_of_table) * sizeof *w->keys);
}

void sp_row_hash(accumulator *w, int64_t row, int64_t entries, const int32_t *mask, int64_t mask_count,
                 row_buffer *out)
{
    const row_product *job = w->job;
    int32_t *columns = out->columns + out->count;
    clear_table(w, entries);
#define WALK(op, type, filtered) walk(w, row, op, type, filtered, job->complement, mask, mask_count, put_hash)
    EACH_KIND(job->kind, WALK)
#undef WALK
    const uint64_t *list = sort_entries(w->list[0], w->list[1], w->listed, job->b->cols);
    for (int64_t i = 0; i < w->listed; i++) columns[i] = (int32_t)(list[i] >> 32);
    if (!job->pattern) {
        for (int64_t i = 0; i < w->listed; i++)
            store(out->values, (int)job->a->value_type, out->count + i, w->slots[(uint32_t)list[i]]);
    }
    out->count += w->listed;
}

void sp_values_hash(accumulator *w, int64_t row, int kind, const int32_t *columns, int64_t count, void *values,
                    int64_t to)
{
    clear_table(w, count);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t at = find_slot(w, columns[i]);
        w->keys[at] = columns[i];
        w->list[0][i] = at;
    }
#define WALK(op, type, filtered)                                                                  \
    do {                                                                                          \
        for (int64_t i = 0; i < count; i++) w->slots[w->list[0][i]] = identity(op);               \
        walk(w, row, op, type, filtered, false, columns, count, put_known_hash);                  \
        for (int64_t i = 0; i < count; i++) store(values, type, to + i, w->slots[w->list[0][i]]); \
    } while (0)
    EACH_KIND(kind, WALK)
#undef WALK
}
