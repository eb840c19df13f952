/* Entries kept by place or by value on the CPU, in two passes: one counts, one writes.
 *
 * By place: columns ascend, so a diagonal cuts a row in two, or in three if it has an entry there. Bisection finds the
 * cut, and the parts are copied. By value: values are read twice, and nothing branches on them. Every step writes, and
 * the next one overwrites an entry that is not kept; writing stops at the last that is, so it stays within the row. */
#include "core/backend_cpu.h"
#include "core/coo.h"

typedef struct selection {
    sp_select select;
    unsigned stay; /* outcomes */
    double bound;
} selection;

/* ---- by place -------------------------------------------------------------------------------------------- */

/* The first entry of the row from `column` on, or its end; halves are taken without a branch. */
static inline int64_t find_column(const sp_csr *a, int64_t row, int64_t column)
{
    int64_t at = a->row_offsets[row], left = a->row_offsets[row + 1] - at;
    while (left > 0) {
        const int64_t half = (left + 1) / 2;
        at += a->col_indices[at + half - 1] < column ? half : 0;
        left -= half;
    }
    return at;
}

/* How many entries of the row lie below the diagonal, on it, and above it. */
typedef struct row_cut {
    int64_t below, on, above;
} row_cut;

static inline row_cut cut_row(const sp_csr *a, int64_t row, int64_t diagonal)
{
    const int64_t begin = a->row_offsets[row], end = a->row_offsets[row + 1];
    const int64_t at = find_column(a, row, row + diagonal);
    const bool on = at < end && a->col_indices[at] == row + diagonal;
    return (row_cut){at - begin, on, end - at - on};
}

static int64_t count_places(const sp_csr *a, const selection *s, int64_t row)
{
    const row_cut part = cut_row(a, row, (int64_t)s->bound);
    return (s->stay & SP_LESS ? part.below : 0) + (s->stay & SP_EQUAL ? part.on : 0) +
           (s->stay & SP_GREATER ? part.above : 0);
}

static void write_places(const sp_csr *a, const selection *s, int64_t row, const sp_csr *b)
{
    const int64_t begin = a->row_offsets[row], end = a->row_offsets[row + 1];
    const int64_t to = b->row_offsets[row], count = b->row_offsets[row + 1] - to;
    const bool less = s->stay & SP_LESS, equal = s->stay & SP_EQUAL, greater = s->stay & SP_GREATER;
    if (count == 0) return;
    if (less && (!greater || count == end - begin)) sp_copy_entries(a, begin, count, b, to);
    else if (greater && !less) sp_copy_entries(a, end - count, count, b, to);
    else {
        const row_cut part = cut_row(a, row, (int64_t)s->bound);
        const int64_t below = less ? part.below : 0;
        sp_copy_entries(a, begin, below, b, to);
        sp_copy_entries(a, begin + part.below + (equal ? 0 : part.on), count - below, b, to + below);
    }
}

/* ---- by value -------------------------------------------------------------------------------------------- */

/* One loop for each test of a value v, so that compilers see what it is. */
#define BY_TEST(LOOP)                                                             \
    switch (s->select) {                                                          \
    case SP_SELECT_LT: LOOP(v < bound) break;                                     \
    case SP_SELECT_LE: LOOP(v <= bound) break;                                    \
    case SP_SELECT_EQ: LOOP(v == bound) break;                                    \
    case SP_SELECT_NE: LOOP(v != bound) break;                                    \
    case SP_SELECT_GE: LOOP(v >= bound) break;                                    \
    case SP_SELECT_GT: LOOP(v > bound) break;                                     \
    default: LOOP(__builtin_fabs(v) >= bound) /* SP_SELECT_ABS_GE */              \
    }
#define COUNT(kept)                             \
    for (int64_t e = from; e < end; e++) {      \
        const double v = values[e];             \
        count += kept;                          \
    }
