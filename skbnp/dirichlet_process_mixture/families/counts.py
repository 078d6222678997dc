"""Columns of counts."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from skbnp.dirichlet_process_mixture.families._columns import (
    ColumnsPrior,
    Kind,
    check_all_positive,
    check_array,
    same_moments,
)
from skbnp.dirichlet_process_mixture.families._tables import add_from_table
from skbnp.laws import Gamma
from skbnp.likelihoods.conjugate.gamma_poisson import GammaPoisson

# Sums of counts stay exact in floats: a billion rows of the largest count are below 2^53.
LARGEST_COUNT = 2**22


def _are_counts(x):
    return (x >= 0) & (x <= LARGEST_COUNT) & (x == np.floor(x))


@dataclass(frozen=True)
class PoissonPrior(ColumnsPrior):
    """Columns of counts: rate_j ~ Gamma(shape[j], rate[j])."""

    columns: np.ndarray
    shape: np.ndarray
    rate: np.ndarray

    KINDS = (
        Kind(
            "poisson",
            "counts, 0 to 2^22",
            f"integers from 0 to {LARGEST_COUNT}",
            holds=_are_counts,
            is_for=lambda dtype, values: dtype == "integer" and bool(np.all(_are_counts(values))),
            is_whole=True,
        ),
    )
    PARAMETERS = {
        "poisson_prior": dict(
            default=None,
            kind="Gamma or None",
            rules=[Gamma, None],
            text="""
            Prior of the rate of every Poisson column. Default: shape 1 and the column's own mean,
            at least 1 / n_samples.
            """,
        )
    }
    AT_LEAST_0 = ("total", "cells")

    @classmethod
    def of(cls, mixture, columns, X):
        """By default the mean of the rate is that of the column."""
        law = mixture.poisson_prior
        if law is None:
            mean = np.maximum(np.nanmean(X[:, columns], axis=0), 1 / len(X))
            return cls(columns, np.ones(len(columns)), 1 / mean)
        return cls(columns, np.full(len(columns), law.shape), np.full(len(columns), law.rate))

    def kernel(self, X, start):
        """Blocks of counts."""
        return GammaPoisson(X, self.shape, self.rate)

    def log_marginal(self, X, state):
        """log m(X) of one block, missing cells integrated out."""
        seen = ~np.isnan(X)
        n, x = seen.sum(axis=0), np.where(seen, X, 0.0)
        a = self.shape + x.sum(axis=0)
        total = gammaln(a) - gammaln(self.shape) + self.shape * np.log(self.rate)
        return np.sum(total - a * np.log(self.rate + n)) - np.sum(gammaln(x + 1))

    def draw_block(self, n, state, rng):
        """n rows of one block whose parameters come from the prior."""
        rate = rng.gamma(self.shape, 1 / self.rate)
        return rng.poisson(rate, size=(n, len(rate))).astype(float)

    # -- new rows under a draw

    def rates(self, draw):
        """Shape and rate of the gamma posterior of each block's rates, (K + 1, n_columns)."""
        return self.shape + draw["total"], self.rate + draw["cells"]

    def prepare(self, x):
        """Counts as places in the list of the values that each column takes."""
        return ValuesTaken(x)

    def add_log_densities(self, rows, draw, out):
        """Negative binomial: once for each value that a column takes."""
        column = np.repeat(np.arange(len(self.columns)), np.diff(rows.start))
        r, rate = (array[:, column].T for array in self.rates(draw))
        value = rows.values[:, None]
        table = np.ascontiguousarray(
            gammaln(r + value) - gammaln(r) - gammaln(value + 1)
            - r * np.log1p(1.0 / rate) - value * np.log1p(rate)
        )  # fmt: skip
        add_from_table(rows.place, table, out)

    def add_moments(self, rows, draw, w, mean, variance):
        """Of a negative binomial law."""
        a, b = self.rates(draw)
        columns = self.columns
        same_moments(w, a / b, a / b * (1.0 + 1.0 / b), rows.place < 0, columns, mean, variance)

    def sample(self, draw, k, rng):
        """Rates, then counts."""
        a, b = self.rates(draw)
        return rng.poisson(rng.standard_gamma(a[k]) / b[k])

    def draw_cells(self, draw, cells, X, rng):
        """Rates, then counts."""
        shape, rate = self.rates(draw)
        mean = rng.standard_gamma(cells.at(shape)) / cells.at(rate)
        return rng.poisson(mean[cells.which])

    # -- starts and files

    def as_features(self, x):
        """Square roots, whose spread does not grow with the mean."""
        return super().as_features(np.sqrt(x))

    def check(self):
        """A shape and a rate for each column."""
        for name in ("shape", "rate"):
            check_array(name, getattr(self, name), (len(self.columns),))
            check_all_positive(name, getattr(self, name))

    def shapes(self):
        """Sums and numbers of observed cells."""
        return dict.fromkeys(("total", "cells"), (len(self.columns),))


class ValuesTaken:
    """Rows of counts, each as its place among the values that its column takes.

    Column j's values are ``values[start[j]:start[j + 1]]``; ``place`` (n_rows, n_columns) is the
    place of each cell in the whole list, -1 where it is missing.
    """

    def __init__(self, x):
        missing = np.isnan(x)
        place, taken = np.zeros(x.shape, dtype=np.intp), []
        for j, column in enumerate(x.T):
            values, found = np.unique(column[~missing[:, j]], return_inverse=True)
            place[~missing[:, j], j] = found
            taken.append(values)
        self.start = np.concatenate([[0], np.cumsum([len(values) for values in taken])])
        self.values = np.concatenate(taken)
        self.place = np.where(missing, -1, place + self.start[: x.shape[1]])
