"""What one draw of the scale model says of rows: scores, energies, densities, missing cells.

Rows are standardised, NaN where an entry is missing, which is left out of every sum. A draw is a
state as `_model` describes it. All layers of a row are functions of standard normal numbers
z, y = z sqrt(1 + A^2) with the amplitude A from above: of these the chains below draw, so that
there is one kind of move however many layers there are.

A row's random numbers depend on seed, t and the row's own values alone: the functions may be
called from several threads on any blocks, and a row's answer is the same in any company, up to the
rounding of matrix products.
"""

from libc.math cimport cos, fabs, log, sin, sqrt
from libc.stdint cimport uint64_t
from numpy.random cimport bitgen_t

from skbnp.numerics cimport rng as random
from skbnp.numerics._moments cimport merge_part
from skbnp.numerics.rng cimport RowStream
from skbnp.numerics.special cimport PI

from functools import lru_cache

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri
from scipy.stats.qmc import Sobol

from skbnp.numerics.rows import row_keys

cdef enum:
    MOST_SHRINKS = 200      # of a slice, beyond which its interval is empty but for rounding

LOG_N_POINTS = 12           # of Sobol's sequence
MOST_SOBOL = 6              # factors of a component integrated by it
LEAST_EFFECTIVE = 50.0      # points; with fewer a row is annealed
N_PARTICLES, N_TEMPERATURES = 32, 32
ROWS_AT_A_TIME = 256
cdef double BRACKET = 8.0                   # of univariate slices, in standard deviations
cdef double HUGE_PRODUCT = 1e150
cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15   # 2^64 over the golden ratio, between components
HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


# -- energies ---------------------------------------------------------------------------------


def layers_of(draw):
    """Loadings of each layer, the first on the features."""
    loadings = [np.asarray(draw["loadings1"], dtype=np.float64)]
    while f"loadings{len(loadings) + 1}" in draw:
        loadings.append(np.asarray(draw[f"loadings{len(loadings) + 1}"], dtype=np.float64))
    return loadings


def energy_per_square(draw, level=1, feature_variance=None):
    """What a factor's squared score adds to the energy, (K_level,), and that of the background.

    Energies are relative to the variances of what is below: the features' (1 in standard units),
    or the training rows' mean variances of the factors below (D12.1).
    """
    W = layers_of(draw)[level - 1]
    if level == 1:
        below = np.ones(len(W)) if feature_variance is None else np.asarray(feature_variance)
        drift = draw["hyper"][1]
        return (1 + drift**2) * (1 / below) @ W**2, np.sum(draw["noise_variance"] / below)
    amplitude = np.asarray(draw[f"scores{level}"], dtype=np.float64) @ W.T
    below = 1 + np.mean(amplitude**2, axis=0)
    return (1 / below) @ W**2, np.sum(1 / below)


def feature_labels(draw):
    """The factor with the largest part in a feature's variance, -1 where noise has it."""
    y = np.asarray(draw["scores1"], dtype=np.float64)
    part = np.asarray(draw["loadings1"]) ** 2 * np.mean(y**2, axis=0)
    return np.column_stack([draw["noise_variance"], part]).argmax(axis=1) - 1


def sample_rows(draw, n_rows, rng):
    """New rows from the top of the hierarchy down, (n_rows, n_features)."""
    amplitude = amplitudes(layers_of(draw), rng.normal(size=(n_rows, n_hidden(draw))))
    noise = rng.normal(size=amplitude.shape)
    mean = draw["location"] + draw["hyper"][1] * amplitude
    return mean + np.sqrt(amplitude**2 + draw["noise_variance"]) * noise


def n_hidden(draw):
    """Factors of all layers."""
    return sum(W.shape[1] for W in layers_of(draw))


def amplitudes(loadings, z):
    """A of the features given standard normal numbers (n_rows, D) of all layers' factors."""
    ends = np.cumsum([W.shape[1] for W in loadings])
    spread = 1.0
    for W, end in zip(loadings[::-1], ends[::-1]):
        amplitude = z[:, end - W.shape[1]:end] * spread @ W.T
        spread = np.sqrt(1 + amplitude**2)
    return amplitude


