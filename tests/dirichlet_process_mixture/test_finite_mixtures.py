"""The mixture with a law of the number of components: log joint, prediction, the estimator."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.dirichlet_process_mixture import (
    UNSCALED,
    case_data,
    enumerate_posterior,
    gaussian_prior,
    make_sampler,
    state_of,
)
from checks.enumeration import set_partitions
from checks.mixture_priors import CASES, LAWS, finite_prior
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture._saved import check_draw, check_prior
from skbnp.laws import Gamma, ShiftedBetaNegativeBinomial
from skbnp.mcmc.posterior import Posterior
from skbnp.processes import mfm
from skbnp.samplers import MixtureSampler
from skbnp.tables.forms import TableForm
from skbnp.units import Units

# -- the kernel against the plain joint density -----------------------------------------------


@pytest.mark.parametrize("kind", ["full", "diag"])
@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_log_joint_after_random_sweeps(kind, algorithm):
    rng = np.random.default_rng(0)
    covariance = np.eye(3) if kind == "full" else np.ones(3)
    prior = gaussian_prior(
        kind, np.zeros(3), 0.2, 6.0, covariance,
        n_components=ShiftedBetaNegativeBinomial(3.0, 2.0, 5.0), concentration=0.7,
    )  # fmt: skip
    _, X = _model.draw_joint(prior, 60, rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    # Every row alone at first: the sampler asks for the coefficients of all numbers of blocks.
    sampler = make_sampler(X, prior, np.arange(60), algorithm=algorithm, n_subset=10)
    for _ in range(30):
        data = sampler.completed_data()
        expected = _model.log_joint(state_of(sampler), data, prior)
        assert_allclose(sampler.log_joint(), expected, rtol=1e-10)
        sampler.sweep()
    assert sampler.n_clusters < 40


@pytest.mark.parametrize("labels", [(0, 0, 1, 1, 2, 2), (0, 0, 0, 0, 0, 1), (0, 1, 2, 3, 4, 5)])
def test_a_row_given_all_others(labels):
    """The label summed over, divided by the joint density of the other rows alone."""
    X, prior = case_data(CASES["gauss-full DP"]), finite_prior("gauss-full DP", "wide")
    labels = np.array(labels)
    got = make_sampler(X, prior, labels).leave_one_out()
    fixed = {"concentration": prior.concentration, "discount": 0.0, "prior_scale": 1.0}
    for i in range(6):
        others = np.delete(np.arange(6), i)
        below = _model.log_joint({"label": labels[others], **fixed}, X[others], prior)
        joints = []
        for label in [*np.unique(labels[others]), 6]:
            moved = labels.copy()
            moved[i] = label
            joints.append(_model.log_joint({"label": moved, **fixed}, X, prior))
        assert_allclose(got[i], np.logaddexp.reduce(joints) - below, atol=1e-10)


def test_state_of_another_concentration_is_refused():
    X, prior = case_data(CASES["gauss-full DP"]), finite_prior("gauss-full DP", "wide")
    sampler = make_sampler(X, prior, np.zeros(6, int))
    state = sampler.get_state()
    with pytest.raises(ValueError, match="concentration of the state must be 0.3, got 1.0"):
        sampler.set_state({**state, "concentration": 1.0})


# -- prediction -------------------------------------------------------------------------------


class ExactMixture(DirichletProcessMixture):
    """Predicts from all partitions, each with its exact posterior probability."""

    @classmethod
    def of(cls, X, prior):
        self = cls(n_components=DEFAULT)
        partitions, p, self.evidence = enumerate_posterior(X, prior)
        draws = [
            {**make_sampler(X, prior, label).draw(), "log_probability": np.log(probability)}
            for label, probability in zip(partitions, p, strict=True)
        ]
        self.posterior_ = Posterior([draws], {"log_joint": np.zeros((1, len(draws)))})
        self.predict_draws, self.seed_ = len(draws), 0
        d = X.shape[1]
        self._prior, self._units = prior, Units.unscaled(d)
        self._table, self.n_features_in_, self._form = None, d, TableForm.of(X)
        self.labels_, self.n_clusters_ = np.array([0, 0, 1, 1, 2, 2]), 3
        return self

    def _log_weights(self, draw):
        shift = draw["log_probability"] + np.log(self.posterior_.n_stored)
        return super()._log_weights(draw) + shift


@pytest.mark.parametrize("law", LAWS)
def test_prediction_is_that_of_one_row_more(law):
    """Density, novelty and companions of a new row by enumeration of the partitions of 7 rows."""
    X, prior = case_data(CASES["gauss-full DP"]), finite_prior("gauss-full DP", law)
    x = np.array([[0.35, 0.45]])
    dpm = ExactMixture.of(X, prior)
    partitions, p, evidence = enumerate_posterior(np.vstack([X, x]), prior)
    assert_allclose(dpm.score_samples(x), evidence - dpm.evidence, atol=1e-9)
    shares = np.zeros(4)
    for label, probability in zip(np.array(partitions), p, strict=True):
        companions = dpm.labels_[label[:-1] == label[-1]]
        if companions.size:
            shares[:3] += probability * np.bincount(companions, minlength=3) / companions.size
        else:
            shares[3] += probability
    assert_allclose(dpm.novelty_proba(x), shares[3], atol=1e-9)
    assert_allclose(dpm.predict_proba(x)[0], shares[:3] / shares[:3].sum(), atol=1e-9)


# -- the estimator ----------------------------------------------------------------------------


def two_clusters(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[n // 2 :] += 8
    return X


DEFAULT = LAWS["default"][0]
SHORT = dict(n_components=DEFAULT, n_chains=2, n_warmup=30, n_draws=30, random_state=0)


@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_fit_finds_clusters_and_goes_into_a_file(algorithm, tmp_path):
    X = two_clusters()
    dpm = DirichletProcessMixture(**SHORT, sampler=MixtureSampler(algorithm=algorithm)).fit(X)
    assert dpm.n_clusters_ == 2
    assert set(dpm.posterior_.traces["concentration"].ravel()) == {1.0}
    dpm.save(tmp_path / "mixture.skbnp")
    loaded = DirichletProcessMixture.load(tmp_path / "mixture.skbnp")
    assert loaded.n_components == DEFAULT
    assert_array_equal(loaded.score_samples(X), dpm.score_samples(X))
    assert_array_equal(loaded.posterior_.log_likelihood(), dpm.posterior_.log_likelihood())
    drawn, labels = dpm.sample_prior(50, random_state=0)
    assert drawn.shape == (50, 2) and labels.max() < 50


@pytest.mark.parametrize(
    "change, message",
    [
        ({"n_components": 0}, "n_components of the prior must be positive"),
        ({"concentration": -1.0}, "concentration of the prior must be positive"),
        ({"concentration": Gamma(1.0, 1.0)}, "fixes the concentration of each component"),
        ({"discount": 0.3}, "fixes the concentration of each component"),
    ],
)
def test_a_prior_in_a_file_is_checked(change, message):
    prior = finite_prior("gauss-full DP", "wide")
    check_prior(prior, 2)
    with pytest.raises(ValueError, match=message):
        check_prior(replace(prior, **change), 2)


def test_a_draw_in_a_file_has_the_concentration_of_its_prior():
    X, prior = case_data(CASES["gauss-full DP"]), finite_prior("gauss-full DP", "wide")
    draw = make_sampler(X, prior, np.zeros(6, int)).draw()
    check_draw(draw, prior, X)
    with pytest.raises(ValueError, match="concentration of a draw"):
        check_draw({**draw, "concentration": 1.0}, prior, X)


def test_density_integrates_to_one():
    X = two_clusters()[:, :1]
    dpm = DirichletProcessMixture(**SHORT).fit(X)
    x = np.linspace(-400, 400, 40_001)
    assert_allclose(np.trapezoid(np.exp(dpm.score_samples(x[:, None])), x), 1.0, atol=1e-3)


def test_a_longer_run_goes_on_where_a_checkpoint_ends(tmp_path):
    X = two_clusters()
    whole = DirichletProcessMixture(**SHORT).fit(X)
    short = dict(SHORT, n_draws=10, checkpoint=tmp_path)
    DirichletProcessMixture(**short).fit(X)
    longer = DirichletProcessMixture(**dict(short, n_draws=30)).fit(X)
    assert_array_equal(longer.posterior_.traces["log_joint"], whole.posterior_.traces["log_joint"])


def test_concentration_and_law_shape_the_chain():
    X = two_clusters()
    one = DirichletProcessMixture(**SHORT).fit(X).posterior_.traces["log_joint"]
    law = ShiftedBetaNegativeBinomial(1, 2, 9)
    for change in ({"component_concentration": 3.0}, {"n_components": law}):
        other = DirichletProcessMixture(**SHORT | change).fit(X).posterior_.traces["log_joint"]
        assert not np.array_equal(one, other)


def test_few_small_clusters():
    """Beside two clear clusters a Dirichlet process opens others more often."""
    X = two_clusters(80)
    extra = {}
    for n_components in (DEFAULT, None):
        options = dict(SHORT, n_components=n_components, n_draws=200)
        dpm = DirichletProcessMixture(**options).fit(X)
        extra[n_components] = np.mean(dpm.posterior_.traces["n_clusters"] > 2)
    assert extra[DEFAULT] < extra[None]


def test_every_partition_of_few_rows_has_its_reference_probability():
    prior = finite_prior("gauss-full DP", "wide")
    X = np.full((4, 2), np.nan)
    for label in set_partitions(4):
        # Without data the joint density is the partition's alone.
        got = make_sampler(X, prior, label).log_joint()
        data = make_sampler(X, prior, label).completed_data()
        blocks = [data[np.array(label) == k] for k in range(max(label) + 1)]
        of_data = sum(_model.log_marginal(block, prior, UNSCALED) for block in blocks)
        expected = mfm.log_prob(label, prior.concentration, prior.components_law)
        assert_allclose(got - of_data, expected, atol=1e-11)
