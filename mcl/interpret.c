/* From a limit matrix to clusters, as mcl 22-282 reads it.
 *
 * The heavy entries of each column make a directed graph, arcs from a node to the nodes that attract it. Nodes that
 * attract themselves are attractors; attractors joined by arcs form attractor systems. A node belongs to every
 * system that it reaches. Systems come by falling number of attractors, ties by their smallest one. Each system is
 * searched against the arcs, so the cost is O(arcs + Σ over systems of the arcs that lead to it).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "lists.h"
#include "sets.h"

/* ---- attraction ---------------------------------------------------------------------------------------- */

/* What is at least this heavy attracts node j, the column in row `row`. */
static double attraction_bar(const sp_csr *limit, int64_t row, int64_t j)
{
    const float *from = limit->values;
    double self = 0, largest = 0;
    for (int64_t k = limit->row_offsets[row]; k < limit->row_offsets[row + 1]; k++) {
        if (limit->col_indices[k] == j) self = (double)from[k];
        if ((double)from[k] > largest) largest = (double)from[k];
    }
    return self < largest ? 0.999 * self + 0.001 * largest : self / 1.01;
}

/* Keeps of a column what is at least as heavy as (nearly) its loop, then, but with `weak`, what is about average or
 * above; returns how many. */
static int64_t attracting(const sp_csr *limit, int64_t j, bool weak, int32_t *columns, float *values)
{
    const int64_t first = limit->row_offsets[j], end = limit->row_offsets[j + 1];
    const float *from = limit->values;
    const double bar = attraction_bar(limit, j, j);
    double sum = 0;
    int64_t count = 0, left = 0;
    for (int64_t k = first; k < end; k++) {
        if ((double)from[k] < bar) continue;
        columns[count] = limit->col_indices[k];
        values[count++] = from[k];
        sum += (double)from[k];
    }
    if (weak) return count;
    for (int64_t k = 0; k < count; k++) {
        if (!(sum > 0) || (double)(float)((double)values[k] / sum) < 1.0 / (double)(count + 1)) continue;
        columns[left++] = columns[k];
    }
    return left;
}

/* The graph of attraction as a pattern: row j holds the nodes that attract j. */
static sp_status attraction_graph(sp_context *context, const sp_csr *limit, bool weak, sp_csr *graph)
{
    sp_status status = sp_csr_create(context, limit->rows, limit->cols, limit->nnz, SP_F32, SP_HOST, graph);
    if (status != SP_OK) return status;
    int64_t nnz = 0;
    for (int64_t j = 0; j < limit->rows; j++) {
        graph->row_offsets[j] = nnz;
        nnz += attracting(limit, j, weak, graph->col_indices + nnz, (float *)graph->values + nnz);
    }
    graph->row_offsets[limit->rows] = graph->nnz = nnz;
    sp_free(context, graph->values);
    graph->values = NULL;
    return SP_OK;
}

/* As attraction_bar, or -infinity in a column with negative entries, whose bar depends on those below it. */
static double bar_of_kept(const sp_csr *rows, int64_t row, int64_t j)
{
    const float *values = rows->values;
    for (int64_t k = rows->row_offsets[row]; k < rows->row_offsets[row + 1]; k++)
        if (values[k] < 0) return -INFINITY;
    return attraction_bar(rows, row, j);
}

sp_status mcl_keep_attracting(sp_context *context, const sp_csr *rows, int64_t first, sp_csr *kept)
{
    int64_t nnz = 0;
    sp_csr made = {0};
    sp_status status = sp_require_csr(context, __func__, "rows", rows);
    if (status == SP_OK) status = sp_require_output(context, __func__, "kept", kept, "rows", rows);
    if (status == SP_OK && (rows->space != SP_HOST || rows->value_type != SP_F32 || (rows->nnz > 0 && !rows->values)))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: rows must be a host matrix of f32 values", __func__);
    if (status != SP_OK) return status;
    const float *values = rows->values;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) status = sp_csr_create(context, rows->rows, rows->cols, nnz, SP_F32, SP_HOST, &made);
        if (status != SP_OK) return status;
        nnz = 0;
        for (int64_t i = 0; i < rows->rows; i++) {
            const double bar = bar_of_kept(rows, i, first + i);
            if (pass == 1) made.row_offsets[i] = nnz;
            for (int64_t k = rows->row_offsets[i]; k < rows->row_offsets[i + 1]; k++) {
                if ((double)values[k] < bar) continue;
                if (pass == 1) made.col_indices[nnz] = rows->col_indices[k];
                if (pass == 1) ((float *)made.values)[nnz] = values[k];
                nnz++;
            }
        }
    }
    made.row_offsets[rows->rows] = nnz;
    *kept = made;
    return SP_OK;
}

