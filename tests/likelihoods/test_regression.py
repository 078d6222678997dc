"""One unit's regression on its parents against dense algebra and quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from checks.joint_distribution import assert_z_scores_small
from checks.monte_carlo import z_score
from checks.mutants import compiled

FACE = compiled("nonlinear_gaussian", "faces")
regression_answers, regression_draws = FACE.regression_answers, FACE.regression_draws


def problem(n=12, size=6, seed=0, nu=1.7):
    """Design with its bias, response, noise precision, prior means and precisions."""
    rng = np.random.default_rng(seed)
    Phi = np.column_stack([np.ones(n), np.tanh(rng.normal(size=(n, size - 1)))])
    a = Phi @ rng.normal(size=size) + rng.normal(size=n)
    return Phi, a, nu, rng.normal(size=size), rng.gamma(2.0, size=size) + 0.1


def dense(Phi, a, nu, mean, precision, active):
    """log N(a; Phi m, I / nu + Phi diag(1 / precision) Phi') over the active columns."""
    on = np.flatnonzero(active)
    if len(a) == 0:
        return 0.0
    covariance = np.eye(len(a)) / nu + (Phi[:, on] / precision[on]) @ Phi[:, on].T
    return stats.multivariate_normal(Phi[:, on] @ mean[on], covariance).logpdf(a)


def by_least_squares(Phi, a, nu, mean, precision, active):
    """The same from an orthogonal factor of prior and data, which keeps its digits at any nu."""
    on = np.flatnonzero(active)
    design = np.concatenate([nu**0.5 * Phi[:, on], np.diag(precision[on] ** 0.5)])
    target = np.concatenate([nu**0.5 * a, precision[on] ** 0.5 * mean[on]])
    Q, R = np.linalg.qr(design)
    residual = target - Q @ (Q.T @ target)
    return (
        len(a) / 2 * np.log(nu / (2 * np.pi))
        + np.log(precision[on]).sum() / 2
        - np.log(np.abs(np.diag(R))).sum()
        - residual @ residual / 2
    )


def set_of(*on, size=6):
    active = np.zeros(size, dtype=int)
    active[[0, *on]] = 1
    return active


FLIPS = {
    "none": [],
    "one in": [3],
    "one out": [1],
    "in and out": [3, 3],
    "out and in": [1, 1],
    "all": [1, 2, 3, 4, 5],
    "a walk": [5, 4, 1, 3, 4, 2, 5, 5, 1, 2, 3, 1, 4, 4, 2],
}


@pytest.mark.parametrize("n", [0, 1, 3, 12, 200])
@pytest.mark.parametrize("flips", FLIPS)
def test_evidence_and_gains_of_any_set(flips, n):
    data, start = problem(n), set_of(1, 4)
    got = regression_answers(*data, start, FLIPS[flips])
    active = start.copy()
    for j in FLIPS[flips]:
        active[j] ^= 1
    assert_array_equal(got["active"], active.astype(bool))
    evidence = dense(*data, active)
    assert got["log_evidence"] == pytest.approx(evidence, rel=1e-10, abs=1e-10)
    for j in range(1, 6):
        on, off = active.copy(), active.copy()
        on[j], off[j] = 1, 0
        expected = dense(*data, on) - dense(*data, off)
        assert got["gains"][j] == pytest.approx(expected, rel=1e-8, abs=1e-9), j


@pytest.mark.parametrize("size", [2, 33, 65, 100])
def test_many_parents(size):
    """More than one block of parents is swept when a row starts."""
    data = problem(150, size, seed=1)
    rng = np.random.default_rng(2)
    start = (rng.random(size) < 0.9).astype(int)
    start[0] = 1
    flips = rng.integers(1, size, size=40).tolist()
    got = regression_answers(*data, start, flips)
    active = start.copy()
    for j in flips:
        active[j] ^= 1
    assert got["log_evidence"] == pytest.approx(dense(*data, active), rel=1e-10)
    j = size // 2
    on, off = active.copy(), active.copy()
    on[j], off[j] = 1, 0
    expected = dense(*data, on) - dense(*data, off)
    assert got["gains"][j] == pytest.approx(expected, rel=1e-7, abs=1e-8)


def test_evidence_by_quadrature():
    """Bias and one weight, integrated on a grid of their own."""
    Phi, a, nu, mean, precision = problem(7, 2, seed=3)

    grid = np.linspace(-8.0, 8.0, 801)
    w = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    log_density = stats.norm(mean, precision**-0.5).logpdf(w).sum(axis=-1)
    for x, y in zip(Phi, a, strict=True):
        log_density += stats.norm(w @ x, nu**-0.5).logpdf(y)
    # The trapezoidal rule of a smooth density that vanishes at the ends is exact to rounding.
    total = np.exp(log_density).sum() * (grid[1] - grid[0]) ** 2
    got = regression_answers(Phi, a, nu, mean, precision, [1, 1], [])
    assert got["log_evidence"] == pytest.approx(np.log(total), rel=1e-10)


@pytest.mark.parametrize("active", [(), (1,), (2, 3, 5)])
def test_gain_of_a_parent_that_is_no_candidate(active):
    Phi, a, nu, mean, precision = problem(seed=4)
    new = np.tanh(np.random.default_rng(5).normal(size=len(a)))
    got = regression_answers(
        Phi, a, nu, mean, precision, set_of(*active), [], new=new, new_prior=(0.7, 1.3)
    )
    wide = np.column_stack([Phi, new])
    means, precisions = np.append(mean, 0.7), np.append(precision, 1.3)
    on = np.append(set_of(*active), 1)
    expected = dense(wide, a, nu, means, precisions, on) - dense(
        Phi, a, nu, mean, precision, set_of(*active)
    )
    assert got["gain_of_new"] == pytest.approx(expected, rel=1e-9)


def test_draws_follow_their_normal_law():
    Phi, a, nu, mean, precision = problem(seed=6)
    on = [0, 2, 3, 5]
    w = regression_draws(Phi, a, nu, mean, precision, set_of(2, 3, 5), np.random.PCG64(0), 20_000)
    assert_array_equal(w[:, [1, 4]], 0.0)
    P = nu * Phi[:, on].T @ Phi[:, on] + np.diag(precision[on])
    centre = np.linalg.solve(P, precision[on] * mean[on] + nu * Phi[:, on].T @ a)
    white = (w[:, on] - centre) @ np.linalg.cholesky(P)
    z = {}
    for i in range(4):
        assert stats.kstest(white[:, i], "norm").pvalue > 1e-4
        for j in range(i):
            z[i, j] = z_score(white[:, i] * white[:, j], 0.0)
    assert_z_scores_small(z)


def test_squared_residual():
    Phi, a, nu, mean, precision = problem(seed=7)
    weight = np.random.default_rng(8).normal(size=6)
    weight[[1, 4]] = 0.0
    got = regression_answers(Phi, a, nu, mean, precision, set_of(2, 3, 5), [], weight=weight)[
        "squared_residual"
    ]
    assert got == pytest.approx(np.sum((a - Phi @ weight) ** 2), rel=1e-12)
    # What rounding takes below zero is zero.
    exact = regression_answers(
        Phi, Phi @ weight, nu, mean, precision, set_of(2, 3, 5), [], weight=weight
    )["squared_residual"]
    assert 0.0 <= exact < 1e-12


@pytest.mark.parametrize("nu", [1e-12, 1e-6, 1e4, 1e8])
def test_tiny_and_huge_precisions(nu):
    """Duplicated columns, so that the data's own matrix is singular: the prior decides."""
    Phi, a, _, mean, precision = problem(seed=9)
    Phi[:, 3] = Phi[:, 2]
    Phi[:, 5] = 1.0
    for active in (set_of(2), set_of(2, 3), set_of(1, 2, 3, 4, 5)):
        got = regression_answers(Phi, a, nu, mean, precision, active, [3, 3, 5, 5, 2, 2])
        expected = by_least_squares(Phi, a, nu, mean, precision, active)
        assert got["log_evidence"] == pytest.approx(expected, rel=1e-8, abs=1e-6)
        for j in (2, 3, 5):
            on, off = active.copy(), active.copy()
            on[j], off[j] = 1, 0
            difference = by_least_squares(Phi, a, nu, mean, precision, on) - by_least_squares(
                Phi, a, nu, mean, precision, off
            )
            assert_allclose(got["gains"][j], difference, rtol=1e-4, atol=1e-4)
    weights = regression_draws(
        Phi, a, nu, mean, precision, set_of(1, 2, 3, 4, 5), np.random.PCG64(1), 100
    )
    assert np.isfinite(weights).all()


def test_gains_after_a_thousand_flips_have_not_drifted():
    data = problem(60, 12, seed=10)
    flips = np.random.default_rng(11).integers(1, 12, size=1000).tolist()
    start = set_of(size=12)
    end = start.copy()
    for j in flips:
        end[j] ^= 1
    walked, fresh = regression_answers(*data, start, flips), regression_answers(*data, end, [])
    assert_allclose(walked["gains"], fresh["gains"], rtol=1e-8, atol=1e-9)
