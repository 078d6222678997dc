from skbnp.infinite_factor_clusterer._sides cimport Sides
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.mcmc.chain cimport Move


cdef class Energies(Move):
    cdef:
        State state
        Sides sides
        double[::1] half_width              # (cluster_room,) of offsets, in units of the noise's sd

    cdef int make_room(self) except -1 with gil
    cdef int update(self) except -1 nogil
    cdef void draw_cluster(self, Py_ssize_t g, int side) noexcept nogil
    cdef void draw_noises(self) noexcept nogil
