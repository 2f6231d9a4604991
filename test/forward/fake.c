/* A LAPACK that only says who it is: dgetrf_ (with -DWIDE dgetrf_64_) leaves IPIV and A
 * alone and sets INFO to MAGIC. Plug-ins and programs are linked with several of these.
 */
#include <stdint.h>

#ifdef WIDE
typedef int64_t integer;
#    define DGETRF dgetrf_64_
#else
typedef int integer;
#    define DGETRF dgetrf_
#endif

void DGETRF(const integer *m, const integer *n, double *a, const integer *lda,
            integer *ipiv, integer *info);
void DGETRF(const integer *m, const integer *n, double *a, const integer *lda,
            integer *ipiv, integer *info)
{
    (void)m, (void)n, (void)a, (void)lda, (void)ipiv;
    *info = MAGIC;
}
