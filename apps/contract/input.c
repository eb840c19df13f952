/* Reads the graph as a matrix of sources and targets, and the labels as a group for each node or, if nodes are in
 * several groups, as a matrix.
 *
 * Rows are sources: the first label of a line, the row of a Matrix Market entry, the column of an mcl matrix (whose
 * lines are columns). Edges that are repeated are combined here, where they become entries, as edges of a group are
 * later; counts and means keep their number.
 */
#include <math.h>
#include <string.h>

#include "base/search.h"
#include "job.h"

/* ---- values --------------------------------------------------------------------------------------------- */

sp_status contract_convert(sp_context *context, sp_csr *matrix, sp_value_type type)
{
    const void *from = matrix->values;
    void *to = NULL;
    if (matrix->value_type == type) return SP_OK;
    matrix->value_type = type;
    if (!from) return SP_OK;
    const sp_status status = sp_alloc(context, matrix->nnz, type == SP_F32 ? sizeof(float) : sizeof(double), &to);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < matrix->nnz; e++) {
        if (type == SP_F32) ((float *)to)[e] = (float)((const double *)from)[e];
        else ((double *)to)[e] = (double)((const float *)from)[e];
    }
    sp_free(context, matrix->values);
    matrix->values = to;
    return SP_OK;
}

static void make_pattern(sp_context *context, sp_csr *matrix)
{
    sp_free(context, matrix->values);
    matrix->values = NULL;
}

/* ---- edges to entries ----------------------------------------------------------------------------------- */

static sp_status build(contract_job *job, const arcs_view *view, const void *values, sp_value_type type,
                       sp_combine combine, sp_csr *matrix)
{
    const io_graph *in = &job->input;
    return sp_csr_from_coo(job->host, &(sp_coo){.rows = in->nodes, .cols = in->nodes, .count = in->arcs,
                                                .row_indices = view->sources, .col_indices = view->targets,
                                                .values = values, .value_type = type}, combine, view->mirror, matrix);
}

static int64_t count_loops(const contract_job *job)
{
    int64_t loops = 0;
#pragma omp parallel for schedule(static) reduction(+ : loops) num_threads(sp_context_threads(job->host))
    for (int64_t e = 0; e < job->input.arcs; e++) loops += job->input.tails[e] == job->input.heads[e];
    return loops;
}

static sp_status refuse_repeats(contract_job *job, int64_t entry)
{
    const sp_csr *g = &job->g;
    short_name from, to;
    if (job->team.follows && job->input.first < 0) /* process 0 has the names */
        return sp_fail(job->host, SP_ERROR_OVERFLOW, "%s: the weights of a repeated edge, signs aside, add up to more "
                       "than 2^53, beyond which whole sums are not exact; scale the weights down, or give --values "
                       "f32, which rounds", job->options->graph);
    return sp_fail(job->host, SP_ERROR_OVERFLOW,
                   "%s: the weights of the repeated edge from %s to %s, signs aside, add up to more than 2^53, beyond "
                   "which whole sums are not exact; scale the weights down, or give --values f32, which rounds",
                   job->options->graph, contract_short_node(job, row_of_entry(g->row_offsets, g->rows, entry), from),
                   contract_short_node(job, g->col_indices[entry], to));
}

/* Whole weights of repeated edges have exact sums (exact.c). */
static sp_status check_repeats(contract_job *job, const arcs_view *view)
{
    sp_csr sums[2] = {{0}, {0}};
    double *part = NULL;
    sp_status status = SP_OK;
    if (!job->whole || job->weight_sum < 9007199254740992.0) return SP_OK;
    for (int i = 0; i < 2; i++) {
        TRY(contract_part(job->host, job->input.weights, job->input.arcs, (contract_half)i, &part));
        TRY(build(job, view, part, SP_F64, SP_COMBINE_SUM, &sums[i]));
        sp_free(job->host, part);
        part = NULL;
    }
    const double *high = sums[HALF_HIGH].values, *low = sums[HALF_LOW].values;
    for (int64_t e = 0; e < job->g.nnz; e++)
        if (contract_is_beyond(high[e], low[e])) TRY(refuse_repeats(job, e));
done:
    sp_free(job->host, part);
    for (int i = 0; i < 2; i++) sp_csr_free(job->host, &sums[i]);
    return status;
}

