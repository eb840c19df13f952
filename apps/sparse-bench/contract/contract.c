/* sparse-bench contract: the cases, and C = S·G·Sᵀ by our engines and by the peers.
 *
 * G, the labels and S lie where C is computed before the clock starts: what is timed is the whole operation from
 * there, the making of C included. The fused engine and the sort start from labels, products from S (and the peers'
 * from Sᵀ as well, which ours make themselves), so that no peer has to make an operand; cuSPARSE's are timed a second
 * time with S and Sᵀ made from the labels. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "sparse-bench/contract/contract_bench.h"
#include "sparse-bench/peers/scipy.h"
#include "contraction.h"
#include "sparse-bench/report.h"

/* ---- figures ------------------------------------------------------------------------------------------- */

/* Another pattern is no result. Sums in fp32 that are off by more than the tolerance are said, and count. */
static void judge(const contract_case *c, candidate *figures)
{
    if (figures->error <= contract_tolerance(c->options)) return;
    if (isinf(figures->error)) snprintf(figures->word, sizeof figures->word, "differs");
    if (isinf(figures->error)) snprintf(figures->why, sizeof figures->why, "its pattern is another");
    else snprintf(figures->why, sizeof figures->why, "its relative error is %.2g", figures->error);
}

/* ---- labels -------------------------------------------------------------------------------------------- */

static int64_t groups_of(const sp_csr *g, grouping asked)
{
    const double groups = asked.percent ? ceil((double)g->rows * asked.amount / 100) : asked.amount;
    return (int64_t)fmin(fmax(groups, 1), fmax((double)g->rows, 1));
}

/* Sizes by a power law: the first of 100 groups has a tenth of the nodes. */
static int64_t label_of(const contract_bench_options *o, unsigned kind, int64_t node, int64_t nodes, int64_t groups)
{
    const uint64_t drawn = mix64((uint64_t)o->common.seeds.number[0] ^ mix64((uint64_t)node));
    if (kind == LABELS_BLOCKS) return node * groups / nodes;
    if (kind == LABELS_RANDOM) return (int64_t)(drawn % (uint64_t)groups);
    return (int64_t)((double)groups * pow((double)(drawn >> 11) * 0x1p-53, 2));
}

/* Sᵀ and S of a labelling, with ones of G's type. */
static sp_status make_labels(contract_case *c, unsigned kind, int64_t groups)
{
    const contract_bench_options *o = c->options;
    const int64_t nodes = c->g.rows;
    sp_csr *t = &c->s_transposed;
    sp_status status = sp_csr_create(c->host, nodes, groups, nodes, o->common.type, SP_HOST, t);
    if (status != SP_OK) return status;
    t->row_offsets[nodes] = nodes;
    for (int64_t i = 0; i < nodes; i++) {
        t->row_offsets[i] = i;
        t->col_indices[i] = (int32_t)label_of(o, kind, i, nodes, groups);
        if (o->common.type == SP_F32) ((float *)t->values)[i] = 1;
        else ((double *)t->values)[i] = 1;
    }
    return sp_csr_transpose(c->host, t, &c->s);
}

static void drop_labels(contract_case *c)
{
    sp_csr_free(c->host, &c->s);
    sp_csr_free(c->host, &c->s_transposed);
}

/* ---- ours ---------------------------------------------------------------------------------------------- */

typedef struct own_run {
    sp_context *context;
    contraction_options products;
    sp_csr g, s, s_transposed, c; /* where the context computes */
    int64_t peak_bytes;
} own_run;

static sp_status fused_step(void *user)
{
    own_run *run = user;
    sp_contract_info info;
    sp_csr_free(run->context, &run->c);
    const sp_status status = sp_contract(run->context, &run->g, run->s_transposed.col_indices,
                                         run->s_transposed.space, run->s.rows, NULL, &run->c, &info);
    if (status == SP_OK) run->peak_bytes = info.peak_bytes;
    return status;
}

static sp_status products_step(void *user)
{
    own_run *run = user;
    contraction_info info;
    sp_csr s = run->s;
    s.values = NULL; /* a pattern's entries are ones, as contraction_quotient has it; the peers are given them */
    sp_csr_free(run->context, &run->c);
    const sp_status status = contraction_product(run->context, &s, &run->g, &run->products, &run->c, &info);
    if (status == SP_OK) run->peak_bytes = info.peak_bytes;
    return status;
}

