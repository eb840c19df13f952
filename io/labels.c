/* Labels and their ids: one byte string of all names, and an open-addressing table from hash to id. */
#include "internal.h"

enum { FIRST_SLOTS = 1024 };

/* ---- shared allocation ---------------------------------------------------------------------------------- */

sp_status io_grow(sp_context *context, int64_t used, int64_t count, size_t size, void **pointer)
{
    sp_status status;
#pragma omp critical(io_context)
    status = sp_grow(context, used, count, size, pointer);
    return status;
}

sp_status io_reserve(sp_context *context, int64_t used, int64_t needed, size_t size, int64_t *capacity,
                     void **pointer)
{
    if (needed <= *capacity) return SP_OK;
    int64_t count = *capacity + *capacity / 2 + 64;
    if (count < needed) count = needed;
    sp_status status = io_grow(context, used, count, size, pointer);
    if (status == SP_OK) *capacity = count;
    return status;
}

/* ---- the table ------------------------------------------------------------------------------------------ */

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 uint128;
    uint128 product = (uint128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint32_t io_label_hash(const char *label, size_t length)
{
    static const uint64_t odd[2] = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93)};
    uint64_t hash = odd[0] ^ length, tail = 0;
    size_t left = length;
    for (; left > 8; left -= 8, label += 8) hash = mix(hash ^ io_load(label, 8), odd[1]);
    if (left == 8)
        tail = io_load(label, 8);
    else if (left >= 4)
        tail = io_load(label, 4) | io_load(label + left - 4, 4) << 32;
    else if (left > 0)
        tail = io_load(label, 1) | io_load(label + left / 2, 1) << 8 | io_load(label + left - 1, 1) << 16;
    hash = mix(hash ^ tail, odd[1]);
    return (uint32_t)(hash ^ hash >> 32);
}

/* The id of a label, or -1 and in *at the free slot where it belongs. There must be slots. */
static inline int32_t probe(const io_labels *labels, const char *label, size_t length, uint32_t hash, uint64_t *at)
{
    const uint64_t mask = (uint64_t)labels->slot_count - 1;
    for (*at = hash & mask;; *at = (*at + 1) & mask) {
        io_slot slot = labels->slots[*at];
        if (slot.id < 0) return -1;
        if (slot.hash != hash) continue;
        int64_t begin = labels->names.offsets[slot.id], end = labels->names.offsets[slot.id + 1];
        if ((size_t)(end - begin) == length + 1 && io_same_bytes(labels->names.bytes + begin, label, length))
            return slot.id;
    }
}

int32_t io_labels_find(const io_labels *labels, const char *label, size_t length, uint32_t hash)
{
    uint64_t at;
    return labels->slot_count ? probe(labels, label, length, hash, &at) : -1;
}

void io_labels_prefetch_name(const io_labels *labels, uint32_t hash)
{
    if (labels->slot_count == 0) return;
    io_slot slot = labels->slots[hash & ((uint64_t)labels->slot_count - 1)];
    if (slot.id >= 0) __builtin_prefetch(labels->names.bytes + labels->names.offsets[slot.id]);
}

static void place(io_slot *slots, uint64_t mask, io_slot slot)
{
    uint64_t at = slot.hash & mask;
    while (slots[at].id >= 0) at = (at + 1) & mask;
    slots[at] = slot;
}

static sp_status grow_slots(sp_context *context, io_labels *labels)
{
    int64_t count = labels->slot_count ? 2 * labels->slot_count : FIRST_SLOTS;
    io_slot *slots = NULL;
    sp_status status = io_grow(context, 0, count, sizeof *slots, (void **)&slots);
    if (status != SP_OK) return status;
    memset(slots, 0xff, (size_t)count * sizeof *slots);
    for (int64_t i = 0; i < labels->slot_count; i++)
        if (labels->slots[i].id >= 0) place(slots, (uint64_t)count - 1, labels->slots[i]);
    void *old = labels->slots;
    labels->slots = slots;
    labels->slot_count = count;
#pragma omp critical(io_context)
    sp_free(context, old);
    return SP_OK;
}

sp_status io_labels_add(sp_context *context, io_labels *labels, const char *label, size_t length, uint32_t hash,
                        int32_t *id)
{
    io_names *names = &labels->names;
    uint64_t at;
    sp_status status = SP_OK;
    /* At most three quarters full, one more label included. */
    if (4 * (names->count + 1) > 3 * labels->slot_count) IO_TRY(grow_slots(context, labels));
    *id = probe(labels, label, length, hash, &at);
    if (*id >= 0) return SP_OK;
    if (names->count == INT32_MAX) {
#pragma omp critical(io_context)
        status = sp_fail(context, SP_ERROR_OVERFLOW, "more than %d labels", INT32_MAX);
        return status;
    }
    int64_t used = names->count ? names->offsets[names->count] : 0;
    IO_TRY(io_reserve(context, names->count + 1, names->count + 2, sizeof *names->offsets, &labels->offset_capacity,
                      (void **)&names->offsets));
    IO_TRY(io_reserve(context, used, used + (int64_t)length + 1, 1, &labels->byte_capacity, (void **)&names->bytes));

    memcpy(names->bytes + used, label, length);
    names->bytes[used + (int64_t)length] = '\0';
    names->offsets[0] = 0;
    names->offsets[names->count + 1] = used + (int64_t)length + 1;
    *id = (int32_t)names->count++;
    labels->slots[at] = (io_slot){hash, *id};
done:
    return status;
}

void io_labels_clear(io_labels *labels)
{
    if (labels->names.count) memset(labels->slots, 0xff, (size_t)labels->slot_count * sizeof *labels->slots);
    labels->names.count = 0;
}

void io_labels_free(sp_context *context, io_labels *labels)
{
    sp_free(context, labels->slots);
    sp_free(context, labels->names.offsets);
    sp_free(context, labels->names.bytes);
    memset(labels, 0, sizeof *labels);
}
