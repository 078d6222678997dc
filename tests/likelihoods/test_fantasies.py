"""Densities of rows by fantasies, against plain sums and against an integral."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skbnp.likelihoods.nonlinear_gaussian._fantasies import Fantasies, Noise

NAN = np.nan


@pytest.mark.parametrize("n_fantasies", [1, 3, 8, 21, 500])
def test_densities_are_means_over_fantasies(n_fantasies):
    rng = np.random.default_rng(0)
    mean, precision = rng.normal(size=(3, n_fantasies)), np.array([0.5, 4.0, 30.0])
    A = rng.normal(size=(6, 3))
    A[1, 0], A[2, 1:], A[3] = NAN, NAN, NAN
    terms = stats.norm(mean, precision[:, np.newaxis] ** -0.5).logpdf(A[:, :, np.newaxis])
    score = np.nansum(terms, axis=1)
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    found, n_effective = Fantasies(mean, precision).log_densities(A)
    assert_allclose(found, np.logaddexp.reduce(score, axis=1) - np.log(n_fantasies), atol=1e-12)
    assert_allclose(n_effective, weight.sum(axis=1) ** 2 / (weight**2).sum(axis=1), rtol=1e-12)
    assert found[3] == 0.0 and n_effective[3] == pytest.approx(n_fantasies)


def test_rows_that_no_fantasy_is_near():
    fantasies = Fantasies(np.zeros((1, 10)), np.ones(1))
    found, n_effective = fantasies.log_densities([[1e200], [0.0]])
    assert found[0] == -np.inf and n_effective[0] == 1.0
    assert found[1] == pytest.approx(stats.norm.logpdf(0.0))


def test_noise_does_not_depend_on_how_much_of_it_is_wanted():
    noise, other = Noise(3, 50), Noise(3, 50)
    first = noise.of(1, 2).copy()
    assert_array_equal(noise.of(1, 7)[:2], first)
    other.of(2, 4)
    assert_array_equal(other.of(1, 9)[:7], noise.of(1, 7))
    assert_array_equal(pickle.loads(pickle.dumps(noise)).of(1, 7), noise.of(1, 7))
    assert (noise.of(1, 2) != noise.of(2, 2)).all()
    assert (Noise(4, 50).of(1, 2) != first).all()


def test_moments_of_missing_entries():
    rng = np.random.default_rng(0)
    mean, precision = rng.normal(size=(3, 40)), np.array([0.5, 4.0, 30.0])
    A = rng.normal(size=(5, 3))
    A[1, 0], A[2, 1:], A[3] = NAN, NAN, NAN
    terms = stats.norm(mean, precision[:, np.newaxis] ** -0.5).logpdf(A[:, :, np.newaxis])
    weight = np.exp(np.nansum(terms, axis=1))
    weight /= weight.sum(axis=1, keepdims=True)
    first = weight @ mean.T
    variance = weight @ (mean**2).T - first**2 + 1 / precision
    found = Fantasies(mean, precision).moments(A)
    holes = np.isnan(A)
    assert_allclose(found[0], np.where(holes, first, 0.0), atol=1e-12)
    assert_allclose(found[1], np.where(holes, variance, 0.0), atol=1e-12)
    assert_array_equal(found[2], Fantasies(mean, precision).log_densities(A)[1])
