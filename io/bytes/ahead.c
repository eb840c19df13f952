/* Decompression ahead of the parser: a ring of pieces of text, which threads fill and the reader empties in order.
 *
 * Whoever fills a piece first has its turn at the raw bytes: turns follow each other in the order of the pieces. A
 * stream is decompressed within the turn, so that one thread is enough. Of bgzip's blocks a batch is only taken
 * then, and decompressed beside other batches. Without threads the reader fills the only piece itself. Pieces are the
 * same in both cases and do not depend on the size of requests, so the bytes read before damage do not either.
 *
 * The threads use neither the context nor OpenMP, and take no signals.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/system.h"
#include "base/try.h"
#include "bytes/ahead.h"
#include "bytes/memory.h"
#include "bytes/unpack.h"

enum {
    PIECE_BYTES = 1 << 18, /* fits a second-level cache with the input */
    BLOCK_BYTES = 1 << 16,  /* of text in a block of bgzip: room for one too long */
    PACKED_BYTES = 1 << 17, /* of bgzip's blocks; text is packed to a quarter */
    PIECES = 32,           /* 8 MB ahead: some milliseconds of parsing, of any number of threads */
    MOST_THREADS = 4,      /* 4 GB/s of bgzip's blocks: more than can be parsed */
    WAIT_NS = 50000000     /* between looks at the interrupt */
};

typedef struct piece {
    char *text, *packed; /* packed: bgzip's blocks */
    size_t count;
    bool ready, last;
    io_trouble trouble; /* after the text */
} piece;

struct io_ahead {
    sp_context *context;
    io_raw *raw;
    io_unpack unpack;
    piece pieces[PIECES];
    int piece_count;
    char *memory;
    io_inflate *inflates[MOST_THREADS]; /* one a thread, for blocks of bgzip */
    bool bgzip; /* so far all are such blocks */
    size_t used; /* of the first piece */
    pthread_t threads[MOST_THREADS];
    int thread_count, started;
    pthread_mutex_t lock; /* for what follows, and for `ready` */
    pthread_cond_t filled, emptied;
    bool has_lock;
    int64_t first, next; /* pieces: to be emptied, to be filled */
    bool turn;           /* somebody reads raw bytes */
    bool ended;          /* they have ended */
};

static piece *piece_of(io_ahead *ahead, int64_t number) { return &ahead->pieces[number % ahead->piece_count]; }

/* ---- filling -------------------------------------------------------------------------------------------- */

/* Within a turn. Returns the number of bytes that are still to be decompressed. */
static size_t take_turn(io_ahead *ahead, piece *p)
{
    size_t blocks = 0;
    p->trouble = (io_trouble){SP_OK, NULL, 0};
    p->count = 0;
    p->last = false;
    if (ahead->bgzip) {
        blocks = PACKED_BYTES;
        p->trouble = io_take_blocks(ahead->raw, p->packed, &blocks, PIECE_BYTES);
        ahead->bgzip = blocks > 0;
        ahead->unpack.between = true;
        if (blocks > 0 && p->trouble.status == SP_OK) return blocks;
    }
    if (blocks == 0 && p->trouble.status == SP_OK) {
        p->trouble = io_unpack_some(&ahead->unpack, p->text, PIECE_BYTES, &p->count);
        p->last = p->count < PIECE_BYTES;
    }
    p->last = p->last || p->trouble.status != SP_OK;
    return blocks;
}

static void unpack_blocks(piece *p, size_t blocks, io_inflate *inflate)
{
    const io_trouble trouble =
        io_unpack_blocks(inflate, p->packed, blocks, p->text, PIECE_BYTES + BLOCK_BYTES, &p->count);
    if (trouble.status != SP_OK) p->trouble = trouble;
    p->last = p->last || trouble.status != SP_OK;
}

