from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer
from skbnp.mcmc cimport chain


cdef class State(chain.State):
    cdef:
        readonly object prior
        readonly ScaleLayer layer           # the first; others are above it
        readonly Py_ssize_t n_samples, n_features, max_layers
        readonly Py_ssize_t n_anneal, n_greedy
        # How far the warm-up has come: annealing sweeps, the layer at work and its sweeps.
        readonly Py_ssize_t n_annealed, greedy_layer, n_greedy_sweeps
        double[::1] first_noise             # where annealing starts
        double[::1] spread                  # (n_features,) variance of the data
        # Numbers of the laws of what is sampled.
        double mass_shape, mass_rate, noise_shape, noise_scale, drift_mean, drift_variance
        double location_variance            # 0: locations are not sampled
        double log_jacobian
        bint samples_mass, samples_noise, samples_drift

    cdef bint is_first_at_work(self) noexcept nogil
    cdef double log_parameters(self) noexcept nogil
    cdef double with_noise(self, double total, double x) noexcept nogil
