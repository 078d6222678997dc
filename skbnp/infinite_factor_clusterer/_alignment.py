"""Factors of one draw beside those of another: columns known up to order and sign."""

import numpy as np
from scipy.optimize import linear_sum_assignment


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
