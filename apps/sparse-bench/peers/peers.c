/* The peers of a case, one after another, each in the state that its documentation recommends. What fails becomes a
 * word in the table and never ends the run. */
#include <math.h>
#include <string.h>

#include "sparse-bench/peers/scipy.h"

int64_t peer_peak(const peer *p, void *state) { return p->peak ? p->peak(state) : -1; }

typedef struct peer_run {
    const peer *peer;
    void *state;
    int algorithm;
} peer_run;

static sp_status product_step(void *user)
{
    const peer_run *run = user;
    return run->peer->run(run->state, run->algorithm);
}

static sp_status replay_step(void *user)
{
    const peer_run *run = user;
    return run->peer->replay(run->state);
}

static candidate *add_result(bench_case *c, const char *name)
{
    bench_result *r = c->result;
    candidate *added = &r->peers[r->peer_count++];
    memset(added, 0, sizeof *added);
    snprintf(added->name, sizeof added->name, "%s", name);
    return added;
}

/* Compares what the peer has made with ours, and tells whether its columns ascend. The first agreement is the
 * verdict. If there is none the reference decides: a peer that sums in fp32 may be off by more than the tolerance. */
static sp_status compare(bench_case *c, const peer_run *run, candidate *result)
{
    raw_matrix raw;
    extract theirs = {0};
    verdict v = {0};
    if (!c->ours.offsets) return SP_OK;
    sp_status status = run->peer->view(run->state, &raw);
    if (status == SP_OK) status = extract_rows(c->host, &raw, &c->ranges, &theirs);
    if (status != SP_OK) return status;
    result->unsorted = !theirs.sorted;
    compare_extracts(&c->a, c->b, &c->options->common, &c->ranges, &c->ours, &theirs, &v);
    snprintf(v.with, sizeof v.with, "%s", result->name);
    extract_free(c->host, &theirs);
    if (!v.good) {
        if (!isfinite(v.largest)) snprintf(result->word, sizeof result->word, "differs");
        snprintf(result->why, sizeof result->why, "%s", v.sentence);
    } else if (!c->result->checked.with[0]) {
        c->result->checked = v;
    }
    return SP_OK;
}

static sp_status measure_algorithm(bench_case *c, peer_run *run)
{
    candidate *result = add_result(c, run->peer->algorithms[run->algorithm]);
    sp_status status = run->peer->run(run->state, run->algorithm);
    if (status == SP_OK && !c->options->common.no_check) status = compare(c, run, result);
    if (status == SP_OK && !*result->word)
        status = time_steps(&c->options->common, product_step, NULL, run, &result->time);
    if (status == SP_OK) result->peak_bytes = peer_peak(run->peer, run->state);
    candidate_failed(c->host, status, result);
    run->peer->drop(run->state);
    return status;
}

static sp_status making_step(void *user)
{
    peer_run *run = user;
    return run->peer->plan(run->state);
}

static void measure_plan(bench_case *c, peer_run *run)
{
    candidate *result = add_result(c, "cuSPARSE reuse");
    result->plan = true;
    timing making;
    sp_status status = time_steps(&c->options->common, making_step, NULL, run, &making);
    if (status == SP_OK) result->once_seconds = making.median;
    if (status == SP_OK) status = time_steps(&c->options->common, replay_step, NULL, run, &result->time);
    if (status == SP_OK && !c->options->common.no_check) status = compare(c, run, result);
    if (status == SP_OK) result->peak_bytes = peer_peak(run->peer, run->state);
    candidate_failed(c->host, status, result);
    run->peer->drop(run->state);
}

static void measure_peer(bench_case *c, const struct opened_peer *opened)
{
    const peer *p = opened->peer;
    peer_run run = {.peer = p, .state = opened->state};
    sp_status status = opened->status;
    if (status == SP_OK) status = p->load(run.state, &c->a, c->b);
    else sp_fail(c->host, status, "%s", opened->why);
    if (status != SP_OK) {
        for (int i = 0; p->algorithms[i]; i++) candidate_failed(c->host, status, add_result(c, p->algorithms[i]));
        return;
    }
    for (run.algorithm = 0; p->algorithms[run.algorithm] && !*c->interrupt; run.algorithm++)
        measure_algorithm(c, &run);
    if (c->options->plan && p->plan && !*c->interrupt) measure_plan(c, &run);
    p->unload(run.state);
}

sp_status peers_measure(bench_case *c, const peer_set *set)
{
    for (int i = 0; i < set->count; i++) measure_peer(c, &set->peers[i]);
    if (set->published && !*c->interrupt) {
        const sp_status status = published_measure(c);
        if (status != SP_OK) return status;
    }
    if (set->scipy.wanted && !*c->interrupt) {
        const sp_status status = scipy_products(c, &set->scipy);
        if (status != SP_OK) return status;
    }
    if (*c->interrupt) return sp_fail(c->host, SP_ERROR_INTERRUPTED, "interrupted");
    if (c->ours.offsets && !c->result->checked.with[0])
        return compare_reference(c->host, &c->a, c->b, &c->options->common, &c->ranges, &c->ours, &c->result->checked);
    return SP_OK;
}

/* ---- a run --------------------------------------------------------------------------------------------- */

static void open_peer(sp_context *context, const bench_options *options, const peer *p, peer_set *set)
{
    struct opened_peer *opened = &set->peers[set->count++];
    opened->peer = p;
    opened->status = p->open(context, options, &opened->state);
    if (opened->status != SP_OK) snprintf(opened->why, sizeof opened->why, "%s", sp_last_error(context));
}

void peers_open(sp_context *context, const bench_options *options, bool cuda, peer_set *set)
{
    const unsigned wanted = options->peers != PEER_DEFAULT ? options->peers
                            : cuda                         ? PEER_CUSPARSE | PEER_PUBLISHED | PEER_CUB
                                                           : PEER_GRAPHBLAS | PEER_MKL;
    set->count = 0;
    set->published = wanted & PEER_PUBLISHED;
    if (wanted & PEER_CUSPARSE) open_peer(context, options, &peer_cusparse, set);
    if (wanted & PEER_GRAPHBLAS) open_peer(context, options, &peer_graphblas, set);
    if (wanted & PEER_MKL) open_peer(context, options, &peer_mkl, set);
    if (options->kind == BENCH_CONTRACT && wanted & PEER_CUB) open_peer(context, options, &peer_cub, set);
    if (wanted & PEER_SCIPY) scipy_open(context, options, &set->scipy);
}

void peers_close(peer_set *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->peers[i].status == SP_OK) set->peers[i].peer->close(set->peers[i].state);
    set->count = 0;
}

void peers_versions(const peer_set *set, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < set->count; i++) {
        const struct opened_peer *opened = &set->peers[i];
        if (opened->status == SP_OK) append_version(opened->peer->version, text, size);
    }
    scipy_append_version(&set->scipy, text, size);
}
