/* Figures of a labelling as a whole: cut, coverage, modularity, conductance, balance, sizes. O(nnz).
 *
 *   modularity   undirected: Σ over groups of inside / w - (volume / 2w)²; directed: inside / w - out · in / w²
 *   conductance  of a group: cut / min(volume, volume of all others)
 *
 * with w the weight of all edges and the volume the weight of edges at their ends: undirected edges count at both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Entries of G that begin at one node, or at the nodes of one group. */
typedef struct tally {
    double inside, loops, cut;           /* weights; `inside` without loops */
    double enters;                       /* directed: weight of all entries that end there */
    int64_t entries, loop_entries, cuts; /* `entries` are all of them */
    int64_t size;
} tally;

typedef struct judge_state {
    const sp_csr *g;
    const int32_t *labels;
    const int64_t *weights;
    int64_t groups;
    int constraints;
    bool undirected;
    tally *node, *group;
    double *load; /* of node weights: groups x constraints */
    int64_t *sizes;
} judge_state;

static tally tally_node(const judge_state *s, int64_t node, bool *negative)
{
    const sp_csr *g = s->g;
    tally sum = {.size = 1};
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const int32_t other = s->labels[g->col_indices[k]];
        const double value = entry_value(g, k);
        if (other < 0) continue;
        *negative |= value < 0;
        sum.entries++;
        if (g->col_indices[k] == node) {
            sum.loops += value;
            sum.loop_entries++;
        } else if (other == s->labels[node]) {
            sum.inside += value;
        } else {
            sum.cut += value;
            sum.cuts++;
        }
    }
    return sum;
}

/* In the order of the nodes, whatever the threads. */
static void add_to_groups(judge_state *s)
{
    const sp_csr *g = s->g;
    for (int64_t i = 0; i < g->rows; i++) {
        if (s->labels[i] < 0) continue;
        tally *to = &s->group[s->labels[i]];
        const tally *from = &s->node[i];
        to->inside += from->inside;
        to->loops += from->loops;
        to->cut += from->cut;
        to->entries += from->entries;
        to->loop_entries += from->loop_entries;
        to->cuts += from->cuts;
        to->size++;
        for (int k = 0; k < s->constraints; k++)
            s->load[(int64_t)s->labels[i] * s->constraints + k] +=
                s->weights ? (double)s->weights[i * s->constraints + k] : 1;
        for (int64_t k = g->row_offsets[i]; !s->undirected && k < g->row_offsets[i + 1]; k++)
            if (s->labels[g->col_indices[k]] >= 0) s->group[s->labels[g->col_indices[k]]].enters += entry_value(g, k);
    }
}

static double volume(const judge_state *s, const tally *group)
{
    return group->inside + group->cut + (s->undirected ? 2 : 1) * group->loops;
}

static void judge_edges(const judge_state *s, contraction_judgement *j)
{
    double ends = 0, inside = 0, expected = 0;
    int64_t entries = 0, loops = 0;
    for (int64_t p = 0; p < s->groups; p++) {
        const tally *group = &s->group[p];
        const double own = volume(s, group);
        ends += own;
        inside += own - group->cut;
        j->cut += group->cut;
        expected += own * (s->undirected ? own : group->enters);
        entries += group->entries;
        loops += group->loop_entries;
        j->cut_edges += group->cuts;
    }
    j->coverage = ends > 0 ? inside / ends : NAN;
    j->modularity = ends > 0 ? inside / ends - expected / ends / ends : NAN;
    j->edges = s->undirected ? (entries + loops) / 2 : entries;
    j->weight = s->undirected ? ends / 2 : ends;
    if (s->undirected) {
        j->cut /= 2;
        j->cut_edges /= 2;
    }
    j->worst = -1;
    for (int64_t p = 0; p < s->groups; p++) {
        const tally *group = &s->group[p];
        const double own = volume(s, group), smaller = own < ends - own ? own : ends - own;
        const double part = group->cut == 0 ? 0 : smaller > 0 ? group->cut / smaller : 1;
        if (group->size == 0) continue;
        j->mean_conductance += part;
        if (j->worst >= 0 && part <= j->worst_conductance) continue;
        j->worst_conductance = part;
        j->worst = p;
    }
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void judge_sizes(const judge_state *s, contraction_judgement *j)
{
    int64_t *sizes = s->sizes;
    for (int64_t p = 0; p < s->groups; p++) {
        if (s->group[p].size > 0) sizes[j->groups++] = s->group[p].size;
        j->nodes += s->group[p].size;
        j->alone += s->group[p].size == 1;
    }
    j->empty = s->groups - j->groups;
    j->left_out = s->g->rows - j->nodes;
    j->balance = j->median = j->mean = NAN; /* without groups */
    if (j->groups == 0) j->mean_conductance = j->worst_conductance = NAN;
    if (j->groups == 0) return;
    qsort(sizes, (size_t)j->groups, sizeof *sizes, ascending);
    j->smallest = sizes[0];
    j->largest = sizes[j->groups - 1];
    j->median = (double)(sizes[(j->groups - 1) / 2] + sizes[j->groups / 2]) / 2;
    j->mean = (double)j->nodes / (double)j->groups;
    j->mean_conductance /= (double)j->groups;
    for (int k = 0; k < s->constraints; k++) {
        double all = 0, most = 0;
        for (int64_t p = 0; p < s->groups; p++) {
            all += s->load[p * s->constraints + k];
            most = fmax(most, s->load[p * s->constraints + k]);
        }
        if (all > 0) j->balance = fmax(j->balance, most * (double)j->groups / all); /* fmax leaves NaN out */
    }
}

static sp_status tally_all(sp_context *context, judge_state *s)
{
    bool negative = false;
#pragma omp parallel for schedule(dynamic, 1024) reduction(|| : negative) num_threads(sp_context_threads(context)) \
    if (s->g->nnz > 100000)
    for (int64_t i = 0; i < s->g->rows; i++)
        if (s->labels[i] >= 0) s->node[i] = tally_node(s, i, &negative);
    if (negative)
        return sp_fail(context, SP_ERROR_ARGUMENT, "an edge has a weight below 0, for which coverage, modularity and "
                                                   "conductance have no meaning");
    add_to_groups(s);
    return SP_OK;
}

sp_status contraction_judge(sp_context *context, const sp_csr *g, bool undirected, const int32_t *labels,
                            int64_t groups, const int64_t *weights, int constraints,
                            contraction_judgement *judgement)
{
    judge_state s = {.g = g, .labels = labels, .weights = weights, .groups = groups,
                     .constraints = weights ? constraints : 1, .undirected = undirected};
    contraction_judgement made = {0};
    sp_status status;
    TRY(contraction_require(context, __func__, g, labels));
    TRY(sp_require(context, __func__, "judgement", judgement));
    TRY(contraction_check_graph(context, g));
    if (groups < 0 || s.constraints < 1)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld groups, %d weights a node", __func__, (long long)groups,
                    s.constraints));
    TRY(contraction_check_labels(context, labels, g->rows, groups));
    TRY(sp_alloc(context, g->rows, sizeof *s.node, (void **)&s.node));
    TRY(sp_calloc(context, groups, sizeof *s.group, (void **)&s.group));
    TRY(sp_calloc(context, groups * s.constraints, sizeof *s.load, (void **)&s.load));
    TRY(sp_alloc(context, groups, sizeof *s.sizes, (void **)&s.sizes));
    TRY(tally_all(context, &s));
    judge_edges(&s, &made);
    judge_sizes(&s, &made);
    *judgement = made;
done:
    FREE_ALL(context, s.node, s.group, s.load, s.sizes);
    return status;
}
