"""How well each block suits a row: what Gibbs draws labels by, and densities of single rows."""

from libc.math cimport INFINITY, isfinite

import numpy as np

from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.numerics.special cimport log_sum_exp
from skbnp.numerics.vector_math cimport LANES, running_exp

from skbnp.numerics.buffers import longer


cdef class RowScores:
    """``value[k]`` = log p(z_i = k, x_i | the rest) up to a constant, the empty block last."""

    def __init__(self, State state):
        self.state = state
        self.value = np.zeros(0)

    cdef int reserve(self) except -1 nogil:
        if self.value.shape[0] < self.state.family.n_slots + LANES:
            with gil:
                self.value = longer(self.value, (self.state.family.n_slots + LANES,))
        return 0

    cdef int draw(self, double u, Py_ssize_t* chosen) noexcept nogil:
        """A block with probability proportional to exp(value), by inversion at a uniform u.

        ``value`` becomes its running sums. Non-zero, and a valid block all the same, where none is
        finite or one is NaN or +inf.
        """
        cdef Py_ssize_t k = 0, t, last = self.state.n_clusters
        cdef double* total = &self.value[0]
        cdef double target
        running_exp(last + 1, total)
        chosen[0] = 0
        if not isfinite(total[last]):
            return 1
        target = u * total[last]
        for t in range(last):  # all of them: nothing to guess where it ends
            k += total[t] <= target
        while k > 0 and total[k] == total[k - 1]:  # u near 1: none of no weight
            k -= 1
        chosen[0] = k
        return 0

    cdef bint of_member(self, Py_ssize_t i) except -1 nogil:
        """Scores of row i as it is in its block; False where digits were lost: take it out first.
        """
        cdef Py_ssize_t own = self.state.label[i], n = self.state.n_clusters, k
        cdef bint alone = self.state.family.n_members[own] == 1
        cdef const double* log_weight = &self.state.log_weight[0]
        cdef double* value
        self.reserve()
        value = &self.value[0]
        self.state.family.log_predictive_all(n + 1, i, value)
        for k in range(n):
            value[k] += log_weight[k]
        value[n] += self.state.law.log_new_weight(n - alone)
        if alone:
            value[own] = -INFINITY  # its block is the new one
            return True
        value[own] = self.state.family.log_predictive_own(own, i)
        if value[own] != value[own]:
            return False
        value[own] += self.state.log_weight_of_others[own]
        return True

    cdef int of_guest(self, Py_ssize_t i) except -1 nogil:
        """Scores of a row that is in no block, of its observed cells."""
        cdef Py_ssize_t n = self.state.n_clusters, k
        self.reserve()
        if self.state.family.augmented(i):
            self.state.family.log_predictive_observed(n + 1, i, &self.value[0])
        else:
            self.state.family.log_predictive_all(n + 1, i, &self.value[0])
        for k in range(n):
            self.value[k] += self.state.log_weight[k]
        self.value[n] += self.state.law.log_new_weight(n)
        return 0

    # -- of many rows -------------------------------------------------------------------------

    def of_new_rows(self, const Py_ssize_t[::1] rows):
        """Log densities of new rows that repeat training rows, shape of rows.

        Missing cells are integrated out, but of real columns with full covariance, where the row
        is taken as it is completed at present.
        """
        cdef State state = self.state
        cdef double[::1] out = np.empty(rows.shape[0])
        cdef double[::1] log_weight = state.law.log_predictive(state.sizes())
        cdef Py_ssize_t t, k, n = state.n_clusters + 1
        self.reserve()
        with nogil:
            for t in range(rows.shape[0]):
                state.family.log_predictive_all(n, rows[t], &self.value[0])
                for k in range(n):
                    self.value[k] += log_weight[k]
                out[t] = log_sum_exp(&self.value[0], n)
        return np.asarray(out)

    def leave_one_out(self):
        """log p(x_i | z_-i, X_-i) of the observed cells of each row, in the state's units.

        The row's own label is summed over, so that the mean over draws of its inverse is
        1 / p(x_i | X_-i). Costs as much as a Gibbs pass; blocks may be numbered anew.
        """
        cdef double[::1] out = np.empty(self.state.n_samples)
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.state.n_samples):
                out[i] = self.log_density_given_others(i)
        return np.asarray(out)

    cdef double log_density_given_others(self, Py_ssize_t i) except? -1 nogil:
        cdef Py_ssize_t own = self.state.label[i], n = self.state.n_clusters
        cdef bint alone = self.state.family.n_members[own] == 1
        cdef double total = -self.state.law.log_total_weight(self.state.n_samples - 1, n - alone)
        if not self.state.family.augmented(i) and self.of_member(i):
            return total + log_sum_exp(&self.value[0], n + 1)
        self.state.detach(i, -1)
        self.of_guest(i)
        total += log_sum_exp(&self.value[0], self.state.n_clusters + 1)
        self.state.attach(i, self.state.n_clusters if alone else own)
        return total

    def leave_one_out_shares(self):
        """p(z_i = k | z_-i, X) of each row and each block there is, (n_samples, n_clusters).

        The full conditional of the Gibbs pass without the chance of a new block; a row alone in
        its block keeps that, with the weight of a new one. Blocks are in the order of the labels
        at the call and may be numbered anew by it. Costs as ``leave_one_out``.
        """
        cdef State state = self.state
        cdef Py_ssize_t[::1] block = np.arange(state.n_clusters)
        cdef double[:, ::1] out = np.empty((state.n_samples, state.n_clusters))
        cdef Py_ssize_t i
        with nogil:
            for i in range(state.n_samples):
                self.given_others(i, &block[0], &out[i, 0])
        shares = np.asarray(out)
        shares -= shares.max(axis=1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    cdef int given_others(self, Py_ssize_t i, Py_ssize_t* block, double* out) except -1 nogil:
        """out[k] = log p(z_i = k | z_-i, X) up to a constant; slot t holds block[t]."""
        cdef Py_ssize_t own = self.state.label[i], last = self.state.n_clusters - 1, k
        cdef bint alone = self.state.family.n_members[own] == 1
        if not self.state.family.augmented(i) and self.of_member(i):
            if alone:
                self.value[own] = self.value[self.state.n_clusters]
        else:
            self.state.detach(i, -1)
            self.of_guest(i)
            if alone:
                # The last block has its slot now; put back, the row's own comes last.
                k = block[own]
                block[own] = block[last]
                block[last] = k
            self.state.attach(i, last if alone else own)
        for k in range(last + 1):
            out[block[k]] = self.value[k]
        return 0
