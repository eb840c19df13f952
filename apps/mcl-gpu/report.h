/* --report: what a run of mcl-gpu did and what it cost, as JSON. */
#ifndef MCL_REPORT_H
#define MCL_REPORT_H

#include "common/json.h"
#include "options.h"
#include "quality.h"

enum { HUBS = 10 };

/* One clustering. */
typedef struct report_run {
    double inflation;
    char output[MAX_PATH];
    char device[128];
    mcl_run run;
    mcl_iteration *iterations;
    int64_t iteration_count, iteration_capacity;
    int64_t clusters, largest, singletons;
    int64_t attractor_systems, overlap, overlap_nodes, garbage_nodes;
    double iterate_seconds, interpret_seconds, write_seconds;
    mcl_clustering clustering; /* and its quality, where settings_judge says that they are kept */
    quality quality;
} report_run;

typedef struct report {
    report_run *runs; /* run_count of them, all zero at first */
    int run_count;
    io_format format;
    int64_t nodes, arcs, lines, bytes, odd_lines, negative; /* of the input */
    int64_t graph_entries, start_entries, first_products;
    int threads;
    double read_seconds, start_seconds, total_seconds;
    struct hub { int64_t node, degree; double weight; } hubs[HUBS + 1]; /* the nodes with the most neighbours */
    int64_t hub_count;
} report;

sp_status report_create(sp_context *context, int runs, report *report);
sp_status report_add_iteration(sp_context *context, report_run *run, const mcl_iteration *iteration);
/* Opens the report's file and puts all of it there, as a page or as JSON; to be committed. */
sp_status report_put(struct job *j, io_output **output);
/* A pass over the graph's rows in their order, which fills run->quality.portraits and with the first run the hubs. */
typedef struct portraying portraying;
sp_status report_portray(struct job *j, report_run *run, portraying **p);
void report_portray_rows(portraying *p, int64_t first, const sp_csr *rows);
void report_portray_end(struct job *j, portraying *p);
/* The items of a run's object about its clusters. */
sp_status report_put_clusters(struct job *j, const report_run *run, json *file);
/* The items of the report about the network and about all runs together. */
sp_status report_put_comparison(struct job *j, json *file);
void report_free(sp_context *context, report *report);

#endif
