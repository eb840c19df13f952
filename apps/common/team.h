/* One run in several processes that a launcher such as mpirun has started. All come to the same steps in the same
 * order; process 0 writes, and says what is to be said. With one process nothing happens here.
 */
#ifndef TEAM_H
#define TEAM_H

#include "common/tool.h"
#include "mpi_ranks.h"

typedef struct team {
    const char *tool;
    sp_context *host;      /* of the sentences of failures */
    const bool *progress;  /* whether a progress line stands on the terminal; NULL: none does */
    void (*discard)(void *user); /* gives outputs up that are not complete; may be NULL */
    void *user;
    mpi_ranks *mpi;        /* NULL: no launcher has started this process */
    const sp_ranks *ranks; /* the processes of the run; NULL: this one alone */
    bool follows;          /* not process 0 of them: it neither writes nor logs */
    bool silent;           /* another process says why the run fails */
    bool ends_together;    /* all processes know that it has failed */
} team;

/* ---- life ------------------------------------------------------------------------------------------------- */

/* Whether this is one of several processes that were launched together, and not the first. */
bool team_launched_behind(void);
/* For a tool that runs in one process: whether no launcher has started several of it. If so, the first reports that as
 * a mistake on the command line. */
bool team_is_alone(const char *tool);
/* While a command line is parsed: of the processes that were launched together one reports a mistake. */
int team_hide_messages(void);
void team_show_messages(int kept);
/* The exit code after a mistake. A process that has reported none waits until another can have done so. */
int team_mistaken(void);

/* AUTO: if a launcher has started several processes. */
typedef enum team_mpi { TEAM_MPI_AUTO, TEAM_MPI_YES, TEAM_MPI_NO } team_mpi;
/* Starts MPI. Fails with a sentence in sp_last_error(NULL). */
sp_status team_open(team *t, team_mpi how);
/* The threads of this process, 0 for as many as are worth it, of `wanted` ones (0: not given). */
int64_t team_threads(const team *t, const char *input, int64_t wanted);
/* What would do where a process must hold `bytes` at once and gets one of `parts` of --memory: the value and, if these
 * are the parts of a host's processes, on how many hosts they would fit as it is. */
typedef char team_remedy[64];
const char *team_would_do(const team *t, int64_t bytes, int64_t memory, int parts, team_remedy text);
/* Adds to the sentence of a failure where it happened. */
void team_name_failure(const team *t, sp_status status);
/* Prints the failure of a call with `context`, and ends all processes. Does not return. */
void team_give_up(team *t, sp_context *context, sp_status status) __attribute__((noreturn));
/* Ends MPI in all processes, at once if this one has failed and the others do not know. */
void team_end(const team *t, int code);

enum { TEAM_BLOCK = 1 << 20 }; /* entries of the rows that travel to process 0 at a time */

/* ---- together --------------------------------------------------------------------------------------------- */

/* A step that all processes take by themselves has ended with this status. All go on, or none: the first that has
 * failed says why. */
sp_status team_agree_on(team *t, sp_status status);
/* The run was interrupted, and all know. The signal that one has got is that of all, and process 0 says it. */
sp_status team_agree_on_signal(team *t);
/* The bytes of process 0 become those of all. */
sp_status team_agree(team *t, void *bytes, int64_t count);
/* all[r]: the `size` bytes that process r gave; the same in all. */
sp_status team_share(team *t, const void *own, int64_t size, void *all);
/* The same at process 0 alone. NULL, or why it failed. */
const char *team_gather_each(const team *t, const void *own, int64_t size, void *all);
/* The sum over all processes, by 64 bits. */
sp_status team_add_up(team *t, int64_t *number);
/* Process 0 gets counts[r] bytes of each process r, in their order; this one gives `count`. */
sp_status team_gather(team *t, const void *bytes, int64_t count, const int64_t *counts, void *all);

/* ---- reading: team_read.c ---------------------------------------------------------------------------------- */

/* Whether an input can be read in parts, and has `least` bytes. */
bool team_can_read(const team *t, const char *path, const io_read_options *options, int64_t least);
/* Reads a part of the input in each process: of a file some lines, of a folder some files. `part` gets the arcs of this
 * process, with the numbers that one process would give the nodes, and no names; `whole` what is to be said of all
 * parts together and, at process 0 alone, the names. *sound is false, and neither has anything, if the parts do not
 * make one graph: then a process that reads the whole input finds out why. */
sp_status team_read(team *t, const char *path, io_read_options options, io_graph *part, io_graph *whole, bool *sound);

#endif
