/* Factorisations that LAPACK does not have, as a textbook has them, in netlib's
 * arithmetic.
 *
 * For host_kernels.cc and host_mid_lu.cc, after host_cases.h.
 */
#ifndef HOST_TEXTBOOK_H
#define HOST_TEXTBOOK_H

#include "host_cases.h"

namespace
{

/* The column below a pivot, as GETRF divides it. */
template <class T>
void divide_below(int m, int k, T *column)
{
    const T pivot = column[k], reciprocal = div(one<T>(), pivot);
    for (int i = k + 1; i < m; i++)
        column[i] = !reaches_sfmin(pivot) ? div(column[i], pivot)
                    : is_one(reciprocal)  ? column[i]
                                          : mul(reciprocal, column[i]);
}

/* Right-looking, a column and a row at a time. */
template <class T>
int textbook_unpivoted(int m, int n, T *a, int lda)
{
    int info = 0;
    for (int k = 0; k < std::min(m, n); k++) {
        if (!is_zero(a[k + k * lda]))
            divide_below(m, k, a + k * lda);
        else if (info == 0)
            info = k + 1;
        for (int i = k + 1; i < m; i++)
            for (int j = k + 1; j < n; j++)
                a[i + j * lda] = sub(a[i + j * lda], mul(a[i + k * lda], a[k + j * lda]));
    }
    return info;
}

/* The paper's: Crout's columns, each element one sum, whole rows interchanged at once. */
template <class T>
int textbook_scaled(int m, int n, T *a, int lda, int *ipiv)
{
    using R = Real<T>;
    std::vector<R> scale(m);
    for (int i = 0; i < m; i++) {
        R most = 0;
        for (int j = 0; j < n; j++)
            if (abs1(a[i + j * lda]) > most)
                most = abs1(a[i + j * lda]);
        scale[i] = 1 / std::max(most, sfmin<R>());
    }
    int info = 0;
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < m; i++) {
            T sum = a[i + j * lda];
            for (int k = 0; k < std::min(i, j); k++)
                sum = sub(sum, mul(a[i + k * lda], a[k + j * lda]));
            a[i + j * lda] = sum;
        }
        if (j >= m)
            continue;
        int best = j;
        for (int i = j + 1; i < m; i++)
            if (abs1(a[i + j * lda]) * scale[i] > abs1(a[best + j * lda]) * scale[best])
                best = i;
        ipiv[j] = best + 1;
        std::swap(scale[j], scale[best]);
        for (int k = 0; k < n; k++)
            std::swap(a[j + k * lda], a[best + k * lda]);
        if (!is_zero(a[j + j * lda]))
            divide_below(m, j, a + j * lda);
        else if (info == 0)
            info = j + 1;
    }
    return info;
}

} // namespace
#endif
