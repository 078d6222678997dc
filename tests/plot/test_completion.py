"""CompletionDisplay: the images are the rows, missing pixels stand out, errors are right."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skbnp.plot import CompletionDisplay
from skbnp.plot.completion import MISSING

SHAPE = (2, 3)


def make_images(n=4):
    """Truth, the same with a third of the pixels missing, and a filling that is 0.5 too large."""
    truth = np.random.default_rng(0).random((n, 6))
    given = truth.copy()
    given[:, ::3] = np.nan
    return given, np.where(np.isnan(given), truth + 0.5, given), truth


def titles(display):
    return [[ax.get_title() for ax in axes] for axes in display.axes_]


def test_images_are_the_rows():
    given, filled, truth = make_images()
    display = CompletionDisplay(given, filled, truth, image_shape=SHAPE).plot()
    assert display.axes_.shape == display.images_.shape == (4, 3)
    for row, images in enumerate(display.images_):
        for image, values in zip(images, (given, filled, truth), strict=True):
            data = np.ma.filled(image.get_array(), np.nan)
            assert_array_equal(data, values[row].reshape(SHAPE))
            assert image.get_clim() == (truth.min(), truth.max())
    first = display.images_[0, 0]
    shown = first.to_rgba(first.get_array())
    missing = np.isnan(given[0]).reshape(SHAPE)
    assert_allclose(shown[missing], [to_rgba(MISSING)] * 2)
    assert_allclose(shown[~missing][:, 0], shown[~missing][:, 1])  # greys


def test_errors_over_the_missing_pixels():
    given, filled, truth = make_images()
    other = np.where(np.isnan(given), truth - 0.25, truth + 9.0)  # not asked about given pixels
    given[3] = truth[3]
    fillings = {"one": filled, "other": other}
    display = CompletionDisplay(given, fillings, truth, image_shape=SHAPE).plot()
    assert_allclose(display.errors_, [[0.5, 0.25]] * 3 + [[np.nan, np.nan]])
    assert titles(display) == [
        ["given\n33% missing", "one\nerror 0.500", "other\nerror 0.250", "truth"],
        *[["33% missing", "error 0.500", "error 0.250", ""]] * 2,
        ["0% missing", "", "", ""],
    ]


def test_without_truth():
    given, filled, _ = make_images()
    display = CompletionDisplay(given, filled, image_shape=SHAPE).plot()
    assert display.errors_ is None and display.axes_.shape == (4, 2)
    assert titles(display)[0] == ["given\n33% missing", "filled"]
    assert display.images_[0, 0].get_clim() == (np.nanmin(given), np.nanmax(given))


def test_from_estimator_shows_incomplete_rows():
    given, filled, truth = make_images(30)
    given[::2] = truth[::2]
    asked = []

    def impute(X):
        asked.append(X)
        return np.where(np.isnan(X), 7.0, X)

    estimator = SimpleNamespace(impute=impute, n_features_in_=6)
    display = CompletionDisplay.from_estimator(
        estimator, given, truth=truth, image_shape=SHAPE, max_rows=3
    )
    rows = [1, 15, 29]
    assert_array_equal(display.given, given[rows])
    assert_array_equal(display.truth, truth[rows])
    assert_array_equal(asked[0], given[rows])
    assert_array_equal(display.filled, np.where(np.isnan(given[rows]), 7.0, given[rows]))
    all_rows = CompletionDisplay.from_estimator(estimator, given, image_shape=SHAPE, max_rows=99)
    assert_array_equal(all_rows.given, given[1::2])


def test_axes_and_style_of_the_user():
    given, filled, _ = make_images(1)
    figure, axes = plt.subplots(1, 2)
    display = CompletionDisplay(given, filled, image_shape=SHAPE)
    display.plot(ax=axes, cmap="viridis", vmin=-1.0)
    assert display.figure_ is figure and list(display.axes_[0]) == list(axes)
    assert display.images_[0, 1].get_cmap().name == "viridis"
    assert display.images_[0, 1].get_clim()[0] == -1.0
    with pytest.raises(ValueError, match="ax must hold 1 x 2 axes, got 1"):
        display.plot(ax=axes[0])


def test_bad_arguments_are_named():
    given, filled, truth = make_images()
    with pytest.raises(ValueError, match=r"given must have shape \(n, 4\), n >= 1, for images"):
        CompletionDisplay(given, filled, image_shape=(2, 2)).plot()
    with pytest.raises(ValueError, match=r"filled must have shape \(4, 6\), got \(3, 6\)"):
        CompletionDisplay(given, filled[1:], image_shape=SHAPE).plot()
    with pytest.raises(ValueError, match=r"truth must have shape \(4, 6\), got \(3, 6\)"):
        CompletionDisplay(given, filled, truth[1:], image_shape=SHAPE).plot()
    estimator = SimpleNamespace(impute=np.nan_to_num, n_features_in_=6)
    for max_rows in (0, 2.5, True):
        with pytest.raises(ValueError, match="max_rows must be an integer >= 1, got"):
            CompletionDisplay.from_estimator(estimator, given, image_shape=SHAPE, max_rows=max_rows)
    with pytest.raises(ValueError, match="X must have a row with missing entries"):
        CompletionDisplay.from_estimator(estimator, truth, image_shape=SHAPE)
    with pytest.raises(ValueError, match="truth must have the shape of X"):
        CompletionDisplay.from_estimator(estimator, given, truth=truth[1:], image_shape=SHAPE)


def test_nothing_to_show_yet():
    with pytest.raises(NotFittedError, match="call fit"):
        CompletionDisplay.from_estimator(object(), np.ones((1, 6)), image_shape=SHAPE)
    with pytest.raises(TypeError, match=r"pipeline\[-1\]"):
        CompletionDisplay.from_estimator(
            make_pipeline("passthrough"), np.ones((1, 6)), image_shape=SHAPE
        )


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    given, filled, _ = make_images()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skbnp\[plot\]"):
        CompletionDisplay(given, filled, image_shape=SHAPE).plot()


def test_marks_of_missing_cells_are_missing():
    """Those that `fit` had, in arrays, in single precision too, and in frames."""
    given, _, _ = make_images()
    given = given.reshape(len(given), -1)
    marked = np.where(np.isnan(given), -9.9, given)
    estimator = SimpleNamespace(
        impute=lambda X: np.zeros(np.shape(X)), n_features_in_=6, _marks={None: [-9.9]}
    )
    for X in (marked, marked.astype(np.float32), pd.DataFrame(marked)):
        display = CompletionDisplay.from_estimator(estimator, X, image_shape=SHAPE)
        assert np.nanmin(display.given) > -9.0 and np.isnan(display.given).any()
