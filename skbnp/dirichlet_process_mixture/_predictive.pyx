"""Posterior predictive of one draw: densities, memberships, conditional moments.

All functions take rows in the units of the draw (standardised) and know nothing of chains. A
draw of K blocks has K + 1 sets of statistics, the last the empty block, whose predictive is that
of the prior. Everything numerical runs without the GIL, so row blocks may run in threads.
"""

from libc.math cimport INFINITY, NAN, exp, log, log1p, sqrt
from libc.string cimport memcpy

import itertools

import numpy as np
from scipy.special import gammaln

from skbnp.likelihoods.conjugate.gaussians cimport permuted_factor, solve_leading
from skbnp.numerics cimport linalg
from skbnp.numerics._moments cimport merge_part
from skbnp.numerics.special cimport lgamma

from skbnp.dirichlet_process_mixture._model import CategoricalPrior, GaussianPrior, PoissonPrior
from skbnp.processes import crp, mfm


cdef double LOG_PI = 1.1447298858494002
cdef double LARGE = 1e150       # beyond it a product would overflow
LEAST_GAMMA = 1e-300            # gamma draws of a tiny shape underflow to 0


class Rows:
    """Rows to be predicted, kind of column by kind.

    Where real columns have full covariance, the rows are sorted by which of these are missing:
    rows with the same missing cells share one factorisation per block. ``parts`` holds what
    ``prior.parts`` need, in sorted order.
    """

    def __init__(self, X, prior):
        self.order = np.arange(len(X))
        full = prior.gaussian is not None and prior.gaussian.covariance_type == "full"
        if full:
            missing = np.isnan(X[:, prior.gaussian.columns])
            patterns, inverse = np.unique(missing, axis=0, return_inverse=True)
            inverse = inverse.reshape(-1)
            self.order = np.argsort(inverse, kind="stable")
        sorted_x = np.ascontiguousarray(X[self.order], dtype=np.float64)
        self.parts = []
        for part in prior.parts:
            x = np.ascontiguousarray(sorted_x[:, part.columns])
            if not isinstance(part, GaussianPrior):
                self.parts.append(_DiscreteRows(x, part))
            elif full:
                self.parts.append(_PatternRows(x, patterns, inverse))
            else:
                self.parts.append(x)

    def unsort(self, sorted_rows):
        """The array's rows in the order of the input."""
        out = np.empty_like(sorted_rows)
        out[self.order] = sorted_rows
        return out


cdef class _PatternRows:
    """Real cells of rows sorted by their pattern of missing cells."""

    cdef:
        double[:, ::1] x                    # (n_rows, n_features), NaN where missing
        Py_ssize_t[::1] start               # (n_patterns + 1,) first row of each pattern
        Py_ssize_t[:, ::1] feature          # (n_patterns, n_features) observed ones first
        Py_ssize_t[::1] n_observed          # (n_patterns,)

    def __init__(self, x, patterns, inverse):
        self.x = x
        self.start = np.concatenate([[0], np.cumsum(np.bincount(inverse))]).astype(np.intp)
        self.feature = np.argsort(patterns, axis=1, kind="stable").astype(np.intp)
        self.n_observed = np.sum(~patterns, axis=1).astype(np.intp)


class _DiscreteRows:
    """Counts or levels, as places in a list of the values that each column takes.

    Column j's values are ``values[start[j]:start[j + 1]]``; ``place`` (n_rows, n_columns) is the
    place of each cell in the whole list, -1 where it is missing.
    """

    def __init__(self, x, part):
        missing = np.isnan(x)
        if isinstance(part, CategoricalPrior):
            self.start = part.level_start
            self.values = np.concatenate([np.arange(len(g)) for g in part.pseudo_counts])
            place = np.where(missing, 0, x).astype(np.intp)
        else:
            place = np.zeros(x.shape, dtype=np.intp)
            taken = []
            for j, column in enumerate(x.T):
                values, found = np.unique(column[~missing[:, j]], return_inverse=True)
                place[~missing[:, j], j] = found
                taken.append(values)
            self.start = np.concatenate([[0], np.cumsum([len(values) for values in taken])])
            self.values = np.concatenate(taken)
        first = self.start[:x.shape[1]]
        self.place = np.where(missing, -1, place + first)


