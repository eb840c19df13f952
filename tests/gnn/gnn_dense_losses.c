/* test_gnn_dense: losses, scores, probabilities and optimizers. */
#include <math.h>
#include <string.h>

#include "gnn_dense_shared.h"

static double log_sum(const double *x, int64_t cols)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < cols; j++) most = fmax(most, x[j]);
    for (int64_t j = 0; j < cols; j++) sum += exp(x[j] - most);
    return most + log(sum);
}

/* One row's score by the definitions, and the gradient of its loss. */
static gnn_score row_score(const loss_case *c, bool softmax, int64_t i, double *gradient)
{
    const int64_t node = c->node ? c->node[i] : i;
    const double *x = c->logits + i * c->cols, whole = log_sum(x, c->cols);
    gnn_score one = {.nodes = 1};
    int64_t best = 0;
    for (int64_t j = 0; j < c->cols; j++) {
        const double t = softmax ? (double)(j == c->label[node]) : (double)c->target[node * c->cols + j];
        const double p = softmax ? exp(x[j] - whole) : 1 / (1 + exp(-x[j]));
        gradient[j] = (p - t) / (softmax ? 1 : (double)c->cols);
        if (x[j] > x[best]) best = j;
        if (softmax) continue;
        /* log(1 + e^-z) of the logit that should be large; log1p(exp(z)) overflows where z is. */
        const double z = t != 0 ? x[j] : -x[j];
        one.loss += (z < -500 ? -z : log1p(exp(-z))) / (double)c->cols;
        one.right += t != 0 && x[j] > 0;
        one.predicted += x[j] > 0;
        one.actual += t != 0;
    }
    if (softmax) {
        one.loss = whole - x[c->label[node]];
        one.right = best == c->label[node];
    }
    return one;
}

static void add_score(gnn_score *to, gnn_score one)
{
    to->loss += one.loss;
    to->nodes += one.nodes;
    to->right += one.right;
    to->predicted += one.predicted;
    to->actual += one.actual;
}

static void expect_scores(const subject *s, const loss_case *c, const gnn_score *is, const gnn_score *wanted)
{
    for (int k = 0; k < GNN_SPLITS; k++) {
        test_expect(is[k].nodes == wanted[k].nodes && is[k].right == wanted[k].right &&
                        is[k].predicted == wanted[k].predicted && is[k].actual == wanted[k].actual,
                    "%s: split %d: %lld nodes, %lld right, %lld predicted, %lld actual, not %lld, %lld, %lld, %lld",
                    s->name, k, (long long)is[k].nodes, (long long)is[k].right, (long long)is[k].predicted,
                    (long long)is[k].actual, (long long)wanted[k].nodes, (long long)wanted[k].right,
                    (long long)wanted[k].predicted, (long long)wanted[k].actual);
        expect_close(s, 1, &is[k].loss, &wanted[k].loss, s->tolerance * (1 + c->scale), "loss");
    }
}

static void check_loss(subject *s, int64_t rows, int64_t cols, bool picked, bool softmax, double scale)
{
    double *weights = softmax && rows % 2 ? random_numbers(s, cols) : NULL; /* of classes */
    loss_case c = make_loss_case(s, rows, cols, picked, scale);
    gnn_score wanted[GNN_SPLITS] = {{0}}, is[GNN_SPLITS], alone[GNN_SPLITS];
    double *gradient = numbers(rows * cols), *sum = numbers(cols), size = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) count += c.split[c.node ? c.node[i] : i] == GNN_TRAIN;
    for (int64_t i = 0; i < rows; i++) {
        const int split = c.split[c.node ? c.node[i] : i];
        if (split == GNN_UNUSED) continue;
        gnn_score one = row_score(&c, softmax, i, gradient + i * cols);
        const double weight = weights ? weights[c.label[c.node ? c.node[i] : i]] : 1;
        one.loss *= weight;
        add_score(&wanted[split], one);
        for (int64_t j = 0; j < cols; j++)
            gradient[i * cols + j] = split == GNN_TRAIN ? weight * gradient[i * cols + j] / (double)count : 0;
        for (int64_t j = 0; j < cols; j++) {
            sum[j] += gradient[i * cols + j];
            size += fabs(gradient[i * cols + j]);
        }
    }
    sp_dense logits = put_matrix(s, rows, cols, c.logits), dx = new_matrix(s, rows, cols);
    void *node = picked ? put(s, rows, sizeof *c.node, c.node) : NULL, *split = put(s, c.nodes, 1, c.split);
    void *label = put(s, c.nodes, sizeof *c.label, c.label), *target = put(s, c.nodes * cols, 1, c.target);
    gnn_score *scores = put(s, 2 * GNN_SPLITS, sizeof *scores, (gnn_score[2 * GNN_SPLITS]){{0}});
    void *sums = put_numbers(s, cols, sum), *weight = weights ? put(s, cols, sizeof *weights, weights) : NULL;
    for (int k = 0; k < 2; k++) {
        gnn_score *score = scores + k * GNN_SPLITS;
        sp_dense *to = k ? NULL : &dx;
        void *to_sums = k ? NULL : sums;
        ck_ok(s->context, softmax ? s->back->softmax_loss(s->engine, &logits, NULL, node, label, weight, split,
                                                          GNN_TRAIN, count, score, to, to_sums)
                                  : s->back->sigmoid_loss(s->engine, &logits, node, target, split, GNN_TRAIN, count,
                                                          score, to, to_sums));
    }
    take(s, GNN_SPLITS, sizeof *scores, scores, is);
    take(s, GNN_SPLITS, sizeof *scores, scores + GNN_SPLITS, alone);
    double *gradient_is = take_matrix(s, &dx), *sums_are = take_numbers(s, cols, sums);
    expect_scores(s, &c, is, wanted);
    ck_assert(memcmp(is, alone, sizeof is) == 0);
    expect_close(s, rows * cols, gradient_is, gradient, s->tolerance * fmax(1, scale / 10), "gradient of the loss");
    expect_close(s, cols, sums_are, sum, s->tolerance * fmax(1, scale / 10) * fmax(1, size), "its sums");
    end_matrix(s, &logits);
    drop_array(s, sums);
    free_all(sum, sums_are);
    void *arrays[] = {node, split, label, target, scores, weight};
    for (size_t k = 0; k < COUNT(arrays); k++) drop_array(s, arrays[k]);
    free_all(gradient, gradient_is, weights);
    free_loss_case(&c);
}

