/* The determinant as a phase and the logarithm of its modulus: GEDET.
 *
 * Called by the kernels of determinant.cu, by mid_lu.cuh and mid_inverse.cuh, and by
 * test/host_kernels.cc.
 */
#ifndef BL_DETERMINANT_CUH
#define BL_DETERMINANT_CUH

#include "lu.cuh"
#include "product.cuh"

namespace bl
{

/* From the factors of an n x n matrix. The first warp's work. Singular: 0 and -Inf. A NaN
 * on the diagonal makes both NaN. */
template <class T>
BL_CALL void determinant(const Team &team, int64_t n, const T *lu, int64_t lda,
                         const Pivots &pivots, T *phase, Real<T> *logabs)
{
    if (team.warp() > 0)
        return;
    const Product<T> det = product_of_all<T>(n, team.lane(), [&](int64_t k) {
        const T u = lu[k + k * lda];
        return pivots.get(k) == k ? u : negative(u);
    });
    if (team.lane() == 0)
        phase_and_logarithm(det, *phase, *logabs);
}

/* The work space holds IPIV, then the factors. */
template <class T>
BL_HD int64_t gedet(Team &team, const Problem<T> &p)
{
    Pivots pivots = {p.work, sizeof(int64_t), 0};
    T *lu = behind_pivots(p);
    copy(team, p.n, p.n, p.a, p.lda, lu, p.n);
    team.sync();
    int64_t info = lu_factor(team, p.n, p.n, lu, p.n, pivots);
    determinant(team, p.n, lu, p.n, pivots, p.phase, p.logabs);
    return info;
}

} // namespace bl
#endif
