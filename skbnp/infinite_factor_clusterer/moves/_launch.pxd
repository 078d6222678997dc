from numpy.random cimport bitgen_t

from skbnp.infinite_factor_clusterer._row_law cimport RowLaw
from skbnp.infinite_factor_clusterer._sides cimport Sides
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.infinite_factor_clusterer.moves.energies cimport Energies


cdef class Launch:
    cdef:
        object _bit_generator               # owner of *rng, must outlive it
        bitgen_t* rng
        State state
        RowLaw row_law
        Sides sides
        Energies energies
        double[:, ::1] launched             # (n_samples, K) scores of a launch
        double[:, ::1] draft                # (n_samples, K) scores that are proposed
        double[:, ::1] log_density_of       # (2, n_samples) of a row on either side
        double log_share[2]                 # of the sides

    cdef int make_room(self) except -1 with gil
    cdef bint divide_or_unite(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil
    cdef void accept(self, Py_ssize_t n, bint is_split, Py_ssize_t second) noexcept nogil
    cdef void launch(self, Py_ssize_t n, bint divided) noexcept nogil
    cdef void start_energies(self, Py_ssize_t slot) noexcept nogil
    cdef void draw_slots(self, Py_ssize_t n, bint divided) noexcept nogil
    cdef double place(self, Py_ssize_t n, bint forced, Py_ssize_t first) noexcept nogil
    cdef double score(self, Py_ssize_t n, bint divided, int which) noexcept nogil
    cdef double score_row(self, Py_ssize_t slot, Py_ssize_t t, int which) noexcept nogil
    cdef void sum_sides(self, Py_ssize_t n, bint divided, int which) noexcept nogil
    cdef double* scores_of(self, Py_ssize_t t, int which) noexcept nogil
