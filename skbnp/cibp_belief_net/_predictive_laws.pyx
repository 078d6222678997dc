"""Laws of the top layer's activations that prediction takes, and rows drawn from the top down."""

from libc.math cimport sqrt
from libc.stdint cimport uint64_t

from skbnp.numerics cimport rng as random
from skbnp.numerics.rng cimport RowStream

import numpy as np

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
