/* What the parts of test_gnn_dense share. */
#ifndef TESTS_GNN_DENSE_SHARED_H
#define TESTS_GNN_DENSE_SHARED_H

#include "../gnn/internal.h"
#include "support.h"

/* What an operation runs on: a device, a type, and how matrices lie in memory. */
typedef struct subject {
    sp_context *context;
    gnn_engine *engine;
    const gnn_backend *back;
    sp_dense_type type;
    int64_t padding, offset; /* numbers between rows, and before the first */
    double tolerance;        /* of a sum of a few dozen numbers about 1 */
    test_random random;
    char name[96];
} subject;

enum { LAYOUTS = 4, SEED = 20 };

subject make_subject(int device, sp_dense_type type, int layout, int threads);
void free_subject(subject *s);
/* In brief the first layout, which is aligned, and the last, which is not. */
int layout_step(void);
/* Runs `body` with every type and layout. */
void on_subjects(int device, void (*body)(subject *));
double *numbers(int64_t count);
/* In (-1, 1), rounded to the type. */
double *random_numbers(subject *s, int64_t count);
void *put(const subject *s, int64_t count, size_t size, const void *from);
void take(const subject *s, int64_t count, size_t size, const void *array, void *to);
void drop_array(const subject *s, void *array);
/* Numbers as an array of the subject's type. */
void *put_numbers(const subject *s, int64_t count, const double *from);
double *take_numbers(const subject *s, int64_t count, const void *array);
/* A matrix in the subject's layout; what lies between its rows is UNTOUCHED. */
sp_dense put_matrix(const subject *s, int64_t rows, int64_t cols, const double *from);
/* One whose numbers are not read before they are written. */
sp_dense new_matrix(const subject *s, int64_t rows, int64_t cols);
/* Ends the matrix; what lies between its rows must be as it was. */
double *take_matrix(const subject *s, sp_dense *matrix);
void end_matrix(const subject *s, sp_dense *matrix);
void expect_close(const subject *s, int64_t count, const double *is, const double *wanted, double tolerance,
                  const char *what);

static const int64_t shapes[][2] = {{0, 5},   {5, 0},    {1, 1},  {7, 3},     {33, 16},    {130, 41},
                                    {65, 256}, {1000, 7}, {3, 1500}, {2100, 20}, {300, 96}};

enum { SHAPES = COUNT(shapes) };

/* What dropout multiplies number `index` with. */
double kept(const subject *s, double rate, uint64_t site, int64_t index);

typedef struct loss_case {
    int64_t nodes, rows, cols; /* of the graph; of the logits */
    double *logits;
    int32_t *node, *label; /* node: NULL where rows are nodes */
    uint8_t *target, *split;
    double scale; /* of the logits */
} loss_case;

loss_case make_loss_case(subject *s, int64_t rows, int64_t cols, bool picked, double scale);
void free_loss_case(loss_case *c);

/* The tables of the parts. */
extern const test_entry half_tests[], losses_tests[], attention_tests[], normal_tests[];

#endif
