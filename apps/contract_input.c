/* What contract reads: the graph as a matrix of sources and targets, the labels as a group for each node or, where
 * nodes are in several groups, as a matrix.
 *
 * Rows are sources: the first label of a line, the row of a Matrix Market entry, the column of an mcl matrix (whose
 * lines are columns). Edges that are repeated are combined here, where they become entries, as edges of a group are
 * later; counts and means remember how many they were.
 */
#include <math.h>
#include <string.h>

#include "contract_job.h"

/* ---- values --------------------------------------------------------------------------------------------- */

typedef enum weights_kind { WEIGHTS_ONE, WEIGHTS_WHOLE, WEIGHTS_REAL } weights_kind;

/* Sums of whole numbers are exact in f64, up to 2^53; of others f32 holds as much as was read. */
static weights_kind kind_of(const sp_context *context, const float *weights, int64_t count)
{
    int64_t others = 0, reals = 0;
    if (!weights) return WEIGHTS_ONE;
#pragma omp parallel for schedule(static) reduction(+ : others, reals) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < count; e++) {
        others += weights[e] != 1;
        reals += weights[e] != truncf(weights[e]);
    }
    return reals ? WEIGHTS_REAL : others ? WEIGHTS_WHOLE : WEIGHTS_ONE;
}

static sp_status widen(sp_context *context, const float *weights, int64_t count, double **wide)
{
    sp_status status = sp_alloc(context, count, sizeof **wide, (void **)wide);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < count; e++) (*wide)[e] = (double)weights[e];
    return SP_OK;
}

static void make_pattern(sp_context *context, sp_csr *matrix)
{
    sp_free(context, matrix->values);
    matrix->values = NULL;
}

/* ---- edges to entries ----------------------------------------------------------------------------------- */

/* How the arcs of the input are made entries. */
typedef struct arcs_view {
    const int32_t *sources, *targets;
    bool mirror; /* each stands for both directions */
} arcs_view;

static sp_status build(contract_job *job, const arcs_view *view, const void *values, sp_value_type type,
                       sp_combine combine, sp_csr *matrix)
{
    const io_graph *in = &job->input;
    return sp_csr_from_coo(job->host, in->nodes, in->nodes, in->arcs, view->sources, view->targets, values, type,
                           combine, view->mirror, matrix);
}

static int64_t count_loops(const contract_job *job)
{
    int64_t loops = 0;
#pragma omp parallel for schedule(static) reduction(+ : loops) num_threads(sp_context_threads(job->host))
    for (int64_t e = 0; e < job->input.arcs; e++) loops += job->input.tails[e] == job->input.heads[e];
    return loops;
}

/* g, and for means of repeated edges how often each is there. */
static sp_status build_matrices(contract_job *job, const arcs_view *view)
{
    const sp_combine wanted = job->options->combine;
    io_graph *in = &job->input;
    const weights_kind kind = wanted == SP_COMBINE_COUNT ? WEIGHTS_ONE : kind_of(job->host, in->weights, in->arcs);
    const bool mean = wanted == SP_COMBINE_MEAN, sums = mean || wanted == SP_COMBINE_SUM;
    const bool wide = mean || kind == WEIGHTS_ONE || (kind == WEIGHTS_WHOLE && sums);
    const sp_combine combine = mean ? SP_COMBINE_SUM : wanted;
    double *values = NULL;
    const void *used = kind == WEIGHTS_ONE ? NULL : in->weights;
    sp_status status;
    if (used && wide) TRY(widen(job->host, in->weights, in->arcs, &values));
    if (values) used = values;
    TRY(build(job, view, used, wide ? SP_F64 : SP_F32, combine, &job->g));
    job->repeated = (view->mirror ? 2 * in->arcs - count_loops(job) : in->arcs) - job->g.nnz;
    job->combine = wanted;
    if (job->repeated > 0 && mean) TRY(build(job, view, NULL, SP_F64, SP_COMBINE_SUM, &job->repeats));
    if (job->repeated > 0 && (mean || wanted == SP_COMBINE_COUNT)) job->combine = SP_COMBINE_SUM;
    if (job->repeated == 0 && kind == WEIGHTS_ONE) make_pattern(job->host, &job->g);
done:
    sp_free(job->host, values);
    return status;
}

/* A matrix read as such, without repeated edges: only its type may have to change. */
static sp_status take_matrix(contract_job *job)
{
    sp_csr *g = &job->g;
    double *wide = NULL;
    *g = job->input.matrix;
    memset(&job->input.matrix, 0, sizeof job->input.matrix);
    job->combine = job->options->combine;
    if (!g->values || job->combine == SP_COMBINE_COUNT) make_pattern(job->host, g);
    if (!g->values) g->value_type = SP_F64;
    if (!g->values || g->value_type == SP_F64) return SP_OK;
    const bool whole = kind_of(job->host, g->values, g->nnz) != WEIGHTS_REAL;
    if (!(job->combine == SP_COMBINE_SUM && whole) && job->combine != SP_COMBINE_MEAN) return SP_OK;
    sp_status status = widen(job->host, g->values, g->nnz, &wide);
    if (status != SP_OK) return status;
    sp_free(job->host, g->values);
    g->values = wide;
    g->value_type = SP_F64;
    return SP_OK;
}

