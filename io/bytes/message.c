/* Sentences about a line of a file: "FILE:LINE: what (got "..."); what would be right". */
#include <stdio.h>

#include "bytes/message.h"

void io_show_token(const char *text, const char *end, char *shown, size_t size)
{
    if (text < end && end[-1] == '\r') end--; /* of the line's end */
    const char *stop = end - text > IO_TOKEN_SHOWN ? text + IO_TOKEN_SHOWN : end;
    size_t at = 0;
    for (; text < stop && at + 8 < size; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\t')
            at += (size_t)snprintf(shown + at, size - at, "\\t");
        else if (c == '\r')
            at += (size_t)snprintf(shown + at, size - at, "\\r");
        else if (c < ' ' || c >= 0x7f)
            at += (size_t)snprintf(shown + at, size - at, "\\x%02x", c);
        else
            shown[at++] = (char)c;
    }
    snprintf(shown + at, size - at, "%s", stop < end ? "..." : "");
}

void io_write_message(char *message, size_t size, const char *what, const char *token, const char *token_end,
                      const char *remedy)
{
    char shown[4 * IO_TOKEN_SHOWN + 16];
    io_show_token(token, token_end, shown, sizeof shown);
    snprintf(message, size, "%s (got \"%s\"); %s", what, shown, remedy);
}

sp_status io_fail_line(sp_context *context, const char *name, int64_t line, const char *what, const char *token,
                       const char *token_end, const char *remedy)
{
    char message[IO_MESSAGE];
    io_write_message(message, sizeof message, what, token, token_end, remedy);
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s:%lld: %s", name, (long long)line, message);
}
