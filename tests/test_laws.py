"""Laws of hyperparameters: densities that integrate to one, draws that follow, clear errors."""

import dataclasses

import numpy as np
import pytest
from scipy import integrate, stats

from skbnp.laws import (
    Beta,
    Gamma,
    Grid,
    InverseGamma,
    Normal,
    NormalGamma,
    ShiftedBetaNegativeBinomial,
    Uniform,
)

CONTINUOUS = [
    (Gamma(2.0, 3.0), 0, np.inf),
    (InverseGamma(3.0, 2.0), 0, np.inf),
    (Beta(2.0, 5.0), 0, 1),
    (Normal(1.0, 4.0), -np.inf, np.inf),
    (Uniform(-1.0, 3.0), -1, 3),
]
DISCRETE = [
    (Grid((0.5, 1.0, 4.0)), np.array([0.5, 1.0, 4.0])),
    (ShiftedBetaNegativeBinomial(2.0, 6.0, 3.0), np.arange(1.0, 4000.0)),
]
ALL = [law for law, *_ in CONTINUOUS + DISCRETE]


@pytest.mark.parametrize(("law", "low", "high"), CONTINUOUS, ids=lambda x: type(x).__name__)
def test_densities_integrate_to_one_and_have_the_mean(law, low, high):
    assert integrate.quad(lambda x: np.exp(law.log_density(x)), low, high)[0] == pytest.approx(1)
    mean = integrate.quad(lambda x: x * np.exp(law.log_density(x)), low, high)[0]
    assert law.mean() == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize(("law", "values"), DISCRETE, ids=lambda x: type(x).__name__)
def test_probabilities_add_to_one_and_have_the_mean(law, values):
    p = np.exp(law.log_density(values))
    assert p.sum() == pytest.approx(1, rel=1e-6)
    assert law.mean() == pytest.approx(p @ values, rel=1e-5)
    assert law.log_density(0.0) == law.log_density(1.5) == -np.inf


@pytest.mark.parametrize("law", ALL, ids=lambda law: type(law).__name__)
def test_draws_follow_the_law(law):
    draws = law.sample(20_000, random_state=0)
    assert draws.shape == (20_000,)
    if hasattr(law, "_scipy") and not isinstance(law, (Grid, ShiftedBetaNegativeBinomial)):
        assert stats.kstest(draws, law._scipy().cdf).pvalue > 1e-4
    else:
        values = np.unique(draws)
        p = np.exp(law.log_density(values))
        seen = np.array([(draws == x).mean() for x in values])
        assert np.all(np.abs(seen - p) < 5 * np.sqrt(p * (1 - p) / len(draws)) + 1e-9)


@pytest.mark.parametrize("law", ALL, ids=lambda law: type(law).__name__)
def test_a_law_is_its_density(law):
    x = np.array([0.5, 1.0, 2.0])
    np.testing.assert_array_equal(law(x), np.exp(law.log_density(x)))


@pytest.mark.parametrize("law", ALL, ids=lambda law: type(law).__name__)
def test_nan_has_no_density(law):
    assert np.isnan(law.log_density(np.nan))
    np.testing.assert_array_equal(np.isnan(law.log_density([1.0, np.nan])), [False, True])


@pytest.mark.parametrize("law", ALL, ids=lambda law: type(law).__name__)
def test_one_draw_is_a_number(law):
    assert isinstance(law.sample(random_state=np.random.default_rng(0)), float)


def test_normal_gamma():
    law = NormalGamma(1.0, 2.0, 5.0, 3.0)
    draws = law.sample((20_000,), random_state=0)
    assert draws.shape == (20_000, 2)
    np.testing.assert_allclose(draws.mean(axis=0), law.mean(), rtol=0.02)
    # Var(mean) = E 1 / (kappa p) = rate / (kappa (shape - 1)).
    assert draws[:, 0].var() == pytest.approx(3 / (2 * 4), rel=0.05)
    # By the trapezoid rule, which converges exponentially here; m = 1 + sinh z reaches far out.
    z, p = np.linspace(-10, 10, 401), np.linspace(0, 12, 402)[1:]
    rows = np.stack(np.meshgrid(1.0 + np.sinh(z), p, indexing="ij"), axis=-1)
    total = np.trapezoid(np.trapezoid(np.exp(law.log_density(rows)), p).T * np.cosh(z), z)
    assert total == pytest.approx(1, rel=1e-4)
    assert law.log_density([0.0, -1.0]) == -np.inf
    assert np.isnan(law.log_density([[np.nan, 1.0], [0.0, np.nan]])).all()


def test_laws_are_values():
    assert Gamma(1, 2) == Gamma(1.0, 2.0) and hash(Gamma(1, 2)) == hash(Gamma(1.0, 2.0))
    assert Gamma(1, 2) != Gamma(2, 1) and Gamma(1, 2) != InverseGamma(1, 2)
    assert repr(Gamma(1, rate=2)) == "Gamma(shape=1.0, rate=2.0)"
    assert repr(Grid([1, 2])) == "Grid(values=(1.0, 2.0))"
    with pytest.raises(dataclasses.FrozenInstanceError):
        Gamma(1, 2).rate = 3


def test_a_law_of_a_law_has_no_density_of_its_own():
    law = Gamma(1, Gamma(2, 3))
    assert law.rate == Gamma(2, 3)
    for ask in (lambda: law.log_density(1.0), law.sample, law.mean):
        with pytest.raises(TypeError, match="while its rate is a law"):
            ask()


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: Gamma(0, 1), ValueError, "shape of Gamma must be from 1e-10 to 1e\\+10, got 0"),
        (lambda: Gamma(1, -1), ValueError, "rate of Gamma must be from"),
        (lambda: Gamma(1, np.nan), ValueError, "rate of Gamma must be from"),
        (lambda: Gamma(True, 1), TypeError, "shape of Gamma must be a number, got True"),
        (lambda: Gamma(Gamma(1, 1), 1), TypeError, "shape of Gamma must be a number, got Gamma"),
        (lambda: Gamma("1", 1), TypeError, "shape of Gamma must be a number, got '1'"),
        (lambda: Gamma(1, "1"), TypeError, "rate of Gamma must be a number or a law, got '1'"),
        (lambda: Normal(np.inf, 1), ValueError, "location of Normal must be from -1e\\+10"),
        (lambda: Uniform(2, 2), ValueError, "low of Uniform must be < high = 2.0, got 2.0"),
        (lambda: Grid(()), ValueError, "values of Grid must be numbers, at least one"),
        (lambda: Grid("12"), TypeError, "values of Grid must be a sequence of numbers, got '12'"),
        (lambda: Grid((1, 1)), ValueError, "values of Grid must differ"),
        (lambda: ShiftedBetaNegativeBinomial(1, 0.01, 1), ValueError, "b of Shifted.* 0.1 to"),
    ],
)
def test_bad_numbers_are_refused(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()
