/* What a forwarded call costs: dgetrf_ of n = 1, nanoseconds a call, median of 31 rounds.
 * Linked with -llapack only; bench/overhead.sh runs it with and without the preload. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *ipiv, int *info);

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    enum { ROUNDS = 31, CALLS = 200000 };
    double round[ROUNDS], a = 2;
    int one = 1, ipiv, info;
    for (int r = 0; r < ROUNDS; r++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int i = 0; i < CALLS; i++)
            dgetrf_(&one, &one, &a, &one, &ipiv, &info);
        clock_gettime(CLOCK_MONOTONIC, &end);
        round[r] = ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
                    (double)(end.tv_nsec - begin.tv_nsec)) /
                   CALLS;
    }
    qsort(round, ROUNDS, sizeof *round, ascending);
    printf("%.1f\n", round[ROUNDS / 2]);
    return 0;
}
