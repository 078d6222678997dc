"""Ways to divide rows among two blocks: what a split proposes and a merge would have to undo.

Rows i and j found the blocks; every other row joins one of them. The law of all that is drawn on
the way depends on i, j and the rows alone and not on how they are divided at present, so that the
probability of the last choices is all that the acceptance of a move needs to know.
"""

from libc.math cimport exp, log
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log1p_exp


cdef enum:
    N_SCANS = 5             # restricted Gibbs scans before the one that counts


cdef class Division:
    """Divides ``member[:n]``; ``second[t]`` tells where row ``member[t]`` went.

    Sequential allocation (Dahl 2003; Dahl & Newcomb 2022): in random order each row joins a block
    with probability proportional to (size - discount) times its predictive density. Restricted
    Gibbs (Jain & Neal 2004): the rows are divided by coin flips, then redrawn one by one, given
    all others, some times over; only the last scan counts. Slots a and b hold the blocks.
    """

    def __init__(self, ConjugateFamily family, label, bint restricted):
        self.family = family
        self._label = label
        self.member = np.zeros(family.n_samples, dtype=np.intp)
        self.second = np.zeros(family.n_samples, dtype=np.uint8)
        self.restricted = restricted

    cdef double draw(
        self, bitgen_t* rng, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n, Py_ssize_t a, Py_ssize_t b,
        bint forced, double enough,
    ) noexcept nogil:
        """Divide the rows anew; returns the log probability of the division.

        Forced: as the labels of the rows divide them, by the same law. That may be given up, with
        slots half filled, once the log probability is not above ``enough``.
        """
        cdef Py_ssize_t _
        self._i, self._j, self._n, self._a, self._b = i, j, n, a, b
        self.family.clear(a)
        self.family.clear(b)
        self.family.add(a, i)
        self.family.add(b, j)
        if not self.restricted:
            return self._allocate(rng, forced, enough)
        self._launch(rng)
        for _ in range(N_SCANS):
            self._scan(rng, False, enough)
        return self._scan(rng, forced, enough)

    cdef double _allocate(self, bitgen_t* rng, bint forced, double enough) noexcept nogil:
        """Each row given those before it."""
        cdef Py_ssize_t t
        cdef double log_q = 0.0
        draws.shuffle(rng, &self.member[0], self._n)
        for t in range(self._n):
            log_q += self._choose(rng, t, forced)
            if forced and log_q <= enough:
                break
        return log_q

    cdef void _launch(self, bitgen_t* rng) noexcept nogil:
        """Divide the rows by coin flips."""
        cdef Py_ssize_t t
        for t in range(self._n):
            self.second[t] = draws.uniform(rng) < 0.5
            self.family.add(self._b if self.second[t] else self._a, self.member[t])

    cdef double _scan(self, bitgen_t* rng, bint forced, double enough) noexcept nogil:
        """Each row given all others."""
        cdef Py_ssize_t t
        cdef double log_q = 0.0
        for t in range(self._n):
            self._take_out(t)
            log_q += self._choose(rng, t, forced)
            if forced and log_q <= enough:
                break
        return log_q

    cdef double _choose(self, bitgen_t* rng, Py_ssize_t t, bint forced) noexcept nogil:
        """Add row ``member[t]`` to one of the slots; returns the log probability of this one."""
        cdef Py_ssize_t row = self.member[t], a = self._a, b = self._b
        cdef double log_odds = (
            self.family.log_predictive(b, row) - self.family.log_predictive(a, row)
            + log(self.family.n_members[b] - self.discount)
            - log(self.family.n_members[a] - self.discount)
        )
        if forced:
            self.second[t] = self._label[row] == self._label[self._j]
        else:
            self.second[t] = draws.uniform(rng) * (1.0 + exp(-log_odds)) < 1.0
        self.family.add(b if self.second[t] else a, row)
        return -log1p_exp(-log_odds if self.second[t] else log_odds)

    cdef void _take_out(self, Py_ssize_t t) noexcept nogil:
        """Take row ``member[t]`` out of its slot, which is built anew if digits are lost."""
        cdef Py_ssize_t slot = self._b if self.second[t] else self._a, s
        if self.family.remove(slot, self.member[t]) == 0:
            return
        self.family.clear(slot)
        self.family.add(slot, self._j if self.second[t] else self._i)
        for s in range(self._n):
            if s != t and self.second[s] == self.second[t]:
                self.family.add(slot, self.member[s])