sp_status contract_build(contract_job *job, const arcs_view *view)
{
    const sp_combine wanted = job->options->combine;
    const io_graph *in = &job->input;
    const bool mean = wanted == SP_COMBINE_MEAN, counts = wanted == SP_COMBINE_COUNT;
    const void *values = counts ? NULL : in->weights;
    sp_status status;
    TRY(build(job, view, values, values ? in->values : SP_F64, mean ? SP_COMBINE_SUM : wanted, &job->g));
    job->repeated = (view->mirror ? 2 * in->arcs - count_loops(job) : in->arcs) - job->g.nnz;
    job->combine = wanted;
    if (job->repeated > 0 && mean) TRY(build(job, view, NULL, SP_F64, SP_COMBINE_SUM, &job->repeats));
    if (job->repeated > 0 && wanted == SP_COMBINE_SUM) TRY(check_repeats(job, view));
    if (job->repeated > 0 && (mean || counts)) job->combine = SP_COMBINE_SUM;
    if (job->repeated == 0 && !values) make_pattern(job->host, &job->g);
done:
    return status;
}

/* What values of G are kept as. Means are rounded in the end. */
static sp_value_type type_of_values(const contract_options *o)
{
    return o->combine == SP_COMBINE_MEAN ? SP_F64 : o->values;
}

sp_status contract_widen_weights(contract_job *job)
{
    io_graph *in = &job->input;
    sp_csr row = {.nnz = in->arcs, .values = in->weights, .value_type = in->values};
    const sp_status status = contract_convert(job->host, &row, type_of_values(job->options));
    if (status != SP_OK) return status;
    in->weights = row.values;
    in->values = row.value_type;
    return SP_OK;
}

/* A matrix read as such, without repeated edges. */
static sp_status take_matrix(contract_job *job)
{
    sp_csr *g = &job->g;
    *g = job->input.matrix;
    memset(&job->input.matrix, 0, sizeof job->input.matrix);
    job->combine = job->options->combine;
    if (job->combine == SP_COMBINE_COUNT) make_pattern(job->host, g);
    sp_status status = contract_convert(job->host, g, g->values ? job->options->values : SP_F64);
    if (status == SP_OK && g->values) status = contract_convert(job->host, g, type_of_values(job->options));
    return status == SP_OK ? contract_check_weights(job, g->values, g->value_type, g->nnz) : status;
}

void contract_free_arcs(contract_job *job)
{
    io_graph *in = &job->input;
    FREE_ALL(job->host, in->tails, in->heads, in->weights);
    in->tails = in->heads = NULL;
    in->weights = NULL;
}

sp_status contract_weigh(contract_job *job, bool mirror)
{
    const io_graph *in = &job->input;
    const void *values = job->options->combine == SP_COMBINE_COUNT ? NULL : in->weights;
    const sp_status status = contract_check_weights(job, values, in->values, in->arcs);
    if (mirror) job->weight_sum *= 2;
    return status;
}

static sp_status build_graph(contract_job *job)
{
    io_graph *in = &job->input;
    arcs_view view;
    sp_status status = contract_find_directions(job);
    if (status == SP_OK) status = contract_view(job, &view);
    if (status != SP_OK) return status;
    if (in->matrix.row_offsets) {
        job->arcs = in->matrix.nnz;
        return take_matrix(job);
    }
    status = contract_widen_weights(job);
    if (status == SP_OK) status = contract_weigh(job, view.mirror);
    if (status == SP_OK) status = contract_build(job, &view);
    if (status == SP_OK && view.mirror) contract_notice_directions(job, job->g.nnz);
    contract_free_arcs(job);
    return status;
}

/* Refuses names of columns that the files do not have. */
static sp_status check_columns(const contract_job *job)
{
    const contract_options *o = job->options;
    if (o->node_column && !o->attributes && !o->label_column && job->input.format != IO_GRAPHML)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: --node-column is for tables of nodes (--attributes, --label-column) and GraphML", o->graph);
    return SP_OK;
}

/* Gives nodes and groups their first numbers; labels may give groups another one. */
static sp_status set_bases(contract_job *job)
{
    const contract_options *o = job->options;
    io_graph *in = &job->input;
    if (o->node_base == 1 && in->format == IO_NATIVE)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: the nodes of an mcl matrix have ids: leave --node-base out",
                       o->graph);
    job->base = o->base >= 0 ? o->base : o->node_base >= 0 ? o->node_base : in->format != IO_NPZ;
    if (o->node_base >= 0) in->first = (int)o->node_base;
    else if (in->format == IO_CSR && in->first == 1) in->first = (int)job->base;
    return SP_OK;
}

io_read_options contract_reading(const contract_options *o)
{
    return (io_read_options){.format = o->from,
                             .any_sign = true,
                             .matrix = !o->undirected,
                             .values = o->values,
                             .score_column = o->edge_column,
                             .node_column = o->node_column,
                             .interrupt = &interrupt_signal};
}

