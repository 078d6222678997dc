"""The Chinese restaurant family against enumeration, closed forms and grids."""

import doctest
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, gammaln, poch, polygamma

from checks.enumeration import canonical, set_partitions
from checks.monte_carlo import p_value, z_score
from checks.proofs import proof
from skbnp.processes import crp

# Every regime: Dirichlet process, Pitman-Yor with theta > 0, = 0, < 0, finite, one component.
FAMILY = [
    dict(concentration=1.0),
    dict(concentration=10.0),
    dict(concentration=1e-3),
    dict(concentration=0.5, discount=0.25),
    dict(concentration=2.3, discount=0.7),
    dict(concentration=0.0, discount=0.4),
    dict(concentration=-0.2, discount=0.5),
    dict(concentration=1.0, discount=1e-9),
    dict(concentration=1.5, n_components=3),
    dict(concentration=3.0, n_components=6),
    dict(concentration=2.0, n_components=1),
    dict(concentration=1.0, n_components=10**9),
]
every_member = pytest.mark.parametrize("member", FAMILY, ids=str)


def sizes_of(labels):
    return list(Counter(labels).values())


def random_member(rng):
    """One of the four regimes, with random parameters."""
    kind = rng.integers(4)
    discount = rng.uniform(0.05, 0.95)
    if kind == 0:
        return dict(concentration=rng.gamma(1.0))
    if kind == 1:
        return dict(concentration=rng.uniform(-discount, 3.0), discount=discount)
    if kind == 2:
        return dict(concentration=0.0, discount=discount)
    return dict(concentration=rng.gamma(1.0), n_components=int(rng.integers(1, 12)))


# -- the law ----------------------------------------------------------------------------------


@every_member
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_probabilities_sum_to_one_over_all_partitions(member, n):
    total = math.fsum(math.exp(crp.log_prob(labels, **member)) for labels in set_partitions(n))
    assert total == pytest.approx(1.0, abs=1e-12)


@every_member
def test_log_prob_ignores_names_of_blocks_and_order_of_items(member):
    rng = np.random.default_rng(0)
    labels = np.array([0, 1, 0, 2, 2, 0, 1, 0])
    expected = crp.log_prob(labels, **member)
    for _ in range(5):
        renamed = rng.permutation([7, 0, 10**6])[labels]
        assert crp.log_prob(rng.permutation(renamed), **member) == pytest.approx(
            expected, rel=1e-13
        )
    assert crp.log_prob_sizes([2, 4, 2], **member) == pytest.approx(expected, rel=1e-13)


@every_member
def test_last_item_can_be_dropped(member):
    for labels in set_partitions(5):
        extended = [(*labels, label) for label in range(max(labels) + 2)]
        total = math.fsum(math.exp(crp.log_prob(one, **member)) for one in extended)
        assert total == pytest.approx(math.exp(crp.log_prob(labels, **member)), abs=1e-12)


def test_log_prob_is_the_sum_of_log_predictive_along_any_seating():
    rng = np.random.default_rng(1)
    for _ in range(50):
        member = random_member(rng)
        labels = crp.sample(int(rng.integers(1, 60)), random_state=rng, **member)
        total, sizes = 0.0, []
        for label in canonical(rng.permutation(labels).tolist()):
            log_weight = crp.log_predictive(sizes, **member)
            assert np.exp(log_weight).sum() == pytest.approx(1.0, abs=1e-12)
            total += log_weight[label]
            sizes += [0] * (label == len(sizes))
            sizes[label] += 1
        assert total == pytest.approx(crp.log_prob(labels, **member), abs=1e-10)


def test_dirichlet_process_formula():
    sizes = np.array([5, 3, 1, 1])
    theta = 1.7
    expected = len(sizes) * math.log(theta) + gammaln(theta) - gammaln(theta + 10)
    expected += gammaln(sizes).sum()
    assert crp.log_prob_sizes(sizes, theta) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("n_components", [1, 3, 6])
