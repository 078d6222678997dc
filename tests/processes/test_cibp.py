"""The cascading Indian buffet process against enumeration, quadrature and known figures."""

import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import betaln, gammaln

from checks.monte_carlo import p_value, z_score
from checks.mutants import compiled
from checks.proofs import proof
from skbnp.processes import cibp, ibp

VECTORS = json.loads(Path(__file__).with_name("cibp_vectors.json").read_text())


def dishes_per_mass(n, concentration):
    return np.sum(concentration / (concentration + np.arange(n)))


def matrices(n_rows, n_columns):
    """All binary matrices without an empty column."""
    kinds = [kind for kind in itertools.product((0, 1), repeat=n_rows) if any(kind)]
    for columns in itertools.product(kinds, repeat=n_columns):
        yield np.array(columns, dtype=np.uint8).reshape(-1, n_rows).T


# -- the law ----------------------------------------------------------------------------------


def test_log_prob_is_the_formula():
    """The labelled law, summed over open restaurants, the one of the top layer included."""
    a, c = (1.3, 0.9, 0.4), (0.5, 2.0, 3.0)
    Zs = cibp.sample(6, 1.5, 2.0, max_depth=2, random_state=3)
    widths = [6] + [Z.shape[1] for Z in Zs]
    assert len(widths) == 3
    expected = -a[2] * dishes_per_mass(widths[2], c[2])
    for m, Z in enumerate(Zs):
        n, size = len(Z), Z.sum(axis=0, dtype=int)
        expected -= a[m] * dishes_per_mass(n, c[m]) + gammaln(widths[m + 1] + 1)
        expected += np.sum(np.log(a[m] * c[m]) + betaln(size, n - size + c[m]))
    assert cibp.log_prob(Zs, a, c, "labelled") == pytest.approx(expected, rel=1e-13)


def test_structure_of_the_spec():
    assert VECTORS["edges"] == [[2, 0], [2, 1], [3, 1], [4, 2]]
    assert VECTORS["skip_edge"] == [4, 1]
    Zs, process = [[[1, 0], [1, 1]], [[1], [0]]], (VECTORS["alpha"], VECTORS["beta"])
    labelled = cibp.log_prob(Zs, *process, "labelled")
    assert labelled == pytest.approx(VECTORS["labelled"], rel=1e-12)
    unordered = cibp.log_prob(Zs, *process, "unordered")
    assert unordered == pytest.approx(VECTORS["unordered"], rel=1e-12)
    for skip, name in ([[0], [0]], "labelled_extended"), ([[0], [1]], "labelled_with_skip_edge"):
        extended = cibp.log_prob(Zs, *process, "labelled", skips=[np.zeros((0, 2)), skip])
        assert extended == pytest.approx(VECTORS[name], rel=1e-12)


@pytest.mark.parametrize("mass, c, widest", [(1.0, 1.0, 8), (0.7, 2.5, 5)])
def test_labelled_matrices_of_one_layer_sum_to_one(mass, c, widest):
    """Two visible units: a Poisson number of hidden ones, and so one less its tail in all."""
    rate = mass * dishes_per_mass(2, c)
    for width in range(widest + 1):
        total = math.fsum(
            math.exp(cibp.log_prob([Z], mass, c, "labelled", max_depth=1))
            for Z in matrices(2, width)
        )
        assert total == pytest.approx(stats.poisson.pmf(width, rate), rel=1e-11)


@pytest.mark.parametrize("ordering", ["arrival", "labelled"])
@pytest.mark.parametrize("max_depth", [None, 2])
def test_matrices_of_two_layers_sum_to_the_law_of_the_widths(ordering, max_depth):
    mass, c = (0.8, 0.6, 1.1), (1.5, 0.7, 2.0)
    for n, first, second in itertools.product((1, 2), (1, 2), (0, 1, 2)):
        layers = itertools.product(matrices(n, first), matrices(first, second))
        total = math.fsum(
            math.exp(cibp.log_prob(Zs, mass, c, ordering, max_depth)) for Zs in layers
        )
        widths = (n, first, second, 0) if second else (n, first, 0)
        expected = 1.0
        for m in range(len(widths) - 1 if max_depth is None else 2):
            rate = mass[m] * dishes_per_mass(widths[m], c[m])
            expected *= stats.poisson.pmf(widths[m + 1], rate)
        assert total == pytest.approx(expected, rel=1e-12)


