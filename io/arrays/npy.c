/* NumPy's .npy: a header in Python's syntax, {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, then the
 * values as they lie in memory (numpy/lib/format.py; versions 1 to 3 differ in the length of the header's length and
 * in its encoding).
 *
 * Values of the wanted type are read straight into place. Sizes are checked against the file before memory is taken.
 */
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/try.h"
#include "arrays/npy.h"
#include "bytes/message.h"
#include "text/number.h"
#include "text/words.h"

#define MOST_WHOLE (INT64_C(1) << 53)

enum { MAGIC = 6, PREFIX_1 = 10, PREFIX_2 = 12, TILE = 32, ALIGNMENT = 64 };

static sp_status refuse(sp_context *context, const char *name, const char *what)
{
    return sp_fail(context, SP_ERROR_MATRIX, "%s: %s", name, what);
}

/* ---- the header's literal ------------------------------------------------------------------------------ */

typedef struct literal {
    const char *at, *end;
} literal;

static void skip_space(literal *text)
{
    while (text->at < text->end && (io_is_blank(*text->at) || *text->at == '\n')) text->at++;
}

static bool take(literal *text, char c)
{
    skip_space(text);
    if (text->at >= text->end || *text->at != c) return false;
    text->at++;
    return true;
}

static bool take_word(literal *text, const char *word)
{
    const size_t length = strlen(word);
    skip_space(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0) return false;
    text->at += length;
    return true;
}

static bool take_string(literal *text, const char **string, size_t *length)
{
    skip_space(text);
    if (text->at >= text->end || (*text->at != '\'' && *text->at != '"')) return false;
    const char *begin = text->at + 1, *close = memchr(begin, *text->at, (size_t)(text->end - begin));
    if (!close || memchr(begin, '\\', (size_t)(close - begin))) return false;
    *string = begin;
    *length = (size_t)(close - begin);
    text->at = close + 1;
    return true;
}

static bool take_shape(literal *text, io_array *array)
{
    if (!take(text, '(')) return false;
    array->dimensions = 0;
    while (!take(text, ')')) {
        skip_space(text);
        const char *digits = text->at;
        while (text->at < text->end && io_is_digit(*text->at)) text->at++;
        if (array->dimensions == IO_DIMENSIONS ||
            !io_parse_index(digits, text->at, INT64_MAX, &array->shape[array->dimensions++]))
            return false;
        if (text->at < text->end && *text->at == 'L') text->at++; /* as Python 2 wrote long numbers */
        if (!take(text, ',')) {
            if (!take(text, ')')) return false;
            break;
        }
    }
    return true;
}

/* "<f4" and the like. */
static bool read_type(const char *type, size_t length, io_npy_head *head)
{
    static const struct {
        char kind;
        int64_t size;
        io_scalar type;
    } known[] = {{'b', 1, IO_BOOL}, {'i', 1, IO_I8},  {'i', 2, IO_I16}, {'i', 4, IO_I32},
                 {'i', 8, IO_I64},  {'u', 1, IO_U8},  {'u', 2, IO_U16}, {'u', 4, IO_U32},
                 {'u', 8, IO_U64},  {'f', 2, IO_F16}, {'f', 4, IO_F32}, {'f', 8, IO_F64}};
    io_array *array = &head->array;
    int64_t size;
    if (length == 1 && *type == '?') {
        type = "|b1";
        length = 3;
    }
    if (length < 3 || !memchr("<>|=", type[0], 4) || !io_parse_index(type + 2, type + length, INT32_MAX, &size))
        return false;
    head->swap = type[0] == '>' && size > 1;
    head->item_bytes = (size_t)size;
    if (type[1] == 'S' || type[1] == 'U') {
        array->type = IO_TEXT;
        head->wide = type[1] == 'U';
        head->swap = head->wide && type[0] == '>';
        array->item_size = (size_t)size;
        head->item_bytes = head->wide ? 4 * (size_t)size : (size_t)size;
        return true;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == type[1] && known[i].size == size) {
            array->type = known[i].type;
            array->item_size = (size_t)size;
            return true;
        }
    return false;
}

static sp_status bad_type(sp_context *context, const char *name, const char *type, size_t length)
{
    char shown[4 * IO_TOKEN_SHOWN + 16];
    io_show_token(type, type + length, shown, sizeof shown);
    return sp_fail(context, SP_ERROR_MATRIX, "%s: elements that are not read (got \"%s\"); %s", name, shown,
                   memchr(type, 'O', length) ? "Python objects may run anything: save arrays of numbers"
                                             : "save whole numbers, floats of 2 to 8 bytes, or text");
}