def test_finite_member_is_the_labelled_dirichlet_multinomial_summed_over_labels(n_components):
    theta, n = 1.5, 7
    a = theta / n_components
    for labels in set_partitions(n):
        sizes = np.array(sizes_of(labels))
        if len(sizes) > n_components:
            assert crp.log_prob(labels, theta, n_components=n_components) == -np.inf
            continue
        labelled = gammaln(theta) - gammaln(theta + n) + (gammaln(sizes + a) - gammaln(a)).sum()
        ways = gammaln(n_components + 1) - gammaln(n_components - len(sizes) + 1)
        assert crp.log_prob(labels, theta, n_components=n_components) == pytest.approx(
            labelled + ways, abs=1e-12
        )


def test_members_meet_in_their_limits():
    sizes = [6, 3, 1, 1]
    expected = crp.log_prob_sizes(sizes, 1.3)
    assert crp.log_prob_sizes(sizes, 1.3, discount=1e-13) == pytest.approx(expected, abs=1e-11)
    assert crp.log_prob_sizes(sizes, 1.3, n_components=10**13) == pytest.approx(expected, abs=1e-11)
    # A huge concentration: every item alone, no digits lost to lgamma(1e15).
    assert crp.log_prob_sizes([1] * 40, 1e15) == pytest.approx(-40 * 39 / 2e15, rel=1e-3)


def test_predictive_of_a_full_finite_member_opens_nothing():
    for theta in (0.3, 1.0, 1.7, 1e6):
        for n_components in (1, 3, 7, 49):
            log_weight = crp.log_predictive([2] * n_components, theta, n_components=n_components)
            assert log_weight[-1] == -np.inf
            assert np.exp(log_weight).sum() == pytest.approx(1.0, abs=1e-12)


@every_member
def test_first_item_opens_a_block(member):
    np.testing.assert_array_equal(crp.log_predictive([], **member), [0.0])
    assert crp.log_prob([4], **member) == pytest.approx(0.0, abs=1e-15)


# -- the number and the sizes of blocks -------------------------------------------------------

SPEC_TABLE = [
    (100, dict(concentration=1.0), 5.187377518, 3.552393617),
    (1000, dict(concentration=1.0), 7.485470861, 5.841536294),
    (100, dict(concentration=1.0, discount=0.25), 9.977059045, 17.185647027),
    (100, dict(concentration=1.0, discount=0.5), 20.652088562, 70.230795230),
    (50, dict(concentration=-0.2, discount=0.5), 5.878910998, 24.262623282),
    (60, dict(concentration=0.0, discount=0.4), 5.785470279, 17.476972504),
    (100, dict(concentration=3.0, n_components=6), 5.107285192, 0.684010373),
    (20, dict(concentration=2.0, n_components=10), 4.181902494, 1.600813870),
]


@pytest.mark.parametrize("n, member, mean, variance", SPEC_TABLE)
def test_moments_of_the_number_of_blocks(n, member, mean, variance):
    assert crp.expected_blocks(n, **member) == pytest.approx(mean, abs=6e-10)
    assert crp.var_blocks(n, **member) == pytest.approx(variance, abs=6e-10)


@pytest.mark.parametrize(
    "n, concentration, exact, notes, corrected",
    [
        (100, 10.0, 14.838, 23.979, 14.888),
        (1000, 50.0, 104.583, 152.226, 104.607),
        (10_000, 100.0, 362.496, 461.512, 362.502),
        (1000, 1.0, 5.842, 6.909, 5.910),
    ],
)
def test_variance_is_near_the_corrected_approximation_only(
    n, concentration, exact, notes, corrected
):
    approximate_mean = concentration * math.log1p(n / concentration)
    assert crp.var_blocks(n, concentration) == pytest.approx(exact, abs=6e-4)
    assert approximate_mean == pytest.approx(notes, abs=6e-4)
    assert approximate_mean - concentration * n / (concentration + n) == pytest.approx(
        corrected, abs=6e-4
    )


def test_mean_at_a_small_concentration():
    assert crp.expected_blocks(1000, 0.01) == pytest.approx(1.0747, abs=5e-5)


