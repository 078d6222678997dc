"""The nested Chinese restaurant process against enumeration, quadrature and known figures."""

import doctest
import math
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from scipy.special import gammaln

from checks.enumeration import canonical_paths, nested_partitions
from checks.monte_carlo import p_value, z_score
from checks.mutants import compiled
from checks.proofs import proof
from skbnp.processes import crp, ncrp

FAMILY = [
    dict(concentration=1.0),
    dict(concentration=(1.0, 0.5)),
    dict(concentration=(1.3, 0.6)),
    dict(concentration=(0.0, 0.7)),
    dict(concentration=(2.0, 0.0)),
    dict(concentration=0.0),
    dict(concentration=(1.0, -0.2), discount=0.4),
    dict(concentration=(0.0, 0.5), discount=0.7),
]
every_member = pytest.mark.parametrize("member", FAMILY, ids=str)


@pytest.mark.parametrize("n, depth, expected", [(3, 2, 12), (4, 2, 60), (3, 3, 22), (4, 1, 15)])
def test_number_of_nested_partitions(n, depth, expected):
    trees = list(nested_partitions(n, depth))
    assert len(trees) == len(set(trees)) == expected
    assert all(canonical_paths(tree) == tree for tree in trees)


@every_member
@pytest.mark.parametrize("n", [1, 2, 4])
def test_probabilities_sum_to_one_over_all_trees(member, n):
    total = math.fsum(math.exp(ncrp.log_prob(tree, **member)) for tree in nested_partitions(n, 2))
    assert total == pytest.approx(1.0, abs=1e-12)


@every_member
def test_log_prob_ignores_names_of_children_and_order_of_items(member):
    rng = np.random.default_rng(0)
    paths = np.array([[0, 0], [0, 0], [0, 1], [1, 0], [1, 0], [2, 0]])
    expected = ncrp.log_prob(paths, **member)
    for _ in range(5):
        names = rng.permutation([7, 0, 10**6])
        renamed = np.stack([names[paths[:, 0]], rng.permutation([5, 9])[paths[:, 1]]], axis=1)
        got = ncrp.log_prob(rng.permutation(renamed), **member)
        assert got == expected or got == pytest.approx(expected, rel=1e-12)


def test_formula_of_the_dirichlet_case():
    """The sum over inner nodes of |ch| log a + sum lgamma(N_c) + lgamma(a) - lgamma(a + N)."""
    paths = np.array([[0, 0], [0, 1], [0, 1], [1, 0], [2, 0], [2, 0], [2, 1]])
    a, b = 1.7, 0.4
    expected = 3 * np.log(a) + gammaln([3, 1, 3]).sum() + gammaln(a) - gammaln(a + 7)
    for sizes in ([1, 2], [1], [2, 1]):
        n = sum(sizes)
        expected += len(sizes) * np.log(b) + gammaln(sizes).sum() + gammaln(b) - gammaln(b + n)
    assert ncrp.log_prob(paths, (a, b)) == pytest.approx(expected, rel=1e-13)


def test_one_level_is_the_chinese_restaurant():
    labels = crp.sample(30, 2.0, 0.3, random_state=0)
    assert ncrp.log_prob(labels[:, None], 2.0, 0.3) == pytest.approx(
        crp.log_prob(labels, 2.0, 0.3), rel=1e-13
    )


def test_shares_of_four_items():
    """alpha = 1.3, 0.6: P(1 and 2 share a leaf) = 0.27174, P(all four do) = 0.073654."""
    two = all_four = 0.0
    for tree in nested_partitions(4, 2):
        probability = math.exp(ncrp.log_prob(tree, (1.3, 0.6)))
        two += probability * (tree[0] == tree[1])
        all_four += probability * (len(set(tree)) == 1)
    assert two == pytest.approx(0.27174, abs=5e-6)
    assert two == pytest.approx(1 / (2.3 * 1.6), rel=1e-12)
    assert all_four == pytest.approx(0.073654, abs=5e-7)


@every_member
def test_log_prob_is_the_sum_of_log_predictive_along_any_order(member):
    rng = np.random.default_rng(1)
    for _ in range(10):
        paths = rng.permutation(ncrp.sample(20, 2, random_state=rng, **member))
        total = sum(
            ncrp.log_path_predictive(paths[:i], paths[i], **member) for i in range(1, len(paths))
        )
        assert total == pytest.approx(ncrp.log_prob(paths, **member), abs=1e-10)


@every_member
def test_last_item_can_be_dropped(member):
    trees = {tree: ncrp.log_prob(tree, **member) for tree in nested_partitions(4, 2)}
    for tree in nested_partitions(3, 2):
        total = math.fsum(math.exp(log_p) for one, log_p in trees.items() if one[:3] == tree)
        assert total == pytest.approx(math.exp(ncrp.log_prob(tree, **member)), abs=1e-12)


