"""What tests ask of the kernels of squashed Gaussian units."""

from libc.stdint cimport uint64_t
from numpy.random cimport bitgen_t

from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations, squash, unsquash
from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport BLOCK, Feedforward
from skbnp.likelihoods.nonlinear_gaussian._grid cimport draw_on_grid, update_on_grid, weigh_on_grid
from skbnp.likelihoods.nonlinear_gaussian._regression cimport RowRegression
from skbnp.numerics cimport rng as random
from skbnp.numerics.rng cimport RowStream

import numpy as np


def squashed(a):
    """tanh(a / 2), entry by entry, as kernels have it."""
    return np.array([squash(x) for x in a])


def unsquashed(u):
    """2 artanh(u), entry by entry."""
    return np.array([unsquash(x) for x in u])


def updated(Activations activations, bit_generator, a, mean, precision, linear, quadratic,
            Py_ssize_t n_updates=1):
    """The pre-activations after ``n_updates`` updates, shape (n_rows, width).

    Parameters
    ----------
    activations : Activations
        The method; its counts move on.
    bit_generator : numpy bit generator
    a, mean, linear : array of shape (n_rows, width)
    precision : array of shape (width,) or (n_rows, width)
    quadratic : array of shape (width, width)
    """
    cdef bitgen_t* rng = random.borrow(bit_generator)
    mean, linear, quadratic, nu = (
        np.ascontiguousarray(x, dtype=np.float64) for x in (mean, linear, quadratic, precision)
    )
    cdef double[:, ::1] out = np.array(a, dtype=np.float64, order="C")
    cdef Py_ssize_t n = out.shape[0], width = out.shape[1], _
    cdef Py_ssize_t stride = 0 if nu.ndim == 1 else width
    shapes = [x.shape for x in (mean, linear, quadratic, np.atleast_2d(nu))]
    if shapes != [(n, width), (n, width), (width, width), (n if stride else 1, width)]:
        raise ValueError(f"the arrays' shapes do not agree with a of {(n, width)}: {shapes}")
    cdef const double[:, ::1] m = mean, T = linear, S = quadratic
    cdef const double[::1] precisions = nu.reshape(-1)
    if n == 0 or width == 0:
        return np.asarray(out)
    activations.reserve(width)
    with bit_generator.lock, nogil:
        for _ in range(n_updates):
            activations.update(
                rng, n, width, &out[0, 0], &m[0, 0], &precisions[0], stride, &T[0, 0], &S[0, 0]
            )
    return np.asarray(out)


def updated_on_grid(bit_generator, a, mean, double spread, t, double s, Py_ssize_t n_updates=1):
    """The points after so many updates, and the number of proposals accepted."""
    cdef double[::1] out = np.array(a, dtype=np.float64), u = np.tanh(np.asarray(a) / 2.0)
    cdef double[::1] means = np.ascontiguousarray(mean, dtype=np.float64)
    cdef double[::1] linear = np.ascontiguousarray(t, dtype=np.float64)
    cdef Py_ssize_t _
    cdef long n_accepted = 0
    if not out.shape[0] == means.shape[0] == linear.shape[0]:
        raise ValueError("a, mean and t must be equally long")
    if out.shape[0]:
        with bit_generator.lock:
            for _ in range(n_updates):
                n_accepted += update_on_grid(
                    random.borrow(bit_generator), out.shape[0], &out[0], &u[0], &means[0], spread,
                    &linear[0], s,
                )
    return np.asarray(out), n_accepted


def drawn_on_grid(bit_generator, double mean, double spread, double t, double s, Py_ssize_t n):
    """n proposals and their log weights, and those weights as ``weigh_on_grid`` has them."""
    cdef double[::1] a = np.empty(n), weight = np.empty(n), again = np.empty(n)
    cdef Py_ssize_t i
    with bit_generator.lock:
        for i in range(n):
            weight[i] = draw_on_grid(
                random.borrow(bit_generator), mean, spread, t, s, &a[i]
            )
            again[i] = weigh_on_grid(a[i], mean, spread, t, s)
    return np.asarray(a), np.asarray(weight), np.asarray(again)


