/* Files with checksums, as a program wrote them but for some words: the input lists changes in place of the file, so
 * that seeds stay valid when a struct in the file grows. */
#ifndef FUZZ_FORGED_H
#define FUZZ_FORGED_H

#include "target.h"

enum { MOST_FORGED = 1 << 16 };

typedef struct forged_file {
    unsigned char bytes[MOST_FORGED];
    size_t size;
} forged_file;

/* Takes six bytes of the input a change: the place of a word of four bytes, and what it becomes. The number of bytes
 * that are left, up to five, are cut off the end. */
static inline void fuzz_forge(forged_file *file, const uint8_t *data, size_t size)
{
    enum { WORD = 4, CHANGE = 6 };
    for (; size >= CHANGE; size -= CHANGE, data += CHANGE) {
        const size_t words = file->size / WORD, place = data[0] | (size_t)data[1] << 8;
        memcpy(file->bytes + place % words * WORD, data + 2, WORD);
    }
    file->size -= size;
}

#endif
