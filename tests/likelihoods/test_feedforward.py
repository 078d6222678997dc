"""Slices over the noises of tiny networks: they leave the law of the hidden nodes invariant.

Rows are independent, so z-scores need no autocorrelation; 4 is exceeded once in 16,000.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from checks.mutants import compiled
from skbnp.likelihoods.nonlinear_gaussian._feedforward import Feedforward

INPUT, HIDDEN, OBSERVED = 0, 1, 2
# An input and an observed parent, two hidden layers with a skip, three observed children.
KIND = [INPUT, OBSERVED, HIDDEN, HIDDEN, HIDDEN, OBSERVED, OBSERVED, OBSERVED]
EDGES = [(0, 2), (1, 2), (2, 3), (1, 4), (2, 4), (3, 4), (0, 5), (3, 5), (4, 5), (2, 6), (4, 6),
         (0, 7)]  # fmt: skip


def sliced(*arguments):
    return compiled("nonlinear_gaussian", "faces").sliced(*arguments)


def tiny(seed=0, kind=KIND, edges=EDGES):
    rng = np.random.default_rng(seed)
    n = len(kind)
    start = np.searchsorted([child for _, child in edges], np.arange(n + 1))
    return Feedforward(
        kind, start, [parent for parent, _ in edges], 1.5 * rng.standard_normal(len(edges)),
        rng.standard_normal(n), rng.uniform(0.3, 1.0, n),
    )  # fmt: skip


def from_the_top(net, n_rows, rng):
    """Exact joint draws of all nodes, (n_nodes, n_rows)."""
    a, u = np.zeros((2, net.n_nodes, n_rows))
    for p in range(net.n_nodes):
        if net.kind[p] == INPUT:
            u[p] = rng.standard_normal(n_rows)
            continue
        edges = range(net.parent_start[p], net.parent_start[p + 1])
        a[p] = net.bias[p] + sum(net.weight[e] * u[net.parent[e]] for e in edges)
        a[p] += net.spread[p] * rng.standard_normal(n_rows)
        u[p] = np.tanh(a[p] / 2)
    return a, u


@pytest.mark.parametrize("seed", [0, 1])
def test_a_slice_leaves_the_joint_law_alone(seed):
    # Paired differences of one step from exact draws, over rows: mean 0 of any statistic.
    net, rng = tiny(seed), np.random.default_rng(100 + seed)
    a, u = from_the_top(net, 40_000, rng)
    a_new, u_new = sliced(net, 7, a, u)
    given = np.array(KIND) != HIDDEN
    assert_array_equal(a_new[given], a[given])
    assert_array_equal(u_new[given], u[given])
    np.testing.assert_allclose(u_new[~given], np.tanh(a_new[~given] / 2), atol=1e-15)
    assert (a_new[~given] != a[~given]).all()
    statistics = [(lambda x, y, j=j: x[j]) for j in (2, 3, 4)]
    statistics += [(lambda x, y, j=j: x[j] ** 2) for j in (2, 3, 4)]
    statistics += [(lambda x, y, j=j, k=k: y[j] * x[k]) for j in (2, 3, 4) for k in (3, 4, 5, 6)]
    for statistic in statistics:
        change = statistic(a_new, u_new) - statistic(a, u)
        assert abs(change.mean()) < 4 * change.std() / 200


def test_a_slice_reaches_the_posterior():
    # From far out, many rows of equal data come to the moments of quadrature over one hidden node.
    edges = [(0, 1), (0, 2)]
    net = tiny(3, [HIDDEN, OBSERVED, OBSERVED], edges)
    grid = np.linspace(-9, 9, 20_001)
    log_p = -0.5 * ((grid - net.bias[0]) / net.spread[0]) ** 2
    for e, (_, p) in enumerate(edges):
        mean = net.bias[p] + net.weight[e] * np.tanh(grid / 2)
        log_p -= 0.5 * ((0.7 - mean) / net.spread[p]) ** 2
    weight = np.exp(log_p - log_p.max())
    weight /= weight.sum()
    a = np.array([[5.0], [0.7], [0.7]]) * np.ones((3, 20_000))
    a, _ = sliced(net, 1, a, np.tanh(a / 2), 1.0, 30)
    for power in (1, 2):
        values = a[0] ** power
        expected = weight @ grid**power
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(len(values))


def test_at_temperature_zero_is_the_prior():
    net = tiny(5)
    rng = np.random.default_rng(2)
    a, u = from_the_top(net, 1, rng)
    a, u = np.tile(a, 20_000), np.tile(u, 20_000)
    a_new, _ = sliced(net, 3, a, u, 0.0, 8)
    mean = net.bias[2] + net.weight[0] * u[0, 0] + net.weight[1] * u[1, 0]
    noise = (a_new[2] - mean) / net.spread[2]
    assert abs(noise.mean()) < 4 / np.sqrt(20_000)
    assert abs((noise**2).mean() - 1.0) < 4 * np.sqrt(2 / 20_000)


def test_rows_do_not_depend_on_their_company():
    net, rng = tiny(0), np.random.default_rng(0)
    a, u = from_the_top(net, 300, rng)
    together, _ = sliced(net, 9, a, u, 1.0, 3)
    some, _ = sliced(net, 9, a[:, :5], u[:, :5], 1.0, 3)
    assert_array_equal(together[:, :5], some)


def test_networks_without_hidden_nodes_stay():
    net = tiny(0, [INPUT, OBSERVED], [(0, 1)])
    a, u = np.ones((2, 2, 10))
    assert_array_equal(sliced(net, 0, a, u)[0], a)
    assert sliced(Feedforward(), 0, np.empty((0, 4)), np.empty((0, 4)))[0].shape == (0, 4)
