from skbnp.cibp_belief_net._proposals cimport BirthProposal, DeathProposal
from skbnp.cibp_belief_net._state cimport Network
from skbnp.mcmc.chain cimport Move


cdef struct Match:
    # A parent of one child, and the child's parameters without the parent and with it.
    Py_ssize_t layer                        # of the child
    Py_ssize_t child
    bint is_narrow                          # which of two laws the weight has
    double weight
    double mean, variance                   # of the parent's activations over all rows
    double bias_without, bias_with
    double precision_without, precision_with


cdef class MatchedBirths(Move):
    cdef:
        Network net
        BirthProposal birth
        DeathProposal death
        double _rate                        # probability of a try, per child
        Py_ssize_t[::1] orphan              # (n_slots,) parents that may die
        # The parent's law in each row, the factor of its u in the child's density.
        double[::1] mean, spread, linear    # (stride,)
        double[::1] residual                # (stride,) of the child without the parent

    cdef int _run_layer(self, Py_ssize_t layer) except -1 nogil
    cdef int _try_birth(self, Match* at) except -1 nogil
    cdef int _try_death(self, Match* at) except -1 nogil
    cdef Py_ssize_t _list_orphans(self, const Match* at) noexcept nogil
    cdef bint _has_parents(self, Py_ssize_t slot) noexcept nogil
    cdef bint _lay_out(
        self, Match* at, double bias, double precision, const double* cluster_mean,
        const double* cluster_precision,
    ) noexcept nogil
    cdef bint _match(self, Match* at, bint birth) noexcept nogil
    cdef double _log_structure(
        self, const Match* at, double n_others, double n_orphans
    ) noexcept nogil
    cdef double _log_alone(self, Py_ssize_t layer, double n_others) noexcept nogil
    cdef double _log_parameters(self, const Match* at) noexcept nogil
    cdef double _log_jacobian(self, const Match* at) noexcept nogil
    cdef double _compare_rows(self, const Match* at, const double* u) noexcept nogil
