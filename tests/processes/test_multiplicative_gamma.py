"""The multiplicative gamma process against closed forms, quadrature and its own samples."""

import doctest
from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import psi

from checks.joint_distribution import assert_z_scores_small
from checks.monte_carlo import p_value, z_score
from checks.mutants import compiled
from checks.proofs import proof, record
from skbnp.processes import multiplicative_gamma as mgp

RULES = ("children_only", "descendants_only", "children_shape")
KINDS = [{}, {"shifted": True}, {"shifted": "all"}, {"truncated": True}, {"truncated": "all"}]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
TREE = [-1, 0, 0, 1, 1, 2]


def test_thresholds():
    assert psi(mgp.SHRINKAGE_THRESHOLD) == pytest.approx(0.0, abs=1e-15)
    assert mgp.check_shrinkage(2.0, 0.9) == (False, False, False)
    assert mgp.check_shrinkage(2.0, 1.3) == (True, False, False)
    assert mgp.check_shrinkage(2.0, 1.7) == (True, True, False)
    assert mgp.check_shrinkage(2.0, 3.0) == (True, True, True)
    assert mgp.check_shrinkage(1.0, 3.0) == (True, True, False)


def test_moments_of_known_shapes():
    a1, a2, h = 2.5, 3.5, np.arange(4)
    np.testing.assert_allclose(mgp.expected_precision(4, a1, a2), a1 * a2**h)
    np.testing.assert_allclose(
        mgp.expected_precision(4, a1, a2, power=2), a1 * (a1 + 1) * (a2 * (a2 + 1)) ** h
    )
    np.testing.assert_allclose(mgp.expected_variance(4, a1, a2), 1 / ((a1 - 1) * (a2 - 1) ** h))
    np.testing.assert_allclose(
        mgp.expected_precision(4, a1, a2, power=-2),
        1 / ((a1 - 1) * (a1 - 2) * ((a2 - 1) * (a2 - 2)) ** h),
    )
    assert mgp.expected_log_precision(30, 2.0, 1.3)[29] == pytest.approx(-4.484, abs=5e-4)
    assert mgp.expected_variance(3, 2.0, 1.7)[2] == pytest.approx(2.04, abs=5e-3)
    assert mgp.expected_variance(3, 2.0, 3.0)[2] == 0.25
    assert (mgp.expected_variance(3, 1.0, 3.0) == np.inf).all()
    np.testing.assert_array_equal(mgp.expected_variance(3, 2.0, 1.0), [1.0, np.inf, np.inf])


def test_growth_of_the_mean_is_no_shrinkage():
    """a2 = 1.3: E[tau] grows while tau itself falls: equation (T16.2)."""
    tau = mgp.sample(30, 2.0, 1.3, size=20_000, random_state=0)[1]
    assert np.median(tau[:, 29]) == pytest.approx(0.013, abs=0.003)
    assert np.mean(tau[:, 29] < tau[:, 0]) == pytest.approx(0.80, abs=0.02)
    assert mgp.expected_precision(5, 2.0, 1.3)[4] == pytest.approx(5.71, abs=5e-3)


@proof(draws=(100_000, 500_000), seed=1)
@every_kind
def test_samples_have_the_moments(kind, size, seed):
    delta, tau = mgp.sample(3, 3.0, 4.5, size=size, random_state=seed, **kind)
    np.testing.assert_allclose(tau, np.cumprod(delta, axis=1))
    log_tau = np.log(tau)
    mean = mgp.expected_log_precision(3, 3.0, 4.5, **kind)
    variance = mgp.var_log_precision(3, 3.0, 4.5, **kind)
    first = mgp.expected_precision(3, 3.0, 4.5, **kind)
    inverse = mgp.expected_variance(3, 3.0, 4.5, **kind)
    z = {}
    for h in range(3):
        z[f"log {h}"] = z_score(log_tau[:, h], mean[h])
        z[f"square of log {h}"] = z_score((log_tau[:, h] - mean[h]) ** 2, variance[h])
        z[f"mean {h}"] = z_score(tau[:, h], first[h])
        z[f"inverse {h}"] = z_score(1 / tau[:, h], inverse[h])
    assert_z_scores_small(z)
    if "all" in kind.values():
        assert (delta > 1.0).all()
    elif kind:
        assert (delta[:, 1:] > 1.0).all() and (delta[:, 0] < 1.0).any()


