"""Noise, location, drift and mass of layer one: mathematics/deep_scale_model, section 8."""

from libc.math cimport INFINITY, exp, isnan, log, sqrt
from numpy.random cimport bitgen_t

from skbnp.deep_scale_model._state cimport State
from skbnp.likelihoods.sparse_loadings.scale_layer cimport SINGLETON
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics cimport rng as draws, slice_sampling
from skbnp.numerics.slice_sampling cimport Slice
from skbnp.processes.ibp cimport dishes_per_mass

cdef enum:
    MOST_WIDTHS = 50    # of the bracket of a slice


cdef class Target:
    """A density of a logarithm, and a slice step for it."""

    def __init__(self, State state):
        self.state = state

    cdef double log_density(self, Py_ssize_t n, double x) noexcept nogil:
        """Density of x."""
        return 0.0

    cdef double slice(self, bitgen_t* rng, Py_ssize_t n, double x) noexcept nogil:
        """One step of slice sampling for ``log_density``, of width 1."""
        cdef Slice step
        slice_sampling.begin(
            &step, rng, x, self.log_density(n, x), -INFINITY, INFINITY, 1.0, MOST_WIDTHS
        )
        while slice_sampling.asks(&step, rng):
            slice_sampling.tell(&step, self.log_density(n, step.at))
        return step.at


cdef class NoiseTarget(Target):
    """The noise of a feature (D8.2)."""

    cdef double log_density(self, Py_ssize_t n, double x) noexcept nogil:
        """Density of the logarithm x of feature n's noise."""
        return self.state.with_noise(self.state.layer.row_log_data(n, exp(x)), x)


cdef class MassTarget(Target):
    """The mass of finite columns."""

    cdef double log_density(self, Py_ssize_t n, double x) noexcept nogil:
        """Density of the logarithm x of the mass of finite columns."""
        cdef double total, mass = exp(x)
        cdef Py_ssize_t k, K = self.state.layer.n_factors
        total = (self.state.mass_shape + K) * x
        total -= (self.state.mass_rate + dishes_per_mass(self.state.n_features, 1.0)) * mass
        for k in range(K):
            total += self.state.layer.log_finite_column(self.state.layer.n_links[k], mass / K)
        return total


cdef class Noise(Move):
    """s^2 of every feature | A, location, drift."""

    NAME = "noise"

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state, self.target = state, NoiseTarget(state)

    cpdef int run(self) except -1:
        if self.state.is_first_at_work():
            with nogil:
                self.update()
        return DONE

    cdef void update(self) noexcept nogil:
        """Every feature by a slice of its logarithm (D8.2); held while it is annealed."""
        cdef Py_ssize_t n
        if not self.state.samples_noise or self.state.n_annealed < self.state.n_anneal:
            return
        for n in range(self.state.n_features):
            self.state.layer.floor[n] = exp(
                self.target.slice(self.rng, n, log(self.state.layer.floor[n]))
            )


cdef class Location(Move):
    """mu, then c | A, noise: regressions (D8.3)."""

    NAME = "location"

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state = state

    cpdef int run(self) except -1:
        if self.state.is_first_at_work():
            with nogil:
                self.update()
        return DONE

    cdef void update(self) noexcept nogil:
        """Locations, then the drift: regressions with the weights 1 / (A^2 + s^2)."""
        cdef Py_ssize_t n, t
        cdef double precision, total, a, weight
        if self.state.location_variance > 0.0:
            for n in range(self.state.n_features):
                precision, total = 1.0 / self.state.location_variance, 0.0
                for t in range(self.state.n_samples):
                    if not isnan(self.state.layer.below[n, t]):
                        a = self.state.layer.A[n, t]
                        weight = 1.0 / (a * a + self.state.layer.floor[n])
                        precision += weight
                        total += weight * (
                            self.state.layer.below[n, t] - self.state.layer.drift * a
                        )
                total /= precision
                self.state.layer.location[n] = total + draws.normal(self.rng) / sqrt(precision)
        if not self.state.samples_drift:
            return
        precision = 1.0 / self.state.drift_variance
        total = self.state.drift_mean / self.state.drift_variance
        for n in range(self.state.n_features):
            for t in range(self.state.n_samples):
                if not isnan(self.state.layer.below[n, t]):
                    a = self.state.layer.A[n, t]
                    weight = a / (a * a + self.state.layer.floor[n])
                    precision += weight * a
                    total += weight * (self.state.layer.below[n, t] - self.state.layer.location[n])
        self.state.layer.drift = total / precision + draws.normal(self.rng) / sqrt(precision)


cdef class Mass(Move):
    """The mass of the first layer | links."""

    NAME = "mass"

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state, self.target = state, MassTarget(state)

    cpdef int run(self) except -1:
        if self.state.is_first_at_work():
            with nogil:
                self.update()
        return DONE

    cdef void update(self) noexcept nogil:
        """Gamma given the number of factors; a slice of its logarithm for finite columns."""
        if not self.state.samples_mass:
            return
        if self.state.layer.birth_move == SINGLETON:
            self.state.layer.mass = draws.draw_gamma(
                self.rng, self.state.mass_shape + self.state.layer.n_factors,
                self.state.mass_rate + dishes_per_mass(self.state.n_features, 1.0),
            )
        else:
            self.state.layer.mass = exp(self.target.slice(self.rng, -1, log(self.state.layer.mass)))
