# Squares of rows, and of their residuals, in vector code.
#
# In C, as Cython cannot compile one function for several instruction sets; what that keeps to is
# said in ``vector_math.h``. The same bits on every machine, at every place of an array.

cdef extern from * nogil:
    """
#include <string.h>

/* As in vector_math.h, whose functions would all be compiled with these. */
#if defined(SKBNP_CLONES)
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \\
    && !defined(__SANITIZE_ADDRESS__)
#define SKBNP_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SKBNP_CLONES
#endif

/* Numbers that are squared and summed side by side. */
enum { SKBNP_WIDTH = 8 };

/* Rows by which a row is asked for early. */
enum { SKBNP_AHEAD = 4 };

#if defined(__GNUC__)
/* No wide numbers are passed to other files; who includes this need not use all of it. */
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wunused-function"
typedef double skbnp_wide __attribute__((vector_size(8 * SKBNP_WIDTH)));

static inline __attribute__((always_inline)) skbnp_wide skbnp_load(const double *x) {
    skbnp_wide wide;
    memcpy(&wide, x, sizeof wide);
    return wide;
}

static inline __attribute__((always_inline)) double skbnp_sum(skbnp_wide x) {
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}
#endif

/* out[i] += sign |x_i|^2 of n rows of d numbers. */
SKBNP_CLONES static void skbnp_add_squares(
    Py_ssize_t n, Py_ssize_t d, double sign, const double *x, double *restrict out
) {
    for (Py_ssize_t i = 0; i < n; i++, x += d) {
        double square = 0.0;
        Py_ssize_t j = 0;
#if defined(__GNUC__)
        skbnp_wide sums = {0.0};
        for (; j + SKBNP_WIDTH <= d; j += SKBNP_WIDTH) {
            skbnp_wide r = skbnp_load(x + j);
            sums += r * r;
        }
        square = skbnp_sum(sums);
#endif
        for (; j < d; j++) square += x[j] * x[j];
        out[i] += sign * square;
    }
}

/* e_i = (x_r - mean) scale with r = row[i], rows of d numbers, and out[i] = |e_i|^2. */
SKBNP_CLONES static void skbnp_scaled_residuals(
    Py_ssize_t n, Py_ssize_t d, const double *x, const Py_ssize_t *row, const double *mean,
    const double *scale, double *restrict e, double *restrict out
) {
    for (Py_ssize_t i = 0; i < n; i++, e += d) {
        const Py_ssize_t ahead = i + SKBNP_AHEAD < n ? i + SKBNP_AHEAD : i;
        const double *y = x + d * row[i], *later = x + d * row[ahead];
        double square = 0.0;
        Py_ssize_t j = 0;
#if defined(__GNUC__)
        skbnp_wide sums = {0.0};
        for (; j + SKBNP_WIDTH <= d; j += SKBNP_WIDTH) {
            __builtin_prefetch(later + j); /* rows are gathered from all over a table */
            skbnp_wide r = (skbnp_load(y + j) - skbnp_load(mean + j)) * skbnp_load(scale + j);
            memcpy(e + j, &r, sizeof r);
            sums += r * r;
        }
        square = skbnp_sum(sums);
#endif
        for (; j < d; j++) {
            e[j] = (y[j] - mean[j]) * scale[j];
            square += e[j] * e[j];
        }
        out[i] = square;
    }
}

/* out[i] += sum_j (z_j[i] - shift[j])^2 of h columns z_j, so many numbers apart. */
SKBNP_CLONES static void skbnp_add_column_squares(
    Py_ssize_t n, Py_ssize_t h, const double *z, Py_ssize_t stride, const double *shift,
    double *restrict out
) {
    for (Py_ssize_t j = 0; j < h; j++, z += stride) {
        const double m = shift[j];
        Py_ssize_t i = 0;
#if defined(__GNUC__)
        for (; i + SKBNP_WIDTH <= n; i += SKBNP_WIDTH) {
            skbnp_wide r = skbnp_load(z + i) - m, sums = skbnp_load(out + i) + r * r;
            memcpy(out + i, &sums, sizeof sums);
        }
#endif
        for (; i < n; i++) out[i] += (z[i] - m) * (z[i] - m);
    }
}
    """
    # out[i] += sign |x_i|^2 of n rows of d numbers
    void add_squares "skbnp_add_squares"(
        Py_ssize_t n, Py_ssize_t d, double sign, const double* x, double* out,
    )
    # e_i = (x_r - mean) scale with r = row[i], rows of d numbers, and out[i] = |e_i|^2
    void scaled_residuals "skbnp_scaled_residuals"(
        Py_ssize_t n, Py_ssize_t d, const double* x, const Py_ssize_t* row, const double* mean,
        const double* scale, double* e, double* out,
    )
    # out[i] += sum_j (z_j[i] - shift[j])^2 of h columns z_j, ``stride`` numbers apart
    void add_column_squares "skbnp_add_column_squares"(
        Py_ssize_t n, Py_ssize_t h, const double* z, Py_ssize_t stride, const double* shift,
        double* out,
    )
