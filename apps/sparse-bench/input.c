/* The operands of a benchmark: files, and matrices made up. */
#include <stdlib.h>
#include <string.h>

#include "sparse-bench/bench.h"
#include "generate.h"

/* ---- presets ------------------------------------------------------------------------------------------- */

/* Shapes of matrices that papers on SpGEMM measure: with the seed 4 rows, nonzeros, products and nonzeros of the
 * square are within 10 % of the originals' (docs/notebook/README.md). */
static const source squared[] = {
    {.name = "scircuit", .spec = "web:170998,8.2,35,70,500"},
    {.name = "road", .spec = "grid:1180,1180,70"},
    {.name = "web-Google", .spec = "web:916428,8,57,70,600"},
    {.name = "webbase", .spec = "powerlaw:1000005,3.4,6000,67,36"},
    {.name = "protein", .spec = "fem3d:20,20,20,4,5"},
    {.name = "wind-tunnel", .spec = "fem2d:190,191,6"},
    {.name = "rmat16", .spec = "rmat:16,8"},
    {.name = "rmat18", .spec = "rmat:18,8"},
    {.name = "uniform", .spec = "uniform:1000000,16"},
    {.name = "cage15", .spec = "torus:6,6,6,6,6,5,5,5,5"},
};
static const source more_squared[] = {
    {.name = "amazon", .spec = "web:403394,11.2,42,92,100"},
    {.name = "economics", .spec = "powerlaw:206500,6.3,44,20,12"},
    {.name = "cit-Patents", .spec = "uniform:3774768,4"},
    {.name = "wb-edu", .spec = "web:9845725,7.2,72,75,800"},
    {.name = "arrowhead", .spec = "arrow:20000,2,25"},
};

/* One of each kind, small enough for a test. */
static const source small_squared[] = {
    {.name = "small-web", .spec = "web:10000,8,57,70,300"},
    {.name = "small-road", .spec = "grid:150,150,70"},
    {.name = "small-powerlaw", .spec = "powerlaw:10000,3.4,400,67,36"},
    {.name = "small-fem3d", .spec = "fem3d:7,7,7,4,5"},
    {.name = "small-fem2d", .spec = "fem2d:30,30,6"},
    {.name = "small-rmat", .spec = "rmat:11,8"},
    {.name = "small-uniform", .spec = "uniform:10000,16"},
    {.name = "small-torus", .spec = "torus:5,5,5,5,5"},
    {.name = "small-arrowhead", .spec = "arrow:2000,2,25"},
    {.name = "small-cluster", .spec = "cluster:2000,40"},
};

/* Graphs of the sizes, degrees and communities of those on which papers on SpMM measure. */
static const source aggregated[] = {
    {.name = "molecules", .spec = "molecules:1900000,20"},
    {.name = "rmat17", .spec = "rmat:17,16"},
    {.name = "flickr", .spec = "community:89250,10.2,1900,50,900,60,1"},
    {.name = "rmat18", .spec = "rmat:18,80"},
    {.name = "reddit", .spec = "community:232965,510,60000,50,4660,80,1"},
    {.name = "rmat20", .spec = "rmat:20,80"},
    {.name = "uniform", .spec = "uniform:500000,200"},
    {.name = "reddit-ordered", .spec = "community:232965,510,60000,50,4660,80,0"},
    {.name = "products", .spec = "community:2449029,56,12000,50,500,80,1"},
};

/* Nodes and entries of the graphs of Accel-GCN's Table I (Xie et al. 2023), within 3 %; degrees by a power law up to
 * the largest that are known of them, before repeated entries are merged; communities by the kind of the graph. Ids
 * are shuffled, except in co-purchases and in sets of many small graphs. */
