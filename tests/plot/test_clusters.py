"""ClusterDisplay: the artists carry the points, the clusters and their certainty."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin

from skbnp.plot import ClusterDisplay, save_figure


class Halves:
    """Clusters by the sign of the last feature; missing cells are imputed as 100."""

    def __init__(self, names=None):
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def predict(self, X):
        return (np.asarray(X)[:, -1] > 0).astype(int)

    def predict_proba(self, X):
        p = 1.0 / (1.0 + np.exp(-np.asarray(X)[:, -1]))
        return np.column_stack([1.0 - p, p])

    def impute(self, X):
        return np.where(np.isnan(X), 100.0, X)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 3))


def legend_texts(display):
    return [text.get_text() for text in display.legend_.get_texts()]


def test_points_are_coloured_by_predicted_cluster(X):
    display = ClusterDisplay.from_estimator(Halves(), X)
    labels = Halves().predict(X)
    assert len(display.scatter_) == 2
    for k, points in enumerate(display.scatter_):
        assert_array_equal(points.get_offsets(), X[labels == k, :2])
        assert len(np.unique(points.get_edgecolors()[:, :3], axis=0)) == 1
    assert not np.array_equal(*(points.get_edgecolors()[0, :3] for points in display.scatter_))
    sizes = np.bincount(labels)
    assert legend_texts(display) == [f"cluster 0  ({sizes[0]})", f"cluster 1  ({sizes[1]})"]
    assert display.ax_.get_xlabel() == "feature 0" and display.ax_.get_ylabel() == "feature 1"


def test_certainty_is_opacity(X):
    display = ClusterDisplay.from_estimator(Halves(), X)
    labels, certainty = Halves().predict(X), Halves().predict_proba(X).max(axis=1)
    for k, points in enumerate(display.scatter_):
        assert_allclose(points.get_edgecolors()[:, 3], 0.2 + 0.8 * certainty[labels == k])
        assert np.all(points.get_facecolors()[:, 3] > 0)
    plain = ClusterDisplay(X[:, :2], labels).plot()
    assert np.all(plain.scatter_[0].get_edgecolors()[:, 3] == 1.0)


def test_given_labels_win(X):
    labels = np.arange(40) % 4
    display = ClusterDisplay.from_estimator(Halves(), X, labels=labels)
    assert legend_texts(display) == [f"cluster {k}  (10)" for k in range(4)]
    assert_array_equal(display.scatter_[3].get_offsets(), X[3::4, :2])


def test_columns_by_position_and_name(X):
    names = ["height", "width", "depth"]
    for columns in [(2, 0), (-1, 0), ("depth", "height"), ("depth", 0)]:
        display = ClusterDisplay.from_estimator(Halves(names), X, columns=columns)
        assert display.ax_.get_xlabel() == "depth" and display.ax_.get_ylabel() == "height"
        assert_array_equal(display.points, X[:, [2, 0]])


def test_dataframe(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    display = ClusterDisplay.from_estimator(Halves(), frame, columns=("b", "c"))
    assert display.ax_.get_xlabel() == "b"
    assert_array_equal(display.points, X[:, 1:])


def test_columns_of_several_levels(X):
    pairs = [("left", 1), ("left", 2), ("right", 1)]
    frame = pd.DataFrame(X, columns=pd.MultiIndex.from_tuples(pairs))
    for columns in [pairs[1:], tuple(pairs[1:]), [1, ("right", 1)]]:
        display = ClusterDisplay.from_estimator(Halves(), frame, columns=columns)
        assert display.ax_.get_xlabel() == "('left', 2)"
        assert_array_equal(display.points, X[:, 1:])
    display = ClusterDisplay.from_estimator(Halves(), frame, columns=pairs[2])
    assert_array_equal(display.points, X[:, 2:])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(X, library):
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    frame = frame if library == "polars" else frame.to_arrow()
    display = ClusterDisplay.from_estimator(Halves(), frame, columns=("b", "c"))
    assert display.ax_.get_xlabel() == "b"
    assert_array_equal(display.points, X[:, 1:])


def test_masked_cells_are_missing_cells(X):
    hidden = np.ma.MaskedArray(X, mask=np.zeros(X.shape))
    hidden[3, 0] = np.ma.masked
    labels = np.zeros(40, dtype=int)
    display = ClusterDisplay.from_estimator(Halves(), hidden, labels=labels)
    assert np.flatnonzero(display.imputed).tolist() == [3]


def test_missing_cells_are_hollow_at_their_imputed_place(X):
    X[3, 0] = X[5, 1] = np.nan
    labels = np.zeros(40, dtype=int)
    display = ClusterDisplay.from_estimator(Halves(), X, labels=labels)
    (points,) = display.scatter_
    assert points.get_offsets()[3, 0] == 100.0 and points.get_offsets()[5, 1] == 100.0
    hollow = points.get_facecolors()[:, 3] == 0.0
    assert np.flatnonzero(hollow).tolist() == [3, 5]
    assert np.all(points.get_edgecolors()[:, 3] > 0)
    assert legend_texts(display) == ["cluster 0  (40)", "hollow: imputed  (2)"]


def test_missing_cells_of_other_columns_do_not_matter(X):
    X[3, 1] = np.nan
    display = ClusterDisplay.from_estimator(Halves(), X, columns=(0, 2))
    assert not display.imputed.any() and len(legend_texts(display)) == 2


def test_one_column_has_a_line_for_each_cluster(X):
    for columns in (2, -1, (2,), [2]):
        display = ClusterDisplay.from_estimator(Halves(), X, columns=columns)
        assert display.ax_.get_xlabel() == "feature 2"
        labels = Halves().predict(X)
        for k, points in enumerate(display.scatter_):
            at = np.asarray(points.get_offsets())
            assert_array_equal(at[:, 0], X[labels == k, 2])
            assert np.all(np.abs(at[:, 1] - k) <= 0.3) and len(np.unique(at[:, 1])) == len(at)
        ticks = [text.get_text() for text in display.ax_.get_yticklabels()]
        assert ticks == ["cluster 0", "cluster 1"]
    alone = ClusterDisplay.from_estimator(Halves(), X[:, :1])
    assert alone.points.shape == (40, 1)


class AlwaysOne:
    """All rows are of one class; what is missing is the first level."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def impute(self, X):
        return X.fillna({"way": "bus", "size": "tiny"})


