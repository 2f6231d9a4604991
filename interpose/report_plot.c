/* batchlapack-report: the plot.
 *
 * Writes a script for gnuplot and runs it: a row for each of the routines that took most
 * time, calls by size on the left, time by size on the right, bars for what was and
 * points for what the other side would have taken. gnuplot is looked for when it is
 * needed.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"

#define ROWS 4 /* routines that are shown */
#define ROW_PIXELS 250
#define HEAD_PIXELS 106
#define FOOT_PIXELS 46
#define WIDTH_PIXELS 1060

static const char *const colour[SIDES] = {"#d07020", "#2b6ca3"};

static const char *ending(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && dot != path ? dot : "";
}

bool can_plot(const char *path)
{
    return strcasecmp(ending(path), ".svg") == 0 || strcasecmp(ending(path), ".png") == 0;
}

/* gnuplot's plain strings know one escape: the quote doubled. */
static void quote(FILE *f, const char *text)
{
    fputc('\'', f);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', f);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
    }
    fputc('\'', f);
}

/* ---- the data ---- */

/* Half an octave of the axis: the CPU's bar on the left half, the GPU's on the right. */
static double edge(const struct size *s, double part)
{
    return (double)s->from * pow(2, part / 2);
}

/* A line a bar: low and high edge, middle, height, the same calls on the other side. */
static void write_side(FILE *f, const struct routine *r, int side, bool time)
{
    for (size_t i = 0; i < r->size_count; i++) {
        const struct size *s = &r->sizes[i];
        double low = edge(s, side == CPU ? 0.08 : 0.52);
        double high = edge(s, side == CPU ? 0.48 : 0.92);
        if (s->side[side].calls == 0)
            continue;
        double took = (double)s->side[side].ns * 1e-9;
        double other = elsewhere(r, s, side).seconds;
        fprintf(f, "%.9g %.9g %.9g ", low, high, sqrt(low * high));
        if (time)
            fprintf(f, "%.9g %.9g\n", fmax(took, 1e-9), fmax(other, 1e-9));
        else
            fprintf(f, "%" PRIu64 "\n", s->side[side].calls);
    }
}

/* The range of both sides' heights, points included: whole decades and some air. */
struct range {
    double low, high;
};

static void widen(struct range *range, double value)
{
    if (value > 0) {
        range->low = fmin(range->low, value);
        range->high = fmax(range->high, value);
    }
}

static struct range heights(const struct routine *r, bool time)
{
    struct range range = {INFINITY, 0};
    for (size_t i = 0; i < r->size_count; i++)
        for (int side = 0; side < SIDES; side++) {
            const struct side *s = &r->sizes[i].side[side];
            if (s->calls == 0)
                continue;
            widen(&range, time ? fmax((double)s->ns * 1e-9, 1e-9) : (double)s->calls);
            if (time)
                widen(&range, fmax(elsewhere(r, &r->sizes[i], side).seconds, 1e-9));
        }
    /* An estimate far below what was measured lies under the axis. */
    range.low = fmax(range.low, range.high * 1e-6);
    return (struct range){pow(10, floor(log10(range.low)) - 0.3),
                          pow(10, ceil(log10(range.high * 1.5)))};
}

/* The axis of sizes, the same for all rows. */
static struct range widths(const struct report *report, size_t rows)
{
    struct range range = {INFINITY, 0};
    for (size_t k = 0; k < rows; k++)
        for (size_t i = 0; i < report->routines[k].size_count; i++) {
            widen(&range, edge(&report->routines[k].sizes[i], 0));
            widen(&range, edge(&report->routines[k].sizes[i], 1));
        }
    while (range.high / range.low < 16) {
        range.low /= sqrt(2);
        range.high *= sqrt(2);
    }
    return range;
}

/* ---- the script ---- */

/* A panel's place, in pixels from the picture's top left corner. */
struct box {
    double left, right, top, bottom;
};

