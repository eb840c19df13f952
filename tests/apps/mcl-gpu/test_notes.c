/* What mcl-gpu says of hubs and long runs, on the CPU and, by a context in place of a GPU's, on a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/files.h"
#include "mcl-gpu/job.h"

/* A start matrix of `nodes` with loops, whose node 0 is joined to the next `neighbours` and has `share` of their rows.
 */
static sp_csr star(sp_context *host, int32_t nodes, int32_t neighbours, float share)
{
    sp_csr m = {.rows = nodes, .cols = nodes, .nnz = nodes + 2 * (int64_t)neighbours};
    ck_ok(host, sp_alloc(host, nodes + 1, sizeof *m.row_offsets, (void **)&m.row_offsets));
    ck_ok(host, sp_alloc(host, m.nnz, sizeof *m.col_indices, (void **)&m.col_indices));
    ck_ok(host, sp_alloc(host, m.nnz, sizeof(float), &m.values));
    float *values = m.values;
    int64_t e = 0;
    for (int32_t row = 0; row < nodes; row++) {
        const bool leaf = row > 0 && row <= neighbours;
        m.row_offsets[row] = e;
        if (leaf) values[e] = share;
        if (leaf) m.col_indices[e++] = 0;
        values[e] = leaf ? 1 - share : row == 0 ? 1.f / (float)(neighbours + 1) : 1;
        m.col_indices[e++] = row;
        for (int32_t k = 1; row == 0 && k <= neighbours; k++, e++) {
            values[e] = 1.f / (float)(neighbours + 1);
            m.col_indices[e] = k;
        }
    }
    m.row_offsets[nodes] = e;
    return m;
}

/* What the log says of that star. */
static const char *said_of(sp_context *host, bool gpu, sp_csr start, double products)
{
    job j = {.host = host, .device = gpu ? host : NULL, .start = start};
    const char *path = path_of("log");
    mcl_options_default(&j.mcl);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    job_note_work(&j, products > 0 ? products : square_products(&j.start, 1));
    fflush(stderr);
    sp_csr_free(host, &j.start);
    return contents(path);
}

/* The same where a hub has half of its neighbours' rows; `products` 0: those of its first expansion. */
static const char *said(sp_context *host, bool gpu, int32_t nodes, int32_t neighbours, double products)
{
    return said_of(host, gpu, star(host, nodes, neighbours, 0.5f), products);
}

HOST_TEST(a_hub_is_announced_on_a_gpu_with_its_seconds, 2)
{
    const char *text = said(host, true, 300000, 150000, 0);
    ck_assert_msg(strncmp(text, "mcl-gpu: 0 has 150,001 neighbours: 100 % of the first expansion ", 64) == 0, "%s",
                  text);
    ck_assert_msg(strstr(text, " may take 11 s on the GPU; ") != NULL, "%s", text);
    ck_assert_msg(!strstr(text, "thread") && strchr(text, '\n') == text + strlen(text) - 1, "%s", text);
}

HOST_TEST(a_hub_that_a_gpu_is_soon_done_with_is_announced_on_the_cpu_only, 2)
{
    ck_assert_str_eq(said(host, true, 12000, 11000, 0), "");
    ck_assert_ptr_nonnull(strstr(said(host, false, 12000, 11000, 0), " s on 2 threads; "));
}

/* The other entries hold 95 % of a row's mass, so pruning recovers none of the hub's. It keeps entries above the cutoff
 * in any case. */
HOST_TEST(a_hub_whose_entries_are_pruned_is_not_announced, 2)
{
    ck_assert_str_eq(said_of(host, false, star(host, 12000, 11000, 0.05f), 0), "");
    ck_assert_ptr_nonnull(strstr(said_of(host, false, star(host, 12000, 11000, 0.11f), 0), "; -R 0 "));
    ck_assert_str_eq(said_of(host, false, star(host, 12000, 4000, 0.05f), 0), "");
    ck_assert_ptr_nonnull(strstr(said_of(host, false, star(host, 12000, 9000, 0.95f), 0), "; -R 0 "));
}

HOST_TEST(a_long_run_is_announced_on_either, 1)
{
    ck_assert_ptr_nonnull(strstr(said(host, true, 10, 3, 1e12), "mcl-gpu: about 7 minutes on the GPU, "));
    ck_assert_ptr_nonnull(strstr(said(host, false, 10, 3, 1.5e9), "mcl-gpu: about 2 minutes on 1 thread, "));
    ck_assert_str_eq(said(host, true, 10, 3, 1.5e9), "");
}

HOST_TEST(nothing_is_said_of_nothing, 1) { ck_assert_str_eq(said(host, false, 0, 0, 0), ""); }

static const test_entry notes[] = {CASE_WITH("notes", 60, make_folder, remove_folder),
                                   ONCE(a_hub_is_announced_on_a_gpu_with_its_seconds),
                                   ONCE(a_hub_that_a_gpu_is_soon_done_with_is_announced_on_the_cpu_only),
                                   ONCE(a_hub_whose_entries_are_pruned_is_not_announced),
                                   ONCE(a_long_run_is_announced_on_either),
                                   ONCE(nothing_is_said_of_nothing),
                                   {0}};

int main(void) { return test_run("notes", notes); }
