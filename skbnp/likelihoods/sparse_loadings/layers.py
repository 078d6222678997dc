"""Sparse loadings of Indian buffet processes and the layers above the first, in plain NumPy.

Slow and readable on purpose: it is what `ScaleLayer` is tested against. Layers of a state are
``loadings1, scores1, loadings2, scores2, ...``: (rows or factors below, factors) and (n_samples,
factors). Those above the first occur only where they have a factor.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import gammaln

from skbnp.laws import Gamma, InverseGamma, Law
from skbnp.numerics.states import check_positive, checked_floats, checked_indices
from skbnp.processes import ibp

# Layers at most when their number is left open; each is empty with a chance that only grows.
MOST_LAYERS = 8
# A layer with no factor above this share of the energy is not there.
_LEAST_SHARE = 0.01


@dataclass(frozen=True)
class LoadingsPrior:
    """Hyperparameters of layers of sparse loadings: a number is given, a law is sampled.

    Links of the first layer are an Indian buffet of this mass. The layers above have the mass
    ``mass_upper``, and an empty one ends the net. All loadings of a factor have one variance.
    """

    mass: float | Gamma = Gamma(1.0, 1.0)
    mass_upper: float = 0.5
    loading_variance: InverseGamma = InverseGamma(2.0, 1.0)
    max_layers: int = 1


# -- densities ------------------------------------------------------------------------------------


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


def log_slab(loadings, law):
    """log p(W | Z), slab variances of this law integrated out: a t law of a factor's loadings."""
    shape, scale = law.shape, law.scale
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
    """log p of all layers above the first, given its number of factors.

    mathematics/deep_scale_model, section 2.
    """
    layers = upper_layers(state)
    total, n_rows = 0.0, state["loadings1"].shape[1]
    for l, (loadings, scores) in enumerate(layers):  # noqa: E741
        total += log_links(loadings, prior.mass_upper)
        total += log_slab(loadings, prior.loading_variance)
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
    variance = draw_inverse_gamma(prior.loading_variance, rng, links.shape[1])
    return np.where(links, rng.normal(size=links.shape) * np.sqrt(variance), 0.0), variance


def draw_inverse_gamma(law, rng, size):
    """Draws from an inverse gamma law, as the reciprocals of gamma draws."""
    return law.scale / rng.gamma(law.shape, size=size)


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


def drawn(value, rng):
    """A hyperparameter's given value, or a draw from its law."""
    return value.sample(random_state=rng) if isinstance(value, Law) else value


def prior_mean(value):
    """A hyperparameter's given value, or the mean of its law."""
    return value.mean() if isinstance(value, Law) else value


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


def check_prior(prior, laws, may_be_given):
    """Raise a ValueError unless kernels may read the hyperparameters of a prior unseen.

    Parameters
    ----------
    prior : LoadingsPrior
    laws : dict
        The law that each hyperparameter has. Laws have checked their own numbers.
    may_be_given : collection of str
        Those among them that may be positive numbers instead.
    """
    laws = {"mass": Gamma, "loading_variance": InverseGamma, **laws}
    for name, law in laws.items():
        value = getattr(prior, name)
        if isinstance(value, law):
            continue
        if name not in ("mass", *may_be_given) or not isinstance(value, Real) or not value > 0:
            raise ValueError(f"{name} of the prior must be {law.__name__}, got {value!r}")
    check_positive(prior, "mass_upper")
    if type(prior.max_layers) is not int or not 1 <= prior.max_layers <= MOST_LAYERS:
        raise ValueError(f"max_layers of the prior must be from 1 to {MOST_LAYERS}")
