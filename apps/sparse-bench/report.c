/* The implementation of report.h. */
#include "sparse-bench/report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- stdout --------------------------------------------------------------------------------------------- */

void print_machine(const machine *m, const bench_options *o, const char *more)
{
    printf("%s, %s%s%s; copies at %.0f GB/s\n", *m->gpu ? m->gpu : m->cpu, o->type == SP_F32 ? "fp32" : "fp64",
           *more ? ", " : "", more, m->copy_bandwidth * 1e-9);
}

void print_case(const char *name, const char *shape, ...)
{
    va_list arguments;
    printf("%s | ", name);
    va_start(arguments, shape);
    vprintf(shape, arguments);
    va_end(arguments);
    printf("\n");
}

void print_candidate(const candidate *c, double ours, const char *remark, ...)
{
    char memory[32] = "", times[32] = "";
    printf("    %-32s ", c->name);
    if (*c->word) {
        printf("%s (%s)\n", c->word, c->why);
        return;
    }
    if (ours > 0) snprintf(times, sizeof times, "%.2fx", c->time.median / ours);
    if (c->peak_bytes > 0) snprintf(memory, sizeof memory, "%.1f MB", 1e-6 * (double)c->peak_bytes);
    printf("%12.4f ms %8s %12s  ", 1e3 * c->time.median, times, memory);
    va_list arguments;
    va_start(arguments, remark);
    vprintf(remark, arguments);
    va_end(arguments);
    printf("%s%s%s%s\n", c->unsorted ? " (columns unsorted)" : "", *c->why ? " (" : "", c->why, *c->why ? ")" : "");
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

/* An empty text is null. */
static void put_text(json *j, const char *key, const char *text) { json_text(j, key, text && *text ? text : NULL); }

static void put_machine(json *j, const machine *m)
{
    const char *driver = getenv("BENCH_DRIVER");
    json_begin(j, "machine", '{');
    put_text(j, "cpu", m->cpu);
    json_count(j, "cores", m->cores);
    json_count(j, "memory_bytes", m->memory_bytes);
    put_text(j, "gpu", m->gpu);
    put_text(j, "driver", *m->gpu ? (*m->driver ? m->driver : driver) : NULL);
    put_text(j, "cuda", m->cuda);
    put_text(j, "kernel", m->kernel);
    put_text(j, "peers", m->peers);
    json_count(j, "cache_bytes", m->cache_bytes);
    json_seconds(j, "copy_bandwidth", m->copy_bandwidth);
    json_end(j, '}');
}

sp_status report_open(sp_context *context, const machine *m, const bench_options *o, json *j)
{
    char date[16] = "";
    const time_t now = time(NULL);
    struct tm utc;
    *j = (json){.out = NULL};
    const sp_status status = io_output_open(context, o->json, &j->out);
    if (status != SP_OK) return status;
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%d", &utc);
    json_begin(j, NULL, '{');
    json_text(j, "bench", kind_name(o->kind));
    json_text(j, "version", SP_VERSION);
    put_text(j, "date", date);
    put_text(j, "commit", getenv("BENCH_COMMIT"));
    put_machine(j, m);
    json_begin(j, "options", '{');
    json_text(j, "device", o->device);
    json_count(j, "threads", sp_context_threads(context));
    json_text(j, "values", o->type == SP_F32 ? "fp32" : "fp64");
    return SP_OK;
}

void report_list(json *j, const bench_options *o)
{
    json_count(j, "repeat", o->repeat);
    json_count(j, "memory", o->memory);
    json_count(j, "seed", o->seeds.number[0]);
    json_end(j, '}');
    json_begin(j, "matrices", '[');
}

sp_status report_close(json *j)
{
    json_end(j, ']');
    json_end(j, '}');
    return io_output_commit(j->out);
}

void put_source(json *j, const source *from)
{
    put_text(j, "matrix", source_name(from));
    put_text(j, "family", from->family);
    put_text(j, "generated", from->spec);
    if (from->spec) json_count(j, "seed", (int64_t)from->seed);
    put_text(j, "file", from->spec ? NULL : from->name);
}

void put_timing(json *j, const timing *time)
{
    json_seconds(j, "median_seconds", time->median);
    if (time->first > 0) json_seconds(j, "first_seconds", time->first);
    json_numbers(j, "samples", time->seconds, time->count);
}

void put_bytes(json *j, const char *key, int64_t bytes)
{
    if (bytes < 0) json_null(j, key);
    else json_count(j, key, bytes);
}

bool begin_candidate(json *j, const char *key, const candidate *c)
{
    json_begin(j, key, '{');
    if (!key) json_text(j, "name", c->name);
    if (!*c->word) return true;
    json_text(j, "failed", c->word);
    json_text(j, "why", c->why);
    return false;
}

double finite_error(double error) { return error < 1e300 ? error : 1e300; }
