/* Labels of nodes: their names and a hash table from name to number. */
#ifndef IO_TEXT_LABELS_H
#define IO_TEXT_LABELS_H

#include <string.h>

#include "io.h"

static inline uint64_t io_load(const char *at, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, at, bytes);
    return word;
}

/* Compares labels, most of which have 8 to 16 bytes, without a call. */
static inline bool io_same_bytes(const char *a, const char *b, size_t length)
{
    if (length < 8) return memcmp(a, b, length) == 0;
    if (io_load(a, 8) != io_load(b, 8)) return false;
    if (length > 16) return memcmp(a + 8, b + 8, length - 8) == 0;
    return io_load(a + length - 8, 8) == io_load(b + length - 8, 8);
}

/* A short label as a number of 12 bytes, zeros after its end: labels hold no NUL. */
typedef struct io_key {
    uint64_t low;
    uint32_t high;
} io_key;

enum { IO_SHORT_LABEL = 12 };

typedef struct io_wide_slot {
    uint64_t low;
    uint32_t high;
    int32_t id; /* -1: free */
} io_wide_slot;

/* A slot holds an id in its low `id_bits` and low bits of the label's hash above them; all ones: free. A wide slot
 * holds a short label itself, so that looking it up takes one cache miss instead of three; they are a power of two,
 * `wide_most` at most, and once they are full, labels go to the others. */
typedef struct io_labels {
    const char *file; /* that failures name */
    io_name_list list;
    uint32_t *slots;
    int64_t slot_count; /* 0: no table yet */
    int64_t slots_used;
    int id_bits;
    io_wide_slot *wide;
    int64_t wide_count, wide_most; /* 0: none yet; never any */
    int64_t wide_used;
    int64_t wide_ids; /* once they are full: short labels with lower ids are in them. 0: not full */
} io_labels;

io_key io_label_key(const char *label, size_t length);
uint32_t io_label_hash(const char *label, size_t length);
/* The same of a short label. */
static inline uint32_t io_key_hash(io_key key)
{
    uint64_t hash = (key.low ^ (uint64_t)key.high << 29) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32 ^ key.high) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(hash >> 32);
}
/* The id of a label, or -1. */
int32_t io_labels_find(const io_labels *labels, const char *label, size_t length, uint32_t hash);
/* The id of a label that may be new. SP_ERROR_OVERFLOW beyond 2^31 - 1 labels. */
sp_status io_labels_add(sp_context *context, io_labels *labels, const char *label, size_t length, uint32_t hash,
                        int32_t *id);
/* The slot at which the search for a label begins. */
static inline uint64_t io_label_home(uint32_t hash, int64_t slots) { return (uint64_t)hash * (uint64_t)slots >> 32; }

/* A short label's id if it is in the wide slots, -1 otherwise. */
static inline int32_t io_labels_find_wide(const io_labels *labels, io_key key, uint32_t hash)
{
    if (labels->wide_count == 0) return -1;
    for (uint64_t at = io_label_home(hash, labels->wide_count);; at++) {
        const io_wide_slot *slot = &labels->wide[at & (uint64_t)(labels->wide_count - 1)];
        if ((slot->low == key.low && slot->high == key.high) || slot->id < 0) return slot->id;
    }
}
/* Whether a label that is not in the wide slots is new. */
static inline bool io_labels_all_wide(const io_labels *labels, size_t length)
{
    return length <= IO_SHORT_LABEL && labels->wide_most > 0 && !labels->wide_ids;
}
static inline void io_labels_prefetch_wide(const io_labels *labels, uint32_t hash)
{
    if (labels->wide_count) __builtin_prefetch(labels->wide + io_label_home(hash, labels->wide_count));
}
/* Three steps that fetch what io_labels_find reads in narrow slots. The steps of several labels are interleaved, so
 * that their cache misses overlap. The second returns the most likely id of the label, or -1. */
static inline void io_labels_prefetch_slot(const io_labels *labels, uint32_t hash)
{
    if (labels->slot_count) __builtin_prefetch(labels->slots + io_label_home(hash, labels->slot_count));
}
int32_t io_labels_prefetch_offset(const io_labels *labels, uint32_t hash);
static inline void io_labels_prefetch_name(const io_labels *labels, int32_t id)
{
    if (id >= 0) __builtin_prefetch(io_name(&labels->list.names, id));
}
/* A table over names with another owner: free only `slots`. */
sp_status io_labels_index(sp_context *context, const io_names *names, io_labels *labels);
/* Forgets all labels, keeps the memory. */
void io_labels_clear(io_labels *labels);
void io_labels_free(sp_context *context, io_labels *labels);

#endif
