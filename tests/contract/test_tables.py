"""A table in is a table out, from every estimator: the same kind, names, index and order.

What is in the cells does not depend on the form: it is what an array of the same numbers gives.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from contract.registry import DEFAULTS
from contract.tables import (
    COMMON,
    FORMS,
    N,
    any_method,
    assert_equal_tables,
    assert_same_form,
    clone_of_fitted,
    fitted,
    has,
    masked,
    numbers,
    table,
    values,
)
from skbnp import DirichletProcessMixture, ICPNetworkRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:covariance_type='full' has little"),
]
by_setting = pytest.mark.parametrize("setting", DEFAULTS, ids=str)
TAKE_HOLES = [setting for setting in DEFAULTS if setting.takes_holes]


def cases():
    for setting in DEFAULTS:
        for form in FORMS:
            for holes in [False, True] if setting.takes_holes else [False]:
                name = f"{setting}-{form}-{'holes' if holes else 'whole'}"
                # All forms, with holes, of one estimator, and the common ones of each.
                is_first = setting is DEFAULTS[0] or form in COMMON
                is_fast = is_first and (holes or not setting.takes_holes)
                marks = [] if is_fast else [pytest.mark.slow]
                yield pytest.param(setting, form, holes, id=name, marks=marks)


by_case = pytest.mark.parametrize(["setting", "form", "holes"], list(cases()))


# -- the same kind, names and index; the values of an array


@cache
def answers_to_array(setting, holes):
    """What the model of an array says of it, by name."""
    model, X = fitted(setting, "numpy", holes), numbers(holes)
    of_rows = ("predict", "score_samples", "predict_proba")
    found = {name: getattr(model, name)(X) for name in of_rows if has(model, name)}
    if has(model, "impute"):
        found["impute"] = model.impute(X, return_std=True)
    return found


@by_case
def test_every_answer_has_the_form_of_its_table(setting, form, holes):
    X, model, plain = table(form, holes), fitted(setting, form, holes), numbers(holes)
    as_array = fitted(setting, "numpy", holes)
    expected = answers_to_array(setting, holes).copy()
    filling = expected.pop("impute", None)
    for name in expected:
        answer = getattr(model, name)(X)
        assert type(answer) is np.ndarray
        assert_array_equal(answer, expected[name], err_msg=name)
    if filling is None:
        return
    filled, std = model.impute(X, return_std=True)
    assert_same_form(filled, X)
    assert_array_equal(values(filled).astype(float), filling[0])
    assert_same_form(std, X)
    assert_array_equal(values(std), filling[1])
    seen = ~np.isnan(plain)
    assert_array_equal(values(filled).astype(float)[seen], plain[seen])
    if has(model, "X_imputed_"):
        for name in ("X_imputed_", "X_imputed_std_"):
            assert_same_form(getattr(model, name), X)
            assert_array_equal(values(getattr(model, name)), getattr(as_array, name))
    if has(model, "sample_missing"):
        given = [X, None] if holes else [X]
        for tables in (model.sample_missing(one, n_tables=2, random_state=0) for one in given):
            for one in tables:
                assert_same_form(one, X)
                assert_array_equal(values(one).astype(float)[seen], plain[seen])


@by_case
def test_samples_have_the_form_of_the_training_table(setting, form, holes):
    model = fitted(setting, form, holes)
    if has(model, "sample"):
        one, other = (
            rows[0] if isinstance(rows, tuple) else rows
            for rows in (
                model.sample(5, random_state=0),
                fitted(setting, "numpy", holes).sample(5, random_state=0),
            )
        )
        assert_same_form(one, table(form, holes), rows=False)
        assert_array_equal(values(one), other)


@pytest.mark.parametrize("form", ["pandas", "int names", "MultiIndex names", "dates as index"])
@pytest.mark.parametrize("setting", TAKE_HOLES, ids=str)
def test_holes_filled_by_label_are_those_of_the_same_row(setting, form):
    X, model = table(form, True), fitted(setting, form, True)
    upside_down = X.iloc[::-1]
    for answer in [model.impute(X), getattr(model, "X_imputed_", None)]:
        if answer is not None:
            pd.testing.assert_frame_equal(upside_down.fillna(answer), answer.iloc[::-1])


@pytest.mark.parametrize("setting", TAKE_HOLES, ids=str)
def test_the_form_of_impute_follows_its_own_table(setting):
    model = fitted(setting, "int names", True)
    assert type(model.impute(numbers(True))) is np.ndarray
    frame = table("polars", True).rename({"a": "7", "b": "3", "c": "5"})
    with pytest.raises(ValueError, match=r"\[7, 3, 5\], in this order, got \['7', '3', '5'\]"):
        model.impute(frame)
    named = fitted(setting, "pandas", True)
    assert_same_form(named.impute(table("polars", True)), table("polars", True))


@pytest.mark.parametrize("form", ["pandas", "polars"])
@pytest.mark.parametrize(
    "setting", [one for one in DEFAULTS if hasattr(one.kind, "transform")], ids=str
)
def test_transform_keeps_the_index(setting, form):
    model = fitted(setting, form, False)
    X = table(form, False)
    answer = clone_of_fitted(model).set_output(transform=form).transform(X)
    assert type(answer) is type(X)
    assert_array_equal(values(answer), model.transform(X))
    if form == "pandas":
        assert_array_equal(answer.index, X.index)


@pytest.mark.parametrize(
    "form",
    ["int names", "MultiIndex names", "dates as index", "texts as index", "polars", "masked"],
)
@by_setting
def test_the_form_survives_files_and_pickles(setting, form, tmp_path):
    holes = setting.takes_holes
    model = fitted(setting, form, holes)
    model.save(tmp_path / "file")
    for again in [type(model).load(tmp_path / "file"), clone_of_fitted(model)]:
        for name in ("X_imputed_", "X_imputed_std_"):
            if has(model, name):
                assert_equal_tables(getattr(again, name), getattr(model, name))
        if has(model, "sample"):
            one, other = again.sample(3, random_state=0), model.sample(3, random_state=0)
            assert_equal_tables(
                *(rows[0] if isinstance(rows, tuple) else rows for rows in (one, other))
            )
        name = any_method(model)
        X = table(form, holes)
        assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))


# -- names


@by_setting
@pytest.mark.parametrize("form", ["int names", "MultiIndex names", "pandas by default"])
def test_columns_in_another_order_are_refused(setting, form):
    model, X = fitted(setting, form, False), table(form, False)
    answer = getattr(model, any_method(model))
    with pytest.raises(ValueError, match="feature names should match"):
        answer(X.iloc[:, [1, 0, 2]])
    with pytest.raises(ValueError, match="features"):
        answer(X.iloc[:, [0, 1]])


@by_setting
def test_names_are_all_strings_or_none(setting):
    frame = table("pandas", False)
    with pytest.raises(TypeError, match="string names"):
        setting.fit(frame.set_axis(["a", "b", 3], axis=1))
    with pytest.raises(ValueError, match="'b' twice"):
        setting.fit(frame.set_axis(["a", "b", "b"], axis=1))
    assert not hasattr(fitted(setting, "int names", False), "feature_names_in_")
    assert list(fitted(setting, "polars", False).feature_names_in_) == ["a", "b", "c"]


@by_setting
def test_a_lazy_frame_is_to_be_collected(setting):
    with pytest.raises(TypeError, match=r"collect\(\)"):
        setting.make().fit(table("polars", False).lazy(), setting.target(numbers(False)))


# -- masks


@pytest.mark.parametrize("setting", [one for one in DEFAULTS if not one.takes_holes], ids=str)
def test_a_masked_cell_is_refused_where_none_may_be_missing(setting):
    """Where some may be, "masked" is one of the forms above."""
    hidden = masked(numbers(True))
    with pytest.raises(ValueError, match="X must not hold missing cells"):
        setting.fit(hidden)
    model = fitted(setting, "numpy", False)
    with pytest.raises(ValueError, match="X must not hold missing cells"):
        model.predict(hidden)
    y = np.ma.MaskedArray(setting.target(numbers(False)), mask=np.arange(N) == 3)
    with pytest.raises(ValueError, match="y must not hold masked cells"):
        setting.make().fit(numbers(False), y)
    whole = np.ma.MaskedArray(numbers(False))
    assert_array_equal(model.predict(whole), model.predict(numbers(False)))


@pytest.mark.parametrize("name", ["Phi", "v"])
def test_masked_measurements_are_refused(name):
    given = {"Phi": np.eye(3), "v": np.ones((2, 3))}
    given[name] = np.ma.MaskedArray(given[name], mask=np.zeros(given[name].shape))
    given[name][0, 0] = np.ma.masked
    setting = next(one for one in DEFAULTS if hasattr(one.kind, "invert"))
    with pytest.raises(ValueError, match=f"{name} must not hold masked cells"):
        fitted(setting, "numpy", False).invert(**given)


@pytest.mark.parametrize("family", ["poisson", "categorical", "auto"])
def test_masks_of_a_mixed_table(family):
    X = np.random.default_rng(0).poisson(3, size=(N, 3))
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    options = dict(family=family, n_chains=1, n_warmup=4, n_draws=4, random_state=0)
    one = DirichletProcessMixture(**options).fit(np.ma.MaskedArray(X, mask=hidden))
    options["family"] = "gaussian" if family == "auto" else family
    other = DirichletProcessMixture(**options).fit(np.where(hidden, np.nan, X))
    assert list(one.families_) == list(other.families_)
    assert_array_equal(one.X_imputed_, other.X_imputed_)


def test_supervised_targets_may_be_frames():
    X, y = numbers(False), numbers(False)[:, 0]
    one = ICPNetworkRegressor(n_chains=1, n_warmup=3, n_draws=3, random_state=0).fit(X, y)
    frame = table("polars", False)
    other = clone(one).fit(frame, frame["a"])
    assert_array_equal(one.predict(X), other.predict(table("polars", False)))
