from numpy.random cimport bitgen_t


cdef double log_prob_nodes(
    Py_ssize_t n_nodes, const Py_ssize_t* parent, const Py_ssize_t* level,
    const Py_ssize_t* count, const double* concentration, double discount,
    Py_ssize_t* n_children,
) noexcept nogil
cdef double draw_concentration(
    bitgen_t* rng, double current, const Py_ssize_t* count, const Py_ssize_t* n_children,
    Py_ssize_t n_nodes, double shape, double rate,
) noexcept nogil