static void losses(subject *s)
{
    static const double scales[] = {1, 20, 2000};
    for (int shape = 0; shape < SHAPES; shape++)
        for (int k = 0; k < 3; k++)
            if (shapes[shape][1] > 0 && (!test_is_brief() || k == shape % 3))
                for (int softmax = 0; softmax < 2; softmax++)
                    check_loss(s, shapes[shape][0], shapes[shape][1], (shape + k) % 2, softmax, scales[k]);
}

TEST(losses_scores_and_gradients_are_those_of_the_formulas) { on_subjects(_i, losses); }

TEST(loss_of_nan_is_nan)
{
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    const double x[] = {1, NAN, 2, 0};
    const int32_t label[] = {1, 0};
    const uint8_t split[] = {GNN_TRAIN, GNN_TEST}, target[] = {1, 0, 0, 1};
    gnn_score *scores = put(&s, GNN_SPLITS, sizeof *scores, (gnn_score[GNN_SPLITS]){{0}}), is[GNN_SPLITS];
    sp_dense logits = put_matrix(&s, 2, 2, x);
    void *labels = put(&s, 2, sizeof *label, label), *splits = put(&s, 2, 1, split), *targets = put(&s, 4, 1, target);
    ck_ok(s.context, s.back->softmax_loss(s.engine, &logits, NULL, NULL, labels, NULL, splits, GNN_TRAIN, 1, scores,
                                          NULL, NULL));
    take(&s, GNN_SPLITS, sizeof *scores, scores, is);
    ck_assert(isnan(is[GNN_TRAIN].loss) && isfinite(is[GNN_TEST].loss));
    ck_ok(s.context, s.back->sigmoid_loss(s.engine, &logits, NULL, targets, splits, GNN_TRAIN, 1, scores, NULL,
                                          NULL));
    take(&s, GNN_SPLITS, sizeof *scores, scores, is);
    ck_assert(isnan(is[GNN_TRAIN].loss) && isfinite(is[GNN_TEST].loss));
    end_matrix(&s, &logits);
    drop_array(&s, labels);
    drop_array(&s, splits);
    drop_array(&s, targets);
    drop_array(&s, scores);
    free_subject(&s);
}

static void check_probabilities(subject *s, int64_t rows, int64_t cols, bool softmax, double scale)
{
    double *x = random_numbers(s, rows * cols), *wanted = numbers(rows * cols);
    for (int64_t k = 0; k < rows * cols; k++) x[k] *= scale;
    for (int64_t i = 0; i < rows; i++) {
        const double whole = log_sum(x + i * cols, cols);
        for (int64_t k = i * cols; k < (i + 1) * cols; k++)
            wanted[k] = softmax ? exp(x[k] - whole) : 1 / (1 + exp(-x[k]));
    }
    sp_dense from = put_matrix(s, rows, cols, x), to = new_matrix(s, rows, cols);
    ck_ok(s->context, s->back->probabilities(s->engine, &from, softmax, &to));
    ck_ok(s->context, s->back->probabilities(s->engine, &from, softmax, &from));
    double *is = take_matrix(s, &to), *in_place = take_matrix(s, &from);
    expect_close(s, rows * cols, is, wanted, s->tolerance * (1 + scale), "probabilities");
    expect_close(s, rows * cols, in_place, is, 0, "probabilities in place");
    free_all(x, wanted, is, in_place);
}

