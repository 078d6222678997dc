from libc.stdint cimport uint64_t
from numpy.random cimport bitgen_t

from skbnp.mcmc.chain cimport Move
from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._threads cimport Pool, Scratch, Work


cdef class Masses:
    cdef:
        State state
        double[::1] node_log_mass, node_gamma, node_rest, node_total    # (n_node_slots + 1,), n + 1
        double[::1] leaf_log_mass               # (n_leaf_slots,)
        unsigned char[::1] needed               # (n_node_slots,) fresh nodes with leaves
        Py_ssize_t n_sticks                     # broken so far
        double least                            # mass that a slice reaches

    cdef int _reserve(self) except -1 nogil
    cdef int weigh_children(self, bitgen_t* rng) except -1 nogil
    cdef int grow_fresh_paths(self, bitgen_t* rng, double least) except -1 nogil
    cdef int _break_sticks(
        self, bitgen_t* rng, Py_ssize_t node, Py_ssize_t level, double log_mass
    ) except -1 nogil
    cdef int _grow(
        self, bitgen_t* rng, Py_ssize_t node, Py_ssize_t level, double log_mass
    ) except -1 nogil


cdef class Slices(Work):
    cdef:
        State state
        Masses masses
        uint64_t key                            # of the random numbers
        double[::1] log_slice                   # (n_samples,)
        double[::1] block_least                 # (n_blocks,)

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil
    cdef double least(self, Py_ssize_t n_blocks) noexcept nogil


cdef class Offers(Work):
    cdef:
        State state
        LeafLaws laws
        Masses masses
        Slices slices
        uint64_t key                            # of the random numbers
        double[::1] best                        # (n_samples,)
        Py_ssize_t[::1] choice                  # (n_samples,) leaves, -1: none

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil
    cdef bint _is_offered(self, Py_ssize_t b, Py_ssize_t i) noexcept nogil
    cdef void _offer(self, Law law, Py_ssize_t b, Py_ssize_t n) noexcept nogil


cdef class SlicePaths(Move):
    cdef:
        State state
        LeafLaws laws
        Pool pool
        Masses masses
        Slices slices
        Offers offers

    cdef int grow_fresh_paths(self, double least) except -1 nogil
    cdef int _take(self, Py_ssize_t[::1] choice) noexcept nogil
