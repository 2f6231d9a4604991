/* batchlapack-report: the JSON files.
 *
 * Reads what stats.c wrote, adds it up, and writes the sum in the same form. Unknown keys
 * are skipped, so that a later version's files can be read. A file that is not a whole
 * account is refused as a whole: it is named with the line, and nothing of it is kept.
 */
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

#define DEPTH 64        /* of nested values */
#define MANY_SIZES 1024 /* more than any account has */

/* ---- JSON ---- */

struct reader {
    const char *begin, *at; /* ends in a zero byte */
    const char *problem;    /* the first one; nothing is read after it */
    int depth;
};

static bool fail(struct reader *r, const char *problem)
{
    if (!r->problem)
        r->problem = problem;
    return false;
}

/* The next character that is no space, 0 at the end and after a problem. */
static char peek(struct reader *r)
{
    if (r->problem)
        return 0;
    r->at += strspn(r->at, " \t\r\n");
    return *r->at;
}

static bool take(struct reader *r, char c, const char *problem)
{
    if (peek(r) != c)
        return fail(r, problem);
    r->at++;
    return true;
}

/* \uXXXX in UTF-8; the halves of a pair, which stats.c never writes, are replaced. */
static char *put_utf8(char *to, unsigned c)
{
    if (c == 0 || (c >= 0xD800 && c < 0xE000))
        c = 0xFFFD;
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3F));
    } else {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    }
    return to;
}

/* The escape at `at`, after its backslash. Where it ends, NULL if it is none. */
static const char *unescape(const char *at, char **to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *name = *at ? strchr(names, *at) : NULL;
    char digits[5] = "";
    if (name) {
        *(*to)++ = values[name - names];
        return at + 1;
    }
    if (*at++ != 'u')
        return NULL;
    for (int i = 0; i < 4; i++) {
        if (!isxdigit((unsigned char)at[i]))
            return NULL;
        digits[i] = at[i];
    }
    *to = put_utf8(*to, (unsigned)strtoul(digits, NULL, 16));
    return at + 4;
}

/* A string, the caller's to free. NULL: none. */
static char *read_string(struct reader *r)
{
    if (!take(r, '"', "a string is expected"))
        return NULL;
    size_t length = 0;
    while (r->at[length] && r->at[length] != '"')
        length += r->at[length] == '\\' && r->at[length + 1] ? 2 : 1;
    char *text = must(malloc(length + 1)), *to = text;
    const char *at = r->at;
    while (at && at < r->at + length && (unsigned char)*at >= ' ') {
        if (*at != '\\')
            *to++ = *at++;
        else
            at = unescape(at + 1, &to);
    }
    *to = 0;
    if (at != r->at + length || *at != '"') {
        fail(r, "a string is not well-formed");
        free(text);
        return NULL;
    }
    r->at = at + 1;
    return text;
}

/* A number's text, not longer than any that is meant. */
static bool read_number(struct reader *r, char text[64])
{
    if (peek(r) != '-' && !isdigit((unsigned char)peek(r)))
        return fail(r, "a number is expected");
    size_t length = strspn(r->at, "0123456789+-.eE");
    if (length >= 64)
        return fail(r, "a number is too long");
    memcpy(text, r->at, length);
    text[length] = 0;
    r->at += length;
    char *end;
    double value = strtod(text, &end);
    return *end || !isfinite(value) ? fail(r, "a number is not well-formed") : true;
}

typedef bool member_fn(struct reader *r, const char *key, void *to);
typedef bool item_fn(struct reader *r, void *to);

static bool deeper(struct reader *r)
{
    return ++r->depth <= DEPTH ? true : fail(r, "values are nested too deeply");
}

static bool read_object(struct reader *r, member_fn *member, void *to)
{
    bool good = take(r, '{', "an object is expected") && deeper(r);
    for (bool first = true; good && peek(r) != '}'; first = false) {
        good = first || take(r, ',', "a comma or } is expected");
        char *key = good ? read_string(r) : NULL;
        good = key && take(r, ':', "a colon is expected") && member(r, key, to);
        free(key);
    }
    r->depth--;
    return good && take(r, '}', "the object does not end");
}

