"""Covariances that learn from one another: the log joint, slots and states of the sampler."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import gamma, wishart

from checks.dirichlet_process_mixture import make_sampler, sampler_at, state_of
from checks.mixture_priors import COVARIANCE, learning_prior
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _model

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N, D = 12, 2
KINDS = ["full", "diag", "spherical"]


@pytest.mark.parametrize("kind, mixed", list(product(KINDS, [False, True])))
def test_log_joint_is_the_reference(kind, mixed):
    prior, rng = learning_prior(kind, mixed=mixed), np.random.default_rng(0)
    for _ in range(3):
        state, X = _model.draw_joint(prior, N, rng)
        sampler = sampler_at(prior, state, X)
        assert_allclose(sampler.log_joint(), _model.log_joint(state, X, prior), rtol=1e-10)
        for _ in range(20):
            sampler.sweep()
        now = state_of(sampler)
        assert_allclose(sampler.log_joint(), _model.log_joint(now, X, prior), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_prior_of_the_covariance_is_scipys(kind):
    prior = learning_prior(kind)
    part, state = prior.gaussian, prior.gaussian.draw_base(np.random.default_rng(1))
    uniform = -np.log(len(part.degrees_grid) * len(part.mean_precision_grid))
    if kind == "full":
        expected = wishart.logpdf(state["covariance"], D + 2, COVARIANCE[kind] / (D + 2))
    else:
        scale = np.atleast_1d(COVARIANCE[kind]) / 1.5
        expected = gamma.logpdf(state["covariance"], 1.5, scale=scale).sum()
    assert_allclose(part.log_base(state), expected + uniform, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_trace_is_the_reference_in_units_of_x(kind):
    """The density of the hyperparameters is in standardised units, that of X in its own."""
    X = np.random.default_rng(5).normal(size=(30, 2)) * [1e-3, 1e4] + [0, -2e4]
    options = dict(n_chains=1, n_warmup=5, n_draws=5, random_state=0)
    dpm = DirichletProcessMixture(covariance_type=kind, **options).fit(X)
    standard, jacobian = (
        (X - dpm._units.center) / dpm._units.scale,
        30 * np.log(dpm._units.scale).sum(),
    )
    for t in range(5):
        expected = _model.log_joint(dpm.posterior_[0, t], standard, dpm._prior) - jacobian
        assert_allclose(dpm.posterior_.traces["log_joint"][0, t], expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_columns_without_a_spread_of_their_own(kind):
    """Clusters constant in a column draw the common covariance to 0: it stays above a floor."""
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.integers(2, size=60), rng.normal(size=60)]).astype(float)
    X = np.column_stack([X, X[:, 1]])
    dpm = DirichletProcessMixture(
        covariance_type=kind, n_chains=2, n_warmup=200, n_draws=50, random_state=0
    ).fit(X)
    part, lowest = dpm._prior.gaussian, []
    for t in range(50):
        lam = dpm.posterior_[0, t]["covariance"]
        if kind == "full":
            lam = np.linalg.eigvals(np.linalg.solve(part.covariance, lam)).real
        lowest.append(np.min(lam))
    assert min(lowest) > 2.0**-24
    assert np.isfinite(dpm.score_samples(X)).all()
    assert np.isfinite(dpm.posterior_.traces["log_joint"]).all()


@pytest.mark.parametrize("kind, mean_precision", [*product(KINDS, [None]), ("full", 0.125)])
def test_slots_follow_the_prior(kind, mean_precision):
    """After many updates the running statistics are those of slots built from their rows."""
    prior, rng = learning_prior(kind, mean_precision), np.random.default_rng(2)
    state, X = _model.draw_joint(prior, 30, rng)
    sampler = sampler_at(prior, state, X, n_split_merge=0)
    for _ in range(49):  # the sweep after this one builds them anew
        sampler.sweep()
    draw = sampler.draw()
    start = {key: value for key, value in draw.items() if key in prior.start()}
    anew = make_sampler(X, prior, sampler.labels, **start).draw()
    order = [np.flatnonzero(sampler.labels == k)[0] for k in range(sampler.n_clusters)]
    places = [*(anew["label"][i] for i in order), sampler.n_clusters]
    for name in ("mean", "factor", "rate"):
        if name in draw:
            assert_allclose(draw[name], anew[name][places], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_restored_bit_for_bit(kind):
    prior = learning_prior(kind, mixed=True)
    state, X = _model.draw_joint(prior, N, np.random.default_rng(3))
    sampler = sampler_at(prior, state, X)
    for _ in range(7):
        sampler.sweep()
    other = make_sampler(X, prior, np.zeros(N, dtype=int))
    other.set_state(sampler.get_state())
    for _ in range(5):
        sampler.sweep()
        other.sweep()
    assert sampler.log_joint() == other.log_joint()
    assert sampler.acceptance() == other.acceptance()
    assert_array_equal(sampler.labels, other.labels)
