/* COO → CSR by radix sort: many triples in no order.
 *
 * Rows are grouped into about a thousand blocks with similar numbers of entries. One stable pass partitions the entries
 * by block, through a buffer of a few cache lines for each block, so that memory is written in whole lines. Then each
 * block is sorted within the second-level cache, as integers of row, column and place in the block, by digits from the
 * lowest up. The time does not depend on the lengths of rows. Values move with their entries and are read in order.
 *
 * Memory: the partitioned columns and values lie in the arrays of the result, and each block is written back there. The
 * partitioned rows take 4 bytes an entry. The words and values of each thread's largest block take at most another 4
 * bytes an entry in all; if that would not suffice, fewer threads sort, and if one thread is too many, nothing is done.
 * Together this is no more than sorting row by row takes.
 */
#include <omp.h>
#include <string.h>

#include "base/kernel.h"
#include "core/coo.h"

enum {
    LEAST_ENTRIES = 1 << 17, /* fewer entries fit the cache without blocks */
    BLOCK_ENTRIES = 1 << 13, /* the least size of a block: 160 KB of words and values */
    BLOCKS = 512,            /* the number of blocks of equal size; at most twice as many */
    GROUPS = 1 << 14,        /* groups of rows, from which blocks are made */
    BUFFERED = 16,           /* entries of a block that are written at once: a cache line of rows and one of columns */
    DIGIT = 10,              /* bits of a digit, at most */
    DIGITS = 7               /* digits, at most: a word has 64 bits */
};

/* One thread's unwritten entries of a block. */
typedef struct buffer {
    int64_t next, written; /* next: place of the next entry in the partition; written: end of the entries written so
                              far */
    int32_t rows[BUFFERED], cols[BUFFERED];
    double values[BUFFERED]; /* or as many floats */
} buffer;

typedef struct partition {
    const sp_triples *t;
    int parts, threads;      /* parts: threads that partition the triples; threads: threads that sort blocks */
    int group_shift, blocks; /* a group has 2^group_shift rows */
    size_t size;             /* of a value; 0: no values */
    int64_t entries, largest;
    int64_t *counts;         /* parts × GROUPS */
    int32_t *block_of;       /* GROUPS */
    int64_t first_row[2 * BLOCKS + 2], start[2 * BLOCKS + 2];
    int64_t left[2 * BLOCKS + 2]; /* entries of a block after combining */
    buffer *buffers;         /* parts × blocks */
    int32_t *rows, *cols;    /* partitioned; `cols` and `values` are those of the result */
    char *values;
    bool columns_ascend;     /* over all triples, as in files sorted by columns: then only rows have to be sorted */
    int row_bits, col_bits;  /* row_bits: of a row number in the largest block; col_bits: of a column number */
    char *scratch;
    sp_watch watch;
} partition;

static int bits_of(int64_t largest) { return largest > 0 ? 64 - __builtin_clzll((unsigned long long)largest) : 0; }

/* ---- blocks ---------------------------------------------------------------------------------------------- */

static void count_groups(partition *p)
{
    const sp_triples *t = p->t;
    const int shift = p->group_shift;
    bool ascend = !t->symmetric;
#pragma omp parallel for schedule(static, 1) reduction(&& : ascend) num_threads(p->parts)
    for (int part = 0; part < p->parts; part++) {
        int64_t *counts = p->counts + (int64_t)part * GROUPS;
        const int64_t end = t->count / p->parts * (part + 1) + (part + 1 == p->parts ? t->count % p->parts : 0);
        bool in_order = true;
        for (int64_t i = t->count / p->parts * part; i < end; i++) {
            if (sp_stops_at(&p->watch, i)) break;
            const int32_t row = t->row_indices[i], col = t->col_indices[i];
            counts[row >> shift]++;
            in_order &= i == 0 || t->col_indices[i - 1] <= col;
            if (t->symmetric && row != col) counts[col >> shift]++;
        }
        ascend = ascend && in_order;
    }
    p->columns_ascend = ascend;
    for (int64_t i = 0; i < GROUPS * (int64_t)p->parts; i++) p->entries += p->counts[i];
}

/* Combines groups of rows into blocks. Two neighbouring blocks together have more than `target` entries, so there are
 * at most 2 · BLOCKS + 1 blocks. */
