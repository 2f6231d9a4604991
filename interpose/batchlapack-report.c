/* batchlapack-report: one table, and a plot, from the files of BATCHLAPACK_REPORT=name.
 *
 * Run from a shell with the files of one or many processes. Says what ran where, what the
 * GPU saved and what other thresholds would have saved. Reads these files and nothing
 * else; needs no GPU.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static const char help[] =
    "usage: batchlapack-report [options] file...\n\n"
    "Adds up the files that BATCHLAPACK_REPORT=name wrote and prints one table.\n\n"
    "  -o FILE       plot calls and time by size into FILE, .svg or .png (by gnuplot)\n"
    "  --threshold ROUTINE=N\n"
    "                say what it would have saved to run the routine's calls from size "
    "N\n"
    "                on the GPU and the others on the CPU; may be given several times\n"
    "  --json        print the sum as JSON, in the form of the files, and no table\n"
    "  --version     print the version\n"
    "  --help        print this text\n\n"
    "Exit: 0; 1 when a file was skipped or the plot could not be made; 2 for a mistake "
    "in\n"
    "using it.\n";

/* ---- whose account it is ---- */

#define SHOWN 4

/* The different texts that processes have at `offset`, and how many have each. */
static void print_different(const struct report *report, const char *before,
                            size_t offset)
{
    const char *texts[SHOWN];
    size_t counts[SHOWN] = {0}, different = 0;
    bool more = false;
    for (size_t i = 0; i < report->process_count; i++) {
        const char *text = *(char **)((char *)&report->processes[i] + offset);
        size_t k = 0;
        while (text && k < different && strcmp(texts[k], text) != 0)
            k++;
        if (!text || k == SHOWN) {
            more |= text != NULL;
            continue;
        }
        if (k == different)
            texts[different++] = text;
        counts[k]++;
    }
    for (size_t k = 0; k < different; k++) {
        printf("%s%s", k ? ", " : before, texts[k]);
        if (counts[k] < report->process_count)
            printf(" (%zu)", counts[k]);
    }
    fputs(more ? ", ..." : "", stdout);
}

/* The library's own words for it. */
static const char *no_gpu(void)
{
    enum {
#define W(name, text) name,
#include "reasons.def"
#undef W
    };
    static const char *const reasons[] = {
#define W(name, text) text,
#include "reasons.def"
#undef W
    };
    return reasons[NOENGINE];
}

static void print_heading(const struct report *report)
{
    uint64_t low = UINT64_MAX, high = 0, start_up = 0;
    size_t n = report->process_count, started = 0;
    bool with_gpu = false;
    for (size_t i = 0; i < n; i++) {
        const struct process *p = &report->processes[i];
        low = p->rank < low ? p->rank : low;
        high = p->rank > high ? p->rank : high;
        start_up += p->start_up_ns;
        started += p->start_up_ns != 0;
        with_gpu |= p->device != NULL;
    }
    printf("batchlapack %s: %zu process%s", report->version, n, n == 1 ? "" : "es");
    print_different(report, " of ", offsetof(struct process, program));
    print_different(report, " on ", offsetof(struct process, host));
    if (high > 0)
        printf(", ranks %" PRIu64 " to %" PRIu64, low, high);
    putchar('\n');
    print_different(report, "GPU: ", offsetof(struct process, device));
    char none[64];
    snprintf(none, sizeof none, "%s%s: ", with_gpu ? "; " : "", no_gpu());
    print_different(report, none, offsetof(struct process, why_none));
    if (started)
        printf("; start-up %.2f s (%zu process%s)", (double)start_up * 1e-9, started,
               started == 1 ? "" : "es");
    puts("\n");
}

/* ---- the table ---- */

/* Gains too small to act on are not shown: of a routine's time, and in seconds. */
#define WORTH_SHARE 0.01
#define WORTH_SECONDS 1e-3

struct row {
    uint64_t calls, gpu;
    double seconds[SIDES];
    struct estimate saved, better;
    double threshold;
};

