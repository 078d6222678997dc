"""What a file must hold before anything is computed from it."""

import numpy as np

from skbnp.infinite_factor_clusterer import _scale_model
from skbnp.infinite_factor_clusterer._model import (
    MOST_LAYERS,
    Prior,
    checked_layers,
    checked_parameters,
)
from skbnp.numerics.states import check_positive, checked_floats, checked_indices, is_same


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
        _check_level_labels(draw, 1, 1 + n_upper, n_samples)
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
        _check_level_labels(draw, 2, n_upper, n_samples)


def _check_level_labels(draw, lowest, n_levels, n_samples):
    """Raise a ValueError unless rows have a factor, or none, of each layer from the lowest."""
    labels = checked_indices(draw, "level_labels", (n_levels, n_samples), -1, 2**15)
    for number, level in enumerate(labels, start=lowest):
        if (level >= draw[f"loadings{number}"].shape[1]).any():
            raise ValueError("level_labels of a draw must be factors that there are")


def _check_prior(prior, n_features):
    """Raise a ValueError unless the numbers of a prior are in range."""
    names = ["mass", "mass_prior", "mass_upper", "slab_shape", "slab_scale", "noise_shape"]
    if isinstance(prior, Prior):
        names += ["concentration", "concentration_prior", "score_shape", "score_scale"]
        names += ["score_precision", "noise_rate_prior", "offset_precision_prior"]
        known = {"noise": ("cluster", "shared"), "tails": ("normal", "student")}
        known["means"] = ("factor", "both", "feature")
    else:
        names += ["noise_scale"]
        known = {"birth_move": _scale_model.BIRTH_MOVES}
        noise = prior.noise
        if noise is not None and not (noise.shape == (n_features,) and (noise > 0.0).all()):
            raise ValueError("noise of the prior must be > 0 for each feature")
        if prior.location_variance < 0.0:
            raise ValueError("location_variance of the prior must be >= 0")
    check_positive(prior, *names)
    for name, values in known.items():
        if getattr(prior, name) not in values:
            raise ValueError(f"{name} of the prior must be one of {values}")
    if type(prior.max_layers) is not int or not 1 <= prior.max_layers <= MOST_LAYERS:
        raise ValueError(f"max_layers of the prior must be from 1 to {MOST_LAYERS}")


def check_fitted(estimator):
    """Raise a ValueError unless the fitted attributes of a clusterer belong together.

    Parameters
    ----------
    estimator : InfiniteFactorClusterer
    """
    d, rows, prior = estimator.n_features_in_, estimator._training_rows, estimator._prior
    n_modelled = len(estimator._units.columns)
    _check_prior(prior, n_modelled)
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
    numbers = np.unique(labels)
    if isinstance(prior, Prior) and (
        len(numbers) != n_clusters or not np.array_equal(numbers, np.arange(n_clusters))
    ):
        raise ValueError(f"labels_ must be 0 to n_clusters_ - 1 = {n_clusters - 1}")
    check_draw(estimator._reference, prior, *rows.X.shape)
    n_factors = estimator._reference["loadings1"].shape[1]
    fitted = vars(estimator)
    if not is_same([estimator._units, prior], [rows.units, rows.prior]):
        raise ValueError("the units and the prior of the rows must be those of the draws")
    checked_indices(fitted, "feature_labels_", (d,), -1, n_factors)
    checked_floats(fitted, "energy_correlation_", (d, d))
    levels = estimator.labels_per_level_
    if not levels or not np.array_equal(levels[0], labels):
        raise ValueError("the first of labels_per_level_ must be labels_")
    for number, level in enumerate(levels[1:], start=2):
        n_above = estimator._reference[f"loadings{number}"].shape[1]
        checked_indices(
            {"labels_per_level_": level}, "labels_per_level_", labels.shape, -1, n_above
        )
    if estimator._n_features_out != n_factors or estimator.n_layers_ > prior.max_layers:
        raise ValueError("_n_features_out and n_layers_ must be those of the draws")
    if isinstance(prior, Prior):
        components = checked_indices(fitted, "component_labels_", labels.shape, 0, len(rows.X))
        if not np.array_equal(np.unique(components), np.arange(components.max() + 1)):
            raise ValueError("component_labels_ must be numbered without a gap")
        checked_floats(estimator.cluster_energies_, "factors", (n_clusters, n_factors))
        checked_floats(estimator.cluster_energies_, "noise", (n_clusters, d))
    else:
        # Of each factor, or of each of its two signs.
        checked_indices(fitted, "labels_", labels.shape, -1, 2 * n_factors)
        if len(np.unique(labels[labels >= 0])) != n_clusters:
            raise ValueError("n_clusters_ must be the number of labels_ from 0")