static bool read_array(struct reader *r, item_fn *item, void *to)
{
    bool good = take(r, '[', "an array is expected") && deeper(r);
    for (bool first = true; good && peek(r) != ']'; first = false)
        good = (first || take(r, ',', "a comma or ] is expected")) && item(r, to);
    r->depth--;
    return good && take(r, ']', "the array does not end");
}

static bool skip_item(struct reader *r, void *to);

static bool skip_member(struct reader *r, const char *key, void *to)
{
    (void)key;
    return skip_item(r, to);
}

static bool skip_item(struct reader *r, void *to)
{
    static const char *const words[] = {"null", "true", "false"};
    char number[64], c = peek(r);
    if (c == '{')
        return read_object(r, skip_member, to);
    if (c == '[')
        return read_array(r, skip_item, to);
    if (c == '"') {
        char *text = read_string(r);
        free(text);
        return text != NULL;
    }
    for (size_t i = 0; c && i < sizeof words / sizeof *words; i++)
        if (strncmp(r->at, words[i], strlen(words[i])) == 0) {
            r->at += strlen(words[i]);
            return true;
        }
    return read_number(r, number);
}

/* ---- values ---- */

/* Sums stay at the largest number rather than start again. */
static void add(uint64_t *to, uint64_t n)
{
    if (__builtin_add_overflow(*to, n, to))
        *to = UINT64_MAX;
}

static uint64_t to_count(const char *text)
{
    double value = strtod(text, NULL);
    if (strspn(text, "0123456789") != strlen(text))
        return value < 1 ? 0 : value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
    return strtoull(text, NULL, 10); /* ULLONG_MAX when it is more */
}

/* To the nanosecond, where it is written as stats.c does. */
static uint64_t to_ns(const char *text)
{
    size_t whole = strspn(text, "0123456789");
    char fraction[10] = "000000000";
    uint64_t ns;
    if (text[whole] != '.' || text[whole + 1 + strspn(text + whole + 1, "0123456789")])
        return __builtin_mul_overflow(to_count(text), 1000000000u, &ns) ? UINT64_MAX : ns;
    for (int i = 0; i < 9 && text[whole + 1 + i]; i++)
        fraction[i] = text[whole + 1 + i];
    if (__builtin_mul_overflow(strtoull(text, NULL, 10), 1000000000u, &ns))
        return UINT64_MAX;
    add(&ns, strtoull(fraction, NULL, 10));
    return ns;
}

struct field {
    const char *name;
    enum { COUNT, SECONDS, REAL, TEXT } kind;
    size_t offset;
};

static bool read_field(struct reader *r, const struct field *field, void *to)
{
    void *value = (char *)to + field->offset;
    char number[64];
    if (peek(r) == 'n') /* null: not known */
        return skip_item(r, NULL);
    if (field->kind == TEXT) {
        free(*(char **)value);
        return (*(char **)value = read_string(r)) != NULL;
    }
    if (!read_number(r, number))
        return false;
    if (*number == '-')
        return fail(r, "a number is negative");
    if (field->kind == REAL)
        *(double *)value = strtod(number, NULL);
    else
        *(uint64_t *)value = field->kind == COUNT ? to_count(number) : to_ns(number);
    return true;
}

/* Read a key's value if a field has that name, else skip it. */
static bool read_among(struct reader *r, const char *key, const struct field *fields,
                       size_t count, void *to)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].name, key) == 0)
            return read_field(r, &fields[i], to);
    return skip_item(r, NULL);
}
#define READ_AMONG(r, key, fields, to)                                                   \
    read_among(r, key, fields, sizeof fields / sizeof *fields, to)

/* One more element of a list that has `count`. */
static void *grow(void *list, size_t count, size_t size)
{
    char *more = must(realloc(list, (count + 1) * size));
    memset(more + count * size, 0, size);
    return more;
}

/* ---- an account ---- */

