/* LU by the plain loop in one precision: the part of host_lu.c that it includes four
 * times, with REAL, COMPLEX and NAMED. The arithmetic is that of kernels/scalar.cuh.
 */
#define T NAMED(element)

#if COMPLEX
typedef struct {
    REAL re, im;
} T;

static inline REAL NAMED(abs1)(T x)
{
    return (REAL)fabs(x.re) + (REAL)fabs(x.im);
}

static inline bool NAMED(is_zero)(T x)
{
    return x.re == 0 && x.im == 0;
}

static inline bool NAMED(reaches)(T x, REAL limit)
{
    return (sizeof(REAL) == 4 ? (REAL)hypotf((float)x.re, (float)x.im)
                              : (REAL)hypot(x.re, x.im)) >= limit;
}

static inline T NAMED(multiply)(T x, T y)
{
    return (T){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

/* c - x y */
static inline T NAMED(subtract)(T c, T x, T y)
{
    T product = NAMED(multiply)(x, y);
    return (T){c.re - product.re, c.im - product.im};
}

/* Smith's rule. */
static inline T NAMED(divide)(T x, T y)
{
    if (fabs(y.re) < fabs(y.im)) {
        REAL ratio = y.re / y.im, den = y.re * ratio + y.im;
        return (T){(x.re * ratio + x.im) / den, (x.im * ratio - x.re) / den};
    }
    REAL ratio = y.im / y.re, den = y.im * ratio + y.re;
    return (T){(x.im * ratio + x.re) / den, (x.im - x.re * ratio) / den};
}

static const T NAMED(one) = {1, 0};
static inline bool NAMED(is_one)(T x)
{
    return x.re == 1 && x.im == 0;
}
#else
typedef REAL T;

static inline REAL NAMED(abs1)(T x)
{
    return (REAL)fabs(x);
}

static inline bool NAMED(is_zero)(T x)
{
    return x == 0;
}

static inline bool NAMED(reaches)(T x, REAL limit)
{
    return (REAL)fabs(x) >= limit;
}

static inline T NAMED(multiply)(T x, T y)
{
    return x * y;
}

/* c - x y */
static inline T NAMED(subtract)(T c, T x, T y)
{
    return c - x * y;
}

static inline T NAMED(divide)(T x, T y)
{
    return x / y;
}

static const T NAMED(one) = 1;
static inline bool NAMED(is_one)(T x)
{
    return x == 1;
}
#endif

static inline void NAMED(swap)(T *x, T *y)
{
    T t = *x;
    *x = *y;
    *y = t;
}

/* A column takes the products with L's columns 0 .. order-1, four at a time: first the
 * rows among the four, which give their factors, then all below. */
static void NAMED(eliminate)(int64_t m, int64_t order, const T *a, int64_t lda,
                             T *restrict column)
{
    int64_t k = 0;
    for (; k + 4 <= order; k += 4) {
        const T *l0 = a + k * lda, *l1 = l0 + lda, *l2 = l1 + lda, *l3 = l2 + lda;
        T u0 = column[k];
        T u1 = NAMED(subtract)(column[k + 1], u0, l0[k + 1]);
        T u2 = NAMED(subtract)(column[k + 2], u0, l0[k + 2]);
        u2 = NAMED(subtract)(u2, u1, l1[k + 2]);
        T u3 = NAMED(subtract)(column[k + 3], u0, l0[k + 3]);
        u3 = NAMED(subtract)(u3, u1, l1[k + 3]);
        u3 = NAMED(subtract)(u3, u2, l2[k + 3]);
        column[k + 1] = u1;
        column[k + 2] = u2;
        column[k + 3] = u3;
        for (int64_t i = k + 4; i < m; i++) {
            T x = NAMED(subtract)(column[i], u0, l0[i]);
            x = NAMED(subtract)(x, u1, l1[i]);
            x = NAMED(subtract)(x, u2, l2[i]);
            column[i] = NAMED(subtract)(x, u3, l3[i]);
        }
    }
    for (; k < order; k++) {
        const T *l = a + k * lda, u = column[k];
        for (int64_t i = k + 1; i < m; i++)
            column[i] = NAMED(subtract)(column[i], u, l[i]);
    }
}

/* One over the largest element of each row, or over sfmin. */
static void NAMED(row_scales)(int64_t m, int64_t n, const T *a, int64_t lda, REAL limit,
                              REAL *scale)
{
    for (int64_t i = 0; i < m; i++)
        scale[i] = limit;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            REAL x = NAMED(abs1)(a[i + j * lda]);
            scale[i] = x > scale[i] ? x : scale[i];
        }
    for (int64_t i = 0; i < m; i++)
        scale[i] = 1 / scale[i];
}

/* The first largest in relation to its row; a NaN never, unless it is the first of all.
 */
static int64_t NAMED(choose)(int64_t first, int64_t m, const T *column, const REAL *scale)
{
    int64_t p = first;
    REAL best = NAMED(abs1)(column[first]) * scale[first];
    for (int64_t i = first + 1; i < m; i++) {
        REAL x = NAMED(abs1)(column[i]) * scale[i];
        if (x > best) {
            best = x;
            p = i;
        }
    }
    return p;
}

/* Crout's order: a column is interchanged and eliminated when its turn comes. Without
 * pivoting where ipiv is NULL. */
static int64_t NAMED(factor)(int64_t m, int64_t n, T *a, int64_t lda, void *ipiv,
                             int int_size, REAL *scale)
{
    const REAL limit = (REAL)(sizeof(REAL) == 4 ? 0x1p-126 : 0x1p-1022);
    int64_t info = 0;
    if (ipiv)
        NAMED(row_scales)(m, n, a, lda, limit, scale);
    for (int64_t j = 0; j < n; j++) {
        T *column = a + j * lda;
        int64_t order = j < m ? j : m;
        for (int64_t k = 0; ipiv && k < order; k++)
            NAMED(swap)(&column[k], &column[pivot(ipiv, int_size, k)]);
        NAMED(eliminate)(m, order, a, lda, column);
        if (j >= m)
            continue;
        if (ipiv) {
            int64_t p = NAMED(choose)(j, m, column, scale);
            set_pivot(ipiv, int_size, j, p);
            scale[p] = scale[j];
            for (int64_t k = 0; p != j && k <= j; k++)
                NAMED(swap)(&a[j + k * lda], &a[p + k * lda]);
        }
        const T top = column[j];
        if (NAMED(is_zero)(top)) {
            info = info ? info : j + 1;
        } else if (!NAMED(reaches)(top, limit)) {
            for (int64_t i = j + 1; i < m; i++)
                column[i] = NAMED(divide)(column[i], top);
        } else {
            const T factor = NAMED(divide)(NAMED(one), top);
            for (int64_t i = j + 1; i < m && !NAMED(is_one)(factor); i++)
                column[i] = NAMED(multiply)(factor, column[i]);
        }
    }
    return info;
}

#undef T
#undef REAL
#undef COMPLEX
#undef NAMED
