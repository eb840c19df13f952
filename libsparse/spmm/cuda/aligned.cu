/* Products of X and Y whose rows begin anywhere: by copies whose rows begin at lines of the caches.
 *
 * X is copied some columns at a time. If Y's rows are not aligned, sums are written to a copy too, and from there to Y.
 * The kernels in between are those of aligned rows.
 */
#include <string.h>

#include "spmm/cuda/shape.cuh"

/* Copies pay from this many entries a row of X on: in general; with panels, which find most of X in the caches; if rows
 * are even numbers of f32, which could be loaded by twos, where the caches hold less than X, and where they hold it;
 * and if they are odd ones, which could by single numbers. */
static const int64_t COPY_ENTRIES = 16, PANEL_ENTRIES = 64, PAIR_ENTRIES = 32, NEAR_PAIR_ENTRIES = 128,
                     NUMBER_ENTRIES = 16;
/* From this many multiplications on the launches of copies do not count. */
static const int64_t COPY_WORK = 1 << 24;
/* A copy of X may take this many times the second-level cache. */
static const int64_t COPY_CACHES = 4;

/* Columns of each row of X in words of 16 bytes, `room` from row to row, zeros behind the last; a group of 2^shift
 * threads a row. */
template <typename W>
static __global__ void __launch_bounds__(256)
    copy_columns(int64_t rows, const char *x, size_t x_bytes, int bytes, int room, int shift, uint4 *to)
{
    enum { PIECES = WORD / sizeof(W) };
    const int64_t row = ((int64_t)blockIdx.x * 256 + threadIdx.x) >> shift;
    if (row >= rows) return;
    for (int word = threadIdx.x & ((1 << shift) - 1); word * WORD < bytes; word += 1 << shift) {
        const W *from = (const W *)(x + (size_t)row * x_bytes) + word * PIECES;
        W piece[PIECES];
        uint4 whole;
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            piece[i] = word * WORD + i * (int)sizeof(W) < bytes ? __ldg(from + i) : W();
        memcpy(&whole, piece, WORD);
        to[row * room + word] = whole;
    }
}

/* Words of 16 bytes from row to row of copies; 0 of Y where it needs none. */
struct spmm_copies {
    int x_words, y_words;
};

static spmm_copies lay_out(const sp_dense *x, const sp_dense *y, int64_t columns)
{
    const int64_t packet = WORD / (int64_t)sp_dense_size(x->type), words = (columns + packet - 1) / packet;
    sp_dense part = *y;
    int64_t room = 1;
    while (room < words && room < LINE_BYTES / WORD) room *= 2;
    if (words > room) room = words <= 12 ? 12 : (words + room - 1) / room * room; /* 12: see takes_pairs */
    part.cols = columns;
    return {(int)room, cuda_spmm_fits(&part, packet) ? 0 : (int)(words * packet * (int64_t)sizeof(float) / WORD)};
}

/* Whether the second-level cache holds less than two lines of each row of X. */
static bool is_far(const sp_csr *a, const spmm_state *state)
{
    return 2 * LINE_BYTES * a->cols > state->cache / 10 * 11;
}

/* Columns from `first` on that are copied at a time: one line of X if the cache does not hold two and there are no
 * panels, else some lines; and the rest with them if it is half a line at most. */
static int64_t columns_at_once(const sp_csr *a, const sp_dense *x, const spmm_state *state, int64_t first)
{
    const int64_t line = LINE_BYTES / (int64_t)sp_dense_size(x->type), left = x->cols - first;
    const int64_t most = COPY_CACHES * state->cache / LINE_BYTES / (a->cols > 0 ? a->cols : 1);
    const bool far = !state->panels && is_far(a, state);
    const int64_t columns = (far || most < 1 ? 1 : most) * line;
    return left <= columns + (state->algorithm == SP_SPMM_ROW_SPLIT && far ? 0 : line / 2) ? left : columns;
}

/* Where rows of X do not begin at lines, a tile's row lies in two of them, and the caches and the memory move
 * and keep more than is asked for: 182 million entries, 201 MB a tile, 200 columns take 47.8 ms, seven tiles of 32
 * columns that do 26.5; by panels 105 million at 100 columns 3.74 and 3.47. Not where the cache holds wider tiles,
 * nor where one tile takes a line and a half: 75 million, 36 columns, 1.56 ms for 1.74. Rows that do not begin at
 * packets of 16 bytes, or end amid one, are loaded number by number otherwise: 105 million entries at 33 columns take
 * 5.85 ms, and 1.66 from copies, but 0.6 million in 0.3 million rows at 1,433 columns 2.0 ms, and 6.7 from copies; with
 * 8 to 15 entries a row 33 columns take 0.85 of the time without copies, 101 and 301 as long, 1,433 columns 0.92. */
