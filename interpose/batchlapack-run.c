/* batchlapack-run: start a program with libbatchlapack.so preloaded.
 *
 * Run from a shell. The options are the rows of options.def, handed on as environment
 * variables; --explain is explain.c's.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher.h"

static const struct {
    const char *name, *values, *preset, *text;
} options[] = {
#define O(name, values, preset, text) {#name, values, preset, text},
#include "options.def"
#undef O
};

char *join(const char *a, const char *b, const char *c)
{
    char *out = must(malloc(strlen(a) + strlen(b) + strlen(c) + 1));
    return strcat(strcat(strcpy(out, a), b), c);
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool is_ours(const char *path)
{
    return strncmp(base_name(path), LIBRARY, strlen(LIBRARY)) == 0;
}

static int help(void)
{
    puts(
        "usage: batchlapack-run [options] program [arguments]\n"
        "       batchlapack-run --explain program\n\n"
        "Runs the program with " LIBRARY " preloaded, so that its LAPACK\n"
        "calls can be served by a GPU. An option sets BATCHLAPACK_NAME in the program's\n"
        "environment; 0|1 may be left out and means 1.\n");
    for (size_t o = 0; o < LENGTH(options); o++) {
        printf("  --");
        for (const char *c = options[o].name; *c; c++)
            putchar(tolower((unsigned char)*c));
        printf("=%s  (default: %s)\n      %s\n", options[o].values, options[o].preset,
               options[o].text);
    }
    puts(
        "\n  --explain   say, without running it, whether the program or plug-in can be\n"
        "              served: exit 0 when it can, 1 when it cannot, 2 when that is not\n"
        "              known\n"
        "  --version   print the version\n"
        "  --help      print this text\n"
        "  --          end of options\n\n"
        "Exit: the program's status; 2 for a mistake in using the launcher; 126 and 127\n"
        "when the program cannot be run or found.");
    return 0;
}

/* Puts "--name=value" into the environment. A value that the library would ignore is
 * refused. */
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
        if (strncmp(values, "0|1", 3) != 0)
            return complain(2, "option %s needs a value: %s=%s", argument, argument,
                            values);
        value = "1";
    }
    int64_t number;
    bool text;
    if (!bl_option_value(values, value, &number, &text))
        return complain(2, "option %s: the value must be %s", argument, values);
    return setenv(join("BATCHLAPACK_", options[o].name, ""), value, 1)
               ? complain(2, "%s", strerror(errno))
               : 0;
}

/* In the build tree the launcher lies beside .libs; installed, BL_LIBDIR from it,
 * wherever both have been put since configure. */
static char *find_library(void)
{
    char *directory = realpath("/proc/self/exe", NULL);
    if (!directory)
        return NULL;
    *strrchr(directory, '/') = '\0';
    char *found = realpath(join(directory, "/.libs/", LIBRARY), NULL);
    return found ? found : realpath(join(directory, "/" BL_LIBDIR "/", LIBRARY), NULL);
}

/* Ours first, so that no LAPACK preloaded by the user comes before it, and once. */
static int preload(void)
{
    char *old = join(getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "", "", "");
    char *library = find_library();
    if (!library)
        return complain(2, "cannot find " LIBRARY ": neither in .libs nor in " BL_LIBDIR
                           " from the launcher's directory");
    if (strpbrk(library, " :"))
        return complain(2, "%s: a path with a space or a colon cannot be preloaded",
                        library);
    char *list = library;
    for (char *one = strtok(old, " :"); one; one = strtok(NULL, " :"))
        if (!is_ours(one))
            list = join(list, ":", one);
    return setenv("LD_PRELOAD", list, 1) ? complain(2, "%s", strerror(errno)) : 0;
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