def closed_form_moments(n, theta, d):
    """Antoniak (1974) for d = 0 and Pitman (2006) otherwise."""
    if d == 0.0:
        mean = theta * (digamma(theta + n) - digamma(theta))
        return mean, mean + theta**2 * (polygamma(1, theta + n) - polygamma(1, theta))

    if theta == 0.0:
        mean = math.exp(gammaln(n + d) - gammaln(d) - gammaln(n)) / d
        square = math.exp(gammaln(n + 2 * d) - gammaln(2 * d) - gammaln(n)) / d - mean
        return mean, square - mean**2
    t = theta / d
    mean = t * poch(theta + n, d) / poch(theta, d) - t
    square = t * (t + 1) * poch(theta + n, 2 * d) / poch(theta, 2 * d)
    square -= (2 * t + 1) * mean + t**2 + t
    return mean, square - mean**2


@pytest.mark.parametrize("n", [2, 37, 1000, 100_000, 1_000_000])
@pytest.mark.parametrize(
    "theta, d", [(1.0, 0.0), (30.0, 0.0), (1.0, 0.5), (0.7, 0.25), (0.0, 0.4), (-0.2, 0.5)]
)
def test_moments_against_closed_forms(n, theta, d):
    mean, variance = closed_form_moments(n, theta, d)
    assert crp.expected_blocks(n, theta, d) == pytest.approx(mean, rel=2e-8)
    assert crp.var_blocks(n, theta, d) == pytest.approx(variance, rel=2e-7)


@every_member
@pytest.mark.parametrize("n", [1, 2, 30, 2000])
def test_moments_against_the_pmf(member, n):
    pmf = crp.pmf_blocks(n, **member)
    k = np.arange(1, n + 1)
    mean = pmf @ k
    assert pmf.shape == (n,)
    assert (pmf >= 0.0).all()
    assert pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert crp.expected_blocks(n, **member) == pytest.approx(mean, rel=1e-11)
    assert crp.var_blocks(n, **member) == pytest.approx(pmf @ (k - mean) ** 2, rel=1e-9, abs=1e-13)


@every_member
def test_pmf_and_block_sizes_against_enumeration(member):
    n = 7
    pmf, counts = np.zeros(n), np.zeros(n)
    for labels in set_partitions(n):
        probability = math.exp(crp.log_prob(labels, **member))
        pmf[max(labels)] += probability
        for size in sizes_of(labels):
            counts[size - 1] += probability
    np.testing.assert_allclose(crp.pmf_blocks(n, **member), pmf, atol=1e-13)
    np.testing.assert_allclose(crp.expected_block_sizes(n, **member), counts, atol=1e-13)


@every_member
@pytest.mark.parametrize("n", [1, 3000])
def test_block_sizes_add_up(member, n):
    counts = crp.expected_block_sizes(n, **member)
    assert counts.sum() == pytest.approx(crp.expected_blocks(n, **member), rel=1e-10)
    assert counts @ np.arange(1, n + 1) == pytest.approx(n, rel=1e-12)


def test_block_sizes_survive_a_long_way_below_the_smallest_double():
    # Two components of about n / 2 items each: blocks of one item have probability e^-2000.
    counts = crp.expected_block_sizes(10_000, 1e5, n_components=2)
    assert counts.sum() == pytest.approx(2.0, rel=1e-12)
    assert 4900 < counts.argmax() < 5100


def test_moments_broadcast_over_the_concentration():
    concentration = np.array([[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]])
    for kwargs in ({}, {"discount": 0.3}, {"n_components": 4}):
        for function in (crp.expected_blocks, crp.var_blocks):
            one_by_one = [function(20, a, **kwargs) for a in concentration.ravel()]
            np.testing.assert_array_equal(
                function(20, concentration, **kwargs), np.reshape(one_by_one, (2, 3))
            )
        sizes = crp.expected_block_sizes(20, concentration, **kwargs)
        assert sizes.shape == (2, 3, 20)
        np.testing.assert_allclose(
            sizes[1, 2], crp.expected_block_sizes(20, 5.0, **kwargs), rtol=1e-13
        )
    assert type(crp.expected_blocks(20, 1.0)) is float


@pytest.mark.parametrize("kwargs", [{}, {"discount": 0.3}, {"n_components": 50}])
def test_large_n_is_finite_and_monotone(kwargs):
    concentration = [1e-6, 0.1, 1.0, 30.0, 1e4]
    mean = crp.expected_blocks(10**6, concentration, **kwargs)
    assert np.isfinite(mean).all()
    assert (np.diff(mean) > 0.0).all()
    assert (crp.var_blocks(10**6, concentration, **kwargs) >= 0.0).all()
    assert np.isfinite(crp.log_prob_sizes([10**6 - 2, 1, 1], 1.0, **kwargs))


