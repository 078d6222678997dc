"""Where chains of networks under the Indian chefs process start."""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from skbnp.icp_network._model import draw_joint
from skbnp.numerics.quiet import ignoring

# Orders of the nodes above and in the layer, as shares of the way from the lowest observed node to
# 1; free observed nodes start below.
_TOP, _LAYER, _FREE = (0.8, 0.9), (0.3, 0.6), 0.05
_N_TOP = 2  # of "two-level"
_WEIGHT, _SMALL_WEIGHT = 2.0, 0.1  # standard deviations there, into the layer and out of it
_PRECISION = {"two-level": 20.0, "gaussianised": 100.0, "network": 100.0}
_N_ROUNDS = 30  # of Gaussianisation
_L2, _N_STEPS, _MOST_ROWS = 0.05, 1500, 2000  # of least squares
_LATENT = 2.0  # size of a latent's pre-activation
_LEAST_VARIANCE = 1e-4  # of the rows around what the network says


def start_state(visible, prior, rng, init, n_units, labels=None):
    """A state to start a chain from.

    Parameters
    ----------
    visible : ndarray of shape (n_samples, n_observed)
        Pre-activations of the observed nodes, values of inputs, NaN where missing. What is in
        columns of latents does not matter.
    prior : Prior
    rng : numpy.random.Generator
    init : {"two-level", "gaussianised", "network", "empty", "prior"}
        A layer of units below two random ones, which says little yet; a layer that turns what
        makes the rows Gaussian back into them, by least squares; a layer from inputs to outputs,
        by least squares; no hidden node and no edge; or a draw from the prior.
    n_units : int
        Units of the layer, at most.
    labels : ndarray of int of shape (n_samples,), default=None
        Class of each row, where there are latents.
    """
    filled = _filled(visible, prior, labels, rng)
    if init == "prior":
        return draw_joint(prior, len(filled), rng) | {"visible": filled}
    has_law, order = prior.has_law(prior.n_observed), _observed_orders(prior)
    inputs = np.flatnonzero(~has_law)
    if init == "network" and not len(inputs):
        raise ValueError('init must not be "network" where no observed node is an input')
    low = order[has_law].min(initial=1.0)
    children = np.flatnonzero(has_law & (order < low + (1.0 - low) * _LAYER[0]))
    target = filled[:, children]
    n_top, n_layer = _sizes(init, n_units, prior.max_units, *target.shape)

    if init == "gaussianised" and n_layer:
        top = _normal_scores(target, n_top, rng)
    else:
        top = rng.normal(size=(len(filled), n_top))
    above = filled[:, inputs] if init == "network" else np.tanh(top / 2)
    if init == "two-level":
        weight_in, bias = _WEIGHT * rng.normal(size=(n_top, n_layer)), np.zeros(n_layer)
        weight_out = _SMALL_WEIGHT * rng.normal(size=(n_layer, len(children)))
    else:
        weight_in, bias, weight_out = _least_squares(above, target, n_layer, rng)
    a = bias + above @ weight_in

    # Nodes: observed, the layer, top.
    n_observed, n_nodes = prior.n_observed, prior.n_observed + n_layer + n_top
    layer = n_observed + np.arange(n_layer)
    parents = inputs if init == "network" else n_observed + n_layer + np.arange(n_top)
    weight, joined = np.zeros((n_nodes, n_nodes)), np.zeros((n_nodes, n_nodes), dtype=bool)
    for block, values in (
        (np.ix_(layer, parents), weight_in.T),
        (np.ix_(children, layer), weight_out.T),
    ):
        weight[block], joined[block] = values, True
    child, parent = np.nonzero(joined)

    residual = filled.copy()
    residual[:, children] -= np.tanh(a / 2) @ weight_out
    mean = _mean(residual)
    variance = np.maximum(_mean((residual - mean) ** 2), _LEAST_VARIANCE)
    precision = np.where(prior.has_precision(n_observed), 1.0 / variance, 1.0)
    return {
        "order": np.concatenate(
            [
                order,
                low + (1.0 - low) * np.sort(rng.uniform(*_LAYER, size=n_layer)),
                low + (1.0 - low) * np.linspace(*_TOP, n_top),
            ]
        ),
        "edges": np.column_stack([parent, child]).astype(np.int32),
        "weights": weight[child, parent],
        "biases": np.concatenate([np.where(has_law, mean, 0.0), bias, np.zeros(n_top)]),
        "unit_precision": np.concatenate(
            [precision, np.full(n_layer, _PRECISION.get(init, 1.0)), np.ones(n_top)]
        ),
        "hyper": np.array([1.0 if given is None else given for given in prior.given]),
        "visible": filled,
        "pre_activations": np.hstack([a, top]),
    }


