"""Mixtures of finite mixtures against enumeration, exact fractions, long sums and draws."""

import doctest
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import gammaln

from checks.enumeration import canonical, set_partitions
from checks.monte_carlo import p_value, z_score
from checks.proofs import proof
from skbnp.processes import _component_sums, crp, mfm

# The default, other tails, few and many components, laws of scipy, and the ends of gamma.
FAMILY = {
    "default": dict(),
    "even": dict(component_concentration=3.0),
    "uneven": dict(component_concentration=0.05, n_components_prior=(2.0, 1.5, 0.7)),
    "least": dict(component_concentration=1e-10),
    "largest": dict(component_concentration=1e10),
    "heavy tail": dict(n_components_prior=(0.1, 0.1, 0.1)),
    "many": dict(component_concentration=0.4, n_components_prior=(200.0, 30.0, 50.0)),
    "poisson": dict(n_components_prior=stats.poisson(2.0, loc=1)),
    "geometric": dict(component_concentration=0.3, n_components_prior=stats.geom(0.2)),
    "bounded": dict(component_concentration=2.0, n_components_prior=stats.randint(2, 5)),
}
every_member = pytest.mark.parametrize("member", FAMILY.values(), ids=FAMILY)


def sizes_of(labels):
    return list(Counter(labels).values())


def p_default(m):
    """P(M = m) of the default, exactly: B(5, m + 2) / B(4, 3)."""
    return Fraction(24 * 60, math.prod(range(m + 2, m + 7)))


def rising(x, n):
    return math.prod((x + i for i in range(n)), start=Fraction(1))


# -- V_n(t) -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [Fraction(1), Fraction(1, 3), Fraction(5, 2)])
def test_coefficients_against_exact_fractions(gamma):
    """The first terms exactly; the others are bounded by those of gamma^-n m^(t - n) p(m)."""
    n, last = 7, 1500
    for t in range(1, n + 1):
        terms = (math.perm(m, t) * p_default(m) / rising(gamma * m, n) for m in range(t, last + 1))
        total = math.fsum(map(float, terms))
        rest = float(gamma) ** -n * 24 * 60 * last ** (t - n - 4.0) / 4
        got = mfm.log_coefficient(t, n, float(gamma))
        assert math.log(total) - 2e-13 <= got <= math.log(total + rest) + 2e-13


def long_sum(n, t, gamma, n_terms=1_000_000):
    """log V_n(t) + lgamma(n) of the default by products and one term after the other."""
    m = np.arange(t, t + n_terms, dtype=float)
    f = np.full(m.shape, 24 * 60.0)
    for j in range(2, 7):
        f /= m + j
    for i in range(n):
        f *= max(i, 1) / (gamma * m + i)
        if i < t:
            f *= m - i
    return math.log(math.fsum(f))


@pytest.mark.parametrize("n, t", [(1, 1), (20, 1), (20, 12), (30, 28), (30, 30)])
@pytest.mark.parametrize("gamma", [0.3, 1.0, 40.0])
def test_coefficients_against_long_sums(n, t, gamma):
    """The tail beyond a million terms is below 1e-14 in each case."""
    expected = long_sum(n, t, gamma)
    got = mfm.log_coefficient(t, n, gamma) + gammaln(n)
    assert got == pytest.approx(expected, abs=1e-12 * max(1.0, abs(expected)))