static sp_status measure_step(contract_case *c, own_run *run, sp_status (*step)(void *), candidate *figures)
{
    figures->error = -1;
    sp_status status = time_steps(&c->options->common, step, NULL, run, &figures->time);
    figures->peak_bytes = known_bytes(run->peak_bytes);
    if (status == SP_OK && step == fused_step) c->result->nnz = run->c.nnz;
    if (status == SP_OK && !c->options->common.no_check) {
        const raw_matrix raw = raw_of(&run->c);
        status = contract_compare(c, &raw, figures);
        if (status != SP_OK) sp_fail(run->context, status, "%s", sp_last_error(c->host));
        else judge(c, figures);
    }
    sp_csr_free(run->context, &run->c);
    return candidate_failed(run->context, status, figures);
}

/* What the gathering stage brings to the products (Li et al., Figure 7). */
static sp_status measure_aia(contract_case *c, own_run *run)
{
    sp_status status = SP_OK;
    run->products.algorithm = SP_SPGEMM_HASH;
    for (int i = 0; i < AIA_MODES && status == SP_OK; i++) {
        candidate *figures = &c->result->aia[i];
        *figures = (candidate){.error = -1};
        snprintf(figures->name, sizeof figures->name, "%s", aia_names[i]);
        run->products.aia = aia_modes[i];
        if (sp_context_is_cuda(run->context)) status = measure_step(c, run, products_step, figures);
        else
            status = candidate_failed(run->context, sp_fail(run->context, SP_ERROR_UNSUPPORTED,
                                                            "the CPU has no such stage"), figures);
    }
    return status;
}

/* The one pass again, without each special path. */
static sp_status measure_without(contract_case *c, own_run *run)
{
    const contract_result *r = c->result;
    without path = {0};
    sp_status status = SP_OK;
    char detail[40];
    snprintf(detail, sizeof detail, "%lld %s", (long long)r->groups, r->labels);
    while (status == SP_OK && without_next("contract-", &path)) {
        candidate left = {0};
        status = measure_step(c, run, fused_step, &left);
        without_report(&path, r->from, detail, &r->own[CONTRACT_FUSED], &left);
    }
    return status;
}

static sp_status measure_ours(contract_case *c)
{
    const contract_bench_options *o = c->options;
    const sp_context_options options = compute_options(&o->common, c->interrupt);
    own_run run = {.products = {.engine = CONTRACTION_PRODUCT}};
    candidate *fused = &c->result->own[CONTRACT_FUSED], *products = &c->result->own[CONTRACT_PRODUCTS];
    sp_status status = sp_context_create(&options, &run.context);
    if (status != SP_OK) return sp_fail(c->host, status, "--device %s: %s", o->common.device, sp_last_error(NULL));
    const sp_space space = sp_context_is_cuda(run.context) ? SP_DEVICE : SP_HOST;
    TRY(sp_csr_copy(run.context, &c->g, space, &run.g));
    TRY(sp_csr_copy(run.context, &c->s, space, &run.s));
    TRY(sp_csr_copy(run.context, &c->s_transposed, space, &run.s_transposed));
    snprintf(fused->name, sizeof fused->name, "fused");
    snprintf(products->name, sizeof products->name, "two products");
    TRY(measure_step(c, &run, fused_step, fused));
    TRY(measure_step(c, &run, products_step, products));
    if (o->aia) TRY(measure_aia(c, &run));
    TRY(measure_without(c, &run));
done:
    if (status != SP_OK) sp_fail(c->host, status, "%s", sp_last_error(run.context));
    sp_csr_free(run.context, &run.g);
    sp_csr_free(run.context, &run.s);
    sp_csr_free(run.context, &run.s_transposed);
    sp_context_destroy(run.context);
    return status;
}

/* ---- peers --------------------------------------------------------------------------------------------- */

/* Of each peer: cuSPARSE's ALG2 and ALG3, the third and fourth, trade time for memory. */
enum { PEER_ALGORITHMS = 2 };

typedef struct peer_run {
    const peer *peer;
    void *state;
    int algorithm;
} peer_run;

static sp_status peer_step(void *user)
{
    const peer_run *run = user;
    return run->peer->run(run->state, run->algorithm);
}

/* As the fused engine does, from labels. */
static sp_status whole_step(void *user)
{
    const peer_run *run = user;
    const sp_status status = run->peer->make(run->state);
    return status == SP_OK ? run->peer->run(run->state, run->algorithm) : status;
}

