"""ClusterCountDisplay: the artists carry the shares of the draws."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from skbnp.plot import ClusterCountDisplay
from skbnp.processes import crp

TRACE = np.array([[3, 3, 5, 3], [3, 5, 5, 6]], dtype=float)


@pytest.fixture
def estimator():
    return SimpleNamespace(posterior_=SimpleNamespace(traces={"n_clusters": TRACE}))


def test_bars_are_shares_of_the_draws(estimator):
    display = ClusterCountDisplay.from_estimator(estimator)
    assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in display.bars_], [3, 4, 5, 6])
    assert_allclose([bar.get_height() for bar in display.bars_], [0.5, 0, 0.375, 0.125])
    assert display.prior_ is None and display.figure_ is display.ax_.figure
    assert display.ax_.get_xlabel() == "number of clusters"


def test_what_is_counted_before_joins_are_components(estimator):
    estimator.component_labels_ = np.zeros(4, dtype=int)
    display = ClusterCountDisplay.from_estimator(estimator)
    assert display.ax_.get_xlabel() == "number of components"


def test_a_tree_counts_branches():
    of_tree = SimpleNamespace(posterior_=SimpleNamespace(traces={"n_branches": TRACE}))
    display = ClusterCountDisplay.from_estimator(of_tree)
    assert display.n_clusters is TRACE
    assert display.ax_.get_xlabel() == "number of branches"


def test_each_chain_has_its_dashes(estimator):
    display = ClusterCountDisplay.from_estimator(estimator)
    assert [line.get_ydata().tolist() for line in display.chains_] == [
        [0.75, 0, 0.25, 0],
        [0.25, 0, 0.5, 0.25],
    ]
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert sorted(texts) == ["each chain", "posterior"]
    single = ClusterCountDisplay(TRACE[:1]).plot()
    assert single.chains_ == [] and single.legend_ is None


def test_prior_is_shown_where_its_mass_is(estimator):
    pmf = crp.pmf_blocks(200, 2.0)
    display = ClusterCountDisplay.from_estimator(estimator, prior=pmf)
    k = display.prior_.get_xdata()
    assert_array_equal(k, np.arange(k[0], k[-1] + 1))
    assert_allclose(display.prior_.get_ydata(), pmf[k - 1])
    assert pmf[: k[0] - 1].sum() < 0.01 and pmf[k[-1] :].sum() < 0.01
    assert "prior" in [text.get_text() for text in display.legend_.get_texts()]


@pytest.mark.parametrize("prior", [[1.0], [0.0, 0.0, 1.0], [0.5, 0.5]])
def test_degenerate_priors(prior):
    display = ClusterCountDisplay(np.ones((1, 1)), prior=prior).plot()
    display.figure_.canvas.draw()
    assert_array_equal(display.prior_.get_xdata(), np.flatnonzero(prior) + 1)


def test_axes_and_style_of_the_user(estimator):
    figure, ax = plt.subplots()
    display = ClusterCountDisplay.from_estimator(estimator, ax=ax, color="red", width=0.5)
    assert display.ax_ is ax and display.figure_ is figure
    assert display.bars_[0].get_width() == 0.5
    assert display.bars_[0].get_facecolor()[:3] == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("n_clusters", "prior", "message"),
    [
        ([3, 4], None, r"n_clusters must have shape \(n_chains, n_draws\), got \(2,\)"),
        ([[1.5]], None, "whole numbers"),
        ([[0]], None, "whole numbers"),
        ([[np.nan]], None, "whole numbers"),
        ([[1]], [[1.0]], "prior must hold the probabilities"),
        ([[1]], [-0.5, 1.5], "prior must hold the probabilities"),
        ([[1]], [0.0], "prior must hold the probabilities"),
    ],
)
def test_bad_arguments_are_named(n_clusters, prior, message):
    with pytest.raises(ValueError, match=message):
        ClusterCountDisplay(n_clusters, prior=prior).plot()


def test_nothing_to_show():
    with pytest.raises(NotFittedError, match="call fit"):
        ClusterCountDisplay.from_estimator(object())
    other = SimpleNamespace(posterior_=SimpleNamespace(traces={"log_joint": TRACE}))
    with pytest.raises(TypeError, match=r"'n_branches', got .* with the traces \['log_joint'\]"):
        ClusterCountDisplay.from_estimator(other)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skbnp\[plot\]"):
        ClusterCountDisplay(TRACE).plot()