static void *fill_pieces(void *user)
{
    io_ahead *ahead = user;
    pthread_mutex_lock(&ahead->lock);
    io_inflate *inflate = ahead->inflates[ahead->started++];
    for (;;) {
        while (!ahead->ended && !atomic_load(&ahead->raw->stop) &&
               (ahead->turn || ahead->next - ahead->first == ahead->piece_count))
            pthread_cond_wait(&ahead->emptied, &ahead->lock);
        if (ahead->ended || atomic_load(&ahead->raw->stop)) break;
        piece *p = piece_of(ahead, ahead->next++);
        ahead->turn = true;
        pthread_mutex_unlock(&ahead->lock);
        const size_t blocks = take_turn(ahead, p);
        pthread_mutex_lock(&ahead->lock);
        ahead->turn = false;
        ahead->ended = p->last;
        if (blocks > 0) {
            pthread_cond_broadcast(&ahead->emptied);
            pthread_mutex_unlock(&ahead->lock);
            unpack_blocks(p, blocks, inflate);
            pthread_mutex_lock(&ahead->lock);
        }
        p->ready = true;
        pthread_cond_broadcast(&ahead->filled);
    }
    pthread_cond_broadcast(&ahead->emptied);
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

/* ---- emptying ------------------------------------------------------------------------------------------- */

/* Waits until the first piece is filled; false when that was interrupted. */
static bool wait_for(io_ahead *ahead, const piece *p)
{
    const io_raw *raw = ahead->raw;
    bool ready, interrupted = false;
    pthread_mutex_lock(&ahead->lock);
    while (!(ready = p->ready) && !(interrupted = raw->interrupt && *raw->interrupt))
        system_wait(&ahead->filled, &ahead->lock, WAIT_NS);
    pthread_mutex_unlock(&ahead->lock);
    return ready && !interrupted;
}

static void release(io_ahead *ahead, piece *p)
{
    ahead->used = 0;
    if (ahead->thread_count == 0) {
        p->ready = false;
        return;
    }
    pthread_mutex_lock(&ahead->lock);
    p->ready = false;
    ahead->first++;
    pthread_cond_signal(&ahead->emptied);
    pthread_mutex_unlock(&ahead->lock);
}

io_trouble io_ahead_read(io_ahead *ahead, char *to, size_t count, size_t *got)
{
    const io_raw *raw = ahead->raw;
    *got = 0;
    while (*got < count) {
        piece *p = piece_of(ahead, ahead->first);
        if (ahead->thread_count == 0 && !p->ready) {
            const size_t blocks = take_turn(ahead, p);
            if (blocks > 0) unpack_blocks(p, blocks, ahead->inflates[0]);
            p->ready = true;
        }
        if ((raw->interrupt && *raw->interrupt) || (ahead->thread_count > 0 && !wait_for(ahead, p)))
            return (io_trouble){SP_ERROR_INTERRUPTED, "reading was interrupted", 0};
        size_t now = p->count - ahead->used;
        if (now > count - *got) now = count - *got;
        memcpy(to + *got, p->text + ahead->used, now);
        ahead->used += now;
        *got += now;
        if (ahead->used < p->count) break;
        if (p->last) return *got < count ? p->trouble : (io_trouble){SP_OK, NULL, 0};
        release(ahead, p);
    }
    return (io_trouble){SP_OK, NULL, 0};
}

/* ---- opening and closing -------------------------------------------------------------------------------- */

static bool make_lock(io_ahead *ahead)
{
    const bool mutex = pthread_mutex_init(&ahead->lock, NULL) == 0;
    const bool filled = mutex && system_condition(&ahead->filled);
    ahead->has_lock = filled && pthread_cond_init(&ahead->emptied, NULL) == 0;
    if (filled && !ahead->has_lock) pthread_cond_destroy(&ahead->filled);
    if (mutex && !ahead->has_lock) pthread_mutex_destroy(&ahead->lock);
    return ahead->has_lock;
}

/* As many threads as the system allows: without any the reader does it all. */
static void start_threads(io_ahead *ahead, int wanted)
{
    sigset_t all, before;
    if (wanted == 0 || !make_lock(ahead)) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (ahead->thread_count < wanted &&
           pthread_create(&ahead->threads[ahead->thread_count], NULL, fill_pieces, ahead) == 0)
        ahead->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static sp_status make_pieces(io_ahead *ahead, int count)
{
    const int64_t size = PIECE_BYTES + (ahead->bgzip ? BLOCK_BYTES + PACKED_BYTES : 0);
    const sp_status status = io_grow(ahead->context, 0, count * size, 1, (void **)&ahead->memory);
    if (status != SP_OK) return status;
    ahead->piece_count = count;
    for (int i = 0; i < count; i++) {
        ahead->pieces[i].text = ahead->memory + i * size;
        ahead->pieces[i].packed = ahead->pieces[i].text + PIECE_BYTES + BLOCK_BYTES;
    }
    return SP_OK;
}

sp_status io_ahead_open(sp_context *context, io_raw *raw, bool zstd, io_ahead **opened)
{
    const int threads = raw->ended ? 1 : sp_context_threads(context);
    io_ahead *ahead = NULL;
    int wanted = threads > 1;
    sp_status status;
    *opened = NULL;
    TRY(io_grow(context, 0, 1, sizeof *ahead, (void **)&ahead));
    memset(ahead, 0, sizeof *ahead);
    ahead->context = context;
    ahead->raw = raw;
    ahead->bgzip = !zstd && io_is_bgzip(raw->input + raw->at, raw->end - raw->at);
    if (ahead->bgzip && threads > 3) wanted = threads / 2 < MOST_THREADS ? threads / 2 : MOST_THREADS;
    TRY(io_unpack_open(context, raw, zstd, &ahead->unpack));
    for (int i = 0; ahead->bgzip && i < (wanted ? wanted : 1); i++) TRY(io_inflate_open(context, &ahead->inflates[i]));
    TRY(make_pieces(ahead, wanted ? PIECES : 1));
    start_threads(ahead, wanted);
    *opened = ahead;
    ahead = NULL;
done:
    io_ahead_close(ahead);
    return status;
}

void io_ahead_close(io_ahead *ahead)
{
    if (!ahead) return;
    if (ahead->has_lock) {
        pthread_mutex_lock(&ahead->lock);
        atomic_store(&ahead->raw->stop, true);
        pthread_cond_broadcast(&ahead->emptied);
        pthread_mutex_unlock(&ahead->lock);
        for (int i = 0; i < ahead->thread_count; i++) pthread_join(ahead->threads[i], NULL);
        pthread_cond_destroy(&ahead->emptied);
        pthread_cond_destroy(&ahead->filled);
        pthread_mutex_destroy(&ahead->lock);
    }
    io_unpack_close(ahead->context, &ahead->unpack);
    for (int i = 0; i < MOST_THREADS; i++) io_inflate_close(ahead->context, ahead->inflates[i]);
    FREE_ALL(ahead->context, ahead->memory, ahead);
}
