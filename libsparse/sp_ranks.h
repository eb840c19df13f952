/* Several processes that compute together, such as MPI ranks: what they are, and what they exchange. Conventions are
 * those of sparse.h. */
#ifndef SP_RANKS_H
#define SP_RANKS_H

#include "sparse.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Processes that compute something together, such as MPI ranks. A matrix of theirs is cut by rows: process r keeps the
 * rows cut[r] to cut[r + 1] - 1. All call the same functions in the same order. A function returns NULL, or a sentence
 * that says why it failed. A process that fails must end the others, which wait for it. */
typedef struct sp_ranks {
    int rank, size;
    int64_t memory; /* bytes that what a process gets from the others may take in it at once; 0 in all: any */
    int64_t *needed; /* not NULL: if a call fails because `memory` is too small, process 0 gets what would do */
    void *user;     /* the first argument of all functions */
    /* The bytes of process 0 become those of all. */
    const char *(*broadcast)(void *user, void *bytes, int64_t count);
    /* Process 0 gets in `all` the bytes of process 0, 1, ..., counts[r] of process r, which is `count` in that process.
     * Elsewhere only bytes[count] counts. Process 0's own bytes may already be in their place. */
    const char *(*gather)(void *user, const void *bytes, int64_t count, const int64_t *counts, void *all);
    /* counts[r] bytes go to process r, those for process 0 first; process r's got_counts[r] bytes come into `got` in
     * the same order. What comes is known beforehand. */
    const char *(*exchange)(void *user, const void *bytes, const int64_t *counts, void *got,
                            const int64_t *got_counts);
    /* Gets rows of an f32 matrix from the processes that keep them; `part` has those of this process. First the lengths
     * of the `count` rows whose numbers are listed (ascending), then, if at all, the entries of the same rows, one
     * after another. */
    const char *(*fetch_lengths)(void *user, const int64_t *cut, const sp_csr *part, int64_t count,
                                 const int32_t *numbers, int64_t *lengths);
    const char *(*fetch_entries)(void *user, const sp_csr *part, int32_t *columns, float *values);
} sp_ranks;

/* How many elements a process sends to each, and gets from each. */
typedef struct sp_traffic {
    int64_t *out, *in; /* by process */
    int64_t sent, got; /* their sums */
} sp_traffic;

/* All counts are 0. */
sp_status sp_traffic_create(sp_context *context, const sp_ranks *ranks, sp_traffic *traffic);
/* `out` says what this process will send; fills in the rest. */
sp_status sp_traffic_learn(sp_context *context, const sp_ranks *ranks, sp_traffic *traffic);
/* Exchanges elements of `size` bytes, those for and from process 0 first. */
sp_status sp_traffic_exchange(sp_context *context, const sp_ranks *ranks, const sp_traffic *traffic, int64_t size,
                              const void *sent, void *got);
/* The reverse: for each element that came one goes back to where it came from. */
sp_status sp_traffic_answer(sp_context *context, const sp_ranks *ranks, const sp_traffic *traffic, int64_t size,
                            const void *got, void *sent);
void sp_traffic_free(sp_context *context, sp_traffic *traffic);

/* The functions of `ranks` as calls with a status: the failure of one of them, which returned the sentence. */
sp_status sp_ranks_check(sp_context *context, const char *failure);
sp_status sp_ranks_broadcast(sp_context *context, const sp_ranks *ranks, void *bytes, int64_t count);
/* Process 0 gets counts[r] elements of `size` bytes from each process r, in the order of the processes. */
sp_status sp_ranks_gather(sp_context *context, const sp_ranks *ranks, const void *own, const int64_t *counts,
                          int64_t size, void *all);
/* Each process knows the elements first[rank] to first[rank + 1] - 1 of `all`; now all know all. */
sp_status sp_ranks_share(sp_context *context, const sp_ranks *ranks, const int64_t *first, int64_t size, void *all);
/* all[r]: the number that process r gave; the same in all. */
sp_status sp_ranks_numbers(sp_context *context, const sp_ranks *ranks, int64_t own, int64_t *all);
/* cut[r]: where the elements of process r begin, which has `own` of them; cut[size]: the number of all. The same in
 * all. */
sp_status sp_ranks_cut(sp_context *context, const sp_ranks *ranks, int64_t own, int64_t *cut);
/* The whole matrix at process 0, in host memory, from the rows that each was given there; elsewhere a matrix without
 * rows. All parts have values of one type. */
sp_status sp_ranks_gather_rows(sp_context *context, const sp_ranks *ranks, const sp_csr *part, sp_csr *whole);

/* Gets rows from number `first` on. */
typedef void (*sp_take_rows)(void *user, int64_t first, const sp_csr *rows);

/* Process 0 takes the rows of all, in their order, by blocks of about `most` entries (a longer row is one), so it need
 * not hold them; of a matrix without rows it takes one block. All parts that have rows have values of one type. */
sp_status sp_ranks_stream_rows(sp_context *context, const sp_ranks *ranks, const sp_csr *part, int64_t most,
                               sp_take_rows take, void *user);

/* A list of arcs on the host. */
typedef struct sp_arcs {
    int64_t count;
    int32_t *rows, *columns;
    void *weights;       /* of the type; NULL: all 1 */
    sp_value_type type;  /* the same in all processes */
} sp_arcs;

/* The process that gets the arcs of a row; -1: none. */
typedef int (*sp_owner)(const void *user, int32_t row);

/* Sends arcs and, with `mirror`, their mirror images (a loop has none) to the owners of their rows. The arcs that come
 * are in the order of the processes and of their lists; they have weights. Release them by sp_arcs_free. */
sp_status sp_ranks_send_arcs(sp_context *context, const sp_ranks *ranks, const sp_arcs *arcs, bool mirror,
                             sp_owner owner, const void *user, sp_arcs *got);
void sp_arcs_free(sp_context *context, sp_arcs *arcs);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
