/* What the files of batchlapack-report share: the accounts of one or many processes, as
 * report.c writes them, added up. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "command.h"

enum { CPU, GPU, SIDES };

struct side {
    uint64_t calls, ns, in, out;
    uint64_t other_ns; /* what the cost model gives the same calls on the other side */
    double operations;
};

/* The calls whose larger dimension lies in one bucket: `from` and up, half an octave. */
struct size {
    uint64_t from, smallest, largest;
    struct side side[SIDES];
};

struct reason {
    char *text;
    uint64_t calls;
};

struct routine {
    char *name;
    uint64_t calls, nested, gpu;
    struct reason *reasons; /* of the calls on the CPU */
    struct size *sizes;     /* ascending */
    size_t reason_count, size_count;
};

struct process {
    char *json; /* as it stands in the file, for the merged one */
    char *program, *host, *device, *why_none;
    uint64_t rank, start_up_ns;
};

struct report {
    char *version; /* NULL: nothing in it yet */
    struct process *processes;
    struct routine *routines;
    size_t process_count, routine_count;
};

/* ---- report_file.c ---- */

/* Add the file's account. False, with a message, when it is none; `to` is as before. */
bool add_file(struct report *to, const char *path);
void print_json(const struct report *report, FILE *f);

/* ---- report_estimate.c ---- */

/* Where an estimate is from, one or both. */
enum { MEASURED = 1, MODEL = 2 };

struct estimate {
    double seconds;
    int by;
};

/* The calls that one size has on `side`, had they run on the other one. */
struct estimate elsewhere(const struct routine *r, const struct size *s, int side);

/* What the GPU saved: its calls' time on the CPU less their time. */
struct estimate saved(const struct routine *r);

/* What would have been saved (lost, if negative) with all calls from n on upward on the
 * GPU and the others on the CPU. */
struct estimate saved_from(const struct routine *r, double n);

/* The n for which that is most; more than any size: all on the CPU. */
double best_threshold(const struct routine *r);
double seconds_of(const struct routine *r, int side);

/* ---- report_plot.c ---- */

/* Plot into an .svg or .png file, by gnuplot. 0, or 1 with a message. */
int plot(const struct report *report, const char *path);
bool can_plot(const char *path); /* by its name */

#endif
