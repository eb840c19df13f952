/* Text to numbers, exactly and without regard to the locale.
 *
 * A decimal of at most 19 digits whose digits, read as an integer m, stay within 2^53 and whose power of ten is
 * within 10^22 is m·10^e with both factors exact in f64, so one multiplication or division rounds it correctly
 * (Clinger 1990). Everything else goes to strtod in the C locale.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "text/number.h"
#include "text/words.h"

const double io_powers_of_ten[IO_EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { EXACT_DIGITS = 19, EXPONENT_LIMIT = 1000000 };
#define EXACT_MANTISSA (UINT64_C(1) << 53)

/* The explicit exponent at *text ("e-5"), 0 and *text unmoved if there is none. */
static int64_t read_exponent(const char **text)
{
    const char *at = *text;
    if (*at != 'e' && *at != 'E') return 0;
    at++;
    bool negative = *at == '-';
    if (*at == '-' || *at == '+') at++;
    if (!io_is_digit(*at)) return 0;
    int64_t exponent = 0;
    for (; io_is_digit(*at); at++)
        if (exponent < EXPONENT_LIMIT) exponent = exponent * 10 + (*at - '0');
    *text = at;
    return negative ? -exponent : exponent;
}

/* Takes digits into *mantissa, which wraps around when there are too many. */
static inline const char *read_digits(const char *at, uint64_t *mantissa)
{
    for (; io_is_digit(*at); at++) *mantissa = *mantissa * 10 + (uint64_t)(*at - '0');
    return at;
}

/* Digits from the first that is not 0. */
static int64_t significant_digits(const char *at, const char *end)
{
    int64_t digits = 0;
    for (; at < end; at++)
        if (io_is_digit(*at) && (digits > 0 || *at != '0')) digits++;
    return digits;
}

const char *io_parse_decimal(const char *text, const char *end, double *value)
{
    const char *begin = text;
    bool negative = begin < end && *begin == '-';
    if (begin < end && (*begin == '-' || *begin == '+')) begin++;

    uint64_t mantissa = 0;
    int64_t exponent = 0;
    const char *at = read_digits(begin, &mantissa);
    int64_t digits = at - begin;
    if (*at == '.') {
        const char *fraction = at + 1;
        at = read_digits(fraction, &mantissa);
        exponent = fraction - at;
        digits -= exponent;
    }
    if (digits == 0) return text;
    if (digits > EXACT_DIGITS) digits = significant_digits(begin, at);
    exponent += read_exponent(&at);

    if (digits <= EXACT_DIGITS && mantissa <= EXACT_MANTISSA && exponent >= -IO_EXACT_POWER &&
        exponent <= IO_EXACT_POWER) {
        double magnitude = (double)mantissa;
        magnitude = exponent < 0 ? magnitude / io_powers_of_ten[-exponent] : magnitude * io_powers_of_ten[exponent];
        *value = negative ? -magnitude : magnitude;
        return at;
    }
    char *stop;
    *value = system_strtod(text, &stop);
    return at;
}

const char *io_parse_scanf(const char *text, const char *end, double *value)
{
    if (text == end || io_is_blank(*text)) return text;
    char *stop;
    *value = system_strtod(text, &stop);
    /* strtod takes the 0 of "0x" followed by no digit; scanf has read on to the x by then and fails. */
    const char *digits = text + (*text == '-' || *text == '+');
    if (stop == digits + 1 && *digits == '0' && (*stop == 'x' || *stop == 'X') && stop[1] != '.') return text;
    /* But scanf accepts an exponent without digits. */
    bool hexadecimal = *digits == '0' && (digits[1] == 'x' || digits[1] == 'X');
    const char *exponent = hexadecimal ? "pP" : "eE";
    bool number = stop > text && (io_is_digit(stop[-1]) || stop[-1] == '.' || hexadecimal);
    bool complete = false;
    for (const char *at = text; at < stop; at++) complete = complete || *at == exponent[0] || *at == exponent[1];
    if (number && !complete && (*stop == exponent[0] || *stop == exponent[1]))
        stop += stop[1] == '-' || stop[1] == '+' ? 2 : 1;
    return stop;
}

bool io_parse_bare_exponent(const char *text, const char *end, double *value)
{
    enum { LONGEST = 16 };
    char number[LONGEST + 2] = "1";
    const size_t length = (size_t)(end - text);
    if (length < 3 || length > LONGEST || (*text != 'e' && *text != 'E') || text[1] != '-') return false;
    memcpy(number + 1, text, length);
    return io_parse_decimal(number, number + 1 + length, value) == number + 1 + length;
}

bool io_is_vast(sp_value_type type, double number, const char *text, const char *end)
{
    static const char limit[] = "9007199254740992"; /* as which 2^53 + 1 is read, too */
    const size_t digits = sizeof limit - 1;
    if (type == SP_F32 || !(fabs(number) >= IO_MOST_WHOLE)) return false;
    if (text < end && (*text == '-' || *text == '+')) text++;
    return (size_t)(end - text) != digits || memcmp(text, limit, digits) != 0;
}

bool io_parse_index(const char *text, const char *end, int64_t limit, int64_t *value)
{
    if (text == end) return false;
    int64_t number = 0;
    for (; text < end; text++) {
        if (!io_is_digit(*text)) return false;
        if (number > (INT64_MAX - 9) / 10) return false;
        number = number * 10 + (*text - '0');
    }
    *value = number;
    return number <= limit;
}
