/* POTRI of order n <= 32: the kernels, and which one a size gets. */
#include "tiny_cholesky_inverse.cuh"
#include "tiny_cholesky_kernel.cuh"

namespace bl
{
namespace
{

template <class T, int N>
using Launch = TinyLaunch<BL_POTRI, TinyInverter, T, N, false, lanes_of<T>(N, true)>;

template <class T, int N>
__global__ void __launch_bounds__(Launch<T, N>::THREADS, Launch<T, N>::BLOCKS)
    potri_kernel(const TinyCholeskyArguments g)
{
    using L = Launch<T, N>;
    __shared__ Cell<T> cells[L::WARPS * L::PACKED];
    typename L::Matrix m(L::lane(), cells + L::first_cell());
    TinyItem<T> item(g, L::G);
    const bool upper = g.uplo == 'U';
    m.take_first(item.n);
    if (upper)
        m.template fetch<true>(item.a, item.lda);
    else
        m.template fetch<false>(item.a, item.lda);
    m.meet();
    m.invert(L::sides(L::Matrix::SIDE));
    if (m.info == 0 && upper)
        m.template put<true>(item.a, item.lda);
    else if (m.info == 0)
        m.template put<false>(item.a, item.lda);
    if (item.there && m.t == 0)
        item.put_info(g, m.info);
}

template <class T>
TinyCholeskyKernel of_type(int n)
{
    switch (tiny_cholesky_class(n)) {
    case 4:
    case 8:
        return Launch<T, 8>::of(potri_kernel<T, 8>);
    case 12:
    case 16:
        return Launch<T, 16>::of(potri_kernel<T, 16>);
    case 20:
    case 24:
        return Launch<T, 24>::of(potri_kernel<T, 24>);
    default:
        return Launch<T, 32>::of(potri_kernel<T, 32>);
    }
}

} // namespace

TinyCholeskyKernel tiny_potri(int precision, int n)
{
    switch (precision) {
    case BL_S:
        return of_type<float>(n);
    case BL_D:
        return of_type<double>(n);
    case BL_C:
        return of_type<Complex<float>>(n);
    default:
        return of_type<Complex<double>>(n);
    }
}

} // namespace bl