/* ---- attractor systems --------------------------------------------------------------------------------- */

typedef struct ranked {
    int32_t root;
    int64_t size;
} ranked;

static int by_size_then_root(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->root < b->root ? -1 : a->root > b->root;
}

/* system_of[j] = the rank of attractor j's system, -1 for other nodes; *count systems. */
static sp_status attractor_systems(sp_context *context, const sp_csr *graph, int32_t *system_of, int64_t *count)
{
    const int32_t nodes = (int32_t)graph->rows;
    int32_t *parent = NULL;
    ranked *systems = NULL;
    sp_status status = sp_alloc(context, nodes, sizeof *parent, (void **)&parent);
    if (status == SP_OK) status = sp_alloc(context, nodes, sizeof *systems, (void **)&systems);
    if (status != SP_OK) goto done;
    for (int32_t j = 0; j < nodes; j++) parent[j] = -1;
    for (int32_t j = 0; j < nodes; j++)
        for (int64_t k = graph->row_offsets[j]; k < graph->row_offsets[j + 1]; k++)
            if (graph->col_indices[k] == j) parent[j] = j;
    for (int32_t j = 0; j < nodes; j++)
        for (int64_t k = graph->row_offsets[j]; k < graph->row_offsets[j + 1] && parent[j] >= 0; k++)
            if (parent[graph->col_indices[k]] >= 0) join(parent, j, graph->col_indices[k]);

    int64_t made = 0;
    for (int32_t j = 0; j < nodes; j++) {
        if (parent[j] < 0) continue;
        const int32_t root = find_root(parent, j); /* not above j, so it already has its number */
        if (root == j) {
            system_of[j] = (int32_t)made;
            systems[made++] = (ranked){j, 0};
        }
        systems[system_of[root]].size++;
    }
    qsort(systems, (size_t)made, sizeof *systems, by_size_then_root);
    for (int64_t s = 0; s < made; s++) system_of[systems[s].root] = (int32_t)s;
    for (int32_t j = 0; j < nodes; j++) system_of[j] = parent[j] < 0 ? -1 : system_of[find_root(parent, j)];
    *count = made;
done:
    FREE_ALL(context, parent, systems);
    return status;
}

/* ---- membership ---------------------------------------------------------------------------------------- */

static int by_number(const void *left, const void *right)
{
    const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return a < b ? -1 : a > b;
}

/* For each system the nodes that reach it: its attractors and, against the arcs, whatever leads to them. Other
 * systems' attractors are passed through but do not become members. */
static sp_status memberships(sp_context *context, const sp_csr *graph, const int32_t *system_of, int64_t systems,
                             lists *clusters)
{
    const int64_t nodes = graph->rows;
    sp_csr reverse = {0};
    int32_t *seen = NULL, *queue = NULL, *attractors = NULL;
    int64_t *starts = NULL;
    sp_status status = sp_csr_transpose(context, graph, &reverse);
    if (status == SP_OK) status = sp_alloc(context, nodes, sizeof *seen, (void **)&seen);
    if (status == SP_OK) status = sp_alloc(context, nodes, sizeof *queue, (void **)&queue);
    if (status == SP_OK) status = sp_alloc(context, nodes, sizeof *attractors, (void **)&attractors);
    if (status == SP_OK) status = sp_calloc(context, systems + 2, sizeof *starts, (void **)&starts);
    if (status == SP_OK) status = lists_reserve(context, clusters, nodes);
    if (status != SP_OK) goto done;
    for (int64_t j = 0; j < nodes; j++) {
        seen[j] = -1;
        if (system_of[j] >= 0) starts[system_of[j] + 2]++;
    }
    for (int64_t s = 0; s < systems; s++) starts[s + 2] += starts[s + 1];
    for (int64_t j = 0; j < nodes; j++)
        if (system_of[j] >= 0) attractors[starts[system_of[j] + 1]++] = (int32_t)j;

    for (int64_t s = 0; s < systems; s++) {
        int64_t head = 0, tail = 0, count = 0;
        for (int64_t i = starts[s]; i < starts[s + 1]; i++) {
            queue[tail++] = attractors[i];
            seen[attractors[i]] = (int32_t)s;
        }
        while (head < tail) {
            const int32_t node = queue[head++];
            for (int64_t k = reverse.row_offsets[node]; k < reverse.row_offsets[node + 1]; k++) {
                const int32_t before = reverse.col_indices[k];
                if (seen[before] == s) continue;
                seen[before] = (int32_t)s;
                queue[tail++] = before;
            }
        }
        status = lists_reserve(context, clusters, tail);
        if (status != SP_OK) goto done;
        int32_t *members = clusters->members + clusters->offsets[s];
        for (int64_t i = 0; i < tail; i++)
            if (system_of[queue[i]] < 0 || system_of[queue[i]] == s) members[count++] = queue[i];
        qsort(members, (size_t)count, sizeof *members, by_number);
        clusters->count = s + 1;
        clusters->offsets[s + 1] = clusters->offsets[s] + count;
    }
done:
    sp_csr_free(context, &reverse);
    FREE_ALL(context, seen, queue, attractors, starts);
    return status;
}

