/* sparse-bench survey: its parts. A part is a command with the options that the survey gives it: an operation and a
 * type over all families of matrices (survey.c). */
#include <string.h>

#include "sparse-bench/options.h"

const char *const survey_parts[] = {"spgemm-f64", "spgemm-f32", "spmm-f32", "spmm-f16", "spmm-bf16",
                                    "spmm-transposed-f32", "contract-f64", "contract-f32", NULL};
static const struct {
    bench_kind kind;
    sp_value_type type;
    sp_dense_type features; /* of spmm, and of its result */
    bool transpose;
} parts[] = {
    {BENCH_SPGEMM, SP_F64, .features = SP_DENSE_F32},
    {BENCH_SPGEMM, SP_F32, .features = SP_DENSE_F32},
    {BENCH_SPMM, SP_F32, .features = SP_DENSE_F32},
    {BENCH_SPMM, SP_F32, .features = SP_DENSE_F16},
    {BENCH_SPMM, SP_F32, .features = SP_DENSE_BF16},
    {BENCH_SPMM, SP_F32, .features = SP_DENSE_F32, .transpose = true},
    {BENCH_CONTRACT, SP_F64, .features = SP_DENSE_F32},
    {BENCH_CONTRACT, SP_F32, .features = SP_DENSE_F32},
};
_Static_assert(sizeof parts / sizeof *parts == SURVEY_PARTS &&
               sizeof survey_parts / sizeof *survey_parts == SURVEY_PARTS + 1, "a name a part");

/* The files, and what is generated in place of the families or these. */
static bool add_sources(const bench_options *survey, any_options *part)
{
    bool generated = false;
    for (int i = 0; i < survey->source_count; i++) {
        const source *from = &survey->sources[i];
        generated = generated || from->spec;
        if (!(from->spec ? use_generated(part, from->name) : use_file(part, from->name))) return false;
    }
    return generated || use_generated(part, "survey");
}

bool survey_part(const survey_options *survey, int number, any_options *part, char *json, size_t size)
{
    const bench_options *s = &survey->common;
    bench_options *o = &part->common;
    bench_defaults(parts[number].kind, part);
    o->type = parts[number].type;
    o->seeds = s->seeds;
    o->device = s->device;
    o->threads = s->threads;
    o->repeat = s->repeat;
    o->memory = s->memory;
    o->limit = s->limit;
    o->no_check = s->no_check;
    o->peers = s->peers;
    snprintf(json, size, "%s/%s.json", survey->out, survey_parts[number]);
    o->json = json;
    if (o->kind == BENCH_SPGEMM) part->spgemm.plan = true;
    if (o->kind == BENCH_CONTRACT) part->contract.labels = LABELS_RANDOM | LABELS_BLOCKS | LABELS_POWER;
    if (o->kind == BENCH_SPMM) {
        part->spmm.widths = survey->widths;
        part->spmm.features = part->spmm.result = parts[number].features;
        part->spmm.transpose = parts[number].transpose;
    }
    return add_sources(s, part) && bench_check(part);
}
