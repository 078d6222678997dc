from numpy.random cimport bitgen_t


cdef enum:
    BLOCK = 128     # rows at a time

cdef enum:
    INPUT = 0
    HIDDEN = 1
    OBSERVED = 2


cdef struct Brackets:
    # Rows whose angle on their ellipse is still looked for, the first n of a block.
    Py_ssize_t n
    Py_ssize_t[BLOCK] row           # which they are
    double temperature              # power of the likelihood
    double[BLOCK] misfit            # -log likelihood, of the proposal
    double[BLOCK] level             # misfit that is not exceeded
    double[BLOCK] angle, low, high  # the proposal's, and its bracket


cdef class Feedforward:
    cdef:
        public Py_ssize_t n_nodes
        public unsigned char[::1] kind                      # (n_nodes,) and more
        public Py_ssize_t[::1] parent_start, parent         # parents by child, positions
        public double[::1] weight, bias, spread             # spread = 1 / sqrt(precision)
        double[::1] scratch             # (5, n_nodes, BLOCK)
        double* noise                   # (n_nodes, BLOCK): of HIDDEN; of OBSERVED a less `given`
        double* direction               # (n_nodes, BLOCK)
        double* given                   # (n_nodes, BLOCK): bias and the parents that are not HIDDEN
        double* a                       # (n_nodes, BLOCK) of the proposal
        double* u

    cdef int reserve(self, Py_ssize_t n_nodes, Py_ssize_t n_edges) except -1 nogil
    cdef int _grow(self, Py_ssize_t n_nodes, Py_ssize_t n_edges) except -1
    cdef void forward(self, Py_ssize_t n_rows, double** a, double** u) noexcept nogil
    cdef void log_likelihood(
        self, Py_ssize_t n_rows, double** a, double** u, double* out
    ) noexcept nogil
    cdef void slice_noises(
        self, bitgen_t** rng, Py_ssize_t n_rows, double** a, double** u, double temperature
    ) noexcept nogil
    cdef void _means(
        self, Py_ssize_t p, Py_ssize_t n_rows, double** u, double* out
    ) noexcept nogil
    cdef void _read_noises(self, Py_ssize_t n, double** a, double** u) noexcept nogil
    cdef void _open_brackets(self, Brackets* rows, bitgen_t** rng) noexcept nogil
    cdef void _propose(self, Brackets* rows) noexcept nogil
    cdef void _take_or_shrink(
        self, Brackets* rows, bitgen_t** rng, double** a, double** u
    ) noexcept nogil
    cdef void _move_row(self, Brackets* rows, Py_ssize_t i, Py_ssize_t to) noexcept nogil
    cdef bint _has_hidden_parent(self, Py_ssize_t p) noexcept nogil
    cdef void _misfit(self, Py_ssize_t n_rows, double* out) noexcept nogil
