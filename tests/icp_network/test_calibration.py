"""The power on class probabilities: leave-one-out, the choice, the estimator."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

from skbnp import ICPNetworkClassifier
from skbnp.icp_network._calibration import best_power, leave_one_out, raised
from skbnp.icp_network._classes_estimator import ClassProbabilitiesMixin

pytestmark = pytest.mark.filterwarnings("ignore")


def test_leave_one_out_is_that_of_a_refit():
    # A Bernoulli law of unknown probability, whose posterior is a beta law.
    rng = np.random.default_rng(0)
    labels = np.array([0, 1, 1, 0, 1, 1, 1])
    p = rng.beta(2.0 + labels.sum(), 1.0 + (1 - labels).sum(), size=400_000)
    probability = np.repeat(np.stack([1 - p, p], axis=1)[:, np.newaxis], len(labels), axis=1)
    got = leave_one_out(probability, labels)
    expected = (2.0 + labels.sum() - labels) / (3.0 + len(labels) - 1)
    assert_allclose(got, np.column_stack([1 - expected, expected]), atol=0.003)


def test_a_draw_that_excludes_a_label_gets_all_the_weight():
    probability = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    assert_allclose(leave_one_out(probability, np.array([1])), [[1.0, 0.0]], atol=1e-12)


@pytest.mark.parametrize("power", [1.0, 2.5])
def test_the_best_power_is_that_which_labels_follow(power):
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), size=20_000)
    sharp = raised(p, power)
    labels = (sharp.cumsum(axis=1) < rng.uniform(size=(len(p), 1))).sum(axis=1)
    assert best_power(p, labels) == pytest.approx(power, abs=0.05)


def test_probabilities_are_never_made_more_even():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), size=500)
    assert best_power(p, rng.integers(3, size=500)) == 1.0


def test_few_rows_change_little():
    p = np.full((1, 2), [0.4, 0.6])
    powers = [best_power(np.repeat(p, n, axis=0), np.ones(n, dtype=int)) for n in (1, 10, 1000)]
    assert 1.0 < powers[0] < 1.2
    assert powers[0] < powers[1] < powers[2] < 100.0


def test_powers_of_probabilities():
    p = np.array([[0.25, 0.75], [0.0, 1.0], [0.5, 0.5]])
    assert_allclose(raised(p, 2.0), [[0.1, 0.9], [0.0, 1.0], [0.5, 0.5]], atol=1e-12)
    assert_array_equal(raised(2.0 * p, 1.0), p)


def rings(n, noise, seed):
    """Two classes, one around the other, a share of the labels at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (np.sum(X**2, axis=1) > 2.4).astype(int)
    wrong = rng.uniform(size=n) < noise
    y[wrong] = rng.integers(2, size=wrong.sum())
    return X, y


def fitted(X, y, **options):
    short = dict(n_chains=2, n_warmup=60, n_draws=30, random_state=0)
    return ICPNetworkClassifier(**(short | options)).fit(X, y)


def with_and_without(X, y):
    """One fit with its probabilities calibrated, and the same draws without."""
    model = fitted(X, y, warm_start=True)
    plain = pickle.loads(pickle.dumps(model)).set_params(probability_calibration=None)
    return model, plain.fit(X, y)


def test_a_classifier_gains_where_labels_are_clean():
    X, y = rings(150, 0.0, 0)
    new, target = rings(500, 0.0, 1)
    model, plain = with_and_without(X, y)
    assert plain.power_ == 1.0 < model.power_
    assert_allclose(
        model.predict_proba(new), raised(plain.predict_proba(new), model.power_), rtol=1e-9
    )
    assert_array_equal(model.predict(new), plain.predict(new))
    assert log_loss(target, model.predict_proba(new)) < log_loss(target, plain.predict_proba(new))


@pytest.mark.slow
def test_a_classifier_loses_nothing_where_labels_are_random():
    X, y = rings(200, 0.4, 2)
    new, target = rings(1000, 0.4, 3)
    model, plain = with_and_without(X, y)
    losses = [log_loss(target, one.predict_proba(new)) for one in (model, plain)]
    assert losses[0] < losses[1] + 1e-3


def test_going_on_with_another_calibration_needs_no_sweep():
    X, y = rings(60, 0.0, 4)
    model = fitted(X, y, n_draws=10, warm_start=True)
    power, before = model.power_, model.posterior_.traces["log_joint"]
    model.set_params(probability_calibration=None).fit(X, y)
    assert model.power_ == 1.0
    assert_array_equal(model.posterior_.traces["log_joint"], before)
    assert model.set_params(probability_calibration="loo").fit(X, y).power_ == power


def test_files_know_the_power(tmp_path):
    X, y = rings(60, 0.0, 5)
    model = fitted(X, y, n_draws=10)
    model.save(tmp_path / "model")
    again = ICPNetworkClassifier.load(tmp_path / "model")
    assert again.power_ == model.power_
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_predictions_follow_parameters_that_are_read_then():
    X, y = rings(60, 0.0, 6)
    model = fitted(X, y, n_draws=10)
    first = model.predict_proba(X[:5])
    other = model.set_params(n_fantasies=20).predict_proba(X[:5])
    fewer = model.set_params(predict_draws=3).predict_proba(X[:5])
    assert np.abs(first - other).max() > 0 and np.abs(other - fewer).max() > 0
    model.set_params(n_fantasies=50, predict_draws=100)
    assert_array_equal(model.predict_proba(X[:5]), first)
    assert_allclose(model.predict_proba(X[:1]), first[:1], rtol=1e-12)
    many = model.set_params(n_fantasies=501).predict_proba(X[:5])
    assert_allclose(many, first, atol=0.2)


@pytest.mark.filterwarnings("error")
def test_log_probability_of_what_cannot_be():
    class Sure(ClassProbabilitiesMixin):
        classes_ = np.array(["a", "b"])

        def predict_proba(self, X):
            return np.array([[0.0, 1.0], [0.5, 0.5]])

    assert_array_equal(Sure().predict_log_proba([0, 1]), [[-np.inf, 0.0], [np.log(0.5)] * 2])
    assert_array_equal(Sure().predict([0, 1]), ["b", "a"])


def test_log_probabilities_across_folds():
    X = np.random.default_rng(0).normal(size=(20, 2))
    net = ICPNetworkClassifier(n_chains=1, n_warmup=2, n_draws=2, random_state=0)
    options = dict(y=X[:, 0] > 0, cv=2)
    logs = cross_val_predict(net, X, method="predict_log_proba", **options)
    assert_allclose(np.exp(logs), cross_val_predict(net, X, method="predict_proba", **options))