@pytest.mark.parametrize("discount", [0.0, 1e-15, 1e-7, 0.3, 0.9])
@pytest.mark.parametrize("n, target", [(2, 1.5), (100, 1.01), (100, 20.0), (100, 99.9)])
def test_concentration_for_expected_blocks(n, target, discount):
    concentration = crp.concentration_for_expected_blocks(n, target, discount)
    assert crp.expected_blocks(n, concentration, discount) == pytest.approx(target, rel=1e-10)


def test_concentration_for_expected_blocks_of_the_finite_member():
    concentration = crp.concentration_for_expected_blocks(100, 4.5, n_components=5)
    assert crp.expected_blocks(100, concentration, n_components=5) == pytest.approx(4.5)
    with pytest.raises(ValueError, match=r"target must be in \(1, 4.99"):
        crp.concentration_for_expected_blocks(40, 5.0, n_components=5)


# -- samples ----------------------------------------------------------------------------------


@proof(draws=(20_000, 100_000), seed=2)
@every_member
def test_samples_follow_the_partition_probabilities(member, size, seed):
    """Chi-square over the 52 partitions of 5 items, false alarms 1e-4 each."""
    n_draws, rng = size, np.random.default_rng(seed)
    drawn = Counter(tuple(crp.sample(5, random_state=rng, **member)) for _ in range(n_draws))
    expected = {
        labels: n_draws * math.exp(crp.log_prob(labels, **member)) for labels in set_partitions(5)
    }
    assert set(drawn) <= {labels for labels, count in expected.items() if count > 0.0}
    common = [labels for labels, count in expected.items() if count >= 20.0]
    observed = np.array([drawn[labels] for labels in common], dtype=float)
    wanted = np.array([expected[labels] for labels in common])
    rest = n_draws - wanted.sum()
    if rest > 1.0:  # the rare ones together are one more cell
        observed, wanted = np.append(observed, n_draws - observed.sum()), np.append(wanted, rest)
    if len(wanted) == 1:
        test = stats.binomtest(int(observed[0]), n_draws, wanted[0] / n_draws)
        assert p_value(test) > 1e-4
        return
    wanted *= observed.sum() / wanted.sum()
    assert p_value(stats.chisquare(observed, wanted)) > 1e-4


@proof(draws=(4000, 20_000), seed=3)
@pytest.mark.parametrize("member", [FAMILY[0], FAMILY[4], FAMILY[6], FAMILY[9]], ids=str)
def test_samples_have_the_moments_of_the_pmf(member, size, seed):
    rng = np.random.default_rng(seed)
    n_blocks = np.array(
        [crp.sample(200, random_state=rng, **member).max() + 1.0 for _ in range(size)]
    )
    mean = crp.expected_blocks(200, **member)
    assert abs(z_score(n_blocks, mean)) < 4
    assert abs(z_score((n_blocks - mean) ** 2, crp.var_blocks(200, **member))) < 4


@every_member
def test_sample_labels_are_in_order_of_appearance(member):
    labels = crp.sample(500, random_state=4, **member)
    assert labels.dtype == np.intp
    assert canonical(labels.tolist()) == tuple(labels)


def test_a_million_items():
    for kwargs in ({}, {"discount": 0.5}, {"n_components": 30}):
        assert len(crp.sample(10**6, 2.0, random_state=0, **kwargs)) == 10**6


def test_random_state():
    draw = crp.sample(50, 3.0, random_state=5)
    np.testing.assert_array_equal(draw, crp.sample(50, 3.0, random_state=np.int64(5)))
    np.testing.assert_array_equal(draw, crp.sample(50, 3.0, random_state=np.random.default_rng(5)))
    for state in (np.random.RandomState(5), np.random.default_rng(5)):
        first, second = (crp.sample(50, 3.0, random_state=state) for _ in range(2))
        assert not np.array_equal(first, second)
    np.testing.assert_array_equal(
        crp.sample(50, 3.0, random_state=np.random.RandomState(6)),
        crp.sample(50, 3.0, random_state=np.random.RandomState(6)),
    )
    assert crp.sample(50, 3.0).shape == (50,)


