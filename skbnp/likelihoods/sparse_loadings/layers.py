"""Sparse loadings of Indian buffet processes and the layers above the first, in plain NumPy.

Slow and readable on purpose: it is what `ScaleLayer` is tested against. Layers of a state are
``loadings1, scores1, loadings2, scores2, ...``: (rows or factors below, factors) and (n_samples,
factors). Those above the first occur only where they have a factor.
"""

import numpy as np
from scipy.special import gammaln

from skbnp.numerics.states import checked_floats, checked_indices, is_same
from skbnp.processes import ibp

# Layers at most when their number is left open; each is empty with a chance that only grows.
MOST_LAYERS = 8
# A layer with no factor above this share of the energy is not there.
_LEAST_SHARE = 0.01


# -- densities ------------------------------------------------------------------------------------


def log_gamma_density(x, shape, rate):
    """log Gamma(x; shape, rate), elementwise."""
    return shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(x) - rate * x


def log_inverse_gamma(x, shape, scale):
    """log IG(x; shape, scale), elementwise."""
    return shape * np.log(scale) - gammaln(shape) - (shape + 1) * np.log(x) - scale / x


def log_normal(x, mean, variance):
    """log N(x; mean, variance), elementwise."""
    return -0.5 * (np.log(2 * np.pi * variance) + (x - mean) ** 2 / variance)


def log_links(loadings, mass):
    """log p(Z) of an IBP over the rows of ``loadings``, factors in a random order (D2.2)."""
    n_rows, n_factors = loadings.shape
    n_links = np.count_nonzero(loadings, axis=0)
    harmonic = np.sum(1 / np.arange(1, n_rows + 1))
    total = n_factors * np.log(mass) - gammaln(n_factors + 1) - mass * harmonic
    return total + np.sum(gammaln(n_rows - n_links + 1) + gammaln(n_links) - gammaln(n_rows + 1))


def log_slab(loadings, shape, scale):
    """log p(W | Z) with the slab variances integrated out: a t law of every factor's loadings."""
    n_links = np.count_nonzero(loadings, axis=0)
    a = shape + n_links / 2
    b = scale + np.sum(loadings**2, axis=0) / 2
    total = gammaln(a) - gammaln(shape) + shape * np.log(scale) - a * np.log(b)
    return np.sum(total - n_links / 2 * np.log(2 * np.pi))


# -- layers ---------------------------------------------------------------------------------------


def n_layers(draw):
    """Layers of a state or draw, the first included."""
    number = 1
    while f"loadings{number + 1}" in draw:
        number += 1
    return number


def upper_layers(state):
    """The layers above the first: list of (loadings, scores)."""
    layers = []
    while f"loadings{len(layers) + 2}" in state:
        number = len(layers) + 2
        layers.append((state[f"loadings{number}"], state[f"scores{number}"]))
    return layers


def inflation(state):
    """u (n_samples, K): the variance of the standardised scores of layer one, 1 + A_2^2."""
    layers = upper_layers(state)
    if not layers:
        return np.ones_like(state["scores1"])
    loadings, scores = layers[0]
    return 1 + (scores @ loadings.T) ** 2


def level_labels(loadings, scores):
    """The factor with the largest share of each row's energy in the layer below, -1 for none.

    Energies are relative to the mean variances 1 + A^2 of the factors below, of which 1 each is
    the background's (D12.1).
    """
    below = np.mean(1 + (scores @ loadings.T) ** 2, axis=0)
    energy = scores**2 * np.sum(loadings**2 / below[:, np.newaxis], axis=0)
    background = np.full((len(scores), 1), np.sum(1 / below))
    return (np.hstack([background, energy]).argmax(axis=1) - 1).astype(np.int16)


def log_upper(state, prior):
    """log p of all layers above the first, given its number of factors: mathematics, section 2."""
    layers = upper_layers(state)
    total, n_rows = 0.0, state["loadings1"].shape[1]
    for l, (loadings, scores) in enumerate(layers):  # noqa: E741
        total += log_links(loadings, prior.mass_upper)
        total += log_slab(loadings, prior.slab_shape, prior.slab_scale)
        above = layers[l + 1] if l + 1 < len(layers) else None
        variance = 1.0 if above is None else 1 + (above[1] @ above[0].T) ** 2
        total += np.sum(log_normal(scores, 0.0, variance))
        n_rows = loadings.shape[1]
    if len(layers) + 1 < prior.max_layers:
        # The first empty layer ends the net.
        total -= prior.mass_upper * np.sum(1 / np.arange(1, n_rows + 1))
    return total


def real_layers(draws):
    """Layers from the first with a factor of two links and of some energy, in half the draws.

    A layer that is not real is a few factors with one tiny link each, which come and go.
    """
    real = []
    for number in range(1, max(map(n_layers, draws)) + 1):
        real.append(np.mean([_is_real(draw, number) for draw in draws]))
        if real[-1] < 0.5:
            return number - 1
    return len(real)


