/* Threads that take the part of processes in mcl_iterate_together. */
#ifndef TESTS_MCL_THREADS_H
#define TESTS_MCL_THREADS_H

#include <pthread.h>

#include "mcl_shared.h"

enum { MOST = 9 };

/* What the threads of a run share. A call begins when all have come and ends when all have read. */
typedef struct meeting {
    int size;
    pthread_barrier_t barrier;
    const void *sent[MOST];
    const int64_t *counts[MOST];
    int64_t cut[MOST + 1];
    int64_t memory;
    int64_t fails_at, calls; /* the call that fails; for runs of one thread */
} meeting;

/* One of them: the `user` of its functions. */
typedef struct member {
    meeting *all;
    int rank;
    const int32_t *wanted; /* between the two calls of a fetch */
    int64_t count;
} member;

/* What a monitor saw, without what differs between runs: times, and how products were made. */
typedef struct seen {
    int64_t count;
    mcl_iteration last;
    double chaos_sum;
    int64_t stop_after;
    sp_context *context;
    const sp_ranks *ranks; /* not NULL: iterand number `stop_after` is gathered */
    sp_csr gathered;
    sp_status status;
    int64_t interrupt_after; /* the iteration after which `interrupt` is set */
    volatile int interrupt;
    int64_t interrupted;     /* the monitor's calls after an interrupt */
    int64_t streamed;        /* rows that have come by blocks */
} seen;

/* Arcs of a graph, which processes get in turn. */
typedef struct arc_list {
    int64_t nodes, count;
    int32_t *tails, *heads;
    float *weights; /* NULL: all 1 */
    bool mirror;
} arc_list;

typedef struct task {
    member member;
    int device;
    int64_t memory;
    const sp_csr *start;
    const mcl_state *state; /* not NULL: where it goes on */
    const int64_t *given;   /* not NULL: of the state's iterand each process has only the rows of this cut */
    const arc_list *arcs;   /* not NULL: make the start matrix; each process has some of its rows */
    const mcl_options *options;
    seen seen;
    sp_context *context;
    sp_csr limit, attracting; /* at thread 0 of all rows */
    mcl_run run;
    sp_status status;
} task;

/* The functions by which a thread takes part. */
sp_ranks ranks_of(member *m);
/* The monitor whose `user` is a seen. */
bool watch(void *user, const mcl_iteration *iteration, const sp_csr *iterand);
/* Runs a task that has arcs. */
sp_status run_from_arcs(task *t, const sp_ranks *ranks);
/* The start of a thread: runs a task. */
void *run_task(void *argument);
void expect_same_figures(const seen *a, const seen *b, bool cuda);
/* Runs `size` threads; what they made is in `tasks`, until end_threads. */
void run_threads(task *tasks, int size, const task *common);
void end_threads(task *tasks, int size);
void expect_same_run(const mcl_run *a, const mcl_run *b);
/* The clusters of a limit are those of the entries that attract. */
void expect_same_clusters(sp_context *context, const sp_csr *limit, const sp_csr *attracting);
/* Compares `size` threads with one call of mcl_iterate. */
void check_together(int device, int size, const sp_csr *start, const mcl_options *options, int64_t stop_after);
/* The start matrix of a graph, which is released. */
sp_csr start_of(sp_context *host, sp_csr graph);

#endif
