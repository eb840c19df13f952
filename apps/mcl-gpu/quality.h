/* How good clusterings are, and which of several to look at first. */
#ifndef MCL_QUALITY_H
#define MCL_QUALITY_H

#include "io.h"
#include "mcl.h"

struct job;
struct report_run;

/* Of one clustering, in the graph that was clustered: as read, and as -tf and -pi leave it. */
typedef struct quality {
    mcl_measures measures;       /* efficiency, mass fraction, area fraction: mcl's -analyze and clm info */
    double coverage, modularity; /* as mcl_profile_clusters has them; the modularity is clm info's, not -analyze's */
    mcl_profile *profiles;       /* of each cluster */
    double *inside;              /* --table: the weight of each node's arcs to members of its first cluster */
    struct portrait *portraits;  /* --report: of the largest clusters, in falling order */
    int64_t portrait_count;
} quality;

/* Fills run->quality from run->clustering, and with the first run the report's hubs. All processes call it; those that
 * have some rows each send them to the first. Without settings_judge only the measures. */
sp_status quality_judge(struct job *j, struct report_run *run);
void quality_free(sp_context *context, quality *q);
/* The distance between the clusterings of two runs. */
sp_status quality_compare(struct job *j, int first, int second, mcl_distance *distance);
/* Writes advice about the runs. Returns the inflation to look at first, or 0 if none stands out. */
enum { ADVICE_TEXT = 1024 };
double quality_advise(const struct job *j, char text[ADVICE_TEXT]);
/* The table of the runs, with advice if there are several, on stderr. */
sp_status quality_show(struct job *j);

#endif
