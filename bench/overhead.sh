#!/bin/bash
# What the preload costs where it does nothing: a forwarded dgetrf_ of n = 1, and the start of
# a process that calls no LAPACK. Run in the build folder.
set -eu
src=$(cd "$(dirname "$0")" && pwd)
lib=$PWD/.libs/libbatchlapack.so
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
${CC:-gcc} -O2 "$src/overhead.c" -o "$dir/overhead" -llapack

for i in 1 2 3; do
    alone=$("$dir/overhead")
    with=$(LD_PRELOAD=$lib "$dir/overhead")
    awk -v a="$alone" -v w="$with" 'BEGIN {
        printf "forwarded dgetrf_ n = 1: %s ns alone, %s ns preloaded, %.1f ns more\n", a, w, w - a }'
done

cat >"$dir/start.c" <<'C'
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
extern char **environ;
int main(int argc, char **argv)
{
    struct timespec b, e;
    char *none[] = {NULL};
    (void)argc;
    for (int round = 0; round < 2; round++) {
        char *preload[] = {argv[1], NULL};
        clock_gettime(CLOCK_MONOTONIC, &b);
        for (int i = 0; i < 500; i++) {
            pid_t pid;
            char *args[] = {"/bin/true", NULL};
            posix_spawn(&pid, "/bin/true", NULL, NULL, args, round ? preload : none);
            waitpid(pid, NULL, 0);
        }
        clock_gettime(CLOCK_MONOTONIC, &e);
        printf("/bin/true %s: %.3f ms a process\n", round ? "preloaded" : "alone",
               ((e.tv_sec - b.tv_sec) * 1e3 + (e.tv_nsec - b.tv_nsec) * 1e-6) / 500);
    }
}
C
${CC:-gcc} -O2 "$dir/start.c" -o "$dir/start"
"$dir/start" "LD_PRELOAD=$lib"
