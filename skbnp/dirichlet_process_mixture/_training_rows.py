"""The training rows, for what looks at each of them given all others."""

from dataclasses import dataclass

import numpy as np

from skbnp.dirichlet_process_mixture._model import Prior
from skbnp.dirichlet_process_mixture._sampler import Sampler


@dataclass(frozen=True)
class TrainingRows:
    """Standardised rows (n_samples, n_features) with their prior and units."""

    X: np.ndarray
    prior: Prior
    center: np.ndarray
    scale: np.ndarray

    def __call__(self, draw):
        """Log density of each row given all others and the draw without it, in the units of X."""
        jacobian = np.where(np.isnan(self.X), 0.0, np.log(self.scale)).sum(axis=1)
        return self._sampler(draw).leave_one_out(draw.get("imputed")) - jacobian

    def shares(self, draw):
        """Probability that each row is of each block of the draw, given all other rows and labels.

        Among the blocks there are, so that rows sum to one: (n_samples, n_blocks).
        """
        return self._sampler(draw).leave_one_out_shares(draw.get("imputed"))

    def _sampler(self, draw):
        """A sampler that never sweeps: nothing is drawn from its bit generator."""
        names = ("concentration", "discount", *self.prior.start())
        start = {name: draw[name] for name in names}
        return Sampler(self.X, self.prior, draw["label"], np.random.PCG64(0), start=start)

    def observed_data(self):
        """The rows in their own units, levels as codes."""
        return self.X * self.scale + self.center
