/* What P processes of mcl-gpu would keep, receive and compute, reckoned from the iterands of a run in one process, and
 * what the tiles of a two-dimensional engine would.
 *
 *   volume GRAPH INFLATION P,P,...
 *
 * Rows: process r keeps the rows of mcl_ranks_cut, in the order of the communities, and receives the other rows that
 * its rows name (mcl/ranks.c). "rows" keep this cut; "recut" is what the program does: they are cut again where a
 * process has too much work, and rows that change hands are received, too ("moved"). Tiles: CombBLAS's Sparse SUMMA on
 * the squares among the numbers. Nodes are in random order, which balances tiles; the process of tile (i, j) receives
 * the other tiles of its row and column of the grid.
 *
 * Prints one JSON object. Of each iteration and each P, in entries: what all processes receive, and what one does at
 * most; the most that one holds: its rows, those that they name, its rows of the next iterand; the most rows that one
 * receives and the most products that it forms. Of tiles the same, without the next iterand, with all products in one
 * phase.
 */
#include <omp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/try.h"
#include "io.h"
#include "ranks.h"

enum { MOST_SIZES = 32 };

/* What one process does in an iteration, in entries: what it receives and how many rows that is, products, and what it
 * holds without its rows of the next iterand. */
typedef struct load {
    int64_t received, rows, products, held;
} load;

/* The figures of the processes of one run, for one number of them. */
typedef struct figures {
    int64_t received, most_received, most_rows, most_held, most_products, moved;
} figures;

/* Process `rank` of sizes[p]. */
typedef struct member {
    int p, rank;
} member;

typedef struct study {
    sp_context *context;
    int count, sizes[MOST_SIZES], threads;
    int64_t *cut[MOST_SIZES];   /* rows of each process, from the first iterand */
    int64_t *recut[MOST_SIZES]; /* the same, from an iterand that they were cut for */
    int64_t *older[MOST_SIZES]; /* before that */
    load *loads[MOST_SIZES];    /* of each process in the present iteration, with the rows of `cut` */
    load *moved_loads[MOST_SIZES]; /* with those of `recut` */
    int64_t *sums[MOST_SIZES];  /* [i]: the work of the rows before row i, as mcl_ranks_even reckons it */
    member *members;            /* of all sizes */
    int64_t all;                /* how many */
    int32_t *named;             /* for each thread: how often a process names each row */
    int32_t *place;             /* of each node in a random order */
    figures rows[MOST_SIZES], moved[MOST_SIZES], tiles[MOST_SIZES]; /* of the present iteration */
    int64_t nnz;
    sp_status status;
} study;

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t length_of(const sp_csr *m, int64_t row) { return m->row_offsets[row + 1] - m->row_offsets[row]; }

/* ---- rows ------------------------------------------------------------------------------------------------------ */

/* mcl_ranks_cut makes the cut at process 0 and tells it to the others. */
static const char *tell_nobody(void *user, void *bytes, int64_t count)
{
    (void)user, (void)bytes, (void)count;
    return NULL;
}

static sp_status cut_rows(study *s, const sp_csr *m, int p)
{
    const sp_ranks ranks = {.size = s->sizes[p], .broadcast = tell_nobody};
    sp_csr part = {0};
    sp_status status;
    TRY(mcl_ranks_cut(s->context, &ranks, m, &s->cut[p], &part));
    memcpy(s->recut[p], s->cut[p], (size_t)(s->sizes[p] + 1) * sizeof *s->recut[p]);
done:
    sp_csr_free(s->context, &part);
    return status;
}

/* Of the process with rows[0] to rows[1] - 1. named[j] becomes how often it names row j, for each that it names. */
static load load_of(const sp_csr *m, const int64_t *rows, int32_t *named)
{
    const int64_t begin = m->row_offsets[rows[0]], end = m->row_offsets[rows[1]];
    load l = {.held = end - begin};
    for (int64_t e = begin; e < end; e++) named[m->col_indices[e]] = 0;
    for (int64_t e = begin; e < end; e++) {
        const int32_t j = m->col_indices[e];
        const int64_t length = length_of(m, j);
        l.products += length;
        if (named[j]++ > 0) continue;
        l.held += length;
        if (j >= rows[0] && j < rows[1]) continue;
        l.rows++;
        l.received += length;
    }
    return l;
}

/* work[i]: of each of its rows; `named` as load_of has left it. */
static void work_of(const sp_csr *m, int size, const int64_t *rows, const int32_t *named, int64_t *work)
{
    const int64_t received = mcl_ranks_received(size);
    for (int64_t i = rows[0]; i < rows[1]; i++) {
        work[i] = 1;
        for (int64_t e = m->row_offsets[i]; e < m->row_offsets[i + 1]; e++) {
            const int32_t j = m->col_indices[e];
            const bool is_own = j >= rows[0] && j < rows[1];
            work[i] += length_of(m, j) + (is_own || received == 0 ? 0 : received * length_of(m, j) / named[j]);
        }
    }
}