@every_kind
@pytest.mark.parametrize("shapes", [(0.7, 0.4), (2.0, 3.0)])
def test_density_integrates_to_one(kind, shapes):
    """Over log delta or log(delta - 1), one multiplier at a time, the other held fixed."""
    for h in range(2):
        above = kind and (h == 1 or "all" in kind.values())

        def density(x, h=h, above=above):
            delta = np.array([1.5, 1.5])
            log_fixed = mgp.log_prob(delta[:1], *shapes, **kind)
            if h == 0:
                delta[0] = np.exp(x) + bool(above)
                return np.exp(mgp.log_prob(delta[:1], *shapes, **kind) + x)
            delta[1] = np.exp(x) + bool(above)
            return np.exp(mgp.log_prob(delta, *shapes, **kind) - log_fixed + x)

        total = integrate.quad(density, -30.0, 5.0, limit=400, points=[0.0])[0]
        assert total == pytest.approx(1.0, abs=2e-5)


def test_density_is_that_of_gammas():
    delta = np.array([[0.3, 1.2, 4.0], [1.0, 2.0, 3.0]])
    expected = stats.gamma(2.0).logpdf(delta[:, 0]) + stats.gamma(3.0).logpdf(delta[:, 1:]).sum(1)
    np.testing.assert_allclose(mgp.log_prob(delta, 2.0, 3.0), expected, rtol=1e-13)
    two_roots = stats.gamma(2.0).logpdf(delta[0, :2]).sum() + stats.gamma(3.0).logpdf(4.0)
    assert mgp.log_prob(delta[0], 2.0, 3.0, parent=[-1, -1, 0]) == pytest.approx(two_roots)
    assert mgp.log_prob([1.0, 0.5], 2.0, 3.0, shifted=True) == -np.inf
    assert mgp.log_prob([-1.0, 0.5], 2.0, 3.0) == -np.inf


def test_precisions_down_a_tree():
    delta, tau = mgp.sample(6, 2.0, 3.0, parent=TREE, random_state=2)
    for h in range(6):
        expected, node = 1.0, h
        while node >= 0:
            expected *= delta[node]
            node = TREE[node]
        assert tau[h] == pytest.approx(expected, rel=1e-14)


@proof(draws=(200_000, 1_000_000), seed=3)
@pytest.mark.parametrize("a, b, depths", [(3, 4, (3, 3, 2)), (1, 3, (2, 3, 2)), (3, 5, (3, 3, 1))])
def test_products_down_a_tree(a, b, depths, size, seed):
    c1, c2 = 6.0, 7.0
    tau = mgp.sample(6, c1, c2, parent=TREE, size=size, random_state=seed)[1]
    expected = mgp.expected_product(*depths, c1, c2)
    assert abs(z_score(tau[:, a] * tau[:, b], expected)) < 4
    mean = mgp.expected_precision(5, c1, c2)
    assert expected > mean[depths[0] - 1] * mean[depths[1] - 1]
    assert mgp.expected_product(2, 3, 0, c1, c2) == pytest.approx(mean[1] * mean[2])


# -- updates ----------------------------------------------------------------------------------


