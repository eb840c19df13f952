/* The job of the Markov product: what becomes of a row of A·B once it is summed, and what it needs for that. */
#ifndef SPARSE_CUDA_MARKOV_JOB_CUH
#define SPARSE_CUDA_MARKOV_JOB_CUH

#include <math.h>

#include "spgemm/cuda/numeric.cuh"

enum { PLACE_BITS = 48 }; /* a row's place: pass << PLACE_BITS | position in the pass's buffer */

/* What becomes of a row: it goes to a buffer, from which C is assembled; or, where memory lacks for both, all rows
 * are made twice: once to learn their lengths, and then to go to their place in C. */
enum markov_mode { STAGE, COUNT, WRITE };

/* What a block keeps in static shared memory. */
struct markov_memory : block_memory {
    unsigned histogram[256];
    int digit, rank;
    unsigned long long place;
};

typedef uint16_t window_column; /* within its window: 6 bytes a product instead of 8 */

/* B by windows of columns (windows.cuh). Row k's segments start at first[k], in ascending order: x is the place in B of
 * the first entry, y the window. The last one, of NO_WINDOW, marks the row's end. */
struct window_index {
    const int64_t *first;
    const uint2 *segments;
    const window_column *cols; /* of B's entries */
};
constexpr uint32_t NO_WINDOW = 0xffff;

/* Prunes, inflates and normalises the rows of C, and appends or places them. */
struct markov_job : row_operands<float, SP_AIA_OFF> {
    static constexpr bool SPILLS = true;
    static constexpr size_t SCRATCH = sizeof(int32_t) + sizeof(float); /* the row as a list */
    using memory = markov_memory;
    markov_mode mode;
    int64_t rows;
    const int64_t *products;
    const int64_t *segments; /* products at most, counted in segments; NULL: no windows */
    int64_t diagonal; /* the column of row 0's diagonal entry */
    int64_t f32_from; /* rows of at least this many products multiply in f32 */
    float cutoff;     /* the smallest f32 that is not below the cutoff */
    int select, recover;
    double recover_mass, inflation;
    int32_t *out_cols; /* the pass's buffer, or C */
    float *out_values;
    unsigned long long capacity, *used;
    const int64_t *out_offsets; /* WRITE: of C */
    int64_t pass;
    int64_t *places; /* -1 until the row is made */
    int32_t *lengths;
    sp_markov_row *stats;
    unsigned long long *expanded;
    window_index index; /* of B; for rows made by windows */
    int list_length;

    __device__ __forceinline__ int64_t most_columns(int row) const { return min(products[row], cols); }
    __device__ __forceinline__ bool in_f32(int row) const { return products[row] >= f32_from; }
    template <int THREADS, typename Table> __device__ void finish(int row, Table &table, markov_memory &memory) const;
    template <int THREADS>
    __device__ void finish_global(int row, global_sums &sums, char *own, markov_memory &memory) const;
};

/* An entry's value, NaN for none: -0 stands for an empty slot, and what cancels is no entry. */
static __device__ __forceinline__ float entry_value(double sum)
{
    return sum == 0 ? __int_as_float(0x7fffffff) : __double2float_rn(sum);
}

/* The summed row, as the epilogue sees it: `count` values of which some may be NaN. */
template <typename Table> struct table_entries {
    const Table &table;
    static constexpr bool SORTED = false;
    __device__ int count() const { return table.slots; }
    __device__ int32_t col(int i) const { return table.keys[i]; }
    __device__ float value(int i) const { return entry_value(table.sums[i]); }
};

struct list_entries {
    const int32_t *cols;
    const float *values;
    int length;
    static constexpr bool SORTED = true;
    __device__ int count() const { return length; }
    __device__ int32_t col(int i) const { return cols[i]; }
    __device__ float value(int i) const { return values[i]; }
};

/* hubs.cu: makes `count` rows, a list on the device; not if there is no room to sort their products. */
sp_status cuda_markov_hubs(sp_context *context, const markov_job &job, const sp_csr *a, const sp_csr *b,
                           const int32_t *rows, int64_t count, bool *made);

#endif
