/* LU factorization of matrices of up to 32 rows and columns in shared memory, four
 * columns at a time.
 *
 * For tiny_kernels.cuh where it is faster than tiny_lu.cuh and tiny_rows.cuh. A group
 * of L lanes owns a matrix, which lies by rows in shared memory from the one read to the
 * one write. Four columns, a panel, are in registers while their pivots are chosen, row
 * L s + lane of what is left in slot s; rows then have labels, and only when the panel is
 * done do the interchanges move the other columns. All that costs a step beside its
 * arithmetic is so paid for four columns, and the loops over panels and columns keep the
 * code short. Arithmetic, rules and what is done again are those of tiny_lu.cuh.
 */
#ifndef BL_TINY_SHEET_CUH
#define BL_TINY_SHEET_CUH

#include "tiny_board.cuh"
#include "tiny_lu.cuh"

namespace bl
{

constexpr int PANEL = 4; /* columns */

/* How rows in shared memory are read and written, whole units of them. */
template <class T>
struct TinyUnits {
    static constexpr int UNIT = TinyUnit<T>::SIZE;

    __device__ __forceinline__ static TinyUnit<T> &unit(T *row, int column)
    {
        return *(TinyUnit<T> *)(row + column);
    }
    /* Columns column .. column + C - 1 of a row. */
    template <int C>
    __device__ __forceinline__ static void get(T *row, int column, T (&x)[C])
    {
        BL_UNROLL
        for (int i = 0; i < C; i += UNIT) {
            const TinyUnit<T> u = unit(row, column + i);
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                x[i + t] = u.x[t];
        }
    }
    template <int C>
    __device__ __forceinline__ static void put(T *row, int column, const T (&x)[C])
    {
        BL_UNROLL
        for (int i = 0; i < C; i += UNIT) {
            TinyUnit<T> u;
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                u.x[t] = x[i + t];
            unit(row, column + i) = u;
        }
    }
};

/* A group's matrix in shared memory, row i at p + i PITCH; rows are an odd number of
 * 16-byte units, so that those of neighbouring lanes do not meet in a bank. EXTRA: column
 * N is a right-hand side. By another rule than the largest `scale` has a row's scale. */
template <class T, int N, int L, bool EXTRA>
struct TinySheet : TinyUnits<T> {
    using TinyUnits<T>::UNIT;
    static constexpr int UNITS = N / UNIT + EXTRA;
    static constexpr int PITCH = (UNITS | 1) * UNIT;
    static constexpr int SIZE = N * PITCH;
    static constexpr int SLOTS = (N + L - 1) / L; /* rows a lane */
    static_assert(N <= 32 && N % PANEL == 0 && PANEL % UNIT == 0,
                  "panels are whole units");
    T *p;       /* the group's */
    int *pivot; /* IPIV(i + 1) - 1 */
    Real<T> *scale;

    __device__ __forceinline__ T *row(int i) const
    {
        return p + i * PITCH;
    }
    /* For solve_lower() and solve_upper(), as TinyBoard has it. */
    __device__ __forceinline__ static int lower(int at, int j)
    {
        return at + j;
    }
    __device__ __forceinline__ static int upper(int at, int)
    {
        return at;
    }
};

template <class T, int N, int L, bool EXTRA, Rule RULE = LARGEST>
__device__ __forceinline__ TinySheet<T, N, L, EXTRA> own_sheet(const Group<L> &group)
{
    constexpr int GROUPS = 32 / L, SIZE = TinySheet<T, N, L, EXTRA>::SIZE;
    __shared__ __align__(16) T sheets[GROUPS * SIZE];
    __shared__ __align__(16) int numbers[GROUPS][N];
    const int number = group.first / L;
    Real<T> *scale = nullptr;
    if constexpr (RULE == SCALED) {
        __shared__ Real<T> scales[GROUPS][N];
        scale = scales[number];
    }
    return {{}, sheets + number * SIZE, numbers[number], scale};
}

/* A lane's part of a panel of W columns, of a matrix of at most ROWS rows. Rows are
 * compared by keys: CHOSEN where they may become a pivot, what is left of the magnitude's
 * image without its last bits, and in these LABELS - the row's label, its place after the
 * interchanges. */
template <class T, int R, int W, int ROWS, Rule RULE = LARGEST>
struct SheetPanel {
    static constexpr unsigned LABELS = ROWS <= 32    ? 31
                                       : ROWS <= 64  ? 63
                                       : ROWS <= 128 ? 127
                                                     : 255;
    static constexpr unsigned MAGNITUDE = ~CHOSEN & ~LABELS;
    static_assert(ROWS <= 256, "labels take what keys can do without");
    T a[R][W];
    unsigned id[R];   /* the key's other parts; 0: no pivot, or no row any more */
    Real<T> scale[R]; /* for SCALED */

