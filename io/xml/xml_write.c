/* Text in XML, which is UTF-8: characters that XML cannot hold become question marks, and bytes outside UTF-8, as
 * of names in Latin-1, the characters that these are there. So names that differ still do. */
#include "io.h"

/* Bytes of the UTF-8 character at `text`, at most `left`; 0: none, or one that XML cannot hold. */
static size_t utf8_length(const unsigned char *text, size_t left)
{
    const unsigned char first = text[0];
    const size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    uint32_t character = length == 1 ? first : first & (0x7fu >> length);
    if (length > left) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        character = character << 6 | (text[i] & 0x3f);
    }
    const bool longer = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
    const bool none = (character >= 0xd800 && character < 0xe000) || character == 0xfffe || character == 0xffff ||
                      character > 0x10ffff;
    return longer || none ? 0 : length;
}

void io_put_xml(io_output *output, const char *text, size_t length)
{
    for (size_t i = 0, taken; i < length; i += taken) {
        const unsigned char c = (unsigned char)text[i];
        const char latin[2] = {(char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f))};
        taken = utf8_length((const unsigned char *)text + i, length - i);
        if (taken == 0) io_output_bytes(output, latin, sizeof latin);
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
