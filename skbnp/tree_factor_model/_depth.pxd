from numpy.random cimport bitgen_t

from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State


cdef class Depth:
    cdef:
        State state
        LeafLaws laws
        Law law

    cdef int follow_data(self, bitgen_t* rng) except -1 nogil
    cdef bint _last_level_is_idle(self) noexcept nogil
