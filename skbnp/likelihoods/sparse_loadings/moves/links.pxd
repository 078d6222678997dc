from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport LayerMove


cdef struct Hump:
    # Of a loading's conditional, at its mode.
    double mode, height, information


cdef struct LinkProposal:
    # What is there beside the link and its loading, and what is made of it.
    Py_ssize_t row, n_cells         # the layer has gathered the row's cells
    bint can_be_off
    double df, scale2               # the t law of a loading that is there, but for the cells
    double log_odds                 # of its being there, but for the cells
    Hump hump[2]                    # positive and negative loadings
    double log_share[2]             # of each hump in the proposal of a loading
    double log_evidence             # of there being a link, by Laplace's approximation
    double log_off                  # log density of the cells without the link
    double chance, log_on           # that a link is proposed, and the logarithm of its odds


cdef class Links(LayerMove):
    cdef Py_ssize_t[::1] row_order, column_order    # (room_below,), (room,)

    cdef int make_room(self) except -1 nogil
    cdef void update_link(self, bitgen_t* rng, Py_ssize_t n, Py_ssize_t k) noexcept nogil
    cdef void take_column(self, LinkProposal* link, Py_ssize_t k, double others) noexcept nogil
    cdef double n_others(self, double others, bint was_on) noexcept nogil
    # The proposal.
    cdef void find_humps(self, LinkProposal* link) noexcept nogil
    cdef double likely_size(self, const LinkProposal* link) noexcept nogil
    cdef double best_point(self, const LinkProposal* link, double w) noexcept nogil
    cdef Hump climb(self, const LinkProposal* link, double start) noexcept nogil
    cdef double step_up(self, const LinkProposal* link, Hump* hump, double step) noexcept nogil
    cdef double slope_at(
        self, const LinkProposal* link, double w, double* information
    ) noexcept nogil
    cdef void weigh_absence(self, LinkProposal* link) noexcept nogil
    # Densities.
    cdef double log_height(self, const LinkProposal* link, double w) noexcept nogil
    cdef double log_weight(self, const LinkProposal* link, double w) noexcept nogil
    # Bookkeeping.
    cdef void put(self, Py_ssize_t n, Py_ssize_t k, double w) noexcept nogil
