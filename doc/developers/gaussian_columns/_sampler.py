"""One chain: a state, two moves, and their order."""

import numpy as np

from gaussian_columns import _model
from skbnp.mcmc import chain
from skbnp.mcmc.fields import Field


class State(chain.State):
    """Mean and precision of each column. Missing cells are integrated out."""

    FIELDS = (
        Field("mean", float, ("n_features",)),
        Field("precision", float, ("n_features",), above=0.0),
    )

    def __init__(self, X, prior, log_jacobian):
        self.prior, self.log_jacobian = prior, log_jacobian
        self.n_features = X.shape[1]
        self.mean, self.precision = np.zeros(self.n_features), np.ones(self.n_features)
        self.take(X)

    def take(self, X):
        """Let these be the data."""
        self.X, self.seen = X, ~np.isnan(X)
        self.count, self.total = self.seen.sum(axis=0), np.nansum(X, axis=0)

    def log_joint(self):
        """log p(mean, precision, X), a density in the units of X."""
        state = {"mean": self.mean, "precision": self.precision}
        return _model.log_joint(state, self.X, self.prior) + self.log_jacobian


class Gibbs(chain.Move):
    """A move in Python that draws from a conditional."""

    def __init__(self, state, bit_generator):
        super().__init__(bit_generator)
        self.state, self.random = state, np.random.Generator(bit_generator)

    def run(self):
        lock = self.random.bit_generator.lock
        lock.release()  # the sweep holds it, and before NumPy 2.4 a generator waits for it for ever
        try:
            self.redraw(self.state)
        finally:
            lock.acquire()
        return chain.Status.DONE


class Means(Gibbs):
    """mean | precision, X: normal, all columns at once. O(d)."""

    NAME = "means"

    def redraw(self, state):
        precision = 1.0 / state.prior.mean_variance + state.count * state.precision
        z = self.random.standard_normal(state.n_features)
        state.mean[:] = state.total * state.precision / precision + z / np.sqrt(precision)


class Precisions(Gibbs):
    """precision | mean, X: gamma, all columns at once. O(N d)."""

    NAME = "precisions"

    def redraw(self, state):
        squares = np.where(state.seen, state.X - state.mean, 0.0) ** 2
        rate = state.prior.rate + 0.5 * squares.sum(axis=0)
        drawn = self.random.gamma(state.prior.shape + 0.5 * state.count)
        state.precision[:] = np.maximum(drawn / rate, 1e-300)


class Sampler(chain.Chain):
    """One chain on standardised rows."""

    MOVES = (Means, Precisions)

    def __init__(self, X, prior, bit_generator, log_jacobian=0.0):
        state = State(X, prior, log_jacobian)
        super().__init__(state, [move(state, bit_generator) for move in self.MOVES], bit_generator)

    def scalars(self):
        """Quantities traced beside the log joint."""
        return {"log_precision": float(np.log(self.state.precision).sum())}

    def draw(self):
        """Snapshot for prediction."""
        return {"mean": self.state.mean.copy(), "precision": self.state.precision.copy()}

    def simulate_data(self):
        """Draw the data anew given the state (Geweke 2004)."""
        state, random = self.state, np.random.Generator(self.bit_generator)
        noise = random.standard_normal(state.X.shape) / np.sqrt(state.precision)
        state.take(np.where(state.seen, state.mean + noise, np.nan))
