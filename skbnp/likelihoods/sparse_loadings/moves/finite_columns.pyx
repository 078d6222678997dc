"""Columns of finite laws, empty ones among them, and the printed moves.

mathematics/deep_scale_model, section 10.
"""

from libc.math cimport log, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.cells cimport accepts, put_in_order
from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport OF_BIRTHS, OF_DEATHS, LayerMove
from skbnp.likelihoods.sparse_loadings.scale_layer cimport PAN_HAN, ScaleLayer
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma
from skbnp.processes.ibp cimport dishes_per_mass


cdef class FiniteColumns(LayerMove):
    """Columns without links come and go, a fixed number of attempts for each row."""

    def __init__(self, ScaleLayer layer, Py_ssize_t n_attempts):
        super().__init__(layer)
        self.n_attempts = n_attempts
        self.row_order = np.zeros(0, dtype=np.intp)

    cdef int run(self, bitgen_t* rng) except -1 nogil:
        cdef Py_ssize_t _, N = self.layer.n_below, n = self.how_often()
        if self.layer.birth_move == PAN_HAN:
            return self.make_printed_moves(rng)
        if self.row_order.shape[0] < N:
            with gil:
                self.row_order = np.zeros(self.layer.room_below, dtype=np.intp)
        put_in_order(rng, &self.row_order[0], N)
        for _ in range(n):
            self.add_or_delete(rng)
        return 0

    cdef Py_ssize_t how_often(self) noexcept nogil:
        """Attempts of a run: never a number that the factors decide."""
        return self.n_attempts * self.layer.n_below

    cdef int add_or_delete(self, bitgen_t* rng) except -1 nogil:
        """A column without links comes or goes; its scores are from their law."""
        cdef Py_ssize_t n_empty = self.layer.count_empty(), pick, k = 0
        if draws.uniform(rng) < 0.5:
            self.proposed[OF_BIRTHS] += 1
            if accepts(rng, self.log_add_ratio(self.layer.n_factors, n_empty)):
                self.accepted[OF_BIRTHS] += 1
                self.add_empty(rng)
            return 0
        self.proposed[OF_DEATHS] += 1
        if n_empty == 0:
            return 0
        pick = draws.below(rng, n_empty)
        for k in range(self.layer.n_factors):
            if self.layer.n_links[k] == 0:
                if pick == 0:
                    break
                pick -= 1
        if accepts(rng, -self.log_add_ratio(self.layer.n_factors - 1, n_empty - 1)):
            self.accepted[OF_DEATHS] += 1
            self.layer.remove_factor(k)
        return 0

    cdef double log_add_ratio(self, Py_ssize_t n_columns, Py_ssize_t n_empty) noexcept nogil:
        """Log ratio of one more empty column beside so many; all columns have another law then."""
        cdef double before = self.layer.mass / n_columns if n_columns > 0 else 0.0
        cdef double after = self.layer.mass / (n_columns + 1.0), total
        total = log(self.layer.mass * dishes_per_mass(self.layer.n_below, 1.0) / (n_columns + 1.0))
        total += self.log_place(n_columns, n_empty)
        total += self.layer.log_finite_column(0, after)
        return total + self.log_others(before, after, n_empty)

    cdef double log_place(self, Py_ssize_t n_columns, Py_ssize_t n_empty) noexcept nogil:
        """Its place among the columns, against the choice of a deletion."""
        return log((n_columns + 1.0) / (n_empty + 1.0))

    cdef double log_others(self, double before, double after, Py_ssize_t n_empty) noexcept nogil:
        """What the other columns gain from another mass / K."""
        cdef double total = 0.0
        cdef Py_ssize_t k
        for k in range(self.layer.n_factors):
            if self.layer.n_links[k] > 0:
                total += self.layer.log_finite_column(self.layer.n_links[k], after)
                total -= self.layer.log_finite_column(self.layer.n_links[k], before)
        if n_empty > 0:
            total += n_empty * (
                self.layer.log_finite_column(0, after) - self.layer.log_finite_column(0, before)
            )
        return total

    cdef int add_empty(self, bitgen_t* rng) except -1 nogil:
        cdef Py_ssize_t K = self.layer.n_factors, n, t
        self.layer.reserve(self.layer.n_below, K + 1)
        if self.layer.is_live:
            self.layer.above.draw_row(rng)
        for t in range(self.layer.n_samples):
            self.layer.Y[K, t] = draws.normal(rng) * sqrt(self.layer.score_variance(K, t))
        for n in range(self.layer.n_below):
            self.layer.W[n, K] = 0.0
        self.layer.n_links[K] = 0
        self.layer.n_factors = K + 1
        return 0

    cdef int make_printed_moves(self, bitgen_t* rng) except -1 nogil:
        """Equations 12 and 13 as printed, an attempt for each row and column.

        They leave no posterior as it is (mathematics/deep_scale_model, sections 13.5 and 13.6);
        without columns nothing comes back.
        """
        cdef Py_ssize_t _, k, n_columns, n_active
        for _ in range(self.layer.n_below):
            n_columns, k = self.layer.n_factors, 0
            while k < min(n_columns, self.layer.n_factors):
                n_active = self.layer.n_factors - self.layer.count_empty()
                if self.layer.n_links[k] > 0:
                    self.proposed[OF_BIRTHS] += 1
                    if accepts(rng, log_printed_add(
                        self.layer.n_factors, n_active, self.layer.n_below, self.layer.mass
                    )):
                        self.accepted[OF_BIRTHS] += 1
                        self.add_empty(rng)
                    k += 1
                    continue
                self.proposed[OF_DEATHS] += 1
                if accepts(rng, log_printed_delete(
                    self.layer.n_factors, n_active, self.layer.n_below, self.layer.mass
                )):
                    self.accepted[OF_DEATHS] += 1
                    self.layer.remove_factor(k)
                    n_columns -= 1
                else:
                    k += 1
        return 0


cdef double log_empty(Py_ssize_t n_rows, double a) noexcept nogil:
    """Log probability that a beta(a, 1)-Bernoulli column has no link."""
    return lgamma(1.0 + a) + lgamma(n_rows + 1.0) - lgamma(n_rows + 1.0 + a)


cdef double log_printed_add(
    Py_ssize_t n_columns, Py_ssize_t n_active, Py_ssize_t n_rows, double mass
) noexcept nogil:
    """Equation 12 of the paper (D10.3)."""
    cdef double K = n_columns
    return (
        log_empty(n_rows, mass / (K + 1.0)) + log(mass * dishes_per_mass(n_rows, 1.0) / (K + 1.0))
        + log(K / ((K + 1.0) * n_active))
    )


cdef double log_printed_delete(
    Py_ssize_t n_columns, Py_ssize_t n_active, Py_ssize_t n_rows, double mass
) noexcept nogil:
    """Equation 13 of the paper: with the same factor as 12, not its inverse.

    mathematics/deep_scale_model, section 13.5.
    """
    cdef double K = n_columns
    return (
        -log_empty(n_rows, mass / K) - log(mass * dishes_per_mass(n_rows, 1.0) / K)
        + log(K / ((K + 1.0) * n_active))
    )
