from numpy.random cimport bitgen_t

from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net._proposals cimport BirthProposal, DeathProposal
from skbnp.cibp_belief_net.moves.counts cimport Counts


cdef class Births:
    cdef Py_ssize_t[::1] singleton          # (n_slots,) units that may die

    cdef int run(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death, bitgen_t* rng,
        Py_ssize_t c, Counts* counts,
    ) except -1 nogil
    cdef int _try_birth(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death, bitgen_t* rng,
        Py_ssize_t c, Counts* counts,
    ) except -1 nogil
    cdef int _try_death(
        self, LayerRegression layer, DeathProposal death, bitgen_t* rng,
        Py_ssize_t c, Counts* counts,
    ) except -1 nogil
    cdef double _log_rate(self, LayerRegression layer, double n_singletons) noexcept nogil


cdef Py_ssize_t admit_to(LayerRegression layer, BirthProposal birth) except -1 nogil
cdef void carry_out_in(LayerRegression layer, DeathProposal death) noexcept nogil
