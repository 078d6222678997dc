"""What a file must hold before anything is computed from it."""

import numpy as np

from skbnp.deep_scale_model._model import BIRTH_MOVES, NOISE_LAW, checked_state
from skbnp.laws import Law, Normal
from skbnp.likelihoods.sparse_loadings.layers import (
    check_level_labels,
    check_prior,
    n_layers,
)
from skbnp.numerics.states import checked_indices


def check_draw(draw, prior, n_samples, n_features):
    """Raise a ValueError unless a draw fits its prior and the rows.

    Parameters
    ----------
    draw : dict
    prior : Prior
    n_samples, n_features : int
        Shape of the standardised rows.
    """
    checked_state(draw, prior, n_samples, n_features)
    check_level_labels(draw, 1, n_layers(draw), n_samples)


def _check_prior(prior, n_features):
    """Raise a ValueError unless the numbers of a prior are in range."""
    check_prior(prior, {}, ())
    noise, drift = prior.noise_variance, prior.drift
    if isinstance(noise, Law):
        check_prior(prior, {"noise_variance": NOISE_LAW}, ())
    elif not (noise.shape == (n_features,) and (noise > 0.0).all()):
        raise ValueError("noise_variance of the prior must be > 0 for each feature")
    if not isinstance(drift, (Normal, float)):
        raise ValueError(f"drift of the prior must be a number or Normal, got {drift!r}")
    if prior.location_variance < 0.0:
        raise ValueError("location_variance of the prior must be >= 0")
    if prior.birth_move not in BIRTH_MOVES:
        raise ValueError(f"birth_move of the prior must be one of {BIRTH_MOVES}")


def check_fitted(estimator):
    """Raise a ValueError unless the fitted attributes of a model belong together.

    Parameters
    ----------
    estimator : DeepScaleModel
    """
    rows, prior, labels = estimator._training_rows, estimator._prior, estimator.labels_
    _check_prior(prior, len(estimator._units.columns))
    estimator._check_factors()
    check_draw(estimator._reference, prior, *rows.X.shape)
    # Of each factor, or of each of its two signs.
    n_factors = estimator._reference["loadings1"].shape[1]
    checked_indices(vars(estimator), "labels_", labels.shape, -1, 2 * n_factors)
    if len(np.unique(labels[labels >= 0])) != estimator.n_clusters_:
        raise ValueError("n_clusters_ must be the number of labels_ from 0")