static bool same_rows(const int64_t *one, const int64_t *two) { return one[0] == two[0] && one[1] == two[1]; }

/* The next cut, by the work of rows; the same if it is even. */
static void cut_again(const sp_csr *m, int size, const int64_t *cut, const int64_t *sums, int64_t *next)
{
    const int64_t total = sums[m->rows];
    int64_t most = 0, row = 0;
    for (int r = 0; r < size; r++) most = larger(most, sums[cut[r + 1]] - sums[cut[r]]);
    memcpy(next, cut, (size_t)(size + 1) * sizeof *next);
    if ((double)most <= MCL_RANKS_UNEVEN * (double)total / size) return;
    for (int k = 0; k < size; next[k++] = row)
        while (sums[row] < total / size * k + total % size * k / size) row++;
}

/* Cuts the rows of sizes[p] again if they are uneven. */
static void recut_rows(study *s, const sp_csr *m, int p)
{
    int64_t *sums = s->sums[p], *older = s->recut[p];
    for (int64_t i = 0; i < m->rows; i++) sums[i + 1] += sums[i];
    s->recut[p] = s->older[p];
    s->older[p] = older;
    cut_again(m, s->sizes[p], older, sums, s->recut[p]);
}

/* Processes of all sizes take their turns on the threads, few large ones first. */
static void study_rows(study *s, const sp_csr *m)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->threads)
    for (int64_t k = 0; k < s->all; k++) {
        const int p = s->members[k].p, r = s->members[k].rank;
        int32_t *named = s->named + omp_get_thread_num() * m->rows;
        s->loads[p][r] = load_of(m, s->cut[p] + r, named);
        if (!same_rows(s->cut[p] + r, s->recut[p] + r)) load_of(m, s->recut[p] + r, named);
        work_of(m, s->sizes[p], s->recut[p] + r, named, s->sums[p] + 1);
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->threads)
    for (int p = 0; p < s->count; p++) recut_rows(s, m, p);
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->threads)
    for (int64_t k = 0; k < s->all; k++) {
        const int p = s->members[k].p, r = s->members[k].rank;
        s->moved_loads[p][r] = same_rows(s->cut[p] + r, s->recut[p] + r) ? s->loads[p][r]
            : load_of(m, s->recut[p] + r, s->named + omp_get_thread_num() * m->rows);
    }
}

static figures sum_up(const load *loads, int size)
{
    figures f = {0};
    for (int r = 0; r < size; r++) {
        f.received += loads[r].received;
        f.most_received = larger(f.most_received, loads[r].received);
        f.most_rows = larger(f.most_rows, loads[r].rows);
        f.most_held = larger(f.most_held, loads[r].held);
        f.most_products = larger(f.most_products, loads[r].products);
    }
    return f;
}

/* Entries of the rows that another process has than before. */
static int64_t moved_entries(const sp_csr *m, int size, const int64_t *cut, const int64_t *older)
{
    int64_t kept = 0;
    for (int r = 0; r < size; r++) {
        const int64_t first = larger(cut[r], older[r]), end = cut[r + 1] < older[r + 1] ? cut[r + 1] : older[r + 1];
        if (end > first) kept += m->row_offsets[end] - m->row_offsets[first];
    }
    return m->nnz - kept;
}

/* Adds this iterand to what processes hold in the iteration that has made it. */
static int64_t most_held(const study *s, const sp_csr *m, int p)
{
    int64_t most = 0;
    for (int r = 0; r < s->sizes[p]; r++)
        most = larger(most, s->loads[p][r].held + m->row_offsets[s->cut[p][r + 1]] - m->row_offsets[s->cut[p][r]]);
    return most;
}

/* ---- tiles ----------------------------------------------------------------------------------------------------- */

static int side_of(int size)
{
    int side = 1;
    while (side * side < size) side++;
    return side * side == size ? side : 0;
}

/* tiles[i * side + j]: the entries in the tile; products[...]: those that its process forms. lengths and names, all 0,
 * have `side` and n * side elements. The stored matrix and its transpose have the same tiles but for i and j. */
