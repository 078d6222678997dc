"""What is the estimator's own; `tests/sparse_factors` has what it shares."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from checks import sparse_factors
from skbnp import DeepScaleModel
from skbnp.laws import Normal
from skbnp.samplers import DeepScaleSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:X should have a column of kurtosis:UserWarning",
    "ignore:the density of:UserWarning",
)


short = partial(sparse_factors.short, DeepScaleModel)


def failed_checks(estimator):
    return {
        "check_clustering": "clusters that differ in their means alone are what the model does not "
        "see"
    }


@parametrize_with_checks(
    [short(drift=Normal(0.0, 1.0), n_chains=1, n_warmup=4, n_draws=4)],
    expected_failed_checks=failed_checks,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_no_factors():
    """Independent columns of the same law: an answer, not a crash."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = short(sampler=DeepScaleSampler(n_init_factors=0, n_births=0, n_split_merge=0)).fit(X)
    assert model.n_factors_ == 0 and model.n_layers_ == 0 and model.n_clusters_ == 0
    assert (model.predict(X) == -1).all() and (model.labels_ == -1).all()
    assert model.transform(X).shape == (60, 0)
    assert_allclose(model.predict_proba(X), np.ones((60, 1)))
    assert np.isfinite(model.score_samples(X)).all()


def test_groups_of_columns():
    """Two groups of columns that become loud together."""
    rng = np.random.default_rng(2)
    amplitude = rng.normal(size=(300, 2)) @ np.kron(np.eye(2), np.ones(3))
    X = (2 * amplitude + 0.1) * rng.normal(size=(300, 6))
    model = short(n_warmup=60, n_draws=40).fit(X)
    labels = model.feature_labels_
    assert (labels[:3] == labels[0]).all() and (labels[3:] == labels[3]).all()
    assert labels[0] != labels[3] and (labels >= 0).all()
    # One factor that columns share alone gives 1/2.
    assert np.abs(model.energy_correlation_[0, 1] - 0.5) < 0.2
    assert np.abs(model.energy_correlation_[0, 4]) < 0.2
    stronger = np.argmax(np.abs(amplitude[:, [0, 3]]), axis=1)
    seen = model.labels_ >= 0
    assert adjusted_rand_score(stronger[seen], model.labels_[seen]) > 0.3
