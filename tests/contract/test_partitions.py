"""What every estimator with a partition promises."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from contract.registry import SETTINGS
from skbnp.estimators.partition import PartitionMixin
from skbnp.summaries.partitions import expected_loss

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
WITH_PARTITION = [setting for setting in SETTINGS if issubclass(setting.kind, PartitionMixin)]


def test_who_has_one():
    names = {setting.kind.__name__ for setting in WITH_PARTITION}
    assert names == {"DirichletProcessMixture", "TreeFactorModel", "InfiniteFactorClusterer"}


@pytest.fixture(scope="module", params=WITH_PARTITION, ids=str)
def fitted(request):
    X = np.concatenate([np.random.default_rng(c).normal(20.0 * c, 1, (15, 3)) for c in (0, 1)])
    return request.param.fit(X, n_warmup=30, n_draws=30)


def has_one_block(fitted):
    """Whether the model was told that all rows are together."""
    return getattr(fitted, "structure", None) == "single"


def test_labels_count_from_0(fitted):
    assert fitted.labels_.shape == (30,)
    assert fitted.labels_.dtype.kind == "i"
    np.testing.assert_array_equal(np.unique(fitted.labels_), np.arange(fitted.n_clusters_))


def test_expected_loss(fitted):
    """That of the consensus over the draws, in the loss that it minimises."""
    partition = getattr(fitted, fitted._consensus_labels)
    found = expected_loss(partition, fitted._label_draws(), fitted._partition_loss)
    assert fitted.expected_loss_ == pytest.approx(found, abs=1e-12)
    assert fitted.expected_loss_ >= 0.0


def test_training_rows_as_new_ones_find_their_clusters(fitted):
    X = np.concatenate([np.random.default_rng(c).normal(20.0 * c, 1, (15, 3)) for c in (0, 1)])
    proba = fitted.predict_proba(X)
    assert proba.shape == (30, fitted.n_clusters_)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    labels = fitted.predict(X)
    np.testing.assert_array_equal(labels, proba.argmax(axis=1))
    if has_one_block(fitted):
        assert not labels.any()
    else:
        halves = np.repeat([0, 1], 15)
        assert adjusted_rand_score(labels, fitted.labels_) > 0.5
        assert not set(labels[halves == 0]) & set(labels[halves == 1])


def test_a_row_without_values_gets_the_sizes_of_clusters(fitted):
    proba = fitted.predict_proba(np.full((1, 3), np.nan))[0]
    assert fitted.predict_proba(np.full((2, 3), np.nan))[1] == pytest.approx(proba, abs=1e-12)
    if fitted.n_clusters_ == 2 and fitted.expected_loss_ < 0.01:
        np.testing.assert_allclose(proba, 0.5, atol=0.05)


def test_a_row_between_the_clusters_is_new(fitted):
    near, between = fitted.novelty_proba([[0.0, 0.0, 0.0], [20.0, 0.0, 20.0]])
    assert 0.0 <= near < 0.3
    if has_one_block(fitted):
        assert near == between == 0.0
    else:
        assert near < between <= 1.0


def test_coclustering(fitted):
    together = fitted.coclustering()
    assert together.shape == (30, 30)
    np.testing.assert_array_equal(together, together.T)
    np.testing.assert_array_equal(np.diag(together), 1.0)
    if not has_one_block(fitted):
        assert together[:15, :15].mean() > together[:15, 15:].mean()
    np.testing.assert_array_equal(fitted.coclustering([3, 20], [4]), together[[3, 20]][:, [4]])


def test_coclustering_is_no_attribute(fitted):
    with pytest.raises(AttributeError, match=r"call coclustering\(\)"):
        fitted.coclustering_  # noqa: B018


def test_credible_ball(fitted):
    ball = fitted.credible_ball(level=0.9)
    assert ball.radius >= 0.0
    for bound in (ball.upper, ball.lower, ball.horizontal):
        assert all(np.asarray(labels).shape == (30,) for labels in np.atleast_2d(bound))
    with pytest.raises(ValueError, match="level"):
        fitted.credible_ball(level=1.5)
