// PageRank: repeats r = d·Pᵀ·r + (1 - d) / n until r no longer changes. P is the graph, with rows scaled to sum 1. A
// product with a vector is a sparse-dense product of one column; one plan serves all iterations.
//
//   c++ pagerank.cpp -o pagerank $(pkg-config --cflags --libs libsparse)
//   ./pagerank graph.txt            an edge FROM TO a line, nodes are numbered from 0
#include <sparse.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

static sparse::csr<double> read_edges(const sparse::context &context, const char *path)
{
    std::ifstream file(path);
    std::vector<std::int32_t> from, to;
    std::int32_t i, j, nodes = 0;
    while (file >> i >> j) {
        from.push_back(i);
        to.push_back(j);
        nodes = std::max({nodes, i + 1, j + 1});
    }
    if (!file.eof()) throw std::runtime_error(std::string(path) + " is no list of edges");
    return sparse::csr<double>::from_triples(context, nodes, nodes, from, to, {}, SP_COMBINE_FIRST);
}

static std::vector<double> pagerank(sparse::csr<double> &graph, double damping, int *iterations)
{
    const std::size_t n = static_cast<std::size_t>(graph.rows());
    const std::vector<double> out = graph.row_sums();
    std::vector<double> scale(n), rank(n, 1.0 / n), next(n);
    for (std::size_t i = 0; i < n; i++) scale[i] = out[i] > 0 ? 1 / out[i] : 0;
    graph.scale(scale);

    const sparse::csr<double> back = graph.transposed();
    const sparse::spmm_plan<double> plan(back);
    double moved = 1;
    for (*iterations = 0; moved > 1e-10 && *iterations < 200; ++*iterations) {
        double lost = 0; // the rank of nodes without outgoing edges
        for (std::size_t i = 0; i < n; i++) lost += out[i] > 0 ? 0 : rank[i];
        plan.multiply(rank, next, 1, damping);
        moved = 0;
        for (std::size_t i = 0; i < n; i++) {
            next[i] += (1 - damping + damping * lost) / n;
            moved += std::fabs(next[i] - rank[i]);
        }
        rank.swap(next);
    }
    return rank;
}

int main(int argc, char **argv)
try {
    if (argc != 2) throw std::runtime_error("usage: pagerank graph.txt");
    const sparse::context context;
    sparse::csr<double> graph = read_edges(context, argv[1]);
    int iterations;
    const std::vector<double> rank = pagerank(graph, 0.85, &iterations);
    std::size_t first = 0;
    for (std::size_t i = 0; i < rank.size(); i++)
        if (rank[i] > rank[first]) first = i;
    std::printf("%d iterations, node %zu is first with %.6f\n", iterations, first, rank[first]);
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
