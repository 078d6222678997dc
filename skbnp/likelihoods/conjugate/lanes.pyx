"""Laws of one row in all Gaussian blocks, by forward substitution for some of them at a time."""

from libc.string cimport memcpy

import numpy as np

from skbnp.numerics.vector_math cimport LANES, lane_distances, log_t_all


cdef class Lanes:
    """Copies of means and factors of slots, four side by side, brought up to date when asked."""

    def __init__(self, Py_ssize_t n_features):
        self.n_features = n_features
        self.residual = np.zeros(2 * LANES * n_features)
        self.grow(0)

    def grow(self, Py_ssize_t n_slots):
        """Make room for so many slots and return how many there is room for; all are stale."""
        n_slots = (n_slots + LANES - 1) // LANES * LANES
        d = self.n_features
        self.n_slots = n_slots
        self.mean = np.zeros((n_slots // LANES, d, LANES))
        self.factor = np.zeros((n_slots // LANES, d, d, LANES))
        self.stale = np.ones(n_slots, dtype=np.uint8)
        self.n_fresh = 0
        self.law = np.zeros((3, n_slots))
        self.distance = np.zeros(n_slots)
        self.value = np.zeros(n_slots)
        self.row = -1
        return n_slots

    def touch_all(self):
        """All slots changed."""
        np.asarray(self.stale)[:] = 1
        self.n_fresh = 0

    cdef void touch(self, Py_ssize_t k) noexcept nogil:
        """Slot k changed: its lane is out of date."""
        self.stale[k] = 1
        self.n_fresh = min(self.n_fresh, k)

    cdef void refresh(
        self, Py_ssize_t n, const double* mean, const double* factor
    ) noexcept nogil:
        """Bring the lanes of slots 0..n-1 up to date: means (n, d) and factors (n, d, d)."""
        cdef Py_ssize_t d = self.n_features, k
        for k in range(self.n_fresh, n):
            if self.stale[k]:
                self.renew(k, mean + k * d, factor + k * d * d)
        self.n_fresh = max(self.n_fresh, n)

    cdef void renew(self, Py_ssize_t k, const double* mean, const double* factor) noexcept nogil:
        """Copy the mean (d,) and the factor (d, d) of slot k."""
        cdef Py_ssize_t d = self.n_features, chunk = k // LANES, lane = k - LANES * chunk, a, b
        cdef double* in_mean = &self.mean[chunk, 0, lane]
        cdef double* row = &self.factor[chunk, 0, 0, lane]
        for b in range(d):
            in_mean[b * LANES] = mean[b]
            row[b * LANES] = 1.0 / factor[b]
            for a in range(b + 1, d):
                row[a * LANES] = factor[a]
            row += d * LANES
            factor += d
        self.stale[k] = 0

    cdef void measure(self, Py_ssize_t n, Py_ssize_t i, const double* x) noexcept nogil:
        """``distance`` = (x - m)^T (U^T U)^-1 (x - m) of row i for slots 0..n-1: O(n d^2 / 2)."""
        lane_distances(
            n, self.n_features, x, &self.mean[0, 0, 0], &self.factor[0, 0, 0, 0],
            &self.residual[0], &self.distance[0],
        )
        self.row = i
        self.n_known = n

    cdef void log_t(
        self, Py_ssize_t n, Py_ssize_t i, const double* x, double* out
    ) noexcept nogil:
        """constant - power log(1 + share distance) of row i for the slots 0..n-1."""
        self.measure(n, i, x)
        log_t_all(
            n, &self.distance[0], &self.law[0, 0], &self.law[1, 0], &self.law[2, 0],
            &self.value[0],
        )
        memcpy(out, &self.value[0], n * sizeof(double))

    cdef bint knows(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """Whether ``distance[k]`` is that of row i, a member of slot k.

        A member's cells do not change unless its slot does.
        """
        return self.row == i and k < self.n_known and not self.stale[k]
