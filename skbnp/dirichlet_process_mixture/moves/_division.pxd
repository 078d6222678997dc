from numpy.random cimport bitgen_t

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily


cdef class Division:
    cdef:
        readonly ConjugateFamily family
        Py_ssize_t[::1] _label              # (n_samples,) the state's
        Py_ssize_t[::1] member              # (n_samples,) rows to divide, the first n in use
        unsigned char[::1] second           # (n_samples,) whether member[t] goes with row j
        bint restricted                     # restricted Gibbs scans, else sequential allocation
        double discount                     # of the partition
        Py_ssize_t _i, _j, _n, _a, _b

    cdef double draw(
        self, bitgen_t* rng, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n, Py_ssize_t a, Py_ssize_t b,
        bint forced, double enough,
    ) noexcept nogil
    cdef double _allocate(self, bitgen_t* rng, bint forced, double enough) noexcept nogil
    cdef void _launch(self, bitgen_t* rng) noexcept nogil
    cdef double _scan(self, bitgen_t* rng, bint forced, double enough) noexcept nogil
    cdef double _choose(self, bitgen_t* rng, Py_ssize_t t, bint forced) noexcept nogil
    cdef void _take_out(self, Py_ssize_t t) noexcept nogil
