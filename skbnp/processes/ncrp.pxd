from numpy.random cimport bitgen_t


cdef enum NestedFault:
    # Wrong formulas that the tests inject to see that they would be noticed.
    NO_NESTED_FAULT = 0
    ONE_RESTAURANT = 1


cdef double log_prob_nodes(
    Py_ssize_t n_nodes, const Py_ssize_t* parent, const Py_ssize_t* level,
    const Py_ssize_t* count, const double* concentration, double discount,
    Py_ssize_t* n_children,
) noexcept nogil
cdef double draw_concentration(
    bitgen_t* rng, double current, const Py_ssize_t* count, const Py_ssize_t* n_children,
    Py_ssize_t n_nodes, double shape, double rate, int fault,
) noexcept nogil