@every_member
def test_predictive_sums_to_one(member):
    paths = ncrp.sample(9, 2, random_state=2, **member)
    candidates = {tuple(path) for path in paths.tolist()}
    candidates |= {(first, 99) for first, _ in candidates} | {(99, 0)}
    total = sum(math.exp(ncrp.log_path_predictive(paths, path, **member)) for path in candidates)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_expected_nodes_of_three_levels():
    np.testing.assert_allclose(
        ncrp.expected_nodes(8, 3, (1.0, 0.7, 2.0)),
        [2.717857143, 4.095507997, 6.167029172],
        rtol=1e-9,
    )


@every_member
def test_expected_nodes_against_enumeration(member):
    mean = np.zeros(2)
    for tree in nested_partitions(4, 2):
        widths = [len({path[:h] for path in tree}) for h in (1, 2)]
        mean += math.exp(ncrp.log_prob(tree, **member)) * np.array(widths)
    np.testing.assert_allclose(ncrp.expected_nodes(4, 2, **member), mean, rtol=1e-12)


@proof(draws=(20_000, 100_000), seed=3)
@every_member
def test_samples_follow_the_probabilities(member, size, seed):
    """Chi-square over the 12 trees of 3 items, false alarms 1e-4 each."""
    n_draws, rng = size, np.random.default_rng(seed)
    drawn = Counter(
        tuple(map(tuple, ncrp.sample(3, 2, random_state=rng, **member).tolist()))
        for _ in range(n_draws)
    )
    trees = list(nested_partitions(3, 2))
    expected = n_draws * np.exp([ncrp.log_prob(tree, **member) for tree in trees])
    assert set(drawn) <= {tree for tree, n in zip(trees, expected, strict=True) if n > 0}
    observed = np.array([drawn[tree] for tree in trees])[expected > 20]
    expected = expected[expected > 20]
    if len(expected) > 1:
        expected *= observed.sum() / expected.sum()
        assert p_value(stats.chisquare(observed, expected)) > 1e-4
    else:
        test = stats.binomtest(int(observed[0]), n_draws, min(1.0, expected[0] / n_draws))
        assert p_value(test) > 1e-4


@proof(draws=(4000, 20_000), seed=4)
def test_samples_have_the_expected_number_of_nodes(size, seed):
    rng = np.random.default_rng(seed)
    alpha = (1.0, 0.7, 2.0)
    widths = np.empty((size, 3))
    for t in range(len(widths)):
        level = ncrp.node_table(ncrp.sample(40, 3, alpha, random_state=rng))[2]
        widths[t] = np.bincount(level)[1:]
    for h, mean in enumerate(ncrp.expected_nodes(40, 3, alpha)):
        assert abs(z_score(widths[:, h], mean)) < 4


