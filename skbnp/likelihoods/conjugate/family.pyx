"""What every conjugate family offers a mixture kernel: blocks of rows with running statistics.

A family owns a copy of the data and one set of sufficient statistics per *slot*. A slot holds a
block of rows, the kernel says which; a cleared slot is the empty block, whose predictive density
is that of the prior. No method but ``reserve`` and ``reserve_parameters`` touches a Python object.

Two ways lead through a sweep. Row by row, with the parameters integrated out: ``add``, ``remove``,
``log_predictive_all``. And for all rows at once, given parameters drawn for every block:
``draw_parameters``, ``log_likelihoods``, ``sum_rows``, ``set_from_sums``. The methods of the second
way that take a ``work`` array use no other scratch, so several threads may call them.
"""

from numpy.random cimport bitgen_t

import numpy as np

from skbnp.numerics._moments cimport merge_part
from skbnp.numerics.vector_math cimport prefetch

from skbnp.numerics.buffers import longer


cdef Py_ssize_t LINE = 8            # numbers that are fetched at once
# Numbers of a row that are asked for; processors see by themselves how it goes on.
cdef Py_ssize_t MOST_FETCHED = 32


def check_array_of_state(name, array, like):
    """Raise a ValueError unless an array of a state has the shape and the dtype of another."""
    if not isinstance(array, np.ndarray) or (array.shape, array.dtype) != (like.shape, like.dtype):
        found = getattr(array, "shape", array), getattr(array, "dtype", type(array).__name__)
        raise ValueError(
            f"{name} of a state must have shape {like.shape} and dtype {like.dtype}, got "
            f"{found[0]} and {found[1]}"
        )


def check_positive_number(name, value):
    """Raise a ValueError unless a number of a state is one, positive and finite."""
    if type(value) is not float or not 0 < value < np.inf:
        raise ValueError(f"{name} of a state must be a positive number, got {value!r}")


