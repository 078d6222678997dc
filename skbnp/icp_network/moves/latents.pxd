from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport Move


cdef class Latents(Move):
    cdef:
        Network net
        double[:, ::1] residual             # (n_latents, stride) what they exceed their means by

    cdef void measure(self) noexcept nogil
    cdef void squash(self) noexcept nogil
    cdef double mean_of(self, Py_ssize_t c, Py_ssize_t i) noexcept nogil
    cdef double* value(self, Py_ssize_t c, Py_ssize_t i) noexcept nogil
    cdef void set_lead(self, Py_ssize_t i, double lead) noexcept nogil
    cdef void draw_others(self, Py_ssize_t i) noexcept nogil
    cdef void _draw_own(self, Py_ssize_t i) noexcept nogil
    cdef void _draw_single(self, Py_ssize_t i) noexcept nogil