static sp_status parse_literal(sp_context *context, const char *name, literal text, io_npy_head *head)
{
    static const char bad[] = "no header of an array; save it again with numpy.save";
    enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };
    int seen = 0;
    if (!take(&text, '{')) return refuse(context, name, bad);
    while (!take(&text, '}')) {
        const char *key, *type;
        size_t length, type_length;
        if (!take_string(&text, &key, &length) || !take(&text, ':')) return refuse(context, name, bad);
        if (length == 5 && memcmp(key, "descr", 5) == 0) {
            skip_space(&text);
            if (text.at < text.end && *text.at == '[')
                return refuse(context, name, "an array of records; save one array of numbers each");
            if (!take_string(&text, &type, &type_length)) return refuse(context, name, bad);
            if (!read_type(type, type_length, head)) return bad_type(context, name, type, type_length);
            seen |= DESCR;
        } else if (length == 13 && memcmp(key, "fortran_order", 13) == 0) {
            head->fortran = take_word(&text, "True");
            if (!head->fortran && !take_word(&text, "False")) return refuse(context, name, bad);
            seen |= ORDER;
        } else if (length == 5 && memcmp(key, "shape", 5) == 0) {
            if (!take_shape(&text, &head->array)) return refuse(context, name, bad);
            seen |= SHAPE;
        } else {
            return refuse(context, name, bad);
        }
        take(&text, ',');
    }
    skip_space(&text);
    return seen == ALL && text.at == text.end ? SP_OK : refuse(context, name, bad);
}

/* The number of elements and bytes. Products overflow only if no dimension is 0. */
static bool count_elements(io_npy_head *head)
{
    io_array *array = &head->array;
    array->count = 1;
    for (int i = 0; i < array->dimensions; i++)
        if (array->shape[i] == 0) array->count = 0;
    for (int i = 0; array->count && i < array->dimensions; i++)
        if (__builtin_mul_overflow(array->count, array->shape[i], &array->count)) return false;
    return !__builtin_mul_overflow(array->count, (int64_t)head->item_bytes, &head->bytes);
}

sp_status io_npy_parse(sp_context *context, const char *name, const unsigned char *bytes, int64_t count, int64_t size,
                       io_npy_head *head)
{
    memset(head, 0, sizeof *head);
    if (count < PREFIX_1 || memcmp(bytes, "\x93NUMPY", MAGIC) != 0)
        return refuse(context, name, count < PREFIX_1 ? "too short for an array; the file is truncated"
                                                      : "no array of NumPy; save it with numpy.save");
    const int version = bytes[MAGIC];
    if (version < 1 || version > 3 || (version > 1 && count < PREFIX_2))
        return refuse(context, name, "a version of NumPy's format that is not known; save it with numpy.save");
    int64_t length = bytes[8] | bytes[9] << 8;
    if (version > 1) length |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    head->begin = (version > 1 ? PREFIX_2 : PREFIX_1) + length;
    if (length > IO_NPY_HEADER - PREFIX_2) return refuse(context, name, "a header of more than 64 KB; save it again");
    if (head->begin > count) return refuse(context, name, "the header ends too soon; the file is truncated");
    const literal text = {(const char *)bytes + head->begin - length, (const char *)bytes + head->begin};
    sp_status status = parse_literal(context, name, text, head);
    if (status != SP_OK) return status;
    if (!count_elements(head)) return refuse(context, name, "a shape that is too large; save it again");
    if (head->bytes != size - head->begin)
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s: the header wants %lld bytes of values, there are %lld; the file is %s, save it again",
                       name, (long long)head->bytes, (long long)(size - head->begin),
                       head->bytes > size - head->begin ? "truncated" : "too long");
    return SP_OK;
}

/* ---- values -------------------------------------------------------------------------------------------- */

static void swap_bytes(sp_context *context, void *values, int64_t items, size_t size)
{
    unsigned char *bytes = values;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < items; i++)
        for (size_t k = 0; k < size / 2; k++) {
            unsigned char *item = bytes + (size_t)i * size, kept = item[k];
            item[k] = item[size - 1 - k];
            item[size - 1 - k] = kept;
        }
}

/* Wide characters to bytes, in place. */
static bool narrow_text(unsigned char *bytes, int64_t characters)
{
    for (int64_t i = 0; i < characters; i++) {
        uint32_t c;
        memcpy(&c, bytes + 4 * i, sizeof c);
        if (c > 127) return false;
        bytes[i] = (unsigned char)c;
    }
    return true;
}

/* A row-major matrix of rows x cols from a column-major one. */
static void transpose(sp_context *context, const unsigned char *from, unsigned char *to, int64_t rows, int64_t cols,
                      size_t size)
{
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t i0 = 0; i0 < rows; i0 += TILE)
        for (int64_t j0 = 0; j0 < cols; j0 += TILE)
            for (int64_t i = i0; i < i0 + TILE && i < rows; i++)
                for (int64_t j = j0; j < j0 + TILE && j < cols; j++)
                    memcpy(to + (size_t)(i * cols + j) * size, from + (size_t)(j * rows + i) * size, size);
}

