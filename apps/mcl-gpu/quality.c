/* The figures by which people choose an inflation. Efficiency, mass and area are van Dongen's (INS-R0012, 2000),
 * modularity is Newman and Girvan's, the distance between clusterings is clm dist's split/join distance. */
#include "quality.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/try.h"
#include "base/value.h"
#include "job.h"

/* ---- judging -------------------------------------------------------------------------------------------- */

/* What process 0 makes of the rows as they come. */
typedef struct judging {
    mcl_measuring *measuring;
    mcl_profiling *profiling;
    portraying *portraying;
    int32_t *labels; /* with `inside` */
    double *inside;
} judging;

static void add_inside(judging *g, int64_t first, const sp_csr *rows)
{
    for (int64_t i = 0; i < rows->rows; i++) {
        double sum = 0;
        for (int64_t e = rows->row_offsets[i]; e < rows->row_offsets[i + 1]; e++)
            if (rows->col_indices[e] != first + i && g->labels[rows->col_indices[e]] == g->labels[first + i])
                sum += entry_value(rows, e);
        g->inside[first + i] = sum;
    }
}

static void take_graph(void *user, int64_t first, const sp_csr *rows)
{
    judging *g = user;
    mcl_profile_rows(g->profiling, first, rows);
    if (g->inside) add_inside(g, first, rows);
    if (g->portraying) report_portray_rows(g->portraying, first, rows);
}

static void take_start(void *user, int64_t first, const sp_csr *rows)
{
    mcl_measure_rows(((judging *)user)->measuring, first, rows);
}

static sp_status begin_judging(job *j, report_run *run, judging *g)
{
    const settings *s = j->settings;
    const mcl_clustering *c = &run->clustering;
    quality *q = &run->quality;
    sp_status status;
    TRY(mcl_measure_begin(j->host, c, &g->measuring));
    if (!settings_judge(s)) goto done;
    TRY(sp_alloc(j->host, c->clusters, sizeof *q->profiles, (void **)&q->profiles));
    TRY(mcl_profile_begin(j->host, c, q->profiles, &g->profiling));
    if (s->table) {
        TRY(sp_alloc(j->host, c->nodes, sizeof *q->inside, (void **)&q->inside));
        TRY(sp_alloc(j->host, c->nodes, sizeof *g->labels, (void **)&g->labels));
        mcl_clustering_labels(c, g->labels);
        g->inside = q->inside;
    }
    if (s->report) TRY(report_portray(j, run, &g->portraying));
done:
    return status;
}

/* All rows of a matrix in their order; of several processes that have some each the first gets them. */
static sp_status bring_rows(job *j, const sp_csr *matrix, sp_take_rows take, judging *g)
{
    const sp_csr rows = ranks_own_rows(j, matrix);
    if (j->given) return ranks_leave(j, sp_ranks_stream_rows(j->host, j->team.ranks, &rows, TEAM_BLOCK, take, g));
    if (!j->team.follows) take(g, 0, &rows);
    return SP_OK;
}

sp_status quality_judge(job *j, report_run *run)
{
    quality *q = &run->quality;
    judging g = {0};
    sp_status status;
    if (!j->team.follows) TRY(begin_judging(j, run, &g));
    TRY(bring_rows(j, job_whole_start(j), take_start, &g));
    if (settings_judge(j->settings)) TRY(bring_rows(j, &j->graph, take_graph, &g));
    if (j->team.follows) return SP_OK;
    if (g.profiling) mcl_profile_end(g.profiling, &q->coverage, &q->modularity);
    g.profiling = NULL;
    status = mcl_measure_end(g.measuring, &q->measures);
    g.measuring = NULL;
done:
    mcl_profile_drop(g.profiling);
    mcl_measure_drop(g.measuring);
    report_portray_end(j, g.portraying);
    sp_free(j->host, g.labels);
    return status;
}

void quality_free(sp_context *context, quality *q)
{
    FREE_ALL(context, q->profiles, q->inside, q->portraits);
}

