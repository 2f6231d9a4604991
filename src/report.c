/* The account of a process: a table on stderr or a JSON file for batchlapack-report, as
 * BATCHLAPACK_REPORT says.
 *
 * stats.c has it written when the process ends, from the counters it kept. Other threads
 * may still be counting: a number is as it was when it was read. The account is built in
 * memory and written at once; a file that is not batchlapack's stays as it is, and what
 * cannot be written is said once and changes nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stats.h"

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
        t.cpu_calls += bl_stats[id].forwarded[w];
    for (int i = 0; i < BUCKETS; i++) {
        struct bl_bucket *b = &bl_stats[id].bucket[i];
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
    return total_of(id).cpu_calls + bl_stats[id].gpu + bl_stats[id].nested > 0;
}

static void print_side(FILE *f, const struct total *t, int gpu)
{
    double s = (double)t->ns[gpu] * 1e-9;
    if (s > 0)
        fprintf(f, " %10.4f %9.2f", s, t->operations[gpu] / s * 1e-9);
    else
        fprintf(f, " %10s %9s", "-", "-");
}

static void name_of(char name[BL_SYMBOL_MAX], unsigned id)
{
    snprintf(name, BL_SYMBOL_MAX, "%c%s", bl_prefix(id), bl_row(id)->name);
}

static void print_row(FILE *f, unsigned id, int width)
{
    struct total t = total_of(id);
    uint64_t gpu = bl_stats[id].gpu, low = UINT64_MAX - t.smallest;
    char name[BL_SYMBOL_MAX], range[48] = "-";
    name_of(name, id);
    if (t.smallest && low == t.largest)
        snprintf(range, sizeof range, "%" PRIu64, low);
    else if (t.smallest)
        snprintf(range, sizeof range, "%" PRIu64 "..%" PRIu64, low, t.largest);
    fprintf(f, "%-*s %8" PRIu64 " %8" PRIu64 " %13s", width, name, t.cpu_calls + gpu,
            (uint64_t)bl_stats[id].nested, range);
    fprintf(f, " %8" PRIu64 " %8" PRIu64, gpu, t.cpu_calls);
    print_side(f, &t, 1);
    print_side(f, &t, 0);
    fprintf(f, " %9.1f %9.1f\n", (double)t.in * 1e-6, (double)t.out * 1e-6);
    for (int w = 0; w < BL_REASONS; w++)
        if (bl_stats[id].forwarded[w])
            fprintf(f, "%-*s %8" PRIu64 " on the CPU: %s\n", width, "",
                    (uint64_t)bl_stats[id].forwarded[w], bl_reason_text[w]);
}

static void print_device(FILE *f, const struct bl_device *device)
{
    fprintf(f, "%s (device %d", device->name, device->ordinal);
    if (device->capability)
        fprintf(f, ", sm_%d", device->capability);
    fputs(")\n", f);
}

static void print_table(FILE *f)
{
    const struct bl_device *device = bl_engine_device();
    int width = 8; /* of the first column: the longest name */
    for (unsigned id = 0; id < BL_IDS; id++) {
        char name[BL_SYMBOL_MAX];
        name_of(name, id);
        if (called(id))
            width = (int)bl_max(width, (int64_t)strlen(name));
    }
    fprintf(f, "\nbatchlapack %s, %s, process %ld: ", PACKAGE_VERSION,
            program_invocation_short_name, (long)getpid());
    if (device)
        print_device(f, device);
    else
        fprintf(f, "%s: %s\n", bl_reason_text[BL_WHY_NOENGINE], bl_engine_why());
    fprintf(f, "%-*s %8s %8s %13s %8s %8s %10s %9s %10s %9s %9s %9s\n", width, "routine",
            "calls", "nested", "n", "on GPU", "on CPU", "GPU s", "GFLOP/s", "CPU s",
            "GFLOP/s", "MB in", "MB out");
    for (unsigned id = 0; id < BL_IDS; id++)
        if (called(id))
            print_row(f, id, width);
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

static void json_device(FILE *f, const struct bl_device *device)
{
    if (!device) {
        fputs("\"device\": null, \"ordinal\": null, \"architecture\": null", f);
        return;
    }
    fputs("\"device\": ", f);
    json_string(f, device->name);
    fprintf(f, ", \"ordinal\": %d, \"architecture\": ", device->ordinal);
    if (device->capability)
        fprintf(f, "\"sm_%d\"", device->capability);
    else
        fputs("null", f);
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
    fprintf(f, ", \"rank\": %" PRId64 ",\n   ", bl_config()->rank);
    json_device(f, device);
    fputs(", \"why_none\": ", f);
    if (device)
        fputs("null", f);
    else
        json_string(f, bl_engine_why());
    fputs(", \"start_up_seconds\": ", f);
    if (device && bl_startup_ns)
        json_seconds(f, bl_startup_ns);
    else
        fputs("null", f);
    fputs(",\n   \"options\": {", f);
    json_options(f);
    fputs("}}", f);
}

static void json_side(FILE *f, const struct bl_side *side)
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
        const struct bl_bucket *b = &bl_stats[id].bucket[i];
        if (!b->smallest)
            continue;
        fprintf(f, "%s\n    {\"from\": %" PRIu64, separator, bl_bucket_from(i));
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
            total_of(id).cpu_calls + bl_stats[id].gpu, (uint64_t)bl_stats[id].nested,
            (uint64_t)bl_stats[id].gpu);
    fputs(",\n   \"cpu\": {", f);
    for (int w = 0; w < BL_REASONS; w++) {
        if (!bl_stats[id].forwarded[w])
            continue;
        fprintf(f, "%s\"%s\": %" PRIu64, separator, bl_reason_text[w],
                (uint64_t)bl_stats[id].forwarded[w]);
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
    int fd = bl_open_high(new, O_EXCL);
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
    if (!bl_expand(path, name)) {
        reason = "the name is too long";
        snprintf(path, sizeof path, "%s", name);
    } else {
        reason = bl_foreign(path, JSON_MARK);
    }
    int error = reason ? 0 : replace_file(path, text, length);
    if (error)
        reason = strerror(error);
    if (reason)
        bl_say("no report is written to %.600s: %s", path, reason);
}

/* Built in memory, written at once: one account, whatever other processes print. */
void bl_report(bool file)
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