sp_status io_npy_finish(sp_context *context, const char *name, void *values, io_npy_head *head)
{
    io_array *array = &head->array;
    void *turned = NULL;
    sp_status status = SP_OK;
    if (head->swap) {
        const size_t size = head->wide ? 4 : head->item_bytes;
        swap_bytes(context, values, head->bytes / (int64_t)size, size);
    }
    if (head->wide && !narrow_text(values, head->bytes / 4))
        TRY(refuse(context, name, "text that is not ASCII; save it as bytes"));
    if (head->fortran && array->dimensions > 1 && array->count > 0) {
        if (array->dimensions > 2)
            TRY(refuse(context, name, "more than two dimensions in Fortran order; save it in C order"));
        TRY(sp_alloc(context, array->count, array->item_size, &turned));
        transpose(context, values, turned, array->shape[0], array->shape[1], array->item_size);
        sp_free(context, values);
        values = turned;
    }
    array->values = values;
    values = NULL;
done:
    sp_free(context, values);
    return status;
}

sp_status io_read_npy_file(const io_file *file, io_array *array)
{
    sp_context *context = file->context;
    const int64_t count = file->size < IO_NPY_HEADER ? file->size : IO_NPY_HEADER;
    unsigned char *begin = NULL;
    void *values = NULL;
    io_npy_head head;
    sp_status status;
    memset(array, 0, sizeof *array);
    TRY(sp_alloc(context, count, 1, (void **)&begin));
    TRY(io_file_read(file, 0, begin, count, NULL));
    TRY(io_npy_parse(context, file->name, begin, count, file->size, &head));
    TRY(sp_alloc(context, head.bytes, 1, &values));
    TRY(io_file_read(file, head.begin, values, head.bytes, NULL));
    status = io_npy_finish(context, file->name, values, &head);
    values = NULL;
    if (status == SP_OK) *array = head.array;
done:
    FREE_ALL(context, begin, values);
    return status;
}

sp_status io_read_npy(sp_context *context, const char *path, const volatile int *interrupt, io_array *array)
{
    io_file file;
    memset(array, 0, sizeof *array);
    sp_status status = io_file_open(context, path, interrupt, &file);
    if (status != SP_OK) return status;
    status = io_read_npy_file(&file, array);
    io_file_close(&file);
    return status;
}

void io_array_free(sp_context *context, io_array *array)
{
    sp_free(context, array->values);
    memset(array, 0, sizeof *array);
}

/* ---- conversions --------------------------------------------------------------------------------------- */

static sp_status no_number(sp_context *context, const char *name, bool whole)
{
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: an array of %s; save it as %s", name,
                   whole ? "no whole numbers" : "text, not numbers", whole ? "integers" : "f4");
}

#define EACH(type, expression)                                                                           \
    do {                                                                                                 \
        const type *from = array->values;                                                                \
        _Pragma("omp parallel for schedule(static) num_threads(sp_context_threads(context))")            \
        for (int64_t i = 0; i < array->count; i++) to[i] = expression;                                   \
    } while (0)

/* The elements as numbers of type `real`. */
#define EACH_NUMBER(real)                                                 \
    switch (array->type) {                                                \
    case IO_BOOL: EACH(uint8_t, from[i] ? 1 : 0); break;                  \
    case IO_I8: EACH(int8_t, (real)from[i]); break;                       \
    case IO_I16: EACH(int16_t, (real)from[i]); break;                     \
    case IO_I32: EACH(int32_t, (real)from[i]); break;                     \
    case IO_I64: EACH(int64_t, (real)from[i]); break;                     \
    case IO_U8: EACH(uint8_t, (real)from[i]); break;                      \
    case IO_U16: EACH(uint16_t, (real)from[i]); break;                    \
    case IO_U32: EACH(uint32_t, (real)from[i]); break;                    \
    case IO_U64: EACH(uint64_t, (real)from[i]); break;                    \
    case IO_F16: EACH(uint16_t, (real)float_of_f16(from[i])); break;      \
    case IO_F32: EACH(float, (real)from[i]); break;                       \
    default: EACH(double, (real)from[i]); break;                          \
    }

static void take_values(sp_context *context, io_array *array, void *values, io_scalar type, size_t item_size)
{
    sp_free(context, array->values);
    array->values = values;
    array->type = type;
    array->item_size = item_size;
}

sp_status io_array_to_f32(sp_context *context, const char *name, io_array *array)
{
    float *to;
    if (array->type == IO_F32) return SP_OK;
    if (array->type == IO_TEXT) return no_number(context, name, false);
    sp_status status = sp_alloc(context, array->count, sizeof *to, (void **)&to);
    if (status != SP_OK) return status;
    EACH_NUMBER(float)
    take_values(context, array, to, IO_F32, sizeof *to);
    return SP_OK;
}