    /* The id of the row with a label, and the label of the row with a key or id. */
    __device__ __forceinline__ static unsigned id_of(int label)
    {
        return CHOSEN + LABELS - unsigned(label);
    }
    __device__ __forceinline__ static int label_of(unsigned key)
    {
        return int(LABELS - (key & LABELS));
    }
    template <int C>
    __device__ __forceinline__ Real<T> size(int s) const
    {
        if constexpr (RULE == SCALED)
            return magnitude<RULE>(a[s][C], scale[s]);
        else
            return magnitude<RULE>(a[s][C], 1);
    }
    template <int C>
    __device__ __forceinline__ unsigned key(int s) const
    {
        return (high_bits(size<C>(s)) & MAGNITUDE) | id[s];
    }
};

/* The magnitudes of a step's column, but for their sign, and what tells its rows. */
template <class R, int COUNT>
struct PanelColumn {
    R size[COUNT];
    unsigned id[COUNT], key[COUNT];
};

/* The key of the pivot by all bits of the magnitudes, then the first row as LAPACK counts
 * them; if there is no step, `otherwise`. Not inlined: it is rare, and not to lie
 * between what is not. */
template <int L, int R, class V>
BL_CALL unsigned choose_carefully(const PanelColumn<V, R> c, unsigned otherwise,
                                  bool active)
{
    const Group<L> group;
    unsigned image[R], most = 0;
    bool chosen[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        image[s] = high_bits(c.size[s]) & ~CHOSEN;
        image[s] = c.id[s] ? image[s] : 0;
        most = max(most, image[s]);
    }
    most = group.max(most);
    BL_UNROLL
    for (int s = 0; s < R; s++)
        chosen[s] = c.id[s] && image[s] == most;
    if constexpr (sizeof(V) == 8) {
        most = 0;
        BL_UNROLL
        for (int s = 0; s < R; s++) {
            image[s] = low_image(c.size[s]);
            image[s] = chosen[s] ? image[s] : 0;
            most = max(most, image[s]);
        }
        most = group.max(most);
        BL_UNROLL
        for (int s = 0; s < R; s++)
            chosen[s] = chosen[s] && image[s] == most;
    }
    unsigned first = 0, key = 0;
    BL_UNROLL
    for (int s = 0; s < R; s++)
        first = max(first, chosen[s] ? c.id[s] : 0);
    first = group.max(first);
    BL_UNROLL
    for (int s = 0; s < R; s++)
        key = chosen[s] && c.id[s] == first ? c.key[s] : key;
    key = group.max(key);
    return active ? key : otherwise;
}

/* Step k = begin + C within the panel; the label of the pivot's row is returned. The row
 * goes to its place, where all lanes of the group read it. */
template <int C, int R, int L, class T, int W, int ROWS, Rule RULE, class Sheet>
__device__ __forceinline__ int panel_step(const Group<L> &group,
                                          SheetPanel<T, R, W, ROWS, RULE> &r, int begin,
                                          bool active, int &info, const Sheet &sheet)
{
    const int k = begin + C;
    unsigned key[R], largest = 0;
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        key[s] = r.template key<C>(s);
        largest = max(largest, key[s]);
    }
    largest = group.max(largest);
    bool rare = !active || !is_moderate<T>(largest);
    const unsigned next = renewed(largest - 1);
    BL_UNROLL
    for (int s = 0; s < R; s++)
        rare = rare || next - key[s] < r.LABELS; /* equal but for labels */
    const bool careful = __any_sync(WARP, rare);
    if (careful) {
        PanelColumn<Real<T>, R> c;
        BL_UNROLL
        for (int s = 0; s < R; s++) {
            c.size[s] = r.template size<C>(s);
            c.id[s] = r.id[s];
            c.key[s] = key[s];
        }
        /* Without a step row k may as well be put to its place. */
        largest = choose_carefully<L>(c, r.id_of(k), active);
    }
    const int label = r.label_of(largest);
    T *const place = sheet.row(k);
    BL_UNROLL
    for (int s = 0; s < R; s++)
        if (key[s] == largest)
            sheet.put(place, begin, r.a[s]);
    __syncwarp();
    constexpr int FROM = C / sheet.UNIT * sheet.UNIT;
    T u[W - FROM];
    sheet.get(place, begin + FROM, u);
    const T pivot = u[C - FROM];
    T factor = quick_reciprocal(pivot);
    if (careful || !has_moderate_parts(pivot) ||
        (RULE == SCALED && !is_moderate<T>(high_image(abs1(pivot))))) {
        if (active && info == 0 && is_zero(pivot))
            info = k + 1;
        factor = careful_factor(pivot);
    }
    /* What becomes of rows that are no longer open is of no use. */
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        r.id[s] = r.id[s] == r.id_of(k) ? r.id_of(label) : r.id[s];
        r.id[s] = key[s] == largest ? 0 : r.id[s];
        r.a[s][C] = mul(r.a[s][C], factor);
        BL_UNROLL
        for (int j = C + 1; j < W; j++)
            r.a[s][j] = sub(r.a[s][j], mul(r.a[s][C], u[j - FROM]));
    }
    return label;
}