# -- weights ----------------------------------------------------------------------------------


@proof(draws=(10_000, 50_000), seed=7)
@pytest.mark.parametrize("member", FAMILY[:10], ids=str)
def test_sticks_have_the_moments_of_their_betas(member, size, seed):
    theta = member["concentration"]
    d = member.get("discount", 0.0)
    if "n_components" in member:
        d = -theta / member["n_components"]
    rng = np.random.default_rng(seed)
    weights = np.array([crp.stick_breaking(3, random_state=rng, **member)[0] for _ in range(size)])
    left = left_squared = 1.0
    for j in range(3):
        a, b = 1.0 - d, theta + (j + 1) * d
        squares = (a + b) * (a + b + 1)
        if left < 1e-4:
            break  # too rare to be met in so many draws
        assert abs(z_score(weights[:, j], left * a / (a + b))) < 4
        assert abs(z_score(weights[:, j] ** 2, left_squared * a * (a + 1) / squares)) < 4
        left *= b / (a + b)
        left_squared *= b * (b + 1) / squares


@every_member
def test_sticks_and_the_remaining_mass_add_up(member):
    weights, remaining = crp.stick_breaking(40, random_state=8, **member)
    assert weights.shape == (40,)
    assert (weights >= 0.0).all()
    assert weights.sum() + remaining == pytest.approx(1.0, abs=1e-12)


def test_the_finite_member_has_no_more_sticks_than_components():
    weights, remaining = crp.stick_breaking(8, 2.0, n_components=5, random_state=9)
    assert (weights[:5] > 0.0).all()
    np.testing.assert_array_equal(weights[5:], 0.0)
    assert remaining == 0.0


def test_the_remaining_mass_keeps_its_digits():
    _, remaining = crp.stick_breaking(60, 0.5, random_state=10)
    assert 0.0 < remaining < 1e-16


@proof(draws=(4000, 20_000), seed=11)
@pytest.mark.parametrize("member", FAMILY[:10], ids=str)
def test_posterior_weights_have_the_dirichlet_means(member, size, seed):
    sizes = np.array([4]) if member.get("n_components") == 1 else np.array([4, 2, 1])
    mean = np.exp(crp.log_predictive(sizes, **member))  # the predictive is the mean weight
    rng = np.random.default_rng(seed)
    draws = np.array(
        [crp.posterior_weights(sizes, random_state=rng, **member) for _ in range(size)]
    )
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, atol=1e-12)
    total = sizes.sum() + member["concentration"]
    for k in range(len(mean)):
        assert abs(z_score(draws[:, k], mean[k])) < 4
        variance = mean[k] * (1.0 - mean[k]) / (total + 1.0)
        assert abs(z_score((draws[:, k] - mean[k]) ** 2, variance)) < 4


@proof(draws=(4000, 20_000), seed=12)
def test_posterior_weights_with_parameters_near_zero(size, seed):
    rng = np.random.default_rng(seed)
    draws = np.array(
        [crp.posterior_weights([1, 1], -0.9989, 0.999, random_state=rng) for _ in range(size)]
    )
    assert np.isfinite(draws).all()
    shape = np.array([0.001, 0.001, 0.9991])
    for k in range(3):
        assert abs(z_score(draws[:, k], shape[k] / shape.sum())) < 4


