from skbnp.mcmc.chain cimport Move
from skbnp.tree_factor_model._hyperparameters cimport Hyperparameters
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._threads cimport Pool, Scratch, Work


cdef class Squares(Work):
    cdef:
        State state
        double[:, ::1] piece                    # (n_pieces, n_features)

    cdef int reserve(self) except -1
    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil


cdef class Precisions(Move):
    cdef:
        State state
        Hyperparameters hyper
        Pool pool
        Squares squares
        double[:, ::1] rss                      # (n_leaves, n_features)
        double[::1] weighted_square             # (n_nodes,)
        double[::1] of_nodes                    # scratch, (3 n_nodes,)

    cdef void _add_squares(self) noexcept nogil
    cdef void _draw_noise_scales(self) noexcept nogil
    cdef void _draw_noise(self) noexcept nogil
    cdef void _draw_mean_precisions(self) noexcept nogil
    cdef void _draw_shrinkage(self) noexcept nogil
    cdef void draw_multipliers(self) noexcept nogil
