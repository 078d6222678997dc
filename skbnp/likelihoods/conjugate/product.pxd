from skbnp.likelihoods.conjugate.family cimport ConjugateFamily


cdef class ProductFamily(ConjugateFamily):
    cdef:
        readonly list parts                 # the families, ConjugateFamily each
        list columns                        # features of each part in the table, arrays of intp
        Py_ssize_t n_parts
        # (n_parts,) where the parts are: what the GIL guards in a list can be called from here
        size_t[::1] address
        double[::1] part_density            # scratch, (n_slots,)

    cdef void _sum_densities(
        self, Py_ssize_t n, Py_ssize_t i, bint observed, double* out
    ) noexcept nogil
