"""Errors of Monte Carlo means, so that a statistical test can state its z-score."""

import math

import numpy as np
from arviz_stats.base import array_stats
from scipy.stats import norm

from checks.proofs import record


def mcse_mean(x):
    """Standard error of the mean of a chain, corrected for its autocorrelation.

    Parameters
    ----------
    x : array-like of shape (n_draws,) or (n_chains, n_draws)
        At least 4 draws per chain.

    Returns
    -------
    error : float
        Standard deviation over the square root of the effective sample size; 0 for a constant.
    """
    x = np.atleast_2d(np.asarray(x, dtype=np.float64))
    if x.shape[1] < 4:
        raise ValueError(f"x must have at least 4 draws per chain, got {x.shape[1]}")
    if not np.isfinite(x).all():
        raise ValueError("x must be finite")
    if x.min() == x.max():
        return 0.0
    n_effective = float(array_stats.ess(x, chain_axis=0, draw_axis=1, method="mean"))
    return float(x.std(ddof=1)) / math.sqrt(n_effective)


def z_score(x, expected):
    """Distance of the mean of a chain from its expected value, in standard errors.

    0 for a constant that equals ``expected``, infinite for one that does not.
    """
    return record(_ratio(float(np.mean(x)) - expected, mcse_mean(x)))


def z_score_two_sample(x, y):
    """Difference of the means of two independent chains, in standard errors."""
    return record(_ratio(float(np.mean(x) - np.mean(y)), math.hypot(mcse_mean(x), mcse_mean(y))))


def p_value(result):
    """The p-value of a test of scipy.stats; taken down as the z-score that is as unlikely."""
    record(norm.isf(result.pvalue / 2))
    return result.pvalue


def _ratio(difference, error):
    if error > 0.0:
        return difference / error
    return 0.0 if difference == 0.0 else math.copysign(math.inf, difference)