static sp_status compare_peer(contract_case *c, const peer_run *run, candidate *figures)
{
    raw_matrix raw;
    sp_status status = run->peer->view(run->state, &raw);
    if (status == SP_OK) status = contract_compare(c, &raw, figures);
    if (status == SP_OK) judge(c, figures);
    return status;
}

static sp_status measure_algorithm(contract_case *c, peer_run *run, sp_status opened, const char *why)
{
    timing *from_labels = &c->result->from_labels[c->result->peer_count];
    candidate *figures = &c->result->peers[c->result->peer_count++];
    sp_status status = opened == SP_OK ? SP_OK : sp_fail(c->host, opened, "%s", why);
    snprintf(figures->name, sizeof figures->name, "%s", run->peer->algorithms[run->algorithm]);
    figures->error = -1;
    if (status == SP_OK) {
        status = time_steps(&c->options->common, peer_step, NULL, run, &figures->time);
        if (status == SP_OK) figures->peak_bytes = peer_peak(run->peer, run->state);
        if (status == SP_OK && run->peer->make) {
            status = time_steps(&c->options->common, whole_step, NULL, run, from_labels);
            if (status != SP_OK) from_labels->count = 0;
        }
        if (status == SP_OK && !c->options->common.no_check) status = compare_peer(c, run, figures);
        run->peer->drop(run->state);
    }
    return candidate_failed(c->host, status, figures);
}

static sp_status measure_peer(contract_case *c, const struct opened_peer *opened)
{
    const peer *p = opened->peer;
    peer_run run = {.peer = p, .state = opened->state};
    char why[200];
    sp_status ready = opened->status, status = SP_OK;
    snprintf(why, sizeof why, "%s", opened->why);
    if (ready == SP_OK) {
        ready = p->load(run.state, &c->s, &c->g);
        if (ready == SP_OK) ready = p->follow(run.state, &c->s_transposed);
        if (ready != SP_OK) snprintf(why, sizeof why, "%s", sp_last_error(c->host));
    }
    for (; run.algorithm < PEER_ALGORITHMS && p->algorithms[run.algorithm] && status == SP_OK && !*c->interrupt;
         run.algorithm++)
        status = measure_algorithm(c, &run, ready, why);
    if (opened->status == SP_OK) p->unload(run.state);
    return status;
}

static sp_status compare_scipy(contract_case *c, const program_files *files, candidate *figures)
{
    raw_matrix made;
    void *bytes = NULL;
    sp_status status = program_read_matrix(c->host, files, c->s.rows, c->options->common.type, &made, &bytes);
    if (status == SP_OK) status = contract_compare(c, &made, figures);
    if (status == SP_OK) judge(c, figures);
    sp_free(c->host, bytes);
    return status;
}

/* By two products, and by relabelling. */
static sp_status measure_scipy(contract_case *c, const scipy_peer *scipy)
{
    static const char *const operations[] = {"contract", "contract-relabelled", NULL};
    static const char *const names[] = {"scipy", "scipy relabelled"};
    const bench_options *o = &c->options->common;
    const sp_csr *g = &c->g;
    const int64_t header[PROGRAM_HEADER] = {g->rows, g->rows, c->s.rows, g->nnz, 0, 0};
    program_files *files = NULL;
    sp_status ready = scipy->status == SP_OK ? SP_OK : sp_fail(c->host, scipy->status, "%s", scipy->why);
    sp_status status = SP_OK;
    if (ready == SP_OK && g->nnz > INT32_MAX)
        ready = sp_fail(c->host, SP_ERROR_UNSUPPORTED, "scipy is given at most %d edges", INT32_MAX);
    if (ready == SP_OK) ready = program_begin(c->host, &files);
    if (ready == SP_OK)
        ready = program_write(c->host, files, header, g, NULL, c->s_transposed.col_indices,
                              (size_t)g->rows * sizeof(int32_t));
    for (int i = 0; operations[i] && status == SP_OK && !*c->interrupt; i++) {
        candidate *figures = &c->result->peers[c->result->peer_count++];
        snprintf(figures->name, sizeof figures->name, "%s", names[i]);
        figures->error = -1;
        if (ready != SP_OK) status = candidate_failed(c->host, ready, figures);
        else if (scipy_run(operations[i], o, files, figures) && !o->no_check)
            status = candidate_failed(c->host, compare_scipy(c, files, figures), figures);
    }
    program_end(c->host, files);
    return status;
}

