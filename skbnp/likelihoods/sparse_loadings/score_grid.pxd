from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer


cdef class ScoreGrid:
    cdef:
        ScaleLayer layer
        readonly Py_ssize_t n_nodes
        double[:, ::1] base                 # (room_below, n_samples) A without some columns
        double[::1] row_weight              # (room_below,) loadings of gathered rows
        Py_ssize_t[::1] row, part           # (room_below,)
        double[::1] node, height, quadratic, product    # (n_nodes,)

    cdef int make_room(self) except -1 nogil
    cdef Py_ssize_t gather_rows(self, Py_ssize_t k, Py_ssize_t start, int part) noexcept nogil
    cdef double evidence(
        self, bitgen_t* rng, Py_ssize_t start, Py_ssize_t end, Py_ssize_t k, double* y, bint draw
    ) noexcept nogil
    cdef double log_proposal(self, double z, double density) noexcept nogil
