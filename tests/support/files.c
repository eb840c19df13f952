/* The implementation of files.h. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char folder[64];

const char *path_of(const char *name)
{
    static char paths[8][400];
    static int next;
    next = (next + 1) % 8;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

void write_file(const char *path, const void *data, size_t count)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

const char *contents(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    size_t count = fread(text, 1, sizeof text - 1, file);
    text[count] = '\0';
    fclose(file);
    return text;
}

int files_in_folder(void)
{
    int count = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; (entry = readdir(listing));) count += entry->d_name[0] != '.';
    closedir(listing);
    return count;
}

void make_folder(void)
{
    strcpy(folder, "/tmp/tests.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

void remove_folder(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

const char *file_of(const char *name, const void *data, size_t count)
{
    const char *path = path_of(name);
    write_file(path, data, count);
    return path;
}

const char *text_of(const char *name, const char *text) { return file_of(name, text, strlen(text)); }
