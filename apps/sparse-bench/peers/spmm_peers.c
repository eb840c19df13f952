/* The peers of sparse-bench spmm, one algorithm after another. What fails becomes a word in the table and never ends
 * the run. */
#include <string.h>

#include "sparse-bench/peers/scipy.h"
#include "sparse-bench/spmm/spmm_bench.h"

/* Peers have A's values in the type of the features. */
static double tolerance(const spmm_options *options)
{
    return spmm_tolerance(options) + spmm_rounding(options->features);
}

static void judge(const spmm_case *c, candidate *figures)
{
    if (*figures->word || c->options->common.no_check || figures->error <= tolerance(c->options)) return;
    snprintf(figures->word, sizeof figures->word, "wrong");
    snprintf(figures->why, sizeof figures->why, "its relative error is %g", figures->error);
}

static candidate *add_result(spmm_case *c, const char *name)
{
    candidate *figures = &c->result->peers[c->result->peer_count++];
    memset(figures, 0, sizeof *figures);
    snprintf(figures->name, sizeof figures->name, "%s", name);
    figures->error = -1;
    figures->peak_bytes = -1;
    return figures;
}

static sp_status measure_algorithm(spmm_case *c, const spmm_peer *p, void *state, int algorithm)
{
    candidate *figures = add_result(c, p->algorithms[algorithm]);
    const void *y;
    sp_status status = p->prepare(state, algorithm); /* to warm up */
    const double began = wall_seconds();
    if (status == SP_OK) status = p->prepare(state, algorithm);
    figures->once_seconds = wall_seconds() - began;
    if (status == SP_OK) status = spmm_time(&c->options->common, p->run, state, &figures->time);
    if (status == SP_OK && p->peak) figures->peak_bytes = p->peak(state);
    if (status == SP_OK && !c->options->common.no_check) {
        status = p->view(state, &y);
        if (status == SP_OK) status = spmm_compare(c, y, c->options->result, c->options->features, &figures->error);
    }
    status = candidate_failed(c->host, status, figures);
    if (status == SP_OK) judge(c, figures);
    return status;
}

static sp_status measure_peer(spmm_case *c, const struct spmm_opened_peer *opened)
{
    const spmm_peer *p = opened->peer;
    sp_status status = opened->status;
    if (status != SP_OK) {
        sp_fail(c->host, status, "%s", opened->why);
    } else if (c->options->reduce != SP_REDUCE_SUM) {
        status = sp_fail(c->host, SP_ERROR_UNSUPPORTED, "peers are asked for sums alone");
    } else {
        status = p->load(opened->state, &c->a, &c->x);
    }
    if (status == SP_OK) {
        for (int i = 0; p->algorithms[i] && status == SP_OK && !*c->interrupt; i++)
            status = measure_algorithm(c, p, opened->state, i);
        p->unload(opened->state);
        return status;
    }
    for (int i = 0; p->algorithms[i]; i++) candidate_failed(c->host, status, add_result(c, p->algorithms[i]));
    return SP_OK;
}

static sp_status compare_scipy(spmm_case *c, const program_files *files, candidate *figures)
{
    const sp_dense_type type = c->options->result;
    void *y = NULL;
    sp_status status = program_read(c->host, files, (size_t)(c->a.rows * c->x.cols) * spmm_size_of(type), &y);
    if (status == SP_OK) status = spmm_compare(c, y, type, type, &figures->error);
    sp_free(c->host, y);
    return status;
}

static sp_status measure_scipy(spmm_case *c, const scipy_peer *scipy)
{
    const spmm_options *o = c->options;
    const sp_csr *a = &c->a;
    const int64_t header[PROGRAM_HEADER] = {a->rows, a->cols, c->x.cols, a->nnz, 0, 0};
    candidate *figures = add_result(c, "scipy");
    program_files *files = NULL;
    sp_status status = scipy->status == SP_OK ? SP_OK : sp_fail(c->host, scipy->status, "%s", scipy->why);
    if (status == SP_OK && (o->reduce != SP_REDUCE_SUM || o->result != o->features || spmm_size_of(o->result) < 4 ||
                            a->nnz > INT32_MAX))
        status = sp_fail(c->host, SP_ERROR_UNSUPPORTED, "scipy is asked for sums in f32 and f64, counts of 32 bits");
    if (status == SP_OK) status = program_begin(c->host, &files);
    if (status == SP_OK)
        status = program_write(c->host, files, header, a, NULL, c->x.values,
                               (size_t)(a->cols * c->x.cols) * spmm_size_of(o->features));
    if (status == SP_OK && scipy_run("spmm", &o->common, files, figures) && !o->common.no_check)
        status = compare_scipy(c, files, figures);
    program_end(c->host, files);
    status = candidate_failed(c->host, status, figures);
    if (status == SP_OK) judge(c, figures);
    return status;
}

sp_status spmm_peers_measure(spmm_case *c, const spmm_peer_set *set)
{
    sp_status status = SP_OK;
    for (int i = 0; i < set->count && status == SP_OK; i++) status = measure_peer(c, &set->peers[i]);
    if (set->scipy.wanted && status == SP_OK && !*c->interrupt) status = measure_scipy(c, &set->scipy);
    return *c->interrupt ? sp_fail(c->host, SP_ERROR_INTERRUPTED, "interrupted") : status;
}

static void open_peer(sp_context *context, const spmm_options *options, const spmm_peer *p, spmm_peer_set *set)
{
    struct spmm_opened_peer *opened = &set->peers[set->count++];
    opened->peer = p;
    opened->status = p->open(context, options, &opened->state);
    if (opened->status != SP_OK) snprintf(opened->why, sizeof opened->why, "%s", sp_last_error(context));
}

void spmm_peers_open(sp_context *context, const spmm_options *options, bool cuda, spmm_peer_set *set)
{
    const unsigned wanted = options->common.peers != PEER_DEFAULT ? options->common.peers
                            : cuda                                ? PEER_CUSPARSE | PEER_PUBLISHED
                                                                  : PEER_GRAPHBLAS | PEER_MKL;
    set->count = 0;
    if (wanted & PEER_CUSPARSE) open_peer(context, options, &spmm_peer_cusparse, set);
    if (wanted & PEER_GRAPHBLAS) open_peer(context, options, &spmm_peer_graphblas, set);
    if (wanted & PEER_MKL) open_peer(context, options, &spmm_peer_mkl, set);
    if (wanted & PEER_PUBLISHED && cuda) open_peer(context, options, &spmm_peer_published, set);
    if (wanted & PEER_SCIPY) scipy_open(context, &options->common, &set->scipy);
}

void spmm_peers_versions(const spmm_peer_set *set, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < set->count; i++) {
        const struct spmm_opened_peer *opened = &set->peers[i];
        if (opened->status == SP_OK) append_version(opened->peer->version, text, size);
    }
    scipy_append_version(&set->scipy, text, size);
}

void spmm_peers_close(spmm_peer_set *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->peers[i].status == SP_OK) set->peers[i].peer->close(set->peers[i].state);
    set->count = 0;
}