def test_names_of_the_units_do_not_matter():
    rng = np.random.default_rng(0)
    Zs = cibp.sample(5, 1.5, 2.0, max_depth=3, random_state=3)
    assert len(Zs) == 3
    expected = cibp.log_prob(Zs, 0.9, 1.3, "labelled")
    for _ in range(5):
        names = [rng.permutation(len(Z)) for Z in Zs]
        names.append(rng.permutation(Zs[2].shape[1]))
        renamed = [Z[np.ix_(names[m], names[m + 1])] for m, Z in enumerate(Zs)]
        assert cibp.log_prob(renamed, 0.9, 1.3, "labelled") == pytest.approx(expected, rel=1e-12)


def test_an_empty_layer_on_top_may_be_given():
    Z = [[1, 0], [1, 1]]
    process = (1.2, 0.7)
    assert cibp.log_prob([Z, np.zeros((2, 0))], *process) == cibp.log_prob([Z], *process)
    skips = [np.zeros((0, 2)), np.zeros((2, 0))]
    assert cibp.log_prob([Z], *process, skips=skips) == cibp.log_prob([Z], *process)
    nothing = [np.zeros((2, 0))]
    expected = -1.2 * dishes_per_mass(2, 0.7)
    assert cibp.log_prob(nothing, *process) == pytest.approx(expected)
    assert cibp.log_prob(nothing, *process, skips=nothing) == pytest.approx(expected)
    assert cibp.log_prob(nothing, *process, max_depth=0) == 0.0


def test_probability_zero_is_no_error():
    assert cibp.log_prob([[[1]], [[1]]], 1.0, max_depth=1) == -np.inf
    assert cibp.log_prob([[[0, 1], [1, 0]]], 1.0) == -np.inf


def test_skip_connections_sum_to_the_law_of_the_layers():
    """Three layers over one visible unit: all further children of the upper two."""
    Zs = [[[1, 1]], [[1, 0], [1, 1]], [[1], [1]]]
    process = (0.9, 1.6)
    total = 0.0
    for bits in itertools.product((0, 1), repeat=2 + 3):
        skips = [np.zeros((0, 2)), np.reshape(bits[:2], (1, 2)), np.reshape(bits[2:], (3, 1))]
        total += math.exp(cibp.log_prob(Zs, *process, "unordered", skips=skips))
    assert math.log(total) == pytest.approx(cibp.log_prob(Zs, *process, "unordered"), abs=1e-12)


# -- widths and depth -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "process, depth, units, decimals, cdf",
    [
        ((5, 0.5, 1), 1.24861, 1.91487, 5, ".31929 .68029 .85958 .93898 .97353 .98852"),
        ((5, 1, 1), 3.51183, 7.36052, 5, ".10194 .30134 .48174 .62068 .72342 .79854"),
        ((10, 1, 1), 3.84364, 8.67040, 5, ".05345 .23437 .42504 .57771 .69179 .77544"),
        ((50, 1, 1), 4.29779, 11.32791, 5, ".01112 .14516 .34228 .51352 .64423 .74065"),
        ((10, 1, 2), 5.06137, 13.53742, 5, ".01760 .12433 .28157 .43282 .55921 .65958"),
        ((50, 0.8, 3), 4.52298, 15.76788, 5, ".00068 .05530 .23163 .43623 .60487 .72819"),
        ((5, 2, 1), 32.39937, 134.36338, 5, ".01039 .03293 .05974 .08761 .11535 .14254"),
        ((5, 3, 1), 911.60689, 7208.58, 2, ".00106 .00249 .00379 .00498 .00611 .00721"),
    ],
    ids=str,
)
def test_depths_of_the_spec(process, depth, units, decimals, cdf):
    assert cibp.expected_depth(*process) == pytest.approx(depth, abs=0.6e-5)
    assert cibp.expected_units(*process) == pytest.approx(units, abs=0.6 * 10**-decimals)
    n_visible, *parameters = process
    np.testing.assert_allclose(
        cibp.depth_cdf(n_visible, 5, *parameters), list(map(float, cdf.split())), atol=0.6e-5
    )