@proof(draws=(4000, 20_000), seed=4)
def test_local_precision(size, seed):
    loading, tau, nu = np.array([[0.5, -2.0], [0.0, 1.0]]), np.array([1.5, 4.0]), 3.0
    rng = np.random.default_rng(seed)
    draws = np.array([mgp.sample_local_precision(loading, tau, nu, rng) for _ in range(size)])
    law = stats.gamma((nu + 1) / 2, scale=2 / (nu + tau[:, None] * loading**2))
    for h in range(2):
        for p in range(2):
            one = stats.gamma((nu + 1) / 2, scale=law.kwds["scale"][h, p])
            assert p_value(stats.kstest(draws[:, h, p], one.cdf)) > 1e-4


def conditional_mean(h, delta, squares, n_features, parent, c1, c2):
    """E[delta_h | the rest] by quadrature of the joint density over log delta_h."""

    def log_joint(x):
        changed = np.array(delta)
        changed[h] = np.exp(x)
        tau = changed.copy()
        for node in range(len(tau)):
            if parent[node] >= 0:
                tau[node] *= tau[parent[node]]
        prior = mgp.log_prob(changed, c1, c2, parent=parent)
        return prior + np.sum(n_features / 2 * np.log(tau) - tau * squares / 2) + x

    x = np.linspace(-12.0, 6.0, 4001)
    log_density = np.array([log_joint(value) for value in x])
    weight = np.exp(log_density - log_density.max())
    return weight @ np.exp(x) / weight.sum()


def test_multipliers_against_quadrature():
    """A root, an inner node and a leaf: the leaf catches the paper's Eq. 5 as printed.

    The root is updated first, so its conditional is known in closed form; a node further down is
    tested with all others made inert, its ancestors by squares that pin them.
    """
    rng = np.random.default_rng(5)
    delta, squares = rng.gamma(2.0, size=6), rng.gamma(2.0, size=6)
    wrongly = compiled("processes").update_multipliers
    for h, wrong_rules in ((0, RULES), (2, RULES[1:]), (5, RULES)):
        parent = np.array(TREE)
        # Make h the first node to be updated: what it does not reach stays out of its conditional,
        # and its ancestors' part of tau is folded into the squares.
        subtree = [n for n in range(6) if _below(n, h, parent)]
        above = np.prod([delta[n] for n in range(6) if n != h and _below(h, n, parent)])
        small_parent = np.array([subtree.index(parent[n]) if n != h else -1 for n in subtree])
        arguments = (
            squares[subtree] * above,
            3,
            delta[subtree],
            2.0,
            3.0,
            small_parent,
        )
        mean = conditional_mean(0, delta[subtree], squares[subtree] * above, 3, small_parent, 2, 3)
        draws = [mgp.sample_multipliers(*arguments, random_state=rng)[0] for _ in range(8000)]
        assert abs(z_score(draws, mean)) < 4
        for rule in wrong_rules:
            if len(subtree) == 2 and rule == "children_only":
                continue
            wrong = [wrongly(*arguments, rng, rule)[0] for _ in range(2000)]
            assert abs(z_score(wrong, mean)) > 6


def _below(node, ancestor, parent):
    while node > ancestor:
        node = parent[node]
    return node == ancestor


def joint_statistics(delta, squares, tau, shapes):
    centred = np.log(delta) - psi(shapes)
    log_terms = np.log(tau * squares / delta)
    return {
        **{f"log delta {h}": centred[h] for h in range(len(delta))},
        # The cross-moment (T16.4): -psi'(shape) under the prior, up to its shift.
        **{f"cross {h}": centred[h] * log_terms[h] for h in range(len(delta))},
    }


every_forest = pytest.mark.parametrize(
    "parent", [None, TREE, [-1, -1, 0, 1, 3]], ids=["chain", "tree", "forest"]
)


