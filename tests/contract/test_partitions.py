"""What every estimator with a partition promises."""

from copy import copy

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from contract.registry import SETTINGS
from skbnp import InfiniteFactorClusterer, TreeFactorModel
from skbnp.estimators.partition import PartitionMixin
from skbnp.summaries.partitions import expected_loss
from skbnp.tree_factor_model._predictive import branch_probabilities
from skbnp.tree_factor_model._rows import Rows

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


def test_branches_are_those_of_the_reference_draw():
    """One tree is shown, so rows are put in the branches of that tree."""
    X = np.random.default_rng(0).normal(size=(60, 4)) + 4 * (np.arange(60)[:, np.newaxis] % 2)
    options = dict(n_chains=1, n_warmup=40, n_draws=20, random_state=0)
    for merge_overlap in (None, 0.1):
        tree = TreeFactorModel(
            max_depth=4, branch_levels=(1, 2), merge_overlap=merge_overlap, **options
        ).fit(X)
        rows = Rows(tree._units.to_visible(X))
        of_branches = branch_probabilities(rows, tree._reference)
        # What shares of the rows of each branch are in which cluster.
        table = np.zeros((of_branches.shape[1], tree.n_clusters_))
        np.add.at(table, (tree.component_labels_, tree.labels_), 1.0)
        table /= table.sum(axis=1, keepdims=True)
        assert (merge_overlap is None) == np.array_equal(table, np.eye(len(table)))
        np.testing.assert_allclose(tree.predict_proba(X), of_branches @ table, atol=1e-12)


def test_draws_of_the_clusterer_count_alike():
    X = np.random.default_rng(1).normal(size=(50, 3)) + 5 * (np.arange(50)[:, np.newaxis] % 2)
    options = dict(n_chains=1, n_warmup=30, n_draws=10, random_state=0, predict_draws=10)
    model = InfiniteFactorClusterer(**options).fit(X)
    proba = np.mean(
        [_alone(model, t).predict_proba(X) for t in range(model.posterior_.n_draws)], axis=0
    )
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-12)


def _alone(model, t):
    """The fitted model with one draw to predict from, and its clusters."""
    alone = copy(model)
    alone._membership_draws = lambda new: [model.posterior_[0, t]]
    alone._prediction_draws = lambda: [model.posterior_[0, t]]
    alone._parameters_of_laws = None  # Laws are kept for all copies.
    return alone
