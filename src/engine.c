/* Load the engine once, when it is worth it, and know when to leave it alone.
 *
 * The dispatcher asks before each worthwhile call. A forked child never gets the parent's
 * engine, and an engine that failed repeatedly is not asked again. Nothing here touches
 * the caller's data.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "batchlapack.h"
#include "bl.h"
#include "floating_point.h"
#include "stats.h"

#define ENGINE_FILE "libbatchlapack_cuda.so"
#define FAULTS_TO_SWITCH_OFF 3

enum state { ASLEEP, READY, MISSING, OFF, FORKED };

static _Atomic int state = ASLEEP;
static _Atomic bool begun;        /* start-up has at least begun */
static const volatile char *here; /* reads 0 in a forked child, however it was forked */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static const struct bl_engine *engine;
static struct bl_device device;
static char reason[256];          /* why there is no engine, once that is known */
static _Atomic uint64_t saved_ns; /* predicted savings of the process so far */
static _Atomic int faults;        /* in a row */

const struct bl_device *bl_engine_device(void)
{
    return engine && atomic_load(&state) != FORKED ? &device : NULL;
}

static const char *engine_path(char beside[PATH_MAX])
{
    const char *path = bl_option_text(BL_OPTION_ENGINE);
    return path ? path : bl_own_path(beside, PATH_MAX, ENGINE_FILE);
}

/* Is there no such file? Then *why says so. */
static bool missing(const char *path, char *why, size_t size)
{
    if (path && access(path, R_OK) == 0)
        return false;
    snprintf(why, size, "the engine is not installed: no %s", path ? path : ENGINE_FILE);
    return true;
}

const char *bl_engine_why(void)
{
    static char absent[sizeof reason];
    char beside[PATH_MAX];
    if (*reason)
        return reason;
    if (bl_config()->excluded)
        return bl_reason_text[BL_WHY_EXCLUDED];
    if (bl_option(BL_OPTION_MODE) == BATCHLAPACK_MODE_CPU)
        return bl_reason_text[BL_WHY_MODE];
    if (missing(engine_path(beside), absent, sizeof absent))
        return absent;
    return bl_reason_text[BL_WHY_STARTUP];
}

const struct bl_engine *bl_engine_now(void)
{
    bool up = atomic_load_explicit(&state, memory_order_acquire) == READY;
    return up && (!here || *here) ? engine : NULL;
}

/* The option, or what the device has, shared out among the processes of this node that
 * the MPI launcher says there are. */
uint64_t bl_memory_limit(void)
{
    int64_t limit = bl_option(BL_OPTION_MEMORY);
    if (limit >= 0)
        return (uint64_t)limit;
    int64_t devices = bl_max(device.devices, 1);
    int64_t sharing = (bl_config()->local_ranks + devices - 1) / devices;
    return sharing > 1 ? device.memory / 10 * 9 / (uint64_t)sharing : UINT64_MAX;
}

/* At exit the CUDA driver goes first; a later call (from another exit handler) must find
 * the engine gone. Registered after the engine's own handlers, so it runs before them. */
static void switch_off_at_exit(void)
{
    atomic_store(&state, OFF);
}

static bool load(void)
{
    char beside[PATH_MAX];
    const char *path = engine_path(beside);
    void *handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!handle) {
        const char *error = path ? dlerror() : "";
        if (!missing(path, reason, sizeof reason))
            snprintf(reason, sizeof reason, "%s", error);
        return false;
    }
    const struct bl_engine *e = dlsym(handle, BL_ENGINE_SYMBOL);
    if (!e || e->abi != BL_ENGINE_ABI || e->size != sizeof *e) {
        snprintf(reason, sizeof reason, "%s is not an engine for this version", path);
        return false;
    }
    struct bl_device found = {0};
    int ordinal = (int)bl_min(bl_option(BL_OPTION_DEVICE), INT_MAX);
    if (e->open(ordinal, &found, reason, sizeof reason) != BL_OK) {
        reason[sizeof reason - 1] = 0;
        return false;
    }
    found.name[sizeof found.name - 1] = 0;
    device = found;
    engine = e;
    atexit(switch_off_at_exit);
    return true;
}

/* A page that the kernel empties in a child: pthread_atfork does not see _Fork() or a raw
 * system call. Where there is none to be had, pthread_atfork must do. */
static void mark_this_process(void)
{
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *page =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        munmap(page, size);
        return;
    }
    *page = 1;
    here = page;
}

static void *load_on_own_stack(void *loaded)
{
    bl_loader_lock();
    *(bool *)loaded = load();
    bl_loader_unlock();
    return NULL;
}

