/* The kind of a file about nodes, by its first bytes. */
#include <string.h>

#include "graphs/formats.h"
#include "nodes/nodes.h"

sp_status io_detect_content(io_source *source, io_content *content)
{
    const char *bytes;
    size_t count = 16;
    sp_status status = io_source_peek(source, &bytes, &count);
    *content = IO_CONTENT_TEXT;
    if (count >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0) *content = IO_CONTENT_NPY;
    else if (count >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0))
        *content = IO_CONTENT_NPZ;
    else if (io_looks_like_mtx(bytes, count)) *content = IO_CONTENT_MTX;
    return status;
}
