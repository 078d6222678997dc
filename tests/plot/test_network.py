"""NetworkDisplay: dots, edges, colours and widths are those of the network."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skbnp import CIBPBeliefNet
from skbnp.plot import NetworkDisplay
from skbnp.plot._style import GREY, short_name
from skbnp.plot.network import NEGATIVE, POSITIVE

# Visible 0, 1, 2; layer 1: 3, 4; layer 2: 5, which passes layer 1 on one edge.
LAYER = np.array([0, 0, 0, 1, 1, 2])
EDGES = np.array([[3, 0], [3, 1], [4, 1], [4, 2], [5, 3], [5, 2]])
WEIGHTS = np.array([1.0, -0.5, 0.8, 4.0, -2.0, 0.0])


class FittedNetwork:
    """What a fitted belief network offers; its second draw is an empty network."""

    n_features_in_ = 3
    posterior_ = [{"n_hidden": 3}, {"n_hidden": 0}]

    def network(self, draw=None):
        hidden = slice(None) if draw is None or draw["n_hidden"] else slice(0)
        n_units = len(LAYER) if draw is None or draw["n_hidden"] else 3
        return {
            "layer": LAYER[:n_units],
            "edges": EDGES[hidden],
            "weights": WEIGHTS[hidden],
            "biases": np.zeros(n_units),
            "unit_precision": np.ones(n_units),
        }


def make_network(widths, share, seed=0):
    """Heights, edges and weights of a random network of layers."""
    random = np.random.default_rng(seed)
    layer = np.repeat(np.arange(len(widths)), widths)
    adjacent = layer[:, np.newaxis] == layer + 1
    edges = np.argwhere(adjacent & (random.random(adjacent.shape) < share))
    return layer, edges, random.normal(size=len(edges))


def n_crossings(place, edges):
    """Pairs of edges between two rows that cross."""
    parent, child = place[edges].T
    return np.sum(np.subtract.outer(parent, parent) * np.subtract.outer(child, child) < 0) // 2


def test_edges_join_the_dots():
    display = NetworkDisplay.from_estimator(FittedNetwork())
    assert_array_equal(display.units_.get_offsets(), display.position_)
    assert_array_equal(display.position_[:, 1], LAYER)
    assert_allclose(display.position_[[3, 4], 0], [0.25, 0.75])
    assert_allclose(np.sort(display.position_[:3, 0]), [1 / 6, 1 / 2, 5 / 6])
    assert_array_equal(display.shown_, np.argsort(np.abs(WEIGHTS)))
    for edge, line in zip(display.shown_, display.edges_.get_segments(), strict=True):
        assert_allclose(line[[0, -1]], display.position_[EDGES[edge]])
        assert (len(line) > 2) == (edge == 5)  # the edge that passes a row is curved
    curve = display.edges_.get_segments()[0]
    assert np.all(np.diff(curve[:, 1]) < 0) and 0 < curve[:, 0].min() < curve[:, 0].max() < 1


def test_colours_are_signs_and_widths_are_sizes():
    display = NetworkDisplay(LAYER, EDGES, WEIGHTS, n_visible=3).plot()
    shown = WEIGHTS[display.shown_]
    colors, widths = display.edges_.get_colors(), display.edges_.get_linewidths()
    for weight, color in zip(shown, colors, strict=True):
        assert_allclose(color[:3], to_rgb(NEGATIVE if weight < 0 else POSITIVE))
    share = np.abs(shown) / 4.0
    assert_allclose(widths, 4.0 * (0.15 + 0.85 * share))
    assert_allclose(colors[:, 3], 0.35 + 0.65 * share)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "positive",
        "negative",
    ]


def test_rows_and_units_are_named():
    display = NetworkDisplay(LAYER, EDGES, WEIGHTS, n_visible=3, names=["a", "bb", "c"]).plot()
    assert_array_equal(display.ax_.get_yticks(), [0, 1, 2])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["visible\n3 units", "layer 1\n2 units", "layer 2\n1 unit"]
    assert [text.get_text() for text in display.names_] == ["a", "bb", "c"]
    assert_allclose([text.xy for text in display.names_], display.position_[:3])
    assert {text.get_rotation() for text in display.names_} == {0.0}
    display.figure_.canvas.draw()
    unnamed = NetworkDisplay(LAYER, EDGES, WEIGHTS, n_visible=3).plot()
    assert [text.get_text() for text in unnamed.names_] == ["0", "1", "2"]
    visible, hidden = display.units_.get_facecolors()[:3], display.units_.get_facecolors()[3:]
    assert_array_equal(np.unique(hidden, axis=0), [(0, 0, 0, 1)])
    assert len(np.unique(visible, axis=0)) == 1 and visible[0, 0] > 0


def test_names_stand_upright_or_not_at_all_where_they_crowd():
    layer, edges, weights = make_network([30, 4], 0.3)
    long = NetworkDisplay(layer, edges, weights, n_visible=30, names=["a long name"] * 30)
    assert {text.get_rotation() for text in long.plot().names_} == {90.0}
    layer, edges, weights = make_network([400, 4], 0.3)
    crowded = NetworkDisplay(layer, edges, weights, n_visible=400, max_edges=1000)
    assert crowded.plot().names_ == []


def test_order_of_the_rows_untangles_what_can_be():
    # A network of parents with two neighbouring children each, numbers shuffled.
    random = np.random.default_rng(0)
    parent, child = 24 + random.permutation(12), random.permutation(24)
    edges = np.column_stack([np.repeat(parent, 2), child])
    layer = np.repeat([0, 1], [24, 12])
    display = NetworkDisplay(layer, edges, np.ones(24), n_visible=24).plot()
    place = display.position_[:, 0]
    assert n_crossings(place, edges) == 0
    assert_allclose(np.sort(place[24:]), (np.arange(12) + 0.5) / 12)


def test_order_crosses_less_than_the_numbers():
    layer, edges, _ = make_network([30, 10, 4], 0.15)
    weights = np.ones(len(edges))
    display = NetworkDisplay(layer, edges, weights, n_visible=30, max_edges=1000).plot()
    plain = np.concatenate([(np.arange(width) + 0.5) / width for width in (30, 10, 4)])
    for row in (1, 2):
        between = edges[layer[edges[:, 0]] == row]
        assert n_crossings(display.position_[:, 0], between) < n_crossings(plain, between)


def test_of_many_edges_the_largest():
    layer, edges, weights = make_network([60, 20], 0.5)
    display = NetworkDisplay(layer, edges, weights, n_visible=60, max_edges=50).plot()
    largest = np.sort(np.abs(weights))[-50:]
    assert_array_equal(np.abs(weights[display.shown_]), largest)
    assert len(display.edges_.get_segments()) == 50
    first, second = display.ax_.get_xlabel().split("\n")
    assert first == f"the 50 strongest of {len(edges)} edges,"
    assert second == f"{len(edges) - 50} weaker not shown"
    assert NetworkDisplay(LAYER, EDGES, WEIGHTS, n_visible=3).plot().ax_.get_xlabel() == ""


def test_units_without_a_shown_edge_are_left_out():
    layer, edges, weights = make_network([784, 60, 9], 0.3)
    names = [f"pixel {unit} of the picture" for unit in range(784)]
    display = NetworkDisplay(layer, edges, weights, n_visible=784, names=names).plot()
    assert len(display.shown_) == len(display.edges_.get_segments()) == 50
    units = np.unique(edges[display.shown_])
    assert_array_equal(display.units_.get_offsets(), display.position_[units])
    assert_array_equal(np.flatnonzero(~np.isnan(display.position_[:, 0])), units)
    assert_array_equal(display.position_[units, 1], layer[units])
    seen = units[units < 784]
    assert [text.get_text() for text in display.names_] == [
        short_name(names[unit], 20) for unit in seen
    ]
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[0] == f"visible\n{len(seen)} of 784 units"
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.names_]
    assert not any(a.overlaps(b) for t, a in enumerate(boxes) for b in boxes[t + 1 :])


def test_fifty_edges_are_all_shown_and_one_more_is_not():
    layer, edges, weights = make_network([20, 12], 0.9)
    for n_edges, n_units in ((50, 32), (51, None)):
        display = NetworkDisplay(layer, edges[:n_edges], weights[:n_edges], n_visible=20).plot()
        assert len(display.edges_.get_segments()) == 50
        n_shown = np.sum(~np.isnan(display.position_[:, 0]))
        assert n_shown == (n_units or len(np.unique(edges[display.shown_])))
        assert ("1 weaker" in display.ax_.get_xlabel()) == (n_edges > 50)


def test_few_edges_of_many_units():
    layer = np.repeat([0, 1], [784, 2])
    display = NetworkDisplay(layer, [[784, 3], [785, 700]], [1.0, -1.0], n_visible=784).plot()
    assert [text.get_text() for text in display.names_] == ["3", "700"]
    assert len(display.units_.get_offsets()) == 4 and display.ax_.get_xlabel() == ""
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["visible\n2 of 784 units", "layer 1\n2 units"]
    empty = NetworkDisplay(np.zeros(784), [], [], n_visible=784).plot()
    assert len(empty.units_.get_offsets()) == 784


@pytest.mark.parametrize("with_inputs", [False, True])
def test_many_edges_without_layers_stand_in_levels(with_inputs):
    random = np.random.default_rng(1)
    height = np.concatenate([np.zeros(5), np.sort(random.random(20))])
    if with_inputs:
        height[2:5] = 1.0
    edges = np.argwhere(height[:, np.newaxis] > height)
    weights = random.normal(size=len(edges))
    display = NetworkDisplay(height, edges, weights, n_visible=5, max_edges=40).plot()
    level = display.position_[:, 1]
    shown = edges[display.shown_]
    assert np.all(level[shown[:, 0]] >= level[shown[:, 1]] + 1)
    assert_array_equal(display.ax_.get_yticks(), np.unique(level[~np.isnan(level)]))
    assert display.ax_.get_ylabel() == "level"
    inputs = level[2:5][~np.isnan(level[2:5])]
    if with_inputs:
        assert len(inputs) and np.all(inputs == np.nanmax(level))
        assert np.sum(level == np.nanmax(level)) == len(inputs)
    hidden = level[5:][~np.isnan(level[5:])]
    assert hidden.min() == 1.0


def test_orders_between_0_and_1():
    random = np.random.default_rng(1)
    height = np.concatenate([np.zeros(5), np.sort(random.random(20))])
    higher = height[:, np.newaxis] > height
    edges = np.argwhere(higher & (random.random(higher.shape) < 0.2))
    weights = random.normal(size=len(edges))
    display = NetworkDisplay(height, edges, weights, n_visible=5, max_edges=1000).plot()
    assert_array_equal(display.position_[:, 1], height)
    assert len(np.unique(display.position_, axis=0)) == 25
    assert np.all((0 < display.position_[:, 0]) & (display.position_[:, 0] < 1))
    assert display.ax_.get_ylabel() == "order"
    for edge, line in zip(display.shown_, display.edges_.get_segments(), strict=True):
        assert_allclose(line[[0, -1]], display.position_[edges[edge]])


class FittedRegressor:
    """What a fitted regressor's network offers: outputs at 0, inputs at 1, units between."""

    n_features_in_ = 4
    posterior_ = [{}]

    def __init__(self, n_hidden):
        self.n_hidden = n_hidden

    def network(self, draw=None):
        # The output is 0, inputs are 1 to 4, hidden units 5, 6, ...
        order = np.concatenate([[0.0, 1.0, 1.0, 1.0, 1.0], np.linspace(0.2, 0.7, self.n_hidden)])
        edges = [[1, 0], [5, 0], [6, 0], [2, 5], [3, 5], [3, 6]][: 6 if self.n_hidden else 1]
        names = ["yield", "rain", "sun", "soil", "wind"]
        weights = np.arange(1.0, 1.0 + len(edges))
        return {"order": order, "edges": edges, "weights": weights, "names": names}


