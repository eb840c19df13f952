/* Fast paths for lines of the common form. The IO_SCANNED bytes from where a line begins must be readable. */
#ifndef IO_LINES_SCAN_H
#define IO_LINES_SCAN_H


#include "lines/lines.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { IO_SCANNED = 64 }; /* bytes from a line's begin that can be read, whatever its length */


/* A bit for each of 64 bytes: blanks and control characters. */
static inline uint64_t io_find_blanks(const char *at)
{
    uint64_t found = 0;
#ifdef __SSE2__
    const __m128i largest = _mm_set1_epi8(' ');
    for (int i = 0; i < IO_SCANNED; i += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        const __m128i blank = _mm_cmpeq_epi8(_mm_max_epu8(bytes, largest), largest);
        found |= (uint64_t)(uint32_t)_mm_movemask_epi8(blank) << i;
    }
#else
    const uint64_t ones = UINT64_C(0x0101010101010101);
    for (int i = 0; i < IO_SCANNED; i += 8) {
        const uint64_t word = io_load(at + i, 8);
        const uint64_t blank = ~(((word & 127 * ones) + (127 - ' ') * ones) | word) >> 7 & ones;
        found |= (blank * UINT64_C(0x0102040810204080) >> 56) << i;
    }
#endif
    return found;
}

static inline uint64_t io_low_bytes(int count) { return (UINT64_C(1) << 8 * count) - 1; } /* fewer than 8 */

/* All but the hash. */
static inline void io_scan_label(const char *at, int length, io_label *label)
{
    label->text = at;
    label->length = (size_t)length;
    if (length <= IO_SHORT_LABEL) {
        label->key.low = io_load(at, 8) & (length < 8 ? io_low_bytes(length) : UINT64_MAX);
        label->key.high = length > 8 ? (uint32_t)(io_load(at + 8, 4) & io_low_bytes(length - 8)) : 0;
    } else {
        label->key = (io_key){0, 0};
    }
}

/* Eight digits, the first in the lowest byte. */
static inline bool io_eight_digits(uint64_t text, uint32_t *number)
{
    const uint64_t high = UINT64_C(0xf0f0f0f0f0f0f0f0);
    if (((text & high) | ((text + UINT64_C(0x0606060606060606)) & high) >> 4) != UINT64_C(0x3333333333333333))
        return false;
    text -= UINT64_C(0x3030303030303030);
    text = text * 10 + (text >> 8); /* of two digits each */
    *number = (uint32_t)(((text & UINT64_C(0x000000ff000000ff)) * (100 + (UINT64_C(1000000) << 32)) +
                          (text >> 16 & UINT64_C(0x000000ff000000ff)) * (1 + (UINT64_C(10000) << 32))) >>
                         32);
    return true;
}

/* A whole number of 1 to 8 digits; false for anything else. */
static inline bool io_scan_index(const char *at, int count, uint32_t *number)
{
    if (count < 1 || count > 8) return false;
    const int empty = 8 - count;
    const uint64_t zeros = UINT64_C(0x3030303030303030) & io_low_bytes(empty);
    return io_eight_digits(io_load(at, 8) << 8 * empty | zeros, number);
}

/* A number of 1 to 8 digits, one of which may be a point; false for anything else. */
static inline bool io_scan_decimal(const char *at, int count, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    const uint64_t ones = UINT64_C(0x0101010101010101);
    if (count < 1 || count > 8) return false;
    int empty = 8 - count, fraction = 0;
    uint64_t digits = io_load(at, 8) << 8 * empty;
    const uint64_t others = digits ^ ones * '.', point = (others - ones) & ~others & ones << 7;
    if (point) { /* what is before it moves up by a byte */
        const int place = __builtin_ctzll(point) / 8;
        const uint64_t before = digits & io_low_bytes(place);
        fraction = 7 - place;
        digits = (digits & ~(io_low_bytes(place) | UINT64_C(0xff) << 8 * place)) | before << 8;
        if (++empty == 8) return false;
    }
    uint32_t number;
    if (!io_eight_digits(digits | (ones * '0' & io_low_bytes(empty)), &number)) return false;
    *value = (double)number / powers[fraction];
    return true;
}

/* A number of any length from 0 to `most`. */
static inline bool io_scan_weight(const char *at, int count, double most, double *weight)
{
    double number;
    if (io_scan_decimal(at, count, weight)) return true;
    if (count < 1 || io_parse_decimal(at, at + count, &number) != at + count) return false;
    *weight = number;
    return number >= 0 && number <= most;
}

static inline bool io_same_label(const io_label *a, const io_label *b)
{
    return a->length == b->length && a->key.low == b->key.low && a->key.high == b->key.high &&
           (a->length <= IO_SHORT_LABEL || io_same_bytes(a->text, b->text, a->length));
}

static inline void io_hash_label(io_label *label)
{
    const bool is_short = label->length <= IO_SHORT_LABEL;
    label->hash = is_short ? io_key_hash(label->key) : io_label_hash(label->text, label->length);
}

/* Resolves the waiting pairs, labels in their order. */
bool io_slice_flush(io_slice *slice);

/* The next pair has both labels in slice->pairs[slice->pair_count], without their hashes. */
static inline bool io_slice_push(io_slice *slice, double weight, bool keep)
{
    io_pair *pair = &slice->pairs[slice->pair_count];
    pair->weight = weight;
    pair->keep = keep;
    /* As the pair before, while the batch lasts: files are often sorted by their first column. */
    pair->same_tail = slice->pair_count && io_same_label(&pair[-1].tail, &pair->tail);
    if (!pair->same_tail) {
        io_hash_label(&pair->tail);
        io_labels_prefetch_wide(slice->known, pair->tail.hash);
    }
    io_hash_label(&pair->head);
    io_labels_prefetch_wide(slice->known, pair->head.hash);
    return ++slice->pair_count < IO_PAIRS || io_slice_flush(slice);
}

#endif
