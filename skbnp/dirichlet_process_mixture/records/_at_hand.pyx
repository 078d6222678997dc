"""The state of a whole table of which some rows are at hand: what a driver works on."""

import numpy as np

from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.likelihoods.conjugate.learned_covariance cimport LearnedCovariance

from skbnp.dirichlet_process_mixture.records._blocks import expect_counts, put_prior, put_slots
from skbnp.dirichlet_process_mixture.records._kernels import kernel_of
from skbnp.likelihoods.conjugate.learned_covariance import rounds_in_a_sweep
from skbnp.processes.mfm import FiniteMixtures


NOWHERE = 2.0   # behind the places of all rows, which are in (0, 1): of no row


cdef class Outside:
    """What is known of the rows of a block that are not at hand."""

    def __init__(self, origin=-1, parts=(), place=NOWHERE, row=-1):
        self.origin, self.parts, self.place, self.row = origin, list(parts), place, row

    def united(self, Outside other):
        """That of two blocks together."""
        first = self if (self.place, self.row) < (other.place, other.row) else other
        return Outside(-1, self.parts + other.parts, first.place, first.row)


cdef class RowsAtHand(State):
    """A ``State`` whose slots count rows that are not at hand beside those that are.

    Rows at hand move as in any state. Of all others ``outside[k]`` has the sums of block k about
    the mean of a given slot, from which statistics are built anew. A block opens at the end of the
    list and the last one takes the place of one that is gone, here as there.
    """

    def __init__(
        self, X, completed, number, label, outside, prior, start, blocks, *, n_table,
        log_jacobian=0.0,
    ):
        """Rows X, NaN where missing, and the same as completed; blocks 0..len(outside)-1.

        ``blocks`` have the numbers of the prior to the last bit.
        """
        self.n_table = n_table
        super().__init__(
            X, prior, np.zeros(len(X), dtype=np.intp), start, log_jacobian=log_jacobian
        )
        if self.family.imputed().size:
            columns = np.concatenate([part.columns for part in prior.parts if part.imputes])
            self.family.set_imputed(completed[:, columns][np.isnan(X[:, columns])])
        if self.covariance is not None:
            (<LearnedCovariance> self.covariance).n_rounds = rounds_in_a_sweep(
                n_table, len(prior.gaussian.columns), (<LearnedCovariance> self.covariance).width
            )
        put_prior(self.family, blocks)
        self.number = np.array(number, dtype=np.intp)
        self.label = np.array(label, dtype=np.intp)
        self.outside = list(outside)
        self.n_clusters = len(self.outside)
        self.reserve()
        self.rebuild()
        expect_counts(self.family, self.n_clusters)

    def law_of(self, prior, start):
        """As in the base, of all rows of the table."""
        if prior.components_law is None:
            return State.law_of(self, prior, start)
        concentration = start.get("concentration", prior.concentration)
        return FiniteMixtures(self.n_table, concentration, prior.components_law)

    def weight_of_rest(self):
        """Dirichlet parameter of all that is outside the blocks."""
        return self.law.weight_of_rest(self.n_clusters)

    def family_of(self, X, part, start):
        """One whose blocks have rows that are not at hand too."""
        return kernel_of(part, start)(X)

    cdef int attach(self, Py_ssize_t i, Py_ssize_t k) except -1 nogil:
        if k == self.n_clusters:
            with gil:
                self.outside.append(Outside())
        return State.attach(self, i, k)

    cdef Py_ssize_t drop_block(self, Py_ssize_t k, Py_ssize_t target) noexcept nogil:
        with gil:
            last = self.outside.pop()
            if k < len(self.outside):
                self.outside[k] = last
        return State.drop_block(self, k, target)

    cdef void rebuild(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.family.n_slots):
            self.family.clear(k)
        for k in range(self.n_clusters):
            self.rebuild_block(k)
        self.weigh_all()

    cdef void rebuild_block(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t i
        with gil:
            self.build(k, self.outside[k].parts, self.n_clusters + 1)
        for i in range(self.n_samples):
            if self.label[i] == k:
                self.family.add(k, i)

    cdef void build(self, Py_ssize_t k, list parts, Py_ssize_t spare) noexcept nogil:
        """Let slot k be the block of all rows in some sums; two slots from ``spare`` on are free.
        """
        cdef Py_ssize_t slot = k
        cdef const double[::1] sums
        self.family.clear(k)
        with gil:
            for center, n, sums in parts:
                put_slots(self.family, center, slot)
                if self.family.set_from_sums(slot, n, &sums[0]) != 0:
                    self.failed = True
                if slot != k:
                    self.family.merge(k, slot, slot + 1)
                    self.family.copy(slot + 1, k)
                    self.family.clear(slot)
                    self.family.clear(slot + 1)
                slot = spare
