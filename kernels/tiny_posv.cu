/* POSV and POTRS of order n <= 32: the kernels, and which one a size gets. */
#include "tiny_cholesky_solve.cuh"
#include "tiny_cholesky_kernel.cuh"

namespace bl
{
namespace
{

template <class T, int N, bool UPPER>
using Launch = TinyLaunch<BL_POSV, TinySolver, T, N, UPPER, lanes_of<T>(N, true)>;

template <class T, int N, bool UPPER>
__global__ void __launch_bounds__(Launch<T, N, UPPER>::THREADS,
                                  Launch<T, N, UPPER>::BLOCKS)
    posv_kernel(const TinyCholeskyArguments g)
{
    using L = Launch<T, N, UPPER>;
    __shared__ Cell<T> cells[L::WARPS * L::PACKED];
    typename L::Matrix m(L::lane(), cells + L::first_cell());
    TinyItem<T> item(g, L::G);
    if (UPPER)
        m.take_by_halves(item.n);
    else
        m.take_first(item.n);
    m.template fetch<UPPER>(item.a, item.lda);
    m.meet();
    if (!g.factored)
        m.factor(item.a, item.lda);
    const bool live = item.there && m.info == 0;
    T *b = item.there ? (T *)tiny_item(g.b, item.item, sizeof(T)) : nullptr;
    m.solve_apart(m, L::sides(sides_for(L::G, g.nrhs)), b, g.b.ld, g.nrhs, live);
    if (item.there && m.t == 0)
        item.put_info(g, m.info_of_rows());
}

template <class T, int N>
TinyCholeskyKernel of_order(bool upper)
{
    return upper ? Launch<T, N, true>::of(posv_kernel<T, N, true>)
                 : Launch<T, N, false>::of(posv_kernel<T, N, false>);
}

template <class T>
TinyCholeskyKernel of_type(int n, bool upper)
{
    switch (tiny_cholesky_class(n)) {
    case 4:
    case 8:
        return of_order<T, 8>(upper);
    case 12:
    case 16:
        return of_order<T, 16>(upper);
    case 20:
    case 24:
        return of_order<T, 24>(upper);
    default:
        return of_order<T, 32>(upper);
    }
}

} // namespace

TinyCholeskyKernel tiny_posv(int precision, int n, bool upper)
{
    switch (precision) {
    case BL_S:
        return of_type<float>(n, upper);
    case BL_D:
        return of_type<double>(n, upper);
    case BL_C:
        return of_type<Complex<float>>(n, upper);
    default:
        return of_type<Complex<double>>(n, upper);
    }
}

} // namespace bl
