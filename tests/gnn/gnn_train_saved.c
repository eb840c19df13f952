/* test_gnn_train: saved trainers, whole and damaged. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gnn_train_shared.h"

TEST(a_restored_trainer_goes_on_as_if_it_had_not_stopped)
{
    enum { BEFORE = 4, AFTER = 5 };
    gnn_data data = make_data(host, true, false);
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int sampled = 0; sampled < 2; sampled++)
            for (int method = GNN_ADAM; method <= GNN_SGD; method++) {
                gnn_trainer_options options = usual((gnn_layer)layer);
                gnn_epoch whole[BEFORE + AFTER], rest[AFTER];
                void *bytes;
                int64_t size;
                options.sampled = sampled;
                options.model.norm = (gnn_norm)((layer + method) % 3);
                options.model.residual = method > 0;
                options.model.jump = (gnn_jump)((layer + method + sampled) % 4);
                options.optimizer.method = (gnn_method)method;
                options.schedule = (gnn_schedule)((layer + sampled) % 3);
                options.rate_step = options.schedule == GNN_SCHEDULE_PLATEAU ? 1 : 3;
                options.rate_factor = 0.5;
                options.warmup = method == GNN_ADAM ? BEFORE + 1 : 0;
                options.epochs = BEFORE + AFTER;
                subject a = make_subject(_i, &data, &options, 7);
                train(&a, BEFORE, whole);
                ck_ok(a.context, gnn_trainer_save(a.trainer, false, &bytes, &size));
                train(&a, AFTER, whole + BEFORE);
                subject b = make_subject(_i, &data, &options, 8); /* the seed is restored too */
                train(&b, 3, rest);
                ck_ok(b.context, gnn_trainer_restore(b.trainer, bytes, size));
                train(&b, AFTER, rest);
                same_epochs(whole + BEFORE, rest, AFTER);
                ck_assert_int_eq(gnn_trainer_best(a.trainer), gnn_trainer_best(b.trainer));
                sp_free(a.context, bytes);
                free_subject(&a);
                free_subject(&b);
            }
    gnn_data_free(host, &data);
}

TEST(saved_options_build_a_trainer_that_predicts_the_same)
{
    gnn_data data = make_data(host, true, false), unlabelled = data;
    gnn_trainer_options options = usual(GNN_GAT);
    gnn_saved saved;
    gnn_epoch epochs[10];
    void *bytes;
    int64_t size;
    int32_t expected[NODES], got[NODES];
    float scores[NODES * CLASSES], again[NODES * CLASSES];
    bool done;
    options.model.normalised = true;
    options.model.norm = GNN_NORM_BATCH;
    options.model.residual = true;
    options.model.jump = GNN_JUMP_CAT;
    options.optimizer.decay = 0.125;
    subject a = make_subject(_i, &data, &options, 7);
    train(&a, 10, epochs);
    ck_ok(a.context, gnn_trainer_save(a.trainer, true, &bytes, &size));
    ck_ok(a.context, gnn_trainer_finish(a.trainer));
    ck_ok(a.context, gnn_trainer_predict(a.trainer, expected, NULL, scores));
    ck_ok(a.context, gnn_saved_read(a.context, bytes, size, &saved));
    const gnn_model_options *model = &saved.options.model;
    ck_assert(!saved.several && saved.seed == 7 && saved.options.optimizer.decay == 0.125);
    ck_assert(model->layer == GNN_GAT && model->heads == 4 && model->normalised && !model->half);
    ck_assert(model->inputs == FEATURES && model->outputs == CLASSES);
    ck_assert(model->norm == GNN_NORM_BATCH && model->residual && model->jump == GNN_JUMP_CAT);
    unlabelled.labels = NULL;
    unlabelled.split = NULL;
    subject b = make_subject(_i, &unlabelled, &saved.options, 1);
    ck_ok(b.context, gnn_trainer_restore(b.trainer, bytes, size));
    ck_ok(b.context, gnn_trainer_predict(b.trainer, got, NULL, again));
    ck_assert(memcmp(expected, got, sizeof got) == 0);
    ck_assert(memcmp(scores, again, sizeof again) == 0);
    ck_assert_int_eq(gnn_trainer_epoch(b.trainer, epochs, &done), SP_ERROR_ARGUMENT);
    sp_free(a.context, bytes);
    free_subject(&a);
    free_subject(&b);
    gnn_data_free(host, &data);
}