/* Columns begin .. begin + PANEL - 1 of the rows from begin on. Before `steps`, the
 * warp's, the group has `own_steps`. */
template <int R, Rule RULE, int L, class T, int N, bool EXTRA>
__device__ __forceinline__ void
do_panel(const Group<L> &group, int begin, int m, int own_steps, int steps, int &info,
         int (&label)[PANEL], const TinySheet<T, N, L, EXTRA> &sheet)
{
    SheetPanel<T, R, PANEL, N, RULE> r;
    T *const rows = sheet.row(begin + group.row);
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = begin + group.row + L * s;
        const bool inside = row < m;
        r.id[s] = renewed(inside ? r.id_of(row) : 0); /* or predicates run out */
        BL_UNROLL
        for (int j = 0; j < PANEL; j++)
            r.a[s][j] = from_real<T>(0);
        if (inside)
            sheet.get(rows + L * s * sheet.PITCH, begin, r.a[s]);
        if (RULE == SCALED)
            r.scale[s] = sheet.scale[inside ? row : 0];
    }
    __syncwarp();
    label[0] = panel_step<0>(group, r, begin, begin < own_steps, info, sheet);
    label[1] = begin + 1;
    label[2] = begin + 2;
    label[3] = begin + 3;
    if (begin + 1 < steps)
        label[1] = panel_step<1>(group, r, begin, begin + 1 < own_steps, info, sheet);
    if (begin + 2 < steps)
        label[2] = panel_step<2>(group, r, begin, begin + 2 < own_steps, info, sheet);
    if (begin + 3 < steps)
        label[3] = panel_step<3>(group, r, begin, begin + 3 < own_steps, info, sheet);
    __syncwarp(); /* a row that was none of its group's steps is written to where it was
                     read */
    BL_UNROLL
    for (int s = 0; s < R; s++)
        if (r.id[s]) {
            const int row = r.label_of(r.id[s]);
            sheet.put(sheet.row(row), begin, r.a[s]);
            if (RULE == SCALED)
                sheet.scale[row] = r.scale[s];
        }
    if (group.row == 0) {
        BL_UNROLL
        for (int t = 0; t < PANEL; t++)
            sheet.pivot[begin + t] = label[t];
    }
    __syncwarp();
}

/* The interchanges in the other columns, those on the LEFT if wanted, and the panel's
 * rows of U. A lane owns whole units of columns, so that nobody has to wait. */
template <bool LEFT, int L, class T, int N, bool EXTRA>
__device__ __forceinline__ void exchange_rows(const Group<L> &group, int begin,
                                              const int (&label)[PANEL],
                                              const TinySheet<T, N, L, EXTRA> &sheet)
{
    T *const top = sheet.row(begin);
    T l[PANEL][PANEL];
    BL_UNROLL
    for (int t = 1; t < PANEL; t++)
        sheet.get(top + t * sheet.PITCH, begin, l[t]);
#pragma unroll 1
    for (int i = group.row + (LEFT ? 0 : (begin + PANEL) / sheet.UNIT); i < sheet.UNITS;
         i += L) {
        const int column = i * sheet.UNIT;
        if (column >= begin && column < begin + PANEL)
            continue;
        TinyUnit<T> x[PANEL];
        BL_UNROLL
        for (int t = 0; t < PANEL; t++) {
            TinyUnit<T> &from = sheet.unit(sheet.row(label[t]), column);
            const TinyUnit<T> y = sheet.unit(top + t * sheet.PITCH, column);
            x[t] = from;
            from = y;
        }
        if (column > begin) {
            BL_UNROLL
            for (int k = 0; k < PANEL; k++)
                BL_UNROLL
            for (int t = k + 1; t < PANEL; t++)
                BL_UNROLL
            for (int j = 0; j < sheet.UNIT; j++)
                x[t].x[j] = sub(x[t].x[j], mul(l[t][k], x[k].x[j]));
        }
        BL_UNROLL
        for (int t = 0; t < PANEL; t++)
            sheet.unit(top + t * sheet.PITCH, column) = x[t];
    }
    __syncwarp();
}

