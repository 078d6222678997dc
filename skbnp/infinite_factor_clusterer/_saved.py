"""What a file must hold before anything is computed from it."""

import numpy as np

from skbnp.infinite_factor_clusterer import _scale_model
from skbnp.infinite_factor_clusterer._model import Prior, checked_layers, checked_parameters
from skbnp.numerics.states import checked_floats, checked_indices


def check_draw(draw, prior, n_samples, n_features):
    """Raise a ValueError unless a draw of either model fits its prior and the rows.

    Parameters
    ----------
    draw : dict
    prior : Prior or ScalePrior
    n_samples, n_features : int
        Shape of the standardised rows.
    """
    n_upper = sum(name.startswith("loadings") for name in draw) - 1
    if not isinstance(prior, Prior):
        _scale_model.checked_state(draw, prior, n_samples, n_features)
        checked_indices(draw, "level_labels", (1 + n_upper, n_samples), -1, 2**15)
        return
    found = checked_parameters(draw, prior, n_features)
    n_clusters, n_factors = found["score_mean"].shape
    label = checked_indices(draw, "label", (n_samples,), 0, n_clusters)
    n_members = checked_indices(draw, "n_members", (n_clusters,), 1, n_samples + 1)
    if not np.array_equal(np.bincount(label, minlength=n_clusters), n_members):
        raise ValueError("n_members of a draw must count its labels")
    checked_floats(draw, "score_energy", (n_factors,))
    checked_floats(draw, "noise_rate", (n_features,), positive=True)
    checked_layers(draw, prior, n_samples, n_factors, draw=True)
    if n_upper:
        checked_indices(draw, "level_labels", (n_upper, n_samples), -1, 2**15)


def check_fitted(estimator):
    """Raise a ValueError unless the fitted attributes of a clusterer belong together.

    Parameters
    ----------
    estimator : InfiniteFactorClusterer
    """
    d, rows, prior = estimator.n_features_in_, estimator._training_rows, estimator._prior
    n_modelled = len(estimator._units.columns)
    if isinstance(prior, Prior) is not (estimator.top == "dp"):
        raise ValueError("the prior must be of the model that `top` says")
    if rows.X.ndim != 2 or rows.X.shape[1] != n_modelled or rows.X.dtype != np.float64:
        raise ValueError("the training rows must have a number for each feature")
    if estimator._limit is not None and np.shape(estimator._limit) != (d,):
        raise ValueError("detection limits must have one number for each feature")
    if (rows.limit is None) is not (estimator._limit is None) or (
        rows.limit is not None and np.shape(rows.limit) != (n_modelled,)
    ):
        raise ValueError("detection limits of the rows must have one number for each feature")
    labels, n_clusters = estimator.labels_, estimator.n_clusters_
    if labels.shape != (len(rows.X),) or labels.dtype.kind != "i":
        raise ValueError("labels_ must have one entry per row")
    if estimator.top == "dp" and not np.array_equal(np.unique(labels), np.arange(n_clusters)):
        raise ValueError(f"labels_ must be 0 to n_clusters_ - 1 = {n_clusters - 1}")
    check_draw(estimator._reference, prior, *rows.X.shape)