def test_posterior_weights_of_a_full_finite_member():
    weights = crp.posterior_weights([3, 1, 1], 0.7, n_components=3, random_state=13)
    assert weights[-1] == 0.0
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(crp.posterior_weights([], -0.2, 0.5, random_state=0), [1.0])


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: crp.sample(0, 1.0), "n must be an integer >= 1, got 0"),
        (lambda: crp.sample(2.5, 1.0), "n must be an integer >= 1, got 2.5"),
        (lambda: crp.sample("3", 1.0), "n must be an integer >= 1, got '3'"),
        (lambda: crp.sample(3, 0.0), "concentration must be > 0, got 0.0"),
        (lambda: crp.sample(3, -1.0), "concentration must be > 0, got -1.0"),
        (lambda: crp.sample(3, np.nan), "concentration must be finite"),
        (lambda: crp.sample(3, np.inf), "concentration must be finite"),
        (lambda: crp.sample(3, None), "concentration must be finite and a number, got None"),
        (lambda: crp.sample(3, "sample"), "concentration must be finite and a number"),
        (lambda: crp.sample(3, [1.0, 2.0]), "concentration must be a single number"),
        (lambda: crp.sample(3, -0.3, 0.25), "concentration must be > -discount = -0.25, got -0.3"),
        (lambda: crp.sample(3, 1.0, 1.0), r"discount must be in \[0, 1\), got 1.0"),
        (lambda: crp.sample(3, 1.0, -0.1), r"discount must be in \[0, 1\), got -0.1"),
        (lambda: crp.sample(3, 1.0, 0.1, 4), "n_components fixes the discount .* got 0.1"),
        (lambda: crp.sample(3, 1.0, n_components=0), "n_components must be an integer >= 1"),
        (lambda: crp.sample(3, 1.0, n_components=2.0), "n_components must be an integer >= 1"),
        (lambda: crp.sample(3, -0.5, n_components=2), "concentration must be > 0, got -0.5"),
        (lambda: crp.sample(3, 1.0, random_state="a"), "random_state must be None"),
        (lambda: crp.sample(3, 1.0, random_state=-1), "random_state must be None"),
        (lambda: crp.log_prob([], 1.0), "labels must hold at least one item"),
        (lambda: crp.log_prob([[0, 1]], 1.0), "labels must be one-dimensional"),
        (lambda: crp.log_prob([0, -1], 1.0), "labels must be >= 0, got -1"),
        (lambda: crp.log_prob([0.0, 1.0], 1.0), "labels must hold integers"),
        (lambda: crp.log_prob_sizes([], 1.0), "sizes must hold at least one block"),
        (lambda: crp.log_prob_sizes([2, 0], 1.0), "sizes must be >= 1, got 0"),
        (lambda: crp.log_predictive([0], 1.0), "sizes must be >= 1, got 0"),
        (lambda: crp.log_predictive([1, 1], 1.0, n_components=1), "at most n_components = 1"),
        (lambda: crp.posterior_weights([1, 1], 1.0, n_components=1), "at most n_components = 1"),
        (lambda: crp.expected_blocks(0, 1.0), "n must be"),
        (lambda: crp.expected_blocks(3, [1.0, -1.0]), "concentration must be > 0"),
        (lambda: crp.var_blocks(3, 1.0, [0.1, 0.2]), "discount must be a single number"),
        (lambda: crp.pmf_blocks(-1, 1.0), "n must be"),
        (lambda: crp.expected_block_sizes(3.0, 1.0), "n must be"),
        (lambda: crp.stick_breaking(0, 1.0), "n_sticks must be an integer >= 1"),
        (lambda: crp.concentration_for_expected_blocks(9, 1.0), r"target must be in \(1, 9"),
        (lambda: crp.concentration_for_expected_blocks(9, 9.0), r"target must be in \(1, 9"),
        (lambda: crp.concentration_for_expected_blocks(1, 1.0), "n must be an integer >= 2"),
        (lambda: crp.concentration_for_expected_blocks(9, 2.0, 1.5), r"discount must be in \[0, 1"),
        (lambda: crp.sample_concentration([2], -0.1, 0.5), "must be > 0 to be sampled, got -0.1"),
        (lambda: crp.sample_concentration([], 1.0), "sizes must hold at least one block"),
        (lambda: crp.sample_concentration([2], 1.0, concentration_prior=(1, 0)), "two numbers > 0"),
        (lambda: crp.sample_concentration([2], 1.0, concentration_prior=1.0), "two numbers > 0"),
        (lambda: crp.sample_discount([2], 1.0, 0.0), "discount must be > 0 to be sampled"),
        (lambda: crp.sample_discount([2], 1.0, 0.5, (1.0, -1.0)), "two numbers > 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_probability_zero_is_no_error():
    assert crp.log_prob([0, 1, 2], 1.0, n_components=2) == -np.inf
    assert crp.log_prob_sizes([1, 1, 1], 1.0, n_components=2) == -np.inf


@pytest.mark.parametrize("name", crp.__all__)
def test_examples_in_docstrings(name):
    # doctest's own finder does not see compiled functions.
    text = getattr(crp, name).__doc__
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert doctest.DocTestRunner().run(examples).failed == 0