static bool side_member(struct reader *r, const char *key, void *to)
{
    static const struct field fields[] = {
        {"calls", COUNT, offsetof(struct side, calls)},
        {"seconds", SECONDS, offsetof(struct side, ns)},
        {"operations", REAL, offsetof(struct side, operations)},
        {"bytes_in", COUNT, offsetof(struct side, in)},
        {"bytes_out", COUNT, offsetof(struct side, out)},
        {"predicted_other_seconds", SECONDS, offsetof(struct side, other_ns)},
    };
    return READ_AMONG(r, key, fields, to);
}

static bool size_member(struct reader *r, const char *key, void *to)
{
    static const struct field fields[] = {
        {"from", COUNT, offsetof(struct size, from)},
        {"smallest", COUNT, offsetof(struct size, smallest)},
        {"largest", COUNT, offsetof(struct size, largest)},
    };
    struct size *size = to;
    if (strcmp(key, "cpu") == 0)
        return read_object(r, side_member, &size->side[CPU]);
    if (strcmp(key, "gpu") == 0)
        return read_object(r, side_member, &size->side[GPU]);
    return READ_AMONG(r, key, fields, to);
}

static void add_side(struct side *to, const struct side *from)
{
    add(&to->calls, from->calls);
    add(&to->ns, from->ns);
    add(&to->in, from->in);
    add(&to->out, from->out);
    add(&to->other_ns, from->other_ns);
    to->operations = fmin(to->operations + from->operations, DBL_MAX);
}

static void add_size(struct routine *to, const struct size *from)
{
    size_t i = 0;
    while (i < to->size_count && to->sizes[i].from < from->from)
        i++;
    if (i == to->size_count || to->sizes[i].from != from->from) {
        to->sizes = grow(to->sizes, to->size_count, sizeof *to->sizes);
        memmove(&to->sizes[i + 1], &to->sizes[i],
                (to->size_count++ - i) * sizeof *to->sizes);
        to->sizes[i] = *from;
        return;
    }
    struct size *size = &to->sizes[i];
    if (from->smallest < size->smallest)
        size->smallest = from->smallest;
    if (from->largest > size->largest)
        size->largest = from->largest;
    for (int s = 0; s < SIDES; s++)
        add_side(&size->side[s], &from->side[s]);
}

static bool size_item(struct reader *r, void *to)
{
    struct routine *routine = to;
    struct size size = {0};
    if (!read_object(r, size_member, &size))
        return false;
    if (size.from < 1 || size.smallest < size.from || size.largest < size.smallest)
        return fail(r, "a size does not lie in its range");
    if (routine->size_count == MANY_SIZES)
        return fail(r, "a routine has too many sizes");
    add_size(routine, &size);
    return true;
}

static void add_reason(struct routine *to, const char *text, uint64_t calls)
{
    size_t i = 0;
    while (i < to->reason_count && strcmp(to->reasons[i].text, text) != 0)
        i++;
    if (i == to->reason_count) {
        to->reasons = grow(to->reasons, to->reason_count++, sizeof *to->reasons);
        to->reasons[i].text = must(strdup(text));
    }
    add(&to->reasons[i].calls, calls);
}

static bool reason_member(struct reader *r, const char *key, void *to)
{
    static const struct field count = {"", COUNT, 0};
    uint64_t calls = 0;
    if (!read_field(r, &count, &calls))
        return false;
    add_reason(to, key, calls);
    return true;
}

static bool routine_member(struct reader *r, const char *key, void *to)
{
    static const struct field fields[] = {
        {"routine", TEXT, offsetof(struct routine, name)},
        {"calls", COUNT, offsetof(struct routine, calls)},
        {"nested", COUNT, offsetof(struct routine, nested)},
        {"gpu", COUNT, offsetof(struct routine, gpu)},
    };
    if (strcmp(key, "cpu") == 0)
        return read_object(r, reason_member, to);
    if (strcmp(key, "sizes") == 0)
        return read_array(r, size_item, to);
    return READ_AMONG(r, key, fields, to);
}

