/* Nodes added to a clustering: which part of a start matrix has to run again, and what has changed.
 *
 * Expansion, pruning and inflation of a column use only columns that it reaches, so the process runs in each weakly
 * connected component of the start matrix by itself. Three things are common to all components: the end (chaos below
 * the limit in all of them at once), the inflation bumps from iteration 40 on, and the number of nodes, by which mcl
 * chooses how it rounds products (dense_factor). The part that runs again keeps the numbers of all nodes, so it has the
 * same bits as in a run of everything until its own chaos is below the limit. A component that is left out keeps the
 * clusters that it has.
 */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/try.h"
#include "lists.h"
#include "sets.h"

/* ---- components ---------------------------------------------------------------------------------------- */

/* root[j]: the smallest node of j's weakly connected component. */
static sp_status find_components(sp_context *context, const sp_csr *matrix, int32_t **root)
{
    const int32_t nodes = (int32_t)matrix->rows;
    int32_t *parent;
    sp_status status = sp_alloc(context, nodes, sizeof *parent, (void **)&parent);
    if (status != SP_OK) return status;
    for (int32_t j = 0; j < nodes; j++) parent[j] = j;
    for (int32_t j = 0; j < nodes; j++)
        for (int64_t e = matrix->row_offsets[j]; e < matrix->row_offsets[j + 1]; e++)
            join(parent, j, matrix->col_indices[e]);
    for (int32_t j = 0; j < nodes; j++) parent[j] = find_root(parent, j);
    *root = parent;
    return SP_OK;
}

/* ---- what is touched ------------------------------------------------------------------------------------ */

/* Whether row `before` of the older start matrix is row `now` of the new one. */
static bool is_same_row(const mcl_former *former, int64_t before, const sp_csr *start, int64_t now)
{
    const sp_csr *old = former->start;
    const float *old_values = old->values, *values = start->values;
    const int64_t first = old->row_offsets[before], end = old->row_offsets[before + 1];
    const int64_t from = start->row_offsets[now], to = start->row_offsets[now + 1];
    if (end - first != to - from) return false;
    for (int64_t e = first; e < end; e++) {
        const int32_t column = former->place[old->col_indices[e]];
        if (column < 0) return false;
        const int64_t at = lower_bound_i32(start->col_indices, from, to, column);
        if (at == to || start->col_indices[at] != column || values[at] != old_values[e]) return false;
    }
    return true;
}

/* Marks the components with a node whose row the older graph does not have. */
static sp_status mark_changed_rows(sp_context *context, const sp_csr *start, const mcl_former *former,
                                   const int32_t *root, uint8_t *touched)
{
    uint8_t *same = NULL;
    sp_status status;
    TRY(sp_calloc(context, start->rows, sizeof *same, (void **)&same));
    for (int64_t i = 0; i < former->start->rows; i++)
        if (former->place[i] >= 0) same[former->place[i]] = is_same_row(former, i, start, former->place[i]);
    for (int64_t j = 0; j < start->rows; j++)
        if (!same[j]) touched[root[j]] = 1;
done:
    sp_free(context, same);
    return status;
}

/* Marks the components of nodes that no older cluster has, and of clusters that cannot be as they were: they have lost
 * nodes, or lie in several components. */
static void mark_by_clusters(const mcl_former *former, const int32_t *root, const int32_t *cluster_of, uint8_t *touched)
{
    const mcl_clustering *c = &former->clustering;
    for (int64_t j = 0; j < c->nodes; j++)
        if (cluster_of[j] < 0) touched[root[j]] = 1;
    for (int64_t k = 0; k < c->clusters; k++) {
        const int32_t *members = c->members + c->offsets[k];
        const int64_t size = c->offsets[k + 1] - c->offsets[k];
        bool changed = former->incomplete && former->incomplete[k];
        for (int64_t i = 1; i < size && !changed; i++) changed = root[members[i]] != root[members[0]];
        for (int64_t i = 0; i < size && changed; i++) touched[root[members[i]]] = 1;
    }
}

