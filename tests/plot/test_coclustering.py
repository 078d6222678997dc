"""CoclusteringDisplay: the picture is the matrix, rows ordered by cluster."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skbnp.estimators.draws import DrawsMixin
from skbnp.estimators.partition import PartitionMixin
from skbnp.mcmc.posterior import Posterior
from skbnp.plot import CoclusteringDisplay
from skbnp.plot.coclustering import _sample_rows
from skbnp.summaries.partitions import coclustering

N = 60


class Fitted(PartitionMixin, DrawsMixin, BaseEstimator):
    """What a display looks at of an estimator with a partition."""

    def __init__(self, labels=None, posterior=None):
        self.labels_, self.posterior_ = labels, posterior

    def fit(self, X):
        """Nothing to do."""


def make_estimator(n=N, n_clusters=3, noise=0.2, n_draws=20):
    """Labels in mixed order, and two chains of draws around them."""
    rng = np.random.default_rng(0)
    truth = np.minimum(rng.integers(n_clusters + 2, size=n), n_clusters - 1)
    moved = rng.random((2, n_draws, n)) < noise
    labels = np.where(moved, rng.integers(n_clusters, size=moved.shape), truth).astype(np.uint8)
    posterior = Posterior(
        [[{"label": label} for label in chain] for chain in labels],
        {"log_joint": np.zeros((2, n_draws))},
    )
    return Fitted(truth, posterior), labels.reshape(-1, n)


def test_picture_is_the_matrix_in_the_order_of_the_clusters():
    estimator, draws = make_estimator()
    display = CoclusteringDisplay.from_estimator(estimator)
    together = coclustering(draws)
    assert_array_equal(display.probability, together)
    order = display.order_
    assert_array_equal(np.sort(order), np.arange(N))
    assert np.all(np.diff(estimator.labels_[order]) >= 0)
    assert_array_equal(display.image_.get_array(), together[np.ix_(order, order)])
    assert display.image_.get_clim() == (0.0, 1.0)
    assert (display.colorbar_.vmin, display.colorbar_.vmax) == (0.0, 1.0)
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_xlabel() == "60 rows"


def test_a_square_around_each_cluster():
    estimator, _ = make_estimator()
    display = CoclusteringDisplay.from_estimator(estimator)
    sizes = np.bincount(estimator.labels_)
    stop = np.cumsum(sizes)
    squares = display.boundaries_.get_segments()
    assert len(squares) == 3
    for square, low, high in zip(squares, stop - sizes - 0.5, stop - 0.5, strict=True):
        assert_allclose(square, [(low, low), (high, low), (high, high), (low, high), (low, low)])
    assert_allclose(display.ax_.get_yticks(), stop - sizes / 2 - 0.5)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["0", "1", "2"]


def test_rows_alike_stand_together_and_the_core_first():
    """A cluster of two halves that some draws split, and one row that is hardly in it."""
    half = np.arange(21) % 2
    half[-1] = 2
    draws = np.array([half] * 4 + [np.where(half == 2, 1, 0)] * 6)
    display = CoclusteringDisplay(coclustering(draws), np.zeros(21, int)).plot()
    ordered = half[display.order_]
    assert ordered[-1] == 2
    assert np.count_nonzero(np.diff(ordered[:-1])) == 1


def test_chosen_rows():
    estimator, draws = make_estimator()
    rows = np.array([50, 3, 4, 17, 20])
    display = CoclusteringDisplay.from_estimator(estimator, rows=rows)
    assert_array_equal(display.probability, coclustering(draws)[np.ix_(rows, rows)])
    assert_array_equal(display.labels, estimator.labels_[rows])
    assert display.ax_.get_xlabel() == "5 of 60 rows"
    mask = CoclusteringDisplay.from_estimator(estimator, rows=estimator.labels_ == 1)
    assert set(mask.labels) == {1}


def test_of_many_rows_a_sample_with_all_clusters_in_proportion():
    estimator, draws = make_estimator(n=5000, n_clusters=4)
    estimator.labels_[17] = 4  # a cluster of one row
    display = CoclusteringDisplay.from_estimator(estimator, max_rows=100)
    assert display.image_.get_array().shape == (100, 100)
    assert display.ax_.get_xlabel() == "100 of 5000 rows"
    share = np.bincount(estimator.labels_) / 50
    assert np.all(np.abs(np.bincount(display.labels) - share) <= 2)
    assert 4 in display.labels
    again = CoclusteringDisplay.from_estimator(estimator, max_rows=100)
    assert_array_equal(again.probability, display.probability)


@pytest.mark.parametrize("max_rows", [1, 2, 7, 30, 199, 200, 300])
def test_sample_has_its_size_and_no_row_twice(max_rows):
    labels = np.repeat(np.arange(20), np.arange(1, 39, 2)[::-1].tolist() + [39])[:400]
    labels = np.random.default_rng(0).permutation(labels)[:200]
    rows = _sample_rows(labels, max_rows)
    assert len(np.unique(rows)) == len(rows) == min(max_rows, 200)
    assert len(set(labels[rows])) >= min(max_rows, len(set(labels)))
    if max_rows == 1:
        assert labels[rows[0]] == np.bincount(labels).argmax()


def test_at_most_300_draws_are_used(monkeypatch):
    estimator, _ = make_estimator(n_draws=400)
    asked = []
    evenly_spaced = estimator.posterior_.evenly_spaced
    monkeypatch.setattr(
        estimator.posterior_, "evenly_spaced", lambda n: asked.append(n) or evenly_spaced(n)
    )
    CoclusteringDisplay.from_estimator(estimator)
    assert asked == [300]


def test_axes_and_style_of_the_user():
    estimator, _ = make_estimator()
    figure, ax = plt.subplots()
    display = CoclusteringDisplay.from_estimator(estimator, ax=ax, colorbar=False, cmap="Greys")
    assert display.ax_ is ax and display.figure_ is figure and figure.axes == [ax]
    assert display.colorbar_ is None and display.image_.get_cmap().name == "Greys"


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    for labels in (np.zeros(n, int), np.arange(n), np.array(list("bab"))[:n]):
        display = CoclusteringDisplay(np.eye(n), labels).plot()
        display.figure_.canvas.draw()
        assert_array_equal(np.sort(display.order_), np.arange(n))


def test_names_of_small_clusters_are_left_out():
    labels = np.repeat(np.arange(3), [98, 1, 1])
    display = CoclusteringDisplay(np.eye(100), labels).plot()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["0"]
    assert len(display.boundaries_.get_segments()) == 3


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"probability must have shape \(n, n\), n >= 1, got"):
        CoclusteringDisplay(np.ones((2, 3)), [0, 0]).plot()
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\), got \(3,\)"):
        CoclusteringDisplay(np.eye(2), [0, 0, 1]).plot()
    estimator, _ = make_estimator()
    for max_rows in (0, 2.5):
        with pytest.raises(ValueError, match="max_rows must be an integer >= 1, got"):
            CoclusteringDisplay.from_estimator(estimator, max_rows=max_rows)
    with pytest.raises(ValueError, match="rows must be between -60 and 59"):
        CoclusteringDisplay.from_estimator(estimator, rows=[60])


def test_nothing_to_show_yet():
    with pytest.raises(NotFittedError, match="call fit"):
        CoclusteringDisplay.from_estimator(object())
    with pytest.raises(TypeError, match=r"pipeline\[-1\]"):
        CoclusteringDisplay.from_estimator(make_pipeline("passthrough"))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skbnp\[plot\]"):
        CoclusteringDisplay(np.eye(2), [0, 1]).plot()
