from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.likelihoods.conjugate.learned_covariance cimport LearnedCovariance
from skbnp.mcmc.chain cimport State as BaseState
from skbnp.processes cimport crp_law


cdef class State(BaseState):
    cdef:
        readonly ConjugateFamily family
        readonly LearnedCovariance covariance   # None where the numbers of the prior are fixed
        readonly crp_law.PartitionLaw law       # of the partition, with its present parameters
        readonly Py_ssize_t n_samples
        public Py_ssize_t n_clusters
        public Py_ssize_t n_imputed             # sweeps that the moments of missing cells are of
        readonly Py_ssize_t[::1] label          # (n_samples,)
        double[::1] log_weight                  # (n_slots,) log(n_k - discount)
        double[::1] log_weight_of_others        # (n_slots,) log(n_k - 1 - discount), for members
        double[::1] scale_grid                  # (n_grid,) values of the prior scale; one: fixed
        bint samples_concentration, samples_discount
        double concentration_shape, concentration_rate, discount_a, discount_b
        Py_ssize_t _least_slots
        double _log_jacobian

    cdef void fetch(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t detach(self, Py_ssize_t i, Py_ssize_t target) except -1 nogil
    cdef int attach(self, Py_ssize_t i, Py_ssize_t k) except -1 nogil
    cdef Py_ssize_t drop_block(self, Py_ssize_t k, Py_ssize_t target) noexcept nogil
    cdef void weigh(self, Py_ssize_t k) noexcept nogil
    cdef void weigh_all(self) noexcept nogil
    cdef int reserve(self) except -1 nogil
    cdef void rebuild(self) noexcept nogil
    cdef void rebuild_block(self, Py_ssize_t k) noexcept nogil
    cdef double log_density(self) noexcept nogil
