/* Decompression: gzip (any number of members, zero padding after the last) and zstd (any number of frames). A stream
 * that ends early or is damaged is an error, never a short file.
 */
#include <string.h>
#include <zstd.h>

#include "bytes/unpack.h"

enum {
    ZSTD_HEADER = 3, /* bytes of a block header, which zstd asks for together with the block before */
    BGZIP_HEADER = 18,
    BGZIP_LEAST = 26, /* with its sums */
    BGZIP_MOST = 1 << 16
};

static const io_trouble none = {SP_OK, NULL, 0};
static const io_trouble damaged = {SP_ERROR_ARGUMENT,
                                   "the gzip data are damaged; copy or compress the file again", 0};
static const io_trouble no_memory = {SP_ERROR_HOST_MEMORY, "out of memory for decompression", 0};

/* zstd's stable interface takes no allocator, so its state comes from malloc. */
sp_status io_unpack_open(sp_context *context, io_raw *raw, bool zstd, io_unpack *unpack)
{
    *unpack = (io_unpack){.raw = raw, .zstd_wanted = ZSTD_HEADER};
    if (!zstd) return io_inflate_open(context, &unpack->inflate);
    unpack->zstd = ZSTD_createDStream();
    return !unpack->zstd || ZSTD_isError(ZSTD_initDStream(unpack->zstd)) ? SP_ERROR_HOST_MEMORY : SP_OK;
}

void io_unpack_close(sp_context *context, io_unpack *unpack)
{
    io_inflate_close(context, unpack->inflate);
    ZSTD_freeDStream(unpack->zstd);
}

/* ---- gzip ----------------------------------------------------------------------------------------------- */

/* Between members: zero padding is skipped; *more says whether another member begins. */
static io_trouble next_member(io_unpack *from, bool *more)
{
    io_raw *raw = from->raw;
    *more = false;
    for (;;) {
        while (raw->at < raw->end && raw->input[raw->at] == 0) raw->at++;
        if (raw->at < raw->end) break;
        if (raw->ended) return none;
        const io_trouble trouble = io_raw_refill(raw);
        if (trouble.status != SP_OK) return trouble;
    }
    if ((unsigned char)raw->input[raw->at] != 0x1f)
        return (io_trouble){SP_ERROR_ARGUMENT, "bytes that are not gzip data follow the compressed data", 0};
    io_inflate_reset(from->inflate);
    from->between = false;
    *more = true;
    return none;
}

static io_trouble unpack_gzip(io_unpack *from, char *to, size_t count, size_t *got)
{
    io_raw *raw = from->raw;
    while (*got < count) {
        if (from->between) {
            bool more;
            const io_trouble trouble = next_member(from, &more);
            if (trouble.status != SP_OK || !more) return trouble;
        }
        if (raw->at == raw->end) {
            const io_trouble trouble = io_raw_refill(raw);
            if (trouble.status != SP_OK) return trouble;
        }
        /* Even without input: what its last bytes stand for may still wait inside. */
        const bool starved = raw->at == raw->end;
        size_t taken = raw->end - raw->at, written = count - *got;
        const io_inflated result = io_inflate_some(from->inflate, raw->input + raw->at, &taken, to + *got, &written);
        raw->at += taken;
        *got += written;
        from->between = result == IO_INFLATE_ENDS;
        if (result == IO_INFLATE_NO_MEMORY) return no_memory;
        if (result == IO_INFLATE_DAMAGED || (result == IO_INFLATE_STARVES && !starved)) return damaged;
        if (result == IO_INFLATE_STARVES)
            return (io_trouble){SP_ERROR_ARGUMENT,
                                "the gzip data end too soon: the file is truncated; copy or compress it again", 0};
    }
    return none;
}

/* ---- bgzip ---------------------------------------------------------------------------------------------- */

