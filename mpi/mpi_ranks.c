/* sp_ranks over MPI. PETSc's star forest (PetscSF) finds who needs which rows and brings their lengths; their entries
 * go from process to process in messages.
 *
 * A process that fetches rows gets those of one owner side by side, because both count in the order of the rows: all
 * receives are posted first, into their final places. An owner packs rows into a few buffers of the size of a message,
 * first all columns for a process, then all values, and fills a buffer again when it has been sent. So no process waits
 * for one that waits for it, and packing takes little memory.
 */
#include <limits.h>
#include <petscsf.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_ranks.h"

enum { TAG = 1, BUFFERS = 4, MESSAGE_BYTES = 16 << 20, ELEMENT = 4 };
_Static_assert(sizeof(int32_t) == ELEMENT && sizeof(float) == ELEMENT, "columns and values have equal sizes");

static struct {
    mpi_ranks made;
    MPI_Comm comm;
    int64_t message; /* bytes at most */
    /* The rows that are being fetched. */
    PetscSF forest;
    int64_t *entries; /* from each process */
} self;

static const char no_memory[] = "out of memory";
static const char petsc_failed[] = "PETSc failed";

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- waiting ------------------------------------------------------------------------------------------- */

/* Where this process may wait for others, between begin_waiting and end_waiting, the time counts. */
static double began_to_wait;
static void begin_waiting(void) { began_to_wait = MPI_Wtime(); }
static void end_waiting(void) { self.made.waited += MPI_Wtime() - began_to_wait; }

static void wait_for_all(int count, MPI_Request *requests)
{
    begin_waiting();
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    end_waiting();
}

/* ---- small data ---------------------------------------------------------------------------------------- */

static const char *broadcast(void *user, void *bytes, int64_t count)
{
    (void)user;
    begin_waiting();
    for (int64_t at = 0; at < count; at += self.message)
        MPI_Bcast((char *)bytes + at, (int)least(count - at, self.message), MPI_BYTE, 0, self.comm);
    end_waiting();
    return NULL;
}

static const char *gather(void *user, const void *bytes, int64_t count, const int64_t *counts, void *all)
{
    const sp_ranks *ranks = &self.made.ranks;
    char *to = all;
    (void)user;
    begin_waiting();
    for (int64_t at = 0; at < count && ranks->rank > 0; at += self.message)
        MPI_Send((const char *)bytes + at, (int)least(count - at, self.message), MPI_BYTE, 0, TAG, self.comm);
    end_waiting();
    if (ranks->rank > 0) return NULL;
    if (count > 0 && to != bytes) memcpy(to, bytes, (size_t)count);
    begin_waiting();
    for (int r = 1; r < ranks->size; r++) {
        to += counts[r - 1];
        for (int64_t at = 0; at < counts[r]; at += self.message)
            MPI_Recv(to + at, (int)least(counts[r] - at, self.message), MPI_BYTE, r, TAG, self.comm, MPI_STATUS_IGNORE);
    }
    end_waiting();
    return NULL;
}

/* Posts the messages of `count` bytes to or from a process. */
static void post(bool to, int rank, char *bytes, int64_t count, MPI_Request *requests, int *posted)
{
    for (int64_t at = 0; at < count; at += self.message) {
        const int most = (int)least(count - at, self.message);
        if (to) MPI_Isend(bytes + at, most, MPI_BYTE, rank, TAG, self.comm, &requests[(*posted)++]);
        else MPI_Irecv(bytes + at, most, MPI_BYTE, rank, TAG, self.comm, &requests[(*posted)++]);
    }
}

static const char *exchange(void *user, const void *bytes, const int64_t *counts, void *got, const int64_t *got_counts)
{
    const sp_ranks *ranks = &self.made.ranks;
    const char *from = bytes;
    char *to = got;
    int64_t messages = 0;
    int posted = 0;
    (void)user;
    for (int r = 0; r < ranks->size; r++)
        if (r != ranks->rank)
            messages += (counts[r] + self.message - 1) / self.message +
                        (got_counts[r] + self.message - 1) / self.message;
    MPI_Request *requests = messages <= INT_MAX ? malloc((size_t)(messages + 1) * sizeof *requests) : NULL;
    if (!requests) return no_memory;
    for (int r = 0; r < ranks->size; to += got_counts[r++])
        if (r != ranks->rank) post(false, r, to, got_counts[r], requests, &posted);
    to = got;
    for (int r = 0; r < ranks->rank; r++) to += got_counts[r];
    for (int r = 0; r < ranks->size; from += counts[r++]) {
        if (r != ranks->rank) post(true, r, (char *)from, counts[r], requests, &posted);
        else if (counts[r] > 0) memcpy(to, from, (size_t)counts[r]);
    }
    wait_for_all(posted, requests);
    free(requests);
    return NULL;
}

/* ---- lengths of rows ----------------------------------------------------------------------------------- */

