"""Random draws against SciPy's distributions. False alarms: 1e-4 for each p-value, |z| < 4."""

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma

from checks.monte_carlo import z_score
from checks.mutants import compiled
from skbnp.numerics import rng as numerics_rng

faces = compiled("numerics", "faces")


@pytest.fixture
def source():
    return np.random.PCG64(0)


# -- gamma, beta, Dirichlet -------------------------------------------------------------------


@pytest.mark.parametrize("shape", [1e-8, 1e-3, 0.3, 0.999, 1.0, 2.5, 1e3, 1e8])
def test_log_gamma(source, shape):
    draws = faces.sample_log_gamma(source, shape, 20_000)
    assert np.isfinite(draws).all()
    mean, variance = digamma(shape), polygamma(1, shape)
    assert abs(z_score(draws, mean)) < 4
    assert abs(z_score((draws - mean) ** 2, variance)) < 4
    if shape >= 1e-3:  # below, SciPy's own law of log gamma has no digits left
        assert stats.kstest(draws, stats.loggamma(shape).cdf).pvalue > 1e-4


@pytest.mark.parametrize("shape", [1e-8, 1e-3])
def test_log_gamma_of_a_tiny_shape_is_exponential(source, shape):
    # shape log G(shape) -> -Exponential(1) as the shape vanishes.
    draws = -shape * faces.sample_log_gamma(source, shape, 5000)
    assert stats.kstest(draws, "expon").pvalue > 1e-4


def test_log_gamma_of_shape_zero_is_minus_infinity(source):
    np.testing.assert_array_equal(faces.sample_log_gamma(source, 0.0, 3), -np.inf)


# Nearly all mass below the bound, half of it, little, next to none, and shapes from tiny to huge.
@pytest.mark.parametrize("shape", [1e-3, 0.5, 1.0, 2.0, 30.0, 5e3])
@pytest.mark.parametrize("share", [1e-12, 1e-3, 0.05, 0.5, 0.99, 1 - 1e-9])
@pytest.mark.parametrize("rate", [1e-4, 1.0, 1e5])
def test_truncated_gamma(source, shape, share, rate):
    high = stats.gamma(shape, scale=1 / rate).ppf(share)
    if not high > 1e-290:
        pytest.skip("the quantile is no number")
    draws = numerics_rng.sample_truncated_gamma(source, shape, rate, high, 4000)
    assert (draws >= 1e-300).all() and (draws <= high).all()
    # The share below 1e-300 is put there.
    law = stats.gamma(shape, scale=1 / rate)
    below = law.cdf(1e-300) / law.cdf(high)
    seen = draws > 1e-300
    assert abs(np.sum(~seen) - 4000 * below) <= 5 * np.sqrt(4000 * below * (1 - below)) + 1e-9

    def cdf(x):
        return (law.cdf(x) - law.cdf(1e-300)) / (law.cdf(high) - law.cdf(1e-300))

    assert stats.kstest(draws[seen], cdf).pvalue > 1e-4


@pytest.mark.parametrize("shape, rate", [(1000.0, 1e-9), (50.5, 1e-280), (2.0, 0.0001)])
def test_truncated_gamma_far_above_its_bound(source, shape, rate):
    """Where the density is x^(shape - 1) up to the bound: shape log(high / x) is exponential."""
    draws = numerics_rng.sample_truncated_gamma(source, shape, rate, 1.0, 4000)
    assert stats.kstest(-shape * np.log(draws), "expon").pvalue > 1e-4


def test_truncated_gamma_without_a_bound(source):
    draws = numerics_rng.sample_truncated_gamma(source, 2.5, 3.0, np.inf, 4000)
    assert stats.kstest(draws, stats.gamma(2.5, scale=1 / 3.0).cdf).pvalue > 1e-4


@pytest.mark.parametrize("rate", [0.0, 1e-3, 0.7, 9.0, 11.0, 1e3, 1e12])
def test_poisson(source, rate):
    draws = faces.sample_poisson(source, rate, 20_000)
    assert (draws == np.floor(draws)).all() and (draws >= 0).all()
    assert abs(z_score(draws, rate)) < 4
    assert abs(z_score((draws - rate) ** 2, rate)) < 4


@pytest.mark.parametrize("a, b", [(1.0, 1.0), (0.5, 3.0), (40.0, 2.0), (1e-3, 1e-3), (2.0, 0.05)])
def test_log_beta(source, a, b):
    draws = faces.sample_log_beta(source, a, b, 20_000)
    assert (draws <= 0.0).all()
    mean, variance = digamma(a) - digamma(a + b), polygamma(1, a) - polygamma(1, a + b)
    assert abs(z_score(draws, mean)) < 4
    assert abs(z_score((draws - mean) ** 2, variance)) < 4
    assert abs(z_score(np.exp(draws), a / (a + b))) < 4
    if min(a, b) > 0.1:
        assert stats.kstest(np.exp(draws), stats.beta(a, b).cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    "shape",
    [[1.0, 1.0, 1.0], [0.5, 2.0, 7.0], [1e-3, 1e-3, 2e-3], [1e-8, 1e-8], [30.0], [2.0, 0.0, 1.0]],
)
def test_log_dirichlet(source, shape):
    shape = np.array(shape)
    draws = np.exp([numerics_rng.sample_log_dirichlet(source, shape) for _ in range(10_000)])
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, atol=1e-14)
    total = shape.sum()
    for k, mean in enumerate(shape / total):
        assert abs(z_score(draws[:, k], mean)) < 4
        assert abs(z_score(draws[:, k] ** 2, mean * (shape[k] + 1) / (total + 1))) < 4


