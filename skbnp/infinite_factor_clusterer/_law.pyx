"""The numbers of a prior, as kernels read them."""

from libc.math cimport NAN

import numpy as np
from scipy.special import gammaincc

from skbnp.infinite_factor_clusterer._model import SMALLEST_RATE


cdef class Law:
    """What `_model.Prior` says."""

    def __init__(self, prior):
        cdef Py_ssize_t i
        self.means = ("factor", "both", "feature").index(prior.means)
        self.shared_noise = prior.noise == "shared"
        self.student = prior.tails == "student"
        self.tail_grid = np.array(prior.tail_grid)
        self.given_concentration = NAN if prior.concentration is None else prior.concentration
        self.given_mass = NAN if prior.mass is None else prior.mass
        for i in range(2):
            self.concentration_law[i] = prior.concentration_prior[i]
            self.mass_law[i] = prior.mass_prior[i]
            self.rate_law[i] = prior.noise_rate_prior[i]
            self.offset_law[i] = prior.offset_precision_prior[i]
        self.smallest_rate = SMALLEST_RATE
        shape, rate = prior.noise_rate_prior
        self.log_rate_share = np.log(gammaincc(shape, rate * SMALLEST_RATE))
        self.slab_shape, self.slab_scale = prior.slab_shape, prior.slab_scale
        self.score_shape, self.score_scale = prior.score_shape, prior.score_scale
        self.score_precision, self.noise_shape = prior.score_precision, prior.noise_shape