@pytest.mark.parametrize("vector", VECTORS["prior"], ids=lambda v: f"{v['alpha']}, {v['beta']}")
def test_prior_of_the_spec(vector):
    n, *process = (vector[name] for name in ("D", "alpha", "beta"))
    tight = dict(rtol=1e-9)
    np.testing.assert_allclose(cibp.expected_widths(n, 4, *process), vector["mean_widths"], **tight)
    exists = 1.0 - cibp.depth_cdf(n, 3, *process)
    np.testing.assert_allclose(exists, vector["prob_layer_exists"], **tight)
    depth, units = vector["mean_n_hidden_layers"], vector["mean_n_hidden_units"]
    np.testing.assert_allclose(cibp.expected_depth(n, *process), depth, **tight)
    np.testing.assert_allclose(cibp.expected_units(n, *process), units, **tight)
    edges = ibp.expected_edges(n, *process)
    assert edges == vector["mean_first_edges"]
    out_degree = edges / ibp.expected_features(n, *process)
    np.testing.assert_allclose(out_degree, vector["mean_out_degree"], **tight)


@pytest.mark.parametrize("max_depth", [None, 4, 1, 0])
@pytest.mark.parametrize(
    "process", [(5, 1.0, 1.0), (3, (4.0, 0.7), (0.5, 2.0, 1.0))], ids=["all alike", "by layer"]
)
def test_moments_are_those_of_the_distribution(process, max_depth):
    n, *parameters = process
    cdf = cibp.depth_cdf(n, 300, *parameters, max_depth)
    m, pmf = np.arange(301), np.diff(cdf, prepend=0.0)
    mean = cibp.expected_depth(*process, max_depth)
    assert mean == pytest.approx(m @ pmf, rel=1e-9)
    assert cibp.var_depth(*process, max_depth) == pytest.approx((m - mean) ** 2 @ pmf, rel=1e-8)
    widths = cibp.expected_widths(n, 300, *parameters, max_depth)
    assert cibp.expected_units(*process, max_depth) == pytest.approx(widths.sum(), rel=1e-9)


@pytest.mark.parametrize("mass", [5.0, 10.0, 20.0])
def test_variance_of_a_depth_that_is_nearly_certain(mass):
    """Nearly always 10: from the small chances of less, where two large squares would cancel."""
    shortfall = 10.0 - np.arange(10)
    p = np.diff(cibp.depth_cdf(5, 9, mass, 1.0, 10), prepend=0.0)
    expected = p @ shortfall**2 - (p @ shortfall) ** 2
    assert cibp.var_depth(5, mass, 1.0, 10) == pytest.approx(expected, rel=1e-6)


def test_depths_beyond_floating_point_differences():
    """A chain that ends with probability 1e-16 per layer, against its exit rate from below."""
    n, mass = 20, 9.0
    k = np.arange(1, 200)
    rates = np.array([mass * dishes_per_mass(width, 1.0) for width in k])
    Q = stats.poisson.pmf(k, rates[:, np.newaxis])
    p = np.full(len(k), 1.0 / len(k))
    for _ in range(200):
        p = p @ Q / (p @ Q).sum()
    layers = 1.0 / (p @ np.exp(-rates))
    assert layers > 1e15
    assert cibp.expected_depth(n, mass) == pytest.approx(layers, rel=1e-7)
    assert cibp.expected_units(n, mass) == pytest.approx(layers * (p @ k), rel=1e-7)


