/* What happened to every call: counters, the account at exit (BATCHLAPACK_REPORT) and a
 * line a call (BATCHLAPACK_VERBOSE). With neither option set nothing is counted or timed.
 *
 * The dispatcher tells of each call. The account, a table on stderr or a JSON file for
 * batchlapack-report, is given when the process ends, and only by one that made an
 * eligible call (legal, not empty, no query). Nothing here may change what the program
 * sees: its files, errno, floating-point flags, signals and exit status stay its own, and
 * what cannot be written is said once.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bl.h"

static const char *const why[BL_REASONS] = {
#define W(name, text) text,
#include "reasons.def"
#undef W
};

/* ---- counting ---- */

/* Calls by the larger dimension n, two buckets an octave: bucket 2e holds 2^e <= n <
 * sqrt(2) * 2^e, bucket 2e + 1 the rest of the octave, the last one everything above. The
 * bounds are everybody's, so the ranks of a job add up. */
#define BUCKETS 64

struct side {
    _Atomic uint64_t calls, ns, in, out;
    _Atomic double operations, other; /* other: the other side's seconds in the model */
};
struct bucket {
    _Atomic uint64_t smallest, largest; /* smallest as UINT64_MAX - n: both grow from 0 */
    struct side side[2];                /* 0: CPU, 1: GPU */
};
static struct {
    _Atomic uint64_t nested, gpu, forwarded[BL_REASONS];
    struct bucket bucket[BUCKETS];
} stats[BL_IDS];
static _Atomic bool counting, eligible;
static _Atomic uint64_t start_up_ns;
static _Thread_local BL_FAST_TLS uint64_t waited_ns; /* for the start-up, in this call */

uint64_t bl_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static void add_real(_Atomic double *to, double x)
{
    double seen = atomic_load_explicit(to, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(to, &seen, seen + x))
        ;
}

static void raise_to(_Atomic uint64_t *to, uint64_t n)
{
    uint64_t seen = atomic_load_explicit(to, memory_order_relaxed);
    while (seen < n && !atomic_compare_exchange_weak(to, &seen, n))
        ;
}

static int bucket_of(uint64_t n)
{
    int zeros = __builtin_clzll(n);
    int i = 2 * (63 - zeros) + (n << zeros >= 0xB504F333F9DE6485u); /* sqrt(2) * 2^63 */
    return i < BUCKETS ? i : BUCKETS - 1;
}

/* The smallest n of a bucket. */
static uint64_t bucket_from(int i)
{
    uint64_t n = (i & 1 ? 0xB504F333F9DE6485u : (uint64_t)1 << 63) >> (63 - i / 2);
    while (bucket_of(n) < i)
        n++;
    return n;
}

void bl_stats_nested(unsigned id)
{
    atomic_store_explicit(&counting, true, memory_order_relaxed);
    add(&stats[id].nested, 1);
}

void bl_stats_startup(uint64_t ns)
{
    waited_ns += ns;
    raise_to(&start_up_ns, ns);
}

static void count_call(const struct bl_call *c, enum bl_reason where, uint64_t ns,
                       const struct bl_traffic *traffic)
{
    bool gpu = where == BL_ON_GPU;
    add(gpu ? &stats[c->id].gpu : &stats[c->id].forwarded[where], 1);
    if (!c->legal || c->query || c->empty)
        return;
    atomic_store_explicit(&eligible, true, memory_order_relaxed);
    uint64_t n = (uint64_t)bl_max(c->m, c->n);
    struct bucket *b = &stats[c->id].bucket[bucket_of(n)];
    struct side *side = &b->side[gpu];
    raise_to(&b->smallest, UINT64_MAX - n);
    raise_to(&b->largest, n);
    add(&side->calls, 1);
    add(&side->ns, ns);
    add(&side->in, traffic->in);
    add(&side->out, traffic->out);
    add_real(&side->operations,
             bl_flops(c->id, (double)c->m, (double)c->n, (double)c->nrhs));
    if (bl_option(BL_OPTION_REPORT) == BL_OUTPUT_FILE) {
        struct bl_cost cost = bl_cost(c, c->reference);
        add_real(&side->other, gpu ? cost.cpu : cost.gpu);
    }
}

/* ---- files that the options name ---- */

/* A relative name means the directory of the first counted call, whatever the program
 * changes to later. */
static char directory[PATH_MAX];