static void add_routine(struct report *to, const struct routine *from)
{
    size_t i = 0;
    while (i < to->routine_count && strcmp(to->routines[i].name, from->name) != 0)
        i++;
    if (i == to->routine_count) {
        to->routines = grow(to->routines, to->routine_count++, sizeof *to->routines);
        to->routines[i].name = must(strdup(from->name));
    }
    struct routine *routine = &to->routines[i];
    add(&routine->calls, from->calls);
    add(&routine->nested, from->nested);
    add(&routine->gpu, from->gpu);
    for (size_t k = 0; k < from->reason_count; k++)
        add_reason(routine, from->reasons[k].text, from->reasons[k].calls);
    for (size_t k = 0; k < from->size_count; k++)
        add_size(routine, &from->sizes[k]);
}

static void free_routine(struct routine *r)
{
    for (size_t i = 0; i < r->reason_count; i++)
        free(r->reasons[i].text);
    free(r->reasons);
    free(r->sizes);
    free(r->name);
}

static bool routine_item(struct reader *r, void *to)
{
    struct routine routine = {0};
    bool good = read_object(r, routine_member, &routine);
    if (good && (!routine.name || !*routine.name))
        good = fail(r, "a routine has no name");
    if (good)
        add_routine(to, &routine);
    free_routine(&routine);
    return good;
}

static bool process_member(struct reader *r, const char *key, void *to)
{
    static const struct field fields[] = {
        {"program", TEXT, offsetof(struct process, program)},
        {"host", TEXT, offsetof(struct process, host)},
        {"rank", COUNT, offsetof(struct process, rank)},
        {"device", TEXT, offsetof(struct process, device)},
        {"why_none", TEXT, offsetof(struct process, why_none)},
        {"start_up_seconds", SECONDS, offsetof(struct process, start_up_ns)},
    };
    return READ_AMONG(r, key, fields, to);
}

static bool process_item(struct reader *r, void *to)
{
    struct report *report = to;
    report->processes =
        grow(report->processes, report->process_count, sizeof *report->processes);
    struct process *process = &report->processes[report->process_count++];
    peek(r);
    const char *begin = r->at;
    if (!read_object(r, process_member, process))
        return false;
    process->json = must(strndup(begin, (size_t)(r->at - begin)));
    return true;
}

static bool report_member(struct reader *r, const char *key, void *to)
{
    static const struct field version = {"", TEXT, offsetof(struct report, version)};
    if (strcmp(key, "batchlapack") == 0)
        return read_field(r, &version, to);
    if (strcmp(key, "processes") == 0)
        return read_array(r, process_item, to);
    if (strcmp(key, "routines") == 0)
        return read_array(r, routine_item, to);
    return skip_item(r, NULL);
}

static void free_process(struct process *p)
{
    free(p->json);
    free(p->program);
    free(p->host);
    free(p->device);
    free(p->why_none);
}

static void free_report(struct report *report)
{
    for (size_t i = 0; i < report->process_count; i++)
        free_process(&report->processes[i]);
    for (size_t i = 0; i < report->routine_count; i++)
        free_routine(&report->routines[i]);
    free(report->processes);
    free(report->routines);
    free(report->version);
}

/* Processes and version move over; `from` keeps its routines to be freed. */
static void merge(struct report *to, struct report *from)
{
    for (size_t i = 0; i < from->process_count; i++) {
        to->processes = grow(to->processes, to->process_count, sizeof *to->processes);
        to->processes[to->process_count++] = from->processes[i];
    }
    from->process_count = 0;
    if (!to->version) {
        to->version = from->version;
        from->version = NULL;
    }
    for (size_t i = 0; i < from->routine_count; i++)
        add_routine(to, &from->routines[i]);
}

/* ---- files ---- */