static void write_place(FILE *f, struct box b, double height)
{
    fprintf(f, "set lmargin at screen %.5f\nset rmargin at screen %.5f\n",
            b.left / WIDTH_PIXELS, b.right / WIDTH_PIXELS);
    fprintf(f, "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
            1 - b.top / height, 1 - b.bottom / height);
}

static void write_data(FILE *f, const struct routine *r, bool time)
{
    for (int side = 0; side < SIDES; side++) {
        fprintf(f, "$%s << EOD\n", side == CPU ? "cpu" : "gpu");
        write_side(f, r, side, time);
        fputs("EOD\n", f);
    }
}

static void write_bars(FILE *f, int side, double base)
{
    fprintf(f,
            "$%s using 3:4:1:2:(%.9g):4 with boxxyerror fillstyle solid 0.85 noborder "
            "linecolor rgb '%s' notitle",
            side == CPU ? "cpu" : "gpu", base, colour[side]);
}

/* A ring, on white so that it is seen in front of a bar. */
static void write_points(FILE *f, int side)
{
    const char *data = side == CPU ? "cpu" : "gpu";
    fprintf(f,
            ", $%s using 3:5 with points pointtype 7 pointsize 1.8 linecolor rgb "
            "'#ffffff' notitle",
            data);
    fprintf(f,
            ", $%s using 3:5 with points pointtype 6 pointsize 1.2 linewidth 2 "
            "linecolor rgb '%s' notitle",
            data, colour[!side]);
}

/* A side without calls has no data, which gnuplot would complain of. */
static void write_panel(FILE *f, const struct routine *r, bool time)
{
    struct range range = heights(r, time);
    const char *separator = "plot ";
    bool has[SIDES] = {false, false};
    for (size_t i = 0; i < r->size_count; i++)
        for (int side = 0; side < SIDES; side++)
            has[side] |= r->sizes[i].side[side].calls > 0;
    write_data(f, r, time);
    fprintf(f, "set yrange [%.9g:%.9g]\n", range.low, range.high);
    fputs(time ? "unset ylabel\nset format y '%.0s %cs'\n" : "set format y '%.0s%c'\n",
          f);
    if (!time) {
        fputs("set ylabel ", f);
        quote(f, r->name);
        fputs(" font ',15' noenhanced\n", f);
    }
    for (int side = 0; side < SIDES; side++) {
        if (!has[side])
            continue;
        fputs(separator, f);
        write_bars(f, side, range.low);
        if (time)
            write_points(f, side);
        separator = ", ";
    }
    fputc('\n', f);
}

/* Above all panels, as an empty one. */
static void write_legend(FILE *f, double height)
{
    static const char *const was[] = {"on the CPU", "on the GPU"};
    static const char *const other[] = {"CPU calls, had they run on the GPU",
                                        "GPU calls, had they run on the CPU"};
    struct box box = {60, WIDTH_PIXELS - 20, 42, 64};
    write_place(f, box, height);
    fputs("unset border\nunset tics\nset key center center horizontal reverse Left "
          "samplen 2 width 2 font ',11'\nset xrange [1:2]\nset yrange [1:2]\nplot ",
          f);
    for (int side = 0; side < SIDES; side++)
        fprintf(f,
                "NaN with boxes fillstyle solid 0.85 noborder linecolor rgb '%s' "
                "title '%s', ",
                colour[side], was[side]);
    for (int side = 0; side < SIDES; side++)
        fprintf(f,
                "NaN with points pointtype 6 pointsize 1.2 linewidth 2 linecolor rgb "
                "'%s' title '%s'%s",
                colour[!side], other[side], side == CPU ? ", " : "\n");
    fputs("set border 3 linecolor rgb '#606060'\nunset key\n"
          "set xtics nomirror out scale 0.6 textcolor rgb '#303030' font ',11'\n"
          "set ytics nomirror out scale 0.6 textcolor rgb '#303030' font ',11'\n"
          "set grid ytics linetype 1 linecolor rgb '#e2e2e2'\n",
          f);
}