static const source accel_gcn[] = {
    {.name = "am", .spec = "community:881680,6.63,10000,60,500,50,1"},
    {.name = "amazon0601", .spec = "community:403394,13.9,2752,45,500,70,0"},
    {.name = "Artist", .spec = "community:50515,33.35,1469,40,500,60,1"},
    {.name = "Arxiv", .spec = "community:169343,7.56,13161,70,400,50,1"},
    {.name = "Citation", .spec = "community:2927963,10.65,10000,55,500,50,1"},
    {.name = "Collab", .spec = "community:235868,10.2,671,40,400,80,1"},
    {.name = "com-amazon", .spec = "community:334863,5.68,549,40,150,80,1"},
    {.name = "OVCAR-8H", .spec = "molecules:1889542,25"},
    {.name = "PRODUCTS", .spec = "community:2449029,56.8,17481,50,500,80,1"},
    {.name = "Pubmed", .spec = "community:19717,5.16,171,40,100,70,1"},
    {.name = "PPA", .spec = "community:576289,77,3241,40,1000,70,1"},
    {.name = "Reddit", .spec = "community:232965,558,60000,50,4660,80,1"},
    {.name = "SW-620H", .spec = "molecules:1888584,25"},
    {.name = "TWITTER-Partial", .spec = "community:580768,3.4,8,0,4,100,0"},
    {.name = "wikikg2", .spec = "community:2500604,6.87,200000,75,1000,30,1"},
    {.name = "Yelp", .spec = "community:716847,20,4886,45,300,50,1"},
    {.name = "Yeast", .spec = "molecules:1710902,40"},
    {.name = "youtube", .spec = "community:1138499,5.5,28754,70,1000,40,1"},
};
/* The same of BiKD's Table 1 (Kim et al. 2026), with its feature lengths. Kronecker graphs of 97 edges a node have its
 * 81 to 87 when repeated ones are merged; networks that grow by preferential attachment have degrees in proportion to
 * u^(-1/2). DBLP and HW are the clustered ones. Three are smaller than the paper's, as their names say: the Mycielski
 * graph is of order 17, not 18 (301 million entries), the others have 200 and 120 entries a row, not 400 and 168. */
static const source bikd[] = {
    {.name = "MC17", .spec = "mycielski:17"},
    {.name = "RD", .spec = "community:232965,555,60000,50,4660,80,1"},
    {.name = "KG18", .spec = "rmat:18,97"},
    {.name = "SYN500k", .spec = "powerlaw:500000,201,70710,50,100"},
    {.name = "KG19", .spec = "rmat:19,97"},
    {.name = "DBLP", .spec = "community:540486,68,3299,45,300,90,0"},
    {.name = "SYN1M-200", .spec = "powerlaw:1000000,201,100000,50,100"},
    {.name = "KG20", .spec = "rmat:20,97"},
    {.name = "HW", .spec = "community:1139905,109,11467,45,1000,80,0"},
    {.name = "AP-120", .spec = "community:1569960,128,60000,60,2000,60,1"},
    {.name = "KG21", .spec = "rmat:21,97"},
    {.name = "OK", .spec = "community:3072441,42.2,33313,50,2000,50,1"},
};
static const int64_t bikd_widths[] = {384, 602, 384, 384, 384, 384, 384, 384, 384, 200, 384, 384};
_Static_assert(sizeof bikd_widths / sizeof *bikd_widths == sizeof bikd / sizeof *bikd, "a width a graph");

/* Small ones of each kind. */
static const source small_aggregated[] = {
    {.name = "small-molecules", .spec = "molecules:20000,20"},
    {.name = "small-rmat", .spec = "rmat:12,16"},
    {.name = "small-flickr", .spec = "community:3000,10.2,300,50,100,60,1"},
    {.name = "small-reddit", .spec = "community:1500,100,900,50,300,80,1"},
    {.name = "small-uniform", .spec = "uniform:3000,60"},
    {.name = "small-reddit-ordered", .spec = "community:1500,100,900,50,300,80,0"},
};

/* Graphs of the sizes of those on which contraction by sorting has been measured; nodes and edges within 3 %. */
static const source contracted[] = {
    {.name = "rmat20", .spec = "rmat:20,19"},
    {.name = "uniform20", .spec = "uniform:1048576,18"},
    {.name = "rmat22", .spec = "rmat:22,22"},
};

/* Small ones; groups of the last can be its communities. */
static const source small_contracted[] = {
    {.name = "small-rmat", .spec = "rmat:11,16"},
    {.name = "small-uniform", .spec = "uniform:2000,18"},
    {.name = "small-community", .spec = "community:2000,20,300,50,100,80,0"},
};

/* What gnn convert generates under these names. */
static const source trained[] = {
    {.name = "flickr", .spec = "flickr"},
    {.name = "reddit", .spec = "reddit"},
};

static const source small_trained[] = {
    {.name = "small-uniform", .spec = "uniform:2000,5"},
    {.name = "small-rmat", .spec = "rmat:11,8"},
};