def test_log_dirichlet_keeps_weights_too_small_for_a_double(source):
    draws = np.array(
        [numerics_rng.sample_log_dirichlet(source, np.full(4, 1e-5)) for _ in range(9)]
    )
    assert np.isfinite(draws).all()
    assert draws.min() < -1000.0


# -- categorical, permutation -----------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, -1e4, 1e4, -1e300])
def test_categorical_from_logs(source, offset):
    weight = np.array([0.1, 0.0, 0.4, 0.2, 0.3, 0.0])
    with np.errstate(divide="ignore"):
        log_weight = np.log(weight) + offset
    if offset == -1e300:  # everything but -inf rounds to the same log weight
        weight = (weight > 0.0) / 4.0
    draws = faces.sample_categorical_from_logs(source, log_weight, 20_000)
    counts = np.bincount(draws, minlength=6)
    positive = weight > 0.0
    assert (counts[~positive] == 0).all()
    assert stats.chisquare(counts[positive], 20_000 * weight[positive]).pvalue > 1e-4


def test_categorical_with_logs_far_apart(source):
    log_weight = np.array([-1e308, -800.0, 0.0, -46.0, -np.inf, 0.0])
    draws = faces.sample_categorical_from_logs(source, log_weight, 5000)
    assert set(draws) == {2, 5}
    assert abs(z_score(draws == 2, 0.5)) < 4


@pytest.mark.parametrize(
    "log_weight",
    [[np.nan], [0.0, np.nan], [np.nan, 0.0], [-np.inf], [-np.inf, -np.inf], [0.0, np.inf], []],
)
def test_categorical_without_a_valid_weight_is_refused(source, log_weight):
    before = source.state
    log_weight = np.array(log_weight, dtype=np.float64)
    with pytest.raises(ArithmeticError, match="log_weight must have a finite value"):
        faces.sample_categorical_from_logs(source, np.append(log_weight, np.nan), 3)
    if log_weight.size:
        with pytest.raises(ArithmeticError, match="no NaN or \\+inf, got "):
            faces.sample_categorical_from_logs(source, log_weight, 3)
    assert source.state == before


def test_permutations_are_uniform(source):
    counts = Counter(tuple(faces.sample_permutation(source, 4)) for _ in range(12_000))
    assert len(counts) == math.factorial(4)
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4
    for n in (0, 1, 1000):
        np.testing.assert_array_equal(np.sort(faces.sample_permutation(source, n)), range(n))


# -- Wishart ----------------------------------------------------------------------------------


@pytest.mark.parametrize("df, n", [(1.0, 1), (2.5, 3), (7.0, 3), (50.0, 4)])
def test_wishart(source, df, n):
    scale_factor = np.linalg.cholesky(np.eye(n) + 0.3)
    scale = scale_factor @ scale_factor.T
    draws = numerics_rng.sample_wishart(source, df, scale_factor, 10_000)
    np.testing.assert_array_equal(draws, draws.transpose(0, 2, 1))
    for a in range(n):
        for b in range(a + 1):
            variance = df * (scale[a, b] ** 2 + scale[a, a] * scale[b, b])
            assert abs(z_score(draws[:, a, b], df * scale[a, b])) < 4
            assert abs(z_score((draws[:, a, b] - df * scale[a, b]) ** 2, variance)) < 4
    log_det = np.linalg.slogdet(draws)[1] - np.linalg.slogdet(scale)[1]
    half = 0.5 * (df - np.arange(n))
    if df >= n:  # with less than one degree left some determinants are lost in rounding
        assert abs(z_score(log_det, digamma(half).sum() + n * math.log(2.0))) < 4
    # |W| / |scale| is a product of independent chi-squares with df, df - 1, ... degrees.
    product = np.log(stats.chi2(2 * half).rvs((10_000, n), random_state=1)).sum(axis=1)
    assert stats.ks_2samp(np.nan_to_num(log_det, nan=-np.inf), product).pvalue > 1e-4


# -- Philox -----------------------------------------------------------------------------------