static bool needs_copy(const sp_csr *a, const sp_dense *x, const sp_dense *y, bool extreme, const spmm_state *state)
{
    const int64_t size = (int64_t)sp_dense_size(x->type);
    if (extreme || a->nnz == 0 || left_out("spmm-aligned")) return false;
    if (cuda_spmm_takes_apart(x, y)) return false;
    if (!cuda_spmm_fits(x, WORD / size) || !cuda_spmm_fits(y, WORD / size)) {
        const bool pairs = size == 4 && cuda_spmm_fits(x, 2) && cuda_spmm_fits(y, 2);
        const int64_t pair = is_far(a, state) ? PAIR_ENTRIES : NEAR_PAIR_ENTRIES;
        const int64_t least = pairs ? pair : size == 4 ? NUMBER_ENTRIES : 1;
        const int64_t mean = (a->rows + a->cols) / 2; /* of rows of Y and X, which are both copied */
        return size < 8 && a->nnz >= least * mean && a->nnz >= COPY_WORK / x->cols;
    }
    if (cuda_spmm_takes_pairs(x, y, extreme, state->algorithm, 0) || x->cols * size < LINE_BYTES) return false;
    if (cuda_spmm_at_lines(x)) return false;
    return state->panels && size < 8
               ? a->nnz >= PANEL_ENTRIES * a->cols
               : a->nnz >= COPY_ENTRIES * a->cols && is_far(a, state);
}

/* The product, some columns at a time, from a copy of X at `copy`; a copy of Y, if it needs one, lies behind it. */
static sp_status multiply_copied(sp_context *context, const sp_csr *a, const sp_spmm_options *options,
                                 spmm_state *state, double alpha, const sp_dense *x, double beta, const sp_dense *y,
                                 uint4 *copy)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t size = (int64_t)sp_dense_size(x->type), packet = WORD / size;
    const size_t x_bytes = (size_t)(x->stride * size), mixed = x_bytes | (size_t)(uintptr_t)x->values;
    const auto copy_x = mixed % 16 == 0  ? copy_columns<uint4>
                        : mixed % 8 == 0 ? copy_columns<uint2>
                        : mixed % 4 == 0 ? copy_columns<unsigned>
                                         : copy_columns<unsigned short>;
    for (int64_t first = 0, columns; first < x->cols; first += columns) {
        columns = columns_at_once(a, x, state, first);
        const spmm_copies made = lay_out(x, y, columns);
        const int64_t whole = (columns + packet - 1) / packet * packet;
        sp_dense x_part = {x->rows, whole, made.x_words * packet, copy, x->type, SP_DEVICE, SP_ROW_MAJOR, 0, 0};
        sp_dense sums = {y->rows,      whole,     whole,        copy + a->cols * made.x_words,
                         SP_DENSE_F32, SP_DEVICE, SP_ROW_MAJOR, 0, 0};
        sp_dense y_part = *y;
        spmm_shape shape;
        spmm_product product;
        int shift = 0;
        while (shift < 5 && 1 << shift < made.x_words) shift++;
        copy_x<<<(unsigned)(((a->cols << shift) + 255) / 256), 256, 0, stream>>>(
            a->cols, (const char *)x->values + first * size, x_bytes, (int)(columns * size), made.x_words, shift,
            copy);
        CUDA_CHECK(cudaGetLastError());
        y_part.cols = columns;
        y_part.values = (char *)y->values + (size_t)first * sp_dense_size(y->type);
        CHECK(cuda_spmm_describe(context, a, options, state, alpha, &x_part, made.y_words ? 0 : beta,
                                 made.y_words ? &sums : &y_part, NULL, &shape, &product));
        product.first = (int32_t)first;
        product.total = (int32_t)x->cols;
        CHECK(cuda_spmm_launch(context, x->type, false, state, shape, product));
        if (!made.y_words) continue;
        product.width = (int32_t)columns;
        product.y = y_part.values;
        product.y_stride = y->stride;
        product.y_narrow = sp_dense_size(y->type) == 2;
        product.beta = beta;
        CHECK(cuda_spmm_round(context, x->type, product, (const float *)sums.values, sums.stride));
    }
    return SP_OK;
}

/* Room for copies, which the plan keeps. A CUDA graph under capture has its own, `passing`, because later products may
 * need more. */
static sp_status make_room(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y,
                           spmm_state *plan, device_array<uint4> *passing, uint4 **room)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    int64_t words = 0;
    for (int64_t first = 0, columns; first < x->cols; first += columns) {
        columns = columns_at_once(a, x, plan, first);
        const spmm_copies made = lay_out(x, y, columns);
        const int64_t needed = a->cols * made.x_words + a->rows * made.y_words;
        if (needed > words) words = needed;
    }
    CUDA_CHECK(cudaStreamIsCapturing(cuda_state_of(context)->stream, &capture));
    const bool kept = capture == cudaStreamCaptureStatusNone;
    device_array<uint4> *to = kept ? &plan->aligned : passing;
    if (!to->data || plan->aligned_words < words) {
        CHECK(to->allocate(context, words));
        if (kept) plan->aligned_words = words;
    }
    *room = to->data;
    return SP_OK;
}

sp_status cuda_spmm_aligned(sp_context *context, const sp_csr *a, const sp_spmm_options *options, spmm_state *plan,
                            double alpha, const sp_dense *x, double beta, const sp_dense *y, bool *done)
{
    device_array<uint4> passing;
    uint4 *room = NULL;
    *done = false;
    if (!needs_copy(a, x, y, spmm_is_extreme(options), plan)) return SP_OK;
    const sp_status status = make_room(context, a, x, y, plan, &passing, &room);
    if (status == SP_ERROR_DEVICE_MEMORY) return SP_OK;
    if (status != SP_OK) return status;
    *done = true;
    return multiply_copied(context, a, options, plan, alpha, x, beta, y, room);
}
