"""Factors of one draw beside those of another: columns known up to order and sign."""

import numpy as np
from scipy.optimize import linear_sum_assignment

# Added to squares before their logarithm, in standardised units.
_LEAST_ENERGY = 1e-6


def matched_columns(reference, scores):
    """For each column of the reference its partner among those of other scores, and its sign.

    Partners have the largest sum of absolute correlations that one-to-one matching allows.

    Parameters
    ----------
    reference, scores : ndarray of shape (n_rows, K) and (n_rows, L)
        Scores of the same rows.

    Returns
    -------
    column : ndarray of int of shape (K,)
        -1 where there is none.
    sign : ndarray of shape (K,)
        That of the correlation, 1 where it is 0.
    """
    a, b = _standard(reference), _standard(scores)
    correlation = a.T @ b
    row, chosen = linear_sum_assignment(-np.abs(correlation))
    column, sign = np.full(reference.shape[1], -1), np.ones(reference.shape[1])
    column[row] = chosen
    sign[row] = np.where(correlation[row, chosen] < 0, -1.0, 1.0)
    return column, sign


def aligned(values, column, sign):
    """Columns in the order of the reference, 0 where there is no partner."""
    values = np.concatenate([values, np.zeros((len(values), 1))], axis=1)
    return values[:, column] * sign


def _standard(scores):
    """Columns of norm one around zero; zeros where they are constant."""
    off = np.asarray(scores, dtype=np.float64)
    off = off - off.mean(axis=0)
    norm = np.sqrt(np.sum(off**2, axis=0))
    return off / np.where(norm > 0, norm, 1.0)


def column_signs(loadings):
    """Sign of the largest loading of each factor."""
    if not loadings.shape[1]:
        return np.ones(0)
    largest = np.abs(loadings).argmax(axis=0)
    return np.where(loadings[largest, np.arange(loadings.shape[1])] < 0, -1.0, 1.0)


def alignments(reference, draws, scores):
    """Where each column of the reference draw is in each draw, -1 for nowhere, and its sign.

    Parameters
    ----------
    reference : dict
        A draw. With its signs the largest loading of every factor is positive.
    draws : list of dict
    scores : callable
        Scores of the same rows given a draw, (n_rows, K).

    Returns
    -------
    places : list of (ndarray, ndarray)
    """
    here, sign = scores(reference), column_signs(reference["loadings1"])
    found = [matched_columns(here, scores(draw)) for draw in draws]
    return [(column, sign * turn) for column, turn in found]


def energy_correlation(A, columns, n_features):
    """Correlations of log squared deviations from the mean, over pairs of observed cells.

    Parameters
    ----------
    A : ndarray of shape (n_samples, n_modelled)
        Standardised, not finite where nothing was read.
    columns : ndarray of int of shape (n_modelled,)
        Which of the features A has; the others have no correlation.
    n_features : int

    Returns
    -------
    correlation : ndarray of shape (n_features, n_features)
    """
    A = np.where(np.isfinite(A), A, np.nan)
    energy = np.log((A - np.nanmean(A, axis=0)) ** 2 + _LEAST_ENERGY)
    seen = ~np.isnan(energy)
    off = np.where(seen, energy - np.nanmean(energy, axis=0), 0.0)
    squares = (off**2).T @ seen
    norm = np.sqrt(squares * squares.T)
    found = np.divide(off.T @ off, norm, where=norm > 0, out=np.zeros_like(norm))
    out = np.eye(n_features)
    out[np.ix_(columns, columns)] = np.clip(found, -1.0, 1.0)
    np.fill_diagonal(out, 1.0)
    return out


def some_rows(X, n_most, seed):
    """At most so many rows, at random but always the same ones."""
    if len(X) <= n_most:
        return X
    return X[np.sort(np.random.default_rng(seed).choice(len(X), n_most, replace=False))]
