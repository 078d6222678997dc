from numpy.random cimport bitgen_t

from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net._proposals cimport BirthProposal, DeathProposal
from skbnp.cibp_belief_net.moves.counts cimport Counts


cdef struct Block:
    # A unit with several children, as it is proposed to be born or to die.
    Py_ssize_t pivot                        # the child whose residual its activations follow
    double sign                             # or the residual's negative
    double pull                             # how closely
    Py_ssize_t n_takers                     # its children, those in ``taken``


cdef class Blocks:
    cdef:
        Py_ssize_t[::1] order               # (n_children,) in which children choose
        unsigned char[::1] taken            # (n_children,)
        double[::1] gain                    # (n_children,) of having the unit as a parent
        double[::1] residual, mean          # (stride,) of the pivot; prior mean of a unit's own

    cdef int run(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death, bitgen_t* rng,
        Counts* counts,
    ) except -1 nogil
    cdef int _try_birth(
        self, LayerRegression layer, BirthProposal birth, bitgen_t* rng, Block* block,
        Counts* counts,
    ) except -1 nogil
    cdef int _try_death(
        self, LayerRegression layer, DeathProposal death, bitgen_t* rng, Block* block,
        Counts* counts,
    ) except -1 nogil
    cdef int _take_out(
        self, LayerRegression layer, Block* block, Py_ssize_t slot, Py_ssize_t nth
    ) noexcept nogil
    cdef double _log_ratio(
        self, LayerRegression layer, const Block* block, double log_directed, double log_choice,
        double n_above,
    ) noexcept nogil
    cdef double _log_pivot(self, LayerRegression layer, Py_ssize_t n_takers) noexcept nogil
    cdef double _draw_directed(
        self, LayerRegression layer, BirthProposal birth, bitgen_t* rng, const Block* block
    ) noexcept nogil
    cdef double _log_directed(
        self, LayerRegression layer, Py_ssize_t slot, const Block* block
    ) noexcept nogil
    cdef double _log_choice(
        self, LayerRegression layer, bitgen_t* rng, Py_ssize_t pivot
    ) noexcept nogil
    cdef int _need_children(self, Py_ssize_t n) except -1 nogil