def _is_real(draw, number):
    """Whether a layer has a factor with two links and more than one per cent of the energy."""
    if number > n_layers(draw):
        return False
    w = draw[f"loadings{number}"]
    energy = np.sum(w**2, axis=0)
    if f"scores{number}" in draw:
        energy = energy * np.mean(np.square(draw[f"scores{number}"], dtype=np.float64), axis=0)
    elif number == 1:
        energy = energy * draw["score_energy"]
    # Beside the factors below there is what they have by themselves.
    own = np.mean(draw["noise_variance"], axis=-1).mean() * len(w) if number == 1 else len(w)
    shared = np.count_nonzero(w, axis=0) > 1
    return bool((shared & (energy > _LEAST_SHARE * (energy.sum() + own))).any())


# -- draws ----------------------------------------------------------------------------------------


def draw_links(n_rows, mass, prior, rng):
    """Loadings (n_rows, K) of one layer from the prior, and their slab variances."""
    links = ibp.sample(n_rows, mass, random_state=rng).astype(bool)
    variance = prior.slab_scale / rng.gamma(prior.slab_shape, size=links.shape[1])
    return np.where(links, rng.normal(size=links.shape) * np.sqrt(variance), 0.0), variance


def draw_upper(prior, n_samples, n_rows, rng):
    """The layers above the first from the prior: a dict of loadings2, scores2, ..."""
    loadings = []
    while len(loadings) + 1 < prior.max_layers and n_rows > 0:
        drawn, _ = draw_links(n_rows, prior.mass_upper, prior, rng)
        n_rows = drawn.shape[1]
        if n_rows:
            loadings.append(drawn)
    out, variance = {}, 1.0
    for number in range(len(loadings) + 1, 1, -1):
        w = loadings[number - 2]
        scores = rng.normal(size=(n_samples, w.shape[1])) * np.sqrt(variance)
        out[f"loadings{number}"], out[f"scores{number}"] = w, scores
        variance = 1 + (scores @ w.T) ** 2
    return out


def prior_mean(fixed, law):
    """A hyperparameter's fixed value, or the mean of its Gamma(shape, rate)."""
    return law[0] / law[1] if fixed is None else fixed


# -- states from outside --------------------------------------------------------------------------


def checked_layers(state, prior, n_samples, n_rows, draw=False):
    """The layers above the first, of which a draw has no scores; ValueError if they do not fit."""
    out, number = {}, 2
    while f"loadings{number}" in state:
        if number > prior.max_layers:
            raise ValueError(f"state must have at most {prior.max_layers} layers, got {number}")
        loadings = checked_floats(state, f"loadings{number}", (n_rows, -1))
        n_rows = loadings.shape[1]
        if n_rows == 0 or not loadings.any(axis=0).all():
            raise ValueError(f"loadings{number} of the state has an empty factor")
        out[f"loadings{number}"] = loadings
        if not draw:
            out[f"scores{number}"] = checked_floats(state, f"scores{number}", (n_samples, n_rows))
        number += 1
    return out


def check_level_labels(draw, lowest, n_levels, n_samples):
    """Raise a ValueError unless rows have a factor, or none, of each layer from the lowest."""
    labels = checked_indices(draw, "level_labels", (n_levels, n_samples), -1, 2**15)
    for number, level in enumerate(labels, start=lowest):
        if (level >= draw[f"loadings{number}"].shape[1]).any():
            raise ValueError("level_labels of a draw must be factors that there are")


def check_max_layers(prior):
    """Raise a ValueError unless a prior allows a number of layers."""
    if type(prior.max_layers) is not int or not 1 <= prior.max_layers <= MOST_LAYERS:
        raise ValueError(f"max_layers of the prior must be from 1 to {MOST_LAYERS}")


def check_shared_fitted(estimator):
    """Raise a ValueError unless rows, units and labels of a fitted estimator belong together.

    Parameters
    ----------
    estimator : InfiniteFactorClusterer or DeepScaleModel
    """
    d, rows, prior = estimator.n_features_in_, estimator._training_rows, estimator._prior
    n_modelled, labels = len(estimator._units.columns), estimator.labels_
    if rows.X.ndim != 2 or rows.X.shape[1] != n_modelled or rows.X.dtype != np.float64:
        raise ValueError("the training rows must have a number for each feature")
    if not is_same([estimator._units, prior], [rows.units, rows.prior]):
        raise ValueError("the units and the prior of the rows must be those of the draws")
    if labels.shape != (len(rows.X),) or labels.dtype.kind != "i":
        raise ValueError("labels_ must have one entry per row")
    loadings = checked_floats(estimator._reference, "loadings1", (n_modelled, -1))
    checked_indices(vars(estimator), "feature_labels_", (d,), -1, loadings.shape[1])
    checked_floats(vars(estimator), "energy_correlation_", (d, d))
    levels = estimator.labels_per_level_
    if not levels or not np.array_equal(levels[0], labels):
        raise ValueError("the first of labels_per_level_ must be labels_")
    for number, level in enumerate(levels[1:], start=2):
        n_above = estimator._reference[f"loadings{number}"].shape[1]
        checked_indices(
            {"labels_per_level_": level}, "labels_per_level_", labels.shape, -1, n_above
        )
    if estimator._n_features_out != loadings.shape[1] or estimator.n_layers_ > prior.max_layers:
        raise ValueError("_n_features_out and n_layers_ must be those of the draws")
