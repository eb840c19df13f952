/* Kernels that others have published, for products of f64: programs that bench/peers/build.sh makes and BENCH_PEERS
 * names the folder of (bench/peers/peer.cuh). scipy's products, which go the same way, are here as well. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "sparse-bench/peers/scipy.h"

static bool fits(const bench_case *c) { return c->a.nnz <= INT32_MAX && c->b->nnz <= INT32_MAX; }

static sp_status write_operands(const bench_case *c, const program_files *files)
{
    const sp_csr *a = &c->a, *b = c->b;
    const int64_t header[PROGRAM_HEADER] = {a->rows, a->cols, b->cols, a->nnz, b->nnz, a == b};
    return program_write(c->host, files, header, a, a == b ? NULL : b, NULL, 0);
}

/* Compares what a program has left with ours. The first agreement is the verdict. */
static sp_status compare(bench_case *c, const program_files *files, candidate *figures)
{
    raw_matrix made;
    void *bytes = NULL;
    extract theirs = {0};
    verdict v = {0};
    if (!c->ours.offsets) return SP_OK;
    sp_status status = program_read_matrix(c->host, files, c->a.rows, c->options->common.type, &made, &bytes);
    if (status == SP_OK) status = extract_rows(c->host, &made, &c->ranges, &theirs);
    if (status == SP_OK) {
        figures->unsorted = !theirs.sorted;
        compare_extracts(&c->a, c->b, &c->options->common, &c->ranges, &c->ours, &theirs, &v);
        snprintf(v.with, sizeof v.with, "%s", figures->name);
        if (!v.good) snprintf(figures->why, sizeof figures->why, "%s", v.sentence);
        if (!v.good) snprintf(figures->word, sizeof figures->word, "differs");
        else if (!c->result->checked.with[0]) c->result->checked = v;
    }
    extract_free(c->host, &theirs);
    sp_free(c->host, bytes);
    return candidate_failed(c->host, status, figures);
}

static candidate *add_result(bench_case *c, const char *name)
{
    candidate *figures = &c->result->peers[c->result->peer_count++];
    memset(figures, 0, sizeof *figures);
    snprintf(figures->name, sizeof figures->name, "%s", name);
    return figures;
}

sp_status published_measure(bench_case *c)
{
    const char *folder = getenv("BENCH_PEERS");
    const bench_options *o = &c->options->common;
    char pattern[300];
    glob_t found;
    program_files *files = NULL;
    sp_status status;
    if (!folder || !*folder || o->type != SP_F64 || o->semiring != SP_PLUS_TIMES || !fits(c)) return SP_OK;
    snprintf(pattern, sizeof pattern, "%s/spgemm-*", folder);
    if (glob(pattern, 0, NULL, &found) != 0) return SP_OK;
    TRY(program_begin(c->host, &files));
    TRY(write_operands(c, files));
    for (size_t i = 0; i < found.gl_pathc && c->result->peer_count < MAX_PEERS && !*c->interrupt; i++) {
        const char *const words[] = {found.gl_pathv[i], NULL};
        candidate *figures = add_result(c, strrchr(words[0], '/') + 1);
        if (program_run(words, o, files, figures)) TRY(compare(c, files, figures));
    }
done:
    program_end(c->host, files);
    globfree(&found);
    return status;
}

sp_status scipy_products(bench_case *c, const scipy_peer *scipy)
{
    static const char *const operations[] = {"spgemm", "spgemm-unsorted", NULL};
    static const char *const names[] = {"scipy", "scipy unsorted"};
    const bench_options *o = &c->options->common;
    program_files *files = NULL;
    sp_status status = scipy->status == SP_OK ? SP_OK : sp_fail(c->host, scipy->status, "%s", scipy->why);
    if (status == SP_OK && (o->semiring != SP_PLUS_TIMES || !fits(c)))
        status = sp_fail(c->host, SP_ERROR_UNSUPPORTED, "scipy is asked for plus-times and 32-bit counts alone");
    if (status == SP_OK) status = program_begin(c->host, &files);
    if (status == SP_OK) status = write_operands(c, files);
    for (int i = 0; operations[i] && c->result->peer_count < MAX_PEERS && !*c->interrupt; i++) {
        candidate *figures = add_result(c, names[i]);
        if (status != SP_OK) candidate_failed(c->host, status, figures);
        else if (scipy_run(operations[i], o, files, figures)) status = compare(c, files, figures);
    }
    program_end(c->host, files);
    return SP_OK;
}
