/* A program without a LAPACK of its own (with -DOWN: linked with one) that opens plug-ins
 * and libraries at run time. Usage: host COMMAND FILE...; prints what each call returned.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int plugin_fn(void);
typedef void getrf_fn(const int *, const int *, double *, const int *, int *, int *);

static void *open_or_die(const char *file, int flags)
{
    void *handle = dlopen(file, flags);
    if (!handle) {
        printf("%s\n", dlerror());
        exit(2);
    }
    return handle;
}

static void *symbol(void *handle, const char *name)
{
    void *p = dlsym(handle, name);
    if (!p) {
        printf("no %s\n", name);
        exit(2);
    }
    return p;
}

static plugin_fn *plugin(void *handle)
{
    plugin_fn *f;
    void *p = symbol(handle, "plugin_call");
    memcpy(&f, &p, sizeof f);
    return f;
}

static getrf_fn *getrf(void *handle, const char *name)
{
    getrf_fn *f;
    void *p = symbol(handle, name);
    memcpy(&f, &p, sizeof f);
    return f;
}

/* As plugin_call, from this program. */
static int call(getrf_fn *f)
{
    double a[4] = {0, 1, 2, 3};
    int n = 2, ipiv[2] = {0, 0}, info = -99;
    f(&n, &n, a, &n, ipiv, &info);
    return info ? info : 10 * ipiv[0] + ipiv[1];
}

struct caller {
    plugin_fn *f;
    int expected, wrong;
};
static volatile int stop;

static void *repeat(void *p)
{
    struct caller *c = p;
    for (int i = 0; i < 2000; i++)
        if (c->f() != c->expected)
            __atomic_fetch_add(&c->wrong, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void *until_stopped(void *p)
{
    struct caller *c = p;
    while (!stop)
        c->f();
    return NULL;
}

/* Each plug-in in turn, twice, then each from two threads at once. */
static int interleaved(int n, char **files)
{
    struct caller c[8] = {{0}};
    pthread_t threads[16];
    int wrong = 0;
    for (int i = 0; i < n; i++)
        c[i].f = plugin(open_or_die(files[i], RTLD_NOW | RTLD_LOCAL));
    for (int i = 0; i < 2 * n; i++)
        printf("%d ", c[i % n].expected = c[i % n].f());
    for (int i = 0; i < 2 * n; i++)
        pthread_create(&threads[i], NULL, repeat, &c[i % n]);
    for (int i = 0; i < 2 * n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++)
        wrong += c[i].wrong;
    printf("%d\n", wrong);
    return 0;
}

/* One plug-in after the other; the second of equal layout takes the first one's address.
 * With two equal names the file is replaced in between (by FILE.new). */
static int reload(char **files, void *first)
{
    char new_name[4096];
    snprintf(new_name, sizeof new_name, "%s.new", files[0]);
    first = first ? first : open_or_die(files[0], RTLD_NOW | RTLD_LOCAL);
    plugin_fn *f = plugin(first);
    int before = f();
    dlclose(first);
    if (strcmp(files[0], files[1]) == 0 && rename(new_name, files[0]) != 0)
        return 2;
    plugin_fn *g = plugin(open_or_die(files[1], RTLD_NOW | RTLD_LOCAL));
    printf("%d %d %s\n", before, g(), f == g ? "same" : "moved");
    return 0;
}

/* A program that opens and closes something unrelated for ever: kB grown in the second
 * half, per thousand rounds. */
static int churn(char **files)
{
    plugin_fn *f = plugin(open_or_die(files[0], RTLD_NOW | RTLD_LOCAL));
    long before = 0;
    struct rusage use;
    int n = 4000, wrong = 0, expected = f();
    for (int i = 0; i < n; i++) {
        void *other = open_or_die(files[1], RTLD_NOW | RTLD_LOCAL);
        dlclose(other);
        wrong += f() != expected;
        getrusage(RUSAGE_SELF, &use);
        if (i == n / 2)
            before = use.ru_maxrss;
    }
    long grown = (use.ru_maxrss - before) * 1000 / (n / 2);
    if (grown < 100)
        printf("%d steady\n", wrong);
    else
        printf("%d %ld kB a thousand rounds\n", wrong, grown);
    return 0;
}

/* Fork while other threads call from a plug-in; each child calls from it as well. */
static int fork_in_calls(char **files)
{
    pthread_t threads[3];
    struct caller c = {plugin(open_or_die(files[0], RTLD_NOW | RTLD_LOCAL)), 0, 0};
    int wrong = 0, hung = 0, expected = c.f();
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, until_stopped, &c);
    for (int i = 0; i < 300 && !hung; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            _exit(c.f() != expected);
        }
        waitpid(child, &status, 0);
        hung += WIFSIGNALED(status);
        wrong += WIFEXITED(status) && WEXITSTATUS(status);
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d wrong %d hung\n", wrong, hung);
    return 0;
}

static int tail_call(const char *file)
{
    getrf_fn *f = getrf(open_or_die(file, RTLD_NOW | RTLD_LOCAL), "plugin_tail");
    printf("%d\n", call(f));
    return 0;
}

#ifdef OWN
getrf_fn dgetrf_;
#endif

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    char **files = argv + 2;
#ifdef OWN
    printf("%d ", call(dgetrf_));
#endif
    if (strcmp(command, "plugins") == 0)
        return interleaved(argc - 2, files);
    if (strcmp(command, "reload") == 0)
        return reload(files, NULL);
    if (strcmp(command, "reload-early") == 0)
        return reload(files, *(void **)symbol(RTLD_DEFAULT, "opened_early"));
    if (strcmp(command, "churn") == 0)
        return churn(files);
    if (strcmp(command, "fork") == 0)
        return fork_in_calls(files);
    if (strcmp(command, "tail") == 0)
        return tail_call(files[0]);
    if (strcmp(command, "deepbind") == 0)
        printf("%d\n", plugin(open_or_die(files[0], RTLD_NOW | RTLD_DEEPBIND))());
    else if (strcmp(command, "handle") == 0)
        printf("%d\n",
               call(getrf(open_or_die(files[0], RTLD_NOW | RTLD_LOCAL), "dgetrf_")));
    else if (strcmp(command, "default") == 0) {
        if (argc > 2)
            open_or_die(files[0], RTLD_NOW | RTLD_LOCAL);
        printf("%d\n", call(getrf(RTLD_DEFAULT, "dgetrf_")));
    } else
        return 2;
    return 0;
}