/* The file and a zero byte; NULL with errno. */
static char *read_all(const char *path, size_t *length)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t room = 0, n = 1;
    *length = 0;
    while (f && n > 0) {
        if (room - *length < 2)
            text = must(realloc(text, room = room * 2 + 65536));
        n = fread(text + *length, 1, room - *length - 1, f);
        *length += n;
    }
    int error = !f || ferror(f) ? errno : 0;
    if (f)
        fclose(f);
    if (error) {
        free(text);
        errno = error;
        return NULL;
    }
    text[*length] = 0;
    return text;
}

static size_t line_of(const struct reader *r)
{
    size_t line = 1;
    for (const char *c = r->begin; c < r->at; c++)
        line += *c == '\n';
    return line;
}

bool add_file(struct report *to, const char *path)
{
    size_t length;
    char *text = read_all(path, &length);
    if (!text)
        return complain(0, "%s skipped: %s", path, strerror(errno));
    struct reader r = {.begin = text, .at = text};
    struct report one = {0};
    bool good = read_object(&r, report_member, &one);
    if (good && (peek(&r) || (size_t)(r.at - text) != length))
        good = fail(&r, "there is more after the end");
    if (good && !one.version)
        good = fail(&r, "it is no report of batchlapack");
    if (good)
        merge(to, &one);
    else
        complain(0, "%s skipped: line %zu: %s", path, line_of(&r), r.problem);
    free_report(&one);
    free(text);
    return good;
}

/* ---- the merged file ---- */

static void print_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++)
        if ((unsigned char)*text < ' ')
            fprintf(f, "\\u%04x", (unsigned char)*text);
        else
            fprintf(f, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    fputc('"', f);
}

static void print_seconds(FILE *f, const char *name, uint64_t ns)
{
    fprintf(f, ", \"%s\": %" PRIu64 ".%09" PRIu64, name, ns / 1000000000u,
            ns % 1000000000u);
}

static void print_side(FILE *f, const char *name, const struct side *side)
{
    fprintf(f, ",\n     \"%s\": {\"calls\": %" PRIu64, name, side->calls);
    print_seconds(f, "seconds", side->ns);
    fprintf(f,
            ", \"operations\": %.0f, \"bytes_in\": %" PRIu64 ", \"bytes_out\": %" PRIu64,
            side->operations, side->in, side->out);
    print_seconds(f, "predicted_other_seconds", side->other_ns);
    fputc('}', f);
}

static void print_routine(FILE *f, const struct routine *r)
{
    fputs("  {\"routine\": ", f);
    print_string(f, r->name);
    fprintf(f, ", \"calls\": %" PRIu64 ", \"nested\": %" PRIu64 ", \"gpu\": %" PRIu64,
            r->calls, r->nested, r->gpu);
    fputs(",\n   \"cpu\": {", f);
    for (size_t i = 0; i < r->reason_count; i++) {
        fputs(i ? ", " : "", f);
        print_string(f, r->reasons[i].text);
        fprintf(f, ": %" PRIu64, r->reasons[i].calls);
    }
    fputs("},\n   \"sizes\": [", f);
    for (size_t i = 0; i < r->size_count; i++) {
        const struct size *s = &r->sizes[i];
        fprintf(f, "%s\n    {\"from\": %" PRIu64 ", \"smallest\": %" PRIu64, i ? "," : "",
                s->from, s->smallest);
        fprintf(f, ", \"largest\": %" PRIu64, s->largest);
        print_side(f, "cpu", &s->side[CPU]);
        print_side(f, "gpu", &s->side[GPU]);
        fputc('}', f);
    }
    fputs("]}", f);
}

void print_json(const struct report *report, FILE *f)
{
    fputs("{\"batchlapack\": ", f);
    print_string(f, report->version);
    fputs(",\n \"processes\": [", f);
    for (size_t i = 0; i < report->process_count; i++)
        fprintf(f, "%s\n  %s", i ? "," : "", report->processes[i].json);
    fputs("],\n \"routines\": [", f);
    for (size_t i = 0; i < report->routine_count; i++) {
        fprintf(f, "%s\n", i ? "," : "");
        print_routine(f, &report->routines[i]);
    }
    fputs("]}\n", f);
}
