/* A plug-in that calls dgetrf_ of whatever LAPACK it was linked with and hands INFO back;
 * with a real LAPACK behind it, IPIV(1) * 10 + IPIV(2) where INFO is 0. With -DOPENS it
 * is a library that opens such a plug-in while the process starts, before the preloaded
 * library's own constructor.
 */
#ifdef OPENS
#    include <dlfcn.h>
void *opened_early;
__attribute__((constructor)) static void open_early(void)
{
    opened_early = dlopen(OPENS, RTLD_NOW | RTLD_LOCAL);
}
#else
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *ipiv, int *info);
int plugin_call(void);
void plugin_tail(const int *m, const int *n, double *a, const int *lda, int *ipiv,
                 int *info);

int plugin_call(void)
{
    double a[4] = {0, 1, 2, 3};
    int n = 2, ipiv[2] = {0, 0}, info = -99;
    dgetrf_(&n, &n, a, &n, ipiv, &info);
    return info ? info : 10 * ipiv[0] + ipiv[1];
}

/* Compiled to a jump: the return address that dgetrf_ sees is not in this object. */
void plugin_tail(const int *m, const int *n, double *a, const int *lda, int *ipiv,
                 int *info)
{
    dgetrf_(m, n, a, lda, ipiv, info);
}
#endif
