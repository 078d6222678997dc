"""ClusterProfileDisplay: a heat map of differences between a cluster and all other rows."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from skbnp import DirichletProcessMixture
from skbnp.plot import ClusterProfileDisplay
from skbnp.summaries.profiles import profiles

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    side = np.repeat([0, 1], 30)
    frame = pd.DataFrame({"height": rng.normal(size=60) + 8 * side, "age": rng.normal(size=60)})
    frame["sex"] = pd.Categorical(np.where(side, "f", "m"), categories=["f", "m"])
    frame.loc[3, "height"] = np.nan
    frame.loc[4, "sex"] = None
    return frame


@pytest.fixture(scope="module")
def model(table):
    return DirichletProcessMixture(n_chains=2, n_warmup=20, n_draws=20, random_state=0).fit(table)


def texts(labels):
    return [label.get_text() for label in labels]


def test_cells_are_differences(model, table):
    display = ClusterProfileDisplay.from_estimator(model)
    codes = table.assign(sex=table["sex"].cat.codes.replace(-1, np.nan)).to_numpy(dtype=float)
    expected = profiles(codes, model.labels_, [None, None, 2]).difference
    assert_allclose(display.image_.get_array(), expected)
    assert texts(display.ax_.get_xticklabels()) == ["height", "age", "sex = f", "sex = m"]
    sizes = np.bincount(model.labels_)
    assert texts(display.ax_.get_yticklabels()) == [
        f"cluster {k}  ({size})" for k, size in enumerate(sizes)
    ]
    assert [text.get_text() for text in display.texts_] == [f"{x:+.1f}" for x in expected.ravel()]
    assert display.colorbar_.ax.get_ylabel() == "standard deviations"


def test_new_rows_are_put_into_clusters(model, table):
    new = table.iloc[10:50]
    display = ClusterProfileDisplay.from_estimator(model, new)
    codes = new.assign(sex=new["sex"].cat.codes).to_numpy(dtype=float)
    expected = profiles(codes, model.predict(new), [None, None, 2])
    assert_allclose(display.difference, expected.difference)


def test_marks_of_missing_cells_are_missing():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[:20, 0] += 9.0
    marked = X.copy()
    marked[[3, 25], 1] = -999.0
    options = dict(n_chains=2, n_warmup=20, n_draws=20, random_state=0)
    model = DirichletProcessMixture(missing_values=-999.0, **options).fit(marked)
    display = ClusterProfileDisplay.from_estimator(model, marked)
    holed = np.where(marked == -999.0, np.nan, marked)
    expected = profiles(holed, model.predict(marked), [None, None])
    assert_allclose(display.difference, expected.difference)


def test_an_array_has_numbers_for_names():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[:10] += 9
    model = DirichletProcessMixture(n_chains=1, n_warmup=9, n_draws=9, random_state=0).fit(X)
    display = ClusterProfileDisplay.from_estimator(model)
    assert texts(display.ax_.get_xticklabels()) == ["x0", "x1", "x2"]
    assert_allclose(display.difference, profiles(X, model.labels_).difference)


def test_estimators_of_others_need_what_the_docstring_says_alone():
    X = np.random.default_rng(0).normal(size=(20, 2))
    labels = np.arange(20) % 2
    other = SimpleNamespace(
        labels_=labels,
        n_features_in_=2,
        posterior_=SimpleNamespace(observed_data=lambda: X),
        predict=lambda new: labels[: len(new)],
    )
    display = ClusterProfileDisplay.from_estimator(other)
    assert_allclose(display.difference, profiles(X, labels).difference)
    new = pd.DataFrame(X[:12], columns=["a", "b"])
    display = ClusterProfileDisplay.from_estimator(other, new)
    assert_allclose(display.difference, profiles(X[:12], labels[:12]).difference)
    assert texts(display.ax_.get_xticklabels()) == ["a", "b"]


def test_the_strongest_traits_are_shown():
    display = ClusterProfileDisplay([[0.1, -3.0, 0.2], [0.0, 1.0, -0.9]], max_columns=2).plot()
    assert_array_equal(display.shown_, [1, 2])
    assert display.ax_.get_xlabel() == "2 of 3 columns and levels"
    assert_array_equal(display.image_.get_array(), [[-3.0, 0.2], [1.0, -0.9]])


def test_many_cells_have_no_numbers_and_unknown_ones_no_colour():
    wide = ClusterProfileDisplay(np.zeros((20, 20)), noun="branch").plot()
    assert wide.texts_ == [] and texts(wide.ax_.get_yticklabels())[3] == "branch 3"
    display = ClusterProfileDisplay([[np.nan, 1.0]]).plot()
    assert display.image_.get_array().mask.tolist() == [[True, False]]
    assert len(display.texts_) == 1


def test_axes_and_options():
    figure, ax = plt.subplots()
    display = ClusterProfileDisplay([[1.0]]).plot(ax=ax, cmap="PuOr")
    assert display.ax_ is ax and display.figure_ is figure
    assert display.image_.get_cmap().name == "PuOr"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"difference": [1.0]}, "difference must have shape"),
        ({"difference": np.zeros((0, 2))}, "difference must have shape"),
        ({"difference": [[1.0]], "names": ["a", "b"]}, "names must have 1 entries, got 2"),
        ({"difference": [[1.0]], "sizes": [1, 2]}, r"sizes must have shape \(1,\)"),
        ({"difference": [[1.0]], "max_columns": 0}, "max_columns must be an integer >= 1, got 0"),
    ],
)
def test_bad_input(options, match):
    with pytest.raises(ValueError, match=match):
        ClusterProfileDisplay(**options).plot()


def test_unfitted():
    with pytest.raises(NotFittedError):
        ClusterProfileDisplay.from_estimator(DirichletProcessMixture())