@pytest.mark.parametrize("n_hidden", [2, 0])
def test_inputs_on_top_outputs_below(n_hidden):
    display = NetworkDisplay.from_estimator(FittedRegressor(n_hidden))
    display.figure_.canvas.draw()
    assert_array_equal(display.position_[:5, 1], [0, 1, 1, 1, 1])
    assert display.n_visible == 5 and display.ax_.get_ylabel() == "order"
    assert len(np.unique(display.position_[1:5, 0])) == 4
    texts = [text.get_text() for text in display.names_]
    assert texts == ["yield", "rain", "sun", "soil", "wind"]
    box = [text.get_window_extent() for text in display.names_]
    dot = display.ax_.transData.transform(display.position_)
    assert box[0].y1 < dot[0, 1]
    assert all(above.y0 > at for above, at in zip(box[1:], dot[1:, 1], strict=False))
    legend = display.ax_.get_legend().get_window_extent()
    assert not any(legend.overlaps(one) for one in box)
    assert_array_equal(display.units_.get_facecolors()[:5, :3], [to_rgb(GREY)] * 5)


@pytest.mark.parametrize("names", ["abcd", ["a very long name"] * 4], ids=["short", "long"])
def test_titles_and_labels_clear_the_names(names):
    figure, axes = plt.subplots(1, 3, figsize=(10, 4), layout="constrained")
    height, edges = np.array([0.0, 0.0, 1.0, 1.0, 0.5]), np.array([[2, 4], [3, 4], [4, 0], [4, 1]])
    for ax in axes:
        display = NetworkDisplay(
            height, edges, np.arange(1.0, 5.0), n_visible=4, names=names, max_edges=3
        ).plot(ax=ax)
        ax.set_title("a title as long as the axes are wide")
        figure.draw_without_rendering()
        for text in display.names_:
            box = text.get_window_extent()
            assert not box.overlaps(ax.title.get_window_extent())
            assert not box.overlaps(ax.xaxis.label.get_window_extent())


