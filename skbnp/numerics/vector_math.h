/* exp, log and log1p of arrays, and squared distances of rows or blocks, without branches.

   Compilers turn these loops into vector code. Each is compiled for several instruction sets where
   the platform can choose between them when the module is loaded; every operation is that of IEEE
   754 and none is contracted (-ffp-contract=off), so that all choices give the same bits, and an
   element's result does not depend on its place in the array. NaN and infinities are as in libm,
   and errors below 1.5 units in the last place.

   The networks' kernels have an exponential of their own, in nonlinear_gaussian/_exponential.pxd: it
   is cut off at both ends, and its bits are part of their draws. */

#ifndef SKBNP_VECTOR_MATH_H
#define SKBNP_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(SKBNP_CLONES)
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \
    && !defined(__SANITIZE_ADDRESS__)
/* By names that GCC 11 knows too; it has none for the levels of x86-64. */
#define SKBNP_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
/* Of what has no longer vectors to fill. */
#define SKBNP_FEW_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define SKBNP_CLONES
#endif
#ifndef SKBNP_FEW_CLONES
#define SKBNP_FEW_CLONES
#endif

/* Before a loop over lanes: GCC unrolls short loops before it looks for vectors, and finds none. */
#if defined(__GNUC__) && !defined(__clang__)
#define SKBNP_ROLLED _Pragma("GCC unroll 1")
#else
#define SKBNP_ROLLED
#endif

/* A function whose first argument is a constant where it is called. */
#if defined(__GNUC__)
#define SKBNP_INLINE __attribute__((always_inline))
#else
#define SKBNP_INLINE
#endif

/* Rows in one pass over the features: their residuals stay in the first cache. */
enum { SKBNP_TILE = 64 };

/* Blocks in one pass of forward substitution. */
enum { SKBNP_LANES = 4 };

/* Added to a double of less than 2^51 it leaves the nearest integer in the last bits. */
#define SKBNP_ROUND 0x1.8p52
#define SKBNP_LN2_HIGH 0x1.62e42fee00000p-1 /* with 21 zeros at the end: times 2^11 it is exact */
#define SKBNP_LN2_LOW 0x1.a39ef35793c76p-33

static inline double skbnp_from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t skbnp_to_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* 2^n of an integer n between -1022 and 1023. */
static inline double skbnp_power_of_two(double n) {
    return skbnp_from_bits(skbnp_to_bits(n + (SKBNP_ROUND + 1023.0)) << 52);
}

/* Asks for what will be read soon. */
static inline void skbnp_prefetch(const void *address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    (void) address;
#endif
}

/* e^x = 2^n e^r with |r| <= log(2) / 2, the latter by its series. */
static inline double skbnp_exp(double x) {
    double n, half, r, p;
    x = x > 710.0 ? 710.0 : x; /* inf */
    x = x < -746.0 ? -746.0 : x; /* 0 */
    n = (x * 0x1.71547652b82fep+0 + SKBNP_ROUND) - SKBNP_ROUND;
    r = (x - n * SKBNP_LN2_HIGH) - n * SKBNP_LN2_LOW;
    p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = 1.0 + (r + r * r * p);
    /* In two steps: 2^n alone may be beyond the range of e^x. */
    half = (0.5 * n + SKBNP_ROUND) - SKBNP_ROUND;
    return p * skbnp_power_of_two(half) * skbnp_power_of_two(n - half);
}

/* log x = n log 2 + log(1 + f), 1 + f between the roots of 1/2 and 2: with s = f / (2 + f) that is
   2 artanh(s), a polynomial in s^2 by the coefficients of FreeBSD's e_log.c. */