static void free_arcs(contract_job *job)
{
    io_graph *in = &job->input;
    sp_free(job->host, in->tails);
    sp_free(job->host, in->heads);
    sp_free(job->host, in->weights);
    in->tails = in->heads = NULL;
    in->weights = NULL;
}

/* Label pairs stand for both directions, so that a list of both counts each edge twice: then there are as many
 * entries as lines, and as many lines up as down. */
static void tell_of_both_directions(contract_job *job)
{
    const contract_options *o = job->options;
    const io_graph *in = &job->input;
    int64_t up = 0, down = 0;
    if (o->undirected || !job->undirected || in->format == IO_MTX || job->g.nnz != in->arcs) return;
#pragma omp parallel for schedule(static) reduction(+ : up, down) num_threads(sp_context_threads(job->host))
    for (int64_t e = 0; e < in->arcs; e++) {
        up += in->tails[e] < in->heads[e];
        down += in->tails[e] > in->heads[e];
    }
    if (up == 0 || up != down) return;
    notice_line(&job->line, "%s: each edge is there twice, and both count; if these are its directions, as in a .tsv "
                "that contract wrote, give --directed", o->graph);
}

static sp_status build_graph(contract_job *job)
{
    const contract_options *o = job->options;
    io_graph *in = &job->input;
    const bool listed = in->undirected && !in->symmetric; /* both directions are there */
    /* STRING files hold every pair twice, too, so that their lines are arcs. */
    const bool mirror = o->undirected ? !listed : !o->directed && in->symmetric && in->format != IO_STRING;
    const bool rows_are_heads = in->format == IO_MTX;
    const arcs_view view = {rows_are_heads ? in->heads : in->tails, rows_are_heads ? in->tails : in->heads, mirror};
    sp_status status;
    job->undirected = mirror || (!o->directed && listed);
    job->arcs = in->arcs;
    if (in->matrix.row_offsets) {
        job->arcs = in->matrix.nnz;
        return take_matrix(job);
    }
    status = build_matrices(job, &view);
    if (status == SP_OK && mirror) tell_of_both_directions(job);
    free_arcs(job);
    return status;
}

sp_status contract_read_graph(contract_job *job)
{
    const contract_options *o = job->options;
    const io_read_options reading = {.format = o->from,
                                     .any_sign = true,
                                     .matrix = !o->undirected,
                                     .interrupt = &interrupt_signal};
    double began = wall_seconds();
    show_line(&job->line, "reading %s", o->graph);
    may_block = 1;
    sp_status status = io_read_graph(job->host, o->graph, &reading, &job->input);
    may_block = 0;
    if (status == SP_OK && job->input.blast_hits)
        notice_line(&job->line, "%s: a BLAST table, read as label pairs weighs its hits by their identity, column 3; "
                    "--from blast by their bit scores", o->graph);
    if (status == SP_OK) status = io_graph_spread(job->host, &job->input);
    if (status != SP_OK) return status;
    job->seconds.graph = wall_seconds() - began;
    began = wall_seconds();
    show_line(&job->line, "%lld nodes, %lld edges: making a matrix", (long long)job->input.nodes,
                 (long long)(job->input.arcs + job->input.matrix.nnz));
    status = build_graph(job);
    job->seconds.build = wall_seconds() - began;
    return status;
}

/* ---- nodes without labels ------------------------------------------------------------------------------- */

const char *contract_node_name(const contract_job *job, int64_t node, char buffer[32], size_t *length)
{
    const io_graph *in = &job->input;
    if (in->names.count > 0) {
        *length = io_name_length(&in->names, node);
        return io_name(&in->names, node);
    }
    const int64_t first = in->format == IO_MTX || in->format == IO_METIS ? 1
                          : in->format == IO_CSR                         ? job->options->base
                                                                         : 0;
    *length = (size_t)snprintf(buffer, 32, "%lld", (long long)(in->ids ? in->ids[node] : node + first));
    return buffer;
}

static sp_status refuse_unlabelled(contract_job *job)
{
    char buffer[32];
    size_t length;
    const char *name = contract_node_name(job, job->labelling.first_unlabelled, buffer, &length);
    return sp_fail(job->host, SP_ERROR_ARGUMENT,
                   job->labelling.unlabelled == 1
                       ? "%s: %lld node has no label, %.*s; give --unlabelled drop or keep"
                       : "%s: %lld nodes have no label, such as %.*s; give --unlabelled drop or keep",
                   job->options->labels, (long long)job->labelling.unlabelled, (int)(length < 40 ? length : 40),
                   name);
}

