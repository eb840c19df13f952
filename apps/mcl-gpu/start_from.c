/* --start-from: an older clustering of a graph that has grown. Components that are as they were keep their clusters,
 * the others run again; see mcl.h. */
#include <string.h>

#include "job.h"

/* ---- the older clustering -------------------------------------------------------------------------------- */

/* Lists of a labelling's groups, empty ones too. */
static sp_status list_groups(job *j, const io_labelling *labelling, mcl_clustering *c)
{
    const int64_t nodes = j->input.nodes;
    sp_status status;
    c->nodes = nodes;
    c->clusters = labelling->groups;
    TRY(sp_calloc(j->host, c->clusters + 2, sizeof *c->offsets, (void **)&c->offsets));
    if (!labelling->labels) {
        TRY(sp_alloc(j->host, labelling->s.nnz, sizeof *c->members, (void **)&c->members));
        memcpy(c->offsets, labelling->s.row_offsets, (size_t)(c->clusters + 1) * sizeof *c->offsets);
        memcpy(c->members, labelling->s.col_indices, (size_t)labelling->s.nnz * sizeof *c->members);
        return SP_OK;
    }
    TRY(sp_alloc(j->host, nodes, sizeof *c->members, (void **)&c->members));
    for (int64_t i = 0; i < nodes; i++)
        if (labelling->labels[i] >= 0) c->offsets[labelling->labels[i] + 2]++;
    for (int64_t k = 0; k < c->clusters; k++) c->offsets[k + 2] += c->offsets[k + 1];
    for (int64_t i = 0; i < nodes; i++)
        if (labelling->labels[i] >= 0) c->members[c->offsets[labelling->labels[i] + 1]++] = (int32_t)i;
done:
    return status;
}

static sp_status read_clusters(job *j)
{
    const settings *s = j->settings;
    const io_label_options options = {.other_graph = true, .interrupt = &interrupt_signal};
    io_labelling labelling = {0};
    start_from *f = &j->former;
    sp_status status;
    TRY(io_read_labels(j->host, s->start_from, &j->input, &options, &labelling));
    if (labelling.format == IO_LABELS_NATIVE && j->input.names.count > 0 && j->input.format != IO_NATIVE)
        TRY(sp_fail(j->host, SP_ERROR_ARGUMENT, "%s: its clusters have numbers, %s has names of nodes", s->start_from,
                    input_name(s->input)));
    if (labelling.unknown > 0 && labelling.unlabelled == j->input.nodes)
        TRY(sp_fail(j->host, SP_ERROR_ARGUMENT, "%s: none of its %lld nodes is in %s", s->start_from,
                    (long long)labelling.unknown, input_name(s->input)));
    TRY(list_groups(j, &labelling, &f->former.clustering));
    f->gone = labelling.unknown;
    f->incomplete = labelling.incomplete;
    f->former.incomplete = f->incomplete;
    labelling.incomplete = NULL;
done:
    io_labelling_free(j->host, &labelling);
    return status;
}

/* The start matrix of the older graph, read and prepared as the new one. */
static sp_status read_older_graph(job *j)
{
    const settings *s = j->settings;
    io_graph input = {0};
    sp_csr graph = {0};
    start_from *f = &j->former;
    sp_status status;
    TRY(job_read_graph(j, s->start_graph, &input));
    TRY(sp_alloc(j->host, input.nodes, sizeof *f->place, (void **)&f->place));
    TRY(io_find_nodes(j->host, &input, &j->input, f->place));
    TRY(io_graph_matrix(j->host, &input, false, SP_COMBINE_MAX, input.symmetric, &graph));
    TRY(mcl_start_matrix(j->host, &graph, j->graph_transform, &j->mcl, s->read.lenient, &f->older));
    f->former.start = &f->older;
    f->former.place = f->place;
done:
    io_graph_free(j->host, &input);
    sp_csr_free(j->host, &graph);
    return status;
}

/* ---- the part that runs ----------------------------------------------------------------------------------- */

static void log_part(job *j)
{
    const start_from *f = &j->former;
    const mcl_update *u = &f->update;
    char a[COUNT_TEXT], b[COUNT_TEXT], c[COUNT_TEXT], d[COUNT_TEXT];
    log_line(&j->log, "mcl-gpu: %s: %s clusters; nodes: %s new, %s gone", j->settings->start_from,
             show_count(f->former.clustering.clusters, a), show_count(u->new_nodes, b), show_count(f->gone, c));
    if (f->gone > j->start.rows - u->new_nodes)
        log_warning(&j->log, "mcl-gpu: most of what %s lists is not in %s; is it a file of clusters?",
                    j->settings->start_from, input_name(j->settings->input));
    if (!j->settings->start_graph)
        log_line(&j->log, "mcl-gpu: edges between old nodes are taken to be as they were%s; --start-graph OLD compares "
                 "them", f->gone > 0 ? ", and nodes that are gone to have had none to other components" : "");
    log_line(&j->log, "mcl-gpu: %s of %s components run again, with %s of %s nodes",
             show_count(u->components_touched, a), show_count(u->components, b), show_count(u->nodes_touched, c),
             show_count(j->start.rows, d));
}

/* The whole start matrix is kept to judge clusters, and because nodes without an attractor need it. */
sp_status job_begin_update(job *j)
{
    start_from *f = &j->former;
    sp_status status;
    if (!j->settings->start_from) return SP_OK;
    may_block = 1;
    status = read_clusters(j);
    if (status == SP_OK && j->settings->start_graph) status = read_older_graph(j);
    may_block = 0;
    if (status != SP_OK) return status;
    TRY(mcl_find_touched(j->host, &j->start, &f->former, &f->update));
    sp_csr_free(j->host, &f->older);
    f->former.start = NULL;
    log_part(j);
    if (f->update.nodes_touched == j->start.rows) return SP_OK;
    f->whole = j->start;
    j->start = (sp_csr){0};
    TRY(mcl_touched_part(j->host, &f->whole, f->update.touched, &j->start));
done:
    return status;
}

