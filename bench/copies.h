/* How a program has the library load bench/copies.so, and what that tells it. */
#ifndef BL_BENCH_COPIES_H
#define BL_BENCH_COPIES_H

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct copies {
    bool only;          /* set by the program: no run is made, INFO is 0 */
    double arrived;     /* of the last such run, by the monotonic clock: all was there */
    unsigned long runs; /* so far, left out or not */
};
#define COPIES_SYMBOL "copies"

/* Beside this program, or above where libtool has put it. */
static inline const char *copies_path(void)
{
    static char path[PATH_MAX + 32];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    for (int up = 0; up < 2; up++) {
        while (length > 0 && path[length - 1] != '/')
            length--;
        if (length > 0)
            snprintf(path + length, sizeof path - (size_t)length, "copies.so");
        if (access(path, R_OK) == 0)
            break;
        length--;
    }
    return path;
}

/* Before the library's first call. */
static inline void copies_choose(void)
{
    const char *engine = getenv("BATCHLAPACK_ENGINE");
    if (engine)
        setenv("COPIES_ENGINE", engine, 1);
    setenv("BATCHLAPACK_ENGINE", copies_path(), 1);
}

/* NULL where the library has not loaded it. */
static inline struct copies *copies_loaded(void)
{
    void *engine = dlopen(copies_path(), RTLD_NOW | RTLD_NOLOAD);
    return (struct copies *)(engine ? dlsym(engine, COPIES_SYMBOL) : NULL);
}

#endif
