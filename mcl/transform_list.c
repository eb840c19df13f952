/* Transforms: reads lists such as "gq(0.5),mul(10),#knn(20)". */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "transform.h"

static const tf_definition definitions[] = {
    {"lt", LT, NUMBER},          {"lq", LQ, NUMBER},          {"gq", GQ, NUMBER},         {"gt", GT, NUMBER},
    {"ceil", CEIL, NUMBER},      {"floor", FLOOR, NUMBER},    {"mul", MUL, NUMBER},       {"add", ADD, NUMBER},
    {"pow", POW, NUMBER},        {"power", POW, NUMBER},      {"exp", EXP, BASE},         {"log", LOG, BASE},
    {"neglog", NEGLOG, BASE},    {"rand", RAND, NUMBER},      {"scale", SCALE, NUMBER},   {"abs", ABS, NONE},
    {"acos", ACOS, NONE},        {"#knn", KNN, COUNT},        {"#knnj", KNNJ, COUNT},     {"#ceilnb", CEILNB, COUNT},
    {"#ils", ILS, NONE},         {"#mcl", MCL, INFLATION},    {"#symmcl", SYMMCL, INFLATION},
    {"#add", EDGE_ADD, NONE},    {"#min", EDGE_MIN, NONE},    {"#max", EDGE_MAX, NONE},   {"#mul", EDGE_MUL, NONE},
    {"#arcmax", ARCMAX, NONE},   {"#arcsub", ARCSUB, NONE},   {"#rev", TRANSPOSE, NONE},  {"#tp", TRANSPOSE, NONE},
    {"#selfrm", SELFRM, NONE},   {"#selfmax", SELFMAX, NONE}, {"#step", STEP, OPTIONAL},  {"#thread", THREAD, COUNT},
    {"#tug", UNSUPPORTED, OPTIONAL}, {"#shrug", UNSUPPORTED, OPTIONAL}, {"#ssq", UNSUPPORTED, OPTIONAL},
};

#define SHOWN 40 /* bytes of the user's text in a message */

/* ---- parsing -------------------------------------------------------------------------------------------- */

