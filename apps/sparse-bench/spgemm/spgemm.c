/* sparse-bench spgemm: the cases. For each matrix: make the operands -> our product -> the peers' -> compare -> report,
 * and the JSON so far. */
#include <errno.h>
#include <string.h>

#include "base/longest.h"
#include "sparse-bench/bench.h"
#include "sparse-bench/report.h"

/* ---- one case ------------------------------------------------------------------------------------------ */

/* The right operand: the matrix itself, its transpose, or another; where the transpose is the left one, they change
 * places. */
static sp_status load_right(bench_case *c, const source *from)
{
    const spgemm_options *o = c->options;
    const source own_right = {.name = from->right, .spec = from->right, .seed = from->seed + 1};
    const bench_operation operation = from->family ? from->operation : o->operation;
    sp_status status = SP_OK;
    c->b = operation == OPERATION_SQUARE ? &c->a : &c->b_own;
    if (operation == OPERATION_TIMES)
        status = input_load(c->host, from->family ? &own_right : &o->times, &o->common, &c->b_own);
    else if (operation != OPERATION_SQUARE) status = sp_csr_transpose(c->host, &c->a, &c->b_own);
    if (status == SP_OK && operation == OPERATION_ATA) {
        const sp_csr a = c->a;
        c->a = c->b_own;
        c->b_own = a;
    }
    if (status == SP_OK && c->a.cols != c->b->rows)
        status = sp_fail(c->host, SP_ERROR_ARGUMENT, "%s has %lld columns, and what it is multiplied with %lld rows",
                         c->result->name, (long long)c->a.cols, (long long)c->b->rows);
    return status;
}

static int64_t bytes_of(const sp_csr *m)
{
    return 8 * (m->rows + 1) + m->nnz * (4 + (m->value_type == SP_F32 ? 4 : 8));
}

static void describe_case(bench_case *c)
{
    bench_result *r = c->result;
    const sp_csr *a = &c->a;
    r->rows = a->rows;
    r->inner = a->cols;
    r->cols = c->b->cols;
    r->nnz_a = a->nnz;
    r->nnz_b = c->b->nnz;
    r->bytes = bytes_of(a) + (c->b == a ? 0 : bytes_of(c->b));
    r->longest_row = longest_of(a->row_offsets, a->rows);
}

static sp_status load_case(bench_case *c, const source *from)
{
    static const char *const names[] = {"A*A", "A*transpose(A)", "transpose(A)*A"}; /* by bench_operation */
    const spgemm_options *o = c->options;
    const bench_operation operation = from->family ? from->operation : o->operation;
    bench_result *r = c->result;
    sp_status status;
    r->from = from;
    r->name = source_name(from);
    r->operation = operation < OPERATION_TIMES ? names[operation] : from->family ? from->right : o->times.name;
    TRY(input_load(c->host, from, &o->common, &c->a));
    TRY(load_right(c, from));
    describe_case(c);
done:
    return status;
}

static void close_case(bench_case *c)
{
    sp_csr_free(c->host, &c->a);
    sp_csr_free(c->host, &c->b_own);
    extract_free(c->host, &c->ours);
}

/* ---- the whole run ------------------------------------------------------------------------------------- */

/* The machine and the peers, and the device that "auto" means, once the first matrix is loaded. */
static sp_status look_around(sp_context *host, const spgemm_options *o, machine *m, peer_set *peers)
{
    bool cuda;
    const sp_status status = machine_look_around(host, &o->common, m, &cuda);
    if (status != SP_OK) return status;
    peers_open(host, &o->common, cuda, peers);
    peers_versions(peers, m->peers, sizeof m->peers);
    print_machine(m, &o->common, semiring_name(o->common.semiring));
    return SP_OK;
}

/* A product that failed or was wrong fails the run, but only after the other matrices. */
sp_status spgemm_run(sp_context *host, const spgemm_options *o, const volatile int *interrupt, int *code)
{
    bench_result *results = NULL;
    bench_case c = {.host = host};
    machine m;
    peer_set peers = {0};
    sp_status status;
    TRY(sp_calloc(host, o->common.source_count, sizeof *results, (void **)&results));
    if (o->common.json) TRY(io_output_check(host, o->common.json));
    for (int i = 0; i < o->common.source_count; i++) {
        bench_result *r = &results[i];
        c = (bench_case){.options = o, .interrupt = interrupt, .host = host, .result = r};
        status = load_case(&c, &o->common.sources[i]);
        if (status == SP_ERROR_ARGUMENT && (r->from->spec || o->times.spec)) *code = EXIT_USAGE;
        if (status != SP_OK) goto done;
        if (i == 0) TRY(look_around(host, o, &m, &peers));
        TRY(own_measure(&c));
        TRY(peers_measure(&c, &peers));
        close_case(&c);
        spgemm_report_result(&m, o, r);
        if (*r->own.word || (!o->common.no_check && !r->checked.good)) *code = EXIT_FAILED;
        if (o->common.json) TRY(spgemm_report_json(host, &m, o, results, i + 1));
    }
    if (fflush(stdout) != 0 || ferror(stdout)) TRY(sp_fail(host, SP_ERROR_ARGUMENT, "stdout: %s", strerror(errno)));
done:
    close_case(&c);
    peers_close(&peers);
    sp_free(host, results);
    return status;
}