/* The sets of each command; NULL: of names that are in none. */
#define SET(list) list, sizeof list / sizeof *list
static const struct {
    bench_kind kind;
    const char *name;
    const source *list;
    int count;
} sets[] = {
    {BENCH_SPGEMM, "paper", SET(squared)},
    {BENCH_SPGEMM, NULL, SET(more_squared)},
    {BENCH_SPGEMM, "small", SET(small_squared)},
    {BENCH_SPMM, "paper", SET(aggregated)},
    {BENCH_SPMM, "accel-gcn", SET(accel_gcn)},
    {BENCH_SPMM, "bikd", SET(bikd)},
    {BENCH_SPMM, "small", SET(small_aggregated)},
    {BENCH_CONTRACT, "paper", SET(contracted)},
    {BENCH_CONTRACT, "small", SET(small_contracted)},
    {BENCH_GNN, "paper", SET(trained)},
    {BENCH_GNN, "small", SET(small_trained)},
};
#undef SET
enum { SETS = sizeof sets / sizeof *sets };

static bool is_set(int index, const char *name) { return sets[index].name && strcmp(sets[index].name, name) == 0; }

const source *preset_at(bench_kind kind, int index)
{
    for (int i = 0; i < SETS; i++) {
        if (sets[i].kind != kind || is_set(i, "small")) continue;
        if (index < sets[i].count) return &sets[i].list[index];
        index -= sets[i].count;
    }
    return NULL;
}

const source *preset_named(bench_kind kind, const char *name)
{
    for (int i = 0; preset_at(kind, i); i++)
        if (strcmp(preset_at(kind, i)->name, name) == 0) return preset_at(kind, i);
    /* square ones are graphs */
    return kind == BENCH_CONTRACT || kind == BENCH_COARSEN ? preset_named(BENCH_SPGEMM, name) : NULL;
}

const source *preset_of_set(bench_kind kind, const char *set, int index)
{
    static const source *const surveys[] = {survey_spgemm, survey_spmm, survey_contract}; /* by bench_kind */
    if (strcmp(set, "survey") == 0 && kind <= BENCH_CONTRACT)
        return surveys[kind][index].name ? &surveys[kind][index] : NULL;
    for (int i = 0; i < SETS; i++)
        if (sets[i].kind == kind && is_set(i, set)) return index < sets[i].count ? &sets[i].list[index] : NULL;
    return NULL;
}

int64_t preset_width(const source *preset)
{
    for (size_t i = 0; i < sizeof bikd / sizeof *bikd; i++)
        if (preset->spec && preset->spec == bikd[i].spec) return bikd_widths[i];
    return 0;
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
    FREE_ALL(context, nodes, place);
    return status;
}

/* Edge lists are taken as directed, an entry a line, as in the collections that such files come from. Values may be
 * negative: this is arithmetic, not similarity. Of repeated entries the first counts. */
static sp_status read_file(sp_context *context, const char *path, const bench_options *options, sp_csr *matrix)
{
    const io_read_options reading = {.any_sign = true, .values = options->type};
    io_graph g = {0};
    sp_status status = io_read_graph(context, path, &reading, &g);
    if (status != SP_OK) return status;
    TRY(io_graph_spread(context, &g));
    const bool by_column = g.format == IO_MTX || g.format == IO_NPZ || g.format == IO_NATIVE,
               list = g.format == IO_ABC || g.format == IO_CSV;
    if (list && g.names.count > 0) TRY(order_nodes(context, &g));
    TRY(sp_csr_from_coo(context, &(sp_coo){.rows = g.nodes, .cols = g.nodes, .count = g.arcs,
                                           .row_indices = by_column ? g.heads : g.tails,
                                           .col_indices = by_column ? g.tails : g.heads, .values = g.weights,
                                           .value_type = options->type}, SP_COMBINE_FIRST, g.symmetric && !list,
                        matrix));
done:
    io_graph_free(context, &g);
    return status;
}

const char *source_name(const source *from)
{
    const char *slash = from->spec ? NULL : strrchr(from->name, '/');
    return slash ? slash + 1 : from->name;
}

sp_status input_load(sp_context *context, const source *from, const bench_options *options, sp_csr *matrix)
{
    memset(matrix, 0, sizeof *matrix);
    if (from->spec) return generate_matrix(context, from->spec, from->seed, options->type, matrix);
    return read_file(context, from->name, options, matrix);
}

sp_status values_or_ones(sp_context *context, const sp_csr *matrix, const void **values, void **ones)
{
    *values = matrix->values;
    *ones = NULL;
    if (matrix->values) return SP_OK;
    const bool single = matrix->value_type == SP_F32;
    const sp_status status = sp_alloc(context, matrix->nnz, single ? sizeof(float) : sizeof(double), ones);
    for (int64_t k = 0; status == SP_OK && k < matrix->nnz; k++)
        if (single) ((float *)*ones)[k] = 1;
        else ((double *)*ones)[k] = 1;
    *values = *ones;
    return status;
}
