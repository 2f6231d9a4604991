/* Whole jobs of kernels/mid.cu on the host: a batch of cases, launched as on a device.
 *
 * For host_mid_lu.cc and host_mid_solve.cc. Which kernels there are is theirs to say:
 * they define the tables that mid.cu chooses from.
 */
#ifndef HOST_JOBS_H
#define HOST_JOBS_H

#include "cuda_runtime.h"
#include "mid_lu.cuh"
#include "mid_solve.cuh"
#include "host_cases.h"
#include "family.h"
#include "host_lu.h"

namespace
{

/* A batch of cases, its operands by pointers. */
template <class T>
struct Batch {
    std::vector<Case<T>> cases;
    const int int_size = below(2) ? 4 : 8;
    bool with_items = false;
    /* Of a small card a few matrices are many. */
    const Card card = {below(2) ? 132 : 1, 90, size_t(227) << 10, true};
    struct bl_job job = {};
    std::vector<void *> a, b, x, ipiv, info, phase, logabs;
    std::vector<struct bl_item> items;
    std::vector<std::vector<int64_t>> pivots;
    std::vector<int64_t> infos;
    std::vector<T> phases;
    std::vector<Real<T>> logarithms;

    /* Cases up to `most` rows and columns; square, where the routine wants it. */
    void fill(int count, int least, int most, bool square, int nrhs, bool shapes)
    {
        with_items = shapes;
        int m = below(4) ? least + below(most - least + 1) : most;
        int n = square || below(4) ? m : 1 + below(most);
        for (int k = 0; k < count; k++) {
            const int shape_of_first = shape_class(m, n);
            if (shapes && k > 0)
                do { /* which engine.cu puts together */
                    m = 1 + below(most);
                    n = square || below(2) ? m : 1 + below(most);
                } while (shape_class(m, n) != shape_of_first);
            cases.emplace_back(Kind(below(KINDS)), m, n, nrhs);
            Case<T> &c = cases.back();
            if (!shapes)
                c.lda = cases[0].lda;
            c.ldb = most;
            c.a = matrix<T>(c.kind, m, n, c.lda);
            c.b = matrix<T>(below(4) ? RANDOM : c.kind, n, nrhs, c.ldb);
            c.pivots(false);
            c.ready();
            c.label += text(" of %d x %d, number %d%s", m, n, k, shapes ? ", items" : "");
        }
    }

    void run(enum bl_routine_id routine, enum bl_arithmetic arithmetic = BL_EXACT)
    {
        const size_t count = cases.size();
        job = {};
        job.routine = routine;
        job.arithmetic = arithmetic;
        job.precision = Name<T>::precision;
        job.trans = 'N';
        job.int_size = int_size;
        job.nrhs = cases[0].nrhs;
        job.block = 64;
        job.batch = int64_t(count);
        infos.assign(count, -7);
        phases.assign(count, from_real<T>(-7));
        logarithms.assign(count, -7);
        pivots.resize(count);
        for (size_t k = 0; k < count; k++) {
            Case<T> &c = cases[k];
            job.m = std::max<int64_t>(job.m, c.m);
            job.n = std::max<int64_t>(job.n, c.n);
            pivots[k].resize(c.ipiv.size());
            for (size_t i = 0; i < c.ipiv.size(); i++)
                if (int_size == 4)
                    ((int32_t *)pivots[k].data())[i] = c.ipiv[i];
                else
                    pivots[k][i] = c.ipiv[i];
            a.push_back(c.a.data());
            b.push_back(c.b.data());
            ipiv.push_back(pivots[k].data());
            info.push_back(&infos[k]);
            phase.push_back(&phases[k]);
            logabs.push_back(&logarithms[k]);
            items.push_back({int64_t(k), c.m, c.n, c.lda, c.ldb});
        }
        job.a = {nullptr, a.data(), cases[0].lda, 0};
        job.b = job.x = {nullptr, b.data(), cases[0].ldb, 0};
        job.ipiv = {nullptr, ipiv.data(), 0, 0};
        job.info = {nullptr, info.data(), 0, 0};
        job.phase = {nullptr, phase.data(), 0, 0};
        job.logabs = {nullptr, logabs.data(), 0, 0};
        job.items = with_items ? items.data() : nullptr;
        std::vector<double2> work(mid.workspace(&job, card) / sizeof(double2) + 1);
        memset((void *)work.data(), 0xff, work.size() * sizeof(double2));
        job.work = work.data();
        if (mid.launch(&job, card, nullptr) != cudaSuccess) {
            printf("Bail out! a job could not be launched\n");
            exit(1);
        }
        for (size_t k = 0; k < count; k++) {
            Case<T> &c = cases[k];
            c.info = int_size == 4 ? *(int32_t *)&infos[k] : int(infos[k]);
            for (size_t i = 0; i < c.ipiv.size(); i++)
                c.ipiv[i] =
                    int_size == 4 ? ((int32_t *)pivots[k].data())[i] : int(pivots[k][i]);
        }
    }
};

template <class T>
using Factor = void(int *, int *, T *, int *, int *, int *);

template <class T>
using Solves = void(int *, int *, T *, int *, int *, T *, int *, int *);

/* The batch as it is filled, bit for bit. */
template <class T>
void judge_getrf(Report &report, Batch<T> &batch)
{
    batch.run(BL_GETRF);
    for (Case<T> &c : batch.cases) {
        netlib<T, Factor<T>>("getrf")(&c.m, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(),
                                      &c.info0);
        c.judge(report);
    }
}

template <class T>
void judge_gesv(Report &report, Batch<T> &batch)
{
    batch.run(BL_GESV);
    for (Case<T> &c : batch.cases) {
        netlib<T, Solves<T>>("gesv")(&c.n, &c.nrhs, c.a0.data(), &c.lda, c.ipiv0.data(),
                                     c.b0.data(), &c.ldb, &c.info0);
        c.judge(report);
    }
}

/* From netlib's factors; A stays as it is. */
template <class T>
void test_gedet(const char *where, int repeats, int most, bool items)
{
    Report report(where + (" " + title<T>("gedet")) + text(" to %d", most));
    for (int i = 0; i < repeats; i++) {
        Batch<T> batch;
        batch.fill(5, 33, most, true, 0, items && below(2));
        batch.run(BL_GEDET);
        for (size_t k = 0; k < batch.cases.size(); k++) {
            Case<T> &c = batch.cases[k];
            Array<T> lu = c.a0;
            Array<int> ipiv(c.n);
            T phase;
            Real<T> logabs;
            netlib<T, Factor<T>>("getrf")(&c.n, &c.n, lu.data(), &c.lda, ipiv.data(),
                                          &c.info0);
            bl_host_det(Name<T>::precision, c.n, lu.data(), c.lda, ipiv.data(), 4, &phase,
                        &logabs);
            bool good = same(logabs, batch.logarithms[k], false) && c.info == c.info0 &&
                        difference("A", c.a, c.a0, c.lda, false).empty();
            for (int w = 0; w < width<T>; w++)
                good = good && same(parts(&phase)[w], parts(&batch.phases[k])[w], false);
            report.count(good, c.label + text(": logabs %.17g, not %.17g, INFO %d, %d",
                                              double(batch.logarithms[k]), double(logabs),
                                              c.info, c.info0));
        }
    }
}

} // namespace
#endif
