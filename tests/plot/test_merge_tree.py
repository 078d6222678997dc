"""MergeTreeDisplay: lines meet where clusters are joined, colours are those of the cut."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skbnp.plot import MergeTreeDisplay
from skbnp.plot._style import COLORS, GREY
from skbnp.summaries.joining import MergeTree, merge_tree

# 1 and 2 are joined at .6, 0 and 3 at .3, all at .1.
TREE = MergeTree(
    sizes=np.array([40, 10, 20, 5]),
    pairs=np.array([[1, 2], [0, 3], [0, 1]]),
    overlap=np.array([0.6, 0.3, 0.1]),
    rows=np.array([30, 45, 75]),
)


def colors_of(collection):
    return [tuple(color) for color in collection.get_colors()]


def test_lines_meet_where_components_are_joined():
    display = MergeTreeDisplay(TREE).plot()
    assert_array_equal(display.components_, [0, 3, 1, 2])
    expected = [
        [(0, 1.05), (0, 0.3)],
        [(2, 1.05), (2, 0.6)],
        [(3, 1.05), (3, 0.6)],
        [(1, 1.05), (1, 0.3)],
        [(2.5, 0.6), (2.5, 0.1)],
        [(0.5, 0.3), (0.5, 0.1)],
    ]
    assert_allclose(display.lines_.get_segments(), expected)
    joins = [[(2, 0.6), (3, 0.6)], [(0, 0.3), (1, 0.3)], [(0.5, 0.1), (2.5, 0.1)]]
    assert_allclose(display.joins_.get_segments(), joins)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["40", "5", "10", "20"]
    foot, top = display.ax_.get_ylim()
    assert foot > 0.6 and top < 0.1  # what overlaps most is at the bottom
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize("merge_overlap", [0.25, 0.5, 0.05])
def test_colours_are_those_of_the_cut(merge_overlap):
    display = MergeTreeDisplay(TREE, merge_overlap=merge_overlap).plot()
    cluster = TREE.cut(merge_overlap)
    lines = colors_of(display.lines_)
    assert lines[:4] == [to_rgba(COLORS[k]) for k in cluster]
    made = TREE.overlap >= merge_overlap
    for color, (g, h), m in zip(colors_of(display.joins_), TREE.pairs, made, strict=True):
        assert color == to_rgba(COLORS[cluster[g]] if m else GREY)
        assert (cluster[g] == cluster[h]) == m
    assert_allclose(display.cut_.get_ydata(), merge_overlap)


def test_a_join_waits_for_those_before_it():
    """The second overlaps more than the first, which is not made: neither is it."""
    tree = merge_tree([[10, 4, 3], [4, 10, 3], [3, 3, 8]], [5, 5, 5])
    assert tree.overlap[1] > tree.overlap[0]
    display = MergeTreeDisplay(tree, merge_overlap=0.25).plot()
    heights = [join[0][1] for join in display.joins_.get_segments()]
    assert_allclose(heights, tree.overlap[[0, 0]])
    assert colors_of(display.joins_) == [to_rgba(GREY)] * 2


def test_one_component():
    display = MergeTreeDisplay(merge_tree([[7.0]], [7])).plot()
    display.figure_.canvas.draw()
    assert len(display.lines_.get_segments()) == 1 and display.joins_.get_segments() == []


def test_many_components_without_numbers_that_run_together():
    _, ax = plt.subplots(figsize=(4, 3))
    n = 200
    display = MergeTreeDisplay(merge_tree(np.eye(n) + 0.01, np.ones(n))).plot(ax=ax)
    display.figure_.canvas.draw()
    assert list(ax.get_xticks()) == []
    assert sorted(display.components_) == list(range(n))


def test_of_an_estimator():
    estimator = SimpleNamespace(merge_tree_=TREE, partition_info_={})
    _, ax = plt.subplots()
    display = MergeTreeDisplay.from_estimator(
        estimator, merge_overlap=0.5, ax=ax, linewidths=3.0, colors="red"
    )
    assert display.ax_ is ax and display.merge_overlap == 0.5 and display.tree is TREE
    assert_allclose(display.lines_.get_linewidths(), 3.0)
    assert set(colors_of(display.joins_)) == {to_rgba("red")}
    for given, shown in ({"merge_overlap": 0.4}, 0.4), ({"merge_overlap": None}, 0.25), ({}, 0.25):
        # The parameter may be set after fit, which changes no labels.
        estimator.partition_info_, estimator.merge_overlap = given, 0.9
        assert MergeTreeDisplay.from_estimator(estimator, ax=ax).merge_overlap == shown
    with pytest.raises(NotFittedError, match="call fit before"):
        MergeTreeDisplay.from_estimator(SimpleNamespace())
    with pytest.raises(TypeError, match="fitted step of the pipeline"):
        MergeTreeDisplay.from_estimator(make_pipeline("passthrough"))


def test_names_what_is_wrong(monkeypatch):
    with pytest.raises(ValueError, match="merge_overlap must be from 0 to 1, got 1.5"):
        MergeTreeDisplay(TREE, merge_overlap=1.5).plot()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'skbnp\[plot\]'"):
        MergeTreeDisplay(TREE).plot()


def test_joins_of_what_overlaps_entirely_are_seen():
    tree = MergeTree(
        sizes=np.array([5, 4, 3]),
        pairs=np.array([[0, 1], [0, 2]]),
        overlap=np.array([2.5, 0.4]),
        rows=np.array([9, 12]),
    )
    display = MergeTreeDisplay(tree).plot()
    assert_allclose(display.joins_.get_segments()[0], [(0, 1.0), (1, 1.0)])
    foot = display.ax_.get_ylim()[0]
    assert foot > 1.0 and "1 and more" in display.ax_.get_ylabel()
    assert max(display.ax_.spines["left"].get_bounds()) == 1.0


def test_clusters_beyond_the_palette_are_dashed():
    display = MergeTreeDisplay(merge_tree(np.eye(8) + 1e-6, np.full(8, 3))).plot()
    looks = {
        (tuple(color), str(dashes))
        for color, dashes in zip(
            display.lines_.get_colors()[:8], display.lines_.get_linestyles()[:8], strict=True
        )
    }
    assert len(looks) == 8