static void fill_tiles(const study *s, const sp_csr *m, int side, int64_t *tiles, int64_t *products, int64_t *lengths,
                       int32_t *names)
{
    const int64_t n = m->rows;
    for (int64_t i = 0; i < n; i++) /* names[k * side + b]: entries of column k in block b of rows */
        for (int64_t e = m->row_offsets[i]; e < m->row_offsets[i + 1]; e++)
            names[m->col_indices[e] * side + (int64_t)s->place[i] * side / n]++;
    for (int64_t k = 0; k < n; k++) {
        const int64_t block = (int64_t)s->place[k] * side / n;
        memset(lengths, 0, (size_t)side * sizeof *lengths);
        for (int64_t e = m->row_offsets[k]; e < m->row_offsets[k + 1]; e++)
            lengths[(int64_t)s->place[m->col_indices[e]] * side / n]++;
        for (int j = 0; j < side; j++) tiles[block * side + j] += lengths[j];
        for (int i = 0; i < side; i++)
            for (int j = 0; j < side && names[k * side + i] > 0; j++)
                products[i * side + j] += names[k * side + i] * lengths[j];
    }
}

static figures sum_up_tiles(int side, const int64_t *tiles, const int64_t *products)
{
    figures f = {0};
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            int64_t received = 0;
            for (int k = 0; k < side; k++)
                received += (k != j ? tiles[i * side + k] : 0) + (k != i ? tiles[k * side + j] : 0);
            f.received += received;
            f.most_received = larger(f.most_received, received);
            f.most_held = larger(f.most_held, tiles[i * side + j]);
            f.most_products = larger(f.most_products, products[i * side + j]);
        }
    return f;
}

static sp_status study_tiles(study *s, const sp_csr *m)
{
    int64_t *counts[MOST_SIZES] = {0};
    int32_t *names[MOST_SIZES] = {0};
    sp_status status = SP_OK;
    for (int p = 0; p < s->count; p++) {
        const int64_t side = side_of(s->sizes[p]);
        if (side == 0) continue;
        TRY(sp_calloc(s->context, 2 * side * side + side, sizeof **counts, (void **)&counts[p]));
        TRY(sp_calloc(s->context, m->rows * side, sizeof **names, (void **)&names[p]));
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->threads)
    for (int p = 0; p < s->count; p++) {
        const int side = side_of(s->sizes[p]), tiles = side * side;
        if (side == 0) continue;
        fill_tiles(s, m, side, counts[p], counts[p] + tiles, counts[p] + 2 * tiles, names[p]);
        s->tiles[p] = sum_up_tiles(side, counts[p], counts[p] + tiles);
    }
done:
    for (int p = 0; p < s->count; p++) {
        sp_free(s->context, counts[p]);
        sp_free(s->context, names[p]);
    }
    return status;
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

static void print_field(const char *name, const study *s, const figures *of, size_t offset)
{
    printf(", \"%s\": [", name);
    for (int p = 0; p < s->count; p++)
        printf("%s%lld", p ? ", " : "", (long long)*(const int64_t *)((const char *)&of[p] + offset));
    putchar(']');
}

static void print_figures(const char *name, const study *s, const figures *of)
{
    printf(",\n   \"%s\": {\"processes\": %d", name, s->count);
    print_field("received", s, of, offsetof(figures, received));
    print_field("most_received", s, of, offsetof(figures, most_received));
    print_field("most_rows", s, of, offsetof(figures, most_rows));
    print_field("most_held", s, of, offsetof(figures, most_held));
    print_field("most_products", s, of, offsetof(figures, most_products));
    print_field("moved", s, of, offsetof(figures, moved));
    putchar('}');
}

/* Iteration `number` has made `m`. */
static void end_iteration(study *s, const mcl_iteration *done, const sp_csr *m)
{
    for (int p = 0; p < s->count; p++) s->rows[p].most_held = most_held(s, m, p);
    printf("%s\n  {\"number\": %lld, \"entries\": %lld, \"unpruned\": %lld, \"products\": %lld, \"seconds\": %.3f",
           done->number > 1 ? "," : "", (long long)done->number, (long long)s->nnz, (long long)done->nnz_expanded,
           (long long)done->products, done->seconds);
    print_figures("rows", s, s->rows);
    print_figures("recut", s, s->moved);
    print_figures("tiles", s, s->tiles);
    putchar('}');
    fprintf(stderr, "iteration %lld: %lld entries\n", (long long)done->number, (long long)m->nnz);
}

/* What is kept from iteration to iteration, and the first cut. */
static sp_status prepare(study *s, const sp_csr *m)
{
    int64_t k = 0;
    sp_status status;
    s->threads = omp_get_max_threads();
    for (int p = 0; p < s->count; p++) s->all += s->sizes[p];
    TRY(sp_alloc(s->context, s->all, sizeof *s->members, (void **)&s->members));
    TRY(sp_alloc(s->context, s->threads * m->rows, sizeof *s->named, (void **)&s->named));
    for (int p = 0; p < s->count; p++) {
        const int size = s->sizes[p];
        for (int r = 0; r < size; r++) s->members[k++] = (member){p, r};
        TRY(sp_alloc(s->context, size, sizeof **s->loads, (void **)&s->loads[p]));
        TRY(sp_alloc(s->context, size, sizeof **s->moved_loads, (void **)&s->moved_loads[p]));
        TRY(sp_alloc(s->context, size + 1, sizeof **s->recut, (void **)&s->recut[p]));
        TRY(sp_alloc(s->context, size + 1, sizeof **s->older, (void **)&s->older[p]));
        TRY(sp_calloc(s->context, m->rows + 1, sizeof **s->sums, (void **)&s->sums[p]));
        TRY(cut_rows(s, m, p));
    }
done:
    return status;
}

static bool study_iterand(void *user, const mcl_iteration *iteration, const sp_csr *m)
{
    study *s = user;
    sp_status status;
    if (iteration->number > 0) end_iteration(s, iteration, m);
    else TRY(prepare(s, m));
    study_rows(s, m);
    for (int p = 0; p < s->count; p++) {
        s->rows[p] = sum_up(s->loads[p], s->sizes[p]);
        s->moved[p] = sum_up(s->moved_loads[p], s->sizes[p]);
        s->moved[p].moved = moved_entries(m, s->sizes[p], s->recut[p], s->older[p]);
        s->moved[p].received += s->moved[p].moved;
    }
    TRY(study_tiles(s, m));
    s->nnz = m->nnz;
done:
    s->status = status;
    return status == SP_OK;
}

static sp_status shuffle(study *s, int64_t nodes)
{
    const sp_status status = sp_alloc(s->context, nodes, sizeof *s->place, (void **)&s->place);
    uint64_t state = 1;
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < nodes; i++) {
        const int64_t j = (int64_t)(next64(&state) % (uint64_t)(i + 1));
        s->place[i] = s->place[j];
        s->place[j] = (int32_t)i;
    }
    return SP_OK;
}

