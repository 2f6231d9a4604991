/* Files that options name (BATCHLAPACK_REPORT, BATCHLAPACK_VERBOSE): which file a name
 * means, whether it may be written, and its opening.
 *
 * report.c and verbose.c ask here before they write. A file that is not batchlapack's, or
 * that the program has open, is never opened for writing, and no standard descriptor is
 * taken. Nothing is said here: the caller has the reason and says it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stats.h"

static char directory[PATH_MAX]; /* of the first counted call */

void bl_remember_directory(void)
{
    if (!getcwd(directory, sizeof directory - 1))
        *directory = 0;
    else
        strcat(directory, "/");
}

bool bl_expand(char out[PATH_MAX], const char *name)
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

bool bl_same_file(const struct stat *a, const struct stat *b)
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
                bl_same_file(&one, file);
    if (open_files)
        closedir(open_files);
    return found;
}

const char *bl_foreign(const char *path, const char *mark)
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
int bl_open_high(const char *path, int flags)
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
