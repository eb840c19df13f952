/* Labels and their ids: one byte string of all names, and an open-addressing table from hash to id.
 *
 * A file in which each label is new and short spends its memory here. So a label takes 4 bytes of offset and 4.8 to 6
 * bytes of slots in a large table, which is at most 5/6 full and grows by a quarter. Smaller tables are at most half
 * full and recognise new labels sooner. The bits of a slot that no id needs hold a part of the hash: among a million
 * labels, one comparison of names in 2,000 is in vain. A table that has to grow is freed first and made again from the
 * names.
 */
#include <stdio.h>
#include <string.h>

#include "base/system.h"
#include "base/try.h"
#include "bytes/memory.h"
#include "text/labels.h"

enum {
    HUGE_BYTES = 1 << 22, /* two huge pages */
    FIRST_SLOTS = 1024,
    LARGE_TABLE = 1 << 21, /* slots: 8 MB */
    TOGETHER = 16 /* labels whose cache misses overlap while the table is made again */
};
static const uint32_t FREE_SLOT = UINT32_MAX;

/* ---- names ---------------------------------------------------------------------------------------------- */

sp_status io_names_append(sp_context *context, io_name_list *list, const char *name, size_t length)
{
    io_names *names = &list->names;
    const int64_t next = names->count + 1, group = next / IO_NAME_GROUP;
    sp_status status;
    TRY(io_reserve(context, names->count + 1, next + 1, sizeof *names->offsets, &list->offset_capacity,
                   (void **)&names->offsets));
    TRY(io_reserve(context, names->count / IO_NAME_GROUP + 1, group + 1, sizeof *names->groups,
                   &list->group_capacity, (void **)&names->groups));
    if (names->count == 0) names->offsets[0] = 0;
    if (names->count == 0) names->groups[0] = 0;
    const int64_t begin = io_name_begin(names, names->count), end = begin + (int64_t)length;
    TRY(io_reserve(context, begin, end, 1, &list->byte_capacity, (void **)&names->bytes));
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
    FREE_ALL(context, names->groups, names->offsets, names->bytes);
    memset(names, 0, sizeof *names);
}

/* ---- the table ------------------------------------------------------------------------------------------ */

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 uint128;
    uint128 product = (uint128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

io_key io_label_key(const char *label, size_t length)
{
    io_key key = {0, 0};
    if (length >= 8) {
        key.low = io_load(label, 8);
        key.high = (uint32_t)(io_load(label + length - 4, 4) >> 8 * (IO_SHORT_LABEL - length));
    } else if (length >= 4) {
        key.low = io_load(label, 4) | io_load(label + length - 4, 4) << 8 * (length - 4);
    } else if (length > 0) {
        key.low = io_load(label, 1) | io_load(label + length / 2, 1) << 8 * (length / 2) |
                  io_load(label + length - 1, 1) << 8 * (length - 1);
    }
    return key;
}

uint32_t io_label_hash(const char *label, size_t length)
{
    static const uint64_t odd[2] = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93)};
    if (length <= IO_SHORT_LABEL) return io_key_hash(io_label_key(label, length));
    uint64_t hash = odd[0] ^ length;
    const char *last = label + length - 8;
    for (; label < last; label += 8) hash = mix(hash ^ io_load(label, 8), odd[1]);
    hash = mix(hash ^ io_load(last, 8), odd[1]);
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
    for (*at = io_label_home(hash, labels->slot_count);; *at = next_slot(labels, *at)) {
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
    if (length <= IO_SHORT_LABEL && labels->wide_count) {
        const int32_t id = io_labels_find_wide(labels, io_label_key(label, length), hash);
        if (id >= 0 || io_labels_all_wide(labels, length)) return id;
    }
    return labels->slot_count ? probe(labels, label, length, hash, &at) : -1;
}

int32_t io_labels_prefetch_offset(const io_labels *labels, uint32_t hash)
{
    const uint32_t mask = id_mask(labels), tag = slot_tag(labels, hash);
    if (labels->slot_count == 0) return -1;
    for (uint64_t at = io_label_home(hash, labels->slot_count);; at = next_slot(labels, at)) {
        const uint32_t slot = labels->slots[at];
        if (slot == FREE_SLOT) return -1;
        if ((slot ^ tag) & ~mask) continue;
        __builtin_prefetch(labels->list.names.offsets + (slot & mask));
        return (int32_t)(slot & mask);
    }
}