#define WRITE(kept)                             \
    for (; to < end; from++) {                  \
        const double v = values[from];          \
        kept_columns[to] = columns[from];       \
        kept_values[to] = values[from];         \
        to += kept;                             \
    }

#define FILTER(type)                                                                                          \
    static int64_t count_##type(const sp_csr *a, const selection *s, int64_t from, int64_t end)               \
    {                                                                                                         \
        const type *restrict values = a->values;                                                              \
        const double bound = s->bound;                                                                        \
        int64_t count = 0;                                                                                    \
        BY_TEST(COUNT)                                                                                        \
        return count;                                                                                         \
    }                                                                                                         \
    static void write_##type(const sp_csr *a, const selection *s, int64_t from, const sp_csr *b, int64_t to,  \
                             int64_t end)                                                                     \
    {                                                                                                         \
        const int32_t *restrict columns = a->col_indices;                                                     \
        const type *restrict values = a->values;                                                              \
        int32_t *restrict kept_columns = b->col_indices;                                                      \
        type *restrict kept_values = b->values;                                                               \
        const double bound = s->bound;                                                                        \
        BY_TEST(WRITE)                                                                                        \
    }

FILTER(float)
FILTER(double)

/* Every entry of a pattern is one. */
static bool pattern_stays(const selection *s)
{
    const double one = 1, bound = s->bound;
    return s->stay & (one < bound ? SP_LESS : one == bound ? SP_EQUAL : one > bound ? SP_GREATER : SP_UNORDERED);
}

/* ---- both ------------------------------------------------------------------------------------------------ */

static int64_t count_row(const sp_csr *a, const selection *s, int64_t row)
{
    const int64_t begin = a->row_offsets[row], end = a->row_offsets[row + 1];
    if (s->select <= SP_SELECT_OFF_DIAGONAL) return count_places(a, s, row);
    if (!a->values) return pattern_stays(s) ? end - begin : 0;
    return a->value_type == SP_F32 ? count_float(a, s, begin, end) : count_double(a, s, begin, end);
}

static void write_row(const sp_csr *a, const selection *s, int64_t row, const sp_csr *b)
{
    const int64_t from = a->row_offsets[row], to = b->row_offsets[row], end = b->row_offsets[row + 1];
    if (s->select <= SP_SELECT_OFF_DIAGONAL) write_places(a, s, row, b);
    else if (!a->values) sp_copy_entries(a, from, end - to, b, to);
    else if (a->value_type == SP_F32) write_float(a, s, from, b, to, end);
    else write_double(a, s, from, b, to, end);
}

sp_status sp_cpu_select(sp_context *context, const sp_csr *a, sp_select select, double bound, sp_csr *b)
{
    const selection s = {select, sp_select_outcomes(select), bound};
    const int threads = sp_threads_for(context, a->rows + a->nnz);
    sp_watch watch = {context, false};
    sp_csr made = {0};
    int64_t *offsets;
    sp_status status = sp_alloc(context, a->rows + 1, sizeof *offsets, (void **)&offsets);
    if (status != SP_OK) return status;
    offsets[0] = 0;
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t i = 0; i < a->rows; i++)
        if (!sp_stops(&watch)) offsets[i + 1] = count_row(a, &s, i);
    TRY(sp_watched(&watch));
    for (int64_t i = 0; i < a->rows; i++) offsets[i + 1] += offsets[i];
    TRY(sp_csr_create_like(context, a, a->rows, a->cols, offsets[a->rows], SP_HOST, &made));
    memcpy(made.row_offsets, offsets, (size_t)(a->rows + 1) * sizeof *offsets);
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t i = 0; i < a->rows; i++)
        if (!sp_stops(&watch)) write_row(a, &s, i, &made);
    TRY(sp_watched(&watch));
    *b = made;
done:
    if (status != SP_OK) sp_csr_free(context, &made);
    sp_free(context, offsets);
    return status;
}
