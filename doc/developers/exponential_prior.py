"""Columns of waiting times."""

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
from skbnp.laws import Gamma
from skbnp.likelihoods.conjugate.gamma_exponential import GammaExponential


@dataclass(frozen=True)
class ExponentialPrior(ColumnsPrior):
    """Columns of waiting times: rate_j ~ Gamma(shape[j], rate[j])."""

    columns: np.ndarray
    shape: np.ndarray
    rate: np.ndarray

    KINDS = (Kind("exponential", "waiting times > 0", "times > 0", holds=lambda x: x > 0),)
    PARAMETERS = {
        "exponential_prior": dict(
            default=Gamma(3.0, 3.0),
            kind="Gamma",
            rules=[Gamma],
            text="""
            Prior of the rate of every exponential column, in its units.
            """,
        )
    }
    AT_LEAST_0 = ("waited", "seen")

    @classmethod
    def of(cls, mixture, columns, X):
        """The same law for all columns."""
        law, d = mixture.exponential_prior, len(columns)
        return cls(columns, np.full(d, law.shape), np.full(d, law.rate))

    def kernel(self, X, start):
        """Blocks of waiting times."""
        return GammaExponential(X, self.shape, self.rate)

    def log_marginal(self, X, state):
        """log m(X) of one block, missing cells integrated out."""
        n, a = np.sum(~np.isnan(X), axis=0), self.shape
        total = gammaln(a + n) - gammaln(a) + a * np.log(self.rate)
        return np.sum(total - (a + n) * np.log(self.rate + np.nansum(X, axis=0)))

    def draw_block(self, n, state, rng):
        """n rows of one block whose parameters come from the prior."""
        rate = rng.gamma(self.shape, 1 / self.rate)
        return rng.exponential(1 / rate, size=(n, len(rate)))

    # -- new rows under a draw

    def rates(self, draw):
        """Shape and rate of the gamma posterior of each block's rates, (K + 1, n_columns)."""
        return self.shape + draw["seen"], self.rate + draw["waited"]

    def add_log_densities(self, rows, draw, out):
        """log a + a log b - (a + 1) log(b + x) of each observed cell."""
        for x, a, b in zip(rows.T, *(array.T for array in self.rates(draw)), strict=True):
            log_p = np.log(a) + a * np.log(b) - (a + 1) * np.log(b + x[:, None])
            out += np.where(np.isnan(log_p), 0.0, log_p)

    def add_moments(self, rows, draw, w, mean, variance):
        """Of Lomax laws; inf where there are none."""
        a, b = self.rates(draw)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.where(a > 1, b / (a - 1), np.inf)
            second = np.where(a > 2, first**2 * a / (a - 2), np.inf)
        same_moments(w, first, second, np.isnan(rows), self.columns, mean, variance)

    def sample(self, draw, k, rng):
        """Rates, then times."""
        a, b = self.rates(draw)
        return rng.standard_exponential(len(self.columns)) * b[k] / rng.standard_gamma(a[k])

    def draw_cells(self, draw, cells, X, rng):
        """Rates, then times."""
        a, b = self.rates(draw)
        rate = rng.standard_gamma(cells.at(a)) / cells.at(b)
        return rng.standard_exponential(len(cells.which)) / rate[cells.which]

    # -- starts and files

    def as_features(self, x):
        """Logarithms."""
        return super().as_features(np.log(x))

    def check(self):
        """A shape and a rate for each column."""
        for name in ("shape", "rate"):
            check_array(name, getattr(self, name), (len(self.columns),))
            check_all_positive(name, getattr(self, name))

    def shapes(self):
        """Sums and numbers of observed cells."""
        return dict.fromkeys(("waited", "seen"), (len(self.columns),))