def _filled(visible, prior, labels, rng):
    """The rows with column means for missing cells, and latents that decide the labels."""
    count = np.maximum((~np.isnan(visible)).sum(axis=0), 1)
    filled = np.where(np.isnan(visible), np.nansum(visible, axis=0) / count, visible)
    latents = np.flatnonzero([role == "latent" for role in prior.roles])
    if len(latents) and labels is None:
        filled[:, latents] = rng.normal(size=(len(filled), len(latents)))
    elif len(latents):
        classes = np.arange(len(latents)) if len(latents) > 1 else [1]
        own = np.asarray(labels)[:, np.newaxis] == classes
        filled[:, latents] = np.where(own, _LATENT, -_LATENT)
    return filled


def _observed_orders(prior):
    """Orders of the observed nodes: those given, the free ones evenly near 0."""
    order = np.array([np.nan if given is None else given for given in prior.orders])
    free = np.flatnonzero(np.isnan(order))
    order[free] = np.linspace(0.0, _FREE, len(free) + 2)[1:-1]
    return order


def _sizes(init, n_units, max_units, n_rows, n_children):
    """Nodes above the layer and in it; none where there is nothing below, or no room."""
    wanted = {"two-level": _N_TOP, "gaussianised": min(n_units, n_rows // 2, n_children)}
    n_top = min(wanted.get(init, 0), max_units // 2)
    n_layer = min(n_units, max_units - n_top)
    if init == "empty" or not n_rows or not n_children or (init in wanted and not n_top):
        return 0, 0
    return (n_top, n_layer) if n_layer else (0, 0)


def _normal_scores(X, n, rng):
    """What makes the rows' leading components independent and Gaussian, by rounds of rotations.

    Laparra, Camps-Valls and Malo (2011), *Iterative Gaussianization*.
    """
    X = X - X.mean(axis=0)
    z = X @ np.linalg.eigh(X.T @ X)[1][:, X.shape[1] - n :]
    for step in range(_N_ROUNDS):
        if step:
            z = z @ np.linalg.qr(rng.normal(size=(n, n)))[0]
        z = ndtri((rankdata(z, axis=0) - 0.5) / len(z))
    return z


def _least_squares(source, target, n_units, rng):
    """Weights into the layer, its biases, and weights out of it.

    Both are those of units s(a) = tanh(a / 2), so that twice those of tanh go in.
    """
    if not n_units:
        return np.zeros((source.shape[1], 0)), np.zeros(0), np.zeros((0, target.shape[1]))
    network = MLPRegressor(
        hidden_layer_sizes=(n_units,),
        activation="tanh",
        solver="lbfgs",
        alpha=_L2,
        max_iter=_N_STEPS,
        random_state=int(rng.integers(2**31)),
    )
    rows = rng.permutation(len(source))[:_MOST_ROWS]
    y = target[rows]
    # The chain goes on from wherever this ends.
    with ignoring(ConvergenceWarning):
        network.fit(source[rows], y if y.shape[1] > 1 else y.ravel())
    weight_in, weight_out = network.coefs_
    return 2.0 * weight_in, 2.0 * network.intercepts_[0], weight_out


def _mean(X):
    """Means of the columns, 0 without rows."""
    return X.sum(axis=0) / max(len(X), 1)
