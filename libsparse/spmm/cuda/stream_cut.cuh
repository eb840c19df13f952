/* How X and Y in host memory are cut into tiles: see stream_cut.cu. */
#ifndef SPARSE_CUDA_SPMM_STREAM_CUT_CUH
#define SPARSE_CUDA_SPMM_STREAM_CUT_CUH

#include "spmm/cuda/spmm.cuh"
#include "spmm/cuda/stream_copy.cuh"

struct stream_job {
    sp_context *context;
    const sp_csr *a;
    spmm_state *state;
    const sp_dense *x, *y;
    int64_t *argument;
    double beta;
    bool extreme;
    spmm_shape shape;
    spmm_product product;
    stream_memory x_memory, y_memory, argument_memory;
};

/* How X and Y are cut, and the bytes of one buffer of each kind; 0 without one. Of `ranges` and `blocks` one
 * is 1. */
struct stream_cut {
    int64_t columns, tiles;    /* of a tile; how many */
    int64_t first;             /* columns of the first tile, at most as many */
    int64_t range_rows;        /* of X */
    int64_t block_rows;        /* of Y */
    int64_t part_rows;         /* of X that come in while a block is made */
    int ranges, blocks;
    int x_slots, slots; /* buffers of X; of Y and of arguments */
    size_t x, y, argument, sums;
    size_t buffers, bytes; /* all of them; with the memory of launches */
};

static inline int64_t column_of(const stream_cut &cut, int64_t tile)
{
    return tile > 0 ? cut.first + (tile - 1) * cut.columns : 0;
}

static inline int64_t columns_of(const stream_cut &cut, int64_t width, int64_t tile)
{
    const int64_t left = width - column_of(cut, tile), most = tile > 0 ? cut.columns : cut.first;
    return left < most ? left : most;
}

/* A partition that ends with its scope. */
struct stream_parts {
    sp_context *context;
    spmm_blocks *blocks = nullptr;

    explicit stream_parts(sp_context *owner) : context(owner) {}
    stream_parts(const stream_parts &) = delete;
    stream_parts &operator=(const stream_parts &) = delete;
    ~stream_parts() { free(); }
    void free()
    {
        cuda_spmm_free_blocks(context, blocks);
        blocks = nullptr;
    }
};

/* The fastest way to cut that fits the memory. *parts has A by ranges of columns where X is cut by rows. */
sp_status stream_choose_cut(const stream_job &job, stream_parts *parts, stream_cut *cut);

#endif
