"""Labels of some rows as a function of a record, and what the rest of a sweep asks of them.

A record is what a pass over all rows is given by: its key, the statistics of the blocks that
weights and parameters were drawn from, the anchors and a subset R of the rows. The label of row i
depends on the record and on the row alone: equation (M4.8). So labels are stored nowhere, and a
slice of rows may be dropped and made again, here or on another machine.

The order of a pass: the rows outside R by their places first, the rows of R by theirs last. R was
drawn without a look at the state, so that this is an order as equation (M4.4) asks for.
"""

from libc.math cimport INFINITY, exp
from libc.string cimport memcpy

import numpy as np

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.likelihoods.conjugate.product cimport ProductFamily
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport log1p_exp

from skbnp.dirichlet_process_mixture.records._blocks import put_blocks


cdef enum:
    CHUNK = 1024            # rows whose densities are worked out together, at most
    TOGETHER = 65536        # densities that one call of the family computes at most


# Behind the places of all rows: of no row.
cdef double NOWHERE = 2.0


cdef double place_of(uint64_t key, Py_ssize_t number) noexcept nogil:
    """Place of a row among all rows, uniform on (0, 1)."""
    cdef double u[2]
    draws.philox_uniforms(key, ORDER_AND_LABEL, <uint64_t> number, u)
    return u[0]


cdef double side_of(uint64_t key, Py_ssize_t number) noexcept nogil:
    """What a row draws for a proposal, uniform on (0, 1)."""
    cdef double u[2]
    draws.philox_uniforms(key, SIDE, <uint64_t> number, u)
    return u[0]


def places(uint64_t key, const Py_ssize_t[::1] numbers):
    """Places of some rows in the order of a key."""
    cdef double[::1] out = np.empty(numbers.shape[0])
    cdef Py_ssize_t t
    for t in range(numbers.shape[0]):
        out[t] = place_of(key, numbers[t])
    return np.asarray(out)


def draw_key(bit_generator):
    """64 random bits, of a generator whose lock is held or that nobody shares."""
    return draws.bits(draws.borrow(bit_generator))