# -- chains of a row's factors ----------------------------------------------------------------


cdef class Row:
    """The factors of one row and moves that leave their law given the row unchanged.

    Units are numbered layer by layer from the first, z, y (n_hidden,); ``amplitude`` (n_features,)
    always belongs to z. Edges are stored by child (units of the layers, then features) and those
    into features also by parent.
    """

    cdef:
        readonly Py_ssize_t n_hidden, n_first, n_features
        readonly double drift
        Py_ssize_t[::1] start, parent               # (n_hidden + n_features + 1,), (n_edges,)
        double[::1] weight
        Py_ssize_t[::1] feature_start, feature      # (n_first + 1,), edges of the first layer
        double[::1] feature_weight
        double[::1] noise, location                 # (n_features,)
        double[::1] z, y, amplitude, off            # off: the row less its location
        double[::1] z_old, normals, amplitude_old   # scratch
        Py_ssize_t[::1] seen                        # features observed, first n_seen
        unsigned char[::1] is_seen
        Py_ssize_t n_seen
        double log_likelihood

    def __init__(self, loadings, noise_variance, location, double drift):
        widths = [W.shape[1] for W in loadings]
        offsets = np.concatenate([[0], np.cumsum(widths)])
        D, N = sum(widths), len(noise_variance)
        self.n_hidden, self.n_features, self.n_first, self.drift = D, N, widths[0], drift
        children, parents, weights = [], [], []
        for level, W in enumerate(loadings):
            child, parent = np.nonzero(W)
            weights.append(W[child, parent])
            children.append(child + (offsets[level - 1] if level > 0 else D))
            parents.append(parent + offsets[level])
        child, parent, weight = map(np.concatenate, (children, parents, weights))
        order = np.argsort(child, kind="stable")
        self.start = np.searchsorted(child[order], np.arange(D + N + 1)).astype(np.intp)
        self.parent, self.weight = parent[order].astype(np.intp), weight[order].copy()
        # The first layer's edges stand first in all lists.
        order = np.argsort(parents[0], kind="stable")
        below = np.searchsorted(parents[0][order], np.arange(self.n_first + 1))
        self.feature_start = below.astype(np.intp)
        # One more than there are, so that a factor without a feature has an address.
        self.feature = np.append(children[0][order] - D, 0).astype(np.intp)
        self.feature_weight = np.append(weights[0][order], 0.0)
        self.noise = np.array(noise_variance, dtype=np.float64)
        self.location = np.array(location, dtype=np.float64)
        self.z, self.y, self.z_old, self.normals = (np.zeros(D) for _ in range(4))
        self.amplitude, self.off, self.amplitude_old = (np.zeros(N) for _ in range(3))
        self.seen = np.zeros(N, dtype=np.intp)
        self.is_seen = np.zeros(N, dtype=np.uint8)

    cdef void load(self, const double* x, bitgen_t* rng) noexcept nogil:
        """Take a row; start from the prior."""
        cdef Py_ssize_t n
        self.n_seen = 0
        for n in range(self.n_features):
            self.is_seen[n] = x[n] == x[n]
            if self.is_seen[n]:
                self.off[n] = x[n] - self.location[n]
                self.seen[self.n_seen] = n
                self.n_seen += 1
        self.start_anew(rng)

    cdef void start_anew(self, bitgen_t* rng) noexcept nogil:
        cdef Py_ssize_t d
        for d in range(self.n_hidden):
            self.z[d] = random.normal(rng)
        self.measure()

    cdef void measure(self) noexcept nogil:
        """Scores, amplitudes and log likelihood given z."""
        cdef Py_ssize_t d, e, D = self.n_hidden
        cdef double total
        for d in range(D - 1, -1, -1):
            total = 0.0
            for e in range(self.start[d], self.start[d + 1]):
                total += self.weight[e] * self.y[self.parent[e]]
            self.y[d] = self.z[d] * sqrt(1.0 + total * total)
        for d in range(self.n_features):
            total = 0.0
            for e in range(self.start[D + d], self.start[D + d + 1]):
                total += self.weight[e] * self.y[self.parent[e]]
            self.amplitude[d] = total
        self.log_likelihood = self._of_features(&self.seen[0], self.n_seen)

    cdef double _of_features(self, const Py_ssize_t* feature, Py_ssize_t m) noexcept nogil:
        """sum log N(off; drift A, A^2 + s^2) over some of the features, without 2 pi."""
        cdef Py_ssize_t i, n
        cdef double total = 0.0, product = 1.0, variance, r
        for i in range(m):
            n = feature[i]
            if not self.is_seen[n]:
                continue
            variance = self.amplitude[n] * self.amplitude[n] + self.noise[n]
            r = self.off[n] - self.drift * self.amplitude[n]
            total -= 0.5 * r * r / variance
            product *= variance
            if not 1.0 / HUGE_PRODUCT < product < HUGE_PRODUCT:
                total -= 0.5 * log(product)
                product = 1.0
        return total - 0.5 * log(product)

    cdef void sweep(self, bitgen_t* rng, double heat) noexcept nogil:
        """One pass at the likelihood to the power ``heat``."""
        cdef Py_ssize_t d
        self._elliptical_slice(rng, heat)
        for d in range(self.n_hidden):
            if d < self.n_first:
                self._flip(d, rng, heat)
                self._slice_first(d, rng, heat)
            else:
                self._slice_upper(d, rng, heat)

    cdef void _elliptical_slice(self, bitgen_t* rng, double heat) noexcept nogil:
        """All of z at once (Murray, Adams & MacKay 2010)."""
        cdef Py_ssize_t d, _
        cdef double least = heat * self.log_likelihood + log(random.uniform(rng))
        cdef double angle, low, high, u, v
        for d in range(self.n_hidden):
            self.z_old[d] = self.z[d]
            self.normals[d] = random.normal(rng)
        angle = 2.0 * PI * random.uniform(rng)
        low, high = angle - 2.0 * PI, angle
        for _ in range(MOST_SHRINKS):
            u, v = cos(angle), sin(angle)
            for d in range(self.n_hidden):
                self.z[d] = u * self.z_old[d] + v * self.normals[d]
            self.measure()
            if heat * self.log_likelihood >= least:
                return
            if angle < 0.0:
                low = angle
            else:
                high = angle
            angle = low + (high - low) * random.uniform(rng)
        for d in range(self.n_hidden):
            self.z[d] = self.z_old[d]
        self.measure()

    cdef double _moved(self, Py_ssize_t d, double y) noexcept nogil:
        """Give a first-layer factor the score y; how much the log likelihood gains."""
        cdef Py_ssize_t e, start = self.feature_start[d], m = self.feature_start[d + 1] - start
        cdef double before = self._of_features(&self.feature[start], m), step = y - self.y[d]
        for e in range(start, start + m):
            self.amplitude[self.feature[e]] += step * self.feature_weight[e]
        self.y[d] = y
        return self._of_features(&self.feature[start], m) - before

    cdef void _flip(self, Py_ssize_t d, bitgen_t* rng, double heat) noexcept nogil:
        cdef double gain = self._moved(d, -self.y[d])
        if log(random.uniform(rng)) < heat * gain:
            self.z[d] = -self.z[d]
            self.log_likelihood += gain
        else:
            self._moved(d, -self.y[d])

    cdef void _slice_first(self, Py_ssize_t d, bitgen_t* rng, double heat) noexcept nogil:
        """One z of the first layer, whose features alone change."""
        cdef double z = self.z[d], y = self.y[d], spread = 1.0, total = 0.0, low, high, new
        cdef double least = log(random.uniform(rng)) - 0.5 * z * z, gain
        cdef Py_ssize_t e, _
        for e in range(self.start[d], self.start[d + 1]):
            total += self.weight[e] * self.y[self.parent[e]]
        spread = sqrt(1.0 + total * total)
        low = z - BRACKET * random.uniform(rng)
        high = low + BRACKET
        for _ in range(MOST_SHRINKS):
            new = low + (high - low) * random.uniform(rng)
            gain = self._moved(d, new * spread)
            if heat * gain - 0.5 * new * new >= least:
                self.z[d] = new
                self.log_likelihood += gain
                return
            self._moved(d, y)
            if new < z:
                low = new
            else:
                high = new

    cdef void _slice_upper(self, Py_ssize_t d, bitgen_t* rng, double heat) noexcept nogil:
        """One z of an upper layer, with all that is below it."""
        cdef double z = self.z[d], low, high, new
        cdef double least = heat * self.log_likelihood + log(random.uniform(rng)) - 0.5 * z * z
        cdef Py_ssize_t _
        low = z - BRACKET * random.uniform(rng)
        high = low + BRACKET
        for _ in range(MOST_SHRINKS):
            new = low + (high - low) * random.uniform(rng)
            self.z[d] = new
            self.measure()
            if heat * self.log_likelihood - 0.5 * new * new >= least:
                return
            if new < z:
                low = new
            else:
                high = new
        self.z[d] = z
        self.measure()


