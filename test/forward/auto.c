/* auto N CALLS: CALLS times dgesv of order N, each with the answer 1, 1, ... */
#include <stdio.h>
#include <stdlib.h>

void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv,
            double *b, const int *ldb, int *info);

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1, calls = argc > 2 ? atoi(argv[2]) : 1, one = 1;
    double *a = malloc((size_t)n * (size_t)n * sizeof *a),
           *b = malloc((size_t)n * sizeof *b);
    int *ipiv = malloc((size_t)n * sizeof *ipiv), info = 0;
    for (; calls > 0 && info == 0; calls--) {
        for (int k = 0; k < n * n; k++)
            a[k] = k % (n + 1) == 0 ? 2 : 0;
        for (int k = 0; k < n; k++)
            b[k] = 2;
        dgesv_(&n, &one, a, &n, ipiv, b, &n, &info);
        for (int k = 0; k < n; k++)
            info |= b[k] != 1;
    }
    puts(info == 0 ? "fine" : "wrong");
    free(a);
    free(b);
    free(ipiv);
    return info != 0;
}