cdef class RowSlice:
    """Some rows of a table, in the units of the prior.

    Methods that a pass or a proposal is made of take one request, a dict of plain data, and
    return one: they are what is run for every cell of a table.
    """

    def __init__(self, X, numbers, kernels):
        """Rows X (n, n_features) that have these numbers in the whole table, ascending.

        ``kernels`` make their family.
        """
        self.family = kernels.family(X)
        self.n_samples = self.family.n_samples
        self.number = np.ascontiguousarray(numbers, dtype=np.intp)
        self.label = np.zeros(self.n_samples, dtype=np.intp)
        self._row = self.family.row_order()
        self._member = np.zeros(self.n_samples, dtype=np.intp)
        self._chosen = np.zeros(self.n_samples, dtype=np.uint8)
        self._known = None

    # -- labels -------------------------------------------------------------------------------

    def see(self, record, double remembered=-1.0):
        """Let labels, and cells that are part of the state, be those of a record.

        Moments of missing cells join those of so many sweeps; below 0 they are not kept.
        """
        if self._known == record["key"]:
            return
        self._n_blocks = len(record["blocks"]["n_members"])
        put_blocks(self.family, record["blocks"])
        if "label" in record:  # a start that no pass has drawn
            self.label = record["label"][np.asarray(self.number)].astype(np.intp)
        elif self.n_samples:
            self._redraw(record, remembered)
        self._known = record["key"]

    def forget(self):
        """Let the next look at a record draw its labels."""
        self._known = None

    def _redraw(self, record, double remembered):
        cdef uint64_t key = record["key"]
        cdef Py_ssize_t n_together = max(1, min(CHUNK, TOGETHER // self._n_blocks))
        cdef double[::1] log_p = np.empty(n_together * self._n_blocks)
        cdef double[::1] work = np.empty(
            self.family.work_size(n_together, self._n_blocks) + 1
        )
        self._anchor_place = record["anchor_place"]
        self._anchor_row = record["anchor_row"]
        self._last_place = np.max(record["anchor_place"])
        self._draw_parameters(key, record["discount"], record["rest"])
        self._choose(record["subset"])
        self._failed = False
        with nogil:
            self._label_rows(key, remembered, &log_p[0], n_together, &work[0])
        if self._failed:
            raise ArithmeticError("a row has no finite weight in any cluster")

    cdef int _draw_parameters(self, uint64_t key, double discount, double rest) except -1:
        """(w_1..w_K, rest) ~ Dirichlet(n_c - discount, ..., rest), theta_c from its posterior.

        The same in every slice: drawn under the key.
        """
        cdef Py_ssize_t k, n = self._n_blocks
        cdef draws.RowStream stream
        draws.start_row_stream(&stream, key, PARAMETERS, 0)
        self.family.reserve_parameters(n)
        self._log_weight = np.zeros(n + 1)
        for k in range(n):
            self.family.draw_parameters(k, &stream.rng)
            self._log_weight[k] = self.family.n_members[k] - discount
        self._log_weight[n] = rest
        draws.log_dirichlet(&stream.rng, &self._log_weight[0], n + 1, &self._log_weight[0])
        return 0

    cdef void _label_rows(
        self, uint64_t key, double remembered, double* log_p, Py_ssize_t n_together, double* work
    ) noexcept nogil:
        cdef Py_ssize_t start = 0, n_blocks = self._n_blocks, n, t, i, k
        cdef draws.RowStream stream
        while start < self.n_samples:
            n = min(n_together, self.n_samples - start)
            for t in range(n):
                memcpy(log_p + t * n_blocks, &self._log_weight[0], n_blocks * sizeof(double))
            self.family.log_likelihoods(&self._row[start], n, n_blocks, log_p, work)
            for t in range(n):
                i = self._row[start + t]
                if self._draw_label(key, i, log_p + t * n_blocks, &k) != 0:
                    self._failed = True
                    k = 0
                self.label[i] = k
                if self.family.incomplete(i):
                    draws.start_row_stream(&stream, key, IMPUTATION, <uint64_t> self.number[i])
                    self.family.draw_missing_given_parameters(k, i, &stream.rng, work)
                    if remembered >= 0.0:
                        self.family.remember_imputation(i, remembered)
            start += n

    cdef int _draw_label(
        self, uint64_t key, Py_ssize_t i, double* log_p, Py_ssize_t* chosen
    ) noexcept nogil:
        """A block with probability proportional to exp(log_p) among those whose anchor is before.

        Non-zero if no weight is finite.
        """
        cdef Py_ssize_t k, number = self.number[i]
        cdef double u[2]
        cdef double place
        draws.philox_uniforms(key, ORDER_AND_LABEL, <uint64_t> number, u)
        place = u[0] + self._chosen[i]
        if place <= self._last_place:
            for k in range(self._n_blocks):
                if self._anchor_row[k] == number:
                    chosen[0] = k
                    return 0
                if place < self._anchor_place[k] or (
                    place == self._anchor_place[k] and number < self._anchor_row[k]
                ):
                    log_p[k] = -INFINITY
        return draws.categorical_at(u[1], log_p, self._n_blocks, chosen)

    cdef void _choose(self, const Py_ssize_t[::1] subset) noexcept nogil:
        """Mark the rows that are in a sorted list of numbers."""
        cdef Py_ssize_t i, t = 0, low = 0, high = subset.shape[0], middle
        if self.n_samples:
            while low < high:  # the first that is not before these rows
                middle = (low + high) // 2
                if subset[middle] < self.number[0]:
                    low = middle + 1
                else:
                    high = middle
        t = low
        for i in range(self.n_samples):
            while t < subset.shape[0] and subset[t] < self.number[i]:
                t += 1
            self._chosen[i] = t < subset.shape[0] and subset[t] == self.number[i]

    # -- what a pass returns --------------------------------------------------------------------

    def pass_rows(self, request):
        """Labels under a record, and what the driver needs of them.

        Parameters
        ----------
        request : dict
            ``record``; ``next_key`` and ``next_subset`` R' of the next pass; ``remembered``, see
            `see`; ``center``, blocks about whose means squares are taken where these are not those
            of the record.

        Returns
        -------
        found : dict
            Of the rows outside R': ``n`` (n_blocks,), ``sums`` (n_blocks, sums_size), and the
            first of each block in the order of the next key, ``place`` and ``row``. Of the rows
            in R': ``number``, ``label``, ``X`` as completed and ``missing``.
        """
        cdef uint64_t key = request["next_key"]
        cdef Py_ssize_t k, t, n_blocks
        self.see(request["record"], request.get("remembered", -1.0))
        if "center" in request:
            put_blocks(self.family, request["center"])
        n_blocks = self._n_blocks
        self._choose(request["next_subset"])
        cdef Py_ssize_t[::1] start = np.zeros(n_blocks + 1, dtype=np.intp)
        cdef double[:, ::1] sums = np.zeros((n_blocks, self.family.sums_size()))
        cdef double[::1] place = np.full(n_blocks, NOWHERE)
        cdef Py_ssize_t[::1] row = np.full(n_blocks, -1, dtype=np.intp)
        cdef double[::1] work = np.empty(self.family.work_size(self.n_samples, 1) + 1)
        with nogil:
            self._list_members(&start[0])
            for k in range(n_blocks):
                t = start[k + 1] - start[k]
                if t == 0:
                    continue
                self.family.sum_rows(k, &self._member[start[k]], t, &sums[k, 0], &work[0])
                self._first(key, &self._member[start[k]], t, &place[k], &row[k])
        if "center" in request:
            self._known = None
        chosen = np.flatnonzero(np.asarray(self._chosen))
        return {
            "n": np.diff(np.asarray(start)), "sums": np.asarray(sums), "place": np.asarray(place),
            "row": np.asarray(row), **self._at_hand(chosen),
        }

    def _at_hand(self, chosen):
        """Some rows as the driver takes them."""
        X = self.family.completed()[chosen]
        return {
            "number": np.asarray(self.number)[chosen], "label": np.asarray(self.label)[chosen],
            "X": X, "missing": _missing(self.family)[chosen],
        }

    cdef void _list_members(self, Py_ssize_t* start) noexcept nogil:
        """List the rows outside the subset block by block; block k from start[k] on."""
        cdef Py_ssize_t t, i, k
        for t in range(self.n_samples):
            i = self._row[t]
            if not self._chosen[i]:
                start[self.label[i] + 1] += 1
        for k in range(self._n_blocks):
            start[k + 1] += start[k]
        for t in range(self.n_samples):
            i = self._row[t]
            if not self._chosen[i]:
                k = self.label[i]
                self._member[start[k]] = i
                start[k] += 1
        for k in range(self._n_blocks, 0, -1):
            start[k] = start[k - 1]
        start[0] = 0

    cdef void _first(
        self, uint64_t key, const Py_ssize_t* member, Py_ssize_t n, double* place, Py_ssize_t* row
    ) noexcept nogil:
        """The first of some rows in the order of a key, the lower number where places are equal."""
        cdef Py_ssize_t t, number
        cdef double here
        for t in range(n):
            number = self.number[member[t]]
            here = place_of(key, number)
            if here < place[0] or (here == place[0] and number < row[0]):
                place[0] = here
                row[0] = number

    # -- what proposals return ------------------------------------------------------------------

    def divide(self, request):
        """Divide the rows of blocks anew, or weigh how they are divided, for some proposals.

        Parameters
        ----------
        request : dict
            ``record`` of the labels; ``next_key``; ``next_subset`` R, whose rows are left out;
            ``proposals``, dicts with ``blocks``, two of the record or one twice, -1 where none of
            it is meant, ``forced`` where rows of the second are to be weighed as its side, ``key``,
            ``log_odds`` of the second side before a look at a row, ``sides``: two blocks whose
            predictive densities give the rest of the odds, and ``looks``: whether they do;
            ``center``, blocks about whose means squares are taken where these are not those two.

        Returns
        -------
        found : list of dict
            Of each proposal ``log_q`` and, where it is not forced, of either side ``n`` (2,),
            ``sums`` (2, sums_size), ``place`` (2,) and ``row`` (2,).
        """
        self.see(request["record"])
        self._choose(request["next_subset"])
        return [
            self._divide(proposal, request["next_key"]) for proposal in request["proposals"]
        ]

    def _divide(self, proposal, uint64_t next_key):
        cdef Py_ssize_t k = proposal["blocks"][0], k_too = proposal["blocks"][1], i, t
        cdef Py_ssize_t a = self._n_blocks + 1
        cdef bint forced = proposal["forced"], looks = proposal["looks"], second
        cdef uint64_t key = proposal["key"]
        cdef double log_odds = proposal["log_odds"], odds, log_q = 0.0
        cdef Py_ssize_t[::1] size = np.zeros(2, dtype=np.intp)
        cdef Py_ssize_t[:, ::1] side = np.empty((2, self.n_samples), dtype=np.intp)
        cdef double[:, ::1] sums = np.zeros((2, self.family.sums_size()))
        cdef double[::1] place = np.full(2, NOWHERE)
        cdef Py_ssize_t[::1] row = np.full(2, -1, dtype=np.intp)
        cdef double[::1] work = np.empty(self.family.work_size(self.n_samples, 1) + 1)
        put_blocks(self.family, proposal["sides"], a)
        with nogil:
            for i in range(self.n_samples):
                if self._chosen[i] or (self.label[i] != k and self.label[i] != k_too):
                    continue
                odds = log_odds
                if looks:
                    odds += (self.family.log_predictive(a + 1, i)
                             - self.family.log_predictive(a, i))
                second = (
                    self.label[i] == k_too if forced
                    else side_of(key, self.number[i]) * (1.0 + exp(-odds)) < 1.0
                )
                log_q -= log1p_exp(-odds if second else odds)
                side[second, size[second]] = i
                size[second] += 1
        if "center" in proposal:
            put_blocks(self.family, proposal["center"], a)
        if not forced:
            with nogil:
                for t in range(2):
                    if size[t] > 0:
                        self.family.sum_rows(
                            a + t, &side[t, 0], size[t], &sums[t, 0], &work[0]
                        )
                        self._first(next_key, &side[t, 0], size[t], &place[t], &row[t])
        return {
            "log_q": log_q, "n": np.asarray(size), "sums": np.asarray(sums),
            "place": np.asarray(place), "row": np.asarray(row),
        }


def _missing(family):
    """Which cells are missing, (n_samples, n_features) of bool."""
    if isinstance(family, ProductFamily):
        out = np.zeros((family.n_samples, family.n_features), dtype=bool)
        for part, columns in zip(family.parts, (<ProductFamily> family).columns, strict=True):
            out[:, columns] = _missing(part)
        return out
    return _missing_of_part(family)


def _missing_of_part(ConjugateFamily family):
    out = np.zeros((family.n_samples, family.n_features), dtype=bool)
    rows = np.repeat(np.arange(family.n_samples), np.diff(np.asarray(family.missing_start)))
    out[rows, np.asarray(family.missing_feature)] = True
    return out
