"""`missing_values`: what stands for a missing cell, and advice where something looks like it."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from contract.registry import DEFAULTS, SHORTEST
from contract.tables import any_method, masked, numbers, short
from skbnp import DirichletProcessMixture, TreeFactorModel
from skbnp.tables.marks import few_valued_columns, resolve_marks, suspicious_marks

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:covariance_type='full' has little"),
    pytest.mark.filterwarnings("ignore:X should have a column of kurtosis"),
]
TAKE_HOLES = [setting for setting in DEFAULTS if setting.takes_holes]
OTHERS = [setting for setting in DEFAULTS if not setting.takes_holes]
HOLED = numbers(True)


def frame(mark):
    return pd.DataFrame(np.where(np.isnan(HOLED), mark, HOLED), columns=["a", "b", "c"])


def texts():
    """As a file has them in which "?" and "NA" are no numbers."""
    table = pd.DataFrame(HOLED, columns=["a", "b", "c"]).astype(str)
    table[np.isnan(HOLED)] = "?"
    table.iloc[np.flatnonzero(np.isnan(HOLED[:, 1])), 1] = "NA"
    return table


@cache
def answers_to_holes(setting):
    """What a model of NaN says of the table: of `any_method`, and of `impute`."""
    plain = setting.fit(HOLED, **SHORTEST)
    return getattr(plain, any_method(plain))(HOLED), plain.impute(HOLED)


MARKED = {
    "number": (lambda: frame(-999.0), -999),
    "list": (lambda: frame(-999.0).replace({"b": {-999.0: 1e4}}), [-999, 1e4, None]),
    "by name": (lambda: frame(-999.0), {"a": -999, "b": [-999], "c": -999.0}),
    "text": (texts, ["?", "NA"]),
    "array": (lambda: frame(-999.0).to_numpy(), -999),
    "by place": (lambda: frame(-999.0).to_numpy(), {0: -999, 1: -999, 2: (-999, np.nan)}),
    "objects": (lambda: frame("?").to_numpy(), "?"),
    "rows": (lambda: frame("?").to_numpy().tolist(), "?"),
    "array of text": (lambda: frame("?").to_numpy().astype(str), "?"),
    "masked as well": (lambda: masked(HOLED), -999),
    "pandas' NA": (lambda: frame(np.nan), pd.NA),
    "a list with NA": (lambda: frame(-999.0), [pd.NA, -999]),
    "infinity": (lambda: frame(np.inf), np.inf),
    "infinity in an array": (lambda: frame(-np.inf).to_numpy(), [-999, -np.inf]),
}


@pytest.mark.parametrize("name", MARKED)
@pytest.mark.parametrize("setting", TAKE_HOLES, ids=str)
def test_marked_cells_are_missing(setting, name, tmp_path):
    make, marks = MARKED[name]
    X = make()
    before = X.copy()
    model = setting.make(missing_values=marks, **SHORTEST).fit(X)
    ask = any_method(model)
    expected, expected_filled = answers_to_holes(setting)
    assert_array_equal(getattr(model, ask)(X), expected)
    assert before.equals(X) if hasattr(X, "equals") else np.all(before == X)
    filled = model.impute(X)
    assert type(filled) is (np.ndarray if isinstance(X, list) else type(X))
    assert_array_equal(np.asarray(filled, dtype=float), expected_filled)
    # What it was in fit holds, in files too.
    model.save(tmp_path / "file")
    again = type(model).load(tmp_path / "file")
    for one in (model.set_params(missing_values=3.0), again):
        assert_array_equal(getattr(one, ask)(X), expected)


def test_other_infinities_than_the_mark_are_refused():
    X = frame(np.inf).to_numpy().copy()
    X[0, 0] = -np.inf
    with pytest.raises(ValueError, match="infinity"):
        short(missing_values=np.inf).fit(X)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("as_table", [np.asarray, pd.DataFrame, np.ma.asarray])
def test_marks_are_found_in_narrow_floats(kind, as_table):
    # No narrow float is -999.9, nor is any large enough for the other mark.
    X = as_table(np.where(np.isnan(HOLED), -999.9, HOLED).astype(kind))
    model = short(missing_values=[-999.9, 1e300]).fit(X)
    assert (np.asarray(model.impute(X)) > -500).all()
    assert (np.asarray(model.X_imputed_) > -500).all()


@pytest.mark.parametrize("kind", [DirichletProcessMixture, TreeFactorModel])
@pytest.mark.parametrize("dtype", [bool, "boolean", object])
def test_marks_that_are_numbers_leave_bools(kind, dtype):
    X = frame(0.0).assign(d=pd.Series(np.arange(len(HOLED)) % 3 > 0).astype(dtype))
    model = kind(n_chains=1, n_warmup=2, n_draws=2, random_state=0, missing_values=[0, 1])
    filled = model.fit(X).impute(X)
    assert filled["d"].equals(X["d"]) and (filled["a"] != 0.0).all()


def test_numbers_that_are_text_are_marked_by_numbers_too():
    X = frame(-999.0)
    model, plain = (
        TreeFactorModel(n_warmup=2, n_draws=2, random_state=0, missing_values=-999)
        for _ in range(2)
    )
    found = model.fit(X.astype(str)).score_samples(X.astype(str))
    assert_array_equal(found, plain.fit(X).score_samples(X))


@pytest.mark.parametrize("setting", OTHERS, ids=str)
def test_marked_cells_are_refused_where_none_may_be_missing(setting):
    for X in (frame(-999.0), frame(-999.0).to_numpy()):
        y = setting.target(np.nan_to_num(HOLED))
        # The step that fills them is told the mark.
        words = r"X must not hold missing cells.* make_pipeline\(BNPImputer\(missing_values=-999\)"
        with pytest.raises(ValueError, match=words):
            setting.make(missing_values=-999).fit(X, y)


@pytest.mark.parametrize("setting", OTHERS, ids=str)
def test_what_fills_missing_cells_is_said_of_these_alone(setting):
    whole = np.nan_to_num(HOLED)
    X, y = pd.DataFrame(whole, columns=["a", "b", "c"]), setting.target(whole)
    model = setting.make(**SHORTEST).fit(X, y)
    hint = rf"'b'.*: fill them before, as by make_pipeline\(BNPImputer\(\), {setting.kind.__name__}"
    holed = pd.DataFrame(
        np.where(np.isnan(HOLED) & [False, True, False], None, whole), columns=X.columns
    )
    for call in (lambda: setting.make().fit(holed, y), lambda: model.predict(holed)):
        with pytest.raises(ValueError, match=hint) as caught:
            call()
        assert "HistGradient" not in str(caught.value)
    others = [
        (X.rename(columns={"b": "NaN"}), "feature names"),
        (X.astype({"b": object}).replace({"b": {X["b"][0]: "missing"}}), "'missing'"),
        (X.replace({"b": {X["b"][0]: np.inf}}), "infinity"),
    ]
    for table, words in others:
        with pytest.raises((TypeError, ValueError), match=words) as caught:
            model.predict(table)
        assert "BNPImputer" not in str(caught.value)


@pytest.mark.parametrize(
    "marks, message",
    [
        ({"z": -1}, "missing_values must name columns of X, got 'z'"),
        ([True], "missing_values must be numbers or strings, got True"),
        ([(1, 2)], r"missing_values must be numbers or strings, got \(1, 2\)"),
    ],
)
def test_bad_marks_are_refused(marks, message):
    with pytest.raises(ValueError, match=message):
        short(missing_values=marks).fit(frame(np.nan))


@pytest.mark.parametrize("place, message", [(3, "which has 3, got 3"), ("a", "places 0, 1, ...")])
def test_marks_of_an_array_go_by_places(place, message):
    for X in (HOLED, HOLED.astype(object)):
        with pytest.raises(ValueError, match=message):
            short(missing_values={place: -1}).fit(X)


def test_marks_among_names_and_counts():
    rng = np.random.default_rng(102)
    table = pd.DataFrame({"kind": rng.choice(["u", "v"], 40), "count": rng.poisson(3.0, 40)})
    table["level"] = pd.Categorical(table["kind"], ["u", "v", "unknown"])
    hidden = np.arange(40) % 8 == 3
    table.loc[hidden, "kind"], table.loc[hidden, "count"] = "?", -1
    table.loc[hidden, "level"] = "unknown"
    model = short(missing_values=["?", "unknown", -1]).fit(table)
    assert model.families_.tolist() == ["categorical", "poisson", "categorical"]
    assert [None if x is None else list(x) for x in model.levels_] == [["u", "v"], None] + [
        ["u", "v"]
    ]
    filled = model.impute(table)
    assert set(filled["kind"]) == {"u", "v"} == set(filled["level"])
    assert (filled["count"] > 0).all() or (filled["count"][hidden] >= 0).all()
    assert filled[~hidden].astype(str).equals(table[~hidden].astype({"count": float}).astype(str))


@pytest.mark.parametrize("names", [["1", "2"], [1, 2], ["u", "v"]])
def test_levels_are_the_same_with_marks_and_without(names):
    codes = pd.Series(names * 20, dtype=object).where(np.arange(40) % 5 > 0, "?")
    table = pd.DataFrame({"code": codes, "x": np.linspace(0.0, 1.0, 40)})
    known = table[table["code"] != "?"]
    for fitted, other in ((table, known), (known, table)):
        model = short(missing_values="?", family={"code": "categorical"}).fit(fitted)
        assert list(model.levels_[0]) == names
        assert set(model.impute(other)["code"]) == set(names) == set(model.sample(50)[0]["code"])
    digits = table.assign(code=codes.replace({name: str(k + 1) for k, name in enumerate(names)}))
    model = short(missing_values="?").fit(digits)
    assert model.families_.tolist() == ["categorical", "gaussian"]
    assert model.levels_[0].tolist() == [1, 2]
    assert set(model.impute(digits, rounding=True)["code"]) == {1, 2}


# -- advice


def table_of(x):
    rng = np.random.default_rng(103)
    return pd.DataFrame({"other": rng.normal(size=len(x)), "signal": x})


def with_marks(mark, low=-90, high=-40):
    rng = np.random.default_rng(104)
    x = rng.integers(low, high, 200).astype(float)
    x[rng.random(200) < 0.1] = mark
    return x


@pytest.mark.parametrize(
    "x, found",
    [
        (with_marks(100), [100.0]),
        (with_marks(-999), [-999.0]),
        (with_marks(9999.0), [9999.0]),
        (with_marks(-100, 0, 5), []),  # as far, but of five values a level of its own
        (with_marks(-99, 1, 6), [-99.0]),
        (with_marks(-99.9, 1, 6), [-99.9]),
        (with_marks(32767), [32767.0]),
        (np.where(np.arange(200) % 40 == 3, -99, with_marks(-999, 0, 30)), [-999.0, -99.0]),
        (with_marks(-41), []),
        (with_marks(250), []),
        (10.0 ** (np.arange(200) % 5), []),  # doses
        (np.arange(200) % 101, []),  # percent
        (with_marks(100, 0, 100), []),
    ],
)
def test_what_looks_like_a_mark(x, found):
    X = np.column_stack([np.random.default_rng(0).normal(size=200), x])
    assert suspicious_marks(X) == {value: [1] for value in found}
    assert suspicious_marks(X, nominal=[1]) == {}


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_diabetes])
def test_no_marks_among_measurements(load):
    assert suspicious_marks(load().data) == {}
    assert few_valued_columns(load().data, range(load().data.shape[1]), 3) == []


def test_no_marks_among_pixels():
    assert suspicious_marks(load_digits().data) == {}


@pytest.mark.parametrize("setting", TAKE_HOLES, ids=str)
def test_a_mark_is_named_with_its_column(setting):
    with pytest.warns(UserWarning, match=r"X has 100 in column\(s\) 'signal'.*missing_values=100"):
        setting.fit(table_of(with_marks(100)).iloc[:60], **SHORTEST)


@pytest.mark.parametrize("setting", TAKE_HOLES, ids=str)
def test_codes_taken_for_measurements_are_named(setting):
    # More than ten rows of each would be levels for the mixture.
    x = np.random.default_rng(105).integers(11, 19, 60)
    with pytest.warns(UserWarning, match=r"ten different whole numbers.*'signal', which") as caught:
        setting.fit(table_of(x), **SHORTEST)
    assert sum("whole numbers or fewer" in str(one.message) for one in caught) == 1


@pytest.mark.parametrize("setting", TAKE_HOLES, ids=str)
def test_columns_of_two_values_have_no_law_in_models_of_measurements(setting):
    x = np.random.default_rng(105).integers(0, 2, 60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        setting.fit(table_of(x), **SHORTEST)
        setting.fit(table_of(x).to_numpy(), **SHORTEST)
    said = [str(one.message) for one in caught if "two values in" in str(one.message)]
    if setting.name in ("tree", "icp", "clusterer", "scale"):
        assert len(said) == 1 and "two values in column(s) 'signal', which" in said[0]
    else:
        assert not said


def test_a_belief_network_that_spreads_nothing_has_no_law_of_two_values():
    setting = next(one for one in TAKE_HOLES if one.name == "cibp")
    x = np.random.default_rng(105).integers(0, 2, 60)
    with pytest.warns(UserWarning, match="two values in column"):
        setting.fit(table_of(x), dequantise=False, **SHORTEST)


@pytest.mark.parametrize("setting", TAKE_HOLES, ids=str)
def test_nobody_is_sent_to_columns_of_two_values_who_has_no_law_for_them(setting):
    x = np.random.default_rng(105).integers(11, 19, 60)
    with pytest.warns(UserWarning, match="ten different whole numbers") as caught:
        setting.fit(table_of(x), **SHORTEST)
    said = " ".join(str(one.message) for one in caught)
    assert ("into columns of 0 and 1" in said) == (setting.name == "cibp")


@pytest.mark.parametrize("setting", [one for one in OTHERS if one.name != "icp-images"], ids=str)
def test_codes_among_features_stay_where_they_are_scores(setting):
    """No other estimator with laws for codes predicts targets."""
    X = table_of(np.random.default_rng(105).integers(1, 5, 60))
    with pytest.warns(UserWarning, match="OneHotEncoder say; ordinal scores may stay") as caught:
        setting.make(**SHORTEST).fit(X, setting.target(X))
    assert not any("DirichletProcessMixture" in str(one.message) for one in caught)


@pytest.mark.parametrize(
    "family, dtype",
    [
        ({"signal": "categorical"}, int),
        ({"signal": "gaussian"}, int),
        ("gaussian", int),
        ("auto", "category"),
    ],
)
def test_what_is_said_of_a_column_is_not_said_again(family, dtype):
    x = pd.Series(np.random.default_rng(105).integers(1, 5, 60)).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        short(family=family).fit(table_of(x))


def test_marks_as_data():
    assert resolve_marks(None, None) == resolve_marks([np.nan, pd.NA], None) == {}
    assert resolve_marks({"b": -1, None: "?"}, ["a", "b"]) == {1: [-1], None: ["?"]}