def row_moments(draw, X, seed, t=0, n_burn=20, n_kept=100, feature_variance=None):
    """Expectations of what hides behind rows, given the loadings of a draw.

    Parameters
    ----------
    draw : dict
    X : ndarray of shape (n_rows, n_features)
    seed : int
    t : int, default=0
        Number of the draw.
    n_burn, n_kept : int
        Sweeps of a row's own chain.
    feature_variance : ndarray of shape (n_features,), default=None
        What energies are relative to; 1 if not given.

    Returns
    -------
    moments : dict
        "mean" E y, "magnitude" E|y|, "energy" E y^2 of the first layer's factors; "amplitude" E A,
        "amplitude_square" E A^2 and "amplitude_variance" Var A of the features; "largest", a list
        over the layers of arrays (n_rows, K + 1): how probably the background (first) or a factor
        has the largest energy.
    """
    loadings = layers_of(draw)
    cdef Row row = Row(loadings, draw["noise_variance"], draw["location"], draw["hyper"][1])
    cdef Py_ssize_t i, j, d, level, best, k, first, N = row.n_features, K = row.n_first
    cdef Py_ssize_t burn = n_burn, kept = n_kept, n_layers = len(loadings), n_rows = len(X)
    cdef uint64_t seed_ = seed, t_ = t
    cdef double share = 1.0 / n_kept, energy, most
    cdef const double[:, ::1] x = np.ascontiguousarray(X, dtype=np.float64)
    cdef const uint64_t[::1] key = row_keys(np.asarray(x))
    cdef double[:, ::1] mean, magnitude, square, largest
    cdef double[:, ::1] amplitude, amplitude_square, amplitude_spread
    cdef RowStream stream
    mean, magnitude, square = (np.zeros((n_rows, K)) for _ in range(3))
    amplitude, amplitude_square, amplitude_spread = (np.zeros((n_rows, N)) for _ in range(3))
    scales = [energy_per_square(draw, i + 1, feature_variance) for i in range(n_layers)]
    cdef double[::1] per_square = np.concatenate([scale[0] for scale in scales])
    cdef double[::1] background = np.array([scale[1] for scale in scales])
    ends = np.cumsum([W.shape[1] for W in loadings])
    cdef Py_ssize_t[::1] end = np.append(0, ends).astype(np.intp)
    # Background and factors of each level one after the other: unit d of level l is column d + l.
    largest = np.zeros((n_rows, row.n_hidden + n_layers))
    with nogil:
        for i in range(n_rows):
            random.start_row_stream(&stream, seed_, t_, key[i])
            row.load(&x[i, 0], &stream.rng)
            for j in range(burn + kept):
                row.sweep(&stream.rng, 1.0)
                if j < burn:
                    continue
                for d in range(K):
                    mean[i, d] += share * row.y[d]
                    magnitude[i, d] += share * fabs(row.y[d])
                    square[i, d] += share * row.y[d] * row.y[d]
                for d in range(N):
                    amplitude_square[i, d] += share * row.amplitude[d] * row.amplitude[d]
                    merge_part(j - burn, 1.0, row.amplitude[d], 0.0, &amplitude[i, d],
                               &amplitude_spread[i, d])
                for level in range(n_layers):
                    first, most, best = end[level], background[level], -1
                    for k in range(first, end[level + 1]):
                        energy = per_square[k] * row.y[k] * row.y[k]
                        if energy > most:
                            most, best = energy, k - first
                    largest[i, first + level + 1 + best] += share
    return {
        "mean": np.asarray(mean),
        "magnitude": np.asarray(magnitude),
        "energy": np.asarray(square),
        "amplitude": np.asarray(amplitude),
        "amplitude_square": np.asarray(amplitude_square),
        "amplitude_variance": np.asarray(amplitude_spread) * share,
        "largest": np.split(np.asarray(largest), ends[:n_layers - 1] + np.arange(1, n_layers), 1),
    }


