from skbnp.cibp_belief_net._state cimport Network
from skbnp.mcmc.chain cimport Move


cdef class Hyperparameters(Move):
    cdef:
        Network net
        Py_ssize_t[::1] n_takers            # (n_slots,) of a restaurant's dishes

    cdef void _update_restaurant(self, Py_ssize_t layer) noexcept nogil
    cdef void _update_weight_law(self, Py_ssize_t layer) noexcept nogil
    cdef void _update_bias_law(self, Py_ssize_t layer) noexcept nogil
    cdef void _update_noise_rate(self, Py_ssize_t layer) noexcept nogil
    cdef double _log_bound(self, double old, double new) noexcept nogil