def test_wide_first_layers():
    mass = (20.0, 0.7)
    first = 20.0 * dishes_per_mass(784, 5.0)
    assert cibp.expected_widths(784, 1, mass, 5.0)[0] == pytest.approx(first, rel=1e-10)
    assert cibp.expected_depth(784, mass, 5.0, 1) == pytest.approx(1.0, rel=1e-10)
    assert cibp.expected_depth(3, (1.0, 1e6), 1e9, 1) == pytest.approx(1.0 - math.exp(-3.0))


# -- draws ------------------------------------------------------------------------------------


@proof(draws=(20_000, 100_000), seed=1)
def test_samples_follow_the_probabilities(size, seed):
    """Chi-square over networks on two units with 20 expected or more; false alarms 1e-4."""
    process = ((0.5, 0.3), (1.5, 0.7))
    n_draws, rng = size, np.random.default_rng(seed)

    def key(Zs):
        return tuple(tuple(map(tuple, np.asarray(Z).T)) for Z in Zs if np.size(Z))

    drawn = Counter(key(cibp.sample(2, *process, random_state=rng)) for _ in range(n_draws))
    networks = [[np.zeros((2, 0))]]
    for width in (1, 2):
        for Z in matrices(2, width):
            networks.append([Z])
            networks.extend([Z, above] for top in (1, 2) for above in matrices(width, top))
    expected = {key(Zs): n_draws * math.exp(cibp.log_prob(Zs, *process)) for Zs in networks}
    common = [network for network, n in expected.items() if n >= 20]
    assert len(common) > 12
    observed = np.array([drawn[network] for network in common] + [0])
    wanted = np.array([expected[network] for network in common] + [0])
    observed[-1], wanted[-1] = n_draws - observed.sum(), n_draws - wanted.sum()
    assert p_value(stats.chisquare(observed, wanted)) > 1e-4


@proof(draws=(4000, 20_000), seed=2)
@pytest.mark.parametrize("max_depth", [None, 3])
def test_widths_of_samples(max_depth, size, seed):
    n, process = 4, ((1.4, 0.9), (0.6, 2.0))
    rng = np.random.default_rng(seed)
    widths = np.zeros((size, 4))
    depth, units = np.empty(len(widths)), np.empty(len(widths))
    for t in range(len(widths)):
        Zs = cibp.sample(n, *process, max_depth, random_state=rng)
        width = np.array([Z.shape[1] for Z in Zs])
        assert width[1:].all() and Zs[0].shape[0] == n
        widths[t, : min(4, len(width))] = width[:4]
        depth[t], units[t] = np.count_nonzero(width), width.sum()
    for x, mean in zip(
        widths.T, cibp.expected_widths(n, 4, *process, max_depth=max_depth), strict=True
    ):
        assert abs(z_score(x, mean)) < 4
    mean = cibp.expected_depth(n, *process, max_depth)
    assert abs(z_score(depth, mean)) < 4
    assert abs(z_score((depth - mean) ** 2, cibp.var_depth(n, *process, max_depth))) < 4
    assert abs(z_score(units, cibp.expected_units(n, *process, max_depth))) < 4


@proof(draws=(4000, 20_000), seed=3)
def test_skip_connections_of_samples(size, seed):
    """The children of the second layer's units among the visible ones, given those between: each
    unit that offers has m of the K_1 below, and each further one takes it with m / (K_1 + c)."""
    c, rng = 1.7, np.random.default_rng(seed)
    excess, square = [], []
    for _ in range(size):
        Zs, skips = cibp.sample(3, 1.2, c, 2, skip_connections=True, random_state=rng)
        assert [skip.shape[1] for skip in skips] == [Z.shape[1] for Z in Zs]
        if len(Zs) < 2:
            continue
        # beta-binomial: the popularity is Beta(m, K_1 - m + c)
        total = Zs[1].shape[0] + c
        popularity = Zs[1][:, 0].sum(dtype=int) / total
        variance = 3 * popularity * (1 - popularity) * (total + 3) / (total + 1)
        excess.append(skips[1][:, 0].sum(dtype=int) - 3 * popularity)
        square.append(excess[-1] ** 2 - variance)
    assert len(excess) > size / 2
    assert abs(z_score(excess, 0.0)) < 4
    assert abs(z_score(square, 0.0)) < 4


