"""Laws of the top layer's activations that prediction takes, and rows drawn from the top down."""

from libc.math cimport sqrt
from libc.stdint cimport uint64_t

from skbnp.likelihoods.nonlinear_gaussian._activations cimport squash_all
from skbnp.numerics cimport rng as random
from skbnp.numerics.rng cimport RowStream

import numpy as np
from scipy.special import ndtr

cdef uint64_t NO_ROW = 0                    # the stream of what all rows of a draw share


def has_row_clusters(draw):
    """Whether the top layer of this draw is a mixture over rows."""
    return (
        "cluster_mean" in draw and len(draw["widths"]) > 1
        and draw["cluster_mean"].shape[1] == draw["widths"][len(draw["widths"]) - 1]
    )


def cluster_components(draw, double row_concentration, double kappa, double shape,
                       uint64_t seed, uint64_t t=0):
    """The row clusters and one fresh one drawn from its prior: log weights, means, precisions.

    Weights are those of the Chinese restaurant's next row, the fresh cluster's m and nu are
    drawn from nu_k ~ Gamma(shape, s_k), m_k ~ N(0, kappa nu_k). Shapes (C + 1,), (C + 1, K) twice.
    """
    cdef RowStream stream
    cdef Py_ssize_t k
    rate = draw["cluster_rate"]
    mean, precision = np.empty(len(rate)), np.empty(len(rate))
    random.start_row_stream(&stream, seed, t, NO_ROW)
    for k in range(len(rate)):
        precision[k] = random.draw_gamma(&stream.rng, shape, rate[k])
        mean[k] = random.normal(&stream.rng) / sqrt(kappa * precision[k])
    weight = np.append(draw["cluster_count"], row_concentration)
    return (
        np.log(weight / weight.sum()),
        np.vstack([draw["cluster_mean"], mean]),
        np.vstack([draw["cluster_precision"], precision]),
    )


def components_under(prior, draw, seed, t):
    """The mixture that the top layer's activations follow, None without row clusters."""
    if not has_row_clusters(draw):
        return None
    kappa, shape, *_ = prior.cluster_prior
    return cluster_components(draw, prior.row_concentration, kappa, shape, seed, t)


def row_components(draw, double radius=0.3):
    """The training rows' own activations in place of the top layer's law; one hidden layer only.

    One component per stored row, of precision 1 / (radius^2 var_k). Not the model's posterior.
    """
    if len(draw["widths"]) > 2:
        raise ValueError(
            f"the prior of rows needs at most one hidden layer, got {len(draw['widths']) - 1}"
        )
    mean = np.ascontiguousarray(draw["activations"])
    # A unit that stands still has no spread to take a share of; its own noise has.
    own = 1.0 / draw["unit_precision"][draw["widths"][0]:]
    variance = np.maximum(mean.var(axis=0), 1e-6 * own)
    return (
        np.full(len(mean), -np.log(len(mean))), mean,
        np.tile(1.0 / (radius**2 * variance), (len(mean), 1)),
    )


def from_the_top(draw, n_rows, generator, components, label):
    """Pre-activations of all units; those of the top layer from the components of the rows."""
    widths = np.asarray(draw["widths"])
    offset, n_units = np.concatenate([[0], np.cumsum(widths)]), widths.sum()
    edges, weights = np.asarray(draw["edges"]).reshape(-1, 2), draw["weights"]
    a = np.empty((n_rows, n_units))
    u = np.empty_like(a)
    start = np.searchsorted(edges[:, 1], np.arange(n_units + 1))
    for layer in range(len(widths) - 1, -1, -1):
        units = slice(offset[layer], offset[layer + 1])
        z = generator.standard_normal((n_rows, widths[layer]))
        if label is not None and layer == len(widths) - 1:
            _, mean, precision = components
            a[:, units] = mean[label] + z / np.sqrt(precision[label])
        else:
            for j in range(units.start, units.stop):
                into = slice(start[j], start[j + 1])
                a[:, j] = draw["biases"][j] + u[:, edges[into, 0]] @ weights[into]
            a[:, units] += z / np.sqrt(draw["unit_precision"][units])
        u[:, units] = np.tanh(0.5 * a[:, units])
    return a


def means_given_fantasies(draw, Py_ssize_t layer, noise, components=None):
    """Means of the units of a layer, 0 the visible one, in fantasies of all layers above it.

    Parameters
    ----------
    draw : dict
    layer : int
    noise : Noise
        Of each hidden layer by its number, and of the choice of components at 0.
    components : tuple, default=None
        Of the top layer, as ``cluster_components`` says.

    Returns
    -------
    mean : ndarray of shape (n_units, n_fantasies)
    """
    widths = np.asarray(draw["widths"])
    cdef Py_ssize_t D = widths[0], top = len(widths) - 1, m
    offset = np.concatenate([[0], np.cumsum(widths)])
    edges = np.asarray(draw["edges"]).reshape(-1, 2)
    W = np.zeros((offset[top + 1], offset[top + 1] - D))
    W[edges[:, 1], edges[:, 0] - D] = draw["weights"]
    u = np.zeros((offset[top + 1] - D, noise.n_fantasies))
    for m in range(top, layer - 1, -1):
        units, above = slice(offset[m], offset[m + 1]), slice(offset[m + 1] - D, None)
        mean = draw["biases"][units, np.newaxis] + W[units, above] @ u[above]
        if m == layer:
            return mean
        precision = draw["unit_precision"][units, np.newaxis]
        if m == top and components is not None:
            log_weight, means, precisions = components
            label = labels_of(log_weight, noise)
            mean, precision = means[label].T, precisions[label].T
        a = mean + noise.of(m, widths[m]) / np.sqrt(precision)
        u[offset[m] - D:offset[m + 1] - D] = squashed(a)


def labels_of(log_weight, noise):
    """Components of fantasies: as many of each as its weight says, to within one."""
    passed = np.cumsum(np.exp(log_weight - np.max(log_weight)))
    place = (np.arange(noise.n_fantasies) + ndtr(noise.of(0, 1)[0, 0])) / noise.n_fantasies
    last = len(passed) - 1  # there are no negative places in these files
    return np.minimum(np.searchsorted(passed, place * passed[last]), last)


def squashed(a):
    """tanh(a / 2), entry by entry."""
    cdef const double[:, ::1] values = np.ascontiguousarray(a)
    cdef double[:, ::1] out = np.empty_like(values)
    if out.size:
        squash_all(out.size, &values[0, 0], &out[0, 0])
    return np.asarray(out)