/* CUDA's start-up needs more stack than some callers' threads have, and must not take the
 * program's signals: a thread of our own does it and ends. */
static bool start(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    bool loaded = false;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)8 << 20);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attr, load_on_own_stack, &loaded);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (failed) {
        snprintf(reason, sizeof reason, "no thread to start it: %s", strerror(failed));
        return false;
    }
    pthread_join(thread, NULL);
    return loaded;
}

/* `starting` is not taken before a fork: the CUDA driver may itself fork at its start. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&starting, NULL);
    if (atomic_load(&begun)) {
        atomic_store(&state, FORKED);
        snprintf(reason, sizeof reason, "%s", bl_reason_text[BL_WHY_FORKED]);
    }
    bl_pipeline_after_fork();
}

__attribute__((constructor)) static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

static const struct bl_engine *ready(int now, enum bl_reason *why)
{
    switch (now) {
    case READY:
        if (!here || *here)
            return engine;
        after_fork_in_child();
        *why = BL_WHY_FORKED;
        break;
    case MISSING:
        *why = BL_WHY_NOENGINE;
        break;
    case FORKED:
        *why = BL_WHY_FORKED;
        break;
    default:
        *why = BL_WHY_OFF;
    }
    return NULL;
}

static __attribute__((noinline)) uint64_t nanoseconds(double seconds)
{
    return (uint64_t)((seconds < 1e6 ? seconds : 1e6) * 1e9);
}

bool bl_engine_due(double saving, bool forced, enum bl_reason *why)
{
    int now = atomic_load_explicit(&state, memory_order_acquire);
    if (now == READY)
        return true;
    if (now != ASLEEP) {
        ready(now, why);
        return false;
    }
    if (forced)
        return true;
    bl_floating_point before;
    bl_hold(&before);
    uint64_t ns = nanoseconds(saving);
    bl_release(&before);
    *why = BL_WHY_STARTUP;
    return atomic_fetch_add(&saved_ns, ns) + ns >= (uint64_t)(BL_STARTUP_SECONDS * 1e9);
}

const struct bl_engine *bl_engine_start(enum bl_reason *why)
{
    int now = atomic_load_explicit(&state, memory_order_acquire);
    if (now != ASLEEP)
        return ready(now, why);
    uint64_t begin = bl_now();
    pthread_mutex_lock(&starting);
    now = atomic_load(&state);
    if (now == ASLEEP) {
        atomic_store(&begun, true);
        mark_this_process();
        now = start() ? READY : MISSING;
        atomic_store_explicit(&state, now, memory_order_release);
    }
    pthread_mutex_unlock(&starting);
    bl_stats_startup(bl_now() - begin);
    return ready(now, why);
}

const struct bl_engine *bl_engine_for(double saving, bool forced, enum bl_reason *why)
{
    return bl_engine_due(saving, forced, why) ? bl_engine_start(why) : NULL;
}

const struct bl_engine *bl_engine_for_device_data(bool *possible)
{
    enum bl_reason why;
    int now = atomic_load_explicit(&state, memory_order_acquire);
    *possible = true;
    if (now != ASLEEP)
        return ready(now, &why);
    bl_loader_lock();
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver)
        dlclose(driver);
    bl_loader_unlock();
    *possible = driver != NULL;
    return driver && !bl_config()->excluded ? bl_engine_for(0, true, &why) : NULL;
}

static const char *const status_text[BL_STATUSES] = {
#define S(name, text) text,
#include "status.def"
#undef S
};

static void switch_off(enum bl_status status)
{
    int expected = READY;
    if (!atomic_compare_exchange_strong(&state, &expected, OFF))
        return;
    snprintf(reason, sizeof reason, "%s: %s", bl_reason_text[BL_WHY_OFF],
             status_text[status]);
    bl_verbose("%s", reason);
}

enum bl_reason bl_engine_failed(enum bl_status status)
{
    switch (status) {
    case BL_NOMEM:
        return BL_WHY_MEMORY;
    case BL_UNSUPPORTED:
        return BL_WHY_UNSERVED;
    case BL_LOST:
        switch_off(status);
        return BL_WHY_FAULT;
    default:
        if (atomic_fetch_add(&faults, 1) + 1 >= FAULTS_TO_SWITCH_OFF)
            switch_off(status);
        return BL_WHY_FAULT;
    }
}

void bl_engine_succeeded(void)
{
    if (atomic_load_explicit(&faults, memory_order_relaxed))
        atomic_store(&faults, 0);
}
