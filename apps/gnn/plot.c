/* Curves of a training as SVG: losses above, accuracies below, over the epochs of the first run. They are drawn here
 * because no other part of the project can: bench/plots.py draws stored results and needs Python and matplotlib, which
 * the tools do not. */
#include <math.h>

#include "job.h"

/* A chart's place on the page and the ranges of its axes. */
typedef struct chart {
    double left, top, width, height;
    double x_low, x_high, y_low, y_high;
} chart;

typedef struct curve {
    const char *name, *colour;
    double (*value)(const gnn_epoch *epoch);
} curve;

enum { PAGE_WIDTH = 840, PAGE_HEIGHT = 640, LEFT = 72, RIGHT = 190 };
enum { CHART_HEIGHT = 240, FIRST_TOP = 44, SECOND_TOP = 344 };
enum { MOST_POINTS = 2000, TICKS = 5 };

static double training_loss(const gnn_epoch *e) { return e->loss; }
static double validation_loss(const gnn_epoch *e) { return e->split_loss[GNN_VALIDATION]; }
static double test_loss(const gnn_epoch *e) { return e->split_loss[GNN_TEST]; }
static double training_accuracy(const gnn_epoch *e) { return e->accuracy[GNN_TRAIN]; }
static double validation_accuracy(const gnn_epoch *e) { return e->accuracy[GNN_VALIDATION]; }
static double test_accuracy(const gnn_epoch *e) { return e->accuracy[GNN_TEST]; }

/* Colours that colour-blind readers can distinguish (Okabe and Ito 2008). */
static const curve losses[] = {{"training (with dropout)", "\"#0072b2\"", training_loss},
                               {"validation", "\"#e69f00\"", validation_loss},
                               {"test", "\"#009e73\"", test_loss}};
static const curve accuracies[] = {{"training", "\"#0072b2\"", training_accuracy},
                                   {"validation", "\"#e69f00\"", validation_accuracy},
                                   {"test", "\"#009e73\"", test_accuracy}};
enum { CURVES = 3 };

/* ---- axes ------------------------------------------------------------------------------------------------ */

