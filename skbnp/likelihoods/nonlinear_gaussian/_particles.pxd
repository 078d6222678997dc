from numpy.random cimport bitgen_t

from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport BLOCK, Feedforward
from skbnp.numerics.rng cimport RowStream


cdef enum Mode:
    # What is asked of nodes: a or u.
    VALUES
    SQUASHED


cdef class Particles:
    cdef:
        readonly Feedforward above, rest
        readonly Py_ssize_t n_nodes
        readonly bint shared                # whether no sampled node is a child of a known one
        readonly bint random                # whether there is a node to sample for the density
        readonly object known               # (D,) which entries are
        Py_ssize_t n
        unsigned char[::1] input, later, leaf   # (K,)
        Py_ssize_t[::1] known_nodes, above_nodes, rest_nodes, rest_position
        double[:, ::1] a, u, mean           # (K, BLOCK)
        Py_ssize_t[:, ::1] pointer          # (4, K)
        double** above_a
        double** above_u
        double** rest_a
        double** rest_u
        RowStream stream[BLOCK]
        bitgen_t* rng[BLOCK]
        double log_likelihood[BLOCK]
        double[::1] node, share

    cdef void know(self, Py_ssize_t i, const double* row) noexcept nogil
    cdef void know_all(self, const double* row, Py_ssize_t n) noexcept nogil
    cdef void follow(self, const double[:, ::1] noise, Py_ssize_t first) noexcept nogil
    cdef void start(self) noexcept nogil
    cdef void finish(self) noexcept nogil
    cdef void measure(self) noexcept nogil
    cdef void sweep(self, double heat) noexcept nogil
    cdef void moments(
        self, const Py_ssize_t[::1] wanted, int mode, double* mean, double* variance
    ) noexcept nogil
