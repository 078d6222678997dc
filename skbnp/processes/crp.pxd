from numpy.random cimport bitgen_t


cdef enum ConcentrationFault:
    # Wrong formulas that the tests inject to see that they would be noticed.
    NO_FAULT = 0
    SWAPPED_BETA_SHAPES = 1
    DIRICHLET_PROCESS_FOR_FINITE = 2


cdef double log_new_weight(
    Py_ssize_t n_blocks, double concentration, double discount
) noexcept nogil
cdef double log_eppf(
    const Py_ssize_t* size, Py_ssize_t n_blocks, double concentration, double discount
) noexcept nogil
cdef Py_ssize_t seat(
    bitgen_t* rng, Py_ssize_t n, double concentration, double discount,
    Py_ssize_t* label, Py_ssize_t* size,
) noexcept nogil
cdef double draw_concentration(
    bitgen_t* rng, double current, const Py_ssize_t* size, Py_ssize_t n_blocks,
    double discount, Py_ssize_t n_components, double shape, double rate, int fault,
) noexcept nogil
cdef double draw_discount(
    bitgen_t* rng, double current, const Py_ssize_t* size, Py_ssize_t n_blocks,
    double concentration, double a, double b,
) noexcept nogil
