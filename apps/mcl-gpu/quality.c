/* The figures by which people choose an inflation. Efficiency, mass and area are van Dongen's (INS-R0012, 2000),
 * modularity is Newman and Girvan's, the distance between clusterings is clm dist's split/join distance. */
#include "quality.h"

#include <stdarg.h>
#include <stdio.h>

#include "job.h"

sp_status quality_judge(job *j, report_run *run)
{
    quality *q = &run->quality;
    sp_status status;
    TRY(mcl_measure(j->host, job_whole_start(j), &run->clustering, &q->measures));
    TRY(sp_alloc(j->host, run->clustering.clusters, sizeof *q->profiles, (void **)&q->profiles));
    TRY(mcl_profile_clusters(j->host, &j->graph, &run->clustering, q->profiles, &q->coverage, &q->modularity));
done:
    return status;
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
            show_count(run->clusters, clusters), show_count(run->largest, largest), show_count(q->measures.median, median),
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
