/* The program around a peer's product C = A·B: reads a case that sparse-bench has written, multiplies, prints a line a
 * sample, and writes C, which sparse-bench compares with its own. A program of its own keeps what a peer breaks away
 * from the other candidates.
 *
 *   usage: spgemm-NAME CASE RESULT REPEAT LIMIT
 *   CASE    6 numbers of 64 bits: rows, inner, columns, entries of A, entries of B, whether B is A (then B is left
 *           out); of each matrix offsets and columns of 32 bits, values of f64
 *   RESULT  rows and entries of C, and the same arrays
 *   prints  "name NAME", "seconds S" a sample, "peak BYTES" (working memory and C); "failed SENTENCE"
 *
 * A sample is the whole call with the allocation of C, from a cache (pool.h), and ends when the device has finished; C
 * is released between samples. One call before them is not counted. */
#ifndef BENCH_PEERS_PEER_CUH
#define BENCH_PEERS_PEER_CUH

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "pool.h"

peer_pool the_pool;

struct peer_matrix { /* on the device */
    int rows, cols, nnz;
    int *offsets, *columns;
    double *values;
};

/* The peer's: throws if it fails. C's arrays are from pool_malloc. */
static void multiply(const peer_matrix &a, const peer_matrix &b, peer_matrix *c);

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

static void move(void *host, size_t bytes, FILE *file, bool reads)
{
    const size_t moved = reads ? fread(host, 1, bytes, file) : fwrite(host, 1, bytes, file);
    if (moved != bytes) throw std::runtime_error(reads ? "the case ends early" : "the result cannot be written");
}

template <typename T> static T *load(size_t count, FILE *file)
{
    const size_t bytes = count * sizeof(T);
    void *host = malloc(bytes + 1);
    T *device = nullptr;
    if (!host) throw std::bad_alloc();
    move(host, bytes, file, true);
    check(pool_malloc(&device, bytes), "allocation");
    check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copy");
    free(host);
    return device;
}

template <typename T> static void store(const T *device, size_t count, FILE *file)
{
    const size_t bytes = count * sizeof(T);
    void *host = malloc(bytes + 1);
    if (!host) throw std::bad_alloc();
    check(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "copy");
    move(host, bytes, file, false);
    free(host);
}

static peer_matrix load_matrix(int64_t rows, int64_t cols, int64_t nnz, FILE *file)
{
    peer_matrix m = {(int)rows, (int)cols, (int)nnz, nullptr, nullptr, nullptr};
    m.offsets = load<int>((size_t)rows + 1, file);
    m.columns = load<int>((size_t)nnz, file);
    m.values = load<double>((size_t)nnz, file);
    return m;
}

static void release(peer_matrix *c)
{
    pool_free(c->offsets);
    pool_free(c->columns);
    pool_free(c->values);
    *c = peer_matrix();
}

static double seconds_now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void measure(const peer_matrix &a, const peer_matrix &b, int repeat, double limit, peer_matrix *c)
{
    const double began = seconds_now();
    for (int i = -1; i < repeat && (i < 1 || seconds_now() - began < limit); i++) {
        release(c);
        check(cudaDeviceSynchronize(), "before the product");
        if (i < 0) the_pool.most_in_use = the_pool.in_use;
        const double start = seconds_now();
        multiply(a, b, c);
        check(cudaDeviceSynchronize(), "product");
        if (i >= 0) printf("seconds %.9f\n", seconds_now() - start);
    }
}

static void run(char **argv)
{
    FILE *file = fopen(argv[1], "rb");
    int64_t header[6];
    if (!file) throw std::runtime_error("the case cannot be read");
    move(header, sizeof header, file, true);
    const peer_matrix a = load_matrix(header[0], header[1], header[3], file);
    const peer_matrix b = header[5] ? a : load_matrix(header[1], header[2], header[4], file);
    fclose(file);
    const size_t operands = the_pool.in_use;
    peer_matrix c = {};
    measure(a, b, atoi(argv[3]), atof(argv[4]), &c);
    printf("peak %zu\n", the_pool.most_in_use - operands);
    file = fopen(argv[2], "wb");
    int64_t size[2] = {c.rows, c.nnz};
    if (!file) throw std::runtime_error("the result cannot be written");
    move(size, sizeof size, file, false);
    store(c.offsets, (size_t)c.rows + 1, file);
    store(c.columns, (size_t)c.nnz, file);
    store(c.values, (size_t)c.nnz, file);
    if (fclose(file) != 0) throw std::runtime_error("the result cannot be written");
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s CASE RESULT REPEAT LIMIT\n", argv[0]);
        return 2;
    }
    printf("name %s\n", PEER_NAME);
    try {
        run(argv);
    } catch (const std::exception &error) {
        printf("failed %s\n", error.what());
        return 1;
    }
    return 0;
}

#endif
