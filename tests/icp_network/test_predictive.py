"""What one draw says of rows, against quadrature over the noises of what is not known.

Rows are copies of one another but for their last digits, which give annealed particles random
numbers of their own, and fantasies come from a seed of their own for each t; so estimates are
independent, and a z-score of 4 is exceeded once in 16,000.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from skbnp.icp_network import _predictive as predictive
from skbnp.icp_network._model import Prior
from skbnp.likelihoods.nonlinear_gaussian._particles import Particles

NAN = np.nan


def network(orders, edges, roles=None, seed=0, size=1.5, precision=(1.0, 4.0)):
    """A draw and its prior; ``orders`` of the observed nodes come first, ``roles`` are theirs."""
    rng = np.random.default_rng(seed)
    n_nodes, roles = len(orders), roles or ("gaussian", "gaussian")
    edges = np.array(sorted(edges, key=lambda edge: edge[::-1]), dtype=np.int32).reshape(-1, 2)
    fixed = {"input": 1.0, "latent": 0.0}
    prior = Prior(roles=roles, orders=tuple(fixed.get(role) for role in roles))
    draw = {
        "order": np.array(orders, dtype=float), "edges": edges,
        "weights": size * rng.standard_normal(len(edges)),
        "biases": np.where(prior.has_law(n_nodes), 0.5 * rng.standard_normal(n_nodes), 0.0),
        "unit_precision": np.where(
            prior.has_precision(n_nodes), rng.uniform(*precision, n_nodes), 1.0
        ),
        "hyper": np.ones(3),
    }  # fmt: skip
    for array in draw.values():
        array.flags.writeable = False  # nothing of a draw may be changed
    return draw, prior


# Two observed nodes: below all; one above the other and above a hidden node; with an input.
DEEP = ([0.0, 0.0, 0.3, 0.6, 0.8], [(2, 0), (3, 0), (2, 1), (3, 2), (4, 2), (4, 1)])
CHAIN = ([0.0, 0.5, 0.3, 0.7], [(1, 0), (2, 0), (1, 2), (3, 1), (3, 0)])
FED = (
    [0.0, 0.0, 1.0, 0.4, 0.7],
    [(3, 0), (4, 0), (3, 1), (2, 3), (4, 3), (2, 4), (2, 1)],
    ("gaussian", "gaussian", "input"),
)


def exactly(draw, prior, row):
    """Quadrature over the noises of all that is not known in a row.

    Returns log density of the known entries, points (n_points, K) and their shares given these.
    """
    n_nodes, D = len(draw["order"]), prior.n_observed
    law = prior.has_law(n_nodes)
    known = np.zeros(n_nodes, dtype=bool)
    known[:D] = ~np.isnan(row)
    unknown = np.flatnonzero(~known)
    n = {1: 41, 2: 41, 3: 25, 4: 15, 5: 9}[len(unknown)]
    node, weight = np.polynomial.hermite_e.hermegauss(n)
    noise = np.array(list(itertools.product(node, repeat=len(unknown))))
    log_weight = np.array(list(itertools.product(np.log(weight), repeat=len(unknown))))
    log_weight = log_weight.sum(axis=1) - len(unknown) * np.log(weight.sum())
    a = np.zeros((len(noise), n_nodes))
    W = np.zeros((n_nodes, n_nodes))
    W[tuple(draw["edges"].T)] = draw["weights"]
    a[:, known] = row[known[:D]]
    for k in np.argsort(-draw["order"], kind="stable"):
        if not law[k]:
            continue
        mean = draw["biases"][k] + np.where(law, np.tanh(a / 2), a) @ W[:, k]
        spread = draw["unit_precision"][k] ** -0.5
        if known[k]:
            log_weight += norm.logpdf(a[:, k], mean, spread)
        else:
            a[:, k] = mean + spread * noise[:, unknown == k].ravel()
    log_density = np.logaddexp.reduce(log_weight)
    share = np.exp(log_weight - log_density)
    return log_density, a, share


def copies(row, n):
    """Rows that differ in their last digits."""
    return np.asarray(row) + 1e-13 * np.arange(n)[:, np.newaxis]


def z_of(estimates, expected):
    error = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    return np.max(np.abs(np.mean(estimates, axis=0) - expected) / np.maximum(error, 1e-12))


CASES = [
    (DEEP, [0.7, -1.2]), (DEEP, [0.3, NAN]), (DEEP, [NAN, 2.0]),
    (CHAIN, [1.0, 0.5]), (CHAIN, [1.0, NAN]), (CHAIN, [NAN, -0.4]),
    (FED, [0.5, 1.5, 0.8]), (FED, [NAN, 1.5, -2.0]),
]  # fmt: skip


@pytest.mark.parametrize(("case", "row"), CASES)
def test_densities_are_unbiased(case, row):
    draw, prior = network(*case)
    expected, *_ = exactly(draw, prior, np.array(row))
    fantasies = [
        predictive.log_densities(draw, prior, [row], 1, t, "fantasies", 100)[0][0]
        for t in range(400)
    ]
    assert z_of(np.exp(fantasies), np.exp(expected)) < 4
    annealed, n_effective = predictive.log_densities(
        draw, prior, copies(row, 2000), 3, 0, "ais", n_temperatures=6, n_particles=4
    )
    assert z_of(np.exp(annealed), np.exp(expected)) < 4
    assert ((n_effective >= 1) & (n_effective <= 4 + 1e-9)).all()
    sampled, n_effective = predictive.log_densities(
        draw, prior, copies(row, 1000), 3, 0, "importance", n_importance=30
    )
    assert z_of(np.exp(sampled), np.exp(expected)) < 4
    # These laws are not far from Gaussians around their modes.
    assert np.median(n_effective) > 10
    # From any place, also one far from all modes.
    for place in (np.zeros(len(draw["order"])), np.linspace(-9.0, 9.0, len(draw["order"]))):
        from_there, _ = predictive.log_densities(
            draw, prior, copies(row, 1000), 4, 0, "importance", n_importance=30,
            near=np.tile(place, (1000, 1)),
        )  # fmt: skip
        assert z_of(np.exp(from_there), np.exp(expected)) < 4


@pytest.mark.parametrize(("case", "row"), [pair for pair in CASES if NAN in pair[1]])
@pytest.mark.parametrize("visible", ["gaussian", "sigmoid"])
def test_moments_of_missing_entries(case, row, visible):
    draw, prior = network(*case)
    _, a, share = exactly(draw, prior, np.array(row))
    holes = np.isnan(row)
    value = a[:, : prior.n_observed][:, holes]
    if visible == "sigmoid":
        value = np.tanh(value / 2)
    for t, method in enumerate(("fantasies", "ais", "importance")):
        options = dict(n_fantasies=4000, n_temperatures=10, n_particles=4, n_after=30)
        options["n_importance"] = 1000
        A = copies(row, {"fantasies": 1, "ais": 400, "importance": 30}[method])
        seeds = range(20) if method == "fantasies" else range(1)
        moments = [
            predictive.imputed_moments(draw, prior, A, visible, seed, t, method, **options)
            for seed in seeds
        ]
        mean, variance = (np.concatenate(found) for found in zip(*moments, strict=True))
        for power, got in ((1, mean), (2, variance + mean**2)):
            assert (got[:, ~holes] == 0.0).all()
            # Weighed means are biased by one over the number of samples.
            assert_allclose(got[:, holes].mean(axis=0), share @ value**power, atol=0.02)


@pytest.mark.parametrize(("case", "row"), [CASES[0], CASES[1], CASES[5]])
def test_expected_activations(case, row):
    draw, prior = network(*case)
    _, a, share = exactly(draw, prior, np.array(row))
    expected = share @ np.tanh(a[:, prior.n_observed :] / 2)
    for method, n in (("fantasies", 1), ("ais", 200), ("importance", 20)):
        got = predictive.expected_activations(
            draw, prior, copies(row, n), 0, 0, method, 10_000, 1000, 10, 4, 30
        )
        assert_allclose(got.mean(axis=0), expected, atol=0.02)


def test_density_integrates_to_one():
    for case, n_dimensions in ((DEEP, 2), (CHAIN, 2), (DEEP, 1), (CHAIN, 1)):
        draw, prior = network(*case)
        grid = np.linspace(-14, 14, 201)
        A = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        if n_dimensions == 1:
            A = np.column_stack([grid, np.full(len(grid), NAN)])
        log_density, _ = predictive.log_densities(draw, prior, A, 0, 0, "fantasies", 50)
        assert np.exp(log_density).sum() * (grid[1] - grid[0]) ** n_dimensions == pytest.approx(
            1.0, abs=1e-6
        )


def test_without_hidden_nodes_all_is_exact():
    draw, prior = network([0.0, 0.7], [(1, 0)])
    b, w, sd = draw["biases"], draw["weights"][0], draw["unit_precision"] ** -0.5
    A = np.array([[0.5, -1.0], [2.0, NAN], [NAN, 0.4], [NAN, NAN], [1e9, 0.0]])
    log_density, _ = predictive.log_densities(draw, prior, A, 0)
    of_first = norm.logpdf(A[:, 0], b[0] + w * np.tanh(A[:, 1] / 2), sd[0])
    of_second = norm.logpdf(A[:, 1], b[1], sd[1])
    assert log_density[0] == pytest.approx(of_first[0] + of_second[0])
    assert log_density[2] == pytest.approx(of_second[2])
    assert log_density[3] == pytest.approx(0.0)
    assert log_density[4] == pytest.approx(of_first[4] + of_second[4])
    first, variance = predictive.imputed_moments(draw, prior, A, "gaussian", 0)
    mean = b[0] + w * np.tanh(0.2)
    assert first[2, 0] == pytest.approx(mean)
    assert variance[2, 0] == pytest.approx(sd[0] ** 2)


def test_far_rows_keep_their_digits():
    draw, prior = network(*DEEP, precision=(1e7, 1e8))
    near = np.array([[3.0, -2.0]])
    got, _ = predictive.log_densities(draw, prior, near, 0, 0, "fantasies", 300)
    noise = predictive._noise(draw, 0, 0, 300)
    particles = Particles(draw, np.ones(2, dtype=bool))
    by_row = predictive._fantasies_by_row(particles, near, noise, np.zeros(0, np.intp), 0)
    assert_allclose(got, by_row[0], rtol=1e-9)
    far, n_effective = predictive.log_densities(draw, prior, [[1e200, 0.0]], 0, 0, "fantasies")
    assert far[0] == -np.inf
    assert n_effective[0] == 1.0


@pytest.mark.parametrize("case", [DEEP, CHAIN])
def test_auto_helps_the_rows_that_need_it(case):
    draw, prior = network(*case, precision=(300.0, 400.0))
    rng = np.random.default_rng(0)
    A = predictive.sample_rows(draw, prior, 40, rng)
    A[:4, 0] += 3.0
    auto, _ = predictive.log_densities(draw, prior, A, 0, 0, "auto", 200)
    better, _ = predictive.log_densities(draw, prior, A, 0, 0, "importance", 200)
    particles = Particles(draw, np.ones(2, dtype=bool))
    noise, nothing = predictive._noise(draw, 0, 0, 200), np.zeros(0, dtype=np.intp)
    halves = [
        predictive._fantasies_by_row(particles, A, half.copy(), nothing, 0)[:2]
        for half in np.split(noise, 2, axis=1)
    ]
    # Each half stands where the other finds enough fantasies.
    parts = [np.where(halves[1 - h][1] < 5, better, halves[h][0]) for h in range(2)]
    assert_allclose(auto, np.logaddexp(*parts) - np.log(2), rtol=1e-9)
    few = (halves[0][1] < 5) & (halves[1][1] < 5)
    assert 4 <= few.sum() < 40
    assert_allclose(auto[few], better[few], rtol=1e-12)


def sharp(draw, prior):
    """With observed nodes that follow their parents closely."""
    precision = draw["unit_precision"].copy()
    precision[: prior.n_observed] = 40.0
    return draw | {"unit_precision": precision}, prior


def test_auto_is_unbiased_where_it_often_switches():
    """Judged by their own effective number halves would be kept where they are too high."""
    draw, prior = sharp(*network(*DEEP))
    row = predictive.sample_rows(draw, prior, 3, np.random.default_rng(5))[2]
    options = dict(n_fantasies=60, n_importance=20)
    exact, _ = predictive.log_densities(draw, prior, [row], 0, 0, "fantasies", 1_000_000)
    density = [
        predictive.log_densities(draw, prior, [row], 0, t, "auto", **options)[0][0]
        for t in range(600)
    ]
    few = [
        predictive.log_densities(draw, prior, [row], 0, t, "fantasies", 30)[1][0] < 5
        for t in range(200)
    ]
    assert 0.1 < np.mean(few) < 0.9
    assert z_of(np.exp(density), np.exp(exact)) < 4


def test_importance_finds_what_fantasies_miss():
    """Twelve children of six nodes: no fantasy in a thousand is near a row."""
    orders = [0.0] * 12 + [0.5] * 6 + [0.9]
    edges = [(p, c) for c in range(12) for p in range(12, 18)] + [(18, p) for p in range(12, 18)]
    draw, prior = sharp(*network(orders, edges, ("gaussian",) * 12))
    A = predictive.sample_rows(draw, prior, 10, np.random.default_rng(0))
    long, n_effective = predictive.log_densities(
        draw, prior, A, 1, 0, "ais", n_temperatures=3000, n_particles=16
    )
    got, n_effective = predictive.log_densities(draw, prior, A, 0, 0, "auto", n_importance=1000)
    assert np.median(n_effective) > 20
    assert abs(np.mean(got - long)) < 0.4
    fantasies, _ = predictive.log_densities(draw, prior, A, 0, 0, "fantasies", 1000)
    assert np.mean(fantasies - got) < -5


def labelled(n_latents):
    roles = ("latent",) * n_latents + ("input", "input")
    orders = [0.0] * n_latents + [1.0, 1.0, 0.5]
    top = n_latents + 2
    edges = [(p, c) for c in range(n_latents) for p in (n_latents, top)]
    return network(orders, [*edges, (n_latents, top), (n_latents + 1, top)], roles)


@pytest.mark.parametrize("n_latents", [1, 3])
def test_class_probabilities(n_latents):
    draw, prior = labelled(n_latents)
    A = np.column_stack(
        [np.full((5, n_latents), NAN), np.random.default_rng(0).normal(size=(5, 2))]
    )
    got, _ = predictive.predicted(draw, prior, A, 0, 0, 2000)
    assert_allclose(got.sum(axis=1), 1.0)
    node, weight = np.polynomial.hermite_e.hermegauss(61)
    b, W = draw["biases"], np.zeros((n_latents + 3,) * 2)
    W[tuple(draw["edges"].T)] = draw["weights"]
    for row, probability in zip(A[:, n_latents:], got, strict=True):
        a = b[-1] + row @ W[n_latents:-1, -1] + node * draw["unit_precision"][-1] ** -0.5
        mean = b[:n_latents] + row @ W[n_latents:-1, :n_latents]
        mean = mean + np.tanh(a / 2)[:, np.newaxis] * W[-1, :n_latents]
        if n_latents == 1:
            p = np.column_stack([norm.cdf(-mean), norm.cdf(mean)])
        else:
            grid = np.linspace(-12, 12, 2001)
            cdf = norm.cdf(grid[:, np.newaxis, np.newaxis] - mean)
            others = np.stack(
                [np.delete(cdf, c, axis=2).prod(axis=2) for c in range(n_latents)], axis=2
            )
            p = (others * norm.pdf(grid[:, np.newaxis, np.newaxis] - mean)).sum(axis=0) * 0.012
        assert_allclose(probability, weight @ p / weight.sum(), atol=0.02)


def test_many_classes_that_hardly_differ():
    draw, prior = labelled(12)
    draw = draw | {"weights": 0.0 * draw["weights"], "biases": np.zeros(15)}
    got, _ = predictive.predicted(draw, prior, np.zeros((1, 14)), 0, 0, 100)
    assert_allclose(got, 1 / 12, atol=1e-12)
    draw["biases"] = np.r_[1.0, np.zeros(14)]
    node, weight = np.polynomial.hermite_e.hermegauss(101)
    expected = weight @ norm.cdf(node + 1.0) ** 11 / weight.sum()
    got, _ = predictive.predicted(draw, prior, np.zeros((1, 14)), 0, 0, 100)
    assert got[0, 0] == pytest.approx(expected, abs=1e-3)


def test_predicted_moments():
    draw, prior = network(*FED)
    A = np.array([[NAN, NAN, 0.8], [5.0, NAN, -1.3]])  # what outputs there are does not matter
    first, variance = predictive.predicted(draw, prior, A, 0, 0, 40_000)
    for row, one, two in zip(A, first, variance + first**2, strict=True):
        _, a, share = exactly(draw, prior, np.array([NAN, NAN, row[2]]))
        assert_allclose(one, share @ a[:, :2], atol=0.02)
        assert_allclose(two, share @ a[:, :2] ** 2, atol=0.04)


def test_samples_have_the_moments_of_the_network():
    for case, row in ((DEEP, [NAN, NAN]), (CHAIN, [NAN, NAN]), (FED, [NAN, NAN, 0.5])):
        draw, prior = network(*case)
        inputs = None if case is not FED else np.full((40_000, 1), 0.5)
        rows = predictive.sample_rows(draw, prior, 40_000, np.random.default_rng(0), inputs)
        _, a, share = exactly(draw, prior, np.array(row))
        for power in (1, 2):
            assert z_of(rows[:, :2] ** power, share @ a[:, :2] ** power) < 4
        assert z_of(rows[:, 0] * rows[:, 1], share @ (a[:, 0] * a[:, 1])) < 4


@pytest.mark.parametrize("case", [DEEP, CHAIN, FED])
@pytest.mark.parametrize("method", ["auto", "fantasies", "importance", "ais"])
def test_rows_answer_alike_in_any_company(case, method):
    draw, prior = network(*case, precision=(20.0, 40.0))
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(300, 1)) if prior.n_observed > 2 else None
    A = predictive.sample_rows(draw, prior, 300, rng, inputs)
    A[:, :2][rng.random((300, 2)) < 0.3] = NAN
    options = dict(method=method, n_fantasies=130, n_importance=30)
    options |= dict(n_temperatures=8, n_particles=3)

    def answers(A):
        moments = predictive.imputed_moments(draw, prior, A, "gaussian", 5, 2, n_after=3, **options)
        return np.column_stack(
            [predictive.log_densities(draw, prior, A, 5, 2, **options)[0], *moments]
        )

    together = answers(A)
    shuffled = rng.permutation(300)
    assert_allclose(answers(A[shuffled]), together[shuffled], rtol=1e-9, atol=1e-9)
    assert_allclose(answers(A[7:9]), together[7:9], rtol=1e-9, atol=1e-9)
    with ThreadPoolExecutor(2) as threads:
        for result in threads.map(answers, [A] * 4):
            assert_array_equal(result, together)
    again = predictive.log_densities(draw, prior, A, 5, 3, **options)[0]
    assert (again != together[:, 0]).any()


def test_values_that_are_no_data_are_refused():
    draw, prior = network(*FED)
    with pytest.raises(ValueError, match="all inputs"):
        predictive.log_densities(draw, prior, [[0.0, 0.0, NAN]], 0)
    with pytest.raises(ValueError, match="finite or NaN"):
        predictive.log_densities(draw, prior, [[0.0, np.inf, 0.0]], 0)
    with pytest.raises(ValueError, match="got 'laplace'"):
        predictive.log_densities(draw, prior, [[0.0, 0.0, 0.0]], 0, method="laplace")


def test_no_rows():
    draw, prior = network(*DEEP)
    assert predictive.log_densities(draw, prior, np.empty((0, 2)), 0)[0].shape == (0,)
    assert predictive.imputed_moments(draw, prior, np.empty((0, 2)), "gaussian", 0)[0].shape == (
        0,
        2,
    )
    assert predictive.expected_activations(draw, prior, np.empty((0, 2)), 0).shape == (0, 3)


@pytest.mark.parametrize("method", ["auto", "fantasies", "importance"])
def test_kept_fantasies_say_the_same(method):
    orders, edges = DEEP[0], [edge for edge in DEEP[1] if edge[0] > 1]
    draw, prior = network(orders, edges)
    prior = Prior(roles=("gaussian", "gaussian"), orders=(0.0, 0.0))
    kept = predictive.fantasies_of(draw, prior, 3, 1)
    A = np.random.default_rng(0).normal(scale=2.0, size=(30, 2))
    A[::4, 0], A[1::4, 1], A[5], A[6] = NAN, NAN, NAN, 40.0
    log_density, n_effective = predictive.log_densities(draw, prior, A, 3, 1, method)
    found = predictive.log_densities(draw, prior, A, 3, 1, method, fantasies=kept)
    # Row 6 is far from all fantasies, and points around modes are other ones.
    far = np.arange(30) == 6
    assert_allclose(found[0][~far], log_density[~far], rtol=1e-12, atol=1e-12)
    assert_allclose(found[0][far], log_density[far], atol=1.0)
    some = ~np.isnan(A).all(axis=1) & ~far
    assert_allclose(found[1][some], n_effective[some], rtol=1e-9)
    for visible in ("gaussian", "sigmoid"):
        expected = predictive.imputed_moments(draw, prior, A[~far], visible, 3, 1, method)
        found = predictive.imputed_moments(
            draw, prior, A[~far], visible, 3, 1, method, fantasies=kept
        )
        assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_points_around_modes_of_kept_networks():
    """Against a million fantasies, where a kept network has fewer than are ever enough."""
    orders, edges = DEEP[0], [edge for edge in DEEP[1] if edge[0] > 1]
    draw, _ = sharp(*network(orders, edges))
    prior = Prior(roles=("gaussian", "gaussian"), orders=(0.0, 0.0))
    row = predictive.sample_rows(draw, prior, 3, np.random.default_rng(5))[2]
    exact, _ = predictive.log_densities(draw, prior, [row], 0, 0, "fantasies", 1_000_000)
    kept = predictive.fantasies_of(draw, prior, 0, n_fantasies=8)
    A = row + 1e-11 * np.arange(1000)[:, np.newaxis]
    found, _ = kept.log_densities(A, 0, 0, 20)
    assert z_of(np.exp(found), np.exp(exact)) < 4
    A[:, 1] = NAN
    expected, _ = predictive.imputed_moments(
        draw, prior, A[:1], "gaussian", 0, 0, "fantasies", 1_000_000
    )
    mean, _ = kept.moments(A[:50], 0, 0, 2000)
    assert_allclose(mean[:, 1].mean(), expected[0, 1], atol=0.02)


def test_fantasies_that_are_not_kept():
    draw, _ = network(*DEEP)
    parents = Prior(roles=("gaussian", "gaussian"), orders=(0.0, None))
    assert predictive.fantasies_of(draw, parents, 0) is None
    leaves = Prior(roles=("gaussian", "gaussian"), orders=(0.0, 0.0))
    assert predictive.fantasies_of(draw, leaves, 0, n_fantasies=1_000_000) is None
    empty, _ = network([0.0, 0.0], [])
    assert predictive.fantasies_of(empty, leaves, 0) is None
    wide, _ = network([0.0] * 9 + [0.5], [(9, 0)], roles=("gaussian",) * 9)
    assert predictive.fantasies_of(wide, Prior(("gaussian",) * 9, (0.0,) * 9), 0) is None
