from numpy.random cimport bitgen_t

from skbnp.mcmc.chain cimport Move
from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State


cdef class Birth:
    cdef:
        State state
        LeafLaws laws
        Law law
        double[:, ::1] score                    # (n_leaf_slots, max_depth)
        double[::1] row_precision               # (n_leaf_slots,) u
        double[::1] precision                   # (n_features,) of y under a tail
        double[::1] no_mean                     # (n_features,)
        double[::1] shared_precision            # (max_depth,) psi u of the shared levels

    cdef Py_ssize_t _first_level(self, Py_ssize_t departs) noexcept nogil
    cdef void draw_scores(self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t level) noexcept nogil
    cdef void sum_variances(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil
    cdef int prepare(
        self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t g, Py_ssize_t n_rows
    ) noexcept nogil
    cdef double log_density_alone(
        self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i
    ) noexcept nogil
    cdef int draw(
        self, bitgen_t* rng, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i
    ) noexcept nogil
    cdef bint sees(self, Py_ssize_t g, Py_ssize_t p) noexcept nogil


cdef class CollapsedPaths(Move):
    cdef:
        State state
        LeafLaws laws
        Law law
        Birth birth
        bint _integrated
        Py_ssize_t[::1] order                   # (n_samples,)
        double[:, ::1] log_density              # (n_leaf_slots, n_samples)
        double[::1] log_weight                  # (n_leaf_slots,)
        Py_ssize_t[::1] owner                   # (n_leaf_slots,)
        Py_ssize_t[::1] auxiliary               # (n_node_slots + 1,) leaves, -1: none; n + 1

    cdef int _all_rows(self) except -1 nogil
    cdef int _redraw_path(self, Py_ssize_t i) except -1 nogil
    cdef double log_weight_in_use(self, Py_ssize_t b, Py_ssize_t own) noexcept nogil
    cdef bint _is_hidden(self, Py_ssize_t node, Py_ssize_t departs) noexcept nogil
    cdef double _log_path_weight(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil
    cdef void _make_auxiliary(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil
    cdef int _replace_auxiliary(self, Py_ssize_t b) except -1 nogil
    cdef int _new_auxiliary(self, Py_ssize_t node) except -1 nogil
    cdef int _fill_column(self, Py_ssize_t b) noexcept nogil
    cdef int _reserve(self) except -1 nogil
