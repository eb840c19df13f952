/* One run of mcl-gpu: what its steps share, and the steps that have files of their own. */
#ifndef MCL_JOB_H
#define MCL_JOB_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "common/budget.h"
#include "common/team.h"
#include "io.h"
#include "log.h"
#include "mcl.h"
#include "options.h"
#include "report.h"

enum { MOST_KEPT = 8 };

/* --start-from. */
typedef struct start_from {
    mcl_former former;
    mcl_update update;
    mcl_changes changes;
    uint8_t *incomplete;
    int32_t *place;
    sp_csr older;      /* the start matrix of --start-graph, until it is compared */
    sp_csr whole;      /* the start matrix, if job.start is the part that runs again */
    int64_t gone;      /* nodes of the older clusters that the graph does not have */
    bool same_as_full; /* of --check-start */
} start_from;

/* A process that was saved. `state` points into it. */
typedef struct saved_state {
    mcl_state state;
    sp_csr iterand; /* of several processes: the rows of this one */
    int32_t *order;
    int64_t *given;
} saved_state;

typedef struct checkpoints {
    uint64_t start;    /* a hash of the start matrix */
    int64_t iteration; /* 1 + the one that was written last */
    double written, seconds; /* when, and how long it took */
} checkpoints;

/* What one of several processes says of itself once the limit is found. */
typedef struct process_account {
    int64_t received, messages, peak; /* bytes and messages of other processes' columns; bytes of memory */
    double read, worked, waited;      /* seconds: reading; in all iterations, computing and for other processes */
    char host[64];
} process_account;

typedef struct job {
    const settings *settings;
    memory_budget budget;
    int64_t needed;     /* bytes that what one of several processes gets from others takes at least; 0: not refused */
    bool iterates;      /* the first iteration has begun */
    run_log log;
    report report;
    sp_context *host;   /* reads, prepares, interprets, writes; computes without a device */
    sp_context *device; /* CUDA; NULL: compute on the host */
    mcl_transform *value_transform, *graph_transform; /* -abc-tf, -tf; NULL: none */
    mcl_options mcl;    /* those of the settings, as mcl takes them for this input */
    io_graph input;     /* its arcs are released once the graph is made; names and ids stay */
    sp_csr graph, start;
    start_from former;
    checkpoints checkpoint;
    double *start_sums; /* of the start matrix's columns, before they were divided by them, where they are shown */
    char *command_line;
    bool mistaken;      /* an output is the input or another output, which was said */
    io_output *kept[MOST_KEPT]; /* matrices that appear with the next clustering */
    int kept_count;
    team team;             /* the processes of the run */
    int64_t *given;        /* process r has rows given[r] to given[r + 1] - 1 of graph and start, whose other rows are
                              empty; NULL: each has them all */
    double iterate_seconds, iterate_waited; /* in all clusterings: of the process, and of these for other processes */
    process_account *accounts; /* at process 0 of several; NULL: not yet */
    const volatile sig_atomic_t *finish; /* ends the process after the present iteration */
} job;

/* Reads a graph as the options of the input say. */
sp_status job_read_graph(job *j, const char *path, io_graph *graph);

/* ---- start_from.c: --start-from; nothing happens without it ------------------------------------------ */

/* Reads the older clustering and leaves in j->start the part that has to run again. */
sp_status job_begin_update(job *j);
/* The start matrix of all nodes. */
const sp_csr *job_whole_start(const job *j);
void job_run_everything(job *j);
/* Whether clusters of the part cannot be joined with older ones. If so, j->start is the whole from now on. */
bool job_update_falls_short(job *j, const mcl_clustering *fresh);
/* Joins the clusters of the part with those that are kept, and says what has changed. */
sp_status job_join_update(job *j, mcl_clustering *clustering);
/* --check-start: says whether a run of everything finds the same. */
sp_status job_check_update(job *j, const mcl_clustering *found, const mcl_clustering *full);
void job_put_update(const job *j, json *file);
void job_free_update(job *j);

/* ---- checkpoint.c: --checkpoint and --resume ---------------------------------------------------------- */

/* A hash of a matrix on the host: its rows, and a sum over those that are not empty. */
uint64_t job_hash(const sp_csr *matrix);
/* Notes what the start matrix is. */
sp_status job_begin_checkpoints(job *j);
/* Whether it is time for a checkpoint, or the run was interrupted. */
bool job_checkpoint_due(const job *j, const mcl_iteration *iteration);
/* Whether this run has written a checkpoint, from which another can go on. */
bool job_has_checkpoint(const job *j);
/* Writes a checkpoint. Each of several processes has some rows of the iterand, and all call it. */
sp_status job_checkpoint(job *j, sp_context *context, const report_run *run, const mcl_iteration *iteration,
                         const sp_csr *iterand);
/* Reads the checkpoint, which must be of this input and these options; fills the run's iterations. Each of several
 * processes reads its rows of the iterand, and all succeed or none. */
sp_status job_resume(job *j, const mcl_options *options, report_run *run, bool cuda, saved_state *to);
void job_free_saved(job *j, saved_state *s);

/* ---- table.c: clusters for other programs; outputs are to be discarded on failure ------------------- */
sp_status job_put_table(job *j, io_output *out);
sp_status job_put_graphml(job *j, io_output *out);

