"""What tests ask of the C functions of numerics that no Python code of the library needs."""

from libc.stdint cimport uint32_t, uint64_t
from numpy.random cimport bitgen_t

from skbnp.numerics cimport linalg, slice_sampling, special, truncated
from skbnp.numerics cimport rng as random
from skbnp.numerics.rng cimport RowStream
from skbnp.numerics.slice_sampling cimport Slice

import numpy as np

# -- linalg -----------------------------------------------------------------------------------


def updated_factor(const double[:, ::1] factor, const double[::1] v):
    """The factor of U^T U + v v^T."""
    cdef double[:, ::1] out = np.array(factor)
    cdef double[::1] scratch = np.array(v)
    linalg.rank_one_update(&out[0, 0], v.shape[0], &scratch[0])
    return np.triu(out)


def downdated_factor(const double[:, ::1] factor, const double[::1] v):
    """The factor of U^T U - v v^T; raises numpy.linalg.LinAlgError if its digits are lost."""
    cdef double[:, ::1] out = np.array(factor)
    cdef double[::1] scratch = np.array(v)
    if linalg.rank_one_downdate(&out[0, 0], v.shape[0], &scratch[0]) != 0:
        raise np.linalg.LinAlgError("the downdated matrix must be positive definite")
    return np.triu(out)


def matrix_product(const double[:, ::1] a, const double[:, ::1] b, trans_a=False, trans_b=False):
    """op(a) op(b) through gemm."""
    cdef Py_ssize_t m = a.shape[1] if trans_a else a.shape[0]
    cdef Py_ssize_t k = a.shape[0] if trans_a else a.shape[1]
    cdef Py_ssize_t n = b.shape[0] if trans_b else b.shape[1]
    cdef double[:, ::1] out = np.empty((m, n))
    linalg.gemm(trans_a, trans_b, m, n, k, 1.0, &a[0, 0], &b[0, 0], 0.0, &out[0, 0])
    return np.asarray(out)


def added_product(
    const double[:, ::1] a, const double[:, ::1] b, const double[:, ::1] c, Py_ssize_t m,
    Py_ssize_t n, Py_ssize_t k, double alpha, double beta, trans_a=False, trans_b=False,
):
    """alpha op(a) op(b) + beta c on the leading (m, n), (m, k), (k, n) parts; the rest is c's."""
    cdef double[:, ::1] out = np.array(c)
    linalg.gemm_strided(
        trans_a, trans_b, m, n, k, alpha, &a[0, 0], a.shape[1], &b[0, 0], b.shape[1], beta,
        &out[0, 0], out.shape[1],
    )
    return np.asarray(out)


def matrix_vector_product(const double[:, ::1] a, const double[::1] x, trans=False):
    """op(a) x through gemv."""
    cdef double[::1] out = np.empty(a.shape[1] if trans else a.shape[0])
    linalg.gemv(trans, a.shape[0], a.shape[1], 1.0, &a[0, 0], &x[0], 0.0, &out[0])
    return np.asarray(out)


def row_products(const double[:, ::1] a):
    """Upper triangle of a a^T through syrk."""
    cdef Py_ssize_t m = a.shape[0]
    cdef double[:, ::1] out = np.zeros((m, m + 2))
    linalg.gram(m, a.shape[1], &a[0, 0], &out[0, 0], m + 2)
    return np.asarray(out)[:, :m]


def rank_one_sum(const double[:, ::1] a, double alpha, const double[::1] x):
    """Upper triangle of a + alpha x x^T; what lies below is that of a."""
    cdef double[:, ::1] out = np.array(a)
    linalg.symmetric_rank_one(x.shape[0], alpha, &x[0], &out[0, 0])
    return np.asarray(out)


def with_gram(const double[:, ::1] c, double alpha, const double[:, ::1] a):
    """Upper triangle of c + alpha a^T a; what lies below is that of c."""
    cdef double[:, ::1] out = np.array(c)
    linalg.add_gram(a.shape[0], a.shape[1], alpha, &a[0, 0], &out[0, 0])
    return np.asarray(out)


