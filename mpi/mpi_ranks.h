/* MPI ranks as sp_ranks. The implementation is a shared object of its own, libsparse-mpi.so,
 * so that programs which open it at run time need neither MPI nor PETSc to be built or to run alone.
 */
#ifndef MPI_RANKS_H
#define MPI_RANKS_H

#include "sp_ranks.h"

typedef struct mpi_ranks {
    sp_ranks ranks;
    int host_rank, host_size;       /* this process among those of its host */
    int64_t received, messages;     /* bytes and messages of rows that other processes sent to this one */
    double waited;                  /* seconds in which it exchanged data with others or waited for them */
    void (*stop)(int exit_code);    /* ends all processes at once, also those that wait */
    void (*close)(void);            /* waits for all processes, and ends MPI */
} mpi_ranks;

/* Starts MPI. `abi` is the caller's SP_ABI. Returns NULL, or a sentence that says why it failed. The struct belongs to
 * the object and is valid until it is closed. The environment's SPARSE_MPI_BYTES is the most that a message holds
 * [16 MiB]; it is for tests. */
typedef const char *mpi_ranks_open_function(int abi, mpi_ranks **ranks);
mpi_ranks_open_function mpi_ranks_open;
#define MPI_RANKS_OPEN "mpi_ranks_open"
#define MPI_RANKS_FILE "libsparse-mpi.so"

#endif
