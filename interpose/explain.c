/* Say whether a program, or a library that programs load, can be served by the preload,
 * without running it.
 *
 * Asks the program's own loader for its libraries and reads the objects' symbols; ends in
 * one verdict line. Called by batchlapack-run --explain.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <fcntl.h>

#include "launcher.h"

static struct {
    struct object *all; /* in the loader's search order, what was named first */
    size_t count;
    bool library; /* that is no program: a plug-in, say */
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
    return strchr(name, '/') ? realpath(name, NULL) : NULL;
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
        char name[BL_SYMBOL_MAX];
        name_of(name, i);
        printf("%s%s %s", any ? "" : o->path, any ? "" : head, name);
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
            direct |= any && (loaded.library || from != 0);
            free(head);
        }
        if (k == 0 && !loaded.library)
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
            for (int from = !loaded.library; from < (int)loaded.count; from++)
                inside |= print_names(o, " defines, and calls through the loader:",
                                      DEFINES | CALLS_OWN, owner, from);
        if (o->dlopens) {
            printf("%s imports dlopen: plug-ins are served too, unless opened with "
                   "RTLD_DEEPBIND or asked by dlsym on their handle\n",
                   o->path);
            plugins = true;
        }
    }
    if (!loaded.library && privileged(loaded.all[0].path))
        return no("setuid, setgid or capabilities: the loader ignores the preload", "");
    const bool starts = script || (loaded.all[0].starts && !loaded.library);
    if (starts && !script)
        printf("%s starts other programs: --explain takes those as well\n",
               loaded.all[0].path);
    if (!direct && !inside && !plugins && !starts)
        return own        ? no("the program's own definitions", "")
               : symbolic ? no("-Bsymbolic", "")
                          : no("none of the routines is imported", "");
    if (loaded.library)
        printf("%s is served in every program that is, unless opened with "
               "RTLD_DEEPBIND or asked by dlsym on its handle\n",
               loaded.all[0].path);
    printf("served: %s%s%s\n",
           direct    ? "yes"
           : inside  ? "only calls inside libraries"
           : plugins ? "only through plug-ins"
                     : "only",
           starts && !direct && (inside || plugins) ? " and" : "",
           starts && !direct ? " through programs that it starts" : "");
    return 0;
}

int explain(const char *name)
{
    struct object *program = append();
    const char *interpreter, *why = open_object(&loaded.self, "/proc/self/exe");
    if (why || (why = read_elf(&loaded.self, NULL)))
        return complain(2, "cannot read /proc/self/exe: %s", why);
    bool script = false;
    for (int depth = 0;; depth++, script = true, name = interpreter) {
        char *path = find_program(name);
        if (!path && !strchr(name, '/'))
            return complain(2,
                            "cannot explain %s: not on PATH; name a program, script or "
                            "plug-in that is elsewhere by its path, as ./%s",
                            name, name);
        why = path ? open_object(program, path) : strerror(errno);
        if (why)
            return complain(2, "cannot explain %s: %s", name, why);
        interpreter = depth < 5 ? script_interpreter(program) : NULL;
        if (!interpreter)
            break;
        printf("%s: a script for %s\n", path, interpreter);
    }
    why = read_elf(program, &loaded.self);
    loaded.library = !why && !program->interpreter && program->header.e_type == ET_DYN &&
                     !program->pie;
    printf("%s: %s\n", program->path,
           loaded.library ? "a shared library" : "the program");
    if (why)
        return no(why, "");
    const char *loader = loaded.library ? loaded.self.interpreter : program->interpreter;
    if (!loader)
        return no("static: cannot be served", "");
    if (access(loader, X_OK) != 0)
        return no("its loader cannot be run: ", loader);
    /* A plug-in may find its libraries in the program only. */
    if (!list_libraries(loader, program->path) && !loaded.library)
        return no("it cannot be loaded", "");
    return judge(script);
}
