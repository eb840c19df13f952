/* Raw bytes of a file, of standard input or of memory. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "bytes/raw.h"

enum { WAIT_MS = 50 }; /* between looks at the flags: what a user does not notice */

static bool gives_up(const io_raw *raw) { return (raw->interrupt && *raw->interrupt) || atomic_load(&raw->stop); }

/* Waits for bytes, or until reading is to end. */
static void wait_for_bytes(const io_raw *raw)
{
    struct pollfd source = {.fd = raw->file, .events = POLLIN};
    while (!gives_up(raw) && poll(&source, 1, WAIT_MS) == 0) continue;
}

io_trouble io_raw_read(io_raw *raw, char *to, size_t count, size_t *got)
{
    *got = 0;
    if (raw->file < 0) {
        *got = count < raw->memory_left ? count : raw->memory_left;
        memcpy(to, raw->memory, *got);
        raw->memory += *got;
        raw->memory_left -= *got;
        return (io_trouble){SP_OK, NULL, 0};
    }
    if (raw->limited && (int64_t)count > raw->left) count = (size_t)raw->left;
    while (*got < count) {
        if (raw->stalls) wait_for_bytes(raw);
        if (gives_up(raw)) return (io_trouble){SP_ERROR_INTERRUPTED, "reading was interrupted", 0};
        ssize_t bytes = read(raw->file, to + *got, count - *got);
        if (bytes == 0) break;
        if (bytes > 0) *got += (size_t)bytes, raw->left -= bytes;
        else if (errno != EINTR) return (io_trouble){SP_ERROR_ARGUMENT, NULL, errno};
    }
    return (io_trouble){SP_OK, NULL, 0};
}

io_trouble io_raw_refill(io_raw *raw)
{
    const size_t left = raw->end - raw->at, wanted = IO_INPUT_BYTES - left;
    size_t got;
    if (raw->ended) return (io_trouble){SP_OK, NULL, 0};
    memmove(raw->input, raw->input + raw->at, left);
    const io_trouble trouble = io_raw_read(raw, raw->input + left, wanted, &got);
    raw->at = 0;
    raw->end = left + got;
    raw->ended = got < wanted;
    return trouble;
}
