// PageRank: repeats r = d·Pᵀ·r + (1 - d) / n until r no longer changes. P is the graph, with rows scaled to sum 1. A
// product with a vector is a sparse-dense product of one column; one plan serves all iterations.
//
//   c++ pagerank.cpp -o pagerank $(pkg-config --cflags --libs libsparse)
//   ./pagerank graph.txt            an edge FROM TO a line, nodes are numbered from 0
#include <sparse.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using context_handle = std::unique_ptr<sp_context, void (*)(sp_context *)>;
using plan_handle = std::unique_ptr<sp_spmm_plan, void (*)(sp_spmm_plan *)>;

// A matrix whose arrays are released at the end of its scope.
struct matrix : sp_csr {
    explicit matrix(sp_context *c) : sp_csr(), context(c) {}
    matrix(const matrix &) = delete;
    matrix &operator=(const matrix &) = delete;
    ~matrix() { sp_csr_free(context, this); }
    sp_context *context;
};

static void check(sp_context *context, sp_status status)
{
    if (status != SP_OK) throw std::runtime_error(sp_last_error(context));
}

static void read_edges(sp_context *context, const char *path, sp_csr *graph)
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
    const std::int64_t count = static_cast<std::int64_t>(from.size());
    check(context, sp_csr_from_coo(context, nodes, nodes, count, from.data(), to.data(), nullptr, SP_F64,
                                   SP_COMBINE_FIRST, false, graph));
}

static std::vector<double> pagerank(sp_context *context, sp_csr &graph, double damping, int *iterations)
{
    const std::size_t n = static_cast<std::size_t>(graph.rows);
    std::vector<double> out(n), scale(n), rank(n, 1.0 / n), next(n);
    check(context, sp_csr_reduce_rows(context, &graph, SP_COMBINE_SUM, out.data(), SP_HOST));
    for (std::size_t i = 0; i < n; i++) scale[i] = out[i] > 0 ? 1 / out[i] : 0;
    check(context, sp_csr_scale(context, &graph, scale.data(), nullptr, SP_HOST));

    matrix back(context);
    check(context, sp_csr_transpose(context, &graph, &back));
    sp_spmm_plan *made;
    check(context, sp_spmm_plan_create(context, &back, 1, nullptr, &made));
    const plan_handle plan(made, sp_spmm_plan_free);
    double moved = 1;
    for (*iterations = 0; moved > 1e-10 && *iterations < 200; ++*iterations) {
        double lost = 0; // the rank of nodes without outgoing edges
        for (std::size_t i = 0; i < n; i++) lost += out[i] > 0 ? 0 : rank[i];
        const sp_dense x = {graph.rows, 1, 1, rank.data(), SP_DENSE_F64, SP_HOST};
        sp_dense y = {graph.rows, 1, 1, next.data(), SP_DENSE_F64, SP_HOST};
        check(context, sp_spmm_execute(plan.get(), damping, &x, 0, &y));
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
    sp_context *made;
    if (argc != 2) throw std::runtime_error("usage: pagerank graph.txt");
    if (sp_context_create(nullptr, &made) != SP_OK) throw std::runtime_error(sp_last_error(nullptr));
    const context_handle context(made, sp_context_destroy);
    matrix graph(context.get());
    read_edges(context.get(), argv[1], &graph);
    int iterations;
    const std::vector<double> rank = pagerank(context.get(), graph, 0.85, &iterations);
    std::size_t first = 0;
    for (std::size_t i = 0; i < rank.size(); i++)
        if (rank[i] > rank[first]) first = i;
    std::printf("%d iterations, node %zu is first with %.6f\n", iterations, first, rank[first]);
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