/* The matrix with a row more for each node in no group. */
static sp_status keep_in_matrix(contract_job *job)
{
    io_labelling *l = &job->labelling;
    sp_csr *s = &l->s;
    unsigned char *seen = NULL;
    const int64_t nnz = s->nnz + l->unlabelled, rows = s->rows + l->unlabelled;
    void *offsets = s->row_offsets, *columns = s->col_indices, *values = s->values;
    sp_status status;
    TRY(sp_calloc(job->host, s->cols, 1, (void **)&seen));
    TRY(sp_grow(job->host, s->rows + 1, rows + 1, sizeof *s->row_offsets, &offsets));
    s->row_offsets = offsets;
    TRY(sp_grow(job->host, s->nnz, nnz, sizeof *s->col_indices, &columns));
    s->col_indices = columns;
    if (values) TRY(sp_grow(job->host, s->nnz, nnz, sizeof(float), &values));
    s->values = values;
    for (int64_t e = 0; e < s->nnz; e++) seen[s->col_indices[e]] = 1;
    for (int64_t i = 0; i < s->cols; i++) {
        if (seen[i]) continue;
        s->col_indices[s->nnz] = (int32_t)i;
        if (s->values) ((float *)s->values)[s->nnz] = 1;
        s->row_offsets[++s->rows] = ++s->nnz;
    }
done:
    sp_free(job->host, seen);
    return status;
}

static sp_status keep_unlabelled(contract_job *job)
{
    io_labelling *l = &job->labelling;
    if (job->groups + l->unlabelled > INT32_MAX)
        return sp_fail(job->host, SP_ERROR_OVERFLOW, "%s: 2^31 groups or more; give --unlabelled drop",
                       job->options->labels);
    if (!l->labels) {
        sp_status status = keep_in_matrix(job);
        job->groups = l->s.rows;
        return status;
    }
    for (int64_t i = 0; i < job->g.rows; i++)
        if (l->labels[i] < 0) l->labels[i] = (int32_t)job->groups++;
    return SP_OK;
}

/* ---- empty groups --------------------------------------------------------------------------------------- */

static sp_status compact_matrix(contract_job *job)
{
    sp_csr *s = &job->labelling.s;
    int64_t kept = 0;
    sp_status status = sp_alloc(job->host, s->rows, sizeof *job->old, (void **)&job->old);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < s->rows; i++) {
        const int64_t end = s->row_offsets[i + 1];
        if (end == s->row_offsets[i]) continue;
        job->old[kept] = (int32_t)i;
        s->row_offsets[++kept] = end;
    }
    job->groups = s->rows = kept;
    return SP_OK;
}

static int64_t count_empty(const contract_job *job, int32_t *used)
{
    const io_labelling *l = &job->labelling;
    int64_t empty = 0;
    for (int64_t i = 0; l->labels && i < job->g.rows; i++)
        if (l->labels[i] >= 0) used[l->labels[i]] = 1;
    for (int64_t p = 0; p < job->groups; p++)
        empty += l->labels ? !used[p] : l->s.row_offsets[p] == l->s.row_offsets[p + 1];
    return empty;
}

sp_status contract_read_labels(contract_job *job)
{
    const contract_options *o = job->options;
    const io_label_options reading = {
        .format = o->label_format,
        .base = (int)o->base,
        .skip_unknown = o->skip_unknown,
        .compact = o->compact,
        .interrupt = &interrupt_signal,
    };
    io_labelling *l = &job->labelling;
    int32_t *used = NULL;
    const double began = wall_seconds();
    sp_status status;
    show_line(&job->line, "reading %s", o->labels);
    may_block = 1;
    status = io_read_labels(job->host, o->labels, &job->input, &reading, l);
    may_block = 0;
    if (status != SP_OK) return status;
    job->groups = l->groups;
    if (!l->labels && o->engine == CONTRACTION_FUSED)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: some nodes are in several groups, or have weights; leave --engine fused out", o->labels);
    if (!l->labels && o->node_output)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: some nodes are in several groups, or have weights; leave --node-output out", o->labels);
    if (l->unlabelled > 0 && o->unlabelled == UNLABELLED_ERROR) return refuse_unlabelled(job);
    if (l->unlabelled > 0 && o->unlabelled == UNLABELLED_KEEP) TRY(keep_unlabelled(job));
    TRY(sp_calloc(job->host, job->groups, sizeof *used, (void **)&used));
    job->empty = count_empty(job, used);
    if (o->compact && job->empty > 0)
        status = l->labels ? contraction_compact(job->host, job->g.rows, l->labels, &job->groups, &job->old)
                           : compact_matrix(job);
    job->seconds.labels = wall_seconds() - began;
done:
    sp_free(job->host, used);
    return status;
}