# -- densities --------------------------------------------------------------------------------


def log_weights(draw, prior):
    """Log predictive probability of each block, the new one last, shape (K + 1,)."""
    sizes = draw["n_members"][:len(draw["n_members"]) - 1]
    if prior.components_law is not None:
        return mfm.log_predictive(sizes, draw["concentration"], prior.components_law)
    discount = 0.0 if prior.n_components else draw["discount"]
    return crp.log_predictive(sizes, draw["concentration"], discount, prior.n_components)


def log_densities(rows, draw, prior, log_weight):
    """log(weight_k p(x | block k)) for every row and block: (n_rows, K + 1), in sorted order.

    Missing cells are integrated out. Full covariance: O(n K d^2) as triangular solves (BLAS 3)
    and O(K d^3) for each pattern of missing cells; otherwise O(n K d), and for counts O(K) for
    each distinct value.
    """
    out = np.tile(log_weight, (len(rows.order), 1))
    for part, x in zip(prior.parts, rows.parts, strict=True):
        if isinstance(part, GaussianPrior):
            kappa0, df = part.numbers(draw)
            if part.covariance_type == "full":
                _add_full_log_densities(
                    x, draw["n_members"], draw["mean"], draw["factor"], kappa0, df, out
                )
            else:
                _add_diagonal_log_densities(
                    x, draw["count"], draw["mean"], draw["rate"], kappa0, df / 2,
                    part.covariance_type == "spherical", out,
                )
        else:
            _add_from_table(x.place, _value_table(x, part, draw), out)
    return out


def _value_table(x, part, draw):
    """Log probability of each value of each column in each block: (n_values, K + 1)."""
    if isinstance(part, CategoricalPrior):
        return np.ascontiguousarray(np.log(level_probabilities(part, draw)).T)
    column = np.repeat(np.arange(len(part.columns)), np.diff(x.start))
    r, rate = (array[:, column].T for array in _rates(part, draw))
    value = x.values[:, None]
    return np.ascontiguousarray(
        gammaln(r + value) - gammaln(r) - gammaln(value + 1)
        - r * np.log1p(1.0 / rate) - value * np.log1p(rate)
    )


def level_probabilities(part, draw):
    """Predictive probability of each level in each block, (K + 1, n_levels)."""
    total = draw["level_count"] + np.concatenate(part.pseudo_counts)
    by_column = np.add.reduceat(total, part.level_start[:len(part.columns)], axis=1)
    return total / np.repeat(by_column, np.diff(part.level_start), axis=1)


def _rates(part, draw):
    """Shape and rate of the gamma posterior of each block's Poisson rates, (K + 1, n_columns)."""
    return part.shape + draw["total"], part.rate + draw["cells"]


cdef _add_from_table(
    const Py_ssize_t[:, ::1] place, const double[:, ::1] table, double[:, ::1] out
):
    """out[i] += sum over the observed columns j of table[place[i, j]]"""
    cdef Py_ssize_t i, j, k, t
    with nogil:
        for i in range(place.shape[0]):
            for j in range(place.shape[1]):
                t = place[i, j]
                if t >= 0:
                    for k in range(table.shape[1]):
                        out[i, k] += table[t, k]