def test_units_of_nearly_the_same_order_are_apart():
    height = [0.0, 0.0, 0.0, 0.004, 0.37, 0.371, 0.6, 0.998, 1.0, 1.0]
    edges = [[3, 0], [4, 1], [5, 2], [6, 5], [7, 6], [8, 7], [9, 3]]
    display = NetworkDisplay(height, edges, np.ones(7), n_visible=3).plot()
    place = display.position_[:, 0]
    for units in ([0, 1, 2, 3], [4, 5, 6], [7, 8, 9]):
        assert_allclose(np.sort(place[units]), (np.arange(len(units)) + 0.5) / len(units))


def test_a_draw_without_hidden_units():
    estimator = FittedNetwork()
    display = NetworkDisplay.from_estimator(estimator, draw=estimator.posterior_[1])
    assert len(display.position_) == 3 and display.edges_.get_segments() == []
    assert display.ax_.get_legend() is None
    display.figure_.canvas.draw()


def test_fitted_networks():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2)) @ random.normal(size=(2, 5)) + 0.3 * random.normal(size=(60, 5))
    X[:, 2] = 1.0  # set aside by the estimator, and there all the same
    model = CIBPBeliefNet(n_chains=1, n_warmup=10, n_draws=4, random_state=0)
    with pytest.warns(UserWarning, match="constant|converged"):
        model.fit(X)
    for draw in (None, model.posterior_[0, 1]):
        display = NetworkDisplay.from_estimator(model, draw=draw)
        network = model.network(draw)
        assert_array_equal(display.position_[:, 1], network["layer"])
        assert len(display.names_) == 5
        shown = network["edges"][display.shown_]
        assert not np.any(shown == 2)
        assert_array_equal(np.sort(display.shown_), np.arange(len(network["edges"])))


