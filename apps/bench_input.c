/* The operands of a benchmark: files, and matrices made up. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* ---- presets ------------------------------------------------------------------------------------------- */

/* Shapes of matrices that papers on SpGEMM measure: with the seed 4 rows, nonzeros, products and nonzeros of the
 * square are those of the originals' twins within 10 % (docs/performance.md). The first ten are the set "paper". */
static const source presets[] = {
    {"scircuit", "web:170998,8.2,35,70,500"},
    {"road", "grid:1180,1180,70"},
    {"web-Google", "web:916428,8,57,70,600"},
    {"webbase", "powerlaw:1000005,3.4,6000,67,36"},
    {"protein", "fem3d:20,20,20,4,5"},
    {"wind-tunnel", "fem2d:190,191,6"},
    {"rmat16", "rmat:16,8"},
    {"rmat18", "rmat:18,8"},
    {"uniform", "uniform:1000000,16"},
    {"cage15", "torus:6,6,6,6,6,5,5,5,5"},
    {"amazon", "web:403394,11.2,42,92,100"},
    {"economics", "powerlaw:206500,6.3,44,20,12"},
    {"cit-Patents", "uniform:3774768,4"},
    {"wb-edu", "web:9845725,7.2,72,75,800"},
    {"arrowhead", "arrow:20000,2,25"},
};
enum { PRESETS = sizeof presets / sizeof *presets, PAPER = 10 };

/* One of each kind, small enough for a test. */
static const source small[] = {
    {"small-web", "web:10000,8,57,70,300"},
    {"small-road", "grid:150,150,70"},
    {"small-powerlaw", "powerlaw:10000,3.4,400,67,36"},
    {"small-fem3d", "fem3d:7,7,7,4,5"},
    {"small-fem2d", "fem2d:30,30,6"},
    {"small-rmat", "rmat:11,8"},
    {"small-uniform", "uniform:10000,16"},
    {"small-torus", "torus:5,5,5,5,5"},
    {"small-arrowhead", "arrow:2000,2,25"},
    {"small-cluster", "cluster:2000,40"},
};
enum { SMALL = sizeof small / sizeof *small };

/* Graphs of the sizes, degrees and communities of those on which papers on SpMM measure. All are "paper". */
static const source graphs[] = {
    {"molecules", "molecules:1900000,20"},
    {"rmat17", "rmat:17,16"},
    {"flickr", "community:89250,10.2,1900,50,900,60,1"},
    {"rmat18", "rmat:18,80"},
    {"reddit", "community:232965,510,60000,50,4660,80,1"},
    {"rmat20", "rmat:20,80"},
    {"uniform", "uniform:500000,200"},
    {"reddit-ordered", "community:232965,510,60000,50,4660,80,0"},
    {"products", "community:2449029,56,12000,50,500,80,1"},
};
enum { GRAPHS = sizeof graphs / sizeof *graphs };

/* The same in small. */
static const source small_graphs[] = {
    {"small-molecules", "molecules:20000,20"},
    {"small-rmat", "rmat:12,16"},
    {"small-flickr", "community:3000,10.2,300,50,100,60,1"},
    {"small-reddit", "community:1500,100,900,50,300,80,1"},
    {"small-uniform", "uniform:3000,60"},
    {"small-reddit-ordered", "community:1500,100,900,50,300,80,0"},
};
enum { SMALL_GRAPHS = sizeof small_graphs / sizeof *small_graphs };

/* Graphs of the sizes of those on which contraction by sorting has been measured; nodes and edges within 3 %. */
static const source contracted[] = {
    {"rmat20", "rmat:20,19"},
    {"uniform20", "uniform:1048576,18"},
    {"rmat22", "rmat:22,22"},
};
enum { CONTRACTED = sizeof contracted / sizeof *contracted };

/* Small ones; groups of the last can be its communities. */
static const source small_contracted[] = {
    {"small-rmat", "rmat:11,16"},
    {"small-uniform", "uniform:2000,18"},
    {"small-community", "community:2000,20,300,50,100,80,0"},
};
enum { SMALL_CONTRACTED = sizeof small_contracted / sizeof *small_contracted };

/* What gnn convert generates under these names. */
static const source trained[] = {
    {"flickr", "flickr"},
    {"reddit", "reddit"},
};
enum { TRAINED = sizeof trained / sizeof *trained };

static const source small_trained[] = {
    {"small-uniform", "uniform:2000,5"},
    {"small-rmat", "rmat:11,8"},
};
enum { SMALL_TRAINED = sizeof small_trained / sizeof *small_trained };

