/* Numbers: from text, to text, and as weights of f32 or f64. */
#ifndef IO_TEXT_NUMBER_H
#define IO_TEXT_NUMBER_H

#include <float.h>

#include "base/value.h"
#include "io.h"

/* Those that are exact in f64. */
enum { IO_EXACT_POWER = 22 };
extern const double io_powers_of_ten[IO_EXACT_POWER + 1];

/* Reads the longest decimal number ([sign] digits [. digits] [e exponent]) that text..end begins with, correctly
 * rounded; returns its end, or `text` if there is none. The byte at `end` must be readable and not part of a
 * number. */
const char *io_parse_decimal(const char *text, const char *end, double *value);
/* The same with C's full syntax (hexadecimal, inf, nan), as scanf's %lf takes it. */
const char *io_parse_scanf(const char *text, const char *end, double *value);
/* Whether the text is e-180 or the like, which older versions of BLAST write for 1e-180; if so, its number. */
bool io_parse_bare_exponent(const char *text, const char *end, double *value);
/* Whether a number of f64 is 2^53 or more, so that the text may have been rounded to a whole number. False for 2^53
 * written as 9007199254740992. */
bool io_is_vast(sp_value_type type, double number, const char *text, const char *end);
/* Reads an integer of digits only, at most `limit`; false for anything else. */
bool io_parse_index(const char *text, const char *end, int64_t limit, int64_t *value);

/* Writes a number with as few digits as give it back, and no NUL; returns how many bytes, fewer than IO_NUMBER, all
 * of which may be written to. */
enum { IO_NUMBER = 48 };
size_t io_format_int(char *to, int64_t value);
size_t io_format_f32(char *to, float value);
size_t io_format_f64(char *to, double value);

static inline size_t io_value_size(sp_value_type type) { return type == SP_F32 ? sizeof(float) : sizeof(double); }

/* The value of the type that is nearest to `number`. */
static inline double io_round(sp_value_type type, double number)
{
    return type == SP_F32 ? (double)(float)number : number;
}

static inline void io_store_value(void *values, sp_value_type type, int64_t i, double value)
{
    if (type == SP_F32) ((float *)values)[i] = (float)value;
    else ((double *)values)[i] = value;
}

/* The largest weight that is read, and what is said of larger ones. */
static inline double io_most(sp_value_type type) { return type == SP_F32 ? (double)FLT_MAX : DBL_MAX; }
static inline const char *io_most_remedy(sp_value_type type)
{
    return type == SP_F32 ? "write a number below 3.4e38" : "write a number below 1.8e308";
}

/* 2^53: whole numbers are exact in f64 up to here. */
#define IO_MOST_WHOLE 9007199254740992.0

#endif
