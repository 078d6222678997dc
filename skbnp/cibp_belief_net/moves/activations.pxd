from skbnp.cibp_belief_net._state cimport Network
from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations
from skbnp.mcmc.chain cimport Move


cdef class LayerActivations(Move):
    cdef:
        Network net
        Activations activations
        Py_ssize_t _reserved                # width that ``activations`` has room for
        Py_ssize_t width                    # of the layer at work
        # Its rows, (n_samples * width,), row by row.
        double[::1] pre, mean
        readonly double[::1] linear
        double[::1] precision               # (width,), with row clusters (n_samples * width,)
        readonly double[::1] quadratic      # (width * width,)
        double[::1] offset                  # (width,)
        # Of the layer above or of one below, unit by unit; and of other parents of the children.
        double[:, ::1] parents, children, others
        # Weights of a layer's children, (n_children * width,), and times their precisions.
        double[::1] block, scaled
        double[::1] weights, cross          # of other parents, with skip connections

    cdef int gather(self, Py_ssize_t layer) except -1 nogil
    cdef int _update_layer(self, Py_ssize_t layer) except -1 nogil
    cdef int _gather_prior(self, Py_ssize_t layer) except -1 nogil
    cdef int _gather_cluster_laws(self, Py_ssize_t layer) noexcept nogil
    cdef int _gather_likelihood(self, Py_ssize_t layer) except -1 nogil
    cdef int _add_children(self, Py_ssize_t layer, Py_ssize_t below) except -1 nogil
    cdef int _take_other_parents(self, Py_ssize_t layer, Py_ssize_t below) except -1 nogil
    cdef int _reserve(self, bint by_row) except -1 nogil
