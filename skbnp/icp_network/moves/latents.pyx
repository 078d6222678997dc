"""Latents given their means and the labels: mathematics/icp_network, section 7."""

from libc.math cimport INFINITY

import numpy as np

from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport DONE, Move
from skbnp.numerics.truncated cimport normal_above


cdef class Latents(Move):
    """Normals that keep the label's the largest; one alone above 0 for label 1, below for 0.

    Albert & Chib (1993). O(N E + N C). Trajectories draw some of them anew too.
    """

    NAME = "latents"

    def __init__(self, Network net, bit_generator):
        super().__init__(bit_generator)
        self.net = net
        self.residual = np.zeros((net.n_latents, net.stride))

    cpdef int run(self) except -1:
        """In every row the label's own first, given all others, then each of those given it."""
        cdef Py_ssize_t i
        with nogil:
            self.measure()
            for i in range(self.net.n_samples):
                if self.net.n_latents > 1:
                    self._draw_own(i)
                self.draw_others(i)
            self.squash()
        return DONE

    cdef void measure(self) noexcept nogil:
        """Residuals by the present parents; until they are made anew, means are those."""
        cdef Py_ssize_t c
        for c in range(self.net.n_latents):
            self.net.fill_residual(self.net.first_latent + c, &self.residual[c, 0])

    cdef void squash(self) noexcept nogil:
        """What children would see of the present values."""
        cdef Py_ssize_t c
        for c in range(self.net.n_latents):
            self.net.squash(self.net.first_latent + c)

    cdef double* value(self, Py_ssize_t c, Py_ssize_t i) noexcept nogil:
        """A row's latent."""
        return &self.net.pre[self.net.first_latent + c, i]

    cdef double mean_of(self, Py_ssize_t c, Py_ssize_t i) noexcept nogil:
        """Its mean, as what it exceeds its residual by: right until it changes."""
        return self.value(c, i)[0] - self.residual[c, i]

    cdef void set_lead(self, Py_ssize_t i, double lead) noexcept nogil:
        """Let the latent of a row's own class exceed its mean by so much."""
        cdef Py_ssize_t c = self.net.label[i]
        self.value(c, i)[0] += lead - self.residual[c, i]
        self.residual[c, i] = lead

    cdef void draw_others(self, Py_ssize_t i) noexcept nogil:
        """A row's latents of other classes given that of its own; one alone given the label."""
        cdef Py_ssize_t c, label = self.net.label[i]
        cdef double bound, mean
        if self.net.n_latents == 1:
            self._draw_single(i)
            return
        bound = self.value(label, i)[0]
        for c in range(self.net.n_latents):
            if c != label:
                mean = self.mean_of(c, i)
                self.value(c, i)[0] = mean - normal_above(self.rng, mean - bound)

    cdef void _draw_own(self, Py_ssize_t i) noexcept nogil:
        """The latent of a row's own class given the others."""
        cdef Py_ssize_t c, label = self.net.label[i]
        cdef double bound = -INFINITY, mean = self.mean_of(label, i)
        for c in range(self.net.n_latents):
            if c != label:
                bound = max(bound, self.value(c, i)[0])
        self.value(label, i)[0] = mean + normal_above(self.rng, bound - mean)

    cdef void _draw_single(self, Py_ssize_t i) noexcept nogil:
        """The only latent given the label."""
        cdef double mean = self.mean_of(0, i)
        if self.net.label[i] == 1:
            self.value(0, i)[0] = mean + normal_above(self.rng, -mean)
        else:
            self.value(0, i)[0] = mean - normal_above(self.rng, mean)