sp_status quality_compare(job *j, int first, int second, mcl_distance *distance)
{
    return mcl_compare(j->host, &j->report.runs[first].clustering, &j->report.runs[second].clustering, distance);
}

/* ---- advice --------------------------------------------------------------------------------------------- */

static bool is_coarse(const report_run *run, int64_t nodes) { return 2 * run->largest > nodes; }
static bool is_fine(const report_run *run, int64_t nodes) { return 4 * run->singletons > nodes; }

/* Adds to the text what fits. */
static void say(char text[ADVICE_TEXT], size_t *length, const char *format, ...)
{
    va_list arguments;
    if (*length >= ADVICE_TEXT) return;
    va_start(arguments, format);
    *length += (size_t)vsnprintf(text + *length, ADVICE_TEXT - *length, format, arguments);
    va_end(arguments);
}

double quality_advise(const job *j, char text[ADVICE_TEXT])
{
    const report *r = &j->report;
    const report_run *efficient = NULL, *modular = NULL, *best = NULL;
    size_t length = 0;
    text[0] = '\0';
    if (r->run_count < 2 || r->nodes == 0) return 0;
    for (int i = 0; i < r->run_count; i++) {
        const report_run *run = &r->runs[i];
        if (!efficient || run->quality.measures.efficiency > efficient->quality.measures.efficiency) efficient = run;
        if (!modular || run->quality.modularity > modular->quality.modularity) modular = run;
        if (is_coarse(run, r->nodes))
            say(text, &length, "Inflation %g puts more than half of the nodes into one cluster. ", run->inflation);
        else if (is_fine(run, r->nodes))
            say(text, &length, "Inflation %g leaves more than a quarter of the nodes alone. ", run->inflation);
        else if (!best || run->quality.measures.efficiency > best->quality.measures.efficiency)
            best = run;
    }
    if (efficient == modular)
        say(text, &length, "Efficiency and modularity are highest at inflation %g. ", efficient->inflation);
    else
        say(text, &length, "Efficiency is highest at inflation %g, modularity at %g. ", efficient->inflation,
            modular->inflation);
    if (!best) {
        say(text, &length, "None of these stands out: try others.");
        return 0;
    }
    say(text, &length, "Look at inflation %g first. These figures know the network, not your question: compare the "
                       "largest clusters with what you know.", best->inflation);
    return best->inflation;
}

/* ---- the table ------------------------------------------------------------------------------------------ */

static void show_run(const report_run *run, const mcl_distance *distance)
{
    const quality *q = &run->quality;
    char clusters[COUNT_TEXT], largest[COUNT_TEXT], median[COUNT_TEXT], alone[COUNT_TEXT], moved[COUNT_TEXT];
    fprintf(stderr, "  %9g  %9s  %9s  %7s  %9s  %10.5f  %10.5f  %8.5f  %8.5f  %8.5f", run->inflation,
            show_count(run->clusters, clusters), show_count(run->largest, largest),
            show_count(q->measures.median, median),
            show_count(run->singletons, alone), q->modularity, q->measures.efficiency, q->measures.mass_fraction,
            q->measures.area_fraction, q->coverage);
    if (distance)
        fprintf(stderr, "  %s", show_count(distance->moved_first + distance->moved_second, moved));
    fputc('\n', stderr);
}

sp_status quality_show(job *j)
{
    const report *r = &j->report;
    char advice[ADVICE_TEXT];
    fprintf(stderr, "  inflation   clusters    largest   median      alone  modularity  efficiency      mass      area"
                    "  coverage%s\n", r->run_count > 1 ? "  moves" : "");
    for (int i = 0; i < r->run_count; i++) {
        mcl_distance distance;
        if (i > 0) {
            const sp_status status = quality_compare(j, i - 1, i, &distance);
            if (status != SP_OK) return status;
        }
        show_run(&r->runs[i], i > 0 ? &distance : NULL);
    }
    quality_advise(j, advice);
    if (advice[0]) fprintf(stderr, "%s\n", advice);
    return SP_OK;
}