static const tf_definition *find_definition(const char *name, size_t length)
{
    for (size_t k = 0; k < sizeof definitions / sizeof *definitions; k++)
        if (strlen(definitions[k].name) == length && !memcmp(definitions[k].name, name, length))
            return &definitions[k];
    return NULL;
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

/* The whole of text[0..length) as a number, in the C locale. */
static bool parse_number(const char *text, size_t length, double *number)
{
    char copy[64], *end;
    if (length == 0 || length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *number = system_strtod(copy, &end);
    return *end == '\0' && isfinite(*number);
}

static sp_status check_argument(sp_context *context, const tf_definition *definition, double number, int64_t *count)
{
    const char *name = definition->name;
    if (fabs(number) > (double)FLT_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: %g is too large", name, number);
    if (definition->argument == BASE && number < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: base %g; a base is above 0", name, number);
    if (definition->argument == INFLATION && !(number > 0 && number <= 30))
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: inflation %g; use one above 0, up to 30", name,
                       number);
    if (definition->argument == COUNT && !(number == 0 || (number >= 0.5 && number <= INT32_MAX)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: %g; use a number from 1 to 2147483647", name,
                       number);
    if (definition->kind == STEP && number > 30)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: %g squarings; use 30 at most", name, number);
    bool counts = definition->argument == COUNT || definition->kind == STEP;
    *count = counts && number > 0 ? (int64_t)(number + 0.5) : 0;
    return SP_OK;
}

/* Parses the argument text[0..length), blanks around it removed. */
static sp_status parse_argument(sp_context *context, const tf_definition *definition, const char *text, size_t length,
                                tf_operation *operation)
{
    const char *name = definition->name;
    int shown = length < SHOWN ? (int)length : SHOWN;
    bool optional = definition->argument == OPTIONAL || definition->argument == BASE;
    double number = definition->kind == STEP ? 2 : 0; /* mcl's default of #step */
    if (definition->argument == NONE && length)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s takes no number (got \"%.*s\")", name, shown, text);
    if (definition->argument != NONE && !length && !optional)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s needs a number, as in %s(2)", name, name);
    if (length && !parse_number(text, length, &number))
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s: \"%.*s\" is not a number", name, shown, text);
    operation->definition = definition;
    operation->number = (float)number;
    return check_argument(context, definition, number, &operation->count);
}

/* An unknown name: the message lists the known ones. */
static sp_status fail_unknown(sp_context *context, const char *name, int shown, bool values_only)
{
    char known[300]; /* the names take 166 bytes */
    size_t used = 0;
    known[0] = '\0';
    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++) {
        const tf_kind kind = definitions[i].kind;
        if (kind == UNSUPPORTED || (values_only && (!is_value(kind) || kind == RAND))) continue;
        const int length = snprintf(known + used, sizeof known - used, " %s", definitions[i].name);
        if (length < 0 || (size_t)length >= sizeof known - used) break;
        used += (size_t)length;
    }
    return sp_fail(context, SP_ERROR_ARGUMENT, "unknown transform \"%.*s\"; there are%s", shown, name, known);
}

/* Parses NAME(ARGUMENT) at *text and moves past it. */
static sp_status parse_operation(sp_context *context, const char **text, bool values_only, tf_operation *operation)
{
    const char *name = skip_blanks(*text);
    size_t length = 0;
    while (islower((unsigned char)name[length]) || (name[length] && strchr("_@#-", name[length]))) length++;
    const char *open = skip_blanks(name + length), *close = *open == '(' ? strchr(open, ')') : NULL;
    if (length == 0 || !close)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform list: expected NAME(NUMBER) at \"%.*s\"", SHOWN, *text);
    const tf_definition *definition = find_definition(name, length);
    int shown = length < SHOWN ? (int)length : SHOWN;
    if (!definition) return fail_unknown(context, name, shown, values_only);
    if (definition->kind == UNSUPPORTED)
        return sp_fail(context, SP_ERROR_UNSUPPORTED,
                       "transform %s of mcl is not offered; let mcl's mcxload or mcx alter apply it (-tf), and take "
                       "the matrix that they write", definition->name);
    if (values_only && !is_value(definition->kind))
        return sp_fail(context, SP_ERROR_ARGUMENT, "transform %s works on whole graphs: give it to -tf, not -abc-tf",
                       definition->name);
    if (values_only && definition->kind == RAND)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "transform rand is supported by -tf only");
    const char *argument = skip_blanks(open + 1), *end = close;
    while (end > argument && strchr(" \t\r\n", end[-1])) end--;
    *text = skip_blanks(close + 1);
    return parse_argument(context, definition, argument, (size_t)(end - argument), operation);
}

/* ---- the public functions ------------------------------------------------------------------------------- */

sp_status mcl_transform_parse(sp_context *context, const char *spec, bool values_only, mcl_transform **transform)
{
    mcl_transform *parsed = NULL;
    int64_t capacity = 1;
    sp_status status;
    TRY(sp_require(context, __func__, "transform", transform));
    TRY(sp_require(context, __func__, "spec", spec));
    for (const char *c = spec; *c; c++) capacity += *c == ',';
    TRY(sp_calloc(context, 1, sizeof *parsed, (void **)&parsed));
    TRY(sp_calloc(context, capacity, sizeof *parsed->operations, (void **)&parsed->operations));
    const char *text = skip_blanks(spec);
    while (*text || parsed->count) {
        TRY(parse_operation(context, &text, values_only, &parsed->operations[parsed->count]));
        parsed->count++;
        if (*text == '\0') break;
        if (*text != ',') {
            status = sp_fail(context, SP_ERROR_ARGUMENT, "transform list: expected a comma at \"%.*s\"", SHOWN, text);
            goto done;
        }
        text++;
    }
    *transform = parsed;
    return SP_OK;
done:
    mcl_transform_free(context, parsed);
    return status;
}

void mcl_transform_free(sp_context *context, mcl_transform *transform)
{
    if (!transform) return;
    FREE_ALL(context, transform->operations, transform);
}