static void make_blocks(partition *p)
{
    const int64_t even = p->entries / BLOCKS + 1, target = even < BLOCK_ENTRIES ? BLOCK_ENTRIES : even;
    int64_t filled = 0, longest = 1;
    p->blocks = 0;
    p->start[0] = p->first_row[0] = 0;
    for (int64_t group = 0; group < GROUPS; group++) {
        int64_t count = 0;
        for (int part = 0; part < p->parts; part++) count += p->counts[part * (int64_t)GROUPS + group];
        if (filled > 0 && filled + count > target) {
            p->blocks++;
            p->first_row[p->blocks] = group << p->group_shift;
            p->start[p->blocks] = p->start[p->blocks - 1] + filled;
            filled = 0;
        }
        filled += count;
        p->block_of[group] = p->blocks;
        if (filled > p->largest) p->largest = filled;
    }
    p->blocks++;
    p->first_row[p->blocks] = p->t->rows;
    p->start[p->blocks] = p->entries;
    for (int b = 0; b < p->blocks; b++) {
        int64_t rows = (p->first_row[b + 1] < p->t->rows ? p->first_row[b + 1] : p->t->rows) - p->first_row[b];
        if (rows > longest) longest = rows;
    }
    p->row_bits = bits_of(longest - 1);
    p->col_bits = bits_of(p->t->cols - 1);
}

/* The place of each part's first entry in each block: after the entries of the parts before. */
static void place_parts(partition *p)
{
    for (int part = 0; part < p->parts; part++) {
        buffer *own = p->buffers + (int64_t)part * p->blocks, *before = own - p->blocks;
        for (int b = 0; b < p->blocks; b++) own[b].next = part ? before[b].written : p->start[b];
        for (int b = 0; b < p->blocks; b++) own[b].written = own[b].next;
        for (int64_t group = 0; group < GROUPS; group++)
            own[p->block_of[group]].written += p->counts[part * (int64_t)GROUPS + group];
    }
    for (int64_t i = 0; i < (int64_t)p->parts * p->blocks; i++) p->buffers[i].written = p->buffers[i].next;
}

/* ---- partition ------------------------------------------------------------------------------------------- */

static inline void write_buffer(const partition *p, buffer *b, size_t size)
{
    const int64_t to = b->written, slot = to % BUFFERED, count = b->next - to;
    b->written = b->next;
    if (count == BUFFERED) { /* constant lengths, which compile to a few moves */
        memcpy(p->rows + to, b->rows, sizeof b->rows);
        memcpy(p->cols + to, b->cols, sizeof b->cols);
        memcpy(p->values + (size_t)to * size, b->values, BUFFERED * size);
    } else if (count > 0) {
        memcpy(p->rows + to, b->rows + slot, (size_t)count * sizeof *b->rows);
        memcpy(p->cols + to, b->cols + slot, (size_t)count * sizeof *b->cols);
        memcpy(p->values + (size_t)to * size, (char *)b->values + (size_t)slot * size, (size_t)count * size);
    }
}

static inline void put(const partition *p, buffer *buffers, int32_t row, int32_t col, int64_t from, size_t size)
{
    buffer *b = &buffers[p->block_of[row >> p->group_shift]];
    const int64_t slot = b->next++ % BUFFERED;
    b->rows[slot] = row;
    b->cols[slot] = col;
    if (size) memcpy((char *)b->values + (size_t)slot * size, (const char *)p->t->values + (size_t)from * size, size);
    if (slot == BUFFERED - 1) write_buffer(p, b, size);
}

KERNEL void put_part(partition *p, int part, size_t size)
{
    const sp_triples *t = p->t;
    buffer *buffers = p->buffers + (int64_t)part * p->blocks;
    const int64_t end = t->count / p->parts * (part + 1) + (part + 1 == p->parts ? t->count % p->parts : 0);
    for (int64_t i = t->count / p->parts * part; i < end; i++) {
        if (sp_stops_at(&p->watch, i)) return;
        const int32_t row = t->row_indices[i], col = t->col_indices[i];
        put(p, buffers, row, col, i, size);
        if (t->symmetric && row != col) put(p, buffers, col, row, i, size);
    }
    for (int b = 0; b < p->blocks; b++) write_buffer(p, &buffers[b], size);
}

static void partition_triples(partition *p)
{
#pragma omp parallel for schedule(static, 1) num_threads(p->parts)
    for (int part = 0; part < p->parts; part++) {
        if (p->size == 0) put_part(p, part, 0);
        else if (p->size == sizeof(float)) put_part(p, part, sizeof(float));
        else put_part(p, part, sizeof(double));
    }
}