static sp_status check_former(sp_context *context, const char *call, const sp_csr *start, const mcl_former *former)
{
    sp_status status = sp_require_csr(context, call, "start", start);
    if (status == SP_OK) status = sp_require(context, call, "former", former);
    if (status == SP_OK && former->start) status = sp_require_csr(context, call, "former->start", former->start);
    if (status != SP_OK) return status;
    if (start->space != SP_HOST || start->value_type != SP_F32 || start->rows != start->cols ||
        (former->start && (former->start->space != SP_HOST || former->start->value_type != SP_F32)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: start matrices are square host matrices of f32 values", call);
    if (former->clustering.nodes != start->rows)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: clusters of %lld nodes for a matrix of %lld", call,
                       (long long)former->clustering.nodes, (long long)start->rows);
    return SP_OK;
}

sp_status mcl_find_touched(sp_context *context, const sp_csr *start, const mcl_former *former, mcl_update *update)
{
    mcl_update made = {0};
    int32_t *root = NULL, *cluster_of = NULL;
    sp_status status;
    TRY(check_former(context, __func__, start, former));
    TRY(sp_require(context, __func__, "update", update));
    TRY(find_components(context, start, &root));
    TRY(sp_alloc(context, start->rows, sizeof *cluster_of, (void **)&cluster_of));
    TRY(sp_calloc(context, start->rows, sizeof *made.touched, (void **)&made.touched));
    mcl_clustering_labels(&former->clustering, cluster_of);
    mark_by_clusters(former, root, cluster_of, made.touched);
    if (former->start) TRY(mark_changed_rows(context, start, former, root, made.touched));
    for (int64_t j = 0; j < start->rows; j++) {
        made.components += root[j] == j;
        made.components_touched += root[j] == j && made.touched[j];
        made.touched[j] = made.touched[root[j]]; /* the root is not above j */
        made.nodes_touched += made.touched[j];
        made.new_nodes += cluster_of[j] < 0;
    }
    *update = made;
    made = (mcl_update){0};
done:
    FREE_ALL(context, root, cluster_of, made.touched);
    return status;
}

void mcl_update_free(sp_context *context, mcl_update *update)
{
    sp_free(context, update->touched);
    *update = (mcl_update){0};
}

sp_status mcl_touched_part(sp_context *context, const sp_csr *start, const uint8_t *touched, sp_csr *part)
{
    sp_csr made = {0};
    int64_t nnz = 0;
    sp_status status;
    TRY(sp_require_csr(context, __func__, "start", start));
    TRY(sp_require_output(context, __func__, "part", part, "start", start));
    for (int64_t j = 0; j < start->rows; j++)
        nnz += touched[j] ? start->row_offsets[j + 1] - start->row_offsets[j] : 1;
    TRY(sp_csr_create(context, start->rows, start->cols, nnz, SP_F32, SP_HOST, &made));
    float *values = made.values;
    made.row_offsets[0] = 0;
    for (int64_t j = 0; j < start->rows; j++) {
        const int64_t at = made.row_offsets[j], first = start->row_offsets[j];
        const int64_t count = touched[j] ? start->row_offsets[j + 1] - first : 1;
        made.row_offsets[j + 1] = at + count;
        if (touched[j]) {
            memcpy(made.col_indices + at, start->col_indices + first, (size_t)count * sizeof *made.col_indices);
            memcpy(values + at, (const float *)start->values + first, (size_t)count * sizeof *values);
        } else {
            made.col_indices[at] = (int32_t)j;
            values[at] = 1;
        }
    }
    *part = made;
done:
    return status;
}

/* ---- clusters of both ----------------------------------------------------------------------------------- */

/* Appends the clusters whose nodes are, or are not, touched. A cluster never has nodes of both kinds. */
static sp_status take(sp_context *context, const mcl_clustering *from, const uint8_t *touched, bool which, lists *to)
{
    sp_status status;
    TRY(lists_reserve(context, to, 0));
    for (int64_t c = 0; c < from->clusters; c++) {
        const int32_t *members = from->members + from->offsets[c];
        const int64_t size = from->offsets[c + 1] - from->offsets[c];
        if (size == 0 || touched[members[0]] != which) continue;
        TRY(lists_reserve(context, to, size));
        memcpy(to->members + to->offsets[to->count], members, (size_t)size * sizeof *members);
        to->offsets[to->count + 1] = to->offsets[to->count] + size;
        to->count++;
    }
done:
    return status;
}

sp_status mcl_join_clusterings(sp_context *context, const mcl_former *former, const uint8_t *touched,
                               const mcl_clustering *fresh, mcl_sort sort, mcl_clustering *joined)
{
    lists all = {0};
    int32_t *system_of = NULL;
    sp_status status;
    TRY(sp_require(context, __func__, "former", former));
    TRY(sp_require(context, __func__, "fresh", fresh));
    TRY(sp_require(context, __func__, "joined", joined));
    TRY(take(context, &former->clustering, touched, false, &all));
    TRY(take(context, fresh, touched, true, &all));
    TRY(lists_order(context, sort, &all));
    TRY(sp_alloc(context, fresh->nodes, sizeof *system_of, (void **)&system_of));
    mcl_clustering made = *fresh;
    for (int64_t j = 0; j < fresh->nodes; j++) {
        system_of[j] = !touched[j] ? MCL_SYSTEM_UNKNOWN : fresh->system_of ? fresh->system_of[j] : -1;
        made.attractors -= !touched[j]; /* each was a system of its own */
    }
    made.clusters = all.count;
    made.offsets = all.offsets;
    made.members = all.members;
    made.system_of = system_of;
    all = (lists){0};
    *joined = made;
done:
    lists_free(context, &all);
    return status;
}

/* ---- what has changed ------------------------------------------------------------------------------------ */

/* In which clusters of the new clustering the members of each older one are: the first, or SEVERAL. */
enum { NOWHERE = -1, SEVERAL = -2 };

static void find_pieces(const mcl_clustering *before, const int32_t *cluster_of, int32_t *home)
{
    for (int64_t k = 0; k < before->clusters; k++) {
        home[k] = NOWHERE;
        for (int64_t i = before->offsets[k]; i < before->offsets[k + 1]; i++) {
            const int32_t cluster = cluster_of[before->members[i]];
            if (home[k] == NOWHERE) home[k] = cluster;
            else if (home[k] != cluster) home[k] = SEVERAL;
        }
    }
}

/* Counts one cluster that was made again. */
static void count_cluster(const mcl_former *former, const int32_t *members, int64_t size, const int32_t *former_of,
                          const int32_t *home, mcl_changes *changes)
{
    int32_t origin = -1;
    int64_t added = 0;
    bool merged = false;
    for (int64_t i = 0; i < size; i++) {
        const int32_t from = former_of[members[i]];
        added += from < 0;
        if (from >= 0 && origin >= 0 && from != origin) merged = true;
        if (from >= 0) origin = from;
    }
    const bool lost = origin >= 0 && former->incomplete && former->incomplete[origin];
    if (origin < 0) changes->made++;
    else if (merged) changes->merged++;
    else if (home[origin] == SEVERAL) changes->pieces++;
    else if (added > 0) changes->grown++;
    else if (lost) changes->shrunk++;
    else changes->same++;
}

sp_status mcl_find_changes(sp_context *context, const mcl_former *former, const uint8_t *touched,
                           const mcl_clustering *joined, mcl_changes *changes)
{
    const mcl_clustering *before = &former->clustering;
    int32_t *former_of = NULL, *cluster_of = NULL, *home = NULL;
    mcl_changes made = {0};
    sp_status status;
    TRY(sp_alloc(context, joined->nodes, sizeof *former_of, (void **)&former_of));
    TRY(sp_alloc(context, joined->nodes, sizeof *cluster_of, (void **)&cluster_of));
    TRY(sp_alloc(context, before->clusters, sizeof *home, (void **)&home));
    mcl_clustering_labels(before, former_of);
    mcl_clustering_labels(joined, cluster_of);
    find_pieces(before, cluster_of, home);
    for (int64_t k = 0; k < before->clusters; k++) {
        made.gone += home[k] == NOWHERE;
        made.split += home[k] == SEVERAL;
    }
    for (int64_t c = 0; c < joined->clusters; c++) {
        const int32_t *members = joined->members + joined->offsets[c];
        const int64_t size = joined->offsets[c + 1] - joined->offsets[c];
        if (!touched[members[0]]) made.kept++;
        else count_cluster(former, members, size, former_of, home, &made);
    }
    *changes = made;
done:
    FREE_ALL(context, former_of, cluster_of, home);
    return status;
}
