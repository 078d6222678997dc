"""exp, log and log1p of arrays, and squared distances of rows or blocks, in vector code.

In C, as Cython cannot compile one function for several instruction sets: see ``vector_math.h``. The
same bits on every machine, at every place of an array.
"""

import numpy as np


cdef extern from "vector_math.h" nogil:
    const int SKBNP_TILE
    const int SKBNP_LANES
    void skbnp_prefetch(const void* address)
    void skbnp_exp_all(Py_ssize_t n, double* x)
    void skbnp_log_all(Py_ssize_t n, double* x)
    void skbnp_log1p_all(Py_ssize_t n, double* x)
    void skbnp_running_exp(Py_ssize_t n, double* x)
    void skbnp_log_t_all(
        Py_ssize_t n, const double* distance, const double* constant, const double* power,
        const double* share, double* out,
    )
    void skbnp_squared_distances(
        Py_ssize_t n, Py_ssize_t d, const double* x, Py_ssize_t stride, const Py_ssize_t* feature,
        const double* mean, const double* factor, double* work, double* out,
    )
    void skbnp_lane_distances(
        Py_ssize_t n, Py_ssize_t d, const double* x, const double* mean, const double* factor,
        double* work, double* out,
    )

assert <int> TILE == SKBNP_TILE
assert <int> LANES == SKBNP_LANES


cdef void prefetch(const void* address) noexcept nogil:
    """Ask the processor for what will be read there soon, at any address."""
    skbnp_prefetch(address)


cdef void exp_all(Py_ssize_t n, double* x) noexcept nogil:
    """x[i] = e^x[i]"""
    skbnp_exp_all(n, x)


cdef void log_all(Py_ssize_t n, double* x) noexcept nogil:
    """x[i] = log x[i]"""
    skbnp_log_all(n, x)


cdef void log1p_all(Py_ssize_t n, double* x) noexcept nogil:
    """x[i] = log(1 + x[i])"""
    skbnp_log1p_all(n, x)


cdef void running_exp(Py_ssize_t n, double* x) noexcept nogil:
    """x[i] = e^(x[0] - max x) + ... + e^(x[i] - max x)

    The last is NaN where no x[i] is finite or one is NaN or +inf. ``x`` has room for n rounded up
    to a multiple of LANES.
    """
    skbnp_running_exp(n, x)


cdef void log_t_all(
    Py_ssize_t n, const double* distance, const double* constant, const double* power,
    const double* share, double* out,
) noexcept nogil:
    """out[k] = constant[k] - power[k] log(1 + share[k] distance[k])

    All have room for n rounded up to a multiple of LANES: whole vectors take less time.
    """
    skbnp_log_t_all(n, distance, constant, power, share, out)


cdef void squared_distances(
    Py_ssize_t n, Py_ssize_t d, const double* x, Py_ssize_t stride, const Py_ssize_t* feature,
    const double* mean, const double* factor, double* work, double* out,
) noexcept nogil:
    """out[i] = |U^-T (x_i - m)|^2 of n <= TILE rows, of which column j is at x + stride j.

    ``feature`` are the d columns that count, ``factor`` is U, upper triangular; ``work`` has room
    for d TILE numbers.
    """
    skbnp_squared_distances(n, d, x, stride, feature, mean, factor, work, out)


cdef void lane_distances(
    Py_ssize_t n, Py_ssize_t d, const double* x, const double* mean, const double* factor,
    double* work, double* out,
) noexcept nogil:
    """out[k] = |U_k^-T (x - m_k)|^2 of one row x and n blocks, LANES of which lie side by side.

    Means are (n / LANES, d, LANES), rounded up, factors (..., d, d, LANES), upper triangular with
    reciprocals in their diagonals; ``out`` is rounded up too, and ``work`` has room for 2 d LANES
    numbers.
    """
    skbnp_lane_distances(n, d, x, mean, factor, work, out)


def of_array(str name, x):
    """``exp``, ``log``, ``log1p`` or ``running_exp`` of an array, for tests."""
    out = np.array(x, dtype=np.float64, order="C", ndmin=1)
    cdef double[::1] flat = out.reshape(-1)
    {"exp": _exp, "log": _log, "log1p": _log1p, "running_exp": _running_exp}[name](flat)
    return out


def _exp(double[::1] x):
    exp_all(x.shape[0], &x[0])


def _log(double[::1] x):
    log_all(x.shape[0], &x[0])


def _log1p(double[::1] x):
    log1p_all(x.shape[0], &x[0])


def _running_exp(double[::1] x):
    cdef double[::1] roomy = np.append(x, np.zeros(LANES))
    running_exp(x.shape[0], &roomy[0])
    x[:] = roomy[:x.shape[0]]


def distances_of(const double[:, ::1] columns, Py_ssize_t[::1] feature, const double[::1] mean,
                 const double[:, ::1] factor):
    """Squared distances of all rows of a table, given by columns, for tests."""
    cdef Py_ssize_t n = columns.shape[1], d = feature.shape[0], start
    cdef double[::1] out = np.empty(n), work = np.empty(max(1, d * TILE))
    for start in range(0, n, TILE):
        squared_distances(min(<Py_ssize_t> TILE, n - start), d, &columns[0, start], n, &feature[0],
                          &mean[0], &factor[0, 0], &work[0], &out[start])
    return np.asarray(out)


def lane_distances_of(const double[::1] x, const double[:, :, ::1] mean,
                      const double[:, :, :, ::1] factor):
    """Squared distances of one row from all blocks, means and factors by lanes, for tests."""
    cdef Py_ssize_t n = mean.shape[0] * LANES, d = x.shape[0]
    cdef double[::1] out = np.empty(n), work = np.empty(2 * d * LANES)
    lane_distances(n, d, &x[0], &mean[0, 0, 0], &factor[0, 0, 0, 0], &work[0], &out[0])
    return np.asarray(out)
