/* LU on the chip, on the host: getrf, gesv, gedet and getrfsp of matrices beyond the tiny
 * ones, bit for bit against netlib.
 *
 *     host_mid_lu [LAPACK [batches of a kernel]]
 *
 * The kernels of mid_lu.cuh run on the fibers of host_cuda.h, launched by mid.cu. Batches
 * have matrices of every kind, of one shape or of many. See host_kernels.cc for the
 * expected values and what "equal" is.
 */
#include "host_jobs.h"
#include "host_textbook.h"

namespace bl
{

/* As mid_lu_s.cu and its like, but less of them, two with a head; those of six rows a
 * lane have a loop of its own for the second half of a panel's columns in every
 * precision. */
#define BL_TABLES(letter, T, C)                                                          \
    const MidKernel mid_lu_##letter[] = {on_chip<T, 2, C, 2, 8>(),                       \
                                         with_head<T, 2, C, 2, 8>(),                     \
                                         on_chip<T, 3, C, 4, 4>(),                       \
                                         with_head<T, 3, C, 4, 4>(),                     \
                                         on_chip<T, 6, C, 5, 1>(),                       \
                                         {}};                                            \
    const MidKernel mid_scaled_##letter[] = {                                            \
        on_chip<T, 2, C, 3, 8, true>(), on_chip<T, 6, C, 5, 1, true>(), {}};             \
    const BlockedKernels mid_blocked_##letter = {};                                      \
    const SolveKernels mid_solve_##letter = {};
BL_TABLES(s, float, 8)
BL_TABLES(d, double, 8)
BL_TABLES(c, Complex<float>, 4)
BL_TABLES(z, Complex<double>, 4)

} // namespace bl

namespace
{

template <class T>
void test_getrf(int repeats, int least, int most)
{
    Report report("chip " + title<T>("getrf") + text(" to %d", most));
    for (int i = 0; i < repeats; i++) {
        Batch<T> batch;
        batch.fill(6, least, most, false, 0, below(2));
        judge_getrf(report, batch);
    }
}

/* Of orders just above `most`, for kernels with a head. */
template <class T>
void test_heads(int repeats, int most)
{
    constexpr int HEAD = Traits<T>::complex ? 4 : 8;
    Report report("chip " + title<T>("getrf") + text(" to %d and a head", most));
    const auto before = dice; /* for the others' cases to stay what they were */
    for (int i = 0; i < 2 * repeats; i++) {
        Batch<T> batch;
        batch.fill(6, most + 1, most + HEAD, false, 0, false);
        judge_getrf(report, batch);
    }
    dice = before;
}

template <class T>
void test_gesv(int repeats, int least, int most)
{
    Report report("chip " + title<T>("gesv") + text(" to %d", most));
    for (int i = 0; i < repeats; i++) {
        Batch<T> batch;
        batch.fill(6, least, most, true, 1 + below(2), below(2));
        judge_gesv(report, batch);
    }
}

template <class T>
void test_getrfsp(int repeats, int least, int most)
{
    Report report("chip " + title<T>("getrfsp") + text(" to %d", most));
    for (int i = 0; i < repeats; i++) {
        Batch<T> batch;
        batch.fill(6, least, most, false, 0, below(2));
        batch.run(BL_GETRFSP);
        for (Case<T> &c : batch.cases) {
            c.info0 = textbook_scaled(c.m, c.n, c.a0.data(), c.lda, c.ipiv0.data());
            c.judge(report, false);
        }
    }
}

template <class T>
void test_all(int repeats)
{
    test_getrf<T>(2 * repeats, 33, 64);
    test_getrf<T>(repeats, 65, 96);
    test_getrf<T>(2, 97, 130);
    test_heads<T>(repeats, 64);
    test_heads<T>(repeats, 96);
    if (!Traits<T>::complex)
        test_gesv<T>(repeats, 33, 64);
    test_gedet<T>("chip", repeats, 64, false);
    test_gedet<T>("chip", 1, 120, false);
    test_getrfsp<T>(repeats, 33, 64);
    test_getrfsp<T>(2, 65, 120);
}

} // namespace

int main(int argc, char **argv)
{
    for (const MidKernel *list : {mid_lu_s, mid_lu_d, mid_lu_c, mid_lu_z, mid_scaled_s,
                                  mid_scaled_d, mid_scaled_c, mid_scaled_z})
        for (const MidKernel *k = list; k->kernel; k++)
            host_cuda::know<MidArguments>(k->kernel);
    return run_types(argc, argv, 4, [](auto number, int repeats) {
        test_all<decltype(number)>(repeats);
    });
}