static const char *by_text(int by)
{
    static const char *const texts[] = {"-", "measured", "model", "both"};
    return texts[by];
}

static struct row row_of(const struct routine *r)
{
    struct row row = {.calls = r->calls, .gpu = r->gpu, .saved = saved(r)};
    for (int side = 0; side < SIDES; side++)
        row.seconds[side] = seconds_of(r, side);
    row.threshold = best_threshold(r);
    row.better = saved_from(r, row.threshold);
    double worth = (row.seconds[CPU] + row.seconds[GPU]) * WORTH_SHARE;
    if (row.better.seconds < worth || row.better.seconds < WORTH_SECONDS)
        row.better = (struct estimate){0, 0};
    return row;
}

static void print_seconds(double seconds, bool any)
{
    if (any)
        printf(" %11.4f", seconds);
    else
        printf(" %11s", "-");
}

static void print_row(const char *name, const struct row *row)
{
    uint64_t cpu = row->calls >= row->gpu ? row->calls - row->gpu : 0;
    char best[32] = "-";
    printf("%-8s %10" PRIu64 " %10" PRIu64 " %10" PRIu64, name, row->calls, row->gpu,
           cpu);
    print_seconds(row->seconds[GPU], row->seconds[GPU] > 0);
    print_seconds(row->seconds[CPU], row->seconds[CPU] > 0);
    print_seconds(row->saved.seconds, row->saved.by);
    printf(" %-8s", by_text(row->saved.by));
    if (row->better.by && row->threshold > 0)
        snprintf(best, sizeof best, isinf(row->threshold) ? "never" : "n = %.0f",
                 row->threshold);
    printf(" %10s", best);
    print_seconds(row->better.seconds, row->better.by);
    printf(" %s\n", by_text(row->better.by));
}

static void print_reasons(const struct routine *r)
{
    for (size_t i = 0; i < r->reason_count; i++)
        printf("         %10" PRIu64 " on the CPU: %s\n", r->reasons[i].calls,
               r->reasons[i].text);
}

static void add_row(struct row *to, const struct row *from)
{
    if (__builtin_add_overflow(to->calls, from->calls, &to->calls))
        to->calls = UINT64_MAX;
    if (__builtin_add_overflow(to->gpu, from->gpu, &to->gpu))
        to->gpu = UINT64_MAX;
    for (int side = 0; side < SIDES; side++)
        to->seconds[side] += from->seconds[side];
    to->saved.seconds += from->saved.seconds;
    to->saved.by |= from->saved.by;
    to->better.seconds += from->better.seconds;
    to->better.by |= from->better.by;
}

static const char legend[] =
    "\n"
    "GPU saved: what the GPU's calls would have taken on the CPU, less what they took.\n"
    "best from: the size from which calls would best go to the GPU, smaller ones to the\n"
    "  CPU, and what that would have saved; -, nothing worth a change.\n"
    "by: measured, the other side's rate in these files at sizes within a factor of "
    "two;\n"
    "  model, the library's cost model. The engine's start-up is in neither.\n";

static void print_table(const struct report *report)
{
    struct row total = {0};
    printf("%-8s %10s %10s %10s %11s %11s %11s %-8s %10s %11s %s\n", "routine", "calls",
           "on GPU", "on CPU", "GPU s", "CPU s", "GPU saved s", "by", "best from",
           "would save s", "by");
    for (size_t i = 0; i < report->routine_count; i++) {
        const struct routine *r = &report->routines[i];
        struct row row = row_of(r);
        if (r->calls == 0)
            continue; /* nested calls are part of others */
        print_row(r->name, &row);
        print_reasons(r);
        add_row(&total, &row);
    }
    print_row("total", &total);
    fputs(legend, stdout);
}

/* ---- other thresholds ---- */

struct question {
    char routine[32];
    double n;
};

static bool parse_question(struct question *q, const char *text)
{
    char rest;
    return sscanf(text, "%31[^=]=%lf%c", q->routine, &q->n, &rest) == 2 && q->n >= 0 &&
           isfinite(q->n);
}