def update_z_scores(parent, update, n_draws, seed):
    """Paired: draw (delta, phi, d) from the prior, update all delta."""
    rng = np.random.default_rng(seed)
    up = np.arange(-1, 5) if parent is None else np.array(parent)
    shapes = np.where(up < 0, 3.0, 4.0)
    rows = []
    for _ in range(n_draws):
        delta, tau = mgp.sample(len(up), 3.0, 4.0, parent=up, random_state=rng)
        squares = rng.chisquare(2, size=len(up)) / tau
        new = update(squares, 2, delta, 3.0, 4.0, up, rng)
        new_tau = new.copy()
        for h in range(len(up)):
            new_tau[h] *= new_tau[up[h]] if up[h] >= 0 else 1.0
        before = joint_statistics(delta, squares, tau, shapes)
        after = joint_statistics(new, squares, new_tau, shapes)
        rows.append([after[name] - before[name] for name in before])
    rows = np.array(rows)
    z = rows.mean(0) / rows.std(0, ddof=1) * np.sqrt(n_draws)
    return {name: record(value) for name, value in zip(before, z, strict=True)}


@proof(draws=(20_000, 100_000), seed=6)
@every_forest
def test_updates_leave_the_joint_law_alone(parent, size, seed):
    assert_z_scores_small(update_z_scores(parent, mgp.sample_multipliers, size, seed))


@proof(seed=6, wrong=True)
@every_forest
@pytest.mark.parametrize("rule", RULES)
def test_wrong_updates_are_noticed(parent, rule, seed):
    wrong = partial(compiled("processes").update_multipliers, rule=rule)
    assert max(map(abs, update_z_scores(parent, wrong, 2000, seed).values())) > 8


def test_extremes_stay_finite():
    squares = np.array([1e-300, 1e300, 0.0, 1.0])
    delta = mgp.sample_multipliers(squares, 10, [1e-100, 1e100, 1.0, 1e200], 2.0, 3.0)
    assert np.isfinite(delta).all() and (delta > 0.0).all()


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: mgp.sample(0, 2, 3), "n_factors must be an integer >= 1"),
        (lambda: mgp.sample(2, 0.0, 3), "shrinkage_root must be > 0, got 0.0"),
        (lambda: mgp.sample(2, 2, np.nan), "shrinkage must be finite"),
        (lambda: mgp.sample(2, 2, 3, shifted=1.5), "shifted must be False, True or 'all'"),
        (lambda: mgp.sample(2, 2, 3, shifted=True, truncated=True), "exclude each other"),
        (lambda: mgp.sample(2, 2, 3, parent=[-1]), "parent must name one of each of 2, got 1"),
        (lambda: mgp.sample(2, 2, 3, parent=[-1, 1]), "parent must come before its children"),
        (lambda: mgp.sample(2, 2, 3, parent=[-2, 0]), "parent must be >= -1"),
        (lambda: mgp.sample(2, 2, 3, size=0), "size must be an integer >= 1"),
        (lambda: mgp.log_prob([], 2, 3), "delta must hold a factor"),
        (lambda: mgp.log_prob(1.0, 2, 3), "delta must hold a factor"),
        (lambda: mgp.expected_precision(2, 2, 3, power=np.inf), "power must be finite"),
        (lambda: mgp.expected_product(2, 2, 3, 2, 3), "n_shared must be at most 2, got 3"),
        (lambda: mgp.check_shrinkage(2, -1), "shrinkage must be > 0, got -1"),
        (lambda: mgp.sample_local_precision([[1.0]], [1.0, 2.0], 3), "tau must hold a number > 0"),
        (lambda: mgp.sample_local_precision([[1.0]], [1.0], 0), "df must be > 0, got 0"),
        (lambda: mgp.sample_multipliers([1.0], 2, [0.0], 2, 3), "delta must hold numbers > 0"),
        (lambda: mgp.sample_multipliers([1.0], 2, [1.0, 1.0], 2, 3), "must hold 2 numbers >= 0"),
        (lambda: mgp.sample_multipliers([1.0], 0, [1.0], 2, 3), "n_features must be an integer"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", [name for name in mgp.__all__ if name.islower()])
def test_examples_in_docstrings(name):
    text = getattr(mgp, name).__doc__
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert doctest.DocTestRunner().run(examples).failed == 0
