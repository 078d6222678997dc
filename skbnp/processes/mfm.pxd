from skbnp.processes cimport crp_law


cdef class FiniteMixtures(crp_law.PartitionLaw):
    cdef:
        object _coefficients, _prior
        Py_ssize_t _n_items
        double[::1] _log_coefficient            # (n_known,) entry t of t blocks

    cdef double log_coefficient(self, Py_ssize_t n_blocks) noexcept nogil
