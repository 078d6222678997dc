"""The kernel's bookkeeping against the plain NumPy joint density."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.dirichlet_process_mixture import gaussian_prior, in_units, make_sampler, state_of
from checks.monte_carlo import z_score_two_sample
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture._estimator import DirichletProcessMixture
from skbnp.laws import Beta


def prior(kind, d=3, **changes):
    covariance = {"full": np.eye(d) + 0.3, "diag": np.linspace(1, 2, d), "spherical": np.array(1.5)}
    return gaussian_prior(kind, np.linspace(-1, 1, d), 0.2, d + 3.0, covariance[kind], **changes)


KINDS = ["full", "diag", "spherical"]
FAMILIES = {
    "dirichlet process": {},
    "pitman-yor": {"discount": Beta(1.0, 9.0)},
    "fixed discount": {"discount": 0.3, "concentration": -0.1},
    "finite": {"n_components": 5},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_after_random_sweeps(kind, family, holes):
    rng = np.random.default_rng(0)
    p = prior(kind, **FAMILIES[family])
    _, X = _model.draw_joint(p, 40, rng)
    X[rng.random(X.shape) < holes] = np.nan
    sampler = make_sampler(X, p, np.zeros(len(X), int))
    for _ in range(60):
        sampler.sweep()
        data = sampler.completed_data()
        assert_allclose(
            sampler.log_joint(), _model.log_joint(state_of(sampler), data, p), rtol=1e-8
        )


@pytest.mark.parametrize("kind", KINDS)
def test_where_updates_accumulate(kind):
    """Thousands of rows, a number of sweeps short of a rebuild, tight far clusters."""
    rng = np.random.default_rng(1)
    center = rng.normal(size=(12, 6)) * 10
    X = center[rng.integers(12, size=3000)] + rng.normal(size=(3000, 6)) * 0.01
    X[rng.random(X.shape) < 0.01] = np.nan
    p = prior(kind, d=6)
    sampler = make_sampler(X, p, rng.integers(12, size=3000))
    for _ in range(49):
        sampler.sweep()
    data = sampler.completed_data()
    assert_allclose(sampler.log_joint(), _model.log_joint(state_of(sampler), data, p), rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_x(kind):
    """The log joint of a given state is that of X in its own units, to 1e-10."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 3)) * [1e-3, 7.0, 1e4] + [0, 50, -2e4]
    if kind != "full":
        X[rng.random(X.shape) < 0.2] = np.nan
    # Learned covariances have a density in the units of the standardised X: fixed numbers here.
    key = "covariance_prior" if kind == "spherical" else "degrees_of_freedom_prior"
    options = {key: 5.0}
    dpm = DirichletProcessMixture(
        covariance_type=kind, n_chains=1, n_warmup=5, n_draws=5, random_state=0, **options
    ).fit(X)
    p = in_units(dpm._prior, dpm._units.center, dpm._units.scale)
    for t in range(5):
        got = dpm.posterior_.traces["log_joint"][0, t]
        assert_allclose(got, _model.log_joint(dpm.posterior_[0, t], X, p), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [[2.0**-20, 4.0, 2.0**30], [1e-8] * 3, [1e8] * 3])