def regression_answers(
    const double[:, ::1] Phi, const double[::1] a, double noise_precision,
    const double[::1] mean, const double[::1] precision, active, flips, new=None,
    new_prior=(0.0, 1.0), weight=None,
):
    """After the flips, the evidence, every gain, that of a new parent, a residual.

    Phi is (n_rows, size) with its first column the bias.
    """
    cdef Py_ssize_t size = Phi.shape[1], j
    cdef RowRegression row = RowRegression(1)
    cdef double[:, ::1] gram = np.asarray(Phi).T @ np.asarray(Phi)
    cdef double[::1] products, w
    row.reserve(size)
    for j in range(size):
        row.active[j] = active[j]
        row.prior_mean[j], row.prior_precision[j] = mean[j], precision[j]
        row.side[j] = np.asarray(Phi)[:, j] @ np.asarray(a)
    square = np.asarray(a) @ np.asarray(a)
    if row.start(size, &gram[0, 0], size, a.shape[0], square, noise_precision) != 0:
        raise np.linalg.LinAlgError("the matrix must be positive definite")
    for j in flips:
        if row.flip(j) != 0:
            raise np.linalg.LinAlgError("the pivot must keep its digits")
    out = {
        "log_evidence": row.log_evidence(),
        "gains": np.array([row.gain(j) for j in range(size)]),
        "active": np.array(row.active[:size]).astype(bool),
    }
    if new is not None:
        products = np.asarray(Phi).T @ new
        out["gain_of_new"] = row.gain_of_new(
            &products[0], new @ new, new @ np.asarray(a), new_prior[0], new_prior[1]
        )
    if weight is not None:
        w = np.array(weight, dtype=np.float64)
        out["squared_residual"] = row.squared_residual(&w[0])
    return out


def regression_draws(
    const double[:, ::1] Phi, const double[::1] a, double noise_precision,
    const double[::1] mean, const double[::1] precision, active, bit_generator, Py_ssize_t n,
):
    """n draws of bias and weights, (n, size)."""
    cdef Py_ssize_t size = Phi.shape[1], j, t
    cdef RowRegression row = RowRegression(size)
    cdef double[:, ::1] gram = np.asarray(Phi).T @ np.asarray(Phi)
    cdef double[:, ::1] out = np.empty((n, size))
    for j in range(size):
        row.active[j] = active[j]
        row.prior_mean[j], row.prior_precision[j] = mean[j], precision[j]
        row.side[j] = np.asarray(Phi)[:, j] @ np.asarray(a)
    square = np.asarray(a) @ np.asarray(a)
    row.start(size, &gram[0, 0], size, a.shape[0], square, noise_precision)
    for t in range(n):
        row.draw(random.borrow(bit_generator), &out[t, 0])
    return np.asarray(out)


def sliced(
    Feedforward net, uint64_t seed, a, u, double temperature=1.0, Py_ssize_t n_steps=1
):
    """Values (n_nodes, n_rows) of a and u after so many slices; row i has stream i."""
    cdef double[:, ::1] a_new = np.array(a, dtype=np.float64, order="C")
    cdef double[:, ::1] u_new = np.array(u, dtype=np.float64, order="C")
    cdef Py_ssize_t first, n, i, p, _, n_rows = a_new.shape[1]
    cdef RowStream stream[BLOCK]
    cdef bitgen_t* rng[BLOCK]
    cdef Py_ssize_t[:, ::1] at = np.empty((2, max(1, net.n_nodes)), dtype=np.intp)
    cdef double** at_a = <double**> &at[0, 0]
    cdef double** at_u = <double**> &at[1, 0]
    for first in range(0, n_rows, BLOCK):
        n = min(<Py_ssize_t> BLOCK, n_rows - first)
        for i in range(n):
            random.start_row_stream(&stream[i], seed, 0, first + i)
            rng[i] = &stream[i].rng
        for p in range(net.n_nodes):
            at_a[p], at_u[p] = &a_new[p, first], &u_new[p, first]
        for _ in range(n_steps):
            net.slice_noises(rng, n, at_a, at_u, temperature)
    return np.asarray(a_new), np.asarray(u_new)
