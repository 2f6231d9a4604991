/* batchlapack-run: starts a program with libbatchlapack.so preloaded, or explains whether
 * that would serve it.
 *
 * Run from a shell, by users and by test/launcher.sh. The options are the rows of
 * options.def, handed on as environment variables. --explain reads ELF files itself and
 * asks the program's own loader for its libraries; it must not run the program, nor trust
 * a byte of its file: every read goes through span(). It needs nothing but libc.
 */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#define LIBRARY "libbatchlapack.so"
#define LENGTH(a) (sizeof(a) / sizeof *(a))

/* Each precision of each routine is exported in four spellings: bit 0 of a name's index
 * says _64_, bit 1 scipy_. */
static const char *const routines[] = {
#define R_SDCZ(name, NAME, nargs, args) "s" #name, "d" #name, "c" #name, "z" #name,
#include "routines.def"
#undef R_SDCZ
};
enum { SPELLINGS = 4, NAMES = LENGTH(routines) * SPELLINGS };

static const struct {
    const char *name, *values, *preset, *text;
} options[] = {
#define O(name, values, preset, text) {#name, values, preset, text},
#include "options.def"
#undef O
};

static int complain(int code, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("batchlapack-run: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return code;
}

static void *must(void *memory)
{
    if (!memory)
        exit(complain(2, "out of memory"));
    return memory;
}

static char *join(const char *a, const char *b, const char *c)
{
    char *out = must(malloc(strlen(a) + strlen(b) + strlen(c) + 1));
    return strcat(strcat(strcpy(out, a), b), c);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Any build of the library, under any version. */
static bool is_ours(const char *path)
{
    return strncmp(base_name(path), LIBRARY, strlen(LIBRARY)) == 0;
}

/* ---- options and start ----------------------------------------------------------- */

static int help(void)
{
    puts("usage: batchlapack-run [options] program [arguments]\n"
         "       batchlapack-run --explain program\n\n"
         "Runs the program with its LAPACK calls served by a GPU, " LIBRARY "\n"
         "preloaded. Options, each of which sets BATCHLAPACK_NAME for the program (0|1\n"
         "may be left out and means 1):\n");
    for (size_t o = 0; o < LENGTH(options); o++) {
        printf("  --");
        for (const char *c = options[o].name; *c; c++)
            putchar(tolower((unsigned char)*c));
        printf("=%s  (default: %s)\n      %s\n", options[o].values, options[o].preset,
               options[o].text);
    }
    puts(
        "\n  --explain   say whether the program can be served, without running it:\n"
        "              exit 0 when it can, 1 when it cannot, 2 when that is unknown\n"
        "  --version   print the version\n"
        "  --help      print this text\n"
        "  --          end of options\n\n"
        "Exit: the program's status; 2 for a mistake in using the launcher; 126 and 127\n"
        "when the program cannot be run or found.");
    return 0;
}

static bool among(const char *values, const char *value)
{
    for (size_t n;; values += n + 1) {
        n = strcspn(values, "|");
        if (strlen(value) == n && strncmp(values, value, n) == 0)
            return true;
        if (!values[n])
            return false;
    }
}

/* Puts "--name=value" into the environment. A word that is no alternative is refused
 * here, because the library, silent by promise, can only ignore it. */
static int set_option(const char *argument)
{
    const char *name = argument + 2;
    size_t n = strcspn(name, "="), o = 0;
    while (o < LENGTH(options) &&
           (strlen(options[o].name) != n || strncasecmp(options[o].name, name, n) != 0))
        o++;
    if (strncmp(argument, "--", 2) != 0 || o == LENGTH(options))
        return complain(2, "unknown option %s (--help lists them)", argument);
    const char *values = options[o].values, *value = name + n + 1;
    if (!name[n]) {
        if (strcmp(values, "0|1") != 0)
            return complain(2, "option %s needs a value: %s=%s", argument, argument,
                            values);
        value = "1";
    }
    if (!*value || (strchr(values, '|') && !among(values, value)))
        return complain(2, "option %s: the value must be %s", argument, values);
    return setenv(join("BATCHLAPACK_", options[o].name, ""), value, 1)
               ? complain(2, "%s", strerror(errno))
               : 0;
}

/* In the build tree the launcher lies beside .libs; installed, the prefix may have been
 * moved since configure, so the place relative to the launcher comes before BL_LIBDIR. */
static char *find_library(void)
{
    char *directory = realpath("/proc/self/exe", NULL);
    if (directory) {
        static const char *const places[] = {"/.libs/", "/../lib/", "/../lib64/"};
        *strrchr(directory, '/') = '\0';
        for (size_t p = 0; p < LENGTH(places); p++) {
            char *found = realpath(join(directory, places[p], LIBRARY), NULL);
            if (found)
                return found;
        }
    }
    return realpath(BL_LIBDIR "/" LIBRARY, NULL);
}

/* Ours first, so that no LAPACK preloaded by the user comes before it, and once. */
static int preload(void)
{
    char *old = join(getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "", "", "");
    char *library = find_library();
    if (!library)
        return complain(2,
                        "cannot find " LIBRARY ": not in .libs, ../lib or ../lib64 "
                        "beside the launcher, nor in %s",
                        BL_LIBDIR);
    if (strpbrk(library, " :"))
        return complain(2, "%s: a path with a space or a colon cannot be preloaded",
                        library);
    char *list = library;
    for (char *one = strtok(old, " :"); one; one = strtok(NULL, " :"))
        if (!is_ours(one))
            list = join(list, ":", one);
    return setenv("LD_PRELOAD", list, 1) ? complain(2, "%s", strerror(errno)) : 0;
}

/* ---- reading ELF ----------------------------------------------------------------- */

/* How an object uses a name. CALLS_OWN: it exports the name and its own relocations name
 * it, so that its own calls go through the loader although nothing is undefined. */
enum { IMPORTS = 1, DEFINES = 2, CALLS_OWN = 4 };

struct object {
    char *path;
    const unsigned char *base; /* the mapped file */
    uint64_t size;
    Elf64_Ehdr header;
    const char *interpreter; /* PT_INTERP */
    bool symbolic, pie, dlopens;
    unsigned char use[NAMES];
};

static const void *span(const struct object *o, uint64_t offset, uint64_t length)
{
    return offset <= o->size && length <= o->size - offset ? o->base + offset : NULL;
}

/* Entry i of a table of the file; by copy, as nothing promises its alignment. */
static bool entry(const struct object *o, uint64_t table, uint64_t i, void *to,
                  size_t size)
{
    const void *from = i > o->size / size ? NULL : span(o, table + i * size, size);
    memset(to, 0, size);
    if (from)
        memcpy(to, from, size);
    return from != NULL;
}

static bool section(const struct object *o, uint64_t i, Elf64_Shdr *to)
{
    return i < o->header.e_shnum && entry(o, o->header.e_shoff, i, to, sizeof *to);
}

/* Symbol i of a table and its name, "" when there is none. */
static const char *symbol(const struct object *o, const Elf64_Shdr *table, uint64_t i,
                          Elf64_Sym *to)
{
    Elf64_Shdr strings;
    if (!entry(o, table->sh_offset, i, to, sizeof *to) ||
        !section(o, table->sh_link, &strings) || to->st_name >= strings.sh_size)
        return "";
    const char *text = span(o, strings.sh_offset, strings.sh_size);
    return text && text[strings.sh_size - 1] == '\0' ? text + to->st_name : "";
}

static int name_index(const char *name)
{
    int spelling = strncmp(name, "scipy_", 6) == 0 ? 2 : 0;
    name += spelling ? 6 : 0;
    for (size_t r = 0; r < LENGTH(routines); r++) {
        size_t n = strlen(routines[r]);
        if (strncmp(name, routines[r], n) != 0)
            continue;
        bool wide = strcmp(name + n, "_64_") == 0;
        if (wide || strcmp(name + n, "_") == 0)
            return (int)r * SPELLINGS + spelling + wide;
    }
    return -1;
}

static void note_symbol(struct object *o, const char *name, const Elf64_Sym *s)
{
    int i = name_index(name), seen = ELF64_ST_VISIBILITY(s->st_other);
    bool defined = s->st_shndx != SHN_UNDEF;
    if (!defined && (!strcmp(name, "dlopen") || !strcmp(name, "dlmopen")))
        o->dlopens = true;
    if (i >= 0 && !defined)
        o->use[i] |= IMPORTS;
    if (i >= 0 && defined && ELF64_ST_BIND(s->st_info) != STB_LOCAL &&
        (seen == STV_DEFAULT || seen == STV_PROTECTED))
        o->use[i] |= DEFINES;
}

static void read_sections(struct object *o)
{
    Elf64_Shdr s, symbols;
    Elf64_Dyn d;
    Elf64_Sym y;
    Elf64_Rela r;
    for (unsigned i = 0; section(o, i, &s); i++) {
        if (s.sh_type == SHT_DYNAMIC)
            for (uint64_t k = 0; k < s.sh_size / sizeof d; k++) {
                if (!entry(o, s.sh_offset, k, &d, sizeof d) || d.d_tag == DT_NULL)
                    break;
                o->symbolic |= d.d_tag == DT_SYMBOLIC ||
                               (d.d_tag == DT_FLAGS && d.d_un.d_val & DF_SYMBOLIC);
                o->pie |= d.d_tag == DT_FLAGS_1 && d.d_un.d_val & DF_1_PIE;
            }
        if (s.sh_type == SHT_DYNSYM && span(o, s.sh_offset, s.sh_size))
            for (uint64_t k = 1; k < s.sh_size / sizeof y; k++) {
                const char *name = symbol(o, &s, k, &y);
                note_symbol(o, name, &y);
            }
        if (s.sh_type == SHT_RELA && span(o, s.sh_offset, s.sh_size) &&
            section(o, s.sh_link, &symbols) && symbols.sh_type == SHT_DYNSYM)
            for (uint64_t k = 0; k < s.sh_size / sizeof r; k++) {
                entry(o, s.sh_offset, k, &r, sizeof r);
                int n = ELF64_R_SYM(r.r_info)
                            ? name_index(symbol(o, &symbols, ELF64_R_SYM(r.r_info), &y))
                            : -1;
                if (n >= 0 && y.st_shndx != SHN_UNDEF)
                    o->use[n] |= CALLS_OWN;
            }
    }
}

/* Maps a file. NULL, or why not. */
static const char *open_object(struct object *o, const char *path)
{
    struct stat st;
    *o = (struct object){.path = join(path, "", ""), .base = (const unsigned char *)""};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0)
        return strerror(errno);
    void *base = MAP_FAILED;
    if (S_ISREG(st.st_mode) && st.st_size > 0)
        base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (base != MAP_FAILED)
        o->base = base, o->size = (uint64_t)st.st_size;
    return S_ISDIR(st.st_mode)    ? strerror(EISDIR)
           : !S_ISREG(st.st_mode) ? "not a regular file"
                                  : NULL;
}

/* Reads a mapped file. NULL, or why a program like `self` (if any) cannot load it. */
static const char *read_elf(struct object *o, const struct object *self)
{
    static const char truncated[] = "a truncated ELF file";
    Elf64_Phdr p;
    if (!span(o, 0, SELFMAG) || memcmp(o->base, ELFMAG, SELFMAG) != 0)
        return "neither an ELF program nor a #! script";
    if (span(o, 0, EI_NIDENT) && o->base[EI_CLASS] == ELFCLASS32)
        return "32-bit";
    Elf64_Ehdr *h = &o->header;
    if (!entry(o, 0, 0, h, sizeof *h))
        return truncated;
    if (self && (h->e_ident[EI_CLASS] != ELFCLASS64 ||
                 h->e_ident[EI_DATA] != self->header.e_ident[EI_DATA] ||
                 h->e_machine != self->header.e_machine))
        return "built for another machine";
    if (h->e_phentsize != sizeof p ||
        (h->e_shnum && h->e_shentsize != sizeof(Elf64_Shdr)))
        return "a damaged ELF file";
    if (h->e_shnum && !span(o, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr)))
        return truncated;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        if (!entry(o, h->e_phoff, i, &p, sizeof p) || !span(o, p.p_offset, p.p_filesz))
            return truncated;
        if (p.p_type == PT_INTERP && p.p_filesz &&
            o->base[p.p_offset + p.p_filesz - 1] == '\0')
            o->interpreter = (const char *)o->base + p.p_offset;
    }
    if (!h->e_shnum)
        printf("%s: stripped of section headers, its names cannot be read\n", o->path);
    read_sections(o);
    return NULL;
}

