"""What one draw of the mixture says of rows: densities, missing cells, scores.

mathematics/infinite_factor_clusterer, section 7.

Given cluster g the observed cells of a row follow N(W m_g + o_g, W diag(v_g u) W' + diag(s_g)), or
a multivariate t law of that scale: rows and columns of missing cells are left out. Everything goes
through K x K matrices, one for each component and pattern of missing cells (Woodbury). Layers above
make u random: each cluster then stands for several components, one for each of a few draws of the
upper scores from their prior. Cells known to be below the detection limit are taken in one after
the other, each time replacing the law of the scores by the normal one of its mean and variance. The
density is exact for one such cell, an approximation for more (assumed density filtering).
"""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln, log_ndtr, softmax, stdtr

from skbnp.infinite_factor_clusterer._components import Components, new_clusters, upper_variances
from skbnp.likelihoods.dense_rows import DenseRows
from skbnp.numerics.moments import merged

# Chances of censored cells are at least this: their logarithms are kept finite.
SMALLEST_CHANCE = 1e-300
# Numbers that conditioning some components on rows may take at a time, and those of all draws
# together; numbers that the loadings of these may take.
_MOST_NUMBERS, _FEW_NUMBERS, _MOST_LOADINGS = 4_000_000, 1_000_000, 1_000_000
# Up to so many features, and ratios of a cell's variance to its noise, covariances of components
# are factored as they stand: nothing much cancels, and vector code for rows beats K x K matrices.
_MOST_DENSE_FEATURES, _LARGEST_RATIO = 32, 1e8


@dataclass(frozen=True)
class Rows:
    """Standardised rows by pattern: what does not depend on the draw.

    ``x`` is 0 where nothing was read, ``seen`` is 1 where something was, ``patterns`` are its
    distinct rows and ``pattern`` says which of them a row has; ``below`` are the censored cells.
    ``kept`` is what the components of all draws together say of the rows.
    """

    x: np.ndarray
    seen: np.ndarray
    patterns: np.ndarray
    pattern: np.ndarray
    below: np.ndarray
    limit: np.ndarray | None
    kept: dict = field(default_factory=dict, compare=False)

    @cached_property
    def censored(self):
        """Rows with a censored cell, by position."""
        return np.flatnonzero(self.below.any(axis=1))

    @cached_property
    def dense(self):
        """The same for laws that are given by their covariances."""
        return DenseRows(self.x, self.patterns.astype(bool), self.pattern)


def as_rows(X, limit=None):
    """Rows of standardised X, NaN where missing and -inf where below the detection limit."""
    seen = np.isfinite(X)
    # Rows of bits are compared faster than rows of bools.
    _, first, pattern = np.unique(
        np.packbits(seen, axis=1), axis=0, return_index=True, return_inverse=True
    )
    patterns = seen[first].astype(np.float64)
    x = np.where(seen, X, 0.0)
    return Rows(x, seen.astype(np.float64), patterns, pattern.ravel(), np.isneginf(X), limit)


