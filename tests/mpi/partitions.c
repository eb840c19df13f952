/* partitions p2000.abc: clusters it in the processes of mpirun, and compares the limit matrix with that of one
 * process, bit for bit. The nodes are in the order of the file, of the communities, or of chance; the rows of a process
 * follow each other in it, as any cut has it, and some processes may have none. Fetched rows may take any memory, or so
 * little that they come in batches. Process 0 prints "N passed, N failed, N skipped".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "io.h"
#include "mcl.h"
#include "mpi_ranks.h"

typedef enum partition { NATURAL, COMMUNITIES, CHANCE, PARTITIONS } partition;

static sp_context *context;
static sp_ranks ranks;
static mcl_options options;
static uint64_t state = 1; /* the same in all processes */
static int64_t batches;    /* of all processes, in the iteration that had most */

static int64_t below(int64_t bound) { return (int64_t)(next64(&state) % (uint64_t)bound); }

static void must(sp_status status)
{
    if (status == SP_OK) return;
    fprintf(stderr, "process %d: %s\n", ranks.rank, sp_last_error(context));
    abort();
}

static void *room(int64_t count, size_t size)
{
    void *made = calloc((size_t)count + 1, size);
    if (!made) abort();
    return made;
}

static sp_csr read_start(const char *path)
{
    const io_read_options read = {.format = IO_AUTO};
    io_graph graph;
    sp_csr matrix, start;
    must(io_read_graph(context, path, &read, &graph));
    must(io_graph_matrix(context, &graph, false, SP_COMBINE_MAX, graph.symmetric, &matrix));
    must(mcl_start_matrix(context, &matrix, NULL, &options, false, &start));
    sp_csr_free(context, &matrix);
    io_graph_free(context, &graph);
    return start;
}

/* NULL: as they are. */
static int32_t *make_order(const sp_csr *start, partition kind)
{
    int32_t *order = NULL;
    if (kind == NATURAL) return NULL;
    if (kind == COMMUNITIES) {
        int32_t *found;
        must(sp_csr_community_order(context, start, &found));
        order = room(start->rows, sizeof *order);
        memcpy(order, found, (size_t)start->rows * sizeof *order);
        sp_free(context, found);
        return order;
    }
    order = room(start->rows, sizeof *order);
    for (int64_t i = 0; i < start->rows; i++) {
        const int64_t j = below(i + 1);
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    return order;
}

/* A fifth of the processes have no rows. */
static int64_t *make_cut(int64_t rows)
{
    int64_t *cut = room(ranks.size, sizeof *cut);
    for (int r = 1; r < ranks.size; r++) {
        const int64_t share = 2 * (rows - cut[r - 1]) / (ranks.size - r + 1);
        cut[r] = below(5) ? cut[r - 1] + below(share + 1) : cut[r - 1];
    }
    cut[ranks.size] = rows;
    return cut;
}

static bool count_batches(void *user, const mcl_iteration *iteration, const sp_csr *iterand)
{
    (void)user, (void)iterand;
    if (iteration->product.batches > batches) batches = iteration->product.batches;
    return true;
}

/* The whole limit at process 0. */
static sp_csr cluster(const sp_csr *start, partition kind, mcl_run *run)
{
    int32_t *order = make_order(start, kind);
    int64_t *cut = make_cut(start->rows);
    const int64_t first = cut[ranks.rank], count = cut[ranks.rank + 1] - first;
    sp_csr numbered, part, limit, whole;
    if (order) must(mcl_renumber(context, start, order, &numbered));
    else must(sp_csr_copy(context, start, SP_HOST, &numbered));
    const int64_t base = numbered.row_offsets[first];
    part = numbered;
    part.rows = count;
    part.nnz = numbered.row_offsets[first + count] - base;
    part.row_offsets = room(count, sizeof *part.row_offsets);
    for (int64_t i = 0; i <= count; i++) part.row_offsets[i] = numbered.row_offsets[first + i] - base;
    part.col_indices += base;
    part.values = (float *)part.values + base;
    const mcl_state begin = {.nnz_input = numbered.nnz, .inflation = (double)(float)options.inflation,
                             .marks = {100, 100, 100}, .order = order, .iterand = &part, .given = cut};
    must(mcl_continue_together(context, &ranks, &begin, &options, count_batches, NULL, &limit, run));
    must(sp_ranks_gather_rows(context, &ranks, &limit, &whole));
    sp_csr_free(context, &limit);
    sp_csr_free(context, &numbered);
    free(part.row_offsets);
    free(order);
    free(cut);
    return whole;
}

static bool same(const sp_csr *a, const sp_csr *b)
{
    return a->rows == b->rows && a->nnz == b->nnz &&
           memcmp(a->row_offsets, b->row_offsets, (size_t)(a->rows + 1) * sizeof *a->row_offsets) == 0 &&
           memcmp(a->col_indices, b->col_indices, (size_t)a->nnz * sizeof *a->col_indices) == 0 &&
           memcmp(a->values, b->values, (size_t)a->nnz * sizeof(float)) == 0;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"the order of the file", "the order of the communities", "an order of chance"};
    static const int64_t memories[] = {0, 1500000}; /* one column of p2000.abc needs 1,439,568 bytes */
    const sp_context_options cpu = {.device = "cpu", .threads = 1};
    mpi_ranks *mpi;
    mcl_run alone, together;
    sp_csr limit = {0};
    int passed = 0, failed = 0;
    if (argc != 2 || mpi_ranks_open(SP_ABI, &mpi)) return 2;
    ranks = mpi->ranks;
    must(sp_context_create(&cpu, &context));
    mcl_options_default(&options);
    sp_csr start = read_start(argv[1]);
    if (ranks.rank == 0) must(mcl_iterate(context, &start, &options, NULL, NULL, &limit, &alone));
    for (partition kind = 0; kind < PARTITIONS; kind++)
        for (int m = 0; m < 2; m++) {
            ranks.memory = memories[m];
            batches = 0;
            sp_csr whole = cluster(&start, kind, &together);
            if (ranks.rank == 0) {
                const bool good = same(&limit, &whole) && alone.iterations == together.iterations &&
                                  (batches > ranks.size) == (m > 0);
                if (good) passed++;
                else failed++;
                if (!good) printf("not the same: %s, %lld bytes, %lld batches\n", names[kind],
                                  (long long)memories[m], (long long)batches);
            }
            sp_csr_free(context, &whole);
        }
    if (ranks.rank == 0) printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    sp_csr_free(context, &limit);
    sp_csr_free(context, &start);
    sp_context_destroy(context);
    mpi->close();
    return failed > 0;
}
