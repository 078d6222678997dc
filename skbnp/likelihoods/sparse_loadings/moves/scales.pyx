"""Scales of factors: mathematics/deep_scale_model, section 8."""

from libc.math cimport exp, log
from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.cells cimport accepts
from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport OF_SCALES, LayerMove
from skbnp.numerics cimport rng as draws

# Standard deviation of log factors of scale (D8.1).
cdef double SCALE_STEP = 0.1


cdef class Scales(LayerMove):
    """A Metropolis step for the scale of each factor, along which A stays."""

    cdef int run(self, bitgen_t* rng) except -1 nogil:
        """Of every factor (loadings, scores) to (g loadings, scores / g), A as it was."""
        cdef Py_ssize_t k, n, t
        cdef double g, energy, squares, log_ratio, m
        for k in range(self.layer.n_factors):
            m, energy, squares = self.layer.n_links[k], self.layer.column_energy(k), 0.0
            for t in range(self.layer.n_samples):
                squares += self.layer.Y[k, t] * self.layer.Y[k, t] / self.layer.score_variance(k, t)
            g = exp(SCALE_STEP * draws.normal(rng))
            log_ratio = self.layer.log_column(m, g * g * energy) - self.layer.log_column(m, energy)
            log_ratio -= 0.5 * (1.0 / (g * g) - 1.0) * squares
            log_ratio += self.log_jacobian(m, g)
            self.proposed[OF_SCALES] += 1
            if not accepts(rng, log_ratio):
                continue
            self.accepted[OF_SCALES] += 1
            for n in range(self.layer.n_below):
                self.layer.W[n, k] *= g
            for t in range(self.layer.n_samples):
                self.layer.Y[k, t] /= g
        return 0

    cdef double log_jacobian(self, double n_links, double g) noexcept nogil:
        """Of so many loadings and a score for each sample."""
        return (n_links - self.layer.n_samples) * log(g)