def solved_rows(const double[:, ::1] factor, const double[:, ::1] rows):
    """Each row x replaced by U^-T x, shape of rows."""
    cdef double[:, ::1] out = np.array(rows)
    linalg.solve_rows(&factor[0, 0], factor.shape[0], &out[0, 0], out.shape[0])
    return np.asarray(out)


def solved_rows_back(const double[:, ::1] factor, const double[:, ::1] rows):
    """Each row x replaced by U^-1 x, shape of rows."""
    cdef double[:, ::1] out = np.array(rows)
    linalg.solve_rows_back(&factor[0, 0], factor.shape[0], &out[0, 0], out.shape[0])
    return np.asarray(out)


def solved_transposed(const double[:, ::1] factor, const double[::1] x):
    """U^-T x and its squared length."""
    cdef double[::1] out = np.array(x)
    cdef double squares = linalg.solve_transposed(&factor[0, 0], factor.shape[0], &out[0])
    return np.asarray(out), squares


def shifted_log_det(double shift, const double[::1] diagonal, const double[::1] coupling):
    """log |shift I + M| of such a matrix."""
    return linalg.log_det_shifted(diagonal.shape[0], shift, &diagonal[0], &coupling[0])


# -- rng --------------------------------------------------------------------------------------


def sample_log_gamma(bit_generator, double shape, Py_ssize_t size):
    """Logs of ``size`` Gamma(shape, rate 1) draws, shape (size,)."""
    cdef bitgen_t* rng = random.borrow(bit_generator)
    cdef double[::1] out = np.empty(size)
    cdef Py_ssize_t t
    with bit_generator.lock:
        for t in range(size):
            out[t] = random.log_gamma(rng, shape)
    return np.asarray(out)


def sample_poisson(bit_generator, double rate, Py_ssize_t size):
    """``size`` Poisson(rate) draws, shape (size,)."""
    cdef bitgen_t* rng = random.borrow(bit_generator)
    cdef double[::1] out = np.empty(size)
    cdef Py_ssize_t t
    with bit_generator.lock:
        for t in range(size):
            out[t] = random.poisson(rng, rate)
    return np.asarray(out)


def sample_log_beta(bit_generator, double a, double b, Py_ssize_t size):
    """Logs of ``size`` Beta(a, b) draws, shape (size,)."""
    cdef bitgen_t* rng = random.borrow(bit_generator)
    cdef double[::1] out = np.empty(size)
    cdef Py_ssize_t t
    with bit_generator.lock:
        for t in range(size):
            out[t] = random.log_beta(rng, a, b)
    return np.asarray(out)


def sample_categorical_from_logs(bit_generator, const double[::1] log_weight, Py_ssize_t size):
    """``size`` draws of k with probability proportional to exp(log_weight[k])."""
    cdef bitgen_t* rng = random.borrow(bit_generator)
    cdef Py_ssize_t n = log_weight.shape[0], t
    cdef double[::1] scratch = np.empty(n)
    cdef Py_ssize_t[::1] out = np.empty(size, dtype=np.intp)
    with bit_generator.lock:
        for t in range(size):
            scratch[:] = log_weight
            if random.categorical_from_logs(rng, &scratch[0], n, &out[t]) != 0:
                raise ArithmeticError(
                    "log_weight must have a finite value and no NaN or +inf, got "
                    + np.array2string(np.asarray(log_weight), threshold=6)
                )
    return np.asarray(out)


def sample_permutation(bit_generator, Py_ssize_t n):
    """A uniformly random permutation of 0..n-1."""
    cdef bitgen_t* rng = random.borrow(bit_generator)
    cdef Py_ssize_t[::1] out = np.arange(n, dtype=np.intp)
    with bit_generator.lock:
        if n > 0:
            random.shuffle(rng, &out[0], n)
    return np.asarray(out)


def philox(counter, key):
    """The four 32-bit words of Philox4x32-10 for a counter of four and a key of two words."""
    cdef uint32_t[::1] c = np.ascontiguousarray(counter, dtype=np.uint32)
    cdef uint32_t[::1] k = np.ascontiguousarray(key, dtype=np.uint32)
    cdef uint32_t[::1] out = np.empty(4, dtype=np.uint32)
    if c.shape[0] != 4 or k.shape[0] != 2:
        raise ValueError(
            f"counter must have 4 words and key 2, got {c.shape[0]} and {k.shape[0]}"
        )
    random.philox4x32(&c[0], &k[0], &out[0])
    return np.asarray(out)


