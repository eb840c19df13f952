/* Y = alpha · reduce(A · X) + beta · Y on a CUDA device: what a plan keeps, what a launch gets, the launches.
 *
 * The room. Every kernel's file says how it works; figures are of an H200, in ms before and after unless they name
 * something else, from docs/notebook/spmm-*.md and maxk.md. Without a kernel another one of the list takes its rows.
 *
 *   spmm.cu         plans: looks at A and chooses the algorithm; the product's entry; places of entries
 *   shape.cu        lanes a row, width of tiles, alignment of X and Y
 *   walk.cuh        how a group of lanes walks a row of A. The general walk takes any type, width and reduction.
 *                   By fours of entries where rows of X have 64 bytes: R-MAT 18 at 16 columns 0.167 -> 0.142.
 *                   By exchange through shared memory at 128 bytes: R-MAT 17 0.0332 -> 0.0304. By pairs of
 *                   entries at 192 bytes: communities of 55 million entries at 48 columns 1.032 -> 0.858. Up to 4
 *                   columns: lanes with entries of their own, molecules at 2 columns 0.058 -> 0.006 (H100)
 *   result.cuh      sums and extremes in registers
 *   packet.cuh      loads of up to 16 bytes
 *   rows.cu         row split: rows of like lengths. By blocks instead the survey takes 5 % longer, molecules 38 %,
 *                   roads 31 %. Rows of a few entries, 32 a warp: molecules at 128 columns 0.77 -> 0.60, by twos at
 *                   602 1.83 -> 0.62, by numbers at 1,433 6.72 -> 2.04 (H100)
 *   blocks.cu       block partition and combined warps (Accel-GCN, Algorithms 1 and 2): rows of unlike lengths. By
 *                   rows instead the survey takes 2.4 times as long. Few long rows: 3,000 of 300 at 64 columns
 *                   0.076 -> 0.036. Serves ranges, streamed tiles and MaxK too
 *   ranges.cu       bidirectional partition (BiKD, Algorithms 3 and 4). Long rows of A, X beyond the cache: the shape
 *                   of AP-120 at 200 columns 45.3 -> 26.5, copies of X included
 *   panels.cu       rows of a community in step. Reddit's shape in order at 32 columns 1.63 -> 1.01
 *   order.cu        communities whose nodes are numbered in any order: products' shape at 32 columns 3.40 -> 1.92
 *   aligned.cu      copies where rows begin anywhere: BiKD's RD at 602 columns 44.8 -> 20.9
 *   stream*.cu      X or Y in host memory: the pipeline, its tiles (stream_cut.cu), the copies (stream_copy.cu)
 *   maxk.cu         MaxK's product and gradient (MaxK-GNN); maxk_select.cu its selection
 *   sddmm.cu        products sampled at A's entries, softmax over the entries of a row
 *
 * Not yet judged by the survey, as CONTRIBUTING.md asks: walks by fours and exchange of 16 bits, pairs, the plan
 * without ranges for 16 bits.
 */
#ifndef SPARSE_CUDA_SPMM_CUH
#define SPARSE_CUDA_SPMM_CUH

#include "base/ablation.h"
#include "base/search.h"
#include "device/common.cuh"

struct spmm_panels;    /* panels.cuh */
struct stream_staging; /* stream_copy.cuh */

/* Rows, or parts of rows within a range of columns, by falling number of entries, cut into blocks of equal work:
 * blocks[b] = {entries of a row, place of the first row, first entry within it, entries a group << 16 | rows}, or
 * {entries, place, first entry, entries} of a row that takes several blocks. */
struct spmm_blocks {
    int ranges;                     /* of columns, or of rows; 1: all of A */
    int group_entries;              /* most entries of a group */
    bool coarse;                    /* classes are powers of two, so that neighbouring rows stay together */
    int64_t count, places;          /* of blocks and of rows or parts of them */
    int64_t filled;                 /* blocks of range 0 whose rows have entries, which come first */
    bool mostly_empty;              /* half of the rows or more have none: Y is cleared instead by their blocks */
    device_array<int4> blocks;
    device_array<int32_t> rows;     /* by place: the row of A and Y */
    device_array<int64_t> starts;   /* by place: its first entry, */
    device_array<int32_t> entries;  /* and how many it has */
    int64_t *edges;                 /* host: [2r] where the blocks of range r begin, [2r + 1] those that do more than a
                                       part of a row */
    device_array<char> carry;       /* partial results of rows of several blocks */
    device_array<unsigned> arrived; /* how many blocks of such a row are done; zero between launches */
    size_t carry_bytes;
    int64_t arrived_count;
};

struct spmm_state {
    sp_spmm_algorithm algorithm;
    spmm_blocks *parts;         /* NULL for the row split */
    spmm_blocks *row_parts;     /* the same by ranges of rows; made when X or Y is first streamed */
    spmm_blocks *kept_parts;    /* for MaxK where those of `parts` are too small; made when MaxK first asks */
    spmm_panels *panels;        /* where neighbouring rows have columns in common, or NULL */
    bool short_rows;            /* all rows have few entries */
    bool short_ranges;          /* rows have few entries in a range: X of 16 bits takes the plan below */
    spmm_state *without_ranges; /* made by the first product of 16 bits */
    sp_spmm_info *info;         /* the caller's: the way of the last product */
    int64_t cache;              /* bytes of the second-level cache */
    device_array<uint4> aligned; /* copies of X and Y whose rows begin at lines; made when first needed */
    int64_t aligned_words;       /* the room there */
    stream_staging *staging_in, *staging_out; /* pinned buffers; made when pageable memory is first streamed */
};

