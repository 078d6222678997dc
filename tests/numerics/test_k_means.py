import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info, threadpool_limits

from skbnp.numerics.k_means import k_means


def n_threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "openmp"]


def labels(X, n_clusters, seed=0):
    return k_means(X, n_clusters, np.random.default_rng(seed))


def test_clusters_far_apart_are_found():
    X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 20, axis=0)
    X += np.random.default_rng(1).normal(size=X.shape)
    found = labels(X, 3)
    assert len(np.unique(found)) == 3 and all(len(set(found[k : k + 20])) == 1 for k in (0, 20, 40))


@pytest.mark.parametrize("n_clusters", [2, 3, 9])
def test_equal_rows_give_fewer(n_clusters, recwarn):
    found = labels(np.repeat([[0.0], [1.0]], 4, axis=0), n_clusters)
    assert_array_equal(np.unique(found), [0, 1])
    assert not recwarn


def test_one_thread_adds_up(monkeypatch):
    """Several would in any order, which seldom shows in labels."""
    seen = []

    def fit_predict(self, X):
        seen.extend(n_threads())
        return np.zeros(len(X), dtype=int)

    monkeypatch.setattr(KMeans, "fit_predict", fit_predict)
    with threadpool_limits(2, user_api="openmp"):
        before = n_threads()
        labels(np.eye(3), 2)
        assert n_threads() == before
    assert seen and set(seen) == {1} != set(before)
