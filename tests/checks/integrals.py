"""Integrals of a predictive density over a grid wide enough for heavy tails."""

import numpy as np


def axis(x, n, reach=8.0):
    """Points and weights for an integral over the line, dense where the values x are.

    By the trapezoid rule in t, x = centre + spread sinh(t): it converges exponentially for a
    smooth density, and with ``reach`` 8 ends at 750 standard deviations, where a Student t of
    one degree of freedom has one in a thousand of its mass left.
    """
    t = np.linspace(-reach, reach, n)
    spread = 0.5 * np.nanstd(x)
    return np.nanmean(x) + spread * np.sinh(t), spread * np.cosh(t) * (t[1] - t[0])


def bounded_axis(low, high, n):
    """The same over (low, high), for what may rise or fall steeply at the ends."""
    t = np.linspace(-4.2, 4.2, n)
    half = 0.5 * (high - low)
    return 0.5 * (low + high) + half * np.tanh(t), half / np.cosh(t) ** 2 * (t[1] - t[0])


def product(axes):
    """Rows (n, n_columns) and weights (n,) of the product of one-dimensional rules."""
    points, weights = zip(*axes, strict=True)
    rows = np.stack(np.meshgrid(*points, indexing="ij"), axis=-1).reshape(-1, len(points))
    weight = np.ones(1)
    for w in weights:
        weight = np.multiply.outer(weight, w).ravel()
    return rows, weight


def sampled(density, rows, weights, error=0.0025, most=2000):
    """The integral of a density that is estimated by sampling, and its standard error.

    ``density(rows, seed)`` is a mean over rounds until the error is as small as asked, or
    ``most`` of them. A round takes rows by systematic sampling, with the chances of their shares
    in a first, rough answer, each counted by one over its chance: it is unbiased whatever the
    rough answer. Its random numbers are its own, and the error that of the spread between
    rounds, so that rows may share theirs.
    """
    rng = np.random.default_rng(0)
    mass = weights * density(rows, 0)
    chance = np.clip(200.0 * mass / mass.sum(), 0.005, 1.0)
    passed, weights = np.cumsum(chance), weights / chance
    found = []
    while len(found) < most:
        taken = np.searchsorted(passed, np.arange(rng.random(), passed[-1]))
        found.append(density(rows[taken], len(found) + 1) @ weights[taken])
        spread = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) >= 20 else np.inf
        if spread < error:
            break
    return np.mean(found), spread
