from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Births(Move):
    cdef:
        State state
        Py_ssize_t n_attempts               # for each feature
        double[::1] residual                # (n_samples,) of one feature
        double[::1] new_variance, new_noise     # (cluster_room,) v*, s*

    cdef int make_room(self) except -1 with gil
    cdef int update(self) except -1 nogil
    cdef Py_ssize_t n_singletons(self, Py_ssize_t j) noexcept nogil
    cdef int try_birth(self, Py_ssize_t j) except -1 nogil
    cdef int try_death(self, Py_ssize_t j) except -1 nogil
    cdef double noise_scale(self, Py_ssize_t g, Py_ssize_t j, double* shape) noexcept nogil
    cdef void draw_noise_without(self, Py_ssize_t j) noexcept nogil
    cdef double within_scale(self, Py_ssize_t g, Py_ssize_t j) noexcept nogil
    cdef void propose_energies(self, Py_ssize_t j, double w) noexcept nogil
    cdef double log_gain(self, Py_ssize_t j, double w, Py_ssize_t slot) noexcept nogil
    cdef double log_count(self, Py_ssize_t n) noexcept nogil
    cdef double log_jacobian(self, double w, double whole) noexcept nogil
    cdef void draw_singleton(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil
    cdef int draw_upper_row(self) except -1 nogil
    cdef void drop_upper_row(self) noexcept nogil
    cdef void remove_upper_row(self, Py_ssize_t k) noexcept nogil