class Together:
    """The components of several draws in one: few rows meet all of them at once.

    The draws have loadings of their own, (C, n_features, K), with factors of no loadings where a
    draw has fewer. What depends on the pattern of missing cells alone is kept for the next rows.
    """

    def __init__(self, laws):
        sizes, n_factors = [len(one.cluster) for one in laws], [one.spread.shape[1] for one in laws]
        most = max(n_factors)

        def joined(name, filler=None):
            values = [getattr(one, name) for one in laws]
            if filler is not None:
                more = zip(values, n_factors, strict=True)
                values = [np.pad(x, ((0, 0), (0, most - k)), constant_values=filler)
                          for x, k in more]  # fmt: skip
            return np.concatenate(values)

        loadings = [np.pad(one.loadings, ((0, 0), (0, most - k)))
                    for one, k in zip(laws, n_factors, strict=True)]  # fmt: skip
        self.start = np.cumsum([0, *sizes])
        self.parts = Components(
            log_weight=np.zeros(0),
            cluster=joined("cluster"),
            log_share=joined("log_share"),
            loadings=np.repeat(loadings, sizes, axis=0),
            score_mean=joined("score_mean", 0.0),
            spread=joined("spread", 1.0),
            factor=np.ones((1, most)),
            noise=joined("noise"),
            offset=joined("offset"),
            df=np.repeat([one.df for one in laws], sizes),
        )
        self._of_pattern = None

    def is_for(self, rows):
        """Whether the rows are few enough, without cells below the limit."""
        n = _numbers(rows, self.parts, len(self.parts.cluster))
        return n <= _FEW_NUMBERS and not rows.censored.size

    def given(self, rows):
        """What all components say of the rows, worked out at the first call."""
        if rows.kept.get("together") is not self:
            pattern = rows.patterns.tobytes()
            kept = self._of_pattern
            if kept is None or kept[0] != pattern:
                kept = self._of_pattern = pattern, _laws_of_scores(rows, self.parts, slice(None))
            rows.kept["given"] = _given_of(rows, self.parts, slice(None), kept[1])
            rows.kept["together"] = self
        return rows.kept["given"]


def together(laws):
    """The components of the draws of a prediction, such that few rows meet all of them at once."""
    largest = sum(len(one.cluster) for one in laws) * max(one.loadings.size for one in laws)
    if largest > _MOST_LOADINGS or any(len(one.factor) > 1 for one in laws):
        return laws
    whole = Together(laws)
    return [replace(one, together=whole, number=t) for t, one in enumerate(laws)]


# -- components ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Given:
    """What components say of rows, the first axis over components: ``log_density`` (C, n).

    Scores given a row's readings have the mean ``scores`` (C, n, K) and the covariance
    ``covariance`` (C, n_patterns, K, K), but ``own`` in the rows ``which``; tails multiply it by
    ``inflation`` (C, n), as they do the noise.
    """

    log_density: np.ndarray
    scores: np.ndarray
    covariance: np.ndarray
    which: np.ndarray
    own: np.ndarray
    inflation: np.ndarray

    def part(self, components, n_factors):
        """Of some components, a slice, the scores of factors behind ``n_factors`` left out."""
        k = slice(n_factors)
        return _Given(
            self.log_density[components],
            self.scores[components, :, k],
            self.covariance[components, :, k, k],
            self.which,
            self.own[components, :, k, k],
            self.inflation[components],
        )


def _numbers(rows, parts, n_components):
    """How many numbers it takes to condition so many components on rows."""
    (n, n_features), n_factors = rows.x.shape, parts.loadings.shape[-1]
    n_patterns = len(rows.patterns)
    of_row = n_features + n_factors ** (1 if n_patterns == 1 else 2)
    return n_components * len(parts.factor) * (n * of_row + n_patterns * n_factors**2)