static void remember_directory(void)
{
    if (!getcwd(directory, sizeof directory - 1))
        *directory = 0;
    else
        strcat(directory, "/");
}

/* The name with %p, %h, %r and %% replaced; false when it is too long. */
static bool expand(char out[PATH_MAX], const char *name)
{
    size_t used = 0;
    int n = snprintf(out, PATH_MAX, "%s", *name == '/' ? "" : directory);
    for (; n >= 0 && (used += (size_t)n) < PATH_MAX && *name; name++) {
        char escape = *name == '%' ? name[1] : 0;
        char *to = out + used;
        size_t room = PATH_MAX - used;
        char host[256] = "";
        if (escape && strchr("phr%", escape))
            name++;
        if (escape == 'p')
            n = snprintf(to, room, "%ld", (long)getpid());
        else if (escape == 'r')
            n = snprintf(to, room, "%" PRId64, bl_config()->rank);
        else if (escape == 'h')
            n = gethostname(host, sizeof host - 1) ? -1 : snprintf(to, room, "%s", host);
        else
            n = snprintf(to, room, "%c", *name);
    }
    return n >= 0 && used < PATH_MAX;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* This process has the file open. */
static bool in_use(const struct stat *file)
{
    DIR *open_files = opendir("/proc/self/fd");
    bool found = false;
    struct stat one;
    for (struct dirent *e; open_files && !found && (e = readdir(open_files));)
        found = *e->d_name != '.' && fstat(atoi(e->d_name), &one) == 0 &&
                same_file(&one, file);
    if (open_files)
        closedir(open_files);
    return found;
}

/* Why `path` is not to be written, or NULL: there is nothing yet, or a file that begins
 * with our mark (or is empty) and that the program does not use. */
static const char *foreign(const char *path, const char *mark)
{
    struct stat file;
    char begin[16] = "";
    if (lstat(path, &file) != 0)
        return errno == ENOENT ? NULL : strerror(errno);
    if (!S_ISREG(file.st_mode))
        return "it is not a regular file";
    if (in_use(&file))
        return "the program uses this file";
    if (file.st_size == 0)
        return NULL;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return strerror(errno);
    ssize_t n = read(fd, begin, sizeof begin);
    close(fd);
    bool ours = n >= (ssize_t)strlen(mark) && strncmp(begin, mark, strlen(mark)) == 0;
    return ours ? NULL : "the file exists and is not batchlapack's; it stays as it is";
}

/* Open for writing, and never as one of the standard descriptors, which other code may
 * take for its own when the program had closed them. */
static int open_high(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags,
                  0666);
    if (fd < 0 || fd > 2)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 3), saved = errno;
    close(fd);
    errno = saved;
    return high;
}

/* ---- a line a call ---- */

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
    return lines.fd >= 0 && fstat(lines.fd, &now) == 0 && same_file(&now, &lines.file);
}

/* NULL, or why not. */
static const char *open_lines(void)
{
    if (!expand(lines.path, bl_option_text(BL_OPTION_VERBOSE)))
        return "the name is too long";
    const char *reason = foreign(lines.path, LINE_MARK);
    if (reason)
        return reason;
    lines.fd = open_high(lines.path, O_APPEND);
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
        [BL_WHY_FAULT] =
            "nothing was lost, the call was forwarded. If it comes back, look "
            "at the system log (dmesg)",
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
    if (where == BL_WHY_NOENGINE && bl_engine_device())
        bl_verbose("no engine: %s does not serve this call. Nothing is to be done",
                   bl_engine_device()->name);
    else if (where == BL_WHY_NOENGINE)
        bl_verbose(
            "no engine: %s. Set BATCHLAPACK_ENGINE or install the engine beside the "
            "library; if that is done, nvidia-smi says whether there is a GPU",
            bl_engine_why());
    else if (advice[where])
        bl_verbose("%s: %s", why[where], advice[where]);
}

static void say_call(const struct bl_call *c, enum bl_reason where, uint64_t ns)
{
    bool gpu = where == BL_ON_GPU;
    char nrhs[32] = "";
    if (c->has_b)
        snprintf(nrhs, sizeof nrhs, " nrhs=%" PRId64, c->nrhs);
    bl_verbose("%c%s m=%" PRId64 " n=%" PRId64 "%s %s%s%s %" PRIu64 ".%03u ms",
               bl_prefix(c->id), bl_row(c->id)->name, c->m, c->n, nrhs,
               gpu ? "GPU" : "CPU (", gpu ? "" : why[where], gpu ? "" : ")", ns / 1000000,
               (unsigned)(ns / 1000 % 1000));
    advise(where);
}

