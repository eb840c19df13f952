/* What is said before the iterations about nodes and networks that make them long, and what helps. */
#include <math.h>
#include <stdio.h>

#include "job.h"

const char *job_node_name(const job *j, int64_t node, char *text, size_t size)
{
    const io_names *names = &j->input.names;
    if (names->count > 0) snprintf(text, size, "%.*s", (int)io_name_length(names, node), io_name(names, node));
    else snprintf(text, size, "%lld", (long long)(j->input.ids ? j->input.ids[node] : node));
    return text;
}

/* Seconds of a device, measured where the estimate uses them. */
typedef struct speeds {
    double product;        /* of a whole run for each product of its first expansion */
    double multiplication; /* of a later expansion in which many products meet in few entries */
    int least;             /* seconds of such an expansion that are announced */
    char name[COUNTED_TEXT];
} speeds;

/* A protein-like network of 20,000 nodes takes a thread about 6e-8 s for each product of its first expansion; one of
 * 100,000 an H200 a 150th of that. Networks of hubs take a thread 1.5e-9 s a multiplication. An H200 takes 11 s for the
 * 1.5e11 of a hub that is joined to half of 300,000 nodes, ten times as long a multiplication as without hubs. */
static speeds speeds_of(const job *j)
{
    const int threads = sp_context_threads(j->host);
    speeds s = {.product = 6e-8 / threads, .multiplication = 1.5e-9 / threads, .least = 5};
    counted(threads, "thread", s.name);
    if (j->device) s = (speeds){.product = 4e-10, .multiplication = 7.5e-11, .least = 3, .name = "the GPU"};
    return s;
}

/* The multiplications of a row's expansion: the sum of the lengths of the rows that it names. */
static double row_products(const sp_csr *matrix, int64_t row)
{
    double products = 0;
    for (int64_t e = matrix->row_offsets[row]; e < matrix->row_offsets[row + 1]; e++) {
        const int32_t other = matrix->col_indices[e];
        products += (double)(matrix->row_offsets[other + 1] - matrix->row_offsets[other]);
    }
    return products;
}

static int64_t length_of(const sp_csr *m, int64_t row) { return m->row_offsets[row + 1] - m->row_offsets[row]; }

static int64_t find_hub(const sp_csr *m)
{
    int64_t longest = 0;
    for (int64_t row = 1; row < m->rows; row++)
        if (length_of(m, row) > length_of(m, longest)) longest = row;
    return longest;
}

/* Entries that a row has after the first iteration because of hubs, rows with more entries than pruning leaves. What it
 * gets through a hub are as many entries as that has, of a share each. Those above the cutoff are selected; if those
 * below it are too large a part of the row, the largest of them are recovered. */
static double kept_through_hubs(const job *j, int64_t row, double keep)
{
    const sp_csr *m = &j->start;
    const float *values = m->values;
    double selected = 0, lost = 0;
    for (int64_t e = m->row_offsets[row]; e < m->row_offsets[row + 1]; e++) {
        const double length = (double)length_of(m, m->col_indices[e]);
        if (length <= keep) continue;
        if (values[e] / length >= mcl_options_cutoff(&j->mcl)) selected = keep;
        else lost += values[e];
    }
    return lost > 1 - j->mcl.recover_percent / 100 ? fmax(selected, (double)j->mcl.recover) : selected;
}

/* Says which node makes expansions large. Steps through it lead from each of its neighbours to all others, so the first
 * expansion gives the columns of its neighbours as many entries as it has. The second one multiplies those that pruning
 * leaves, which are the same in all these columns, with each other. */
static void note_wide(job *j, int64_t hub, double products, const speeds *speed)
{
    const sp_csr *m = &j->start;
    const double keep = (double)(j->mcl.select > j->mcl.recover ? j->mcl.select : j->mcl.recover);
    char name[256], degree[COUNT_TEXT];
    double through = 0, kept = 0;
    if ((double)length_of(m, hub) <= keep) return; /* no row passes through a hub: spares a walk over all entries */
    for (int64_t row = 0; row < m->rows; row++) {
        const double length = (double)length_of(m, row);
        if (length > keep) through += length * length;
        kept += fmin(kept_through_hubs(j, row, keep), (double)m->rows);
    }
    const double seconds = kept * kept / (double)m->rows * speed->multiplication;
    if (seconds < speed->least || 2 * through < products) return;
    log_line(&j->log, "mcl-gpu: %s has %s neighbours: %.0f %% of the first expansion goes through nodes like it, and "
             "the second may take %.0f s on %s; -R 0 recovers no small entries, -tf '#knn(500)' keeps the strongest "
             "edges of each node, or leave it out", job_node_name(j, hub, name, sizeof name),
             show_count(length_of(m, hub), degree), 100 * fmin(1, through / products), seconds, speed->name);
}

/* Says which node will hold the others up: its column is the work of one thread, and longer than a thread's share. On a
 * GPU a block sums a column, and the others hide it. */
static void note_hub(job *j, int64_t hub, double products, const speeds *speed)
{
    enum { SECONDS = 2 };
    const int threads = sp_context_threads(j->host);
    const double most = row_products(&j->start, hub), seconds = most * speed->product * threads;
    char name[256], degree[COUNT_TEXT];
    if (j->device || seconds < SECONDS || most * threads < products) return;
    log_line(&j->log, "mcl-gpu: %s has %s neighbours: its column makes %.0f %% of the work, about %.0f s that no other "
             "thread can share; -tf '#knn(500)' keeps the strongest edges of each node, or leave it out",
             job_node_name(j, hub, name, sizeof name), show_count(length_of(&j->start, hub), degree),
             100 * most / products, seconds);
}

/* Says what a long run will take. */
static void note_cost(job *j, double products, const speeds *speed)
{
    enum { SECONDS = 60 };
    char minutes[COUNTED_TEXT];
    const double seconds = products * speed->product;
    if (seconds >= SECONDS)
        log_line(&j->log, "mcl-gpu: about %s on %s, for each inflation; more if the network does not fall apart",
                 counted((int64_t)ceil(seconds / 60), "minute", minutes), speed->name);
}

void job_note_work(job *j, double products)
{
    const speeds speed = speeds_of(j);
    if (j->start.rows == 0) return;
    const int64_t hub = find_hub(&j->start);
    note_hub(j, hub, products, &speed);
    note_wide(j, hub, products, &speed);
    note_cost(j, products, &speed);
}