def cell_moments(draw, X, seed, t=0, n_burn=20, n_kept=20):
    """Mean and variance (n_rows, n_features) of cells, were they not observed, given the others.

    Only those of the missing cells are of that kind: observed ones have shaped the factors.
    """
    found = row_moments(draw, X, seed, t, n_burn, n_kept)
    drift = draw["hyper"][1]
    variance = found["amplitude_square"] + draw["noise_variance"]
    variance += drift**2 * found["amplitude_variance"]
    return draw["location"] + drift * found["amplitude"], variance


# -- densities --------------------------------------------------------------------------------


def parts_of(draw):
    """Features and factors that hang together: lists of (features, loadings of each layer).

    Features without a factor have no part.
    """
    loadings = layers_of(draw)
    N = len(loadings[0])
    offsets = N + np.cumsum([0] + [W.shape[1] for W in loadings])
    rows, columns, below = [], [], 0
    for W, offset in zip(loadings, offsets):
        child, parent = np.nonzero(W)
        rows.append(child + below)
        columns.append(parent + offset)
        below = offset
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    size = N + n_hidden(draw)
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    _, label = connected_components(graph, directed=False)
    of_layer = [np.arange(len(W)) for W in loadings[:1]]
    of_layer += [offset + np.arange(W.shape[1]) for W, offset in zip(loadings, offsets)]
    found = []
    for part in np.unique(label[columns]):
        inside = [np.flatnonzero(label[units] == part) for units in of_layer]
        if len(inside[0]):
            of_part = [W[np.ix_(*inside[i:i + 2])] for i, W in enumerate(loadings)]
            found.append((inside[0], [W for W in of_part if W.shape[1]]))
    return found