static void write_title(FILE *f, const struct report *report, size_t rows)
{
    const struct process *first = &report->processes[0];
    char title[512];
    size_t n = report->process_count, left = 0;
    for (size_t i = rows; i < report->routine_count; i++)
        left += report->routines[i].size_count > 0;
    int used = snprintf(title, sizeof title, "%s: LAPACK calls by size",
                        n && first->program ? first->program : "batchlapack");
    for (size_t i = 0; i < n && used < 300; i++)
        if (report->processes[i].device) {
            used += snprintf(title + used, sizeof title - (size_t)used, ", %.100s",
                             report->processes[i].device);
            break;
        }
    if (n > 1 && used < 400)
        used += snprintf(title + used, sizeof title - (size_t)used, ", %zu processes", n);
    if (left && used < 400)
        snprintf(title + used, sizeof title - (size_t)used,
                 " (%zu more routines in the table)", left);
    fputs("set multiplot title ", f);
    quote(f, title);
    fputs(" font ',15' noenhanced\n", f);
}

static void write_script(FILE *f, const struct report *report, size_t rows,
                         const char *path)
{
    double height = HEAD_PIXELS + FOOT_PIXELS + ROW_PIXELS * (double)rows;
    struct range x = widths(report, rows);
    bool svg = strcasecmp(ending(path), ".svg") == 0;
    fprintf(f,
            svg ? "set terminal svg size %d,%.0f font ',12' "
                  "background rgb 'white'\n"
                : "set terminal png size %d,%.0f font ',12'\n",
            WIDTH_PIXELS, height);
    fputs("set output ", f);
    quote(f, path);
    fputc('\n', f);
    write_title(f, report, rows);
    write_legend(f, height);
    fputs("set logscale x 2\nset logscale y 10\n", f);
    fprintf(f, "set xrange [%.9g:%.9g]\n", x.low, x.high);
    for (size_t k = 0; k < rows; k++) {
        double top = HEAD_PIXELS + ROW_PIXELS * (double)k,
               middle = WIDTH_PIXELS / 2.0 + 20;
        if (k + 1 == rows)
            fputs("set xlabel 'n, the larger dimension' font ',12'\n", f);
        for (int time = 0; time < 2; time++) {
            struct box box = {time ? middle + 55 : 85,
                              time ? WIDTH_PIXELS - 20 : middle - 10, top + 6,
                              top + ROW_PIXELS - 30};
            write_place(f, box, height);
            fputs(k == 0 ? time ? "set title 'time' font ',13'\n"
                                : "set title 'calls' font ',13'\n"
                         : "unset title\n",
                  f);
            write_panel(f, &report->routines[k], time);
        }
    }
    fputs("unset multiplot\n", f);
}

/* ---- gnuplot ---- */

#define NOT_FOUND 127

/* A process that reads its script from *in. */
static pid_t start_gnuplot(int *in)
{
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[0], 0);
        close(ends[0]);
        close(ends[1]);
        execlp("gnuplot", "gnuplot", "-", (char *)NULL);
        _exit(NOT_FOUND);
    }
    close(ends[0]);
    *in = ends[1];
    return child;
}

int plot(const struct report *report, const char *path)
{
    size_t rows = 0;
    int in, status;
    struct stat made;
    while (rows < report->routine_count && rows < ROWS &&
           report->routines[rows].size_count)
        rows++;
    if (rows == 0)
        return complain(1, "nothing to plot");
    signal(SIGPIPE, SIG_IGN);
    pid_t child = start_gnuplot(&in);
    FILE *f = child > 0 ? fdopen(in, "w") : NULL;
    if (!f)
        return complain(1, "cannot start gnuplot: %s", strerror(errno));
    write_script(f, report, rows, path);
    fclose(f);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
        return complain(1, "no plot: gnuplot is not installed (Debian: gnuplot-nox). The "
                           "table does not need it");
    if (status != 0 || stat(path, &made) != 0 || made.st_size == 0)
        return complain(1, "no plot: gnuplot could not write %s", path);
    return 0;
}
