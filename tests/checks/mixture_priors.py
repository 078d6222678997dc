"""Priors that several tests of the mixture have in common: mixed tables, laws of K, covariances."""

import numpy as np

from checks.dirichlet_process_mixture import case_part, learned_prior, vector_cases
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture.families import CategoricalPrior, GaussianPrior, PoissonPrior
from skbnp.laws import Beta, Gamma, ShiftedBetaNegativeBinomial

CASES = vector_cases()

# (a, b, c) and gamma: the default, and one with more, uneven components.
LAWS = {
    "default": (ShiftedBetaNegativeBinomial(1.0, 4.0, 3.0), 1.0),
    "wide": (ShiftedBetaNegativeBinomial(2.0, 2.0, 4.0), 0.3),
}


def finite_prior(table, law):
    """Of one of the cases, with a law of the number of components."""
    components_law, gamma = LAWS[law]
    return _model.Prior(
        (case_part(CASES[table]),),
        n_components=components_law,
        concentration=gamma,
        prior_scale=1.0,
    )


COVARIANCE = {
    "full": np.array([[1.0, 0.4], [0.4, 0.8]]),
    "diag": np.array([1.0, 0.6]),
    "spherical": np.array(0.8),
}


def mixed_prior(kind, **of_partition):
    """Columns: real, level of three, real, 0/1, count, count."""
    real = GaussianPrior(np.array([0, 2]), kind, np.array([0.3, -0.2]), 0.5, 8.0, COVARIANCE[kind])
    level = CategoricalPrior(np.array([1, 3]), (np.array([0.5, 1.0, 0.7]), np.array([0.8, 0.6])))
    count = PoissonPrior(np.array([4, 5]), np.array([1.5, 3.0]), np.array([0.5, 1.0]))
    return _model.Prior((real, level, count), **of_partition)


def learning_prior(kind, mean_precision=None, mixed=False, **changes):
    """Of covariances that learn from one another; with ``mixed`` a column of levels too."""
    defaults = {
        "concentration": Gamma(2.0, 2.0),
        "discount": Beta(2.0, 4.0),
    }
    prior = learned_prior(
        kind, np.array([0.3, -0.2]), COVARIANCE[kind], mean_precision, **(defaults | changes)
    )
    if not mixed:
        return prior
    levels = CategoricalPrior(np.array([2]), (np.array([0.5, 0.5, 1.0]),))
    return _model.Prior((*prior.parts, levels), **(defaults | changes))