def log_density(draw, X, seed, t=0, log_n_points=LOG_N_POINTS, anneals=True, parts=None):
    """Log density of what is observed of each row, and how well it is known.

    Parts that share no factor are independent. One with a single factor is integrated on a grid;
    others by 2^``log_n_points`` points of Sobol's sequence run through the hierarchy, and where
    there are more than six factors or too few of the points count, by annealed importance sampling
    (Neal 2001), unless it may not take so long: ``anneals``. ``parts`` are those of ``parts_of``.

    Returns
    -------
    log_density : ndarray of shape (n_rows,)
    relative_variance : ndarray of shape (n_rows,)
        Of the density's Monte Carlo estimate: 1 / its effective number of points.
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    drift = draw["hyper"][1]
    free = ~layers_of(draw)[0].any(axis=1)
    off = X - draw["location"]
    cells = -0.5 * off**2 / draw["noise_variance"] - 0.5 * np.log(draw["noise_variance"])
    total = np.nansum(np.where(free, cells, 0.0), axis=1)
    total -= HALF_LOG_2PI * np.sum(~np.isnan(X), axis=1)
    variance = np.zeros(len(X))
    parts = parts_of(draw) if parts is None else parts
    for number, (features, loadings) in enumerate(parts):
        noise, here = draw["noise_variance"][features], off[:, features]
        n_factors = sum(W.shape[1] for W in loadings)
        if n_factors == 1:
            value, _ = _over_points(here, noise, drift, *_grid(loadings[0][:, 0], noise, drift))
            total += value
            continue
        row = Row(loadings, noise, np.zeros(len(features)), drift)
        if n_factors <= MOST_SOBOL or not anneals:
            shift = np.random.default_rng([seed, t, number]).random(n_factors)
            z = (_sobol(n_factors, log_n_points) + shift) % 1.0
            z = ndtri(np.clip(z, 1e-12, 1 - 1e-12))
            weight = np.full(len(z), -np.log(len(z)))
            value, spread = _over_points(here, noise, drift, amplitudes(loadings, z), weight)
            again = np.flatnonzero((spread > 1.0 / LEAST_EFFECTIVE) & anneals)
        else:
            value, spread = np.empty(len(X)), np.empty(len(X))
            again = np.arange(len(X))
        value[again], spread[again] = _annealed(row, here[again], seed, t, number)
        total += value
        variance += spread
    return total, variance


@lru_cache(maxsize=None)
def _sobol(n_factors, log_n_points):
    return Sobol(n_factors, scramble=False).random_base2(log_n_points)


def _grid(w, noise, drift):
    """Amplitudes (n_nodes, n_features) and log weights of a rule for N(y; 0, 1) on the line.

    With y = d sinh(u) the trapezoid is as fine as d where |w y| is below the noise and as fine as
    y beyond: at both the likelihood's own scale.
    """
    finest = min(1.0, np.min(np.sqrt(noise) / np.abs(w)))
    step = min(0.05, 0.25 / np.sqrt(len(w) * (1 + drift**2)))
    end = np.arcsinh(1000.0 / finest)
    u = np.linspace(-end, end, 2 * int(np.ceil(end / step)) + 1)
    y = finest * np.sinh(u)
    weight = np.log(finest * np.cosh(u) * (u[1] - u[0])) - 0.5 * y**2 - HALF_LOG_2PI
    return y[:, np.newaxis] * w, weight


def _over_points(off, noise, drift, amplitude, log_weight):
    """Log of sum_j weight_j N(off | amplitude_j) without 2 pi, and its relative variance."""
    variance = amplitude**2 + noise
    seen = ~np.isnan(off)
    filled = np.where(seen, off, 0.0)
    shift = drift * amplitude
    constant = shift**2 / variance + np.log(variance)
    value, spread = np.empty(len(off)), np.empty(len(off))
    for start in range(0, len(off), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        exponent = filled[rows] ** 2 @ (1 / variance).T
        exponent -= 2 * filled[rows] @ (shift / variance).T
        exponent += seen[rows].astype(float) @ constant.T
        exponent = log_weight - 0.5 * exponent
        top = exponent.max(axis=1, keepdims=True)
        np.exp(exponent - top, out=exponent)
        total = exponent.sum(axis=1)
        value[rows] = top[:, 0] + np.log(total)
        spread[rows] = np.maximum(np.sum(exponent**2, axis=1) / total**2 - 1 / len(log_weight), 0.0)
    return value, spread


def _annealed(Row row, X, seed, t, number):
    """The same by particles that go from the prior to the row's own law."""
    cdef const double[:, ::1] x = np.ascontiguousarray(X)
    cdef const uint64_t[::1] key = row_keys(np.asarray(x))
    cdef Py_ssize_t i, j, k, n_particles = N_PARTICLES, steps = N_TEMPERATURES
    cdef double[:, ::1] weight = np.zeros((len(X), n_particles))
    cdef double heat, before
    cdef uint64_t seed_ = seed, t_ = t, part = number
    cdef RowStream stream
    with nogil:
        for i in range(x.shape[0]):
            random.start_row_stream(&stream, seed_, t_, key[i] + GOLDEN * (part + 1))
            row.load(&x[i, 0], &stream.rng)
            for j in range(n_particles):
                if j > 0:
                    row.start_anew(&stream.rng)
                before = 0.0
                for k in range(1, steps + 1):
                    heat = (<double> k / steps) ** 3
                    weight[i, j] += (heat - before) * row.log_likelihood
                    if k < steps:
                        row.sweep(&stream.rng, heat)
                    before = heat
    value = np.asarray(weight)
    top = value.max(axis=1, keepdims=True)
    share = np.exp(value - top)
    total = share.sum(axis=1)
    spread = np.maximum(np.sum(share**2, axis=1) / total**2 - 1 / n_particles, 0.0)
    return top[:, 0] + np.log(total / n_particles), spread
