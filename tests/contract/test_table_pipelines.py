"""Estimators inside `ColumnTransformer` and `Pipeline`: frames in, frames out by `set_output`."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from checks.slow import slow_where
from contract.registry import DEFAULTS, SHORTEST
from contract.tables import COMMON, FORMS, fitted, has, numbers, table, values

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:covariance_type='full' has little"),
    pytest.mark.filterwarnings("ignore:X should have a column of kurtosis"),
]
TRANSFORMERS = [setting for setting in DEFAULTS if hasattr(setting.kind, "transform")]
OTHERS = {setting.name: setting for setting in DEFAULTS if setting not in TRANSFORMERS}
by_transformer = pytest.mark.parametrize("setting", TRANSFORMERS, ids=str)
by_output = pytest.mark.parametrize("output", ["pandas", "polars"])
by_form = pytest.mark.parametrize(
    "form", ["pandas", "polars", pytest.param("dates as index", marks=pytest.mark.slow)]
)
# Columns of the one and of the other estimator.
FIRST, LAST = ["a", "b"], ["b", "c"]


@cache
def transformed_alone(setting, holes, columns):
    """What an estimator by itself makes of some columns of an array."""
    alone = numbers(holes)[:, columns]
    return setting.make(**SHORTEST).fit(alone).transform(alone)


def assert_frame(answer, output, given, names):
    """Of the library that was asked for, with these names and the index of what was given."""
    assert type(answer).__module__.partition(".")[0] == output
    assert list(answer.columns) == list(names)
    if output == "pandas":
        index = given.index if isinstance(given, pd.DataFrame) else pd.RangeIndex(len(answer))
        pd.testing.assert_index_equal(answer.index, index, exact=True)


@by_output
@by_form
@by_transformer
def test_two_estimators_in_a_column_transformer(setting, form, output):
    pytest.importorskip(output)
    X = table(form, setting.takes_holes)
    first, last = TRANSFORMERS[0].make(**SHORTEST), setting.make(**SHORTEST)
    both = ColumnTransformer([("one", first, FIRST), ("other", last, LAST)])
    answer = both.set_output(transform=output).fit_transform(X)
    assert_frame(answer, output, X, both.get_feature_names_out())
    assert answer.columns[0].startswith("one__") and answer.columns[-1].startswith("other__")
    holes = setting.takes_holes
    parts = [
        transformed_alone(TRANSFORMERS[0], holes, (0, 1)),
        transformed_alone(setting, holes, (1, 2)),
    ]
    assert_array_equal(values(answer).astype(float), np.hstack(parts))
    again = both.transform(X[:5])
    assert_frame(again, output, again if output == "polars" else X[:5], answer.columns)


@by_output
@by_form
@by_transformer
def test_the_end_of_a_pipeline(setting, form, output):
    pytest.importorskip(output)
    X = table(form, setting.takes_holes)
    model = make_pipeline(StandardScaler(), setting.make(**SHORTEST))
    answer = model.set_output(transform=output).fit(X).transform(X)
    assert_frame(answer, output, X, model.get_feature_names_out())
    assert list(model[-1].feature_names_in_) == ["a", "b", "c"]
    if has(model[-1], "X_imputed_"):
        # What comes out of the scaler is the table that the estimator was trained on.
        assert type(model[-1].X_imputed_) is type(answer)
    assert_array_equal(model.score_samples(X), model[-1].score_samples(model[0].transform(X)))


@pytest.mark.parametrize("setting", OTHERS.values(), ids=str)
@by_output
def test_the_predictor_at_the_end_of_a_pipeline(setting, output):
    pytest.importorskip(output)
    X, y = table("pandas", False), setting.target(numbers(False))
    model = make_pipeline(StandardScaler(), setting.make(**SHORTEST))
    answer = model.set_output(transform=output).fit(X, y).predict(X)
    assert type(answer) is np.ndarray
    assert list(model[-1].feature_names_in_) == ["a", "b", "c"]


@by_output
@pytest.mark.parametrize(
    "form", slow_where([x for x in FORMS if x != "list"], lambda form: form not in COMMON)
)
@by_transformer
def test_set_output_over_every_form(setting, form, output):
    """`fitted` is shared: `set_output` of it is put back."""
    pytest.importorskip(output)
    X, model = table(form, False), fitted(setting, form, False)
    plain = model.transform(X)
    assert type(plain) is np.ndarray
    try:
        answer = model.set_output(transform=output).transform(X)
    finally:
        model.set_output(transform="default")
    assert_frame(answer, output, X, model.get_feature_names_out())
    assert_array_equal(values(answer), plain)
