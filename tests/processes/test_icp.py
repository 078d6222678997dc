"""The Indian chefs process against quadrature, enumeration, known figures and its own two samplers.

Statistical tests: |z| < 4 on each figure, false alarm 6e-5 each.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from checks.monte_carlo import p_value, z_score, z_score_two_sample
from checks.mutants import compiled
from checks.proofs import proof
from skbnp.processes import ibp, icp
from skbnp.processes._icp_draws import DrawNodeByNode

FREE = np.nan


def graphs(order, n_observed):
    """All networks with these orders."""
    pairs = [
        (i, k) for i, k in itertools.product(range(len(order)), repeat=2) if order[i] < order[k]
    ]
    for bits in itertools.product((0, 1), repeat=len(pairs)):
        Z = np.zeros((len(order), len(order)), dtype=np.uint8)
        for pair, bit in zip(pairs, bits, strict=True):
            Z[pair] = bit
        if Z[:, n_observed:].any(axis=0).all():
            yield Z


def integral(f, breaks, n, above=0.0, n_points=7):
    """Integral of f(t_1 <= ... <= t_n) over [above, 1]^n, f smooth but for the breaks."""
    if n == 0:
        return f(())
    x, weight = np.polynomial.legendre.leggauss(n_points)
    total = 0.0
    for low, high in itertools.pairwise([above, *(b for b in breaks if b > above), 1.0]):
        for t, w in zip(low + (high - low) * (x + 1) / 2, weight * (high - low) / 2, strict=True):
            total += w * integral(lambda rest, t=t: f((t, *rest)), breaks, n - 1, t, n_points)
    return total


# -- the law ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mass, concentration, expected",
    [
        (1.0, 1.0, (0.367879, 0.289499, 0.179545)),
        (2.0, 0.5, (0.135335, 0.197555, 0.207547)),
        (0.7, 4.0, (0.496585, 0.266164, 0.131929)),
    ],
)
def test_density_of_the_spec(mass, concentration, expected):
    """Quadrature over the sorted orders and all graphs of up to two hidden nodes."""
    pmf = icp.hidden_pmf([0.0], mass, concentration)
    c = concentration * mass / (concentration + 1)
    assert pmf[1] == pytest.approx(mass * math.exp(-mass) * (1 - math.exp(-c)) / c, rel=1e-12)
    for n_hidden in range(3):

        def density(hidden):
            order = (0.0, *hidden)
            return sum(
                math.exp(icp.log_prob(order, Z, 1, mass, concentration)) for Z in graphs(order, 1)
            )

        total = integral(density, [], n_hidden)
        assert total == pytest.approx(expected[n_hidden], abs=0.6e-6)
        assert total == pytest.approx(pmf[n_hidden], rel=1e-11)


@pytest.mark.parametrize("observed", [(0.0, 0.0), (0.0, 0.6), (0.3, 1.0)])
def test_density_integrates_to_the_law_of_the_number(observed):
    process = 1.3, 0.8
    pmf = icp.hidden_pmf(observed, *process)
    for n_hidden in range(3):

        def density(hidden):
            order = (*observed, *hidden)
            return sum(math.exp(icp.log_prob(order, Z, 2, *process, 0.6)) for Z in graphs(order, 2))

        total = integral(density, sorted(set(observed) - {0.0, 1.0}), n_hidden, n_points=5)
        assert total == pytest.approx(pmf[n_hidden], rel=1e-8)


def test_labels_of_hidden_nodes():
    order, Z = icp.sample([0.0, FREE, 1.0], 4.0, 1.5, random_state=4)
    n_hidden = len(order) - 3
    assert n_hidden > 2
    expected = icp.log_prob(order, Z, 3, 1.1, 0.7, 0.4)
    labelled = icp.log_prob(order, Z, 3, 1.1, 0.7, 0.4, "labelled")
    assert labelled == pytest.approx(expected - math.lgamma(n_hidden + 1))
    names = np.append([2, 0, 1], 3 + np.random.default_rng(0).permutation(n_hidden))
    renamed = icp.log_prob(order[names], Z[np.ix_(names, names)], 3, 1.1, 0.7, 0.4)
    assert renamed == pytest.approx(expected, rel=1e-13)


def test_odds_of_single_edges():
    """Equation 13 against the ratio of two densities."""
    rng, n_seen = np.random.default_rng(1), 0
    for _ in range(30):
        mass, alpha, phi = rng.gamma(2.0, 0.7, 3)
        order, Z = icp.sample([0.0, FREE, FREE], mass, alpha, phi, random_state=rng)
        for i, k in itertools.product(range(len(order)), repeat=2):
            without, with_edge = Z.copy(), Z.copy()
            without[i, k], with_edge[i, k] = 0, 1
            m, is_observed = without[:, k].sum(dtype=int), k < 3
            if order[i] >= order[k] or not (is_observed or m):
                continue
            p = (m + phi * is_observed) / (alpha + (order < order[k]).sum() - 1 + phi * is_observed)
            log_odds = icp.log_prob(order, with_edge, 3, mass, alpha, phi)
            log_odds -= icp.log_prob(order, without, 3, mass, alpha, phi)
            assert log_odds == pytest.approx(math.log(p / (1 - p)), abs=1e-10)
            n_seen += 1
    assert n_seen > 200


def test_indian_buffet_is_a_limit():
    """Observed nodes at 0 and hidden ones at 1: the customers and dishes."""
    features = ibp.sample(5, 1.7, 2.3, random_state=0)
    n, n_features = features.shape
    Z = np.zeros((n + n_features, n + n_features))
    Z[:n, n:] = features
    order = np.repeat([0.0, 1.0], [n, n_features])
    expected = ibp.log_prob(features, 1.7, 2.3, ordering="unordered")
    assert icp.log_prob(order, Z, n, 1.7, 2.3, 0.4) == pytest.approx(expected, rel=1e-13)


def test_equal_orders_are_not_joined():
    assert icp.log_prob([0.5, 0.5], [[0, 1], [0, 0]], 2, 1.0) == -np.inf
    assert icp.log_prob([0.2, 0.5], [[0, 0], [1, 0]], 2, 1.0) == -np.inf
    alone = icp.log_prob([0.5, 0.5], np.zeros((2, 2)), 2, 1.0, 2.0)
    assert alone == pytest.approx(-0.5 * 2.0 * (1 / 2 + 1 / 3))
    for method, seed in itertools.product(("sweep", "chefs"), range(20)):
        order, Z = icp.sample([0.5, 0.5, 1.0, 1.0], 1.0, method=method, random_state=seed)
        assert not Z[:2, :2].any() and not Z[2:4, 2:4].any()
        child, parent = Z.nonzero()
        assert (order[parent] > order[child]).all()


# -- moments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "concentration, expected",
    [
        (0.25, ((0.524, 0.629), (1.090, 1.531), (2.327, 4.229), (3.674, 8.221))),
        (0.5, ((0.540, 0.632), (1.156, 1.553), (2.583, 4.402), (4.228, 8.791))),
        (1, ((0.562, 0.635), (1.248, 1.583), (2.968, 4.653), (5.112, 9.661))),
        (2, ((0.587, 0.639), (1.356, 1.617), (3.482, 4.970), (6.390, 10.842))),
        (4, ((0.608, 0.643), (1.464, 1.650), (4.079, 5.314), (8.064, 12.267))),
        (8, ((0.625, 0.645), (1.556, 1.676), (4.691, 5.638), (10.050, 13.802))),
    ],
)
def test_moments_of_the_spec(concentration, expected):
    for mass, (n_hidden, n_edges) in zip((0.5, 1.0, 2.0, 3.0), expected, strict=True):
        mean = icp.expected_hidden([0.0], mass, concentration)
        hidden, observed = icp.expected_edges([0.0], mass, concentration)
        assert mean == pytest.approx(n_hidden, abs=0.6e-3)
        assert hidden == pytest.approx(n_edges, abs=0.6e-3)
        assert observed == 0.0


@pytest.mark.parametrize(
    "concentration, expected",
    [
        (0.25, (1.090, 1.261, 1.479, 1.645, 1.814, 2.039)),
        (1.0, (1.248, 1.739, 2.463, 3.055, 3.680, 4.542)),
        (4.0, (1.464, 2.454, 4.327, 6.130, 8.208, 11.282)),
    ],
)
def test_growth_with_the_observed_nodes(concentration, expected):
    for n, mean in zip((1, 2, 5, 10, 20, 50), expected, strict=True):
        assert icp.expected_hidden([0.0] * n, 1.0, concentration) == pytest.approx(mean, abs=6e-4)


def test_other_figures_of_the_spec():
    for observed, n_hidden, n_edges in (
        ([0.0, 1.0], 1.24773, 2.70673), ([0.0, 0.0], 1.73897, 2.83060),
    ):  # fmt: skip
        assert icp.expected_hidden(observed, 1.0) == pytest.approx(n_hidden, abs=0.6e-5)
        assert sum(icp.expected_edges(observed, 1.0)) == pytest.approx(n_edges, abs=0.6e-5)
    assert icp.expected_hidden([0.0] * 3, 1.0) == pytest.approx(2.050, abs=0.6e-3)
    assert icp.expected_edges([0.0] * 3, 1.0)[0] == pytest.approx(3.990, abs=0.6e-3)
    assert icp.expected_hidden([0.0], 1.5, 8.0) == pytest.approx(2.882, abs=0.6e-3)
    assert icp.expected_hidden([0.0], 20.0) == pytest.approx(72.4, abs=0.06)
    assert icp.var_hidden([0.0], 20.0) == pytest.approx(153.8, abs=0.06)
    assert icp.expected_edges([0.0], 20.0)[0] == pytest.approx(629, abs=0.6)


@pytest.mark.parametrize("max_hidden", [None, 3])
@pytest.mark.parametrize("others, n_free", [((), 2), ((0.0,), 2), ((0.3, 1.0), 1)])
def test_free_orders_are_averages_over_fixed_ones(others, n_free, max_hidden):
    """Quadrature over the free orders; with a bound, weighted by its probability."""
    process = 1.2, 1.7

    def moments(free):
        pmf = np.zeros(256)
        every = icp.hidden_pmf((*others, *free), *process)
        pmf[: len(every)] = every
        n_most = len(every) - 1 if max_hidden is None else max_hidden
        edges = icp.expected_edges((*others, *free), *process, 0.8, n_most)
        return n_free * np.append(pmf, np.multiply(edges, pmf[: n_most + 1].sum()))

    *pmf, hidden, observed = integral(moments, sorted(set(others) - {0.0, 1.0}), n_free, n_points=6)
    pmf = np.array(pmf if max_hidden is None else pmf[: max_hidden + 1])
    few = pmf.sum()
    free = (*others, *[FREE] * n_free)
    exact = icp.hidden_pmf(free, *process, max_hidden)
    np.testing.assert_allclose(exact[: len(pmf)], (pmf / few)[: len(exact)], rtol=1e-5, atol=1e-8)
    assert exact.sum() == pytest.approx(1.0, abs=2e-12)
    edges = icp.expected_edges(free, *process, 0.8, max_hidden)
    np.testing.assert_allclose(edges, [hidden / few, observed / few], rtol=1e-5)


# -- draws ------------------------------------------------------------------------------------

# Wrong formulas, and their classes in tests/mutants.
FAULTS = {
    "binomial": "BinomialParents",
    "strictly_below": "StrictlyBelowParents",
    "all_introduced": "AllIntroducedParents",
}
# Orders of the observed nodes; mass, concentration, popularity.
CASES = {
    "one at 0": ([0.0], (1.0, 1.0, 1.0)),
    "many hidden nodes": ([0.0], (1.5, 8.0, 1.0)),
    "dense": ([0.0], (4.0, 1.0, 1.0)),
    "two free": ([FREE, FREE], (2.0, 0.5, 1.5)),
    "0, 1, free": ([0.0, 1.0, FREE], (1.5, 2.0, 0.7)),
    "given orders, equal ones": ([0.3, 0.8, 0.3, FREE], (1.2, 1.5, 0.4)),
}


def statistics(observed, parameters, n_draws, seed, method="sweep", fault="none", max_hidden=5000):
    """Arrays of what draws look like."""
    n_observed, rng = len(observed), np.random.default_rng(seed)
    by_node = DrawNodeByNode if fault == "none" else getattr(compiled("processes"), FAULTS[fault])
    process = (np.array(observed), *parameters, method, max_hidden, rng, by_node)
    out = []
    while len(out) < n_draws:
        try:
            order, Z = icp._draw(*process)
        except icp.TooManyNodesError:
            continue
        m, hidden = Z.sum(axis=0, dtype=int), order[n_observed:]
        out.append({
            "hidden": len(hidden),
            "hidden edges": m[n_observed:].sum(),
            "observed edges": m[:n_observed].sum(),
            "squared children": (m[n_observed:] ** 2).sum(),
            "squared children of observed": (m[:n_observed] ** 2).sum(),
            "one child": (m[n_observed:] == 1).sum(),
            "parents of the first": Z[0, n_observed:].sum(dtype=int),
            "orphans": (Z[n_observed:].sum(axis=1) == 0).sum(),
            "lowest": hidden.min(initial=1.0),
            "sum of orders": hidden.sum(),
        })  # fmt: skip
    return {name: np.array([draw[name] for draw in out], dtype=float) for name in out[0]}


@proof(draws=(2500, 12_500), seed=0)
@pytest.mark.parametrize("method", ["sweep", "chefs"])
@pytest.mark.parametrize(
    "case, max_hidden", [(case, 5000) for case in CASES] + [("two free", 2), ("0, 1, free", 2)]
)
def test_samples_have_the_exact_moments(case, max_hidden, method, size, seed):
    observed, (mass, concentration, popularity) = CASES[case]
    of = statistics(observed, CASES[case][1], size, seed, method, max_hidden=max_hidden)
    law = observed, mass, concentration
    max_hidden = None if max_hidden == 5000 else max_hidden
    mean = icp.expected_hidden(*law, max_hidden)
    hidden, from_observed = icp.expected_edges(*law, popularity, max_hidden)
    assert abs(z_score(of["hidden"], mean)) < 4
    variance = icp.var_hidden(*law, max_hidden)
    assert abs(z_score((of["hidden"] - mean) ** 2, variance)) < 4
    assert abs(z_score(of["hidden edges"], hidden)) < 4
    assert abs(z_score(of["observed edges"], from_observed)) < 4


@proof(draws=(3000, 15_000), seed=1)
@pytest.mark.parametrize("case", CASES)
def test_samplers_agree(case, size, seed):
    observed, parameters = CASES[case]
    sweep = statistics(observed, parameters, size, seed)
    chefs = statistics(observed, parameters, size, seed + 1, "chefs")
    z = {name: z_score_two_sample(sweep[name], chefs[name]) for name in sweep}
    assert max(map(abs, z.values())) < 4, z


@proof(seed=1, wrong=True)
@pytest.mark.parametrize(
    "fault, case, name, n_draws",
    [
        ("binomial", "0, 1, free", "squared children of observed", 8000),
        ("strictly_below", "0, 1, free", "hidden", 1000),
        ("all_introduced", "dense", "squared children", 1500),
    ],
)
def test_wrong_formulas_are_noticed(fault, case, name, n_draws, seed):
    observed, parameters = CASES[case]
    sweep = statistics(observed, parameters, n_draws, seed)
    wrong = statistics(observed, parameters, n_draws, seed + 1, "chefs", fault)
    assert abs(z_score_two_sample(sweep[name], wrong[name])) > 6


def test_every_wrong_formula_is_tested():
    (marks,) = (m for m in test_wrong_formulas_are_noticed.pytestmark if m.name == "parametrize")
    assert {fault for fault, *_ in marks.args[1]} == FAULTS.keys()


@proof(draws=(10_000, 50_000), seed=3)
def test_samples_follow_the_density(size, seed):
    """Chi-square over the graphs of observed nodes at 0 and 0.6 with up to one hidden node, and
    whether that is below 0.6; false alarm 1e-4."""
    observed, process, n_draws = [0.0, 0.6], (0.9, 1.4, 0.8), size
    drawn, rng = {}, np.random.default_rng(seed)
    for _ in range(n_draws):
        order, Z = icp.sample(observed, *process, random_state=rng)
        key = tuple(order[2:] < 0.6), Z.tobytes()
        drawn[key] = drawn.get(key, 0) + 1
    counts, expected = [], []
    for n_hidden, low, high in ((0, 0.0, 1.0), (1, 0.0, 0.6), (1, 0.6, 1.0)):
        middle = ((low + high) / 2,) * n_hidden
        for Z in graphs((*observed, *middle), 2):

            def density(t, Z=Z, n_hidden=n_hidden, low=low, high=high):
                order = (*observed, *(low + (high - low) * x for x in t))
                return (high - low) ** n_hidden * math.exp(icp.log_prob(order, Z, 2, *process))

            expected.append(n_draws * integral(density, [], n_hidden))
            counts.append(drawn.get((tuple(x < 0.6 for x in middle), Z.tobytes()), 0))
    assert len(counts) == 2 + 4 + 6
    counts.append(n_draws - sum(counts))
    expected.append(n_draws - sum(expected))
    assert min(expected) > 20
    assert p_value(stats.chisquare(counts, expected)) > 1e-4


@proof(draws=(3000, 15_000), seed=5)
def test_parents_are_poisson(size, seed):
    """Hidden parents of a node of order 0.4: mean and variance are the mass above it."""
    mass = 2.5
    of = statistics([0.4, 0.0], (mass, 0.8, 1.0), size, seed)["parents of the first"]
    rate = mass * 0.6
    assert abs(z_score(of, rate)) < 4
    assert abs(z_score((of - rate) ** 2, rate)) < 4


@proof(draws=(3000, 15_000), seed=6)
def test_nodes_with_one_child(size, seed):
    """As many as the mass, for a concentration of 1 and all observed nodes at 0."""
    of = statistics([0.0] * 4, (1.6, 1.0, 1.0), size, seed)
    assert abs(z_score(of["one child"], 1.6)) < 4


def test_samples_are_sorted_and_repeatable():
    for method in "sweep", "chefs":
        order, Z = icp.sample([0.5, FREE, 0.0], 4.0, 9.0, 0.5, method, random_state=7)
        assert order[0] == 0.5 and order[2] == 0.0 and len(order) > 5
        assert (np.diff(order[3:]) > 0).all()
        assert Z.dtype == np.uint8 and Z[:, 3:].any(axis=0).all()
        again = icp.sample([0.5, FREE, 0.0], 4.0, 9.0, 0.5, method, random_state=7)
        assert np.array_equal(order, again[0]) and np.array_equal(Z, again[1])
    order, Z = icp.sample([1.0, 1.0], 3.0, random_state=0)
    assert order.tolist() == [1.0, 1.0] and not Z.any()


# -- bad input --------------------------------------------------------------------------------

Z = [[0, 1], [0, 0]]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: icp.sample([], 1.0), "observed_order must have at least one node"),
        (lambda: icp.sample(0.0, 1.0), "observed_order must be a vector of numbers, got 0.0"),
        (lambda: icp.sample(["a"], 1.0), "observed_order must be a vector of numbers"),
        (lambda: icp.sample([0.0, -0.1], 1.0), r"must be in \[0, 1\], or NaN .*, got -0.1"),
        (lambda: icp.sample([np.inf], 1.0), r"observed_order must be in \[0, 1\].*got inf"),
        (lambda: icp.sample([0.0], 0.0), "mass must be > 0, got 0.0"),
        (lambda: icp.sample([0.0], 1.0, np.nan), "concentration must be finite"),
        (lambda: icp.sample([0.0], 1.0, -1.0), "concentration must be > 0, got -1.0"),
        (lambda: icp.sample([0.0], 1.0, 1.0, 0), "observed_popularity must be > 0, got 0"),
        (lambda: icp.sample([0.0], 1.0, method="star"), "method must be one of sweep, chefs"),
        (lambda: icp.sample([0.0], 1.0, max_hidden=-1), "max_hidden must be an integer >= 0"),
        (lambda: icp.sample([0.0], 1.0, max_hidden=None), "max_hidden must be an integer >= 0"),
        (lambda: icp.hidden_pmf([0.0], 1.0, max_hidden=-1), "max_hidden must be an integer >= 0"),
        (lambda: icp.log_prob([0.0, FREE], Z, 1, 1.0), r"order must be in \[0, 1\], got nan"),
        (lambda: icp.log_prob([0.0, 0.5], [[0]], 1, 1.0), r"shape \(2, 2\), got \(1, 1\)"),
        (lambda: icp.log_prob([0.0, 0.5], [[0, 2], [0, 0]], 1, 1.0), "Z must hold 0 and 1 only"),
        (lambda: icp.log_prob([0.0, 0.5], np.zeros((2, 2)), 1, 1.0), "got node 1 without"),
        (lambda: icp.log_prob([0.0, 0.5], Z, 3, 1.0), "at least n_observed = 3 nodes, got 2"),
        (lambda: icp.log_prob([0.0, 0.5], Z, 0, 1.0), "n_observed must be an integer >= 1, got 0"),
        (lambda: icp.log_prob([0.0, 0.5], Z, 1, 1.0, ordering="lof"), "ordering must be one of"),
        (lambda: icp.hidden_pmf([2.0], 1.0), r"observed_order must be in \[0, 1\].*got 2.0"),
        (lambda: icp.var_hidden([0.0], -1.0), "mass must be > 0, got -1.0"),
        (lambda: icp.expected_edges([0.0], 1.0, 1.0, -2.0), "observed_popularity must be > 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_too_many_nodes(monkeypatch):
    for method in "sweep", "chefs":
        with pytest.raises(icp.TooManyNodesError, match="max_hidden = 3 is too small"):
            icp.sample([0.0], 30.0, method=method, max_hidden=3)
    monkeypatch.setattr(icp, "_MOST_STATES", 100)
    with pytest.raises(ValueError, match="would take more than 100 of them"):
        icp.expected_hidden([0.0], 20.0)
