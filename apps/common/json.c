/* The implementation of json.h. */
#include "json.h"

#include <math.h>

/* Whether a byte stands as \uXXXX; `length`: of the UTF-8 there, 0 if it is none. "<" does too, so that JSON may stand
 * in a page's script. */
static bool needs_escape(const char *p, size_t length)
{
    return length == 0 || (unsigned char)*p < ' ' || *p == '"' || *p == '\\' || *p == '<';
}

/* A quoted string; NULL is null. */
static void put_quoted(io_output *out, const char *text)
{
    if (!text) {
        io_output_string(out, "null");
        return;
    }
    io_output_string(out, "\"");
    for (const char *p = text; *p;) {
        const size_t length = io_utf8_length(p, 4);
        if (needs_escape(p, length)) {
            io_output_format(out, "\\u%04x", (unsigned char)*p++);
        } else {
            io_output_bytes(out, p, length);
            p += length;
        }
    }
    io_output_string(out, "\"");
}

int64_t json_text_bytes(const char *text)
{
    int64_t bytes = 2;
    for (const char *p = text; *p;) {
        const size_t length = io_utf8_length(p, 4);
        const bool escaped = needs_escape(p, length);
        bytes += escaped ? 6 : (int64_t)length;
        p += escaped ? 1 : length;
    }
    return bytes;
}

/* What stands between two items, and the key. */
static void put_key(json *j, const char *key, bool breaks)
{
    const bool line = j->depth > 0 && !j->flat && (breaks || j->broke);
    if (j->filled) io_output_string(j->out, line ? "," : ", ");
    if (line) io_output_format(j->out, "\n%*s", 2 * j->depth, "");
    if (key) io_output_format(j->out, "\"%s\": ", key);
    j->filled = true;
    j->broke = breaks;
}

static void put_bracket(json *j, char bracket) { io_output_bytes(j->out, &bracket, 1); }

void json_begin(json *j, const char *key, char bracket)
{
    put_key(j, key, true);
    put_bracket(j, bracket);
    j->depth++;
    j->filled = j->broke = false;
}

void json_end(json *j, char bracket)
{
    put_bracket(j, bracket);
    j->depth--;
    j->filled = j->broke = true;
    if (j->depth == 0) io_output_string(j->out, "\n");
}

void json_null(json *j, const char *key)
{
    put_key(j, key, false);
    io_output_string(j->out, "null");
}

void json_text(json *j, const char *key, const char *text)
{
    put_key(j, key, false);
    put_quoted(j->out, text);
}

void json_count(json *j, const char *key, int64_t count)
{
    put_key(j, key, false);
    io_output_int(j->out, count);
}

void json_number(json *j, const char *key, double number)
{
    put_key(j, key, false);
    if (isfinite(number)) io_output_number(j->out, number);
    else io_output_string(j->out, "null");
}

static void put_rounded(io_output *out, double number)
{
    if (isfinite(number)) io_output_format(out, "%.9g", number);
    else io_output_string(out, "null");
}

void json_seconds(json *j, const char *key, double seconds)
{
    put_key(j, key, false);
    put_rounded(j->out, seconds);
}

void json_flag(json *j, const char *key, bool flag)
{
    put_key(j, key, false);
    io_output_string(j->out, flag ? "true" : "false");
}

void json_counts(json *j, const char *key, const int64_t *counts, int64_t count)
{
    put_key(j, key, false);
    for (int64_t i = 0; i < count; i++) io_output_format(j->out, "%s%lld", i ? ", " : "[", (long long)counts[i]);
    io_output_string(j->out, count ? "]" : "[]");
}

void json_numbers(json *j, const char *key, const double *numbers, int64_t count)
{
    put_key(j, key, false);
    for (int64_t i = 0; i < count; i++) {
        io_output_string(j->out, i ? ", " : "[");
        put_rounded(j->out, numbers[i]);
    }
    io_output_string(j->out, count ? "]" : "[]");
}
