"""How likely rows are given all other rows of their table, under a draw whose blocks hold them all.

Most rows of the table are not at hand, so that a block without one of its rows follows from its
statistics alone.
"""

from libc.math cimport INFINITY, NAN, log

import numpy as np

from skbnp.dirichlet_process_mixture.records._slice cimport RowSlice
from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.numerics.special cimport log_sum_exp
from skbnp.processes.crp_law cimport PartitionLaw

from skbnp.dirichlet_process_mixture.records._blocks import put_blocks


cdef class GivenOthers:
    """log p(x_i | z_-i, X_-i) of rows of a slice, as ``RowScores.leave_one_out`` has it.

    Parameters
    ----------
    rows : RowSlice
        It has seen the record of the draw: labels and completed cells are those of it.
    blocks : dict
        Those of the draw, the empty one last, as ``put_blocks`` takes them.
    law : PartitionLaw
        With the parameters of the draw.
    n_table : int
        Rows of the table.
    """

    cdef:
        ConjugateFamily family
        PartitionLaw law
        Py_ssize_t n_table, n_blocks
        const Py_ssize_t[::1] label
        double[::1] log_weight, value

    def __init__(self, RowSlice rows, blocks, PartitionLaw law, Py_ssize_t n_table):
        sizes = blocks["n_members"][:-1]
        self.family, self.law, self.n_table = rows.family, law, n_table
        self.label = rows.label
        self.n_blocks = len(sizes)
        self.log_weight = np.log(sizes - law.discount)
        self.value = np.zeros(self.n_blocks + 1)
        put_blocks(self.family, blocks)
        self.family.reserve(self.n_blocks + 2)
        law.reserve(self.n_blocks)
        rows.forget()  # its blocks are no longer those of the record

    def log_densities(self, Py_ssize_t first, Py_ssize_t stop):
        """Of the observed cells of rows first..stop-1, in the units of the slice.

        NaN where the block of a row loses its digits without it: the row is then a thousand
        standard deviations and more from all others of its block.
        """
        cdef double[::1] out = np.empty(stop - first)
        cdef Py_ssize_t i
        with nogil:
            for i in range(first, stop):
                out[i - first] = self.log_density(i)
        return np.asarray(out)

    cdef double log_density(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t own = self.label[i], n = self.n_blocks, k
        cdef bint alone = self.family.n_members[own] == 1
        if self.score(i, own, alone) != 0:
            return NAN
        for k in range(n):
            if k != own:
                self.value[k] += self.log_weight[k]
        if alone:
            self.value[own] = -INFINITY  # its block is the new one
        else:
            self.value[own] += log(self.family.n_members[own] - 1 - self.law.discount)
        self.value[n] += self.law.log_new_weight(n - alone)
        return (
            log_sum_exp(&self.value[0], n + 1)
            - self.law.log_total_weight(self.n_table - 1, n - alone)
        )

    cdef int score(self, Py_ssize_t i, Py_ssize_t own, bint alone) noexcept nogil:
        """Let ``value`` be the densities of row i in all blocks without it; non-zero: failed."""
        cdef Py_ssize_t n = self.n_blocks + 1
        cdef int lost
        if not self.family.augmented(i):
            self.family.log_predictive_all(n, i, &self.value[0])
            if alone:
                return 0
            self.value[own] = self.family.log_predictive_own(own, i)
            if self.value[own] == self.value[own]:
                return 0
        # Behind the blocks a copy of its own waits, so that nothing is rounded when it comes back.
        self.family.copy(own, n)
        lost = 0 if alone else self.family.remove(own, i)
        if lost == 0 and self.family.augmented(i):
            self.family.log_predictive_observed(n, i, &self.value[0])
        elif lost == 0:
            self.family.log_predictive_all(n, i, &self.value[0])
        self.family.copy(n, own)
        return lost