static void answer(const struct report *report, const struct question *q)
{
    for (size_t i = 0; i < report->routine_count; i++) {
        const struct routine *r = &report->routines[i];
        if (strcmp(r->name, q->routine) != 0)
            continue;
        struct estimate change = saved_from(r, q->n);
        double took = seconds_of(r, CPU) + seconds_of(r, GPU);
        printf("%s from n = %.0f on the GPU: %.4f s instead of %.4f s, ", r->name, q->n,
               took - change.seconds, took);
        if (change.by)
            printf("%s %.4f s (%s)\n",
                   change.seconds < 0 ? "would have cost" : "would have saved",
                   fabs(change.seconds), by_text(change.by));
        else
            puts("as it was");
        return;
    }
    printf("%s: no calls\n", q->routine);
}

/* ---- the command line ---- */

struct job {
    const char *plot;
    bool json, failed;
    struct question *questions;
    size_t question_count;
    struct report report;
};

/* The value of option `name` at argv[*i], which may be the next word. NULL: not it. */
static const char *value_of(const char *name, char **argv, int *i)
{
    size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) != 0)
        return NULL;
    const char *rest = argv[*i] + length;
    if (*rest == '=' && name[1] == '-')
        return rest + 1;
    if (*rest)
        return name[1] == '-' ? NULL : rest;
    if (!argv[*i + 1])
        exit(complain(2, "option %s needs a value (--help says how)", name));
    return argv[++*i];
}

static void read_option(struct job *job, char **argv, int *i)
{
    const char *value;
    if (strcmp(argv[*i], "--json") == 0) {
        job->json = true;
    } else if ((value = value_of("-o", argv, i))) {
        job->plot = value;
        if (!can_plot(value))
            exit(complain(2, "-o %s: the name must end in .svg or .png", value));
    } else if ((value = value_of("--threshold", argv, i))) {
        job->questions = must(
            realloc(job->questions, (job->question_count + 1) * sizeof *job->questions));
        if (!parse_question(&job->questions[job->question_count++], value))
            exit(complain(2, "--threshold %s: it takes a routine and a size, dgetrf=512",
                          value));
    } else {
        exit(complain(2, "unknown option %s (--help lists them)", argv[*i]));
    }
}

static int by_time(const void *a, const void *b)
{
    double x = seconds_of(a, CPU) + seconds_of(a, GPU);
    double y = seconds_of(b, CPU) + seconds_of(b, GPU);
    return (x < y) - (x > y);
}

static void print_account(struct job *job)
{
    struct report *report = &job->report;
    if (report->routine_count)
        qsort(report->routines, report->routine_count, sizeof *report->routines, by_time);
    if (job->json) {
        print_json(report, stdout);
        return;
    }
    print_heading(report);
    print_table(report);
    if (job->question_count)
        putchar('\n');
    for (size_t i = 0; i < job->question_count; i++)
        answer(report, &job->questions[i]);
}

int main(int argc, char **argv)
{
    struct job job = {0};
    bool options = true, files = false;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && strcmp(argv[i], "--help") == 0)
            return fputs(help, stdout) < 0;
        else if (options && strcmp(argv[i], "--version") == 0)
            return puts("batchlapack-report " PACKAGE_VERSION) < 0;
        else if (options && argv[i][0] == '-' && argv[i][1])
            read_option(&job, argv, &i);
        else if ((files = true) && !add_file(&job.report, argv[i]))
            job.failed = true;
    }
    if (!files)
        return complain(2,
                        "no file named. Run the program with BATCHLAPACK_REPORT=%s, then "
                        "name what it wrote (--help says more)",
                        "report-%h-%p.json");
    if (!job.report.version)
        return 1;
    print_account(&job);
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain(1, "cannot write the table");
    if (job.plot && plot(&job.report, job.plot) != 0)
        job.failed = true;
    return job.failed;
}