template <int C>
struct Number {
    static constexpr int COUNT = C;
};

/* What is right of the panel and below its rows, R rows a lane. */
template <int R, int L, class T, int N, bool EXTRA>
__device__ __forceinline__ void update_rows(const Group<L> &group, int begin, int m,
                                            int n, const TinySheet<T, N, L, EXTRA> &sheet)
{
    T l[R][PANEL];
    bool inside[R];
    T *own = sheet.row(begin + PANEL + group.row), *top = sheet.row(begin);
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        inside[s] = begin + PANEL + group.row + L * s < m;
        BL_UNROLL
        for (int j = 0; j < PANEL; j++)
            l[s][j] = from_real<T>(0);
        if (inside[s])
            sheet.get(own + L * s * sheet.PITCH, begin, l[s]);
    }
    own += begin + PANEL;
    top += begin + PANEL;
    auto columns = [&](T *to, T *from, auto width) {
        TinyUnit<T> u[PANEL], x[R];
        BL_UNROLL
        for (int t = 0; t < PANEL; t++)
            u[t] = sheet.unit(from, t * sheet.PITCH);
        BL_UNROLL
        for (int s = 0; s < R; s++)
            if (inside[s])
                x[s] = sheet.unit(to, L * s * sheet.PITCH);
        BL_UNROLL
        for (int t = 0; t < PANEL; t++)
            BL_UNROLL
        for (int s = 0; s < R; s++)
            BL_UNROLL
        for (int j = 0; j < width.COUNT; j++)
            x[s].x[j] = sub(x[s].x[j], mul(l[s][t], u[t].x[j]));
        BL_UNROLL
        for (int s = 0; s < R; s++)
            if (inside[s])
                sheet.unit(to, L * s * sheet.PITCH) = x[s];
    };
    [[maybe_unused]] constexpr int TURNS =
        sizeof(T) == sizeof(double) && !Traits<T>::complex ? 2 : 1;
#pragma unroll TURNS
    for (int i = begin + PANEL; i < n; i += sheet.UNIT) {
        columns(own, top, Number<sheet.UNIT>());
        own += sheet.UNIT;
        top += sheet.UNIT;
    }
    if (EXTRA)
        columns(sheet.row(begin + PANEL + group.row) + N, sheet.row(begin) + N,
                Number<1>());
    __syncwarp();
}

/* f(how many slots `rows` rows need, at most R). */
template <int R, int L, class F>
__device__ __forceinline__ void with_slots(int rows, const F &f)
{
    if constexpr (R > 1)
        if (rows <= L * (R - 1)) {
            with_slots<R - 1, L>(rows, f);
            return;
        }
    f(Number<R>());
}

/* All steps; INFO is returned. m and n are the group's, the others the warp's. Rows are
 * all read and in the sheet when this begins. LEFT: L is wanted, with its rows in order.
 */
template <Rule RULE = LARGEST, bool LEFT = true, int L, class T, int N, bool EXTRA>
__device__ __forceinline__ int eliminate_sheet(const Group<L> &group, int m, int n,
                                               int most_rows, int most_columns,
                                               const TinySheet<T, N, L, EXTRA> &sheet)
{
    const int steps = min(most_rows, most_columns);
    int info = 0;
#pragma unroll 1
    for (int begin = 0; begin < steps; begin += PANEL) {
        int label[PANEL];
        with_slots<sheet.SLOTS, L>(most_rows - begin, [&](auto slots) {
            do_panel<slots.COUNT, RULE>(group, begin, m, min(m, n), steps, info, label,
                                        sheet);
        });
        if (most_rows > begin + 1)
            exchange_rows<LEFT>(group, begin, label, sheet);
        if (most_rows > begin + PANEL)
            with_slots<sheet.SLOTS, L>(most_rows - begin - PANEL, [&](auto slots) {
                update_rows<slots.COUNT>(group, begin, m, most_columns, sheet);
            });
    }
    return info;
}