/* ---- device.c: where to compute -------------------------------------------------------------------- */

/* A device that is being opened beside the reading. */
typedef struct opening {
    const job *job;
    pthread_t thread;
    bool running;
    atomic_bool ended;
    sp_status status;
    char why[512]; /* the sentence of a failure */
    sp_context *context;
} opening;

/* Opens the context that reads, and computes on the CPU. */
sp_status job_open_host(job *j);
/* Begins to open a CUDA device if the command line or the size of the input makes it likely to be used. */
void job_begin_opening(const job *j, opening *o);
/* Fails if CUDA was asked for and is not there. */
sp_status job_check_opening(job *j, opening *o);
/* Decides where to compute, by the start matrix. Fails if CUDA is asked for and cannot be opened. */
sp_status job_choose_device(job *j, opening *o);
/* Waits for an opening that was not taken, and closes it. */
void opening_close(opening *o);

/* ---- notes.c --------------------------------------------------------------------------------------- */

/* A node's name, or its number in the clusters, cut to fit `text`. Returns it. */
const char *job_node_name(const job *j, int64_t node, char *text, size_t size);
/* Says on the log which node, or that the whole network, will make the run long on the device that was chosen, and what
 * helps; `products` are those of the first expansion. */
void job_note_work(job *j, double products);

/* ---- ranks.c: several processes (common/team.h); nothing happens in a run of one --------------------- */

/* Starts MPI if a launcher has started this process. Fails with a sentence in sp_last_error(NULL). */
sp_status job_open_ranks(job *j);
/* Whether several processes can run with these options; otherwise the mistake has been reported. */
bool ranks_allow(const job *j);
/* Fails in a process whose start matrix is not that of process 0. */
sp_status ranks_compare_start(job *j);
/* Where each process has some rows: process 0 gets from all an element of `size` bytes for each of theirs. */
sp_status ranks_gather_rows(job *j, void *all, int64_t size);
/* A step in which processes exchange data has ended: if it has failed, in this one alone, the run ends here. An
 * interrupt is one of all. */
sp_status ranks_leave(job *j, sp_status status);
/* The rows of a matrix before the iterations that this process gives to an output; they stay in it. */
sp_csr ranks_own_rows(const job *j, const sp_csr *matrix);
/* The products of the first expansion where each process has some rows of the start matrix, if the report wants them;
 * otherwise 0. */
sp_status ranks_count_products(job *j, double *products);
/* cut[r]: where the rows of process r begin, for these of this one; size + 1 numbers. */
sp_status ranks_learn_cut(job *j, const sp_csr *rows, int64_t **cut);
/* Process 0 gets the row offsets of the whole. */
sp_status ranks_gather_offsets(job *j, const sp_csr *rows, int64_t **offsets);
/* Process 0 gets what of a limit mcl_interpret looks at; the others a matrix without rows. */
void ranks_gather_attracting(job *j, const sp_csr *rows, sp_csr *attracting);
/* Process 0 learns how long each process has worked, and what it has received. */
sp_status ranks_account(job *j);
/* On the log: what the processes have exchanged, and the slowest, the fastest and the mean of them. */
void ranks_log(job *j);
/* All of it for the report. */
void ranks_put(job *j, json *file);

/* ---- together.c: a part of the input for each process ------------------------------------------------ */

/* Reads a part of the input, label pairs or a Matrix Market file, and leaves in j->graph the rows of this process,
 * unless the input or an option wants the whole: then *done is false. `options` are those of the input. */
sp_status job_read_together(job *j, io_read_options options, bool *done);
/* Whether the graph, whose rows the processes have, differs from its mirror image (but for 2^-64: sums of hashes). */
sp_status job_is_directed(job *j, bool *directed);

/* ---- cluster.c: one clustering --------------------------------------------------------------------- */

/* Iterates from the start matrix with run->inflation, interprets, writes run->output, with the last also the report;
 * fills the rest of *run. */
sp_status job_cluster(job *j, report_run *run);
/* Whether a dump of this run goes to the place. */
bool job_is_dump(const job *j, const report_run *run, const io_place *place);
/* empty[k]: column k has no entries. */
sp_status job_find_empty(sp_context *context, const sp_csr *columns, bool **empty);
/* Warns of columns that inflation has left without entries, all below the smallest f32, and that were not empty
 * before: in mcl's words, which scripts look for. */
void job_warn_vanished(job *j, int64_t columns, const bool *empty, const bool *before);
/* One expansion of a start matrix on the host, pruned and made stochastic, as an iteration has it before inflation.
 * Each of several processes gets some rows, one after another. */
sp_status job_expand(job *j, const sp_csr *start, sp_csr *expanded);
/* A matrix asked for by an option, in mcl's format, with its lines in the log; with `numbers`, one a column. A dump
 * is there at once, others appear with the next clustering. Several processes have its rows one after another, and the
 * first writes them as they come. */
typedef enum matrix_kind { MATRIX_DUMP, MATRIX_KEPT } matrix_kind;
sp_status job_write_matrix(job *j, matrix_kind kind, const char *path, const sp_csr *rows, const double *numbers);

#endif