def test_rescaling(kind, factors):
    """Powers of two give identical draws, other factors the same model."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(25, 3)), rng.normal(size=(25, 3)) + 6])
    X[3, 1] = np.nan
    factors = np.array(factors)
    options = dict(covariance_type=kind, n_chains=2, n_warmup=20, n_draws=20, random_state=0)
    a = DirichletProcessMixture(**options).fit(X)
    b = DirichletProcessMixture(**options).fit(X * factors)
    exact = np.all(np.frexp(factors)[0] == 0.5)
    if exact:
        for x, y in zip(a.posterior_, b.posterior_, strict=True):
            assert_array_equal(x["label"], y["label"])
            assert x["concentration"] == y["concentration"]
    assert_array_equal(a.labels_, b.labels_)
    if exact:
        shift = np.log(factors).sum()
        score = b.score_samples(X[5:] * factors)
        assert_allclose(score, a.score_samples(X[5:]) - shift, atol=1e-10)
    # Rounding sends the chains apart, so the others agree in distribution: |z| < 4.
    shift = np.sum(~np.isnan(X), axis=0) @ np.log(factors)
    moved = b.posterior_.traces["log_joint"] + shift
    assert abs(z_score_two_sample(a.posterior_.traces["log_joint"], moved)) < 4


@pytest.mark.parametrize("kind", KINDS)
def test_state_restores_bit_for_bit(kind):
    rng = np.random.default_rng(4)
    p = prior(kind, discount=Beta(1.0, 9.0))
    X = rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    one = make_sampler(X, p, np.zeros(40, int), seed=1)
    for _ in range(7):
        one.sweep()
        one.adapt(0)
    other = make_sampler(X, p, np.arange(40) % 3, seed=2)
    other.set_state(one.get_state())
    for _ in range(60):
        one.sweep()
        other.sweep()
    assert one.log_joint() == other.log_joint()
    assert_array_equal(one.labels, other.labels)
    for name, value in one.draw().items():
        assert_array_equal(value, other.draw()[name])


def test_density_of_a_predictive_is_a_ratio_of_marginals():
    """log m(A and x) - log m(A) against the predictive in prediction code, all families."""
    from skbnp.dirichlet_process_mixture._predictive import Rows, log_densities

    rng = np.random.default_rng(5)
    for kind in KINDS:
        p = prior(kind, concentration=1.0, prior_scale=0.5)
        X = rng.normal(size=(12, 3))
        sampler = make_sampler(X, p, np.arange(12) % 3)
        x = rng.normal(size=(4, 3))
        draw = sampler.draw()
        got = log_densities(Rows(x, p), draw, p, np.zeros(4))
        for k in range(4):
            block = X[np.arange(12) % 3 == k]
            for i in range(4):
                joined = _model.log_marginal(np.vstack([block, x[i]]), p, {"prior_scale": 0.5})
                expected = joined - _model.log_marginal(block, p, {"prior_scale": 0.5})
                assert_allclose(got[i, k], expected, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_blocks_do_not_matter(kind):
    rng = np.random.default_rng(7)
    p, X, label = prior(kind), rng.normal(size=(20, 3)), rng.integers(4, size=20)
    names = rng.permuted([range(4)] * 5, axis=1)
    values = [make_sampler(X, p, name[label]).log_joint() for name in names]
    assert_allclose(values, values[0], rtol=1e-12)


def test_empty_block_follows_the_prior_scale():
    """Also where the new scale makes the kernel build all blocks from their rows."""
    near = np.array([[1.0, 1 - 1e-12], [1 - 1e-12, 1.0]])
    p = gaussian_prior("full", np.zeros(2), 0.1, 4.0, near, concentration=1.0)
    X = np.repeat(np.random.default_rng(8).normal(size=(200, 1)) * 30, 2, axis=1)
    sampler = make_sampler(X, p, np.zeros(200, int))
    for _ in range(20):
        sampler.sweep_only("prior_scale")
        draw = sampler.draw()
        root = np.sqrt(draw["prior_scale"]) * np.linalg.cholesky(near).T
        assert_allclose(np.triu(draw["factor"][-1]), root, rtol=1e-6)


def test_acceptance_counts_rows_that_change_block():
    """Rows that stay alone stay where they are, with holes too."""
    p = prior("full", concentration=1e9)
    X = np.random.default_rng(9).normal(size=(20, 3))
    X[:, 0] = np.nan
    sampler = make_sampler(X, p, np.arange(20), n_split_merge=0)
    for _ in range(20):
        sampler.sweep()
    assert sampler.n_clusters == 20
    assert sampler.acceptance()["gibbs"] == (0, 400)


def test_one_dimension_full_is_diagonal():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(9, 1))
    state = {"label": np.arange(9) % 2, "concentration": 1.0, "discount": 0.0, "prior_scale": 1.0}
    values = [
        _model.log_joint(
            state,
            X,
            gaussian_prior(
                kind, np.zeros(1), 0.3, 3.0, covariance, concentration=1.0, prior_scale=1.0
            ),
        )
        for kind, covariance in [("full", np.eye(1)), ("diag", np.ones(1)), ("spherical", 1.0)]
    ]
    assert_allclose(values, values[0], atol=1e-12)
