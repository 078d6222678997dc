from libc.stdint cimport uint64_t


cdef uint64_t row_key(const double* row, Py_ssize_t n) noexcept nogil
