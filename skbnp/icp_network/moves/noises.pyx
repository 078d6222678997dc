"""All hidden noises of a row at once, descendants follow: mathematics/icp_network, section 6."""

from numpy.random cimport bitgen_t

import numpy as np

from skbnp.icp_network._network cimport Network
from skbnp.likelihoods.nonlinear_gaussian._feedforward cimport BLOCK, Feedforward
from skbnp.mcmc.chain cimport DONE, Move


cdef class Noises(Move):
    """Elliptical slices of e in a = mean + e / sqrt(rho), row by row (Murray, Adams & MacKay 2010).

    O(N (E + K)) for each point that they try.
    """

    NAME = "noises"

    def __init__(self, Network net, Py_ssize_t n_slices, bit_generator):
        super().__init__(bit_generator)
        self.net, self.graph, self.n_slices = net, net.graph, n_slices
        self.forward = Feedforward()
        self.pointer = np.zeros((2, 0), dtype=np.intp)

    cdef int _reserve(self) except -1 nogil:
        if self.pointer.shape[1] < self.graph.n_slots:
            with gil:
                self.pointer = np.zeros((2, self.graph.n_slots), dtype=np.intp)
        return 0

    cpdef int run(self) except -1:
        cdef Py_ssize_t _
        if self.graph.n_hidden == 0 or self.net.n_samples == 0:
            return DONE
        with nogil:
            self._reserve()
            self.net.write_into(self.forward)
            for _ in range(self.n_slices):
                self._slice_all_rows()
        return DONE

    cdef int _slice_all_rows(self) except -1 nogil:
        """One slice of every row."""
        cdef bitgen_t* rngs[BLOCK]
        cdef double** pre = <double**> &self.pointer[0, 0]
        cdef double** post = <double**> &self.pointer[1, 0]
        cdef Py_ssize_t i, p, slot, n
        for i in range(BLOCK):
            rngs[i] = self.rng
        i = 0
        while i < self.net.n_samples:
            n = min(<Py_ssize_t> BLOCK, self.net.n_samples - i)
            for p in range(self.graph.n_nodes):
                slot = self.graph.ascending[self.graph.n_nodes - 1 - p]
                pre[p], post[p] = &self.net.pre[slot, i], &self.net.post[slot, i]
            self.forward.slice_noises(rngs, n, pre, post, 1.0)
            i += n
        return 0
