from numpy.random cimport bitgen_t

from skbnp.numerics.rng cimport RowStream


cdef double squash(double a) noexcept nogil
cdef double unsquash(double u) noexcept nogil
cdef void squash_all(Py_ssize_t n, const double* a, double* u) noexcept nogil


cdef class Activations:
    cdef:
        readonly str method
        readonly Py_ssize_t n_passes, n_tries
        public double step              # of "hmc", in units of the masses' scale
        readonly long long n_accepted, n_proposed    # rows of "hmc", single units of "mtm"
        double total_acceptance         # sum of the probabilities of "hmc" since the last adapt
        long long n_adapting
        int kind
        double[::1] scratch             # (5 * BLOCK + N_VECTORS, width)
        double[::1] candidate           # (2, n_tries)
        Py_ssize_t[::1] order           # (width,)
        double* u                       # (BLOCK, width) and so on, inside scratch
        double* field                   # linear - quadratic u
        double* velocity
        double* start
        double* scale
        double* proposal                # (width,)
        double* direction

    cdef int reserve(self, Py_ssize_t width) except -1
    cdef void update(
        self, bitgen_t* rng, Py_ssize_t n_rows, Py_ssize_t width, double* a, const double* mean,
        const double* precision, Py_ssize_t precision_stride, const double* linear,
        const double* quadratic,
    ) noexcept nogil
    cdef void update_rows(
        self, RowStream* stream, Py_ssize_t n_rows, Py_ssize_t width, double* a,
        const double* mean, const double* precision, Py_ssize_t precision_stride,
        const double* linear, const double* quadratic,
    ) noexcept nogil
    cdef void _passes(
        self, bitgen_t** rng, Py_ssize_t n, Py_ssize_t width, double* a, const double* mean,
        const double* nu, Py_ssize_t stride, const double* linear, const double* S,
    ) noexcept nogil
    cdef void _slice_pass(
        self, bitgen_t** rng, Py_ssize_t n, Py_ssize_t width, double* a, const double* mean,
        const double* nu, Py_ssize_t stride, const double* linear, const double* S, bint tries,
    ) noexcept nogil
    cdef void _hmc_pass(
        self, bitgen_t** rng, Py_ssize_t n, Py_ssize_t width, double* a, const double* mean,
        const double* nu, Py_ssize_t stride, const double* linear, const double* S,
    ) noexcept nogil
    cdef void _elliptical_pass(
        self, bitgen_t** rng, Py_ssize_t n, Py_ssize_t width, double* a, const double* mean,
        const double* nu, Py_ssize_t stride, const double* linear, const double* S,
    ) noexcept nogil
    cdef void _try_several(
        self, bitgen_t* rng, double* a, double* u, double mean, double nu, double t, double s
    ) noexcept nogil
    cdef void _field(
        self, Py_ssize_t n, Py_ssize_t width, const double* a, const double* linear,
        const double* S,
    ) noexcept nogil