/* As save.c has it: all after the checksum, which is the third word. */
static void set_checksum(char *bytes, int64_t size)
{
    uint64_t sum = 0;
    for (int64_t i = 24; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? (size_t)(size - i) : sizeof word);
        sum = mix64(sum ^ word) + RANDOM_STEP;
    }
    memcpy(bytes + 16, &sum, sizeof sum);
}

enum { HEAD = 408 };

/* A head of version 5 ended before the flag of links, one of version 2 before the size of the names of classes, one of
 * version 3 after it, one of version 4 before that of the names of features. */
static void make_older(char *bytes, int64_t *size, int64_t version)
{
    static const int64_t ends[] = {[2] = 288, [3] = 296, [4] = 344, [5] = 400};
    const int64_t end = ends[version];
    memmove(bytes + end, bytes + HEAD, (size_t)(*size - HEAD));
    *size -= HEAD - end;
    memcpy(bytes + 8, &version, sizeof version);
    memcpy(bytes + 24, size, sizeof *size);
    set_checksum(bytes, *size);
}

TEST(saved_bytes_hold_the_names_of_the_features)
{
    gnn_data data = make_data(host, true, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    char names[8 * FEATURES] = "";
    size_t used = 0;
    gnn_saved saved;
    gnn_epoch epochs[2];
    char *bytes, *unnamed;
    int64_t size, shorter;
    for (int f = 0; f < FEATURES; f++) used += (size_t)snprintf(names + used, sizeof names - used, "x%d", f) + 1;
    subject s = make_subject(_i, &data, &options, 7);
    train(&s, 2, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&unnamed, &shorter));
    data.feature_names = names;
    data.class_names = "a\0b\0c\0d"; /* those of classes come behind */
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    ck_assert_int_eq(size, shorter + (int64_t)used + 2 * CLASSES);
    ck_ok(s.context, gnn_saved_read(s.context, bytes, size, &saved));
    ck_assert(saved.feature_names && memcmp(saved.feature_names, names, used) == 0);
    ck_assert(saved.class_names && memcmp(saved.class_names, data.class_names, 2 * CLASSES) == 0);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, bytes, size));
    bytes[size - 2 * CLASSES - 2] = '\0'; /* a feature too many */
    set_checksum(bytes, size);
    ck_assert_int_eq(gnn_saved_read(s.context, bytes, size, &saved), SP_ERROR_ARGUMENT);
    make_older(unnamed, &shorter, 5);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, unnamed, shorter));
    sp_free(s.context, unnamed);
    data.feature_names = data.class_names = NULL;
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&unnamed, &shorter));
    make_older(unnamed, &shorter, 4);
    ck_ok(s.context, gnn_saved_read(s.context, unnamed, shorter, &saved));
    ck_assert_ptr_null(saved.feature_names);
    sp_free(s.context, bytes);
    sp_free(s.context, unnamed);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(saved_bytes_hold_the_names_of_the_classes)
{
    gnn_data data = make_data(host, true, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    char names[8 * CLASSES] = "";
    size_t used = 0;
    gnn_saved saved;
    gnn_epoch epochs[3], before, after;
    char *bytes, *unnamed;
    int64_t size, shorter;
    for (int c = 0; c < CLASSES; c++) used += (size_t)snprintf(names + used, sizeof names - used, "no %d", c) + 1;
    subject s = make_subject(_i, &data, &options, 7);
    train(&s, 3, epochs);
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &before));
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&unnamed, &shorter));
    ck_ok(s.context, gnn_saved_read(s.context, unnamed, shorter, &saved));
    ck_assert_ptr_null(saved.class_names);
    data.class_names = names;
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    ck_assert_int_eq(size, shorter + (int64_t)used);
    ck_ok(s.context, gnn_saved_read(s.context, bytes, size, &saved));
    ck_assert_ptr_nonnull(saved.class_names);
    ck_assert(memcmp(saved.class_names, names, used) == 0);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, bytes, size));

    bytes[size - 1] = 'x'; /* the last name does not end */
    set_checksum(bytes, size);
    ck_assert_int_eq(gnn_saved_read(s.context, bytes, size, &saved), SP_ERROR_ARGUMENT);
    bytes[size - 1] = bytes[size - 3] = '\0'; /* a name too many */
    set_checksum(bytes, size);
    ck_assert_int_eq(gnn_saved_read(s.context, bytes, size, &saved), SP_ERROR_ARGUMENT);

    make_older(bytes, &size, 3); /* its names end wrongly */
    ck_assert_int_eq(gnn_saved_read(s.context, bytes, size, &saved), SP_ERROR_ARGUMENT);
    bytes[size - 1] = '\0';
    bytes[size - 3] = 'o';
    set_checksum(bytes, size);
    ck_ok(s.context, gnn_saved_read(s.context, bytes, size, &saved));
    ck_assert_ptr_nonnull(saved.class_names);
    make_older(unnamed, &shorter, 2);
    ck_ok(s.context, gnn_saved_read(s.context, unnamed, shorter, &saved));
    ck_assert(!saved.class_names && saved.options.model.outputs == CLASSES);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, unnamed, shorter));
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &after));
    same_epochs(&before, &after, 1);
    sp_free(s.context, bytes);
    sp_free(s.context, unnamed);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(damaged_bytes_are_refused_and_change_nothing)
{
    gnn_data data = make_data(host, false, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[3], before, after;
    char *bytes;
    int64_t size;
    subject s = make_subject(_i, &data, &options, 7);
    train(&s, 3, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &before));
    for (int64_t i = 0; i < size; i += i < 400 ? 1 : 97) {
        bytes[i] ^= 4;
        test_expect(gnn_trainer_restore(s.trainer, bytes, size) == SP_ERROR_ARGUMENT, "byte %lld", (long long)i);
        bytes[i] ^= 4;
    }
    for (int64_t cut = 0; cut < size; cut += 61)
        test_expect(gnn_trainer_restore(s.trainer, bytes, cut) == SP_ERROR_ARGUMENT, "cut to %lld", (long long)cut);
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &after));
    same_epochs(&before, &after, 1);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, bytes, size));
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
}

