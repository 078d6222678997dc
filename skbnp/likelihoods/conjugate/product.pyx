"""Blocks of rows whose columns belong to several families: independent given the block.

theta = (theta_1, ..., theta_P) with independent priors and f(x | theta) = prod_p f_p(x_p | theta_p)
where x_p are the columns of part p. So the density of a block is the product of its parts'.
"""

from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily


cdef class ProductFamily(ConjugateFamily):
    """Several families side by side, each with its own columns of a table.

    The parts keep the data, the statistics and the imputations, and do all the work; the slots of
    the product are theirs. Parts whose priors have a scale share it.

    Parameters
    ----------
    parts : sequence of ConjugateFamily
        On the same rows, each with other names for its statistics: one of a kind.
    columns : sequence of arrays of int
        For each part the features of the table that its own features are; each feature belongs
        to one part.
    """

    def __init__(self, parts, columns):
        # Not the base's: the product has no data of its own.
        self.parts = list(parts)
        self.columns = [np.array(column, dtype=np.intp).reshape(-1) for column in columns]
        _check_parts(self.parts, self.columns)
        self.n_parts = len(self.parts)
        self.address = np.array([id(part) for part in self.parts], dtype=np.uintp)
        self.n_samples = self.parts[0].n_samples
        self.n_features = sum(part.n_features for part in self.parts)
        self.n_slots = 0
        self.scaled = any(part.scaled for part in self.parts)
        self.scale = next((part.scale for part in self.parts if part.scaled), 1.0)
        self.n_members = np.zeros(0, dtype=np.intp)

    # -- storage ------------------------------------------------------------------------------

    def _grow(self, n_slots):
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).reserve(n_slots)
        self.part_density = np.zeros(n_slots)
        # Clears the new slots: those of a part that had room for more may have another scale.
        super()._grow(n_slots)

    def get_state(self, Py_ssize_t n_slots):
        """Everything that the next sweep depends on, bit for bit; "part0" is that of part 0."""
        # A part whose covariances are learned changes its scale alone.
        self.scale = next((part.scale for part in self.parts if part.scaled), 1.0)
        return {
            "scale": self.scale,
            "n_members": np.array(self.n_members[:n_slots]),
            **{f"part{p}": part.get_state(n_slots) for p, part in enumerate(self.parts)},
        }

    def set_state(self, state, Py_ssize_t n_slots):
        for p, part in enumerate(self.parts):
            # Parts with a scale share it, and all have the same blocks.
            same = [np.array_equal(state[f"part{p}"]["n_members"], state["n_members"])]
            same.append(not part.scaled or state[f"part{p}"]["scale"] == state["scale"])
            if not all(same):
                raise ValueError(f"part{p} of a state must have its n_members and its scale")
        self.reserve(n_slots)
        self.scale = state["scale"]
        n_members = np.asarray(self.n_members)
        n_members[:n_slots] = state["n_members"]
        n_members[n_slots:] = 0
        for p, part in enumerate(self.parts):
            part.set_state(state[f"part{p}"], n_slots)

    def check_cells(self, state, label, n_slots):
        for p, part in enumerate(self.parts):
            part.check_cells(state[f"part{p}"], label, n_slots)

    def imputed(self):
        return np.concatenate([part.imputed() for part in self.parts])

    def set_imputed(self, values):
        # One part at most has cells to impute: the real columns.
        for part in self.parts:
            if part.imputed().size:
                part.set_imputed(values)

    def blocks(self, Py_ssize_t n_slots):
        """The statistics of all parts."""
        merged = super().blocks(n_slots)
        for part in self.parts:
            merged |= part.blocks(n_slots)
        return merged

    def completed(self):
        table = np.empty((self.n_samples, self.n_features))
        for part, column in zip(self.parts, self.columns, strict=True):
            table[:, column] = part.completed()
        return table

    def forget_imputations(self):
        for part in self.parts:
            part.forget_imputations()

    def row_order(self):
        """The order of the first part that imputes cells: elsewhere the pattern does not matter."""
        cdef ConjugateFamily part
        cdef Py_ssize_t i
        for part in self.parts:
            for i in range(self.n_samples):
                if part.augmented(i):
                    return part.row_order()
        return np.arange(self.n_samples, dtype=np.intp)

    # -- rows ---------------------------------------------------------------------------------

    cdef bint incomplete(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            if (<ConjugateFamily> <void*> self.address[p]).incomplete(i):
                return True
        return False

    cdef void fetch(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).fetch(i)

    cdef bint augmented(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            if (<ConjugateFamily> <void*> self.address[p]).augmented(i):
                return True
        return False

    cdef void remember_imputation(self, Py_ssize_t i, double n_before) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).remember_imputation(i, n_before)

    # -- statistics ---------------------------------------------------------------------------

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t p
        self.n_members[k] = 0
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).clear(k)

    cdef void copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t p
        self.n_members[target] = self.n_members[source]
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).copy(source, target)

    cdef void add(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).add(k, i)
        self.n_members[k] += 1

    cdef int remove(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """One spoiled part spoils the slot: ``clear`` and ``add`` build all parts anew."""
        cdef Py_ssize_t p
        cdef int spoiled = 0
        for p in range(self.n_parts):
            spoiled |= (<ConjugateFamily> <void*> self.address[p]).remove(k, i)
        self.n_members[k] -= 1
        return spoiled

    cdef int merge(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t target) noexcept nogil:
        cdef Py_ssize_t p
        cdef int failed = 0
        self.n_members[target] = self.n_members[a] + self.n_members[b]
        for p in range(self.n_parts):
            failed |= (<ConjugateFamily> <void*> self.address[p]).merge(a, b, target)
        return failed

    # -- densities ----------------------------------------------------------------------------

    cdef double log_predictive(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t p
        cdef double total = 0.0
        for p in range(self.n_parts):
            total += (<ConjugateFamily> <void*> self.address[p]).log_predictive(k, i)
        return total

    cdef void log_predictive_all(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        self._sum_densities(n, i, False, out)

    cdef void log_predictive_observed(self, Py_ssize_t n, Py_ssize_t i, double* out) noexcept nogil:
        self._sum_densities(n, i, True, out)

    cdef void _sum_densities(
        self, Py_ssize_t n, Py_ssize_t i, bint observed, double* out
    ) noexcept nogil:
        cdef Py_ssize_t p, k
        cdef double* density
        for p in range(self.n_parts):
            density = out if p == 0 else &self.part_density[0]
            if observed:
                (<ConjugateFamily> <void*> self.address[p]).log_predictive_observed(n, i, density)
            else:
                (<ConjugateFamily> <void*> self.address[p]).log_predictive_all(n, i, density)
            if p > 0:
                for k in range(n):
                    out[k] += density[k]

    cdef double log_predictive_own(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """NaN if a part's is."""
        cdef Py_ssize_t p
        cdef double total = 0.0
        for p in range(self.n_parts):
            total += (<ConjugateFamily> <void*> self.address[p]).log_predictive_own(k, i)
        return total

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t p
        cdef double total = 0.0
        for p in range(self.n_parts):
            total += (<ConjugateFamily> <void*> self.address[p]).log_marginal(k)
        return total

    # -- prior scale --------------------------------------------------------------------------

    cdef int scale_log_weights(
        self, Py_ssize_t n_blocks, const double* grid, Py_ssize_t n_grid, double* out
    ) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            if (<ConjugateFamily> <void*> self.address[p]).scale_log_weights(
                n_blocks, grid, n_grid, out
            ) != 0:
                return 1
        return 0

    cdef int set_scale(self, Py_ssize_t n_slots, double scale) noexcept nogil:
        cdef Py_ssize_t p
        cdef int spoiled = 0
        if not self.scaled:
            return 0
        self.scale = scale
        for p in range(self.n_parts):  # all of them: building anew needs the scale in each
            spoiled |= (<ConjugateFamily> <void*> self.address[p]).set_scale(n_slots, scale)
        return spoiled

    # -- draws --------------------------------------------------------------------------------

    cdef void draw_missing(self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            if (<ConjugateFamily> <void*> self.address[p]).incomplete(i):
                (<ConjugateFamily> <void*> self.address[p]).draw_missing(k, i, rng)

    cdef void missing_of_member(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            if (<ConjugateFamily> <void*> self.address[p]).incomplete(i):
                (<ConjugateFamily> <void*> self.address[p]).missing_of_member(k, i)

    cdef int redraw_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n, bitgen_t* rng
    ) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            if (<ConjugateFamily> <void*> self.address[p]).redraw_rows(k, row, n, rng) != 0:
                return 1
        return 0

    # -- all rows at once, given parameters ---------------------------------------------------

    cdef int reserve_parameters(self, Py_ssize_t n_blocks) except -1 nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).reserve_parameters(n_blocks)
        return 0

    cdef void draw_parameters(self, Py_ssize_t k, bitgen_t* rng) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).draw_parameters(k, rng)

    cdef Py_ssize_t work_size(self, Py_ssize_t n_rows, Py_ssize_t n_blocks) noexcept nogil:
        """What the most demanding part needs: they use it one after another."""
        cdef Py_ssize_t p, size = 0
        for p in range(self.n_parts):
            size = max(
                size, (<ConjugateFamily> <void*> self.address[p]).work_size(n_rows, n_blocks)
            )
        return size

    cdef void log_likelihoods(
        self, const Py_ssize_t* row, Py_ssize_t n_rows, Py_ssize_t n_blocks, double* out,
        double* work,
    ) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).log_likelihoods(
                row, n_rows, n_blocks, out, work
            )

    cdef void draw_missing_given_parameters(
        self, Py_ssize_t k, Py_ssize_t i, bitgen_t* rng, double* work
    ) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            if (<ConjugateFamily> <void*> self.address[p]).incomplete(i):
                (<ConjugateFamily> <void*> self.address[p]).draw_missing_given_parameters(
                    k, i, rng, work
                )

    cdef Py_ssize_t sums_size(self) noexcept nogil:
        cdef Py_ssize_t p, size = 0
        for p in range(self.n_parts):
            size += (<ConjugateFamily> <void*> self.address[p]).sums_size()
        return size

    cdef void sum_rows(
        self, Py_ssize_t k, const Py_ssize_t* row, Py_ssize_t n_rows, double* sums, double* work
    ) noexcept nogil:
        """The sums of the parts one after another."""
        cdef Py_ssize_t p
        for p in range(self.n_parts):
            (<ConjugateFamily> <void*> self.address[p]).sum_rows(k, row, n_rows, sums, work)
            sums += (<ConjugateFamily> <void*> self.address[p]).sums_size()

    cdef int set_from_sums(
        self, Py_ssize_t k, Py_ssize_t n_rows, const double* sums
    ) noexcept nogil:
        cdef Py_ssize_t p
        cdef int failed = 0
        self.n_members[k] = n_rows
        for p in range(self.n_parts):
            failed |= (<ConjugateFamily> <void*> self.address[p]).set_from_sums(
                k, n_rows, sums
            )
            sums += (<ConjugateFamily> <void*> self.address[p]).sums_size()
        return failed


def _check_parts(parts, columns):
    if not parts or len(parts) != len(columns):
        raise ValueError(
            f"there must be as many parts as columns and at least one, "
            f"got {len(parts)} and {len(columns)}"
        )
    sizes = [(part.n_samples, part.n_features) for part in parts]
    widths = [len(column) for column in columns]
    if len({n for n, _ in sizes}) > 1 or widths != [d for _, d in sizes]:
        raise ValueError(
            f"parts must have the same rows and as many features as columns, "
            f"got shapes {sizes} for {widths} columns"
        )
    if not np.array_equal(np.sort(np.concatenate(columns)), np.arange(sum(widths))):
        raise ValueError(f"columns must hold each of 0..{sum(widths) - 1} once, got {columns}")
    names = [name for part in parts for name in part._for_prediction if name != "n_members"]
    if len(set(names)) < len(names):
        raise ValueError(f"parts must not share names of statistics, got {names}")
    if len({part.scale for part in parts if part.scaled}) > 1:
        raise ValueError("parts must have the same prior scale")
