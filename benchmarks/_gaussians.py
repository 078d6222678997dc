"""Mixtures of full Gaussians that score and fill incomplete rows, exactly."""

import numpy as np
from scipy.special import logsumexp
from sklearn.decomposition import FactorAnalysis
from sklearn.mixture import GaussianMixture


class Gaussians:
    """A mixture: weights (k,), means (k, d), covariances (k, d, d)."""

    def __init__(self, weights, means, covariances):
        self.log_weights = np.log(weights)
        self.means, self.covariances = means, covariances

    def score_samples(self, X):
        """Log density of what is observed of each row."""
        result = np.empty(len(X))
        for rows, missing in same_holes(X):
            result[rows] = logsumexp(self._of_rows(X[rows], missing)[0], axis=1)
        return result

    def impute(self, X):
        """Missing entries replaced by their conditional means."""
        filled = X.copy()
        for rows, missing in same_holes(X):
            log_p, conditional = self._of_rows(X[rows], missing)
            share = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
            filled[np.ix_(rows, missing)] = np.einsum("nk,knm->nm", share, conditional)
        return filled

    def _of_rows(self, X, missing):
        """Log joint (n, k) of rows and components, conditional means (k, n, n_missing)."""
        seen = ~missing
        covariance = self.covariances[:, seen]
        half = np.linalg.cholesky(covariance[:, :, seen])
        centred = X[:, seen] - self.means[:, None, seen]
        sides = np.concatenate([centred.transpose(0, 2, 1), covariance[:, :, missing]], axis=2)
        z, cross = np.split(np.linalg.solve(half, sides), [len(X)], axis=2)
        log_det = np.log(np.diagonal(half, axis1=1, axis2=2)).sum(axis=1)
        log_p = self.log_weights - log_det - 0.5 * seen.sum() * np.log(2 * np.pi)
        conditional = self.means[:, None, missing] + z.transpose(0, 2, 1) @ cross
        return log_p - 0.5 * np.sum(z**2, axis=1).T, conditional


def same_holes(X):
    """Rows that miss the same entries, and which these are."""
    patterns, which = np.unique(np.isnan(X), axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel()))
    return zip(np.split(order, ends[:-1]), patterns, strict=True)


def gaussian_mixture(X, n_components, seed, reg_covar=1e-3):
    """scikit-learn's mixture of full Gaussians."""
    found = GaussianMixture(n_components, reg_covar=reg_covar, random_state=seed).fit(X)
    return Gaussians(found.weights_, found.means_, found.covariances_)


def factor_analysis(X, n_components):
    """scikit-learn's single factor analysis."""
    found = FactorAnalysis(n_components).fit(X)
    return Gaussians(np.ones(1), found.mean_[None], found.get_covariance()[None])


def one_gaussian(X):
    """Mean and covariance of the rows."""
    covariance = np.cov(X.T) + 1e-6 * np.eye(X.shape[1])
    return Gaussians(np.ones(1), X.mean(axis=0)[None], covariance[None])


def pooled(mixtures):
    """Several mixtures, averaged as densities."""
    return Gaussians(
        np.concatenate([np.exp(m.log_weights) / len(mixtures) for m in mixtures]),
        np.concatenate([m.means for m in mixtures]),
        np.concatenate([m.covariances for m in mixtures]),
    )
