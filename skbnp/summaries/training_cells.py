"""Missing cells of the training rows, and which rows are training rows."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skbnp.numerics.moments import merged

# Distances of a normal law from its mean have the mean sqrt(2 / pi) sigma and the variance
# (1 - 2 / pi) sigma^2: a difference of sigma between chains counts for so much.
_FOLDED = (2 / np.pi) / (1 - 2 / np.pi)


@dataclass(frozen=True)
class TrainingCells:
    """What the chains say of the missing cells of the training rows, over all their sweeps.

    A model says some numbers of every row, ``columns[v]`` is the column that number v is about: a
    value of it or, of a level, a probability. Of these the numbers about missing cells are kept,
    row by row.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The training rows, NaN where missing.
    columns : ndarray of int of shape (n_values,)
        -1 for a number that is not used.
    mean : ndarray of shape (n_numbers,)
        In the units of the model.
    variance : ndarray of shape (n_numbers,)
        The same, may be inf.
    r_hat : float, default=NaN
        How far the chains differ in what they say, as `r_hat` has it; NaN where that is unknown.
    """

    X: np.ndarray
    columns: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    r_hat: float = np.nan

    @classmethod
    def of(cls, X, columns, chains, judged=None):
        """What some chains say.

        Parameters
        ----------
        X, columns : ndarray
        chains : list of (n, mean, square)
            Of each chain the number of its sweeps or draws, the mean over them, and their number
            times the variance; row by row. None are needed where no number is about a missing cell.
        judged : ndarray of bool of shape (n_samples, n_features), default=None
            The cells that R-hat is of; all of them by default.
        """
        if not chains:
            return cls(X.copy(), columns, np.empty(0), np.empty(0))
        rows, values = np.nonzero(cls.numbers(X, columns))
        which = slice(None) if judged is None else judged[rows, columns[values]]
        _, cells = np.unique((rows * X.shape[1] + columns[values])[which], return_inverse=True)
        of_these = [(n, mean[which], square[which]) for n, mean, square in chains]
        return cls(X.copy(), columns, *over_chains(chains), r_hat(of_these, cells))

    @classmethod
    def of_states(cls, X, columns, states):
        """What the sweeps of some chains say.

        Parameters
        ----------
        X, columns : ndarray
        states : list of dict
            Of each chain ``n_imputed``, ``imputed_mean`` and ``imputed_square``, as `of` has them
            but column by column.
        """
        rows, values = np.nonzero(cls.numbers(X, columns))
        place = np.argsort(np.lexsort((rows, values)))
        chains = [
            (float(one["n_imputed"]), one["imputed_mean"][place], one["imputed_square"][place])
            for one in states
        ]
        return cls.of(X, columns, chains if rows.size else [])

    @staticmethod
    def numbers(X, columns):
        """Which numbers about the rows of X are about missing cells: (n_rows, n_values) of bool."""
        return np.isnan(X)[:, columns] & (columns >= 0)

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

    def moments(self, places):
        """What is said of some rows, 0 for observed cells.

        Several equal training rows have one answer: the mixture of what is said of each.

        Parameters
        ----------
        places : list of lists of int
            For each row those of its equals among ``rows``, one at least.

        Returns
        -------
        mean : ndarray of shape (n_rows, n_values)
        variance : ndarray of shape (n_rows, n_values)
        """
        which = self.numbers(self.X[self.rows[[equal[0] for equal in places]]], self.columns)
        mean, variance = np.zeros((2, *which.shape))
        for t, equal in enumerate(places):
            mean[t, which[t]], variance[t, which[t]] = over_chains(
                (1.0, self.mean[here], self.variance[here])
                for here in (slice(*self._bounds[place : place + 2]) for place in equal)
            )
        return mean, variance

    @cached_property
    def _bounds(self):
        """Where the numbers of each incomplete row begin, and where the last ones end."""
        n_numbers = self.numbers(self.X[self.rows], self.columns).sum(axis=1)
        return np.concatenate([[0], np.cumsum(n_numbers)])

    def check(self, missing, columns):
        """Raise a ValueError unless it fits rows that lack these cells and a model of them.

        Parameters
        ----------
        missing : ndarray of bool of shape (n_samples, n_features)
        columns : ndarray of int of shape (n_values,)
        """
        if self.X.dtype != np.float64 or not np.array_equal(np.isnan(self.X), missing):
            raise ValueError("the rows of missing cells must be the training rows")
        if self.columns.dtype != columns.dtype or not np.array_equal(self.columns, columns):
            raise ValueError("columns of missing cells must be those that the model speaks of")
        shape = (int(self._bounds[-1]),)
        for moment in (self.mean, self.variance):
            if moment.dtype != np.float64 or moment.shape != shape:
                raise ValueError(f"moments of missing cells must have shape {shape}")
        if not (np.isfinite(self.mean).all() and (self.variance >= 0).all()):
            raise ValueError("moments of missing cells must be finite means and variances >= 0")


def places_among(X, training):
    """Which of the training rows each row of X is.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    training : ndarray of shape (n_samples, n_features)
        Equal are rows that lack the same cells and have the same bits in all others.

    Returns
    -------
    places : ndarray of int of shape (n_rows,)
        -1 for a row that is none of them. Rows of X that are equal are the equal training rows in
        their order, so that the training table, whole or shuffled, finds each of its rows once.
    """
    equals, taken = {}, Counter()
    for place, key in enumerate(_keys(training)):
        equals.setdefault(key, []).append(place)
    places = np.full(len(X), -1)
    for i, key in enumerate(_keys(X)):
        if key in equals:
            places[i] = equals[key][taken[key] % len(equals[key])]
            taken[key] += 1
    return places


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


def r_hat(parts, cells=None):
    """R-hat of what chains say of missing cells, from means and variances alone.

    R-hat squared is 1 and the variance between the chains' means by that within chains, which is
    of the cell itself and not of its mean: chains agree where what they fill in differs by little
    of its standard deviation. The mean over cells of that ratio is taken, the levels of a cell
    being added up; or that of the same ratio of standard deviations, scaled as for distances from
    the mean of a normal law, where these differ more.

    Parameters
    ----------
    parts : list of (n_sweeps, mean, square)
        As `over_chains` has them.
    cells : ndarray of int, default=None
        Which cell each number is about, 0, 1, ...; by default each is about one of its own.

    Returns
    -------
    r_hat : float
        NaN where there is one chain, or no cell.
    """
    if len(parts) < 2 or not parts[0][1].size:
        return np.nan
    cells = np.arange(parts[0][1].size) if cells is None else cells
    means = np.array([mean for _, mean, _ in parts])
    variances = np.array([square / n for n, _, square in parts])
    finite = np.isfinite(variances).all(axis=0)
    # Of infinite spread chains say the same whatever their means.
    means[:, ~finite], variances[:, ~finite] = 0.0, 1.0
    within = np.bincount(cells, variances.mean(axis=0))
    largest = 0.0
    for values, scale in ((means, 1.0), (np.sqrt(variances), _FOLDED)):
        between = scale * np.bincount(cells, values.var(axis=0, ddof=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(between > 0.0, between / within, 0.0)
        largest = max(largest, float(ratio.mean()))
    return float(np.sqrt(1.0 + largest))


def _keys(X):
    """Rows as bytes: those of equal rows are equal."""
    X = np.where(np.isnan(X), np.nan, X + 0.0)  # one NaN, and no zero with a sign
    return [row.tobytes() for row in X]