def uniforms_by_counter(uint64_t seed, uint64_t sweep, Py_ssize_t n_rows, uint64_t first_row=0):
    """Two uniforms for each of n_rows rows from first_row on, shape (n_rows, 2)."""
    cdef double[:, ::1] out = np.empty((n_rows, 2))
    cdef Py_ssize_t i
    for i in range(n_rows):
        random.philox_uniforms(seed, sweep, first_row + <uint64_t> i, &out[i, 0])
    return np.asarray(out)


def normals_by_row(uint64_t seed, uint32_t sweep, Py_ssize_t n_rows, Py_ssize_t size):
    """The first normals of the streams of rows 0..n_rows-1, shape (n_rows, size)."""
    cdef double[:, ::1] out = np.empty((n_rows, size))
    cdef RowStream stream
    cdef Py_ssize_t i, t
    for i in range(n_rows):
        random.start_row_stream(&stream, seed, sweep, <uint64_t> i)
        for t in range(size):
            out[i, t] = random.normal(&stream.rng)
    return np.asarray(out)


# -- special ----------------------------------------------------------------------------------


def evaluate_log_gamma_cdf(double shape, double rate, double x):
    """log P(g < x) for g ~ Gamma(shape, rate)."""
    return special.log_gamma_cdf(shape, rate, x)


def evaluate_log_gamma_density(double x, double shape, double rate):
    """``log_gamma_density`` as a Python function."""
    return special.log_gamma_density(x, shape, rate)


def evaluate_log_sum_exp(const double[::1] x):
    """log sum exp(x)."""
    return special.log_sum_exp(&x[0] if x.shape[0] else NULL, x.shape[0])


def evaluate_log1p_exp(const double[::1] x):
    """log(1 + e^x) for each entry."""
    return np.array([special.log1p_exp(value) for value in x])


def evaluate_log_multigamma(double x, Py_ssize_t d):
    """log Gamma_d(x), without its power of pi."""
    return special.log_multigamma(x, d)


def evaluate_log_multigamma_ratio(double x, double step, Py_ssize_t d):
    """log Gamma_d(x + step) / Gamma_d(x)."""
    return special.log_multigamma_ratio(x, step, d)


def evaluate_log_rising(double x, double n):
    """log Gamma(x + n) / Gamma(x)."""
    return special.log_rising(x, n)


# -- truncated --------------------------------------------------------------------------------


def sample_normal_above(bit_generator, double bound, Py_ssize_t size):
    """Standard normal numbers above a bound."""
    cdef bitgen_t* rng = random.borrow(bit_generator)
    with bit_generator.lock:
        return np.array([truncated.normal_above(rng, bound) for _ in range(size)])


def sample_gamma_above(bit_generator, double shape, double rate, double low, Py_ssize_t size):
    """Draws from Gamma(shape, rate) above a bound."""
    cdef bitgen_t* rng = random.borrow(bit_generator)
    with bit_generator.lock:
        return np.array([truncated.gamma_above(rng, shape, rate, low) for _ in range(size)])


# -- slice sampling ---------------------------------------------------------------------------


def slice_chain(
    log_density, double x, bit_generator, *, double low, double high, double width,
    Py_ssize_t n_steps, Py_ssize_t size,
):
    """``size`` steps one after the other, and how often each asked for the density."""
    cdef bitgen_t* rng = random.borrow(bit_generator)
    cdef Slice step
    draws, asked = np.empty(size), np.zeros(size, dtype=int)
    with bit_generator.lock:
        for n in range(size):
            slice_sampling.begin(&step, rng, x, log_density(x), low, high, width, n_steps)
            while slice_sampling.asks(&step, rng):
                slice_sampling.tell(&step, log_density(step.at))
                asked[n] += 1
            x = draws[n] = step.at
    return draws, asked