sp_status contract_take_input(contract_job *job)
{
    char columns[IO_LISTED];
    if (job->input.blast_hits)
        notice_line(&job->line, "%s: a BLAST table, read as label pairs weighs its hits by their identity, column 3; "
                    "--from blast by their bit scores", job->options->graph);
    if (job->input.presumed && !job->options->directed && !job->options->undirected)
        notice_line(&job->line, UNDIRECTED "--directed counts the one that is written", job->options->graph);
    if (job->input.unused.count > 0)
        notice_line(&job->line, UNWEIGHTED, job->options->graph, io_names_list(&job->input.unused, columns));
    sp_status status = check_columns(job);
    if (status == SP_OK) status = set_bases(job);
    return status == SP_OK ? io_graph_spread(job->host, &job->input) : status;
}

sp_status contract_read_graph(contract_job *job)
{
    const contract_options *o = job->options;
    const io_read_options reading = contract_reading(o);
    double began = wall_seconds();
    show_line(&job->line, "reading %s", o->graph);
    may_block = 1;
    sp_status status = read_file_or_folder(job->host, o->graph, &reading, &job->input);
    may_block = 0;
    if (status == SP_OK) status = contract_take_input(job);
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
    *length = (size_t)snprintf(buffer, 32, "%lld", (long long)(in->ids ? in->ids[node] : node + in->first));
    return buffer;
}

const char *contract_short_node(const contract_job *job, int64_t node, short_name text)
{
    char buffer[32];
    size_t length;
    const char *name = contract_node_name(job, node, buffer, &length);
    snprintf(text, sizeof(short_name), "%.*s", (int)(length < 40 ? length : 40), name);
    return text;
}

static sp_status refuse_unlabelled(contract_job *job)
{
    short_name name;
    contract_short_node(job, job->labelling.first_unlabelled, name);
    const io_label_format format = job->labelling.format;
    const bool listed = format == IO_LABELS_LIST || format == IO_LABELS_PAIRS;
    return sp_fail(job->host, SP_ERROR_ARGUMENT,
                   job->labelling.unlabelled == 1
                       ? "%s: %lld node has no label, %s; give --unlabelled drop or keep%s"
                       : "%s: %lld nodes have no label, such as %s; give --unlabelled drop or keep%s",
                   job->options->labels, (long long)job->labelling.unlabelled, name,
                   listed ? " (-1, NA and nan are no label)" : "");
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
    if (values) TRY(sp_grow(job->host, s->nnz, nnz, sizeof(double), &values));
    s->values = values;
    for (int64_t e = 0; e < s->nnz; e++) seen[s->col_indices[e]] = 1;
    for (int64_t i = 0; i < s->cols; i++) {
        if (seen[i]) continue;
        s->col_indices[s->nnz] = (int32_t)i;
        if (s->values) ((double *)s->values)[s->nnz] = 1;
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
        .base = o->base >= 0 ? (int)o->base : IO_BASE_AUTO,
        .column = o->label_column,
        .node_column = o->node_column,
        .skip_unknown = o->unknown == UNKNOWN_DROP,
        .compact = o->compact,
        .interrupt = &interrupt_signal,
    };
    io_labelling *l = &job->labelling;
    int32_t *used = NULL;
    const double began = wall_seconds();
    sp_status status;
    show_line(&job->line, "reading %s", o->labels);
    may_block = 1;
    status = o->through ? contract_read_through(job, &reading)
                        : io_read_labels(job->host, o->labels, &job->input, &reading, l);
    may_block = 0;
    if (status != SP_OK) return status;
    job->groups = l->groups;
    if (l->format == IO_LABELS_LIST || l->format == IO_LABELS_PAIRS) job->base = l->base;
    if (l->s.values && o->combine != SP_COMBINE_SUM)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: memberships have weights, which --combine %s has no use for: leave the weights out, or "
                       "give --combine sum",
                       o->labels, combine_word(o->combine));
    if (!l->labels && o->engine == CONTRACTION_FUSED)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: some nodes are in several groups, or have weights; leave --engine fused out", o->labels);
    if (!l->labels && o->node_output)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: some nodes are in several groups, or have weights; leave --node-output out", o->labels);
    if (!l->labels && o->label_output)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: some nodes are in several groups, or have weights; leave --label-output out", o->labels);
    if (l->unlabelled > 0 && o->unlabelled == UNLABELLED_ERROR) return refuse_unlabelled(job);
    if (l->unlabelled > 0 && o->unlabelled == UNLABELLED_KEEP) TRY(keep_unlabelled(job));
    TRY(contract_check_label_file(job));
    TRY(sp_calloc(job->host, job->groups, sizeof *used, (void **)&used));
    job->empty = count_empty(job, used);
    if (o->compact && job->empty > 0)
        status = l->labels ? contraction_compact(job->host, job->g.rows, l->labels, &job->groups, &job->old)
                           : compact_matrix(job);
    if (status == SP_OK && !l->labels) status = contract_convert(job->host, &l->s, job->g.value_type);
    job->seconds.labels = wall_seconds() - began;
done:
    sp_free(job->host, used);
    return status;
}