/* One launch's operands. */
struct spmm_product {
    const int64_t *offsets;
    const int32_t *cols;
    const void *values; /* NULL: ones */
    int64_t rows, nnz;
    const void *x;
    void *y;
    int64_t *argument; /* of extremes, or NULL */
    int64_t y_stride;
    uint32_t x_bytes; /* from a row of X to the next */
    int32_t width, tiles;
    int32_t first, total; /* where the columns begin, and how many there are, in a product that is made in parts */
    double alpha, beta;
    bool mean, minimum, y_narrow /* Y has X's type, not f32 */;
    uint64_t keep; /* what the second-level cache does with A and X: SPMM_STAYS or SPMM_PASSES */
};

/* Policies of ld.global.L2::cache_hint, as createpolicy makes them: evict_normal, and evict_first. From the kernel's
 * arguments they take no registers, which results of createpolicy do. */
static const uint64_t SPMM_STAYS = 0x1000000000000000, SPMM_PASSES = 0x12f0000000000000;

/* How the columns of X are dealt to lanes. */
struct spmm_shape {
    int vector, lanes, repeats;
    bool pairs = false; /* the last repeat is half as wide: lanes are dealt to two entries there */
    bool apart = false; /* a row is one packet: each lane is dealt to entries of its own */
    int columns() const { return apart ? vector : vector * (lanes * repeats - (pairs ? lanes / 2 : 0)); }
};

/* Groups a block of the partition: 32 threads with 4 lanes a group, 256 with 32. */
enum { SPMM_GROUPS = 8 };
/* Ranges of columns or rows that A is cut into, at most. */
static const int SPMM_MOST_RANGES = 256;

sp_status cuda_spmm_rows(sp_context *context, sp_dense_type type, bool extreme, const spmm_shape &shape,
                         const spmm_product &product);
/* Sums of rows of a few entries; rows of X and Y are aligned to 16 bytes, or of f32 to `vector` = 1 or 2 numbers. */
sp_status cuda_spmm_short_rows(sp_context *context, sp_dense_type type, int vector, const spmm_product &product);
sp_status cuda_spmm_blocks(sp_context *context, sp_dense_type type, bool extreme, const spmm_shape &shape,
                           const spmm_product &product, spmm_blocks *parts, int range);
/* Cuts A's rows, taken in `order` unless that is NULL, by ranges of range_columns columns and into blocks. */
sp_status cuda_spmm_cut(sp_context *context, const sp_csr *a, int ranges, int64_t range_columns, int group_entries,
                        bool coarse, const int32_t *order, spmm_blocks **parts);
/* Cuts ranges of range_rows rows into blocks, as all of A would be: sums have the same order. */
sp_status cuda_spmm_cut_rows(sp_context *context, const sp_csr *a, int ranges, int64_t range_rows, int group_entries,
                             bool coarse, spmm_blocks **parts);
void cuda_spmm_free_blocks(sp_context *context, spmm_blocks *parts);
/* The plan's blocks, or NULL for the row split. Where blocks have few entries for the sake of the caches, the first
 * call makes longer ones: the kernels of maxk.cu spend as much before and after a part of 64 entries as on it. */
sp_status cuda_spmm_kept_parts(sp_context *context, const sp_csr *a, spmm_state *state, spmm_blocks **parts);
sp_status cuda_spmm_ranges(sp_context *context, sp_dense_type type, const spmm_shape &shape,
                           const spmm_product &product, spmm_blocks *parts);
/* By the plan's algorithm. Which lane adds what depends on the shape alone, not on the other columns. */
sp_status cuda_spmm_launch(sp_context *context, sp_dense_type type, bool extreme, spmm_state *state,
                           const spmm_shape &shape, const spmm_product &product);
/* The product's Y = sums + beta · Y; the sums' rows lie side by side, or `stride` apart. */
sp_status cuda_spmm_round(sp_context *context, sp_dense_type type, const spmm_product &product, const float *sums,
                          int64_t stride = 0);

/* ---- what the other files offer to spmm.cu: see order.cu, aligned.cu, stream.cu ----------------------------- */

/* order[i] = the row to be taken i-th. Empty if A has no communities, or if more than an eighth of the rows are in
 * communities of more than `most` rows. *small: whether half of the rows are in communities of up to `few`. */
sp_status cuda_spmm_order(sp_context *context, const sp_csr *a, int64_t most, int64_t few,
                          device_array<int32_t> *order, bool *small);
/* Multiplies by copies where they pay and there is room for them; else *done is false and nothing has happened. */
sp_status cuda_spmm_aligned(sp_context *context, const sp_csr *a, const sp_spmm_options *options, spmm_state *plan,
                            double alpha, const sp_dense *x, double beta, const sp_dense *y, bool *done);
/* X, Y or both in host memory; `argument` lies in Y's space. Returns when Y is complete. On failure Y is undefined. */
sp_status cuda_spmm_stream(sp_context *context, const sp_csr *a, const sp_spmm_options *options, spmm_state *state,
                           double alpha, const sp_dense *x, double beta, sp_dense *y, int64_t *argument);
void cuda_spmm_free_staging(sp_context *context, stream_staging *staging);

#endif
