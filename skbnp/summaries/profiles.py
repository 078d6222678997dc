"""What the columns of a cluster have that those of the other rows have not."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Profiles:
    """Traits of clusters: the mean of a column, or the share of one of its levels.

    Attributes
    ----------
    column : ndarray of int of shape (n_traits,)
        The column that each trait is about.
    level : ndarray of int of shape (n_traits,)
        The code of the level, -1 for a mean.
    inside, outside : ndarray of shape (n_clusters, n_traits)
        Mean or share among the rows of a cluster and among all other rows, over observed cells;
        NaN where there are none.
    difference : ndarray of shape (n_clusters, n_traits)
        `inside` less `outside` in standard deviations of the trait over all rows; 0 where it does
        not vary.
    error : ndarray of shape (n_clusters, n_traits)
        Standard deviation that `difference` would have, were the rows of the cluster drawn at
        random from all rows; NaN where a side has no cell.
    spread_ratio : ndarray of shape (n_clusters, n_traits)
        Standard deviation within the cluster divided by that of the other rows; NaN for levels.
    n_seen : ndarray of int of shape (n_clusters, n_traits)
        Observed cells within the cluster.
    spread : ndarray of shape (n_traits,)
        Standard deviation over all rows.
    """

    column: np.ndarray
    level: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    difference: np.ndarray
    error: np.ndarray
    spread_ratio: np.ndarray
    n_seen: np.ndarray
    spread: np.ndarray


def profiles(X, labels, n_levels=None):
    """Traits of each cluster beside those of all other rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Numbers, levels as codes 0, 1, ...; NaN where missing.
    labels : array-like of int of shape (n_samples,)
        Clusters 0, 1, ...; rows with a negative label are of no cluster.
    n_levels : sequence of int or None, default=None
        How many levels each column has, None for a column of numbers. Default: all are numbers.

    Returns
    -------
    Profiles
    """
    X, labels = np.asarray(X, dtype=np.float64), np.asarray(labels)
    if X.ndim != 2 or labels.shape != (len(X),):
        raise ValueError(
            f"X must have shape (n, d) and labels shape (n,), got {X.shape} and {labels.shape}"
        )
    n_levels = [None] * X.shape[1] if n_levels is None else list(n_levels)
    if len(n_levels) != X.shape[1]:
        raise ValueError(f"n_levels must have {X.shape[1]} entries, got {len(n_levels)}")
    column, level, found = [], [], []
    for j, n in enumerate(n_levels):
        codes = [-1] if n is None else range(n)
        for code in codes:
            x = X[:, j] if n is None else np.where(np.isnan(X[:, j]), np.nan, X[:, j] == code)
            column.append(j)
            level.append(code)
            found.append(_trait(x, labels, n is None))
    stacked = [np.stack(part, axis=-1) for part in zip(*found, strict=True)]
    return Profiles(np.array(column), np.array(level), *stacked)


def _trait(x, labels, is_mean):
    """Figures of one trait, each (n_clusters,), and last its spread."""
    n_clusters = int(labels.max(initial=-1)) + 1
    seen = ~np.isnan(x)
    # In units in which no square overflows.
    unit = np.max(np.abs(x[seen]), initial=0.0) or 1.0
    center = np.mean(x[seen] / unit) if seen.any() else 0.0
    z = np.where(seen, x / unit - center, 0.0)
    member = labels[np.newaxis, :] == np.arange(n_clusters)[:, np.newaxis]
    mean, square, count = {}, {}, {}
    for side, rows in (("in", member), ("out", ~member)):
        rows = (rows & seen).astype(np.float64)
        count[side] = rows.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean[side] = rows @ z / count[side]
            square[side] = np.maximum(rows @ z**2 / count[side] - mean[side] ** 2, 0.0)
    spread = np.sqrt(np.mean(z[seen] ** 2)) if seen.any() else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = mean["in"] - mean["out"]
        difference = difference / spread if spread > 0.0 else 0.0 * difference
        error = np.sqrt(1.0 / count["in"] + 1.0 / count["out"])
        error = np.where(np.isfinite(error), error, np.nan)
        ratio = np.sqrt(square["in"] / square["out"]) if is_mean else np.full(n_clusters, np.nan)
    values = [unit * (mean[side] + center) for side in ("in", "out")]
    if not is_mean:  # shares, up to rounding errors
        values = [np.clip(value, 0.0, 1.0) for value in values]
    return *values, difference, error, ratio, count["in"].astype(np.intp), unit * spread
