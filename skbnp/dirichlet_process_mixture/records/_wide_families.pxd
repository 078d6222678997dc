from skbnp.likelihoods.conjugate.normal_inverse_gamma cimport NormalInverseGamma
from skbnp.likelihoods.conjugate.normal_inverse_wishart cimport NormalInverseWishart


cdef enum:
    N_PLACES = 1024         # a power of two


cdef struct Constants:
    double mean_precision, shape            # of the prior that these numbers are for
    Py_ssize_t[N_PLACES] t_rows, m_rows     # number of rows that a place is taken by, -1: none
    double[N_PLACES] t, m


cdef class WideNormalInverseWishart(NormalInverseWishart):
    cdef Constants known

    cdef double t_constant(self, Py_ssize_t n) noexcept nogil
    cdef double m_constant(self, Py_ssize_t n) noexcept nogil


cdef class WideNormalInverseGamma(NormalInverseGamma):
    cdef Constants known

    cdef double t_constant(self, Py_ssize_t n) noexcept nogil
    cdef double m_constant(self, Py_ssize_t n) noexcept nogil
    cdef double _log_t_of_each(self, Py_ssize_t k, const double* x) noexcept nogil
    cdef double _log_t_of_one(self, Py_ssize_t k, const double* x) noexcept nogil