const sp_csr *job_whole_start(const job *j) { return j->former.whole.row_offsets ? &j->former.whole : &j->start; }

void job_run_everything(job *j)
{
    start_from *f = &j->former;
    if (!f->whole.row_offsets) return;
    sp_csr_free(j->host, &j->start);
    j->start = f->whole;
    f->whole = (sp_csr){0};
}

bool job_update_falls_short(job *j, const mcl_clustering *fresh)
{
    start_from *f = &j->former;
    if (!f->whole.row_offsets || fresh->garbage == 0) return false;
    log_line(&j->log, "mcl-gpu: nodes without an attractor, which form one cluster of the whole graph: everything runs "
             "again");
    job_run_everything(j);
    memset(f->update.touched, 1, (size_t)j->start.rows);
    f->update.nodes_touched = j->start.rows;
    f->update.components_touched = f->update.components;
    return true;
}

/* ---- both together ---------------------------------------------------------------------------------------- */

static void add_count(char *text, size_t size, int64_t count, const char *what)
{
    const size_t used = strlen(text);
    char number[COUNT_TEXT];
    if (count == 0) return;
    snprintf(text + used, size - used, "%s%s %s", used > 0 ? ", " : "", show_count(count, number), what);
}

static void log_changes(job *j)
{
    const mcl_changes *c = &j->former.changes;
    char made[512] = "", lost[160] = "", kept[COUNT_TEXT];
    add_count(made, sizeof made, c->same, "as before");
    add_count(made, sizeof made, c->grown, "with new nodes");
    add_count(made, sizeof made, c->shrunk, "without nodes that are gone");
    add_count(made, sizeof made, c->merged, "merged from several");
    add_count(made, sizeof made, c->pieces, "parts of split ones");
    add_count(made, sizeof made, c->made, "of new nodes alone");
    add_count(lost, sizeof lost, c->split, "old clusters split");
    add_count(lost, sizeof lost, c->gone, "old clusters gone");
    log_line(&j->log, "mcl-gpu: clusters: %s kept; run again: %s%s%s", show_count(c->kept, kept), *made ? made : "none",
             *lost ? "; " : "", lost);
}

sp_status job_join_update(job *j, mcl_clustering *clustering)
{
    start_from *f = &j->former;
    mcl_clustering joined = {0};
    sp_status status;
    if (!j->settings->start_from) return SP_OK;
    TRY(mcl_join_clusterings(j->host, &f->former, f->update.touched, clustering, j->mcl.sort, &joined));
    mcl_clustering_free(j->host, clustering);
    *clustering = joined;
    TRY(mcl_find_changes(j->host, &f->former, f->update.touched, clustering, &f->changes));
    log_changes(j);
done:
    return status;
}

static bool are_same(const mcl_clustering *a, const mcl_clustering *b)
{
    if (a->clusters != b->clusters) return false;
    const size_t offsets = (size_t)(a->clusters + 1) * sizeof *a->offsets;
    if (memcmp(a->offsets, b->offsets, offsets) != 0) return false;
    const int64_t members = a->offsets[a->clusters];
    return members == 0 || memcmp(a->members, b->members, (size_t)members * sizeof *a->members) == 0;
}

sp_status job_check_update(job *j, const mcl_clustering *found, const mcl_clustering *full)
{
    start_from *f = &j->former;
    mcl_distance distance;
    const sp_status status = mcl_compare(j->host, found, full, &distance);
    if (status != SP_OK) return status;
    f->same_as_full = are_same(found, full);
    if (f->same_as_full)
        log_warning(&j->log, "mcl-gpu: --check-start: a run of everything finds the same clusters");
    else
        log_warning(&j->log, "mcl-gpu: --check-start: a run of everything differs: %lld clusters, not %lld; %lld nodes "
                    "to move", (long long)full->clusters, (long long)found->clusters,
                    (long long)(distance.moved_first + distance.moved_second));
    return SP_OK;
}

void job_put_update(const job *j, json *file)
{
    const start_from *f = &j->former;
    const mcl_changes *c = &f->changes;
    const settings *s = j->settings;
    if (!s->start_from) return;
    json_begin(file, "start_from", '{');
    json_text(file, "clusters", s->start_from);
    json_text(file, "graph", s->start_graph);
    json_count(file, "new_nodes", f->update.new_nodes);
    json_count(file, "gone_nodes", f->gone);
    json_count(file, "components", f->update.components);
    json_count(file, "components_run", f->update.components_touched);
    json_count(file, "nodes_run", f->update.nodes_touched);
    const struct { const char *name; int64_t count; } counts[] = {
        {"kept", c->kept}, {"same", c->same}, {"grown", c->grown}, {"shrunk", c->shrunk}, {"merged", c->merged},
        {"pieces", c->pieces}, {"new", c->made}, {"split", c->split}, {"gone", c->gone}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) json_count(file, counts[i].name, counts[i].count);
    if (s->check_start) json_flag(file, "same_as_full_run", f->same_as_full);
    json_end(file, '}');
}

void job_free_update(job *j)
{
    start_from *f = &j->former;
    mcl_clustering_free(j->host, &f->former.clustering);
    mcl_update_free(j->host, &f->update);
    FREE_ALL(j->host, f->incomplete, f->place);
    sp_csr_free(j->host, &f->older);
    sp_csr_free(j->host, &f->whole);
}
