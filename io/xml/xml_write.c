/* Text in XML, which is UTF-8: characters that XML cannot hold become question marks, and bytes outside UTF-8, such
 * as those of names in Latin-1, become the characters that Latin-1 gives them. Names that differ still differ. */
#include <string.h>

#include "io.h"

/* As io_utf8_length; 0 also for U+FFFE and U+FFFF, which XML cannot hold. */
static size_t character_length(const char *text, size_t left)
{
    const size_t length = io_utf8_length(text, left);
    return length == 3 && (memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0) ? 0 : length;
}

void io_put_xml(io_output *output, const char *text, size_t length)
{
    for (size_t i = 0, taken; i < length; i += taken) {
        const unsigned char c = (unsigned char)text[i];
        char latin[4];
        taken = character_length(text + i, length - i);
        if (taken == 0) io_output_bytes(output, latin, io_put_utf8(latin, c));
        else if (c == '&') io_output_string(output, "&amp;");
        else if (c == '<') io_output_string(output, "&lt;");
        else if (c == '>') io_output_string(output, "&gt;");
        else if (c == '"') io_output_string(output, "&quot;");
        else if (c == '\r') io_output_string(output, "&#13;"); /* which readers take for an end of line otherwise */
        else if (c < ' ' && c != '\t' && c != '\n') io_output_string(output, "?");
        else io_output_bytes(output, text + i, taken);
        if (taken == 0) taken = 1;
    }
}
