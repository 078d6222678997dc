"""The prior of columns of waiting times, as `_model.py` of the mixture has one for each kind."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln


@dataclass(frozen=True)
class ExponentialPrior:
    """Columns of waiting times: rate_j ~ Gamma(shape[j], rate[j])."""

    columns: np.ndarray
    shape: np.ndarray
    rate: np.ndarray

    def log_marginal(self, X, state):
        """log m(X) of one block, missing cells integrated out."""
        n, a = np.sum(~np.isnan(X), axis=0), self.shape
        total = gammaln(a + n) - gammaln(a) + a * np.log(self.rate)
        return np.sum(total - (a + n) * np.log(self.rate + np.nansum(X, axis=0)))

    def draw_block(self, n, state, rng):
        """n rows of one block whose parameters come from the prior."""
        rate = rng.gamma(self.shape, 1 / self.rate)
        return rng.exponential(1 / rate, size=(n, len(rate)))