@pytest.mark.parametrize("n", [1, 10, 1000, 10**6])
@pytest.mark.parametrize(
    "gamma", [1e-10, pytest.param(1e-3, marks=pytest.mark.slow), 1.0, 3.0, 1e10]
)
@pytest.mark.parametrize("prior", [mfm.DEFAULT_PRIOR, (0.5, 0.4, 7.0), (1e3, 20.0, 40.0)], ids=str)
def test_coefficients_satisfy_their_recursion(n, gamma, prior):
    """V_n(t) = (n + gamma t) V_{n+1}(t) + gamma V_{n+1}(t + 1), near t = n too."""
    for t in sorted({1, 2, 7, n // 2, n - 100, n - 1, n} & set(range(1, n + 1))):
        now = mfm.log_coefficient(t, n, gamma, prior)
        stays, opens = mfm.log_coefficient([t, t + 1], n + 1, gamma, prior)
        after = np.logaddexp(np.log(n + gamma * t) + stays, np.log(gamma) + opens)
        assert now == pytest.approx(after, abs=2e-12 * max(1.0, abs(now), gammaln(n)))


def test_ratios_of_coefficients_keep_their_digits_among_many_items():
    """Where t is far below n, as in a sampler, log n! does not take up the digits of a ratio."""
    n = 10**6
    table = _component_sums.coefficients(n, 1.0, _component_sums.BetaNegativeBinomial(1, 4, 3))
    after = _component_sums.coefficients(n + 1, 1.0, table._law)
    for t in (1, 5, 40):
        ratio = table.of(t) - after.of(t) + math.log(n)
        total = math.log(n + t + math.exp(after.of(t + 1) - after.of(t)))
        assert ratio == pytest.approx(total, abs=1e-12)


def test_law_of_scipy_that_is_smooth_too():
    """Both ways of summation agree: a frozen law of the default's probabilities."""

    class Default(stats.rv_discrete):
        def _pmf(self, m):
            return 24 * 60 / ((m + 2.0) * (m + 3) * (m + 4) * (m + 5) * (m + 6))

        def _sf(self, m):
            # Telescoping: sum_{k > m} 1 / prod_{2..6} (k + j) = 1 / (4 prod_{3..6} (m + j)).
            return 24 * 60 / (4 * (m + 3.0) * (m + 4) * (m + 5) * (m + 6))

        def _cdf(self, m):
            return 1.0 - self._sf(m)

    law = Default(a=1)()
    for n, t in [(30, 1), (30, 4), (30, 20)]:
        assert mfm.log_coefficient(t, n, 0.7, law) == pytest.approx(
            mfm.log_coefficient(t, n, 0.7), rel=1e-12
        )
    # Near t = n its tail is too heavy to be added up: an error, not a wrong answer.
    with pytest.raises(ValueError, match="must have a lighter tail"):
        mfm.log_coefficient(30, 30, 1e-3, law)


def test_coefficients_are_kept():
    law = _component_sums.BetaNegativeBinomial(1.0, 4.0, 3.0)
    one = _component_sums.coefficients(50, 1.0, law)
    assert one is _component_sums.coefficients(
        50, 1.0, _component_sums.BetaNegativeBinomial(1.0, 4.0, 3.0)
    )
    assert_allclose(one.up_to(9)[1:10], [one.of(t) for t in range(1, 10)], rtol=0)


def test_beta_negative_binomial_is_scipys():
    law = _component_sums.as_components_law("prior", (2, 4.5, 3.2))
    m = np.arange(1.0, 60.0)
    assert_allclose(law.log_pmf(m), stats.betanbinom(2, 4.5, 3.2).logpmf(m - 1), rtol=1e-12)
    assert_allclose(np.exp(law.log_sum(np.zeros_like, 1, None)), 1.0, rtol=1e-13)


# -- the law of partitions --------------------------------------------------------------------


@every_member
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_probabilities_sum_to_one_over_all_partitions(member, n):
    total = math.fsum(math.exp(mfm.log_prob(labels, **member)) for labels in set_partitions(n))
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("shift", [(1, 0), (0, 1)])
def test_a_coefficient_that_is_wrong_by_one_is_noticed(shift, monkeypatch):
    """Of one block, or one item, too many."""
    right = _component_sums.log_coefficient

    def wrong(n, t, concentration, law):
        value = right(n + shift[0], t + shift[1], concentration, law)
        return value + gammaln(n) - gammaln(n + shift[0])

    monkeypatch.setattr(_component_sums, "log_coefficient", wrong)
    _component_sums.coefficients.cache_clear()
    total = math.fsum(math.exp(mfm.log_prob(labels)) for labels in set_partitions(5))
    _component_sums.coefficients.cache_clear()
    assert abs(total - 1.0) > 0.1


def test_it_is_the_finite_mixture_averaged_over_the_number_of_components():
    law = stats.randint(1, 7)
    for labels in set_partitions(5):
        expected = np.mean(
            [
                math.exp(crp.log_prob(labels, 0.8 * m, n_components=m))
                for m in range(1, 7)
            ]
        )  # fmt: skip
        got = math.exp(mfm.log_prob(labels, 0.8, law))
        assert got == pytest.approx(expected, rel=1e-12)


@every_member
def test_log_prob_is_the_sum_of_log_predictive_along_any_seating(member):
    rng = np.random.default_rng(1)
    for _ in range(5):
        labels = mfm.sample(int(rng.integers(1, 30)), random_state=rng, **member)
        total, sizes = 0.0, []
        for label in canonical(rng.permutation(labels).tolist()):
            log_weight = mfm.log_predictive(sizes, **member)
            assert np.exp(log_weight).sum() == pytest.approx(1.0, abs=1e-12)
            total += log_weight[label]
            sizes += [0] * (label == len(sizes))
            sizes[label] += 1
        expected = mfm.log_prob(labels, **member)
        assert total == pytest.approx(expected, abs=1e-10 * max(1.0, gammaln(len(labels))))


@proof(draws=(10_000, 50_000), seed=2)
@every_member
def test_samples_follow_the_partition_probabilities(member, size, seed):
    """Chi-square over the 52 partitions of 5 items, false alarms 1e-4 each."""
    n_draws, rng = size, np.random.default_rng(seed)
    drawn = Counter(tuple(mfm.sample(5, random_state=rng, **member)) for _ in range(n_draws))
    expected = {
        labels: n_draws * math.exp(mfm.log_prob(labels, **member)) for labels in set_partitions(5)
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


def test_random_state():
    draw = mfm.sample(50, n_components_prior=(2, 2, 9), random_state=5)
    for state in (np.int64(5), np.random.default_rng(5)):
        again = mfm.sample(50, n_components_prior=(2, 2, 9), random_state=state)
        np.testing.assert_array_equal(draw, again)
    assert canonical(draw.tolist()) == tuple(draw)
    assert len(mfm.sample(10**6, random_state=0)) == 10**6
    assert len(mfm.sample(50, n_components_prior=(9.0, 0.1, 1e4), random_state=0)) == 50


# -- the number of blocks and of components ---------------------------------------------------


@every_member
def test_pmf_and_moments_against_enumeration(member):
    n = 7
    pmf = np.zeros(n)
    for labels in set_partitions(n):
        pmf[max(labels)] += math.exp(mfm.log_prob(labels, **member))
    k = np.arange(1, n + 1)
    assert_allclose(mfm.pmf_blocks(n, **member), pmf, atol=1e-12)
    assert mfm.expected_blocks(n, **member) == pytest.approx(pmf @ k, rel=1e-11)
    variance = pmf @ (k - pmf @ k) ** 2
    assert mfm.var_blocks(n, **member) == pytest.approx(variance, rel=1e-8, abs=1e-11)


@pytest.mark.parametrize("name", ["default", "even", "poisson", "geometric"])
def test_pmf_of_many_items(name):
    member, n = FAMILY[name], 150
    pmf, k = mfm.pmf_blocks(n, **member), np.arange(1, n + 1)
    assert pmf.shape == (n,)
    assert pmf.sum() == pytest.approx(1.0, abs=1e-9)
    assert mfm.expected_blocks(n, **member) == pytest.approx(pmf @ k, rel=1e-8)


def test_the_number_of_blocks_settles_at_the_number_of_components():
    assert mfm.expected_blocks(10**15) == pytest.approx(2.0, abs=1e-6)
    variance = stats.betanbinom(1, 4, 3).var()
    assert mfm.var_blocks(10**15) == pytest.approx(variance, abs=1e-5)
    assert mfm.expected_blocks(1) == pytest.approx(1.0, rel=1e-12)
    assert mfm.var_blocks(1) == pytest.approx(0.0, abs=1e-12)


@every_member
def test_components_given_blocks_against_bayes_rule(member):
    gamma = member.get("component_concentration", 1.0)
    prior = member.get("n_components_prior", mfm.DEFAULT_PRIOR)
    law = _component_sums.as_components_law("prior", prior)
    m, n = np.arange(1.0, 13.0), 6
    for labels in [(0, 0, 0, 0, 0, 0), (0, 0, 1, 1, 2, 2)]:
        t = max(labels) + 1
        likelihood = [crp.log_prob(labels, gamma * k, n_components=int(k)) for k in m]
        expected = likelihood + law.log_pmf(m) - mfm.log_prob(labels, gamma, prior)
        got = mfm.log_prob_components(m.astype(int), t, n, gamma, prior)
        assert_allclose(got, expected, atol=1e-9)
        assert (got[: t - 1] == -np.inf).all()


@pytest.mark.parametrize("n, t", [(4, 1), (30, 3), (30, 20)])
def test_expected_components(n, t):
    m = np.arange(1, 400_000)
    p = np.exp(mfm.log_prob_components(m, t, n))
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert mfm.expected_components(t, n) == pytest.approx(p @ m, rel=1e-7)


def test_expected_components_without_a_mean():
    assert mfm.expected_components(3, 3, 1.0, (1.0, 0.9, 1.0)) == np.inf
    assert np.isfinite(mfm.expected_components(3, 3, 1.0, (1.0, 1.5, 1.0)))
    assert np.isfinite(mfm.expected_components(3, 30, 1.0, (1.0, 0.9, 1.0)))
    with pytest.raises(ValueError, match="n_blocks must be < n = 3 for a law of scipy, got 3"):
        mfm.expected_components(3, 3, 1.0, stats.geom(0.2))


@proof(draws=(4000, 20_000), seed=3)
def test_draws_of_many_items_have_the_expected_number_of_blocks(size, seed):
    rng = np.random.default_rng(seed)
    k = np.array([mfm.sample(200, 0.5, random_state=rng).max() + 1.0 for _ in range(size)])
    assert abs(z_score(k, mfm.expected_blocks(200, 0.5))) < 4


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: mfm.sample(0), "n must be an integer >= 1, got 0"),
        (lambda: mfm.sample(3, 0.0), "component_concentration must be from 1e-10 to 1e10, got 0"),
        (lambda: mfm.sample(3, np.nan), "component_concentration must be finite"),
        (lambda: mfm.sample(3, 1.0, (1, 2)), "n_components_prior must be three numbers"),
        (lambda: mfm.sample(3, 1.0, (1, 0.0, 2)), "n_components_prior must be three numbers"),
        (lambda: mfm.sample(3, 1.0, (1, 1e9, 2)), "n_components_prior must be three numbers"),
        (lambda: mfm.sample(3, 1.0, "geometric"), "n_components_prior must be three numbers"),
        (lambda: mfm.sample(3, 1.0, stats.poisson(2.0)), r"a law on 1, 2, ..., got P\(M <= 0\)"),
        (lambda: mfm.sample(3, 1.0, stats.norm()), "must be three numbers .* or a frozen discrete"),
        (lambda: mfm.log_prob([]), "labels must hold at least one item"),
        (lambda: mfm.log_prob_sizes([]), "sizes must hold at least one block"),
        (lambda: mfm.log_prob_sizes([0]), "sizes must be >= 1, got 0"),
        (lambda: mfm.log_coefficient(4, 3), "n_blocks must be <= n = 3, got 4"),
        (lambda: mfm.log_coefficient(0, 3), "n_blocks must be >= 1, got 0"),
        (lambda: mfm.log_prob_components(0, 1, 3), "n_components must be >= 1, got 0"),
        (lambda: mfm.expected_components(4, 3), "n_blocks must be <= n = 3, got 4"),
        (
            lambda: mfm.log_predictive([1, 1], 1.0, stats.randint(1, 2)),
            "no more blocks than there can be components, got 2",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_probability_zero_is_no_error():
    assert mfm.log_prob([0, 1, 2], 1.0, stats.randint(1, 3)) == -np.inf
    assert mfm.log_predictive([1, 1], 1.0, stats.randint(1, 3))[-1] == -np.inf


@pytest.mark.parametrize("name", mfm.__all__)
def test_examples_in_docstrings(name):
    # doctest's own finder does not see compiled functions.
    text = getattr(mfm, name).__doc__
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert doctest.DocTestRunner().run(examples).failed == 0
