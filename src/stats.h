/* What the files that tell what happened share: the counters (stats.c), the account of
 * them at exit (report.c), a line a call (verbose.c) and the files that those two write
 * (named_file.c). No other file of the shim includes this one: what the others call is in
 * bl.h.
 */
#ifndef BL_STATS_H
#define BL_STATS_H

#include <limits.h>
#include <sys/stat.h>

#include "bl.h"

/* ---- the counters (stats.c) ---- */

/* Calls by the larger dimension n, two buckets an octave: bucket 2e holds 2^e <= n <
 * sqrt(2) * 2^e, bucket 2e + 1 the rest of the octave, the last one everything above. The
 * bounds are everybody's, so the ranks of a job add up. */
#define BUCKETS 64

struct bl_side {
    _Atomic uint64_t calls, ns, in, out;
    _Atomic double operations, other; /* other: the other side's seconds in the model */
};
struct bl_bucket {
    _Atomic uint64_t smallest, largest; /* smallest as UINT64_MAX - n: both grow from 0 */
    struct bl_side side[2];             /* 0: CPU, 1: GPU */
};
struct bl_counters {
    _Atomic uint64_t nested, gpu, forwarded[BL_REASONS];
    struct bl_bucket bucket[BUCKETS];
};
extern struct bl_counters bl_stats[BL_IDS];
extern _Atomic uint64_t bl_startup_ns; /* the longest that a call waited for the engine */
extern const char *const bl_reason_text[BL_REASONS];
uint64_t bl_bucket_from(int i); /* the smallest n of a bucket */

/* ---- the account (report.c) ---- */

/* Write it, to the file that BATCHLAPACK_REPORT names or to stderr. */
void bl_report(bool file);

/* ---- a line a call (verbose.c) ---- */

void bl_verbose_call(const struct bl_call *c, enum bl_reason where, uint64_t ns);
void bl_verbose_after_fork(void);

/* ---- files that options name (named_file.c) ---- */

/* A relative name means the directory in which this was called, whatever the program
 * changes to later. */
void bl_remember_directory(void);
/* The name with %p, %h, %r and %% replaced; false when it is too long. */
bool bl_expand(char out[PATH_MAX], const char *name);
bool bl_same_file(const struct stat *a, const struct stat *b);
/* Why `path` is not to be written, or NULL: there is nothing yet, or a file that begins
 * with our mark (or is empty) and that the program does not use. */
const char *bl_foreign(const char *path, const char *mark);
/* Open for writing, never as one of the standard descriptors. -1 with errno. */
int bl_open_high(const char *path, int flags);

#endif