/* Whoever makes such bytes can make their checksum, too. */
TEST(bytes_that_lie_do_no_harm)
{
    static const int64_t lies[] = {-1, 0, 1, 3, 17, 1 << 20, INT64_C(1) << 31, INT64_C(1) << 61, INT64_MAX,
                                   INT64_MIN};
    gnn_data data = make_data(host, false, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    char *bytes;
    int64_t size, refused = 0, restored = 0;
    subject s = make_subject(0, &data, &options, 7);
    gnn_epoch epochs[2];
    train(&s, 2, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    set_checksum(bytes, size);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, bytes, size)); /* the checksum is right */
    for (int64_t at = 24; at < HEAD; at += 8)
        for (size_t k = 0; k < COUNT(lies); k++) {
            gnn_saved saved;
            char kept[8];
            memcpy(kept, bytes + at, 8);
            memcpy(bytes + at, &lies[k], 8);
            set_checksum(bytes, size);
            const sp_status status = gnn_trainer_restore(s.trainer, bytes, size);
            test_expect(status == SP_OK || status == SP_ERROR_ARGUMENT, "word %lld", (long long)at / 8);
            if (gnn_saved_read(s.context, bytes, size, &saved) == SP_OK) {
                gnn_trainer *made;
                if (gnn_trainer_create(s.engine, &data, &saved.options, &made) == SP_OK) gnn_trainer_free(made);
            }
            *(status == SP_OK ? &restored : &refused) += 1;
            memcpy(bytes + at, kept, 8);
        }
    ck_assert(refused > restored && restored > 0);
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
}