sp_status io_array_to_f64(sp_context *context, const char *name, io_array *array)
{
    double *to;
    int64_t vast = 0;
    if (array->type == IO_F64) return SP_OK;
    if (array->type == IO_TEXT) return no_number(context, name, false);
    sp_status status = sp_alloc(context, array->count, sizeof *to, (void **)&to);
    if (status != SP_OK) return status;
    EACH_NUMBER(double)
    for (int64_t i = 0; i < array->count && array->type == IO_I64; i++)
        vast += ((const int64_t *)array->values)[i] > MOST_WHOLE || ((const int64_t *)array->values)[i] < -MOST_WHOLE;
    for (int64_t i = 0; i < array->count && array->type == IO_U64; i++)
        vast += ((const uint64_t *)array->values)[i] > MOST_WHOLE;
    if (vast) {
        sp_free(context, to);
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "%s: whole numbers beyond 2^53, which f64 does not hold exactly; save them as f8", name);
    }
    take_values(context, array, to, IO_F64, sizeof *to);
    return SP_OK;
}

sp_status io_array_to_i64(sp_context *context, const char *name, io_array *array)
{
    int64_t *to, large = 0;
    if (array->type == IO_I64) return SP_OK;
    if (array->type == IO_TEXT || array->type >= IO_F16) return no_number(context, name, true);
    sp_status status = sp_alloc(context, array->count, sizeof *to, (void **)&to);
    if (status != SP_OK) return status;
    switch (array->type) {
    case IO_BOOL: EACH(uint8_t, from[i] != 0); break;
    case IO_I8: EACH(int8_t, from[i]); break;
    case IO_I16: EACH(int16_t, from[i]); break;
    case IO_I32: EACH(int32_t, from[i]); break;
    case IO_U8: EACH(uint8_t, from[i]); break;
    case IO_U16: EACH(uint16_t, from[i]); break;
    case IO_U32: EACH(uint32_t, from[i]); break;
    default: EACH(uint64_t, (int64_t)(from[i] & INT64_MAX)); break;
    }
    for (int64_t i = 0; array->type == IO_U64 && i < array->count; i++)
        large += ((const uint64_t *)array->values)[i] > INT64_MAX;
    if (large) {
        sp_free(context, to);
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: numbers of 2^63 and more; save them as signed integers",
                       name);
    }
    take_values(context, array, to, IO_I64, sizeof *to);
    return SP_OK;
}

sp_status io_array_to_i32(sp_context *context, const char *name, io_array *array)
{
    int64_t others = 0;
    if (array->type == IO_I32) return SP_OK;
    sp_status status = io_array_to_i64(context, name, array);
    if (status != SP_OK) return status;
    const int64_t *wide = array->values;
#pragma omp parallel for schedule(static) reduction(+ : others) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < array->count; i++) others += wide[i] < INT32_MIN || wide[i] > INT32_MAX;
    if (others)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: numbers beyond 32 bits; nodes and classes are below 2^31",
                       name);
    int32_t *to;
    status = sp_alloc(context, array->count, sizeof *to, (void **)&to);
    if (status != SP_OK) return status;
    EACH(int64_t, (int32_t)from[i]);
    take_values(context, array, to, IO_I32, sizeof *to);
    return SP_OK;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

size_t io_npy_header(const io_array *array, char header[IO_NPY_WRITTEN])
{
    static const char *const types[] = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1",
                                        "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"};
    char shape[IO_DIMENSIONS * 24] = "", type[24];
    for (int i = 0; i < array->dimensions; i++) {
        const size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, "%s%lld%s", i ? " " : "", (long long)array->shape[i],
                 i + 1 < array->dimensions || array->dimensions == 1 ? "," : "");
    }
    if (array->type == IO_TEXT) snprintf(type, sizeof type, "|S%zu", array->item_size);
    else snprintf(type, sizeof type, "%s", types[array->type]);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    int length = snprintf(header + PREFIX_1, IO_NPY_WRITTEN - PREFIX_1,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    /* Padded so that values begin at a multiple of 64. */
    while ((PREFIX_1 + length + 1) % ALIGNMENT) header[PREFIX_1 + length++] = ' ';
    header[PREFIX_1 + length++] = '\n';
    header[8] = (char)(length & 255);
    header[9] = (char)(length >> 8);
    return (size_t)(PREFIX_1 + length);
}

void io_put_npy(io_output *output, const io_array *array)
{
    char header[IO_NPY_WRITTEN];
    io_output_bytes(output, header, io_npy_header(array, header));
    io_output_bytes(output, array->values, (size_t)array->count * array->item_size);
}
