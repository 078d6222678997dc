"""The parameters of the partition's law and of the prior of the blocks, given the partition."""

import numpy as np

from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.mcmc.chain cimport BROKEN, DONE, Move
from skbnp.numerics cimport rng as draws
from skbnp.processes cimport crp_law


cdef class Concentration(Move):
    """concentration | block sizes (and discount): `skbnp.processes.crp`, equation (M4.5)."""

    NAME = "concentration"

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state = state

    @classmethod
    def of(cls, State state, sweep, bit_generator):
        """Where it is sampled."""
        return cls(state, bit_generator) if state.samples_concentration else None

    cpdef int run(self) except -1:
        self.state.law.set_concentration(self.redrawn())
        if self.state.law.n_components > 0:
            self.state.weigh_all()
        return DONE

    cdef double redrawn(self) noexcept nogil:
        return crp_law.draw_concentration(
            self.rng, self.state.law.concentration, &self.state.family.n_members[0],
            self.state.n_clusters,
            self.state.law.discount, self.state.law.n_components, self.state.concentration_shape,
            self.state.concentration_rate,
        )


cdef class Discount(Move):
    """discount | block sizes, concentration: `skbnp.processes.crp`."""

    NAME = "discount"

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state = state

    @classmethod
    def of(cls, State state, sweep, bit_generator):
        """Where it is sampled."""
        return cls(state, bit_generator) if state.samples_discount else None

    cpdef int run(self) except -1:
        cdef State state = self.state
        state.law.set_discount(crp_law.draw_discount(
            self.rng, state.law.discount, &state.family.n_members[0], state.n_clusters,
            state.law.concentration, state.discount_a, state.discount_b,
        ))
        state.weigh_all()
        return DONE


cdef class PriorScale(Move):
    """scale | partition, X: a Gibbs step over its grid."""

    NAME = "prior_scale"

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state = state
        self.log_weight = np.zeros(state.scale_grid.shape[0])

    @classmethod
    def of(cls, State state, sweep, bit_generator):
        """Where it is sampled."""
        return cls(state, bit_generator) if state.scale_grid.shape[0] > 1 else None

    cpdef int run(self) except -1:
        cdef State state = self.state
        cdef Py_ssize_t n_grid = state.scale_grid.shape[0], g
        if self.weigh() != 0:
            return BROKEN
        if draws.categorical_from_logs(self.rng, &self.log_weight[0], n_grid, &g) != 0:
            return BROKEN
        if state.scale_grid[g] != state.family.scale:
            if state.family.set_scale(state.n_clusters, state.scale_grid[g]) != 0:
                state.rebuild()
        return DONE

    cdef int weigh(self) noexcept nogil:
        """log_weight[g] = log p(X | partition, scale = grid[g])"""
        cdef Py_ssize_t n_grid = self.state.scale_grid.shape[0], g
        for g in range(n_grid):
            self.log_weight[g] = 0.0
        return self.state.family.scale_log_weights(
            self.state.n_clusters, &self.state.scale_grid[0], n_grid, &self.log_weight[0]
        )


cdef class LearnCovariance(Move):
    """Lam, delta and kappa0 | partition, X: `skbnp.likelihoods.conjugate.learned_covariance`."""

    NAME = "learned_covariance"
    COUNTS = ("covariance_size",)
    STEPS = (
        "covariance", "degrees_of_freedom", "degrees_and_size", "covariance_size", "mean_precision"
    )

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state = state

    @classmethod
    def of(cls, State state, sweep, bit_generator):
        """Where it is sampled."""
        return cls(state, bit_generator) if state.covariance is not None else None

    cpdef int run(self) except -1:
        cdef State state = self.state
        cdef int failed
        with nogil:
            failed = state.covariance.sweep(state.n_clusters, self.rng)
        if failed:
            return BROKEN
        self.accepted[0] += state.covariance.n_accepted
        self.proposed[0] += state.covariance.n_rounds
        if state.covariance.settle(state.n_clusters) != 0:
            state.rebuild()
        return DONE

    def step(self, name):
        """One of the five updates alone."""
        self.state.covariance.only(name, self.state.n_clusters, self._bit_generator)
