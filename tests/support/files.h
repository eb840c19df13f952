/* A folder for each test, for CASE_WITH(..., make_folder, remove_folder), and files in it. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

#include "support.h"

extern char folder[64];

void make_folder(void);
void remove_folder(void);
/* The path of a file in it, good until the eighth call from here. */
const char *path_of(const char *name);
void write_file(const char *path, const void *data, size_t count);
/* The same for a file of the folder: its path. */
const char *file_of(const char *name, const void *data, size_t count);
const char *text_of(const char *name, const char *text);
/* What a file holds, in a static buffer. */
const char *contents(const char *path);
int files_in_folder(void);

#endif