cdef class ConjugateFamily:
    """Base of the families; every numerical method is the subclass's.

    Invariant: the statistics of slot k are those of the ``n_members[k]`` rows added to it and
    not removed since, up to rounding.
    """

    # Public attributes with an entry a slot; those that predictions need; those that count rows.
    SLOTS = ("n_members",)
    _for_prediction = ("n_members",)
    _counts_of_rows = ("n_members",)
    _counts_of_cells = None             # slot array of the observed cells, feature by feature

    def __init__(self, X):
        data = np.array(X, dtype=np.float64, order="C")
        missing = np.isnan(data)
        self.X = data
        self.n_samples, self.n_features = data.shape
        self.missing_start = np.concatenate([[0], np.cumsum(missing.sum(axis=1))]).astype(np.intp)
        self.missing_feature = np.nonzero(missing)[1].astype(np.intp)
        self._start_means(self.missing_start)
        self.n_slots = 0
        self.scale = 1.0

    def _start_means(self, value_start):
        """Room for what is averaged over sweeps for missing cells, row i from value_start[i] on."""
        self.value_start = np.asarray(value_start, dtype=np.intp)
        n_values = self.value_start[self.n_samples]
        self.missing_mean, self.missing_variance = np.zeros(n_values), np.zeros(n_values)
        self.imputed_mean, self.imputed_square = np.zeros(n_values), np.zeros(n_values)

    # -- storage ------------------------------------------------------------------------------

    cdef int reserve(self, Py_ssize_t n_slots) except -1 nogil:
        """Make room for n_slots slots, doubling; new slots are empty blocks."""
        if n_slots <= self.n_slots:
            return 0
        with gil:
            self._grow(max(n_slots, 2 * self.n_slots, 8))
        return 0

    def _grow(self, n_slots):
        """Replace the slot arrays by longer copies and clear the new slots."""
        cdef Py_ssize_t k
        old = self.n_slots
        for name, array in self._slot_arrays().items():
            setattr(self, name, longer(array, (n_slots, *array.shape[1:])))
        self.n_slots = n_slots
        for k in range(old, n_slots):
            self.clear(k)

    def get_state(self, Py_ssize_t n_slots):
        """Everything that the next sweep depends on, bit for bit, for a family of the same data."""
        arrays = {name: array[:n_slots].copy() for name, array in self._slot_arrays().items()}
        return {
            "scale": self.scale,
            "missing_mean": np.array(self.missing_mean),
            "missing_variance": np.array(self.missing_variance),
            "imputed_mean": np.array(self.imputed_mean),
            "imputed_square": np.array(self.imputed_square),
            "imputed": self.imputed(),
            **arrays,
        }

    def set_state(self, state, Py_ssize_t n_slots):
        """Restore what ``get_state`` returned.

        Raises a ValueError if it cannot be the state of such a family: kernels trust their
        indices, and a state may come from a file.
        """
        cdef Py_ssize_t k
        self._check_state(state, n_slots)
        self._set_prior(state)
        self.reserve(n_slots)
        self.missing_mean = state["missing_mean"].copy()
        self.missing_variance = state["missing_variance"].copy()
        self.imputed_mean = state["imputed_mean"].copy()
        self.imputed_square = state["imputed_square"].copy()
        self.set_imputed(state["imputed"])
        for name, array in self._slot_arrays().items():
            array[:n_slots] = state[name]
        for k in range(n_slots, self.n_slots):
            self.clear(k)

    def _set_prior(self, state):
        """Take over the numbers of the prior that are part of a state."""
        self.scale = state["scale"]

    def _check_state(self, state, n_slots):
        check_positive_number("scale", state["scale"])
        if not self.scaled and state["scale"] != 1:
            raise ValueError(f"scale of a state must be 1 here, got {state['scale']!r}")
        like = np.asarray(self.missing_mean)
        for name in ("missing_mean", "missing_variance", "imputed_mean", "imputed_square"):
            check_array_of_state(name, state[name], like)
        for name in ("missing_variance", "imputed_square"):
            if not np.all(state[name] >= 0.0):
                raise ValueError(f"{name} of a state must be >= 0")
        check_array_of_state("imputed", state["imputed"], self.imputed())
        for name, array in self._slot_arrays().items():
            wanted = np.empty((n_slots, *array.shape[1:]), array.dtype)
            check_array_of_state(name, state[name], wanted)
        for name in self._counts_of_rows:
            counts = state[name]
            if not (np.all(counts >= 0) and np.all(counts <= self.n_samples)):
                raise ValueError(f"{name} of a state must be from 0 to {self.n_samples}")

    def check_cells(self, state, label, n_slots):
        """Raise a ValueError unless a state counts the observed cells of the rows in each slot.

        Kernels look things up by these counts.
        """
        if self._counts_of_cells is None:
            return
        n_cells = np.zeros((n_slots, self.n_features))
        n_cells += np.bincount(label, minlength=n_slots)[:, np.newaxis]
        rows = np.repeat(np.arange(self.n_samples), np.diff(self.missing_start))
        np.subtract.at(n_cells, (label[rows], np.asarray(self.missing_feature)), 1.0)
        if not np.array_equal(state[self._counts_of_cells], n_cells):
            raise ValueError(f"{self._counts_of_cells} of a state must count the observed cells")

    def imputed(self):
        """The imputed cells, row by row, a copy; empty where none are part of the state."""
        return np.zeros(0)

    def set_imputed(self, values):
        """Put values into the imputed cells; the slots are then out of date."""

    def blocks(self, Py_ssize_t n_slots):
        """Owning copies of the statistics of slots 0..n_slots-1, for prediction."""
        arrays = self._slot_arrays()
        return {name: arrays[name][:n_slots].copy() for name in self._for_prediction}

    def completed(self):
        """The data with current imputations, a copy, shape (n_samples, n_features)."""
        return np.array(self.X)

    def forget_imputations(self):
        """Start the moments of ``remember_imputation`` anew."""
        np.asarray(self.imputed_mean)[:] = 0.0
        np.asarray(self.imputed_square)[:] = 0.0

    def row_order(self):
        """An order of the rows in which those with the same missing cells stand together."""
        if self.missing_feature.shape[0] == 0:
            return np.arange(self.n_samples, dtype=np.intp)
        missing = np.zeros((self.n_samples, self.n_features), dtype=bool)
        row = np.repeat(np.arange(self.n_samples), np.diff(self.missing_start))
        missing[row, np.asarray(self.missing_feature)] = True
        return np.lexsort(missing.T[::-1]).astype(np.intp)

    def _slot_arrays(self):
        return {name: np.asarray(getattr(self, name)) for name in self.SLOTS}

    # -- rows ---------------------------------------------------------------------------------

    cdef void fetch(self, Py_ssize_t i) noexcept nogil:
        """Ask for what will be read soon of row i: rows that come at random are in no cache."""
        cdef Py_ssize_t j, n_lines = (min(self.n_features, MOST_FETCHED) + LINE - 1) // LINE
        prefetch(&self.missing_start[i])
        for j in range(n_lines):
            prefetch(&self.X[i, 0] + j * LINE)

    cdef bint incomplete(self, Py_ssize_t i) noexcept nogil:
        """Whether row i has missing cells."""
        return self.missing_start[i + 1] > self.missing_start[i]

    cdef bint augmented(self, Py_ssize_t i) noexcept nogil:
        """Whether row i has cells that are imputed as part of the state."""
        return False

    cdef Py_ssize_t observed_first(self, Py_ssize_t i, Py_ssize_t* order) noexcept nogil:
        """Put the features into ``order``, those observed in row i first; returns their number."""
        cdef Py_ssize_t j, n_observed = 0
        cdef Py_ssize_t t = self.missing_start[i], end = self.missing_start[i + 1]
        cdef Py_ssize_t n_missing = end - t
        for j in range(self.n_features):
            if t < end and self.missing_feature[t] == j:
                order[self.n_features - (end - t)] = j
                t += 1
            else:
                order[n_observed] = j
                n_observed += 1
        return self.n_features - n_missing

    cdef Py_ssize_t alike(self, const Py_ssize_t* row, Py_ssize_t n_rows) noexcept nogil:
        """How many of these rows, n_rows >= 1, from the first on, lack the same cells."""
        cdef Py_ssize_t first = self.missing_start[row[0]], start, t, a
        cdef Py_ssize_t n = self.missing_start[row[0] + 1] - first
        for t in range(1, n_rows):
            start = self.missing_start[row[t]]
            if self.missing_start[row[t] + 1] - start != n:
                return t
            for a in range(n):
                if self.missing_feature[start + a] != self.missing_feature[first + a]:
                    return t
        return n_rows

    cdef void remember_imputation(self, Py_ssize_t i, double n_before) noexcept nogil:
        """Let the moments of row i's missing cells, given its block, join those of n_before sweeps.
        """
        cdef Py_ssize_t t
        for t in range(self.value_start[i], self.value_start[i + 1]):
            merge_part(n_before, 1.0, self.missing_mean[t], self.missing_variance[t],
                       &self.imputed_mean[t], &self.imputed_square[t])

    # -- statistics, one slot -----------------------------------------------------------------

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        """Make slot k the empty block."""

    cdef void copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        """Make slot target a copy of slot source."""

    cdef void add(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """Add row i to slot k."""

    cdef int remove(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """Take row i, a member, out of slot k.

        Returns 1 when too many digits cancelled: the slot is then spoiled and the kernel builds
        it anew from its rows.
        """
        return 0

    cdef int merge(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t target) noexcept nogil:
        """Make slot target, another one, the block of the rows of slots a and b.

        Non-zero: failed, too many digits cancelled.
        """
        return 0

    # -- densities ----------------------------------------------------------------------------

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """log p(row i | rows of slot k), row i not among them; imputed cells count as data."""
        return 0.0

    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        """``log_predictive`` of row i for slots 0..n-1."""

    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """log p(row i | other rows of slot k), for a member i, without changing the slot.

        NaN when the difference would lose its digits: the kernel then removes the row first.
        """
        return 0.0

    cdef void log_predictive_observed(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        """As ``log_predictive_all`` for the observed cells of row i alone."""

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        """log m(rows of slot k), normalised; 0 for the empty block."""
        return 0.0

    # -- prior scale --------------------------------------------------------------------------

    cdef int scale_log_weights(
        self, Py_ssize_t n_blocks, const double* grid, Py_ssize_t n_grid, double* out
    ) noexcept nogil:
        """Add log prod_k m(X_k; s), up to a constant, to out for each s of the grid.

        Nothing to add without a scale. Non-zero: failed.
        """
        return 0

    cdef int set_scale(self, Py_ssize_t n_slots, double scale) noexcept nogil:
        """Change the prior scale and with it all slots; non-zero: build them from their rows."""
        return 0

    # -- draws --------------------------------------------------------------------------------

    cdef void draw_missing(self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng) noexcept nogil:
        """Draw the imputed cells of row i, which is in no slot, given that it joins slot k.

        Sets mean and variance of all its missing cells, given what is observed of it.
        """

    cdef void missing_of_member(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """The same moments for a row that slot k holds, without imputed cells.

        Here for families whose missing cells look at no other cell of the row.
        """
        self.draw_missing(k, i, NULL)

    cdef int redraw_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n, bitgen_t* rng
    ) noexcept nogil:
        """Draw parameters from the posterior of slot k, then every cell of its rows from them.

        Non-zero if the parameters are not finite.
        """
        return 0

    # -- all rows at once, given parameters ---------------------------------------------------

    cdef int reserve_parameters(self, Py_ssize_t n_blocks) except -1 nogil:
        """Make room for the parameters of slots 0..n_blocks-1."""
        return 0

    cdef void draw_parameters(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        """Draw the parameters of slot k from their posterior, of an empty block from the prior."""

    cdef Py_ssize_t work_size(self, Py_ssize_t n_rows, Py_ssize_t n_blocks) noexcept nogil:
        """Doubles of scratch that the methods below need for so many rows and blocks."""
        return 0

    cdef void log_likelihoods(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil:
        """Add log f(observed cells of row[t] | parameters of slot k) to out[t * n_blocks + k]."""

    cdef void draw_missing_given_parameters(
        self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil:
        """As ``draw_missing``, given the parameters of slot k instead of its rows."""

    cdef Py_ssize_t sums_size(self) noexcept nogil:
        """Doubles in the sums of one block."""
        return 0

    cdef void sum_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n_rows, double* sums, double* work
    ) noexcept nogil:
        """Add to ``sums`` what these rows contribute to the statistics of slot k.

        Squares are taken about the present mean of slot k, which must not change until
        ``set_from_sums``.
        """

    cdef int set_from_sums(
        self, Py_ssize_t k, Py_ssize_t n_rows, const double* sums
    ) noexcept nogil:
        """Make slot k the block of the n_rows rows that were summed. Non-zero: failed."""
        return 0
