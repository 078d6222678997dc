"""Posterior predictive of one draw: densities, memberships, conditional moments.

All functions take rows in the units of the draw (standardised) and know nothing of chains. A
draw of K blocks has K + 1 sets of statistics, the last the empty block, whose predictive is that
of the prior. What depends on what the columns hold is asked of the parts of the prior, `families`.
"""

import numpy as np

from skbnp.processes import crp, mfm


class Rows:
    """Rows to be predicted, kind of column by kind.

    ``parts`` holds what ``prior.parts`` made of them, ``order`` in which rows: some are predicted
    together.
    """

    def __init__(self, X, prior):
        orders = [part.pattern_order(X[:, part.columns]) for part in prior.parts]
        self.order = next((one for one in orders if one is not None), np.arange(len(X)))
        self._is_sorted = bool((np.diff(self.order) > 0).all())
        sorted_x = np.ascontiguousarray(X[self.order], dtype=np.float64)
        self.parts = [
            part.prepare(np.ascontiguousarray(sorted_x[:, part.columns])) for part in prior.parts
        ]

    def unsort(self, sorted_rows):
        """The array's rows in the order of the input."""
        if self._is_sorted:
            return sorted_rows
        out = np.empty_like(sorted_rows)
        out[self.order] = sorted_rows
        return out


def log_weights(draw, prior):
    """Log predictive probability of each block, the new one last, shape (K + 1,)."""
    sizes = draw["n_members"][:len(draw["n_members"]) - 1]
    if prior.components_law is not None:
        return mfm.log_predictive(sizes, draw["concentration"], prior.components_law)
    discount = 0.0 if prior.n_components else draw["discount"]
    return crp.log_predictive(sizes, draw["concentration"], discount, prior.n_components)


def log_densities(rows, draw, prior, log_weight):
    """log(weight_k p(x | block k)) for every row and block: (n_rows, K + 1), in sorted order.

    Missing cells are integrated out. Full covariance: O(n K d^2) as triangular solves (BLAS 3)
    and O(K d^3) for each pattern of missing cells; otherwise O(n K d), and for counts O(K) for
    each distinct value.
    """
    out = np.empty((len(rows.order), len(log_weight)))
    out[:] = log_weight
    for part, x in zip(prior.parts, rows.parts, strict=True):
        part.add_log_densities(x, draw, out)
    return out


def conditional_moments(rows, draw, prior, log_p):
    """Mean and variance of the missing cells given the observed ones, under one draw.

    ``log_p`` are ``log_densities``. Both are (n_rows, n_features + n_levels), in sorted order: of
    missing numbers first, then of the levels of missing categorical cells 0 and 1, the means of
    which are probabilities. A variance is inf where the conditional t has no second moment.
    """
    w = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    mean, variance = np.zeros((2, len(w), prior.n_values))
    for part, x in zip(prior.parts, rows.parts, strict=True):
        part.add_moments(x, draw, w, mean, variance)
    return mean, variance


def sample_row(draw, prior, k, rng):
    """One row from the predictive of block k, shape (n_features,)."""
    out = np.empty(prior.n_features)
    for part in prior.parts:
        out[part.columns] = part.sample(draw, k, rng)
    return out
