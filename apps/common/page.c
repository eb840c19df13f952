/* The shell of page.html: @REPORT@ stands where the report goes, @PAGE@ where the tool's script does. */
#include "page.h"

#include <string.h>

#include "tool.h"

static const unsigned char shell[] = {
#include "common/page.html.h"
    '\0'
};

static const char report_mark[] = "@REPORT@", script_mark[] = "@PAGE@";

bool is_page(const char *path) { return is_kind(path, ".html") || is_kind(path, ".htm"); }

void page_begin(io_output *output)
{
    const char *text = (const char *)shell;
    io_output_bytes(output, text, (size_t)(strstr(text, report_mark) - text));
}

void page_end(io_output *output, const char *script)
{
    const char *from = strstr((const char *)shell, report_mark) + strlen(report_mark), *to = strstr(from, script_mark);
    io_output_bytes(output, from, (size_t)(to - from));
    io_output_string(output, script);
    io_output_string(output, to + strlen(script_mark));
}