def test_skip_connections_leave_the_layers_alone():
    for seed in range(20):
        Zs = cibp.sample(4, 1.2, max_depth=4, random_state=seed)
        same, skips = cibp.sample(4, 1.2, max_depth=4, skip_connections=True, random_state=seed)
        assert all(map(np.array_equal, Zs, same))
        widths = [4] + [Z.shape[1] for Z in Zs]
        for m, skip in enumerate(skips):
            assert skip.dtype == np.uint8
            assert skip.shape == (sum(widths[:m]), widths[m + 1])


def test_a_process_that_does_not_end():
    with pytest.warns(RuntimeWarning, match="cut at 1000 layers, while .*e.08 are expected"):
        Zs = cibp.sample(5, 6.0, random_state=0)
    assert len(Zs) == 1000
    assert len(cibp.sample(5, 6.0, max_depth=20, random_state=0)) == 20


# -- updates of mass and concentration --------------------------------------------------------


def moments(log_density, low, high):
    """Mean and variance of a density on (low, high), by quadrature."""
    top = max(log_density(x) for x in np.linspace(low, high, 2001)[1:-1])

    def integral(f):
        def weighted(x):
            return f(x) * np.exp(log_density(x) - top)

        return quad(weighted, low, high, epsabs=0, epsrel=1e-9, limit=500)[0]

    norm = integral(lambda x: 1.0)
    mean = integral(lambda x: x) / norm
    return mean, integral(lambda x: (x - mean) ** 2) / norm


def assert_moments(chain, mean, variance):
    """False-alarm rate 1.3e-4."""
    assert abs(z_score(chain, mean)) < 4
    assert abs(z_score((chain - mean) ** 2, variance)) < 4


@proof(updates=(40_000, 200_000), seed=0)
@pytest.mark.parametrize(
    "n_dishes, n_customers, concentration, bounds",
    [
        (3, 5, 1.3, (0.0, 20.0)),
        (0, 4, 0.5, (0.0, 2.0)),
        (40, 64, 2.0, (0.5, 3.0)),
        (0, 0, 1.0, (0.0, 2.0)),
    ],
)
def test_mass_against_quadrature(n_dishes, n_customers, concentration, bounds, size, seed):
    face = compiled("processes", "faces")
    chain = face.buffet_masses(n_dishes, n_customers, concentration, bounds, seed, size)
    rate = dishes_per_mass(n_customers, concentration)
    assert bounds[0] < chain.min() <= chain.max() < bounds[1]
    assert_moments(chain, *moments(lambda x: n_dishes * np.log(x) - rate * x, *bounds))


def buffet_concentrations(*arguments):
    return compiled("processes", "faces").buffet_concentrations(*arguments)


def concentration_target(n_takers, n_customers, n_offered, mass):
    def log_density(c):
        dishes = betaln(n_takers, n_offered - n_takers + c).sum()
        return n_takers.size * np.log(c) - mass * dishes_per_mass(n_customers, c) + dishes

    return log_density


@proof(updates=(40_000, 200_000), seed=0)
@pytest.mark.parametrize(
    "n_takers, n_customers, n_offered, mass, bounds",
    [
        ([1, 4, 2], 5, 5, 0.8, (0.0, 20.0)),
        ([2, 6, 1], 3, 9, 0.8, (0.0, 2.0)),
        ([5, 5], 5, 5, 1.0, (0.0, 2.0)),
        ([1] * 30, 64, 64, 2.0, (0.5, 20.0)),
        ([], 4, 4, 1.5, (0.0, 3.0)),
    ],
)
def test_concentration_against_quadrature(
    n_takers, n_customers, n_offered, mass, bounds, size, seed
):
    n_takers = np.array(n_takers, dtype=np.intp)
    numbers = (n_takers, n_customers, n_offered)
    chain = buffet_concentrations(*numbers, mass, bounds, seed, size)
    target = concentration_target(n_takers, n_customers, n_offered, mass)
    assert bounds[0] < chain.min() <= chain.max() < bounds[1]
    assert_moments(chain, *moments(target, *bounds))


