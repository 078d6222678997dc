"""Evidences, losses and predictions against the enumerated posteriors of `vectors.json`.

One of them is printed in doc/mathematics/dirichlet_process_mixture, section 11.
"""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from checks.dirichlet_process_mixture import (
    UNSCALED,
    case_data,
    case_prior,
    exact_posterior,
    make_sampler,
    vector_cases,
)
from checks.enumeration import canonical, set_partitions
from checks.slow import slow_where
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _model
from skbnp.mcmc.posterior import Posterior
from skbnp.summaries.partitions import expected_loss
from skbnp.tables.forms import TableForm
from skbnp.units import Units

CASES = vector_cases()


@pytest.mark.parametrize("name", CASES)
def test_model_gives_the_vectors(name):
    case = CASES[name]
    partitions, p, evidence = exact_posterior(case)
    assert_allclose(evidence, case["log_evidence"], atol=6e-9)
    n_blocks = np.array([max(label) + 1 for label in partitions])
    got = [p[n_blocks == k].sum() for k in range(1, len(case["prob_K"]) + 1)]
    assert_allclose(got, case["prob_K"], atol=6e-9)
    by_partition = dict(zip(partitions, p, strict=True))
    for label, probability in case["top_partitions"]:
        assert_allclose(by_partition[canonical(label)], probability, atol=6e-9)
    label = np.array(partitions)
    together = np.einsum("m,mij->ij", p, label[:, :, None] == label[:, None, :])
    assert_allclose(together, case["coclustering"], atol=6e-9)
    X, prior = case_data(case), case_prior(case)
    if name != "gauss-full PY missing monotone":
        assert_allclose(
            _model.log_marginal(X, prior, UNSCALED), case["log_marginal_one_block"], atol=6e-9
        )
        singletons = [_model.log_marginal(X[i : i + 1], prior, UNSCALED) for i in range(len(X))]
        assert_allclose(singletons, case["log_marginal_singletons"], atol=6e-9)


# The loss of a partition knows of no family: two posteriors show it, the others are slow tests.
LOSSES = {"gauss-full DP", "bernoulli DP"}


@pytest.mark.parametrize(
    "name, loss, key",
    slow_where(
        [(name, loss, f"{loss}_optimal") for name, loss in product(CASES, ["vi", "binder"])],
        lambda case: case[0] not in LOSSES,
    ),
)
def test_expected_losses_give_the_vectors(name, loss, key):
    """The best of all partitions and its loss, by the exact posterior."""
    case = CASES[name]
    partitions, p, _ = exact_posterior(case)
    exact = {
        label: sum(
            q * expected_loss(np.array(label), np.array([other], dtype=np.int32), loss)
            for other, q in zip(partitions, p, strict=True)
            if q > 0
        )
        for label in set_partitions(len(case["X"]))
    }
    best = min(exact, key=exact.get)
    optimum, value = case[key]
    assert canonical(optimum) == best
    assert_allclose(exact[best], value, atol=1e-8)


class ExactMixture(DirichletProcessMixture):
    """Predicts from all partitions, each with its exact posterior probability."""

    @classmethod
    def of(cls, case):
        X, prior = case_data(case), case_prior(case)
        self = cls(n_components=case["n_components"])
        partitions, p, _ = exact_posterior(case)
        draws = []
        for label, probability in zip(partitions, p, strict=True):
            if probability > 0:
                draw = make_sampler(X, prior, label).draw()
                draws.append({**draw, "log_probability": np.log(probability)})
        self.posterior_ = Posterior([draws], {"log_joint": np.zeros((1, len(draws)))})
        self.predict_draws, self.seed_ = len(draws), 0
        d = X.shape[1]
        self._prior, self._units = prior, Units.unscaled(d)
        self._table, self.n_features_in_, self._form = None, d, TableForm.of(X)
        self.labels_ = np.array(canonical(case["reference_partition"]))
        self.n_clusters_ = self.labels_.max() + 1
        return self

    def _log_weights(self, draw):
        return (
            super()._log_weights(draw) + draw["log_probability"] + np.log(self.posterior_.n_stored)
        )


COMPLETE = [name for name in CASES if name != "gauss-full PY missing monotone"]


@pytest.mark.parametrize("name", COMPLETE)
def test_prediction_gives_the_vectors(name):
    case = CASES[name]
    dpm = ExactMixture.of(case)
    x = np.array([case["x_new"]])
    assert_allclose(dpm.score_samples(x), case["log_predictive_new"], atol=6e-9)
    assert_allclose(dpm.novelty_proba(x), case["novelty_new"], atol=6e-9)
    shares = np.array(case["companion_proba_new"])
    assert_allclose(dpm.predict_proba(x)[0], shares / shares.sum(), atol=2e-8)


def test_normalising_within_draws_is_noticed():
    """Shares averaged after normalising each draw ignore what x says about the draws (5.2)."""
    dpm = ExactMixture.of(CASES["gauss-full DP"])
    x = np.array([CASES["gauss-full DP"]["x_new"]])
    rows = dpm._prepared(x)
    wrong = np.zeros(4)
    for draw in dpm._prediction_draws():
        p = np.exp(dpm._log_joint_of(dpm._law_of(draw, 0), 0, rows))[0]
        shares = np.append(p[:-1] @ dpm._companion_table(draw), p[-1])
        wrong += np.exp(draw["log_probability"]) * shares / p.sum()
    assert_allclose(wrong, [0.1040, 0.6531, 0.1855, 0.0574], atol=6e-5)
    right = CASES["gauss-full DP"]["companion_proba_new"]
    assert np.abs(wrong[:3] - right).max() > 0.02


@pytest.mark.parametrize("name", [name for name in COMPLETE if name.startswith("gauss")])
def test_conditional_moments_against_quadrature(name):
    """impute has the moments of each draw's predictive density, and all draws weigh the same."""
    dpm = ExactMixture.of(CASES[name])
    every, x = list(dpm.posterior_)[:6], 0.35
    # Points crowd around the data and reach far into the tails.
    y = np.sinh(np.linspace(-9, 9, 8_001))
    means, variances = [], []
    for draw in every:
        dpm.posterior_ = Posterior([[draw]], {"log_joint": np.zeros((1, 1))})
        p = np.exp(dpm.score_samples(np.column_stack([np.full(len(y), x), y])))
        total = np.trapezoid(p, y)
        assert_allclose(np.log(total), dpm.score_samples(np.array([[x, np.nan]]))[0], atol=1e-6)
        means.append(np.trapezoid(p * y, y) / total)
        variances.append(np.trapezoid(p * (y - means[-1]) ** 2, y) / total)
    dpm.posterior_ = Posterior([every], {"log_joint": np.zeros((1, len(every)))})
    mean, std = dpm.impute(np.array([[x, np.nan]]), return_std=True)
    assert mean[0, 0] == x and std[0, 0] == 0
    assert_allclose(mean[0, 1], np.mean(means), atol=1e-5)
    # The new block's t has 3 degrees of freedom given x: some second moment beyond 4000 is lost.
    assert_allclose(std[0, 1], np.sqrt(np.mean(variances) + np.var(means)), rtol=5e-3)