/* The program has just had its result: none of this is to be seen by it. */
void bl_stats_call(const struct bl_call *c, enum bl_reason where, uint64_t ns,
                   const struct bl_traffic *traffic)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno;
    fenv_t env;
    feholdexcept(&env);
    atomic_store_explicit(&counting, true, memory_order_relaxed);
    pthread_once(&once, remember_directory);
    ns -= waited_ns < ns ? waited_ns : ns;
    waited_ns = 0;
    if (bl_option(BL_OPTION_VERBOSE))
        say_call(c, where, ns);
    count_call(c, where, ns, traffic);
    fesetenv(&env);
    errno = saved;
}

/* ---- the table ---- */

/* A routine's calls over all sizes. */
struct total {
    uint64_t smallest, largest, cpu_calls, in, out, ns[2]; /* smallest as in a bucket */
    double operations[2];
};

static struct total total_of(unsigned id)
{
    struct total t = {0};
    for (int w = 0; w < BL_REASONS; w++)
        t.cpu_calls += stats[id].forwarded[w];
    for (int i = 0; i < BUCKETS; i++) {
        struct bucket *b = &stats[id].bucket[i];
        t.smallest = b->smallest > t.smallest ? b->smallest : t.smallest;
        t.largest = b->largest > t.largest ? b->largest : t.largest;
        for (int gpu = 0; gpu < 2; gpu++) {
            t.ns[gpu] += b->side[gpu].ns;
            t.operations[gpu] += b->side[gpu].operations;
            t.in += b->side[gpu].in;
            t.out += b->side[gpu].out;
        }
    }
    return t;
}

static bool called(unsigned id)
{
    return total_of(id).cpu_calls + stats[id].gpu + stats[id].nested > 0;
}

static void print_side(FILE *f, const struct total *t, int gpu)
{
    double s = (double)t->ns[gpu] * 1e-9;
    if (s > 0)
        fprintf(f, " %10.4f %9.2f", s, t->operations[gpu] / s * 1e-9);
    else
        fprintf(f, " %10s %9s", "-", "-");
}

static void print_row(FILE *f, unsigned id)
{
    struct total t = total_of(id);
    uint64_t gpu = stats[id].gpu, low = UINT64_MAX - t.smallest;
    char name[16], range[48] = "-";
    snprintf(name, sizeof name, "%c%s", bl_prefix(id), bl_row(id)->name);
    if (t.smallest && low == t.largest)
        snprintf(range, sizeof range, "%" PRIu64, low);
    else if (t.smallest)
        snprintf(range, sizeof range, "%" PRIu64 "..%" PRIu64, low, t.largest);
    fprintf(f, "%-8s %8" PRIu64 " %8" PRIu64 " %13s", name, t.cpu_calls + gpu,
            (uint64_t)stats[id].nested, range);
    fprintf(f, " %8" PRIu64 " %8" PRIu64, gpu, t.cpu_calls);
    print_side(f, &t, 1);
    print_side(f, &t, 0);
    fprintf(f, " %9.1f %9.1f\n", (double)t.in * 1e-6, (double)t.out * 1e-6);
    for (int w = 0; w < BL_REASONS; w++)
        if (stats[id].forwarded[w])
            fprintf(f, "         %8" PRIu64 " on the CPU: %s\n",
                    (uint64_t)stats[id].forwarded[w], why[w]);
}

static void print_table(FILE *f)
{
    const struct bl_device *device = bl_engine_device();
    fprintf(f, "\nbatchlapack %s, %s, process %ld: ", PACKAGE_VERSION,
            program_invocation_short_name, (long)getpid());
    if (device)
        fprintf(f, "%s\n", device->name);
    else
        fprintf(f, "no GPU used (%s)\n", bl_engine_why());
    fprintf(f, "%-8s %8s %8s %13s %8s %8s %10s %9s %10s %9s %9s %9s\n", "routine",
            "calls", "nested", "n", "on GPU", "on CPU", "GPU s", "GFLOP/s", "CPU s",
            "GFLOP/s", "MB in", "MB out");
    for (unsigned id = 0; id < BL_IDS; id++)
        if (called(id))
            print_row(f, id);
}