def test_categories_are_ticks_with_points_around_them():
    sizes = pd.CategoricalDtype(["tiny", "small", "large", "unused"])
    frame = pd.DataFrame(
        {
            "way": ["car", "bus", None, "car", "train", "bus"],
            "size": pd.Series(["large", "tiny", "small", "tiny", "small", None], dtype=sizes),
            "member": [True, False, True, True, False, False],
        }
    )
    display = ClusterDisplay.from_estimator(AlwaysOne(), frame, columns=("way", "size"))
    assert list(display.categories) == [["bus", "car", "train"], ["tiny", "small", "large"]]
    assert_array_equal(display.points, [[1, 2], [0, 0], [0, 1], [1, 0], [2, 1], [0, 0]])
    assert np.flatnonzero(display.imputed).tolist() == [2, 5]
    at = np.asarray(display.scatter_[0].get_offsets())
    assert np.all(np.abs(at - display.points) <= 0.3) and len(np.unique(at, axis=0)) == 6
    ax = display.ax_
    assert [text.get_text() for text in ax.get_xticklabels()] == ["bus", "car", "train"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["tiny", "small", "large"]
    flags = ClusterDisplay.from_estimator(AlwaysOne(), frame, columns="member")
    assert list(flags.categories) == [["False", "True"]]


def test_many_categories_have_some_ticks():
    points = np.column_stack([np.arange(300), np.arange(300)])
    names = [f"site {k}" for k in range(300)]
    display = ClusterDisplay(points, np.zeros(300, int), categories=(names, names)).plot()
    display.figure_.canvas.draw()
    for labels in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        boxes = [text.get_window_extent() for text in labels]
        assert 10 < len(boxes) < 150
        assert not any(a.overlaps(b) for a, b in zip(boxes[:-1], boxes[1:], strict=True))


class Regressor(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]


def test_what_has_no_clusters_is_refused(X):
    with pytest.raises(TypeError, match="must have clusters or classes, which Regressor has not"):
        ClusterDisplay.from_estimator(Regressor().fit(X, X[:, 0]), X)


def test_rows_without_a_place_need_an_estimator_that_fills(X):
    X[3, 0] = np.nan
    estimator = SimpleNamespace(predict=lambda X: np.zeros(len(X), dtype=int))
    with pytest.raises(TypeError, match="must have 'impute' to show rows that lack one of the col"):
        ClusterDisplay.from_estimator(estimator, X)
    ClusterDisplay.from_estimator(estimator, X, columns=(1, 2))


def test_legend_stops_at_twelve():
    labels = np.repeat(np.arange(15), np.arange(15, 0, -1))
    points = np.random.default_rng(0).normal(size=(len(labels), 2))
    display = ClusterDisplay(points, labels).plot()
    texts = legend_texts(display)
    assert len(display.scatter_) == 15 and len(texts) == 13
    assert texts[11] == "cluster 11  (4)" and texts[12] == "3 more  (6)"
    looks = {
        (tuple(points.get_edgecolors()[0]), points.get_paths()[0].vertices.tobytes())
        for points in display.scatter_
    }
    assert len(looks) == 15  # markers change where the colours start again


def test_negative_labels_are_no_cluster():
    display = ClusterDisplay(np.zeros((3, 2)), [-1, 0, 0]).plot()
    assert legend_texts(display) == ["no cluster  (1)", "cluster 0  (2)"]


def test_string_labels_are_named_and_ordered():
    points = np.random.default_rng(0).normal(size=(7, 2))
    species = np.array(["setosa", "virginica", "setosa", "versicolor", "virginica"] * 2)[:7]
    for labels in (species, species.astype(object), species.tolist()):
        display = ClusterDisplay(points, labels).plot()
        assert legend_texts(display) == ["setosa  (3)", "versicolor  (1)", "virginica  (3)"]
        assert_array_equal(display.scatter_[2].get_offsets(), points[species == "virginica"])
        colors = {tuple(points.get_edgecolors()[0]) for points in display.scatter_}
        assert len(colors) == 3


def test_a_label_looks_the_same_in_every_picture():
    alone = ClusterDisplay(np.zeros((1, 2)), np.array([4], dtype=np.uint8)).plot()
    among = ClusterDisplay(np.zeros((5, 2)), np.arange(5)).plot()
    assert_array_equal(alone.scatter_[0].get_edgecolors(), among.scatter_[4].get_edgecolors())
    flags = ClusterDisplay(np.zeros((2, 2)), [True, False]).plot()
    assert legend_texts(flags) == ["False  (1)", "True  (1)"]


@pytest.mark.parametrize("layout", [None, "tight", "constrained"])
def test_legend_is_not_cut_off(X, layout):
    figure, ax = plt.subplots(layout=layout)
    display = ClusterDisplay.from_estimator(Halves(), X, ax=ax)
    figure.canvas.draw()
    box = display.legend_.get_window_extent()
    whole = figure.bbox
    assert whole.x0 <= box.x0 and box.x1 <= whole.x1
    assert (box.x0 >= ax.get_window_extent().x1) == (layout is not None)


def test_legend_of_many_points_is_placed_at_once(recwarn):
    _, ax = plt.subplots()
    points = np.random.default_rng(0).normal(size=(20_000, 2))
    display = ClusterDisplay(points, np.zeros(20_000, int)).plot(ax=ax)
    display.figure_.canvas.draw()
    assert len(recwarn) == 0


def test_many_points_are_small_and_one_image_in_vector_files(tmp_path):
    points = np.random.default_rng(0).normal(size=(20_001, 2))
    few, many = (ClusterDisplay(points[:n], np.zeros(n, int)).plot() for n in (20_000, 20_001))
    alone = ClusterDisplay(points[:9], np.zeros(9, int)).plot()
    assert alone.scatter_[0].get_sizes()[0] > 4 * many.scatter_[0].get_sizes()[0] > 0
    assert many.scatter_[0].get_rasterized() and not few.scatter_[0].get_rasterized()
    path = tmp_path / "many.svg"
    save_figure(many, path)
    text = path.read_text()
    assert len(text) < 1_000_000 and "<image" in text and "cluster 0" in text


def test_axes_and_style_of_the_user(X):
    figure, ax = plt.subplots()
    display = ClusterDisplay.from_estimator(Halves(), X, ax=ax, s=5, marker="s")
    assert display.ax_ is ax and display.figure_ is figure
    assert display.scatter_[0].get_sizes().tolist() == [5]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((0, 1, 2), "columns must be one or two columns"),
        ((), "columns must be one or two columns"),
        ((0, 3), "columns must be between 0 and 2, got 3"),
        (("a", "z"), r"columns must be columns of X, \['a', 'b', 'c'\], got 'z'"),
    ],
)
def test_bad_columns_are_named(X, columns, message):
    with pytest.raises(ValueError, match=message):
        ClusterDisplay.from_estimator(Halves(["a", "b", "c"]), X, columns=columns)


def test_bad_shapes_are_named():
    with pytest.raises(ValueError, match=r"points must have shape \(n, 2\) or \(n, 1\)"):
        ClusterDisplay(np.zeros((4, 3)), np.zeros(4, int)).plot()
    with pytest.raises(ValueError, match="names must be 2, got 1"):
        ClusterDisplay(np.zeros((4, 2)), np.zeros(4), names=["a"]).plot()
    with pytest.raises(ValueError, match="categories must be 1, got 2"):
        ClusterDisplay(np.zeros((4, 1)), np.zeros(4), categories=[None, None]).plot()
    with pytest.raises(ValueError, match=r"labels must have shape \(4,\), got \(3,\)"):
        ClusterDisplay(np.zeros((4, 2)), np.zeros(3, int)).plot()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skbnp\[plot\]"):
        ClusterDisplay(np.zeros((4, 2)), np.zeros(4, int)).plot()