cdef _add_full_log_densities(
    _PatternRows rows, const Py_ssize_t[::1] n_members, const double[:, ::1] mean,
    const double[:, :, ::1] factor, double mean_precision, double prior_df, double[:, ::1] out,
):
    """t_df(m, Psi (kappa + 1) / (kappa df)) of the observed features, df = nu - d + 1."""
    cdef Py_ssize_t d = rows.x.shape[1], n_blocks = n_members.shape[0], p, k, i, a, n, o, first
    cdef double kappa, f, df, q, constant
    cdef double[:, ::1] work = np.empty((max(rows.x.shape[0], 1), max(d, 1)))
    cdef double[:, ::1] square = np.empty((d, d))
    with nogil:
        for p in range(rows.start.shape[0] - 1):
            first = rows.start[p]
            n = rows.start[p + 1] - first
            o = rows.n_observed[p]
            for k in range(n_blocks):
                kappa = mean_precision + n_members[k]
                f = kappa / (kappa + 1.0)
                df = prior_df + n_members[k] - d + 1.0
                _factor_of(&factor[k, 0, 0], d, &rows.feature[p, 0], o, o, &square[0, 0])
                _solve_observed(rows, p, &mean[k, 0], o, &square[0, 0], o, &work[0, 0])
                constant = (lgamma(0.5 * (df + o)) - lgamma(0.5 * df)
                            + 0.5 * o * (log(f) - LOG_PI) - 0.5 * linalg.log_det(&square[0, 0], o))
                for i in range(n):
                    q = 0.0
                    for a in range(o):
                        q += (&work[0, 0])[i * o + a] * (&work[0, 0])[i * o + a]
                    out[first + i, k] += constant - 0.5 * (df + o) * log1p(f * q)


cdef void _factor_of(
    const double* factor, Py_ssize_t d, const Py_ssize_t* feature, Py_ssize_t o, Py_ssize_t n,
    double* out,
) noexcept nogil:
    """Factor of the first n permuted features of U^T U, n x n, zeros below; NaN if it failed."""
    cdef Py_ssize_t a, b
    if n == d and o == d:
        memcpy(out, factor, d * d * sizeof(double))  # complete rows: features are in order
    elif permuted_factor(factor, d, feature, n, out) != 0:
        out[0] = NAN
    for a in range(1, n):
        for b in range(a):
            out[a * n + b] = 0.0


cdef void _solve_observed(
    _PatternRows rows, Py_ssize_t p, const double* mean, Py_ssize_t o, const double* factor,
    Py_ssize_t stride, double* out,
) noexcept nogil:
    """out (n, o) = U_oo^-T (x_o - m_o) for the rows of pattern p."""
    cdef Py_ssize_t first = rows.start[p], n = rows.start[p + 1] - first, i, a
    for i in range(n):
        for a in range(o):
            out[i * o + a] = rows.x[first + i, rows.feature[p, a]] - mean[rows.feature[p, a]]
    if stride == o:
        if o > 0:
            linalg.solve_rows(factor, o, out, n)
        return
    for i in range(n):
        solve_leading(factor, stride, o, out + i * o)


cdef _add_diagonal_log_densities(
    const double[:, ::1] x, const double[:, ::1] count, const double[:, ::1] mean,
    const double[:, ::1] rate, double mean_precision, double shape, bint shared,
    double[:, ::1] out,
):
    """Products of t densities with 2 a degrees of freedom; one joint t when rates are shared."""
    cdef Py_ssize_t d = x.shape[1], k, i, j, cells
    cdef double kappa, f, r, z, a, squares, product, total
    cdef bint even
    cdef double[::1] constant = np.empty(d)
    cdef double[::1] factor = np.empty(d)       # of squared residuals
    cdef double[::1] power = np.empty(d)        # a + 1 / 2
    cdef double[::1] joint = np.empty(d + 1)    # by the number of observed cells
    with nogil:
        for k in range(count.shape[0]):
            a = shape
            even = True
            for j in range(d):
                kappa = mean_precision + count[k, j]
                f = 0.5 * kappa / (kappa + 1.0)
                constant[j] = 0.5 * (log(f) - LOG_PI)
                factor[j] = f / rate[k, 0 if shared else j]
                if shared:
                    a += 0.5 * count[k, j]
                else:
                    even = even and count[k, j] == count[k, 0]
                    a = shape + 0.5 * count[k, j]
                    power[j] = a + 0.5
                    constant[j] += lgamma(a + 0.5) - lgamma(a) - 0.5 * log(rate[k, j])
            if shared:
                for cells in range(d + 1):
                    joint[cells] = (lgamma(a + 0.5 * cells) - lgamma(a)
                                    - 0.5 * cells * log(rate[k, 0]))
            for i in range(x.shape[0]):
                total = squares = 0.0
                product = 1.0
                cells = 0
                for j in range(d):
                    r = x[i, j] - mean[k, j]
                    if r != r:
                        continue
                    total += constant[j]
                    z = factor[j] * r * r
                    if shared:
                        squares += z
                        cells += 1
                    elif even and z < LARGE:
                        # All features have one power: one logarithm of a product.
                        product *= 1.0 + z
                        if product > LARGE:
                            total -= power[0] * log(product)
                            product = 1.0
                    else:
                        total -= power[j] * log1p(z)
                if shared:
                    total += joint[cells] - (a + 0.5 * cells) * log1p(squares)
                elif product != 1.0:
                    total -= power[0] * log(product)
                out[i, k] += total