/* ---- the JSON file ---- */

/* Its first bytes. A report of several processes, as batchlapack-report --json writes it,
 * has the same form. Numbers are printed from integers: the program's locale may have
 * another decimal point. */
#define JSON_MARK "{\"batchlapack\":"

/* The length of the UTF-8 sequence at s, 0 when it is none. */
static size_t utf8(const unsigned char *s)
{
    size_t length = *s < 0x80                 ? 1
                    : *s >= 0xC2 && *s < 0xE0 ? 2
                    : *s >= 0xE0 && *s < 0xF0 ? 3
                    : *s >= 0xF0 && *s < 0xF5 ? 4
                                              : 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, beyond the last character. */
    if ((*s == 0xE0 && s[1] < 0xA0) || (*s == 0xED && s[1] > 0x9F) ||
        (*s == 0xF0 && s[1] < 0x90) || (*s == 0xF4 && s[1] > 0x8F))
        return 0;
    return length;
}

static void json_string(FILE *f, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', f);
    while (*s) {
        size_t length = utf8(s);
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if (length == 0 || *s < ' ')
            fprintf(f, "\\u%04x", *s);
        else
            fwrite(s, 1, length, f);
        s += length ? length : 1;
    }
    fputc('"', f);
}

static void json_seconds(FILE *f, uint64_t ns)
{
    fprintf(f, "%" PRIu64 ".%09" PRIu64, ns / 1000000000u, ns % 1000000000u);
}

static void json_option(FILE *f, enum bl_option o, const char *values)
{
    const struct bl_config *config = bl_config();
    int64_t number = config->number[o];
    if (config->text[o]) {
        json_string(f, config->text[o]);
    } else if (strchr(values, '|')) {
        for (; number > 0; number--)
            values += strcspn(values, "|") + 1;
        fprintf(f, "\"%.*s\"", (int)strcspn(values, "|"), values);
    } else if (number >= 0) {
        fprintf(f, "%" PRId64, number);
    } else {
        fputs("null", f);
    }
}

static void json_options(FILE *f)
{
    static const struct {
        const char *name, *values;
    } options[BL_OPTIONS] = {
#define O(name, values, preset, text) {#name, values},
#include "options.def"
#undef O
    };
    for (int o = 0; o < BL_OPTIONS; o++) {
        fprintf(f, "%s\"%s\": ", o ? ", " : "", options[o].name);
        json_option(f, (enum bl_option)o, options[o].values);
    }
}

static void json_process(FILE *f)
{
    const struct bl_device *device = bl_engine_device();
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    fputs("  {\"program\": ", f);
    json_string(f, program_invocation_short_name);
    fprintf(f, ", \"pid\": %ld, \"host\": ", (long)getpid());
    json_string(f, host);
    fprintf(f, ", \"rank\": %" PRId64 ",\n   \"device\": ", bl_config()->rank);
    if (device)
        json_string(f, device->name);
    else
        fputs("null", f);
    fputs(", \"why_none\": ", f);
    if (device)
        fputs("null", f);
    else
        json_string(f, bl_engine_why());
    fputs(", \"start_up_seconds\": ", f);
    if (device && start_up_ns)
        json_seconds(f, start_up_ns);
    else
        fputs("null", f);
    fputs(",\n   \"options\": {", f);
    json_options(f);
    fputs("}}", f);
}

static void json_side(FILE *f, const struct side *side)
{
    fprintf(f, "{\"calls\": %" PRIu64 ", \"seconds\": ", (uint64_t)side->calls);
    json_seconds(f, side->ns);
    fprintf(f, ", \"operations\": %.0f", side->operations);
    fprintf(f, ", \"bytes_in\": %" PRIu64 ", \"bytes_out\": %" PRIu64, (uint64_t)side->in,
            (uint64_t)side->out);
    fputs(", \"predicted_other_seconds\": ", f);
    json_seconds(f,
                 side->other < 1e10 ? (uint64_t)(side->other * 1e9 + 0.5) : UINT64_MAX);
    fputc('}', f);
}