/* ---- one block ------------------------------------------------------------------------------------------- */

/* Makes words of row, column and place within the block, from the upper bits down, and sorts them. Returns the list
 * that holds the result. */
static const uint64_t *sort_block(partition *p, int block, int place_bits, uint64_t *words, uint64_t *others)
{
    const int64_t first = p->start[block], count = p->start[block + 1] - first;
    const int bits = p->columns_ascend ? p->row_bits : p->row_bits + p->col_bits;
    const int lowest = place_bits + p->row_bits + p->col_bits - bits;
    const int digits = (bits + DIGIT - 1) / DIGIT, width = digits ? (bits + digits - 1) / digits : 1;
    const uint64_t mask = ((uint64_t)1 << width) - 1;
    uint32_t counts[DIGITS][1 << DIGIT];
    memset(counts, 0, (size_t)digits * sizeof *counts);
    for (int64_t k = 0; k < count && !sp_stops_at(&p->watch, k); k++) {
        const uint64_t row = (uint64_t)(p->rows[first + k] - p->first_row[block]);
        const uint64_t word = (row << p->col_bits | (uint64_t)p->cols[first + k]) << place_bits | (uint64_t)k;
        words[k] = word;
        for (int d = 0; d < digits; d++) counts[d][word >> (lowest + d * width) & mask]++;
    }
    for (int d = 0; d < digits && !sp_stops(&p->watch); d++) {
        const int shift = lowest + d * width;
        uint32_t *next = counts[d], before = 0;
        for (uint64_t value = 0; value <= mask; value++) {
            const uint32_t of_value = next[value];
            next[value] = before;
            before += of_value;
        }
        for (int64_t k = 0; k < count && !sp_stops_at(&p->watch, k); k++)
            others[next[words[k] >> shift & mask]++] = words[k];
        uint64_t *swap = words;
        words = others;
        others = swap;
    }
    return words;
}

/* Writes the sorted block's columns and values over the unsorted ones, and the lengths of its rows. Returns the number
 * of entries after combining. */
KERNEL int64_t emit(partition *p, int block, const uint64_t *words, int place_bits, const void *values,
                    sp_value_type type, int64_t *lengths)
{
    const sp_combine rule = p->t->rule;
    const int64_t first = p->start[block], count = p->start[block + 1] - first;
    const uint64_t places = ((uint64_t)1 << place_bits) - 1, cols = ((uint64_t)1 << p->col_bits) - 1;
    int64_t left = 0, row_begin = 0;
    uint64_t row = 0;
    for (int64_t k = 0; k < count;) {
        const uint64_t key = words[k] >> place_bits;
        const int64_t begin = k;
        double value = load_value(values, type, (int64_t)(words[k] & places));
        if (rule == SP_COMBINE_COUNT) value = 1;
        for (k++; k < count && words[k] >> place_bits == key; k++) {
            if (sp_stops_at(&p->watch, k)) return 0;
            value = sp_combine_values(value, load_value(values, type, (int64_t)(words[k] & places)), rule);
        }
        if (rule == SP_COMBINE_MEAN) value /= (double)(k - begin);
        if (key >> p->col_bits != row) {
            lengths[row] = left - row_begin;
            row = key >> p->col_bits;
            row_begin = left;
        }
        p->cols[first + left] = (int32_t)(key & cols);
        store_value(p->values, type, first + left, value);
        left++;
    }
    if (count > 0) lengths[row] = left - row_begin;
    return left;
}

/* lengths[i] is the length of row i, zero before. */
static void sort_blocks(partition *p, int64_t *lengths)
{
    const int place_bits = bits_of(p->largest - 1);
    const size_t of_thread = (size_t)p->largest * (2 * sizeof(uint64_t) + p->size);
#pragma omp parallel for schedule(dynamic, 1) num_threads(p->threads)
    for (int block = 0; block < p->blocks; block++) {
        if (sp_stops(&p->watch)) continue;
        uint64_t *words = (void *)(p->scratch + (size_t)omp_get_thread_num() * (of_thread + 64 - of_thread % 64));
        char *values = (void *)(words + 2 * p->largest);
        const int64_t first = p->start[block], count = p->start[block + 1] - first;
        const uint64_t *sorted = sort_block(p, block, place_bits, words, words + p->largest);
        if (sp_stops(&p->watch)) continue; /* the words are not sorted */
        memcpy(values, p->values + (size_t)first * p->size, (size_t)count * p->size);
        const void *given = p->size ? values : NULL;
        int64_t *own = lengths + p->first_row[block];
        p->left[block] = p->t->type == SP_F32 ? emit(p, block, sorted, place_bits, given, SP_F32, own)
                                              : emit(p, block, sorted, place_bits, given, SP_F64, own);
    }
}

