/* Labels and their ids: one byte string of all names, and an open-addressing table from hash to id.
 *
 * A file of ever new short labels spends its memory here. So a label takes 4 bytes of offset and, in a large table,
 * which is at most 5/6 full and grows by a quarter, 4.8 to 6 bytes of slots; smaller ones, at most half full, find
 * out sooner that a label is new. The bits of a slot that no id needs hold a part of the hash: of a million labels,
 * one name in 2,000 is compared in vain. A table that has to grow is freed first and made again from the names.
 */
#include <sys/mman.h>

#include "internal.h"

enum {
    PAGE = 4096,
    HUGE_BYTES = 1 << 22, /* two huge pages */
    FIRST_SLOTS = 1024,
    LARGE_TABLE = 1 << 21, /* slots: 8 MB */
    LARGE_CAPACITY = 1 << 16,
    TOGETHER = 16 /* labels whose cache misses overlap while the table is made again */
};
static const uint32_t FREE_SLOT = UINT32_MAX;

/* ---- shared allocation ---------------------------------------------------------------------------------- */

sp_status io_grow(sp_context *context, int64_t used, int64_t count, size_t size, void **pointer)
{
    sp_status status;
#pragma omp critical(io_context)
    status = sp_grow(context, used, count, size, pointer);
    return status;
}

int64_t io_capacity_for(int64_t capacity, int64_t needed)
{
    const int64_t grown = capacity + (capacity < LARGE_CAPACITY ? capacity : capacity / 8) + 64;
    return grown < needed ? needed : grown;
}

sp_status io_reserve(sp_context *context, int64_t used, int64_t needed, size_t size, int64_t *capacity,
                     void **pointer)
{
    if (needed <= *capacity) return SP_OK;
    const int64_t count = io_capacity_for(*capacity, needed);
    sp_status status = io_grow(context, used, count, size, pointer);
    if (status == SP_OK) *capacity = count;
    return status;
}

/* ---- names ---------------------------------------------------------------------------------------------- */

sp_status io_names_append(sp_context *context, io_name_list *list, const char *name, size_t length)
{
    io_names *names = &list->names;
    const int64_t next = names->count + 1, group = next / IO_NAME_GROUP;
    sp_status status;
    IO_TRY(io_reserve(context, names->count + 1, next + 1, sizeof *names->offsets, &list->offset_capacity,
                      (void **)&names->offsets));
    IO_TRY(io_reserve(context, names->count / IO_NAME_GROUP + 1, group + 1, sizeof *names->groups,
                      &list->group_capacity, (void **)&names->groups));
    if (names->count == 0) names->offsets[0] = 0;
    if (names->count == 0) names->groups[0] = 0;
    const int64_t begin = io_name_begin(names, names->count), end = begin + (int64_t)length;
    IO_TRY(io_reserve(context, begin, end, 1, &list->byte_capacity, (void **)&names->bytes));
    if (next % IO_NAME_GROUP == 0) names->groups[group] = end;
    if (end - names->groups[group] > UINT32_MAX) {
#pragma omp critical(io_context)
        status = sp_fail(context, SP_ERROR_OVERFLOW, "%d labels of more than 4 GB", IO_NAME_GROUP);
        goto done;
    }
    memcpy(names->bytes + begin, name, length);
    names->offsets[next] = (uint32_t)(end - names->groups[group]);
    names->count = next;
done:
    return status;
}

