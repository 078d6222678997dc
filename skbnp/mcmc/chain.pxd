from numpy.random cimport bitgen_t


cpdef enum Status:
    DONE
    BROKEN                                  # a move found no finite weight or density


cdef class State:
    cpdef double log_joint(self)


cdef class Move:
    cdef:
        object _bit_generator               # owner of *rng, must outlive it
        bitgen_t* rng
        readonly Py_ssize_t[::1] accepted   # (len(COUNTS),)
        readonly Py_ssize_t[::1] proposed   # (len(COUNTS),)

    cpdef int run(self) except -1


cdef class Chain:
    cdef:
        readonly object bit_generator
        readonly object state               # the model's State
        readonly tuple moves                # in the order of a sweep
        readonly str broken_move            # after which something was first not finite, "" if none
        readonly Py_ssize_t n_sweeps
        double[::1] _seconds                # (n_moves,)

    cdef int make(self, Py_ssize_t t) except -1
    cpdef bint is_sound(self)
    cpdef int finish_sweep(self) except -1
