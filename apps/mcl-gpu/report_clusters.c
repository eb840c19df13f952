/* What the report says of the clusters: figures, sizes, the largest with members and edges, hubs, comparisons. All runs
 * together list as many clusters, members and edges as PAGE_BYTES hold, so that a page stays small however large the
 * network is. */
#include <stdlib.h>
#include <string.h>

#include "base/value.h"
#include "common/json.h"
#include "job.h"

enum {
    PAGE_BYTES = 1900000, /* a page with its script is below 2 MB */
    RUN_BYTES = 10000,    /* of the figures and sizes of a run */
    STEP_BYTES = 600,     /* of an iteration */
    CLUSTER_BYTES = 240,  /* of a cluster without names */
    EDGE_BYTES = 48,      /* of an edge without names */
    LISTED = 500,         /* clusters of a run */
    EDGES = 5,            /* of a cluster */
    HUBS = 10,
    NAME_TEXT = 256       /* longer names are cut short */
};

static void put_node(json *file, const char *key, const job *j, int64_t node, int64_t *room)
{
    char name[NAME_TEXT];
    json_text(file, key, job_node_name(j, node, name, sizeof name));
    *room -= json_text_bytes(name) + 2;
}

/* The bytes that a run may fill with clusters. */
static int64_t room_of_run(const report *r)
{
    int64_t room = PAGE_BYTES;
    for (int i = 0; i < r->run_count; i++) room -= RUN_BYTES + STEP_BYTES * r->runs[i].iteration_count;
    return room / r->run_count;
}

/* ---- largest clusters ----------------------------------------------------------------------------------- */

typedef struct weighted_edge {
    int32_t tail, head;
    double weight;
} weighted_edge;

/* Keeps the heaviest, in falling order; of equal ones the first. */
static void keep_edge(weighted_edge *edges, int *count, weighted_edge edge)
{
    int at = *count < EDGES ? *count : EDGES - 1;
    if (*count == EDGES && edges[at].weight >= edge.weight) return;
    if (*count < EDGES) ++*count;
    for (; at > 0 && edges[at - 1].weight < edge.weight; at--) edges[at] = edges[at - 1];
    edges[at] = edge;
}

/* The strongest edges of a cluster, each once, and the member with the greatest weight inside; `mark` has `number` for
 * members. */
static int32_t inspect(const sp_csr *graph, const int32_t *members, int64_t size, const int32_t *mark, int32_t number,
                       weighted_edge *edges, int *count)
{
    int32_t hub = members[0];
    double most = -1;
    *count = 0;
    for (int64_t i = 0; i < size; i++) {
        const int32_t node = members[i];
        double inside = 0;
        for (int64_t e = graph->row_offsets[node]; e < graph->row_offsets[node + 1]; e++) {
            const int32_t other = graph->col_indices[e];
            if (other == node || mark[other] != number) continue;
            const double weight = entry_value(graph, e);
            inside += weight;
            if (node < other) keep_edge(edges, count, (weighted_edge){node, other, weight});
        }
        if (inside > most) {
            most = inside;
            hub = node;
        }
    }
    return hub;
}

/* Members may fill half of the room, so that one huge cluster leaves some to the others. */
static void put_cluster(json *file, const job *j, const report_run *run, int64_t k, int32_t *mark, int64_t *room)
{
    const mcl_clustering *c = &run->clustering;
    const mcl_profile *p = &run->quality.profiles[k];
    const int32_t *members = c->members + c->offsets[k];
    weighted_edge edges[EDGES];
    int count;
    for (int64_t i = 0; i < p->size; i++) mark[members[i]] = (int32_t)(k + 1);
    const int32_t hub = inspect(&j->graph, members, p->size, mark, (int32_t)(k + 1), edges, &count);
    json_begin(file, NULL, '{');
    json_count(file, "number", k + 1);
    json_count(file, "size", p->size);
    json_number(file, "density", p->size > 1 ? (double)p->arcs_inside / ((double)p->size * (double)(p->size - 1)) : 0);
    json_number(file, "inside", p->weight_inside);
    json_number(file, "weight", p->weight);
    put_node(file, "hub", j, hub, room);
    *room -= CLUSTER_BYTES + count * EDGE_BYTES;
    json_begin(file, "edges", '[');
    for (int i = 0; i < count; i++) {
        json_begin(file, NULL, '[');
        put_node(file, NULL, j, edges[i].tail, room);
        put_node(file, NULL, j, edges[i].head, room);
        json_number(file, NULL, edges[i].weight);
        json_end(file, ']');
    }
    json_end(file, ']');
    const int64_t left = *room / 2;
    json_begin(file, "members", '[');
    for (int64_t i = 0; i < p->size && *room > left; i++) put_node(file, NULL, j, members[i], room);
    json_end(file, ']');
    json_end(file, '}');
}