static void probabilities(subject *s)
{
    for (int shape = 0; shape < SHAPES; shape++)
        for (int softmax = 0; softmax < 2; softmax++) {
            check_probabilities(s, shapes[shape][0], shapes[shape][1], softmax, 3);
            check_probabilities(s, shapes[shape][0], shapes[shape][1], softmax, 300);
        }
}

TEST(probabilities_are_those_of_the_formulas) { on_subjects(_i, probabilities); }

/* ---- optimizers ---------------------------------------------------------------------------------------- */

/* One step of the papers' recurrences: Kingma and Ba's Algorithm 1, Loshchilov and Hutter's Algorithm 2, momentum. */
static void textbook_step(const gnn_optimizer_options *how, gnn_range decay, int64_t count, double rate, int64_t t,
                          double *w, const double *gradient, double *m, double *v)
{
    for (int64_t k = 0; k < count; k++) {
        const double lambda = k >= decay.begin && k < decay.end ? how->decay : 0, before = w[k];
        const double g = gradient[k] + (how->method == GNN_ADAMW ? 0 : lambda * before);
        if (how->method == GNN_SGD) {
            m[k] = how->beta1 * m[k] + g;
            w[k] = before - rate * m[k];
            continue;
        }
        m[k] = how->beta1 * m[k] + (1 - how->beta1) * g;
        v[k] = how->beta2 * v[k] + (1 - how->beta2) * g * g;
        const double m_hat = m[k] / (1 - pow(how->beta1, (double)t)), v_hat = v[k] / (1 - pow(how->beta2, (double)t));
        w[k] = before - rate * m_hat / (sqrt(v_hat) + how->epsilon);
        if (how->method == GNN_ADAMW) w[k] -= rate * lambda * before;
    }
}

static void check_optimizer(subject *s, const gnn_optimizer_options *how, gnn_range decay, int64_t count)
{
    double *w = random_numbers(s, count), *m = numbers(count), *v = numbers(count);
    void *weights = put_numbers(s, count, w), *first = put_numbers(s, count, m), *second = put_numbers(s, count, v);
    const bool no_moments = how->method == GNN_SGD && how->beta1 == 0;
    gnn_pace now = {how->rate, 0}, *pace = put(s, 1, sizeof now, &now);
    for (int64_t t = 1; t <= 4; t++) {
        double *g = random_numbers(s, count);
        void *gradients = put_numbers(s, count, g);
        if (t == 3) { /* the rate may change on the way */
            take(s, 1, sizeof now, pace, &now);
            now.rate *= 0.5;
            drop_array(s, pace);
            pace = put(s, 1, sizeof now, &now);
        }
        textbook_step(how, decay, count, now.rate, t, w, g, m, v);
        ck_ok(s->context, s->back->optimize(s->engine, how, decay, count, s->type, weights, gradients,
                                            no_moments ? NULL : first, how->method == GNN_SGD ? NULL : second, pace));
        double *is = take_numbers(s, count, weights);
        expect_close(s, count, is, w, s->tolerance, "weights");
        take(s, 1, sizeof now, pace, &now);
        ck_assert_int_eq(now.steps, t);
        drop_array(s, gradients);
        free_all(g, is);
    }
    drop_array(s, weights);
    drop_array(s, first);
    drop_array(s, second);
    drop_array(s, pace);
    free_all(w, m, v);
}

static void optimizers(subject *s)
{
    static const gnn_optimizer_options methods[] = {
        {.method = GNN_ADAM, .rate = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
        {.method = GNN_ADAM, .rate = 0.02, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-8, .decay = 5e-2},
        {.method = GNN_ADAMW, .rate = 0.02, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.1},
        {.method = GNN_SGD, .rate = 0.1},
        {.method = GNN_SGD, .rate = 0.1, .beta1 = 0.9, .decay = 1e-2}};
    for (size_t k = 0; k < COUNT(methods); k++) {
        check_optimizer(s, &methods[k], (gnn_range){0, 10007}, 10007);
        check_optimizer(s, &methods[k], (gnn_range){3, 70}, 131);
        check_optimizer(s, &methods[k], (gnn_range){0, 0}, 5);
        check_optimizer(s, &methods[k], (gnn_range){0, 0}, 0);
    }
}

TEST(optimizers_follow_the_recurrences) { on_subjects(_i, optimizers); }

const test_entry losses_tests[] = {
    CASE("dense", 300),
    ON_DEVICES(losses_scores_and_gradients_are_those_of_the_formulas),
    ON_DEVICES(loss_of_nan_is_nan),
    ON_DEVICES(probabilities_are_those_of_the_formulas),
    ON_DEVICES(optimizers_follow_the_recurrences),
    {0},
};
