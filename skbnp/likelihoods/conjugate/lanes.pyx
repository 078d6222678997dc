"""Forward substitution for four Gaussian blocks at a time."""

import numpy as np


cdef enum:
    LANES = 4  # blocks per pass of forward substitution


cdef class Lanes:
    """Copies of means and factors of slots, four side by side, brought up to date when asked."""

    def __init__(self, Py_ssize_t n_features):
        self.n_features = n_features
        self.residual = np.zeros(LANES * n_features)
        self.grow(0)

    def grow(self, Py_ssize_t n_slots):
        """Make room for so many slots and return how many there is room for; all are stale."""
        n_slots = (n_slots + LANES - 1) // LANES * LANES
        d = self.n_features
        self.n_slots = n_slots
        self.mean = np.zeros((n_slots // LANES, d, LANES))
        self.factor = np.zeros((n_slots // LANES, d, d, LANES))
        self.stale = np.ones(n_slots, dtype=np.uint8)
        self.any_stale = True
        return n_slots

    def touch_all(self):
        """All slots changed."""
        np.asarray(self.stale)[:] = 1
        self.any_stale = True

    cdef void touch(self, Py_ssize_t k) noexcept nogil:
        """Slot k changed: its lane is out of date."""
        self.stale[k] = 1
        self.any_stale = True

    cdef void refresh(
        self, Py_ssize_t n, const double* mean, const double* factor
    ) noexcept nogil:
        """Bring the lanes of slots 0..n-1 up to date: means (n, d) and factors (n, d, d)."""
        cdef Py_ssize_t d = self.n_features, k, a, b, chunk, lane
        cdef const double* m
        cdef const double* f
        if not self.any_stale:
            return
        for k in range(n):
            if not self.stale[k]:
                continue
            chunk = k // LANES
            lane = k - LANES * chunk
            m = mean + k * d
            f = factor + k * d * d
            for b in range(d):
                self.mean[chunk, b, lane] = m[b]
                self.factor[chunk, b, b, lane] = 1.0 / f[b * d + b]
                for a in range(b + 1, d):
                    self.factor[chunk, b, a, lane] = f[b * d + a]
            self.stale[k] = 0
        self.any_stale = False
        for k in range(n, self.n_slots):
            if self.stale[k]:
                self.any_stale = True
                break

    cdef void distances(self, Py_ssize_t n, const double* x, double* out) noexcept nogil:
        """(x - m)^T (U^T U)^-1 (x - m) for the slots 0..n-1: O(n d^2 / 2)."""
        cdef Py_ssize_t d = self.n_features, chunk, a, b, lane
        cdef double y0, y1, y2, y3, z0, z1, z2, z3, q0, q1, q2, q3, r0, r1, r2, r3, value
        cdef const double* mean
        cdef const double* factor
        cdef const double* f
        cdef const double* g
        cdef double* r = &self.residual[0]
        for chunk in range((n + LANES - 1) // LANES):
            mean = &self.mean[chunk, 0, 0]
            factor = &self.factor[chunk, 0, 0, 0]
            for a in range(d):
                value = x[a]
                for lane in range(LANES):
                    r[LANES * a + lane] = value - mean[LANES * a + lane]
            q0 = q1 = q2 = q3 = 0.0
            # Two features at a time: the residuals of all later ones are read and written once.
            for b in range(0, d - 1, 2):
                f = factor + LANES * (d * b + b)
                g = f + LANES * (d + 1)
                y0 = r[LANES * b] * f[0]
                y1 = r[LANES * b + 1] * f[1]
                y2 = r[LANES * b + 2] * f[2]
                y3 = r[LANES * b + 3] * f[3]
                f += LANES
                z0 = (r[LANES * b + 4] - f[0] * y0) * g[0]
                z1 = (r[LANES * b + 5] - f[1] * y1) * g[1]
                z2 = (r[LANES * b + 6] - f[2] * y2) * g[2]
                z3 = (r[LANES * b + 7] - f[3] * y3) * g[3]
                q0 = q0 + y0 * y0 + z0 * z0
                q1 = q1 + y1 * y1 + z1 * z1
                q2 = q2 + y2 * y2 + z2 * z2
                q3 = q3 + y3 * y3 + z3 * z3
                for a in range(b + 2, d):
                    f += LANES
                    g += LANES
                    # All loads before the stores, so that the compiler may pair the lanes.
                    r0 = r[LANES * a] - f[0] * y0 - g[0] * z0
                    r1 = r[LANES * a + 1] - f[1] * y1 - g[1] * z1
                    r2 = r[LANES * a + 2] - f[2] * y2 - g[2] * z2
                    r3 = r[LANES * a + 3] - f[3] * y3 - g[3] * z3
                    r[LANES * a] = r0
                    r[LANES * a + 1] = r1
                    r[LANES * a + 2] = r2
                    r[LANES * a + 3] = r3
            if d % 2 == 1:
                f = factor + LANES * (d * d - 1)
                y0 = r[LANES * (d - 1)] * f[0]
                y1 = r[LANES * (d - 1) + 1] * f[1]
                y2 = r[LANES * (d - 1) + 2] * f[2]
                y3 = r[LANES * (d - 1) + 3] * f[3]
                q0 += y0 * y0
                q1 += y1 * y1
                q2 += y2 * y2
                q3 += y3 * y3
            lane = LANES * chunk
            out[lane] = q0
            if lane + 1 < n:
                out[lane + 1] = q1
            if lane + 2 < n:
                out[lane + 2] = q2
            if lane + 3 < n:
                out[lane + 3] = q3