typedef struct sized_cluster {
    int64_t size, number;
} sized_cluster;

/* Ties in their order. */
static int by_falling_size(const void *a, const void *b)
{
    const sized_cluster *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

/* [size, how many clusters have it] */
static void put_sizes(json *file, const sized_cluster *order, int64_t clusters)
{
    json_begin(file, "sizes", '[');
    for (int64_t first = 0, last; first < clusters; first = last) {
        for (last = first; last < clusters && order[last].size == order[first].size;) last++;
        json_counts(file, NULL, (int64_t[]){order[first].size, last - first}, 2);
    }
    json_end(file, ']');
}

static void put_quality(json *file, const quality *q)
{
    json_begin(file, "quality", '{');
    json_number(file, "modularity", q->modularity);
    json_number(file, "efficiency", q->measures.efficiency);
    json_number(file, "mass_fraction", q->measures.mass_fraction);
    json_number(file, "area_fraction", q->measures.area_fraction);
    json_number(file, "coverage", q->coverage);
    json_count(file, "median", q->measures.median);
    json_end(file, '}');
}

sp_status report_put_clusters(job *j, const report_run *run, json *file)
{
    const mcl_clustering *c = &run->clustering;
    int64_t room = room_of_run(&j->report);
    sized_cluster *order = NULL;
    int32_t *mark = NULL;
    sp_status status;
    TRY(sp_alloc(j->host, c->clusters, sizeof *order, (void **)&order));
    TRY(sp_calloc(j->host, c->nodes, sizeof *mark, (void **)&mark));
    for (int64_t k = 0; k < c->clusters; k++) order[k] = (sized_cluster){c->offsets[k + 1] - c->offsets[k], k};
    qsort(order, (size_t)c->clusters, sizeof *order, by_falling_size);
    put_quality(file, &run->quality);
    put_sizes(file, order, c->clusters);
    json_begin(file, "largest_clusters", '[');
    for (int64_t i = 0; i < c->clusters && i < LISTED && room > 0; i++)
        put_cluster(file, j, run, order[i].number, mark, &room);
    json_end(file, ']');
done:
    sp_free(j->host, order);
    sp_free(j->host, mark);
    return status;
}

/* ---- all runs ------------------------------------------------------------------------------------------- */

/* The nodes with the most neighbours; of equal ones the first. */
static void put_hubs(json *file, const job *j)
{
    const sp_csr *g = &j->graph;
    int64_t hubs[HUBS + 1], count = 0, unlimited = 0;
    for (int64_t i = 0; i < g->rows; i++) {
        const int64_t degree = g->row_offsets[i + 1] - g->row_offsets[i];
        int64_t at = count;
        for (; at > 0 && g->row_offsets[hubs[at - 1] + 1] - g->row_offsets[hubs[at - 1]] < degree; at--)
            hubs[at] = hubs[at - 1];
        hubs[at] = i;
        if (count < HUBS) count++;
    }
    json_begin(file, "hubs", '[');
    for (int64_t h = 0; h < count; h++) {
        double weight = 0;
        for (int64_t e = g->row_offsets[hubs[h]]; e < g->row_offsets[hubs[h] + 1]; e++) weight += entry_value(g, e);
        json_begin(file, NULL, '[');
        put_node(file, NULL, j, hubs[h], &unlimited);
        json_count(file, NULL, g->row_offsets[hubs[h] + 1] - g->row_offsets[hubs[h]]);
        json_number(file, NULL, weight);
        json_end(file, ']');
    }
    json_end(file, ']');
}

sp_status report_put_comparison(job *j, json *file)
{
    char advice[ADVICE_TEXT];
    const double advised = quality_advise(j, advice);
    put_hubs(file, j);
    json_begin(file, "comparison", '[');
    for (int i = 1; i < j->report.run_count; i++) {
        mcl_distance d;
        const sp_status status = quality_compare(j, i - 1, i, &d);
        if (status != SP_OK) return status;
        json_begin(file, NULL, '{');
        json_counts(file, "moved", (int64_t[]){d.moved_first, d.moved_second}, 2);
        json_numbers(file, "information", (double[]){d.information_first, d.information_second}, 2);
        json_end(file, '}');
    }
    json_end(file, ']');
    if (advice[0]) json_text(file, "advice", advice);
    if (advised > 0) json_number(file, "advised", advised);
    return SP_OK;
}