static void forget_rows(void)
{
    PetscSFDestroy(&self.forest);
    free(self.entries);
    self.entries = NULL;
}

/* Finds who needs which of whose rows: the leaves of the forest are the rows that this process needs, the roots those
 * that it keeps. */
static bool plant(const int64_t *cut, int64_t kept, int64_t count, const int32_t *numbers)
{
    PetscSFNode *roots;
    int owner = 0;
    if (count > PETSC_MPI_INT_MAX || kept > PETSC_MPI_INT_MAX || PetscMalloc1((size_t)count + 1, &roots)) return false;
    for (int64_t k = 0; k < count; k++) {
        while (numbers[k] >= cut[owner + 1]) owner++;
        roots[k].rank = owner;
        roots[k].index = (PetscInt)(numbers[k] - cut[owner]);
    }
    if (PetscSFCreate(self.comm, &self.forest)) {
        PetscFree(roots);
        return false;
    }
    return !PetscSFSetGraph(self.forest, (PetscInt)kept, (PetscInt)count, NULL, PETSC_OWN_POINTER, roots,
                            PETSC_OWN_POINTER) &&
           !PetscSFSetUp(self.forest);
}

static const char *fetch_lengths(void *user, const int64_t *cut, const sp_csr *part, int64_t count,
                                 const int32_t *numbers, int64_t *lengths)
{
    const int size = self.made.ranks.size;
    int64_t *own = malloc((size_t)(part->rows + 1) * sizeof *own);
    (void)user;
    forget_rows();
    self.entries = calloc((size_t)size, sizeof *self.entries);
    if (!own || !self.entries) {
        free(own);
        forget_rows();
        return no_memory;
    }
    for (int64_t i = 0; i < part->rows; i++) own[i] = part->row_offsets[i + 1] - part->row_offsets[i];
    begin_waiting(); /* a star forest is made together */
    const bool done = plant(cut, part->rows, count, numbers) &&
                      !PetscSFBcastBegin(self.forest, MPI_INT64_T, own, lengths, MPI_REPLACE) &&
                      !PetscSFBcastEnd(self.forest, MPI_INT64_T, own, lengths, MPI_REPLACE);
    end_waiting();
    free(own);
    if (!done) {
        forget_rows();
        return petsc_failed;
    }
    for (int64_t k = 0, owner = 0; k < count; k++) {
        while (numbers[k] >= cut[owner + 1]) owner++;
        self.entries[owner] += lengths[k];
    }
    return NULL;
}

/* ---- entries of rows ----------------------------------------------------------------------------------- */

static int64_t messages_of(int64_t entries)
{
    const int64_t bytes = entries * ELEMENT;
    return (bytes + self.message - 1) / self.message;
}

/* Posts the receives of `entries` elements from `rank` at `to`. */
static void receive(int rank, int64_t entries, void *to, MPI_Request *requests, int *posted)
{
    const int64_t bytes = entries * ELEMENT;
    for (int64_t at = 0; at < bytes; at += self.message)
        MPI_Irecv((char *)to + at, (int)least(bytes - at, self.message), MPI_BYTE, rank, TAG, self.comm,
                  &requests[(*posted)++]);
}

/* Buffers of the size of a message, filled and sent in turn. */
typedef struct sender {
    char *buffers[BUFFERS];
    MPI_Request requests[BUFFERS];
    int present;
    int64_t used; /* bytes in it */
} sender;

static void send_buffer(sender *s, int rank)
{
    if (s->used == 0) return;
    MPI_Isend(s->buffers[s->present], (int)s->used, MPI_BYTE, rank, TAG, self.comm, &s->requests[s->present]);
    s->present = (s->present + 1) % BUFFERS;
    s->used = 0;
}

static void append(sender *s, int rank, const char *bytes, int64_t count)
{
    while (count > 0) {
        if (s->used == 0) wait_for_all(1, &s->requests[s->present]);
        const int64_t more = least(count, self.message - s->used);
        memcpy(s->buffers[s->present] + s->used, bytes, (size_t)more);
        s->used += more;
        bytes += more;
        count -= more;
        if (s->used == self.message) send_buffer(s, rank);
    }
}

/* Sends one array of the entries of listed rows. */
static void send_rows(sender *s, int rank, const sp_csr *part, const PetscInt *rows, PetscInt count, const void *array)
{
    for (PetscInt k = 0; k < count; k++) {
        const int64_t first = part->row_offsets[rows[k]];
        append(s, rank, (const char *)array + first * ELEMENT, (part->row_offsets[rows[k] + 1] - first) * ELEMENT);
    }
    send_buffer(s, rank);
}

