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

typedef struct portrait {
    int32_t cluster, hub; /* the member with the greatest weight inside */
    double most;          /* that weight */
    weighted_edge edges[EDGES]; /* the strongest, each once */
    int edge_count;
} portrait;

struct portraying {
    report *report;
    mcl_memberships of;
    portrait *portraits;
    int32_t *place; /* of each cluster in `portraits`; -1: it has none */
    bool hubs;
};

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

static sp_status order_clusters(job *j, const mcl_clustering *c, sized_cluster **order)
{
    const sp_status status = sp_alloc(j->host, c->clusters, sizeof **order, (void **)order);
    if (status != SP_OK) return status;
    for (int64_t k = 0; k < c->clusters; k++) (*order)[k] = (sized_cluster){c->offsets[k + 1] - c->offsets[k], k};
    qsort(*order, (size_t)c->clusters, sizeof **order, by_falling_size);
    return SP_OK;
}

sp_status report_portray(job *j, report_run *run, portraying **p)
{
    const mcl_clustering *c = &run->clustering;
    quality *q = &run->quality;
    sized_cluster *order = NULL;
    sp_status status;
    TRY(sp_calloc(j->host, 1, sizeof **p, (void **)p));
    **p = (portraying){.report = &j->report, .hubs = run == j->report.runs};
    TRY(mcl_memberships_make(j->host, c, &(*p)->of));
    TRY(order_clusters(j, c, &order));
    q->portrait_count = c->clusters < LISTED ? c->clusters : LISTED;
    TRY(sp_calloc(j->host, q->portrait_count, sizeof *q->portraits, (void **)&q->portraits));
    TRY(sp_alloc(j->host, c->clusters, sizeof *(*p)->place, (void **)&(*p)->place));
    for (int64_t k = 0; k < c->clusters; k++) (*p)->place[k] = -1;
    for (int64_t i = 0; i < q->portrait_count; i++) {
        (*p)->place[order[i].number] = (int32_t)i;
        q->portraits[i] = (portrait){.cluster = (int32_t)order[i].number, .most = -1};
    }
    (*p)->portraits = q->portraits;
done:
    sp_free(j->host, order);
    return status;
}

void report_portray_end(job *j, portraying *p)
{
    if (!p) return;
    mcl_memberships_free(j->host, &p->of);
    FREE_ALL(j->host, p->place, p);
}

/* What a member adds to the portrait of its cluster. */
static void portray_member(const portraying *p, const sp_csr *rows, int64_t row, int32_t node, portrait *to)
{
    double inside = 0;
    for (int64_t e = rows->row_offsets[row]; e < rows->row_offsets[row + 1]; e++) {
        const int32_t other = rows->col_indices[e];
        if (other == node || !mcl_is_member(&p->of, other, to->cluster)) continue;
        const double weight = entry_value(rows, e);
        inside += weight;
        if (node < other) keep_edge(to->edges, &to->edge_count, (weighted_edge){node, other, weight});
    }
    if (inside > to->most) {
        to->most = inside;
        to->hub = node;
    }
}

/* The nodes with the most neighbours stay; of equal ones the first. */
static void keep_hub(report *r, const sp_csr *rows, int64_t row, int64_t node)
{
    const int64_t degree = rows->row_offsets[row + 1] - rows->row_offsets[row];
    int64_t at = r->hub_count;
    double weight = 0;
    for (; at > 0 && r->hubs[at - 1].degree < degree; at--) r->hubs[at] = r->hubs[at - 1];
    if (at == HUBS) return;
    for (int64_t e = rows->row_offsets[row]; e < rows->row_offsets[row + 1]; e++) weight += entry_value(rows, e);
    r->hubs[at] = (struct hub){node, degree, weight};
    if (r->hub_count < HUBS) r->hub_count++;
}

void report_portray_rows(portraying *p, int64_t first, const sp_csr *rows)
{
    for (int64_t i = 0; i < rows->rows; i++) {
        for (int64_t k = p->of.starts[first + i]; k < p->of.starts[first + i + 1]; k++)
            if (p->place[p->of.clusters[k]] >= 0)
                portray_member(p, rows, i, (int32_t)(first + i), &p->portraits[p->place[p->of.clusters[k]]]);
        if (p->hubs) keep_hub(p->report, rows, i, first + i);
    }
}

/* Members may fill half of the room, so that one huge cluster leaves some to the others. */
static void put_cluster(json *file, const job *j, const report_run *run, const portrait *shown, int64_t *room)
{
    const mcl_clustering *c = &run->clustering;
    const int64_t k = shown->cluster;
    const mcl_profile *p = &run->quality.profiles[k];
    const int32_t *members = c->members + c->offsets[k];
    const weighted_edge *edges = shown->edges;
    const int count = shown->edge_count;
    json_begin(file, NULL, '{');
    json_count(file, "number", k + 1);
    json_count(file, "size", p->size);
    json_number(file, "density", p->size > 1 ? (double)p->arcs_inside / ((double)p->size * (double)(p->size - 1)) : 0);
    json_number(file, "inside", p->weight_inside);
    json_number(file, "weight", p->weight);
    put_node(file, "hub", j, shown->hub, room);
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
    const quality *q = &run->quality;
    int64_t room = room_of_run(&j->report);
    sized_cluster *order = NULL;
    const sp_status status = order_clusters(j, &run->clustering, &order);
    if (status != SP_OK) return status;
    put_quality(file, q);
    put_sizes(file, order, run->clustering.clusters);
    json_begin(file, "largest_clusters", '[');
    for (int64_t i = 0; i < q->portrait_count && room > 0; i++) put_cluster(file, j, run, &q->portraits[i], &room);
    json_end(file, ']');
    sp_free(j->host, order);
    return SP_OK;
}

/* ---- all runs ------------------------------------------------------------------------------------------- */

static void put_hubs(json *file, const job *j)
{
    const report *r = &j->report;
    int64_t unlimited = 0;
    json_begin(file, "hubs", '[');
    for (int64_t h = 0; h < r->hub_count; h++) {
        json_begin(file, NULL, '[');
        put_node(file, NULL, j, r->hubs[h].node, &unlimited);
        json_count(file, NULL, r->hubs[h].degree);
        json_number(file, NULL, r->hubs[h].weight);
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
