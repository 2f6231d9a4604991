/* The options of options.def, read once from the environment, and our few words on
 * stderr.
 *
 * Read on the first LAPACK call, so that a process that makes none pays nothing. An
 * unknown or malformed option is named once and ignored, an empty one is unset. Nothing
 * here decides anything.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bl.h"
#include "guard.h"

extern char **environ;

static const struct {
    const char *name, *values;
} options[BL_OPTIONS] = {
#define O(name, values, preset, text) {#name, values},
#include "options.def"
#undef O
};

#define PREFIX "BATCHLAPACK_"

struct bl_config bl_the_config;
#define config bl_the_config

/* ---- stderr ---- */

static struct stat stderr_at_start;
static bool stderr_open_at_start;

__attribute__((constructor)) static void remember_stderr(void)
{
    stderr_open_at_start = fstat(2, &stderr_at_start) == 0;
}

/* All of it; a broken pipe or a file limit is an error and no signal. */
int bl_write(int fd, const char *text, size_t length)
{
    sigset_t ours, before, pending;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    sigpending(&pending);
    ssize_t n = 0;
    while (length > 0 &&
           ((n = write(fd, text, length)) > 0 || (n < 0 && errno == EINTR))) {
        text += n > 0 ? n : 0;
        length -= (size_t)(n > 0 ? n : 0);
    }
    int error = length == 0 ? 0 : n < 0 ? errno : ENOSPC;
    int raised = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    if (raised && !sigismember(&pending, raised)) {
        sigemptyset(&ours);
        sigaddset(&ours, raised);
        sigtimedwait(&ours, NULL, &(struct timespec){0, 0});
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* A program started without stderr, or one that closed it, may have opened a file of its
 * own as descriptor 2: write only to what was stderr when the process began. */
void bl_write_stderr(const char *text, size_t length)
{
    struct stat now;
    int saved = errno;
    if (stderr_open_at_start && fstat(2, &now) == 0 &&
        now.st_dev == stderr_at_start.st_dev && now.st_ino == stderr_at_start.st_ino)
        bl_write(2, text, length);
    errno = saved;
}

/* Our name, the message and a newline; its length, 0 when there is none. */
size_t bl_line(char line[BL_LINE_MAX], const char *format, va_list ap)
{
    static const char name[] = "batchlapack: ";
    size_t used = sizeof name - 1;
    memcpy(line, name, sizeof name);
    if (vsnprintf(line + used, BL_LINE_MAX - used - 1, format, ap) < 0)
        return 0;
    used = strlen(line);
    line[used++] = '\n';
    return used;
}

void bl_say(const char *format, ...)
{
    char line[BL_LINE_MAX];
    va_list ap;
    va_start(ap, format);
    size_t length = bl_line(line, format, ap);
    va_end(ap);
    bl_write_stderr(line, length);
}

/* ---- values ---- */

static bool parse(enum bl_option o, const char *value)
{
    int64_t number = config.number[o];
    bool text;
    if (!bl_option_value(options[o].values, value, &number, &text) ||
        (text && !(config.text[o] = strdup(value))))
        return false;
    config.number[o] = number;
    return true;
}

/* What an MPI launcher says in one of these variables, each its own dialect. */
static int64_t launcher_says(const char *const names[], size_t count, int64_t preset)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(names[i]);
        int64_t n;
        bool text;
        if (value && bl_option_value("N", value, &n, &text))
            return n;
    }
    return preset;
}

static const char *const local_rank[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                         "SLURM_LOCALID"};
static const char *const world_rank[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                         "SLURM_PROCID"};
static const char *const local_size[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                         "SLURM_NTASKS_PER_NODE"};

static bool listed(const char *names)
{
    size_t length = strlen(program_invocation_short_name);
    while (names && *names) {
        size_t n = strcspn(names, ",");
        if (n == length && strncmp(names, program_invocation_short_name, n) == 0)
            return true;
        names += n + (names[n] != 0);
    }
    return false;
}

/* What a setuid program takes from nobody: a file to load, or one to write. */
static bool unsafe(int o, const char *value)
{
    return o == BL_OPTION_LAPACK || o == BL_OPTION_ENGINE ||
           ((o == BL_OPTION_REPORT || o == BL_OPTION_VERBOSE) &&
            bl_alternative("0|1", value) < 0);
}

static void read_environment(void)
{
    bool secure = getauxval(AT_SECURE) != 0;
    for (int o = 0; o < BL_OPTIONS; o++)
        config.number[o] = strchr(options[o].values, '|') ? 0 : -1;
    for (char **e = environ; e && *e; e++) {
        if (strncmp(*e, PREFIX, strlen(PREFIX)) != 0)
            continue;
        const char *name = *e + strlen(PREFIX);
        size_t n = strcspn(name, "=");
        int o = 0;
        while (o < BL_OPTIONS &&
               (strlen(options[o].name) != n || strncmp(options[o].name, name, n) != 0))
            o++;
        if (!name[n] || !name[n + 1]) /* NAME= is how scripts unset it */
            continue;
        if (o == BL_OPTIONS)
            bl_say("unknown option %.*s ignored", (int)(n + strlen(PREFIX)), *e);
        else if (secure && unsafe(o, name + n + 1))
            continue;
        else if (!parse((enum bl_option)o, name + n + 1))
            bl_say("option %s ignored: it takes %s", *e, options[o].values);
    }
    if (config.number[BL_OPTION_DEVICE] < 0) /* one GPU a process of the node */
        config.number[BL_OPTION_DEVICE] = launcher_says(local_rank, 3, 0);
    config.local_ranks = launcher_says(local_size, 3, 1);
    config.rank = launcher_says(world_rank, 3, 0);
    config.excluded = listed(config.text[BL_OPTION_EXCLUDE]);
    config.counted = config.number[BL_OPTION_REPORT] || config.number[BL_OPTION_VERBOSE];
    atomic_store_explicit(&config.ready, true, memory_order_release);
}

void bl_read_config(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct bl_guard guard;
    bl_guard_enter(&guard); /* a handler that calls LAPACK must not wait for us */
    pthread_once(&once, read_environment);
    bl_guard_leave(&guard);
}

/* Where this library lies, made absolute before the program can change its directory. */
static char own_directory[PATH_MAX];

__attribute__((constructor)) static void remember_own_directory(void)
{
    Dl_info self;
    char absolute[PATH_MAX];
    if (!dladdr((void *)bl_own_path, &self) || !self.dli_fname)
        return;
    const char *path = self.dli_fname;
    if (*path != '/' && !(path = realpath(path, absolute)))
        return;
    const char *slash = strrchr(path, '/');
    snprintf(own_directory, sizeof own_directory, "%.*s", (int)(slash - path), path);
}

/* The path of `name` in the directory that this library was loaded from. */
char *bl_own_path(char *out, size_t size, const char *name)
{
    int n = snprintf(out, size, "%s/%s", own_directory, name);
    return *own_directory && n > 0 && (size_t)n < size ? out : NULL;
}