/* ---- overlap ------------------------------------------------------------------------------------------- */

/* Removes from every list the nodes for which drop[node] says so in that list: with `first_only`, all but the first
 * list of a node keep none of it; otherwise nodes of several lists (copies[node] > 1) leave all lists. */
static void remove_overlap(lists *clusters, const int32_t *copies, uint8_t *taken, bool first_only)
{
    int64_t to = 0, first = 0;
    for (int64_t c = 0; c < clusters->count; c++) {
        const int64_t end = clusters->offsets[c + 1];
        for (int64_t i = first; i < end; i++) {
            const int32_t node = clusters->members[i];
            if (first_only ? taken[node] : copies[node] > 1) continue;
            taken[node] = 1;
            clusters->members[to++] = node;
        }
        first = end;
        clusters->offsets[c + 1] = to;
    }
}

/* Joins in `parent` the overlapping nodes that share two lists or more, directly or through others: mcl's groups.
 * O(Σ copies²). */
static sp_status join_overlapping(sp_context *context, const lists *clusters, const int32_t *copies, int64_t nodes,
                                  int32_t *parent)
{
    int64_t *starts = NULL, *seen_with = NULL;
    int32_t *lists_of = NULL, *first_node = NULL;
    sp_status status = sp_calloc(context, nodes + 2, sizeof *starts, (void **)&starts);
    for (int64_t j = 0; j < nodes && status == SP_OK; j++) {
        parent[j] = (int32_t)j;
        starts[j + 2] = starts[j + 1] + (copies[j] > 1 ? copies[j] : 0);
    }
    if (status == SP_OK) status = sp_alloc(context, starts[nodes + 1], sizeof *lists_of, (void **)&lists_of);
    if (status == SP_OK) status = sp_alloc(context, clusters->count, sizeof *first_node, (void **)&first_node);
    if (status == SP_OK) status = sp_alloc(context, clusters->count, sizeof *seen_with, (void **)&seen_with);
    if (status != SP_OK) goto done;
    for (int64_t c = 0; c < clusters->count; c++) {
        seen_with[c] = -1;
        for (int64_t i = clusters->offsets[c]; i < clusters->offsets[c + 1]; i++)
            if (copies[clusters->members[i]] > 1) lists_of[starts[clusters->members[i] + 1]++] = (int32_t)c;
    }
    for (int64_t c = 0; c < clusters->count; c++)
        for (int64_t i = clusters->offsets[c]; i < clusters->offsets[c + 1]; i++) {
            const int32_t node = clusters->members[i];
            for (int64_t k = starts[node]; k < starts[node + 1]; k++) {
                const int32_t other = lists_of[k];
                if (other <= c) continue;
                if (seen_with[other] == c) join(parent, node, first_node[other]);
                seen_with[other] = c;
                first_node[other] = node;
            }
        }
done:
    FREE_ALL(context, starts, lists_of, first_node, seen_with);
    return status;
}

