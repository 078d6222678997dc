"""Proposals for the pre-activation of one squashed Gaussian unit on a grid of its own noise.

With u = tanh(a / 2), a ~ N(mean, spread^2), and a likelihood L(a) = exp(t u - s u^2 / 2) of the
children: the line is cut into CELLS pieces of equal mass under the normal, a cell is drawn by its
likelihood in the middle and the point from the normal within it. The density of a proposal over
that of the normal is CELLS w_cell / sum w, which does not depend on where the chain stands.
"""

from libc.math cimport erfc, log
from numpy.random cimport bitgen_t
from scipy.special.cython_special cimport ndtri

from skbnp.likelihoods.nonlinear_gaussian._exponential cimport quick_squash
from skbnp.numerics cimport rng as random

import numpy as np
from scipy import special

cdef enum:
    CELLS = 32
    NODES = 64          # of the moments

cdef double[CELLS] MIDDLE
cdef double[NODES] NODE
for _i, _z in enumerate(special.ndtri((np.arange(CELLS) + 0.5) / CELLS)):
    MIDDLE[_i] = _z
for _i, _z in enumerate(special.ndtri((np.arange(NODES) + 0.5) / NODES)):
    NODE[_i] = _z
# Of a cell's share: a cell without likelihood could not be left otherwise.
cdef double LEAST_SHARE = 1e-300
cdef double LEAST_TAIL = 1e-15


cdef extern from *:
    """
    /* Likelihoods in the middle of the cells over the highest, their sum. */
    static SKBNP_CLONES double skbnp_weigh_cells(
        const double* middle, double mean, double spread, double t, double s, double least,
        double* weight)
    {
        double u, highest, sum[4] = {0.0, 0.0, 0.0, 0.0};
        int g, i;
        for (g = 0; g < 32; g++) {
            u = skbnp_quick_squash(mean + spread * middle[g]);
            weight[g] = u * (t - 0.5 * s * u);
        }
        highest = weight[0];
        for (g = 1; g < 32; g++) highest = weight[g] > highest ? weight[g] : highest;
        for (g = 0; g < 32; g++) {
            u = skbnp_quick_exp(weight[g] - highest);
            weight[g] = u > least ? u : least;
        }
        for (g = 0; g < 32; g += 4)
            for (i = 0; i < 4; i++) sum[i] += weight[g + i];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    """
    double weigh_cells "skbnp_weigh_cells"(
        const double* middle, double mean, double spread, double t, double s, double least,
        double* weight,
    ) noexcept nogil


cdef inline double log_likelihood(double u, double t, double s) noexcept nogil:
    return u * (t - 0.5 * s * u)


cdef inline Py_ssize_t cell_of(double z) noexcept nogil:
    cdef Py_ssize_t g = <Py_ssize_t> (CELLS * 0.5 * erfc(-0.7071067811865476 * z))
    return min(max(g, 0), CELLS - 1)


cdef inline double log_weight(
    double a, double t, double s, double share
) noexcept nogil:
    """log of L(a) over the proposal's density relative to the normal."""
    return log_likelihood(quick_squash(a), t, s) - log(CELLS * share)


cdef inline double propose(
    bitgen_t* rng, double mean, double spread, const double* weight, double total, double* share
) noexcept nogil:
    """A point, and the share of its cell."""
    cdef double left = total * random.uniform(rng), v
    cdef Py_ssize_t g = 0
    while g < CELLS - 1 and left >= weight[g]:
        left -= weight[g]
        g += 1
    share[0] = weight[g] / total
    v = (g + random.uniform(rng)) / CELLS
    return mean + spread * ndtri(min(max(v, LEAST_TAIL), 1.0 - LEAST_TAIL))


cdef double draw_on_grid(
    bitgen_t* rng, double mean, double spread, double t, double s, double* a
) noexcept nogil:
    """Draw a; its log weight, log L(a) less the log of the proposal's density over the normal."""
    cdef double[CELLS] weight
    cdef double total, share
    total = weigh_cells(MIDDLE, mean, spread, t, s, LEAST_SHARE, weight)
    a[0] = propose(rng, mean, spread, weight, total, &share)
    return log_weight(a[0], t, s, share)


cdef double weigh_on_grid(double a, double mean, double spread, double t, double s) noexcept nogil:
    """The log weight of a point as ``draw_on_grid`` gives it."""
    cdef double[CELLS] weight
    cdef double total
    total = weigh_cells(MIDDLE, mean, spread, t, s, LEAST_SHARE, weight)
    return log_weight(a, t, s, weight[cell_of((a - mean) / spread)] / total)


cdef long long update_on_grid(
    bitgen_t* rng, Py_ssize_t n, double* a, double* u, const double* mean, double spread,
    const double* t, double s,
) noexcept nogil:
    """A Metropolis step of n rows of a unit, u = tanh(a / 2) with it; the number accepted."""
    cdef double[CELLS] weight
    cdef double total, share, point, now
    cdef Py_ssize_t i
    cdef long long n_accepted = 0
    for i in range(n):
        total = weigh_cells(MIDDLE, mean[i], spread, t[i], s, LEAST_SHARE, weight)
        point = propose(rng, mean[i], spread, weight, total, &share)
        now = weight[cell_of((a[i] - mean[i]) / spread)] / total
        if log(random.uniform(rng)) < (
            log_weight(point, t[i], s, share) - log_weight(a[i], t[i], s, now)
        ):
            a[i], u[i] = point, quick_squash(point)
            n_accepted += 1
    return n_accepted


cdef void squashed_moments(
    double mean, double spread, double* first, double* variance
) noexcept nogil:
    """Mean and variance of tanh(a / 2), a ~ N(mean, spread^2), on 64 cells of equal mass.

    Always the same approximation, as moves and their inverses need.
    """
    cdef double u
    cdef Py_ssize_t g
    first[0] = variance[0] = 0.0
    for g in range(NODES):
        u = quick_squash(mean + spread * NODE[g])
        first[0] += u / NODES
        variance[0] += u * u / NODES
    variance[0] = max(variance[0] - first[0] * first[0], 0.0)
