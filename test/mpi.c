/* Each rank solves its own systems, 20 of order 60 + rank; rank 0 says whether all of
 * them have the answer 1, 1, ... Linked with MPI and LAPACK; run by mpi.sh. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv,
            double *b, const int *ldb, int *info);

int main(int argc, char **argv)
{
    int rank, size, bad = 0, all = 0, one = 1, info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = 60 + rank;
    double *a = malloc((size_t)(n * n) * sizeof *a), *b = malloc((size_t)n * sizeof *b);
    int *ipiv = malloc((size_t)n * sizeof *ipiv);
    for (int call = 0; call < 20; call++) {
        /* Row i: 1 everywhere and n more on the anti-diagonal, so that every pivot moves.
         */
        for (int k = 0; k < n * n; k++)
            a[k] = k % n + k / n == n - 1 ? n + 1 : 1;
        for (int i = 0; i < n; i++)
            b[i] = 2 * n;
        dgesv_(&n, &one, a, &n, ipiv, b, &n, &info);
        bad |= info != 0;
        for (int i = 0; i < n; i++)
            bad |= b[i] < 1 - 1e-12 || b[i] > 1 + 1e-12;
    }
    MPI_Reduce(&bad, &all, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks %s\n", size, all ? "wrong" : "right");
    free(a);
    free(b);
    free(ipiv);
    MPI_Finalize();
    return 0;
}
