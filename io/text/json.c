/* Reading JSON: no tree is built, so a list takes only the memory that its reader gives it, and readers name the line.
 * (Jansson refuses NaN, which Python writes. cJSON and Jansson take some 50 bytes for each element of a list.) */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "text/number.h"
#include "text/words.h"

void io_json_space(io_json *j)
{
    while (j->at < j->end && (io_is_blank(*j->at) || *j->at == '\n')) j->at++;
}

bool io_json_take(io_json *j, char c)
{
    io_json_space(j);
    if (j->at >= j->end || *j->at != c) return false;
    j->at++;
    return true;
}

bool io_json_string(io_json *j, const char **string, size_t *length)
{
    io_json_space(j);
    if (j->at >= j->end || *j->at != '"') return false;
    const char *close = j->at + 1;
    while (close < j->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= j->end) return false;
    *string = j->at + 1;
    *length = (size_t)(close - *string);
    j->at = close + 1;
    return true;
}

/* The character behind a backslash at *at. */
static bool take_escape(const char **at, const char *end, char **to)
{
    static const char from[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char digits[5] = "", *stop;
    const char *kind = *at < end && **at ? strchr(from, **at) : NULL;
    if (kind) {
        *(*to)++ = meant[kind - from];
        ++*at;
        return true;
    }
    if (end - *at < 5 || **at != 'u') return false;
    memcpy(digits, *at + 1, 4);
    const unsigned code = (unsigned)strtoul(digits, &stop, 16);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4 || code == 0 || (code >= 0xd800 && code < 0xe000)) return false;
    *to += io_put_utf8(*to, code);
    *at += 5;
    return true;
}

bool io_json_unescape(const char *string, size_t length, char *text)
{
    const char *end = string + length;
    for (const char *at = string; at < end;) {
        const char c = *at++;
        if (c == '\0' || (c == '\\' && !take_escape(&at, end, &text))) return false;
        if (c != '\\') *text++ = c;
    }
    *text = '\0';
    return true;
}

bool io_json_number(io_json *j, double *number)
{
    static const char *const missing[] = {"null", "NaN"};
    io_json_space(j);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        const size_t length = strlen(missing[i]);
        if ((size_t)(j->end - j->at) < length || memcmp(j->at, missing[i], length) != 0) continue;
        j->at += length;
        *number = (double)NAN;
        return true;
    }
    if (j->at == j->end || *j->at == '+') return false;
    const char *stop = io_parse_decimal(j->at, j->end, number);
    if (stop == j->at) return false;
    j->at = stop;
    return true;
}

bool io_json_whole(io_json *j, int64_t low, int64_t high, int64_t *number)
{
    double value;
    io_json_space(j);
    io_json after = *j;
    if (!io_json_number(&after, &value) || !(value >= (double)low && value <= (double)high) || value != floor(value))
        return false;
    *j = after;
    *number = (int64_t)value;
    return true;
}