/* Takes overlapping nodes out of their lists and makes a new list of each group of them. */
static sp_status split_overlap(sp_context *context, lists *clusters, const int32_t *copies, uint8_t *taken,
                               int64_t nodes)
{
    int32_t *group = NULL, *order = NULL;
    int64_t *sizes = NULL;
    sp_status status = sp_alloc(context, nodes, sizeof *group, (void **)&group);
    if (status == SP_OK) status = join_overlapping(context, clusters, copies, nodes, group);
    if (status != SP_OK) goto done;
    for (int32_t j = 0; j < nodes; j++) group[j] = find_root(group, j);
    remove_overlap(clusters, copies, taken, false);

    status = sp_calloc(context, nodes + 1, sizeof *sizes, (void **)&sizes);
    if (status == SP_OK) status = sp_alloc(context, nodes, sizeof *order, (void **)&order);
    if (status != SP_OK) goto done;
    for (int64_t j = 0; j < nodes; j++)
        if (copies[j] > 1) sizes[group[j] + 1]++;
    for (int64_t g = 0; g < nodes; g++) sizes[g + 1] += sizes[g];
    for (int64_t j = 0; j < nodes; j++)
        if (copies[j] > 1) order[sizes[group[j]]++] = (int32_t)j;
    for (int64_t g = 0, first = 0; g < nodes; first = sizes[g++]) {
        const int64_t count = sizes[g] - first;
        if (count == 0) continue;
        status = lists_reserve(context, clusters, count);
        if (status != SP_OK) goto done;
        memcpy(clusters->members + clusters->offsets[clusters->count], order + first, (size_t)count * sizeof *order);
        clusters->offsets[clusters->count + 1] = clusters->offsets[clusters->count] + count;
        clusters->count++;
    }
done:
    FREE_ALL(context, group, order, sizes);
    return status;
}

/* Counts and resolves overlap, gathers nodes without a list in one more ("garbage"). */
static sp_status settle_nodes(sp_context *context, lists *clusters, int64_t nodes, mcl_overlap overlap,
                              mcl_clustering *result)
{
    int32_t *copies = NULL;
    uint8_t *taken = NULL;
    sp_status status = sp_calloc(context, nodes, sizeof *copies, (void **)&copies);
    if (status == SP_OK) status = sp_calloc(context, nodes, sizeof *taken, (void **)&taken);
    if (status != SP_OK) goto done;
    for (int64_t i = 0; i < clusters->offsets[clusters->count]; i++) copies[clusters->members[i]]++;
    for (int64_t j = 0; j < nodes; j++) {
        result->garbage += copies[j] == 0;
        result->overlap_nodes += copies[j] > 1;
        result->overlap += copies[j] > 1 ? copies[j] - 1 : 0;
    }
    if (result->overlap > 0 && overlap == MCL_OVERLAP_CUT) remove_overlap(clusters, copies, taken, true);
    if (result->overlap > 0 && overlap == MCL_OVERLAP_SPLIT)
        status = split_overlap(context, clusters, copies, taken, nodes);
    if (status == SP_OK && result->garbage > 0) {
        status = lists_reserve(context, clusters, result->garbage);
        if (status != SP_OK) goto done;
        int64_t end = clusters->offsets[clusters->count];
        for (int64_t j = 0; j < nodes; j++)
            if (copies[j] == 0) clusters->members[end++] = (int32_t)j;
        clusters->offsets[++clusters->count] = end;
    }
done:
    FREE_ALL(context, copies, taken);
    return status;
}

/* ---- components ---------------------------------------------------------------------------------------- */

/* Moves to `component` the members of cluster `cluster` that arcs of the graph reach from `node` within it, and sorts
 * them; returns how many. An arc to a node that has its home elsewhere leads out of the cluster. */
static int64_t take_component(const sp_csr *graph, int32_t node, int32_t cluster, const int32_t *home,
                              int32_t *cluster_of, int32_t *component)
{
    int64_t head = 0, tail = 0;
    component[tail++] = node;
    cluster_of[node] = -1;
    while (head < tail) {
        const int32_t from = component[head++];
        for (int64_t k = graph->row_offsets[from]; k < graph->row_offsets[from + 1]; k++) {
            const int32_t to = graph->col_indices[k];
            if (cluster_of[to] != cluster || home[to] != cluster) continue;
            cluster_of[to] = -1;
            component[tail++] = to;
        }
    }
    qsort(component, (size_t)tail, sizeof *component, by_number);
    return tail;
}

/* Splits each list into the connected components that the input graph leaves of it, as mcl does: in a directed graph
 * that is what the smallest member reaches, then what the smallest remaining one does; and a node of several lists,
 * which has its home in the first of them, is reached in that one alone. */