# -- running sums over draws ------------------------------------------------------------------


cdef void _raise_level(
    const double* log_p, Py_ssize_t n_blocks, double* level, double* sums, Py_ssize_t n
) noexcept nogil:
    """Keep sums in units of e^level with level the largest log density met so far."""
    cdef Py_ssize_t k
    cdef double highest = level[0], shrink
    for k in range(n_blocks):
        highest = max(highest, log_p[k])
    if highest > level[0]:
        shrink = exp(level[0] - highest) if level[0] > -INFINITY else 0.0
        for k in range(n):
            sums[k] = sums[k] * shrink if shrink > 0.0 else 0.0  # a sum may be inf
        level[0] = highest


def accumulate_shares(
    const double[:, ::1] log_p, const double[:, ::1] table, double[::1] level, double[:, ::1] sums
):
    """sums[i] += e^-level[i] sum_k exp(log_p[i, k]) table[k], for one draw.

    ``sums`` is (n_rows, n_columns), ``table`` (K + 1, n_columns); ``level`` starts at -inf.
    """
    cdef Py_ssize_t i, k, c
    cdef double w
    with nogil:
        for i in range(log_p.shape[0]):
            _raise_level(&log_p[i, 0], log_p.shape[1], &level[i], &sums[i, 0], sums.shape[1])
            for k in range(log_p.shape[1]):
                w = exp(log_p[i, k] - level[i])
                for c in range(sums.shape[1]):
                    sums[i, c] += w * table[k, c]


# -- missing cells ----------------------------------------------------------------------------


def conditional_moments(rows, draw, prior, log_p):
    """Mean and variance of the missing cells given the observed ones, under one draw.

    ``log_p`` are ``log_densities``. Both are (n_rows, n_features + n_levels), in sorted order: of
    missing numbers first, then of the levels of missing categorical cells 0 and 1, the means of
    which are probabilities. A variance is inf where the conditional t has no second moment.
    """
    w = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    mean, variance = np.zeros((2, len(w), prior.n_values))
    for part, x in zip(prior.parts, rows.parts, strict=True):
        if isinstance(part, CategoricalPrior):
            p = w @ level_probabilities(part, draw)
            holes = np.repeat(x.place < 0, np.diff(part.level_start), axis=1)
            mean[:, prior.n_features:] = np.where(holes, p, 0.0)
            variance[:, prior.n_features:] = np.where(holes, p * (1.0 - p), 0.0)
        elif isinstance(part, PoissonPrior):
            a, b = _rates(part, draw)
            _same_moments(w, a / b, a / b * (1.0 + 1.0 / b), x.place < 0, part.columns, mean,
                          variance)
        else:
            kappa0, df = part.numbers(draw)
            if part.covariance_type == "full":
                _full_moments(x, draw["n_members"], draw["mean"], draw["factor"], kappa0, df, w,
                              part.columns, mean, variance)
            else:
                _diagonal_moments(x, draw["count"], draw["mean"], draw["rate"], kappa0, df / 2,
                                  part.covariance_type == "spherical", w, part.columns, mean,
                                  variance)
    return mean, variance