/* ---- explain --------------------------------------------------------------------- */

static struct {
    struct object *all; /* in the loader's search order, the program first */
    size_t count;
    struct object self;
} loaded;

static struct object *append(void)
{
    loaded.all = must(realloc(loaded.all, (loaded.count + 1) * sizeof *loaded.all));
    return &loaded.all[loaded.count++];
}

/* As execvp would find it, links resolved: the loader's $ORIGIN means the real file. */
static char *find_program(const char *name)
{
    struct stat st;
    const char *path = getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin";
    for (size_t n = 0; !strchr(name, '/'); path += n + 1) {
        n = strcspn(path, ":");
        char *file = join(must(strndup(n ? path : ".", n ? n : 1)), "/", name);
        if (stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
            return realpath(file, NULL);
        if (!path[n])
            break;
    }
    return realpath(strchr(name, '/') ? name : "/nowhere", NULL);
}

/* The interpreter of a #! script; behind env(1), the program that env starts. */
static char *script_interpreter(const struct object *o)
{
    uint64_t n = o->size < 256 ? o->size : 256;
    if (n < 3 || memcmp(o->base, "#!", 2) != 0)
        return NULL;
    char *line = must(strndup((const char *)o->base + 2, n - 2));
    line[strcspn(line, "\n")] = '\0';
    char *word = strtok(line, " \t\r"), *next = word;
    if (word && strcmp(base_name(word), "env") == 0)
        do
            next = strtok(NULL, " \t\r");
        while (next && (*next == '-' || strchr(next, '=')));
    return next ? next : word;
}

/* The loader that a program names is a program of its author's choosing, and --explain
 * promises not to run those: it must be our own loader or one of the system's. */
static bool trusted(const char *loader)
{
    struct stat st, own;
    if (*loader != '/' || stat(loader, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (loaded.self.interpreter && stat(loaded.self.interpreter, &own) == 0 &&
        st.st_dev == own.st_dev && st.st_ino == own.st_ino)
        return true;
    return strncmp(base_name(loader), "ld", 2) == 0 && st.st_uid == 0 &&
           !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* A line of `ld.so --list`: "name => path (0x1)" or "path (0x1)". */
static void add_library(char *line)
{
    char *arrow = strstr(line, " => ");
    char *path = arrow ? arrow + 4 : line + strspn(line, "\t ");
    char *end = strstr(path, " (0x");
    if (!end)
        return;
    *end = '\0';
    if (!strchr(path, '/') || is_ours(path))
        return; /* the kernel's vdso, and ourselves */
    struct object *o = append();
    const char *why = open_object(o, path);
    if (why || (why = read_elf(o, &loaded.self)))
        printf("%s: %s, not looked at\n", path, why);
}

/* False when the loader refuses the program; it has then said on stderr why. */
static bool list_libraries(const char *loader, const char *program)
{
    int ends[2], status = 0;
    fflush(stdout);
    pid_t child = trusted(loader) && pipe(ends) == 0 ? fork() : -1;
    if (child < 0)
        printf("%s is not a loader of this system: libraries not looked at\n", loader);
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl(loader, loader, "--list", program, (char *)NULL);
        _exit(127);
    }
    if (child > 0) {
        close(ends[1]);
        FILE *list = must(fdopen(ends[0], "r"));
        char *line = NULL;
        for (size_t room = 0; getline(&line, &room, list) > 0;)
            add_library(line);
        fclose(list);
        waitpid(child, &status, 0);
    }
    return status == 0;
}

/* Prints "PATHHEAD a_ b_" for the names an object uses so, of those with this owner (-1:
 * a name that nothing defines; NULL: any); says whether there were any. */
static bool print_names(const struct object *o, const char *head, int use,
                        const int *owner, int wanted)
{
    bool any = false;
    for (int i = 0; i < NAMES; i++) {
        if ((o->use[i] & use) != use || (owner && owner[i] != wanted))
            continue;
        printf("%s%s %s%s%s", any ? "" : o->path, any ? "" : head, i & 2 ? "scipy_" : "",
               routines[i / SPELLINGS], i & 1 ? "_64_" : "_");
        any = true;
    }
    printf("%s", any ? "\n" : "");
    return any;
}

/* The kernel marks such a process, and the loader then ignores a preload with a path. */
static bool privileged(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 &&
           ((st.st_mode & S_ISUID && st.st_uid != getuid()) ||
            (st.st_mode & S_ISGID && st.st_gid != getgid()) ||
            (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0));
}

static int no(const char *why, const char *detail)
{
    printf("served: no (%s%s)\n", why, detail);
    return 1;
}

/* Says how each object uses the names; the return value is the verdict. */
static int judge(bool script)
{
    int owner[NAMES];
    bool direct = false, inside = false, plugins = false, own = false, symbolic = false;
    for (int i = 0; i < NAMES; i++) {
        owner[i] = -1;
        for (size_t k = loaded.count; k-- > 0;)
            if (loaded.all[k].use[i] & DEFINES)
                owner[i] = (int)k;
    }
    for (size_t k = 0; k < loaded.count; k++) {
        const struct object *o = &loaded.all[k];
        for (int from = -1; from < (int)loaded.count; from++) {
            const char *path = from < 0 ? "no library so far" : loaded.all[from].path;
            char *head = join(" imports, from ", path, ":");
            bool any = print_names(o, head, IMPORTS, owner, from);
            direct |= any && from != 0;
            free(head);
        }
        if (k == 0)
            own = print_names(o,
                              " defines, and a program's own definition comes before a "
                              "preload (no call to these is served):",
                              DEFINES, NULL, 0);
        else if (o->symbolic)
            symbolic |= print_names(o,
                                    " is linked -Bsymbolic and defines, so that its own "
                                    "calls to these are not served:",
                                    DEFINES, NULL, 0);
        else
            for (int from = 1; from < (int)loaded.count; from++)
                inside |= print_names(o, " defines, and calls through the loader:",
                                      DEFINES | CALLS_OWN, owner, from);
        if (o->dlopens) {
            printf("%s imports dlopen: plug-ins are served too, unless opened with "
                   "RTLD_DEEPBIND or asked by dlsym on their handle\n",
                   o->path);
            plugins = true;
        }
    }
    if (privileged(loaded.all[0].path))
        return no("setuid, setgid or capabilities: the loader ignores the preload", "");
    if (!direct && !inside && !plugins && !script)
        return own        ? no("the program's own definitions", "")
               : symbolic ? no("-Bsymbolic", "")
                          : no("none of the routines is imported", "");
    printf("served: %s%s%s\n",
           direct    ? "yes"
           : inside  ? "only calls inside libraries"
           : plugins ? "only through plug-ins"
                     : "only",
           script && !direct && (inside || plugins) ? " and" : "",
           script && !direct ? " through programs that it starts" : "");
    return 0;
}

static int explain(const char *name)
{
    struct object *program = append();
    const char *interpreter, *why = open_object(&loaded.self, "/proc/self/exe");
    if (why || (why = read_elf(&loaded.self, NULL)))
        return complain(2, "cannot read /proc/self/exe: %s", why);
    bool script = false;
    for (int depth = 0;; depth++, script = true, name = interpreter) {
        char *path = find_program(name);
        why = path ? open_object(program, path) : strerror(errno);
        if (why)
            return complain(2, "cannot explain %s: %s", name, why);
        interpreter = depth < 5 ? script_interpreter(program) : NULL;
        printf("%s: %s%s\n", path, interpreter ? "a script for " : "the program",
               interpreter ? interpreter : "");
        if (!interpreter)
            break;
    }
    if ((why = read_elf(program, &loaded.self)))
        return no(why, "");
    if (!program->interpreter)
        return program->header.e_type == ET_DYN && !program->pie
                   ? no("a shared library", "")
                   : no("static: cannot be served", "");
    if (access(program->interpreter, X_OK) != 0)
        return no("its loader cannot be run: ", program->interpreter);
    if (!list_libraries(program->interpreter, program->path))
        return no("it cannot be loaded", "");
    return judge(script);
}

int main(int argc, char **argv)
{
    bool explaining = false;
    int i = 1, failed = 0;
    for (; i < argc && argv[i][0] == '-' && !failed; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--help") == 0)
            return help();
        if (strcmp(argv[i], "--version") == 0)
            return puts("batchlapack-run " PACKAGE_VERSION) < 0;
        if (strcmp(argv[i], "--explain") == 0)
            explaining = true;
        else
            failed = set_option(argv[i]);
    }
    if (failed)
        return failed;
    if (i == argc)
        return complain(2, "no program named (--help says how)");
    if (explaining)
        return explain(argv[i]);
    if ((failed = preload()))
        return failed;
    execvp(argv[i], argv + i);
    return complain(errno == ENOENT ? 127 : 126, "cannot run %s: %s", argv[i],
                    strerror(errno));
}
