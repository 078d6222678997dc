from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport Feedforward
from skbnp.mcmc.chain cimport Move


cdef class Noises(Move):
    cdef:
        Network net
        Graph graph
        Feedforward forward                 # the network as it is, nodes from the highest down
        Py_ssize_t n_slices                 # in a sweep
        Py_ssize_t[:, ::1] pointer          # (2, n_slots): rows of a block, by position

    cdef int _reserve(self) except -1 nogil
    cdef int _slice_all_rows(self) except -1 nogil
