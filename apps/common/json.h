/* Writing JSON: commas, line breaks, quoting and numbers. */
#ifndef JSON_H
#define JSON_H

#include "io.h"

/* An object or array stands on a line of its own below its parent, scalars share a line. */
typedef struct json {
    io_output *out;
    int depth;
    bool filled; /* the innermost object or array has an item */
    bool broke;  /* its last item was an object or array */
    bool flat;   /* set by the caller: no line breaks */
} json;

/* `key` is NULL within arrays. */
void json_begin(json *j, const char *key, char bracket); /* '{' or '[' */
void json_end(json *j, char bracket);                    /* '}' or ']'; the outermost ends the file */
void json_text(json *j, const char *key, const char *text); /* bytes that are not UTF-8 as Latin-1; NULL is null */
int64_t json_text_bytes(const char *text); /* that json_text makes of it, with its quotes */
void json_count(json *j, const char *key, int64_t count);
void json_number(json *j, const char *key, double number); /* all its digits; null if it is not finite */
void json_seconds(json *j, const char *key, double seconds); /* 9 digits, as those of json_numbers */
void json_flag(json *j, const char *key, bool flag);
void json_null(json *j, const char *key);
/* Arrays within a line. */
void json_counts(json *j, const char *key, const int64_t *counts, int64_t count);
void json_numbers(json *j, const char *key, const double *numbers, int64_t count);

#endif