/* ---- the cases ----------------------------------------------------------------------------------------- */

static int64_t entry_bytes(const contract_bench_options *o, const sp_csr *g)
{
    return 4 + (!g->values ? 0 : o->common.type == SP_F32 ? 4 : 8);
}

static sp_status run_case(contract_case *c, const source *from, unsigned labels, grouping asked,
                          const peer_set *peers)
{
    const sp_csr *g = &c->g;
    const int64_t groups = groups_of(g, asked), value = c->options->common.type == SP_F32 ? 4 : 8;
    contract_result *r = c->result;
    sp_status status;
    *r = (contract_result){.from = from, .name = source_name(from), .nodes = g->rows, .edges = g->nnz,
                           .groups = groups, .labels = label_kind_name(labels)};
    TRY(make_labels(c, labels, groups));
    TRY(measure_ours(c));
    r->bytes = 8 * (g->rows + 1) + g->nnz * entry_bytes(c->options, g) + 4 * g->rows + 8 * (groups + 1) +
               r->nnz * (4 + value);
    for (int i = 0; i < peers->count; i++) TRY(measure_peer(c, &peers->peers[i]));
    if (peers->scipy.wanted) TRY(measure_scipy(c, &peers->scipy));
    if (*c->interrupt) status = sp_fail(c->host, SP_ERROR_INTERRUPTED, "interrupted");
done:
    drop_labels(c);
    return status;
}

static bool good(const contract_bench_options *o, const contract_result *r)
{
    for (int i = 0; i < CONTRACT_OWN; i++)
        if (*r->own[i].word || r->own[i].unsorted ||
            (!o->common.no_check && !(r->own[i].error <= contract_tolerance(o))))
            return false;
    for (int i = 0; i < AIA_MODES && o->aia; i++)
        if (!*r->aia[i].word && (*r->aia[i].why || r->aia[i].unsorted)) return false;
    return true;
}

/* The machine and the peers, once the first graph is loaded. */
static sp_status look_around(sp_context *host, const contract_bench_options *o, machine *m, peer_set *peers)
{
    bool cuda;
    const sp_status status = machine_look_around(host, &o->common, m, &cuda);
    if (status != SP_OK) return status;
    peers_open(host, &o->common, cuda, peers);
    peers_versions(peers, m->peers, sizeof m->peers);
    print_machine(m, &o->common, "");
    return SP_OK;
}

static sp_status load_graph(contract_case *c, const source *from)
{
    sp_csr_free(c->host, &c->g);
    const sp_status status = input_load(c->host, from, &c->options->common, &c->g);
    if (status == SP_OK && c->g.rows != c->g.cols)
        return sp_fail(c->host, SP_ERROR_ARGUMENT, "%s is %lld x %lld, and a graph square", from->name,
                       (long long)c->g.rows, (long long)c->g.cols);
    return status;
}

sp_status contract_run(sp_context *host, const contract_bench_options *o, const volatile int *interrupt, int *code)
{
    contract_case c = {.options = o, .interrupt = interrupt, .host = host};
    contract_result *results = NULL;
    peer_set peers = {0};
    machine m;
    int done_cases = 0;
    sp_status status;
    TRY(sp_calloc(host, (int64_t)o->common.source_count * LABEL_KINDS * o->grouping_count, sizeof *results,
                  (void **)&results));
    if (o->common.json) TRY(io_output_check(host, o->common.json));
    for (int i = 0; i < o->common.source_count; i++) {
        status = load_graph(&c, &o->common.sources[i]);
        if (status == SP_ERROR_ARGUMENT && o->common.sources[i].spec) *code = EXIT_USAGE;
        if (status != SP_OK) goto done;
        if (i == 0) TRY(look_around(host, o, &m, &peers));
        for (int n = 0; n < LABEL_KINDS * o->grouping_count; n++) {
            const unsigned labels = 1u << n / o->grouping_count;
            if (!(o->labels & labels)) continue;
            c.result = &results[done_cases];
            TRY(run_case(&c, &o->common.sources[i], labels, o->groupings[n % o->grouping_count], &peers));
            done_cases++;
            contract_report_result(&m, o, c.result);
            if (!good(o, c.result)) *code = EXIT_FAILED;
            if (o->common.json) TRY(contract_report_json(host, &m, o, results, done_cases));
        }
    }
done:
    sp_csr_free(host, &c.g);
    peers_close(&peers);
    sp_free(host, results);
    return status;
}