def _same_moments(w, of_block, variance_of_block, holes, columns, mean, variance):
    """What does not depend on the row: mean and variance (K + 1, n_columns) by block."""
    for c, j in enumerate(columns):
        rows = np.flatnonzero(holes[:, c])
        mean[rows, j] = w[rows] @ of_block[:, c]
        off = of_block[:, c] - mean[rows, j, np.newaxis]
        variance[rows, j] = np.sum(w[rows] * (variance_of_block[:, c] + off**2), axis=1)


cdef _full_moments(
    _PatternRows rows, const Py_ssize_t[::1] n_members, const double[:, ::1] mean,
    const double[:, :, ::1] factor, double mean_precision, double prior_df,
    const double[:, ::1] w, const Py_ssize_t[::1] column, double[:, ::1] first,
    double[:, ::1] square,
):
    """Mean m_m + U_om^T y, variance ((kappa + 1) / kappa + y.y) / (df + |o| - 2) Schur."""
    cdef Py_ssize_t d = rows.x.shape[1], n_blocks = n_members.shape[0]
    cdef Py_ssize_t p, k, i, a, b, j, n, o, start
    cdef double kappa, df, q, location, spread, schur
    cdef double[::1] total = np.zeros(w.shape[0])   # weight of the blocks so far
    cdef double[:, ::1] work = np.empty((max(rows.x.shape[0], 1), max(d, 1)))
    cdef double[:, ::1] factor_of_k = np.empty((d, d))
    cdef double* y
    cdef double* u = &factor_of_k[0, 0]
    with nogil:
        for p in range(rows.start.shape[0] - 1):
            start = rows.start[p]
            n = rows.start[p + 1] - start
            o = rows.n_observed[p]
            if o == d:
                continue
            for k in range(n_blocks):
                kappa = mean_precision + n_members[k]
                df = prior_df + n_members[k] - d + 1.0
                _factor_of(&factor[k, 0, 0], d, &rows.feature[p, 0], o, d, u)
                _solve_observed(rows, p, &mean[k, 0], o, u, d, &work[0, 0])
                for i in range(n):
                    if w[start + i, k] == 0.0:
                        continue
                    y = &work[0, 0] + i * o
                    q = linalg.dot(o, y, y)
                    spread = ((kappa + 1.0) / kappa + q) / (df + o - 2.0)
                    if df + o <= 2.0:
                        spread = INFINITY
                    for a in range(o, d):
                        j = rows.feature[p, a]
                        location = mean[k, j]
                        for b in range(o):
                            location += u[b * d + a] * y[b]
                        schur = 0.0
                        for b in range(o, a + 1):
                            schur += u[b * d + a] * u[b * d + a]
                        j = column[j]
                        merge_part(total[start + i], w[start + i, k], location, spread * schur,
                                   &first[start + i, j], &square[start + i, j])
                    total[start + i] += w[start + i, k]


cdef _diagonal_moments(
    const double[:, ::1] x, const double[:, ::1] count, const double[:, ::1] mean,
    const double[:, ::1] rate, double mean_precision, double shape, bint shared,
    const double[:, ::1] w, const Py_ssize_t[::1] column, double[:, ::1] first,
    double[:, ::1] square,
):
    """Features are independent given the block; a shared variance learns from observed cells."""
    cdef Py_ssize_t d = x.shape[1], n_blocks = count.shape[0], k, i, j, c
    cdef double r, kappa, a, b, variance, total
    with nogil:
        for i in range(x.shape[0]):
            total = 0.0
            for k in range(n_blocks):
                if w[i, k] == 0.0:
                    continue
                a = shape
                b = rate[k, 0]
                if shared:
                    for j in range(d):
                        a += 0.5 * count[k, j]
                        r = x[i, j] - mean[k, j]
                        if r == r:
                            kappa = mean_precision + count[k, j]
                            a += 0.5
                            b += 0.5 * kappa / (kappa + 1.0) * r * r
                for j in range(d):
                    if x[i, j] == x[i, j]:
                        continue
                    if not shared:
                        a = shape + 0.5 * count[k, j]
                        b = rate[k, j]
                    kappa = mean_precision + count[k, j]
                    variance = b / (a - 1.0) * ((kappa + 1.0) / kappa) if a > 1.0 else INFINITY
                    c = column[j]
                    merge_part(total, w[i, k], mean[k, j], variance, &first[i, c], &square[i, c])
                total += w[i, k]


