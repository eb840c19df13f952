/* Markov clustering on CombBLAS, as HipMCL runs it: the peer of mcl-gpu in several processes.
 * bench/ranks/side_by_side.py builds it with Debian's libcombblas-dev, with CombBLAS's own kernel for local products.
 *
 *   mpirun -n P combblas MATRIX.mtx INFLATION PHASES CLUSTERS
 *
 * P is a square: CombBLAS cuts the matrix into sqrt(P) x sqrt(P) tiles. An iteration is a product by Sparse SUMMA with
 * pruning (the numbers of mcl), scaling, inflation. The product is formed in PHASES parts, one after another, so that
 * less of it is there unpruned. Clusters are the connected components of the limit, as in HipMCL, one a line with the
 * node numbers of the file, largest first. Process 0 prints one line of JSON.
 */
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

/* What the headers of CombBLAS declare and leave to the program. */
double mcl_Abcasttime, mcl_Bbcasttime, mcl_localspgemmtime, mcl_multiwaymergetime, mcl_kselecttime, mcl_prunecolumntime;
double cblas_alltoalltime, cblas_allgathertime, cblas_localspmvtime, cblas_mergeconttime, cblas_transvectime;
int cblas_splits = 1;

#include <CombBLAS.h>

using namespace combblas;
typedef SpDCCols<int64_t, double> Tile;
typedef SpParMat<int64_t, double, Tile> Matrix;
typedef FullyDistVec<int64_t, double> Vector;

/* ---- what a process receives ---------------------------------------------------------------------------------- */

static double received; /* bytes of tiles */

/* Takes the place of MPI's function for all of CombBLAS: tiles travel by broadcasts. */
extern "C" int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Type_size(type, &size);
    if (rank != root) received += static_cast<double>(count) * size;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

/* ---- the process ---------------------------------------------------------------------------------------------- */

static void scale_columns(Matrix &m)
{
    Vector sums = m.Reduce(Column, std::plus<double>(), 0.0);
    sums.Apply([](double sum) { return sum > 0 ? 1 / sum : 0; });
    m.DimApply(Column, sums, std::multiplies<double>());
}

/* Every loop gets the largest value of its column, 1 in an empty one: mcl's default. */
static void set_loops(Matrix &m)
{
    m.RemoveLoops();
    Vector largest = m.Reduce(Column, maximum<double>(), 0.0);
    largest.Apply([](double value) { return value > 0 ? value : 1; });
    m.AddLoops(largest);
}

/* The largest over all columns of (largest entry - sum of squares) * entries. */
static double chaos_of(Matrix &m)
{
    Vector chaos = m.Reduce(Column, maximum<double>(), 0.0);
    chaos -= m.Reduce(Column, std::plus<double>(), 0.0, [](double value) { return value * value; });
    Vector entries = m.Reduce(Column, std::plus<double>(), 0.0, [](double) { return 1.0; });
    chaos.EWiseApply(entries, std::multiplies<double>());
    return chaos.Reduce(maximum<double>(), 0.0);
}

static int iterate(Matrix &m, double inflation, int phases)
{
    const double cutoff = 0.99999 / 10000, recover_mass = 0.9, chaos_limit = 1e-4;
    const int64_t select = 1100, recover = 1400;
    double chaos = 1;
    int iterations = 0;
    scale_columns(m);
    for (; chaos > chaos_limit && iterations < 1000; iterations++) {
        m = MemEfficientSpGEMM<PlusTimesSRing<double, double>, double, Tile>(m, m, phases, cutoff, select, recover,
                                                                             recover_mass, 1, 0);
        scale_columns(m);
        chaos = chaos_of(m);
        m.Apply([inflation](double value) { return std::pow(value, inflation); });
        scale_columns(m);
    }
    return iterations;
}

/* ---- clusters ------------------------------------------------------------------------------------------------- */

/* The elements of all processes, at process 0. */
static std::vector<int64_t> gather(const std::vector<int64_t> &own)
{
    int rank, size, length = static_cast<int>(own.size());
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<int> lengths(size), places(size + 1, 0);
    MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    std::partial_sum(lengths.begin(), lengths.end(), places.begin() + 1);
    std::vector<int64_t> all(rank == 0 ? places[size] : 0);
    MPI_Gatherv(own.data(), length, MPI_INT64_T, all.data(), lengths.data(), places.data(), MPI_INT64_T, 0,
                MPI_COMM_WORLD);
    return all;
}

