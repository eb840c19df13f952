/* What plans keep for their numeric phase: products in tiles of C (terms.cu), or rows by classes, where rows
 * are summed faster than listed products (warp.cu). */
#ifndef SPARSE_CUDA_TERMS_CUH
#define SPARSE_CUDA_TERMS_CUH

#include "device/common.cuh"
#include "device/long_sums.cuh"

/* A tile has TILE_MOST products at most, and MOST_TERMS of an entry. Seven blocks of 32 KB fill a multiprocessor;
 * LIST_PIECES of 8 places are enough for lists of which a fifth is padding, others are read from memory. */
enum { TILE_THREADS = 256, TILE_WARPS = TILE_THREADS / 32, MOST_TERMS = 512, TILE_MOST = 6 * MOST_TERMS,
       TILE_GROUPS = TILE_MOST / 32, LIST_PIECES = 480 };
/* What a thread takes of a tile's products, and a warp of its groups. */
enum { TILE_EACH = TILE_MOST / TILE_THREADS, WARP_GROUPS = TILE_GROUPS / TILE_WARPS };
static_assert(TILE_EACH * TILE_THREADS == TILE_MOST && WARP_GROUPS * TILE_WARPS == TILE_GROUPS, "no rest");
static_assert(WARP_GROUPS <= 32 && TILE_GROUPS <= TILE_THREADS && TILE_MOST < UINT16_MAX, "groups and places fit");

/* Places that are none: of padding, where −0 lies, and of the first product of a long entry. */
enum { NO_TERM = TILE_MOST, ELSEWHERE = UINT16_MAX };

/* Neighbouring entries of C. `segment` and `list` are where its parts of those arrays begin. */
struct product_tile {
    int64_t entry, segment, list;
    int32_t entries, products, slices, pieces; /* pieces: of the list */
};

/* An entry of C with more products than a tile takes of one, and where they begin. */
struct long_entry {
    int64_t entry, term, count;
};

/* Device memory; tile is NULL where nothing is listed. */
struct product_terms {
    int64_t tiles, long_entries, bytes;
    int64_t long_count, longest; /* products of long entries: of all, of one */
    product_tile *tile;
    uint2 *groups;       /* of each 32 products of a tile: which begin a segment; segments of the tile before them */
    uint2 *segments;     /* entry of A; entry of B less the place of the first product */
    uint4 *lists;        /* places of the products of entries that have several */
    uint16_t *firsts;    /* the place of the first product of every entry of C */
    long_entry *longs;
    uint2 *long_terms;  /* entries of A and of B */
    double *long_values; /* their products, where one entry has enough for the whole device; else NULL */
};

/* A warp sums entries of up to this many products. The device sums the others: MOST_LONG_RUNS at most. */
static inline int64_t most_of_warp(const product_terms &terms)
{
    const int64_t usual = 1 << 14, share = terms.long_count / MOST_LONG_RUNS;
    return share > usual ? share : usual;
}

/* Lists the products of A·B that fall on the pattern of C, all on the device; `products` is their number where no
 * mask forbids any. No list, and SP_OK, where it does not fit the memory beside C, a row of A has 2^30 entries or an
 * operand 2^32. O(products). */
sp_status cuda_make_terms(sp_context *context, const sp_csr *a, const sp_csr *b, bool masked, const sp_csr *pattern,
                          int64_t products, product_terms *terms);
void cuda_free_terms(sp_context *context, product_terms *terms);
/* C's values. */
sp_status cuda_sum_terms(sp_context *context, const product_terms *terms, const sp_csr *a, const sp_csr *b,
                         sp_semiring semiring, sp_csr *c);

/* The rows of C by the kernels that sum them, and which rows of B have the columns of the row before. */
struct kept_rows;

/* *rows is NULL where tiles are faster: unless a quarter of the rows of A have the columns of their neighbours, as in
 * finite elements, or B has few columns. For plus-times without a mask; *bytes: what they take on the device.
 * O(nnz(A)). */
sp_status cuda_keep_rows(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_csr *pattern,
                         kept_rows **rows, int64_t *bytes);
void cuda_free_rows(sp_context *context, kept_rows *rows);
/* C's values; A and B have values. */
sp_status cuda_sum_rows(sp_context *context, const kept_rows *rows, const sp_csr *a, const sp_csr *b, sp_csr *c);

#endif