@proof(seed=0, wrong=True)
@pytest.mark.parametrize("n_takers, n_customers, n_offered", [([1, 3], 3, 9), ([1, 2, 3], 9, 9)])
def test_wrong_numbers_are_noticed(n_takers, n_customers, n_offered, seed):
    """What nobody else was offered, and one dish too many."""
    n_takers, bounds = np.array(n_takers, dtype=np.intp), (0.0, 20.0)
    numbers = (n_takers[:2], n_customers, n_customers)
    chain = buffet_concentrations(*numbers, 0.8, bounds, seed, 4000)
    target = concentration_target(n_takers, n_customers, n_offered, 0.8)
    assert abs(z_score(chain, moments(target, *bounds)[0])) > 10


# -- bad input --------------------------------------------------------------------------------

Z = [[1, 0], [1, 1]]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: cibp.sample(0, 1.0), "n_visible must be an integer >= 1, got 0"),
        (lambda: cibp.sample(3, 0.0), "mass must be > 0, got 0.0"),
        (lambda: cibp.sample(3, (1.0, -1.0)), "mass must be > 0, got -1.0"),
        (lambda: cibp.sample(3, np.ones((2, 2))), "mass must be a number or one for each"),
        (lambda: cibp.sample(3, []), "mass must be a number or one for each"),
        (lambda: cibp.sample(3, 1.0, np.inf), "concentration must be finite"),
        (lambda: cibp.sample(3, 1.0, 0.0), "concentration must be > 0, got 0.0"),
        (lambda: cibp.sample(3, 1.0, max_depth=-1), "max_depth must be an integer >= 0, got -1"),
        (lambda: cibp.log_prob([], 1.0), "Zs must hold at least one matrix"),
        (lambda: cibp.log_prob([[1, 0]], 1.0), r"Zs\[0\] must be two-dimensional"),
        (lambda: cibp.log_prob([np.zeros((0, 0))], 1.0), r"Zs\[0\] must have at least one row"),
        (lambda: cibp.log_prob([Z, [[2], [1]]], 1.0), r"Zs\[1\] must hold 0 and 1 only"),
        (lambda: cibp.log_prob([Z, [[1]]], 1.0), r"for each column of Zs\[0\], 2, got 1"),
        (lambda: cibp.log_prob([Z, [[0], [0]]], 1.0), r"Zs\[1\] must have no empty column"),
        (lambda: cibp.log_prob([Z], 1.0, ordering="lof"), "ordering must be one of arrival"),
        (lambda: cibp.log_prob([Z], 1.0, skips=[]), "skips must have a row for each unit below"),
        (lambda: cibp.log_prob([Z], 1.0, skips=[[[1, 0]]]), r"shapes \[\(0, 2\)\], got \[\(1, 2"),
        (lambda: cibp.expected_widths(3, 0, 1.0), "n_layers must be an integer >= 1, got 0"),
        (lambda: cibp.depth_cdf(3, 2.5, 1.0), "n_layers must be an integer >= 1, got 2.5"),
        (lambda: cibp.expected_depth(0, 1.0), "n_visible must be an integer >= 1, got 0"),
        (lambda: cibp.expected_depth(3, 1.0, 1e12), "law of the widths would take more than 4000"),
        (lambda: cibp.expected_depth(3, 120.0), "lives for more layers than"),
        (lambda: cibp.expected_units(3, -1.0), "mass must be > 0, got -1.0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