static inline double skbnp_log(double x) {
    double small = x < 0x1p-1022 ? 0x1p54 : 1.0, n, m, f, s, z, t, hfsq, out;
    uint64_t bits = skbnp_to_bits(x * small);
    n = skbnp_from_bits((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    m = skbnp_from_bits((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
    n = m > 0x1.6a09e667f3bcdp+0 ? n + 1.0 : n;
    m = m > 0x1.6a09e667f3bcdp+0 ? 0.5 * m : m;
    n = n - (small > 1.0 ? 54.0 : 0.0);
    f = m - 1.0;
    s = f / (2.0 + f);
    z = s * s;
    t = 1.479819860511658591e-01;
    t = t * z + 1.531383769920937332e-01;
    t = t * z + 1.818357216161805012e-01;
    t = t * z + 2.222219843214978396e-01;
    t = t * z + 2.857142874366239149e-01;
    t = t * z + 3.999999999940941908e-01;
    t = t * z + 6.666666666666735130e-01;
    hfsq = 0.5 * f * f;
    out = n * SKBNP_LN2_HIGH - ((hfsq - (s * (hfsq + t * z) + n * SKBNP_LN2_LOW)) - f);
    out = x == INFINITY ? INFINITY : out;
    out = x == 0.0 ? -INFINITY : out;
    out = x < 0.0 ? NAN : out;
    return x != x ? x : out;
}

/* What rounding has taken from u = 1 + x is added in the first order. */
static inline double skbnp_log1p(double x) {
    double u = 1.0 + x, back = u - 1.0;
    double lost = (1.0 - (u - back)) + (x - back);
    double more = lost / u;
    more = u > 0x1p60 || u <= 0.0 ? 0.0 : more;
    return skbnp_log(u) + more;
}

SKBNP_CLONES static void skbnp_exp_all(Py_ssize_t n, double *x) {
    for (Py_ssize_t i = 0; i < n; i++) x[i] = skbnp_exp(x[i]);
}

SKBNP_CLONES static void skbnp_log_all(Py_ssize_t n, double *x) {
    for (Py_ssize_t i = 0; i < n; i++) x[i] = skbnp_log(x[i]);
}

SKBNP_CLONES static void skbnp_log1p_all(Py_ssize_t n, double *x) {
    for (Py_ssize_t i = 0; i < n; i++) x[i] = skbnp_log1p(x[i]);
}

/* Running sums of e^(x[i] - max x); the last is NaN where no x[i] is finite or one is NaN or +inf.

   x has room for n rounded up to a multiple of SKBNP_LANES. */
SKBNP_FEW_CLONES static void skbnp_running_exp(Py_ssize_t n, double *x) {
    double highest = -INFINITY, total = 0.0;
    Py_ssize_t i, end = (n + SKBNP_LANES - 1) / SKBNP_LANES * SKBNP_LANES;
    for (i = 0; i < n; i++) highest = x[i] > highest ? x[i] : highest;
    for (i = n; i < end; i++) x[i] = -INFINITY;
    for (i = 0; i < end; i++) x[i] = skbnp_exp(x[i] - highest);
    for (i = 0; i < n; i++) x[i] = total += x[i];
}

/* out[k] = constant[k] - power[k] log(1 + share[k] distance[k]); all have room for n rounded up. */
SKBNP_FEW_CLONES static void skbnp_log_t_all(
    Py_ssize_t n, const double *distance, const double *constant, const double *power,
    const double *share, double *restrict out
) {
    const Py_ssize_t end = (n + SKBNP_LANES - 1) / SKBNP_LANES * SKBNP_LANES;
    for (Py_ssize_t k = 0; k < end; k++)
        out[k] = constant[k] - power[k] * skbnp_log1p(share[k] * distance[k]);
}

/* out[i] = |U^-T (x_i - m)|^2 of at most SKBNP_TILE rows, forward substitution for all at once.

   Feature feature[a] of the first row is at x + stride * feature[a], those of the others follow, and
   its mean is mean[feature[a]]. U is upper triangular, (d, d), row by row; work has room for
   d * SKBNP_TILE numbers. */
SKBNP_CLONES static void skbnp_squared_distances(
    Py_ssize_t n, Py_ssize_t d, const double *x, Py_ssize_t stride, const Py_ssize_t *feature,
    const double *mean, const double *factor, double *restrict work, double *restrict out
) {
    Py_ssize_t i, a, b;
    for (i = 0; i < n; i++) out[i] = 0.0;
    for (a = 0; a < d; a++) {
        const double *restrict column = x + stride * feature[a];
        double *restrict r = work + a * SKBNP_TILE;
        double m = mean[feature[a]];
        for (i = 0; i < n; i++) r[i] = column[i] - m;
    }
    for (b = 0; b < d; b++) {
        double *restrict y = work + b * SKBNP_TILE;
        double inverse = 1.0 / factor[b * d + b];
        for (i = 0; i < n; i++) {
            y[i] *= inverse;
            out[i] += y[i] * y[i];
        }
        for (a = b + 1; a < d; a++) {
            double *restrict r = work + a * SKBNP_TILE;
            double u = factor[b * d + a];
            for (i = 0; i < n; i++) r[i] -= u * y[i];
        }
    }
}

/* The same of one row x and the blocks of n chunks of SKBNP_LANES, at most two: side by side, so that
   neither waits for the other. */
SKBNP_INLINE static inline void skbnp_chunk_distances(
    const int n, Py_ssize_t d, const double *x, const double *mean, const double *factor,
    double *restrict work, double *restrict out
) {
    enum { L = SKBNP_LANES };
    const Py_ssize_t next = d * L, next_factor = d * d * L;
    double y[2 * L], z[2 * L], q[2 * L];
    Py_ssize_t a, b;
    int c, l;
    for (a = 0; a < d; a++)
        for (c = 0; c < n; c++)
            SKBNP_ROLLED for (l = 0; l < L; l++)
                work[c * next + a * L + l] = x[a] - mean[c * next + a * L + l];
    for (c = 0; c < n; c++) SKBNP_ROLLED for (l = 0; l < L; l++) q[c * L + l] = 0.0;
    /* Two features at a time: the residuals of all later ones are read and written once. */
    for (b = 0; b + 1 < d; b += 2) {
        const double *f = factor + (b * d + b) * L, *g = f + (d + 1) * L;
        double *restrict r = work + b * L;
        for (c = 0; c < n; c++)
            SKBNP_ROLLED for (l = 0; l < L; l++) {
                const Py_ssize_t t = c * L + l, u = c * next + l, v = c * next_factor + l;
                y[t] = r[u] * f[v];
                z[t] = (r[u + L] - f[v + L] * y[t]) * g[v];
                q[t] = q[t] + y[t] * y[t] + z[t] * z[t];
            }
        f += 2 * L;
        g += L;
        r += 2 * L;
        for (a = b + 2; a < d; a++, f += L, g += L, r += L)
            for (c = 0; c < n; c++)
                SKBNP_ROLLED for (l = 0; l < L; l++) {
                    const Py_ssize_t t = c * L + l, u = c * next + l, v = c * next_factor + l;
                    r[u] = r[u] - f[v] * y[t] - g[v] * z[t];
                }
    }
    if (b < d)
        for (c = 0; c < n; c++)
            SKBNP_ROLLED for (l = 0; l < L; l++) {
                const double last = work[c * next + b * L + l]
                    * factor[c * next_factor + (d * d - 1) * L + l];
                q[c * L + l] += last * last;
            }
    for (c = 0; c < n; c++) SKBNP_ROLLED for (l = 0; l < L; l++) out[c * L + l] = q[c * L + l];
}

/* out[k] = |U_k^-T (x - m_k)|^2 of one row x and n blocks, SKBNP_LANES side by side.

   Means are (n / SKBNP_LANES, d, SKBNP_LANES), rounded up, and factors (..., d, d, SKBNP_LANES),
   upper triangular with reciprocals in their diagonals; out is rounded up too, and work has room for
   2 * d * SKBNP_LANES. */
SKBNP_FEW_CLONES static void skbnp_lane_distances(
    Py_ssize_t n, Py_ssize_t d, const double *x, const double *mean, const double *factor,
    double *restrict work, double *restrict out
) {
    enum { L = SKBNP_LANES };
    for (; n > L; n -= 2 * L, mean += 2 * d * L, factor += 2 * d * d * L, out += 2 * L)
        skbnp_chunk_distances(2, d, x, mean, factor, work, out);
    if (n > 0) skbnp_chunk_distances(1, d, x, mean, factor, work, out);
}

#endif