static void json_sizes(FILE *f, unsigned id)
{
    const char *separator = "";
    for (int i = 0; i < BUCKETS; i++) {
        const struct bucket *b = &stats[id].bucket[i];
        if (!b->smallest)
            continue;
        fprintf(f, "%s\n    {\"from\": %" PRIu64, separator, bucket_from(i));
        fprintf(f, ", \"smallest\": %" PRIu64 ", \"largest\": %" PRIu64,
                UINT64_MAX - b->smallest, (uint64_t)b->largest);
        fputs(",\n     \"cpu\": ", f);
        json_side(f, &b->side[0]);
        fputs(",\n     \"gpu\": ", f);
        json_side(f, &b->side[1]);
        fputc('}', f);
        separator = ",";
    }
}

static void json_routine(FILE *f, unsigned id)
{
    const char *separator = "";
    fprintf(f, "  {\"routine\": \"%c%s\"", bl_prefix(id), bl_row(id)->name);
    fprintf(f, ", \"calls\": %" PRIu64 ", \"nested\": %" PRIu64 ", \"gpu\": %" PRIu64,
            total_of(id).cpu_calls + stats[id].gpu, (uint64_t)stats[id].nested,
            (uint64_t)stats[id].gpu);
    fputs(",\n   \"cpu\": {", f);
    for (int w = 0; w < BL_REASONS; w++) {
        if (!stats[id].forwarded[w])
            continue;
        fprintf(f, "%s\"%s\": %" PRIu64, separator, why[w],
                (uint64_t)stats[id].forwarded[w]);
        separator = ", ";
    }
    fputs("},\n   \"sizes\": [", f);
    json_sizes(f, id);
    fputs("]}", f);
}

static void print_json(FILE *f)
{
    const char *separator = "";
    fputs(JSON_MARK " \"" PACKAGE_VERSION "\",\n \"processes\": [\n", f);
    json_process(f);
    fputs("],\n \"routines\": [", f);
    for (unsigned id = 0; id < BL_IDS; id++) {
        if (!called(id))
            continue;
        fprintf(f, "%s\n", separator);
        json_routine(f, id);
        separator = ",";
    }
    fputs("]}\n", f);
}

/* 0, or an errno. Under another name first: a reader never finds half a report. */
static int replace_file(const char *path, const char *text, size_t length)
{
    char *new = NULL;
    if (asprintf(&new, "%s.%ld-%" PRIx64, path, (long)getpid(), bl_now()) < 0)
        return ENOMEM;
    int fd = open_high(new, O_EXCL);
    int error = fd < 0 ? errno : bl_write(fd, text, length);
    if (fd >= 0 && close(fd) != 0 && !error)
        error = errno;
    if (!error && rename(new, path) != 0)
        error = errno;
    if (fd >= 0 && error)
        unlink(new);
    free(new);
    return error;
}

static void write_file(const char *text, size_t length)
{
    const char *name = bl_option_text(BL_OPTION_REPORT), *reason;
    char path[PATH_MAX];
    if (!expand(path, name)) {
        reason = "the name is too long";
        snprintf(path, sizeof path, "%s", name);
    } else {
        reason = foreign(path, JSON_MARK);
    }
    int error = reason ? 0 : replace_file(path, text, length);
    if (error)
        reason = strerror(error);
    if (reason)
        bl_say("no report is written to %.600s: %s", path, reason);
}

/* ---- the end, and fork ---- */

/* Built in memory, written at once: one account, whatever other processes print. */
static void report(bool file)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (!f)
        return;
    if (file)
        print_json(f);
    else
        print_table(f);
    if (fclose(f) == 0 && file)
        write_file(text, length);
    else if (text)
        bl_write_stderr(text, length);
    free(text);
}

__attribute__((destructor)) static void report_at_exit(void)
{
    fenv_t env;
    if (!atomic_load(&eligible) || !bl_option(BL_OPTION_REPORT))
        return;
    feholdexcept(&env);
    report(bl_option(BL_OPTION_REPORT) == BL_OUTPUT_FILE);
    fesetenv(&env);
}

/* A forked child gives account of its own calls, and its files are its own. */
static void after_fork_in_child(void)
{
    if (!atomic_load(&counting))
        return;
    memset((void *)stats, 0, sizeof stats);
    atomic_store(&counting, false);
    atomic_store(&eligible, false);
    pthread_mutex_init(&lines.lock, NULL);
    if (lines_open())
        close(lines.fd);
    lines.fd = -1;
}

__attribute__((constructor)) static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}
