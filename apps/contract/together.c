/* One contraction in several processes (common/team.h), whose result has the bytes of one process.
 *
 * Each process reads a part of the graph and keeps its arcs; what cannot be read in parts process 0 reads alone. It
 * also reads the labels, which all get. A group belongs to one process: groups are cut by their numbers, so that all
 * get about equally many arcs. An arc goes to the process of its source's group. Processes send in the order of their
 * parts, so the owner of a group has its arcs in the order of the file. It makes the rows of G for its nodes, and from
 * them its rows of C, by the same calls as one process: their sums have the same terms in the same order. Where memory
 * is limited, groups come in batches. Process 0 gathers the figures of groups and writes; rows of C stay where they are
 * until they are written (together_rows.c).
 */
#include <string.h>

#include "job.h"

/* What an arc takes at its owner while it becomes an entry: itself, the entry, and what sorts them. */
enum { ARC_BYTES = 64 };

/* ---- what one process does ------------------------------------------------------------------------------------ */

/* What several processes do not do, and why; NULL: nothing. */
static const char *alone_for(const contract_options *o, const char **why)
{
    const char *const whole = "it needs the whole graph in one place";
    const struct { bool asked; const char *option, *why; } cases[] = {
        {o->repeat != REPEAT_NEVER, "--repeat", whole},
        {o->judge != JUDGE_NOT, "--judge", whole},
        {o->refine != NULL, "--refine", whole},
        {strncmp(o->device, "cuda", 4) == 0, "--device cuda", "several processes contract on their CPUs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].asked) return *why = cases[i].why, cases[i].option;
    return NULL;
}

/* Process 0 says what is wrong with the command line. */
static sp_status check_command(contract_job *job)
{
    const char *why, *option = alone_for(job->options, &why);
    uint64_t first = job->arguments;
    sp_status status = SP_OK;
    if (option && !job->team.follows)
        usage_mistake("contract", "%s is for a run in one process, and there are %d: %s", option, job->team.ranks->size,
                      why);
    job->mistaken = option != NULL;
    if (!option && !job->team.follows) status = contract_check_outputs(job);
    TRY(team_agree(&job->team, &job->mistaken, sizeof job->mistaken));
    if (job->mistaken) job->team.ends_together = true;
    if (job->mistaken) return SP_ERROR_ARGUMENT;
    TRY(team_agree_on(&job->team, status));
    TRY(team_agree(&job->team, &first, sizeof first));
    if (first != job->arguments)
        status = sp_fail(job->host, SP_ERROR_ARGUMENT, "other arguments than those of process 0");
    TRY(team_agree_on(&job->team, status));
done:
    return status;
}

/* ---- the graph ------------------------------------------------------------------------------------------------- */

/* Process 0 reads what has no parts. All learn what it is, and process 0 alone has its arcs. */
static sp_status read_alone(contract_job *job, const io_read_options *reading)
{
    io_graph *in = &job->input, all;
    sp_status status = SP_OK;
    if (!job->team.follows) {
        status = read_file_or_folder(job->host, job->options->graph, reading, in);
        if (status == SP_OK) status = io_graph_spread(job->host, in);
    }
    TRY(team_agree_on(&job->team, status));
    all = *in;
    TRY(team_agree(&job->team, &all, sizeof all));
    if (!job->team.follows) goto done;
    all.packed = NULL;
    all.tails = all.heads = NULL;
    all.weights = NULL;
    all.node_weights = all.node_sizes = all.ids = NULL;
    all.names = (io_names){0};
    *in = all;
done:
    return status;
}

/* Fills in job->input: the arcs are those of this process, job->arcs is the number of all. */
static sp_status read_graph(contract_job *job)
{
    const contract_options *o = job->options;
    team *t = &job->team;
    io_read_options reading = contract_reading(o);
    io_graph part = {0};
    bool parts = false;
    sp_status status;
    reading.matrix = false;
    show_line(&job->line, "reading %s", o->graph);
    if (!t->follows) parts = team_can_read(t, o->graph, &reading, 0);
    TRY(team_agree(t, &parts, sizeof parts));
    if (parts) TRY(team_read(t, o->graph, reading, &part, &job->input, &parts));
    if (!parts) {
        TRY(read_alone(job, &reading));
        job->arcs = job->input.arcs;
        if (t->follows) job->input.arcs = 0;
        goto done;
    }
    int64_t vast = part.vast_line > 0;
    TRY(team_add_up(t, &vast));
    job->input.vast_line = vast > 0 ? -1 : 0; /* its number in the file is not known */
    job->arcs = job->input.arcs;
    job->input.arcs = part.arcs;
    job->input.tails = part.tails;
    job->input.heads = part.heads;
    job->input.weights = part.weights;
    part.tails = part.heads = NULL;
    part.weights = NULL;
done:
    io_graph_free(job->host, &part);
    return status;
}

/* The arcs of this process, with weights of the type in which they are combined unless all are 1. */
static sp_status take_arcs(contract_job *job, arcs_view *view, bool *weighted)
{
    const int64_t all = job->arcs;
    int64_t weighs = job->input.weights != NULL;
    sp_status status;
    TRY(team_agree_on(&job->team, contract_take_input(job)));
    TRY(contract_find_directions(job));
    TRY(team_agree_on(&job->team, contract_view(job, view)));
    job->arcs = all;
    TRY(team_agree_on(&job->team, contract_widen_weights(job)));
    TRY(team_add_up(&job->team, &weighs));
    *weighted = weighs > 0;
    TRY(team_agree_on(&job->team, contract_weigh(job, view->mirror)));
done:
    return status;
}

/* ---- labels ---------------------------------------------------------------------------------------------------- */

static sp_status refuse_overlap(const contract_job *job)
{
    return sp_fail(job->host, SP_ERROR_UNSUPPORTED,
                   "%s: some nodes are in several groups, or have weights: such labels are for a run in one process, "
                   "because their rows of the graph would be needed by several", job->options->labels);
}

static sp_status read_labels(contract_job *job)
{
    sp_status status = SP_OK;
    if (job->options->node_weights) TRY(contract_read_weights(job));
    if (job->options->attributes) TRY(contract_read_attributes(job));
    TRY(contract_read_labels(job));
    if (!job->labelling.labels) TRY(refuse_overlap(job));
    TRY(contract_name_groups(job));
    TRY(contract_check_tab(job));
    TRY(contract_sum_nodes(job));
    contract_notice_loops(job, NULL, NULL);
done:
    return status;
}

/* All get what groups are called, for messages. */
static sp_status share_names(contract_job *job)
{
    io_names *names = &job->group_names, made = *names;
    const bool follows = job->team.follows;
    int64_t sizes[2] = {names->count, names->count ? io_name_begin(names, names->count) : 0};
    sp_status status;
    TRY(team_agree(&job->team, sizes, sizeof sizes));
    if (sizes[0] == 0) return SP_OK;
    const int64_t groups = sizes[0] / IO_NAME_GROUP + 1;
    if (follows) {
        status = sp_alloc(job->host, groups, sizeof *made.groups, (void **)&made.groups);
        if (status == SP_OK) status = sp_alloc(job->host, sizes[0] + 1, sizeof *made.offsets, (void **)&made.offsets);
        if (status == SP_OK) status = sp_alloc(job->host, sizes[1], 1, (void **)&made.bytes);
    }
    TRY(team_agree_on(&job->team, status));
    TRY(team_agree(&job->team, made.groups, groups * (int64_t)sizeof *made.groups));
    TRY(team_agree(&job->team, made.offsets, (sizes[0] + 1) * (int64_t)sizeof *made.offsets));
    TRY(team_agree(&job->team, made.bytes, sizes[1]));
    made.count = sizes[0];
    *names = made;
    return SP_OK;
done:
    if (follows) io_names_free(job->host, &made);
    return status;
}

/* Process 0 reads the labels; all get the group of each node. */
static sp_status share_labels(contract_job *job)
{
    const int64_t nodes = job->input.nodes;
    int32_t **labels = &job->labelling.labels;
    int64_t known[2];
    sp_status status = SP_OK;
    job->g.rows = job->g.cols = nodes;
    job->g.value_type = SP_F64;
    TRY(team_agree_on(&job->team, job->team.follows ? SP_OK : read_labels(job)));
    known[0] = job->groups;
    known[1] = job->base;
    TRY(team_agree(&job->team, known, sizeof known));
    job->groups = known[0];
    job->base = known[1];
    if (job->team.follows) status = sp_alloc(job->host, nodes, sizeof **labels, (void **)labels);
    TRY(team_agree_on(&job->team, status));
    TRY(team_agree(&job->team, *labels, nodes * (int64_t)sizeof **labels));
    TRY(share_names(job));
done:
    return status;
}

/* ---- who owns which groups ------------------------------------------------------------------------------------- */

/* Nodes without a label go along with some group, so that their edges are counted. */
typedef struct group_plan {
    const int32_t *labels;
    int64_t groups;    /* at least 1 */
    int64_t *arcs;     /* of each group: all that processes send */
    int32_t *owner, *batch;
    int64_t *cut;      /* process r owns the groups cut[r] to cut[r + 1] - 1 */
    int32_t batches;   /* the most that a process has */
    int32_t current;
} group_plan;

static int64_t home(const group_plan *p, int32_t node)
{
    return p->labels[node] >= 0 ? p->labels[node] : node % p->groups;
}

static int owner_now(const void *user, int32_t node)
{
    const group_plan *p = user;
    const int64_t group = home(p, node);
    return p->batch[group] == p->current ? p->owner[group] : -1;
}

static void close_plan(contract_job *job, group_plan *p)
{
    FREE_ALL(job->host, p->arcs, p->owner, p->batch, p->cut);
}

/* numbers[k] becomes the sum of numbers[k] of all processes: each adds up some of them, and all learn the sums. */
static sp_status add_up_all(contract_job *job, int64_t *numbers, int64_t count)
{
    const sp_ranks *ranks = job->team.ranks;
    sp_traffic t = {0};
    int64_t *first = NULL, *got = NULL;
    sp_status status;
    TRY(sp_traffic_create(job->host, ranks, &t));
    TRY(sp_alloc(job->host, ranks->size + 1, sizeof *first, (void **)&first));
    for (int r = 0; r <= ranks->size; r++) first[r] = count / ranks->size * r + count % ranks->size * r / ranks->size;
    for (int r = 0; r < ranks->size; r++) t.out[r] = first[r + 1] - first[r];
    TRY(sp_traffic_learn(job->host, ranks, &t));
    TRY(sp_calloc(job->host, t.got, sizeof *got, (void **)&got));
    TRY(sp_traffic_exchange(job->host, ranks, &t, sizeof *got, numbers, got));
    const int64_t begin = first[ranks->rank], own = t.out[ranks->rank];
    for (int64_t k = 0; k < own; k++) numbers[begin + k] = 0;
    for (int64_t k = 0; k < t.got; k++) numbers[begin + k % own] += got[k];
    TRY(sp_ranks_share(job->host, ranks, first, sizeof *numbers, numbers));
done:
    sp_traffic_free(job->host, &t);
    FREE_ALL(job->host, first, got);
    return status;
}

/* Cuts the groups so that all processes get about equally many arcs and groups. */
static void cut_groups(const group_plan *p, int size)
{
    double total = 0, sum = 0;
    int64_t group = 0;
    for (int64_t k = 0; k < p->groups; k++) total += 1 + (double)p->arcs[k];
    for (int r = 0; r < size; r++) {
        p->cut[r] = group;
        while (group < p->groups && sum < total / size * (r + 1)) sum += 1 + (double)p->arcs[group++];
    }
    p->cut[size] = p->groups;
}

static sp_status refuse_large(const contract_job *job, const group_plan *p, int64_t group)
{
    const team *t = &job->team;
    const int64_t bytes = p->arcs[group] * ARC_BYTES;
    short_name name;
    team_remedy remedy;
    return sp_fail(job->host, SP_ERROR_HOST_MEMORY,
                   "%s: the %lld edges of group %s take %lld MB while they are contracted, and --memory leaves each "
                   "process %lld MB: %s", job->options->graph, (long long)p->arcs[group],
                   contract_short_group(job, group, name), (long long)(bytes / 1000000 + 1),
                   (long long)(t->ranks->memory / 1000000),
                   team_would_do(t, bytes, job->options->memory, t->mpi->host_size, remedy));
}

/* Gives each group its owner and its batch, the same in all processes. */
static sp_status cut_batches(const contract_job *job, group_plan *p)
{
    const int64_t memory = job->team.ranks->memory, most = memory > 0 ? memory / ARC_BYTES : INT64_MAX;
    int64_t largest = 0;
    p->batches = 1;
    for (int64_t k = 1; k < p->groups; k++)
        if (p->arcs[k] > p->arcs[largest]) largest = k;
    if (p->groups > 0 && p->arcs[largest] > most) return refuse_large(job, p, largest);
    for (int r = 0; r < job->team.ranks->size; r++) {
        int64_t arcs = 0;
        int32_t batch = 0;
        for (int64_t k = p->cut[r]; k < p->cut[r + 1]; k++) {
            if (arcs > most - p->arcs[k]) {
                batch++;
                arcs = 0;
            }
            arcs += p->arcs[k];
            p->owner[k] = r;
            p->batch[k] = batch;
        }
        if (batch >= p->batches) p->batches = batch + 1;
    }
    return SP_OK;
}

static sp_status make_plan(contract_job *job, const arcs_view *view, group_plan *p)
{
    const io_graph *in = &job->input;
    const int size = job->team.ranks->size;
    sp_status status;
    *p = (group_plan){.labels = job->labelling.labels, .groups = job->groups > 0 ? job->groups : 1};
    TRY(sp_calloc(job->host, p->groups, sizeof *p->arcs, (void **)&p->arcs));
    TRY(sp_alloc(job->host, p->groups, sizeof *p->owner, (void **)&p->owner));
    TRY(sp_alloc(job->host, p->groups, sizeof *p->batch, (void **)&p->batch));
    TRY(sp_alloc(job->host, size + 1, sizeof *p->cut, (void **)&p->cut));
    for (int64_t k = 0; k < in->arcs; k++) {
        p->arcs[home(p, view->sources[k])]++;
        if (view->mirror && view->sources[k] != view->targets[k]) p->arcs[home(p, view->targets[k])]++;
    }
    TRY(add_up_all(job, p->arcs, p->groups));
    cut_groups(p, size);
    TRY(team_agree_on(&job->team, cut_batches(job, p)));
done:
    return status;
}

/* ---- batches --------------------------------------------------------------------------------------------------- */

/* What this process has made: its rows of C, and figures of its groups. */
typedef struct own_rows {
    sp_csr c;
    int64_t capacity; /* entries */
    contraction_group *figures, *batch; /* of all groups; NULL: not wanted */
    int64_t entries, loops, repeated;   /* of its rows of G */
} own_rows;

/* Appends the rows `first` to `end` - 1 of C. */
static sp_status append_rows(contract_job *job, int64_t first, int64_t end, own_rows *own)
{
    const sp_csr *from = &job->c;
    sp_csr *to = &own->c;
    const size_t size = from->value_type == SP_F32 ? sizeof(float) : sizeof(double);
    const int64_t begin = from->row_offsets[first], more = from->row_offsets[end] - begin, wanted = to->nnz + more;
    void *columns = to->col_indices, *values = to->values;
    sp_status status;
    if (wanted > own->capacity) {
        const int64_t grown = wanted > 2 * own->capacity ? wanted : 2 * own->capacity;
        TRY(sp_grow(job->host, own->capacity, grown, sizeof *to->col_indices, &columns));
        to->col_indices = columns;
        TRY(sp_grow(job->host, own->capacity, grown, size, &values));
        to->values = values;
        own->capacity = grown;
    }
    to->value_type = from->value_type;
    if (more > 0) {
        memcpy(to->col_indices + to->nnz, from->col_indices + begin, (size_t)more * sizeof *to->col_indices);
        memcpy((char *)to->values + (size_t)to->nnz * size, (const char *)from->values + (size_t)begin * size,
               (size_t)more * size);
    }
    for (int64_t p = first; p < end; p++) to->row_offsets[++to->rows] = to->nnz + from->row_offsets[p + 1] - begin;
    to->nnz = wanted;
    return SP_OK;
done:
    return status;
}

/* Makes the rows of the groups `first` to `end` - 1 from the arcs that have come, which are job->input's now. */
static sp_status contract_batch(contract_job *job, int64_t first, int64_t end, own_rows *own)
{
    const arcs_view view = {job->input.tails, job->input.heads, false};
    sp_status status;
    TRY(contract_build(job, &view));
    own->entries += job->g.nnz;
    own->loops += contract_count_loops(&job->g);
    own->repeated += job->repeated;
    TRY(contract_refuse_loops(job, job->host, &job->g, job->labelling.labels));
    TRY(contract_on(job, job->host));
    TRY(contract_check_sums(job));
    TRY(append_rows(job, first, end, own));
    if (!own->figures) goto done;
    contract_average_edges(job);
    TRY(contraction_groups(job->host, &job->g, job->labelling.labels, job->groups, own->batch));
    for (int64_t p = first; p < end; p++) own->figures[p] = own->batch[p];
done:
    sp_csr_free(job->host, &job->c);
    sp_csr_free(job->host, &job->g);
    sp_csr_free(job->host, &job->repeats);
    return status;
}

/* The groups of a batch of this process. */
static void find_batch(const contract_job *job, const group_plan *p, int64_t *first, int64_t *end)
{
    const int64_t last = p->cut[job->team.ranks->rank + 1];
    for (*first = p->cut[job->team.ranks->rank]; *first < last && p->batch[*first] < p->current;) ++*first;
    for (*end = *first; *end < last && p->batch[*end] == p->current;) ++*end;
    if (job->groups == 0) *first = *end = 0;
}

/* Sends this process's arcs of a batch, gets those of its groups, and contracts these. */
static sp_status run_batch(contract_job *job, const sp_arcs *arcs, bool mirror, bool weighted, const group_plan *p,
                           own_rows *own)
{
    io_graph kept = job->input, *in = &job->input;
    sp_arcs got = {0};
    int64_t first, end;
    sp_status status = sp_ranks_send_arcs(job->host, job->team.ranks, arcs, mirror, owner_now, p, &got);
    if (status != SP_OK) team_give_up(&job->team, job->host, status); /* the others are waiting in the middle of it */
    find_batch(job, p, &first, &end);
    in->arcs = got.count;
    in->tails = got.rows;
    in->heads = got.columns;
    in->weights = weighted ? got.weights : NULL;
    status = contract_batch(job, first, end, own);
    *in = kept;
    sp_arcs_free(job->host, &got);
    return team_agree_on(&job->team, status);
}

static sp_status open_rows(contract_job *job, const group_plan *p, own_rows *own)
{
    const int rank = job->team.ranks->rank;
    sp_status status;
    *own = (own_rows){.c = {.cols = job->groups, .space = SP_HOST}};
    TRY(sp_alloc(job->host, p->cut[rank + 1] - p->cut[rank] + 1, sizeof *own->c.row_offsets,
                 (void **)&own->c.row_offsets));
    own->c.row_offsets[0] = 0;
    TRY(sp_alloc(job->host, 1, sizeof *own->c.col_indices, (void **)&own->c.col_indices));
    TRY(sp_alloc(job->host, 1, sizeof(double), &own->c.values));
    own->capacity = 1;
    if (!job->options->node_output) goto done;
    TRY(sp_calloc(job->host, job->groups, sizeof *own->figures, (void **)&own->figures));
    TRY(sp_calloc(job->host, job->groups, sizeof *own->batch, (void **)&own->batch));
done:
    return status;
}

static void close_rows(contract_job *job, own_rows *own)
{
    sp_csr_free(job->host, &own->c);
    FREE_ALL(job->host, own->figures, own->batch);
}

/* Each process keeps its rows, process 0 gets figures. */
static sp_status collect(contract_job *job, const group_plan *p, own_rows *own)
{
    const sp_ranks *ranks = job->team.ranks;
    int64_t *const sums[] = {&own->entries, &own->loops, &own->repeated};
    int64_t *counts = NULL;
    sp_status status;
    job->c = own->c;
    job->first = p->cut[ranks->rank];
    own->c = (sp_csr){0};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) TRY(team_add_up(&job->team, sums[i]));
    /* nobody has its arrays */
    job->g = (sp_csr){.rows = job->input.nodes, .cols = job->input.nodes, .nnz = own->entries};
    job->repeated = own->repeated;
    job->loops = own->loops;
    if (!own->figures) return SP_OK;
    TRY(sp_alloc(job->host, ranks->size, sizeof *counts, (void **)&counts));
    for (int r = 0; r < ranks->size; r++) counts[r] = job->groups > 0 ? p->cut[r + 1] - p->cut[r] : 0;
    TRY(sp_ranks_gather(job->host, ranks, own->figures + (job->groups > 0 ? p->cut[ranks->rank] : 0), counts,
                        sizeof *own->figures, own->figures));
    contraction_conductances(own->figures, job->groups);
    job->figures = own->figures;
    own->figures = NULL;
done:
    sp_free(job->host, counts);
    return status;
}

/* Each process gets its rows of C. */
static sp_status contract_all(contract_job *job, const arcs_view *view, bool weighted)
{
    io_graph *in = &job->input;
    const sp_arcs arcs = {.count = in->arcs, .rows = (int32_t *)view->sources, .columns = (int32_t *)view->targets,
                          .weights = in->weights, .type = in->values};
    group_plan plan;
    own_rows own = {0};
    sp_status status;
    TRY(make_plan(job, view, &plan));
    TRY(team_agree_on(&job->team, open_rows(job, &plan, &own)));
    for (plan.current = 0; plan.current < plan.batches; plan.current++) {
        show_line(&job->line, "contracting, %d of %d batches done", plan.current, plan.batches);
        TRY(run_batch(job, &arcs, view->mirror, weighted, &plan, &own));
    }
    contract_free_arcs(job);
    status = collect(job, &plan, &own);
    if (status != SP_OK) team_give_up(&job->team, job->host, status);
    TRY(contract_finish_rows(job, plan.owner));
    if (view->mirror) contract_notice_directions(job, own.entries);
done:
    close_plan(job, &plan);
    close_rows(job, &own);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

sp_status contract_run_together(contract_job *job)
{
    const double began = wall_seconds();
    double step = began;
    arcs_view view;
    bool weighted;
    sp_status status;
    TRY(check_command(job));
    TRY(read_graph(job));
    TRY(take_arcs(job, &view, &weighted));
    job->seconds.graph = wall_seconds() - step;
    TRY(share_labels(job));
    step = wall_seconds();
    TRY(contract_all(job, &view, weighted));
    job->seconds.contract = wall_seconds() - step;
    job->seconds.total = wall_seconds() - began;
    TRY(contract_write_together(job));
done:
    return status;
}