/* Whether the label with this id is, or belongs, in a wide slot. */
static inline bool is_wide(const io_labels *labels, int64_t id, size_t length)
{
    return io_labels_all_wide(labels, length) || (length <= IO_SHORT_LABEL && id < labels->wide_ids);
}

static inline void put_wide(io_labels *labels, io_key key, uint32_t hash, int32_t id)
{
    const uint64_t mask = (uint64_t)labels->wide_count - 1;
    uint64_t at = io_label_home(hash, labels->wide_count);
    while (labels->wide[at].id >= 0) at = (at + 1) & mask;
    labels->wide[at] = (io_wide_slot){key.low, key.high, id};
    labels->wide_used++;
}

/* Enters all names that belong into an empty table: of wide slots, or of the others. */
static void fill_table(io_labels *labels, bool wide)
{
    const io_names *names = &labels->list.names;
    uint32_t hashes[TOGETHER];
    for (int64_t first = 0; first < names->count; first += TOGETHER) {
        const int64_t count = names->count - first < TOGETHER ? names->count - first : TOGETHER;
        for (int64_t k = 0; k < count; k++) {
            hashes[k] = io_label_hash(io_name(names, first + k), io_name_length(names, first + k));
            if (wide) io_labels_prefetch_wide(labels, hashes[k]);
            else io_labels_prefetch_slot(labels, hashes[k]);
        }
        for (int64_t k = 0; k < count; k++) {
            const size_t length = io_name_length(names, first + k);
            if (is_wide(labels, first + k, length) != wide) continue;
            if (wide) {
                put_wide(labels, io_label_key(io_name(names, first + k), length), hashes[k], (int32_t)(first + k));
                continue;
            }
            uint64_t at = io_label_home(hashes[k], labels->slot_count);
            while (labels->slots[at] != FREE_SLOT) at = next_slot(labels, at);
            labels->slots[at] = slot_tag(labels, hashes[k]) | (uint32_t)(first + k);
            labels->slots_used++;
        }
    }
}

/* How many labels the table takes. */
static inline int64_t most_labels(const io_labels *labels)
{
    const int64_t slots = labels->slot_count;
    return slots <= LARGE_TABLE ? slots / 2 : slots / 6 * 5;
}

/* Slots are accessed at random: with pages of 4 KB each access costs a walk of the page table beside the cache miss.
 * This is only advice. */
static void ask_huge_pages(void *array, size_t bytes)
{
    if (bytes >= HUGE_BYTES) system_huge_pages(array, bytes);
}

/* A table of `count` slots of `size` bytes, all free, in place of the present one, which is released first. */
static sp_status renew_table(sp_context *context, int64_t count, size_t size, void **table)
{
#pragma omp critical(io_context)
    sp_free(context, *table);
    *table = NULL;
    const sp_status status = io_grow(context, 0, count, size, table);
    if (status != SP_OK) return status;
    ask_huge_pages(*table, (size_t)count * size);
    memset(*table, 0xff, (size_t)count * size);
    return SP_OK;
}

static sp_status make_slots(sp_context *context, io_labels *labels, int64_t count)
{
    const int64_t ids = 2 * labels->list.names.count;
    labels->slot_count = 0;
    const sp_status status = renew_table(context, count, sizeof *labels->slots, (void **)&labels->slots);
    if (status != SP_OK) return status;
    labels->slot_count = count;
    labels->slots_used = 0;
    labels->id_bits = 64 - __builtin_clzll((unsigned long long)(count > ids ? count : ids));
    fill_table(labels, false);
    return SP_OK;
}

/* Replaces the table by a larger one, or by one with room for larger ids. If memory is short, no table is left; the
 * names stay. */
static sp_status grow_slots(sp_context *context, io_labels *labels)
{
    const int64_t now = labels->slot_count;
    const int64_t larger = now == 0 ? FIRST_SLOTS : now < LARGE_TABLE ? 2 * now : now + now / 4;
    return make_slots(context, labels, labels->slots_used < most_labels(labels) ? now : larger);
}

/* The same for wide slots: at most half full, and 3/4 when there may be no more of them. They become four times as
 * many: by twice as many, a label would move once on average, which costs more than finding it. */
