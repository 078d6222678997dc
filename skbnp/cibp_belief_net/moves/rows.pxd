from skbnp.cibp_belief_net._layer cimport LayerRegression
from skbnp.cibp_belief_net._proposals cimport BirthProposal, DeathProposal
from skbnp.cibp_belief_net._state cimport Network
from skbnp.cibp_belief_net.moves.births cimport Births
from skbnp.cibp_belief_net.moves.blocks cimport Blocks
from skbnp.cibp_belief_net.moves.counts cimport Counts
from skbnp.cibp_belief_net.moves.swaps cimport Swaps
from skbnp.cibp_belief_net.moves.toggles cimport Toggles
from skbnp.cibp_belief_net.moves.weights cimport Weights
from skbnp.mcmc.chain cimport Move


cdef class Rows(Move):
    cdef:
        Network net
        LayerRegression layer
        BirthProposal birth
        DeathProposal death
        Blocks blocks
        Toggles toggles
        Swaps swaps
        Births births
        Weights weights
        double _block_rate                  # probability of a try, per layer
        double _swap_rate, _birth_rate      # probability of a try, per row
        bint _has_blocks, _has_births
        Py_ssize_t[::1] order               # (n_children,) of visits

    cdef int _run_layer(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death
    ) except -1 nogil
    cdef int _run_row(
        self, LayerRegression layer, BirthProposal birth, DeathProposal death, Py_ssize_t c,
        Counts* counts,
    ) except -1 nogil
