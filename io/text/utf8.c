/* Characters of UTF-8. */
#include "io.h"

size_t io_utf8_length(const char *text, size_t left)
{
    const unsigned char *b = (const unsigned char *)text;
    const size_t length = b[0] < 0x80 ? 1 : b[0] >= 0xc2 && b[0] < 0xe0 ? 2 : (b[0] & 0xf0) == 0xe0 ? 3 : 4;
    if ((length == 4 && (b[0] < 0xf0 || b[0] > 0xf4)) || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((b[i] & 0xc0) != 0x80) return 0;
    const bool overlong = (b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xf0 && b[1] < 0x90);
    const bool surrogate = b[0] == 0xed && b[1] >= 0xa0, beyond = b[0] == 0xf4 && b[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

size_t io_put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char heads[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(heads[more] | c >> 6 * more);
    for (int i = 1; i <= more; i++) to[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
    return (size_t)more + 1;
}
