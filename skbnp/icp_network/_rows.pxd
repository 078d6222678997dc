from numpy.random cimport bitgen_t

from skbnp.icp_network._births cimport Births
from skbnp.icp_network._feedforward cimport Feedforward
from skbnp.likelihoods.nonlinear_gaussian._activations cimport Activations


cdef class Rows(Births):
    cdef:
        bint _on_grid                       # activations by grid proposals, else ``activations``
        Activations activations
        Feedforward forward                 # the graph as it is, nodes from the highest down
        public Py_ssize_t[::1] position     # (n_slots,) of a slot in ``forward``
        # Values of a node in the rows at work.
        public double[::1] own, own_output  # (stride,)
        double[1] quadratic
        double** forward_pre                # (n_slots,) rows of a block, by position
        double** forward_post
        public long n_moved, n_tried

    cdef int _update_noises(self) except -1 nogil
    cdef int _compile(self) except -1 nogil
    cdef int _update_activations(self) except -1 nogil
    cdef void _update_node(self, Py_ssize_t slot) noexcept nogil
    cdef void _move(
        self, Py_ssize_t n, double* own, double* output, const double* mean,
        const double* linear, double rho, double quadratic,
    ) noexcept nogil
    cdef int _update_latents(self) except -1 nogil
    cdef void _fill_latent_residuals(self) noexcept nogil
    cdef void _squash_latents(self) noexcept nogil
    cdef void _draw_rivals(self, Py_ssize_t i) noexcept nogil
