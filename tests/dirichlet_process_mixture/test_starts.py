"""Where the mixture's chains begin: half of them from one cluster, half from k-means."""

import numpy as np
import pytest
from sklearn.cluster import KMeans, kmeans_plusplus

from checks.watched import table_with_holes
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _estimator, _model

X = np.random.default_rng(0).normal(size=(300, 3))


def starts(n_chains=4, table=X, **options):
    """First labels of each chain."""
    found = []

    def remember(*args):
        found.append(_model.start_labels(*args))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_estimator, "start_labels", remember)
        sizes = {"n_chains": n_chains, "n_warmup": 0, "n_draws": 1, "random_state": 0}
        DirichletProcessMixture(**sizes, **options).fit(table)
    return found


@pytest.mark.filterwarnings("ignore")
def test_chains_start_from_either_side():
    numbers = [len(np.unique(labels)) for labels in starts(40)]
    assert numbers[::2] == [1] * 20
    # Not all have the same number of centres.
    assert min(numbers[1::2]) < 8 and max(numbers[1::2]) > 17
    assert all(5 <= number <= 20 for number in numbers[1::2])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "table, options, most",
    [
        (X[:3], {}, 3),
        (X[:1], {"degrees_of_freedom_prior": 5.0}, 1),
        (X, {"n_components": 2}, 2),
        (np.repeat(X[:2], 20, axis=0), {"covariance_type": "diag"}, 2),
        (table_with_holes(), {}, 20),
    ],
)
def test_no_more_centres_than_there_can_be(table, options, most):
    for labels in starts(8, table, **options):
        assert len(labels) == len(table)
        assert len(np.unique(labels)) <= most


def spread(labels):
    """Sum of the squared distances to the centres."""
    return sum(((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum() for k in set(labels))


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_those_of_k_means(seed):
    labels = _model._kmeans(X, 7, seed)
    centers, _ = kmeans_plusplus(X, 7, random_state=seed)
    theirs = KMeans(7, init=centers, n_init=1, max_iter=10, algorithm="lloyd").fit(X)
    assert spread(labels) == pytest.approx(theirs.inertia_, rel=0.01)
    assert spread(labels) < spread(_model._nearest_center(X, centers))


def test_rows_are_taken_in_blocks(monkeypatch):
    whole = _model._kmeans(X, 7, 0)
    monkeypatch.setattr(_model, "_KMEANS_ROWS", 64)
    np.testing.assert_array_equal(_model._kmeans(X, 7, 0), whole)
