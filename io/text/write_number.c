/* Numbers to text: the fewest digits from which a reader gets the same value back, without regard to the locale.
 *
 * f32: the nearest decimal of p = 6, 7, 8, 9 digits is m·10^-k with m = v·10^k rounded. As m < 2^53 and 10^|k| is
 * exact in f64 for |k| <= 22, one division or multiplication gives the f64 nearest to that decimal; if rounding it
 * to f32 gives v, p digits do. (6 digits always survive, so shorter ones are those 6 without zeros at their end.) A
 * decimal whose f64 lies half-way between two f32 could be rounded differently by a reader that goes straight to
 * f32, and is passed over. Whole numbers are written as such; what is out of reach of exact powers goes to printf.
 * f64: the same with 15 digits, then 16 and 17 by printf.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "text/number.h"
#include "text/words.h"

enum { F32_LEAST = 6, F32_MOST = 9, F64_FAST = 15, F64_MOST = 17, LOW_PLACE = -5, HIGH_PLACE = 15 };

static const char pairs[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546"
    "4748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293"
    "949596979899";

/* Digits of a number, up to `end`; returns where they begin. */
static inline char *write_digits(uint64_t number, char *end)
{
    while (number >= 100) {
        end -= 2;
        memcpy(end, pairs + 2 * (number % 100), 2);
        number /= 100;
    }
    if (number >= 10) {
        end -= 2;
        memcpy(end, pairs + 2 * number, 2);
    } else {
        *--end = (char)('0' + number);
    }
    return end;
}

static const uint64_t whole_powers[] = {
    UINT64_C(1), UINT64_C(10), UINT64_C(100), UINT64_C(1000), UINT64_C(10000), UINT64_C(100000), UINT64_C(1000000),
    UINT64_C(10000000), UINT64_C(100000000), UINT64_C(1000000000), UINT64_C(10000000000), UINT64_C(100000000000),
    UINT64_C(1000000000000), UINT64_C(10000000000000), UINT64_C(100000000000000), UINT64_C(1000000000000000),
    UINT64_C(10000000000000000), UINT64_C(100000000000000000), UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000)};

static inline size_t count_digits(uint64_t number)
{
    const int least = (64 - __builtin_clzll(number | 1)) * 1233 >> 12; /* log10 of 2 is 1233 / 4096 */
    return (size_t)least + ((number | 1) >= whole_powers[least]);
}

size_t io_format_int(char *to, int64_t value)
{
    const bool negative = value < 0;
    const uint64_t number = negative ? 0 - (uint64_t)value : (uint64_t)value;
    const size_t length = count_digits(number);
    *to = '-';
    write_digits(number, to + negative + length);
    return negative + length;
}

enum { DIGITS = 24 }; /* moved at once: as many can be read from where digits begin, or end */

/* `digits`, the first of which stands at 10^place, as 123.4, 0.0123 or 1.23e-7. */
static size_t lay_out(char *to, const char *digits, size_t count, int place)
{
    while (count > 1 && digits[count - 1] == '0') count--;
    const bool scientific = place < LOW_PLACE || place >= HIGH_PLACE;
    if (place < 0 && !scientific) {
        memcpy(to, "0.00000", 8);
        memcpy(to + 1 - place, digits, DIGITS);
        return (size_t)(1 - place) + count;
    }
    const size_t whole = scientific ? 1 : (size_t)place + 1;
    memcpy(to, digits, DIGITS);
    while (count < whole) to[count++] = '0';
    char *at = to + count;
    if (count > whole) {
        memcpy(to + whole + 1, digits + whole, DIGITS);
        to[whole] = '.';
        at++;
    }
    if (scientific) {
        *at++ = 'e';
        at += io_format_int(at, place);
    }
    return (size_t)(at - to);
}

/* The place of a number's first digit: e with 10^e <= v < 10^(e+1), for v within exact powers. */
static int first_place(double v)
{
    const int exponent = (int)(bits_of_double(v) >> 52) - 1023;
    const int place = (exponent * 1233 - (exponent < 0) * 4095) / 4096; /* rounded down; one too low at most */
    if (place < -IO_EXACT_POWER || place >= IO_EXACT_POWER) return place;
    const double next = place + 1 >= 0 ? io_powers_of_ten[place + 1] : 1 / io_powers_of_ten[-(place + 1)];
    return v >= next ? place + 1 : place;
}

