from libc.stdint cimport uint64_t

from skbnp.mcmc.chain cimport Move
from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._products cimport Products
from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._threads cimport Pool, Scratch, Work


cdef class PieceScores(Work):
    cdef:
        State state
        LeafLaws laws
        Products products
        uint64_t key                            # of the random numbers

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil
    cdef void draw(self, Law law, Py_ssize_t n) noexcept nogil
    cdef void add_noise(self, Law law, Py_ssize_t n) noexcept nogil


cdef class Scores(Move):
    cdef:
        State state
        Pool pool
        Products products
        PieceScores draw
