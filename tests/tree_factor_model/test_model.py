"""The reference joint density against scipy.stats."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skbnp.laws import Gamma
from skbnp.processes import ncrp
from skbnp.tree_factor_model import _model
from skbnp.tree_factor_model._model import Prior

STRUCTURES = {"single": (), "mixture": (0,), "tree": (1, 3)}
every_structure = pytest.mark.parametrize("structure", STRUCTURES)
every_scale = pytest.mark.parametrize("branch_scale", _model.BRANCH_SCALES)


def prior_of(structure, **changes):
    defaults = dict(n_features=4, max_depth=3, branch_levels=STRUCTURES[structure])
    return Prior(**(defaults | changes))


def label_paths(state):
    """Path of each row, leaf last, as labels for ``ncrp``."""
    leaf = np.asarray(state["branch"])
    return np.column_stack([_model.paths_of(state)[leaf], leaf])


@every_structure
@every_scale
@pytest.mark.parametrize("noise", _model.NOISES)
def test_terms_against_scipy(structure, branch_scale, noise):
    rng = np.random.default_rng(0)
    p = prior_of(
        structure,
        branch_scale=branch_scale,
        noise=noise,
        noise_precision=Gamma(1.0, Gamma(3.0, 2.0)),
    )
    s, X = _model.draw_joint(p, 30, rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[3] = np.nan
    got = _model.log_joint(s, X, p, terms=True)
    tau = np.exp(_model.log_precisions(s))
    shape = np.where(s["parent"] < 0, 2.0, 3.0)
    sd = 1 / np.sqrt(s["local_precision"] * tau[:, None])
    lam = s["noise_precision"]
    assert_allclose(got["paths"], ncrp.log_prob(label_paths(s), s["concentration"]))
    assert_allclose(got["multiplier"], stats.gamma(shape).logpdf(s["multiplier"]).sum())
    assert_allclose(
        got["local_precision"], stats.gamma(1.5, scale=1 / 1.5).logpdf(s["local_precision"]).sum()
    )
    assert_allclose(got["loadings"], stats.norm(0, sd).logpdf(s["loadings"]).sum())
    assert_allclose(got["mean_precision"], stats.expon().logpdf(s["mean_precision"]).sum())
    spread = 1 / np.sqrt(s["mean_precision"])
    assert_allclose(got["leaf_mean"], stats.norm(0, spread).logpdf(s["leaf_mean"]).sum())
    unique = lam if noise == "diagonal" else lam[:1]
    assert_allclose(
        got["noise_precision"], stats.gamma(1, scale=1 / s["noise_rate"]).logpdf(unique).sum()
    )
    law = stats.gamma(3, scale=1 / 2)
    expected = law.logpdf(s["noise_rate"]) - law.logsf(_model.LEAST_NOISE_RATE)
    assert_allclose(got["noise_rate"], expected, rtol=1e-12)
    k = len(p.branch_levels)
    rate = 2 / 0.5 ** np.arange(k)
    alpha = s["concentration"][list(p.branch_levels)]
    assert_allclose(got["concentration"], stats.gamma(2, scale=1 / rate).logpdf(alpha).sum())
    if branch_scale == "loadings":
        assert_allclose(got["score_precision"], stats.gamma(1).logpdf(s["score_precision"]).sum())
    if branch_scale != "none":
        assert_allclose(got["noise_scale"], stats.gamma(1).logpdf(s["noise_scale"]).sum())
    data = 0.0
    for x, b in zip(X, s["branch"], strict=True):
        D, seen = s["loadings"][_model.paths_of(s)[b]], ~np.isnan(x)
        covariance = np.diag(1 / (lam * s["noise_scale"][b]))
        for d, psi in zip(D, s["score_precision"][b], strict=True):
            covariance += np.outer(d, d) / psi
        if seen.any():
            law = stats.multivariate_normal(s["leaf_mean"][b][seen], covariance[np.ix_(seen, seen)])
            data += law.logpdf(x[seen])
    assert_allclose(got["data"], data, rtol=1e-9)
    assert sum(got.values()) == pytest.approx(_model.log_joint(s, X, p))


@every_scale
def test_scores_integrate_out(branch_scale):
    """log p(y, x) - log p(x | y) is log p(y), whatever x."""
    rng = np.random.default_rng(1)
    p = prior_of("tree", branch_scale=branch_scale)
    s, X = _model.draw_joint(p, 6, rng)
    X[0, 1] = X[2, 0] = X[2, 3] = np.nan
    X[4] = np.nan
    joint = _model.log_joint(s, X, p, scores="explicit")
    for i, b in enumerate(s["branch"]):
        D, seen = s["loadings"][_model.paths_of(s)[b]], ~np.isnan(X[i])
        w = s["noise_scale"][b] * s["noise_precision"]
        precision = np.diag(s["score_precision"][b]) + (D[:, seen] * w[seen]) @ D[:, seen].T
        rhs = (D[:, seen] * w[seen]) @ (X[i] - s["leaf_mean"][b])[seen]
        law = stats.multivariate_normal(np.linalg.solve(precision, rhs), np.linalg.inv(precision))
        joint -= law.logpdf(s["scores"][i])
    assert joint == pytest.approx(_model.log_joint(s, X, p), rel=1e-10)


@every_structure
def test_draws_have_the_structure(structure):
    p = prior_of(structure)
    s, X = _model.draw_joint(p, 50, np.random.default_rng(2))
    assert X.shape == (50, 4)
    assert np.isfinite(_model.log_joint(s, X, p))
    assert (s["parent"] < np.arange(len(s["parent"]))).all()
    assert (s["level"][s["leaf_node"]] == 3).all()
    if structure == "single":
        assert len(s["parent"]) == 3 and len(s["leaf_node"]) == 1
    if structure == "mixture":
        assert len(s["parent"]) == 3 * len(s["leaf_node"])
    if structure == "tree":
        assert (s["parent"] < 0).sum() == 1