/* Of the tiles before this process's in its row or column of the grid. */
static int64_t sum_before(int64_t own, MPI_Comm line)
{
    int64_t sum;
    MPI_Scan(&own, &sum, 1, MPI_INT64_T, MPI_SUM, line);
    return sum - own;
}

/* Row and column of each entry of the whole matrix, one after the other, at process 0. */
static std::vector<int64_t> gather_pattern(Matrix &m)
{
    const int64_t row = sum_before(m.getlocalrows(), m.getcommgrid()->GetColWorld());
    const int64_t column = sum_before(m.getlocalcols(), m.getcommgrid()->GetRowWorld());
    SpTuples<int64_t, double> tile(m.seq());
    std::vector<int64_t> own;
    for (int64_t e = 0; e < tile.getnnz(); e++) {
        own.push_back(row + tile.rowindex(e));
        own.push_back(column + tile.colindex(e));
    }
    return gather(own);
}

static int64_t root_of(std::vector<int64_t> &parents, int64_t node)
{
    while (parents[node] != node) node = parents[node] = parents[parents[node]];
    return node;
}

/* The components of the limit, largest first. Returns their number; -1 if the file could not be written. */
static int64_t write_clusters(Matrix &limit, const char *path, int rank)
{
    const std::vector<int64_t> pattern = gather_pattern(limit);
    const int64_t nodes = limit.getnrow();
    if (rank > 0) return 0;
    std::vector<int64_t> parents(nodes);
    std::iota(parents.begin(), parents.end(), 0);
    for (size_t e = 0; e < pattern.size(); e += 2)
        parents[root_of(parents, pattern[e])] = root_of(parents, pattern[e + 1]);
    std::vector<std::vector<int64_t>> clusters(nodes);
    for (int64_t node = 0; node < nodes; node++) clusters[root_of(parents, node)].push_back(node);
    std::stable_sort(clusters.begin(), clusters.end(), [](const auto &a, const auto &b) {
        return a.size() > b.size() || (a.size() == b.size() && !a.empty() && a[0] < b[0]);
    });
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    int64_t count = 0;
    for (; count < nodes && !clusters[count].empty(); count++)
        for (size_t k = 0; k < clusters[count].size(); k++)
            fprintf(file, "%s%lld%s", k ? "\t" : "", static_cast<long long>(clusters[count][k] + 1),
                    k + 1 < clusters[count].size() ? "" : "\n");
    return fclose(file) == 0 ? count : -1;
}

/* ---- a run ---------------------------------------------------------------------------------------------------- */

static void print_figures(int size, int iterations, int64_t clusters, double read, double iterated, const double *all)
{
    printf("{\"processes\": %d, \"iterations\": %d, \"clusters\": %lld, \"read_seconds\": %.3f, "
           "\"iterate_seconds\": %.3f, \"multiply_seconds\": %.3f, \"merge_seconds\": %.3f, \"ranks\": [", size,
           iterations, static_cast<long long>(clusters), read, iterated, mcl_localspgemmtime, mcl_multiwaymergetime);
    for (int r = 0; r < size; r++)
        printf("%s{\"received_bytes\": %.0f, \"peak_bytes\": %.0f}", r ? ", " : "", all[2 * r], all[2 * r + 1]);
    printf("]}\n");
}

static int run(char **argv)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const double began = MPI_Wtime();
    Matrix m(MPI_COMM_WORLD);
    m.ParallelReadMM(argv[1], true, maximum<double>());
    set_loops(m);
    const double read = MPI_Wtime();
    received = 0;
    const int iterations = iterate(m, atof(argv[2]), atoi(argv[3]));
    const double iterated = MPI_Wtime();
    const double bytes = received;
    const int64_t clusters = write_clusters(m, argv[4], rank);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    const double own[] = {bytes, static_cast<double>(used.ru_maxrss) * 1024};
    std::vector<double> all(2 * static_cast<size_t>(size));
    MPI_Gather(own, 2, MPI_DOUBLE, all.data(), 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0 && clusters < 0) perror(argv[4]);
    if (rank == 0) print_figures(size, iterations, clusters, read - began, iterated - read, all.data());
    return clusters < 0;
}

int main(int argc, char **argv)
{
    int level;
    if (argc != 5) {
        fprintf(stderr, "usage: mpirun -n P combblas MATRIX.mtx INFLATION PHASES CLUSTERS\n");
        return 2;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    const int code = run(argv);
    MPI_Finalize();
    return code;
}
