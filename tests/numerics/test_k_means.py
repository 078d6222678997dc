import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from skbnp.numerics.k_means import k_means


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


def test_threads_do_not_show():
    X = np.random.default_rng(2).normal(size=(20_000, 4))
    with threadpool_limits(2, user_api="openmp"):
        found = [labels(X, 12) for _ in range(3)]
    with threadpool_limits(1, user_api="openmp"):
        found.append(labels(X, 12))
    for other in found[1:]:
        assert_array_equal(found[0], other)