/* The decimal of `count` digits that is nearest to v, and the f64 that it stands for; false beyond exact powers. */
static bool nearest_decimal(double v, int count, int *place, uint64_t *digits, double *back)
{
    const int k = count - 1 - *place;
    if (k < -IO_EXACT_POWER || k > IO_EXACT_POWER) return false;
    const int64_t nearest = (int64_t)((k >= 0 ? v * io_powers_of_ten[k] : v / io_powers_of_ten[-k]) + 0.5);
    *back = k >= 0 ? (double)nearest / io_powers_of_ten[k] : (double)nearest * io_powers_of_ten[-k];
    *digits = (uint64_t)nearest;
    if (*digits == whole_powers[count]) {
        *digits /= 10;
        ++*place;
    }
    return *digits >= whole_powers[count - 1] && *digits < whole_powers[count];
}

/* `count` digits of v by printf, whose decimal point is passed over. */
static size_t format_slowly(char *to, double v, int count)
{
    char text[64], digits[2 * DIGITS] = "";
    size_t found = 0;
    const char *at = text;
    snprintf(text, sizeof text, "%.*e", count - 1, v);
    for (; *at && *at != 'e'; at++)
        if (io_is_digit(*at) && found < DIGITS) digits[found++] = *at;
    int place = 0;
    const bool negative = *at && at[1] == '-';
    for (at += *at ? 2 : 0; io_is_digit(*at); at++) place = 10 * place + (*at - '0');
    return lay_out(to, digits, found, negative ? -place : place);
}

static bool reads_back(char *text, size_t length, double *value)
{
    text[length] = '\0';
    return io_parse_decimal(text, text + length, value) == text + length;
}

/* Half-way between two f32. */
static bool is_midpoint(double value)
{
    return (bits_of_double(value) & ((UINT64_C(1) << 29) - 1)) == UINT64_C(1) << 28;
}

size_t io_format_f32(char *to, float value)
{
    double v = fabs((double)value), back;
    size_t sign = value < 0, length = 0;
    char digits[2 * DIGITS] = "", *end = digits + DIGITS;
    if (v <= IO_MOST_WHOLE && v == (double)(int64_t)v) return io_format_int(to, (int64_t)value);
    if (sign) *to = '-';
    const int first = first_place(v);
    for (int count = F32_LEAST; count <= F32_MOST; count++) {
        int place = first;
        uint64_t m;
        if (!nearest_decimal(v, count, &place, &m, &back)) break;
        if ((double)(float)back != v || is_midpoint(back)) continue;
        char *begin = write_digits(m, end);
        return sign + lay_out(to + sign, begin, (size_t)(end - begin), place);
    }
    for (int count = F32_LEAST; count <= F32_MOST; count++) {
        length = format_slowly(to + sign, v, count);
        if (reads_back(to + sign, length, &back) && (double)(float)back == v && !is_midpoint(back)) break;
    }
    return sign + length;
}

size_t io_format_f64(char *to, double value)
{
    double v = fabs(value), back;
    size_t sign = value < 0, length = 0;
    char digits[2 * DIGITS] = "", *end = digits + DIGITS;
    if (v <= IO_MOST_WHOLE && v == (double)(int64_t)v) return io_format_int(to, (int64_t)value);
    if (sign) *to = '-';
    int place = first_place(v);
    uint64_t m;
    const bool exact = nearest_decimal(v, F64_FAST, &place, &m, &back);
    if (exact && back == v) {
        char *begin = write_digits(m, end);
        return sign + lay_out(to + sign, begin, (size_t)(end - begin), place);
    }
    for (int count = F64_FAST + exact; count <= F64_MOST; count++) {
        length = format_slowly(to + sign, v, count);
        if (reads_back(to + sign, length, &back) && back == v) break;
    }
    return sign + length;
}

/* ---- to outputs ------------------------------------------------------------------------------------------ */

void io_output_int(io_output *output, int64_t value)
{
    char digits[IO_NUMBER];
    io_output_bytes(output, digits, io_format_int(digits, value));
}

void io_output_number(io_output *output, double value)
{
    char digits[IO_NUMBER];
    io_output_bytes(output, digits, io_format_f64(digits, value));
}
