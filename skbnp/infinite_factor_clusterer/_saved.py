"""What a file must hold before anything is computed from it."""

import numpy as np

from skbnp.infinite_factor_clusterer._model import NOISE_RATE_LAW, checked_parameters
from skbnp.laws import Gamma, InverseGamma
from skbnp.likelihoods.sparse_loadings.layers import (
    check_level_labels,
    check_prior,
    checked_layers,
    n_layers,
)
from skbnp.numerics.states import check_positive, checked_floats, checked_indices


def check_draw(draw, prior, n_samples, n_features):
    """Raise a ValueError unless a draw fits its prior and the rows.

    Parameters
    ----------
    draw : dict
    prior : Prior
    n_samples, n_features : int
        Shape of the standardised rows.
    """
    found = checked_parameters(draw, prior, n_features)
    n_clusters, n_factors = found["score_mean"].shape
    label = checked_indices(draw, "label", (n_samples,), 0, n_clusters)
    n_members = checked_indices(draw, "n_members", (n_clusters,), 1, n_samples + 1)
    if not np.array_equal(np.bincount(label, minlength=n_clusters), n_members):
        raise ValueError("n_members of a draw must count its labels")
    checked_floats(draw, "score_energy", (n_factors,))
    checked_floats(draw, "noise_rate", (n_features,), positive=True)
    checked_layers(draw, prior, n_samples, n_factors, draw=True)
    n_upper = n_layers(draw) - 1
    if n_upper:
        check_level_labels(draw, 2, n_upper, n_samples)


def _check_prior(prior):
    """Raise a ValueError unless the numbers of a prior are in range."""
    laws = {"concentration": Gamma, "score_variance": InverseGamma, "noise_variance": InverseGamma}
    check_prior(prior, laws | {"offset_precision": Gamma}, ("concentration",))
    if not isinstance(prior.noise_variance.scale, NOISE_RATE_LAW):
        raise ValueError("noise_variance of the prior must have a law for its scale")
    check_positive(prior, "mean_precision_prior")
    known = {"noise": ("cluster", "shared"), "tails": ("gaussian", "t")}
    known["means"] = ("factor", "both", "feature")
    for name, values in known.items():
        if getattr(prior, name) not in values:
            raise ValueError(f"{name} of the prior must be one of {values}")


def check_fitted(estimator):
    """Raise a ValueError unless the fitted attributes of a clusterer belong together.

    Parameters
    ----------
    estimator : InfiniteFactorClusterer
    """
    d, rows, prior = estimator.n_features_in_, estimator._training_rows, estimator._prior
    n_modelled = len(estimator._units.columns)
    _check_prior(prior)
    if estimator._limit is not None and np.shape(estimator._limit) != (d,):
        raise ValueError("detection limits must have one number for each feature")
    if (rows.limit is None) is not (estimator._limit is None) or (
        rows.limit is not None and np.shape(rows.limit) != (n_modelled,)
    ):
        raise ValueError("detection limits of the rows must have one number for each feature")
    estimator._check_factors()
    labels, n_clusters = estimator.labels_, estimator.n_clusters_
    numbers = np.unique(labels)
    if len(numbers) != n_clusters or not np.array_equal(numbers, np.arange(n_clusters)):
        raise ValueError(f"labels_ must be 0 to n_clusters_ - 1 = {n_clusters - 1}")
    check_draw(estimator._reference, prior, *rows.X.shape)
    n_factors = estimator._reference["loadings1"].shape[1]
    components = checked_indices(vars(estimator), "component_labels_", labels.shape, 0, len(rows.X))
    if not np.array_equal(np.unique(components), np.arange(components.max() + 1)):
        raise ValueError("component_labels_ must be numbered without a gap")
    checked_floats(estimator.cluster_energies_, "factors", (n_clusters, n_factors))
    checked_floats(estimator.cluster_energies_, "noise", (n_clusters, d))
