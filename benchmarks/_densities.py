"""Mixture densities in plain NumPy and SciPy, which any Python of a peer has too."""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp


def log_joint(X, weight, mean, shape, df=None):
    """log p(row, component): Gaussians, or with ``df`` (k,) Student t with shape matrices.

    X is (n, d), weight (k,), mean (k, d), shape (k, d, d); the result is (n, k).
    """
    d = X.shape[1]
    result = np.empty((len(X), len(weight)))
    for k in range(len(weight)):
        root = np.linalg.cholesky(shape[k])
        square = np.sum(solve_triangular(root, (X - mean[k]).T, lower=True) ** 2, axis=0)
        log_scale = np.log(weight[k]) - np.log(np.diag(root)).sum()
        if df is None:
            result[:, k] = log_scale - 0.5 * (d * np.log(2 * np.pi) + square)
        else:
            total = df[k] + d
            log_scale += gammaln(total / 2) - gammaln(df[k] / 2) - d / 2 * np.log(np.pi * df[k])
            result[:, k] = log_scale - total / 2 * np.log1p(square / df[k])
    return result


def student_predictive(weight, mean, rate, mean_precision, df):
    """The four arguments of `log_joint` for normal-inverse-Wishart posteriors.

    ``rate`` (k, d, d) are the matrices of the inverse Wisharts, ``df`` (k,) their degrees of
    freedom.
    """
    df = df - mean.shape[1] + 1
    factor = (mean_precision + 1) / (mean_precision * df)
    return weight, mean, rate * factor[:, None, None], df


def log_density(*arguments):
    """log density of each row; the arguments of `log_joint`."""
    return logsumexp(log_joint(*arguments), axis=1)