static sp_status split_components(sp_context *context, const sp_csr *graph, lists *clusters)
{
    lists made = {0};
    int32_t *cluster_of = NULL, *home = NULL;
    sp_status status = sp_alloc(context, graph->rows, sizeof *cluster_of, (void **)&cluster_of);
    if (status == SP_OK) status = sp_alloc(context, graph->rows, sizeof *home, (void **)&home);
    if (status == SP_OK) status = lists_reserve(context, &made, clusters->offsets[clusters->count]);
    for (int64_t j = 0; j < graph->rows && status == SP_OK; j++) cluster_of[j] = home[j] = -1;
    for (int64_t c = 0; c < clusters->count && status == SP_OK; c++) {
        const int32_t *members = clusters->members + clusters->offsets[c];
        const int64_t count = lists_length(clusters, c);
        for (int64_t i = 0; i < count; i++) {
            cluster_of[members[i]] = (int32_t)c;
            if (home[members[i]] < 0) home[members[i]] = (int32_t)c;
        }
        for (int64_t i = 0; i < count && status == SP_OK; i++) {
            if (cluster_of[members[i]] != c) continue;
            status = lists_reserve(context, &made, 0);
            if (status != SP_OK) break;
            const int64_t at = made.offsets[made.count++];
            made.offsets[made.count] =
                at + take_component(graph, members[i], (int32_t)c, home, cluster_of, made.members + at);
        }
    }
    FREE_ALL(context, home, cluster_of);
    if (status == SP_OK) {
        lists_free(context, clusters);
        *clusters = made;
    } else {
        lists_free(context, &made);
    }
    return status;
}

static sp_status check_arguments(sp_context *context, const sp_csr *limit, const sp_csr *graph,
                                 const mcl_options *options, const mcl_clustering *clustering)
{
    static const char call[] = "mcl_interpret";
    sp_status status = sp_require_csr(context, call, "limit", limit);
    if (status == SP_OK && graph) status = sp_require_csr(context, call, "graph", graph);
    if (status == SP_OK) status = sp_require(context, call, "options", options);
    if (status == SP_OK) status = sp_require(context, call, "clustering", clustering);
    if (status == SP_OK && (limit->space != SP_HOST || (graph && graph->space != SP_HOST)))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: limit and graph must lie in host memory", call);
    return status;
}

sp_status mcl_interpret(sp_context *context, const sp_csr *limit, const sp_csr *graph, const mcl_options *options,
                        mcl_clustering *clustering)
{
    sp_csr attraction = {0};
    int32_t *system_of = NULL;
    lists clusters = {0};
    mcl_clustering made = {0};
    sp_status status = check_arguments(context, limit, graph, options, clustering);
    if (status != SP_OK) return status;
    made.nodes = limit->rows;
    if (options->force_connected && (!graph || graph->rows != limit->rows))
        return sp_fail(context, SP_ERROR_ARGUMENT, "splitting clusters into components needs the input graph");
    status = attraction_graph(context, limit, options->weak_attraction, &attraction);
    if (status == SP_OK) status = sp_alloc(context, limit->rows, sizeof *system_of, (void **)&system_of);
    if (status == SP_OK) status = attractor_systems(context, &attraction, system_of, &made.attractors);
    if (status == SP_OK) status = memberships(context, &attraction, system_of, made.attractors, &clusters);
    if (status == SP_OK) status = settle_nodes(context, &clusters, limit->rows, options->overlap, &made);
    if (status == SP_OK) status = lists_order(context, options->sort, &clusters);
    if (status == SP_OK && options->force_connected) {
        const int64_t whole = clusters.count;
        status = split_components(context, graph, &clusters);
        if (status == SP_OK && clusters.count > whole) /* mcl puts what it split in its default order */
            status = lists_order(context, MCL_SORT_SIZE, &clusters);
    }
    sp_csr_free(context, &attraction);
    if (status == SP_OK) {
        made.system_of = system_of;
        made.clusters = clusters.count;
        made.offsets = clusters.offsets;
        made.members = clusters.members;
        *clustering = made;
    } else {
        sp_free(context, system_of);
        lists_free(context, &clusters);
    }
    return status;
}

void mcl_clustering_labels(const mcl_clustering *clustering, int32_t *labels)
{
    for (int64_t i = 0; i < clustering->nodes; i++) labels[i] = -1;
    for (int64_t c = clustering->clusters; c-- > 0;)
        for (int64_t i = clustering->offsets[c]; i < clustering->offsets[c + 1]; i++)
            labels[clustering->members[i]] = (int32_t)c;
}

void mcl_clustering_free(sp_context *context, mcl_clustering *clustering)
{
    if (!clustering) return;
    FREE_ALL(context, clustering->offsets, clustering->members, clustering->system_of);
    memset(clustering, 0, sizeof *clustering);
}
