/* Reports as pages for a browser: one file that loads nothing, and draws the JSON report in it. */
#ifndef PAGE_H
#define PAGE_H

#include "io.h"

/* Whether the name of a report asks for a page: .html or .htm. */
bool is_page(const char *path);
/* What comes before the report, and after it: `script` is the tool's page.js, which finds the report in `report` and
 * fills `page`. */
void page_begin(io_output *output);
void page_end(io_output *output, const char *script);

#endif
