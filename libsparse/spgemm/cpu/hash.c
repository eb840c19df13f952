/* A table of at least twice as many slots as products, its entries sorted afterwards (Nagasaka et al. 2018). */
#include "base/kernel.h"
#include "spgemm/cpu/kernels.h"

KERNEL void put_hash(accumulator *w, int op, int type, int32_t column, double value)
{
    const uint32_t at = table_slot(w->keys, w->bits_of_table, column);
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
    const uint32_t at = table_slot(w->keys, w->bits_of_table, column);
    w->slots[at] = add(op, w->slots[at], value);
}

static void clear_table(accumulator *w, int64_t entries)
{
    w->bits_of_table = table_bits(entries);
    w->listed = 0;
    clear_keys(w->keys, w->bits_of_table);
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
        const uint32_t at = table_slot(w->keys, w->bits_of_table, columns[i]);
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
