/* What kind of LAPACK serves a call: how wide its integers are, and whether it is
 * netlib's.
 *
 * forward.c asks once for each routine that it finds. The answer is read off the library
 * (its names, its neighbours, one call of its BLAS), never off a clock.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "bl.h"

void *bl_handle_of(const char *name)
{
    return dlopen(*name ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
}

/* Netlib's own BLAS, as Debian and others name it: 32-bit integers, or 64. */
static bool in_netlib_blas(const void *symbol)
{
    Dl_info where;
    if (!symbol || !dladdr(symbol, &where))
        return false;
    const char *slash = strrchr(where.dli_fname, '/');
    const char *name = slash ? slash + 1 : where.dli_fname;
    return strncmp(name, "libblas.so.3", 12) == 0 ||
           strncmp(name, "libblas64.so.3", 14) == 0;
}

/* Is the LAPACK in this object netlib's over netlib's BLAS? Then the BLAS that it reaches
 * is netlib's, and so is one that is bound before (a preload, the program's own), and
 * nothing in reach carries another library's mark. What is not known is taken for a fast
 * one. */
static bool is_reference(void *object)
{
    static const char *const marks[] = {
        "openblas_get_config", "bli_info_get_version_str",
        "MKL_Get_Version",     "ATL_buildinfo",
        "armplversion",        "flexiblas_info",
        "cblas_dgemm_batch",
    };
    void *first = dlsym(RTLD_DEFAULT, "dgemm_");
    if (!in_netlib_blas(dlsym(object, "dgemm_")) || (first && !in_netlib_blas(first)))
        return false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (dlsym(object, marks[i]))
            return false;
    return true;
}

/* Are a plain name's integers 64-bit (Debian's liblapack64, MKL's ILP64 layer)? Its BLAS
 * is asked: this N is 3 to a 32-bit routine, and negative to a 64-bit one, which answers
 * 0. */
static bool is_wide(void *object)
{
    const int64_t n = (int64_t)0xffffffff00000003, one = 1;
    int (*isamax)(const int64_t *, const float *, const int64_t *);
    void *symbol = dlsym(object, "isamax_");
    if (!symbol)
        return false;
    memcpy(&isamax, &symbol, sizeof isamax);
    return isamax(&n, (const float[]){1, 2, 3}, &one) == 0;
}

static void *object_of(bl_fn *fn)
{
    Dl_info where;
    struct link_map *map;
    void *symbol;
    memcpy(&symbol, &fn, sizeof symbol);
    if (!symbol || !dladdr1(symbol, &where, (void **)&map, RTLD_DL_LINKMAP))
        return NULL;
    return bl_handle_of(map->l_name);
}

void *bl_beside(bl_fn *fn, const char *symbol)
{
    void *object = object_of(fn);
    void *found = object ? dlsym(object, symbol) : NULL;
    if (object)
        dlclose(object);
    return found;
}

struct bl_target bl_provider_of(bl_fn *fn)
{
    struct bl_target t = {.fn = fn};
    void *object = object_of(fn);
    if (!object)
        return t;
    t.wide = is_wide(object);
    t.reference = is_reference(object);
    dlclose(object);
    return t;
}