static sp_status grow_wide(sp_context *context, io_labels *labels)
{
    const int64_t larger = labels->wide_count ? 4 * labels->wide_count : FIRST_SLOTS;
    const int64_t count = larger < labels->wide_most ? larger : labels->wide_most;
    if (labels->wide_count == labels->wide_most) {
        if (labels->wide_used >= labels->wide_most / 4 * 3) labels->wide_ids = labels->list.names.count;
        return SP_OK;
    }
    labels->wide_count = 0;
    const sp_status status = renew_table(context, count, sizeof *labels->wide, (void **)&labels->wide);
    if (status != SP_OK) return status;
    labels->wide_count = count;
    labels->wide_used = 0;
    fill_table(labels, true);
    return SP_OK;
}

sp_status io_labels_index(sp_context *context, const io_names *names, io_labels *labels)
{
    memset(labels, 0, sizeof *labels);
    labels->list.names = *names;
    return make_slots(context, labels, names->count + names->count / 2 + FIRST_SLOTS);
}

sp_status io_names_repeated(sp_context *context, const io_names *names, int64_t *repeated)
{
    io_labels labels;
    sp_status status = io_labels_index(context, names, &labels);
    *repeated = -1;
    for (int64_t i = 0; status == SP_OK && *repeated < 0 && i < names->count; i++) {
        const char *name = io_name(names, i);
        const size_t length = io_name_length(names, i);
        if (io_labels_find(&labels, name, length, io_label_hash(name, length)) != i) *repeated = i;
    }
    sp_free(context, labels.slots);
    return status;
}

/* Appends a label that is new. */
static sp_status append(sp_context *context, io_labels *labels, const char *label, size_t length, int32_t *id)
{
    sp_status status = SP_OK;
    if (labels->list.names.count == INT32_MAX) {
#pragma omp critical(io_context)
        status = sp_fail(context, SP_ERROR_OVERFLOW, "%s: more than %d labels", labels->file, INT32_MAX);
        return status;
    }
    *id = (int32_t)labels->list.names.count;
    return io_names_append(context, &labels->list, label, length);
}

static sp_status add_wide(sp_context *context, io_labels *labels, const char *label, size_t length, uint32_t hash,
                          int32_t *id)
{
    sp_status status = append(context, labels, label, length, id);
    if (status == SP_OK) put_wide(labels, io_label_key(label, length), hash, *id);
    return status;
}

sp_status io_labels_add(sp_context *context, io_labels *labels, const char *label, size_t length, uint32_t hash,
                        int32_t *id)
{
    uint64_t at;
    sp_status status = SP_OK;
    if (length <= IO_SHORT_LABEL && labels->wide_most > 0) {
        *id = io_labels_find_wide(labels, io_label_key(label, length), hash);
        if (*id >= 0) return SP_OK;
        if (!labels->wide_ids && labels->wide_used >= labels->wide_count / 2) TRY(grow_wide(context, labels));
        if (io_labels_all_wide(labels, length)) return add_wide(context, labels, label, length, hash, id);
    }
    if (labels->slots_used >= most_labels(labels) || labels->list.names.count >= id_mask(labels))
        TRY(grow_slots(context, labels));
    *id = probe(labels, label, length, hash, &at);
    if (*id >= 0) return SP_OK;
    TRY(append(context, labels, label, length, id));
    labels->slots[at] = slot_tag(labels, hash) | (uint32_t)*id;
    labels->slots_used++;
done:
    return status;
}

void io_labels_clear(io_labels *labels)
{
    if (labels->slot_count && labels->list.names.count)
        memset(labels->slots, 0xff, (size_t)labels->slot_count * sizeof *labels->slots);
    if (labels->wide_used) memset(labels->wide, 0xff, (size_t)labels->wide_count * sizeof *labels->wide);
    labels->slots_used = labels->wide_used = labels->wide_ids = 0;
    labels->list.names.count = 0;
}

void io_labels_free(sp_context *context, io_labels *labels)
{
    FREE_ALL(context, labels->slots, labels->wide);
    io_names_free(context, &labels->list.names);
    memset(labels, 0, sizeof *labels);
}

const char *io_names_list(const io_names *names, char text[IO_LISTED])
{
    size_t used = 0;
    snprintf(text, IO_LISTED, "%s", names->count > 0 ? "" : "none");
    for (int64_t i = 0; i < names->count; i++) {
        const size_t length = io_name_length(names, i), after = i + 1 < names->count ? strlen(", ...") : 0;
        if (used + strlen(", ") + length + after >= IO_LISTED) {
            snprintf(text + used, IO_LISTED - used, used > 0 ? ", ..." : "...");
            break;
        }
        used += (size_t)snprintf(text + used, IO_LISTED - used, used > 0 ? ", %.*s" : "%.*s", (int)length,
                                 io_name(names, i));
    }
    return text;
}
