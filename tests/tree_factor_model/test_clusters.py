"""Clusters of the tree factor model: branches that overlap are one."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

from skbnp import InfiniteFactorClusterer, TreeFactorModel
from skbnp.mcmc.io import FileFormatError
from skbnp.samplers import TreeSampler
from skbnp.summaries.partitions import coclustering


def fitted(X, **changes):
    settings = {
        "n_chains": 2, "n_warmup": 40, "n_draws": 20, "random_state": 0,
        "sampler": TreeSampler(init="em", init_children=4), "branch_levels": (4,),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TreeFactorModel(**settings | changes).fit(X)


def rows_of_one_law(n=900):
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, 2)) @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(n, 6))


@pytest.fixture(scope="module")
def one_law():
    return fitted(rows_of_one_law())


def test_branches_of_one_law_are_one_cluster(one_law):
    """Chains start from four branches, which as many rows leave one by one."""
    assert len(one_law.tree_["leaf_node"]) > 1
    sizes = np.bincount(one_law.labels_)
    assert sizes[0] > 0.98 * len(one_law.labels_)
    assert np.bincount(one_law.component_labels_).max() < 0.9 * len(one_law.labels_)
    assert_array_equal(one_law.component_labels_, one_law._reference["branch"])


def test_clusters_apart_stay_apart():
    rng = np.random.default_rng(4)
    label = rng.integers(3, size=300)
    X = rows_of_one_law(300) + 6.0 * np.eye(6)[label]
    model = fitted(X)
    assert adjusted_rand_score(label, model.labels_) > 0.95
    assert model.n_clusters_ == 3
    assert_array_equal(np.sort(np.bincount(model.labels_))[::-1], np.bincount(model.labels_))


def test_as_they_are(one_law):
    X = rows_of_one_law()
    model = fitted(X, merge_overlap=None)
    assert_array_equal(model.labels_, model.component_labels_)
    assert_array_equal(np.bincount(model.labels_), model.tree_["leaf_count"])
    assert model.n_clusters_ == len(model.tree_["leaf_node"])
    assert model.predict_proba(X[:5]).shape == (5, model.n_clusters_)


def test_what_follows_from_clusters(one_law):
    X = rows_of_one_law()
    p = one_law.predict_proba(X[:50])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(one_law.predict(X) == one_law.labels_) > 0.98
    together = one_law.coclustering(np.arange(20))
    assert together.mean() > 0.95
    pieces = one_law.coclustering(np.arange(20), joined=False)
    expected = coclustering([draw["branch"] for draw in one_law.posterior_], np.arange(20))
    np.testing.assert_allclose(pieces, expected)
    assert pieces.mean() < together.mean()
    info = one_law.partition_info_
    assert info["merge_overlap"] == 0.1
    assert len(info["support"]) == one_law.n_clusters_ and min(info["support"]) >= 0.5
    assert len(info["n_clusters_of_chains"]) == 2
    report = str(one_law.report())
    assert "piece" in report


def test_chains_with_unlike_numbers_of_clusters_are_named(one_law, monkeypatch):
    numbers = [1, 3]
    monkeypatch.setitem(one_law.partition_info_, "n_clusters_of_chains", numbers)
    with pytest.warns(match="the chains have 1, 3 clusters; labels_ are of a draw in the middle"):
        one_law._warn_of_numbers()


@pytest.mark.parametrize("name", ["labels_", "component_labels_"])
def test_damaged_labels(one_law, name, tmp_path, monkeypatch):
    damaged = getattr(one_law, name).copy()
    damaged[0] = damaged.max() + 2
    monkeypatch.setattr(one_law, name, damaged)
    one_law.save(tmp_path / "damaged")
    with pytest.raises(FileFormatError, match=name):
        TreeFactorModel.load(tmp_path / "damaged")


def test_files_know_how_they_were_joined(one_law, tmp_path):
    one_law.save(tmp_path / "file")
    loaded = TreeFactorModel.load(tmp_path / "file").set_params(merge_overlap=None)
    rows = np.arange(20)
    np.testing.assert_array_equal(loaded.coclustering(rows), one_law.coclustering(rows))
    assert loaded.partition_info_ == one_law.partition_info_


@pytest.mark.parametrize("kind", [TreeFactorModel, InfiniteFactorClusterer])
def test_rows_that_repeat_are_named(kind):
    X = rows_of_one_law(30)
    X[::4, 0] = np.nan
    settings = {"n_chains": 1, "n_warmup": 2, "n_draws": 4, "random_state": 0}
    table = np.vstack([X, X[:3]])  # 6 of 33 rows
    with pytest.warns(UserWarning, match=r"6 of 33 rows of X equal another one in all columns"):
        kind(**settings).fit(table)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(**settings).fit(table[:31])
    assert not any("equal another" in str(warning.message) for warning in caught)
