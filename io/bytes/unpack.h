/* Decompression of raw bytes, piece by piece in their order, or a batch of bgzip's blocks apart from it. */
#ifndef IO_BYTES_UNPACK_H
#define IO_BYTES_UNPACK_H

#include "bytes/inflate.h"
#include "bytes/raw.h"

typedef struct ZSTD_DCtx_s ZSTD_DStream;

typedef struct io_unpack {
    io_raw *raw;
    io_inflate *inflate; /* gzip */
    ZSTD_DStream *zstd;
    size_t zstd_wanted; /* what it next asks for; 0 while decompressed bytes may wait inside */
    bool between;       /* a member or frame has ended and none has begun */
} io_unpack;

sp_status io_unpack_open(sp_context *context, io_raw *raw, bool zstd, io_unpack *unpack);
void io_unpack_close(sp_context *context, io_unpack *unpack);
/* Fills `to`; *got is less than `count` only at the end and after trouble. */
io_trouble io_unpack_some(io_unpack *from, char *to, size_t count, size_t *got);

/* bgzip writes gzip members of 64 KB at most, which say how long they are. Whether the next bytes begin one. */
bool io_is_bgzip(const char *bytes, size_t count);
/* Takes whole blocks of bgzip whose `*count` bytes have room for `room` bytes of text, as far as they follow. */
io_trouble io_take_blocks(io_raw *raw, char *packed, size_t *count, size_t room);
/* Decompresses them. There is room for the text of a block more. */
io_trouble io_unpack_blocks(io_inflate *inflate, const char *packed, size_t count, char *to, size_t room, size_t *got);

#endif
