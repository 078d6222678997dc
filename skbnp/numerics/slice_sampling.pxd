from numpy.random cimport bitgen_t


cdef struct Slice:
    double at               # where the density is asked for; in the end, the draw
    double current
    double level            # log height of the slice
    double left, right      # the bracket
    double low, high        # of all that may be
    double width
    Py_ssize_t n_left, n_right, n_shrinks   # steps that are left
    int stage


cdef void begin(
    Slice* self, bitgen_t* rng, double x, double log_density, double low, double high,
    double width, Py_ssize_t n_steps,
) noexcept nogil
cdef bint asks(Slice* self, bitgen_t* rng) noexcept nogil
cdef void tell(Slice* self, double log_density) noexcept nogil