def test_names_of_a_data_frame():
    estimator = FittedNetwork()
    estimator.feature_names_in_ = np.array(["height", "age", "sex"], dtype=object)
    display = NetworkDisplay.from_estimator(estimator)
    assert [text.get_text() for text in display.names_] == ["height", "age", "sex"]


def test_axes_and_style_of_the_user():
    figure, ax = plt.subplots()
    display = NetworkDisplay.from_estimator(FittedNetwork(), ax=ax, colors="black", max_edges=2)
    assert display.ax_ is ax and display.figure_ is figure
    assert_array_equal(display.edges_.get_colors(), [(0, 0, 0, 1)])
    assert_array_equal(display.shown_, [4, 3])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weights": WEIGHTS[1:]}, r"weights must have shape \(6,\), got \(5,\)"),
        ({"edges": EDGES + 3}, "edges must be of units 0 to 5, got 3 to 8"),
        ({"edges": EDGES[:, ::-1]}, "height must be larger for the parent"),
        ({"n_visible": 0}, "n_visible must be from 1 to 6, got 0"),
        ({"n_visible": 7}, "n_visible must be from 1 to 6, got 7"),
        ({"names": ["a"]}, "names must be of 3 visible units, got 1"),
        ({"max_edges": 0}, "max_edges must be an integer >= 1, got 0"),
        ({"max_edges": 2.5}, "max_edges must be an integer >= 1, got 2.5"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    arguments = {"height": LAYER, "edges": EDGES, "weights": WEIGHTS, "n_visible": 3} | changed
    with pytest.raises(ValueError, match=message):
        NetworkDisplay(**arguments).plot()


def test_nothing_to_show_yet():
    with pytest.raises(NotFittedError, match="call fit"):
        NetworkDisplay.from_estimator(SimpleNamespace())
    with pytest.raises(TypeError, match=r"pipeline\[-1\]"):
        NetworkDisplay.from_estimator(make_pipeline("passthrough"))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skbnp\[plot\]"):
        NetworkDisplay(LAYER, EDGES, WEIGHTS, n_visible=3).plot()