# kat_vectors of Random123 (Salmon et al. 2011), philox4x32 with 10 rounds.
KNOWN_ANSWERS = [
    (
        [0x00000000] * 4,
        [0x00000000] * 2,
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
    ),
    (
        [0xFFFFFFFF] * 4,
        [0xFFFFFFFF] * 2,
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
    ),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize("counter, key, expected", KNOWN_ANSWERS)
def test_philox_known_answers(counter, key, expected):
    np.testing.assert_array_equal(faces.philox(counter, key), expected)


def test_philox_checks_its_lengths():
    with pytest.raises(ValueError, match="counter must have 4 words and key 2, got 3 and 2"):
        faces.philox([0] * 3, [0] * 2)


def counter_of(output, key):
    """The counter that Philox4x32-10 maps to the output: the ten rounds backwards."""
    word, mask = 1 << 32, 0xFFFFFFFF
    left_factor, right_factor = 0xD2511F53, 0xCD9E8D57
    c0, c1, c2, c3 = output
    for step in reversed(range(10)):
        k0 = (key[0] + step * 0x9E3779B9) & mask
        k1 = (key[1] + step * 0xBB67AE85) & mask
        before0 = c3 * pow(left_factor, -1, word) & mask
        before2 = c1 * pow(right_factor, -1, word) & mask
        before1 = c0 ^ (right_factor * before2 >> 32) ^ k0
        before3 = c2 ^ (left_factor * before0 >> 32) ^ k1
        c0, c1, c2, c3 = before0, before1, before2, before3
    return c0, c1, c2, c3


@pytest.mark.parametrize("word", [0x00000000, 0xFFFFFFFF])
def test_counter_uniforms_stay_inside_the_open_interval(word):
    row_low, row_high, sweep_low, sweep_high = counter_of([word] * 4, [5, 0])
    u = faces.uniforms_by_counter(5, sweep_high << 32 | sweep_low, 1, row_high << 32 | row_low)
    assert (u > 0.0).all()
    assert (u < 1.0).all()
    np.testing.assert_allclose(u, float(word > 0), atol=2e-16)


def test_counter_uniforms_are_the_words_of_philox():
    u = faces.uniforms_by_counter(2**33 + 1, 2**34 + 2, 1, 2**35 + 3)
    words = faces.philox([3, 8, 2, 4], [1, 2]).astype(np.uint64)
    bits = [words[1] << np.uint64(32) | words[0], words[3] << np.uint64(32) | words[2]]
    np.testing.assert_allclose(u[0], np.array(bits, dtype=np.float64) / 2.0**64, atol=2.0**-52)


def test_counter_uniforms_do_not_depend_on_how_rows_are_shared_out():
    whole = faces.uniforms_by_counter(3, 4, 1000)
    np.testing.assert_array_equal(whole[:10], faces.uniforms_by_counter(3, 4, 10))
    starts = range(0, 1000, 37)
    with ThreadPoolExecutor(4) as pool:
        pieces = pool.map(
            lambda start: faces.uniforms_by_counter(3, 4, min(37, 1000 - start), start),
            reversed(starts),
        )
        np.testing.assert_array_equal(whole, np.concatenate(list(pieces)[::-1]))


def test_counter_uniforms_are_uniform_and_unrelated():
    rows = faces.uniforms_by_counter(0, 0, 20_000)
    for column in rows.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    next_sweep = faces.uniforms_by_counter(0, 1, 20_000)
    next_seed = faces.uniforms_by_counter(1, 0, 20_000)
    pairs = [
        (rows[:, 0], rows[:, 1]),
        (rows[:-1, 0], rows[1:, 0]),
        (rows[:, 0], next_sweep[:, 0]),
        (rows[:, 0], next_seed[:, 0]),
    ]
    for x, y in pairs:
        assert abs(z_score((x - 0.5) * (y - 0.5), 0.0)) < 4


# -- generators -------------------------------------------------------------------------------


def test_as_generator():
    generator = np.random.default_rng(1)
    assert numerics_rng.as_generator(generator) is generator
    assert isinstance(numerics_rng.as_generator(), np.random.Generator)
    expected = np.random.default_rng(1).random(3)
    np.testing.assert_array_equal(numerics_rng.as_generator(np.uint8(1)).random(3), expected)
    state = np.random.RandomState(2)
    expected = np.random.RandomState(2).random_sample(2)
    drawn = numerics_rng.as_generator(state).random(), state.random_sample()
    np.testing.assert_array_equal(drawn, expected)  # one stream, which moves on


@pytest.mark.parametrize("random_state", [-1, 1.5, "seed", [1, 2]])
def test_as_generator_refuses_anything_else(random_state):
    with pytest.raises(ValueError, match="random_state must be None, an int >= 0"):
        numerics_rng.as_generator(random_state)


def test_row_streams_are_normal_and_apart():
    """Normals of neighbouring rows and sweeps, each from a stream of its own, are independent."""
    a, b = (
        faces.normals_by_row(5, 3, 100_000, 3),
        faces.normals_by_row(5, 4, 100_000, 3),
    )
    assert stats.kstest(a.ravel(), "norm").pvalue > 1e-4
    together = np.column_stack([a[:-1], a[1:], b[:-1]])
    correlation = np.corrcoef(together.T) - np.eye(9)
    assert np.abs(correlation).max() < 4.5 / np.sqrt(len(together))
    np.testing.assert_array_equal(faces.normals_by_row(5, 3, 10, 3), a[:10])