/* The distance of ticks: 1, 2 or 5 times a power of ten, with about TICKS of them in the span. */
static double tick_step(double span)
{
    const double rough = span / TICKS, power = pow(10, floor(log10(rough))), digit = rough / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static double x_of(const chart *c, double x) { return c->left + c->width * (x - c->x_low) / (c->x_high - c->x_low); }

static double y_of(const chart *c, double y)
{
    return c->top + c->height * (1 - (y - c->y_low) / (c->y_high - c->y_low));
}

/* The vertical axis begins at 0 and ends at a tick. */
static void span_values(const gnn_run *run, const curve *curves, chart *c)
{
    double high = 0;
    for (int k = 0; k < CURVES; k++)
        for (int64_t i = 0; i < run->count; i++) {
            const double value = curves[k].value(&run->epochs[i]);
            if (isfinite(value) && value > high) high = value;
        }
    if (!(high > 0)) high = 1;
    const double step = tick_step(high);
    c->y_low = 0;
    c->y_high = step * ceil(high / step - 1e-9);
}

/* `style` is a colour and other attributes of the line. */
static void put_line(io_output *out, double x1, double y1, double x2, double y2, const char *style)
{
    io_output_format(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=%s/>\n", x1, y1, x2, y2,
                     style);
}

static void put_words(io_output *out, double x, double y, const char *anchor, const char *words)
{
    io_output_format(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, words);
}

static void put_axes(io_output *out, const chart *c, const char *title)
{
    const double right = c->left + c->width, bottom = c->top + c->height;
    char number[32];
    const double x_step = fmax(1, tick_step(c->x_high - c->x_low)), y_step = tick_step(c->y_high - c->y_low);
    for (int k = 0; c->y_low + k * y_step <= c->y_high + y_step / 2; k++) {
        const double y = y_of(c, c->y_low + k * y_step);
        put_line(out, c->left, y, right, y, "\"#dddddd\"");
        snprintf(number, sizeof number, "%.4g", c->y_low + k * y_step);
        put_words(out, c->left - 8, y + 4, "end", number);
    }
    for (double x = x_step * ceil(c->x_low / x_step); x <= c->x_high; x += x_step) {
        put_line(out, x_of(c, x), bottom, x_of(c, x), bottom + 5, "\"#333333\"");
        snprintf(number, sizeof number, "%.10g", x);
        put_words(out, x_of(c, x), bottom + 19, "middle", number);
    }
    put_line(out, c->left, bottom, right, bottom, "\"#333333\"");
    put_line(out, c->left, c->top, c->left, bottom, "\"#333333\"");
    put_words(out, c->left + c->width / 2, bottom + 38, "middle", "epoch");
    io_output_format(out, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
                     c->left - 50, c->top + c->height / 2, title);
}

/* ---- curves ---------------------------------------------------------------------------------------------- */

/* At most MOST_POINTS points, evenly spread, and the last. */
static void put_curve(io_output *out, const chart *c, const gnn_run *run, const curve *shown, int number)
{
    const int64_t every = 1 + run->count / MOST_POINTS;
    const double x = c->left + c->width + 12, y = c->top + 10 + 20 * number;
    int64_t points = 0;
    for (int64_t i = 0; i < run->count; i++) {
        const double value = shown->value(&run->epochs[i]);
        if (!isfinite(value) || (i % every != 0 && i + 1 < run->count)) continue;
        if (points++ == 0)
            io_output_format(out, "<polyline fill=\"none\" stroke=%s stroke-width=\"1.5\" points=\"", shown->colour);
        io_output_format(out, "%.1f,%.1f ", x_of(c, (double)run->epochs[i].epoch), y_of(c, value));
    }
    if (points == 0) return;
    io_output_string(out, "\"/>\n");
    put_line(out, x, y, x + 16, y, shown->colour);
    put_words(out, x + 22, y + 4, "start", shown->name);
}

static void put_chart(io_output *out, const gnn_run *run, double top, const char *title, const curve *curves)
{
    const double first = (double)run->epochs[0].epoch, last = (double)run->epochs[run->count - 1].epoch;
    chart c = {.left = LEFT, .top = top, .width = PAGE_WIDTH - LEFT - RIGHT, .height = CHART_HEIGHT,
               .x_low = first, .x_high = last > first ? last : first + 1};
    span_values(run, curves, &c);
    put_axes(out, &c, title);
    for (int k = 0; k < CURVES; k++) put_curve(out, &c, run, &curves[k], k);
    if (run->best_epoch < run->epochs[0].epoch) return; /* the best epoch was before this run resumed */
    const double best = x_of(&c, (double)run->best_epoch);
    put_line(out, best, c.top, best, c.top + c.height, "\"#999999\" stroke-dasharray=\"4 3\"");
}

sp_status gnn_put_plot(gnn_job *job, io_output *out)
{
    const gnn_run *run = &job->runs[0];
    const char *measure = gnn_measure(job);
    gnn_text text;
    io_output_format(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                     "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333333\">\n",
                     PAGE_WIDTH, PAGE_HEIGHT, PAGE_WIDTH, PAGE_HEIGHT);
    io_output_format(out, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", PAGE_WIDTH, PAGE_HEIGHT);
    io_output_format(out, "<text x=\"%d\" y=\"24\" font-size=\"15\">%s, %lld layers: best epoch %lld, ", LEFT,
                     model_word((int)job->how.model.layer), (long long)job->how.model.layers,
                     (long long)run->best_epoch);
    io_output_format(out, "%s %s (test)</text>\n", measure, gnn_show(gnn_test_accuracy(run), text));
    put_chart(out, run, FIRST_TOP, "loss", losses);
    put_chart(out, run, SECOND_TOP, measure, accuracies);
    io_output_string(out, "</svg>\n");
    return SP_OK;
}
