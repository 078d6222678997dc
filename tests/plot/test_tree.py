"""TreeDisplay: the lines, forks and images are those of the tree."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skbnp import TreeFactorModel
from skbnp.plot import TreeDisplay
from skbnp.plot.tree import _apart

RNG = np.random.default_rng(0)
# Level 1: node 0. It parts below level 2 (node 1) into 2-3 and 4-5; 5 parts into two branches.
TREE = {
    "parent": np.array([-1, 0, 1, 2, 1, 4]),
    "level": np.array([1, 2, 3, 4, 3, 4]),
    "count": np.array([60, 60, 10, 10, 50, 50]),
    "loadings": RNG.normal(size=(6, 6)),
    "leaf_node": np.array([3, 5, 5]),
    "leaf_count": np.array([10, 15, 35]),
    "leaf_mean": RNG.normal(size=(3, 6)),
}
FOOT = 4 * 1.05


def lines_by_nodes(display):
    """Ends, width and place of each line, by its nodes."""
    ends = display.lines_.get_segments()
    widths = display.lines_.get_linewidths()
    nodes = [tuple(segment.tolist()) for segment in display.segments_]
    return list(zip(nodes, ends, widths, strict=True))


def make_forest(n_branches):
    """Branches that share nothing, of 1, 2, ... rows."""
    count = np.arange(1, n_branches + 1)
    return {
        "parent": np.full(n_branches, -1),
        "level": np.ones(n_branches, dtype=int),
        "count": count,
        "loadings": np.ones((n_branches, 4)),
        "leaf_node": np.arange(n_branches),
        "leaf_count": count,
        "leaf_mean": np.zeros((n_branches, 4)),
    }


def test_lines_are_runs_of_shared_nodes_as_wide_as_their_rows():
    display = TreeDisplay(TREE).plot()
    assert_array_equal(display.branches_, [2, 1, 0])  # the largest first at each fork
    labels = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert labels == ["35", "15", "10"]
    expected = [
        ((), [(0, 4), (0, FOOT)], 35),
        ((), [(1, 4), (1, FOOT)], 15),
        ((4, 5), [(0.5, 2), (0.5, 4)], 50),
        ((2, 3), [(2, 2), (2, FOOT)], 10),
        ((0, 1), [(1.25, 0), (1.25, 2)], 60),
    ]
    lines = lines_by_nodes(display)
    assert len(lines) == len(expected)
    for (nodes, ends, width), (nodes_due, ends_due, count) in zip(lines, expected, strict=True):
        assert nodes == nodes_due
        assert_allclose(ends, ends_due)
        assert_allclose(width, 1.0 + 9.0 * count / 60)
    forks = sorted(fork.tolist() for fork in display.forks_.get_segments())
    assert forks == [[[0.0, 4.0], [1.0, 4.0]], [[0.5, 2.0], [2.0, 2.0]]]
    assert_array_equal(display.ax_.get_yticks(), [0, 2, 4])
    bottom, top = display.ax_.get_ylim()
    assert bottom > FOOT > top  # the root is at the top
    assert display.images_ == []


def test_means_at_the_feet_on_one_scale():
    display = TreeDisplay(TREE, image_shape=(2, 3)).plot()
    display.figure_.canvas.draw()
    assert len(display.images_) == 3
    means = TREE["leaf_mean"]
    for place, (branch, box) in enumerate(zip([2, 1, 0], display.images_, strict=True)):
        image = box.offsetbox.image
        assert_array_equal(image.get_array(), means[branch].reshape(2, 3))
        assert image.get_clim() == (means.min(), means.max())
        extent, foot = box.get_window_extent(), display.ax_.transData.transform((place, FOOT))
        assert_allclose((extent.x0 + extent.x1) / 2, foot[0], atol=2.0)
        assert display.ax_.get_window_extent().y0 - 1.0 <= extent.y0 < extent.y1 < foot[1]


def test_leading_directions_on_the_lines_with_nodes():
    display = TreeDisplay(TREE, image_shape=(3, 2), images="loadings").plot()
    display.figure_.canvas.draw()
    runs = [[4, 5], [2, 3], [0, 1]]
    places = [(0.5, 3.0), (2.0, (2 + FOOT) / 2), (1.25, 1.0)]
    assert len(display.images_) == 3
    for nodes, place, box in zip(runs, places, display.images_, strict=True):
        loadings = TREE["loadings"][nodes]
        direction = box.offsetbox.image.get_array().ravel()
        value = np.linalg.eigvalsh(loadings.T @ loadings)[-1]
        assert_allclose(loadings.T @ (loadings @ direction), value * direction, atol=1e-12)
        assert direction[np.argmax(np.abs(direction))] > 0
        limit = np.abs(direction).max()
        assert_allclose(box.offsetbox.image.get_clim(), (-limit, limit))
        middle = np.mean(box.get_window_extent().get_points(), axis=0)
        assert_allclose(middle, display.ax_.transData.transform(place), atol=2.0)


def test_only_the_largest_branches_and_what_is_left():
    display = TreeDisplay(TREE, max_branches=2).plot()
    assert_array_equal(display.branches_, [2, 1])
    # Without the third branch the nodes above the fork are one line.
    assert [nodes for nodes, *_ in lines_by_nodes(display)] == [(), (), (0, 1, 4, 5)]
    assert display.ax_.get_xlabel() == "rows of each branch (10 in 1 more)"
    assert TreeDisplay(TREE).plot().ax_.get_xlabel() == "rows of each branch"


def test_branches_that_share_nothing_part_at_level_0():
    display = TreeDisplay(make_forest(5)).plot()
    assert_array_equal(display.branches_, [4, 3, 2, 1, 0])
    assert_array_equal(display.forks_.get_segments(), [[(0, 0), (4, 0)]])
    assert len(display.segments_) == 5


def test_levels_that_would_run_together_are_left_out():
    assert _apart([0, 1, 4, 40], 1.6) == [1, 4, 40]
    assert _apart([0, 2, 4], 0.16) == [0, 2, 4]
    assert _apart([5], 1.0) == [5]


def test_a_single_branch():
    display = TreeDisplay(make_forest(1), image_shape=(2, 2)).plot()
    assert len(display.segments_) == 1 and not display.forks_.get_segments()
    display.figure_.canvas.draw()


def test_fitted_trees():
    X = RNG.normal(size=(80, 4))
    model = TreeFactorModel(
        max_depth=3, branch_levels=(1, 3), n_chains=2, n_warmup=10, n_draws=30, random_state=0
    )
    with pytest.warns(UserWarning, match="converged"):
        model.fit(X)
    display = TreeDisplay.from_estimator(model, image_shape=(2, 2), max_branches=100)
    assert_array_equal(np.sort(display.branches_), np.arange(len(model.tree_["leaf_node"])))
    shown = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert shown == [str(np.sum(model.component_labels_ == b)) for b in display.branches_]
    nodes = np.concatenate(display.segments_)
    assert_array_equal(np.sort(nodes), np.arange(len(model.tree_["parent"])))


def test_axes_and_style_of_the_user():
    estimator = SimpleNamespace(tree_=TREE)
    figure, ax = plt.subplots()
    display = TreeDisplay.from_estimator(estimator, ax=ax, colors="black")
    assert display.ax_ is ax and display.figure_ is figure
    assert_array_equal(display.lines_.get_colors(), [(0, 0, 0, 1)])
    narrow = TreeDisplay(make_forest(40), max_branches=40).plot(ax=ax)
    assert {text.get_rotation() for text in narrow.ax_.get_xticklabels()} == {90.0}


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="images must be 'means' or 'loadings', got 'mean'"):
        TreeDisplay(TREE, images="mean").plot()
    for max_branches in (0, 2.5):
        with pytest.raises(ValueError, match="max_branches must be an integer >= 1, got"):
            TreeDisplay(TREE, max_branches=max_branches).plot()
    for image_shape in ((2, 2), (6,)):
        with pytest.raises(ValueError, match=r"image_shape must be \(height, width\) with 6"):
            TreeDisplay(TREE, image_shape=image_shape).plot()


def test_nothing_to_show_yet():
    with pytest.raises(NotFittedError, match="call fit"):
        TreeDisplay.from_estimator(TreeFactorModel())
    with pytest.raises(TypeError, match=r"pipeline\[-1\]"):
        TreeDisplay.from_estimator(make_pipeline("passthrough"))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skbnp\[plot\]"):
        TreeDisplay(TREE).plot()