/* A group's matrix from memory, zeros where there is none. */
template <bool WHOLE, int L, class T, int N, bool EXTRA>
__device__ __forceinline__ void load_sheet(const Group<L> &group, const TinyProblem<T> &p,
                                           int columns,
                                           const TinySheet<T, N, L, EXTRA> &sheet)
{
    constexpr int WIDTH = sizeof(T) == 16 ? 2 : 4, SLOTS = sheet.SLOTS; /* a turn */
    const T *from = p.a + group.row;
    T *to = sheet.row(group.row);
#pragma unroll 2
    for (int j = 0; j < columns; j += WIDTH) {
        T x[SLOTS][WIDTH];
        BL_UNROLL
        for (int t = 0; t < WIDTH; t++) {
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++) {
                assume_global(from);
                x[s][t] = from_real<T>(0);
                if (j + t < p.n && group.row + L * s < p.m)
                    x[s][t] = WHOLE ? fetch(from + L * s) : from[L * s];
            }
            from += p.lda;
        }
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++)
            if (N % L == 0 || group.row + L * s < N)
                sheet.put(to + L * s * sheet.PITCH, j, x[s]);
    }
}

/* And back: by groups, as it was read, or, so that memory is written by whole columns, a
 * lane a row of one matrix after the other. */
template <bool WHOLE, int SLOTS, int STEP, int PITCH, class T>
__device__ __forceinline__ void store_rows(T *rows, int row, int m, int n, T *to,
                                           int64_t lda)
{
    constexpr int UNIT = TinyUnit<T>::SIZE;
#pragma unroll 2
    for (int j = 0; j < n; j += UNIT) {
        TinyUnit<T> x[SLOTS];
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++)
            if (row + STEP * s < m) /* else perhaps beyond shared memory */
                x[s] = *(TinyUnit<T> *)(rows + STEP * s * PITCH + j);
        BL_UNROLL
        for (int t = 0; t < UNIT; t++) {
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++) {
                assume_global(to);
                if (j + t < n && row + STEP * s < m) {
                    if constexpr (WHOLE)
                        put(to + STEP * s, x[s].x[t]);
                    else
                        to[STEP * s] = x[s].x[t];
                }
            }
            to += lda;
        }
    }
}

/* The factors, in the place of A. */
template <bool GROUPED, int L, class T, int N, bool EXTRA>
__device__ __forceinline__ void store_sheet(const Group<L> &group, const TinyArguments &g,
                                            const TinyProblem<T> &p, bool wanted,
                                            const TinySheet<T, N, L, EXTRA> &sheet)
{
    if constexpr (GROUPED) {
        T *a = p.a, *rows = sheet.row(group.row);
        const int m = wanted ? p.m : 0;
        if (is_whole(a))
            store_rows<true, sheet.SLOTS, L, sheet.PITCH>(rows, group.row, m, p.n,
                                                          a + group.row, p.lda);
        else
            store_rows<false, sheet.SLOTS, L, sheet.PITCH>(rows, group.row, m, p.n,
                                                           a + group.row, p.lda);
    } else {
        const int row = threadIdx.x % 32;
        const unsigned lanes = __ballot_sync(WARP, wanted);
#pragma unroll 1
        for (int q = 0; q < 32 / L; q++) {
            if (!(lanes >> q * L & 1))
                continue;
            const TinyProblem<T> of(g, int64_t(blockIdx.x) * (32 / L) + q);
            T *a = of.a;
            T *rows =
                sheet.p + ((q - group.first / L) * N + min(row, N - 1)) * sheet.PITCH;
            if (is_whole(a))
                store_rows<true, 1, L, sheet.PITCH>(rows, row, of.m, of.n, a + row,
                                                    of.lda);
            else
                store_rows<false, 1, L, sheet.PITCH>(rows, row, of.m, of.n, a + row,
                                                     of.lda);
        }
    }
}

