from cython cimport final
from libc.math cimport NAN


@final
cdef class ByCount:
    cdef:
        Py_ssize_t mask             # number of places less one
        Py_ssize_t[::1] count       # (n_places,) whose number is there; -1: none
        double[::1] number          # (n_places,)

    cdef void forget(self) noexcept nogil

    cdef inline double get(self, Py_ssize_t n) noexcept nogil:
        """The number of the count n; NaN where it is not known."""
        cdef Py_ssize_t place = n & self.mask
        return self.number[place] if self.count[place] == n else NAN

    cdef inline double put(self, Py_ssize_t n, double number) noexcept nogil:
        """Remember the number of the count n, and return it."""
        cdef Py_ssize_t place = n & self.mask
        self.count[place] = n
        self.number[place] = number
        return number
