"""Scales of factors: loadings up, scores down, or the other way round."""

from libc.math cimport exp, log

from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport rng as draws

# Step of the scale of a factor, in its log.
cdef double STRETCH = 0.15


cdef class Rescales(Move):
    """A Metropolis step for the scale of each factor, along which W y stays."""

    NAME = "rescales"
    COUNTS = ("rescales",)

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state = state

    cpdef int run(self) except -1:
        with nogil:
            self.update()
        self.state.has_residuals = False
        return self.state.outcome()

    cdef void update(self) noexcept nogil:
        """(w, y, m, v, sigma^2) -> (g w, y / g, m / g, v / g^2, g^2 sigma^2), log g ~ N(0, .15^2).

        All normal densities cancel against the Jacobian: equation (F4.8). O(T + N + G) a factor.
        """
        cdef Py_ssize_t k, c, j, t
        cdef double step, scale, log_ratio, inverse
        for k in range(self.state.n_factors):
            step = STRETCH * draws.normal(self.rng)
            scale = exp(step)
            inverse = 0.0
            for c in range(self.state.n_clusters):
                inverse += 1.0 / self.state.V[c, k]
            log_ratio = -2.0 * self.state.law.slab_shape * step
            log_ratio -= (
                self.state.law.slab_scale / self.state.slab[k] * (1.0 / (scale * scale) - 1.0)
            )
            log_ratio += self.log_energies(step)
            log_ratio -= self.state.law.score_scale * (scale * scale - 1.0) * inverse
            self.proposed[0] += 1
            if not log(draws.uniform(self.rng)) < log_ratio:
                continue
            self.accepted[0] += 1
            self.state.slab[k] *= scale * scale
            for j in range(self.state.n_features):
                self.state.W[j, k] *= scale
            for c in range(self.state.n_clusters):
                self.state.M[c, k] /= scale
                self.state.V[c, k] /= scale * scale
            for t in range(self.state.n_samples):
                self.state.Y[t, k] /= scale

    cdef double log_energies(self, double step) noexcept nogil:
        """What the shapes of the clusters' energies give."""
        return 2.0 * self.state.law.score_shape * self.state.n_clusters * step