/* Of each command all presets, how many of them are "paper", and what is "small". */
static const struct {
    const source *all;
    int count, paper;
    const source *small;
    int small_count;
} kinds[] = {
    [BENCH_SPGEMM] = {presets, PRESETS, PAPER, small, SMALL},
    [BENCH_SPMM] = {graphs, GRAPHS, GRAPHS, small_graphs, SMALL_GRAPHS},
    [BENCH_CONTRACT] = {contracted, CONTRACTED, CONTRACTED, small_contracted, SMALL_CONTRACTED},
    [BENCH_GNN] = {trained, TRAINED, TRAINED, small_trained, SMALL_TRAINED},
};

const source *preset_at(bench_kind kind, int index)
{
    return index < kinds[kind].count ? &kinds[kind].all[index] : NULL;
}

const source *preset_named(bench_kind kind, const char *name)
{
    for (int i = 0; preset_at(kind, i); i++)
        if (strcmp(preset_at(kind, i)->name, name) == 0) return preset_at(kind, i);
    return kind == BENCH_CONTRACT ? preset_named(BENCH_SPGEMM, name) : NULL; /* square ones are graphs */
}

const source *preset_of_set(bench_kind kind, const char *set, int index)
{
    if (strcmp(set, "paper") == 0) return index < kinds[kind].paper ? preset_at(kind, index) : NULL;
    if (strcmp(set, "small") == 0) return index < kinds[kind].small_count ? &kinds[kind].small[index] : NULL;
    return NULL;
}

/* ---- files --------------------------------------------------------------------------------------------- */

typedef struct numbered {
    int64_t number;
    int32_t node;
} numbered;

static int by_number(const void *left, const void *right)
{
    const numbered *a = left, *b = right;
    return a->number != b->number ? (a->number > b->number) - (a->number < b->number)
                                  : (a->node > b->node) - (a->node < b->node);
}

/* Nodes whose labels are numbers come in the order of these, not in that of their first edges, because the order of
 * rows decides what caches see. Leaves the edges alone when a label is no number. */
static sp_status order_nodes(sp_context *context, io_graph *g)
{
    numbered *nodes = NULL;
    int32_t *place = NULL;
    sp_status status;
    TRY(sp_alloc(context, g->nodes, sizeof *nodes, (void **)&nodes));
    TRY(sp_alloc(context, g->nodes, sizeof *place, (void **)&place));
    for (int64_t i = 0; i < g->nodes; i++) {
        nodes[i].node = (int32_t)i;
        if (!read_integer(io_name(&g->names, i), &nodes[i].number)) goto done;
    }
    qsort(nodes, (size_t)g->nodes, sizeof *nodes, by_number);
    for (int64_t i = 0; i < g->nodes; i++) place[nodes[i].node] = (int32_t)i;
    for (int64_t e = 0; e < g->arcs; e++) {
        g->tails[e] = place[g->tails[e]];
        g->heads[e] = place[g->heads[e]];
    }
done:
    sp_free(context, nodes);
    sp_free(context, place);
    return status;
}

/* Edge lists are taken as directed, an entry a line, as in the collections that such files come from. Values may be
 * negative: this is arithmetic, not similarity. Of repeated entries the first counts. */
static sp_status read_file(sp_context *context, const char *path, const bench_options *options, sp_csr *matrix)
{
    const io_read_options reading = {.any_sign = true};
    io_graph g = {0};
    double *wide = NULL;
    sp_status status = io_read_graph(context, path, &reading, &g);
    if (status != SP_OK) return status;
    const bool by_column = g.format == IO_MTX || g.format == IO_NATIVE, list = g.format == IO_ABC;
    if (list && g.names.count > 0) TRY(order_nodes(context, &g));
    const void *values = g.weights;
    if (options->type == SP_F64) {
        TRY(sp_alloc(context, g.arcs, sizeof *wide, (void **)&wide));
        for (int64_t e = 0; e < g.arcs; e++) wide[e] = (double)g.weights[e];
        values = wide;
    }
    TRY(sp_csr_from_coo(context, g.nodes, g.nodes, g.arcs, by_column ? g.heads : g.tails,
                        by_column ? g.tails : g.heads, values, options->type, SP_COMBINE_FIRST, g.symmetric && !list,
                        matrix));
done:
    sp_free(context, wide);
    io_graph_free(context, &g);
    return status;
}

sp_status input_load(sp_context *context, const source *from, const bench_options *options, sp_csr *matrix)
{
    memset(matrix, 0, sizeof *matrix);
    if (from->spec) return sp_generate(context, from->spec, options->seed, options->type, matrix);
    return read_file(context, from->name, options, matrix);
}
