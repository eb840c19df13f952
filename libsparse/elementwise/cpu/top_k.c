/* The k largest entries of every row on the CPU.
 *
 * The k-th largest of a row is found bit by bit of the values as integers: keys with the bit go to one side, the others
 * to the other, and only the side that holds the k-th is searched further. Bits that are the same in all keys are
 * skipped. So a row of n entries takes about 2n steps if values are spread, and at most 64n; nothing branches on a
 * value. Then the row is read once more and copied in order. */
#include <omp.h>

#include "base/bits.h"
#include "core/backend_cpu.h"
#include "core/coo.h"

/* An integer in whose order values are: zeros of both signs are equal, every NaN is above infinity. */
static inline uint64_t key_of(double value)
{
    const uint64_t sign = (uint64_t)1 << 63;
    if (value != value) return UINT64_MAX;
    const uint64_t bits = bits_of_double(value + 0); /* -0 becomes 0 */
    return bits & sign ? ~bits : bits | sign;
}

/* This many keys, and in which bits all agree: those that `all` and `any` have in common. */
typedef struct key_list {
    uint64_t *keys;
    int64_t count;
    uint64_t all, any;
} key_list;

static inline void append(key_list *list, uint64_t key, uint64_t take)
{
    list->keys[list->count] = key; /* if not taken, written over by the next */
    list->count += (int64_t)take;
    list->all &= key | (take - 1);
    list->any |= key & (0 - take);
}

/* The k-th largest of a list, 1 <= k <= its count, and at *equals how many of its like are among the k largest. The
 * list is moved about; `spare` has room for as many. */
static uint64_t kth_largest(key_list list, uint64_t *spare, int64_t k, int64_t *equals)
{
    while (list.all != list.any) {
        const int bit = 63 - __builtin_clzll(list.all ^ list.any);
        key_list above = {list.keys, 0, UINT64_MAX, 0}, below = {spare, 0, UINT64_MAX, 0};
        for (int64_t i = 0; i < list.count; i++) {
            const uint64_t key = list.keys[i], has = key >> bit & 1;
            append(&above, key, has); /* not beyond what was read */
            append(&below, key, has ^ 1);
        }
        if (above.count >= k) list = above;
        else {
            k -= above.count;
            spare = list.keys;
            list = below;
        }
    }
    *equals = k;
    return list.all;
}

/* Of A's row `row`, which has more than k entries; `keys` has room for twice as many. */
static void select_row(const sp_csr *a, int64_t row, int64_t k, uint64_t *keys, const sp_csr *b, int64_t to)
{
    const int64_t begin = a->row_offsets[row], end = a->row_offsets[row + 1];
    key_list list = {keys, 0, UINT64_MAX, 0};
    int64_t equals;
    for (int64_t e = begin; e < end; e++) append(&list, key_of(load_value(a->values, a->value_type, e)), 1);
    const uint64_t least = kth_largest(list, keys + (end - begin), k, &equals);
    for (int64_t e = begin, last = to + k; to < last; e++) {
        const double value = load_value(a->values, a->value_type, e);
        const uint64_t key = key_of(value);
        const int64_t equal = key == least && equals > 0;
        b->col_indices[to] = a->col_indices[e];
        store_value(b->values, b->value_type, to, value);
        to += key > least || equal;
        equals -= equal;
    }
}

sp_status sp_cpu_top_k(sp_context *context, const sp_csr *a, int64_t k, sp_csr *b)
{
    const int threads = sp_threads_for(context, 5 * a->nnz);
    sp_watch watch = {context, false};
    sp_csr made = {0};
    int64_t longest = 0, nnz = 0;
    uint64_t *keys = NULL;
    sp_status status;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t length = a->row_offsets[i + 1] - a->row_offsets[i];
        nnz += length < k ? length : k;
        if (length > longest) longest = length;
    }
    if (longest > k && k > 0 && a->values)
        TRY(sp_alloc(context, 2 * longest * threads, sizeof *keys, (void **)&keys));
    TRY(sp_csr_create_like(context, a, a->rows, a->cols, nnz, SP_HOST, &made));
    made.row_offsets[0] = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t length = a->row_offsets[i + 1] - a->row_offsets[i];
        made.row_offsets[i + 1] = made.row_offsets[i] + (length < k ? length : k);
    }
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t i = 0; i < a->rows; i++) {
        if (sp_stops(&watch)) continue;
        const int64_t begin = a->row_offsets[i], to = made.row_offsets[i], count = made.row_offsets[i + 1] - to;
        if (count == a->row_offsets[i + 1] - begin || !keys) sp_copy_entries(a, begin, count, &made, to);
        else select_row(a, i, k, keys + 2 * longest * omp_get_thread_num(), &made, to);
    }
    TRY(sp_watched(&watch));
    *b = made;
done:
    if (status != SP_OK) sp_csr_free(context, &made);
    sp_free(context, keys);
    return status;
}
