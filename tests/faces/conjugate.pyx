"""What tests call of a conjugate family: its C methods, with arrays in place of pointers."""

from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.numerics cimport rng as draws

from skbnp.likelihoods.conjugate.product import ProductFamily


cdef class Face:
    """A family and these methods beside its own."""

    cdef readonly ConjugateFamily family

    def __init__(self, family):
        self.family = family

    def __getattr__(self, name):
        return getattr(self.family, name)

    @property
    def parts(self):
        """Those of a product, each with a face."""
        return [Face(part) for part in self.family.parts]

    def build(self, Py_ssize_t k, rows):
        """Make slot k the block of these rows."""
        cdef Py_ssize_t i
        self.family.reserve(k + 1)
        self.family.clear(k)
        for i in rows:
            self.family.add(k, i)

    def remove_row(self, Py_ssize_t k, Py_ssize_t i):
        """``remove``: whether the slot is spoiled."""
        return bool(self.family.remove(k, i))

    def add_row(self, Py_ssize_t k, Py_ssize_t i):
        """``add``"""
        self.family.add(k, i)

    def merge_blocks(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t target):
        """``merge``: whether it failed."""
        return bool(self.family.merge(a, b, target))

    def marginal(self, Py_ssize_t k):
        """``log_marginal``"""
        return self.family.log_marginal(k)

    def predictive(self, Py_ssize_t k, Py_ssize_t i):
        """``log_predictive``"""
        return self.family.log_predictive(k, i)

    def own_predictive(self, Py_ssize_t k, Py_ssize_t i):
        """``log_predictive_own``"""
        return self.family.log_predictive_own(k, i)

    def predictives(self, Py_ssize_t n, Py_ssize_t i, observed=False):
        """``log_predictive_all`` or ``log_predictive_observed``, shape (n,)."""
        cdef double[::1] out = np.empty(n)
        if observed:
            self.family.log_predictive_observed(n, i, &out[0])
        else:
            self.family.log_predictive_all(n, i, &out[0])
        return np.asarray(out)

    def rescale(self, Py_ssize_t n_slots, double scale):
        """``set_scale``: whether the slots must be built anew."""
        return bool(self.family.set_scale(n_slots, scale))

    def scale_weights(self, Py_ssize_t n_blocks, const double[::1] grid):
        """``scale_log_weights``, shape of grid."""
        cdef double[::1] out = np.zeros(grid.shape[0])
        if self.family.scale_log_weights(n_blocks, &grid[0], grid.shape[0], &out[0]) != 0:
            raise ArithmeticError("scale_log_weights failed")
        return np.asarray(out)

    def missing_features(self, Py_ssize_t i):
        """Features missing in row i, ascending, a copy."""
        cdef Py_ssize_t start = self.family.missing_start[i]
        cdef Py_ssize_t stop = self.family.missing_start[i + 1]
        return np.array(self.family.missing_feature[start:stop])

    def redraw(self, Py_ssize_t k, rows, bit_generator):
        """``redraw_rows``: the observed cells of these rows; ``completed`` shows them."""
        cdef Py_ssize_t[::1] row = np.array(rows, dtype=np.intp)
        with bit_generator.lock:
            if self.family.redraw_rows(k, &row[0], row.shape[0], draws.borrow(bit_generator)) != 0:
                raise ArithmeticError(f"the parameters drawn for block {k} are not finite")

    def impute(self, Py_ssize_t k, Py_ssize_t i, bit_generator, given_parameters=False):
        """``draw_missing`` or ``draw_missing_given_parameters``: means of row i's missing cells."""
        cdef bitgen_t* rng = draws.borrow(bit_generator)
        cdef double[::1] work = np.empty(max(self.family.work_size(1, self.family.n_slots), 1))
        with bit_generator.lock:
            if given_parameters:
                self.family.draw_missing_given_parameters(k, i, rng, &work[0])
            else:
                self.family.draw_missing(k, i, rng)
        return self.missing_means(i)

    def missing_means(self, Py_ssize_t i):
        """Conditional means of row i's missing cells when they were last drawn, a copy."""
        if isinstance(self.family, ProductFamily):
            return np.concatenate([part.missing_means(i) for part in self.parts])
        cdef Py_ssize_t start = self.family.value_start[i], stop = self.family.value_start[i + 1]
        return np.array(self.family.missing_mean[start:stop])

    def missing_variances(self, Py_ssize_t i):
        """Conditional variances of the same cells, a copy."""
        if isinstance(self.family, ProductFamily):
            return np.concatenate([part.missing_variances(i) for part in self.parts])
        cdef Py_ssize_t start = self.family.value_start[i], stop = self.family.value_start[i + 1]
        return np.array(self.family.missing_variance[start:stop])

    def moments_of_member(self, Py_ssize_t k, Py_ssize_t i):
        """``missing_of_member``: means and variances of row i's missing cells."""
        if self.family.augmented(i):
            raise ValueError(f"row {i} must have no imputed cells")
        self.family.missing_of_member(k, i)
        return self.missing_means(i), self.missing_variances(i)

    def remember(self, Py_ssize_t i, n_before):
        """``remember_imputation``"""
        self.family.remember_imputation(i, n_before)

    def draw_parameters_of(self, Py_ssize_t k, bit_generator):
        """``draw_parameters``; the parameters of other slots stay as long as no slot is added."""
        self.family.reserve_parameters(self.family.n_slots)
        with bit_generator.lock:
            self.family.draw_parameters(k, draws.borrow(bit_generator))

    def likelihoods(self, rows, Py_ssize_t n_blocks):
        """``log_likelihoods`` of these rows, shape (n_rows, n_blocks)."""
        cdef Py_ssize_t[::1] row = np.array(rows, dtype=np.intp)
        cdef double[:, ::1] out = np.zeros((row.shape[0], n_blocks))
        cdef double[::1] work = np.empty(max(self.family.work_size(row.shape[0], n_blocks), 1))
        self.family.log_likelihoods(&row[0], row.shape[0], n_blocks, &out[0, 0], &work[0])
        return np.asarray(out)

    def rebuild_from_sums(self, Py_ssize_t k, rows, Py_ssize_t chunk):
        """``sum_rows`` for each chunk of rows alone, then ``set_from_sums``: whether it failed."""
        cdef Py_ssize_t[::1] row = np.array(rows, dtype=np.intp)
        cdef Py_ssize_t n = row.shape[0], start
        cdef double[::1] sums
        cdef double[::1] work = np.empty(max(self.family.work_size(chunk, self.family.n_slots), 1))
        total = np.zeros(max(self.family.sums_size(), 1))
        for start in range(0, n, chunk):
            sums = np.zeros_like(total)
            self.family.sum_rows(k, &row[start], min(chunk, n - start), &sums[0], &work[0])
            total += sums
        sums = total
        return bool(self.family.set_from_sums(k, n, &sums[0]))