static sp_status run(study *s, const char *path, double inflation)
{
    const io_read_options read = {.format = IO_AUTO};
    mcl_options options;
    io_graph graph = {0};
    sp_csr matrix = {0}, start = {0}, limit = {0};
    mcl_run done;
    sp_status status;
    mcl_options_default(&options);
    options.inflation = inflation;
    TRY(io_read_graph(s->context, path, &read, &graph));
    TRY(io_graph_matrix(s->context, &graph, false, SP_COMBINE_MAX, graph.symmetric, &matrix));
    TRY(mcl_start_matrix(s->context, &matrix, NULL, &options, false, &start));
    sp_csr_free(s->context, &matrix);
    TRY(shuffle(s, start.rows));
    printf("{\"nodes\": %lld, \"start_entries\": %lld, \"inflation\": %g, \"sizes\": [", (long long)start.rows,
           (long long)start.nnz, inflation);
    for (int p = 0; p < s->count; p++) printf("%s%d", p ? ", " : "", s->sizes[p]);
    printf("], \"iterations\": [");
    TRY(mcl_iterate(s->context, &start, &options, study_iterand, s, &limit, &done));
    TRY(s->status);
    printf("]}\n");
done:
    io_graph_free(s->context, &graph);
    sp_csr_free(s->context, &matrix);
    sp_csr_free(s->context, &start);
    sp_csr_free(s->context, &limit);
    for (int p = 0; p < s->count; p++) {
        int64_t *const of_size[] = {s->cut[p], s->recut[p], s->older[p], s->sums[p]};
        for (int k = 0; k < 4; k++) sp_free(s->context, of_size[k]);
        sp_free(s->context, s->loads[p]);
        sp_free(s->context, s->moved_loads[p]);
    }
    sp_free(s->context, s->members);
    sp_free(s->context, s->named);
    sp_free(s->context, s->place);
    return status;
}

static bool read_sizes(const char *text, study *s)
{
    char *end;
    do {
        const long size = strtol(text, &end, 10);
        if (end == text || size < 1 || size > 1 << 20 || s->count == MOST_SIZES || (*end && *end != ',')) return false;
        s->sizes[s->count++] = (int)size;
        text = end + 1;
    } while (*end);
    return true;
}

int main(int argc, char **argv)
{
    const sp_context_options cpu = {.device = "cpu"};
    study s = {0};
    const double inflation = argc == 4 ? atof(argv[2]) : 0;
    if (inflation <= 0 || !read_sizes(argv[3], &s)) {
        fputs("usage: volume GRAPH INFLATION P,P,...\n", stderr);
        return 2;
    }
    sp_status status = sp_context_create(&cpu, &s.context);
    if (status == SP_OK) status = run(&s, argv[1], inflation);
    if (status != SP_OK) fprintf(stderr, "volume: %s: %s\n", argv[1], sp_last_error(s.context));
    sp_context_destroy(s.context);
    return status != SP_OK || fflush(stdout) != 0;
}