static size_t little_endian(const char *bytes, int count)
{
    size_t value = 0;
    for (int i = count; i-- > 0;) value = value << 8 | (unsigned char)bytes[i];
    return value;
}

bool io_is_bgzip(const char *bytes, size_t count)
{
    return count >= BGZIP_HEADER && memcmp(bytes, "\x1f\x8b\x08\x04", 4) == 0 &&
           memcmp(bytes + 10, "\6\0BC\2\0", 6) == 0;
}

static size_t block_length(const char *block) { return little_endian(block + 16, 2) + 1; }

io_trouble io_take_blocks(io_raw *raw, char *packed, size_t *count, size_t room)
{
    size_t used = 0, text = 0;
    io_trouble trouble = none;
    for (;;) {
        if (raw->end - raw->at < BGZIP_MOST && !raw->ended) trouble = io_raw_refill(raw);
        const char *block = raw->input + raw->at;
        const size_t left = raw->end - raw->at;
        if (trouble.status != SP_OK || !io_is_bgzip(block, left)) break;
        const size_t length = block_length(block);
        if (length < BGZIP_LEAST || length > left || length > *count - used) break;
        const size_t holds = little_endian(block + length - 4, 4);
        if (holds > BGZIP_MOST || holds > room - text) break;
        memcpy(packed + used, block, length);
        used += length;
        text += holds;
        raw->at += length;
    }
    *count = used;
    return trouble;
}

io_trouble io_unpack_blocks(io_inflate *inflate, const char *packed, size_t count, char *to, size_t room, size_t *got)
{
    *got = 0;
    for (size_t at = 0; at < count;) {
        const size_t length = block_length(packed + at);
        size_t taken = length, written = room - *got;
        io_inflate_reset(inflate);
        const io_inflated result = io_inflate_some(inflate, packed + at, &taken, to + *got, &written);
        *got += written;
        if (result == IO_INFLATE_NO_MEMORY) return no_memory;
        if (result != IO_INFLATE_ENDS || taken != length) return damaged;
        at += length;
    }
    return none;
}

/* ---- zstd ----------------------------------------------------------------------------------------------- */

/* A call of zstd that fails discards its output. So each call gets one block or one block header, and no input while
 * output waits: as little as possible before damaged data is lost. */
static io_trouble unpack_zstd(io_unpack *from, char *to, size_t count, size_t *got)
{
    io_raw *raw = from->raw;
    while (*got < count) {
        if (raw->at == raw->end) {
            const io_trouble trouble = io_raw_refill(raw);
            if (trouble.status != SP_OK) return trouble;
            if (raw->at == raw->end && from->between) return none;
        }
        const bool starved = raw->at == raw->end;
        size_t offered = from->zstd_wanted, left = raw->end - raw->at;
        if (offered > ZSTD_HEADER) offered -= ZSTD_HEADER;
        if (offered > left) offered = left;
        ZSTD_inBuffer in = {raw->input, raw->at + offered, raw->at};
        ZSTD_outBuffer out = {to, count, *got};
        const size_t hint = ZSTD_decompressStream(from->zstd, &out, &in);
        if (ZSTD_isError(hint))
            return (io_trouble){SP_ERROR_ARGUMENT, "the zstd data are damaged; copy or compress the file again", 0};
        const bool idle = out.pos == *got && in.pos == raw->at;
        if (starved && idle && from->zstd_wanted)
            return (io_trouble){SP_ERROR_ARGUMENT,
                                "the zstd data end too soon: the file is truncated; copy or compress it again", 0};
        from->between = hint == 0;
        from->zstd_wanted = out.pos == count ? 0 : hint == 0 ? ZSTD_HEADER : hint;
        raw->at = in.pos;
        *got = out.pos;
    }
    return none;
}

io_trouble io_unpack_some(io_unpack *from, char *to, size_t count, size_t *got)
{
    *got = 0;
    return from->zstd ? unpack_zstd(from, to, count, got) : unpack_gzip(from, to, count, got);
}