/* ---- all ------------------------------------------------------------------------------------------------- */

/* Closes the gaps between blocks that combining made shorter, and turns lengths into offsets. */
static void close_blocks(const partition *p, sp_csr *made)
{
    const size_t size = sp_value_size(made->value_type);
    int64_t nnz = 0;
    for (int b = 0; b < p->blocks; b++) {
        const int64_t from = p->start[b], count = p->left[b];
        if (nnz != from) {
            memmove(p->cols + nnz, p->cols + from, (size_t)count * sizeof *p->cols);
            memmove(p->values + (size_t)nnz * size, p->values + (size_t)from * size, (size_t)count * size);
        }
        nnz += count;
    }
    made->nnz = nnz;
    for (int64_t i = 0; i < made->rows; i++) made->row_offsets[i + 1] += made->row_offsets[i];
}

/* Counts groups and makes blocks. Returns whether sorting by blocks keeps to its memory. */
static bool plan(partition *p)
{
    while ((p->t->rows - 1) >> p->group_shift >= GROUPS) p->group_shift++;
    count_groups(p);
    make_blocks(p);
    const int64_t allowed = 4 * p->entries, of_thread = p->largest * (int64_t)(2 * sizeof(uint64_t) + p->size) + 64;
    p->threads = p->parts;
    if (p->threads > allowed / of_thread) p->threads = (int)(allowed / of_thread);
    return p->threads > 0 && bits_of(p->largest - 1) + p->row_bits + p->col_bits <= 64 && p->largest <= UINT32_MAX;
}

sp_status sp_coo_by_blocks(sp_context *context, const sp_triples *t, sp_csr *matrix, bool *done)
{
    const size_t size = t->values && t->rule != SP_COMBINE_COUNT ? sp_value_size(t->type) : 0;
    sp_csr made = {0};
    partition *p = NULL;
    sp_status status = SP_OK;
    *done = false;
    if (t->count < LEAST_ENTRIES) return SP_OK;
    TRY(sp_calloc(context, 1, sizeof *p, (void **)&p));
    p->t = t;
    p->watch.context = context;
    p->parts = sp_threads_for(context, t->count);
    p->size = size;
    TRY(sp_calloc(context, (int64_t)p->parts * GROUPS, sizeof *p->counts, (void **)&p->counts));
    TRY(sp_alloc(context, GROUPS, sizeof *p->block_of, (void **)&p->block_of));
    const bool fits = plan(p);
    TRY(sp_watched(&p->watch));
    if (!fits) goto done;
    TRY(sp_alloc(context, (int64_t)p->parts * p->blocks, sizeof *p->buffers, (void **)&p->buffers));
    TRY(sp_alloc(context, p->entries, sizeof *p->rows, (void **)&p->rows));
    TRY(sp_csr_create(context, t->rows, t->cols, p->entries, t->type, SP_HOST, &made));
    memset(made.row_offsets, 0, ((size_t)t->rows + 1) * sizeof *made.row_offsets);
    p->cols = made.col_indices;
    p->values = made.values;
    place_parts(p);
    partition_triples(p);
    TRY(sp_watched(&p->watch));
    TRY(sp_alloc(context, p->threads * (p->largest + 8), 2 * sizeof(uint64_t) + size, (void **)&p->scratch));
    sort_blocks(p, made.row_offsets + 1);
    TRY(sp_watched(&p->watch));
    close_blocks(p, &made);
    TRY(sp_grow(context, made.nnz, made.nnz, sizeof(int32_t), (void **)&made.col_indices));
    TRY(sp_grow(context, made.nnz, made.nnz, sp_value_size(t->type), &made.values));
    *done = true;
done:
    if (p) {
        FREE_ALL(context, p->counts, p->block_of, p->buffers, p->rows, p->scratch);
    }
    sp_free(context, p);
    if (*done) *matrix = made;
    else sp_csr_free(context, &made);
    return status;
}