def _slices(rows, parts, n_components):
    """The first so many components, cut into slices that are worked on together."""
    size = max(1, _MOST_NUMBERS // max(1, _numbers(rows, parts, 1)))
    return [slice(c, min(c + size, n_components)) for c in range(0, n_components, size)]


def _log_densities(rows, parts, n_components):
    """log density of what is known of each row, given each of the first so many: (C, n)."""
    if (laws := _dense_laws(rows, parts, n_components)) is not None:
        return rows.dense.log_densities(*laws)
    if rows.censored.size or len(parts.factor) == 1:
        return np.concatenate([one.log_density for one in _given(rows, parts, n_components)])
    return np.concatenate(
        [
            _mean_density(np.moveaxis(_conditions(rows, parts, these)[0], 1, 0))
            for these in _slices(rows, parts, n_components)
        ]
    )


def _dense_laws(rows, parts, n_components):
    """Means, scale matrices and degrees of freedom of components, or None: they are not for that.

    For few rows the components of all draws are conditioned together instead; censored cells and
    layers above the clusters need the scores.
    """
    is_narrow = rows.x.shape[1] <= _MOST_DENSE_FEATURES and parts.loadings.ndim == 2
    whole = parts.together
    if not is_narrow or rows.censored.size or len(parts.factor) > 1:
        return None
    if whole is not None and whole.is_for(rows):
        return None
    w, noise = parts.loadings, parts.noise[:n_components]
    root = w * (parts.spread[:n_components] * parts.factor)[:, np.newaxis]
    scale = root @ np.swapaxes(root, 1, 2)
    diagonal = np.arange(len(w))
    scale[:, diagonal, diagonal] += noise
    if np.max(scale[:, diagonal, diagonal] / noise) > _LARGEST_RATIO:
        return None
    mean = parts.score_mean[:n_components] @ w.T + parts.offset[:n_components]
    df = np.broadcast_to(np.asarray(parts.df, dtype=np.float64), len(parts.cluster))
    return mean, scale, np.ascontiguousarray(df[:n_components])


def _mean_density(log_density):
    """log of the mean over the draws of the layers above, the first axis."""
    highest = log_density.max(axis=0)
    return highest + np.log(np.mean(np.exp(log_density - highest), axis=0))


def _given(rows, parts, n_components):
    """Condition the first so many components on what was read: a list of `_Given`.

    Where the rows are few the components of all draws are conditioned together, at the first.
    """
    whole = parts.together
    if whole is None or not whole.is_for(rows):
        return [_given_of(rows, parts, these) for these in _slices(rows, parts, n_components)]
    first = whole.start[parts.number]
    these = slice(first, first + n_components)
    return [whole.given(rows).part(these, parts.loadings.shape[1])]


def _given_of(rows, parts, these, laws=None):
    """Condition some components, a slice, on what was read; ``laws`` are `_laws_of_scores`."""
    center = parts.score_mean[these]
    log_density, scores, covariance, inflation, square = _conditions(rows, parts, these, laws)
    if len(parts.factor) == 1 and not rows.censored.size:
        own = np.zeros((len(center), 0, *covariance.shape[3:]))
        return _Given(
            log_density[:, 0],
            center[:, np.newaxis] + scores[:, 0],
            covariance[:, 0],
            rows.censored,
            own,
            inflation[:, 0],
        )
    found = []
    for i, c in enumerate(range(*these.indices(len(parts.cluster)))):
        of_draws = center[i], log_density[i], scores[i], covariance[i], inflation[i]
        one = (_mixed if len(parts.factor) > 1 else _unmixed)(rows, *of_draws)
        found.append(_take_in_censored(rows, parts, c, one, np.mean(square[i], axis=0)))
    names = [field.name for field in fields(_Given)]
    stacked = {name: np.stack([getattr(one, name) for one in found]) for name in names}
    return _Given(**stacked | {"which": found[0].which})


def _laws_of_scores(rows, parts, these):
    """What the patterns of missing cells say of the scores, of a slice of components.

    Information of the cells (C, 1, n_patterns, K, K), covariances (C, J, n_patterns, K, K) and
    logarithms of the determinants of the rows' covariances (C, J, n_patterns).
    """
    w, s = _loadings_of(parts, these), parts.noise[these]
    n_factors = w.shape[-1]
    products = w[..., :, np.newaxis] * w[..., np.newaxis, :]
    products = products.reshape(*w.shape[:-1], n_factors**2)
    information = (rows.patterns / s[:, np.newaxis]) @ products
    information = information.reshape(len(s), 1, len(rows.patterns), n_factors, n_factors)
    # For every draw of the layers above, every pattern. Not below the identity, so that there
    # always is a Cholesky factor.
    spread = parts.spread[these][:, np.newaxis] * parts.factor
    left, right = spread[:, :, np.newaxis, :, np.newaxis], spread[:, :, np.newaxis, np.newaxis]
    matrix = np.eye(n_factors) + left * information * right
    covariance = left * np.linalg.inv(matrix) * right
    diagonal = np.diagonal(np.linalg.cholesky(matrix), axis1=3, axis2=4)
    log_det = (np.log(s) @ rows.patterns.T)[:, np.newaxis] + 2 * np.sum(np.log(diagonal), axis=3)
    return information, covariance, log_det


def _conditions(rows, parts, these, laws=None):
    """Log densities, scores about their mean, covariances, inflations, squared distances.

    Of a slice of components, over which the first axis goes; the second goes over the draws of the
    layers above.
    """
    information, covariance, log_det = laws or _laws_of_scores(rows, parts, these)
    w, s = _loadings_of(parts, these), parts.noise[these]
    center = np.squeeze(w @ parts.score_mean[these][:, :, np.newaxis], axis=2)
    residual = rows.seen * (rows.x - (center + parts.offset[these])[:, np.newaxis])
    pull = (residual / s[:, np.newaxis]) @ w
    scores = _times(covariance, rows.pattern, pull[:, np.newaxis])
    spread = parts.spread[these][:, np.newaxis] * parts.factor
    square = _squared_distances(rows, w, s, residual, information, spread, scores)
    df = np.broadcast_to(parts.df, len(parts.cluster))[these]
    log_density, inflation = _log_law(
        rows.patterns.sum(axis=1)[rows.pattern], log_det[:, :, rows.pattern], square, df
    )
    return log_density, scores, covariance, inflation, square


def _loadings_of(parts, these):
    return parts.loadings if parts.loadings.ndim == 2 else parts.loadings[these]


def _squared_distances(rows, w, s, residual, information, spread, scores):
    """Mahalanobis distances (C, J, n), as sums of squares at their minimum, the expected scores.

    Errors of the scores enter squared then, and nothing cancels. That of the first draw comes from
    the cells, others from the difference of their scores.
    """
    left = residual - rows.seen * (scores[:, 0] @ np.swapaxes(w, -1, -2))
    square = np.sum(left**2 / s[:, np.newaxis], axis=2)[:, np.newaxis]
    square = square + np.sum((scores / spread[:, :, np.newaxis]) ** 2, axis=3)
    if scores.shape[1] > 1:
        slope = ((left / s[:, np.newaxis]) @ w)[:, np.newaxis]
        apart = scores - scores[:, :1]
        square += np.sum(apart * (_times(information, rows.pattern, apart) - 2 * slope), axis=3)
    return np.maximum(square, 0.0)


def _log_law(n_seen, log_det, square, df):
    """log of the normal or t density, and E 1 / lambda given the row."""
    log_density = -0.5 * (n_seen * np.log(2 * np.pi) + log_det + square)
    inflation, tailed = np.ones(square.shape), np.isfinite(df)
    if tailed.any():
        df, log_det, square = df[tailed, np.newaxis, np.newaxis], log_det[tailed], square[tailed]
        log_density[tailed] = (
            gammaln((df + n_seen) / 2) - gammaln(df / 2) - n_seen / 2 * np.log(df * np.pi)
            - log_det / 2 - (df + n_seen) / 2 * np.log1p(square / df)
        )  # fmt: skip
        # Infinite where two degrees of freedom are not exceeded.
        with np.errstate(divide="ignore"):
            inflation[tailed] = (df + square) / np.maximum(df + n_seen - 2, 0.0)
    return log_density, inflation


def _unmixed(rows, center, log_density, scores, covariance, inflation):
    """The same of one component without layers above, with covariances of rows of their own."""
    which = rows.censored
    own = covariance[0][rows.pattern[which]]
    return _Given(log_density[0], center + scores[0], covariance[0], which, own, inflation[0])


def _mixed(rows, center, log_density, scores, covariance, inflation):
    """Density, mean and covariance over the draws of the layers above, row by row."""
    share = softmax(log_density, axis=0)
    mean = np.einsum("jn,jnk->nk", share, scores)
    total = np.sum(share * inflation, axis=0)
    weight = share * inflation
    weight = np.divide(weight, total, where=np.isfinite(total), out=share.copy())
    own = np.zeros((len(mean), *covariance.shape[2:]))
    for j, V in enumerate(covariance):
        own += weight[j][:, np.newaxis, np.newaxis] * V[rows.pattern]
    apart = scores - mean
    between = share / np.where(np.isfinite(total), total, 1.0)
    own += (between[:, :, np.newaxis] * apart).transpose(1, 2, 0) @ apart.transpose(1, 0, 2)
    log_mean = _mean_density(log_density)
    return _Given(log_mean, center + mean, covariance[0], np.arange(len(mean)), own, total)


def _times(matrices, index, vectors):
    """matrices[index[i]] @ vectors[i] for every row i, over axes before these."""
    if matrices.shape[-3] == 1:
        return vectors @ np.swapaxes(matrices[..., 0, :, :], -1, -2)
    return np.einsum("...nij,...nj->...ni", matrices[..., index, :, :], vectors)


def _take_in_censored(rows, parts, c, given, square):
    """What is left when censored cells are known to be below the limit, one after the other.

    Adds log P(censored cells | readings) to the density; the scores keep the mean and covariance
    that a normal law has given that a cell is below. ``square`` are the squared distances.
    """
    chosen = rows.censored
    if not chosen.size:
        return given
    df = parts.df + rows.patterns.sum(axis=1)[rows.pattern[chosen]]
    precision = np.ones(len(chosen))
    if np.isfinite(parts.df):
        precision = df / (parts.df + square[chosen])
    place = np.searchsorted(given.which, chosen)
    scores, covariance, total = given.scores[chosen], given.own[place], np.zeros(len(chosen))
    for j in np.flatnonzero(rows.below.any(axis=0)):
        i = np.flatnonzero(rows.below[chosen, j])
        w = parts.loadings[j]
        gain = covariance[i] @ w
        variance = gain @ w + parts.noise[c][j]
        sd = np.sqrt(variance / precision[i])
        at = (rows.limit[j] - scores[i] @ w - parts.offset[c][j]) / sd
        log_chance = log_ndtr(at)
        # Mean and variance of a normal number known to be below the limit.
        hazard = np.exp(-0.5 * (at**2 + np.log(2 * np.pi)) - log_chance)
        less = np.clip(hazard * (hazard + at), 0.0, 1.0)
        if np.isfinite(parts.df):
            log_chance = np.log(np.maximum(stdtr(df[i], at), SMALLEST_CHANCE))
        total[i] += log_chance
        scores[i] -= gain * (hazard * sd / variance)[:, np.newaxis]
        shrunk = (less / variance)[:, np.newaxis, np.newaxis]
        covariance[i] -= gain[:, :, np.newaxis] * gain[:, np.newaxis] * shrunk
    given.log_density[chosen] += total
    given.scores[chosen] = scores
    given.own[place] = covariance
    return given


# -- functions of a draw ------------------------------------------------------------------------


def log_densities(rows, parts, new=True):
    """log density of what is known of each row, given each cluster and a new one: (n, G + 1).

    Without ``new`` that column is -inf.
    """
    n_clusters = parts.n_clusters
    log_p = _log_densities(rows, parts, len(parts.cluster) if new else n_clusters)
    out = np.full((len(rows.x), n_clusters + 1), -np.inf)
    # The clusters of the draw have a component each.
    out[:, :-1] = log_p[:n_clusters].T
    if new:
        log_p = log_p[n_clusters:] + parts.log_share[n_clusters:, np.newaxis]
        highest = log_p.max(axis=0)
        out[:, -1] = highest + np.log(np.sum(np.exp(log_p - highest), axis=0))
    return out


def cluster_probabilities(rows, parts):
    """r_tg (n, G), a new cluster left out."""
    log_p = log_densities(rows, parts, new=False) + parts.log_weight
    return softmax(log_p[:, :-1], axis=1)


def expected_scores(rows, parts):
    """E[y | row] (n, K) over the clusters of the draw."""
    weight, given = _by_component(rows, parts)
    return sum(
        np.einsum("cn,cnk->nk", share, one.scores) for share, one in zip(weight, given, strict=True)
    )


def cell_moments(rows, parts):
    """Mean and variance of every cell given the row's readings, over the draw's clusters.

    Of use for missing cells, whose law this is; (n, n_features) each, a variance inf where it is.
    Those of observed cells are 0 where covariances are factored.
    """
    if (laws := _dense_laws(rows, parts, parts.n_clusters)) is not None:
        weight = _shares(parts, rows.dense.log_densities(*laws))
        moments = np.zeros((2, *rows.x.shape))
        rows.dense.add_moments(*laws, weight, *moments)
        return moments
    weight, given = _by_component(rows, parts)
    w, first = parts.loadings, np.cumsum([0, *map(len, weight)])

    def of_components(start, share, one):
        these = slice(start, start + len(share))
        mean = one.scores @ w.T + parts.offset[these, np.newaxis]
        variance = _quadratic(w, one.covariance)[:, rows.pattern]
        variance[:, one.which] = _quadratic(w, one.own)
        variance += parts.noise[these, np.newaxis]
        variance *= one.inflation[:, :, np.newaxis]
        share = share[:, :, np.newaxis]
        # Not 0 times infinity: a component without a share has no say.
        total = share.sum(axis=0)
        center = np.sum(share * mean, axis=0) / np.where(total > 0, total, 1.0)
        variance = np.where(share > 0, variance, 0.0) + (mean - center) ** 2
        return total, center, np.sum(share * variance, axis=0)

    total, mean, square = merged(map(of_components, first, weight, given))
    return mean, square / total


def _quadratic(w, matrices):
    """w_j' M w_j of every feature and matrix, (..., n_features)."""
    return np.sum((w @ matrices) * w, axis=-1)


def _by_component(rows, parts):
    """Responsibilities of the clusters' components and what these say, slice by slice.

    A slice of responsibilities is (C, n).
    """
    given = _given(rows, parts, parts.n_clusters)
    weight = _shares(parts, np.concatenate([one.log_density for one in given]))
    stops = np.cumsum([len(one.log_density) for one in given])[:-1]
    return np.split(weight, stops), given


def _shares(parts, log_density):
    """Responsibilities (C, n) of the clusters, which have a component each."""
    return softmax(log_density + parts.log_weight[: parts.n_clusters, np.newaxis], axis=0)


def sample_rows(draw, prior, n, rng):
    """Rows from the draw, each from a cluster of it or from a new one: (rows, clusters).

    A row of a new cluster has the number of clusters in place of one.
    """
    concentration, *_, df = draw["hyper"]
    weight = np.append(draw["n_members"], concentration).astype(np.float64)
    cluster = rng.choice(len(weight), size=n, p=weight / weight.sum())
    is_new = cluster == len(weight) - 1
    old = np.where(is_new, 0, cluster)
    s = np.broadcast_to(draw["noise_variance"], draw["offset"].shape)
    parts = [draw["score_mean"], draw["score_variance"], s, draw["offset"]]
    # Two rows may be of the same new cluster only as rows drawn together could: each has its own.
    new = new_clusters(draw, prior, int(is_new.sum()), rng)
    m, v, s, o = (x[old] for x in parts)
    for x, y in zip((m, v, s, o), new, strict=True):
        x[is_new] = y
    precision = np.ones((n, 1)) if np.isinf(df) else rng.gamma(df / 2, 2 / df, size=(n, 1))
    u = upper_variances(draw, n, rng)
    scores = m + rng.normal(size=m.shape) * np.sqrt(v * u / precision)
    mean = scores @ draw["loadings1"].T + o
    return mean + rng.normal(size=mean.shape) * np.sqrt(s / precision), cluster
