"""Updates of squashed Gaussian units: each leaves the density of a row as it is.

Rows start from exact draws, so that after any number of
updates they are still independent draws of the same law, whose moments quadrature knows. Under
the null a z-score is standard normal; 4 is exceeded once in 16,000 of them.
"""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from checks.mutants import compiled
from skbnp.likelihoods.nonlinear_gaussian._activations import Activations

FACE = compiled("nonlinear_gaussian", "faces")
squashed, unsquashed, updated = FACE.squashed, FACE.unsquashed, FACE.updated

METHODS = ["slice", "hmc", "mtm", "ess", "auto"]
N_ROWS = 10_000


def case(width, n_children, seed, spread=1.0, size=1.0):
    """Mean, precision, linear and quadratic of a layer whose children sit at random."""
    rng = np.random.default_rng(seed)
    weights = size * rng.standard_normal((width, n_children))
    children = rng.gamma(2.0, 1.0, n_children)
    return (
        rng.standard_normal(width),
        rng.gamma(2.0, 0.5, width) / spread**2,
        (rng.standard_normal(n_children) * children) @ weights.T,
        weights * children @ weights.T,
    )


CASES = {
    "one": case(1, 3, 0),
    # The noise holds the unit off, its children would have it on.
    "two modes": (np.array([-6.0]), np.array([0.5]), np.array([8.0]), np.array([[2.0]])),
    "no children": (np.array([0.4, -1.0]), np.array([2.0, 0.5]), np.zeros(2), np.zeros((2, 2))),
    "three": case(3, 3, 2),
    "many children": case(2, 40, 3, size=0.5),
    "saturated": case(2, 3, 4, spread=10.0),
}
# Rows of another kind beside those of "three", with the same weights to their children.
LAWS = CASES | {"beside three": (*case(3, 3, 9, spread=3.0)[:3], CASES["three"][3])}


def log_likelihood(a, linear, quadratic):
    u = np.tanh(a / 2)
    return u @ linear - 0.5 * np.sum(u @ quadratic * u, axis=-1)


def exact_draws(rng, n, mean, precision, linear, quadratic):
    """Independent draws of a row's density, shape (n, width): by rejection, of one unit by
    inverting its distribution function on a grid of 400,001 points.
    """
    width = len(mean)
    if width == 1:
        a = mean + np.linspace(-10, 10, 400_001)[:, np.newaxis] / np.sqrt(precision)
        log_density = log_likelihood(a, linear, quadratic)
        log_density -= 0.5 * precision * (a[:, 0] - mean) ** 2
        below = np.cumsum(np.exp(log_density - log_density.max()))
        return np.interp(rng.random((n, 1)), below / below[-1], a[:, 0])
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * width)).reshape(width, -1).T

    def minus(u):
        return 0.5 * u @ quadratic @ u - u @ linear

    # On a box a quadratic is highest in a corner or where a local search from one ends.
    highest = max(-minimize(minus, u0, bounds=[(-1, 1)] * width).fun for u0 in [*corners, 0 * mean])
    kept = []
    while sum(map(len, kept)) < n:
        a = mean + rng.standard_normal((20_000, width)) / np.sqrt(precision)
        ratio = log_likelihood(a, linear, quadratic) - highest
        assert ratio.max() < 1e-6
        kept.append(a[np.log(rng.random(len(a))) < ratio])
    return np.concatenate(kept)[:n]


def moments(a):
    """Statistics of rows whose means are compared, shape (n_rows, n_statistics)."""
    u = np.tanh(a / 2)
    crossed = u[:, :, np.newaxis] * u[:, np.newaxis, :]
    pairs = np.triu_indices(a.shape[1])
    return np.column_stack([a, a**2, u, np.abs(u), crossed[:, pairs[0], pairs[1]]])


def z_scores(x, y):
    error = np.sqrt(x.var(axis=0) / len(x) + y.var(axis=0) / len(y))
    return (x.mean(axis=0) - y.mean(axis=0)) / error


@cache
def expected_moments(name):
    """Means of ``moments`` by a grid over the units' noise, width <= 3."""
    mean, precision, linear, quadratic = LAWS[name]
    z = np.linspace(-10, 10, [4001, 801, 81][len(mean) - 1])
    a = np.stack(np.meshgrid(*[z] * len(mean)), axis=-1).reshape(-1, len(mean))
    log_weight = -0.5 * np.sum(a**2, axis=1)
    a = mean + a / np.sqrt(precision)
    log_weight += log_likelihood(a, linear, quadratic)
    weight = np.exp(log_weight - log_weight.max())
    return weight @ moments(a) / weight.sum()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_density_is_invariant(method, name):
    mean, precision, linear, quadratic = CASES[name]
    rng = np.random.default_rng(list(CASES).index(name) + 100 * METHODS.index(method))
    start = exact_draws(rng, N_ROWS, mean, precision, linear, quadratic)
    full = [np.broadcast_to(x, start.shape) for x in (mean, linear)]
    activations = Activations(method)
    activations.step = 0.8  # so that proposals are refused too
    end = updated(activations, rng.bit_generator, start, full[0], precision, full[1], quadratic, 2)
    assert np.mean(end != start) > 0.01
    found = moments(end)
    z = (found.mean(axis=0) - expected_moments(name)) / (found.std(axis=0) / np.sqrt(N_ROWS))
    assert np.abs(z).max() < 4


