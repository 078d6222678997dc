from numpy.random cimport bitgen_t


cdef class RowRegression:
    cdef:
        readonly Py_ssize_t size            # candidates in use, the bias among them
        Py_ssize_t n_rows                   # of the response
        double noise_precision, square      # nu, a'a
        unsigned char[::1] active           # (capacity,)
        double[::1] prior_mean, prior_precision, side   # (capacity,) the last is Phi'a
        double[::1] swept                   # (size + 1)^2 row-major, upper triangle, swept on S
        double[::1] column                  # (capacity + 1,) scratch
        double[::1] block                   # scratch of ``_sweep_block``
        double[::1] factor, normals         # scratch of ``draw``
        Py_ssize_t[::1] chosen              # (capacity,) scratch: the active candidates
        const double* gram                  # (size, size) of leading dimension gram_stride
        Py_ssize_t gram_stride

    cdef int reserve(self, Py_ssize_t size) except -1
    cdef int start(
        self, Py_ssize_t size, const double* gram, Py_ssize_t gram_stride, Py_ssize_t n_rows,
        double square, double noise_precision,
    ) noexcept nogil
    cdef double gain(self, Py_ssize_t j) noexcept nogil
    cdef double gain_of_new(
        self, const double* products, double own, double side, double mean, double precision
    ) noexcept nogil
    cdef int flip(self, Py_ssize_t j) noexcept nogil
    cdef double log_evidence(self) noexcept nogil
    cdef int draw(self, bitgen_t* rng, double* weight) noexcept nogil
    cdef double squared_residual(self, const double* weight) noexcept nogil
    cdef int _sweep(self, Py_ssize_t k, bint back) noexcept nogil
    cdef Py_ssize_t _factor_precision(self) noexcept nogil
    cdef int _sweep_block(self, Py_ssize_t m) noexcept nogil
