"""The layers above the first."""

from libc.math cimport sqrt

from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.likelihoods.sparse_loadings.layer_schedule cimport LayerSchedule
from skbnp.mcmc.chain cimport Move


cdef class Upper(Move):
    """All that is above | the standardised scores of the first layer."""

    NAME = "upper"

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state, self.layers = state, LayerSchedule(state.upper)

    cpdef int run(self) except -1:
        with nogil:
            self.update()
        return self.state.outcome()

    cdef int update(self) except -1 nogil:
        """All moves of the layers above, given the standardised scores of this one (F1.7).

        sqrt(lambda / v) (y - m) ~ N(0, 1 + A_2^2): they see no more of what is below.
        """
        cdef Py_ssize_t g, k, t
        for t in range(self.state.n_samples):
            g = self.state.label[t]
            for k in range(self.state.n_factors):
                self.state.upper.below[k, t] = (
                    (self.state.Y[t, k] - self.state.M[g, k])
                    * sqrt(self.state.row_precision[t] / self.state.V[g, k])
                )
        self.layers.update(self.rng)
        self.state.refresh_inflation()
        return 0