void io_names_free(sp_context *context, io_names *names)
{
    sp_free(context, names->groups);
    sp_free(context, names->offsets);
    sp_free(context, names->bytes);
    memset(names, 0, sizeof *names);
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

static inline uint32_t id_mask(const io_labels *labels) { return (uint32_t)((UINT64_C(1) << labels->id_bits) - 1); }

static inline uint32_t slot_tag(const io_labels *labels, uint32_t hash)
{
    return (uint32_t)((uint64_t)hash << labels->id_bits);
}

static inline uint64_t next_slot(const io_labels *labels, uint64_t at)
{
    return at + 1 < (uint64_t)labels->slot_count ? at + 1 : 0;
}

/* The id of a label, or -1 and in *at the free slot where it belongs. There must be slots. */
static inline int32_t probe(const io_labels *labels, const char *label, size_t length, uint32_t hash, uint64_t *at)
{
    const io_names *names = &labels->list.names;
    const uint32_t mask = id_mask(labels), tag = slot_tag(labels, hash);
    for (*at = io_label_home(labels, hash);; *at = next_slot(labels, *at)) {
        const uint32_t slot = labels->slots[*at];
        if (slot == FREE_SLOT) return -1;
        if ((slot ^ tag) & ~mask) continue;
        const int32_t id = (int32_t)(slot & mask);
        if (io_name_length(names, id) == length && io_same_bytes(io_name(names, id), label, length)) return id;
    }
}

int32_t io_labels_find(const io_labels *labels, const char *label, size_t length, uint32_t hash)
{
    uint64_t at;
    return labels->slot_count ? probe(labels, label, length, hash, &at) : -1;
}

int32_t io_labels_prefetch_offset(const io_labels *labels, uint32_t hash)
{
    const uint32_t mask = id_mask(labels), tag = slot_tag(labels, hash);
    if (labels->slot_count == 0) return -1;
    for (uint64_t at = io_label_home(labels, hash);; at = next_slot(labels, at)) {
        const uint32_t slot = labels->slots[at];
        if (slot == FREE_SLOT) return -1;
        if ((slot ^ tag) & ~mask) continue;
        __builtin_prefetch(labels->list.names.offsets + (slot & mask));
        return (int32_t)(slot & mask);
    }
}

/* Enters all names into an empty table. */
static void fill_slots(io_labels *labels)
{
    const io_names *names = &labels->list.names;
    uint32_t hashes[TOGETHER];
    for (int64_t first = 0; first < names->count; first += TOGETHER) {
        const int64_t count = names->count - first < TOGETHER ? names->count - first : TOGETHER;
        for (int64_t k = 0; k < count; k++) {
            hashes[k] = io_label_hash(io_name(names, first + k), io_name_length(names, first + k));
            io_labels_prefetch_slot(labels, hashes[k]);
        }
        for (int64_t k = 0; k < count; k++) {
            uint64_t at = io_label_home(labels, hashes[k]);
            while (labels->slots[at] != FREE_SLOT) at = next_slot(labels, at);
            labels->slots[at] = slot_tag(labels, hashes[k]) | (uint32_t)(first + k);
        }
    }
}

/* How many labels the table takes. */
static inline int64_t most_labels(const io_labels *labels)
{
    const int64_t slots = labels->slot_count;
    return slots <= LARGE_TABLE ? slots / 2 : slots / 6 * 5;
}

/* Slots are looked at in no order: with pages of 4 KB each look takes a walk of the page table beside the cache miss.
 * Only advice. */
static void ask_huge_pages(void *array, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t start = (uintptr_t)array / PAGE * PAGE, end = ((uintptr_t)array + bytes + PAGE - 1) / PAGE * PAGE;
    if (bytes >= HUGE_BYTES) madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
    (void)array;
    (void)bytes;
#endif
}

static sp_status make_slots(sp_context *context, io_labels *labels, int64_t count)
{
    sp_status status = io_grow(context, 0, count, sizeof *labels->slots, (void **)&labels->slots);
    if (status != SP_OK) return status;
    ask_huge_pages(labels->slots, (size_t)count * sizeof *labels->slots);
    memset(labels->slots, 0xff, (size_t)count * sizeof *labels->slots);
    labels->slot_count = count;
    labels->id_bits = 64 - __builtin_clzll((unsigned long long)count);
    fill_slots(labels);
    return SP_OK;
}

/* Replaces the table by a larger one. Without memory for that there is none; the names stay. */
static sp_status grow_slots(sp_context *context, io_labels *labels)
{
    const int64_t now = labels->slot_count;
    const int64_t count = now == 0 ? FIRST_SLOTS : now < LARGE_TABLE ? 2 * now : now + now / 4;
#pragma omp critical(io_context)
    sp_free(context, labels->slots);
    labels->slots = NULL;
    labels->slot_count = 0;
    return make_slots(context, labels, count);
}

sp_status io_labels_index(sp_context *context, const io_names *names, io_labels *labels)
{
    memset(labels, 0, sizeof *labels);
    labels->list.names = *names;
    return make_slots(context, labels, names->count + names->count / 2 + FIRST_SLOTS);
}

sp_status io_labels_add(sp_context *context, io_labels *labels, const char *label, size_t length, uint32_t hash,
                        int32_t *id)
{
    const int64_t count = labels->list.names.count;
    uint64_t at;
    sp_status status = SP_OK;
    if (count >= most_labels(labels)) IO_TRY(grow_slots(context, labels));
    *id = probe(labels, label, length, hash, &at);
    if (*id >= 0) return SP_OK;
    if (count == INT32_MAX) {
#pragma omp critical(io_context)
        status = sp_fail(context, SP_ERROR_OVERFLOW, "more than %d labels", INT32_MAX);
        return status;
    }
    IO_TRY(io_names_append(context, &labels->list, label, length));
    *id = (int32_t)count;
    labels->slots[at] = slot_tag(labels, hash) | (uint32_t)count;
done:
    return status;
}

void io_labels_clear(io_labels *labels)
{
    if (labels->slot_count && labels->list.names.count)
        memset(labels->slots, 0xff, (size_t)labels->slot_count * sizeof *labels->slots);
    labels->list.names.count = 0;
}

void io_labels_free(sp_context *context, io_labels *labels)
{
    sp_free(context, labels->slots);
    io_names_free(context, &labels->list.names);
    memset(labels, 0, sizeof *labels);
}
