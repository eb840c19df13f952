/* RoDe (Pang, Fei, Qu, Zhang, Zhuang, Li: A row decomposition-based approach for sparse matrix multiplication on GPUs,
 * PPoPP 2024) behind spmm_peer.cuh: blocks of 32 entries and segments of 512 of long rows by one kernel, what is left
 * of rows by another, beside each other, both by atomics. For widths that are multiples of 32. build.sh brings its
 * sources. */
#include "spmm_peer.cuh"

#include "RoDeSpmm.h"

enum { SEGMENT = 512, VECTOR = 4, BLOCK = 32 };

using rode_product = void(int, int, int, int, const float *, const int *, const int *, const int *, const int *,
                          const int *, const float *, float *, cudaStream_t, cudaStream_t);
/* tiles of 32 and 64 columns */
static rode_product *const rode_narrow = RoDeSpmm_n32, *const rode_wide = RoDeSpmm_n128;

static int *segment_rows, *residue_rows, *segment_starts;
static int segments, residues;
static cudaStream_t streams[2];
static cudaEvent_t begun, done[2];

/* A row begins with the entries before it in its vector, which are masked. Segments of SEGMENT; a last one of BLOCK and
 * more; and rows with entries that fill no block. */
static void open_product(const peer_graph &g)
{
    std::vector<int> rows, starts, others;
    if (g.width % 32) throw std::runtime_error("its widths are multiples of 32");
    for (int row = 0; row < g.rows; row++) {
        int at = g.host_offsets[row];
        const int before = at % VECTOR;
        int left = g.host_offsets[row + 1] - at + before;
        for (bool first = true; left > SEGMENT; first = false, left -= SEGMENT) {
            rows.push_back(row);
            starts.push_back(at);
            at += SEGMENT - (first ? before : 0);
        }
        if (left >= BLOCK) {
            rows.push_back(row);
            starts.push_back(at);
        }
        if (left % BLOCK) others.push_back(row);
    }
    starts.push_back(g.nnz);
    segments = (int)rows.size();
    residues = (int)others.size();
    segment_rows = upload(rows);
    residue_rows = upload(others);
    segment_starts = upload(starts);
    for (int i = 0; i < 2; i++) {
        check(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "stream");
        check(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming), "event");
    }
    check(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming), "event");
}

static void close_product()
{
    cudaFree(segment_rows);
    cudaFree(residue_rows);
    cudaFree(segment_starts);
    segment_rows = residue_rows = segment_starts = nullptr;
    if (!begun) return;
    for (int i = 0; i < 2; i++) {
        cudaStreamDestroy(streams[i]);
        cudaEventDestroy(done[i]);
    }
    cudaEventDestroy(begun);
    begun = nullptr;
}

static void multiply(const peer_graph &g)
{
    check(cudaMemsetAsync(g.y, 0, (size_t)g.rows * (size_t)g.width * sizeof(float), 0), "zeros");
    check(cudaEventRecord(begun, 0), "event");
    for (cudaStream_t stream : streams) check(cudaStreamWaitEvent(stream, begun, 0), "event");
    const auto product = g.width % 64 ? rode_narrow : rode_wide;
    product(segments, residues, g.cols, g.width, g.values, g.columns, g.offsets, segment_rows, residue_rows,
            segment_starts, g.x, g.y, streams[0], streams[1]);
    for (int i = 0; i < 2; i++) {
        check(cudaEventRecord(done[i], streams[i]), "event");
        check(cudaStreamWaitEvent(0, done[i], 0), "event");
    }
}
