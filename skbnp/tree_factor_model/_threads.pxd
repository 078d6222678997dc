from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._system cimport System


cdef class Scratch:
    cdef:
        Law law
        System system


cdef class Work:
    cdef bint failed

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil
    cdef int fail(self) noexcept nogil


cdef class Pool:
    cdef:
        State state
        object _for_rows
        list _scratch                           # not in use
        Work _work                              # at hand

    cdef int run(self, Work work, Py_ssize_t n_items) except -1