def test_node_table():
    node, parent, level, count = ncrp.node_table([[5, 1], [2, 1], [5, 0], [5, 1]])
    np.testing.assert_array_equal(node, [[1, 3], [2, 5], [1, 4], [1, 3]])
    np.testing.assert_array_equal(parent, [-1, 0, 0, 1, 1, 2])
    np.testing.assert_array_equal(level, [0, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(count, [4, 3, 1, 2, 1, 1])


def test_node_table_of_a_sample():
    paths = ncrp.sample(300, 4, (1.0, 0.0, 2.0, 0.5), random_state=5)
    assert canonical_paths(paths.tolist()) == tuple(map(tuple, paths.tolist()))
    node, parent, level, count = ncrp.node_table(paths)
    assert (parent[1:] < np.arange(1, len(parent))).all()
    np.testing.assert_array_equal(level[parent[1:]] + 1, level[1:])
    np.testing.assert_array_equal(parent[node[:, 0]], 0)
    np.testing.assert_array_equal(parent[node[:, 1:]], node[:, :-1])
    np.testing.assert_array_equal(np.bincount(node.ravel())[1:], count[1:])


def test_a_large_sample():
    paths = ncrp.sample(10**5, 3, 1.0, random_state=0)
    assert paths.shape == (10**5, 3)
    assert np.isfinite(ncrp.log_prob(paths, 1.0))


# -- update of the concentration --------------------------------------------------------------

PATHS = np.array([[0, 0]] * 9 + [[1, 0]] * 3 + [[1, 1], [1, 2], [2, 0], [2, 1], [2, 2]])


def posterior_moments(level, prior):
    """Mean and variance of one level's concentration by quadrature over its logarithm."""
    x = np.linspace(-25.0, 8.0, 3301)
    alpha = np.ones((len(x), 2))
    alpha[:, level] = np.exp(x)
    log_density = np.array([ncrp.log_prob(PATHS, a) for a in alpha])
    log_density += prior[0] * x - prior[1] * np.exp(x)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ np.exp(x)
    return mean, weight @ (np.exp(x) - mean) ** 2


PRIORS = ((2.0, 4.0), (3.0, 1.5))


@proof(updates=(60_000, 300_000), seed=6)
def test_concentration_against_quadrature(size, seed):
    _, parent, level, count = ncrp.node_table(PATHS)
    n_children = np.bincount(parent[1:], minlength=len(parent)).astype(np.intp)
    face, rng = compiled("processes", "faces"), np.random.default_rng(seed)
    for h in range(2):
        at = level == h
        chain = face.level_concentrations(count[at], n_children[at], 1.0, PRIORS[h], rng, size)
        mean, variance = posterior_moments(h, PRIORS[h])
        assert abs(z_score(chain, mean)) < 4
        assert abs(z_score((chain - mean) ** 2, variance)) < 4


def test_an_update_is_the_one_that_kernels_make():
    _, parent, level, count = ncrp.node_table(PATHS)
    n_children = np.bincount(parent[1:], minlength=len(parent)).astype(np.intp)
    face, rng = compiled("processes", "faces"), np.random.default_rng(1)
    expected = [
        face.level_concentrations(count[level == h], n_children[level == h], 1.0, prior, rng, 1)[0]
        for h, prior in enumerate(PRIORS)
    ]
    got = ncrp.sample_concentration(PATHS, 1.0, PRIORS, random_state=np.random.default_rng(1))
    assert_array_equal(got, expected)


@proof(seed=6, wrong=True)
def test_one_restaurant_for_all_is_noticed(seed):
    _, parent, level, count = ncrp.node_table(PATHS)
    first = np.flatnonzero(level == 1)[0]
    sizes = count[parent == first]
    face = compiled("processes", "faces")
    chain = face.restaurant_concentrations(sizes, 1.0, 0.0, 0, PRIORS[1], seed, 3000)
    assert abs(z_score(chain, posterior_moments(1, PRIORS[1])[0])) > 10


def test_levels_without_branching_keep_their_zero():
    paths = np.zeros((5, 3), dtype=int)
    paths[2:, 1] = 1
    alpha = ncrp.sample_concentration(paths, (0.0, 1.0, 0.0), random_state=0)
    assert alpha[0] == alpha[2] == 0.0
    assert alpha[1] > 0.0


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ncrp.sample(0, 2, 1.0), "n must be an integer >= 1, got 0"),
        (lambda: ncrp.sample(3, 0, 1.0), "depth must be an integer >= 1, got 0"),
        (lambda: ncrp.sample(3, 2, -1.0), "concentration must be >= 0, got -1.0"),
        (lambda: ncrp.sample(3, 2, [1.0, np.nan]), "concentration must be finite"),
        (lambda: ncrp.sample(3, 2, [1.0] * 3), "one for each of the 2 levels, got shape"),
        (lambda: ncrp.sample(3, 2, (-0.4, 1.0), 0.3), "concentration must be > -discount = -0.3"),
        (lambda: ncrp.sample(3, 2, 1.0, 1.0), r"discount must be in \[0, 1\)"),
        (lambda: ncrp.log_prob([0, 1], 1.0), "paths must be two-dimensional"),
        (lambda: ncrp.log_prob([[0.0]], 1.0), "paths must hold integers"),
        (lambda: ncrp.log_prob([[0, -1]], 1.0), "paths must be >= 0, got -1"),
        (lambda: ncrp.log_prob(np.zeros((0, 2), int), 1.0), "paths must hold an item"),
        (lambda: ncrp.node_table(np.zeros((2, 0), int)), "paths must hold an item"),
        (lambda: ncrp.log_path_predictive([[0, 1]], [0], 1.0), "path must have 2 levels, got 1"),
        (lambda: ncrp.expected_nodes(0, 2, 1.0), "n must be"),
        (
            lambda: ncrp.sample_concentration([[0]], 1.0, (1.0, 0.0)),
            "concentration_prior must be two numbers > 0",
        ),
        (
            lambda: ncrp.sample_concentration([[0, 0]], 1.0, ((1.0, 1.0),) * 3),
            "one for each of the 2 levels, got 3",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_probability_zero_is_no_error():
    assert ncrp.log_prob([[0, 0], [1, 0]], (0.0, 1.0)) == -np.inf
    assert ncrp.log_path_predictive([[0, 0]], [1, 0], (0.0, 1.0)) == -np.inf


@pytest.mark.parametrize("name", ncrp.__all__)
def test_examples_in_docstrings(name):
    text = getattr(ncrp, name).__doc__
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert doctest.DocTestRunner().run(examples).failed == 0
