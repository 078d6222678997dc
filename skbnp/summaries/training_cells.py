"""Missing cells of the training rows, and which rows are training rows."""

from dataclasses import dataclass

import numpy as np

from skbnp.numerics.moments import merged


@dataclass(frozen=True)
class TrainingCells:
    """What the chains say of the missing cells of the training rows, over all their sweeps.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The training rows, NaN where missing.
    mean : ndarray of shape (n_incomplete, n_values)
        Of the missing cells of each row that has some, in the order of X and in the units of the
        model; 0 for observed cells.
    variance : ndarray of shape (n_incomplete, n_values)
        The same, may be inf.
    """

    X: np.ndarray
    mean: np.ndarray
    variance: np.ndarray

    @property
    def rows(self):
        """The rows of X with missing cells."""
        return np.flatnonzero(np.isnan(self.X).any(axis=1))

    def matches(self, X):
        """For each row the incomplete training rows that it equals, as places among ``rows``.

        Equal are rows that lack the same cells and have the same bits in all others.
        """
        places = {}
        for place, key in enumerate(_keys(self.X[self.rows])):
            places.setdefault(key, []).append(place)
        return [places.get(key, []) for key in _keys(X)]

    def moments(self, X):
        """The rows of X that are incomplete training rows, and the moments of their cells.

        Several equal training rows have one answer: the mixture of what is said of each.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)

        Returns
        -------
        rows : ndarray of shape (n_known,)
        mean : ndarray of shape (n_known, n_values)
        variance : ndarray of shape (n_known, n_values)
        """
        found = self.matches(X)
        rows = np.flatnonzero([len(places) > 0 for places in found])
        mean, variance = np.empty((2, len(rows), self.mean.shape[1]))
        for t, i in enumerate(rows):
            mean[t], variance[t] = over_chains(
                (1.0, self.mean[place], self.variance[place]) for place in found[i]
            )
        return rows, mean, variance

    def check(self, missing, n_values):
        """Raise a ValueError unless it fits rows that lack these cells and a model of them.

        Parameters
        ----------
        missing : ndarray of bool of shape (n_samples, n_features)
        n_values : int
        """
        if self.X.dtype != np.float64 or not np.array_equal(np.isnan(self.X), missing):
            raise ValueError("the rows of missing cells must be the training rows")
        shape = (len(self.rows), n_values)
        for moment in (self.mean, self.variance):
            if moment.dtype != np.float64 or moment.shape != shape:
                raise ValueError(f"moments of missing cells must have shape {shape}")
        if not (np.isfinite(self.mean).all() and (self.variance >= 0).all()):
            raise ValueError("moments of missing cells must be finite means and variances >= 0")


def over_chains(parts):
    """Mean and variance over all sweeps of all chains, in the order of the chains.

    Parameters
    ----------
    parts : iterable of (n_sweeps, mean, square)
        Of each chain the mean over its sweeps, and their number times the variance.

    Returns
    -------
    mean, variance : ndarray
    """
    n, mean, square = merged(parts)
    return mean, square / n


def _keys(X):
    """Rows as bytes: those of equal rows are equal."""
    X = np.where(np.isnan(X), np.nan, X + 0.0)  # one NaN, and no zero with a sign
    return [row.tobytes() for row in X]
