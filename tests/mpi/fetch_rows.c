/* Rows fetched by the functions of mpi/mpi_ranks.c against PETSc's MatCreateSubMatrices and against the matrix itself.
 * To be run by mpirun with any number of processes. Process 0 prints "N passed, N failed, N skipped".
 */
#include <petscmat.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_ranks.h"

static const sp_ranks *ranks;
static uint64_t state;

static uint64_t next(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void must(bool done, const char *what)
{
    if (done) return;
    fprintf(stderr, "process %d: %s\n", ranks ? ranks->rank : -1, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- matrices, the same in all processes --------------------------------------------------------------------- */

static sp_csr random_matrix(int64_t nodes, int64_t most)
{
    const int64_t room = nodes * most + 1;
    sp_csr m = {.rows = nodes, .cols = nodes, .value_type = SP_F32,
                .row_offsets = malloc((size_t)(nodes + 1) * sizeof(int64_t)),
                .col_indices = malloc((size_t)room * sizeof(int32_t)), .values = malloc((size_t)room * sizeof(float))};
    m.row_offsets[0] = 0;
    for (int64_t i = 0; i < nodes; i++) {
        const uint64_t length = next() % 4 ? next() % (uint64_t)(most + 1) : 0; /* a quarter of the rows is empty */
        for (int64_t j = 0; j < nodes && m.nnz - m.row_offsets[i] < (int64_t)length; j++) {
            if (next() % (uint64_t)nodes >= length) continue;
            m.col_indices[m.nnz] = (int32_t)j;
            ((float *)m.values)[m.nnz++] = (float)(1 + next() % 1000) / 7;
        }
        m.row_offsets[i + 1] = m.nnz;
    }
    return m;
}

static void free_matrix(sp_csr *m)
{
    free(m->row_offsets);
    free(m->col_indices);
    free(m->values);
}

/* Any cut, with processes that keep nothing. */
static int64_t *random_cut(int64_t nodes)
{
    int64_t *cut = malloc((size_t)(ranks->size + 1) * sizeof *cut);
    cut[0] = 0;
    for (int r = 1; r < ranks->size; r++)
        cut[r] = next() % 3 ? cut[r - 1] + (int64_t)(next() % (uint64_t)(nodes - cut[r - 1] + 1)) : cut[r - 1];
    cut[ranks->size] = nodes;
    return cut;
}

static sp_csr own_rows(const sp_csr *m, const int64_t *cut)
{
    const int64_t first = cut[ranks->rank], end = cut[ranks->rank + 1], base = m->row_offsets[first];
    sp_csr part = *m;
    part.rows = end - first;
    part.nnz = m->row_offsets[end] - base;
    part.row_offsets = malloc((size_t)(part.rows + 1) * sizeof(int64_t));
    for (int64_t i = first; i <= end; i++) part.row_offsets[i - first] = m->row_offsets[i] - base;
    part.col_indices = m->col_indices + base;
    part.values = (float *)m->values + base;
    return part;
}

/* ---- the oracle ------------------------------------------------------------------------------------------------ */

static bool agrees_with_petsc(const sp_csr *part, int64_t count, const int32_t *wanted, const int64_t *lengths,
                              const int32_t *columns, const float *values)
{
    PetscInt *offsets, *cols, *rows, n;
    PetscScalar *numbers, *found;
    const PetscInt *starts, *indices;
    PetscBool done, same = PETSC_TRUE;
    Mat whole, *sub;
    IS row_set, col_set;
    PetscMalloc4((size_t)part->rows + 1, &offsets, (size_t)part->nnz, &cols, (size_t)part->nnz, &numbers, (size_t)count,
                 &rows);
    for (int64_t i = 0; i <= part->rows; i++) offsets[i] = (PetscInt)part->row_offsets[i];
    for (int64_t e = 0; e < part->nnz; e++) cols[e] = part->col_indices[e];
    for (int64_t e = 0; e < part->nnz; e++) numbers[e] = (PetscScalar)((float *)part->values)[e];
    for (int64_t k = 0; k < count; k++) rows[k] = wanted[k];
    const PetscInt nodes = (PetscInt)part->cols;
    must(!MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, (PetscInt)part->rows, (PetscInt)part->rows, PETSC_DETERMINE,
                                    nodes, offsets, cols, numbers, &whole), "MatCreateMPIAIJWithArrays");
    ISCreateGeneral(PETSC_COMM_SELF, (PetscInt)count, rows, PETSC_COPY_VALUES, &row_set);
    ISCreateStride(PETSC_COMM_SELF, nodes, 0, 1, &col_set);
    must(!MatCreateSubMatrices(whole, 1, &row_set, &col_set, MAT_INITIAL_MATRIX, &sub), "MatCreateSubMatrices");
    MatGetRowIJ(sub[0], 0, PETSC_FALSE, PETSC_FALSE, &n, &starts, &indices, &done);
    MatSeqAIJGetArray(sub[0], &found);
    for (int64_t k = 0; k < count && same; k++)
        if (starts[k + 1] - starts[k] != lengths[k]) same = PETSC_FALSE;
    for (PetscInt e = 0; same && e < starts[n]; e++)
        if (indices[e] != columns[e] || (float)found[e] != values[e]) same = PETSC_FALSE;
    MatSeqAIJRestoreArray(sub[0], &found);
    MatRestoreRowIJ(sub[0], 0, PETSC_FALSE, PETSC_FALSE, &n, &starts, &indices, &done);
    MatDestroySubMatrices(1, &sub);
    ISDestroy(&row_set);
    ISDestroy(&col_set);
    MatDestroy(&whole);
    PetscFree4(offsets, cols, numbers, rows);
    return same;
}

static bool agrees_with_matrix(const sp_csr *m, int64_t count, const int32_t *wanted, const int64_t *lengths,
                               const int32_t *columns, const float *values)
{
    for (int64_t k = 0, at = 0; k < count; at += lengths[k++]) {
        const int64_t first = m->row_offsets[wanted[k]];
        if (lengths[k] != m->row_offsets[wanted[k] + 1] - first) return false;
        if (lengths[k] > 0 &&
            (memcmp(columns + at, m->col_indices + first, (size_t)lengths[k] * sizeof *columns) != 0 ||
                               memcmp(values + at, (float *)m->values + first,
                                      (size_t)lengths[k] * sizeof *values) != 0))
            return false;
    }
    return true;
}

/* ---- cases ----------------------------------------------------------------------------------------------------- */

static bool fetch(int64_t nodes, int64_t most, unsigned kind)
{
    sp_csr m = random_matrix(nodes, most), part;
    int64_t *cut = random_cut(nodes), count = 0, total = 0;
    int32_t *wanted = malloc((size_t)(nodes + 1) * sizeof *wanted);
    int64_t *lengths = malloc((size_t)(nodes + 1) * sizeof *lengths);
    const uint64_t common = state;
    part = own_rows(&m, cut);
    state += (uint64_t)ranks->rank + 1; /* each wants other rows: none, some, or all */
    for (int64_t j = 0; j < nodes; j++)
        if (kind == 2 || (kind == 1 && next() % 3 == 0)) wanted[count++] = (int32_t)j;
    state = common;
    must(!ranks->fetch_lengths(ranks->user, cut, &part, count, wanted, lengths), "fetch_lengths");
    for (int64_t k = 0; k < count; k++) total += lengths[k];
    int32_t *columns = malloc((size_t)(total + 1) * sizeof *columns);
    float *values = malloc((size_t)(total + 1) * sizeof *values);
    must(!ranks->fetch_entries(ranks->user, &part, columns, values), "fetch_entries");
    int good = agrees_with_matrix(&m, count, wanted, lengths, columns, values) &&
               agrees_with_petsc(&part, count, wanted, lengths, columns, values);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    free_matrix(&m);
    free(part.row_offsets);
    free(cut);
    free(wanted);
    free(lengths);
    free(columns);
    free(values);
    return good;
}

/* Bytes of all lengths to and from process 0. */
static bool exchange(int64_t size)
{
    const size_t most = (size_t)size * (size_t)(ranks->size + 1) + 1;
    unsigned char *bytes = malloc(most), *all = malloc(most * (size_t)ranks->size);
    int64_t *counts = malloc((size_t)ranks->size * sizeof *counts), at = 0;
    int good = 1;
    for (int r = 0; r < ranks->size; r++) counts[r] = r == 1 ? 0 : size * (r + 1) / 2;
    memset(bytes, ranks->rank, most);
    must(!ranks->gather(ranks->user, bytes, counts[ranks->rank], counts, all), "gather");
    for (int r = 0; r < ranks->size && ranks->rank == 0; at += counts[r++])
        for (int64_t i = 0; i < counts[r]; i++) good = good && all[at + i] == r % 256;
    for (int64_t i = 0; i < size && ranks->rank == 0; i++) bytes[i] = (unsigned char)(i % 251);
    must(!ranks->broadcast(ranks->user, bytes, size), "broadcast");
    for (int64_t i = 0; i < size; i++) good = good && bytes[i] == i % 251;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    free(bytes);
    free(all);
    free(counts);
    return good;
}

int main(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {7, 3}, {60, 0}, {200, 20}, {1000, 60}};
    mpi_ranks *mpi;
    int passed = 0, failed = 0;
    must(!mpi_ranks_open(SP_ABI, &mpi), "mpi_ranks_open");
    ranks = &mpi->ranks;
    for (unsigned seed = 1; seed <= 3; seed++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (unsigned kind = 0; kind < 3; kind++) {
                state = 100 * seed + s;
                if (fetch(shapes[s][0], shapes[s][1], kind)) passed++;
                else failed++;
            }
    for (int64_t size = 0; size < 100000; size = 3 * size + 1)
        if (exchange(size)) passed++;
        else failed++;
    if (ranks->rank == 0) printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    mpi->close();
    return failed > 0;
}
