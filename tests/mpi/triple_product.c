/* triple_product GRAPH LABELS QUOTIENT: compares what contract wrote with PETSc's Pᵀ·G·P, in any number of processes.
 * GRAPH and QUOTIENT are general Matrix Market files; LABELS has a group a line, from 0, in the order of the nodes. An
 * entry may differ by rounding. */
#include <math.h>
#include <petscmat.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                            \
    do {                                                       \
        if (call) {                                            \
            fprintf(stderr, "line %d: PETSc failed\n", __LINE__); \
            MPI_Abort(MPI_COMM_WORLD, 2);                      \
        }                                                      \
    } while (0)

static FILE *open_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file) return file;
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return NULL;
}

/* Skips the comments and returns what follows: rows, columns, entries. */
static void read_head(FILE *file, long long sizes[3])
{
    char line[4096];
    while (fgets(line, sizeof line, file) && line[0] == '%') continue;
    if (sscanf(line, "%lld %lld %lld", &sizes[0], &sizes[1], &sizes[2]) != 3) MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Each process keeps the entries of its own rows; repeated ones are added up. */
static Mat read_matrix(const char *path)
{
    FILE *file = open_file(path);
    long long sizes[3], row, column;
    double value;
    PetscInt first, end;
    Mat made;
    read_head(file, sizes);
    CHECK(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, (PetscInt)sizes[0], (PetscInt)sizes[1], 64, NULL,
                       64, NULL, &made));
    CHECK(MatSetOption(made, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    CHECK(MatGetOwnershipRange(made, &first, &end));
    for (long long k = 0; k < sizes[2] && fscanf(file, "%lld %lld %lf", &row, &column, &value) == 3; k++)
        if (row - 1 >= first && row - 1 < end)
            CHECK(MatSetValue(made, (PetscInt)row - 1, (PetscInt)column - 1, value, ADD_VALUES));
    fclose(file);
    CHECK(MatAssemblyBegin(made, MAT_FINAL_ASSEMBLY));
    CHECK(MatAssemblyEnd(made, MAT_FINAL_ASSEMBLY));
    return made;
}

static Mat read_labels(const char *path, Mat graph, Mat quotient)
{
    FILE *file = open_file(path);
    PetscInt nodes, groups, own_nodes, own_groups, first, end;
    Mat made;
    long long label;
    CHECK(MatGetSize(graph, &nodes, NULL));
    CHECK(MatGetLocalSize(graph, &own_nodes, NULL));
    CHECK(MatGetSize(quotient, &groups, NULL));
    CHECK(MatGetLocalSize(quotient, &own_groups, NULL));
    CHECK(MatCreateAIJ(PETSC_COMM_WORLD, own_nodes, own_groups, nodes, groups, 1, NULL, 1, NULL, &made));
    CHECK(MatGetOwnershipRange(made, &first, &end));
    for (PetscInt i = 0; i < nodes && fscanf(file, "%lld", &label) == 1; i++)
        if (i >= first && i < end) CHECK(MatSetValue(made, i, (PetscInt)label, 1, INSERT_VALUES));
    fclose(file);
    CHECK(MatAssemblyBegin(made, MAT_FINAL_ASSEMBLY));
    CHECK(MatAssemblyEnd(made, MAT_FINAL_ASSEMBLY));
    return made;
}

int main(int argc, char **argv)
{
    PetscReal difference, size;
    MatInfo one, other;
    Mat product;
    if (argc != 4 || PetscInitialize(NULL, NULL, NULL, NULL)) return 2;
    Mat graph = read_matrix(argv[1]), quotient = read_matrix(argv[3]);
    Mat labels = read_labels(argv[2], graph, quotient);
    CHECK(MatPtAP(graph, labels, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &product));
    CHECK(MatNorm(product, NORM_INFINITY, &size));
    CHECK(MatGetInfo(quotient, MAT_GLOBAL_SUM, &one));
    CHECK(MatGetInfo(product, MAT_GLOBAL_SUM, &other));
    CHECK(MatAXPY(product, -1, quotient, DIFFERENT_NONZERO_PATTERN));
    CHECK(MatNorm(product, NORM_INFINITY, &difference));
    const int same = one.nz_used == other.nz_used && one.nz_used > 0 && difference <= 1e-12 * size;
    if (!same)
        PetscPrintf(PETSC_COMM_WORLD, "%g entries instead of %g, and they differ by %g of %g\n", one.nz_used,
                    other.nz_used, (double)difference, (double)size);
    MatDestroy(&product);
    MatDestroy(&graph);
    MatDestroy(&quotient);
    MatDestroy(&labels);
    PetscFinalize();
    return !same;
}