@pytest.mark.parametrize("method", METHODS)
def test_rows_have_their_own_precisions(method):
    """Two kinds of rows in turn, each with its mean, precision and children."""
    rng = np.random.default_rng(7 + METHODS.index(method))
    names, quadratic = ["three", "beside three"], CASES["three"][3]
    kinds = [LAWS[name][:3] for name in names]
    starts = [exact_draws(rng, N_ROWS, *kind, quadratic) for kind in kinds]
    start, mean, precision, linear = (
        np.stack([np.broadcast_to(x, (N_ROWS, 3)) for x in pair], axis=1).reshape(-1, 3)
        for pair in ((starts[0], starts[1]), *zip(*kinds, strict=True))
    )
    end = updated(
        Activations(method), rng.bit_generator, start, mean, precision, linear, quadratic, 2
    )
    for i, name in enumerate(names):
        found = moments(end[i::2])
        z = found.mean(axis=0) - expected_moments(name)
        assert np.abs(z / (found.std(axis=0) / np.sqrt(N_ROWS))).max() < 4


@pytest.mark.parametrize("method", METHODS)
def test_chains_reach_the_density_from_afar(method):
    """2,000 rows from one corner forget it; the slice crosses between modes as well."""
    modes = ["two modes"] if method in ("slice", "auto") else []
    for name in ["three", "many children", *modes]:
        mean, precision, linear, quadratic = CASES[name]
        full = [np.broadcast_to(x, (2000, len(mean))) for x in (np.full(len(mean), 3.0), mean)]
        end = updated(
            Activations(method), np.random.default_rng(3).bit_generator, full[0], full[1],
            precision, np.broadcast_to(linear, full[0].shape), quadratic, 100,
        )  # fmt: skip
        found = moments(end)
        z = found.mean(axis=0) - expected_moments(name)
        assert np.abs(z / (found.std(axis=0) / np.sqrt(2000))).max() < 4


def test_adapting_drives_acceptance_to_its_target():
    """In 12 units HMC's acceptance comes to .85 from steps too long and too short."""
    rng = np.random.default_rng(5)
    mean, precision, linear, quadratic = case(12, 60, 6)
    for step in (1.5, 0.1):
        activations = Activations("hmc")
        activations.step = step
        a = np.zeros((500, 12))
        full = [np.broadcast_to(x, a.shape) for x in (mean, linear)]
        for t in range(300):
            if t == 150:
                before = activations.n_accepted, activations.n_proposed
            a = updated(activations, rng.bit_generator, a, full[0], precision, full[1], quadratic)
            activations.adapt(1.0 / (1 + t) ** 0.6)
        share = (activations.n_accepted - before[0]) / (activations.n_proposed - before[1])
        assert abs(share - 0.85) < 0.02


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("width", [1, 3, 12])
def test_extreme_parameters_give_numbers(method, width):
    """Far starts, units past saturation, precisions from 1e-8 to 1e12 and weights up to 1e8."""
    rng = np.random.default_rng(0)
    with np.errstate(all="raise"):
        for precision in (1e-8, 1.0, 1e12):
            for size in (0.0, 1e-8, 1.0, 1e8):
                mean, _, linear, quadratic = case(width, 5, 1, size=size)
                start = rng.choice([-1e6, -40.0, 0.0, 36.7, 1e3], (30, width))
                full = [np.broadcast_to(x, start.shape) for x in (mean, linear)]
                end = updated(
                    Activations(method), rng.bit_generator, start, full[0],
                    np.full(width, precision), full[1], quadratic, 3,
                )  # fmt: skip
                assert np.isfinite(end).all()


def test_same_generator_gives_the_same_rows():
    mean, precision, linear, quadratic = case(9, 20, 1)
    start = np.zeros((300, 9))
    full = [np.broadcast_to(x, start.shape) for x in (mean, linear)]
    for method in METHODS:
        one, two = (
            updated(
                Activations(method), np.random.default_rng(4).bit_generator, start, full[0],
                precision, full[1], quadratic, 3,
            )
            for _ in range(2)
        )  # fmt: skip
        assert_array_equal(one, two)


def test_state_is_restored():
    rng = np.random.default_rng(0)
    mean, precision, linear, quadratic = case(9, 20, 1)
    activations = Activations("hmc")
    args = mean[np.newaxis], precision, linear[np.newaxis], quadratic
    a = updated(activations, rng.bit_generator, np.zeros((1, 9)), *args, 20)
    other = Activations("hmc")
    other.set_state(activations.get_state())
    for one in (activations, other):
        one.adapt(0.5)
    assert other.get_state() == activations.get_state()
    assert other.n_proposed == 40 and a.shape == (1, 9)


def test_squashing_both_ways():
    a = np.array([-800.0, -37.0, -1.0, -1e-9, 0.0, 1e-9, 2.0, 37.0])
    assert_allclose(squashed(a), 2 / (1 + np.exp(-np.maximum(a, -700))) - 1, atol=1e-15)
    assert_allclose(unsquashed(squashed(a[2:7])), a[2:7], rtol=1e-12)


def test_empty_layers_and_bad_parameters():
    rng = np.random.default_rng(0)
    for shape in ((0, 3), (3, 0)):
        empty, square = np.zeros(shape), np.zeros((shape[1], shape[1]))
        out = updated(
            Activations(), rng.bit_generator, empty, empty, np.ones(shape[1]), empty, square
        )
        assert out.shape == shape
    with pytest.raises(ValueError, match="method must be one of"):
        Activations("gibbs")
    with pytest.raises(ValueError, match="n_passes and n_tries must be >= 1, got 0 and 5"):
        Activations(n_passes=0)
    with pytest.raises(ValueError, match="shapes do not agree"):
        updated(
            Activations(), rng.bit_generator, np.zeros((2, 2)), np.zeros((2, 3)), np.ones(2),
            np.zeros((2, 2)), np.eye(2),
        )  # fmt: skip