/* Copies this process's own rows to their place among those that it needs. */
static void copy_rows(const sp_csr *part, const PetscInt *rows, PetscInt count, int32_t *columns, float *values)
{
    for (PetscInt k = 0; k < count; k++) {
        const int64_t first = part->row_offsets[rows[k]], length = part->row_offsets[rows[k] + 1] - first;
        if (length == 0) continue;
        memcpy(columns, part->col_indices + first, (size_t)length * ELEMENT);
        memcpy(values, (const float *)part->values + first, (size_t)length * ELEMENT);
        columns += length;
        values += length;
    }
}

static void close_sender(sender *s)
{
    wait_for_all(BUFFERS, s->requests);
    for (int b = 0; b < BUFFERS; b++) free(s->buffers[b]);
}

static bool open_sender(sender *s)
{
    bool done = true;
    *s = (sender){.used = 0};
    for (int b = 0; b < BUFFERS; b++) {
        s->buffers[b] = malloc((size_t)self.message);
        s->requests[b] = MPI_REQUEST_NULL;
        done = done && s->buffers[b];
    }
    return done;
}

static void send_all(sender *s, const sp_csr *part, int64_t own_place, int32_t *columns, float *values)
{
    const int rank = self.made.ranks.rank;
    const PetscMPIInt *ranks;
    const PetscInt *starts, *rows;
    PetscInt count;
    PetscSFGetLeafRanks(self.forest, &count, &ranks, &starts, &rows);
    PetscInt next = 0; /* every process begins with the one after it, so that not all send to the same one */
    while (next < count && ranks[next] <= rank) next++;
    for (PetscInt i = 0; i < count; i++) {
        const PetscInt l = (next + i) % count, many = starts[l + 1] - starts[l];
        if (ranks[l] == rank) {
            copy_rows(part, rows + starts[l], many, columns + own_place, values + own_place);
        } else {
            send_rows(s, ranks[l], part, rows + starts[l], many, part->col_indices);
            send_rows(s, ranks[l], part, rows + starts[l], many, part->values);
        }
    }
}

static const char *fetch_entries(void *user, const sp_csr *part, int32_t *columns, float *values)
{
    const sp_ranks *ranks = &self.made.ranks;
    int64_t messages = 0, place = 0, own_place = 0;
    int posted = 0;
    sender s;
    (void)user;
    for (int r = 0; r < ranks->size; r++)
        if (r != ranks->rank) messages += 2 * messages_of(self.entries[r]);
    MPI_Request *requests = messages <= INT_MAX ? malloc((size_t)(messages + 1) * sizeof *requests) : NULL;
    const bool opened = open_sender(&s);
    if (requests && opened) {
        for (int r = 0; r < ranks->size; place += self.entries[r++]) {
            if (r == ranks->rank) {
                own_place = place;
                continue;
            }
            receive(r, self.entries[r], columns + place, requests, &posted);
            receive(r, self.entries[r], values + place, requests, &posted);
            self.made.received += 2 * ELEMENT * self.entries[r];
        }
        self.made.messages += messages;
        send_all(&s, part, own_place, columns, values);
        wait_for_all(posted, requests);
    }
    close_sender(&s);
    free(requests);
    forget_rows();
    return requests && opened ? NULL : no_memory;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void stop(int exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }

static void close_ranks(void)
{
    MPI_Comm_free(&self.comm);
    PetscFinalize();
    MPI_Finalize();
}

static void find_host(void)
{
    MPI_Comm host;
    MPI_Comm_split_type(self.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &self.made.host_rank);
    MPI_Comm_size(host, &self.made.host_size);
    MPI_Comm_free(&host);
}

static const char *start_petsc(void)
{
    /* The program handles its signals and prints its failures by itself; options of other programs are not for it. */
    PetscOptionsSetValue(NULL, "-no_signal_handler", NULL);
    PetscOptionsSetValue(NULL, "-skip_petscrc", NULL);
    if (PetscInitializeNoArguments()) return petsc_failed;
    PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
    return NULL;
}

__attribute__((visibility("default"))) const char *mpi_ranks_open(int abi, mpi_ranks **ranks)
{
    const char *bytes = getenv("SPARSE_MPI_BYTES");
    int level;
    if (abi != SP_ABI) return MPI_RANKS_FILE " is of another version of the program; make mpi makes it anew";
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    const char *failure = start_petsc();
    if (failure) return failure;
    MPI_Comm_dup(MPI_COMM_WORLD, &self.comm);
    self.message = bytes && atoll(bytes) >= ELEMENT && atoll(bytes) < INT_MAX ? atoll(bytes) / ELEMENT * ELEMENT
                                                                              : MESSAGE_BYTES;
    self.made.ranks = (sp_ranks){.user = &self, .broadcast = broadcast, .gather = gather,
                                  .exchange = exchange, .fetch_lengths = fetch_lengths, .fetch_entries = fetch_entries};
    MPI_Comm_rank(self.comm, &self.made.ranks.rank);
    MPI_Comm_size(self.comm, &self.made.ranks.size);
    self.made.stop = stop;
    self.made.close = close_ranks;
    find_host();
    *ranks = &self.made;
    return NULL;
}
