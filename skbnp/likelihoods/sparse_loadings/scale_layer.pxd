from numpy.random cimport bitgen_t


cdef enum:
    # Laws of the links, as in ``deep_scale_model._model.BIRTH_MOVES``.
    SINGLETON = 0
    FINITE = 1
    PAN_HAN = 2


cdef class ScaleLayer:
    cdef:
        readonly Py_ssize_t n_samples, n_below, n_factors
        readonly ScaleLayer above           # None at the last layer there may be
        bint is_live                        # whether the layer above takes part
        Py_ssize_t room_below, room
        public double mass
        double slab_shape, slab_scale, drift
        int birth_move
        bint owns_below                     # not where it is the scores of the layer below
        double[:, ::1] below                # (room_below, n_samples), NaN where missing
        double[:, ::1] A                    # (room_below, n_samples) W Y
        double[::1] floor, location         # (room_below,)
        double[:, ::1] W                    # (room_below, room)
        double[:, ::1] Y                    # (room, n_samples)
        Py_ssize_t[::1] n_links             # (room,)
        double[::1] cell_x, cell_base, cell_y   # (n_samples,) observed cells of one row

    # Rows of ``below``.
    cdef int draw_row(self, bitgen_t* rng) except -1 nogil
    cdef double n_customers(self) noexcept nogil
    cdef void drop_last_row(self) noexcept nogil
    cdef void remove_row(self, Py_ssize_t n) noexcept nogil
    cdef void remove_factor(self, Py_ssize_t k) noexcept nogil
    # Densities.
    cdef double log_prior(self) noexcept nogil
    cdef double log_data(self) noexcept nogil
    cdef double row_log_data(self, Py_ssize_t n, double floor) noexcept nogil
    cdef double score_variance(self, Py_ssize_t k, Py_ssize_t t) noexcept nogil
    cdef double column_energy(self, Py_ssize_t k) noexcept nogil
    cdef double log_column(self, double n_links, double energy) noexcept nogil
    cdef double log_rate(self, double n_links) noexcept nogil
    cdef double log_finite_column(self, Py_ssize_t n_links, double a) noexcept nogil
    cdef Py_ssize_t gather(self, Py_ssize_t n, Py_ssize_t k) noexcept nogil
    cdef double log_cells(self, Py_ssize_t n_cells, Py_ssize_t n, double w) noexcept nogil
    cdef Py_ssize_t count_empty(self) noexcept nogil
    # Bookkeeping.
    cdef void refresh(self) noexcept nogil
    cdef void refresh_row(self, Py_ssize_t n) noexcept nogil
    cdef int reserve(self, Py_ssize_t n_below, Py_ssize_t n_factors) except -1 nogil
    cdef int reserve_with_gil(self, Py_ssize_t n_below, Py_ssize_t n_factors) except -1
