"""Concentration of the clusters and mass of the factors."""

from libc.math cimport isfinite, isnan

import numpy as np

from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move
from skbnp.processes cimport crp_law
from skbnp.processes.ibp cimport dishes_per_mass


cdef class Hyper(Move):
    """concentration | sizes of clusters; mass | number of factors."""

    NAME = "hyper"

    def __init__(self, State state, bit_generator):
        super().__init__(bit_generator)
        self.state = state
        self.size = np.zeros(0, dtype=np.intp)

    cpdef int run(self) except -1:
        with nogil:
            self.update()
        return self.state.outcome()

    cdef int update(self) except -1 nogil:
        """Concentration by Escobar & West (1995); mass | K."""
        cdef Py_ssize_t g
        if isnan(self.state.law.given_concentration):
            if self.size.shape[0] < self.state.n_clusters:
                with gil:
                    self.size = np.zeros(self.state.cluster_room, dtype=np.intp)
            for g in range(self.state.n_clusters):
                self.size[g] = self.state.n_members(g)
            self.state.concentration = max(1e-300, crp_law.draw_concentration(
                self.rng, self.state.concentration, &self.size[0], self.state.n_clusters, 0.0, 0,
                self.state.law.concentration_law[0], self.state.law.concentration_law[1],
            ))
        if isnan(self.state.law.given_mass):
            self.state.mass = max(1e-300, self.state.law.draw_mass(
                self.rng, self.state.n_factors, dishes_per_mass(self.state.n_features, 1.0)
            ))
        if not (isfinite(self.state.concentration) and isfinite(self.state.mass)):
            self.state.is_broken = True
        return 0