/* Which row of the input the interchanges have brought to each of a lane's rows. */
template <int L, class T, int N, bool EXTRA, int R>
__device__ __forceinline__ void find_sources(const Group<L> &group, int steps,
                                             const TinySheet<T, N, L, EXTRA> &sheet,
                                             int (&source)[R])
{
    BL_UNROLL
    for (int s = 0; s < R; s++)
        source[s] = s * L + group.row;
#pragma unroll 1
    for (int k = steps - 1; k >= 0; k--) {
        const int with = sheet.pivot[k];
        BL_UNROLL
        for (int s = 0; s < R; s++)
            source[s] = source[s] == k ? with : source[s] == with ? k : source[s];
    }
}

/* As factors_finite(), which see. By another rule than the largest an infinite pivot may
 * be a wrong choice, and leaves no trace but itself. */
template <Rule RULE = LARGEST, int L, class T, int N, bool EXTRA>
__device__ __forceinline__ bool sheet_finite(const Group<L> &group, int m, int n,
                                             const TinySheet<T, N, L, EXTRA> &sheet)
{
    Finite<T> finite;
    BL_UNROLL
    for (int s = 0; s < sheet.SLOTS; s++) {
        const int i = s * L + group.row;
        if (i < m && n > 0)
            finite.add(sheet.row(i)[n - 1], 0);
        if (RULE == SCALED && i < min(m, n))
            finite.add(sheet.row(i)[i], 1);
        if (i >= m && i < n && m > 0) /* wide */
            finite.add(sheet.row(m - 1)[i - 1], 1);
    }
    return bool(finite);
}

/* IPIV and INFO. */
template <int L, class T, int N, bool EXTRA>
__device__ __forceinline__ void
store_numbers(const Group<L> &group, const TinyArguments &g, const TinyProblem<T> &p,
              int info, const TinySheet<T, N, L, EXTRA> &sheet)
{
    BL_UNROLL
    for (int s = 0; s < sheet.SLOTS; s++) {
        const int row = s * L + group.row;
        if (row < min(p.m, p.n))
            put_integer(g.ipiv, p.item, g.int_size, row, sheet.pivot[row] + 1);
    }
    if (group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
}

/* One over the largest element of each row, as row_scale(). */
template <int L, class T, int N, bool EXTRA>
__device__ __forceinline__ void find_scales(const Group<L> &group, int columns,
                                            const TinySheet<T, N, L, EXTRA> &sheet)
{
    BL_UNROLL
    for (int s = 0; s < sheet.SLOTS; s++) {
        const int row = s * L + group.row;
        if (N % L != 0 && row >= N)
            continue;
        Real<T> largest = sfmin<Real<T>>();
        for (int j = 0; j < columns; j += sheet.UNIT) {
            const TinyUnit<T> x = sheet.unit(sheet.row(row), j);
            BL_UNROLL
            for (int t = 0; t < sheet.UNIT; t++)
                largest = abs1(x.x[t]) > largest ? abs1(x.x[t]) : largest;
        }
        sheet.scale[row] = div(Real<T>(1), largest);
    }
}

/* GETRF, GETRFSP. A group of L lanes owns a matrix, a warp, which is a block, 32 / L
 * matrices. Shared memory: TinySheet. */
template <class T, int N, int L, int BLOCKS, bool GROUPED, Rule RULE = LARGEST>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_sheet_factor(const __grid_constant__ TinyArguments g)
{
    const Group<L> group;
    const int64_t number = group_number<L>();
    const auto sheet = own_sheet<T, N, L, false, RULE>(group);
    const TinyProblem<T> p(g, number);
    /* Always all steps where shapes differ: bits must not depend on neighbours. */
    const int m = g.items ? N : g.m, n = g.items ? N : g.n;
    if (is_whole(p.a))
        load_sheet<true>(group, p, n, sheet);
    else
        load_sheet<false>(group, p, n, sheet);
    if constexpr (RULE == SCALED)
        find_scales(group, n, sheet); /* of the rows that the lane has read */
    __syncwarp();
    const int info = eliminate_sheet<RULE>(group, p.m, p.n, m, n, sheet);
    const bool finite = group.ballot(!sheet_finite<RULE>(group, p.m, p.n, sheet)) == 0;
    const bool mine = p.there && finite;
    if (mine)
        store_numbers(group, g, p, info, sheet);
    store_sheet<GROUPED>(group, g, p, mine, sheet);
    for_groups<L>(p.there && !finite, number,
                  [&](int64_t i) { factor_again<T, RULE>(g, i); });
}

} // namespace bl
#endif
