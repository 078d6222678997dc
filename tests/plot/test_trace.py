"""TraceDisplay: the artists carry the traces."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skbnp.plot import TraceDisplay


@pytest.fixture
def traces():
    rng = np.random.default_rng(0)
    return {
        "n_clusters": rng.integers(3, 7, size=(3, 50)),
        "log_joint": rng.normal(size=(3, 50)),
        "concentration": rng.gamma(1.0, size=(3, 50)),
    }


@pytest.fixture
def estimator(traces):
    rhat = {"n_clusters": 1.0123, "log_joint": np.nan}
    return SimpleNamespace(posterior_=SimpleNamespace(traces=traces, rhat=lambda: rhat))


def test_lines_are_the_traces(estimator, traces):
    display = TraceDisplay.from_estimator(estimator)
    assert display.axes_.shape == (3, 2)
    assert display.lines_.shape == display.histograms_.shape == (3, 3)
    for row, trace in zip(display.lines_, traces.values(), strict=True):
        for line, chain in zip(row, trace, strict=True):
            assert_array_equal(line.get_ydata(), chain)
            assert_array_equal(line.get_xdata(), np.arange(50))
    assert display.figure_ is display.axes_[0, 0].figure
    assert [text.get_text() for text in display.axes_[0, 0].get_legend().get_texts()] == [
        "chain 0",
        "chain 1",
        "chain 2",
    ]


def test_histograms_are_densities_over_common_bins(estimator, traces):
    display = TraceDisplay.from_estimator(estimator)
    for row, trace in zip(display.histograms_, traces.values(), strict=True):
        for patch, chain in zip(row, trace, strict=True):
            density, edges, _ = patch.get_data()
            assert_allclose(np.sum(density * np.diff(edges)), 1.0)
            assert_allclose(density, np.histogram(chain, edges, density=True)[0])
            assert_array_equal(edges, row[0].get_data().edges)
    # Counts have a bin for each whole number.
    assert_allclose(display.histograms_[0, 0].get_data().edges, np.arange(2.5, 7.0))


def test_titles_carry_rhat_where_there_is_one(estimator):
    display = TraceDisplay.from_estimator(estimator)
    titles = [ax.get_title(loc="left") for ax in display.axes_[:, 0]]
    assert titles == ["n_clusters   (R-hat 1.012)", "log_joint in nats", "concentration"]
    del estimator.posterior_.rhat
    display = TraceDisplay.from_estimator(estimator)
    assert display.axes_[0, 0].get_title(loc="left") == "n_clusters"


def test_which_traces_are_shown(estimator):
    estimator._reported_traces = ("log_joint", "n_clusters")
    assert list(TraceDisplay.from_estimator(estimator).traces) == ["log_joint", "n_clusters"]
    display = TraceDisplay.from_estimator(estimator, names=["concentration"])
    assert list(display.traces) == ["concentration"]
    with pytest.raises(ValueError, match=r"names must be among .* got \['alpha'\]"):
        TraceDisplay.from_estimator(estimator, names=["alpha"])


def test_axes_of_the_user(estimator):
    figure, axes = plt.subplots(3, 2)
    display = TraceDisplay.from_estimator(estimator, ax=axes)
    assert display.figure_ is figure and display.axes_[2, 1] is axes[2, 1]

    _, axes = plt.subplots(3)
    display = TraceDisplay.from_estimator(estimator, ax=axes)
    assert display.axes_.shape == (3, 1) and display.histograms_ is None

    _, ax = plt.subplots()
    display = TraceDisplay.from_estimator(estimator, names=["log_joint"], ax=ax)
    assert display.axes_[0, 0] is ax

    with pytest.raises(ValueError, match=r"ax must have shape \(3, 2\) or \(3,\), got \(\)"):
        TraceDisplay.from_estimator(estimator, ax=ax)


def test_line_style_of_the_user(estimator):
    display = TraceDisplay.from_estimator(estimator, linewidth=3, color="red")
    assert {line.get_linewidth() for line in display.lines_.flat} == {3}
    assert {line.get_color() for line in display.lines_.flat} == {"red"}


@pytest.mark.parametrize(
    "trace",
    [
        np.full((2, 10), 3),
        np.full((1, 1), 0.5),
        np.full((2, 5), -np.inf),
        np.array([[0.1, np.nan, 0.3], [1e8, 0.0, 0.0]]),
        np.array([[1.5, 1.5, 1.5, 1.5, 9.5]]),
        np.arange(2000).reshape(2, 1000),
    ],
)
def test_degenerate_traces(trace):
    display = TraceDisplay({"x": trace}).plot()
    display.figure_.canvas.draw()
    assert_array_equal(display.lines_[0, 0].get_ydata(), trace[0])


@pytest.mark.parametrize("value", [0.0, 3.0, -0.37, 1e-12, -123456.5])
def test_constant_trace_has_one_tick_and_one_thin_bin(value):
    display = TraceDisplay({"x": np.full((2, 10), value)}, rhat={"x": 1.0}).plot()
    ax = display.axes_[0, 0]
    assert ax.get_title(loc="left") == "x   (constant)"
    assert_array_equal(ax.get_yticks(), [value])
    low, high = ax.get_ylim()
    assert_allclose(0.5 * (low + high), value, atol=1e-9)
    density, edges, _ = display.histograms_[0, 1].get_data()
    assert low < edges[0] < value < edges[1] < high
    assert edges[1] - edges[0] < 0.2 * (high - low)
    assert_allclose(density * np.diff(edges), 1.0)


def test_chains_stuck_at_different_values_are_not_constant():
    display = TraceDisplay({"x": np.repeat([[1.0], [2.5]], 10, axis=1)}).plot()
    assert display.axes_[0, 0].get_title(loc="left") == "x"


def test_powers_of_two_have_a_logarithmic_scale_and_a_bin_each():
    trace = 2.0 ** -np.array([[1, 2, 2, 4], [2, 2, 1, 1]])
    _, axes = plt.subplots(1, 2)  # not shared
    for ax in (None, axes[None, :]):
        display = TraceDisplay({"prior_scale": trace}).plot(ax=ax)
        display.figure_.canvas.draw()
        assert {ax.get_yscale() for ax in display.axes_.flat} == {"log"}
        density, edges, _ = display.histograms_[0, 0].get_data()
        assert_allclose(edges, 2.0 ** np.array([-4.5, -3.5, -2.5, -1.5, -0.5]))
        assert_allclose(density, [0.25, 0, 0.5, 0.25])
        assert_allclose(display.histograms_[0, 1].get_data().values, [0, 0, 0.5, 0.5])


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [0.5, 0.3, 0.25], [0.5, -0.5, 1], [0, 0.5, 1]])
def test_other_traces_keep_their_scale(values):
    display = TraceDisplay({"x": [values]}).plot()
    assert display.axes_[0, 0].get_yscale() == "linear"


def test_bad_traces_are_named():
    with pytest.raises(ValueError, match="'x' must have shape"):
        TraceDisplay({"x": np.zeros(5)}).plot()
    with pytest.raises(ValueError, match="no trace"):
        TraceDisplay({}).plot()


def test_without_matplotlib_the_extra_is_named(monkeypatch, traces):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skbnp\[plot\]"):
        TraceDisplay(traces).plot()


def test_one_name_is_a_list_of_one(estimator, traces):
    name = next(iter(traces))
    assert TraceDisplay.from_estimator(estimator, names=name).lines_.shape[0] == 1


def test_nothing_to_show_yet():
    with pytest.raises(NotFittedError, match="call fit"):
        TraceDisplay.from_estimator(object())
    with pytest.raises(TypeError, match=r"pipeline\[-1\]"):
        TraceDisplay.from_estimator(make_pipeline("passthrough"))


def test_many_chains_differ():
    display = TraceDisplay({"x": np.random.default_rng(0).normal(size=(9, 10))}).plot()
    assert len({(line.get_color(), line.get_linestyle()) for line in display.lines_[0]}) == 9
    plain = TraceDisplay({"x": np.zeros((9, 10))}).plot(c="red", ls=":")
    assert {line.get_color() for line in plain.lines_[0]} == {"red"}
    assert {line.get_linestyle() for line in plain.lines_[0]} == {":"}