/* A word of the head, or a number behind it, is another: the sentence says what is wrong with that. */
static void refuses_word(const subject *s, char *bytes, int64_t size, int64_t at, const void *word, size_t count,
                         const char *sentence)
{
    char kept[8];
    gnn_saved saved;
    memcpy(kept, bytes + at, count);
    memcpy(bytes + at, word, count);
    set_checksum(bytes, size);
    for (int i = 0; i < 2; i++) {
        const sp_status status = i == 0 ? gnn_saved_read(s->context, bytes, size, &saved)
                                        : gnn_trainer_restore(s->trainer, bytes, size);
        test_expect(status == SP_ERROR_ARGUMENT && strstr(sp_last_error(s->context), sentence), "\"%s\", not \"%s\"",
                    sp_last_error(s->context), sentence);
    }
    memcpy(bytes + at, kept, count);
}

TEST(saved_options_that_exclude_each_other_are_refused)
{
    enum { LAYER = 4, MAXK = 11, KEEP = 13, HALF = 14, DROPOUT = 17, RATE = 21 };
    static const int64_t one = 1, maxima = GNN_SAGE_MAX, many = 1 << 16;
    static const double minus = -1, all = 1;
    static const char what[] = "this is no saved model: its options do not go together: ";
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_GCN);
    options.model.maxk = 4;
    gnn_epoch epochs[2];
    char *bytes, sentence[128];
    int64_t size;
    const struct {
        int word;
        const void *value;
        const char *sentence;
    } cases[] = {{LAYER, &maxima, "MaxK goes with GCN"},     {MAXK, &many, "MaxK keeps 65536 of"},
                 {HALF, &one, "numbers in bf16 are for f32"}, {KEEP, &one, "with dropout of the features"},
                 {DROPOUT, &all, "a dropout of 1;"},         {RATE, &minus, "a learning rate of -1;"}};
    subject s = make_subject(0, &data, &options, 7);
    train(&s, 2, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    for (size_t c = 0; c < COUNT(cases); c++) {
        snprintf(sentence, sizeof sentence, "%s%s", what, cases[c].sentence);
        refuses_word(&s, bytes, size, 8 * cases[c].word, cases[c].value, 8, sentence);
    }
    set_checksum(bytes, size);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, bytes, size));
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(saved_best_weights_of_no_epoch_are_refused)
{
    enum { BEST_EPOCH = 28 };
    static const int64_t none = 0;
    gnn_data data = make_data(host, false, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[2];
    char *bytes;
    int64_t size;
    subject s = make_subject(0, &data, &options, 7);
    train(&s, 2, epochs);
    ck_assert(gnn_trainer_best(s.trainer) > 0);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    refuses_word(&s, bytes, size, 8 * BEST_EPOCH, &none, 8, "its options are out of range");
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(saved_numbers_that_are_not_finite_are_refused)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    gnn_data data = make_data(host, true, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[2];
    char *bytes;
    int64_t size;
    subject s = make_subject(0, &data, &options, 7);
    train(&s, 2, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    const int64_t part = (size - HEAD) / 4; /* weights, the best, two moments */
    ck_assert_int_eq(part, 4 * gnn_model_size(gnn_trainer_model(s.trainer)));
    for (int p = 0; p < 4; p++)
        for (int b = 0; b < 3; b++) {
            const char *sentence = p < 2 ? "this is no saved model: it has a weight that is no finite number"
                                         : "this is no saved model: the state of its optimizer has a number";
            refuses_word(&s, bytes, size, HEAD + p * part, &bad[b], 4, sentence);
            refuses_word(&s, bytes, size, HEAD + (p + 1) * part - 4, &bad[b], 4, sentence);
        }
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(numbers_that_are_not_finite_are_not_saved)
{
    gnn_data data = make_data(host, true, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[2];
    void *bytes = NULL;
    int64_t size;
    subject s = make_subject(0, &data, &options, 7);
    train(&s, 2, epochs);
    ((float *)gnn_model_weights(gnn_trainer_model(s.trainer)))[3] = INFINITY;
    ck_assert_int_eq(gnn_trainer_save(s.trainer, false, &bytes, &size), SP_ERROR_NOT_FINITE);
    ck_assert(!bytes && strstr(sp_last_error(s.context), "epoch 2: the model has numbers that are not finite"));
    free_subject(&s);
    gnn_data_free(host, &data);
}

static void refuses_bytes(const gnn_data *data, const gnn_trainer_options *options, const void *bytes, int64_t size,
                          const char *sentence)
{
    subject s = make_subject(0, data, options, 1);
    ck_assert_int_eq(gnn_trainer_restore(s.trainer, bytes, size), SP_ERROR_ARGUMENT);
    ck_assert_msg(strstr(sp_last_error(s.context), sentence) != NULL, "\"%s\", not \"%s\"", sp_last_error(s.context),
                  sentence);
    free_subject(&s);
}

TEST(models_of_another_shape_are_refused_with_the_difference)
{
    gnn_data data = make_data(host, false, false), several = make_data(host, false, true);
    const gnn_trainer_options options = usual(GNN_GCN);
    gnn_trainer_options other = options;
    void *bytes;
    int64_t size;
    subject s = make_subject(0, &data, &options, 7);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, &bytes, &size));
    other.model.layer = GNN_GIN;
    refuses_bytes(&data, &other, bytes, size, "the saved model is GCN, not GIN");
    other = options;
    other.model.layers = 3;
    refuses_bytes(&data, &other, bytes, size, "the saved model has 2 layers, not 3");
    other = options;
    other.model.hidden = 8;
    refuses_bytes(&data, &other, bytes, size, "the saved model has 16 hidden columns, not 8");
    other = options;
    other.model.norm = GNN_NORM_BATCH;
    refuses_bytes(&data, &other, bytes, size, "the saved model has no norm and no jump, not norms of batches and no");
    other = options;
    other.model.residual = true;
    refuses_bytes(&data, &other, bytes, size, "the saved model has 0 residuals, not 1");
    other = options;
    other.model.type = SP_DENSE_F64;
    refuses_bytes(&data, &other, bytes, size, "the saved model has 4 bytes a number, not 8");
    other = options;
    other.optimizer.method = GNN_SGD;
    refuses_bytes(&data, &other, bytes, size, "the saved model was trained by Adam, not SGD");
    refuses_bytes(&several, &options, bytes, size, "the saved model gives a node one class, the data several");
    several.features.dense.cols = FEATURES - 1;
    refuses_bytes(&several, &options, bytes, size, "the saved model has 22 features, not 21");
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
    gnn_data_free(host, &several);
}

const test_entry saved_tests[] = {
    CASE_WITH("saving", 300, open_host, close_host),
    ON_DEVICES(a_restored_trainer_goes_on_as_if_it_had_not_stopped),
    ON_DEVICES(saved_options_build_a_trainer_that_predicts_the_same),
    ON_DEVICES(saved_bytes_hold_the_names_of_the_classes),
    ON_DEVICES(saved_bytes_hold_the_names_of_the_features),
    ON_DEVICES(damaged_bytes_are_refused_and_change_nothing),
    ONCE(bytes_that_lie_do_no_harm),
    ONCE(saved_options_that_exclude_each_other_are_refused),
    ONCE(saved_best_weights_of_no_epoch_are_refused),
    ONCE(saved_numbers_that_are_not_finite_are_refused),
    ONCE(numbers_that_are_not_finite_are_not_saved),
    ONCE(models_of_another_shape_are_refused_with_the_difference),
    {0},
};
