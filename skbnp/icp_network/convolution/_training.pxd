from numpy.random cimport bitgen_t

from skbnp.icp_network.convolution._network cimport Network


cdef class Training:
    cdef:
        object _bit_generator               # owner of *rng, must outlive it
        bitgen_t* rng
        readonly Network net
        const float[:, ::1] images          # (n, n_pixels)
        const Py_ssize_t[::1] label         # (n,)
        Py_ssize_t[::1] rows                # (n_rows,) to learn from, shuffled as we go
        Py_ssize_t at                       # how many of them had their turn
        readonly float[::1] deviation       # (n_weights,) of the prior
        readonly float[::1] z               # (n_weights,) weights over their deviations
        readonly float[::1] momentum        # (n_weights,)
        float[::1] weight, gradient, first, second      # (n_weights,) scratch

    cdef double _slope(self, Py_ssize_t n) noexcept nogil
    cdef void _next_batch(self, Py_ssize_t n) noexcept nogil
    cdef void _fill_weight(self) noexcept nogil