# -- simulation -------------------------------------------------------------------------------


def draw_full_cells(
    _PatternRows rows, const Py_ssize_t[::1] n_members, const double[:, ::1] mean,
    const double[:, :, ::1] factor, double mean_precision, const Py_ssize_t[::1] block,
    const double[:, ::1] normal, const double[::1] gamma, double[:, ::1] out,
):
    """Put x_m = m_m + U_om^T y + root U_mm^T z into ``out``, each row given its block.

    A normal z is divided by the root of a gamma draw of shape (df + |o|) / 2: the conditional t
    law, where the number of its degrees of freedom cancels.
    """
    cdef Py_ssize_t d = rows.x.shape[1], p, k, i, a, b, n, o, first
    cdef double kappa, root, value
    cdef bint any_row
    cdef double[:, ::1] work = np.empty((max(rows.x.shape[0], 1), max(d, 1)))
    cdef double[:, ::1] factor_of_k = np.empty((d, d))
    cdef double* y
    cdef double* u = &factor_of_k[0, 0]
    with nogil:
        for p in range(rows.start.shape[0] - 1):
            first = rows.start[p]
            n = rows.start[p + 1] - first
            o = rows.n_observed[p]
            if o == d:
                continue
            for k in range(n_members.shape[0]):
                any_row = False
                for i in range(first, first + n):
                    any_row = any_row or block[i] == k
                if not any_row:
                    continue
                kappa = mean_precision + n_members[k]
                _factor_of(&factor[k, 0, 0], d, &rows.feature[p, 0], o, d, u)
                _solve_observed(rows, p, &mean[k, 0], o, u, d, &work[0, 0])
                for i in range(n):
                    if block[first + i] != k:
                        continue
                    y = &work[0, 0] + i * o
                    root = sqrt(0.5 * ((kappa + 1.0) / kappa + linalg.dot(o, y, y))
                                / gamma[first + i])
                    for a in range(o, d):
                        value = mean[k, rows.feature[p, a]]
                        for b in range(o):
                            value += u[b * d + a] * y[b]
                        for b in range(o, a + 1):
                            value += root * u[b * d + a] * normal[first + i, b]
                        out[first + i, rows.feature[p, a]] = value


def sample_row(draw, prior, k, rng):
    """One row from the predictive of block k, shape (n_features,); rng is a RandomState."""
    out = np.empty(prior.n_features)
    for part in prior.parts:
        if isinstance(part, CategoricalPrior):
            out[part.columns] = _sample_levels(draw, part, k, rng)
        elif isinstance(part, PoissonPrior):
            a, b = _rates(part, draw)
            out[part.columns] = rng.poisson(rng.standard_gamma(a[k]) / b[k])
        else:
            out[part.columns] = _sample_t(draw, part, k, rng)
    return out


def _sample_levels(draw, part, k, rng):
    p = level_probabilities(part, {"level_count": draw["level_count"][k:k + 1]})[0]
    start = part.level_start
    return [
        rng.choice(stop - begin, p=p[begin:stop])
        for begin, stop in itertools.pairwise(start)
    ]


def _sample_t(draw, part, k, rng):
    mean = draw["mean"][k]
    z = rng.standard_normal(len(mean))
    kappa0, df = part.numbers(draw)
    if part.covariance_type == "full":
        n = draw["n_members"][k]
        kappa = kappa0 + n
        df = df + n - len(mean) + 1
        spread = (kappa + 1) / kappa / max(rng.chisquare(df), LEAST_GAMMA)
        return mean + np.sqrt(spread) * (z @ np.triu(draw["factor"][k]))
    count = draw["count"][k]
    kappa = kappa0 + count
    seen = count.sum() if part.covariance_type == "spherical" else count
    a = (df + seen) / 2
    variance = draw["rate"][k] / np.maximum(rng.standard_gamma(a), LEAST_GAMMA)
    return mean + np.sqrt(variance * ((kappa + 1) / kappa)) * z
