from numpy.random cimport bitgen_t


cdef double dishes_per_mass(Py_ssize_t n, double concentration) noexcept nogil
cdef double log_dish(
    Py_ssize_t n_takers, Py_ssize_t n_offered, double concentration
) noexcept nogil
cdef double draw_mass(
    bitgen_t* rng, double current, Py_ssize_t n_dishes, Py_ssize_t n_customers,
    double concentration, double low, double high,
) noexcept nogil
cdef double draw_concentration(
    bitgen_t* rng, double current, double mass, const Py_ssize_t* n_takers,
    Py_ssize_t n_dishes, Py_ssize_t n_customers, Py_ssize_t n_offered, double low, double high,
) noexcept nogil
