/* A line a call, where BATCHLAPACK_VERBOSE says: stderr or a file.
 *
 * bl_stats_call has a line written for each call, from any thread, and bl_verbose is
 * there for the engine's messages too. The program must not notice: errno, signals,
 * cancellation and its own descriptors stay as they are, a line is written whole, and a
 * file that cannot be written is said once and then left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stats.h"

#define LINE_MARK "batchlapack: "

/* The file of BATCHLAPACK_VERBOSE. The program may close our descriptor, or put a file of
 * its own in its place: `file` is what it was. */
static struct {
    pthread_mutex_t lock; /* held with all signals blocked: no handler comes back in */
    int fd;               /* -1: not open */
    bool failed;
    struct stat file;
    char path[PATH_MAX];
} lines = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static bool lines_open(void)
{
    struct stat now;
    return lines.fd >= 0 && fstat(lines.fd, &now) == 0 && bl_same_file(&now, &lines.file);
}

/* NULL, or why not. */
static const char *open_lines(void)
{
    if (!bl_expand(lines.path, bl_option_text(BL_OPTION_VERBOSE)))
        return "the name is too long";
    const char *reason = bl_foreign(lines.path, LINE_MARK);
    if (reason)
        return reason;
    lines.fd = bl_open_high(lines.path, O_APPEND);
    return lines.fd < 0 || fstat(lines.fd, &lines.file) != 0 ? strerror(errno) : NULL;
}

static void write_line(const char *line, size_t length)
{
    sigset_t all, before;
    const char *reason = NULL;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&lines.lock);
    if (!lines.failed && !lines_open())
        reason = open_lines();
    if (!lines.failed && !reason) {
        int error = bl_write(lines.fd, line, length);
        reason = error ? strerror(error) : NULL;
    }
    if (reason) {
        lines.failed = true;
        bl_say("no lines are written to %.600s: %s", lines.path, reason);
    }
    pthread_mutex_unlock(&lines.lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void bl_verbose(const char *format, ...)
{
    int64_t where = bl_option(BL_OPTION_VERBOSE);
    int saved = errno, cancel;
    char line[BL_LINE_MAX];
    va_list ap;
    if (where == BL_OUTPUT_NONE)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    va_start(ap, format);
    size_t length = bl_line(line, format, ap);
    va_end(ap);
    if (where == BL_OUTPUT_STDERR)
        bl_write_stderr(line, length);
    else
        write_line(line, length);
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

/* What to do about a reason, once a process. */
static void advise(enum bl_reason where)
{
    static _Atomic bool said[BL_REASONS + 1];
    static const char *const advice[BL_REASONS + 1] = {
        [BL_WHY_OFF] = "it stays off for this process. The lines above say what failed; "
                       "look at the system log (dmesg) and start the program again",
        [BL_WHY_MEMORY] =
            "other programs hold the device's memory, or BATCHLAPACK_MEMORY "
            "is too small for this size",
        [BL_WHY_NOTFINITE] =
            "what becomes of them in a large complex matrix is left to the program's own "
            "LAPACK",
        [BL_WHY_FAULT] =
            "nothing was lost, the call was forwarded. If it comes back, look "
            "at the system log (dmesg)",
        [BL_WHY_UNSERVED] = "nothing is to be done",
        [BL_WHY_FORKED] =
            "a GPU does not survive fork: start the child with exec, or fork "
            "before the first call",
        [BL_WHY_ROUNDING] =
            "the GPU rounds to nearest only: call fesetround(FE_TONEAREST)",
        [BL_WHY_STARTUP] =
            "the GPU starts when the calls are predicted to save more than "
            "its start-up costs. BATCHLAPACK_MODE=gpu starts it at once",
    };
    if (atomic_exchange_explicit(&said[where], true, memory_order_relaxed))
        return;
    if (where == BL_WHY_NOENGINE)
        bl_verbose("%s: %s. Set BATCHLAPACK_ENGINE or install the engine beside the "
                   "library; if that is done, nvidia-smi says whether there is a GPU",
                   bl_reason_text[where], bl_engine_why());
    else if (advice[where])
        bl_verbose("%s: %s", bl_reason_text[where], advice[where]);
}

void bl_verbose_call(const struct bl_call *c, enum bl_reason where, uint64_t ns)
{
    bool gpu = where == BL_ON_GPU;
    char nrhs[32] = "", batch[32] = "";
    if (c->has_b)
        snprintf(nrhs, sizeof nrhs, " nrhs=%" PRId64, c->nrhs);
    if (c->id >= BL_LAPACK_IDS)
        snprintf(batch, sizeof batch, " batch=%" PRId64, c->batch);
    bl_verbose("%c%s m=%" PRId64 " n=%" PRId64 "%s%s %s%s%s %" PRIu64 ".%03u ms",
               bl_prefix(c->id), bl_row(c->id)->name, c->m, c->n, nrhs, batch,
               gpu ? "GPU" : "CPU (", gpu ? "" : bl_reason_text[where], gpu ? "" : ")",
               ns / 1000000, (unsigned)(ns / 1000 % 1000));
    advise(where);
}

void bl_verbose_after_fork(void)
{
    pthread_mutex_init(&lines.lock, NULL);
    if (lines_open())
        close(lines.fd);
    lines.fd = -1;
}
