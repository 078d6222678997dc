"""A picture of training rows shows `labels_`, of whatever kind and order the table is."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from contract.registry import DEFAULTS, Setting
from skbnp import DirichletProcessMixture
from skbnp.plot import ClusterDisplay

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
LABELLED = [setting for setting in DEFAULTS if setting.name in ("mixture", "tree", "clusterer")]
LABELLED += [setting for setting in DEFAULTS if setting.name == "scale"]


@pytest.fixture(autouse=True)
def close_figures():
    plt.switch_backend("agg")
    yield
    plt.close("all")


def fit_with_own_labels(setting, X):
    """An estimator in which each training row has a label of its own: predict cannot know it."""
    estimator = setting.fit(X)
    n = len(estimator.labels_)
    estimator.labels_ = np.random.default_rng(1).permutation(n)
    estimator.n_clusters_ = n
    return estimator


@pytest.mark.parametrize("setting", LABELLED, ids=str)
def test_training_rows_have_their_labels(setting):
    X = setting.table()
    X[7] = X[2]  # equal rows, of labels that differ
    estimator = fit_with_own_labels(setting, X)
    labels = estimator.labels_
    display = ClusterDisplay.from_estimator(estimator, X)
    assert_array_equal(display.labels, labels)
    assert [int(points.get_label().split()[1]) for points in display.scatter_] == sorted(labels)
    assert_array_equal(ClusterDisplay.from_estimator(estimator, X.tolist()).labels, labels)
    order = np.random.default_rng(2).permutation(len(X))
    shuffled = ClusterDisplay.from_estimator(estimator, X[order]).labels
    single = ~np.isin(order, [2, 7])
    assert_array_equal(shuffled[single], labels[order][single])
    assert_array_equal(np.sort(shuffled), np.sort(labels))
    some = [20, 1, 3, 15]
    assert_array_equal(ClusterDisplay.from_estimator(estimator, X[some]).labels, labels[some])


@pytest.mark.parametrize("setting", LABELLED, ids=str)
def test_new_rows_have_their_prediction(setting):
    X = setting.table()
    estimator = fit_with_own_labels(setting, X)
    mixed = np.vstack([X[5:8], X[:4] + 0.125])
    display = ClusterDisplay.from_estimator(estimator, mixed)
    assert_array_equal(display.labels[:3], estimator.labels_[5:8])
    assert_array_equal(display.labels[3:], estimator.predict(mixed)[3:])


@pytest.mark.parametrize("setting", LABELLED, ids=str)
def test_a_training_frame_in_any_order(setting):
    frame = pd.DataFrame(setting.table(), columns=["width", "height", "a constant"])
    frame["a constant"] = 1.0 + (np.arange(len(frame)) == 0)
    estimator = fit_with_own_labels(setting, frame)
    shuffled = frame.sample(frac=1.0, random_state=0)
    display = ClusterDisplay.from_estimator(estimator, shuffled, columns="height")
    assert_array_equal(display.labels, estimator.labels_[shuffled.index])


def mixed_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(40.0, 5.0, 30), "way": ["car", "bus", "bicycle"] * 10})
    table["member"] = rng.random(30) < 0.5
    table.loc[::7, "way"] = None
    table.loc[3, "age"] = np.nan
    return table


def test_a_table_of_all_kinds_and_a_file(tmp_path):
    table = mixed_table()
    estimator = Setting("mixture", DirichletProcessMixture, {"family": "auto"}).fit(table)
    estimator.labels_ = np.arange(30) % estimator.n_clusters_
    estimator.save(tmp_path / "mixture.skbnp")
    for model in (estimator, DirichletProcessMixture.load(tmp_path / "mixture.skbnp")):
        display = ClusterDisplay.from_estimator(model, table[::-1], columns=("age", "way"))
        assert_array_equal(display.labels, model.labels_[::-1])
        assert_array_equal(display.imputed, table["way"].isna()[::-1] | table["age"].isna()[::-1])
        assert list(display.categories) == [None, ["bicycle", "bus", "car"]]
        known = display.points[table["way"].notna()[::-1], 1].astype(int)
        names = np.array(["bicycle", "bus", "car"])[known]
        assert names.tolist() == table["way"].dropna()[::-1].tolist()


def test_the_opacity_is_the_probability_of_the_label():
    setting = LABELLED[0]
    X = np.random.default_rng(3).normal(size=(30, 2))
    X[:15] += 2.0
    estimator = setting.fit(X, n_warmup=30, n_draws=20)
    estimator.n_clusters_, estimator.labels_ = 2, np.repeat([0, 1], 15)
    proba = estimator.predict_proba(X)
    display = ClusterDisplay.from_estimator(estimator, X)
    assert_array_equal(display.certainty, proba[np.arange(30), estimator.labels_])
    assert np.any(display.certainty < 0.5)  # a label that the row alone does not speak for


def test_marks_of_missing_cells_are_missing():
    X = np.random.default_rng(4).normal(size=(24, 2))
    X[5, 0] = -999.0
    setting = Setting("mixture", DirichletProcessMixture, {"missing_values": -999.0})
    display = ClusterDisplay.from_estimator(setting.fit(X), X)
    assert np.flatnonzero(display.imputed).tolist() == [5]
    assert display.points.min() > -10.0
